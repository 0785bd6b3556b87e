// Writes scalars, histograms and tensors as summaries: see summary.h.
#include "io/summary.h"

#include <float.h>
#include <math.h>

#include "tensor/float16.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/writer.h"

enum {
  HISTOGRAM_MIN = 1,
  HISTOGRAM_MAX = 2,
  HISTOGRAM_COUNT = 3,
  HISTOGRAM_SUM = 4,
  HISTOGRAM_SQUARES = 5,
  HISTOGRAM_LIMITS = 6,
  HISTOGRAM_BUCKETS = 7,
  METADATA_CLASS = 4,
  METADATA_FIELDS = 4,
};

double rn_summary_number(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
#define CASE(dtype_, type) \
  case dtype_:             \
    return (double)RN_DATA(tensor, const type)[i];
    CASE(RN_FLOAT, float)
    CASE(RN_DOUBLE, double)
    CASE(RN_INT8, int8_t)
    CASE(RN_INT16, int16_t)
    CASE(RN_INT32, int32_t)
    CASE(RN_INT64, int64_t)
    CASE(RN_UINT8, uint8_t)
    CASE(RN_UINT16, uint16_t)
    CASE(RN_UINT32, uint32_t)
    CASE(RN_UINT64, uint64_t)
    CASE(RN_BOOL, bool)
#undef CASE
    case RN_HALF:
      return (double)rn_half_to_float(RN_DATA(tensor, const uint16_t)[i]);
    case RN_BFLOAT16:
      return (double)rn_bfloat16_to_float(RN_DATA(tensor, const uint16_t)[i]);
    default:
      return 0;
  }
}

static size_t begin_value(rn_strbuf_t* buf, rn_str_t tag) {
  size_t mark = rn_pb_begin(buf, RN_SUMMARY_VALUE);
  if (tag.size) rn_pb_put_str(buf, RN_VALUE_TAG, tag);
  return mark;
}

void rn_summary_put_scalar(rn_strbuf_t* buf, rn_str_t tag, float value) {
  size_t mark = begin_value(buf, tag);
  rn_pb_put_float(buf, RN_VALUE_SIMPLE, value);
  rn_pb_end(buf, mark);
}

void rn_summary_put_element(rn_strbuf_t* buf, rn_str_t tag, const rn_tensor_t* values, int64_t i) {
  float value = (float)rn_summary_number(values, i);
  if (values->dtype == RN_INT64) value = (float)RN_DATA(values, const int64_t)[i];
  if (values->dtype == RN_UINT64) value = (float)RN_DATA(values, const uint64_t)[i];
  rn_summary_put_scalar(buf, tag, value);
}

// All histograms use the same buckets: powers of 1.1 from 1e-12 to 1e20, of either sign.
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

struct rn_histogram_t {
  rn_allocator_t allocator;
  double limits[MAX_LIMITS], buckets[MAX_LIMITS];
  int count;
  double number;  // of values
  double min, max, sum, squares;
};

rn_status_t rn_histogram_create(rn_allocator_t allocator, rn_histogram_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_histogram_t* h = *out;
  h->allocator = allocator;
  h->count = make_limits(h->limits);
  h->min = DBL_MAX;
  h->max = -DBL_MAX;
  return RN_OK;
}

void rn_histogram_destroy(rn_histogram_t* histogram) {
  if (histogram) RN_FREE(histogram->allocator, histogram);
}

void rn_histogram_add(rn_histogram_t* h, double x) {
  int low = 0,
      high = h->count - 1;  // finds the first limit above x; the last bucket takes the rest
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
  h->number += 1;
  h->sum += x;
  h->squares += x * x;
}

// Merges runs of empty buckets.
static int squeeze(rn_histogram_t* h) {
  int kept = 0;
  for (int i = 0; i < h->count;) {
    double end = h->limits[i], count = h->buckets[i++];
    for (; count <= 0 && i < h->count && h->buckets[i] <= 0; ++i) end = h->limits[i];
    h->limits[kept] = end;
    h->buckets[kept++] = count;
  }
  return kept;
}

static void put_double(rn_strbuf_t* buf, uint32_t number, double value) {
  if (value != 0) rn_pb_put_double(buf, number, value);
}

