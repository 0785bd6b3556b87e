// Implements include/runnel/function.h: functions for graph builders in C.
#include "runnel/function.h"

#include "framework/internal_ops.h"
#include "function/function.h"
#include "graph/build.h"

RN_API bool rn_define_function(rn_scope_t* scope, const char* name, rn_scope_t* body,
                               const rn_edge_t* inputs, int input_count, const rn_edge_t* outputs,
                               int output_count) {
  if (!rn_scope_ok(scope)) return false;
  if (!name || !body || !rn_scope_ok(body)) {
    rn_scope_fail(scope, body && name ? rn_status_make((rn_code_t)rn_scope_code(body), "%s",
                                                       rn_scope_message(body))
                                      : rn_invalid_argument("A function needs a name and a body"));
    return false;
  }
  rn_function_spec_t spec = {.graph = rn_scope_graph(body),
                             .name = rn_str(name),
                             .node_count = -1,
                             .inputs = inputs,
                             .input_count = input_count,
                             .outputs = outputs,
                             .output_count = output_count};
  rn_function_t* function = NULL;
  rn_status_t status = rn_function_create(&spec, &function);
  if (rn_ok(status)) status = rn_graph_add_function(rn_scope_graph(scope), function, NULL);
  rn_function_release(function);
  if (rn_ok(status)) return true;
  rn_scope_fail(scope, status);
  return false;
}

// The types of the results, as the signature says.
static rn_status_t result_types(rn_arena_t* arena, const rn_function_t* function, int** out) {
  const rn_op_def_t* op = function->op;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->output_count, out));
  for (int i = 0; i < op->output_count; ++i) {
    const rn_arg_def_t* arg = &op->outputs[i];
    if (arg->type_attr >= 0 || arg->number_attr >= 0 || arg->type_list_attr >= 0)
      return rn_invalid_argument("Function '%.*s' has attributes that are left open",
                                 RN_STR_ARGS(function->name));
    (*out)[i] = (int)arg->type;
  }
  return RN_OK;
}

RN_API rn_edges_t rn_call(rn_scope_t* scope, const char* name, const rn_edge_t* args,
                          int arg_count) {
  rn_edges_t results = {0};
  if (!rn_scope_ok(scope)) return results;
  rn_function_t* function =
      name ? rn_graph_get_function(rn_scope_graph(scope), rn_str(name)) : NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  int* types = NULL;
  rn_status_t status = function ? result_types(&arena, function, &types)
                                : rn_not_found("Function %s is not defined.", name ? name : "");
  if (rn_ok(status)) {
    int count = function->op->output_count;
    rn_op_begin(scope, rn_op_call((function->op->flags & RN_OP_STATEFUL) != 0)->name);
    rn_op_input_list(scope, args, arg_count);
    rn_op_attr_type_list(scope, "Tout", types, count);
    rn_op_attr_func(scope, "f", name);
    results = (rn_edges_t){.node = rn_op_finish(scope)};
    if (results.node) results.count = count;
  } else {
    rn_scope_fail(scope, status);
  }
  rn_arena_clear(&arena);
  rn_function_release(function);
  return results;
}
