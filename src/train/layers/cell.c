// Cells of recurrent networks.
#include <stdio.h>

#include "train/layers/layer.h"
#include "train/optimizer/optimizer.h"

// [a, b] · kernel + bias: variables of the scope.
static rn_edge_t linear(rn_scope_t* s, rn_edge_t a, rn_edge_t b, int64_t units,
                        rn_initializer_t start, double bias_start) {
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  int64_t depth_a = rn_layer_depth(s, a, 1), depth_b = rn_layer_depth(s, b, 1);
  int64_t dims[2] = {depth_a + depth_b, units};
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  int dtype = rn_edge_dtype(a);
  const rn_var_t* kernel =
      rn_get_variable(s, "kernel", dims, 2, .dtype = dtype, .initializer = start);
  const rn_var_t* bias =
      rn_get_variable(s, "bias", &units, 1, .dtype = dtype,
                      .initializer = rn_init_constant(bias_start), .no_regularizer = true);
  if (!kernel || !bias) return RN_NO_EDGE;
  rn_edge_t both[2] = {a, b};
  rn_edge_t joined = rn_ConcatV2(s, both, 2, rn_const_int32(s, 1));
  return rn_BiasAdd(s, rn_MatMul(s, joined, kernel->value), bias->value);
}

static rn_activation_t activation_of(const rn_cell_t* cell) {
  return cell->activation ? cell->activation : rn_tanh;
}

static rn_scope_t* begin(rn_scope_t* scope, const rn_cell_t* cell, const char* name, rn_edge_t x) {
  return rn_layer_begin(scope, cell->name ? cell->name : name, name, x);
}

static rn_edge_t rnn_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                          const rn_edge_t* states, rn_edge_t* out_states) {
  rn_scope_t* s = begin(scope, self, "basic_rnn_cell", x);
  rn_edge_t y = linear(s, x, states[0], self->units, self->initializer, 0);
  if (rn_scope_ok(s)) y = activation_of(self)(s, y);
  rn_scope_destroy(s);
  return out_states[0] = y;
}

// |edge| clipped to ± |limit|; not clipped if |limit| is 0.
static rn_edge_t clipped(rn_scope_t* s, rn_edge_t edge, float limit) {
  if (!(limit > 0)) return edge;
  return rn_ClipByValue(s, edge, rn_like(s, edge, -limit), rn_like(s, edge, limit));
}

// |gate| plus its peephole connection to |c|.
static rn_edge_t peep(rn_scope_t* s, const rn_cell_t* self, rn_edge_t gate, const char* name,
                      rn_edge_t c) {
  if (!self->peepholes || !rn_scope_ok(s)) return gate;
  const rn_var_t* weight =
      rn_get_variable(s, name, &self->state_units[0], 1, .dtype = rn_edge_dtype(c),
                      .initializer = self->initializer);
  return weight ? rn_AddV2(s, gate, rn_Mul(s, weight->value, c)) : RN_NO_EDGE;
}

static rn_edge_t project(rn_scope_t* s, const rn_cell_t* self, rn_edge_t h) {
  if (self->projection <= 0 || !rn_scope_ok(s)) return h;
  int64_t dims[2] = {self->state_units[0], self->projection};
  rn_scope_t* inner = rn_variable_scope(s, "projection");
  const rn_var_t* kernel =
      inner ? rn_get_variable(inner, "kernel", dims, 2, .dtype = rn_edge_dtype(h),
                              .initializer = self->initializer)
            : NULL;
  h = kernel ? clipped(s, rn_MatMul(s, h, kernel->value), self->projection_clip) : RN_NO_EDGE;
  rn_scope_destroy(inner);
  return h;
}

static rn_edge_t lstm_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                           const rn_edge_t* states, rn_edge_t* out_states) {
  rn_scope_t* s = begin(scope, self, "lstm_cell", x);
  rn_edge_t gates = linear(s, x, states[1], 4 * self->state_units[0], self->initializer, 0);
  out_states[0] = out_states[1] = RN_NO_EDGE;
  if (rn_scope_ok(s)) {
    rn_activation_t act = activation_of(self);
    rn_edges_t part = rn_Split(s, rn_const_int32(s, 1), gates, 4);
    rn_edge_t i = rn_edge_at(part, 0), j = rn_edge_at(part, 1), f = rn_edge_at(part, 2);
    rn_edge_t bias = rn_like(s, x, rn_number(self->forget_bias, 1));
    f = peep(s, self, rn_AddV2(s, f, bias), "w_f_diag", states[0]);
    i = peep(s, self, i, "w_i_diag", states[0]);
    rn_edge_t kept = rn_Mul(s, rn_Sigmoid(s, f), states[0]);
    rn_edge_t c = rn_AddV2(s, kept, rn_Mul(s, rn_Sigmoid(s, i), act(s, j)));
    c = clipped(s, c, self->state_clip);
    rn_edge_t o = peep(s, self, rn_edge_at(part, 3), "w_o_diag", c);
    out_states[0] = c;
    out_states[1] = project(s, self, rn_Mul(s, rn_Sigmoid(s, o), act(s, c)));
  }
  rn_scope_destroy(s);
  return out_states[1];
}

