// Steps that gradient rules of several families share.
//
// A rule is a function rn_grad_fn_NAME that a .ops line names; framework/grad_def.h is its
// contract. Builders do nothing after an error, and the walk looks at the scope when a rule
// returns, so that a rule checks nothing on its way.
#ifndef RUNNEL_OPS_RULES_H_
#define RUNNEL_OPS_RULES_H_

#include "framework/grad_def.h"
#include "runnel/ops.h"

#define RN_RULE(name)                        \
  rn_status_t rn_grad_fn_##name(rn_grad_t*); \
  rn_status_t rn_grad_fn_##name(rn_grad_t* g)

// The text of a string attribute.
#define RN_RULE_TEXT(g, name) rn_grad_attr(g, name)->s.data

// A node of |op| with these inputs and, for each attribute that the forward node has under the same
// name, its value: strides, padding, format … go from an op to its gradient and back. Types follow
// from the inputs. Output 0.
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
// |edge| times a constant.
rn_edge_t rn_rule_scale(rn_grad_t* g, double factor, rn_edge_t edge);
// The conjugate of complex numbers, other types as they are.
rn_edge_t rn_rule_conj(rn_grad_t* g, rn_edge_t edge);
// |edge| as |dtype|: itself if it is that already.
rn_edge_t rn_rule_cast(rn_grad_t* g, rn_edge_t edge, int dtype);
// |edge| with the shape of |like|: itself if they are known to be equal.
rn_edge_t rn_rule_reshape_like(rn_grad_t* g, rn_edge_t edge, rn_edge_t like);
// The sum of all elements.
rn_edge_t rn_rule_sum_all(rn_grad_t* g, rn_edge_t edge);
// |edge| with an axis of size 1 at |axis|.
rn_edge_t rn_rule_expand(rn_grad_t* g, rn_edge_t edge, int axis);
// Zeros of |like|'s type that broadcast to any shape.
static inline rn_edge_t rn_rule_zero(rn_grad_t* g, rn_edge_t like) {
  return rn_rule_scalar(g, like, 0);
}

// The gradients of all outputs, zeros where there is none; they live in the rule's arena.
RN_MUST_USE rn_status_t rn_rule_all_dy(rn_grad_t* g, rn_edge_t** out);

// The elements of an integer vector or scalar where all are known; NULL otherwise. They live as
// long as the graph.
const int64_t* rn_rule_values(rn_edge_t edge, int* out_count);
bool rn_rule_scalar_value(rn_edge_t edge, int64_t* out_value);
int rn_rule_rank(const rn_grad_t* g, rn_edge_t edge);  // RN_UNKNOWN: not known

// |value|, which has the shape that |own| and |other| broadcast to, summed to the shape of |own|.
// The last |fixed| axes do not take part. Nodes only where the static shapes leave a doubt.
rn_edge_t rn_rule_unbroadcast(rn_grad_t* g, rn_edge_t value, rn_edge_t own, rn_edge_t other,
                              int fixed);
// Sends the gradients |dx| and |dy| (RN_NO_EDGE: none) of a broadcasting op to inputs |x| and |y|.
rn_status_t rn_rule_broadcast(rn_grad_t* g, int x, rn_edge_t dx, int y, rn_edge_t dy);

// The gradient of rows taken from a tensor called params along |axis|, with |batch| axes in common:
// dense, of the shape |shape| (a vector) that is known as |known|.
rn_edge_t rn_rule_gather(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, int64_t axis, int64_t batch,
                         rn_edge_t shape, rn_shape_t known);

// Rows that were taken along the first axis, as slices of a tensor of the shape |shape| (a vector)
// that is known as |known|.
rn_gradient_t rn_rule_rows(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, rn_edge_t shape,
                           rn_shape_t known);
// What arrived at output |i| goes to input |to| as it came.
static inline rn_status_t rn_rule_pass(rn_grad_t* g, int i, int to) {
  if (rn_grad_has_dy(g, i)) rn_grad_slices_to(g, to, g->dy[i]);
  return RN_OK;
}

#endif  // RUNNEL_OPS_RULES_H_
