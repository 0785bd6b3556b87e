// Sparse tensors rearranged; arrange.cu has the device code. Slices, splits and filled rows have as
// many values as the indices say: the host waits for that number, so these cannot be replayed.
// Indices out of bounds are no error, except rows that SparseFillEmptyRows should fill.
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/sparse/tensor.h"
#include "kernels/cuda/array/scan.h"
// After launch.h, which has its types.
#include "kernels/cuda/sparse/arrange_args.h"
#include "kernels/cuda/sparse/sparse.h"
#include "kernels/cuda/state/rows.h"

static rn_status_t check_rank(int64_t rank) {
  if (rank <= RN_CUDA_SPARSE_RANK) return RN_OK;
  return rn_unimplemented("Sparse tensors of %lld dimensions on a GPU", (long long)rank);
}

static rn_status_t reshape(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  int64_t shape[RN_MAX_RANK], step = 1;
  bool is_same = false;
  const int rank = (int)rn_in(ctx, 2)->count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_reshape_read(ctx, &in, shape, &is_same));
  RN_RETURN_IF_ERROR(rn_sparse_output_shape(ctx, 1, shape, rank));
  if (is_same) return rn_forward(ctx, 0, 0);
  RN_RETURN_IF_ERROR(check_rank(in.rank > rank ? in.rank : rank));
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, 0, -1, in.count, rank, &out, NULL));
  rn_cuda_sparse_reshape_args args = {.from = in.indices,
                                      .to = RN_DATA(out, i64),
                                      .count = in.count,
                                      .rank = in.rank,
                                      .new_rank = rank};
  for (int d = 0; d < in.rank; ++d) args.sizes[d] = in.shape[d];
  for (int d = rank; d-- > 0; step *= shape[d]) args.steps[d] = step;
  return rn_cuda_each(ctx, "sparse/arrange/reshape", in.count, &args, sizeof args);
}

// Makes outputs 0 and 1 from a matrix of indices and values, sorted by index.
static rn_status_t output_sorted(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices,
                                 const rn_tensor_t* values, rn_shape_t shape) {
  rn_tensor_t *out = NULL, *out_values = NULL;
  const int64_t count = values->count;
  RN_RETURN_IF_ERROR(rn_sparse_outputs(ctx, 0, 1, count, shape.rank, &out, &out_values));
  if (count == 0) return RN_OK;
  rn_cuda_rows_t rows = {0};
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, indices, shape.rank, shape, &rows));
  rn_cuda_sparse_sort_args args = {.rows = rows.args,
                                   .indices = indices->data,
                                   .values = values->data,
                                   .out_indices = RN_DATA(out, i64),
                                   .out_values = out_values->data,
                                   .rank = shape.rank,
                                   .value_size = (i32)rn_dtype_size(values->dtype)};
  rn_status_t status = rn_cuda_each(ctx, "sparse/arrange/sorted", count, &args, sizeof args);
  rn_tensor_clear(&rows.keys);
  return status;
}

static rn_status_t reorder(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(rn_in(ctx, 2)));
  return output_sorted(ctx, rn_in(ctx, 0), in.values, (rn_shape_t){(int16_t)in.rank, in.shape});
}

// Copies the parts one after the other, with their indices in the whole.
static rn_status_t join(rn_kernel_ctx_t* ctx, const rn_sparse_t* parts, int axis,
                        rn_tensor_t* indices, rn_tensor_t* values) {
  const rn_sparse_concat_t* concat = ctx->state;
  rn_cuda_sparse_shift_args args = {
      .to = RN_DATA(indices, i64), .rank = parts[0].rank, .axis = axis};
  char* to = values->data;
  for (int n = 0; n < concat->count; ++n) {
    args.from = parts[n].indices;
    args.count = parts[n].count * args.rank;
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "sparse/arrange/shift", args.count, &args, sizeof args));
    rn_move_t move;
    rn_move_begin(&move);
    rn_move_add(&move, parts[n].count, 1, 1);
    RN_RETURN_IF_ERROR(rn_ctx_move(ctx, &move, values->dtype, parts[n].values->data, to));
    args.to += args.count;
    args.offset += parts[n].shape[axis];
    to += (size_t)parts[n].count * rn_dtype_size(values->dtype);
  }
  return RN_OK;
}

