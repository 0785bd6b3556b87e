// Fused nodes on a GPU give what the nodes give on the CPU.
#include <math.h>

#include "session/passes.h"
#include "util.h"

#define COUNT (2 * 9 * 7 * 3)

// Runs |fetch| with |x| fed and returns the values, of which there are at most |room|.
static int64_t run_on(rt_t* rt, bool gpu, rn_edge_t x, rn_edge_t fetch, float* out, int64_t room) {
  int64_t dims[4] = {2, 9, 7, 3};
  rn_session_options_t options = rt->options;
  options.gpu.max_count = gpu ? -1 : 0;
  rn_session_t* session = NULL;
  OK(rn_session_create(rt->graph, &options, rn_env_system(), rt->allocator, &session));
  rn_tensor_t value = {0};
  OK(rn_tensor_create(rt->allocator, RN_FLOAT, (rn_shape_t){4, dims}, &value));
  for (int i = 0; i < COUNT; ++i) RN_DATA(&value, float)[i] = sinf((float)i * 1.7f);
  int64_t count = 0;
  for (int turn = 0; turn < 4; ++turn) {  // plain, recorded, replayed
    rt_step_t step = {0};
    rt_feed(&step, x, &value);
    rt_fetch(&step, fetch);
    OK(rt_run_in(session, &step));
    count = step.out[0].count;
    cr_assert_leq(count, room);
    memcpy(out, step.out[0].data, (size_t)count * sizeof *out);
    rt_clear(&step);
  }
  rn_tensor_clear(&value);
  rn_session_destroy(session);
  return count;
}

static void compare(rt_t* rt, rn_edge_t x, rn_edge_t fetch) {
  static float cpu[1 << 14], gpu[1 << 14];
  int64_t count = run_on(rt, false, x, fetch, cpu, 1 << 14);
  cr_assert_eq(run_on(rt, true, x, fetch, gpu, 1 << 14), count);
  for (int64_t i = 0; i < count; ++i)
    cr_assert_float_eq(gpu[i], cpu[i], 2e-3f + 2e-3f * fabsf(cpu[i]), "element %lld: %g and %g",
                       (long long)i, gpu[i], cpu[i]);
}

static rn_edge_t floats(rt_t* rt, const int64_t* dims, int rank, float scale) {
  float values[4096];
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= dims[d];
  for (int64_t i = 0; i < count; ++i) values[i] = scale * cosf((float)i * 0.9f);
  return rn_const(rt->s, RN_FLOAT, dims, rank, values);
}

RT_TEST(fused, convolutions_with_what_follows) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
  int64_t filter[4] = {3, 3, 3, 8}, second[4] = {3, 3, 8, 8}, bias[1] = {8};
  int64_t strides[4] = {1, 1, 1, 1};
  rn_edge_t a = rn_Conv2D(rt.s, x, floats(&rt, filter, 4, 0.5f), strides, 4, "SAME");
  a = rn_Relu(rt.s, rn_BiasAdd(rt.s, a, floats(&rt, bias, 1, 1)));
  rn_edge_t b = rn_Conv2D(rt.s, a, floats(&rt, second, 4, 0.3f), strides, 4, "SAME");
  b = rn_Mul(rt.s, rn_BiasAdd(rt.s, b, floats(&rt, bias, 1, 2)), floats(&rt, bias, 1, 3));
  compare(&rt, x, a);
  compare(&rt, x, rn_Relu6(rt.s, b));
  compare(
      &rt, x,
      rn_Relu(
          rt.s,
          rn_AddV2(rt.s, rn_Conv2D(rt.s, a, floats(&rt, second, 4, 0.3f), strides, 4, "SAME"), a)));
  rt_end(&rt);
}

typedef struct block_t {
  rn_edge_t y, dx, dscale, doffset, bias, mean;
} block_t;

