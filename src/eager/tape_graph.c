// The gradient function of a segment of recorded ops: found in a cache if an equal segment had one,
// otherwise built.
#include <inttypes.h>

#include "eager/tape_internal.h"
#include "grad/grad.h"
#include "graph/library.h"

// Capacity of the cache; when it is full, all entries are dropped.
#define MAX_FUNCTIONS 1024

// An input of the function: a value or an arrived gradient, by number.
typedef struct tape_graph_input_t {
  bool is_gradient;
  int32_t number;  // of a value, or index in |ys|
} tape_graph_input_t;

// The gradient of an x: the function's output of this number, or three outputs from there on; -1 if
// there is none.
typedef struct tape_graph_result_t {
  int32_t first;
  bool is_slices;
} tape_graph_result_t;

typedef struct tape_graph_entry_t {
  struct tape_graph_entry_t* next;
  rn_str_t key;
  rn_str_t function;                   // name in the context's library; empty if nothing flows back
  RN_VEC(rn_eager_kernel_t*) kernels;  // Retained: the key holds their addresses
  int32_t input_count;
  tape_graph_input_t* inputs;
  tape_graph_result_t* results;  // by x
  rn_arena_t arena;
  _Atomic int32_t refs;
} tape_graph_entry_t;

struct rn_tape_cache_t {
  rn_allocator_t allocator;
  rn_graph_t* library;  // Borrowed: the context's, which outlives this
  rn_map_t by_key;
  uint64_t count;  // ever made: part of the names
};

static void entry_release(struct rn_tape_cache_t* cache, tape_graph_entry_t* entry) {
  if (!entry || atomic_fetch_sub(&entry->refs, 1) != 1) return;
  if (entry->function.size)
    rn_status_free(rn_graph_remove_function(cache->library, entry->function));
  for (size_t i = 0; i < entry->kernels.count; ++i)
    rn_eager_kernel_release(entry->kernels.items[i]);
  rn_vec_free(&entry->kernels, cache->allocator);
  rn_arena_clear(&entry->arena);
  RN_FREE(cache->allocator, entry);
}

static void forget_all(struct rn_tape_cache_t* cache) {
  size_t position = 0;
  for (const rn_map_entry_t* at; (at = rn_map_next(&cache->by_key, &position));)
    entry_release(cache, at->value);
  rn_map_clear(&cache->by_key);
  rn_map_init(&cache->by_key, cache->allocator);
}

void rn_eager_tape_cache_destroy(struct rn_tape_cache_t* cache) {
  if (!cache) return;
  forget_all(cache);
  rn_map_clear(&cache->by_key);
  RN_FREE(cache->allocator, cache);
}

static rn_status_t get_cache_locked(rn_eager_t* eager, struct rn_tape_cache_t** out) {
  *out = eager->tape_cache;
  if (*out) return RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW(eager->allocator, out));
  (*out)->allocator = eager->allocator;
  (*out)->library = eager->library;
  rn_map_init(&(*out)->by_key, eager->allocator);
  eager->tape_cache = *out;
  return RN_OK;
}

// --- The key: everything that the function depends on

static rn_status_t write_shape(rn_strbuf_t* key, rn_eager_handle_t* handle) {
  const rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handle, &tensor));
  int32_t head[] = {(int32_t)handle->dtype, tensor->rank};
  rn_strbuf_append_n(key, head, sizeof head);
  rn_strbuf_append_n(key, rn_tensor_dims(tensor), tensor->rank * sizeof(int64_t));
  return RN_OK;
}

// The value of a leaf that is a setting and in host memory; NULL for others.
static const rn_tensor_t* setting_of(const rn_tape_value_t* value) {
  const rn_eager_handle_t* handle = value->handle;
  bool is_here = !handle->special && !handle->memory;
  return value->is_setting && is_here ? &handle->tensor : NULL;
}

