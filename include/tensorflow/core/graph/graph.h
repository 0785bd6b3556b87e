// Graph and Node: the C API's TF_Graph and TF_Operation, by the names that C++ programs use.
#ifndef TENSORFLOW_CORE_GRAPH_GRAPH_H_
#define TENSORFLOW_CORE_GRAPH_GRAPH_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

class AttrSlice;
class WhileContext;

// The address of a Node is that of its TF_Operation; there are no objects of this class.
class Node {
 public:
  Node() = delete;
  Node(const Node&) = delete;

  static Node* From(TF_Operation* operation) { return reinterpret_cast<Node*>(operation); }
  TF_Operation* operation() const {
    return reinterpret_cast<TF_Operation*>(const_cast<Node*>(this));
  }

  std::string name() const { return TF_OperationName(operation()); }
  std::string type_string() const { return TF_OperationOpType(operation()); }
  std::string requested_device() const { return TF_OperationDevice(operation()); }
  int num_inputs() const { return TF_OperationNumInputs(operation()); }
  int num_outputs() const { return TF_OperationNumOutputs(operation()); }
  DataType input_type(int i) const {
    return static_cast<DataType>(TF_OperationInputType(TF_Input{operation(), i}));
  }
  DataType output_type(int i) const {
    return static_cast<DataType>(TF_OperationOutputType(TF_Output{operation(), i}));
  }
  NodeDef def() const {
    NodeDef def;
    TF_Buffer* buffer = TF_NewBuffer();
    CStatus status;
    TF_OperationToNodeDef(operation(), buffer, status);
    if (status.ok()) def.ParseFromArray(buffer->data, static_cast<int>(buffer->length));
    TF_DeleteBuffer(buffer);
    return def;
  }
  // The node's attributes, as GetNodeAttr reads them.
  AttrSlice attrs() const;
  std::string DebugString() const { return def().ShortDebugString(); }
  // The loop that this Exit node belongs to, if BuildWhileLoop made it. Include while_context.h.
  WhileContext* while_ctx() const;

  bool IsOp() const { return true; }
  bool IsConstant() const { return type_string() == "Const"; }
  bool IsVariable() const { return type_string() == "Variable" || type_string() == "VariableV2"; }
  bool IsIdentity() const { return type_string() == "Identity" || type_string() == "RefIdentity"; }
  bool IsEnter() const { return type_string() == "Enter" || type_string() == "RefEnter"; }
  bool IsExit() const { return type_string() == "Exit" || type_string() == "RefExit"; }
  bool IsMerge() const { return type_string() == "Merge" || type_string() == "RefMerge"; }
  bool IsSwitch() const { return type_string() == "Switch" || type_string() == "RefSwitch"; }
  bool IsNextIteration() const {
    return type_string() == "NextIteration" || type_string() == "RefNextIteration";
  }
  bool IsLoopCond() const { return type_string() == "LoopCond"; }
};

// Owns a TF_Graph, or refers to one that is owned elsewhere.
class Graph {
 public:
  Graph() : graph_(TF_NewGraph()), is_owned_(true) {}
  explicit Graph(TF_Graph* borrowed) : graph_(borrowed), is_owned_(false) {}
  ~Graph() {
    for (const std::function<void()>& forget : at_end_) forget();
    if (is_owned_) TF_DeleteGraph(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  TF_Graph* c_graph() const { return graph_; }
  std::vector<Node*> op_nodes() const {
    std::vector<Node*> nodes;
    size_t at = 0;
    while (TF_Operation* next = TF_GraphNextOperation(graph_, &at))
      nodes.push_back(Node::From(next));
    return nodes;
  }
  std::vector<Node*> nodes() const { return op_nodes(); }
  int num_op_nodes() const { return static_cast<int>(op_nodes().size()); }
  Status IsValidNode(const Node* node) const {
    if (!node) return errors::InvalidArgument("Node is null");
    if (TF_GraphOperationByName(graph_, TF_OperationName(node->operation())) != node->operation()) {
      return errors::InvalidArgument("Node '", node->name(), "' does not belong to this graph");
    }
    return OkStatus();
  }
  Status IsValidOutputTensor(const Node* node, int index) const {
    TF_RETURN_IF_ERROR(IsValidNode(node));
    if (index >= 0 && index < node->num_outputs()) return OkStatus();
    return errors::OutOfRange("Node '", node->name(), "' (type: '", node->type_string(),
                              "', num of outputs: ", node->num_outputs(), ") does not have output ",
                              index);
  }
  Status AddFunctionLibrary(const FunctionDefLibrary& library) {
    GraphDef def;
    *def.mutable_library() = library;
    return Import(def);
  }
  // |forget| is called before the graph goes.
  void AtEnd(std::function<void()> forget) { at_end_.push_back(std::move(forget)); }
  Status ToGraphDefWithStatus(GraphDef* def) const {
    TF_Buffer* buffer = TF_NewBuffer();
    CStatus status;
    TF_GraphToGraphDef(graph_, buffer, status);
    Status result = status.Get();
    if (result.ok() && !def->ParseFromArray(buffer->data, static_cast<int>(buffer->length))) {
      result = errors::Internal("the graph is too large for a GraphDef");
    }
    TF_DeleteBuffer(buffer);
    return result;
  }
  void ToGraphDef(GraphDef* def) const { TF_CHECK_OK(ToGraphDefWithStatus(def)); }
  GraphDef ToGraphDefDebug() const {
    GraphDef def;
    ToGraphDef(&def);
    return def;
  }
  // Adds the nodes of |def|; adds none if there is an error.
  Status Import(const GraphDef& def, const std::string& prefix = "") {
    std::string bytes;
    if (!def.SerializeToString(&bytes))
      return errors::InvalidArgument("GraphDef cannot be serialized");
    TF_Buffer* buffer = TF_NewBufferFromString(bytes.data(), bytes.size());
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, prefix.c_str());
    CStatus status;
    TF_GraphImportGraphDef(graph_, buffer, options, status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
    return status.Get();
  }

 private:
  TF_Graph* graph_;
  bool is_owned_;
  std::vector<std::function<void()>> at_end_;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_GRAPH_GRAPH_H_
