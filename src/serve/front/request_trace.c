// See request_trace.h.
#include "serve/front/request_trace.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/sync.h"
#include "serve/front/json.h"

#define MAX_WAITING ((size_t)64 << 20)  // bytes of traces that are not in a file yet

// The settings of the server or of one model. It stays until the end.
typedef struct trace_scope_t {
  rn_str_t model;  // of the arena; "": the server
  unsigned own;    // values that it has itself
  rn_trace_values_t values;
  uint64_t seen;     // requests, while it traced
  rn_strbuf_t text;  // traces of the next file, with a |frequency|
  int64_t collected;
  struct trace_scope_t* next;
} trace_scope_t;

// Text on its way to a file.
typedef struct trace_piece_t {
  rn_strbuf_t text;
  int64_t index;  // of the file; -1: the one without a number
  struct trace_piece_t* next;
} trace_piece_t;

struct rn_request_trace_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_arena_t arena;  // under |mutex|
  rn_str_t file;
  rn_trace_values_t initial;
  _Atomic bool is_on;  // some scope traces
  rn_log_limit_t limit;
  pthread_t thread;
  bool has_thread;
  rn_file_t* open;   // of the thread: the file without a number
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  trace_scope_t server;
  trace_scope_t* models;
  uint64_t last_id;
  int64_t next_index;
  trace_piece_t *first, *last;
  size_t waiting;  // bytes in pieces and scopes
  bool is_stopping;
};

// Settings.

static rn_status_t read_level(rn_trace_change_t* change, const rn_str_t* texts, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (rn_str_is(texts[i], "TENSORS"))
      return rn_unimplemented(
          "trace level 'TENSORS' is not supported; logging_config of a model samples requests");
    bool is_off = rn_str_is(texts[i], "OFF");
    if (is_off && count > 1)
      return rn_invalid_argument("Expect only one trace level 'OFF' is specified");
    if (!is_off && !rn_str_is(texts[i], "TIMESTAMPS"))
      return rn_invalid_argument("unknown trace level '%.*s', expecting OFF or TIMESTAMPS",
                                 RN_STR_ARGS(texts[i]));
    change->values.has_times = !is_off;
  }
  return RN_OK;
}

static rn_status_t read_number(rn_str_t name, rn_str_t text, int64_t least, int64_t most,
                               int64_t* out) {
  if (!rn_str_to_i64(text, out))
    return rn_invalid_argument("Unable to parse '%.*s', got: %.*s", RN_STR_ARGS(name),
                               RN_STR_ARGS(text));
  if (*out >= least && *out <= most) return RN_OK;
  return rn_invalid_argument("Unable to parse '%.*s', value is out of range [ %" PRId64 ", %" PRId64
                             " ], got: %.*s",
                             RN_STR_ARGS(name), least, most, RN_STR_ARGS(text));
}

rn_status_t rn_trace_change_add(rn_trace_change_t* inout, rn_str_t name, const rn_str_t* texts,
                                size_t count) {
  struct {
    const char* name;
    unsigned bit;
    int64_t least, most, *to;
  } const rows[] = {
      {"trace_level", RN_TRACE_LEVEL, 0, 0, NULL},
      {"trace_rate", RN_TRACE_RATE, 0, UINT32_MAX, &inout->values.rate},
      {"trace_count", RN_TRACE_COUNT, -1, INT32_MAX, &inout->values.count},
      {"log_frequency", RN_TRACE_FREQUENCY, 0, UINT32_MAX, &inout->values.frequency},
  };
  if (rn_str_is(name, "trace_file"))
    return rn_unimplemented("trace file location can not be updated through network protocol");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (!rn_str_is(name, rows[i].name)) continue;
    *(count ? &inout->sets : &inout->clears) |= rows[i].bit;
    if (!count) return RN_OK;
    if (!rows[i].to) return read_level(inout, texts, count);
    if (count > 1) return rn_invalid_argument("expect only 1 value for '%s'", rows[i].name);
    return read_number(name, *texts, rows[i].least, rows[i].most, rows[i].to);
  }
  return rn_invalid_argument("unknown trace setting '%.*s'", RN_STR_ARGS(name));
}

static void copy_values(unsigned bits, const rn_trace_values_t* from, rn_trace_values_t* to) {
  if (bits & RN_TRACE_LEVEL) to->has_times = from->has_times;
  if (bits & RN_TRACE_RATE) to->rate = from->rate;
  if (bits & RN_TRACE_COUNT) to->count = from->count;
  if (bits & RN_TRACE_FREQUENCY) to->frequency = from->frequency;
}

