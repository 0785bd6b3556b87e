// Attributes of every kind: setting, describing and reading them back, and errors. Registers its
// own ops through ops.h.
#include <stdio.h>

#include "ops_c.h"
#include "util.h"

static void unknown_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}

static void register_op(const char* kind, const char* type) {
  char name[64], attr[64];
  snprintf(name, sizeof name, "CApiAttributesTestOp%s", kind);
  snprintf(attr, sizeof attr, "v: %s", type);
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddAttr(builder, attr);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(builder, status);
  CT_OK(status);
  TF_DeleteStatus(status);
}

static void register_ops(void) {
  static const char* const kinds[] = {"string", "int", "float", "bool", "type", "shape", "tensor"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    char list[32], type[32];
    snprintf(list, sizeof list, "list%s", kinds[i]);
    snprintf(type, sizeof type, "list(%s)", kinds[i]);
    register_op(kinds[i], kinds[i]);
    register_op(list, type);
  }
}

#define ATTR_TEST(name) CT_TEST(CApiAttributesTest, name, .init = register_ops)

static TF_OperationDescription* begin(ct_t* t, const char* kind) {
  *t = ct_open();
  char name[64];
  snprintf(name, sizeof name, "CApiAttributesTestOp%s", kind);
  return TF_NewOperation(t->graph, name, "name");
}

static TF_Operation* finish(ct_t* t, TF_OperationDescription* desc) {
  TF_Operation* oper = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return oper;
}

ATTR_TEST(String) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "string");
  TF_SetAttrString(desc, "v", "river\0x", 7);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_STRING, 7);
  char value[8];
  TF_OperationGetAttrString(oper, "v", value, 7, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(value, "river\0x", 7), 0);
  // A short buffer takes what fits.
  memset(value, '.', sizeof value);
  TF_OperationGetAttrString(oper, "v", value, 3, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(value, "riv.", 4), 0);
  ct_close(&t);
}

ATTR_TEST(StringList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "liststring");
  const char* values[] = {"", "alder", "oak", "birch tree"};
  size_t lengths[] = {0, 5, 3, 10};
  TF_SetAttrStringList(desc, "v", (const void* const*)values, lengths, 4);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 4, TF_ATTR_STRING, 18);
  void* found[4];
  size_t found_lengths[4];
  char storage[18];
  TF_OperationGetAttrStringList(oper, "v", found, found_lengths, 4, storage, 18, t.status);
  CT_OK(t.status);
  for (int i = 0; i < 4; ++i) {
    CT_INT(found_lengths[i], lengths[i]);
    CT_INT(memcmp(found[i], values[i], lengths[i]), 0);
  }
  TF_OperationGetAttrStringList(oper, "v", found, found_lengths, 4, storage, 17, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "Not enough storage to hold the requested list of strings");
  ct_close(&t);
}

ATTR_TEST(Int) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "int");
  TF_SetAttrInt(desc, "v", -98765432101);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_INT, -1);
  int64_t value = 0;
  TF_OperationGetAttrInt(oper, "v", &value, t.status);
  CT_OK(t.status);
  CT_INT(value, -98765432101);
  ct_close(&t);
}

ATTR_TEST(IntList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listint");
  int64_t values[] = {1, -2, 3, 1LL << 40};
  TF_SetAttrIntList(desc, "v", values, 4);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 4, TF_ATTR_INT, -1);
  int64_t found[4] = {0};
  TF_OperationGetAttrIntList(oper, "v", found, 4, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(found, values, sizeof values), 0);
  // Fewer asked for: the first ones.
  int64_t some[3] = {0, 0, 99};
  TF_OperationGetAttrIntList(oper, "v", some, 2, t.status);
  CT_OK(t.status);
  CT_INT(some[1], -2);
  CT_INT(some[2], 99);
  ct_close(&t);
}

ATTR_TEST(Float) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "float");
  TF_SetAttrFloat(desc, "v", 6.25f);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_FLOAT, -1);
  float value = 0;
  TF_OperationGetAttrFloat(oper, "v", &value, t.status);
  CT_OK(t.status);
  cr_assert_eq(value, 6.25f);
  ct_close(&t);
}

