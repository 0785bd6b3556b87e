// Makes a function from part of a graph: names the arguments and results, keeps node names that are
// free, and writes edges by argument ("node:output:2"). Checks, their order, names and messages are
// those of TF_GraphToFunction.
#include <inttypes.h>
#include <stdio.h>

#include "framework/attr_proto.h"
#include "function/function.h"
#include "graph/build.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

// The attribute "shape" of an input's node gives the shape of the argument.
#define SHAPE_ATTR "shape"
#define SHAPES_ATTR "_output_shapes"
#define RESOURCE_ID_ATTR "_resource_arg_unique_id"

typedef struct create_maker_t {
  const rn_function_spec_t* spec;
  rn_graph_t* graph;
  rn_arena_t scratch;
  rn_map_t used;  // used name -> the next number to append to it, + 1
  rn_map_t used_outputs;
  rn_map_t renamed;  // "node:2" -> its name in the function, as a rn_str_t*
  rn_str_t*
      node_names;  // by node id: name in the function, also of inputs; empty if not part of it
  bool* is_input;  // by node id
  RN_VEC(rn_node_t*) body;
  rn_pb_OpDef_t signature;
  rn_strbuf_t out;
} create_maker_t;

static rn_status_t in_function(rn_status_t status, const create_maker_t* maker, const char* what,
                               int32_t i, const char* preposition) {
  if (rn_ok(status)) return status;
  return rn_status_annotate(status,
                            "\n\tEncountered while processing %s %" PRId32 " %s function '%.*s'",
                            what, i, preposition, RN_STR_ARGS(maker->spec->name));
}

static rn_status_t check_edge(const create_maker_t* maker, rn_edge_t edge) {
  if (!edge.node) return rn_invalid_argument("Node is null");
  if (edge.node->graph != maker->graph) {
    return rn_invalid_argument("Node '%.*s' is not in the function's graph",
                               RN_STR_ARGS(edge.node->name));
  }
  if (edge.index < 0 || edge.index >= edge.node->output_count) {
    return rn_out_of_range("Node '%.*s' (type: '%s', num of outputs: %d) does not have output %d",
                           RN_STR_ARGS(edge.node->name), edge.node->op->name,
                           edge.node->output_count, edge.index);
  }
  rn_dtype_t type = edge.node->outputs[edge.index].dtype;
  if (!rn_dtype_is_ref(type)) return RN_OK;
  return rn_invalid_argument("Output %d of node '%.*s' has a reference type %s_ref", edge.index,
                             RN_STR_ARGS(edge.node->name), rn_dtype_name(rn_dtype_base(type)));
}

// Turns "Node/Name-1" into a valid argument name: "node_name_1".
static rn_status_t normalize(create_maker_t* maker, rn_str_t name, rn_str_t* out) {
  char* text = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&maker->scratch, name.size + 1, (void**)&text));
  size_t start = name.size;
  for (size_t i = name.size; i-- > 0;) {
    char c = name.data[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool is_digit = c >= '0' && c <= '9';
    text[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : is_letter || is_digit ? c : '_';
    if (is_letter) start = i;
  }
  *out = start == name.size ? RN_STR("unknown") : rn_str_n(text + start, name.size - start);
  return RN_OK;
}

// |name| if it is free, else "name_0", "name_1" …
static rn_status_t make_unique(create_maker_t* maker, rn_map_t* used, rn_str_t name,
                               rn_str_t* out) {
  *out = name;
  uintptr_t next = (uintptr_t)rn_map_get(used, name);
  if (!next) return rn_map_put(used, name, (void*)1);
  for (;; next++) {
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&maker->scratch, out, "%.*s_%" PRIuPTR, RN_STR_ARGS(name), next - 1));
    if (!rn_map_get(used, *out)) break;
  }
  RN_RETURN_IF_ERROR(rn_map_put(used, name, (void*)(next + 1)));
  return rn_map_put(used, *out, (void*)1);
}

static rn_status_t edge_name(create_maker_t* maker, rn_edge_t edge, rn_str_t* out) {
  return rn_arena_printf(&maker->scratch, out, "%.*s:%d", RN_STR_ARGS(edge.node->name), edge.index);
}

