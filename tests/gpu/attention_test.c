// Attention as one kernel, and its gradients: the values of the CPU, and what stays as it is.
#include <math.h>

#include "counts.h"
#include "runnel/gradients.h"
#include "runnel/nn.h"
#include "util.h"

typedef enum mask_t {
  MASK_NONE,
  MASK_CAUSAL,
  MASK_CAUSAL_ADDED,
  MASK_BOOL,       // fed, for every head and score
  MASK_PADDING,    // a constant [batch, 1, 1, keys]
  MASK_ADDED,      // fed, [queries, keys]
  MASK_DROPPED,    // the weights are multiplied by something
  MASK_CONVERTED,  // none; the softmax is computed in float
} mask_t;

typedef struct attention_case_t {
  int64_t batch, heads, queries, keys, depth;
  mask_t mask;
  rn_dtype_t dtype;
  bool is_fused;
} attention_case_t;

static const attention_case_t cases[] = {
    {2, 3, 20, 20, 8, MASK_NONE, RN_FLOAT, true},
    {1, 2, 130, 130, 64, MASK_CAUSAL, RN_FLOAT, true},
    {1, 1, 70, 150, 64, MASK_NONE, RN_FLOAT, true},
    {1, 2, 33, 70, 100, MASK_NONE, RN_FLOAT, true},
    {1, 1, 66, 66, 128, MASK_CAUSAL_ADDED, RN_FLOAT, true},
    {2, 2, 17, 35, 12, MASK_BOOL, RN_FLOAT, true},
    {3, 2, 9, 40, 7, MASK_PADDING, RN_FLOAT, true},
    {1, 2, 65, 31, 16, MASK_ADDED, RN_FLOAT, true},
    {1, 2, 40, 40, 32, MASK_CAUSAL, RN_HALF, true},
    {1, 2, 40, 72, 32, MASK_NONE, RN_BFLOAT16, true},
    {1, 2, 40, 24, 16, MASK_CONVERTED, RN_BFLOAT16, true},
    {2, 1, 18, 30, 8, MASK_CONVERTED, RN_HALF, true},
    {1, 1, 8, 8, 160, MASK_NONE, RN_FLOAT, false},
    {1, 2, 10, 10, 8, MASK_DROPPED, RN_FLOAT, false},
};
enum { CASES = sizeof cases / sizeof *cases, FED = 5 };

typedef struct attention_net_t {
  rn_edge_t fed[FED];  // q, k, v, a mask, a factor of y
  rn_tensor_t values[FED];
  rn_edge_t results[4];  // y, dq, dk, dv
} attention_net_t;

static rn_tensor_t floats(rn_shape_t shape, float phase, float size) {
  rn_tensor_t tensor = {0};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, shape, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i)
    RN_DATA(&tensor, float)[i] = size * sinf((float)i * 0.37f + phase * (float)(i % 11));
  return tensor;
}

static rn_edge_t typed(rn_scope_t* s, rn_edge_t x, rn_dtype_t dtype) {
  return dtype == RN_FLOAT ? x : rn_Cast(s, x, (int)dtype);
}

// Constant masks over the keys; |added| as numbers.
static rn_edge_t constant_mask(rn_scope_t* s, const attention_case_t* c, bool added) {
  const bool is_padding = c->mask == MASK_PADDING;
  const int64_t rows = is_padding ? c->batch : c->queries;
  bool* seen = calloc((size_t)(rows * c->keys), sizeof *seen);
  float* numbers = calloc((size_t)(rows * c->keys), sizeof *numbers);
  for (int64_t i = 0; i < rows * c->keys; ++i) {
    seen[i] = is_padding ? i % c->keys < 11 + 7 * (i / c->keys) : i % c->keys <= i / c->keys;
    numbers[i] = seen[i] ? 0 : -1e9f;
  }
  const int64_t dims[4] = {c->batch, 1, 1, c->keys}, square[2] = {c->queries, c->keys};
  rn_edge_t edge = rn_const(s, added ? RN_FLOAT : RN_BOOL, is_padding ? dims : square,
                            is_padding ? 4 : 2, added ? (const void*)numbers : (const void*)seen);
  free(seen), free(numbers);
  return edge;
}

