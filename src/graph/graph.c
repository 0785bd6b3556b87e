// Graphs as containers: lifetime, names, and the parts of node construction that do not depend on
// types.
#include "graph/graph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "graph/build.h"
#include "graph/import.h"
#include "graph/library.h"

rn_status_t rn_graph_create_body(rn_allocator_t allocator, rn_library_t* library,
                                 rn_graph_t** out_graph) {
  *out_graph = NULL;
  rn_graph_t* graph = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &graph));
  atomic_init(&graph->refs, 1);
  graph->allocator = allocator;
  rn_mutex_init(&graph->mutex);
  rn_arena_init(&graph->arena, allocator);
  rn_map_init(&graph->by_name, allocator);
  rn_map_init(&graph->name_counts, allocator);
  rn_map_init(&graph->prefixes, allocator);
  graph->library = library;
  graph->producer = RN_GRAPH_PRODUCER;
  graph->min_consumer = RN_GRAPH_MIN_CONSUMER;
  *out_graph = graph;
  return RN_OK;
}

rn_status_t rn_graph_create(rn_allocator_t allocator, rn_graph_t** out_graph) {
  RN_RETURN_IF_ERROR(rn_graph_create_body(allocator, NULL, out_graph));
  (*out_graph)->owns_library = true;
  rn_status_t status = rn_library_create(allocator, &(*out_graph)->library);
  if (rn_ok(status)) return RN_OK;
  rn_graph_release(*out_graph);
  *out_graph = NULL;
  return status;
}

void rn_graph_retain(rn_graph_t* graph) {
  atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
}

void rn_graph_release(rn_graph_t* graph) {
  if (!graph || atomic_fetch_sub_explicit(&graph->refs, 1, memory_order_acq_rel) != 1) return;
  if (graph->attachment) graph->free_attachment(graph->attachment);
  for (size_t i = 0; i < graph->nodes.count; i++) rn_node_dispose(graph->nodes.items[i]);
  rn_vec_free(&graph->nodes, graph->allocator);
  rn_vec_free(&graph->bad_consumers, graph->allocator);
  rn_map_clear(&graph->by_name);
  rn_map_clear(&graph->name_counts);
  rn_map_clear(&graph->prefixes);
  if (graph->owns_library) rn_library_destroy(graph->library);
  rn_arena_clear(&graph->arena);
  rn_mutex_destroy(&graph->mutex);
  RN_FREE(graph->allocator, graph);
}

rn_node_t* rn_graph_find_locked(rn_graph_t* graph, rn_str_t name) {
  return rn_map_get(&graph->by_name, name);
}

rn_node_t* rn_graph_find(rn_graph_t* graph, rn_str_t name) {
  rn_mutex_lock(&graph->mutex);
  rn_node_t* node = rn_graph_find_locked(graph, name);
  rn_mutex_unlock(&graph->mutex);
  return node;
}

rn_status_t rn_edge_by_name(rn_graph_t* graph, rn_str_t name, rn_edge_t* out) {
  rn_tensor_id_t id = rn_tensor_id_parse(name);
  rn_str_t rest = id.name, node = rn_str_split(&rest, ':');
  *out = RN_NO_EDGE;
  if (id.index < 0 || node.size != id.name.size)
    return rn_invalid_argument("'%.*s' is no name of a tensor", RN_STR_ARGS(name));
  *out = (rn_edge_t){rn_graph_find(graph, node), id.index};
  if (!out->node) return rn_not_found("The graph has no node '%.*s'", RN_STR_ARGS(node));
  return RN_OK;
}

// The values of name_counts are numbers that are never 0.
static uintptr_t last_number(const rn_map_t* counts, rn_str_t name) {
  return (uintptr_t)rn_map_get(counts, name);
}

// Finds the first "name_1", "name_2" … that is no node and, if |prefixes| is given, no prefix.
static rn_status_t numbered_name(rn_graph_t* graph, const rn_map_t* prefixes, rn_str_t name,
                                 rn_str_t* out) {
  uintptr_t number = last_number(&graph->name_counts, name);
  if (!number) RN_RETURN_IF_ERROR(rn_arena_str(&graph->arena, name, &name));
  size_t room;
  if (!rn_add_ok(name.size, 24, &room)) return rn_out_of_memory();
  char* text = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&graph->arena, room, (void**)&text));
  rn_str_t candidate;
  do {
    int digits = snprintf(text + name.size, 24, "_%ju", (uintmax_t)++number);
    memcpy(text, name.data, name.size);
    candidate = rn_str_n(text, name.size + (size_t)digits);
  } while (rn_map_get(&graph->by_name, candidate) || (prefixes && rn_map_get(prefixes, candidate)));
  RN_RETURN_IF_ERROR(rn_map_put(&graph->name_counts, name, (void*)number));
  *out = candidate;
  return RN_OK;
}

