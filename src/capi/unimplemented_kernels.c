// Variables and variants for plug-in kernels: not implemented yet.

#include "capi/unimplemented.h"
#include "tensorflow/c/kernels_experimental.h"

void TF_AssignVariable(TF_OpKernelContext* ctx, int input_index, int value_index,
                       bool validate_shape,
                       void (*copyFunc)(TF_OpKernelContext* ctx, TF_Tensor* source,
                                        TF_Tensor* dest),
                       TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_AssignRefVariable(TF_OpKernelContext* ctx, int input_ref_index, int output_ref_index,
                          int value_index, bool use_locking, bool validate_shape,
                          void (*copyFunc)(TF_OpKernelContext* ctx, TF_Tensor* source,
                                           TF_Tensor* dest),
                          TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_AssignUpdateVariable(
    TF_OpKernelContext* ctx, int input_index, int value_index, int Op, int isVariantType,
    void (*copyFunc)(TF_OpKernelContext* ctx, TF_Tensor* source, TF_Tensor* dest),
    void (*updateFunc)(TF_OpKernelContext* ctx, TF_Tensor* tensor, TF_Tensor* value, int Op),
    TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_TemporaryVariable(TF_OpKernelContext* ctx, TF_DataType dtype, const int64_t* dims,
                          int num_dims, TF_StringView* var_name,
                          void (*plugin_allocator)(TF_OpKernelContext*, TF_Tensor*, TF_DataType,
                                                   const int64_t*, int, TF_Status*),
                          TF_Status* tf_status) {
  RN_NOT_YET(tf_status);
}
void TF_DestroyTemporaryVariable(TF_OpKernelContext* ctx, int index, TF_StringView* var_name,
                                 TF_Status* tf_status) {
  RN_NOT_YET(tf_status);
}
void TF_MaybeLockVariableInputMutexesInOrder(
    TF_OpKernelContext* ctx, bool do_lock, bool sparse, const int* inputs, size_t len,
    void (*copyFunc)(TF_OpKernelContext* ctx, TF_Tensor* source, TF_Tensor* dest),
    TF_VariableInputLockHolder** lockHolder, TF_Status* status) {
  RN_CLEAR(lockHolder);
  RN_NOT_YET(status);
}
void TF_GetInputTensorFromVariable(TF_OpKernelContext* ctx, int input, bool lock_held,
                                   bool isVariantType, bool sparse,
                                   void (*copyFunc)(TF_OpKernelContext* ctx, TF_Tensor* source,
                                                    TF_Tensor* dest),
                                   TF_Tensor** out, TF_Status* status) {
  RN_CLEAR(out);
  RN_NOT_YET(status);
}
void TF_OpKernelContext_ForwardRefInputToRefOutput(TF_OpKernelContext* ctx, int32_t input_index,
                                                   int32_t output_index) {}
void TF_ReleaseVariableInputLockHolder(TF_VariableInputLockHolder* lockHolder) {}
void TF_GetInputByName(TF_OpKernelContext* ctx, const char* inputName, TF_Tensor** tensor,
                       TF_Status* status) {
  RN_CLEAR(tensor);
  RN_NOT_YET(status);
}
void TF_OpKernelConstruction_GetAttrTensorShape(TF_OpKernelConstruction* ctx, const char* attr_name,
                                                int64_t* dims, size_t num_dims, TF_Status* status) {
  RN_NOT_YET(status);
}
bool TF_IsRefInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  RN_NOT_YET(status);
  return false;
}
void TF_AddNVariant(TF_OpKernelContext* ctx,
                    void (*binary_add_func)(TF_OpKernelContext* ctx, TF_Tensor* a, TF_Tensor* b,
                                            TF_Tensor* out),
                    TF_Status* status) {
  RN_NOT_YET(status);
}
void TF_ZerosLikeVariant(TF_OpKernelContext* ctx,
                         void (*zeros_like_func)(TF_OpKernelContext* ctx, TF_Tensor* input,
                                                 TF_Tensor* out),
                         TF_Status* status) {
  RN_NOT_YET(status);
}
