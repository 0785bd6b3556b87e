// Datasets as graphs: see to_graph.h. The ops DatasetToGraph and DatasetToGraphV2.
#include "kernels/cpu/dataset/to_graph.h"

#include "base/vec.h"
#include "framework/attr_proto.h"
#include "framework/pipeline_proto.h"
#include "kernels/cpu/dataset/listing.h"
#include "kernels/cpu/dataset/remake.h"
#include "kernels/cpu/dataset/rewrite.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define MAX_DEPTH 256       // nesting of datasets
#define MAX_FUNCTIONS 4096  // in a graph

typedef struct to_graph_t {
  rn_arena_t arena;
  rn_allocator_t allocator;
  rn_data_state_policy_t policy;
  RN_VEC(rn_pb_NodeDef_t) nodes;
  RN_VEC(rn_pb_FunctionDef_t) functions;
  RN_VEC(const rn_dataset_t*) datasets;  // those that have nodes
  RN_VEC(rn_str_t) names;                // of their nodes
} to_graph_t;

static rn_status_t print_name(to_graph_t* graph, const char* op, rn_str_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, graph->allocator);
  rn_strbuf_printf(&text, "%s/_%zu", op, graph->nodes.count);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_str(&graph->arena, rn_strbuf_view(&text), out);
  rn_strbuf_clear(&text);
  return status;
}

// A node with room for |attrs| attributes and |inputs| inputs.
static rn_status_t new_node(to_graph_t* graph, const char* op, size_t inputs, size_t attrs,
                            rn_pb_NodeDef_t* out) {
  *out = (rn_pb_NodeDef_t){.op = rn_str(op)};
  RN_RETURN_IF_ERROR(print_name(graph, op, &out->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&graph->arena, inputs, &out->input.items));
  return RN_ARENA_ARRAY(&graph->arena, attrs, &out->attr.items);
}

static rn_status_t put_attr(to_graph_t* graph, rn_pb_NodeDef_t* node, const char* name,
                            const rn_attr_value_t* value) {
  rn_pb_AttrValue_t* proto = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&graph->arena, &proto));
  RN_RETURN_IF_ERROR(rn_attr_value_to_proto(value, &graph->arena, proto));
  node->attr.items[node->attr.count++] = (rn_pb_NodeDef_AttrEntry_t){rn_str(name), proto};
  return RN_OK;
}

static rn_status_t add_node(to_graph_t* graph, const rn_pb_NodeDef_t* node) {
  return rn_vec_push(&graph->nodes, graph->allocator, *node);
}

// Functions.
static rn_status_t add_function(to_graph_t* graph, rn_functions_t* functions, rn_str_t name);

static rn_status_t add_called(to_graph_t* graph, rn_functions_t* functions,
                              const rn_pb_NodeDef_t* node) {
  if (!rn_op_find(node->op)) RN_RETURN_IF_ERROR(add_function(graph, functions, node->op));
  for (size_t i = 0; i < node->attr.count; ++i) {
    const rn_pb_AttrValue_t* value = node->attr.items[i].value;
    if (!value) continue;
    if (value->value_case == rn_pb_AttrValue_func_field)
      RN_RETURN_IF_ERROR(add_function(graph, functions, value->func->name));
    if (value->value_case != rn_pb_AttrValue_list_field) continue;
    for (size_t f = 0; f < value->list->func.count; ++f)
      RN_RETURN_IF_ERROR(add_function(graph, functions, value->list->func.items[f].name));
  }
  return RN_OK;
}

