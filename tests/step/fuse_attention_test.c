// Attention as one node on the CPU: the values of the graph as it was built, with all masks, odd
// sizes, heads that lie apart, and the same bits with any number of threads. Gradients, and weights
// that something else reads, leave the nodes as they are. tests/gpu/attention_test.c has the GPU's.
#include <math.h>

#include "device/device.h"
#include "graph_of_step.h"
#include "runnel/gradients.h"
#include "util.h"

typedef enum mask_t { MASK_NONE, MASK_CAUSAL, MASK_BOOL, MASK_PADDING, MASK_ADDED } mask_t;

typedef struct attention_case_t {
  int64_t batch, heads, queries, keys, depth;
  mask_t mask;
  bool is_split;  // heads lie next to each other: [batch, time, heads, depth], transposed
} attention_case_t;

static const attention_case_t cases[] = {
    {2, 3, 20, 20, 8, MASK_NONE, false},       {1, 2, 130, 130, 64, MASK_CAUSAL, true},
    {1, 1, 70, 150, 64, MASK_NONE, true},      {1, 2, 33, 70, 100, MASK_NONE, false},
    {1, 1, 300, 300, 128, MASK_CAUSAL, false}, {2, 2, 17, 35, 12, MASK_BOOL, true},
    {3, 2, 9, 40, 7, MASK_PADDING, true},      {1, 2, 65, 31, 16, MASK_ADDED, false},
    {2, 4, 128, 128, 64, MASK_ADDED, true},    {1, 1, 13, 5000, 24, MASK_NONE, false},
    {1, 1, 1, 16, 1, MASK_NONE, true},
};
enum { CASES = sizeof cases / sizeof *cases };

static rn_edge_t constant(rn_scope_t* s, int rank, const int64_t* dims, float phase) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  float* values = malloc((size_t)count * sizeof *values);
  cr_assert(values);
  for (int64_t i = 0; i < count; ++i) values[i] = sinf((float)i * 0.37f + phase * (float)(i % 11));
  rn_edge_t edge = rn_const(s, RN_FLOAT, dims, rank, values);
  free(values);
  return edge;
}

// A value that the planner does not know.
static rn_edge_t given(rn_scope_t* s, int rank, const int64_t* dims, float phase) {
  return rn_PlaceholderWithDefault(s, constant(s, rank, dims, phase), dims, rank);
}

static rn_edge_t transposed(rn_scope_t* s, rn_edge_t x) {
  const int64_t four = 4;
  return rn_Transpose(s, x, rn_const(s, RN_INT32, &four, 1, (const int32_t[]){0, 2, 1, 3}));
}

static rn_edge_t side(rn_scope_t* s, const attention_case_t* c, int64_t rows, float phase) {
  const int64_t split[] = {c->batch, rows, c->heads, c->depth};
  const int64_t plain[] = {c->batch, c->heads, rows, c->depth};
  return c->is_split ? transposed(s, given(s, 4, split, phase)) : given(s, 4, plain, phase);
}

static rn_edge_t masked(rn_scope_t* s, const attention_case_t* c, rn_edge_t scores) {
  const int64_t all[] = {c->batch, c->heads, c->queries, c->keys};
  const int64_t causal[] = {c->queries, c->keys}, padding[] = {c->batch, 1, 1, c->keys};
  rn_edge_t none = rn_const_float(s, -INFINITY);
  if (c->mask == MASK_NONE) return scores;
  if (c->mask == MASK_ADDED) return rn_AddV2(s, given(s, 2, causal, 0.2f), scores);
  if (c->mask == MASK_CAUSAL) {
    bool* seen = malloc((size_t)(c->queries * c->keys));
    cr_assert(seen);
    for (int64_t i = 0; i < c->queries * c->keys; ++i) seen[i] = i % c->keys <= i / c->keys;
    rn_edge_t mask = rn_const(s, RN_BOOL, causal, 2, seen);
    free(seen);
    return rn_SelectV2(s, mask, scores, none);
  }
  rn_edge_t numbers = c->mask == MASK_BOOL ? given(s, 4, all, 0.5f) : given(s, 4, padding, 0.5f);
  return rn_SelectV2(s, rn_Less(s, numbers, rn_const_float(s, 0.7f)), scores, none);
}

