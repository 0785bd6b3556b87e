// Functions on tensors: tensor::DeepCopy, Concat and Split.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TENSOR_UTIL_H_
#define TENSORFLOW_CORE_FRAMEWORK_TENSOR_UTIL_H_

#include <algorithm>
#include <cstring>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace tensor {
namespace internal {

// Copies |count| elements of |from|, beginning at |from_at|, to |to| at |to_at|.
inline void CopyElements(const Tensor& from, int64_t from_at, int64_t count, int64_t to_at,
                         Tensor* to) {
  if (count == 0) return;
  if (from.dtype() == DT_STRING) {
    const tstring* source = static_cast<const tstring*>(from.data()) + from_at;
    std::copy_n(source, count, static_cast<tstring*>(to->data()) + to_at);
    return;
  }
  size_t size = static_cast<size_t>(DataTypeSize(from.dtype()));
  std::memcpy(static_cast<char*>(to->data()) + static_cast<size_t>(to_at) * size,
              static_cast<const char*>(from.data()) + static_cast<size_t>(from_at) * size,
              static_cast<size_t>(count) * size);
}

}  // namespace internal

// Copies all elements of |input| to |output|, which has its type and shape.
inline void DeepCopy(const Tensor& input, Tensor* output) {
  internal::CopyElements(input, 0, input.NumElements(), 0, output);
}
// A tensor with elements of its own.
inline Tensor DeepCopy(const Tensor& input) {
  Tensor copy(input.dtype(), input.shape());
  DeepCopy(input, &copy);
  return copy;
}

// Joins tensors of one type along their first dimension; the other dimensions must be equal.
inline Status Concat(absl::Span<const Tensor> tensors, Tensor* result) {
  if (tensors.empty()) return errors::InvalidArgument("Cannot concatenate zero tensors");
  TensorShape shape = tensors[0].shape();
  int64_t rows = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dims() < 1)
      return errors::InvalidArgument("Cannot concatenate a zero-dimensional tensor");
    if (tensor.dtype() != tensors[0].dtype())
      return errors::InvalidArgument("Cannot concatenate tensors that have different data types");
    if (tensor.dims() != shape.dims())
      return errors::InvalidArgument("Cannot concatenate tensors of different ranks");
    for (int d = 1; d < shape.dims(); ++d) {
      if (tensor.dim_size(d) != shape.dim_size(d))
        return errors::InvalidArgument("Cannot concatenate tensors of shapes ", shape, " and ",
                                       tensor.shape());
    }
    rows += tensor.dim_size(0);
  }
  TF_RETURN_IF_ERROR(shape.SetDimWithStatus(0, rows));
  TF_RETURN_IF_ERROR(Tensor::BuildTensor(tensors[0].dtype(), shape, result));
  int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    internal::CopyElements(tensor, 0, tensor.NumElements(), at, result);
    at += tensor.NumElements();
  }
  return OkStatus();
}

// Cuts |tensor| along its first dimension into parts of |sizes| rows.
inline Status Split(const Tensor& tensor, absl::Span<const int64_t> sizes,
                    std::vector<Tensor>* result) {
  if (tensor.dims() < 1) return errors::InvalidArgument("Cannot split a zero-dimensional tensor");
  int64_t left = tensor.dim_size(0);
  for (int64_t size : sizes) {
    if (size < 0 || size > left)
      return errors::InvalidArgument("The sizes do not add up to ", tensor.dim_size(0));
    left -= size;
  }
  if (left)
    return errors::InvalidArgument(
        "The values in 'sizes' do not sum to the zeroth-dimension size "
        "of 'tensor'");
  int64_t at = 0;
  for (int64_t size : sizes) {
    TensorShape shape = tensor.shape();
    shape.set_dim(0, size);
    Tensor part;
    TF_RETURN_IF_ERROR(Tensor::BuildTensor(tensor.dtype(), shape, &part));
    internal::CopyElements(tensor, at, part.NumElements(), 0, &part);
    at += part.NumElements();
    result->push_back(part);
  }
  return OkStatus();
}

}  // namespace tensor
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TENSOR_UTIL_H_
