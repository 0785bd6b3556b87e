// Eager ops: handles, values, variables, threads, and the messages of bad calls.
#include <pthread.h>

#include "eager_util.h"
#include "ops_c.h"
#include "tensorflow/c/kernels.h"

#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"

CT_TEST(eager_op, adds) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_float(&t, 1.5f);
  TFE_TensorHandle* y = ce_float(&t, 2);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "AddV2", x, y)), 3.5f);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "Mul", x, y)), 3);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(eager_op, handle_tells_of_its_tensor) {
  ce_t t = ce_open();
  TFE_TensorHandle* h = ce_handle(&t, ct_float_matrix(2, 3, (float[]){1, 2, 3, 4, 5, 6}));
  CT_INT(TFE_TensorHandleDataType(h), TF_FLOAT);
  CT_INT(TFE_TensorHandleNumDims(h, t.status), 2);
  CT_INT(TFE_TensorHandleNumElements(h, t.status), 6);
  CT_INT(TFE_TensorHandleDim(h, 0, t.status), 2);
  CT_INT(TFE_TensorHandleDim(h, 1, t.status), 3);
  CT_OK(t.status);
  CT_STR(TFE_TensorHandleDeviceName(h, t.status), CPU);
  CT_STR(TFE_TensorHandleBackingDeviceName(h, t.status), CPU);
  CT_STR(TFE_TensorHandleDeviceType(h, t.status), "CPU");
  CT_INT(TFE_TensorHandleDeviceID(h, t.status), 0);
  CT_INT(TFE_TensorHandleDeviceMemorySize(h, t.status), 24);
  TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(h, t.status);
  CT_OK(t.status);
  CT_INT(TFE_TensorDebugInfoOnDeviceNumDims(info), 2);
  CT_INT(TFE_TensorDebugInfoOnDeviceDim(info, 1), 3);
  TFE_DeleteTensorDebugInfo(info);
  TFE_DeleteTensorHandle(h);
  ce_close(&t);
}

CT_TEST(eager_op, resolve_shares_memory) {
  ce_t t = ce_open();
  TFE_TensorHandle* h = ce_float(&t, 7);
  TF_Tensor* a = TFE_TensorHandleResolve(h, t.status);
  TF_Tensor* b = TFE_TensorHandleResolve(h, t.status);
  cr_assert_eq(TF_TensorData(a), TF_TensorData(b));
  cr_assert_eq(TF_TensorData(a), TFE_TensorHandleDevicePointer(h, t.status));
  TFE_TensorHandle* copy = TFE_TensorHandleCopySharingTensor(h, t.status);
  CT_OK(t.status);
  TFE_DeleteTensorHandle(h);
  ce_close(&t);
  // Handles and tensors outlive the context.
  cr_assert_float_eq(*(float*)TF_TensorData(a), 7, 0);
  TFE_DeleteTensorHandle(copy);
  TF_DeleteTensor(a);
  TF_DeleteTensor(b);
}

CT_TEST(eager_op, memory_of_the_client_is_given_back_once) {
  ce_t t = ce_open();
  int calls = 0;
  _Alignas(64) static float data[16] = {3};
  TFE_TensorHandle* h =
      TFE_NewTensorHandleFromDeviceMemory(t.context, CPU, TF_FLOAT, (int64_t[]){16}, 1, data,
                                          sizeof data, ct_count_call, &calls, t.status);
  CT_OK(t.status);
  cr_assert_eq(TFE_TensorHandleDevicePointer(h, t.status), data);
  CE_FLOAT(ce_take(&t, ce_binary(&t, "AddV2", h, h)), 6);
  CT_INT(calls, 0);
  TFE_DeleteTensorHandle(h);
  CT_INT(calls, 1);
  cr_assert_null(TFE_NewTensorHandleFromDeviceMemory(t.context, "/gpu:3", TF_FLOAT, NULL, 0, data,
                                                     4, ct_count_call, &calls, t.status));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  CT_INT(calls, 2);
  ce_close(&t);
}

