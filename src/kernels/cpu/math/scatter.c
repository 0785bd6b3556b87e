// Kernels that update rows of a variable by index.
#include "kernels/cpu/math/scatter.h"

#include "kernels/cpu/array/gather.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/row_batches.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

typedef struct scatter_t {
  rn_combine_op_t op;
  rn_combine_fn_t fn;  // NULL for objects, which are assigned one by one
} scatter_t;

rn_combine_op_t rn_scatter_op(const rn_op_def_t* op) {
  static const struct {
    const char* ending;
    rn_combine_op_t op;
  } endings[] = {{"Update", RN_COMBINE_ASSIGN}, {"Add", RN_COMBINE_ADD}, {"Sub", RN_COMBINE_SUB},
                 {"Mul", RN_COMBINE_MUL},       {"Div", RN_COMBINE_DIV}, {"Min", RN_COMBINE_MIN},
                 {"Max", RN_COMBINE_MAX}};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i)
    if (rn_str_ends_with(rn_str(op->name), rn_str(endings[i].ending))) return endings[i].op;
  return RN_COMBINE_ASSIGN;
}

static rn_status_t scatter_init(const rn_kernel_init_t* init, void* state) {
  scatter_t* scatter = state;
  rn_dtype_t dtype = rn_dtype_base(init->input_types[2]);
  scatter->op = rn_scatter_op(init->op);
  scatter->fn = rn_combine(scatter->op, dtype);
  if (!scatter->fn && scatter->op != RN_COMBINE_ASSIGN)
    return rn_internal("No %s for %s", init->op->name, rn_dtype_name(dtype));
  return RN_OK;
}

static rn_status_t bad_updates(const rn_tensor_t* params, const rn_tensor_t* indices,
                               const rn_tensor_t* updates) {
  return rn_invalid_argument(
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
      "updates.shape %s, indices.shape %s, params.shape %s",
      rn_text_of(updates).text, rn_text_of(indices).text, rn_text_of(params).text);
}

// Updates are a scalar, or have the shape of the indices followed by that of a row.
static rn_status_t check_updates(const rn_kernel_ctx_t* ctx, const rn_tensor_t* params) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *updates = rn_in(ctx, 2);
  const bool is_ref = rn_in(ctx, 0)->is_ref;
  if (params->rank < 1)
    return is_ref ? rn_invalid_argument("params must be at least 1-D, got shape %s",
                                        rn_text_of(params).text)
                  : bad_updates(params, indices, updates);
  if (updates->rank == 0) return RN_OK;
  if (!is_ref && indices->count == 0)  // no updates of a resource: only the rank is checked
    return updates->rank == indices->rank + params->rank - 1
               ? RN_OK
               : bad_updates(params, indices, updates);
  bool is_prefix = updates->rank >= indices->rank;
  for (int d = 0; is_prefix && d < indices->rank; ++d)
    is_prefix = rn_tensor_dim(updates, d) == rn_tensor_dim(indices, d);
  if (!is_prefix && !is_ref)
    return rn_invalid_argument(
        "The shape of indices (%s) must be a prefix of the shape of updates (%s)",
        rn_text_of(indices).text, rn_text_of(updates).text);
  bool fits = is_prefix && updates->rank == indices->rank + params->rank - 1;
  for (int d = 1; fits && d < params->rank; ++d)
    fits = rn_tensor_dim(updates, indices->rank + d - 1) == rn_tensor_dim(params, d);
  return fits ? RN_OK : bad_updates(params, indices, updates);
}

typedef struct scatter_job_t {
  rn_combine_fn_t fn;
  char* to;
  const char* from;
  int64_t row, bytes;  // elements and bytes per row
} scatter_job_t;

static void combine_rows(void* arg, const int64_t* rows, const int64_t* places, int count) {
  const scatter_job_t* job = arg;
  for (int i = 0; i < count; ++i)
    rn_row_prefetch(job->to + rows[i] * job->bytes, (size_t)job->bytes);
  for (int i = 0; i < count; ++i) {
    char* to = job->to + rows[i] * job->bytes;
    job->fn(to, job->from + places[i] * job->bytes, 1, to, job->row);
  }
}

