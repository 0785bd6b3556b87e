// See columns.h.
#include "kernels/cpu/parsing/columns.h"

#include <stdatomic.h>

#include "kernels/cpu/array.h"
#include "tensor/tstring.h"

rn_status_t rn_column_set_dense(rn_column_t* column, int i, rn_shape_t shape,
                                const rn_tensor_t* fallback) {
  bool is_padded = shape.rank > 0 && shape.dims[0] < 0;
  column->form = is_padded ? RN_COLUMN_PADDED : RN_COLUMN_DENSE;
  column->shape = shape;
  column->fallback = fallback;
  column->size = 1;
  for (int d = is_padded; d < shape.rank; ++d)
    if (shape.dims[d] < 0 || !rn_mul_i64_ok(column->size, shape.dims[d], &column->size))
      return rn_invalid_argument(
          "dense_shapes[%d] has unknown rank or unknown inner dimensions: %s", i,
          rn_shape_text(shape).text);
  if (is_padded && fallback->count != 1)
    return rn_invalid_argument(
        "dense_shape[%d] is a variable length shape: %s, therefore def_value[%d] must contain a "
        "single element (the padding element).  But its shape is: %s",
        i, rn_shape_text(shape).text, i, rn_text_of(fallback).text);
  if (is_padded || fallback->count == 0) return RN_OK;
  bool is_same = fallback->rank == shape.rank;
  for (int d = 0; is_same && d < shape.rank; ++d)
    is_same = rn_tensor_dim(fallback, d) == shape.dims[d];
  if (is_same) return RN_OK;
  return rn_invalid_argument(
      "def_value[%d].shape() == %s is not compatible with dense_shapes_[%d] == %s", i,
      rn_text_of(fallback).text, i, rn_shape_text(shape).text);
}

int64_t rn_columns_grain(int64_t rows, size_t bytes) {
  // About 40 us per piece: 50 ns per row, and a nanosecond per four bytes.
  int64_t grain = rows > 0 ? (int64_t)(40000 / (50 + bytes / (size_t)rows / 4)) : rows;
  return grain < 1 ? 1 : grain;
}

static rn_status_t output(rn_column_t* column, rn_kernel_ctx_t* ctx, int which, int rank,
                          const int64_t* dims) {
  return rn_output(ctx, column->out[which], (rn_shape_t){(int16_t)rank, dims}, &column->to[which]);
}

static rn_status_t dense_output(rn_columns_t* columns, rn_column_t* column, rn_kernel_ctx_t* ctx) {
  int64_t dims[RN_MAX_RANK + 1];
  int rank = 0;
  if (column->shape.rank + 1 > RN_MAX_RANK)
    return rn_invalid_argument("dense_shapes has too many dimensions: %d", column->shape.rank);
  if (!columns->is_scalar) dims[rank++] = columns->rows;
  for (int d = 0; d < column->shape.rank; ++d) dims[rank++] = column->shape.dims[d];
  if (column->form == RN_COLUMN_PADDED)
    dims[columns->is_scalar ? 0 : 1] = column->size ? column->widest / column->size : 0;
  return output(column, ctx, 0, rank, dims);
}

static rn_status_t sparse_outputs(rn_columns_t* columns, rn_column_t* column,
                                  rn_kernel_ctx_t* ctx) {
  int64_t rank = columns->is_scalar ? 1 : 2;
  RN_RETURN_IF_ERROR(output(column, ctx, 0, 2, (int64_t[]){column->total, rank}));
  RN_RETURN_IF_ERROR(output(column, ctx, 1, 1, &column->total));
  RN_RETURN_IF_ERROR(output(column, ctx, 2, 1, &rank));
  int64_t* shape = RN_DATA(column->to[2], int64_t);
  if (!columns->is_scalar) *shape++ = columns->rows;
  *shape = column->widest;
  return RN_OK;
}

static rn_status_t ragged_outputs(rn_columns_t* columns, int32_t c, rn_kernel_ctx_t* ctx) {
  rn_column_t* column = &columns->list[c];
  int64_t splits = columns->is_scalar ? 0 : columns->rows + 1;
  if (column->split_type == RN_INT32 && column->total > INT32_MAX)
    return rn_invalid_argument("%lld values are too many for int32 row splits",
                               (long long)column->total);
  RN_RETURN_IF_ERROR(output(column, ctx, 0, 1, &column->total));
  RN_RETURN_IF_ERROR(output(column, ctx, 1, 1, &splits));
  if (columns->is_scalar) return RN_OK;
  for (int64_t r = 0; r < columns->rows; ++r)
    rn_int_set(column->to[1], r, columns->found[r * columns->count + c].start);
  rn_int_set(column->to[1], columns->rows, column->total);
  return RN_OK;
}