static rn_status_t write_key(const rn_tape_segment_t* segment, rn_strbuf_t* key) {
  for (size_t i = 0; i < segment->records.count; ++i)
    rn_strbuf_append_n(key, &segment->records.items[i]->kernel, sizeof(void*));
  rn_strbuf_append_n(key, segment->edges.items, segment->edges.count * sizeof(int32_t));
  for (size_t i = 0; i < segment->values.count; ++i)
    if (segment->values.items[i].is_leaf) {
      const rn_tape_value_t* value = &segment->values.items[i];
      RN_RETURN_IF_ERROR(write_shape(key, value->handle));
      const rn_tensor_t* tensor = setting_of(value);
      if (tensor) rn_strbuf_append_n(key, tensor->data, rn_tensor_bytes(tensor));
    }
  for (size_t i = 0; i < segment->dys.count; ++i)
    RN_RETURN_IF_ERROR(write_shape(key, segment->dys.items[i]));
  rn_strbuf_append_n(key, segment->ys.items, segment->ys.count * sizeof(int32_t));
  rn_strbuf_append_n(key, segment->keeps_slices ? "|" : "/", 1);
  rn_strbuf_append_n(key, segment->xs.items, segment->xs.count * sizeof(int32_t));
  return rn_strbuf_status(key);
}

// --- Building

typedef struct build_t {
  rn_eager_t* eager;
  const rn_tape_segment_t* segment;
  tape_graph_entry_t* entry;
  rn_arena_t* arena;  // the entry's
  rn_graph_t* graph;
  rn_edge_t* edges;       // by value
  rn_edge_t* dys;         // by y
  int32_t forward_count;  // number of nodes before those of the gradient
} build_t;

static rn_status_t add_setting(build_t* build, const rn_tensor_t* tensor, int32_t number,
                               rn_edge_t* out) {
  rn_attr_t attrs[] = {
      {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = tensor->dtype}},
      {RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = tensor}},
  };
  rn_node_spec_t spec = {.op = RN_STR("Const"), .attrs = attrs, .attr_count = 2};
  RN_RETURN_IF_ERROR(rn_arena_printf(build->arena, &spec.name, "value_%d", number));
  *out = RN_NO_EDGE;
  return rn_graph_add(build->graph, &spec, &out->node);
}

static rn_status_t add_placeholder(build_t* build, rn_eager_handle_t* handle, const char* prefix,
                                   int32_t number, rn_edge_t* out) {
  const rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handle, &tensor));
  rn_attr_t attrs[] = {
      {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = handle->dtype}},
      {RN_STR("shape"), {.kind = RN_ATTR_SHAPE, .shape = rn_tensor_shape(tensor)}},
  };
  rn_node_spec_t spec = {.op = RN_STR("Placeholder"), .attrs = attrs, .attr_count = 2};
  RN_RETURN_IF_ERROR(rn_arena_printf(build->arena, &spec.name, "%s_%d", prefix, number));
  *out = RN_NO_EDGE;
  return rn_graph_add(build->graph, &spec, &out->node);
}

// Rebuilds a recorded op as a node.
static rn_status_t add_node(build_t* build, const rn_tape_record_t* record, const int32_t* numbers,
                            int32_t index) {
  const rn_node_t* from = record->kernel->node;
  size_t attr_count = (size_t)from->op->attr_count + (size_t)from->extra_count;
  rn_attr_t* attrs = NULL;
  rn_edge_t* inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, attr_count, &attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, (size_t)record->input_count, &inputs));
  for (int i = 0; i < from->op->attr_count; ++i)
    attrs[i] = (rn_attr_t){rn_str(from->op->attrs[i].name), from->attrs[i]};
  for (int32_t i = 0; i < from->extra_count; ++i) attrs[from->op->attr_count + i] = from->extras[i];
  for (int32_t i = 0; i < record->input_count; ++i) inputs[i] = build->edges[numbers[i]];
  rn_node_spec_t spec = {.op = rn_str(from->op->name),
                         .inputs = inputs,
                         .input_count = record->input_count,
                         .attrs = attrs,
                         .attr_count = (int32_t)attr_count};
  RN_RETURN_IF_ERROR(rn_arena_printf(build->arena, &spec.name, "%s_%d", from->op->name, index));
  const rn_device_t* device = record->kernel->device;
  if (build->eager->has_far && record->kernel->kernel)
    RN_RETURN_IF_ERROR(
        rn_arena_printf(build->arena, &spec.device, "/device:%s:%d", device->type, device->index));
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_graph_add(build->graph, &spec, &node));
  for (int32_t i = 0; i < record->output_count; ++i)
    build->edges[numbers[record->input_count + i]] = (rn_edge_t){node, i};
  return RN_OK;
}