// The order does not matter, so what a function calls comes after it.
static rn_status_t add_function(to_graph_t* graph, rn_functions_t* functions, rn_str_t name) {
  rn_pb_FunctionDef_t* def = NULL;
  rn_str_t bytes;
  for (size_t i = 0; i < graph->functions.count; ++i)
    if (rn_str_eq(graph->functions.items[i].signature->name, name)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_functions_find(functions, name, &bytes));
  if (!bytes.size) return rn_not_found("Function '%.*s' is not defined", RN_STR_ARGS(name));
  if (graph->functions.count == MAX_FUNCTIONS)
    return rn_resource_exhausted("A dataset calls more than %d functions", MAX_FUNCTIONS);
  RN_RETURN_IF_ERROR(RN_PB_DECODE(FunctionDef, bytes, NULL, &graph->arena, &def));
  if (!def->signature) return rn_invalid_argument("A function has no signature");
  RN_RETURN_IF_ERROR(rn_vec_push(&graph->functions, graph->allocator, *def));
  for (size_t i = 0; i < def->node_def.count; ++i)
    RN_RETURN_IF_ERROR(add_called(graph, functions, &def->node_def.items[i]));
  return RN_OK;
}

static rn_status_t check_own_state(const rn_dataset_t* dataset) {
  const rn_op_def_t* op = dataset->node->op;
  for (int i = 0; dataset->node->attrs && i < op->attr_count; ++i) {
    rn_data_body_t body;
    if (op->attrs[i].kind != RN_ATTR_FUNC || op->attrs[i].is_list) continue;
    RN_RETURN_IF_ERROR(rn_data_body_of(dataset, op->attrs[i].name, &body));
    if (body.is_stateful)
      return rn_failed_precondition("The function '%s' of a %s is stateful.", op->attrs[i].name,
                                    op->name);
  }
  return RN_OK;
}

rn_status_t rn_data_check_stateless(rn_dataset_t* dataset) {
  rn_data_list_t all;
  rn_status_t status = rn_data_list(dataset, &all);
  for (size_t i = 0; rn_ok(status) && i < all.count; ++i) status = check_own_state(all.items[i]);
  rn_vec_free(&all, dataset->node->allocator);
  return status;
}

static rn_status_t add_functions(to_graph_t* graph, const rn_dataset_t* dataset, int at) {
  const rn_attr_value_t* value = &dataset->node->attrs[at];
  if (value->kind != RN_ATTR_FUNC || !dataset->functions) return RN_OK;
  if (!value->is_list) {
    return value->func ? add_function(graph, dataset->functions, value->func->name) : RN_OK;
  }
  for (int32_t i = 0; i < value->count; ++i)
    RN_RETURN_IF_ERROR(add_function(graph, dataset->functions, value->list_func[i]->name));
  return RN_OK;
}

// Inputs.
static rn_status_t add_constant(to_graph_t* graph, const rn_tensor_t* tensor, rn_str_t* out) {
  rn_pb_NodeDef_t node;
  const rn_attr_value_t dtype = {.kind = RN_ATTR_TYPE, .type = tensor->dtype};
  const rn_attr_value_t value = {.kind = RN_ATTR_TENSOR, .tensor = tensor};
  RN_RETURN_IF_ERROR(new_node(graph, "Const", 0, 2, &node));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "dtype", &dtype));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "value", &value));
  *out = node.name;
  return add_node(graph, &node);
}

// Datasets make resources of these kinds themselves, so an empty handle stands for one.
static rn_status_t add_resource(to_graph_t* graph, const rn_dataset_t* dataset, const char* input,
                                rn_str_t* out) {
  static const char* const rows[][2] = {{"seed_generator", "DummySeedGenerator"},
                                        {"cache", "DummyMemoryCache"},
                                        {"iteration_counter", "DummyIterationCounter"}};
  rn_pb_NodeDef_t node;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (strcmp(rows[i][0], input) != 0) continue;
    RN_RETURN_IF_ERROR(new_node(graph, rows[i][1], 0, 0, &node));
    *out = node.name;
    return add_node(graph, &node);
  }
  if (graph->policy == RN_DATA_STATE_FAIL)
    return rn_failed_precondition("The input '%s' of a %s is a resource.", input,
                                  dataset->node->op->name);
  return rn_unimplemented("A graph of a %s cannot hold the resource '%s'", dataset->node->op->name,
                          input);
}

