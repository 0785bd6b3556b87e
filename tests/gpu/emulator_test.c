// The emulated CUDA driver (tests/gpu/emulator): memory, streams, events, graphs, several devices,
// and faults on demand.
#include <pthread.h>

#include "emulator_support.h"

TestSuite(emulator, .init = set_up, .fini = tear_down, .timeout = 60);

Test(emulator, graphs_replay_what_was_captured) {
  CUmodule module = load();
  float one[4] = {1, 2, 3, 4}, z[4];
  CUdeviceptr d = device_memory(2 * sizeof one);
  float* pinned;
  ok(cuMemHostAlloc((void**)&pinned, sizeof one, 0));
  memcpy(pinned, one, sizeof one);
  ok(cuMemsetD8Async(d + sizeof one, 0, sizeof one, stream));
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  add_args args = {to_pointer(d), to_pointer(d + sizeof one), to_pointer(d + sizeof one), 4};
  ok(cuMemcpyHtoDAsync_v2(d, pinned, sizeof one, stream));
  ok(launch(function_of(module, "add_f32"), 1, 32, 0, args));
  CUgraph graph;
  CUgraphExec exec;
  ok(cuStreamEndCapture(stream, &graph));
  args.n = 0;
  cr_assert_eq(rn_emulated_count("kernel"), 0);
  ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ok(cuGraphDestroy(graph));
  ok(cuGraphUpload(exec, stream));
  for (int i = 0; i < 3; ++i) ok(cuGraphLaunch(exec, stream));
  ok(cuStreamSynchronize(stream));
  pinned[0] = 100;
  ok(cuGraphLaunch(exec, stream));
  ok(cuGraphExecDestroy(exec));  // what was launched goes on
  download(z, d + sizeof one, sizeof z);
  cr_assert_eq(z[0], 103);
  cr_assert_eq(z[3], 16);
  cr_assert_eq(rn_emulated_count("kernel"), 4);
  ok(cuMemFreeHost(pinned));
  ok(cuModuleUnload(module));
  cr_assert_eq(rn_emulated_in_use("graphs"), 0);
}

