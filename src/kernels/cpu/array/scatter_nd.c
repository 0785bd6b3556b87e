// Kernels that scatter slices by index vectors into a new tensor, a copy, or a variable.
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/array/gather.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/math/scatter.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct scatter_nd_t {
  rn_combine_op_t op;
  rn_bad_index_t policy;
} scatter_nd_t;

static rn_status_t scatter_nd_init(const rn_kernel_init_t* init, void* state) {
  scatter_nd_t* scatter = state;
  rn_str_t name = rn_str(init->op->name);
  scatter->op = rn_str_is(name, "ScatterNd") ? RN_COMBINE_ADD : rn_scatter_op(init->op);
  return rn_bad_index_init(init, &scatter->policy);
}

// For strings, addition is concatenation.
static rn_status_t append_strings(const rn_tstring_t* from, rn_tstring_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    rn_str_t more = rn_tstring_view(&from[i]);
    size_t old = rn_tstring_view(&to[i]).size;
    char* data = rn_tstring_resize(&to[i], old + more.size);
    if (!data) return rn_out_of_memory();
    if (more.size) memcpy(data + old, more.data, more.size);
  }
  return RN_OK;
}

static rn_status_t scatter_slices(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices,
                                  const rn_tensor_t* updates, rn_tensor_t* into) {
  const scatter_nd_t* scatter = ctx->state;
  if (indices->count == 0 || updates->count == 0) return RN_OK;
  rn_places_t places;
  rn_places_init(&places, indices, rn_tensor_shape(into));
  // Check all indices before writing anything.
  if (scatter->policy == RN_BAD_INDEX_ERROR)
    for (int64_t i = 0; i < places.count; ++i)
      if (rn_place_at(&places, i) < 0) return rn_place_error(ctx, &places, i, "shape", false);
  rn_combine_fn_t fn = rn_combine(scatter->op, into->dtype);
  const int64_t bytes = places.row * (int64_t)rn_dtype_size(into->dtype);
  const char* from = updates->data;
  for (int64_t i = 0; i < places.count; ++i, from += bytes) {
    int64_t row = rn_place_at(&places, i);
    if (row < 0) continue;
    char* to = (char*)into->data + row * bytes;
    if (fn)
      fn(to, from, 1, to, places.row);
    else if (scatter->op == RN_COMBINE_ADD && into->dtype == RN_STRING)
      RN_RETURN_IF_ERROR(append_strings((const rn_tstring_t*)from, (rn_tstring_t*)to, places.row));
    else
      RN_RETURN_IF_ERROR(rn_move_row(into->dtype, from, to, places.row));
  }
  return RN_OK;
}

// Whether |updates| has the outer dimensions of |indices|, followed by those of a slice.
static bool outer_match(const rn_tensor_t* indices, const rn_tensor_t* updates) {
  if (updates->rank < indices->rank - 1) return false;
  for (int d = 0; d < indices->rank - 1; ++d)
    if (rn_tensor_dim(indices, d) != rn_tensor_dim(updates, d)) return false;
  return true;
}
static bool inner_match(rn_shape_t shape, const rn_tensor_t* indices, const rn_tensor_t* updates) {
  int64_t depth = rn_tensor_dim(indices, indices->rank - 1);
  const int outer = indices->rank - 1;
  if (depth > shape.rank || updates->rank - outer != shape.rank - depth) return false;
  for (int64_t d = depth; d < shape.rank; ++d)
    if (shape.dims[d] != rn_tensor_dim(updates, outer + (int)(d - depth))) return false;
  return true;
}

static rn_status_t check_ranks(const rn_tensor_t* indices, const rn_tensor_t* updates) {
  if (indices->rank < 1)
    return rn_invalid_argument("Indices shape must have rank at least one. Found:%s",
                               rn_text_of(indices).text);
  if (updates->rank < 1)
    return rn_invalid_argument("Updates shape must have rank at least one. Found:%s",
                               rn_text_of(updates).text);
  return RN_OK;
}

static rn_status_t inner_error(rn_shape_t shape, const rn_tensor_t* indices,
                               const rn_tensor_t* updates, int from) {
  long long depth = rn_tensor_dim(indices, indices->rank - 1);
  return rn_invalid_argument(
      "Dimensions [%lld,%d) of input[shape=%s] must match dimensions [%lld,%d) of "
      "updates[shape=%s]",
      depth, shape.rank, rn_shape_text(shape).text, from < 0 ? depth : from, updates->rank,
      rn_text_of(updates).text);
}

rn_status_t rn_scatter_nd_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *updates = rn_in(ctx, 1), *sizes = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check_ranks(indices, updates));
  if (sizes->rank != 1) return rn_invalid_argument("Shape must be a vector");
  int64_t dims[RN_MAX_RANK], count;
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  if ((shape.rank == 0 && (indices->count || updates->count)) ||
      (indices->count == 0 && updates->count > 0))
    return rn_invalid_argument("Indices and updates specified for empty output shape");
  if (rn_shape_count(shape, &count) && count == 0 && indices->count > 0)
    return rn_invalid_argument("Indices and updates specified for empty output.  indices shape: %s",
                               rn_text_of(indices).text);
  if (!outer_match(indices, updates))
    return rn_invalid_argument(
        "Dimensions [0,%d) of indices[shape=%s] must match dimensions [0,%d) of updates[shape=%s]",
        indices->rank - 1, rn_text_of(indices).text, indices->rank - 1, rn_text_of(updates).text);
  if (!inner_match(shape, indices, updates))
    return inner_error(shape, indices, updates, indices->rank - 1);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, out));
  return rn_ctx_zero(ctx, *out);
}

