// Types of nodes as a graph: see type_graph.h.
#include "step/type_graph.h"

static int32_t add_vertex(rn_type_graph_t* graph, rn_type_vertex_t vertex) {
  graph->vertices[graph->count] = vertex;
  return graph->count++;
}

// The vertex of element |i| of |arg|; node |index| is the last one that has vertices.
static int32_t find_vertex(rn_type_graph_t* graph, int32_t index, const rn_arg_def_t* arg,
                           int32_t i) {
  bool is_list = arg->type_list_attr >= 0;
  int32_t attr = is_list ? arg->type_list_attr : arg->type_attr;
  for (int32_t v = graph->first[index]; v < graph->count; ++v) {
    const rn_type_vertex_t* vertex = &graph->vertices[v];
    if (vertex->attr == attr && (attr >= 0 || vertex->type == arg->type))
      return is_list ? v + i : v;
  }
  return add_vertex(graph, (rn_type_vertex_t){index, -1, -1, arg->type});
}

static void add_attrs(rn_type_graph_t* graph, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(graph->ir, index);
  for (int32_t a = 0; a < node->op->attr_count; ++a) {
    const rn_attr_value_t* value = &node->attrs[a];
    if (node->op->attrs[a].kind != RN_ATTR_TYPE) continue;
    if (!value->is_list) add_vertex(graph, (rn_type_vertex_t){index, a, -1, value->type});
    for (int32_t i = 0; value->is_list && i < value->count; ++i)
      add_vertex(graph, (rn_type_vertex_t){index, a, i, value->list_type[i]});
  }
}

static void add_args(rn_type_graph_t* graph, int32_t index, const rn_arg_def_t* args, int count,
                     int32_t limit, int32_t* out) {
  const rn_ir_node_t* node = rn_ir_node(graph->ir, index);
  int32_t flat = 0;
  for (int a = 0; a < count; ++a) {
    int32_t length = rn_arg_length(&args[a], node->attrs);
    for (int32_t i = 0; i < length && flat < limit; ++i)
      out[flat++] = find_vertex(graph, index, &args[a], i);
  }
}

static void add_node(rn_type_graph_t* graph, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(graph->ir, index);
  if (node->is_removed) return;
  int32_t* outputs = graph->outputs + graph->first_output[index];
  if (node->feed >= 0) {
    rn_dtype_t type = rn_dtype_base(node->types[0]);
    outputs[0] = add_vertex(graph, (rn_type_vertex_t){index, -1, -1, type});
    return;
  }
  add_attrs(graph, index);
  add_args(graph, index, node->op->inputs, node->op->input_count, node->input_count,
           graph->inputs + graph->first_input[index]);
  add_args(graph, index, node->op->outputs, node->op->output_count, node->output_count, outputs);
}

// The node has at most this many vertices.
static size_t most_vertices(const rn_ir_node_t* node) {
  if (node->is_removed) return 0;
  size_t count = 1 + (size_t)node->op->input_count + (size_t)node->op->output_count;
  for (int a = 0; node->feed < 0 && a < node->op->attr_count; ++a)
    if (node->op->attrs[a].kind == RN_ATTR_TYPE)
      count += node->attrs[a].is_list ? (size_t)node->attrs[a].count : 1;
  return count;
}

static rn_status_t make_arrays(rn_type_graph_t* graph) {
  rn_arena_t* arena = &graph->ir->arena;
  size_t nodes = graph->ir->nodes.count, vertices = 0, inputs = 0, outputs = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + 1, &graph->first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + 1, &graph->first_input));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + 1, &graph->first_output));
  for (size_t n = 0; n < nodes; ++n) {
    const rn_ir_node_t* node = &graph->ir->nodes.items[n];
    graph->first_input[n] = (int32_t)inputs;
    graph->first_output[n] = (int32_t)outputs;
    if (node->is_removed) continue;
    vertices += most_vertices(node);
    inputs += (size_t)node->input_count;
    outputs += (size_t)node->output_count;
  }
  if (vertices > INT32_MAX || inputs > INT32_MAX || outputs > INT32_MAX) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, vertices + 1, &graph->vertices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs + 1, &graph->inputs));
  return RN_ARENA_ARRAY(arena, outputs + 1, &graph->outputs);
}

