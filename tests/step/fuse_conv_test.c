// Convolutions fused with the ops after them: the results of the unoptimized graph, for any shape
// and strides, and the same bits with any number of threads.
#include <float.h>
#include <math.h>

#include "device/device.h"
#include "graph_of_step.h"
#include "util.h"

typedef struct case_t {
  int64_t batch, height, width, in, out, filter, stride, dilation;
  const char* padding;
  bool is_depthwise;  // |out| is how many filters each channel has
  int pad;            // a Pad of so many before it
  const char* steps;  // b bias, s scale, a add a row of numbers, m minus, f a whole image, r relu,
                      // 6 relu6, n one number, v batch norm
} case_t;

static const case_t cases[] = {
    {1, 8, 8, 3, 16, 3, 1, 1, "SAME", false, 0, "b"},
    {1, 8, 8, 3, 16, 3, 1, 1, "SAME", false, 0, "br"},
    {2, 9, 7, 5, 33, 3, 2, 1, "VALID", false, 0, "bsar"},
    {1, 56, 56, 64, 64, 3, 1, 1, "SAME", false, 0, "bsar"},
    {1, 56, 56, 64, 64, 1, 1, 1, "SAME", false, 0, "bsafr"},
    {1, 14, 14, 256, 256, 3, 1, 1, "SAME", false, 0, "bsafr"},
    {3, 14, 14, 96, 48, 1, 2, 1, "SAME", false, 0, "saf"},
    {9, 7, 7, 32, 64, 3, 1, 1, "SAME", false, 0, "bsar"},
    {1, 30, 31, 4, 24, 5, 3, 1, "SAME", false, 0, "m6"},
    {1, 64, 64, 16, 16, 3, 1, 4, "SAME", false, 0, "bnr"},
    {1, 224, 224, 3, 64, 7, 2, 1, "VALID", false, 3, "bsar"},
    {2, 20, 20, 8, 8, 3, 1, 1, "VALID", false, 1, "f"},
    {1, 112, 112, 32, 1, 3, 1, 1, "SAME", true, 0, "sa6"},
    {2, 15, 15, 33, 2, 3, 2, 1, "SAME", true, 0, "bsar"},
    {1, 40, 40, 24, 1, 5, 1, 1, "SAME", true, 0, "n"},
    {1, 1, 1, 1, 1, 1, 1, 1, "SAME", false, 0, "bsafr6n"},
    {1, 33, 33, 17, 40, 3, 1, 1, "SAME", false, 0, "rsrsrsr"},
    {1, 56, 56, 64, 64, 3, 1, 1, "SAME", false, 0, "vr"},
    {2, 15, 13, 20, 33, 3, 2, 1, "SAME", false, 0, "bvfr"},
    {1, 28, 28, 32, 1, 3, 1, 1, "SAME", true, 0, "v6"},
    // Pieces whose filters are laid out in different ways.
    {1, 28, 28, 128, 512, 1, 1, 1, "SAME", false, 0, "bsafr"},
    {3, 17, 17, 192, 192, 3, 1, 1, "SAME", false, 0, "bsar"},
};
enum { CASES = sizeof cases / sizeof *cases };

static void fill(float* values, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values[i] = (float)((double)(seed >> 11) / 9007199254740992.0 - 0.45);
  }
}

static rn_edge_t numbers(rn_scope_t* s, const int64_t* dims, int rank, uint64_t seed) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  float* values = malloc((size_t)count * sizeof *values);
  fill(values, count, seed);
  rn_edge_t edge = rn_const(s, RN_FLOAT, dims, rank, values);
  free(values);
  return edge;
}

// What is fed: values that the planner does not know.
typedef struct fed_t {
  rn_scope_t* s;
  rn_dtype_t type;  // 0: float; others get numbers that bfloat16 has
  int count;
  rn_edge_t edges[8];
  rn_tensor_t values[8];
} fed_t;

