// Levels with a scale and a zero point, for the whole tensor or per index of one axis: what the
// Uniform ops share. A value is (level - zero point) * scale.
#ifndef RUNNEL_KERNELS_CPU_QUANT_UNIFORM_H_
#define RUNNEL_KERNELS_CPU_QUANT_UNIFORM_H_

#include "kernels/cpu/array.h"

// How one tensor is quantized: the attributes.
typedef struct rn_uniform_attrs_t {
  int64_t axis;       // -1: one scale
  int64_t low, high;  // levels
} rn_uniform_attrs_t;

// Operands by number, as far as an op has them: lhs or the input, rhs, the output.
typedef struct rn_uniform_state_t {
  rn_uniform_attrs_t operands[3];
} rn_uniform_state_t;
RN_MUST_USE rn_status_t rn_uniform_init(const rn_kernel_init_t* init, void* state);

// A call's scales and zero points of one tensor.
typedef struct rn_uniform_scales_t {
  const float* scales;
  const int32_t* zeros;
  int64_t count;  // 1, or the size of the axis
  int64_t inner;  // elements behind the axis
} rn_uniform_scales_t;

// The scales of a tensor of |shape|, in inputs |at| and the next.
RN_MUST_USE rn_status_t rn_uniform_scales(const rn_kernel_ctx_t* ctx,
                                          const rn_uniform_attrs_t* attrs, rn_shape_t shape, int at,
                                          rn_uniform_scales_t* out);
// INVALID_ARGUMENT if a scale of |name| is not positive.
RN_MUST_USE rn_status_t rn_uniform_check_positive(const rn_uniform_scales_t* scales,
                                                  const char* name);

// Element |i| of a tensor of levels.
static inline int64_t rn_uniform_level(const rn_tensor_t* x, int64_t i) {
  switch (x->dtype) {
    case RN_QINT8:
      return RN_DATA(x, const int8_t)[i];
    case RN_QUINT8:
      return RN_DATA(x, const uint8_t)[i];
    default:
      return RN_DATA(x, const int32_t)[i];
  }
}
// Writes element |i|, clipped to the levels of |attrs|.
void rn_uniform_put(rn_tensor_t* y, int64_t i, double level, const rn_uniform_attrs_t* attrs);
// |value|, an integer, times |factor| in fixed point: 31 bits of the factor, rounded once.
double rn_uniform_rescale(int64_t value, double factor);

// Floats rounded to 256 levels from the least to the greatest of them, zero among them.
typedef struct rn_uniform_range_t {
  float scale, inverse, zero;
} rn_uniform_range_t;
rn_uniform_range_t rn_uniform_range(float min, float max);
// The level of |x|, less that of zero.
float rn_uniform_round(const rn_uniform_range_t* range, float x);

#endif  // RUNNEL_KERNELS_CPU_QUANT_UNIFORM_H_
