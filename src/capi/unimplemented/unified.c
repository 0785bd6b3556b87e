// The unified API for eager execution and tracing: not implemented yet.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/eager/c_api_unified_experimental.h"

void TF_SetTracingImplementation(const char* name, TF_Status* status) { RN_NOT_YET(status); }
TF_ExecutionContext* TF_CreateFunction(const char* fn_name, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_ExecutionContext* TF_NewEagerExecutionContext(TFE_ContextOptions* options, TF_Status* s) {
  RN_NOT_YET(s);
  return NULL;
}
void TF_DeleteExecutionContext(TF_ExecutionContext* ctx) {}
TF_AbstractTensor* TF_AddFunctionParameter(TF_ExecutionContext* func, TF_DataType dtype,
                                           TF_Shape shape, TF_Status* s) {
  RN_NOT_YET(s);
  return NULL;
}
TF_AbstractOp* TF_NewAbstractOp(TF_ExecutionContext* ctx) { return NULL; }
void TF_DeleteAbstractOp(TF_AbstractOp* op) {}
void TF_AbstractOpSetOpType(TF_AbstractOp* op, const char* op_type, TF_Status* s) { RN_NOT_YET(s); }
void TF_AbstractOpSetOpName(TF_AbstractOp* op, const char* op_name, TF_Status* s) { RN_NOT_YET(s); }
void TF_AbstractOpSetAttrType(TF_AbstractOp* op, const char* attr_name, TF_DataType value,
                              TF_Status* s) {
  RN_NOT_YET(s);
}
void TF_DeleteAbstractTensor(TF_AbstractTensor* tensor) {}
TF_OutputList* TF_NewOutputList(void) { return NULL; }
void TF_DeleteOutputList(TF_OutputList* o) {}
void TF_OutputListSetNumOutputs(TF_OutputList* o, int num_outputs, TF_Status* status) {
  RN_NOT_YET(status);
}
int TF_OutputListNumOutputs(TF_OutputList* o) { return 0; }
TF_AbstractTensor* TF_OutputListGet(TF_OutputList* o, int i) { return NULL; }
void TF_OutputListPushBack(TF_OutputList* o, TF_AbstractTensor* tensor, TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_ExecuteOperation(TF_AbstractOp* op, int num_inputs, TF_AbstractTensor* const* inputs,
                         TF_OutputList* o, TF_Status* s) {
  RN_NOT_YET(s);
}
TF_AbstractFunction* TF_FinalizeFunction(TF_ExecutionContext* ctx, TF_OutputList* outputs,
                                         TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_DeleteAbstractFunction(TF_AbstractFunction* func) {}
void TF_ExecutionContextRegisterFunction(TF_ExecutionContext* ctx, TF_AbstractFunction* func,
                                         TF_Status* status) {
  RN_NOT_YET(status);
}
TF_AbstractTensor* TF_CreateAbstractTensorFromEagerTensor(TFE_TensorHandle* t, TF_Status* s) {
  RN_NOT_YET(s);
  return NULL;
}
TFE_TensorHandle* TF_AbstractTensorGetEagerTensor(TF_AbstractTensor* at, TF_Status* s) {
  RN_NOT_YET(s);
  return NULL;
}
TFE_Context* TF_ExecutionContextGetTFEContext(TF_ExecutionContext* ctx, TF_Status* s) {
  RN_NOT_YET(s);
  return NULL;
}