static rn_edge_t feed(fed_t* fed, const int64_t dims[4], uint64_t seed) {
  int i = fed->count++;
  fed->edges[i] = rn_Placeholder(fed->s, RN_FLOAT, .shape = {true, dims, 4});
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){4, dims}, &fed->values[i]));
  fill(fed->values[i].data, fed->values[i].count, seed);
  return fed->edges[i];
}

static rn_edge_t rounded(const fed_t* fed, rn_edge_t value) {
  if (!fed->type) return value;
  value = rn_Cast(fed->s, value, RN_BFLOAT16);
  return fed->type == RN_BFLOAT16 ? value : rn_Cast(fed->s, value, fed->type);
}

static void feed_all(fed_t* fed, rt_step_t* step) {
  for (int i = 0; i < fed->count; ++i) rt_feed(step, fed->edges[i], &fed->values[i]);
}

static void fed_clear(fed_t* fed) {
  for (int i = 0; i < fed->count; ++i) rn_tensor_clear(&fed->values[i]);
}

static rn_edge_t follow(fed_t* fed, rn_edge_t y, const case_t* c, const int64_t dims[4]) {
  rn_scope_t* s = fed->s;
  int64_t channels = dims[3], broad[4] = {1, 1, 1, channels};
  for (const char* step = c->steps; *step; ++step) {
    uint64_t seed = (uint64_t)(step - c->steps) + 7;
    switch (*step) {
      case 'b':
        y = rn_BiasAdd(s, y, rounded(fed, numbers(s, &channels, 1, seed)));
        break;
      case 's':
        y = rn_Mul(s, rounded(fed, numbers(s, broad, 4, seed)), y);
        break;
      case 'a':
        y = rn_AddV2(s, y, rounded(fed, numbers(s, broad, 4, seed)));
        break;
      case 'm':
        y = rn_Sub(s, y, rounded(fed, numbers(s, &channels, 1, seed)));
        break;
      case 'v':
        y = rn_FusedBatchNormV3(
                s, y, numbers(s, &channels, 1, seed), numbers(s, &channels, 1, seed + 1),
                numbers(s, &channels, 1, seed + 2), rn_Abs(s, numbers(s, &channels, 1, seed + 3)),
                .is_training = RN_SET(false))
                .y;
        break;
      case 'n':
        y = rn_AddV2(s, y, rounded(fed, rn_const_float(s, -0.25f)));
        break;
      case 'f':
        y = rn_AddV2(s, rounded(fed, feed(fed, dims, seed)), y);
        break;
      case 'r':
        y = rn_Relu(s, y);
        break;
      default:
        y = rn_Relu6(s, y);
    }
  }
  return y;
}

static rn_edge_t build(fed_t* fed, const case_t* c, rn_edge_t filter,
                       const int64_t filter_dims[4]) {
  rn_scope_t* s = fed->s;
  const int64_t x_dims[4] = {c->batch, c->height, c->width, c->in};
  const int64_t strides[4] = {1, c->stride, c->stride, 1};
  const int64_t dilations[4] = {1, c->dilation, c->dilation, 1};
  rn_edge_t x = rounded(fed, feed(fed, x_dims, 1));
  int64_t height = c->height + 2 * c->pad, width = c->width + 2 * c->pad;
  if (c->pad) {
    const int32_t pads[8] = {0, 0, c->pad, c->pad, c->pad, c->pad, 0, 0};
    x = rn_Pad(s, x, rn_const(s, RN_INT32, (const int64_t[]){4, 2}, 2, pads));
  }
  rn_edge_t y = c->is_depthwise
                    ? rn_DepthwiseConv2dNative(s, x, filter, strides, 4, c->padding,
                                               .dilations = {dilations, 4})
                    : rn_Conv2D(s, x, filter, strides, 4, c->padding, .dilations = {dilations, 4});
  bool is_same = strcmp(c->padding, "SAME") == 0;
  int64_t reach = (c->filter - 1) * c->dilation + 1;
  int64_t dims[4] = {
      c->batch, is_same ? (height + c->stride - 1) / c->stride : (height - reach) / c->stride + 1,
      is_same ? (width + c->stride - 1) / c->stride : (width - reach) / c->stride + 1,
      c->is_depthwise ? filter_dims[2] * filter_dims[3] : filter_dims[3]};
  return follow(fed, y, c, dims);
}

