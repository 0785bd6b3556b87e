// The regions of region.h, and functions made of them.
#include "train/control/region.h"

#include "function/function.h"

static bool is_inside(const rn_region_t* region, const rn_node_t* node) {
  size_t word = (size_t)node->id / 64;
  return word < region->bits.count && (region->bits.items[word] >> node->id % 64 & 1);
}

void rn_region_note(rn_region_t* region, const rn_node_t* node) {
  rn_scope_t* s = region->outside;
  if (!node) return;
  size_t word = (size_t)node->id / 64;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && region->bits.count <= word)
    status = rn_vec_push(&region->bits, rn_scope_allocator(s), 0);
  if (rn_ok(status))
    region->bits.items[word] |= (uint64_t)1 << node->id % 64;
  else
    rn_scope_fail(s, status);
}

static void built(void* arg, rn_node_t* node) {
  rn_region_t* region = arg;
  rn_region_note(region, node);
  // A node inside this region is also inside the enclosing regions.
  const rn_scope_hook_t* around = rn_scope_hook(region->outside);
  if (around && around->built) around->built(around->arg, node);
}

rn_edge_t rn_region_map(rn_region_t* region, rn_edge_t edge) {
  rn_scope_t* s = region->outside;
  // The node that reads an edge of another graph refuses it.
  if (!edge.node || edge.node->graph != rn_scope_graph(s) || edge.index < 0 ||
      edge.index >= edge.node->output_count || is_inside(region, edge.node))
    return edge;
  for (size_t i = 0; i < region->brought.count; ++i) {
    rn_brought_t known = region->brought.items[i];
    if (known.outer.node == edge.node && known.outer.index == edge.index) return known.inner;
  }
  if (!rn_scope_ok(s)) return edge;
  rn_brought_t fresh = {edge, region->bring(region, edge)};
  built(region, fresh.inner.node);
  rn_status_t status = rn_vec_push(&region->brought, rn_scope_allocator(s), fresh);
  if (!rn_ok(status)) rn_scope_fail(s, status);
  return fresh.inner;
}

static bool was_brought(void* arg, rn_edge_t inner) {
  const rn_region_t* region = arg;
  for (size_t i = 0; i < region->brought.count; ++i)
    if (region->brought.items[i].inner.node == inner.node) return true;
  return false;
}

static rn_edge_t map(void* arg, rn_edge_t edge) { return rn_region_map(arg, edge); }

// To wait for an outside node, the inside waits for one of its outputs to be brought in.
static rn_node_t* map_control(void* arg, rn_node_t* node) {
  rn_region_t* region = arg;
  rn_scope_t* s = region->outside;
  if (node->graph != rn_scope_graph(s) || is_inside(region, node)) return node;
  if (region->has_open_borders) {
    const rn_scope_hook_t* around = rn_scope_hook(s);
    return around && around->map_control ? around->map_control(around->arg, node) : node;
  }
  if (region->waits) {
    rn_status_t status = rn_vec_push(&region->waits->nodes, rn_scope_allocator(s), node);
    if (!rn_ok(status)) rn_scope_fail(s, status);
    return NULL;
  }
  rn_edge_t edge = {node, 0};
  if (node->output_count == 0) {
    rn_scope_t* beside = rn_scope_at(s, rn_scope_prefix(s));
    if (!beside) return NULL;
    rn_scope_set_hook(beside, rn_scope_hook(s));
    rn_op_begin(beside, "Const");
    rn_op_attr_type(beside, "dtype", RN_BOOL);
    rn_op_attr_tensor(beside, "value", RN_BOOL, NULL, 0, &(bool){true});
    rn_op_control(beside, node);
    edge.node = rn_op_finish(beside);
    rn_scope_destroy(beside);
  }
  return rn_region_map(region, edge).node;
}

