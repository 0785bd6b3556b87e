// BatchFunction: calls of nodes and steps that become one call of a function.
#include "function_util.h"
#include "runnel/gradients.h"

// x * captured + the number of rows that the function sees
static void make_batched(rt_t* rt) {
  fn_t fn = fn_begin(rt, 2);
  rn_edge_t rows = rn_Cast(fn.s, rn_Size(fn.s, fn.args[0]), RN_FLOAT);
  fn_end(&fn, rt, "batched", rn_Add(fn.s, rn_Mul(fn.s, fn.args[0], fn.args[1]), rows));
}

static rn_edge_t vector(rn_scope_t* s, int count, float first) {
  float values[8];
  int64_t dim = count;
  for (int i = 0; i < count; ++i) values[i] = first + (float)i;
  return rn_const(s, RN_FLOAT, &dim, 1, values);
}

typedef struct batch_spec_t {
  int64_t most_rows, timeout_us;
  const int64_t* sizes;
  int size_count;
  const char* function;
  bool splits;
} batch_spec_t;

static rn_edge_t batched(rt_t* rt, const batch_spec_t* spec, rn_edge_t x) {
  rn_scope_t* s = rt->s;
  rn_edge_t ten = rn_const_float(s, 10);
  rn_op_begin(s, "BatchFunction");
  rn_op_input_list(s, &x, 1);
  rn_op_input_list(s, &ten, 1);
  rn_op_attr_func(s, "f", spec->function ? spec->function : "batched");
  rn_op_attr_int(s, "num_batch_threads", 2);
  rn_op_attr_int(s, "max_batch_size", spec->most_rows);
  rn_op_attr_int(s, "batch_timeout_micros", spec->timeout_us);
  rn_op_attr_int_list(s, "allowed_batch_sizes", spec->sizes, spec->size_count);
  rn_op_attr_string(s, "shared_name", "q");
  rn_op_attr_bool(s, "enable_large_batch_splitting", spec->splits);
  rn_op_attr_type_list(s, "Tout", one_float, 1);
  rn_edge_t y = {rn_op_finish(s), 0};
  return rn_Sum(s, y, rn_const_int32(s, 0));
}

#define LONG 600000000  // ten minutes, in microseconds

// Two nodes of a step fill a batch, which then need not wait.
RT_TEST(batch, is_full) {
  rt_t rt = rt_begin(2);
  make_batched(&rt);
  batch_spec_t spec = {.most_rows = 5, .timeout_us = LONG};
  rn_edge_t a = batched(&rt, &spec, vector(rt.s, 2, 1)),
            b = batched(&rt, &spec, vector(rt.s, 3, 3));
  float sum =
      rt_get(&rt, rn_Add(rt.s, a, rn_Mul(rt.s, b, rn_const_float(rt.s, 1000))), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 40 + 135 * 1000, "%g", (double)sum);
  rt_end(&rt);
}

// A batch that does not fill runs after its time, padded to the next size.
RT_TEST(batch, waits_and_pads) {
  rt_t rt = rt_begin(1);
  make_batched(&rt);
  batch_spec_t spec = {
      .most_rows = 4, .timeout_us = 1000, .sizes = (const int64_t[]){2, 4}, .size_count = 2};
  cr_expect_eq(rt_get(&rt, batched(&rt, &spec, vector(rt.s, 1, 7)), RN_NO_EDGE, 0), 72);
  cr_expect_eq(rt_get(&rt, batched(&rt, &spec, vector(rt.s, 3, 1)), RN_NO_EDGE, 0), 72);
  rt_end(&rt);
}

