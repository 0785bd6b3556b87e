// The shapes of an op's outputs, from a description without values: the node is built in a graph of
// its own, after placeholders and constants that stand for its inputs.
#include "eager/internal.h"
#include "graph/library.h"

// The type that the description already settles for flat input |i|; RN_INVALID if it does not.
static rn_dtype_t known_type(const rn_eager_op_t* op, int32_t i) {
  const rn_op_def_t* def = op->def;
  int32_t flat = 0;
  for (int a = 0; a < def->input_count; ++a) {
    const rn_arg_def_t* arg = &def->inputs[a];
    int64_t length = 1;
    if (arg->number_attr >= 0) {
      const rn_attr_value_t* number = &op->attrs[arg->number_attr];
      // A list of unknown length takes what is left.
      length = number->kind == RN_ATTR_INT ? number->i : INT32_MAX;
    } else if (arg->type_list_attr >= 0) {
      const rn_attr_value_t* types = &op->attrs[arg->type_list_attr];
      if (types->kind != RN_ATTR_TYPE || !types->is_list) return RN_INVALID;
      if (i < flat + types->count) return types->list_type[i - flat];
      length = types->count;
    }
    if (i < flat + length) {
      if (arg->type_attr < 0) return rn_dtype_base(arg->type);
      const rn_attr_value_t* type = &op->attrs[arg->type_attr];
      return type->kind == RN_ATTR_TYPE && !type->is_list ? type->type : RN_INVALID;
    }
    flat += (int32_t)length;
  }
  return RN_INVALID;
}

static rn_status_t add_input(rn_graph_t* graph, rn_arena_t* arena, const rn_eager_op_t* op,
                             const rn_eager_shape_t* input, int32_t i, rn_edge_t* out) {
  rn_dtype_t dtype = input->value ? input->value->dtype : input->dtype;
  if (dtype == RN_INVALID) dtype = known_type(op, i);
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
  // One argument that is a list takes all; otherwise lengths come from the attributes.
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
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &edges));
  for (int32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(add_input(graph, arena, op, &inputs[i], i, &edges[i]));
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
    (*out)[i] = (rn_eager_shape_t){.dtype = rn_dtype_base(node->outputs[i].dtype),
                                   .shape = {shape.rank, dims}};
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
  rn_status_t status = infer(op, graph, inputs, count, arena, out, out_count);
  rn_graph_release(graph);
  return status;
}
