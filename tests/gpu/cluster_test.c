// Clusters with GPUs, emulated here: a parameter server without one and a worker with one, in this
// process and connected over loopback. Where nodes go, values that cross tasks and devices,
// training, loops, and a GPU that is lost.
#include <math.h>
#include <stdlib.h>

#include "../support/ports.h"
#include "dist/client.h"
#include "dist/server.h"
#include "emulated_driver.h"
#include "util.h"

#define PS "/job:ps/task:0/cpu:0"
#define WORKER_CPU "/job:worker/task:0/cpu:0"
#define WORKER_GPU "/job:worker/task:0/gpu:0"
#define GPU_NAME "/job:worker/replica:0/task:0/device:GPU:0"
#define LOST 700

enum { TASK_PS, TASK_WORKER };

typedef struct cluster_t {
  char addresses[2][64];
  rn_server_task_t tasks[2];
  rn_server_t* servers[2];
  rt_t rt;
} cluster_t;

// |gpus| of the worker; -1: all.
static void cluster_open(cluster_t* c, int gpus) {
  *c = (cluster_t){.rt = rt_begin(1)};
  free_addresses(c->addresses, 2);
  static const char* const jobs[] = {"ps", "worker"};
  for (int i = 0; i < 2; ++i)
    c->tasks[i] = (rn_server_task_t){.job = rn_str(jobs[i]), .address = rn_str(c->addresses[i])};
  for (int i = 0; i < 2; ++i) {
    rn_server_options_t options = {.env = rn_env_system(),
                                   .allocator = rn_allocator_system(),
                                   .tasks = c->tasks,
                                   .task_count = 2,
                                   .job = c->tasks[i].job,
                                   .gpu = {.max_count = i == TASK_WORKER ? gpus : 0}};
    OK(rn_server_create(&options, &c->servers[i]));
    OK(rn_server_start(c->servers[i]));
  }
}

// A session of the master at |task|. |config| is a ConfigProto.
static void connect_to(cluster_t* c, int task, rn_str_t config) {
  rn_client_t* client = NULL;
  rn_client_options_t options = {.env = rn_env_system(),
                                 .allocator = rn_allocator_system(),
                                 .target = rn_str(rn_server_target(c->servers[task])),
                                 .config = config};
  cr_assert(rn_scope_ok(c->rt.s), "%s", rn_scope_message(c->rt.s));
  rn_session_destroy(c->rt.session);
  OK(rn_client_create(&options, c->rt.graph, &client));
  c->rt.session = rn_client_session(client);
}

static void cluster_close(cluster_t* c) {
  rt_end(&c->rt);
  for (int i = 0; i < 2; ++i) rn_server_destroy(c->servers[i]);
}

static void on(cluster_t* c, const char* device) { rn_scope_set_device(c->rt.s, device); }

// ConfigProtos.
#define SOFT RN_STR("\x38\x01")                     // allow_soft_placement
#define NO_GPU RN_STR("\x0a\x07\x0a\x03GPU\x10\0")  // device_count {"GPU": 0}
#define ISOLATED RN_STR("\x78\x01")                 // isolate_session_state

static int gpus_of(rn_session_t* session, rn_device_t** out) {
  rn_device_t** devices = NULL;
  int count = 0, gpus = 0;
  OK(rn_session_devices(session, &devices, &count));
  for (int i = 0; i < count; ++i)
    if (strcmp(devices[i]->type, "GPU") == 0) {
      *out = devices[i];
      gpus++;
    }
  return gpus;
}

