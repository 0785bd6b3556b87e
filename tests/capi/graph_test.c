// Building a graph and reading it back.
#include <stdlib.h>

#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

CT_TEST(CAPI, Graph) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  CT_STR(TF_OperationName(feed), "feed");
  CT_STR(TF_OperationOpType(feed), "Placeholder");
  CT_STR(TF_OperationDevice(feed), "");
  CT_INT(TF_OperationNumOutputs(feed), 1);
  CT_INT(TF_OperationOutputType(ct_out(feed, 0)), TF_INT32);
  CT_INT(TF_OperationOutputListLength(feed, "output", t.status), 1);
  CT_OK(t.status);
  CT_INT(TF_OperationNumInputs(feed), 0);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(feed, 0)), 0);
  CT_INT(TF_OperationNumControlInputs(feed), 0);
  CT_INT(TF_OperationNumControlOutputs(feed), 0);
  CT_META(feed, "dtype", 0, -1, TF_ATTR_TYPE, -1);
  TF_DataType dtype;
  TF_OperationGetAttrType(feed, "dtype", &dtype, t.status);
  CT_OK(t.status);
  CT_INT(dtype, TF_INT32);

  TF_Operation* three = ct_scalar(&t, t.graph, "scalar", 3);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(feed, 0), ct_out(three, 0));
  CT_STR(TF_OperationOpType(add), "AddN");
  CT_INT(TF_OperationNumInputs(add), 2);
  CT_INT(TF_OperationInputListLength(add, "inputs", t.status), 2);
  CT_OK(t.status);
  CT_INT(TF_OperationInputType((TF_Input){add, 0}), TF_INT32);
  CT_INT(TF_OperationInputType((TF_Input){add, 1}), TF_INT32);
  TF_Output in0 = TF_OperationInput((TF_Input){add, 0});
  cr_assert(in0.oper == feed && in0.index == 0);
  TF_Output in1 = TF_OperationInput((TF_Input){add, 1});
  cr_assert(in1.oper == three && in1.index == 0);
  TF_Output all[2];
  TF_OperationAllInputs(add, all, 2);
  cr_assert(all[0].oper == feed && all[1].oper == three);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(feed, 0)), 1);
  TF_Input consumer[2];
  CT_INT(TF_OperationOutputConsumers(ct_out(feed, 0), consumer, 2), 1);
  cr_assert(consumer[0].oper == add && consumer[0].index == 0);
  CT_META(add, "N", 0, -1, TF_ATTR_INT, -1);
  CT_META(add, "T", 0, -1, TF_ATTR_TYPE, -1);
  int64_t n = 0;
  TF_OperationGetAttrInt(add, "N", &n, t.status);
  CT_OK(t.status);
  CT_INT(n, 2);

  TF_Operation* neg = ct_neg(&t, t.graph, "neg", add);
  cr_assert_eq(TF_GraphOperationByName(t.graph, "neg"), neg);
  cr_assert_eq(TF_GraphOperationByName(t.graph, "feed"), feed);
  cr_assert_null(TF_GraphOperationByName(t.graph, "missing"));

  // Every operation is met once, in the order it was added.
  TF_Operation* expected[] = {feed, three, add, neg};
  size_t pos = 0;
  for (int i = 0; i < 4; ++i) cr_assert_eq(TF_GraphNextOperation(t.graph, &pos), expected[i]);
  cr_assert_null(TF_GraphNextOperation(t.graph, &pos));
  cr_assert_null(TF_GraphNextOperation(t.graph, &pos));

  char* text = ct_graph_text(t.graph);
  CT_STR(text,
         "feed = Placeholder()\n"
         "scalar = Const()\n"
         "add = AddN(feed, scalar)\n"
         "neg = Neg(add)\n");
  free(text);
  ct_close(&t);
}

CT_TEST(CAPI, NodeDefBytes) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Neg", "neg");
  TF_SetDevice(desc, "/cpu:0");
  TF_AddInput(desc, ct_out(feed, 0));
  TF_Operation* neg = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_Buffer* node = ct_node_def(neg);
  cr_assert(pb_has_string(node->data, node->length, 1, "neg"));
  cr_assert(pb_has_string(node->data, node->length, 2, "Neg"));
  cr_assert(pb_has_string(node->data, node->length, 3, "feed"));
  cr_assert(pb_has_string(node->data, node->length, 4, "/cpu:0"));
  pb_field_t attr, value, type;
  cr_assert(pb_find_named(node->data, node->length, 5, 1, "T", &attr));
  cr_assert(pb_find(attr.data, attr.length, 2, &value));
  cr_assert(pb_find(value.data, value.length, 6, &type));
  CT_INT(type.value, TF_FLOAT);
  CT_INT(pb_count(node->data, node->length, 5), 1);
  TF_DeleteBuffer(node);
  ct_close(&t);
}

