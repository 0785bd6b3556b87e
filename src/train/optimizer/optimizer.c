// Optimizers: slots, gradients, and the step that applies them.
#include "train/optimizer/optimizer.h"

#include "train/store.h"
#include "train/words.h"

RN_API rn_edge_t rn_update_number(const rn_update_t* update, float value) {
  if (!update) return RN_NO_EDGE;
  return rn_const_scalar(update->scope, update->variable ? update->variable->dtype : RN_FLOAT,
                         value);
}

RN_API bool rn_compute_gradients(rn_scope_t* scope, rn_edge_t loss,
                                 const rn_var_t* const* variables, int count,
                                 const rn_gradient_options_t* options, rn_gradient_t* out) {
  if (!rn_is_edge(scope, loss, "rn_compute_gradients", "the loss")) return false;
  if (count <= 0 || !variables || !out) {
    rn_refuse(scope, "No variables to optimize.");
    return false;
  }
  rn_allocator_t allocator = rn_scope_allocator(scope);
  rn_edge_t* handles = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)count, &handles);
  for (int i = 0; rn_ok(status) && i < count; ++i) {
    if (variables[i])
      handles[i] = variables[i]->handle;
    else
      status = rn_invalid_argument("rn_compute_gradients: variable number %d is missing", i);
  }
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  bool done = rn_gradients_of(scope, &loss, 1, handles, count, options, out);
  RN_FREE_ARRAY(allocator, handles, count);
  return done;
}

static bool check_optimizer(rn_scope_t* scope, const rn_optimizer_t* optimizer) {
  if (!optimizer->rule || !optimizer->rule->dense || !optimizer->rule->name) {
    rn_refuse(scope, "An optimizer needs a rule with a name and a dense update");
    return false;
  }
  if (!optimizer->rate.node && optimizer->learning_rate == 0 &&
      optimizer->rule->learning_rate == 0) {
    rn_refuse(scope, "Optimizer %s: the learning rate is missing", optimizer->rule->name);
    return false;
  }
  return !optimizer->rate.node ||
         rn_is_edge(scope, optimizer->rate, optimizer->rule->name, "the learning rate");
}

// Shared by all updates of one call.
typedef struct optimizer_work_t {
  rn_scope_t* scope;   // the client's
  rn_scope_t* part;    // the optimizer's name scope
  const char* name;    // of the optimizer
  rn_edge_t rate;      // as the client gave it
  rn_update_t common;  // without variable and slots
  RN_VEC(rn_node_t*) nodes;
} optimizer_work_t;

// The device of the optimizer's own variables: that of the variable whose name sorts first.
// TensorFlow does the same, so replicas of both systems share them.
static const char* shared_device(const rn_gradient_t* gradients, const rn_var_t* const* variables,
                                 int count) {
  const rn_var_t* first = NULL;
  for (int i = 0; i < count; ++i)
    if (variables[i] && !rn_gradient_is_none(gradients[i]) &&
        (!first || strcmp(variables[i]->name, first->name) < 0))
      first = variables[i];
  return first ? first->handle.node->device.data : "";
}

static void make_shared(optimizer_work_t* work, const char* device) {
  const rn_optimizer_t* optimizer = work->common.optimizer;
  if (!optimizer->rule->shared) return;
  const char* names[RN_MAX_SLOTS] = {0};
  float starts[RN_MAX_SLOTS] = {0};
  int count = optimizer->rule->shared(optimizer, names, starts);
  rn_scope_t* beside = rn_scope_at(work->scope, rn_scope_prefix(work->scope));
  if (beside) rn_scope_set_device(beside, device);
  for (int i = 0; beside && i < count && i < RN_MAX_SLOTS; ++i)
    work->common.shared[i] = rn_new_variable(
        beside, names[i], rn_const_float(work->part, starts[i]), .not_trainable = true);
  rn_scope_destroy(beside);
}

static void make_slots(optimizer_work_t* work, rn_update_t* update) {
  const rn_optimizer_t* optimizer = update->optimizer;
  const rn_var_t* v = update->variable;
  if (!optimizer->rule->slots) return;
  float starts[RN_MAX_SLOTS] = {0};
  int count = optimizer->rule->slots(optimizer, starts);
  for (int i = 0; i < count && i < RN_MAX_SLOTS; ++i)
    update->slots[i] = rn_var_slot(work->scope, v, work->name, v->dims, v->rank, v->dtype,
                                   RN_NO_EDGE, rn_init_constant(starts[i]));
}

