// Adds a node from a specification: infers attributes from inputs, checks them, and links the node
// into the graph. The order of checks and the messages are those of TensorFlow's builder.
#include <inttypes.h>

#include "graph/build.h"

// Definitions with more arguments than this use heap memory for the lengths.
#define FEW_ARGS 16

// Collects complaints about a specification; builds text only if there are any.
typedef struct complaints_t {
  rn_strbuf_t text;
  int count;
} complaints_t;

static rn_strbuf_t* complain(complaints_t* complaints) {
  if (complaints->count++) rn_strbuf_append(&complaints->text, RN_STR("\n"));
  return &complaints->text;
}

static rn_status_t bad_specification(const rn_node_t* node, complaints_t* complaints) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, node->graph->allocator);
  if (complaints->count > 1) {
    rn_strbuf_printf(&text, "%d errors", complaints->count);
  } else {
    rn_strbuf_append(&text, rn_strbuf_view(&complaints->text));
  }
  rn_strbuf_append(&text, RN_STR(" while building NodeDef '"));
  rn_strbuf_append(&text, node->name);
  rn_strbuf_append(&text, RN_STR("' using "));
  rn_op_summary(&text, node->op);
  if (complaints->count > 1) {
    rn_strbuf_append(&text, RN_STR(":\n"));
    rn_strbuf_append(&text, rn_strbuf_view(&complaints->text));
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_dtype_t edge_type(rn_edge_t edge) { return edge.node->outputs[edge.index].dtype; }

static bool edge_is_good(const rn_graph_t* graph, rn_edge_t edge) {
  return edge.node && edge.node->graph == graph && edge.index >= 0 &&
         edge.index < edge.node->output_count;
}

static void describe_bad_edge(complaints_t* complaints, const rn_node_t* node, int i,
                              rn_edge_t edge) {
  rn_strbuf_t* text = complain(complaints);
  if (!edge.node) {
    rn_strbuf_printf(text, "Attempt to add nullptr Node to node with type %s", node->op->name);
  } else if (edge.node->graph != node->graph) {
    rn_strbuf_printf(text, "Input %d of node '%.*s' is '%.*s' of another graph", i,
                     RN_STR_ARGS(node->name), RN_STR_ARGS(edge.node->name));
  } else {
    rn_strbuf_printf(text, "Attempt to add output %d of ", edge.index);
    rn_strbuf_append(text, edge.node->name);
    rn_strbuf_printf(text,
                     " not in range [0, %d) to node with type %s. Node: ", edge.node->output_count,
                     node->op->name);
    rn_node_mention(text, edge.node->name);
  }
}

// All inputs and control inputs must be outputs and nodes of this graph.
static rn_status_t check_edges(const rn_node_t* node, const rn_node_spec_t* spec) {
  complaints_t complaints = {0};
  rn_strbuf_init(&complaints.text, node->graph->allocator);
  for (int i = 0; i < spec->input_count; i++) {
    if (edge_is_good(node->graph, spec->inputs[i])) continue;
    describe_bad_edge(&complaints, node, i, spec->inputs[i]);
  }
  for (int i = 0; i < spec->control_count; i++) {
    const rn_node_t* control = spec->controls[i];
    if (control && control->graph == node->graph) continue;
    if (!control) {
      describe_bad_edge(&complaints, node, -1, RN_NO_EDGE);
    } else {
      rn_strbuf_printf(complain(&complaints),
                       "Control input '%.*s' of node '%.*s' is of another "
                       "graph",
                       RN_STR_ARGS(control->name), RN_STR_ARGS(node->name));
    }
  }
  if (complaints.count) return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &complaints.text);
  return RN_OK;
}

static void disagree(complaints_t* complaints, const char* name, const rn_attr_value_t* first,
                     const rn_attr_value_t* second) {
  rn_strbuf_t* text = complain(complaints);
  rn_strbuf_printf(text, "Inconsistent values for attr '%s' ", name);
  rn_attr_value_print(text, first);
  rn_strbuf_append(text, RN_STR(" vs. "));
  rn_attr_value_print(text, second);
}