CT_TEST(CAPI, DeviceStringsAreKeptAsGiven) {
  ct_t t = ct_open();
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "NoOp", "n");
  TF_SetDevice(desc, "foo");
  TF_Operation* n = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  CT_STR(TF_OperationDevice(n), "foo");
  TF_SetRequestedDevice(t.graph, n, "/device:CPU:0");
  TF_Buffer* node = ct_node_def(n);
  cr_assert(pb_has_string(node->data, node->length, 4, "/device:CPU:0"));
  TF_DeleteBuffer(node);
  ct_close(&t);
}

CT_TEST(CAPI, ControlEdges) {
  ct_t t = ct_open();
  TF_Operation* a = ct_scalar(&t, t.graph, "a", 1);
  TF_Operation* b = ct_scalar(&t, t.graph, "b", 2);
  TF_Operation* c = ct_scalar(&t, t.graph, "c", 3);
  TF_Operation* add = ct_add_after(&t, t.graph, "add", a, b, c);
  CT_INT(TF_OperationNumInputs(add), 2);
  CT_INT(TF_OperationNumControlInputs(add), 1);
  TF_Operation* found[2] = {NULL, NULL};
  CT_INT(TF_OperationGetControlInputs(add, found, 2), 1);
  cr_assert_eq(found[0], c);
  CT_INT(TF_OperationNumControlOutputs(c), 1);
  CT_INT(TF_OperationGetControlOutputs(c, found, 2), 1);
  cr_assert_eq(found[0], add);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(c, 0)), 0);

  TF_Operation* d = ct_scalar(&t, t.graph, "d", 4);
  TF_AddOperationControlInput(t.graph, add, d);
  CT_INT(TF_OperationNumControlInputs(add), 2);
  char* text = ct_graph_text(t.graph);
  CT_STR(text, "a = Const()\nb = Const()\nc = Const()\nadd = AddN(a, b, ^c, ^d)\nd = Const()\n");
  free(text);
  TF_RemoveAllControlInputs(t.graph, add);
  CT_INT(TF_OperationNumControlInputs(add), 0);
  CT_INT(TF_OperationNumControlOutputs(c), 0);
  CT_INT(TF_OperationNumInputs(add), 2);
  CT_INT(ct_take_int32(ct_run0(&t, add)), 3);
  ct_close(&t);
}

CT_TEST(CAPI, ListArguments) {
  ct_t t = ct_open();
  int32_t values[] = {1, 2, 3};
  TF_Operation* vector = ct_const(&t, t.graph, "v", ct_int32_vector(3, values));
  TF_Operation* split = ct_split3(&t, t.graph, "split3", vector);
  CT_INT(TF_OperationNumOutputs(split), 3);
  CT_INT(TF_OperationOutputListLength(split, "output", t.status), 3);
  CT_OK(t.status);
  CT_INT(TF_OperationInputListLength(split, "value", t.status), 1);
  CT_OK(t.status);
  CT_INT(TF_OperationOutputListLength(split, "bogus", t.status), -1);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Output arg 'bogus' not found");
  CT_INT(TF_OperationInputListLength(split, "bogus", t.status), -1);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Input arg 'bogus' not found");
  // Later outputs carry their number in the GraphDef.
  TF_Operation* neg = ct_unary(&t, t.graph, "Neg", "neg", ct_out(split, 2));
  TF_Buffer* node = ct_node_def(neg);
  cr_assert(pb_has_string(node->data, node->length, 3, "split3:2"));
  TF_DeleteBuffer(node);
  TF_Tensor* result = ct_run0(&t, neg);
  CT_INT(((int32_t*)TF_TensorData(result))[0], -3);
  TF_DeleteTensor(result);
  ct_close(&t);
}