RT_TEST(batch, errors) {
  rt_t rt = rt_begin(1);
  make_batched(&rt);
  fn_t fn = fn_begin(&rt, 2);
  fn_end(&fn, &rt, "scalar", rn_Sum(fn.s, fn.args[0], rn_const_int32(fn.s, 0)));
  batch_spec_t spec = {.most_rows = 2, .timeout_us = 1000};
  FAILS_WITH(rt_try(&rt, batched(&rt, &spec, vector(rt.s, 3, 1))), INVALID_ARGUMENT,
             "Task size 3 is larger than maximum input batch size 2");
  FAILS_WITH(rt_try(&rt, batched(&rt, &spec, rn_const_float(rt.s, 1))), INVALID_ARGUMENT,
             "must have at least one dimension");
  rt_end(&rt);
  rt = rt_begin(1);
  fn = fn_begin(&rt, 2);
  fn_end(&fn, &rt, "scalar", rn_Sum(fn.s, fn.args[0], rn_const_int32(fn.s, 0)));
  spec.function = "scalar";
  FAILS_WITH(rt_try(&rt, batched(&rt, &spec, vector(rt.s, 1, 1))), FAILED_PRECONDITION,
             "Batched output tensor has 0 dimensions");
  fn = fn_begin(&rt, 3);
  fn_end(&fn, &rt, "three", rn_Add(fn.s, fn.args[0], fn.args[2]));
  spec.function = "three";
  FAILS_WITH(rt_try(&rt, batched(&rt, &spec, vector(rt.s, 1, 1))), INVALID_ARGUMENT,
             "Function takes 3 argument(s) but 2 argument(s) were passed");
  batch_spec_t sizes = {
      .most_rows = 4, .timeout_us = 1, .sizes = (const int64_t[]){3, 2}, .size_count = 2};
  FAILS_WITH(rt_try(&rt, batched(&rt, &sizes, vector(rt.s, 1, 1))), INVALID_ARGUMENT,
             "monotonically increasing");
  rt_end(&rt);
}

// A call that waits in a batch ends with its step; the batch goes on without it.
RT_TEST(batch, is_cancelled) {
  rt_t rt = rt_begin(2);
  make_batched(&rt);
  batch_spec_t spec = {.most_rows = 4, .timeout_us = LONG};
  rn_edge_t y = batched(&rt, &spec, vector(rt.s, 1, 1));
  rt_step_t late = {.options = {.timeout_ms = 30}};
  rt_fetch(&late, y);
  FAILS_WITH(rt_run(&rt, &late), DEADLINE_EXCEEDED, "");
  rn_edge_t full = batched(&rt, &spec, vector(rt.s, 4, 1));
  cr_expect_eq(rt_get(&rt, full, RN_NO_EDGE, 0), 116);
  rt_end(&rt);
}

typedef struct client_t {
  rt_t* rt;
  rn_edge_t x, y;
  int errors;
} client_t;

