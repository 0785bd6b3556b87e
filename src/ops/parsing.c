// Shape functions of ops that parse strings and protos.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_decode_csv(rn_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->input_count; i++) {
    rn_shape_t value;
    RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, i), 1, &value));
    if (value.rank == 1 && value.dims[0] > 1) {
      return rn_invalid_argument(
          "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < ctx->output_count; i++) *rn_shape_out(ctx, i) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_decode_raw(rn_shape_ctx_t* ctx) {
  rn_shape_t values;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &values));
  return rn_shape_concat(ctx, rn_shape_in(ctx, 0), values, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_decode_padded_raw(rn_shape_ctx_t* ctx) {
  rn_shape_t values;
  int64_t size = RN_UNKNOWN;
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &size));
  RN_TRY(rn_ops_divide(size, (int64_t)rn_dtype_size(rn_shape_attr(ctx, "out_type")->type), &size));
  RN_TRY(rn_shape_vector(ctx, size, &values));
  return rn_shape_concat(ctx, rn_shape_in(ctx, 0), values, rn_shape_out(ctx, 0));
}

// The helpers below set outputs in order: |*inout_next| is the index of the next one.

// Sets indices, values and shapes of |count| sparse features of this rank.
static rn_status_t sparse_outputs(rn_shape_ctx_t* ctx, int64_t count, int rank, int* inout_next) {
  int first = *inout_next, n = (int)count;
  for (int i = 0; i < n; i++) {
    RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, rn_shape_out(ctx, first + i)));
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, first + n + i)));
    RN_TRY(rn_shape_vector(ctx, rank, rn_shape_out(ctx, first + 2 * n + i)));
  }
  *inout_next += 3 * n;
  return RN_OK;
}

static rn_status_t unknown_inner(rn_shape_ctx_t* ctx, const char* attr, int i, rn_shape_t shape) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->arena->allocator);
  rn_strbuf_printf(&text, "%s[%d] has unknown rank or unknown inner dimensions: ", attr, i);
  rn_shape_print(&text, shape);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_invalid_argument("%s", text.data);
  rn_strbuf_clear(&text);
  return status;
}

// Sets dense features: each is |rows| followed by its own shape.
static rn_status_t dense_outputs(rn_shape_ctx_t* ctx, const char* attr, rn_shape_t rows,
                                 int* inout_next) {
  const rn_attr_value_t* dense = rn_shape_attr(ctx, attr);
  for (int i = 0; i < dense->count; i++) {
    rn_shape_t shape;
    RN_TRY(rn_shape_with_rank_at_most(ctx, dense->list_shape[i], RN_MAX_RANK, &shape));
    bool is_known = rn_shape_has_rank(shape);
    for (int d = 1; d < shape.rank; d++) is_known = is_known && shape.dims[d] >= 0;
    if (!is_known) return unknown_inner(ctx, attr, i, shape);
    RN_TRY(rn_shape_concat(ctx, rows, shape, rn_shape_out(ctx, (*inout_next)++)));
  }
  return RN_OK;
}

static rn_status_t vectors(rn_shape_ctx_t* ctx, int count, int64_t size, int* inout_next) {
  for (int i = 0; i < count; i++)
    RN_TRY(rn_shape_vector(ctx, size, rn_shape_out(ctx, (*inout_next)++)));
  return RN_OK;
}

static int list_count(const rn_shape_ctx_t* ctx, const char* name) {
  return rn_shape_attr(ctx, name)->count;
}

// Fails, with TensorFlow's message, unless both lists have the same length.
static rn_status_t check_lengths(int64_t keys, int64_t values, const char* keys_name,
                                 const char* values_name) {
  if (keys == values) return RN_OK;
  return rn_invalid_argument("len(%s) != len(%s)", keys_name, values_name);
}

static rn_status_t check_sparse(rn_shape_ctx_t* ctx, const char* count) {
  return check_lengths(rn_ops_int(ctx, count), list_count(ctx, "sparse_types"), "sparse_keys",
                       "sparse_types");
}

static rn_status_t check_dense(rn_shape_ctx_t* ctx) {
  return check_lengths(list_count(ctx, "Tdense"), list_count(ctx, "dense_shapes"), "dense_keys",
                       "dense_shapes");
}

static rn_status_t example_outputs(rn_shape_ctx_t* ctx, const char* count, rn_shape_t rows) {
  int next = 0;
  RN_TRY(check_sparse(ctx, count));
  RN_TRY(check_dense(ctx));
  RN_TRY(sparse_outputs(ctx, rn_ops_int(ctx, count), rows.rank + 1, &next));
  return dense_outputs(ctx, "dense_shapes", rows, &next);
}

rn_status_t rn_shape_fn_parse_example(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &rows));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  RN_TRY(check_lengths(rn_ops_int(ctx, "Ndense"), list_count(ctx, "Tdense"), "dense_keys",
                       "dense_types"));
  return example_outputs(ctx, "Nsparse", rows);
}

