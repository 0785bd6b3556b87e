// Shape functions of linear algebra on batches of matrices.
#include "ops/shapes.h"

// Checks a batch of square matrices; returns the batch dims and the size of a matrix.
static rn_status_t square(rn_shape_ctx_t* ctx, rn_shape_t in, rn_shape_t* out_batch,
                          int64_t* out_size) {
  RN_TRY(rn_shape_with_rank_at_least(ctx, in, 2, &in));
  RN_TRY(rn_dim_merge(rn_shape_dim(in, -2), rn_shape_dim(in, -1), out_size));
  return rn_shape_slice(ctx, in, 0, -2, out_batch);
}

rn_status_t rn_shape_fn_square_matrix(rn_shape_ctx_t* ctx) {
  rn_shape_t batch, matrix;
  int64_t size;
  RN_TRY(square(ctx, rn_shape_in(ctx, 0), &batch, &size));
  RN_TRY(rn_shape_matrix(ctx, size, size, &matrix));
  return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_matrix_determinant(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t size;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_dim_merge(rn_shape_dim(in, -1), rn_shape_dim(in, -2), &size));
  return rn_shape_slice(ctx, in, 0, -2, rn_shape_out(ctx, 0));
}

static rn_status_t solve(rn_shape_ctx_t* ctx, bool broadcasts) {
  rn_shape_t left, right, batch, matrix;
  int64_t size;
  RN_TRY(square(ctx, rn_shape_in(ctx, 0), &left, &size));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &right));
  RN_TRY(rn_shape_slice(ctx, right, 0, -2, &batch));
  if (broadcasts) {
    RN_TRY(rn_shape_broadcast(ctx, left, batch, true, &batch));
  } else {
    RN_TRY(rn_shape_merge(ctx, left, batch, &batch));
  }
  RN_TRY(rn_dim_merge(size, rn_shape_dim(right, -2), &size));
  RN_TRY(rn_shape_matrix(ctx, size, rn_shape_dim(right, -1), &matrix));
  return rn_shape_concat(ctx, batch, matrix, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_matrix_solve(rn_shape_ctx_t* ctx) { return solve(ctx, false); }
rn_status_t rn_shape_fn_matrix_triangular_solve(rn_shape_ctx_t* ctx) { return solve(ctx, true); }

rn_status_t rn_shape_fn_log_matrix_determinant(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_matrix_determinant(ctx));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

// Sets output |i| to a batch of matrices, or of vectors if |columns| is NULL.
static rn_status_t set_output(rn_shape_ctx_t* ctx, int i, rn_shape_t batch, int64_t rows,
                              const int64_t* columns) {
  rn_shape_t end;
  RN_TRY(columns ? rn_shape_matrix(ctx, rows, *columns, &end) : rn_shape_vector(ctx, rows, &end));
  return rn_shape_concat(ctx, batch, end, rn_shape_out(ctx, i));
}

static int64_t least(int64_t m, int64_t n) {
  if (m == 0 || n == 0) return 0;
  if (m == RN_UNKNOWN || n == RN_UNKNOWN) return RN_UNKNOWN;
  return m < n ? m : n;
}

rn_status_t rn_shape_fn_qr(rn_shape_ctx_t* ctx) {
  rn_shape_t in, batch;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &batch));
  int64_t m = rn_shape_dim(in, -2), n = rn_shape_dim(in, -1);
  int64_t width = rn_shape_attr(ctx, "full_matrices")->b ? m : least(m, n);
  RN_TRY(set_output(ctx, 0, batch, m, &width));
  return set_output(ctx, 1, batch, width, &n);
}

rn_status_t rn_shape_fn_self_adjoint_eig(rn_shape_ctx_t* ctx) {
  rn_shape_t batch;
  int64_t n;
  RN_TRY(square(ctx, rn_shape_in(ctx, 0), &batch, &n));
  RN_TRY(set_output(ctx, 0, batch, n, NULL));
  if (rn_shape_attr(ctx, "compute_v")->b) return set_output(ctx, 1, batch, n, &n);
  return rn_shape_vector(ctx, 0, rn_shape_out(ctx, 1));
}

// The values are one more row, in front of the vectors.
rn_status_t rn_shape_fn_self_adjoint_eig_v1(rn_shape_ctx_t* ctx) {
  rn_shape_t batch;
  int64_t n, rows;
  RN_TRY(square(ctx, rn_shape_in(ctx, 0), &batch, &n));
  RN_TRY(rn_ops_add(n, 1, &rows));
  return set_output(ctx, 0, batch, rows, &n);
}

rn_status_t rn_shape_fn_svd(rn_shape_ctx_t* ctx) {
  rn_shape_t in, batch;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &in));
  RN_TRY(rn_shape_slice(ctx, in, 0, -2, &batch));
  int64_t m = rn_shape_dim(in, -2), n = rn_shape_dim(in, -1), p = least(m, n);
  RN_TRY(set_output(ctx, 0, batch, p, NULL));
  if (!rn_shape_attr(ctx, "compute_uv")->b) {
    RN_TRY(rn_shape_vector(ctx, 0, rn_shape_out(ctx, 1)));
    return rn_shape_vector(ctx, 0, rn_shape_out(ctx, 2));
  }
  bool is_full = rn_shape_attr(ctx, "full_matrices")->b;
  RN_TRY(set_output(ctx, 1, batch, m, is_full ? &m : &p));
  return set_output(ctx, 2, batch, n, is_full ? &n : &p);
}

