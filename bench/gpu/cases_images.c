// Image networks and the smallest network of all.
#include "gpu_bench.h"

enum { CLASSES = 1000, TINY_BATCH = 4 };

static network_t begin(bench_t* b, const network_image_t* image, int64_t batch) {
  network_t n = bench_network(b);
  int64_t side = bench_size(b, image->side, image->small_side);
  const int64_t dims[] = {bench_size(b, batch, TINY_BATCH), side, side, 3};
  n.classes = (int)bench_size(b, CLASSES, 10);
  n.x = bench_numbers(b, "x", dims, 4);
  if (b->is_tiny) {
    n.width = 0.0625;
    n.most_blocks = 1;
  }
  return n;
}

static rn_edge_t loss_of(bench_t* b, network_t* n, int64_t batch) {
  int64_t count = bench_size(b, batch, TINY_BATCH);
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

static void infer(bench_t* b, int64_t batch) {
  network_t n = begin(b, &network_images[4], batch);
  n.is_inference = true;
  network_resnet50(&n);
  bench_infer(b, n.x);
}

static void resnet50_b1(bench_t* b) { infer(b, 1); }
static void resnet50_b64(bench_t* b) { infer(b, 64); }

static void mlp(network_t* n) {
  network_dense(n, 128, rn_relu);
  network_dense(n, 10, NULL);
}

static void mlp_train(bench_t* b) {
  const int64_t batch = bench_size(b, 128, TINY_BATCH);
  network_t n = bench_network(b);
  n.classes = 10;
  n.x = bench_numbers(b, "x", (const int64_t[]){batch, 784}, 2);
  mlp(&n);
  bench_train(b, rn_gradient_descent(.learning_rate = 0.01f), loss_of(b, &n, batch));
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
    {"alexnet", alexnet, "ms", true},
    {"overfeat", overfeat, "ms", true},
    {"oxfordnet", oxfordnet, "ms", true},
    {"googlenet", googlenet, "ms", true},
    {"resnet50", resnet50, "ms", true},
    {"resnet50_infer_b1", resnet50_b1, "ms", true},
    {"resnet50_infer_b64", resnet50_b64, "ms", true},
    {"mlp_train", mlp_train, "ms", false},
    {"mlp_infer", mlp_infer, "ms", false},
    {0},
};
