// Clipper's REST: queries and feedback. See clipper.h.
#include "serve/front/clipper.h"

#include <stdatomic.h>

#include "tensor/tstring.h"

#define TEXT_TYPE "text/plain; charset=utf-8"
#define LARGE_BODY ((size_t)64 << 10)  // longer ones are read on the pool

typedef struct clipper_call_t clipper_call_t;

typedef struct clipper_row_t {
  rn_app_query_t query;  // first
  clipper_call_t* call;
  rn_status_t status;  // Owned
} clipper_row_t;

// A predict or an update.
struct clipper_call_t {
  rn_job_t job;
  rn_front_t* front;
  rn_http_in_t* request;
  rn_app_t* app;  // Retained
  rn_arena_t arena;
  bool is_update;
  rn_clipper_body_t body;
  clipper_row_t* rows;  // in the arena
  int row_count;
  _Atomic int waiting;  // rows without an answer, and 1 while they are started
};

static rn_str_t app_name(const clipper_call_t* call) { return rn_app_definition(call->app)->name; }

static void call_destroy(clipper_call_t* call) {
  rn_allocator_t allocator = call->front->allocator;
  for (int i = 0; i < call->row_count; ++i) {
    rn_app_query_clear(&call->rows[i].query);
    rn_status_free(call->rows[i].status);
  }
  rn_answer_clear(&call->body.label, allocator);
  rn_app_release(call->app);
  rn_arena_clear(&call->arena);
  RN_FREE(allocator, call);
}

// Replies.

void rn_clipper_put_answer(rn_strbuf_t* out, const rn_answer_t* answer) {
  if (answer->is_text && answer->is_json)
    rn_strbuf_append(out, rn_str_n(answer->text, answer->size));
  else if (answer->is_text)
    rn_json_put_string(out, rn_str_n(answer->text, answer->size));
  else if (answer->is_integer)
    rn_json_put_int(out, (int64_t)answer->number);
  else
    rn_json_put_double(out, answer->number);
}

static void put_row(rn_strbuf_t* out, const rn_app_query_t* query) {
  rn_strbuf_printf(out, "{\"query_id\":%lld,\"output\":", (long long)query->id);
  rn_clipper_put_answer(out, &query->answer);
  bool is_default = query->marks & RN_MARK_DEFAULT;
  rn_strbuf_printf(out, ",\"default\":%s", is_default ? "true" : "false");
  if (is_default) {
    rn_strbuf_append(out, RN_STR(",\"default_explanation\":"));
    rn_json_put_string(out, rn_str(query->explanation));
  }
  rn_strbuf_append(out, RN_STR(",\"confidence\":"));
  rn_json_put_double(out, query->confidence);
  rn_strbuf_append(out, RN_STR(",\"missing\":"));
  rn_json_put_double(out, query->asked ? (double)query->missing / query->asked : 0);
  rn_strbuf_append(out, RN_STR("}"));
}

// {"error", "cause"}, with the code of |status|, which it takes.
static void reply_error(const rn_front_t* front, rn_http_in_t* request, const char* error,
                        rn_status_t status) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, front->allocator);
  rn_strbuf_append(&out, RN_STR("{\"error\":"));
  rn_json_put_string(&out, rn_str(error));
  rn_strbuf_append(&out, RN_STR(",\"cause\":"));
  rn_json_put_string(&out, rn_str(rn_status_message(status)));
  rn_strbuf_append(&out, RN_STR("}"));
  rn_front_reply(front, request, rn_front_http_code(rn_status_code(status)), NULL, &out, 0);
  rn_status_free(status);
}

static void count_call(const clipper_call_t* call, rn_code_t code) {
  rn_predict_times_t times = {0};
  if (call->row_count) times = call->rows[0].query.times;
  times.begun_ns = call->request->begun_ns;  // a row that was learned from has no times
  rn_front_count(call->front, app_name(call), call->is_update ? "Update" : "Predict", "REST", code,
                 &times);
  if (code == RN_CODE_OK && !call->is_update)
    rn_front_count_answer(call->front, app_name(call), call->row_count, 0);
}

