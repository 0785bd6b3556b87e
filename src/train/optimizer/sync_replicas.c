// Synchronous replicas: accumulators beside the variables, a queue of tokens beside the step.
#include "runnel/cluster.h"
#include "train/optimizer/optimizer.h"
#include "train/store.h"
#include "train/words.h"

// The state of one call.
typedef struct sync_t {
  const rn_sync_options_t* options;
  rn_scope_t* scope;   // the client's
  rn_scope_t* part;    // "sync_replicas/"
  rn_scope_t* beside;  // without a prefix, on the device of the global step
  const rn_var_t* global_step;
  rn_sync_replicas_t* out;
  rn_arena_t arena;
  rn_edge_t local_step, required, step_now;
  rn_gradient_t* taken;  // by variable
  rn_node_t **applies, **inits;
  int apply_count;
} sync_t;

// "variable:0/grad_accum", with the group's name appended if there are groups.
static const char* shared_name(sync_t* sync, const char* what) {
  rn_str_t name = {0};
  const char* group = sync->options->group;
  rn_status_t status =
      rn_arena_printf(&sync->arena, &name, "%s%s%s", what, group ? "/" : "", group ? group : "");
  if (!rn_ok(status)) rn_scope_fail(sync->scope, status);
  return name.data;
}

static const char* accumulator_name(sync_t* sync, const rn_var_t* variable) {
  rn_str_t name = {0};
  rn_status_t status = rn_arena_printf(&sync->arena, &name, "%s:0/grad_accum", variable->name);
  if (!rn_ok(status)) rn_scope_fail(sync->scope, status);
  return rn_ok(status) ? shared_name(sync, name.data) : NULL;
}

static rn_node_t* accumulate_dense(sync_t* sync, const rn_var_t* v, rn_edge_t gradient,
                                   rn_gradient_t* out_taken, rn_node_t** out_init) {
  rn_scope_t* s = sync->part;
  int dtype = rn_edge_dtype(gradient);
  rn_edge_t handle = rn_ResourceConditionalAccumulator(s, dtype, v->dims, v->rank,
                                                       .shared_name = accumulator_name(sync, v),
                                                       .name = "conditional_accumulator");
  out_taken->dense = rn_ResourceAccumulatorTakeGradient(s, handle, sync->required, dtype);
  *out_init =
      rn_ResourceAccumulatorSetGlobalStep(s, handle, sync->step_now, .name = "SetGlobalStep");
  return rn_ResourceAccumulatorApplyGradient(s, handle, sync->local_step, gradient);
}

static rn_node_t* accumulate_slices(sync_t* sync, const rn_var_t* v, rn_gradient_t gradient,
                                    rn_gradient_t* out_taken, rn_node_t** out_init) {
  rn_scope_t* s = sync->part;
  int dtype = rn_edge_dtype(gradient.values);
  bool has_shape = gradient.dense_shape.node != NULL;
  rn_edge_t handle =
      rn_SparseConditionalAccumulator(s, dtype, NULL, 0, .shared_name = accumulator_name(sync, v),
                                      .name = "sparse_conditional_accumulator");
  rn_edge_t shape = has_shape ? rn_as(s, gradient.dense_shape, RN_INT64)
                              : rn_const(s, RN_INT64, (const int64_t[]){0}, 1, NULL);
  rn_SparseAccumulatorTakeGradient_out_t taken =
      rn_SparseAccumulatorTakeGradient(s, handle, sync->required, dtype);
  // The accumulator does not know how many rows there are.
  *out_taken = (rn_gradient_t){.values = taken.values,
                               .indices = taken.indices,
                               .dense_shape = rn_shape_const(s, v->dims, v->rank)};
  *out_init = rn_AccumulatorSetGlobalStep(s, handle, sync->step_now, .name = "SetGlobalStep");
  return rn_SparseAccumulatorApplyGradient(s, handle, sync->local_step,
                                           rn_as(s, gradient.indices, RN_INT64), gradient.values,
                                           shape, has_shape);
}