CT_TEST(eager_op, bad_calls_are_told) {
  ce_t t = ce_open();
  TFE_TensorHandle* f2 = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* f3 = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* i = ce_handle(&t, ct_int32(1));
  cr_assert_null(TFE_NewOp(t.context, "NoSuchOp", t.status));
  CT_ERROR_HAS(t.status, TF_NOT_FOUND,
               "'NoSuchOp' is neither a type of a primitive operation nor a name of a function");
  ce_fails(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){f2, f3}), TF_INVALID_ARGUMENT,
           "Incompatible shapes: [2] vs. [3]");
  ce_fails(
      &t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){f2, i}), TF_INVALID_ARGUMENT,
      "cannot compute AddV2 as input #1(zero-based) was expected to be a float tensor but is a "
      "int32 tensor");
  ce_fails(&t, ce_op(&t, "AddV2", 1, &f2), TF_INVALID_ARGUMENT, "expected 2 inputs, got 1");
  ce_fails(&t, ce_op(&t, "Cast", 1, &f2), TF_NOT_FOUND,
           "No attr named 'DstT' in NodeDef:\n\t [[{{node Cast}}]]");
  ce_fails(&t, ce_op(&t, "Const", 0, NULL), TF_NOT_FOUND,
           "No attr named 'dtype' in NodeDef:\n\t [[{{node Const}}]]");
  TFE_Op* op = ce_op(&t, "AddV2", 0, NULL);
  TFE_OpSetAttrType(op, "T", TF_INT32);
  TFE_OpAddInput(op, f2, t.status);
  TFE_OpAddInput(op, f2, t.status);
  ce_fails(
      &t, op, TF_INVALID_ARGUMENT,
      "cannot compute AddV2 as input #0(zero-based) was expected to be a int32 tensor but is a "
      "float tensor");
  cr_assert_null(ce_try(&t, ce_op(&t, "Sqrt", 1, &i)));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "Value for attr 'T' of int32 is not in the list of allowed values: bfloat16, half");
  op = ce_op(&t, "MatMul", 2, (TFE_TensorHandle*[]){f2, f2});
  TFE_OpSetAttrInt(op, "transpose_a", 1);
  cr_assert_null(ce_try(&t, op));
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "AttrValue had value with type 'int' when 'bool' expected\n\t for attr "
               "'transpose_a'");
  op = ce_op(&t, "IdentityN", 0, NULL);
  TFE_OpAddInputList(op, (TFE_TensorHandle*[]){f2, i}, 2, t.status);
  CT_INT(TFE_OpGetOutputLength(op, "output", t.status), 2);
  ce_fails(&t, op, TF_INVALID_ARGUMENT, "Expecting 2 outputs, but *num_retvals is 1");
  TFE_DeleteTensorHandle(f2);
  TFE_DeleteTensorHandle(f3);
  TFE_DeleteTensorHandle(i);
  ce_close(&t);
}

CT_TEST(eager_op, references_are_values) {
  // A queue of the first generation gives its container and its name.
  ce_t t = ce_open();
  TFE_Op* op = ce_op(&t, "FIFOQueue", 0, NULL);
  TFE_OpSetAttrTypeList(op, "component_types", (TF_DataType[]){TF_INT32, TF_INT32}, 2);
  TFE_OpSetAttrString(op, "shared_name", "line", 4);
  TFE_TensorHandle* queue = ce_run(&t, op);
  CT_INT(TFE_TensorHandleDataType(queue), TF_STRING);
  TF_Tensor* names = TFE_TensorHandleResolve(queue, t.status);
  CT_OK(t.status);
  CT_INT(TF_TensorElementCount(names), 2);
  const TF_TString* name = TF_TensorData(names);
  CT_STR(TF_StringGetDataPointer(&name[0]), "localhost");
  CT_STR(TF_StringGetDataPointer(&name[1]), "line");
  TF_DeleteTensor(names);
  // What wants a reference cannot be called: handles have none.
  ce_fails(
      &t, ce_op(&t, "QueueSize", 1, &queue), TF_INVALID_ARGUMENT,
      "cannot compute QueueSize as input #0(zero-based) was expected to be a string_ref tensor "
      "but is a string tensor");
  TFE_DeleteTensorHandle(queue);
  ce_close(&t);
}

CT_TEST(eager_op, variables_keep_their_values) {
  ce_t t = ce_open();
  TFE_TensorHandle* variable = ce_variable(&t, "v", 12);
  TFE_TensorHandle* before = ce_read(&t, variable);
  TFE_TensorHandle* one = ce_float(&t, 1);
  ce_do(&t, ce_op(&t, "AssignAddVariableOp", 2, (TFE_TensorHandle*[]){variable, one}));
  TFE_ContextClearCaches(t.context);
  CE_FLOAT(ce_take(&t, ce_read(&t, variable)), 13);
  CE_FLOAT(ce_take(&t, before), 12);
  ce_do(&t, ce_op(&t, "DestroyResourceOp", 1, &variable));
  TFE_Op* op = ce_op(&t, "ReadVariableOp", 1, &variable);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  cr_assert_null(ce_try(&t, op));
  cr_assert_neq(TF_GetCode(t.status), TF_OK);
  TFE_DeleteTensorHandle(one);
  TFE_DeleteTensorHandle(variable);
  ce_close(&t);
}