static rn_status_t add_dataset(to_graph_t* graph, const rn_dataset_t* dataset, int depth,
                               rn_str_t* out);

static rn_status_t add_packed(to_graph_t* graph, const rn_tensor_t* tensor, int depth,
                              rn_str_t* out);

static rn_status_t add_input(to_graph_t* graph, const rn_dataset_t* dataset, const char* name,
                             const rn_tensor_t* tensor, int depth, rn_str_t* out) {
  const rn_dataset_t* inner = rn_data_in(tensor);
  if (inner) return add_dataset(graph, inner, depth + 1, out);
  if (tensor->dtype == RN_VARIANT && tensor->rank == 1)
    return add_packed(graph, tensor, depth, out);
  if (tensor->dtype == RN_RESOURCE) return add_resource(graph, dataset, name, out);
  return add_constant(graph, tensor, out);
}

// A vector of variants, datasets among them: each is a node, and Pack joins them.
static rn_status_t add_packed(to_graph_t* graph, const rn_tensor_t* tensor, int depth,
                              rn_str_t* out) {
  rn_pb_NodeDef_t node;
  const rn_attr_value_t attrs[] = {{.kind = RN_ATTR_INT, .i = tensor->count},
                                   {.kind = RN_ATTR_TYPE, .type = RN_VARIANT}};
  RN_RETURN_IF_ERROR(new_node(graph, "Pack", (size_t)tensor->count, 2, &node));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "N", &attrs[0]));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "T", &attrs[1]));
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_object_t* object = RN_DATA(tensor, rn_object_t*)[i];
    rn_tensor_t one = {0};
    if (!object) return rn_unimplemented("A graph cannot hold an empty variant");
    rn_object_retain(object);
    RN_RETURN_IF_ERROR(rn_data_variant(graph->allocator, object, &one));
    rn_status_t status =
        add_input(graph, NULL, "", &one, depth, &node.input.items[node.input.count]);
    rn_tensor_clear(&one);
    RN_RETURN_IF_ERROR(status);
    node.input.count++;
  }
  RN_RETURN_IF_ERROR(print_name(graph, "Pack", &node.name));
  *out = node.name;
  return add_node(graph, &node);
}

static rn_status_t add_inputs(to_graph_t* graph, const rn_dataset_t* dataset, int depth,
                              rn_pb_NodeDef_t* node) {
  const rn_op_def_t* op = dataset->node->op;
  for (int i = 0; i < op->input_count; ++i) {
    int32_t count = 0;
    const rn_tensor_t* inputs = rn_data_input(dataset, op->inputs[i].name, &count);
    for (int32_t k = 0; k < count; ++k)
      RN_RETURN_IF_ERROR(add_input(graph, dataset, op->inputs[i].name, &inputs[k], depth,
                                   &node->input.items[node->input.count++]));
  }
  return RN_OK;
}

static rn_status_t add_dataset(to_graph_t* graph, const rn_dataset_t* dataset, int depth,
                               rn_str_t* out) {
  const rn_op_def_t* op = dataset->node->op;
  rn_pb_NodeDef_t node;
  for (size_t i = 0; i < graph->datasets.count; ++i) {
    if (graph->datasets.items[i] != dataset) continue;
    *out = graph->names.items[i];
    return RN_OK;
  }
  if (depth == MAX_DEPTH || !dataset->node->attrs || !dataset->inputs ||
      strcmp(op->name, "NonSerializableDataset") == 0)
    return rn_unimplemented("%s does not support serialization.", op->name);
  RN_RETURN_IF_ERROR(
      new_node(graph, op->name, (size_t)dataset->node->input_count, (size_t)op->attr_count, &node));
  if (graph->policy == RN_DATA_STATE_FAIL) RN_RETURN_IF_ERROR(check_own_state(dataset));
  RN_RETURN_IF_ERROR(add_inputs(graph, dataset, depth, &node));
  for (int i = 0; i < op->attr_count; ++i) {
    RN_RETURN_IF_ERROR(put_attr(graph, &node, op->attrs[i].name, &dataset->node->attrs[i]));
    RN_RETURN_IF_ERROR(add_functions(graph, dataset, i));
  }
  RN_RETURN_IF_ERROR(print_name(graph, op->name, &node.name));
  *out = node.name;
  RN_RETURN_IF_ERROR(add_node(graph, &node));
  RN_RETURN_IF_ERROR(rn_vec_push(&graph->datasets, graph->allocator, dataset));
  return rn_vec_push(&graph->names, graph->allocator, node.name);
}

