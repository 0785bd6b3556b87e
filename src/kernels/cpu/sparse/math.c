// Arithmetic on sparse tensors: products and sums with dense ones, dense reductions. The loops of
// combine.h compute, so all types share this code.
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/dense.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/cpu/wide_rows.h"
#include "kernels/kernel_rows.h"

// Indices [count, rank], int32 or int64, and values.
typedef struct math_sparse_t {
  const rn_tensor_t *indices, *values;
  int64_t count;
  int rank;
  int64_t shape[RN_MAX_RANK];
} math_sparse_t;

// The parts unchanged, after checking that they fit together.
static rn_status_t take_sparse(rn_kernel_ctx_t* ctx, math_sparse_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  if (shape->count > RN_MAX_RANK)
    return rn_invalid_argument("Too many dimensions in tensor: %lld", (long long)shape->count);
  *out = (math_sparse_t){
      .indices = indices, .values = values, .count = values->count, .rank = (int)shape->count};
  for (int d = 0; d < out->rank; ++d) out->shape[d] = rn_int_at(shape, d);
  return RN_OK;
}

static int64_t index_at(const math_sparse_t* sparse, int64_t i, int d) {
  return rn_int_at(sparse->indices, i * sparse->rank + d);
}

// Finds the first entry and dimension whose index is out of bounds; false if there is none.
static bool find_outside(const math_sparse_t* sparse, int64_t* out_i, int* out_d) {
  for (int64_t i = 0; i < sparse->count; ++i)
    for (int d = 0; d < sparse->rank; ++d)
      if ((uint64_t)index_at(sparse, i, d) >= (uint64_t)sparse->shape[d]) {
        *out_i = i;
        *out_d = d;
        return true;
      }
  return false;
}

// A sparse tensor added to a dense one.

static rn_status_t read_for_add(rn_kernel_ctx_t* ctx, const rn_tensor_t* b, math_sparse_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_sparse_check_named(ctx, 0, "a"));
  if (rn_tensor_dim(indices, 0) != values->count)
    return rn_invalid_argument("Dimensions %lld and %lld are not compatible",
                               (long long)rn_tensor_dim(indices, 0), (long long)values->count);
  if (rn_tensor_dim(indices, 1) != shape->count)
    return rn_invalid_argument("Dimensions %lld and %lld are not compatible",
                               (long long)rn_tensor_dim(indices, 1), (long long)shape->count);
  if (shape->count != b->rank)
    return rn_invalid_argument("Two operands have different ranks; received: %lld and %d",
                               (long long)shape->count, b->rank);
  for (int d = 0; d < b->rank; ++d)
    if (rn_int_at(shape, d) != rn_tensor_dim(b, d))
      return rn_invalid_argument(
          "Dimension %d does not equal (no broadcasting is supported): sparse side %lld vs dense "
          "side %lld",
          d, (long long)rn_int_at(shape, d), (long long)rn_tensor_dim(b, d));
  return take_sparse(ctx, out);
}

static rn_status_t sparse_tensor_dense_add(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* b = rn_in(ctx, 3);
  rn_combine_fn_t add = rn_combine(RN_COMBINE_ADD, b->dtype);
  rn_tensor_t* out = NULL;
  int64_t outside;
  int dimension;
  math_sparse_t a;
  RN_RETURN_IF_ERROR(read_for_add(ctx, b, &a));
  if (find_outside(&a, &outside, &dimension))
    return rn_invalid_argument(
        "Sparse tensor has an invalid index on dimension %d: a_indices(%lld,%d) = %lld, dense "
        "tensor shape: %s",
        dimension, (long long)outside, dimension, (long long)index_at(&a, outside, dimension),
        rn_numbers_text(a.shape, a.rank, " ").text);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(b), &out));
  if (b->count) memcpy(out->data, b->data, rn_tensor_bytes(b));
  for (int64_t i = 0; i < a.count; ++i) {
    int64_t place = 0;
    for (int d = 0; d < a.rank; ++d) place = place * a.shape[d] + index_at(&a, i, d);
    add(rn_element(out, place), rn_element(a.values, i), 1, rn_element(out, place), 1);
  }
  return RN_OK;
}

