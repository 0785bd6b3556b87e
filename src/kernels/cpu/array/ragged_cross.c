// RaggedCross: joins one value of each feature, in all combinations, row by row. A feature is a
// ragged, sparse or dense tensor of strings or numbers.
#include <inttypes.h>

#include "base/hash.h"
#include "kernels/cpu/array/ragged.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct ragged_cross_t {
  int32_t ragged, sparse, dense;  // number of features
  uint64_t buckets, key;
  rn_allocator_t allocator;
  char* order;  // a letter per feature: R, S, D; Owned
  size_t order_size;
} ragged_cross_t;

static rn_status_t cross_init(const rn_kernel_init_t* init, void* state) {
  ragged_cross_t* cross = state;
  rn_str_t order = rn_init_string(init, "input_order");
  cross->ragged = rn_init_attr(init, "ragged_values_types")->count;
  cross->sparse = rn_init_attr(init, "sparse_values_types")->count;
  cross->dense = rn_init_attr(init, "dense_types")->count;
  cross->buckets = (uint64_t)rn_init_int(init, "num_buckets");
  cross->key = (uint64_t)rn_init_int(init, "hash_key");
  cross->allocator = init->allocator;
  if (cross->ragged != rn_init_attr(init, "ragged_splits_types")->count)
    return rn_invalid_argument("ragged values and splits must have the same length");
  if (cross->sparse != rn_init_int(init, "Nsparse"))
    return rn_invalid_argument("sparse indices and values must have the same length");
  if ((size_t)cross->ragged + (size_t)cross->sparse + (size_t)cross->dense != order.size)
    return rn_invalid_argument("Invalid length for input_order");
  cross->order_size = order.size;
  return rn_str_dup(init->allocator, order, &cross->order);
}

static void cross_destroy(void* state) {
  ragged_cross_t* cross = state;
  if (cross->order) rn_free(cross->allocator, cross->order, cross->order_size + 1);
}

// The inputs: ragged values, their splits, sparse indices, values, shapes, dense tensors.
static const rn_tensor_t* ragged_in(const rn_kernel_ctx_t* ctx, int part, int i) {
  return rn_in(ctx, part * ((const ragged_cross_t*)ctx->state)->ragged + i);
}
static const rn_tensor_t* sparse_in(const rn_kernel_ctx_t* ctx, int part, int i) {
  const ragged_cross_t* cross = ctx->state;
  return rn_in(ctx, 2 * cross->ragged + part * cross->sparse + i);
}
static const rn_tensor_t* dense_in(const rn_kernel_ctx_t* ctx, int i) {
  const ragged_cross_t* cross = ctx->state;
  return rn_in(ctx, 2 * cross->ragged + 3 * cross->sparse + i);
}

#define ONLY_MATRICES "tf.ragged.cross only supports inputs with rank=2."

static rn_status_t check_ranks(const rn_kernel_ctx_t* ctx) {
  const ragged_cross_t* cross = ctx->state;
  for (int i = 0; i < cross->ragged; ++i) {
    const rn_tensor_t *values = ragged_in(ctx, 0, i), *splits = ragged_in(ctx, 1, i);
    if (values->rank != 1 || splits->rank != 1) return rn_invalid_argument(ONLY_MATRICES);
    RN_RETURN_IF_ERROR(rn_ragged_check_splits(splits, values->count));
  }
  for (int i = 0; i < cross->sparse; ++i) {
    const rn_tensor_t *indices = sparse_in(ctx, 0, i), *values = sparse_in(ctx, 1, i);
    if (indices->rank != 2 || values->rank != 1 || sparse_in(ctx, 2, i)->rank != 1)
      return rn_invalid_argument("Invalid SparseTensor %d", i);
    if (sparse_in(ctx, 2, i)->count != 2) return rn_invalid_argument(ONLY_MATRICES);
    if (rn_tensor_dim(indices, 0) != values->count || rn_tensor_dim(indices, 1) < 1)
      return rn_invalid_argument("Invalid SparseTensor %d", i);
  }
  for (int i = 0; i < cross->dense; ++i)
    if (dense_in(ctx, i)->rank != 2) return rn_invalid_argument(ONLY_MATRICES);
  return RN_OK;
}

