// Image networks from 2012 to 2015: see networks.h.
#include "networks.h"

void network_alexnet(network_t* n) {
  network_conv(n, 64, 11, 4, "SAME");
  network_max_pool(n, 3, 2, "VALID");
  network_conv(n, 192, 5, 1, "SAME");
  network_max_pool(n, 3, 2, "VALID");
  network_conv(n, 384, 3, 1, "SAME");
  network_conv(n, 256, 3, 1, "SAME");
  network_conv(n, 256, 3, 1, "SAME");
  network_max_pool(n, 3, 2, "VALID");
  network_classify(n, 4096, 4096);
}

void network_overfeat(network_t* n) {
  network_conv(n, 96, 11, 4, "VALID");
  network_max_pool(n, 2, 2, "VALID");
  network_conv(n, 256, 5, 1, "VALID");
  network_max_pool(n, 2, 2, "VALID");
  network_conv(n, 512, 3, 1, "SAME");
  network_conv(n, 1024, 3, 1, "SAME");
  network_conv(n, 1024, 3, 1, "SAME");
  network_max_pool(n, 2, 2, "VALID");
  network_classify(n, 3072, 4096);
}

// Model A.
void network_oxfordnet(network_t* n) {
  static const int widths[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; ++i) {
    if (widths[i])
      network_conv(n, widths[i], 3, 1, "SAME");
    else
      network_max_pool(n, 2, 2, "VALID");
  }
  network_classify(n, 4096, 4096);
}

// Four branches: 1 x 1; 1 x 1 and 3 x 3; 1 x 1 and 5 x 5; a pool and 1 x 1.
typedef struct inception_t {
  int one, three_in, three, five_in, five, pooled;
} inception_t;

static void inception(network_t* n, const inception_t* c) {
  rn_edge_t x = n->x, parts[4];
  network_conv(n, c->one, 1, 1, "SAME");
  parts[0] = n->x;
  n->x = x;
  network_conv(n, c->three_in, 1, 1, "SAME");
  network_conv(n, c->three, 3, 1, "SAME");
  parts[1] = n->x;
  n->x = x;
  network_conv(n, c->five_in, 1, 1, "SAME");
  network_conv(n, c->five, 5, 1, "SAME");
  parts[2] = n->x;
  n->x = x;
  network_max_pool(n, 3, 1, "SAME");
  network_conv(n, c->pooled, 1, 1, "SAME");
  parts[3] = n->x;
  n->x = rn_ConcatV2(n->scope, parts, 4, rn_const_int32(n->scope, 3));
}

// Version 1, without the two heads in the middle.
void network_googlenet(network_t* n) {
  static const inception_t blocks[] = {
      {64, 96, 128, 16, 32, 32},     {128, 128, 192, 32, 96, 64},   {0, 0, 0, 0, 0, 0},
      {192, 96, 208, 16, 48, 64},    {160, 112, 224, 24, 64, 64},   {128, 128, 256, 24, 64, 64},
      {112, 144, 288, 32, 64, 64},   {256, 160, 320, 32, 128, 128}, {0, 0, 0, 0, 0, 0},
      {256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128},
  };
  network_conv(n, 64, 7, 2, "SAME");
  network_max_pool(n, 3, 2, "SAME");
  network_conv(n, 64, 1, 1, "SAME");
  network_conv(n, 192, 3, 1, "SAME");
  network_max_pool(n, 3, 2, "SAME");
  int count = (int)(sizeof blocks / sizeof *blocks);
  if (n->most_blocks && n->most_blocks < count) count = n->most_blocks;
  for (int i = 0; i < count; ++i) {
    if (blocks[i].one)
      inception(n, &blocks[i]);
    else
      network_max_pool(n, 3, 2, "SAME");
  }
  network_global_pool(n);
  network_classify(n, 0, 0);
}

static void bottleneck(network_t* n, int width, int stride, bool is_first) {
  rn_edge_t x = n->x, shortcut = x;
  if (is_first) {
    network_conv_norm(n, 4 * width, 1, stride, false);
    shortcut = n->x;
    n->x = x;
  }
  network_conv_norm(n, width, 1, 1, true);
  network_conv_norm(n, width, 3, stride, true);
  network_conv_norm(n, 4 * width, 1, 1, false);
  n->x = rn_relu(n->scope, rn_AddV2(n->scope, n->x, shortcut));
}

void network_resnet50(network_t* n) {
  static const int blocks[] = {3, 4, 6, 3};
  network_conv_norm(n, 64, 7, 2, true);
  network_max_pool(n, 3, 2, "SAME");
  for (int stage = 0; stage < 4; ++stage)
    for (int b = 0; b < blocks[stage] && (!n->most_blocks || b < n->most_blocks); ++b)
      bottleneck(n, 64 << stage, b == 0 && stage > 0 ? 2 : 1, b == 0);
  network_global_pool(n);
  network_classify(n, 0, 0);
}

const network_image_t network_images[] = {
    {"alexnet", network_alexnet, 224, 63},     {"overfeat", network_overfeat, 231, 71},
    {"oxfordnet", network_oxfordnet, 224, 32}, {"googlenet", network_googlenet, 224, 32},
    {"resnet50", network_resnet50, 224, 64},
};
const int network_image_count = sizeof network_images / sizeof *network_images;
