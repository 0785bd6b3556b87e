// Kernels that read or write a part of a tensor given by bounds.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/slice_spec.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

static rn_status_t slice(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *begin = rn_in(ctx, 1), *size = rn_in(ctx, 2);
  const int rank = input->rank;
  if (begin->rank != 1 || size->rank != 1 || begin->count != rank || size->count != rank)
    return rn_invalid_argument(
        "Expected begin and size arguments to be 1-D tensors of size %d, but got shapes %s and %s "
        "instead.",
        rank, rn_text_of(begin).text, rn_text_of(size).text);
  int64_t dims[RN_MAX_RANK], starts[RN_MAX_RANK];
  const int64_t* whole = rn_tensor_dims(input);
  for (int d = 0; d < rank; ++d) {
    int64_t b = rn_int_at(begin, d), s = rn_int_at(size, d);
    if (b < 0 || b > whole[d])
      return rn_invalid_argument("Expected begin[%d] in [0, %lld], but got %lld", d,
                                 (long long)whole[d], (long long)b);
    if (s == -1) s = whole[d] - b;
    if (s < 0 || s > whole[d] - b)
      return rn_invalid_argument("Expected size[%d] in [0, %lld], but got %lld", d,
                                 (long long)(whole[d] - b), (long long)s);
    starts[d] = b;
    dims[d] = s;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  int64_t offset = 0, in_step = input->count, out_step = out->count;
  for (int d = 0; d < rank; ++d) {
    in_step /= whole[d];
    out_step /= dims[d];
    offset += starts[d] * in_step;
    rn_move_add(&move, dims[d], in_step, out_step);
  }
  const char* from = (const char*)input->data + (size_t)offset * rn_dtype_size(input->dtype);
  return rn_ctx_move(ctx, &move, input->dtype, from, out->data);
}

static rn_status_t strided_init(const rn_kernel_init_t* init, void* state) {
  rn_slice_masks_init(init, state);
  return RN_OK;
}

// Fast path for x[i] and x[a:b] of a vector, with which programs take shapes apart: one copy and no
// slice spec. Leaves unusual cases to the general path (|*out_done| stays false).
static rn_status_t slice_vector(rn_kernel_ctx_t* ctx, bool* out_done) {
  const rn_tensor_t *input = rn_in(ctx, 0), *begin = rn_in(ctx, 1), *end = rn_in(ctx, 2),
                    *strides = rn_in(ctx, 3);
  const rn_slice_masks_t* masks = ctx->state;
  if (input->rank != 1 || begin->rank != 1 || end->rank != 1 || strides->rank != 1 ||
      begin->count != 1 || end->count != 1 || strides->count != 1 || rn_int_at(strides, 0) != 1 ||
      masks->ellipsis || masks->new_axis & 1 || !rn_dtype_is_plain(input->dtype) ||
      !rn_ctx_is_host(ctx, input->dtype))
    return RN_OK;
  const int64_t size = input->count;
  int64_t first = rn_int_at(begin, 0), last = rn_int_at(end, 0);
  const bool shrinks = masks->shrink_axis & 1;
  if (first < 0) first += size;
  if (last < 0) last += size;
  if (masks->begin & 1 && !shrinks) first = 0;
  if (masks->end & 1) last = size;
  if (first < 0 || first >= size) return RN_OK;
  if (shrinks) last = first + 1;
  if (first >= last || last > size) return RN_OK;
  const int64_t count = last - first;
  rn_tensor_t* out = NULL;
  *out_done = true;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){!shrinks, &count}, &out));
  const size_t bytes = rn_dtype_size(input->dtype);
  rn_move_bytes(out->data, (const char*)input->data + (size_t)first * bytes, (size_t)count * bytes);
  return RN_OK;
}

static rn_status_t strided_slice(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  bool is_done = false;
  RN_RETURN_IF_ERROR(slice_vector(ctx, &is_done));
  if (is_done) return RN_OK;
  rn_slice_spec_t spec;
  RN_RETURN_IF_ERROR(rn_slice_spec_make(rn_tensor_shape(input), rn_in(ctx, 1), rn_in(ctx, 2),
                                        rn_in(ctx, 3), ctx->state, &spec));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){spec.out_rank, spec.out_dims}, &out));
  if (out->count == 0) return RN_OK;
  rn_move_t move;
  int64_t offset;
  rn_slice_spec_read(&spec, rn_tensor_shape(input), &move, &offset);
  const char* from = (const char*)input->data + offset * (int64_t)rn_dtype_size(input->dtype);
  return rn_ctx_move(ctx, &move, input->dtype, from, out->data);
}

