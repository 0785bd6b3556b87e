// rn_cudnn_conv itself: what no op uses yet. Bias, residual and Relu after a convolution, and
// filters that are in cuDNN's order already. Runs on the emulated GPU with the emulated cuDNN.
#include "kernels/cuda/libs/cudnn_conv.h"

#include "api.h"
#include "choices.h"
#include "kernels/cuda/libs/cudnn.h"

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

// Engines and their numerical notes.

// Whether an engine computes in |dtype|, as a child process finds it with EMULATED_CUDNN_NOTE.
static bool computes(rn_dtype_t dtype) {
  gpu_t gpu;
  bool done = false;
  gpu_open(&gpu);
  rn_cuda_conv_t conv = conv_make(false, RN_CUDA_FILTER_TURNED);
  conv.dtype = dtype;
  pair_t x = pair_make(&gpu, dtype, BATCH * PIXELS * IN),
         w = pair_make(&gpu, dtype, FILTER * FILTER * IN * OUT),
         y = pair_make(&gpu, dtype, BATCH * PIXELS * OUT);
  rn_cuda_conv_data_t data = {.x = x.card.data, .w = w.card.data, .y = y.card.data};
  OK(rn_cudnn_conv(&gpu.ctx, &conv, &data, &done));
  pair_clear(&x);
  pair_clear(&w);
  pair_clear(&y);
  gpu_close(&gpu);
  return done;
}

// Whether engines with |note| may compute in |dtype|. A process reads its settings once.
static bool takes(int note, rn_dtype_t dtype) {
  char text[12];
  int result = 0;
  snprintf(text, sizeof text, "%d", note);
  setenv("EMULATED_CUDNN_NOTE", text, 1);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) _exit(computes(dtype) ? 3 : 4);
  cr_assert_eq(waitpid(child, &result, 0), child);
  cr_assert(WIFEXITED(result) && (WEXITSTATUS(result) == 3 || WEXITSTATUS(result) == 4));
  return WEXITSTATUS(result) == 3;
}

Test(gpu_conv_api, floats_without_tf32_take_exact_engines, .timeout = 60) {
  static const int rough[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                              CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                              CUDNN_NUMERICAL_NOTE_FFT,
                              CUDNN_NUMERICAL_NOTE_WINOGRAD,
                              CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                              CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                              CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  setenv("RUNNEL_CACHE_DIR", "/dev/null", 1);  // no choice of the engines before
  for (size_t i = 0; i < sizeof rough / sizeof *rough; ++i) {
    unsetenv("NVIDIA_TF32_OVERRIDE");
    cr_expect(takes(rough[i], RN_FLOAT), "note %d", rough[i]);
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
    cr_expect_not(takes(rough[i], RN_FLOAT), "note %d", rough[i]);
    cr_expect(takes(rough[i], RN_DOUBLE), "note %d", rough[i]);
  }
  // Or exact ones by their results, whatever they say.
  setenv("EMULATED_CUDNN_ROUGH", "1", 1);
  cr_expect_not(takes(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, RN_FLOAT));
  cr_expect(takes(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, RN_DOUBLE));
  unsetenv("EMULATED_CUDNN_ROUGH");
  cr_expect(takes(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, RN_FLOAT));
  cr_expect_not(takes(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, RN_DOUBLE));
  cr_expect(takes(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, RN_FLOAT));
  setenv("TF_DETERMINISTIC_OPS", "1", 1);
  cr_expect_not(takes(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, RN_FLOAT));
}

// Bytes of the card that a small convolution takes at most, if engines need |workspaces|; in a
// child process, which reads the settings anew.
static int64_t most_taken(const char* workspaces) {
  int64_t most = 0;
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  setenv("EMULATED_CUDNN_WORKSPACE", workspaces, 1);
  setenv("RUNNEL_CACHE_DIR", "/dev/null", 1);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    rn_cuda_memory_stats_t stats;
    gpu_t gpu;
    gpu_open(&gpu);
    check(&gpu, conv_make(false, RN_CUDA_FILTER_TURNED));
    rn_cuda_memory_stats(rn_cuda_card(&gpu.ctx)->memory, &stats);
    most = (int64_t)stats.peak_bytes_in_use;
    _exit(write(ends[1], &most, sizeof most) == sizeof most ? 0 : 1);
  }
  int result = 1;
  cr_assert_eq(waitpid(child, &result, 0), child);
  cr_assert_eq(result, 0, "workspaces %s", workspaces);
  cr_assert_eq(read(ends[0], &most, sizeof most), sizeof most);
  close(ends[0]);
  close(ends[1]);
  return most;
}

// Engines that need far more than their tensors are not even tried, unless all do.
Test(gpu_conv_api, workspaces_are_limited, .timeout = 120) {
  const int64_t large = INT64_C(100) << 20;
  cr_expect_leq(most_taken("512,512,512"), large);
  cr_expect_leq(most_taken("104857600,512,512"), large);
  cr_expect_geq(most_taken("104857600,104857600,104857600"), large);
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
