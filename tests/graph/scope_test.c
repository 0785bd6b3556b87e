// The public builder: names, devices, control dependencies, and the first error.
#include "util.h"

GT_TEST(scope, names) {
  rn_graph_t* graph = gt_graph();
  rn_scope_t* scope = rn_scope_create(graph);
  rn_edge_t a = rn_const_float(scope, 1), b = rn_const_float(scope, 2);
  cr_assert_str_eq(a.node->name.data, "Const");
  cr_assert_str_eq(b.node->name.data, "Const_1");
  rn_scope_name_next(scope, "mine");
  cr_assert_str_eq(rn_const_int32(scope, 2).node->name.data, "mine");
  cr_assert_str_eq(rn_const_int32(scope, 2).node->name.data, "Const_2");
  rn_scope_t* child = rn_scope_child(scope, "layer");
  rn_scope_t* grandchild = rn_scope_child(child, "in");
  rn_scope_t* twin = rn_scope_child(scope, "layer");
  rn_scope_t* other = rn_scope_child(scope, "mine");
  cr_assert_str_eq(rn_const_float(child, 1).node->name.data, "layer/Const");
  cr_assert_str_eq(rn_const_float(grandchild, 1).node->name.data, "layer/in/Const");
  cr_assert_str_eq(rn_const_float(twin, 1).node->name.data, "layer_1/Const");
  cr_assert_str_eq(rn_const_float(other, 1).node->name.data, "mine_1/Const");
  cr_assert(rn_scope_ok(scope));
  cr_assert_str_eq(rn_scope_message(scope), "");
  rn_scope_destroy(other);
  rn_scope_destroy(twin);
  rn_scope_destroy(grandchild);
  rn_scope_destroy(child);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}

