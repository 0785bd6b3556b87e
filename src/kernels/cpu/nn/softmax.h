// The checks of the softmax family, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_NN_SOFTMAX_H_
#define RUNNEL_KERNELS_CPU_NN_SOFTMAX_H_

#include "kernels/cpu/array.h"

static inline rn_status_t rn_softmax_check(const rn_tensor_t* logits) {
  return logits->rank < 1 ? rn_invalid_argument("logits must have >= 1 dimension, got []") : RN_OK;
}

static inline bool rn_cross_broadcast(const rn_tensor_t* a, const rn_tensor_t* b, int64_t* dims,
                                      int* out_rank) {
  int rank = a->rank > b->rank ? a->rank : b->rank;
  *out_rank = rank;
  for (int d = 0; d < rank; ++d) {
    int i = d - (rank - a->rank), j = d - (rank - b->rank);
    int64_t x = i < 0 ? 1 : rn_tensor_dim(a, i), y = j < 0 ? 1 : rn_tensor_dim(b, j);
    if (x != y && x != 1 && y != 1) return false;
    if (d < 2) dims[d] = x == 1 ? y : x;
  }
  return true;
}

// The shape of the gradient of SoftmaxCrossEntropyWithLogits.
static inline rn_status_t rn_cross_entropy_check(const rn_tensor_t* logits,
                                                 const rn_tensor_t* labels, int64_t dims[2]) {
  int rank = 0;
  if (!rn_cross_broadcast(logits, labels, dims, &rank))
    return rn_invalid_argument(
        "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
        rn_text_of(logits).text, rn_text_of(labels).text);
  if (rank != 2)
    return rn_invalid_argument(
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  return RN_OK;
}

static inline rn_status_t rn_sparse_cross_entropy_check(const rn_tensor_t* logits,
                                                        const rn_tensor_t* labels) {
  if (logits->rank != 2)
    return rn_invalid_argument("logits must be 2-D, but got shape %s", rn_text_of(logits).text);
  if (labels->rank != 1)
    return rn_invalid_argument("labels must be 1-D, but got shape %s", rn_text_of(labels).text);
  if (rn_tensor_dim(logits, 0) != rn_tensor_dim(labels, 0))
    return rn_invalid_argument(
        "logits and labels must have the same first dimension, got logits shape %s and labels "
        "shape %s",
        rn_text_of(logits).text, rn_text_of(labels).text);
  if (rn_tensor_dim(logits, 1) < 1)
    return rn_invalid_argument("Must have at least one class, but got logits shape %s",
                               rn_text_of(logits).text);
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_NN_SOFTMAX_H_
