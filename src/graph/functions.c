// The functions of a graph's library: kept as bytes, known as ops.
#include "framework/attr_proto.h"
#include "graph/import_state.h"
#include "wire/encode.h"

static rn_status_t copy_text(rn_arena_t* arena, rn_str_t str, const char** out) {
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, str, &copy));
  *out = copy.data;
  return RN_OK;
}

static rn_status_t find_attr(const rn_op_def_t* op, rn_str_t name, int16_t* out) {
  *out = -1;
  if (!name.size) return RN_OK;
  int index = rn_op_attr_index(op, name);
  *out = (int16_t)index;
  if (index >= 0) return RN_OK;
  return rn_invalid_argument("Function '%s' has no attr named '%.*s'", op->name, RN_STR_ARGS(name));
}

static rn_status_t make_args(rn_arena_t* arena, const rn_op_def_t* op,
                             const rn_pb_OpDef_ArgDef_t* args, uint32_t count,
                             const rn_arg_def_t** out) {
  rn_arg_def_t* made = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &made));
  for (uint32_t i = 0; i < count; i++) {
    rn_arg_def_t* arg = &made[i];
    RN_RETURN_IF_ERROR(copy_text(arena, args[i].name, &arg->name));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].type_attr, &arg->type_attr));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].number_attr, &arg->number_attr));
    RN_RETURN_IF_ERROR(find_attr(op, args[i].type_list_attr, &arg->type_list_attr));
    arg->type = args[i].type;
    arg->is_ref = args[i].is_ref;
    if (arg->type_attr < 0 && arg->type_list_attr < 0 && !rn_dtype_is_valid(arg->type)) {
      return rn_invalid_argument("Argument '%s' of function '%s' has no type", arg->name, op->name);
    }
  }
  *out = made;
  return RN_OK;
}

// "list(int)" and "int" as kind and form.
static bool parse_kind(rn_str_t word, rn_attr_def_t* out) {
  for (int kind = RN_ATTR_STRING; kind <= RN_ATTR_FUNC; kind++) {
    for (int is_list = 0; is_list < 2; is_list++) {
      if (!rn_str_is(word, rn_attr_kind_name((rn_attr_kind_t)kind, is_list))) continue;
      out->kind = (uint8_t)kind;
      out->is_list = is_list;
      return true;
    }
  }
  return false;
}

static rn_status_t make_attr(rn_arena_t* arena, const rn_pb_OpDef_AttrDef_t* def,
                             rn_attr_def_t* out) {
  RN_RETURN_IF_ERROR(copy_text(arena, def->name, &out->name));
  if (!parse_kind(def->type, out)) {
    return rn_invalid_argument("Attr '%s' of a function has the unknown type '%.*s'", out->name,
                               RN_STR_ARGS(def->type));
  }
  out->has_minimum = def->has_minimum;
  out->minimum = def->minimum;
  if (!def->default_value) return RN_OK;
  // Nothing releases the buffers of a definition: defaults that hold tensors are left out, and the
  // attribute must then be given.
  bool holds_buffers = out->kind == RN_ATTR_TENSOR || out->kind == RN_ATTR_FUNC;
  if (holds_buffers) return RN_OK;
  out->has_default = true;
  return rn_attr_value_from_proto(def->default_value, 0, arena, &out->default_value);
}

// The signature as an op. What runs it finds the function by the op's name.
static rn_status_t make_op(rn_arena_t* arena, const rn_pb_OpDef_t* signature,
                           const rn_op_def_t** out) {
  rn_op_def_t* op = NULL;
  rn_attr_def_t* attrs = NULL;
  uint32_t inputs = signature->input_arg.count, outputs = signature->output_arg.count;
  if (inputs > INT16_MAX || outputs > INT16_MAX || signature->attr.count > INT16_MAX) {
    return rn_invalid_argument("Function '%.*s' has too many arguments",
                               RN_STR_ARGS(signature->name));
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &op));
  RN_RETURN_IF_ERROR(copy_text(arena, signature->name, &op->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, signature->attr.count, &attrs));
  op->attrs = attrs;
  for (uint32_t i = 0; i < signature->attr.count; i++) {
    RN_RETURN_IF_ERROR(make_attr(arena, &signature->attr.items[i], &attrs[i]));
    op->attr_count++;
  }
  RN_RETURN_IF_ERROR(make_args(arena, op, signature->input_arg.items, inputs, &op->inputs));
  RN_RETURN_IF_ERROR(make_args(arena, op, signature->output_arg.items, outputs, &op->outputs));
  op->summary = "";
  op->input_count = (int16_t)inputs;
  op->output_count = (int16_t)outputs;
  op->flags = signature->is_stateful ? RN_OP_STATEFUL : 0;
  op->shape = rn_shape_fn_unknown;
  *out = op;
  return RN_OK;
}

