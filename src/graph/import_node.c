// Imports one node of a GraphDef: attributes, inputs, control inputs and shapes.
#include "graph/import_state.h"

// Attributes that the importer interprets.
#define CLASS_ATTR "_class"
#define CLASS_PREFIX "loc:@"
#define SHAPES_ATTR "_output_shapes"

// The most input types that a message lists.
#define MAX_NAMED 64

// Nodes with more extra attributes than this find repeated names with a map.
#define FEW_EXTRAS 16

// State while one node is built.
typedef struct import_node_source_t {
  rn_import_t* import;
  const rn_import_def_t* def;
  const rn_import_ref_t* refs;
  int32_t data_count;  // of refs; the others are control inputs
  int32_t ref_count;
  rn_str_t shapes;  // serialised value of SHAPES_ATTR
} import_node_source_t;

static bool is_shapes(rn_str_t key) {
  return key.size == sizeof SHAPES_ATTR - 1 && rn_str_is(key, SHAPES_ATTR);
}

// Makes room for all attributes that the op does not define; most nodes have none.
static rn_status_t reserve_extras(const import_node_source_t* source, rn_node_t* node) {
  if (node->extras) return RN_OK;
  size_t extras = 0;
  rn_pb_scan_t scan = rn_pb_scan(source->def->attrs);
  rn_import_attr_t attr;
  while (rn_import_next_attr(&scan, &attr)) extras += rn_op_attr_index(node->op, attr.key) < 0;
  return RN_ARENA_ARRAY(&node->graph->arena, extras, &node->extras);
}

static rn_status_t read_value(import_node_source_t* source, rn_node_t* node,
                              const rn_import_attr_t* attr, rn_attr_value_t* out) {
  rn_attr_value_t value;
  rn_status_t status = rn_import_read_value(source->import, attr->value, &value);
  if (!rn_ok(status)) {
    return rn_status_annotate(status, "\n\t for attr '%.*s'\n\t; NodeDef: {{node %.*s}}",
                              RN_STR_ARGS(attr->key), RN_STR_ARGS(node->name));
  }
  *out = value;
  return RN_OK;
}

static rn_status_t missing_value(const rn_node_t* node, const rn_attr_def_t* def) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, node->graph->allocator);
  rn_strbuf_printf(&text,
                   "AttrValue missing value with expected type '%s'\n\t for attr '%s'"
                   "\n\t; NodeDef: ",
                   rn_attr_kind_name(def->kind, def->is_list), def->name);
  rn_node_mention(&text, node->name);
  rn_strbuf_append(&text, RN_STR("; "));
  rn_op_summary(&text, node->op);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static bool is_location(rn_str_t str) { return rn_str_starts_with(str, RN_STR(CLASS_PREFIX)); }

static rn_str_t located_node(rn_str_t str) {
  return rn_str_n(str.data + sizeof CLASS_PREFIX - 1, str.size - (sizeof CLASS_PREFIX - 1));
}

// Colocation constraints name nodes of the GraphDef; replaces those names by the nodes' final
// names.
static rn_status_t rename_locations(import_node_source_t* source, rn_node_t* node,
                                    rn_attr_value_t* value) {
  if (value->kind != RN_ATTR_STRING || !value->is_list) return RN_OK;
  for (int32_t i = 0; i < value->count; i++) {
    rn_str_t* str = (rn_str_t*)&value->list_s[i];
    if (!is_location(*str)) continue;
    int32_t number = rn_import_find(source->import, located_node(*str));
    if (number < 0) {
      if (!source->import->options->validate_colocation) continue;
      return rn_invalid_argument("Node '%.*s' expects to be colocated with unknown node '%.*s'",
                                 RN_STR_ARGS(source->def->name), RN_STR_ARGS(located_node(*str)));
    }
    if (!source->import->prefix.size && !source->import->final_names) continue;
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_import_final_name(source->import, number, &name));
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&node->graph->arena, str, CLASS_PREFIX "%.*s", RN_STR_ARGS(name)));
  }
  return RN_OK;
}