rn_status_t rn_shape_fn_lu(rn_shape_ctx_t* ctx) {
  rn_shape_t batch;
  int64_t n;
  RN_TRY(square(ctx, rn_shape_in(ctx, 0), &batch, &n));
  RN_TRY(set_output(ctx, 0, batch, n, &n));
  return set_output(ctx, 1, batch, n, NULL);
}

rn_status_t rn_shape_fn_cholesky_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_fn_square_matrix(ctx);
}

rn_status_t rn_shape_fn_matrix_solve_ls(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b, batch, other;
  int64_t rows;
  RN_TRY(rn_ops_check_scalars(ctx, 2, 2));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &b));
  RN_TRY(rn_shape_slice(ctx, a, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &other));
  RN_TRY(rn_shape_merge(ctx, batch, other, &batch));
  RN_TRY(rn_dim_merge(rn_shape_dim(a, -2), rn_shape_dim(b, -2), &rows));
  int64_t columns = rn_shape_dim(b, -1);
  return set_output(ctx, 0, batch, rn_shape_dim(a, -1), &columns);
}

rn_status_t rn_shape_fn_tridiagonal_solve(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b, batch, other;
  int64_t n, rows;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &b));
  RN_TRY(rn_shape_slice(ctx, a, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &other));
  RN_TRY(rn_shape_merge(ctx, batch, other, &batch));
  RN_TRY(rn_dim_with_value(rn_shape_dim(a, -2), 3, &rows));
  RN_TRY(rn_dim_merge(rn_shape_dim(a, -1), rn_shape_dim(b, -2), &n));
  int64_t columns = rn_shape_dim(b, -1);
  return set_output(ctx, 0, batch, n, &columns);
}

rn_status_t rn_shape_fn_tridiagonal_mat_mul(rn_shape_ctx_t* ctx) {
  rn_shape_t diagonal, b, batch, other;
  int64_t n, rows;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &diagonal));
  for (int i = 1; i < 3; ++i) {
    rn_shape_t next;
    RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, i), 2, &next));
    RN_TRY(rn_shape_merge(ctx, diagonal, next, &diagonal));
  }
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 3), 2, &b));
  RN_TRY(rn_shape_slice(ctx, diagonal, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &other));
  RN_TRY(rn_shape_merge(ctx, batch, other, &batch));
  RN_TRY(rn_dim_with_value(rn_shape_dim(diagonal, -2), 1, &rows));
  RN_TRY(rn_dim_merge(rn_shape_dim(diagonal, -1), rn_shape_dim(b, -2), &n));
  int64_t columns = rn_shape_dim(b, -1);
  return set_output(ctx, 0, batch, n, &columns);
}

rn_status_t rn_shape_fn_banded_triangular_solve(rn_shape_ctx_t* ctx) {
  rn_shape_t a, b, batch, other;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 2, &a));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 2, &b));
  int64_t bands = rn_shape_dim(a, -2), n = rn_shape_dim(a, -1);
  if (bands == 0)
    return rn_invalid_argument("Number of bands must be positive, but is %" PRId64, bands);
  if (bands > n && n != RN_UNKNOWN)
    return rn_invalid_argument(
        "Number of bands %" PRId64 " cannot exceed the size of the matrix %" PRId64, bands, n);
  RN_TRY(rn_shape_slice(ctx, a, 0, -2, &batch));
  RN_TRY(rn_shape_slice(ctx, b, 0, -2, &other));
  RN_TRY(rn_shape_broadcast(ctx, batch, other, true, &batch));
  RN_TRY(rn_dim_merge(n, rn_shape_dim(b, -2), &n));
  int64_t columns = rn_shape_dim(b, -1);
  return set_output(ctx, 0, batch, n, &columns);
}

// Einsum: "ab,bc->ac". Each letter is an axis; an ellipsis stands for axes that broadcast.

enum { LETTERS = 52 };

static int letter_index(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
  return -1;
}

// One term of an equation.
typedef struct rn_term_t {
  int letters[RN_MAX_RANK];
  int count;
  int ellipsis;  // number of letters before the ellipsis; -1 if there is none
} rn_term_t;

static rn_status_t parse_term(rn_str_t text, rn_term_t* term) {
  term->count = 0;
  term->ellipsis = -1;
  for (size_t i = 0; i < text.size; i++) {
    int letter = letter_index(text.data[i]);
    if (letter >= 0 && term->count < RN_MAX_RANK) {
      term->letters[term->count++] = letter;
    } else if (term->ellipsis < 0 && i + 2 < text.size && !memcmp(text.data + i, "...", 3)) {
      term->ellipsis = term->count;
      i += 2;
    } else {
      return rn_invalid_argument("Invalid character in einsum equation term: %.*s",
                                 RN_STR_ARGS(text));
    }
  }
  return RN_OK;
}

