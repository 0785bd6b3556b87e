// The emulated CUDA driver and NVRTC (tests/gpu/emulator): memory, streams, events, graphs, kernels
// with barriers and warp exchanges, and faults on demand.
#include "emulator_test.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/driver_api.h"
#include "emulator/emulator.h"

#define POINTER(result, name, parameters) static result(*name) parameters;
RN_CUDA_DRIVER_CALLS(POINTER)
RN_NVRTC_CALLS(POINTER)
RN_EMULATED_CALLS(POINTER)

#define ok(call) cr_assert_eq((call), CUDA_SUCCESS, "%s", #call)
#define MANY 1000

static CUcontext context;
static CUstream stream;

static void* open_library(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("RUNNEL_CUDA_PATH"), name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cr_assert_not_null(library, "%s", dlerror());
  return library;
}

static void find(void* library, const char* name, void* out) {
  *(void**)out = dlsym(library, name);
  cr_assert_not_null(*(void**)out, "%s", name);
}

static void set_up(void) {
  void* library = open_library("libcuda.so.1");
#define FIND(result, name, parameters) find(library, #name, &name);
  RN_CUDA_DRIVER_CALLS(FIND)
  RN_EMULATED_CALLS(FIND)
  library = open_library("libnvrtc.so.13");
  RN_NVRTC_CALLS(FIND)
  ok(cuInit(0));
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuCtxSetCurrent(context));
  ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void tear_down(void) {
  cuStreamDestroy_v2(stream);
  ok(cuDevicePrimaryCtxRelease_v2(0));
}

TestSuite(emulator, .init = set_up, .fini = tear_down, .timeout = 60);

static void* read_image(void) {
  FILE* file = fopen(TEST_IMAGE, "rb");
  cr_assert_not_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* image = malloc((size_t)size);
  cr_assert_eq(fread(image, 1, (size_t)size, file), (size_t)size);
  fclose(file);
  return image;
}

static CUmodule load(void) {
  void* image = read_image();
  CUmodule module;
  ok(cuModuleLoadData(&module, image));
  free(image);
  return module;
}

static CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function;
  ok(cuModuleGetFunction(&function, module, name));
  return function;
}

static CUdeviceptr device_memory(size_t size) {
  CUdeviceptr address;
  ok(cuMemAlloc_v2(&address, size));
  return address;
}

static CUresult launch_on(CUstream on, CUfunction function, unsigned grid, unsigned block,
                          unsigned shared, const void* args, size_t size) {
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void*)args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, on, NULL, extra);
}
#define launch(function, grid, block, shared, args) \
  launch_on(stream, function, grid, block, shared, &(args), sizeof(args))
#define to_pointer(address) ((void*)(uintptr_t)(address))

static void download(void* to, CUdeviceptr from, size_t size) {
  ok(cuMemcpyDtoHAsync_v2(to, from, size, stream));
  ok(cuStreamSynchronize(stream));
}

Test(emulator, adds_vectors) {
  CUmodule module = load();
  float x[MANY], y[MANY], z[MANY];
  for (int i = 0; i < MANY; ++i) x[i] = (float)i, y[i] = 0.5f;
  CUdeviceptr d = device_memory(3 * sizeof x);
  ok(cuMemcpyHtoDAsync_v2(d, x, sizeof x, stream));
  ok(cuMemcpyHtoDAsync_v2(d + sizeof x, y, sizeof y, stream));
  memset(x, 0, sizeof x);  // pageable memory is free at once
  add_args args = {to_pointer(d), to_pointer(d + sizeof x), to_pointer(d + 2 * sizeof x), MANY};
  CUfunction add = function_of(module, "add_f32");
  ok(launch(add, 3, 64, 0, args));
  args.n = 0;  // the launch has its own copy
  download(z, d + 2 * sizeof x, sizeof z);
  for (int i = 0; i < MANY; ++i) cr_assert_eq(z[i], (float)i + 0.5f);
  cr_assert_eq(rn_emulated_count("kernel:add_f32"), 1);
  cr_assert_eq(rn_emulated_count("cuLaunchKernel"), 1);
  ok(cuMemFree_v2(d));
  ok(cuModuleUnload(module));
  cr_assert_eq(rn_emulated_in_use("device"), 0);
  cr_assert_eq(rn_emulated_in_use("modules"), 0);
}

static void check_sum(const char* name, unsigned grid, unsigned block, unsigned shared) {
  CUmodule module = load();
  int x[5000], sums[64], total = 0, n = (int)(grid * block) < 5000 ? (int)(grid * block) : 5000;
  for (int i = 0; i < n; ++i) total += x[i] = i * i % 1009;
  CUdeviceptr d = device_memory(sizeof x), s = device_memory(sizeof sums);
  ok(cuMemcpyHtoDAsync_v2(d, x, sizeof x, stream));
  sum_args args = {to_pointer(d), to_pointer(s), n};
  ok(launch(function_of(module, name), grid, block, shared, args));
  download(sums, s, grid * sizeof *sums);
  for (unsigned i = 0; i < grid; ++i) total -= sums[i];
  cr_assert_eq(total, 0, "%s %u %u", name, grid, block);
  ok(cuMemFree_v2(d));
  ok(cuMemFree_v2(s));
  ok(cuModuleUnload(module));
}

