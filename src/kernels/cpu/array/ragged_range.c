// RaggedRange: a range per row.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

// The number of elements of a range.
static rn_status_t range_size(double start, double limit, double delta, int64_t* out) {
  *out = 0;
  if ((delta > 0 && limit < start) || (delta < 0 && limit > start)) return RN_OK;
  double size = ceil(fabs((limit - start) / delta));
  if (!(size < 0x1p63))
    return rn_invalid_argument("Requires ((limit - start) / delta) <= %" PRId64, INT64_MAX);
  *out = (int64_t)size;
  return RN_OK;
}

static rn_status_t float_range_size(float start, float limit, float delta, int64_t* out) {
  *out = 0;
  if ((delta > 0 && limit < start) || (delta < 0 && limit > start)) return RN_OK;
  float size = ceilf(fabsf((limit - start) / delta));
  if (!(size < 0x1p63f))
    return rn_invalid_argument("Requires ((limit - start) / delta) <= %" PRId64, INT64_MAX);
  *out = (int64_t)size;
  return RN_OK;
}

static rn_status_t int_range_size(int64_t start, int64_t limit, int64_t delta, int64_t* out) {
  *out = 0;
  if ((delta > 0 && limit < start) || (delta < 0 && limit > start)) return RN_OK;
  uint64_t span =
      limit > start ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
  uint64_t size = span / step + (span % step != 0);
  if (size > INT64_MAX)
    return rn_invalid_argument("Requires ((limit - start) / delta) <= %" PRId64, INT64_MAX);
  *out = (int64_t)size;
  return RN_OK;
}

static rn_status_t row_size(rn_kernel_ctx_t* ctx, int64_t row, int64_t* out) {
  const rn_tensor_t* in[3];
  int64_t at[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = rn_in(ctx, i);
    at[i] = in[i]->rank ? row : 0;
  }
  if (rn_number_at(in[2], at[2]) == 0) return rn_invalid_argument("Requires delta != 0");
  switch (in[0]->dtype) {
    case RN_FLOAT:
      return float_range_size(RN_DATA(in[0], const float)[at[0]],
                              RN_DATA(in[1], const float)[at[1]],
                              RN_DATA(in[2], const float)[at[2]], out);
    case RN_DOUBLE:
      return range_size(RN_DATA(in[0], const double)[at[0]], RN_DATA(in[1], const double)[at[1]],
                        RN_DATA(in[2], const double)[at[2]], out);
    default:
      return int_range_size(rn_int_at(in[0], at[0]), rn_int_at(in[1], at[1]),
                            rn_int_at(in[2], at[2]), out);
  }
}

// Adds |delta| |count| times, beginning with |start|.
#define WRITE(type, sum)                                                           \
  do {                                                                             \
    type value = RN_DATA(starts, const type)[starts->rank ? row : 0];              \
    type delta = RN_DATA(deltas, const type)[deltas->rank ? row : 0];              \
    for (int64_t k = begin; k < end; ++k, value = (type)((sum)value + (sum)delta)) \
      RN_DATA(out, type)[k] = value;                                               \
  } while (0)

static void write_row(const rn_tensor_t* starts, const rn_tensor_t* deltas, int64_t row,
                      int64_t begin, int64_t end, rn_tensor_t* out) {
  switch (out->dtype) {
    case RN_FLOAT:
      WRITE(float, float);
      break;
    case RN_DOUBLE:
      WRITE(double, double);
      break;
    case RN_INT32:
      WRITE(int32_t, uint32_t);
      break;
    default:
      WRITE(int64_t, uint64_t);
  }
}
#undef WRITE

static rn_status_t range_rows(const rn_kernel_ctx_t* ctx, int64_t* out) {
  static const char* const names[] = {"starts", "limits", "deltas"};
  *out = RN_UNKNOWN;
  for (int i = 0; i < 3; ++i)
    if (rn_in(ctx, i)->rank > 1)
      return rn_invalid_argument("%s must be a scalar or vector", names[i]);
  for (int i = 0; i < 3; ++i) {
    const rn_tensor_t* in = rn_in(ctx, i);
    if (in->rank == 0) continue;
    if (*out >= 0 && in->count != *out)
      return rn_invalid_argument("starts, limits, and deltas must have the same shape");
    *out = in->count;
  }
  if (*out < 0) *out = 1;
  return RN_OK;
}

static rn_status_t range(rn_kernel_ctx_t* ctx) {
  int64_t rows, count, total = 0;
  rn_tensor_t *splits = NULL, *out = NULL;
  RN_RETURN_IF_ERROR(range_rows(ctx, &rows));
  count = rows + 1;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &splits));
  int64_t most = splits->dtype == RN_INT32 ? INT32_MAX : INT64_MAX;
  rn_int_set(splits, 0, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t size;
    RN_RETURN_IF_ERROR(row_size(ctx, row, &size));
    if (!rn_add_i64_ok(total, size, &total) || total > most)
      return rn_invalid_argument(
          "The total range size overflowed. Consider using int64 instead of "
          "int32 for row_splits_dtype.");
    rn_int_set(splits, row + 1, total);
  }
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &total}, &out));
  for (int64_t row = 0; row < rows; ++row)
    write_row(rn_in(ctx, 0), rn_in(ctx, 2), row, rn_int_at(splits, row), rn_int_at(splits, row + 1),
              out);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "RaggedRange",
     .device = "CPU",
     .types = {{"T", RN_TYPES_INDEX | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = range},
};
RN_KERNEL_FAMILY(cpu_ragged_range, rows);