rn_scope_t* rn_region_enter(rn_region_t* region, rn_str_t prefix, rn_node_t* anchor) {
  if (!rn_scope_ok(region->outside)) return NULL;
  // Control inputs of the enclosing scope apply to the nodes that bring edges in, not to the nodes
  // inside.
  rn_scope_t* inside = rn_scope_at(region->outside, prefix);
  if (!inside) return NULL;
  region->hook = (rn_scope_hook_t){.map = map,
                                   .map_control = map_control,
                                   .arg = region,
                                   .anchor = anchor,
                                   .is_always_alive = region->is_loop ? was_brought : NULL,
                                   .built = built,
                                   .is_inherited = true};
  rn_scope_set_hook(inside, &region->hook);
  return inside;
}

void rn_region_clear(rn_region_t* region) {
  if (!region->outside) return;
  rn_vec_free(&region->bits, rn_scope_allocator(region->outside));
  rn_vec_free(&region->brought, rn_scope_allocator(region->outside));
}

rn_edge_t rn_placeholder_like(rn_scope_t* scope, rn_edge_t like, rn_shape_t shape) {
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  rn_str_t name = like.node->name;
  for (size_t i = name.size; i-- > 0;) {
    if (name.data[i] != '/') continue;
    name = rn_str_n(name.data + i + 1, name.size - i - 1);
    break;
  }
  rn_scope_name_next(scope, name.data);  // NUL-terminated
  rn_op_begin(scope, "Placeholder");
  rn_op_attr_type(scope, "dtype", rn_edge_dtype(like));
  if (rn_shape_has_rank(shape)) rn_op_attr_shape(scope, "shape", shape.dims, shape.rank);
  rn_edge_t edge = {rn_op_finish(scope), 0};
  if (!edge.node) return edge;
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_mutex_lock(&graph->mutex);
  edge.node->outputs[0].handle = like.node->outputs[like.index].handle;
  rn_mutex_unlock(&graph->mutex);
  return edge;
}

static rn_edge_t bring_placeholder(rn_region_t* region, rn_edge_t outer) {
  return rn_placeholder_like(region->outside, outer, rn_shape_of_edge(outer));
}

bool rn_region_begin_function(rn_region_t* region, rn_scope_t* scope, const char* name,
                              rn_waits_t* waits) {
  rn_scope_t* part = rn_scope_child(scope, name);
  *region = (rn_region_t){.bring = bring_placeholder, .waits = waits};
  if (!part) return false;
  region->outside = rn_scope_at(scope, rn_scope_prefix(part));
  rn_scope_destroy(part);
  return region->outside && rn_scope_ok(scope);
}

void rn_region_end_function(rn_region_t* region) {
  rn_region_clear(region);
  rn_scope_destroy(region->outside);
  region->outside = NULL;
}

void rn_op_waits(rn_scope_t* scope, rn_waits_t* waits) {
  for (size_t i = 0; i < waits->nodes.count; ++i) rn_op_control(scope, waits->nodes.items[i]);
  waits->nodes.count = 0;
}

void rn_region_share(rn_region_t* a, rn_region_t* b) {
  for (size_t i = 0; i < a->brought.count; ++i) rn_region_map(b, a->brought.items[i].outer);
  for (size_t i = 0; i < b->brought.count; ++i) rn_region_map(a, b->brought.items[i].outer);
}

static rn_status_t free_name(rn_graph_t* graph, rn_arena_t* arena, rn_str_t stem, const char* kind,
                             rn_str_t* out) {
  char* text = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, stem.size + 1, &text));
  for (size_t i = 0; i < stem.size; ++i) text[i] = stem.data[i] == '/' ? '_' : stem.data[i];
  for (size_t n = rn_graph_function_count(graph);; ++n) {
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, out, "%s_%s_%zu", text, kind, n));
    rn_function_t* taken = rn_graph_get_function(graph, *out);
    rn_function_release(taken);
    if (!taken) return RN_OK;
  }
}

