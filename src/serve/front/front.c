// See front.h.
#include "serve/front/front.h"

#include <stdatomic.h>
#include <stdio.h>

#include "serve/front/json_internal.h"

int rn_front_http_code(rn_code_t code) {
  switch (code) {
    case RN_CODE_OK:
      return 200;
    case RN_CODE_CANCELLED:
      return 499;
    case RN_CODE_INVALID_ARGUMENT:
    case RN_CODE_FAILED_PRECONDITION:
    case RN_CODE_OUT_OF_RANGE:
      return 400;
    case RN_CODE_UNAUTHENTICATED:
      return 401;
    case RN_CODE_PERMISSION_DENIED:
      return 403;
    case RN_CODE_NOT_FOUND:
      return 404;
    case RN_CODE_ALREADY_EXISTS:
    case RN_CODE_ABORTED:
      return 409;
    case RN_CODE_RESOURCE_EXHAUSTED:
      return 429;
    case RN_CODE_UNIMPLEMENTED:
      return 501;
    case RN_CODE_UNAVAILABLE:
      return 503;
    case RN_CODE_DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

// Headers of one reply; names and values are borrowed.
#define MAX_HEADERS 6
typedef struct headers_t {
  rn_http_header_t items[MAX_HEADERS];
  int count;
  char marks[32], retry[24];
} headers_t;

static void add_header(headers_t* headers, const char* name, const char* value) {
  headers->items[headers->count++] = (rn_http_header_t){rn_str(name), rn_str(value)};
}

const char* rn_front_marks(unsigned marks, char out[32]) {
  static const char* const names[] = {"cached", "default", "partial"};
  size_t size = 0;
  out[0] = '\0';
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    if (!(marks >> i & 1)) continue;
    size += (size_t)snprintf(out + size, 32 - size, "%s%s", size ? ", " : "", names[i]);
  }
  return out;
}

static void add_headers(headers_t* headers, const rn_front_t* front, unsigned marks,
                        int64_t retry_ns) {
  if (front->has_cors) {
    add_header(headers, "Access-Control-Allow-Origin", "*");
    add_header(headers, "Access-Control-Allow-Methods", "POST, GET");
    add_header(headers, "Access-Control-Allow-Headers", "Content-Type");
  }
  if (marks) add_header(headers, "Runnel-Marks", rn_front_marks(marks, headers->marks));
  if (retry_ns > 0) {
    int64_t seconds = (retry_ns - 1) / 1000000000 + 1;
    snprintf(headers->retry, sizeof headers->retry, "%lld", (long long)seconds);
    add_header(headers, "Retry-After", headers->retry);
  }
}

// A buffer that owns the bytes of a strbuf, so that a long reply is not copied.
typedef struct text_buffer_t {
  rn_buffer_t buffer;
  rn_strbuf_t text;
} text_buffer_t;

static void text_buffer_destroy(rn_buffer_t* buffer) {
  text_buffer_t* text = (text_buffer_t*)buffer;
  rn_allocator_t allocator = text->text.allocator;
  rn_strbuf_clear(&text->text);
  RN_FREE(allocator, text);
}

rn_status_t rn_front_message(rn_strbuf_t* body, rn_message_t* out) {
  rn_message_init(out, body->allocator);
  RN_RETURN_IF_ERROR(rn_strbuf_status(body));
  text_buffer_t* text = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(body->allocator, &text));
  text->buffer = (rn_buffer_t){
      .dtype = RN_UINT8, .size = body->size, .data = body->data, .destroy = text_buffer_destroy};
  atomic_init(&text->buffer.refs, 1);
  text->text = *body;
  rn_strbuf_init(body, body->allocator);
  rn_status_t status = rn_message_lend(out, &text->buffer, rn_strbuf_view(&text->text));
  rn_buffer_release(&text->buffer);
  return status;
}

static void reply(const rn_front_t* front, rn_http_in_t* request, int code, const char* type,
                  rn_strbuf_t* body, unsigned marks, int64_t retry_ns) {
  headers_t headers = {.count = 0};
  add_headers(&headers, front, marks, retry_ns);
  rn_http_out_t out = {
      .code = code, .type = type, .headers = headers.items, .header_count = headers.count};
  rn_status_t status = rn_front_message(body, &out.body);
  rn_strbuf_clear(body);
  // If memory for the text runs out, the code must suffice.
  if (!rn_ok(status)) out.code = rn_front_http_code(rn_status_code(status));
  rn_status_free(status);
  rn_http_reply(request, &out);
}

void rn_front_reply(const rn_front_t* front, rn_http_in_t* request, int code, const char* type,
                    rn_strbuf_t* body, unsigned marks) {
  reply(front, request, code, type, body, marks, 0);
}

void rn_front_reply_message(const rn_front_t* front, rn_http_in_t* request, const char* type,
                            rn_message_t* body, const rn_http_header_t* more, unsigned marks) {
  headers_t headers = {.count = 0};
  add_headers(&headers, front, marks, 0);
  if (more) headers.items[headers.count++] = *more;
  rn_http_out_t out = {.code = 200,
                       .type = type,
                       .headers = headers.items,
                       .header_count = headers.count,
                       .body = *body};
  rn_http_reply(request, &out);
}