static rn_status_t rename_edge(create_maker_t* maker, rn_edge_t edge, rn_str_t to) {
  rn_str_t from;
  rn_str_t* kept = NULL;
  RN_RETURN_IF_ERROR(edge_name(maker, edge, &from));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&maker->scratch, &kept));
  *kept = to;
  return rn_map_put(&maker->renamed, from, kept);
}

static rn_status_t find_renamed(create_maker_t* maker, rn_edge_t edge, const rn_str_t** out) {
  rn_str_t from;
  RN_RETURN_IF_ERROR(edge_name(maker, edge, &from));
  *out = rn_map_get(&maker->renamed, from);
  return RN_OK;
}

static rn_status_t check_inputs(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  for (int32_t i = 0; i < spec->input_count; i++) {
    RN_RETURN_IF_ERROR(in_function(check_edge(maker, spec->inputs[i]), maker, "input", i, "into"));
    maker->is_input[spec->inputs[i].node->id] = true;
    const rn_str_t* known;
    RN_RETURN_IF_ERROR(find_renamed(maker, spec->inputs[i], &known));
    if (known) {
      return rn_invalid_argument("TF_Output %.*s:%d appears more than once in the input list",
                                 RN_STR_ARGS(spec->inputs[i].node->name), spec->inputs[i].index);
    }
    RN_RETURN_IF_ERROR(rename_edge(maker, spec->inputs[i], spec->inputs[i].node->name));
  }
  return RN_OK;
}

static rn_status_t check_outputs(create_maker_t* maker) {
  for (int32_t i = 0; i < maker->spec->output_count; i++) {
    RN_RETURN_IF_ERROR(
        in_function(check_edge(maker, maker->spec->outputs[i]), maker, "output", i, "from"));
  }
  for (int32_t i = 0; i < maker->spec->control_count; i++) {
    const rn_node_t* node = maker->spec->controls[i];
    if (node && node->graph == maker->graph) continue;
    return in_function(rn_invalid_argument("Node is null"), maker, "control output", i, "from");
  }
  return RN_OK;
}

static rn_status_t take_all_nodes(create_maker_t* maker) {
  rn_allocator_t allocator = maker->scratch.allocator;
  for (size_t i = 0; i < maker->graph->nodes.count; i++) {
    rn_node_t* node = maker->graph->nodes.items[i];
    if (!maker->is_input[i]) {
      RN_RETURN_IF_ERROR(rn_vec_push(&maker->body, allocator, node));
    } else if (node->output_count != 1) {
      return rn_invalid_argument(
          "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. "
          "Node %.*s has %d outputs. Encountered while creating function '%.*s'",
          RN_STR_ARGS(node->name), node->output_count, RN_STR_ARGS(maker->spec->name));
    }
  }
  return RN_OK;
}

static rn_status_t take_body(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  if (spec->node_count < 0) return take_all_nodes(maker);
  for (int32_t i = 0; i < spec->node_count; i++) {
    rn_node_t* node = spec->nodes[i];
    if (!node || node->graph != maker->graph) {
      return in_function(rn_invalid_argument("Node is null"), maker, "body node", i, "of");
    }
    RN_RETURN_IF_ERROR(rn_vec_push(&maker->body, maker->scratch.allocator, node));
  }
  return RN_OK;
}

// The shape that a placeholder or a constant states.
static bool tells_shape(const rn_node_t* node, rn_shape_t* out) {
  const rn_attr_value_t* value = rn_node_attr(node, RN_STR(SHAPE_ATTR));
  if (value && value->kind == RN_ATTR_SHAPE && !value->is_list) {
    *out = value->shape;
    return true;
  }
  value = node->op->role == RN_ROLE_CONSTANT ? rn_node_attr(node, RN_STR("value")) : NULL;
  if (!value || value->kind != RN_ATTR_TENSOR || value->is_list || !value->tensor) return false;
  *out = rn_tensor_shape(value->tensor);
  return true;
}

