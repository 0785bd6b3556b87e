// Padding with a constant or a mirror image, and the gradient of the latter.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

static rn_status_t check_paddings(const rn_tensor_t* input, const rn_tensor_t* paddings,
                                  const char* separator) {
  if (paddings->rank != 2 || rn_tensor_dim(paddings, 1) != 2)
    return rn_invalid_argument("paddings must be a matrix with 2 columns: %s",
                               rn_text_of(paddings).text);
  if (rn_tensor_dim(paddings, 0) != input->rank)
    return rn_invalid_argument("The first dimension of paddings must be the rank of inputs%s%s%s",
                               rn_text_of(paddings).text, separator, rn_text_of(input).text);
  return RN_OK;
}

// Sizes after padding. INVALID_ARGUMENT if one of them or their product overflows.
static rn_status_t padded_dims(const rn_tensor_t* input, const rn_tensor_t* paddings,
                               int64_t* dims) {
  int64_t count = 1;
  for (int d = 0; d < input->rank; ++d) {
    int64_t before = rn_int_at(paddings, 2 * d), after = rn_int_at(paddings, 2 * d + 1), size;
    if (!rn_add_i64_ok(before, rn_tensor_dim(input, d), &size) ||
        !rn_add_i64_ok(size, after, &dims[d]))
      return rn_invalid_argument(
          "Expected a non-negative size, got %lld",
          (long long)((uint64_t)before + (uint64_t)rn_tensor_dim(input, d) + (uint64_t)after));
    int64_t product;
    if (!rn_mul_i64_ok(count, dims[d], &product))
      return rn_invalid_argument("Encountered overflow when multiplying %lld with %lld, result: -1",
                                 (long long)count, (long long)dims[d]);
    count = product;
  }
  return RN_OK;
}

rn_status_t rn_pad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_paddings(input, paddings, " "));
  if (ctx->kernel->input_count > 2 && rn_in(ctx, 2)->rank != 0)
    return rn_invalid_argument("constant_values must be a scalar. Found: %s",
                               rn_text_of(rn_in(ctx, 2)).text);
  for (int d = 0; d < input->rank; ++d) {
    int64_t before = rn_int_at(paddings, 2 * d), after = rn_int_at(paddings, 2 * d + 1);
    if (before < 0 || after < 0)
      return rn_invalid_argument("Paddings must be non-negative: %lld %lld", (long long)before,
                                 (long long)after);
  }
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(padded_dims(input, paddings, dims));
  return rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, out);
}

rn_status_t rn_pad_finish(rn_kernel_ctx_t* ctx, rn_tensor_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  const int64_t* dims = rn_tensor_dims(out);
  if (out->count == 0) return RN_OK;
  if (out->count != input->count)
    RN_RETURN_IF_ERROR(ctx->kernel->input_count > 2 ? rn_ctx_fill(ctx, 2, out)
                                                    : rn_ctx_zero(ctx, out));
  if (input->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  int64_t offset = 0, in_step = input->count, out_step = out->count;
  for (int d = 0; d < input->rank; ++d) {
    int64_t size = rn_tensor_dim(input, d);
    in_step /= size;
    out_step /= dims[d];
    offset += rn_int_at(paddings, 2 * d) * out_step;
    rn_move_add(&move, size, in_step, out_step);
  }
  char* to = (char*)out->data + (size_t)offset * rn_dtype_size(out->dtype);
  return rn_ctx_move(ctx, &move, out->dtype, input->data, to);
}

static rn_status_t pad(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_pad_begin(ctx, &out));
  return rn_pad_finish(ctx, out);
}

// Mirror padding. SYMMETRIC repeats the edge; REFLECT does not.
rn_status_t rn_mirror_init(const rn_kernel_init_t* init, void* state) {
  *(int*)state = rn_str_is(rn_init_string(init, "mode"), "SYMMETRIC") ? 0 : 1;
  return RN_OK;
}

// Axes before |d| are not padded yet. Copies the borders of axis |d| from the inner part, together
// with the already padded axes behind it.
static rn_status_t mirror_axis(rn_kernel_ctx_t* ctx, rn_tensor_t* out, int d, int64_t before,
                               int64_t size, int64_t after, int skipped) {
  rn_axis_view_t view = rn_axis_view(out, d);
  char* base = out->data;
  const int64_t row = view.inner * (int64_t)rn_dtype_size(out->dtype);
  for (int side = 0; side < 2; ++side) {
    int64_t count = side ? after : before;
    if (count == 0) continue;
    // Border element k (outwards from the edge) mirrors inner element k + skipped (inwards).
    int64_t from = side ? before + size - 1 - skipped : before + skipped;
    int64_t to = side ? before + size : before - 1;
    int64_t step = side ? 1 : -1;
    rn_move_t move;
    rn_move_begin(&move);
    rn_move_add(&move, view.outer, view.size * view.inner, view.size * view.inner);
    rn_move_add(&move, count, -step * view.inner, step * view.inner);
    rn_move_add(&move, view.inner, 1, 1);
    RN_RETURN_IF_ERROR(rn_ctx_move(ctx, &move, out->dtype, base + from * row, base + to * row));
  }
  return RN_OK;
}

