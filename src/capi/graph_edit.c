// Changing operations of a graph in place: what front ends that rewrite graphs ask for.
#include "capi/internal.h"
#include "graph/build.h"
#include "proto/cpp_shape_inference.pb.h"
#include "tensor/tensor_proto.h"

// INVALID_ARGUMENT unless |op| is an operation of |graph|.
static rn_status_t check(TF_Graph* graph, TF_Operation* op, const char* function) {
  if (!graph) return rn_capi_null(function, "graph");
  if (!op) return rn_capi_null(function, "op");
  if (rn_capi_node(op)->graph == rn_capi_graph(graph)) return RN_OK;
  return rn_invalid_argument("Node %s was not found in the graph", rn_capi_node(op)->name.data);
}

// The same for functions that have no status.
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

static rn_status_t add_control_locked(rn_node_t* node, rn_node_t* control) {
  for (size_t i = 0; i < node->controls.count; ++i) {
    if (node->controls.items[i] == control) return RN_OK;
  }
  if (node->controls.count == node->controls.capacity) {
    size_t room = node->controls.capacity * 2 + 2;
    rn_node_t** grown = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&node->graph->arena, room, &grown));
    if (node->controls.count) {
      memcpy(grown, node->controls.items, node->controls.count * sizeof *grown);
    }
    node->controls.items = grown;
    node->controls.capacity = room;
  }
  RN_RETURN_IF_ERROR(rn_node_add_control_consumer(control, node));
  node->controls.items[node->controls.count++] = control;
  return RN_OK;
}

void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input) {
  if (!is_of(graph, op) || !is_of(graph, input)) return;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_mutex_lock(&g->mutex);
  rn_status_t status = add_control_locked(rn_capi_node(op), rn_capi_node(input));
  rn_mutex_unlock(&g->mutex);
  if (!rn_ok(status)) rn_status_free(status);
}

static void remove_consumer_locked(rn_node_t* node, const rn_node_t* consumer) {
  size_t kept = 0;
  for (size_t i = 0; i < node->control_consumers.count; ++i) {
    rn_node_t* other = node->control_consumers.items[i];
    if (other != consumer) node->control_consumers.items[kept++] = other;
  }
  node->control_consumers.count = kept;
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  if (!is_of(graph, op)) return;
  rn_node_t* node = rn_capi_node(op);
  rn_mutex_lock(&node->graph->mutex);
  for (size_t i = 0; i < node->controls.count; ++i) {
    remove_consumer_locked(node->controls.items[i], node);
  }
  node->controls.count = 0;
  rn_mutex_unlock(&node->graph->mutex);
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device) {
  if (!is_of(graph, op)) return;
  rn_node_t* node = rn_capi_node(op);
  rn_str_t copy;
  rn_mutex_lock(&node->graph->mutex);
  rn_status_t status = rn_arena_str(&node->graph->arena, rn_str(device), &copy);
  if (rn_ok(status)) {
    node->device = copy;
  }
  rn_mutex_unlock(&node->graph->mutex);
  if (!rn_ok(status)) rn_status_free(status);
}

// Whether attribute |index| of the op decides how many inputs or outputs there are, or their types.
static bool is_structural(const rn_op_def_t* op, int index) {
  for (int i = 0; i < op->input_count + op->output_count; ++i) {
    const rn_arg_def_t* arg =
        i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count];
    if (arg->type_attr == index || arg->number_attr == index || arg->type_list_attr == index) {
      return true;
    }
  }
  return false;
}

static bool same_tensor_type(const rn_attr_value_t* a, const rn_attr_value_t* b) {
  if (a->kind != RN_ATTR_TENSOR || a->is_list || b->is_list) return true;
  return a->tensor->dtype == b->tensor->dtype && rn_tensor_same_shape(a->tensor, b->tensor);
}

// Whether |value| is the list of types |slot|, and more.
static bool is_longer_list(const rn_attr_value_t* slot, const rn_attr_value_t* value) {
  if (!slot->is_list || !value->is_list || value->kind != RN_ATTR_TYPE ||
      value->count < slot->count)
    return false;
  for (int i = 0; i < slot->count; ++i)
    if (slot->list_type[i] != value->list_type[i]) return false;
  return true;
}

