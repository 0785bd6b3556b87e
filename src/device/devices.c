// The devices of a session or a server: see part.h.
#include "device/part.h"

// A machine without GPUs is no error. A client that asked for them is told what is missing. Options
// that fit no machine, or not this one, are an error.
static rn_status_t add_gpus(const rn_devices_init_t* init, rn_device_t** out, int* out_count) {
  *out_count = 0;
  if (!init->gpu || init->gpu->max_count == 0) return RN_OK;
  const rn_device_part_t* part = rn_cuda_part(init->env);
  if (!part) return RN_OK;
  rn_part_init_t part_init = {.options = init->gpu,
                              .name_prefix = init->name_prefix,
                              .env = init->env,
                              .allocator = init->allocator};
  rn_status_t status = part->create_devices(&part_init, RN_MAX_GPUS, out, out_count);
  rn_code_t code = rn_status_code(status);
  if (code == RN_CODE_INVALID_ARGUMENT || code == RN_CODE_UNKNOWN) {
    for (int i = 0; i < *out_count; ++i) rn_device_destroy(out[i]);
    *out_count = 0;
    return status;
  }
  bool is_asked = init->gpu->max_count > 0 || *init->gpu->visible_devices;
  if (!rn_ok(status) && (is_asked || code != RN_CODE_NOT_FOUND))
    rn_cuda_part_warn(init->env, status);
  rn_status_free(status);
  return RN_OK;
}

static rn_status_t add_device(const rn_devices_init_t* init, int cpus, int i, rn_device_t** out) {
  if (i < cpus) return rn_cpu_device_create(init->allocator, init->name_prefix, i, init->env, out);
  return rn_null_device_create(init->allocator, init->name_prefix, i - cpus, init->env, out);
}

rn_status_t rn_devices_create(const rn_devices_init_t* init, rn_device_t*** out, int* out_count) {
  *out = NULL;
  *out_count = 0;
  rn_device_t* gpus[RN_MAX_GPUS];
  int cpus = init->cpus < 1 ? 1 : init->cpus, gpu_count;
  RN_RETURN_IF_ERROR(add_gpus(init, gpus, &gpu_count));
  int total = cpus + init->nulls + gpu_count, made = 0;
  rn_device_t** devices = NULL;
  rn_status_t status =
      rn_alloc_array(init->allocator, (size_t)total, sizeof *devices, (void**)&devices);
  for (; rn_ok(status) && made < cpus + init->nulls; made += rn_ok(status))
    status = add_device(init, cpus, made, &devices[made]);
  if (!rn_ok(status)) {
    for (int i = 0; i < gpu_count; ++i) rn_device_destroy(gpus[i]);
    for (int i = 0; i < made; ++i) rn_device_destroy(devices[i]);
    if (devices) RN_FREE_ARRAY(init->allocator, devices, total);
    return status;
  }
  for (int i = 0; i < gpu_count; ++i) devices[made + i] = gpus[i];
  *out = devices;
  *out_count = total;
  return RN_OK;
}

void rn_devices_destroy(rn_allocator_t allocator, rn_device_t** devices, int count) {
  if (!devices) return;
  for (int i = 0; i < count; ++i) rn_device_destroy(devices[i]);
  RN_FREE_ARRAY(allocator, devices, count);
}
