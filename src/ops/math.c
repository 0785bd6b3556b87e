// Shape functions of arithmetic, reductions, matmuls and segment sums.
#include <math.h>

#include "ops/shapes.h"

// Binary arithmetic. It also computes partial values, because graphs compute sizes with it.

static bool arith(const char* op, int64_t a, int64_t b, int64_t* out) {
  if (rn_ops_is(op, "Add") || rn_ops_is(op, "AddV2")) return rn_add_i64_ok(a, b, out);
  if (rn_ops_is(op, "Sub")) return !__builtin_sub_overflow(a, b, out);
  if (rn_ops_is(op, "Mul")) return rn_mul_i64_ok(a, b, out);
  *out = a > b ? a : b;
  if (rn_ops_is(op, "Maximum")) return true;
  *out = a < b ? a : b;
  if (rn_ops_is(op, "Minimum")) return true;
  if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
  *out = a / b;
  if (rn_ops_is(op, "Div")) return true;
  bool down = a % b != 0 && (a % b < 0) != (b < 0);
  if (rn_ops_is(op, "FloorDiv")) {
    *out = a / b - down;
    return true;
  }
  *out = a % b + (down ? b : 0);
  return rn_ops_is(op, "FloorMod");
}

rn_status_t rn_shape_fn_arith2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_broadcast2(ctx));
  const rn_partial_t *a = rn_shape_in_partial(ctx, 0), *b = rn_shape_in_partial(ctx, 1);
  bool fits = a->is_known && b->is_known &&
              (a->count == b->count || a->count == 1 || b->count == 1) &&
              (rn_shape_in_type(ctx, 0) == RN_INT32 || rn_shape_in_type(ctx, 0) == RN_INT64);
  if (!fits) return RN_OK;
  int count = a->count == 1 ? b->count : a->count;
  int64_t* values;
  RN_TRY(RN_ARENA_ARRAY(ctx->arena, (size_t)count, &values));
  for (int i = 0; i < count; i++) {
    int64_t x = a->values[a->count == 1 ? 0 : i], y = b->values[b->count == 1 ? 0 : i];
    bool ok = x != RN_UNKNOWN_VALUE && y != RN_UNKNOWN_VALUE &&
              arith(ctx->op->name, x, y, &values[i]) &&
              (rn_shape_in_type(ctx, 0) == RN_INT64 || values[i] == (int32_t)values[i]);
    if (!ok) values[i] = RN_UNKNOWN_VALUE;
  }
  ctx->output_partial = (rn_partial_t){true, a->is_scalar && b->is_scalar, count, values};
  return RN_OK;
}

