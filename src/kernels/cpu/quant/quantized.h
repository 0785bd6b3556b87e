// Quantized numbers: 8-, 16- or 32-bit integers (levels) that represent floats between two limits,
// which are passed along as one-element float tensors.
#ifndef RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_H_
#define RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/quantized.h"

typedef struct rn_quant_limits_t {
  float min, max;
} rn_quant_limits_t;

const rn_quant_table_t* rn_quant_table(void);

// The least and the greatest level of a type.
int64_t rn_quant_lowest(rn_dtype_t dtype);
int64_t rn_quant_highest(rn_dtype_t dtype);

// Single numbers, computed in double: the level of |x|, unclamped (possibly outside the type) or
// clamped; and the value of a level.
int64_t rn_quant_level(rn_dtype_t dtype, float x, rn_quant_limits_t limits);
int64_t rn_quant_level_inside(rn_dtype_t dtype, float x, rn_quant_limits_t limits);
float rn_quant_value(rn_dtype_t dtype, int64_t level, rn_quant_limits_t limits);
// Converts a level of type |from| to type |to| with other limits.
int64_t rn_quant_level_again(rn_dtype_t from, int64_t level, rn_quant_limits_t limits,
                             rn_dtype_t to, rn_quant_limits_t to_limits);

// Parameters for converting many numbers, computed in float.
rn_quant_in_t rn_quant_in(rn_dtype_t dtype, rn_quant_limits_t limits);
rn_quant_out_t rn_quant_out(rn_dtype_t dtype, rn_quant_limits_t limits);
// Converts |n| floats to levels of |dtype|, and back.
void rn_quant_levels(const rn_quant_in_t* how, const float* x, rn_dtype_t dtype, void* out,
                     int64_t n);
void rn_quant_values(const rn_quant_out_t* how, rn_dtype_t dtype, const void* x, float* out,
                     int64_t n);
// Converts levels to levels.
void rn_quant_again(const rn_quant_out_t* out_of, rn_dtype_t from, const void* x,
                    const rn_quant_in_t* into, rn_dtype_t to, void* out, int64_t n);

// The limits of 32-bit products of numbers with these types and limits.
rn_quant_limits_t rn_quant_product_limits(rn_dtype_t a, rn_quant_limits_t a_limits, rn_dtype_t b,
                                          rn_quant_limits_t b_limits);

// Sets outputs |first| and |first| + 1 to the limits, as scalars.
RN_MUST_USE rn_status_t rn_quant_set_limits(rn_kernel_ctx_t* ctx, int first,
                                            rn_quant_limits_t limits);
// The first elements of inputs |i| and |i| + 1; the caller has checked that they exist.
static inline rn_quant_limits_t rn_quant_limits_at(const rn_kernel_ctx_t* ctx, int i) {
  return (rn_quant_limits_t){*RN_DATA(rn_in(ctx, i), const float),
                             *RN_DATA(rn_in(ctx, i + 1), const float)};
}
// INVALID_ARGUMENT "`min_x` must be rank 0 but is rank 1" unless the inputs from |first| on, called
// |names|, are scalars.
RN_MUST_USE rn_status_t rn_quant_check_scalars(const rn_kernel_ctx_t* ctx, int first,
                                               const char* const* names, int count);

#endif  // RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_H_
