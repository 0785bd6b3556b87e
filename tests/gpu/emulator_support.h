// What the tests of the emulator share: its libraries, opened, and a stream on device 0.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_SUPPORT_H_
#define RUNNEL_TESTS_GPU_EMULATOR_SUPPORT_H_

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/driver_api.h"
#include "emulator/emulator.h"
#include "emulator_test.h"

#define POINTER(result, name, parameters) static result(*name) parameters;
RN_CUDA_DRIVER_CALLS(POINTER)
RN_NVRTC_CALLS(POINTER)
RN_EMULATED_CALLS(POINTER)

#define ok(call) cr_assert_eq((call), CUDA_SUCCESS, "%s", #call)

static CUcontext context;
static CUstream stream;

static inline void* open_library(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("RUNNEL_CUDA_PATH"), name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cr_assert_not_null(library, "%s", dlerror());
  return library;
}

static inline void find(void* library, const char* name, void* out) {
  *(void**)out = dlsym(library, name);
  cr_assert_not_null(*(void**)out, "%s", name);
}

static inline void set_up(void) {
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

static inline void tear_down(void) {
  cuStreamDestroy_v2(stream);
  ok(cuDevicePrimaryCtxRelease_v2(0));
}

static inline void* read_image(void) {
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

static inline CUmodule load(void) {
  void* image = read_image();
  CUmodule module;
  ok(cuModuleLoadData(&module, image));
  free(image);
  return module;
}

static inline CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function;
  ok(cuModuleGetFunction(&function, module, name));
  return function;
}

static inline CUdeviceptr device_memory(size_t size) {
  CUdeviceptr address;
  ok(cuMemAlloc_v2(&address, size));
  return address;
}

static inline CUresult launch_on(CUstream on, CUfunction function, unsigned grid, unsigned block,
                                 unsigned shared, const void* args, size_t size) {
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void*)args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, on, NULL, extra);
}
#define launch(function, grid, block, shared, args) \
  launch_on(stream, function, grid, block, shared, &(args), sizeof(args))
#define to_pointer(address) ((void*)(uintptr_t)(address))

static inline void download(void* to, CUdeviceptr from, size_t size) {
  ok(cuMemcpyDtoHAsync_v2(to, from, size, stream));
  ok(cuStreamSynchronize(stream));
}

static inline int status_of_child(void (*run)(void)) {
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

static inline void check_sum(const char* name, unsigned grid, unsigned block, unsigned shared) {
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

#endif  // RUNNEL_TESTS_GPU_EMULATOR_SUPPORT_H_
