// Summaries: numbers, histograms, tensors and sounds as serialised Summary messages, for a training
// log. The messages are written straight into a buffer; their field numbers are below.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

enum {
  SUMMARY_VALUE = 1,
  VALUE_TAG = 1,
  VALUE_SIMPLE = 2,
  VALUE_HISTOGRAM = 5,
  VALUE_AUDIO = 6,
  VALUE_NODE = 7,
  VALUE_TENSOR = 8,
  VALUE_METADATA = 9,
  HISTOGRAM_MIN = 1,
  HISTOGRAM_MAX = 2,
  HISTOGRAM_COUNT = 3,
  HISTOGRAM_SUM = 4,
  HISTOGRAM_SQUARES = 5,
  HISTOGRAM_LIMITS = 6,
  HISTOGRAM_BUCKETS = 7,
  AUDIO_RATE = 1,
  AUDIO_CHANNELS = 2,
  AUDIO_FRAMES = 3,
  AUDIO_BYTES = 4,
  AUDIO_TYPE = 5,
};

static rn_str_t text_at(const rn_tensor_t* tensor, int64_t i) {
  return rn_tstring_view(&RN_DATA(tensor, const rn_tstring_t)[i]);
}

// Output 0 becomes the scalar |buf|, which is cleared; a status that came before goes first.
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

static void put_double(rn_strbuf_t* buf, uint32_t number, double value) {
  if (value != 0) rn_pb_put_double(buf, number, value);
}

static double number_at(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return (double)RN_DATA(tensor, const float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, const double)[i];
    case RN_HALF:
      return (double)rn_half_to_float(RN_DATA(tensor, const uint16_t)[i]);
    case RN_BFLOAT16:
      return (double)rn_bfloat16_to_float(RN_DATA(tensor, const uint16_t)[i]);
    case RN_UINT64:
      return (double)RN_DATA(tensor, const uint64_t)[i];
    default:
      return (double)rn_int_at(tensor, i);
  }
}

static float float_at(const rn_tensor_t* tensor, int64_t i) {
  if (tensor->dtype == RN_INT64) return (float)RN_DATA(tensor, const int64_t)[i];
  if (tensor->dtype == RN_UINT64) return (float)RN_DATA(tensor, const uint64_t)[i];
  return (float)number_at(tensor, i);
}

static rn_status_t scalar_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tags = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(tags, values)) {
    rn_str_t tag = tags->count == 1 ? text_at(tags, 0) : RN_STR("");
    bool is_one = tags->count == 1;
    return rn_invalid_argument("tags and values are not the same shape: %s != %s%s%.*s%s",
                               rn_text_of(tags).text, rn_text_of(values).text,
                               is_one ? " (tag '" : "", RN_STR_ARGS(tag), is_one ? "')" : "");
  }
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  for (int64_t i = 0; i < tags->count; ++i) {
    rn_str_t tag = text_at(tags, i);
    size_t value = rn_pb_begin(&buf, SUMMARY_VALUE);
    if (tag.size) rn_pb_put_str(&buf, VALUE_TAG, tag);
    rn_pb_put_float(&buf, VALUE_SIMPLE, float_at(values, i));
    rn_pb_end(&buf, value);
  }
  return finish(ctx, RN_OK, &buf);
}

// Histograms have the same buckets everywhere: powers of 1.1 from 1e-12 to 1e20, either sign.
enum { MAX_POSITIVE = 800, MAX_LIMITS = 2 * MAX_POSITIVE + 3 };

static int make_limits(double* out) {
  int count = 0;
  for (double v = 1e-12; v < 1e20 && count < MAX_POSITIVE; v *= 1.1) out[count++] = v;
  // -largest, negative ones, 0, positive ones, largest
  memmove(out + count + 2, out, (size_t)count * sizeof *out);
  for (int i = 0; i < count; ++i) out[count - i] = -out[count + 2 + i];
  out[0] = -DBL_MAX;
  out[count + 1] = 0;
  out[2 * count + 2] = DBL_MAX;
  return 2 * count + 3;
}

typedef struct histogram_t {
  double limits[MAX_LIMITS], buckets[MAX_LIMITS];
  int count;
  double min, max, sum, squares;
} histogram_t;