// Sets attribute |i|, or compares with the value it has. |value| may point into the arena only.
static void settle(rn_node_t* node, int i, rn_attr_value_t value, complaints_t* complaints) {
  rn_attr_value_t* slot = &node->attrs[i];
  if (slot->kind == RN_ATTR_UNSET) {
    *slot = value;
  } else if (!rn_attr_value_eq(slot, &value)) {
    disagree(complaints, node->op->attrs[i].name, slot, &value);
  }
}

static void wrong_input(complaints_t* complaints, const rn_arg_def_t* arg, rn_dtype_t passed,
                        const char* expected) {
  rn_strbuf_printf(complain(complaints), "Input '%s' passed %s expected %s", arg->name,
                   rn_dtype_name(passed), expected);
}

static rn_status_t infer_type_list(rn_node_t* node, const rn_arg_def_t* arg,
                                   const rn_edge_t* inputs, int32_t count,
                                   complaints_t* complaints) {
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->graph->arena, (size_t)count, &types));
  for (int32_t i = 0; i < count; i++) types[i] = rn_dtype_base(edge_type(inputs[i]));
  rn_attr_value_t value = {
      .kind = RN_ATTR_TYPE, .is_list = true, .count = count, .list_type = types};
  settle(node, arg->type_list_attr, value, complaints);
  return RN_OK;
}

// Takes |count| inputs as argument |arg|.
static rn_status_t infer_from_argument(rn_node_t* node, const rn_arg_def_t* arg,
                                       const rn_edge_t* inputs, int32_t count,
                                       complaints_t* complaints) {
  if (arg->number_attr >= 0) {
    settle(node, arg->number_attr, (rn_attr_value_t){.kind = RN_ATTR_INT, .i = count}, complaints);
  }
  if (arg->type_list_attr >= 0) {
    return infer_type_list(node, arg, inputs, count, complaints);
  }
  if (count == 0) return RN_OK;
  rn_dtype_t first = rn_dtype_base(edge_type(inputs[0]));
  if (arg->type_attr >= 0) {
    settle(node, arg->type_attr, (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = first},
           complaints);
  } else if (first != arg->type) {
    wrong_input(complaints, arg, edge_type(inputs[0]), rn_dtype_name(arg->type));
    return RN_OK;
  }
  for (int32_t i = 0; i < count; i++) {
    rn_dtype_t type = edge_type(inputs[i]);
    if (arg->is_ref && !rn_dtype_is_ref(type)) {
      wrong_input(complaints, arg, type, "ref type");
    } else if (rn_dtype_base(type) != first) {
      wrong_input(complaints, arg, type, rn_dtype_name(first));
    }
  }
  return RN_OK;
}

static bool is_list(const rn_arg_def_t* arg) {
  return arg->number_attr >= 0 || arg->type_list_attr >= 0;
}

// The length that the caller's attributes give list |arg|; -1 if they do not.
static int32_t length_from_attrs(const rn_op_def_t* op, const rn_arg_def_t* arg,
                                 const rn_node_spec_t* spec) {
  const char* name = op->attrs[arg->number_attr >= 0 ? arg->number_attr : arg->type_list_attr].name;
  for (int i = 0; i < spec->attr_count; i++) {
    if (!rn_str_is(spec->attrs[i].name, name)) continue;
    const rn_attr_value_t* value = &spec->attrs[i].value;
    int64_t length = value->is_list ? value->count : value->i;
    return length >= 0 && length <= spec->input_count ? (int32_t)length : -1;
  }
  return -1;
}

// If the caller gives no lengths: divides the remaining inputs evenly among the lists whose length
// no attribute gives. That is right for one such list, and for several that share a number.
static void deal_out(const rn_op_def_t* op, const rn_node_spec_t* spec, int32_t* lengths) {
  int64_t rest = spec->input_count;
  int open = 0;
  for (int i = 0; i < op->input_count; i++) {
    int32_t length = is_list(&op->inputs[i]) ? length_from_attrs(op, &op->inputs[i], spec) : 1;
    lengths[i] = length;
    open += length < 0;
    rest -= length < 0 ? 0 : length;
  }
  for (int i = 0; i < op->input_count; i++) {
    if (lengths[i] < 0) lengths[i] = rest > 0 ? (int32_t)(rest / open) : 0;
    if (!is_list(&op->inputs[i])) lengths[i] = RN_ARG_SINGLE;
  }
}

