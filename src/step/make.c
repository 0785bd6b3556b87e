// Making nodes: see make.h.
#include "step/make.h"

#include "framework/internal_ops.h"

static const rn_attr_value_t* value_of(const rn_attr_def_t* def, const rn_ir_node_t* like,
                                       const rn_attr_t* given) {
  rn_str_t name = rn_str(def->name);
  for (; given && given->name.size; ++given)
    if (rn_str_eq(given->name, name)) return &given->value;
  int index = like && like->attrs ? rn_op_attr_index(like->op, name) : -1;
  if (index < 0) return &def->default_value;
  const rn_attr_value_t* same = &like->attrs[index];
  RN_ASSERT(same->is_list == def->is_list && (same->kind == def->kind || same->count == 0));
  return same;
}

rn_status_t rn_ir_make_attrs(rn_ir_t* ir, const rn_op_def_t* op, const rn_ir_node_t* like,
                             const rn_attr_t* given, const rn_attr_value_t** out) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    attrs[a] = *value_of(&op->attrs[a], like, given);
    attrs[a].kind = op->attrs[a].kind;
    attrs[a].is_list = op->attrs[a].is_list;
  }
  *out = attrs;
  return RN_OK;
}

rn_status_t rn_ir_make_edges(rn_ir_t* ir, int32_t input_count, int32_t output_count,
                             rn_dtype_t type, rn_shape_t shape, rn_ir_node_t* node) {
  RN_ASSERT(input_count >= 0 && output_count >= 0);
  node->input_count = input_count;
  node->output_count = output_count;
  RN_RETURN_IF_ERROR(rn_shape_copy(&ir->arena, shape, &shape));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)input_count, &node->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)output_count, &node->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)output_count, &node->shapes));
  for (int32_t o = 0; o < output_count; ++o) {
    node->types[o] = type;
    node->shapes[o] = shape;
  }
  return RN_OK;
}

rn_status_t rn_ir_make_node(rn_ir_t* ir, const rn_op_def_t* op, const rn_ir_node_t* like,
                            const rn_attr_t* given, int32_t input_count, rn_shape_t shape,
                            rn_ir_node_t* out) {
  *out = (rn_ir_node_t){
      .op = op, .requested_device = like->requested_device, .device = like->device, .feed = -1};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&ir->arena, &out->name, "%.*s/%s", RN_STR_ARGS(like->name), op->name));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, input_count, 1, like->types[0], shape, out));
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, op, like, given, &out->attrs));
  out->kernel = rn_kernel_find(op, out->attrs, NULL, like->kernel->device);
  return RN_OK;
}

rn_status_t rn_ir_become_constant(rn_ir_t* ir, const rn_tensor_t* value, rn_ir_node_t* node) {
  const rn_attr_t given[] = {{RN_STR("dtype"), {.type = value->dtype}},
                             {RN_STR("value"), {.tensor = value}},
                             RN_ATTRS_END};
  node->op = rn_op_constant();
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, node->op, NULL, given, &node->attrs));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, 0, 1, value->dtype, rn_tensor_shape(value), node));
  node->constant = value;
  return RN_OK;
}

rn_status_t rn_ir_own_constant(rn_ir_t* ir, rn_tensor_t* value, rn_ir_node_t* node) {
  rn_tensor_t* view = NULL;
  rn_status_t status = rn_vec_reserve(&ir->owned, ir->allocator, ir->owned.count + 1);
  if (rn_ok(status)) status = RN_ARENA_NEW(&ir->arena, &view);
  if (!rn_ok(status)) {
    rn_tensor_clear(value);
    return status;
  }
  *view = *value;
  ir->owned.items[ir->owned.count++] = *value;  // |view| borrows its buffer
  *value = (rn_tensor_t){0};
  return rn_ir_become_constant(ir, view, node);
}

rn_status_t rn_ir_add_constant(rn_ir_t* ir, rn_str_t name, rn_tensor_t* value, int32_t* out_index) {
  rn_ir_node_t node = {.name = name, .feed = -1};
  RN_RETURN_IF_ERROR(rn_ir_own_constant(ir, value, &node));
  return rn_ir_add(ir, &node, out_index);
}
