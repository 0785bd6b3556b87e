// Shape functions of text and messages turned into tensors.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_decode_csv(rn_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->input_count; i++) {
    rn_shape_t value;
    RN_TRY(rn_shape_with_rank_at_most(ctx, ctx->inputs[i], 1, &value));
    if (value.rank == 1 && value.dims[0] > 1) {
      return rn_invalid_argument(
          "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < ctx->output_count; i++) ctx->outputs[i] = ctx->inputs[0];
  return RN_OK;
}

rn_status_t rn_shape_fn_decode_raw(rn_shape_ctx_t* ctx) {
  rn_shape_t values;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &values));
  return rn_shape_concat(ctx, ctx->inputs[0], values, &ctx->outputs[0]);
}

rn_status_t rn_shape_fn_decode_padded_raw(rn_shape_ctx_t* ctx) {
  rn_shape_t values;
  int64_t size = RN_UNKNOWN;
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &size));
  RN_TRY(rn_ops_divide(size, (int64_t)rn_dtype_size(rn_shape_attr(ctx, "out_type")->type), &size));
  RN_TRY(rn_shape_vector(ctx, size, &values));
  return rn_shape_concat(ctx, ctx->inputs[0], values, &ctx->outputs[0]);
}

// Outputs are set one after the other: |*inout_next| is the next one to set.

// Indices, values and shapes of |count| sparse features, whose indices are of |rank|.
static rn_status_t sparse_outputs(rn_shape_ctx_t* ctx, int64_t count, int rank, int* inout_next) {
  int first = *inout_next, n = (int)count;
  for (int i = 0; i < n; i++) {
    RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, &ctx->outputs[first + i]));
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &ctx->outputs[first + n + i]));
    RN_TRY(rn_shape_vector(ctx, rank, &ctx->outputs[first + 2 * n + i]));
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

// Dense features: |rows| followed by the shape of each.
static rn_status_t dense_outputs(rn_shape_ctx_t* ctx, const char* attr, rn_shape_t rows,
                                 int* inout_next) {
  const rn_attr_value_t* dense = rn_shape_attr(ctx, attr);
  for (int i = 0; i < dense->count; i++) {
    rn_shape_t shape;
    RN_TRY(rn_shape_with_rank_at_most(ctx, dense->list_shape[i], RN_MAX_RANK, &shape));
    bool is_known = rn_shape_has_rank(shape);
    for (int d = 1; d < shape.rank; d++) is_known = is_known && shape.dims[d] >= 0;
    if (!is_known) return unknown_inner(ctx, attr, i, shape);
    RN_TRY(rn_shape_concat(ctx, rows, shape, &ctx->outputs[(*inout_next)++]));
  }
  return RN_OK;
}

static rn_status_t vectors(rn_shape_ctx_t* ctx, int count, int64_t size, int* inout_next) {
  for (int i = 0; i < count; i++)
    RN_TRY(rn_shape_vector(ctx, size, &ctx->outputs[(*inout_next)++]));
  return RN_OK;
}

static int list_count(const rn_shape_ctx_t* ctx, const char* name) {
  return rn_shape_attr(ctx, name)->count;
}

static rn_status_t example_outputs(rn_shape_ctx_t* ctx, int sparse, rn_shape_t rows) {
  int next = 0;
  if (ctx->output_count != 3 * sparse + list_count(ctx, "dense_shapes")) {
    return rn_invalid_argument("len(dense_keys) != len(dense_shapes)");
  }
  RN_TRY(sparse_outputs(ctx, sparse, rows.rank + 1, &next));
  return dense_outputs(ctx, "dense_shapes", rows, &next);
}

rn_status_t rn_shape_fn_parse_example(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  RN_TRY(rn_shape_with_rank(ctx, ctx->inputs[0], 1, &rows));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return example_outputs(ctx, (int)rn_ops_int(ctx, "Nsparse"), rows);
}

rn_status_t rn_shape_fn_parse_single_example(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return example_outputs(ctx, (int)rn_ops_int(ctx, "num_sparse"), RN_SHAPE_SCALAR);
}

// A scalar or a vector of serialised messages; unknown dims where the rank is not known.
static rn_status_t message_rows(rn_shape_ctx_t* ctx, rn_shape_t* out) {
  return rn_shape_with_rank_at_most(ctx, ctx->inputs[0], 1, out);
}

