// SparseSegmentSum, Mean and SqrtN, and their gradients. 16-bit floats are summed and divided in
// float, because a sum may overflow where its mean does not.
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/combine.h"
#include "kernels/cpu/math/segment.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/wide_rows.h"
#include "kernels/kernel_rows.h"

enum { SUM, MEAN, SQRT_N };

static rn_status_t kind_init(const rn_kernel_init_t* init, void* state) {
  const char* name = init->op->name;
  *(int*)state = strstr(name, "Mean") ? MEAN : strstr(name, "SqrtN") ? SQRT_N : SUM;
  return RN_OK;
}

// Writes one number in the type in which means are computed.
static void put_number(rn_dtype_t dtype, double value, void* out) {
  float number = (float)value;
  if (dtype == RN_DOUBLE)
    memcpy(out, &value, sizeof value);
  else
    memcpy(out, &number, sizeof number);
}

static rn_status_t read_number(const rn_kernel_ctx_t* ctx, const rn_tensor_t* ids,
                               int64_t* out_rows) {
  int64_t last = ids->count ? rn_int_at(ids, ids->count - 1) : -1;
  *out_rows = 0;
  if (ctx->kernel->input_count < 4) return ids->count ? rn_segment_rows(last, out_rows) : RN_OK;
  RN_RETURN_IF_ERROR(rn_sparse_segment_number(rn_in(ctx, 3), out_rows));
  if (last >= *out_rows) return rn_invalid_argument("segment ids must be < num_segments");
  return RN_OK;
}

static rn_status_t bad_id(int64_t id, int64_t rows) {
  return rn_invalid_argument(
      "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input is not sorted.",
      (long long)id, (long long)rows);
}

// Sums the rows into |out|, which is zero. |spare| holds two rows of floats.
static rn_status_t sum_rows(const rn_kernel_ctx_t* ctx, int64_t rows, float* spare,
                            rn_tensor_t* out) {
  const int kind = *(const int*)ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *indices = rn_in(ctx, 1), *ids = rn_in(ctx, 2);
  const int64_t limit = rn_tensor_dim(data, 0);
  const int64_t row = data->count ? rn_dims_product(rn_tensor_dims(data), 1, data->rank) : 0;
  const int64_t bytes = row * (int64_t)rn_dtype_size(data->dtype);
  const rn_dtype_t wide = rn_wide_dtype(data->dtype);
  const bool is_narrow = wide != data->dtype;
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, wide);
  for (int64_t i = 0; i < ids->count;) {
    int64_t id = rn_int_at(ids, i), first = i, end = i + 1;
    while (end < ids->count && rn_int_at(ids, end) == id) ++end;
    if (end < ids->count && rn_int_at(ids, end) < id)
      return rn_invalid_argument("segment ids are not increasing");
    if (id < 0 || id >= rows) return bad_id(id, rows);
    char* to = out->count ? (char*)out->data + id * bytes : NULL;
    void* sum = is_narrow ? (void*)(spare + row) : (void*)to;
    if (is_narrow) memset(sum, 0, (size_t)row * sizeof *spare);
    for (; i < end; ++i) {
      int64_t index = rn_int_at(indices, i);
      if (index < 0 || index >= limit)
        return rn_invalid_argument("Bad: indices[%lld] == %lld out of range [0, %lld)",
                                   (long long)i, (long long)index, (long long)limit);
      const char* from = (const char*)data->data + index * bytes;
      if (row) add(sum, rn_wide_row(data->dtype, from, spare, row), 1, sum, row);
    }
    if (!row) continue;
    if (kind != SUM && i - first > 1) {
      _Alignas(16) char scale[16];
      double count = (double)(i - first);
      put_number(wide, kind == MEAN ? count : sqrt(count), scale);
      rn_combine(RN_COMBINE_DIV, wide)(sum, scale, 0, sum, row);
    }
    if (is_narrow) rn_narrow_row(data->dtype, sum, to, row);
  }
  return RN_OK;
}

