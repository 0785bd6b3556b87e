// Recurrent cells, networks unrolled and as loops, and attention.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "util.h"

enum { BATCH = 3, TIME = 5, DEPTH = 2, UNITS = 4, VARIABLES = 6 };

static rn_edge_t inputs_of(rn_scope_t* s) {
  float data[BATCH * TIME * DEPTH];
  wave_into(data, BATCH * TIME * DEPTH, 0.7);
  return rn_const(s, TF_FLOAT, (const int64_t[]){BATCH, TIME, DEPTH}, 3, data);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// One step of an LSTM, computed by hand.
Test(cell, lstm) {
  trial_t t = trial_open();
  float kernel[(DEPTH + UNITS) * 4 * UNITS];
  wave_into(kernel, (DEPTH + UNITS) * 4 * UNITS, 1.3);
  rn_cell_t cell = rn_lstm_cell(UNITS, .initializer = rn_init_values(kernel));
  rn_edge_t x = wave(t.s, 1, DEPTH, 0.7), next[2];
  rn_edge_t states[2] = {wave(t.s, 1, UNITS, 0.4), wave(t.s, 1, UNITS, 0.9)};
  rn_edge_t y = cell.step(t.s, &cell, x, states, next);
  trial_init(&t);
  double got[UNITS], c_got[UNITS];
  cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, UNITS) == UNITS);
  trial_fetch(&t, next[0], NULL, NULL, 0, c_got, UNITS);
  for (int u = 0; u < UNITS; ++u) {
    double gate[4] = {0};
    for (int g = 0; g < 4; ++g) {
      for (int k = 0; k < DEPTH; ++k)
        gate[g] += sin(0.7 * (k + 1)) * kernel[k * 4 * UNITS + g * UNITS + u];
      for (int k = 0; k < UNITS; ++k)
        gate[g] += sin(0.9 * (k + 1)) * kernel[(DEPTH + k) * 4 * UNITS + g * UNITS + u];
    }
    double c = sigmoid(gate[2] + 1) * sin(0.4 * (u + 1)) + sigmoid(gate[0]) * tanh(gate[1]);
    expect_close("c", u, c_got[u], c, 1e-6);
    expect_close("h", u, got[u], tanh(c) * sigmoid(gate[3]), 1e-6);
  }
  cr_expect(rn_find_variable(t.s, "lstm_cell/kernel") && rn_find_variable(t.s, "lstm_cell/bias"));
  trial_close(&t);
}

// The same with gates that look at the state, clipped, and with a narrower output.
Test(cell, lstm_with_peepholes_and_projection) {
  enum { NARROW = 3 };
  trial_t t = trial_open();
  float kernel[(DEPTH + NARROW) * 4 * UNITS];
  wave_into(kernel, (DEPTH + NARROW) * 4 * UNITS, 1.3);
  rn_cell_t cell = rn_lstm_cell(UNITS, .initializer = rn_init_values(kernel), .peepholes = true,
                                .projection = NARROW, .state_clip = 0.6f, .projection_clip = 0.25f);
  cr_assert(cell.units == NARROW && cell.state_units[0] == UNITS && cell.state_units[1] == NARROW);
  rn_edge_t x = wave(t.s, 1, DEPTH, 0.7), next[2];
  rn_edge_t states[2] = {wave(t.s, 1, UNITS, 0.4), wave(t.s, 1, NARROW, 0.9)};
  rn_edge_t y = cell.step(t.s, &cell, x, states, next);
  cr_assert(rn_scope_ok(t.s), "%s", rn_scope_message(t.s));
  trial_init(&t);
  double got[NARROW], c_got[UNITS], h[UNITS];
  cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, NARROW) == NARROW);
  trial_fetch(&t, next[0], NULL, NULL, 0, c_got, UNITS);
  for (int u = 0; u < UNITS; ++u) {
    double gate[4] = {0}, before = sin(0.4 * (u + 1)), peephole = kernel[u];
    for (int g = 0; g < 4; ++g) {
      for (int k = 0; k < DEPTH; ++k)
        gate[g] += sin(0.7 * (k + 1)) * kernel[k * 4 * UNITS + g * UNITS + u];
      for (int k = 0; k < NARROW; ++k)
        gate[g] += sin(0.9 * (k + 1)) * kernel[(DEPTH + k) * 4 * UNITS + g * UNITS + u];
    }
    double c = sigmoid(gate[2] + 1 + peephole * before) * before +
               sigmoid(gate[0] + peephole * before) * tanh(gate[1]);
    c = fmax(-0.6, fmin(0.6, c));
    expect_close("c", u, c_got[u], c, 1e-6);
    h[u] = sigmoid(gate[3] + peephole * c) * tanh(c);
  }
  for (int n = 0; n < NARROW; ++n) {
    double sum = 0;
    for (int u = 0; u < UNITS; ++u) sum += h[u] * kernel[u * NARROW + n];
    expect_close("h", n, got[n], fmax(-0.25, fmin(0.25, sum)), 1e-6);
  }
  cr_expect(rn_find_variable(t.s, "lstm_cell/w_f_diag") &&
            rn_find_variable(t.s, "lstm_cell/w_i_diag") &&
            rn_find_variable(t.s, "lstm_cell/w_o_diag") &&
            rn_find_variable(t.s, "lstm_cell/projection/kernel"));
  trial_close(&t);
}

