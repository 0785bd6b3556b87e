// Builds function bodies: writes a FunctionDef with all attributes given as a GraphDef of plain
// nodes and imports it. A FunctionDef names edges by argument ("node:output:2"), a GraphDef by
// number ("node:5"); the ops' definitions and the attributes determine the numbers.
#include <inttypes.h>

#include "framework/attr_proto.h"
#include "function/function.h"
#include "graph/build.h"
#include "graph/import.h"
#include "proto/graph.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

// What the name in an input refers to: an argument of the function or a node.
typedef struct body_source_t {
  const rn_pb_NodeDef_t* node;      // NULL for an argument
  const rn_op_def_t* op;            // of |node|
  const rn_pb_OpDef_ArgDef_t* arg;  // NULL for a node
  rn_str_t name;
  int32_t count;  // of an argument: its number of tensors
  bool is_list;
} body_source_t;

// Consecutive tensors: outputs of one node, or an argument's nodes.
typedef struct body_range_t {
  const body_source_t* source;
  int32_t first, count;
} body_range_t;

typedef struct builder_t {
  rn_graph_t* maker;
  rn_function_t* function;
  const rn_func_attr_t* call;
  rn_arena_t scratch;
  const rn_pb_FunctionDef_t* def;
  rn_map_t attrs;    // name -> rn_pb_AttrValue_t*
  rn_map_t sources;  // name -> body_source_t*
  rn_strbuf_t out;   // the GraphDef
  int32_t arg_count;
  RN_VEC(rn_str_t) arg_names;
  RN_VEC(rn_tensor_id_t) results;
  RN_VEC(rn_str_t) controls;
} builder_t;

static const rn_pb_AttrValue_t* find_attr(const rn_pb_NodeDef_t* node, rn_str_t name) {
  for (uint32_t i = 0; i < node->attr.count; i++) {
    if (rn_str_eq(node->attr.items[i].key, name)) return node->attr.items[i].value;
  }
  return NULL;
}

// Binds attributes: the values that the call gives, else the defaults of the signature.
static rn_status_t bind_attrs(builder_t* builder) {
  const rn_pb_OpDef_t* signature = builder->def->signature;
  for (uint32_t i = 0; i < signature->attr.count; i++) {
    const rn_pb_OpDef_AttrDef_t* attr = &signature->attr.items[i];
    if (!attr->default_value) continue;
    RN_RETURN_IF_ERROR(rn_map_put(&builder->attrs, attr->name, attr->default_value));
  }
  for (int32_t i = 0; i < builder->call->attr_count; i++) {
    const rn_attr_t* attr = &builder->call->attrs[i];
    rn_pb_AttrValue_t* value = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&builder->scratch, &value));
    RN_RETURN_IF_ERROR(rn_attr_value_to_proto(&attr->value, &builder->scratch, value));
    RN_RETURN_IF_ERROR(rn_map_put(&builder->attrs, attr->name, value));
  }
  for (uint32_t i = 0; i < signature->attr.count; i++) {
    rn_str_t name = signature->attr.items[i].name;
    if (rn_map_get(&builder->attrs, name)) continue;
    return rn_not_found("Attr %.*s is not found from attrs given to function '%.*s'",
                        RN_STR_ARGS(name), RN_STR_ARGS(builder->function->name));
  }
  return RN_OK;
}

static rn_status_t bind_value(builder_t* builder, const rn_pb_AttrValue_t* value,
                              const rn_pb_AttrValue_t** out);

// Binds the attributes of a function that is itself an attribute.
static rn_status_t bind_func(builder_t* builder, const rn_pb_NameAttrList_t* func,
                             rn_pb_NameAttrList_t* out) {
  *out = *func;
  out->attr.items = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&builder->scratch, func->attr.count, &out->attr.items));
  for (uint32_t i = 0; i < func->attr.count; i++) {
    const rn_pb_AttrValue_t* bound = NULL;
    out->attr.items[i] = func->attr.items[i];
    if (!func->attr.items[i].value) continue;
    RN_RETURN_IF_ERROR(bind_value(builder, func->attr.items[i].value, &bound));
    out->attr.items[i].value = (rn_pb_AttrValue_t*)(uintptr_t)bound;
  }
  return RN_OK;
}

