// Kernels that generate values: fills, ranges, one-hot vectors, permutations.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/print.h"

static rn_status_t fill(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  const rn_tensor_t* value = rn_in(ctx, 1);
  if (sizes->rank != 1 && !(sizes->rank == 0 && sizes->count == 1))
    return rn_invalid_argument("dims must represent a vector, got shape %s",
                               rn_text_of(sizes).text);
  if (value->rank != 0 && !(value->rank == 1 && value->count == 1))
    return rn_invalid_argument("value must represent a scalar, got shape %s",
                               rn_text_of(value).text);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  return rn_ctx_fill(ctx, 1, out);
}

// Clears the elements even if the op does not ask for it, so that no data of another tensor leaks.
static rn_status_t empty(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  if (sizes->rank != 1)
    return rn_invalid_argument("shape must be a vector of int32, got shape %s",
                               rn_text_of(sizes).text);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  return RN_OK;
}

static rn_status_t not_scalar(const char* name, const rn_tensor_t* tensor) {
  return rn_invalid_argument("%s must be a scalar, not shape %s", name, rn_text_of(tensor).text);
}

// A scalar or, as stock allows for old graphs, a vector of one element.
static bool is_scalar(const rn_tensor_t* tensor) { return tensor->count == 1 && tensor->rank <= 1; }

static rn_status_t bad_range(const rn_tensor_t* start, const rn_tensor_t* limit, bool is_up) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_print_values(&buf, start, 1);
  rn_strbuf_printf(&buf, "/");
  rn_print_values(&buf, limit, 1);
  rn_status_t status = rn_invalid_argument("Requires start %s limit when delta %s 0: %.*s",
                                           is_up ? "<=" : ">=", is_up ? ">" : "<",
                                           RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t too_long(void) {
  return rn_invalid_argument("Requires ((limit - start) / delta) <= 9223372036854775807");
}

static rn_status_t int_range(rn_kernel_ctx_t* ctx) {
  int64_t start = rn_int_at(rn_in(ctx, 0), 0), limit = rn_int_at(rn_in(ctx, 1), 0),
          delta = rn_int_at(rn_in(ctx, 2), 0), span;
  if (delta == 0) return rn_invalid_argument("Requires delta != 0: 0");
  if (delta > 0 ? start > limit : start < limit)
    return bad_range(rn_in(ctx, 0), rn_in(ctx, 1), delta > 0);
  if (__builtin_sub_overflow(limit, start, &span) || span == INT64_MIN) return too_long();
  // Unsigned magnitudes, because the most negative delta has no signed one.
  uint64_t length = span < 0 ? (uint64_t)0 - (uint64_t)span : (uint64_t)span;
  uint64_t step = delta < 0 ? (uint64_t)0 - (uint64_t)delta : (uint64_t)delta;
  const int64_t count = (int64_t)(length / step + (length % step != 0));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  uint64_t value = (uint64_t)start;
  if (out->dtype == RN_INT32)
    rn_spans()->int32_range((int32_t)start, (int32_t)delta, RN_DATA(out, int32_t), count);
  else
    for (int64_t i = 0; i < count; ++i, value += (uint64_t)delta)
      RN_DATA(out, int64_t)[i] = (int64_t)value;
  return RN_OK;
}

// out[i] = start + i * step.
static void float_span(float start, float step, float* out, int64_t count) {
  if (count <= INT32_MAX) {
    rn_spans()->float_range(start, step, 0, out, count);
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i] = start + (float)i * step;
}

static rn_status_t float_range(rn_kernel_ctx_t* ctx) {
  const double start = rn_number_at(rn_in(ctx, 0), 0), limit = rn_number_at(rn_in(ctx, 1), 0),
               delta = rn_number_at(rn_in(ctx, 2), 0);
  if (delta == 0) return rn_invalid_argument("Requires delta != 0: 0");
  if (delta > 0 ? !(start <= limit) : !(start >= limit))
    return bad_range(rn_in(ctx, 0), rn_in(ctx, 1), delta > 0);
  rn_dtype_t type = rn_in(ctx, 0)->dtype;
  // Divides in the type itself, because users expect its rounding.
  double quotient;
  if (type == RN_DOUBLE) {
    quotient = fabs((limit - start) / delta);
  } else {
    float span = (float)limit - (float)start;
    if (type == RN_HALF) span = rn_half_to_float(rn_float_to_half(span));
    if (type == RN_BFLOAT16) span = rn_bfloat16_to_float(rn_float_to_bfloat16(span));
    float ratio = span / (float)delta;
    if (type == RN_HALF) ratio = rn_half_to_float(rn_float_to_half(ratio));
    if (type == RN_BFLOAT16) ratio = rn_bfloat16_to_float(rn_float_to_bfloat16(ratio));
    quotient = fabsf(ratio);
  }
  quotient = ceil(quotient);
  if (!(quotient < 0x1p63)) return too_long();
  const int64_t count = (int64_t)quotient;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  switch (type) {
    case RN_DOUBLE:
      for (int64_t i = 0; i < count; ++i) RN_DATA(out, double)[i] = start + (double)i * delta;
      break;
    case RN_FLOAT:
      float_span((float)start, (float)delta, RN_DATA(out, float), count);
      break;
    case RN_HALF:
      for (int64_t i = 0; i < count; ++i) RN_DATA(out, uint16_t)
      [i] = rn_float_to_half((float)start +
                             rn_half_to_float(rn_float_to_half(
                                 rn_half_to_float(rn_float_to_half((float)i)) * (float)delta)));
      break;
    default:
      for (int64_t i = 0; i < count; ++i) RN_DATA(out, uint16_t)
      [i] = rn_float_to_bfloat16(
          (float)start + rn_bfloat16_to_float(rn_float_to_bfloat16(
                             rn_bfloat16_to_float(rn_float_to_bfloat16((float)i)) * (float)delta)));
  }
  return RN_OK;
}

static rn_status_t range(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i)
    if (!is_scalar(rn_in(ctx, i))) return not_scalar(names[i], rn_in(ctx, i));
  rn_dtype_t type = rn_in(ctx, 0)->dtype;
  return type == RN_INT32 || type == RN_INT64 ? int_range(ctx) : float_range(ctx);
}