// Dropout around a cell leaves out or doubles, and nothing when it does not train; what goes past a
// cell is added.
Test(cell, wrappers) {
  trial_t t = trial_open();
  rn_cell_t inner = rn_rnn_cell(UNITS, .initializer = rn_init_glorot_uniform(11));
  rn_edge_t idle = rn_Less(t.s, rn_const_int32(t.s, 1), rn_const_int32(t.s, 0));
  rn_cell_t dropped = rn_dropout_cell(&inner, .drop_output = 0.5f, .seed = 3);
  rn_cell_t still = rn_dropout_cell(&inner, .drop_input = 0.9f, .drop_output = 0.5f,
                                    .drop_state = 0.5f, .training = idle);
  rn_cell_t past = rn_residual_cell(&inner);
  const rn_cell_t* cells[4] = {&inner, &dropped, &still, &past};
  rn_edge_t x = wave(t.s, 8, UNITS, 0.7), state = wave(t.s, 8, UNITS, 0.9), next, y[4];
  for (int i = 0; i < 4; ++i) {
    cr_assert(cells[i]->units == UNITS && cells[i]->state_count == 1);
    // Variables of its own, which begin as all of them do.
    char name[8] = {'c', (char)('0' + i)};
    rn_scope_t* s = rn_variable_scope(t.s, name);
    y[i] = cells[i]->step(s, cells[i], x, &state, &next);
    rn_scope_destroy(s);
  }
  cr_assert(rn_scope_ok(t.s), "%s", rn_scope_message(t.s));
  trial_init(&t);
  double got[4][8 * UNITS];
  int left_out = 0;
  for (int i = 0; i < 4; ++i)
    cr_assert(trial_fetch(&t, y[i], NULL, NULL, 0, got[i], 8 * UNITS) == 8 * UNITS);
  for (int k = 0; k < 8 * UNITS; ++k) {
    left_out += got[1][k] == 0;
    if (got[1][k] != 0) expect_close("dropped", k, got[1][k], 2 * got[0][k], 1e-6);
    expect_close("still", k, got[2][k], got[0][k], 1e-6);
    expect_close("past", k, got[3][k], got[0][k] + sin(0.7 * (k + 1)), 1e-6);
  }
  cr_expect(left_out > 4 && left_out < 28, "%d of 32", left_out);
  trial_close(&t);
}

static rn_edge_t lengths_of(rn_scope_t* s) {
  return rn_const_int32_list(s, (const int32_t[]){5, 2, 4}, BATCH);
}

// What a network gives: outputs [batch, time, units], states, and gradients of its variables.
typedef struct given_t {
  double outputs[BATCH * TIME * UNITS], states[4][BATCH * UNITS], gradients[VARIABLES][256],
      seconds[VARIABLES][256];
  int variable_count, gradient_sizes[VARIABLES];
} given_t;