static rn_status_t keep_function(rn_graph_t* graph, rn_graph_function_t function) {
  size_t count = graph->functions.count;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&graph->functions, graph->allocator, count + 1));
  RN_RETURN_IF_ERROR(
      rn_map_put(&graph->function_numbers, function.name, (void*)(uintptr_t)(count + 1)));
  graph->functions.items[graph->functions.count++] = function;
  return RN_OK;
}

static rn_status_t add_function(rn_graph_t* graph, const rn_pb_FunctionDef_t* def) {
  static const rn_pb_OpDef_t none = {0};
  const rn_pb_OpDef_t* signature = def->signature ? def->signature : &none;
  if (!signature->name.size) return rn_invalid_argument("A function of the library has no name");
  if (rn_op_find(signature->name)) {
    return rn_invalid_argument(
        "Cannot add function '%.*s' because an op with the same name already exists.",
        RN_STR_ARGS(signature->name));
  }
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, graph->allocator);
  rn_pb_encode_options_t sorted = {.sort_maps = true};  // equal functions have equal bytes
  rn_status_t status = RN_PB_ENCODE(FunctionDef, def, &sorted, &bytes);
  const rn_graph_function_t* known = rn_graph_find_function_locked(graph, signature->name);
  if (rn_ok(status) && known && !rn_str_eq(known->bytes, rn_strbuf_view(&bytes))) {
    status = rn_invalid_argument(
        "Cannot add function '%.*s' because a different function with the same name already "
        "exists.",
        RN_STR_ARGS(signature->name));
  }
  if (rn_ok(status) && !known) {
    rn_graph_function_t function = {0};
    status = rn_arena_str(&graph->arena, signature->name, &function.name);
    if (rn_ok(status)) {
      status = rn_arena_str(&graph->arena, rn_strbuf_view(&bytes), &function.bytes);
    }
    if (rn_ok(status)) status = make_op(&graph->arena, signature, &function.op);
    if (rn_ok(status)) status = keep_function(graph, function);
  }
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t set_gradient(rn_graph_t* graph, const rn_pb_GradientDef_t* def) {
  rn_graph_function_t* function = rn_graph_find_function_locked(graph, def->function_name);
  if (!function) return RN_OK;  // of a function that is not here: it says nothing
  if (function->gradient.size) {
    if (rn_str_eq(function->gradient, def->gradient_func)) return RN_OK;
    return rn_invalid_argument(
        "Cannot assign gradient function '%.*s' to '%.*s' because it already has gradient "
        "function '%.*s'",
        RN_STR_ARGS(def->gradient_func), RN_STR_ARGS(def->function_name),
        RN_STR_ARGS(function->gradient));
  }
  return rn_arena_str(&graph->arena, def->gradient_func, &function->gradient);
}

rn_status_t rn_import_functions(rn_import_t* import) {
  const rn_pb_FunctionDefLibrary_t* library = import->def->library;
  rn_graph_t* graph = import->graph;
  import->function_count = graph->functions.count;
  if (!library) return RN_OK;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&import->scratch, import->function_count, &import->had_gradient));
  for (size_t i = 0; i < import->function_count; i++) {
    import->had_gradient[i] = graph->functions.items[i].gradient.size > 0;
  }
  for (uint32_t i = 0; i < library->function.count; i++) {
    RN_RETURN_IF_ERROR(add_function(graph, &library->function.items[i]));
  }
  for (uint32_t i = 0; i < library->gradient.count; i++) {
    RN_RETURN_IF_ERROR(set_gradient(graph, &library->gradient.items[i]));
  }
  return RN_OK;
}

void rn_import_undo_functions(rn_import_t* import) {
  rn_graph_t* graph = import->graph;
  if (!import->had_gradient) return;
  while (graph->functions.count > import->function_count) {
    rn_graph_function_t* function = &graph->functions.items[--graph->functions.count];
    rn_map_remove(&graph->function_numbers, function->name);
  }
  for (size_t i = 0; i < import->function_count; i++) {
    if (!import->had_gradient[i]) graph->functions.items[i].gradient = (rn_str_t){0};
  }
}
