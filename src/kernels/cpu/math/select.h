// The checks of Select and SelectV2, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_SELECT_H_
#define RUNNEL_KERNELS_CPU_MATH_SELECT_H_

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"

static inline rn_status_t rn_select_sizes_error(const rn_tensor_t* yes, const rn_tensor_t* no) {
  return rn_invalid_argument("'then' and 'else' must have the same size.  but received: %s vs. %s",
                             rn_text_of(yes).text, rn_text_of(no).text);
}

// Select: sets |*out_rows| to the number of rows that have one condition each, or to -1 if every
// element has its own.
static inline rn_status_t rn_select_check(const rn_kernel_ctx_t* ctx, int64_t* out_rows) {
  const rn_tensor_t *condition = rn_in(ctx, 0), *yes = rn_in(ctx, 1), *no = rn_in(ctx, 2);
  *out_rows = condition->count;
  if (condition->rank == 0)
    return rn_tensor_same_shape(yes, no) ? RN_OK : rn_select_sizes_error(yes, no);
  if (condition->rank == 1 && !rn_tensor_same_shape(condition, yes)) {
    if (yes->rank < 1)
      return rn_invalid_argument("'then' must be at least a vector, but saw shape: %s",
                                 rn_text_of(yes).text);
    if (yes->rank > 1) {
      if (rn_tensor_dim(yes, 0) != condition->count)
        return rn_invalid_argument(
            "Number of batches of 'then' must match size of 'cond', but saw: %lld vs. %lld",
            (long long)rn_tensor_dim(yes, 0), (long long)condition->count);
      return rn_tensor_same_shape(yes, no) ? RN_OK : rn_select_sizes_error(yes, no);
    }
  }
  *out_rows = -1;
  if (!rn_tensor_same_shape(condition, yes)) return rn_same_shape_error(ctx, 1);
  if (!rn_tensor_same_shape(condition, no)) return rn_same_shape_error(ctx, 2);
  return RN_OK;
}

// SelectV2: how its three inputs broadcast.
static inline rn_status_t rn_select_broadcast(const rn_kernel_ctx_t* ctx, rn_broadcast_t* out) {
  const rn_tensor_t* in[] = {rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)};
  if (rn_broadcast_make(in, 3, out)) return RN_OK;
  return rn_invalid_argument("condition %s, then %s, and else %s must be broadcastable",
                             rn_text_of(in[0]).text, rn_text_of(in[1]).text,
                             rn_text_of(in[2]).text);
}

#endif  // RUNNEL_KERNELS_CPU_MATH_SELECT_H_
