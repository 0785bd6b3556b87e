// Shape inference in graphs: values that determine shapes, and error messages.
#include "util.h"

GT_TEST(infer, message_names_node_attributes_and_shapes) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(2, 3));
  rn_node_t* y = gt_placeholder(g, "y", RN_FLOAT, GT_SHAPE(4, 5));
  rn_edge_t inputs[] = {GT_OUT(x), GT_OUT(y)};
  const rn_str_t places[] = {RN_STR("loc:@x")};
  const rn_attr_t attrs[] = {
      GT_ATTR("_class", .kind = RN_ATTR_STRING, .is_list = true, .count = 1, .list_s = places),
      GT_ATTR("zz", .kind = RN_ATTR_SHAPE, .shape = GT_SHAPE(-1, 3)), GT_NONE};
  rn_node_spec_t spec = {.op = RN_STR("MatMul"),
                         .name = RN_STR("m"),
                         .device = RN_STR("/device:CPU:0"),
                         .inputs = inputs,
                         .input_count = 2,
                         .controls = (rn_node_t*[]){x, y},
                         .control_count = 2,
                         .attrs = attrs,
                         .attr_count = 2};
  rn_node_t* node = NULL;
  FAILS_SAYING(rn_graph_add(g, &spec, &node), INVALID_ARGUMENT,
               "Dimensions must be equal, but are 3 and 4 for '{{node m}} = MatMul[T=DT_FLOAT, "
               "_class=[\"loc:@x\"], grad_a=false, grad_b=false, transpose_a=false, "
               "transpose_b=false, zz=[?,3], _device=\"/device:CPU:0\"](x, y, ^x, ^y)' with input "
               "shapes: [2,3], [4,5].");
  rn_graph_release(g);
}

GT_TEST(infer, unknown_shapes_show_as_a_question_mark) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, RN_SHAPE_UNKNOWN);
  rn_node_t* z = gt_placeholder(g, "z", RN_FLOAT, GT_SHAPE(3));
  FAILS_SAYING(
      gt_add(g, "MatMul", "m", GT_EDGES(GT_OUT(x), GT_OUT(z)), NULL, NULL), INVALID_ARGUMENT,
      "Shape must be rank 2 but is rank 1 for '{{node m}} = MatMul[T=DT_FLOAT, grad_a=false, "
      "grad_b=false, transpose_a=false, transpose_b=false](x, z)' with input shapes: ?, [3].");
  rn_graph_release(g);
}

GT_TEST(infer, constants_are_read_also_through_identities) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(2, 3));
  rn_node_t* sizes = gt_const_int32(g, "c", 1, (int64_t[]){2}, (int32_t[]){3, -1});
  rn_node_t *r = NULL, *identity = NULL;
  OK(gt_add(g, "Reshape", "r", GT_EDGES(GT_OUT(x), GT_OUT(sizes)), NULL, &r));
  cr_assert_str_eq(gt_shape(GT_OUT(r)), "[3,2]");
  OK(gt_add(g, "Identity", "i", GT_EDGES(GT_OUT(sizes)), NULL, &identity));
  OK(gt_add(g, "Identity", "i2", GT_EDGES(GT_OUT(identity)), NULL, &identity));
  OK(gt_add(g, "Reshape", "r2", GT_EDGES(GT_OUT(x), GT_OUT(identity)), NULL, &r));
  cr_assert_str_eq(gt_shape(GT_OUT(r)), "[3,2]");
  rn_node_t* wrong = gt_const_int32(g, "w", 1, (int64_t[]){2}, (int32_t[]){7, 4});
  FAILS_SAYING(
      gt_add(g, "Reshape", "r3", GT_EDGES(GT_OUT(x), GT_OUT(wrong)), NULL, NULL), INVALID_ARGUMENT,
      "Cannot reshape a tensor with 6 elements to shape [7,4] (28 elements) for '{{node r3}} "
      "= Reshape[T=DT_FLOAT, Tshape=DT_INT32](x, w)' with input shapes: [2,3], [2] and with "
      "input tensors computed as partial shapes: input[1] = [7,4].");
  rn_node_t* negative = gt_const_int32(g, "n", 1, (int64_t[]){1}, (int32_t[]){-7});
  rn_node_t* zero = gt_const_int32(g, "z", 0, NULL, (int32_t[]){0});
  FAILS_SAYING(gt_add(g, "Fill", "f", GT_EDGES(GT_OUT(negative), GT_OUT(zero)), NULL, NULL),
               INVALID_ARGUMENT, "Invalid value in tensor used for shape: -7");
  rn_graph_release(g);
}