// Merges the dims of one input, whose rank fits the term, into the sizes of its letters and of the
// ellipsis.
static rn_status_t learn_sizes(rn_shape_ctx_t* ctx, const rn_term_t* term, rn_shape_t in,
                               int64_t* sizes, rn_shape_t* inout_broadcast, bool* inout_unknown) {
  if (!rn_shape_has_rank(in)) {
    *inout_unknown = *inout_unknown || term->ellipsis >= 0;
    return RN_OK;
  }
  int extra = in.rank - term->count;
  for (int i = 0; i < term->count; i++) {
    int axis = term->ellipsis >= 0 && i >= term->ellipsis ? i + extra : i;
    int64_t* size = &sizes[term->letters[i]];
    RN_TRY(rn_dim_merge(*size, in.dims[axis], size));
  }
  if (term->ellipsis < 0) return RN_OK;
  rn_shape_t middle;
  RN_TRY(rn_shape_slice(ctx, in, term->ellipsis, term->ellipsis + extra, &middle));
  return rn_shape_broadcast(ctx, *inout_broadcast, middle, true, inout_broadcast);
}

rn_status_t rn_shape_fn_einsum(rn_shape_ctx_t* ctx) {
  rn_str_t equation = rn_shape_attr(ctx, "equation")->s, left = equation;
  size_t arrow = 0;
  while (arrow + 1 < equation.size && memcmp(equation.data + arrow, "->", 2) != 0) arrow++;
  if (arrow + 1 >= equation.size) {
    return rn_invalid_argument("Expecting exactly one '->' in einsum equation: %.*s",
                               RN_STR_ARGS(equation));
  }
  left.size = arrow;
  rn_str_t right = {equation.data + arrow + 2, equation.size - arrow - 2};
  int64_t sizes[LETTERS];
  bool seen[LETTERS] = {false};
  for (int i = 0; i < LETTERS; i++) sizes[i] = RN_UNKNOWN;
  rn_shape_t broadcast = RN_SHAPE_SCALAR, before, after;
  rn_term_t* term;
  RN_TRY(RN_ARENA_NEW(ctx->arena, &term));
  bool broadcast_unknown = false;
  int terms = 1;
  for (size_t i = 0; i < left.size; i++) terms += left.data[i] == ',';
  if (terms > 2) {
    return rn_invalid_argument("Expecting 1 or 2 input subscripts in equation '%.*s' but got: %d",
                               RN_STR_ARGS(equation), terms);
  }
  if (terms != ctx->input_count) {
    return rn_invalid_argument("Expected %d inputs for equation %.*s but got: %d", terms,
                               RN_STR_ARGS(equation), ctx->input_count);
  }
  for (int i = 0; i < terms; i++) {
    RN_TRY(parse_term(rn_str_split(&left, ','), term));
    rn_shape_t in = rn_shape_in(ctx, i);
    rn_status_t status = term->ellipsis < 0
                             ? rn_shape_with_rank(ctx, in, term->count, &in)
                             : rn_shape_with_rank_at_least(ctx, in, term->count, &in);
    RN_TRY(rn_status_annotate(status, "\n\t for %dth input and equation: %.*s", i,
                              RN_STR_ARGS(equation)));
    RN_TRY(learn_sizes(ctx, term, in, sizes, &broadcast, &broadcast_unknown));
    for (int k = 0; k < term->count; k++) seen[term->letters[k]] = true;
  }
  RN_TRY(parse_term(right, term));
  if (term->ellipsis < 0 && !broadcast_unknown) {
    rn_status_t status = rn_shape_with_rank_at_most(ctx, broadcast, 0, &broadcast);
    RN_TRY(
        rn_status_annotate(status,
                           "\n\t for einsum equation '%.*s' without ellipsis (...) in the output "
                           "subscripts where input(s) have non-empty broadcasting shape",
                           RN_STR_ARGS(equation)));
  }
  int64_t dims[RN_MAX_RANK];
  for (int i = 0; i < term->count; i++) {
    int letter = term->letters[i];
    if (!seen[letter]) {
      return rn_invalid_argument(
          "Einsum output subscripts for equation '%.*s' has label '%c' which is not present in the "
          "input subscripts",
          RN_STR_ARGS(equation), letter < 26 ? 'a' + letter : 'A' + letter - 26);
    }
    dims[i] = sizes[letter];
  }
  int split = term->ellipsis < 0 ? term->count : term->ellipsis;
  if (term->ellipsis >= 0 && broadcast_unknown) return RN_OK;
  RN_TRY(rn_shape_make(ctx, split, dims, &before));
  RN_TRY(rn_shape_make(ctx, term->count - split, dims + split, &after));
  if (term->ellipsis >= 0) RN_TRY(rn_shape_concat(ctx, before, broadcast, &before));
  return rn_shape_concat(ctx, before, after, rn_shape_out(ctx, 0));
}
