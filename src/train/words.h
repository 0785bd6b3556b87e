// Small helpers that the builders of this folder share. After an error they do nothing.
#ifndef RUNNEL_TRAIN_WORDS_H_
#define RUNNEL_TRAIN_WORDS_H_

#include "graph/build.h"
#include "runnel/gradients.h"
#include "runnel/ops.h"

// The known part of the edge's shape.
rn_shape_t rn_shape_of_edge(rn_edge_t edge);
// Dimension |axis| (counted from the end if negative); -1 if unknown.
int64_t rn_dim_of_edge(rn_edge_t edge, int axis);

// |edge| cast to |dtype|; |edge| itself if it has that type.
rn_edge_t rn_as(rn_scope_t* scope, rn_edge_t edge, int dtype);
// A scalar of the type of |like|.
rn_edge_t rn_like(rn_scope_t* scope, rn_edge_t like, double value);
// A vector of int32, and a vector of one element.
rn_edge_t rn_axes(rn_scope_t* scope, const int32_t* axes, int count);
rn_edge_t rn_axis(rn_scope_t* scope, int32_t axis);
// All axes of |edge|, as a vector.
rn_edge_t rn_all_axes(rn_scope_t* scope, rn_edge_t edge);
// Sum and mean over all elements.
rn_edge_t rn_sum_all(rn_scope_t* scope, rn_edge_t edge);
rn_edge_t rn_mean_all(rn_scope_t* scope, rn_edge_t edge);
// x / y where y is not 0, else 0.
rn_edge_t rn_safe_div(rn_scope_t* scope, rn_edge_t x, rn_edge_t y);
// A shape as a constant vector of int64 or int32.
rn_edge_t rn_shape_const(rn_scope_t* scope, const int64_t* dims, int rank);
// Element |i| of a vector, as a scalar; rows |first| … |limit| - 1 of the first axis. A negative
// |limit| counts from the end; 0 means to the end.
rn_edge_t rn_element(rn_scope_t* scope, rn_edge_t vector, int i);
rn_edge_t rn_rows(rn_scope_t* scope, rn_edge_t edge, int first, int limit);
// The edge's shape at run time; a constant if it is known now.
rn_edge_t rn_run_shape(rn_scope_t* scope, rn_edge_t edge);
rn_edge_t rn_reshape(rn_scope_t* scope, rn_edge_t edge, const int64_t* dims, int rank);
// |edge|, available once |node| has run.
rn_edge_t rn_after(rn_scope_t* scope, rn_edge_t edge, rn_node_t* node);

// The numbers of a gradient: the tensor, or the values of slices.
static inline rn_edge_t* rn_gradient_part(rn_gradient_t* gradient) {
  return rn_gradient_is_slices(*gradient) ? &gradient->values : &gradient->dense;
}

// The graph-level seed to use with an op's seed: TensorFlow's default if the graph has none; 0 if
// the op's seed is 0, so that every run draws other numbers.
static inline int64_t rn_graph_seed(int64_t seed) { return seed ? 87654321 : 0; }

// Fails the scope with INVALID_ARGUMENT.
void rn_refuse(rn_scope_t* scope, const char* format, ...) RN_PRINTF(2, 3);
// Returns false and sets an error that names |who| unless |edge| is in this scope's graph.
bool rn_is_edge(rn_scope_t* scope, rn_edge_t edge, const char* who, const char* what);
// A child scope for the nodes of one function, called |name|, or |fallback| if that is NULL. NULL
// after an error.
rn_scope_t* rn_part(rn_scope_t* scope, const char* name, const char* fallback);

#endif  // RUNNEL_TRAIN_WORDS_H_