CT_TEST(CAPI, SetShape) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Output out = ct_out(feed, 0);
  CT_INT(TF_GraphGetTensorNumDims(t.graph, out, t.status), -1);
  CT_OK(t.status);
  // Unknown says nothing new.
  TF_GraphSetTensorShape(t.graph, out, NULL, -1, t.status);
  CT_OK(t.status);
  CT_INT(TF_GraphGetTensorNumDims(t.graph, out, t.status), -1);

  int64_t dims[] = {2, -1};
  TF_GraphSetTensorShape(t.graph, out, dims, 2, t.status);
  CT_OK(t.status);
  CT_INT(TF_GraphGetTensorNumDims(t.graph, out, t.status), 2);
  int64_t got[3] = {0, 0, 0};
  TF_GraphGetTensorShape(t.graph, out, got, 2, t.status);
  CT_OK(t.status);
  CT_INT(got[0], 2);
  CT_INT(got[1], -1);

  // Less is merged with what is known, more refines it.
  TF_GraphSetTensorShape(t.graph, out, NULL, -1, t.status);
  CT_OK(t.status);
  CT_INT(TF_GraphGetTensorNumDims(t.graph, out, t.status), 2);
  dims[1] = 3;
  TF_GraphSetTensorShape(t.graph, out, dims, 2, t.status);
  CT_OK(t.status);
  TF_GraphGetTensorShape(t.graph, out, got, 2, t.status);
  CT_OK(t.status);
  CT_INT(got[1], 3);

  // A contradiction is refused and changes nothing.
  dims[1] = 4;
  TF_GraphSetTensorShape(t.graph, out, dims, 2, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Dimension 1 in both shapes must be equal");
  TF_SetStatus(t.status, TF_OK, "");
  TF_GraphGetTensorShape(t.graph, out, got, 2, t.status);
  CT_OK(t.status);
  CT_INT(got[1], 3);
  TF_GraphSetTensorShape(t.graph, out, dims, 1, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Shapes must be equal rank, but are 2 and 1");

  // The caller's array must be of the right length.
  TF_GraphGetTensorShape(t.graph, out, got, 3, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TF_SetStatus(t.status, TF_OK, "");

  TF_Operation* three = ct_scalar(&t, t.graph, "scalar", 3);
  CT_INT(TF_GraphGetTensorNumDims(t.graph, ct_out(three, 0), t.status), 0);
  TF_GraphGetTensorShape(t.graph, ct_out(three, 0), NULL, 0, t.status);
  CT_OK(t.status);
  ct_close(&t);
}

CT_TEST(CAPI, ShapesFlowForward) {
  ct_t t = ct_open();
  int64_t dims[] = {-1, 4};
  TF_Operation* x = ct_placeholder_shaped(&t, t.graph, "x", TF_FLOAT, dims, 2);
  float w[8] = {0};
  TF_Operation* weights = ct_const(&t, t.graph, "w", ct_float_matrix(4, 2, w));
  TF_Operation* y = ct_binary(&t, t.graph, "MatMul", "y", ct_out(x, 0), ct_out(weights, 0));
  int64_t got[2] = {0, 0};
  TF_GraphGetTensorShape(t.graph, ct_out(y, 0), got, 2, t.status);
  CT_OK(t.status);
  CT_INT(got[0], -1);
  CT_INT(got[1], 2);
  // Reshape by a constant: the value matters.
  int32_t target[] = {-1, 2, 1};
  TF_Operation* shape = ct_const(&t, t.graph, "shape", ct_int32_vector(3, target));
  TF_Operation* r = ct_binary(&t, t.graph, "Reshape", "r", ct_out(y, 0), ct_out(shape, 0));
  CT_INT(TF_GraphGetTensorNumDims(t.graph, ct_out(r, 0), t.status), 3);
  int64_t got3[3] = {0, 0, 0};
  TF_GraphGetTensorShape(t.graph, ct_out(r, 0), got3, 3, t.status);
  CT_OK(t.status);
  CT_INT(got3[1], 2);
  CT_INT(got3[2], 1);
  ct_close(&t);
}

CT_TEST(CAPI, ShapeInferenceError) {
  // The failed operation leaves no trace: its name is free again.
  ct_t t = ct_open();
  float values[6] = {0};
  TF_Operation* a = ct_const(&t, t.graph, "a", ct_float_matrix(2, 3, values));
  TF_Operation* b = ct_const(&t, t.graph, "b", ct_float_matrix(2, 3, values));
  TF_Operation* bad = ct_binary_try(t.graph, "MatMul", "m", ct_out(a, 0), ct_out(b, 0), t.status);
  cr_assert_null(bad);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Dimensions must be equal, but are 3 and 2 for '{{node m}} = MatMul");
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "with input shapes: [2,3], [2,3].");
  cr_assert_null(TF_GraphOperationByName(t.graph, "m"));
  float wide[9] = {0};
  TF_Operation* c = ct_const(&t, t.graph, "c", ct_float_matrix(3, 3, wide));
  ct_binary(&t, t.graph, "MatMul", "m", ct_out(a, 0), ct_out(c, 0));
  ct_close(&t);
}

CT_TEST(CAPI, ShapeInferenceErrorInVector) {
  ct_t t = ct_open();
  int32_t three[] = {1, 2, 3}, four[] = {1, 2, 3, 4};
  TF_Operation* a = ct_const(&t, t.graph, "vec1", ct_int32_vector(3, three));
  TF_Operation* b = ct_const(&t, t.graph, "vec2", ct_int32_vector(4, four));
  cr_assert_null(ct_add_try(t.graph, "add", ct_out(a, 0), ct_out(b, 0), t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "From merging shape 0 with other shapes.");
  ct_close(&t);
}

CT_TEST(CAPI, BadOperations) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  // The same name twice.
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "NoOp", "feed");
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Duplicate node name in graph: 'feed'");
  // An unknown op.
  desc = TF_NewOperation(t.graph, "NoSuchOp", "x");
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Op type not registered 'NoSuchOp' in binary");
  // An input too few, a type that does not match, an attribute missing.
  desc = TF_NewOperation(t.graph, "Less", "less");
  TF_AddInput(desc, ct_out(feed, 0));
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "less");
  TF_Operation* f = ct_scalar_float(&t, t.graph, "f", 1);
  cr_assert_null(ct_binary_try(t.graph, "Less", "less", ct_out(feed, 0), ct_out(f, 0), t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "less");
  desc = TF_NewOperation(t.graph, "Placeholder", "p");
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "dtype");
  // The graph still works.
  TF_Operation* neg = ct_neg(&t, t.graph, "less", feed);
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(4), neg)), -4);
  ct_close(&t);
}

