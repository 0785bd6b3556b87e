// Runs signatures of a SavedModel, or any part of its graph: see tf_backend.h.
#include <stdatomic.h>

#include "serve/model/effects.h"
#include "serve/model/tf_internal.h"

#define MOST_PORTS 16  // of one run without an allocation
// Batches at a time on a GPU: the inputs of one are copied while another runs.
#define GPU_LANES 2

static const rn_backend_vtable_t vtable;

// What a run passes to the session.
typedef struct tf_step_t {
  const rn_tensor_t* few_feeds[MOST_PORTS];
  rn_tensor_t few_fetches[MOST_PORTS];
  rn_edge_t few_edges[MOST_PORTS];
  const rn_tensor_t** feeds;
  rn_tensor_t* fetches;  // of a set of outputs
  rn_edge_t* edges;
} tf_step_t;

static rn_status_t step_init(tf_step_t* step, rn_allocator_t allocator, int feeds, int fetches) {
  step->feeds = step->few_feeds;
  step->fetches = step->few_fetches;
  step->edges = step->few_edges;
  if (feeds > MOST_PORTS)
    RN_RETURN_IF_ERROR(
        rn_alloc_array(allocator, (size_t)feeds, sizeof *step->feeds, (void**)&step->feeds));
  if (fetches <= MOST_PORTS) return RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)fetches, &step->fetches));
  return RN_NEW_ARRAY(allocator, (size_t)fetches, &step->edges);
}

static void step_clear(tf_step_t* step, rn_allocator_t allocator, int feeds, int fetches) {
  if (step->feeds != step->few_feeds)
    rn_free(allocator, step->feeds, (size_t)feeds * sizeof *step->feeds);
  if (step->fetches != step->few_fetches) RN_FREE_ARRAY(allocator, step->fetches, fetches);
  if (step->edges != step->few_edges) RN_FREE_ARRAY(allocator, step->edges, fetches);
}

// The outputs that |run| wants, as bits; 0 for all of them, or if a plan for the set is not worth
// having.
static uint64_t filter_of(rn_tf_signature_t* signature, const rn_backend_run_t* run) {
  int count = signature->step.fetch_count;
  uint64_t bits = 0;
  if (!run->wanted || count > 64) return 0;
  for (int i = 0; i < count; ++i) bits |= (uint64_t)run->wanted[i] << i;
  uint64_t all = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
  if (bits == all || !bits) return 0;
  for (int i = 0; i < RN_TF_MOST_FILTERS; ++i) {
    uint64_t slot = 0;
    if (atomic_compare_exchange_strong(&signature->filters[i], &slot, bits) || slot == bits)
      return bits;
  }
  return 0;
}

static rn_status_t run_filtered(rn_tf_backend_t* backend, const rn_signature_t* whole,
                                uint64_t filter, tf_step_t* step, rn_backend_run_t* run,
                                const rn_step_options_t* options) {
  rn_signature_t part = *whole;
  part.fetch_count = 0;
  part.fetches = step->edges;
  for (int i = 0; i < whole->fetch_count; ++i)
    if (filter >> i & 1) step->edges[part.fetch_count++] = whole->fetches[i];
  RN_RETURN_IF_ERROR(rn_session_run(backend->session, &part, step->feeds, step->fetches, options));
  int next = 0;
  for (int i = 0; i < whole->fetch_count; ++i)
    run->outputs[i] = filter >> i & 1 ? step->fetches[next++] : (rn_tensor_t){0};
  return RN_OK;
}

static rn_status_t run_step(rn_tf_backend_t* backend, rn_backend_run_t* run) {
  rn_tf_signature_t* signature = &backend->signatures[run->signature];
  const rn_signature_t* whole = &signature->step;
  rn_step_options_t options = {.cancel = run->cancel, .is_quiet = run->is_quiet};
  const rn_step_options_t* given = options.cancel || options.is_quiet ? &options : NULL;
  // A deadline within the step would cost a look at the clock per node; |cancel| costs nothing.
  if (run->deadline_ns != INT64_MAX && run->deadline_ns <= backend->env->now_ns(backend->env->self))
    return rn_deadline_exceeded("The deadline passed before the model ran");
  tf_step_t step;
  rn_status_t status = step_init(&step, backend->allocator, whole->feed_count, whole->fetch_count);
  for (int i = 0; rn_ok(status) && i < whole->feed_count; ++i) step.feeds[i] = &run->inputs[i];
  uint64_t filter = filter_of(signature, run);
  if (!rn_ok(status)) {
  } else if (filter) {
    status = run_filtered(backend, whole, filter, &step, run, given);
  } else {
    status = rn_session_run(backend->session, whole, step.feeds, run->outputs, given);
    for (int i = 0; rn_ok(status) && run->wanted && i < whole->fetch_count; ++i)
      if (!run->wanted[i]) rn_tensor_clear(&run->outputs[i]);
  }
  step_clear(&step, backend->allocator, whole->feed_count, whole->fetch_count);
  return status;
}

