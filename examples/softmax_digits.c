// Softmax regression, the simplest classifier, on handwritten digits.
//
// Each digit has one weight per pixel; the prediction is the digit with the largest weighted sum.
// The softmax turns the sums into probabilities, and the cross entropy rewards a high probability
// of the true digit. Without a hidden layer, 96 to 98 % are right, depending on which images are
// held out.
#include <stdlib.h>

#include "digits_data.h"

enum { BATCH = 100 };

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "Softmax regression on handwritten digits.", 4000);
  rn_scope_t* s = e.scope;

  rn_edge_t images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, DIGITS_PIXELS));
  rn_edge_t labels = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  // Starting at zero works here: without a hidden layer the loss is convex, and no two units would
  // stay identical.
  rn_edge_t logits = rn_dense(s, images, DIGITS_CLASSES, .kernel_initializer = rn_init_zeros(),
                              .kernel_regularizer = rn_regularize(0, 3e-5));
  rn_sparse_softmax_cross_entropy(s, labels, logits);
  // Losses and regularisers are collected as they are built; this is the sum of both.
  rn_edge_t loss = rn_total_loss(s);
  rn_node_t* train = rn_minimize(s, rn_adam(.learning_rate = 0.01f), loss);
  rn_edge_t guess = rn_ArgMax(s, logits, rn_const_int32(s, 1), .output_type = TF_INT32);
  rn_edge_t right = rn_Cast(s, rn_Equal(s, guess, labels), TF_FLOAT);
  rn_edge_t accuracy = rn_Mean(s, right, rn_const_int32(s, 0));

  example_start(&e);
  digits_t* digits = digits_read(&e);
  float loss_now, part;
  for (int step = 1; step <= e.steps; ++step) {
    float x[BATCH * DIGITS_PIXELS];
    int32_t y[BATCH];
    digits_batch(&e, digits, BATCH, x, y);
    example_run(&e, RN_TARGET(train), RN_FEED(images, x, BATCH, DIGITS_PIXELS),
                RN_FEED(labels, y, BATCH), RN_FETCH(loss, &loss_now), RN_FETCH(accuracy, &part));
    example_progress(&e, step, "loss %.4f   accuracy %5.1f %%", loss_now, 100 * part);
  }

  // Measures the accuracy on held-out images.
  example_run(&e, RN_FEED(images, digits->images[DIGITS_TRAINED], DIGITS_HELD_OUT, DIGITS_PIXELS),
              RN_FEED(labels, digits->labels + DIGITS_TRAINED, DIGITS_HELD_OUT),
              RN_FETCH(accuracy, &part));
  free(digits);
  return example_close(&e, part >= 0.95f, "%.1f %% of the held-out digits", 100 * part);
}
