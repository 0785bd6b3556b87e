// How passes make nodes: where attributes come from, and who owns the values of constants.
#include "step/make.h"

#include "graph_of_step.h"

// A matmul by a transposed matrix, as passes see it.
static rn_ir_t* product(rt_t* rt, int32_t* out_index) {
  const int64_t dims[2] = {3, 3};
  rn_edge_t x = rn_Placeholder(rt->s, RN_DOUBLE, .shape = {true, dims, 2});
  rt_step_t step = {0};
  rt_fetch(&step, rn_MatMul(rt->s, x, x, .transpose_b = true));
  rn_ir_t* ir = graph_of_step(rt, &step);
  *out_index = ir->fetches[0].node;
  return ir;
}

RT_TEST(make, attributes_by_precedence) {
  rt_t rt = rt_begin(1);
  int32_t index;
  rn_ir_t* ir = product(&rt, &index);
  const rn_ir_node_t like = *rn_ir_node(ir, index);
  const rn_op_def_t* op = rn_op_find(RN_STR("_PackedMatMul"));
  const rn_attr_t given[] = {
      {RN_STR("backwards"), {.b = true}}, {RN_STR("unknown"), {.i = 7}}, RN_ATTRS_END};
  rn_ir_node_t made = {.op = op, .feed = -1};
  OK(rn_ir_make_attrs(ir, op, &like, given, &made.attrs));
  cr_assert_eq(rn_ir_attr(&made, RN_STR("T"))->type, RN_DOUBLE);
  cr_assert(rn_ir_flag(&made, "transpose_b"));
  cr_assert_not(rn_ir_flag(&made, "transpose_a"));
  cr_assert(rn_ir_flag(&made, "backwards"));
  for (int a = 0; a < op->attr_count; ++a) cr_assert_eq(made.attrs[a].kind, op->attrs[a].kind);

  // What is given comes before what a similar node has; the rest are defaults.
  const rn_attr_t other[] = {{RN_STR("transpose_b"), {.b = false}}, RN_ATTRS_END};
  OK(rn_ir_make_attrs(ir, op, &like, other, &made.attrs));
  cr_assert_not(rn_ir_flag(&made, "transpose_b"));
  made.op = rn_op_find(RN_STR("_ConvThen"));
  OK(rn_ir_make_attrs(ir, made.op, NULL, NULL, &made.attrs));
  const rn_attr_value_t* dilations = rn_ir_attr(&made, RN_STR("dilations"));
  cr_assert(dilations->is_list);
  cr_assert_eq(dilations->count, 4);
  cr_assert_eq(rn_ir_attr(&made, RN_STR("strides"))->count, 0);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

RT_TEST(make, node_like_another) {
  rt_t rt = rt_begin(1);
  int32_t index, added;
  rn_ir_t* ir = product(&rt, &index);
  const rn_ir_node_t like = *rn_ir_node(ir, index);
  int64_t dims[2] = {5, 3};
  rn_ir_node_t made;
  OK(rn_ir_make_node(ir, like.op, &like, NULL, 2, (rn_shape_t){2, dims}, &made));
  dims[0] = 9;  // the shape was copied
  cr_assert(rn_str_is(made.name, "MatMul/MatMul"));
  cr_assert_eq(made.kernel, like.kernel);
  cr_assert_eq(made.input_count, 2);
  cr_assert_eq(made.types[0], RN_DOUBLE);
  cr_assert_eq(made.shapes[0].dims[0], 5);
  OK(rn_ir_add(ir, &made, &added));
  cr_assert_eq(rn_ir_node(ir, added)->feed, -1);
  rn_ir_destroy(ir);
  rt_end(&rt);
}

RT_TEST(make, constant_is_owned) {
  rt_t rt = rt_begin(1);
  int32_t index, added;
  rn_ir_t* ir = product(&rt, &index);
  rn_tensor_t value = rt_scalar(4);
  OK(rn_ir_add_constant(ir, RN_STR("four"), &value, &added));
  cr_assert_not(rn_tensor_is_set(&value));
  const rn_ir_node_t* node = rn_ir_node(ir, added);
  cr_assert(rn_ir_is_role(node, RN_ROLE_CONSTANT));
  cr_assert_eq(rt_value(node->constant), 4);
  cr_assert_eq(rn_ir_attr(node, RN_STR("value"))->tensor, node->constant);
  cr_assert_eq(rn_ir_attr(node, RN_STR("dtype"))->type, RN_FLOAT);
  cr_assert_eq(node->shapes[0].rank, 0);
  rn_ir_destroy(ir);  // a leak check finds the value if this does not free it
  rt_end(&rt);
}
