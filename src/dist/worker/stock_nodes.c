// Expands the fused nodes of stock's masters: see stock_nodes.h.
#include "dist/worker/stock_nodes.h"

#include <stdio.h>

#include "base/vec.h"
#include "proto/attr_value.pb.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "proto/types.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define MAX_INPUTS 16
#define MAX_STEPS 32
#define NORM "_FusedBatchNormEx"

// The output graph.
typedef struct spelling_t {
  rn_strbuf_t* out;
  // Borrowed: nodes with several outputs, whose last part has the first output and whose first part
  // has the others.
  RN_VEC(rn_str_t) split;
} spelling_t;

// A fused node; borrows from its NodeDef.
typedef struct stock_node_t {
  rn_str_t bytes, name, op, device;
  rn_str_t inputs[MAX_INPUTS];
  size_t input_count, control_count;  // the control inputs follow the inputs
  rn_str_t steps[MAX_STEPS];          // the ops after the first, in order
  size_t step_count;
} stock_node_t;

// Kinds of fused nodes: the first op in them and its attributes.
static const struct {
  const char *fused, *first;
  size_t inputs;      // of the first
  const char* steps;  // the attribute that lists the ops after the first
  const char* attrs[8];
} kinds[] = {
    {"_FusedMatMul", "MatMul", 2, "fused_ops", {"transpose_a", "transpose_b"}},
    {"_FusedConv2D",
     "Conv2D",
     2,
     "fused_ops",
     {"strides", "padding", "explicit_paddings", "data_format", "dilations"}},
    {"_FusedDepthwiseConv2dNative",
     "DepthwiseConv2dNative",
     2,
     "fused_ops",
     {"strides", "padding", "data_format", "dilations"}},
    {NORM,
     "FusedBatchNormV3",
     5,
     "activation_mode",
     {"U", "epsilon", "exponential_avg_factor", "data_format", "is_training"}},
    {"_UnaryOpsComposition", NULL, 1, "op_names", {NULL}},
};

// The ops that may follow, with how many inputs of the node each takes.
static const struct {
  const char *name, *op;
  size_t args;
} followers[] = {
    {"BiasAdd", "BiasAdd", 1}, {"FusedBatchNorm", "FusedBatchNormV3", 4},
    {"Add", "AddV2", 1},       {"LeakyRelu", "LeakyRelu", 0},
    {"Relu", "Relu", 0},       {"Relu6", "Relu6", 0},
    {"Elu", "Elu", 0},         {"Tanh", "Tanh", 0},
    {"Sigmoid", "Sigmoid", 0},
};

// Reading.

static rn_str_t bytes_of(rn_str_t message, uint32_t number) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number) return field.bytes;
  return RN_STR("");
}

// The kind of a field of a GraphDef; -1: not a fused node.
static int kind_of(const rn_pb_field_t* field) {
  if (field->number != rn_pb_GraphDef_node_field) return -1;
  rn_str_t op = bytes_of(field->bytes, rn_pb_NodeDef_op_field);
  for (size_t i = 0; op.size && op.data[0] == '_' && i < sizeof kinds / sizeof *kinds; ++i)
    if (rn_str_is(op, kinds[i].fused)) return (int)i;
  return -1;
}

// The AttrValue of an attribute; empty if it has none.
static rn_str_t attr_of(const stock_node_t* node, const char* name) {
  rn_pb_scan_t scan = rn_pb_scan(node->bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_NodeDef_attr_field &&
        rn_str_is(bytes_of(field.bytes, rn_pb_NodeDef_AttrEntry_key_field), name))
      return bytes_of(field.bytes, rn_pb_NodeDef_AttrEntry_value_field);
  return RN_STR("");
}

static rn_status_t add_step(stock_node_t* node, rn_str_t step) {
  if (node->step_count == MAX_STEPS)
    return rn_unimplemented("%.*s fuses too many ops", RN_STR_ARGS(node->op));
  node->steps[node->step_count++] = step;
  return RN_OK;
}

// The ops after the first: a list; for a normalization, an addition and an activation.
static rn_status_t read_steps(int kind, stock_node_t* node) {
  rn_str_t value = attr_of(node, kinds[kind].steps);
  rn_str_t mode = bytes_of(value, rn_pb_AttrValue_s_field);
  if (rn_str_is(node->op, NORM) && node->input_count > kinds[kind].inputs)
    RN_RETURN_IF_ERROR(add_step(node, RN_STR("Add")));
  if (mode.size && !rn_str_is(mode, "Identity")) RN_RETURN_IF_ERROR(add_step(node, mode));
  rn_pb_scan_t scan = rn_pb_scan(bytes_of(value, rn_pb_AttrValue_list_field));
  rn_pb_field_t field = {0};
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_AttrValue_ListValue_s_field)
      RN_RETURN_IF_ERROR(add_step(node, field.bytes));
  if (!node->step_count && !kinds[kind].first)
    return rn_invalid_argument("Node %.*s fuses no ops", RN_STR_ARGS(node->name));
  return RN_OK;
}