// Checks the form of argument |i| and returns the number of inputs that it takes.
static int32_t argument_count(const rn_arg_def_t* arg, int32_t length, complaints_t* complaints) {
  if (length == RN_ARG_SINGLE && is_list(arg)) {
    rn_strbuf_printf(complain(complaints), "Single tensor passed to '%s', expected list",
                     arg->name);
  } else if (length >= 0 && !is_list(arg)) {
    rn_strbuf_printf(complain(complaints),
                     "List provided to input '%s' when single Tensor expected", arg->name);
  }
  return length < 0 ? 1 : length;
}

static rn_status_t infer_from_lengths(rn_node_t* node, const rn_node_spec_t* spec,
                                      const int32_t* lengths, int32_t length_count,
                                      complaints_t* complaints) {
  const rn_op_def_t* op = node->op;
  int64_t used = 0;
  for (int i = 0; i < length_count && i < op->input_count; i++) {
    int earlier = complaints->count;
    int32_t count = argument_count(&op->inputs[i], lengths[i], complaints);
    if (used + count > spec->input_count) {
      rn_strbuf_printf(complain(complaints), "Input '%s' needs %d tensors, %" PRId64 " are left",
                       op->inputs[i].name, (int)count, spec->input_count - used);
      return RN_OK;
    }
    if (complaints->count == earlier) {
      const rn_edge_t* inputs = count ? spec->inputs + used : NULL;
      RN_RETURN_IF_ERROR(infer_from_argument(node, &op->inputs[i], inputs, count, complaints));
    }
    used += count;
  }
  bool has_more = length_count > op->input_count || used < spec->input_count;
  if (length_count < op->input_count) {
    rn_strbuf_printf(complain(complaints), "%d inputs specified of %d inputs in Op",
                     (int)length_count, (int)op->input_count);
  } else if (has_more) {
    rn_strbuf_printf(complain(complaints), "More Input() calls than the %d input_args",
                     (int)op->input_count);
  }
  return RN_OK;
}

static rn_status_t infer_from_inputs(rn_node_t* node, const rn_node_spec_t* spec,
                                     complaints_t* complaints) {
  if (spec->arg_lengths) {
    return infer_from_lengths(node, spec, spec->arg_lengths, spec->arg_count, complaints);
  }
  int32_t few[FEW_ARGS];
  int32_t* lengths = few;
  const rn_op_def_t* op = node->op;
  if (op->input_count > FEW_ARGS) {
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(node->graph->allocator, (size_t)op->input_count, &lengths));
  }
  deal_out(op, spec, lengths);
  // With fewer tensors than arguments, the last arguments were omitted.
  int32_t given = op->input_count;
  int64_t needed = 0;
  for (int32_t i = 0; i < op->input_count; i++) {
    needed += lengths[i] == RN_ARG_SINGLE ? 1 : lengths[i];
    if (needed > spec->input_count && i < given) given = i;
  }
  rn_status_t status = infer_from_lengths(node, spec, lengths, given, complaints);
  if (lengths != few) RN_FREE_ARRAY(node->graph->allocator, lengths, op->input_count);
  return status;
}

// Takes the caller's attributes, after those that inputs gave.
static rn_status_t take_attrs(rn_node_t* node, const rn_node_spec_t* spec,
                              complaints_t* complaints) {
  int extra = 0;
  for (int i = 0; i < spec->attr_count; i++) {
    const rn_attr_t* given = &spec->attrs[i];
    int index = rn_op_attr_index(node->op, given->name);
    rn_attr_value_t* slot = index >= 0 ? &node->attrs[index] : &node->extras[extra].value;
    if (index < 0) {
      RN_RETURN_IF_ERROR(
          rn_arena_str(&node->graph->arena, given->name, &node->extras[extra++].name));
    } else if (slot->kind != RN_ATTR_UNSET) {
      if (!rn_attr_value_eq(slot, &given->value)) {
        disagree(complaints, node->op->attrs[index].name, slot, &given->value);
      }
      continue;
    }
    RN_RETURN_IF_ERROR(rn_node_copy_value(node, &given->value, slot));
  }
  return RN_OK;
}

