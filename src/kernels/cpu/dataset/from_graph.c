// DatasetFromGraph: runs a graph that makes a dataset, such as to_graph.c writes.
//
// The graph becomes the body of a function, in a table with the graph's other functions, so it runs
// as any function does. Its nodes name their inputs in a function's way: "node:output:0".
#include "base/map.h"
#include "framework/pipeline_proto.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "tensor/tstring.h"
#include "wire/decode.h"

#define NAME "__dataset_of_graph"  // the function

typedef struct from_graph_t {
  rn_functions_t* functions;
  rn_str_t device;
  rn_allocator_t allocator;
  char* device_text;
} from_graph_t;

// A graph with its nodes by name.
typedef struct from_graph_nodes_t {
  const rn_pb_GraphDef_t* def;
  rn_map_t by_name;  // -> const rn_pb_NodeDef_t*
} from_graph_nodes_t;

// The length of a list of outputs; 0 if the graph has none, or a negative one.
static int64_t length_of(const rn_pb_NodeDef_t* node, const char* name) {
  for (size_t i = 0; i < node->attr.count; ++i)
    if (rn_str_is(node->attr.items[i].key, name) && node->attr.items[i].value) {
      const rn_pb_AttrValue_t* value = node->attr.items[i].value;
      if (value->value_case == rn_pb_AttrValue_i_field) return value->i > 0 ? value->i : 0;
      if (value->value_case == rn_pb_AttrValue_list_field) return value->list->type.count;
    }
  return 0;
}

// Which output of |node| has the number |index|: its name, and the place in a list.
static rn_status_t find_output(const from_graph_nodes_t* graph, const rn_pb_NodeDef_t* node,
                               int64_t index, rn_str_t* out_name, int64_t* out_place) {
  const rn_op_def_t* op = rn_op_find(node->op);
  for (int i = 0; op && i < op->output_count; ++i) {
    const rn_arg_def_t* arg = &op->outputs[i];
    int64_t length = 1;
    if (arg->number_attr >= 0) length = length_of(node, op->attrs[arg->number_attr].name);
    if (arg->type_list_attr >= 0) length = length_of(node, op->attrs[arg->type_list_attr].name);
    if (index < length) {
      *out_name = rn_str(arg->name);
      *out_place = index;
      return RN_OK;
    }
    index -= length;
  }
  const rn_pb_FunctionDefLibrary_t* library = graph->def->library;
  for (size_t f = 0; !op && library && f < library->function.count; ++f) {
    const rn_pb_OpDef_t* face = library->function.items[f].signature;
    if (!face || !rn_str_eq(face->name, node->op) || (uint64_t)index >= face->output_arg.count)
      continue;
    *out_name = face->output_arg.items[index].name;
    *out_place = 0;
    return RN_OK;
  }
  return rn_invalid_argument("Node '%.*s' (%.*s) has no such output", RN_STR_ARGS(node->name),
                             RN_STR_ARGS(node->op));
}

// "node" or "node:1" as "node:output:0"; "^node" stays.
static rn_status_t convert_input(const from_graph_nodes_t* graph, rn_str_t input, rn_arena_t* arena,
                                 rn_str_t* out) {
  const char* colon = memchr(input.data, ':', input.size);
  rn_str_t name = colon ? rn_str_n(input.data, (size_t)(colon - input.data)) : input;
  int64_t index = 0, place = 0;
  rn_str_t output;
  *out = input;
  if (input.size && input.data[0] == '^') return RN_OK;
  for (const char* c = colon ? colon + 1 : NULL; c && c < input.data + input.size; ++c) {
    if (*c < '0' || *c > '9' || index > INT32_MAX)
      return rn_invalid_argument("'%.*s' is not an input", RN_STR_ARGS(input));
    index = index * 10 + (*c - '0');
  }
  const rn_pb_NodeDef_t* node = rn_map_get(&graph->by_name, name);
  if (!node) return rn_invalid_argument("The graph has no node '%.*s'", RN_STR_ARGS(name));
  RN_RETURN_IF_ERROR(find_output(graph, node, index, &output, &place));
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  rn_strbuf_printf(&text, "%.*s:%.*s:%lld", RN_STR_ARGS(name), RN_STR_ARGS(output),
                   (long long)place);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&text), out);
  rn_strbuf_clear(&text);
  return status;
}

