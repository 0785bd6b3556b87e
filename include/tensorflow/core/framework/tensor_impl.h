// The longer functions of Tensor. Include tensor.h.
#ifndef TENSORFLOW_CORE_FRAMEWORK_TENSOR_IMPL_H_
#define TENSORFLOW_CORE_FRAMEWORK_TENSOR_IMPL_H_

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runnel/resources.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {

inline void Tensor::Allocate() {
  if (type_ == DT_RESOURCE) return AllocateHandles();
  size_t size = ElementSize(type_), count = static_cast<size_t>(NumElements()), bytes;
  if (size == 0 || __builtin_mul_overflow(size, count, &bytes) || bytes > SIZE_MAX - 64) return;
  size_t room = bytes == 0 ? 64 : (bytes + 63) / 64 * 64;  // aligned_alloc wants a multiple
  void* data = std::aligned_alloc(64, room);
  if (!data) return;
  TF_Tensor* made;
  TensorShape::Dims dims = shape_.dim_sizes();
  auto free_plain = [](void* data, size_t, void*) { std::free(data); };
  auto free_strings = [](void* data, size_t length, void*) {
    tstring* strings = static_cast<tstring*>(data);
    for (size_t i = 0; i < length / sizeof(tstring); ++i) strings[i].~tstring();
    std::free(data);
  };
  if (type_ == DT_STRING) {
    for (size_t i = 0; i < count; ++i) new (static_cast<tstring*>(data) + i) tstring();
  }
  made = TF_NewTensor(static_cast<TF_DataType>(type_), dims.data(), dims.size(), data, bytes,
                      type_ == DT_STRING ? +free_strings : +free_plain, nullptr);
  if (!made) return;
  owner_.reset(made, TF_DeleteTensor);
  data_ = static_cast<char*>(TF_TensorData(made));
}

inline void Tensor::AllocateHandles() {
  TensorShape::Dims dims = shape_.dim_sizes();
  CStatus status;
  owner_.reset(rn_resource_tensor(dims.data(), static_cast<int>(dims.size()), status),
               TF_DeleteTensor);
  if (!status.ok()) owner_.reset();
  data_ = owner_ ? static_cast<char*>(TF_TensorData(owner_.get())) : nullptr;
}

inline bool Tensor::SharesBufferWith(const Tensor& other) const {
  if (!owner_ || !other.owner_) return false;
  if (owner_ == other.owner_) return true;
  const char* begin = static_cast<const char*>(TF_TensorData(owner_.get()));
  const char* other_begin = static_cast<const char*>(TF_TensorData(other.owner_.get()));
  return begin < other_begin + TF_TensorByteSize(other.owner_.get()) &&
         other_begin < begin + TF_TensorByteSize(owner_.get());
}

inline Tensor Tensor::FromCTensor(TF_Tensor* tensor) {
  Tensor made(static_cast<DataType>(TF_TensorType(tensor)));
  std::vector<int64_t> dims;
  for (int d = 0; d < TF_NumDims(tensor); ++d) dims.push_back(TF_Dim(tensor, d));
  made.shape_ = TensorShape(dims);
  made.owner_.reset(tensor, TF_DeleteTensor);
  made.data_ = static_cast<char*>(TF_TensorData(tensor));
  return made;
}

inline std::shared_ptr<TF_Tensor> Tensor::AsCTensor() const {
  if (!owner_) return Tensor(type_, shape_).owner_;
  bool is_whole = data_ == TF_TensorData(owner_.get()) && TF_NumDims(owner_.get()) == dims() &&
                  TF_TensorType(owner_.get()) == static_cast<TF_DataType>(type_);
  for (int d = 0; is_whole && d < dims(); ++d) is_whole = TF_Dim(owner_.get(), d) == dim_size(d);
  if (is_whole) return owner_;
  if (ElementSize(type_) == 0 || type_ == DT_RESOURCE) return nullptr;
  // A slice, or another shape: a C tensor that keeps the elements' owner alive.
  auto release = [](void*, size_t, void* owner) {
    delete static_cast<std::shared_ptr<TF_Tensor>*>(owner);
  };
  TensorShape::Dims dims = shape_.dim_sizes();
  TF_Tensor* made =
      TF_NewTensor(static_cast<TF_DataType>(type_), dims.data(), static_cast<int>(dims.size()),
                   data_, TotalBytes(), +release, new std::shared_ptr<TF_Tensor>(owner_));
  return std::shared_ptr<TF_Tensor>(made, TF_DeleteTensor);
}

inline std::string Tensor::ElementText(int64_t i) const {
  switch (type_) {
    case DT_FLOAT:
      return absl::StrCat(base<float>()[i]);
    case DT_DOUBLE:
      return absl::StrCat(base<double>()[i]);
    case DT_HALF:
      return absl::StrCat(static_cast<float>(base<half>()[i]));
    case DT_BFLOAT16:
      return absl::StrCat(static_cast<float>(base<bfloat16>()[i]));
    case DT_INT8:
    case DT_QINT8:
      return absl::StrCat(static_cast<int>(base<int8>()[i]));
    case DT_UINT8:
    case DT_QUINT8:
      return absl::StrCat(static_cast<int>(base<uint8>()[i]));
    case DT_INT16:
    case DT_QINT16:
      return absl::StrCat(static_cast<int>(base<int16>()[i]));
    case DT_UINT16:
    case DT_QUINT16:
      return absl::StrCat(static_cast<int>(base<uint16>()[i]));
    case DT_INT32:
    case DT_QINT32:
      return absl::StrCat(base<int32>()[i]);
    case DT_UINT32:
      return absl::StrCat(base<uint32>()[i]);
    case DT_INT64:
      return absl::StrCat(base<int64>()[i]);
    case DT_UINT64:
      return absl::StrCat(base<uint64>()[i]);
    case DT_BOOL:
      return base<bool>()[i] ? "1" : "0";
    case DT_STRING:
      return absl::CEscape(absl::string_view(base<tstring>()[i]));
    case DT_COMPLEX64:
      return absl::StrCat("(", base<complex64>()[i].real(), ",", base<complex64>()[i].imag(), ")");
    case DT_COMPLEX128:
      return absl::StrCat("(", base<complex128>()[i].real(), ",", base<complex128>()[i].imag(),
                          ")");
    default:
      return "?";
  }
}

inline void Tensor::PrintDimension(int d, int64_t limit, int64_t* at, std::string* text) const {
  if (*at >= limit) return;
  bool is_last = d == dims() - 1;
  for (int64_t i = 0; i < dim_size(d); ++i) {
    bool is_open = *at < limit;
    if (is_last && !is_open) {
      if (d != 0) *text += "...";
      return;
    }
    if (is_last) {
      if (i > 0) *text += " ";
      *text += ElementText((*at)++);
      continue;
    }
    if (is_open) *text += "[";
    PrintDimension(d + 1, limit, at, text);
    if (is_open) *text += "]";
  }
}

inline std::string Tensor::SummarizeValue(int64_t max_entries, bool) const {
  if (max_entries < 0) max_entries = NumElements();
  int64_t limit = std::min(max_entries, NumElements());
  if (limit > 0 && (!IsInitialized() || !data_)) {
    return absl::StrCat("uninitialized Tensor of ", NumElements(), " elements of type ",
                        static_cast<int>(type_));
  }
  std::string text;
  int64_t at = 0;
  if (dims() == 0) {
    for (; at < limit; ++at) text += (at ? " " : "") + ElementText(at);
  } else {
    PrintDimension(0, limit, &at, &text);
  }
  if (NumElements() > limit) text += "...";
  return text;
}

// Fills the elements from a list whose last value repeats.
template <typename T, typename List>
bool Tensor::Fill(const List& list) {
  T* out = base<T>();
  int64_t count = NumElements(), given = list.size();
  if (given > count) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (given == 0) {
      out[i] = T();
    } else {
      out[i] = static_cast<T>(list[static_cast<int>(std::min(i, given - 1))]);
    }
  }
  return true;
}

