// The rest of c_api_experimental.h that is not implemented yet.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/c_api_experimental.h"

TF_Tensor* TF_DequeueNamedTensor(TF_Session* session, int tensor_id, TF_Status* status) {
  RN_NOT_YET(status);
  return NULL;
}
void TF_EnqueueNamedTensor(TF_Session* session, int tensor_id, TF_Tensor* tensor,
                           TF_Status* status) {
  RN_NOT_YET(status);
}
