// Variants for plug-in kernels: not implemented yet.

#include "capi/unimplemented/unimplemented.h"
#include "tensorflow/c/kernels_experimental.h"

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
