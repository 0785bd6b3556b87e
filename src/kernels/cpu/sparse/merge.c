// Two sparse tensors combined entry by entry: sums, maxima and minima; and the gradients of
// SparseAdd and SparseFillEmptyRows. Indices are sorted, as everywhere in stock.
#include <math.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/tensor.h"
#include "kernels/kernel_rows.h"

typedef struct merge_part_t {
  const int64_t* indices;  // [count, rank]
  const rn_tensor_t* values;
  const rn_tensor_t* shape;
  int64_t count;
} merge_part_t;

// INVALID_ARGUMENT unless both shapes, which the kernel has checked to be vectors, are equal.
static rn_status_t check_shapes(const rn_tensor_t* a, const rn_tensor_t* b) {
  for (int64_t d = 0; d < a->count; ++d)
    if (rn_int_at(a, d) != rn_int_at(b, d))
      return rn_invalid_argument(
          "Operands' shapes do not match: got %lld and %lld for dimension %lld",
          (long long)rn_int_at(a, d), (long long)rn_int_at(b, d), (long long)d);
  return RN_OK;
}

static merge_part_t take_part(rn_kernel_ctx_t* ctx, int first) {
  return (merge_part_t){RN_DATA(rn_in(ctx, first), const int64_t), rn_in(ctx, first + 1),
                        rn_in(ctx, first + 2), rn_in(ctx, first + 1)->count};
}

// Reads the inputs of a sum.
static rn_status_t read_added(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *a_values = rn_in(ctx, 1), *a_shape = rn_in(ctx, 2);
  const rn_tensor_t *b = rn_in(ctx, 3), *b_values = rn_in(ctx, 4), *b_shape = rn_in(ctx, 5);
  if (a->rank != 2 || b->rank != 2)
    return rn_invalid_argument("Input indices should be matrices but received shapes: %s and %s",
                               rn_text_of(a).text, rn_text_of(b).text);
  if (a_values->rank != 1 || b_values->rank != 1)
    return rn_invalid_argument("Input values should be vectors but received shapes: %s and %s",
                               rn_text_of(a_values).text, rn_text_of(b_values).text);
  if (a_values->count != rn_tensor_dim(a, 0) || b_values->count != rn_tensor_dim(b, 0))
    return rn_invalid_argument("Expected %lld and %lld non-empty input values, got %lld and %lld",
                               (long long)rn_tensor_dim(a, 0), (long long)rn_tensor_dim(b, 0),
                               (long long)a_values->count, (long long)b_values->count);
  if (a_shape->rank != 1 || b_shape->rank != 1)
    return rn_invalid_argument("Input shapes should be a vector but received shapes %s and %s",
                               rn_text_of(a_shape).text, rn_text_of(b_shape).text);
  if (rn_tensor_dim(a, 1) != rn_tensor_dim(b, 1))
    return rn_invalid_argument("Input indices must have the same dimension, got %lld and %lld",
                               (long long)rn_tensor_dim(a, 1), (long long)rn_tensor_dim(b, 1));
  if (rn_tensor_dim(a, 1) != a_shape->count)
    return rn_invalid_argument(
        "Second dimension of a_indices and length of a_shape must match, got %lld and %lld",
        (long long)rn_tensor_dim(a, 1), (long long)a_shape->count);
  if (a_shape->count != b_shape->count)
    return rn_invalid_argument("Operands do not have the same ranks; got shapes: %s and %s",
                               rn_text_of(a_shape).text, rn_text_of(b_shape).text);
  return check_shapes(a_shape, b_shape);
}

// Reads the inputs of a comparison.
static rn_status_t read_compared(rn_kernel_ctx_t* ctx) {
  rn_sparse_t a, b;
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 0, &a));
  RN_RETURN_IF_ERROR(rn_sparse_check_bounds(&a));
  RN_RETURN_IF_ERROR(rn_sparse_read_parts(ctx, 3, &b));
  RN_RETURN_IF_ERROR(rn_sparse_check_bounds(&b));
  if (a.rank != b.rank)
    return rn_invalid_argument("Operands do not have the same ranks; got shapes: %s and %s",
                               rn_numbers_text(a.shape, a.rank, " ").text,
                               rn_numbers_text(b.shape, b.rank, " ").text);
  return check_shapes(rn_in(ctx, 2), rn_in(ctx, 5));
}

// The magnitude of a number; a double holds every one but those of int64.
static inline double size_of(rn_dtype_t dtype, const void* value) {
  switch (dtype) {
    case RN_FLOAT:
      return fabsf(*(const float*)value);
    case RN_DOUBLE:
      return fabs(*(const double*)value);
    case RN_COMPLEX64:
      return hypotf(((const float*)value)[0], ((const float*)value)[1]);
    case RN_COMPLEX128:
      return hypot(((const double*)value)[0], ((const double*)value)[1]);
    case RN_INT8:
      return fabs((double)*(const int8_t*)value);
    case RN_INT16:
      return fabs((double)*(const int16_t*)value);
    default:
      return fabs((double)*(const int32_t*)value);
  }
}

