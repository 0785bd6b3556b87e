// Writes summaries to an event file: see summary_writer.h.
#include "io/summary_writer.h"

#include <math.h>
#include <stdio.h>

#include "io/image.h"
#include "io/summary.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

enum { BUCKETS = 30 };

// Writes |tensor| for |plugin|.
static rn_status_t put_tensor(rn_event_writer_t* events, const char* tag, int64_t step,
                              const rn_tensor_t* tensor, const char* plugin,
                              rn_summary_class_t data_class) {
  if (!tag) return rn_invalid_argument("A summary needs a tag");
  rn_strbuf_t buf, metadata;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_strbuf_init(&metadata, rn_allocator_default());
  if (plugin) rn_summary_metadata(&metadata, rn_str(plugin), data_class);
  rn_str_t bytes = rn_strbuf_view(&metadata);
  rn_status_t status = rn_strbuf_status(&metadata);
  if (rn_ok(status))
    status = rn_summary_put_tensor(&buf, rn_str(tag), RN_STR(""), tensor, plugin ? &bytes : NULL);
  if (rn_ok(status)) status = rn_strbuf_status(&buf);
  if (rn_ok(status))
    status = rn_event_writer_put(events, step, RN_EVENT_SUMMARY, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  rn_strbuf_clear(&metadata);
  return status;
}

rn_status_t rn_summary_write_scalar(rn_event_writer_t* events, const char* tag, int64_t step,
                                    float value) {
  rn_tensor_t tensor = {.data = &value, .count = 1, .dtype = RN_FLOAT};
  return put_tensor(events, tag, step, &tensor, "scalars", RN_SUMMARY_SCALARS);
}

// Makes rows of {from, to, count}.
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
  if (*out_count == 1) {  // all values are equal: one bucket around them
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

rn_status_t rn_summary_write_histogram(rn_event_writer_t* events, const char* tag, int64_t step,
                                       const rn_tensor_t* values) {
  if (!rn_dtype_is_plain(values->dtype) || rn_dtype_is_complex(values->dtype))
    return rn_invalid_argument("A histogram needs real numbers, not %s",
                               rn_dtype_name(values->dtype));
  double rows[BUCKETS][3];
  rn_tensor_t tensor = {.data = rows, .dtype = RN_DOUBLE, .rank = 2, .inline_dims = {0, 3}};
  RN_RETURN_IF_ERROR(count_values(values, rows, &tensor.inline_dims[0]));
  tensor.count = tensor.inline_dims[0] * 3;
  return put_tensor(events, tag, step, &tensor, "histograms", RN_SUMMARY_TENSORS);
}

// A vector of strings.
static rn_status_t put_strings(rn_event_writer_t* events, const char* tag, int64_t step,
                               const rn_str_t* texts, int64_t count, bool is_scalar,
                               const char* plugin, rn_summary_class_t data_class) {
  rn_tensor_t tensor = {0};
  rn_shape_t shape = is_scalar ? RN_SHAPE_SCALAR : (rn_shape_t){1, &count};
  RN_RETURN_IF_ERROR(rn_tensor_create(rn_allocator_default(), RN_STRING, shape, &tensor));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < count; ++i)
    if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], texts[i].data, texts[i].size))
      status = rn_status_join(status, rn_out_of_memory());
  if (rn_ok(status)) status = put_tensor(events, tag, step, &tensor, plugin, data_class);
  rn_tensor_clear(&tensor);
  return status;
}

rn_status_t rn_summary_write_image(rn_event_writer_t* events, const char* tag, int64_t step,
                                   const uint8_t* pixels, int64_t height, int64_t width,
                                   int channels) {
  if (!pixels || height <= 0 || width <= 0 || channels < 1 || channels > 4 || channels == 2)
    return rn_invalid_argument("An image of %lld x %lld pixels of %d channels cannot be shown",
                               (long long)width, (long long)height, channels);
  rn_strbuf_t png;
  char size[2][24];
  rn_strbuf_init(&png, rn_allocator_default());
  rn_status_t status = rn_png_encode(pixels, height, width, channels, 8, -1, &png);
  snprintf(size[0], sizeof size[0], "%lld", (long long)width);
  snprintf(size[1], sizeof size[1], "%lld", (long long)height);
  rn_str_t texts[] = {rn_str(size[0]), rn_str(size[1]), rn_strbuf_view(&png)};
  if (rn_ok(status))
    status = put_strings(events, tag, step, texts, 3, false, "images", RN_SUMMARY_BLOBS);
  rn_strbuf_clear(&png);
  return status;
}

rn_status_t rn_summary_write_text(rn_event_writer_t* events, const char* tag, int64_t step,
                                  const char* text) {
  rn_str_t view = rn_str(text ? text : "");
  return put_strings(events, tag, step, &view, 1, true, "text", RN_SUMMARY_TENSORS);
}

rn_status_t rn_summary_write_tensor(rn_event_writer_t* events, const char* tag, int64_t step,
                                    const rn_tensor_t* tensor, const char* plugin) {
  return put_tensor(events, tag, step, tensor, plugin, RN_SUMMARY_TENSORS);
}

rn_status_t rn_summary_write_merged(rn_event_writer_t* events, int64_t step,
                                    const rn_tensor_t* summaries) {
  if (summaries->dtype != RN_STRING)
    return rn_invalid_argument("Summaries are strings, not %s", rn_dtype_name(summaries->dtype));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  for (int64_t i = 0; i < summaries->count; ++i)
    rn_strbuf_append(&buf, rn_tstring_view(&RN_DATA(summaries, const rn_tstring_t)[i]));
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status))
    status = rn_event_writer_put(events, step, RN_EVENT_SUMMARY, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  return status;
}

rn_status_t rn_summary_write_run_metadata(rn_event_writer_t* events, const char* tag, int64_t step,
                                          rn_str_t metadata) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_pb_put_str(&buf, RN_RUN_METADATA_TAG, rn_str(tag));
  rn_pb_put_str(&buf, RN_RUN_METADATA_BYTES, metadata);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status))
    status = rn_event_writer_put(events, step, RN_EVENT_RUN_METADATA, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  return status;
}
