// A language model again, this time a transformer: it predicts the next word of the text of
// lstm_language_model.c.
//
// An LSTM reads word after word and carries a state. A transformer sees all words at once: each
// attends to those before it, in several ways (heads), and then goes through two dense layers.
#include <math.h>

#include "networks.h"
#include "sentences.h"

enum { BATCH = 32, TIME = 16, TESTS = 20 };

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "A small transformer that predicts the next word.", 400);
  rn_scope_t* s = e.scope;
  rn_edge_t words = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  rn_edge_t next = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  network_t n = {.scope = s, .seed = example_seed(&e, 0)};
  network_transformer_t sizes = {
      .blocks = 2, .width = 64, .heads = 4, .words = SENTENCES_WORDS, .is_causal = true};
  network_transformer(&n, &sizes, words);
  rn_edge_t labels = rn_Reshape(s, next, rn_const_int32_list(s, (int32_t[]){-1}, 1));
  rn_edge_t loss = rn_sparse_softmax_cross_entropy(s, labels, n.x);
  rn_node_t* train =
      rn_minimize(s, rn_adam(.learning_rate = 0.003f), loss, .clip = {RN_CLIP_GLOBAL_NORM, 1});
  example_start(&e);

  static sentences_t text, unseen;
  sentences_write(&e, &text);
  sentences_write(&e, &unseen);
  int32_t x[BATCH * TIME], y[BATCH * TIME];
  float value;
  for (int step = 1; step <= e.steps; ++step) {
    sentences_batch(&e, &text, BATCH, TIME, x, y);
    example_run(&e, RN_TARGET(train), RN_FEED(words, x, BATCH, TIME), RN_FEED(next, y, BATCH, TIME),
                RN_FETCH(loss, &value));
    example_progress(&e, step, "perplexity %6.2f", expf(value));
  }

  float least = 0, mean = 0;
  for (int i = 0; i < TESTS; ++i) {
    least += sentences_batch(&e, &unseen, BATCH, TIME, x, y) / TESTS;
    example_run(&e, RN_FEED(words, x, BATCH, TIME), RN_FEED(next, y, BATCH, TIME),
                RN_FETCH(loss, &value));
    mean += value / TESTS;
  }
  return example_close(&e, expf(mean) < 5.5f, "perplexity %.2f, least possible %.2f", expf(mean),
                       expf(least));
}
