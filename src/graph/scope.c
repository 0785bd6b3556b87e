// Scopes and the generic builder: the scope collects the parts of a node, then adds it to the
// graph.
#include "graph/build.h"

struct rn_scope_t {
  rn_allocator_t allocator;
  rn_graph_t* graph;   // Retained
  rn_scope_t* parent;  // Borrowed
  rn_scope_t* root;    // Borrowed; holds the first error of all its scopes
  rn_status_t error;   // Owned; of a root
  rn_strbuf_t prefix;  // "" or "a/b/"
  rn_strbuf_t device;
  rn_strbuf_t next_name;
  rn_strbuf_t name;  // of the node under construction, complete
  RN_VEC(rn_node_t*) controls;
  const rn_scope_hook_t* hook;        // Borrowed; may be NULL
  const rn_attr_value_t* colocation;  // Borrowed; may be NULL
  void* context;                      // Owned; may be NULL
  void (*free_context)(rn_allocator_t allocator, void* context);

  // The node under construction; its data is in |scratch|, after |mark|.
  bool is_building;
  rn_arena_t scratch;
  rn_arena_mark_t mark;
  rn_str_t op;
  RN_VEC(rn_edge_t) inputs;
  RN_VEC(int32_t) arg_lengths;
  RN_VEC(rn_node_t*) op_controls;
  RN_VEC(rn_attr_t) attrs;
};

// Only the first error is kept.
void rn_scope_fail(rn_scope_t* scope, rn_status_t status) {
  scope->root->error = rn_status_join(scope->root->error, status);
}

static void check(rn_scope_t* scope, rn_status_t status) {
  if (!rn_ok(status)) rn_scope_fail(scope, status);
}

static rn_scope_t* new_scope(rn_graph_t* graph, rn_scope_t* parent) {
  rn_allocator_t allocator = graph->allocator;
  rn_scope_t* scope = NULL;
  rn_status_t status = RN_NEW(allocator, &scope);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  scope->allocator = allocator;
  scope->graph = graph;
  rn_graph_retain(graph);
  scope->parent = parent;
  scope->root = parent ? parent->root : scope;
  rn_strbuf_init(&scope->prefix, allocator);
  rn_strbuf_init(&scope->device, allocator);
  rn_strbuf_init(&scope->next_name, allocator);
  rn_strbuf_init(&scope->name, allocator);
  rn_arena_init(&scope->scratch, allocator);
  // An allocation before the mark makes the arena keep its first chunk for all nodes.
  void* piece;
  status = rn_arena_alloc(&scope->scratch, 1, &piece);
  scope->mark = rn_arena_mark(&scope->scratch);
  if (!rn_ok(status)) {
    rn_status_free(status);
    rn_scope_destroy(scope);
    return NULL;
  }
  return scope;
}

RN_API rn_scope_t* rn_scope_create(rn_graph_t* graph) {
  return graph ? new_scope(graph, NULL) : NULL;
}

RN_API rn_scope_t* rn_scope_with_graph(void) {
  rn_graph_t* graph = NULL;
  rn_status_free(rn_graph_create(rn_allocator_default(), &graph));
  rn_scope_t* scope = rn_scope_create(graph);
  rn_graph_release(graph);
  return scope;
}

static void set_text(rn_strbuf_t* buf, const char* text) {
  buf->size = 0;
  if (text) rn_strbuf_append(buf, rn_str(text));
}

static rn_status_t claim_prefix(rn_scope_t* scope, rn_str_t name) {
  if (!rn_node_name_is_valid(name)) {
    return rn_invalid_argument("Scope name '%.*s' contains invalid characters", RN_STR_ARGS(name));
  }
  rn_strbuf_append(&scope->prefix, rn_strbuf_view(&scope->parent->prefix));
  rn_strbuf_append(&scope->prefix, name);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&scope->prefix));
  rn_str_t claimed;
  rn_mutex_lock(&scope->graph->mutex);
  rn_status_t status =
      rn_graph_claim_prefix_locked(scope->graph, rn_strbuf_view(&scope->prefix), &claimed);
  rn_mutex_unlock(&scope->graph->mutex);
  RN_RETURN_IF_ERROR(status);
  scope->prefix.size = 0;
  rn_strbuf_append(&scope->prefix, claimed);
  rn_strbuf_append(&scope->prefix, RN_STR("/"));
  return rn_strbuf_status(&scope->prefix);
}

