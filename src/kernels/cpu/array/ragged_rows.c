// Ragged tensors: conversion to sparse ones, and gathered rows.
#include <inttypes.h>

#include "kernels/cpu/array/ragged.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_ragged_check_splits(const rn_tensor_t* splits, int64_t values) {
  if (splits->rank != 1)
    return rn_invalid_argument("Invalid ragged splits: ragged splits must be rank 1 but is rank %d",
                               splits->rank);
  if (splits->count == 0)
    return rn_invalid_argument(
        "Invalid ragged splits: ragged splits must have at least one splits, but is empty");
  int64_t last = rn_int_at(splits, 0);
  if (last != 0)
    return rn_invalid_argument(
        "Invalid ragged splits: first element of ragged splits  must be 0 but is %" PRId64, last);
  for (int64_t i = 1; i < splits->count; ++i) {
    int64_t split = rn_int_at(splits, i);
    if (split < last)
      return rn_invalid_argument(
          "Invalid ragged splits: ragged splits must be monotonically increasing, but "
          "ragged_splits[%" PRId64 "]=%" PRId64 " is smaller than row_splits[%" PRId64 "]=%" PRId64,
          i, split, i - 1, last);
    last = split;
  }
  if (values >= 0 && last != values)
    return rn_invalid_argument(
        "Invalid ragged splits: last element of ragged splits must be the number of ragged "
        "values(%" PRId64 ") but is %" PRId64,
        values, last);
  return RN_OK;
}

static int64_t last_of(const rn_tensor_t* splits) { return rn_int_at(splits, splits->count - 1); }

// RaggedTensorToSparse.

static rn_status_t check_nested(const rn_kernel_ctx_t* ctx, int partitions) {
  const rn_tensor_t* values = rn_in(ctx, partitions);
  for (int i = 0; i < partitions; ++i) {
    const rn_tensor_t* splits = rn_in(ctx, i);
    if (splits->count == 0) return rn_invalid_argument("ragged splits may not be empty.");
    if (rn_int_at(splits, 0) != 0)
      return rn_invalid_argument("First value of ragged splits must be 0.");
    for (int64_t k = 1; k < splits->count; ++k)
      if (rn_int_at(splits, k) < rn_int_at(splits, k - 1))
        return rn_invalid_argument("Ragged splits should be non decreasing, but we got %" PRId64
                                   " followed by %" PRId64,
                                   rn_int_at(splits, k - 1), rn_int_at(splits, k));
    if (i > 0 && splits->count - 1 != last_of(rn_in(ctx, i - 1)))
      return rn_invalid_argument(
          "Final value of ragged splits must match the length the corresponding ragged values.");
  }
  if (values->rank < 1 || rn_tensor_dim(values, 0) != last_of(rn_in(ctx, partitions - 1)))
    return rn_invalid_argument(
        "Final value of ragged splits must match the length the corresponding ragged values.");
  return RN_OK;
}

// Writes the coordinates of all elements. |at| has the row of each partition that the next cell of
// values is in.
static void write_indices(const rn_kernel_ctx_t* ctx, int partitions, int64_t* at,
                          rn_tensor_t* out) {
  const rn_tensor_t* values = rn_in(ctx, partitions);
  int64_t rank = partitions + values->rank, *to = out->data;
  int64_t cells = rn_tensor_dim(values, 0), size = cells ? values->count / cells : 0;
  for (int64_t cell = 0; cell < cells; ++cell) {
    int64_t place[RN_MAX_RANK], child = cell;
    for (int i = partitions - 1; i >= 0; --i) {
      while (rn_int_at(rn_in(ctx, i), at[i] + 1) <= child) ++at[i];
      place[i + 1] = child - rn_int_at(rn_in(ctx, i), at[i]);
      child = at[i];
    }
    place[0] = child;
    for (int64_t k = 0; k < size; ++k, to += rank) {
      int64_t rest = k;
      memcpy(to, place, (size_t)(partitions + 1) * sizeof *to);
      for (int d = values->rank - 1; d > 0; --d) {
        to[partitions + d] = rest % rn_tensor_dim(values, d);
        rest /= rn_tensor_dim(values, d);
      }
    }
  }
}

