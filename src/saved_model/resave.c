// Writes a loaded model again, unchanged except for the current values of its variables: see
// writer.h.
//
// Its object graph refers to keys of the checkpoint, so the new checkpoint must have the same keys.
// They are read from the model's own save nodes: in its graph or, in models of TensorFlow 2, in a
// function that its graph calls.
#include "function/function.h"
#include "saved_model/saved_model.h"
#include "saved_model/writer.h"
#include "tensor/tstring.h"

typedef struct resave_t {
  rn_graph_t* graph;
  rn_model_variables_t* variables;
  rn_allocator_t allocator;
  rn_arena_t* arena;
  const rn_node_t* call;           // calls the function below; NULL if the nodes are in the graph
  const rn_function_body_t* body;  // Borrowed
} resave_t;

static bool is_op(const rn_node_t* node, const char* op) { return strcmp(node->op->name, op) == 0; }

static rn_edge_t skip_reads(rn_edge_t edge) {
  while (is_op(edge.node, "Identity") || is_op(edge.node, "ReadVariableOp"))
    edge = edge.node->inputs[0];
  return edge;
}

// The node of the graph that |edge| comes from: a variable's handle or a constant. NULL if it is
// neither.
static rn_node_t* find_source(const resave_t* r, rn_edge_t edge) {
  edge = skip_reads(edge);
  if (r->body && edge.node->op->role == RN_ROLE_ARG) {
    int32_t k = 0;
    while (k < r->body->arg_count && r->body->args[k] != edge.node) ++k;
    if (k == r->body->arg_count || k >= r->call->input_count) return NULL;
    edge = skip_reads(r->call->inputs[k]);
  }
  return is_op(edge.node, "VarHandleOp") || is_op(edge.node, "Const") ? edge.node : NULL;
}

// The strings of a constant; NULL if |node| is not one.
static const rn_tensor_t* texts_of(rn_edge_t edge) {
  const rn_attr_value_t* value =
      is_op(edge.node, "Const") ? rn_node_attr(edge.node, RN_STR("value")) : NULL;
  if (!value || value->kind != RN_ATTR_TENSOR || value->tensor->dtype != RN_STRING) return NULL;
  return value->tensor;
}

static rn_status_t add_entry(resave_t* r, rn_str_t key, rn_node_t* source) {
  rn_model_variable_t entry = {0};
  RN_RETURN_IF_ERROR(rn_arena_str(r->arena, key, &entry.name));
  if (is_op(source, "Const")) {
    const rn_attr_value_t* value = rn_node_attr(source, RN_STR("value"));
    RN_RETURN_IF_ERROR(rn_tensor_copy(value->tensor, r->allocator, &entry.value));
  } else {
    const rn_attr_value_t* shared = rn_node_attr(source, RN_STR("shared_name"));
    entry.node = source;
    entry.resource = shared && shared->s.size ? shared->s : source->name;
  }
  rn_status_t status = rn_vec_push(r->variables, r->allocator, entry);
  if (!rn_ok(status)) rn_tensor_clear(&entry.value);
  return status;
}

// Collects what the SaveV2 node |save| writes. Sets |*fits| to false for slices of tensors, and for
// values that are neither variables nor constants.
static rn_status_t read_save(resave_t* r, const rn_node_t* save, bool* fits) {
  const rn_tensor_t *keys = texts_of(save->inputs[1]), *slices = texts_of(save->inputs[2]);
  int64_t count = save->input_count - 3;
  *fits = keys && slices && keys->count == count && slices->count == count;
  for (int64_t i = 0; *fits && i < count; ++i) {
    rn_node_t* source = find_source(r, save->inputs[3 + i]);
    *fits = source && !rn_tstring_view(&RN_DATA(slices, rn_tstring_t)[i]).size;
    if (*fits)
      RN_RETURN_IF_ERROR(add_entry(r, rn_tstring_view(&RN_DATA(keys, rn_tstring_t)[i]), source));
  }
  return RN_OK;
}

static bool adds_variables(const rn_graph_t* graph, size_t first) {
  for (size_t i = first; i < graph->nodes.count; ++i) {
    const char* op = graph->nodes.items[i]->op->name;
    if (strcmp(op, "VarHandleOp") == 0 || strcmp(op, "VariableV2") == 0) return true;
  }
  return false;
}

rn_status_t rn_resave_variables(rn_graph_t* graph, const rn_model_origin_t* origin,
                                rn_arena_t* arena, rn_allocator_t allocator,
                                rn_model_variables_t* variables, bool* out_fits) {
  const rn_pb_SaverDef_t* saver = origin->meta->def->saver_def;
  resave_t r = {.graph = graph, .variables = variables, .allocator = allocator, .arena = arena};
  *out_fits = saver && saver->save_tensor_name.size && !adds_variables(graph, origin->node_count);
  if (!*out_fits) return RN_OK;
  rn_edge_t saved;
  RN_RETURN_IF_ERROR(rn_edge_by_name(graph, saver->save_tensor_name, &saved));
  const rn_attr_value_t* function = rn_node_attr(saved.node, RN_STR("f"));
  if (function && function->kind == RN_ATTR_FUNC) {
    r.call = saved.node;
    RN_RETURN_IF_ERROR(rn_function_body(graph, function->func, &r.body));
  }
  const rn_graph_t* nodes = r.body ? r.body->graph : graph;
  int found = 0;
  for (size_t i = 0; *out_fits && i < nodes->nodes.count; ++i) {
    if (!is_op(nodes->nodes.items[i], "SaveV2")) continue;
    RN_RETURN_IF_ERROR(read_save(&r, nodes->nodes.items[i], out_fits));
    ++found;
  }
  *out_fits &= found > 0;
  return RN_OK;
}
