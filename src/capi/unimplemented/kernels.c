// Temporary variables and variants for plug-in kernels: not implemented yet.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/kernels_experimental.h"

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
