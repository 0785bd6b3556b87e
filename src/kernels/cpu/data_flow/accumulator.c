// Conditional accumulators: gradients of one training step add up until enough have arrived to be
// taken. Stale gradients, of an earlier step, are dropped. Dense and sparse.
#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

#define ACCUMULATOR_TYPE "Accumulator"

typedef struct accumulator_rows_t {
  rn_tensor_t sum;      // unset until the first gradient
  rn_tensor_t indices;  // sparse: row number of each row of |sum|, int64
  rn_tensor_t counts;   // sparse: gradients per row, int64
} accumulator_rows_t;

typedef struct accumulator_t {
  rn_resource_t resource;
  rn_arena_t arena;  // holds the shape
  rn_dtype_t dtype;
  rn_shape_t shape;  // as declared; may be unknown
  bool is_mean, is_sparse;
  rn_parking_t parking;  // for calls that wait for gradients; its mutex guards what follows
  int64_t step;
  int64_t count;  // gradients added to the sum
  accumulator_rows_t rows;
} accumulator_t;

static void clear_rows(accumulator_rows_t* rows) {
  rn_tensor_clear(&rows->sum);
  rn_tensor_clear(&rows->indices);
  rn_tensor_clear(&rows->counts);
}

static void clear_sum(accumulator_t* accumulator) {
  clear_rows(&accumulator->rows);
  accumulator->count = 0;
}

static void accumulator_destroy(rn_object_t* object) {
  accumulator_t* accumulator = (accumulator_t*)object;
  rn_allocator_t allocator = accumulator->parking.allocator;
  clear_sum(accumulator);
  rn_parking_destroy(&accumulator->parking);
  rn_arena_clear(&accumulator->arena);
  RN_FREE(allocator, accumulator);
}

static rn_status_t make_accumulator(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  const rn_kernel_init_t* init = arg;
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &accumulator));
  accumulator->resource =
      (rn_resource_t){{.refs = 1, .destroy = accumulator_destroy}, ACCUMULATOR_TYPE};
  accumulator->dtype = rn_init_type(init, "dtype");
  accumulator->is_mean = rn_str_is(rn_init_string(init, "reduction_type"), "MEAN");
  accumulator->is_sparse = strncmp(init->op->name, "Sparse", 6) == 0;
  rn_parking_init(&accumulator->parking, init->allocator);
  accumulator->parking.is_in_order = true;
  rn_arena_init(&accumulator->arena, init->allocator);
  rn_status_t status =
      rn_shape_copy(&accumulator->arena, rn_init_attr(init, "shape")->shape, &accumulator->shape);
  if (!rn_ok(status)) {
    rn_object_release(&accumulator->resource.object);
    return status;
  }
  *out = &accumulator->resource;
  return RN_OK;
}

static rn_status_t make_init(const rn_kernel_init_t* init, void* state) {
  rn_handle_state_t* holder = state;
  RN_RETURN_IF_ERROR(rn_handle_state_init(holder, init, ACCUMULATOR_TYPE, make_accumulator,
                                          (void*)(uintptr_t)init));
  const accumulator_t* accumulator = (const accumulator_t*)holder->resource;
  if (accumulator->dtype != rn_init_type(init, "dtype") ||
      !rn_shape_eq(accumulator->shape, rn_init_attr(init, "shape")->shape))
    return rn_invalid_argument(
        "Shared conditional accumulator has another type or shape than the node '%.*s' asks for",
        RN_STR_ARGS(init->node));
  return RN_OK;
}

static rn_status_t accumulator_of(const rn_kernel_ctx_t* ctx, bool is_sparse, accumulator_t** out) {
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, ACCUMULATOR_TYPE, (rn_resource_t**)out));
  if ((*out)->is_sparse == is_sparse) return RN_OK;
  rn_object_release(&(*out)->resource.object);
  return rn_invalid_argument("The accumulator is %s", is_sparse ? "dense" : "sparse");
}

static void add_to(rn_dtype_t dtype, void* sum, const void* value, int64_t n) {
  rn_vector_run(RN_VECTOR_ADD_V2, dtype, sum, 1, value, 1, sum, n);
}

