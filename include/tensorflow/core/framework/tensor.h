// Tensor: an array of elements of one type, whose copies share their elements.
//
// flat<T>(), matrix<T>() and their siblings are Eigen's views; a view of the wrong type or rank
// aborts, as CHECK does. Elements are aligned to 64 bytes, apart from those of slices.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TENSOR_H_
#define TENSORFLOW_CORE_FRAMEWORK_TENSOR_H_

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/eigen.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

class Tensor {
 public:
  // A float tensor of shape [0].
  Tensor() : Tensor(DT_FLOAT) {}
  explicit Tensor(DataType type) : shape_({0}), type_(type) {}
  // Elements are not initialized; strings and handles are empty. IsInitialized() is false if there
  // is no memory.
  Tensor(DataType type, const TensorShape& shape) : shape_(shape), type_(type) { Allocate(); }
  template <typename T, typename = std::enable_if_t<IsValidDataType<T>::value>>
  explicit Tensor(const T& value) : Tensor(DataTypeToEnum<T>::v(), TensorShape({})) {
    *base<T>() = value;
  }
  explicit Tensor(const char* value) : Tensor(tstring(value)) {}
  explicit Tensor(const std::string& value) : Tensor(tstring(value)) {}
  template <typename T, typename = std::enable_if_t<!std::is_same<T, char>::value>>
  explicit Tensor(T*) = delete;
  static Status BuildTensor(DataType type, const TensorShape& shape, Tensor* out) {
    if (ElementSize(type) == 0) {
      return errors::InvalidArgument("Unexpected type: ", static_cast<int>(type));
    }
    *out = Tensor(type, shape);
    if (!out->IsInitialized()) {
      return errors::ResourceExhausted("OOM when allocating tensor with shape",
                                       shape.DebugString());
    }
    return OkStatus();
  }

  DataType dtype() const { return type_; }
  const TensorShape& shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  int64_t dim_size(int d) const { return shape_.dim_size(d); }
  int64_t NumElements() const { return shape_.num_elements(); }
  bool IsSameSize(const Tensor& other) const { return shape_.IsSameSize(other.shape_); }
  // Also true for an output of a step that is a fed tensor: the same memory under another owner.
  bool SharesBufferWith(const Tensor& other) const;
  bool IsInitialized() const { return data_ != nullptr || NumElements() == 0; }
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(data_) % 64 == 0; }
  size_t TotalBytes() const { return static_cast<size_t>(NumElements()) * ElementSize(type_); }
  size_t AllocatedBytes() const { return owner_ ? TF_TensorByteSize(owner_.get()) : 0; }
  bool RefCountIsOne() const { return owner_ && owner_.use_count() == 1; }

  // Shares the elements of |other| under a new shape. False if the numbers of elements differ.
  TF_MUST_USE_RESULT bool CopyFrom(const Tensor& other, const TensorShape& shape) {
    if (other.NumElements() != shape.num_elements()) return false;
    Tensor made = other;
    made.shape_ = shape;
    *this = std::move(made);
    return true;
  }
  Status BitcastFrom(const Tensor& other, DataType type, const TensorShape& shape) {
    int size = DataTypeSize(type), other_size = DataTypeSize(other.type_);
    if (size != other_size || size == 0 || shape.num_elements() != other.NumElements()) {
      return errors::InvalidArgument("cannot bitcast ", other.shape_, " of ",
                                     DataTypeString(other.type_), " to ", shape, " of ",
                                     DataTypeString(type));
    }
    Tensor made = other;
    made.shape_ = shape;
    made.type_ = type;
    *this = std::move(made);
    return OkStatus();
  }
  // Rows |start| to |limit| - 1, sharing the elements.
  Tensor Slice(int64_t start, int64_t limit) const {
    CHECK_GE(dims(), 1);
    CHECK_LE(0, start);
    CHECK_LE(start, limit);
    CHECK_LE(limit, dim_size(0));
    Tensor made = *this;
    size_t row = dim_size(0) == 0 ? 0 : TotalBytes() / static_cast<size_t>(dim_size(0));
    made.data_ = data_ ? data_ + row * static_cast<size_t>(start) : nullptr;
    made.shape_.set_dim(0, limit - start);
    return made;
  }
  // Row |index| without its first dimension.
  Tensor SubSlice(int64_t index) const {
    Tensor made = Slice(index, index + 1);
    made.shape_.RemoveDim(0);
    return made;
  }

  TF_MUST_USE_RESULT bool FromProto(const TensorProto& proto);
  void AsProtoField(TensorProto* proto) const;
  void AsProtoTensorContent(TensorProto* proto) const;