rn_status_t rn_shape_fn_cast(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  rn_dtype_t to = rn_shape_attr(ctx, "DstT")->type;
  if (to == RN_INT32 || to == RN_INT64) ctx->output_partial = *rn_shape_in_partial(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_conj(rn_shape_ctx_t* ctx) {
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  return rn_shape_fn_unchanged(ctx);
}

rn_status_t rn_shape_fn_equal(rn_shape_ctx_t* ctx) {
  rn_shape_t a = rn_shape_in(ctx, 0), b = rn_shape_in(ctx, 1);
  rn_status_t status = rn_shape_broadcast(ctx, a, b, true, rn_shape_out(ctx, 0));
  if (rn_ops_bool(ctx, "incompatible_shape_error")) return status;
  // Incompatible shapes make the result a scalar False, so the shape is known only if compatibility
  // is.
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
    return RN_OK;
  }
  RN_TRY(status);
  for (int i = 1; i <= a.rank && i <= b.rank; i++) {
    int64_t x = a.dims[a.rank - i], y = b.dims[b.rank - i];
    if ((x == RN_UNKNOWN) != (y == RN_UNKNOWN) && x != 1 && y != 1) {
      *rn_shape_out(ctx, 0) = RN_SHAPE_UNKNOWN;
      break;
    }
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_approximate_equal(rn_shape_ctx_t* ctx) {
  return rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0));
}

// Merges the element shapes of the lists that are added.
static rn_status_t merge_lists(rn_shape_ctx_t* ctx) {
  rn_handle_data_t* sum = rn_shape_out_handle(ctx, 0);
  for (int i = 0; i < ctx->input_count; i++) {
    const rn_handle_data_t* list = rn_shape_in_handle(ctx, i);
    if (!list->is_set) {
      *sum = (rn_handle_data_t){0};
      return RN_OK;
    }
    if (i == 0) *sum = *list;
    if (sum->dtype != list->dtype) {
      return rn_invalid_argument(
          "shapes_and_types[0][0].dtype() == %s != shapes_and_types[0][0].dtype == %s",
          rn_dtype_name(sum->dtype), rn_dtype_name(list->dtype));
    }
    rn_status_t status = rn_shape_merge(ctx, sum->shape, list->shape, &sum->shape);
    if (!rn_ok(status)) {
      return rn_status_annotate(
          status,
          "\n\tFrom merging shapes_and_types[%d][0].shape with shapes_and_types[0][0].shape", 0);
    }
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_add_n(rn_shape_ctx_t* ctx) {
  if (rn_shape_in_type(ctx, 0) == RN_VARIANT) {
    *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
    return merge_lists(ctx);
  }
  return rn_ops_merge_inputs(ctx, 0, ctx->input_count - 1, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_accumulate_n(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_clip_by_value(rn_shape_ctx_t* ctx) { return rn_shape_fn_unchanged(ctx); }

rn_status_t rn_shape_fn_betainc(rn_shape_ctx_t* ctx) {
  rn_shape_t merged = RN_SHAPE_UNKNOWN;
  bool all_known = true;
  for (int i = 0; i < 3; i++) {
    rn_shape_t shape = rn_shape_in(ctx, i);
    if (!rn_shape_has_rank(shape)) {
      all_known = false;
    } else if (shape.rank > 0) {
      RN_TRY(rn_shape_merge(ctx, merged, shape, &merged));
    }
  }
  if (all_known && !rn_shape_has_rank(merged)) merged = RN_SHAPE_SCALAR;
  *rn_shape_out(ctx, 0) = merged;
  return RN_OK;
}

rn_status_t rn_shape_fn_cross(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  int64_t unused;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &b));
  RN_TRY(rn_shape_merge(ctx, a, b, &a));
  if (rn_shape_has_rank(a)) RN_TRY(rn_dim_with_value(rn_shape_dim(a, -1), 3, &unused));
  *rn_shape_out(ctx, 0) = a;
  return RN_OK;
}

// Reductions.

// The partial value of the sum, product, maximum or minimum of a vector of sizes.
static rn_status_t reduce_partial(rn_shape_ctx_t* ctx) {
  const rn_partial_t* in = rn_shape_in_partial(ctx, 0);
  const char* op = ctx->op->name;
  const char* binary = rn_ops_is(op, "Sum")    ? "Add"
                       : rn_ops_is(op, "Prod") ? "Mul"
                       : rn_ops_is(op, "Max")  ? "Maximum"
                       : rn_ops_is(op, "Min")  ? "Minimum"
                                               : NULL;
  if (!binary || !in->is_known) return RN_OK;
  bool extreme = binary[0] == 'M' && binary[1] != 'u';
  if (extreme && in->count == 0) return RN_OK;
  int64_t value = extreme ? in->values[0] : binary[0] == 'M';
  for (int i = 0; i < in->count; i++) {
    if (in->values[i] == RN_UNKNOWN_VALUE) return RN_OK;
    if (!arith(binary, value, in->values[i], &value)) return RN_OK;
  }
  if (rn_shape_in_type(ctx, 0) == RN_INT32 && value != (int32_t)value) return RN_OK;
  return rn_shape_set_partial(ctx, rn_shape_out(ctx, 0)->rank == 0, 1, &value);
}

rn_status_t rn_shape_fn_reduce(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), unused;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 1), 1, &unused));
  rn_shape_input_value(ctx, 1);  // so that errors print the axes
  bool keep = rn_ops_bool(ctx, "keep_dims");
  const rn_partial_t* axes = rn_shape_in_partial(ctx, 1);
  bool axes_known = axes->is_known;
  for (int i = 0; axes_known && i < axes->count; i++) {
    axes_known = axes->values[i] != RN_UNKNOWN_VALUE;
  }
  if (!axes_known || !rn_shape_has_rank(in)) {
    if (keep) return rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0));
    return RN_OK;
  }
  bool reduced[RN_MAX_RANK] = {false};
  for (int i = 0; i < axes->count; i++) {
    int64_t axis = axes->values[i];
    if (axis < -in.rank || axis >= in.rank) {
      return rn_invalid_argument(
          "Invalid reduction dimension %" PRId64 " for input with %d dimensions.", axis, in.rank);
    }
    reduced[axis < 0 ? axis + in.rank : axis] = true;
  }
  int64_t dims[RN_MAX_RANK];
  int rank = 0, gone = 0;
  for (int i = 0; i < in.rank; i++) {
    gone += reduced[i];
    if (!reduced[i]) dims[rank++] = in.dims[i];
    if (reduced[i] && keep) dims[rank++] = 1;
  }
  RN_TRY(rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0)));
  return gone == in.rank ? reduce_partial(ctx) : RN_OK;
}