Test(emulator, reduces_over_a_block) {
  check_sum("sum_i32", 3, 256, 0);
  check_sum("sum_i32", 1, 1024, 0);
  check_sum("sum_i32", 5, 32, 0);
  check_sum("tree_i32", 2, 512, 512 * sizeof(int));
  check_sum("tree_i32", 5, 1024, 1024 * sizeof(int));
}

Test(emulator, threads_that_ended_do_not_count) {
  CUmodule module = load();
  unsigned out[41];
  CUdeviceptr d = device_memory(sizeof out);
  ok(cuMemsetD32Async(d, 0, 41, stream));
  out_args args = {to_pointer(d), 40};
  ok(launch(function_of(module, "early_exit"), 1, 96, 0, args));
  download(out, d, sizeof out);
  cr_assert_eq(out[0], 40);
  for (int i = 0; i < 40; ++i) cr_assert_eq(out[1 + i], 40 + 20);
  ok(cuModuleUnload(module));
}

Test(emulator, exchanges_within_a_warp) {
  CUmodule module = load();
  unsigned out[12 * 32];
  CUdeviceptr d = device_memory(sizeof out);
  out_args args = {to_pointer(d), 0};
  ok(launch(function_of(module, "exchanges"), 1, 32, 0, args));
  download(out, d, sizeof out);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned* got = out + (size_t)12 * lane;
    unsigned in_half = lane % 16;
    cr_assert_eq(got[0], 5);
    cr_assert_eq(got[1], lane / 8 * 8 + 1);
    cr_assert_eq(got[2], in_half < 3 ? lane : lane - 3);
    cr_assert_eq(got[3], in_half > 12 ? lane : lane + 3);
    cr_assert_eq(got[4], lane ^ 17);
    cr_assert_eq(got[5], 0x49249249);
    cr_assert_eq(got[6], 1);
    cr_assert_eq(got[7], 496);
    cr_assert_eq((int)got[8], -16);
    cr_assert_eq(got[9], 0xfu << lane / 4 * 4);
    cr_assert_eq(got[10], lane < 16 ? 15 : 1);
    cr_assert_eq(got[11], lane < 16 ? 1 : 15);
  }
  ok(cuModuleUnload(module));
}

Test(emulator, indexes_have_three_dimensions) {
  CUmodule module = load();
  unsigned out[2 * 3 * 4 * 24];
  CUdeviceptr d = device_memory(sizeof out);
  out_args args = {to_pointer(d), sizeof out / sizeof *out};
  void* params[] = {&args};
  ok(cuLaunchKernel(function_of(module, "indexes"), 2, 3, 4, 4, 3, 2, 0, stream, params, NULL));
  download(out, d, sizeof out);
  for (unsigned i = 0; i < sizeof out / sizeof *out; ++i) cr_assert_eq(out[i], i + 1);
  ok(cuModuleUnload(module));
}

static void fails_with(const char* kernel, CUresult expected) {
  CUmodule module = load();
  CUdeviceptr d = device_memory(256);
  out_args args = {to_pointer(d), 64};
  ok(launch(function_of(module, kernel), 2, 64, 0, args));
  cr_assert_eq(cuStreamSynchronize(stream), expected);
  size_t free_bytes, total;
  cr_assert_eq(cuMemGetInfo_v2(&free_bytes, &total), expected);
  cuModuleUnload(module);
}

Test(emulator, a_barrier_that_not_all_reach_fails_the_launch) { fails_with("stuck", 719); }
Test(emulator, a_trap_fails_the_launch) { fails_with("traps", 719); }

