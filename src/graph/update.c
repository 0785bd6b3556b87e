// Changes to existing nodes: replacing an input, refining a shape.
#include "graph/build.h"

// A node is inferred again at most this often in one update; shapes that still change then (in a
// loop that grows a tensor) become unknown.
#define MAX_ROUNDS 8

static bool is_back_edge(const rn_node_t* source, const rn_node_t* node) {
  return source->op->role == RN_ROLE_NEXT_ITERATION && node->op->role == RN_ROLE_MERGE;
}

// A queue of nodes to visit, each in it at most once, with a count of visits per node. All memory
// is allocated at the start, so a walk cannot fail half-way.
typedef struct worklist_t {
  rn_allocator_t allocator;
  size_t node_count;
  rn_node_t** ring;
  size_t first, count;
  uint8_t* rounds;  // by id
  bool* is_queued;  // by id
} worklist_t;

static void worklist_clear(worklist_t* list) {
  RN_FREE_ARRAY(list->allocator, list->ring, list->node_count);
  RN_FREE_ARRAY(list->allocator, list->rounds, list->node_count);
  RN_FREE_ARRAY(list->allocator, list->is_queued, list->node_count);
}

static rn_status_t worklist_init(worklist_t* list, const rn_graph_t* graph) {
  *list = (worklist_t){.allocator = graph->allocator, .node_count = graph->nodes.count};
  rn_status_t status = RN_NEW_ARRAY(list->allocator, list->node_count, &list->ring);
  if (rn_ok(status)) status = RN_NEW_ARRAY(list->allocator, list->node_count, &list->rounds);
  if (rn_ok(status)) status = RN_NEW_ARRAY(list->allocator, list->node_count, &list->is_queued);
  if (!rn_ok(status)) worklist_clear(list);
  return status;
}

static void worklist_add(worklist_t* list, rn_node_t* node) {
  if (list->is_queued[node->id]) return;
  list->ring[(list->first + list->count++) % list->node_count] = node;
  list->is_queued[node->id] = true;
}

static rn_node_t* worklist_take(worklist_t* list) {
  rn_node_t* node = list->ring[list->first];
  list->first = (list->first + 1) % list->node_count;
  list->count--;
  return node;
}

static void add_data_consumers(worklist_t* list, const rn_node_t* node, bool through_loops) {
  for (int i = 0; i < node->output_count; i++) {
    for (size_t j = 0; j < node->outputs[i].consumers.count; j++) {
      rn_node_t* consumer = node->outputs[i].consumers.items[j].node;
      if (through_loops || !is_back_edge(node, consumer)) worklist_add(list, consumer);
    }
  }
}

// Whether |to| can be reached from |from| without a loop's back edge. Afterwards |list| cannot be
// reused.
static bool is_reachable(worklist_t* list, rn_node_t* from, const rn_node_t* to) {
  worklist_add(list, from);
  while (list->count) {
    rn_node_t* node = worklist_take(list);
    if (node == to) return true;
    add_data_consumers(list, node, false);
    for (size_t i = 0; i < node->control_consumers.count; i++) {
      worklist_add(list, node->control_consumers.items[i]);
    }
  }
  return false;
}

static bool same_partial(rn_partial_t a, rn_partial_t b) {
  if (a.is_known != b.is_known || a.is_scalar != b.is_scalar || a.count != b.count) return false;
  return a.values == b.values ||
         (a.values && b.values && !memcmp(a.values, b.values, (size_t)a.count * sizeof *a.values));
}

static bool same_output(const rn_output_t* a, const rn_output_t* b) {
  return rn_shape_eq(a->shape, b->shape) && a->handle.is_set == b->handle.is_set &&
         a->handle.dtype == b->handle.dtype &&
         (!a->handle.is_set || rn_shape_eq(a->handle.shape, b->handle.shape));
}