static trace_scope_t* find_scope(rn_request_trace_t* trace, rn_str_t model) {
  for (trace_scope_t* scope = trace->models; scope; scope = scope->next)
    if (rn_str_eq(scope->model, model)) return scope;
  return NULL;
}

// What holds for |scope|: its own values, and the server's.
static rn_trace_values_t values_of(const rn_request_trace_t* trace, const trace_scope_t* scope) {
  rn_trace_values_t values = trace->server.values;
  if (scope) copy_values(scope->own, &scope->values, &values);
  return values;
}

void rn_request_trace_values(rn_request_trace_t* trace, rn_str_t model, rn_trace_values_t* out) {
  rn_mutex_lock(&trace->mutex);
  *out = values_of(trace, model.size ? find_scope(trace, model) : NULL);
  rn_mutex_unlock(&trace->mutex);
}

rn_str_t rn_request_trace_file(const rn_request_trace_t* trace) { return trace->file; }

static rn_status_t add_scope(rn_request_trace_t* trace, rn_str_t model, trace_scope_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&trace->arena, out));
  RN_RETURN_IF_ERROR(rn_arena_str(&trace->arena, model, &(*out)->model));
  rn_strbuf_init(&(*out)->text, trace->allocator);
  (*out)->next = trace->models;
  trace->models = *out;
  return RN_OK;
}

static rn_status_t change_locked(rn_request_trace_t* trace, rn_str_t model,
                                 const rn_trace_change_t* change) {
  if (change->sets & RN_TRACE_LEVEL && change->values.has_times && !trace->file.size)
    return rn_failed_precondition(
        "trace file name is not given: start the server with --trace_config=triton,file=FILE");
  trace_scope_t* scope = model.size ? find_scope(trace, model) : &trace->server;
  if (!scope && !change->sets) return RN_OK;
  if (!scope) RN_RETURN_IF_ERROR(add_scope(trace, model, &scope));
  scope->own = (scope->own & ~change->clears) | change->sets;
  if (!model.size) copy_values(change->clears, &trace->initial, &scope->values);
  copy_values(change->sets, &change->values, &scope->values);
  bool is_on = trace->server.values.has_times;
  for (scope = trace->models; scope; scope = scope->next)
    is_on |= values_of(trace, scope).has_times;
  trace->is_on = is_on;
  return RN_OK;
}

rn_status_t rn_request_trace_change(rn_request_trace_t* trace, rn_str_t model,
                                    const rn_trace_change_t* change) {
  rn_mutex_lock(&trace->mutex);
  rn_status_t status = change_locked(trace, model, change);
  rn_mutex_unlock(&trace->mutex);
  return status;
}

// Traces.

static void put_time(rn_strbuf_t* out, const char* name, int64_t ns, bool* inout_first) {
  rn_strbuf_printf(out, "%s{\"name\":\"%s\",\"ns\":%" PRId64 "}", *inout_first ? "" : ",", name,
                   ns);
  *inout_first = false;
}

static void put_times(rn_strbuf_t* out, const rn_traced_t* request, int64_t now) {
  const rn_predict_times_t* times = request->times;
  bool is_first = true;
  put_time(out, request->is_grpc ? "GRPC_WAITREAD_END" : "HTTP_RECV_END", times->begun_ns,
           &is_first);
  if (times->start_ns) put_time(out, "REQUEST_START", times->start_ns, &is_first);
  if (times->start_ns && times->batch_size) {
    int64_t begin = times->queued_ns + times->queue_ns;
    put_time(out, "QUEUE_START", times->queued_ns, &is_first);
    put_time(out, "COMPUTE_START", begin, &is_first);
    put_time(out, "COMPUTE_INPUT_END", begin + times->join_ns, &is_first);
    put_time(out, "COMPUTE_OUTPUT_START", begin + times->join_ns + times->run_ns, &is_first);
    put_time(out, "COMPUTE_END", begin + times->batch_ns + times->run_ns, &is_first);
  }
  if (times->end_ns) {
    put_time(out, "INFER_RESPONSE_COMPLETE", times->end_ns, &is_first);
    put_time(out, "REQUEST_END", times->end_ns, &is_first);
  }
  put_time(out, request->is_grpc ? "GRPC_SEND_START" : "HTTP_SEND_START", now, &is_first);
}

