// Checks for NaN and infinity behind every node, in the order of the graph.
#include <inttypes.h>

#include "base/vec.h"
#include "graph/graph.h"
#include "runnel/train.h"
#include "train/words.h"

typedef RN_VEC(rn_edge_t) check_numerics_edges_t;

// By node number: how many conditionals and loops contain the node, and whether it is needed.
typedef struct check_numerics_walk_t {
  rn_graph_t* graph;
  rn_allocator_t allocator;
  int32_t count;
  bool* is_needed;
  int32_t* depth;
} check_numerics_walk_t;

static bool is_role(const rn_node_t* node, rn_op_role_t role) { return node->op->role == role; }

// Inputs come before their nodes, except the back edges of loops.
static void find_depths(check_numerics_walk_t* w) {
  for (int32_t i = 0; i < w->count; ++i) {
    const rn_node_t* node = w->graph->nodes.items[i];
    int32_t depth = 0;
    bool is_loop = false;
    for (int32_t k = 0; k < node->input_count; ++k) {
      const rn_node_t* from = node->inputs[k].node;
      if (from->id < i && w->depth[from->id] > depth) depth = w->depth[from->id];
      is_loop |= is_role(from, RN_ROLE_ENTER) || from->id >= i;
    }
    if (is_role(node, RN_ROLE_SWITCH) || is_role(node, RN_ROLE_ENTER)) ++depth;
    if (is_role(node, RN_ROLE_MERGE) && !is_loop) --depth;
    if (is_role(node, RN_ROLE_EXIT)) depth -= 2;  // of the Enter, and of the Switch before it
    w->depth[i] = depth < 0 ? 0 : depth;
  }
}

static rn_status_t find_needed(check_numerics_walk_t* w, const rn_edge_t* ys, int count) {
  RN_VEC(rn_node_t*) open = {0};
  rn_status_t status = RN_OK;
  for (int i = 0; i < count && rn_ok(status); ++i) {
    if (!ys[i].node || ys[i].node->graph != w->graph)
      status = rn_invalid_argument("y %d is not an output of the scope's graph", i);
    else
      status = rn_vec_push(&open, w->allocator, ys[i].node);
  }
  while (open.count && rn_ok(status)) {
    const rn_node_t* node = open.items[--open.count];
    if (w->is_needed[node->id]) continue;
    w->is_needed[node->id] = true;
    for (int32_t k = 0; k < node->input_count && rn_ok(status); ++k)
      status = rn_vec_push(&open, w->allocator, node->inputs[k].node);
    for (size_t k = 0; k < node->controls.count && rn_ok(status); ++k)
      status = rn_vec_push(&open, w->allocator, node->controls.items[k]);
  }
  rn_vec_free(&open, w->allocator);
  return status;
}

static bool is_checked(rn_edge_t edge) {
  int dtype = rn_edge_dtype(edge);
  return dtype == RN_HALF || dtype == RN_BFLOAT16 || dtype == RN_FLOAT || dtype == RN_DOUBLE;
}

static rn_status_t collect(check_numerics_walk_t* w, const rn_edge_t* ys, int count,
                           check_numerics_edges_t* out) {
  w->count = (int32_t)w->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(w->allocator, (size_t)w->count, &w->is_needed));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(w->allocator, (size_t)w->count, &w->depth));
  RN_RETURN_IF_ERROR(find_needed(w, ys, count));
  find_depths(w);
  for (int32_t i = 0; i < w->count; ++i) {
    rn_node_t* node = w->graph->nodes.items[i];
    if (!w->is_needed[i] || w->depth[i] > 0) continue;
    for (int32_t k = 0; k < node->output_count; ++k) {
      rn_edge_t edge = {node, k};
      if (is_checked(edge)) RN_RETURN_IF_ERROR(rn_vec_push(out, w->allocator, edge));
    }
  }
  return RN_OK;
}

RN_API rn_node_t* rn_add_check_numerics(rn_scope_t* scope, const rn_edge_t* ys, int count) {
  if (!rn_scope_ok(scope)) return NULL;
  check_numerics_walk_t walk = {.graph = rn_scope_graph(scope),
                                .allocator = rn_allocator_default()};
  check_numerics_edges_t edges = {0};
  rn_mutex_lock(&walk.graph->mutex);
  rn_status_t status = collect(&walk, ys, count, &edges);
  rn_mutex_unlock(&walk.graph->mutex);
  rn_node_t* last = NULL;
  for (size_t i = 0; i < edges.count && rn_ok(status); ++i) {
    rn_strbuf_t message;
    rn_strbuf_init(&message, walk.allocator);
    rn_strbuf_printf(&message, "%.*s:%d", RN_STR_ARGS(edges.items[i].node->name),
                     edges.items[i].index);
    status = rn_strbuf_status(&message);
    if (rn_ok(status)) {
      // A chain of control edges: the first check that fails is the first in the graph.
      rn_op_begin(scope, "CheckNumerics");
      rn_op_input(scope, edges.items[i]);
      rn_op_attr_string(scope, "message", message.data);
      if (last) rn_op_control(scope, last);
      last = rn_op_finish(scope);
    }
    rn_strbuf_clear(&message);
  }
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  rn_vec_free(&edges, walk.allocator);
  rn_free(walk.allocator, walk.is_needed, (size_t)walk.count * sizeof *walk.is_needed);
  rn_free(walk.allocator, walk.depth, (size_t)walk.count * sizeof *walk.depth);
  return last;
}
