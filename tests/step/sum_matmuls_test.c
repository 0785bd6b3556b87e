// Sums of matmuls, and gradient descent with them: the same bits as in the unoptimized graph.
#include "util.h"

typedef struct case_t {
  int64_t m, n, k;
  int count;
  bool transposes;
  int at_a_time;  // 0: one sum; else as gradients arrive: AddN(AddN(a, b, c), d, e)
  int64_t side;  // 0: A is one matrix; else two side by side, of which the first has this many rows
                 // of C
} case_t;

// Every size of tile and edge, depths from one to the deepest that is taken in.
static const case_t cases[] = {
    {2, 2, 1, 1, true, 0, 0},         {6, 32, 1, 2, true, 0, 0},
    {7, 33, 1, 3, true, 0, 0},        {13, 31, 5, 4, false, 0, 0},
    {48, 64, 8, 20, true, 0, 0},      {5, 200, 3, 7, false, 0, 0},
    {64, 17, 128, 2, true, 0, 0},     {31, 129, 2, 9, true, 0, 0},
    {101, 300, 32, 5, true, 0, 0},    {130, 333, 40, 3, false, 0, 0},
    {48, 64, 8, 20, true, 4, 0},      {49, 65, 3, 9, false, 2, 0},
    {101, 300, 32, 7, true, 3, 0},    {101, 300, 32, 12, true, 0, 0},
    {205, 130, 40, 9, false, 0, 0},   {7, 70, 128, 3, true, 0, 0},
    {400, 150, 100, 4, true, 0, 0},   {3100, 70, 300, 1, true, 0, 0},
    {130, 70, 700, 1, false, 0, 0},   {101, 300, 32, 12, true, 0, 50},
    {48, 64, 8, 20, true, 4, 1},      {13, 31, 5, 4, true, 0, 11},
    {400, 150, 100, 4, true, 0, 192}, {130, 70, 700, 1, true, 0, 129},
    {784, 128, 1, 1, true, 0, 0},     {130, 10, 1, 1, false, 0, 0},
    {101, 300, 1, 1, true, 0, 50},    {3000, 71, 1, 1, true, 0, 0},
    {1, 7, 1, 1, false, 0, 0},        {9000, 65, 1, 1, true, 0, 4001},
};

// Numbers with all their digits: whole ones would hide a wrong order of sums. Zeros among them, for
// products of either sign.
static rn_tensor_t numbers(rn_dtype_t dtype, const int64_t dims[3], uint64_t seed) {
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){3, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    double x = i % 11 ? (double)(seed >> 11) / 9007199254740992.0 - 0.3 : 0;
    if (dtype == RN_FLOAT)
      RN_DATA(&value, float)[i] = (float)x;
    else
      RN_DATA(&value, double)[i] = x;
  }
  return value;
}

// |a|, with its first columns negated, as two matrices side by side. The axis is of either type.
static rn_edge_t two_sides(rn_scope_t* s, rn_edge_t a, int32_t first, int32_t all) {
  const int32_t counts[2] = {first, all - first};
  rn_edges_t parts = rn_SplitV(s, a, rn_const_int32_list(s, counts, 2), rn_const_int32(s, 1), 2);
  rn_edge_t sides[2] = {rn_Neg(s, rn_edge_at(parts, 0)), rn_edge_at(parts, 1)};
  return rn_ConcatV2(s, sides, 2, rn_const_scalar(s, first % 2 ? RN_INT64 : RN_INT32, -1));
}

// Fetches the sum, or, to see descent, takes three steps of it and fetches the variable.
static rn_tensor_t run(const case_t* c, rn_dtype_t dtype, bool optimize, bool descends,
                       int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  const int64_t a_dims[3] = {c->count, c->transposes ? c->k : c->m, c->transposes ? c->m : c->k};
  const int64_t b_dims[3] = {c->count, c->k, c->n};
  rn_scope_t* s = rt.s;
  rn_edge_t a = rn_Placeholder(s, dtype, .shape = {true, a_dims, 3});
  rn_edge_t b = rn_Placeholder(s, dtype, .shape = {true, b_dims, 3});
  rn_edges_t as = rn_Unpack(s, a, c->count), bs = rn_Unpack(s, b, c->count);
  rn_edge_t products[32];
  for (int t = 0; t < c->count; ++t) {
    rn_edge_t left = c->side ? two_sides(s, rn_edge_at(as, t), (int32_t)c->side, (int32_t)c->m)
                             : rn_edge_at(as, t);
    products[t] = rn_MatMul(s, left, rn_edge_at(bs, t), .transpose_a = c->transposes);
  }
  rn_edge_t sum = c->count > 1 && !c->at_a_time ? rn_AddN(s, products, c->count) : products[0];
  for (int t = 1; c->at_a_time && t < c->count;) {
    rn_edge_t terms[32] = {sum};
    int more = c->count - t < c->at_a_time ? c->count - t : c->at_a_time;
    memcpy(terms + 1, products + t, (size_t)more * sizeof *terms);
    sum = rn_AddN(s, terms, more + 1);
    t += more;
  }
  const int64_t c_dims[2] = {c->m, c->n};
  rn_edge_t variable = rn_VarHandleOp(s, dtype, c_dims, 2);
  rn_node_t* init = rn_AssignVariableOp(s, variable, rn_ZerosLike(s, sum));
  rn_node_t* step_down =
      rn_ResourceApplyGradientDescent(s, variable, rn_const_scalar(s, dtype, 0.1), sum);
  rn_edge_t value = rn_ReadVariableOp(s, variable, dtype);
  rn_tensor_t fed[2] = {numbers(dtype, a_dims, 1), numbers(dtype, b_dims, 2)}, result = {0};
  rn_node_t* turns[] = {init, step_down, step_down, step_down, NULL};
  for (int t = descends ? 0 : 4; t < 5; ++t) {
    rt_step_t step = {0};
    rt_feed(&step, a, &fed[0]);
    rt_feed(&step, b, &fed[1]);
    if (turns[t])
      rt_target(&step, turns[t]);
    else
      rt_fetch(&step, descends ? value : sum);
    OK(rt_run(&rt, &step));
    if (!turns[t]) result = step.out[0];
  }
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&fed[i]);
  rt_end(&rt);
  return result;
}

static void compare(bool descends) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int wide = 0; wide < 2; ++wide) {
      rn_dtype_t dtype = wide ? RN_DOUBLE : RN_FLOAT;
      rn_tensor_t wanted = run(&cases[i], dtype, false, descends, 1);
      for (int threads = 1; threads <= 8; threads *= 2) {
        rn_tensor_t got = run(&cases[i], dtype, true, descends, threads);
        cr_assert_eq(got.count, wanted.count);
        cr_assert(memcmp(got.data, wanted.data, rn_tensor_bytes(&wanted)) == 0, "case %zu", i);
        rn_tensor_clear(&got);
      }
      rn_tensor_clear(&wanted);
    }
  }
}

RT_TEST(products, sums_keep_their_bits) { compare(false); }
RT_TEST(products, descent_keeps_its_bits) { compare(true); }
