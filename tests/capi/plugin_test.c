// Ops and kernels of clients: registered in the process through ops.h and kernels.h, and loaded
// from a shared library.
#include <stdlib.h>

#include "ops_c.h"
#include "tensorflow/c/kernels.h"
#include "util.h"

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* handle = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, 0, handle, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, handle, status);
  TF_DeleteShapeHandle(handle);
}

static void register_op(const char* name, const char* attr,
                        void (*shape)(TF_ShapeInferenceContext*, TF_Status*)) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  if (attr != NULL) TF_OpDefinitionBuilderAddAttr(op, attr);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape);
  TF_RegisterOpDefinition(op, s);
  CT_OK(s);
  TF_DeleteStatus(s);
}

static int created, computed, deleted;

typedef struct kernel_t {
  float factor;
  char name[64];
} kernel_t;

static void* scale_create(TF_OpKernelConstruction* construction) {
  ++created;
  kernel_t* kernel = calloc(1, sizeof *kernel);
  TF_Status* s = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrFloat(construction, "factor", &kernel->factor, s);
  CT_OK(s);
  TF_StringView name = TF_OpKernelConstruction_GetName(construction);
  memcpy(kernel->name, name.data, name.len < 63 ? name.len : 63);
  TF_DeleteStatus(s);
  return kernel;
}

static void scale_compute(void* state, TF_OpKernelContext* context) {
  ++computed;
  kernel_t* kernel = state;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  if (kernel->factor < 0) {
    TF_SetStatus(s, TF_DATA_LOSS, "factor is negative");
    TF_OpKernelContext_Failure(context, s);
  } else {
    TF_Tensor* y = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, sizeof(float), s);
    *(float*)TF_TensorData(y) = *(float*)TF_TensorData(x) * kernel->factor;
    TF_DeleteTensor(y);
  }
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

static void scale_delete(void* state) {
  ++deleted;
  free(state);
}

static void register_scale(void) {
  register_op("ScaleOp", "factor: float = 3.0", same_shape);
  TF_Status* s = TF_NewStatus();
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("ScaleOp", "CPU", scale_create, scale_compute, scale_delete);
  TF_RegisterKernelBuilder("ScaleKernel", builder, s);
  CT_OK(s);
#ifndef CT_STOCK                    // which frees what it still uses
  TF_DeleteKernelBuilder(builder);  // that it is registered changes nothing for clients that do
#endif
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, TestRegisterKernelBuilder, .init = register_scale) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Operation* scale = ct_unary(&t, t.graph, "ScaleOp", "scale", ct_out(feed, 0));
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(7), scale)), 21);
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(2), scale)), 6);
  CT_INT(computed, 2);
  CT_INT(created, 1);
  ct_close(&t);
  CT_INT(deleted, created);
}

CT_TEST(TestKernel, KernelOpIsListed, .init = register_scale) {
  TF_Buffer* ops = TF_GetAllOpList();
  pb_field_t op;
  cr_assert(pb_find_named(ops->data, ops->length, 1, 1, "ScaleOp", &op));
  CT_INT(pb_count(op.data, op.length, 4), 1);
  TF_DeleteBuffer(ops);
  TF_Status* s = TF_NewStatus();
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("ScaleOp", s);
  CT_OK(s);
  CT_INT(pb_count(kernels->data, kernels->length, 1), 1);
  TF_DeleteBuffer(kernels);
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, KernelFailure, .init = register_scale) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar_float(&t, t.graph, "one", 1);
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "ScaleOp", "scale");
  TF_AddInput(desc, ct_out(one, 0));
  TF_SetAttrFloat(desc, "factor", -1);
  TF_Operation* scale = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, ct_out(scale, 0)));
  CT_ERROR_HAS(t.status, TF_DATA_LOSS, "factor is negative");
  CT_ERROR_HAS(t.status, TF_DATA_LOSS, "scale");
  ct_close(&t);
}