RT_TEST(cluster, lists_gpus) {
  cluster_t c;
  cluster_open(&c, -1);
  for (int task = TASK_PS; task <= TASK_WORKER; ++task) {
    rn_device_t* gpu = NULL;
    connect_to(&c, task, RN_STR(""));
    cr_assert_eq(gpus_of(c.rt.session, &gpu), 1);
    cr_assert_str_eq(gpu->name.data, GPU_NAME);
    cr_assert_gt(gpu->memory_limit, 0);
    cr_assert_neq(gpu->incarnation, 0);
    cr_assert(gpu->description && strstr(gpu->description, "compute capability"));
    connect_to(&c, task, NO_GPU);  // which is about the client's machine
    cr_assert_eq(gpus_of(c.rt.session, &gpu), 1);
  }
  cluster_close(&c);
}

// What has no device goes to a GPU, of whichever task.
RT_TEST(cluster, prefers_gpus) {
  find_emulator();
  for (int task = TASK_PS; task <= TASK_WORKER; ++task) {
    cluster_t c;
    cluster_open(&c, -1);
    rn_edge_t x = rt_placeholder(&c.rt, "x");
    rn_edge_t y = rn_Mul(c.rt.s, rn_AddV2(c.rt.s, x, rn_const_float(c.rt.s, 1)), x);
    connect_to(&c, task, RN_STR(""));
    uint64_t before = rn_emulated_count("kernel");
    for (int turn = 0; turn < 4; ++turn)
      cr_assert_eq(rt_get(&c.rt, y, x, (float)turn), (float)((turn + 1) * turn));
    cr_assert_gt(rn_emulated_count("kernel"), before);
    cluster_close(&c);
  }
}

// Only the CPU counts up, so the variable is there in steps that do not count, too.
RT_TEST(cluster, variables_stay) {
  cluster_t c;
  cluster_open(&c, -1);
  rn_edge_t v = rn_VarHandleOp(c.rt.s, RN_INT64, RN_SHAPE_SCALAR.dims, 0);
  rn_node_t* assign = rn_AssignVariableOp(c.rt.s, v, rn_const_scalar(c.rt.s, RN_INT64, 5));
  rn_edge_t next = rn_ResourceCountUpTo(c.rt.s, v, 100, RN_INT64);
  connect_to(&c, TASK_WORKER, RN_STR(""));
  rt_do(&c.rt, assign);
  for (int64_t want = 5; want < 8; ++want) {
    rt_step_t step = {0};
    rt_fetch(&step, next);
    OK(rt_run(&c.rt, &step));
    cr_assert_eq(*RN_DATA(&step.out[0], int64_t), want);
    rt_clear(&step);
  }
  cluster_close(&c);
}

RT_TEST(cluster, values_cross) {
  static const char* const ways[][3] = {{PS, WORKER_GPU, PS},
                                        {WORKER_GPU, PS, WORKER_GPU},
                                        {WORKER_CPU, WORKER_GPU, PS},
                                        {WORKER_GPU, WORKER_CPU, PS},
                                        {PS, WORKER_GPU, WORKER_CPU}};
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
    for (int task = TASK_PS; task <= TASK_WORKER; ++task) {
      cluster_t c;
      cluster_open(&c, -1);
      rn_edge_t x = rt_placeholder(&c.rt, "x");
      on(&c, ways[w][0]);
      rn_edge_t a = rn_AddV2(c.rt.s, x, rn_const_float(c.rt.s, 1));
      on(&c, ways[w][1]);
      rn_edge_t b = rn_Mul(c.rt.s, a, a);
      // The shape is in host memory wherever the node is.
      rn_edge_t shape = rn_Shape(c.rt.s, rn_ExpandDims(c.rt.s, b, rn_const_int32(c.rt.s, 0)));
      on(&c, ways[w][2]);
      rn_edge_t d =
          rn_Sum(c.rt.s, rn_Sub(c.rt.s, rn_Fill(c.rt.s, shape, b), a), rn_const_int32(c.rt.s, 0));
      connect_to(&c, task, RN_STR(""));
      for (int turn = 0; turn < 4; ++turn) {
        float y = (float)turn + 1;
        cr_assert_eq(rt_get(&c.rt, d, x, (float)turn), y * y - y, "way %zu, task %d", w, task);
        cr_assert_eq(rt_get(&c.rt, b, x, (float)turn), y * y, "way %zu, task %d", w, task);
      }
      cluster_close(&c);
    }
  }
}

