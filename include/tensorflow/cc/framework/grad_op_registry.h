// REGISTER_GRADIENT_OP: gradients of ops, written in C++.
//
//   Status MyOpGrad(const Scope& scope, const Operation& op, const std::vector<Output>&
//   grad_inputs,
//                   std::vector<Output>* grad_outputs);
//   REGISTER_GRADIENT_OP("MyOp", MyOpGrad);
//
// The ops of Runnel have gradients already: Lookup finds them, and a function registered for one of
// them is called by Lookup's callers only. AddSymbolicGradients uses the functions of other ops.
#ifndef TENSORFLOW_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_
#define TENSORFLOW_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runnel/gradients.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow {
namespace ops {

// |grad_inputs| has one gradient per output of |op|; |grad_outputs| gets one per input. Either may
// be NoGradient().
typedef Status (*GradFunc)(const Scope& scope, const Operation& op,
                           const std::vector<Output>& grad_inputs,
                           std::vector<Output>* grad_outputs);

namespace internal {

inline rn_edge_t EdgeOf(const Output& output) {
  if (!output.node()) return RN_NO_EDGE;
  return rn_edge_t{reinterpret_cast<rn_node_t*>(output.node()), output.index()};
}
inline Output OutputOf(rn_edge_t edge) {
  return edge.node ? Output(reinterpret_cast<Node*>(edge.node), edge.index) : NoGradient();
}

// The library's own gradient of one node.
inline Status LibraryGradient(const Scope& scope, const Operation& op,
                              const std::vector<Output>& grad_inputs,
                              std::vector<Output>* grad_outputs) {
  std::vector<rn_edge_t> ys, dys, xs;
  for (int i = 0; i < op.num_outputs(); ++i) {
    rn_edge_t dy = static_cast<size_t>(i) < grad_inputs.size()
                       ? EdgeOf(grad_inputs[static_cast<size_t>(i)])
                       : RN_NO_EDGE;
    if (!dy.node) continue;
    ys.push_back(EdgeOf(op.output(i)));
    dys.push_back(dy);
  }
  for (int i = 0; i < op.num_inputs(); ++i) xs.push_back(EdgeOf(op.input(i)));
  std::vector<rn_gradient_t> dxs(xs.size());
  std::string name = scope.GetUniqueNameForOp("gradients");
  TF_RETURN_IF_ERROR(scope.status());
  rn_gradient_options_t options = {};
  options.dys = dys.data();
  options.stops = xs.data();
  options.stop_count = static_cast<int>(xs.size());
  options.dense = true;
  options.name = name.c_str();
  rn_scope_t* inner = rn_scope_create(reinterpret_cast<rn_graph_t*>(scope.graph()->c_graph()));
  if (!inner) return errors::ResourceExhausted("no memory for a scope");
  rn_gradients_of(inner, ys.data(), static_cast<int>(ys.size()), xs.data(),
                  static_cast<int>(xs.size()), &options, dxs.data());
  Status status;
  if (!rn_scope_ok(inner)) {
    status = Status(static_cast<absl::StatusCode>(rn_scope_code(inner)), rn_scope_message(inner));
  }
  rn_scope_destroy(inner);
  if (!status.ok()) return status;
  for (const rn_gradient_t& dx : dxs) grad_outputs->push_back(OutputOf(dx.dense));
  return OkStatus();
}

// What the library calls for a node whose gradient is a GradFunc.
inline bool CallGradFunc(rn_grad_t* g, void* arg) {
  GradFunc function = *static_cast<GradFunc*>(arg);
  Node* forward = reinterpret_cast<Node*>(rn_grad_node(g));
  std::vector<Output> arrived, sent;
  for (int i = 0; i < forward->num_outputs(); ++i) {
    rn_gradient_t dy = rn_grad_arrived_as_is(g, i);
    arrived.push_back(OutputOf(rn_gradient_is_none(dy) ? RN_NO_EDGE : rn_grad_arrived(g, i)));
  }
  Status status;
  if (rn_grad_anchor(g)) {
    status = errors::Unimplemented("The gradient of ", forward->type_string(),
                                   " is written in C++ and cannot be taken inside a loop");
  } else {
    Scope scope = Scope::ForGraph(reinterpret_cast<TF_Graph*>(rn_scope_graph(rn_grad_scope(g))))
                      .NewSubScope(forward->name() + "_grad");
    status = function(scope, Operation(forward), arrived, &sent);
    status.Update(scope.status());
  }
  if (status.ok() && static_cast<int>(sent.size()) != rn_grad_input_count(g)) {
    status = errors::InvalidArgument("The gradient function of ", forward->type_string(),
                                     " returned ", sent.size(), " gradients; the op has ",
                                     rn_grad_input_count(g), " inputs");
  }
  if (!status.ok()) {
    rn_grad_refuse(g, static_cast<int>(status.code()), std::string(status.message()).c_str());
    return false;
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].node() && rn_grad_is_wanted(g, static_cast<int>(i)))
      rn_grad_send(g, static_cast<int>(i), EdgeOf(sent[i]));
  }
  return true;
}

}  // namespace internal

class GradOpRegistry {
 public:
  static GradOpRegistry* Global() {
    static GradOpRegistry* registry = new GradOpRegistry;
    return registry;
  }
  // NULL as |func| says that nothing flows through the op. True, so that a variable can be
  // initialized with it.
  bool Register(const std::string& op, GradFunc func) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto added = functions_.emplace(op, func);
    CHECK(added.second) << "Existing gradient for " << op;
    if (func) rn_register_gradient(op.c_str(), internal::CallGradFunc, &added.first->second);
    return true;
  }
  // NOT_FOUND if there is neither a function nor an op of the library.
  Status Lookup(const std::string& op, GradFunc* func) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = functions_.find(op);
    const OpDef* def;
    *func = found == functions_.end() ? internal::LibraryGradient : found->second;
    if (found != functions_.end() || OpRegistry::Global()->LookUpOpDef(op, &def).ok())
      return OkStatus();
    return errors::NotFound("No gradient defined for op: ", op);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, GradFunc> functions_;  // whose elements do not move
};

}  // namespace ops
}  // namespace tensorflow

#define REGISTER_GRADIENT_OP(name, fn) TF_REGISTER_GRADIENT_UNIQUE_(__COUNTER__, name, fn)
#define REGISTER_NO_GRADIENT_OP(name) TF_REGISTER_GRADIENT_UNIQUE_(__COUNTER__, name, nullptr)
#define TF_REGISTER_GRADIENT_UNIQUE_(counter, name, fn) TF_REGISTER_GRADIENT_(counter, name, fn)
#define TF_REGISTER_GRADIENT_(counter, name, fn)                     \
  static const bool register_gradient##counter TF_ATTRIBUTE_UNUSED = \
      ::tensorflow::ops::GradOpRegistry::Global()->Register(name, fn)

#endif  // TENSORFLOW_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_
