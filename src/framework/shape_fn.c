// Functions for writing shape functions: arithmetic of partly known shapes and values.
#include "framework/shape_fn.h"

#include <inttypes.h>
#include <limits.h>

const rn_attr_value_t* rn_shape_attr(const rn_shape_ctx_t* ctx, const char* name) {
  // The definition guarantees the attribute; if a function and its definition ever disagree, it
  // gets an empty value.
  static const rn_attr_value_t none = {.kind = RN_ATTR_INT};
  int i = rn_op_attr_index(ctx->op, rn_str(name));
  return i < 0 ? &none : &ctx->attrs[i];
}

// Whether |i| is below |count|; if not, records the overrun in the context.
static bool is_within(rn_shape_ctx_t* ctx, const char* kind, int64_t i, int32_t count) {
  if (i >= 0 && i < count) return true;
  if (!ctx->overrun_kind) {
    ctx->overrun_kind = kind;
    ctx->overrun_index = i < INT_MIN ? INT_MIN : i > INT_MAX ? INT_MAX : (int)i;
  }
  return false;
}

static bool has_input(rn_shape_ctx_t* ctx, int64_t i) {
  return is_within(ctx, "input", i, ctx->input_count);
}

static bool has_output(rn_shape_ctx_t* ctx, int64_t i) {
  return is_within(ctx, "output", i, ctx->output_count);
}

static rn_status_t check_overrun(const rn_shape_ctx_t* ctx) {
  if (!ctx->overrun_kind) return RN_OK;
  return rn_invalid_argument(
      "The attributes of %s ask for %s %d, but the node has %d inputs and %d outputs",
      ctx->op->name, ctx->overrun_kind, ctx->overrun_index, ctx->input_count, ctx->output_count);
}

rn_status_t rn_partial_of_tensor(rn_arena_t* arena, const rn_tensor_t* value, rn_partial_t* out) {
  // Longer tensors are data, not sizes.
  if (!rn_tensor_has_ints(value) || value->rank > 1 || value->count > RN_MAX_RANK ||
      (value->count && !value->data)) {
    return RN_OK;
  }
  int64_t* values = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)value->count, &values));
  for (int64_t i = 0; i < value->count; i++) values[i] = rn_tensor_int(value, i);
  *out = (rn_partial_t){true, value->rank == 0, (int32_t)value->count, values};
  return RN_OK;
}

rn_status_t rn_shape_arrays_init(rn_arena_t* arena, int32_t input_count, int32_t output_count,
                                 rn_shape_arrays_t* out) {
  size_t inputs = (size_t)input_count, outputs = (size_t)output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->partials));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->handles));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs, &out->outputs));
  return RN_ARENA_ARRAY(arena, outputs, &out->output_handles);
}

void rn_shape_set_arrays(rn_shape_ctx_t* ctx, const rn_shape_arrays_t* arrays) {
  ctx->inputs = arrays->inputs;
  ctx->input_types = arrays->types;
  ctx->input_values = arrays->values;
  ctx->input_partials = arrays->partials;
  ctx->input_handles = arrays->handles;
  ctx->outputs = arrays->outputs;
  ctx->output_handles = arrays->output_handles;
  for (int32_t i = 0; i < ctx->output_count; i++) {
    ctx->outputs[i] = RN_SHAPE_UNKNOWN;
    ctx->output_handles[i] = (rn_handle_data_t){0};
  }
}

rn_status_t rn_shape_infer(rn_shape_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(ctx->op->shape(ctx));
  return check_overrun(ctx);
}

rn_shape_t rn_shape_in(rn_shape_ctx_t* ctx, int64_t i) {
  return has_input(ctx, i) ? ctx->inputs[i] : RN_SHAPE_UNKNOWN;
}

rn_dtype_t rn_shape_in_type(rn_shape_ctx_t* ctx, int64_t i) {
  return has_input(ctx, i) ? ctx->input_types[i] : RN_INVALID;
}

const rn_partial_t* rn_shape_in_partial(rn_shape_ctx_t* ctx, int64_t i) {
  static const rn_partial_t none = {0};
  return has_input(ctx, i) ? &ctx->input_partials[i] : &none;
}

const rn_handle_data_t* rn_shape_in_handle(rn_shape_ctx_t* ctx, int64_t i) {
  static const rn_handle_data_t none = {0};
  return has_input(ctx, i) ? &ctx->input_handles[i] : &none;
}

