// Gradients: nodes that compute the derivatives of outputs by inputs.
#ifndef TENSORFLOW_CC_FRAMEWORK_GRADIENTS_H_
#define TENSORFLOW_CC_FRAMEWORK_GRADIENTS_H_

#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"

namespace tensorflow {

// What stands for the gradient of an output without one.
inline Output NoGradient() { return Output(static_cast<Node*>(nullptr), -1); }

// Adds the gradients of the sum of |outputs| by each of |inputs| to the graph. |grad_inputs| are
// the gradients that arrive at the outputs. NoGradient() stands for an input from which the outputs
// are reached only through ops that stop gradients; an input from which they are not reached at all
// is an error.
inline Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                   const std::vector<Output>& inputs,
                                   const std::vector<Output>& grad_inputs,
                                   std::vector<Output>* grad_outputs) {
  TF_RETURN_IF_ERROR(scope.status());
  if (!grad_inputs.empty() && grad_inputs.size() != outputs.size()) {
    return errors::InvalidArgument("Must specify a gradient input for each output.");
  }
  std::vector<TF_Output> ys, xs, dys, dxs(inputs.size(), TF_Output{nullptr, 0});
  auto add = [](const std::vector<Output>& from, std::vector<TF_Output>* to) {
    for (const Output& output : from) {
      if (!output.node()) return false;
      to->push_back(output.c_output());
    }
    return true;
  };
  if (!add(outputs, &ys) || !add(inputs, &xs) || !add(grad_inputs, &dys)) {
    return errors::InvalidArgument("an output has no node");
  }
  std::string prefix = scope.GetUniqueNameForOp("gradients");
  CStatus status;
  TF_AddGradientsWithPrefix(scope.graph()->c_graph(), prefix.c_str(), ys.data(),
                            static_cast<int>(ys.size()), xs.data(), static_cast<int>(xs.size()),
                            dys.empty() ? nullptr : dys.data(), status, dxs.data());
  if (!status.ok()) return status.Get();
  grad_outputs->clear();
  for (const TF_Output& dx : dxs)
    grad_outputs->push_back(dx.oper ? Output::From(dx) : NoGradient());
  return OkStatus();
}

// The same with ones as |grad_inputs|.
inline Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                   const std::vector<Output>& inputs,
                                   std::vector<Output>* grad_outputs) {
  return AddSymbolicGradients(scope, outputs, inputs, {}, grad_outputs);
}

}  // namespace tensorflow

#endif  // TENSORFLOW_CC_FRAMEWORK_GRADIENTS_H_