static rn_status_t bind_func_list(builder_t* builder, rn_pb_AttrValue_t* value) {
  rn_pb_AttrValue_ListValue_t* list = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&builder->scratch, &list));
  *list = *value->list;
  uint32_t count = value->list->func.count;
  list->func.items = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&builder->scratch, count, &list->func.items));
  for (uint32_t i = 0; i < count; i++) {
    RN_RETURN_IF_ERROR(bind_func(builder, &value->list->func.items[i], &list->func.items[i]));
  }
  value->list = list;
  return RN_OK;
}

// |value|, or the value of the attribute that it is a placeholder for.
static rn_status_t bind_value(builder_t* builder, const rn_pb_AttrValue_t* value,
                              const rn_pb_AttrValue_t** out) {
  *out = value;
  if (value->value_case == rn_pb_AttrValue_placeholder_field) {
    *out = rn_map_get(&builder->attrs, value->placeholder);
    if (*out) return RN_OK;
    return rn_invalid_argument("Failed to bind all placeholders in function '%.*s': no attr '%.*s'",
                               RN_STR_ARGS(builder->function->name),
                               RN_STR_ARGS(value->placeholder));
  }
  bool is_func = value->value_case == rn_pb_AttrValue_func_field && value->func;
  bool is_list =
      value->value_case == rn_pb_AttrValue_list_field && value->list && value->list->func.count;
  if (!is_func && !is_list) return RN_OK;
  rn_pb_AttrValue_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&builder->scratch, &copy));
  *copy = *value;
  *out = copy;
  if (is_list) return bind_func_list(builder, copy);
  copy->func = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&builder->scratch, &copy->func));
  return bind_func(builder, value->func, copy->func);
}

static rn_status_t bad_attr(const builder_t* builder, const char* what, rn_str_t name) {
  return rn_invalid_argument("Function '%.*s': %s '%.*s' has no value that fits",
                             RN_STR_ARGS(builder->function->name), what, RN_STR_ARGS(name));
}

// The number of tensors of an argument of the signature, and their types.
static rn_status_t measure_arg(const builder_t* builder, const rn_pb_OpDef_ArgDef_t* arg,
                               int32_t* out_count, const rn_pb_AttrValue_ListValue_t** out_types,
                               rn_dtype_t* out_type, bool* out_is_list) {
  *out_count = 1;
  *out_types = NULL;
  *out_type = (rn_dtype_t)arg->type;
  *out_is_list = arg->type_list_attr.size || arg->number_attr.size;
  if (arg->type_list_attr.size) {
    const rn_pb_AttrValue_t* types = rn_map_get(&builder->attrs, arg->type_list_attr);
    if (!types || types->value_case != rn_pb_AttrValue_list_field || !types->list)
      return bad_attr(builder, "attr", arg->type_list_attr);
    *out_types = types->list;
    if (types->list->type.count > RN_MAX_OUTPUTS)
      return bad_attr(builder, "attr", arg->type_list_attr);
    *out_count = (int32_t)types->list->type.count;
    return RN_OK;
  }
  if (arg->type_attr.size) {
    const rn_pb_AttrValue_t* type = rn_map_get(&builder->attrs, arg->type_attr);
    if (!type || type->value_case != rn_pb_AttrValue_type_field)
      return bad_attr(builder, "attr", arg->type_attr);
    *out_type = (rn_dtype_t)type->type;
  }
  if (!arg->number_attr.size) return RN_OK;
  const rn_pb_AttrValue_t* number = rn_map_get(&builder->attrs, arg->number_attr);
  if (!number || number->value_case != rn_pb_AttrValue_i_field || number->i < 0 ||
      number->i > RN_MAX_OUTPUTS)
    return bad_attr(builder, "attr", arg->number_attr);
  *out_count = (int32_t)number->i;
  return RN_OK;
}