rn_shape_t* rn_shape_out(rn_shape_ctx_t* ctx, int64_t i) {
  if (has_output(ctx, i)) return &ctx->outputs[i];
  ctx->spare_output = RN_SHAPE_UNKNOWN;
  return &ctx->spare_output;
}

rn_handle_data_t* rn_shape_out_handle(rn_shape_ctx_t* ctx, int64_t i) {
  if (has_output(ctx, i)) return &ctx->output_handles[i];
  ctx->spare_handle = (rn_handle_data_t){0};
  return &ctx->spare_handle;
}

static rn_status_t new_dims(rn_shape_ctx_t* ctx, int rank, int64_t** out_dims) {
  *out_dims = NULL;
  RN_RETURN_IF_ERROR(check_overrun(ctx));  // stops loops over counts that are too large
  if (rank > RN_MAX_RANK) {
    return rn_invalid_argument("Shape must be at most rank %d but is rank %d", RN_MAX_RANK, rank);
  }
  return RN_ARENA_ARRAY(ctx->arena, (size_t)rank, out_dims);
}

rn_status_t rn_shape_make(rn_shape_ctx_t* ctx, int rank, const int64_t* dims, rn_shape_t* out) {
  if (rank <= 0) {
    *out = rank < 0 ? RN_SHAPE_UNKNOWN : RN_SHAPE_SCALAR;
    return RN_OK;
  }
  int64_t* copy;
  RN_RETURN_IF_ERROR(new_dims(ctx, rank, &copy));
  memcpy(copy, dims, (size_t)rank * sizeof *dims);
  *out = (rn_shape_t){rank, copy};
  return RN_OK;
}

rn_status_t rn_shape_vector(rn_shape_ctx_t* ctx, int64_t dim, rn_shape_t* out) {
  return rn_shape_make(ctx, 1, &dim, out);
}

rn_status_t rn_shape_matrix(rn_shape_ctx_t* ctx, int64_t rows, int64_t columns, rn_shape_t* out) {
  return rn_shape_make(ctx, 2, (const int64_t[]){rows, columns}, out);
}

rn_status_t rn_shape_of_rank(rn_shape_ctx_t* ctx, int rank, rn_shape_t* out) {
  if (rank <= 0) return rn_shape_make(ctx, rank, NULL, out);
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, rank, &dims));
  for (int i = 0; i < rank; i++) dims[i] = RN_UNKNOWN;
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

rn_status_t rn_shape_with_rank(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank, rn_shape_t* out) {
  if (!rn_shape_has_rank(shape)) return rn_shape_of_rank(ctx, rank, out);
  if (shape.rank != rank) {
    return rn_invalid_argument("Shape must be rank %d but is rank %d", rank, shape.rank);
  }
  *out = shape;
  return RN_OK;
}

rn_status_t rn_shape_with_rank_at_least(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank,
                                        rn_shape_t* out) {
  (void)ctx;
  if (rn_shape_has_rank(shape) && shape.rank < rank) {
    return rn_invalid_argument("Shape must be at least rank %d but is rank %d", rank, shape.rank);
  }
  *out = shape;
  return RN_OK;
}

rn_status_t rn_shape_with_rank_at_most(rn_shape_ctx_t* ctx, rn_shape_t shape, int rank,
                                       rn_shape_t* out) {
  (void)ctx;
  if (rn_shape_has_rank(shape) && shape.rank > rank) {
    return rn_invalid_argument("Shape must be at most rank %d but is rank %d", rank, shape.rank);
  }
  *out = shape;
  return RN_OK;
}

rn_status_t rn_dim_merge(int64_t a, int64_t b, int64_t* out) {
  if (a != RN_UNKNOWN && b != RN_UNKNOWN && a != b) {
    return rn_invalid_argument("Dimensions must be equal, but are %" PRId64 " and %" PRId64, a, b);
  }
  *out = a == RN_UNKNOWN ? b : a;
  return RN_OK;
}

rn_status_t rn_dim_with_value(int64_t dim, int64_t value, int64_t* out) {
  if (dim != RN_UNKNOWN && dim != value) {
    return rn_invalid_argument("Dimension must be %" PRId64 " but is %" PRId64, value, dim);
  }
  *out = value;
  return RN_OK;
}