static void histogram_add(histogram_t* h, double x) {
  int low = 0, high = h->count - 1;  // the first limit above x; the last one takes what is left
  while (low < high) {
    int middle = (low + high) / 2;
    if (h->limits[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  h->buckets[low] += 1;
  if (x < h->min) h->min = x;
  if (x > h->max) h->max = x;
  h->sum += x;
  h->squares += x * x;
}

// Runs of empty buckets become one.
static int squeeze(histogram_t* h) {
  int kept = 0;
  for (int i = 0; i < h->count;) {
    double end = h->limits[i], count = h->buckets[i++];
    for (; count <= 0 && i < h->count && h->buckets[i] <= 0; ++i) end = h->limits[i];
    h->limits[kept] = end;
    h->buckets[kept++] = count;
  }
  return kept;
}

static void put_histogram(rn_strbuf_t* buf, histogram_t* h, double number) {
  size_t at = rn_pb_begin(buf, VALUE_HISTOGRAM);
  put_double(buf, HISTOGRAM_MIN, h->min);
  put_double(buf, HISTOGRAM_MAX, h->max);
  put_double(buf, HISTOGRAM_COUNT, number);
  put_double(buf, HISTOGRAM_SUM, h->sum);
  put_double(buf, HISTOGRAM_SQUARES, h->squares);
  size_t kept = (size_t)squeeze(h) * sizeof(double);
  rn_pb_put_str(buf, HISTOGRAM_LIMITS, rn_str_n((const char*)h->limits, kept));
  rn_pb_put_str(buf, HISTOGRAM_BUCKETS, rn_str_n((const char*)h->buckets, kept));
  rn_pb_end(buf, at);
}

static rn_status_t histogram_fill(rn_kernel_ctx_t* ctx, histogram_t* h) {
  const rn_tensor_t* values = rn_in(ctx, 1);
  h->count = make_limits(h->limits);
  h->min = DBL_MAX;
  h->max = -DBL_MAX;
  for (int64_t i = 0; i < values->count; ++i) {
    double x = number_at(values, i);
    if (isnan(x))
      return rn_invalid_argument("Nan in summary histogram for: %.*s",
                                 RN_STR_ARGS(ctx->kernel->node));
    if (isinf(x))
      return rn_invalid_argument("Infinity in Histogram for: %.*s", RN_STR_ARGS(ctx->kernel->node));
    histogram_add(h, x);
  }
  return RN_OK;
}

static rn_status_t histogram_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* tag = rn_in(ctx, 0);
  if (tag->rank != 0) return rn_invalid_argument("tags must be scalar");
  histogram_t* h = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(ctx->kernel->allocator, &h));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = histogram_fill(ctx, h);
  if (rn_ok(status)) {
    size_t value = rn_pb_begin(&buf, SUMMARY_VALUE);
    if (text_at(tag, 0).size) rn_pb_put_str(&buf, VALUE_TAG, text_at(tag, 0));
    put_histogram(&buf, h, (double)rn_in(ctx, 1)->count);
    rn_pb_end(&buf, value);
  }
  RN_FREE(ctx->kernel->allocator, h);
  return finish(ctx, status, &buf);
}

// Merging: messages one after the other are one message, unless a tag comes twice.
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
    if (field.number == VALUE_TAG && field.wire == RN_PB_WIRE_LENGTH) tag = field.bytes;
  *out_is_bad |= scan.is_bad;
  if (!tag.size) return RN_OK;
  tag_t item = {tag, tags->count};
  return rn_vec_push(tags, allocator, item);
}

static rn_status_t scan_summary(rn_str_t bytes, rn_allocator_t allocator, tags_t* tags) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  bool is_bad = false;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == SUMMARY_VALUE && field.wire == RN_PB_WIRE_LENGTH)
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
      status = scan_summary(text_at(in, i), allocator, &tags);
      rn_strbuf_append(&buf, text_at(in, i));
    }
  }
  if (rn_ok(status)) status = check_tags(&tags);
  rn_vec_free(&tags, allocator);
  return finish(ctx, status, &buf);
}

// Tensors.
static rn_status_t put_tensor(rn_kernel_ctx_t* ctx, rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_pb_TensorProto_t proto;
  rn_tensor_form_t form = tensor->dtype == RN_STRING ? RN_TENSOR_TYPED : RN_TENSOR_CONTENT;
  rn_status_t status = rn_tensor_to_proto(tensor, form, &arena, &proto);
  size_t at = rn_pb_begin(buf, VALUE_TENSOR);
  if (rn_ok(status)) status = RN_PB_ENCODE(TensorProto, &proto, NULL, buf);
  rn_pb_end(buf, at);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t tensor_compute(rn_kernel_ctx_t* ctx) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  size_t value = rn_pb_begin(&buf, SUMMARY_VALUE);
  rn_pb_put_str(&buf, VALUE_NODE, ctx->kernel->node);
  rn_status_t status = put_tensor(ctx, &buf, rn_in(ctx, 0));
  rn_pb_end(&buf, value);
  return finish(ctx, status, &buf);
}

