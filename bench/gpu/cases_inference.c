// Inference of image networks.
#include "gpu_bench.h"

static void infer(bench_t* b, network_image_t image, int64_t batch, bool has_no_norms) {
  network_t n = bench_pictures(b, &image, 3, bench_batch(b, batch, batch));
  n.is_inference = true;
  n.has_no_norms = has_no_norms;
  image.build(&n);
  bench_infer(b, n.x);
}

static const network_image_t resnet = {"resnet50", network_resnet50, 224, 64};

static void resnet50_b1(bench_t* b) { infer(b, resnet, 1, false); }
static void resnet50_b64(bench_t* b) { infer(b, resnet, b->is_tiny ? 4 : 64, false); }
// With biases in the place of batch normalization.
static void resnet50_bias(bench_t* b) { infer(b, resnet, 1, true); }

static void mobilenet_v2(bench_t* b) {
  infer(b, (network_image_t){"mobilenet_v2", network_mobilenet_v2, 224, 64}, 1, false);
}
static void inception_v3(bench_t* b) {
  infer(b, (network_image_t){"inception_v3", network_inception_v3, 299, 75}, 1, false);
}
static void vgg16(bench_t* b) {
  infer(b, (network_image_t){"vgg16", network_vgg16, 224, 32}, 1, false);
}

static void unet(bench_t* b) {
  static const network_image_t image = {"unet", network_unet, 256, 32};
  network_t n = bench_pictures(b, &image, 3, bench_batch(b, 1, 1));
  n.classes = 2;
  network_unet(&n);
  bench_infer(b, n.x);
}

const bench_case_t bench_inference[] = {
    {"resnet50_infer_b1", resnet50_b1, "ms", true},
    {"resnet50_infer_b64", resnet50_b64, "ms", true},
    {"resnet50_bias_infer", resnet50_bias, "ms", true},
    {"mobilenet_v2_infer", mobilenet_v2, "ms", true},
    {"inception_v3_infer", inception_v3, "ms", true},
    {"vgg16_infer", vgg16, "ms", true},
    {"unet_infer", unet, "ms", true},
    {0},
};