// Where row splits of a batch end: one more than there are rows.
static int64_t splits_of(rn_shape_t rows) {
  return rows.rank == 1 && rows.dims[0] >= 0 ? rows.dims[0] + 1 : RN_UNKNOWN;
}

rn_status_t rn_shape_fn_parse_example_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  int next = 0, ragged = list_count(ctx, "ragged_value_types");
  RN_TRY(message_rows(ctx, &rows));
  if (list_count(ctx, "Tdense") != list_count(ctx, "dense_shapes")) {
    return rn_invalid_argument("len(dense_keys) != len(dense_shapes)");
  }
  if (ragged != list_count(ctx, "ragged_split_types")) {
    return rn_invalid_argument("len(ragged_value_types) != len(ragged_split_types)");
  }
  int rank = rn_shape_has_rank(rows) ? rows.rank + 1 : RN_UNKNOWN;
  RN_TRY(sparse_outputs(ctx, rn_ops_int(ctx, "num_sparse"), rank, &next));
  RN_TRY(dense_outputs(ctx, "dense_shapes", rows, &next));
  RN_TRY(vectors(ctx, ragged, RN_UNKNOWN, &next));
  return vectors(ctx, ragged, splits_of(rows), &next);
}

// Features of steps are dense behind the rows and the steps.
static rn_status_t step_rows(rn_shape_ctx_t* ctx, rn_shape_t rows, rn_shape_t* out) {
  rn_shape_t steps;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &steps));
  return rn_shape_concat(ctx, rows, steps, out);
}

static rn_status_t check_sequence_counts(rn_shape_ctx_t* ctx, bool has_ragged, bool has_lengths) {
  int64_t dense = list_count(ctx, "feature_list_dense_types");
  int64_t count = 3 * rn_ops_int(ctx, "Ncontext_sparse") + list_count(ctx, "Tcontext_dense") +
                  3 * rn_ops_int(ctx, "Nfeature_list_sparse") + (has_lengths ? 2 : 1) * dense;
  if (has_ragged)
    count += 2 * list_count(ctx, "context_ragged_value_types") +
             3 * list_count(ctx, "feature_list_ragged_value_types");
  if (count == ctx->output_count) return RN_OK;
  return rn_invalid_argument("The lists of keys, types and shapes do not fit together");
}

static rn_status_t sequence_outputs(rn_shape_ctx_t* ctx, rn_shape_t rows, bool has_ragged,
                                    bool has_lengths) {
  rn_shape_t steps;
  int next = 0, rank = rn_shape_has_rank(rows) ? rows.rank : RN_UNKNOWN;
  RN_TRY(step_rows(ctx, rows, &steps));
  if (list_count(ctx, "Tcontext_dense") != list_count(ctx, "context_dense_shapes"))
    return rn_invalid_argument("len(context_dense_keys) != len(context_dense_shapes)");
  if (list_count(ctx, "feature_list_dense_types") != list_count(ctx, "feature_list_dense_shapes"))
    return rn_invalid_argument("len(feature_list_dense_keys) != len(feature_list_dense_shapes)");
  RN_TRY(check_sequence_counts(ctx, has_ragged, has_lengths));
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
    for (int i = 0; i < count; i++) ctx->outputs[next++] = rows;
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
  RN_TRY(rn_shape_with_rank(ctx, ctx->inputs[0], 1, &rows));
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
  rn_shape_t messages = ctx->inputs[0], last;
  if (!rn_shape_has_rank(messages)) return RN_OK;
  for (int i = 0; i < ctx->output_count; i++) {
    RN_TRY(rn_shape_vector(ctx, i ? RN_UNKNOWN : ctx->output_count - 1, &last));
    RN_TRY(rn_shape_concat(ctx, messages, last, &ctx->outputs[i]));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_encode_proto(rn_shape_ctx_t* ctx) {
  rn_shape_t merged, values, own;
  RN_TRY(rn_shape_with_rank_at_least(ctx, ctx->inputs[0], 1, &own));
  merged = RN_SHAPE_UNKNOWN;
  for (int i = 1; i < ctx->input_count; i++) {
    RN_TRY(rn_shape_with_rank_at_least(ctx, ctx->inputs[i], 2, &values));
    if (!rn_shape_has_rank(values)) continue;
    RN_TRY(rn_shape_slice(ctx, values, 0, -1, &values));
    RN_TRY(rn_shape_merge(ctx, merged, values, &merged));
  }
  ctx->outputs[0] = merged;
  return RN_OK;
}
