// Shape functions of gathers, scatters, diagonals and searches.
#include "ops/shapes.h"

// Gathers.

rn_status_t rn_shape_fn_gather(rn_shape_ctx_t* ctx) {
  rn_shape_t params, rest;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &params));
  RN_TRY(rn_shape_slice(ctx, params, 1, INT_MAX, &rest));
  return rn_shape_concat(ctx, rn_shape_in(ctx, 1), rest, rn_shape_out(ctx, 0));
}

// Gathers elements of a partially known vector of sizes.
static rn_status_t gather_partial(rn_shape_ctx_t* ctx) {
  const rn_partial_t *params = rn_shape_in_partial(ctx, 0), *indices = rn_shape_in_partial(ctx, 1);
  bool fits =
      params->is_known && !params->is_scalar && indices->is_known && indices->count <= RN_MAX_RANK;
  if (!fits) return RN_OK;
  int64_t values[RN_MAX_RANK];
  for (int i = 0; i < indices->count; i++) {
    int64_t at = indices->values[i];
    values[i] = at >= 0 && at < params->count ? params->values[at] : RN_UNKNOWN_VALUE;
  }
  return rn_shape_set_partial(ctx, indices->is_scalar, indices->count, values);
}

rn_status_t rn_shape_fn_gather_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t params, indices = rn_shape_in(ctx, 1);
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &params));
  RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  int64_t axis, batch = rn_ops_int(ctx, "batch_dims");
  bool ranks_known = rn_shape_has_rank(params) && rn_shape_has_rank(indices);
  if (!rn_shape_input_scalar(ctx, 2, &axis)) {
    if (!ranks_known) return RN_OK;
    if (batch < 0) batch += indices.rank;
    if (batch < 0 || batch > indices.rank) return RN_OK;
    int64_t rank = params.rank + indices.rank - 1 - batch;
    return rn_shape_of_rank(ctx, rank < 0 ? RN_UNKNOWN : (int)rank, rn_shape_out(ctx, 0));
  }
  RN_TRY(rn_shape_with_rank_at_least(ctx, params, rn_ops_rank_for_axis(axis), &params));
  int batch_rank = rn_ops_rank_for_axis(batch);
  if (batch >= 0) batch_rank--;
  RN_TRY(rn_shape_with_rank_at_least(ctx, indices, batch_rank, &indices));
  if (batch > 0) RN_TRY(rn_shape_with_rank_at_least(ctx, params, batch_rank + 1, &params));
  if (!ranks_known) return RN_OK;
  if (batch < 0) batch += indices.rank;
  if (axis < 0) axis += params.rank;
  rn_shape_t before, chosen, after;
  RN_TRY(rn_shape_slice(ctx, params, 0, axis, &before));
  RN_TRY(rn_shape_slice(ctx, params, axis + 1, INT_MAX, &after));
  RN_TRY(rn_shape_slice(ctx, indices, batch, INT_MAX, &chosen));
  RN_TRY(rn_shape_concat(ctx, before, chosen, &before));
  RN_TRY(rn_shape_concat(ctx, before, after, rn_shape_out(ctx, 0)));
  return params.rank == 1 && batch == 0 ? gather_partial(ctx) : RN_OK;
}

// Makes an error with two shapes: "<text><a><middle><b>".
static rn_status_t shapes_error(const char* text, rn_shape_t a, const char* middle, rn_shape_t b) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_strbuf_append(&buf, rn_str(text));
  rn_shape_print(&buf, a);
  rn_strbuf_append(&buf, rn_str(middle));
  rn_shape_print(&buf, b);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &buf);
}

rn_status_t rn_shape_fn_gather_nd(rn_shape_ctx_t* ctx) {
  rn_shape_t params = rn_shape_in(ctx, 0), indices, before, after;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &indices));
  int64_t depth = rn_shape_dim(indices, -1);
  if (!rn_shape_has_rank(params) || depth == RN_UNKNOWN) return RN_OK;
  if (depth > params.rank) {
    return shapes_error("indices.shape[-1] must be <= params.rank, but saw indices shape: ",
                        indices, " and params shape: ", params);
  }
  RN_TRY(rn_shape_slice(ctx, indices, 0, -1, &before));
  RN_TRY(rn_shape_slice(ctx, params, depth, INT_MAX, &after));
  return rn_shape_concat(ctx, before, after, rn_shape_out(ctx, 0));
}

