// Gradients in C: options, sparse results, your own rules, Jacobian-vector products and a checker.
//
//   rn_gradient_t d[2];
//   rn_gradients_of(s, &loss, 1, xs, 2, &(rn_gradient_options_t){.colocate = true}, d);
//   if (rn_gradient_is_slices(d[0])) … d[0].values, d[0].indices …
//
// All functions add nodes to the scope's graph; the scope keeps the first error, as with builders.
#ifndef RUNNEL_GRADIENTS_H_
#define RUNNEL_GRADIENTS_H_

#include "runnel/graph.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// The gradient of one x. Dense: only |dense| is set. Sparse: |dense| is RN_NO_EDGE, and row |i| of
// |values| belongs to row |indices[i]| of a tensor of shape |dense_shape| (a vector of int32 or
// int64); a row that occurs twice gets the sum. None: no edge is set.
typedef struct rn_gradient_t {
  rn_edge_t dense;
  rn_edge_t values;
  rn_edge_t indices;  // a vector of int32 or int64
  rn_edge_t dense_shape;
} rn_gradient_t;

// True if the gradient is sparse: |values| and |indices| are set.
static inline bool rn_gradient_is_slices(rn_gradient_t gradient) {
  return gradient.values.node != NULL;
}
// True if nothing flows back to this x.
static inline bool rn_gradient_is_none(rn_gradient_t gradient) {
  return !gradient.dense.node && !gradient.values.node;
}

// The gradient of an x that no y depends on.
typedef enum rn_unconnected_t {
  RN_UNCONNECTED_NONE,
  RN_UNCONNECTED_ZERO,  // zeros like x
} rn_unconnected_t;

// Which gradients wait for each other.
typedef enum rn_gate_t {
  RN_GATE_NONE,   // each gradient is available as soon as possible
  RN_GATE_OP,     // the gradients of one op's inputs together
  RN_GATE_GRAPH,  // all results together
} rn_gate_t;

typedef struct rn_gradient_options_t {
  const rn_edge_t* dys;    // gradients of the ys, RN_NO_EDGE for none; NULL: all ones
  const rn_edge_t* stops;  // gradients stop at these edges
  int stop_count;
  rn_unconnected_t unconnected;
  rn_gate_t gate;
  bool colocate;     // place the gradient of an op with the op ("_class", device)
  bool dense;        // results are never slices
  bool swap_memory;  // values that loops keep may move out of device memory
  const char* name;  // scope of the new nodes; NULL: "gradients"
  // Gets a line if an op converts slices to a dense gradient; may be NULL.
  void (*log)(void* arg, const char* line);
  void* log_arg;
} rn_gradient_options_t;

// Gradients of the sum of |ys| with respect to each of |xs|. |options| may be NULL. Returns false
// after an error, which the scope keeps; |out| is then all none.
//
// An x can be any edge, also the handle of a resource variable: its gradient is that of the
// variable's value. Nothing flows through integers; that is not an error.
RN_API bool rn_gradients_of(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                            const rn_edge_t* xs, int x_count, const rn_gradient_options_t* options,
                            rn_gradient_t* out);

// The same for one y, with dense results.
RN_API bool rn_gradients(rn_scope_t* scope, rn_edge_t y, const rn_edge_t* xs, int count,
                         rn_edge_t* out_dxs);

// The gradient as one tensor: a dense gradient itself, or the sum of the slices. RN_NO_EDGE for
// none.
RN_API rn_edge_t rn_gradient_to_dense(rn_scope_t* scope, rn_gradient_t gradient);
// The sum of |count| gradients; slices if all are slices. Ignores those that are none.
RN_API rn_gradient_t rn_gradient_sum(rn_scope_t* scope, const rn_gradient_t* gradients, int count);
// |gradient| times the scalar |factor|.
RN_API rn_gradient_t rn_gradient_scale(rn_scope_t* scope, rn_gradient_t gradient, rn_edge_t factor);
// Adds up slices with equal indices, so that all indices differ. Does not change dense gradients.
RN_API rn_gradient_t rn_gradient_unique(rn_scope_t* scope, rn_gradient_t gradient);

