// For tests that call functions of the CUDA part itself.
#ifndef TESTS_GPU_API_H_
#define TESTS_GPU_API_H_

#include <criterion/criterion.h>
#include <math.h>

#include "../support/status.h"
#include "device/cuda/cuda_device.h"

// A device, and the context of a kernel on it.
typedef struct gpu_t {
  rn_device_t* device;
  rn_kernel_t kernel;
  rn_step_t step;
  rn_kernel_ctx_t ctx;
} gpu_t;

static void gpu_open(gpu_t* gpu) {
  int count = 0;
  rn_gpu_options_t options = {.max_count = -1};
  rn_part_init_t init = {.options = &options,
                         .name_prefix = RN_STR("/job:test/replica:0/task:0"),
                         .env = rn_env_system(),
                         .allocator = rn_allocator_system()};
  *gpu = (gpu_t){.device = NULL};
  OK(rn_cuda_create_devices(&init, 1, &gpu->device, &count));
  cr_assert_eq(count, 1);
  gpu->kernel.device = gpu->device;
  gpu->kernel.allocator = rn_allocator_system();
  gpu->kernel.device_memory = gpu->device->allocator;
  gpu->step.env = rn_env_system();
  gpu->ctx.kernel = &gpu->kernel;
  gpu->ctx.step = &gpu->step;
}

static void gpu_close(gpu_t* gpu) { gpu->device->vtable->destroy(gpu->device); }

// A tensor of |count| elements on the host and its copy on the card.
typedef struct pair_t {
  rn_tensor_t host, card;
} pair_t;

static inline pair_t pair_make(gpu_t* gpu, rn_dtype_t dtype, int64_t count) {
  pair_t pair;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){1, &count}, &pair.host));
  OK(rn_tensor_create(gpu->device->allocator, dtype, (rn_shape_t){1, &count}, &pair.card));
  for (int64_t i = 0; i < count; ++i) {
    int value = (int)((i * 7919 + count) % 17) - 8;
    if (dtype == RN_FLOAT) RN_DATA(&pair.host, float)[i] = (float)value / 4;
    if (dtype == RN_INT8) RN_DATA(&pair.host, int8_t)[i] = (int8_t)(value * 13);
    if (dtype == RN_INT32) RN_DATA(&pair.host, int32_t)[i] = value * 100000;
    if (dtype == RN_INT64) RN_DATA(&pair.host, int64_t)[i] = (int64_t)value << 33;
  }
  gpu->device->vtable->copy_from_host(gpu->device, &pair.host, &pair.card, NULL, NULL);
  return pair;
}

static inline void pair_fetch(gpu_t* gpu, pair_t* pair) {
  gpu->device->vtable->copy_to_host(gpu->device, &pair->card, &pair->host, NULL, NULL);
  OK(gpu->device->vtable->wait(gpu->device));
}

static inline void pair_clear(pair_t* pair) {
  rn_tensor_clear(&pair->host);
  rn_tensor_clear(&pair->card);
}

#endif  // TESTS_GPU_API_H_
