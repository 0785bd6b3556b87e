// Values of edges, where a variable's handle stands for the variable's value; zeros of their shape,
// and shapes of their gradients.
#include "grad/walk.h"
#include "runnel/ops.h"

// Whether |node| passes on a handle that it reads.
static bool passes(const rn_node_t* node) {
  rn_op_role_t role = node->op->role;
  return role == RN_ROLE_ENTER || role == RN_ROLE_SWITCH || role == RN_ROLE_MERGE ||
         role == RN_ROLE_IDENTITY;
}

// The dtype of the variable behind a handle, from the handle itself or, for a function argument,
// from a node that reads it. RN_INVALID if unknown.
static rn_dtype_t held_type(rn_edge_t edge, int depth) {
  const rn_output_t* output = &edge.node->outputs[edge.index];
  if (output->handle.is_set) return output->handle.dtype;
  rn_dtype_t found = RN_INVALID;
  for (size_t c = 0; depth > 0 && found == RN_INVALID && c < output->consumers.count; ++c) {
    rn_node_t* node = output->consumers.items[c].node;
    const rn_attr_value_t* dtype = rn_node_attr(node, RN_STR("dtype"));
    bool reads = strcmp(node->op->name, "ReadVariableOp") == 0 ||
                 strncmp(node->op->name, "ResourceGather", 14) == 0;
    if (reads && dtype) found = dtype->type;
    for (int32_t o = 0; passes(node) && found == RN_INVALID && o < node->output_count; ++o)
      if (node->outputs[o].dtype == RN_RESOURCE) found = held_type((rn_edge_t){node, o}, depth - 1);
  }
  return found;
}

// The most loops and conditionals that a handle is followed into.
enum { DEEPEST_READ = 16 };

static int value_type(rn_edge_t edge) {
  int dtype = rn_edge_dtype(edge);
  for (int i = 0; dtype == RN_RESOURCE && passes(edge.node) && i < DEEPEST_READ; ++i)
    edge = edge.node->inputs[0];
  rn_dtype_t held = dtype == RN_RESOURCE ? held_type(edge, DEEPEST_READ) : RN_INVALID;
  return held == RN_INVALID ? dtype : (int)held;
}

int rn_walk_value(rn_walk_t* walk, rn_edge_t edge, rn_shape_t* out_shape) {
  const rn_handle_data_t* handle = &edge.node->outputs[edge.index].handle;
  int dtype = value_type(edge);
  if (dtype == rn_edge_dtype(edge))
    *out_shape = rn_walk_shape(walk, edge);
  else
    *out_shape = handle->is_set ? handle->shape : RN_SHAPE_UNKNOWN;
  return dtype;
}

rn_edge_t rn_level_value(rn_level_t* level, rn_edge_t edge) {
  int dtype = value_type(edge);
  return dtype == rn_edge_dtype(edge) ? edge : rn_ReadVariableOp(level->scope, edge, dtype);
}

rn_edge_t rn_level_zeros(rn_level_t* level, rn_edge_t like) {
  rn_shape_t shape;
  int dtype = rn_walk_value(level->walk, like, &shape);
  // In a loop, the value would have to be kept only for its shape.
  bool is_kept = !level->backward || rn_backward_has(level, like);
  if (is_kept || !rn_shape_is_full(shape) || dtype == RN_RESOURCE || dtype == RN_VARIANT)
    return rn_ZerosLike(level->scope, rn_level_value(level, like));
  int64_t rank = shape.rank;
  rn_edge_t dims = rn_const(level->scope, RN_INT64, &rank, 1, shape.dims);
  return rn_Fill(level->scope, dims, rn_const_scalar(level->scope, dtype, 0));
}

rn_status_t rn_level_shaped(rn_level_t* level, rn_edge_t gradient, rn_edge_t like) {
  if (!gradient.node) return RN_OK;
  rn_shape_t own = gradient.node->outputs[gradient.index].shape, shape;
  if (rn_shape_is_full(own)) return RN_OK;
  int dtype = rn_walk_value(level->walk, like, &shape);
  bool is_same = dtype == rn_edge_dtype(gradient) && dtype != RN_VARIANT;  // lists have others
  if (!is_same || shape.rank == RN_UNKNOWN) return RN_OK;
  rn_status_t status = rn_graph_set_shape(level->walk->graph, gradient, shape);
  if (rn_ok(status)) return status;
  return rn_status_annotate(status, "\n\t in the gradient by '%s' (%s), which '%s' (%s) is",
                            like.node->name.data, like.node->op->name, gradient.node->name.data,
                            gradient.node->op->name);
}