static rn_status_t unequal_dims(int axis, rn_shape_t a, rn_shape_t b) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text,
                   "Dimension %d in both shapes must be equal, but are %" PRId64 " and %" PRId64
                   ". Shapes are ",
                   axis, a.dims[axis], b.dims[axis]);
  rn_shape_print(&text, a);
  rn_strbuf_append(&text, RN_STR(" and "));
  rn_shape_print(&text, b);
  rn_strbuf_append(&text, RN_STR("."));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_shape_merge(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b, rn_shape_t* out) {
  if (!rn_shape_has_rank(b) || !rn_shape_has_rank(a)) {
    *out = rn_shape_has_rank(a) ? a : b;
    return RN_OK;
  }
  if (a.rank != b.rank) {
    return rn_invalid_argument("Shapes must be equal rank, but are %d and %d", a.rank, b.rank);
  }
  bool a_has_all = true;
  for (int i = 0; i < a.rank; i++) {
    if (a.dims[i] == RN_UNKNOWN && b.dims[i] != RN_UNKNOWN) a_has_all = false;
    if (a.dims[i] != RN_UNKNOWN && b.dims[i] != RN_UNKNOWN && a.dims[i] != b.dims[i]) {
      return unequal_dims(i, a, b);
    }
  }
  *out = a;
  if (a_has_all) return RN_OK;
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, a.rank, &dims));
  for (int i = 0; i < a.rank; i++) dims[i] = a.dims[i] == RN_UNKNOWN ? b.dims[i] : a.dims[i];
  out->dims = dims;
  return RN_OK;
}

int64_t rn_shape_dim(rn_shape_t shape, int axis) {
  if (axis < 0) axis += shape.rank;
  return axis >= 0 && axis < shape.rank ? shape.dims[axis] : RN_UNKNOWN;
}

rn_status_t rn_shape_slice(rn_shape_ctx_t* ctx, rn_shape_t shape, int64_t start, int64_t end,
                           rn_shape_t* out) {
  if (!rn_shape_has_rank(shape)) {
    // With an unknown rank, the length is known if both positions count from the same end.
    bool same_side = (start < 0) == (end < 0) && end != INT_MAX;
    *out = RN_SHAPE_UNKNOWN;
    return same_side && end >= start && start >= 0 ? rn_shape_of_rank(ctx, (int)(end - start), out)
                                                   : RN_OK;
  }
  int64_t rank = shape.rank, first = start, last = end;
  if (first > rank) first = rank;
  if (last > rank) last = rank;
  if (first < 0) first += rank;
  if (last < 0) last += rank;
  if (first < 0) {
    return rn_invalid_argument(
        "Subshape start out of bounds: %" PRId64 ", for shape with rank %" PRId64, start, rank);
  }
  if (last < 0) {
    return rn_invalid_argument(
        "Subshape end out of bounds: %" PRId64 ", for shape with rank %" PRId64, end, rank);
  }
  if (first > last) {
    return rn_invalid_argument("Subshape must have computed start <= end, but is %" PRId64
                               " and %" PRId64 " (computed from start %" PRId64 " and end %" PRId64
                               " over shape with rank %" PRId64 ")",
                               first, last, start, end, rank);
  }
  // A scalar has no dims.
  *out =
      first == last ? RN_SHAPE_SCALAR : (rn_shape_t){(int32_t)(last - first), shape.dims + first};
  return RN_OK;
}

rn_status_t rn_shape_concat(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b, rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (!rn_shape_has_rank(a) || !rn_shape_has_rank(b)) return RN_OK;
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, a.rank + b.rank, &dims));
  if (a.rank) memcpy(dims, a.dims, (size_t)a.rank * sizeof *dims);
  if (b.rank) memcpy(dims + a.rank, b.dims, (size_t)b.rank * sizeof *dims);
  *out = (rn_shape_t){a.rank + b.rank, dims};
  return RN_OK;
}

rn_status_t rn_shape_replace_dim(rn_shape_ctx_t* ctx, rn_shape_t shape, int axis, int64_t dim,
                                 rn_shape_t* out) {
  *out = shape;
  if (!rn_shape_has_rank(shape)) return RN_OK;
  int place = axis < 0 ? axis + shape.rank : axis;
  if (place < 0 || place >= shape.rank) {
    return rn_invalid_argument("Out of range dim_index %d for shape with %d dimensions", axis,
                               shape.rank);
  }
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, shape.rank, &dims));
  memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
  dims[place] = dim;
  *out = (rn_shape_t){shape.rank, dims};
  return RN_OK;
}

static void mark_asked(uint64_t* inputs, int i) {
  if (i >= 0 && i < 64) *inputs |= UINT64_C(1) << i;
}

const rn_tensor_t* rn_shape_input_value(rn_shape_ctx_t* ctx, int i) {
  if (!has_input(ctx, i)) return NULL;
  if (ctx->asked) mark_asked(&ctx->asked->values, i);
  return ctx->input_values[i];
}