CT_TEST(CAPI, UpdateEdge) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* add = ct_add(&t, t.graph, "add", ct_out(one, 0), ct_out(two, 0));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", add);
  // neg reads one instead of add.
  TF_UpdateEdge(t.graph, ct_out(one, 0), (TF_Input){neg, 0}, t.status);
  CT_OK(t.status);
  char* text = ct_graph_text(t.graph);
  CT_STR(text, "one = Const()\ntwo = Const()\nadd = AddN(one, two)\nneg = Neg(one)\n");
  free(text);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(add, 0)), 0);
  CT_INT(TF_OperationOutputNumConsumers(ct_out(one, 0)), 2);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  ct_close(&t);
}

CT_TEST(CAPI, UpdateEdgeErrors) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  TF_UpdateEdge(t.graph, ct_out(one, 1), (TF_Input){neg, 0}, t.status);
  CT_ERROR(t.status, TF_OUT_OF_RANGE,
           "Cannot update edge. Output index [1] is greater than the number of total outputs [1].");
  TF_UpdateEdge(t.graph, ct_out(one, 0), (TF_Input){neg, 1}, t.status);
  CT_ERROR(t.status, TF_OUT_OF_RANGE,
           "Cannot update edge. Input index [1] is greater than the number of total inputs [1].");
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  ct_close(&t);
}

CT_TEST(CAPI, UpdateEdgeOfASessionThatRan) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* two = ct_scalar(&t, t.graph, "two", 2);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  TF_UpdateEdge(t.graph, ct_out(two, 0), (TF_Input){neg, 0}, t.status);
  CT_OK(t.status);
  // What a session has run stays as it was; a new session sees the change.
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  TF_DeleteSession(t.session, t.status);
  CT_OK(t.status);
  t.session = NULL;
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -2);
  ct_close(&t);
}

CT_TEST(CAPI, GetOpDef) {
  ct_t t = ct_open();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphGetOpDef(t.graph, "Add", buffer, t.status);
  CT_OK(t.status);
  cr_assert(pb_has_string(buffer->data, buffer->length, 1, "Add"));
  CT_INT(pb_count(buffer->data, buffer->length, 2), 2);  // input_arg
  CT_INT(pb_count(buffer->data, buffer->length, 3), 1);  // output_arg
  CT_INT(pb_count(buffer->data, buffer->length, 4), 1);  // attr
  // The same bytes as in the list of all ops.
  TF_Buffer* all = TF_GetAllOpList();
  pb_field_t add;
  cr_assert(pb_find_named(all->data, all->length, 1, 1, "Add", &add));
  CT_INT(add.length, buffer->length);
  CT_INT(memcmp(add.data, buffer->data, add.length), 0);
  TF_DeleteBuffer(all);
  TF_DeleteBuffer(buffer);

  buffer = TF_NewBuffer();
  TF_GraphGetOpDef(t.graph, "MyFakeOp", buffer, t.status);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "Op type not registered 'MyFakeOp' in binary");
  TF_DeleteBuffer(buffer);
  ct_close(&t);
}

