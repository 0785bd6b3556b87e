// Adds the nodes by which a written model saves and restores itself, with TensorFlow's names.
#include "graph/graph.h"
#include "runnel/ops.h"
#include "saved_model/writer.h"
#include "tensor/tstring.h"

// Adds a constant of |count| strings, or a scalar if |count| is negative. Adds the node without a
// scope, because scopes have no string constants.
static rn_status_t add_texts(rn_graph_t* graph, rn_str_t name, const rn_str_t* values,
                             int64_t count, rn_edge_t* out) {
  rn_shape_t shape = count < 0 ? RN_SHAPE_SCALAR : (rn_shape_t){1, &count};
  rn_tensor_t tensor = {0};

  RN_RETURN_IF_ERROR(rn_tensor_create(graph->allocator, RN_STRING, shape, &tensor));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < tensor.count; ++i)
    if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], values[i].data, values[i].size))
      status = rn_out_of_memory();
  rn_attr_t attrs[2] = {{RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_STRING}},
                        {RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = &tensor}}};
  rn_node_spec_t spec = {.op = RN_STR("Const"), .name = name, .attrs = attrs, .attr_count = 2};
  *out = RN_NO_EDGE;
  if (rn_ok(status)) status = rn_graph_add(graph, &spec, &out->node);
  rn_tensor_clear(&tensor);
  return status;
}

typedef struct add_t {
  rn_graph_t* graph;
  rn_scope_t* scope;  // below "save/"
  rn_arena_t* arena;
  rn_str_t prefix;  // "save"
  const rn_model_variable_t* variables;
  size_t count;
} add_t;

static rn_status_t add_lists(const add_t* add, const char* op, rn_edge_t* names,
                             rn_edge_t* slices) {
  rn_str_t *list = NULL, *empty = NULL, name;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &empty));
  for (size_t i = 0; i < add->count; ++i) {
    list[i] = add->variables[i].name;
    empty[i] = RN_STR("");
  }
  RN_RETURN_IF_ERROR(
      rn_arena_printf(add->arena, &name, "%.*s/%s/tensor_names", RN_STR_ARGS(add->prefix), op));
  RN_RETURN_IF_ERROR(add_texts(add->graph, name, list, (int64_t)add->count, names));
  RN_RETURN_IF_ERROR(
      rn_arena_printf(add->arena, &name, "%.*s/%s/shape_and_slices", RN_STR_ARGS(add->prefix), op));
  return add_texts(add->graph, name, empty, (int64_t)add->count, slices);
}

static bool is_resource(const rn_node_t* node) {
  return rn_dtype_base(node->outputs[0].dtype) == RN_RESOURCE;
}

static rn_status_t scope_status(const rn_scope_t* scope) {
  if (rn_scope_ok(scope)) return RN_OK;
  return rn_status_make((rn_code_t)rn_scope_code(scope), "%s", rn_scope_message(scope));
}

// A string constant with the value of |variable|, which has no node: the tree of objects.
static rn_status_t add_value(const add_t* add, const rn_model_variable_t* variable,
                             rn_edge_t* out) {
  rn_str_t name;
  rn_str_t value = rn_tstring_view(RN_DATA(&variable->value, rn_tstring_t));
  RN_RETURN_IF_ERROR(rn_arena_printf(add->arena, &name, "%.*s/objects", RN_STR_ARGS(add->prefix)));
  return add_texts(add->graph, name, &value, -1, out);
}

static rn_status_t add_save(const add_t* add, rn_edge_t filename, rn_str_t* reads, rn_edge_t* out) {
  rn_edge_t names, slices, *values = NULL;
  RN_RETURN_IF_ERROR(add_lists(add, "SaveV2", &names, &slices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &values));
  for (size_t i = 0; i < add->count; ++i) {
    rn_edge_t handle = {add->variables[i].node, 0};
    if (!handle.node)
      RN_RETURN_IF_ERROR(add_value(add, &add->variables[i], &values[i]));
    else
      values[i] = is_resource(handle.node)
                      ? rn_ReadVariableOp(add->scope, handle, add->variables[i].value.dtype)
                      : handle;
  }
  rn_node_t* save =
      rn_SaveV2(add->scope, filename, names, slices, values, (int)add->count, .name = "SaveV2");
  rn_scope_add_control(add->scope, save);
  *out = rn_Identity(add->scope, filename, .name = "control_dependency");
  rn_scope_clear_controls(add->scope);
  RN_RETURN_IF_ERROR(scope_status(add->scope));
  for (size_t i = 0; i < add->count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_printf(add->arena, &reads[i], "%s:0", values[i].node->name.data));
  return RN_OK;
}

