// Quantized layers computed with 8-bit integers: the results of the graph as it was built, bit by
// bit, at any number of threads.
//
// All scales are powers of two and all sums are below 2²⁴ steps, so that the floats of the original
// graph are exact too.
#include <math.h>

#include "graph_of_step.h"

typedef struct case_t {
  const char* kind;  // conv, depthwise, matmul, turned (transpose_b)
  int64_t batch, height, width, in, out, filter, stride, dilation;
  const char* padding;
  int pad;  // a Pad of so many before it
  const char*
      steps;  // b bias, v a vector added, f a fed tensor, l a quantized one, r relu, 6 relu6
} case_t;

static const case_t cases[] = {
    {"conv", 1, 8, 8, 3, 16, 3, 1, 1, "SAME", 0, "b"},
    {"conv", 2, 9, 7, 5, 33, 3, 2, 1, "VALID", 0, "br"},
    {"conv", 1, 14, 14, 64, 64, 1, 1, 1, "SAME", 0, "bfr"},
    {"conv", 3, 5, 5, 64, 40, 1, 1, 1, "SAME", 0, "blr"},
    {"conv", 2, 13, 13, 24, 17, 3, 2, 1, "VALID", 1, "vl6"},
    {"conv", 1, 12, 12, 8, 31, 3, 1, 2, "SAME", 0, "r"},
    {"conv", 1, 30, 31, 4, 24, 5, 3, 1, "SAME", 0, ""},
    {"conv", 2, 20, 20, 96, 130, 1, 2, 1, "SAME", 0, "l"},
    {"conv", 1, 7, 7, 160, 64, 1, 1, 1, "SAME", 0, "b6"},
    {"depthwise", 1, 14, 14, 32, 1, 3, 1, 1, "SAME", 0, "b6"},
    {"depthwise", 2, 9, 9, 41, 1, 3, 2, 1, "VALID", 1, "r"},
    {"depthwise", 1, 10, 9, 17, 1, 5, 1, 1, "SAME", 0, "bl"},
    {"matmul", 1, 1, 1, 70, 10, 1, 1, 1, "", 0, "b"},
    {"matmul", 37, 1, 1, 256, 48, 1, 1, 1, "", 0, "vfr"},
    {"matmul", 300, 1, 1, 65, 100, 1, 1, 1, "", 0, "bl6"},
    {"turned", 16, 1, 1, 129, 15, 1, 1, 1, "", 0, "b"},
    {"matmul", 15, 1, 1, 3, 1, 1, 1, 1, "", 0, ""},
};
enum { CASES = sizeof cases / sizeof *cases };

#define STEP 0x1p-6f  // between levels of activations
#define WEIGHT_STEP 0x1p-7f

static uint64_t next(uint64_t* seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

// Whole numbers of |step|s.
static void fill(float* values, int64_t count, float step, int most, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = (float)((int)(next(&seed) % (2 * (unsigned)most + 1)) - most) * step;
}

typedef struct fed_t {
  rn_scope_t* s;
  int count;
  rn_edge_t edges[4];
  rn_tensor_t values[4];
} fed_t;

static rn_edge_t feed(fed_t* fed, const int64_t* dims, int rank, uint64_t seed) {
  int i = fed->count++;
  fed->edges[i] = rn_Placeholder(fed->s, RN_FLOAT, .shape = {true, dims, rank});
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){rank, dims}, &fed->values[i]));
  fill(fed->values[i].data, fed->values[i].count, STEP / 2, 300, seed);  // beyond the range, too
  return fed->edges[i];
}

// Levels 0 to 255 with |zero| for zero.
static rn_edge_t quantize(rn_scope_t* s, rn_edge_t x, int zero) {
  return rn_FakeQuantWithMinMaxArgs(s, x, .min = RN_SET(-STEP * (float)zero),
                                    .max = RN_SET(STEP * (float)(255 - zero)));
}

static rn_edge_t weights(rn_scope_t* s, const int64_t* dims, int rank, int axis, uint64_t seed) {
  int64_t count = 1, channels = dims[axis];
  for (int i = 0; i < rank; ++i) count *= dims[i];
  int8_t* levels = malloc((size_t)count);
  float* most = malloc((size_t)channels * sizeof *most);
  float* least = malloc((size_t)channels * sizeof *least);
  for (int64_t i = 0; i < count; ++i) levels[i] = (int8_t)((int)(next(&seed) % 255) - 127);
  for (int64_t c = 0; c < channels; ++c) {
    most[c] = 127 * WEIGHT_STEP * (c % 3 ? 1 : 0.5f);
    least[c] = -most[c] * (c % 2 ? 1 : 0.5f);
  }
  rn_edge_t w = rn_Dequantize(s, rn_const(s, RN_QINT8, dims, rank, levels),
                              rn_const(s, RN_FLOAT, &channels, 1, least),
                              rn_const(s, RN_FLOAT, &channels, 1, most), .mode = "SCALED",
                              .narrow_range = true, .axis = RN_SET(axis));
  free(levels);
  free(most);
  free(least);
  return w;
}