// The place of extra attribute |key|: an earlier one of that name, or a new one.
static rn_status_t place_extra(rn_node_t* node, rn_map_t* many, rn_str_t key, rn_attr_t** out) {
  for (int32_t i = 0; node->extra_count <= FEW_EXTRAS && i < node->extra_count; i++) {
    if (!rn_str_eq(node->extras[i].name, key)) continue;
    *out = &node->extras[i];
    return RN_OK;
  }
  *out = node->extra_count > FEW_EXTRAS ? rn_map_get(many, key) : NULL;
  if (*out) return RN_OK;
  rn_attr_t* extra = &node->extras[node->extra_count];
  RN_RETURN_IF_ERROR(rn_arena_str(&node->graph->arena, key, &extra->name));
  extra->value = (rn_attr_value_t){.kind = RN_ATTR_INT};
  node->extra_count++;
  // When the count first exceeds the limit, all of them are put into the map.
  int32_t first = node->extra_count == FEW_EXTRAS + 1 ? 0 : node->extra_count - 1;
  for (int32_t i = first; node->extra_count > FEW_EXTRAS && i < node->extra_count; i++) {
    RN_RETURN_IF_ERROR(rn_map_put(many, node->extras[i].name, &node->extras[i]));
  }
  *out = extra;
  return RN_OK;
}

// TensorFlow's optimizer leaves an annotation of symbolic shapes, with dimensions below -1, which
// are not valid shapes otherwise.
static bool is_note(import_node_source_t* source, const rn_import_attr_t* attr) {
  rn_attr_value_t value;
  if (!rn_str_is(attr->key, "_input_shapes")) return false;
  rn_status_t status = rn_import_read_value(source->import, attr->value, &value);
  bool is_unreadable = rn_status_code(status) == RN_CODE_INVALID_ARGUMENT;
  if (rn_ok(status)) rn_attr_value_clear(&value);
  rn_status_free(status);
  return is_unreadable;
}

static rn_status_t read_extra(import_node_source_t* source, rn_node_t* node, rn_map_t* many,
                              const rn_import_attr_t* attr) {
  rn_attr_t* extra = NULL;
  if (!attr->value.size || is_note(source, attr))
    return RN_OK;  // an attribute without a value is ignored
  RN_RETURN_IF_ERROR(reserve_extras(source, node));
  RN_RETURN_IF_ERROR(place_extra(node, many, attr->key, &extra));
  rn_attr_value_clear(&extra->value);
  RN_RETURN_IF_ERROR(read_value(source, node, attr, &extra->value));
  return rn_str_is(attr->key, CLASS_ATTR) ? rename_locations(source, node, &extra->value) : RN_OK;
}

static rn_status_t read_all_attrs(import_node_source_t* source, rn_node_t* node, rn_map_t* many) {
  rn_pb_scan_t scan = rn_pb_scan(source->def->attrs);
  rn_import_attr_t attr;
  while (rn_import_next_attr(&scan, &attr)) {
    int index = rn_op_attr_index(node->op, attr.key);
    if (index < 0 && is_shapes(attr.key)) {
      source->shapes = attr.value;
    } else if (index < 0) {
      RN_RETURN_IF_ERROR(read_extra(source, node, many, &attr));
    } else {
      rn_attr_value_t* slot = &node->attrs[index];
      if (!attr.value.size) return missing_value(node, &node->op->attrs[index]);
      if (slot->kind != RN_ATTR_UNSET) rn_attr_value_clear(slot);  // the later one counts
      RN_RETURN_IF_ERROR(read_value(source, node, &attr, slot));
    }
  }
  return scan.is_bad ? rn_invalid_argument("Invalid GraphDef") : RN_OK;
}

static rn_status_t read_attrs(import_node_source_t* source, rn_node_t* node) {
  rn_map_t many;
  rn_map_init(&many, node->graph->allocator);
  rn_status_t status = read_all_attrs(source, node, &many);
  rn_map_clear(&many);
  return rn_ok(status) ? rn_node_complete_attrs(node) : status;
}

