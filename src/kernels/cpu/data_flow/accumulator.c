// Conditional accumulators: gradients of one training step add up until enough have arrived to be
// taken. Stale gradients, of an earlier step, are dropped. Dense and sparse.
#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

#define ACCUMULATOR_TYPE "Accumulator"

typedef struct accumulator_t accumulator_t;

// A call that waits for gradients. It is ended by whichever takes it out of the line first: the
// accumulator or the cancellation of its step.
typedef struct accumulator_waiter_t {
  rn_cancel_entry_t cancel;  // first
  struct accumulator_waiter_t* next;
  accumulator_t* accumulator;  // Retained
  rn_kernel_ctx_t* ctx;
  int64_t wanted;
  bool is_waiting, is_cancelled;  // guarded by the accumulator's lock
  rn_tensor_t value, indices;     // its results
  rn_status_t status;
} accumulator_waiter_t;

typedef struct accumulator_rows_t {
  rn_tensor_t sum;      // unset until the first gradient
  rn_tensor_t indices;  // sparse: row number of each row of |sum|, int64
  rn_tensor_t counts;   // sparse: gradients per row, int64
} accumulator_rows_t;

struct accumulator_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds the shape
  rn_dtype_t dtype;
  rn_shape_t shape;  // as declared; may be unknown
  bool is_mean, is_sparse;
  rn_mutex_t mutex;  // guards what follows
  int64_t step;
  int64_t count;  // gradients added to the sum
  accumulator_rows_t rows;
  accumulator_waiter_t* first;
  accumulator_waiter_t** last;
};

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
  clear_sum(accumulator);
  rn_mutex_destroy(&accumulator->mutex);
  rn_arena_clear(&accumulator->arena);
  RN_FREE(accumulator->allocator, accumulator);
}

static rn_status_t make_accumulator(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  const rn_kernel_init_t* init = arg;
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &accumulator));
  accumulator->resource =
      (rn_resource_t){{.refs = 1, .destroy = accumulator_destroy}, ACCUMULATOR_TYPE};
  accumulator->allocator = init->allocator;
  accumulator->dtype = rn_init_type(init, "dtype");
  accumulator->is_mean = rn_str_is(rn_init_string(init, "reduction_type"), "MEAN");
  accumulator->is_sparse = strncmp(init->op->name, "Sparse", 6) == 0;
  accumulator->last = &accumulator->first;
  rn_mutex_init(&accumulator->mutex);
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

// Takes the sum. Computes the mean in place, because nothing else holds the sum.
static void take_locked(accumulator_t* accumulator, accumulator_waiter_t* waiter) {
  rn_tensor_t* sum = &accumulator->rows.sum;
  if (accumulator->is_mean && !accumulator->is_sparse) {
    divide(accumulator->dtype, sum->data, accumulator->count, sum->count);
  } else if (accumulator->is_mean && sum->count) {
    int64_t width = sum->count / rn_tensor_dim(sum, 0);
    for (int64_t i = 0; i < accumulator->rows.counts.count; ++i)
      divide(accumulator->dtype,
             RN_DATA(sum, char) + (size_t)(i * width) * rn_dtype_size(sum->dtype),
             RN_DATA(&accumulator->rows.counts, int64_t)[i], width);
  }
  waiter->value = *sum;
  waiter->indices = accumulator->rows.indices;
  *sum = accumulator->rows.indices = (rn_tensor_t){0};
  clear_sum(accumulator);
  accumulator->step++;
}

static accumulator_waiter_t* serve_locked(accumulator_t* accumulator) {
  accumulator_waiter_t* ended = NULL;
  accumulator_waiter_t** tail = &ended;
  while (accumulator->first && accumulator->count >= accumulator->first->wanted) {
    accumulator_waiter_t* waiter = accumulator->first;
    accumulator->first = waiter->next;
    if (!accumulator->first) accumulator->last = &accumulator->first;
    waiter->is_waiting = false;
    waiter->next = NULL;
    take_locked(accumulator, waiter);
    *tail = waiter;
    tail = &waiter->next;
  }
  return ended;
}

