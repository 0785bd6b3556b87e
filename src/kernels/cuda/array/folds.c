// Gradients of Tile and MirrorPad, which add elements up, and ConjugateTranspose.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cuda/array/folds_args.h"
#include "kernels/cuda/jit/shapes.h"
#include "kernels/cuda/loops.h"

// A tensor's dimension of m * n elements is [m, n], where the sum over m is wanted.
static rn_status_t tile_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *multiples = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_tile_grad_begin(ctx, &out));
  if (out->count == 0) return RN_OK;
  int64_t dims[2 * RN_MAX_RANK];
  bool goes[2 * RN_MAX_RANK];
  for (int d = 0; d < input->rank; ++d) {
    dims[2 * d] = rn_int_at(multiples, d);
    dims[2 * d + 1] = rn_tensor_dim(out, d);
    goes[2 * d] = true;
    goes[2 * d + 1] = false;
  }
  rn_jit_view_t view;
  rn_jit_operand_t operand = {0};
  RN_RETURN_IF_ERROR(rn_jit_reduction((rn_shape_t){2 * input->rank, dims}, goes, &view, &operand));
  operand.address = (uintptr_t)input->data;
  rn_jit_program_t program;
  rn_jit_begin(&program, view.rank, 0);
  int x = rn_jit_input(&program, input->dtype, (rn_jit_access_t)view.access[0], RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_reduce(&program, RN_JIT_SUM, x), out->dtype);
  return rn_cuda_run(ctx, &program, &view.sizes, &operand, &out);
}

// Adds the borders of axis |d| to the elements that they mirror, in place.
static rn_status_t fold_axis(rn_kernel_ctx_t* ctx, rn_tensor_t* work, int d, int64_t before,
                             int64_t after) {
  const int skipped = *(const int*)ctx->state;
  const rn_axis_view_t view = rn_axis_view(work, d);
  const int64_t size = view.size - before - after;
  const int64_t borders[2] = {before, after};
  for (int side = 0; side < 2; ++side) {
    const int64_t border = borders[side];
    rn_cuda_fold_args args = {.work = work->data,
                              .count = view.outer * border * view.inner,
                              .size = view.size,
                              .inner = view.inner,
                              .border = border,
                              .from = side ? before + size : before - 1,
                              .into = side ? before + size - 1 - skipped : before + skipped,
                              .step = side ? 1 : -1};
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx, rn_cuda_name("array/folds/fold", work->dtype).text,
                                    args.count, &args, sizeof args));
  }
  return RN_OK;
}

static rn_status_t fold_all(rn_kernel_ctx_t* ctx, rn_tensor_t* work, rn_tensor_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *paddings = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_ctx_copy(ctx, input, work));
  rn_move_t move;
  rn_move_begin(&move);
  int64_t offset = 0, in_step = input->count, out_step = out->count;
  for (int d = 0; d < input->rank; ++d) {
    int64_t before = rn_int_at(paddings, 2 * d), size = rn_tensor_dim(out, d);
    RN_RETURN_IF_ERROR(fold_axis(ctx, work, d, before, rn_int_at(paddings, 2 * d + 1)));
    in_step /= rn_tensor_dim(input, d);
    out_step /= size;
    offset += before * in_step;
    rn_move_add(&move, size, in_step, out_step);
  }
  const char* from = (const char*)work->data + (size_t)offset * rn_dtype_size(work->dtype);
  return rn_ctx_move(ctx, &move, out->dtype, from, out->data);
}

static rn_status_t mirror_pad_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_mirror_pad_grad_begin(ctx, &out));
  if (out->count == 0) return RN_OK;
  rn_tensor_t work = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, input->dtype, rn_tensor_shape(input), &work));
  rn_status_t status = fold_all(ctx, &work, out);
  rn_tensor_clear(&work);
  return status;
}

static rn_status_t conjugate_transpose(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_permute(ctx, &out));
  if (out->count == 0 || !rn_dtype_is_complex(out->dtype)) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)out->data, .period = 1};
  rn_jit_sizes_t sizes = {.count = out->count};
  rn_jit_begin(&program, 1, 0);
  int x = rn_jit_input(&program, out->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&program, rn_jit_op1(&program, RN_SCALAR_CONJ, x), out->dtype);
  return rn_cuda_run(ctx, &program, &sizes, &operand, &out);
}

static const rn_kernel_def_t rows[] = {
    {.op = "TileGrad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .host_args = RN_HOST_ARGS("multiples"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = tile_grad},
    {.op = "MirrorPadGrad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},
     .host_args = RN_HOST_ARGS("paddings"),
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(int),
     .init = rn_mirror_init,
     .compute = mirror_pad_grad},
    {.op = "ConjugateTranspose",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .host_args = RN_HOST_ARGS("perm"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = conjugate_transpose},
};
RN_KERNEL_FAMILY(cuda_folds, rows);