static rn_node_t* apply_one(rn_update_t* update, rn_gradient_t gradient) {
  const rn_optimizer_rule_t* rule = update->optimizer->rule;
  if (!rn_gradient_is_slices(gradient)) return rule->dense(update, gradient.dense);
  if (!rule->sparse) return rule->dense(update, rn_gradient_to_dense(update->scope, gradient));
  if (!rule->takes_repeated) gradient = rn_gradient_unique(update->scope, gradient);
  return rule->sparse(update, gradient.values, gradient.indices);
}

static rn_status_t update_variable(optimizer_work_t* work, const rn_var_t* variable,
                                   rn_gradient_t gradient) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, rn_scope_allocator(work->scope));
  rn_strbuf_printf(&name, "update_%s", variable->name);
  rn_status_t status = rn_strbuf_status(&name);
  rn_update_t update = work->common;
  update.variable = variable;
  if (rn_ok(status)) update.scope = rn_scope_child(work->part, name.data);
  rn_strbuf_clear(&name);
  if (!update.scope) return status;
  rn_scope_set_device(update.scope, variable->handle.node->device.data);
  make_slots(work, &update);
  update.rate = rn_as(update.scope, work->rate, variable->dtype);
  rn_node_t* node = rn_scope_ok(update.scope) ? apply_one(&update, gradient) : NULL;
  rn_scope_destroy(update.scope);
  return node ? rn_vec_push(&work->nodes, rn_scope_allocator(work->scope), node) : RN_OK;
}

// The last node, which increments the global step if there is one.
static rn_node_t* end(optimizer_work_t* work, const rn_var_t* global_step, const char* name) {
  rn_node_t* updated = rn_group(work->part, work->nodes.items, (int)work->nodes.count);
  const rn_optimizer_rule_t* rule = work->common.optimizer->rule;
  if (rule->finish && updated) {
    rn_update_t update = work->common;
    update.scope = work->part;
    update.rate = work->rate;
    rn_node_t* both[2] = {updated, rule->finish(&update, updated)};
    updated = rn_group(work->part, both, 2);
  }
  rn_node_t* last = updated;
  if (global_step && rn_scope_ok(work->part)) {
    rn_scope_t* after = rn_scope_child(work->part, "count");
    if (after) rn_scope_add_control(after, updated);
    last = rn_var_add(after, global_step, rn_const_scalar(after, global_step->dtype, 1));
    rn_scope_destroy(after);
  }
  rn_scope_name_next(work->scope, name);
  return rn_group(work->scope, &last, 1);
}

static rn_node_t* apply_all(optimizer_work_t* work, const rn_gradient_t* gradients,
                            const rn_var_t* const* variables, int count,
                            const rn_var_t* global_step, const char* name) {
  const rn_optimizer_t* optimizer = work->common.optimizer;
  float rate = optimizer->learning_rate ? optimizer->learning_rate : optimizer->rule->learning_rate;
  rn_scope_name_next(work->part, "learning_rate");
  work->rate = optimizer->rate.node ? rn_Identity(work->part, optimizer->rate)
                                    : rn_const_float(work->part, rate);
  make_shared(work, shared_device(gradients, variables, count));
  for (int i = 0; i < count && rn_scope_ok(work->scope); ++i) {
    if (!variables[i] || rn_gradient_is_none(gradients[i])) continue;
    rn_status_t status = update_variable(work, variables[i], gradients[i]);
    if (!rn_ok(status)) rn_scope_fail(work->scope, status);
  }
  return end(work, global_step, name ? name : work->name);
}

static bool has_gradients(rn_scope_t* scope, const rn_gradient_t* gradients,
                          const rn_var_t* const* variables, int count) {
  if (count <= 0 || !gradients || !variables) {
    rn_refuse(scope, "No variables provided.");
    return false;
  }
  rn_strbuf_t names;
  rn_strbuf_init(&names, rn_scope_allocator(scope));
  bool any = false;
  for (int i = 0; i < count; ++i) {
    any |= variables[i] && !rn_gradient_is_none(gradients[i]);
    rn_strbuf_printf(&names, "%s'%s'", i ? ", " : "", variables[i] ? variables[i]->name : "");
  }
  if (!any)
    rn_refuse(scope, "No gradients provided for any variable: [%.*s].",
              RN_STR_ARGS(rn_strbuf_view(&names)));
  rn_strbuf_clear(&names);
  return any;
}