rn_status_t rn_shape_fn_arg_max(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0);
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  if (!rn_shape_has_rank(in)) return RN_OK;
  if (in.rank <= 1) {
    *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
    return RN_OK;
  }
  int64_t axis;
  if (!rn_shape_input_scalar(ctx, 1, &axis)) {
    return rn_shape_of_rank(ctx, in.rank - 1, rn_shape_out(ctx, 0));
  }
  if (axis < -in.rank || axis >= in.rank) {
    return rn_invalid_argument("Dimension (%" PRId64
                               ") must be in the range [%d, %d), where %d is the number of "
                               "dimensions in the input.",
                               axis, -in.rank, in.rank, in.rank);
  }
  if (axis < 0) axis += in.rank;
  int64_t dims[RN_MAX_RANK];
  for (int i = 0, j = 0; i < in.rank; i++) {
    if (i != axis) dims[j++] = in.dims[i];
  }
  return rn_shape_make(ctx, in.rank - 1, dims, rn_shape_out(ctx, 0));
}

// Matmuls.

rn_status_t rn_shape_fn_matmul(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &b));
  bool ta = rn_ops_bool(ctx, "transpose_a"), tb = rn_ops_bool(ctx, "transpose_b");
  int64_t inner;
  RN_TRY(rn_dim_merge(a.dims[!ta], b.dims[tb], &inner));
  return rn_shape_matrix(ctx, a.dims[ta], b.dims[!tb], rn_shape_out(ctx, 0));
}

static rn_status_t batch_matmul(rn_shape_ctx_t* ctx, bool broadcasts) {
  rn_shape_t a, b, batch_a, batch_b, batch, matrix;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &b));
  bool ta = rn_ops_bool(ctx, "adj_x"), tb = rn_ops_bool(ctx, "adj_y");
  RN_TRY(rn_shape_slice(ctx, a, 0, -2, &batch_a));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &batch_b));
  int64_t inner_a = rn_shape_dim(a, ta ? -2 : -1), inner_b = rn_shape_dim(b, tb ? -1 : -2);
  if (broadcasts) {
    RN_TRY(rn_dim_merge(inner_a, inner_b, &inner_a));
    RN_TRY(rn_shape_broadcast(ctx, batch_a, batch_b, true, &batch));
  } else {
    RN_TRY(rn_shape_merge(ctx, batch_a, batch_b, &batch));
    RN_TRY(rn_dim_merge(inner_a, inner_b, &inner_a));
  }
  int64_t rows = rn_shape_dim(a, ta ? -1 : -2), columns = rn_shape_dim(b, tb ? -2 : -1);
  RN_TRY(rn_shape_matrix(ctx, rows, columns, &matrix));
  return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_batch_matmul(rn_shape_ctx_t* ctx) { return batch_matmul(ctx, false); }