// An attribute of the definition: the node must stay one that could have been built.
static rn_status_t replace_defined_locked(rn_node_t* node, int index,
                                          const rn_attr_value_t* value) {
  rn_attr_value_t* slot = &node->attrs[index];
  const char* name = node->op->attrs[index].name;
  if (rn_attr_value_eq(slot, value)) return RN_OK;
  // The types of a While grow with its inputs: TF_AddWhileInputHack.
  if (node->op->role == RN_ROLE_WHILE && strcmp(name, "T") == 0 && is_longer_list(slot, value))
    return RN_OK;
  if (value->kind != slot->kind || value->is_list != slot->is_list ||
      !same_tensor_type(slot, value) || is_structural(node->op, index)) {
    return rn_invalid_argument(
        "Attribute '%s' of operation '%s' decides what the operation takes and gives; it cannot be "
        "changed any more",
        name, node->name.data);
  }
  rn_attr_value_t old = *slot, copy;
  RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &copy));
  *slot = copy;
  rn_status_t status = rn_node_complete_attrs(node);
  if (rn_ok(status)) status = rn_node_infer_locked(node);
  if (!rn_ok(status)) {
    *slot = old;
    old = copy;
  }
  rn_attr_value_clear(&old);
  return status;
}

static rn_attr_t* find_extra(rn_node_t* node, rn_str_t name) {
  for (int i = 0; i < node->extra_count; ++i) {
    if (rn_str_eq(node->extras[i].name, name)) return &node->extras[i];
  }
  return NULL;
}

static rn_status_t replace_extra_locked(rn_node_t* node, rn_str_t name,
                                        const rn_attr_value_t* value) {
  rn_attr_value_t copy;
  rn_attr_t* extra = find_extra(node, name);
  if (extra) {
    RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &copy));
    rn_attr_value_clear(&extra->value);
    extra->value = copy;
    return RN_OK;
  }
  rn_attr_t* grown = NULL;
  rn_arena_t* arena = &node->graph->arena;
  size_t count = (size_t)node->extra_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count + 1, &grown));
  if (count) memcpy(grown, node->extras, count * sizeof *grown);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &grown[count].name));
  RN_RETURN_IF_ERROR(rn_node_copy_value(node, value, &grown[count].value));
  node->extras = grown;
  node->extra_count++;
  return RN_OK;
}

static rn_status_t set_attr(rn_node_t* node, const char* attr_name, const TF_Buffer* bytes,
                            rn_arena_t* arena) {
  if (!attr_name) return rn_capi_null("TF_SetAttr", "attr_name");
  if (!bytes || (!bytes->data && bytes->length)) {
    return rn_capi_null("TF_SetAttr", "attr_value_proto");
  }
  rn_attr_value_t value;
  RN_RETURN_IF_ERROR(rn_capi_parse_attr(rn_str_n(bytes->data, bytes->length), arena, &value));
  rn_mutex_lock(&node->graph->mutex);
  int index = rn_op_attr_index(node->op, rn_str(attr_name));
  rn_status_t status = index >= 0 ? replace_defined_locked(node, index, &value)
                                  : replace_extra_locked(node, rn_str(attr_name), &value);
  rn_mutex_unlock(&node->graph->mutex);
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

static rn_status_t clear_attr(rn_node_t* node, const char* attr_name) {
  if (!attr_name) return rn_capi_null("TF_ClearAttr", "attr_name");
  if (rn_op_attr_index(node->op, rn_str(attr_name)) >= 0) {
    return rn_invalid_argument(
        "Attribute '%s' belongs to the definition of op %s and cannot be cleared", attr_name,
        node->op->name);
  }
  rn_mutex_lock(&node->graph->mutex);
  rn_attr_t* extra = find_extra(node, rn_str(attr_name));
  if (extra) {
    rn_attr_value_clear(&extra->value);
    rn_attr_t* last = &node->extras[--node->extra_count];
    memmove(extra, extra + 1, (size_t)(last - extra) * sizeof *extra);
  }
  rn_mutex_unlock(&node->graph->mutex);
  return RN_OK;
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status) {
  rn_status_t outcome = check(graph, op, __func__);
  if (rn_ok(outcome)) outcome = clear_attr(rn_capi_node(op), attr_name);
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

// There is no status: what is no FullTypeDef changes nothing.
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
  // Only the first value behind a handle is known to shape functions.
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

// In stock's words; its nodes are numbered from 2.
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
