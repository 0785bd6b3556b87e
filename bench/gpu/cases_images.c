// Training of image networks, and the smallest network of all.
#include "gpu_bench.h"

enum { TINY_BATCH = 4 };

static network_t begin(bench_t* b, const network_image_t* image, int64_t batch) {
  return bench_pictures(b, image, 3, bench_batch(b, batch, TINY_BATCH));
}

static rn_edge_t loss_of(bench_t* b, network_t* n, int64_t batch) {
  int64_t count = bench_batch(b, batch, TINY_BATCH);
  rn_edge_t labels = bench_ids(b, "labels", &count, 1, n->classes);
  return rn_sparse_softmax_cross_entropy(b->s, labels, n->x);
}

static void train(bench_t* b, int image, int64_t batch) {
  network_t n = begin(b, &network_images[image], batch);
  network_images[image].build(&n);
  bench_train(b, rn_gradient_descent(.learning_rate = 0.01f), loss_of(b, &n, batch));
}

static void alexnet(bench_t* b) { train(b, 0, 128); }
static void overfeat(bench_t* b) { train(b, 1, 128); }
static void oxfordnet(bench_t* b) { train(b, 2, 64); }
static void googlenet(bench_t* b) { train(b, 3, 128); }

static void resnet50(bench_t* b) {
  network_t n = begin(b, &network_images[4], 128);
  network_resnet50(&n);
  // Slowly in a tiny network, whose statistics are of few numbers.
  float rate = b->is_tiny ? 0.002f : 0.01f;
  bench_train(b, rn_momentum(.learning_rate = rate, .momentum = 0.9f), loss_of(b, &n, 128));
}

static void lenet(bench_t* b) {
  static const network_image_t image = {"lenet", network_lenet, 28, 12};
  network_t n = bench_pictures(b, &image, 1, bench_batch(b, 64, TINY_BATCH));
  n.classes = 10;
  network_lenet(&n);
  bench_train(b, rn_gradient_descent(.learning_rate = 0.01f), loss_of(b, &n, 64));
}

static void mlp(network_t* n) {
  network_dense(n, 128, rn_relu);
  network_dense(n, 10, NULL);
}

static void mlp_train(bench_t* b) {
  network_t n = bench_network(b);
  n.classes = 10;
  n.x = bench_numbers(b, "x", (const int64_t[]){bench_batch(b, 128, TINY_BATCH), 784}, 2);
  mlp(&n);
  bench_train(b, rn_gradient_descent(.learning_rate = 0.01f), loss_of(b, &n, 128));
}

static void mlp_wide(bench_t* b) {
  const int64_t units = bench_size(b, 500, 16);
  network_t n = bench_network(b);
  n.classes = 10;
  n.x = bench_numbers(b, "x", (const int64_t[]){bench_batch(b, 128, TINY_BATCH), 784}, 2);
  network_dense(&n, units, rn_relu);
  network_dense(&n, units, rn_relu);
  network_dense(&n, n.classes, NULL);
  bench_train(b, rn_gradient_descent(.learning_rate = 0.01f), loss_of(b, &n, 128));
}

// From an array of the host to an array of the host.
static void mlp_infer(bench_t* b) {
  network_t n = bench_network(b);
  n.x = b->fed = rn_Placeholder(b->s, TF_FLOAT, .shape = RN_SHAPE(1, 784));
  b->fed_rank = 2;
  b->fed_dims[0] = 1;
  b->fed_dims[1] = 784;
  mlp(&n);
  b->fetched = n.x;
}

const bench_case_t bench_images[] = {
    {"alexnet", alexnet, "ms", true},      {"overfeat", overfeat, "ms", true},
    {"oxfordnet", oxfordnet, "ms", true},  {"googlenet", googlenet, "ms", true},
    {"resnet50", resnet50, "ms", true},    {"lenet", lenet, "ms", true},
    {"mlp_train", mlp_train, "ms", false}, {"mlp_wide", mlp_wide, "ms", false},
    {"mlp_infer", mlp_infer, "ms", false}, {0},
};