static rn_status_t put_attr(builder_t* builder, rn_str_t key, const rn_pb_AttrValue_t* value) {
  rn_strbuf_t* out = &builder->out;
  size_t entry = rn_pb_begin(out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(out, rn_pb_NodeDef_AttrEntry_key_field, key);
  size_t content = rn_pb_begin(out, rn_pb_NodeDef_AttrEntry_value_field);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(AttrValue, value, &sorted, out));
  rn_pb_end(out, content);
  rn_pb_end(out, entry);
  return RN_OK;
}

static rn_status_t put_arg_attrs(builder_t* builder, uint32_t arg) {
  const rn_pb_FunctionDef_t* def = builder->def;
  for (uint32_t i = 0; i < def->resource_arg_unique_id.count; i++) {
    if (def->resource_arg_unique_id.items[i].key != arg) continue;
    rn_pb_AttrValue_t id = {.value_case = rn_pb_AttrValue_i_field,
                            .i = def->resource_arg_unique_id.items[i].value};
    RN_RETURN_IF_ERROR(put_attr(builder, RN_STR("_resource_arg_unique_id"), &id));
  }
  for (uint32_t i = 0; i < def->arg_attr.count; i++) {
    if (def->arg_attr.items[i].key != arg || !def->arg_attr.items[i].value) continue;
    const rn_pb_FunctionDef_ArgAttrs_t* attrs = def->arg_attr.items[i].value;
    for (uint32_t a = 0; a < attrs->attr.count; a++) {
      if (!attrs->attr.items[a].value) continue;
      RN_RETURN_IF_ERROR(put_attr(builder, attrs->attr.items[a].key, attrs->attr.items[a].value));
    }
  }
  return RN_OK;
}

static rn_status_t put_arg(builder_t* builder, rn_str_t name, rn_dtype_t type, uint32_t arg) {
  RN_RETURN_IF_ERROR(rn_vec_push(&builder->arg_names, builder->scratch.allocator, name));
  size_t node = rn_pb_begin(&builder->out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(&builder->out, rn_pb_NodeDef_name_field, name);
  rn_pb_put_str(&builder->out, rn_pb_NodeDef_op_field, RN_STR("_Arg"));
  rn_pb_AttrValue_t t = {.value_case = rn_pb_AttrValue_type_field, .type = type};
  rn_pb_AttrValue_t index = {.value_case = rn_pb_AttrValue_i_field, .i = builder->arg_count++};
  RN_RETURN_IF_ERROR(put_attr(builder, RN_STR("T"), &t));
  RN_RETURN_IF_ERROR(put_attr(builder, RN_STR("index"), &index));
  RN_RETURN_IF_ERROR(put_arg_attrs(builder, arg));
  rn_pb_end(&builder->out, node);
  return RN_OK;
}

static rn_status_t item_name(builder_t* builder, const body_source_t* source, int32_t i,
                             rn_str_t* out) {
  *out = source->name;
  if (!source->is_list) return RN_OK;
  return rn_arena_printf(&builder->scratch, out, "%.*s_%" PRId32, RN_STR_ARGS(source->name), i);
}

static rn_status_t new_source(builder_t* builder, body_source_t source) {
  if (rn_map_get(&builder->sources, source.name)) {
    return rn_invalid_argument("Duplicated name '%.*s' in function '%.*s'",
                               RN_STR_ARGS(source.name), RN_STR_ARGS(builder->function->name));
  }
  body_source_t* kept = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&builder->scratch, &kept));
  *kept = source;
  return rn_map_put(&builder->sources, source.name, kept);
}

