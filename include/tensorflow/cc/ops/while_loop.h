// Loops: BuildWhileLoop.
#ifndef TENSORFLOW_CC_OPS_WHILE_LOOP_H_
#define TENSORFLOW_CC_OPS_WHILE_LOOP_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"

namespace tensorflow {
namespace ops {

typedef std::function<absl::Status(const Scope&, const std::vector<Output>& inputs, Output* output)>
    CondGraphBuilderFn;
typedef std::function<absl::Status(const Scope&, const std::vector<Output>& inputs,
                                   std::vector<Output>* outputs)>
    BodyGraphBuilderFn;

// Adds a loop: while |cond| of the values is true, |body| computes the next values. The values
// begin as |inputs|; |outputs| are the last ones. |cond| and |body| build with the scope that they
// get, and may use its inputs and their own constants only.
inline Status BuildWhileLoop(const Scope& scope, const std::vector<Output>& inputs,
                             const CondGraphBuilderFn& cond, const BodyGraphBuilderFn& body,
                             const std::string& frame_name, OutputList* outputs,
                             bool create_while_ctx = true, Output* cond_output = nullptr) {
  (void)create_while_ctx;
  if (cond_output) return errors::Unimplemented("BuildWhileLoop: cond_output");
  TF_RETURN_IF_ERROR(scope.status());
  if (inputs.empty())
    return errors::InvalidArgument("BuildWhileLoop: at least one input is required");
  if (!outputs->empty()) return errors::InvalidArgument("'outputs' argument must be empty");
  std::vector<TF_Output> values, results(inputs.size(), TF_Output{nullptr, 0});
  for (const Output& input : inputs) {
    if (!input.node()) return errors::InvalidArgument("BuildWhileLoop: an input has no node");
    values.push_back(input.c_output());
  }
  CStatus status;
  TF_WhileParams loop =
      TF_NewWhile(scope.graph()->c_graph(), values.data(), static_cast<int>(values.size()), status);
  if (!status.ok()) return status.Get();
  std::string name = scope.GetUniqueNameForOp(frame_name.empty() ? "while" : frame_name);
  loop.name = name.c_str();
  auto inside = [&](const TF_Output* first) {
    std::vector<Output> made;
    for (int i = 0; i < loop.ninputs; ++i) made.push_back(Output::From(first[i]));
    return made;
  };
  Status result;
  Output predicate;
  std::vector<Output> next;
  Scope cond_scope = Scope::ForGraph(loop.cond_graph),
        body_scope = Scope::ForGraph(loop.body_graph);
  result.Update(cond(cond_scope, inside(loop.cond_inputs), &predicate));
  result.Update(cond_scope.status());
  if (result.ok()) result.Update(body(body_scope, inside(loop.body_inputs), &next));
  result.Update(body_scope.status());
  if (result.ok() && next.size() != inputs.size()) {
    result = errors::InvalidArgument("BuildWhileLoop: 'body' argument expected to return ",
                                     inputs.size(), " output(s), got ", next.size());
  }
  if (result.ok() && predicate.node() && predicate.type() != DT_BOOL) {
    result = errors::InvalidArgument(
        "BuildWhileLoop: 'cond' argument must return a boolean output, got ",
        DataTypeString(predicate.type()));
  }
  if (!result.ok()) {
    TF_AbortWhile(&loop);
    return result;
  }
  loop.cond_output = predicate.c_output();
  for (size_t i = 0; i < next.size(); ++i) loop.body_outputs[i] = next[i].c_output();
  TF_FinishWhile(&loop, status, results.data());
  if (!status.ok()) return status.Get();
  for (TF_Output output : results) outputs->push_back(Output::From(output));
  return OkStatus();
}

}  // namespace ops
}  // namespace tensorflow

#endif  // TENSORFLOW_CC_OPS_WHILE_LOOP_H_