static rn_tensor_t run(const case_t* c, bool optimize, bool is_variable, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  const int64_t dims[4] = {c->filter, c->filter, c->in, c->out};
  rn_edge_t value = numbers(rt.s, dims, 4, 3), filter = value;
  rn_node_t* init = NULL;
  if (is_variable) {
    rn_edge_t variable = rn_VarHandleOp(rt.s, RN_FLOAT, dims, 4);
    init = rn_AssignVariableOp(rt.s, variable, value);
    filter = rn_ReadVariableOp(rt.s, variable, RN_FLOAT);
  }
  fed_t fed = {.s = rt.s};
  rn_edge_t y = build(&fed, c, filter, dims);
  rn_tensor_t result = {0};
  if (init) {
    rt_step_t step = {0};
    rt_target(&step, init);
    OK(rt_run(&rt, &step));
  }
  for (int turn = 0; turn < 2; ++turn) {  // the second time the filter may be laid out already
    rn_tensor_clear(&result);
    rt_step_t step = {0};
    feed_all(&fed, &step);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    result = step.out[0];
  }
  fed_clear(&fed);
  rt_end(&rt);
  return result;
}

// Beside the graph as it was built: the library may add the products up in another order when
// something follows, so the last bits of that sum may differ. Beside other numbers of threads:
// none.
static void compare(int from, int to) {
  for (int i = from; i < to && i < CASES; ++i) {
    const case_t* c = &cases[i];
    rn_tensor_t wanted = run(c, false, false, 1), first = {0};
    double products = (double)(c->filter * c->filter * (c->is_depthwise ? 1 : c->in));
    double tolerance = 8 * FLT_EPSILON * sqrt(products);  // the numbers are around one
    for (int threads = 1; threads <= 8; threads *= 2) {
      for (int is_variable = 0; is_variable < 2; ++is_variable) {
        rn_tensor_t got = run(c, true, is_variable, threads);
        cr_assert_eq(got.count, wanted.count);
        for (int64_t k = 0; k < got.count; ++k) {
          float a = RN_DATA(&got, float)[k], b = RN_DATA(&wanted, float)[k];
          cr_assert(fabs((double)a - b) <= tolerance * (1 + fabs(b)),
                    "case %d, element %lld: %.9g, not %.9g", i, (long long)k, a, b);
        }
        if (!rn_tensor_is_set(&first)) {
          first = got;
          continue;
        }
        cr_assert(memcmp(got.data, first.data, rn_tensor_bytes(&first)) == 0,
                  "case %d differs with %d threads", i, threads);
        rn_tensor_clear(&got);
      }
    }
    rn_tensor_clear(&first);
    rn_tensor_clear(&wanted);
  }
}

RT_TEST(conv_then, small_ones) { compare(0, 9); }
RT_TEST(conv_then, large_ones) { compare(9, CASES - 2); }
RT_TEST(conv_then, ones_with_several_layouts) { compare(CASES - 2, CASES); }

// In bfloat16, beside the same numbers computed in float: one rounding, after the last step.
static rn_tensor_t run_rounded(const case_t* c, rn_dtype_t type, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  fed_t fed = {.s = rt.s, .type = type};
  const int64_t dims[4] = {c->filter, c->filter, c->in, c->out};
  rn_edge_t y = build(&fed, c, rounded(&fed, numbers(rt.s, dims, 4, 3)), dims);
  rt_step_t step = {0};
  feed_all(&fed, &step);
  rt_fetch(&step, type == RN_FLOAT ? y : rn_Cast(rt.s, y, RN_FLOAT));
  OK(rt_run(&rt, &step));
  fed_clear(&fed);
  rt_end(&rt);
  return step.out[0];
}