// A scope of the same graph on the same device; NULL, which |parent| records, without memory.
static rn_scope_t* new_child(rn_scope_t* parent) {
  if (!parent) return NULL;
  rn_scope_t* scope = new_scope(parent->graph, parent);
  if (scope)
    rn_strbuf_append(&scope->device, rn_strbuf_view(&parent->device));
  else
    rn_scope_fail(parent, rn_out_of_memory());
  return scope;
}

RN_API rn_scope_t* rn_scope_child(rn_scope_t* parent, const char* name) {
  rn_scope_t* scope = new_child(parent);
  if (!scope || !rn_scope_ok(scope)) return scope;
  check(scope, claim_prefix(scope, rn_str(name)));
  if (parent->hook && parent->hook->is_inherited) scope->hook = parent->hook;
  for (size_t i = 0; i < parent->controls.count; i++) {
    rn_scope_add_control(scope, parent->controls.items[i]);
  }
  return scope;
}

void rn_scope_take_back(rn_scope_t* scope, size_t count) {
  rn_str_t prefix = rn_strbuf_view(&scope->prefix);
  if (!prefix.size || prefix.data[prefix.size - 1] != '/') return;  // no prefix was claimed
  prefix.size--;
  rn_mutex_lock(&scope->graph->mutex);
  rn_graph_take_back_locked(scope->graph, count, prefix);
  rn_mutex_unlock(&scope->graph->mutex);
}

rn_scope_t* rn_scope_at(rn_scope_t* parent, rn_str_t prefix) {
  rn_scope_t* scope = new_child(parent);
  if (!scope) return NULL;
  rn_strbuf_append(&scope->prefix, prefix);
  check(scope, rn_strbuf_status(&scope->prefix));
  return scope;
}

rn_allocator_t rn_scope_allocator(const rn_scope_t* scope) { return scope->allocator; }

void rn_scope_set_context(rn_scope_t* scope, void* context,
                          void (*free_context)(rn_allocator_t allocator, void* context)) {
  if (scope->context) scope->free_context(scope->allocator, scope->context);
  scope->context = context;
  scope->free_context = free_context;
}

void* rn_scope_context(const rn_scope_t* scope) {
  while (scope && !scope->context) scope = scope->parent;
  return scope ? scope->context : NULL;
}

// Discards the node under construction.
static void reset(rn_scope_t* scope) {
  for (size_t i = 0; i < scope->attrs.count; i++) {
    rn_attr_value_t* value = &scope->attrs.items[i].value;
    if (value->kind == RN_ATTR_TENSOR) rn_attr_value_clear(value);
  }
  scope->inputs.count = scope->arg_lengths.count = 0;
  scope->op_controls.count = scope->attrs.count = 0;
  scope->is_building = false;
  rn_arena_rewind(&scope->scratch, scope->mark);
}

RN_API void rn_scope_destroy(rn_scope_t* scope) {
  if (!scope) return;
  reset(scope);
  if (scope->context) scope->free_context(scope->allocator, scope->context);
  rn_status_free(scope->error);
  rn_strbuf_clear(&scope->prefix);
  rn_strbuf_clear(&scope->device);
  rn_strbuf_clear(&scope->next_name);
  rn_strbuf_clear(&scope->name);
  rn_vec_free(&scope->controls, scope->allocator);
  rn_vec_free(&scope->inputs, scope->allocator);
  rn_vec_free(&scope->arg_lengths, scope->allocator);
  rn_vec_free(&scope->op_controls, scope->allocator);
  rn_vec_free(&scope->attrs, scope->allocator);
  rn_arena_clear(&scope->scratch);
  rn_graph_release(scope->graph);
  RN_FREE(scope->allocator, scope);
}