static rn_status_t add_forward(build_t* build) {
  const rn_tape_segment_t* segment = build->segment;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, segment->values.count, &build->edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, segment->ys.count, &build->dys));
  for (size_t i = 0; i < segment->values.count; ++i) {
    const rn_tape_value_t* value = &segment->values.items[i];
    if (!value->is_leaf) continue;
    const rn_tensor_t* setting = setting_of(value);
    RN_RETURN_IF_ERROR(
        setting ? add_setting(build, setting, (int32_t)i, &build->edges[i])
                : add_placeholder(build, value->handle, "value", (int32_t)i, &build->edges[i]));
  }
  size_t next = 0;
  for (size_t i = 0; i < segment->records.count; ++i) {
    const rn_tape_record_t* record = segment->records.items[i];
    RN_RETURN_IF_ERROR(add_node(build, record, &segment->edges.items[next], (int32_t)i));
    next += (size_t)record->input_count + (size_t)record->output_count;
  }
  for (size_t i = 0; i < segment->ys.count; ++i)
    RN_RETURN_IF_ERROR(
        add_placeholder(build, segment->dys.items[i], "dy", (int32_t)i, &build->dys[i]));
  build->forward_count = (int32_t)build->graph->nodes.count;
  return RN_OK;
}

// Builds the gradients and collects their edges.
static rn_status_t add_backward(build_t* build, rn_gradient_t* gradients) {
  const rn_tape_segment_t* segment = build->segment;
  rn_edge_t *ys = NULL, *xs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, segment->ys.count, &ys));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, segment->xs.count, &xs));
  for (size_t i = 0; i < segment->ys.count; ++i) ys[i] = build->edges[segment->ys.items[i]];
  for (size_t i = 0; i < segment->xs.count; ++i) xs[i] = build->edges[segment->xs.items[i]];
  rn_gradient_options_t options = {.dys = build->dys, .dense = !segment->keeps_slices};
  rn_grad_request_t request = {.graph = build->graph,
                               .ys = ys,
                               .y_count = (int)segment->ys.count,
                               .xs = xs,
                               .x_count = (int)segment->xs.count,
                               .options = &options};
  return rn_grad_run(&request, gradients);
}

// Marks |node| and the gradient's nodes that it needs; forward nodes are only read.
static rn_status_t mark_needed(const build_t* build, rn_node_t* node, bool* is_needed) {
  RN_VEC(rn_node_t*) stack = {0};
  rn_allocator_t allocator = build->eager->allocator;
  rn_status_t status = rn_vec_push(&stack, allocator, node);
  while (rn_ok(status) && stack.count) {
    rn_node_t* at = stack.items[--stack.count];
    if (at->id < build->forward_count || is_needed[at->id]) continue;
    is_needed[at->id] = true;
    for (int32_t i = 0; rn_ok(status) && i < at->input_count; ++i)
      status = rn_vec_push(&stack, allocator, at->inputs[i].node);
    for (size_t i = 0; rn_ok(status) && i < at->controls.count; ++i)
      status = rn_vec_push(&stack, allocator, at->controls.items[i]);
  }
  rn_vec_free(&stack, allocator);
  return status;
}

// Whether |edge| is a value or an arrived gradient that the function reads; adds it as an input
// once.
typedef RN_VEC(rn_edge_t) tape_graph_edges_t;
static rn_status_t note_input(build_t* build, rn_edge_t edge, tape_graph_edges_t* inputs) {
  if (edge.node->id >= build->forward_count) return RN_OK;
  for (size_t i = 0; i < inputs->count; ++i)
    if (inputs->items[i].node == edge.node && inputs->items[i].index == edge.index) return RN_OK;
  return rn_vec_push(inputs, build->eager->allocator, edge);
}