RT_TEST(conv_then, bfloat16_rounds_once) {
  static const case_t narrow[] = {
      {1, 8, 8, 3, 16, 3, 1, 1, "SAME", false, 0, "br"},
      {2, 9, 7, 5, 33, 3, 2, 1, "VALID", false, 0, "bsar"},
      {1, 28, 28, 64, 96, 1, 1, 1, "SAME", false, 0, "bsafr"},
      {3, 14, 14, 96, 48, 1, 2, 1, "SAME", false, 0, "fsfaf6"},
      {1, 12, 12, 160, 40, 3, 1, 1, "SAME", false, 0, "mnr"},
      {1, 20, 20, 8, 1, 3, 1, 1, "SAME", true, 0, "sa6"},
      {1, 10, 12, 20, 33, 3, 1, 1, "SAME", false, 0, "bvfr"},
      {2, 9, 9, 16, 1, 3, 2, 1, "SAME", true, 0, "v6"},
      {1, 1, 1, 8, 16, 1, 1, 1, "SAME", false, 0, "vfr"},
  };
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i) {
    rn_tensor_t wanted = run_rounded(&narrow[i], RN_FLOAT, false, 1);
    rn_tensor_t first = run_rounded(&narrow[i], RN_BFLOAT16, true, 1);
    for (int64_t k = 0; k < wanted.count; ++k) {
      double a = (double)RN_DATA(&first, float)[k], b = (double)RN_DATA(&wanted, float)[k];
      cr_assert(fabs(a - b) <= fabs(b) / 255 + 1e-4, "case %zu, element %lld: %.9g, not %.9g", i,
                (long long)k, a, b);
    }
    rn_tensor_t got = run_rounded(&narrow[i], RN_BFLOAT16, true, 3);
    cr_assert(memcmp(got.data, first.data, rn_tensor_bytes(&first)) == 0, "case %zu", i);
    rn_tensor_clear(&got);
    rn_tensor_clear(&first);
    rn_tensor_clear(&wanted);
  }
}

// A batch norm with given statistics goes into the convolution before it.
static void fuse_norm(rn_dtype_t type) {
  rt_t rt = rt_begin(1);
  const case_t c = {1, 8, 8, 3, 16, 3, 1, 1, "SAME", false, 0, "bvr"};
  const int64_t dims[4] = {3, 3, 3, 16};
  fed_t fed = {.s = rt.s, .type = type};
  rn_edge_t filter = rounded(&fed, numbers(rt.s, dims, 4, 3));
  rn_edge_t y = build(&fed, &c, filter, dims);
  rt_step_t step = {0};
  feed_all(&fed, &step);
  rt_fetch(&step, y);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  rn_device_t host = {.type = "CPU", .is_host = true};
  for (size_t n = 0; n < ir->nodes.count; ++n) ir->nodes.items[n].device = &host;
  OK(rn_pass_split_batch_norms(ir));
  OK(rn_pass_fuse_conv(ir));
  static const char* const gone[] = {"FusedBatchNormV3", "Conv2D", "Sub", "Mul", "AddV2", "Relu"};
  for (size_t i = 0; i < sizeof gone / sizeof *gone; ++i)
    cr_expect_eq(count_nodes(ir, gone[i]), 0, "%s", gone[i]);
  cr_expect_eq(count_nodes(ir, "_ConvThen"), 1);
  cr_expect_eq(count_nodes(ir, "Cast"), type ? 3 : 0);  // of the image, the filter and the bias
  rn_ir_destroy(ir);
  fed_clear(&fed);
  rt_end(&rt);
}

RT_TEST(conv_then, batch_norms_are_fused) {
  fuse_norm(0);
  fuse_norm(RN_BFLOAT16);
}

