// Convolutions and their gradients, computed in pieces: float, computed by tiles, by Winograd's
// algorithm or by oneDNN, is compared with double, computed by plain matmuls. Small integers make
// every sum exact, so the results must be equal, but for Winograd's, whose factors are no integers.
// With other numbers, any number of threads must give the same bits. bfloat16 must be the rounded
// result of doubles.
#include <math.h>

#include "base/pool.h"
#include "kernels/cpu/bf16.h"
#include "tensor/float16.h"
#include "util.h"

typedef struct case_t {
  int64_t batch, height, width, in, out, rows, columns, stride;
  const char* padding;
  int64_t dilation;
} case_t;

static const case_t cases[] = {
    {1, 28, 28, 128, 512, 1, 1, 1, "SAME", 1}, {3, 17, 17, 192, 192, 3, 3, 1, "SAME", 1},
    {3, 16, 16, 192, 192, 3, 3, 1, "SAME", 1}, {1, 56, 56, 64, 256, 1, 1, 1, "SAME", 1},
    {1, 14, 14, 256, 256, 3, 3, 2, "SAME", 1}, {17, 14, 14, 96, 100, 3, 3, 1, "VALID", 1},
    {5, 35, 35, 48, 64, 5, 5, 1, "SAME", 1},   {3, 17, 17, 160, 192, 7, 1, 1, "SAME", 1},
    {2, 40, 23, 8, 7, 4, 2, 3, "VALID", 1},    {3, 61, 61, 3, 5, 23, 23, 2, "SAME", 1},
    {1, 45, 45, 3, 64, 7, 7, 2, "SAME", 1},    {2, 15, 15, 20, 70, 1, 1, 2, "SAME", 1},
    {1, 9, 9, 5, 3, 1, 1, 1, "VALID", 1},      {1, 29, 31, 33, 40, 3, 3, 1, "SAME", 1},
    {2, 7, 5, 20, 16, 3, 3, 1, "VALID", 1},    {1, 15, 13, 200, 72, 3, 3, 1, "SAME", 1},
    {1, 3, 2, 64, 65, 3, 3, 1, "SAME", 1},     {1, 56, 56, 64, 64, 3, 3, 1, "SAME", 1},
    {1, 7, 7, 300, 20, 3, 3, 1, "SAME", 1},    {1, 29, 31, 48, 80, 3, 3, 1, "SAME", 1},
    {2, 7, 5, 32, 16, 3, 3, 1, "VALID", 1},    {1, 15, 13, 208, 80, 3, 3, 1, "SAME", 1},
    {2, 13, 14, 256, 240, 3, 3, 1, "SAME", 1}, {2, 19, 15, 7, 9, 3, 2, 1, "SAME", 2},
    {1, 31, 20, 5, 33, 2, 3, 2, "VALID", 3},   {2, 18, 18, 16, 8, 3, 3, 2, "SAME", 4},
    {2, 33, 27, 32, 48, 3, 3, 1, "SAME", 2},   {1, 40, 37, 16, 32, 3, 3, 1, "VALID", 3},
};
enum { CASES = sizeof cases / sizeof *cases };

static rn_edge_t numbers(rn_scope_t* s, rn_dtype_t dtype, const int64_t dims[4], uint64_t seed,
                         bool is_whole) {
  int64_t count = dims[0] * dims[1] * dims[2] * dims[3];
  char* values = malloc((size_t)count * rn_dtype_size(dtype));
  cr_assert(values);
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    double value = is_whole ? (double)((int64_t)(seed >> 33) % 7 - 3)
                            : (double)(seed >> 11) / 9007199254740992.0 - 0.45;
    if (dtype == RN_FLOAT)
      ((float*)values)[i] = (float)value;
    else if (dtype == RN_BFLOAT16)
      ((uint16_t*)values)[i] = rn_float_to_bfloat16((float)value);
    else
      ((double*)values)[i] = value;
  }
  rn_edge_t edge = rn_const(s, dtype, dims, 4, values);
  free(values);
  return edge;
}

// Runs |step| on a pool of |threads| threads, even if the machine has fewer processors: the pieces
// depend on that number.
static void run_on_threads(rt_t* rt, rt_step_t* step, int threads) {
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create_on(rt->allocator, threads, threads, &env.pool));
  rt->options.shares_pool = true;
  OK(rn_session_create(rt->graph, &rt->options, &env, rt->allocator, &rt->session));
  OK(rt_run(rt, step));
  rt_end(rt);
  rn_pool_destroy(env.pool);
}

