// Empty rows of sparse and ragged tensors get a default value; and the gradients of that.
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/tensor.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_sparse_bad_row(int64_t place, int64_t row, int64_t rows) {
  return rn_invalid_argument("indices(%lld, 0) is invalid: %lld >= %lld", (long long)place,
                             (long long)row, (long long)rows);
}

static rn_status_t check_rows(const rn_sparse_t* in, int64_t rows) {
  for (int64_t i = 0; i < in->count; ++i) {
    int64_t row = in->indices[i * in->rank];
    if (row < 0 || row >= rows) return rn_sparse_bad_row(i, row, rows);
  }
  return RN_OK;
}

rn_status_t rn_sparse_fill_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *sizes = rn_in(ctx, 2);
  const rn_tensor_t* value = rn_in(ctx, 3);
  if (sizes->rank != 1)
    return rn_invalid_argument("dense_shape must be a vector, saw: %s", rn_text_of(sizes).text);
  if (indices->rank != 2)
    return rn_invalid_argument("indices must be a matrix, saw: %s", rn_text_of(indices).text);
  if (values->rank != 1)
    return rn_invalid_argument("values must be a vector, saw: %s", rn_text_of(values).text);
  if (rn_tensor_dim(indices, 0) != values->count)
    return rn_invalid_argument(
        "The length of `values` (%lld) must match the first dimension of `indices` (%lld).",
        (long long)values->count, (long long)rn_tensor_dim(indices, 0));
  if (rn_tensor_dim(indices, 1) != sizes->count)
    return rn_invalid_argument(
        "The length of `dense_shape` (%lld) must match the second dimension of `indices` (%lld).",
        (long long)sizes->count, (long long)rn_tensor_dim(indices, 1));
  if (value->rank != 0)
    return rn_invalid_argument("default_value must be a scalar, saw: %s", rn_text_of(value).text);
  if (sizes->count == 0) return rn_invalid_argument("Dense shape cannot be empty.");
  if (rn_int_at(sizes, 0) < 0)
    return rn_invalid_argument("Expected shape dimensions to be non-negative, got %lld",
                               (long long)rn_int_at(sizes, 0));
  RN_RETURN_IF_ERROR(rn_sparse_take(indices, values, sizes, in));
  if (in->shape[0] == 0 && in->count > 0)
    return rn_invalid_argument(
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %lld",
        (long long)in->count);
  return RN_OK;
}

// The rows without a value get |value|, at column 0; |dims| is the shape of the indices.
static rn_status_t fill_rows(rn_kernel_ctx_t* ctx, rn_arena_t* arena, const rn_sparse_t* in,
                             rn_shape_t shape, int64_t* dims) {
  const rn_tensor_t* value = rn_in(ctx, 3);
  rn_tensor_t *indices = NULL, *values = NULL, *empty = NULL, *map = NULL;
  int64_t *starts = NULL, total = 0, rows = in->shape[0];
  RN_RETURN_IF_ERROR(check_rows(in, rows));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &rows}, &empty));
  RN_RETURN_IF_ERROR(rn_output(ctx, 3, (rn_shape_t){1, &in->count}, &map));
  // First the number of values per row, then where they start.
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)rows + 1, &starts));
  for (int64_t i = 0; i < in->count; ++i) ++starts[in->indices[i * in->rank]];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t count = starts[r];
    RN_DATA(empty, bool)[r] = count == 0;
    starts[r] = total;
    total += count ? count : 1;
  }
  dims[0] = total;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &total}, &values));
  int64_t* to = RN_DATA(indices, int64_t);
  for (int64_t r = 0; r < rows; ++r) {
    if (!RN_DATA(empty, bool)[r]) continue;
    memset(to + starts[r] * in->rank, 0, (size_t)in->rank * sizeof *to);
    to[starts[r] * in->rank] = r;
    RN_RETURN_IF_ERROR(rn_move_row(value->dtype, value->data, rn_element(values, starts[r]), 1));
  }
  for (int64_t i = 0; i < in->count; ++i) {
    int64_t place = starts[in->indices[i * in->rank]]++;
    memcpy(to + place * in->rank, in->indices + i * in->rank, (size_t)in->rank * sizeof *to);
    RN_RETURN_IF_ERROR(
        rn_move_row(value->dtype, rn_element(in->values, i), rn_element(values, place), 1));
    RN_DATA(map, int64_t)[i] = place;
  }
  return RN_OK;
}

static rn_status_t fill_sparse(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(rn_sparse_fill_read(ctx, &in));
  int64_t dims[2] = {0, in.rank};
  return fill_rows(ctx, arena, &in, (rn_shape_t){2, dims}, dims);
}

