// The digits of softmax_digits, learned by several workers at once: the weights are on parameter
// servers, and every worker computes gradients of its own examples.
//
// Asynchronous replicas apply their gradients as soon as they are ready. With --sync, an update is
// the mean of one gradient per worker, and with --backup N it does not wait for the slowest N. With
// --dir, the chief keeps checkpoints: a parameter server that is killed and restarted gets its
// values back while the workers wait (restart.sh).
#include <stdio.h>
#include <stdlib.h>

#include "digits_data.h"
#include "task.h"

enum { HIDDEN = 64, BATCH = 50 };

int main(int argc, char** argv) {
  task_t t = task_open(argc, argv, "Learns handwritten digits on a cluster.", 1500, 2, 2);
  rn_scope_t* s = t.e.scope;
  rn_edge_t images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, DIGITS_PIXELS));
  rn_edge_t labels = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  rn_edge_t hidden = rn_dense(s, images, HIDDEN, .activation = rn_relu, .name = "hidden",
                              .kernel_initializer = rn_init_glorot_uniform(1));
  rn_edge_t logits = rn_dense(s, hidden, DIGITS_CLASSES, .name = "out",
                              .kernel_initializer = rn_init_glorot_uniform(2));
  rn_edge_t loss = rn_sparse_softmax_cross_entropy(s, labels, logits);
  rn_edge_t guess = rn_ArgMax(s, logits, rn_const_int32(s, 1), .output_type = TF_INT32);
  rn_edge_t right = rn_Cast(s, rn_Equal(s, guess, labels), TF_FLOAT);
  rn_edge_t accuracy = rn_Mean(s, right, rn_const_int32(s, 0));
  digits_t* digits =
      digits_read(&t.e);  // the same for all workers: the seed determines what is held out
  task_train(&t, rn_adam(.learning_rate = 0.004f), loss);

  float x[BATCH * DIGITS_PIXELS], loss_now = 0;
  int32_t y[BATCH];
  for (bool goes_on = true; goes_on;) {
    digits_batch(&t.e, digits, BATCH, x, y);
    goes_on = task_step(&t, RN_FEED(images, x, BATCH, DIGITS_PIXELS), RN_FEED(labels, y, BATCH),
                        RN_FETCH(loss, &loss_now));
    if (task_is_chief(&t))
      example_progress(&t.e, (int)rn_supervisor_step(t.supervisor), "loss %.4f", loss_now);
  }

  float part = 0;
  if (task_is_chief(&t))
    task_look(&t, RN_FEED(images, digits->images[DIGITS_TRAINED], DIGITS_HELD_OUT, DIGITS_PIXELS),
              RN_FEED(labels, digits->labels + DIGITS_TRAINED, DIGITS_HELD_OUT),
              RN_FETCH(accuracy, &part));
  free(digits);
  return task_close(&t, part >= 0.95f, "%.1f %% of %d unseen digits", 100 * part, DIGITS_HELD_OUT);
}
