// Conv3D and its gradients against loops over the definition, and with several numbers of threads.
// Whole numbers make every sum exact, but for Winograd's algorithm, whose factors are no integers.
#include <math.h>

#include "util.h"

typedef struct volumes_t {
  int64_t x[5], w[5], y[5];
  int64_t stride[3];
  const char* padding;
} volumes_t;

static const volumes_t cases[] = {
    {{1, 5, 6, 7, 16}, {3, 3, 3, 16, 32}, {1, 5, 6, 7, 32}, {1, 1, 1}, "SAME"},
    {{2, 4, 9, 8, 32}, {3, 3, 3, 32, 16}, {2, 2, 7, 6, 16}, {1, 1, 1}, "VALID"},
    {{2, 5, 4, 6, 3}, {2, 3, 1, 3, 5}, {2, 3, 2, 3, 5}, {2, 2, 2}, "SAME"},
    {{1, 7, 3, 3, 2}, {3, 2, 2, 2, 3}, {1, 2, 2, 2, 3}, {3, 1, 1}, "VALID"},
    {{3, 4, 5, 5, 4}, {1, 3, 3, 4, 4}, {3, 4, 5, 5, 4}, {1, 1, 1}, "SAME"},
    {{2, 3, 4, 4, 20}, {1, 1, 1, 20, 8}, {2, 2, 2, 2, 8}, {2, 2, 2}, "SAME"},
    {{1, 2, 3, 3, 1}, {5, 3, 3, 1, 2}, {1, 2, 3, 3, 2}, {1, 1, 1}, "SAME"},
    {{2, 6, 48, 48, 24}, {3, 1, 1, 24, 2}, {2, 6, 48, 48, 2}, {1, 1, 1}, "SAME"},  // two stacks
};
enum { CASES = sizeof cases / sizeof *cases };

static int64_t product(const int64_t* dims) {
  return dims[0] * dims[1] * dims[2] * dims[3] * dims[4];
}

static double* numbers(const int64_t* dims, uint64_t seed) {
  double* out = malloc((size_t)product(dims) * sizeof *out);
  cr_assert(out);
  for (int64_t i = 0; i < product(dims); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out[i] = (double)((int64_t)(seed >> 33) % 7 - 3);
  }
  return out;
}

static rn_edge_t constant(rn_scope_t* s, rn_dtype_t dtype, const int64_t* dims, uint64_t seed) {
  double* values = numbers(dims, seed);
  float* narrow = (float*)values;
  for (int64_t i = 0; dtype == RN_FLOAT && i < product(dims); ++i) narrow[i] = (float)values[i];
  rn_edge_t edge = rn_const(s, dtype, dims, 5, values);
  free(values);
  return edge;
}

static rn_edge_t sizes(rn_scope_t* s, const int64_t* dims) {
  int32_t values[5];
  const int64_t five = 5;
  for (int i = 0; i < 5; ++i) values[i] = (int32_t)dims[i];
  return rn_const(s, RN_INT32, &five, 1, values);
}

// The result, the gradient of the volume and that of the filter.
static void run(const volumes_t* c, rn_dtype_t dtype, int threads, rn_tensor_t out[3]) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = false;  // all is constant
  rn_scope_t* s = rt.s;
  const int64_t strides[5] = {1, c->stride[0], c->stride[1], c->stride[2], 1};
  rn_edge_t x = constant(s, dtype, c->x, 1), w = constant(s, dtype, c->w, 2);
  rn_edge_t y = constant(s, dtype, c->y, 3);
  rt_step_t step = {0};
  rt_fetch(&step, rn_Conv3D(s, x, w, strides, 5, c->padding));
  rt_fetch(&step, rn_Conv3DBackpropInputV2(s, sizes(s, c->x), w, y, strides, 5, c->padding));
  rt_fetch(&step, rn_Conv3DBackpropFilterV2(s, x, sizes(s, c->w), y, strides, 5, c->padding));
  OK(rt_run(&rt, &step));
  for (int i = 0; i < 3; ++i) out[i] = step.out[i];
  rt_end(&rt);
}

