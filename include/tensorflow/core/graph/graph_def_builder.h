// GraphDefBuilder: graphs of nodes by the names of their ops.
//
//   GraphDefBuilder b;
//   Node* x = ops::SourceOp("Placeholder", b.opts().WithName("x").WithAttr("dtype", DT_FLOAT));
//   ops::UnaryOp("Square", x, b.opts().WithName("y"));
//   TF_CHECK_OK(b.ToGraphDef(&graph_def));
#ifndef TENSORFLOW_CORE_GRAPH_GRAPH_DEF_BUILDER_H_
#define TENSORFLOW_CORE_GRAPH_GRAPH_DEF_BUILDER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {

class GraphDefBuilder {
 public:
  // What the next nodes get. Options are values; each With gives a changed copy.
  class Options {
   public:
    Options WithName(StringPiece name) const {
      Options made = *this;
      made.name_ = std::string(name);
      return made;
    }
    Options WithDevice(StringPiece device) const {
      Options made = *this;
      made.device_ = std::string(device);
      return made;
    }
    Options WithControlInput(Node* node) const {
      Options made = *this;
      if (node) {
        made.controls_.push_back(node);
      } else {
        UpdateStatus(errors::InvalidArgument("a control input is NULL"));
      }
      return made;
    }
    Options WithControlInputs(absl::Span<Node* const> nodes) const {
      Options made = *this;
      for (Node* node : nodes) made = made.WithControlInput(node);
      return made;
    }
    template <typename T>
    Options WithAttr(StringPiece name, T value) const {
      Options made = *this;
      made.attrs_.push_back(
          [name = std::string(name), value](NodeBuilder* builder) { builder->Attr(name, value); });
      return made;
    }
    template <typename T>
    Options WithAttr(StringPiece name, std::initializer_list<T> values) const {
      return WithAttr(name, std::vector<T>(values));
    }

    bool HaveError() const { return builder_ && !builder_->status_.ok(); }
    std::string StatusToString() const { return builder_ ? builder_->status_.ToString() : "OK"; }
    void UpdateStatus(const absl::Status& status) const { builder_->status_.Update(status); }
    // The name of the next node, or one that follows from |op|.
    std::string GetNameForOp(StringPiece op) const {
      return name_.empty() ? builder_->NewName(op) : name_;
    }
    // Adds the node; NULL after an error, which the GraphDefBuilder keeps.
    Node* FinalizeBuilder(NodeBuilder* node) const {
      if (HaveError()) return nullptr;
      for (Node* control : controls_) node->ControlInput(control);
      if (!device_.empty()) node->Device(device_);
      for (const auto& attr : attrs_) attr(node);
      Node* made = nullptr;
      UpdateStatus(node->Finalize(&builder_->graph_, &made));
      return made;
    }

   private:
    friend class GraphDefBuilder;
    explicit Options(GraphDefBuilder* builder) : builder_(builder) {}
    GraphDefBuilder* builder_;
    std::string name_, device_;
    std::vector<Node*> controls_;
    std::vector<std::function<void(NodeBuilder*)>> attrs_;
  };

  GraphDefBuilder() : options_(this) {}
  GraphDefBuilder(const GraphDefBuilder&) = delete;
  GraphDefBuilder& operator=(const GraphDefBuilder&) = delete;

  const Options& opts() const { return options_; }
  // The first error, or the graph.
  Status ToGraphDef(GraphDef* def) const {
    TF_RETURN_IF_ERROR(status_);
    return graph_.ToGraphDefWithStatus(def);
  }
  Status AddFunctionLibrary(const FunctionDefLibrary& library) {
    return graph_.AddFunctionLibrary(library);
  }

 private:
  std::string NewName(StringPiece op) {
    std::string name(op);
    int count = counts_[name]++;
    return count ? absl::StrCat(name, "_", count) : name;
  }

  Graph graph_;
  Status status_;
  std::map<std::string, int> counts_;
  Options options_;
};

namespace ops {

typedef NodeBuilder::NodeOut NodeOut;

inline Node* NodeOfOp(const std::string& op, std::initializer_list<NodeOut> inputs,
                      const GraphDefBuilder::Options& opts) {
  if (opts.HaveError()) return nullptr;
  NodeBuilder builder(opts.GetNameForOp(op), op);
  for (const NodeOut& input : inputs) builder.Input(input);
  return opts.FinalizeBuilder(&builder);
}
inline Node* SourceOp(const std::string& op, const GraphDefBuilder::Options& opts) {
  return NodeOfOp(op, {}, opts);
}
inline Node* UnaryOp(const std::string& op, NodeOut input, const GraphDefBuilder::Options& opts) {
  return NodeOfOp(op, {input}, opts);
}
inline Node* BinaryOp(const std::string& op, NodeOut a, NodeOut b,
                      const GraphDefBuilder::Options& opts) {
  return NodeOfOp(op, {a, b}, opts);
}
inline Node* TernaryOp(const std::string& op, NodeOut a, NodeOut b, NodeOut c,
                       const GraphDefBuilder::Options& opts) {
  return NodeOfOp(op, {a, b, c}, opts);
}

}  // namespace ops
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_GRAPH_GRAPH_DEF_BUILDER_H_
