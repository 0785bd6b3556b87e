// Infers the shapes of an op's outputs from a description without values: builds the node in its
// own graph, with placeholders and constants as inputs.
#include "eager/internal.h"
#include "graph/library.h"

// The argument of flat input |i|, and its type if a list of types determines it. NULL if unknown.
static const rn_arg_def_t* arg_of(const rn_eager_op_t* op, int32_t i, rn_dtype_t* out_type) {
  const rn_op_def_t* def = op->def;
  int32_t flat = 0;
  *out_type = RN_INVALID;
  for (int a = 0; a < def->input_count; ++a) {
    const rn_arg_def_t* arg = &def->inputs[a];
    int64_t length = 1;
    if (arg->number_attr >= 0) {
      const rn_attr_value_t* number = &op->attrs[arg->number_attr];
      // A list of unknown length takes the remaining inputs.
      length = number->kind == RN_ATTR_INT ? number->i : INT32_MAX;
    } else if (arg->type_list_attr >= 0) {
      const rn_attr_value_t* types = &op->attrs[arg->type_list_attr];
      if (types->kind != RN_ATTR_TYPE || !types->is_list) return NULL;
      if (i < flat + types->count) *out_type = types->list_type[i - flat];
      length = types->count;
    }
    if (i < flat + length) return arg;
    flat += (int32_t)length;
  }
  return NULL;
}

static rn_dtype_t given_type(const rn_eager_shape_t* input) {
  return input->value ? input->value->dtype : input->dtype;
}

// A type for flat input |i|: the given one, the description's, that of an input with the same type
// attribute, or a guess among those that the op takes (sets |*is_guess|), because shapes hardly
// depend on types.
static rn_dtype_t choose_type(const rn_eager_op_t* op, const rn_eager_shape_t* inputs,
                              int32_t count, int32_t i, bool* is_guess) {
  rn_dtype_t type = given_type(&inputs[i]), other;
  if (type != RN_INVALID) return type;
  const rn_arg_def_t* arg = arg_of(op, i, &type);
  if (type != RN_INVALID || !arg) return type;
  if (arg->type_attr < 0) return rn_dtype_base(arg->type);
  const rn_attr_value_t* set = &op->attrs[arg->type_attr];
  if (set->kind == RN_ATTR_TYPE && !set->is_list) return set->type;
  for (int32_t j = 0; j < count; ++j) {
    const rn_arg_def_t* twin = arg_of(op, j, &other);
    if (twin && twin->type_attr == arg->type_attr && given_type(&inputs[j]) != RN_INVALID)
      return given_type(&inputs[j]);
  }
  *is_guess = true;
  const rn_attr_def_t* attr = &op->def->attrs[arg->type_attr];
  if (attr->has_default) return attr->default_value.type;
  return attr->allowed_count ? attr->allowed_types[0] : RN_FLOAT;
}

static rn_status_t add_input(rn_graph_t* graph, rn_arena_t* arena, const rn_eager_op_t* op,
                             const rn_eager_shape_t* input, int32_t i, rn_dtype_t dtype,
                             rn_edge_t* out) {
  if (dtype == RN_INVALID)
    return rn_invalid_argument("The type of input %d of %s is not known", i, op->def->name);
  rn_attr_t attrs[2] = {{RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = dtype}}};
  if (input->value)
    attrs[1] =
        (rn_attr_t){RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = (void*)input->value}};
  else
    attrs[1] = (rn_attr_t){RN_STR("shape"), {.kind = RN_ATTR_SHAPE, .shape = input->shape}};
  rn_node_spec_t spec = {.op = input->value ? RN_STR("Const") : RN_STR("Placeholder"),
                         .attrs = attrs,
                         .attr_count = 2};
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &spec.name, "input_%d", i));
  return rn_graph_add(graph, &spec, &out->node);
}

static rn_status_t add_node(rn_graph_t* graph, rn_arena_t* arena, const rn_eager_op_t* op,
                            const rn_edge_t* inputs, int32_t count, rn_node_t** out) {
  const rn_op_def_t* def = op->def;
  rn_attr_t* attrs = NULL;
  int32_t given = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)def->attr_count + op->extras.count, &attrs));
  for (int i = 0; i < def->attr_count; ++i)
    if (op->attrs[i].kind != RN_EAGER_UNSET)
      attrs[given++] = (rn_attr_t){rn_str(def->attrs[i].name), op->attrs[i]};
  for (size_t i = 0; i < op->extras.count; ++i) attrs[given++] = op->extras.items[i];
  // A single list argument takes all inputs; otherwise lengths come from the attributes.
  bool is_list = def->input_count == 1 &&
                 (def->inputs[0].number_attr >= 0 || def->inputs[0].type_list_attr >= 0);
  rn_node_spec_t spec = {.op = rn_str(def->name),
                         .name = rn_str(def->name),
                         .inputs = inputs,
                         .input_count = count,
                         .attrs = attrs,
                         .attr_count = given,
                         .arg_lengths = is_list ? &count : NULL,
                         .arg_count = is_list ? 1 : 0};
  bool has_lists = false;
  for (int i = 0; i < def->input_count; ++i)
    has_lists |= def->inputs[i].number_attr >= 0 || def->inputs[i].type_list_attr >= 0;
  if (!has_lists) {
    int32_t* single = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &single));
    for (int32_t i = 0; i < count; ++i) single[i] = RN_ARG_SINGLE;
    spec.arg_lengths = single;
    spec.arg_count = count;
  }
  return rn_graph_add(graph, &spec, out);
}

static rn_status_t infer(const rn_eager_op_t* op, rn_graph_t* graph, const rn_eager_shape_t* inputs,
                         int32_t count, rn_arena_t* arena, rn_eager_shape_t** out,
                         int32_t* out_count) {
  rn_edge_t* edges = NULL;
  bool is_guess = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &edges));
  for (int32_t i = 0; i < count; ++i) {
    rn_dtype_t dtype = choose_type(op, inputs, count, i, &is_guess);
    RN_RETURN_IF_ERROR(add_input(graph, arena, op, &inputs[i], i, dtype, &edges[i]));
  }
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(add_node(graph, arena, op, edges, count, &node));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)node->output_count, out));
  for (int32_t i = 0; i < node->output_count; ++i) {
    rn_shape_t shape = node->outputs[i].shape;
    int64_t* dims = NULL;
    if (rn_shape_has_rank(shape) && shape.rank > 0) {
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape.rank, &dims));
      memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
    }
    rn_dtype_t dtype = is_guess ? RN_INVALID : rn_dtype_base(node->outputs[i].dtype);
    (*out)[i] = (rn_eager_shape_t){.dtype = dtype, .shape = {shape.rank, dims}};
  }
  *out_count = node->output_count;
  return RN_OK;
}

rn_status_t rn_eager_op_infer(const rn_eager_op_t* op, const rn_eager_shape_t* inputs,
                              int32_t count, rn_arena_t* arena, rn_eager_shape_t** out,
                              int32_t* out_count) {
  *out = NULL;
  *out_count = 0;
  if (!rn_ok(op->status)) return rn_status_copy(op->status);
  if (!op->def) return rn_failed_precondition("The op has no name: it could not be reset");
  rn_graph_t* graph = NULL;
  RN_RETURN_IF_ERROR(
      rn_graph_create_body(op->eager->allocator, op->eager->library->library, &graph));
  graph->allows_shapeless = true;
  rn_status_t status = infer(op, graph, inputs, count, arena, out, out_count);
  rn_graph_release(graph);
  return status;
}
