// Moving averages.
#include "train/store.h"
#include "train/words.h"

#include "runnel/train.h"

#define NAME "ExponentialMovingAverage"

// Corrects the bias of a mean that began at zero: after t values it is too small by the factor 1 -
// decayᵗ.
static rn_node_t* assign_corrected(rn_scope_t* s, const rn_var_t* v, rn_edge_t value,
                                   rn_edge_t rest) {
  const rn_var_t* biased =
      rn_var_slot(s, v, "biased", v->dims, v->rank, v->dtype, RN_NO_EDGE, rn_init_zeros());
  const rn_var_t* steps =
      rn_var_slot(s, v, "local_step", NULL, 0, v->dtype, RN_NO_EDGE, rn_init_zeros());
  if (!biased || !steps) return NULL;
  rn_edge_t one = rn_like(s, rest, 1);
  rn_edge_t change = rn_Mul(s, rn_Sub(s, biased->value, value), rest);
  rn_edge_t mean = rn_var_read_after(s, biased, rn_var_subtract(s, biased, change));
  rn_edge_t step = rn_var_read_after(s, steps, rn_var_add(s, steps, one));
  rn_edge_t factor = rn_Sub(s, one, rn_Pow(s, rn_Sub(s, one, rest), step));
  return rn_var_assign(s, v, rn_RealDiv(s, mean, factor));
}

RN_API rn_node_t* rn_assign_moving_average(rn_scope_t* scope, const rn_var_t* variable,
                                           rn_edge_t value, rn_edge_t decay, bool zero_debias) {
  if (!rn_is_edge(scope, value, "rn_assign_moving_average", "the value") ||
      !rn_is_edge(scope, decay, "rn_assign_moving_average", "the decay"))
    return NULL;
  if (!variable) {
    rn_refuse(scope, "rn_assign_moving_average: the variable is missing");
    return NULL;
  }
  rn_scope_t* s = rn_scope_child(scope, "AssignMovingAvg");
  rn_edge_t rest = rn_as(s, rn_Sub(s, rn_like(s, decay, 1), decay), variable->dtype);
  rn_node_t* node =
      zero_debias ? assign_corrected(s, variable, value, rest)
                  : rn_var_subtract(s, variable,
                                    rn_Mul(s, rn_Sub(s, rn_var_read(s, variable), value), rest));
  rn_scope_destroy(s);
  return node;
}

static rn_edge_t decay_of(rn_scope_t* s, float decay, rn_edge_t num_updates) {
  rn_edge_t most = rn_const_float(s, decay);
  if (!num_updates.node) return most;
  rn_edge_t n = rn_as(s, num_updates, RN_FLOAT);
  rn_edge_t young =
      rn_RealDiv(s, rn_AddV2(s, rn_const_float(s, 1), n), rn_AddV2(s, rn_const_float(s, 10), n));
  return rn_Minimum(s, most, young);
}

RN_API rn_node_t* rn_average_variables_(rn_scope_t* scope, const rn_var_t* const* variables,
                                        int count, float decay, rn_average_options_t options) {
  const rn_collected_t* items = NULL;
  if (!rn_scope_ok(scope)) return NULL;
  if (!variables) count = rn_collection(scope, RN_TRAINABLE_VARIABLES, &items);
  const char* name = options.name ? options.name : NAME;
  rn_scope_t* s = rn_scope_child(scope, name);
  rn_edge_t factor = decay_of(s, decay, options.num_updates);
  RN_VEC(rn_node_t*) nodes = {0};
  rn_allocator_t allocator = rn_scope_allocator(scope);
  for (int i = 0; i < count && rn_scope_ok(s); ++i) {
    // The list may be reallocated: averages are variables themselves.
    if (!variables) rn_collection(scope, RN_TRAINABLE_VARIABLES, &items);
    const rn_var_t* v = variables ? variables[i] : items[i].variable;
    if (!v) continue;
    const rn_var_t* average =
        rn_var_slot(scope, v, name, v->dims, v->rank, v->dtype, v->initial_value, rn_init_zeros());
    rn_collect_variable(scope, RN_MOVING_AVERAGE_VARIABLES, v);
    rn_node_t* node = rn_assign_moving_average(s, average, rn_var_read(s, v), factor, false);
    rn_status_t status = rn_vec_push(&nodes, allocator, node);
    if (!rn_ok(status)) rn_scope_fail(scope, status);
  }
  rn_node_t* all = rn_group(s, nodes.items, (int)nodes.count);
  rn_vec_free(&nodes, allocator);
  rn_scope_destroy(s);
  return all;
}

RN_API const rn_var_t* rn_average_of(rn_scope_t* scope, const rn_var_t* variable,
                                     const char* name) {
  return rn_slot(scope, variable, name ? name : NAME, 0);
}
