// Kernels that permute axes or reverse elements along them.
#include <complex.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

static rn_status_t read_permutation(const rn_tensor_t* input, const rn_tensor_t* perm,
                                    int64_t* out) {
  const int rank = input->rank;
  if (perm->rank != 1)
    return rn_invalid_argument("perm must be rank 1, got shape %s", rn_text_of(perm).text);
  if (perm->count != rank)
    return rn_invalid_argument(
        "transpose expects a vector of size %d. But input(1) is a vector of size %lld", rank,
        (long long)perm->count);
  bool seen[RN_MAX_RANK] = {false};
  for (int d = 0; d < rank; ++d) {
    int64_t axis = rn_int_at(perm, d);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      return rn_invalid_argument("%lld is out of range [0 .. %d)", (long long)rn_int_at(perm, d),
                                 rank);
    seen[axis] = true;
    out[d] = axis;
  }
  for (int d = 0; d < rank; ++d) {
    if (seen[d]) continue;
    rn_shape_text_t text = rn_shape_text((rn_shape_t){rank, out});
    text.text[0] = '{';
    text.text[strlen(text.text) - 1] = '}';
    return rn_invalid_argument("%d is missing from %s.", d, text.text);
  }
  return RN_OK;
}

rn_status_t rn_permute(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int rank = input->rank;
  int64_t perm[RN_MAX_RANK], dims[RN_MAX_RANK], steps[RN_MAX_RANK], step = 1;
  RN_RETURN_IF_ERROR(read_permutation(input, rn_in(ctx, 1), perm));
  const int64_t* in_dims = rn_tensor_dims(input);
  for (int d = 0; d < rank; ++d) dims[d] = in_dims[perm[d]];
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, out));
  if (input->count == 0) return RN_OK;
  for (int d = rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= in_dims[d];
  }
  rn_move_t move;
  rn_move_begin(&move);
  int64_t to = input->count;
  for (int d = 0; d < rank; ++d) {
    to /= dims[d];
    rn_move_add(&move, dims[d], steps[perm[d]], to);
  }
  return rn_ctx_move(ctx, &move, input->dtype, input->data, (*out)->data);
}

static rn_status_t transpose(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  return rn_permute(ctx, &out);
}

static rn_status_t conjugate_transpose(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_permute(ctx, &out));
  if (out->dtype == RN_COMPLEX64)
    for (int64_t i = 0; i < out->count; ++i) RN_DATA(out, float)[2 * i + 1] *= -1;
  if (out->dtype == RN_COMPLEX128)
    for (int64_t i = 0; i < out->count; ++i) RN_DATA(out, double)[2 * i + 1] *= -1;
  return RN_OK;
}

// Reverses the axes that |turns| marks; it is NULL for a scalar or an empty tensor.
static rn_status_t reverse_axes(rn_kernel_ctx_t* ctx, const bool* turns) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (input->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  int64_t step = input->count, offset = 0;
  for (int d = 0; d < input->rank; ++d) {
    int64_t size = rn_tensor_dim(input, d);
    step /= size;
    if (turns[d]) offset += (size - 1) * step;
    rn_move_add(&move, size, turns[d] ? -step : step, step);
  }
  const char* from = (const char*)input->data + (size_t)offset * rn_dtype_size(input->dtype);
  return rn_ctx_move(ctx, &move, input->dtype, from, out->data);
}

static rn_status_t reverse(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *dims = rn_in(ctx, 1);
  if (input->rank == 0) return reverse_axes(ctx, NULL);
  if (rn_tensor_dim(input, 0) == 0)
    return rn_invalid_argument("Invalid input first dimension. Found 0.");
  if (dims->rank != 1) return rn_invalid_argument("'dims' must be 1-dimension, not %d", dims->rank);
  if (dims->count != input->rank)
    return rn_invalid_argument(
        "'dims' must have the same number of values as 'input' has dimensions. 'input' has "
        "%d'dims' has %lld values",
        input->rank, (long long)dims->count);
  return reverse_axes(ctx, RN_DATA(dims, const bool));
}

static rn_status_t reverse_v2(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *axes = rn_in(ctx, 1);
  const int rank = input->rank;
  if (rank == 0 || input->count == 0) return reverse_axes(ctx, NULL);
  if (axes->rank != 1) return rn_invalid_argument("'dims' must be 1-dimension, not %d", axes->rank);
  bool turns[RN_MAX_RANK] = {false};
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t given = rn_int_at(axes, i), axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank)
      return rn_invalid_argument("'axis'[%lld] = %lld is out of valid range [0, %d", (long long)i,
                                 (long long)given, rank - 1);
    if (turns[axis])
      return rn_invalid_argument("axis %lld specified more than once.", (long long)axis);
    turns[axis] = true;
  }
  return reverse_axes(ctx, turns);
}

