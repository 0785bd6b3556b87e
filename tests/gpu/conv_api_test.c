// rn_cudnn_conv itself: what no op uses yet. Bias, residual and Relu after a convolution, and
// filters that are in cuDNN's order already. Runs on the emulated GPU with the emulated cuDNN.
#include "kernels/cuda/libs/cudnn_conv.h"

#include "api.h"
#include "choices.h"

enum { BATCH = 2, SIZE = 5, IN = 4, OUT = 6, FILTER = 3, PIXELS = SIZE * SIZE };

static rn_cuda_conv_t conv_make(bool is_first, rn_cuda_filter_t order) {
  const rn_window_axis_t one = {.in = 1, .filter = 1, .stride = 1, .dilation = 1, .out = 1};
  const rn_window_axis_t axis = {.in = SIZE,
                                 .filter = FILTER,
                                 .stride = 1,
                                 .dilation = 1,
                                 .before = 1,
                                 .after = 1,
                                 .out = SIZE};
  return (rn_cuda_conv_t){.kind = RN_CONV_FORWARD,
                          .dtype = RN_FLOAT,
                          .is_channels_first = is_first,
                          .rank = 2,
                          .batch = BATCH,
                          .in_depth = IN,
                          .out_depth = OUT,
                          .groups = 1,
                          .axes = {one, axis, axis},
                          .filter = order};
}

// Where an element of an image or of the filter is.
static int64_t at(const rn_cuda_conv_t* conv, int64_t n, int64_t p, int64_t c, int64_t depth) {
  return conv->is_channels_first ? (n * depth + c) * PIXELS + p : (n * PIXELS + p) * depth + c;
}
static int64_t weight_at(const rn_cuda_conv_t* conv, int64_t f, int64_t c, int64_t k) {
  if (conv->filter == RN_CUDA_FILTER_PLAIN) return (f * IN + c) * OUT + k;
  return conv->is_channels_first ? (k * IN + c) * FILTER * FILTER + f
                                 : (k * FILTER * FILTER + f) * IN + c;
}

static double expected(const rn_cuda_conv_t* conv, const float* x, const float* w, int64_t n,
                       int64_t p, int64_t k) {
  double sum = 0;
  for (int64_t f = 0; f < FILTER * FILTER; ++f) {
    const int64_t row = p / SIZE + f / FILTER - 1, column = p % SIZE + f % FILTER - 1;
    if (row < 0 || row >= SIZE || column < 0 || column >= SIZE) continue;
    for (int64_t c = 0; c < IN; ++c)
      sum +=
          (double)x[at(conv, n, row * SIZE + column, c, IN)] * (double)w[weight_at(conv, f, c, k)];
  }
  return sum;
}

static void check(gpu_t* gpu, rn_cuda_conv_t conv) {
  pair_t x = pair_make(gpu, RN_FLOAT, BATCH * PIXELS * IN),
         w = pair_make(gpu, RN_FLOAT, FILTER * FILTER * IN * OUT),
         y = pair_make(gpu, RN_FLOAT, BATCH * PIXELS * OUT),
         residual = pair_make(gpu, RN_FLOAT, BATCH * PIXELS * OUT),
         bias = pair_make(gpu, RN_FLOAT, OUT);
  rn_cuda_conv_data_t data = {.x = x.card.data, .w = w.card.data, .y = y.card.data};
  if (conv.has_bias) data.bias = bias.card.data;
  if (conv.has_residual) data.residual = residual.card.data;
  bool done = false;
  OK(rn_cudnn_conv(&gpu->ctx, &conv, &data, &done));
  cr_assert(done);
  pair_fetch(gpu, &y);
  for (int64_t n = 0; n < BATCH; ++n)
    for (int64_t p = 0; p < PIXELS; ++p)
      for (int64_t k = 0; k < OUT; ++k) {
        const int64_t i = at(&conv, n, p, k, OUT);
        double wanted = expected(&conv, x.host.data, w.host.data, n, p, k);
        if (conv.has_residual) wanted += (double)RN_DATA(&residual.host, float)[i];
        if (conv.has_bias) wanted += (double)RN_DATA(&bias.host, float)[k];
        if (conv.has_relu && wanted < 0) wanted = 0;
        cr_assert_float_eq((double)RN_DATA(&y.host, float)[i], wanted, 1e-4, "[%d, %d, %d]", (int)n,
                           (int)p, (int)k);
      }
  pair_t* const all[] = {&x, &w, &y, &residual, &bias};
  for (int i = 0; i < 5; ++i) pair_clear(all[i]);
}