static rn_status_t scatter_nd(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_scatter_nd_begin(ctx, &out));
  return scatter_slices(ctx, rn_in(ctx, 0), rn_in(ctx, 1), out);
}

rn_status_t rn_tensor_scatter_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *tensor = rn_in(ctx, 0), *indices = rn_in(ctx, 1), *updates = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check_ranks(indices, updates));
  rn_shape_t shape = rn_tensor_shape(tensor);
  const bool is_old = rn_str_is(rn_str(ctx->kernel->op->name), "ScatterNdNonAliasingAdd");
  if (is_old && indices->count == 0 && updates->count > 0)
    return rn_invalid_argument("Indices and updates specified for empty output.  indices shape: %s",
                               rn_text_of(indices).text);
  if ((tensor->count == 0 && indices->count > 0) ||
      ((tensor->count == 0 || indices->count == 0) && updates->count > 0))
    return rn_invalid_argument("Indices and updates specified for empty output shape");
  if (!outer_match(indices, updates))
    return rn_invalid_argument(
        "Outer dimensions of indices and update must match. Indices shape: %s, updates shape:%s",
        rn_text_of(indices).text, rn_text_of(updates).text);
  if (!inner_match(shape, indices, updates))
    return rn_invalid_argument(
        "Inner dimensions of output shape must match inner dimensions of updates shape. Output: %s "
        "updates: %s",
        rn_shape_text(shape).text, rn_text_of(updates).text);
  // Not in place if |updates| shares the tensor's buffer.
  uint64_t candidates = updates->data != tensor->data;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, candidates, shape, out));
  return (*out)->data != tensor->data ? rn_ctx_copy(ctx, tensor, *out) : RN_OK;
}

static rn_status_t tensor_scatter(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_scatter_begin(ctx, &out));
  return scatter_slices(ctx, rn_in(ctx, 1), rn_in(ctx, 2), out);
}

rn_status_t rn_scatter_nd_check(const rn_kernel_ctx_t* ctx, const rn_tensor_t* params) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *updates = rn_in(ctx, 2);
  rn_shape_t shape = rn_tensor_shape(params);
  if (params->dtype != updates->dtype)
    return rn_invalid_argument("DType of the variable is %s, of the updates %s",
                               rn_dtype_name(params->dtype), rn_dtype_name(updates->dtype));
  if (params->rank < 1)
    return rn_invalid_argument("Output must be at least 1-D, got shape: %s",
                               rn_text_of(params).text);
  if (params->count == 0 && (indices->count > 0 || updates->count > 0))
    return rn_invalid_argument("Indices and updates specified for empty output.  indices shape: %s",
                               rn_text_of(indices).text);
  RN_RETURN_IF_ERROR(check_ranks(indices, updates));
  if (!outer_match(indices, updates))
    return rn_invalid_argument(
        "Dimensions [0,%d) of indices[shape=%s] = %lld must match dimensions [0,%d) of "
        "updates[shape=%s] = %lld",
        indices->rank - 1, rn_text_of(indices).text, (long long)rn_tensor_dim(indices, 0),
        indices->rank - 1, rn_text_of(updates).text, (long long)rn_tensor_dim(updates, 0));
  if (!inner_match(shape, indices, updates)) return inner_error(shape, indices, updates, -1);
  return RN_OK;
}

static rn_status_t scatter_nd_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  if (!rn_tensor_is_set(&variable->value)) return rn_variable_uninitialized(ctx, 0, variable);
  RN_RETURN_IF_ERROR(rn_scatter_nd_check(ctx, &variable->value));
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  return scatter_slices(ctx, rn_in(ctx, 1), rn_in(ctx, 2), &variable->value);
}

static rn_status_t variable_scatter_nd(rn_kernel_ctx_t* ctx) {
  return rn_variable_update(ctx, scatter_nd_locked);
}

#define ROW(name, types_, function)                                                            \
  {                                                                                            \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(scatter_nd_t), \
    .init = scatter_nd_init, .compute = function                                               \
  }
#define NUMBERS (RN_TYPES_NUMBERS | RN_T(BOOL))

static const rn_kernel_def_t rows[] = {
    ROW("ScatterNd", NUMBERS | RN_T(STRING), scatter_nd),
    ROW("TensorScatterUpdate", NUMBERS | RN_T(STRING), tensor_scatter),
    ROW("TensorScatterAdd", NUMBERS, tensor_scatter),
    ROW("TensorScatterSub", NUMBERS, tensor_scatter),
    ROW("TensorScatterMin", RN_TYPES_REAL, tensor_scatter),
    ROW("TensorScatterMax", RN_TYPES_REAL, tensor_scatter),
    ROW("ScatterNdNonAliasingAdd", NUMBERS, tensor_scatter),
    ROW("ScatterNdUpdate", NUMBERS | RN_T(STRING), variable_scatter_nd),
    ROW("ScatterNdAdd", NUMBERS, variable_scatter_nd),
    ROW("ScatterNdSub", NUMBERS, variable_scatter_nd),
    ROW("ScatterNdMin", RN_TYPES_REAL, variable_scatter_nd),
    ROW("ScatterNdMax", RN_TYPES_REAL, variable_scatter_nd),
    ROW("ResourceScatterNdUpdate", NUMBERS | RN_T(STRING), variable_scatter_nd),
    ROW("ResourceScatterNdAdd", NUMBERS, variable_scatter_nd),
    ROW("ResourceScatterNdSub", NUMBERS, variable_scatter_nd),
    ROW("ResourceScatterNdMin", RN_TYPES_REAL, variable_scatter_nd),
    ROW("ResourceScatterNdMax", RN_TYPES_REAL, variable_scatter_nd),
};
RN_KERNEL_FAMILY(cpu_scatter_nd, rows);