static void put_trace(rn_strbuf_t* out, uint64_t id, const rn_traced_t* request, int64_t now) {
  rn_strbuf_printf(out, "{\"id\":%" PRIu64 ",\"model_name\":", id);
  rn_json_put_string(out, request->model);
  rn_strbuf_printf(out, ",\"model_version\":%" PRId64, request->version);
  if (request->id.size) {
    rn_strbuf_append(out, RN_STR(",\"request_id\":"));
    rn_json_put_string(out, request->id);
  }
  rn_strbuf_printf(out, "},\n{\"id\":%" PRIu64 ",\"timestamps\":[", id);
  put_times(out, request, now);
  rn_strbuf_append(out, RN_STR("]}"));
}

static void say_lost(rn_request_trace_t* trace, const char* why) {
  int64_t left_out;
  if (rn_log_limit_says(&trace->limit, trace->env, &left_out))
    rn_log(trace->env, RN_LOG_WARNING, "traces are lost: %s", why);
}

// Hands |text|, which it takes, to the thread.
static void push_locked(rn_request_trace_t* trace, rn_strbuf_t* text, int64_t index) {
  trace_piece_t* piece = NULL;
  rn_status_t status = rn_strbuf_status(text);
  if (rn_ok(status)) status = RN_NEW(trace->allocator, &piece);
  if (!rn_ok(status)) {
    say_lost(trace, rn_status_message(status));
    rn_status_free(status);
    trace->waiting -= text->size;
    rn_strbuf_clear(text);
    return;
  }
  *piece = (trace_piece_t){.text = *text, .index = index};
  rn_strbuf_init(text, trace->allocator);
  if (trace->last)
    trace->last->next = piece;
  else
    trace->first = piece;
  trace->last = piece;
  rn_cond_signal(&trace->changed);
}

// Whether the next request of |scope| (NULL: of no model's own settings) is traced; counts it.
static bool take_locked(rn_request_trace_t* trace, trace_scope_t* scope,
                        const rn_trace_values_t* values) {
  if (!values->has_times || !values->rate || !values->count) return false;
  if (++(scope ? scope : &trace->server)->seen % (uint64_t)values->rate) return false;
  bool is_own = scope && scope->own & RN_TRACE_COUNT;
  if (values->count > 0) --(is_own ? scope : &trace->server)->values.count;
  return true;
}

static void add_locked(rn_request_trace_t* trace, const rn_traced_t* request) {
  trace_scope_t* scope = find_scope(trace, request->model);
  rn_trace_values_t values = values_of(trace, scope);
  if (trace->is_stopping || !take_locked(trace, scope, &values)) return;
  if (trace->waiting > MAX_WAITING) {
    say_lost(trace, "the disk is too slow, or log_frequency too large");
    return;
  }
  rn_strbuf_t single;
  rn_strbuf_init(&single, trace->allocator);
  trace_scope_t* collector = scope ? scope : &trace->server;
  rn_strbuf_t* out = values.frequency ? &collector->text : &single;
  size_t before = out->size;
  if (out->size) rn_strbuf_append(out, RN_STR(",\n"));
  put_trace(out, ++trace->last_id, request, trace->env->now_ns(trace->env->self));
  trace->waiting += out->size - before;
  if (!values.frequency) {
    push_locked(trace, out, -1);
  } else if (++collector->collected >= values.frequency) {
    push_locked(trace, out, trace->next_index++);
    collector->collected = 0;
  }
}

void rn_request_trace_add(rn_request_trace_t* trace, const rn_traced_t* request) {
  if (!trace || !trace->is_on) return;
  rn_mutex_lock(&trace->mutex);
  add_locked(trace, request);
  rn_mutex_unlock(&trace->mutex);
}

void rn_request_trace_version(rn_request_trace_t* trace, const rn_version_t* version, bool is_grpc,
                              const rn_predict_times_t* times) {
  if (!trace || !version || !trace->is_on) return;
  const rn_traced_t request = {.model = rn_version_model(version),
                               .version = rn_version_number(version),
                               .is_grpc = is_grpc,
                               .times = times};
  rn_request_trace_add(trace, &request);
}

// Files, on the thread.

static rn_status_t append(rn_request_trace_t* trace, rn_str_t text) {
  bool is_first = !trace->open;
  if (is_first)
    RN_RETURN_IF_ERROR(rn_fs_open(trace->env, trace->file.data, RN_OPEN_WRITE, &trace->open));
  RN_RETURN_IF_ERROR(trace->open->vtable->append(trace->open, rn_str(is_first ? "[\n" : ",\n")));
  return trace->open->vtable->append(trace->open, text);
}

