// Eager execution: clusters, custom devices and a few switches are not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/eager/c_api_experimental.h"

void TFE_ContextEnableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextDisableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextUpdateServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextUpdateServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                           size_t proto_len, int64_t init_timeout_in_ms,
                                           TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextSetServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                        size_t proto_len, int64_t init_timeout_in_ms,
                                        TF_Status* status, bool clear_existing_contexts) {
  RN_NOT_YET(status);
}
void TFE_ContextSetServerDefWithTimeoutAndRetries(TFE_Context* ctx, int keep_alive_secs,
                                                  const void* proto, size_t proto_len,
                                                  int64_t init_timeout_in_ms, int retries,
                                                  TF_Status* status, bool clear_existing_contexts) {
  RN_NOT_YET(status);
}
bool TFE_ContextCheckAlive(TFE_Context* ctx, const char* worker_name, TF_Status* status) {
  RN_NOT_YET(status);
  return false;
}
void TFE_HostAddressSpace(TFE_Context* ctx, TF_Buffer* buf) {}
void TFE_RegisterCustomDevice(TFE_Context* ctx, TFE_CustomDevice device, const char* device_name,
                              void* device_info, TF_Status* status) {
  RN_NOT_YET(status);
}
bool TFE_IsCustomDevice(TFE_Context* ctx, const char* device_name) { return false; }
TFE_TensorHandle* TFE_NewCustomDeviceTensorHandle(TFE_Context* ctx, const char* device_name,
                                                  TF_DataType dtype, void* data,
                                                  TFE_CustomDeviceTensorHandle methods,
                                                  TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_ContextGetGraphDebugInfo(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                                  TF_Status* status) {
  RN_NOT_YET(status);
}
TFE_TensorHandle* TFE_CreatePackedTensorHandle(TFE_Context* ctx, TFE_TensorHandle** handles,
                                               int* num_handles, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextSetRunEagerOpAsFunction(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextSetJitCompileRewrite(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_GetExecutedOpNames(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_SetLogicalCpuDevices(TFE_Context* ctx, int num_cpus, const char* prefix,
                              TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_InsertConfigKeyValue(TFE_Context* ctx, const char* key, const char* value,
                              TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_GetConfigKeyValue(TFE_Context* ctx, const char* key, int64_t timeout_in_ms,
                           TF_Buffer* value_buf, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_DeleteConfigKeyValue(TFE_Context* ctx, const char* key, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ReportErrorToCluster(TFE_Context* ctx, int error_code, const char* error_message,
                              TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_GetTaskStates(TFE_Context* ctx, const TF_Buffer* tasks, void* states, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_WaitAtBarrier(TFE_Context* ctx, const char* barrier_id, int64_t barrier_timeout_in_ms,
                       TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_InitializeLocalOnlyContext(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                    size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                             size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
