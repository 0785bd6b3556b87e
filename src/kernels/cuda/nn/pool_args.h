// Arguments of the kernels in pool.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_POOL_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_POOL_ARGS_H_

typedef struct pool_axis_args {
  i32 in, filter, stride, before, out;
  rn_div32 by_stride;
} pool_axis_args;

// Tensors are [outer, planes, rows, columns, inner]: inner is the depth with channels last, and 1
// with channels first. Kernels that handle packs of elements count inner in packs.
typedef struct pool_args {
  const void *x, *pooled, *dy;
  const void* places;  // of maxima: see pool_place; or the argmax that a gradient is given
  void* to;
  void* argmax;  // result, int64 or int32
  pool_axis_args axes[3];
  i64 inner;
  i64 count;           // elements or packs to walk over: those of x or of y
  rn_div32 divs[4];    // by the sizes of what is walked over: planes, rows, columns, inner
  i32 is_wide;         // |count| is too large for |divs|
  i32 is_volume;       // the rules of MaxPool3D and AvgPool3D
  i32 is_small;        // argmax is int32
  i32 includes_batch;  // argmax counts over all images
} pool_args;

#endif  // RUNNEL_KERNELS_CUDA_NN_POOL_ARGS_H_