static rn_edge_t vector(rn_scope_t* s, int64_t channels, uint64_t seed) {
  float* values = malloc((size_t)channels * sizeof *values);
  fill(values, channels, STEP * WEIGHT_STEP, 4000, seed);
  rn_edge_t edge = rn_const(s, RN_FLOAT, &channels, 1, values);
  free(values);
  return edge;
}

static rn_edge_t follow(fed_t* fed, rn_edge_t y, const case_t* c) {
  rn_scope_t* s = fed->s;
  const rn_output_t* output = &y.node->outputs[y.index];
  int64_t dims[4];
  int rank = output->shape.rank;
  memcpy(dims, output->shape.dims, (size_t)rank * sizeof *dims);
  for (const char* step = c->steps; *step; ++step) {
    uint64_t seed = (uint64_t)(step - c->steps) + 7;
    switch (*step) {
      case 'b':
        y = rn_BiasAdd(s, y, vector(s, dims[rank - 1], seed));
        break;
      case 'v':
        y = rn_AddV2(s, vector(s, dims[rank - 1], seed), y);
        break;
      case 'f':
        y = rn_AddV2(s, y, feed(fed, dims, rank, seed));
        break;
      case 'l': {
        // A layer reads it too, so that it is kept as levels.
        rn_edge_t levels = quantize(s, feed(fed, dims, rank, seed), 100);
        y = rn_AddV2(s, levels, y);
        break;
      }
      case 'r':
        y = rn_Relu(s, y);
        break;
      default:
        y = rn_Relu6(s, y);
    }
  }
  return y;
}

// The layer of a case, and another one that reads its quantized result. |*out_levels| is what that
// one reads.
static rn_edge_t build(fed_t* fed, const case_t* c, rn_edge_t* out_levels) {
  rn_scope_t* s = fed->s;
  bool is_matmul = !strcmp(c->kind, "matmul"), is_turned = !strcmp(c->kind, "turned");
  bool is_flat = is_matmul || is_turned, is_depthwise = !strcmp(c->kind, "depthwise");
  const int64_t strides[4] = {1, c->stride, c->stride, 1}, ones[4] = {1, 1, 1, 1};
  const int64_t window[4] = {1, 2, 2, 1};
  const int64_t dilations[4] = {1, c->dilation, c->dilation, 1};
  const int64_t image[4] = {c->batch, c->height, c->width, c->in}, rows[2] = {c->batch, c->in};
  const int64_t filter[4] = {c->filter, c->filter, c->in, c->out};
  const int64_t matrix[2] = {is_turned ? c->out : c->in, is_turned ? c->in : c->out};
  rn_edge_t x = quantize(s, is_flat ? feed(fed, rows, 2, 1) : feed(fed, image, 4, 1), 127), y;
  if (c->pad) {
    const int32_t pads[8] = {0, 0, c->pad, c->pad, c->pad, c->pad, 0, 0};
    x = rn_Pad(s, x, rn_const(s, RN_INT32, (const int64_t[]){4, 2}, 2, pads));
  }
  if (is_flat)
    y = rn_MatMul(s, x, weights(s, matrix, 2, is_turned ? 0 : 1, 5), .transpose_b = is_turned);
  else if (is_depthwise)
    y = rn_DepthwiseConv2dNative(s, x, weights(s, filter, 4, 2, 5), strides, 4, c->padding,
                                 .dilations = {dilations, 4});
  else
    y = rn_Conv2D(s, x, weights(s, filter, 4, 3, 5), strides, 4, c->padding,
                  .dilations = {dilations, 4});
  y = quantize(s, follow(fed, y, c), 30);
  *out_levels = y;
  const int64_t channels = y.node->outputs[0].shape.dims[is_flat ? 1 : 3];
  const int64_t last[4] = {1, 1, channels, 7}, last_matrix[2] = {channels, 7};
  if (is_flat) return rn_MatMul(s, y, weights(s, last_matrix, 2, 1, 6));
  y = rn_MaxPool(s, y, window, 4, ones, 4, "SAME");
  return rn_Conv2D(s, y, weights(s, last, 4, 3, 6), ones, 4, "SAME");
}

