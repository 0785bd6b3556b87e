// Shapes once more: with the shapes that are really fed, and the constants that folding found, more
// is known than when the graph was built.
#include "graph/ir.h"

typedef struct shapes_t {
  rn_ir_t* ir;
  rn_partial_t* partials;      // by node: of output 0
  rn_handle_data_t** handles;  // by node: of its outputs
} shapes_t;

// What a small constant says as sizes.
static rn_status_t constant_partial(rn_ir_t* ir, const rn_tensor_t* value, rn_partial_t* out) {
  if (value->rank > 1 || value->count > RN_MAX_RANK ||
      (value->dtype != RN_INT32 && value->dtype != RN_INT64))
    return RN_OK;
  int64_t* values = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)value->count, &values));
  for (int64_t i = 0; i < value->count; ++i)
    values[i] = value->dtype == RN_INT32 ? RN_DATA(value, int32_t)[i] : RN_DATA(value, int64_t)[i];
  *out = (rn_partial_t){true, value->rank == 0, (int32_t)value->count, values};
  return RN_OK;
}

// The more telling of two true statements about one shape.
static rn_shape_t better(rn_shape_t known, rn_shape_t found) {
  if (!rn_shape_has_rank(found) || rn_shape_is_full(known)) return known;
  if (!rn_shape_has_rank(known) || rn_shape_is_full(found)) return found;
  int known_count = 0, found_count = 0;
  for (int d = 0; d < known.rank; ++d) known_count += known.dims[d] >= 0;
  for (int d = 0; d < found.rank; ++d) found_count += found.dims[d] >= 0;
  return found_count >= known_count ? found : known;
}

static rn_status_t gather(shapes_t* s, const rn_ir_node_t* node, rn_shape_t* shapes,
                          rn_dtype_t* types, const rn_tensor_t** values, rn_partial_t* partials,
                          rn_handle_data_t* handles) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_ir_edge_t edge = node->inputs[i];
    const rn_ir_node_t* source = &s->ir->nodes.items[edge.node];
    shapes[i] = source->shapes[edge.output];
    types[i] = source->types[edge.output];
    if (edge.output == 0) {
      values[i] = source->constant;
      partials[i] = s->partials[edge.node];
    }
    if (s->handles[edge.node]) handles[i] = s->handles[edge.node][edge.output];
  }
  return RN_OK;
}

static rn_status_t infer_node(shapes_t* s, int32_t index) {
  rn_ir_t* ir = s->ir;
  rn_ir_node_t* node = &ir->nodes.items[index];
  if (node->constant) return constant_partial(ir, node->constant, &s->partials[index]);
  if (node->feed >= 0 || node->output_count == 0) return RN_OK;
  size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
  rn_shape_t *shapes = NULL, *out_shapes = NULL;
  rn_dtype_t* types = NULL;
  const rn_tensor_t** values = NULL;
  rn_partial_t* partials = NULL;
  rn_handle_data_t* handles = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, inputs, &shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, inputs, &types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, inputs, &values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, inputs, &partials));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, inputs, &handles));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, outputs, &out_shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, outputs, &s->handles[index]));
  RN_RETURN_IF_ERROR(gather(s, node, shapes, types, values, partials, handles));
  for (size_t i = 0; i < outputs; ++i) out_shapes[i] = RN_SHAPE_UNKNOWN;
  rn_shape_ctx_t ctx = {.op = node->op,
                        .attrs = node->attrs,
                        .arena = &ir->arena,
                        .graph_version = ir->producer,
                        .input_count = node->input_count,
                        .inputs = shapes,
                        .input_types = types,
                        .input_values = values,
                        .input_partials = partials,
                        .input_handles = handles,
                        .output_count = node->output_count,
                        .outputs = out_shapes,
                        .output_handles = s->handles[index]};
  rn_status_t status = node->op->shape(&ctx);
  if (!rn_ok(status)) {  // what cannot be is the kernel's to say, when it runs
    rn_status_free(status);
    return RN_OK;
  }
  for (size_t i = 0; i < outputs; ++i) node->shapes[i] = better(node->shapes[i], out_shapes[i]);
  s->partials[index] = ctx.output_partial;
  if (!ctx.output_partial.is_known && node->op->role == RN_ROLE_IDENTITY)
    s->partials[index] = partials[0];
  return RN_OK;
}

rn_status_t rn_pass_shapes(rn_ir_t* ir) {
  shapes_t s = {.ir = ir};
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s.partials));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &s.handles));
  for (int32_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(infer_node(&s, order[i]));
  return RN_OK;
}