// Scatters.

typedef struct rn_named_range_t {
  const char* name;
  rn_shape_t shape;
  int from, to;
} rn_named_range_t;

// Prints |range|, whose dims are |part|, the way TensorFlow's messages about scatters do.
static void print_range(rn_strbuf_t* buf, rn_named_range_t range, rn_shape_t part) {
  rn_strbuf_printf(buf, "imensions [%d,%d) of %s[shape=", range.from, range.to, range.name);
  rn_shape_print(buf, range.shape);
  rn_strbuf_append(buf, RN_STR("] = "));
  rn_shape_print(buf, part);
}

static rn_status_t must_match(rn_shape_ctx_t* ctx, rn_named_range_t a, rn_named_range_t b) {
  rn_shape_t part_a, part_b, unused;
  RN_TRY(rn_shape_slice(ctx, a.shape, a.from, a.to, &part_a));
  RN_TRY(rn_shape_slice(ctx, b.shape, b.from, b.to, &part_b));
  rn_status_t status = rn_shape_merge(ctx, part_a, part_b, &unused);
  if (rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_strbuf_append(&buf, RN_STR("D"));
  print_range(&buf, a, part_a);
  rn_strbuf_append(&buf, RN_STR(" must match d"));
  print_range(&buf, b, part_b);
  rn_strbuf_printf(&buf, ": %s", rn_status_message(status));
  rn_status_free(status);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &buf);
}

// Checks indices and updates against the output tensor.
static rn_status_t check_scatter_nd(rn_shape_ctx_t* ctx, rn_shape_t indices, rn_shape_t updates,
                                    rn_shape_t to) {
  RN_TRY(rn_shape_with_rank_at_least(ctx, indices, 1, &indices));
  RN_TRY(rn_shape_with_rank_at_least(ctx, updates, 1, &updates));
  int64_t indices_count, updates_count, to_count;
  bool counted = rn_shape_count(to, &to_count) && rn_shape_count(indices, &indices_count) &&
                 rn_shape_count(updates, &updates_count);
  if (counted && to_count == 0 && (indices_count > 0 || updates_count > 0)) {
    return rn_invalid_argument("Indices and updates specified for empty input");
  }
  int64_t depth = rn_shape_dim(indices, -1);
  if (!rn_shape_has_rank(indices) || !rn_shape_has_rank(updates) || depth == RN_UNKNOWN) {
    return RN_OK;
  }
  int outer = indices.rank - 1;
  RN_TRY(must_match(ctx, (rn_named_range_t){"indices", indices, 0, outer},
                    (rn_named_range_t){"updates", updates, 0, outer}));
  if (!rn_shape_has_rank(to)) return RN_OK;
  if (depth > RN_MAX_RANK) depth = RN_MAX_RANK;
  return must_match(ctx, (rn_named_range_t){"input", to, (int)depth, to.rank},
                    (rn_named_range_t){"updates", updates, outer, updates.rank});
}

rn_status_t rn_shape_fn_scatter_nd(rn_shape_ctx_t* ctx) {
  rn_shape_t to;
  RN_TRY(rn_ops_check_rank(ctx, 2, 1));
  // Compares indices with updates first, because that error does not mention the output shape.
  RN_TRY(check_scatter_nd(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), RN_SHAPE_UNKNOWN));
  RN_TRY(rn_shape_from_input(ctx, 2, &to));
  // Ranks first, because that error does not mention sizes.
  rn_shape_t of_rank;
  RN_TRY(rn_shape_of_rank(ctx, to.rank, &of_rank));
  RN_TRY(check_scatter_nd(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), of_rank));
  RN_TRY(check_scatter_nd(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), to));
  *rn_shape_out(ctx, 0) = to;
  return RN_OK;
}

rn_status_t rn_shape_fn_tensor_scatter(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  RN_TRY(check_scatter_nd(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), in));
  *rn_shape_out(ctx, 0) = in;
  return RN_OK;
}