static rn_status_t mirror_pad(rn_kernel_ctx_t* ctx) {
  const int skipped = *(const int*)ctx->state;
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_paddings(input, paddings, ", "));
  for (int d = 0; d < input->rank; ++d) {
    long long before = rn_int_at(paddings, 2 * d), after = rn_int_at(paddings, 2 * d + 1),
              size = rn_tensor_dim(input, d);
    if (before < 0 || after < 0)
      return rn_invalid_argument("paddings must be non-negative: %lld %lld", before, after);
    if (before > size - skipped || after > size - skipped)
      return skipped
                 ? rn_invalid_argument(
                       "paddings must be less than the dimension size: %lld, %lld not less than "
                       "%lld",
                       before, after, size)
                 : rn_invalid_argument(
                       "paddings must be no greater than the dimension size: %lld, %lld greater "
                       "than %lld",
                       before, after, size);
  }
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(padded_dims(input, paddings, dims));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  int64_t offset = 0, in_step = input->count, out_step = out->count;
  for (int d = 0; d < input->rank; ++d) {
    in_step /= rn_tensor_dim(input, d);
    out_step /= dims[d];
    offset += rn_int_at(paddings, 2 * d) * out_step;
    rn_move_add(&move, rn_tensor_dim(input, d), in_step, out_step);
  }
  char* to = (char*)out->data + (size_t)offset * rn_dtype_size(out->dtype);
  // Elements not written yet may be copied while the borders are made, so they must be initialized:
  // strings are empty, and plain bytes are zeroed and later overwritten.
  if (rn_dtype_is_plain(out->dtype) && out->count != input->count)
    RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  RN_RETURN_IF_ERROR(rn_ctx_move(ctx, &move, out->dtype, input->data, to));
  for (int d = input->rank - 1; d >= 0; --d)
    RN_RETURN_IF_ERROR(mirror_axis(ctx, out, d, rn_int_at(paddings, 2 * d), rn_tensor_dim(input, d),
                                   rn_int_at(paddings, 2 * d + 1), skipped));
  return RN_OK;
}

// Adds the borders of axis |d| to the elements they mirror, in place.
static void fold_axis(rn_tensor_t* work, int d, int64_t before, int64_t size, int64_t after,
                      int skipped) {
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, work->dtype);
  rn_axis_view_t view = rn_axis_view(work, d);
  const int64_t row = view.inner * (int64_t)rn_dtype_size(work->dtype);
  for (int64_t o = 0; o < view.outer; ++o) {
    char* base = (char*)work->data + o * view.size * row;
    for (int64_t k = 0; k < before; ++k) {
      char* into = base + (before + skipped + k) * row;
      add(into, base + (before - 1 - k) * row, 1, into, view.inner);
    }
    for (int64_t k = 0; k < after; ++k) {
      char* into = base + (before + size - 1 - skipped - k) * row;
      add(into, base + (before + size + k) * row, 1, into, view.inner);
    }
  }
}

static rn_status_t mirror_grad_dims(const rn_tensor_t* input, const rn_tensor_t* paddings,
                                    int skipped, int64_t* dims) {
  for (int d = 0; d < input->rank; ++d) {
    long long before = rn_int_at(paddings, 2 * d), after = rn_int_at(paddings, 2 * d + 1),
              size = rn_tensor_dim(input, d);
    if (before < 0 || after < 0)
      return rn_invalid_argument("Paddings must be non-negative: %lld, %lld", before, after);
    long long total;
    if (__builtin_add_overflow(before, after, &total) || total >= size)
      return rn_invalid_argument(
          "Total paddings must be less than the input dimension size: %lld was not less than %lld",
          (long long)((unsigned long long)before + (unsigned long long)after), size);
    long long rest = dims[d] = size - total;
    if (before > rest - skipped || after > rest - skipped)
      return skipped ? rn_invalid_argument(
                           "paddings must be less than the output dimension size: %lld, %lld not "
                           "less than %lld",
                           before, after, rest)
                     : rn_invalid_argument(
                           "paddings must be no greater than the output dimension size: %lld, "
                           "%lld greater than %lld",
                           before, after, rest);
  }
  return RN_OK;
}

rn_status_t rn_mirror_pad_grad_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_paddings(input, paddings, ", "));
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(mirror_grad_dims(input, paddings, *(const int*)ctx->state, dims));
  return rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, out);
}

static rn_status_t mirror_pad_grad(rn_kernel_ctx_t* ctx) {
  const int skipped = *(const int*)ctx->state;
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_mirror_pad_grad_begin(ctx, &out));
  const int64_t* dims = rn_tensor_dims(out);
  if (out->count == 0) return RN_OK;
  rn_tensor_t work = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, input->dtype, rn_tensor_shape(input), &work));
  memcpy(work.data, input->data, rn_tensor_bytes(input));
  rn_move_t move;
  rn_move_begin(&move);
  int64_t offset = 0, in_step = input->count, out_step = out->count;
  for (int d = 0; d < input->rank; ++d) {
    int64_t before = rn_int_at(paddings, 2 * d);
    fold_axis(&work, d, before, dims[d], rn_int_at(paddings, 2 * d + 1), skipped);
    in_step /= rn_tensor_dim(input, d);
    out_step /= dims[d];
    offset += before * in_step;
    rn_move_add(&move, dims[d], in_step, out_step);
  }
  const char* from = (const char*)work.data + (size_t)offset * rn_dtype_size(work.dtype);
  rn_status_t status = rn_ctx_move(ctx, &move, out->dtype, from, out->data);
  rn_tensor_clear(&work);
  return status;
}

#define TYPES (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING))

static const rn_kernel_def_t rows[] = {
    {.op = "Pad", .device = "CPU", .types = {{"T", TYPES}}, .compute = pad},
    {.op = "PadV2", .device = "CPU", .types = {{"T", TYPES}}, .compute = pad},
    {.op = "MirrorPad",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .state_size = sizeof(int),
     .init = rn_mirror_init,
     .compute = mirror_pad},
    {.op = "MirrorPadGrad",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .state_size = sizeof(int),
     .init = rn_mirror_init,
     .compute = mirror_pad_grad},
};
RN_KERNEL_FAMILY(cpu_pad, rows);