rn_status_t rn_graph_unique_name_locked(rn_graph_t* graph, rn_str_t name, rn_str_t* out) {
  *out = name;
  if (!rn_map_get(&graph->by_name, name)) return RN_OK;
  return numbered_name(graph, NULL, name, out);
}

rn_status_t rn_graph_index_prefixes_locked(rn_graph_t* graph) {
  for (; graph->prefixed_count < graph->nodes.count; graph->prefixed_count++) {
    rn_node_t* node = graph->nodes.items[graph->prefixed_count];
    // From the longest to the shortest: once a prefix is known, all of its own prefixes are.
    for (size_t i = node->name.size; i-- > 0;) {
      if (node->name.data[i] != '/') continue;
      rn_str_t prefix = rn_str_n(node->name.data, i);
      if (rn_map_get(&graph->prefixes, prefix)) break;
      RN_RETURN_IF_ERROR(rn_map_put(&graph->prefixes, prefix, node));
    }
  }
  return RN_OK;
}

rn_status_t rn_graph_claim_prefix_locked(rn_graph_t* graph, rn_str_t base, rn_str_t* out) {
  RN_RETURN_IF_ERROR(rn_graph_index_prefixes_locked(graph));
  if (rn_map_get(&graph->by_name, base) || rn_map_get(&graph->prefixes, base)) {
    RN_RETURN_IF_ERROR(numbered_name(graph, &graph->prefixes, base, out));
  } else {
    RN_RETURN_IF_ERROR(rn_arena_str(&graph->arena, base, out));
  }
  return rn_map_put(&graph->prefixes, *out, graph);
}

const rn_op_def_t* rn_graph_find_op_locked(rn_graph_t* graph, rn_str_t name) {
  const rn_op_def_t* op = rn_op_find(name);
  if (op) return op;
  const rn_function_t* function = rn_library_find(graph->library, name);
  return function ? function->op : NULL;
}

rn_status_t rn_op_not_registered(rn_code_t code, rn_str_t op) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return rn_status_make(
      code,
      "Op type not registered '%.*s' in binary running on %s. Make sure the Op and Kernel are "
      "registered in the binary running in this process. Note that if you are loading a saved "
      "graph which used ops from tf.contrib (e.g. `tf.contrib.resampler`), accessing should be "
      "done before importing the graph, as contrib ops are lazily registered when the module is "
      "first accessed.",
      RN_STR_ARGS(op), host);
}

static char* put_str(char* place, rn_str_t str, rn_str_t* out) {
  if (str.size)
    memcpy(place, str.data, str.size);  // already NUL-terminated: arena memory is zeroed
  *out = rn_str_n(place, str.size);
  return place + str.size + 1;
}

rn_status_t rn_node_alloc(rn_graph_t* graph, const rn_op_def_t* op, rn_str_t name, rn_str_t device,
                          int32_t input_count, int32_t extra_count, rn_node_t** out_node) {
  *out_node = NULL;
  // One allocation for the node, its arrays and its strings.
  size_t attrs = (size_t)op->attr_count * sizeof(rn_attr_value_t);
  size_t inputs, extras, size;
  if (!rn_mul_ok((size_t)input_count, sizeof(rn_edge_t), &inputs) ||
      !rn_mul_ok((size_t)extra_count, sizeof(rn_attr_t), &extras) ||
      !rn_add_ok(inputs, extras, &size) || !rn_add_ok(size, sizeof(rn_node_t) + attrs, &size) ||
      !rn_add_ok(size, name.size + 1, &size) || !rn_add_ok(size, device.size + 1, &size)) {
    return rn_out_of_memory();
  }
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&graph->arena, size, (void**)&node));
  char* rest = (char*)(node + 1);
  node->graph = graph;
  node->id = -1;
  node->op = op;
  node->attrs = (rn_attr_value_t*)rest;
  rest += attrs;
  node->input_count = input_count;
  node->inputs = (rn_edge_t*)rest;
  rest += inputs;
  node->extra_count = extra_count;
  node->extras = extra_count ? (rn_attr_t*)rest : NULL;
  rest += extras;
  put_str(put_str(rest, name, &node->name), device, &node->device);
  for (int i = 0; i < op->attr_count; i++) node->attrs[i].kind = RN_ATTR_UNSET;
  *out_node = node;
  return RN_OK;
}

// Whether a value holds counted buffers.
static bool holds_buffers(const rn_attr_value_t* value) {
  return value->kind == RN_ATTR_TENSOR || value->kind == RN_ATTR_FUNC;
}