RN_API rn_node_t* rn_apply_gradients(rn_scope_t* scope, rn_optimizer_t optimizer,
                                     const rn_gradient_t* gradients,
                                     const rn_var_t* const* variables, int count,
                                     const rn_var_t* global_step, const char* name) {
  if (!rn_scope_ok(scope) || !check_optimizer(scope, &optimizer) ||
      !has_gradients(scope, gradients, variables, count))
    return NULL;
  optimizer_work_t work = {.scope = scope,
                           .name = optimizer.name ? optimizer.name : optimizer.rule->name};
  work.common.optimizer = &optimizer;
  work.part = rn_scope_child(scope, name ? name : work.name);
  rn_node_t* node =
      work.part ? apply_all(&work, gradients, variables, count, global_step, name) : NULL;
  rn_vec_free(&work.nodes, rn_scope_allocator(scope));
  rn_scope_destroy(work.part);
  return node;
}

static rn_node_t* minimize(rn_scope_t* scope, const rn_optimizer_t* optimizer, rn_edge_t loss,
                           const rn_minimize_options_t* options, const rn_var_t* const* variables,
                           rn_gradient_t* gradients) {
  int count = options->variable_count;
  rn_gradient_options_t how = {.gate = options->gate, .colocate = options->colocate};
  rn_scaling_t scaling = {0};
  if (options->loss_scale.scale != 0)
    loss = rn_scaling_begin(&scaling, scope, options->loss_scale, loss);
  if (!rn_compute_gradients(scope, loss, variables, count, &how, gradients)) return NULL;
  if (options->loss_scale.scale != 0) rn_scaling_gradients(&scaling, gradients, count);
  rn_clip_gradients(scope, options->clip, gradients, count);
  rn_node_t* step = rn_apply_gradients(scope, *optimizer, gradients, variables, count,
                                       options->global_step, options->name);
  return options->loss_scale.scale != 0 ? rn_scaling_end(&scaling, step) : step;
}

int rn_variables_to_train(rn_scope_t* scope, const rn_var_t* const* given, int given_count,
                          rn_arena_t* arena, const rn_var_t*** out_variables,
                          rn_gradient_t** out_gradients) {
  const rn_collected_t* items = NULL;
  int count = given ? given_count : rn_collection(scope, RN_TRAINABLE_VARIABLES, &items);
  if (count <= 0) {
    rn_refuse(scope, "No variables to optimize.");
    return 0;
  }
  rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)count, out_variables);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)count, out_gradients);
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return 0;
  }
  for (int i = 0; i < count; ++i) (*out_variables)[i] = given ? given[i] : items[i].variable;
  return count;
}

RN_API rn_node_t* rn_minimize_(rn_scope_t* scope, rn_optimizer_t optimizer, rn_edge_t loss,
                               rn_minimize_options_t options) {
  if (!rn_is_edge(scope, loss, "rn_minimize", "the loss")) return NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_scope_allocator(scope));
  const rn_var_t** variables = NULL;
  rn_gradient_t* gradients = NULL;
  int count = rn_variables_to_train(scope, options.variables, options.variable_count, &arena,
                                    &variables, &gradients);
  rn_node_t* node = NULL;
  if (count > 0) {
    options.variable_count = count;
    node = minimize(scope, &optimizer, loss, &options, variables, gradients);
  }
  rn_arena_clear(&arena);
  return node;
}

RN_API const rn_var_t* rn_slot(rn_scope_t* scope, const rn_var_t* variable, const char* name,
                               int i) {
  if (!rn_scope_ok(scope) || !variable || !name || i < 0) return NULL;
  rn_strbuf_t whole;
  rn_strbuf_init(&whole, rn_scope_allocator(scope));
  rn_strbuf_printf(&whole, "%s%s/%s", rn_variable_frame_of(scope)->prefix, variable->name, name);
  if (i > 0) rn_strbuf_printf(&whole, "_%d", i);
  rn_status_t status = rn_strbuf_status(&whole);
  const rn_var_t* slot = rn_ok(status) ? rn_find_variable(scope, whole.data) : NULL;
  rn_status_free(status);
  rn_strbuf_clear(&whole);
  return slot;
}
