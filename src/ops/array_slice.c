// Shape functions of slices, paddings and reversals.
#include "ops/shapes.h"

// Slice.

rn_status_t rn_shape_fn_slice(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), begin, sizes;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &begin));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &sizes));
  RN_TRY(rn_shape_merge(ctx, begin, sizes, &begin));
  const rn_partial_t *from = rn_shape_in_partial(ctx, 1), *count = rn_shape_in_partial(ctx, 2);
  int64_t rank = begin.dims[0];
  if (rank > RN_MAX_RANK) rank = RN_MAX_RANK + 1;
  if (rank >= 0) RN_TRY(rn_shape_with_rank(ctx, in, (int)rank, &in));
  rn_shape_t unused;
  RN_TRY(rn_shape_from_input(ctx, 1, &unused));
  RN_TRY(rn_shape_from_input(ctx, 2, &unused));
  if (!count->is_known || !rn_shape_has_rank(in)) {
    return rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0));
  }
  if (count->count != in.rank || (from->is_known && from->count != in.rank)) return RN_OK;
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < in.rank; i++) {
    int64_t start = from->is_known ? from->values[i] : RN_UNKNOWN_VALUE;
    dims[i] = count->values[i];
    bool to_end = dims[i] == -1;
    if (dims[i] < 0) dims[i] = RN_UNKNOWN;
    if (!to_end || start == RN_UNKNOWN_VALUE || in.dims[i] == RN_UNKNOWN) continue;
    if (start > in.dims[i]) {
      return rn_invalid_argument("Negative dimension size caused by subtracting %" PRId64
                                 " from %" PRId64,
                                 start, in.dims[i]);
    }
    dims[i] = start < 0 ? RN_UNKNOWN : in.dims[i] - start;
  }
  RN_TRY(rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0)));
  const rn_partial_t* value = rn_shape_in_partial(ctx, 0);
  if (!value->is_known || !from->is_known || in.rank != 1 || dims[0] < 0) return RN_OK;
  int64_t start = from->values[0];
  if (start < 0 || start > value->count || dims[0] > value->count - start) return RN_OK;
  return rn_shape_set_partial(ctx, false, (int)dims[0], value->values + start);
}

// StridedSlice: the specification has one entry for each item of x[a:b:c, newaxis, ..., i]. It is
// first expanded to the input's axes; then the size of each axis is computed.

enum { FROM_NEW_AXIS = -1, FROM_SHRUNK_AXIS = -2 };

typedef struct rn_axis_slice_t {
  int64_t begin, end, stride;
  bool has_begin, has_end;  // values known
  bool begin_masked, end_masked, shrinks;
} rn_axis_slice_t;

typedef struct rn_dense_slice_t {
  int rank;  // of the input
  rn_axis_slice_t axes[RN_MAX_RANK];
  int out_count;
  int out_from[2 * RN_MAX_RANK];  // an input axis, or one of the marks above
} rn_dense_slice_t;

static bool mask_bit(const rn_shape_ctx_t* ctx, const char* name, int i) {
  return i < 32 && (rn_ops_int(ctx, name) >> i & 1);
}

static void spread_ellipsis(rn_dense_slice_t* dense, int* inout_axis, int end) {
  for (; *inout_axis < end && *inout_axis < dense->rank; ++*inout_axis) {
    dense->axes[*inout_axis] =
        (rn_axis_slice_t){.stride = 1, .begin_masked = true, .end_masked = true};
    dense->out_from[dense->out_count++] = *inout_axis;
  }
}

static void read_bound(const rn_partial_t* values, int i, int64_t* out, bool* out_known) {
  *out_known = values->is_known && i < values->count && values->values[i] != RN_UNKNOWN_VALUE;
  *out = *out_known ? values->values[i] : 0;
}