static rn_status_t lin_space(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank != 0) return not_scalar(names[i], rn_in(ctx, i));
  const int64_t num = rn_int_at(rn_in(ctx, 2), 0);
  if (num <= 0) return rn_invalid_argument("Requires num > 0: %lld", (long long)num);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &num}, &out));
  const double start = rn_number_at(rn_in(ctx, 0), 0), stop = rn_number_at(rn_in(ctx, 1), 0);
  if (out->dtype == RN_FLOAT) {
    float* data = RN_DATA(out, float);
    const float step = num > 1 ? ((float)stop - (float)start) / (float)(num - 1) : 0;
    float_span((float)start, step, data, num);
    data[0] = (float)start;  // also where a step is not finite
    if (num > 1) data[num - 1] = (float)stop;
  } else {
    double* data = RN_DATA(out, double);
    const double step = num > 1 ? (stop - start) / (double)(num - 1) : 0;
    data[0] = start;
    for (int64_t i = 1; i < num; ++i) data[i] = start + step * (double)i;
    if (num > 1) data[num - 1] = stop;
  }
  return RN_OK;
}

rn_status_t rn_one_hot_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "axis");
  return RN_OK;
}

rn_status_t rn_one_hot_begin(rn_kernel_ctx_t* ctx, rn_one_hot_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *depth = rn_in(ctx, 1), *on = rn_in(ctx, 2),
                    *off = rn_in(ctx, 3);
  int64_t axis = *(const int64_t*)ctx->state;
  const int32_t rank = indices->rank + 1;
  if (axis != -1 && (axis < 0 || axis >= rank))
    return rn_invalid_argument("Expected axis to be -1 or between [0, %d).  But received: %lld",
                               rank, (long long)axis);
  if (depth->rank != 0)
    return rn_invalid_argument("depth must be a scalar, but got: %s", rn_text_of(depth).text);
  if (on->rank != 0)
    return rn_invalid_argument("on_value must be a scalar, but got: %s", rn_text_of(on).text);
  if (off->rank != 0)
    return rn_invalid_argument("off_value must be a scalar, but got: %s", rn_text_of(off).text);
  const int64_t size = rn_int_at(depth, 0);
  if (size < 0)
    return rn_invalid_argument("depth must be non-negative, got: %lld", (long long)size);
  int64_t total;
  if (!rn_mul_i64_ok(indices->count, size, &total))
    return rn_invalid_argument(
        "OneHot result would have shape %s + [%lld], which exceeds 2**63 - 1 elements",
        rn_text_of(indices).text, (long long)size);
  if (rank > RN_MAX_RANK)
    return rn_invalid_argument("Tensors have at most %d dimensions", RN_MAX_RANK);
  if (axis == -1) axis = rank - 1;
  const int64_t* in_dims = rn_tensor_dims(indices);
  int64_t dims[RN_MAX_RANK];
  for (int d = 0; d < rank; ++d)
    dims[d] = d < axis ? in_dims[d] : d == axis ? size : in_dims[d - 1];
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &out->out));
  out->depth = size;
  out->inner = out->out->count ? rn_dims_product(in_dims, (int)axis, indices->rank) : 0;
  return RN_OK;
}

