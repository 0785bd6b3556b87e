// Roles and checks of optimizers' update ops: see apply.h.
#include "kernels/cpu/training/apply.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"

static const int rule_variables[] = {
#define RULE(name, variables) variables,
    RN_RULES(RULE)
#undef RULE
};

// "SparseApplyCenteredRMSProp" and related ops have the rule centered_rms_prop; each rule has its
// own init function.
static rn_status_t apply_init(const rn_kernel_init_t* init, void* state, rn_rule_t rule) {
  rn_apply_t* apply = state;
  *apply = (rn_apply_t){
      .rule = rule, .variable_count = rule_variables[rule], .gradient = -1, .indices = -1};
  for (int i = apply->variable_count; i < init->op->input_count; ++i) {
    rn_str_t name = rn_str(init->op->inputs[i].name);
    if (rn_str_is(name, "grad") || rn_str_is(name, "delta"))
      apply->gradient = i;
    else if (rn_str_is(name, "indices"))
      apply->indices = i;
    else if (apply->number_count < RN_RULE_MAX_NUMBERS)
      apply->numbers[apply->number_count++] = i;
  }
  if (apply->indices >= 0) apply->flags |= RN_RULE_SPARSE;
  if (rn_init_bool(init, "use_nesterov")) apply->flags |= RN_RULE_NESTEROV;
  if (rn_init_bool(init, "multiply_linear_by_lr")) apply->flags |= RN_RULE_MULTIPLY_LINEAR;
  bool has_update_slots = rn_op_attr_index(init->op, RN_STR("update_slots")) >= 0;
  if (!has_update_slots || rn_init_bool(init, "update_slots")) apply->flags |= RN_RULE_UPDATE_SLOTS;
  return RN_OK;
}

#define INIT(name, variables)                                                   \
  rn_status_t rn_apply_init_##name(const rn_kernel_init_t* init, void* state) { \
    return apply_init(init, state, RN_RULE_##name);                             \
  }
RN_RULES(INIT)

rn_status_t rn_apply_find(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                          rn_variable_t** out) {
  for (int i = 0; i < apply->variable_count; ++i)
    RN_RETURN_IF_ERROR(rn_variable_of(ctx, i, &out[i]));
  return RN_OK;
}

static int by_address(const void* a, const void* b) {
  const uintptr_t x = (uintptr_t) * (rn_variable_t* const*)a;
  const uintptr_t y = (uintptr_t) * (rn_variable_t* const*)b;
  return (x > y) - (x < y);
}

int rn_apply_lock(rn_variable_t** variables, int count) {
  int distinct = 0;
  qsort(variables, (size_t)count, sizeof *variables, by_address);
  for (int i = 0; i < count; ++i)
    if (i == 0 || variables[i] != variables[i - 1]) variables[distinct++] = variables[i];
  for (int i = 0; i < distinct; ++i) rn_mutex_lock(&variables[i]->mutex);
  return distinct;
}

void rn_apply_unlock(rn_variable_t* const* variables, int count) {
  while (count > 0) rn_mutex_unlock(&variables[--count]->mutex);
}

static rn_status_t check_variables(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                   rn_variable_t* const* variables) {
  for (int i = 0; i < apply->variable_count; ++i) {
    if (!rn_in(ctx, i)->is_ref && !rn_tensor_is_set(&variables[i]->value))
      return rn_internal("Invalid variable reference.");
    RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, i, variables[i]));
    const rn_tensor_t *var = &variables[0]->value, *value = &variables[i]->value;
    if (var->dtype != value->dtype)
      return rn_invalid_argument("var is %s, %s is %s", rn_dtype_name(var->dtype),
                                 ctx->kernel->op->inputs[i].name, rn_dtype_name(value->dtype));
    if (!rn_tensor_same_shape(var, value))
      return rn_invalid_argument("var and %s do not have the same shape",
                                 ctx->kernel->op->inputs[i].name);
  }
  return RN_OK;
}

// Whether empty rows are an error, as in stock for some rules.
static bool needs_columns(rn_rule_t rule) {
  return rule == RN_RULE_adagrad || rule == RN_RULE_adagrad_v2 || rule == RN_RULE_adagrad_da ||
         rule == RN_RULE_ftrl || rule == RN_RULE_ftrl_v2 ||
         rule == RN_RULE_proximal_gradient_descent || rule == RN_RULE_proximal_adagrad;
}