static rn_status_t put_args(builder_t* builder) {
  const rn_pb_OpDef_t* signature = builder->def->signature;
  for (uint32_t a = 0; a < signature->input_arg.count; a++) {
    const rn_pb_OpDef_ArgDef_t* arg = &signature->input_arg.items[a];
    body_source_t source = {.arg = arg, .name = arg->name};
    const rn_pb_AttrValue_ListValue_t* types;
    rn_dtype_t type;
    RN_RETURN_IF_ERROR(measure_arg(builder, arg, &source.count, &types, &type, &source.is_list));
    for (int32_t i = 0; i < source.count; i++) {
      rn_str_t name;
      RN_RETURN_IF_ERROR(item_name(builder, &source, i, &name));
      RN_RETURN_IF_ERROR(
          put_arg(builder, name, types ? (rn_dtype_t)types->type.items[i] : type, a));
    }
    RN_RETURN_IF_ERROR(new_source(builder, source));
  }
  return RN_OK;
}

static rn_status_t name_nodes(builder_t* builder) {
  for (uint32_t i = 0; i < builder->def->node_def.count; i++) {
    const rn_pb_NodeDef_t* node = &builder->def->node_def.items[i];
    const rn_op_def_t* op = rn_op_find(node->op);
    const rn_function_t* function = op ? NULL : rn_library_find(builder->maker->library, node->op);
    if (function) op = function->op;
    if (!op) return rn_op_not_registered(RN_CODE_NOT_FOUND, node->op);
    RN_RETURN_IF_ERROR(
        new_source(builder, (body_source_t){.node = node, .op = op, .name = node->name}));
  }
  return RN_OK;
}

// The number of outputs of |arg| of |source|.
static rn_status_t output_length(builder_t* builder, const body_source_t* source,
                                 const rn_arg_def_t* arg, int32_t* out) {
  int16_t number = arg->type_list_attr >= 0 ? arg->type_list_attr : arg->number_attr;
  *out = 1;
  if (number < 0) return RN_OK;
  const rn_attr_def_t* attr = &source->op->attrs[number];
  const rn_pb_AttrValue_t* given = find_attr(source->node, rn_str(attr->name));
  int64_t length = -1;
  if (given) {
    RN_RETURN_IF_ERROR(bind_value(builder, given, &given));
    if (arg->type_list_attr >= 0 && given->value_case == rn_pb_AttrValue_list_field && given->list)
      length = (int64_t)given->list->type.count;
    if (arg->type_list_attr < 0 && given->value_case == rn_pb_AttrValue_i_field) length = given->i;
  } else if (attr->has_default) {
    length = arg->type_list_attr >= 0 ? attr->default_value.count : attr->default_value.i;
  }
  if (length < 0 || length > RN_MAX_OUTPUTS)
    return rn_invalid_argument("Node '%.*s' in function '%.*s': attr '%s' has no value that fits",
                               RN_STR_ARGS(source->name), RN_STR_ARGS(builder->function->name),
                               attr->name);
  *out = (int32_t)length;
  return RN_OK;
}

// Finds output argument |name| of a node: its first output and its length.
static rn_status_t find_output(builder_t* builder, body_range_t* range, rn_str_t name,
                               bool* out_found) {
  const rn_op_def_t* op = range->source->op;
  *out_found = false;
  range->first = 0;
  for (int i = 0; i < op->output_count; i++) {
    RN_RETURN_IF_ERROR(output_length(builder, range->source, &op->outputs[i], &range->count));
    *out_found = rn_str_is(name, op->outputs[i].name);
    if (*out_found) return RN_OK;
    range->first += range->count;
  }
  return RN_OK;
}

// "arg", "arg:2", "node:output" or "node:output:2".
static rn_status_t resolve(builder_t* builder, rn_str_t text, body_range_t* out) {
  rn_str_t rest = text;
  rn_str_t name = rn_str_split(&rest, ':');
  out->source = rn_map_get(&builder->sources, name);
  bool found = out->source != NULL;
  if (found && out->source->node) {
    rn_str_t output = rn_str_split(&rest, ':');
    RN_RETURN_IF_ERROR(find_output(builder, out, output, &found));
  } else if (found) {
    out->first = 0;
    out->count = out->source->count;
  }
  int64_t index = 0;
  if (found && rest.size) {
    found = rn_str_to_i64(rest, &index) && index >= 0 && index < out->count;
    out->first += (int32_t)index;
    out->count = 1;
  }
  if (found) return RN_OK;
  return rn_invalid_argument("input %.*s is not found in function '%.*s'", RN_STR_ARGS(text),
                             RN_STR_ARGS(builder->function->name));
}