static void collect(trial_t* t, rn_edge_t outputs, const rn_edge_t* states, int state_count,
                    given_t* out) {
  rn_edge_t loss = rn_AddV2(t->s, rn_L2Loss(t->s, outputs), rn_L2Loss(t->s, states[0]));
  const rn_collected_t* items;
  const rn_var_t* variables[VARIABLES];
  out->variable_count = rn_collection(t->s, RN_TRAINABLE_VARIABLES, &items);
  cr_assert(out->variable_count <= VARIABLES);
  for (int i = 0; i < out->variable_count; ++i) variables[i] = items[i].variable;
  rn_gradient_t d[VARIABLES];
  cr_assert(rn_compute_gradients(t->s, loss, variables, out->variable_count, NULL, d), "%s",
            rn_scope_message(t->s));
  // How steep it is where it is steep: the way leads through the loop that runs backwards.
  rn_edge_t slopes[VARIABLES];
  for (int i = 0; i < out->variable_count; ++i) slopes[i] = rn_L2Loss(t->s, d[i].dense);
  rn_gradient_t dd[VARIABLES];
  cr_assert(rn_compute_gradients(t->s, rn_AddN(t->s, slopes, out->variable_count), variables,
                                 out->variable_count, NULL, dd),
            "%s", rn_scope_message(t->s));
  trial_init(t);
  cr_assert(trial_fetch(t, outputs, NULL, NULL, 0, out->outputs, BATCH * TIME * UNITS) ==
            BATCH * TIME * UNITS);
  for (int i = 0; i < state_count; ++i)
    cr_assert(trial_fetch(t, states[i], NULL, NULL, 0, out->states[i], BATCH * UNITS) ==
              BATCH * UNITS);
  for (int i = 0; i < out->variable_count; ++i) {
    out->gradient_sizes[i] = trial_fetch(t, d[i].dense, NULL, NULL, 0, out->gradients[i], 256);
    trial_fetch(t, dd[i].dense, NULL, NULL, 0, out->seconds[i], 256);
  }
}

static rn_cell_t cell_of(int kind) {
  rn_initializer_t seeded = rn_init_glorot_uniform(11);
  if (kind == 0) return rn_rnn_cell(UNITS, .initializer = seeded);
  if (kind == 1) return rn_lstm_cell(UNITS, .initializer = seeded);
  if (kind == 2) return rn_gru_cell(UNITS, .initializer = seeded);
  if (kind == 4)
    return rn_lstm_cell(UNITS, .initializer = seeded, .peepholes = true, .projection = UNITS,
                        .state_clip = 0.3f, .projection_clip = 0.2f);
  static rn_cell_t two[2];
  two[0] = rn_lstm_cell(UNITS, .initializer = seeded);
  two[1] = rn_lstm_cell(UNITS, .initializer = seeded);
  return rn_stacked_cells(two, 2);
}

static void unroll(int kind, bool with_lengths, given_t* out) {
  trial_t t = trial_open();
  rn_cell_t cell = cell_of(kind);
  rn_edges_t split = rn_Unpack(t.s, inputs_of(t.s), TIME, .axis = 1);
  rn_edge_t inputs[TIME], outputs[TIME], states[RN_MAX_STATES];
  for (int i = 0; i < TIME; ++i) inputs[i] = rn_edge_at(split, i);
  rn_edge_t lengths = with_lengths ? lengths_of(t.s) : RN_NO_EDGE;
  cr_assert(rn_static_rnn(t.s, &cell, inputs, TIME, outputs, states, .lengths = lengths), "%s",
            rn_scope_message(t.s));
  collect(&t, rn_Pack(t.s, outputs, TIME, .axis = 1), states, cell.state_count, out);
  trial_close(&t);
}