static rn_tensor_t run(const case_t* c, bool optimize, int threads, bool fetches_levels,
                       rn_tensor_t* out_levels) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  fed_t fed = {.s = rt.s};
  rn_edge_t levels, y = build(&fed, c, &levels);
  rn_tensor_t result = {0};
  for (int turn = 0; turn < 2; ++turn) {  // the second time the weights are packed
    rn_tensor_clear(&result);
    rn_tensor_clear(out_levels);
    rt_step_t step = {0};
    for (int i = 0; i < fed.count; ++i) rt_feed(&step, fed.edges[i], &fed.values[i]);
    rt_fetch(&step, y);
    if (fetches_levels) rt_fetch(&step, levels);
    OK(rt_run(&rt, &step));
    result = step.out[0];
    *out_levels = step.out[1];
  }
  for (int i = 0; i < fed.count; ++i) rn_tensor_clear(&fed.values[i]);
  rt_end(&rt);
  return result;
}

static void same(const rn_tensor_t* a, const rn_tensor_t* b, int index, const char* what) {
  cr_assert_eq(a->count, b->count);
  for (int64_t i = 0; i < a->count; ++i)
    cr_assert(RN_DATA(a, float)[i] == RN_DATA(b, float)[i],
              "case %d, %s, element %lld: %.9g, not %.9g", index, what, (long long)i,
              RN_DATA(a, float)[i], RN_DATA(b, float)[i]);
}

RT_TEST(fuse_levels, same_results) {
  for (int i = 0; i < CASES; ++i) {
    rn_tensor_t levels = {0}, wanted = run(&cases[i], false, 1, true, &levels);
    for (int threads = 1; threads <= 4; threads *= 2)
      for (int fetches = 0; fetches < 2; ++fetches) {
        rn_tensor_t got_levels = {0}, got = run(&cases[i], true, threads, fetches, &got_levels);
        same(&got, &wanted, i, "result");
        if (fetches) same(&got_levels, &levels, i, "levels");
        rn_tensor_clear(&got);
        rn_tensor_clear(&got_levels);
      }
    rn_tensor_clear(&wanted);
    rn_tensor_clear(&levels);
  }
}

// Both layers of every case are fused, with all that follows.
RT_TEST(fuse_levels, everything_is_fused) {
  static const char* const gone[] = {"Conv2D",     "DepthwiseConv2dNative",
                                     "MatMul",     "BiasAdd",
                                     "AddV2",      "Relu",
                                     "Relu6",      "Pad",
                                     "Dequantize", "_FromLevels"};
  for (int i = 0; i < CASES; ++i) {
    rt_t rt = rt_begin(1);
    fed_t fed = {.s = rt.s};
    rn_edge_t levels;
    rt_step_t step = {0};
    rt_fetch(&step, build(&fed, &cases[i], &levels));
    for (int k = 0; k < fed.count; ++k) rt_feed(&step, fed.edges[k], &fed.values[k]);
    rn_ir_t* ir = graph_of_step(&rt, &step);
    OK(rn_pass_fuse_levels(ir));
    cr_assert_eq(count_nodes(ir, "_LevelsThen"), 2, "case %d", i);
    bool is_alone = strchr(cases[i].steps, 'l') != NULL;  // a FakeQuant that no layer reads
    for (size_t k = 0; k < sizeof gone / sizeof *gone; ++k)
      cr_assert_eq(count_nodes(ir, gone[k]), 0, "case %d: %s", i, gone[k]);
    cr_assert_eq(count_nodes(ir, "FakeQuantWithMinMaxArgs"), is_alone, "case %d", i);
    rn_ir_destroy(ir);
    for (int k = 0; k < fed.count; ++k) rn_tensor_clear(&fed.values[k]);
    rt_end(&rt);
  }
}

static rn_edge_t two_layers(fed_t* fed, rn_edge_t* out_first) {
  rn_scope_t* s = fed->s;
  const int64_t dims[4] = {1, 6, 6, 16}, filter[4] = {1, 1, 16, 16}, ones[4] = {1, 1, 1, 1};
  rn_edge_t x = quantize(s, feed(fed, dims, 4, 1), 64);
  rn_edge_t y = rn_Relu(s, rn_Conv2D(s, x, weights(s, filter, 4, 3, 2), ones, 4, "SAME"));
  y = quantize(s, y, 0);
  rn_edge_t z = rn_Conv2D(s, y, weights(s, filter, 4, 3, 3), ones, 4, "SAME");
  *out_first = rn_Tanh(s, y);            // reads floats
  return rn_Relu(s, rn_AddV2(s, y, z));  // a shortcut that is levels
}