rn_status_t rn_shape_fn_parse_single_example(rn_shape_ctx_t* ctx) {
  int64_t count = rn_ops_int(ctx, "num_sparse");
  int keys = list_count(ctx, "sparse_keys"), types = list_count(ctx, "sparse_types");
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  if (count != keys || count != types) {
    return rn_invalid_argument("num_sparse (%" PRId64
                               ") must match the size of sparse_keys (%d) and sparse_types (%d)",
                               count, keys, types);
  }
  RN_TRY(check_lengths(list_count(ctx, "dense_keys"), list_count(ctx, "Tdense"), "dense_keys",
                       "dense_types"));
  return example_outputs(ctx, "num_sparse", RN_SHAPE_SCALAR);
}

// The shape of the serialized protos: a scalar or a vector; unknown if the rank is not known.
static rn_status_t message_rows(rn_shape_ctx_t* ctx, rn_shape_t* out) {
  return rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 0), 1, out);
}

// The length of the row splits of a batch: the number of rows plus one.
static int64_t splits_of(rn_shape_t rows) {
  return rows.rank == 1 && rows.dims[0] >= 0 ? rows.dims[0] + 1 : RN_UNKNOWN;
}

rn_status_t rn_shape_fn_parse_example_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  int next = 0, ragged = list_count(ctx, "ragged_value_types");
  RN_TRY(message_rows(ctx, &rows));
  RN_TRY(check_sparse(ctx, "num_sparse"));
  RN_TRY(check_dense(ctx));
  RN_TRY(check_lengths(ragged, list_count(ctx, "ragged_split_types"), "ragged_keys",
                       "ragged_split_types"));
  int rank = rn_shape_has_rank(rows) ? rows.rank + 1 : RN_UNKNOWN;
  RN_TRY(sparse_outputs(ctx, rn_ops_int(ctx, "num_sparse"), rank, &next));
  RN_TRY(dense_outputs(ctx, "dense_shapes", rows, &next));
  RN_TRY(vectors(ctx, ragged, RN_UNKNOWN, &next));
  return vectors(ctx, ragged, splits_of(rows), &next);
}

// Sequence features: rows and steps, followed by the dense shape.
static rn_status_t step_rows(rn_shape_ctx_t* ctx, rn_shape_t rows, rn_shape_t* out) {
  rn_shape_t steps;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &steps));
  return rn_shape_concat(ctx, rows, steps, out);
}

// Fails, with TensorFlow's message, unless list |a| and, if not NULL, |b| have |count| elements.
static rn_status_t check_match(rn_shape_ctx_t* ctx, const char* what, int64_t count, const char* a,
                               const char* a_name, const char* b) {
  int in_a = list_count(ctx, a), in_b = b ? list_count(ctx, b) : 0;
  if (in_a == count && (!b || in_b == count)) return RN_OK;
  if (!b) {
    return rn_invalid_argument("num_%s (%" PRId64 ") must match the size of %s (%d)", what, count,
                               a_name, in_a);
  }
  return rn_invalid_argument("num_%s (%" PRId64 ") must match the size of %s (%d) and %s (%d)",
                             what, count, a_name, in_a, b, in_b);
}

// In V1, the keys are attributes.
static rn_status_t check_sequence_keys(rn_shape_ctx_t* ctx) {
  static const char* const rows[][3] = {
      {"context_sparse", "Ncontext_sparse", "context_sparse_keys"},
      {"context_dense", "Ncontext_dense", "context_dense_keys"},
      {"feature_list_sparse", "Nfeature_list_sparse", "feature_list_sparse_keys"},
      {"feature_list_dense", "Nfeature_list_dense", "feature_list_dense_keys"},
  };
  if (rn_op_attr_index(ctx->op, RN_STR("context_sparse_keys")) < 0) return RN_OK;
  for (int i = 0; i < 4; i++) {
    RN_TRY(check_match(ctx, rows[i][0], rn_ops_int(ctx, rows[i][1]), rows[i][2], rows[i][2], NULL));
  }
  return RN_OK;
}

// Compares every count attribute with its lists, because both determine the number of outputs.
static rn_status_t check_sequence_counts(rn_shape_ctx_t* ctx, bool has_ragged) {
  // V2 has no Ncontext_dense; the number of types replaces it.
  bool has_dense_count = rn_op_attr_index(ctx->op, RN_STR("Ncontext_dense")) >= 0;
  int64_t dense =
      has_dense_count ? rn_ops_int(ctx, "Ncontext_dense") : list_count(ctx, "Tcontext_dense");
  RN_TRY(check_sequence_keys(ctx));
  RN_TRY(check_match(ctx, "context_sparse", rn_ops_int(ctx, "Ncontext_sparse"),
                     "context_sparse_types", "context_sparse_types", NULL));
  RN_TRY(check_match(ctx, "context_dense", dense, "Tcontext_dense", "context_dense_types",
                     "context_dense_shapes"));
  if (has_ragged) {
    RN_TRY(check_match(ctx, "context_ragged", list_count(ctx, "context_ragged_value_types"),
                       "context_ragged_value_types", "context_ragged_value_types",
                       "context_ragged_split_types"));
  }
  RN_TRY(check_match(ctx, "feature_list_sparse", rn_ops_int(ctx, "Nfeature_list_sparse"),
                     "feature_list_sparse_types", "feature_list_sparse_types", NULL));
  RN_TRY(check_match(ctx, "feature_list_dense", rn_ops_int(ctx, "Nfeature_list_dense"),
                     "feature_list_dense_types", "feature_list_dense_types",
                     "feature_list_dense_shapes"));
  if (!has_ragged) return RN_OK;
  return check_match(ctx, "feature_list_ragged", list_count(ctx, "feature_list_ragged_value_types"),
                     "feature_list_ragged_value_types", "feature_list_ragged_value_types",
                     "feature_list_ragged_split_types");
}

