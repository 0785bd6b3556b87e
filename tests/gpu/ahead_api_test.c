// Loops that the pool compiles when a kernel is made, before the first step needs them. Runs on the
// emulated GPU.
#include "kernels/cuda/ahead.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api.h"

extern const rn_kernel_family_t rn_kernels_cuda_elementwise;

#define KERNELS 6
static const char* const names[KERNELS] = {"Sinh", "Cosh", "Asinh", "Acosh", "Atan", "Erfc"};
static int64_t dims[2] = {3, 7};

// Files in the folder of the kernel cache, which goes with them if |clears|.
static int files(bool clears) {
  int count = 0;
  const char* folder = getenv("RUNNEL_CACHE_DIR");
  DIR* list = opendir(folder);
  for (struct dirent* entry; list && (entry = readdir(list));) {
    char path[4096];
    if (*entry->d_name == '.') continue;
    ++count;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (clears) unlink(path);
  }
  if (list) closedir(list);
  if (clears) rmdir(folder);
  return count;
}

static rn_kernel_t* make(gpu_t* gpu, const rn_env_t* env, const char* name, rn_shape_t shape) {
  const rn_kernel_def_t* def = NULL;
  for (size_t i = 0; i < rn_kernels_cuda_elementwise.count; ++i)
    if (strcmp(rn_kernels_cuda_elementwise.rows[i].op, name) == 0)
      def = &rn_kernels_cuda_elementwise.rows[i];
  cr_assert_not_null(def, "%s", name);
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = RN_FLOAT};
  rn_dtype_t dtype = RN_FLOAT;
  rn_kernel_init_t init = {.op = rn_op_find(rn_str(name)),
                           .node = rn_str(name),
                           .attrs = &type,
                           .input_count = 1,
                           .input_types = &dtype,
                           .output_count = 1,
                           .output_types = &dtype,
                           .input_shapes = &shape,
                           .output_shapes = &shape,
                           .device = gpu->device,
                           .allocator = rn_allocator_system(),
                           .device_memory = gpu->device->allocator,
                           .host_memory = rn_allocator_system(),
                           .env = env};
  rn_kernel_t* kernel = NULL;
  OK(rn_kernel_create(def, &init, &kernel));
  return kernel;
}

// Runs the kernel and gives the first element of its output.
static float run(gpu_t* gpu, const rn_env_t* env, const rn_kernel_t* kernel, float value) {
  rn_step_t step = {.env = env};
  rn_tensor_t host, in, out = {0}, *ins[] = {&in};
  rn_shape_t shape = {2, dims};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, shape, &host));
  OK(rn_tensor_create(gpu->device->allocator, RN_FLOAT, shape, &in));
  for (int64_t i = 0; i < host.count; ++i) RN_DATA(&host, float)[i] = value;
  gpu->device->vtable->copy_from_host(gpu->device, &host, &in, NULL, NULL);
  rn_kernel_ctx_t ctx = {
      .kernel = kernel, .state = kernel->state, .in = ins, .out = &out, .step = &step};
  OK(kernel->def->compute(&ctx));
  gpu->device->vtable->copy_to_host(gpu->device, &out, &host, NULL, NULL);
  OK(gpu->device->vtable->wait(gpu->device));
  float result = *RN_DATA(&host, float);
  rn_tensor_clear(&host);
  rn_tensor_clear(&in);
  rn_tensor_clear(&out);
  return result;
}

static void check(int threads, bool is_known, bool waits, int expected_files) {
  char folder[] = "/tmp/runnel_ahead_XXXXXX";
  setenv("RUNNEL_CACHE_DIR", mkdtemp(folder), 1);
  gpu_t gpu;
  gpu_open(&gpu);
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create(rn_allocator_system(), threads, &env.pool));
  rn_kernel_t* kernels[KERNELS];
  rn_shape_t shape = is_known ? (rn_shape_t){2, dims} : (rn_shape_t){2, (int64_t[]){-1, 7}};
  for (int i = 0; i < KERNELS; ++i) kernels[i] = make(&gpu, &env, names[i], shape);
  if (waits) {
    rn_pool_destroy(env.pool);  // ends the jobs first
    env.pool = NULL;
    cr_assert_eq(files(false), expected_files);
  }
  const double wanted[KERNELS] = {sinh(1.5),  cosh(1.5), asinh(1.5),
                                  acosh(1.5), atan(1.5), erfc(1.5)};
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 0; i < KERNELS; ++i)
      cr_assert_float_eq(run(&gpu, &env, kernels[i], 1.5f), wanted[i], 1e-5, "%s", names[i]);
  for (int i = 0; i < KERNELS; ++i) rn_kernel_destroy(kernels[i]);
  rn_pool_destroy(env.pool);
  cr_assert_eq(files(true), KERNELS);
  gpu_close(&gpu);
}

Test(gpu_ahead_api, the_pool_compiles, .timeout = 60) { check(3, true, true, KERNELS); }
Test(gpu_ahead_api, steps_do_not_wait_for_the_pool, .timeout = 60) { check(3, true, false, 0); }
Test(gpu_ahead_api, unknown_shapes_are_left, .timeout = 60) { check(3, false, true, 0); }
Test(gpu_ahead_api, one_thread_compiles_in_the_step, .timeout = 60) { check(1, true, true, 0); }

// A kernel that is made twice is compiled once.
Test(gpu_ahead_api, the_same_loop_twice, .timeout = 60) {
  char folder[] = "/tmp/runnel_ahead_XXXXXX";
  setenv("RUNNEL_CACHE_DIR", mkdtemp(folder), 1);
  gpu_t gpu;
  gpu_open(&gpu);
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create(rn_allocator_system(), 3, &env.pool));
  rn_shape_t shape = {2, dims};
  rn_kernel_t *a = make(&gpu, &env, "Sinh", shape), *b = make(&gpu, &env, "Sinh", shape);
  cr_assert_eq(run(&gpu, &env, a, 2), run(&gpu, &env, b, 2));
  rn_kernel_t* c = make(&gpu, &env, "Sinh", shape);  // of code that was loaded
  cr_assert_eq(run(&gpu, &env, a, 2), run(&gpu, &env, c, 2));
  rn_kernel_destroy(a), rn_kernel_destroy(b), rn_kernel_destroy(c);
  rn_pool_destroy(env.pool);
  cr_assert_eq(files(true), 1);
  gpu_close(&gpu);
}