rn_status_t rn_shape_fn_scatter_nd_update(rn_shape_ctx_t* ctx) {
  RN_TRY(check_scatter_nd(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), rn_shape_in(ctx, 0)));
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_resource_scatter_nd(rn_shape_ctx_t* ctx) {
  const rn_handle_data_t* handle = rn_shape_in_handle(ctx, 0);
  rn_shape_t to = handle->is_set ? handle->shape : RN_SHAPE_UNKNOWN;
  return check_scatter_nd(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), to);
}

// One-hot vectors and diagonals.

rn_status_t rn_shape_fn_one_hot(rn_shape_ctx_t* ctx) {
  int64_t axis = rn_ops_int(ctx, "axis"), depth;
  if (axis < -1) return rn_invalid_argument("axis must be >= -1");
  RN_TRY(rn_ops_size_from_input(ctx, 1, &depth));
  rn_shape_t indices = rn_shape_in(ctx, 0), before, after, middle;
  if (!rn_shape_has_rank(indices)) return RN_OK;
  // Any axis is accepted, modulo the rank.
  axis = (axis % (indices.rank + 1) + indices.rank + 1) % (indices.rank + 1);
  RN_TRY(rn_shape_slice(ctx, indices, 0, axis, &before));
  RN_TRY(rn_shape_slice(ctx, indices, axis, INT_MAX, &after));
  RN_TRY(rn_shape_vector(ctx, depth, &middle));
  RN_TRY(rn_shape_concat(ctx, before, middle, &middle));
  return rn_shape_concat(ctx, middle, after, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_diag(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  return rn_shape_concat(ctx, in, in, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_diag_part(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  if (!rn_shape_has_rank(in)) return RN_OK;
  if (in.rank % 2 || in.rank == 0) {
    return rn_invalid_argument("Input must have even and non-zero rank, input rank is %d", in.rank);
  }
  int half = in.rank / 2;
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < half; i++) RN_TRY(rn_dim_merge(in.dims[i], in.dims[i + half], &dims[i]));
  return rn_shape_make(ctx, half, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_matrix_diag(rn_shape_ctx_t* ctx) {
  rn_shape_t in, last;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  if (!rn_shape_has_rank(in)) return RN_OK;
  RN_TRY(rn_shape_vector(ctx, rn_shape_dim(in, -1), &last));
  return rn_shape_concat(ctx, in, last, rn_shape_out(ctx, 0));
}

// The smaller of two dims; 0 if one is 0, even if the other is unknown.
static int64_t min_dim(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == RN_UNKNOWN || b == RN_UNKNOWN) return RN_UNKNOWN;
  return a < b ? a : b;
}

rn_status_t rn_shape_fn_matrix_diag_part(rn_shape_ctx_t* ctx) {
  rn_shape_t in, before, last;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  if (!rn_shape_has_rank(in)) return RN_OK;
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &before));
  RN_TRY(rn_shape_vector(ctx, min_dim(rn_shape_dim(in, -2), rn_shape_dim(in, -1)), &last));
  return rn_shape_concat(ctx, before, last, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_matrix_set_diag(rn_shape_ctx_t* ctx) {
  rn_shape_t in, diagonal, batch, diagonal_batch, matrix;
  int64_t unused;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &diagonal));
  if (rn_shape_has_rank(in)) {
    RN_TRY(rn_shape_with_rank(ctx, diagonal, in.rank - 1, &diagonal));
    int64_t smaller = min_dim(rn_shape_dim(in, -2), rn_shape_dim(in, -1));
    RN_TRY(rn_dim_merge(smaller, rn_shape_dim(diagonal, -1), &unused));
  }
  *rn_shape_out(ctx, 0) = in;
  if (!rn_shape_has_rank(in) && rn_shape_has_rank(diagonal)) {
    RN_TRY(rn_shape_slice(ctx, diagonal, 0, -1, &batch));
    RN_TRY(rn_shape_of_rank(ctx, 2, &matrix));
    return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
  }
  if (!rn_shape_has_rank(in) || rn_shape_is_full(in)) return RN_OK;
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, in, -2, INT_MAX, &matrix));
  RN_TRY(rn_shape_slice(ctx, diagonal, 0, -1, &diagonal_batch));
  RN_TRY(rn_shape_merge(ctx, batch, diagonal_batch, &batch));
  return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
}