RN_API void rn_scope_set_device(rn_scope_t* scope, const char* device) {
  if (!scope) return;
  set_text(&scope->device, device);
  check(scope, rn_strbuf_status(&scope->device));
}

RN_API void rn_scope_add_control(rn_scope_t* scope, rn_node_t* node) {
  if (scope) check(scope, rn_vec_push(&scope->controls, scope->allocator, node));
}

RN_API void rn_scope_clear_controls(rn_scope_t* scope) {
  if (scope) scope->controls.count = 0;
}

RN_API void rn_scope_name_next(rn_scope_t* scope, const char* name) {
  if (!scope) return;
  set_text(&scope->next_name, name);
  check(scope, rn_strbuf_status(&scope->next_name));
}

RN_API rn_graph_t* rn_scope_graph(rn_scope_t* scope) { return scope ? scope->graph : NULL; }

RN_API bool rn_scope_ok(const rn_scope_t* scope) { return scope && rn_ok(scope->root->error); }

RN_API int rn_scope_code(const rn_scope_t* scope) {
  return scope ? (int)rn_status_code(scope->root->error) : (int)RN_CODE_INVALID_ARGUMENT;
}

RN_API const char* rn_scope_message(const rn_scope_t* scope) {
  return scope ? rn_status_message(scope->root->error) : "no scope";
}

void rn_scope_set_hook(rn_scope_t* scope, const rn_scope_hook_t* hook) { scope->hook = hook; }

const rn_scope_hook_t* rn_scope_hook(const rn_scope_t* scope) { return scope->hook; }

void rn_scope_set_colocation(rn_scope_t* scope, const rn_attr_value_t* value) {
  scope->colocation = value;
}

static rn_edge_t map_input(const rn_scope_t* scope, rn_edge_t input) {
  const rn_scope_hook_t* hook = scope->hook;
  return hook && hook->map && input.node ? hook->map(hook->arg, input) : input;
}

rn_str_t rn_scope_prefix(const rn_scope_t* scope) { return rn_strbuf_view(&scope->prefix); }

rn_str_t rn_scope_device(const rn_scope_t* scope) { return rn_strbuf_view(&scope->device); }

rn_arena_t* rn_scope_scratch(rn_scope_t* scope) { return &scope->scratch; }

RN_API void rn_op_begin(rn_scope_t* scope, const char* op) {
  if (!rn_scope_ok(scope)) return;
  reset(scope);
  check(scope, rn_arena_str(&scope->scratch, rn_str(op), &scope->op));
  scope->is_building = rn_scope_ok(scope);
}

// Whether a part may be added; adding one when no node was begun is a caller's error.
bool rn_scope_can_add(rn_scope_t* scope) {
  if (!rn_scope_ok(scope)) return false;
  if (!scope->is_building)
    rn_scope_fail(scope, rn_failed_precondition("rn_op_begin was not called"));
  return scope->is_building;
}

RN_API void rn_op_input(rn_scope_t* scope, rn_edge_t input) {
  if (!rn_scope_can_add(scope)) return;
  check(scope, rn_vec_push(&scope->inputs, scope->allocator, map_input(scope, input)));
  check(scope, rn_vec_push(&scope->arg_lengths, scope->allocator, RN_ARG_SINGLE));
}

RN_API void rn_op_input_list(rn_scope_t* scope, const rn_edge_t* inputs, int count) {
  if (!rn_scope_can_add(scope)) return;
  if (count < 0) {
    rn_scope_fail(scope, rn_invalid_argument("A list of %d inputs", count));
    return;
  }
  for (int i = 0; i < count; i++) {
    check(scope, rn_vec_push(&scope->inputs, scope->allocator, map_input(scope, inputs[i])));
  }
  check(scope, rn_vec_push(&scope->arg_lengths, scope->allocator, count));
}

