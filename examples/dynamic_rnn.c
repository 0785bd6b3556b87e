// A recurrent network over sequences of different lengths, with a while loop inside the graph.
//
// The task: every time step of a row has a number and a mark, 0 or 1. Exactly two are marked, and
// the network must output the sum of those two at the end. It has to remember the first for many
// time steps and to ignore all others. Always answering 1 gives a mean squared error of 1/6.
//
// The graph does not fix the length of rows: the loop runs one iteration per time step of the fed
// batch. Within a batch, |lengths| tells where each row ends; the rest is padding.
#include "example.h"

enum { BATCH = 64, SHORTEST = 4, LONGEST = 16, UNITS = 24 };

typedef struct batch_t {
  int longest;
  float rows[BATCH * LONGEST * 2];  // [BATCH, longest, 2]
  int32_t lengths[BATCH];
  float sums[BATCH];
} batch_t;

static void make_batch(example_t* e, int longest, batch_t* b) {
  b->longest = longest;
  for (int i = 0; i < BATCH; ++i) {
    int length = SHORTEST + (int)example_draw(e, (uint32_t)(longest - SHORTEST + 1));
    int first = (int)example_draw(e, (uint32_t)length / 2);
    int second = length / 2 + (int)example_draw(e, (uint32_t)(length - length / 2));
    float* row = b->rows + i * longest * 2;
    b->lengths[i] = length;
    for (int t = 0; t < longest; ++t) {
      bool is_inside = t < length;
      row[2 * t] = is_inside ? example_uniform(e) : 100;
      row[2 * t + 1] = !is_inside || t == first || t == second;
    }
    b->sums[i] = row[2 * first] + row[2 * second];
  }
}

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Adds two marked numbers of rows of any length.", 1000);
  rn_scope_t* s = e.scope;
  rn_edge_t rows = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, -1, 2));
  rn_edge_t lengths = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  rn_edge_t sums = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, 1));

  // A cell computes one time step. The loop around it keeps one state per row, which stays
  // unchanged after the row's end, so the final state is all that we need.
  rn_cell_t cell = rn_gru_cell(UNITS, .initializer = rn_init_orthogonal(1, example_seed(&e, 0)));
  rn_edge_t state = RN_NO_EDGE;
  rn_dynamic_rnn(s, &cell, rows, &state, .lengths = lengths);
  rn_edge_t guess = rn_dense(s, state, 1, .name = "out",
                             .kernel_initializer = rn_init_glorot_uniform(example_seed(&e, 1)));
  rn_edge_t loss = rn_mean_squared_error(s, sums, guess);
  // Gradients through many iterations can explode, so they are clipped.
  rn_node_t* train =
      rn_minimize(s, rn_adam(.learning_rate = 0.01f), loss, .clip = {RN_CLIP_GLOBAL_NORM, 1});

  example_start(&e);
  static batch_t b;
  float error = 0;
  for (int step = 1; step <= e.steps; ++step) {
    // Each batch has a different length; the same graph takes them all.
    make_batch(&e, SHORTEST + (int)example_draw(&e, LONGEST - SHORTEST + 1), &b);
    example_run(&e, RN_TARGET(train), RN_FEED(rows, b.rows, BATCH, b.longest, 2),
                RN_FEED(lengths, b.lengths, BATCH), RN_FEED(sums, b.sums, BATCH, 1),
                RN_FETCH(loss, &error));
    example_progress(&e, step, "squared error %.5f", error);
  }

  float total = 0;
  enum { TESTS = 10 };
  for (int i = 0; i < TESTS; ++i) {
    make_batch(&e, LONGEST, &b);
    example_run(&e, RN_FEED(rows, b.rows, BATCH, b.longest, 2), RN_FEED(lengths, b.lengths, BATCH),
                RN_FEED(sums, b.sums, BATCH, 1), RN_FETCH(loss, &error));
    total += error / TESTS;
  }
  return example_close(&e, total < 0.01f, "squared error %.5f on new rows", total);
}
