// Extracts and sets diagonals of matrices, and builds matrices from them.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

// The versions of an op: V1 has the main diagonal only, V2 aligns left, V3 aligns as its attribute
// says.
typedef struct diag_t {
  int version;
  bool right_above, right_below;  // alignment of short diagonals above (below) the main one
} diag_t;

static rn_status_t diag_init(const rn_kernel_init_t* init, void* state) {
  diag_t* diag = state;
  rn_str_t name = rn_str(init->op->name);
  diag->version = rn_str_ends_with(name, RN_STR("V3"))   ? 3
                  : rn_str_ends_with(name, RN_STR("V2")) ? 2
                                                         : 1;
  if (diag->version < 3) return RN_OK;
  rn_str_t align = rn_init_string(init, "align");
  diag->right_above = rn_str_starts_with(align, RN_STR("RIGHT_"));
  diag->right_below = rn_str_ends_with(align, RN_STR("_RIGHT"));
  return RN_OK;
}

// Diagonals |lower| to |upper| of |rows| by |columns| matrices, as a band of |count| lines of
// length |longest|.
typedef struct diag_band_t {
  int64_t lower, upper, rows, columns, count, longest;
} diag_band_t;

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

static void measure(diag_band_t* band) {
  band->count = band->upper - band->lower + 1;
  band->longest = min64(band->rows + min64(band->upper, 0), band->columns - max64(band->lower, 0));
}

static rn_status_t read_k(const rn_tensor_t* k, diag_band_t* band) {
  if (k->rank > 1)
    return rn_invalid_argument("diag_index must be a scalar or vector, received shape: %s",
                               rn_text_of(k).text);
  if (k->count < 1) return rn_invalid_argument("Expected diag_index to have at least 1 element");
  if (k->count > 2)
    return rn_invalid_argument(
        "diag_index must have only one or two elements, received %lld elements.",
        (long long)k->count);
  band->lower = rn_int_at(k, 0);
  band->upper = rn_int_at(k, k->count - 1);
  return RN_OK;
}

static rn_status_t check_order(const diag_band_t* band) {
  if (band->lower <= band->upper) return RN_OK;
  return rn_invalid_argument(
      "lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
      (long long)band->lower, (long long)band->upper);
}

static rn_status_t check_bounds(const diag_band_t* band, const char* stop) {
  const int64_t both[2] = {band->lower, band->upper};
  for (int i = 0; i < 2; ++i)
    if (both[i] != 0 && (both[i] <= -band->rows || both[i] >= band->columns))
      return rn_invalid_argument(
          "%s_diag_index is out of bound: %lld%s It must be between %lld and %lld",
          i ? "upper" : "lower", (long long)both[i], stop, (long long)-band->rows,
          (long long)band->columns);
  return check_order(band);
}

// Line |i| of the band: diagonal upper - i, its length, and its start in the line and in the
// matrix.
typedef struct diag_line_t {
  int64_t length, in_line, in_matrix;
} diag_line_t;

static diag_line_t line_of(const diag_t* diag, const diag_band_t* band, int64_t i) {
  int64_t d = band->upper - i;
  diag_line_t line;
  line.length = max64(0, min64(band->rows + min64(d, 0), band->columns - max64(d, 0)));
  bool is_right = d >= 0 ? diag->right_above : diag->right_below;
  line.in_line = i * band->longest + (is_right ? band->longest - line.length : 0);
  line.in_matrix = d >= 0 ? d : -d * band->columns;
  return line;
}

// Copies every line of every matrix between |matrices| and |lines|.
static rn_status_t move_lines(rn_kernel_ctx_t* ctx, const diag_band_t* band, int64_t batch,
                              rn_dtype_t dtype, void* matrices, void* lines, bool to_lines) {
  const int64_t size = (int64_t)rn_dtype_size(dtype);
  const int64_t matrix = band->rows * band->columns, block = band->count * band->longest;
  rn_moves_t moves;
  rn_moves_begin(&moves, ctx, dtype);
  for (int64_t i = 0; i < band->count; ++i) {
    diag_line_t line = line_of(ctx->state, band, i);
    if (line.length == 0) continue;
    rn_move_t move;
    rn_move_begin(&move);
    rn_move_add(&move, batch, to_lines ? matrix : block, to_lines ? block : matrix);
    rn_move_add(&move, line.length, to_lines ? band->columns + 1 : 1,
                to_lines ? 1 : band->columns + 1);
    char* in_matrix = (char*)matrices + line.in_matrix * size;
    char* in_line = (char*)lines + line.in_line * size;
    RN_RETURN_IF_ERROR(rn_moves_add(&moves, &move, to_lines ? in_matrix : in_line,
                                    to_lines ? in_line : in_matrix));
  }
  return rn_moves_end(&moves);
}

