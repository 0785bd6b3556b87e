// Conversion between levels and values: see quantized.h.
#include "kernels/cpu/quant/quantized.h"

#include <math.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/loops.h"

// Elements converted at a time, so that they fit the L1 cache.
#define BLOCK 512

const rn_quant_table_t* rn_quant_table(void) { return RN_ISA_PICK(&rn_quant_); }

int64_t rn_quant_lowest(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_QINT8:
      return INT8_MIN;
    case RN_QINT16:
      return INT16_MIN;
    case RN_QINT32:
      return INT32_MIN;
    default:
      return 0;
  }
}

static int64_t steps_of(rn_dtype_t dtype) { return INT64_C(1) << (8 * rn_dtype_size(dtype)); }

int64_t rn_quant_highest(rn_dtype_t dtype) { return rn_quant_lowest(dtype) + steps_of(dtype) - 1; }

// The distance between two limits of a type, as a float.
static double range_of(rn_dtype_t dtype, rn_quant_limits_t limits) {
  double steps = (double)steps_of(dtype);
  return (double)(limits.max - limits.min) * (steps / (steps - 1.0));
}

int64_t rn_quant_level(rn_dtype_t dtype, float x, rn_quant_limits_t limits) {
  int64_t lowest = rn_quant_lowest(dtype);
  if (limits.min == limits.max) return lowest;
  double scale = (double)steps_of(dtype) / range_of(dtype, limits);
  double level = round(x * scale) - round(limits.min * scale);
  if (!(level > -0x1p62)) return INT64_MIN / 2;
  return level < 0x1p62 ? (int64_t)level + lowest : INT64_MAX / 2;
}

int64_t rn_quant_level_inside(rn_dtype_t dtype, float x, rn_quant_limits_t limits) {
  int64_t level = rn_quant_level(dtype, x, limits);
  int64_t lowest = rn_quant_lowest(dtype), highest = rn_quant_highest(dtype);
  return level < lowest ? lowest : level > highest ? highest : level;
}

float rn_quant_value(rn_dtype_t dtype, int64_t level, rn_quant_limits_t limits) {
  if (limits.min == limits.max) return limits.min;
  double scale = range_of(dtype, limits) / (double)steps_of(dtype);
  float step = (float)scale;
  // As in stock, the first value and the level are rounded to float; the rest is in double.
  double first = roundf(limits.min / step) * step;
  double offset = (double)(float)level - (double)rn_quant_lowest(dtype);
  return (float)(first + offset * scale);
}

int64_t rn_quant_level_again(rn_dtype_t from, int64_t level, rn_quant_limits_t limits,
                             rn_dtype_t to, rn_quant_limits_t to_limits) {
  return rn_quant_level_inside(to, rn_quant_value(from, level, limits), to_limits);
}

rn_quant_in_t rn_quant_in(rn_dtype_t dtype, rn_quant_limits_t limits) {
  float lowest = (float)rn_quant_lowest(dtype), highest = (float)rn_quant_highest(dtype);
  float scale = limits.max == limits.min
                    ? 0
                    : (float)(((double)steps_of(dtype) - 1.0) / (limits.max - limits.min));
  return (rn_quant_in_t){
      .low = -INFINITY,
      .high = INFINITY,
      .scale = scale,
      .shift = roundf(limits.min * scale) - lowest,
      .least = lowest,
      .most = highest < 0x1p31f ? highest : 0x1.fffffep30f,  // the next float exceeds int32
  };
}

rn_quant_out_t rn_quant_out(rn_dtype_t dtype, rn_quant_limits_t limits) {
  float scale = (float)((limits.max - limits.min) / ((double)steps_of(dtype) - 1.0));
  float first = limits.max == limits.min ? limits.min : roundf(limits.min / scale) * scale;
  return (rn_quant_out_t){.scale = scale, .base = first - (float)rn_quant_lowest(dtype) * scale};
}

static void cast(rn_dtype_t from, const void* x, rn_dtype_t to, void* out, int64_t n) {
  rn_casts()->fn[rn_dtype_stored(from)][rn_dtype_stored(to)](NULL, &x, &(int){1}, out, n);
}

void rn_quant_levels(const rn_quant_in_t* how, const float* x, rn_dtype_t dtype, void* out,
                     int64_t n) {
  int32_t block[BLOCK];
  const size_t size = rn_dtype_size(dtype);
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t some = n - at < BLOCK ? n - at : BLOCK;
    if (dtype == RN_QINT32) {
      rn_quant_table()->levels(how, x + at, some, (int32_t*)out + at);
    } else {
      rn_quant_table()->levels(how, x + at, some, block);
      cast(RN_INT32, block, dtype, (char*)out + (size_t)at * size, some);
    }
  }
}

void rn_quant_values(const rn_quant_out_t* how, rn_dtype_t dtype, const void* x, float* out,
                     int64_t n) {
  const size_t size = rn_dtype_size(dtype);
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t some = n - at < BLOCK ? n - at : BLOCK;
    cast(dtype, (const char*)x + (size_t)at * size, RN_FLOAT, out + at, some);
    rn_quant_table()->values(how, out + at, some);
  }
}

void rn_quant_again(const rn_quant_out_t* out_of, rn_dtype_t from, const void* x,
                    const rn_quant_in_t* into, rn_dtype_t to, void* out, int64_t n) {
  float block[BLOCK];
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t some = n - at < BLOCK ? n - at : BLOCK;
    rn_quant_values(out_of, from, (const char*)x + (size_t)at * rn_dtype_size(from), block, some);
    rn_quant_levels(into, block, to, (char*)out + (size_t)at * rn_dtype_size(to), some);
  }
}

// The value of one level.
static float one_level(rn_dtype_t dtype, rn_quant_limits_t limits) {
  return (limits.max - limits.min) / (float)(rn_quant_highest(dtype) - rn_quant_lowest(dtype));
}

rn_quant_limits_t rn_quant_product_limits(rn_dtype_t a, rn_quant_limits_t a_limits, rn_dtype_t b,
                                          rn_quant_limits_t b_limits) {
  float one = one_level(a, a_limits) * one_level(b, b_limits);
  return (rn_quant_limits_t){one * (float)INT32_MIN, one * (float)INT32_MAX};
}

rn_status_t rn_quant_set_limits(rn_kernel_ctx_t* ctx, int first, rn_quant_limits_t limits) {
  rn_tensor_t *min = NULL, *max = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, first, RN_SHAPE_SCALAR, &min));
  RN_RETURN_IF_ERROR(rn_output(ctx, first + 1, RN_SHAPE_SCALAR, &max));
  *RN_DATA(min, float) = limits.min;
  *RN_DATA(max, float) = limits.max;
  return RN_OK;
}

rn_status_t rn_quant_check_scalars(const rn_kernel_ctx_t* ctx, int first, const char* const* names,
                                   int count) {
  for (int i = 0; i < count; ++i)
    if (rn_in(ctx, first + i)->rank != 0)
      return rn_invalid_argument("`%s` must be rank 0 but is rank %d", names[i],
                                 rn_in(ctx, first + i)->rank);
  return RN_OK;
}
