// Shape functions of concatenations, stacks, splits and tiles.
#include "ops/shapes.h"

rn_status_t rn_ops_concat(rn_shape_ctx_t* ctx, int first, int last, int axis_input) {
  RN_TRY(rn_ops_check_rank(ctx, axis_input, 0));
  int rank = RN_UNKNOWN;
  for (int i = first; i <= last && rank == RN_UNKNOWN; i++) rank = rn_shape_in(ctx, i).rank;
  if (rank == 0) {
    return rn_invalid_argument("Can't concatenate scalars (use tf.stack instead)");
  }
  int64_t axis;
  rn_shape_t shape;
  for (int i = first; i <= last && rank >= 0; i++) RN_TRY(rn_ops_check_rank(ctx, i, rank));
  if (!rn_shape_input_scalar(ctx, axis_input, &axis)) {
    return rn_shape_of_rank(ctx, rank, rn_shape_out(ctx, 0));
  }
  // A negative axis counts from the end, so the input needs at least that many dims.
  int least = rn_ops_rank_for_axis(axis);
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, first), least, &shape));
  if (axis < 0 && rank == RN_UNKNOWN) return RN_OK;
  rn_shape_t before = RN_SHAPE_UNKNOWN, after = RN_SHAPE_UNKNOWN;
  int64_t sum = 0;
  for (int i = first; i <= last; i++) {
    shape = rn_shape_in(ctx, i);
    if (rank >= 0) RN_TRY(rn_shape_with_rank(ctx, shape, rank, &shape));
    RN_TRY(rn_shape_with_rank_at_least(ctx, shape, least, &shape));
    rn_shape_t part_before = RN_SHAPE_UNKNOWN, part_after = RN_SHAPE_UNKNOWN;
    int64_t at = axis < 0 ? axis + rank : axis;
    if (rn_shape_has_rank(shape)) {
      RN_TRY(rn_shape_slice(ctx, shape, 0, at, &part_before));
      RN_TRY(rn_shape_slice(ctx, shape, at + 1, INT_MAX, &part_after));
    }
    RN_TRY(rn_shape_merge(ctx, before, part_before, &before));
    RN_TRY(rn_shape_merge(ctx, after, part_after, &after));
    RN_TRY(rn_ops_add(sum, rn_shape_dim(shape, (int)at), &sum));
  }
  rn_shape_t middle;
  RN_TRY(rn_shape_vector(ctx, sum, &middle));
  RN_TRY(rn_shape_concat(ctx, before, middle, &middle));
  return rn_shape_concat(ctx, middle, after, rn_shape_out(ctx, 0));
}

// Concatenates the partial values of inputs |first| … |last|, vectors or scalars. If |are_scalars|,
// all are scalars, even those of unknown rank.
static rn_status_t join_partials(rn_shape_ctx_t* ctx, int first, int last, bool are_scalars) {
  int64_t values[RN_MAX_RANK];
  int count = 0;
  bool any = false;
  for (int i = first; i <= last; i++) {
    const rn_partial_t* part = rn_shape_in_partial(ctx, i);
    bool is_scalar = are_scalars || rn_shape_in(ctx, i).rank == 0;
    int64_t size = part->is_known ? part->count
                   : is_scalar    ? 1
                                  : rn_shape_dim(rn_shape_in(ctx, i), 0);
    if (size < 0 || size > RN_MAX_RANK - count || rn_shape_in(ctx, i).rank > 1) return RN_OK;
    for (int64_t j = 0; j < size; j++) {
      values[count] = part->is_known ? part->values[j] : RN_UNKNOWN_VALUE;
      any = any || values[count] != RN_UNKNOWN_VALUE;
      count++;
    }
  }
  if (!any && count) return RN_OK;
  return rn_shape_set_partial(ctx, false, count, values);
}

static bool is_int(rn_shape_ctx_t* ctx, int i) {
  return rn_shape_in_type(ctx, i) == RN_INT32 || rn_shape_in_type(ctx, i) == RN_INT64;
}

rn_status_t rn_shape_fn_concat(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_concat(ctx, 1, ctx->input_count - 1, 0));
  if (rn_shape_out(ctx, 0)->rank != 1 || !is_int(ctx, 1)) return RN_OK;
  return join_partials(ctx, 1, ctx->input_count - 1, false);
}

rn_status_t rn_shape_fn_concat_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_concat(ctx, 0, ctx->input_count - 2, ctx->input_count - 1));
  if (rn_shape_out(ctx, 0)->rank != 1 || !is_int(ctx, 0)) return RN_OK;
  return join_partials(ctx, 0, ctx->input_count - 2, false);
}