GT_TEST(infer, partly_known_values) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(2, -1));
  rn_node_t *shape = NULL, *fill = NULL, *pack = NULL, *wide = NULL;
  OK(gt_add(g, "Shape", "s", GT_EDGES(GT_OUT(x)), NULL, &shape));
  rn_node_t* one = gt_const_int32(g, "one", 0, NULL, (int32_t[]){1});
  OK(gt_add(g, "Fill", "f", GT_EDGES(GT_OUT(shape), GT_OUT(one)), NULL, &fill));
  cr_assert_str_eq(gt_shape(GT_OUT(fill)), "[2,?]");
  rn_node_t* n = gt_placeholder(g, "n", RN_INT32, RN_SHAPE_SCALAR);
  rn_node_t* seven = gt_const_int32(g, "seven", 0, NULL, (int32_t[]){7});
  OK(gt_add_list(g, "Pack", "p", GT_EDGES(GT_OUT(n), GT_OUT(seven)), &pack));
  OK(gt_add(g, "Fill", "f2", GT_EDGES(GT_OUT(pack), GT_OUT(one)), NULL, &wide));
  cr_assert_str_eq(gt_shape(GT_OUT(wide)), "[?,7]");
  rn_node_t* q = gt_placeholder(g, "q", RN_FLOAT, GT_SHAPE(5));
  FAILS_SAYING(
      gt_add(g, "BroadcastTo", "w", GT_EDGES(GT_OUT(q), GT_OUT(pack)), NULL, NULL),
      INVALID_ARGUMENT,
      "Dimensions must be equal, but are 5 and 7 for '{{node w}} = BroadcastTo[T=DT_FLOAT, "
      "Tidx=DT_INT32](q, p)' with input shapes: [5], [2] and with input tensors computed as "
      "partial shapes: input[1] = [?,7].");
  rn_graph_release(g);
}

GT_TEST(infer, scalars_in_the_message) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(2, 3));
  rn_node_t* axis = gt_const_int32(g, "a", 0, NULL, (int32_t[]){9});
  rn_edge_t inputs[] = {GT_OUT(x), GT_OUT(x), GT_OUT(axis)};
  rn_node_spec_t spec = {
      .op = RN_STR("ConcatV2"), .name = RN_STR("c"), .inputs = inputs, .input_count = 3};
  rn_node_t* node = NULL;
  FAILS_SAYING(rn_graph_add(g, &spec, &node), INVALID_ARGUMENT,
               "Shape must be at least rank 10 but is rank 2 for '{{node c}} = ConcatV2[N=2, "
               "T=DT_FLOAT, Tidx=DT_INT32](x, x, a)' with input shapes: [2,3], [2,3], [] and with "
               "computed input tensors: input[2] = <9>.");
  rn_graph_release(g);
}

// More inputs and outputs than the common case keeps on the stack.
GT_TEST(infer, many_inputs_and_outputs) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(2, 3));
  rn_edge_t inputs[100];
  for (int i = 0; i < 100; i++) inputs[i] = GT_OUT(x);
  rn_node_t* node = NULL;
  OK(gt_add_list(g, "IdentityN", "n", inputs, 100, &node));
  cr_assert_eq(node->output_count, 100);
  cr_assert_str_eq(gt_shape((rn_edge_t){node, 99}), "[2,3]");
  cr_assert_eq(node->outputs[99].shape.dims, x->outputs[0].shape.dims, "dims are shared");
  cr_assert_eq(x->outputs[0].consumers.count, 100);
  rn_graph_release(g);
}

GT_TEST(infer, resource_handles_carry_type_and_shape) {
  rn_graph_t* g = gt_graph();
  const rn_attr_t attrs[] = {GT_ATTR_TYPE("dtype", RN_FLOAT),
                             GT_ATTR("shape", .kind = RN_ATTR_SHAPE, .shape = GT_SHAPE(2, 3)),
                             GT_NONE};
  rn_node_t *handle = NULL, *read = NULL;
  OK(gt_add(g, "VarHandleOp", "h", NULL, 0, attrs, &handle));
  OK(gt_add(g, "ReadVariableOp", "r", GT_EDGES(GT_OUT(handle)),
            GT_ATTRS(GT_ATTR_TYPE("dtype", RN_FLOAT)), &read));
  cr_assert_str_eq(gt_shape(GT_OUT(read)), "[2,3]");
  FAILS_SAYING(
      gt_add(g, "ReadVariableOp", "i", GT_EDGES(GT_OUT(handle)),
             GT_ATTRS(GT_ATTR_TYPE("dtype", RN_INT32)), NULL),
      INVALID_ARGUMENT,
      "Trying to read variable with wrong dtype. Expected float got int32 for '{{node i}} = "
      "ReadVariableOp[dtype=DT_INT32](h)' with input shapes: [].");
  rn_graph_release(g);
}
