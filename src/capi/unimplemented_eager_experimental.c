// Experimental additions to eager execution: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/eager/c_api_experimental.h"

void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name, const char* raw_device_name,
                 TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextEnableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextDisableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextOptionsSetTfrt(TFE_ContextOptions* options, bool use_tfrt) {}
uint64_t TFE_GetContextId(TFE_Context* ctx) { return 0; }
TFE_CancellationManager* TFE_NewCancellationManager(void) { return NULL; }
bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager) { return false; }
bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager) { return false; }
void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager) {}
TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager* manager) {
  return 0;
}
bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager* manager,
                                             TFE_CancellationToken token,
                                             const TFE_CancelCallback* c_callback,
                                             const char* callback_name) {
  return false;
}
bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager* manager,
                                               TFE_CancellationToken token) {
  return false;
}
bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager* manager,
                                                  TFE_CancellationToken token) {
  return false;
}
void TFE_DeleteCancellationManager(TFE_CancellationManager* manager) {}
void TFE_OpSetCancellationManager(TFE_Op* op, TFE_CancellationManager* cancellation_manager,
                                  TF_Status* status) {
  RN_NOT_YET(status);
}
TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                              int in_flight_nodes_limit) {
  return NULL;
}
void TFE_DeleteExecutor(TFE_Executor* executor) {}
bool TFE_ExecutorIsAsync(TFE_Executor* executor) { return false; }
void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ExecutorClearError(TFE_Executor* executor) {}
void TFE_ContextSetExecutorForThread(TFE_Context* ctx, TFE_Executor* executor) {}
TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* ctx) { return NULL; }
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
void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status) { RN_NOT_YET(status); }
void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return 0;
}
TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_HostAddressSpace(TFE_Context* ctx, TF_Buffer* buf) {}
const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) { return NULL; }
void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {}
void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf, TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto,
                             size_t proto_len, TF_Status* status) {
  RN_NOT_YET(status);
}
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
void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                               TF_Status* status) {
  RN_NOT_YET(status);
}
void TFE_ContextGetGraphDebugInfo(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                                  TF_Status* status) {
  RN_NOT_YET(status);
}
TF_Function* TFE_ContextGetFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype, const int64_t* dims,
                                  int num_dims, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
TFE_TensorHandle* TFE_CreatePackedTensorHandle(TFE_Context* ctx, TFE_TensorHandle** handles,
                                               int* num_handles, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable, TF_Status* status) {
  RN_NOT_YET(status);
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
const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status) {
  RN_NOT_YET(status);
  return -1;
}
void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status) { RN_NOT_YET(status); }
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