// Searches.

rn_status_t rn_shape_fn_where(rn_shape_ctx_t* ctx) {
  return rn_shape_matrix(ctx, RN_UNKNOWN, rn_shape_in(ctx, 0).rank, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_invert_permutation(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_diff(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return rn_ops_two_vectors(ctx);
}

rn_status_t rn_shape_fn_like_values(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 2));
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_unique(rn_shape_ctx_t* ctx) {
  // With counts, only the kernel checks the rank of the input.
  bool counts = ctx->output_count > 2;
  if (!counts) RN_TRY(rn_ops_check_rank(ctx, 0, 1));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = rn_shape_in(ctx, 0);
  if (counts) *rn_shape_out(ctx, 2) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_unique_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  const rn_partial_t* value = rn_shape_in_partial(ctx, 1);
  rn_shape_input_value(ctx, 1);  // so that errors print the axis
  int64_t count = value->count, places = RN_UNKNOWN, axis;
  if (ctx->output_count > 2) RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 2)));
  RN_TRY(rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0)));
  if (value->is_known) RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  if (value->is_known && count > 1) {
    return rn_invalid_argument("axis does not support input tensors larger than 1 elements.");
  }
  if (value->is_known && count == 0) {
    if (rn_shape_has_rank(in) && in.rank != 1) {
      return rn_invalid_argument("x expects a 1D vector.");
    }
    places = rn_shape_dim(in, 0);
  } else if (rn_shape_input_scalar(ctx, 1, &axis) && rn_shape_has_rank(in)) {
    if (axis < -in.rank || axis >= in.rank) {
      return rn_invalid_argument("axis expects to be in the range [%d, %d)", -in.rank, in.rank);
    }
    places = rn_shape_dim(in, (int)axis);
  }
  return rn_shape_vector(ctx, places, rn_shape_out(ctx, 1));
}

rn_status_t rn_shape_fn_unravel_index(rn_shape_ctx_t* ctx) {
  rn_shape_t indices = rn_shape_in(ctx, 0), dims;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &dims));
  if (!rn_shape_has_rank(indices)) return RN_OK;
  if (indices.rank == 0) return rn_shape_vector(ctx, dims.dims[0], rn_shape_out(ctx, 0));
  int64_t count;
  if (!rn_shape_count(indices, &count)) count = RN_UNKNOWN;
  return rn_shape_matrix(ctx, dims.dims[0], count, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_edit_distance(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < 6; i += 3) {
    rn_shape_t indices, values, shape;
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 2, &indices));
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i + 1), 1, &values));
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i + 2), 1, &shape));
    int64_t count = indices.dims[0], rank = indices.dims[1];
    if (count >= 0 && values.dims[0] >= 0 && count != values.dims[0]) {
      return rn_invalid_argument("Number of elements in index (%" PRId64 ") and values (%" PRId64
                                 ") do not match.",
                                 count, values.dims[0]);
    }
    if (rank >= 0 && shape.dims[0] >= 0 && rank != shape.dims[0]) {
      return rn_invalid_argument("Index rank (%" PRId64 ") and shape rank (%" PRId64
                                 ") do not match.",
                                 rank, shape.dims[0]);
    }
  }
  const rn_partial_t *guess = rn_shape_in_partial(ctx, 2), *truth = rn_shape_in_partial(ctx, 5);
  if (!guess->is_known || !truth->is_known) return RN_OK;
  if (guess->count != truth->count || guess->count == 0) {
    return rn_invalid_argument(
        "Num elements of hypothesis_shape does not match truth_shape: %d vs. %d", guess->count,
        truth->count);
  }
  int64_t dims[RN_MAX_RANK];
  int rank = guess->count - 1;
  for (int i = 0; i < rank; i++) {
    int64_t a = guess->values[i], b = truth->values[i];
    dims[i] = a < 0 || b < 0 ? RN_UNKNOWN : a > b ? a : b;
  }
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}
