// A repeated step over static shapes allocates nothing but its fetched values.
#include "util.h"

static _Atomic long allocations;

#ifndef RT_HAS_SANITIZER  // a sanitizer has an allocator of its own
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* ptr, size_t size);
void* malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations++;
  return __libc_calloc(count, size);
}
void* realloc(void* ptr, size_t size) {
  allocations++;
  return __libc_realloc(ptr, size);
}
#endif

static rn_edge_t placeholder(rn_scope_t* s, const int64_t* dims, int rank) {
  rn_op_begin(s, "Placeholder");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  rn_op_attr_shape(s, "shape", dims, rank);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// Allocations of 100 steps, after a few to warm up.
static long count(rt_t* rt, rt_step_t* step) {
  long before = 0;
  for (int turn = 0; turn < 110; ++turn) {
    if (turn == 10) before = allocations;
    OK(rt_run(rt, step));
    rt_clear(step);
  }
  return allocations - before;
}

RT_TEST(allocation, null_step) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = placeholder(rt.s, NULL, 0);
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, rn_Identity(rt.s, x));
  cr_assert_eq(count(&rt, &step), 0);  // the fetched value is the one that was fed
  rt_step_t two = {0};
  rt_feed(&two, x, &fed);
  rt_fetch(&two, rn_Neg(rt.s, x));
  rt_fetch(&two, rn_Relu(rt.s, x));
  cr_assert_leq(count(&rt, &two), 200);
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

// Also where the placeholder's shape is open: the shape fed is static enough.
RT_TEST(allocation, chain) {
  for (int is_open = 0; is_open < 2; ++is_open) {
    for (int optimize = 0; optimize < 2; ++optimize) {
      rt_t rt = rt_begin(1);
      rt.options.optimize = optimize;
      rn_edge_t x = placeholder(rt.s, is_open ? (int64_t[]){-1} : (int64_t[]){256}, 1), y = x;
      for (int i = 0; i < 200; ++i) y = i % 2 ? rn_Mul(rt.s, y, x) : rn_Sub(rt.s, x, y);
      float values[256] = {0};
      rn_tensor_t fed = rt_floats(256, values);
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, y);
      cr_assert_leq(count(&rt, &step), 100);
      rn_tensor_clear(&fed);
      rt_end(&rt);
    }
  }
}

RT_TEST(allocation, training_step) {
  for (int threads = 1; threads <= 2; ++threads) {
    rt_t rt = rt_begin(threads);
    rn_scope_t* s = rt.s;
    rn_edge_t x = placeholder(s, (int64_t[]){8, 16}, 2);
    rn_edge_t w = rn_VariableV2(s, ((int64_t[]){16, 4}), 2, RN_FLOAT);
    float zeros[64] = {0}, ones[128] = {1};
    rn_edge_t start = rn_const(s, RN_FLOAT, (int64_t[]){16, 4}, 2, zeros);
    rn_edge_t set = rn_Assign(s, w, start);
    rn_edge_t y = rn_Relu(s, rn_MatMul(s, x, w));
    rn_edge_t gradient = rn_MatMul(s, x, y, .transpose_a = true);
    rn_edge_t update = rn_ApplyGradientDescent(s, w, rn_const_float(s, 0.1f), gradient);
    rt_do(&rt, set.node);
    rn_tensor_t fed;
    OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){8, 16}},
                        &fed));
    memcpy(fed.data, ones, sizeof ones);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_target(&step, update.node);
    cr_assert_eq(count(&rt, &step), 0);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

static rn_edge_t below(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 100));
}
static void body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t one = rt_const_at(s, values[0], 1);
  next[0] = rn_AddV2(s, values[0], one);
  next[1] = rn_Mul(s, values[1], one);
}
RT_TEST(allocation, loops) {
  for (int parallel = 1; parallel <= 10; parallel += 9) {
    rt_t rt = rt_begin(1);
    rt_loop_t loop = {.frame = "w",
                      .count = 2,
                      .parallel = parallel,
                      .start = {rn_const_float(rt.s, 0), rn_const_float(rt.s, 1)},
                      .cond = below,
                      .body = body};
    rt_loop(rt.s, &loop);
    rt_step_t step = {0};
    rt_fetch(&step, loop.exits[1]);
    cr_assert_leq(count(&rt, &step), 100, "%ld", count(&rt, &step));
    rt_end(&rt);
  }
}
