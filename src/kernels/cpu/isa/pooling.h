// Pooling loops for one ISA level; kernels/cpu/nn/pooling.c selects them.
#ifndef RUNNEL_KERNELS_CPU_ISA_POOLING_H_
#define RUNNEL_KERNELS_CPU_ISA_POOLING_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/window.h"

// Images with channels last. Each loop documents which of the arrays it reads and writes.
typedef struct rn_pooling_t {
  rn_window_axis_t rows, columns;
  int64_t depth;
  int64_t in_size, out_size;  // elements of an image, before and after pooling
  const void* x;              // the input of pooling
  void* y;                    // the result
  const void* pooled;         // second gradient: the output of pooling
  const void* dy;             // gradient of the output; second gradient: of dx
  void* dx;                   // gradient of the input
  int64_t* argmax;            // positions in the image; NULL if not needed
  const void* lowest;         // initial value of a maximum, in the element type
} rn_pooling_t;

// |max| and |average| write rows [begin, end) of y, counted over all images; |max| also writes
// argmax. The others process whole images [begin, end): |max_gradient| adds dy to dx at the (first)
// maximum of x, |average_gradient| spreads it; |max_second| writes to y the value of dy where x
// first equals the output of pooling, or 0 if it does nowhere.
typedef void (*rn_pooling_fn_t)(const rn_pooling_t* pooling, int64_t begin, int64_t end);
typedef struct rn_pooling_fns_t {
  rn_pooling_fn_t max, average, max_gradient, average_gradient, max_second;
  // Floats only: the average of |counts| planes, rows and pixels of |depth| channels, which are
  // |steps| elements apart.
  void (*average_box)(const float* x, const int64_t counts[3], const int64_t steps[3],
                      int64_t depth, float* y);
} rn_pooling_fns_t;

RN_ISA_DECLARE(rn_pooling_fns_t, rn_pooling_, [RN_DTYPE_COUNT]);

#endif  // RUNNEL_KERNELS_CPU_ISA_POOLING_H_