// Values combined with the dense ones at their positions; the dense tensor is broadcast.

static rn_status_t dense_strides(const math_sparse_t* a, const rn_tensor_t* dense,
                                 int64_t* strides) {
  int skipped = a->rank - dense->rank;
  int64_t stride = 1;
  bool fits = skipped >= 0;
  for (int d = a->rank - 1; d >= 0 && fits; --d) {
    int64_t size = d < skipped ? 1 : rn_tensor_dim(dense, d - skipped);
    fits = size == 1 || size == a->shape[d];
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (fits) return RN_OK;
  return rn_invalid_argument(
      "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: %s vs. "
      "%s",
      rn_shape_text((rn_shape_t){(int16_t)a->rank, a->shape}).text, rn_text_of(dense).text);
}

static rn_status_t read_for_cwise(rn_kernel_ctx_t* ctx, math_sparse_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_sparse_check_named(ctx, 0, "sp"));
  if (values->count != rn_tensor_dim(indices, 0))
    return rn_invalid_argument(
        "The first dimension of values and indices should match. (%lld vs. %lld)",
        (long long)values->count, (long long)rn_tensor_dim(indices, 0));
  if (shape->count != rn_tensor_dim(indices, 1))
    return rn_invalid_argument(
        "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices "
        "shape: %s",
        (long long)shape->count, rn_text_of(indices).text);
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(shape));
  return take_sparse(ctx, out);
}