static rn_status_t name_inputs(build_t* build, const tape_graph_edges_t* edges) {
  const rn_tape_segment_t* segment = build->segment;
  tape_graph_entry_t* entry = build->entry;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, edges->count, &entry->inputs));
  entry->input_count = (int32_t)edges->count;
  for (size_t e = 0; e < edges->count; ++e) {
    rn_edge_t edge = edges->items[e];
    bool is_found = false;
    for (size_t i = 0; !is_found && i < segment->values.count; ++i) {
      is_found = build->edges[i].node == edge.node && build->edges[i].index == edge.index;
      if (is_found) entry->inputs[e] = (tape_graph_input_t){false, (int32_t)i};
    }
    for (size_t i = 0; !is_found && i < segment->ys.count; ++i) {
      is_found = build->dys[i].node == edge.node;
      if (is_found) entry->inputs[e] = (tape_graph_input_t){true, (int32_t)i};
    }
    if (!is_found)
      return rn_internal("A gradient reads '%s', which was not recorded", edge.node->name.data);
  }
  return RN_OK;
}

static rn_status_t make_function(build_t* build, const bool* is_needed,
                                 const tape_graph_edges_t* inputs, const rn_edge_t* outputs,
                                 int32_t output_count) {
  rn_node_t** nodes = NULL;
  int32_t node_count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, build->graph->nodes.count, &nodes));
  for (size_t i = 0; i < build->graph->nodes.count; ++i)
    if (is_needed[i]) nodes[node_count++] = build->graph->nodes.items[i];
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(build->arena, &name, "__backward_%" PRIu64,
                                     build->eager->tape_cache->count++));
  rn_function_spec_t spec = {.graph = build->graph,
                             .name = name,
                             .nodes = nodes,
                             .node_count = node_count,
                             .inputs = inputs->items,
                             .input_count = (int32_t)inputs->count,
                             .outputs = outputs,
                             .output_count = output_count};
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(rn_function_create(&spec, &function));
  rn_status_t status = rn_graph_add_function(build->eager->library, function, NULL);
  rn_function_release(function);
  if (rn_ok(status)) build->entry->function = name;
  return status;
}

// Makes |edge| an output of the function.
static rn_status_t add_output(build_t* build, rn_edge_t edge, bool* is_needed,
                              tape_graph_edges_t* inputs, rn_edge_t* outputs, int32_t* count) {
  outputs[(*count)++] = edge;
  RN_RETURN_IF_ERROR(mark_needed(build, edge.node, is_needed));
  return note_input(build, edge, inputs);
}

// Makes a function from the gradients' nodes; its inputs are values and arrived gradients.
static rn_status_t cut_out(build_t* build, const rn_gradient_t* gradients,
                           tape_graph_edges_t* inputs) {
  const rn_tape_segment_t* segment = build->segment;
  tape_graph_entry_t* entry = build->entry;
  bool* is_needed = NULL;
  rn_edge_t* outputs = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, build->graph->nodes.count, &is_needed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, 3 * segment->xs.count, &outputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(build->arena, segment->xs.count, &entry->results));
  for (size_t i = 0; i < segment->xs.count; ++i) {
    rn_gradient_t gradient = gradients[i];
    bool is_slices = rn_gradient_is_slices(gradient);
    entry->results[i] =
        (tape_graph_result_t){rn_gradient_is_none(gradient) ? -1 : count, is_slices};
    const rn_edge_t edges[] = {is_slices ? gradient.values : gradient.dense, gradient.indices,
                               gradient.dense_shape};
    for (int k = 0; entry->results[i].first >= 0 && k < (is_slices ? 3 : 1); ++k)
      RN_RETURN_IF_ERROR(add_output(build, edges[k], is_needed, inputs, outputs, &count));
  }
  if (count == 0) return RN_OK;
  for (size_t n = 0; n < build->graph->nodes.count; ++n) {
    const rn_node_t* node = build->graph->nodes.items[n];
    for (int32_t i = 0; is_needed[n] && i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(note_input(build, node->inputs[i], inputs));
  }
  RN_RETURN_IF_ERROR(name_inputs(build, inputs));
  return make_function(build, is_needed, inputs, outputs, count);
}

static rn_status_t build_entry(build_t* build) {
  rn_gradient_t* results = NULL;
  tape_graph_edges_t inputs = {0};
  RN_RETURN_IF_ERROR(
      rn_graph_create_body(build->eager->allocator, build->eager->library->library, &build->graph));
  rn_status_t status = RN_ARENA_ARRAY(build->arena, build->segment->xs.count, &results);
  if (rn_ok(status)) status = add_forward(build);
  if (rn_ok(status)) status = add_backward(build, results);
  if (rn_ok(status)) status = cut_out(build, results, &inputs);
  rn_vec_free(&inputs, build->eager->allocator);
  rn_graph_release(build->graph);
  return status;
}