static void forget_shapes(rn_node_t* node) {
  for (int i = 0; i < node->output_count; i++) {
    node->outputs[i].shape = RN_SHAPE_UNKNOWN;
    node->outputs[i].handle = (rn_handle_data_t){0};
  }
  node->partial = (rn_partial_t){0};
}

// Infers |node| again and tells whether the result changed. On failure nothing changes.
static rn_status_t infer_again(rn_node_t* node, bool* out_changed) {
  rn_output_t* before = NULL;
  rn_partial_t partial = node->partial;
  rn_allocator_t allocator = node->graph->allocator;
  size_t count = (size_t)node->output_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &before));
  if (count) memcpy(before, node->outputs, count * sizeof *before);
  rn_status_t status = rn_node_infer_locked(node);
  *out_changed = !same_partial(partial, node->partial);
  for (size_t i = 0; i < count; i++) {
    if (!same_output(&before[i], &node->outputs[i])) *out_changed = true;
  }
  RN_FREE_ARRAY(allocator, before, count);
  return status;
}

// Propagates the change of |node|'s outputs to all nodes that depend on them. Where shapes now
// contradict each other they become unknown: the node may still be fed, and otherwise its kernel
// reports the error.
static void propagate(worklist_t* list, rn_node_t* node) {
  add_data_consumers(list, node, true);
  while (list->count) {
    rn_node_t* next = worklist_take(list);
    list->is_queued[next->id] = false;
    if (list->rounds[next->id] > MAX_ROUNDS) continue;  // already set to unknown
    bool changed = true;
    bool give_up = ++list->rounds[next->id] > MAX_ROUNDS;
    rn_status_t status = give_up ? RN_OK : infer_again(next, &changed);
    if (give_up || !rn_ok(status)) forget_shapes(next);
    if (!rn_ok(status)) changed = true;
    rn_status_free(status);
    if (changed) add_data_consumers(list, next, true);
  }
}

static rn_status_t check_source(rn_graph_t* graph, rn_edge_t source, const rn_node_t* node) {
  if (!source.node || !node) return rn_invalid_argument("Cannot update edge. Node is null.");
  if (source.node->graph != graph || node->graph != graph) {
    return rn_invalid_argument("Cannot update edge. '%.*s' is of another graph.",
                               RN_STR_ARGS(node->graph != graph ? node->name : source.node->name));
  }
  if (source.index < 0 || source.index >= source.node->output_count) {
    return rn_out_of_range(
        "Cannot update edge. Output index [%d] is greater than the number of total outputs [%d].",
        source.index, source.node->output_count);
  }
  return RN_OK;
}

static rn_status_t check_update(rn_graph_t* graph, rn_edge_t source, const rn_node_t* node,
                                int input) {
  RN_RETURN_IF_ERROR(check_source(graph, source, node));
  if (input < 0 || input >= node->input_count) {
    return rn_out_of_range(
        "Cannot update edge. Input index [%d] is greater than the number of total inputs [%d].",
        input, node->input_count);
  }
  return RN_OK;
}

static rn_dtype_t input_type(const rn_node_t* node, int input) {
  for (int i = 0; i < node->op->input_count; i++) {
    const rn_arg_def_t* arg = &node->op->inputs[i];
    int64_t length = rn_node_arg_length(node, arg);
    if (input < length) return rn_node_arg_type(node, arg, input);
    input -= (int)length;
  }
  return RN_INVALID;
}

static rn_status_t check_fit(rn_edge_t source, rn_node_t* node, int input) {
  const rn_output_t* output = &source.node->outputs[source.index];
  rn_dtype_t expected = input_type(node, input);
  if (!rn_dtype_fits(output->dtype, expected)) {
    return rn_invalid_argument(
        "Input %d of node %.*s was passed %s from %.*s:%d incompatible with expected %s.", input,
        RN_STR_ARGS(node->name), rn_dtype_name(output->dtype), RN_STR_ARGS(source.node->name),
        source.index, rn_dtype_name(expected));
  }
  rn_edge_t old = node->inputs[input];
  if (old.node && !rn_shape_compatible(output->shape, old.node->outputs[old.index].shape)) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, node->graph->allocator);
    rn_strbuf_append(&text, RN_STR("Cannot update edge, incompatible shapes: "));
    rn_shape_print(&text, output->shape);
    rn_strbuf_append(&text, RN_STR(" and "));
    rn_shape_print(&text, old.node->outputs[old.index].shape);
    rn_strbuf_append(&text, RN_STR("."));
    return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
  }
  return RN_OK;
}

