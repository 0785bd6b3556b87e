// Partial runs: one step in several calls.
//
// Each call is an ordinary step of the nodes that its fetches need and no earlier call has run.
// Values that later calls need are fetched too and fed to those calls, so that every node runs
// once; nodes that have run are pruned with their control edges.
#include "session/session.h"

typedef struct saved_t {
  rn_edge_t edge;
  rn_tensor_t value;  // Retained
} saved_t;

struct rn_partial_run_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // calls take turns
  rn_arena_t arena;
  rn_signature_t setup;  // copied
  bool* is_fed;          // by feed of the setup
  bool* is_taken;        // by fetch of the setup
  size_t node_count;     // of the graph at setup
  bool* in_closure;      // by node id: some fetch or target needs it
  bool* is_done;         // by node id
  RN_VEC(rn_node_t*) closure;
  RN_VEC(rn_node_t*) done;
  RN_VEC(saved_t) saved;
};

// One call's work.
typedef struct partial_run_part_t {
  rn_partial_run_t* partial;
  bool* is_new;  // by node id: runs in this call
  RN_VEC(rn_node_t*) fresh;
  RN_VEC(rn_edge_t) feeds;  // edges whose saved values this call needs
  RN_VEC(rn_edge_t) fetches;
} partial_run_part_t;

static bool same_edge(rn_edge_t a, rn_edge_t b) { return a.node == b.node && a.index == b.index; }

static int32_t find_edge(const rn_edge_t* edges, int32_t count, rn_edge_t edge) {
  for (int32_t i = 0; i < count; ++i)
    if (same_edge(edges[i], edge)) return i;
  return -1;
}

static const saved_t* find_saved(const rn_partial_run_t* partial, rn_edge_t edge) {
  for (size_t i = 0; i < partial->saved.count; ++i)
    if (same_edge(partial->saved.items[i].edge, edge)) return &partial->saved.items[i];
  return NULL;
}

static rn_status_t check_nodes(rn_session_t* session, const rn_signature_t* signature) {
  const rn_graph_t* graph = rn_session_graph(session);
  for (int32_t i = 0; i < signature->feed_count + signature->fetch_count; ++i) {
    rn_edge_t edge = i < signature->feed_count ? signature->feeds[i]
                                               : signature->fetches[i - signature->feed_count];
    if (!edge.node || edge.node->graph != graph || edge.index < 0 ||
        edge.index >= edge.node->output_count)
      return rn_invalid_argument(
          "A feed or fetch of the partial run is not in the session's graph");
  }
  for (int32_t i = 0; i < signature->target_count; ++i)
    if (!signature->targets[i] || signature->targets[i]->graph != graph)
      return rn_invalid_argument("A target of the partial run is not in the session's graph");
  return RN_OK;
}

static rn_status_t add_to_closure(rn_partial_run_t* partial, rn_node_t* node) {
  if ((size_t)node->id >= partial->node_count || partial->in_closure[node->id]) return RN_OK;
  partial->in_closure[node->id] = true;
  return rn_vec_push(&partial->closure, partial->allocator, node);
}

static rn_status_t close_over(rn_partial_run_t* partial) {
  const rn_signature_t* setup = &partial->setup;
  for (int32_t i = 0; i < setup->fetch_count; ++i)
    if (find_edge(setup->feeds, setup->feed_count, setup->fetches[i]) < 0)
      RN_RETURN_IF_ERROR(add_to_closure(partial, setup->fetches[i].node));
  for (int32_t i = 0; i < setup->target_count; ++i)
    RN_RETURN_IF_ERROR(add_to_closure(partial, setup->targets[i]));
  for (size_t at = 0; at < partial->closure.count; ++at) {
    const rn_node_t* node = partial->closure.items[at];
    for (int32_t i = 0; i < node->input_count; ++i)
      if (find_edge(setup->feeds, setup->feed_count, node->inputs[i]) < 0)
        RN_RETURN_IF_ERROR(add_to_closure(partial, node->inputs[i].node));
    for (size_t i = 0; i < node->controls.count; ++i)
      RN_RETURN_IF_ERROR(add_to_closure(partial, node->controls.items[i]));
  }
  return RN_OK;
}