static rn_status_t concat_parts(rn_kernel_ctx_t* ctx, rn_sparse_t* parts) {
  int64_t shape[RN_MAX_RANK], total = 0;
  int axis = 0;
  RN_RETURN_IF_ERROR(rn_sparse_concat_read(ctx, parts, shape, &axis, &total));
  const int rank = parts[0].rank;
  rn_tensor_t indices = {0}, values = {0};
  const int64_t dims[2] = {total, rank};
  rn_status_t status = rn_temp(ctx, RN_INT64, (rn_shape_t){2, dims}, &indices);
  if (rn_ok(status)) status = rn_temp(ctx, parts[0].values->dtype, (rn_shape_t){1, dims}, &values);
  if (rn_ok(status)) status = join(ctx, parts, axis, &indices, &values);
  if (rn_ok(status))
    status = output_sorted(ctx, &indices, &values, (rn_shape_t){(int16_t)rank, shape});
  rn_tensor_clear(&indices);
  rn_tensor_clear(&values);
  return rn_ok(status) ? rn_sparse_output_shape(ctx, 2, shape, rank) : status;
}

static rn_status_t concat(rn_kernel_ctx_t* ctx) {
  const int count = ((const rn_sparse_concat_t*)ctx->state)->count;
  rn_sparse_t* parts = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &parts));
  rn_status_t status = concat_parts(ctx, parts);
  RN_FREE_ARRAY(ctx->kernel->allocator, parts, count);
  return status;
}

// Makes outputs |i|, |v| and |s| of the values within a box.
static rn_status_t output_box(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, const int64_t* start,
                              const int64_t* size, int i, int v, int s) {
  rn_tensor_t flags = {0}, offsets = {0}, *out = NULL, *out_values = NULL;
  int64_t set = 0;
  rn_cuda_sparse_box_args args = {.indices = in->indices,
                                  .values = in->values->data,
                                  .count = in->count,
                                  .rank = in->rank,
                                  .value_size = (i32)rn_dtype_size(in->values->dtype)};
  for (int d = 0; d < in->rank; ++d) {
    args.start[d] = start[d];
    args.size[d] = size[d];
  }
  rn_status_t status = rn_temp(ctx, RN_BOOL, (rn_shape_t){1, &in->count}, &flags);
  args.flags = flags.data;
  if (rn_ok(status))
    status = rn_cuda_each(ctx, "sparse/arrange/box_flags", in->count, &args, sizeof args);
  if (rn_ok(status) && in->count)
    status = rn_cuda_scan(ctx, args.flags, in->count, &args.scan, &offsets, &set);
  if (rn_ok(status)) status = rn_sparse_outputs(ctx, i, v, set, in->rank, &out, &out_values);
  if (rn_ok(status) && set) {
    args.out_indices = RN_DATA(out, i64);
    args.out_values = out_values->data;
    status = rn_cuda_scan_launch(ctx, "sparse/arrange/box", &args.scan, &args, sizeof args);
  }
  rn_tensor_clear(&flags);
  rn_tensor_clear(&offsets);
  return rn_ok(status) ? rn_sparse_output_shape(ctx, s, size, in->rank) : status;
}