static void end_call(clipper_call_t* call, const char* error, rn_status_t status) {
  count_call(call, rn_status_code(status));
  reply_error(call->front, call->request, error, status);
  call_destroy(call);
}

static void reply_rows(clipper_call_t* call) {
  unsigned marks = 0;
  for (int i = 0; i < call->row_count; ++i) {
    rn_status_t status = call->rows[i].status;
    call->rows[i].status = RN_OK;
    if (!rn_ok(status)) {
      end_call(call, "Query processing error", status);
      return;
    }
    marks |= call->rows[i].query.marks;
  }
  rn_strbuf_t out;
  rn_strbuf_init(&out, call->front->allocator);
  if (call->is_update) {
    rn_strbuf_append(&out, RN_STR("Feedback received? 1"));
  } else if (call->body.input_batch.size) {
    rn_strbuf_append(&out, RN_STR("{\"batch_predictions\":["));
    for (int i = 0; i < call->row_count; ++i) {
      if (i) rn_strbuf_append(&out, RN_STR(","));
      put_row(&out, &call->rows[i].query);
    }
    rn_strbuf_append(&out, RN_STR("]}"));
  } else {
    put_row(&out, &call->rows[0].query);
  }
  count_call(call, RN_CODE_OK);
  rn_front_reply(call->front, call->request, 200, NULL, &out, marks);
  call_destroy(call);
}

// Rows.

// One string, or bytes.
static rn_status_t text_tensor(rn_str_t text, rn_dtype_t dtype, rn_allocator_t allocator,
                               rn_tensor_t* out) {
  int64_t count = dtype == RN_STRING ? 1 : (int64_t)text.size;
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, dtype, (rn_shape_t){1, &count}, out));
  if (dtype == RN_UINT8) {
    if (text.size) memcpy(out->data, text.data, text.size);
    return RN_OK;
  }
  if (rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size)) return RN_OK;
  rn_tensor_clear(out);
  return rn_out_of_memory();
}

static rn_status_t read_row(clipper_call_t* call, rn_json_reader_t* json, rn_tensor_t* out) {
  rn_dtype_t dtype = rn_app_input_dtype(call->app);
  rn_allocator_t allocator = call->front->allocator;
  rn_str_t text;
  if (dtype == RN_STRING) {
    RN_RETURN_IF_ERROR(rn_json_bytes(json, &text));
    return text_tensor(text, dtype, allocator, out);
  }
  if (dtype == RN_UINT8) {  // base64 text, read as the string of {"b64": string}
    rn_str_t object;
    RN_RETURN_IF_ERROR(rn_json_span(json, &text));
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&call->arena, &object, "{\"b64\": %.*s}", RN_STR_ARGS(text)));
    rn_json_reader_t inner = rn_json_reader(object, &call->arena);
    RN_RETURN_IF_ERROR(rn_json_bytes(&inner, &text));
    return text_tensor(text, dtype, allocator, out);
  }
  RN_RETURN_IF_ERROR(rn_json_tensor(json, dtype, allocator, out));
  if (out->rank == 1 && out->count) return RN_OK;
  rn_tensor_clear(out);
  return rn_invalid_argument("An input must be a list of numbers");
}

static rn_status_t add_rows(clipper_call_t* call, int count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)count, &call->rows));
  for (int i = 0; i < count; ++i) call->rows[i].call = call;
  call->row_count = count;
  return RN_OK;
}

static rn_status_t read_batch(clipper_call_t* call) {
  rn_json_reader_t json = rn_json_reader(call->body.input_batch, &call->arena);
  rn_json_reader_t begin = json;
  int count = 0;
  rn_str_t ignored;
  rn_status_t status = rn_json_open_array(&json);
  while (rn_ok(status) && rn_json_next_element(&json, &status)) {
    status = rn_json_span(&json, &ignored);
    ++count;
  }
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(add_rows(call, count));
  status = rn_json_open_array(&begin);
  for (int i = 0; rn_ok(status) && rn_json_next_element(&begin, &status); ++i)
    status = read_row(call, &begin, &call->rows[i].query.input);
  return status;
}