static rn_status_t sparse_segment(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *indices = rn_in(ctx, 1), *ids = rn_in(ctx, 2);
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(data, indices, ids));
  RN_RETURN_IF_ERROR(read_number(ctx, ids, &rows));
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(data), (size_t)data->rank * sizeof *dims);
  dims[0] = rows;
  rn_tensor_t *out = NULL, spare = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){data->rank, dims}, &out));
  if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
  int64_t room = 0;
  if (rn_is_narrow(data->dtype) && data->count) room = 2 * (data->count / rn_tensor_dim(data, 0));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &room}, &spare));
  rn_status_t status = sum_rows(ctx, rows, spare.data, out);
  rn_tensor_clear(&spare);
  return status;
}

// Adds row |from| of the gradient, scaled, to row |to| of the sums. |spare| holds two rows.
static void add_scaled(rn_dtype_t dtype, const char* from, double scale, char* to, char* spare,
                       int64_t n) {
  const rn_dtype_t wide = rn_wide_dtype(dtype);
  const void* row = rn_wide_row(dtype, from, spare, n);
  if (scale != 1) {
    _Alignas(16) char number[16];
    char* scaled = spare + (size_t)n * rn_dtype_size(wide);
    put_number(wide, scale, number);
    rn_combine(RN_COMBINE_MUL, wide)(row, number, 0, scaled, n);
    row = scaled;
  }
  rn_combine(RN_COMBINE_ADD, wide)(to, row, 1, to, n);
}

// Checks before anything is allocated, because the output may be large and the ids wrong.
static rn_status_t check_places(const rn_tensor_t* grad, const rn_tensor_t* indices,
                                const rn_tensor_t* ids, int64_t rows) {
  const int64_t segments = rn_tensor_dim(grad, 0);
  if (ids->count && rn_int_at(ids, ids->count - 1) >= segments)
    return rn_invalid_argument("Invalid number of segments");
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = rn_int_at(ids, i);
    if (id < 0 || id >= segments)
      return rn_invalid_argument("Segment id %lld out of range [0, %lld).", (long long)id,
                                 (long long)segments);
  }
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0 || index >= rows)
      return rn_invalid_argument("Index %lld out of range [0, %lld).", (long long)index,
                                 (long long)rows);
  }
  return RN_OK;
}

// Accumulates into |out|, which is zero and has the type in which |grad| is computed.
static void grad_rows(int kind, const rn_tensor_t* grad, const rn_tensor_t* indices,
                      const rn_tensor_t* ids, int64_t* counts, char* spare, rn_tensor_t* out) {
  const int64_t row = out->count ? rn_dims_product(rn_tensor_dims(out), 1, out->rank) : 0;
  for (int64_t i = 0; i < ids->count; ++i) ++counts[rn_int_at(ids, i)];
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = rn_int_at(ids, i), index = rn_int_at(indices, i);
    double count = (double)counts[id];
    double scale = kind == SUM ? 1 : kind == MEAN ? 1 / count : 1 / sqrt(count);
    if (row)
      add_scaled(grad->dtype,
                 (const char*)grad->data + (size_t)(id * row) * rn_dtype_size(grad->dtype), scale,
                 (char*)out->data + (size_t)(index * row) * rn_dtype_size(out->dtype), spare, row);
  }
}

// Accumulates |grad| into a new output 0 of |rows| rows.
static rn_status_t make_grad(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices, int64_t rows) {
  const rn_tensor_t *grad = rn_in(ctx, 0), *ids = rn_in(ctx, 2);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(grad), (size_t)grad->rank * sizeof *dims);
  dims[0] = rows;
  const int64_t segments = rn_tensor_dim(grad, 0);
  if (rows) RN_RETURN_IF_ERROR(check_places(grad, indices, ids, rows));
  rn_tensor_t *out = NULL, counts = {0}, spare = {0}, sums = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){grad->rank, dims}, &out));
  if (rows == 0) return RN_OK;
  int64_t room = out->count ? 2 * (out->count / rows) : 0;
  const rn_dtype_t wide = rn_wide_dtype(grad->dtype);
  const bool is_narrow = wide != grad->dtype;
  rn_tensor_t* to = is_narrow ? &sums : out;
  rn_status_t status = rn_temp(ctx, RN_INT64, (rn_shape_t){1, &segments}, &counts);
  if (rn_ok(status)) status = rn_temp(ctx, wide, (rn_shape_t){1, &room}, &spare);
  if (rn_ok(status) && is_narrow) status = rn_temp(ctx, wide, rn_tensor_shape(out), &sums);
  if (rn_ok(status)) {
    if (segments) memset(counts.data, 0, rn_tensor_bytes(&counts));
    if (to->count) memset(to->data, 0, rn_tensor_bytes(to));
    grad_rows(*(const int*)ctx->state, grad, indices, ids, counts.data, spare.data, to);
  }
  if (rn_ok(status) && is_narrow) rn_narrow_row(out->dtype, sums.data, out->data, out->count);
  rn_tensor_clear(&counts);
  rn_tensor_clear(&spare);
  rn_tensor_clear(&sums);
  return status;
}

