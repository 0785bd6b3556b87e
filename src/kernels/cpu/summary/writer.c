// Summary writer resources, and the ops that write summaries to them.
//
// A handle names a writer that CreateSummaryFileWriter, or CreateSummaryDbWriter, opens, once, and
// CloseSummaryWriter closes.
#include <inttypes.h>

#include "base/sync.h"
#include "io/event_file.h"
#include "io/summary.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/cpu/summary/checks.h"
#include "kernels/cpu/summary/db_writer.h"
#include "kernels/cpu/summary/writer.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"
#include "wire/scan.h"

typedef struct summary_writer_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards the rest; held while writing an event
  // Owned; at most one is open.
  rn_event_writer_t* events;
  rn_summary_db_t* db;
} summary_writer_t;

static void writer_destroy(rn_object_t* object) {
  summary_writer_t* w = (summary_writer_t*)object;
  // Errors cannot be reported here, and the session may be gone, because handles outlive it.
  rn_event_writer_drop(w->events);
  rn_summary_db_close(w->db);
  rn_mutex_destroy(&w->mutex);
  RN_FREE(w->allocator, w);
}

static rn_status_t writer_create(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  const rn_kernel_init_t* init = arg;
  summary_writer_t* w = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &w));
  w->resource = (rn_resource_t){{.refs = 1, .destroy = writer_destroy}, RN_SUMMARY_WRITER_TYPE};
  w->allocator = init->allocator;
  rn_mutex_init(&w->mutex);
  *out = &w->resource;
  return RN_OK;
}

static rn_status_t handle_init(const rn_kernel_init_t* init, void* state) {
  return rn_handle_state_init(state, init, RN_SUMMARY_WRITER_TYPE, writer_create,
                              (void*)(uintptr_t)init);
}

static rn_str_t text_of(const rn_tensor_t* tensor) {
  return rn_tstring_view(RN_DATA(tensor, const rn_tstring_t));
}

static rn_status_t check_one(const rn_kernel_ctx_t* ctx, int i, const char* name) {
  if (rn_in(ctx, i)->count == 1) return RN_OK;
  return rn_invalid_argument("%s must be scalar, got shape %s", name,
                             rn_text_of(rn_in(ctx, i)).text);
}

static rn_status_t open_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  if (w->events || w->db) return RN_OK;  // the first call opens it
  rn_event_options_t options = {.suffix = text_of(rn_in(ctx, 4)),
                                .max_queue = *RN_DATA(rn_in(ctx, 2), const int32_t),
                                .flush_ms = *RN_DATA(rn_in(ctx, 3), const int32_t)};
  if (options.suffix.size && (memchr(options.suffix.data, '\0', options.suffix.size) ||
                              memchr(options.suffix.data, '/', options.suffix.size)))
    return rn_invalid_argument("filename_suffix must not contain a NUL or a slash");
  rn_event_writer_t* events = NULL;
  RN_RETURN_IF_ERROR(
      rn_event_writer_open(ctx->step->env, text_of(rn_in(ctx, 1)), &options, &events));
  rn_status_t status = rn_event_writer_begin(events);
  if (!rn_ok(status)) {
    rn_event_writer_drop(events);
    return status;
  }
  w->events = events;
  return RN_OK;
}

static rn_status_t open_db_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  if (w->events || w->db) return RN_OK;  // the first call opens it
  return rn_summary_db_open(ctx->step->env, text_of(rn_in(ctx, 1)), text_of(rn_in(ctx, 2)),
                            text_of(rn_in(ctx, 3)), text_of(rn_in(ctx, 4)), &w->db);
}

// Runs |body| with the writer of input 0, locked.
static rn_status_t with_writer(rn_kernel_ctx_t* ctx,
                               rn_status_t (*body)(rn_kernel_ctx_t* ctx, summary_writer_t* w)) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_SUMMARY_WRITER_TYPE, &resource));
  summary_writer_t* w = (summary_writer_t*)resource;
  rn_mutex_lock(&w->mutex);
  rn_status_t status = body(ctx, w);
  rn_mutex_unlock(&w->mutex);
  rn_object_release(&resource->object);
  return status;
}

static rn_status_t create_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"writer", "logdir", "max_queue", "flush_millis",
                                      "filename_suffix"};
  for (int i = 1; i < 5; ++i) RN_RETURN_IF_ERROR(check_one(ctx, i, names[i]));
  return with_writer(ctx, open_locked);
}

static rn_status_t create_db_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"writer", "db_uri", "experiment_name", "run_name",
                                      "user_name"};
  for (int i = 1; i < 5; ++i) RN_RETURN_IF_ERROR(check_one(ctx, i, names[i]));
  return with_writer(ctx, open_db_locked);
}

