// See as_float.h.
#include "kernels/cpu/image/as_float.h"

#include "tensor/float16.h"

rn_status_t rn_image_floats(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tensor_t* temp,
                            const float** out) {
  *out = tensor->data;
  if (tensor->dtype == RN_FLOAT) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(tensor), temp));
  float* to = temp->data;
  *out = to;
  switch (tensor->dtype) {
#define CASE(dtype_, type, value)                 \
  case dtype_:                                    \
    for (int64_t i = 0; i < tensor->count; ++i) { \
      type x = RN_DATA(tensor, const type)[i];    \
      to[i] = value;                              \
    }                                             \
    break;
    CASE(RN_DOUBLE, double, (float)x)
    CASE(RN_HALF, uint16_t, rn_half_to_float(x))
    CASE(RN_BFLOAT16, uint16_t, rn_bfloat16_to_float(x))
    CASE(RN_UINT8, uint8_t, (float)x)
    CASE(RN_UINT16, uint16_t, (float)x)
    CASE(RN_INT8, int8_t, (float)x)
    CASE(RN_INT16, int16_t, (float)x)
    CASE(RN_INT32, int32_t, (float)x)
    CASE(RN_INT64, int64_t, (float)x)
#undef CASE
    default:
      return rn_unimplemented("Images of type %s are not supported", rn_dtype_name(tensor->dtype));
  }
  return RN_OK;
}

void rn_image_store(const float* values, rn_tensor_t* out) {
  for (int64_t i = 0; i < out->count; ++i) {
    if (out->dtype == RN_HALF)
      RN_DATA(out, uint16_t)[i] = rn_float_to_half(values[i]);
    else if (out->dtype == RN_BFLOAT16)
      RN_DATA(out, uint16_t)[i] = rn_float_to_bfloat16(values[i]);
    else if (out->dtype == RN_DOUBLE)
      RN_DATA(out, double)[i] = (double)values[i];
    else
      RN_DATA(out, float)[i] = values[i];
  }
}
