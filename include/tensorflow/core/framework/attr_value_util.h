// Values of attributes as C++ values.
#ifndef TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
#define TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace internal {

// How values of type T are read: whether |attr| holds one (or a list of them), and its name.
template <typename T>
struct AttrReader;

#define TF_ATTR_READER(T, word, has, get, convert)                                         \
  template <>                                                                              \
  struct AttrReader<T> {                                                                   \
    static constexpr const char* kName = word;                                             \
    static bool Has(const AttrValue& attr) { return attr.value_case() == AttrValue::has; } \
    static Status Get(const AttrValue& attr, T* out) { return Read(attr.get(), out); }     \
    static Status Get(const AttrValue& attr, int i, T* out) {                              \
      return Read(attr.list().get(i), out);                                                \
    }                                                                                      \
    static int Count(const AttrValue& attr) { return attr.list().get##_size(); }           \
    template <typename V>                                                                  \
    static Status Read(const V& value, T* out) {                                           \
      convert;                                                                             \
      return OkStatus();                                                                   \
    }                                                                                      \
  };
TF_ATTR_READER(std::string, "string", kS, s, *out = value)
TF_ATTR_READER(tstring, "string", kS, s, *out = value)
TF_ATTR_READER(int64, "int", kI, i, *out = value)
TF_ATTR_READER(int32, "int", kI, i,
               if (value < kint32min ||
                   value > kint32max) return errors::InvalidArgument("Attr value ", value,
                                                                     " is out of range for int32");
               *out = static_cast<int32>(value))
TF_ATTR_READER(float, "float", kF, f, *out = value)
TF_ATTR_READER(bool, "bool", kB, b, *out = value)
TF_ATTR_READER(DataType, "type", kType, type, *out = static_cast<DataType>(value))
TF_ATTR_READER(TensorShapeProto, "shape", kShape, shape, *out = value)
TF_ATTR_READER(TensorShape, "shape", kShape, shape,
               return TensorShape::BuildTensorShape(value, out))
TF_ATTR_READER(PartialTensorShape, "shape", kShape, shape,
               return PartialTensorShape::BuildPartialTensorShape(value, out))
TF_ATTR_READER(TensorProto, "tensor", kTensor, tensor, *out = value)
TF_ATTR_READER(
    Tensor, "tensor", kTensor, tensor,
    if (!out->FromProto(value)) return errors::InvalidArgument("Attr has an invalid tensor"))
TF_ATTR_READER(NameAttrList, "func", kFunc, func, *out = value)
#undef TF_ATTR_READER

template <typename T>
Status ReadAttr(const std::string& name, const AttrValue& attr, T* out) {
  if (AttrReader<T>::Has(attr)) return AttrReader<T>::Get(attr, out);
  return errors::InvalidArgument("AttrValue of '", name, "' had another type when '",
                                 AttrReader<T>::kName, "' expected");
}
template <typename List, typename T>
Status ReadAttrList(const std::string& name, const AttrValue& attr, List* out) {
  if (attr.value_case() != AttrValue::kList) {
    return errors::InvalidArgument("AttrValue of '", name, "' had another type when 'list(",
                                   AttrReader<T>::kName, ")' expected");
  }
  out->clear();
  for (int i = 0; i < AttrReader<T>::Count(attr); ++i) {
    T value;
    TF_RETURN_IF_ERROR(AttrReader<T>::Get(attr, i, &value));
    out->push_back(value);
  }
  return OkStatus();
}
template <typename T>
Status ReadAttr(const std::string& name, const AttrValue& attr, std::vector<T>* out) {
  return ReadAttrList<std::vector<T>, T>(name, attr, out);
}
inline Status ReadAttr(const std::string& name, const AttrValue& attr, DataTypeVector* out) {
  return ReadAttrList<DataTypeVector, DataType>(name, attr, out);
}

}  // namespace internal

// The attribute |name| of a node.
template <typename T>
Status GetNodeAttr(const NodeDef& node, absl::string_view name, T* out) {
  std::string key(name);
  auto found = node.attr().find(key);
  if (found == node.attr().end()) {
    return errors::NotFound("No attr named '", key, "' in NodeDef: node '", node.name(), "' (",
                            node.op(), ")");
  }
  return internal::ReadAttr(key, found->second, out);
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