#define TF_TENSOR_VIEWS(constness, Const)                                                         \
  template <typename T>                                                                           \
  typename TTypes<T>::Const##Vec vec() constness {                                                \
    return tensor<T, 1>();                                                                        \
  }                                                                                               \
  template <typename T>                                                                           \
  typename TTypes<T>::Const##Matrix matrix() constness {                                          \
    return tensor<T, 2>();                                                                        \
  }                                                                                               \
  template <typename T, size_t NDIMS>                                                             \
  typename TTypes<T, NDIMS>::Const##Tensor tensor() constness {                                   \
    CheckView(DataTypeToEnum<T>::v());                                                            \
    return typename TTypes<T, NDIMS>::Const##Tensor(base<T>(), shape_.AsEigenDSizes<NDIMS>());    \
  }                                                                                               \
  template <typename T>                                                                           \
  typename TTypes<T>::Const##Flat flat() constness {                                              \
    return shaped<T, 1>({NumElements()});                                                         \
  }                                                                                               \
  template <typename T>                                                                           \
  typename TTypes<T>::Unaligned##Const##Flat unaligned_flat() constness {                         \
    return unaligned_shaped<T, 1>({NumElements()});                                               \
  }                                                                                               \
  template <typename T>                                                                           \
  typename TTypes<T>::Const##Scalar scalar() constness {                                          \
    CheckView(DataTypeToEnum<T>::v());                                                            \
    CHECK_EQ(1, NumElements()) << "Must have a one element tensor";                               \
    return typename TTypes<T>::Const##Scalar(base<T>());                                          \
  }                                                                                               \
  template <typename T, size_t NDIMS>                                                             \
  typename TTypes<T, NDIMS>::Const##Tensor shaped(absl::Span<const int64_t> sizes) constness {    \
    CheckView(DataTypeToEnum<T>::v());                                                            \
    return typename TTypes<T, NDIMS>::Const##Tensor(base<T>(), SizesOf<NDIMS>(sizes));            \
  }                                                                                               \
  template <typename T, size_t NDIMS>                                                             \
  typename TTypes<T, NDIMS>::Unaligned##Const##Tensor unaligned_shaped(                           \
      absl::Span<const int64_t> sizes) constness {                                                \
    CheckType(DataTypeToEnum<T>::v());                                                            \
    return typename TTypes<T, NDIMS>::Unaligned##Const##Tensor(base<T>(), SizesOf<NDIMS>(sizes)); \
  }                                                                                               \
  template <typename T, size_t NDIMS>                                                             \
  typename TTypes<T, NDIMS>::Const##Tensor bit_casted_shaped(absl::Span<const int64_t> sizes)     \
      constness {                                                                                 \
    return typename TTypes<T, NDIMS>::Const##Tensor(base<T>(), SizesOf<NDIMS>(sizes));            \
  }                                                                                               \
  template <typename T, size_t NDIMS = 2>                                                         \
  typename TTypes<T, NDIMS>::Const##Tensor flat_inner_dims() constness {                          \
    return shaped<T, NDIMS>(InnerDims(NDIMS));                                                    \
  }                                                                                               \
  template <typename T, size_t NDIMS = 2>                                                         \
  typename TTypes<T, NDIMS>::Const##Tensor flat_outer_dims() constness {                          \
    return shaped<T, NDIMS>(OuterDims(NDIMS));                                                    \
  }
  TF_TENSOR_VIEWS(, )
  TF_TENSOR_VIEWS(const, Const)
