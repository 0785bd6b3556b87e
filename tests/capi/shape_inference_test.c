// Shape functions written in C through ops.h, tested from outside: each belongs to an op that a
// graph then uses.
#include <stdio.h>

#include "ops_c.h"
#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

static void register_op(const char* name, int inputs,
                        void (*shape)(TF_ShapeInferenceContext*, TF_Status*)) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  static const char* const specs[] = {"x: float", "y: float"};
  for (int i = 0; i < inputs; ++i) TF_OpDefinitionBuilderAddInput(op, specs[i]);
  TF_OpDefinitionBuilderAddOutput(op, "z: float");
  TF_OpDefinitionBuilderAddAttr(op, "Tout: type = DT_INT32");
  if (shape != NULL) TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape);
  TF_RegisterOpDefinition(op, s);
  CT_OK(s);
  TF_DeleteStatus(s);
}

// The op's output shape as text for a [2,?,4] input (and a [7] second one), "<unknown>" or the
// error.
static void infer(const char* op, int inputs, char* text, size_t size) {
  ct_t t = ct_open();
  int64_t dims[] = {2, -1, 4}, seven[] = {7};
  TF_Operation* x = ct_placeholder_shaped(&t, t.graph, "x", TF_FLOAT, dims, 3);
  TF_Operation* y = ct_placeholder_shaped(&t, t.graph, "y", TF_FLOAT, seven, 1);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, op, "op");
  if (inputs > 0) TF_AddInput(desc, ct_out(x, 0));
  if (inputs > 1) TF_AddInput(desc, ct_out(y, 0));
  TF_Operation* oper = TF_FinishOperation(desc, t.status);
  if (oper == NULL) {
    snprintf(text, size, "%s", TF_Message(t.status));
    ct_close(&t);
    return;
  }
  CT_OK(t.status);
  int rank = TF_GraphGetTensorNumDims(t.graph, ct_out(oper, 0), t.status);
  if (rank < 0) {
    snprintf(text, size, "<unknown>");
  } else {
    int64_t found[8];
    TF_GraphGetTensorShape(t.graph, ct_out(oper, 0), found, rank, t.status);
    CT_OK(t.status);
    size_t at = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank; ++i) {
      at += (size_t)snprintf(text + at, size - at, "%s%lld", i > 0 ? "," : "", (long long)found[i]);
    }
    snprintf(text + at, size - at, "]");
  }
  ct_close(&t);
}

