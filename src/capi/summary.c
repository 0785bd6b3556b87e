// Training logs from C: runnel/summary.h over io/event_file.h.
#include "runnel/summary.h"

#include <math.h>
#include <stdio.h>

#include "capi/internal.h"
#include "graph/import.h"
#include "io/event_file.h"
#include "io/image.h"
#include "io/summary.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

enum { BUCKETS = 30 };

struct rn_summary_writer_t {
  rn_event_writer_t* events;
};

rn_summary_writer_t* rn_summary_writer_create(const char* folder,
                                              const rn_summary_options_t* options,
                                              TF_Status* status) {
  static const rn_summary_options_t usual = {0};
  const rn_summary_options_t* o = options ? options : &usual;
  if (!folder) {
    rn_capi_set(status, RN_CAPI_NULL("folder"));
    return NULL;
  }
  rn_summary_writer_t* writer = NULL;
  rn_event_options_t events = {.suffix = rn_str(o->suffix ? o->suffix : ".v2"),
                               .max_queue = o->max_queue,
                               .flush_ms = o->flush_millis,
                               .max_bytes = o->max_file_bytes};
  rn_status_t outcome = RN_NEW(rn_capi_allocator(), &writer);
  if (rn_ok(outcome))
    outcome = rn_event_writer_open(rn_capi_env(), rn_str(folder), &events, &writer->events);
  if (rn_capi_ok(status, outcome)) return writer;
  if (writer) RN_FREE(rn_capi_allocator(), writer);
  return NULL;
}

void rn_summary_writer_flush(rn_summary_writer_t* writer, TF_Status* status) {
  rn_capi_set(status, writer ? rn_event_writer_flush(writer->events) : RN_OK);
}

void rn_summary_writer_close(rn_summary_writer_t* writer, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer) {
    outcome = rn_event_writer_close(writer->events);
    RN_FREE(rn_capi_allocator(), writer);
  }
  rn_capi_set(status, outcome);
}

// Writes |tensor| for |plugin|.
static rn_status_t put_tensor(rn_summary_writer_t* writer, const char* tag, int64_t step,
                              const rn_tensor_t* tensor, const char* plugin,
                              rn_summary_class_t data_class) {
  if (!tag) return rn_invalid_argument("A summary needs a tag");
  rn_strbuf_t buf, metadata;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_strbuf_init(&metadata, rn_capi_allocator());
  if (plugin) rn_summary_metadata(&metadata, rn_str(plugin), data_class);
  rn_str_t bytes = rn_strbuf_view(&metadata);
  rn_status_t status = rn_strbuf_status(&metadata);
  if (rn_ok(status))
    status = rn_summary_put_tensor(&buf, rn_str(tag), RN_STR(""), tensor, plugin ? &bytes : NULL);
  if (rn_ok(status)) status = rn_strbuf_status(&buf);
  if (rn_ok(status))
    status = rn_event_writer_put(writer->events, step, RN_EVENT_SUMMARY, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  rn_strbuf_clear(&metadata);
  return status;
}

void rn_summary_scalar(rn_summary_writer_t* writer, const char* tag, int64_t step, float value,
                       TF_Status* status) {
  rn_tensor_t tensor = {.data = &value, .count = 1, .dtype = RN_FLOAT};
  rn_capi_set(status, writer ? put_tensor(writer, tag, step, &tensor, "scalars", RN_SUMMARY_SCALARS)
                             : RN_OK);
}

// Rows of {from, to, how many}.
static rn_status_t count_values(const rn_tensor_t* values, double rows[BUCKETS][3],
                                int64_t* out_count) {
  double min = INFINITY, max = -INFINITY;
  for (int64_t i = 0; i < values->count; ++i) {
    double x = rn_summary_number(values, i);
    if (!isfinite(x)) return rn_invalid_argument("Element %lld is not finite", (long long)i);
    if (x < min) min = x;
    if (x > max) max = x;
  }
  *out_count = values->count == 0 ? 0 : min == max ? 1 : BUCKETS;
  double width = (max - min) / BUCKETS;
  if (*out_count == 1) {  // all the same: one bucket around it
    rows[0][0] = min - 0.5;
    rows[0][1] = min + 0.5;
    rows[0][2] = (double)values->count;
    return RN_OK;
  }
  for (int64_t b = 0; b < *out_count; ++b) {
    rows[b][0] = min + (double)b * width;
    rows[b][1] = b + 1 < BUCKETS ? min + (double)(b + 1) * width : max;
    rows[b][2] = 0;
  }
  for (int64_t i = 0; i < values->count; ++i) {
    double at = (rn_summary_number(values, i) - min) / width;
    rows[at < BUCKETS ? (int)at : BUCKETS - 1][2] += 1;
  }
  return RN_OK;
}

static rn_status_t put_histogram(rn_summary_writer_t* writer, const char* tag, int64_t step,
                                 const rn_tensor_t* values) {
  if (!rn_dtype_is_plain(values->dtype) || rn_dtype_is_complex(values->dtype))
    return rn_invalid_argument("A histogram is of real numbers, not of %s",
                               rn_dtype_name(values->dtype));
  double rows[BUCKETS][3];
  rn_tensor_t tensor = {.data = rows, .dtype = RN_DOUBLE, .rank = 2, .inline_dims = {0, 3}};
  RN_RETURN_IF_ERROR(count_values(values, rows, &tensor.inline_dims[0]));
  tensor.count = tensor.inline_dims[0] * 3;
  return put_tensor(writer, tag, step, &tensor, "histograms", RN_SUMMARY_TENSORS);
}

void rn_summary_histogram(rn_summary_writer_t* writer, const char* tag, int64_t step,
                          const TF_Tensor* values, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = values ? put_histogram(writer, tag, step, &values->tensor) : RN_CAPI_NULL("values");
  rn_capi_set(status, outcome);
}

// A vector of strings.
static rn_status_t put_strings(rn_summary_writer_t* writer, const char* tag, int64_t step,
                               const rn_str_t* texts, int64_t count, bool is_scalar,
                               const char* plugin, rn_summary_class_t data_class) {
  rn_tensor_t tensor = {0};
  rn_shape_t shape = is_scalar ? RN_SHAPE_SCALAR : (rn_shape_t){1, &count};
  RN_RETURN_IF_ERROR(rn_tensor_create(rn_capi_allocator(), RN_STRING, shape, &tensor));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < count; ++i)
    if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], texts[i].data, texts[i].size))
      status = rn_status_join(status, rn_out_of_memory());
  if (rn_ok(status)) status = put_tensor(writer, tag, step, &tensor, plugin, data_class);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t put_image(rn_summary_writer_t* writer, const char* tag, int64_t step,
                             const uint8_t* pixels, int64_t height, int64_t width, int channels) {
  if (!pixels || height <= 0 || width <= 0 || channels < 1 || channels > 4 || channels == 2)
    return rn_invalid_argument("An image of %lld x %lld pixels of %d channels cannot be shown",
                               (long long)width, (long long)height, channels);
  rn_strbuf_t png;
  char size[2][24];
  rn_strbuf_init(&png, rn_capi_allocator());
  rn_status_t status = rn_png_encode(pixels, height, width, channels, 8, -1, &png);
  snprintf(size[0], sizeof size[0], "%lld", (long long)width);
  snprintf(size[1], sizeof size[1], "%lld", (long long)height);
  rn_str_t texts[] = {rn_str(size[0]), rn_str(size[1]), rn_strbuf_view(&png)};
  if (rn_ok(status))
    status = put_strings(writer, tag, step, texts, 3, false, "images", RN_SUMMARY_BLOBS);
  rn_strbuf_clear(&png);
  return status;
}

