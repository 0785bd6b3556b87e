// Converts the graph of a step to a GraphDef: see ir_export.h.
#include "step/ir_export.h"

#include "framework/attr_proto.h"
#include "framework/internal_ops.h"
#include "function/function.h"
#include "proto/graph.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

typedef struct export_t {
  rn_ir_t* ir;
  rn_strbuf_t* out;
  rn_arena_t scratch;
  rn_map_t taken;           // names
  rn_str_t* names;          // by node
  rn_map_t functions;       // names of functions already written
  RN_VEC(rn_str_t) wanted;  // functions to write, in the order found
  bool is_part;      // exports one partition: node names may be ones that only TensorFlow's runtime
                     // makes
  bool says_shapes;  // of values that are received
} export_t;

static void export_clear(export_t* e) {
  rn_vec_free(&e->wanted, e->ir->allocator);
  rn_map_clear(&e->taken);
  rn_map_clear(&e->functions);
  rn_arena_clear(&e->scratch);
}

// Node names start with [A-Za-z0-9.] and continue with those and [_>/-\].
static bool may_start(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
}
static bool may_follow(char c) {
  return may_start(c) || c == '_' || c == '>' || c == '/' || c == '-' || c == '\\';
}

static rn_status_t take_name(export_t* e, rn_str_t wish, rn_str_t* out) {
  rn_str_t name;
  bool starts_badly =
      !wish.size || (!may_start(wish.data[0]) && !(e->is_part && wish.data[0] == '_'));
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&e->scratch, &name, "%s%.*s", starts_badly ? "n" : "", RN_STR_ARGS(wish)));
  for (size_t i = 0; i < name.size; ++i)
    if (!may_follow(name.data[i])) ((char*)name.data)[i] = '_';
  rn_str_t base = name;
  for (int n = 1; rn_map_get(&e->taken, name); ++n)
    RN_RETURN_IF_ERROR(rn_arena_printf(&e->scratch, &name, "%.*s_%d", RN_STR_ARGS(base), n));
  *out = name;
  return rn_map_put(&e->taken, name, e);
}

// Assigns the names that the caller chose first, then the node names that are valid and free.
static rn_status_t name_nodes(export_t* e, const rn_str_t* inputs, const rn_str_t* outputs,
                              rn_str_t* out_names) {
  rn_ir_t* ir = e->ir;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&e->scratch, ir->nodes.count, &e->names));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    int32_t feed = ir->nodes.items[n].feed;
    if (!ir->nodes.items[n].is_removed && inputs && feed >= 0 && inputs[feed].size)
      RN_RETURN_IF_ERROR(take_name(e, inputs[feed], &e->names[n]));
  }
  for (int32_t i = 0; outputs && i < ir->fetch_count; ++i)
    if (outputs[i].size) RN_RETURN_IF_ERROR(take_name(e, outputs[i], &out_names[i]));
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (!ir->nodes.items[n].is_removed && !e->names[n].data)
      RN_RETURN_IF_ERROR(take_name(e, ir->nodes.items[n].name, &e->names[n]));
  return RN_OK;
}

static rn_status_t want_function(export_t* e, rn_str_t name) {
  if (!name.size || rn_map_get(&e->functions, name)) return RN_OK;
  rn_function_t* function = rn_graph_get_function(e->ir->graph, name);
  if (!function) return RN_OK;
  rn_status_t status = rn_map_put(&e->functions, function->name, e);
  if (rn_ok(status)) status = rn_vec_push(&e->wanted, e->ir->allocator, function->name);
  rn_function_release(function);  // the library keeps it
  return status;
}

static rn_status_t want_of_attr(export_t* e, const rn_attr_value_t* value) {
  if (value->kind != RN_ATTR_FUNC) return RN_OK;
  if (!value->is_list) return value->func ? want_function(e, value->func->name) : RN_OK;
  for (int32_t i = 0; i < value->count; ++i)
    if (value->list_func[i]) RN_RETURN_IF_ERROR(want_function(e, value->list_func[i]->name));
  return RN_OK;
}