static rn_status_t read_rows(clipper_call_t* call) {
  if (call->body.input.size) {
    rn_json_reader_t json = rn_json_reader(call->body.input, &call->arena);
    RN_RETURN_IF_ERROR(add_rows(call, 1));
    return read_row(call, &json, &call->rows[0].query.input);
  }
  if (call->body.input_batch.size && !call->is_update) return read_batch(call);
  return rn_invalid_argument("JSON object does not have required keys input or input_batch");
}

static void row_done(rn_app_query_t* query, rn_status_t status) {
  clipper_row_t* row = (clipper_row_t*)query;
  clipper_call_t* call = row->call;
  row->status = status;
  if (atomic_fetch_sub(&call->waiting, 1) == 1) reply_rows(call);
}

static rn_status_t read_version(const clipper_call_t* call, int64_t* out) {
  *out = 0;
  rn_str_t text = call->body.model_version;
  if (!text.size || (rn_str_to_i64(text, out) && *out > 0)) return RN_OK;
  return rn_invalid_argument("Requested version: %.*s does not exist", RN_STR_ARGS(text));
}

static void start_rows(clipper_call_t* call) {
  rn_front_t* front = call->front;
  int64_t version = 0;
  rn_status_t status = read_version(call, &version);
  if (!rn_ok(status)) {
    end_call(call, "Query processing error", status);
    return;
  }
  atomic_store(&call->waiting, call->row_count + 1);
  int count = call->row_count;  // |call| may be gone after its last row
  for (int i = 0; i < count; ++i) {
    rn_app_query_t* query = &call->rows[i].query;
    query->user = call->body.uid;
    query->version = version;
    query->begun_ns = call->request->begun_ns;
    query->label = call->is_update ? &call->body.label : NULL;
    query->cancel = &call->request->cancel;
    query->done = row_done;
    rn_app_predict(front->apps, call->app, query);
  }
  if (atomic_fetch_sub(&call->waiting, 1) == 1) reply_rows(call);
}

// Feedback that names a query.
static void update_by_id(clipper_call_t* call) {
  rn_served_outcome_t outcome =
      rn_app_feedback(call->front->apps, call->app, call->body.query_id, &call->body.label);
  if (outcome != RN_SERVED_UNKNOWN)
    reply_rows(call);  // a second time changes nothing, and is no error
  else
    end_call(call, "Query processing error",
             rn_not_found("Query %lld is unknown, or too old for feedback",
                          (long long)call->body.query_id));
}

static void run_call(clipper_call_t* call) {
  rn_clipper_body_t* body = &call->body;
  rn_status_t status =
      rn_clipper_read(call->request->body, &call->arena, call->front->allocator, body);
  if (rn_ok(status) && call->is_update && !body->has_label)
    status = rn_invalid_argument("JSON object does not have required key: label");
  bool has_id = call->is_update && body->has_query_id;
  if (rn_ok(status) && !has_id) status = read_rows(call);
  if (!rn_ok(status))
    end_call(call, "Json error", status);
  else if (has_id)
    update_by_id(call);
  else
    start_rows(call);
}

static void run_job(rn_job_t* job) { run_call((clipper_call_t*)job); }

