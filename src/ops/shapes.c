// Helpers for shape functions, and shape functions that several families use.
#include "ops/shapes.h"

rn_status_t rn_ops_attr_shape(rn_shape_ctx_t* ctx, const char* name, rn_shape_t* out) {
  rn_shape_t shape = rn_shape_attr(ctx, name)->shape;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < RN_UNKNOWN) {
      return rn_invalid_argument("Shape has a dimension of size %" PRId64, shape.dims[i]);
    }
  }
  return rn_shape_with_rank_at_most(ctx, shape, RN_MAX_RANK, out);
}

rn_status_t rn_ops_two_vectors(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

rn_status_t rn_ops_output_handle(rn_shape_ctx_t* ctx, const char* dtype, const char* shape) {
  rn_handle_data_t data = {.is_set = true, .dtype = rn_shape_attr(ctx, dtype)->type};
  RN_TRY(rn_ops_attr_shape(ctx, shape, &data.shape));
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  *rn_shape_out_handle(ctx, 0) = data;
  return RN_OK;
}

rn_status_t rn_ops_check_rank(rn_shape_ctx_t* ctx, int i, int rank) {
  rn_shape_t unused;
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, i), rank, &unused);
}

rn_status_t rn_ops_check_vector(rn_shape_ctx_t* ctx, int i, int64_t size) {
  rn_shape_t vector;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &vector));
  return rn_dim_with_value(vector.dims[0], size, &unused);
}

rn_status_t rn_ops_check_scalars(rn_shape_ctx_t* ctx, int first, int last) {
  for (int i = first; i <= last; i++) RN_TRY(rn_ops_check_rank(ctx, i, 0));
  return RN_OK;
}

// Checks only a constant; the kernel checks the rank of a value computed at run time.
static rn_status_t check_known_scalar(rn_shape_ctx_t* ctx, int i) {
  if (!rn_shape_in_partial(ctx, i)->is_known || rn_shape_in(ctx, i).rank <= 0) return RN_OK;
  return rn_invalid_argument("Input must be scalar but has rank %d", rn_shape_in(ctx, i).rank);
}

rn_status_t rn_ops_size_from_input(rn_shape_ctx_t* ctx, int i, int64_t* out_size) {
  int64_t value;
  *out_size = RN_UNKNOWN;
  rn_shape_input_value(ctx, i);  // so that errors print it
  RN_TRY(check_known_scalar(ctx, i));
  if (!rn_shape_input_scalar(ctx, i, &value)) return RN_OK;
  if (value < 0) {
    return rn_invalid_argument(
        "Dimension size, given by scalar input %d, must be non-negative but is %" PRId64, i, value);
  }
  *out_size = value;
  return RN_OK;
}

rn_status_t rn_ops_axis_from_input(rn_shape_ctx_t* ctx, int i, int rank, int64_t* out_axis) {
  int64_t value;
  *out_axis = RN_UNKNOWN;
  rn_shape_input_value(ctx, i);  // so that errors print it
  RN_TRY(check_known_scalar(ctx, i));
  if (!rn_shape_input_scalar(ctx, i, &value)) return RN_OK;
  if (rank < 0) {
    *out_axis = value < 0 ? RN_UNKNOWN : value;
    return RN_OK;
  }
  if (value < -rank || value >= rank) {
    return rn_invalid_argument("Dimension size, given by scalar input %" PRId64
                               " must be in range [-%d, %d)",
                               value, rank, rank);
  }
  *out_axis = value < 0 ? value + rank : value;
  return RN_OK;
}

rn_status_t rn_ops_merge_inputs(rn_shape_ctx_t* ctx, int first, int last, rn_shape_t* out) {
  rn_shape_t merged = rn_shape_in(ctx, last);
  for (int i = last - 1; i >= first; i--) {
    rn_status_t status = rn_shape_merge(ctx, rn_shape_in(ctx, i), merged, &merged);
    RN_TRY(rn_status_annotate(status, "\n\tFrom merging shape %d with other shapes.", i));
  }
  *out = merged;
  return RN_OK;
}