// The name of tensor |i| of |range| in the GraphDef.
static rn_status_t tensor_id(builder_t* builder, const body_range_t* range, int32_t i,
                             rn_tensor_id_t* out) {
  out->index = range->source->node ? range->first + i : 0;
  out->name = range->source->name;
  return range->source->node ? RN_OK
                             : item_name(builder, range->source, range->first + i, &out->name);
}

static rn_status_t put_inputs(builder_t* builder, const rn_pb_NodeDef_t* node) {
  for (uint32_t i = 0; i < node->input.count; i++) {
    rn_str_t input = node->input.items[i];
    if (input.size && input.data[0] == '^') {
      rn_str_t name = rn_str_n(input.data + 1, input.size - 1);
      const body_source_t* source = rn_map_get(&builder->sources, name);
      // A control input from a list argument has no effect.
      if (source && !source->node && source->is_list) continue;
      rn_pb_put_str(&builder->out, rn_pb_NodeDef_input_field, input);
      continue;
    }
    body_range_t range;
    RN_RETURN_IF_ERROR(resolve(builder, input, &range));
    for (int32_t k = 0; k < range.count; k++) {
      rn_tensor_id_t id;
      rn_str_t text;
      RN_RETURN_IF_ERROR(tensor_id(builder, &range, k, &id));
      RN_RETURN_IF_ERROR(rn_arena_printf(&builder->scratch, &text, "%.*s:%" PRId32,
                                         RN_STR_ARGS(id.name), id.index));
      rn_pb_put_str(&builder->out, rn_pb_NodeDef_input_field, text);
    }
  }
  return RN_OK;
}

