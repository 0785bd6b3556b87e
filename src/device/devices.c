// The devices of a session or a server: see part.h.
#include "device/factory.h"

#define MAX_PLUGGED 64  // devices of plug-ins

static void destroy_all(rn_device_t** devices, int count) {
  for (int i = 0; i < count; ++i) rn_device_destroy(devices[i]);
}

// A machine without GPUs is no error. A client that asked for them is told what is missing. Options
// that fit no machine, or not this one, are an error.
static rn_status_t add_gpus(const rn_devices_init_t* init, rn_device_t** out, int* out_count) {
  *out_count = 0;
  if (!init->gpu || init->gpu->max_count == 0 || rn_device_factory_find("GPU")) return RN_OK;
  const rn_device_part_t* part = rn_cuda_part(init->env);
  if (!part) return RN_OK;
  rn_part_init_t part_init = {.options = init->gpu,
                              .name_prefix = init->name_prefix,
                              .env = init->env,
                              .allocator = init->allocator};
  rn_status_t status = part->create_devices(&part_init, RN_MAX_GPUS, out, out_count);
  rn_code_t code = rn_status_code(status);
  if (code == RN_CODE_INVALID_ARGUMENT || code == RN_CODE_UNKNOWN) {
    destroy_all(out, *out_count);
    *out_count = 0;
    return status;
  }
  bool is_asked = init->gpu->max_count > 0 || *init->gpu->visible_devices;
  if (!rn_ok(status) && (is_asked || code != RN_CODE_NOT_FOUND))
    rn_cuda_part_warn(init->env, status);
  rn_status_free(status);
  return RN_OK;
}

static int count_of(const rn_devices_init_t* init, const char* type) {
  int gpus = init->gpu && strcmp(type, "GPU") == 0 ? init->gpu->max_count : -1;
  for (int i = 0; init->counts && i < init->counts->used; ++i)
    if (strcmp(init->counts->rows[i].type, type) == 0) return init->counts->rows[i].count;
  return gpus;
}

// The devices of all plug-ins.
static rn_status_t add_plugged(const rn_devices_init_t* init, rn_device_t** out, int* out_count) {
  *out_count = 0;
  rn_status_t status = RN_OK;
  const rn_device_factory_t* factory;
  for (int i = 0; rn_ok(status) && (factory = rn_device_factory_at(i)); ++i) {
    rn_gpu_options_t options = {0};
    if (init->gpu) options = *init->gpu;
    options.max_count = count_of(init, factory->type);
    rn_part_init_t part_init = {.options = &options,
                                .name_prefix = init->name_prefix,
                                .env = init->env,
                                .allocator = init->allocator};
    int made = 0;
    status = factory->create_devices(factory, &part_init, MAX_PLUGGED - *out_count,
                                     out + *out_count, &made);
    *out_count += made;
  }
  if (rn_ok(status)) return RN_OK;
  destroy_all(out, *out_count);
  *out_count = 0;
  return status;
}

static rn_status_t add_device(const rn_devices_init_t* init, int cpus, int i, rn_device_t** out) {
  if (i < cpus) return rn_cpu_device_create(init->allocator, init->name_prefix, i, init->env, out);
  return rn_null_device_create(init->allocator, init->name_prefix, i - cpus, init->env, out);
}

// |others| come after the CPUs and null devices; they are destroyed after a failure.
static rn_status_t make_list(const rn_devices_init_t* init, rn_device_t** others, int other_count,
                             rn_device_t*** out, int* out_count) {
  int cpus = init->cpus < 1 ? 1 : init->cpus;
  int total = cpus + init->nulls + other_count, made = 0;
  rn_device_t** devices = NULL;
  rn_status_t status =
      rn_alloc_array(init->allocator, (size_t)total, sizeof *devices, (void**)&devices);
  for (; rn_ok(status) && made < cpus + init->nulls; made += rn_ok(status))
    status = add_device(init, cpus, made, &devices[made]);
  if (!rn_ok(status)) {
    destroy_all(others, other_count);
    destroy_all(devices, made);
    if (devices) RN_FREE_ARRAY(init->allocator, devices, total);
    return status;
  }
  for (int i = 0; i < other_count; ++i) devices[made + i] = others[i];
  *out = devices;
  *out_count = total;
  return RN_OK;
}

// As in stock, a plug-in's devices go before built-in ones: nodes without a device prefer them.
rn_status_t rn_devices_create(const rn_devices_init_t* init, rn_device_t*** out, int* out_count) {
  *out = NULL;
  *out_count = 0;
  rn_device_t* others[MAX_PLUGGED + RN_MAX_GPUS];
  int plugged, gpus;
  RN_RETURN_IF_ERROR(add_plugged(init, others, &plugged));
  rn_status_t status = add_gpus(init, others + plugged, &gpus);
  if (!rn_ok(status)) {
    destroy_all(others, plugged);
    return status;
  }
  return make_list(init, others, plugged + gpus, out, out_count);
}

void rn_devices_destroy(rn_allocator_t allocator, rn_device_t** devices, int count) {
  if (!devices) return;
  destroy_all(devices, count);
  RN_FREE_ARRAY(allocator, devices, count);
}