// The dense shape: the number of rows that the accumulator declares, or -1; then the shape of a
// row. The shapes that gradients came with are not kept.
static rn_status_t output_shape(rn_kernel_ctx_t* ctx, const accumulator_t* accumulator,
                                const accumulator_waiter_t* waiter) {
  rn_shape_t shape = accumulator->shape;
  int64_t rank = waiter->value.rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &rank}, &out));
  for (int64_t d = 1; d < rank; ++d)
    RN_DATA(out, int64_t)[d] = rn_tensor_dim(&waiter->value, (int)d);
  if (rank > 0)
    RN_DATA(out, int64_t)[0] = rn_shape_has_rank(shape) && shape.rank > 0 ? shape.dims[0] : -1;
  return RN_OK;
}

static void end(accumulator_waiter_t* waiter) {
  accumulator_t* accumulator = waiter->accumulator;
  rn_kernel_ctx_t* ctx = waiter->ctx;
  rn_status_t status = waiter->status;
  if (rn_ok(status) && accumulator->is_sparse) {
    status = output_shape(ctx, accumulator, waiter);
    if (rn_ok(status)) {
      rn_set_output(ctx, 0, &waiter->indices);
      rn_set_output(ctx, 1, &waiter->value);
    }
  } else if (rn_ok(status)) {
    rn_set_output(ctx, 0, &waiter->value);
  }
  rn_tensor_clear(&waiter->value);
  rn_tensor_clear(&waiter->indices);
  RN_FREE(accumulator->allocator, waiter);
  rn_object_release(&accumulator->resource.object);
  rn_done(ctx, status);
}

static void end_all(accumulator_waiter_t* ended) {
  while (ended) {
    accumulator_waiter_t* next = ended->next;
    rn_cancel_remove(ended->ctx->step->cancel, &ended->cancel);
    end(ended);
    ended = next;
  }
}

static rn_status_t cancelled(void) { return rn_cancelled("TakeGrad operation was cancelled"); }

static void on_cancel(rn_cancel_entry_t* entry) {
  accumulator_waiter_t* waiter = (accumulator_waiter_t*)entry;
  accumulator_t* accumulator = waiter->accumulator;
  rn_mutex_lock(&accumulator->mutex);
  if (!waiter->is_waiting) {
    waiter->is_cancelled = true;
    rn_mutex_unlock(&accumulator->mutex);
    return;
  }
  accumulator_waiter_t** at = &accumulator->first;
  while (*at != waiter) at = &(*at)->next;
  *at = waiter->next;
  if (!waiter->next) accumulator->last = at;
  accumulator_waiter_t* ended = serve_locked(accumulator);
  rn_mutex_unlock(&accumulator->mutex);
  end_all(ended);
  waiter->status = cancelled();
  end(waiter);
}

static void take(rn_kernel_ctx_t* ctx, accumulator_t* accumulator, int64_t wanted) {
  accumulator_waiter_t* waiter = NULL;
  rn_status_t status = RN_NEW(accumulator->allocator, &waiter);
  if (!rn_ok(status)) {
    rn_object_release(&accumulator->resource.object);
    rn_done(ctx, status);
    return;
  }
  *waiter = (accumulator_waiter_t){
      .cancel = {.fn = on_cancel}, .accumulator = accumulator, .ctx = ctx, .wanted = wanted};
  if (!rn_cancel_add(ctx->step->cancel, &waiter->cancel)) {
    waiter->status = cancelled();
    end(waiter);
    return;
  }
  rn_mutex_lock(&accumulator->mutex);
  accumulator_waiter_t* ended = waiter;
  if (waiter->is_cancelled) {
    waiter->status = cancelled();
  } else {
    waiter->is_waiting = true;
    *accumulator->last = waiter;
    accumulator->last = &waiter->next;
    ended = serve_locked(accumulator);
  }
  rn_mutex_unlock(&accumulator->mutex);
  end_all(ended);
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
  if (rn_ok(status)) {
    take(ctx, accumulator, count);
    return;
  }
  rn_object_release(&accumulator->resource.object);
  rn_done(ctx, status);
}