static rn_status_t put_node(builder_t* builder, const rn_pb_NodeDef_t* node) {
  size_t entry = rn_pb_begin(&builder->out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(&builder->out, rn_pb_NodeDef_name_field, node->name);
  rn_pb_put_str(&builder->out, rn_pb_NodeDef_op_field, node->op);
  RN_RETURN_IF_ERROR(put_inputs(builder, node));
  if (node->device.size) rn_pb_put_str(&builder->out, rn_pb_NodeDef_device_field, node->device);
  for (uint32_t i = 0; i < node->attr.count; i++) {
    const rn_pb_AttrValue_t* value = node->attr.items[i].value;
    if (!value) continue;
    RN_RETURN_IF_ERROR(bind_value(builder, value, &value));
    RN_RETURN_IF_ERROR(put_attr(builder, node->attr.items[i].key, value));
  }
  rn_pb_end(&builder->out, entry);
  return rn_strbuf_status(&builder->out);
}

static rn_status_t find_results(builder_t* builder) {
  const rn_pb_FunctionDef_t* def = builder->def;
  for (uint32_t r = 0; r < def->signature->output_arg.count; r++) {
    rn_str_t name = def->signature->output_arg.items[r].name;
    rn_str_t value = {0};
    for (uint32_t i = 0; i < def->ret.count; i++)
      if (rn_str_eq(def->ret.items[i].key, name)) value = def->ret.items[i].value;
    if (!value.size)
      return rn_invalid_argument("Return %.*s missing in function '%.*s'", RN_STR_ARGS(name),
                                 RN_STR_ARGS(builder->function->name));
    body_range_t range;
    RN_RETURN_IF_ERROR(resolve(builder, value, &range));
    for (int32_t i = 0; i < range.count; i++) {
      rn_tensor_id_t id;
      RN_RETURN_IF_ERROR(tensor_id(builder, &range, i, &id));
      RN_RETURN_IF_ERROR(rn_vec_push(&builder->results, builder->scratch.allocator, id));
    }
  }
  for (uint32_t i = 0; i < def->control_ret.count; i++) {
    rn_str_t name = def->control_ret.items[i].value;
    const body_source_t* source = rn_map_get(&builder->sources, name);
    if (source && !source->node) continue;  // arguments are available before anything runs
    if (!source)
      return rn_invalid_argument("Control return %.*s of function '%.*s' is no node of it",
                                 RN_STR_ARGS(name), RN_STR_ARGS(builder->function->name));
    RN_RETURN_IF_ERROR(rn_vec_push(&builder->controls, builder->scratch.allocator, name));
  }
  return RN_OK;
}

static rn_status_t write_graph(builder_t* builder) {
  rn_pb_FunctionDef_t* def = NULL;
  RN_RETURN_IF_ERROR(
      RN_PB_DECODE(FunctionDef, builder->function->bytes, NULL, &builder->scratch, &def));
  builder->def = def;
  static rn_pb_OpDef_t none;
  if (!def->signature) def->signature = &none;
  RN_RETURN_IF_ERROR(bind_attrs(builder));
  RN_RETURN_IF_ERROR(put_args(builder));
  RN_RETURN_IF_ERROR(name_nodes(builder));
  for (uint32_t i = 0; i < def->node_def.count; i++)
    RN_RETURN_IF_ERROR(put_node(builder, &def->node_def.items[i]));
  size_t versions = rn_pb_begin(&builder->out, rn_pb_GraphDef_versions_field);
  if (builder->maker->producer)
    rn_pb_put_uint(&builder->out, rn_pb_VersionDef_producer_field,
                   (uint64_t)(int64_t)builder->maker->producer);
  rn_pb_end(&builder->out, versions);
  RN_RETURN_IF_ERROR(find_results(builder));
  return rn_strbuf_status(&builder->out);
}

// Copies the results and control results that the import found into the body.
static rn_status_t keep_ends(const builder_t* builder, const rn_import_results_t* found,
                             rn_function_body_t* body) {
  size_t results = builder->results.count, controls = builder->controls.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&body->arena, (size_t)builder->arg_count, &body->args));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&body->arena, results, &body->results));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&body->arena, controls, &body->controls));
  body->arg_count = builder->arg_count;
  for (int32_t i = 0; i < builder->arg_count; i++) body->args[i] = found->return_nodes[i];
  body->result_count = (int32_t)results;
  for (size_t i = 0; i < results; i++) body->results[i] = found->return_outputs[i];
  body->control_count = (int32_t)controls;
  for (size_t i = 0; i < controls; i++)
    body->controls[i] = found->return_nodes[(size_t)builder->arg_count + i];
  return RN_OK;
}

static rn_status_t build_graph(builder_t* builder, rn_function_body_t* body) {
  RN_RETURN_IF_ERROR(write_graph(builder));
  for (size_t i = 0; i < builder->controls.count; i++)
    RN_RETURN_IF_ERROR(
        rn_vec_push(&builder->arg_names, builder->scratch.allocator, builder->controls.items[i]));
  RN_RETURN_IF_ERROR(
      rn_graph_create_body(body->arena.allocator, builder->maker->library, &body->graph));
  body->graph->allows_shapeless = true;
  body->graph->keeps_misfits = true;
  rn_import_options_t options = {.allows_any_names = true,
                                 .return_outputs = builder->results.items,
                                 .return_output_count = (int32_t)builder->results.count,
                                 .return_nodes = builder->arg_names.items,
                                 .return_node_count = (int32_t)builder->arg_names.count};
  rn_import_results_t found = {0};
  RN_RETURN_IF_ERROR(rn_graph_import(body->graph, rn_strbuf_view(&builder->out), &options, &found));
  rn_status_t status = keep_ends(builder, &found, body);
  rn_import_results_clear(&found);
  return status;
}