rn_status_t rn_front_unescape(rn_str_t part, rn_arena_t* arena, rn_str_t* out) {
  RN_RETURN_IF_ERROR(rn_arena_str(arena, part, out));
  char* to = (char*)out->data;
  for (size_t i = 0; i < part.size; ++i) {
    if (part.data[i] != '%') {
      *to++ = part.data[i];
      continue;
    }
    int high = i + 2 < part.size ? rn_json_hex_digit(part.data[i + 1]) : -1;
    int low = i + 2 < part.size ? rn_json_hex_digit(part.data[i + 2]) : -1;
    if (high < 0 || low < 0)
      return rn_invalid_argument("Malformed escape in '%.*s'", RN_STR_ARGS(part));
    *to++ = (char)(high << 4 | low);
    i += 2;
  }
  *to = '\0';
  out->size = (size_t)(to - out->data);
  return RN_OK;
}

void rn_front_reply_error(const rn_front_t* front, rn_http_in_t* request, rn_status_t status,
                          int64_t retry_ns) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_strbuf_append(&body, RN_STR("{\n    \"error\": "));
  rn_json_put_string(&body, rn_str(rn_status_message(status)));
  rn_strbuf_append(&body, RN_STR("\n}"));
  int code = rn_front_http_code(rn_status_code(status));
  rn_status_free(status);
  reply(front, request, code, NULL, &body, 0, retry_ns);
}

static void observe(const rn_front_t* front, rn_metric_id_t id, rn_str_t a, rn_str_t b, rn_str_t c,
                    double value) {
  rn_series_add(rn_metrics_series(front->metrics, id, a, b, c), value);
}

static void observe_stage(const rn_front_t* front, rn_str_t model, const char* stage, int64_t ns) {
  observe(front, RN_METRIC_STAGE_LATENCY, model, rn_str(stage), RN_STR(""), (double)ns / 1e3);
}

static void log_request(const rn_front_t* front, rn_str_t model, const char* api,
                        const char* entrypoint, rn_code_t code, const rn_predict_times_t* times) {
  int64_t all_ns = front->env->now_ns(front->env->self) - times->begun_ns;
  rn_log(front->env, RN_LOG_INFO,
         "%s %s of '%.*s': %s in %.3f ms (queue %.3f, batch %.3f, run %.3f; %d rows)", entrypoint,
         api, RN_STR_ARGS(model), rn_code_name(code), (double)all_ns / 1e6,
         (double)times->queue_ns / 1e6, (double)times->batch_ns / 1e6, (double)times->run_ns / 1e6,
         times->batch_size);
}

void rn_front_count(const rn_front_t* front, rn_str_t model, const char* api,
                    const char* entrypoint, rn_code_t code, const rn_predict_times_t* times) {
  rn_str_t none = RN_STR("");
  if (front->log_settings && front->log_settings->verbose)
    log_request(front, model, api, entrypoint, code, times);
  observe(front, RN_METRIC_REQUEST_COUNT, model, rn_str(rn_code_name(code)), none, 1);
  if (code != RN_CODE_OK) return;
  int64_t all_ns = front->env->now_ns(front->env->self) - times->begun_ns;
  observe(front, RN_METRIC_REQUEST_LATENCY, model, rn_str(api), rn_str(entrypoint),
          (double)all_ns / 1e3);
  observe(front, RN_METRIC_RUNTIME_LATENCY, model, rn_str(api), RN_STR("TF1"),
          (double)times->run_ns / 1e3);
  if (times->batch_size)
    observe(front, RN_METRIC_QUEUING_LATENCY, model, none, none, (double)times->queue_ns / 1e3);
  // What is left of the whole is reading the request and writing the reply.
  int64_t rest_ns = all_ns - times->queue_ns - times->batch_ns - times->run_ns;
  observe_stage(front, model, "queue", times->queue_ns);
  observe_stage(front, model, "batch", times->batch_ns);
  observe_stage(front, model, "run", times->run_ns);
  observe_stage(front, model, "serialize", rest_ns > 0 ? rest_ns : 0);
}

void rn_front_count_answer(const rn_front_t* front, rn_str_t model, int64_t rows, unsigned marks) {
  rn_str_t none = RN_STR("");
  if (rows > 0) {
    observe(front, RN_METRIC_EXAMPLE_COUNTS, model, none, none, (double)rows);
    observe(front, RN_METRIC_EXAMPLE_COUNT_TOTAL, model, none, none, (double)rows);
  }
  char name[32];
  for (unsigned bit = 1; bit <= RN_MARK_PARTIAL; bit <<= 1)
    if (marks & bit)
      observe(front, RN_METRIC_MARK_COUNT, model, rn_str(rn_front_marks(bit, name)), none, 1);
}
