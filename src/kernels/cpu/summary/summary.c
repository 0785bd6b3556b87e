// Summary ops: scalars, histograms, tensors, audio and images as serialized Summary messages.
// io/summary.h encodes the values.
#include <inttypes.h>
#include <stdlib.h>

#include "base/vec.h"
#include "io/summary.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/cpu/summary/checks.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"
#include "wire/scan.h"

// Sets output 0 to the scalar |buf| and clears it; returns |status| first if it is an error.
static rn_status_t finish(rn_kernel_ctx_t* ctx, rn_status_t status, rn_strbuf_t* buf) {
  rn_tensor_t* out = NULL;
  if (rn_ok(status)) status = rn_strbuf_status(buf);
  if (rn_ok(status)) status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  rn_str_t bytes = rn_strbuf_view(buf);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), bytes.data, bytes.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(buf);
  return status;
}

static rn_status_t scalar_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tags = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(tags, values)) {
    rn_str_t tag = tags->count == 1 ? rn_text_at(tags, 0) : RN_STR("");
    bool is_one = tags->count == 1;
    return rn_invalid_argument("tags and values are not the same shape: %s != %s%s%.*s%s",
                               rn_text_of(tags).text, rn_text_of(values).text,
                               is_one ? " (tag '" : "", RN_STR_ARGS(tag), is_one ? "')" : "");
  }
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  for (int64_t i = 0; i < tags->count; ++i)
    rn_summary_put_element(&buf, rn_text_at(tags, i), values, i);
  return finish(ctx, RN_OK, &buf);
}

static rn_status_t histogram_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* tag = rn_in(ctx, 0);
  if (tag->rank != 0) return rn_invalid_argument("tags must be scalar");
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status =
      rn_summary_put_histogram(&buf, rn_text_at(tag, 0), rn_in(ctx, 1), ctx->kernel->node);
  return finish(ctx, status, &buf);
}

// Merging: concatenated messages are one message, unless a tag occurs twice.
typedef struct tag_t {
  rn_str_t text;
  size_t order;
} tag_t;
typedef RN_VEC(tag_t) tags_t;

static rn_status_t scan_value(rn_str_t bytes, rn_allocator_t allocator, tags_t* tags,
                              bool* out_is_bad) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  rn_str_t tag = RN_STR("");
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == RN_VALUE_TAG && field.wire == RN_PB_WIRE_LENGTH) tag = field.bytes;
  *out_is_bad |= scan.is_bad || !rn_utf8_is_valid(tag);
  if (!tag.size) return RN_OK;
  tag_t item = {tag, tags->count};
  return rn_vec_push(tags, allocator, item);
}

static rn_status_t scan_summary(rn_str_t bytes, rn_allocator_t allocator, tags_t* tags) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  bool is_bad = false;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == RN_SUMMARY_VALUE && field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(scan_value(field.bytes, allocator, tags, &is_bad));
  if (is_bad || scan.is_bad)
    return rn_invalid_argument("Could not parse one of the summary inputs");
  return RN_OK;
}

static int tag_order(const void* a_, const void* b_) {
  const tag_t *a = a_, *b = b_;
  int order = rn_str_compare(a->text, b->text);
  return order ? order : (a->order > b->order) - (a->order < b->order);
}

static rn_status_t check_tags(tags_t* tags) {
  const tag_t* twice = NULL;
  if (tags->count) qsort(tags->items, tags->count, sizeof *tags->items, tag_order);
  for (size_t i = 1; i < tags->count; ++i) {
    const tag_t* tag = &tags->items[i];
    if (rn_str_eq(tag->text, tag[-1].text) && (!twice || tag->order < twice->order)) twice = tag;
  }
  if (!twice) return RN_OK;
  return rn_invalid_argument("Duplicate tag %.*s found in summary inputs ",
                             RN_STR_ARGS(twice->text));
}

static rn_status_t merge_compute(rn_kernel_ctx_t* ctx) {
  rn_allocator_t allocator = ctx->kernel->allocator;
  tags_t tags = {0};
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, allocator);
  rn_status_t status = RN_OK;
  for (int k = 0; k < ctx->kernel->input_count; ++k) {
    const rn_tensor_t* in = rn_in(ctx, k);
    for (int64_t i = 0; i < in->count && rn_ok(status); ++i) {
      status = scan_summary(rn_text_at(in, i), allocator, &tags);
      rn_strbuf_append(&buf, rn_text_at(in, i));
    }
  }
  if (rn_ok(status)) status = check_tags(&tags);
  rn_vec_free(&tags, allocator);
  return finish(ctx, status, &buf);
}