// Fills |out| with the padding of |version|: input |i|, or zeros in the first version.
static rn_status_t fill_with(rn_kernel_ctx_t* ctx, int version, int i, rn_tensor_t* out) {
  return version > 1 ? rn_ctx_fill(ctx, i, out) : rn_ctx_zero(ctx, out);
}

// Infers the size of the matrices that hold the given diagonals.
static rn_status_t matrix_size(diag_band_t* band, int64_t longest) {
  int64_t least_rows = longest - min64(band->upper, 0);
  int64_t least_columns = longest + max64(band->lower, 0);
  if (band->rows != -1 && band->rows < least_rows)
    return rn_invalid_argument("The number of rows is too small.");
  if (band->columns != -1 && band->columns < least_columns)
    return rn_invalid_argument("The number of columns is too small.");
  if (band->rows == -1 && band->columns == -1) {
    band->rows = band->columns = max64(least_rows, least_columns);
  } else if (band->rows == -1) {
    band->rows = least_rows;
  } else if (band->columns == -1) {
    band->columns = least_columns;
  }
  if (band->rows != least_rows && band->columns != least_columns)
    return rn_invalid_argument(
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and "
        "diagonal.");
  return RN_OK;
}

static rn_status_t read_size(const rn_tensor_t* size, const char* name, int64_t* out) {
  if (size->rank != 0) return rn_invalid_argument("%s must be a scalar", name);
  *out = rn_int_at(size, 0);
  return RN_OK;
}

static rn_status_t matrix_diag(rn_kernel_ctx_t* ctx) {
  const diag_t* diag = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  diag_band_t band = {.rows = -1, .columns = -1};
  if (input->rank < 1)
    return rn_invalid_argument("diagonal must be at least 1-dim, received shape: %s",
                               rn_text_of(input).text);
  if (diag->version > 1) {
    RN_RETURN_IF_ERROR(read_k(rn_in(ctx, 1), &band));
    RN_RETURN_IF_ERROR(read_size(rn_in(ctx, 2), "num_rows", &band.rows));
    RN_RETURN_IF_ERROR(read_size(rn_in(ctx, 3), "num_cols", &band.columns));
    if (rn_in(ctx, 4)->rank != 0) return rn_invalid_argument("padding_value must be a scalar");
    RN_RETURN_IF_ERROR(check_order(&band));
  }
  band.count = band.upper - band.lower + 1;
  const int32_t rank = input->rank;
  if (band.count > 1 && (rank < 2 || rn_tensor_dim(input, rank - 2) != band.count))
    return rn_invalid_argument(
        "The number of diagonals provided in the input does not match the lower_diag_index and "
        "upper_diag_index range.");
  RN_RETURN_IF_ERROR(matrix_size(&band, rn_tensor_dim(input, rank - 1)));
  const int32_t outer = band.count > 1 ? rank - 2 : rank - 1;
  int64_t dims[RN_MAX_RANK + 2];
  for (int32_t d = 0; d < outer; ++d) dims[d] = rn_tensor_dim(input, d);
  dims[outer] = band.rows;
  dims[outer + 1] = band.columns;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){outer + 2, dims}, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(fill_with(ctx, diag->version, 4, out));
  band.longest = rn_tensor_dim(input, rank - 1);
  return move_lines(ctx, &band, rn_dims_product(dims, 0, outer), out->dtype, out->data, input->data,
                    false);
}

static rn_status_t matrix_band(const rn_tensor_t* input, diag_band_t* band) {
  if (input->rank < 2)
    return rn_invalid_argument("input must be at least 2-dim, received shape: %s",
                               rn_text_of(input).text);
  band->rows = rn_tensor_dim(input, input->rank - 2);
  band->columns = rn_tensor_dim(input, input->rank - 1);
  return RN_OK;
}

