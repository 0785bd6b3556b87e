// Gathers, one-hot vectors and reversed sequences. As in stock, indices are not checked on a GPU:
// one that is out of range gives zeros.
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/array/gather.h"
#include "kernels/cuda/array/indexed_args.h"
#include "kernels/cuda/array/produce.h"

static rn_status_t gather(rn_kernel_ctx_t* ctx) {
  rn_gather_t g;
  RN_RETURN_IF_ERROR(rn_gather_begin(ctx, &g));
  if (g.out->count == 0 || g.limit == 0) {
    rn_tensor_clear(&g.params);
    return rn_cuda_zero(ctx, g.out);
  }
  const int64_t size = (int64_t)rn_dtype_size(g.out->dtype);
  const int64_t unit = rn_cuda_unit(g.inner * size, g.params.data, g.out->data);
  rn_cuda_gather_args args = {.params = g.params.data,
                              .indices = g.indices->data,
                              .out = g.out->data,
                              .count = g.out->count * size / unit,
                              .limit = g.limit,
                              .row = rn_cuda_divisor(g.inner * size / unit),
                              .indices_count = rn_cuda_divisor(g.count),
                              .outer = rn_cuda_divisor(g.outer),
                              .index_size = (i32)rn_dtype_size(g.indices->dtype)};
  // The variable's value may go at once: what overwrites it is issued later.
  rn_tensor_clear(&g.params);
  return rn_cuda_produce(ctx, "array/indexed/gather", unit, args.count, &args, sizeof args);
}

static rn_status_t gather_nd_places(rn_kernel_ctx_t* ctx, const rn_gather_nd_t* g) {
  const rn_places_t* places = &g->places;
  if (places->depth > RN_CUDA_PLACE_DEPTH)
    return rn_unimplemented("Gathering by %d indices on a GPU", places->depth);
  const int64_t size = (int64_t)rn_dtype_size(g->out->dtype);
  const int64_t unit = rn_cuda_unit(places->row * size, g->params.data, g->out->data);
  rn_cuda_gather_nd_args args = {.params = g->params.data,
                                 .indices = places->indices->data,
                                 .out = g->out->data,
                                 .count = g->out->count * size / unit,
                                 .row = rn_cuda_divisor(places->row * size / unit),
                                 .index_size = (i32)rn_dtype_size(places->indices->dtype),
                                 .depth = places->depth};
  for (int d = 0; d < places->depth; ++d) {
    args.limits[d] = places->shape.dims[d];
    args.steps[d] = places->steps[d];
  }
  return rn_cuda_produce(ctx, "array/indexed/gather_nd", unit, args.count, &args, sizeof args);
}

static rn_status_t gather_nd(rn_kernel_ctx_t* ctx) {
  rn_gather_nd_t g;
  RN_RETURN_IF_ERROR(rn_gather_nd_begin(ctx, &g));
  rn_status_t status = g.out->count ? gather_nd_places(ctx, &g) : RN_OK;
  rn_tensor_clear(&g.params);
  return status;
}

static rn_status_t one_hot(rn_kernel_ctx_t* ctx) {
  rn_one_hot_t hots;
  RN_RETURN_IF_ERROR(rn_one_hot_begin(ctx, &hots));
  if (hots.out->count == 0) return RN_OK;
  const rn_tensor_t* indices = rn_in(ctx, 0);
  rn_cuda_one_hot_args args = {.indices = indices->data,
                               .on = rn_in(ctx, 2)->data,
                               .off = rn_in(ctx, 3)->data,
                               .out = hots.out->data,
                               .count = hots.out->count,
                               .depth = rn_cuda_divisor(hots.depth),
                               .inner = rn_cuda_divisor(hots.inner),
                               .index_size = (i32)rn_dtype_size(indices->dtype),
                               .is_unsigned = indices->dtype == RN_UINT8};
  return rn_cuda_produce(ctx, "array/indexed/one_hot", (int64_t)rn_dtype_size(hots.out->dtype),
                         args.count, &args, sizeof args);
}

static rn_status_t reverse_sequence(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *lengths = rn_in(ctx, 1);
  const rn_sequence_axes_t* axes = ctx->state;
  RN_RETURN_IF_ERROR(rn_reverse_sequence_check(ctx));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (out->count == 0) return RN_OK;
  const int64_t size = (int64_t)rn_dtype_size(input->dtype);
  const rn_axis_view_t seq = rn_axis_view(input, (int)axes->seq),
                       batch = rn_axis_view(input, (int)axes->batch);
  const int64_t run = seq.inner < batch.inner ? seq.inner : batch.inner;
  const int64_t unit = rn_cuda_unit(run * size, input->data, out->data);
  rn_cuda_reverse_args args = {.input = input->data,
                               .lengths = lengths->data,
                               .out = out->data,
                               .count = out->count * size / unit,
                               .seq = rn_cuda_divisor(seq.size),
                               .seq_step = rn_cuda_divisor(seq.inner * size / unit),
                               .batches = rn_cuda_divisor(batch.size),
                               .batch_step = rn_cuda_divisor(batch.inner * size / unit),
                               .index_size = (i32)rn_dtype_size(lengths->dtype)};
  return rn_cuda_produce(ctx, "array/indexed/reverse_sequence", unit, args.count, &args,
                         sizeof args);
}

#define GATHER(name, attr, ...)                                                    \
  {                                                                                \
    .op = name, .device = "GPU",                                                   \
    .types = {{attr, RN_TYPES_PLAIN}, {"Tindices", RN_TYPES_INDEX | RN_T(INT16)}}, \
    .flags = RN_KERNEL_REPLAYS, __VA_ARGS__                                        \
  }
#define PLAIN .state_size = sizeof(int64_t), .init = rn_gather_init, .compute = gather
#define ND .state_size = sizeof(rn_bad_index_t), .init = rn_gather_nd_init, .compute = gather_nd

static const rn_kernel_def_t rows[] = {
    GATHER("Gather", "Tparams", PLAIN),
    GATHER("GatherV2", "Tparams", .host_args = RN_HOST_ARGS("axis"), PLAIN),
    GATHER("ResourceGather", "dtype", PLAIN),
    GATHER("GatherNd", "Tparams", ND),
    GATHER("ResourceGatherNd", "dtype", ND),
    {.op = "OneHot",
     .device = "GPU",
     .types = {{"T", RN_TYPES_PLAIN}, {"TI", RN_TYPES_INDEX | RN_T(UINT8) | RN_T(INT8)}},
     .host_args = RN_HOST_ARGS("depth"),
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(int64_t),
     .init = rn_one_hot_init,
     .compute = one_hot},
    {.op = "ReverseSequence",
     .device = "GPU",
     .types = {{"T", RN_TYPES_PLAIN}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_sequence_axes_t),
     .init = rn_reverse_sequence_init,
     .compute = reverse_sequence},
};
RN_KERNEL_FAMILY(cuda_indexed, rows);