static rn_status_t slice(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  int64_t start[RN_MAX_RANK], size[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(rn_sparse_slice_read(ctx, &in, start, size));
  RN_RETURN_IF_ERROR(check_rank(in.rank));
  return output_box(ctx, &in, start, size, 0, 1, 2);
}

static rn_status_t split(rn_kernel_ctx_t* ctx) {
  const int parts = ctx->kernel->output_count / 3;
  rn_sparse_t in;
  int64_t start[RN_MAX_RANK] = {0}, size[RN_MAX_RANK], axis = 0;
  RN_RETURN_IF_ERROR(rn_sparse_split_read(ctx, false, &in, &axis));
  RN_RETURN_IF_ERROR(check_rank(in.rank));
  memcpy(size, in.shape, (size_t)in.rank * sizeof *size);
  for (int p = 0; p < parts; ++p) {
    size[axis] = rn_sparse_split_size(ctx, &in, axis, p);
    RN_RETURN_IF_ERROR(output_box(ctx, &in, start, size, p, parts + p, 2 * parts + p));
    start[axis] += size[axis];
  }
  return RN_OK;
}

static rn_status_t slice_grad(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_sparse_slice_grad_check(ctx));
  const rn_tensor_t *dy = rn_in(ctx, 0), *indices = rn_in(ctx, 1);
  const int64_t count = rn_tensor_dim(indices, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  rn_cuda_sparse_slice_grad_args args = {.dy = dy->data,
                                         .indices = indices->data,
                                         .start = rn_in(ctx, 2)->data,
                                         .taken = rn_in(ctx, 3)->data,
                                         .out = out->data,
                                         .count = count,
                                         .taken_count = dy->count,
                                         .rank = (i32)rn_tensor_dim(indices, 1),
                                         .value_size = (i32)rn_dtype_size(dy->dtype)};
  return rn_cuda_each(ctx, "sparse/arrange/slice_grad", count, &args, sizeof args);
}

// Filling empty rows. What the steps need in device memory.
typedef struct fill_scratch_t {
  rn_tensor_t numbers, bad, offsets, empty;
  rn_cuda_rows_t rows;
} fill_scratch_t;

// Finds the rows without values; fails if a value is in no row.
static rn_status_t find_empty(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, fill_scratch_t* scratch,
                              rn_cuda_sparse_fill_args* args) {
  const int64_t one = 1;
  u64 bad = (u64)in->count;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT64, (rn_shape_t){1, &one}, &scratch->bad));
  RN_RETURN_IF_ERROR(rn_ctx_fill_value(ctx, &bad, &scratch->bad));
  args->bad = RN_DATA(&scratch->bad, u64);
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "sparse/arrange/fill_flags", in->count, args, sizeof *args));
  if (args->row_count)
    RN_RETURN_IF_ERROR(rn_cuda_scan(ctx, args->flags, args->row_count, &args->scan,
                                    &scratch->offsets, &args->empty_count));
  if (in->count) RN_RETURN_IF_ERROR(rn_cuda_read(ctx, args->bad, sizeof bad, &bad));
  if (bad < (u64)in->count) {
    int64_t row = 0;
    RN_RETURN_IF_ERROR(rn_cuda_read(ctx, rn_sparse_index(in, (int64_t)bad), sizeof row, &row));
    return rn_sparse_bad_row((int64_t)bad, row, args->row_count);
  }
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &args->empty_count}, &scratch->empty));
  args->empty = RN_DATA(&scratch->empty, i64);
  return rn_cuda_scan_launch(ctx, "sparse/arrange/fill_empty", &args->scan, args, sizeof *args);
}

static rn_status_t fill_with(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, fill_scratch_t* scratch) {
  const int64_t rows = in->shape[0];
  const bool yes = true;
  rn_tensor_t *flags = NULL, *map = NULL, *out = NULL, *out_values = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &rows}, &flags));
  RN_RETURN_IF_ERROR(rn_output(ctx, 3, (rn_shape_t){1, &in->count}, &map));
  RN_RETURN_IF_ERROR(rn_ctx_fill_value(ctx, &yes, flags));
  rn_cuda_sparse_fill_args args = {.flags = flags->data,
                                   .indices = in->indices,
                                   .values = in->values->data,
                                   .fallback = rn_in(ctx, 3)->data,
                                   .map = RN_DATA(map, i64),
                                   .count = in->count,
                                   .row_count = rows,
                                   .rank = in->rank,
                                   .value_size = (i32)rn_dtype_size(in->values->dtype)};
  RN_RETURN_IF_ERROR(find_empty(ctx, in, scratch, &args));
  if (in->count) {
    RN_RETURN_IF_ERROR(rn_cuda_sparse_column(ctx, rn_in(ctx, 0), 0, &scratch->numbers));
    RN_RETURN_IF_ERROR(
        rn_cuda_rows(ctx, &scratch->numbers, 1, (rn_shape_t){1, &rows}, &scratch->rows));
    args.rows = scratch->rows.args;
  }
  RN_RETURN_IF_ERROR(
      rn_sparse_outputs(ctx, 0, 1, in->count + args.empty_count, in->rank, &out, &out_values));
  args.out_indices = RN_DATA(out, i64);
  args.out_values = out_values->data;
  RN_RETURN_IF_ERROR(
      rn_cuda_each(ctx, "sparse/arrange/fill_values", in->count, &args, sizeof args));
  return rn_cuda_each(ctx, "sparse/arrange/fill_defaults", args.empty_count, &args, sizeof args);
}