static rn_status_t to_sparse_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  int partitions = ctx->kernel->input_count - 1;
  const rn_tensor_t* values = rn_in(ctx, partitions);
  RN_RETURN_IF_ERROR(check_nested(ctx, partitions));
  int64_t rank = partitions + values->rank, *at = NULL;
  if (rank > RN_MAX_RANK) return rn_invalid_argument("Too many dimensions: %" PRId64, rank);
  rn_tensor_t *indices = NULL, *shape = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){values->count, rank}}, &indices));
  RN_RETURN_IF_ERROR(rn_forward_reshaped(ctx, 1, partitions, (rn_shape_t){1, &values->count}));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &rank}, &shape));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)partitions, &at));
  if (values->count) write_indices(ctx, partitions, at, indices);
  int64_t* sizes = shape->data;
  sizes[0] = (rn_in(ctx, 0)->rank ? rn_tensor_dim(rn_in(ctx, 0), 0) : 1) - 1;
  for (int i = 0; i < partitions; ++i) {
    const rn_tensor_t* splits = rn_in(ctx, i);
    sizes[i + 1] = 0;
    for (int64_t k = 1; k < splits->count; ++k) {
      int64_t width = rn_int_at(splits, k) - rn_int_at(splits, k - 1);
      if (width > sizes[i + 1]) sizes[i + 1] = width;
    }
  }
  for (int d = 1; d < values->rank; ++d) sizes[partitions + d] = rn_tensor_dim(values, d);
  return RN_OK;
}

static rn_status_t to_sparse(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, to_sparse_in); }

// RaggedGather.

static rn_status_t check_params(const rn_kernel_ctx_t* ctx, int partitions) {
  const rn_tensor_t *values = rn_in(ctx, partitions), *indices = rn_in(ctx, partitions + 1);
  int64_t rows = (rn_in(ctx, 0)->rank ? rn_tensor_dim(rn_in(ctx, 0), 0) : 1) - 1;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0 || index >= rows)
      return rn_invalid_argument("indices%s = %" PRId64 " is not in [0, %" PRId64 ")",
                                 rn_place_text(indices, i).text, index, rows);
  }
  if (values->rank < 1) return rn_invalid_argument("params.rank must be nonzero");
  for (int i = 0; i < partitions; ++i) {
    const rn_tensor_t* splits = rn_in(ctx, i);
    int64_t limit = i + 1 < partitions ? rn_in(ctx, i + 1)->count - 1 : rn_tensor_dim(values, 0);
    if (splits->count == 0) return rn_invalid_argument("Ragged splits may not be empty");
    if (rn_int_at(splits, 0) < 0) return rn_invalid_argument("Ragged splits must be non-negative");
    if (last_of(splits) > limit)
      return rn_invalid_argument("Ragged splits must not point past values");
    for (int64_t k = 1; k < splits->count; ++k)
      if (rn_int_at(splits, k) < rn_int_at(splits, k - 1))
        return rn_invalid_argument("Ragged splits must be sorted");
  }
  return RN_OK;
}

// The splits for the outer dimensions of the indices: rows of equal length.
static rn_status_t output_regular(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices) {
  int64_t rows = 1;
  for (int d = 0; d < indices->rank - 1; ++d) {
    rn_tensor_t* out = NULL;
    int64_t count, length = rn_tensor_dim(indices, d + 1);
    if (!rn_mul_i64_ok(rows, rn_tensor_dim(indices, d), &rows) || !rn_add_i64_ok(rows, 1, &count))
      return rn_invalid_argument("The indices have too many rows");
    RN_RETURN_IF_ERROR(rn_output(ctx, d, (rn_shape_t){1, &count}, &out));
    for (int64_t i = 0; i < count; ++i)
      rn_int_set(out, i, (int64_t)((uint64_t)i * (uint64_t)length));
  }
  return RN_OK;
}

// The range of partition |depth| + 1 that row |row| of the first one covers.
static void range_at(const rn_kernel_ctx_t* ctx, int depth, int64_t row, int64_t* out_begin,
                     int64_t* out_end) {
  *out_begin = row;
  *out_end = row + 1;
  for (int i = 0; i < depth; ++i) {
    *out_begin = rn_int_at(rn_in(ctx, i), *out_begin);
    *out_end = rn_int_at(rn_in(ctx, i), *out_end);
  }
}

