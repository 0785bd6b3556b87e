// Inputs of a concatenation that are written directly into the result. Values are correct even if a
// part is read later or the result is overwritten.
#include "../support/status.h"
#include "matrices.h"

enum { kParts = 3, kResults = 5 };

// What is special about a graph.
typedef enum kind_t {
  PLAIN = 0,
  TWICE,  // the first part comes twice, and is no part, therefore
  LATE,   // the whole is read when the parts are read no more
} kind_t;

typedef struct net_t {
  rn_edge_t x, parts[kParts], whole, results[kResults];
} net_t;

static net_t build(rn_scope_t* s, int64_t rows, int64_t columns, kind_t kind) {
  const int64_t dims[2] = {rows, columns};
  const int32_t both[2] = {0, 1};
  net_t net = {.x = rn_Placeholder(s, RN_FLOAT, .shape = {true, dims, 2})};
  // Transposed, so that they are not elementwise, and made one after the other.
  rn_edge_t across = rn_const_int32_list(s, (const int32_t[]){1, 0}, 2);
  rn_edge_t turned = rn_Transpose(s, net.x, across);
  for (int i = 0; i < kParts; ++i) {
    turned = rn_Tanh(s, turned);
    net.parts[i] = rn_Transpose(s, turned, across);
  }
  if (kind == TWICE) net.parts[kParts - 1] = net.parts[0];
  net.whole = rn_ConcatV2(s, net.parts, kParts, rn_const_int32(s, 0));
  rn_edge_t total = rn_Sum(s, net.whole, rn_const_int32_list(s, both, 2));
  // In the place of the whole, if that is read by nobody later; but its parts are.
  rn_edge_t wide = rn_Exp(s, rn_Mul(s, net.whole, total));
  rn_edge_t end = rn_Sum(s, wide, rn_const_int32_list(s, both, 2));
  net.results[0] = rn_Transpose(s, wide, across);
  net.results[1] = end;
  for (int i = 0; i < 2; ++i)
    net.results[2 + i] = rn_MatMul(s, rn_Mul(s, net.parts[i], end), turned);
  rn_edge_t last = rn_Sum(s, net.results[3], rn_const_int32_list(s, both, 2));
  net.results[4] = rn_Transpose(s, rn_Mul(s, kind == LATE ? net.whole : net.x, last), across);
  return net;
}

// With |apart| everything is fetched, and lies where it lies.
static void run(int64_t rows, int64_t columns, kind_t kind, bool optimize, bool apart,
                rn_tensor_t* out) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = optimize;
  net_t net = build(rt.s, rows, columns, kind);
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_tensor_t x = numbers(rows, columns, 5);
  rt_step_t step = {0};
  rt_feed(&step, net.x, &x);
  for (int i = 0; i < kResults; ++i) rt_fetch(&step, net.results[i]);
  for (int i = 0; apart && i < kParts - (kind == TWICE); ++i) rt_fetch(&step, net.parts[i]);
  if (apart) rt_fetch(&step, net.whole);
  for (int twice = 0; twice < 2; ++twice) {
    if (twice) rt_clear(&step);
    OK(rt_run(&rt, &step));
  }
  for (int i = 0; i < kResults; ++i) out[i] = step.out[i];
  for (int i = kResults; i < step.fetch_count; ++i) rn_tensor_clear(&step.out[i]);
  rn_tensor_clear(&x);
  rt_end(&rt);
}

static void compare(kind_t kind) {
  static const int64_t sizes[][2] = {{1, 1024}, {64, 32}, {32, 512}, {3, 7},
                                     {1100, 1}, {25, 48}, {33, 63}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    rn_tensor_t wanted[kResults], got[kResults];
    run(sizes[i][0], sizes[i][1], kind, false, true, wanted);
    for (int optimize = 0; optimize < 2; ++optimize) {
      run(sizes[i][0], sizes[i][1], kind, optimize, false, got);
      for (int k = 0; k < kResults; ++k) same_bits(&got[k], &wanted[k], sizes[i][0], 1);
    }
    for (int k = 0; k < kResults; ++k) rn_tensor_clear(&wanted[k]);
  }
}

RT_TEST(parts_in_place, nobody_sees_the_difference) { compare(PLAIN); }
RT_TEST(parts_in_place, a_part_that_comes_twice) { compare(TWICE); }
RT_TEST(parts_in_place, a_whole_that_outlives_its_parts) { compare(LATE); }
