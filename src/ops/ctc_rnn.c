// Shape functions of LSTM and GRU cells and of CTC.
#include "ops/shapes.h"

// Sets outputs |first| to |last| to matrices of this size.
static rn_status_t output_matrices(rn_shape_ctx_t* ctx, int first, int last, int64_t rows,
                                   int64_t columns) {
  for (int i = first; i <= last; i++)
    RN_TRY(rn_shape_matrix(ctx, rows, columns, rn_shape_out(ctx, i)));
  return RN_OK;
}

// Reads the batch size from x and the cell size from the previous state.
static rn_status_t cell_sizes(rn_shape_ctx_t* ctx, int64_t* out_batch, int64_t* out_cell) {
  rn_shape_t x, state;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &x));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &state));
  *out_batch = x.dims[0];
  *out_cell = state.dims[1];
  return RN_OK;
}

rn_status_t rn_shape_fn_lstm_cell(rn_shape_ctx_t* ctx) {
  int64_t batch, cell;
  RN_TRY(cell_sizes(ctx, &batch, &cell));
  return output_matrices(ctx, 0, 6, batch, cell);
}

rn_status_t rn_shape_fn_lstm_cell_grad(rn_shape_ctx_t* ctx) {
  int64_t batch, cell, gates;
  RN_TRY(cell_sizes(ctx, &batch, &cell));
  RN_TRY(rn_ops_multiply(cell, 4, &gates));
  RN_TRY(output_matrices(ctx, 0, 0, batch, cell));
  RN_TRY(output_matrices(ctx, 1, 1, batch, gates));
  for (int i = 2; i < 5; i++) RN_TRY(rn_shape_vector(ctx, cell, rn_shape_out(ctx, i)));
  return RN_OK;
}

rn_status_t rn_shape_fn_gru_cell(rn_shape_ctx_t* ctx) {
  int64_t batch, cell;
  RN_TRY(cell_sizes(ctx, &batch, &cell));
  return output_matrices(ctx, 0, 3, batch, cell);
}

rn_status_t rn_shape_fn_gru_cell_grad(rn_shape_ctx_t* ctx) {
  int64_t batch, cell;
  rn_shape_t w;
  RN_TRY(cell_sizes(ctx, &batch, &cell));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 2, &w));
  RN_TRY(output_matrices(ctx, 0, 0, batch, rn_shape_dim(rn_shape_in(ctx, 0), 1)));
  RN_TRY(output_matrices(ctx, 1, 2, batch, cell));
  return output_matrices(ctx, 3, 3, batch, w.dims[1]);
}

rn_status_t rn_shape_fn_block_lstm(rn_shape_ctx_t* ctx) {
  rn_shape_t x, b, out;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &x));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 8), 1, &b));
  int64_t dims[3] = {x.dims[0], x.dims[1], RN_UNKNOWN};
  RN_TRY(rn_ops_divide(b.dims[0], 4, &dims[2]));
  RN_TRY(rn_shape_make(ctx, 3, dims, &out));
  for (int i = 0; i < 7; i++) *rn_shape_out(ctx, i) = out;
  return RN_OK;
}

// Each gradient has the shape of its parameter.
rn_status_t rn_shape_fn_block_lstm_grad(rn_shape_ctx_t* ctx) {
  static const int ranks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; i++)
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i + 1), ranks[i], rn_shape_out(ctx, i)));
  return RN_OK;
}

// input [time, batch, size] (batch first if not time_major), input_h [layers * directions, batch,
// units].
rn_status_t rn_shape_fn_cudnn_rnn(rn_shape_ctx_t* ctx) {
  rn_shape_t input, state;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 3, &input));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &state));
  RN_TRY(rn_ops_check_rank(ctx, 3, 1));
  bool is_both = rn_str_is(rn_shape_attr(ctx, "direction")->s, "bidirectional");
  bool is_lstm = rn_str_is(rn_shape_attr(ctx, "rnn_mode")->s, "lstm");
  int64_t dims[3] = {input.dims[0], input.dims[1], RN_UNKNOWN};
  RN_TRY(rn_ops_multiply(state.dims[2], is_both ? 2 : 1, &dims[2]));
  RN_TRY(rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = state;
  if (is_lstm) {
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 3, rn_shape_out(ctx, 2)));
  } else {
    RN_TRY(rn_shape_make(ctx, 0, NULL, rn_shape_out(ctx, 2)));
  }
  return RN_OK;
}

// Checks the logits and the sequence lengths, which must have the same batch size.
static rn_status_t sequence_inputs(rn_shape_ctx_t* ctx, int lengths_input, rn_shape_t* out_scores,
                                   int64_t* out_batch) {
  rn_shape_t lengths;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 3, out_scores));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, lengths_input), 1, &lengths));
  return rn_dim_merge(out_scores->dims[1], lengths.dims[0], out_batch);
}

rn_status_t rn_shape_fn_ctc_loss(rn_shape_ctx_t* ctx) {
  rn_shape_t scores, indices, values, lengths;
  int64_t batch, unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 3, &scores));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &indices));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &values));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 3), 1, &lengths));
  RN_TRY(rn_dim_merge(indices.dims[0], values.dims[0], &unused));
  RN_TRY(rn_dim_merge(scores.dims[1], lengths.dims[0], &batch));
  RN_TRY(rn_shape_vector(ctx, batch, rn_shape_out(ctx, 0)));
  return rn_shape_replace_dim(ctx, scores, 1, batch, rn_shape_out(ctx, 1));
}

static rn_status_t decoded(rn_shape_ctx_t* ctx, int paths) {
  rn_shape_t scores;
  int64_t batch;
  RN_TRY(sequence_inputs(ctx, 1, &scores, &batch));
  for (int i = 0; i < paths; i++) {
    RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, 2, rn_shape_out(ctx, i)));
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, paths + i)));
    RN_TRY(rn_shape_vector(ctx, 2, rn_shape_out(ctx, 2 * paths + i)));
  }
  return rn_shape_matrix(ctx, batch, paths, rn_shape_out(ctx, 3 * paths));
}

rn_status_t rn_shape_fn_ctc_greedy(rn_shape_ctx_t* ctx) { return decoded(ctx, 1); }

rn_status_t rn_shape_fn_ctc_beam(rn_shape_ctx_t* ctx) {
  return decoded(ctx, (int)rn_ops_int(ctx, "top_paths"));
}