static rn_status_t put_attr(export_t* e, rn_str_t name, const rn_attr_value_t* value) {
  rn_pb_AttrValue_t proto;
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  RN_RETURN_IF_ERROR(want_of_attr(e, value));
  rn_arena_mark_t mark = rn_arena_mark(&e->scratch);
  size_t entry = rn_pb_begin(e->out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(e->out, rn_pb_NodeDef_AttrEntry_key_field, name);
  size_t content = rn_pb_begin(e->out, rn_pb_NodeDef_AttrEntry_value_field);
  rn_status_t status = rn_attr_value_to_proto(value, &e->scratch, &proto);
  if (rn_ok(status)) status = RN_PB_ENCODE(AttrValue, &proto, &sorted, e->out);
  rn_pb_end(e->out, content);
  rn_pb_end(e->out, entry);
  rn_arena_rewind(&e->scratch, mark);
  return status;
}

static void put_input(export_t* e, const char* sign, int32_t node, int32_t output) {
  size_t input = rn_pb_begin(e->out, rn_pb_NodeDef_input_field);
  rn_strbuf_printf(e->out, "%s%.*s", sign, RN_STR_ARGS(e->names[node]));
  if (output > 0) rn_strbuf_printf(e->out, ":%d", output);
  rn_pb_end(e->out, input);
}

static rn_status_t put_placeholder(export_t* e, const rn_ir_node_t* node) {
  rn_pb_put_str(e->out, rn_pb_NodeDef_op_field, RN_STR("Placeholder"));
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = rn_dtype_base(node->types[0])};
  rn_attr_value_t shape = {.kind = RN_ATTR_SHAPE, .shape = node->shapes[0]};
  RN_RETURN_IF_ERROR(put_attr(e, RN_STR("dtype"), &type));
  return put_attr(e, RN_STR("shape"), &shape);
}

// Whether |attr| describes the graph that the node came from.
static bool is_stale(rn_str_t attr) {
  return rn_str_is(attr, "_class") || rn_str_is(attr, "_output_shapes");
}

static rn_status_t put_shape(export_t* e, const rn_ir_node_t* node) {
  if (!e->says_shapes || node->op->role != RN_ROLE_RECV || node->shapes[0].rank < 0) return RN_OK;
  rn_attr_value_t shapes = {
      .kind = RN_ATTR_SHAPE, .is_list = true, .count = 1, .list_shape = node->shapes};
  return put_attr(e, RN_STR("_output_shapes"), &shapes);
}