#define SHAPE_TEST(name, inputs, expected)                                                      \
  static void shape_##name(TF_ShapeInferenceContext* c, TF_Status* s);                          \
  CT_TEST(OpsTest, name) {                                                                      \
    register_op("Op" #name, inputs, shape_##name);                                              \
    char text[512];                                                                             \
    infer("Op" #name, inputs, text, sizeof text);                                               \
    cr_assert(strstr(text, expected) == text, "'%s' does not start with '%s'", text, expected); \
  }                                                                                             \
  static void shape_##name(TF_ShapeInferenceContext* c, TF_Status* s)

SHAPE_TEST(TestShapeInference_IdentityFunction, 1, "[2,-1,4]") {
  TF_ShapeHandle* h = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  CT_OK(s);
  CT_INT(TF_ShapeInferenceContextNumInputs(c), 1);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(TestShapeInference_UnknownShape, 1, "<unknown>") {
  TF_ShapeInferenceContextSetUnknownShape(c, s);
}

SHAPE_TEST(TestShapeInference_ScalarShape, 1, "[]") {
  TF_ShapeHandle* h = TF_ShapeInferenceContextScalar(c);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(TestShapeInference_VectorizeFunction, 1, "[19]") {
  TF_ShapeHandle* h = TF_ShapeInferenceContextVectorFromSize(c, 19);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(TestShapeInference_ConcatenateShapes, 2, "[2,-1,4,7]") {
  TF_ShapeHandle* a = TF_NewShapeHandle();
  TF_ShapeHandle* b = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(c, 0, a, s);
  TF_ShapeInferenceContextGetInput(c, 1, b, s);
  TF_ShapeInferenceContextConcatenateShapes(c, a, b, a, s);
  TF_ShapeInferenceContextSetOutput(c, 0, a, s);
  TF_DeleteShapeHandle(a);
  TF_DeleteShapeHandle(b);
}

SHAPE_TEST(TestShapeInference_Subshape, 1, "[-1,4]") {
  TF_ShapeHandle* h = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  TF_ShapeInferenceContextSubshape(c, h, 1, -1, h, s);
  CT_OK(s);
  CT_INT(TF_ShapeInferenceContextRank(c, h), 1);
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  TF_ShapeInferenceContextSubshape(c, h, 1, 3, h, s);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(TestShapeInference_WithRank, 1, "[2,-1,4]") {
  TF_ShapeHandle* h = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  CT_INT(TF_ShapeInferenceContextRankKnown(c, h), 1);
  CT_INT(TF_ShapeInferenceContextRank(c, h), 3);
  TF_ShapeInferenceContextWithRankAtLeast(c, h, 2, h, s);
  CT_OK(s);
  TF_ShapeInferenceContextWithRankAtMost(c, h, 3, h, s);
  CT_OK(s);
  TF_ShapeInferenceContextWithRank(c, h, 3, h, s);
  CT_OK(s);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(TestShapeInference_WithRankFails, 1, "Shape must be rank 5 but is rank 3") {
  TF_ShapeHandle* h = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  TF_ShapeInferenceContextWithRank(c, h, 5, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(DimensionHandleValueKnown, 1, "[4]") {
  TF_ShapeHandle* h = TF_NewShapeHandle();
  TF_DimensionHandle* d = TF_NewDimensionHandle();
  TF_ShapeInferenceContextGetInput(c, 0, h, s);
  TF_ShapeInferenceContextDim(c, h, 1, d);
  CT_INT(TF_DimensionHandleValueKnown(d), 0);
  TF_ShapeInferenceContextDim(c, h, -1, d);
  CT_INT(TF_DimensionHandleValueKnown(d), 1);
  CT_INT(TF_DimensionHandleValue(d), 4);
  TF_ShapeHandle* v = TF_ShapeInferenceContextVectorFromSize(c, (size_t)TF_DimensionHandleValue(d));
  TF_ShapeInferenceContextSetOutput(c, 0, v, s);
  TF_DeleteShapeHandle(v);
  TF_DeleteShapeHandle(h);
  TF_DeleteDimensionHandle(d);
}

SHAPE_TEST(AttributeAccessors, 1, "[]") {
  TF_DataType type;
  TF_ShapeInferenceContext_GetAttrType(c, "Tout", &type, s);
  CT_OK(s);
  CT_INT(type, TF_INT32);
  TF_ShapeInferenceContext_GetAttrType(c, "absent", &type, s);
  CT_CODE(s, TF_NOT_FOUND);
  TF_SetStatus(s, TF_OK, "");
  TF_ShapeHandle* h = TF_ShapeInferenceContextScalar(c);
  TF_ShapeInferenceContextSetOutput(c, 0, h, s);
  TF_DeleteShapeHandle(h);
}

SHAPE_TEST(ShapeFunctionFails, 1, "no such luck") {
  (void)c;
  TF_SetStatus(s, TF_INVALID_ARGUMENT, "no such luck");
}

CT_TEST(OpsTest, TestBasicOpRegistration) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("PlainOp");
  TF_OpDefinitionBuilderAddAttr(op, "mode: string");
  TF_OpDefinitionBuilderAddInput(op, "left: int8");
  TF_OpDefinitionBuilderAddInput(op, "right: int64");
  TF_OpDefinitionBuilderAddOutput(op, "sum: int64");
  TF_OpDefinitionBuilderSetIsCommutative(op, true);
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderDeprecated(op, 4, "use AnotherOp");
  TF_RegisterOpDefinition(op, s);
  CT_OK(s);
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(graph, "PlainOp", def, s);
  CT_OK(s);
  // OpDef: input_arg 2, output_arg 3, attr 4, deprecation 8, is_commutative 18, is_stateful 17.
  CT_INT(pb_count(def->data, def->length, 2), 2);
  CT_INT(pb_count(def->data, def->length, 3), 1);
  pb_field_t field, nested;
  cr_assert(pb_find(def->data, def->length, 4, &field));
  cr_assert(pb_has_string(field.data, field.length, 1, "mode"));
  cr_assert(pb_has_string(field.data, field.length, 2, "string"));
  cr_assert(pb_find(def->data, def->length, 8, &field));
  cr_assert(pb_find(field.data, field.length, 1, &nested));
  CT_INT(nested.value, 4);
  cr_assert(pb_has_string(field.data, field.length, 2, "use AnotherOp"));
  cr_assert(pb_find(def->data, def->length, 18, &field) && field.value == 1);
  cr_assert(pb_find(def->data, def->length, 17, &field) && field.value == 1);
  TF_DeleteBuffer(def);
  CT_INT(TF_OpIsStateful("PlainOp", s), 1);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(s);
}

CT_TEST(OpsTest, OpWithoutShapeFunction) {
  register_op("ShapelessOp", 1, NULL);
  char text[512];
  infer("ShapelessOp", 1, text, sizeof text);
  CT_STR(text,
         "No shape inference function exists for op 'ShapelessOp', did you forget to define it?");
}

CT_TEST(OpsTest, BuilderThatIsNotRegistered) {
  TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("NeverRegistered"));
  TF_DeleteOpDefinitionBuilder(NULL);
}
