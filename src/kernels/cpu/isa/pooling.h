// The loops of pooling, per generation of processor; kernels/cpu/nn/pooling.c chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_POOLING_H_
#define RUNNEL_KERNELS_CPU_ISA_POOLING_H_

#include "kernels/cpu/nn/window.h"

// Images with channels last. Which of the arrays a loop reads and writes is said with it.
typedef struct rn_pooling_t {
  rn_window_axis_t rows, columns;
  int64_t depth;
  int64_t in_size, out_size;  // elements of an image, before and after pooling
  const void* x;              // what was pooled
  void* y;                    // the result
  const void* pooled;         // in the second gradient: what pooling gave
  const void* dy;             // gradient of the result; in the second gradient, of dx
  void* dx;                   // gradient of what was pooled
  int64_t* argmax;            // places in the image; NULL: not wanted
  const void* lowest;         // of the type: what a maximum starts from
} rn_pooling_t;

// |max| and |average| write rows [begin, end) of y, counted over all images, |max| argmax too. The
// others go over whole images [begin, end): |max_gradient| adds dy to dx where x had its (first)
// maximum, |average_gradient| spreads it; |max_second| writes to y what dy has where x first is
// what pooling gave, 0 if it nowhere is.
typedef void (*rn_pooling_fn_t)(const rn_pooling_t* pooling, int64_t begin, int64_t end);
typedef struct rn_pooling_fns_t {
  rn_pooling_fn_t max, average, max_gradient, average_gradient, max_second;
} rn_pooling_fns_t;

extern const rn_pooling_fns_t rn_pooling_base[RN_DTYPE_COUNT];
#ifdef __x86_64__
extern const rn_pooling_fns_t rn_pooling_avx2[RN_DTYPE_COUNT];
extern const rn_pooling_fns_t rn_pooling_avx512[RN_DTYPE_COUNT];
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_POOLING_H_