static rn_status_t write_whole(rn_request_trace_t* trace, int64_t index, rn_str_t text) {
  rn_strbuf_t path, whole;
  rn_strbuf_init(&path, trace->allocator);
  rn_strbuf_init(&whole, trace->allocator);
  rn_strbuf_printf(&path, "%s.%" PRId64, trace->file.data, index);
  rn_strbuf_append(&whole, RN_STR("[\n"));
  rn_strbuf_append(&whole, text);
  rn_strbuf_append(&whole, RN_STR("\n]\n"));
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = rn_strbuf_status(&whole);
  if (rn_ok(status)) status = rn_fs_write(trace->env, path.data, rn_strbuf_view(&whole));
  rn_strbuf_clear(&path);
  rn_strbuf_clear(&whole);
  return status;
}

static void write_piece(rn_request_trace_t* trace, trace_piece_t* piece) {
  rn_str_t text = rn_strbuf_view(&piece->text);
  rn_status_t status =
      piece->index < 0 ? append(trace, text) : write_whole(trace, piece->index, text);
  if (!rn_ok(status)) say_lost(trace, rn_status_message(status));
  rn_status_free(status);
}

static void* write_pieces(void* arg) {
  rn_request_trace_t* trace = arg;
  rn_mutex_lock(&trace->mutex);
  while (trace->first || !trace->is_stopping) {
    trace_piece_t* piece = trace->first;
    if (!piece) {
      rn_cond_wait(&trace->changed, &trace->mutex);
      continue;
    }
    trace->first = piece->next;
    if (!trace->first) trace->last = NULL;
    trace->waiting -= piece->text.size;
    rn_mutex_unlock(&trace->mutex);
    write_piece(trace, piece);
    rn_strbuf_clear(&piece->text);
    RN_FREE(trace->allocator, piece);
    rn_mutex_lock(&trace->mutex);
  }
  rn_mutex_unlock(&trace->mutex);
  return NULL;
}

// Life.

static rn_status_t set_up(rn_request_trace_t* trace, const rn_trace_options_t* options) {
  RN_RETURN_IF_ERROR(rn_arena_str(&trace->arena, rn_str(options->file), &trace->file));
  RN_RETURN_IF_ERROR(rn_request_trace_change(trace, RN_STR(""), &options->initial));
  trace->initial = trace->server.values;
  if (!trace->file.size) return RN_OK;
  trace->has_thread = pthread_create(&trace->thread, NULL, write_pieces, trace) == 0;
  return trace->has_thread ? RN_OK : rn_resource_exhausted("No thread for traces");
}

rn_status_t rn_request_trace_create(const rn_trace_options_t* options, rn_request_trace_t** out) {
  *out = NULL;
  rn_request_trace_t* trace = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &trace));
  trace->env = options->env;
  trace->allocator = options->allocator;
  trace->server.values = (rn_trace_values_t){.rate = 1000, .count = -1};
  rn_strbuf_init(&trace->server.text, options->allocator);
  rn_arena_init(&trace->arena, options->allocator);
  rn_mutex_init(&trace->mutex);
  rn_cond_init(&trace->changed);
  rn_status_t status = set_up(trace, options);
  if (!rn_ok(status)) {
    rn_request_trace_destroy(trace);
    return status;
  }
  *out = trace;
  return RN_OK;
}

// Files that have fewer traces than |frequency| are written at the end.
static void end_scope_locked(rn_request_trace_t* trace, trace_scope_t* scope) {
  if (scope->text.size) push_locked(trace, &scope->text, trace->next_index++);
  rn_strbuf_clear(&scope->text);
}

static void close_file(rn_request_trace_t* trace) {
  if (!trace->open) return;
  rn_status_t status = trace->open->vtable->append(trace->open, RN_STR("\n]\n"));
  status = rn_status_join(status, trace->open->vtable->close(trace->open));
  if (!rn_ok(status)) say_lost(trace, rn_status_message(status));
  rn_status_free(status);
}

void rn_request_trace_destroy(rn_request_trace_t* trace) {
  if (!trace) return;
  rn_mutex_lock(&trace->mutex);
  end_scope_locked(trace, &trace->server);
  for (trace_scope_t* scope = trace->models; scope; scope = scope->next)
    end_scope_locked(trace, scope);
  trace->is_stopping = true;
  rn_cond_signal(&trace->changed);
  rn_mutex_unlock(&trace->mutex);
  if (trace->has_thread) pthread_join(trace->thread, NULL);
  close_file(trace);
  rn_cond_destroy(&trace->changed);
  rn_mutex_destroy(&trace->mutex);
  rn_arena_clear(&trace->arena);
  RN_FREE(trace->allocator, trace);
}