static void inspect_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  ++computed;
  TF_Status* s = TF_NewStatus();
  CT_INT(TF_NumInputs(context), 1);
  CT_INT(TF_NumOutputs(context), 1);
  TF_Tensor* x = NULL;
  TF_GetInput(context, -1, &x, s);
  CT_CODE(s, TF_OUT_OF_RANGE);
  TF_GetInput(context, 3, &x, s);
  CT_CODE(s, TF_OUT_OF_RANGE);
  CT_INT(TF_ExpectedOutputDataType(context, 0), TF_FLOAT);
  CT_INT(TF_InputDatatype(context, 0), TF_FLOAT);
  TF_StringView name = TF_GetOpKernelName(context);
  cr_assert(name.len == 7 && memcmp(name.data, "inspect", 7) == 0);
  TF_GetInput(context, 0, &x, s);
  CT_OK(s);
  cr_assert_eq(*(float*)TF_TensorData(x), 4);
  TF_SetOutput(context, 24, x, s);
  CT_CODE(s, TF_OUT_OF_RANGE);
  TF_SetOutput(context, 0, x, s);
  CT_OK(s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, TestInputAndOutputCount) {
  register_op("InspectOp", NULL, same_shape);
  ct_t t = ct_open();
  TF_KernelBuilder* builder = TF_NewKernelBuilder("InspectOp", "CPU", NULL, inspect_compute, NULL);
  TF_RegisterKernelBuilder("InspectKernel", builder, t.status);
  CT_OK(t.status);
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Operation* inspect = ct_unary(&t, t.graph, "InspectOp", "inspect", ct_out(feed, 0));
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(4), inspect)), 4);
  CT_INT(computed, 1);
  ct_close(&t);
}

// Answers before it returns; a callback kept for later is another matter (ours_only_test.c).
static void async_compute(void* state, TF_OpKernelContext* context,
                          TF_AsyncOpKernelDoneCallback* done) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  TF_SetOutput(context, 0, x, s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
  TF_RunAsyncOpKernelDoneCallback(done);
}

CT_TEST(TestKernel, TestRegisterAsyncKernelBuilder) {
  register_op("AsyncOp", NULL, same_shape);
  ct_t t = ct_open();
  TF_KernelBuilder* builder = TF_NewAsyncKernelBuilder("AsyncOp", "CPU", NULL, async_compute, NULL);
  TF_RegisterKernelBuilder("AsyncKernel", builder, t.status);
  CT_OK(t.status);
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Operation* async = ct_unary(&t, t.graph, "AsyncOp", "async", ct_out(feed, 0));
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", async);
  for (int i = 0; i < 5; ++i) {
    cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float((float)i), neg)), (float)-i);
  }
  ct_close(&t);
}

static void typed_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  TF_SetOutput(context, 0, x, s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

CT_TEST(TestKernel, TestTypeConstraint) {
  ct_t t = ct_open();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("TypedOp");
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, int32}");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, same_shape);
  TF_RegisterOpDefinition(op, t.status);
  CT_OK(t.status);
  TF_KernelBuilder* builder = TF_NewKernelBuilder("TypedOp", "CPU", NULL, typed_compute, NULL);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_INT32, t.status);
  CT_OK(t.status);
  TF_RegisterKernelBuilder("TypedKernel", builder, t.status);
  CT_OK(t.status);
  TF_Operation* i =
      ct_unary(&t, t.graph, "TypedOp", "i", ct_out(ct_scalar(&t, t.graph, "c", 5), 0));
  CT_INT(ct_take_int32(ct_run0(&t, i)), 5);
  TF_Operation* f =
      ct_unary(&t, t.graph, "TypedOp", "f", ct_out(ct_scalar_float(&t, t.graph, "d", 5), 0));
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, ct_out(f, 0)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "No OpKernel was registered to support Op 'TypedOp' used by {{node f}} with these "
               "attrs: [T=DT_FLOAT]");
  ct_close(&t);
}

CT_TEST(TestKernel, DeleteKernelBuilderIsOkOnNull) { TF_DeleteKernelBuilder(NULL); }

CT_TEST(TestKernel, KernelBuilderThatIsNotRegistered) {
  TF_DeleteKernelBuilder(TF_NewKernelBuilder("Neg", "CPU", NULL, typed_compute, NULL));
}

static int constructed;

