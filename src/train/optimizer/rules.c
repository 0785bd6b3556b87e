// The optimizers whose step is one op.
#include <stdio.h>

#include "train/optimizer/optimizer.h"
#include "train/words.h"

void rn_step_begin(rn_update_t* u, const char* op, bool is_sparse, const rn_edge_t* inputs,
                   int count) {
  char name[64];
  snprintf(name, sizeof name, "%s%sApply%s", u->variable->is_resource ? "Resource" : "",
           is_sparse ? "Sparse" : "", op);
  rn_op_begin(u->scope, name);
  for (int i = 0; i < count; ++i) rn_op_input(u->scope, inputs[i]);
  if (u->optimizer->use_locking) rn_op_attr_bool(u->scope, "use_locking", true);
}

rn_node_t* rn_step_finish(rn_update_t* u) { return rn_op_finish(u->scope); }

// Begins an op whose inputs are |front|, the gradient (or its values and indices), and |back|.
static void step(rn_update_t* u, const char* op, const rn_edge_t* front, int front_count,
                 rn_edge_t gradient, rn_edge_t indices, const rn_edge_t* back, int back_count) {
  rn_step_begin(u, op, indices.node != NULL, front, front_count);
  rn_op_input(u->scope, gradient);
  if (indices.node) rn_op_input(u->scope, indices);
  for (int i = 0; i < back_count; ++i) rn_op_input(u->scope, back[i]);
}
#define EDGES(...) \
  (const rn_edge_t[]){__VA_ARGS__}, (int)(sizeof((rn_edge_t[]){__VA_ARGS__}) / sizeof(rn_edge_t))
#define NOTHING NULL, 0
#define NUMBER(value) rn_update_number(u, value)
#define SLOT(i) (u->slots[i] ? u->slots[i]->handle : RN_NO_EDGE)

// The dense and the sparse form of NAME_step(u, gradient, indices).
#define BOTH_FORMS(name)                                                                 \
  static rn_node_t* name##_dense(rn_update_t* u, rn_edge_t gradient) {                   \
    return name##_step(u, gradient, RN_NO_EDGE);                                         \
  }                                                                                      \
  static rn_node_t* name##_sparse(rn_update_t* u, rn_edge_t values, rn_edge_t indices) { \
    return name##_step(u, values, indices);                                              \
  }
#define OPTIMIZER(name)                                        \
  RN_API rn_optimizer_t rn_##name##_(rn_optimizer_t options) { \
    options.rule = &name##_rule;                               \
    return options;                                            \
  }

static rn_node_t* descent_dense(rn_update_t* u, rn_edge_t gradient) {
  step(u, "GradientDescent", EDGES(u->variable->handle, u->rate), gradient, RN_NO_EDGE, NOTHING);
  return rn_step_finish(u);
}

static rn_node_t* descent_sparse(rn_update_t* u, rn_edge_t values, rn_edge_t indices) {
  rn_edge_t change = rn_Mul(u->scope, rn_Neg(u->scope, values), u->rate);
  return rn_var_scatter_add(u->scope, u->variable, indices, change);
}

static const rn_optimizer_rule_t gradient_descent_rule = {.name = "GradientDescent",
                                                          .dense = descent_dense,
                                                          .sparse = descent_sparse,
                                                          .takes_repeated = true};
OPTIMIZER(gradient_descent)

static int one_zero(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  (void)optimizer;
  starts[0] = 0;
  return 1;
}

static int two_zeros(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  (void)optimizer;
  starts[0] = starts[1] = 0;
  return 2;
}

static rn_node_t* momentum_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_edge_t momentum = NUMBER(u->optimizer->momentum);
  step(u, "Momentum", EDGES(u->variable->handle, SLOT(0), u->rate), gradient, indices,
       EDGES(momentum));
  if (u->optimizer->nesterov) rn_op_attr_bool(u->scope, "use_nesterov", true);
  return rn_step_finish(u);
}
BOTH_FORMS(momentum)
static const rn_optimizer_rule_t momentum_rule = {
    .name = "Momentum", .slots = one_zero, .dense = momentum_dense, .sparse = momentum_sparse};
OPTIMIZER(momentum)

static int accumulator(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  starts[0] = rn_number(optimizer->accumulator, 0.1f);
  return 1;
}

static rn_node_t* adagrad_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  step(u, "Adagrad", EDGES(u->variable->handle, SLOT(0), u->rate), gradient, indices, NOTHING);
  return rn_step_finish(u);
}
BOTH_FORMS(adagrad)
static const rn_optimizer_rule_t adagrad_rule = {
    .name = "Adagrad", .slots = accumulator, .dense = adagrad_dense, .sparse = adagrad_sparse};
OPTIMIZER(adagrad)

static int adagrad_da_slots(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  starts[0] = 0;
  starts[1] = rn_number(optimizer->accumulator, 0.1f);
  return 2;
}