static rn_status_t build(rn_graph_t* graph, rn_function_t* function, const rn_func_attr_t* call,
                         rn_function_body_t* body) {
  rn_allocator_t allocator = graph->allocator;
  builder_t builder = {.maker = graph, .function = function, .call = call};
  rn_arena_init(&builder.scratch, allocator);
  rn_map_init(&builder.attrs, allocator);
  rn_map_init(&builder.sources, allocator);
  rn_strbuf_init(&builder.out, allocator);
  rn_status_t status = build_graph(&builder, body);
  rn_vec_free(&builder.arg_names, allocator);
  rn_vec_free(&builder.results, allocator);
  rn_vec_free(&builder.controls, allocator);
  rn_strbuf_clear(&builder.out);
  rn_map_clear(&builder.attrs);
  rn_map_clear(&builder.sources);
  rn_arena_clear(&builder.scratch);
  return status;
}

static rn_status_t instantiate(rn_graph_t* graph, rn_function_t* function,
                               const rn_func_attr_t* call, rn_function_body_t** out) {
  rn_function_body_t* body = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(graph->allocator, &body));
  rn_arena_init(&body->arena, graph->allocator);
  rn_function_retain(function);
  body->function = function;
  rn_status_t status = build(graph, function, call, body);
  if (!rn_ok(status)) {
    rn_function_body_destroy(body);
    return rn_status_annotate(status, "\n\t when instantiating %.*s", RN_STR_ARGS(function->name));
  }
  *out = body;
  return RN_OK;
}

static rn_status_t get_function(rn_graph_t* graph, rn_str_t name, rn_function_t** out) {
  *out = rn_library_find(graph->library, name);
  if (*out) return RN_OK;
  return rn_not_found("Function %.*s is not defined.", RN_STR_ARGS(name));
}

rn_status_t rn_function_instantiate(rn_graph_t* graph, const rn_func_attr_t* call,
                                    rn_function_body_t** out) {
  *out = NULL;
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(get_function(graph, call->name, &function));
  return instantiate(graph, function, call, out);
}

void rn_function_body_destroy(rn_function_body_t* body) {
  if (!body) return;
  rn_allocator_t allocator = body->arena.allocator;
  rn_graph_release(body->graph);
  rn_function_release(body->function);
  rn_arena_clear(&body->arena);
  RN_FREE(allocator, body);
}

// Equal calls have equal keys.
static rn_status_t write_key(const rn_func_attr_t* call, rn_arena_t* scratch, rn_strbuf_t* key) {
  if (call->attr_count == 0) {
    rn_strbuf_append(key, call->name);
    return rn_strbuf_status(key);
  }
  rn_attr_value_t value = {.kind = RN_ATTR_FUNC, .func = call};
  rn_pb_AttrValue_t proto;
  RN_RETURN_IF_ERROR(rn_attr_value_to_proto(&value, scratch, &proto));
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  return RN_PB_ENCODE(AttrValue, &proto, &sorted, key);
}

static void destroy_kept(void* body) { rn_function_body_destroy(body); }

static rn_status_t shared_body(rn_graph_t* graph, const rn_func_attr_t* call, rn_str_t key,
                               const rn_function_body_t** out) {
  rn_library_t* library = graph->library;
  *out = rn_library_get_body(library, key);
  if (*out) return RN_OK;
  rn_function_t* function = NULL;
  rn_function_body_t* body = NULL;
  RN_RETURN_IF_ERROR(get_function(graph, call->name, &function));
  RN_RETURN_IF_ERROR(instantiate(graph, function, call, &body));
  void* kept = NULL;
  RN_RETURN_IF_ERROR(rn_library_keep_body(
      library,
      &(rn_library_body_t){
          .key = key, .function = body->function, .body = body, .destroy = destroy_kept},
      &kept));
  *out = kept;
  return RN_OK;
}

rn_status_t rn_function_body(rn_graph_t* graph, const rn_func_attr_t* call,
                             const rn_function_body_t** out) {
  *out = NULL;
  rn_arena_t scratch;
  rn_strbuf_t key;
  rn_arena_init(&scratch, graph->allocator);
  rn_strbuf_init(&key, graph->allocator);
  rn_status_t status = write_key(call, &scratch, &key);
  if (rn_ok(status)) status = shared_body(graph, call, rn_strbuf_view(&key), out);
  rn_strbuf_clear(&key);
  rn_arena_clear(&scratch);
  return status;
}