// Restores only values that have a node.
static rn_status_t add_restore(const add_t* all, rn_edge_t filename, rn_str_t* names_of,
                               rn_node_t** out) {
  add_t some = *all, *add = &some;
  while (some.count && !some.variables[some.count - 1].node) --some.count;
  if (!some.count) {
    *out = rn_NoOp(add->scope, .name = "restore_all");
    return scope_status(add->scope);
  }
  rn_edge_t names, slices;
  int* types = NULL;
  RN_RETURN_IF_ERROR(add_lists(add, "RestoreV2", &names, &slices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &types));
  for (size_t i = 0; i < add->count; ++i) types[i] = add->variables[i].value.dtype;
  rn_edges_t values = rn_RestoreV2(add->scope, filename, names, slices, types, (int)add->count,
                                   .name = "RestoreV2");
  rn_node_t** assigns = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &assigns));
  for (size_t i = 0; i < add->count && rn_scope_ok(add->scope); ++i) {
    rn_edge_t handle = {add->variables[i].node, 0}, value = rn_edge_at(values, (int)i);
    assigns[i] = is_resource(handle.node)
                     ? rn_AssignVariableOp(add->scope, handle, value)
                     : rn_Assign(add->scope, handle, value, .validate_shape = {true, true}).node;
  }
  for (size_t i = 0; i < add->count && rn_scope_ok(add->scope); ++i)
    rn_scope_add_control(add->scope, assigns[i]);
  *out = rn_NoOp(add->scope, .name = "restore_all");
  rn_scope_clear_controls(add->scope);
  RN_RETURN_IF_ERROR(scope_status(add->scope));
  for (size_t i = 0; i < add->count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_str(add->arena, assigns[i]->name, &names_of[i]));
  return RN_OK;
}

static rn_status_t add_all(add_t* add, rn_saver_nodes_t* out) {
  rn_edge_t input, saved;
  rn_node_t* restore = NULL;
  rn_str_t name, model = RN_STR("model");
  RN_RETURN_IF_ERROR(
      rn_arena_printf(add->arena, &name, "%.*s/filename/input", RN_STR_ARGS(add->prefix)));
  RN_RETURN_IF_ERROR(add_texts(add->graph, name, &model, -1, &input));
  rn_edge_t filename = rn_PlaceholderWithDefault(add->scope, input, NULL, 0, .name = "filename");
  filename = rn_PlaceholderWithDefault(add->scope, filename, NULL, 0, .name = "Const");
  RN_RETURN_IF_ERROR(scope_status(add->scope));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &out->reads));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(add->arena, add->count, &out->assigns));
  RN_RETURN_IF_ERROR(add_save(add, filename, out->reads, &saved));
  RN_RETURN_IF_ERROR(add_restore(add, filename, out->assigns, &restore));
  RN_RETURN_IF_ERROR(rn_arena_printf(add->arena, &out->filename, "%s:0", filename.node->name.data));
  RN_RETURN_IF_ERROR(rn_arena_printf(add->arena, &out->save, "%s:0", saved.node->name.data));
  return rn_arena_str(add->arena, restore->name, &out->restore);
}

// "save", or "save_1" … if the graph already has nodes under that name.
static rn_status_t find_prefix(rn_graph_t* graph, rn_arena_t* arena, rn_str_t* out) {
  *out = RN_STR("save");
  for (int n = 1;; ++n) {
    rn_str_t probe;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &probe, "%.*s/", RN_STR_ARGS(*out)));
    bool is_taken = rn_graph_find(graph, *out) != NULL;
    for (size_t i = 0; i < graph->nodes.count && !is_taken; ++i)
      is_taken = rn_str_starts_with(graph->nodes.items[i]->name, probe);
    if (!is_taken) return RN_OK;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, out, "save_%d", n));
  }
}

rn_status_t rn_saver_nodes_add(rn_graph_t* graph, const rn_model_variable_t* variables,
                               size_t count, rn_arena_t* arena, rn_saver_nodes_t* out) {
  add_t add = {.graph = graph, .arena = arena, .variables = variables, .count = count};
  RN_RETURN_IF_ERROR(find_prefix(graph, arena, &add.prefix));
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, add.prefix, &name));
  rn_scope_t* root = rn_scope_create(graph);
  add.scope = root ? rn_scope_child(root, name.data) : NULL;
  rn_status_t status = add.scope ? add_all(&add, out) : rn_out_of_memory();
  rn_scope_destroy(add.scope);
  rn_scope_destroy(root);
  return status;
}