// Bytes per nanosecond, for rows read, updated and written.
#define BYTES_PER_NS 16.0

static rn_status_t scatter_rows(rn_pool_t* pool, const scatter_t* scatter,
                                const rn_tensor_t* indices, const rn_tensor_t* updates,
                                rn_tensor_t* params) {
  const int64_t row = rn_dims_product(rn_tensor_dims(params), 1, params->rank);
  const int64_t bytes = row * (int64_t)rn_dtype_size(params->dtype);
  const bool is_scalar = updates->rank == 0;
  const char* from = updates->data;
  if (params->count == 0) return RN_OK;
  if (scatter->fn && !is_scalar) {
    scatter_job_t job = {scatter->fn, params->data, updates->data, row, bytes};
    rn_row_batches(pool, indices, rn_tensor_dim(params, 0), 5 + (double)bytes / BYTES_PER_NS,
                   combine_rows, &job);
    return RN_OK;
  }
  for (int64_t i = 0; i < indices->count; ++i) {
    char* to = (char*)params->data + rn_int_at(indices, i) * bytes;
    if (scatter->fn) {
      scatter->fn(to, from, !is_scalar, to, row);
    } else if (is_scalar) {
      RN_RETURN_IF_ERROR(rn_move_fill(NULL, params->dtype, from, to, row));
    } else {
      RN_RETURN_IF_ERROR(rn_move_row(params->dtype, from, to, row));
    }
    if (!is_scalar) from += bytes;
  }
  return RN_OK;
}

rn_status_t rn_scatter_check_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  if (!rn_tensor_is_set(&variable->value)) {
    if (rn_in(ctx, 0)->is_ref) return rn_variable_uninitialized(ctx, 0, variable);
    return rn_not_found(
        "Container localhost does not exist. (Could not find resource: localhost/%.*s)",
        RN_STR_ARGS(variable->name));
  }
  if (variable->value.dtype != rn_in(ctx, 2)->dtype)
    return rn_invalid_argument("DType of the variable is %s, of the updates %s",
                               rn_dtype_name(variable->value.dtype),
                               rn_dtype_name(rn_in(ctx, 2)->dtype));
  return check_updates(ctx, &variable->value);
}

static rn_status_t scatter_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  const scatter_t* scatter = ctx->state;
  RN_RETURN_IF_ERROR(rn_scatter_check_locked(ctx, variable));
  RN_RETURN_IF_ERROR(rn_check_indices(rn_in(ctx, 1), rn_tensor_dim(&variable->value, 0)));
  const rn_dtype_t dtype = variable->value.dtype;
  const bool is_integer = !rn_dtype_is_floating(dtype) && !rn_dtype_is_complex(dtype);
  bool divides_by_zero = scatter->op == RN_COMBINE_DIV && (!rn_in(ctx, 0)->is_ref || is_integer) &&
                         rn_has_zero(rn_in(ctx, 2));
  if (divides_by_zero) return rn_invalid_argument("updates must not contain 0");
  if (rn_in(ctx, 1)->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  return scatter_rows(rn_ctx_pool(ctx), scatter, rn_in(ctx, 1), rn_in(ctx, 2), &variable->value);
}

static rn_status_t scatter(rn_kernel_ctx_t* ctx) { return rn_variable_update(ctx, scatter_locked); }

#define SCATTER(name, attr, types_)                                                       \
  {                                                                                       \
    .op = name, .device = "CPU", .types = {{attr, types_}, {"Tindices", RN_TYPES_INDEX}}, \
    .state_size = sizeof(scatter_t), .init = scatter_init, .compute = scatter             \
  }
#define BOTH(ending, types_) \
  SCATTER("Scatter" ending, "T", types_), SCATTER("ResourceScatter" ending, "dtype", types_)

static const rn_kernel_def_t rows[] = {
    BOTH("Update", RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT)),
    BOTH("Add", RN_TYPES_NUMBERS),
    BOTH("Sub", RN_TYPES_NUMBERS),
    BOTH("Mul", RN_TYPES_NUMBERS),
    BOTH("Div", RN_TYPES_NUMBERS),
    BOTH("Min", RN_TYPES_REAL),
    BOTH("Max", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cpu_scatter, rows);