namespace internal {
// Half numbers and complex numbers lie in lists of other numbers.
template <typename T, typename List>
struct BitsList {
  const List& list;
  int64_t size() const { return list.size(); }
  T operator[](int i) const { return Eigen::numext::bit_cast<T>(static_cast<uint16_t>(list[i])); }
};
template <typename T, typename List>
struct ComplexList {
  const List& list;
  int64_t size() const { return list.size() / 2; }
  T operator[](int i) const { return T(list[2 * i], list[2 * i + 1]); }
};
}  // namespace internal

inline bool Tensor::FromProto(const TensorProto& proto) {
  TensorShape shape;
  if (!TensorShape::BuildTensorShape(proto.tensor_shape(), &shape).ok()) return false;
  if (proto.dtype() == DT_INVALID) return false;
  Tensor made;
  if (!BuildTensor(proto.dtype(), shape, &made).ok()) return false;
  bool is_ok = true;
  typedef google::protobuf::RepeatedField<int32_t> Ints;
  if (!proto.tensor_content().empty() && made.type_ != DT_STRING) {
    is_ok = proto.tensor_content().size() == made.TotalBytes();
    if (is_ok && made.TotalBytes())
      std::memcpy(made.data_, proto.tensor_content().data(), made.TotalBytes());
  } else {
    switch (made.type_) {
      case DT_FLOAT:
        is_ok = made.Fill<float>(proto.float_val());
        break;
      case DT_DOUBLE:
        is_ok = made.Fill<double>(proto.double_val());
        break;
      case DT_HALF:
        is_ok = made.Fill<half>(internal::BitsList<half, Ints>{proto.half_val()});
        break;
      case DT_BFLOAT16:
        is_ok = made.Fill<bfloat16>(internal::BitsList<bfloat16, Ints>{proto.half_val()});
        break;
      case DT_INT8:
      case DT_QINT8:
        is_ok = made.Fill<int8>(proto.int_val());
        break;
      case DT_UINT8:
      case DT_QUINT8:
        is_ok = made.Fill<uint8>(proto.int_val());
        break;
      case DT_INT16:
      case DT_QINT16:
        is_ok = made.Fill<int16>(proto.int_val());
        break;
      case DT_UINT16:
      case DT_QUINT16:
        is_ok = made.Fill<uint16>(proto.int_val());
        break;
      case DT_INT32:
      case DT_QINT32:
        is_ok = made.Fill<int32>(proto.int_val());
        break;
      case DT_INT64:
        is_ok = made.Fill<int64>(proto.int64_val());
        break;
      case DT_UINT32:
        is_ok = made.Fill<uint32>(proto.uint32_val());
        break;
      case DT_UINT64:
        is_ok = made.Fill<uint64>(proto.uint64_val());
        break;
      case DT_BOOL:
        is_ok = made.Fill<bool>(proto.bool_val());
        break;
      case DT_STRING:
        is_ok = made.Fill<tstring>(proto.string_val());
        break;
      case DT_COMPLEX64:
        is_ok = made.Fill<complex64>(
            internal::ComplexList<complex64, google::protobuf::RepeatedField<float>>{
                proto.scomplex_val()});
        break;
      case DT_COMPLEX128:
        is_ok = made.Fill<complex128>(
            internal::ComplexList<complex128, google::protobuf::RepeatedField<double>>{
                proto.dcomplex_val()});
        break;
      default:
        is_ok = false;
    }
  }
  if (is_ok) *this = std::move(made);
  return is_ok;
}