static rn_status_t need_open(const summary_writer_t* w) {
  if (w->events || w->db) return RN_OK;
  return rn_not_found("The summary writer is not open: run CreateSummaryFileWriter first");
}

// Writes what |field| of an event, a summary or a graph, consists of.
static rn_status_t put_bytes(summary_writer_t* w, int64_t step, uint32_t field, rn_str_t bytes) {
  if (!w->db) return rn_event_writer_put(w->events, step, field, bytes);
  return field == RN_EVENT_GRAPH ? rn_summary_db_put_graph(w->db, 0, bytes)
                                 : rn_summary_db_put_summary(w->db, step, 0, bytes);
}

rn_status_t rn_summary_writer_put(rn_resource_t* writer, int64_t step, rn_str_t summary) {
  summary_writer_t* w = (summary_writer_t*)writer;
  rn_mutex_lock(&w->mutex);
  rn_status_t status = need_open(w);
  if (rn_ok(status)) status = put_bytes(w, step, RN_EVENT_SUMMARY, summary);
  rn_mutex_unlock(&w->mutex);
  return status;
}

static rn_status_t flush_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  (void)ctx;
  RN_RETURN_IF_ERROR(need_open(w));
  return w->db ? RN_OK : rn_event_writer_flush(w->events);
}

static rn_status_t close_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  (void)ctx;
  RN_RETURN_IF_ERROR(need_open(w));
  rn_event_writer_t* events = w->events;
  rn_summary_db_close(w->db);
  w->events = NULL;
  w->db = NULL;
  return rn_event_writer_close(events);
}

static rn_status_t flush_compute(rn_kernel_ctx_t* ctx) { return with_writer(ctx, flush_locked); }
static rn_status_t close_compute(rn_kernel_ctx_t* ctx) { return with_writer(ctx, close_locked); }

// Input 1 of every op is the step.
static rn_status_t put(rn_kernel_ctx_t* ctx, summary_writer_t* w, rn_status_t status,
                       rn_strbuf_t* buf, uint32_t field) {
  if (rn_ok(status)) status = rn_strbuf_status(buf);
  if (rn_ok(status)) {
    int64_t step = *RN_DATA(rn_in(ctx, 1), const int64_t);
    status = put_bytes(w, step, field, rn_strbuf_view(buf));
  }
  rn_strbuf_clear(buf);
  return status;
}

static rn_status_t scalar_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 2, "tag"));
  RN_RETURN_IF_ERROR(check_one(ctx, 3, "value"));
  if (w->db)
    return rn_summary_db_put_scalar(w->db, *RN_DATA(rn_in(ctx, 1), const int64_t),
                                    text_of(rn_in(ctx, 2)), rn_in(ctx, 3));
  rn_summary_put_element(&buf, text_of(rn_in(ctx, 2)), rn_in(ctx, 3), 0);
  return put(ctx, w, RN_OK, &buf, RN_EVENT_SUMMARY);
}

static rn_status_t histogram_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 2, "tag"));
  rn_str_t tag = text_of(rn_in(ctx, 2));
  rn_status_t status = rn_summary_put_histogram(&buf, tag, rn_in(ctx, 3), ctx->kernel->node);
  return put(ctx, w, status, &buf, RN_EVENT_SUMMARY);
}

static rn_status_t tensor_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 3, "tag"));
  RN_RETURN_IF_ERROR(check_one(ctx, 4, "summary_metadata"));
  rn_str_t metadata = text_of(rn_in(ctx, 4));
  if (w->db)
    return rn_summary_db_put_tensor(w->db, *RN_DATA(rn_in(ctx, 1), const int64_t),
                                    text_of(rn_in(ctx, 3)), metadata, rn_in(ctx, 2));
  rn_status_t status = rn_summary_put_tensor(&buf, text_of(rn_in(ctx, 3)), RN_STR(""),
                                             rn_in(ctx, 2), metadata.size ? &metadata : NULL);
  return put(ctx, w, status, &buf, RN_EVENT_SUMMARY);
}

// Concatenated summaries are one summary.
static rn_status_t raw_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  const rn_tensor_t* summaries = rn_in(ctx, 2);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  for (int64_t i = 0; i < summaries->count; ++i)
    rn_strbuf_append(&buf, rn_tstring_view(&RN_DATA(summaries, const rn_tstring_t)[i]));
  return put(ctx, w, RN_OK, &buf, RN_EVENT_SUMMARY);
}

static rn_status_t graph_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 2, "tensor"));
  rn_pb_scan_t scan = rn_pb_scan(text_of(rn_in(ctx, 2)));
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) continue;
  if (scan.is_bad) return rn_data_loss("Bad tf.GraphDef binary proto tensor string");
  rn_strbuf_append(&buf, text_of(rn_in(ctx, 2)));
  return put(ctx, w, RN_OK, &buf, RN_EVENT_GRAPH);
}

