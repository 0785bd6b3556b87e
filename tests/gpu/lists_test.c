// Tensor lists and CSR matrices of a GPU, emulated here, that a client fetches: they are in host
// memory, and outlive the session.
#include <math.h>

#include "util.h"

static rn_edge_t list_on_gpu(rt_t* rt, const float* values, int64_t count) {
  const int32_t none = 0;
  rn_scope_set_device(rt->s, "/gpu:0");
  rn_edge_t tensor = rn_Tanh(rt->s, rn_const(rt->s, RN_FLOAT, &count, 1, values));
  rn_edge_t list = rn_TensorListFromTensor(rt->s, tensor, rn_const_int32_list(rt->s, &none, 0));
  rn_scope_set_device(rt->s, NULL);
  return list;
}

// The elements of the list |fetched|, by a session without GPUs.
static void check_list(const rn_tensor_t* fetched, const float* wanted, int64_t count) {
  const int32_t none = 0;
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  rt.options.gpu.max_count = 0;
  rn_edge_t list = rn_Placeholder(rt.s, RN_VARIANT);
  rt_feed(&step, list, fetched);
  rt_fetch(&step, rn_TensorListStack(rt.s, list, rn_const_int32_list(rt.s, &none, 0), RN_FLOAT));
  OK(rt_run(&rt, &step));
  cr_assert_eq(step.out[0].count, count);
  for (int64_t i = 0; i < count; ++i)
    cr_assert_float_eq(RN_DATA(&step.out[0], float)[i], tanhf(wanted[i]), 1e-6);
  rt_clear(&step);
  rt_end(&rt);
}

RT_TEST(gpu_lists, outlive_the_session) {
  const float values[] = {0, 0.5f, 1, -2, 3};
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  rt_fetch(&step, list_on_gpu(&rt, values, 5));
  OK(rt_run(&rt, &step));
  rt_end(&rt);
  check_list(&step.out[0], values, 5);
  rt_clear(&step);
}

// Lists in a list are brought along.
RT_TEST(gpu_lists, nested) {
  const float values[] = {1, 2, 3};
  const int32_t none = 0;
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  rn_edge_t inner = list_on_gpu(&rt, values, 3);
  rn_scope_set_device(rt.s, "/gpu:0");
  rn_edge_t outer = rn_EmptyTensorList(rt.s, rn_const_int32_list(rt.s, &none, 0),
                                       rn_const_int32(rt.s, -1), RN_VARIANT);
  rt_fetch(&step, rn_TensorListPushBack(rt.s, outer, inner));
  OK(rt_run(&rt, &step));
  rt_end(&rt);
  rt_t other = rt_begin(1);
  rt_step_t pop = {0};
  other.options.gpu.max_count = 0;
  rn_edge_t list = rn_Placeholder(other.s, RN_VARIANT);
  rt_feed(&pop, list, &step.out[0]);
  rt_fetch(&pop, rn_TensorListGetItem(other.s, list, rn_const_int32(other.s, 0),
                                      rn_const_int32_list(other.s, &none, 0), RN_VARIANT));
  OK(rt_run(&other, &pop));
  rt_clear(&step);
  check_list(&pop.out[0], values, 3);
  rt_clear(&pop);
  rt_end(&other);
}

// CSR matrices of a GPU: a sum is computed by the host, and a client may fetch them, too.
RT_TEST(gpu_csr, sums_and_fetches) {
  const int64_t dims[2] = {2, 3}, places[2] = {3, 2}, indices[6] = {0, 0, 1, 0, 1, 2};
  const float values[6] = {1, 9, 9, 2, 9, 3}, wanted[6] = {2, 0, 0, 4, 0, 6};
  rt_t rt = rt_begin(1);
  rt_step_t step = {0}, next = {0};
  rn_scope_set_device(rt.s, "/gpu:0");
  rn_edge_t dense = rn_const(rt.s, RN_FLOAT, dims, 2, values), both[2];
  for (int i = 0; i < 2; ++i)
    both[i] = rn_DenseToCSRSparseMatrix(rt.s, dense, rn_const(rt.s, RN_INT64, places, 2, indices));
  rn_edge_t sum = rn_AddN(rt.s, both, 2);
  rt_fetch(&step, rn_CSRSparseMatrixToDense(rt.s, sum, RN_FLOAT));
  rt_fetch(&step, both[0]);
  OK(rt_run(&rt, &step));
  rt_end(&rt);
  for (int i = 0; i < 6; ++i) cr_assert_eq(RN_DATA(&step.out[0], float)[i], wanted[i]);
  rt = rt_begin(1);
  rt.options.gpu.max_count = 0;
  rn_edge_t fed = rn_Placeholder(rt.s, RN_VARIANT);
  rt_feed(&next, fed, &step.out[1]);
  rt_fetch(&next, rn_CSRSparseMatrixToDense(rt.s, fed, RN_FLOAT));
  OK(rt_run(&rt, &next));
  for (int i = 0; i < 6; ++i) cr_assert_eq(RN_DATA(&next.out[0], float)[i], wanted[i] / 2);
  rt_clear(&next);
  rt_clear(&step);
  rt_end(&rt);
}

