// Casts that step/group_casts.c grouped.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/math/cast_many_args.h"

static rn_status_t issue(rn_kernel_ctx_t* ctx, cast_many_args* args) {
  if (args->chunks == 0) return RN_OK;
  rn_cuda_name_t name = rn_cuda_name("math/cast_many/cast_many", ctx->kernel->output_types[0]);
  rn_status_t status =
      rn_cuda_each(ctx, name.text, (int64_t)args->chunks * RN_CUDA_BLOCK, args, sizeof *args);
  args->count = args->chunks = 0;
  return status;
}

static rn_status_t cast_many(rn_kernel_ctx_t* ctx) {
  cast_many_args args = {.count = 0};
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* x = rn_in(ctx, i);
    rn_tensor_t* y = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(x), &y));
    int64_t chunks = x->count / RN_CAST_CHUNK + (x->count % RN_CAST_CHUNK != 0);
    if (chunks == 0) continue;
    if (args.count == RN_CAST_ENTRIES || args.chunks + chunks > INT32_MAX)
      RN_RETURN_IF_ERROR(issue(ctx, &args));
    args.entries[args.count++] =
        (cast_entry){.chunk = args.chunks, .count = x->count, .from = x->data, .to = y->data};
    args.chunks += (i32)chunks;
  }
  return issue(ctx, &args);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_CastMany",
     .device = "GPU",
     .types = {{"SrcT", RN_T(FLOAT)}, {"DstT", RN_T(HALF) | RN_T(BFLOAT16)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = cast_many},
};
RN_KERNEL_FAMILY(cuda_cast_many, rows);
