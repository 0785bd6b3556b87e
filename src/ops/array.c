// Shape functions of constants, placeholders, shape arithmetic and reshapes.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_const(rn_shape_ctx_t* ctx) {
  const rn_tensor_t* value = rn_shape_attr(ctx, "value")->tensor;
  if (!value) return RN_OK;
  rn_shape_t shape = rn_tensor_shape(value);
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < 0) {
      return rn_invalid_argument("Negative dimension size in a constant: %" PRId64, shape.dims[i]);
    }
  }
  RN_TRY(rn_shape_make(ctx, shape.rank, shape.dims, rn_shape_out(ctx, 0)));
  return rn_partial_of_tensor(ctx->arena, value, &ctx->output_partial);
}

rn_status_t rn_shape_fn_immutable_const(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_identity(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  ctx->output_partial = *rn_shape_in_partial(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_identity_n(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->output_count && i < ctx->input_count; i++) {
    *rn_shape_out(ctx, i) = rn_shape_in(ctx, i);
    *rn_shape_out_handle(ctx, i) = *rn_shape_in_handle(ctx, i);
  }
  if (ctx->input_count) ctx->output_partial = *rn_shape_in_partial(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_zeros_like(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  if (rn_shape_in_type(ctx, 0) == RN_RESOURCE || rn_shape_in_type(ctx, 0) == RN_VARIANT)
    *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_placeholder(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(rn_ops_attr_shape(ctx, "shape", &shape));
  // Before GraphDef version 24, a scalar here meant an unknown shape.
  if (shape.rank == 0 && ctx->graph_version < 24) shape = RN_SHAPE_UNKNOWN;
  *rn_shape_out(ctx, 0) = shape;
  return RN_OK;
}

rn_status_t rn_shape_fn_placeholder_with_default(rn_shape_ctx_t* ctx) {
  rn_shape_t shape, unused;
  RN_TRY(rn_ops_attr_shape(ctx, "shape", &shape));
  // A fed value may differ from the default, so only the declared shape counts.
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), shape, &unused));
  *rn_shape_out(ctx, 0) = shape;
  return RN_OK;
}

rn_status_t rn_shape_fn_ensure_shape(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(rn_ops_attr_shape(ctx, "shape", &shape));
  rn_shape_t in = rn_shape_in(ctx, 0);
  if (rn_shape_has_rank(shape)) RN_TRY(rn_shape_with_rank(ctx, in, shape.rank, &in));
  RN_TRY(rn_shape_merge(ctx, shape, in, rn_shape_out(ctx, 0)));
  ctx->output_partial = *rn_shape_in_partial(ctx, 0);
  return RN_OK;
}

rn_status_t rn_ops_check_limits(rn_shape_ctx_t* ctx, rn_shape_t in, int at, int64_t axis,
                                rn_shape_t* out_limits) {
  rn_shape_t limits;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, at), axis == -1 ? 0 : 1, &limits));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, at + 1), limits, out_limits));
  if (axis < -1) return rn_invalid_argument("axis should be at least -1, got %" PRId64, axis);
  if (axis >= RN_MAX_RANK) return rn_invalid_argument("axis is too large: %" PRId64, axis);
  if (axis == -1) return RN_OK;
  RN_TRY(rn_shape_with_rank_at_least(ctx, in, (int)axis + 1, &in));
  return rn_dim_merge(out_limits->dims[0], rn_shape_dim(in, (int)axis), &unused);
}

rn_status_t rn_shape_fn_quantize_and_dequantize_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t limits;
  RN_TRY(rn_ops_check_limits(ctx, rn_shape_in(ctx, 0), 1, rn_ops_int(ctx, "axis"), &limits));
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_quantize_and_dequantize_v3(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_quantize_and_dequantize_v2(ctx));
  return rn_ops_check_rank(ctx, 3, 0);
}

// Ops that return shapes.

// Sets the partial value of the output to the dims of a shape.
static rn_status_t partial_of_shape(rn_shape_ctx_t* ctx, rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) return RN_OK;
  int64_t values[RN_MAX_RANK];
  for (int i = 0; i < shape.rank; i++) {
    values[i] = shape.dims[i] == RN_UNKNOWN ? RN_UNKNOWN_VALUE : shape.dims[i];
  }
  return rn_shape_set_partial(ctx, false, shape.rank, values);
}

