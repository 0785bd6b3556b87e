// More image networks: LeNet-5, VGG-16, U-Net, Inception v3, MobileNetV2. See networks.h.
#include <math.h>

#include "networks.h"

void network_lenet(network_t* n) {
  network_conv(n, 32, 5, 1, "SAME");
  network_max_pool(n, 2, 2, "VALID");
  network_conv(n, 64, 5, 1, "SAME");
  network_max_pool(n, 2, 2, "VALID");
  network_classify(n, 512, 0);
}

void network_vgg16(network_t* n) {
  static const int counts[] = {2, 2, 3, 3, 3}, filters[] = {64, 128, 256, 512, 512};
  for (int stage = 0; stage < 5; ++stage) {
    for (int i = 0; i < counts[stage]; ++i) network_conv(n, filters[stage], 3, 1, "SAME");
    network_max_pool(n, 2, 2, "VALID");
  }
  network_classify(n, 4096, 4096);
}

static void twice(network_t* n, int filters) {
  for (int i = 0; i < 2; ++i) network_conv(n, filters, 3, 1, "SAME");
}

void network_unet(network_t* n) {
  enum { DEPTH = 4 };
  rn_edge_t skipped[DEPTH];
  for (int i = 0; i < DEPTH; ++i) {
    twice(n, 64 << i);
    skipped[i] = n->x;
    network_max_pool(n, 2, 2, "VALID");
  }
  twice(n, 64 << DEPTH);
  for (int i = DEPTH - 1; i >= 0; --i) {
    network_up_conv(n, 64 << i);
    rn_edge_t both[] = {skipped[i], n->x};
    n->x = rn_ConcatV2(n->scope, both, 2, rn_const_int32(n->scope, 3));
    twice(n, 64 << i);
  }
  double width = n->width;
  n->width = 1;  // Classes are not scaled.
  network_convolution(n, &(network_conv_t){.filters = n->classes, .height = 1});
  n->width = width;
  if (n->dtype && n->dtype != TF_FLOAT) n->x = rn_Cast(n->scope, n->x, TF_FLOAT);
}

// A convolution in a branch of an inception; |filters| 0 ends the branch. Stride 2 goes with
// "VALID", as published.
typedef struct part_t {
  int filters, height, width, stride;
} part_t;

enum { PARTS = 5, BRANCHES = 4 };
typedef struct mix_t {
  int pool;  // filters after an average pool; 0: a max pool of stride 2, without a convolution
  part_t branches[BRANCHES][PARTS];
  bool is_split;  // the last two parts of each branch but the first stand side by side
} mix_t;

static void convolve(network_t* n, const part_t* p) {
  network_convolution(n, &(network_conv_t){.filters = p->filters,
                                           .height = p->height,
                                           .width = p->width,
                                           .stride = p->stride,
                                           .padding = p->stride == 2 ? "VALID" : "SAME",
                                           .has_norm = true,
                                           .activation = rn_relu});
}

static int part_count(const part_t* parts) {
  int count = 0;
  while (count < PARTS && parts[count].filters) ++count;
  return count;
}

static void mix(network_t* n, const mix_t* m) {
  rn_edge_t x = n->x, results[2 * BRANCHES + 1];
  int made = 0;
  for (int b = 0; b < BRANCHES; ++b) {
    int count = part_count(m->branches[b]);
    if (!count) continue;
    bool splits = m->is_split && count > 1;
    n->x = x;
    for (int i = 0; i < count - (splits ? 2 : 0); ++i) convolve(n, &m->branches[b][i]);
    rn_edge_t shared = n->x;
    for (int i = count - 2; splits && i < count; ++i) {
      n->x = shared;
      convolve(n, &m->branches[b][i]);
      if (i == count - 2) results[made++] = n->x;
    }
    results[made++] = n->x;
  }
  n->x = x;
  if (m->pool) {
    network_average_pool(n, 3, 1, "SAME");
    convolve(n, &(part_t){m->pool, 1, 1, 1});
  } else {
    network_max_pool(n, 3, 2, "VALID");
  }
  results[made++] = n->x;
  n->x = rn_ConcatV2(n->scope, results, made, rn_const_int32(n->scope, 3));
}

// 35 x 35: 1 x 1; 5 x 5; two of 3 x 3.
static mix_t large_mix(int pool) {
  return (mix_t){pool,
                 {{{64, 1, 1, 1}},
                  {{48, 1, 1, 1}, {64, 5, 5, 1}},
                  {{64, 1, 1, 1}, {96, 3, 3, 1}, {96, 3, 3, 1}}},
                 false};
}

