// WhileContext: the parts of a loop that BuildWhileLoop made.
#ifndef TENSORFLOW_CORE_GRAPH_WHILE_CONTEXT_H_
#define TENSORFLOW_CORE_GRAPH_WHILE_CONTEXT_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {

struct OutputTensor {
  OutputTensor() = default;
  OutputTensor(Node* n, int i) : node(n), index(i) {}
  bool operator==(const OutputTensor& other) const {
    return node == other.node && index == other.index;
  }
  Node* node = nullptr;
  int index = 0;
};

class WhileContext {
 public:
  WhileContext(const std::string& frame_name, std::vector<Node*> enter_nodes,
               std::vector<Node*> exit_nodes, OutputTensor cond_output,
               std::vector<OutputTensor> body_inputs, std::vector<OutputTensor> body_outputs)
      : frame_name_(frame_name),
        enter_nodes_(std::move(enter_nodes)),
        exit_nodes_(std::move(exit_nodes)),
        cond_output_(cond_output),
        body_inputs_(std::move(body_inputs)),
        body_outputs_(std::move(body_outputs)) {}

  const std::string& frame_name() const { return frame_name_; }
  const std::vector<Node*>& enter_nodes() const { return enter_nodes_; }
  const std::vector<Node*>& exit_nodes() const { return exit_nodes_; }
  const OutputTensor& cond_output() const { return cond_output_; }
  const std::vector<OutputTensor>& body_inputs() const { return body_inputs_; }
  const std::vector<OutputTensor>& body_outputs() const { return body_outputs_; }

 private:
  std::string frame_name_;
  std::vector<Node*> enter_nodes_, exit_nodes_;
  OutputTensor cond_output_;
  std::vector<OutputTensor> body_inputs_, body_outputs_;
};

namespace internal {

// The contexts of all loops, by their Exit nodes: a Node has no room for its own. A graph takes its
// loops out when it goes.
class WhileContexts {
 public:
  static WhileContexts& Get() {
    static WhileContexts* contexts = new WhileContexts;
    return *contexts;
  }
  void Add(Graph* graph, std::shared_ptr<WhileContext> context) {
    std::vector<Node*> exits = context->exit_nodes();
    std::lock_guard<std::mutex> lock(mutex_);
    for (Node* node : exits) contexts_[node] = context;
    graph->AtEnd([exits] { Get().Remove(exits); });
  }
  WhileContext* Find(const Node* node) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = contexts_.find(node);
    return found == contexts_.end() ? nullptr : found->second.get();
  }

 private:
  void Remove(const std::vector<Node*>& exits) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Node* node : exits) contexts_.erase(node);
  }
  std::mutex mutex_;
  std::map<const Node*, std::shared_ptr<WhileContext>> contexts_;
};

}  // namespace internal

inline WhileContext* Node::while_ctx() const { return internal::WhileContexts::Get().Find(this); }

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_GRAPH_WHILE_CONTEXT_H_