static void start_call(rn_front_t* front, rn_http_in_t* request, rn_str_t name, bool is_update) {
  clipper_call_t* call = NULL;
  rn_str_t unescaped;
  rn_arena_t arena;
  rn_arena_init(&arena, front->allocator);
  rn_status_t status = rn_front_unescape(name, &arena, &unescaped);
  rn_app_t* app = rn_ok(status) ? rn_apps_find(front->apps, unescaped) : NULL;
  if (rn_ok(status) && !app)
    status = rn_not_found("No app with name '%.*s' exists.", RN_STR_ARGS(unescaped));
  rn_arena_clear(&arena);
  if (rn_ok(status)) status = RN_NEW(front->allocator, &call);
  if (!rn_ok(status)) {
    rn_app_release(app);
    reply_error(front, request, "Query processing error", status);
    return;
  }
  *call = (clipper_call_t){.front = front,
                           .request = request,
                           .app = app,
                           .is_update = is_update,
                           .job = {.run = run_job}};
  rn_arena_init(&call->arena, front->allocator);
  if (request->body.size > LARGE_BODY && front->pool)
    rn_pool_submit(front->pool, &call->job);
  else
    run_call(call);
}

// Other calls.

static void reply_text(const rn_front_t* front, rn_http_in_t* request, int code,
                       rn_strbuf_t* body) {
  rn_front_reply(front, request, code, TEXT_TYPE, body, 0);
}

static void run_admin(rn_front_t* front, rn_http_in_t* request, rn_str_t name) {
  rn_arena_t arena;
  rn_strbuf_t out;
  rn_arena_init(&arena, front->allocator);
  rn_strbuf_init(&out, front->allocator);
  rn_status_t status = rn_clipper_admin(front, name, request->body, &arena, &out);
  rn_arena_clear(&arena);
  if (rn_ok(status)) {
    rn_front_reply(front, request, 200, NULL, &out, 0);
    return;
  }
  // Clipper's errors are texts, and all of them 400.
  rn_strbuf_clear(&out);
  bool is_unknown = !*rn_status_message(status);
  if (is_unknown)
    rn_strbuf_printf(&out, "There is no call /admin/%.*s", RN_STR_ARGS(name));
  else
    rn_strbuf_append(&out, rn_str(rn_status_message(status)));
  rn_status_free(status);
  reply_text(front, request, is_unknown ? 404 : 400, &out);
}

static void reply_metrics(rn_front_t* front, rn_http_in_t* request) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, front->allocator);
  rn_metrics_print(front->metrics, &out);
  rn_front_reply(front, request, 200, "text/plain; version=0.0.4", &out, 0);
}

bool rn_clipper_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role) {
  rn_str_t rest = request->path;
  if (!front->apps || !rest.size || rest.data[0] != '/') return false;
  rn_str_split(&rest, '/');
  rn_str_t first = rn_str_split(&rest, '/');
  if (rn_str_ends_with(rest, RN_STR("/"))) --rest.size;
  bool is_get = rn_str_is(request->method, "GET"), is_post = rn_str_is(request->method, "POST");
  bool is_admin = rn_str_is(first, "admin");
  bool is_update = rn_str_is(rest, "update");
  bool is_metrics = is_get && ((is_admin && rn_str_is(rest, "metrics")) ||
                               (rn_str_is(first, "metrics") && !rest.size));
  bool is_ping = is_get && is_admin && rn_str_is(rest, "ping");
  bool is_query = is_post && !is_admin && !rn_str_is(first, "v1") && !rn_str_is(first, "v2") &&
                  (is_update || rn_str_is(rest, "predict"));
  if (!is_metrics && !is_ping && !is_query && !(is_post && is_admin)) return false;
  rn_role_t needed = is_ping      ? RN_ROLE_NONE
                     : is_metrics ? RN_ROLE_READ
                     : is_query   ? RN_ROLE_PREDICT
                                  : RN_ROLE_ADMIN;
  if (role < needed) {
    rn_front_reply_error(front, request, rn_front_denied(role), 0);
  } else if (is_metrics) {
    reply_metrics(front, request);
  } else if (is_ping) {
    rn_strbuf_t pong;
    rn_strbuf_init(&pong, front->allocator);
    rn_strbuf_append(&pong, RN_STR("PONG"));
    reply_text(front, request, 200, &pong);
  } else if (is_query) {
    start_call(front, request, first, is_update);
  } else {
    run_admin(front, request, rest);
  }
  return true;
}