// |first| is the input number of begin; end and strides follow.
static rn_status_t make_dense(rn_shape_ctx_t* ctx, int first, int rank, rn_dense_slice_t* dense) {
  const rn_partial_t* strides = rn_shape_in_partial(ctx, first + 2);
  int count = strides->count, axis = 0, new_after_ellipsis = 0;
  uint64_t ellipsis = (uint64_t)rn_ops_int(ctx, "ellipsis_mask");
  if (ellipsis & (ellipsis - 1)) {
    return rn_invalid_argument("Multiple ellipses in slice spec not allowed");
  }
  bool ellipsis_seen = false;
  for (int i = 0; i < count; i++) {
    if (ellipsis_seen && mask_bit(ctx, "new_axis_mask", i)) new_after_ellipsis++;
    if (mask_bit(ctx, "ellipsis_mask", i)) ellipsis_seen = true;
  }
  dense->rank = rank;
  dense->out_count = 0;
  int spec_count =
      ellipsis_seen ? count : count + 1;  // an ellipsis at the end is implied if none was given
  for (int i = 0; i < count; i++) {
    if (mask_bit(ctx, "ellipsis_mask", i)) {
      spread_ellipsis(dense, &axis, rank - (spec_count - i) + 1 + new_after_ellipsis);
    } else if (mask_bit(ctx, "new_axis_mask", i)) {
      dense->out_from[dense->out_count++] = FROM_NEW_AXIS;
    } else {
      if (rank == 0) return rn_invalid_argument("Attempting to slice scalar input.");
      if (axis == rank) {
        return rn_invalid_argument("Index out of range using input dim %d; input has only %d dims",
                                   axis, rank);
      }
      rn_axis_slice_t* slice = &dense->axes[axis];
      bool stride_known;
      read_bound(rn_shape_in_partial(ctx, first), i, &slice->begin, &slice->has_begin);
      read_bound(rn_shape_in_partial(ctx, first + 1), i, &slice->end, &slice->has_end);
      read_bound(strides, i, &slice->stride, &stride_known);
      slice->begin_masked = mask_bit(ctx, "begin_mask", i);
      slice->end_masked = mask_bit(ctx, "end_mask", i);
      slice->shrinks = mask_bit(ctx, "shrink_axis_mask", i);
      dense->out_from[dense->out_count++] = slice->shrinks ? FROM_SHRUNK_AXIS : axis;
      axis++;
    }
  }
  spread_ellipsis(dense, &axis, rank);
  return RN_OK;
}

// Clamps a bound to [0, dim], or to [-1, dim - 1] for negative strides.
static int64_t clamp_bound(int64_t bound, int64_t dim, bool forward) {
  int64_t low = forward ? 0 : -1, high = forward ? dim : dim - 1;
  if (bound < 0) bound = bound < -dim ? -1 : bound + dim;
  return bound < low ? low : bound > high ? high : bound;
}

// The size of one sliced axis; |slice|'s bounds become positions in the input.
static rn_status_t slice_axis(rn_shape_ctx_t* ctx, rn_axis_slice_t* slice, int axis, int64_t dim,
                              int64_t* out_size) {
  if (slice->stride == 0) return rn_invalid_argument("strides[%d] must be non-zero", axis);
  *out_size = slice->shrinks ? 1 : RN_UNKNOWN;
  if (dim == RN_UNKNOWN) return RN_OK;
  if (slice->shrinks && slice->stride <= 0) {
    return rn_invalid_argument("only stride 1 allowed on non-range indexing.");
  }
  if (slice->shrinks) {
    if (!slice->has_begin) return RN_OK;
    for (int i = 1; i <= 2; i++) rn_shape_input_value(ctx, i);  // so that errors print the bounds
    int64_t at = slice->begin < 0 ? slice->begin + dim : slice->begin;
    if (at < 0 || at >= dim) {
      return rn_invalid_argument("slice index %" PRId64 " of dimension %d out of bounds.", at,
                                 axis);
    }
    slice->begin = at;
    return RN_OK;
  }
  bool forward = slice->stride > 0;
  if ((!slice->has_begin && !slice->begin_masked) || (!slice->has_end && !slice->end_masked)) {
    return RN_OK;
  }
  slice->begin =
      slice->begin_masked ? (forward ? 0 : dim - 1) : clamp_bound(slice->begin, dim, forward);
  slice->end = slice->end_masked ? (forward ? dim : -1) : clamp_bound(slice->end, dim, forward);
  int64_t length = slice->end - slice->begin;
  if (length == 0 || (length < 0) == forward) {
    *out_size = 0;
  } else {
    *out_size = length / slice->stride + (length % slice->stride != 0);
  }
  return RN_OK;
}