CT_TEST(eager_op, variables_with_different_names_differ) {
  ce_t t = ce_open();
  TFE_TensorHandle* a = ce_variable(&t, "a", 1);
  TFE_TensorHandle* b = ce_variable(&t, "b", 2);
  CE_FLOAT(ce_take(&t, ce_read(&t, a)), 1);
  CE_FLOAT(ce_take(&t, ce_read(&t, b)), 2);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  ce_close(&t);
}

// Threads that run equal and different ops in one context, while the caches are emptied.
enum { THREADS = 4, ROUNDS = 2000 };
static void* run_many(void* arg) {
  ce_t t = {.context = arg, .status = TF_NewStatus()};
  TFE_TensorHandle* x = ce_float(&t, 1);
  for (int i = 0; i < ROUNDS; ++i) {
    TFE_TensorHandle* y = ce_binary(&t, i % 2 ? "AddV2" : "Mul", x, x);
    CE_FLOAT(ce_take(&t, y), i % 2 ? 2 : 1);
    if (i % 100 == 0) TFE_ContextClearCaches(t.context);
  }
  TFE_DeleteTensorHandle(x);
  TF_DeleteStatus(t.status);
  return NULL;
}

CT_TEST(eager_op, many_threads) {
  ce_t t = ce_open();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    cr_assert_eq(pthread_create(&threads[i], NULL, run_many, t.context), 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  ce_close(&t);
}

static void gone_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_SetStatus(s, TF_UNAVAILABLE, "gone");
  TF_OpKernelContext_Failure(context, s);
  TF_DeleteStatus(s);
}

// An op needs no shape function here. That something is gone only ops that talk to tasks may say.
CT_TEST(eager_op, ops_from_outside) {
  ce_t t = ce_open();
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("GoneOp");
  TF_OpDefinitionBuilderAddOutput(builder, "out: string");
  TF_RegisterOpDefinition(builder, t.status);
  CT_OK(t.status);
  TF_RegisterKernelBuilder("Gone", TF_NewKernelBuilder("GoneOp", "CPU", NULL, gone_compute, NULL),
                           t.status);
  CT_OK(t.status);
  TFE_Op* op = ce_op(&t, "GoneOp", 0, NULL);
  TFE_TensorHandle* result = NULL;
  int count = 1;
  TFE_Execute(op, &result, &count, t.status);
  CT_ERROR(t.status, TF_INTERNAL,
           "gone\nExecuting non-communication op <GoneOp> originally returned UnavailableError, "
           "and was replaced by InternalError to avoid invoking TF network error handling logic.");
  TFE_DeleteOp(op);
  ce_close(&t);
}

#define ANONYMOUS "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

// Each call that asks for a variable without a name gets a fresh one.
CT_TEST(eager_op, anonymous_variables_are_fresh) {
  ce_t t = ce_open();
  TFE_TensorHandle *v = ce_variable(&t, ANONYMOUS, 1), *w = ce_variable(&t, ANONYMOUS, 2);
  CE_FLOAT(ce_take(&t, ce_read(&t, v)), 1);
  CE_FLOAT(ce_take(&t, ce_read(&t, w)), 2);
  TFE_DeleteTensorHandle(v);
  CE_FLOAT(ce_take(&t, ce_read(&t, w)), 2);
  // Named ones are one.
  TFE_TensorHandle *a = ce_variable(&t, "named", 3), *b = ce_variable(&t, "named", 4);
  CE_FLOAT(ce_take(&t, ce_read(&t, a)), 4);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_DeleteTensorHandle(w);
  ce_close(&t);
}

// The test runs once more with a GPU, where the list holds values of the card.
CT_TEST(eager_list, outlives_the_context) {
  ce_t t = ce_open();
  TFE_TensorHandle* x = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* shape = ce_handle(&t, ct_int32(-1));
  TFE_TensorHandle* list = ce_binary(&t, "TensorListFromTensor", x, shape);
  TF_Tensor* tensor = TFE_TensorHandleResolve(list, t.status);
  CT_OK(t.status);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(shape);
  TFE_DeleteTensorHandle(list);
  ce_close(&t);
  pb_t config = {0}, entry = {0};  // ConfigProto.device_count {"GPU": 0}
  pb_string(&entry, 1, "GPU");
  pb_varint(&entry, 2, 0);
  pb_message(&config, 1, &entry);
  t = ce_open_with(false, &config);
  list = ce_handle(&t, tensor);
  TFE_TensorHandle* args[] = {list, ce_handle(&t, ct_int32(1)), ce_handle(&t, ct_int32(-1))};
  TFE_Op* op = ce_op(&t, "TensorListGetItem", 3, args);
  TFE_OpSetAttrType(op, "element_dtype", TF_FLOAT);
  CE_FLOAT(ce_take(&t, ce_run(&t, op)), 2);
  for (int i = 0; i < 3; i++) TFE_DeleteTensorHandle(args[i]);
  pb_free(&config);
  ce_close(&t);
}
