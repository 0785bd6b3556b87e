// How a convolution is cut into pieces that run in a thread each. Private to conv_cut.c and
// conv_float.c; a test asks for the pieces of the usual networks.
//
// Sizes alone decide, and what oneDNN has for them: not the number of threads, nor what was asked
// before. Which blocks of the filter oneDNN wants depends on the size of a piece, and for other
// blocks it may have nothing but its reference loops: so pieces of different sizes may each have a
// layout of their own.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_

#include "kernels/cpu/nn/conv_plan.h"

#define RN_CONV_MOST_CUTS 64

// A part of the work that one thread does: images, or rows of one.
typedef struct rn_conv_piece_t {
  rn_conv_plan_t* plan;
  int64_t x, y;    // where it begins, in elements
  int32_t layout;  // of the filter
  void* w;         // the filter in that layout, or the part of its gradient
} rn_conv_piece_t;

// A layout that pieces have the filter in.
typedef struct rn_conv_layout_t {
  rn_conv_plan_t* plan;  // Borrowed; the first that has it
  rn_tensor_t kept;      // the filter in it, if that is kept between calls
} rn_conv_layout_t;

typedef struct rn_conv_cut_t {
  rn_conv_cache_t* cache;  // Borrowed; set by the caller, all else zeroed
  rn_conv_piece_t pieces[RN_CONV_MOST_CUTS];
  int32_t count;
  rn_conv_layout_t layouts[RN_CONV_MOST_LAYOUTS];
  int32_t layout_count;
} rn_conv_cut_t;

// Cuts |conv|: the rows of its images, or else the batch, or else not at all, into pieces that
// oneDNN does well. |*out_possible| is false if there is no such cut. The caller calls
// rn_conv_cut_drop, whatever the outcome.
RN_MUST_USE rn_status_t rn_conv_cut(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                    const rn_conv_t* conv, bool* out_possible);
void rn_conv_cut_drop(rn_conv_cut_t* cut);

// What rn_conv_cut tries, one by one: |pieces| pieces of the rows of each image, which must be at
// most RN_CONV_MOST_CUTS in all; |images| images for each piece, of which that holds, too.
RN_MUST_USE rn_status_t rn_conv_cut_rows(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                         const rn_conv_t* conv, int64_t pieces, bool* out_possible);
RN_MUST_USE rn_status_t rn_conv_cut_images(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                           const rn_conv_t* conv, int64_t images,
                                           bool* out_possible);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_