// A batch norm in training, a ReLU and, if |shortcut| is a node, an addition before it; and their
// gradients for |dy|. The channels' sums of the ReLU's gradient are |bias|.
static block_t block(rt_t* rt, rn_edge_t x, rn_edge_t shortcut, rn_edge_t dy, int type) {
  int64_t channels[1] = {3};
  rn_edge_t scale = floats(rt, channels, 1, 1.5f), offset = floats(rt, channels, 1, 0.4f);
  rn_edge_t none = rn_const(rt->s, RN_FLOAT, (int64_t[]){0}, 1, (float[]){0});
  x = rn_Cast(rt->s, x, type), dy = rn_Cast(rt->s, dy, type);
  rn_FusedBatchNormV3_out_t norm =
      rn_FusedBatchNormV3(rt->s, x, scale, offset, none, none, .epsilon = RN_SET(0.01f));
  rn_edge_t y = norm.y;
  if (shortcut.node) y = rn_AddV2(rt->s, y, rn_Cast(rt->s, shortcut, type));
  y = rn_Relu(rt->s, y);
  rn_edge_t grad = rn_ReluGrad(rt->s, dy, y);
  rn_FusedBatchNormGradV3_out_t back =
      rn_FusedBatchNormGradV3(rt->s, grad, x, scale, norm.reserve_space_1, norm.reserve_space_2,
                              norm.reserve_space_3, .epsilon = RN_SET(0.01f));
  return (block_t){.y = rn_Cast(rt->s, y, RN_FLOAT),
                   .dx = rn_Cast(rt->s, back.x_backprop, RN_FLOAT),
                   .dscale = back.scale_backprop,
                   .doffset = back.offset_backprop,
                   .bias = rn_Cast(rt->s, rn_BiasAddGrad(rt->s, grad), RN_FLOAT),
                   .mean = norm.batch_mean};
}

// All results are fetched in one step, so that all of them are in the graph that is fused.
static void compare_all(rt_t* rt, rn_edge_t x, const block_t* b) {
  int64_t flat[1] = {-1};
  rn_edge_t shape = rn_const(rt->s, RN_INT32, (int64_t[]){1}, 1, (int32_t[]){(int32_t)flat[0]});
  rn_edge_t parts[] = {b->y, b->dx, b->dscale, b->doffset, b->bias, b->mean};
  for (int i = 0; i < 6; ++i) parts[i] = rn_Reshape(rt->s, parts[i], shape);
  compare(rt, x, rn_ConcatV2(rt->s, parts, 6, rn_const_int32(rt->s, 0)));
}

RT_TEST(fused, batch_norms_with_what_is_around_them) {
  int64_t dims[4] = {2, 9, 7, 3};
  static const int types[] = {RN_FLOAT, RN_HALF};
  for (int k = 0; k < 4; ++k) {
    rt_t rt = rt_begin(1);
    rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
    rn_edge_t other = rn_Sin(rt.s, rn_Square(rt.s, x)), none = {0};
    rn_edge_t dy = rn_Mul(rt.s, floats(&rt, dims, 4, 0.7f), rn_Cos(rt.s, x));
    block_t b = block(&rt, x, k < 2 ? none : other, dy, types[k % 2]);
    compare_all(&rt, x, &b);
    rt_end(&rt);
  }
}