rn_status_t rn_shape_fn_concat_offset(rn_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->input_count; i++) *rn_shape_out(ctx, i - 1) = rn_shape_in(ctx, i);
  return RN_OK;
}

rn_status_t rn_shape_fn_parallel_concat(rn_shape_ctx_t* ctx) {
  rn_shape_t shape, row;
  RN_TRY(rn_ops_attr_shape(ctx, "shape", &shape));
  if (!rn_shape_is_full(shape)) return rn_invalid_argument("shape attr must be fully defined.");
  RN_TRY(rn_shape_replace_dim(ctx, shape, 0, 1, &row));
  for (int i = 0; i < ctx->input_count; i++) {
    rn_shape_t in = rn_shape_in(ctx, i);
    if (!rn_shape_is_full(in)) {
      return rn_invalid_argument("All input shapes must be fully defined.");
    }
    if (rn_shape_dim(in, 0) != 1) {
      return rn_invalid_argument("Size of first dimension must be 1.");
    }
    RN_TRY(rn_status_annotate(rn_shape_merge(ctx, in, row, &row),
                              "\n\tFrom merging shape %d with other shapes.", i));
  }
  *rn_shape_out(ctx, 0) = shape;
  return RN_OK;
}

static rn_status_t bad_axis(int64_t axis, int rank) {
  return rn_invalid_argument("Invalid axis: %" PRId64 "; must be in [%d,%d)", axis, -rank, rank);
}

rn_status_t rn_shape_fn_pack(rn_shape_ctx_t* ctx) {
  rn_shape_t part;
  RN_TRY(rn_ops_merge_inputs(ctx, 0, ctx->input_count - 1, &part));
  if (rn_shape_in_type(ctx, 0) == RN_VARIANT)
    *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  if (!rn_shape_has_rank(part)) return RN_OK;
  int64_t axis = rn_ops_int(ctx, "axis");
  int rank = part.rank + 1;
  if (axis < -rank || axis >= rank) return bad_axis(axis, rank);
  if (axis < 0) axis += rank;
  int64_t dims[RN_MAX_RANK + 1];
  for (int i = 0; i < rank; i++) {
    dims[i] = i < axis ? part.dims[i] : i == axis ? ctx->input_count : part.dims[i - 1];
  }
  RN_TRY(rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0)));
  return rank == 1 && is_int(ctx, 0) ? join_partials(ctx, 0, ctx->input_count - 1, true) : RN_OK;
}

