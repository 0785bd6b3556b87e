// Scope: the graph that ops are added to, and what they get: names, a device, control inputs.
//
// A scope is a small value; scopes made from another one share its graph and its status. The status
// is the first error: after it, constructors of ops do nothing.
#ifndef TENSORFLOW_CC_FRAMEWORK_SCOPE_H_
#define TENSORFLOW_CC_FRAMEWORK_SCOPE_H_

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/cc/framework/ops.h"

namespace tensorflow {

class NodeBuilder;
struct CompositeOpScopes;

class Scope {
 public:
  static Scope NewRootScope() {
    return Scope(std::make_shared<Graph>(), std::make_shared<Status>());
  }
  // A scope of a graph that is owned elsewhere.
  static Scope ForGraph(TF_Graph* graph,
                        std::shared_ptr<Status> status = std::make_shared<Status>()) {
    return Scope(std::make_shared<Graph>(graph), std::move(status));
  }

  Scope NewSubScope(const std::string& name) const {
    Scope made = *this;
    made.op_name_.clear();
    if (name.empty()) return made;
    made.name_ = Join(name_, UniqueName(name));
    made.names_ = std::make_shared<NameMap>();
    made.was_used_ = nullptr;
    return made;
  }
  // The next ops are called |fragments|, concatenated.
  template <typename... Ty>
  Scope WithOpName(Ty... fragments) const {
    Scope made = *this;
    made.op_name_ = absl::StrCat(fragments...);
    return made;
  }
  Scope WithControlDependencies(absl::Span<const Operation> operations) const {
    Scope made = *this;
    made.control_deps_.insert(made.control_deps_.end(), operations.begin(), operations.end());
    return made;
  }
  Scope WithControlDependencies(const std::vector<Operation>& operations) const {
    return WithControlDependencies(absl::Span<const Operation>(operations));
  }
  Scope WithControlDependencies(std::initializer_list<Operation> operations) const {
    return WithControlDependencies(absl::Span<const Operation>(operations));
  }
  Scope WithControlDependencies(const Output& output) const {
    Scope made = *this;
    made.control_deps_.push_back(output.op());
    return made;
  }
  Scope WithNoControlDependencies() const {
    Scope made = *this;
    made.control_deps_.clear();
    return made;
  }
  Scope WithDevice(const std::string& device) const {
    Scope made = *this;
    made.device_ = device;
    return made;
  }
  Scope WithAssignedDevice(const std::string& device) const { return WithDevice(device); }
  Scope WithXlaCluster(const std::string& cluster) const {
    Scope made = *this;
    made.xla_cluster_ = cluster;
    return made;
  }
  Scope ColocateWith(const Operation& operation) const {
    Scope made = *this;
    if (operation.node()) made.colocations_.insert("loc:@" + operation.node()->name());
    return made;
  }
  Scope ColocateWith(const Output& output) const { return ColocateWith(output.op()); }
  Scope ClearColocation() const {
    Scope made = *this;
    made.colocations_.clear();
    return made;
  }
  Scope ExitOnError() const {
    Scope made = *this;
    made.exit_on_error_ = true;
    return made;
  }
  Scope WithKernelLabel(const std::string& label) const {
    Scope made = *this;
    made.kernel_label_ = label;
    return made;
  }

  // The full name of the next op: its name in this scope, or |default_name|, made unique.
  std::string GetUniqueNameForOp(const std::string& default_name) const {
    if (was_used_) {
      if (op_name_.empty() || *was_used_) {
        UpdateStatus(errors::InvalidArgument("Cannot get a unique name in this scope"));
        return "";
      }
      *was_used_ = true;
      return op_name_;
    }
    std::string name;
    do {
      name = Join(name_, UniqueName(op_name_.empty() ? default_name : op_name_));
    } while (TF_GraphOperationByName(graph_->c_graph(), name.c_str()));
    return name;
  }
  // Scopes for an op that consists of several: |child| for its parts, |last| for the last of them.
  CompositeOpScopes GetCompositeOpScopes(const std::string& composite_op_name) const;