// Makes a function of |graph|, whose nodes it changes and keeps.
static rn_status_t fill_function(from_graph_nodes_t* own, rn_arena_t* arena,
                                 rn_pb_FunctionDef_t* out) {
  const rn_pb_GraphDef_t* graph = own->def;
  rn_pb_NodeDef_t* nodes = NULL;
  rn_str_t result = RN_STR("");
  uint32_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)graph->node.count, &nodes));
  for (size_t i = 0; i < graph->node.count; ++i)
    RN_RETURN_IF_ERROR(rn_map_put(&own->by_name, graph->node.items[i].name, &graph->node.items[i]));
  for (size_t i = 0; i < graph->node.count; ++i) {
    const rn_pb_NodeDef_t* node = &graph->node.items[i];
    rn_str_t* inputs = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)node->input.count, &inputs));
    for (size_t k = 0; k < node->input.count; ++k)
      RN_RETURN_IF_ERROR(convert_input(own, node->input.items[k], arena, &inputs[k]));
    if (rn_str_is(node->op, "_Retval")) {
      if (node->input.count != 1) return rn_invalid_argument("A _Retval needs one input");
      result = inputs[0];
      continue;
    }
    nodes[count] = *node;
    nodes[count].device = RN_STR("");
    nodes[count++].input.items = inputs;
  }
  if (!result.size) return rn_not_found("FetchOutputs node : not found");
  out->node_def.items = nodes;
  out->node_def.count = count;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->signature));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->signature->output_arg.items));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->ret.items));
  out->signature->name = RN_STR(NAME);
  out->signature->is_stateful = true;
  out->signature->output_arg.items[0] =
      (rn_pb_OpDef_ArgDef_t){.name = RN_STR("dataset"), .type = RN_VARIANT};
  out->signature->output_arg.count = 1;
  out->ret.items[0] = (rn_pb_FunctionDef_RetEntry_t){RN_STR("dataset"), result};
  out->ret.count = 1;
  return RN_OK;
}

static rn_status_t make_library(rn_str_t bytes, rn_arena_t* arena,
                                rn_pb_FunctionDefLibrary_t* out) {
  rn_pb_GraphDef_t* graph = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(GraphDef, bytes, NULL, arena, &graph));
  size_t others = graph->library ? graph->library->function.count : 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, others + 1, &out->function.items));
  for (size_t i = 0; i < others; ++i) out->function.items[i] = graph->library->function.items[i];
  out->function.count = (uint32_t)others + 1;
  from_graph_nodes_t nodes = {.def = graph};
  rn_map_init(&nodes.by_name, arena->allocator);
  rn_status_t status = fill_function(&nodes, arena, &out->function.items[others]);
  rn_map_clear(&nodes.by_name);
  return status;
}

static rn_status_t run_library(const from_graph_t* own, const rn_pb_FunctionDefLibrary_t* library,
                               rn_step_t* step, rn_tensor_t* out) {
  const rn_func_attr_t call = {.name = RN_STR(NAME)};
  rn_data_func_t func = {.called = &call};
  RN_RETURN_IF_ERROR(rn_functions_derive(own->functions, false, library, &func.functions));
  rn_status_t status = rn_function_prepare(func.functions, &call, own->device, &func.instance);
  if (rn_ok(status)) status = rn_data_func_call(&func, NULL, 0, step, out);
  rn_function_forget(func.functions, func.instance);
  rn_functions_release(func.functions);
  return status;
}

static rn_status_t from_graph_init(const rn_kernel_init_t* init, void* state) {
  from_graph_t* own = state;
  if (!init->functions)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  own->functions = init->functions;
  own->allocator = init->allocator;
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, init->device_name, &own->device_text));
  own->device = rn_str_n(own->device_text, init->device_name.size);
  return RN_OK;
}

static void from_graph_destroy(void* state) {
  from_graph_t* own = state;
  if (own->device_text) rn_free(own->allocator, own->device_text, own->device.size + 1);
}

static rn_status_t from_graph_compute(rn_kernel_ctx_t* ctx) {
  const from_graph_t* own = ctx->state;
  const rn_tensor_t* text = rn_in(ctx, 0);
  rn_dataset_t* dataset = NULL;
  rn_tensor_t out = {0};
  if (text->rank != 0) return rn_invalid_argument("graph_def must be a scalar");
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_pb_FunctionDefLibrary_t library = {0};
  rn_status_t status =
      make_library(rn_tstring_view(RN_DATA(text, const rn_tstring_t)), &arena, &library);
  if (rn_ok(status)) status = run_library(own, &library, ctx->step, &out);
  rn_arena_clear(&arena);
  if (rn_ok(status)) status = rn_dataset_of(&out, &dataset);
  if (rn_ok(status))
    rn_set_output(ctx, 0, &out);
  else
    rn_tensor_clear(&out);
  return status;
}

static const rn_kernel_def_t rows[] = {{.op = "DatasetFromGraph",
                                        .device = "CPU",
                                        .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
                                        .state_size = sizeof(from_graph_t),
                                        .init = from_graph_init,
                                        .destroy = from_graph_destroy,
                                        .compute = from_graph_compute}};
RN_KERNEL_FAMILY(cpu_data_from_graph, rows);