static rn_status_t import_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_event_t event;
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 1, "event"));
  rn_status_t status = rn_event_parse(text_of(rn_in(ctx, 1)), &event);
  if (rn_ok(status) && w->db) {
    if (event.kind == RN_EVENT_GRAPH)
      return rn_summary_db_put_graph(w->db, event.wall_time, event.bytes);
    return event.kind == RN_EVENT_SUMMARY
               ? rn_summary_db_put_summary(w->db, event.step, event.wall_time, event.bytes)
               : RN_OK;
  }
  if (rn_ok(status)) return rn_event_writer_add(w->events, text_of(rn_in(ctx, 1)));
  rn_status_free(status);
  return rn_data_loss("Bad tf.Event binary proto tensor string");
}

// Audio and images: the maximum number is an attribute.
typedef struct writer_media_t {
  int64_t most;
} writer_media_t;

static rn_status_t audio_init(const rn_kernel_init_t* init, void* state) {
  ((writer_media_t*)state)->most = rn_init_int(init, "max_outputs");
  return RN_OK;
}

static rn_status_t image_init(const rn_kernel_init_t* init, void* state) {
  ((writer_media_t*)state)->most = rn_init_int(init, "max_images");
  return RN_OK;
}

static rn_status_t audio_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  float rate = 0;
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 2, "tag"));
  RN_RETURN_IF_ERROR(rn_summary_check_sounds(rn_in(ctx, 3)));
  RN_RETURN_IF_ERROR(rn_summary_rate(rn_in(ctx, 4), &rate));
  if (!(rate > 0)) return rn_invalid_argument("sample_rate must be > 0");
  rn_status_t status = rn_summary_put_sounds(&buf, text_of(rn_in(ctx, 2)), rn_in(ctx, 3), rate,
                                             ((const writer_media_t*)ctx->state)->most);
  return put(ctx, w, status, &buf, RN_EVENT_SUMMARY);
}

static rn_status_t image_locked(rn_kernel_ctx_t* ctx, summary_writer_t* w) {
  const rn_tensor_t *images = rn_in(ctx, 3), *bad = rn_in(ctx, 4);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  RN_RETURN_IF_ERROR(need_open(w));
  RN_RETURN_IF_ERROR(check_one(ctx, 2, "tag"));
  if (bad->rank != 1)
    return rn_invalid_argument("bad_color must be a vector, got shape %s", rn_text_of(bad).text);
  RN_RETURN_IF_ERROR(rn_summary_check_images(images, bad));
  rn_status_t status = rn_summary_put_images(&buf, text_of(rn_in(ctx, 2)), images, bad,
                                             ((const writer_media_t*)ctx->state)->most);
  return put(ctx, w, status, &buf, RN_EVENT_SUMMARY);
}

#define WRITE(name)                                         \
  static rn_status_t name##_compute(rn_kernel_ctx_t* ctx) { \
    RN_RETURN_IF_ERROR(check_one(ctx, 1, "step"));          \
    return with_writer(ctx, name##_locked);                 \
  }
WRITE(scalar)
WRITE(histogram)
WRITE(tensor)
WRITE(raw)
WRITE(graph)
WRITE(import)
WRITE(audio)
WRITE(image)

#define ROW(name, function) \
  { .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = function }
#define MEDIA(name, init_, function)                                         \
  {                                                                          \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE,               \
    .state_size = sizeof(writer_media_t), .init = init_, .compute = function \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "SummaryWriter",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_handle_state_t),
     .init = handle_init,
     .destroy = rn_handle_state_destroy,
     .compute = rn_handle_state_compute},
    ROW("CreateSummaryFileWriter", create_compute),
    ROW("CreateSummaryDbWriter", create_db_compute),
    ROW("FlushSummaryWriter", flush_compute),
    ROW("CloseSummaryWriter", close_compute),
    {.op = "WriteScalarSummary",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .flags = RN_KERNEL_EXPENSIVE,
     .compute = scalar_compute},
    {.op = "WriteHistogramSummary",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL | RN_T(BOOL)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .compute = histogram_compute},
    ROW("WriteSummary", tensor_compute),
    ROW("WriteRawProtoSummary", raw_compute),
    ROW("WriteGraphSummary", graph_compute),
    ROW("ImportEvent", import_compute),
    MEDIA("WriteAudioSummary", audio_init, audio_compute),
    MEDIA("WriteImageSummary", image_init, image_compute),
};
RN_KERNEL_FAMILY(cpu_summary_writer, rows);