static void tf_run(rn_backend_t* base, rn_backend_run_t* run) {
  run->done(run, run_step((rn_tf_backend_t*)base, run));
}

static void tf_destroy(rn_backend_t* base) {
  rn_tf_backend_t* backend = (rn_tf_backend_t*)base;
  rn_session_destroy(backend->session);
  rn_graph_release(backend->graph);
  rn_vec_free(&backend->steps, backend->allocator);
  rn_arena_clear(&backend->step_arena);
  rn_arena_clear(&backend->arena);
  rn_mutex_destroy(&backend->mutex);
  rn_cap_alloc_release(backend->memory);
  rn_quiet_alloc_release(backend->pages);
  RN_FREE(backend->outer, backend);
}

static const rn_backend_vtable_t vtable = {
    .kind = "tensorflow", .run = tf_run, .destroy = tf_destroy};

// Nodes without a device go to the first such device.
static const rn_device_t* find_gpu(const rn_session_t* session) {
  for (int i = 0; i < rn_session_device_count(session); ++i)
    if (rn_session_device(session, i)->is_preferred) return rn_session_device(session, i);
  return NULL;
}

int rn_tf_backend_gpus(rn_backend_t* base) {
  const rn_session_t* session = rn_tf_backend_session(base);
  int count = 0;
  for (int i = 0; session && i < rn_session_device_count(session); ++i)
    count += rn_session_device(session, i)->is_preferred;
  return count;
}

rn_status_t rn_tf_backend_create(const rn_tf_backend_options_t* options, rn_backend_t** out) {
  *out = NULL;
  rn_quiet_alloc_t* pages = NULL;
  rn_cap_alloc_t* memory = NULL;
  rn_tf_backend_t* backend = NULL;
  size_t limit = options->max_memory ? options->max_memory : SIZE_MAX;
  RN_RETURN_IF_ERROR(rn_quiet_alloc_create(options->allocator, options->is_quiet, &pages));
  rn_status_t status = rn_cap_alloc_create(rn_quiet_allocator(pages), limit, &memory);
  if (rn_ok(status)) status = RN_NEW(options->allocator, &backend);
  if (!rn_ok(status)) {
    rn_cap_alloc_release(memory);
    rn_quiet_alloc_release(pages);
    return status;
  }
  backend->base.vtable = &vtable;
  backend->base.blocks = true;
  backend->base.takes_any_shape = true;
  backend->base.lanes = rn_pool_threads(options->env->pool);
  backend->pages = pages;
  backend->memory = memory;
  backend->outer = options->allocator;
  backend->allocator = rn_cap_allocator(memory);
  backend->env = options->env;
  rn_arena_init(&backend->arena, backend->allocator);
  rn_arena_init(&backend->step_arena, backend->allocator);
  rn_mutex_init(&backend->mutex);
  rn_tf_backend_options_t capped = *options;
  capped.allocator = backend->allocator;
  status = rn_tf_load(backend, &capped);
  if (!rn_ok(status)) {
    tf_destroy(&backend->base);
    return status;
  }
  backend->base.device = find_gpu(backend->session);
  if (backend->base.device) backend->base.lanes = GPU_LANES;
  rn_quiet_alloc_settle(pages);
  backend->base.memory = rn_cap_alloc_bytes(memory);
  *out = &backend->base;
  return RN_OK;
}

rn_session_t* rn_tf_backend_session(rn_backend_t* backend) {
  return backend->vtable == &vtable ? ((rn_tf_backend_t*)backend)->session : NULL;
}

// SessionRun.