inline void Tensor::AsProtoTensorContent(TensorProto* proto) const {
  if (type_ == DT_STRING) return AsProtoField(proto);
  proto->Clear();
  proto->set_dtype(type_);
  shape_.AsProto(proto->mutable_tensor_shape());
  if (data_) proto->set_tensor_content(data_, TotalBytes());
}

inline void Tensor::AsProtoField(TensorProto* proto) const {
  proto->Clear();
  proto->set_dtype(type_);
  shape_.AsProto(proto->mutable_tensor_shape());
  int64_t count = data_ ? NumElements() : 0;
#define TF_ADD_FIELD(T, field)                                          \
  for (int64_t i = 0; i < count; ++i) proto->add_##field(base<T>()[i]); \
  break
  switch (type_) {
    case DT_FLOAT:
      TF_ADD_FIELD(float, float_val);
    case DT_DOUBLE:
      TF_ADD_FIELD(double, double_val);
    case DT_INT8:
    case DT_QINT8:
      TF_ADD_FIELD(int8, int_val);
    case DT_UINT8:
    case DT_QUINT8:
      TF_ADD_FIELD(uint8, int_val);
    case DT_INT16:
    case DT_QINT16:
      TF_ADD_FIELD(int16, int_val);
    case DT_UINT16:
    case DT_QUINT16:
      TF_ADD_FIELD(uint16, int_val);
    case DT_INT32:
    case DT_QINT32:
      TF_ADD_FIELD(int32, int_val);
    case DT_INT64:
      TF_ADD_FIELD(int64, int64_val);
    case DT_UINT32:
      TF_ADD_FIELD(uint32, uint32_val);
    case DT_UINT64:
      TF_ADD_FIELD(uint64, uint64_val);
    case DT_BOOL:
      TF_ADD_FIELD(bool, bool_val);
    case DT_HALF:
    case DT_BFLOAT16:
      TF_ADD_FIELD(uint16, half_val);
    case DT_STRING:
      TF_ADD_FIELD(tstring, string_val);
    case DT_COMPLEX64:
      for (int64_t i = 0; i < 2 * count; ++i) proto->add_scomplex_val(base<float>()[i]);
      break;
    case DT_COMPLEX128:
      for (int64_t i = 0; i < 2 * count; ++i) proto->add_dcomplex_val(base<double>()[i]);
      break;
    default:
      break;
  }
#undef TF_ADD_FIELD
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_TENSOR_IMPL_H_
