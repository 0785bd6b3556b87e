// Prunes a graph to the nodes that a step's feeds, fetches and targets need.
#include <stdio.h>

#include "step/ir.h"

typedef struct prune_t {
  rn_graph_t* graph;
  rn_ir_t* ir;
  const rn_signature_t* signature;
  int32_t* index;      // graph node id -> IR node; -1 if not needed so far
  uint8_t* has_feed;   // graph node id -> whether one of its outputs is fed
  uint8_t* is_done;    // graph node id -> whether it ran in an earlier part of the step
  int32_t* feed_node;  // feed number -> IR node; -1 if not made yet
  RN_VEC(rn_node_t*) work;
} prune_t;

rn_status_t rn_ir_check_edge(const rn_graph_t* graph, rn_edge_t edge, const char* what) {
  if (!edge.node) return rn_invalid_argument("A %s is NULL", what);
  if (edge.node->graph != graph)
    return rn_invalid_argument("%s '%.*s' is not in the session's graph", what,
                               RN_STR_ARGS(edge.node->name));
  if (edge.index < 0 || edge.index >= edge.node->output_count)
    return rn_out_of_range("Node '%.*s' (type: '%s', num of outputs: %d) does not have output %d",
                           RN_STR_ARGS(edge.node->name), edge.node->op->name,
                           edge.node->output_count, edge.index);
  return RN_OK;
}

static int32_t find_feed(const prune_t* prune, rn_edge_t edge) {
  if (!prune->has_feed[edge.node->id]) return -1;
  for (int32_t i = 0; i < prune->signature->feed_count; ++i) {
    rn_edge_t feed = prune->signature->feeds[i];
    if (feed.node == edge.node && feed.index == edge.index) return i;
  }
  return -1;
}

// The IR node of feed |number|, made on first use.
static rn_status_t feed_edge(prune_t* prune, int32_t number, rn_ir_edge_t* out) {
  if (prune->feed_node[number] < 0) {
    rn_edge_t feed = prune->signature->feeds[number];
    const rn_output_t* output = &feed.node->outputs[feed.index];
    rn_ir_node_t node = {.op = feed.node->op,
                         .name = feed.node->name,
                         .feed = number,
                         .output_count = 1,
                         .attrs = feed.node->attrs,
                         .requested_device = feed.node->device};
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&prune->ir->arena, &node.types));
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&prune->ir->arena, &node.shapes));
    node.types[0] = rn_dtype_base(output->dtype);
    // A fed value need not have the inferred shape; see rn_ir_set_feed_shapes.
    node.shapes[0] = feed.node->op->role == RN_ROLE_PLACEHOLDER ? output->shape : RN_SHAPE_UNKNOWN;
    RN_RETURN_IF_ERROR(rn_ir_add(prune->ir, &node, &prune->feed_node[number]));
  }
  *out = (rn_ir_edge_t){prune->feed_node[number], 0};
  return RN_OK;
}

static rn_status_t need_node(prune_t* prune, rn_node_t* node, int32_t* out) {
  if (prune->index[node->id] < 0) {
    rn_ir_node_t copy = {.op = node->op,
                         .name = node->name,
                         .attrs = node->attrs,
                         .extra_count = node->extra_count,
                         .extras = node->extras,
                         .requested_device = node->device,
                         .feed = -1};
    RN_RETURN_IF_ERROR(rn_ir_add(prune->ir, &copy, &prune->index[node->id]));
    RN_RETURN_IF_ERROR(rn_vec_push(&prune->work, prune->ir->allocator, node));
  }
  *out = prune->index[node->id];
  return RN_OK;
}

static rn_status_t need_edge(prune_t* prune, rn_edge_t edge, rn_ir_edge_t* out) {
  int32_t feed = find_feed(prune, edge);
  if (feed >= 0) return feed_edge(prune, feed, out);
  out->output = edge.index;
  return need_node(prune, edge.node, &out->node);
}

// A control edge from a fed placeholder can be dropped: its value is available from the start.
static bool is_fed_placeholder(const prune_t* prune, rn_node_t* node) {
  return node->op->role == RN_ROLE_PLACEHOLDER && find_feed(prune, (rn_edge_t){node, 0}) >= 0;
}

