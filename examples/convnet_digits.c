// A convolutional network on handwritten digits.
//
// A convolution applies the same weights to every small window, so it recognizes a stroke anywhere
// in the image; a pool keeps the largest value of each neighborhood.
#include <stdlib.h>

#include "digits_data.h"

enum { BATCH = 50 };

typedef struct model_t {
  rn_edge_t images, labels, training, loss, accuracy;
  rn_node_t* train;
} model_t;

static model_t build(const example_t* e) {
  rn_scope_t* s = e->scope;
  model_t m;
  m.images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, DIGITS_PIXELS));
  m.labels = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(-1));
  m.training = rn_Placeholder(s, TF_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
  // [batch, height, width, channels].
  rn_edge_t x = rn_Reshape(s, m.images, rn_const_int32_list(s, (int32_t[]){-1, 8, 8, 1}, 4));
  x = rn_conv2d(s, x, 16, 3, .padding = "SAME", .activation = rn_relu,
                .kernel_initializer = rn_init_he_normal(example_seed(e, 0)));
  x = rn_conv2d(s, x, 32, 3, .padding = "SAME", .activation = rn_relu,
                .kernel_initializer = rn_init_he_normal(example_seed(e, 1)));
  x = rn_max_pool2d(s, x, 2, .strides = {2, 2});
  x = rn_dense(s, rn_flatten(s, x), 64, .activation = rn_relu,
               .kernel_initializer = rn_init_he_normal(example_seed(e, 2)));
  // Dropout: during training, random units are switched off, so that none relies on another; later
  // all are used.
  x = rn_dropout(s, x, 0.3f, .training = m.training, .seed = example_seed(e, 3));
  rn_edge_t logits = rn_dense(s, x, DIGITS_CLASSES,
                              .kernel_initializer = rn_init_glorot_uniform(example_seed(e, 4)));
  m.loss = rn_sparse_softmax_cross_entropy(s, m.labels, logits);
  // A decaying learning rate lets the last steps settle.
  const rn_var_t* count = rn_global_step(s);
  if (!count) example_fail("the graph", rn_scope_message(s));
  rn_edge_t rate = rn_cosine_decay(s, 0.003f, count->value, (float)e->steps);
  m.train = rn_minimize(s, rn_adam(.rate = rate), m.loss, .global_step = count);
  rn_edge_t guess = rn_ArgMax(s, logits, rn_const_int32(s, 1), .output_type = TF_INT32);
  rn_edge_t right = rn_Cast(s, rn_Equal(s, guess, m.labels), TF_FLOAT);
  m.accuracy = rn_Mean(s, right, rn_const_int32(s, 0));
  return m;
}

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "A convolutional network on handwritten digits.", 600);
  model_t m = build(&e);
  example_start(&e);
  digits_t* digits = digits_read(&e);
  const bool yes = true, no = false;
  float loss, part;
  for (int step = 1; step <= e.steps; ++step) {
    float x[BATCH * DIGITS_PIXELS];
    int32_t y[BATCH];
    digits_batch(&e, digits, BATCH, x, y);
    example_run(&e, RN_TARGET(m.train), RN_FEED(m.images, x, BATCH, DIGITS_PIXELS),
                RN_FEED(m.labels, y, BATCH), RN_FEED(m.training, &yes), RN_FETCH(m.loss, &loss),
                RN_FETCH(m.accuracy, &part));
    example_progress(&e, step, "loss %.4f   accuracy %5.1f %%", loss, 100 * part);
  }

  example_run(&e, RN_FEED(m.images, digits->images[DIGITS_TRAINED], DIGITS_HELD_OUT, DIGITS_PIXELS),
              RN_FEED(m.labels, digits->labels + DIGITS_TRAINED, DIGITS_HELD_OUT),
              RN_FEED(m.training, &no), RN_FETCH(m.accuracy, &part));
  free(digits);
  return example_close(&e, part >= 0.97f, "%.1f %% of the held-out digits", 100 * part);
}
