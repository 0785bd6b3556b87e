// Changes operations of a graph in place, for front ends that rewrite graphs.
#include "capi/internal.h"
#include "graph/build.h"
#include "graph/edit.h"
#include "proto/cpp_shape_inference.pb.h"
#include "tensor/tensor_proto.h"

// INVALID_ARGUMENT unless |op| is an operation of |graph|.
static rn_status_t check(TF_Graph* graph, TF_Operation* op, const char* function) {
  if (!graph) return rn_capi_null(function, "graph");
  if (!op) return rn_capi_null(function, "op");
  if (rn_capi_node(op)->graph == rn_capi_graph(graph)) return RN_OK;
  return rn_invalid_argument("Node %s was not found in the graph", rn_capi_node(op)->name.data);
}

// The same for functions without a status.
static bool is_of(TF_Graph* graph, TF_Operation* op) {
  return graph && op && rn_capi_node(op)->graph == rn_capi_graph(graph);
}

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status) {
  rn_status_t outcome = check(graph, dst.oper, __func__);
  if (rn_ok(outcome)) outcome = check(graph, new_src.oper, __func__);
  if (rn_ok(outcome)) {
    outcome = rn_graph_update_edge(rn_capi_graph(graph), rn_capi_edge(new_src),
                                   rn_capi_node(dst.oper), dst.index);
  }
  rn_capi_set(status, outcome);
}

void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input) {
  if (!is_of(graph, op) || !is_of(graph, input)) return;
  rn_status_free(rn_node_add_control(rn_capi_node(op), rn_capi_node(input)));
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  if (is_of(graph, op)) rn_node_clear_controls(rn_capi_node(op));
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device) {
  if (is_of(graph, op)) rn_status_free(rn_node_set_device(rn_capi_node(op), rn_str(device)));
}

static rn_status_t set_attr(rn_node_t* node, const char* attr_name, const TF_Buffer* bytes,
                            rn_arena_t* arena) {
  if (!attr_name) return rn_capi_null("TF_SetAttr", "attr_name");
  if (!bytes || (!bytes->data && bytes->length)) {
    return rn_capi_null("TF_SetAttr", "attr_value_proto");
  }
  rn_attr_value_t value;
  RN_RETURN_IF_ERROR(rn_capi_parse_attr(rn_str_n(bytes->data, bytes->length), arena, &value));
  rn_status_t status = rn_node_set_attr(node, rn_str(attr_name), &value);
  rn_attr_value_clear(&value);
  return status;
}

void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                TF_Buffer* attr_value_proto, TF_Status* status) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = check(graph, op, __func__);
  if (rn_ok(outcome)) outcome = set_attr(rn_capi_node(op), attr_name, attr_value_proto, &arena);
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status) {
  rn_status_t outcome = check(graph, op, __func__);
  if (rn_ok(outcome) && !attr_name) outcome = RN_CAPI_NULL("attr_name");
  if (rn_ok(outcome)) outcome = rn_node_clear_attr(rn_capi_node(op), rn_str(attr_name));
  rn_capi_set(status, outcome);
}

static rn_status_t set_full_type(rn_node_t* node, rn_str_t bytes, rn_arena_t* arena) {
  rn_pb_FullTypeDef_t* type = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(FullTypeDef, bytes, NULL, arena, &type));
  rn_mutex_lock(&node->graph->mutex);
  rn_str_t copy;
  rn_status_t status = rn_arena_str(&node->graph->arena, bytes, &copy);
  if (rn_ok(status)) node->full_type = copy;
  rn_mutex_unlock(&node->graph->mutex);
  return status;
}

// There is no status parameter: an invalid FullTypeDef is ignored.
void TF_SetFullType(TF_Graph* graph, TF_Operation* op, const TF_Buffer* full_type_proto) {
  if (!is_of(graph, op) || !full_type_proto || (!full_type_proto->data && full_type_proto->length))
    return;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_str_t bytes = rn_str_n(full_type_proto->data, full_type_proto->length);
  rn_status_free(set_full_type(rn_capi_node(op), bytes, &arena));
  rn_arena_clear(&arena);
}

void TF_SetRequireShapeInferenceFns(TF_Graph* graph, bool require) {
  if (!graph) return;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_mutex_lock(&g->mutex);
  g->allows_shapeless = !require;
  rn_mutex_unlock(&g->mutex);
}

TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph, TF_Output output) {
  if (!graph) return NULL;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_edge_t edge = rn_capi_edge(output);
  rn_status_t status = rn_capi_check_edge(g, edge);
  rn_pb_TensorShapeProto_t shape = {0};
  rn_pb_CppShapeInferenceResult_HandleShapeAndType_t item = {.shape = &shape};
  rn_pb_CppShapeInferenceResult_HandleData_t data = {.shape_and_type = {&item, 1, 0}};
  rn_strbuf_t buf;
  rn_arena_t arena;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_arena_init(&arena, rn_capi_allocator());
  if (rn_ok(status)) {
    rn_mutex_lock(&g->mutex);
    rn_handle_data_t handle = edge.node->outputs[edge.index].handle;
    data.is_set = handle.is_set;
    data.shape_and_type.count = handle.is_set;
    item.dtype = handle.dtype;
    if (handle.is_set) status = rn_shape_to_proto(handle.shape, &arena, &shape);
    rn_mutex_unlock(&g->mutex);
  }
  if (rn_ok(status)) {
    status = rn_capi_encode(&rn_pb_CppShapeInferenceResult_HandleData_desc, &data, &buf);
  }
  TF_Buffer* buffer = NULL;
  if (rn_ok(status)) status = rn_capi_buffer_make(&buf, &buffer);
  rn_strbuf_clear(&buf);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) rn_status_free(status);
  return buffer;
}

static rn_status_t set_handle(rn_graph_t* graph, rn_edge_t edge, rn_str_t bytes,
                              rn_arena_t* arena) {
  if (!bytes.data && bytes.size) return rn_capi_null("TF_SetHandleShapeAndType", "proto");
  RN_RETURN_IF_ERROR(rn_capi_check_edge(graph, edge));
  rn_pb_CppShapeInferenceResult_HandleData_t* data = NULL;
  rn_status_t status = RN_PB_DECODE(CppShapeInferenceResult_HandleData, bytes, NULL, arena, &data);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Couldn't deserialize HandleData proto");
  }
  RN_RETURN_IF_ERROR(status);
  // Shape functions only know the first value behind a handle.
  rn_handle_data_t handle = {.is_set = data->is_set && data->shape_and_type.count > 0,
                             .shape = RN_SHAPE_UNKNOWN};
  if (handle.is_set) {
    handle.dtype = data->shape_and_type.items[0].dtype;
    const rn_pb_TensorShapeProto_t* shape = data->shape_and_type.items[0].shape;
    if (shape) RN_RETURN_IF_ERROR(rn_shape_from_proto(shape, arena, &handle.shape));
  }
  rn_mutex_lock(&graph->mutex);
  status = rn_shape_copy(&graph->arena, handle.shape, &handle.shape);
  if (rn_ok(status)) {
    edge.node->outputs[edge.index].handle = handle;
  }
  rn_mutex_unlock(&graph->mutex);
  return status;
}

void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output, const void* proto,
                              size_t proto_len, TF_Status* status) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t outcome = graph ? set_handle(rn_capi_graph(graph), rn_capi_edge(output),
                                           rn_str_n(proto, proto_len), &arena)
                              : RN_CAPI_NULL("graph");
  rn_arena_clear(&arena);
  rn_capi_set(status, outcome);
}

// Stock's message; its node ids start at 2.
static rn_status_t no_while(const rn_node_t* node) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_strbuf_printf(
      &text,
      "dst argument to AddWhileEdgeHack should be a While op, got: {name:'%s' id:%d op "
      "device:{requested: '%.*s', assigned: ''} def:{",
      node->name.data, node->id + 2, RN_STR_ARGS(node->device));
  rn_node_summary(&text, node);
  rn_strbuf_append(&text, RN_STR("}}"));
  return rn_status_from_buf(RN_CODE_INTERNAL, &text);
}

void TF_AddWhileInputHack(TF_Graph* graph, TF_Output new_src, TF_Operation* dst,
                          TF_Status* status) {
  rn_status_t outcome = check(graph, dst, __func__);
  if (rn_ok(outcome)) outcome = rn_capi_check_edge(rn_capi_graph(graph), rn_capi_edge(new_src));
  if (rn_ok(outcome)) {
    rn_node_t* node = rn_capi_node(dst);
    outcome = node->op->role == RN_ROLE_WHILE
                  ? rn_graph_append_input(rn_capi_graph(graph), rn_capi_edge(new_src), node)
                  : no_while(node);
  }
  rn_capi_set(status, outcome);
}