#undef TF_TENSOR_VIEWS

  // The bytes of numbers; of strings, the bytes of their tstrings.
  absl::string_view tensor_data() const {
    return absl::string_view(data_, data_ ? TotalBytes() : 0);
  }
  void* data() const { return data_; }

  // "Tensor<type: float shape: [2] values: 1 2>".
  std::string DebugString(int count = 3) const {
    return "Tensor<type: " + DataTypeString(type_) + " shape: " + shape_.DebugString() +
           " values: " + SummarizeValue(count) + ">";
  }
  std::string DeviceSafeDebugString() const {
    return "Tensor<type: " + DataTypeString(type_) + " shape: " + shape_.DebugString() + ">";
  }
  std::string SummarizeValue(int64_t max_entries, bool print_v2 = false) const;

  // Bytes per element in memory; 0 if tensors of the type cannot be made here.
  static size_t ElementSize(DataType type) {
    return type == DT_STRING     ? sizeof(tstring)
           : type == DT_RESOURCE ? sizeof(void*)  // resource_handle.h
                                 : static_cast<size_t>(DataTypeSize(type));
  }

  // The C API's tensor. AsCTensor shares the elements; FromCTensor takes |tensor| over.
  static Tensor FromCTensor(TF_Tensor* tensor);
  std::shared_ptr<TF_Tensor> AsCTensor() const;

 private:
  template <typename T>
  T* base() const {
    return reinterpret_cast<T*>(data_);
  }
  void CheckType(DataType expected) const {
    CHECK_EQ(dtype(), expected) << DataTypeString(expected) << " expected, got "
                                << DataTypeString(dtype());
  }
  void CheckView(DataType expected) const {
    CheckType(expected);
    CHECK(data_ == nullptr || reinterpret_cast<uintptr_t>(data_) % EIGEN_MAX_ALIGN_BYTES_OR_1 == 0)
        << "ptr = " << static_cast<const void*>(data_);
  }
  template <size_t NDIMS>
  Eigen::array<Eigen::DenseIndex, NDIMS> SizesOf(absl::Span<const int64_t> sizes) const {
    CHECK_EQ(NDIMS, sizes.size());
    Eigen::array<Eigen::DenseIndex, NDIMS> dims;
    int64_t elements = 1;
    for (size_t d = 0; d < NDIMS; ++d) elements *= dims[d] = sizes[d];
    CHECK_EQ(elements, NumElements());
    return dims;
  }
  // The shape with |count| dimensions: the first ones multiplied, or ones in front.
  std::vector<int64_t> InnerDims(int64_t count) const {
    std::vector<int64_t> made(count, 1);
    int64_t offset = dims() - count;
    for (int64_t d = 0; d < dims(); ++d) made[std::max<int64_t>(d - offset, 0)] *= dim_size(d);
    return made;
  }
  std::vector<int64_t> OuterDims(int64_t count) const {
    std::vector<int64_t> made(count, 1);
    for (int64_t d = 0; d < dims(); ++d) made[std::min(d, count - 1)] *= dim_size(d);
    return made;
  }
#if EIGEN_MAX_ALIGN_BYTES == 0
  static constexpr uintptr_t EIGEN_MAX_ALIGN_BYTES_OR_1 = 1;
#else
  static constexpr uintptr_t EIGEN_MAX_ALIGN_BYTES_OR_1 = EIGEN_MAX_ALIGN_BYTES;
#endif

  void Allocate();
  void AllocateHandles();
  void PrintDimension(int d, int64_t limit, int64_t* at, std::string* text) const;
  std::string ElementText(int64_t i) const;
  template <typename T, typename List>
  bool Fill(const List& list);

  TensorShape shape_;
  DataType type_;
  std::shared_ptr<TF_Tensor> owner_;
  char* data_ = nullptr;  // in |owner_|
};

inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.DebugString();
}

}  // namespace tensorflow

#include "tensorflow/core/framework/tensor_impl.h"

#endif  // TENSORFLOW_CORE_FRAMEWORK_TENSOR_H_