rn_status_t rn_columns_measure(rn_columns_t* columns, rn_kernel_ctx_t* ctx) {
  for (int32_t c = 0; c < columns->count; ++c) {
    rn_column_t* column = &columns->list[c];
    column->total = column->widest = 0;
    for (int64_t r = 0; r < columns->rows; ++r) {
      rn_feature_t* feature = &columns->found[r * columns->count + c];
      feature->start = column->total;
      column->total += feature->count;
      if (feature->count > column->widest) column->widest = feature->count;
    }
    if (column->form == RN_COLUMN_SPARSE)
      RN_RETURN_IF_ERROR(sparse_outputs(columns, column, ctx));
    else if (column->form == RN_COLUMN_RAGGED)
      RN_RETURN_IF_ERROR(ragged_outputs(columns, c, ctx));
    else
      RN_RETURN_IF_ERROR(dense_output(columns, column, ctx));
  }
  return RN_OK;
}

static char* place(const rn_tensor_t* tensor, int64_t i) {
  return (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
}

bool rn_column_repeat(const rn_tensor_t* value, int64_t count, void* out) {
  for (int64_t i = 0; i < count; ++i) {
    if (value->dtype == RN_STRING) {
      rn_str_t text = rn_tstring_view(RN_DATA(value, const rn_tstring_t));
      if (!rn_tstring_assign((rn_tstring_t*)out + i, text.data, text.size)) return false;
    } else {
      size_t size = rn_dtype_size(value->dtype);
      memcpy((char*)out + (size_t)i * size, value->data, size);
    }
  }
  return true;
}

static bool copy_fallback(const rn_tensor_t* value, void* out) {
  if (value->dtype != RN_STRING) {
    memcpy(out, value->data, rn_tensor_bytes(value));
    return true;
  }
  for (int64_t i = 0; i < value->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(value, const rn_tstring_t)[i]);
    if (!rn_tstring_assign((rn_tstring_t*)out + i, text.data, text.size)) return false;
  }
  return true;
}

static bool fill_one(const rn_columns_t* columns, const rn_column_t* column,
                     const rn_feature_t* feature, int64_t row) {
  bool is_there = feature->dtype != RN_INVALID;
  switch (column->form) {
    case RN_COLUMN_DENSE: {
      void* to = place(column->to[0], row * column->size);
      if (column->size == 0) return true;
      return is_there ? rn_feature_values(feature, to) : copy_fallback(column->fallback, to);
    }
    case RN_COLUMN_PADDED: {
      char* to = place(column->to[0], row * column->widest);
      if (is_there && feature->count && !rn_feature_values(feature, to)) return false;
      to += (size_t)feature->count * rn_dtype_size(column->dtype);
      return rn_column_repeat(column->fallback, column->widest - feature->count, to);
    }
    case RN_COLUMN_SPARSE: {
      int64_t* indices = RN_DATA(column->to[0], int64_t);
      for (int64_t i = 0; i < feature->count; ++i) {
        if (columns->is_scalar) {
          indices[i] = i;
        } else {
          indices[2 * (feature->start + i)] = row;
          indices[2 * (feature->start + i) + 1] = i;
        }
      }
      return !feature->count || rn_feature_values(feature, place(column->to[1], feature->start));
    }
    default:
      return !feature->count || rn_feature_values(feature, place(column->to[0], feature->start));
  }
}

bool rn_columns_fill_row(const rn_columns_t* columns, int64_t row) {
  bool ok = true;
  for (int32_t c = 0; c < columns->count; ++c)
    ok &= fill_one(columns, &columns->list[c], &columns->found[row * columns->count + c], row);
  return ok;
}

bool rn_columns_are_fixed(const rn_columns_t* columns) {
  for (int32_t c = 0; c < columns->count; ++c)
    if (columns->list[c].form != RN_COLUMN_DENSE) return false;
  return true;
}

typedef struct columns_fill_t {
  rn_columns_t* columns;
  _Atomic bool failed;
} columns_fill_t;

static void fill_rows(void* arg, int64_t begin, int64_t end) {
  columns_fill_t* fill = arg;
  rn_columns_t* columns = fill->columns;
  for (int64_t r = begin; r < end; ++r)
    if (!rn_columns_fill_row(columns, r)) atomic_store(&fill->failed, true);
}

void rn_columns_keep_heap(const rn_columns_t* columns, size_t bytes) {
  bool has_strings = false;
  for (int32_t c = 0; c < columns->count; ++c) has_strings |= columns->list[c].dtype == RN_STRING;
  if (!has_strings || bytes < 65536) return;
  void* block = malloc(bytes < (16 << 20) ? 2 * bytes : 32 << 20);
  __asm__ volatile("" : : "r"(block) : "memory");  // keeps the compiler from removing both
  free(block);
}

rn_status_t rn_columns_fill(rn_columns_t* columns, rn_kernel_ctx_t* ctx, size_t bytes) {
  columns_fill_t fill = {.columns = columns};
  rn_columns_keep_heap(columns, bytes);
  rn_pool_for(rn_ctx_pool(ctx), columns->rows, rn_columns_grain(columns->rows, bytes), fill_rows,
              &fill);
  return fill.failed ? rn_out_of_memory() : RN_OK;
}