rn_status_t rn_shape_fn_batch_matmul_v2(rn_shape_ctx_t* ctx) { return batch_matmul(ctx, true); }

// Select.

rn_status_t rn_shape_fn_select(rn_shape_ctx_t* ctx) {
  rn_shape_t condition = rn_shape_in(ctx, 0), data;
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), &data));
  *rn_shape_out(ctx, 0) = data;
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 1);
  if (!rn_shape_has_rank(condition) || !rn_shape_has_rank(data) || condition.rank == 0) {
    return RN_OK;
  }
  if (condition.rank == 1 && data.rank >= 1) {
    // A vector condition selects rows.
    rn_shape_t rows;
    RN_TRY(rn_shape_slice(ctx, data, 0, 1, &rows));
    RN_TRY(rn_shape_merge(ctx, condition, rows, &rows));
    return rn_shape_replace_dim(ctx, data, 0, rows.dims[0], rn_shape_out(ctx, 0));
  }
  return rn_shape_merge(ctx, data, condition, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_select_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t data;
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 1);
  RN_TRY(rn_shape_broadcast(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), true, &data));
  return rn_shape_broadcast(ctx, rn_shape_in(ctx, 0), data, true, rn_shape_out(ctx, 0));
}

// Sequences of numbers.

// The value of the scalar input |i| as a double; false if not known.
static bool scalar_number(rn_shape_ctx_t* ctx, int i, double* out) {
  int64_t value;
  if (rn_shape_input_scalar(ctx, i, &value)) {
    *out = (double)value;
    return true;
  }
  const rn_tensor_t* tensor = rn_shape_input_value(ctx, i);
  if (!tensor || tensor->count != 1) return false;
  if (tensor->dtype == RN_FLOAT) *out = *RN_DATA(tensor, float);
  if (tensor->dtype == RN_DOUBLE) *out = *RN_DATA(tensor, double);
  if (tensor->dtype == RN_BFLOAT16) {
    uint32_t bits = (uint32_t)*RN_DATA(tensor, uint16_t) << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    *out = number;
  }
  return tensor->dtype == RN_FLOAT || tensor->dtype == RN_DOUBLE || tensor->dtype == RN_BFLOAT16;
}

static rn_status_t range_partial(rn_shape_ctx_t* ctx, int64_t count) {
  int64_t start, delta, values[RN_MAX_RANK];
  if (count > RN_MAX_RANK || !rn_shape_input_scalar(ctx, 0, &start) ||
      !rn_shape_input_scalar(ctx, 2, &delta)) {
    return RN_OK;
  }
  for (int64_t i = 0; i < count; i++) values[i] = start + i * delta;
  return rn_shape_set_partial(ctx, false, (int)count, values);
}

