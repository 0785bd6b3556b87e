// Training steps in which something fails: the n-th call of the driver, the n-th allocation on the
// card or on the host, a compilation, or the card itself. The step ends with a status that says
// where, nothing leaks, and the session trains on as if nothing had happened.
#include <stdlib.h>
#include <sys/wait.h>

#include "emulated_driver.h"
#include "net.h"

#define OUT_OF_MEMORY 2
#define LOST 700
#define UNKNOWN 999

// The losses without faults.
static float expected[NET_STEPS];

static void prepare(void) {
  find_emulator();
  net_t net;
  net_begin(&net);
  OK(net_open(&net));
  cr_assert_eq(rn_session_device_count(net.rt.session), 2);
  OK(net_train(&net, expected));
  cr_assert_lt(expected[NET_STEPS - 1], expected[0]);
  rt_end(&net.rt);
}

// Trains again with the session that had a fault: the same losses.
static void recovers(net_t* net, const char* what, int64_t nth) {
  float losses[NET_STEPS];
  rn_status_t status = net_train(net, losses);
  cr_assert(rn_ok(status), "after %s, the %d-th: %s", what, (int)nth, rn_status_message(status));
  for (int i = 0; i < NET_STEPS; ++i)
    cr_assert_eq(losses[i], expected[i], "after %s, the %d-th: loss %d is %g, not %g", what,
                 (int)nth, i, (double)losses[i], (double)expected[i]);
}

static const char* const things[] = {"device", "allocations", "graphs"};

static void nothing_is_left(const char* what, int64_t nth) {
  for (size_t i = 0; i < sizeof things / sizeof *things; ++i)
    cr_expect_eq(rn_emulated_in_use(things[i]), 0, "after %s, the %d-th: %d %s", what, (int)nth,
                 (int)rn_emulated_in_use(things[i]), things[i]);
}

// What a step that failed must say.
static void explains(rn_status_t status, rn_code_t code, const char* what, int64_t nth) {
  const char* message = rn_status_message(status);
  cr_expect_eq(rn_status_code(status), code, "%s, the %d-th: %s", what, (int)nth, message);
  bool names = strstr(message, "{{node ") || strstr(message, " on GPU 0");
  cr_expect(names || code == RN_CODE_RESOURCE_EXHAUSTED, "%s, the %d-th, names nothing: %s", what,
            (int)nth, message);
  rn_status_free(status);
}

// How often |call| is made while a session trains.
static int64_t calls_of(const char* call) {
  net_t net;
  float losses[NET_STEPS];
  net_begin(&net);
  OK(net_open(&net));
  uint64_t before = rn_emulated_count(call);
  OK(net_train(&net, losses));
  int64_t count = (int64_t)(rn_emulated_count(call) - before);
  rt_end(&net.rt);
  return count;
}

// |call| fails at every use, or at some of many.
static void sweep(const char* call, int result, int64_t most) {
  int64_t count = calls_of(call), stride = count / most + 1;
  for (int64_t nth = 1; nth <= count; nth += stride) {
    net_t net;
    float losses[NET_STEPS];
    net_begin(&net);
    OK(net_open(&net));
    cr_assert(rn_emulated_fail(call, (int)nth, result), "%s", call);
    rn_status_t status = net_train(&net, losses);
    rn_emulated_heal();
    // An allocation that fails, for whatever reason, gives no memory.
    bool is_memory = result == OUT_OF_MEMORY || strstr(call, "Alloc");
    if (!rn_ok(status))
      explains(status, is_memory ? RN_CODE_RESOURCE_EXHAUSTED : RN_CODE_INTERNAL, call, nth);
    recovers(&net, call, nth);
    rt_end(&net.rt);
    nothing_is_left(call, nth);
  }
}

RT_TEST(steps_faults, calls_of_the_driver) {
  static const char* const calls[] = {"cuLaunchKernel",
                                      "cuMemcpyHtoDAsync_v2",
                                      "cuMemcpyDtoHAsync_v2",
                                      "cuMemcpyDtoDAsync_v2",
                                      "cuMemsetD8Async",
                                      "cuEventRecord",
                                      "cuEventQuery",
                                      "cuEventSynchronize",
                                      "cuStreamBeginCapture_v2",
                                      "cuStreamEndCapture",
                                      "cuGraphInstantiateWithFlags",
                                      "cuGraphLaunch",
                                      "cuCtxSetCurrent",
                                      "cuMemAlloc_v2",
                                      "cuStreamWaitEvent",
                                      "cuMemHostAlloc"};
  prepare();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) sweep(calls[i], UNKNOWN, 12);
}

// Every tensor is an allocation of the driver, so each of them can fail.
RT_TEST(steps_faults, allocations_on_the_card) {
  setenv("RUNNEL_CUDA_EXACT", "1", 1);
  prepare();
  sweep("cuMemAlloc_v2", OUT_OF_MEMORY, 150);
}

// Memory does not come back until the step has failed. The message says who holds what.
RT_TEST(steps_faults, memory_that_is_too_small) {
  setenv("RUNNEL_CUDA_EXACT", "1", 1);
  prepare();
  int seen = 0;
  for (int64_t kib = 2; kib < 60; kib += 3) {
    char limit[32];
    net_t net;
    float losses[NET_STEPS];
    net_begin(&net);
    snprintf(limit, sizeof limit, "%lld", (long long)kib << 10);
    net.rt.options.gpu.memory_fraction = (double)(kib << 10) / (double)(1 << 30);
    OK(net_open(&net));
    rn_status_t status = net_train(&net, losses);
    if (!rn_ok(status)) {
      const char* message = rn_status_message(status);
      cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s", message);
      cr_assert(strstr(message, "holder"), "'%s' does not say who holds memory", message);
      cr_assert(strstr(message, "device:GPU:0"), "'%s' names no device", message);
      ++seen;
    }
    rn_status_free(status);
    float sum;
    OK(net_run(&net, 0, net.on_cpu, NULL, NULL, &sum));
    rt_end(&net.rt);
    nothing_is_left(limit, kib);
  }
  cr_assert_gt(seen, 2);
}

