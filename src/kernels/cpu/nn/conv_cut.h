// Splits a convolution into pieces, one thread each. Private to conv_cut.c and conv_float.c; a test
// checks the pieces of common networks.
//
// The split depends only on sizes and on what oneDNN has for them, not on the number of threads or
// on earlier calls. The filter layout that oneDNN needs depends on the size of a piece, and for
// other layouts it may have only its reference loops, so pieces of different sizes may use
// different layouts.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_

#include "kernels/cpu/nn/conv_plan.h"

#define RN_CONV_MOST_CUTS 64

// One thread's part of the work: images, or rows of one image.
typedef struct rn_conv_piece_t {
  rn_conv_plan_t* plan;
  int64_t x, y;    // start offsets in elements
  int32_t layout;  // index of the filter layout
  void* w;         // the filter in that layout, or a part of its gradient
} rn_conv_piece_t;

// A filter layout used by some pieces.
typedef struct rn_conv_layout_t {
  rn_conv_plan_t* plan;  // Borrowed; the first one with this layout
  rn_tensor_t kept;      // the repacked filter, if kept between calls
} rn_conv_layout_t;

typedef struct rn_conv_cut_t {
  rn_conv_cache_t* cache;  // Borrowed; set by the caller; all else zeroed
  rn_conv_piece_t pieces[RN_CONV_MOST_CUTS];
  int32_t count;
  rn_conv_layout_t layouts[RN_CONV_MOST_LAYOUTS];
  int32_t layout_count;
} rn_conv_cut_t;

// Splits |conv| by rows of its images, or else by images, or else not at all, into pieces that
// oneDNN runs well. |*out_possible| is false if there is no such split. The caller must always call
// rn_conv_cut_drop.
RN_MUST_USE rn_status_t rn_conv_cut(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                    const rn_conv_t* conv, bool* out_possible);
void rn_conv_cut_drop(rn_conv_cut_t* cut);

// The number of pieces if |conv| is split by images. That of a filter gradient is small if there
// are many weights for each pixel, since every piece sums into a gradient of its own.
int64_t rn_conv_cut_count(const rn_conv_t* conv);

// The attempts of rn_conv_cut: |pieces| pieces of the rows of each image; or |images| images per
// piece. There may be at most RN_CONV_MOST_CUTS pieces in all.
RN_MUST_USE rn_status_t rn_conv_cut_rows(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                         const rn_conv_t* conv, int64_t pieces, bool* out_possible);
RN_MUST_USE rn_status_t rn_conv_cut_images(rn_conv_cut_t* cut, const rn_dnnl_t* dnnl,
                                           const rn_conv_t* conv, int64_t images,
                                           bool* out_possible);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_CUT_H_
