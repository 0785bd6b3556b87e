// Plug-in kernels that read and update variables: kernels_experimental.h.
#include <stdlib.h>

#include "ops_c.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"
#include "util.h"

static void any_shape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(context, status);
}
static void no_outputs(TF_ShapeInferenceContext* context, TF_Status* status) {
  (void)context;
  TF_SetStatus(status, TF_OK, "");
}

static void* read_shape(TF_OpKernelConstruction* construction) {
  TF_Status* s = TF_NewStatus();
  int64_t dims[2] = {0};
  TF_OpKernelConstruction_GetAttrTensorShape(construction, "like", dims, 2, s);
  CT_OK(s);
  cr_assert(dims[0] == 2 && dims[1] == 3);
  TF_OpKernelConstruction_GetAttrTensorShape(construction, "like", dims, 1, s);
  CT_CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteStatus(s);
  return NULL;
}

static void register_one(const char* name, const char* target, const char* output,
                         void (*compute)(void*, TF_OpKernelContext*)) {
  TF_Status* s = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(op, target);
  TF_OpDefinitionBuilderAddInput(op, "value: float");
  if (output) TF_OpDefinitionBuilderAddOutput(op, output);
  TF_OpDefinitionBuilderAddAttr(op, "like: shape = { dim { size: 2 } dim { size: 3 } }");
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, output ? any_shape : no_outputs);
  TF_RegisterOpDefinition(op, s);
  CT_OK(s);
  TF_KernelBuilder* kernel = TF_NewKernelBuilder(name, "CPU", read_shape, compute, NULL);
  TF_RegisterKernelBuilder(name, kernel, s);
  CT_OK(s);
  TF_DeleteStatus(s);
}

static void copy(TF_OpKernelContext* context, TF_Tensor* source, TF_Tensor* dest) {
  (void)context;
  memcpy(TF_TensorData(dest), TF_TensorData(source), TF_TensorByteSize(source));
}

static void finish(TF_OpKernelContext* context, TF_Status* s) {
  if (TF_GetCode(s) != TF_OK) TF_OpKernelContext_Failure(context, s);
  TF_DeleteStatus(s);
}

static void set_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_AssignVariable(context, 0, 1, true, copy, s);
  finish(context, s);
}

static void update(TF_OpKernelContext* context, TF_Tensor* tensor, TF_Tensor* value, int op) {
  (void)context;
  float *to = TF_TensorData(tensor), *from = TF_TensorData(value);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); ++i) to[i] += op == 0 ? from[i] : -from[i];
}

static void subtract_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_AssignUpdateVariable(context, 0, 1, 1, 0, copy, update, s);
  finish(context, s);
}

// target *= value, in place, under the lock; the same variable is named twice.
static void scale_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  TF_VariableInputLockHolder* locks = NULL;
  TF_Tensor *target = NULL, *value = NULL;
  int inputs[2] = {0, 0};
  TF_MaybeLockVariableInputMutexesInOrder(context, true, false, inputs, 2, copy, &locks, s);
  if (TF_GetCode(s) == TF_OK)
    TF_GetInputTensorFromVariable(context, 0, true, false, false, copy, &target, s);
  if (TF_GetCode(s) == TF_OK) TF_GetInputByName(context, "value", &value, s);
  if (TF_GetCode(s) == TF_OK) {
    float* at = TF_TensorData(target);
    for (int64_t i = 0; i < TF_TensorElementCount(target); ++i)
      at[i] *= *(float*)TF_TensorData(value);
  }
  TF_DeleteTensor(target);
  TF_DeleteTensor(value);
  TF_ReleaseVariableInputLockHolder(locks);
  finish(context, s);
}

static void ref_compute(void* state, TF_OpKernelContext* context) {
  (void)state;
  TF_Status* s = TF_NewStatus();
  bool is_ref = TF_IsRefInput(context, 0, s);
  CT_OK(s);
  cr_assert(is_ref && !TF_IsRefInput(context, 1, s));
  TF_AssignRefVariable(context, 0, 0, 1, true, true, copy, s);
  finish(context, s);
}

static void register_all(void) {
  register_one("TestVariableSet", "target: resource", NULL, set_compute);
  register_one("TestVariableSubtract", "target: resource", NULL, subtract_compute);
  register_one("TestVariableScale", "target: resource", NULL, scale_compute);
  register_one("TestReferenceSet", "target: Ref(float)", "out: Ref(float)", ref_compute);
}

static TF_Operation* variable(ct_t* t, const char* op, const char* name, int rank) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, op, name);
  int64_t dims[1] = {2};
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", dims, rank);
  TF_SetAttrString(desc, "shared_name", name, strlen(name));
  TF_Operation* node = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return node;
}

