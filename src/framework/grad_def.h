// Gradient rules: functions that compute the gradients of an op's inputs from those of its outputs,
// by adding nodes to the graph.
//
// The .ops file names a rule, and ops/<family>_grad.c defines it. A rule reads the node's inputs,
// outputs and attributes, builds nodes with the typed builders in |scope|, and calls rn_grad_to for
// each input that has a gradient; the other inputs get none. An output may have no incoming
// gradient; rn_grad_dy makes zeros for it when the rule needs them.
//
// A gradient may be slices (runnel/gradients.h). A rule that can use slices checks rn_grad_slices
// first; rn_grad_dy converts them to a dense tensor and logs that.
#ifndef RUNNEL_FRAMEWORK_GRAD_DEF_H_
#define RUNNEL_FRAMEWORK_GRAD_DEF_H_

#include "framework/op_def.h"
#include "runnel/gradients.h"

struct rn_grad_t {
  rn_scope_t* scope;  // where the rule builds; carries the first error
  rn_arena_t* arena;  // scratch memory for the rule
  rn_node_t* node;    // the forward node
  int32_t input_count;
  const rn_edge_t* inputs;
  int32_t output_count;
  rn_gradient_t* dy;   // incoming gradient of each output
  const bool* wanted;  // by input: whether its gradient is needed; NULL if all are
  rn_gradient_t* dx;   // gradient of each input; the rule sets it with rn_grad_to
  const char* source;  // name of the request; gradient TensorArrays of one request share it
  void* level;         // private to the walk
  // Returns the shape of a forward value as a vector, without the value itself. Set by the walk for
  // rules in a loop, where keeping the value would cost more; NULL elsewhere.
  rn_edge_t (*shape_of)(void* arg, rn_edge_t like, int dtype);
  void* shape_arg;
  // Computes some columns of |matrix| without the others; RN_NO_EDGE if that gains nothing. NULL
  // outside of loops.
  rn_edge_t (*columns_of)(void* arg, rn_edge_t matrix, int64_t first, int64_t count);
};

static inline rn_edge_t rn_grad_in(const rn_grad_t* grad, int i) { return grad->inputs[i]; }
static inline rn_edge_t rn_grad_out(const rn_grad_t* grad, int i) {
  return (rn_edge_t){grad->node, i};
}
// Whether the gradient of input |i| is needed; a rule need not build the others.
static inline bool rn_grad_wants(const rn_grad_t* grad, int i) {
  return !grad->wanted || grad->wanted[i];
}
static inline bool rn_grad_has_dy(const rn_grad_t* grad, int i) {
  return !rn_gradient_is_none(grad->dy[i]);
}
// The gradient of output |i|; zeros like the output if there is none.
rn_edge_t rn_grad_dy(rn_grad_t* grad, int i);
// The same, but RN_NO_EDGE if there is none.
rn_edge_t rn_grad_dy_or_none(rn_grad_t* grad, int i);
// Whether slices arrived at output |i|, and which.
static inline bool rn_grad_slices(const rn_grad_t* grad, int i, rn_gradient_t* out) {
  *out = grad->dy[i];
  return rn_gradient_is_slices(grad->dy[i]);
}
static inline void rn_grad_to(rn_grad_t* grad, int i, rn_edge_t dx) {
  grad->dx[i] = (rn_gradient_t){.dense = dx};
}
static inline void rn_grad_slices_to(rn_grad_t* grad, int i, rn_gradient_t slices) {
  grad->dx[i] = slices;
}

// Attributes of the forward node, by name; the definition guarantees that they exist.
const rn_attr_value_t* rn_grad_attr(const rn_grad_t* grad, const char* name);
static inline bool rn_grad_attr_bool(const rn_grad_t* grad, const char* name) {
  return rn_grad_attr(grad, name)->b;
}
static inline int64_t rn_grad_attr_int(const rn_grad_t* grad, const char* name) {
  return rn_grad_attr(grad, name)->i;
}
static inline float rn_grad_attr_float(const rn_grad_t* grad, const char* name) {
  return rn_grad_attr(grad, name)->f;
}
// The name of the forward node's op, for rules that several ops share.
const char* rn_grad_op(const rn_grad_t* grad);
// The static shape of an edge; RN_SHAPE_UNKNOWN when nothing is known.
rn_shape_t rn_grad_shape(const rn_grad_t* grad, rn_edge_t edge);

// Clients' rules, by the name of an op without a built-in rule or the value of "_gradient_op_type".
typedef struct rn_grad_rule_t {
  rn_gradient_fn_t fn;  // NULL if there is none
  void* arg;
} rn_grad_rule_t;
// ALREADY_EXISTS if |name| has a rule. Any thread; rules are never removed.
RN_MUST_USE rn_status_t rn_grad_rule_register(rn_str_t name, rn_grad_rule_t rule);
rn_grad_rule_t rn_grad_rule_find(rn_str_t name);

#endif  // RUNNEL_FRAMEWORK_GRAD_DEF_H_