static void* client_main(void* arg) {
  client_t* client = arg;
  for (int i = 0; i < 50; ++i) {
    rt_step_t step = {0};
    float value = (float)i;
    rn_tensor_t fed = rt_floats(1, &value);
    rt_feed(&step, client->x, &fed);
    rt_fetch(&step, client->y);
    rn_status_t status = rt_run(client->rt, &step);
    float got = rn_ok(status) ? rt_value(&step.out[0]) - 10 * value : 0;
    client->errors += got != 2 && got != 4;  // the sizes that batches are padded to
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  return NULL;
}

// Several clients at once.
RT_TEST(batch, of_many_steps) {
  enum { CLIENTS = 4 };
  rt_t rt = rt_begin(2);
  make_batched(&rt);
  batch_spec_t spec = {
      .most_rows = 4, .timeout_us = 2000, .sizes = (const int64_t[]){2, 4}, .size_count = 2};
  rn_edge_t x = rt_placeholder(&rt, "x"), y = batched(&rt, &spec, x);
  client_t clients[CLIENTS];
  pthread_t threads[CLIENTS];
  rt_session(&rt);
  for (int i = 0; i < CLIENTS; ++i) {
    clients[i] = (client_t){&rt, x, y, 0};
    cr_assert_eq(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
  }
  for (int i = 0; i < CLIENTS; ++i) {
    pthread_join(threads[i], NULL);
    cr_expect_eq(clients[i].errors, 0);
  }
  rt_end(&rt);
}

// A call that is larger than a batch is divided: 2 rows with those of the other node, 3 and 3.
RT_TEST(batch, splits) {
  rt_t rt = rt_begin(2);
  make_batched(&rt);
  batch_spec_t spec = {.most_rows = 8,
                       .timeout_us = 1000,
                       .sizes = (const int64_t[]){3},
                       .size_count = 1,
                       .splits = true};
  // Sum of 10 x, and 3 for every row, because every batch has three rows.
  float sum = rt_get(&rt, batched(&rt, &spec, vector(rt.s, 8, 1)), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 360 + 8 * 3, "%g", (double)sum);
  rn_edge_t a = batched(&rt, &spec, vector(rt.s, 1, 1)),
            b = batched(&rt, &spec, vector(rt.s, 7, 1));
  sum = rt_get(&rt, rn_Add(rt.s, a, rn_Mul(rt.s, b, rn_const_float(rt.s, 1000))), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 13 + (280 + 7 * 3) * 1000, "%g", (double)sum);
  rt_end(&rt);
}

// 3 x by way of Batch and Unbatch, in batches of |rows|.
static rn_edge_t through(rt_t* rt, rn_edge_t x, int64_t rows) {
  rn_scope_t* s = rt->s;
  rn_op_begin(s, "Batch");
  rn_op_input_list(s, &x, 1);
  rn_op_attr_int(s, "num_batch_threads", 1);
  rn_op_attr_int(s, "max_batch_size", rows);
  rn_op_attr_int(s, "batch_timeout_micros", LONG);
  rn_op_attr_int(s, "grad_timeout_micros", LONG);
  rn_op_attr_string(s, "shared_name", "b");
  rn_node_t* node = rn_op_finish(s);
  rn_edge_t all = {node, 0}, table = {node, 1}, id = {node, 2};
  rn_edge_t y = rn_Mul(s, all, rn_const_float(s, 3));
  return rn_Unbatch(s, y, table, id, LONG, .shared_name = "u");
}

static rn_edge_t plus_hundred_times(rn_scope_t* s, rn_edge_t a, rn_edge_t b) {
  rn_edge_t zero = rn_const_int32(s, 0), hundred = rn_const_float(s, 100);
  return rn_Add(s, rn_Sum(s, a, zero), rn_Mul(s, rn_Sum(s, b, zero), hundred));
}

// Each of two nodes gets its own rows back.
RT_TEST(batch, unbatch) {
  rt_t rt = rt_begin(2);
  rn_edge_t a = through(&rt, vector(rt.s, 2, 1), 5), b = through(&rt, vector(rt.s, 3, 10), 5);
  float sum = rt_get(&rt, plus_hundred_times(rt.s, a, b), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 9 + 99 * 100, "%g", (double)sum);
  rt_end(&rt);
}

RT_TEST(batch, gradient) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = vector(rt.s, 2, 1), y = through(&rt, x, 2);
  rn_edge_t half = rn_Mul(rt.s, rn_Mul(rt.s, y, y), rn_const_float(rt.s, 0.5f));
  rn_gradient_t dx;
  cr_assert(rn_gradients_of(rt.s, &half, 1, &x, 1, NULL, &dx), "%s", rn_scope_message(rt.s));
  float sum = rt_get(&rt, rn_Sum(rt.s, dx.dense, rn_const_int32(rt.s, 0)), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 27, "%g", (double)sum);  // 9 x
  rt_end(&rt);
}

// The node with the batch waits for the gradient that the other one brings.
RT_TEST(batch, unbatch_grad_waits) {
  rt_t rt = rt_begin(2);
  rn_scope_t* s = rt.s;
  const int64_t lines[] = {7, 0, 2, 8, 2, 5}, two[] = {2, 3}, none[] = {0, 3};
  rn_edge_t table = rn_const(s, RN_INT64, two, 2, lines);
  rn_edge_t no_table = rn_const(s, RN_INT64, none, 2, lines);
  rn_edge_t first = rn_const_scalar(s, RN_INT64, 7), second = rn_const_scalar(s, RN_INT64, 8);
  rn_edge_t all = vector(s, 5, 0), nothing = vector(s, 0, 0);
  rn_edge_t a = rn_UnbatchGrad(s, nothing, no_table, vector(s, 2, 1), first, .shared_name = "g");
  rn_edge_t b = rn_UnbatchGrad(s, all, table, vector(s, 3, 10), second, .shared_name = "g");
  float sum = rt_get(&rt, plus_hundred_times(s, a, b), RN_NO_EDGE, 0);
  cr_expect_eq(sum, 36 * 100, "%g", (double)sum);
  rt_end(&rt);
}
