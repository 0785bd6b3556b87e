// Linear algebra on a GPU against the CPU, in sizes that one block computes alone and in sizes that
// are cut into panels. The case tables have small matrices only.
//
// Runs on the emulated GPU in the ordinary test command, and on a real one as matmul_test.c does.
#include <math.h>

#include "choices.h"
#include "util.h"

// An op with its attributes, once per device, over the same fed operands.
typedef struct linalg_op_t {
  const char* name;
  int inputs, outputs;
  const char* flags[2];  // names of bool attributes; NULL: none
  bool values[2];
} linalg_op_t;

typedef struct pair_of_nodes_t {
  rt_t rt;
  const linalg_op_t* op;
  rn_edge_t in[2];
  rn_node_t* nodes[2];  // on the CPU and on the GPU
} pair_of_nodes_t;

static pair_of_nodes_t begin(const linalg_op_t* op, rn_dtype_t dtype) {
  static const char* const devices[] = {"/cpu:0", "/gpu:0"};
  pair_of_nodes_t pair = {.rt = rt_begin(1), .op = op};
  for (int i = 0; i < op->inputs; ++i) pair.in[i] = rn_Placeholder(pair.rt.s, dtype);
  for (int d = 0; d < 2; ++d) {
    rn_scope_set_device(pair.rt.s, devices[d]);
    rn_op_begin(pair.rt.s, op->name);
    for (int i = 0; i < op->inputs; ++i) rn_op_input(pair.rt.s, pair.in[i]);
    for (int i = 0; i < 2 && op->flags[i]; ++i)
      rn_op_attr_bool(pair.rt.s, op->flags[i], op->values[i]);
    pair.nodes[d] = rn_op_finish(pair.rt.s);
  }
  return pair;
}

// A part of a number of any of the four types.
static double part_at(const rn_tensor_t* tensor, int64_t i) {
  bool is_wide = tensor->dtype == RN_DOUBLE || tensor->dtype == RN_COMPLEX128;
  return is_wide ? RN_DATA(tensor, double)[i] : (double)RN_DATA(tensor, float)[i];
}
static int parts_of(const rn_tensor_t* tensor) {
  return rn_dtype_is_complex(tensor->dtype) ? 2 : 1;
}

static void set_part(rn_tensor_t* tensor, int64_t i, double value) {
  if (tensor->dtype == RN_DOUBLE || tensor->dtype == RN_COMPLEX128)
    RN_DATA(tensor, double)[i] = value;
  else
    RN_DATA(tensor, float)[i] = (float)value;
}

// Numbers within [-1/2, 1/2]; |diagonal| is added to the diagonals of the last two dimensions.
static rn_tensor_t random_matrices(rn_dtype_t dtype, int rank, const int64_t* dims,
                                   double diagonal) {
  static uint32_t random = 5;
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, dims}, &tensor));
  const int parts = parts_of(&tensor);
  const int64_t columns = dims[rank - 1], rows = dims[rank - 2];
  for (int64_t at = 0; at < tensor.count * parts; ++at) {
    random = random * 1664525u + 1013904223u;
    const int64_t element = at / parts, row = element / columns % rows;
    double value = (double)(random >> 8) / 0x1p24 - 0.5;
    if (element % columns == row && at % parts == 0) value += diagonal;
    set_part(&tensor, at, value);
  }
  return tensor;
}

static double tolerance_of(rn_dtype_t dtype) {
  return dtype == RN_DOUBLE || dtype == RN_COMPLEX128 ? 1e-9 : 2e-3;
}

static void expect_close(const char* op, const rn_tensor_t* x, const rn_tensor_t* y, int64_t n) {
  cr_assert_eq(x->count, y->count);
  double most = 1;
  for (int64_t i = 0; i < x->count * parts_of(x); ++i)
    if (fabs(part_at(x, i)) > most && isfinite(part_at(x, i))) most = fabs(part_at(x, i));
  for (int64_t i = 0; i < x->count * parts_of(x); ++i) {
    double a = part_at(x, i), b = part_at(y, i);
    if (isnan(a) && isnan(b)) continue;
    cr_assert(fabs(a - b) <= tolerance_of(x->dtype) * most,
              "%s of size %d, type %d: [%d] is %.9g on the CPU and %.9g on the GPU", op, (int)n,
              (int)x->dtype, (int)i, a, b);
  }
}