static void divide(rn_dtype_t dtype, void* sum, int64_t by, int64_t n) {
  union {
    float f32;
    double f64;
    uint16_t f16;
  } divisor;
  if (dtype == RN_FLOAT)
    divisor.f32 = (float)by;
  else if (dtype == RN_DOUBLE)
    divisor.f64 = (double)by;
  else
    divisor.f16 = rn_float_to_half((float)by);
  rn_vector_run(RN_VECTOR_REAL_DIV, dtype, sum, 1, &divisor, 0, sum, n);
}

// The mean in place of the sum, which nothing else holds.
static void make_mean_locked(accumulator_t* accumulator) {
  rn_tensor_t* sum = &accumulator->rows.sum;
  if (!accumulator->is_sparse) {
    divide(accumulator->dtype, sum->data, accumulator->count, sum->count);
  } else if (sum->count) {
    int64_t width = sum->count / rn_tensor_dim(sum, 0);
    for (int64_t i = 0; i < accumulator->rows.counts.count; ++i)
      divide(accumulator->dtype,
             RN_DATA(sum, char) + (size_t)(i * width) * rn_dtype_size(sum->dtype),
             RN_DATA(&accumulator->rows.counts, int64_t)[i], width);
  }
}

// The dense shape: the number of rows that the accumulator declares, or -1; then the shape of a
// row. The shapes that gradients came with are not kept.
static rn_status_t output_shape(rn_kernel_ctx_t* ctx, const accumulator_t* accumulator) {
  rn_shape_t shape = accumulator->shape;
  int64_t rank = accumulator->rows.sum.rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &rank}, &out));
  for (int64_t d = 1; d < rank; ++d)
    RN_DATA(out, int64_t)[d] = rn_tensor_dim(&accumulator->rows.sum, (int)d);
  if (rank > 0)
    RN_DATA(out, int64_t)[0] = rn_shape_has_rank(shape) && shape.rank > 0 ? shape.dims[0] : -1;
  return RN_OK;
}

static bool try_take(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  accumulator_t* accumulator = (accumulator_t*)owner;
  if (accumulator->count < rn_int_at(rn_in(ctx, 1), 0)) return false;
  if (accumulator->is_mean) make_mean_locked(accumulator);
  if (accumulator->is_sparse) *out_status = output_shape(ctx, accumulator);
  if (rn_ok(*out_status)) {
    if (accumulator->is_sparse) rn_set_output(ctx, 0, &accumulator->rows.indices);
    rn_set_output(ctx, accumulator->is_sparse, &accumulator->rows.sum);
  }
  clear_sum(accumulator);
  accumulator->step++;
  return true;
}

static void take_gradient(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* wanted = rn_in(ctx, 1);
  accumulator_t* accumulator = NULL;
  bool is_sparse = ctx->kernel->output_count == 3;
  rn_status_t status = accumulator_of(ctx, is_sparse, &accumulator);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  int64_t count = wanted->count == 1 ? rn_int_at(wanted, 0) : 0;
  if (count <= 0)
    status = rn_invalid_argument("Argument num_required must be positive, but was %lld",
                                 (long long)count);
  else if (accumulator->dtype != rn_dtype_base(ctx->kernel->output_types[is_sparse ? 1 : 0]))
    status = rn_invalid_argument("The accumulator's type is %s", rn_dtype_name(accumulator->dtype));
  if (rn_ok(status))
    rn_parking_call(&accumulator->parking, &accumulator->resource, ctx, try_take,
                    "TakeGrad operation was cancelled");
  else
    rn_done(ctx, status);
  rn_object_release(&accumulator->resource.object);
}

// Applying.
static rn_status_t check_shape(rn_shape_t expected, const rn_tensor_t* gradient) {
  if (rn_shape_compatible(expected, rn_tensor_shape(gradient))) return RN_OK;
  return rn_invalid_argument("Shape mismatch: expected %s, got %s", rn_shape_text(expected).text,
                             rn_text_of(gradient).text);
}