static rn_status_t sparse_fill_empty_rows(rn_kernel_ctx_t* ctx) {
  return rn_with_arena(ctx, fill_sparse);
}

// A ragged tensor as a sparse one of which only the rows are known.
static rn_status_t ragged_read(rn_kernel_ctx_t* ctx, rn_sparse_t* in) {
  const rn_tensor_t *ids = rn_in(ctx, 0), *values = rn_in(ctx, 1), *rows = rn_in(ctx, 2);
  const rn_tensor_t* value = rn_in(ctx, 3);
  if (rows->rank != 0)
    return rn_invalid_argument("nrows must be a scalar, saw: %s", rn_text_of(rows).text);
  if (ids->rank != 1)
    return rn_invalid_argument("value_rowids must be a vector, saw: %s", rn_text_of(ids).text);
  if (values->rank != 1)
    return rn_invalid_argument("values must be a vector, saw: %s", rn_text_of(values).text);
  if (ids->count != values->count)
    return rn_invalid_argument(
        "The length of `values` (%lld) must match the first dimension of `value_rowids` (%lld).",
        (long long)values->count, (long long)ids->count);
  if (value->rank != 0)
    return rn_invalid_argument("default_value must be a scalar, saw: %s", rn_text_of(value).text);
  *in = (rn_sparse_t){
      .indices = ids->data, .values = values, .shape = rows->data, .count = ids->count, .rank = 1};
  if (in->shape[0] < 0)
    return rn_invalid_argument("Expected shape dimensions to be non-negative, got %lld",
                               (long long)in->shape[0]);
  if (in->shape[0] == 0 && in->count > 0)
    return rn_invalid_argument(
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %lld",
        (long long)in->count);
  return RN_OK;
}

static rn_status_t fill_ragged(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  rn_sparse_t in;
  int64_t dims[2] = {0, 1};
  RN_RETURN_IF_ERROR(ragged_read(ctx, &in));
  // Stock gives a matrix if there are no rows.
  return fill_rows(ctx, arena, &in, (rn_shape_t){in.shape[0] ? 1 : 2, dims}, dims);
}

static rn_status_t ragged_fill_empty_rows(rn_kernel_ctx_t* ctx) {
  return rn_with_arena(ctx, fill_ragged);
}

rn_status_t rn_sparse_fill_grad_check(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *map = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  if (map->rank != 1)
    return rn_invalid_argument("reverse_index_map must be a vector, saw: %s", rn_text_of(map).text);
  if (dy->rank != 1)
    return rn_invalid_argument("grad_values must be a vector, saw: %s", rn_text_of(dy).text);
  return RN_OK;
}

// For filled rows: values get their own gradients back, the default the sum of the rest.
static rn_status_t fill_grad_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_tensor_t *map = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, dy->dtype);
  rn_tensor_t *values = NULL, *fallback = NULL;
  bool* seen = NULL;
  RN_RETURN_IF_ERROR(rn_sparse_fill_grad_check(ctx));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)dy->count + 1, &seen));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &map->count}, &values));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &fallback));
  for (int64_t i = 0; i < map->count; ++i) {
    int64_t from = RN_DATA(map, const int64_t)[i];
    if (from < 0 || from >= dy->count)
      return rn_invalid_argument("Elements in reverse index must be in [0, %lld) but got %lld",
                                 (long long)dy->count, (long long)from);
    memcpy(rn_element(values, i), rn_element(dy, from), rn_dtype_size(dy->dtype));
    seen[from] = true;
  }
  memset(fallback->data, 0, rn_dtype_size(dy->dtype));
  for (int64_t i = 0; i < dy->count; ++i)
    if (!seen[i]) add(fallback->data, rn_element(dy, i), 1, fallback->data, 1);
  return RN_OK;
}

static rn_status_t fill_empty_rows_grad(rn_kernel_ctx_t* ctx) {
  return rn_with_arena(ctx, fill_grad_in);
}

#define ROW(name, types_, function) \
  { .op = name, .device = "CPU", .types = {{"T", types_}}, .compute = function }
#define ANY (RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT))

static const rn_kernel_def_t rows[] = {
    {.op = "SparseFillEmptyRows", .device = "CPU", .compute = sparse_fill_empty_rows},
    ROW("RaggedFillEmptyRows", ANY, ragged_fill_empty_rows),
    ROW("SparseFillEmptyRowsGrad", RN_TYPES_NUMBERS, fill_empty_rows_grad),
    ROW("RaggedFillEmptyRowsGrad", RN_TYPES_NUMBERS, fill_empty_rows_grad),
};
RN_KERNEL_FAMILY(cpu_fill_rows, rows);