static rn_status_t one_hot(rn_kernel_ctx_t* ctx) {
  rn_one_hot_t hots;
  RN_RETURN_IF_ERROR(rn_one_hot_begin(ctx, &hots));
  const rn_tensor_t *indices = rn_in(ctx, 0), *on = rn_in(ctx, 2);
  rn_tensor_t* out = hots.out;
  const int64_t size = hots.depth, inner = hots.inner;
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ctx_fill(ctx, 3, out));
  const int64_t bytes = (int64_t)rn_dtype_size(out->dtype);
  const bool is_plain = rn_dtype_is_plain(out->dtype);
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t hot = rn_int_at(indices, i);
    if (hot < 0 || hot >= size) continue;
    char* place = (char*)out->data + ((i / inner * size + hot) * inner + i % inner) * bytes;
    if (is_plain)
      rn_move_bytes(place, on->data, (size_t)bytes);
    else
      RN_RETURN_IF_ERROR(rn_move_row(out->dtype, on->data, place, 1));
  }
  return RN_OK;
}

// Writes where each place comes from into |out|, which is full of -1. Returns the first element
// that is out of range or there already, or the count. Places of a large permutation are not in the
// cache: they are prefetched.
enum { AHEAD = 24, LARGE = 1 << 18 };
#define INVERT(T)                                                                                  \
  static inline int64_t invert_part_##T(const T##_t* x, T##_t* out, int64_t begin, int64_t end,    \
                                        int64_t count, bool fetches) {                             \
    for (int64_t i = begin; i < end; ++i) {                                                        \
      if (fetches) __builtin_prefetch((const char*)out + (uint64_t)x[i + AHEAD] * sizeof *out, 1); \
      if ((uint64_t)x[i] >= (uint64_t)count || out[x[i]] != -1) return i;                          \
      out[x[i]] = (T##_t)i;                                                                        \
    }                                                                                              \
    return end;                                                                                    \
  }                                                                                                \
  static int64_t invert_##T(const T##_t* x, T##_t* out, int64_t count) {                           \
    const int64_t far = count < LARGE ? 0 : count - AHEAD;                                         \
    const int64_t i = invert_part_##T(x, out, 0, far, count, true);                                \
    return i < far ? i : invert_part_##T(x, out, far, count, count, false);                        \
  }
INVERT(int32)
INVERT(int64)

static rn_status_t invert_permutation(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 1) return rn_invalid_argument("invert_permutation expects a 1D vector.");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  if (x->count) memset(out->data, 0xff, rn_tensor_bytes(out));
  const int64_t wrong = x->dtype == RN_INT32 ? invert_int32(x->data, out->data, x->count)
                                             : invert_int64(x->data, out->data, x->count);
  if (wrong == x->count) return RN_OK;
  const int64_t place = rn_int_at(x, wrong);
  if (place < 0 || place >= x->count)
    return rn_invalid_argument("%lld is not between 0 and %lld", (long long)place,
                               (long long)x->count);
  return rn_invalid_argument("%lld is duplicated in the input.", (long long)place);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Fill", .device = "CPU", .types = {{"T", RN_TYPES_ALL}}, .compute = fill},
    {.op = "Empty", .device = "CPU", .types = {{"dtype", RN_TYPES_ALL}}, .compute = empty},
    {.op = "Range",
     .device = "CPU",
     .types = {{"Tidx", RN_TYPES_FLOATS | RN_TYPES_INDEX}},
     .compute = range},
    {.op = "LinSpace",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = lin_space},
    {.op = "OneHot",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT)},
               {"TI", RN_TYPES_INDEX | RN_T(UINT8) | RN_T(INT8)}},
     .state_size = sizeof(int64_t),
     .init = rn_one_hot_init,
     .compute = one_hot},
    {.op = "InvertPermutation", .device = "CPU", .compute = invert_permutation},
};
RN_KERNEL_FAMILY(cpu_fill, rows);