static rn_status_t add_dense_locked(rn_kernel_ctx_t* ctx, accumulator_t* accumulator) {
  const rn_tensor_t* gradient = rn_in(ctx, 2);
  rn_tensor_t* sum = &accumulator->rows.sum;
  RN_RETURN_IF_ERROR(check_shape(accumulator->shape, gradient));
  if (rn_tensor_is_set(sum)) {
    RN_RETURN_IF_ERROR(check_shape(rn_tensor_shape(sum), gradient));
    add_to(gradient->dtype, sum->data, gradient->data, gradient->count);
  } else {
    RN_RETURN_IF_ERROR(rn_tensor_copy(gradient, ctx->kernel->device_memory, sum));
  }
  accumulator->count++;
  return RN_OK;
}

static rn_status_t check_gradient(const accumulator_t* accumulator, const rn_tensor_t* gradient) {
  if (gradient->dtype != accumulator->dtype)
    return rn_invalid_argument("Expected a gradient of type %s, got %s",
                               rn_dtype_name(accumulator->dtype), rn_dtype_name(gradient->dtype));
  return RN_OK;
}

static rn_status_t scalar_step(const rn_tensor_t* step, const char* name, int64_t* out) {
  if (step->rank != 0)
    return rn_invalid_argument("Argument %s must be scalar, but had bad shape %s", name,
                               rn_text_of(step).text);
  *out = rn_int_at(step, 0);
  return RN_OK;
}

// Stale gradients are dropped unchecked: only |add_locked| looks at their shapes.
static rn_status_t apply(rn_kernel_ctx_t* ctx, bool is_sparse,
                         rn_status_t (*add_locked)(rn_kernel_ctx_t*, accumulator_t*)) {
  int64_t step;
  RN_RETURN_IF_ERROR(scalar_step(rn_in(ctx, 1), "local_step", &step));
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(accumulator_of(ctx, is_sparse, &accumulator));
  rn_status_t status = check_gradient(accumulator, rn_in(ctx, is_sparse ? 3 : 2));
  if (rn_ok(status)) {
    rn_mutex_lock(&accumulator->parking.mutex);
    if (step >= accumulator->step) status = add_locked(ctx, accumulator);
    rn_mutex_unlock(&accumulator->parking.mutex);
    rn_parking_retry(&accumulator->parking);
  }
  rn_object_release(&accumulator->resource.object);
  return status;
}

static rn_status_t apply_dense(rn_kernel_ctx_t* ctx) { return apply(ctx, false, add_dense_locked); }

static rn_status_t rows_create(rn_allocator_t memory, const rn_tensor_t* values, int64_t rows,
                               accumulator_rows_t* out) {
  int64_t dims[RN_MAX_RANK];
  for (int d = 0; d < values->rank; ++d) dims[d] = d ? rn_tensor_dim(values, d) : rows;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(memory, values->dtype, (rn_shape_t){values->rank, dims}, &out->sum));
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_INT64, (rn_shape_t){1, &rows}, &out->indices));
  return rn_tensor_create(memory, RN_INT64, (rn_shape_t){1, &rows}, &out->counts);
}

static int64_t union_size(const int64_t* a, int64_t n, const int64_t* b, int64_t m) {
  int64_t i = 0, j = 0, size = 0;
  for (; i < n && j < m; ++size) {
    bool takes_a = a[i] <= b[j], takes_b = b[j] <= a[i];
    i += takes_a;
    j += takes_b;
  }
  return size + (n - i) + (m - j);
}