static rn_edge_t attend(rn_scope_t* s, const attention_case_t* c, const rn_edge_t* in) {
  rn_edge_t mask = RN_NO_EDGE;
  if (c->mask == MASK_CAUSAL || c->mask == MASK_PADDING) mask = constant_mask(s, c, false);
  if (c->mask == MASK_BOOL) mask = rn_GreaterEqual(s, in[3], rn_const_float(s, -0.9f));
  if (c->mask < MASK_ADDED && c->mask != MASK_CAUSAL_ADDED)
    return rn_dot_product_attention(s, in[0], in[1], in[2], .mask = mask).context;
  rn_edge_t scores = rn_BatchMatMulV2(s, in[0], in[1], .adj_y = true);
  if (c->mask == MASK_CONVERTED) scores = rn_Cast(s, scores, RN_FLOAT);
  scores = rn_RealDiv(s, scores, rn_const_float(s, 3));
  if (c->mask == MASK_CAUSAL_ADDED) scores = rn_AddV2(s, constant_mask(s, c, true), scores);
  if (c->mask == MASK_ADDED) scores = rn_AddV2(s, scores, in[3]);
  scores = rn_Softmax(s, scores);
  if (c->mask == MASK_DROPPED) scores = rn_Mul(s, scores, scores);
  return rn_BatchMatMulV2(s, c->mask == MASK_CONVERTED ? typed(s, scores, c->dtype) : scores,
                          in[2]);
}

static attention_net_t build(rn_scope_t* s, const attention_case_t* c) {
  const int64_t q[4] = {c->batch, c->heads, c->queries, c->depth};
  const int64_t k[4] = {c->batch, c->heads, c->keys, c->depth};
  const int64_t scores[4] = {c->batch, c->heads, c->queries, c->keys};
  const bool is_flat = c->mask == MASK_ADDED;
  const rn_shape_t shapes[FED] = {
      {4, q}, {4, k}, {4, k}, {is_flat ? 2 : 4, is_flat ? scores + 2 : scores}, {4, q}};
  attention_net_t net;
  rn_edge_t in[FED];
  for (int i = 0; i < FED; ++i) {
    net.fed[i] = rn_Placeholder(s, RN_FLOAT, .shape = {true, shapes[i].dims, shapes[i].rank});
    net.values[i] = floats(shapes[i], (float)i, i < 2 ? 0.8f : 1);
    in[i] = typed(s, net.fed[i], c->dtype);
  }
  if (c->mask == MASK_BOOL) in[3] = net.fed[3];
  rn_edge_t y = attend(s, c, in);
  rn_edge_t loss = rn_Mul(s, y, in[4]);
  net.results[0] = y;
  cr_assert(rn_gradients(s, loss, in, 3, net.results + 1), "%s", rn_scope_message(s));
  for (int i = 0; c->dtype != RN_FLOAT && i < 4; ++i)
    net.results[i] = rn_Cast(s, net.results[i], RN_FLOAT);
  return net;
}

// Runs |fetches| of the results three times: plain, recorded, replayed.
static void run(rt_t* rt, attention_net_t* net, bool gpu, int fetches, rn_tensor_t* out) {
  rn_session_options_t options = rt->options;
  options.gpu.max_count = gpu ? -1 : 0;
  rn_session_t* session = NULL;
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  OK(rn_session_create(rt->graph, &options, rn_env_system(), rt->allocator, &session));
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    for (int i = 0; i < FED; ++i) rt_feed(&step, net->fed[i], &net->values[i]);
    for (int i = 0; i < fetches; ++i) rt_fetch(&step, net->results[i]);
    OK(rt_run_in(session, &step));
    for (int i = 0; i < fetches; ++i) {
      rn_tensor_clear(&out[i]);
      out[i] = step.out[i];
    }
  }
  rn_session_destroy(session);
}

static uint64_t attention_kernels(const attention_case_t* c, const char* kernel) {
  char name[64];
  snprintf(name, sizeof name, "kernel:%s_%d_%s", kernel, c->depth > 64 ? 128 : 64,
           c->dtype == RN_FLOAT  ? "f32"
           : c->dtype == RN_HALF ? "f16"
                                 : "bf16");
  return emulated_count(name);
}

