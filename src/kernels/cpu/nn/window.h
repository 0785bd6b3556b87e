// Sliding windows over images: the geometry shared by convolution and pooling.
#ifndef RUNNEL_KERNELS_CPU_NN_WINDOW_H_
#define RUNNEL_KERNELS_CPU_NN_WINDOW_H_

#include "framework/kernel.h"

typedef enum rn_padding_t {
  RN_PADDING_VALID,
  RN_PADDING_SAME,
  RN_PADDING_EXPLICIT,
} rn_padding_t;

// The attributes of an op with windows over images, as stored in its kernel. Axes are 0 batch, 1
// rows, 2 columns, 3 channels, whatever the data format.
typedef struct rn_window_attrs_t {
  int64_t strides[4], dilations[4];
  int64_t pads[4][2];  // before and after; EXPLICIT only
  rn_padding_t padding;
  bool is_nchw;
} rn_window_attrs_t;

// One axis: a window of |filter| elements, |dilation| apart, with |stride|.
typedef struct rn_window_axis_t {
  int64_t in, filter, stride, dilation;
  int64_t before, after;  // padding
  int64_t out;
} rn_window_axis_t;

// Reads padding, explicit_paddings and data_format if the op has them, strides (unless |strides| is
// NULL, for ops that take them as inputs) and dilations, of four values each.
RN_MUST_USE rn_status_t rn_window_init(const rn_kernel_init_t* init, const char* strides,
                                       rn_window_attrs_t* out);
// INVALID_ARGUMENT, with stock's message, unless rows and columns have one stride and batch and
// depth have none.
RN_MUST_USE rn_status_t rn_window_check_strides(const rn_window_attrs_t* attrs);
// Permutes a list over the axes of a tensor to the order of rn_window_attrs_t.
void rn_window_order(bool is_nchw, const int64_t* list, int64_t* out);

// Fills |out| for image axis |axis| (1 or 2). INVALID_ARGUMENT with stock's message if the output
// size would be negative.
RN_MUST_USE rn_status_t rn_window_axis(const rn_window_attrs_t* attrs, int axis, int64_t in,
                                       int64_t filter, rn_window_axis_t* out);

// The part [*out_begin, *out_end) of the window at output |at| that lies inside the input, as input
// positions. For dilation 1 only.
static inline void rn_window_at(const rn_window_axis_t* axis, int64_t at, int64_t* out_begin,
                                int64_t* out_end) {
  int64_t begin = at * axis->stride - axis->before, end = begin + axis->filter;
  *out_begin = begin < 0 ? 0 : begin;
  *out_end = end > axis->in ? axis->in : end;
}

#endif  // RUNNEL_KERNELS_CPU_NN_WINDOW_H_
