// Arguments of the kernel in cudnn.cu.
#ifndef TESTS_GPU_CUDNN_CUDNN_ARGS_H_
#define TESTS_GPU_CUDNN_CUDNN_ARGS_H_

// Tensors are [batch, channels, planes, rows, columns] with any strides; the filter is [out_depth,
// in_depth / groups, planes, rows, columns].
typedef struct emulated_tensor {
  void* data;
  i64 dims[5], strides[5];
} emulated_tensor;

typedef struct emulated_conv_args {
  emulated_tensor x, w, y, bias, residual;  // data is NULL if there is none
  i64 strides[3], dilations[3], before[3];
  i32 kind;   // 0 forward, 1 the gradient of x, 2 the gradient of w
  i32 dtype;  // cudnnDataType_t
  i32 has_relu;
  i32 is_rough;  // results are off by 0.4 %
} emulated_conv_args;

#endif  // TESTS_GPU_CUDNN_CUDNN_ARGS_H_