Test(emulator, captures_fork_and_join) {
  CUdeviceptr d = device_memory(64), e = device_memory(64);
  CUstream other;
  CUevent fork, join;
  CUgraph graph;
  unsigned out[2];
  ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ok(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ok(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  for (int is_joined = 0; is_joined < 2; ++is_joined) {
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(cuMemsetD32Async(d, 7, 1, stream));
    ok(cuEventRecord(fork, stream));
    ok(cuStreamWaitEvent(other, fork, 0));
    ok(cuMemcpyDtoDAsync_v2(e, d, 4, other));
    ok(cuEventRecord(join, other));
    if (is_joined) ok(cuStreamWaitEvent(stream, join, 0));
    ok(cuMemsetD32Async(d + 4, 8, 1, stream));
    cr_assert_eq(cuStreamEndCapture(stream, &graph), is_joined ? CUDA_SUCCESS : 904);
  }
  CUgraphExec exec;
  ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ok(cuGraphLaunch(exec, stream));
  download(out, e, 4);
  cr_assert_eq(out[0], 7);
  ok(cuGraphExecDestroy(exec));
  ok(cuGraphDestroy(graph));
  ok(cuEventDestroy_v2(fork));
  ok(cuEventDestroy_v2(join));
  ok(cuStreamDestroy_v2(other));
}

Test(emulator, captures_refuse_what_waits) {
  CUgraph graph;
  CUdeviceptr d;
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  cr_assert_eq(cuStreamSynchronize(stream), 900);
  cr_assert_eq(cuStreamEndCapture(stream, &graph), 901);
  ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  cr_assert_eq(cuMemAlloc_v2(&d, 4), 900);
  cr_assert_eq(cuStreamEndCapture(stream, &graph), 901);
  ok(cuMemAlloc_v2(&d, 4));
}

Test(emulator, streams_wait_for_events) {
  CUdeviceptr d = device_memory(8);
  CUstream other;
  CUevent event;
  unsigned* pinned;
  ok(cuMemHostAlloc((void**)&pinned, 8, 0));
  ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ok(cuEventQuery(event));  // never recorded: there is nothing to wait for
  rn_emulated_pause(1);
  ok(cuMemsetD32Async(d, 5, 2, stream));
  ok(cuEventRecord(event, stream));
  ok(cuStreamWaitEvent(other, event, 0));
  ok(cuMemcpyDtoHAsync_v2(pinned, d, 8, other));
  pinned[1] = 1;
  cr_assert_eq(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  cr_assert_eq(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  cr_assert_eq(pinned[1], 1);
  rn_emulated_pause(0);
  ok(cuEventSynchronize(event));
  ok(cuStreamSynchronize(other));
  ok(cuStreamQuery(other));
  cr_assert_eq(pinned[1], 5);
  ok(cuEventDestroy_v2(event));
  ok(cuStreamDestroy_v2(other));
  ok(cuMemFreeHost(pinned));
  cr_assert_eq(rn_emulated_in_use("pinned"), 0);
  cr_assert_eq(rn_emulated_in_use("events"), 0);
  cr_assert_eq(rn_emulated_in_use("streams"), 1);
}

Test(emulator, memory_runs_out) {
  CUdeviceptr d;
  size_t free_bytes, total;
  ok(cuMemGetInfo_v2(&free_bytes, &total));
  cr_assert_eq(cuMemAlloc_v2(&d, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  cr_assert_eq(rn_emulated_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY), 1);
  cr_assert_eq(rn_emulated_fail("no such call", 1, 1), 0);
  ok(cuMemAlloc_v2(&d, 16));
  cr_assert_eq(cuMemAlloc_v2(&d, 16), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemAlloc_v2(&d, 16));
  cr_assert_eq(rn_emulated_in_use("device"), 32);
  cr_assert_eq(rn_emulated_in_use("allocations"), 2);
}

Test(emulator, copies_are_checked) {
  CUdeviceptr d = device_memory(16);
  char bytes[32];
  cr_assert_eq(cuMemcpyHtoDAsync_v2(d, bytes, 17, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemcpyHtoDAsync_v2(d - 1, bytes, 8, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemcpyDtoHAsync_v2(bytes, d + 8, 9, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemcpyDtoHAsync_v2(to_pointer(d), d + 8, 4, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemcpyDtoDAsync_v2(d, d + 12, 8, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemsetD32Async(d, 0, 5, stream), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(cuMemFree_v2(d + 8), CUDA_ERROR_INVALID_VALUE);
  ok(cuCtxSetCurrent(NULL));
  cr_assert_eq(cuMemsetD8Async(d, 0, 4, stream), 201);
}

Test(emulator, a_lost_device_stays_lost_until_it_is_reset) {
  CUmodule module = load();
  CUdeviceptr d = device_memory(16);
  CUcontext again;
  const char* name;
  cr_assert_eq(rn_emulated_fail("kernel", 1, 700), 1);
  sum_args args = {to_pointer(d), to_pointer(d), 4};
  ok(launch(function_of(module, "sum_i32"), 1, 32, 0, args));
  cr_assert_eq(cuStreamSynchronize(stream), 700);
  cr_assert_eq(cuMemsetD8Async(d, 0, 4, stream), 700);
  cr_assert_eq(cuMemAlloc_v2(&d, 4), 700);
  cr_assert_eq(cuStreamQuery(stream), 700);
  ok(cuGetErrorName(700, &name));
  cr_assert_str_eq(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ok(cuModuleUnload(module));
  cuStreamDestroy_v2(stream);
  ok(cuDevicePrimaryCtxRelease_v2(0));
  cr_assert_eq(rn_emulated_in_use("device"), 0);
  ok(cuDevicePrimaryCtxRetain(&again, 0));
  ok(cuMemAlloc_v2(&d, 4));
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void touch(void) {
  set_up();
  CUdeviceptr d = device_memory(16);
  ok(cuMemsetD8Async(d, 0, 16, stream));
  ok(cuStreamSynchronize(stream));
  *(volatile char*)to_pointer(d) = 1;
}

Test(devices, the_host_cannot_touch_device_memory, .timeout = 60) {
  int state = status_of_child(touch);
  cr_assert(WIFSIGNALED(state) && WTERMSIG(state) == SIGSEGV, "%x", state);
}

static void touch_open(void) {
  setenv("RN_EMULATED_OPEN", "1", 1);
  setenv("RN_EMULATED_FILL", "65", 1);
  setenv("RN_EMULATED_FAIL", "cuMemAlloc_v2:2:2", 1);
  set_up();
  CUdeviceptr d = device_memory(16), none;
  if (cuMemAlloc_v2(&none, 1) != CUDA_ERROR_OUT_OF_MEMORY) _exit(3);
  _exit(*(volatile char*)to_pointer(d) == 65 ? 0 : 4);
}

Test(devices, the_environment_opens_memory_and_sets_faults, .timeout = 60) {
  int state = status_of_child(touch_open);
  cr_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0, "%x", state);
}

Test(devices, devices_are_apart, .timeout = 60) {
  setenv("RN_EMULATED_GPUS", "2", 1);
  setenv("RN_EMULATED_MEMORY", "1000", 1);
  set_up();
  int count;
  CUcontext second;
  CUstream other;
  CUevent event;
  CUdeviceptr d = device_memory(600), e;
  unsigned char out[4];
  ok(cuDeviceGetCount(&count));
  cr_assert_eq(count, 2);
  ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ok(cuDevicePrimaryCtxRetain(&second, 1));
  ok(cuCtxSetCurrent(second));
  ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ok(cuMemAlloc_v2(&e, 600));
  ok(cuMemsetD8Async(d, 9, 600, stream));
  ok(cuEventRecord(event, stream));
  ok(cuStreamWaitEvent(other, event, 0));
  ok(cuMemcpyDtoDAsync_v2(e, d, 600, other));
  ok(cuMemcpyDtoHAsync_v2(out, e + 596, 4, other));
  cr_assert_eq(out[3], 9);
  rn_emulated_lose(0, 700);
  cr_assert_eq(cuStreamSynchronize(stream), 700);
  ok(cuStreamSynchronize(other));
  ok(cuStreamDestroy_v2(other));
  ok(cuEventDestroy_v2(event));
  ok(cuDevicePrimaryCtxRelease_v2(1));
  tear_down();
}

// Every seed must give the same result, because the streams wait for each other.
Test(devices, shuffled_streams_respect_events, .timeout = 60) {
  setenv("RN_EMULATED_SHUFFLE", "11", 1);
  set_up();
  check_sum("sum_i32", 3, 256, 0);
  check_sum("tree_i32", 5, 1024, 4096);
  CUstream streams[4];
  CUevent events[4];
  CUdeviceptr d = device_memory(64 * 4);
  unsigned out[64];
  for (int i = 0; i < 4; ++i) ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 4; ++i) ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
  rn_emulated_pause(1);
  for (int i = 0; i < 64; ++i) {
    if (i) ok(cuStreamWaitEvent(streams[i % 4], events[(i + 3) % 4], 0));
    ok(cuMemsetD32Async(d, (unsigned)i, (size_t)(64 - i), streams[i % 4]));
    ok(cuEventRecord(events[i % 4], streams[i % 4]));
  }
  rn_emulated_pause(0);
  ok(cuEventSynchronize(events[3]));
  download(out, d, sizeof out);
  for (unsigned i = 0; i < 64; ++i) cr_assert_eq(out[i], 63 - i);
  for (int i = 0; i < 4; ++i) ok(cuStreamDestroy_v2(streams[i]));
  for (int i = 0; i < 4; ++i) ok(cuEventDestroy_v2(events[i]));
  tear_down();
}

typedef struct host_thread_t {
  CUmodule module;
  int failures;
} host_thread_t;

// Copies in, adds 50 times, copies out, with memory, stream and events of its own.
static void* use_device(void* arg) {
  host_thread_t* thread = arg;
  CUstream own;
  CUevent event;
  CUdeviceptr d = 0;
  float *x = NULL, *y = NULL;
  int failures = cuCtxSetCurrent(context) != 0;
  failures += cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != 0;
  failures += cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != 0;
  failures += cuMemHostAlloc((void**)&x, 400, 0) != 0;
  failures += cuMemHostAlloc((void**)&y, 400, 0) != 0;
  failures += cuMemAlloc_v2(&d, 1024) != 0;
  for (int i = 0; i < 100; ++i) x[i] = (float)i;
  failures += cuMemcpyHtoDAsync_v2(d, x, 400, own) != 0;
  failures += cuMemsetD32Async(d + 512, 0, 100, own) != 0;
  add_args args = {to_pointer(d), to_pointer(d + 512), to_pointer(d + 512), 100};
  CUfunction add;
  failures += cuModuleGetFunction(&add, thread->module, "add_f32") != 0;
  for (int i = 0; i < 50; ++i) failures += launch_on(own, add, 2, 32, 0, &args, sizeof args) != 0;
  failures += cuMemcpyDtoHAsync_v2(y, d + 512, 400, own) != 0;
  failures += cuEventRecord(event, own) != 0;
  failures += cuEventSynchronize(event) != 0;
  for (int i = 0; i < 100; ++i) failures += y[i] != 50 * (float)i;
  failures += cuMemFree_v2(d) != 0;
  failures += cuMemFreeHost(x) != 0;
  failures += cuMemFreeHost(y) != 0;
  failures += cuEventDestroy_v2(event) != 0;
  failures += cuStreamDestroy_v2(own) != 0;
  thread->failures = failures;
  return NULL;
}

Test(emulator, host_threads_share_a_device) {
  pthread_t threads[4];
  host_thread_t states[4];
  CUmodule module = load();
  for (int i = 0; i < 4; ++i) {
    states[i] = (host_thread_t){.module = module};
    cr_assert_eq(pthread_create(&threads[i], NULL, use_device, &states[i]), 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    cr_assert_eq(states[i].failures, 0);
  }
  cr_assert_eq(rn_emulated_count("kernel:add_f32"), 200);
  cr_assert_eq(rn_emulated_count("pageable"), 0);
  cr_assert_eq(rn_emulated_in_use("allocations"), 0);
  ok(cuModuleUnload(module));
}

Test(emulator, a_released_context_is_gone) {
  CUdeviceptr d;
  ok(cuDevicePrimaryCtxRelease_v2(0));
  cr_assert_eq(cuMemAlloc_v2(&d, 4), 709);
  cr_assert_eq(cuStreamSynchronize(stream), 709);
  cr_assert_eq(cuCtxSetCurrent(context), 201);
  cr_assert_eq(rn_emulated_in_use("contexts"), 0);
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuMemAlloc_v2(&d, 4));
}

// The default stream waits for blocking streams, and they for it.
Test(devices, the_default_stream_waits, .timeout = 60) {
  setenv("RN_EMULATED_SHUFFLE", "4", 1);
  set_up();
  CUstream blocking;
  CUdeviceptr d = device_memory(4);
  unsigned out;
  ok(cuStreamCreate(&blocking, 0));
  rn_emulated_pause(1);
  for (unsigned i = 0; i < 50; ++i) ok(cuMemsetD32Async(d, i, 1, i % 2 ? blocking : NULL));
  rn_emulated_pause(0);
  ok(cuStreamSynchronize(blocking));
  ok(cuMemcpyDtoHAsync_v2(&out, d, 4, NULL));
  cr_assert_eq(out, 49);
  ok(cuStreamDestroy_v2(blocking));
  tear_down();
}