// Calls |edge| for every edge.
static void each_edge(rn_type_graph_t* graph,
                      void (*edge)(rn_type_graph_t* graph, int32_t from, int32_t to)) {
  for (size_t n = 0; n < graph->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &graph->ir->nodes.items[n];
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i)
      edge(graph, rn_type_of_output(graph, node->inputs[i].node, node->inputs[i].output),
           rn_type_of_input(graph, (int32_t)n, i));
  }
  for (int32_t i = 0; i < graph->extra_count; ++i)
    edge(graph, graph->extras[2 * i], graph->extras[2 * i + 1]);
}

static void count_edge(rn_type_graph_t* graph, int32_t from, int32_t to) {
  graph->to.starts[from]++;
  graph->from.starts[to]++;
}

// Fills each vertex's items from behind, so that |starts| ends up where they begin.
static void put_edge(rn_type_graph_t* graph, int32_t from, int32_t to) {
  graph->to.items[--graph->to.starts[from]] = to;
  graph->from.items[--graph->from.starts[to]] = from;
}

static rn_status_t link_edges(rn_type_graph_t* graph) {
  rn_type_edges_t* both[] = {&graph->from, &graph->to};
  for (int k = 0; k < 2; ++k)
    RN_RETURN_IF_ERROR(
        RN_ARENA_ARRAY(&graph->ir->arena, (size_t)graph->count + 1, &both[k]->starts));
  each_edge(graph, count_edge);
  for (int k = 0; k < 2; ++k) {
    int64_t sum = 0;
    for (int32_t v = 0; v <= graph->count; ++v) {
      sum += v < graph->count ? both[k]->starts[v] : 0;
      if (sum > INT32_MAX) return rn_out_of_memory();
      both[k]->starts[v] = (int32_t)sum;
    }
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->ir->arena, (size_t)sum + 1, &both[k]->items));
  }
  each_edge(graph, put_edge);
  return RN_OK;
}

rn_status_t rn_type_graph_create(rn_ir_t* ir, rn_type_graph_t* out) {
  *out = (rn_type_graph_t){.ir = ir};
  RN_RETURN_IF_ERROR(make_arrays(out));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    out->first[n] = out->count;
    add_node(out, (int32_t)n);
  }
  out->first[ir->nodes.count] = out->count;
  return link_edges(out);
}

rn_status_t rn_type_graph_add_edges(rn_type_graph_t* graph, int32_t* pairs, int32_t count) {
  graph->extras = pairs;
  graph->extra_count = count;
  return link_edges(graph);
}

rn_status_t rn_type_spread(const rn_type_graph_t* graph, rn_type_direction_t direction,
                           bool (*may_enter)(void* self, int32_t vertex), void* self,
                           bool* inout_is_marked) {
  int32_t *stack = NULL, depth = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->ir->arena, (size_t)graph->count + 1, &stack));
  for (int32_t v = 0; v < graph->count; ++v)
    if (inout_is_marked[v]) stack[depth++] = v;
  const rn_type_edges_t* ways[] = {direction & RN_TYPE_SOURCES ? &graph->from : NULL,
                                   direction & RN_TYPE_READERS ? &graph->to : NULL};
  while (depth > 0) {
    int32_t v = stack[--depth];
    for (int k = 0; k < 2; ++k) {
      for (int32_t e = ways[k] ? ways[k]->starts[v] : 0; ways[k] && e < ways[k]->starts[v + 1];
           ++e) {
        int32_t next = ways[k]->items[e];
        if (inout_is_marked[next] || !may_enter(self, next)) continue;
        inout_is_marked[next] = true;
        stack[depth++] = next;
      }
    }
  }
  return RN_OK;
}