Test(gpu_conv_api, steps_and_orders, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int bits = 0; bits < 32; ++bits) {
    rn_cuda_conv_t conv =
        conv_make(bits & 1, bits & 2 ? RN_CUDA_FILTER_TURNED : RN_CUDA_FILTER_PLAIN);
    conv.has_residual = bits >> 2 & 1;
    conv.has_bias = bits >> 3 & 1;
    conv.has_relu = bits >> 4 & 1;
    check(&gpu, conv);
    check(&gpu, conv);  // by the plan of the first
  }
  gpu_close(&gpu);
}

Test(gpu_conv_api, filters_turn_and_turn_back, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int first = 0; first < 2; ++first) {
    rn_cuda_conv_t conv = conv_make(first, RN_CUDA_FILTER_PLAIN), turned = conv;
    turned.filter = RN_CUDA_FILTER_TURNED;
    const int64_t size = rn_cuda_conv_filter_size(&conv);
    pair_t w = pair_make(&gpu, RN_FLOAT, size), v = pair_make(&gpu, RN_FLOAT, size + 1);
    OK(rn_cuda_conv_turn(&gpu.ctx, &conv, w.card.data, v.card.data, false));
    pair_fetch(&gpu, &v);
    for (int64_t f = 0; f < FILTER * FILTER; ++f)
      for (int64_t c = 0; c < IN; ++c)
        for (int64_t k = 0; k < OUT; ++k)
          cr_assert_eq(RN_DATA(&v.host, float)[weight_at(&turned, f, c, k)],
                       RN_DATA(&w.host, float)[weight_at(&conv, f, c, k)]);
    pair_t back = pair_make(&gpu, RN_FLOAT, size);
    OK(rn_cuda_conv_turn(&gpu.ctx, &conv, v.card.data, back.card.data, true));
    pair_fetch(&gpu, &back);
    cr_assert_arr_eq(back.host.data, w.host.data, rn_tensor_bytes(&w.host));
    pair_clear(&w);
    pair_clear(&v);
    pair_clear(&back);
  }
  gpu_close(&gpu);
}

// Choices across processes.

// How often the emulated cuDNN was asked for "heuristics", or read the "text" of a plan.
static int count(const char* what) {
  return choices_ask("libcudnn.so.9", "emulated_cudnn_count", what);
}

static void convolve(void) {
  gpu_t gpu;
  gpu_open(&gpu);
  rn_env_t env = choices_env();
  gpu.step.env = &env;
  check(&gpu, conv_make(false, RN_CUDA_FILTER_TURNED));
  gpu_close(&gpu);
}

Test(gpu_conv_api, choices_are_remembered, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  choices_begin(folder, convolve);
  convolve();
  cr_expect_eq(count("text"), 1);
  cr_expect_eq(count("heuristics"), 0);
  cr_expect_eq(choices_lines, 0);
  choices_end(folder);
}

Test(gpu_conv_api, choices_without_text, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  choices_begin(folder, convolve);
  setenv("EMULATED_CUDNN_NO_TEXT", "1", 1);
  convolve();
  cr_expect_eq(count("heuristics"), 1);
  choices_end(folder);
}

Test(gpu_conv_api, spoiled_choices_are_made_again, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  choices_begin(folder, convolve);
  cr_assert_eq(choices_spoil(folder), 1);
  convolve();
  cr_expect_eq(choices_lines, 1);
  cr_expect_eq(count("text"), 0);
  cr_expect_eq(count("heuristics"), 1);
  choices_end(folder);
}

Test(gpu_conv_api, determinism_uses_no_choices, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  choices_begin(folder, convolve);
  setenv("TF_DETERMINISTIC_OPS", "1", 1);
  convolve();
  cr_expect_eq(count("text"), 0);
  cr_expect_eq(count("heuristics"), 1);
  choices_end(folder);
}
