// The convolutional networks that changed what computers see, on handwritten digits.
//
// AlexNet (2012), Overfeat (2013), OxfordNet and GoogleNet (2014) and ResNet-50 (2015), built layer
// by layer in network_images.c. They were made for large pictures and 1,000 kinds of things. Here
// each has an eighth of its channels, and the digits are enlarged to the smallest picture that the
// network takes. --width 1 trains the published network.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits_data.h"
#include "networks.h"

enum { BATCH = 32 };

typedef struct model_t {
  rn_edge_t images, labels, loss, accuracy;
  rn_node_t* train;
} model_t;

static const network_image_t* find(const char* name) {
  for (int i = 0; i < network_image_count; ++i)
    if (!strcmp(network_images[i].name, name)) return &network_images[i];
  example_fail("--net", "is alexnet, overfeat, oxfordnet, googlenet or resnet50");
}

// [batch, 64] as pictures of |side| by |side| in three equal colors.
static rn_edge_t enlarged(rn_scope_t* s, rn_edge_t images, int side) {
  rn_edge_t x = rn_Reshape(s, images, rn_const_int32_list(s, (int32_t[]){BATCH, 8, 8, 1}, 4));
  x = rn_ResizeBilinear(s, x, rn_const_int32_list(s, (int32_t[]){side, side}, 2));
  return rn_Tile(s, x, rn_const_int32_list(s, (int32_t[]){1, 1, 1, 3}, 4));
}

static model_t build(const example_t* e, const network_image_t* image, double width) {
  rn_scope_t* s = e->scope;
  model_t m;
  m.images = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(BATCH, DIGITS_PIXELS));
  m.labels = rn_Placeholder(s, TF_INT32, .shape = RN_SHAPE(BATCH));
  network_t n = {.scope = s,
                 .x = enlarged(s, m.images, width < 1 ? image->small_side : image->side),
                 .classes = DIGITS_CLASSES,
                 .width = width,
                 .most_blocks = width < 1 ? 1 : 0,
                 .seed = example_seed(e, 0)};
  image->build(&n);
  m.loss = rn_sparse_softmax_cross_entropy(s, m.labels, n.x);
  const rn_var_t* count = rn_global_step(s);
  if (!count) example_fail("the graph", rn_scope_message(s));
  rn_edge_t rate = rn_cosine_decay(s, 0.002f, count->value, (float)e->steps);
  // The averages that batch normalization keeps for later are updated with the weights.
  rn_node_t* both[2] = {rn_minimize(s, rn_adam(.rate = rate), m.loss, .global_step = count),
                        rn_group_collection(s, RN_UPDATE_OPS)};
  m.train = rn_group(s, both, 2);
  rn_edge_t guess = rn_ArgMax(s, n.x, rn_const_int32(s, 1), .output_type = TF_INT32);
  rn_edge_t right = rn_Cast(s, rn_Equal(s, guess, m.labels), TF_FLOAT);
  m.accuracy = rn_Mean(s, right, rn_const_int32(s, 0));
  return m;
}

int main(int argc, char** argv) {
  const network_image_t* image = find(example_option(&argc, argv, "--net", "alexnet"));
  double width = atof(example_option(&argc, argv, "--width", "0.125"));
  example_t e = example_open(
      argc, argv,
      "Image networks on handwritten digits: --net alexnet|overfeat|oxfordnet|googlenet|resnet50,\n"
      "--width W for the part of the published number of channels (0.125).",
      300);
  model_t m = build(&e, image, width);
  example_start(&e);
  digits_t* digits = digits_read(&e);
  float loss, part, x[BATCH * DIGITS_PIXELS];
  int32_t y[BATCH];
  for (int step = 1; step <= e.steps; ++step) {
    digits_batch(&e, digits, BATCH, x, y);
    example_run(&e, RN_TARGET(m.train), RN_FEED(m.images, x, BATCH, DIGITS_PIXELS),
                RN_FEED(m.labels, y, BATCH), RN_FETCH(m.loss, &loss), RN_FETCH(m.accuracy, &part));
    example_progress(&e, step, "loss %.4f   accuracy %5.1f %%", loss, 100 * part);
  }

  float right = 0;
  enum { TESTS = DIGITS_HELD_OUT / BATCH };
  for (int i = 0; i < TESTS; ++i) {
    int first = DIGITS_TRAINED + i * BATCH;
    example_run(&e, RN_FEED(m.images, digits->images[first], BATCH, DIGITS_PIXELS),
                RN_FEED(m.labels, digits->labels + first, BATCH), RN_FETCH(m.accuracy, &part));
    right += part / TESTS;
  }
  free(digits);
  return example_close(&e, right >= 0.75f, "%s: %.1f %% of the held-out digits", image->name,
                       100 * right);
}
