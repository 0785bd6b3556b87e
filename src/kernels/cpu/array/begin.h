// The first half of kernels of this family, shared with other devices: it checks shapes and host
// arguments, makes the output and works out sizes. None of it touches elements in device memory.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_BEGIN_H_
#define RUNNEL_KERNELS_CPU_ARRAY_BEGIN_H_

#include "framework/kernel.h"

// OneHot: the output seen as [outer, depth, inner], the indices as [outer, inner]. State: int64_t.
typedef struct rn_one_hot_t {
  rn_tensor_t* out;
  int64_t depth, inner;
} rn_one_hot_t;
RN_MUST_USE rn_status_t rn_one_hot_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_one_hot_begin(rn_kernel_ctx_t* ctx, rn_one_hot_t* out);

// Transpose and ConjugateTranspose, without the conjugation.
RN_MUST_USE rn_status_t rn_permute(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

// ReverseSequence. The state has the two axes.
typedef struct rn_sequence_axes_t {
  int64_t batch, seq;
} rn_sequence_axes_t;
RN_MUST_USE rn_status_t rn_reverse_sequence_init(const rn_kernel_init_t* init, void* state);
// Checks all but the lengths.
RN_MUST_USE rn_status_t rn_reverse_sequence_check(const rn_kernel_ctx_t* ctx);

// MatrixBandPart: which elements stay, in matrices of |rows| by |columns|. A negative number of
// diagonals is all of them.
typedef struct rn_band_part_t {
  rn_tensor_t* out;
  int64_t rows, columns, below, above;
} rn_band_part_t;
RN_MUST_USE rn_status_t rn_band_part_begin(rn_kernel_ctx_t* ctx, rn_band_part_t* out);

// Pad and PadV2: makes the output. The second half fills it and copies the input, on any device.
RN_MUST_USE rn_status_t rn_pad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);
RN_MUST_USE rn_status_t rn_pad_finish(rn_kernel_ctx_t* ctx, rn_tensor_t* out);

// MirrorPadGrad: makes the output. The state, an int, is 1 if the edge itself is not repeated.
RN_MUST_USE rn_status_t rn_mirror_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_mirror_pad_grad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

// TileGrad: makes the output.
RN_MUST_USE rn_status_t rn_tile_grad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

// ScatterNd: makes the output, of zeros. TensorScatterAdd and its like: a copy of the tensor.
RN_MUST_USE rn_status_t rn_scatter_nd_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);
RN_MUST_USE rn_status_t rn_tensor_scatter_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

// Unique and its variants: the axis, after checks.
RN_MUST_USE rn_status_t rn_unique_axis(const rn_kernel_ctx_t* ctx, int* out);

// LowerBound and UpperBound: checks both matrices and makes the output.
RN_MUST_USE rn_status_t rn_bound_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out);

// ExtractImagePatches and ExtractVolumePatches. Images are volumes of one plane; the three sizes
// are those of planes, rows and columns.
typedef struct rn_patches_t {
  int rank;  // of the input: 4 or 5
  int64_t sizes[3], strides[3], rates[3];
  bool is_same;
} rn_patches_t;
typedef struct rn_patches_view_t {
  const rn_patches_t* patches;
  const rn_tensor_t* x;
  rn_tensor_t* out;
  int64_t in[3], windows[3], before[3];  // |windows| along each axis
  int64_t channels;
} rn_patches_view_t;
RN_MUST_USE rn_status_t rn_patches_init(const rn_kernel_init_t* init, void* state);
RN_MUST_USE rn_status_t rn_patches_begin(rn_kernel_ctx_t* ctx, rn_patches_view_t* out);

#endif  // RUNNEL_KERNELS_CPU_ARRAY_BEGIN_H_