// One attribute of each kind, read where a kernel is made.
static void* attrs_create(TF_OpKernelConstruction* c) {
  ++constructed;
  TF_Status* s = TF_NewStatus();
  int32_t i32 = 0, list_size = 0, total_size = 0, ints[3];
  int64_t i64 = 0, longs[3];
  float f = 0, floats[2];
  TF_Bool b = 0, bools[2];
  TF_DataType type, types[2];
  char text[16] = {0};
  TF_OpKernelConstruction_GetAttrInt32(c, "i", &i32, s);
  CT_OK(s);
  CT_INT(i32, 604);
  TF_OpKernelConstruction_GetAttrInt64(c, "i", &i64, s);
  CT_OK(s);
  CT_INT(i64, 604);
  TF_OpKernelConstruction_GetAttrFloat(c, "f", &f, s);
  CT_OK(s);
  cr_assert_eq(f, 2.5f);
  TF_OpKernelConstruction_GetAttrBool(c, "b", &b, s);
  CT_OK(s);
  CT_INT(b, 1);
  TF_OpKernelConstruction_GetAttrType(c, "t", &type, s);
  CT_OK(s);
  CT_INT(type, TF_INT64);
  TF_OpKernelConstruction_GetAttrSize(c, "s", &list_size, &total_size, s);
  CT_OK(s);
  CT_INT(list_size, -1);
  CT_INT(total_size, 5);
  TF_OpKernelConstruction_GetAttrString(c, "s", text, 15, s);
  CT_OK(s);
  CT_STR(text, "hello");
  TF_OpKernelConstruction_GetAttrSize(c, "li", &list_size, &total_size, s);
  CT_OK(s);
  CT_INT(list_size, 3);
  TF_OpKernelConstruction_GetAttrInt32List(c, "li", ints, 3, s);
  CT_OK(s);
  CT_INT(ints[2], 3);
  TF_OpKernelConstruction_GetAttrInt64List(c, "li", longs, 3, s);
  CT_OK(s);
  CT_INT(longs[1], 2);
  TF_OpKernelConstruction_GetAttrFloatList(c, "lf", floats, 2, s);
  CT_OK(s);
  cr_assert_eq(floats[1], 0.5f);
  TF_OpKernelConstruction_GetAttrBoolList(c, "lb", bools, 2, s);
  CT_OK(s);
  CT_INT(bools[0], 1);
  CT_INT(bools[1], 0);
  TF_OpKernelConstruction_GetAttrTypeList(c, "lt", types, 2, s);
  CT_OK(s);
  CT_INT(types[1], TF_DOUBLE);
  char* strings[2];
  size_t lengths[2];
  char storage[8];
  TF_OpKernelConstruction_GetAttrStringList(c, "ls", strings, lengths, 2, storage, 8, s);
  CT_OK(s);
  CT_INT(lengths[1], 3);
  CT_INT(memcmp(strings[1], "def", 3), 0);
  CT_INT(TF_OpKernelConstruction_HasAttr(c, "i", s), 1);
  CT_OK(s);
  CT_INT(TF_OpKernelConstruction_HasAttr(c, "nothing", s), 0);
  TF_SetStatus(s, TF_OK, "");
  TF_OpKernelConstruction_GetAttrInt32(c, "nothing", &i32, s);
  CT_CODE(s, TF_NOT_FOUND);
  TF_Buffer* node = TF_OpKernelConstruction_GetNodeDef(c, s);
  CT_OK(s);
  cr_assert(pb_has_string(node->data, node->length, 2, "AttrsOp"));
  cr_assert(pb_has_string(node->data, node->length, 3, "one"));
  TF_DeleteBuffer(node);
  TF_DeleteStatus(s);
  return NULL;
}

CT_TEST(TestKernelAttr, AllKinds) {
  ct_t t = ct_open();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("AttrsOp");
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  static const char* const attrs[] = {"i: int = 604",
                                      "f: float = 2.5",
                                      "b: bool = true",
                                      "t: type = DT_INT64",
                                      "s: string = 'hello'",
                                      "li: list(int) = [1, 2, 3]",
                                      "lf: list(float) = [1.5, 0.5]",
                                      "lb: list(bool) = [true, false]",
                                      "lt: list(type) = [DT_FLOAT, DT_DOUBLE]",
                                      "ls: list(string) = ['abc', 'def']"};
  for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; ++i) {
    TF_OpDefinitionBuilderAddAttr(op, attrs[i]);
  }
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, same_shape);
  TF_RegisterOpDefinition(op, t.status);
  CT_OK(t.status);
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("AttrsOp", "CPU", attrs_create, typed_compute, NULL);
  TF_RegisterKernelBuilder("AttrsKernel", builder, t.status);
  CT_OK(t.status);
  TF_Operation* one = ct_scalar_float(&t, t.graph, "one", 1);
  TF_Operation* y = ct_unary(&t, t.graph, "AttrsOp", "y", ct_out(one, 0));
  cr_assert_eq(ct_take_float(ct_run0(&t, y)), 1);
  CT_INT(constructed, 1);
  ct_close(&t);
}

static void temp_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  int64_t dims[] = {2, 3}, none[] = {0};
  TF_AllocatorAttributes attributes = {.struct_size = TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE,
                                       .on_host = 1};
  TF_Tensor* temp = TF_AllocateTemp(context, TF_FLOAT, dims, 2, &attributes, s);
  CT_OK(s);
  CT_INT(TF_TensorByteSize(temp), 24);
  memset(TF_TensorData(temp), 0, 24);
  TF_DeleteTensor(temp);
  temp = TF_AllocateTemp(context, TF_FLOAT, none, 1, &attributes, s);
  CT_OK(s);
  CT_INT(TF_TensorElementCount(temp), 0);
  TF_DeleteTensor(temp);
  // The input's buffer if it has no other owner, else a new one.
  int candidates[] = {0}, forwarded = -2;
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, s);
  float value = *(float*)TF_TensorData(x);
  TF_DeleteTensor(x);
  TF_Tensor* y = TF_ForwardInputOrAllocateOutput(context, candidates, 1, 0, NULL, 0, &forwarded, s);
  CT_OK(s);
  cr_assert(forwarded == 0 || forwarded == -1);
  *(float*)TF_TensorData(y) = value + 1;
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}