static void compare(const attention_case_t* c, const rn_tensor_t* want, const rn_tensor_t* got,
                    int output) {
  const float tolerance = c->dtype == RN_FLOAT ? 2e-5f : c->dtype == RN_HALF ? 8e-3f : 6e-2f;
  float most = 1;
  for (int64_t i = 0; i < want->count; ++i) most = fmaxf(most, fabsf(RN_DATA(want, float)[i]));
  cr_assert_eq(want->count, got->count);
  for (int64_t i = 0; i < want->count; ++i)
    cr_assert_float_eq(RN_DATA(got, float)[i], RN_DATA(want, float)[i], tolerance * most,
                       "case %d, output %d, element %d: %g, not %g", (int)(c - cases), output,
                       (int)i, RN_DATA(got, float)[i], RN_DATA(want, float)[i]);
}

// With and without gradients.
static void check(const attention_case_t* c) {
  rt_t rt = rt_begin(1);
  attention_net_t net = build(rt.s, c);
  rn_tensor_t cpu[4] = {0}, gpu[4] = {0};
  run(&rt, &net, false, 4, cpu);
  for (int fetches = 4; fetches >= 1; fetches -= 3) {
    uint64_t forward = attention_kernels(c, "forward"), back = attention_kernels(c, "by_keys");
    run(&rt, &net, true, fetches, gpu);
    forward = attention_kernels(c, "forward") - forward;
    back = attention_kernels(c, "by_keys") - back;
    uint64_t steps = c->is_fused && counts_calls() ? 3 : 0;
    cr_assert_eq(forward, steps, "case %d: %d", (int)(c - cases), (int)forward);
    cr_assert_eq(back, fetches == 4 ? steps : 0, "case %d", (int)(c - cases));
    for (int i = 0; i < fetches; ++i) compare(c, &cpu[i], &gpu[i], i);
  }
  for (int i = 0; i < 4; ++i) rn_tensor_clear(&cpu[i]), rn_tensor_clear(&gpu[i]);
  for (int i = 0; i < FED; ++i) rn_tensor_clear(&net.values[i]);
  rt_end(&rt);
}

// The tests are small.
static void fuse_all(void) { setenv("RUNNEL_ATTENTION_KEYS", "1", 1); }
TestSuite(attention, .init = fuse_all);

RT_TEST(attention, is_one_kernel) {
  for (int c = 0; c < CASES; ++c) check(&cases[c]);
}

// Without TF32, products have the precision of floats.
RT_TEST(attention, in_full_precision) {
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  uint64_t before = emulated_count("kernel:forward_64_exact_f32");
  attention_case_t c = cases[0];
  rt_t rt = rt_begin(1);
  attention_net_t net = build(rt.s, &c);
  rn_tensor_t cpu[4] = {0}, gpu[4] = {0};
  run(&rt, &net, false, 4, cpu);
  run(&rt, &net, true, 4, gpu);
  if (counts_calls()) cr_assert_eq(emulated_count("kernel:forward_64_exact_f32") - before, 3u);
  for (int i = 0; i < 4; ++i) {
    compare(&cases[0], &cpu[i], &gpu[i], i);
    rn_tensor_clear(&cpu[i]), rn_tensor_clear(&gpu[i]);
  }
  for (int i = 0; i < FED; ++i) rn_tensor_clear(&net.values[i]);
  rt_end(&rt);
}

// The weights themselves may be fetched; then they are computed.
RT_TEST(attention, weights_can_be_fetched) {
  rt_t rt = rt_begin(1);
  const int64_t dims[3] = {2, 6, 4};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 3});
  rn_attended_t y = rn_dot_product_attention(rt.s, x, x, x);
  rn_tensor_t value = floats((rn_shape_t){3, dims}, 1, 1);
  uint64_t before = emulated_count("kernel:forward_64_f32");
  rt_step_t step = {0};
  rt_feed(&step, x, &value);
  rt_fetch(&step, y.context);
  rt_fetch(&step, y.weights);
  OK(rt_run(&rt, &step));
  cr_assert_eq(emulated_count("kernel:forward_64_f32"), before);
  float sum = 0;
  for (int i = 0; i < 6; ++i) sum += RN_DATA(&step.out[1], float)[i];
  cr_assert_float_eq(sum, 1, 1e-5f);
  rt_clear(&step);
  rn_tensor_clear(&value);
  rt_end(&rt);
}