ATTR_TEST(FloatList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listfloat");
  float values[] = {0.1f, -3e30f, -0.0f};
  TF_SetAttrFloatList(desc, "v", values, 3);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 3, TF_ATTR_FLOAT, -1);
  float found[3];
  TF_OperationGetAttrFloatList(oper, "v", found, 3, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(found, values, sizeof values), 0);
  ct_close(&t);
}

ATTR_TEST(Bool) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "bool");
  TF_SetAttrBool(desc, "v", 1);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_BOOL, -1);
  unsigned char value = 0;
  TF_OperationGetAttrBool(oper, "v", &value, t.status);
  CT_OK(t.status);
  CT_INT(value, 1);
  ct_close(&t);
}

ATTR_TEST(BoolList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listbool");
  unsigned char values[] = {1, 0, 0, 1, 0, 1};
  TF_SetAttrBoolList(desc, "v", values, 6);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 6, TF_ATTR_BOOL, -1);
  unsigned char found[6];
  TF_OperationGetAttrBoolList(oper, "v", found, 6, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(found, values, sizeof values), 0);
  ct_close(&t);
}

ATTR_TEST(Type) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "type");
  TF_SetAttrType(desc, "v", TF_UINT64);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_TYPE, -1);
  TF_DataType value;
  TF_OperationGetAttrType(oper, "v", &value, t.status);
  CT_OK(t.status);
  CT_INT(value, TF_UINT64);
  ct_close(&t);
}

ATTR_TEST(TypeList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listtype");
  TF_DataType values[] = {TF_STRING, TF_BFLOAT16, TF_INT8, TF_RESOURCE};
  TF_SetAttrTypeList(desc, "v", values, 4);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 4, TF_ATTR_TYPE, -1);
  TF_DataType found[4];
  TF_OperationGetAttrTypeList(oper, "v", found, 4, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(found, values, sizeof values), 0);
  ct_close(&t);
}

ATTR_TEST(Shape) {
  ct_t t;
  // Unknown rank.
  TF_OperationDescription* desc = begin(&t, "shape");
  TF_SetAttrShape(desc, "v", NULL, -1);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_SHAPE, -1);
  TF_OperationGetAttrShape(oper, "v", NULL, 10, t.status);
  CT_OK(t.status);
  // Partly known.
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpshape", "partial");
  int64_t dims[] = {-1, 640};
  TF_SetAttrShape(desc, "v", dims, 2);
  oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_SHAPE, 2);
  int64_t found[2] = {0};
  TF_OperationGetAttrShape(oper, "v", found, 2, t.status);
  CT_OK(t.status);
  CT_INT(found[0], -1);
  CT_INT(found[1], 640);
  // A scalar.
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpshape", "scalar");
  TF_SetAttrShape(desc, "v", NULL, 0);
  oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_SHAPE, 0);
  ct_close(&t);
}

ATTR_TEST(ShapeList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listshape");
  int64_t dims1[] = {9, 0}, dims2[] = {5, -1, 8};
  const int64_t* dims[] = {dims1, NULL, dims2};
  int ranks[] = {2, -1, 3};
  TF_SetAttrShapeList(desc, "v", dims, ranks, 3);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 3, TF_ATTR_SHAPE, 5);
  int64_t* found[3];
  int found_ranks[3];
  int64_t storage[5];
  TF_OperationGetAttrShapeList(oper, "v", found, found_ranks, 3, storage, 5, t.status);
  CT_OK(t.status);
  CT_INT(memcmp(found_ranks, ranks, sizeof ranks), 0);
  CT_INT(memcmp(found[0], dims1, sizeof dims1), 0);
  CT_INT(memcmp(found[2], dims2, sizeof dims2), 0);
  TF_OperationGetAttrShapeList(oper, "v", found, found_ranks, 3, storage, 4, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  ct_close(&t);
}

