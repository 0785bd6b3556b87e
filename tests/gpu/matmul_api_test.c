// rn_cuda_matmul itself, with what few ops use: strides, alpha and beta, addends, bias,
// activations, sums of B, integers. Runs on the emulated GPU.
#include "kernels/cuda/math/matmul.h"

#include "api.h"
#include "choices.h"

enum { M = 70, N = 33, K = 19, BATCH = 3, A_ROW = 80, B_ROW = 40, C_ROW = 36 };

static double activated(double x, int activation) {
  if (activation == RN_MATMUL_RELU) return x < 0 ? 0 : x;
  if (activation == RN_MATMUL_GELU)
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

// C of |p|, element by element, from the host's copies.
static double expected(const rn_cuda_matmul_t* p, const float* a, const float* b, double c,
                       const float* bias, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < p->k; ++d)
    sum += (double)a[p->transpose_a ? d * p->a_row + i : i * p->a_row + d] *
           (double)b[p->transpose_b ? j * p->b_row + d : d * p->b_row + j];
  sum = (p->alpha != 0 ? p->alpha : 1) * sum + (p->addend ? 1 : p->beta) * c;
  return activated(sum + (bias ? (double)bias[j] : 0), p->activation);
}

static void check_floats(gpu_t* gpu, rn_cuda_matmul_t p, bool has_bias, bool adds) {
  const int64_t a_size = A_ROW * A_ROW, b_size = B_ROW * B_ROW, c_size = M * C_ROW;
  pair_t a = pair_make(gpu, RN_FLOAT, BATCH * a_size), b = pair_make(gpu, RN_FLOAT, BATCH * b_size);
  pair_t c = pair_make(gpu, RN_FLOAT, BATCH * c_size), bias = pair_make(gpu, RN_FLOAT, N);
  float* before = malloc(rn_tensor_bytes(&c.host));
  memcpy(before, c.host.data, rn_tensor_bytes(&c.host));
  p.dtype = RN_FLOAT;
  p.m = M, p.n = N, p.k = K, p.batch = BATCH;
  p.a = a.card.data, p.b = b.card.data, p.c = c.card.data;
  p.a_row = A_ROW, p.b_row = B_ROW, p.c_row = C_ROW;
  p.a_stride = a_size, p.b_stride = b_size, p.c_stride = c_size;
  if (has_bias) p.bias = bias.card.data;
  pair_t addend = pair_make(gpu, RN_FLOAT, BATCH * c_size);  // the same numbers as in C
  if (adds) p.addend = addend.card.data;
  OK(rn_cuda_matmul(&gpu->ctx, &p));
  pair_fetch(gpu, &c);
  for (int64_t at = 0; at < BATCH * c_size; ++at) {
    const int64_t z = at / c_size, i = at % c_size / C_ROW, j = at % C_ROW;
    double wanted = (double)before[at];  // between the rows
    if (j < N)
      wanted =
          expected(&p, RN_DATA(&a.host, float) + z * a_size, RN_DATA(&b.host, float) + z * b_size,
                   wanted, has_bias ? bias.host.data : NULL, i, j);
    cr_assert_float_eq((double)RN_DATA(&c.host, float)[at], wanted, 1e-4, "matrix %d, [%d, %d]",
                       (int)z, (int)i, (int)j);
  }
  free(before);
  pair_clear(&a), pair_clear(&b), pair_clear(&c), pair_clear(&bias), pair_clear(&addend);
}

Test(gpu_matmul_api, strides_scales_and_epilogues, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int transposes = 0; transposes < 4; ++transposes) {
    rn_cuda_matmul_t p = {.transpose_a = transposes & 1, .transpose_b = transposes & 2};
    check_floats(&gpu, p, false, false);
    p.alpha = 0.5;
    check_floats(&gpu, p, true, false);
    p.beta = -2;
    check_floats(&gpu, p, true, false);
    p.activation = RN_MATMUL_RELU;
    check_floats(&gpu, p, true, false);
    p.beta = 0;
    check_floats(&gpu, p, true, true);
    p.activation = RN_MATMUL_GELU;
    check_floats(&gpu, p, false, false);
  }
  gpu_close(&gpu);
}

// The sums are the gradient of a bias.
Test(gpu_matmul_api, sums_of_b, .timeout = 60) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int transposed = 0; transposed < 2; ++transposed) {
    pair_t a = pair_make(&gpu, RN_FLOAT, M * K), b = pair_make(&gpu, RN_FLOAT, K * N);
    pair_t c = pair_make(&gpu, RN_FLOAT, M * N), sums = pair_make(&gpu, RN_FLOAT, N);
    rn_cuda_matmul_t p = {.dtype = RN_FLOAT,
                          .transpose_b = transposed,
                          .m = M,
                          .n = N,
                          .k = K,
                          .a = a.card.data,
                          .b = b.card.data,
                          .c = c.card.data,
                          .b_sums = sums.card.data};
    OK(rn_cuda_matmul(&gpu.ctx, &p));
    pair_fetch(&gpu, &sums);
    for (int64_t j = 0; j < N; ++j) {
      float sum = 0;
      for (int64_t d = 0; d < K; ++d)
        sum += RN_DATA(&b.host, float)[transposed ? j * K + d : d * N + j];
      cr_assert_eq(RN_DATA(&sums.host, float)[j], sum);
    }
    p.activation = RN_MATMUL_RELU;
    FAILS(rn_cuda_matmul(&gpu.ctx, &p), INTERNAL);
    pair_clear(&a), pair_clear(&b), pair_clear(&c), pair_clear(&sums);
  }
  gpu_close(&gpu);
}