RT_TEST(fuse_levels, shortcuts_and_other_readers) {
  rn_tensor_t results[2][2];
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(2);
    rt.options.optimize = optimize;
    fed_t fed = {.s = rt.s};
    rn_edge_t first, y = two_layers(&fed, &first);
    rt_step_t step = {0};
    rt_feed(&step, fed.edges[0], &fed.values[0]);
    rt_fetch(&step, y);
    rt_fetch(&step, first);
    if (optimize) {
      rn_ir_t* ir = graph_of_step(&rt, &step);
      OK(rn_pass_fuse_levels(ir));
      cr_assert_eq(count_nodes(ir, "_LevelsThen"), 2);
      cr_assert_eq(count_nodes(ir, "_ToLevels"), 1);
      cr_assert_eq(count_nodes(ir, "_FromLevels"), 1);
      cr_assert_eq(count_nodes(ir, "AddV2"), 0);
      rn_ir_destroy(ir);
    }
    OK(rt_run(&rt, &step));
    results[optimize][0] = step.out[0];
    results[optimize][1] = step.out[1];
    rn_tensor_clear(&fed.values[0]);
    rt_end(&rt);
  }
  for (int i = 0; i < 2; ++i) {
    same(&results[1][i], &results[0][i], i, "output");
    rn_tensor_clear(&results[0][i]);
    rn_tensor_clear(&results[1][i]);
  }
}

// Zeros that are added to levels: only if zero is level 0.
RT_TEST(fuse_levels, pads_before_pools) {
  for (int zero = 0; zero < 6; zero += 5) {
    rn_tensor_t results[2];
    for (int optimize = 0; optimize < 2; ++optimize) {
      rt_t rt = rt_begin(2);
      rt.options.optimize = optimize;
      rn_scope_t* s = rt.s;
      fed_t fed = {.s = s};
      const int64_t dims[4] = {2, 6, 6, 16}, filter[4] = {1, 1, 16, 16}, ones[4] = {1, 1, 1, 1};
      const int64_t window[4] = {1, 3, 3, 1}, strides[4] = {1, 2, 2, 1}, shape[2] = {4, 2};
      const int32_t pads[8] = {0, 0, 1, 1, 1, 1, 0, 0};
      rn_edge_t x = rn_Pad(s, quantize(s, feed(&fed, dims, 4, 1), zero),
                           rn_const(s, RN_INT32, shape, 2, pads));
      x = rn_MaxPool(s, x, window, 4, strides, 4, "VALID");
      rn_edge_t y = rn_Conv2D(s, x, weights(s, filter, 4, 3, 2), ones, 4, "SAME");
      rt_step_t step = {0};
      rt_feed(&step, fed.edges[0], &fed.values[0]);
      rt_fetch(&step, y);
      rn_ir_t* ir = graph_of_step(&rt, &step);
      OK(rn_pass_fuse_levels(ir));
      cr_assert_eq(count_nodes(ir, "_LevelsThen"), zero == 0);
      rn_ir_destroy(ir);
      OK(rt_run(&rt, &step));
      results[optimize] = step.out[0];
      rn_tensor_clear(&fed.values[0]);
      rt_end(&rt);
    }
    same(&results[1], &results[0], zero, "output");
    rn_tensor_clear(&results[0]);
    rn_tensor_clear(&results[1]);
  }
}

// What does not fit stays as it is: weights with another axis or range, FakeQuants of other bits.
RT_TEST(fuse_levels, other_quantization_is_left_alone) {
  for (int k = 0; k < 5; ++k) {
    rt_t rt = rt_begin(1);
    fed_t fed = {.s = rt.s};
    const int64_t rows[2] = {4, 16}, matrix[2] = {16, 16}, channels = 16;
    rn_edge_t x = feed(&fed, rows, 2, 1);
    x = rn_FakeQuantWithMinMaxArgs(rt.s, x, .num_bits = RN_SET(k == 1 ? 4 : 8),
                                   .narrow_range = k == 2);
    rn_edge_t w = weights(rt.s, matrix, 2, k == 0 ? 0 : 1, 2);
    if (k == 3) w = rn_Identity(rt.s, rn_Relu(rt.s, w));
    if (k == 4) {
      int8_t levels[256] = {INT8_MIN};
      float least[16], most[16];
      for (int i = 0; i < 16; ++i) least[i] = -(most[i] = 1);
      w = rn_Dequantize(rt.s, rn_const(rt.s, RN_QINT8, matrix, 2, levels),
                        rn_const(rt.s, RN_FLOAT, &channels, 1, least),
                        rn_const(rt.s, RN_FLOAT, &channels, 1, most), .mode = "SCALED",
                        .narrow_range = true, .axis = RN_SET(1));
    }
    rt_step_t step = {0};
    rt_fetch(&step, rn_MatMul(rt.s, x, w));
    rt_feed(&step, fed.edges[0], &fed.values[0]);
    rn_ir_t* ir = graph_of_step(&rt, &step);
    OK(rn_pass_fuse_levels(ir));
    cr_assert_eq(count_nodes(ir, "MatMul"), 1, "%d", k);
    cr_assert_eq(count_nodes(ir, "_LevelsThen"), 0, "%d", k);
    rn_ir_destroy(ir);
    rn_tensor_clear(&fed.values[0]);
    rt_end(&rt);
  }
}
