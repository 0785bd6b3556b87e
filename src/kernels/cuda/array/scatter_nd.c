// ScatterNd and the ops that scatter into a copy of a tensor. Places out of bounds are skipped.
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/array/gather.h"
#include "kernels/cpu/math/scatter.h"
#include "kernels/cuda/state/scatter.h"

static rn_status_t init(const rn_kernel_init_t* init, void* state) {
  rn_bad_index_t policy;
  rn_str_t name = rn_str(init->op->name);
  *(rn_combine_op_t*)state =
      rn_str_is(name, "ScatterNd") ? RN_COMBINE_ADD : rn_scatter_op(init->op);
  return rn_bad_index_init(init, &policy);
}

static rn_status_t scatter(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices,
                           const rn_tensor_t* updates, rn_tensor_t* out) {
  if (indices->count == 0) return RN_OK;
  return rn_cuda_scatter(ctx, *(const rn_combine_op_t*)ctx->state, indices,
                         (int)rn_tensor_dim(indices, indices->rank - 1), updates, out);
}

static rn_status_t scatter_nd(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_scatter_nd_begin(ctx, &out));
  return scatter(ctx, rn_in(ctx, 0), rn_in(ctx, 1), out);
}

static rn_status_t tensor_scatter(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_scatter_begin(ctx, &out));
  return scatter(ctx, rn_in(ctx, 1), rn_in(ctx, 2), out);
}

#define ROW(name, types_, ...)                                                                   \
  {                                                                                              \
    .op = name, .device = "GPU", .types = {{"T", types_}, {"Tindices", RN_TYPES_INDEX}},         \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_combine_op_t), .init = init, __VA_ARGS__ \
  }
#define NUMBERS (RN_TYPES_NUMBERS | RN_T(BOOL))

static const rn_kernel_def_t rows[] = {
    ROW("ScatterNd", NUMBERS, .host_args = RN_HOST_ARGS("shape"), .compute = scatter_nd),
    ROW("TensorScatterUpdate", NUMBERS, .compute = tensor_scatter),
    ROW("TensorScatterAdd", NUMBERS, .compute = tensor_scatter),
    ROW("TensorScatterSub", NUMBERS, .compute = tensor_scatter),
    ROW("TensorScatterMin", RN_TYPES_REAL, .compute = tensor_scatter),
    ROW("TensorScatterMax", RN_TYPES_REAL, .compute = tensor_scatter),
    ROW("ScatterNdNonAliasingAdd", NUMBERS, .compute = tensor_scatter),
};
RN_KERNEL_FAMILY(cuda_scatter_nd, rows);