// Changes |h|.
static void put_histogram(rn_strbuf_t* buf, rn_str_t tag, rn_histogram_t* h) {
  size_t value = begin_value(buf, tag);
  size_t at = rn_pb_begin(buf, RN_VALUE_HISTOGRAM);
  put_double(buf, HISTOGRAM_MIN, h->min);
  put_double(buf, HISTOGRAM_MAX, h->max);
  put_double(buf, HISTOGRAM_COUNT, h->number);
  put_double(buf, HISTOGRAM_SUM, h->sum);
  put_double(buf, HISTOGRAM_SQUARES, h->squares);
  size_t kept = (size_t)squeeze(h) * sizeof(double);
  rn_pb_put_str(buf, HISTOGRAM_LIMITS, rn_str_n((const char*)h->limits, kept));
  rn_pb_put_str(buf, HISTOGRAM_BUCKETS, rn_str_n((const char*)h->buckets, kept));
  rn_pb_end(buf, at);
  rn_pb_end(buf, value);
}

rn_status_t rn_summary_put_counts(rn_strbuf_t* buf, rn_str_t tag, const rn_histogram_t* histogram) {
  if (histogram->number == 0) return RN_OK;
  rn_histogram_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(buf->allocator, &copy));
  *copy = *histogram;
  put_histogram(buf, tag, copy);
  RN_FREE(buf->allocator, copy);
  return RN_OK;
}

static rn_status_t histogram_fill(rn_histogram_t* h, const rn_tensor_t* values, rn_str_t node) {
  for (int64_t i = 0; i < values->count; ++i) {
    double x = rn_summary_number(values, i);
    if (isnan(x))
      return rn_invalid_argument("Nan in summary histogram for: %.*s", RN_STR_ARGS(node));
    if (isinf(x)) return rn_invalid_argument("Infinity in Histogram for: %.*s", RN_STR_ARGS(node));
    rn_histogram_add(h, x);
  }
  return RN_OK;
}

rn_status_t rn_summary_put_histogram(rn_strbuf_t* buf, rn_str_t tag, const rn_tensor_t* values,
                                     rn_str_t node) {
  rn_histogram_t* h = NULL;
  RN_RETURN_IF_ERROR(rn_histogram_create(buf->allocator, &h));
  rn_status_t status = histogram_fill(h, values, node);
  if (rn_ok(status)) put_histogram(buf, tag, h);
  rn_histogram_destroy(h);
  return status;
}

// Tensors.
static rn_status_t put_tensor(rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  rn_arena_t arena;
  rn_arena_init(&arena, buf->allocator);
  rn_pb_TensorProto_t proto;
  rn_tensor_form_t form = tensor->dtype == RN_STRING ? RN_TENSOR_TYPED : RN_TENSOR_CONTENT;
  rn_status_t status = rn_tensor_to_proto(tensor, form, &arena, &proto);
  size_t at = rn_pb_begin(buf, RN_VALUE_TENSOR);
  if (rn_ok(status)) status = RN_PB_ENCODE(TensorProto, &proto, NULL, buf);
  rn_pb_end(buf, at);
  rn_arena_clear(&arena);
  return status;
}

// Rewrites |message| as if it had been decoded and encoded again: fields in the order of the
// |count| known numbers, without empty or zero ones, then unknown fields. Stops at malformed bytes.
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

rn_status_t rn_summary_put_tensor(rn_strbuf_t* buf, rn_str_t tag, rn_str_t node,
                                  const rn_tensor_t* tensor, const rn_str_t* metadata) {
  size_t value = begin_value(buf, tag);
  if (node.size) rn_pb_put_str(buf, RN_VALUE_NODE, node);
  rn_status_t status = put_tensor(buf, tensor);
  if (metadata) {
    size_t at = rn_pb_begin(buf, RN_VALUE_METADATA);
    put_again(buf, *metadata, METADATA_FIELDS, RN_METADATA_PLUGIN);
    rn_pb_end(buf, at);
  }
  rn_pb_end(buf, value);
  return status;
}

void rn_summary_metadata(rn_strbuf_t* buf, rn_str_t plugin, rn_summary_class_t data_class) {
  size_t at = rn_pb_begin(buf, RN_METADATA_PLUGIN);
  rn_pb_put_str(buf, RN_PLUGIN_NAME, plugin);
  rn_pb_end(buf, at);
  if (data_class) rn_pb_put_uint(buf, METADATA_CLASS, data_class);
}