// A layer norm over the last axis, its gradient by hand, and a softmax spelled out.
RT_TEST(fused, sums_over_rows_with_what_needs_them) {
  rt_t rt = rt_begin(1);
  int64_t dims[4] = {2, 9, 7, 3};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
  rn_edge_t last = rn_const_int32(rt.s, -1), third = rn_const_float(rt.s, 1.0f / 3);
  rn_edge_t gamma = floats(&rt, dims + 3, 1, 1.5f), dy = floats(&rt, dims, 4, 0.7f);
  rn_edge_t mean = rn_Mean(rt.s, x, last, .keep_dims = true);
  rn_edge_t variance = rn_Mean(rt.s, rn_SquaredDifference(rt.s, x, rn_StopGradient(rt.s, mean)),
                               last, .keep_dims = true);
  rn_edge_t inverse = rn_Rsqrt(rt.s, rn_AddV2(rt.s, variance, rn_const_float(rt.s, 0.01f)));
  rn_edge_t hat = rn_Mul(rt.s, rn_Sub(rt.s, x, mean), inverse), y = rn_Mul(rt.s, hat, gamma);
  rn_edge_t g = rn_Mul(rt.s, dy, gamma);
  rn_edge_t a = rn_Mul(rt.s, rn_Sum(rt.s, g, last, .keep_dims = true), third);
  rn_edge_t b = rn_Mul(rt.s, rn_Sum(rt.s, rn_Mul(rt.s, g, hat), last, .keep_dims = true), third);
  rn_edge_t dx = rn_Mul(rt.s, inverse, rn_Sub(rt.s, rn_Sub(rt.s, g, a), rn_Mul(rt.s, hat, b)));
  rn_edge_t e = rn_Exp(rt.s, rn_Sub(rt.s, y, rn_Max(rt.s, y, last, .keep_dims = true)));
  rn_edge_t soft = rn_RealDiv(rt.s, e, rn_Sum(rt.s, e, last, .keep_dims = true));
  rn_edge_t dgamma = rn_BiasAddGrad(rt.s, rn_Mul(rt.s, dy, hat));
  rn_edge_t parts[] = {y, dx, soft, dgamma, mean, inverse};
  rn_edge_t shape = rn_const(rt.s, RN_INT32, (int64_t[]){1}, 1, (int32_t[]){-1});
  for (int i = 0; i < 6; ++i) {
    compare(&rt, x, parts[i]);  // alone
    parts[i] = rn_Reshape(rt.s, parts[i], shape);
  }
  compare(&rt, x, rn_ConcatV2(rt.s, parts, 6, rn_const_int32(rt.s, 0)));
  rt_end(&rt);
}

static void count_removed(void* self, const rn_pass_report_t* report) {
  if (strcmp(report->pass->name, "fuse_loops") == 0) *(int*)self += report->removed;
}

// A value that is read as a float and in 16 bits is written by one loop in both types.
RT_TEST(fused, loops_give_a_value_in_two_types) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  int removed = 0;
  rn_pass_watch_t watch = {&removed, count_removed};
  int64_t row[1] = {3};
  rn_edge_t axis = rn_const_int32_list(s, (int32_t[]){1}, 1);
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
  rn_edge_t a = rn_AddV2(s, rn_Mul(s, x, floats(&rt, row, 1, 2)), rn_const_float(s, 0.5f));
  rn_edge_t half = rn_ReverseV2(s, rn_Cast(s, a, RN_HALF), axis);
  rn_edge_t y = rn_Sub(s, rn_Cast(s, half, RN_FLOAT), rn_ReverseV2(s, a, axis));
  compare(&rt, x, y);
  compare(&rt, x, rn_Mul(s, y, rn_const_float(s, 1000)));  // what rounding left
  rt.options.watch = &watch;
  float out[COUNT];
  run_on(&rt, true, x, y, out, COUNT);
  cr_assert_eq(removed, 3, "%d nodes were removed", removed);  // Mul, and both Casts
  rt_end(&rt);
}

static void count_split(void* self, const rn_pass_report_t* report) {
  if (strcmp(report->pass->name, "split_losses") == 0) *(int*)self += report->removed;
}

