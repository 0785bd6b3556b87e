// Resources shared by datasets: seed generators, memory caches and pools of threads.
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/cache.h"
#include "kernels/cpu/dataset/seeds.h"
#include "kernels/cpu/dataset/walk.h"
#include "kernels/cpu/state/handle.h"

typedef struct resource_ops_maker_t {
  char* device;
  size_t size;
  rn_allocator_t allocator;
  const rn_env_t* env;
  bool always_changes;  // AnonymousRandomSeedGenerator
} resource_ops_maker_t;

static rn_status_t maker_init(const rn_kernel_init_t* init, void* state) {
  resource_ops_maker_t* maker = state;
  maker->allocator = init->allocator;
  maker->env = init->env;
  maker->size = init->device_name.size;
  maker->always_changes = init->input_count == 2;
  return rn_str_dup(init->allocator, init->device_name, &maker->device);
}

static void maker_destroy(void* state) {
  resource_ops_maker_t* maker = state;
  if (maker->device) rn_free(maker->allocator, maker->device, maker->size + 1);
}

// Outputs a handle to |resource|, taking its reference (NULL for an empty handle), and a deleter if
// the op has one. The resource lives as long as its handles.
static rn_status_t give_handle(rn_kernel_ctx_t* ctx, const char* container,
                               rn_resource_t* resource) {
  const resource_ops_maker_t* maker = ctx->state;
  char name[64];
  snprintf(name, sizeof name, "%s_%p", container, (void*)resource);
  rn_handle_t from = {.device = rn_str_n(maker->device, maker->size),
                      .container = rn_str(container),
                      .name = rn_str(name),
                      .type_name = rn_str(container),
                      .shape = RN_SHAPE_UNKNOWN,
                      .resource = resource};
  rn_handle_t* handle = NULL;
  rn_status_t status = rn_handle_make(ctx->kernel->allocator, &from, &handle);
  if (resource) rn_object_release(&resource->object);
  RN_RETURN_IF_ERROR(status);
  return rn_data_give_handle(ctx, handle);
}

static rn_status_t seeds_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"seed", "seed2", "reshuffle"};
  const resource_ops_maker_t* maker = ctx->state;
  int64_t values[3] = {0, 0, 1};
  for (int i = 0; i < ctx->kernel->input_count && i < 3; ++i) {
    const rn_tensor_t* in = rn_in(ctx, i);
    if (in->rank != 0) return rn_invalid_argument("%s must be a scalar", names[i]);
    values[i] = in->dtype == RN_BOOL ? *RN_DATA(in, const bool) : rn_int_at(in, 0);
  }
  rn_data_seeds_t* seeds = NULL;
  RN_RETURN_IF_ERROR(rn_data_seeds_create(maker->allocator, maker->env, values[0], values[1],
                                          maker->always_changes || values[2], &seeds));
  return give_handle(ctx, "AnonymousSeedGenerator", &seeds->resource);
}

static rn_status_t cache_compute(rn_kernel_ctx_t* ctx) {
  rn_data_cache_t* cache = NULL;
  RN_RETURN_IF_ERROR(
      rn_data_cache_create(((const resource_ops_maker_t*)ctx->state)->allocator, &cache));
  return give_handle(ctx, "AnonymousMemoryCache", &cache->resource);
}

static rn_status_t nothing_compute(rn_kernel_ctx_t* ctx) { return give_handle(ctx, "Dummy", NULL); }

// ThreadPoolHandle. The pool of the runtime serves all datasets, so this one has no threads.
typedef struct resource_ops_threads_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
} resource_ops_threads_t;

static void threads_destroy(rn_object_t* object) {
  resource_ops_threads_t* threads = (resource_ops_threads_t*)object;
  RN_FREE(threads->allocator, threads);
}

static rn_status_t threads_create(void* arg, rn_str_t name, rn_resource_t** out) {
  (void)name;
  const rn_kernel_init_t* init = arg;
  resource_ops_threads_t* threads = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &threads));
  threads->resource =
      (rn_resource_t){{.refs = 1, .destroy = threads_destroy}, RN_DATA_THREADS_TYPE};
  threads->allocator = init->allocator;
  *out = &threads->resource;
  return RN_OK;
}

static rn_status_t threads_init(const rn_kernel_init_t* init, void* state) {
  if (rn_init_int(init, "num_threads") < 0)
    return rn_invalid_argument("`num_threads` must be >= 0");
  return rn_handle_state_init(state, init, RN_DATA_THREADS_TYPE, threads_create,
                              (void*)(uintptr_t)init);
}

#define MAKE(name, function)                                                                  \
  {                                                                                           \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,                              \
    .state_size = sizeof(resource_ops_maker_t), .init = maker_init, .destroy = maker_destroy, \
    .compute = function                                                                       \
  }

static const rn_kernel_def_t rows[] = {
    MAKE("AnonymousSeedGenerator", seeds_compute),
    MAKE("AnonymousRandomSeedGenerator", seeds_compute),
    MAKE("DummySeedGenerator", nothing_compute),
    MAKE("AnonymousMemoryCache", cache_compute),
    MAKE("DummyMemoryCache", nothing_compute),
    MAKE("DummyIterationCounter", nothing_compute),
    {.op = "ThreadPoolHandle",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_handle_state_t),
     .init = threads_init,
     .destroy = rn_handle_state_destroy,
     .compute = rn_handle_state_compute},
};
RN_KERNEL_FAMILY(cpu_data_resource, rows);
