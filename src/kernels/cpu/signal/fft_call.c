// What a call of a Fourier transform asks for: see fft_call.h.
#include "kernels/cpu/signal/fft_call.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"

rn_fft_op_t rn_fft_op(const char* name) {
  rn_fft_op_t op = {0};
  if (!strncmp(name, "Batch", 5)) name += 5;
  op.is_backward = *name == 'I';
  if (op.is_backward) ++name;
  op.is_real = *name == 'R';
  if (op.is_real) ++name;
  name += strlen("FFT");
  op.rank = !*name ? 1 : *name == 'N' ? RN_FFT_ANY_RANK : *name - '0';
  return op;
}

static rn_status_t check_axes(const rn_tensor_t* in, const rn_tensor_t* axes, rn_fft_call_t* call) {
  if (axes->rank != 1)
    return rn_invalid_argument("axes must be a vector, but got shape %s", rn_text_of(axes).text);
  int64_t count = rn_tensor_dim(axes, 0);
  if (in->rank < count)
    return rn_invalid_argument("Input must have rank of at least %" PRId64 " but got: %s", count,
                               rn_text_of(in).text);
  call->rank = (int)count;
  int64_t last = 0;
  for (int i = 0; i < call->rank; ++i) {
    int64_t axis = rn_int_at(axes, i);
    if (axis < 0) axis += in->rank;
    if (i && last + 1 != axis) return rn_invalid_argument("axes must be successive and ascending.");
    last = axis;
  }
  if (count && last != in->rank - 1)
    return rn_invalid_argument("The last axis to perform transform on must be -1.");
  return RN_OK;
}

// Reads fft_length. For real transforms, the input must be as long.
static rn_status_t check_lengths(rn_kernel_ctx_t* ctx, const rn_fft_op_t* op, rn_fft_call_t* call) {
  const rn_tensor_t *in = rn_in(ctx, 0), *lengths = rn_in(ctx, 1);
  if (lengths->rank != 1 || rn_tensor_dim(lengths, 0) != call->rank) {
    if (op->rank != RN_FFT_ANY_RANK || lengths->rank != 1)
      return rn_invalid_argument("fft_length must have shape [%d]", call->rank);
    return rn_invalid_argument("fft_length must have shape [%d], but got: %" PRId64 ".", call->rank,
                               rn_tensor_dim(lengths, 0));
  }
  for (int i = 0; i < call->rank; ++i) {
    int64_t length = rn_int_at(lengths, i);
    int axis = in->rank - call->rank + i;
    bool is_last = i == call->rank - 1;
    if (length < 0)
      return rn_invalid_argument("fft_length[%d] must >= 0, but got: %" PRId64, i, length);
    call->lengths[i] = call->dims[axis] = length;
    if (!op->is_real) continue;
    int64_t least = op->is_backward && is_last ? length / 2 + 1 : length;
    if (rn_tensor_dim(in, axis) != 0 && rn_tensor_dim(in, axis) < least)
      return rn_invalid_argument("Input dimension %d must have length of at least %" PRId64
                                 " but got: %" PRId64,
                                 axis, least, rn_tensor_dim(in, axis));
    if (!op->is_backward && is_last && length) call->dims[axis] = length / 2 + 1;
  }
  return RN_OK;
}

rn_status_t rn_fft_check(rn_kernel_ctx_t* ctx, const rn_fft_op_t* op, rn_fft_call_t* call) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  call->rank = op->rank;
  memcpy(call->dims, rn_tensor_dims(in), (size_t)in->rank * sizeof *call->dims);
  if (op->rank == RN_FFT_ANY_RANK)
    RN_RETURN_IF_ERROR(check_axes(in, rn_in(ctx, 2), call));
  else if (in->rank < call->rank)
    return rn_invalid_argument("Input must have rank of at least %d but got: %s", call->rank,
                               rn_text_of(in).text);
  if (op->is_real || op->rank == RN_FFT_ANY_RANK) return check_lengths(ctx, op, call);
  for (int i = 0; i < call->rank; ++i) call->lengths[i] = call->dims[in->rank - call->rank + i];
  return RN_OK;
}

rn_status_t rn_fft_check_types(const rn_kernel_ctx_t* ctx, const rn_fft_op_t* op) {
  rn_dtype_t in = ctx->kernel->input_types[0], out = ctx->kernel->output_types[0];
  bool is_wide = in == RN_DOUBLE || in == RN_COMPLEX128;
  if (is_wide == (out == RN_DOUBLE || out == RN_COMPLEX128)) return RN_OK;
  return rn_invalid_argument("Wrong types for %s real FFT: in=%d out=%d",
                             op->is_backward ? "backward" : "forward", (int)in, (int)out);
}
