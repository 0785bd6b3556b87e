// Sessions over a GPU that come and go: many of them, in many threads, in two processes, closed
// while steps run, and steps that run out of time. For an emulated GPU and for a real one.
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "net.h"

#ifdef RT_HAS_SANITIZER
#define SESSIONS 60
#define MOST_GROWTH (1 << 20)  // KiB: it keeps what is freed
#else
#define SESSIONS 1000
#define MOST_GROWTH 4096
#endif
#define LONG_TEST(name) Test(gpu_sessions, name, .timeout = 120)

static void train_once(float* losses) {
  net_t net;
  net_begin(&net);
  OK(net_open(&net));
  OK(net_train(&net, losses));
  rt_end(&net.rt);
}

static int entries(const char* folder) {
  int count = 0;
  DIR* list = opendir(folder);
  while (list && readdir(list)) ++count;
  if (list) closedir(list);
  return count;
}

static int64_t resident_kib(void) {
  long pages = 0, unused;
  FILE* file = fopen("/proc/self/statm", "r");
  int found = file ? fscanf(file, "%ld %ld", &unused, &pages) : 0;
  if (file) fclose(file);
  return found == 2 ? (int64_t)pages * sysconf(_SC_PAGESIZE) / 1024 : 0;
}

// Bytes of the card that this process has in use.
static int64_t bytes_on_card(void) {
  rt_t rt = rt_begin(1);
  rn_device_t* gpu = (rn_device_t*)(uintptr_t)rn_session_device(rt_session(&rt), 1);
  rn_device_memory_t use;
  gpu->vtable->memory_use(gpu, &use);
  rt_end(&rt);
  return use.now;
}

LONG_TEST(leave_nothing) {
  int64_t memory = 0;
  int threads = 0, files = 0;
  for (int turn = 0; turn < SESSIONS; ++turn) {
    float y, losses[NET_STEPS];
    if (turn % 50 == 0) train_once(losses);
    rt_t rt = rt_begin(1);
    rn_edge_t x = rt_placeholder(&rt, "x");
    for (int i = 0; i < 4; ++i) {
      y = rt_get(&rt, rn_Mul(rt.s, rn_AddV2(rt.s, x, x), x), x, 3);
      cr_assert_eq(y, 18);
    }
    rt_end(&rt);
    if (turn == SESSIONS / 5) {
      memory = resident_kib();
      threads = entries("/proc/self/task");
      files = entries("/proc/self/fd");
    }
  }
  cr_expect_eq(bytes_on_card(), 0);
  cr_expect_eq(entries("/proc/self/task"), threads);
  cr_expect_eq(entries("/proc/self/fd"), files);
  cr_expect_leq(resident_kib(), memory + MOST_GROWTH, "%d KiB, then %d", (int)memory,
                (int)resident_kib());
}

// ---- threads

static float expected[NET_STEPS];
static _Atomic int wrong;

static void* train_alone(void* arg) {
  (void)arg;
  for (int turn = 0; turn < 3; ++turn) {
    float losses[NET_STEPS] = {0};
    net_t net;
    net_begin(&net);
    rn_status_t status = net_open(&net);
    if (rn_ok(status)) status = net_train(&net, losses);
    if (!rn_ok(status)) fprintf(stderr, "%s\n", rn_status_message(status));
    rn_status_free(status);
    wrong += memcmp(losses, expected, sizeof losses) != 0;
    rt_end(&net.rt);
  }
  return NULL;
}

static void* infer(void* arg) {
  net_t* net = arg;
  for (int turn = 0; turn < 40; ++turn) {
    float loss = 0;
    rn_status_t status = net_run(net, 0, net->loss, NULL, NULL, &loss);
    wrong += !rn_ok(status) || loss != expected[0];
    rn_status_free(status);
  }
  return NULL;
}