rn_status_t rn_shape_fn_unpack(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  if (!rn_shape_has_rank(in)) return RN_OK;
  int64_t axis = rn_ops_int(ctx, "axis"), unused;
  if (axis < -in.rank || axis >= in.rank) return bad_axis(axis, in.rank);
  if (axis < 0) axis += in.rank;
  RN_TRY(rn_dim_with_value(in.dims[axis], ctx->output_count, &unused));
  int64_t dims[RN_MAX_RANK];
  for (int i = 0, j = 0; i < in.rank; i++) {
    if (i != axis) dims[j++] = in.dims[i];
  }
  rn_shape_t part;
  RN_TRY(rn_shape_make(ctx, in.rank - 1, dims, &part));
  for (int i = 0; i < ctx->output_count; i++) *rn_shape_out(ctx, i) = part;
  const rn_partial_t* value = rn_shape_in_partial(ctx, 0);
  if (value->is_known && in.rank == 1 && value->count > 0) {
    return rn_shape_set_partial(ctx, true, 1, value->values);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_split(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 1), part;
  int64_t axis, size, count = rn_ops_int(ctx, "num_split");
  RN_TRY(rn_ops_axis_from_input(ctx, 0, in.rank, &axis));
  if (axis == RN_UNKNOWN) {
    RN_TRY(rn_shape_of_rank(ctx, in.rank, &part));
  } else if (!rn_shape_has_rank(in)) {
    part = RN_SHAPE_UNKNOWN;
  } else {
    RN_TRY(
        rn_status_annotate(rn_ops_divide(in.dims[axis], count, &size),
                           "\n\tNumber of ways to split should evenly divide the split dimension"));
    RN_TRY(rn_shape_replace_dim(ctx, in, (int)axis, size, &part));
  }
  for (int i = 0; i < ctx->output_count; i++) *rn_shape_out(ctx, i) = part;
  return RN_OK;
}

static rn_status_t bad_split(int64_t size, const rn_partial_t* parts) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "can't split axis of size %" PRId64 " into pieces of size [", size);
  for (int i = 0; i < parts->count; i++) {
    rn_strbuf_printf(&text, "%s%" PRId64, i ? "," : "", parts->values[i]);
  }
  rn_strbuf_append(&text, RN_STR("]"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// The sizes of SplitV's parts along an axis of |size|; a -1 among them gets the remainder.
static rn_status_t split_sizes(const rn_partial_t* parts, int64_t size, int64_t* out_sizes) {
  int64_t sum = 0;
  int rest = -1;
  for (int i = 0; i < parts->count; i++) {
    out_sizes[i] = parts->values[i];
    if (out_sizes[i] == RN_UNKNOWN_VALUE) {
      for (int j = 0; j < parts->count; j++) {
        out_sizes[j] = parts->values[j] < 0 ? RN_UNKNOWN : parts->values[j];
      }
      return RN_OK;
    }
    if (out_sizes[i] == -1) {
      if (rest >= 0) {
        return rn_invalid_argument("size_splits can only have one -1");
      }
      rest = i;
    } else if (out_sizes[i] >= 0) {
      RN_TRY(rn_ops_add(sum, out_sizes[i], &sum));
    }
  }
  if (rest >= 0 && size != RN_UNKNOWN) out_sizes[rest] = size - sum;
  for (int i = 0; i < parts->count; i++) {
    if (out_sizes[i] < 0 && !(i == rest && size == RN_UNKNOWN)) {
      return rn_invalid_argument("Split size at index %d must be >= 0. Got: %" PRId64, i,
                                 out_sizes[i]);
    }
  }
  if (rest < 0 && size != RN_UNKNOWN && sum != size) return bad_split(size, parts);
  return RN_OK;
}

rn_status_t rn_shape_fn_split_v(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), sizes_shape;
  int count = ctx->output_count;
  int64_t axis, unused;
  rn_shape_input_value(ctx, 1);  // so that errors print the sizes
  RN_TRY(rn_ops_axis_from_input(ctx, 2, in.rank, &axis));
  const rn_partial_t* parts = rn_shape_in_partial(ctx, 1);
  if (count == 1 && axis == RN_UNKNOWN) {
    *rn_shape_out(ctx, 0) = in;
    return RN_OK;
  }
  rn_shape_t part;
  if (axis == RN_UNKNOWN || !parts->is_known || !rn_shape_has_rank(in)) {
    RN_TRY(rn_shape_of_rank(ctx, in.rank, &part));
    if (axis != RN_UNKNOWN && rn_shape_has_rank(in)) {
      RN_TRY(rn_shape_replace_dim(ctx, in, (int)axis, RN_UNKNOWN, &part));
    }
    for (int i = 0; i < count; i++) *rn_shape_out(ctx, i) = part;
    return RN_OK;
  }
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &sizes_shape));
  if (parts->count != count) {
    return rn_invalid_argument("Length of size_splits should be equal to num_outputs");
  }
  RN_TRY(rn_dim_with_value(sizes_shape.dims[0], count, &unused));
  int64_t* sizes;
  RN_TRY(RN_ARENA_ARRAY(ctx->arena, (size_t)count, &sizes));
  RN_TRY(split_sizes(parts, in.dims[axis], sizes));
  for (int i = 0; i < count; i++) {
    RN_TRY(rn_shape_replace_dim(ctx, in, (int)axis, sizes[i], rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_tile(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), times, count;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &count));
  if (rn_shape_has_rank(in) && count.dims[0] >= 0 && count.dims[0] != in.rank) {
    return rn_invalid_argument("Shape must be rank %d but is rank %" PRId64, in.rank,
                               count.dims[0]);
  }
  RN_TRY(rn_shape_from_input(ctx, 1, &times));
  if (!rn_shape_has_rank(times) || !rn_shape_has_rank(in)) {
    int rank = rn_shape_has_rank(in) ? in.rank : times.rank;
    return rn_shape_of_rank(ctx, rank, rn_shape_out(ctx, 0));
  }
  RN_TRY(rn_shape_with_rank(ctx, times, in.rank, &times));
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < in.rank; i++) RN_TRY(rn_ops_multiply(in.dims[i], times.dims[i], &dims[i]));
  return rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_tile_grad(rn_shape_ctx_t* ctx) { return rn_shape_fn_unknown(ctx); }