// The partial value of a slice of a vector of sizes.
static rn_status_t slice_partial(rn_shape_ctx_t* ctx, const rn_axis_slice_t* slice, int64_t size) {
  const rn_partial_t* in = rn_shape_in_partial(ctx, 0);
  if (!in->is_known || in->is_scalar || size < 0 || size > RN_MAX_RANK) return RN_OK;
  if (slice->shrinks && !slice->has_begin) return RN_OK;
  int64_t values[RN_MAX_RANK];
  for (int64_t i = 0; i < size; i++) {
    int64_t at = slice->begin + i * slice->stride;
    if (at < 0 || at >= in->count) return RN_OK;
    values[i] = in->values[at];
  }
  return rn_shape_set_partial(ctx, slice->shrinks, (int)size, values);
}

// The common length of begin, end and strides.
static rn_status_t spec_length(rn_shape_ctx_t* ctx, int first, rn_shape_t* out) {
  rn_shape_t end, strides;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, first), 1, out));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, first + 1), 1, &end));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, first + 2), 1, &strides));
  RN_TRY(rn_shape_merge(ctx, *out, end, out));
  return rn_shape_merge(ctx, *out, strides, out);
}

rn_status_t rn_shape_fn_strided_slice(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), length;
  RN_TRY(spec_length(ctx, 1, &length));
  const rn_partial_t* strides = rn_shape_in_partial(ctx, 3);
  rn_shape_input_value(ctx, 3);  // so that errors print the strides
  if (!rn_shape_has_rank(in) || !strides->is_known || strides->count > RN_MAX_RANK) return RN_OK;
  for (int i = 0; i < strides->count; i++) {
    if (strides->values[i] == RN_UNKNOWN_VALUE) return RN_OK;
  }
  rn_dense_slice_t* dense;
  RN_TRY(RN_ARENA_NEW(ctx->arena, &dense));
  RN_TRY(make_dense(ctx, 1, in.rank, dense));
  int64_t sizes[RN_MAX_RANK], dims[2 * RN_MAX_RANK];
  for (int i = 0; i < in.rank; i++) {
    RN_TRY(slice_axis(ctx, &dense->axes[i], i, in.dims[i], &sizes[i]));
  }
  int rank = 0;
  for (int i = 0; i < dense->out_count; i++) {
    int from = dense->out_from[i];
    if (from >= 0) dims[rank++] = sizes[from];
    if (from == FROM_NEW_AXIS) dims[rank++] = 1;
  }
  RN_TRY(rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0)));
  if (in.rank == 1 && dense->out_count == 1) {
    return slice_partial(ctx, &dense->axes[0], sizes[0]);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_strided_slice_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 0, rn_shape_out(ctx, 0));
}

// Paddings.