static rn_status_t wrong_input_count(const import_node_source_t* source, const rn_node_t* node) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, node->graph->allocator);
  rn_strbuf_append(&text, RN_STR("NodeDef expected inputs '"));
  int named = 0;
  for (int i = 0; i < node->op->input_count && named < MAX_NAMED; i++) {
    const rn_arg_def_t* arg = &node->op->inputs[i];
    int64_t length = rn_node_arg_length(node, arg);
    for (int64_t j = 0; j < length && named < MAX_NAMED; j++) {
      rn_strbuf_printf(&text, "%s%s", named++ ? ", " : "",
                       rn_dtype_name(rn_node_arg_type(node, arg, j)));
    }
  }
  if (named == MAX_NAMED) rn_strbuf_append(&text, RN_STR(", ..."));
  rn_strbuf_printf(&text, "' do not match %d inputs specified; ", (int)source->data_count);
  rn_op_summary(&text, node->op);
  rn_strbuf_append(&text, RN_STR("; NodeDef: "));
  rn_node_mention(&text, node->name);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t check_input_count(const import_node_source_t* source, const rn_node_t* node) {
  int64_t expected = 0;
  for (int i = 0; i < node->op->input_count; i++) {
    int64_t length = rn_node_arg_length(node, &node->op->inputs[i]);
    if (length < 0 || !rn_add_i64_ok(expected, length, &expected)) {
      return wrong_input_count(source, node);
    }
  }
  return expected == source->data_count ? RN_OK : wrong_input_count(source, node);
}

// A gradient that was added after the first step needs outputs that the node did not have then.
static bool has_branches(const rn_node_t* node) {
  uint8_t role = node->op->role;
  return role == RN_ROLE_IF || role == RN_ROLE_CASE || role == RN_ROLE_WHILE;
}

static rn_status_t connect(const import_node_source_t* source, rn_node_t* node, int32_t input,
                           rn_dtype_t expected) {
  static const char hint[] = " Try using tf.compat.v1.experimental.output_all_intermediates(True).";
  rn_edge_t edge = rn_import_edge(source->import, source->refs[input]);
  if (!edge.node) return RN_OK;  // a loop's back edge, linked when all nodes exist
  if (edge.index < 0 || edge.index >= edge.node->output_count) {
    int32_t number = source->refs[input].source;
    rn_str_t name = number < 0 ? edge.node->name : source->import->defs[number].name;
    return rn_invalid_argument(
        "Node '%.*s': Connecting to invalid output %d of source node %.*s which has %d outputs.%s",
        RN_STR_ARGS(source->def->name), edge.index, RN_STR_ARGS(name), (int)edge.node->output_count,
        has_branches(edge.node) ? hint : "");
  }
  rn_dtype_t type = edge.node->outputs[edge.index].dtype;
  if (!rn_dtype_fits(type, expected)) {
    return rn_invalid_argument(
        "Input %d of node %.*s was passed %s from %.*s:%d incompatible with expected %s.",
        (int)input, RN_STR_ARGS(node->name), rn_dtype_name(type), RN_STR_ARGS(edge.node->name),
        edge.index, rn_dtype_name(expected));
  }
  node->inputs[input] = edge;
  return RN_OK;
}

static rn_status_t connect_inputs(const import_node_source_t* source, rn_node_t* node) {
  int32_t input = 0;
  for (int i = 0; i < node->op->input_count; i++) {
    const rn_arg_def_t* arg = &node->op->inputs[i];
    int64_t length = rn_node_arg_length(node, arg);
    for (int64_t j = 0; j < length; j++, input++) {
      RN_RETURN_IF_ERROR(connect(source, node, input, rn_node_arg_type(node, arg, j)));
    }
  }
  return RN_OK;
}

static rn_status_t connect_controls(const import_node_source_t* source, rn_node_t* node) {
  const rn_import_options_t* options = source->import->options;
  // A node with an imported input or control input runs after the given control nodes because that
  // one does.
  bool follows = false;
  for (int32_t i = 0; i < source->ref_count; i++) follows |= source->refs[i].source >= 0;
  int32_t given = follows ? 0 : options->control_count;
  size_t count = (size_t)(source->ref_count - source->data_count) + (size_t)given;
  if (count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->graph->arena, count, &node->controls.items));
  node->controls.capacity = count;
  for (int32_t i = source->data_count; i < source->ref_count; i++) {
    node->controls.items[node->controls.count++] =
        rn_import_edge(source->import, source->refs[i]).node;
  }
  for (int32_t i = 0; i < given; i++) {
    node->controls.items[node->controls.count++] = options->controls[i];
  }
  return RN_OK;
}

