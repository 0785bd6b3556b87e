// Attributes and checks of TopK and InTopK, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_NN_TOPK_H_
#define RUNNEL_KERNELS_CPU_NN_TOPK_H_

#include <inttypes.h>

#include "kernels/cpu/array.h"

typedef struct rn_topk_t {
  int64_t k;  // of TopK; -1 if it is an input
  bool is_sorted;
} rn_topk_t;

static inline rn_status_t rn_topk_init(const rn_kernel_init_t* init, void* state) {
  rn_topk_t* topk = state;
  topk->k = rn_op_attr_index(init->op, RN_STR("k")) >= 0 ? rn_init_int(init, "k") : -1;
  topk->is_sorted = rn_init_bool(init, "sorted");
  return RN_OK;
}

static inline rn_status_t rn_topk_read_k(const rn_kernel_ctx_t* ctx, int64_t* out) {
  const rn_topk_t* state = ctx->state;
  *out = state->k;
  if (state->k >= 0 || ctx->kernel->input_count < 2) return RN_OK;
  const rn_tensor_t* k = rn_in(ctx, 1);
  if (k->rank != 0)
    return rn_invalid_argument("k must be scalar, got shape %s", rn_text_of(k).text);
  *out = rn_int_at(k, 0);
  return *out >= 0 ? RN_OK : rn_invalid_argument("Need k >= 0, got %" PRId64, *out);
}

// Reads |*out_k| and makes both outputs.
static inline rn_status_t rn_topk_outputs(rn_kernel_ctx_t* ctx, int64_t* out_k,
                                          rn_tensor_t** out_values, rn_tensor_t** out_places) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_topk_read_k(ctx, out_k));
  if (x->rank < 1) return rn_invalid_argument("input must be >= 1-D, got shape []");
  int64_t n = rn_tensor_dim(x, x->rank - 1), dims[RN_MAX_RANK];
  if (n < *out_k)
    return rn_invalid_argument(
        "input must have at least k columns. Had %" PRId64 ", needed %" PRId64, n, *out_k);
  memcpy(dims, rn_tensor_dims(x), x->rank * sizeof *dims);
  dims[x->rank - 1] = *out_k;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){x->rank, dims}, out_values));
  return rn_output(ctx, 1, (rn_shape_t){x->rank, dims}, out_places);
}

static inline rn_status_t rn_in_topk_check(const rn_tensor_t* predictions,
                                           const rn_tensor_t* targets) {
  if (predictions->rank != 2) return rn_invalid_argument("predictions must be 2-dimensional");
  if (targets->rank != 1) return rn_invalid_argument("targets must be 1-dimensional");
  int64_t rows = rn_tensor_dim(predictions, 0);
  if (rows == targets->count) return RN_OK;
  return rn_invalid_argument("First dimension of predictions %" PRId64
                             " must match length of targets %" PRId64,
                             rows, targets->count);
}

#endif  // RUNNEL_KERNELS_CPU_NN_TOPK_H_