static void loop(int kind, bool with_lengths, given_t* out) {
  trial_t t = trial_open();
  rn_cell_t cell = cell_of(kind);
  rn_edge_t states[RN_MAX_STATES];
  rn_edge_t lengths = with_lengths ? lengths_of(t.s) : RN_NO_EDGE;
  rn_edge_t outputs = rn_dynamic_rnn(t.s, &cell, inputs_of(t.s), states, .lengths = lengths);
  cr_assert(rn_scope_ok(t.s), "%s", rn_scope_message(t.s));
  collect(&t, outputs, states, cell.state_count, out);
  trial_close(&t);
}

// A loop gives what the unrolled network gives: values, states, gradients.
Test(rnn, loops_as_unrolled) {
  static given_t a, b;
  for (int kind = 0; kind < 5; ++kind) {
    for (int with_lengths = 0; with_lengths < 2; ++with_lengths) {
      unroll(kind, with_lengths, &a);
      loop(kind, with_lengths, &b);
      for (int i = 0; i < BATCH * TIME * UNITS; ++i)
        expect_close("output", i, b.outputs[i], a.outputs[i], 1e-6);
      rn_cell_t cell = cell_of(kind);
      for (int k = 0; k < cell.state_count; ++k)
        for (int i = 0; i < BATCH * UNITS; ++i)
          expect_close("state", i, b.states[k][i], a.states[k][i], 1e-6);
      cr_assert(a.variable_count == b.variable_count);
      for (int k = 0; k < a.variable_count; ++k) {
        cr_assert(a.gradient_sizes[k] == b.gradient_sizes[k] && a.gradient_sizes[k] <= 256);
        for (int i = 0; i < a.gradient_sizes[k]; ++i)
          expect_close("gradient", i, b.gradients[k][i], a.gradients[k][i], 1e-5);
        for (int i = 0; i < a.gradient_sizes[k]; ++i)
          expect_close("second", i, b.seconds[k][i], a.seconds[k][i], 1e-4);
      }
      // Beyond a row's length there is nothing, and its state stays.
      if (with_lengths)
        for (int i = 0; i < UNITS; ++i) cr_expect(b.outputs[(TIME + 2) * UNITS + i] == 0);
    }
  }
}

// [time, batch, …] with any length of time, and a batch that is not known.
Test(rnn, of_open_sizes) {
  trial_t t = trial_open();
  const int64_t open[3] = {-1, -1, DEPTH};
  rn_edge_t x = rn_Placeholder(t.s, TF_FLOAT, .shape = RN_SET_SHAPE(open, 3));
  rn_cell_t cell = rn_gru_cell(UNITS);
  rn_edge_t state;
  rn_edge_t y = rn_dynamic_rnn(t.s, &cell, x, &state, .time_major = true);
  trial_init(&t);
  float data[24];
  wave_into(data, 24, 0.7);
  double last[2 * UNITS], outputs[6 * 2 * UNITS];
  TF_Tensor* fed = tensor_of(TF_FLOAT, (const int64_t[]){6, 2, DEPTH}, 3, data);
  cr_assert(trial_fetch(&t, state, &x, &fed, 1, last, 2 * UNITS) == 2 * UNITS);
  cr_assert(trial_fetch(&t, y, &x, &fed, 1, outputs, 6 * 2 * UNITS) == 6 * 2 * UNITS);
  for (int i = 0; i < 2 * UNITS; ++i)
    expect_close("last", i, outputs[5 * 2 * UNITS + i], last[i], 1e-6);
  TF_DeleteTensor(fed);
  trial_close(&t);
}

// A cell that runs a loop of its own over the elements of its input.
static rn_edge_t inner_loop(rn_scope_t* scope, const rn_cell_t* self, rn_edge_t x,
                            const rn_edge_t* states, rn_edge_t* out_states) {
  const rn_cell_t* inner = self->arg;
  rn_edge_t column = rn_ExpandDims(scope, x, rn_const_int32(scope, 2));
  rn_dynamic_rnn(scope, inner, column, out_states, .initial_states = states, .name = "inner");
  return out_states[0];
}