static rn_status_t keep_setup(rn_partial_run_t* partial, const rn_signature_t* from) {
  RN_RETURN_IF_ERROR(rn_signature_copy(&partial->arena, from, &partial->setup));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&partial->arena, (size_t)from->feed_count, &partial->is_fed));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&partial->arena, (size_t)from->fetch_count, &partial->is_taken));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&partial->arena, partial->node_count, &partial->in_closure));
  return RN_ARENA_ARRAY(&partial->arena, partial->node_count, &partial->is_done);
}

rn_status_t rn_session_partial_setup(rn_session_t* session, const rn_signature_t* signature,
                                     rn_partial_run_t** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(check_nodes(session, signature));
  rn_graph_t* graph = rn_session_graph(session);
  rn_partial_run_t* partial = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(graph->allocator, &partial));
  partial->allocator = graph->allocator;
  rn_mutex_init(&partial->mutex);
  rn_arena_init(&partial->arena, graph->allocator);
  rn_mutex_lock(&graph->mutex);
  partial->node_count = graph->nodes.count;
  rn_status_t status = keep_setup(partial, signature);
  if (rn_ok(status)) status = close_over(partial);
  rn_mutex_unlock(&graph->mutex);
  if (!rn_ok(status)) {
    rn_partial_run_destroy(partial);
    return status;
  }
  *out = partial;
  return RN_OK;
}

void rn_partial_run_destroy(rn_partial_run_t* partial) {
  if (!partial) return;
  for (size_t i = 0; i < partial->saved.count; ++i) rn_tensor_clear(&partial->saved.items[i].value);
  rn_vec_free(&partial->saved, partial->allocator);
  rn_vec_free(&partial->closure, partial->allocator);
  rn_vec_free(&partial->done, partial->allocator);
  rn_arena_clear(&partial->arena);
  rn_mutex_destroy(&partial->mutex);
  RN_FREE(partial->allocator, partial);
}

// Feeds and fetches must have been set up, and must not repeat.
static rn_status_t check_part(const rn_partial_run_t* partial, const rn_signature_t* part) {
  const rn_signature_t* setup = &partial->setup;
  for (int32_t i = 0; i < part->feed_count; ++i) {
    const char* name = part->feeds[i].node->name.data;
    int32_t at = find_edge(setup->feeds, setup->feed_count, part->feeds[i]);
    if (at < 0)
      return rn_invalid_argument("The feed %s:%d was not specified in partial_run_setup.", name,
                                 part->feeds[i].index);
    if (partial->is_fed[at])
      return rn_invalid_argument("The feed %s:%d has already been fed.", name,
                                 part->feeds[i].index);
  }
  for (int32_t i = 0; i < part->target_count; ++i) {
    const rn_node_t* target = part->targets[i];
    if ((size_t)target->id >= partial->node_count || !partial->in_closure[target->id])
      return rn_invalid_argument("The target %s was not specified in partial_run_setup.",
                                 target->name.data);
  }
  for (int32_t i = 0; i < part->fetch_count; ++i) {
    const char* name = part->fetches[i].node->name.data;
    int32_t at = find_edge(setup->fetches, setup->fetch_count, part->fetches[i]);
    if (at < 0)
      return rn_invalid_argument("The fetch %s:%d was not specified in partial_run_setup.", name,
                                 part->fetches[i].index);
    if (partial->is_taken[at])
      return rn_invalid_argument("The fetch %s:%d has already been fetched.", name,
                                 part->fetches[i].index);
  }
  return RN_OK;
}

// Variables may be named again in every call; anything else runs once.
static bool runs_again(const rn_node_t* node) { return node->op->role == RN_ROLE_VARIABLE; }

static rn_status_t need_node(partial_run_part_t* part, rn_node_t* node) {
  rn_partial_run_t* partial = part->partial;
  if ((size_t)node->id >= partial->node_count)
    return rn_failed_precondition("Node %s was added after the partial run was set up",
                                  node->name.data);
  if (partial->is_done[node->id] || part->is_new[node->id]) return RN_OK;
  part->is_new[node->id] = true;
  return rn_vec_push(&part->fresh, partial->allocator, node);
}

