// Gradient rules of ops that read resource variables. The gradient of a handle is that of the
// variable's value.
#include "graph/graph.h"
#include "ops/rules.h"

RN_RULE(read_variable) { return rn_rule_pass(g, 0, 0); }

RN_RULE(resource_gather) {
  rn_edge_t shape = rn_VariableShape(g->scope, rn_grad_in(g, 0));
  int64_t batch = rn_grad_attr_int(g, "batch_dims");
  rn_edge_t handle = rn_grad_in(g, 0);
  const rn_handle_data_t* data = &handle.node->outputs[handle.index].handle;
  rn_shape_t known = data->is_set ? data->shape : RN_SHAPE_UNKNOWN;
  if (batch == 0) {
    rn_edge_t whole =
        rn_shape_is_full(known) ? rn_rule_ints(g, RN_INT64, known.dims, known.rank) : shape;
    rn_grad_slices_to(g, 0, rn_rule_rows(g, rn_grad_dy(g, 0), rn_grad_in(g, 1), whole, known));
    return RN_OK;
  }
  rn_grad_to(
      g, 0,
      rn_rule_gather(g, rn_grad_dy(g, 0), rn_grad_in(g, 1), batch, batch, shape, RN_SHAPE_UNKNOWN));
  return RN_OK;
}

RN_RULE(resource_gather_nd) {
  rn_edge_t indices = rn_grad_in(g, 1);
  rn_edge_t shape =
      rn_VariableShape(g->scope, rn_grad_in(g, 0), .out_type = rn_edge_dtype(indices));
  rn_grad_to(g, 0, rn_ScatterNd(g->scope, indices, rn_grad_dy(g, 0), shape));
  return RN_OK;
}