// Long rows of logits, as floats and cast from 16 bits: losses and their gradients.
RT_TEST(fused, cross_entropies_with_what_follows) {
  for (int kind = 0; kind < 3; ++kind) {
    rt_t rt = rt_begin(1);
    rn_scope_t* s = rt.s;
    const int types[] = {RN_FLOAT, RN_HALF, RN_BFLOAT16};
    int64_t weights[2] = {63, 1500}, six[2] = {6, 1};
    int64_t wide[6] = {0, 3, 1499, 700, 3, 64};
    int32_t narrow[6] = {0, 3, 1499, 700, 3, 64}, split = 0;
    static float values[63 * 1500];
    for (int i = 0; i < 63 * 1500; ++i) values[i] = cosf((float)i * 0.9f);
    rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
    rn_edge_t logits = rn_Reshape(s, x, rn_const_int32_list(s, (int32_t[]){6, 63}, 2));
    logits = rn_MatMul(s, logits, rn_const(s, RN_FLOAT, weights, 2, values));
    if (kind) logits = rn_Cast(s, rn_Cast(s, logits, types[kind]), RN_FLOAT);
    rn_edge_t labels =
        kind ? rn_const(s, RN_INT64, six, 1, wide) : rn_const(s, RN_INT32, six, 1, narrow);
    rn_SparseSoftmaxCrossEntropyWithLogits_out_t entropy =
        rn_SparseSoftmaxCrossEntropyWithLogits(s, logits, labels);
    rn_edge_t gradient = rn_Mul(s, entropy.backprop, floats(&rt, six, 2, 3));
    if (kind) gradient = rn_Cast(s, rn_Cast(s, gradient, types[kind]), RN_FLOAT);
    rn_pass_watch_t watch = {&split, count_split};
    compare(&rt, x, entropy.loss);
    rt.options.watch = &watch;
    compare(&rt, x, gradient);
    cr_assert(split > 0);
    rt_end(&rt);
  }
}

// A label that is no class gives NaN, as on stock's GPUs, and changes no other row.
RT_TEST(fused, cross_entropies_of_no_class) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  int64_t two[1] = {2}, labels[2] = {-1, 1200};
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
  rn_edge_t row = rn_Reshape(s, x, rn_const_int32_list(s, (int32_t[]){2, 189}, 2));
  rn_edge_t logits = rn_Tile(s, row, rn_const_int32_list(s, (int32_t[]){1, 7}, 2));
  rn_SparseSoftmaxCrossEntropyWithLogits_out_t entropy =
      rn_SparseSoftmaxCrossEntropyWithLogits(s, logits, rn_const(s, RN_INT64, two, 1, labels));
  float out[2 * 1323];
  // Logits that are masked away, at the beginning of a row too, count for nothing.
  rn_edge_t masked = rn_Log(s, rn_Relu(s, logits));
  compare(&rt, x,
          rn_SparseSoftmaxCrossEntropyWithLogits(
              s, masked, rn_const(s, RN_INT64, two, 1, (int64_t[]){1, 1201}))
              .loss);
  run_on(&rt, true, x, entropy.loss, out, 2);
  cr_assert(isnan(out[0]) && out[1] > 0);
  run_on(&rt, true, x, entropy.backprop, out, 2 * 1323);
  float sum = 0;
  for (int i = 0; i < 1323; ++i) {
    cr_assert(isnan(out[i]));
    sum += out[1323 + i];
  }
  cr_assert_float_eq(sum, 0, 1e-4f);
  cr_assert_lt(out[1323 + 1200], 0);
  rt_end(&rt);
}

static void count_scaled(void* self, const rn_pass_report_t* report) {
  if (strcmp(report->pass->name, "view_parts") == 0 ||
      strcmp(report->pass->name, "scale_matmuls") == 0)
    *(int*)self += report->removed;
}