static rn_status_t run_both(pair_of_nodes_t* pair, const rn_tensor_t* a, const rn_tensor_t* b,
                            rt_step_t* step) {
  rt_feed(step, pair->in[0], a);
  if (b) rt_feed(step, pair->in[1], b);
  for (int d = 0; d < 2; ++d)
    for (int o = 0; o < pair->op->outputs; ++o) rt_fetch(step, (rn_edge_t){pair->nodes[d], o});
  return rt_run(&pair->rt, step);
}

// Compares all outputs. |b| may be NULL.
static void compare(pair_of_nodes_t* pair, const rn_tensor_t* a, const rn_tensor_t* b) {
  rt_step_t step = {0};
  OK(run_both(pair, a, b, &step));
  const int outputs = pair->op->outputs;
  for (int o = 0; o < outputs; ++o)
    expect_close(pair->op->name, &step.out[o], &step.out[outputs + o],
                 rn_tensor_dim(a, a->rank - 1));
  rt_clear(&step);
}

static const rn_dtype_t types[] = {RN_DOUBLE, RN_FLOAT, RN_COMPLEX64, RN_COMPLEX128};
static const int64_t sizes[] = {1, 3, 64, 129, 200};
#define EACH(i, array) for (size_t i = 0; i < sizeof(array) / sizeof *(array); ++i)

// Ops of one square matrix; the diagonal makes them well-conditioned, and positive definite where
// only the lower triangle is read.
static void check_squares(const linalg_op_t* op) {
  EACH(t, types) {
    pair_of_nodes_t pair = begin(op, types[t]);
    EACH(s, sizes) {
      const int64_t n = sizes[s], dims[3] = {2, n, n};
      rn_tensor_t a = random_matrices(types[t], 3, dims, 1 + (double)n / 2);
      compare(&pair, &a, NULL);
      rn_tensor_clear(&a);
    }
    rt_end(&pair.rt);
  }
}

RT_TEST(gpu_linalg, cholesky) { check_squares(&(linalg_op_t){"Cholesky", 1, 1, {NULL}, {false}}); }
RT_TEST(gpu_linalg, log_determinants) {
  check_squares(&(linalg_op_t){"LogMatrixDeterminant", 1, 2, {NULL}, {false}});
}
RT_TEST(gpu_linalg, inverses) {
  for (int adjoint = 0; adjoint < 2; ++adjoint)
    check_squares(&(linalg_op_t){"MatrixInverse", 1, 1, {"adjoint"}, {adjoint}});
}

