// NodeBuilder: adds one node to a graph, by the C API's TF_OperationDescription.
#ifndef TENSORFLOW_CORE_GRAPH_NODE_BUILDER_H_
#define TENSORFLOW_CORE_GRAPH_NODE_BUILDER_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace internal {

// Sets one attribute of a node. What the C API has no function for goes through an AttrValue.
class AttrSetter {
 public:
  AttrSetter(TF_OperationDescription* description, Status* status)
      : description_(description), status_(status) {}

  void Set(const char* name, int64_t value) { TF_SetAttrInt(description_, name, value); }
  void Set(const char* name, int value) { TF_SetAttrInt(description_, name, value); }
  void Set(const char* name, float value) { TF_SetAttrFloat(description_, name, value); }
  void Set(const char* name, double value) { Set(name, static_cast<float>(value)); }
  void Set(const char* name, bool value) { TF_SetAttrBool(description_, name, value); }
  void Set(const char* name, DataType value) {
    TF_SetAttrType(description_, name, static_cast<TF_DataType>(value));
  }
  void Set(const char* name, absl::string_view value) {
    TF_SetAttrString(description_, name, value.data(), value.size());
  }
  void Set(const char* name, const char* value) { Set(name, absl::string_view(value)); }
  void Set(const char* name, const std::string& value) { Set(name, absl::string_view(value)); }
  void Set(const char* name, const PartialTensorShape& value) {
    PartialTensorShape::Dims dims = value.dim_sizes();
    TF_SetAttrShape(description_, name, dims.data(), value.dims());
  }
  void Set(const char* name, const TensorShape& value) { Set(name, PartialTensorShape(value)); }
  void Set(const char* name, const Tensor& value) {
    CStatus status;
    std::shared_ptr<TF_Tensor> tensor = value.AsCTensor();
    if (!tensor) return status_->Update(errors::InvalidArgument("Attr ", name, " has no value"));
    TF_SetAttrTensor(description_, name, tensor.get(), status);
    status_->Update(status.Get());
  }
  void Set(const char* name, const TensorProto& value) {
    AttrValue attr;
    *attr.mutable_tensor() = value;
    Set(name, attr);
  }
  void Set(const char* name, const NameAttrList& value) {
    AttrValue attr;
    *attr.mutable_func() = value;
    Set(name, attr);
  }
  void Set(const char* name, const AttrValue& value) {
    std::string bytes = value.SerializeAsString();
    CStatus status;
    TF_SetAttrValueProto(description_, name, bytes.data(), bytes.size(), status);
    status_->Update(status.Get());
  }
  void Set(const char* name, absl::Span<const int> values) {
    Set(name, absl::Span<const int64_t>(std::vector<int64_t>(values.begin(), values.end())));
  }
  void Set(const char* name, absl::Span<const int64_t> values) {
    TF_SetAttrIntList(description_, name, values.data(), static_cast<int>(values.size()));
  }
  void Set(const char* name, absl::Span<const float> values) {
    TF_SetAttrFloatList(description_, name, values.data(), static_cast<int>(values.size()));
  }
  void Set(const char* name, absl::Span<const bool> values) {
    std::vector<unsigned char> bytes(values.begin(), values.end());
    TF_SetAttrBoolList(description_, name, bytes.data(), static_cast<int>(bytes.size()));
  }
  void Set(const char* name, absl::Span<const DataType> values) {
    std::vector<TF_DataType> types;
    for (DataType value : values) types.push_back(static_cast<TF_DataType>(value));
    TF_SetAttrTypeList(description_, name, types.data(), static_cast<int>(types.size()));
  }
  void Set(const char* name, absl::Span<const PartialTensorShape> values) {
    AttrValue attr;
    attr.mutable_list();
    for (const PartialTensorShape& value : values) value.AsProto(attr.mutable_list()->add_shape());
    Set(name, attr);
  }
  void Set(const char* name, absl::Span<const TensorProto> values) {
    AttrValue attr;
    attr.mutable_list();
    for (const TensorProto& value : values) *attr.mutable_list()->add_tensor() = value;
    Set(name, attr);
  }
  void Set(const char* name, absl::Span<const NameAttrList> values) {
    AttrValue attr;
    attr.mutable_list();
    for (const NameAttrList& value : values) *attr.mutable_list()->add_func() = value;
    Set(name, attr);
  }
  void Set(const char* name, absl::Span<const tstring> values) { SetStrings(name, values); }
  void Set(const char* name, const std::vector<std::string>& values) { SetStrings(name, values); }
  template <typename T>
  void Set(const char* name, const std::vector<T>& values) {
    Set(name, absl::Span<const T>(values));
  }