// What sums must be at least; NaN never is. Conversions of a long double take long, so there is
// one.
typedef struct merge_least_t {
  long double wide;
  double narrow;
} merge_least_t;

static inline bool is_enough(rn_dtype_t dtype, const merge_least_t* least, const void* value) {
  if (dtype == RN_INT64) return least->wide <= fabsl((long double)*(const int64_t*)value);
  return least->narrow <= size_of(dtype, value);
}

// A threshold below 0 keeps everything, so the sign matters, not only the magnitude.
static long double threshold_of(const rn_tensor_t* tensor) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return *RN_DATA(tensor, const float);
    case RN_DOUBLE:
      return *RN_DATA(tensor, const double);
    default:
      return (long double)rn_int_at(tensor, 0);
  }
}

// The union of two lists: per entry its index in a and in b, or -1.
typedef struct merge_pair_t {
  int64_t a, b;
} merge_pair_t;

static int64_t unite(const merge_part_t* a, const merge_part_t* b, int32_t rank,
                     merge_pair_t* out) {
  int64_t i = 0, j = 0, n = 0;
  while (i < a->count && j < b->count) {
    const int order = rn_sparse_compare(a->indices + i * rank, b->indices + j * rank, rank);
    if (order < 0)
      out[n++] = (merge_pair_t){i++, -1};
    else if (order > 0)
      out[n++] = (merge_pair_t){-1, j++};
    else
      out[n++] = (merge_pair_t){i++, j++};
  }
  while (i < a->count) out[n++] = (merge_pair_t){i++, -1};
  while (j < b->count) out[n++] = (merge_pair_t){-1, j++};
  return n;
}

// The index of |pair| in a, or else in b: by a table, because a branch would be unpredictable.
static inline const int64_t* index_of(const merge_part_t* a, const merge_part_t* b,
                                      merge_pair_t pair, int32_t rank) {
  const int64_t* const indices[2] = {a->indices, b->indices};
  const int64_t places[2] = {pair.a, pair.b};
  return indices[pair.a < 0] + places[pair.a < 0] * rank;
}

// The combined value of |pair|; a missing one counts as 0 if |takes_zero|, otherwise the other is
// copied.
static inline void combine_pair(const merge_part_t* a, const merge_part_t* b, merge_pair_t pair,
                                rn_combine_fn_t combine, bool takes_zero, size_t size, char* out) {
  static const char zero[16] = {0};
  const char* const values[2] = {a->values->data, b->values->data};
  const int64_t places[2] = {pair.a, pair.b};
  if ((pair.a | pair.b) >= 0) {
    combine(values[0] + (size_t)pair.a * size, values[1] + (size_t)pair.b * size, 1, out, 1);
    return;
  }
  const char* value = values[pair.a < 0] + (size_t)places[pair.a < 0] * size;
  if (takes_zero)
    combine(pair.a < 0 ? zero : value, pair.a < 0 ? value : zero, 1, out, 1);
  else
    rn_move_bytes(out, value, size);
}

// Adds, or compares with 0 for missing values; drops sums below |threshold| (NULL if none).
static rn_status_t merge(rn_kernel_ctx_t* ctx, rn_arena_t* arena, rn_combine_op_t op,
                         const rn_tensor_t* threshold) {
  rn_tensor_t *indices = NULL, *values = NULL;
  merge_part_t a = take_part(ctx, 0), b = take_part(ctx, 3);
  merge_pair_t* pairs = NULL;
  char* results = NULL;
  int32_t rank = (int32_t)a.shape->count;
  int64_t kept = 0;
  rn_dtype_t dtype = a.values->dtype;
  size_t size = rn_dtype_size(dtype), room = (size_t)a.count + (size_t)b.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &pairs));
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, room, size, (void**)&results));
  int64_t count = unite(&a, &b, rank, pairs);
  rn_combine_fn_t combine = rn_combine(op, dtype);
  const long double wide = threshold ? threshold_of(threshold) : 0;
  const merge_least_t least = {wide, (double)wide};
  for (int64_t n = 0; n < count; ++n) {
    char* result = results + (size_t)kept * size;
    combine_pair(&a, &b, pairs[n], combine, op != RN_COMBINE_ADD, size, result);
    // As in stock, only sums are compared with the threshold; NaN is always dropped.
    if (threshold && pairs[n].a >= 0 && pairs[n].b >= 0 && !is_enough(dtype, &least, result))
      continue;
    pairs[kept++] = pairs[n];
  }
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){kept, rank}}, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &kept}, &values));
  for (int64_t n = 0; n < kept && rank; ++n)
    rn_move_bytes(RN_DATA(indices, int64_t) + n * rank, index_of(&a, &b, pairs[n], rank),
                  (size_t)rank * sizeof(int64_t));
  if (kept) memcpy(values->data, results, (size_t)kept * size);
  return RN_OK;
}