static rn_status_t cwise(rn_kernel_ctx_t* ctx, rn_combine_op_t op) {
  const rn_tensor_t* dense = rn_in(ctx, 3);
  size_t size = rn_dtype_size(dense->dtype);
  int64_t strides[RN_MAX_RANK], outside;
  rn_tensor_t* out = NULL;
  int dimension;
  math_sparse_t a;
  RN_RETURN_IF_ERROR(read_for_cwise(ctx, &a));
  RN_RETURN_IF_ERROR(dense_strides(&a, dense, strides));
  if (find_outside(&a, &outside, &dimension))
    return rn_invalid_argument(
        "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &a.count}, &out));
  char* to = out->data;
  const char* from = dense->data;
  for (int64_t i = 0; i < a.count; ++i, to += size) {
    int64_t place = 0;
    for (int d = 0; d < a.rank; ++d) place += strides[d] * index_at(&a, i, d);
    rn_move_bytes(to, from + (size_t)place * size, size);
  }
  if (op == RN_COMBINE_DIV && rn_has_zero(out))
    return rn_invalid_argument(
        "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero ");
  if (a.count) rn_combine(op, dense->dtype)(a.values->data, out->data, 1, out->data, a.count);
  return RN_OK;
}
static rn_status_t cwise_add(rn_kernel_ctx_t* ctx) { return cwise(ctx, RN_COMBINE_ADD); }
static rn_status_t cwise_mul(rn_kernel_ctx_t* ctx) { return cwise(ctx, RN_COMBINE_MUL); }
static rn_status_t cwise_div(rn_kernel_ctx_t* ctx) { return cwise(ctx, RN_COMBINE_DIV); }

// Sparse matrix times dense matrix: a row of the product is a sum of rows of the dense one, each
// times a value.

rn_status_t rn_sparse_matmul_init(const rn_kernel_init_t* init, void* self) {
  rn_sparse_matmul_t* product = self;
  product->adjoint_a = rn_init_bool(init, "adjoint_a");
  product->adjoint_b = rn_init_bool(init, "adjoint_b");
  return RN_OK;
}

static void conjugate(rn_dtype_t dtype, void* data, int64_t n) {
  if (dtype == RN_COMPLEX64)
    for (int64_t i = 0; i < n; ++i) ((float*)data)[2 * i + 1] = -((float*)data)[2 * i + 1];
  if (dtype == RN_COMPLEX128)
    for (int64_t i = 0; i < n; ++i) ((double*)data)[2 * i + 1] = -((double*)data)[2 * i + 1];
}

// |*out| = the adjoint of the matrix |b|.
static rn_status_t adjoint_of(rn_kernel_ctx_t* ctx, const rn_tensor_t* b, rn_tensor_t* out) {
  int64_t rows = rn_tensor_dim(b, 0), columns = rn_tensor_dim(b, 1);
  rn_move_t move;
  RN_RETURN_IF_ERROR(rn_temp(ctx, b->dtype, (rn_shape_t){2, (int64_t[]){columns, rows}}, out));
  rn_move_begin(&move);
  rn_move_add(&move, columns, 1, rows);
  rn_move_add(&move, rows, columns, 1);
  RN_RETURN_IF_ERROR(rn_move_run(&move, rn_ctx_pool(ctx), b->dtype, b->data, out->data));
  conjugate(b->dtype, out->data, b->count);
  return RN_OK;
}

// Multiplies and accumulates 16-bit floats in float: |sums| is the product before rounding, |rows|
// holds a row of |b| and one of products.
static void multiply_into(const math_sparse_t* a, const rn_tensor_t* b, bool adjoint_a,
                          rn_tensor_t* rows, rn_tensor_t* sums) {
  const rn_dtype_t wide = sums->dtype;
  rn_combine_fn_t mul = rn_combine(RN_COMBINE_MUL, wide), add = rn_combine(RN_COMBINE_ADD, wide);
  int64_t columns = rn_tensor_dim(b, 1);
  rn_move_zero(NULL, wide, sums->data, sums->count);
  for (int64_t i = 0; i < a->count; ++i) {
    int64_t r = index_at(a, i, adjoint_a ? 1 : 0), k = index_at(a, i, adjoint_a ? 0 : 1);
    _Alignas(16) char value[16], widened[16];
    memcpy(value, rn_element(a->values, i), rn_dtype_size(b->dtype));
    if (adjoint_a) conjugate(b->dtype, value, 1);
    const void* from = rn_wide_row(b->dtype, rn_element(b, k * columns), rows->data, columns);
    mul(from, rn_wide_row(b->dtype, value, widened, 1), 0, rn_element(rows, columns), columns);
    add(rn_element(sums, r * columns), rn_element(rows, columns), 1, rn_element(sums, r * columns),
        columns);
  }
}

static rn_status_t multiply(rn_kernel_ctx_t* ctx, const math_sparse_t* a, const rn_tensor_t* b,
                            bool adjoint_a) {
  int64_t columns = rn_tensor_dim(b, 1), room = 2 * columns, m = a->shape[adjoint_a ? 1 : 0];
  const rn_dtype_t wide = rn_wide_dtype(b->dtype);
  rn_tensor_t *out = NULL, rows = {0}, sums = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){m, columns}}, &out));
  if (out->count == 0) return RN_OK;
  rn_status_t status = rn_temp(ctx, wide, (rn_shape_t){1, &room}, &rows);
  if (rn_ok(status) && wide != b->dtype) status = rn_temp(ctx, wide, rn_tensor_shape(out), &sums);
  if (rn_ok(status)) multiply_into(a, b, adjoint_a, &rows, wide == b->dtype ? out : &sums);
  if (rn_ok(status) && wide != b->dtype) rn_narrow_row(b->dtype, sums.data, out->data, out->count);
  rn_tensor_clear(&rows);
  rn_tensor_clear(&sums);
  return status;
}

static rn_status_t read_for_product(rn_kernel_ctx_t* ctx, math_sparse_t* out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  if (rn_in(ctx, 3)->rank != 2) return rn_invalid_argument("Tensor 'b' is not a matrix");
  if (shape->rank != 1) return rn_invalid_argument("Tensor 'a_shape' is not a vector");
  if (shape->count != 2) return rn_invalid_argument("Tensor 'a_shape' must have 2 elements");
  if (values->rank != 1) return rn_invalid_argument("Tensor 'a_values' is not a vector");
  if (indices->rank != 2) return rn_invalid_argument("Tensor 'a_indices' is not a matrix");
  if (rn_tensor_dim(indices, 0) != values->count)
    return rn_invalid_argument(
        "Number of rows of a_indices does not match number of entries in a_values");
  if (rn_tensor_dim(indices, 1) != shape->count)
    return rn_invalid_argument(
        "Number of columns of a_indices does not match number of entries in a_shape");
  return take_sparse(ctx, out);
}