typedef struct attention_net_t {
  rt_t rt;
  rn_edge_t q, weights, y;
} attention_net_t;

static attention_net_t net_of(const attention_case_t* c, bool optimize, int threads) {
  attention_net_t net = {.rt = rt_begin(threads)};
  net.rt.options.optimize = optimize;
  rn_scope_t* s = net.rt.s;
  net.q = side(s, c, c->queries, 1);
  rn_edge_t scores = rn_BatchMatMulV2(s, net.q, side(s, c, c->keys, 2), .adj_y = true);
  scores = rn_Mul(s, scores, rn_const_float(s, 0.25f));
  net.weights = rn_Softmax(s, masked(s, c, scores));
  net.y = rn_BatchMatMulV2(s, net.weights, side(s, c, c->keys, 3));
  if (c->is_split) net.y = transposed(s, net.y);
  return net;
}

static rn_tensor_t run(const attention_case_t* c, bool optimize, int threads) {
  attention_net_t net = net_of(c, optimize, threads);
  rt_step_t step = {0};
  rt_fetch(&step, net.y);
  OK(rt_run(&net.rt, &step));
  rt_end(&net.rt);
  return step.out[0];
}

RT_TEST(fuse_attention, values) {
  for (int i = 0; i < CASES; ++i) {
    rn_tensor_t wanted = run(&cases[i], false, 1), first = run(&cases[i], true, 1);
    cr_assert_eq(first.count, wanted.count);
    for (int64_t k = 0; k < first.count; ++k) {
      float a = RN_DATA(&first, float)[k], b = RN_DATA(&wanted, float)[k];
      cr_assert(fabsf(a - b) <= 2e-6f || (isnan(a) && isnan(b)),
                "case %d, element %lld: %g, not %g", i, (long long)k, (double)a, (double)b);
    }
    for (int threads = 2; threads <= 8; threads *= 2) {
      rn_tensor_t got = run(&cases[i], true, threads);
      cr_assert(memcmp(got.data, first.data, rn_tensor_bytes(&first)) == 0,
                "case %d differs with %d threads", i, threads);
      rn_tensor_clear(&got);
    }
    rn_tensor_clear(&first);
    rn_tensor_clear(&wanted);
  }
}

// How many nodes of attention the pass makes of |net|, if |more| is fetched as well.
static int fused(attention_net_t* net, rn_edge_t more) {
  rt_step_t step = {0};
  rt_fetch(&step, net->y);
  if (more.node) rt_fetch(&step, more);
  rn_ir_t* ir = graph_of_step(&net->rt, &step);
  static rn_device_t host = {.type = "CPU", .is_host = true};
  for (size_t n = 0; n < ir->nodes.count; ++n) ir->nodes.items[n].device = &host;
  OK(rn_pass_fuse_attention(ir));
  int count = count_nodes(ir, "_Attention");
  cr_expect_eq(count_nodes(ir, "Softmax"), 1 - count);
  rn_ir_destroy(ir);
  return count;
}

RT_TEST(fuse_attention, what_is_fused) {
  for (int i = 0; i < CASES; ++i) {
    attention_net_t net = net_of(&cases[i], true, 1);
    cr_expect_eq(fused(&net, (rn_edge_t){0}), 1, "case %d", i);
    rn_edge_t gradient;
    rn_gradients(net.rt.s, net.y, &net.q, 1, &gradient);
    cr_expect_eq(fused(&net, net.weights), 0, "case %d: its weights are read", i);
    cr_expect_eq(fused(&net, gradient), 0, "case %d: gradients", i);
    rt_end(&net.rt);
  }
}
