// See as_float.h.
#include "kernels/cpu/image/as_float.h"

#include "kernels/cpu/loops.h"

void rn_image_widen(rn_dtype_t dtype, const void* in, float* out, int64_t n) {
  rn_casts()->fn[dtype][RN_FLOAT](NULL, &in, &(int){1}, out, n);
}

rn_status_t rn_image_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tensor_t* temp,
                            const float** out) {
  *out = tensor->data;
  if (tensor->dtype == RN_FLOAT) return RN_OK;
  if (!rn_casts()->fn[tensor->dtype][RN_FLOAT])
    return rn_unimplemented("Images of type %s are not supported", rn_dtype_name(tensor->dtype));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(tensor), temp));
  rn_image_widen(tensor->dtype, tensor->data, temp->data, tensor->count);
  *out = temp->data;
  return RN_OK;
}

void rn_image_store(const float* values, rn_tensor_t* out) {
  const void* in = values;
  rn_casts()->fn[RN_FLOAT][out->dtype](NULL, &in, &(int){1}, out->data, out->count);
}
