// Gradient rules: how an op passes the gradient of its outputs on to its inputs, by adding nodes to
// the graph.
//
// A rule is named in the .ops file and written in ops/<family>_grad.c. It reads the node's inputs,
// outputs and attributes, builds nodes with the typed builders in |scope|, and says rn_grad_to for
// each input that has a gradient; inputs it leaves out get none. An output nobody asked a gradient
// of has dy.node == NULL; rn_grad_dy makes zeros for it when the rule needs them.
#ifndef RUNNEL_FRAMEWORK_GRAD_DEF_H_
#define RUNNEL_FRAMEWORK_GRAD_DEF_H_

#include "framework/op_def.h"
#include "runnel/graph.h"

struct rn_grad_t {
  rn_scope_t* scope;  // where the rule builds; carries the first error
  rn_arena_t* arena;  // scratch of the rule's
  rn_node_t* node;    // the forward node
  int32_t input_count;
  const rn_edge_t* inputs;
  int32_t output_count;
  const rn_edge_t* dy;  // gradient of each output; node NULL: none
  const bool* wanted;   // by input: whether somebody waits for its gradient; NULL: all
  rn_edge_t* dx;        // gradient of each input; the rule fills it through rn_grad_to
};

static inline rn_edge_t rn_grad_in(const rn_grad_t* grad, int i) { return grad->inputs[i]; }
static inline rn_edge_t rn_grad_out(const rn_grad_t* grad, int i) {
  return (rn_edge_t){grad->node, i};
}
// Whether the gradient of input |i| is of use; a rule need not build what is not.
static inline bool rn_grad_wants(const rn_grad_t* grad, int i) {
  return !grad->wanted || grad->wanted[i];
}
static inline bool rn_grad_has_dy(const rn_grad_t* grad, int i) { return grad->dy[i].node != NULL; }
// The gradient of output |i|; zeros like the output if there is none.
rn_edge_t rn_grad_dy(const rn_grad_t* grad, int i);
static inline void rn_grad_to(rn_grad_t* grad, int i, rn_edge_t dx) { grad->dx[i] = dx; }

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

#endif  // RUNNEL_FRAMEWORK_GRAD_DEF_H_
