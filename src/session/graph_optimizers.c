// See graph_optimizers.h.
#include "session/graph_optimizers.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/sync.h"
#include "graph/import.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define MAX_OPTIMIZERS 16

// Readers take no lock: an entry is written before |count| grows, and stays.
static struct {
  rn_mutex_t mutex;
  const rn_graph_optimizer_t* items[MAX_OPTIMIZERS];
  _Atomic int count;
} registry = {.mutex = RN_MUTEX_INIT};

static int registered(void) { return atomic_load_explicit(&registry.count, memory_order_acquire); }

rn_status_t rn_graph_optimizer_register(const rn_graph_optimizer_t* optimizer) {
  rn_mutex_lock(&registry.mutex);
  int count = registered();
  rn_status_t status = RN_OK;
  for (int i = 0; rn_ok(status) && i < count; ++i)
    if (strcmp(registry.items[i]->device_type, optimizer->device_type) == 0)
      status = rn_already_exists("The device type %s has a graph optimizer already",
                                 optimizer->device_type);
  if (rn_ok(status) && count == MAX_OPTIMIZERS)
    status = rn_resource_exhausted("There are %d graph optimizers already", MAX_OPTIMIZERS);
  if (rn_ok(status)) {
    registry.items[count] = optimizer;
    atomic_store_explicit(&registry.count, count + 1, memory_order_release);
  }
  rn_mutex_unlock(&registry.mutex);
  return status;
}

typedef RN_VEC(rn_node_t*) graph_nodes_t;

// One run over one graph.
typedef struct optimization_t {
  const rn_planner_t* planner;
  rn_graph_t* graph;
  const rn_signature_t* signature;
  rn_arena_t arena;
  rn_map_t devices;  // node name -> the rn_device_t that it is placed on
  bool* needed;      // by node id
  graph_nodes_t nodes;
  rn_graph_item_t item;
  rn_strbuf_t bytes;  // the GraphDef so far
} optimization_t;

// --- The names that an optimizer may ask for

static rn_status_t add_name(optimization_t* o, rn_str_t name, rn_str_t* list, int32_t* count) {
  for (int32_t i = 0; i < *count; ++i)
    if (rn_str_eq(list[i], name)) return RN_OK;
  return rn_arena_str(&o->arena, name, &list[(*count)++]);
}

static rn_status_t name_all(optimization_t* o) {
  const rn_signature_t* s = o->signature;
  size_t outs = (size_t)s->fetch_count + (size_t)s->target_count,
         all = outs + (size_t)s->feed_count;
  rn_str_t *fetches = NULL, *kept = NULL, *fed = NULL;
  rn_graph_item_t* item = &o->item;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, outs + 1, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, all + 1, &kept));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&o->arena, (size_t)s->feed_count + 1, &fed));
  *item = (rn_graph_item_t){.fetches = fetches, .kept = kept, .fed = fed};
  for (int32_t i = 0; i < s->fetch_count; ++i) {
    rn_edge_t edge = s->fetches[i];
    RN_RETURN_IF_ERROR(rn_arena_printf(&o->arena, &fetches[item->fetch_count++], "%.*s:%d",
                                       RN_STR_ARGS(edge.node->name), edge.index));
    RN_RETURN_IF_ERROR(add_name(o, edge.node->name, kept, &item->kept_count));
  }
  for (int32_t i = 0; i < s->target_count; ++i) {
    fetches[item->fetch_count++] = s->targets[i]->name;
    RN_RETURN_IF_ERROR(add_name(o, s->targets[i]->name, kept, &item->kept_count));
  }
  for (int32_t i = 0; i < s->feed_count; ++i) {
    RN_RETURN_IF_ERROR(add_name(o, s->feeds[i].node->name, kept, &item->kept_count));
    RN_RETURN_IF_ERROR(add_name(o, s->feeds[i].node->name, fed, &item->fed_count));
  }
  return RN_OK;
}

// --- The graph for the first optimizer

// Where the placer would put the nodes. If it fails, the planner will say why.
static rn_status_t find_devices(optimization_t* o) {
  rn_ir_t* ir = NULL;
  rn_place_options_t place = o->planner->place;
  place.log_placement = false;
  RN_RETURN_IF_ERROR(rn_ir_create(o->graph, o->signature, &ir));
  rn_status_t status = RN_OK, placed = rn_place(ir, &place);
  for (size_t n = 0; rn_ok(placed) && rn_ok(status) && n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    rn_str_t name;
    if (node->is_removed || !node->device) continue;
    status = rn_arena_str(&o->arena, node->name, &name);
    if (rn_ok(status)) status = rn_map_put(&o->devices, name, node->device);
  }
  rn_status_free(placed);
  rn_ir_destroy(ir);
  return status;
}

static rn_status_t need(optimization_t* o, rn_node_t* node, graph_nodes_t* stack) {
  if (o->needed[node->id]) return RN_OK;
  o->needed[node->id] = true;
  return rn_vec_push(stack, o->planner->allocator, node);
}

