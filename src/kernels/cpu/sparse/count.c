// Counts how often each number occurs in the rows of a tensor; the result is a sparse tensor.
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/kernel_rows.h"

typedef struct count_t {
  int64_t least, most;  // < 0 if unlimited
  bool is_binary;
} count_t;

static rn_status_t count_init(const rn_kernel_init_t* init, void* state) {
  count_t* count = state;
  count->least = rn_init_int(init, "minlength");
  count->most = rn_init_int(init, "maxlength");
  count->is_binary = rn_init_bool(init, "binary_output");
  return RN_OK;
}

// A value in its row.
typedef struct count_item_t {
  int64_t row, value, place;
} count_item_t;

static int compare_items(const void* a, const void* b) {
  const count_item_t *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

// Sets the row of every value, in order.
typedef rn_status_t (*count_row_fn_t)(rn_kernel_ctx_t* ctx, count_item_t* items, int64_t count);

static void put_one(rn_tensor_t* out, int64_t i) {
  switch (out->dtype) {
    case RN_FLOAT:
      RN_DATA(out, float)[i] = 1;
      break;
    case RN_DOUBLE:
      RN_DATA(out, double)[i] = 1;
      break;
    default:
      rn_int_set(out, i, 1);
  }
}

// Keeps the values to count: negative ones are an error, those above the maximum are skipped.
static rn_status_t keep_items(const count_t* self, const rn_tensor_t* values, count_item_t* items,
                              int64_t* out_count, int64_t* out_largest) {
  *out_count = *out_largest = 0;
  for (int64_t i = 0; i < values->count; ++i) {
    int64_t value = rn_int_at(values, i);
    if (value < 0) return rn_invalid_argument("Input values must all be non-negative");
    if (self->most >= 0 && value >= self->most) continue;
    if (value > *out_largest) *out_largest = value;
    items[*out_count] = (count_item_t){items[i].row, value, i};
    ++*out_count;
  }
  return RN_OK;
}

static rn_status_t give(rn_kernel_ctx_t* ctx, const rn_tensor_t* weights, count_item_t* items,
                        int64_t count, bool is_vector, const int64_t* shape) {
  const count_t* self = ctx->state;
  int64_t distinct = 0, n = -1, *indices = NULL;
  int32_t rank = is_vector ? 1 : 2;
  rn_tensor_t* out = NULL;
  for (int64_t i = 0; i < count; ++i)
    distinct += !i || items[i - 1].row != items[i].row || items[i - 1].value != items[i].value;
  RN_RETURN_IF_ERROR(
      rn_sparse_output(ctx, 0, distinct, rank, is_vector ? shape + 1 : shape, &indices, &out));
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, out->dtype);
  size_t size = rn_dtype_size(out->dtype);
  char one[16] = {0};
  rn_tensor_t unit = {.dtype = out->dtype, .data = one};
  put_one(&unit, 0);
  for (int64_t i = 0; i < count; ++i) {
    const char* weight = weights->count ? rn_element(weights, items[i].place) : one;
    bool is_new = !i || items[i - 1].row != items[i].row || items[i - 1].value != items[i].value;
    if (is_new) {
      ++n;
      if (!is_vector) indices[2 * n] = items[i].row;
      indices[n * rank + rank - 1] = items[i].value;
      memcpy(rn_element(out, n), self->is_binary ? one : weight, size);
    } else if (!self->is_binary) {
      add(rn_element(out, n), weight, 1, rn_element(out, n), 1);
    }
  }
  return RN_OK;
}

static rn_status_t count_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena, const rn_tensor_t* values,
                            const rn_tensor_t* weights, int64_t rows, bool is_vector,
                            count_row_fn_t rows_of) {
  const count_t* self = ctx->state;
  count_item_t* items = NULL;
  int64_t count = 0, largest = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)values->count + 1, &items));
  RN_RETURN_IF_ERROR(rows_of(ctx, items, values->count));
  RN_RETURN_IF_ERROR(keep_items(self, values, items, &count, &largest));
  qsort(items, (size_t)count, sizeof *items, compare_items);
  if (largest == INT64_MAX) return rn_invalid_argument("Input values must be smaller");
  int64_t size = largest + 1 > self->least ? largest + 1 : self->least;
  int64_t shape[2] = {rows, self->most >= 0 ? self->most : size};
  return give(ctx, weights, items, count, is_vector, shape);
}

static rn_status_t count_values(rn_kernel_ctx_t* ctx, const rn_tensor_t* values,
                                const rn_tensor_t* weights, int64_t rows, bool is_vector,
                                count_row_fn_t rows_of) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = count_in(ctx, &arena, values, weights, rows, is_vector, rows_of);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t check_weights(const rn_tensor_t* weights, const rn_tensor_t* values,
                                 const char* name) {
  if (!weights->count || rn_tensor_same_shape(weights, values)) return RN_OK;
  return rn_invalid_argument(
      "Weights and %s must have the same shape. Weight shape: %s; %s shape: %s", name,
      rn_text_of(weights).text, name, rn_text_of(values).text);
}