// The shape of the band of |input|'s matrices, in |dims|, and the number of matrices.
static rn_shape_t band_shape(const rn_tensor_t* input, const diag_band_t* band, int64_t* dims,
                             int64_t* out_batch) {
  int32_t rank = input->rank - 2;
  for (int32_t d = 0; d < rank; ++d) dims[d] = rn_tensor_dim(input, d);
  *out_batch = input->count ? rn_dims_product(dims, 0, rank) : 0;
  if (band->count > 1) dims[rank++] = band->count;
  dims[rank++] = band->longest;
  return (rn_shape_t){rank, dims};
}

static rn_status_t matrix_diag_part(rn_kernel_ctx_t* ctx) {
  const diag_t* diag = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  diag_band_t band = {0};
  if (diag->version > 1) RN_RETURN_IF_ERROR(read_k(rn_in(ctx, 1), &band));
  RN_RETURN_IF_ERROR(matrix_band(input, &band));
  if (diag->version > 1 && rn_in(ctx, 2)->count != 1)
    return rn_invalid_argument("Padding must be scalar.");
  RN_RETURN_IF_ERROR(check_bounds(&band, "."));
  measure(&band);
  int64_t dims[RN_MAX_RANK], batch;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, band_shape(input, &band, dims, &batch), &out));
  if (out->count == 0) return RN_OK;
  if (band.count > 1) RN_RETURN_IF_ERROR(fill_with(ctx, diag->version, 2, out));
  return move_lines(ctx, &band, batch, out->dtype, input->data, out->data, true);
}

static rn_status_t matrix_set_diag(rn_kernel_ctx_t* ctx) {
  const diag_t* diag = ctx->state;
  const rn_tensor_t *input = rn_in(ctx, 0), *lines = rn_in(ctx, 1);
  diag_band_t band = {0};
  if (diag->version > 1) RN_RETURN_IF_ERROR(read_k(rn_in(ctx, 2), &band));
  RN_RETURN_IF_ERROR(matrix_band(input, &band));
  if (lines->rank < 1)
    return rn_invalid_argument("diagonal must be at least 1-dim, received shape: %s",
                               rn_text_of(lines).text);
  RN_RETURN_IF_ERROR(check_bounds(&band, ""));
  measure(&band);
  if (band.count > 1 && lines->rank < input->rank - 1)
    return rn_invalid_argument(
        "Diagonal tensor rank must be large enough to contain a diagonal-count dimension. Input "
        "rank: %d, Expected diagonal rank >= %d, Received diagonal rank: %d",
        input->rank, input->rank - 1, lines->rank);
  if (band.count > 1 && rn_tensor_dim(lines, input->rank - 2) != band.count)
    return rn_invalid_argument(
        "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and "
        "`upper_diag_index`");
  int64_t dims[RN_MAX_RANK], batch;
  rn_shape_t expected = band_shape(input, &band, dims, &batch);
  if (!rn_shape_eq(expected, rn_tensor_shape(lines)))
    return rn_invalid_argument(
        "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] "
        "is not equal to the longests diagonal in range "
        "[lower_diag_index:upper_diag_index].\nInput shape: %s\nDiagonal shape: %s\nExpected "
        "diagonal shape: %s",
        rn_text_of(input).text, rn_text_of(lines).text, rn_shape_text(expected).text);
  rn_tensor_t* out = NULL;
  uint64_t candidates = lines->data != input->data;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, candidates, rn_tensor_shape(input), &out));
  if (out->count == 0) return RN_OK;
  if (out->data != input->data) RN_RETURN_IF_ERROR(rn_ctx_copy(ctx, input, out));
  return move_lines(ctx, &band, batch, out->dtype, out->data, lines->data, false);
}

static rn_status_t diag(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank < 1)
    return rn_invalid_argument("Input must be at least rank 1, got %d", input->rank);
  int64_t dims[2 * RN_MAX_RANK];
  for (int d = 0; d < input->rank; ++d) dims[d] = dims[d + input->rank] = rn_tensor_dim(input, d);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2 * input->rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, out));
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, input->count, 1, input->count + 1);
  return rn_ctx_move(ctx, &move, out->dtype, input->data, out->data);
}

static rn_status_t diag_part(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int half = input->rank / 2;
  if (input->rank % 2 != 0)
    return rn_invalid_argument(
        "The rank of the tensor should be                                          even and "
        "positive, got shape %s",
        rn_text_of(input).text);
  for (int d = 0; d < half; ++d)
    if (rn_tensor_dim(input, d) != rn_tensor_dim(input, d + half))
      return rn_invalid_argument("Invalid shape %s: dimensions %d and %d do not match.",
                                 rn_text_of(input).text, d, d + half);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){half, rn_tensor_dims(input)}, &out));
  if (out->count == 0) return RN_OK;
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, out->count, out->count + 1, 1);
  return rn_ctx_move(ctx, &move, out->dtype, input->data, out->data);
}