void rn_node_dispose(rn_node_t* node) {
  if (!node) return;
  for (int i = 0; i < node->op->attr_count; i++) {
    rn_attr_value_t* value = &node->attrs[i];
    // Defaults belong to the op's definition.
    if (holds_buffers(value) && value->tensor != node->op->attrs[i].default_value.tensor) {
      rn_attr_value_clear(value);
    }
  }
  for (int i = 0; i < node->extra_count; i++) {
    if (holds_buffers(&node->extras[i].value)) rn_attr_value_clear(&node->extras[i].value);
  }
}

// Makes room for one more element of a list in the arena. Outgrown copies stay in the arena;
// because capacities double, all of them together are smaller than the last one.
static rn_status_t grow_in_arena(rn_arena_t* arena, size_t item_size, size_t count, void** items,
                                 size_t* capacity) {
  if (count < *capacity) return RN_OK;
  size_t larger;
  if (!rn_mul_ok(*capacity ? *capacity : 1, 2, &larger)) return rn_out_of_memory();
  void* moved = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, larger, item_size, &moved));
  if (count) memcpy(moved, *items, count * item_size);
  *items = moved;
  *capacity = larger;
  return RN_OK;
}

rn_status_t rn_output_add_consumer(rn_graph_t* graph, rn_output_t* output, rn_consumer_t consumer) {
  void* items = output->consumers.items;
  RN_RETURN_IF_ERROR(grow_in_arena(&graph->arena, sizeof consumer, output->consumers.count, &items,
                                   &output->consumers.capacity));
  output->consumers.items = items;
  output->consumers.items[output->consumers.count++] = consumer;
  return RN_OK;
}

rn_status_t rn_node_add_control_consumer(rn_node_t* node, rn_node_t* consumer) {
  void* items = node->control_consumers.items;
  RN_RETURN_IF_ERROR(grow_in_arena(&node->graph->arena, sizeof consumer,
                                   node->control_consumers.count, &items,
                                   &node->control_consumers.capacity));
  node->control_consumers.items = items;
  node->control_consumers.items[node->control_consumers.count++] = consumer;
  return RN_OK;
}

// Drops a repeated control input. It is a repetition if this node is the last consumer of its
// source.
static rn_status_t link_control(rn_node_t* node, rn_node_t* source) {
  size_t count = source->control_consumers.count;
  if (count && source->control_consumers.items[count - 1] == node) return RN_OK;
  RN_RETURN_IF_ERROR(rn_node_add_control_consumer(source, node));
  node->controls.items[node->controls.count++] = source;
  return RN_OK;
}

rn_status_t rn_node_link_consumers(rn_node_t* node) {
  int inputs = 0;
  rn_status_t status = RN_OK;
  for (; rn_ok(status) && inputs < node->input_count; inputs += rn_ok(status)) {
    rn_edge_t edge = node->inputs[inputs];
    if (!edge.node) continue;
    status = rn_output_add_consumer(node->graph, &edge.node->outputs[edge.index],
                                    (rn_consumer_t){node, inputs});
  }
  size_t controls = node->controls.count;
  node->controls.count = 0;
  for (size_t i = 0; rn_ok(status) && i < controls; i++) {
    status = link_control(node, node->controls.items[i]);
  }
  if (!rn_ok(status)) rn_node_unlink_consumers(node, inputs);
  return status;
}

void rn_node_unlink_consumers(rn_node_t* node, int32_t inputs) {
  while (inputs-- > 0) {
    rn_edge_t edge = node->inputs[inputs];
    if (edge.node) edge.node->outputs[edge.index].consumers.count--;
  }
  for (size_t i = 0; i < node->controls.count; i++) {
    node->controls.items[i]->control_consumers.count--;
  }
  node->controls.count = 0;
}

rn_status_t rn_node_register_locked(rn_node_t* node) {
  rn_graph_t* graph = node->graph;
  if (graph->nodes.count >= INT32_MAX) return rn_resource_exhausted("Too many nodes in the graph");
  RN_RETURN_IF_ERROR(rn_vec_reserve(&graph->nodes, graph->allocator, graph->nodes.count + 1));
  RN_RETURN_IF_ERROR(rn_map_put(&graph->by_name, node->name, node));
  node->id = (int32_t)graph->nodes.count;
  graph->nodes.items[graph->nodes.count++] = node;
  return RN_OK;
}

const rn_attr_value_t* rn_node_attr(const rn_node_t* node, rn_str_t name) {
  int i = rn_op_attr_index(node->op, name);
  if (i >= 0) return &node->attrs[i];
  for (i = 0; i < node->extra_count; i++) {
    if (rn_str_eq(node->extras[i].name, name)) return &node->extras[i].value;
  }
  return NULL;
}

RN_API int rn_node_output_count(const rn_node_t* node) { return node ? node->output_count : 0; }

RN_API int rn_edge_dtype(rn_edge_t edge) {
  if (!edge.node || edge.index < 0 || edge.index >= edge.node->output_count) return RN_INVALID;
  return rn_dtype_base(edge.node->outputs[edge.index].dtype);
}
