// Kernels on the emulated GPU: barriers, warp exchanges, arithmetic, and kernels that NVRTC
// compiles.
#include <math.h>

#include "emulator_support.h"

#define MANY 1000

TestSuite(kernels, .init = set_up, .fini = tear_down, .timeout = 60);

Test(kernels, adds_vectors) {
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

Test(kernels, reduces_over_a_block) {
  check_sum("sum_i32", 3, 256, 0);
  check_sum("sum_i32", 1, 1024, 0);
  check_sum("sum_i32", 5, 32, 0);
  check_sum("tree_i32", 2, 512, 512 * sizeof(int));
  check_sum("tree_i32", 5, 1024, 1024 * sizeof(int));
}

Test(kernels, threads_that_ended_do_not_count) {
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

Test(kernels, exchanges_within_a_warp) {
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

Test(kernels, indexes_have_three_dimensions) {
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

Test(kernels, a_barrier_that_not_all_reach_fails_the_launch) { fails_with("stuck", 719); }
Test(kernels, a_trap_fails_the_launch) { fails_with("traps", 719); }

Test(kernels, launches_are_checked) {
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

Test(kernels, converts_and_computes) {
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
Test(broken_kernels, kernels_cannot_write_past_their_memory, .timeout = 60) {
  overrun_size = 1024;
  cr_assert_neq(status_of_child(overrun), 0);
  overrun_size = 1004;
  cr_assert_eq(status_of_child(overrun) != 0, HAS_ASAN);
}

Test(kernels, intrinsics_and_atomics) {
  static const unsigned expected[] = {
      6408, 633231, 410004, 0x80000000, 3, 0x77443300, 3, 3, 0x40490fdb, 0, 495, 8, 1605, 3, 423};
  unsigned out[15];
  CUmodule module = load();
  CUdeviceptr d = device_memory(sizeof out);
  out_args args = {to_pointer(d), 0};
  ok(launch(function_of(module, "intrinsics"), 1, 1, 0, args));
  download(out, d, sizeof out);
  for (int i = 0; i < 15; ++i) cr_assert_eq(out[i], expected[i], "%d: %u %x", i, out[i], out[i]);
  ok(cuModuleUnload(module));
}

static nvrtcResult compile(const char* source, nvrtcProgram* program) {
  const char* headers[] = {"struct twice_args { int* x; };\n"};
  const char* names[] = {"family/twice_args.h"};
  const char* options[] = {"--gpu-architecture=sm_90", ("-I" PRELUDE_FOLDER), "-DFACTOR=2"};
  cr_assert_eq(nvrtcCreateProgram(program, source, "twice.cu", 1, headers, names), NVRTC_SUCCESS);
  return nvrtcCompileProgram(*program, 3, options);
}

Test(kernels, nvrtc_compiles) {
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

Test(kernels, nvrtc_tells_what_is_wrong) {
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
