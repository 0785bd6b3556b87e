// What a graph optimizer may ask about its graph: types and shapes of nodes, and definitions of
// ops.
#include "capi/plugin/optimizer.h"
#include "framework/op_proto.h"
#include "graph/import.h"
#include "proto/function.pb.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "proto/op_def.pb.h"
#include "proto/tensor_shape.pb.h"
#include "wire/writer.h"

// --- Properties

struct TF_GraphProperties {
  const rn_graph_item_t* item;  // Borrowed
  rn_graph_t* graph;            // Owned; NULL until the properties are inferred
};

TF_GraphProperties* TF_NewGraphProperties(const TF_GrapplerItem* item) {
  TF_GraphProperties* properties = NULL;
  rn_status_t status = item ? RN_NEW(rn_capi_allocator(), &properties) : RN_CAPI_NULL("item");
  rn_status_free(status);
  if (properties) properties->item = rn_plugin_item(item);
  return properties;
}

void TF_DeleteGraphProperties(TF_GraphProperties* graph_properties) {
  if (!graph_properties) return;
  rn_graph_release(graph_properties->graph);
  RN_FREE(rn_capi_allocator(), graph_properties);
}

static bool is_fed(const rn_graph_item_t* item, rn_str_t name) {
  for (int32_t i = 0; i < item->fed_count; ++i)
    if (rn_str_eq(item->fed[i], name)) return true;
  return false;
}

// What is fed to a placeholder may have another shape than it declares.
static void forget_shapes(const rn_graph_item_t* item, rn_pb_GraphDef_t* graph) {
  static const rn_pb_TensorShapeProto_t unknown = {.unknown_rank = true};
  for (uint32_t n = 0; n < graph->node.count; ++n) {
    rn_pb_NodeDef_t* node = &graph->node.items[n];
    for (uint32_t a = 0; is_fed(item, node->name) && a < node->attr.count; ++a) {
      rn_pb_AttrValue_t* value = node->attr.items[a].value;
      if (value && rn_str_is(node->attr.items[a].key, "shape") &&
          value->value_case == rn_pb_AttrValue_shape_field)
        value->shape = (rn_pb_TensorShapeProto_t*)(uintptr_t)&unknown;
    }
  }
}

// Importing a graph infers its shapes.
static rn_status_t infer(TF_GraphProperties* own, bool trusts_feeds) {
  rn_graph_t* graph = NULL;
  rn_pb_GraphDef_t* message = NULL;
  rn_arena_t arena;
  rn_strbuf_t bytes;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_strbuf_init(&bytes, rn_capi_allocator());
  rn_status_t status = RN_PB_DECODE(GraphDef, own->item->graph, NULL, &arena, &message);
  if (rn_ok(status) && !trusts_feeds) forget_shapes(own->item, message);
  if (rn_ok(status)) status = rn_capi_encode(&rn_pb_GraphDef_desc, message, &bytes);
  if (rn_ok(status)) status = rn_graph_create(rn_capi_allocator(), &graph);
  if (rn_ok(status)) {
    rn_import_options_t options = {.extends = true};
    graph->keeps_misfits = true;
    status = rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL);
  }
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) {
    rn_graph_release(graph);
    return status;
  }
  rn_graph_release(own->graph);
  own->graph = graph;
  return RN_OK;
}

void TF_InferStatically(TF_GraphProperties* graph_properties, TF_Bool assume_valid_feeds,
                        TF_Bool aggressive_shape_inference, TF_Bool include_input_tensor_values,
                        TF_Bool include_output_tensor_values, TF_Status* s) {
  (void)aggressive_shape_inference, (void)include_input_tensor_values;
  (void)include_output_tensor_values;  // values are not given
  rn_capi_set(s, graph_properties ? infer(graph_properties, assume_valid_feeds)
                                  : RN_CAPI_NULL("graph_properties"));
}

// A node that does not exist has no properties, as in stock.
static const rn_node_t* node_of(const TF_GraphProperties* own, const char* name) {
  return own && own->graph && name ? rn_graph_find(own->graph, rn_str(name)) : NULL;
}

void TF_GetInputPropertiesListSize(TF_GraphProperties* graph_properties, const char* name,
                                   int* num_values, TF_Status* status) {
  const rn_node_t* node = node_of(graph_properties, name);
  if (num_values) *num_values = node ? node->input_count : 0;
  rn_capi_set(status, num_values ? RN_OK : RN_CAPI_NULL("num_values"));
}

void TF_GetOutputPropertiesListSize(TF_GraphProperties* graph_properties, const char* name,
                                    int* num_values, TF_Status* status) {
  const rn_node_t* node = node_of(graph_properties, name);
  if (num_values) *num_values = node ? node->output_count : 0;
  rn_capi_set(status, num_values ? RN_OK : RN_CAPI_NULL("num_values"));
}

// Fields of OpInfo.TensorProperties.
enum { DTYPE_FIELD = 1, SHAPE_FIELD = 2 };