// Marks what fetches, targets and feeds depend on.
static rn_status_t mark_needed_locked(optimization_t* o, graph_nodes_t* stack) {
  const rn_signature_t* s = o->signature;
  for (int32_t i = 0; i < s->fetch_count; ++i)
    RN_RETURN_IF_ERROR(need(o, s->fetches[i].node, stack));
  for (int32_t i = 0; i < s->feed_count; ++i) RN_RETURN_IF_ERROR(need(o, s->feeds[i].node, stack));
  for (int32_t i = 0; i < s->target_count; ++i) RN_RETURN_IF_ERROR(need(o, s->targets[i], stack));
  for (int32_t i = 0; i < s->done_count; ++i) RN_RETURN_IF_ERROR(need(o, s->done[i], stack));
  while (stack->count) {
    rn_node_t* node = stack->items[--stack->count];
    for (int32_t i = 0; i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(need(o, node->inputs[i].node, stack));
    for (size_t i = 0; i < node->controls.count; ++i)
      RN_RETURN_IF_ERROR(need(o, node->controls.items[i], stack));
  }
  return RN_OK;
}

// |o->nodes| = those that the step needs, in the order of the graph.
static rn_status_t find_needed(optimization_t* o, bool needs_all) {
  graph_nodes_t stack = {0};
  rn_mutex_lock(&o->graph->mutex);
  size_t count = o->graph->nodes.count;
  rn_status_t status = RN_ARENA_ARRAY(&o->arena, count + 1, &o->needed);
  if (rn_ok(status) && needs_all) memset(o->needed, true, count);
  if (rn_ok(status)) status = mark_needed_locked(o, &stack);
  o->nodes.count = 0;
  for (size_t n = 0; rn_ok(status) && n < count; ++n)
    if (o->needed[n])
      status = rn_vec_push(&o->nodes, o->planner->allocator, o->graph->nodes.items[n]);
  rn_mutex_unlock(&o->graph->mutex);
  rn_vec_free(&stack, o->planner->allocator);
  return status;
}

static const rn_device_t* device_of(const optimization_t* o, rn_str_t node) {
  return rn_map_get(&o->devices, node);
}

// A field of a message that is written twice has the later value: here, the device.
static rn_status_t write_graph(optimization_t* o) {
  for (size_t n = 0; n < o->nodes.count; ++n) {
    const rn_node_t* node = o->nodes.items[n];
    const rn_device_t* device = device_of(o, node->name);
    size_t mark = rn_pb_begin(&o->bytes, rn_pb_GraphDef_node_field);
    RN_RETURN_IF_ERROR(rn_node_export(node, &o->bytes));
    if (device) rn_pb_put_str(&o->bytes, rn_pb_NodeDef_device_field, device->name);
    rn_pb_end(&o->bytes, mark);
  }
  // The functions and versions.
  return rn_graph_export_from(o->graph, SIZE_MAX, &o->bytes, NULL);
}

// --- The result

// Nodes that stayed where the placer had put them get back what the client asked for, so that the
// planner places the whole graph anew.
static void reset_devices(optimization_t* o, rn_pb_GraphDef_t* graph) {
  for (uint32_t n = 0; n < graph->node.count; ++n) {
    rn_pb_NodeDef_t* node = &graph->node.items[n];
    const rn_device_t* placed = device_of(o, node->name);
    rn_node_t* old = placed ? rn_graph_find(o->graph, node->name) : NULL;
    if (old && rn_str_eq(node->device, placed->name)) node->device = old->device;
  }
}

static rn_status_t import(optimization_t* o, rn_graph_t** out) {
  rn_pb_GraphDef_t* message = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, o->planner->allocator);
  rn_status_t status = RN_PB_DECODE(GraphDef, rn_strbuf_view(&o->bytes), NULL, &o->arena, &message);
  if (rn_ok(status)) {
    reset_devices(o, message);
    status = RN_PB_ENCODE(GraphDef, message, NULL, &bytes);
  }
  if (rn_ok(status)) status = rn_graph_create(o->planner->allocator, out);
  if (rn_ok(status)) {
    rn_import_options_t options = {.extends = true};
    (*out)->keeps_misfits = true;
    status = rn_graph_import(*out, rn_strbuf_view(&bytes), &options, NULL);
  }
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t find_node(rn_graph_t* graph, const rn_node_t* old, rn_node_t** out) {
  *out = rn_graph_find(graph, old->name);
  return *out ? RN_OK : rn_not_found("the node %.*s is gone", RN_STR_ARGS(old->name));
}

static rn_status_t map_edges(rn_graph_t* graph, const rn_edge_t* edges, int32_t count,
                             rn_edge_t* out) {
  for (int32_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(find_node(graph, edges[i].node, &out[i].node));
    out[i].index = edges[i].index;
    const rn_output_t* old = &edges[i].node->outputs[edges[i].index];
    if (out[i].index >= out[i].node->output_count ||
        rn_dtype_base(out[i].node->outputs[out[i].index].dtype) != rn_dtype_base(old->dtype))
      return rn_invalid_argument("the output %d of node %.*s is gone or has another type",
                                 out[i].index, RN_STR_ARGS(edges[i].node->name));
  }
  return RN_OK;
}

static rn_status_t map_nodes(rn_graph_t* graph, rn_node_t* const* nodes, int32_t count,
                             rn_node_t** out) {
  for (int32_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(find_node(graph, nodes[i], &out[i]));
  return RN_OK;
}

static rn_status_t map_signature(rn_graph_t* graph, const rn_signature_t* from, rn_arena_t* arena,
                                 rn_signature_t* out) {
  rn_edge_t *feeds = NULL, *fetches = NULL;
  rn_node_t **targets = NULL, **done = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->feed_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->fetch_count, &fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->target_count, &targets));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)from->done_count, &done));
  RN_RETURN_IF_ERROR(map_edges(graph, from->feeds, from->feed_count, feeds));
  RN_RETURN_IF_ERROR(map_edges(graph, from->fetches, from->fetch_count, fetches));
  RN_RETURN_IF_ERROR(map_nodes(graph, from->targets, from->target_count, targets));
  RN_RETURN_IF_ERROR(map_nodes(graph, from->done, from->done_count, done));
  *out = *from;
  out->feeds = feeds;
  out->fetches = fetches;
  out->targets = targets;
  out->done = done;
  return RN_OK;
}

