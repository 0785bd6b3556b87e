// Inputs and outputs of 16 bits as floats: see lstm.h.
#include "base/assert.h"
#include "kernels/cuda/ctc_rnn/lstm.h"
#include "kernels/cuda/math/cast.h"

static rn_status_t new_temp(rn_float_args_t* args, rn_shape_t shape, rn_tensor_t* stored_to,
                            rn_tensor_t** out) {
  RN_ASSERT(args->count < RN_FLOAT_ARGS_MAX);
  rn_tensor_t* temp = &args->temps[args->count];
  RN_RETURN_IF_ERROR(rn_temp(args->ctx, RN_FLOAT, shape, temp));
  args->outs[args->count++] = stored_to;
  *out = temp;
  return RN_OK;
}

rn_status_t rn_cuda_floats_in(rn_float_args_t* args, int i, const float** out) {
  const rn_tensor_t* input = rn_in(args->ctx, i);
  *out = input->data;
  if (input->dtype == RN_FLOAT) return RN_OK;
  rn_tensor_t* temp = NULL;
  RN_RETURN_IF_ERROR(new_temp(args, rn_tensor_shape(input), NULL, &temp));
  *out = temp->data;
  return temp->count ? rn_cuda_convert(args->ctx, input->data, input->dtype, temp) : RN_OK;
}

rn_status_t rn_cuda_floats_out(rn_float_args_t* args, int o, rn_shape_t shape, bool zeroes,
                               float** out) {
  rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(rn_output(args->ctx, o, shape, &tensor));
  if (tensor->dtype != RN_FLOAT) RN_RETURN_IF_ERROR(new_temp(args, shape, tensor, &tensor));
  *out = tensor->data;
  return zeroes ? rn_cuda_zero(args->ctx, tensor) : RN_OK;
}

rn_status_t rn_cuda_floats_end(rn_float_args_t* args, rn_status_t status) {
  for (int t = 0; t < args->count; ++t) {
    const rn_tensor_t* temp = &args->temps[t];
    if (rn_ok(status) && args->outs[t] && temp->count)
      status = rn_cuda_convert(args->ctx, temp->data, RN_FLOAT, args->outs[t]);
  }
  for (int t = 0; t < args->count; ++t) rn_tensor_clear(&args->temps[t]);
  return status;
}