// As in TensorFlow, the key is the argument number of the node if it was itself an argument.
static void put_resource_id(rn_strbuf_t* out, const rn_node_t* node, int64_t id) {
  const rn_attr_value_t* index = rn_node_attr(node, RN_STR("index"));
  uint64_t key = index && index->kind == RN_ATTR_INT && !index->is_list ? (uint64_t)index->i : 0;
  size_t entry = rn_pb_begin(out, rn_pb_FunctionDef_resource_arg_unique_id_field);
  if (key) rn_pb_put_uint(out, rn_pb_FunctionDef_ResourceArgUniqueIdEntry_key_field, key);
  rn_pb_put_uint(out, rn_pb_FunctionDef_ResourceArgUniqueIdEntry_value_field, (uint64_t)id);
  rn_pb_end(out, entry);
}

static rn_status_t add_arg_attr(create_maker_t* maker, rn_str_t key, const rn_attr_value_t* value,
                                rn_pb_FunctionDef_ArgAttrs_t* attrs) {
  rn_pb_FunctionDef_ArgAttrs_AttrEntry_t* attr = &attrs->attr.items[attrs->attr.count++];
  attr->key = key;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&maker->scratch, &attr->value));
  return rn_attr_value_to_proto(value, &maker->scratch, attr->value);
}

// Writes the attributes of an input's node that the argument keeps.
static rn_status_t put_arg_attrs(create_maker_t* maker, int32_t number, const rn_node_t* node,
                                 rn_dtype_t type) {
  rn_strbuf_t* out = &maker->out;
  rn_pb_FunctionDef_ArgAttrs_t attrs = {0};
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&maker->scratch, (size_t)node->extra_count + 1, &attrs.attr.items));
  for (int32_t i = 0; i < node->extra_count; i++) {
    const rn_attr_t* extra = &node->extras[i];
    if (!extra->name.size || extra->name.data[0] != '_') continue;
    bool is_id = rn_str_is(extra->name, RESOURCE_ID_ATTR) && extra->value.kind == RN_ATTR_INT;
    if (is_id && type == RN_RESOURCE) put_resource_id(out, node, extra->value.i);
    RN_RETURN_IF_ERROR(add_arg_attr(maker, extra->name, &extra->value, &attrs));
  }
  rn_shape_t shape;
  if (type != RN_RESOURCE && tells_shape(node, &shape)) {
    rn_attr_value_t list = {
        .kind = RN_ATTR_SHAPE, .is_list = true, .count = 1, .list_shape = &shape};
    RN_RETURN_IF_ERROR(add_arg_attr(maker, RN_STR(SHAPES_ATTR), &list, &attrs));
  }
  if (attrs.attr.count == 0) return RN_OK;
  size_t entry = rn_pb_begin(out, rn_pb_FunctionDef_arg_attr_field);
  rn_pb_put_uint(out, rn_pb_FunctionDef_ArgAttrEntry_key_field, (uint64_t)number);
  size_t content = rn_pb_begin(out, rn_pb_FunctionDef_ArgAttrEntry_value_field);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(FunctionDef_ArgAttrs, &attrs, &sorted, out));
  rn_pb_end(out, content);
  rn_pb_end(out, entry);
  return RN_OK;
}

static rn_status_t name_inputs(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  rn_pb_OpDef_t* signature = &maker->signature;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&maker->scratch, (size_t)spec->input_count, &signature->input_arg.items));
  for (int32_t i = 0; i < spec->input_count; i++) {
    rn_edge_t edge = spec->inputs[i];
    rn_pb_OpDef_ArgDef_t* arg = &signature->input_arg.items[signature->input_arg.count++];
    RN_RETURN_IF_ERROR(normalize(maker, edge.node->name, &arg->name));
    RN_RETURN_IF_ERROR(make_unique(maker, &maker->used, arg->name, &arg->name));
    arg->type = edge.node->outputs[edge.index].dtype;
    RN_RETURN_IF_ERROR(rename_edge(maker, edge, arg->name));
    maker->node_names[edge.node->id] = arg->name;
    RN_RETURN_IF_ERROR(put_arg_attrs(maker, i, edge.node, arg->type));
  }
  return RN_OK;
}