// Applying.
static rn_status_t add_dense_locked(rn_kernel_ctx_t* ctx, accumulator_t* accumulator,
                                    const rn_tensor_t* gradient) {
  if (!rn_shape_compatible(accumulator->shape, rn_tensor_shape(gradient)))
    return rn_invalid_argument("Shape mismatch: expected %s, got %s",
                               rn_shape_text(accumulator->shape).text, rn_text_of(gradient).text);
  if (!rn_tensor_is_set(&accumulator->rows.sum))
    RN_RETURN_IF_ERROR(
        rn_tensor_copy(gradient, ctx->kernel->device_memory, &accumulator->rows.sum));
  else if (!rn_tensor_same_shape(&accumulator->rows.sum, gradient))
    return rn_invalid_argument("Shape mismatch: expected %s, got %s",
                               rn_text_of(&accumulator->rows.sum).text, rn_text_of(gradient).text);
  else
    add_to(gradient->dtype, accumulator->rows.sum.data, gradient->data, gradient->count);
  accumulator->count++;
  return RN_OK;
}

static rn_status_t check_gradient(const accumulator_t* accumulator, const rn_tensor_t* gradient) {
  if (gradient->dtype != accumulator->dtype)
    return rn_invalid_argument("Expected a gradient of type %s, got %s",
                               rn_dtype_name(accumulator->dtype), rn_dtype_name(gradient->dtype));
  return RN_OK;
}

// Stale gradients are dropped unchecked: only |add| looks at their shapes.
static rn_status_t apply(rn_kernel_ctx_t* ctx, accumulator_t* accumulator, int64_t step,
                         rn_status_t (*add)(rn_kernel_ctx_t*, accumulator_t*)) {
  rn_mutex_lock(&accumulator->mutex);
  rn_status_t status = step < accumulator->step ? RN_OK : add(ctx, accumulator);
  accumulator_waiter_t* ended = serve_locked(accumulator);
  rn_mutex_unlock(&accumulator->mutex);
  end_all(ended);
  return status;
}

static rn_status_t add_dense_input(rn_kernel_ctx_t* ctx, accumulator_t* accumulator) {
  const rn_tensor_t* gradient = rn_in(ctx, 2);
  if (!rn_shape_compatible(accumulator->shape, rn_tensor_shape(gradient)))
    return rn_invalid_argument("Shape mismatch: expected %s, got %s",
                               rn_shape_text(accumulator->shape).text, rn_text_of(gradient).text);
  return add_dense_locked(ctx, accumulator, gradient);
}

static rn_status_t scalar_step(const rn_tensor_t* step, const char* name, int64_t* out) {
  if (step->rank != 0)
    return rn_invalid_argument("Argument %s must be scalar, but had bad shape %s", name,
                               rn_text_of(step).text);
  *out = rn_int_at(step, 0);
  return RN_OK;
}

static rn_status_t apply_dense(rn_kernel_ctx_t* ctx) {
  int64_t step;
  RN_RETURN_IF_ERROR(scalar_step(rn_in(ctx, 1), "local_step", &step));
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(accumulator_of(ctx, false, &accumulator));
  rn_status_t status = check_gradient(accumulator, rn_in(ctx, 2));
  if (rn_ok(status)) status = apply(ctx, accumulator, step, add_dense_input);
  rn_object_release(&accumulator->resource.object);
  return status;
}

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

static rn_status_t add_rows_input(rn_kernel_ctx_t* ctx, accumulator_t* accumulator) {
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

static rn_status_t apply_sparse(rn_kernel_ctx_t* ctx) {
  int64_t step;
  RN_RETURN_IF_ERROR(scalar_step(rn_in(ctx, 1), "local_step", &step));
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(accumulator_of(ctx, true, &accumulator));
  rn_status_t status = check_gradient(accumulator, rn_in(ctx, 3));
  if (rn_ok(status)) status = apply(ctx, accumulator, step, add_rows_input);
  rn_object_release(&accumulator->resource.object);
  return status;
}

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
    rn_mutex_lock(&accumulator->mutex);
    *RN_DATA(out, int32_t) = (int32_t)accumulator->count;
    rn_mutex_unlock(&accumulator->mutex);
  }
  rn_object_release(&accumulator->resource.object);
  return status;
}

static rn_status_t set_global_step(rn_kernel_ctx_t* ctx) {
  int64_t step;
  RN_RETURN_IF_ERROR(scalar_step(rn_in(ctx, 1), "new_global_step", &step));
  accumulator_t* accumulator = NULL;
  RN_RETURN_IF_ERROR(any_accumulator(ctx, &accumulator));
  rn_mutex_lock(&accumulator->mutex);
  accumulator->step = step;
  rn_mutex_unlock(&accumulator->mutex);
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