rn_status_t rn_shape_fn_range(rn_shape_ctx_t* ctx) {
  static const char* const names[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; i++) {
    RN_TRY(rn_status_annotate(rn_ops_check_rank(ctx, i, 0), "\n\t for '%s'", names[i]));
  }
  // As in TensorFlow, half is allowed only if some input is not constant.
  bool all_known = true;
  for (int i = 0; i < 3; i++) all_known = rn_shape_input_value(ctx, i) && all_known;
  if (all_known && rn_shape_in_type(ctx, 0) == RN_HALF)
    return rn_invalid_argument("Unsupported dtype%d", (int)RN_HALF);
  double start, limit, delta;
  if (!scalar_number(ctx, 0, &start) || !scalar_number(ctx, 1, &limit) ||
      !scalar_number(ctx, 2, &delta)) {
    return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
  }
  if (delta == 0) return rn_invalid_argument("Requires delta != 0");
  if (delta > 0 && start > limit) {
    return rn_invalid_argument("Requires start <= limit when delta > 0: %g/%g", start, limit);
  }
  if (delta < 0 && start < limit) {
    return rn_invalid_argument("Requires start >= limit when delta < 0: %g/%g", start, limit);
  }
  double number = ceil(fabs((limit - start) / delta));
  int64_t a, b, step;
  // Integers are counted exactly.
  uint64_t count = number < 0x1p63 ? (uint64_t)number : UINT64_MAX;
  if (rn_shape_input_scalar(ctx, 0, &a) && rn_shape_input_scalar(ctx, 1, &b) &&
      rn_shape_input_scalar(ctx, 2, &step)) {
    uint64_t span = a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t width = step < 0 ? -(uint64_t)step : (uint64_t)step;
    count = span / width + (span % width != 0);
  }
  if (count > INT64_MAX) {
    return rn_invalid_argument("Requires ((limit - start) / delta) <= %" PRId64, INT64_MAX);
  }
  RN_TRY(rn_shape_vector(ctx, (int64_t)count, rn_shape_out(ctx, 0)));
  return range_partial(ctx, (int64_t)count);
}

rn_status_t rn_shape_fn_lin_space(rn_shape_ctx_t* ctx) {
  static const char* const names[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; i++) {
    RN_TRY(rn_status_annotate(rn_ops_check_rank(ctx, i, 0), "\n\t for '%s'", names[i]));
  }
  int64_t count = RN_UNKNOWN;
  if (rn_shape_input_scalar(ctx, 2, &count) && count <= 0) {
    return rn_invalid_argument("Requires num > 0: %" PRId64, count);
  }
  return rn_shape_vector(ctx, count, rn_shape_out(ctx, 0));
}

