// Loops over spans of elements (isa/spans.h) for this CPU's ISA level.
#ifndef RUNNEL_KERNELS_CPU_SPANS_H_
#define RUNNEL_KERNELS_CPU_SPANS_H_

#include "kernels/cpu/isa/spans.h"
#include "tensor/tensor.h"

const rn_spans_t* rn_spans(void);

// Elements [begin, begin + n) of an int16, int32 or int64 tensor, for loops that read many indices.
static inline void rn_read_indices(const rn_tensor_t* indices, int64_t begin, int64_t n,
                                   int64_t* out) {
  if (indices->dtype == RN_INT16)
    for (int64_t i = 0; i < n; ++i) out[i] = RN_DATA(indices, const int16_t)[begin + i];
  else if (indices->dtype == RN_INT32)
    for (int64_t i = 0; i < n; ++i) out[i] = RN_DATA(indices, const int32_t)[begin + i];
  else
    memcpy(out, RN_DATA(indices, const int64_t) + begin, (size_t)n * sizeof *out);
}

#endif  // RUNNEL_KERNELS_CPU_SPANS_H_