static rn_status_t name_outputs(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  rn_pb_OpDef_t* signature = &maker->signature;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&maker->scratch, (size_t)spec->output_count, &signature->output_arg.items));
  for (int32_t i = 0; i < spec->output_count; i++) {
    rn_edge_t edge = spec->outputs[i];
    rn_pb_OpDef_ArgDef_t* arg = &signature->output_arg.items[signature->output_arg.count++];
    arg->type = edge.node->outputs[edge.index].dtype;
    if (spec->output_names) {
      arg->name = spec->output_names[i];
      if (rn_map_get(&maker->used, arg->name)) {
        return rn_invalid_argument(
            "Cannot have duplicate output names. Name '%.*s' appears more than once in "
            "'output_names' array.",
            RN_STR_ARGS(arg->name));
      }
      RN_RETURN_IF_ERROR(rn_map_put(&maker->used, arg->name, (void*)1));
      continue;
    }
    RN_RETURN_IF_ERROR(normalize(maker, edge.node->name, &arg->name));
    RN_RETURN_IF_ERROR(make_unique(maker, &maker->used, arg->name, &arg->name));
  }
  return RN_OK;
}

// Names the nodes of the body and their outputs.
static rn_status_t name_body(create_maker_t* maker) {
  for (size_t b = 0; b < maker->body.count; b++) {
    rn_node_t* node = maker->body.items[b];
    rn_str_t name;
    RN_RETURN_IF_ERROR(make_unique(maker, &maker->used, node->name, &name));
    maker->node_names[node->id] = name;
    int flat = 0;
    for (int a = 0; a < node->op->output_count; a++) {
      const rn_arg_def_t* arg = &node->op->outputs[a];
      int64_t length = rn_node_arg_length(node, arg);
      for (int64_t k = 0; k < length; k++, flat++) {
        rn_str_t text;
        const rn_str_t* known;
        RN_RETURN_IF_ERROR(find_renamed(maker, (rn_edge_t){node, flat}, &known));
        if (known) continue;  // an input of the function, although its node is in the body
        RN_RETURN_IF_ERROR(rn_arena_printf(&maker->scratch, &text, "%.*s:%s:%" PRId64,
                                           RN_STR_ARGS(name), arg->name, k));
        RN_RETURN_IF_ERROR(rename_edge(maker, (rn_edge_t){node, flat}, text));
      }
    }
  }
  return RN_OK;
}

// TensorFlow numbers the edges of a graph as they are added; the first one is internal.
static size_t edge_number(const rn_graph_t* graph, const rn_node_t* node, size_t control) {
  size_t number = 1;
  for (int32_t i = 0; i < node->id; i++) {
    number += (size_t)graph->nodes.items[i]->input_count + graph->nodes.items[i]->controls.count;
  }
  return number + (size_t)node->input_count + control;
}

static rn_status_t name_node_inputs(create_maker_t* maker, const rn_node_t* node, rn_str_t** out) {
  size_t count = (size_t)node->input_count + node->controls.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->scratch, count, out));
  rn_str_t fn = maker->spec->name;
  for (int32_t i = 0; i < node->input_count; i++) {
    const rn_str_t* name;
    RN_RETURN_IF_ERROR(find_renamed(maker, node->inputs[i], &name));
    if (!name) {
      return rn_invalid_argument(
          "Input %d, '%.*s:%d', of node '%.*s' in function '%.*s' is not available. You might need "
          "to include it in inputs or include its source node in the body",
          (int)i, RN_STR_ARGS(node->inputs[i].node->name), node->inputs[i].index,
          RN_STR_ARGS(node->name), RN_STR_ARGS(fn));
    }
    (*out)[i] = *name;
  }
  for (size_t c = 0; c < node->controls.count; c++) {
    const rn_node_t* source = node->controls.items[c];
    rn_str_t name = maker->node_names[source->id];
    if (!name.size) {
      return rn_invalid_argument(
          "The source of control edge [id=%zu %.*s:-1 -> %.*s:-1] is not in the body. Encountered "
          "while creating function '%.*s'",
          edge_number(maker->graph, node, c), RN_STR_ARGS(source->name), RN_STR_ARGS(node->name),
          RN_STR_ARGS(fn));
    }
    RN_RETURN_IF_ERROR(rn_arena_printf(&maker->scratch, &(*out)[(size_t)node->input_count + c],
                                       "^%.*s", RN_STR_ARGS(name)));
  }
  return RN_OK;
}