// A matrix of 2 x 4 on the GPU, with the numbers of |dense| at |count| places.
static rn_edge_t csr_of(rt_t* rt, rn_edge_t dense, const int64_t* places, int64_t count) {
  const int64_t dims[2] = {count, 2};
  return rn_DenseToCSRSparseMatrix(rt->s, dense, rn_const(rt->s, RN_INT64, dims, 2, places));
}

// Only GPUs have these ops, in stock, too.
RT_TEST(gpu_csr, values) {
  enum { SUM, SCALED, SOFTMAX, GRAD, ZEROS, OUTPUTS };
  static const int64_t dims[2] = {2, 4}, at_a[8] = {0, 0, 0, 2, 1, 3, 1, 1},
                       at_b[8] = {0, 1, 0, 2, 1, 1, 1, 2};
  static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {8, 7, 6, 5, 4, 3, 2, 1};
  rt_t rt = rt_begin(1);
  rt_step_t step = {0};
  rn_scope_set_device(rt.s, "/gpu:0");
  rn_edge_t a = csr_of(&rt, rn_const(rt.s, RN_FLOAT, dims, 2, x), at_a, 4);
  rn_edge_t b = csr_of(&rt, rn_const(rt.s, RN_FLOAT, dims, 2, y), at_b, 4), softmax;
  rn_edge_t two = rn_const_float(rt.s, 2), three = rn_const_float(rt.s, 3);
  softmax = rn_SparseMatrixSoftmax(rt.s, a, RN_FLOAT);
  const rn_edge_t all[OUTPUTS] = {
      [SUM] = rn_SparseMatrixAdd(rt.s, a, b, two, three),
      [SCALED] = rn_SparseMatrixMul(rt.s, a, three),
      [SOFTMAX] = softmax,
      [GRAD] = rn_SparseMatrixSoftmaxGrad(rt.s, softmax, b, RN_FLOAT),
      [ZEROS] =
          rn_SparseMatrixZeros(rt.s, rn_const(rt.s, RN_INT64, &(int64_t){2}, 1, dims), RN_FLOAT)};
  for (int i = 0; i < OUTPUTS; ++i)
    rt_fetch(&step, rn_CSRSparseMatrixToDense(rt.s, all[i], RN_FLOAT));
  OK(rt_run(&rt, &step));
  // Row by row: A has x0 and x2, then x7 and x5; B has y1 and y2, then y5 and y6.
  const float e = expf(2), p = 1 / (1 + e), q = e / (1 + e), r = 1 / (1 + expf(2)), s = 1 - r;
  const float dot = q * 6, other = r * 3;  // of gradients, where B has an entry of A's
  const float wanted[OUTPUTS][8] = {
      [SUM] = {2, 21, 24, 0, 0, 21, 6, 16},
      [SCALED] = {3, 0, 9, 0, 0, 18, 0, 24},
      [SOFTMAX] = {p, 0, q, 0, 0, r, 0, s},
      [GRAD] = {-p * dot, 0, q * (6 - dot), 0, 0, r * (3 - other), 0, -s * other}};
  for (int i = 0; i < OUTPUTS; ++i)
    for (int k = 0; k < 8; ++k)
      cr_expect_float_eq(RN_DATA(&step.out[i], float)[k], wanted[i][k], 1e-5f, "%d, %d: %g", i, k,
                         (double)RN_DATA(&step.out[i], float)[k]);
  rt_clear(&step);
  rt_end(&rt);
}