ATTR_TEST(TensorShapeProto) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "shape");
  pb_t shape = {0}, dim = {0};
  pb_varint(&dim, 1, 21);
  pb_message(&shape, 2, &dim);
  pb_varint(&dim, 1, (uint64_t)-1);
  pb_message(&shape, 2, &dim);
  TF_SetAttrTensorShapeProto(desc, "v", shape.data, shape.length, t.status);
  CT_OK(t.status);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_SHAPE, 2);
  TF_Buffer* value = TF_NewBuffer();
  TF_OperationGetAttrTensorShapeProto(oper, "v", value, t.status);
  CT_OK(t.status);
  CT_INT(value->length, shape.length);
  CT_INT(memcmp(value->data, shape.data, shape.length), 0);
  TF_DeleteBuffer(value);
  pb_free(&shape);
  // Bytes that are no shape.
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpshape", "bad");
  TF_SetAttrTensorShapeProto(desc, "v", "\xff\xff", 2, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Unparseable TensorShapeProto");
  TF_SetAttrShape(desc, "v", NULL, 0);
  finish(&t, desc);
  ct_close(&t);
}

ATTR_TEST(TensorShapeProtoList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listshape");
  pb_t first = {0}, second = {0}, dim = {0};
  pb_varint(&dim, 1, 3);
  pb_message(&first, 2, &dim);
  pb_varint(&second, 3, 1);  // unknown_rank
  const void* protos[] = {first.data, second.data};
  size_t lengths[] = {first.length, second.length};
  TF_SetAttrTensorShapeProtoList(desc, "v", protos, lengths, 2, t.status);
  CT_OK(t.status);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 2, TF_ATTR_SHAPE, 1);
  TF_Buffer* found[2];
  TF_OperationGetAttrTensorShapeProtoList(oper, "v", found, 2, t.status);
  CT_OK(t.status);
  for (int i = 0; i < 2; ++i) {
    CT_INT(found[i]->length, lengths[i]);
    CT_INT(memcmp(found[i]->data, protos[i], lengths[i]), 0);
    TF_DeleteBuffer(found[i]);
  }
  pb_free(&first);
  pb_free(&second);
  ct_close(&t);
}

ATTR_TEST(Tensor) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "tensor");
  unsigned char tensor[] = {200, 11};
  int64_t dims[] = {1, 2};
  TF_Tensor* a = ct_tensor(TF_UINT8, dims, 2, tensor, sizeof tensor);
  TF_SetAttrTensor(desc, "v", a, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(a);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_TENSOR, -1);
  TF_Tensor* value = NULL;
  TF_OperationGetAttrTensor(oper, "v", &value, t.status);
  CT_OK(t.status);
  CT_INT(TF_TensorType(value), TF_UINT8);
  CT_INT(TF_NumDims(value), 2);
  CT_INT(TF_Dim(value, 1), 2);
  CT_INT(memcmp(TF_TensorData(value), tensor, 2), 0);
  TF_DeleteTensor(value);
  ct_close(&t);
}

ATTR_TEST(StringTensor) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "tensor");
  TF_Tensor* a = ct_string("a value longer than fits inline, kept");
  TF_SetAttrTensor(desc, "v", a, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(a);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_TENSOR, -1);
  TF_Tensor* value = NULL;
  TF_OperationGetAttrTensor(oper, "v", &value, t.status);
  CT_OK(t.status);
  CT_INT(TF_TensorType(value), TF_STRING);
  CT_INT(TF_NumDims(value), 0);
  CT_STR(TF_StringGetDataPointer(TF_TensorData(value)), "a value longer than fits inline, kept");
  TF_DeleteTensor(value);
  ct_close(&t);
}

