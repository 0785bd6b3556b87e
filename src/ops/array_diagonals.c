// Shape functions of ops on diagonals given by their index.
#include "ops/shapes.h"

// The range of diagonals in input |i|, lower to upper, if its value is known.
typedef struct array_diagonals_band_t {
  bool is_known;
  int64_t lower, upper;
} array_diagonals_band_t;

static rn_status_t read_band(rn_shape_ctx_t* ctx, int i, array_diagonals_band_t* out) {
  *out = (array_diagonals_band_t){0};
  const rn_tensor_t* value = rn_shape_input_value(ctx, i);
  if (!value) return RN_OK;
  if (value->count < 1 || value->count > 2)
    return rn_invalid_argument(
        "diag_index must be a vector with one or two elements. It has %lld elements.",
        (long long)value->count);
  const int32_t* numbers = RN_DATA(value, const int32_t);
  *out = (array_diagonals_band_t){true, numbers[0], numbers[value->count - 1]};
  if (out->lower <= out->upper) return RN_OK;
  return rn_invalid_argument("lower_diag_index is greater than upper_diag_index");
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Whether both diagonals lie in a matrix of |rows| by |columns|, as far as these are known.
static rn_status_t check_band(const array_diagonals_band_t* band, int64_t rows, int64_t columns) {
  const int64_t both[2] = {band->lower, band->upper};
  for (int i = 0; i < 2; ++i) {
    if (both[i] == 0) continue;
    bool is_low = rows != RN_UNKNOWN && both[i] <= -rows;
    bool is_high = columns != RN_UNKNOWN && both[i] >= columns;
    if (is_low || is_high)
      return rn_invalid_argument("%s_diag_index is out of bound.", i ? "upper" : "lower");
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_matrix_diag_part_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t in, before, last, unused;
  array_diagonals_band_t band;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 1), 1, &unused));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 0, &unused));
  if (!rn_shape_has_rank(in)) return RN_OK;
  RN_TRY(read_band(ctx, 1, &band));
  if (!band.is_known) return RN_OK;
  int64_t rows = rn_shape_dim(in, -2), columns = rn_shape_dim(in, -1);
  RN_TRY(check_band(&band, rows, columns));
  int64_t count = band.upper - band.lower + 1, longest = RN_UNKNOWN, dims[2];
  if (rows != RN_UNKNOWN && columns != RN_UNKNOWN)
    longest = least(rows + least(band.upper, 0), columns - most(band.lower, 0));
  dims[0] = count > 1 ? count : longest;
  dims[1] = longest;
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &before));
  RN_TRY(rn_shape_make(ctx, count > 1 ? 2 : 1, dims, &last));
  return rn_shape_concat(ctx, before, last, rn_shape_out(ctx, 0));
}

// The value of the scalar input |i|; -1 if it is -1 or not known.
static int64_t given(rn_shape_ctx_t* ctx, int i) {
  int64_t value;
  return rn_shape_input_scalar(ctx, i, &value) ? value : -1;
}

rn_status_t rn_shape_fn_matrix_diag_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t in, before, matrix, unused;
  array_diagonals_band_t band;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 1), 1, &unused));
  RN_TRY(rn_ops_check_scalars(ctx, 2, 4));
  if (!rn_shape_has_rank(in)) return RN_OK;
  RN_TRY(read_band(ctx, 1, &band));
  if (!band.is_known) return RN_OK;
  int64_t count = band.upper - band.lower + 1, longest = rn_shape_dim(in, -1);
  if (count > 1) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, in, 2, &in));
    int64_t lines = rn_shape_dim(in, -2);
    if (lines != RN_UNKNOWN && lines != count)
      return rn_invalid_argument(
          "The number of rows of `diagonal` doesn't match the number of diagonals implied from "
          "`d_lower` and `d_upper`.\nnum_diags = %lld, d_lower = %lld, d_upper = %lld %d %lld",
          (long long)lines, (long long)band.lower, (long long)band.upper, in.rank,
          (long long)lines);
  }
  int64_t rows = given(ctx, 2), columns = given(ctx, 3);
  bool knows_sizes = rn_shape_input_value(ctx, 2) && rn_shape_input_value(ctx, 3);
  int64_t dims[2] = {RN_UNKNOWN, RN_UNKNOWN};
  if (longest != RN_UNKNOWN && knows_sizes) {
    int64_t least_rows = longest - least(band.upper, 0);
    int64_t least_columns = longest + most(band.lower, 0);
    if (rows == -1 && columns == -1) rows = columns = most(least_rows, least_columns);
    if (rows == -1) rows = least_rows;
    if (columns == -1) columns = least_columns;
    if (rows < least_rows) return rn_invalid_argument("num_rows is too small");
    if (columns < least_columns) return rn_invalid_argument("num_cols is too small.");
    if (rows != least_rows && columns != least_columns)
      return rn_invalid_argument(
          "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and "
          "the length of the given diagonals.\nnum_rows = %lld != min_num_rows = %lld, num_cols = "
          "%lld != min_num_cols = %lld",
          (long long)rows, (long long)least_rows, (long long)columns, (long long)least_columns);
    dims[0] = rows;
    dims[1] = columns;
  }
  RN_TRY(rn_shape_slice(ctx, in, 0, count > 1 ? -2 : -1, &before));
  RN_TRY(rn_shape_make(ctx, 2, dims, &matrix));
  return rn_shape_concat(ctx, before, matrix, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_matrix_set_diag_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t in, diagonal, batch, diagonal_batch, matrix, unused;
  array_diagonals_band_t band;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &diagonal));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 2), 1, &unused));
  RN_TRY(read_band(ctx, 2, &band));
  *rn_shape_out(ctx, 0) = in;
  int lines = band.is_known && band.upper > band.lower ? 2 : 1;
  if (!rn_shape_has_rank(in)) {
    if (!rn_shape_has_rank(diagonal) || !band.is_known) return RN_OK;
    RN_TRY(rn_shape_slice(ctx, diagonal, 0, -lines, &batch));
    RN_TRY(rn_shape_of_rank(ctx, 2, &matrix));
    return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
  }
  RN_TRY(rn_shape_with_rank_at_least(ctx, diagonal, in.rank - 1, &diagonal));
  RN_TRY(rn_shape_with_rank_at_most(ctx, diagonal, in.rank, &diagonal));
  if (!band.is_known) return RN_OK;
  RN_TRY(check_band(&band, rn_shape_dim(in, -2), rn_shape_dim(in, -1)));
  RN_TRY(rn_shape_with_rank(ctx, diagonal, in.rank - 2 + lines, &diagonal));
  if (rn_shape_is_full(in)) return RN_OK;
  RN_TRY(rn_shape_slice(ctx, diagonal, 0, -lines, &diagonal_batch));
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, in, -2, INT_MAX, &matrix));
  RN_TRY(rn_shape_merge(ctx, batch, diagonal_batch, &batch));
  return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
}
