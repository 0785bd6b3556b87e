// Arguments of softmax.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_SOFTMAX_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_SOFTMAX_ARGS_H_

// Logits of a short row that one thread of a warp keeps.
#define SOFTMAX_KEPT 32

typedef struct softmax_args {
  const void *logits, *labels;
  void *loss, *gradient;
  i64 rows, columns;
  i32 has_wide_labels;  // int64, not int32
} softmax_args;

// Per row, instead of a gradient.
typedef struct softmax_rows_args {
  softmax_args of;
  float *log_sum, *label;
} softmax_rows_args;

#endif  // RUNNEL_KERNELS_CUDA_NN_SOFTMAX_ARGS_H_