// Fits w to y = x w by gradient descent: w is on |state|, gradients come from |work|.
typedef struct fit_t {
  rn_edge_t x, y, w;
  rn_node_t *init, *train;
} fit_t;

static rn_edge_t matmul(rn_scope_t* s, rn_edge_t a, rn_edge_t b, bool transposes) {
  rn_op_begin(s, "MatMul");
  rn_op_input(s, a);
  rn_op_input(s, b);
  rn_op_attr_bool(s, "transpose_a", transposes);
  return (rn_edge_t){rn_op_finish(s), 0};
}

static fit_t fit_build(rn_scope_t* s, const char* state, const char* work) {
  fit_t fit;
  static const int64_t dims[] = {3, 2};
  rn_scope_name_next(s, "x");
  fit.x = rn_Placeholder(s, RN_FLOAT);
  rn_scope_name_next(s, "y");
  fit.y = rn_Placeholder(s, RN_FLOAT);
  rn_scope_set_device(s, state);
  rn_op_begin(s, "VariableV2");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  rn_op_attr_shape(s, "shape", dims, 2);
  fit.w = (rn_edge_t){rn_op_finish(s), 0};
  rn_edge_t start =
      rn_Fill(s, rn_Pack(s, ((rn_edge_t[]){rn_const_int32(s, 3), rn_const_int32(s, 2)}), 2),
              rn_const_float(s, 0.25f));
  fit.init = rn_Assign(s, fit.w, start).node;
  rn_scope_set_device(s, work);
  rn_edge_t error = rn_Sub(s, matmul(s, fit.x, rn_Identity(s, fit.w), false), fit.y);
  rn_edge_t slope = matmul(s, fit.x, error, true);
  rn_scope_set_device(s, state);
  fit.train = rn_ApplyGradientDescent(s, fit.w, rn_const_float(s, 0.125f), slope).node;
  rn_scope_set_device(s, NULL);
  return fit;
}

static rn_tensor_t matrix(int64_t rows, int64_t columns, int seed) {
  rn_tensor_t tensor;
  const int64_t dims[] = {rows, columns};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, dims}, &tensor));
  for (int64_t i = 0; i < tensor.count; ++i)
    RN_DATA(&tensor, float)[i] = (float)((i * 37 + seed) % 11 - 5) / 8;
  return tensor;
}

static void fit_run(rt_t* rt, const fit_t* fit, int steps, float out[6]) {
  rn_tensor_t x = matrix(4, 3, 1), y = matrix(4, 2, 5);
  rt_do(rt, fit->init);
  for (int i = 0; i < steps; ++i) {
    rt_step_t step = {0};
    rt_feed(&step, fit->x, &x);
    rt_feed(&step, fit->y, &y);
    rt_target(&step, fit->train);
    OK(rt_run(rt, &step));
  }
  rt_step_t step = {0};
  rt_fetch(&step, fit->w);
  OK(rt_run(rt, &step));
  memcpy(out, step.out[0].data, 6 * sizeof *out);
  rt_clear(&step);
  rn_tensor_clear(&x);
  rn_tensor_clear(&y);
}

static void expect_fitted(const float got[6]) {
  rt_t rt = rt_begin(1);
  rt.options.gpu.max_count = 0;
  fit_t fit = fit_build(rt.s, NULL, NULL);
  float wanted[6];
  fit_run(&rt, &fit, 20, wanted);
  for (int i = 0; i < 6; ++i)
    cr_assert_float_eq(got[i], wanted[i], 1e-5, "w[%d] is %g, not %g", i, (double)got[i],
                       (double)wanted[i]);
  rt_end(&rt);
}

