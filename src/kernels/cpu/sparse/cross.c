// SparseCross: per row of a batch, all combinations of one feature per column, as a string or a
// hash.
#include <inttypes.h>

#include "base/arena.h"
#include "base/hash.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct cross_t {
  int32_t sparse_count, dense_count;
  bool gives_strings;
  bool wants_strings;  // V1: every input must be a string
  bool is_first_form;
  int64_t buckets;
  uint64_t key;
} cross_t;

static rn_status_t cross_init(const rn_kernel_init_t* init, void* state) {
  cross_t* cross = state;
  cross->sparse_count = (int32_t)rn_init_int(init, "N");
  cross->dense_count = (int32_t)rn_init_attr(init, "dense_types")->count;
  cross->gives_strings = init->output_types[1] == RN_STRING;
  if (rn_init_attr(init, "sparse_types")->count != cross->sparse_count)
    return rn_invalid_argument("There must be as many types of values as indices: %d",
                               cross->sparse_count);
  if (strcmp(init->op->name, "SparseCross")) return RN_OK;
  cross->is_first_form = true;
  cross->wants_strings = rn_init_type(init, "internal_type") == RN_STRING;
  cross->buckets = rn_init_int(init, "num_buckets");
  cross->key = (uint64_t)rn_init_int(init, "hash_key");
  return RN_OK;
}

// A column of features, and the position of the scan over its rows.
typedef struct column_t {
  const rn_tensor_t* values;
  const rn_tensor_t* indices;  // NULL if dense
  int64_t at, last;            // the next entry, and the row of the previous one
  int64_t begin, count;        // the features of the current row
} column_t;

static rn_status_t check_inputs(rn_kernel_ctx_t* ctx, int64_t* out_batch) {
  const cross_t* cross = ctx->state;
  int32_t n = cross->sparse_count;
  for (int32_t k = 0; k < n; ++k) {
    const rn_tensor_t* indices = rn_in(ctx, k);
    if (indices->rank != 2)
      return rn_invalid_argument(
          "Input indices should be a matrix but received shape %s at position %d",
          rn_text_of(indices).text, k);
    if (rn_tensor_dim(indices, 1) != 2)
      return rn_invalid_argument("Expected D2 of index to be 2 got %lld at position %d",
                                 (long long)rn_tensor_dim(indices, 1), k);
  }
  for (int32_t k = 0; k < n; ++k) {
    const rn_tensor_t* values = rn_in(ctx, n + k);
    if (cross->wants_strings && values->dtype != RN_STRING)
      return rn_invalid_argument("Input values should be of internal type %d but received %d",
                                 RN_STRING, values->dtype);
    if (values->rank != 1)
      return rn_invalid_argument(
          "Input values should be a vector but received shape %s at position %d",
          rn_text_of(values).text, k);
    if (values->count != rn_tensor_dim(rn_in(ctx, k), 0))
      return rn_invalid_argument("Expected size of values to be %lld got %lld at position %d",
                                 (long long)rn_tensor_dim(rn_in(ctx, k), 0),
                                 (long long)values->count, k);
  }
  int64_t batch = -1;
  for (int32_t k = 0; k < n; ++k) {
    const rn_tensor_t* shape = rn_in(ctx, 2 * n + k);
    if (shape->rank != 1)
      return rn_invalid_argument(
          "Input shapes should be a vector but received shape %s at position %d",
          rn_text_of(shape).text, k);
    if (shape->count != 2)
      return rn_invalid_argument("shape should imply a 2D tensor, but got %s at position %d",
                                 rn_text_of(shape).text, k);
    int64_t own = rn_int_at(shape, 0);
    if (batch < 0) batch = own;
    if (own != batch || own < 0)
      return rn_invalid_argument("Expected batch size %lld got %lld at position %d",
                                 (long long)batch, (long long)own, k);
  }
  for (int32_t k = 0; k < cross->dense_count; ++k) {
    const rn_tensor_t* dense = rn_in(ctx, 3 * n + k);
    if (cross->wants_strings && dense->dtype != RN_STRING)
      return rn_invalid_argument("Dense inputs should be of internal type %d but received %d",
                                 RN_STRING, dense->dtype);
    if (dense->rank != 2)
      return rn_invalid_argument(
          "Dense inputs should be a matrix but received shape %s at position %d",
          rn_text_of(dense).text, k);
    if (batch < 0) batch = rn_tensor_dim(dense, 0);
    if (rn_tensor_dim(dense, 0) != batch)
      return rn_invalid_argument("Expected batch size %lld got %lld at dense tensor %d",
                                 (long long)batch, (long long)rn_tensor_dim(dense, 0), k);
  }
  *out_batch = batch < 0 ? 0 : batch;
  return RN_OK;
}