rn_status_t rn_shape_fn_shape(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_vector(ctx, rn_shape_in(ctx, 0).rank, rn_shape_out(ctx, 0)));
  return partial_of_shape(ctx, rn_shape_in(ctx, 0));
}

rn_status_t rn_shape_fn_shape_n(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->input_count && i < ctx->output_count; i++) {
    RN_TRY(rn_shape_vector(ctx, rn_shape_in(ctx, i).rank, rn_shape_out(ctx, i)));
  }
  return ctx->input_count ? partial_of_shape(ctx, rn_shape_in(ctx, 0)) : RN_OK;
}

rn_status_t rn_shape_fn_size(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  int64_t count;
  if (!rn_shape_count(rn_shape_in(ctx, 0), &count) || count == RN_UNKNOWN) return RN_OK;
  return rn_shape_set_partial(ctx, true, 1, &count);
}

rn_status_t rn_shape_fn_rank(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  int64_t rank = rn_shape_in(ctx, 0).rank;
  return rank < 0 ? RN_OK : rn_shape_set_partial(ctx, true, 1, &rank);
}

rn_status_t rn_shape_fn_fill(rn_shape_ctx_t* ctx) {
  rn_shape_t sizes;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &sizes));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  const rn_partial_t *dims = rn_shape_in_partial(ctx, 0), *value = rn_shape_in_partial(ctx, 1);
  RN_TRY(rn_shape_from_input(ctx, 0, rn_shape_out(ctx, 0)));
  for (int i = 0; dims->is_known && i < dims->count; i++) {
    if (dims->values[i] == -1) return rn_invalid_argument("Fill dimensions must be >= 0");
  }
  int64_t count = rn_shape_dim(*rn_shape_out(ctx, 0), 0), values[RN_MAX_RANK];
  if (!value->is_known || rn_shape_out(ctx, 0)->rank > 1) return RN_OK;
  if (rn_shape_out(ctx, 0)->rank == 0) return rn_shape_set_partial(ctx, true, 1, value->values);
  if (rn_shape_out(ctx, 0)->rank != 1 || count < 0 || count > RN_MAX_RANK) return RN_OK;
  for (int64_t i = 0; i < count; i++) values[i] = value->values[0];
  return rn_shape_set_partial(ctx, false, (int)count, values);
}

// Whether input |i| is known to contain a negative number, which cannot be a size.
static bool has_negative(rn_shape_ctx_t* ctx, int i) {
  const rn_partial_t* partial = rn_shape_in_partial(ctx, i);
  for (int j = 0; partial->is_known && j < partial->count; ++j)
    if (partial->values[j] != RN_UNKNOWN_VALUE && partial->values[j] < 0) return true;
  return false;
}

rn_status_t rn_shape_fn_broadcast_args(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &a));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &b));
  // The longer of the two.
  int64_t x = a.dims[0], y = b.dims[0];
  int64_t size = x == RN_UNKNOWN || y == RN_UNKNOWN ? RN_UNKNOWN : x > y ? x : y;
  RN_TRY(rn_shape_vector(ctx, size, rn_shape_out(ctx, 0)));
  rn_shape_t shape_a, shape_b, both;
  if (has_negative(ctx, 0) || has_negative(ctx, 1)) return RN_OK;  // the kernel accepts them
  RN_TRY(rn_shape_from_input(ctx, 0, &shape_a));
  RN_TRY(rn_shape_from_input(ctx, 1, &shape_b));
  RN_TRY(rn_shape_broadcast(ctx, shape_a, shape_b, false, &both));
  return partial_of_shape(ctx, both);
}

rn_status_t rn_shape_fn_broadcast_gradient_args(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return rn_ops_two_vectors(ctx);
}

rn_status_t rn_shape_fn_broadcast_to(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), sizes, to;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &sizes));
  if (rn_shape_has_rank(in) && sizes.dims[0] != RN_UNKNOWN) {
    int most = sizes.dims[0] > RN_MAX_RANK ? RN_MAX_RANK : (int)sizes.dims[0];
    RN_TRY(rn_shape_with_rank_at_most(ctx, in, most, &in));
  }
  RN_TRY(rn_shape_from_input(ctx, 1, &to));
  *rn_shape_out(ctx, 0) = to;
  if (!rn_shape_has_rank(to) || !rn_shape_has_rank(in)) return RN_OK;
  int64_t dims[RN_MAX_RANK];
  for (int i = to.rank - 1; i >= 0; i--) {
    int64_t from = i < to.rank - in.rank ? 1 : in.dims[i - (to.rank - in.rank)];
    dims[i] = to.dims[i];
    // A size above 1 is not broadcast.
    if (from > 1) RN_TRY(rn_dim_merge(from, to.dims[i], &dims[i]));
  }
  return rn_shape_make(ctx, to.rank, dims, rn_shape_out(ctx, 0));
}