static int64_t pads_before(const volumes_t* c, int axis) {
  if (strcmp(c->padding, "VALID") == 0) return 0;
  int64_t pads = (c->y[axis + 1] - 1) * c->stride[axis] + c->w[axis] - c->x[axis + 1];
  return pads < 0 ? 0 : pads / 2;
}

// Adds what one pixel of x, one position of the filter and one pixel of y have to do with each
// other.
static void add_pair(const volumes_t* c, double* const in[3], int64_t x, int64_t w, int64_t y,
                     double* const out[3]) {
  for (int64_t i = 0; i < c->w[3]; ++i)
    for (int64_t o = 0; o < c->w[4]; ++o) {
      const double a = in[0][x * c->w[3] + i], b = in[1][(w * c->w[3] + i) * c->w[4] + o];
      const double d = in[2][y * c->w[4] + o];
      out[0][y * c->w[4] + o] += a * b;
      out[1][x * c->w[3] + i] += b * d;
      out[2][(w * c->w[3] + i) * c->w[4] + o] += a * d;
    }
}

static void define(const volumes_t* c, double* out[3]) {
  double* in[3] = {numbers(c->x, 1), numbers(c->w, 2), numbers(c->y, 3)};
  const int64_t* dims[3] = {c->y, c->x, c->w};
  for (int i = 0; i < 3; ++i) out[i] = calloc((size_t)product(dims[i]), sizeof *out[i]);
  const int64_t pixels = c->y[0] * c->y[1] * c->y[2] * c->y[3];
  const int64_t positions = c->w[0] * c->w[1] * c->w[2];
  for (int64_t y = 0; y < pixels; ++y)
    for (int64_t w = 0; w < positions; ++w) {
      const int64_t at[3] = {y / (c->y[2] * c->y[3]) % c->y[1], y / c->y[3] % c->y[2], y % c->y[3]};
      const int64_t tap[3] = {w / (c->w[1] * c->w[2]), w / c->w[2] % c->w[1], w % c->w[2]};
      int64_t x = y / (c->y[1] * c->y[2] * c->y[3]);
      bool is_inside = true;
      for (int i = 0; i < 3; ++i) {
        const int64_t place = at[i] * c->stride[i] - pads_before(c, i) + tap[i];
        is_inside = is_inside && place >= 0 && place < c->x[i + 1];
        x = x * c->x[i + 1] + place;
      }
      if (is_inside) add_pair(c, in, x, w, y, out);
    }
  for (int i = 0; i < 3; ++i) free(in[i]);
}

static const char* const names[] = {"result", "gradient of the volume", "gradient of the filter"};

static void compare(const volumes_t* c, int number, rn_dtype_t dtype, double* const wanted[3]) {
  rn_tensor_t got[3] = {0}, more[3] = {0};
  run(c, dtype, 1, got);
  run(c, dtype, 4, more);
  for (int k = 0; k < 3; ++k) {
    const rn_tensor_t* values = &got[k];
    double most = 0;
    for (int64_t e = 0; e < values->count; ++e) most = fmax(most, fabs(wanted[k][e]));
    const double tolerance = dtype == RN_FLOAT && k < 2 ? 1e-5 * most : 0;
    for (int64_t e = 0; e < values->count; ++e) {
      const double value =
          dtype == RN_FLOAT ? (double)RN_DATA(values, float)[e] : RN_DATA(values, double)[e];
      cr_assert(fabs(value - wanted[k][e]) <= tolerance, "case %d, %s, element %lld: %g, not %g",
                number, names[k], (long long)e, value, wanted[k][e]);
    }
    cr_assert(memcmp(values->data, more[k].data, rn_tensor_bytes(values)) == 0,
              "case %d, %s differs with 4 threads", number, names[k]);
    rn_tensor_clear(&got[k]);
    rn_tensor_clear(&more[k]);
  }
}

RT_TEST(conv_volumes, are_as_defined_with_any_threads) {
  for (int i = 0; i < CASES; ++i) {
    double* wanted[3];
    define(&cases[i], wanted);
    compare(&cases[i], i, RN_FLOAT, wanted);
    compare(&cases[i], i, RN_DOUBLE, wanted);
    for (int k = 0; k < 3; ++k) free(wanted[k]);
  }
}