// Rows are scanned in order; entries after an index that breaks the order are not seen.
static void go_to_row(column_t* column, int64_t row) {
  if (!column->indices) {
    column->count = rn_tensor_dim(column->values, 1);
    column->begin = row * column->count;
    return;
  }
  const int64_t* rows = RN_DATA(column->indices, const int64_t);
  int64_t entries = rn_tensor_dim(column->indices, 0);
  while (column->at < entries && rows[2 * column->at] >= column->last && rows[2 * column->at] < row)
    column->last = rows[2 * column->at++];
  column->begin = column->at;
  while (column->at < entries && rows[2 * column->at] == row) ++column->at;
  column->count = column->at - column->begin;
  column->last = row;
}

typedef struct cross_columns_t {
  column_t* items;
  int32_t count;
  int64_t batch;
  int64_t row;  // -1 before the first
} cross_columns_t;

static void begin_rows(cross_columns_t* columns) {
  columns->row = -1;
  for (int32_t k = 0; k < columns->count; ++k) columns->items[k].at = columns->items[k].last = 0;
}

// Advances to the next row that may have crosses (those of the first sparse column, otherwise all)
// and counts them.
static rn_status_t next_row(cross_columns_t* columns, bool* out_has, int64_t* out_crosses) {
  column_t* first = columns->count ? &columns->items[0] : NULL;
  int64_t row = columns->row + 1;
  *out_has = false;
  if (first && first->indices) {
    if (first->at >= rn_tensor_dim(first->indices, 0)) return RN_OK;
    int64_t found = RN_DATA(first->indices, const int64_t)[2 * first->at];
    if (found < row) return RN_OK;
    row = found;
  }
  if (!first || row >= columns->batch) return RN_OK;
  columns->row = row;
  *out_has = true;
  *out_crosses = 1;
  for (int32_t k = 0; k < columns->count; ++k) {
    go_to_row(&columns->items[k], row);
    if (!rn_mul_i64_ok(*out_crosses, columns->items[k].count, out_crosses))
      return rn_invalid_argument("Row %lld has too many crosses", (long long)row);
  }
  return RN_OK;
}

// How to make a value of a cross.
typedef struct cross_maker_t {
  const cross_t* cross;
  rn_str_t separator;
  bool is_strong;
  uint64_t salt[2];
  uint64_t buckets;
  rn_strbuf_t* buf;
} cross_maker_t;

static rn_str_t text_of(const rn_tensor_t* values, int64_t i) {
  return rn_tstring_view(&RN_DATA(values, const rn_tstring_t)[i]);
}

static uint64_t hash_of(const cross_maker_t* maker, const column_t* column, int64_t i) {
  const rn_tensor_t* values = column->values;
  bool is_text = values->dtype == RN_STRING, is_dense = !column->indices;
  if (!is_text && (maker->cross->is_first_form || (is_dense && !maker->is_strong)))
    return (uint64_t)RN_DATA(values, const int64_t)[i];
  // Only the low four bytes of a number: stock uses the size of the type's enumerator.
  rn_str_t bytes =
      is_text ? text_of(values, i) : rn_str_n((const char*)&RN_DATA(values, const int64_t)[i], 4);
  return maker->is_strong ? rn_sip_hash64(bytes, maker->salt) : rn_farm_fingerprint64(bytes);
}

static int64_t cross_hash(const cross_maker_t* maker, const cross_columns_t* columns,
                          const int64_t* at) {
  uint64_t hash = maker->cross->key;
  for (int32_t k = 0; k < columns->count; ++k) {
    const column_t* column = &columns->items[k];
    uint64_t own = hash_of(maker, column, column->begin + at[k]);
    hash = k || maker->cross->is_first_form ? rn_fingerprint_cat64(hash, own) : own;
  }
  return (int64_t)(hash % (maker->buckets ? maker->buckets : (uint64_t)INT64_MAX));
}

