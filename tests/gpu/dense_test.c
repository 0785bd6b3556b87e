// Matmuls with what follows them: the values of the CPU, in as few launches as the case says.
#include <math.h>

#include "counts.h"
#include "util.h"

enum { ROWS = 12, DEPTH = 5, COLUMNS = 8 };

typedef struct dense_case_t {
  const char* steps;  // b bias, a a row is added, f a whole tensor, F the same by AddN, R reshaped
                      // to [3, 4, columns], Q to [2 * columns, 6], r relu, m a product with itself
  int launches;
  bool transposes;
  bool is_batch;  // [3, 4, depth] times a matrix
} dense_case_t;

static const dense_case_t cases[] = {
    {"b", 1, false, false},    {"br", 1, false, false},  {"bfr", 1, true, false},
    {"fbr", 1, false, false},  {"Fr", 1, true, false},   {"Rbr", 1, false, false},
    {"RbfR", 1, false, false}, {"a", 1, false, true},    {"afr", 1, false, true},
    {"brf", 2, false, false},  {"bff", 2, false, false}, {"bmr", 2, false, false},
    {"Qm", 2, false, false},   {"rbr", 2, false, false}, {"bar", 2, false, false},
    {"fF", 2, true, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static rn_tensor_t numbers(rn_dtype_t dtype, rn_shape_t shape, float phase) {
  rn_tensor_t tensor = {0};
  OK(rn_tensor_create(rn_allocator_system(), dtype, shape, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i)
    RN_DATA(&tensor, float)[i] = sinf((float)i * 1.3f + phase);
  return tensor;
}

static rn_edge_t constant(rt_t* rt, int rank, const int64_t* dims, float phase) {
  rn_tensor_t tensor = numbers(RN_FLOAT, (rn_shape_t){rank, dims}, phase);
  rn_edge_t edge = rn_const(rt->s, RN_FLOAT, dims, rank, tensor.data);
  rn_tensor_clear(&tensor);
  return edge;
}

static rn_edge_t reshaped(rt_t* rt, rn_edge_t y, int rank, const int32_t* dims) {
  return rn_Reshape(rt->s, y, rn_const(rt->s, RN_INT32, (int64_t[]){rank}, 1, dims));
}

// |fed| are x and whole tensors of two shapes.
static rn_edge_t build(rt_t* rt, const dense_case_t* c, rn_dtype_t dtype, const rn_edge_t* fed) {
  rn_scope_t* s = rt->s;
#define TYPED(edge) (dtype == RN_FLOAT ? (edge) : rn_Cast(s, edge, (int)dtype))
  int64_t w_dims[2] = {c->transposes ? COLUMNS : DEPTH, c->transposes ? DEPTH : COLUMNS};
  rn_edge_t w = TYPED(constant(rt, 2, w_dims, 2)), x = TYPED(fed[0]), y;
  bool is_deep = c->is_batch;
  if (c->is_batch)
    y = rn_BatchMatMulV2(s, reshaped(rt, x, 3, (int32_t[]){3, 4, DEPTH}), w,
                         .adj_y = c->transposes);
  else
    y = rn_MatMul(s, x, w, .transpose_b = c->transposes);
  for (const char* step = c->steps; *step; ++step) {
    int64_t columns = COLUMNS, row[2] = {1, COLUMNS};
    rn_edge_t whole = TYPED(fed[is_deep ? 2 : 1]);
    if (*step == 'b') y = rn_BiasAdd(s, y, TYPED(constant(rt, 1, &columns, 3)));
    if (*step == 'a') y = rn_AddV2(s, TYPED(constant(rt, 2, row, 4)), y);
    if (*step == 'f') y = rn_AddV2(s, whole, y);
    if (*step == 'F') y = rn_AddN(s, ((rn_edge_t[]){y, whole}), 2);
    if (*step == 'R') y = reshaped(rt, y, 3, (int32_t[]){3, 4, COLUMNS}), is_deep = true;
    if (*step == 'Q') y = reshaped(rt, y, 2, (int32_t[]){2 * COLUMNS, 6});
    if (*step == 'r') y = rn_Relu(s, y);
    if (*step == 'm') y = rn_Mul(s, y, y);
  }
  return dtype == RN_FLOAT ? y : rn_Cast(s, y, RN_FLOAT);
#undef TYPED
}

// Runs three steps, that is plain, recorded and replayed; returns the launches of the first.
static uint64_t run(rt_t* rt, bool gpu, const rn_edge_t* fed, rn_edge_t y, rn_tensor_t* out) {
  static const int64_t dims[3][3] = {{ROWS, DEPTH}, {ROWS, COLUMNS}, {3, 4, COLUMNS}};
  rn_session_options_t options = rt->options;
  options.gpu.max_count = gpu ? -1 : 0;
  rn_session_t* session = NULL;
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  OK(rn_session_create(rt->graph, &options, rn_env_system(), rt->allocator, &session));
  rn_tensor_t values[3];
  for (int i = 0; i < 3; ++i)
    values[i] = numbers(RN_FLOAT, (rn_shape_t){i == 2 ? 3 : 2, dims[i]}, (float)i);
  uint64_t first = 0;
  for (int turn = 0; turn < 3; ++turn) {
    uint64_t before = gpu ? emulated_count("cuLaunchKernel") : 0;
    rt_step_t step = {0};
    for (int i = 0; i < 3; ++i) rt_feed(&step, fed[i], &values[i]);
    rt_fetch(&step, y);
    OK(rt_run_in(session, &step));
    if (gpu && turn == 0) first = emulated_count("cuLaunchKernel") - before;
    rn_tensor_clear(out);
    *out = step.out[0];
  }
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&values[i]);
  rn_session_destroy(session);
  return first;
}

static void check(const dense_case_t* c, rn_dtype_t dtype) {
  static const int64_t dims[3][3] = {{ROWS, DEPTH}, {ROWS, COLUMNS}, {3, 4, COLUMNS}};
  rt_t rt = rt_begin(1);
  rn_edge_t fed[3];
  for (int i = 0; i < 3; ++i)
    fed[i] = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims[i], i == 2 ? 3 : 2});
  rn_edge_t y = build(&rt, c, dtype, fed);
  rn_tensor_t cpu = {0}, gpu = {0};
  run(&rt, false, fed, y, &cpu);
  uint64_t found = run(&rt, true, fed, y, &gpu);
  if (dtype == RN_FLOAT && counts_calls())
    cr_assert_eq(found, (uint64_t)c->launches, "%s: %d launches", c->steps, (int)found);
  cr_assert(rn_tensor_same_shape(&cpu, &gpu), "%s", c->steps);
  const float tolerance = dtype == RN_FLOAT ? 1e-5f : dtype == RN_HALF ? 4e-3f : 3e-2f;
  for (int64_t i = 0; i < cpu.count; ++i) {
    float want = RN_DATA(&cpu, float)[i], got = RN_DATA(&gpu, float)[i];
    cr_assert_float_eq(got, want, tolerance * (1 + fabsf(want)), "%s, element %d: %g, not %g",
                       c->steps, (int)i, got, want);
  }
  rn_tensor_clear(&cpu), rn_tensor_clear(&gpu);
  rt_end(&rt);
}

