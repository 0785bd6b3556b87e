// Depthwise convolution loops for one ISA level; kernels/cpu/nn/depthwise.c selects them.
#ifndef RUNNEL_KERNELS_CPU_ISA_DEPTHWISE_H_
#define RUNNEL_KERNELS_CPU_ISA_DEPTHWISE_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/window.h"

// Convolves each channel of x with |multiplier| filters: y's channels are [depth, multiplier], the
// filter is [rows, columns, depth, multiplier].
typedef struct rn_depthwise_t {
  rn_window_axis_t rows, columns;
  int64_t depth, multiplier;
  void *x, *w, *y;
} rn_depthwise_t;

// |forward| writes rows [begin, end) of y, counted over all images, |input| the gradients of images
// [begin, end) into x. |filter| adds those of the images to w.
typedef void (*rn_depthwise_fn_t)(const rn_depthwise_t* conv, int64_t begin, int64_t end);
typedef struct rn_depthwise_fns_t {
  rn_depthwise_fn_t forward, input, filter;
} rn_depthwise_fns_t;

RN_ISA_DECLARE(rn_depthwise_fns_t, rn_depthwise_, [RN_DTYPE_COUNT]);

#endif  // RUNNEL_KERNELS_CPU_ISA_DEPTHWISE_H_