static rn_status_t count_rows(const rn_kernel_ctx_t* ctx, int64_t* out) {
  const ragged_cross_t* cross = ctx->state;
  int64_t rows = RN_UNKNOWN;
  bool differ = false;
#define SAME(count)                     \
  do {                                  \
    int64_t own = (count);              \
    differ |= rows >= 0 && own != rows; \
    rows = own;                         \
  } while (0)
  for (int i = 0; i < cross->ragged; ++i) SAME(ragged_in(ctx, 1, i)->count - 1);
  for (int i = 0; i < cross->dense; ++i) SAME(rn_tensor_dim(dense_in(ctx, i), 0));
  for (int i = 0; i < cross->sparse; ++i) SAME(rn_int_at(sparse_in(ctx, 2, i), 0));
#undef SAME
  if (differ) return rn_invalid_argument("inputs must all have the same batch dimension size.");
  bool has_none = cross->order_size == 0;
  if (!has_none && rows < 0) return rn_invalid_argument("The batch size must not be negative");
  *out = has_none ? 0 : rows;
  return RN_OK;
}

// A feature: its values, and where those of each row begin.
typedef struct ragged_feature_t {
  const rn_tensor_t* values;
  const rn_tensor_t* splits;  // NULL: every row has |width| values, or see |starts|
  const int64_t* starts;      // of a sparse tensor: rows + 1 of them
  int64_t width;
} ragged_feature_t;

static void row_of(const ragged_feature_t* feature, int64_t row, int64_t* out_begin,
                   int64_t* out_count) {
  int64_t begin = row * feature->width, end = begin + feature->width;
  if (feature->splits) {
    begin = rn_int_at(feature->splits, row);
    end = rn_int_at(feature->splits, row + 1);
  } else if (feature->starts) {
    begin = feature->starts[row];
    end = feature->starts[row + 1];
  }
  *out_begin = begin;
  *out_count = end - begin;
}

static rn_status_t sparse_feature(const rn_kernel_ctx_t* ctx, int i, int64_t rows,
                                  rn_arena_t* arena, ragged_feature_t* out) {
  const rn_tensor_t *indices = sparse_in(ctx, 0, i), *values = sparse_in(ctx, 1, i);
  int64_t *starts = NULL, next = 0, width = rn_tensor_dim(indices, 1);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)rows + 1, &starts));
  for (int64_t row = 0; row < rows; ++row) {
    while (next < values->count && RN_DATA(indices, const int64_t)[next * width] <= row) ++next;
    starts[row + 1] = next;
  }
  *out = (ragged_feature_t){.values = values, .starts = starts};
  return RN_OK;
}

static rn_status_t too_few(const ragged_cross_t* cross, const char* what, int next, int count,
                           const char* plural) {
  return rn_invalid_argument(
      "input_order \"%.*s\" specifies reading a %s at index %d from a list of %d %s.",
      (int)cross->order_size, cross->order, what, next, count, plural);
}

static rn_status_t make_features(const rn_kernel_ctx_t* ctx, int64_t rows, rn_arena_t* arena,
                                 ragged_feature_t* out) {
  const ragged_cross_t* cross = ctx->state;
  int ragged = 0, sparse = 0, dense = 0;
  for (size_t k = 0; k < cross->order_size; ++k) {
    switch (cross->order[k]) {
      case 'R':
        if (ragged >= cross->ragged)
          return too_few(cross, "ragged tensor value", ragged, cross->ragged, "values");
        out[k] = (ragged_feature_t){.values = ragged_in(ctx, 0, ragged),
                                    .splits = ragged_in(ctx, 1, ragged)};
        ++ragged;
        break;
      case 'S':
        if (sparse >= cross->sparse)
          return too_few(cross, "sparse tensor value", sparse, cross->sparse, "values");
        RN_RETURN_IF_ERROR(sparse_feature(ctx, sparse++, rows, arena, &out[k]));
        break;
      case 'D':
        if (dense >= cross->dense)
          return too_few(cross, "dense tensor", dense, cross->dense, "tensors");
        out[k] = (ragged_feature_t){.values = dense_in(ctx, dense),
                                    .width = rn_tensor_dim(dense_in(ctx, dense), 1)};
        ++dense;
        break;
      default:
        return rn_invalid_argument("Unexpected input_order value.");
    }
  }
  return RN_OK;
}

// Sets the row splits of the result.
static rn_status_t make_splits(const ragged_cross_t* cross, const ragged_feature_t* features,
                               int64_t rows, rn_tensor_t* splits, int64_t* out_total) {
  int64_t most = splits->dtype == RN_INT32 ? INT32_MAX : INT64_MAX, total = 0;
  rn_int_set(splits, 0, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t crosses = 1, begin, count;
    bool fits = true;
    for (size_t k = 0; k < cross->order_size && crosses; ++k) {
      row_of(&features[k], row, &begin, &count);
      fits = fits && rn_mul_i64_ok(crosses, count, &crosses);
    }
    if (!fits || !rn_add_i64_ok(total, crosses, &total) || total > most)
      return rn_invalid_argument("There are too many combinations of features");
    rn_int_set(splits, row + 1, total);
  }
  *out_total = total;
  return RN_OK;
}