// --- All of it

// As in stock, an optimizer is for graphs with nodes on its device.
static bool applies(const optimization_t* o, const rn_graph_optimizer_t* optimizer) {
  for (size_t n = 0; n < o->nodes.count; ++n) {
    const rn_device_t* device = device_of(o, o->nodes.items[n]->name);
    if (device && strcmp(device->type, optimizer->device_type) == 0) return true;
  }
  return false;
}

static rn_status_t run(optimization_t* o, const rn_graph_optimizer_t* optimizer) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, o->planner->allocator);
  o->item.graph = rn_strbuf_view(&o->bytes);
  rn_status_t status = optimizer->optimize(optimizer, &o->item, &out);
  if (rn_ok(status)) status = rn_strbuf_status(&out);
  if (!rn_ok(status)) {
    rn_strbuf_clear(&out);
    return rn_status_annotate(status, " [the graph optimizer of %s]", optimizer->device_type);
  }
  rn_strbuf_clear(&o->bytes);
  o->bytes = out;
  return RN_OK;
}

static rn_status_t run_all(optimization_t* o, rn_arena_t* arena, rn_optimized_t* out) {
  const rn_graph_optimizer_t* chosen[MAX_OPTIMIZERS];
  int count = 0;
  bool keeps_all = false;
  RN_RETURN_IF_ERROR(find_devices(o));
  RN_RETURN_IF_ERROR(find_needed(o, false));
  for (int i = 0; i < registered(); ++i)
    if (applies(o, registry.items[i])) chosen[count++] = registry.items[i];
  for (int i = 0; i < count; ++i) {
    keeps_all |= chosen[i]->keeps_all;
    out->off |= chosen[i]->off;
  }
  if (!count) return RN_OK;
  if (keeps_all) RN_RETURN_IF_ERROR(find_needed(o, true));
  RN_RETURN_IF_ERROR(name_all(o));
  RN_RETURN_IF_ERROR(write_graph(o));
  for (int i = 0; i < count; ++i) RN_RETURN_IF_ERROR(run(o, chosen[i]));
  RN_RETURN_IF_ERROR(import(o, &out->graph));
  return map_signature(out->graph, o->signature, arena, &out->signature);
}

rn_status_t rn_graph_optimize(const rn_planner_t* planner, rn_graph_t* graph,
                              const rn_signature_t* signature, rn_arena_t* arena,
                              rn_optimized_t* out) {
  *out = (rn_optimized_t){0};
  if (!registered()) return RN_OK;
  optimization_t o = {.planner = planner, .graph = graph, .signature = signature};
  rn_arena_init(&o.arena, planner->allocator);
  rn_map_init(&o.devices, planner->allocator);
  rn_strbuf_init(&o.bytes, planner->allocator);
  rn_status_t status = run_all(&o, arena, out);
  rn_strbuf_clear(&o.bytes);
  rn_vec_free(&o.nodes, planner->allocator);
  rn_map_clear(&o.devices);
  rn_arena_clear(&o.arena);
  if (rn_ok(status)) return RN_OK;
  rn_graph_release(out->graph);
  out->graph = NULL;
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  rn_log(planner->env, RN_LOG_WARNING, "A graph runs as it was built: %s",
         rn_status_message(status));
  rn_status_free(status);
  return RN_OK;
}