// Merges rows like two sorted lists; equal rows add up.
static rn_status_t merge_rows_locked(rn_kernel_ctx_t* ctx, accumulator_t* accumulator,
                                     const rn_tensor_t* indices, const rn_tensor_t* values) {
  bool is_first = !rn_tensor_is_set(&accumulator->rows.sum);
  int64_t n = is_first ? 0 : accumulator->rows.indices.count, m = indices->count;
  const int64_t* a = is_first ? NULL : RN_DATA(&accumulator->rows.indices, const int64_t);
  const int64_t* b = RN_DATA(indices, const int64_t);
  const int64_t* counts = is_first ? NULL : RN_DATA(&accumulator->rows.counts, const int64_t);
  int64_t total = union_size(a, n, b, m);
  accumulator_rows_t merge = {0};
  rn_status_t status = rows_create(ctx->kernel->device_memory, values, total, &merge);
  if (!rn_ok(status)) {
    clear_rows(&merge);
    return status;
  }
  int64_t width = m ? values->count / m : n ? accumulator->rows.sum.count / n : 0;
  size_t bytes = (size_t)width * rn_dtype_size(values->dtype);
  for (int64_t i = 0, j = 0, k = 0; k < total; ++k) {
    bool takes_a = i < n && (j == m || a[i] <= b[j]), takes_b = j < m && (i == n || b[j] <= a[i]);
    char* to = RN_DATA(&merge.sum, char) + (size_t)k * bytes;
    const char* row = RN_DATA(values, const char) + (size_t)j * bytes;
    if (bytes)
      memcpy(to, takes_a ? RN_DATA(&accumulator->rows.sum, char) + (size_t)i * bytes : row, bytes);
    if (takes_a && takes_b) add_to(values->dtype, to, row, width);
    RN_DATA(&merge.indices, int64_t)[k] = takes_a ? a[i] : b[j];
    RN_DATA(&merge.counts, int64_t)[k] = (takes_a ? counts[i] : 0) + takes_b;
    i += takes_a;
    j += takes_b;
  }
  clear_rows(&accumulator->rows);
  accumulator->rows = merge;
  return RN_OK;
}

// INVALID_ARGUMENT unless every index is in [0, rows); |rows| -1 means no upper limit. Stock
// accepts negative rows, which no dense gradient has.
static rn_status_t check_first(const rn_tensor_t* indices, int64_t rows) {
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t row = RN_DATA(indices, const int64_t)[i];
    if (row < 0)
      return rn_invalid_argument("Index %lld at %lld is negative", (long long)row, (long long)i);
    if (rows >= 0 && row >= rows)
      return rn_invalid_argument(
          "Shape mismatch: index of slice %lld exceeded limits of shape; index is %lld exceeded "
          "%lld",
          (long long)i, (long long)row, (long long)rows);
  }
  return RN_OK;
}

static rn_status_t check_rows(const accumulator_t* accumulator, const rn_tensor_t* indices,
                              const rn_tensor_t* values, const rn_tensor_t* dims, bool has_shape) {
  if (indices->rank != 1)
    return rn_invalid_argument("Input indices should be vector but received shape: %s",
                               rn_text_of(indices).text);
  if (values->rank < 1) return rn_invalid_argument("Values cannot be 0-dimensional.");
  if (rn_tensor_dim(values, 0) != indices->count)
    return rn_invalid_argument("Expected %lld non-empty input values, got %lld",
                               (long long)indices->count, (long long)rn_tensor_dim(values, 0));
  rn_shape_t shape = accumulator->shape;
  if (!rn_shape_has_rank(shape)) return check_first(indices, -1);
  // A declared shape of [] checks nothing; replicas declare it that way.
  if (has_shape && dims->count < shape.rank)
    return rn_invalid_argument("Shape mismatch: expected shape rank at least %d, got %lld",
                               shape.rank, (long long)dims->count);
  for (int32_t d = 0; has_shape && d < shape.rank; ++d)
    if (shape.dims[d] >= 0 && shape.dims[d] != rn_int_at(dims, d))
      return rn_invalid_argument("Shape mismatch: expected shape dim %d to be %lld, got %lld", d,
                                 (long long)shape.dims[d], (long long)rn_int_at(dims, d));
  if (values->rank < shape.rank)
    return rn_invalid_argument("Shape mismatch: expected values rank at least %d, got %d",
                               shape.rank, values->rank);
  for (int32_t d = 1; d < shape.rank; ++d)
    if (shape.dims[d] >= 0 && shape.dims[d] != rn_tensor_dim(values, d))
      return rn_invalid_argument("Shape mismatch: expected values dim %d to be %lld, got %lld", d,
                                 (long long)shape.dims[d], (long long)rn_tensor_dim(values, d));
  return check_first(indices, shape.rank > 0 ? shape.dims[0] : -1);
}