static rn_status_t need_edge(partial_run_part_t* part, rn_edge_t edge, rn_edge_t wanted_for) {
  rn_partial_run_t* partial = part->partial;
  if (find_saved(partial, edge)) {
    if (find_edge(part->feeds.items, (int32_t)part->feeds.count, edge) >= 0) return RN_OK;
    return rn_vec_push(&part->feeds, partial->allocator, edge);
  }
  if (find_edge(partial->setup.feeds, partial->setup.feed_count, edge) >= 0)
    return rn_invalid_argument(
        "Fetch %s:%d can't be computed from the feeds that have been fed so far.",
        wanted_for.node->name.data, wanted_for.index);
  if ((size_t)edge.node->id < partial->node_count && partial->is_done[edge.node->id] &&
      !runs_again(edge.node))
    return rn_unimplemented(
        "A partial run cannot carry the reference %s:%d from one call to the next",
        edge.node->name.data, edge.index);
  return need_node(part, edge.node);
}

static rn_status_t gather_nodes(partial_run_part_t* part, const rn_signature_t* call) {
  rn_edge_t wanted = {0};
  for (int32_t i = 0; i < call->fetch_count; ++i) {
    wanted = call->fetches[i];
    RN_RETURN_IF_ERROR(need_edge(part, wanted, wanted));
  }
  for (int32_t i = 0; i < call->target_count; ++i) {
    if (!wanted.node) wanted = (rn_edge_t){call->targets[i], 0};
    RN_RETURN_IF_ERROR(need_node(part, call->targets[i]));
  }
  for (size_t at = 0; at < part->fresh.count; ++at) {
    const rn_node_t* node = part->fresh.items[at];
    for (int32_t i = 0; i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(need_edge(part, node->inputs[i], wanted));
    for (size_t i = 0; i < node->controls.count; ++i)
      RN_RETURN_IF_ERROR(need_node(part, node->controls.items[i]));
  }
  return RN_OK;
}

static rn_status_t keep_for_later(partial_run_part_t* part, rn_edge_t edge) {
  rn_partial_run_t* partial = part->partial;
  if ((size_t)edge.node->id >= partial->node_count || !part->is_new[edge.node->id] ||
      runs_again(edge.node) || rn_dtype_is_ref(edge.node->outputs[edge.index].dtype) ||
      find_edge(part->fetches.items, (int32_t)part->fetches.count, edge) >= 0)
    return RN_OK;
  return rn_vec_push(&part->fetches, partial->allocator, edge);
}

// The fetches of this call, then the values that later calls need from the nodes that run now.
static rn_status_t gather_fetches(partial_run_part_t* part, const rn_signature_t* call) {
  rn_partial_run_t* partial = part->partial;
  for (int32_t i = 0; i < call->fetch_count; ++i)
    RN_RETURN_IF_ERROR(rn_vec_push(&part->fetches, partial->allocator, call->fetches[i]));
  for (int32_t i = 0; i < partial->setup.fetch_count; ++i)
    if (!partial->is_taken[i]) RN_RETURN_IF_ERROR(keep_for_later(part, partial->setup.fetches[i]));
  for (size_t at = 0; at < partial->closure.count; ++at) {
    const rn_node_t* node = partial->closure.items[at];
    if (partial->is_done[node->id] || part->is_new[node->id]) continue;
    for (int32_t i = 0; i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(keep_for_later(part, node->inputs[i]));
  }
  return RN_OK;
}

static rn_status_t save(rn_partial_run_t* partial, rn_edge_t edge, const rn_tensor_t* value) {
  if (find_saved(partial, edge)) return RN_OK;
  saved_t saved = {.edge = edge};
  RN_RETURN_IF_ERROR(rn_vec_reserve(&partial->saved, partial->allocator, partial->saved.count + 1));
  RN_RETURN_IF_ERROR(rn_tensor_keep(value, partial->allocator, &saved.value));
  partial->saved.items[partial->saved.count++] = saved;
  return RN_OK;
}

static rn_status_t run_part(rn_session_t* session, partial_run_part_t* part,
                            const rn_signature_t* call, rn_tensor_t* fetches) {
  rn_partial_run_t* partial = part->partial;
  rn_arena_t scratch;
  rn_arena_init(&scratch, partial->allocator);
  const rn_tensor_t** feeds = NULL;
  rn_tensor_t* values = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&scratch, part->feeds.count, &feeds);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&scratch, part->fetches.count, &values);
  if (rn_ok(status)) {
    for (size_t i = 0; i < part->feeds.count; ++i)
      feeds[i] = &find_saved(partial, part->feeds.items[i])->value;
    rn_signature_t signature = {.feeds = part->feeds.items,
                                .feed_count = (int32_t)part->feeds.count,
                                .fetches = part->fetches.items,
                                .fetch_count = (int32_t)part->fetches.count,
                                .targets = call->targets,
                                .target_count = call->target_count,
                                .done = partial->done.items,
                                .done_count = (int32_t)partial->done.count};
    status = rn_session_run(session, &signature, feeds, values, NULL);
  }
  for (size_t i = 0; rn_ok(status) && i < part->fetches.count; ++i)
    status = save(partial, part->fetches.items[i], &values[i]);
  for (size_t i = 0; values && i < part->fetches.count; ++i) {
    if (rn_ok(status) && i < (size_t)call->fetch_count)
      fetches[i] = values[i];
    else
      rn_tensor_clear(&values[i]);
  }
  rn_arena_clear(&scratch);
  return status;
}