static rn_str_t text_at(const rn_tensor_t* values, int64_t i) {
  return rn_tstring_view(&RN_DATA(values, const rn_tstring_t)[i]);
}

static int64_t hash_combination(const ragged_cross_t* cross, const ragged_feature_t* features,
                                const int64_t* places) {
  uint64_t hash = cross->key;
  for (size_t k = 0; k < cross->order_size; ++k) {
    const rn_tensor_t* values = features[k].values;
    uint64_t own = values->dtype == RN_STRING ? rn_farm_fingerprint64(text_at(values, places[k]))
                                              : (uint64_t)RN_DATA(values, const int64_t)[places[k]];
    hash = rn_fingerprint_cat64(hash, own);
  }
  return (int64_t)(hash % (cross->buckets ? cross->buckets : (uint64_t)INT64_MAX));
}

static rn_status_t join_combination(const ragged_cross_t* cross, const ragged_feature_t* features,
                                    const int64_t* places, rn_strbuf_t* buf, rn_tstring_t* out) {
  buf->size = 0;
  for (size_t k = 0; k < cross->order_size; ++k) {
    const rn_tensor_t* values = features[k].values;
    if (k) rn_strbuf_append(buf, RN_STR("_X_"));
    if (values->dtype == RN_STRING)
      rn_strbuf_append(buf, text_at(values, places[k]));
    else
      rn_strbuf_printf(buf, "%" PRId64, RN_DATA(values, const int64_t)[places[k]]);
  }
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  rn_str_t text = rn_strbuf_view(buf);
  return rn_tstring_assign(out, text.data, text.size) ? RN_OK : rn_out_of_memory();
}

// Writes the crosses of one row, from |first| to |end|; the last feature varies fastest. |places|
// has twice as many entries as there are features.
static rn_status_t write_row(const ragged_cross_t* cross, const ragged_feature_t* features,
                             int64_t row, int64_t first, int64_t end, int64_t* places,
                             rn_strbuf_t* buf, rn_tensor_t* out) {
  int64_t* limits = places + cross->order_size;
  for (size_t k = 0; k < cross->order_size; ++k) {
    row_of(&features[k], row, &places[k], &limits[k]);
    limits[k] += places[k];
  }
  for (int64_t i = first; i < end; ++i) {
    if (out->dtype == RN_STRING)
      RN_RETURN_IF_ERROR(
          join_combination(cross, features, places, buf, &RN_DATA(out, rn_tstring_t)[i]));
    else
      RN_DATA(out, int64_t)[i] = hash_combination(cross, features, places);
    for (size_t k = cross->order_size; k-- > 0 && ++places[k] == limits[k];) {
      int64_t count;
      row_of(&features[k], row, &places[k], &count);
    }
  }
  return RN_OK;
}

static rn_status_t cross_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const ragged_cross_t* cross = ctx->state;
  int64_t rows = 0, total = 0, *places = NULL;
  ragged_feature_t* features = NULL;
  rn_tensor_t *out = NULL, *splits = NULL;
  RN_RETURN_IF_ERROR(check_ranks(ctx));
  RN_RETURN_IF_ERROR(count_rows(ctx, &rows));
  if (rows == INT64_MAX) return rn_invalid_argument("There are too many rows");
  int64_t count = rows + 1;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &count}, &splits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, cross->order_size, &features));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 2 * cross->order_size, &places));
  RN_RETURN_IF_ERROR(make_features(ctx, rows, arena, features));
  RN_RETURN_IF_ERROR(make_splits(cross, features, rows, splits, &total));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &total}, &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t row = 0; rn_ok(status) && row < rows; ++row)
    status = write_row(cross, features, row, rn_int_at(splits, row), rn_int_at(splits, row + 1),
                       places, &buf, out);
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t ragged_cross(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, cross_in); }

static const rn_kernel_def_t rows[] = {
    {.op = "RaggedCross",
     .device = "CPU",
     .state_size = sizeof(ragged_cross_t),
     .init = cross_init,
     .destroy = cross_destroy,
     .compute = ragged_cross},
};
RN_KERNEL_FAMILY(cpu_ragged_cross, rows);
