// Loops of float convolutions for one ISA level; kernels/cpu/nn/conv_tiles.c and conv_float.c
// select them.
#ifndef RUNNEL_KERNELS_CPU_ISA_CONV_H_
#define RUNNEL_KERNELS_CPU_ISA_CONV_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/conv_blocks.h"

typedef struct rn_conv_fns_t {
  // Copies elements [first, last) of the patches of pixels [begin, end) to rows of |to|, |to_row|
  // elements apart. A patch is what one pixel of y is computed from: [filter rows, filter columns,
  // in_depth], with zeros outside the image. Pixels are counted over all images. One group only.
  void (*patches)(const rn_conv_t* conv, const float* x, int64_t begin, int64_t end, int64_t first,
                  int64_t last, float* to, int64_t to_row);
  // Runs the steps from |first| on over the channels [c0, c1) of the pixels [begin, end) of y.
  void (*follow)(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                 int64_t begin, int64_t end, int64_t c0, int64_t c1);
  // A block of y, of rows counted over all images and of channels, with the steps that follow;
  // |extra| may be NULL. As many groups as channels, of x and of y.
  void (*depthwise)(const rn_conv_t* conv, const rn_conv_data_t* data, const rn_conv_extra_t* extra,
                    const rn_conv_block_t* block);
  // Adds |n| elements to each of |rows| rows of |to|, which lie side by side; those of |from| are
  // |step| elements apart.
  void (*add)(const float* from, int64_t step, float* to, int64_t rows, int64_t n);
} rn_conv_fns_t;

RN_ISA_DECLARE(rn_conv_fns_t, rn_conv_, [1]);

#endif  // RUNNEL_KERNELS_CPU_ISA_CONV_H_