static rn_status_t sparse_segment_grad(rn_kernel_ctx_t* ctx) {
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_segment_size(rn_in(ctx, 3), "output_dim0", &rows));
  return make_grad(ctx, rn_in(ctx, 1), rows);
}

static int by_number(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

// V2 returns only the selected rows, and their indices. |sorted| and |places| have one entry per
// index.
static rn_status_t sparse_segment_rows(rn_kernel_ctx_t* ctx, int64_t rows, int64_t* sorted,
                                       rn_tensor_t* places) {
  const rn_tensor_t* indices = rn_in(ctx, 1);
  const int64_t chosen = rows ? indices->count : 0;
  int64_t count = 0;
  for (int64_t i = 0; i < chosen; ++i) {
    sorted[i] = rn_int_at(indices, i);
    if (sorted[i] < 0 || sorted[i] >= rows)
      return rn_invalid_argument("Index %lld out of range [0, %lld).", (long long)sorted[i],
                                 (long long)rows);
  }
  if (chosen) qsort(sorted, (size_t)chosen, sizeof *sorted, by_number);
  for (int64_t i = 0; i < chosen; ++i)
    if (i == 0 || sorted[i] != sorted[i - 1]) sorted[count++] = sorted[i];
  for (int64_t i = 0; i < chosen; ++i) {
    int64_t index = rn_int_at(indices, i);
    const int64_t* found = bsearch(&index, sorted, (size_t)count, sizeof *sorted, by_number);
    RN_DATA(places, int64_t)[i] = found - sorted;
  }
  rn_tensor_t* unique = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &count}, &unique));
  for (int64_t i = 0; i < count; ++i) rn_int_set(unique, i, sorted[i]);
  return make_grad(ctx, places, count);
}

static rn_status_t sparse_segment_grad_v2(rn_kernel_ctx_t* ctx) {
  int64_t rows = 0, count = rn_in(ctx, 1)->count;
  RN_RETURN_IF_ERROR(rn_sparse_segment_check(rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_sparse_segment_size(rn_in(ctx, 3), "dense_output_dim0", &rows));
  rn_tensor_t sorted = {0}, places = {0};
  rn_status_t status = rn_temp(ctx, RN_INT64, (rn_shape_t){1, &count}, &sorted);
  if (rn_ok(status)) status = rn_temp(ctx, RN_INT64, (rn_shape_t){1, &count}, &places);
  if (rn_ok(status)) status = sparse_segment_rows(ctx, rows, sorted.data, &places);
  rn_tensor_clear(&sorted);
  rn_tensor_clear(&places);
  return status;
}

#define ROW(name, types_, function)                                                   \
  {                                                                                   \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(int), \
    .init = kind_init, .compute = function                                            \
  }
#define ROWS(kind, types_)                                                    \
  ROW("SparseSegment" kind, types_, sparse_segment),                          \
      ROW("SparseSegment" kind "WithNumSegments", types_, sparse_segment),    \
      ROW("SparseSegment" kind "Grad", RN_TYPES_FLOATS, sparse_segment_grad), \
      ROW("SparseSegment" kind "GradV2", RN_TYPES_FLOATS, sparse_segment_grad_v2)

static const rn_kernel_def_t rows[] = {
    ROWS("Sum", RN_TYPES_REAL),
    ROWS("Mean", RN_TYPES_FLOATS),
    ROWS("SqrtN", RN_TYPES_FLOATS),
};
RN_KERNEL_FAMILY(cpu_sparse_segment, rows);