static int64_t out_size(const case_t* c, int64_t in, int64_t elements) {
  int64_t stride = c->stride, filter = (elements - 1) * c->dilation + 1;
  bool is_same = strcmp(c->padding, "SAME") == 0;
  return is_same ? (in + stride - 1) / stride : (in - filter) / stride + 1;
}

// The result, the gradient of the image and that of the filter.
static void run(const case_t* c, rn_dtype_t dtype, bool is_whole, int threads, rn_tensor_t out[3]) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = false;  // all is constant
  rn_scope_t* s = rt.s;
  const int64_t x_dims[4] = {c->batch, c->height, c->width, c->in};
  const int64_t w_dims[4] = {c->rows, c->columns, c->in, c->out};
  const int64_t y_dims[4] = {c->batch, out_size(c, c->height, c->rows),
                             out_size(c, c->width, c->columns), c->out};
  const int64_t strides[4] = {1, c->stride, c->stride, 1};
  const int64_t dilations[4] = {1, c->dilation, c->dilation, 1};
  const int32_t x_sizes[4] = {(int32_t)x_dims[0], (int32_t)x_dims[1], (int32_t)x_dims[2],
                              (int32_t)x_dims[3]};
  const int32_t w_sizes[4] = {(int32_t)w_dims[0], (int32_t)w_dims[1], (int32_t)w_dims[2],
                              (int32_t)w_dims[3]};
  rn_edge_t x = numbers(s, dtype, x_dims, 1, is_whole), w = numbers(s, dtype, w_dims, 2, is_whole);
  rn_edge_t y = numbers(s, dtype, y_dims, 3, is_whole);
  const int64_t four = 4;
  rn_edge_t of_x = rn_const(s, RN_INT32, &four, 1, x_sizes);
  rn_edge_t of_w = rn_const(s, RN_INT32, &four, 1, w_sizes);
  rt_step_t step = {0};
  rt_fetch(&step, rn_Conv2D(s, x, w, strides, 4, c->padding, .dilations = {dilations, 4}));
  rt_fetch(&step, rn_Conv2DBackpropInput(s, of_x, w, y, strides, 4, c->padding,
                                         .dilations = {dilations, 4}));
  rt_fetch(&step, rn_Conv2DBackpropFilter(s, x, of_w, y, strides, 4, c->padding,
                                          .dilations = {dilations, 4}));
  run_on_threads(&rt, &step, threads);
  for (int i = 0; i < 3; ++i) out[i] = step.out[i];
}

static const char* const names[] = {"result", "gradient of the image", "gradient of the filter"};

static bool may_be_winograd(const case_t* c) {
  return c->rows == 3 && c->columns == 3 && c->stride == 1;
}

static double largest(const rn_tensor_t* values) {
  double most = 0;
  for (int64_t i = 0; i < values->count; ++i) most = fmax(most, fabs(RN_DATA(values, double)[i]));
  return most;
}

RT_TEST(conv_pieces, floats_are_as_doubles) {
  for (int i = 0; i < CASES; ++i) {
    rn_tensor_t floats[3] = {0}, doubles[3] = {0};
    run(&cases[i], RN_FLOAT, true, 2, floats);
    run(&cases[i], RN_DOUBLE, true, 2, doubles);
    for (int k = 0; k < 3; ++k) {
      cr_assert_eq(floats[k].count, doubles[k].count);
      double tolerance = k < 2 && may_be_winograd(&cases[i]) ? 1e-5 * largest(&doubles[k]) : 0;
      for (int64_t e = 0; e < floats[k].count; ++e) {
        double a = (double)RN_DATA(&floats[k], float)[e], b = RN_DATA(&doubles[k], double)[e];
        cr_assert(fabs(a - b) <= tolerance, "case %d, %s, element %lld: %g, not %g", i, names[k],
                  (long long)e, a, b);
      }
      rn_tensor_clear(&floats[k]);
      rn_tensor_clear(&doubles[k]);
    }
  }
}