static rn_status_t merge_shape(rn_node_t* node, int i, rn_shape_t shape) {
  rn_shape_ctx_t ctx = {.op = node->op, .arena = &node->graph->arena};
  rn_shape_t merged;
  rn_status_t status = rn_shape_merge(&ctx, node->outputs[i].shape, shape, &merged);
  if (rn_ok(status)) {
    node->outputs[i].shape = merged;
    return RN_OK;
  }
  if (node->graph->keeps_misfits) {
    rn_status_free(status);
    return RN_OK;
  }
  rn_status_t named = rn_status_make(
      rn_status_code(status),
      "Node '%.*s' has an _output_shapes attribute inconsistent with the GraphDef for output #%d: "
      "%s",
      RN_STR_ARGS(node->name), i, rn_status_message(status));
  rn_status_free(status);
  return named;
}

// Merges the output shapes that the GraphDef states. If the attribute does not hold shapes, it is
// kept as an ordinary attribute.
static rn_status_t take_shapes(import_node_source_t* source, rn_node_t* node) {
  if (!source->shapes.size) return RN_OK;
  rn_import_attr_t attr = {RN_STR(SHAPES_ATTR), source->shapes};
  rn_attr_value_t value;
  RN_RETURN_IF_ERROR(read_value(source, node, &attr, &value));
  if (!value.is_list) {
    RN_RETURN_IF_ERROR(reserve_extras(source, node));
    rn_attr_t* extra = &node->extras[node->extra_count++];
    *extra = (rn_attr_t){.value = value};
    return rn_arena_str(&node->graph->arena, attr.key, &extra->name);
  }
  bool fits = value.kind == RN_ATTR_SHAPE && value.count == node->output_count;
  rn_status_t status = RN_OK;
  for (int i = 0; fits && rn_ok(status) && i < node->output_count; i++) {
    status = merge_shape(node, i, value.list_shape[i]);
  }
  rn_attr_value_clear(&value);
  return status;
}

static rn_status_t take_full_type(const import_node_source_t* source, rn_node_t* node) {
  if (source->def->full_type.size == 0) return RN_OK;
  return rn_arena_str(&node->graph->arena, source->def->full_type, &node->full_type);
}

static rn_status_t fill(import_node_source_t* source, rn_node_t* node) {
  RN_RETURN_IF_ERROR(read_attrs(source, node));
  RN_RETURN_IF_ERROR(take_full_type(source, node));
  RN_RETURN_IF_ERROR(check_input_count(source, node));
  RN_RETURN_IF_ERROR(rn_op_check_version(node->op, source->import->producer));
  RN_RETURN_IF_ERROR(rn_node_make_outputs(node));
  RN_RETURN_IF_ERROR(connect_inputs(source, node));
  RN_RETURN_IF_ERROR(connect_controls(source, node));
  RN_RETURN_IF_ERROR(rn_node_infer_locked(node));
  return take_shapes(source, node);
}

static import_node_source_t make_source(rn_import_t* import, int32_t number) {
  import_node_source_t source = {
      .import = import,
      .def = rn_import_def(import, number),
      .refs = import->refs + import->first_ref[number],
      .ref_count = (int32_t)(import->first_ref[number + 1] - import->first_ref[number]),
  };
  while (source.data_count < source.ref_count && source.refs[source.data_count].port >= 0) {
    source.data_count++;
  }
  return source;
}

rn_status_t rn_import_build_node(rn_import_t* import, int32_t number) {
  import_node_source_t source = make_source(import, number);
  const rn_op_def_t* op = rn_graph_find_op_locked(import->graph, source.def->op);
  if (!op) return rn_op_not_registered(RN_CODE_NOT_FOUND, source.def->op);
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_import_final_name(import, number, &name));
  rn_str_t device = source.def->device.size ? source.def->device : import->options->default_device;
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_node_alloc(import->graph, op, name, device, source.data_count, 0, &node));
  import->nodes[number] = node;  // from here on the import owns it
  return fill(&source, node);
}

rn_status_t rn_import_link_back_edges(rn_import_t* import, int32_t number) {
  rn_node_t* node = import->nodes[number];
  if (node->op->role != RN_ROLE_MERGE) return RN_OK;
  import_node_source_t source = make_source(import, number);
  for (int32_t i = 0; i < source.data_count; i++) {
    if (node->inputs[i].node) continue;
    rn_edge_t edge = rn_import_edge(import, source.refs[i]);
    if (edge.index >= edge.node->output_count) {
      return rn_invalid_argument("Output %d of node %.*s does not exist. Node only has %d outputs.",
                                 edge.index, RN_STR_ARGS(edge.node->name),
                                 (int)edge.node->output_count);
    }
  }
  return connect_inputs(&source, node);
}