static rn_status_t add_rows_locked(rn_kernel_ctx_t* ctx, accumulator_t* accumulator) {
  const rn_tensor_t* values = rn_in(ctx, 3);
  const rn_tensor_t* sum = &accumulator->rows.sum;
  RN_RETURN_IF_ERROR(
      check_rows(accumulator, rn_in(ctx, 2), values, rn_in(ctx, 4), *(const bool*)ctx->state));
  bool has_sum = rn_tensor_is_set(sum);
  if (has_sum && sum->rank != values->rank)
    return rn_invalid_argument("Shape mismatch: expected values rank %d, got %d", sum->rank,
                               values->rank);
  for (int d = 1; has_sum && d < values->rank; ++d)
    if (rn_tensor_dim(sum, d) != rn_tensor_dim(values, d))
      return rn_invalid_argument("Shape mismatch: expected values dim %d to be %lld, got %lld", d,
                                 (long long)rn_tensor_dim(sum, d),
                                 (long long)rn_tensor_dim(values, d));
  RN_RETURN_IF_ERROR(merge_rows_locked(ctx, accumulator, rn_in(ctx, 2), values));
  accumulator->count++;
  return RN_OK;
}

static rn_status_t sparse_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "has_known_shape");
  return RN_OK;
}

static rn_status_t apply_sparse(rn_kernel_ctx_t* ctx) { return apply(ctx, true, add_rows_locked); }

// Both dense and sparse.
static rn_status_t any_accumulator(const rn_kernel_ctx_t* ctx, accumulator_t** out) {
  return rn_handle_input(ctx, 0, ACCUMULATOR_TYPE, (rn_resource_t**)out);
}

static rn_status_t num_accumulated(rn_kernel_ctx_t* ctx) {
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(any_accumulator(ctx, &accumulator));
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status)) {
    rn_mutex_lock(&accumulator->parking.mutex);
    *RN_DATA(out, int32_t) = (int32_t)accumulator->count;
    rn_mutex_unlock(&accumulator->parking.mutex);
  }
  rn_object_release(&accumulator->resource.object);
  return status;
}

static rn_status_t set_global_step(rn_kernel_ctx_t* ctx) {
  int64_t step;
  RN_RETURN_IF_ERROR(scalar_step(rn_in(ctx, 1), "new_global_step", &step));
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(any_accumulator(ctx, &accumulator));
  rn_mutex_lock(&accumulator->parking.mutex);
  accumulator->step = step;
  rn_mutex_unlock(&accumulator->parking.mutex);
  rn_object_release(&accumulator->resource.object);
  return RN_OK;
}

#define TYPES (RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))
#define MAKE(name)                                                                            \
  {                                                                                           \
    .op = name, .device = "CPU", .types = {{"dtype", TYPES}}, .flags = RN_KERNEL_OWN_OUTPUTS, \
    .state_size = sizeof(rn_handle_state_t), .init = make_init,                               \
    .destroy = rn_handle_state_destroy, .compute = rn_handle_state_compute                    \
  }
#define USE(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define TAKE(name) \
  { .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS, .compute_async = take_gradient }

static const rn_kernel_def_t rows[] = {
    MAKE("ConditionalAccumulator"),
    MAKE("ResourceConditionalAccumulator"),
    MAKE("SparseConditionalAccumulator"),
    USE("AccumulatorApplyGradient", apply_dense),
    USE("ResourceAccumulatorApplyGradient", apply_dense),
    {.op = "SparseAccumulatorApplyGradient",
     .device = "CPU",
     .state_size = sizeof(bool),
     .init = sparse_init,
     .compute = apply_sparse},
    TAKE("AccumulatorTakeGradient"),
    TAKE("ResourceAccumulatorTakeGradient"),
    TAKE("SparseAccumulatorTakeGradient"),
    USE("AccumulatorNumAccumulated", num_accumulated),
    USE("ResourceAccumulatorNumAccumulated", num_accumulated),
    USE("AccumulatorSetGlobalStep", set_global_step),
    USE("ResourceAccumulatorSetGlobalStep", set_global_step),
};
RN_KERNEL_FAMILY(cpu_accumulator, rows);