static rn_status_t read_node(rn_str_t bytes, int kind, stock_node_t* out) {
  *out = (stock_node_t){.bytes = bytes};
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number == rn_pb_NodeDef_name_field) out->name = field.bytes;
    if (field.number == rn_pb_NodeDef_op_field) out->op = field.bytes;
    if (field.number == rn_pb_NodeDef_device_field) out->device = field.bytes;
    if (field.number != rn_pb_NodeDef_input_field) continue;
    size_t at = out->input_count + out->control_count;
    if (at == MAX_INPUTS) return rn_unimplemented("%.*s has too many inputs", RN_STR_ARGS(out->op));
    out->inputs[at] = field.bytes;
    bool is_control = field.bytes.size && field.bytes.data[0] == '^';
    if (out->control_count && !is_control)
      return rn_invalid_argument("Node %.*s has an input after its control inputs",
                                 RN_STR_ARGS(out->name));
    out->control_count += is_control;
    out->input_count += !is_control;
  }
  if (scan.is_bad || out->input_count < kinds[kind].inputs)
    return rn_invalid_argument("Node %.*s is not a valid %s", RN_STR_ARGS(out->name),
                               kinds[kind].fused);
  return read_steps(kind, out);
}

// Writing.

static void put_attr(rn_strbuf_t* out, const char* name, rn_str_t value) {
  if (!value.size) return;
  size_t entry = rn_pb_begin(out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(out, rn_pb_NodeDef_AttrEntry_key_field, rn_str(name));
  rn_pb_put_str(out, rn_pb_NodeDef_AttrEntry_value_field, value);
  rn_pb_end(out, entry);
}

// Writes an input. Outputs of a split node that are not the last part's have another name.
static void put_input(const spelling_t* to, rn_str_t input) {
  rn_str_t rest = input, name = rn_str_split(&rest, ':');
  bool is_split = false;
  for (size_t i = 0; rest.size && !rn_str_is(rest, "0") && i < to->split.count; ++i)
    is_split |= rn_str_eq(name, to->split.items[i]);
  if (!is_split) {
    rn_pb_put_str(to->out, rn_pb_NodeDef_input_field, input);
    return;
  }
  size_t mark = rn_pb_begin(to->out, rn_pb_NodeDef_input_field);
  rn_strbuf_printf(to->out, "%.*s/_part_0:%.*s", RN_STR_ARGS(name), RN_STR_ARGS(rest));
  rn_pb_end(to->out, mark);
}

// Begins a NodeDef with |count| of the node's inputs from |from| on, after |before| if there is
// one.
static size_t begin_part(const spelling_t* to, const stock_node_t* node, rn_str_t op,
                         const char* name, const char* before, size_t from, size_t count) {
  size_t def = rn_pb_begin(to->out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(to->out, rn_pb_NodeDef_name_field, rn_str(name));
  rn_pb_put_str(to->out, rn_pb_NodeDef_op_field, op);
  if (before) rn_pb_put_str(to->out, rn_pb_NodeDef_input_field, rn_str(before));
  for (size_t i = from; i < from + count; ++i) put_input(to, node->inputs[i]);
  if (node->device.size) rn_pb_put_str(to->out, rn_pb_NodeDef_device_field, node->device);
  put_attr(to->out, "T", attr_of(node, "T"));
  return def;
}

static void put_first(const spelling_t* to, const stock_node_t* node, int kind, const char* name) {
  size_t def = begin_part(to, node, rn_str(kinds[kind].first), name, NULL, 0, kinds[kind].inputs);
  for (size_t i = 0; i < node->control_count; ++i)
    put_input(to, node->inputs[node->input_count + i]);
  for (int a = 0; kinds[kind].attrs[a]; ++a)
    put_attr(to->out, kinds[kind].attrs[a], attr_of(node, kinds[kind].attrs[a]));
  rn_pb_end(to->out, def);
}

static void put_norm_attrs(const spelling_t* to, const stock_node_t* node) {
  static const char is_float[] = {rn_pb_AttrValue_type_field << 3, rn_pb_DT_FLOAT};
  static const char is_false[] = {rn_pb_AttrValue_b_field << 3, 0};
  put_attr(to->out, "U", rn_str_n(is_float, sizeof is_float));
  put_attr(to->out, "is_training", rn_str_n(is_false, sizeof is_false));
  put_attr(to->out, "epsilon", attr_of(node, "epsilon"));
}

static rn_status_t put_follower(const spelling_t* to, const stock_node_t* node, rn_str_t step,
                                const char* name, const char* before, size_t* inout_at) {
  size_t f = 0, count = sizeof followers / sizeof *followers;
  while (f < count && !rn_str_is(step, followers[f].name)) ++f;
  if (f == count || *inout_at + followers[f].args > node->input_count)
    return rn_unimplemented("Node %.*s: %.*s cannot fuse %.*s", RN_STR_ARGS(node->name),
                            RN_STR_ARGS(node->op), RN_STR_ARGS(step));
  bool is_norm = rn_str_is(step, "FusedBatchNorm");
  size_t def =
      begin_part(to, node, rn_str(followers[f].op), name, before, *inout_at, followers[f].args);
  *inout_at += followers[f].args;
  if (is_norm) put_norm_attrs(to, node);
  if (is_norm || rn_str_is(step, "BiasAdd"))
    put_attr(to->out, "data_format", attr_of(node, "data_format"));
  if (rn_str_is(step, "LeakyRelu")) put_attr(to->out, "alpha", attr_of(node, "leakyrelu_alpha"));
  rn_pb_end(to->out, def);
  return RN_OK;
}

// A unary op; the first of a chain takes the node's own inputs.
static void put_unary(const spelling_t* to, const stock_node_t* node, rn_str_t step,
                      const char* name, const char* before) {
  size_t all = node->input_count + node->control_count;
  rn_pb_end(to->out, begin_part(to, node, step, name, before, 0, before ? 0 : all));
}

// The name of part |i|: the last has the node's own.
static void part_name(const stock_node_t* node, size_t i, size_t last, char* out, size_t room) {
  if (i == last)
    snprintf(out, room, "%.*s", RN_STR_ARGS(node->name));
  else
    snprintf(out, room, "%.*s/_part_%zu", RN_STR_ARGS(node->name), i);
}

static rn_status_t put_node(const spelling_t* to, rn_str_t bytes, int kind) {
  stock_node_t node;
  RN_RETURN_IF_ERROR(read_node(bytes, kind, &node));
  bool has_first = kinds[kind].first != NULL;
  size_t last = node.step_count - !has_first, at = kinds[kind].inputs;
  char name[1024], before[1024];
  if (node.name.size > sizeof name - 32)
    return rn_unimplemented("A name of %zu bytes is too long for a %s", node.name.size,
                            kinds[kind].fused);
  part_name(&node, 0, last, before, sizeof before);
  if (has_first) put_first(to, &node, kind, before);
  for (size_t i = 0; i < node.step_count; ++i) {
    part_name(&node, i + has_first, last, name, sizeof name);
    if (has_first)
      RN_RETURN_IF_ERROR(put_follower(to, &node, node.steps[i], name, before, &at));
    else
      put_unary(to, &node, node.steps[i], name, i ? before : NULL);
    memcpy(before, name, sizeof before);
  }
  return RN_OK;
}

// A node that is kept, except for the names of its inputs.
static void put_plain(const spelling_t* to, rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  size_t def = rn_pb_begin(to->out, rn_pb_GraphDef_node_field);
  for (const char* from = scan.next; rn_pb_scan_next(&scan, &field); from = scan.next)
    if (field.number == rn_pb_NodeDef_input_field)
      put_input(to, field.bytes);
    else
      rn_strbuf_append(to->out, rn_str_n(from, (size_t)(scan.next - from)));
  rn_pb_end(to->out, def);
}

// Finds the fused nodes, and those of them that are split.
static rn_status_t look(rn_str_t graph_def, spelling_t* spelling, bool* out_has) {
  rn_pb_scan_t scan = rn_pb_scan(graph_def);
  rn_pb_field_t field;
  *out_has = false;
  while (rn_pb_scan_next(&scan, &field)) {
    int kind = kind_of(&field);
    if (kind < 0) continue;
    *out_has = true;
    if (strcmp(kinds[kind].fused, NORM) != 0) continue;
    stock_node_t node;
    RN_RETURN_IF_ERROR(read_node(field.bytes, kind, &node));
    if (node.step_count)
      RN_RETURN_IF_ERROR(rn_vec_push(&spelling->split, spelling->out->allocator, node.name));
  }
  return RN_OK;
}

rn_status_t rn_spell_out_nodes(rn_str_t graph_def, rn_strbuf_t* out, bool* out_has) {
  spelling_t spelling = {.out = out};
  rn_status_t status = look(graph_def, &spelling, out_has);
  rn_pb_scan_t scan = rn_pb_scan(graph_def);
  rn_pb_field_t field;
  for (const char* from = scan.next; rn_ok(status) && *out_has && rn_pb_scan_next(&scan, &field);
       from = scan.next) {
    int kind = kind_of(&field);
    if (kind >= 0)
      status = put_node(&spelling, field.bytes, kind);
    else if (field.number == rn_pb_GraphDef_node_field && spelling.split.count)
      put_plain(&spelling, field.bytes);
    else
      rn_strbuf_append(out, rn_str_n(from, (size_t)(scan.next - from)));
  }
  if (rn_ok(status)) status = rn_strbuf_status(out);
  if (spelling.split.items) rn_vec_free(&spelling.split, out->allocator);
  return status;
}