RT_TEST(cluster, trains_as_the_cpu) {
  static const char* const places[][2] = {
      {PS, WORKER_GPU}, {WORKER_GPU, PS}, {WORKER_CPU, WORKER_GPU}, {WORKER_GPU, WORKER_GPU}};
  for (size_t p = 0; p < sizeof places / sizeof *places; ++p)
    for (int task = TASK_PS; task <= TASK_WORKER; ++task) {
      cluster_t c;
      float w[6];
      cluster_open(&c, -1);
      fit_t fit = fit_build(c.rt.s, places[p][0], places[p][1]);
      connect_to(&c, task, RN_STR(""));
      fit_run(&c.rt, &fit, 20, w);
      expect_fitted(w);
      cluster_close(&c);
    }
}

// The shapes of feeds and of received variables are known, so a worker's steps are recorded. Others
// may be fed later.
RT_TEST(cluster, steps_are_recorded) {
  find_emulator();
  for (int task = TASK_WORKER; task >= TASK_PS; --task) {
    cluster_t c;
    float w[6];
    cluster_open(&c, -1);
    fit_t fit = fit_build(c.rt.s, PS, WORKER_GPU);
    connect_to(&c, task, RN_STR(""));
    fit_run(&c.rt, &fit, 5, w);
    uint64_t before = rn_emulated_count("cuGraphLaunch");
    fit_run(&c.rt, &fit, 20, w);
    // Feeds are on the master's task; another gets values whose shapes depend on what is fed.
    if (task == TASK_WORKER) cr_assert_geq(rn_emulated_count("cuGraphLaunch"), before + 20);
    expect_fitted(w);
    for (int64_t rows = 1; rows < 12; ++rows) {
      rt_step_t step = {0};
      rn_tensor_t x = matrix(rows, 3, 1), y = matrix(rows, 2, 5);
      rt_feed(&step, fit.x, &x);
      rt_feed(&step, fit.y, &y);
      rt_target(&step, fit.train);
      OK(rt_run(&c.rt, &step));
      rn_tensor_clear(&x);
      rn_tensor_clear(&y);
    }
    cluster_close(&c);
  }
}

// A session with its own state has devices of its own, and ends with a step of the GPU.
RT_TEST(cluster, isolated_sessions) {
  cluster_t c;
  cluster_open(&c, -1);
  fit_t fit = fit_build(c.rt.s, WORKER_GPU, WORKER_GPU);
  for (int turn = 0; turn < 5; ++turn) {
    float w[6];
    connect_to(&c, turn % 2, ISOLATED);
    FAILS(rt_try(&c.rt, fit.w), FAILED_PRECONDITION);
    fit_run(&c.rt, &fit, 20, w);
    expect_fitted(w);
  }
  cluster_close(&c);
}

// while (i < 5) { i = i + 1; x = x * 2 + i }, with each part elsewhere.
typedef struct places_t {
  const char *loop, *cond, *body, *sum;
} places_t;
static rn_edge_t loop_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const places_t* at = arg;
  rn_scope_set_device(s, at->cond);
  rn_edge_t less = rn_Less(s, values[0], rt_const_at(s, values[0], 5));
  rn_scope_set_device(s, at->loop);
  return less;
}
static void loop_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const places_t* at = arg;
  rn_scope_set_device(s, at->body);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_edge_t twice = rn_AddV2(s, values[1], values[1]);
  rn_scope_set_device(s, at->sum);
  next[1] = rn_AddV2(s, twice, next[0]);
  rn_scope_set_device(s, at->loop);
}