static rn_status_t write_properties(const rn_output_t* output, TF_Buffer* out) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_pb_put_uint(&buf, DTYPE_FIELD, (uint64_t)output->dtype);
  size_t mark = rn_pb_begin(&buf, SHAPE_FIELD);
  rn_capi_write_shape(&buf, output->shape);
  rn_pb_end(&buf, mark);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status)) return rn_capi_buffer_take(&buf, out);
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t write_list(const rn_node_t* node, bool wants_inputs, TF_Buffer** properties,
                              int num_values) {
  int count = !node ? 0 : wants_inputs ? node->input_count : node->output_count;
  if (count && num_values > 0 && !properties) return rn_invalid_argument("properties is NULL");
  for (int i = 0; i < count && i < num_values; ++i) {
    rn_edge_t edge = wants_inputs ? node->inputs[i] : (rn_edge_t){(rn_node_t*)(uintptr_t)node, i};
    RN_RETURN_IF_ERROR(rn_capi_buffer_check(properties[i]));
    RN_RETURN_IF_ERROR(write_properties(&edge.node->outputs[edge.index], properties[i]));
  }
  return RN_OK;
}

void TF_GetInputPropertiesList(TF_GraphProperties* graph_properties, const char* name,
                               TF_Buffer** properties, int num_values, TF_Status* status) {
  rn_capi_set(status, write_list(node_of(graph_properties, name), true, properties, num_values));
}

void TF_GetOutputPropertiesList(TF_GraphProperties* graph_properties, const char* name,
                                TF_Buffer** properties, int num_values, TF_Status* status) {
  rn_capi_set(status, write_list(node_of(graph_properties, name), false, properties, num_values));
}

// --- Definitions of ops and functions

struct TF_FunctionLibraryDefinition {
  rn_arena_t arena;
  const rn_pb_GraphDef_t* graph;  // in |arena|
};

static rn_status_t read_library(const TF_Buffer* buffer, TF_FunctionLibraryDefinition* own) {
  rn_str_t bytes;
  rn_pb_GraphDef_t* graph = NULL;
  RN_RETURN_IF_ERROR(rn_arena_str(&own->arena, rn_str_n(buffer->data, buffer->length), &bytes));
  RN_RETURN_IF_ERROR(RN_PB_DECODE(GraphDef, bytes, NULL, &own->arena, &graph));
  own->graph = graph;
  return RN_OK;
}

TF_FunctionLibraryDefinition* TF_NewFunctionLibraryDefinition(const TF_Buffer* graph_buf,
                                                              TF_Status* status) {
  TF_FunctionLibraryDefinition* own = NULL;
  rn_status_t outcome = graph_buf ? RN_NEW(rn_capi_allocator(), &own) : RN_CAPI_NULL("graph_buf");
  if (rn_ok(outcome)) {
    rn_arena_init(&own->arena, rn_capi_allocator());
    outcome = read_library(graph_buf, own);
  }
  if (rn_capi_ok(status, outcome)) return own;
  TF_DeleteFunctionLibraryDefinition(own);
  return NULL;
}

void TF_DeleteFunctionLibraryDefinition(TF_FunctionLibraryDefinition* fn_lib) {
  if (!fn_lib) return;
  rn_arena_clear(&fn_lib->arena);
  RN_FREE(rn_capi_allocator(), fn_lib);
}

static const rn_pb_OpDef_t* find_function(const TF_FunctionLibraryDefinition* own, rn_str_t name) {
  const rn_pb_FunctionDefLibrary_t* library = own->graph->library;
  for (uint32_t i = 0; library && i < library->function.count; ++i) {
    const rn_pb_OpDef_t* signature = library->function.items[i].signature;
    if (signature && rn_str_eq(signature->name, name)) return signature;
  }
  return NULL;
}

static rn_status_t write_op(const TF_FunctionLibraryDefinition* own, rn_str_t name,
                            rn_strbuf_t* buf) {
  const rn_op_def_t* op = rn_op_find(name);
  const rn_pb_OpDef_t* function = find_function(own, name);
  if (function) return rn_capi_encode(&rn_pb_OpDef_desc, function, buf);
  if (!op)
    return rn_not_found("Op type not registered '%.*s' in binary running on this machine.",
                        RN_STR_ARGS(name));
  rn_op_write_proto(buf, op);
  return rn_strbuf_status(buf);
}

void TF_LookUpOpDef(TF_FunctionLibraryDefinition* fn_lib, const char* name, TF_Buffer* buf,
                    TF_Status* s) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_capi_allocator());
  rn_status_t outcome = !fn_lib ? RN_CAPI_NULL("fn_lib")
                        : !name ? RN_CAPI_NULL("name")
                                : rn_capi_buffer_check(buf);
  if (rn_ok(outcome)) outcome = write_op(fn_lib, rn_str(name), &bytes);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&bytes, buf);
  rn_strbuf_clear(&bytes);
  rn_capi_set(s, outcome);
}