static rn_edge_t gru_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                          const rn_edge_t* states, rn_edge_t* out_states) {
  rn_scope_t* s = begin(scope, self, "gru_cell", x);
  rn_scope_t* gate = s ? rn_variable_scope(s, "gates") : NULL;
  rn_edge_t h = states[0];
  rn_edge_t gates = linear(gate, x, h, 2 * self->units, self->initializer, 1);
  rn_scope_t* candidate = rn_scope_ok(s) ? rn_variable_scope(s, "candidate") : NULL;
  out_states[0] = RN_NO_EDGE;
  if (rn_scope_ok(candidate)) {
    rn_edges_t part = rn_Split(s, rn_const_int32(s, 1), rn_Sigmoid(s, gates), 2);
    rn_edge_t r = rn_edge_at(part, 0), u = rn_edge_at(part, 1);
    rn_edge_t c = linear(candidate, x, rn_Mul(s, r, h), self->units, self->initializer, 0);
    c = activation_of(self)(s, c);
    rn_edge_t fresh = rn_Mul(s, rn_Sub(s, rn_like(s, x, 1), u), c);
    out_states[0] = rn_AddV2(s, rn_Mul(s, u, h), fresh);
  }
  rn_scope_destroy(candidate);
  rn_scope_destroy(gate);
  rn_scope_destroy(s);
  return out_states[0];
}

static rn_edge_t stack_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                            const rn_edge_t* states, rn_edge_t* out_states) {
  rn_scope_t* s = begin(scope, self, "multi_rnn_cell", x);
  for (int i = 0, at = 0; i < self->inner_count && rn_scope_ok(s); ++i) {
    const rn_cell_t* cell = &self->inner[i];
    char name[32];
    snprintf(name, sizeof name, "cell_%d", i);
    rn_scope_t* level = rn_variable_scope(s, name);
    if (level) x = cell->step(level, cell, x, states + at, out_states + at);
    rn_scope_destroy(level);
    at += cell->state_count;
  }
  rn_scope_destroy(s);
  return x;
}

// Wrappers around a cell.

static rn_edge_t dropped(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x, float rate,
                         int number) {
  if (rate == 0 || !rn_scope_ok(scope)) return x;
  int64_t seed = self->seed ? self->seed + number : 0;
  return rn_dropout(scope, x, rate, .training = self->training, .seed = seed);
}

static rn_edge_t dropout_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                              const rn_edge_t* states, rn_edge_t* out_states) {
  const rn_cell_t* cell = self->inner;
  x = dropped(scope, self, x, self->drop_input, 0);
  rn_edge_t y = cell->step(scope, cell, x, states, out_states);
  for (int i = 0; i < cell->state_count; ++i)
    if (cell->step != lstm_step || i == 1)  // dropout skips the memory of an LSTM
      out_states[i] = dropped(scope, self, out_states[i], self->drop_state, 2 + i);
  return dropped(scope, self, y, self->drop_output, 1);
}

static rn_edge_t residual_step(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                               const rn_edge_t* states, rn_edge_t* out_states) {
  rn_edge_t y = self->inner->step(scope, self->inner, x, states, out_states);
  return rn_scope_ok(scope) ? rn_AddV2(scope, x, y) : RN_NO_EDGE;
}

static void wrap(const rn_cell_t* cell, rn_cell_t* out) {
  out->inner = cell;
  out->inner_count = cell ? 1 : 0;
  if (!cell) return;
  out->units = cell->units;
  out->state_count = cell->state_count;
  memcpy(out->state_units, cell->state_units, sizeof out->state_units);
}

RN_API rn_cell_t rn_dropout_cell_(const rn_cell_t* cell, rn_cell_t options) {
  wrap(cell, &options);
  options.step = cell ? dropout_step : NULL;
  return options;
}

RN_API rn_cell_t rn_residual_cell(const rn_cell_t* cell) {
  rn_cell_t around = {.step = cell ? residual_step : NULL};
  wrap(cell, &around);
  return around;
}

RN_API rn_cell_t rn_rnn_cell_(rn_cell_t cell) {
  cell.step = rnn_step;
  cell.state_count = 1;
  cell.state_units[0] = cell.units;
  return cell;
}

RN_API rn_cell_t rn_lstm_cell_(rn_cell_t cell) {
  cell.step = lstm_step;
  cell.state_count = 2;
  cell.state_units[0] = cell.state_units[1] = cell.units;
  if (cell.projection > 0) cell.units = cell.state_units[1] = cell.projection;
  return cell;
}

RN_API rn_cell_t rn_gru_cell_(rn_cell_t cell) {
  cell.step = gru_step;
  cell.state_count = 1;
  cell.state_units[0] = cell.units;
  return cell;
}

RN_API rn_cell_t rn_stacked_cells(const rn_cell_t* cells, int count) {
  rn_cell_t stack = {.step = stack_step, .inner = cells, .inner_count = cells ? count : 0};
  for (int i = 0; i < stack.inner_count; ++i) {
    stack.units = cells[i].units;
    for (int k = 0; k < cells[i].state_count; ++k, ++stack.state_count)
      if (stack.state_count < RN_MAX_STATES)
        stack.state_units[stack.state_count] = cells[i].state_units[k];
  }
  return stack;
}

RN_API void rn_zero_states(rn_scope_t* scope, const rn_cell_t* cell, rn_edge_t batch, int dtype,
                           rn_edge_t* out_states) {
  if (!rn_scope_ok(scope) || !cell || !out_states) return;
  for (int i = 0; i < cell->state_count; ++i) {
    rn_edge_t dims[2] = {batch, rn_const_scalar(scope, RN_INT32, (double)cell->state_units[i])};
    out_states[i] = rn_Fill(scope, rn_Pack(scope, dims, 2), rn_const_scalar(scope, dtype, 0));
  }
}