Test(rnn, loops_in_loops) {
  static given_t got[2];
  for (int outer = 0; outer < 2; ++outer) {
    trial_t t = trial_open();
    rn_cell_t inner = rn_gru_cell(UNITS, .initializer = rn_init_glorot_uniform(11));
    rn_cell_t cell = {.step = inner_loop,
                      .units = UNITS,
                      .state_count = 1,
                      .state_units = {UNITS},
                      .arg = &inner};
    rn_edge_t state, outputs, steps[TIME], inputs[TIME];
    if (outer) {
      outputs = rn_dynamic_rnn(t.s, &cell, inputs_of(t.s), &state);
    } else {
      rn_edges_t split = rn_Unpack(t.s, inputs_of(t.s), TIME, .axis = 1);
      for (int i = 0; i < TIME; ++i) inputs[i] = rn_edge_at(split, i);
      rn_static_rnn(t.s, &cell, inputs, TIME, steps, &state);
      outputs = rn_Pack(t.s, steps, TIME, .axis = 1);
    }
    trial_built(&t);
    cr_expect(rn_find_variable(t.s, "rnn/inner/gru_cell/gates/kernel"));
    collect(&t, outputs, &state, 1, &got[outer]);
    trial_close(&t);
  }
  for (int i = 0; i < BATCH * TIME * UNITS; ++i)
    expect_close("output", i, got[1].outputs[i], got[0].outputs[i], 1e-6);
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < got[0].gradient_sizes[k]; ++i)
      expect_close("gradient", i, got[1].gradients[k][i], got[0].gradients[k][i], 1e-5);
}

Test(rnn, both_ways) {
  trial_t t = trial_open();
  rn_cell_t cell = rn_rnn_cell(UNITS, .initializer = rn_init_glorot_uniform(11));
  rn_edge_t states[2];
  rn_edge_t y =
      rn_bidirectional_rnn(t.s, &cell, &cell, inputs_of(t.s), states, .lengths = lengths_of(t.s));
  trial_init(&t);
  cr_expect(rn_find_variable(t.s, "bidirectional_rnn/fw/basic_rnn_cell/kernel"));
  cr_expect(rn_find_variable(t.s, "bidirectional_rnn/bw/basic_rnn_cell/kernel"));
  double got[BATCH * TIME * 2 * UNITS], last[2][BATCH * UNITS];
  cr_assert(trial_fetch(&t, y, NULL, NULL, 0, got, 120) == BATCH * TIME * 2 * UNITS);
  for (int i = 0; i < 2; ++i)
    cr_assert(trial_fetch(&t, states[i], NULL, NULL, 0, last[i], BATCH * UNITS) == BATCH * UNITS);
  // There ends at each row's length, back at its beginning.
  const int lengths[BATCH] = {5, 2, 4};
  for (int b = 0; b < BATCH; ++b)
    for (int u = 0; u < UNITS; ++u) {
      int at = (b * TIME + lengths[b] - 1) * 2 * UNITS + u;
      expect_close("there", b, got[at], last[0][b * UNITS + u], 1e-6);
      expect_close("back", b, got[b * TIME * 2 * UNITS + UNITS + u], last[1][b * UNITS + u], 1e-6);
    }
  trial_close(&t);
}

// It learns to tell the sum of a sequence's signs.
Test(rnn, learns) {
  trial_t t = trial_open();
  enum { ROWS = 32, STEPS = 6 };
  float data[ROWS * STEPS], sums[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    sums[r] = 0;
    for (int k = 0; k < STEPS; ++k) {
      data[r * STEPS + k] = sin(37.0 * (r * STEPS + k + 1)) > 0 ? 1 : -1;
      sums[r] += data[r * STEPS + k] / STEPS;
    }
  }
  rn_edge_t x = rn_const(t.s, TF_FLOAT, (const int64_t[]){ROWS, STEPS, 1}, 3, data);
  rn_edge_t labels = rn_const(t.s, TF_FLOAT, (const int64_t[]){ROWS, 1}, 2, sums);
  rn_cell_t cell = rn_lstm_cell(8, .initializer = rn_init_glorot_uniform(5));
  rn_edge_t states[2];
  rn_dynamic_rnn(t.s, &cell, x, states);
  rn_edge_t guess = rn_dense(t.s, states[1], 1, .kernel_initializer = rn_init_glorot_uniform(6));
  rn_edge_t loss = rn_mean_squared_error(t.s, labels, guess);
  rn_node_t* train =
      rn_minimize(t.s, rn_adam(.learning_rate = 0.02f), loss, .clip = {RN_CLIP_GLOBAL_NORM, 5});
  trial_init(&t);
  double first = trial_scalar(&t, loss);
  for (int i = 0; i < 150; ++i) trial_run(&t, train, NULL, NULL, 0);
  cr_expect(trial_scalar(&t, loss) < 0.02 * first, "%g of %g", trial_scalar(&t, loss), first);
  trial_close(&t);
}

