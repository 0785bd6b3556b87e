// FakeQuant ops, as far as all devices share them.
#ifndef RUNNEL_KERNELS_CPU_QUANT_FAKE_QUANT_H_
#define RUNNEL_KERNELS_CPU_QUANT_FAKE_QUANT_H_

#include "framework/kernel.h"

// The state of the kernels.
typedef struct rn_fake_quant_t {
  float min, max;     // if they are attributes
  float first, last;  // levels
  bool has_bounds;    // the bounds are inputs
  bool has_channels;  // one pair of bounds per channel
} rn_fake_quant_t;
RN_MUST_USE rn_status_t rn_fake_quant_init(const rn_kernel_init_t* init, void* state);

// Bounds shifted so that zero is a level: |zero| steps of |scale| above |least|.
typedef struct rn_fake_quant_range_t {
  float least, most, scale, inverse;
  float zero;
} rn_fake_quant_range_t;
// For levels |first| to |last|, between |min| and |max|.
rn_fake_quant_range_t rn_fake_quant_range(float first, float last, float min, float max);

// What a call reads and writes.
typedef struct rn_fake_quant_view_t {
  const rn_tensor_t *x, *dy;     // |dy| is NULL unless the op is a gradient
  const rn_tensor_t *min, *max;  // NULL if they are attributes
  int64_t channels;              // the last dimension, or 1
  rn_tensor_t* out;              // of a gradient: that of |x|
  rn_tensor_t *dmin, *dmax;      // NULL if there are none
} rn_fake_quant_view_t;
// Checks the shapes and makes the outputs.
RN_MUST_USE rn_status_t rn_fake_quant_begin(rn_kernel_ctx_t* ctx, rn_fake_quant_view_t* out);

#endif  // RUNNEL_KERNELS_CPU_QUANT_FAKE_QUANT_H_