static rn_status_t check_cycle(rn_edge_t source, rn_node_t* node) {
  if (is_back_edge(source.node, node)) return RN_OK;
  worklist_t list;
  RN_RETURN_IF_ERROR(worklist_init(&list, node->graph));
  bool cycle = is_reachable(&list, node, source.node);
  worklist_clear(&list);
  if (!cycle) return RN_OK;
  return rn_invalid_argument(
      "Cannot update edge. Reading '%.*s' in node '%.*s' would make a cycle outside of a loop.",
      RN_STR_ARGS(source.node->name), RN_STR_ARGS(node->name));
}

static void remove_consumer(rn_edge_t edge, const rn_node_t* node, int input) {
  if (!edge.node) return;
  rn_output_t* output = &edge.node->outputs[edge.index];
  for (size_t i = 0; i < output->consumers.count; i++) {
    rn_consumer_t* consumer = &output->consumers.items[i];
    if (consumer->node != node || consumer->input != input) continue;
    memmove(consumer, consumer + 1, (output->consumers.count - i - 1) * sizeof *consumer);
    output->consumers.count--;
    return;
  }
}

static rn_status_t replace_input(worklist_t* list, rn_edge_t source, rn_node_t* node, int input) {
  rn_edge_t old = node->inputs[input];
  rn_output_t* output = &source.node->outputs[source.index];
  RN_RETURN_IF_ERROR(rn_output_add_consumer(node->graph, output, (rn_consumer_t){node, input}));
  node->inputs[input] = source;
  bool changed = false;
  rn_status_t status = infer_again(node, &changed);
  if (!rn_ok(status)) {
    node->inputs[input] = old;
    output->consumers.count--;
    return status;
  }
  remove_consumer(old, node, input);
  if (changed) propagate(list, node);
  return RN_OK;
}

static rn_status_t update_edge_locked(rn_graph_t* graph, rn_edge_t source, rn_node_t* node,
                                      int input) {
  RN_RETURN_IF_ERROR(check_update(graph, source, node, input));
  rn_edge_t old = node->inputs[input];
  if (old.node == source.node && old.index == source.index) return RN_OK;
  RN_RETURN_IF_ERROR(check_fit(source, node, input));
  RN_RETURN_IF_ERROR(check_cycle(source, node));
  worklist_t list;
  RN_RETURN_IF_ERROR(worklist_init(&list, graph));
  rn_status_t status = replace_input(&list, source, node, input);
  worklist_clear(&list);
  return status;
}

rn_status_t rn_graph_update_edge(rn_graph_t* graph, rn_edge_t source, rn_node_t* node, int input) {
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = update_edge_locked(graph, source, node, input);
  rn_mutex_unlock(&graph->mutex);
  return status;
}

// Appends a type to attribute |index|, a list of types.
static rn_status_t longer_types(rn_node_t* node, int index, rn_dtype_t dtype,
                                rn_attr_value_t* out) {
  const rn_attr_value_t* old = &node->attrs[index];
  rn_attr_value_t longer = *old;
  rn_dtype_t* types = NULL;
  rn_allocator_t allocator = node->graph->allocator;
  size_t count = (size_t)old->count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count + 1, &types));
  if (count) memcpy(types, old->list_type, count * sizeof *types);
  types[count] = rn_dtype_base(dtype);
  longer.kind = RN_ATTR_TYPE;
  longer.is_list = true;
  longer.list_type = types;
  longer.count = (int32_t)count + 1;
  rn_status_t status = rn_node_copy_value(node, &longer, out);
  RN_FREE_ARRAY(allocator, types, count + 1);
  return status;
}