// The region's nodes except those of |inputs|, in graph order.
static rn_status_t nodes_of(const rn_region_t* region, rn_graph_t* graph, rn_arena_t* arena,
                            const rn_edge_t* inputs, int input_count, rn_function_spec_t* spec) {
  rn_node_t** nodes = NULL;
  bool* is_input = NULL;
  size_t count = region->bits.count * 64;
  rn_mutex_lock(&graph->mutex);
  if (count > graph->nodes.count) count = graph->nodes.count;
  rn_mutex_unlock(&graph->mutex);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &nodes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &is_input));
  for (int i = 0; i < input_count; ++i) is_input[inputs[i].node->id] = true;
  spec->nodes = nodes;
  rn_mutex_lock(&graph->mutex);
  for (size_t id = 0; id < count; ++id)
    if (!is_input[id] && is_inside(region, graph->nodes.items[id]))
      nodes[spec->node_count++] = graph->nodes.items[id];
  rn_mutex_unlock(&graph->mutex);
  return RN_OK;
}

const char* rn_region_define(rn_scope_t* scope, const rn_region_t* region, rn_arena_t* arena,
                             rn_str_t stem, const char* kind, const rn_edge_t* inputs,
                             int input_count, const rn_edge_t* outputs, int output_count,
                             bool* inout_is_stateful) {
  if (!rn_scope_ok(scope)) return "";
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_function_spec_t spec = {.graph = graph,
                             .inputs = inputs,
                             .input_count = input_count,
                             .outputs = outputs,
                             .output_count = output_count};
  rn_function_t* function = NULL;
  rn_status_t status = free_name(graph, arena, stem, kind, &spec.name);
  if (rn_ok(status)) status = nodes_of(region, graph, arena, inputs, input_count, &spec);
  if (rn_ok(status)) status = rn_function_create(&spec, &function);
  if (rn_ok(status)) status = rn_graph_add_function(graph, function, NULL);
  if (rn_ok(status)) *inout_is_stateful |= (function->op->flags & RN_OP_STATEFUL) != 0;
  rn_function_release(function);
  if (rn_ok(status)) return spec.name.data;
  rn_scope_fail(scope, status);
  return "";
}

void rn_attr_shapes(rn_scope_t* scope, const char* name, rn_arena_t* arena,
                    const rn_shape_t* shapes, int count) {
  const int64_t** dims = NULL;
  int* ranks = NULL;
  rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)count, &dims);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)count, &ranks);
  for (int i = 0; rn_ok(status) && i < count; ++i) {
    dims[i] = shapes[i].dims;
    ranks[i] = shapes[i].rank;
  }
  if (rn_ok(status))
    rn_op_attr_shape_list(scope, name, dims, ranks, count);
  else
    rn_scope_fail(scope, status);
}

bool rn_is_predicate(rn_scope_t* scope, rn_edge_t edge, const char* who) {
  if (!rn_is_edge(scope, edge, who, "the predicate")) return false;
  rn_shape_t shape = rn_shape_of_edge(edge);
  if (rn_edge_dtype(edge) != RN_BOOL)
    rn_refuse(scope, "%s: the predicate '%s:%d' is %s, not bool", who, edge.node->name.data,
              edge.index, rn_dtype_name((rn_dtype_t)rn_edge_dtype(edge)));
  else if (rn_shape_has_rank(shape) && shape.rank != 0)
    rn_refuse(scope, "%s: the predicate '%s:%d' has %d dimensions, it must be a scalar", who,
              edge.node->name.data, edge.index, (int)shape.rank);
  return rn_scope_ok(scope);
}

void rn_name_next_as(rn_scope_t* scope, rn_scope_t* part) {
  rn_str_t whole = rn_scope_prefix(part);
  size_t before = rn_scope_prefix(scope).size;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_scope_allocator(scope));
  rn_str_t name = {0};
  rn_status_t status =
      whole.size > before + 1
          ? rn_arena_str(&arena, rn_str_n(whole.data + before, whole.size - before - 1), &name)
          : RN_OK;
  if (!rn_ok(status))
    rn_scope_fail(scope, status);
  else if (name.size > 0)
    rn_scope_name_next(scope, name.data);
  rn_arena_clear(&arena);
}

size_t rn_node_count(rn_scope_t* scope) {
  rn_graph_t* graph = rn_scope_graph(scope);
  rn_mutex_lock(&graph->mutex);
  size_t count = graph->nodes.count;
  rn_mutex_unlock(&graph->mutex);
  return count;
}
