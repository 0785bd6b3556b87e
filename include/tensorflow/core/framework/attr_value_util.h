// Values of attributes as C++ values.
#ifndef TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
#define TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

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

// |value| as an AttrValue.
inline void SetAttrValue(const AttrValue& value, AttrValue* out) { *out = value; }
inline void SetAttrValue(absl::string_view value, AttrValue* out) {
  out->set_s(value.data(), value.size());
}
inline void SetAttrValue(const std::string& value, AttrValue* out) { out->set_s(value); }
inline void SetAttrValue(const tstring& value, AttrValue* out) {
  out->set_s(value.data(), value.size());
}
inline void SetAttrValue(const char* value, AttrValue* out) { out->set_s(value); }
inline void SetAttrValue(int value, AttrValue* out) { out->set_i(value); }
inline void SetAttrValue(int64_t value, AttrValue* out) { out->set_i(value); }
inline void SetAttrValue(float value, AttrValue* out) { out->set_f(value); }
inline void SetAttrValue(double value, AttrValue* out) { out->set_f(static_cast<float>(value)); }
inline void SetAttrValue(bool value, AttrValue* out) { out->set_b(value); }
inline void SetAttrValue(DataType value, AttrValue* out) { out->set_type(value); }
inline void SetAttrValue(const PartialTensorShape& value, AttrValue* out) {
  value.AsProto(out->mutable_shape());
}
inline void SetAttrValue(const TensorShape& value, AttrValue* out) {
  value.AsProto(out->mutable_shape());
}
inline void SetAttrValue(const TensorShapeProto& value, AttrValue* out) {
  *out->mutable_shape() = value;
}
inline void SetAttrValue(const TensorProto& value, AttrValue* out) {
  *out->mutable_tensor() = value;
}
inline void SetAttrValue(const Tensor& value, AttrValue* out) {
  if (value.NumElements() > 1) {
    value.AsProtoTensorContent(out->mutable_tensor());
  } else {
    value.AsProtoField(out->mutable_tensor());
  }
}
inline void SetAttrValue(const NameAttrList& value, AttrValue* out) {
  *out->mutable_func() = value;
}
inline void SetAttrValue(absl::Span<const int> values, AttrValue* out) {
  out->mutable_list();
  for (int value : values) out->mutable_list()->add_i(value);
}
inline void SetAttrValue(absl::Span<const int64_t> values, AttrValue* out) {
  out->mutable_list();
  for (int64_t value : values) out->mutable_list()->add_i(value);
}
inline void SetAttrValue(absl::Span<const float> values, AttrValue* out) {
  out->mutable_list();
  for (float value : values) out->mutable_list()->add_f(value);
}
inline void SetAttrValue(absl::Span<const DataType> values, AttrValue* out) {
  out->mutable_list();
  for (DataType value : values) out->mutable_list()->add_type(value);
}
inline void SetAttrValue(absl::Span<const std::string> values, AttrValue* out) {
  out->mutable_list();
  for (const std::string& value : values) out->mutable_list()->add_s(value);
}
template <typename T>
void SetAttrValue(const std::vector<T>& values, AttrValue* out) {
  SetAttrValue(absl::Span<const T>(values), out);
}

// The attributes of a NodeDef, which must outlive this object unless the object shares it.
class AttrSlice {
 public:
  AttrSlice(const NodeDef& node) : node_(&node) {}
  explicit AttrSlice(std::shared_ptr<const NodeDef> node)
      : node_(node.get()), shared_(std::move(node)) {}
  int size() const { return static_cast<int>(node_->attr().size()); }
  // NULL if there is none.
  const AttrValue* Find(absl::string_view name) const {
    auto found = node_->attr().find(std::string(name));
    return found == node_->attr().end() ? nullptr : &found->second;
  }
  Status Find(absl::string_view name, const AttrValue** value) const {
    *value = Find(name);
    if (*value) return OkStatus();
    return errors::NotFound("No attr named '", name, "' in NodeDef: node '", node_->name(), "' (",
                            node_->op(), ")");
  }
  std::string DebugString() const { return node_->ShortDebugString(); }

 private:
  const NodeDef* node_;
  std::shared_ptr<const NodeDef> shared_;
};

// The attribute |name| of a node.
template <typename T>
Status GetNodeAttr(const AttrSlice& attrs, absl::string_view name, T* out) {
  const AttrValue* value;
  TF_RETURN_IF_ERROR(attrs.Find(name, &value));
  return internal::ReadAttr(std::string(name), *value, out);
}
template <typename T>
bool TryGetNodeAttr(const AttrSlice& attrs, absl::string_view name, T* out) {
  return GetNodeAttr(attrs, name, out).ok();
}
inline bool HasNodeAttr(const NodeDef& node, absl::string_view name) {
  return AttrSlice(node).Find(name) != nullptr;
}
// An empty string if there is none.
inline std::string GetNodeAttrString(const AttrSlice& attrs, absl::string_view name) {
  const AttrValue* value = attrs.Find(name);
  return value ? value->s() : std::string();
}

inline AttrSlice Node::attrs() const { return AttrSlice(std::make_shared<const NodeDef>(def())); }

// Sets the attribute |name| of |node|, which must not have it yet.
template <typename T>
void AddNodeAttr(absl::string_view name, const T& value, NodeDef* node) {
  AttrValue attr;
  SetAttrValue(value, &attr);
  node->mutable_attr()->insert({std::string(name), attr});
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_FRAMEWORK_ATTR_VALUE_UTIL_H_
