// Eager execution: functions of the coordination service, not implemented yet.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/eager/c_api_experimental.h"

void TFE_ContextEnableGraphCollection(TFE_Context* ctx) {}
void TFE_ContextDisableGraphCollection(TFE_Context* ctx) {}
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