Test(emulator, launches_are_checked) {
  CUmodule module = load();
  CUfunction function = function_of(module, "tree_i32");
  sum_args args = {0};
  int small = 0;
  cr_assert_eq(launch(function, 1, 2048, 0, args), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(launch(function, 0, 1, 0, args), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(launch(function, 1, 1, 50000, args), CUDA_ERROR_INVALID_VALUE);
  cr_assert_eq(launch(function, 1, 1, 0, small), CUDA_ERROR_INVALID_VALUE);
  ok(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
  CUdeviceptr d = device_memory(4);
  args.sums = to_pointer(d);
  ok(launch(function, 1, 1, 50000, args));
  CUfunction none;
  cr_assert_eq(cuModuleGetFunction(&none, module, "no_such"), CUDA_ERROR_NOT_FOUND);
  cr_assert_eq(cuModuleLoadData(&module, "not an image"), 200);
  ok(cuStreamSynchronize(stream));
  ok(cuModuleUnload(module));
}

Test(emulator, converts_and_computes) {
  CUmodule module = load();
  float x[] = {0, 1, -1.5f, 65504, 65520, 1e-8f, 6e-8f, 1.00048828125f, NAN, INFINITY, 3.0078125f};
  unsigned short half[11], bfloat16[11];
  float from_half[11], math[11];
  unsigned short halves[] = {0, 0x3c00, 0xbe00, 0x7bff, 0x7c00, 0,
                             1, 0x3c00, 0x7fff, 0x7c00, 0x4204};
  unsigned short bfloats[] = {0,      0x3f80, 0xbfc0, 0x4780, 0x4780, 0x322c,
                              0x3381, 0x3f80, 0x7fff, 0x7f80, 0x4040};
  CUdeviceptr d = device_memory(4096);
  ok(cuMemcpyHtoDAsync_v2(d, x, sizeof x, stream));
  convert_args args = {to_pointer(d),        to_pointer(d + 512),  to_pointer(d + 1024),
                       to_pointer(d + 2048), to_pointer(d + 3072), 11};
  ok(launch(function_of(module, "convert"), 1, 32, 0, args));
  download(half, d + 512, sizeof half);
  download(bfloat16, d + 1024, sizeof bfloat16);
  download(from_half, d + 2048, sizeof from_half);
  download(math, d + 3072, sizeof math);
  for (int i = 0; i < 11; ++i) {
    cr_assert_eq(half[i], halves[i], "%d: %x", i, half[i]);
    cr_assert_eq(bfloat16[i], bfloats[i], "%d: %x", i, bfloat16[i]);
  }
  cr_assert_eq(from_half[2], -1.5f);
  cr_assert_eq(from_half[6], 0x1p-24f);
  cr_assert(isnan(from_half[8]));
  cr_assert_float_eq(math[1], expf(-1) + sqrtf(0.5f) + 2, 1e-5);
  ok(cuModuleUnload(module));
}

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

static int status_of_child(void (*run)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    run();
    _exit(0);
  }
  int state = -1;
  cr_assert_eq(waitpid(child, &state, 0), child);
  return state;
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

static size_t overrun_size;

static void overrun(void) {
  set_up();
  CUdeviceptr d = device_memory(overrun_size);
  out_args args = {to_pointer(d), (long long)(overrun_size / sizeof(unsigned))};
  ok(launch(function_of(load(), "overrun"), 1, 1, 0, args));
  ok(cuStreamSynchronize(stream));
}

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN true
#elif defined(__has_feature)
#define HAS_ASAN __has_feature(address_sanitizer)
#else
#define HAS_ASAN false
#endif

// The guard page begins after a multiple of 512 bytes; only AddressSanitizer sees less.
Test(devices, kernels_cannot_write_past_their_memory, .timeout = 60) {
  overrun_size = 1024;
  cr_assert_neq(status_of_child(overrun), 0);
  overrun_size = 1004;
  cr_assert_eq(status_of_child(overrun) != 0, HAS_ASAN);
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

static nvrtcResult compile(const char* source, nvrtcProgram* program) {
  const char* headers[] = {"struct twice_args { int* x; };\n"};
  const char* names[] = {"family/twice_args.h"};
  const char* options[] = {"--gpu-architecture=sm_90", ("-I" PRELUDE_FOLDER), "-DFACTOR=2"};
  cr_assert_eq(nvrtcCreateProgram(program, source, "twice.cu", 1, headers, names), NVRTC_SUCCESS);
  return nvrtcCompileProgram(*program, 3, options);
}

Test(emulator, nvrtc_compiles) {
  nvrtcProgram program;
  CUmodule module;
  size_t size;
  int values[4] = {1, 2, 3, 4};
  struct {
    int* x;
  } args;
  cr_assert_eq(compile("#include \"prelude.cuh\"\n#include \"family/twice_args.h\"\n"
                       "RN_KERNEL(twice, twice_args) { args.x[threadIdx.x] *= FACTOR; }\n",
                       &program),
               NVRTC_SUCCESS);
  cr_assert_eq(nvrtcGetCUBINSize(program, &size), NVRTC_SUCCESS);
  char* image = malloc(size);
  cr_assert_eq(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
  cr_assert_eq(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  ok(cuModuleLoadData(&module, image));
  free(image);
  CUdeviceptr d = device_memory(sizeof values);
  args.x = to_pointer(d);
  ok(cuMemcpyHtoDAsync_v2(d, values, sizeof values, stream));
  ok(launch(function_of(module, "twice"), 1, 4, 0, args));
  download(values, d, sizeof values);
  cr_assert_eq(values[3], 8);
  ok(cuModuleUnload(module));
}

Test(emulator, nvrtc_tells_what_is_wrong) {
  nvrtcProgram program;
  size_t size;
  cr_assert_eq(compile("this is no program", &program), 6);
  cr_assert_str_eq(nvrtcGetErrorString(6), "NVRTC_ERROR_COMPILATION");
  cr_assert_eq(nvrtcGetProgramLogSize(program, &size), NVRTC_SUCCESS);
  char* log = malloc(size);
  cr_assert_eq(nvrtcGetProgramLog(program, log), NVRTC_SUCCESS);
  cr_assert_eq(strlen(log) + 1, size);
  cr_assert(strstr(log, "twice.cu:1:"), "%s", log);
  free(log);
  const char* options[] = {"--no-such-option"};
  cr_assert_eq(nvrtcCompileProgram(program, 1, options), 5);
  cr_assert_eq(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
}
