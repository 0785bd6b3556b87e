// Arguments of the kernels in dilation.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_DILATION_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_DILATION_ARGS_H_

typedef struct dilation_axis_args {
  i64 in, filter, stride, dilation, before, out;
} dilation_axis_args;

typedef struct dilation_args {
  const void *x, *w, *dy;
  void* to;     // the result, or the parts of a filter gradient
  i32* places;  // of the maxima: position in the filter, or -1; NULL if they are not wanted
  dilation_axis_args rows, columns;
  i64 depth;
  i64 count;         // elements of the result
  i64 positions;     // batch * the output's rows and columns
  i64 parts, piece;  // of a filter gradient, |piece| positions each
} dilation_args;

#endif  // RUNNEL_KERNELS_CUDA_NN_DILATION_ARGS_H_