// The step counters of this replica and of its group.
static void make_steps(sync_t* sync) {
  rn_scope_t* root = rn_scope_at(sync->scope, RN_STR(""));
  if (!root) return;
  sync->out->local_step =
      rn_new_variable(root, "sync_rep_local_step", rn_const_scalar(sync->part, RN_INT64, 0),
                      .collection = RN_LOCAL_VARIABLES, .not_trainable = true);
  sync->out->step = sync->global_step;
  if (sync->options->group) {
    const char* device = sync->global_step->handle.node->device.data;
    rn_scope_t* around = rn_variable_scope(root, sync->options->group, .absolute = true);
    if (around) rn_scope_set_device(around, device);
    // The group's chief initializes it and no checkpoint needs it, so it is not a global variable.
    sync->out->step =
        rn_get_variable(around, "sync_step", NULL, 0, .dtype = RN_INT64, .collection = "sync_steps",
                        .initializer = rn_init_zeros(), .not_trainable = true);
    rn_scope_destroy(around);
  }
  rn_scope_destroy(root);
}

// The group's step starts at the global step, which is later than any earlier value of it.
static void make_inits(sync_t* sync) {
  rn_sync_replicas_t* out = sync->out;
  rn_scope_t* s = sync->part;
  if (out->step == sync->global_step) {
    sync->step_now = rn_var_read(s, out->step);
    out->local_init = rn_var_assign(s, out->local_step, sync->step_now);
    return;
  }
  rn_node_t* begun = rn_var_assign(s, out->step, rn_var_read(s, sync->global_step));
  sync->step_now = rn_var_read_after(s, out->step, begun);
  out->local_init = rn_var_assign(s, out->local_step, rn_var_read(s, out->step));
}

static void accumulate_all(sync_t* sync, const rn_gradient_t* gradients,
                           const rn_var_t* const* variables, int count) {
  for (int i = 0; i < count && rn_scope_ok(sync->part); ++i) {
    if (!variables[i] || rn_gradient_is_none(gradients[i])) continue;
    rn_scope_set_device(sync->part, variables[i]->handle.node->device.data);
    sync->required = rn_const_int32(sync->part, sync->options->replicas);
    rn_node_t** init = &sync->inits[sync->apply_count];
    sync->applies[sync->apply_count++] =
        rn_gradient_is_slices(gradients[i])
            ? accumulate_slices(sync, variables[i], gradients[i], &sync->taken[i], init)
            : accumulate_dense(sync, variables[i], gradients[i].dense, &sync->taken[i], init);
  }
}

// Enqueues |count| tokens that carry the step after |node| has run.
static rn_node_t* put_tokens(sync_t* sync, rn_edge_t queue, int count, rn_node_t* node) {
  rn_scope_t* s = sync->beside;
  rn_edge_t tokens = rn_Fill(s, rn_axis(s, count), rn_var_read_after(s, sync->out->step, node));
  return rn_QueueEnqueueManyV2(s, queue, &tokens, 1);
}

static rn_node_t* count_update(sync_t* sync, rn_node_t* update) {
  if (sync->out->step == sync->global_step || !update) return update;
  rn_edge_t one = rn_after(sync->beside, rn_const_scalar(sync->beside, RN_INT64, 1), update);
  return rn_var_add(sync->beside, sync->out->step, one);
}

static void make_queue(sync_t* sync, rn_node_t* update) {
  static const int types[1] = {RN_INT64};
  static const int64_t* const shapes[1] = {NULL};
  static const int ranks[1] = {0};
  const rn_sync_options_t* options = sync->options;
  rn_scope_t* s = sync->beside;
  rn_sync_replicas_t* out = sync->out;
  int total = options->total > options->replicas ? options->total : options->replicas;
  rn_edge_t queue =
      rn_FIFOQueueV2(s, types, 1, .shapes = RN_SHAPE_LIST(shapes, ranks, 1),
                     .shared_name = shared_name(sync, "sync_token_q"), .name = "sync_token_q");
  for (int i = 0; i < sync->apply_count; ++i) rn_scope_add_control(s, sync->applies[i]);
  rn_edges_t token = rn_QueueDequeueV2(s, queue, types, 1, .name = "sync_token_q_Dequeue");
  rn_scope_clear_controls(s);
  out->token = rn_edge_at(token, 0);
  out->train = rn_var_assign(s, out->local_step, out->token);
  out->sync = put_tokens(sync, queue, total, count_update(sync, update));
  out->init_tokens = put_tokens(sync, queue, options->replicas, NULL);
  out->farewell = put_tokens(sync, queue, total, NULL);
}