rn_status_t rn_band_part_begin(rn_kernel_ctx_t* ctx, rn_band_part_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *lower = rn_in(ctx, 1), *upper = rn_in(ctx, 2);
  diag_band_t band;
  RN_RETURN_IF_ERROR(matrix_band(input, &band));
  if (lower->rank != 0)
    return rn_invalid_argument("num_lower must be scalar, got shape %s", rn_text_of(lower).text);
  int64_t below = rn_int_at(lower, 0);
  if (below > band.rows)
    return rn_invalid_argument(
        "num_lower must be negative or less or equal to number of rows (%lld) got: %lld",
        (long long)band.rows, (long long)below);
  if (upper->rank != 0)
    return rn_invalid_argument("num_upper must be scalar, got shape %s", rn_text_of(upper).text);
  int64_t above = rn_int_at(upper, 0);
  if (above > band.columns)
    return rn_invalid_argument(
        "num_upper must be negative or less or equal to number of columns (%lld) got: %lld",
        (long long)band.columns, (long long)above);
  *out =
      (rn_band_part_t){.rows = band.rows, .columns = band.columns, .below = below, .above = above};
  return rn_output(ctx, 0, rn_tensor_shape(input), &out->out);
}

static rn_status_t matrix_band_part(rn_kernel_ctx_t* ctx) {
  rn_band_part_t band;
  RN_RETURN_IF_ERROR(rn_band_part_begin(ctx, &band));
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = band.out;
  const int64_t below = band.below, above = band.above;
  const size_t size = rn_dtype_size(out->dtype);
  for (int64_t line = 0; out->count && line < out->count / band.columns; ++line) {
    int64_t row = line % band.rows;
    int64_t first = below < 0 ? 0 : min64(band.columns, max64(0, row - below));
    int64_t end = above < 0 ? band.columns : max64(first, min64(band.columns, row + above + 1));
    const char* from = (const char*)input->data + (size_t)(line * band.columns) * size;
    char* to = (char*)out->data + (size_t)(line * band.columns) * size;
    memset(to, 0, (size_t)first * size);
    memcpy(to + (size_t)first * size, from + (size_t)first * size, (size_t)(end - first) * size);
    memset(to + (size_t)end * size, 0, (size_t)(band.columns - end) * size);
  }
  return RN_OK;
}

#define TYPES (RN_TYPES_NUMBERS | RN_T(BOOL))
#define OLD_TYPES \
  (RN_TYPES_COMPLEX | RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE) | RN_T(INT32) | RN_T(INT64))
#define ROW(name, function)                                                             \
  {                                                                                     \
    .op = name, .device = "CPU", .types = {{"T", TYPES}}, .state_size = sizeof(diag_t), \
    .init = diag_init, .compute = function                                              \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "Diag", .device = "CPU", .types = {{"T", OLD_TYPES}}, .compute = diag},
    {.op = "DiagPart", .device = "CPU", .types = {{"T", OLD_TYPES}}, .compute = diag_part},
    {.op = "MatrixBandPart", .device = "CPU", .types = {{"T", TYPES}}, .compute = matrix_band_part},
    ROW("MatrixDiag", matrix_diag),
    ROW("MatrixDiagV2", matrix_diag),
    ROW("MatrixDiagV3", matrix_diag),
    ROW("MatrixDiagPart", matrix_diag_part),
    ROW("MatrixDiagPartV2", matrix_diag_part),
    ROW("MatrixDiagPartV3", matrix_diag_part),
    ROW("MatrixSetDiag", matrix_set_diag),
    ROW("MatrixSetDiagV2", matrix_set_diag),
    ROW("MatrixSetDiagV3", matrix_set_diag),
    {.op = "BatchMatrixBandPart",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .compute = matrix_band_part},
    ROW("BatchMatrixDiag", matrix_diag),
    ROW("BatchMatrixDiagPart", matrix_diag_part),
    ROW("BatchMatrixSetDiag", matrix_set_diag),
};
RN_KERNEL_FAMILY(cpu_diag, rows);