// Makes a copy of |node| with one more input and output, in arrays of its own, not yet linked.
static rn_status_t make_longer(const rn_node_t* node, int index, rn_edge_t source,
                               rn_node_t* longer) {
  rn_arena_t* arena = &node->graph->arena;
  *longer = *node;
  size_t attrs = (size_t)node->op->attr_count, inputs = (size_t)node->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, attrs, &longer->attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs + 1, &longer->inputs));
  memcpy(longer->attrs, node->attrs, attrs * sizeof *longer->attrs);
  if (inputs) memcpy(longer->inputs, node->inputs, inputs * sizeof *longer->inputs);
  longer->inputs[inputs] = source;
  longer->input_count++;
  rn_dtype_t dtype = source.node->outputs[source.index].dtype;
  RN_RETURN_IF_ERROR(longer_types(longer, index, dtype, &longer->attrs[index]));
  rn_status_t status = rn_node_make_outputs(longer);
  if (!rn_ok(status)) rn_attr_value_clear(&longer->attrs[index]);
  return status;
}

static rn_status_t append_input_locked(rn_graph_t* graph, rn_edge_t source, rn_node_t* node) {
  RN_RETURN_IF_ERROR(check_source(graph, source, node));
  const rn_op_def_t* op = node->op;
  int index = op->input_count == 1 ? op->inputs[0].type_list_attr : -1;
  if (index < 0 || op->output_count != 1 || op->outputs[0].type_list_attr != index)
    return rn_invalid_argument("Operation '%.*s' (%s) cannot take one more input",
                               RN_STR_ARGS(node->name), op->name);
  RN_RETURN_IF_ERROR(check_cycle(source, node));
  rn_node_t longer;
  RN_RETURN_IF_ERROR(make_longer(node, index, source, &longer));
  for (int i = 0; i < node->output_count; i++) longer.outputs[i] = node->outputs[i];
  rn_node_t before = *node;
  rn_consumer_t consumer = {node, node->input_count};
  rn_output_t* output = &source.node->outputs[source.index];
  rn_status_t status = rn_output_add_consumer(graph, output, consumer);
  if (rn_ok(status)) {
    *node = longer;
    status = rn_node_infer_locked(node);
    if (!rn_ok(status)) {
      *node = before;
      output->consumers.count--;
    }
  }
  rn_attr_value_clear(rn_ok(status) ? &before.attrs[index] : &longer.attrs[index]);
  return status;
}

rn_status_t rn_graph_append_input(rn_graph_t* graph, rn_edge_t source, rn_node_t* node) {
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = append_input_locked(graph, source, node);
  rn_mutex_unlock(&graph->mutex);
  return status;
}

// Makes a copy of |node| that passes |values| on, in arrays of its own, not yet linked.
static rn_status_t make_passage(rn_node_t* node, const rn_edge_t* values, rn_node_t* passage) {
  rn_graph_t* graph = node->graph;
  size_t count = (size_t)node->output_count;
  rn_str_t name = count ? RN_STR("IdentityN") : RN_STR("NoOp");
  *passage = *node;
  passage->op = rn_graph_find_op_locked(graph, name);
  if (!passage->op || passage->op->attr_count != (count > 0))
    return rn_op_not_registered(RN_CODE_INVALID_ARGUMENT, name);
  passage->extras = NULL;
  passage->extra_count = 0;
  passage->input_count = node->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, count, &passage->inputs));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&graph->arena, (size_t)passage->op->attr_count, &passage->attrs));
  if (!count) return RN_OK;
  memcpy(passage->inputs, values, count * sizeof *values);
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(graph->allocator, count, &types));
  for (size_t i = 0; i < count; i++) types[i] = rn_dtype_base(node->outputs[i].dtype);
  rn_attr_value_t list = {
      .kind = RN_ATTR_TYPE, .is_list = true, .list_type = types, .count = (int32_t)count};
  rn_status_t status = rn_node_copy_value(node, &list, &passage->attrs[0]);
  RN_FREE_ARRAY(graph->allocator, types, count);
  return status;
}