// An attribute with a placeholder becomes an attribute of the function.
static rn_status_t open_attr(create_maker_t* maker, const rn_node_t* node, int a) {
  rn_pb_OpDef_t* signature = &maker->signature;
  rn_str_t name = node->attrs[a].s;
  rn_str_t type = rn_str(rn_attr_kind_name(node->op->attrs[a].kind, node->op->attrs[a].is_list));
  for (uint32_t i = 0; i < signature->attr.count; i++) {
    const rn_pb_OpDef_AttrDef_t* known = &signature->attr.items[i];
    if (!rn_str_eq(known->name, name)) continue;
    if (rn_str_eq(known->type, type)) return RN_OK;
    return rn_invalid_argument(
        "Placeholder '%.*s' in attr '%s' of node '%.*s' has type %.*s, but elsewhere in function "
        "'%.*s' it has type %.*s",
        RN_STR_ARGS(name), node->op->attrs[a].name, RN_STR_ARGS(node->name), RN_STR_ARGS(type),
        RN_STR_ARGS(maker->spec->name), RN_STR_ARGS(known->type));
  }
  rn_pb_OpDef_AttrDef_t* grown = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->scratch, (size_t)signature->attr.count + 1, &grown));
  for (uint32_t i = 0; i < signature->attr.count; i++) grown[i] = signature->attr.items[i];
  grown[signature->attr.count++] = (rn_pb_OpDef_AttrDef_t){.name = name, .type = type};
  signature->attr.items = grown;
  return RN_OK;
}

static rn_status_t put_body(create_maker_t* maker) {
  for (size_t b = 0; b < maker->body.count; b++) {
    const rn_node_t* node = maker->body.items[b];
    rn_str_t* inputs = NULL;
    RN_RETURN_IF_ERROR(name_node_inputs(maker, node, &inputs));
    if (node->op->flags & RN_OP_STATEFUL) maker->signature.is_stateful = true;
    for (int a = 0; a < node->op->attr_count; a++) {
      if (node->attrs[a].kind == RN_ATTR_PLACEHOLDER) RN_RETURN_IF_ERROR(open_attr(maker, node, a));
    }
    size_t entry = rn_pb_begin(&maker->out, rn_pb_FunctionDef_node_def_field);
    RN_RETURN_IF_ERROR(rn_node_export_renamed_locked(
        node, maker->node_names[node->id], inputs, (size_t)node->input_count + node->controls.count,
        &maker->out));
    rn_pb_end(&maker->out, entry);
  }
  return RN_OK;
}

static void put_pair(rn_strbuf_t* out, uint32_t field, rn_str_t key, rn_str_t value) {
  size_t entry = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_FunctionDef_RetEntry_key_field, key);
  rn_pb_put_str(out, rn_pb_FunctionDef_RetEntry_value_field, value);
  rn_pb_end(out, entry);
}

static rn_status_t put_results(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  for (int32_t i = 0; i < spec->output_count; i++) {
    const rn_str_t* name;
    RN_RETURN_IF_ERROR(find_renamed(maker, spec->outputs[i], &name));
    if (!name) {
      return rn_invalid_argument(
          "TF_Output %.*s:%d is neither in the function body nor among function inputs. "
          "Encountered while creating function '%.*s'",
          RN_STR_ARGS(spec->outputs[i].node->name), spec->outputs[i].index,
          RN_STR_ARGS(spec->name));
    }
    put_pair(&maker->out, rn_pb_FunctionDef_ret_field, maker->signature.output_arg.items[i].name,
             *name);
  }
  return RN_OK;
}

static int by_text(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

static rn_status_t put_controls(create_maker_t* maker) {
  const rn_function_spec_t* spec = maker->spec;
  rn_str_t* names = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->scratch, (size_t)spec->control_count, &names));
  rn_map_t used;
  rn_map_init(&used, maker->scratch.allocator);
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < spec->control_count; i++) {
    const rn_node_t* node = spec->controls[i];
    names[i] = spec->control_names ? spec->control_names[i] : node->name;
    if (!names[i].size) {
      status = rn_invalid_argument("Control output name must be not empty. Node: %.*s",
                                   RN_STR_ARGS(node->name));
    } else if (rn_map_get(&used, names[i])) {
      status = rn_invalid_argument("Repeated control output name: %.*s", RN_STR_ARGS(names[i]));
    } else if (!maker->node_names[node->id].size) {
      status = rn_invalid_argument(
          "Control output node name must be not empty. Node: %.*s is not in the body. Encountered "
          "while creating function '%.*s'",
          RN_STR_ARGS(node->name), RN_STR_ARGS(spec->name));
    } else {
      status = rn_map_put(&used, names[i], maker);
      put_pair(&maker->out, rn_pb_FunctionDef_control_ret_field, names[i],
               maker->node_names[node->id]);
    }
  }
  rn_map_clear(&used);
  if (spec->control_count) qsort(names, (size_t)spec->control_count, sizeof *names, by_text);
  maker->signature.control_output.items = names;
  maker->signature.control_output.count = (uint32_t)spec->control_count;
  return status;
}