// INVALID_ARGUMENT unless every index is within the matrix; the inner one, k, is checked first.
static rn_status_t check_places(const math_sparse_t* a, bool adjoint_a) {
  for (int64_t i = 0; i < a->count; ++i)
    for (int turn = 0; turn < 2; ++turn) {
      int d = (turn == 0) != adjoint_a;
      int64_t at = index_at(a, i, d);
      if (at < 0 || at >= a->shape[d])
        return rn_invalid_argument("%s (%lld) from index[%lld,%d] out of bounds (>=%lld)",
                                   turn ? "m" : "k", (long long)at, (long long)i, d,
                                   (long long)a->shape[d]);
    }
  return RN_OK;
}

rn_status_t rn_sparse_matmul_sizes(rn_kernel_ctx_t* ctx, int64_t* m, int64_t* n, int64_t* k) {
  const rn_sparse_matmul_t* product = ctx->state;
  const rn_tensor_t* b = rn_in(ctx, 3);
  math_sparse_t a;
  RN_RETURN_IF_ERROR(read_for_product(ctx, &a));
  *m = a.shape[product->adjoint_a ? 1 : 0];
  *n = rn_tensor_dim(b, product->adjoint_b ? 0 : 1);
  *k = a.shape[product->adjoint_a ? 0 : 1];
  int64_t inner_b = rn_tensor_dim(b, product->adjoint_b ? 1 : 0);
  if (*k != inner_b)
    return rn_invalid_argument(
        "Cannot multiply A and B because inner dimension does not match: "
        "%lld vs. %lld.  Did you forget a transpose?  Dimensions of A: "
        "[%lld, %lld).  Dimensions of B: %s",
        (long long)*k, (long long)inner_b, (long long)a.shape[0], (long long)a.shape[1],
        rn_text_of(b).text);
  return rn_sparse_check_sizes(rn_in(ctx, 2));
}

static rn_status_t sparse_tensor_dense_mat_mul(rn_kernel_ctx_t* ctx) {
  const rn_sparse_matmul_t* product = ctx->state;
  const rn_tensor_t* b = rn_in(ctx, 3);
  rn_tensor_t turned = {0};
  math_sparse_t a;
  int64_t m, n, k;
  RN_RETURN_IF_ERROR(rn_sparse_matmul_sizes(ctx, &m, &n, &k));
  RN_RETURN_IF_ERROR(take_sparse(ctx, &a));
  RN_RETURN_IF_ERROR(check_places(&a, product->adjoint_a));
  rn_status_t status = product->adjoint_b ? adjoint_of(ctx, b, &turned) : RN_OK;
  if (rn_ok(status))
    status = multiply(ctx, &a, product->adjoint_b ? &turned : b, product->adjoint_a);
  rn_tensor_clear(&turned);
  return status;
}

// Sums and maxima over dimensions, with a dense result. Elements without values are 0.

typedef struct sparse_math_reduce_t {
  bool keeps_dims;
} sparse_math_reduce_t;

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* self) {
  ((sparse_math_reduce_t*)self)->keeps_dims = rn_init_bool(init, "keep_dims");
  return RN_OK;
}

// The output shape, and the stride of each dimension in it: 0 if reduced.
static int reduced_shape(rn_kernel_ctx_t* ctx, const rn_sparse_t* in, int64_t* dims,
                         int64_t* strides) {
  const rn_tensor_t* axes = rn_in(ctx, 3);
  bool keeps = ((const sparse_math_reduce_t*)ctx->state)->keeps_dims,
       is_reduced[RN_MAX_RANK] = {false};
  for (int64_t i = 0; i < axes->count; ++i) {
    int64_t axis = rn_int_at(axes, i);
    is_reduced[axis < 0 ? axis + in->rank : axis] = true;
  }
  int64_t stride = 1;
  int rank = 0;
  for (int d = in->rank - 1; d >= 0; --d) {
    strides[d] = is_reduced[d] ? 0 : stride;
    if (!is_reduced[d]) stride *= in->shape[d];
  }
  for (int d = 0; d < in->rank; ++d)
    if (keeps || !is_reduced[d]) dims[rank++] = is_reduced[d] ? 1 : in->shape[d];
  return rank;
}