static rn_status_t settle_attrs(rn_node_t* node, const rn_node_spec_t* spec) {
  complaints_t complaints = {0};
  rn_strbuf_init(&complaints.text, node->graph->allocator);
  rn_status_t status = infer_from_inputs(node, spec, &complaints);
  if (rn_ok(status)) status = take_attrs(node, spec, &complaints);
  if (rn_ok(status) && complaints.count) status = bad_specification(node, &complaints);
  rn_strbuf_clear(&complaints.text);
  return rn_ok(status) ? rn_node_complete_attrs(node) : status;
}

static rn_status_t take_controls(rn_node_t* node, const rn_node_spec_t* spec) {
  if (spec->control_count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&node->graph->arena, (size_t)spec->control_count, &node->controls.items));
  node->controls.capacity = (size_t)spec->control_count;
  memcpy(node->controls.items, spec->controls, node->controls.capacity * sizeof(rn_node_t*));
  node->controls.count = node->controls.capacity;
  return RN_OK;
}

static int count_extras(const rn_op_def_t* op, const rn_node_spec_t* spec) {
  int extras = 0;
  for (int i = 0; i < spec->attr_count; i++) {
    if (rn_op_attr_index(op, spec->attrs[i].name) < 0) extras++;
  }
  return extras;
}

static rn_status_t fill(rn_node_t* node, const rn_node_spec_t* spec) {
  RN_RETURN_IF_ERROR(check_edges(node, spec));
  RN_RETURN_IF_ERROR(settle_attrs(node, spec));
  RN_RETURN_IF_ERROR(rn_op_check_version(node->op, node->graph->producer));
  RN_RETURN_IF_ERROR(rn_node_make_outputs(node));
  if (spec->input_count) {
    memcpy(node->inputs, spec->inputs, (size_t)spec->input_count * sizeof *spec->inputs);
  }
  RN_RETURN_IF_ERROR(take_controls(node, spec));
  return rn_node_infer_locked(node);
}

rn_status_t rn_graph_add_locked(rn_graph_t* graph, const rn_node_spec_t* spec,
                                rn_node_t** out_node) {
  *out_node = NULL;
  if (rn_map_get(&graph->by_name, spec->name)) {
    return rn_invalid_argument("Duplicate node name in graph: '%.*s'", RN_STR_ARGS(spec->name));
  }
  const rn_op_def_t* op = rn_graph_find_op_locked(graph, spec->op);
  if (!op) {
    return rn_status_annotate(rn_op_not_registered(RN_CODE_INVALID_ARGUMENT, spec->op),
                              " while building NodeDef '%.*s'", RN_STR_ARGS(spec->name));
  }
  if (spec->input_count < 0 || spec->attr_count < 0 || spec->control_count < 0) {
    return rn_invalid_argument("Node '%.*s' has a negative number of inputs or attributes",
                               RN_STR_ARGS(spec->name));
  }
  rn_arena_mark_t mark = rn_arena_mark(&graph->arena);
  rn_node_t* node = NULL;
  rn_status_t status = rn_node_alloc(graph, op, spec->name, spec->device, spec->input_count,
                                     count_extras(op, spec), &node);
  if (rn_ok(status)) status = fill(node, spec);
  if (!rn_ok(status)) {
    rn_node_dispose(node);
    rn_arena_rewind(&graph->arena, mark);
    return status;
  }
  status = rn_node_link_consumers(node);
  if (rn_ok(status)) {
    status = rn_node_register_locked(node);
    if (!rn_ok(status)) rn_node_unlink_consumers(node, node->input_count);
  }
  if (!rn_ok(status)) {
    // Not rewound: lists of older nodes may have moved to memory after the mark.
    rn_node_dispose(node);
    return status;
  }
  *out_node = node;
  return RN_OK;
}

rn_status_t rn_graph_add(rn_graph_t* graph, const rn_node_spec_t* spec, rn_node_t** out_node) {
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = rn_graph_add_locked(graph, spec, out_node);
  rn_mutex_unlock(&graph->mutex);
  return status;
}

rn_status_t rn_graph_add_unique(rn_graph_t* graph, const rn_node_spec_t* spec,
                                rn_node_t** out_node) {
  rn_node_spec_t named = *spec;
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = rn_graph_unique_name_locked(graph, spec->name, &named.name);
  if (rn_ok(status)) status = rn_graph_add_locked(graph, &named, out_node);
  rn_mutex_unlock(&graph->mutex);
  return status;
}