// The number of rows at |depth| that the gathered rows have.
static rn_status_t count_at(const rn_kernel_ctx_t* ctx, int depth, const rn_tensor_t* indices,
                            int64_t* out) {
  *out = 0;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t begin, end;
    range_at(ctx, depth, rn_int_at(indices, i), &begin, &end);
    if (!rn_add_i64_ok(*out, end - begin, out))
      return rn_invalid_argument("Too many values are gathered");
  }
  return RN_OK;
}

static rn_status_t gather_splits(rn_kernel_ctx_t* ctx, int depth, int output,
                                 const rn_tensor_t* indices) {
  const rn_tensor_t* splits = rn_in(ctx, depth);
  int64_t count, at = 0, total = 0;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(count_at(ctx, depth, indices, &count));
  if (!rn_add_i64_ok(count, 1, &count)) return rn_invalid_argument("Too many rows");
  RN_RETURN_IF_ERROR(rn_output(ctx, output, (rn_shape_t){1, &count}, &out));
  rn_int_set(out, at++, 0);
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t begin, end;
    range_at(ctx, depth, rn_int_at(indices, i), &begin, &end);
    for (int64_t k = begin; k < end; ++k) {
      if (!rn_add_i64_ok(total, rn_int_at(splits, k + 1) - rn_int_at(splits, k), &total))
        return rn_invalid_argument("Too many values are gathered");
      rn_int_set(out, at++, total);
    }
  }
  return RN_OK;
}

static rn_status_t gather_values(rn_kernel_ctx_t* ctx, int partitions, const rn_tensor_t* indices) {
  const rn_tensor_t* values = rn_in(ctx, partitions);
  int64_t dims[RN_MAX_RANK], cells = rn_tensor_dim(values, 0);
  int64_t size = cells ? values->count / cells : 0;
  size_t bytes = (size_t)size * rn_dtype_size(values->dtype);
  rn_tensor_t* out = NULL;
  memcpy(dims, rn_tensor_dims(values), values->rank * sizeof *dims);
  RN_RETURN_IF_ERROR(count_at(ctx, partitions, indices, &dims[0]));
  RN_RETURN_IF_ERROR(
      rn_output(ctx, ctx->kernel->output_count - 1, (rn_shape_t){values->rank, dims}, &out));
  char* to = out->data;
  for (int64_t i = 0; size && i < indices->count; ++i) {
    int64_t begin, end;
    range_at(ctx, partitions, rn_int_at(indices, i), &begin, &end);
    RN_RETURN_IF_ERROR(rn_move_row(values->dtype,
                                   RN_DATA(values, const char) + (size_t)begin * bytes, to,
                                   (end - begin) * size));
    to += (size_t)(end - begin) * bytes;
  }
  return RN_OK;
}

static rn_status_t gather(rn_kernel_ctx_t* ctx) {
  int partitions = ctx->kernel->input_count - 2;
  const rn_tensor_t* indices = rn_in(ctx, partitions + 1);
  RN_RETURN_IF_ERROR(check_params(ctx, partitions));
  int first = indices->rank - 1;  // a scalar takes one row, and the outer partition ends
  if (first + partitions != ctx->kernel->output_count - 1)
    return rn_invalid_argument("The indices have %d dimensions, which does not fit the ranks",
                               indices->rank);
  RN_RETURN_IF_ERROR(output_regular(ctx, indices));
  for (int i = first < 0 ? 1 : 0; i < partitions; ++i)
    RN_RETURN_IF_ERROR(gather_splits(ctx, i, first + i, indices));
  return gather_values(ctx, partitions, indices);
}

#define VALUES (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING))

static const rn_kernel_def_t rows[] = {
    {.op = "RaggedTensorToSparse", .device = "CPU", .compute = to_sparse},
    {.op = "RaggedGather", .device = "CPU", .types = {{"Tvalues", VALUES}}, .compute = gather},
};
RN_KERNEL_FAMILY(cpu_ragged_rows, rows);