// Indices of reduced dimensions are not checked; the others may be any valid position.
static rn_status_t reduce_into(const rn_sparse_t* in, const int64_t* strides, rn_combine_op_t op,
                               rn_tensor_t* out, bool* seen) {
  rn_combine_fn_t combine = rn_combine(op, out->dtype);
  for (int64_t i = 0; i < in->count; ++i) {
    uint64_t sum = 0;
    for (int d = 0; d < in->rank; ++d)
      sum += (uint64_t)strides[d] * (uint64_t)rn_sparse_index(in, i)[d];
    int64_t place = (int64_t)sum;
    if (place < 0 || place >= out->count)
      return rn_internal("Obtained a write index of %lld which is outside of bounds of [0, %lld)",
                         (long long)place, (long long)out->count);
    char* to = rn_element(out, place);
    if (seen[place])
      combine(to, rn_element(in->values, i), 1, to, 1);
    else
      memcpy(to, rn_element(in->values, i), rn_dtype_size(out->dtype));
    seen[place] = true;
  }
  return RN_OK;
}

static rn_status_t reduce(rn_kernel_ctx_t* ctx, rn_combine_op_t op) {
  int64_t dims[RN_MAX_RANK], strides[RN_MAX_RANK];
  rn_tensor_t *out = NULL, seen = {0};
  rn_sparse_t in;
  RN_RETURN_IF_ERROR(rn_sparse_check_reduced(rn_in(ctx, 2), rn_in(ctx, 3)));
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, 0, &in));
  int rank = reduced_shape(ctx, &in, dims, strides);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){(int16_t)rank, dims}, &out));
  rn_move_zero(rn_ctx_pool(ctx), out->dtype, out->data, out->count);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BOOL, (rn_shape_t){1, &out->count}, &seen));
  rn_move_zero(rn_ctx_pool(ctx), RN_BOOL, seen.data, seen.count);
  rn_status_t status = reduce_into(&in, strides, op, out, RN_DATA(&seen, bool));
  rn_tensor_clear(&seen);
  return status;
}
static rn_status_t reduce_sum(rn_kernel_ctx_t* ctx) { return reduce(ctx, RN_COMBINE_ADD); }
static rn_status_t reduce_max(rn_kernel_ctx_t* ctx) { return reduce(ctx, RN_COMBINE_MAX); }

#define ROW(name, types_, ...) \
  { .op = name, .device = "CPU", .types = {{"T", types_}}, __VA_ARGS__ }

static const rn_kernel_def_t rows[] = {
    ROW("SparseTensorDenseAdd", RN_TYPES_NUMBERS, .compute = sparse_tensor_dense_add),
    ROW("SparseDenseCwiseAdd", RN_TYPES_REAL, .compute = cwise_add),
    ROW("SparseDenseCwiseMul", RN_TYPES_REAL, .compute = cwise_mul),
    ROW("SparseDenseCwiseDiv", RN_TYPES_REAL, .compute = cwise_div),
    ROW("SparseTensorDenseMatMul", RN_TYPES_FLOATS | RN_TYPES_COMPLEX | RN_T(INT32),
        .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_sparse_matmul_t),
        .init = rn_sparse_matmul_init, .compute = sparse_tensor_dense_mat_mul),
    ROW("SparseReduceSum", RN_TYPES_NUMBERS, .state_size = sizeof(sparse_math_reduce_t),
        .init = reduce_init, .compute = reduce_sum),
    ROW("SparseReduceMax", RN_TYPES_REAL, .state_size = sizeof(sparse_math_reduce_t),
        .init = reduce_init, .compute = reduce_max),
};
RN_KERNEL_FAMILY(cpu_sparse_math, rows);
