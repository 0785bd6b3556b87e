// Random graphs of elementwise ops with random shapes, compared bit by bit with a naive
// interpreter: for any number of threads, with and without optimization, over several steps.
#include "util.h"

#define NODES 60

typedef struct dag_t {
  int count;
  int op[NODES];  // 0: a feed
  int a[NODES], b[NODES];
  int64_t dims[NODES][2];
  rn_edge_t edge[NODES];
  float* value[NODES];
} dag_t;

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 8;
}

static int64_t size_of(const dag_t* dag, int i) { return dag->dims[i][0] * dag->dims[i][1]; }

static bool can_pair(const dag_t* dag, int a, int b) {
  for (int d = 0; d < 2; ++d)
    if (dag->dims[a][d] != dag->dims[b][d] && dag->dims[a][d] != 1 && dag->dims[b][d] != 1)
      return false;
  return true;
}

static float apply(int op, float x, float y) {
  switch (op) {
    case 1:
      return x + y;
    case 2:
      return x - y;
    case 3:
      return x * y;
    case 4:
      return x > y ? x : y;
    case 5:
      return -x;
    default:
      return x > 0 ? x : 0;
  }
}

static rn_edge_t build(rn_scope_t* s, int op, rn_edge_t x, rn_edge_t y) {
  switch (op) {
    case 1:
      return rn_AddV2(s, x, y);
    case 2:
      return rn_Sub(s, x, y);
    case 3:
      return rn_Mul(s, x, y);
    case 4:
      return rn_Maximum(s, x, y);
    case 5:
      return rn_Neg(s, x);
    case 6:
      return rn_Relu(s, x);
    default:
      return rn_Identity(s, rn_Relu(s, x));
  }
}

static void make(dag_t* dag, rn_scope_t* s, uint32_t* seed, bool is_static) {
  static const int64_t sizes[] = {1, 1, 3, 4, 16, 65};
  dag->count = 10 + (int)(next_random(seed) % (NODES - 10));
  for (int i = 0; i < dag->count; ++i) {
    int feeds = 3;
    dag->op[i] = i < feeds ? 0 : 1 + (int)(next_random(seed) % 7);
    if (i < feeds) {
      int64_t rows = sizes[next_random(seed) % 6], columns = sizes[next_random(seed) % 6];
      dag->dims[i][0] = i == 2 ? 1 : rows;
      dag->dims[i][1] = i == 2 ? 1 : columns;
      rn_op_begin(s, "Placeholder");
      rn_op_attr_type(s, "dtype", RN_FLOAT);
      rn_op_attr_shape(s, "shape", is_static ? dag->dims[i] : (int64_t[]){-1, -1}, 2);
      dag->edge[i] = (rn_edge_t){rn_op_finish(s), 0};
      continue;
    }
    do {
      dag->a[i] = (int)(next_random(seed) % (uint32_t)i);
      dag->b[i] = (int)(next_random(seed) % (uint32_t)i);
    } while (!can_pair(dag, dag->a[i], dag->b[i]));
    bool is_unary = dag->op[i] >= 5;
    for (int d = 0; d < 2; ++d) {
      int64_t x = dag->dims[dag->a[i]][d], y = dag->dims[dag->b[i]][d];
      dag->dims[i][d] = is_unary || x > y ? x : y;
    }
    dag->edge[i] = build(s, dag->op[i], dag->edge[dag->a[i]], dag->edge[dag->b[i]]);
  }
}

static float at(const dag_t* dag, int i, int64_t row, int64_t column) {
  int64_t r = dag->dims[i][0] == 1 ? 0 : row, c = dag->dims[i][1] == 1 ? 0 : column;
  return dag->value[i][r * dag->dims[i][1] + c];
}

static void interpret(dag_t* dag, uint32_t* seed) {
  for (int i = 0; i < dag->count; ++i) {
    dag->value[i] = malloc((size_t)size_of(dag, i) * sizeof(float));
    for (int64_t k = 0; k < size_of(dag, i); ++k) {
      int64_t row = k / dag->dims[i][1], column = k % dag->dims[i][1];
      if (dag->op[i] == 0)
        dag->value[i][k] = (float)((int)(next_random(seed) % 2001) - 1000) / 512;
      else
        dag->value[i][k] = apply(dag->op[i], at(dag, dag->a[i], row, column),
                                 dag->op[i] >= 5 ? 0 : at(dag, dag->b[i], row, column));
    }
  }
}

// Which zero a maximum of two zeros is, is the kernel's choice; which NaN, too.
static bool same_bits(float a, float b) {
  return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b) || (a == 0 && b == 0);
}

