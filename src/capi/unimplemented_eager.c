// Eager execution: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/c_api_legacy.h"
#include "tensorflow/c/eager/c_api.h"

TFE_ContextOptions* TFE_NewContextOptions(void) { return NULL; }
void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable) {}
void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options,
                                                TFE_ContextDevicePlacementPolicy policy) {}
void TFE_DeleteContextOptions(TFE_ContextOptions* options) {}
TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_DeleteContext(TFE_Context* ctx) {}
TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_ContextClearCaches(TFE_Context* ctx) {}
void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx,
                                                    TFE_ContextDevicePlacementPolicy policy) {}
TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  return (TFE_ContextDevicePlacementPolicy)0;
}
void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                             size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_DeleteTensorHandle(TFE_TensorHandle* h) {}
TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) { return (TF_DataType)0; }
int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx,
                                               const char* device_name, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) {}
int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) { return 0; }
int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) { return 0; }
TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_DeleteOp(TFE_Op* op) {}
const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) { RN_NOT_YET(status); }
const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) { RN_NOT_YET(status); }
void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  RN_NOT_YET(status);
}
int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list,
                              TF_Status* status) {
  RN_NOT_YET(status);
  return (TF_AttrType)0;
}
TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  RN_NOT_YET(status);
  return (TF_AttrType)0;
}
void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {}
void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {}
void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {}
void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {}
void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {}
void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, int num_dims,
                        TF_Status* out_status) {
  RN_NOT_YET(out_status);
}
void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {}
void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
}
void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values,
                             const size_t* lengths, int num_values) {}
void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values,
                          int num_values) {}
void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values,
                            int num_values) {}
void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name, const unsigned char* values,
                           int num_values) {}
void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name, const TF_DataType* values,
                           int num_values) {}
void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                            const int* num_dims, int num_values, TF_Status* out_status) {
  RN_NOT_YET(out_status);
}
void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value,
                               int num_values) {}
int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  RN_CLEAR(num_retvals);
  RN_NOT_YET(status);
}
void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  RN_NOT_YET(status);
}
unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) { return 0; }
void TFE_ContextEnableRunMetadata(TFE_Context* ctx) {}
void TFE_ContextDisableRunMetadata(TFE_Context* ctx) {}
void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextStartStep(TFE_Context* ctx) {}
void TFE_ContextEndStep(TFE_Context* ctx) {}

void TFE_OpSetXLACompilation(TFE_Op* op, unsigned char enable) {}
