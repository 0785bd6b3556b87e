// SdcaShrinkL1: weights move towards zero, at most to it.
#include <math.h>

#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

typedef struct shrink_state_t {
  double by;
} shrink_state_t;

static rn_status_t shrink_init(const rn_kernel_init_t* init, void* state) {
  ((shrink_state_t*)state)->by =
      (double)rn_init_attr(init, "l1")->f / (double)rn_init_attr(init, "l2")->f;
  return RN_OK;
}

static rn_status_t shrink_compute(rn_kernel_ctx_t* ctx) {
  double by = ((const shrink_state_t*)ctx->state)->by;
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    rn_variable_t* variable = NULL;
    RN_RETURN_IF_ERROR(rn_variable_of(ctx, i, &variable));
    rn_mutex_lock(&variable->mutex);
    rn_status_t status = rn_variable_make_writable_locked(ctx, i, variable);
    float* weights = variable->value.data;
    for (int64_t w = 0; rn_ok(status) && w < variable->value.count; ++w) {
      double rest = fabs((double)weights[w]) - by;
      if (rest < 0) rest = 0;  // NaN, as of l1 and l2 that are both 0, stays
      weights[w] = (float)(rest * ((weights[w] > 0) - (weights[w] < 0)));
    }
    rn_mutex_unlock(&variable->mutex);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SdcaShrinkL1",
     .device = "CPU",
     .state_size = sizeof(shrink_state_t),
     .init = shrink_init,
     .compute = shrink_compute},
};
RN_KERNEL_FAMILY(cpu_shrink, rows);