static rn_status_t pad(rn_shape_ctx_t* ctx, bool removes) {
  rn_shape_t in = rn_shape_in(ctx, 0), paddings;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &paddings));
  if (!removes) RN_TRY(rn_dim_with_value(paddings.dims[1], 2, &unused));
  int64_t rank = paddings.dims[0];
  if (rank > RN_MAX_RANK) rank = RN_MAX_RANK + 1;
  if (rank >= 0) RN_TRY(rn_shape_with_rank(ctx, in, (int)rank, &in));
  if (removes && rn_shape_has_rank(in)) {
    rn_shape_t expected;
    RN_TRY(rn_shape_matrix(ctx, in.rank, 2, &expected));
    RN_TRY(rn_shape_merge(ctx, paddings, expected, &paddings));
  }
  const rn_tensor_t* values = rn_shape_input_value(ctx, 1);
  if (!values || values->rank != 2 || !rn_shape_has_rank(in) || values->count != 2 * in.rank) {
    return rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0));
  }
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < in.rank; i++) {
    int64_t before = rn_tensor_int(values, 2 * i), after = rn_tensor_int(values, 2 * i + 1), sum;
    if (before < 0 || after < 0) return rn_invalid_argument("Paddings must be non-negative");
    RN_TRY(rn_ops_add(before, after, &sum));
    if (!removes) {
      RN_TRY(rn_ops_add(in.dims[i], sum, &dims[i]));
    } else if (in.dims[i] != RN_UNKNOWN && in.dims[i] < sum) {
      return rn_invalid_argument("Negative dimension size caused by subtracting %" PRId64
                                 " from %" PRId64,
                                 sum, in.dims[i]);
    } else {
      dims[i] = in.dims[i] == RN_UNKNOWN && sum ? RN_UNKNOWN : in.dims[i] - sum;
    }
  }
  return rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_pad(rn_shape_ctx_t* ctx) { return pad(ctx, false); }
rn_status_t rn_shape_fn_mirror_pad_grad(rn_shape_ctx_t* ctx) { return pad(ctx, true); }

// Reversals.

static rn_status_t too_many_axes(void) {
  return rn_invalid_argument("reverse does not work on tensors with more than 8 dimensions");
}

rn_status_t rn_shape_fn_reverse(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), marks;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &marks));
  int64_t rank = marks.dims[0];
  if (rank > 8) return too_many_axes();
  if (rank >= 0) RN_TRY(rn_shape_with_rank(ctx, in, (int)rank, &in));
  *rn_shape_out(ctx, 0) = in;
  return RN_OK;
}

rn_status_t rn_shape_fn_reverse_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  const rn_partial_t* axes = rn_shape_in_partial(ctx, 1);
  rn_shape_input_value(ctx, 1);  // so that errors print the axes
  *rn_shape_out(ctx, 0) = in;
  if (!rn_shape_has_rank(in)) return RN_OK;
  if (in.rank > 8) return too_many_axes();
  bool seen[8] = {false};
  for (int i = 0; axes->is_known && i < axes->count; i++) {
    int64_t axis = axes->values[i];
    if (axis == RN_UNKNOWN_VALUE) continue;
    int64_t place = axis < 0 ? axis + in.rank : axis;
    if (place < 0 || place >= in.rank) {
      return rn_invalid_argument("'axis'[%d] = %" PRId64 " is out of valid range [0, %d", i, axis,
                                 in.rank - 1);
    }
    if (seen[place]) {
      return rn_invalid_argument("axis %" PRId64 " specified more than once.", place);
    }
    seen[place] = true;
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_reverse_sequence(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), lengths;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &lengths));
  int64_t sequence = rn_ops_int(ctx, "seq_dim"), batch = rn_ops_int(ctx, "batch_dim"), size;
  if (!rn_shape_has_rank(in)) return RN_OK;
  if (batch >= in.rank || batch < -in.rank) {
    return rn_invalid_argument("batch_dim must be < input rank: %" PRId64 " vs. %d", batch,
                               in.rank);
  }
  if (sequence >= in.rank || sequence < -in.rank) {
    return rn_invalid_argument("seq_dim must be < input rank: %" PRId64 " vs. %d", sequence,
                               in.rank);
  }
  RN_TRY(rn_dim_merge(rn_shape_dim(in, (int)batch), lengths.dims[0], &size));
  return rn_shape_replace_dim(ctx, in, (int)batch, size, rn_shape_out(ctx, 0));
}