  bool ok() const { return status_->ok(); }
  Status status() const { return *status_; }
  void UpdateStatus(const absl::Status& status) const {
    status_->Update(status);
    if (exit_on_error_ && !status.ok()) LOG(FATAL) << *status_;
  }
  Graph* graph() const { return graph_.get(); }
  std::shared_ptr<Graph> graph_as_shared_ptr() const { return graph_; }
  Status ToGraphDef(GraphDef* def, bool include_debug_info = false) const {
    (void)include_debug_info;
    if (!ok()) return *status_;
    return graph_->ToGraphDefWithStatus(def);
  }
  // Copies the nodes into |graph|.
  Status ToGraph(Graph* graph) const {
    GraphDef def;
    TF_RETURN_IF_ERROR(ToGraphDef(&def));
    return graph->Import(def);
  }
  // Shapes are inferred as nodes are added.
  Status DoShapeInference(Node*) const { return OkStatus(); }
  const std::vector<Operation>& control_deps() const { return control_deps_; }

  // Gives a node the properties of the scope. |Builder| is a NodeBuilder.
  template <typename Builder>
  void UpdateBuilder(Builder* builder) const {
    for (const Operation& operation : control_deps_) builder->ControlInput(operation.node());
    if (!kernel_label_.empty()) builder->Attr("_kernel", kernel_label_);
    if (!device_.empty()) builder->Device(device_);
    if (!xla_cluster_.empty()) builder->Attr("_XlaCluster", xla_cluster_);
    if (!colocations_.empty()) {
      builder->Attr("_class", std::vector<std::string>(colocations_.begin(), colocations_.end()));
    }
  }

 private:
  typedef std::unordered_map<std::string, int> NameMap;

  Scope(std::shared_ptr<Graph> graph, std::shared_ptr<Status> status)
      : graph_(std::move(graph)), status_(std::move(status)), names_(std::make_shared<NameMap>()) {}

  static std::string Join(const std::string& scope, const std::string& name) {
    return scope.empty() || name.empty() ? scope + name : scope + "/" + name;
  }
  // |name|, or the first of name_1, name_2, … that is free.
  std::string UniqueName(const std::string& name) const {
    auto found = names_->emplace(name, 0);
    if (found.second) return name;
    // The reference survives inserts; the iterator might not.
    int& last = found.first->second;
    std::string unique;
    do {
      unique = absl::StrCat(name, "_", ++last);
    } while (!names_->emplace(unique, 0).second);
    return unique;
  }

  std::shared_ptr<Graph> graph_;
  std::shared_ptr<Status> status_;
  std::shared_ptr<NameMap> names_;  // those taken in this scope
  std::shared_ptr<bool> was_used_;  // set if the scope serves one op only
  std::string name_;
  std::string op_name_;
  std::string device_;
  std::string kernel_label_;
  std::string xla_cluster_;
  std::vector<Operation> control_deps_;
  std::set<std::string> colocations_;
  bool exit_on_error_ = false;
};

struct CompositeOpScopes {
  Scope child;
  Scope last;
};

inline CompositeOpScopes Scope::GetCompositeOpScopes(const std::string& composite_op_name) const {
  if (op_name_.empty() && composite_op_name.empty()) {
    UpdateStatus(errors::InvalidArgument("Cannot create composite op scopes with empty name"));
    return {*this, *this};
  }
  if (was_used_) {
    Scope child = *this;
    child.name_ = op_name_;
    child.op_name_.clear();
    child.was_used_ = nullptr;
    return {child, *this};
  }
  Scope child = NewSubScope(op_name_.empty() ? composite_op_name : op_name_);
  Scope last = child;
  last.op_name_ = child.name_;
  last.was_used_ = std::make_shared<bool>(false);
  return {child, last};
}

// Adds one node of |op_name| with |inputs| and the attributes' defaults; |*output| is its first
// output.
Status CreateOutputWithScope(const std::string& op_name, absl::Span<const Input> inputs,
                             const Scope& scope, Output* output);

}  // namespace tensorflow

#include "tensorflow/cc/framework/op_builder.h"

#endif  // TENSORFLOW_CC_FRAMEWORK_SCOPE_H_
