// SparseTensorDenseMatMul and SparseToDense: dense.cu has the device code. Indices are not checked:
// those out of bounds are skipped.
#include "kernels/cpu/sparse/dense.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cuda/sparse/dense_args.h"
#include "kernels/cuda/sparse/sparse.h"
#include "kernels/cuda/state/rows.h"

rn_status_t rn_cuda_sparse_column(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int d,
                                  rn_tensor_t* out) {
  const int64_t count = rn_tensor_dim(indices, 0);
  RN_RETURN_IF_ERROR(rn_temp(ctx, indices->dtype, (rn_shape_t){1, &count}, out));
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, count, rn_tensor_dim(indices, 1), 1);
  const char* from = RN_DATA(indices, const char) + (size_t)d * rn_dtype_size(indices->dtype);
  return rn_ctx_move(ctx, &move, indices->dtype, from, out->data);
}

static rn_status_t issue_matmul(rn_kernel_ctx_t* ctx, rn_cuda_sparse_matmul_args* args, int64_t m) {
  const rn_sparse_matmul_t* product = ctx->state;
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  rn_tensor_t numbers = {0};
  rn_cuda_rows_t rows = {0};
  rn_status_t status = rn_cuda_sparse_column(ctx, indices, product->adjoint_a ? 1 : 0, &numbers);
  if (rn_ok(status)) status = rn_cuda_rows(ctx, &numbers, 1, (rn_shape_t){1, &m}, &rows);
  args->rows = rows.args;
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_name("sparse/dense/matmul", values->dtype).text,
                          values->count * args->n, args, sizeof *args);
  rn_tensor_clear(&rows.keys);
  rn_tensor_clear(&numbers);
  return status;
}

static rn_status_t matmul(rn_kernel_ctx_t* ctx) {
  const rn_sparse_matmul_t* product = ctx->state;
  int64_t m, n, k;
  RN_RETURN_IF_ERROR(rn_sparse_matmul_sizes(ctx, &m, &n, &k));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){m, n}}, &out));
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out));
  if (out->count == 0 || rn_in(ctx, 1)->count == 0) return RN_OK;
  rn_cuda_sparse_matmul_args args = {.indices = rn_in(ctx, 0)->data,
                                     .values = rn_in(ctx, 1)->data,
                                     .b = rn_in(ctx, 3)->data,
                                     .out = out->data,
                                     .n = n,
                                     .k = k,
                                     .index_size = (i32)rn_dtype_size(rn_in(ctx, 0)->dtype),
                                     .adjoint_a = product->adjoint_a,
                                     .adjoint_b = product->adjoint_b};
  return issue_matmul(ctx, &args, m);
}

static rn_status_t to_dense(rn_kernel_ctx_t* ctx) {
  rn_to_dense_t sparse;
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_to_dense_read(ctx, &sparse));
  RN_RETURN_IF_ERROR(rn_read_dims(rn_in(ctx, 1), dims, &shape));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ctx_fill(ctx, 3, out));
  if (sparse.count == 0 || sparse.rank == 0) return RN_OK;
  rn_cuda_rows_t rows = {0};
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, sparse.indices, (int)sparse.rank, shape, &rows));
  rn_cuda_to_dense_args args = {.rows = rows.args,
                                .values = sparse.values->data,
                                .out = out->data,
                                .is_scalar = sparse.values->rank == 0};
  rn_status_t status =
      rn_cuda_each(ctx, rn_cuda_size_name("sparse/dense/to_dense", out->dtype).text, sparse.count,
                   &args, sizeof args);
  rn_tensor_clear(&rows.keys);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SparseTensorDenseMatMul",
     .device = "GPU",
     .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},
     .flags = RN_KERNEL_REPLAYS,
     .host_args = RN_HOST_ARGS("a_shape"),
     .state_size = sizeof(rn_sparse_matmul_t),
     .init = rn_sparse_matmul_init,
     .compute = matmul},
    {.op = "SparseToDense",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}, {"Tindices", RN_TYPES_INDEX}},
     .flags = RN_KERNEL_REPLAYS,
     .host_args = RN_HOST_ARGS("output_shape", "default_value"),
     .state_size = sizeof(bool),
     .init = rn_to_dense_init,
     .compute = to_dense},
};
RN_KERNEL_FAMILY(cuda_sparse_dense, rows);