static rn_status_t check_values(rn_graph_t* graph, const rn_node_t* node, const rn_edge_t* values) {
  for (int i = 0; i < node->output_count; i++) {
    RN_RETURN_IF_ERROR(check_source(graph, values[i], node));
    rn_dtype_t given = values[i].node->outputs[values[i].index].dtype;
    if (!rn_dtype_fits(given, node->outputs[i].dtype))
      return rn_invalid_argument("Output %d of node '%.*s' is %s and cannot become %s", i,
                                 RN_STR_ARGS(node->name), rn_dtype_name(node->outputs[i].dtype),
                                 rn_dtype_name(given));
  }
  return RN_OK;
}

static rn_status_t pass_on_locked(rn_graph_t* graph, rn_node_t* node, const rn_edge_t* values) {
  RN_RETURN_IF_ERROR(check_values(graph, node, values));
  rn_node_t passage;
  RN_RETURN_IF_ERROR(make_passage(node, values, &passage));
  rn_status_t status = RN_OK;
  int linked = 0;
  for (; rn_ok(status) && linked < node->output_count; linked++)
    status = rn_output_add_consumer(graph, &values[linked].node->outputs[values[linked].index],
                                    (rn_consumer_t){node, linked});
  if (!rn_ok(status)) {
    while (--linked > 0)
      values[linked - 1].node->outputs[values[linked - 1].index].consumers.count--;
    if (node->output_count) rn_attr_value_clear(&passage.attrs[0]);
    return status;
  }
  for (int i = 0; i < node->input_count; i++) remove_consumer(node->inputs[i], node, i);
  rn_node_dispose(node);
  *node = passage;
  return RN_OK;
}

rn_status_t rn_graph_pass_on(rn_graph_t* graph, rn_node_t* node, const rn_edge_t* values) {
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = pass_on_locked(graph, node, values);
  rn_mutex_unlock(&graph->mutex);
  return status;
}

static rn_status_t set_shape_locked(rn_graph_t* graph, rn_edge_t edge, rn_shape_t shape) {
  if (!edge.node) return rn_invalid_argument("Node is null");
  if (edge.node->graph != graph) {
    return rn_invalid_argument("Node '%.*s' was not found in the graph",
                               RN_STR_ARGS(edge.node->name));
  }
  if (edge.index < 0 || edge.index >= edge.node->output_count) {
    return rn_invalid_argument("output_port '%d' is out of range, node '%.*s' has %d outputs",
                               edge.index, RN_STR_ARGS(edge.node->name), edge.node->output_count);
  }
  rn_output_t* output = &edge.node->outputs[edge.index];
  rn_shape_t merged;
  rn_shape_ctx_t ctx = {.op = edge.node->op, .arena = &graph->arena};
  RN_RETURN_IF_ERROR(rn_shape_merge(&ctx, output->shape, shape, &merged));
  if (rn_shape_eq(merged, output->shape)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_shape_copy(&graph->arena, merged, &output->shape));
  return RN_OK;
}

rn_status_t rn_graph_set_shape(rn_graph_t* graph, rn_edge_t edge, rn_shape_t shape) {
  if (shape.rank > RN_MAX_RANK) {
    return rn_invalid_argument("Shape must be at most rank %d but is rank %d", RN_MAX_RANK,
                               (int)shape.rank);
  }
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] >= RN_UNKNOWN) continue;
    return rn_invalid_argument("Dimension %d of the shape is %lld", i, (long long)shape.dims[i]);
  }
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = set_shape_locked(graph, edge, shape);
  rn_mutex_unlock(&graph->mutex);
  return status;
}