static rn_node_t* adagrad_da_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  const rn_var_t* counter = u->optimizer->step;
  if (!counter) {
    rn_refuse(u->scope, "Optimizer AdagradDA: the global step is missing");
    return NULL;
  }
  rn_edge_t l1 = NUMBER(u->optimizer->l1), l2 = NUMBER(u->optimizer->l2);
  rn_edge_t now = rn_AddV2(u->scope, rn_as(u->scope, counter->value, RN_INT64),
                           rn_const_scalar(u->scope, RN_INT64, 1));
  step(u, "AdagradDA", EDGES(u->variable->handle, SLOT(0), SLOT(1)), gradient, indices,
       EDGES(u->rate, l1, l2, now));
  return rn_step_finish(u);
}
BOTH_FORMS(adagrad_da)
static const rn_optimizer_rule_t adagrad_da_rule = {.name = "AdagradDA",
                                                    .slots = adagrad_da_slots,
                                                    .dense = adagrad_da_dense,
                                                    .sparse = adagrad_da_sparse};
OPTIMIZER(adagrad_da)

static rn_node_t* adadelta_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_edge_t rho = NUMBER(rn_number(u->optimizer->rho, 0.95f));
  rn_edge_t epsilon = NUMBER(rn_number(u->optimizer->epsilon, 1e-8f));
  step(u, "Adadelta", EDGES(u->variable->handle, SLOT(0), SLOT(1), u->rate, rho, epsilon), gradient,
       indices, NOTHING);
  return rn_step_finish(u);
}
BOTH_FORMS(adadelta)
static const rn_optimizer_rule_t adadelta_rule = {.name = "Adadelta",
                                                  .learning_rate = 0.001f,
                                                  .slots = two_zeros,
                                                  .dense = adadelta_dense,
                                                  .sparse = adadelta_sparse};
OPTIMIZER(adadelta)

// Slots: mean square (initially one), mean gradient if centered, momentum.
static int rmsprop_slots(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  starts[0] = 1;
  starts[1] = starts[2] = 0;
  return optimizer->centered ? 3 : 2;
}

static rn_node_t* rmsprop_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_edge_t rho = NUMBER(rn_number(u->optimizer->rho, 0.9f));
  rn_edge_t momentum = NUMBER(u->optimizer->momentum);
  rn_edge_t epsilon = NUMBER(rn_number(u->optimizer->epsilon, 1e-10f));
  rn_edge_t v = u->variable->handle;
  if (u->optimizer->centered)
    step(u, "CenteredRMSProp", EDGES(v, SLOT(1), SLOT(0), SLOT(2), u->rate, rho, momentum, epsilon),
         gradient, indices, NOTHING);
  else
    step(u, "RMSProp", EDGES(v, SLOT(0), SLOT(1), u->rate, rho, momentum, epsilon), gradient,
         indices, NOTHING);
  return rn_step_finish(u);
}
BOTH_FORMS(rmsprop)
static const rn_optimizer_rule_t rmsprop_rule = {
    .name = "RMSProp", .slots = rmsprop_slots, .dense = rmsprop_dense, .sparse = rmsprop_sparse};
OPTIMIZER(rmsprop)

static int ftrl_slots(const rn_optimizer_t* optimizer, float starts[RN_MAX_SLOTS]) {
  starts[0] = rn_number(optimizer->accumulator, 0.1f);
  starts[1] = 0;
  return 2;
}

static rn_node_t* ftrl_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  const rn_optimizer_t* o = u->optimizer;
  rn_edge_t l1 = NUMBER(o->l1), l2 = NUMBER(o->l2), power = NUMBER(rn_number(o->power, -0.5f));
  rn_edge_t v = u->variable->handle;
  if (o->l2_shrinkage > 0) {
    rn_edge_t shrinkage = NUMBER(o->l2_shrinkage);
    step(u, "FtrlV2", EDGES(v, SLOT(0), SLOT(1)), gradient, indices,
         EDGES(u->rate, l1, l2, shrinkage, power));
  } else {
    step(u, "Ftrl", EDGES(v, SLOT(0), SLOT(1)), gradient, indices, EDGES(u->rate, l1, l2, power));
  }
  return rn_step_finish(u);
}
BOTH_FORMS(ftrl)
static const rn_optimizer_rule_t ftrl_rule = {
    .name = "Ftrl", .slots = ftrl_slots, .dense = ftrl_dense, .sparse = ftrl_sparse};
OPTIMIZER(ftrl)

static rn_node_t* proximal_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_edge_t l1 = NUMBER(u->optimizer->l1), l2 = NUMBER(u->optimizer->l2);
  step(u, "ProximalGradientDescent", EDGES(u->variable->handle, u->rate, l1, l2), gradient, indices,
       NOTHING);
  return rn_step_finish(u);
}
BOTH_FORMS(proximal)
static const rn_optimizer_rule_t proximal_gradient_descent_rule = {
    .name = "ProximalGradientDescent", .dense = proximal_dense, .sparse = proximal_sparse};
OPTIMIZER(proximal_gradient_descent)

static rn_node_t* proximal_adagrad_step(rn_update_t* u, rn_edge_t gradient, rn_edge_t indices) {
  rn_edge_t l1 = NUMBER(u->optimizer->l1), l2 = NUMBER(u->optimizer->l2);
  step(u, "ProximalAdagrad", EDGES(u->variable->handle, SLOT(0), u->rate, l1, l2), gradient,
       indices, NOTHING);
  return rn_step_finish(u);
}
BOTH_FORMS(proximal_adagrad)
static const rn_optimizer_rule_t proximal_adagrad_rule = {.name = "ProximalAdagrad",
                                                          .slots = accumulator,
                                                          .dense = proximal_adagrad_dense,
                                                          .sparse = proximal_adagrad_sparse};
OPTIMIZER(proximal_adagrad)