RN_API void rn_op_control(rn_scope_t* scope, rn_node_t* node) {
  if (rn_scope_can_add(scope))
    check(scope, rn_vec_push(&scope->op_controls, scope->allocator, node));
}

void rn_scope_add_attr(rn_scope_t* scope, const char* name, const rn_attr_value_t* value) {
  rn_attr_t attr = {.value = *value};
  rn_status_t status = rn_arena_str(&scope->scratch, rn_str(name), &attr.name);
  if (rn_ok(status)) status = rn_vec_push(&scope->attrs, scope->allocator, attr);
  if (rn_ok(status)) return;
  if (value->kind == RN_ATTR_TENSOR) rn_attr_value_clear(&attr.value);
  rn_scope_fail(scope, status);
}

// Whether no input of the node under construction tells the node when it is dead.
static bool needs_anchor(const rn_scope_t* scope) {
  const rn_scope_hook_t* hook = scope->hook;
  for (size_t i = 0; i < scope->inputs.count; i++)
    if (!hook->is_always_alive || !hook->is_always_alive(hook->arg, scope->inputs.items[i]))
      return false;
  return true;
}

static rn_status_t apply_hook(rn_scope_t* scope) {
  const rn_scope_hook_t* hook = scope->hook;
  size_t kept = 0;
  for (size_t i = 0; hook && hook->map_control && i < scope->op_controls.count; i++) {
    rn_node_t* control = scope->op_controls.items[i];
    if (control) control = hook->map_control(hook->arg, control);
    if (control) scope->op_controls.items[kept++] = control;
  }
  if (hook && hook->map_control) scope->op_controls.count = kept;
  if (hook && hook->anchor && needs_anchor(scope))
    RN_RETURN_IF_ERROR(rn_vec_push(&scope->op_controls, scope->allocator, hook->anchor));
  if (!scope->colocation) return RN_OK;
  rn_attr_t attr = {.name = RN_STR("_class"), .value = *scope->colocation};
  return rn_vec_push(&scope->attrs, scope->allocator, attr);
}

static rn_status_t add_gathered(rn_scope_t* scope, rn_node_t** out_node) {
  rn_str_t own = scope->next_name.size ? rn_strbuf_view(&scope->next_name) : scope->op;
  if (!rn_node_name_is_valid(own) && own.data != scope->op.data) {
    return rn_invalid_argument("Node name '%.*s' contains invalid characters", RN_STR_ARGS(own));
  }
  scope->name.size = 0;
  rn_strbuf_append(&scope->name, rn_strbuf_view(&scope->prefix));
  rn_strbuf_append(&scope->name, own);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&scope->name));
  for (size_t i = 0; i < scope->controls.count; i++) {
    RN_RETURN_IF_ERROR(
        rn_vec_push(&scope->op_controls, scope->allocator, scope->controls.items[i]));
  }
  RN_RETURN_IF_ERROR(apply_hook(scope));
  rn_node_spec_t spec = {
      .op = scope->op,
      .name = rn_strbuf_view(&scope->name),
      .device = rn_strbuf_view(&scope->device),
      .inputs = scope->inputs.items,
      .input_count = (int32_t)scope->inputs.count,
      .controls = scope->op_controls.items,
      .control_count = (int32_t)scope->op_controls.count,
      .attrs = scope->attrs.items,
      .attr_count = (int32_t)scope->attrs.count,
      .arg_lengths = scope->arg_lengths.items,
      .arg_count = (int32_t)scope->arg_lengths.count,
  };
  return rn_graph_add_unique(scope->graph, &spec, out_node);
}

RN_API rn_node_t* rn_op_finish(rn_scope_t* scope) {
  rn_node_t* node = NULL;
  if (!scope || !rn_scope_can_add(scope)) return NULL;
  check(scope, add_gathered(scope, &node));
  if (node && scope->hook && scope->hook->built) scope->hook->built(scope->hook->arg, node);
  scope->next_name.size = 0;
  reset(scope);
  return node;
}