// Writes |value|, broadcast, into the slice of |into|.
static rn_status_t write_slice(rn_kernel_ctx_t* ctx, const rn_slice_spec_t* spec,
                               const rn_tensor_t* value, rn_tensor_t* into) {
  rn_move_t move;
  int64_t offset;
  RN_RETURN_IF_ERROR(rn_slice_spec_write(spec, rn_tensor_shape(into), value, &move, &offset));
  char* to = (char*)into->data + offset * (int64_t)rn_dtype_size(into->dtype);
  return rn_ctx_move(ctx, &move, into->dtype, value->data, to);
}

static rn_status_t strided_slice_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *sizes = rn_in(ctx, 0), *dy = rn_in(ctx, 4);
  if (sizes->rank != 1)
    return rn_invalid_argument("shape must be 1-D, got shape.shape = %s", rn_text_of(sizes).text);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  rn_slice_spec_t spec;
  RN_RETURN_IF_ERROR(
      rn_slice_spec_make(shape, rn_in(ctx, 1), rn_in(ctx, 2), rn_in(ctx, 3), ctx->state, &spec));
  rn_shape_t wanted = {spec.out_rank, spec.out_dims};
  if (!rn_shape_eq(wanted, rn_tensor_shape(dy)))
    return rn_invalid_argument("shape of dy was %s instead of %s", rn_text_of(dy).text,
                               rn_shape_text(wanted).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  return write_slice(ctx, &spec, dy, out);
}

static rn_status_t assign_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  rn_slice_spec_t spec;
  RN_RETURN_IF_ERROR(rn_slice_spec_make(rn_tensor_shape(&variable->value), rn_in(ctx, 1),
                                        rn_in(ctx, 2), rn_in(ctx, 3), ctx->state, &spec));
  return write_slice(ctx, &spec, rn_in(ctx, 4), &variable->value);
}

static rn_status_t strided_slice_assign(rn_kernel_ctx_t* ctx) {
  return rn_variable_update(ctx, assign_locked);
}

static rn_status_t tensor_strided_slice_update(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_slice_spec_t spec;
  RN_RETURN_IF_ERROR(rn_slice_spec_make(rn_tensor_shape(input), rn_in(ctx, 1), rn_in(ctx, 2),
                                        rn_in(ctx, 3), ctx->state, &spec));
  if (rn_dtypes_has(RN_TYPES_QUANTISED, input->dtype))
    return rn_invalid_argument("Unsupported data type: %s", rn_dtype_name(input->dtype));
  rn_tensor_t* out = NULL;
  // Not in place if the value shares the input's buffer.
  uint64_t candidates = rn_in(ctx, 4)->data != input->data;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, candidates, rn_tensor_shape(input), &out));
  if (out->data != input->data) RN_RETURN_IF_ERROR(rn_ctx_copy(ctx, input, out));
  return write_slice(ctx, &spec, rn_in(ctx, 4), out);
}

#define TYPES                                                                              \
  (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING) | RN_T(FLOAT8_E5M2) | \
   RN_T(FLOAT8_E4M3FN) | RN_T(INT4) | RN_T(UINT4))
#define STRIDED(name, function)                                                            \
  {                                                                                        \
    .op = name, .device = "CPU", .types = {{"T", TYPES | RN_T(RESOURCE) | RN_T(VARIANT)}}, \
    .state_size = sizeof(rn_slice_masks_t), .init = strided_init, .compute = function      \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "Slice",
     .device = "CPU",
     .types = {{"T", TYPES | RN_T(RESOURCE) | RN_T(VARIANT)}},
     .compute = slice},
    STRIDED("StridedSlice", strided_slice),
    STRIDED("StridedSliceGrad", strided_slice_grad),
    STRIDED("StridedSliceAssign", strided_slice_assign),
    STRIDED("ResourceStridedSliceAssign", strided_slice_assign),
    STRIDED("TensorStridedSliceUpdate", tensor_strided_slice_update),
};
RN_KERNEL_FAMILY(cpu_slice, rows);