void rn_summary_image(rn_summary_writer_t* writer, const char* tag, int64_t step,
                      const uint8_t* pixels, int64_t height, int64_t width, int channels,
                      TF_Status* status) {
  rn_capi_set(status,
              writer ? put_image(writer, tag, step, pixels, height, width, channels) : RN_OK);
}

void rn_summary_text(rn_summary_writer_t* writer, const char* tag, int64_t step, const char* text,
                     TF_Status* status) {
  rn_str_t view = rn_str(text ? text : "");
  rn_capi_set(
      status,
      writer ? put_strings(writer, tag, step, &view, 1, true, "text", RN_SUMMARY_TENSORS) : RN_OK);
}

void rn_summary_tensor(rn_summary_writer_t* writer, const char* tag, int64_t step,
                       const TF_Tensor* tensor, const char* plugin, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = tensor ? put_tensor(writer, tag, step, &tensor->tensor, plugin, RN_SUMMARY_TENSORS)
                     : RN_CAPI_NULL("tensor");
  rn_capi_set(status, outcome);
}

static rn_status_t put_merged(rn_summary_writer_t* writer, int64_t step,
                              const rn_tensor_t* summaries) {
  if (summaries->dtype != RN_STRING)
    return rn_invalid_argument("Summaries are strings, not %s", rn_dtype_name(summaries->dtype));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  for (int64_t i = 0; i < summaries->count; ++i)
    rn_strbuf_append(&buf, rn_tstring_view(&RN_DATA(summaries, const rn_tstring_t)[i]));
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status))
    status = rn_event_writer_put(writer->events, step, RN_EVENT_SUMMARY, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  return status;
}

void rn_summary_merged(rn_summary_writer_t* writer, int64_t step, const TF_Tensor* summaries,
                       TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (writer)
    outcome = summaries ? put_merged(writer, step, &summaries->tensor) : RN_CAPI_NULL("summaries");
  rn_capi_set(status, outcome);
}

void rn_summary_graph(rn_summary_writer_t* writer, TF_Graph* graph, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = RN_OK;
  if (writer) outcome = graph ? rn_graph_export(rn_capi_graph(graph), &buf) : RN_CAPI_NULL("graph");
  if (writer && rn_ok(outcome))
    outcome = rn_event_writer_put(writer->events, 0, RN_EVENT_GRAPH, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

void rn_summary_run_metadata(rn_summary_writer_t* writer, const char* tag, int64_t step,
                             const TF_Buffer* metadata, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = RN_OK;
  if (writer && (!tag || !metadata)) outcome = RN_CAPI_NULL(tag ? "metadata" : "tag");
  if (writer && rn_ok(outcome)) {
    rn_pb_put_str(&buf, RN_RUN_METADATA_TAG, rn_str(tag));
    rn_pb_put_str(&buf, RN_RUN_METADATA_BYTES, rn_str_n(metadata->data, metadata->length));
    outcome = rn_strbuf_status(&buf);
  }
  if (writer && rn_ok(outcome))
    outcome =
        rn_event_writer_put(writer->events, step, RN_EVENT_RUN_METADATA, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}
