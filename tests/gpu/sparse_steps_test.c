// Steps with gradients of rows (IndexedSlices): repeated indices are summed up, and the host waits
// for no number of distinct ones, so that every step is one graph.
#include "counts.h"
#include "runnel/gradients.h"
#include "runnel/nn.h"
#include "runnel/train.h"
#include "runnel/variables.h"
#include "util.h"

enum { WORDS = 9, UNITS = 3, STEPS = 8 };

// Embeds words, some of them twice, and trains the table.
static void train(const char* device, rn_optimizer_t optimizer, bool is_fed, float* losses) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  rn_scope_set_device(s, device);
  const int64_t dims[] = {WORDS, UNITS}, count = 7;
  int64_t ids[] = {3, 1, 3, 8, 0, 1, 3};
  const rn_var_t* table =
      rn_get_variable(s, "table", dims, 2, .initializer = rn_init_uniform(-0.5, 0.5, 3));
  cr_assert(table, "%s", rn_scope_message(s));
  rn_edge_t words = is_fed ? rn_Placeholder(s, RN_INT64, .shape = RN_SET_SHAPE(&count, 1))
                           : rn_const(s, RN_INT64, &count, 1, ids);
  rn_edge_t rows = rn_embedding_lookup(s, &table, 1, words, false);
  rn_edge_t both = rn_const_int32_list(s, (int32_t[]){0, 1}, 2);
  rn_edge_t loss = rn_Sum(s, rn_Square(s, rn_Sub(s, rows, rn_const_float(s, 0.25f))), both);
  rn_node_t* step = rn_minimize(s, optimizer, loss);
  rt_do(&rt, rn_initialize_variables(s, RN_GLOBAL_VARIABLES));
  int64_t before = 0;
  for (int i = 0; i < STEPS; ++i) {
    if (i == 3) before = (int64_t)emulated_count("cuLaunchKernel");
    rt_step_t run = {0};
    rn_tensor_t fed;
    OK(rn_tensor_create(rn_allocator_system(), RN_INT64, (rn_shape_t){1, &count}, &fed));
    ids[i % count] = 5 + i % 2;  // the number of distinct words changes
    memcpy(fed.data, ids, sizeof ids);
    if (is_fed) rt_feed(&run, words, &fed);
    rt_fetch(&run, loss);
    rt_target(&run, step);
    OK(rt_run(&rt, &run));
    losses[i] = rt_value(&run.out[0]);
    rt_clear(&run);
    rn_tensor_clear(&fed);
  }
  if (strstr(device, "gpu") && before)
    cr_assert_eq((int64_t)emulated_count("cuLaunchKernel"), before, "every step is a graph");
  rt_end(&rt);
}

static void expect_same(rn_optimizer_t optimizer, bool is_fed, const char* what) {
  float cpu[STEPS], gpu[STEPS];
  train("/cpu:0", optimizer, is_fed, cpu);
  train("/gpu:0", optimizer, is_fed, gpu);
  for (int i = 0; i < STEPS; ++i)
    cr_assert_float_eq(gpu[i], cpu[i], 1e-5, "%s, step %d: %g and %g", what, i, (double)gpu[i],
                       (double)cpu[i]);
}

RT_TEST(sparse_steps, adagrad) {
  expect_same(rn_adagrad(.learning_rate = 0.1f), true, "Adagrad");
  expect_same(rn_adagrad(.learning_rate = 0.1f), false, "Adagrad of constant indices");
}

// The moments are assigned, and rows are added to them.
RT_TEST(sparse_steps, adam) { expect_same(rn_adam(.learning_rate = 0.05f), true, "Adam"); }

RT_TEST(sparse_steps, gradient_descent) {
  expect_same(rn_gradient_descent(.learning_rate = 0.05f), true, "gradient descent");
}