RT_TEST(cluster, loops_cross) {
  static const places_t all[] = {{PS, PS, WORKER_GPU, PS},
                                 {PS, PS, WORKER_GPU, WORKER_CPU},
                                 {WORKER_GPU, PS, WORKER_CPU, PS},
                                 {WORKER_CPU, WORKER_CPU, WORKER_GPU, WORKER_CPU},
                                 {WORKER_GPU, WORKER_GPU, WORKER_GPU, PS},
                                 {WORKER_GPU, WORKER_CPU, PS, WORKER_GPU}};
  for (size_t p = 0; p < sizeof all / sizeof *all; ++p)
    for (int task = TASK_PS; task <= TASK_WORKER; ++task) {
      cluster_t c;
      cluster_open(&c, -1);
      rn_edge_t x = rt_placeholder(&c.rt, "x");
      on(&c, all[p].loop);
      rt_loop_t loop = {.frame = "w",
                        .count = 2,
                        .start = {rn_const_float(c.rt.s, 0), x},
                        .cond = loop_cond,
                        .body = loop_body,
                        .arg = (void*)&all[p]};
      rt_loop(c.rt.s, &loop);
      on(&c, NULL);
      connect_to(&c, task, RN_STR(""));
      for (int turn = 0; turn < 3; ++turn) {
        float wanted = (float)turn;
        for (int i = 1; i <= 5; ++i) wanted = 2 * wanted + (float)i;
        cr_assert_eq(rt_get(&c.rt, loop.exits[1], x, (float)turn), wanted, "places %zu", p);
      }
      cluster_close(&c);
    }
}

RT_TEST(cluster, tasks_without_gpus) {
  cluster_t c;
  cluster_open(&c, 0);
  rn_edge_t x = rt_placeholder(&c.rt, "x");
  on(&c, WORKER_GPU);
  rn_edge_t y = rn_AddV2(c.rt.s, x, x);
  connect_to(&c, TASK_PS, SOFT);
  cr_assert_eq(rt_get(&c.rt, y, x, 3), 6);
  connect_to(&c, TASK_PS, RN_STR(""));
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(3);
  rt_feed(&step, x, &fed);
  rt_fetch(&step, y);
  FAILS_WITH(rt_run(&c.rt, &step), INVALID_ARGUMENT, "was explicitly assigned to " WORKER_GPU);
  rn_tensor_clear(&fed);
  cluster_close(&c);
}

// A lost GPU fails the steps that use it, with the node; the task goes on without it.
RT_TEST(cluster, a_lost_gpu) {
  find_emulator();
  cluster_t c;
  cluster_open(&c, -1);
  rn_edge_t x = rt_placeholder(&c.rt, "x");
  on(&c, WORKER_GPU);
  rn_edge_t one = rn_const_float(c.rt.s, 1);
  rn_scope_name_next(c.rt.s, "plus");
  rn_edge_t a = rn_AddV2(c.rt.s, x, one);
  on(&c, PS);
  rn_edge_t b = rn_Mul(c.rt.s, a, a);
  on(&c, WORKER_CPU);
  rn_edge_t d = rn_Mul(c.rt.s, x, x);
  connect_to(&c, TASK_PS, RN_STR(""));
  cr_assert_eq(rt_get(&c.rt, b, x, 1), 4);
  rn_emulated_fail("kernel", 1, LOST);
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar(3);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, b);
    FAILS_WITH(rt_run(&c.rt, &step), INTERNAL, turn ? "{{node " : "{{node plus}}");
    rn_tensor_clear(&fed);
    cr_assert_eq(rt_get(&c.rt, d, x, 3), 9);
  }
  cluster_close(&c);
}

// A copy to another task that fails ends that step alone.
RT_TEST(cluster, a_copy_that_fails) {
  find_emulator();
  cluster_t c;
  cluster_open(&c, -1);
  rn_edge_t x = rt_placeholder(&c.rt, "x");
  on(&c, WORKER_GPU);
  rn_edge_t one = rn_const_float(c.rt.s, 1);
  rn_scope_name_next(c.rt.s, "plus");
  rn_edge_t a = rn_AddV2(c.rt.s, x, one);
  on(&c, PS);
  rn_edge_t b = rn_Mul(c.rt.s, a, a);
  connect_to(&c, TASK_PS, RN_STR(""));
  cr_assert_eq(rt_get(&c.rt, b, x, 1), 4);
  rn_emulated_fail("cuMemcpyDtoHAsync_v2", 1, 1);
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(3);
  rt_feed(&step, x, &fed);
  rt_fetch(&step, b);
  FAILS_WITH(rt_run(&c.rt, &step), INTERNAL, "node plus");
  rn_tensor_clear(&fed);
  cr_assert_eq(rt_get(&c.rt, b, x, 2), 9);
  cluster_close(&c);
}