rn_status_t rn_shape_from_input(rn_shape_ctx_t* ctx, int i, rn_shape_t* out) {
  rn_shape_t sizes = rn_shape_in(ctx, i);
  const rn_partial_t* partial = rn_shape_in_partial(ctx, i);
  if (ctx->asked) mark_asked(&ctx->asked->shapes, i);
  *out = RN_SHAPE_UNKNOWN;
  RN_RETURN_IF_ERROR(rn_shape_with_rank(ctx, sizes, 1, &sizes));
  if (!partial->is_known || partial->is_scalar) {
    int64_t rank = sizes.dims[0];
    if (rank > RN_MAX_RANK) rank = RN_UNKNOWN;
    return rn_shape_of_rank(ctx, (int)rank, out);
  }
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, partial->count, &dims));
  for (int j = 0; j < partial->count; j++) {
    int64_t value = partial->values[j];
    if (value != RN_UNKNOWN_VALUE && value < -1) {
      return rn_invalid_argument("Invalid value in tensor used for shape: %" PRId64, value);
    }
    dims[j] = value == RN_UNKNOWN_VALUE ? RN_UNKNOWN : value;
  }
  *out = (rn_shape_t){partial->count, dims};
  return RN_OK;
}

// The broadcast size of dimensions |a| and |b|.
static rn_status_t broadcast_dim(int64_t a, int64_t b, int64_t* out) {
  if (a == 1) {
    *out = b;
  } else if (b == 1) {
    *out = a;
  } else if (a == RN_UNKNOWN || b == RN_UNKNOWN) {
    // A size above 1 determines the result; 0 does not, because the other one could be 1 or 0.
    int64_t known = a == RN_UNKNOWN ? b : a;
    *out = known > 1 ? known : RN_UNKNOWN;
  } else {
    return rn_dim_merge(a, b, out);
  }
  return RN_OK;
}

rn_status_t rn_shape_broadcast(rn_shape_ctx_t* ctx, rn_shape_t a, rn_shape_t b,
                               bool incompatible_error, rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (!rn_shape_has_rank(a) || !rn_shape_has_rank(b)) return RN_OK;
  int rank = a.rank > b.rank ? a.rank : b.rank;
  int64_t* dims;
  RN_RETURN_IF_ERROR(new_dims(ctx, rank, &dims));
  for (int i = 0; i < rank; i++) {
    int64_t x = i < rank - a.rank ? 1 : a.dims[i - (rank - a.rank)];
    int64_t y = i < rank - b.rank ? 1 : b.dims[i - (rank - b.rank)];
    rn_status_t status = broadcast_dim(x, y, &dims[i]);
    if (!rn_ok(status) && !incompatible_error) {
      rn_status_free(status);
      return RN_OK;
    }
    RN_RETURN_IF_ERROR(status);
  }
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

bool rn_shape_input_scalar(rn_shape_ctx_t* ctx, int i, int64_t* out_value) {
  const rn_partial_t* partial = rn_shape_in_partial(ctx, i);
  if (ctx->asked) mark_asked(&ctx->asked->values, i);
  if (!partial->is_known || partial->count != 1 || partial->values[0] == RN_UNKNOWN_VALUE) {
    return false;
  }
  *out_value = partial->values[0];
  return true;
}

rn_status_t rn_shape_set_partial(rn_shape_ctx_t* ctx, bool is_scalar, int count,
                                 const int64_t* values) {
  int64_t* copy;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(ctx->arena, (size_t)count, &copy));
  if (count) memcpy(copy, values, (size_t)count * sizeof *values);
  ctx->output_partial = (rn_partial_t){true, is_scalar, count, copy};
  return RN_OK;
}

rn_status_t rn_shape_fn_missing(rn_shape_ctx_t* ctx) { return rn_shape_fn_unknown(ctx); }

rn_status_t rn_shape_fn_unknown(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->output_count; i++) ctx->outputs[i] = RN_SHAPE_UNKNOWN;
  return RN_OK;
}

rn_status_t rn_shape_fn_unchanged(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_scalar(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->output_count; i++) ctx->outputs[i] = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_none(rn_shape_ctx_t* ctx) {
  (void)ctx;
  return RN_OK;
}

rn_status_t rn_shape_fn_broadcast2(rn_shape_ctx_t* ctx) {
  return rn_shape_broadcast(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), true,
                            rn_shape_out(ctx, 0));
}