static rn_status_t fill(rn_kernel_ctx_t* ctx) {
  rn_sparse_t in;
  fill_scratch_t scratch = {0};
  RN_RETURN_IF_ERROR(rn_sparse_fill_read(ctx, &in));
  rn_status_t status = fill_with(ctx, &in, &scratch);
  rn_tensor_clear(&scratch.numbers);
  rn_tensor_clear(&scratch.bad);
  rn_tensor_clear(&scratch.offsets);
  rn_tensor_clear(&scratch.empty);
  rn_tensor_clear(&scratch.rows.keys);
  return status;
}

static rn_status_t fill_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *map = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  rn_tensor_t *values = NULL, *fallback = NULL, seen = {0};
  RN_RETURN_IF_ERROR(rn_sparse_fill_grad_check(ctx));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &map->count}, &values));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &fallback));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BOOL, (rn_shape_t){1, &dy->count}, &seen));
  rn_cuda_sparse_fill_grad_args args = {.map = RN_DATA(map, const i64),
                                        .dy = dy->data,
                                        .seen = seen.data,
                                        .values = values->data,
                                        .fallback = fallback->data,
                                        .count = map->count,
                                        .dy_count = dy->count,
                                        .value_size = (i32)rn_dtype_size(dy->dtype)};
  const bool is_integer = !rn_dtype_is_floating(dy->dtype) && !rn_dtype_is_complex(dy->dtype);
  rn_cuda_name_t rest =
      (is_integer ? rn_cuda_size_name : rn_cuda_name)("sparse/arrange/fill_rest", dy->dtype);
  rn_cuda_grid_t one = {.x = 1, .block_x = RN_CUDA_BLOCK};
  rn_status_t status = rn_cuda_zero(ctx, &seen);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, "sparse/arrange/fill_grad", map->count, &args, sizeof args);
  if (rn_ok(status)) status = rn_cuda_launch(ctx, rest.text, one, &args, sizeof args);
  rn_tensor_clear(&seen);
  return status;
}

#define ROW(name, flags_, types_, function, ...)                            \
  {                                                                         \
    .op = name, .device = "GPU", .types = {{"T", types_}}, .flags = flags_, \
    .host_args = RN_HOST_ARGS(__VA_ARGS__), .compute = function             \
  }

static const rn_kernel_def_t rows[] = {
    ROW("SparseReorder", RN_KERNEL_REPLAYS, RN_TYPES_PLAIN, reorder, "input_shape"),
    {.op = "SparseReshape",
     .device = "GPU",
     .host_args = RN_HOST_ARGS("input_shape", "new_shape", "output_shape"),
     .compute = reshape},
    {.op = "SparseConcat",
     .device = "GPU",
     .types = {{"T", RN_TYPES_PLAIN}},
     .host_args = RN_HOST_ARGS("shapes", "output_shape"),
     .state_size = sizeof(rn_sparse_concat_t),
     .init = rn_sparse_concat_init,
     .compute = concat},
    ROW("SparseSlice", 0, RN_TYPES_PLAIN, slice, "shape", "start", "size", "output_shape"),
    ROW("SparseSplit", 0, RN_TYPES_PLAIN, split, "split_dim", "shape", "output_shape"),
    {.op = "SparseSliceGrad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = slice_grad},
    ROW("SparseFillEmptyRows", 0, RN_TYPES_PLAIN, fill, "dense_shape"),
    {.op = "SparseFillEmptyRowsGrad",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = fill_grad},
};
RN_KERNEL_FAMILY(cuda_sparse_arrange, rows);