// A filter that is kept in blocks is laid out anew when the variable gets another value, whichever
// way it gets it.
RT_TEST(conv_then, a_new_filter_is_seen) {
  rt_t rt = rt_begin(2);
  const case_t c = {1, 12, 12, 8, 16, 3, 1, 1, "SAME", false, 0, "br"};
  const int64_t dims[4] = {3, 3, 8, 16};
  rn_scope_t* s = rt.s;
  rn_edge_t variable = rn_VarHandleOp(s, RN_FLOAT, dims, 4);
  rn_node_t* changes[] = {rn_AssignVariableOp(s, variable, numbers(s, dims, 4, 3)),
                          rn_AssignSubVariableOp(s, variable, numbers(s, dims, 4, 4)),
                          rn_AssignVariableOp(s, variable, numbers(s, dims, 4, 5)),
                          rn_AssignAddVariableOp(s, variable, numbers(s, dims, 4, 6))};
  rn_edge_t read = rn_ReadVariableOp(s, variable, RN_FLOAT);
  fed_t images = {.s = s}, again = {.s = s};
  rn_edge_t y = build(&images, &c, read, dims);
  rn_edge_t filter = rn_Placeholder(s, RN_FLOAT, .shape = {true, dims, 4});
  rn_edge_t wanted = build(&again, &c, filter, dims);
  for (int i = 0; i < 4; ++i) {
    rt_step_t change = {0}, look = {0}, fed = {0}, value = {0};
    rt_target(&change, changes[i]);
    OK(rt_run(&rt, &change));
    for (int turn = 0; turn < 2; ++turn) {
      look = (rt_step_t){0};
      feed_all(&images, &look);
      rt_fetch(&look, y);
      OK(rt_run(&rt, &look));
      if (turn == 0) rn_tensor_clear(&look.out[0]);
    }
    rt_fetch(&value, read);
    OK(rt_run(&rt, &value));
    feed_all(&again, &fed);
    rt_feed(&fed, filter, &value.out[0]);
    rt_fetch(&fed, wanted);
    OK(rt_run(&rt, &fed));
    cr_assert(memcmp(look.out[0].data, fed.out[0].data, rn_tensor_bytes(&fed.out[0])) == 0,
              "change %d", i);
    rn_tensor_clear(&look.out[0]);
    rn_tensor_clear(&fed.out[0]);
    rn_tensor_clear(&value.out[0]);
  }
  fed_clear(&images);
  fed_clear(&again);
  rt_end(&rt);
}

// What is no number stays none: a rectifier does not hide it.
RT_TEST(conv_then, strange_numbers) {
  static const float strange[] = {NAN, INFINITY, -INFINITY, -0.0f};
  static const char* const steps[] = {"r", "6", "br", "f6"};
  for (int k = 0; k < 16; ++k) {
    rn_tensor_t results[2];
    for (int optimize = 0; optimize < 2; ++optimize) {
      rt_t rt = rt_begin(1);
      rt.options.optimize = optimize;
      const case_t c = {1, 4, 4, 3, 16, 1, 1, 1, "SAME", false, 0, steps[k / 4]};
      const int64_t dims[4] = {1, 1, 3, 16};
      float values[48];
      for (int i = 0; i < 48; ++i) values[i] = i % 5 ? (float)(i - 20) : strange[k % 4];
      fed_t fed = {.s = rt.s};
      rn_edge_t y = build(&fed, &c, rn_const(rt.s, RN_FLOAT, dims, 4, values), dims);
      rt_step_t step = {0};
      feed_all(&fed, &step);
      rt_fetch(&step, y);
      OK(rt_run(&rt, &step));
      results[optimize] = step.out[0];
      fed_clear(&fed);
      rt_end(&rt);
    }
    for (int64_t i = 0; i < results[0].count; ++i) {
      float a = RN_DATA(&results[0], float)[i], b = RN_DATA(&results[1], float)[i];
      cr_assert((isnan(a) && isnan(b)) || a == b, "%s, %g: %g became %g", steps[k / 4],
                strange[k % 4], a, b);
    }
    rn_tensor_clear(&results[0]);
    rn_tensor_clear(&results[1]);
  }
}