static rn_status_t tensor_compute(rn_kernel_ctx_t* ctx) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status =
      rn_summary_put_tensor(&buf, RN_STR(""), ctx->kernel->node, rn_in(ctx, 0), NULL);
  return finish(ctx, status, &buf);
}

static rn_status_t tensor_v2_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *metadata = rn_in(ctx, 2);
  if (tag->rank != 0) return rn_invalid_argument("tag must be scalar");
  if (metadata->rank != 0) return rn_invalid_argument("serialized_summary_metadata must be scalar");
  rn_str_t bytes = rn_text_at(metadata, 0);
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status =
      rn_summary_put_tensor(&buf, rn_text_at(tag, 0), RN_STR(""), rn_in(ctx, 1), &bytes);
  return finish(ctx, status, &buf);
}

// Audio and images.
typedef struct summary_media_t {
  int64_t most;
  float rate;       // if it is an attribute
  rn_tensor_t bad;  // colour for NaN pixels, if it is an attribute
} summary_media_t;

static rn_status_t audio_init(const rn_kernel_init_t* init, void* state) {
  summary_media_t* media = state;
  media->most = rn_init_int(init, "max_outputs");
  if (rn_op_attr_index(init->op, RN_STR("sample_rate")) >= 0)
    media->rate = rn_init_float(init, "sample_rate");
  return RN_OK;
}

static rn_status_t audio_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *sounds = rn_in(ctx, 1);
  const summary_media_t* media = ctx->state;
  float rate = media->rate;
  if (tag->rank != 0) return rn_invalid_argument("Tag must be a scalar");
  RN_RETURN_IF_ERROR(rn_summary_check_sounds(sounds));
  if (ctx->kernel->input_count > 2) RN_RETURN_IF_ERROR(rn_summary_rate(rn_in(ctx, 2), &rate));
  if (!(rate > 0)) return rn_invalid_argument("sample_rate must be > 0");
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = rn_summary_put_sounds(&buf, rn_text_at(tag, 0), sounds, rate, media->most);
  return finish(ctx, status, &buf);
}

static rn_status_t image_init(const rn_kernel_init_t* init, void* state) {
  summary_media_t* media = state;
  media->most = rn_init_int(init, "max_images");
  const rn_tensor_t* bad = rn_init_attr(init, "bad_color")->tensor;
  if (bad->dtype != RN_UINT8)
    return rn_invalid_argument("bad_color must be uint8, got %s", rn_dtype_name(bad->dtype));
  if (bad->rank != 1)
    return rn_invalid_argument("bad_color must be a vector, got shape %s", rn_text_of(bad).text);
  return rn_tensor_keep(bad, init->allocator, &media->bad);
}

static void image_destroy(void* state) { rn_tensor_clear(&((summary_media_t*)state)->bad); }

static rn_status_t image_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *images = rn_in(ctx, 1);
  const summary_media_t* media = ctx->state;
  if (tag->rank != 0) return rn_invalid_argument("Tags must be a scalar");
  RN_RETURN_IF_ERROR(rn_summary_check_images(images, &media->bad));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status =
      rn_summary_put_images(&buf, rn_text_at(tag, 0), images, &media->bad, media->most);
  return finish(ctx, status, &buf);
}

static const rn_kernel_def_t rows[] = {
    {.op = "ScalarSummary",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .compute = scalar_compute},
    {.op = "HistogramSummary",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .compute = histogram_compute},
    {.op = "MergeSummary", .device = "CPU", .compute = merge_compute},
    {.op = "TensorSummary", .device = "CPU", .compute = tensor_compute},
    {.op = "TensorSummaryV2", .device = "CPU", .compute = tensor_v2_compute},
    {.op = "AudioSummary",
     .device = "CPU",
     .state_size = sizeof(summary_media_t),
     .init = audio_init,
     .compute = audio_compute},
    {.op = "AudioSummaryV2",
     .device = "CPU",
     .state_size = sizeof(summary_media_t),
     .init = audio_init,
     .compute = audio_compute},
    {.op = "ImageSummary",
     .device = "CPU",
     .state_size = sizeof(summary_media_t),
     .init = image_init,
     .destroy = image_destroy,
     .compute = image_compute},
};
RN_KERNEL_FAMILY(cpu_summary, rows);