static rn_status_t check_single_sequence_counts(rn_shape_ctx_t* ctx) {
  static const char* const rows[][4] = {
      {"Ncontext_sparse", "context_sparse_types", "context_sparse_keys", "context_sparse_types"},
      {"Ncontext_dense", "Tcontext_dense", "context_dense_keys", "context_dense_types"},
      {"Ncontext_dense", "context_dense_shapes", "context_dense_keys", "context_dense_shapes"},
      {"Nfeature_list_sparse", "feature_list_sparse_types", "feature_list_sparse_keys",
       "feature_list_sparse_types"},
      {"Nfeature_list_dense", "feature_list_dense_types", "feature_list_dense_keys",
       "feature_list_dense_types"},
      {"Nfeature_list_dense", "feature_list_dense_shapes", "feature_list_dense_keys",
       "feature_list_dense_shapes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    RN_TRY(check_lengths(rn_ops_int(ctx, rows[i][0]), list_count(ctx, rows[i][1]), rows[i][2],
                         rows[i][3]));
  }
  return RN_OK;
}

static rn_status_t sequence_outputs(rn_shape_ctx_t* ctx, rn_shape_t rows, bool has_ragged,
                                    bool has_lengths) {
  rn_shape_t steps;
  int next = 0, rank = rn_shape_has_rank(rows) ? rows.rank : RN_UNKNOWN;
  RN_TRY(step_rows(ctx, rows, &steps));
  RN_TRY(has_lengths ? check_sequence_counts(ctx, has_ragged) : check_single_sequence_counts(ctx));
  int one = rank < 0 ? RN_UNKNOWN : rank + 1, two = rank < 0 ? RN_UNKNOWN : rank + 2;
  RN_TRY(sparse_outputs(ctx, rn_ops_int(ctx, "Ncontext_sparse"), one, &next));
  RN_TRY(dense_outputs(ctx, "context_dense_shapes", rows, &next));
  if (has_ragged) {
    int count = list_count(ctx, "context_ragged_value_types");
    RN_TRY(vectors(ctx, count, RN_UNKNOWN, &next));
    RN_TRY(vectors(ctx, count, splits_of(rows), &next));
  }
  RN_TRY(sparse_outputs(ctx, rn_ops_int(ctx, "Nfeature_list_sparse"), two, &next));
  RN_TRY(dense_outputs(ctx, "feature_list_dense_shapes", steps, &next));
  if (has_lengths) {
    int count = list_count(ctx, "feature_list_dense_types");
    for (int i = 0; i < count; i++) *rn_shape_out(ctx, next++) = rows;
  }
  if (has_ragged) {
    int count = list_count(ctx, "feature_list_ragged_value_types");
    RN_TRY(vectors(ctx, count, RN_UNKNOWN, &next));
    RN_TRY(vectors(ctx, count, splits_of(rows), &next));
    RN_TRY(vectors(ctx, count, RN_UNKNOWN, &next));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_parse_sequence_example(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &rows));
  return sequence_outputs(ctx, rows, false, true);
}

rn_status_t rn_shape_fn_parse_sequence_example_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  RN_TRY(message_rows(ctx, &rows));
  return sequence_outputs(ctx, rows, true, true);
}

rn_status_t rn_shape_fn_parse_single_sequence_example(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return sequence_outputs(ctx, RN_SHAPE_SCALAR, false, false);
}

rn_status_t rn_shape_fn_decode_proto(rn_shape_ctx_t* ctx) {
  rn_shape_t messages = rn_shape_in(ctx, 0), last;
  if (!rn_shape_has_rank(messages)) return RN_OK;
  for (int i = 0; i < ctx->output_count; i++) {
    RN_TRY(rn_shape_vector(ctx, i ? RN_UNKNOWN : ctx->output_count - 1, &last));
    RN_TRY(rn_shape_concat(ctx, messages, last, rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_encode_proto(rn_shape_ctx_t* ctx) {
  rn_shape_t merged, values, own;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &own));
  merged = RN_SHAPE_UNKNOWN;
  for (int i = 1; i < ctx->input_count; i++) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, i), 2, &values));
    if (!rn_shape_has_rank(values)) continue;
    RN_TRY(rn_shape_slice(ctx, values, 0, -1, &values));
    RN_TRY(rn_shape_merge(ctx, merged, values, &merged));
  }
  *rn_shape_out(ctx, 0) = merged;
  return RN_OK;
}