// Writes the fields of |message| as far as it is one, in the order of |count| known numbers,
// without those that are empty or zero, as if it had been decoded and encoded again. Unknown ones
// come last.
static void put_again(rn_strbuf_t* buf, rn_str_t message, uint32_t count, uint32_t nested);

static void put_field(rn_strbuf_t* buf, const rn_pb_field_t* field, bool is_nested) {
  if (field->wire == RN_PB_WIRE_VARINT) {
    if (field->value) rn_pb_put_uint(buf, field->number, field->value);
  } else if (field->wire == RN_PB_WIRE_LENGTH && is_nested) {
    size_t at = rn_pb_begin(buf, field->number);
    put_again(buf, field->bytes, 2, 0);
    rn_pb_end(buf, at);
  } else if (field->wire == RN_PB_WIRE_LENGTH && field->bytes.size) {
    rn_pb_put_str(buf, field->number, field->bytes);
  }
}

static void put_again(rn_strbuf_t* buf, rn_str_t message, uint32_t count, uint32_t nested) {
  for (uint32_t number = 1; number <= count; ++number) {
    rn_pb_scan_t scan = rn_pb_scan(message);
    rn_pb_field_t field, last = {0};
    while (rn_pb_scan_next(&scan, &field))
      if (field.number == number) last = field;
    if (last.number) put_field(buf, &last, number == nested);
  }
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  for (const char* from = scan.next; rn_pb_scan_next(&scan, &field); from = scan.next)
    if (field.number > count) rn_strbuf_append_n(buf, from, (size_t)(scan.next - from));
}

// SummaryMetadata: the plug-in (its name and bytes), a name, a description, a class.
static void put_metadata(rn_strbuf_t* buf, rn_str_t metadata) {
  size_t at = rn_pb_begin(buf, VALUE_METADATA);
  put_again(buf, metadata, 4, 1);
  rn_pb_end(buf, at);
}

static rn_status_t tensor_v2_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *metadata = rn_in(ctx, 2);
  if (tag->rank != 0) return rn_invalid_argument("tag must be scalar");
  if (metadata->rank != 0) return rn_invalid_argument("serialized_summary_metadata must be scalar");
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  size_t value = rn_pb_begin(&buf, SUMMARY_VALUE);
  if (text_at(tag, 0).size) rn_pb_put_str(&buf, VALUE_TAG, text_at(tag, 0));
  rn_status_t status = put_tensor(ctx, &buf, rn_in(ctx, 1));
  put_metadata(&buf, text_at(metadata, 0));
  rn_pb_end(&buf, value);
  return finish(ctx, status, &buf);
}

// Sounds: 16-bit WAV files.
typedef struct audio_t {
  int64_t max_outputs;
  float rate;  // where it is an attribute
} audio_t;

static rn_status_t audio_init(const rn_kernel_init_t* init, void* state) {
  audio_t* audio = state;
  audio->max_outputs = rn_init_int(init, "max_outputs");
  if (rn_op_attr_index(init->op, RN_STR("sample_rate")) >= 0)
    audio->rate = rn_init_float(init, "sample_rate");
  return RN_OK;
}

static void put_little(rn_strbuf_t* buf, uint32_t value, int bytes) {
  char text[4];
  for (int i = 0; i < bytes; ++i) text[i] = (char)(value >> (8 * i));
  rn_strbuf_append_n(buf, text, (size_t)bytes);
}

static void put_wav(rn_strbuf_t* buf, const float* samples, float rate, int64_t channels,
                    int64_t frames) {
  uint32_t size = (uint32_t)(channels * frames * 2), hertz = (uint32_t)lrintf(rate);
  rn_strbuf_append(buf, RN_STR("RIFF"));
  put_little(buf, 36 + size, 4);
  rn_strbuf_append(buf, RN_STR("WAVEfmt "));
  put_little(buf, 16, 4);  // bytes of the format
  put_little(buf, 1, 2);   // PCM
  put_little(buf, (uint32_t)channels, 2);
  put_little(buf, hertz, 4);
  put_little(buf, hertz * (uint32_t)channels * 2, 4);
  put_little(buf, (uint32_t)channels * 2, 2);
  put_little(buf, 16, 2);
  rn_strbuf_append(buf, RN_STR("data"));
  put_little(buf, size, 4);
  for (int64_t i = 0; i < channels * frames; ++i) {
    float level = roundf(samples[i] * 32768);
    int value = level >= 32767 ? 32767 : level > -32768 ? (int)level : level < 0 ? -32768 : 0;
    put_little(buf, (uint32_t)value & 0xffff, 2);
  }
}

