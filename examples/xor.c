// The exclusive or: the smallest function that a single layer cannot learn and two can.
//
// A single layer separates the two answers by one straight line, and no line separates (0,1) and
// (1,0) from (0,0) and (1,1). The hidden layer transforms the plane first.
#include <math.h>

#include "example.h"

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Learns the exclusive or with one hidden layer.", 300);
  rn_scope_t* s = e.scope;

  // The four inputs are constants of the graph: nothing is fed.
  const float questions[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, answers[4] = {0, 1, 1, 0};
  rn_edge_t x = rn_const(s, TF_FLOAT, (const int64_t[]){4, 2}, 2, questions);
  rn_edge_t y = rn_const(s, TF_FLOAT, (const int64_t[]){4, 1}, 2, answers);

  rn_edge_t hidden = rn_dense(s, x, 8, .activation = rn_tanh, .name = "hidden",
                              .kernel_initializer = rn_init_normal(0, 1, example_seed(&e, 0)));
  rn_edge_t logits = rn_dense(s, hidden, 1, .name = "out",
                              .kernel_initializer = rn_init_normal(0, 1, example_seed(&e, 1)));
  rn_edge_t guess = rn_Sigmoid(s, logits);

  // The cross entropy takes logits, not probabilities, so its gradient does not vanish when the
  // prediction is badly wrong.
  rn_edge_t loss = rn_sigmoid_cross_entropy(s, y, logits);
  rn_node_t* train = rn_minimize(s, rn_adam(.learning_rate = 0.05f), loss);

  example_start(&e);
  for (int step = 1; step <= e.steps; ++step) {
    float loss_now;
    example_run(&e, RN_TARGET(train), RN_FETCH(loss, &loss_now));
    example_progress(&e, step, "loss %.4f", loss_now);
  }

  float guesses[4], worst = 0;
  example_run(&e, RN_FETCH(guess, guesses, 4, 1));
  for (int i = 0; i < 4; ++i) worst = fmaxf(worst, fabsf(guesses[i] - answers[i]));
  return example_close(&e, worst < 0.1f, "0^0 %.3f, 0^1 %.3f, 1^0 %.3f, 1^1 %.3f", guesses[0],
                       guesses[1], guesses[2], guesses[3]);
}