// Whether the graph assigns values to the variable without checking their shapes: in this step or
// in another.
static bool is_reshaped(const rn_node_t* node) {
  if (node->op->role != RN_ROLE_VARIABLE || !rn_dtype_is_ref(node->outputs[0].dtype)) return false;
  for (size_t i = 0; i < node->outputs[0].consumers.count; ++i) {
    const rn_node_t* reader = node->outputs[0].consumers.items[i].node;
    const rn_attr_value_t* validates = rn_node_attr(reader, RN_STR("validate_shape"));
    if (validates && validates->kind == RN_ATTR_BOOL && !validates->b) return true;
  }
  return false;
}

static rn_status_t expand(prune_t* prune, rn_node_t* node) {
  RN_RETURN_IF_ERROR(rn_node_check_attrs(node));
  rn_ir_t* ir = prune->ir;
  rn_ir_node_t copy = ir->nodes.items[prune->index[node->id]];
  copy.input_count = node->input_count;
  copy.output_count = node->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->input_count, &copy.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, node->controls.count, &copy.controls));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &copy.types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node->output_count, &copy.shapes));
  for (int32_t i = 0; i < node->input_count; ++i)
    RN_RETURN_IF_ERROR(need_edge(prune, node->inputs[i], &copy.inputs[i]));
  for (size_t i = 0; i < node->controls.count; ++i) {
    if (prune->is_done[node->controls.items[i]->id]) continue;
    if (is_fed_placeholder(prune, node->controls.items[i])) continue;
    RN_RETURN_IF_ERROR(
        need_node(prune, node->controls.items[i], &copy.controls[copy.control_count++]));
  }
  for (int32_t i = 0; i < node->output_count; ++i) {
    copy.types[i] = node->outputs[i].dtype;
    copy.shapes[i] = node->outputs[i].shape;
  }
  copy.is_reshaped = is_reshaped(node);
  if (copy.is_reshaped) copy.shapes[0] = RN_SHAPE_UNKNOWN;
  copy.constant = rn_node_constant(node);
  ir->nodes.items[prune->index[node->id]] = copy;
  return RN_OK;
}

int rn_edge_compare(rn_edge_t a, rn_edge_t b) {
  rn_str_t x = a.node->name, y = b.node->name;
  size_t common = x.size < y.size ? x.size : y.size;
  int order = memcmp(x.data, y.data, common);
  if (order != 0) return order;
  // Compare with the colon that follows the shorter name.
  if (x.size < y.size) return ':' - (unsigned char)y.data[common];
  if (x.size > y.size) return (unsigned char)x.data[common] - ':';
  char first[16], second[16];
  snprintf(first, sizeof first, "%d", a.index);
  snprintf(second, sizeof second, "%d", b.index);
  return strcmp(first, second);
}

typedef struct numbered_feed_t {
  rn_edge_t edge;
  int32_t number;
} numbered_feed_t;

static int compare_feeds(const void* a, const void* b) {
  return rn_edge_compare(((const numbered_feed_t*)a)->edge, ((const numbered_feed_t*)b)->edge);
}

// See rn_ir_source_name. Arguments of functions, and feeds that a master forwards for a client, are
// nodes with names of their own.
static rn_status_t name_feeds(prune_t* prune) {
  rn_arena_t* arena = &prune->ir->arena;
  const rn_signature_t* signature = prune->signature;
  size_t count = (size_t)signature->feed_count;
  numbered_feed_t* sorted = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count + 1, &sorted));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count + 1, &prune->ir->feed_names));
  for (size_t i = 0; i < count; ++i) sorted[i] = (numbered_feed_t){signature->feeds[i], (int32_t)i};
  if (count > 1) qsort(sorted, count, sizeof *sorted, compare_feeds);
  for (size_t i = 0; i < count; ++i) {
    rn_edge_t feed = sorted[i].edge;
    rn_str_t* name = &prune->ir->feed_names[sorted[i].number];
    *name = feed.node->name;
    if (feed.node->op->role == RN_ROLE_ARG || feed.node->op->role == RN_ROLE_RECV) continue;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, name, "_arg_%.*s_%d_%zu",
                                       RN_STR_ARGS(feed.node->name), feed.index, i));
  }
  return RN_OK;
}

