// Transforms of Winograd's convolutions for one ISA level; kernels/cpu/nn/conv_winograd.c selects
// them.
//
// A tile of |size| × |size| pixels of y, 2 or 4 of them a side, comes from (size + 2)² points, each
// the product of a value of x and one of the filter. Channels are multiples of
// RN_WINOGRAD_CHANNELS.
#ifndef RUNNEL_KERNELS_CPU_ISA_WINOGRAD_H_
#define RUNNEL_KERNELS_CPU_ISA_WINOGRAD_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/conv.h"

// A multiple of a register's width at every ISA level.
#define RN_WINOGRAD_CHANNELS 16

// Matrices of one point each, |plane| elements apart, with rows |row| elements apart.
typedef struct rn_winograd_planes_t {
  float* data;
  int64_t row, plane;
} rn_winograd_planes_t;

typedef struct rn_winograd_fns_t {
  // The points of tiles [begin, end), counted over all images: a tile per row, a channel per
  // column. |zeros| has as many zeros as x has channels.
  void (*input)(const rn_conv_t* conv, int size, const float* x, const float* zeros, int64_t begin,
                int64_t end, rn_winograd_planes_t points);
  // The points of the channels [c0, c0 + n) of a 3 × 3 filter: an input channel per row, those of
  // [begin, end).
  void (*filter)(const rn_conv_t* conv, int size, const float* w, int64_t begin, int64_t end,
                 int64_t c0, int64_t n, rn_winograd_planes_t points);
  // The channels [c0, c0 + n) of tiles [begin, end) of y.
  void (*output)(const rn_conv_t* conv, int size, rn_winograd_planes_t points, int64_t begin,
                 int64_t end, int64_t c0, int64_t n, float* y);
} rn_winograd_fns_t;

RN_ISA_DECLARE(rn_winograd_fns_t, rn_winograd_, [1]);

#endif  // RUNNEL_KERNELS_CPU_ISA_WINOGRAD_H_
