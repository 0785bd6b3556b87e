// What the generated classes of ops are made with.
#ifndef TENSORFLOW_CC_FRAMEWORK_OP_BUILDER_H_
#define TENSORFLOW_CC_FRAMEWORK_OP_BUILDER_H_

#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace ops {
namespace internal {

// Builds one node in a scope: all inputs, then all attributes, then Finish. Does nothing after an
// error of the scope.
class OpBuilder {
 public:
  // |default_name| is the node's name in a scope that gives it none.
  OpBuilder(const Scope& scope, const char* default_name, const char* op)
      : scope_(scope), default_name_(default_name), op_(op) {}
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;
  ~OpBuilder() {
    if (node_) Finish();
  }

  void In(const Input& input) {
    edges_.push_back(Edge(input));
    sizes_.push_back(kSingle);
  }
  void In(const InputList& list) {
    int size = 0;
    for (const Input& input : list) {
      edges_.push_back(Edge(input));
      ++size;
    }
    sizes_.push_back(size);
  }
  template <typename T>
  void Attr(const char* name, const T& value) {
    if (Begin()) ::tensorflow::internal::AttrSetter(node_, &status_).Set(name, value);
  }

  // For Scope::UpdateBuilder.
  void ControlInput(Node* from) {
    if (from) TF_AddControlInput(node_, from->operation());
  }
  void Device(const std::string& device) { TF_SetDevice(node_, device.c_str()); }

  // The node; NULL if there is an error, which the scope keeps.
  Operation Finish() {
    if (!Begin()) return Operation();
    CStatus finished;
    TF_Operation* made = TF_FinishOperation(node_, finished);
    node_ = nullptr;
    is_done_ = true;
    status_.Update(finished.Get());
    scope_.UpdateStatus(status_);
    return status_.ok() ? Operation(Node::From(made)) : Operation();
  }

 private:
  static constexpr int kSingle = -1;  // the size of an input that is not a list

  // The output that feeds |input|; a constant is made of a value.
  TF_Output Edge(const Input& input) {
    TF_Output none = {nullptr, 0};
    if (!scope_.ok()) return none;
    if (!input.status().ok()) {
      scope_.UpdateStatus(input.status());
      return none;
    }
    if (input.node()) return input.output().c_output();
    if (!input.node_name().empty() || !input.tensor().IsInitialized()) {
      scope_.UpdateStatus(
          errors::InvalidArgument("an input of ", op_, " is not an output or a value"));
      return none;
    }
    OpBuilder constant(scope_.NewSubScope("Const"), "Const", "Const");
    constant.Attr("value", input.tensor());
    constant.Attr("dtype", input.tensor().dtype());
    Operation made = constant.Finish();
    return made.node() ? made.output(0).c_output() : none;
  }

  // Makes the description once inputs are complete. False after an error.
  bool Begin() {
    if (node_) return true;
    if (is_done_ || !scope_.ok()) return false;
    std::string name = scope_.GetUniqueNameForOp(default_name_);
    if (!scope_.ok()) return false;
    node_ = TF_NewOperation(scope_.graph()->c_graph(), op_, name.c_str());
    const TF_Output* edge = edges_.data();
    for (int size : sizes_) {
      if (size == kSingle) {
        TF_AddInput(node_, *edge++);
      } else {
        TF_AddInputList(node_, edge, size);
        edge += size;
      }
    }
    scope_.UpdateBuilder(this);
    return true;
  }

  Scope scope_;
  const char* default_name_;
  const char* op_;
  std::vector<TF_Output> edges_;
  std::vector<int> sizes_;  // of the inputs: how many of |edges_| a list has
  TF_OperationDescription* node_ = nullptr;
  bool is_done_ = false;
  Status status_;
};

// The outputs of the list |name|, which begins at output |*next|; moves |*next| behind it.
inline OutputList OutputsOf(const Operation& operation, const char* name, int* next) {
  CStatus status;
  int count = TF_OperationOutputListLength(operation.node()->operation(), name, status);
  OutputList outputs;
  for (int i = 0; status.ok() && i < count; ++i) outputs.push_back(operation.output((*next)++));
  return outputs;
}

}  // namespace internal
}  // namespace ops

inline Status CreateOutputWithScope(const std::string& op_name, absl::Span<const Input> inputs,
                                    const Scope& scope, Output* output) {
  TF_RETURN_IF_ERROR(scope.status());
  Operation made;
  {
    ops::internal::OpBuilder builder(scope, op_name.c_str(), op_name.c_str());
    for (const Input& input : inputs) builder.In(input);
    made = builder.Finish();
  }
  TF_RETURN_IF_ERROR(scope.status());
  *output = Output(made, 0);
  return OkStatus();
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_FRAMEWORK_OP_BUILDER_H_