 private:
  template <typename Strings>
  void SetStrings(const char* name, const Strings& values) {
    std::vector<const void*> texts;
    std::vector<size_t> lengths;
    for (const auto& value : values) {
      texts.push_back(value.data());
      lengths.push_back(value.size());
    }
    TF_SetAttrStringList(description_, name, texts.data(), lengths.data(),
                         static_cast<int>(texts.size()));
  }

  TF_OperationDescription* description_;
  Status* status_;
};

}  // namespace internal

class NodeBuilder {
 public:
  struct NodeOut {
    NodeOut() : node(nullptr), index(0) {}
    NodeOut(Node* n, int32_t i = 0) : node(n), index(i) {}
    Node* node;
    int32 index;
  };

  NodeBuilder(absl::string_view name, absl::string_view op) : name_(name), op_(op) {}
  NodeBuilder& Input(Node* node, int index = 0) { return Input(NodeOut(node, index)); }
  NodeBuilder& Input(NodeOut from) {
    if (!from.node)
      status_.Update(errors::InvalidArgument("node '", name_, "' has a missing input"));
    TF_Output edge = {from.node ? from.node->operation() : nullptr, from.index};
    steps_.push_back([edge](TF_OperationDescription* node, Status*) { TF_AddInput(node, edge); });
    return *this;
  }
  NodeBuilder& Input(absl::Span<const NodeOut> from) {
    std::vector<TF_Output> edges;
    for (const NodeOut& out : from) {
      if (!out.node)
        status_.Update(errors::InvalidArgument("node '", name_, "' has a missing input"));
      edges.push_back(TF_Output{out.node ? out.node->operation() : nullptr, out.index});
    }
    steps_.push_back([edges](TF_OperationDescription* node, Status*) {
      TF_AddInputList(node, edges.data(), static_cast<int>(edges.size()));
    });
    return *this;
  }
  NodeBuilder& ControlInput(Node* from) {
    if (!from) return *this;
    steps_.push_back([from](TF_OperationDescription* node, Status*) {
      TF_AddControlInput(node, from->operation());
    });
    return *this;
  }
  NodeBuilder& Device(absl::string_view device) {
    steps_.push_back([device = std::string(device)](TF_OperationDescription* node, Status*) {
      TF_SetDevice(node, device.c_str());
    });
    return *this;
  }
  // |value| is copied, so lists must own their elements.
  template <typename T>
  NodeBuilder& Attr(absl::string_view name, const T& value) {
    steps_.push_back(
        [name = std::string(name), value](TF_OperationDescription* node, Status* status) {
          internal::AttrSetter(node, status).Set(name.c_str(), value);
        });
    return *this;
  }
  NodeBuilder& Attr(absl::string_view name, const char* value) {
    return Attr(name, std::string(value));
  }

  // Adds the node. If there is an error, |*out| is NULL and the graph is as it was.
  Status Finalize(Graph* graph, Node** out) {
    *out = nullptr;
    if (!status_.ok()) return status_;
    TF_OperationDescription* node = TF_NewOperation(graph->c_graph(), op_.c_str(), name_.c_str());
    for (const auto& step : steps_) step(node, &status_);
    CStatus finished;
    TF_Operation* made = TF_FinishOperation(node, finished);
    status_.Update(finished.Get());
    if (status_.ok()) *out = Node::From(made);
    return status_;
  }

 private:
  std::string name_;
  std::string op_;
  Status status_;
  std::vector<std::function<void(TF_OperationDescription*, Status*)>> steps_;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_GRAPH_NODE_BUILDER_H_