ATTR_TEST(TensorList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listtensor");
  unsigned char bytes[] = {200, 11};
  int64_t dims[] = {1, 2};
  float numbers[] = {-1, 0.5f, 3, 1e9f};
  TF_Tensor* tensors[] = {ct_tensor(TF_UINT8, dims, 2, bytes, 2), ct_float_matrix(2, 2, numbers)};
  TF_SetAttrTensorList(desc, "v", tensors, 2, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(tensors[0]);
  TF_DeleteTensor(tensors[1]);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 2, TF_ATTR_TENSOR, -1);
  TF_Tensor* found[2];
  TF_OperationGetAttrTensorList(oper, "v", found, 2, t.status);
  CT_OK(t.status);
  CT_INT(TF_TensorType(found[0]), TF_UINT8);
  CT_INT(memcmp(TF_TensorData(found[0]), bytes, 2), 0);
  CT_INT(TF_TensorType(found[1]), TF_FLOAT);
  CT_INT(memcmp(TF_TensorData(found[1]), numbers, sizeof numbers), 0);
  TF_DeleteTensor(found[0]);
  TF_DeleteTensor(found[1]);
  ct_close(&t);
}

ATTR_TEST(EmptyList) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "listint");
  TF_SetAttrIntList(desc, "v", NULL, 0);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 1, 0, TF_ATTR_INT, -1);
  ct_close(&t);
}

ATTR_TEST(Names) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "string");
  TF_SetAttrString(desc, "v", "stone", 5);
  TF_Operation* oper = finish(&t, desc);
  CT_INT(TF_OperationGetNumAttrs(oper), 1);
  CT_INT(TF_OperationGetAttrNameLength(oper, 0), 1);
  char name[2] = {0};
  TF_OperationGetAttrName(oper, 0, name, t.status);
  CT_OK(t.status);
  CT_STR(name, "v");
  ct_close(&t);
}

ATTR_TEST(Errors) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "int");
  TF_SetAttrInt(desc, "v", 3);
  TF_Operation* oper = finish(&t, desc);
  unsigned char flag;
  TF_OperationGetAttrBool(oper, "v", &flag, t.status);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "v");
  TF_OperationGetAttrBool(oper, "unknown", &flag, t.status);
  CT_CODE(t.status, TF_NOT_FOUND);
  (void)TF_OperationGetAttrMetadata(oper, "missing", t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Operation 'name' has no attr named 'missing'.");
  // Wrong kind, and one kind too few, when the operation is made.
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpint", "wrong");
  TF_SetAttrFloat(desc, "v", 3);
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "AttrValue had value with type 'float' when 'int'");
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpint", "absent");
  cr_assert_null(TF_FinishOperation(desc, t.status));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "NodeDef missing attr 'v'");
  ct_close(&t);
}

ATTR_TEST(ValueProto) {
  ct_t t;
  TF_OperationDescription* desc = begin(&t, "int");
  pb_t value = {0};
  pb_varint(&value, 3, 77);
  TF_SetAttrValueProto(desc, "v", value.data, value.length, t.status);
  CT_OK(t.status);
  TF_Operation* oper = finish(&t, desc);
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationGetAttrValueProto(oper, "v", buffer, t.status);
  CT_OK(t.status);
  CT_INT(buffer->length, value.length);
  CT_INT(memcmp(buffer->data, value.data, value.length), 0);
  TF_DeleteBuffer(buffer);
  pb_free(&value);
  desc = TF_NewOperation(t.graph, "CApiAttributesTestOpint", "bad");
  TF_SetAttrValueProto(desc, "v", "\xff\xff", 2, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Unparseable AttrValue proto");
  TF_SetAttrInt(desc, "v", 1);
  finish(&t, desc);
  ct_close(&t);
}

ATTR_TEST(FuncName) {
  ct_t t = ct_open();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("CApiAttributesTestOpFunc");
  TF_OpDefinitionBuilderAddAttr(builder, "v: func");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, unknown_shape);
  TF_RegisterOpDefinition(builder, t.status);
  CT_OK(t.status);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "CApiAttributesTestOpFunc", "f");
  TF_SetAttrFuncName(desc, "v", "my_function", 11);
  TF_Operation* oper = finish(&t, desc);
  CT_META(oper, "v", 0, -1, TF_ATTR_FUNC, -1);
  ct_close(&t);
}
