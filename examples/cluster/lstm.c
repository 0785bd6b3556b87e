// A model-parallel language model: one LSTM on each of two tasks, and the worker that feeds them on
// a third. With larger layers it would be too large for one machine.
//
// The layers are unrolled, so the second works on one word while the first is at the next. The
// first sends its outputs of each time step; the second sends back their gradients. Weights, their
// optimizer's state and the gradients of a layer never leave its task. The program assigns nodes to
// tasks (rn_scope_set_device); the runtime does the rest.
//
// ../sentences.h describes the text.
#include <math.h>
#include <stdio.h>

#include "sentences.h"
#include "task.h"

enum { BATCH = 32, TIME = 16, UNITS = 64, TESTS = 20 };

// A layer on one task, with its variables and its computation.
static void add_layer(task_t* t, const char* name, int task, rn_edge_t* moments) {
  rn_edge_t outputs[TIME];
  char device[64];
  snprintf(device, sizeof device, "/job:ps/task:%d%s", task % t->servers, task_device(t));
  rn_scope_t* s = rn_variable_scope(t->e.scope, name);
  rn_scope_set_device(s, device);
  rn_cell_t cell =
      rn_lstm_cell(UNITS, .initializer = rn_init_glorot_uniform(example_seed(&t->e, 1 + task)));
  rn_static_rnn(s, &cell, moments, TIME, outputs, NULL);
  for (int i = 0; i < TIME; ++i) moments[i] = outputs[i];
  rn_scope_destroy(s);
}

static rn_edge_t build(task_t* t, rn_edge_t words, rn_edge_t next) {
  rn_scope_t* s = t->e.scope;
  rn_edge_t moments[TIME];
  rn_edge_t x =
      rn_embedding(s, words, SENTENCES_WORDS, UNITS,
                   .kernel_initializer = rn_init_uniform(-0.5, 0.5, example_seed(&t->e, 0)));
  rn_edges_t inputs = rn_Unpack(s, x, TIME, .axis = 1);
  for (int i = 0; i < TIME; ++i) moments[i] = rn_edge_at(inputs, i);
  add_layer(t, "lower", 0, moments);
  add_layer(t, "upper", 1, moments);
  rn_edge_t h = rn_Reshape(s, rn_Pack(s, moments, TIME, .axis = 1),
                           rn_const_int32_list(s, (int32_t[]){-1, UNITS}, 2));
  rn_edge_t labels = rn_Reshape(s, next, rn_const_int32_list(s, (int32_t[]){-1}, 1));
  rn_edge_t logits = rn_dense(s, h, SENTENCES_WORDS,
                              .kernel_initializer = rn_init_glorot_uniform(example_seed(&t->e, 3)));
  return rn_sparse_softmax_cross_entropy(s, labels, logits);
}

int main(int argc, char** argv) {
  task_t t =
      task_open(argc, argv, "A language model whose two layers are on two tasks.", 600, 2, 1);
  rn_edge_t words = rn_Placeholder(t.e.scope, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  rn_edge_t next = rn_Placeholder(t.e.scope, TF_INT32, .shape = RN_SHAPE(BATCH, TIME));
  rn_edge_t loss = build(&t, words, next);
  t.colocates = true;
  task_train(&t, rn_adam(.learning_rate = 0.01f), loss);

  static sentences_t text, unseen;
  sentences_write(&t.e, &text);
  sentences_write(&t.e, &unseen);
  int32_t x[BATCH * TIME], y[BATCH * TIME];
  float loss_now = 0;
  for (bool goes_on = true; goes_on;) {
    sentences_batch(&t.e, &text, BATCH, TIME, x, y);
    goes_on = task_step(&t, RN_FEED(words, x, BATCH, TIME), RN_FEED(next, y, BATCH, TIME),
                        RN_FETCH(loss, &loss_now));
    if (task_is_chief(&t))
      example_progress(&t.e, (int)rn_supervisor_step(t.supervisor), "perplexity %6.2f",
                       expf(loss_now));
  }

  float least = 0, mean = 0;
  for (int i = 0; task_is_chief(&t) && i < TESTS; ++i) {
    least += sentences_batch(&t.e, &unseen, BATCH, TIME, x, y) / TESTS;
    task_look(&t, RN_FEED(words, x, BATCH, TIME), RN_FEED(next, y, BATCH, TIME),
              RN_FETCH(loss, &loss_now));
    mean += loss_now / TESTS;
  }
  return task_close(&t, expf(mean) < 5.5f, "perplexity %.2f, least possible %.2f", expf(mean),
                    expf(least));
}