static rn_status_t find_tensor(rn_tf_backend_t* backend, const rn_tf_session_run_t* run,
                               bool is_fetch, rn_str_t name, rn_edge_t* out) {
  if (run->has_aliases) {
    int s = rn_backend_signature(&backend->base, run->signature);
    if (s < 0)
      return rn_not_found("The model has no signature '%.*s'", RN_STR_ARGS(run->signature));
    const rn_serve_signature_t* signature = &backend->base.signatures[s];
    int p = is_fetch ? rn_serve_port(signature->outputs, signature->output_count, name)
                     : rn_serve_port(signature->inputs, signature->input_count, name);
    if (p < 0)
      return rn_not_found("The signature '%.*s' has no %s '%.*s'", RN_STR_ARGS(signature->name),
                          is_fetch ? "output" : "input", RN_STR_ARGS(name));
    const rn_signature_t* step = &backend->signatures[s].step;
    *out = is_fetch ? step->fetches[p] : step->feeds[p];
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_edge_by_name(backend->graph, name, out));
  if (out->index < out->node->output_count) return RN_OK;
  return rn_not_found("The graph has no tensor '%.*s': the node has %d outputs", RN_STR_ARGS(name),
                      out->node->output_count);
}

static rn_status_t find_all(rn_tf_backend_t* backend, const rn_tf_session_run_t* run,
                            rn_arena_t* arena, rn_signature_t* out) {
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t** targets = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)run->feed_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)run->fetch_count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)run->target_count, &targets));
  for (int i = 0; i < run->feed_count; ++i)
    RN_RETURN_IF_ERROR(find_tensor(backend, run, false, run->feed_names[i], &feeds[i]));
  for (int i = 0; i < run->fetch_count; ++i)
    RN_RETURN_IF_ERROR(find_tensor(backend, run, true, run->fetch_names[i], &fetches[i]));
  for (int i = 0; i < run->target_count; ++i) {
    targets[i] = rn_graph_find(backend->graph, run->target_names[i]);
    if (!targets[i])
      return rn_not_found("The graph has no node '%.*s'", RN_STR_ARGS(run->target_names[i]));
  }
  *out = (rn_signature_t){.feeds = feeds,
                          .feed_count = run->feed_count,
                          .fetches = fetches,
                          .fetch_count = run->fetch_count,
                          .targets = targets,
                          .target_count = run->target_count};
  return RN_OK;
}

// Whether |step| may run; what was found is kept.
static rn_status_t check_step_locked(rn_tf_backend_t* backend, const rn_signature_t* step,
                                     rn_arena_t* scratch) {
  for (size_t i = 0; i < backend->steps.count; ++i)
    if (rn_signature_eq(&backend->steps.items[i], step)) return RN_OK;
  if (backend->steps.count == RN_TF_MOST_STEPS)
    return rn_resource_exhausted("SessionRun ran %d different steps of this version already",
                                 RN_TF_MOST_STEPS);
  rn_effects_t effects;
  rn_str_t node;
  RN_RETURN_IF_ERROR(rn_effects_of(backend->graph, step, scratch, &effects, &node));
  if (effects == RN_EFFECTS_CHANGE)
    return rn_failed_precondition(
        "The step would change the state of the served model: it reaches '%.*s'",
        RN_STR_ARGS(node));
  rn_signature_t copy;
  RN_RETURN_IF_ERROR(rn_signature_copy(&backend->step_arena, step, &copy));
  return rn_vec_push(&backend->steps, backend->allocator, copy);
}

static rn_status_t session_run(rn_tf_backend_t* backend, const rn_tf_session_run_t* run,
                               rn_arena_t* arena, rn_tensor_t* fetches) {
  rn_signature_t step;
  const rn_tensor_t** feeds = NULL;
  RN_RETURN_IF_ERROR(find_all(backend, run, arena, &step));
  rn_mutex_lock(&backend->mutex);
  rn_status_t status = check_step_locked(backend, &step, arena);
  rn_mutex_unlock(&backend->mutex);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(
      rn_arena_alloc_array(arena, (size_t)run->feed_count, sizeof *feeds, (void**)&feeds));
  for (int i = 0; i < run->feed_count; ++i) feeds[i] = &run->feeds[i];
  return rn_session_run(backend->session, &step, feeds, fetches, run->options);
}

rn_status_t rn_tf_backend_session_run(rn_backend_t* base, const rn_tf_session_run_t* run,
                                      rn_tensor_t* fetches) {
  for (int i = 0; i < run->fetch_count; ++i) fetches[i] = (rn_tensor_t){0};
  if (base->vtable != &vtable)
    return rn_unimplemented("Only models of this process run by the names of tensors");
  rn_tf_backend_t* backend = (rn_tf_backend_t*)base;
  rn_arena_t arena;
  rn_arena_init(&arena, backend->allocator);
  rn_status_t status = session_run(backend, run, &arena, fetches);
  rn_arena_clear(&arena);
  return status;
}
