// Gradient rules of LSTM and GRU cells and of CTC.
#include "ops/rules.h"

// Output |i| of the node that |edge| comes from.
static rn_edge_t other_output(rn_edge_t edge, int i) { return (rn_edge_t){edge.node, i}; }

RN_RULE(block_lstm) {
  enum { INPUTS = 9, OUTPUTS = 7, CS = 1, H = 6 };
  rn_edge_t in[INPUTS + OUTPUTS + 2];
  for (int i = 0; i < INPUTS; ++i) in[i] = rn_grad_in(g, i);
  for (int o = 0; o < OUTPUTS; ++o) in[INPUTS + o] = rn_grad_out(g, o);
  in[INPUTS + OUTPUTS] = rn_grad_dy(g, CS);
  in[INPUTS + OUTPUTS + 1] = rn_grad_dy(g, H);
  const char* op = rn_grad_op(g);
  rn_edge_t back = rn_rule_alike_(g, !strcmp(op, "BlockLSTM") ? "BlockLSTMGrad" : "BlockLSTMGradV2",
                                  INPUTS + OUTPUTS + 2, in);
  for (int i = 1; i < INPUTS; ++i) rn_grad_to(g, i, other_output(back, i - 1));
  return RN_OK;
}

// Columns [begin, begin + width) of |matrix|.
static rn_edge_t columns(rn_grad_t* g, rn_edge_t matrix, rn_edge_t begin, rn_edge_t width) {
  rn_edge_t from[2] = {rn_const_int32(g->scope, 0), begin};
  rn_edge_t size[2] = {rn_const_int32(g->scope, -1), width};
  return rn_Slice(g->scope, matrix, rn_Pack(g->scope, from, 2), rn_Pack(g->scope, size, 2));
}

static rn_edge_t width_of(rn_grad_t* g, rn_edge_t matrix) {
  rn_edge_t shape = rn_rule_shape(g, matrix, RN_INT32);
  return rn_Gather(g->scope, shape, rn_const_int32(g->scope, 1));
}

// The concatenation of x and h.
static rn_edge_t beside(rn_grad_t* g, rn_edge_t x, rn_edge_t h) {
  rn_edge_t both[2] = {x, h};
  return rn_ConcatV2(g->scope, both, 2, rn_const_int32(g->scope, 1));
}

static rn_edge_t sum_rows(rn_grad_t* g, rn_edge_t matrix) {
  return rn_Sum(g->scope, matrix, rn_const_int32(g->scope, 0));
}

RN_RULE(lstm_cell) {
  enum { INPUTS = 8, OUTPUTS = 6, CS = 1, H = 6 };
  rn_edge_t in[INPUTS + OUTPUTS + 2];
  for (int i = 0; i < INPUTS; ++i) in[i] = rn_grad_in(g, i);
  for (int o = 0; o < OUTPUTS; ++o) in[INPUTS + o] = rn_grad_out(g, o);
  in[INPUTS + OUTPUTS] = rn_grad_dy(g, CS);
  in[INPUTS + OUTPUTS + 1] = rn_grad_dy(g, H);
  rn_edge_t back = rn_rule_alike_(g, "LSTMBlockCellGrad", INPUTS + OUTPUTS + 2, in);
  rn_edge_t gates = other_output(back, 1), x = in[0], h = in[2], w = in[3];
  rn_edge_t both = rn_MatMul(g->scope, gates, w, .transpose_b = true);
  rn_edge_t width = width_of(g, x), zero = rn_const_int32(g->scope, 0);
  rn_grad_to(g, 0, columns(g, both, zero, width));
  rn_grad_to(g, 1, other_output(back, 0));
  rn_grad_to(g, 2, columns(g, both, width, rn_const_int32(g->scope, -1)));
  rn_grad_to(g, 3, rn_MatMul(g->scope, beside(g, x, h), gates, .transpose_a = true));
  for (int i = 0; i < 3; ++i) rn_grad_to(g, 4 + i, other_output(back, 2 + i));
  rn_grad_to(g, 7, sum_rows(g, gates));
  return RN_OK;
}

RN_RULE(gru_cell) {
  rn_edge_t x = rn_grad_in(g, 0), h = rn_grad_in(g, 1);
  rn_edge_t r = rn_grad_out(g, 0);
  rn_GRUBlockCellGrad_out_t back = rn_GRUBlockCellGrad(
      g->scope, x, h, rn_grad_in(g, 2), rn_grad_in(g, 3), rn_grad_in(g, 4), rn_grad_in(g, 5), r,
      rn_grad_out(g, 1), rn_grad_out(g, 2), rn_grad_dy(g, 3));
  rn_edge_t reset = beside(g, x, rn_Mul(g->scope, h, r));
  rn_grad_to(g, 0, back.d_x);
  rn_grad_to(g, 1, back.d_h_prev);
  rn_grad_to(g, 2, rn_MatMul(g->scope, beside(g, x, h), back.d_r_bar_u_bar, .transpose_a = true));
  rn_grad_to(g, 3, rn_MatMul(g->scope, reset, back.d_c_bar, .transpose_a = true));
  rn_grad_to(g, 4, sum_rows(g, back.d_r_bar_u_bar));
  rn_grad_to(g, 5, sum_rows(g, back.d_c_bar));
  return RN_OK;
}

// The second output of the op is its gradient; there is no second-order gradient.
RN_RULE(ctc_loss) {
  rn_edge_t gradient =
      rn_PreventGradient(g->scope, rn_grad_out(g, 1),
                         .message =
                             "Currently there is no way to take the second derivative of ctc_loss "
                             "due to the fused implementation's interaction with tf.gradients()");
  rn_edge_t dy = rn_ExpandDims(g->scope, rn_grad_dy(g, 0), rn_const_int32(g->scope, -1));
  rn_grad_to(g, 0, rn_Mul(g->scope, dy, gradient));
  return RN_OK;
}
