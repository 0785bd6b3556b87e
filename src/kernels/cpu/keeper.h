// What a kernel computes of an input once and keeps, because the input stays the same from step to
// step: weights in another layout or type.
#ifndef RUNNEL_KERNELS_CPU_KEEPER_H_
#define RUNNEL_KERNELS_CPU_KEEPER_H_

#include "base/sync.h"
#include "framework/kernel.h"

#define RN_KEEPER_MOST 4

// Zeroed memory keeps nothing, once its mutex is initialized. Calls may run concurrently.
typedef struct rn_keeper_t {
  rn_mutex_t mutex;
  // Guarded by the mutex: the input, and what was computed of it, unset where nothing was. The
  // input is held, so nothing may write to it meanwhile.
  rn_tensor_t source, values[RN_KEEPER_MOST];
} rn_keeper_t;

void rn_keeper_init(rn_keeper_t* kept);
void rn_keeper_clear(rn_keeper_t* kept);

// Fills |to|.
typedef rn_status_t (*rn_keeper_fn_t)(rn_kernel_ctx_t* ctx, void* arg, void* to);
// Value |which| (below RN_KEEPER_MOST) of |source|: that of an earlier call with the same source,
// or a new one, which |make| fills. The caller clears |*out|.
RN_MUST_USE rn_status_t rn_keeper_get(rn_kernel_ctx_t* ctx, rn_keeper_t* kept,
                                      const rn_tensor_t* source, int which, rn_dtype_t dtype,
                                      rn_shape_t shape, rn_keeper_fn_t make, void* arg,
                                      rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_KEEPER_H_