static rn_status_t put_node(export_t* e, int32_t index) {
  const rn_ir_node_t* node = &e->ir->nodes.items[index];
  size_t def = rn_pb_begin(e->out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(e->out, rn_pb_NodeDef_name_field, e->names[index]);
  if (node->feed >= 0 && node->op->role != RN_ROLE_ARG) {
    RN_RETURN_IF_ERROR(put_placeholder(e, node));
  } else {
    rn_pb_put_str(e->out, rn_pb_NodeDef_op_field, rn_str(node->op->name));
    RN_RETURN_IF_ERROR(want_function(e, rn_str(node->op->name)));
    for (int32_t i = 0; i < node->input_count; ++i)
      put_input(e, "", node->inputs[i].node, node->inputs[i].output);
    for (int32_t i = 0; i < node->control_count; ++i) put_input(e, "^", node->controls[i], 0);
    if (node->requested_device.size)
      rn_pb_put_str(e->out, rn_pb_NodeDef_device_field, node->requested_device);
    for (int a = 0; a < node->op->attr_count; ++a)
      RN_RETURN_IF_ERROR(put_attr(e, rn_str(node->op->attrs[a].name), &node->attrs[a]));
    for (int32_t a = 0; a < node->extra_count; ++a)
      if (!is_stale(node->extras[a].name))
        RN_RETURN_IF_ERROR(put_attr(e, node->extras[a].name, &node->extras[a].value));
    RN_RETURN_IF_ERROR(put_shape(e, node));
  }
  rn_pb_end(e->out, def);
  return rn_strbuf_status(e->out);
}

static rn_status_t put_output(export_t* e, rn_str_t name, rn_ir_edge_t edge) {
  size_t def = rn_pb_begin(e->out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(e->out, rn_pb_NodeDef_name_field, name);
  rn_pb_put_str(e->out, rn_pb_NodeDef_op_field, RN_STR("Identity"));
  put_input(e, "", edge.node, edge.output);
  rn_dtype_t dtype = rn_dtype_base(e->ir->nodes.items[edge.node].types[edge.output]);
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = dtype};
  RN_RETURN_IF_ERROR(put_attr(e, RN_STR("T"), &type));
  rn_pb_end(e->out, def);
  return rn_strbuf_status(e->out);
}

// Collects the functions that nodes of a message call.
static rn_status_t want_of_nodes(export_t* e, const rn_pb_FunctionDef_t* def) {
  for (uint32_t n = 0; n < def->node_def.count; ++n) {
    const rn_pb_NodeDef_t* node = &def->node_def.items[n];
    RN_RETURN_IF_ERROR(want_function(e, node->op));
    for (uint32_t a = 0; a < node->attr.count; ++a) {
      const rn_pb_AttrValue_t* value = node->attr.items[a].value;
      if (value->value_case == rn_pb_AttrValue_func_field)
        RN_RETURN_IF_ERROR(want_function(e, value->func->name));
      if (value->value_case != rn_pb_AttrValue_list_field) continue;
      for (uint32_t i = 0; i < value->list->func.count; ++i)
        RN_RETURN_IF_ERROR(want_function(e, value->list->func.items[i].name));
    }
  }
  return RN_OK;
}

static rn_status_t put_function(export_t* e, rn_str_t name) {
  rn_function_t* function = rn_graph_get_function(e->ir->graph, name);
  if (!function) return RN_OK;
  rn_arena_mark_t mark = rn_arena_mark(&e->scratch);
  rn_pb_FunctionDef_t* def = NULL;
  rn_status_t status = RN_PB_DECODE(FunctionDef, function->bytes, NULL, &e->scratch, &def);
  if (rn_ok(status)) status = want_of_nodes(e, def);
  rn_pb_put_str(e->out, rn_pb_FunctionDefLibrary_function_field, function->bytes);
  rn_arena_rewind(&e->scratch, mark);
  rn_function_release(function);
  return status;
}

static rn_status_t put_library(export_t* e) {
  if (!e->wanted.count) return RN_OK;
  size_t library = rn_pb_begin(e->out, rn_pb_GraphDef_library_field);
  for (size_t i = 0; i < e->wanted.count; ++i)  // the list grows during the loop
    RN_RETURN_IF_ERROR(put_function(e, e->wanted.items[i]));
  rn_pb_end(e->out, library);
  return RN_OK;
}

static rn_status_t put_graph(export_t* e, const rn_str_t* inputs, const rn_str_t* outputs) {
  rn_ir_t* ir = e->ir;
  int32_t *order = NULL, count = 0;
  rn_str_t* names = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&e->scratch, (size_t)ir->fetch_count, &names));
  RN_RETURN_IF_ERROR(name_nodes(e, inputs, outputs, names));
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (int32_t i = 0; i < count; ++i)
    if (!ir->nodes.items[order[i]].is_removed) RN_RETURN_IF_ERROR(put_node(e, order[i]));
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (names[i].size) RN_RETURN_IF_ERROR(put_output(e, names[i], ir->fetches[i]));
  RN_RETURN_IF_ERROR(put_library(e));
  size_t versions = rn_pb_begin(e->out, rn_pb_GraphDef_versions_field);
  if (ir->producer)
    rn_pb_put_uint(e->out, rn_pb_VersionDef_producer_field, (uint64_t)(int64_t)ir->producer);
  rn_pb_end(e->out, versions);
  return rn_strbuf_status(e->out);
}

static rn_status_t export(rn_ir_t* ir, const rn_str_t* input_names, const rn_str_t* output_names,
                          bool is_part, bool says_shapes, rn_strbuf_t* out) {
  export_t e = {.ir = ir, .out = out, .is_part = is_part, .says_shapes = says_shapes};
  size_t before = out->size;
  rn_arena_init(&e.scratch, ir->allocator);
  rn_map_init(&e.taken, ir->allocator);
  rn_map_init(&e.functions, ir->allocator);
  rn_status_t status = put_graph(&e, input_names, output_names);
  export_clear(&e);
  if (!rn_ok(status)) out->size = before;
  return status;
}

rn_status_t rn_ir_export(rn_ir_t* ir, const rn_str_t* input_names, const rn_str_t* output_names,
                         rn_strbuf_t* out) {
  return export(ir, input_names, output_names, false, false, out);
}

rn_status_t rn_ir_export_part(rn_ir_t* ir, bool says_shapes, rn_strbuf_t* out) {
  return export(ir, NULL, NULL, true, says_shapes, out);
}
