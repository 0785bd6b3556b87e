// Loops: BuildWhileLoop.
#ifndef TENSORFLOW_CC_OPS_WHILE_LOOP_H_
#define TENSORFLOW_CC_OPS_WHILE_LOOP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/control_flow_ops.h"
#include "tensorflow/cc/ops/control_flow_ops_internal.h"
#include "tensorflow/core/graph/while_context.h"

namespace tensorflow {
namespace ops {

typedef std::function<absl::Status(const Scope&, const std::vector<Output>& inputs, Output* output)>
    CondGraphBuilderFn;
typedef std::function<absl::Status(const Scope&, const std::vector<Output>& inputs,
                                   std::vector<Output>* outputs)>
    BodyGraphBuilderFn;

namespace internal {

// Calls |cond| in a scope whose nodes run in every iteration, also those without inputs.
inline Status BuildLoopCond(const Scope& scope, const CondGraphBuilderFn& cond,
                            const std::vector<Output>& values, Output* out) {
  Output predicate;
  TF_RETURN_IF_ERROR(
      cond(scope.NewSubScope("cond").WithControlDependencies(values[0]), values, &predicate));
  TF_RETURN_IF_ERROR(scope.graph()->IsValidOutputTensor(predicate.node(), predicate.index()));
  if (predicate.type() != DT_BOOL) {
    return errors::InvalidArgument(
        "BuildWhileLoop: 'cond' argument must return a boolean output, got ",
        DataTypeString(predicate.type()));
  }
  *out = LoopCond(scope, predicate).output;
  return scope.status();
}

inline Status BuildLoopBody(const Scope& scope, const BodyGraphBuilderFn& body,
                            const std::vector<Output>& values, std::vector<Output>* out) {
  TF_RETURN_IF_ERROR(
      body(scope.NewSubScope("body").WithControlDependencies(values[0]), values, out));
  if (out->size() != values.size()) {
    return errors::InvalidArgument("BuildWhileLoop: 'body' argument expected to return ",
                                   values.size(), " output(s), got ", out->size());
  }
  for (const Output& output : *out)
    TF_RETURN_IF_ERROR(scope.graph()->IsValidOutputTensor(output.node(), output.index()));
  return OkStatus();
}

inline std::vector<Node*> NodesOf(const std::vector<Output>& outputs) {
  std::vector<Node*> nodes;
  for (const Output& output : outputs) nodes.push_back(output.node());
  return nodes;
}
inline std::vector<OutputTensor> TensorsOf(const std::vector<Output>& outputs) {
  std::vector<OutputTensor> tensors;
  for (const Output& output : outputs) tensors.emplace_back(output.node(), output.index());
  return tensors;
}

}  // namespace internal

// Adds a loop: while |cond| of the values is true, |body| computes the next values. The values
// begin as |inputs|; |outputs| are the last ones. |cond| and |body| build with the scope that they
// get, and may use its inputs and their own constants only. |cond_output|, if it is not NULL, is
// the condition inside the loop.
inline Status BuildWhileLoop(const Scope& scope, const std::vector<Output>& inputs,
                             const CondGraphBuilderFn& cond, const BodyGraphBuilderFn& body,
                             const std::string& frame_name, OutputList* outputs,
                             bool create_while_ctx = true, Output* cond_output = nullptr) {
  TF_RETURN_IF_ERROR(scope.status());
  if (inputs.empty())
    return errors::InvalidArgument("BuildWhileLoop: at least one input is required");
  if (!outputs->empty()) return errors::InvalidArgument("'outputs' argument must be empty");
  std::vector<Output> enters, merges, nows, nexts, lasts;
  for (const Output& input : inputs) enters.push_back(internal::Enter(scope, input, frame_name));
  // The second input of a merge follows when the body is there.
  for (const Output& enter : enters)
    merges.push_back(Merge(scope, std::initializer_list<Input>{enter, enter}).output);
  TF_RETURN_IF_ERROR(scope.status());
  Output predicate;
  TF_RETURN_IF_ERROR(internal::BuildLoopCond(scope, cond, merges, &predicate));
  if (cond_output) *cond_output = predicate;
  for (const Output& merge : merges) {
    Switch either(scope, merge, predicate);
    nows.push_back(either.output_true);
    lasts.push_back(either.output_false);
  }
  TF_RETURN_IF_ERROR(scope.status());
  TF_RETURN_IF_ERROR(internal::BuildLoopBody(scope, body, nows, &nexts));
  for (size_t i = 0; i < nexts.size(); ++i) {
    Output next = NextIteration(scope, nexts[i]);
    TF_RETURN_IF_ERROR(scope.status());
    CStatus status;
    TF_UpdateEdge(scope.graph()->c_graph(), next.c_output(),
                  TF_Input{merges[i].node()->operation(), 1}, status);
    TF_RETURN_IF_ERROR(status.Get());
  }
  for (const Output& last : lasts) outputs->push_back(internal::Exit(scope, last));
  TF_RETURN_IF_ERROR(scope.status());
  if (create_while_ctx) {
    ::tensorflow::internal::WhileContexts::Get().Add(
        scope.graph(), std::make_shared<WhileContext>(
                           frame_name, internal::NodesOf(enters), internal::NodesOf(*outputs),
                           OutputTensor(predicate.node(), predicate.index()),
                           internal::TensorsOf(nows), internal::TensorsOf(nexts)));
  }
  return OkStatus();
}

}  // namespace ops
}  // namespace tensorflow

#endif  // TENSORFLOW_CC_OPS_WHILE_LOOP_H_