static rn_status_t check_dense(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                               const rn_tensor_t* var) {
  const rn_tensor_t* gradient = rn_in(ctx, apply->gradient);
  if (rn_tensor_same_shape(var, gradient)) return RN_OK;
  return rn_invalid_argument("var and %s do not have the same shape%s %s",
                             ctx->kernel->op->inputs[apply->gradient].name, rn_text_of(var).text,
                             rn_text_of(gradient).text);
}

static rn_status_t check_sparse(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                const rn_tensor_t* var) {
  const rn_tensor_t* gradient = rn_in(ctx, apply->gradient);
  const rn_tensor_t* indices = rn_in(ctx, apply->indices);
  if (var->rank < 1) return rn_invalid_argument("var must be at least 1 dimensional");
  if (indices->rank != 1) return rn_invalid_argument("indices must be one-dimensional");
  if (gradient->rank != var->rank || rn_tensor_dim(gradient, 0) != indices->count)
    return rn_invalid_argument("grad must be the same size as indices in the first dimension.");
  for (int d = 1; d < var->rank; ++d)
    if (rn_tensor_dim(var, d) != rn_tensor_dim(gradient, d))
      return rn_invalid_argument("var and grad must match in dimension %d", d);
  if (needs_columns(apply->rule) &&
      rn_dims_product(rn_tensor_dims(gradient), 1, gradient->rank) == 0)
    return rn_invalid_argument("Inner dimension should be greater than zero.");
  return RN_OK;
}

rn_status_t rn_apply_check_locked(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                  rn_variable_t* const* variables) {
  RN_RETURN_IF_ERROR(check_variables(ctx, apply, variables));
  const rn_tensor_t* var = &variables[0]->value;
  const rn_tensor_t* gradient = rn_in(ctx, apply->gradient);
  if (gradient->dtype != var->dtype)
    return rn_invalid_argument("var is %s, grad is %s", rn_dtype_name(var->dtype),
                               rn_dtype_name(gradient->dtype));
  return apply->indices < 0 ? check_dense(ctx, apply, var) : check_sparse(ctx, apply, var);
}

rn_status_t rn_apply_hold(rn_kernel_ctx_t* ctx, const rn_apply_t* apply, rn_apply_held_t* held) {
  RN_RETURN_IF_ERROR(rn_apply_find(ctx, apply, held->variables));
  memcpy(held->locked, held->variables, sizeof held->locked);
  held->locked_count = rn_apply_lock(held->locked, apply->variable_count);
  return rn_apply_check_locked(ctx, apply, held->variables);
}

void rn_apply_release(rn_apply_held_t* held) { rn_apply_unlock(held->locked, held->locked_count); }

// A non-scalar counts as NaN, which is in no range.
rn_status_t rn_apply_check_number(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply, int input) {
  const rn_tensor_t* number = rn_in(ctx, input);
  if (number->count == 1 && number->rank == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_apply_check_range(ctx, apply, input, NAN));
  return rn_invalid_argument("%s is not a %s: %s", ctx->kernel->op->inputs[input].name,
                             strstr(ctx->kernel->op->name, "RMSProp") ? "scalar " : "scalar",
                             rn_text_of(number).text);
}

rn_status_t rn_apply_check_range(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply, int input,
                                 double value) {
  const bool is_ftrl = (apply->flags & RN_RULE_SPARSE) &&
                       (apply->rule == RN_RULE_ftrl || apply->rule == RN_RULE_ftrl_v2);
  if (!is_ftrl && apply->rule != RN_RULE_proximal_adagrad) return RN_OK;
  const rn_str_t name = rn_str(ctx->kernel->op->inputs[input].name);
  const rn_tensor_t* number = rn_in(ctx, input);
  if (rn_str_is(name, "lr")) {
    if (value > 0 || (value == 0 && (apply->flags & RN_RULE_MULTIPLY_LINEAR))) return RN_OK;
    return rn_invalid_argument("lr is not a positive scalar%s: %s",
                               is_ftrl ? " (or zero if multiply_linear_by_lr is set)" : "",
                               rn_text_of(number).text);
  }
  if (rn_str_is(name, "lr_power"))
    return value <= 0 ? RN_OK
                      : rn_invalid_argument("lr_power is not a non-positive scalar: %s",
                                            rn_text_of(number).text);
  if (value >= 0) return RN_OK;
  return rn_invalid_argument("%s regularization strength is not a non-negative scalar: %s",
                             rn_str_is(name, "l2_shrinkage") ? "l2 shrinkage"
                             : rn_str_is(name, "l1")         ? "l1"
                                                             : "l2",
                             rn_text_of(number).text);
}