static rn_status_t cross_text(const cross_maker_t* maker, const cross_columns_t* columns,
                              const int64_t* at, rn_tstring_t* out) {
  rn_strbuf_t* buf = maker->buf;
  buf->size = 0;
  for (int32_t k = 0; k < columns->count; ++k) {
    const column_t* column = &columns->items[k];
    int64_t place = column->begin + at[k];
    if (k) rn_strbuf_append(buf, maker->separator);
    if (column->values->dtype == RN_STRING)
      rn_strbuf_append(buf, text_of(column->values, place));
    else
      rn_strbuf_printf(buf, "%" PRId64, RN_DATA(column->values, const int64_t)[place]);
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  rn_str_t text = rn_strbuf_view(buf);
  return rn_tstring_assign(out, text.data, text.size) ? RN_OK : rn_out_of_memory();
}

// Writes the crosses of one row; the last column's features vary fastest.
static rn_status_t write_row(const cross_maker_t* maker, const cross_columns_t* columns,
                             int64_t crosses, int64_t* at, int64_t* indices, rn_tensor_t* values,
                             int64_t first) {
  memset(at, 0, (size_t)columns->count * sizeof *at);
  for (int64_t i = 0; i < crosses; ++i) {
    indices[2 * (first + i)] = columns->row;
    indices[2 * (first + i) + 1] = i;
    if (maker->cross->gives_strings)
      RN_RETURN_IF_ERROR(cross_text(maker, columns, at, &RN_DATA(values, rn_tstring_t)[first + i]));
    else
      RN_DATA(values, int64_t)[first + i] = cross_hash(maker, columns, at);
    for (int32_t k = columns->count - 1; k >= 0 && ++at[k] == columns->items[k].count; --k)
      at[k] = 0;
  }
  return RN_OK;
}

static rn_status_t cross_rows(rn_kernel_ctx_t* ctx, const cross_maker_t* maker,
                              cross_columns_t* columns, int64_t* at) {
  int64_t total = 0, widest = 0, crosses = 0, *indices = NULL, first = 0;
  rn_tensor_t* values = NULL;
  bool has = false;
  for (begin_rows(columns);; total += crosses) {
    RN_RETURN_IF_ERROR(next_row(columns, &has, &crosses));
    if (!has) break;
    if (crosses > widest) widest = crosses;
    if (crosses > INT64_MAX - total) return rn_invalid_argument("There are too many crosses");
  }
  int64_t shape[2] = {columns->batch, widest};
  RN_RETURN_IF_ERROR(rn_sparse_output(ctx, 0, total, 2, shape, &indices, &values));
  for (begin_rows(columns);; first += crosses) {
    RN_RETURN_IF_ERROR(next_row(columns, &has, &crosses));
    if (!has) return RN_OK;
    RN_RETURN_IF_ERROR(write_row(maker, columns, crosses, at, indices, values, first));
  }
}

static rn_status_t cross_in(rn_kernel_ctx_t* ctx, cross_maker_t* maker, rn_arena_t* arena) {
  const cross_t* cross = ctx->state;
  cross_columns_t columns = {.count = cross->sparse_count + cross->dense_count};
  int64_t* at = NULL;
  RN_RETURN_IF_ERROR(check_inputs(ctx, &columns.batch));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)columns.count + 1, &columns.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)columns.count + 1, &at));
  for (int32_t k = 0; k < columns.count; ++k) {
    bool is_sparse = k < cross->sparse_count;
    columns.items[k].indices = is_sparse ? rn_in(ctx, k) : NULL;
    columns.items[k].values =
        rn_in(ctx, is_sparse ? cross->sparse_count + k : 2 * cross->sparse_count + k);
  }
  return cross_rows(ctx, maker, &columns, at);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, cross_maker_t* maker) {
  rn_arena_t arena;
  rn_strbuf_t buf;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  maker->cross = ctx->state;
  maker->buf = &buf;
  rn_status_t status = cross_in(ctx, maker, &arena);
  rn_strbuf_clear(&buf);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t sparse_cross(rn_kernel_ctx_t* ctx) {
  cross_maker_t maker = {.separator = RN_STR("_X_"),
                         .buckets = (uint64_t)((const cross_t*)ctx->state)->buckets};
  return run(ctx, &maker);
}

// The arguments after the columns.
static const rn_tensor_t* argument(rn_kernel_ctx_t* ctx, int i) {
  const cross_t* cross = ctx->state;
  return rn_in(ctx, 3 * cross->sparse_count + cross->dense_count + i);
}

static rn_status_t sparse_cross_v2(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* separator = argument(ctx, 0);
  if (separator->rank != 0)
    return rn_invalid_argument("Input separator should be a scalar. Received: shape %s",
                               rn_text_of(separator).text);
  cross_maker_t maker = {.separator = text_of(separator, 0)};
  return run(ctx, &maker);
}

static rn_status_t sparse_cross_hashed(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *buckets = argument(ctx, 0), *strong = argument(ctx, 1);
  const rn_tensor_t* salt = argument(ctx, 2);
  cross_maker_t maker = {0};
  if (buckets->rank != 0 || strong->rank != 0)
    return rn_invalid_argument("Inputs \"num_buckets\" and \"strong_hash\" should be scalars");
  if (salt->count != 2)
    return rn_invalid_argument("Input \"salt\" must have length 2 but has length %lld",
                               (long long)salt->count);
  int64_t count = rn_int_at(buckets, 0);
  maker.buckets = count > 0 ? (uint64_t)count : 0;
  maker.is_strong = *RN_DATA(strong, const bool);
  for (int i = 0; i < 2; ++i) maker.salt[i] = (uint64_t)rn_int_at(salt, i);
  return run(ctx, &maker);
}

#define ROW(name, function)                                                         \
  {                                                                                 \
    .op = name, .device = "CPU", .state_size = sizeof(cross_t), .init = cross_init, \
    .compute = function                                                             \
  }

static const rn_kernel_def_t rows[] = {
    ROW("SparseCross", sparse_cross),
    ROW("SparseCrossV2", sparse_cross_v2),
    ROW("SparseCrossHashed", sparse_cross_hashed),
};
RN_KERNEL_FAMILY(cpu_sparse_cross, rows);