// Products of parts of a tensor, multiplied and divided by numbers; a part is fetched, too.
// Results take the places of values that die in the loop, but not of those that a later pass reads
// again.
static void overwrite(int64_t rows, int64_t row, bool reads_again) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
  rn_edge_t some = rn_Slice(s, rn_Reshape(s, x, rn_const_int32_list(s, (int32_t[]){-1, 6}, 2)),
                            rn_const_int32_list(s, (int32_t[]){0, 0}, 2),
                            rn_const_int32_list(s, (int32_t[]){(int32_t)rows, 6}, 2));
  float weights[6 * 512];
  cr_assert_leq(row, 512);
  for (int64_t i = 0; i < 6 * row; ++i) weights[i] = cosf((float)i);
  rn_edge_t w = rn_const(s, RN_FLOAT, (int64_t[]){6, row}, 2, weights);
  rn_edge_t y = rn_MatMul(s, some, w), z = y;  // dies in the loop
  rn_edge_t first = rn_Mul(s, y, rn_Tanh(s, y)), last;
  if (reads_again) {
    rn_edge_t top = rn_Max(s, y, rn_const_int32_list(s, (int32_t[]){1}, 1), .keep_dims = true);
    rn_edge_t e = rn_Exp(s, rn_Sub(s, y, top));
    rn_edge_t sum = rn_Sum(s, e, rn_const_int32_list(s, (int32_t[]){1}, 1), .keep_dims = true);
    last = rn_RealDiv(s, rn_Mul(s, e, first), sum);
    z = rn_Mul(s, first, first);
  } else {
    last = rn_BiasAddGrad(s, first);
    z = first;
  }
  // What reads the results is no part of the loop.
  rn_edge_t square = rn_MatMul(s, z, z, .transpose_b = true);
  rn_edge_t flat = rn_const_int32_list(s, (int32_t[]){-1}, 1);
  rn_edge_t parts[] = {rn_Reshape(s, square, flat), rn_Reshape(s, last, flat)};
  compare(&rt, x, rn_ConcatV2(s, parts, 2, rn_const_int32(s, 0)));
  rt_end(&rt);
}

RT_TEST(fused, results_in_the_places_of_operands) {
  static const int64_t sizes[][2] = {{8, 512}, {6, 6}, {60, 6}, {3, 40}};
  for (int i = 0; i < 4; ++i) {
    overwrite(sizes[i][0], sizes[i][1], false);
    overwrite(sizes[i][0], sizes[i][1], true);
  }
}

RT_TEST(fused, scaled_products_of_parts) {
  static const int types[] = {RN_FLOAT, RN_HALF};
  for (int t = 0; t < 2; ++t) {
    rt_t rt = rt_begin(1);
    rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = RN_SHAPE(2, 9, 7, 3));
    rn_edge_t y = rn_Cast(
        rt.s, rn_Reshape(rt.s, x, rn_const_int32_list(rt.s, (int32_t[]){3, 2, 9, 7}, 4)), types[t]);
    rn_edges_t parts = rn_Unpack(rt.s, y, 3);
    rn_edge_t a = rn_edge_at(parts, 0), b = rn_edge_at(parts, 1), c = rn_edge_at(parts, 2);
    rn_edge_t ab = rn_BatchMatMulV2(rt.s, a, b, .adj_y = true);
    rn_edge_t scaled = rn_Mul(rt.s, ab, rn_Cast(rt.s, rn_const_float(rt.s, 0.3f), types[t]));
    rn_edge_t abc = rn_BatchMatMulV2(rt.s, scaled, c);
    rn_edge_t quotient = rn_RealDiv(rt.s, abc, rn_Cast(rt.s, rn_const_float(rt.s, 4), types[t]));
    compare(&rt, x, rn_Cast(rt.s, scaled, RN_FLOAT));
    compare(&rt, x, rn_Cast(rt.s, quotient, RN_FLOAT));
    compare(&rt, x, rn_Cast(rt.s, c, RN_FLOAT));
    rn_edge_t sum = rn_AddV2(rt.s, rn_Neg(rt.s, a), rn_Mul(rt.s, b, rn_Sin(rt.s, c)));
    compare(&rt, x, rn_Cast(rt.s, sum, RN_FLOAT));
    int removed = 0;
    rn_pass_watch_t watch = {&removed, count_scaled};
    float out[COUNT];
    rt.options.watch = &watch;
    run_on(&rt, true, x, rn_Cast(rt.s, quotient, RN_FLOAT), out, COUNT);
    rt.options.watch = NULL;
    cr_assert_eq(removed, 3, "%d nodes were removed", removed);  // Unpack, and two products
    // A product that something else reads stays.
    compare(&rt, x, rn_Cast(rt.s, rn_AddV2(rt.s, scaled, ab), RN_FLOAT));
    rt_end(&rt);
  }
}