// A vector of ones on the parameter server, doubled by the GPU, summed on the server.
static rn_edge_t build_large(cluster_t* c, int count) {
  rn_scope_t* s = c->rt.s;
  on(c, PS);
  rn_edge_t size = rn_ExpandDims(s, rn_const_int32(s, count), rn_const_int32(s, 0));
  rn_scope_name_next(s, "ones");
  rn_edge_t one = rn_Placeholder(s, RN_FLOAT), ones = rn_Fill(s, size, one);
  on(c, WORKER_GPU);
  rn_edge_t twice = rn_AddV2(s, ones, ones);
  on(c, PS);
  rn_edge_t sum = rn_Sum(s, twice, rn_const_int32(s, 0));
  on(c, NULL);
  return sum;
}

// Large values leave and enter the GPU through page-locked memory.
RT_TEST(cluster, large_values_cross) {
  find_emulator();
  cluster_t c;
  cluster_open(&c, -1);
  rn_edge_t sum = build_large(&c, 1 << 20);
  rn_edge_t one = {rn_graph_find(c.rt.graph, RN_STR("ones")), 0};
  connect_to(&c, TASK_PS, RN_STR(""));
  uint64_t pageable = 0;
  for (int turn = 0; turn < 5; ++turn) {
    cr_assert_eq(rt_get(&c.rt, sum, one, (float)turn), (float)turn * (2 << 20));
    if (turn == 1) pageable = rn_emulated_count("pageable");
  }
  cr_assert_eq(rn_emulated_count("pageable"), pageable);
  cluster_close(&c);
}

typedef struct stalled_t {
  rt_t* rt;
  rn_edge_t sum, one;
  float result;
} stalled_t;
static void* run_stalled(void* arg) {
  stalled_t* own = arg;
  own->result = rt_get(own->rt, own->sum, own->one, 1);
  return NULL;
}

// While a GPU takes its time, its task answers everybody else.
RT_TEST(cluster, a_slow_gpu_stops_nobody) {
  find_emulator();
  cluster_t c;
  cluster_open(&c, -1);
  rn_edge_t sum = build_large(&c, 1 << 18);
  rn_edge_t one = {rn_graph_find(c.rt.graph, RN_STR("ones")), 0};
  rn_edge_t x = rt_placeholder(&c.rt, "x");
  on(&c, WORKER_CPU);
  rn_edge_t y = rn_AddV2(c.rt.s, x, x);
  connect_to(&c, TASK_PS, RN_STR(""));
  cr_assert_eq(rt_get(&c.rt, sum, one, 1), 2 << 18);
  cr_assert_eq(rt_get(&c.rt, y, x, 1), 2);
  rn_emulated_pause(1);
  enum { STEPS = 8 };
  stalled_t stalled[STEPS];
  pthread_t threads[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    stalled[i] = (stalled_t){.rt = &c.rt, .sum = sum, .one = one};
    cr_assert_eq(pthread_create(&threads[i], NULL, run_stalled, &stalled[i]), 0);
  }
  usleep(100000);  // until they wait for the GPU
  for (int i = 0; i < 20; ++i) cr_assert_eq(rt_get(&c.rt, y, x, (float)i), (float)(2 * i));
  rn_emulated_pause(0);
  for (int i = 0; i < STEPS; ++i) {
    pthread_join(threads[i], NULL);
    cr_assert_eq(stalled[i].result, 2 << 18);
  }
  cluster_close(&c);
}
