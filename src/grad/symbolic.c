// Makes the gradient function of a function, which SymbolicGradient calls. See
// rn_graph_gradient_function.
#include <stdio.h>

#include "function/function.h"
#include "grad/grad.h"
#include "runnel/ops.h"

// State while the gradient function is made from the body.
typedef struct symbolic_maker_t {
  rn_function_body_t* body;
  rn_scope_t* scope;
  rn_arena_t arena;
  rn_edge_t* inputs;  // arguments, then incoming gradients
  int32_t input_count;
  rn_edge_t* outputs;
} symbolic_maker_t;

static rn_status_t scope_status(const rn_scope_t* scope) {
  if (!scope) return rn_out_of_memory();
  return rn_scope_ok(scope)
             ? RN_OK
             : rn_status_make((rn_code_t)rn_scope_code(scope), "%s", rn_scope_message(scope));
}

static rn_status_t add_inputs(symbolic_maker_t* maker) {
  const rn_function_body_t* body = maker->body;
  size_t count = (size_t)body->arg_count + (size_t)body->result_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->arena, count, &maker->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->arena, (size_t)body->arg_count, &maker->outputs));
  for (int32_t i = 0; i < body->arg_count; ++i)
    maker->inputs[maker->input_count++] = (rn_edge_t){body->args[i], 0};
  for (int32_t i = 0; i < body->result_count; ++i) {
    char name[24];
    snprintf(name, sizeof name, "dy_%d", (int)i);
    rn_scope_name_next(maker->scope, name);
    maker->inputs[maker->input_count++] =
        rn_Placeholder(maker->scope, rn_edge_dtype(body->results[i]));
  }
  return scope_status(maker->scope);
}

static rn_status_t add_gradients(symbolic_maker_t* maker) {
  const rn_function_body_t* body = maker->body;
  rn_gradient_t* gradients = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&maker->arena, (size_t)body->arg_count, &gradients));
  rn_gradient_options_t options = {
      .dys = maker->inputs + body->arg_count, .unconnected = RN_UNCONNECTED_ZERO, .dense = true};
  rn_grad_request_t request = {.graph = body->graph,
                               .ys = body->results,
                               .y_count = body->result_count,
                               .xs = maker->inputs,
                               .x_count = body->arg_count,
                               .options = &options};
  RN_RETURN_IF_ERROR(rn_grad_run(&request, gradients));
  for (int32_t i = 0; i < body->arg_count; ++i) {
    maker->outputs[i] = gradients[i].dense;
    // An argument that cannot have a gradient, such as an integer, gets zeros.
    if (!maker->outputs[i].node) maker->outputs[i] = rn_ZerosLike(maker->scope, maker->inputs[i]);
  }
  return scope_status(maker->scope);
}

static rn_status_t make(symbolic_maker_t* maker, rn_graph_t* graph, rn_str_t* out_name) {
  maker->scope = rn_scope_create(maker->body->graph);
  RN_RETURN_IF_ERROR(scope_status(maker->scope));
  RN_RETURN_IF_ERROR(add_inputs(maker));
  RN_RETURN_IF_ERROR(add_gradients(maker));
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(&maker->arena, &name, "%.*s_gradient",
                                     RN_STR_ARGS(maker->body->function->name)));
  rn_function_spec_t spec = {.graph = maker->body->graph,
                             .name = name,
                             .append_hash = true,
                             .node_count = -1,
                             .inputs = maker->inputs,
                             .input_count = maker->input_count,
                             .outputs = maker->outputs,
                             .output_count = maker->body->arg_count};
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(rn_function_create(&spec, &function));
  rn_status_t status = rn_graph_add_function(graph, function, NULL);
  if (rn_ok(status)) {
    // Use the library's copy of the name, because an equal function may have been there before.
    rn_function_t* kept = rn_graph_get_function(graph, function->name);
    *out_name = kept ? kept->name : (rn_str_t){0};
    rn_function_release(kept);
  }
  rn_function_release(function);
  return status;
}

rn_status_t rn_graph_gradient_function(rn_graph_t* graph, const rn_func_attr_t* function,
                                       rn_str_t* out_name) {
  *out_name = rn_graph_function_gradient(graph, function->name);
  if (out_name->size) return RN_OK;
  symbolic_maker_t maker = {0};
  RN_RETURN_IF_ERROR(rn_function_instantiate(graph, function, &maker.body));
  rn_arena_init(&maker.arena, rn_allocator_default());
  rn_status_t status = make(&maker, graph, out_name);
  rn_scope_destroy(maker.scope);
  rn_function_body_destroy(maker.body);
  rn_arena_clear(&maker.arena);
  if (rn_ok(status)) return RN_OK;
  return rn_status_annotate(status, "\n\t in the gradient of function '%.*s'",
                            RN_STR_ARGS(function->name));
}