Test(gpu_matmul_api, integers, .timeout = 60) {
  static const rn_dtype_t types[] = {RN_INT8, RN_INT32, RN_INT64};
  gpu_t gpu;
  gpu_open(&gpu);
  for (int t = 0; t < 3; ++t) {
    const rn_dtype_t out = types[t] == RN_INT8 ? RN_INT32 : types[t];
    pair_t a = pair_make(&gpu, types[t], M * K), b = pair_make(&gpu, types[t], K * N);
    pair_t c = pair_make(&gpu, out, M * N);
    rn_cuda_matmul_t p = {.dtype = types[t],
                          .m = M,
                          .n = N,
                          .k = K,
                          .a = a.card.data,
                          .b = b.card.data,
                          .c = c.card.data};
    OK(rn_cuda_matmul(&gpu.ctx, &p));
    pair_fetch(&gpu, &c);
    for (int64_t at = 0; at < M * N; ++at) {
      uint64_t sum = 0;  // wraps
      for (int64_t d = 0; d < K; ++d) {
        const int64_t x = at / N * K + d, y = d * N + at % N;
        if (types[t] == RN_INT8)
          sum += (uint64_t)(RN_DATA(&a.host, int8_t)[x] * RN_DATA(&b.host, int8_t)[y]);
        else if (types[t] == RN_INT32)
          sum += (uint64_t)RN_DATA(&a.host, int32_t)[x] * (uint64_t)RN_DATA(&b.host, int32_t)[y];
        else
          sum += (uint64_t)RN_DATA(&a.host, int64_t)[x] * (uint64_t)RN_DATA(&b.host, int64_t)[y];
      }
      if (out == RN_INT32)
        cr_assert_eq(RN_DATA(&c.host, uint32_t)[at], (uint32_t)sum);
      else
        cr_assert_eq(RN_DATA(&c.host, uint64_t)[at], sum);
    }
    pair_clear(&a), pair_clear(&b), pair_clear(&c);
  }
  gpu_close(&gpu);
}

// Choices of cuBLASLt, which ctest runs with an emulated one.

static bool has_cublaslt(void) { return getenv("RN_TEST_CUBLASLT") != NULL; }

static int count(const char* what) {
  return choices_ask("libcublasLt.so.13", "emulated_cublaslt_count", what);
}

// A product that is worth measuring.
static void multiply(void) {
  enum { SIZE = 104 };
  gpu_t gpu;
  gpu_open(&gpu);
  rn_env_t env = choices_env();
  gpu.step.env = &env;
  pair_t a = pair_make(&gpu, RN_FLOAT, SIZE * SIZE), b = pair_make(&gpu, RN_FLOAT, SIZE * SIZE);
  pair_t c = pair_make(&gpu, RN_FLOAT, SIZE * SIZE);
  rn_cuda_matmul_t p = {.dtype = RN_FLOAT,
                        .m = SIZE,
                        .n = SIZE,
                        .k = SIZE,
                        .a = a.card.data,
                        .b = b.card.data,
                        .c = c.card.data};
  OK(rn_cuda_matmul(&gpu.ctx, &p));
  pair_fetch(&gpu, &c);
  for (int64_t at = 0; at < SIZE * SIZE; at += 97) {
    double sum = 0;
    for (int64_t d = 0; d < SIZE; ++d)
      sum += (double)RN_DATA(&a.host, float)[at / SIZE * SIZE + d] *
             (double)RN_DATA(&b.host, float)[d * SIZE + at % SIZE];
    cr_assert_float_eq((double)RN_DATA(&c.host, float)[at], sum, 1e-3);
  }
  pair_clear(&a), pair_clear(&b), pair_clear(&c);
  gpu_close(&gpu);
}

Test(gpu_matmul_api, choices_are_remembered, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  if (!has_cublaslt()) return;
  choices_begin(folder, multiply);
  multiply();
  cr_expect_eq(count("heuristics"), 0);
  cr_expect_eq(count("refused"), 0, "nothing is measured");
  cr_expect_eq(count("last"), 2);
  choices_end(folder);
}

Test(gpu_matmul_api, choices_that_are_refused, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  if (!has_cublaslt()) return;
  choices_begin(folder, multiply);
  setenv("EMULATED_CUBLASLT_REFUSES", "1", 1);
  multiply();
  cr_expect_eq(count("heuristics"), 1);
  cr_expect_eq(count("last"), 0);
  choices_end(folder);
}

Test(gpu_matmul_api, choices_of_another_version, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  if (!has_cublaslt()) return;
  choices_begin(folder, multiply);
  setenv("EMULATED_CUBLASLT_VERSION", "130100", 1);
  multiply();
  cr_expect_eq(count("heuristics"), 1);
  cr_expect_eq(choices_lines, 0);
  choices_end(folder);
}

Test(gpu_matmul_api, spoiled_choices_are_made_again, .timeout = 60) {
  char folder[] = CHOICES_FOLDER;
  if (!has_cublaslt()) return;
  choices_begin(folder, multiply);
  cr_assert_eq(choices_spoil(folder), 1);
  multiply();
  cr_expect_eq(choices_lines, 1);
  cr_expect_eq(count("heuristics"), 1);
  choices_end(folder);
}