// The change of each y when the xs change by |vs|: the Jacobian times a vector, computed by two
// reverse walks. |out_dys| has RN_NO_EDGE where y depends on no x.
RN_API bool rn_jacobian_vector(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                               const rn_edge_t* xs, int x_count, const rn_edge_t* vs,
                               rn_edge_t* out_dys);

// How gradients are checked. A field that is 0 has its default.
typedef struct rn_check_options_t {
  double step;       // by how much an element is moved up and down; default: what suits the type
  double tolerance;  // largest error that is allowed; 0: errors are only measured
  int max_elements;  // how many elements of each x are moved, at even distances; default 64
} rn_check_options_t;

// Compares the gradients of |ys| (weighted with fixed numbers and summed) by |xs| with central
// differences at |values|, which are fed to the xs: edges of float or double, usually placeholders.
// |*out_error| (may be NULL) becomes the largest difference, relative to the largest gradient or 1.
// Returns false if it is above the tolerance (the scope's error names x and element) or if
// something else fails. Adds nodes to the graph and runs them in a session of its own.
RN_API bool rn_check_gradient(rn_scope_t* scope, const rn_edge_t* ys, int y_count,
                              const rn_edge_t* xs, TF_Tensor* const* values, int x_count,
                              const rn_check_options_t* options, double* out_error);

// Your own gradient rules.
//
// A rule is called once per node of its op between the ys and the xs. It builds nodes in
// rn_grad_scope(g) and calls rn_grad_send for every input that has a gradient. It returns false
// after rn_grad_refuse, or if it cannot do anything.
typedef struct rn_grad_t rn_grad_t;
typedef bool (*rn_gradient_fn_t)(rn_grad_t* g, void* arg);

// Registers |fn| as the rule |name|: for the op of this name if it has none (ops of plug-ins), and
// for every node whose attribute "_gradient_op_type" is |name|. False if the name already has a
// rule. A rule stays registered for the whole process.
RN_API bool rn_register_gradient(const char* name, rn_gradient_fn_t fn, void* arg);

// The scope in which the rule builds its nodes.
RN_API rn_scope_t* rn_grad_scope(rn_grad_t* g);
// The forward node whose gradient the rule computes.
RN_API rn_node_t* rn_grad_node(const rn_grad_t* g);
// The number of inputs of that node.
RN_API int rn_grad_input_count(const rn_grad_t* g);
// Input or output |i| of that node.
RN_API rn_edge_t rn_grad_input(const rn_grad_t* g, int i);
RN_API rn_edge_t rn_grad_output(const rn_grad_t* g, int i);
// The gradient that arrived at output |i|, zeros if none did; slices are converted to dense.
RN_API rn_edge_t rn_grad_arrived(rn_grad_t* g, int i);
// The same, unconverted; none if nothing arrived.
RN_API rn_gradient_t rn_grad_arrived_as_is(const rn_grad_t* g, int i);
RN_API bool rn_grad_is_wanted(const rn_grad_t* g, int i);  // whether input |i| needs a gradient
RN_API void rn_grad_send(rn_grad_t* g, int i, rn_edge_t gradient);
RN_API void rn_grad_send_slices(rn_grad_t* g, int i, rn_gradient_t slices);
// For rules that build nodes without the scope (the scope does this itself): |value| as the rule
// must read it. In a backward loop, forward values are not directly available; this returns a copy
// of the value. |is_new|: |value| was built after the walk began, in the frame of the ys.
RN_API rn_edge_t rn_grad_read(rn_grad_t* g, rn_edge_t value, bool is_new);
// What a node without inputs must wait for, so that it runs in every iteration; NULL if nothing,
// and then rn_grad_read is not needed either.
RN_API rn_node_t* rn_grad_anchor(const rn_grad_t* g);
RN_API void rn_grad_refuse(rn_grad_t* g, int code, const char* message);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_GRADIENTS_H_