static rn_status_t with_arena(rn_kernel_ctx_t* ctx, rn_combine_op_t op,
                              const rn_tensor_t* threshold) {
  rn_arena_t arena;
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = merge(ctx, &arena, op, threshold);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t sparse_add(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *threshold = rn_in(ctx, 6), *shape = rn_in(ctx, 2);
  rn_tensor_t* out = NULL;
  if (threshold->rank != 0)
    return rn_invalid_argument("The magnitude threshold must be a scalar: got shape %s",
                               rn_text_of(threshold).text);
  RN_RETURN_IF_ERROR(read_added(ctx));
  RN_RETURN_IF_ERROR(with_arena(ctx, RN_COMBINE_ADD, threshold));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, rn_tensor_shape(shape), &out));
  if (shape->count) memcpy(out->data, shape->data, rn_tensor_bytes(shape));
  return RN_OK;
}
static rn_status_t sparse_maximum(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(read_compared(ctx));
  return with_arena(ctx, RN_COMBINE_MAX, NULL);
}
static rn_status_t sparse_minimum(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(read_compared(ctx));
  return with_arena(ctx, RN_COMBINE_MIN, NULL);
}

// The gradient of a sum goes to the entries that it was made of; dropped ones get 0.
static rn_status_t add_grad_of(rn_kernel_ctx_t* ctx, int input, int output) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *own = rn_in(ctx, input), *sum = rn_in(ctx, 3);
  int32_t rank = (int32_t)rn_tensor_dim(own, 1);
  int64_t count = rn_tensor_dim(own, 0), k = 0;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, output, (rn_shape_t){1, &count}, &out));
  rn_move_zero(rn_ctx_pool(ctx), out->dtype, out->data, count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* index = RN_DATA(own, const int64_t) + i * rank;
    while (k < dy->count &&
           rn_sparse_compare(RN_DATA(sum, const int64_t) + k * rank, index, rank) < 0)
      ++k;
    if (k < dy->count &&
        rn_sparse_compare(RN_DATA(sum, const int64_t) + k * rank, index, rank) == 0)
      memcpy(rn_element(out, i), rn_element(dy, k), rn_dtype_size(dy->dtype));
  }
  return RN_OK;
}

static rn_status_t sparse_add_grad(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *a = rn_in(ctx, 1), *b = rn_in(ctx, 2);
  const rn_tensor_t* sum = rn_in(ctx, 3);
  if (a->rank != 2 || b->rank != 2 || sum->rank != 2)
    return rn_invalid_argument(
        "Input indices should be matrices but received shapes: %s and %s and %s",
        rn_text_of(a).text, rn_text_of(b).text, rn_text_of(sum).text);
  if (dy->rank != 1)
    return rn_invalid_argument("Input backprop_val_grad should be a vector but received shape: %s",
                               rn_text_of(dy).text);
  int64_t a_rank = rn_tensor_dim(a, 1), b_rank = rn_tensor_dim(b, 1);
  int64_t rank = rn_tensor_dim(sum, 1);
  if (a_rank != b_rank || b_rank != rank || rank > INT32_MAX)
    return rn_invalid_argument(
        "The densified operands should have the same ndims; for A, B, sum got: %lld%lld%lld",
        (long long)a_rank, (long long)b_rank, (long long)rank);
  if (dy->count != rn_tensor_dim(sum, 0))
    return rn_invalid_argument(
        "# elements of backprop_val_grad and # rows of sum_indices should "
        "match (#nnz of sum): got %lld and %lld",
        (long long)dy->count, (long long)rn_tensor_dim(sum, 0));
  RN_RETURN_IF_ERROR(add_grad_of(ctx, 1, 0));
  return add_grad_of(ctx, 2, 1);
}

#define ADDED (RN_TYPES_INTS | RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE))
#define ROW(name, types_, function) \
  { .op = name, .device = "CPU", .types = {{"T", types_}}, .compute = function }

static const rn_kernel_def_t rows[] = {
    {.op = "SparseAdd",
     .device = "CPU",
     .types = {{"T", ADDED}, {"Treal", RN_TYPES_INTS | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = sparse_add},
    ROW("SparseAddGrad", ADDED, sparse_add_grad),
    ROW("SparseSparseMaximum", RN_TYPES_REAL, sparse_maximum),
    ROW("SparseSparseMinimum", RN_TYPES_REAL, sparse_minimum),
};
RN_KERNEL_FAMILY(cpu_sparse_merge, rows);