// Queries, keys and values of one product, as transformers have them: nothing is transposed.
// |separate|: of three products.
static void check_layout(bool separate, int most) {
  enum { BATCH = 2, TIME = 21, HEADS = 3, DEPTH = 8, WIDTH = HEADS * DEPTH };
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  const int64_t dims[2] = {BATCH * TIME, 3 * WIDTH};
  const int32_t apart[5] = {BATCH, TIME, 3, HEADS, DEPTH}, first[5] = {2, 0, 3, 1, 4};
  const int32_t one[4] = {BATCH, TIME, HEADS, DEPTH}, second[4] = {0, 2, 1, 3};
  const int32_t joined[2] = {BATCH * TIME, WIDTH};
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT, .shape = {true, dims, 2}), in[3];
  rn_tensor_t value = floats((rn_shape_t){2, dims}, 1, 1);
  rn_edge_t turn = rn_const_int32_list(s, second, 4);
  if (separate) {
    for (int i = 0; i < 3; ++i) {
      rn_edge_t part = rn_Mul(s, x, rn_const_float(s, 1 + 0.1f * (float)i));
      part = rn_Slice(s, part, rn_const_int32_list(s, (int32_t[]){0, i * WIDTH}, 2),
                      rn_const_int32_list(s, joined, 2));
      in[i] = rn_Transpose(s, rn_Reshape(s, part, rn_const_int32_list(s, one, 4)), turn);
    }
  } else {
    rn_edge_t all = rn_Reshape(s, x, rn_const_int32_list(s, apart, 5));
    rn_edges_t parts = rn_Unpack(s, rn_Transpose(s, all, rn_const_int32_list(s, first, 5)), 3);
    for (int i = 0; i < 3; ++i) in[i] = rn_edge_at(parts, i);
  }
  rn_edge_t y = rn_Transpose(s, rn_dot_product_attention(s, in[0], in[1], in[2]).context, turn);
  y = rn_Reshape(s, y, rn_const_int32_list(s, joined, 2));
  rn_edge_t dx, loss = rn_Mul(s, rn_Sin(s, y), y);
  cr_assert(rn_gradients(s, loss, &x, 1, &dx), "%s", rn_scope_message(s));
  rn_tensor_t results[2][2] = {{{0}}};
  for (int gpu = 0; gpu < 2; ++gpu) {
    rn_session_options_t options = rt.options;
    options.gpu.max_count = gpu ? -1 : 0;
    rn_session_t* session = NULL;
    OK(rn_session_create(rt.graph, &options, rn_env_system(), rt.allocator, &session));
    uint64_t before = emulated_count("cuLaunchKernel");
    for (int step_number = 0; step_number < 3; ++step_number) {
      rt_step_t step = {0};
      rt_feed(&step, x, &value);
      rt_fetch(&step, y);
      rt_fetch(&step, dx);
      OK(rt_run_in(session, &step));
      if (step_number == 0 && gpu)
        cr_assert_leq(emulated_count("cuLaunchKernel") - before, (uint64_t)most, "%d launches",
                      (int)(emulated_count("cuLaunchKernel") - before));
      for (int i = 0; i < 2; ++i) {
        rn_tensor_clear(&results[gpu][i]);
        results[gpu][i] = step.out[i];
      }
    }
    rn_session_destroy(session);
  }
  for (int i = 0; i < 2; ++i) {
    compare(&cases[0], &results[0][i], &results[1][i], i);
    rn_tensor_clear(&results[0][i]), rn_tensor_clear(&results[1][i]);
  }
  rn_tensor_clear(&value);
  rt_end(&rt);
}

RT_TEST(attention, in_the_layout_of_its_surroundings) {
  check_layout(false, 6);
  check_layout(true, 15);
}
