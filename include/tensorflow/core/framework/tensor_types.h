// TTypes: Eigen's views of tensors.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TENSOR_TYPES_H_
#define TENSORFLOW_CORE_FRAMEWORK_TENSOR_TYPES_H_

#include "tensorflow/core/platform/eigen.h"

namespace tensorflow {

template <typename T, int NDIMS = 1, typename IndexType = Eigen::DenseIndex>
struct TTypes {
  template <typename Element, int kRank>
  using Plain = Eigen::Tensor<Element, kRank, Eigen::RowMajor, IndexType>;
  template <typename Element>
  using PlainScalar = Eigen::TensorFixedSize<Element, Eigen::Sizes<>, Eigen::RowMajor, IndexType>;
  template <typename Value>
  using AlignedMap = Eigen::TensorMap<Value, Eigen::Aligned>;

  typedef AlignedMap<Plain<T, NDIMS>> Tensor;
  typedef AlignedMap<Plain<const T, NDIMS>> ConstTensor;
  typedef Eigen::TensorMap<Plain<T, NDIMS>> UnalignedTensor;
  typedef Eigen::TensorMap<Plain<const T, NDIMS>> UnalignedConstTensor;
  typedef Eigen::TensorMap<Eigen::Tensor<T, NDIMS, Eigen::RowMajor, int>, Eigen::Aligned>
      Tensor32Bit;
  typedef AlignedMap<PlainScalar<T>> Scalar;
  typedef AlignedMap<PlainScalar<const T>> ConstScalar;
  typedef Eigen::TensorMap<PlainScalar<T>> UnalignedScalar;
  typedef Eigen::TensorMap<PlainScalar<const T>> UnalignedConstScalar;
  typedef AlignedMap<Plain<T, 1>> Flat;
  typedef AlignedMap<Plain<const T, 1>> ConstFlat;
  typedef AlignedMap<Plain<T, 1>> Vec;
  typedef AlignedMap<Plain<const T, 1>> ConstVec;
  typedef Eigen::TensorMap<Plain<T, 1>> UnalignedFlat;
  typedef Eigen::TensorMap<Plain<const T, 1>> UnalignedConstFlat;
  typedef Eigen::TensorMap<Plain<T, 1>> UnalignedVec;
  typedef Eigen::TensorMap<Plain<const T, 1>> UnalignedConstVec;
  typedef AlignedMap<Plain<T, 2>> Matrix;
  typedef AlignedMap<Plain<const T, 2>> ConstMatrix;
  typedef Eigen::TensorMap<Plain<T, 2>> UnalignedMatrix;
  typedef Eigen::TensorMap<Plain<const T, 2>> UnalignedConstMatrix;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TENSOR_TYPES_H_