static rn_status_t bincount_size(rn_shape_ctx_t* ctx, int64_t* out_size) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  *out_size = RN_UNKNOWN;
  if (rn_shape_input_scalar(ctx, 1, out_size) && *out_size < 0) {
    return rn_invalid_argument("size (%" PRId64 ") must be non-negative", *out_size);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_bincount(rn_shape_ctx_t* ctx) {
  int64_t size;
  RN_TRY(bincount_size(ctx, &size));
  return rn_shape_vector(ctx, size, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_dense_bincount(rn_shape_ctx_t* ctx) {
  rn_shape_t in = rn_shape_in(ctx, 0), unused;
  RN_TRY(rn_shape_with_rank_at_most(ctx, in, 2, &unused));
  int64_t size;
  RN_TRY(bincount_size(ctx, &size));
  if (!rn_shape_has_rank(in)) return RN_OK;
  if (size == RN_UNKNOWN) return rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0));
  if (in.rank < 2) return rn_shape_vector(ctx, size, rn_shape_out(ctx, 0));
  return rn_shape_matrix(ctx, in.dims[0], size, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_sparse_bincount(rn_shape_ctx_t* ctx) {
  int64_t size;
  if (!rn_shape_input_scalar(ctx, 3, &size)) return RN_OK;
  if (size < 0) return rn_invalid_argument("size (%" PRId64 ") must be non-negative", size);
  const rn_tensor_t* shape = rn_shape_input_value(ctx, 2);
  if (!shape || shape->rank != 1 || shape->dtype != RN_INT64) return RN_OK;
  if (shape->count == 1) return rn_shape_vector(ctx, size, rn_shape_out(ctx, 0));
  int64_t rows = shape->count == 2 ? RN_DATA(shape, const int64_t)[0] : -1;
  return rows < 0 ? RN_OK : rn_shape_matrix(ctx, rows, size, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_histogram_fixed_width(rn_shape_ctx_t* ctx) {
  rn_shape_t range;
  int64_t size = RN_UNKNOWN;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &range));
  RN_TRY(rn_dim_with_value(range.dims[0], 2, &size));
  RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  size = RN_UNKNOWN;
  if (rn_shape_input_scalar(ctx, 2, &size) && size <= 0) {
    return rn_invalid_argument("Requires nbins > 0: %" PRId64, size);
  }
  return rn_shape_vector(ctx, size, rn_shape_out(ctx, 0));
}

// Segments.

// Sets output 0 to [rows], followed by the dims of |data| from |from| on.
static rn_status_t rows_of(rn_shape_ctx_t* ctx, int64_t rows, rn_shape_t data, int from) {
  rn_shape_t rest, first;
  RN_TRY(rn_shape_slice(ctx, data, from, INT_MAX, &rest));
  RN_TRY(rn_shape_vector(ctx, rows, &first));
  return rn_shape_concat(ctx, first, rest, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_segment(rn_shape_ctx_t* ctx) {
  rn_shape_t data, ids;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &data));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &ids));
  return rows_of(ctx, RN_UNKNOWN, data, 1);
}

rn_status_t rn_shape_fn_unsorted_segment(rn_shape_ctx_t* ctx) {
  rn_shape_t data = rn_shape_in(ctx, 0), ids = rn_shape_in(ctx, 1);
  RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  if (!rn_shape_has_rank(ids)) return RN_OK;
  RN_TRY(rn_ops_merge_prefix(ctx, ids, &data));
  int64_t count;
  RN_TRY(rn_ops_size_from_input(ctx, 2, &count));
  return rows_of(ctx, count, data, ids.rank);
}

// Data, and vectors of indices and segment ids of the same size.
static rn_status_t check_sparse_segment(rn_shape_ctx_t* ctx, rn_shape_t* out_data) {
  rn_shape_t indices, ids;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, out_data));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &indices));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &ids));
  return rn_shape_merge(ctx, indices, ids, &ids);
}

rn_status_t rn_shape_fn_sparse_segment(rn_shape_ctx_t* ctx) {
  rn_shape_t data;
  RN_TRY(check_sparse_segment(ctx, &data));
  return rows_of(ctx, RN_UNKNOWN, data, 1);
}

rn_status_t rn_shape_fn_sparse_segment_count(rn_shape_ctx_t* ctx) {
  rn_shape_t data;
  RN_TRY(check_sparse_segment(ctx, &data));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  int64_t rows = RN_UNKNOWN;
  if (rn_shape_input_scalar(ctx, 3, &rows) && rows < 0) {
    return rn_invalid_argument("Cannot specify a negative value for num_segments");
  }
  return rows_of(ctx, rows, data, 1);
}

rn_status_t rn_shape_fn_sparse_segment_grad_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t data, indices;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &data));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &indices));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 2), indices, &indices));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  return rows_of(ctx, RN_UNKNOWN, data, 1);
}

rn_status_t rn_shape_fn_sparse_segment_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t data, indices;
  int64_t rows;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &data));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &indices));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 2), indices, &indices));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  rows = RN_UNKNOWN;
  if (rn_shape_input_scalar(ctx, 3, &rows) && rows < 0) {
    return rn_invalid_argument("Cannot specify a negative value for output_dim0");
  }
  return rows_of(ctx, rows, data, 1);
}

rn_status_t rn_shape_fn_sobol_sample(rn_shape_ctx_t* ctx) {
  int64_t dims, count;
  RN_TRY(rn_ops_check_scalars(ctx, 0, 2));
  RN_TRY(rn_ops_size_from_input(ctx, 0, &dims));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &count));
  return rn_shape_matrix(ctx, count, dims, rn_shape_out(ctx, 0));
}