RT_TEST(conv_pieces, bfloat16s_are_as_doubles) {
  bool through_float = !rn_bf16_way().multiply;
  for (int i = 0; i < CASES; ++i) {
    rn_tensor_t narrow[3] = {0}, doubles[3] = {0};
    run(&cases[i], RN_BFLOAT16, true, 2, narrow);
    run(&cases[i], RN_DOUBLE, true, 2, doubles);
    for (int k = 0; k < 3; ++k) {
      bool is_inexact = through_float && k < 2 && may_be_winograd(&cases[i]);
      double most = is_inexact ? largest(&doubles[k]) : 0;
      for (int64_t e = 0; e < narrow[k].count; ++e) {
        double wanted = RN_DATA(&doubles[k], double)[e];
        double b = (double)rn_bfloat16_to_float(rn_float_to_bfloat16((float)wanted));
        double a = (double)rn_bfloat16_to_float(RN_DATA(&narrow[k], uint16_t)[e]);
        double tolerance = is_inexact ? 1e-5 * most + fabs(b) / 128 : 0;
        cr_assert(fabs(a - b) <= tolerance, "case %d, %s, element %lld: %g, not %g", i, names[k],
                  (long long)e, a, b);
      }
      rn_tensor_clear(&narrow[k]);
      rn_tensor_clear(&doubles[k]);
    }
  }
}

static void compare_threads(rn_dtype_t dtype) {
  for (int i = 0; i < CASES; ++i) {
    rn_tensor_t first[3] = {0};
    run(&cases[i], dtype, false, 1, first);
    for (int threads = 2; threads <= 8; threads *= 2) {
      rn_tensor_t got[3] = {0};
      run(&cases[i], dtype, false, threads, got);
      for (int k = 0; k < 3; ++k) {
        cr_assert(memcmp(got[k].data, first[k].data, rn_tensor_bytes(&first[k])) == 0,
                  "case %d, %s differs with %d threads", i, names[k], threads);
        rn_tensor_clear(&got[k]);
      }
    }
    for (int k = 0; k < 3; ++k) rn_tensor_clear(&first[k]);
  }
}

RT_TEST(conv_pieces, floats_are_the_same_with_any_threads) { compare_threads(RN_FLOAT); }
RT_TEST(conv_pieces, bfloat16s_are_the_same_with_any_threads) { compare_threads(RN_BFLOAT16); }
RT_TEST(conv_pieces, doubles_are_the_same_with_any_threads) { compare_threads(RN_DOUBLE); }

// One filter per channel, or several: the registers of float against the plain loops of double.
static rn_tensor_t run_depthwise(const case_t* c, rn_dtype_t dtype, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = false;
  const int64_t x_dims[4] = {c->batch, c->height, c->width, c->in};
  const int64_t w_dims[4] = {c->rows, c->columns, c->in, c->out};
  const int64_t strides[4] = {1, c->stride, c->stride, 1};
  rt_step_t step = {0};
  rt_fetch(&step,
           rn_DepthwiseConv2dNative(rt.s, numbers(rt.s, dtype, x_dims, 1, true),
                                    numbers(rt.s, dtype, w_dims, 2, true), strides, 4, c->padding));
  run_on_threads(&rt, &step, threads);
  return step.out[0];
}

RT_TEST(conv_pieces, depthwise) {
  static const case_t depthwise[] = {
      {1, 112, 112, 32, 1, 3, 3, 1, "SAME", 1}, {2, 15, 13, 37, 1, 3, 3, 2, "SAME", 1},
      {1, 7, 7, 96, 1, 3, 3, 1, "VALID", 1},    {3, 9, 20, 20, 1, 5, 5, 1, "SAME", 1},
      {1, 2, 2, 16, 1, 3, 3, 1, "SAME", 1},     {2, 11, 1, 3, 1, 3, 1, 3, "SAME", 1},
      {1, 14, 14, 50, 1, 7, 7, 2, "SAME", 1},   {2, 15, 13, 7, 3, 3, 3, 1, "SAME", 1},
      {1, 30, 31, 1, 1, 3, 3, 1, "SAME", 1},    {1, 7, 7, 965, 1, 3, 3, 1, "SAME", 1},
      {1, 14, 14, 576, 1, 3, 3, 2, "SAME", 1},
  };
  for (size_t i = 0; i < sizeof depthwise / sizeof *depthwise; ++i) {
    rn_tensor_t doubles = run_depthwise(&depthwise[i], RN_DOUBLE, 1);
    for (int threads = 1; threads <= 8; threads *= 2) {
      rn_tensor_t floats = run_depthwise(&depthwise[i], RN_FLOAT, threads);
      cr_assert_eq(floats.count, doubles.count);
      for (int64_t e = 0; e < floats.count; ++e)
        cr_assert_eq((double)RN_DATA(&floats, float)[e], RN_DATA(&doubles, double)[e],
                     "case %zu, element %lld", i, (long long)e);
      rn_tensor_clear(&floats);
    }
    rn_tensor_clear(&doubles);
  }
}
