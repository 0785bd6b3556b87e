// Softmax and cross-entropy loops for one ISA level; kernels/cpu/nn/softmax.c selects them.
#ifndef RUNNEL_KERNELS_CPU_ISA_SOFTMAX_H_
#define RUNNEL_KERNELS_CPU_ISA_SOFTMAX_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

typedef struct rn_softmax_fns_t {
  // |out| may be |logits|. |columns| > 0.
  void (*softmax)(const void* logits, void* out, int64_t rows, int64_t columns, bool is_log);
  // The steps are row strides in elements: 0 if one row serves all. |gradient| must not overlap
  // |logits| or |labels|.
  void (*cross_entropy)(const void* logits, int64_t logits_step, const void* labels,
                        int64_t labels_step, void* loss, void* gradient, int64_t rows,
                        int64_t columns);
  // |labels| must be in [0, columns).
  void (*sparse_cross_entropy)(const void* logits, const int64_t* labels, void* loss,
                               void* gradient, int64_t rows, int64_t columns);
} rn_softmax_fns_t;

RN_ISA_DECLARE(rn_softmax_fns_t, rn_softmax_, [RN_DTYPE_COUNT]);

#endif  // RUNNEL_KERNELS_CPU_ISA_SOFTMAX_H_