static void put_sound(rn_strbuf_t* buf, rn_str_t tag, const float* samples, float rate,
                      int64_t channels, int64_t frames) {
  size_t value = rn_pb_begin(buf, SUMMARY_VALUE);
  rn_pb_put_str(buf, VALUE_TAG, tag);
  size_t audio = rn_pb_begin(buf, VALUE_AUDIO);
  rn_pb_put_float(buf, AUDIO_RATE, rate);
  if (channels) rn_pb_put_uint(buf, AUDIO_CHANNELS, (uint64_t)channels);
  if (frames) rn_pb_put_uint(buf, AUDIO_FRAMES, (uint64_t)frames);
  size_t bytes = rn_pb_begin(buf, AUDIO_BYTES);
  put_wav(buf, samples, rate, channels, frames);
  rn_pb_end(buf, bytes);
  rn_pb_put_str(buf, AUDIO_TYPE, RN_STR("audio/wav"));
  rn_pb_end(buf, audio);
  rn_pb_end(buf, value);
}

static rn_status_t audio_check(rn_kernel_ctx_t* ctx, float* out_rate) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *sounds = rn_in(ctx, 1);
  if (tag->rank != 0) return rn_invalid_argument("Tag must be a scalar");
  if (sounds->rank != 2 && sounds->rank != 3)
    return rn_invalid_argument("Tensor must be 3-D or 2-D, got: %s", rn_text_of(sounds).text);
  *out_rate = ((const audio_t*)ctx->state)->rate;
  if (ctx->kernel->input_count > 2) {
    const rn_tensor_t* rate = rn_in(ctx, 2);
    if (rate->count != 1)
      return rn_invalid_argument("sample_rate must be rank-0 or contain a single value");
    *out_rate = *RN_DATA(rate, const float);
  }
  if (!(*out_rate > 0)) return rn_invalid_argument("sample_rate must be > 0");
  int64_t channels = sounds->rank == 3 ? rn_tensor_dim(sounds, 2) : 1, frames = 0;
  // What a WAV file can say.
  if (channels > UINT16_MAX / 2 || *out_rate > (float)(1 << 30) ||
      !rn_mul_i64_ok(channels, rn_tensor_dim(sounds, 1), &frames) || frames > (1 << 30))
    return rn_invalid_argument("A sound of shape %s is too large", rn_text_of(sounds).text);
  return RN_OK;
}

static rn_status_t audio_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *tag = rn_in(ctx, 0), *sounds = rn_in(ctx, 1);
  const audio_t* state = ctx->state;
  float rate = 0;
  RN_RETURN_IF_ERROR(audio_check(ctx, &rate));
  int64_t frames = rn_tensor_dim(sounds, 1);
  int64_t channels = sounds->rank == 3 ? rn_tensor_dim(sounds, 2) : 1;
  rn_strbuf_t buf, name;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_strbuf_init(&name, ctx->kernel->allocator);
  for (int64_t i = 0; i < rn_tensor_dim(sounds, 0) && i < state->max_outputs; ++i) {
    name.size = 0;
    rn_strbuf_append(&name, text_at(tag, 0));
    rn_strbuf_append(&name, RN_STR("/audio"));
    if (state->max_outputs > 1) rn_strbuf_printf(&name, "/%" PRId64, i);
    put_sound(&buf, rn_strbuf_view(&name), RN_DATA(sounds, const float) + i * frames * channels,
              rate, channels, frames);
  }
  rn_status_t status = rn_strbuf_status(&name);
  rn_strbuf_clear(&name);
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
     .state_size = sizeof(audio_t),
     .init = audio_init,
     .compute = audio_compute},
    {.op = "AudioSummaryV2",
     .device = "CPU",
     .state_size = sizeof(audio_t),
     .init = audio_init,
     .compute = audio_compute},
};
RN_KERNEL_FAMILY(cpu_summary, rows);
