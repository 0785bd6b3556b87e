// Reads the parts of a tensor where they are. An Unpack along the first axis copies its whole
// input; on a device, each part becomes a view of some rows instead:
//
//   matrix = Reshape(value, [parts, elements])
//   part   = Reshape(_RowsOf(matrix, first = i, count = 1), …)
//
// These only pass values on. The queries, keys and values of attention are such parts.
#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/make.h"

typedef struct view_parts_t {
  rn_ir_t* ir;
  const rn_op_def_t *unpack, *reshape, *rows;
} view_parts_t;

// An Unpack, and whether the device has kernels for what replaces it.
typedef struct view_part_t {
  const view_parts_t* pass;
  rn_ir_node_t node;  // a copy
  bool is_lost;
} view_part_t;

// Adds |made| under a name of its own.
static rn_status_t add(view_part_t* part, rn_ir_node_t* made, int32_t* out) {
  rn_ir_t* ir = part->pass->ir;
  part->is_lost |= !made->kernel;
  RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &made->name, "%.*s/part_%zu",
                                     RN_STR_ARGS(part->node.name), ir->nodes.count));
  return rn_ir_add(ir, made, out);
}

static rn_status_t add_dims(view_part_t* part, rn_shape_t shape, rn_ir_edge_t* out) {
  rn_ir_t* ir = part->pass->ir;
  int64_t rank = shape.rank;
  rn_tensor_t value;
  rn_ir_node_t made = {.device = part->node.device,
                       .requested_device = part->node.requested_device,
                       .name = part->node.name,
                       .feed = -1};
  RN_RETURN_IF_ERROR(rn_tensor_create(ir->allocator, RN_INT32, (rn_shape_t){1, &rank}, &value));
  for (int32_t d = 0; d < shape.rank; ++d) RN_DATA(&value, int32_t)[d] = (int32_t)shape.dims[d];
  RN_RETURN_IF_ERROR(rn_ir_own_constant(ir, &value, &made));
  made.kernel = rn_kernel_find(made.op, made.attrs, NULL, made.device->type);
  out->output = 0;
  return add(part, &made, &out->node);
}

static rn_status_t reshape(view_part_t* part, rn_ir_edge_t from, rn_shape_t shape,
                           rn_ir_edge_t* out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = part->node.types[0]}},
                             {RN_STR("Tshape"), {.type = RN_INT32}},
                             RN_ATTRS_END};
  rn_ir_node_t made;
  rn_ir_edge_t dims;
  RN_RETURN_IF_ERROR(add_dims(part, shape, &dims));
  RN_RETURN_IF_ERROR(
      rn_ir_make_node(part->pass->ir, part->pass->reshape, &part->node, given, 2, shape, &made));
  made.inputs[0] = from;
  made.inputs[1] = dims;
  out->output = 0;
  return add(part, &made, &out->node);
}

static rn_status_t take_rows(view_part_t* part, rn_ir_edge_t matrix, int32_t first, int64_t columns,
                             rn_ir_edge_t* out) {
  const rn_attr_t given[] = {{RN_STR("T"), {.type = part->node.types[0]}},
                             {RN_STR("first"), {.i = first}},
                             {RN_STR("count"), {.i = 1}},
                             RN_ATTRS_END};
  const int64_t dims[] = {1, columns};
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(rn_ir_make_node(part->pass->ir, part->pass->rows, &part->node, given, 1,
                                     (rn_shape_t){2, dims}, &made));
  made.inputs[0] = matrix;
  out->output = 0;
  return add(part, &made, &out->node);
}

static rn_status_t view(const view_parts_t* pass, int32_t index) {
  rn_ir_t* ir = pass->ir;
  view_part_t part = {.pass = pass, .node = *rn_ir_node(ir, index)};
  const size_t before = ir->nodes.count;
  const rn_shape_t shape = part.node.shapes[0];
  int64_t dims[2] = {part.node.output_count, 1};
  rn_ir_edge_t matrix, *parts = NULL;
  for (int32_t d = 0; d < shape.rank; ++d) dims[1] *= shape.dims[d];
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)part.node.output_count, &parts));
  RN_RETURN_IF_ERROR(reshape(&part, part.node.inputs[0], (rn_shape_t){2, dims}, &matrix));
  for (int32_t o = 0; o < part.node.output_count; ++o) {
    RN_RETURN_IF_ERROR(take_rows(&part, matrix, o, dims[1], &parts[o]));
    RN_RETURN_IF_ERROR(reshape(&part, parts[o], shape, &parts[o]));
  }
  for (size_t n = before; part.is_lost && n < ir->nodes.count; ++n)
    ir->nodes.items[n].is_removed = true;
  if (part.is_lost) return RN_OK;
  for (int32_t o = 0; o < part.node.output_count; ++o)
    rn_ir_replace_edge(ir, (rn_ir_edge_t){index, o}, parts[o]);
  rn_ir_node(ir, index)->is_removed = true;
  return RN_OK;
}

static bool may_view(const view_parts_t* pass, const rn_ir_node_t* node, const rn_ir_uses_t* uses) {
  if (node->is_removed || node->op != pass->unpack || node->feed >= 0 || !node->kernel ||
      !node->device || node->device->is_host || node->device->has_handles || node->control_count ||
      uses->waits || uses->fetches || node->output_count < 2)
    return false;
  const rn_attr_value_t* axis = rn_ir_attr(node, RN_STR("axis"));
  const rn_shape_t shape = node->shapes[0];
  const rn_dtype_t type = node->types[0];
  int64_t count;
  return (!axis || axis->i == 0 || axis->i == -1 - shape.rank) && rn_shape_is_full(shape) &&
         rn_shape_count(shape, &count) && count > 0 && count <= INT32_MAX &&
         (type == RN_FLOAT || type == RN_HALF || type == RN_BFLOAT16);
}

rn_status_t rn_pass_view_parts(rn_ir_t* ir) {
  view_parts_t pass = {.ir = ir,
                       .unpack = rn_op_find(RN_STR("Unpack")),
                       .reshape = rn_op_find(RN_STR("Reshape")),
                       .rows = rn_op_rows_of()};
  if (!pass.rows || !rn_ir_uses_accelerator(ir)) return RN_OK;
  rn_ir_uses_t* uses = NULL;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &uses));
  for (int32_t n = 0, count = (int32_t)ir->nodes.count; n < count; ++n)
    if (may_view(&pass, rn_ir_node(ir, n), &uses[n])) RN_RETURN_IF_ERROR(view(&pass, n));
  return RN_OK;
}