static rn_status_t open_parts(sync_t* sync, int count) {
  const char* device = sync->global_step->handle.node->device.data;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&sync->arena, (size_t)count, &sync->taken));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&sync->arena, (size_t)count, &sync->applies));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&sync->arena, (size_t)count + 1, &sync->inits));
  sync->part = rn_part(sync->scope, sync->options->name, "sync_replicas");
  sync->beside = rn_scope_at(sync->scope, rn_scope_prefix(sync->scope));
  if (sync->beside) rn_scope_set_device(sync->beside, device);
  return RN_OK;
}

static void build(sync_t* sync, rn_optimizer_t optimizer, const rn_gradient_t* gradients,
                  const rn_var_t* const* variables, int count) {
  make_steps(sync);
  make_inits(sync);
  sync->local_step = rn_var_read(sync->part, sync->out->local_step);
  rn_str_t device = {0};
  rn_status_t status = rn_arena_str(&sync->arena, rn_scope_device(sync->part), &device);
  if (!rn_ok(status)) rn_scope_fail(sync->scope, status);
  accumulate_all(sync, gradients, variables, count);
  rn_node_t* update = rn_apply_gradients(sync->beside, optimizer, sync->taken, variables, count,
                                         sync->global_step, NULL);
  make_queue(sync, update);
  if (!rn_scope_ok(sync->scope)) return;
  rn_scope_set_device(sync->part, device.data);
  sync->inits[sync->apply_count] = rn_var_assign(sync->part, sync->out->local_step, sync->step_now);
  sync->out->chief_init = rn_group(sync->part, sync->inits, sync->apply_count + 1);
}

RN_API bool rn_sync_apply_gradients_(rn_scope_t* scope, rn_optimizer_t optimizer,
                                     const rn_gradient_t* gradients,
                                     const rn_var_t* const* variables, int count,
                                     rn_sync_replicas_t* out, rn_sync_options_t options) {
  if (!rn_scope_ok(scope)) return false;
  if (!out || !gradients || !variables || count <= 0 || options.replicas <= 0 ||
      options.total < 0) {
    rn_refuse(scope, "rn_sync_apply_gradients: bad arguments: %d gradients, %d replicas", count,
              options.replicas);
    return false;
  }
  *out = (rn_sync_replicas_t){0};
  sync_t sync = {.options = &options, .scope = scope, .out = out};
  sync.global_step = options.global_step ? options.global_step : rn_global_step(scope);
  rn_arena_init(&sync.arena, rn_scope_allocator(scope));
  if (sync.global_step) {
    rn_status_t status = open_parts(&sync, count);
    if (!rn_ok(status))
      rn_scope_fail(scope, status);
    else if (sync.part && sync.beside)
      build(&sync, optimizer, gradients, variables, count);
  }
  rn_scope_destroy(sync.beside);
  rn_scope_destroy(sync.part);
  rn_arena_clear(&sync.arena);
  if (!rn_scope_ok(scope)) *out = (rn_sync_replicas_t){0};
  return rn_scope_ok(scope);
}

RN_API bool rn_sync_minimize_(rn_scope_t* scope, rn_optimizer_t optimizer, rn_edge_t loss,
                              rn_sync_replicas_t* out, rn_sync_options_t options) {
  if (!rn_is_edge(scope, loss, "rn_sync_minimize", "the loss")) return false;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_scope_allocator(scope));
  const rn_var_t** variables = NULL;
  rn_gradient_t* gradients = NULL;
  int count = rn_variables_to_train(scope, options.variables, options.variable_count, &arena,
                                    &variables, &gradients);
  bool done = false;
  if (count > 0) {
    done = rn_compute_gradients(scope, loss, variables, count, NULL, gradients);
    if (done) rn_clip_gradients(scope, options.clip, gradients, count);
    done = done &&
           rn_sync_apply_gradients_(scope, optimizer, gradients, variables, count, out, options);
  }
  rn_arena_clear(&arena);
  return done;
}