static void in_threads(int count, void* (*run)(void*), void* arg) {
  pthread_t threads[8];
  for (int i = 0; i < count; ++i) cr_assert_eq(pthread_create(&threads[i], NULL, run, arg), 0);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

// Sessions that measure at the same time may choose different algorithms.
LONG_TEST(in_eight_threads) {
  setenv("TF_DETERMINISTIC_OPS", "1", 1);
  train_once(expected);
  in_threads(8, train_alone, NULL);
  cr_assert_eq(wrong, 0, "%d of 24 sessions differ", wrong);
}

LONG_TEST(one_session_in_eight_threads) {
  train_once(expected);
  net_t net;
  net_begin(&net);
  OK(net_open(&net));
  OK(net_reset(&net));
  in_threads(8, infer, &net);
  cr_assert_eq(wrong, 0, "%d of 320 steps differ", wrong);
  rt_end(&net.rt);
}

// ---- ends

static _Atomic bool is_running, stops;
static void* run_until_closed(void* arg) {
  net_t* net = arg;
  while (!stops) {
    float loss;
    rn_status_t status = net_run(net, 0, net->loss, net->train, NULL, &loss);
    is_running = true;
    rn_code_t code = rn_status_code(status);
    if (code != RN_CODE_OK && code != RN_CODE_CANCELLED && code != RN_CODE_FAILED_PRECONDITION) {
      fprintf(stderr, "%s\n", rn_status_message(status));
      ++wrong;
    }
    rn_status_free(status);
  }
  return NULL;
}

LONG_TEST(closed_while_steps_run) {
  for (int turn = 0; turn < 30; ++turn) {
    net_t net;
    net_begin(&net);
    OK(net_open(&net));
    OK(net_reset(&net));
    is_running = stops = false;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, run_until_closed, &net), 0);
    while (!is_running) usleep(100);
    usleep((useconds_t)(turn * 97 % 1000));
    OK(rn_session_close(net.rt.session));
    stops = true;
    pthread_join(thread, NULL);
    rt_end(&net.rt);
  }
  cr_assert_eq(wrong, 0);
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 1e9f));
}

static void count(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
}

// A loop on the GPU that would take minutes.
LONG_TEST(steps_out_of_time) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rt_loop_t loop = {.frame = "loop", .count = 1, .start = {x}, .cond = goes_on, .body = count};
  rt_loop(rt.s, &loop);
  rn_edge_t y = rn_Mul(rt.s, rn_AddV2(rt.s, x, x), x);
  for (int turn = 0; turn < 5; ++turn) {
    rt_step_t step = {.options = {.timeout_ms = 30 + 20 * turn}};
    rn_tensor_t fed = rt_scalar(0);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, loop.exits[0]);
    FAILS(rt_run(&rt, &step), DEADLINE_EXCEEDED);
    rn_tensor_clear(&fed);
    cr_assert_eq(rt_get(&rt, y, x, 3), 18);
  }
  rt_end(&rt);
}

static void (*set_paused)(int is_paused);
static void* resume_later(void* arg) {
  usleep(400000);
  set_paused(false);
  return arg;
}

// The card does nothing for a while. Work that was issued cannot be taken back, so the step ends
// when the card has done it, and says that it was too late.
LONG_TEST(a_card_that_answers_late) {
  const char* folder = getenv("RUNNEL_CUDA_PATH");
  if (!folder) cr_skip_test("needs an emulated GPU");
  char path[4096];
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *(void**)&set_paused = dlsym(library, "rn_emulated_pause");
  net_t net;
  float loss, losses[NET_STEPS];
  net_begin(&net);
  OK(net_open(&net));
  OK(net_train(&net, expected));
  OK(net_train(&net, losses));
  pthread_t thread;
  set_paused(true);
  cr_assert_eq(pthread_create(&thread, NULL, resume_later, NULL), 0);
  rn_step_options_t options = {.timeout_ms = 100};
  rn_status_t status = net_run(&net, 0, net.loss, net.train, &options, &loss);
  pthread_join(thread, NULL);
  cr_assert_eq(rn_status_code(status), RN_CODE_DEADLINE_EXCEEDED, "%s", rn_status_message(status));
  rn_status_free(status);
  OK(net_train(&net, losses));
  for (int i = 0; i < NET_STEPS; ++i) cr_assert_eq(losses[i], expected[i]);
  rt_end(&net.rt);
}

// ---- two processes on one card

static int train_often(void) {
  float losses[NET_STEPS], before[NET_STEPS] = {0};
  for (int turn = 0; turn < 10; ++turn) {
    net_t net;
    net_begin(&net);
    net.rt.options.gpu.memory_fraction = 0.3;
    if (!rn_ok(net_open(&net)) || rn_session_device_count(net.rt.session) != 2) return 1;
    for (int again = 0; again < 3; ++again) {
      if (!rn_ok(net_train(&net, losses))) return 2;
      if (turn + again && memcmp(losses, before, sizeof losses) != 0) return 3;
      memcpy(before, losses, sizeof before);
    }
    rt_end(&net.rt);
  }
  return 0;
}

LONG_TEST(in_two_processes) {
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    cr_assert_geq(children[i], 0);
    if (children[i] == 0) _exit(train_often());
  }
  for (int i = 0; i < 2; ++i) {
    int status = -1;
    cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
    cr_assert_eq(status, 0, "process %d: status %x", i, status);
  }
}
