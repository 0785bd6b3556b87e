// Adam, with decoupled weight decay and AMSGrad.
#include "train/optimizer/optimizer.h"
#include "train/words.h"

// First and second moment, and the largest second moment so far.
static int slots(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  starts[0] = starts[1] = starts[2] = 0;
  return optimizer->amsgrad ? 3 : 2;
}

static float beta1_of(const rn_optimizer_t* optimizer) { return rn_number(optimizer->beta1, 0.9f); }
static float beta2_of(const rn_optimizer_t* optimizer) {
  return rn_number(optimizer->beta2, 0.999f);
}

// The powers of both betas.
static int shared(const rn_optimizer_t* optimizer, const char* names[RN_MAX_SLOTS],
                  float starts[RN_MAX_SLOTS]) {
  names[0] = "beta1_power";
  names[1] = "beta2_power";
  starts[0] = beta1_of(optimizer);
  starts[1] = beta2_of(optimizer);
  return 2;
}

typedef struct rule_adam_numbers_t {
  rn_edge_t power1, power2, beta1, beta2, epsilon, one;
} rule_adam_numbers_t;

static rule_adam_numbers_t numbers_of(rn_update_t* u) {
  int dtype = u->variable->dtype;
  rule_adam_numbers_t n = {.beta1 = rn_update_number(u, beta1_of(u->optimizer)),
                           .beta2 = rn_update_number(u, beta2_of(u->optimizer)),
                           .epsilon = rn_update_number(u, rn_number(u->optimizer->epsilon, 1e-8f)),
                           .one = rn_update_number(u, 1)};
  if (!rn_scope_ok(u->scope)) return n;
  n.power1 = rn_as(u->scope, u->shared[0]->value, dtype);
  n.power2 = rn_as(u->scope, u->shared[1]->value, dtype);
  return n;
}

// Updates moment |slot|: beta * slot + (1 - beta) * x, added only to the indexed rows if there are
// indices. Returns the new value.
static rn_edge_t move(rn_update_t* u, const rn_var_t* slot, rn_edge_t beta, rn_edge_t one,
                      rn_edge_t x, rn_edge_t indices) {
  rn_scope_t* s = u->scope;
  rn_edge_t part = rn_Mul(s, x, rn_Sub(s, one, beta));
  rn_edge_t faded = rn_Mul(s, slot->value, beta);
  if (!indices.node) {
    rn_node_t* assigned = rn_var_assign(s, slot, rn_AddV2(s, faded, part));
    return rn_var_read_after(s, slot, assigned);
  }
  rn_scope_t* after = rn_scope_child(s, "scatter");
  if (after) rn_scope_add_control(after, rn_var_assign(s, slot, faded));
  rn_node_t* added = rn_var_scatter_add(after, slot, indices, part);
  rn_scope_destroy(after);
  return rn_var_read_after(s, slot, added);
}

// The step from single ops: for sparse gradients, because moments decay in all rows, and for
// variants without an op.
static rn_node_t* by_hand(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_scope_t* s = u->scope;
  rule_adam_numbers_t n = numbers_of(u);
  if (!rn_scope_ok(s)) return NULL;
  rn_edge_t rate = rn_RealDiv(s, rn_Mul(s, u->rate, rn_Sqrt(s, rn_Sub(s, n.one, n.power2))),
                              rn_Sub(s, n.one, n.power1));
  rn_edge_t m = move(u, u->slots[0], n.beta1, n.one, gradient, indices);
  rn_edge_t v = move(u, u->slots[1], n.beta2, n.one, rn_Mul(s, gradient, gradient), indices);
  if (u->optimizer->amsgrad) {
    rn_node_t* grown = rn_var_assign(s, u->slots[2], rn_Maximum(s, u->slots[2]->value, v));
    v = rn_var_read_after(s, u->slots[2], grown);
  }
  rn_edge_t change = rn_RealDiv(s, rn_Mul(s, rate, m), rn_AddV2(s, rn_Sqrt(s, v), n.epsilon));
  return rn_var_subtract(s, u->variable, change);
}

// AdamW: weight decay runs after the gradient is computed and before the step.
static void decay_weights(rn_update_t* u, rn_edge_t gradient) {
  if (u->optimizer->weight_decay == 0 || !rn_scope_ok(u->scope)) return;
  rn_scope_t* after = rn_scope_child(u->scope, "weight_decay");
  if (after && gradient.node) rn_scope_add_control(after, gradient.node);
  rn_edge_t part = rn_Mul(after, u->rate, rn_update_number(u, u->optimizer->weight_decay));
  rn_edge_t now = rn_var_read(after, u->variable);
  rn_node_t* node = rn_var_subtract(after, u->variable, rn_Mul(after, now, part));
  rn_scope_destroy(after);
  if (node) rn_scope_add_control(u->scope, node);
}

static rn_node_t* dense(rn_update_t* u, rn_edge_t gradient) {
  decay_weights(u, gradient);
  bool amsgrad = u->optimizer->amsgrad;
  if (amsgrad && !u->variable->is_resource) return by_hand(u, gradient, RN_NO_EDGE);
  rule_adam_numbers_t n = numbers_of(u);
  if (!rn_scope_ok(u->scope)) return NULL;
  rn_edge_t variables[4] = {u->variable->handle};
  for (int i = 0; i < (amsgrad ? 3 : 2); ++i) variables[i + 1] = u->slots[i]->handle;
  rn_step_begin(u, amsgrad ? "AdamWithAmsgrad" : "Adam", false, variables, amsgrad ? 4 : 3);
  rn_edge_t rest[] = {n.power1, n.power2, u->rate, n.beta1, n.beta2, n.epsilon, gradient};
  for (int i = 0; i < 7; ++i) rn_op_input(u->scope, rest[i]);
  if (u->optimizer->nesterov && !amsgrad) rn_op_attr_bool(u->scope, "use_nesterov", true);
  return rn_step_finish(u);
}

static rn_node_t* sparse(rn_update_t* u, rn_edge_t values, rn_edge_t indices) {
  decay_weights(u, values);
  return by_hand(u, values, indices);
}

static rn_node_t* finish(rn_update_t* u, rn_node_t* updated) {
  rn_scope_t* after = rn_scope_child(u->scope, "powers");
  if (!after) return NULL;
  rn_scope_add_control(after, updated);
  const float betas[2] = {beta1_of(u->optimizer), beta2_of(u->optimizer)};
  rn_node_t* nodes[2] = {0};
  for (int i = 0; i < 2 && rn_scope_ok(after); ++i) {
    rn_edge_t next = rn_Mul(after, u->shared[i]->value, rn_const_float(after, betas[i]));
    nodes[i] = rn_var_assign(after, u->shared[i], next);
  }
  rn_scope_destroy(after);
  return rn_group(u->scope, nodes, 2);
}

static const rn_optimizer_rule_t adam_rule = {.name = "Adam",
                                              .learning_rate = 0.001f,
                                              .slots = slots,
                                              .shared = shared,
                                              .dense = dense,
                                              .sparse = sparse,
                                              .finish = finish};

RN_API rn_optimizer_t rn_adam_(rn_optimizer_t options) {
  options.rule = &adam_rule;
  return options;
}