static rn_status_t add_result(to_graph_t* graph, const rn_dataset_t* dataset) {
  rn_pb_NodeDef_t node;
  rn_str_t name;
  const rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = RN_VARIANT};
  const rn_attr_value_t index = {.kind = RN_ATTR_INT, .i = 0};
  RN_RETURN_IF_ERROR(add_dataset(graph, dataset, 0, &name));
  RN_RETURN_IF_ERROR(new_node(graph, "_Retval", 1, 2, &node));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "T", &type));
  RN_RETURN_IF_ERROR(put_attr(graph, &node, "index", &index));
  node.name = RN_STR("dataset");
  node.input.items[node.input.count++] = name;
  return add_node(graph, &node);
}

static rn_status_t encode(const to_graph_t* graph, rn_strbuf_t* out) {
  rn_pb_FunctionDefLibrary_t library = {0};
  library.function.items = graph->functions.items;
  library.function.count = (uint32_t)graph->functions.count;
  rn_pb_GraphDef_t def = {.library = &library};
  def.node.items = graph->nodes.items;
  def.node.count = (uint32_t)graph->nodes.count;
  return RN_PB_ENCODE(GraphDef, &def, NULL, out);
}

rn_status_t rn_data_to_graph(const rn_dataset_t* dataset, rn_data_state_policy_t policy,
                             rn_strbuf_t* out) {
  to_graph_t graph = {.allocator = dataset->node->allocator, .policy = policy};
  rn_arena_init(&graph.arena, graph.allocator);
  rn_status_t status = add_result(&graph, dataset);
  if (rn_ok(status)) status = encode(&graph, out);
  rn_vec_free(&graph.nodes, graph.allocator);
  rn_vec_free(&graph.functions, graph.allocator);
  rn_vec_free(&graph.datasets, graph.allocator);
  rn_vec_free(&graph.names, graph.allocator);
  rn_arena_clear(&graph.arena);
  return status;
}

// The kernels; their state is the policy.
static rn_status_t graph_init(const rn_kernel_init_t* init, void* state) {
  rn_data_state_policy_t* policy = state;
  int at = rn_op_attr_index(init->op, RN_STR("external_state_policy"));
  int64_t value = RN_DATA_STATE_IGNORE;
  if (at >= 0)
    value = init->attrs[at].i;
  else if (!rn_init_attr(init, "allow_stateful")->b)
    value = RN_DATA_STATE_FAIL;
  if (value < RN_DATA_STATE_WARN || value > RN_DATA_STATE_FAIL)
    return rn_invalid_argument("Unexpected external_state_policy: %lld", (long long)value);
  *policy = (rn_data_state_policy_t)value;
  return RN_OK;
}

static rn_status_t graph_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, ctx->kernel->allocator);
  rn_status_t status =
      rn_data_to_graph(dataset, *(const rn_data_state_policy_t*)ctx->state, &bytes);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), bytes.data, bytes.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&bytes);
  return status;
}

#define TO_GRAPH(op_)                                                                             \
  {                                                                                               \
    .op = op_, .device = "CPU", .state_size = sizeof(rn_data_state_policy_t), .init = graph_init, \
    .compute = graph_compute                                                                      \
  }
static const rn_kernel_def_t rows[] = {TO_GRAPH("DatasetToGraph"), TO_GRAPH("DatasetToGraphV2")};
RN_KERNEL_FAMILY(cpu_data_to_graph, rows);
