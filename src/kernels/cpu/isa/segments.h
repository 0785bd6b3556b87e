// Rows of floats combined into one, for one ISA level; kernels/cpu/math/segment.c selects them.
#ifndef RUNNEL_KERNELS_CPU_ISA_SEGMENTS_H_
#define RUNNEL_KERNELS_CPU_ISA_SEGMENTS_H_

#include <stdint.h>

#include "kernels/cpu/isa.h"

// Combines |rows| rows of |width| floats, at least one. Sums and products of even and of odd rows
// are made apart and combined in the end; in maxima and minima each row is compared with those
// before it, and wins if the two are unordered.
typedef void (*rn_segment_fn_t)(const float* in, int64_t rows, int64_t width, float* out);

typedef struct rn_segment_fns_t {
  rn_segment_fn_t sum, product, max, min;
} rn_segment_fns_t;

RN_ISA_DECLARE(rn_segment_fns_t, rn_segments_);

#endif  // RUNNEL_KERNELS_CPU_ISA_SEGMENTS_H_