rn_status_t rn_reverse_sequence_init(const rn_kernel_init_t* init, void* state) {
  *(rn_sequence_axes_t*)state =
      (rn_sequence_axes_t){rn_init_int(init, "batch_dim"), rn_init_int(init, "seq_dim")};
  return RN_OK;
}

rn_status_t rn_reverse_sequence_check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *lengths = rn_in(ctx, 1);
  const rn_sequence_axes_t* axes = ctx->state;
  if (lengths->rank != 1)
    return rn_invalid_argument("seq_lengths must be 1-dim, not %d", lengths->rank);
  if (axes->batch == axes->seq)
    return rn_invalid_argument("batch_dim == seq_dim == %lld", (long long)axes->seq);
  if (axes->seq >= input->rank || axes->seq < 0)
    return rn_invalid_argument("seq_dim must be < input rank ( %lld vs. %d)", (long long)axes->seq,
                               input->rank);
  if (axes->batch >= input->rank || axes->batch < 0)
    return rn_invalid_argument("batch_dim must be < input rank ( %lld vs. %d)",
                               (long long)axes->batch, input->rank);
  int64_t batches = rn_tensor_dim(input, (int)axes->batch);
  if (lengths->count != batches)
    return rn_invalid_argument("Length of seq_lengths != input.dims(%lld), (%lld vs. %lld)",
                               (long long)axes->batch, (long long)lengths->count,
                               (long long)batches);
  return RN_OK;
}

static rn_status_t check_lengths(const rn_tensor_t* lengths, int64_t size,
                                 const rn_sequence_axes_t* axes) {
  for (int64_t i = 0; i < lengths->count; ++i) {
    if (rn_int_at(lengths, i) < 0) return rn_invalid_argument("seq_lens(%lld) < 0", (long long)i);
    if (rn_int_at(lengths, i) > size)
      return rn_invalid_argument("seq_lens(%lld) > input.dims(%lld)", (long long)i,
                                 (long long)axes->seq);
  }
  return RN_OK;
}

// Per batch entry: reverses [0, length) of the sequence axis and copies the rest.
static rn_status_t reverse_sequence(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *lengths = rn_in(ctx, 1);
  const rn_sequence_axes_t* axes = ctx->state;
  RN_RETURN_IF_ERROR(rn_reverse_sequence_check(ctx));
  RN_RETURN_IF_ERROR(check_lengths(lengths, rn_tensor_dim(input, (int)axes->seq), axes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (input->count == 0) return RN_OK;
  const size_t bytes = rn_dtype_size(input->dtype);
  const int64_t seq_step = rn_axis_view(input, (int)axes->seq).inner;
  const int64_t batch_step = rn_axis_view(input, (int)axes->batch).inner;
  for (int64_t b = 0; b < lengths->count; ++b) {
    int64_t length = rn_int_at(lengths, b), size = rn_tensor_dim(input, (int)axes->seq);
    for (int part = 0; part < 2; ++part) {
      rn_move_t move;
      rn_move_begin(&move);
      int64_t step = input->count;
      for (int d = 0; d < input->rank; ++d) {
        step /= rn_tensor_dim(input, d);
        if (d == axes->batch) continue;
        if (d == axes->seq)
          rn_move_add(&move, part ? size - length : length, part ? step : -step, step);
        else
          rn_move_add(&move, rn_tensor_dim(input, d), step, step);
      }
      int64_t to = b * batch_step + (part ? length * seq_step : 0);
      int64_t from = b * batch_step + (part ? length : length - 1) * seq_step;
      RN_RETURN_IF_ERROR(rn_ctx_move(ctx, &move, input->dtype,
                                     (const char*)input->data + from * (int64_t)bytes,
                                     (char*)out->data + to * (int64_t)bytes));
    }
  }
  return RN_OK;
}

#define REVERSE_TYPES (RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING))
#define TRANSPOSE_TYPES \
  (REVERSE_TYPES | RN_T(FLOAT8_E5M2) | RN_T(FLOAT8_E4M3FN) | RN_T(RESOURCE) | RN_T(VARIANT))

static const rn_kernel_def_t rows[] = {
    {.op = "Transpose", .device = "CPU", .types = {{"T", TRANSPOSE_TYPES}}, .compute = transpose},
    {.op = "ConjugateTranspose",
     .device = "CPU",
     .types = {{"T", TRANSPOSE_TYPES}},
     .compute = conjugate_transpose},
    {.op = "Reverse", .device = "CPU", .types = {{"T", REVERSE_TYPES}}, .compute = reverse},
    {.op = "ReverseV2", .device = "CPU", .types = {{"T", REVERSE_TYPES}}, .compute = reverse_v2},
    {.op = "ReverseSequence",
     .device = "CPU",
     .types = {{"T", REVERSE_TYPES}},
     .state_size = sizeof(rn_sequence_axes_t),
     .init = rn_reverse_sequence_init,
     .compute = reverse_sequence},
};
RN_KERNEL_FAMILY(cpu_transpose, rows);