static void check(rt_t* rt, dag_t* dag, uint32_t seed) {
  interpret(dag, &seed);
  rt_step_t step = {0};
  rn_tensor_t fed[3];
  for (int i = 0; i < 3; ++i) {
    OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, dag->dims[i]}, &fed[i]));
    memcpy(fed[i].data, dag->value[i], rn_tensor_bytes(&fed[i]));
    rt_feed(&step, dag->edge[i], &fed[i]);
  }
  int picked[6];
  for (int i = 0; i < 6; ++i) {
    picked[i] = i == 0 ? dag->count - 1 : (int)(next_random(&seed) % (uint32_t)dag->count);
    rt_fetch(&step, dag->edge[picked[i]]);
  }
  for (int turn = 0; turn < 2; ++turn) {
    OK(rt_run(rt, &step));
    for (int i = 0; i < 6; ++i) {
      cr_assert_eq(step.out[i].count, size_of(dag, picked[i]));
      for (int64_t k = 0; k < step.out[i].count; ++k)
        cr_assert(same_bits(RN_DATA(&step.out[i], float)[k], dag->value[picked[i]][k]),
                  "seed %u node %d element %d: %g, not %g", seed, picked[i], (int)k,
                  RN_DATA(&step.out[i], float)[k], dag->value[picked[i]][k]);
    }
    rt_clear(&step);
  }
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&fed[i]);
  for (int i = 0; i < dag->count; ++i) free(dag->value[i]);
}

static void sweep(int threads, bool optimize) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    rt_t rt = rt_begin(threads);
    rt.options.optimize = optimize;
    dag_t dag;
    uint32_t random = seed * 7919;
    make(&dag, rt.s, &random, seed % 3 != 0);
    for (uint32_t turn = 0; turn < 3; ++turn) check(&rt, &dag, seed * 100 + turn);
    rt_end(&rt);
  }
}

RT_TEST(dag, one_thread) { sweep(1, true); }
RT_TEST(dag, one_thread_as_built) { sweep(1, false); }
RT_TEST(dag, two_threads) { sweep(2, true); }
RT_TEST(dag, eight_threads) { sweep(8, true); }
RT_TEST(dag, eight_threads_as_built) { sweep(8, false); }

// Layers wide and dear enough to be cut into tasks.
static void layers(int threads, bool optimize) {
  enum { WIDTH = 12, DEPTH = 8, SIZE = 20000 };
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  rn_op_begin(rt.s, "Placeholder");
  rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
  rn_op_attr_shape(rt.s, "shape", (int64_t[]){SIZE}, 1);
  rn_edge_t x = {rn_op_finish(rt.s), 0};
  rn_edge_t layer[2][WIDTH];
  float expected[2][WIDTH];
  for (int i = 0; i < WIDTH; ++i) {
    layer[0][i] = rn_AddV2(rt.s, x, rn_const_float(rt.s, (float)i));
    expected[0][i] = 1 + (float)i;
  }
  uint32_t seed = 5;
  for (int d = 1; d <= DEPTH; ++d) {
    for (int i = 0; i < WIDTH; ++i) {
      int a = (int)(next_random(&seed) % WIDTH), b = (int)(next_random(&seed) % WIDTH);
      layer[d % 2][i] = rn_Maximum(rt.s, rn_Neg(rt.s, layer[(d + 1) % 2][a]),
                                   rn_Sub(rt.s, layer[(d + 1) % 2][b], x));
      float p = -expected[(d + 1) % 2][a], q = expected[(d + 1) % 2][b] - 1;
      expected[d % 2][i] = p > q ? p : q;
    }
  }
  float* ones = malloc(SIZE * sizeof *ones);
  for (int i = 0; i < SIZE; ++i) ones[i] = 1;
  rn_tensor_t fed = rt_floats(SIZE, ones);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  for (int i = 0; i < WIDTH; ++i) rt_fetch(&step, layer[DEPTH % 2][i]);
  for (int turn = 0; turn < 20; ++turn) {
    OK(rt_run(&rt, &step));
    for (int i = 0; i < WIDTH; ++i)
      for (int k = 0; k < SIZE; k += 111)
        cr_assert_eq(RN_DATA(&step.out[i], float)[k], expected[DEPTH % 2][i]);
    rt_clear(&step);
  }
  rn_tensor_clear(&fed);
  free(ones);
  rt_end(&rt);
}

RT_TEST(dag, layers_one_thread) { layers(1, false); }
RT_TEST(dag, layers_two_threads) { layers(2, false); }
RT_TEST(dag, layers_eight_threads) { layers(8, false); }
RT_TEST(dag, layers_eight_threads_optimised) { layers(8, true); }