Test(attention, dot_product) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t q = wave(s, 2, 3, 0.7), k = wave(s, 4, 3, 1.1), v = wave(s, 4, 2, 0.3);
  const bool open[8] = {true, true, false, true, true, true, true, true};
  rn_edge_t mask = rn_const(s, TF_BOOL, (const int64_t[]){2, 4}, 2, open);
  rn_attended_t a = rn_dot_product_attention(s, q, k, v, .mask = mask);
  double weights[8], context[4];
  cr_assert(trial_fetch(&t, a.weights, NULL, NULL, 0, weights, 8) == 8);
  cr_assert(trial_fetch(&t, a.context, NULL, NULL, 0, context, 4) == 4);
  for (int i = 0; i < 2; ++i) {
    double e[4], sum = 0, want[2] = {0};
    for (int j = 0; j < 4; ++j) {
      double dot = 0;
      for (int d = 0; d < 3; ++d) dot += sin(0.7 * (i * 3 + d + 1)) * sin(1.1 * (j * 3 + d + 1));
      sum += e[j] = open[i * 4 + j] ? exp(dot / sqrt(3)) : 0;
    }
    for (int j = 0; j < 4; ++j) {
      expect_close("weight", i * 4 + j, weights[i * 4 + j], e[j] / sum, 1e-6);
      for (int d = 0; d < 2; ++d) want[d] += e[j] / sum * sin(0.3 * (j * 2 + d + 1));
    }
    for (int d = 0; d < 2; ++d)
      expect_close("context", i * 2 + d, context[i * 2 + d], want[d], 1e-6);
  }
  trial_close(&t);
}

Test(attention, over_a_memory) {
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_edge_t query = wave(s, BATCH, UNITS, 0.7), memory = inputs_of(s), lengths = lengths_of(s);
  rn_attended_t all[2] = {
      rn_luong_attention(s, query, memory, .lengths = lengths, .scale = true),
      rn_bahdanau_attention(s, query, memory, 6, .lengths = lengths),
  };
  static const char* const names[] = {
      "luong_attention/memory_layer/kernel", "luong_attention/attention_g",
      "bahdanau_attention/memory_layer/kernel", "bahdanau_attention/query_layer/kernel",
      "bahdanau_attention/attention_v"};
  trial_init(&t);
  for (int i = 0; i < 5; ++i) cr_expect(rn_find_variable(s, names[i]), "no %s", names[i]);
  for (int i = 0; i < 2; ++i) {
    double weights[BATCH * TIME], context[BATCH * DEPTH];
    cr_assert(trial_fetch(&t, all[i].weights, NULL, NULL, 0, weights, 15) == BATCH * TIME);
    cr_assert(trial_fetch(&t, all[i].context, NULL, NULL, 0, context, 6) == BATCH * DEPTH);
    for (int b = 0; b < BATCH; ++b) {
      double sum = 0, first = 0;
      for (int k = 0; k < TIME; ++k) {
        sum += weights[b * TIME + k];
        first += weights[b * TIME + k] * sin(0.7 * ((b * TIME + k) * DEPTH + 1));
      }
      expect_close("sum", b, sum, 1, 1e-6);
      expect_close("context", b, context[b * DEPTH], first, 1e-6);
    }
    cr_expect(weights[TIME + 2] == 0 && weights[2 * TIME + 4] == 0 && weights[TIME + 1] > 0);
  }
  trial_close(&t);
}