// 17 x 17, by windows of 1 x 7 and 7 x 1.
static mix_t middle_mix(int c) {
  return (mix_t){192,
                 {{{192, 1, 1, 1}},
                  {{c, 1, 1, 1}, {c, 1, 7, 1}, {192, 7, 1, 1}},
                  {{c, 1, 1, 1}, {c, 7, 1, 1}, {c, 1, 7, 1}, {c, 7, 1, 1}, {192, 1, 7, 1}}},
                 false};
}

// Without the head in the middle.
void network_inception_v3(network_t* n) {
  static const mix_t to_17 = {
      0, {{{384, 3, 3, 2}}, {{64, 1, 1, 1}, {96, 3, 3, 1}, {96, 3, 3, 2}}}, false};
  static const mix_t to_8 = {0,
                             {{{192, 1, 1, 1}, {320, 3, 3, 2}},
                              {{192, 1, 1, 1}, {192, 1, 7, 1}, {192, 7, 1, 1}, {192, 3, 3, 2}}},
                             false};
  static const mix_t small = {192,
                              {{{320, 1, 1, 1}},
                               {{384, 1, 1, 1}, {384, 1, 3, 1}, {384, 3, 1, 1}},
                               {{448, 1, 1, 1}, {384, 3, 3, 1}, {384, 1, 3, 1}, {384, 3, 1, 1}}},
                              true};
  static const int pools[] = {32, 64, 64}, middles[] = {128, 160, 160, 192};
  convolve(n, &(part_t){32, 3, 3, 2});
  network_convolution(
      n,
      &(network_conv_t){
          .filters = 32, .height = 3, .padding = "VALID", .has_norm = true, .activation = rn_relu});
  convolve(n, &(part_t){64, 3, 3, 1});
  network_max_pool(n, 3, 2, "VALID");
  convolve(n, &(part_t){80, 1, 1, 1});
  network_convolution(n, &(network_conv_t){.filters = 192,
                                           .height = 3,
                                           .padding = "VALID",
                                           .has_norm = true,
                                           .activation = rn_relu});
  network_max_pool(n, 3, 2, "VALID");
  const int most = n->most_blocks ? n->most_blocks : 4;
  for (int i = 0; i < 3 && i < most; ++i) {
    mix_t m = large_mix(pools[i]);
    mix(n, &m);
  }
  mix(n, &to_17);
  for (int i = 0; i < 4 && i < most; ++i) {
    mix_t m = middle_mix(middles[i]);
    mix(n, &m);
  }
  mix(n, &to_8);
  for (int i = 0; i < 2 && i < most; ++i) mix(n, &small);
  network_global_pool(n);
  network_classify(n, 0, 0);
}

// A wide 1 x 1, a depthwise 3 x 3, a narrow 1 x 1 without activation.
static void inverted(network_t* n, int widening, int filters, int stride) {
  rn_edge_t x = n->x;
  int64_t depth = network_dim(n, x, 3);
  double width = n->width;
  if (widening > 1) {
    n->width = 1;  // |depth| is scaled already.
    network_convolution(n, &(network_conv_t){.filters = (int)depth * widening,
                                             .height = 1,
                                             .has_norm = true,
                                             .activation = rn_relu6});
    n->width = width;
  }
  network_depthwise_norm(n, 3, stride, rn_relu6);
  network_conv_norm(n, filters, 1, 1, false);
  if (stride == 1 && network_dim(n, n->x, 3) == depth) n->x = rn_AddV2(n->scope, x, n->x);
}

void network_mobilenet_v2(network_t* n) {
  static const struct {
    int widening, filters, count, stride;
  } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  network_convolution(
      n, &(network_conv_t){
             .filters = 32, .height = 3, .stride = 2, .has_norm = true, .activation = rn_relu6});
  for (size_t s = 0; s < sizeof stages / sizeof *stages; ++s)
    for (int i = 0; i < stages[s].count && (!n->most_blocks || i < n->most_blocks); ++i)
      inverted(n, stages[s].widening, stages[s].filters, i == 0 ? stages[s].stride : 1);
  network_convolution(
      n, &(network_conv_t){.filters = 1280, .height = 1, .has_norm = true, .activation = rn_relu6});
  network_global_pool(n);
  network_classify(n, 0, 0);
}