// Marks what a successful call has fed, fetched and run.
static void mark_done(partial_run_part_t* part, const rn_signature_t* call) {
  rn_partial_run_t* partial = part->partial;
  const rn_signature_t* setup = &partial->setup;
  for (int32_t i = 0; i < call->fetch_count; ++i)
    partial->is_taken[find_edge(setup->fetches, setup->fetch_count, call->fetches[i])] = true;
  for (size_t i = 0; i < part->fresh.count; ++i) {
    rn_node_t* node = part->fresh.items[i];
    if (runs_again(node)) continue;
    partial->is_done[node->id] = true;
    partial->done.items[partial->done.count++] = node;  // reserved before the step
  }
}

static rn_status_t take_feeds(rn_partial_run_t* partial, const rn_signature_t* call,
                              const rn_tensor_t* const* feeds) {
  for (int32_t i = 0; i < call->feed_count; ++i) {
    if (!feeds[i])
      return rn_invalid_argument("The value fed to '%s' is NULL", call->feeds[i].node->name.data);
    RN_RETURN_IF_ERROR(save(partial, call->feeds[i], feeds[i]));
    partial->is_fed[find_edge(partial->setup.feeds, partial->setup.feed_count, call->feeds[i])] =
        true;
  }
  return RN_OK;
}

// A call that fails leaves its feeds unfed.
static void return_feeds(rn_partial_run_t* partial, const rn_signature_t* call,
                         size_t saved_before) {
  while (partial->saved.count > saved_before)
    rn_tensor_clear(&partial->saved.items[--partial->saved.count].value);
  for (int32_t i = 0; i < call->feed_count; ++i)
    partial->is_fed[find_edge(partial->setup.feeds, partial->setup.feed_count, call->feeds[i])] =
        false;
}

rn_status_t rn_session_partial_run(rn_session_t* session, rn_partial_run_t* partial,
                                   const rn_signature_t* call, const rn_tensor_t* const* feeds,
                                   rn_tensor_t* fetches) {
  for (int32_t i = 0; i < call->fetch_count; ++i) fetches[i] = (rn_tensor_t){0};
  RN_RETURN_IF_ERROR(check_nodes(session, call));
  rn_mutex_lock(&partial->mutex);
  rn_status_t status = check_part(partial, call);
  if (rn_ok(status)) {
    partial_run_part_t part = {.partial = partial};
    size_t saved_before = partial->saved.count;
    status =
        rn_alloc_array(partial->allocator, partial->node_count, sizeof(bool), (void**)&part.is_new);
    if (rn_ok(status)) status = take_feeds(partial, call, feeds);
    if (rn_ok(status)) status = gather_nodes(&part, call);
    if (rn_ok(status)) status = gather_fetches(&part, call);
    if (rn_ok(status))
      status = rn_vec_reserve(&partial->done, partial->allocator,
                              partial->done.count + part.fresh.count);
    if (rn_ok(status)) status = run_part(session, &part, call, fetches);
    if (rn_ok(status))
      mark_done(&part, call);
    else
      return_feeds(partial, call, saved_before);
    RN_FREE_ARRAY(partial->allocator, part.is_new, partial->node_count);
    rn_vec_free(&part.fresh, partial->allocator);
    rn_vec_free(&part.feeds, partial->allocator);
    rn_vec_free(&part.fetches, partial->allocator);
  }
  rn_mutex_unlock(&partial->mutex);
  return status;
}