CT_TEST(CAPI, GraphVersions) {
  ct_t t = ct_open();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphVersions(t.graph, buffer, t.status);
  CT_OK(t.status);
  pb_field_t producer;
  cr_assert(pb_find(buffer->data, buffer->length, 1, &producer));
  CT_INT(producer.value, 2474);
  TF_Buffer* graph_def = ct_graph_def(t.graph);
  pb_field_t versions;
  cr_assert(pb_find(graph_def->data, graph_def->length, 4, &versions));
  CT_INT(versions.length, buffer->length);
  CT_INT(memcmp(versions.data, buffer->data, buffer->length), 0);
  TF_DeleteBuffer(graph_def);
  TF_DeleteBuffer(buffer);
  ct_close(&t);
}

CT_TEST(CAPI, TryEvaluateConstant) {
  ct_t t = ct_open();
  TF_Operation* a = ct_scalar(&t, t.graph, "a", 20);
  TF_Operation* b = ct_scalar(&t, t.graph, "b", 22);
  TF_Operation* sum = ct_binary(&t, t.graph, "AddV2", "sum", ct_out(a, 0), ct_out(b, 0));
  TF_Tensor* value = NULL;
  CT_INT(TF_TryEvaluateConstant(t.graph, ct_out(sum, 0), &value, t.status), 1);
  CT_OK(t.status);
  CT_INT(ct_take_int32(value), 42);
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", feed);
  value = NULL;
  CT_INT(TF_TryEvaluateConstant(t.graph, ct_out(neg, 0), &value, t.status), 0);
  CT_OK(t.status);
  cr_assert_null(value);
  // One with a default may be fed, too.
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "PlaceholderWithDefault", "given");
  TF_AddInput(desc, ct_out(a, 0));
  TF_SetAttrShape(desc, "shape", NULL, 0);
  TF_Operation* given = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  CT_INT(TF_TryEvaluateConstant(t.graph, ct_out(given, 0), &value, t.status), 0);
  CT_OK(t.status);
  cr_assert_null(value);
  ct_close(&t);
}

CT_TEST(CAPI, GraphOutlivedByItsSession) {
  // Deleting the graph first is allowed: the session keeps what it needs.
  ct_t t = ct_open();
  TF_Operation* a = ct_scalar(&t, t.graph, "a", 20);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", a);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -20);
  TF_DeleteGraph(t.graph);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -20);
  t.graph = NULL;
  ct_close(&t);
}

CT_TEST(CAPI, SetAndClearAttr) {
  ct_t t = ct_open();
  TF_Operation* a = ct_scalar(&t, t.graph, "a", 20);
  pb_t value = {0};
  pb_varint(&value, 3, 7);  // AttrValue.i
  TF_Buffer* buffer = TF_NewBufferFromString(value.data, value.length);
  TF_SetAttr(t.graph, a, "_mine", buffer, t.status);
  CT_OK(t.status);
  int64_t got = 0;
  TF_OperationGetAttrInt(a, "_mine", &got, t.status);
  CT_OK(t.status);
  CT_INT(got, 7);
  TF_ClearAttr(t.graph, a, "_mine", t.status);
  CT_OK(t.status);
  TF_OperationGetAttrInt(a, "_mine", &got, t.status);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "No attr named '_mine' in NodeDef:");
  (void)TF_OperationGetAttrMetadata(a, "_mine", t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Operation 'a' has no attr named '_mine'.");
  TF_DeleteBuffer(buffer);
  buffer = TF_NewBufferFromString("\xff\xff", 2);
  TF_SetAttr(t.graph, a, "_mine", buffer, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TF_DeleteBuffer(buffer);
  pb_free(&value);
  ct_close(&t);
}

CT_TEST(CAPI, GraphDebugString) {
  ct_t t = ct_open();
  ct_scalar(&t, t.graph, "scalar_name", 20);
  size_t length = 0;
  const char* text = TF_GraphDebugString(t.graph, &length);
  cr_assert_not_null(text);
  CT_INT(strlen(text), length);
  cr_assert_not_null(strstr(text, "scalar_name"));
  free((void*)(uintptr_t)text);
  ct_close(&t);
}

CT_TEST(CAPI, GraphWithoutFunctions) {
  ct_t t = ct_open();
  CT_INT(TF_GraphNumFunctions(t.graph), 0);
  TF_Function* functions[1];
  CT_INT(TF_GraphGetFunctions(t.graph, functions, 1, t.status), 0);
  CT_OK(t.status);
  ct_close(&t);
}
