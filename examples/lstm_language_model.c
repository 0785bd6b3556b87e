// A language model: an LSTM predicts the next word of a text, with a full and a sampled softmax.
//
// The text comes from sentences.h, which also knows the best possible prediction.
//
// A full softmax computes a logit for every word of the vocabulary at every word of the text. A
// sampled one uses the true word and a few others, and corrects for the probability of drawing
// them: much less work if the vocabulary is large. Here each trains its own model, and both are
// evaluated with the full softmax on a held-out text.
#include <math.h>

#include "sentences.h"

enum { BATCH = 32, TIME = 16, UNITS = 64, SAMPLED = 32, TESTS = 20 };

typedef struct model_t {
  rn_edge_t loss;  // by the full softmax
  rn_node_t* train;
} model_t;

static model_t build(const example_t* e, const char* name, rn_edge_t words, rn_edge_t next,
                     bool is_sampled) {
  rn_scope_t* s = rn_variable_scope(e->scope, name);
  rn_edge_t x = rn_embedding(s, words, SENTENCES_WORDS, UNITS,
                             .kernel_initializer = rn_init_uniform(-0.5, 0.5, example_seed(e, 0)));
  // The unrolled cell: TIME copies that share their weights.
  rn_edge_t inputs[TIME], outputs[TIME];
  rn_edges_t moments = rn_Unpack(s, x, TIME, .axis = 1);
  for (int i = 0; i < TIME; ++i) inputs[i] = rn_edge_at(moments, i);
  rn_cell_t cell = rn_lstm_cell(UNITS, .initializer = rn_init_glorot_uniform(example_seed(e, 1)));
  rn_static_rnn(s, &cell, inputs, TIME, outputs, NULL);
  rn_edge_t h = rn_Reshape(s, rn_Pack(s, outputs, TIME, .axis = 1),
                           rn_const_int32_list(s, (int32_t[]){-1, UNITS}, 2));
  rn_edge_t labels = rn_Reshape(s, next, rn_const_int32_list(s, (int32_t[]){-1}, 1));

  // One row of weights per word, because the sampled softmax gathers rows.
  const int64_t dims[2] = {SENTENCES_WORDS, UNITS};
  const rn_var_t* weights = rn_get_variable(
      s, "weights", dims, 2, .initializer = rn_init_glorot_uniform(example_seed(e, 2)));
  const rn_var_t* biases = rn_get_variable(s, "biases", dims, 1, .initializer = rn_init_zeros());
  if (!rn_scope_ok(s)) example_fail(name, rn_scope_message(s));
  rn_edge_t logits =
      rn_BiasAdd(s, rn_MatMul(s, h, weights->value, .transpose_b = true), biases->value);
  model_t m = {.loss = rn_sparse_softmax_cross_entropy(s, labels, logits)};

  rn_class_weights_t layer = {&weights, 1, biases, SENTENCES_WORDS};
  rn_edge_t trained = m.loss;
  if (is_sampled)
    trained = rn_Mean(
        s, rn_sampled_softmax_loss(s, &layer, labels, h, SAMPLED, .seed = example_seed(e, 3)),
        rn_const_int32(s, 0));
  // Adam's slot variables are named after the optimizer, so the two models need two names.
  m.train = rn_minimize(s, rn_adam(.learning_rate = 0.01f, .name = name), trained,
                        .clip = {RN_CLIP_GLOBAL_NORM, 5});
  rn_scope_destroy(s);
  return m;
}

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "LSTM language models: full and sampled softmax.", 400);
  rn_edge_t words = rn_Placeholder(e.scope, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  rn_edge_t next = rn_Placeholder(e.scope, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  model_t full = build(&e, "full", words, next, false);
  model_t sampled = build(&e, "sampled", words, next, true);
  example_start(&e);

  static sentences_t text, unseen;
  sentences_write(&e, &text);
  sentences_write(&e, &unseen);
  int32_t x[BATCH * TIME], y[BATCH * TIME];
  float by_full, by_sampled;
  for (int step = 1; step <= e.steps; ++step) {
    sentences_batch(&e, &text, BATCH, TIME, x, y);
    const rn_run_arg_t feed_x = RN_FEED(words, x, BATCH, TIME),
                       feed_y = RN_FEED(next, y, BATCH, TIME);
    example_run(&e, RN_TARGET(full.train), feed_x, feed_y, RN_FETCH(full.loss, &by_full));
    example_run(&e, RN_TARGET(sampled.train), feed_x, feed_y, RN_FETCH(sampled.loss, &by_sampled));
    example_progress(&e, step, "perplexity: full %6.2f   sampled %6.2f", expf(by_full),
                     expf(by_sampled));
  }

  float least = 0, mean_full = 0, mean_sampled = 0;
  for (int i = 0; i < TESTS; ++i) {
    least += sentences_batch(&e, &unseen, BATCH, TIME, x, y) / TESTS;
    example_run(&e, RN_FEED(words, x, BATCH, TIME), RN_FEED(next, y, BATCH, TIME),
                RN_FETCH(full.loss, &by_full), RN_FETCH(sampled.loss, &by_sampled));
    mean_full += by_full / TESTS;
    mean_sampled += by_sampled / TESTS;
  }
  bool is_learned = expf(mean_full) < 5.5f && expf(mean_sampled) < 5.5f;
  return example_close(&e, is_learned, "perplexity %.2f, sampled %.2f, least possible %.2f",
                       expf(mean_full), expf(mean_sampled), expf(least));
}