static rn_status_t entry_create(rn_eager_t* eager, const rn_tape_segment_t* segment, rn_str_t key,
                                tape_graph_entry_t** out) {
  tape_graph_entry_t* entry = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(eager->allocator, &entry));
  entry->refs = 1;
  rn_arena_init(&entry->arena, eager->allocator);
  build_t build = {.eager = eager, .segment = segment, .entry = entry, .arena = &entry->arena};
  rn_status_t status = rn_arena_str(&entry->arena, key, &entry->key);
  for (size_t i = 0; rn_ok(status) && i < segment->records.count; ++i) {
    rn_eager_kernel_t* kernel = segment->records.items[i]->kernel;
    status = rn_vec_push(&entry->kernels, eager->allocator, kernel);
    if (rn_ok(status)) rn_eager_kernel_retain(kernel);
  }
  if (rn_ok(status)) status = build_entry(&build);
  if (!rn_ok(status)) {
    entry_release(eager->tape_cache, entry);
    return status;
  }
  *out = entry;
  return RN_OK;
}

// Builds under the context's lock, so that two threads do not build the same function.
static rn_status_t get_entry(rn_eager_t* eager, const rn_tape_segment_t* segment, rn_str_t key,
                             tape_graph_entry_t** out) {
  struct rn_tape_cache_t* cache = NULL;
  *out = NULL;
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = get_cache_locked(eager, &cache);
  tape_graph_entry_t* entry = rn_ok(status) ? rn_map_get(&cache->by_key, key) : NULL;
  if (rn_ok(status) && !entry) {
    if (cache->by_key.count >= MAX_FUNCTIONS) forget_all(cache);
    status = entry_create(eager, segment, key, &entry);
    if (rn_ok(status)) {
      status = rn_map_put(&cache->by_key, entry->key, entry);
      if (!rn_ok(status)) entry_release(cache, entry);
    }
  }
  if (rn_ok(status)) {
    atomic_fetch_add(&entry->refs, 1);
    *out = entry;
  }
  rn_mutex_unlock(&eager->mutex);
  return status;
}

static rn_status_t call(rn_eager_t* eager, const rn_tape_segment_t* segment,
                        const tape_graph_entry_t* entry, rn_tape_gradient_t* out) {
  rn_eager_op_t* op = NULL;
  rn_eager_handle_t** results = NULL;
  size_t room = 3 * segment->xs.count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(eager->allocator, room, &results));
  int32_t count = (int32_t)room;
  rn_status_t status = rn_eager_op_create(eager, entry->function, &op);
  for (int32_t i = 0; rn_ok(status) && i < entry->input_count; ++i) {
    tape_graph_input_t input = entry->inputs[i];
    status =
        rn_eager_op_add_input(op, input.is_gradient ? segment->dys.items[input.number]
                                                    : segment->values.items[input.number].handle);
  }
  if (rn_ok(status)) status = rn_eager_execute(op, results, &count);
  rn_eager_op_destroy(op);
  for (size_t i = 0; rn_ok(status) && i < segment->xs.count; ++i) {
    tape_graph_result_t result = entry->results[i];
    rn_eager_handle_t** from = results + result.first;
    if (result.first < 0) continue;
    out[i] = result.is_slices ? (rn_tape_gradient_t){NULL, from[0], from[1], from[2]}
                              : (rn_tape_gradient_t){.dense = from[0]};
  }
  RN_FREE_ARRAY(eager->allocator, results, room);
  return status;
}

rn_status_t rn_tape_run_segment(rn_eager_t* eager, const rn_tape_segment_t* segment,
                                rn_tape_gradient_t* out) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, eager->allocator);
  tape_graph_entry_t* entry = NULL;
  rn_status_t status = write_key(segment, &key);
  if (rn_ok(status)) status = get_entry(eager, segment, rn_strbuf_view(&key), &entry);
  rn_strbuf_clear(&key);
  if (rn_ok(status) && entry->function.size) status = call(eager, segment, entry, out);
  entry_release(eager->tape_cache, entry);
  return status;
}
