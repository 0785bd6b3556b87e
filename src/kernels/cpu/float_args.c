// See float_args.h.
#include "kernels/cpu/float_args.h"

#include "kernels/cpu/vector.h"

static rn_status_t new_temp(rn_float_args_t* args, rn_shape_t shape, rn_tensor_t** out) {
  if (args->count == RN_FLOAT_ARGS_MAX) return rn_internal("Too many arguments");
  *out = &args->temps[args->count];
  RN_RETURN_IF_ERROR(rn_temp(args->ctx, RN_FLOAT, shape, *out));
  ++args->count;
  return RN_OK;
}

rn_status_t rn_float_args_in(rn_float_args_t* args, int i, const float** out) {
  const rn_tensor_t* input = rn_in(args->ctx, i);
  if (input->dtype == RN_FLOAT) {
    *out = RN_DATA(input, const float);
    return RN_OK;
  }
  rn_tensor_t* temp = NULL;
  RN_RETURN_IF_ERROR(new_temp(args, rn_tensor_shape(input), &temp));
  rn_vector_table()->widen_half(RN_DATA(input, const uint16_t), RN_DATA(temp, float), temp->count);
  *out = RN_DATA(temp, float);
  return RN_OK;
}

rn_status_t rn_float_args_out(rn_float_args_t* args, int o, rn_shape_t shape, float** out) {
  rn_tensor_t *output = NULL, *temp = NULL;
  RN_RETURN_IF_ERROR(rn_output(args->ctx, o, shape, &output));
  if (output->dtype == RN_FLOAT) {
    *out = RN_DATA(output, float);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(new_temp(args, shape, &temp));
  args->outs[args->count - 1] = output;
  *out = RN_DATA(temp, float);
  return RN_OK;
}

rn_status_t rn_float_args_temp(rn_float_args_t* args, int64_t count, float** out) {
  rn_tensor_t* temp = NULL;
  RN_RETURN_IF_ERROR(new_temp(args, (rn_shape_t){1, &count}, &temp));
  *out = RN_DATA(temp, float);
  return RN_OK;
}

rn_status_t rn_float_args_end(rn_float_args_t* args, rn_status_t status) {
  for (int i = 0; i < args->count; ++i) {
    const rn_tensor_t* temp = &args->temps[i];
    if (rn_ok(status) && args->outs[i])
      rn_vector_table()->narrow_half(RN_DATA(temp, float), RN_DATA(args->outs[i], uint16_t),
                                     temp->count);
    rn_tensor_clear(&args->temps[i]);
  }
  return status;
}
