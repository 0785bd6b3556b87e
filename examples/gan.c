// A generative adversarial network: a generator makes numbers, a discriminator tells them from real
// ones.
//
// The real numbers cluster around -2 and +2. The generator does not see them: it gets only noise
// and the gradient of the discriminator's output. The risk is mode collapse, a generator that
// produces only one of the two clusters; the program measures at the end how much of each it
// covers.
#include <math.h>
#include <string.h>

#include "example.h"

enum { BATCH = 128, NOISE = 2, SAMPLES = 2000 };

static const float CENTRE = 2, DEVIATION = 0.25f;

static rn_edge_t three_layers(const example_t* e, rn_edge_t x, const char* name, int seed) {
  // The discriminator is built twice, for real and for generated numbers. The same names give the
  // same variables the second time.
  rn_scope_t* s = rn_variable_scope(e->scope, name, .reuse = RN_REUSE_AUTO);
  x = rn_dense(s, x, 32, .activation = rn_tanh, .name = "a",
               .kernel_initializer = rn_init_glorot_normal(example_seed(e, seed)));
  x = rn_dense(s, x, 32, .activation = rn_tanh, .name = "b",
               .kernel_initializer = rn_init_glorot_normal(example_seed(e, seed + 1)));
  x = rn_dense(s, x, 1, .name = "c",
               .kernel_initializer = rn_init_glorot_normal(example_seed(e, seed + 2)));
  rn_scope_destroy(s);
  return x;
}

// A training step that changes only the variables under |prefix|.
static rn_node_t* train_part(rn_scope_t* s, rn_edge_t loss, const char* prefix) {
  const rn_collected_t* all = NULL;
  const rn_var_t* part[16];
  int count = rn_collection(s, RN_TRAINABLE_VARIABLES, &all), used = 0;
  for (int i = 0; i < count && used < 16; ++i)
    if (!strncmp(all[i].variable->name, prefix, strlen(prefix))) part[used++] = all[i].variable;
  return rn_minimize(s, rn_adam(.learning_rate = 2e-3f, .beta1 = RN_SET(0.5f), .name = prefix),
                     loss, .variables = part, .variable_count = used);
}

int main(int argc, char** argv) {
  example_t e = example_open(argc, argv, "A generator learns a mixture of two bells.", 1500);
  rn_scope_t* s = e.scope;
  rn_edge_t real = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, 1));
  rn_edge_t noise = rn_Placeholder(s, TF_FLOAT, .shape = RN_SHAPE(-1, NOISE));
  rn_edge_t made = three_layers(&e, noise, "generator", 0);
  rn_edge_t of_real = three_layers(&e, real, "discriminator", 10);
  rn_edge_t of_made = three_layers(&e, made, "discriminator", 10);

  // The discriminator's targets are 1 for real and 0 for generated numbers; the generator's target
  // is 1 for its own.
  rn_edge_t judge = rn_AddV2(s, rn_sigmoid_cross_entropy(s, rn_OnesLike(s, of_real), of_real),
                             rn_sigmoid_cross_entropy(s, rn_ZerosLike(s, of_made), of_made));
  rn_edge_t forge = rn_sigmoid_cross_entropy(s, rn_OnesLike(s, of_made), of_made);
  // A discriminator that is steep at real numbers makes the generator oscillate around them. So the
  // loss includes its slope there, which is a gradient: training takes the gradient of a gradient.
  rn_edge_t slope = RN_NO_EDGE;
  rn_gradients(s, of_real, &real, 1, &slope);
  rn_edge_t steep = rn_Mean(s, rn_Square(s, slope), rn_const_int32_list(s, (int32_t[]){0, 1}, 2));
  judge = rn_AddV2(s, judge, rn_Mul(s, rn_const_float(s, 0.1f), steep));
  rn_node_t* train_judge = train_part(s, judge, "discriminator");
  rn_node_t* train_forger = train_part(s, forge, "generator");

  example_start(&e);
  static float numbers[SAMPLES], z[SAMPLES * NOISE];
  for (int step = 1; step <= e.steps; ++step) {
    float judged, forged;
    for (int i = 0; i < BATCH; ++i)
      numbers[i] = (example_draw(&e, 2) ? CENTRE : -CENTRE) + DEVIATION * example_normal(&e);
    for (int i = 0; i < BATCH * NOISE; ++i) z[i] = example_normal(&e);
    example_run(&e, RN_TARGET(train_judge), RN_FEED(real, numbers, BATCH, 1),
                RN_FEED(noise, z, BATCH, NOISE), RN_FETCH(judge, &judged));
    example_run(&e, RN_TARGET(train_forger), RN_FEED(noise, z, BATCH, NOISE),
                RN_FETCH(forge, &forged));
    example_progress(&e, step, "discriminator %.3f   generator %.3f", judged, forged);
  }

  // The share of generated numbers within four standard deviations of each center.
  int low = 0, high = 0;
  for (int i = 0; i < SAMPLES * NOISE; ++i) z[i] = example_normal(&e);
  example_run(&e, RN_FEED(noise, z, SAMPLES, NOISE), RN_FETCH(made, numbers, SAMPLES, 1));
  for (int i = 0; i < SAMPLES; ++i) {
    low += fabsf(numbers[i] + CENTRE) < 4 * DEVIATION;
    high += fabsf(numbers[i] - CENTRE) < 4 * DEVIATION;
  }
  float part_low = (float)low / SAMPLES, part_high = (float)high / SAMPLES;
  bool covers = part_low > 0.25f && part_high > 0.25f && part_low + part_high > 0.85f;
  return example_close(&e, covers, "%.0f %% around -2, %.0f %% around +2", 100 * part_low,
                       100 * part_high);
}
