// Helpers for gradient rules.
//
// A rule is a function rn_grad_fn_NAME that a .ops line names; framework/grad_def.h is its
// contract. Builders do nothing after an error, and the walk checks the scope when a rule returns,
// so a rule need not check for errors.
#ifndef RUNNEL_OPS_RULES_H_
#define RUNNEL_OPS_RULES_H_

#include "framework/grad_def.h"
#include "runnel/ops.h"

#define RN_RULE(name)                        \
  rn_status_t rn_grad_fn_##name(rn_grad_t*); \
  rn_status_t rn_grad_fn_##name(rn_grad_t* g)

// The value of a string attribute.
#define RN_RULE_TEXT(g, name) rn_grad_attr(g, name)->s.data

// Adds a node of |op| with these inputs and returns its output 0. Copies every attribute that the
// forward node has under the same name (strides, padding, format …). Types follow from the inputs.
rn_edge_t rn_rule_alike_(rn_grad_t* g, const char* op, int input_count, const rn_edge_t* inputs);
#define RN_RULE_ALIKE(g, op, ...)                                                      \
  rn_rule_alike_(g, op, (int)(sizeof((rn_edge_t[]){__VA_ARGS__}) / sizeof(rn_edge_t)), \
                 (const rn_edge_t[]){__VA_ARGS__})

// The shape of |like| as a vector of |dtype| (int32 or int64): a constant where it is known.
rn_edge_t rn_rule_shape(rn_grad_t* g, rn_edge_t like, int dtype);
// |values| as a vector of |dtype| (int32 or int64).
rn_edge_t rn_rule_ints(rn_grad_t* g, int dtype, const int64_t* values, int count);
// first, first + step … below |limit|, as a vector of int32.
rn_edge_t rn_rule_range(rn_grad_t* g, int first, int limit, int step);
// |value| as a scalar of |like|'s type.
rn_edge_t rn_rule_scalar(rn_grad_t* g, rn_edge_t like, double value);
// |edge| multiplied by |factor|.
rn_edge_t rn_rule_scale(rn_grad_t* g, double factor, rn_edge_t edge);
// The conjugate of a complex |edge|; other types unchanged.
rn_edge_t rn_rule_conj(rn_grad_t* g, rn_edge_t edge);
// |edge| cast to |dtype|, or |edge| itself if it has that type.
rn_edge_t rn_rule_cast(rn_grad_t* g, rn_edge_t edge, int dtype);
// |edge| reshaped like |like|, or |edge| itself if the shapes are known to be equal.
rn_edge_t rn_rule_reshape_like(rn_grad_t* g, rn_edge_t edge, rn_edge_t like);
// The sum of all elements.
rn_edge_t rn_rule_sum_all(rn_grad_t* g, rn_edge_t edge);
// |edge| with an axis of size 1 at |axis|.
rn_edge_t rn_rule_expand(rn_grad_t* g, rn_edge_t edge, int axis);
// Zeros of |like|'s type that broadcast to any shape.
static inline rn_edge_t rn_rule_zero(rn_grad_t* g, rn_edge_t like) {
  return rn_rule_scalar(g, like, 0);
}

// The gradients of all outputs, with zeros where there is none; the array is in the rule's arena.
RN_MUST_USE rn_status_t rn_rule_all_dy(rn_grad_t* g, rn_edge_t** out);

// The elements of an integer vector or scalar if all are known; else NULL. Valid as long as the
// graph.
const int64_t* rn_rule_values(rn_edge_t edge, int* out_count);
bool rn_rule_scalar_value(rn_edge_t edge, int64_t* out_value);
int rn_rule_rank(const rn_grad_t* g, rn_edge_t edge);  // RN_UNKNOWN if not known

// |value|, which has the shape that |own| and |other| broadcast to, summed to the shape of |own|.
// The last |fixed| axes do not broadcast. Adds nodes only if the static shapes do not decide.
rn_edge_t rn_rule_unbroadcast(rn_grad_t* g, rn_edge_t value, rn_edge_t own, rn_edge_t other,
                              int fixed);
// Sends the gradients |dx| and |dy| (RN_NO_EDGE for none) of a broadcasting op to inputs |x| and
// |y|.
rn_status_t rn_rule_broadcast(rn_grad_t* g, int x, rn_edge_t dx, int y, rn_edge_t dy);

// The dense gradient of a gather along |axis| with |batch| batch axes. |shape|, a vector, is the
// shape of the tensor that was gathered from; |known| is what is known of it statically.
rn_edge_t rn_rule_gather(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, int64_t axis, int64_t batch,
                         rn_edge_t shape, rn_shape_t known);

// The gradient of a gather along the first axis, as slices of a tensor with the shape |shape| (a
// vector), known statically as |known|.
rn_gradient_t rn_rule_rows(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, rn_edge_t shape,
                           rn_shape_t known);
// Passes the gradient of output |i| to input |to| unchanged.
static inline rn_status_t rn_rule_pass(rn_grad_t* g, int i, int to) {
  if (rn_grad_has_dy(g, i)) rn_grad_slices_to(g, to, g->dy[i]);
  return RN_OK;
}

#endif  // RUNNEL_OPS_RULES_H_