CT_TEST(DeviceKernelOpTest, TestAllocateTempAndForward) {
  register_op("TempOp", NULL, same_shape);
  ct_t t = ct_open();
  TF_KernelBuilder* builder = TF_NewKernelBuilder("TempOp", "CPU", NULL, temp_compute, NULL);
  TF_RegisterKernelBuilder("TempKernel", builder, t.status);
  CT_OK(t.status);
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_FLOAT);
  TF_Operation* y = ct_unary(&t, t.graph, "TempOp", "y", ct_out(feed, 0));
  TF_Operation* z = ct_unary(&t, t.graph, "TempOp", "z", ct_out(y, 0));
  cr_assert_eq(ct_take_float(ct_run1(&t, feed, ct_float(1), z)), 3);
  ct_close(&t);
}

CT_TEST(CAPI, LibraryLoadFunctions) {
  ct_t t = ct_open();
  cr_assert_null(TF_GraphOperationByName(t.graph, "TestCApi1"));
  TF_Library* library = TF_LoadLibrary(CT_PLUGIN_PATH, t.status);
  CT_OK(t.status);
  // Its list holds exactly that op.
  TF_Buffer list = TF_GetOpList(library);
  CT_INT(pb_count(list.data, list.length, 1), 1);
  pb_field_t op;
  cr_assert(pb_find_named(list.data, list.length, 1, 1, "TestCApi1", &op));
  TF_Buffer* all = TF_GetAllOpList();
  cr_assert(pb_find_named(all->data, all->length, 1, 1, "TestCApi1", &op));
  TF_DeleteBuffer(all);

  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* plus = ct_unary(&t, t.graph, "TestCApi1", "plus", ct_out(feed, 0));
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(7), plus)), 12);
  // Loading it again gives the same list and no error.
  TF_Library* again = TF_LoadLibrary(CT_PLUGIN_PATH, t.status);
  CT_OK(t.status);
  CT_INT(pb_count(TF_GetOpList(again).data, TF_GetOpList(again).length, 1), 1);
  TF_DeleteLibraryHandle(again);
  TF_DeleteLibraryHandle(library);
  // The code stays loaded: graphs may still use it.
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(8), plus)), 13);
  ct_close(&t);
}

CT_TEST(CAPI, LoadLibraryErrors) {
  TF_Status* s = TF_NewStatus();
  cr_assert_null(TF_LoadLibrary("/no/such/library.so", s));
  CT_ERROR_HAS(s, TF_NOT_FOUND, "/no/such/library.so");
  TF_DeleteStatus(s);
}

static void answer(TF_OpKernelContext* context, float value) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* y = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, sizeof(float), s);
  CT_OK(s);
  *(float*)TF_TensorData(y) = value;
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}

static void default_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  answer(context, 1);
}

static void cpu_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  answer(context, 2);
}

// A kernel for any device serves devices that have none of their own.
CT_TEST(TestKernel, KernelsForAnyDevice) {
  ct_t t = ct_open();
  register_op("AnyDeviceOp", NULL, same_shape);
  register_op("AnyOrCpuOp", NULL, same_shape);
  TF_RegisterKernelBuilder(
      "A", TF_NewKernelBuilder("AnyDeviceOp", "DEFAULT", NULL, default_compute, NULL), t.status);
  CT_OK(t.status);
  TF_RegisterKernelBuilder(
      "B", TF_NewKernelBuilder("AnyOrCpuOp", "DEFAULT", NULL, default_compute, NULL), t.status);
  CT_OK(t.status);
  TF_RegisterKernelBuilder("C", TF_NewKernelBuilder("AnyOrCpuOp", "CPU", NULL, cpu_compute, NULL),
                           t.status);
  CT_OK(t.status);
  TF_Output x = ct_out(ct_scalar_float(&t, t.graph, "x", 0), 0);
  TF_Operation* any = ct_unary(&t, t.graph, "AnyDeviceOp", "any", x);
  TF_Operation* own = ct_unary(&t, t.graph, "AnyOrCpuOp", "own", x);
  cr_assert_eq(ct_take_float(ct_run(&t, 0, NULL, NULL, ct_out(any, 0))), 1);
  cr_assert_eq(ct_take_float(ct_run(&t, 0, NULL, NULL, ct_out(own, 0))), 2);
  ct_close(&t);
}
