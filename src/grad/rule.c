// Functions that rules call (framework/grad_def.h) and that clients' rules may call
// (runnel/gradients.h).
#include "grad/walk.h"
#include "runnel/ops.h"

rn_edge_t rn_grad_dy_or_none(rn_grad_t* grad, int i) {
  rn_gradient_t* dy = &grad->dy[i];
  if (rn_gradient_is_slices(*dy)) {
    rn_edge_t dense = grad->level ? rn_level_dense(grad->level, *dy, grad->node)
                                  : rn_gradient_to_dense(grad->scope, *dy);
    *dy = (rn_gradient_t){.dense = dense};
  }
  return dy->dense;
}

rn_edge_t rn_grad_dy(rn_grad_t* grad, int i) {
  if (rn_grad_has_dy(grad, i)) return rn_grad_dy_or_none(grad, i);
  rn_edge_t out = rn_grad_out(grad, i);
  return grad->level ? rn_level_zeros(grad->level, out) : rn_ZerosLike(grad->scope, out);
}

const char* rn_grad_op(const rn_grad_t* grad) { return grad->node->op->name; }

const rn_attr_value_t* rn_grad_attr(const rn_grad_t* grad, const char* name) {
  static const rn_attr_value_t none = {0};
  const rn_attr_value_t* value = rn_node_attr(grad->node, rn_str(name));
  return value ? value : &none;
}

rn_shape_t rn_grad_shape(const rn_grad_t* grad, rn_edge_t edge) {
  if (!edge.node) return RN_SHAPE_UNKNOWN;
  const rn_level_t* level = grad->level;
  return level ? rn_walk_shape(level->walk, edge) : edge.node->outputs[edge.index].shape;
}

RN_API bool rn_register_gradient(const char* name, rn_gradient_fn_t fn, void* arg) {
  rn_status_t status = rn_grad_rule_register(rn_str(name), (rn_grad_rule_t){fn, arg});
  bool done = rn_ok(status);
  rn_status_free(status);
  return done;
}

RN_API rn_scope_t* rn_grad_scope(rn_grad_t* g) { return g->scope; }
RN_API rn_node_t* rn_grad_node(const rn_grad_t* g) { return g->node; }
RN_API int rn_grad_input_count(const rn_grad_t* g) { return g->input_count; }

static bool has_input(const rn_grad_t* g, int i) { return i >= 0 && i < g->input_count; }
static bool has_output(const rn_grad_t* g, int i) { return i >= 0 && i < g->output_count; }

RN_API rn_edge_t rn_grad_input(const rn_grad_t* g, int i) {
  return has_input(g, i) ? rn_grad_in(g, i) : RN_NO_EDGE;
}
RN_API rn_edge_t rn_grad_output(const rn_grad_t* g, int i) {
  return has_output(g, i) ? rn_grad_out(g, i) : RN_NO_EDGE;
}
RN_API rn_edge_t rn_grad_arrived(rn_grad_t* g, int i) {
  return has_output(g, i) ? rn_grad_dy(g, i) : RN_NO_EDGE;
}
RN_API rn_gradient_t rn_grad_arrived_as_is(const rn_grad_t* g, int i) {
  return has_output(g, i) ? g->dy[i] : (rn_gradient_t){0};
}
RN_API bool rn_grad_is_wanted(const rn_grad_t* g, int i) {
  return has_input(g, i) && rn_grad_wants(g, i);
}

static void send(rn_grad_t* g, int i, rn_gradient_t gradient) {
  if (has_input(g, i)) {
    g->dx[i] = gradient;
    return;
  }
  rn_scope_fail(g->scope,
                rn_invalid_argument("The gradient function of node '%s' (%s) sends to "
                                    "input %d; the node has %d",
                                    g->node->name.data, g->node->op->name, i, (int)g->input_count));
}

RN_API void rn_grad_send(rn_grad_t* g, int i, rn_edge_t gradient) {
  send(g, i, (rn_gradient_t){.dense = gradient});
}
RN_API void rn_grad_send_slices(rn_grad_t* g, int i, rn_gradient_t slices) { send(g, i, slices); }

RN_API rn_edge_t rn_grad_read(rn_grad_t* g, rn_edge_t value, bool is_new) {
  return g->level ? rn_level_read(g->level, value, is_new) : value;
}

RN_API rn_node_t* rn_grad_anchor(const rn_grad_t* g) {
  const rn_scope_hook_t* hook = rn_scope_hook(g->scope);
  return hook ? hook->anchor : NULL;
}

RN_API void rn_grad_refuse(rn_grad_t* g, int code, const char* message) {
  rn_scope_fail(g->scope, rn_status_make((rn_code_t)(code ? code : RN_CODE_UNKNOWN), "%s",
                                         message ? message : ""));
}