rn_status_t rn_ops_merge_prefix(rn_shape_ctx_t* ctx, rn_shape_t prefix, rn_shape_t* inout_shape) {
  if (!rn_shape_has_rank(*inout_shape) || !rn_shape_has_rank(prefix)) return RN_OK;
  RN_TRY(rn_shape_with_rank_at_least(ctx, *inout_shape, prefix.rank, inout_shape));
  rn_shape_t start, rest;
  RN_TRY(rn_shape_slice(ctx, *inout_shape, 0, prefix.rank, &start));
  RN_TRY(rn_shape_slice(ctx, *inout_shape, prefix.rank, INT_MAX, &rest));
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < prefix.rank; i++) {
    RN_TRY(rn_dim_merge(start.dims[i], prefix.dims[i], &dims[i]));
  }
  RN_TRY(rn_shape_make(ctx, prefix.rank, dims, &start));
  return rn_shape_concat(ctx, start, rest, inout_shape);
}

rn_status_t rn_ops_divide(int64_t dim, int64_t by, int64_t* out) {
  if (by == 1 || dim == RN_UNKNOWN || by == RN_UNKNOWN) {
    *out = by == 1 ? dim : RN_UNKNOWN;
    return RN_OK;
  }
  if (by <= 0) return rn_invalid_argument("Divisor must be positive but is %" PRId64, by);
  if (dim % by) {
    return rn_invalid_argument(
        "Dimension size must be evenly divisible by %" PRId64 " but is %" PRId64, by, dim);
  }
  *out = dim / by;
  return RN_OK;
}

rn_status_t rn_ops_add(int64_t a, int64_t b, int64_t* out) {
  if (a == 0 || b == 0) {
    *out = a == 0 ? b : a;
  } else if (a == RN_UNKNOWN || b == RN_UNKNOWN) {
    *out = RN_UNKNOWN;
  } else if (!rn_add_i64_ok(a, b, out) || *out < 0) {
    return rn_invalid_argument("Dimension size overflow from adding %" PRId64 " and %" PRId64, a,
                               b);
  }
  return RN_OK;
}

rn_status_t rn_ops_multiply(int64_t a, int64_t b, int64_t* out) {
  if (a == 0 || b == 0) {
    *out = 0;
  } else if (a == 1 || b == 1) {
    *out = a == 1 ? b : a;
  } else if (a == RN_UNKNOWN || b == RN_UNKNOWN) {
    *out = RN_UNKNOWN;
  } else if (!rn_mul_i64_ok(a, b, out) || *out < 0) {
    return rn_invalid_argument(
        "Negative dimension size caused by overflow when multiplying %" PRId64 " and %" PRId64, a,
        b);
  }
  return RN_OK;
}

rn_status_t rn_ops_window(int64_t size, int64_t window, int64_t dilation, int64_t stride,
                          rn_str_t padding, int64_t before, int64_t after, int64_t* out) {
  if (stride <= 0) return rn_invalid_argument("Stride must be > 0, but got %" PRId64, stride);
  if (dilation < 1) {
    return rn_invalid_argument("Dilation rate must be >= 1, but got %" PRId64, dilation);
  }
  *out = RN_UNKNOWN;
  if (rn_str_is(padding, "SAME")) {
    if (size != RN_UNKNOWN) *out = size / stride + (size % stride != 0);
    return RN_OK;
  }
  if (size == RN_UNKNOWN || window == RN_UNKNOWN) return RN_OK;
  int64_t reach, padded = size, span;
  bool fits = !__builtin_sub_overflow(window, 1, &reach) &&
              rn_mul_i64_ok(reach, dilation, &reach) && rn_add_i64_ok(reach, 1, &reach);
  if (rn_str_is(padding, "EXPLICIT")) {
    fits = fits && rn_add_i64_ok(padded, before, &padded) && rn_add_i64_ok(padded, after, &padded);
  }
  fits = fits && !__builtin_sub_overflow(padded, reach, &span) && span != INT64_MAX;
  if (!fits) return rn_invalid_argument("Window size, dilation or padding is too large");
  if (span < 0) {
    return rn_invalid_argument(
        "Negative dimension size caused by subtracting %" PRId64 " from %" PRId64, reach, padded);
  }
  *out = span / stride + 1;
  return RN_OK;
}

rn_status_t rn_shape_fn_like_input1(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 1);
  return RN_OK;
}

rn_status_t rn_shape_fn_merge2(rn_shape_ctx_t* ctx) {
  return rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0));
}

// V1 handles are a pair of strings: container and name.
rn_status_t rn_shape_fn_vector2(rn_shape_ctx_t* ctx) {
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_scalar_to_scalar(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_shape_fn_scalar(ctx);
}