RT_TEST(steps_faults, allocations_on_the_host) {
  prepare();
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  int64_t count = 0;
  for (int64_t nth = 0; nth <= count; nth += nth < 20 ? 1 : 1 + count / 150) {
    net_t net;
    float losses[NET_STEPS];
    net_begin(&net);
    counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
    net.rt.allocator = rn_allocator_counting(&counting);
    OK(net_open(&net));
    int64_t before = counting.allocations;
    counting.fail_at = nth ? before + nth : 0;
    rn_status_t status = net_train(&net, losses);
    counting.fail_at = 0;
    if (nth == 0) count = counting.allocations - before;
    cr_assert(nth || rn_ok(status));
    if (!rn_ok(status)) explains(status, RN_CODE_RESOURCE_EXHAUSTED, "host memory", nth);
    recovers(&net, "host memory", nth);
    rt_end(&net.rt);
    cr_assert_eq(counting.live_blocks, 0, "the %d-th: %d blocks", (int)nth,
                 (int)counting.live_blocks);
    nothing_is_left("host memory", nth);
  }
  cr_assert_gt(count, 100);
}

// ---- faults that a process has only once: in a child, whose status says what is wrong

static bool in_child(int (*run)(int64_t nth), int64_t nth, const char* what) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(run(nth));
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  cr_expect_eq(status, 0, "%s, the %d-th: status %x", what, (int)nth, status);
  return WIFEXITED(status);
}

// The card is lost at the n-th kernel: steps on it fail, the CPU goes on, the session ends.
static int lose_card(int64_t nth) {
  net_t net;
  float losses[NET_STEPS], sum = 0;
  net_begin(&net);
  if (!rn_ok(net_open(&net))) return 1;
  find_emulator();
  rn_emulated_fail("kernel", (int)nth, LOST);
  rn_status_t status = net_train(&net, losses);
  if (rn_ok(status)) return 2;
  if (rn_status_code(status) != RN_CODE_INTERNAL ||
      !strstr(rn_status_message(status), "CUDA_ERROR_ILLEGAL_ADDRESS"))
    return 3;
  rn_status_free(status);
  for (int turn = 0; turn < 3; ++turn) {
    status = net_run(&net, turn, net.loss, net.train, NULL, losses);
    if (rn_ok(status)) return 4;
    rn_status_free(status);
    if (!rn_ok(net_run(&net, turn, net.on_cpu, NULL, NULL, &sum)) || !(sum > 0)) return 5;
  }
  rt_end(&net.rt);
  net_begin(&net);  // the next session does without the card
  if (!rn_ok(net_open(&net)) || rn_session_device_count(net.rt.session) != 1) return 6;
  if (!rn_ok(net_train(&net, losses))) return 7;
  rt_end(&net.rt);
  return 0;
}

RT_TEST(steps_faults, lost_cards) {
  for (int64_t nth = 1; nth < 120; nth += 7)
    if (!in_child(lose_card, nth, "a lost card")) return;
}

// Compilations fail from the n-th on, with nothing in the cache.
static int fail_to_compile(int64_t nth) {
  char folder[] = "/tmp/runnel_kernels_XXXXXX", text[16];
  net_t net;
  float losses[NET_STEPS];
  snprintf(text, sizeof text, "%d", (int)nth);
  if (!mkdtemp(folder)) return 1;
  setenv("RUNNEL_CACHE_DIR", folder, 1);
  setenv("RN_EMULATED_NVRTC_FAIL", text, 1);
  net_begin(&net);
  if (!rn_ok(net_open(&net))) return 2;
  rn_status_t status = net_train(&net, losses);
  if (rn_ok(status) || !strstr(rn_status_message(status), "{{node ")) return 3;
  rn_status_free(status);
  unsetenv("RN_EMULATED_NVRTC_FAIL");
  if (!rn_ok(net_train(&net, losses))) return 4;
  rt_end(&net.rt);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

RT_TEST(steps_faults, compilations) {
  if (!in_child(fail_to_compile, 1, "a compilation")) return;
  in_child(fail_to_compile, 3, "a compilation");
}

// The first call of a process fails: there is no GPU then, and the CPU trains.
static const char* first_call;
static int open_without(int64_t nth) {
  char text[64];
  net_t net;
  float losses[NET_STEPS];
  snprintf(text, sizeof text, "%s:%d:%d", first_call, (int)nth, UNKNOWN);
  setenv("RN_EMULATED_FAIL", text, 1);
  net_begin(&net);
  rn_status_t status = net_open(&net);
  if (!rn_ok(status)) return 1;
  if (rn_session_device_count(net.rt.session) != 1) return 2;
  if (!rn_ok(net_train(&net, losses)) || !(losses[NET_STEPS - 1] < losses[0])) return 3;
  rt_end(&net.rt);
  return 0;
}

RT_TEST(steps_faults, opening_the_card) {
  static const char* const calls[] = {
      "cuInit",          "cuDriverGetVersion",   "cuDeviceGetCount",    "cuDeviceGet",
      "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain",
      "cuStreamCreate"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    first_call = calls[i];
    in_child(open_without, 1, calls[i]);
  }
}