// The hash of what the function does, as eleven letters and digits.
static rn_status_t name_by_hash(create_maker_t* maker, rn_str_t* out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789aA";
  rn_pb_FunctionDef_t* def = NULL;
  RN_RETURN_IF_ERROR(rn_strbuf_status(&maker->out));
  RN_RETURN_IF_ERROR(
      RN_PB_DECODE(FunctionDef, rn_strbuf_view(&maker->out), NULL, &maker->scratch, &def));
  def->signature = &maker->signature;
  uint64_t hash;
  RN_RETURN_IF_ERROR(rn_function_hash(def, &maker->scratch, &hash));
  // The lowest byte comes first, its highest bits first.
  uint64_t bits = __builtin_bswap64(hash);
  char text[12] = {0};
  for (int i = 0; i < 11; i++) text[i] = digits[(i < 10 ? bits >> (58 - 6 * i) : bits << 2) & 63];
  return rn_arena_printf(&maker->scratch, out, "%.*s_%s", RN_STR_ARGS(maker->spec->name), text);
}

static rn_status_t name_function(create_maker_t* maker) {
  maker->signature.description = maker->spec->description;
  rn_str_t name = maker->spec->name;
  if (maker->spec->append_hash) RN_RETURN_IF_ERROR(name_by_hash(maker, &name));
  maker->signature.name = name;
  return RN_OK;
}

static rn_status_t put_signature(create_maker_t* maker) {
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  size_t entry = rn_pb_begin(&maker->out, rn_pb_FunctionDef_signature_field);
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(OpDef, &maker->signature, &sorted, &maker->out));
  rn_pb_end(&maker->out, entry);
  return rn_strbuf_status(&maker->out);
}

static rn_status_t make_locked(create_maker_t* maker) {
  size_t count = maker->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->scratch, count, &maker->node_names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->scratch, count, &maker->is_input));
  RN_RETURN_IF_ERROR(check_inputs(maker));
  RN_RETURN_IF_ERROR(check_outputs(maker));
  RN_RETURN_IF_ERROR(take_body(maker));
  RN_RETURN_IF_ERROR(name_outputs(maker));
  RN_RETURN_IF_ERROR(name_inputs(maker));
  RN_RETURN_IF_ERROR(name_body(maker));
  RN_RETURN_IF_ERROR(put_body(maker));
  RN_RETURN_IF_ERROR(put_results(maker));
  RN_RETURN_IF_ERROR(name_function(maker));
  RN_RETURN_IF_ERROR(put_controls(maker));
  return put_signature(maker);
}

rn_status_t rn_function_create(const rn_function_spec_t* spec, rn_function_t** out) {
  *out = NULL;
  rn_allocator_t allocator = spec->graph->allocator;
  create_maker_t maker = {.spec = spec, .graph = spec->graph};
  rn_arena_init(&maker.scratch, allocator);
  rn_map_init(&maker.used, allocator);
  rn_map_init(&maker.renamed, allocator);
  rn_strbuf_init(&maker.out, allocator);
  rn_mutex_lock(&spec->graph->mutex);
  rn_status_t status = make_locked(&maker);
  rn_mutex_unlock(&spec->graph->mutex);
  if (rn_ok(status)) status = rn_function_parse(allocator, rn_strbuf_view(&maker.out), out);
  rn_strbuf_clear(&maker.out);
  rn_vec_free(&maker.body, allocator);
  rn_map_clear(&maker.renamed);
  rn_map_clear(&maker.used);
  rn_arena_clear(&maker.scratch);
  return status;
}