static rn_status_t dense_rows(rn_kernel_ctx_t* ctx, count_item_t* items, int64_t count) {
  const rn_tensor_t* values = rn_in(ctx, 0);
  int64_t width = rn_tensor_dim(values, values->rank - 1);
  for (int64_t i = 0; i < count; ++i) items[i].row = i / width;
  return RN_OK;
}

static rn_status_t dense_count(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *values = rn_in(ctx, 0), *weights = rn_in(ctx, 1);
  if (values->rank < 1 || values->rank > 2)
    return rn_invalid_argument("Input must be a 1 or 2-dimensional tensor. Got: %s",
                               rn_text_of(values).text);
  RN_RETURN_IF_ERROR(check_weights(weights, values, "data"));
  bool is_vector = values->rank == 1;
  int64_t rows = is_vector ? 1 : rn_tensor_dim(values, 0);
  if (rows == 0) return rn_invalid_argument("Invalid input: Shapes dimension cannot be 0.");
  return count_values(ctx, values, weights, rows, is_vector, dense_rows);
}

static rn_status_t sparse_rows(rn_kernel_ctx_t* ctx, count_item_t* items, int64_t count) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *shape = rn_in(ctx, 2);
  int64_t rank = shape->count;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      int64_t at = rn_int_at(indices, i * rank + d), size = rn_int_at(shape, d);
      if (at < 0 || at >= size)
        return rn_invalid_argument(
            "Invalid index value at %lld: dimension %lld has value %lld which is not in [0, %lld) "
            "(as given by dense shape %s",
            (long long)i, (long long)d, (long long)at, (long long)size,
            rn_shape_text((rn_shape_t){(int16_t)rank, RN_DATA(shape, const int64_t)}).text);
    }
    items[i].row = rank > 1 ? rn_int_at(indices, i * rank) : 0;
  }
  return RN_OK;
}

static rn_status_t sparse_count(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  if (indices->rank != 2)
    return rn_invalid_argument("Input indices must be a 2-dimensional tensor. Got: %s",
                               rn_text_of(indices).text);
  if (values->rank != 1)
    return rn_invalid_argument("Input values must be a 1-dimensional tensor. Got: %s",
                               rn_text_of(values).text);
  if (shape->rank != 1)
    return rn_invalid_argument("Input shape must be a 1-dimensional tensor. Got: %s",
                               rn_text_of(shape).text);
  if (values->count != rn_tensor_dim(indices, 0))
    return rn_invalid_argument(
        "Number of values must match first dimension of indices.Got %lld values, indices shape: %s",
        (long long)values->count, rn_text_of(indices).text);
  if (shape->count != rn_tensor_dim(indices, 1) || shape->count > RN_MAX_RANK)
    return rn_invalid_argument(
        "Number of dimensions must match second dimension of indices.Got %lld dimensions, indices "
        "shape: %s",
        (long long)shape->count, rn_text_of(indices).text);
  if (shape->count == 0)
    return rn_invalid_argument("The shape argument requires at least one element.");
  RN_RETURN_IF_ERROR(check_weights(rn_in(ctx, 3), values, "values"));
  bool is_vector = shape->count == 1;
  int64_t rows = is_vector ? 1 : rn_int_at(shape, 0);
  if (rows <= 0)
    return rn_invalid_argument("Cannot allocate %lld batches, is the dense shape too wide?",
                               (long long)rows);
  return count_values(ctx, values, rn_in(ctx, 3), rows, is_vector, sparse_rows);
}

// Descending splits are processed as they are.
static rn_status_t ragged_rows(rn_kernel_ctx_t* ctx, count_item_t* items, int64_t count) {
  const rn_tensor_t* splits = rn_in(ctx, 0);
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    while (next < splits->count && rn_int_at(splits, next) <= i) ++next;
    items[i].row = next - 1;
  }
  return RN_OK;
}

static rn_status_t ragged_count(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *splits = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  if (splits->count < 2)
    return rn_invalid_argument("Must provide at least 2 elements for the splits argument");
  if (rn_int_at(splits, 0) != 0)
    return rn_invalid_argument("Splits must start with 0, not with %lld",
                               (long long)rn_int_at(splits, 0));
  int64_t last = rn_int_at(splits, splits->count - 1);
  if (last != values->count)
    return rn_invalid_argument(
        "Splits must end with the number of values, got %lld instead of %lld", (long long)last,
        (long long)values->count);
  RN_RETURN_IF_ERROR(check_weights(rn_in(ctx, 2), values, "values"));
  return count_values(ctx, values, rn_in(ctx, 2), splits->count - 1, false, ragged_rows);
}

#define ROW(name, function)                                                  \
  {                                                                          \
    .op = name, .device = "CPU",                                             \
    .types = {{"T", RN_TYPES_INDEX},                                         \
              {"output_type", RN_TYPES_INDEX | RN_T(FLOAT) | RN_T(DOUBLE)}}, \
    .state_size = sizeof(count_t), .init = count_init, .compute = function   \
  }

static const rn_kernel_def_t rows[] = {
    ROW("DenseCountSparseOutput", dense_count),
    ROW("SparseCountSparseOutput", sparse_count),
    ROW("RaggedCountSparseOutput", ragged_count),
};
RN_KERNEL_FAMILY(cpu_sparse_count, rows);
