// The shape function of RaggedTensorToTensor.
#include "ops/shapes.h"

// The number of dimensions that the partitions add; checks the attributes.
static rn_status_t ragged_rank(const rn_shape_ctx_t* ctx, int* out) {
  const rn_attr_value_t* types = rn_shape_attr(ctx, "row_partition_types");
  int64_t tensors = rn_ops_int(ctx, "num_row_partition_tensors");
  bool has_first_size = types->count > 0 && rn_str_is(types->list_s[0], "FIRST_DIM_SIZE");
  for (int32_t i = 0; i < types->count; i++) {
    rn_str_t type = types->list_s[i];
    if (!rn_str_is(type, "FIRST_DIM_SIZE") && !rn_str_is(type, "VALUE_ROWIDS") &&
        !rn_str_is(type, "ROW_SPLITS")) {
      return rn_invalid_argument("Unsupported partition type: %.*s", RN_STR_ARGS(type));
    }
  }
  if (tensors != types->count) {
    return rn_invalid_argument("Number of row partition tensors (%" PRId64
                               ") does not equal the number of row partition types(%d).",
                               tensors, types->count);
  }
  if (has_first_size && (types->count < 2 || !rn_str_is(types->list_s[1], "VALUE_ROWIDS"))) {
    return rn_invalid_argument("FIRST_DIM_SIZE must be followed by VALUE_ROWIDS");
  }
  for (int32_t i = 0; i < types->count; i++) {
    bool is_first = rn_str_is(types->list_s[i], "FIRST_DIM_SIZE");
    if (is_first && i > 0) {
      return rn_invalid_argument("FIRST_DIM_SIZE must be the first partition type");
    }
    if (i == 0 && rn_str_is(types->list_s[0], "VALUE_ROWIDS")) {
      return rn_invalid_argument("VALUE_ROWIDS cannot be the first partition type");
    }
  }
  *out = types->count - has_first_size;
  return RN_OK;
}

static rn_status_t check_default(rn_shape_t value, rn_shape_t cells, rn_str_t value_text,
                                 rn_str_t cells_text) {
  if (!rn_shape_has_rank(value) || !rn_shape_has_rank(cells)) return RN_OK;
  if (value.rank >= cells.rank) {
    return rn_invalid_argument(
        "default_value.shape=%.*s and rt_input.flat_values.shape=%.*s are incompatible: "
        "default_value.rank = %d  must be less than rt_input.flat_values.rank = %d",
        RN_STR_ARGS(value_text), RN_STR_ARGS(cells_text), value.rank, cells.rank);
  }
  return RN_OK;
}

static rn_status_t check_default_value(rn_shape_ctx_t* ctx) {
  rn_strbuf_t value, cells;
  rn_strbuf_init(&value, rn_allocator_default());
  rn_strbuf_init(&cells, rn_allocator_default());
  rn_shape_print(&value, rn_shape_in(ctx, 2));
  rn_shape_print(&cells, rn_shape_in(ctx, 1));
  rn_status_t status = check_default(rn_shape_in(ctx, 2), rn_shape_in(ctx, 1),
                                     rn_strbuf_view(&value), rn_strbuf_view(&cells));
  rn_strbuf_clear(&value);
  rn_strbuf_clear(&cells);
  return status;
}

static rn_status_t ranks_differ(rn_shape_t to, int rank) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_shape_print(&text, to);
  rn_str_t view = rn_strbuf_view(&text);
  rn_status_t status = rn_invalid_argument(
      "rt_input.shape and shape=%.*s are incompatible: rt_input.rank = %d but shape.rank = %d",
      RN_STR_ARGS(view), rank, to.rank);
  rn_strbuf_clear(&text);
  return status;
}

// The shape that input 0 requests: sizes, -1 for unknown ones, or the scalar -1 for any shape.
static rn_status_t wanted_shape(rn_shape_ctx_t* ctx, rn_shape_t* out) {
  const rn_partial_t* sizes = rn_shape_in_partial(ctx, 0);
  rn_shape_t in = rn_shape_in(ctx, 0);
  *out = RN_SHAPE_UNKNOWN;
  if (in.rank == 0) {
    int64_t value = 0;
    if (!rn_shape_input_scalar(ctx, 0, &value)) {
      return rn_invalid_argument(
          "Received a shape scalar with unknown static value.  A static value of '-1' is required "
          "to represent an unknown shape.");
    }
    if (value == -1) return RN_OK;
    return rn_invalid_argument(
        "Received an invalid shape scalar with a static value that is not '-1': %" PRId64, value);
  }
  if (in.rank != 1 || in.dims[0] == RN_UNKNOWN) return RN_OK;
  if (in.dims[0] > RN_MAX_RANK) {
    return rn_invalid_argument("Too many dimensions: %" PRId64, in.dims[0]);
  }
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < in.dims[0]; i++) {
    bool is_known = sizes->is_known && i < sizes->count && sizes->values[i] >= 0;
    dims[i] = is_known ? sizes->values[i] : RN_UNKNOWN;
  }
  return rn_shape_make(ctx, (int)in.dims[0], dims, out);
}

// The requested shape, with unknown dims filled in from the shape of the values.
rn_status_t rn_shape_fn_ragged_to_tensor(rn_shape_ctx_t* ctx) {
  rn_shape_t to = RN_SHAPE_UNKNOWN, cells = rn_shape_in(ctx, 1);
  int partitions = 0;
  RN_TRY(wanted_shape(ctx, &to));
  RN_TRY(ragged_rank(ctx, &partitions));
  RN_TRY(check_default_value(ctx));
  if (!rn_shape_has_rank(cells)) {
    *rn_shape_out(ctx, 0) = to;
    return RN_OK;
  }
  int rank = partitions + cells.rank;
  if (rank > RN_MAX_RANK) return rn_invalid_argument("Too many dimensions: %d", rank);
  if (!rn_shape_has_rank(to)) RN_TRY(rn_shape_of_rank(ctx, rank, &to));
  if (to.rank != rank) return ranks_differ(to, rank);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, to.dims, (size_t)rank * sizeof *dims);
  for (int i = 1; i < cells.rank; i++) {
    int64_t* dim = &dims[partitions + i];
    if (*dim == RN_UNKNOWN) *dim = cells.dims[i];
    if (cells.dims[i] != RN_UNKNOWN && *dim != cells.dims[i]) {
      return rn_invalid_argument(
          "rt_input.shape and shape are incompatible: rt_input.shape[%d] = %" PRId64
          " but shape[%d] = %" PRId64,
          partitions + i, cells.dims[i], partitions + i, *dim);
    }
  }
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}