static TF_Operation* change(ct_t* t, const char* op, const char* name, TF_Operation* target,
                            TF_Operation* value) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, op, name);
  TF_AddInput(desc, ct_out(target, 0));
  TF_AddInput(desc, ct_out(value, 0));
  TF_Operation* node = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return node;
}

static TF_Operation* read_of(ct_t* t, TF_Operation* handle) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "ReadVariableOp", "read");
  TF_AddInput(desc, ct_out(handle, 0));
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Operation* node = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return node;
}

static void run(ct_t* t, TF_Session* session, TF_Operation* target) {
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation* const*)&target, 1,
                NULL, t->status);
}

static float fetch(ct_t* t, TF_Session* session, TF_Operation* node) {
  TF_Output at = ct_out(node, 0);
  TF_Tensor* value = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &at, &value, 1, NULL, 0, NULL, t->status);
  CT_OK(t->status);
  return ct_take_float(value);
}

static TF_Session* session_of(ct_t* t) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(t->graph, options, t->status);
  CT_OK(t->status);
  TF_DeleteSessionOptions(options);
  return session;
}

CT_TEST(PluginVariables, Resource, .init = register_all) {
  ct_t t = ct_open();
  TF_Operation* handle = variable(&t, "VarHandleOp", "v", 0);
  TF_Operation* three = ct_scalar_float(&t, t.graph, "three", 3);
  TF_Operation* set = change(&t, "TestVariableSet", "set", handle, three);
  TF_Operation* subtract = change(&t, "TestVariableSubtract", "subtract", handle, three);
  TF_Operation* scale = change(&t, "TestVariableScale", "scale", handle, three);
  TF_Operation* read = read_of(&t, handle);
  TF_Session* session = session_of(&t);
  run(&t, session, subtract);
  CT_CODE(t.status, TF_FAILED_PRECONDITION);  // it has no value
  run(&t, session, set);
  CT_OK(t.status);
  cr_assert_eq(fetch(&t, session, read), 3);
  run(&t, session, scale);
  CT_OK(t.status);
  cr_assert_eq(fetch(&t, session, read), 9);
  run(&t, session, subtract);
  CT_OK(t.status);
  cr_assert_eq(fetch(&t, session, read), 6);
  TF_DeleteSession(session, t.status);
  ct_close(&t);
}

CT_TEST(PluginVariables, WrongShape, .init = register_all) {
  ct_t t = ct_open();
  TF_Operation* handle = variable(&t, "VarHandleOp", "v", 1);
  TF_Operation* one = ct_scalar_float(&t, t.graph, "one", 1);
  int64_t dims[1] = {2};
  TF_Tensor* pair = TF_AllocateTensor(TF_FLOAT, dims, 1, 2 * sizeof(float));
  memset(TF_TensorData(pair), 0, 2 * sizeof(float));
  TF_OperationDescription* desc = TF_NewOperation(t.graph, "Const", "pair");
  TF_SetAttrTensor(desc, "value", pair, t.status);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Operation* two = TF_FinishOperation(desc, t.status);
  CT_OK(t.status);
  TF_DeleteTensor(pair);
  TF_Operation* good = change(&t, "TestVariableSet", "good", handle, two);
  TF_Operation* set = change(&t, "TestVariableSet", "set", handle, one);
  TF_Operation* subtract = change(&t, "TestVariableSubtract", "subtract", handle, one);
  TF_Session* session = session_of(&t);
  run(&t, session, good);
  CT_OK(t.status);
  run(&t, session, set);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Expected [2] got []");
  run(&t, session, subtract);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Cannot update variable with shape [2]");
  TF_DeleteSession(session, t.status);
  ct_close(&t);
}

CT_TEST(PluginVariables, Reference, .init = register_all) {
  ct_t t = ct_open();
  TF_Operation* cell = variable(&t, "VariableV2", "v", 0);
  TF_Operation* three = ct_scalar_float(&t, t.graph, "three", 3);
  TF_Operation* set = change(&t, "TestReferenceSet", "set", cell, three);
  TF_Operation* same = ct_unary(&t, t.graph, "Identity", "same", ct_out(set, 0));
  TF_Operation* read = ct_unary(&t, t.graph, "Identity", "read", ct_out(cell, 0));
  TF_Session* session = session_of(&t);
  cr_assert_eq(fetch(&t, session, same), 3);  // the reference is passed on
  cr_assert_eq(fetch(&t, session, read), 3);
  TF_DeleteSession(session, t.status);
  ct_close(&t);
}
