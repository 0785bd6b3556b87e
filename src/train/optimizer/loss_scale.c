// Loss scaling, static and dynamic.
#include "train/optimizer/optimizer.h"
#include "train/words.h"

rn_edge_t rn_scaling_begin(rn_scaling_t* scaling, rn_scope_t* scope, rn_loss_scale_t options,
                           rn_edge_t loss) {
  *scaling = (rn_scaling_t){.scope = scope, .options = options};
  if (!(options.scale > 0)) {
    rn_refuse(scope, "The loss scale %g must be above 0", options.scale);
    return RN_NO_EDGE;
  }
  rn_scope_t* s = rn_scope_child(scope, "LossScale");
  scaling->scale = rn_const_float(s, options.scale);
  if (options.is_dynamic) {
    scaling->current =
        rn_new_variable(scope, "current_loss_scale", scaling->scale, .not_trainable = true);
    scaling->good_steps = rn_new_variable(scope, "good_steps", rn_const_scalar(s, RN_INT64, 0),
                                          .not_trainable = true);
    if (scaling->current) scaling->scale = scaling->current->value;
  }
  rn_edge_t scaled =
      rn_scope_ok(s) ? rn_Mul(s, loss, rn_as(s, scaling->scale, rn_edge_dtype(loss))) : RN_NO_EDGE;
  rn_scope_destroy(s);
  return scaled;
}

// Whether every element of every gradient is finite.
static rn_edge_t all_finite(rn_scope_t* s, rn_gradient_t* gradients, int count) {
  rn_edge_t all = RN_NO_EDGE;
  for (int i = 0; i < count; ++i) {
    rn_edge_t x = *rn_gradient_part(&gradients[i]);
    if (!x.node) continue;
    rn_edge_t one = rn_All(s, rn_IsFinite(s, x), rn_all_axes(s, x));
    all = all.node ? rn_LogicalAnd(s, all, one) : one;
  }
  return all;
}

void rn_scaling_gradients(rn_scaling_t* scaling, rn_gradient_t* gradients, int count) {
  if (!rn_scope_ok(scaling->scope)) return;
  rn_scope_t* s = rn_scope_child(scaling->scope, "LossScale");
  if (scaling->options.is_dynamic) {
    scaling->is_finite = all_finite(s, gradients, count);
    rn_Switch_out_t gate = rn_Switch(s, scaling->scale, scaling->is_finite);
    scaling->gate_true = gate.output_true;
    scaling->gate_false = gate.output_false;
  }
  for (int i = 0; i < count && rn_scope_ok(s); ++i) {
    rn_edge_t* x = rn_gradient_part(&gradients[i]);
    if (!x->node) continue;
    rn_edge_t scale = scaling->options.is_dynamic ? scaling->gate_true : scaling->scale;
    rn_edge_t inverse = rn_RealDiv(s, rn_const_float(s, 1), scale);
    *x = rn_Mul(s, *x, rn_as(s, inverse, rn_edge_dtype(*x)));
  }
  rn_scope_destroy(s);
}

// The scale grows after |period| finite steps and shrinks, to no less than 1, after one that is not
// finite.
static rn_node_t* adapt(rn_scope_t* s, rn_scaling_t* scaling) {
  int64_t period = scaling->options.period ? scaling->options.period : 2000;
  float multiplier = scaling->options.multiplier ? scaling->options.multiplier : 2;
  rn_edge_t one = rn_const_scalar(s, RN_INT64, 1), zero = rn_const_scalar(s, RN_INT64, 0);
  rn_edge_t scale = scaling->current->value, factor = rn_const_float(s, multiplier);
  rn_edge_t good = rn_AddV2(s, scaling->good_steps->value, one);
  rn_edge_t is_due = rn_GreaterEqual(s, good, rn_const_scalar(s, RN_INT64, (double)period));
  rn_edge_t larger = rn_Mul(s, scale, factor);
  rn_edge_t grown = rn_SelectV2(s, rn_LogicalAnd(s, is_due, rn_IsFinite(s, larger)), larger, scale);
  rn_edge_t smaller = rn_Maximum(s, rn_RealDiv(s, scale, factor), rn_const_float(s, 1));
  rn_edge_t next = rn_SelectV2(s, scaling->is_finite, grown, smaller);
  rn_edge_t counted =
      rn_SelectV2(s, rn_LogicalOr(s, is_due, rn_LogicalNot(s, scaling->is_finite)), zero, good);
  rn_node_t* nodes[2] = {rn_var_assign(s, scaling->current, next),
                         rn_var_assign(s, scaling->good_steps, counted)};
  return rn_group(s, nodes, 2);
}

rn_node_t* rn_scaling_end(rn_scaling_t* scaling, rn_node_t* step) {
  if (!scaling->options.is_dynamic || !rn_scope_ok(scaling->scope)) return step;
  rn_scope_t* s = rn_scope_child(scaling->scope, "LossScale");
  rn_edge_t ends[2] = {rn_after(s, scaling->gate_true, step), scaling->gate_false};
  rn_edge_t met = rn_Merge(s, ends, 2).output;
  rn_node_t* nodes[2] = {met.node, NULL};
  if (met.node) rn_scope_add_control(s, met.node);
  nodes[1] = rn_scope_ok(s) ? adapt(s, scaling) : NULL;
  rn_node_t* all = rn_group(s, nodes, 2);
  rn_scope_destroy(s);
  return all;
}