RT_TEST(dense, matmuls_with_what_follows) {
  for (int c = 0; c < CASES; ++c) check(&cases[c], RN_FLOAT);
}

RT_TEST(dense, in_other_types) {
  for (int c = 0; c < CASES; ++c) {
    check(&cases[c], RN_HALF);
    check(&cases[c], RN_BFLOAT16);
  }
}

// In mixed precision, the gradient of a weight is a product of 16-bit floats; the update reads
// them.
RT_TEST(dense, gradients_of_weights_are_not_cast) {
  static const rn_dtype_t types[] = {RN_HALF, RN_BFLOAT16};
  const int64_t x_dims[2] = {ROWS, DEPTH}, dy_dims[2] = {ROWS, COLUMNS}, w[2] = {DEPTH, COLUMNS};
  for (int t = 0; t < 2; ++t) {
    rt_t rt = rt_begin(1);
    rn_scope_t* s = rt.s;
    rn_edge_t fed[2] = {rn_Placeholder(s, RN_FLOAT, .shape = {true, x_dims, 2}),
                        rn_Placeholder(s, RN_FLOAT, .shape = {true, dy_dims, 2})};
    rn_edge_t product = rn_MatMul(s, rn_Cast(s, fed[0], (int)types[t]),
                                  rn_Cast(s, fed[1], (int)types[t]), .transpose_a = true);
    rn_op_begin(s, "VarHandleOp");
    rn_op_attr_type(s, "dtype", RN_FLOAT);
    rn_op_attr_shape(s, "shape", w, 2);
    rn_edge_t variable = {rn_op_finish(s), 0};
    rn_node_t* init = rn_AssignVariableOp(s, variable, constant(&rt, 2, w, 0));
    rn_node_t* update = rn_ResourceApplyGradientDescent(s, variable, rn_const_float(s, 1),
                                                        rn_Cast(s, product, RN_FLOAT));
    rn_tensor_t values[2] = {numbers(RN_FLOAT, (rn_shape_t){2, x_dims}, 1),
                             numbers(RN_FLOAT, (rn_shape_t){2, dy_dims}, 2)};
    rt_do(&rt, init);
    uint64_t before = emulated_count("cuLaunchKernel");
    rt_step_t step = {0};
    for (int i = 0; i < 2; ++i) rt_feed(&step, fed[i], &values[i]);
    rt_target(&step, update);
    OK(rt_run(&rt, &step));
    if (counts_calls())
      cr_assert_eq(emulated_count("cuLaunchKernel") - before, 4u,
                   "two casts, a product, an update");
    rt_step_t read = {0};
    rt_fetch(&read, rn_ReadVariableOp(s, variable, RN_FLOAT));
    OK(rt_run(&rt, &read));
    for (int64_t i = 0; i < DEPTH * COLUMNS; ++i) {
      float want = sinf((float)i * 1.3f);
      for (int64_t r = 0; r < ROWS; ++r)
        want -= RN_DATA(&values[0], float)[r * DEPTH + i / COLUMNS] *
                RN_DATA(&values[1], float)[r * COLUMNS + i % COLUMNS];
      cr_assert_float_eq(RN_DATA(&read.out[0], float)[i], want, t ? 2e-2f : 3e-3f, "element %d: %g",
                         (int)i, RN_DATA(&read.out[0], float)[i]);
    }
    rt_clear(&read);
    rn_tensor_clear(&values[0]), rn_tensor_clear(&values[1]);
    rt_end(&rt);
  }
}