static rn_status_t prepare(prune_t* prune) {
  rn_ir_t* ir = prune->ir;
  const rn_signature_t* signature = prune->signature;
  size_t n = prune->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &prune->index));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &prune->has_feed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, n + 1, &prune->is_done));
  for (int32_t i = 0; i < signature->done_count; ++i) prune->is_done[signature->done[i]->id] = 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)signature->feed_count, &prune->feed_node));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)signature->fetch_count, &ir->fetches));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)signature->target_count, &ir->targets));
  memset(prune->index, 0xff, n * sizeof *prune->index);
  for (int32_t i = 0; i < signature->feed_count; ++i) {
    rn_edge_t feed = signature->feeds[i];
    RN_RETURN_IF_ERROR(rn_ir_check_edge(prune->graph, feed, "feed"));
    if (find_feed(prune, feed) >= 0 && find_feed(prune, feed) < i)
      return rn_invalid_argument("Tensor %.*s:%d was fed more than once.",
                                 RN_STR_ARGS(feed.node->name), feed.index);
    prune->has_feed[feed.node->id] = 1;
    prune->feed_node[i] = -1;
  }
  return name_feeds(prune);
}

static rn_status_t prune_locked(prune_t* prune) {
  rn_ir_t* ir = prune->ir;
  const rn_signature_t* signature = prune->signature;
  ir->producer = prune->graph->producer;
  RN_RETURN_IF_ERROR(prepare(prune));
  ir->feed_count = signature->feed_count;
  ir->fetch_count = signature->fetch_count;
  for (int32_t i = 0; i < signature->fetch_count; ++i) {
    RN_RETURN_IF_ERROR(rn_ir_check_edge(prune->graph, signature->fetches[i], "fetch"));
    RN_RETURN_IF_ERROR(need_edge(prune, signature->fetches[i], &ir->fetches[i]));
  }
  for (int32_t i = 0; i < signature->target_count; ++i) {
    rn_node_t* target = signature->targets[i];
    if (!target) return rn_invalid_argument("A target is NULL");
    if (target->graph != prune->graph)
      return rn_invalid_argument("target '%.*s' is not in the session's graph",
                                 RN_STR_ARGS(target->name));
    RN_RETURN_IF_ERROR(need_node(prune, target, &ir->targets[i]));
  }
  ir->target_count = signature->target_count;
  while (prune->work.count > 0)
    RN_RETURN_IF_ERROR(expand(prune, prune->work.items[--prune->work.count]));
  return RN_OK;
}

// The graph's shapes were inferred for the values it computes. After an edge that a client feeds,
// they may be wrong, so they are inferred again. So are shapes in loops, which can be inferred more
// precisely once the loop is complete.
static rn_status_t forget_shapes(rn_ir_t* ir) {
  bool* is_open = NULL;
  bool is_new = false, has_loops = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &is_open));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    // For a While, the graph assumes that variables keep their shapes, without having checked the
    // body.
    bool is_loop = node->feed < 0 && node->op->role == RN_ROLE_WHILE;
    is_open[n] =
        is_loop || node->is_reshaped || (node->feed >= 0 && node->op->role != RN_ROLE_PLACEHOLDER);
    for (int32_t o = 0; is_loop && o < node->output_count; ++o) node->shapes[o] = RN_SHAPE_UNKNOWN;
    is_new |= is_open[n];
    has_loops |= node->op->role == RN_ROLE_NEXT_ITERATION;
  }
  if (is_new) return rn_ir_forget_shapes(ir, is_open);
  return has_loops ? rn_pass_infer_shapes(ir) : RN_OK;
}

rn_status_t rn_ir_create(rn_graph_t* graph, const rn_signature_t* signature, rn_ir_t** out_ir) {
  *out_ir = NULL;
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(graph->allocator, &ir));
  ir->graph = graph;
  ir->call_depth = signature->call_depth;
  ir->allocator = graph->allocator;
  rn_arena_init(&ir->arena, graph->allocator);
  prune_t prune = {.graph = graph, .ir = ir, .signature = signature};
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = prune_locked(&prune);
  rn_mutex_unlock(&graph->mutex);
  rn_vec_free(&prune.work, ir->allocator);
  if (rn_ok(status)) status = forget_shapes(ir);
  if (!rn_ok(status)) {
    rn_ir_destroy(ir);
    return status;
  }
  *out_ir = ir;
  return RN_OK;
}
