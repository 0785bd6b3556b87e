// Cross: the cross product of 3-vectors.
#include "kernels/cpu/math/cross.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// X(enumerator, C type, type of the multiplication): unsigned, so that signed overflow wraps.
#define TYPES(X)                \
  X(INT8, int8_t, int32_t)      \
  X(INT16, int16_t, int32_t)    \
  X(INT32, uint32_t, uint32_t)  \
  X(INT64, uint64_t, uint64_t)  \
  X(UINT8, uint8_t, uint32_t)   \
  X(UINT16, uint16_t, uint32_t) \
  X(UINT32, uint32_t, uint32_t) \
  X(UINT64, uint64_t, uint64_t) \
  X(FLOAT, float, float)        \
  X(DOUBLE, double, double)

#define CROSS(N, T, W)                                                                      \
  case RN_##N:                                                                              \
    for (int64_t i = 0; i < count; i += 3) {                                                \
      const T *u = (const T*)a + i, *v = (const T*)b + i;                                   \
      W u0 = (W)u[0], u1 = (W)u[1], u2 = (W)u[2], v0 = (W)v[0], v1 = (W)v[1], v2 = (W)v[2]; \
      T x = (T)(u1 * v2 - u2 * v1), y = (T)(u2 * v0 - u0 * v2);                             \
      T z = (T)(u0 * v1 - u1 * v0);                                                         \
      ((T*)out)[i] = x, ((T*)out)[i + 1] = y, ((T*)out)[i + 2] = z;                         \
    }                                                                                       \
    break;

static void cross(rn_dtype_t dtype, const void* a, const void* b, void* out, int64_t count) {
  switch (dtype) {
    TYPES(CROSS)
    default:
      break;
  }
}

// Computes 16-bit floats in float and rounds once.
static rn_status_t cross_narrow(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, const rn_tensor_t* b,
                                rn_tensor_t* out) {
  const rn_vector_table_t* table = rn_vector_table();
  bool is_half = out->dtype == RN_HALF;
  rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  rn_tensor_t temp = {0};
  int64_t total = 2 * out->count;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  float *x = temp.data, *y = x + out->count;
  widen(a->data, x, out->count);
  widen(b->data, y, out->count);
  cross(RN_FLOAT, x, y, x, out->count);
  (is_half ? table->narrow_half : table->narrow_bfloat16)(x, out->data, out->count);
  rn_tensor_clear(&temp);
  return RN_OK;
}

static rn_status_t cross_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_cross_check(a, b));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &out));
  if (a->dtype == RN_HALF || a->dtype == RN_BFLOAT16) return cross_narrow(ctx, a, b, out);
  cross(a->dtype, a->data, b->data, out->data, out->count);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Cross", .device = "CPU", .types = {{"T", RN_TYPES_REAL}}, .compute = cross_compute},
};
RN_KERNEL_FAMILY(cpu_cross, rows);