// Reshapes.

static rn_status_t cannot_reshape(int64_t count, rn_shape_t to, int64_t to_count) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "Cannot reshape a tensor with %" PRId64 " elements to shape ", count);
  rn_shape_print(&text, to);
  rn_strbuf_printf(&text, " (%" PRId64 " elements)", to_count);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// The product of the known dims, and the number of unknown ones.
static rn_status_t known_elements(rn_shape_t shape, int64_t* out_count, int* out_unknown) {
  *out_count = 1;
  *out_unknown = 0;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == RN_UNKNOWN) {
      ++*out_unknown;
    } else {
      RN_TRY(rn_ops_multiply(*out_count, shape.dims[i], out_count));
    }
  }
  return RN_OK;
}

// Fills the one unknown dim of |*inout_to| that follows from the number of elements.
static rn_status_t reshape_dims(rn_shape_ctx_t* ctx, rn_shape_t in, rn_shape_t* inout_to) {
  rn_shape_t to = *inout_to;
  if (!rn_shape_has_rank(to) || !rn_shape_has_rank(in)) return RN_OK;
  int64_t count, to_count;
  int unknown, to_unknown;
  RN_TRY(known_elements(in, &count, &unknown));
  RN_TRY(known_elements(to, &to_count, &to_unknown));
  if (to_unknown == 0 && unknown == 0) {
    return count == to_count ? RN_OK : cannot_reshape(count, to, to_count);
  }
  if (to_unknown == 0 && unknown == 1 && count > 0) {
    int64_t unused;
    return rn_ops_divide(to_count, count, &unused);
  }
  if (to_unknown > 0 && unknown == 0 && to_count == 0 && count > 0) {
    return cannot_reshape(count, to, to_count);
  }
  if (to_unknown == 1 && unknown == 0 && to_count > 0) {
    int64_t size;
    RN_TRY(rn_ops_divide(count, to_count, &size));
    for (int i = 0; i < to.rank; i++) {
      if (to.dims[i] == RN_UNKNOWN) return rn_shape_replace_dim(ctx, to, i, size, inout_to);
    }
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_reshape(rn_shape_ctx_t* ctx) {
  rn_shape_t to;
  RN_TRY(rn_shape_from_input(ctx, 1, &to));
  RN_TRY(reshape_dims(ctx, rn_shape_in(ctx, 0), &to));
  *rn_shape_out(ctx, 0) = to;
  const rn_partial_t* value = rn_shape_in_partial(ctx, 0);
  if (value->is_known && (to.rank == 1 || (to.rank == 0 && value->count == 1))) {
    ctx->output_partial = *value;
    ctx->output_partial.is_scalar = to.rank == 0;
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_expand_dims(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), axis_shape = rn_shape_in(ctx, 1);
  const rn_partial_t* axis_value = rn_shape_in_partial(ctx, 1);
  int64_t axis, axis_count;
  rn_shape_input_value(ctx, 1);  // so that errors print the axis
  if (rn_shape_count(axis_shape, &axis_count) && axis_count != RN_UNKNOWN && axis_count != 1 &&
      axis_value->is_known) {
    return rn_invalid_argument("'dim' input must be a tensor with a single value");
  }
  if (!rn_shape_input_scalar(ctx, 1, &axis) || !rn_shape_has_rank(in)) return RN_OK;
  if (axis < -1 - in.rank || axis > in.rank) {
    return rn_invalid_argument("dim %" PRId64 " not in the interval [%d, %d].", axis, -1 - in.rank,
                               in.rank);
  }
  if (axis < 0) axis += in.rank + 1;
  int64_t dims[RN_MAX_RANK + 1];
  for (int i = 0; i <= in.rank; i++)
    dims[i] = i < axis ? in.dims[i] : i == axis ? 1 : in.dims[i - 1];
  RN_TRY(rn_shape_make(ctx, in.rank + 1, dims, rn_shape_out(ctx, 0)));
  if (in.rank == 0 && rn_shape_in_partial(ctx, 0)->is_known) {
    return rn_shape_set_partial(ctx, false, 1, rn_shape_in_partial(ctx, 0)->values);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_squeeze(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  const rn_attr_value_t* axes = rn_shape_attr(ctx, "squeeze_dims");
  if (!rn_shape_has_rank(in)) return RN_OK;
  bool wanted[RN_MAX_RANK] = {false};
  for (int i = 0; i < axes->count; i++) {
    int64_t axis = axes->list_i[i];
    if (axis < -in.rank || axis >= in.rank) {
      return rn_invalid_argument("squeeze_dims[%d] not in [%d,%d).", i, -in.rank, in.rank);
    }
    wanted[axis < 0 ? axis + in.rank : axis] = true;
  }
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < in.rank; i++) {
    if (!axes->count && in.dims[i] == RN_UNKNOWN) return RN_OK;  // it may be 1
    if (wanted[i] && in.dims[i] != RN_UNKNOWN && in.dims[i] != 1) {
      return rn_invalid_argument("Can not squeeze dim[%d], expected a dimension of 1, got %" PRId64,
                                 i, in.dims[i]);
    }
    if (axes->count ? !wanted[i] : in.dims[i] != 1) dims[rank++] = in.dims[i];
  }
  RN_TRY(rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0)));
  const rn_partial_t* value = rn_shape_in_partial(ctx, 0);
  if (value->is_known && value->count == 1 && rank == 0) {
    return rn_shape_set_partial(ctx, true, 1, value->values);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_transpose(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), perm_shape = rn_shape_in(ctx, 1);
  const rn_partial_t* perm = rn_shape_in_partial(ctx, 1);
  RN_TRY(rn_shape_with_rank(ctx, perm_shape, 1, &perm_shape));
  int64_t rank = perm_shape.dims[0];
  if (perm->is_known) rank = perm->count;
  if (!rn_shape_has_rank(in) && rank == RN_UNKNOWN) return RN_OK;
  if (!rn_shape_has_rank(in)) RN_TRY(rn_shape_of_rank(ctx, (int)rank, &in));
  RN_TRY(rn_dim_with_value(rank, in.rank, &rank));
  rn_shape_input_value(ctx, 1);  // so that errors print the permutation
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < in.rank; i++) {
    int64_t axis = perm->is_known ? perm->values[i] : RN_UNKNOWN_VALUE;
    dims[i] = RN_UNKNOWN;
    if (axis == RN_UNKNOWN_VALUE) continue;
    if (axis < -in.rank || axis >= in.rank) {
      return rn_invalid_argument("perm dim %" PRId64 " is out of range of input rank %d", axis,
                                 in.rank);
    }
    dims[i] = in.dims[axis < 0 ? axis + in.rank : axis];
  }
  return rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_bitcast(rn_shape_ctx_t* ctx) {
  rn_dtype_t from = rn_shape_attr(ctx, "T")->type, to = rn_shape_attr(ctx, "type")->type;
  int64_t from_size = (int64_t)rn_dtype_size(from), to_size = (int64_t)rn_dtype_size(to);
  rn_shape_t in = rn_shape_in(ctx, 0);
  if (!from_size || !to_size || !rn_dtype_is_plain(from) || !rn_dtype_is_plain(to)) {
    return rn_invalid_argument(
        "Cannot bitcast types %s to %s because one of the type sizes is zero.", rn_dtype_name(from),
        rn_dtype_name(to));
  }
  if (from_size < to_size) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, in, 1, &in));
    int64_t last = rn_shape_dim(in, -1);
    if (last != RN_UNKNOWN && last != to_size / from_size) {
      return rn_invalid_argument("Cannot bitcast from %d to %d due to shape. %" PRId64
                                 " does not match %" PRId64,
                                 from, to, last, to_size / from_size);
    }
    return rn_shape_has_rank(in) ? rn_shape_slice(ctx, in, 0, -1, rn_shape_out(ctx, 0)) : RN_OK;
  }
  if (from_size == to_size) {
    *rn_shape_out(ctx, 0) = in;
    return RN_OK;
  }
  rn_shape_t more;
  RN_TRY(rn_shape_vector(ctx, from_size / to_size, &more));
  return rn_shape_concat(ctx, in, more, rn_shape_out(ctx, 0));
}