RT_TEST(gpu_linalg, matrices_that_are_not_positive_give_nan) {
  const linalg_op_t op = {"Cholesky", 1, 1, {NULL}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
  EACH(s, sizes) {
    const int64_t n = sizes[s], dims[3] = {2, n, n};
    rn_tensor_t a = random_matrices(RN_DOUBLE, 3, dims, 1 + (double)n / 2);
    set_part(&a, n * n - 1, -1);  // the last element of the first matrix
    compare(&pair, &a, NULL);
    rn_tensor_clear(&a);
  }
  rt_end(&pair.rt);
}

RT_TEST(gpu_linalg, solutions) {
  for (int adjoint = 0; adjoint < 2; ++adjoint) {
    const linalg_op_t op = {"MatrixSolve", 2, 1, {"adjoint"}, {adjoint}};
    EACH(t, types) {
      pair_of_nodes_t pair = begin(&op, types[t]);
      EACH(s, sizes) {
        const int64_t n = sizes[s], a_dims[3] = {2, n, n}, b_dims[3] = {2, n, 35};
        // A small diagonal, so that rows are exchanged.
        rn_tensor_t a = random_matrices(types[t], 3, a_dims, 0.1);
        rn_tensor_t b = random_matrices(types[t], 3, b_dims, 0);
        if (types[t] == RN_DOUBLE || types[t] == RN_COMPLEX128) compare(&pair, &a, &b);
        rn_tensor_clear(&a);
        a = random_matrices(types[t], 3, a_dims, 1 + (double)n / 2);
        compare(&pair, &a, &b);
        rn_tensor_clear(&a);
        rn_tensor_clear(&b);
      }
      rt_end(&pair.rt);
    }
  }
}

RT_TEST(gpu_linalg, singular_matrices_are_errors) {
  const linalg_op_t op = {"MatrixSolve", 2, 1, {NULL}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
  EACH(s, sizes) {
    const int64_t n = sizes[s], dims[2] = {n, n};
    rn_tensor_t a = random_matrices(RN_DOUBLE, 2, dims, 1);
    for (int64_t i = 0; i < n; ++i) set_part(&a, i * n + n / 2, 0);
    rt_step_t step = {0};
    rt_feed(&step, pair.in[0], &a);
    rt_feed(&step, pair.in[1], &a);
    rt_fetch(&step, (rn_edge_t){pair.nodes[1], 0});
    FAILS_WITH(rt_run(&pair.rt, &step), INVALID_ARGUMENT, "Input matrix is not invertible.");
    rn_tensor_clear(&a);
  }
  rt_end(&pair.rt);
}

RT_TEST(gpu_linalg, triangles) {
  for (int way = 0; way < 4; ++way) {
    const linalg_op_t op = {
        "MatrixTriangularSolve", 2, 1, {"lower", "adjoint"}, {way & 1, way & 2}};
    EACH(t, types) {
      pair_of_nodes_t pair = begin(&op, types[t]);
      EACH(s, sizes) {
        const int64_t n = sizes[s], a_dims[3] = {2, n, n}, b_dims[4] = {3, 1, n, 5};
        rn_tensor_t a = random_matrices(types[t], 3, a_dims, 1 + (double)n / 2);
        rn_tensor_t b = random_matrices(types[t], 4, b_dims, 0);
        compare(&pair, &a, &b);
        rn_tensor_clear(&a);
        rn_tensor_clear(&b);
      }
      rt_end(&pair.rt);
    }
  }
}

RT_TEST(gpu_linalg, qr) {
  for (int full = 0; full < 2; ++full) {
    const linalg_op_t op = {"Qr", 1, 2, {"full_matrices"}, {full}};
    pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
    for (int way = 0; way < 4; ++way) {
      const bool is_wide = way & 1, is_large = way & 2;
      const int64_t few = is_large ? 129 : 30, many = is_large ? 150 : 70;
      const int64_t dims[3] = {2, is_wide ? few : many, is_wide ? many : few};
      rn_tensor_t a = random_matrices(RN_DOUBLE, 3, dims, 0);
      compare(&pair, &a, NULL);
      rn_tensor_clear(&a);
    }
    rt_end(&pair.rt);
  }
}

// |a| is m x n, and q has columns that should be orthonormal.
static void expect_orthonormal(const rn_tensor_t* q, int64_t rows, int64_t columns) {
  for (int64_t x = 0; x < columns; ++x) {
    for (int64_t y = 0; y <= x; ++y) {
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i)
        sum += part_at(q, i * columns + x) * part_at(q, i * columns + y);
      cr_assert_float_eq(sum, x == y ? 1 : 0, 1e-10);
    }
  }
}

// Vectors are only known up to their signs, so they are checked by what they are for.
static void check_singular_values(int64_t m, int64_t n, bool is_full) {
  const linalg_op_t op = {"Svd", 1, 3, {"full_matrices"}, {is_full}};
  pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
  const int64_t dims[2] = {m, n}, least = m < n ? m : n;
  rn_tensor_t a = random_matrices(RN_DOUBLE, 2, dims, 0);
  rt_step_t step = {0};
  OK(run_both(&pair, &a, NULL, &step));
  const rn_tensor_t *s = &step.out[3], *u = &step.out[4], *v = &step.out[5];
  expect_close("Svd", &step.out[0], s, n);
  const int64_t u_width = is_full ? m : least, v_width = is_full ? n : least;
  expect_orthonormal(u, m, u_width);
  expect_orthonormal(v, n, v_width);
  for (int64_t at = 0; at < m * n; ++at) {
    double sum = 0;
    for (int64_t k = 0; k < least; ++k)
      sum += part_at(u, at / n * u_width + k) * part_at(s, k) * part_at(v, at % n * v_width + k);
    cr_assert_float_eq(sum, part_at(&a, at), 1e-10);
  }
  rt_clear(&step);
  rn_tensor_clear(&a);
  rt_end(&pair.rt);
}

RT_TEST(gpu_linalg, singular_values) {
  check_singular_values(40, 21, false);
  check_singular_values(21, 40, true);
}
Test(gpu_linalg, singular_values_of_large_matrices, .timeout = 240) {
  check_singular_values(129, 135, false);
  check_singular_values(135, 129, true);
}

static void check_eigenvalues(int64_t n) {
  const linalg_op_t op = {"SelfAdjointEigV2", 1, 2, {NULL}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
  const int64_t dims[2] = {n, n};
  rn_tensor_t a = random_matrices(RN_DOUBLE, 2, dims, 0);
  rt_step_t step = {0};
  OK(run_both(&pair, &a, NULL, &step));
  const rn_tensor_t *d = &step.out[2], *v = &step.out[3];
  expect_close("SelfAdjointEigV2", &step.out[0], d, n);
  expect_orthonormal(v, n, n);
  for (int64_t at = 0; at < n * n; ++at) {
    const int64_t i = at / n, j = at % n;
    double sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += part_at(v, i * n + k) * part_at(d, k) * part_at(v, j * n + k);
    cr_assert_float_eq(sum, part_at(&a, i > j ? at : j * n + i), 1e-10);
  }
  rt_clear(&step);
  rn_tensor_clear(&a);
  rt_end(&pair.rt);
}

// As on the CPU, whatever computes.
Test(gpu_linalg, numbers_that_are_not_finite, .timeout = 240) {
  const linalg_op_t op = {"SelfAdjointEigV2", 1, 2, {NULL}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_DOUBLE);
  const int64_t n = 131, dims[2] = {n, n};
  rn_tensor_t a = random_matrices(RN_DOUBLE, 2, dims, 0);
  set_part(&a, 5 * n + 3, NAN);
  rt_step_t step = {0};
  rt_feed(&step, pair.in[0], &a);
  rt_fetch(&step, (rn_edge_t){pair.nodes[1], 0});
  FAILS_WITH(rt_run(&pair.rt, &step), INVALID_ARGUMENT, "decomposition was not successful");
  rn_tensor_clear(&a);
  rt_end(&pair.rt);
}

// Without it, the test says nothing about layouts.
RT_TEST(gpu_linalg, large_matrices_are_factored_by_the_library) {
  if (!getenv("RN_TEST_CUSOLVER")) return;
  const linalg_op_t op = {"Cholesky", 1, 1, {NULL}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_FLOAT);
  const int64_t dims[2] = {130, 130};
  rn_tensor_t a = random_matrices(RN_FLOAT, 2, dims, 100);
  compare(&pair, &a, NULL);
  cr_expect_eq(choices_ask("libcusolver.so.12", "emulated_cusolver_count", ""), 1);
  rn_tensor_clear(&a);
  rt_end(&pair.rt);
}

// Factors that the library computes are part of a recorded step.
RT_TEST(gpu_linalg, factors_are_recorded) {
  const int64_t dims[2] = {130, 130};
  rt_t rt = rt_begin(1);
  rn_tensor_t a = random_matrices(RN_FLOAT, 2, dims, 100);
  rn_edge_t fed = rt_placeholder(&rt, "x"), axes = rn_const_int32_list(rt.s, (int32_t[]){0, 1}, 2);
  rn_edge_t x = rn_Reshape(rt.s, fed, rn_const_int32_list(rt.s, NULL, 0));
  rn_edge_t scaled = rn_Mul(rt.s, rn_const(rt.s, RN_FLOAT, dims, 2, a.data), x);
  rn_edge_t logs = rn_LogMatrixDeterminant(rt.s, scaled).log_abs_determinant;
  rn_edge_t y = rn_AddV2(rt.s, logs, rn_Sum(rt.s, rn_Cholesky(rt.s, scaled), axes));
  float first[5];
  for (int turn = 0; turn < 5; ++turn) first[turn] = rt_get(&rt, y, fed, (float)turn + 1);
  cr_expect_neq(first[0], first[1]);
  const bool counts = getenv("RN_TEST_CUSOLVER");
  const int before = counts ? choices_ask("libcusolver.so.12", "emulated_cusolver_count", "") : 0;
  for (int turn = 0; turn < 5; ++turn)
    cr_expect_float_eq(rt_get(&rt, y, fed, (float)turn + 1), first[turn], 1e-3f * first[turn]);
  if (counts) cr_expect_eq(choices_ask("libcusolver.so.12", "emulated_cusolver_count", ""), before);
  rn_tensor_clear(&a);
  rt_end(&rt);
}

RT_TEST(gpu_linalg, eigenvalues) { check_eigenvalues(37); }
Test(gpu_linalg, eigenvalues_of_large_matrices, .timeout = 240) { check_eigenvalues(131); }

// Hermitian matrices have real eigenvalues, and phases in their rotations.
Test(gpu_linalg, eigenvalues_of_complex_matrices, .timeout = 240) {
  const linalg_op_t op = {"SelfAdjointEigV2", 1, 1, {"compute_v"}, {false}};
  pair_of_nodes_t pair = begin(&op, RN_COMPLEX64);
  for (int64_t n = 19; n < 200; n += 111) {
    const int64_t dims[2] = {n, n};
    rn_tensor_t a = random_matrices(RN_COMPLEX64, 2, dims, 0);
    compare(&pair, &a, NULL);
    rn_tensor_clear(&a);
  }
  rt_end(&pair.rt);
}