static rn_edge_t binary(rn_scope_t* scope, const char* op, rn_edge_t a, rn_edge_t b) {
  rn_op_begin(scope, op);
  rn_op_input(scope, a);
  rn_op_input(scope, b);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

GT_TEST(scope, first_error_stays) {
  rn_graph_t* graph = gt_graph();
  rn_scope_t* scope = rn_scope_create(graph);
  rn_scope_t* child = rn_scope_child(scope, "c");
  rn_edge_t x = rn_const_float(scope, 1), i = rn_const_int32(scope, 1);
  size_t nodes = graph->nodes.count;
  rn_edge_t bad = binary(child, "MatMul", x, i);
  cr_assert_null(bad.node);
  cr_assert_not(rn_scope_ok(scope));
  cr_assert_eq(rn_scope_code(scope), RN_CODE_INVALID_ARGUMENT);
  cr_assert(strstr(rn_scope_message(scope), "Inconsistent values for attr 'T'"));
  cr_assert_null(binary(child, "NoSuchOp", bad, bad).node);
  cr_assert_null(rn_const_float(scope, 3).node);
  cr_assert(strstr(rn_scope_message(child), "Inconsistent values for attr 'T'"));
  cr_assert_eq(graph->nodes.count, nodes);
  rn_scope_destroy(child);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}

GT_TEST(scope, mistakes) {
  rn_graph_t* graph = gt_graph();
  cr_assert_null(rn_scope_create(NULL));
  cr_assert_null(rn_op_finish(NULL));
  rn_scope_destroy(NULL);
  rn_scope_t* scope = rn_scope_create(graph);
  rn_op_input(scope, RN_NO_EDGE);  // without a beginning
  cr_assert_eq(rn_scope_code(scope), RN_CODE_FAILED_PRECONDITION);
  rn_scope_destroy(scope);
  scope = rn_scope_create(graph);
  rn_scope_name_next(scope, "a b");
  cr_assert_null(rn_const_float(scope, 1).node);
  cr_assert_eq(rn_scope_code(scope), RN_CODE_INVALID_ARGUMENT);
  rn_scope_destroy(scope);
  scope = rn_scope_create(graph);
  cr_assert_null(rn_const_scalar(scope, RN_INT8, 300).node);
  cr_assert_eq(rn_scope_code(scope), RN_CODE_INVALID_ARGUMENT);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}

GT_TEST(scope, device_and_controls) {
  rn_graph_t* graph = gt_graph();
  rn_scope_t* scope = rn_scope_create(graph);
  rn_edge_t x = rn_const_float(scope, 1);
  rn_scope_set_device(scope, "/device:CPU:1");
  rn_scope_add_control(scope, x.node);
  rn_edge_t y = rn_const_float(scope, 1);
  cr_assert_str_eq(y.node->device.data, "/device:CPU:1");
  cr_assert_eq(y.node->controls.count, 1);
  rn_scope_t* child = rn_scope_child(scope, "c");
  rn_edge_t z = rn_const_float(child, 1);
  cr_assert(z.node->controls.count == 1 && z.node->device.size > 0);
  rn_scope_clear_controls(scope);
  rn_scope_set_device(scope, NULL);
  rn_edge_t w = rn_const_float(scope, 1);
  cr_assert(w.node->controls.count == 0 && w.node->device.size == 0);
  rn_scope_destroy(child);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}

static const void* value_of(rn_edge_t edge) {
  return rn_node_attr(edge.node, RN_STR("value"))->tensor->data;
}

GT_TEST(scope, scalars_of_every_type) {
  rn_graph_t* graph = gt_graph();
  rn_scope_t* scope = rn_scope_create(graph);
  cr_assert_eq(*(const double*)value_of(rn_const_scalar(scope, RN_DOUBLE, -1.5)), -1.5);
  cr_assert_eq(*(const int64_t*)value_of(rn_const_scalar(scope, RN_INT64, -7)), -7);
  cr_assert_eq(*(const uint8_t*)value_of(rn_const_scalar(scope, RN_UINT8, 255)), 255);
  cr_assert_eq(*(const bool*)value_of(rn_const_scalar(scope, RN_BOOL, 1)), true);
  static const struct {
    double value;
    uint16_t half, bfloat16;
  } rows[] = {{0, 0, 0},
              {1, 0x3C00, 0x3F80},
              {-2, 0xC000, 0xC000},
              {65504, 0x7BFF, 0x4780},
              {1e9, 0x7C00, 0x4E6E},
              {0x1p-24, 0x0001, 0x3380},
              {0x1p-25, 0x0000, 0x3300},
              {0x1.8p-24, 0x0002, 0x33C0},
              {0x1.ff8p-15, 0x03FF, 0x3880},
              {1.0 / 3, 0x3555, 0x3EAB},
              {2049, 0x6800, 0x4500}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rn_edge_t half = rn_const_scalar(scope, RN_HALF, rows[i].value);
    rn_edge_t brain = rn_const_scalar(scope, RN_BFLOAT16, rows[i].value);
    cr_assert_eq(*(const uint16_t*)value_of(half), rows[i].half, "%g: %x", rows[i].value,
                 *(const uint16_t*)value_of(half));
    cr_assert_eq(*(const uint16_t*)value_of(brain), rows[i].bfloat16, "%g: %x", rows[i].value,
                 *(const uint16_t*)value_of(brain));
  }
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}

GT_TEST(scope, attributes_of_every_kind) {
  rn_graph_t* graph = gt_graph();
  rn_scope_t* scope = rn_scope_create(graph);
  rn_op_begin(scope, "NoOp");
  rn_op_attr_string(scope, "_s", "text");
  rn_op_attr_func(scope, "_f", "function");
  rn_op_attr_shape(scope, "_u", NULL, -1);
  rn_op_attr_string_list(scope, "_ls", (const char*[]){"a", "bc"}, 2);
  rn_op_attr_int_list(scope, "_li", (int64_t[]){1, 2, 3}, 3);
  rn_op_attr_float_list(scope, "_lf", (float[]){0.5f}, 1);
  rn_op_attr_bool_list(scope, "_lb", (bool[]){true, false}, 2);
  rn_op_attr_type_list(scope, "_lt", (int[]){RN_FLOAT, RN_STRING}, 2);
  const int64_t dims[] = {2, -1};
  rn_op_attr_shape_list(scope, "_lsh", (const int64_t*[]){dims, NULL}, (int[]){2, 0}, 2);
  rn_op_attr_func_list(scope, "_lfn", (const char*[]){"f", "g"}, 2);
  rn_op_attr_tensor(scope, "_t", RN_INT32, dims, 1, (int32_t[]){4, 5});
  rn_node_t* node = rn_op_finish(scope);
  cr_assert(node, "%s", rn_scope_message(scope));
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_node_summary(&text, node);
  cr_assert_str_eq(rn_strbuf_view(&text).data,
                   "{{node NoOp}} = NoOp[_f=function[], _lb=[true, false], _lf=[0.5], "
                   "_lfn=[f[], g[]], _li=[1, 2, 3], _ls=[\"a\", \"bc\"], _lsh=[[2,?], []], "
                   "_lt=[DT_FLOAT, DT_STRING], _s=\"text\", _t=Tensor<type: int32 shape: [2] "
                   "values: 4 5>, _u=<unknown>]()");
  rn_strbuf_clear(&text);
  rn_strbuf_t bytes = gt_export(graph);
  rn_graph_t* back = gt_graph();
  OK(rn_graph_import(back, rn_strbuf_view(&bytes), NULL, NULL));
  rn_strbuf_t again = gt_export(back);
  cr_assert(rn_str_eq(rn_strbuf_view(&bytes), rn_strbuf_view(&again)));
  rn_strbuf_clear(&bytes);
  rn_strbuf_clear(&again);
  rn_graph_release(back);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
}
