// The CPU device: cached host memory; kernels run in the calling thread.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>  // defines __GLIBC__

#include "base/cache_alloc.h"
#include "base/machine.h"
#include "device/device.h"

// Idle memory kept for the next step; more is returned to the system.
#define MAX_CACHED_BYTES ((size_t)4 << 30)
// What stock reports for a CPU: 256 MiB.
#define REPORTED_MEMORY ((int64_t)256 << 20)

typedef struct cpu_device_t {
  rn_device_t base;  // first
  rn_allocator_t allocator;
  rn_cache_alloc_t* cache;    // Retained
  size_t limit;               // of the bytes of all tensors
  _Atomic int64_t explained;  // refusals that a status has explained
} cpu_device_t;

static void cpu_destroy(rn_device_t* device) {
  cpu_device_t* cpu = (cpu_device_t*)device;
  rn_resources_destroy(cpu->base.resources);
  if (cpu->cache) rn_cache_alloc_release(cpu->cache);
  rn_free(cpu->allocator, (char*)cpu->base.name.data, cpu->base.name.size + 1);
  RN_FREE(cpu->allocator, cpu);
}

static void cpu_copy(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                     rn_device_done_t done, void* arg) {
  (void)device;
  memcpy(target->data, source->data, rn_tensor_bytes(source));
  if (done) done(arg, RN_OK);
}

static void cpu_sync(rn_device_t* device, rn_device_done_t done, void* arg) {
  (void)device;
  done(arg, RN_OK);
}

static void cpu_trim(rn_device_t* device) { rn_cache_alloc_trim(((cpu_device_t*)device)->cache); }

static void cpu_explain(rn_device_t* device, rn_strbuf_t* out) {
  cpu_device_t* cpu = (cpu_device_t*)device;
  rn_cache_stats_t stats;
  rn_cache_alloc_stats(cpu->cache, &stats);
  if (atomic_exchange(&cpu->explained, stats.refusals) == stats.refusals) return;
  rn_strbuf_printf(out,
                   "%" PRId64
                   " bytes are in use, and the limit is %zu; RUNNEL_MAX_MEMORY=<bytes> "
                   "sets another one",
                   stats.bytes_in_use, cpu->limit);
}

// The bytes that tensors may use: RUNNEL_MAX_MEMORY, or the memory of the machine or control group.
// Without a limit the system grants more than there is, and ends the process when that is used.
static size_t memory_limit(void) {
  const char* text = getenv("RUNNEL_MAX_MEMORY");
  char* end = NULL;
  unsigned long long given = text ? strtoull(text, &end, 10) : 0;
  if (text && end != text && *end == '\0') return given < SIZE_MAX ? (size_t)given : SIZE_MAX;
  size_t memory = rn_machine_memory();
  return memory ? memory : SIZE_MAX;
}

static const rn_device_vtable_t cpu_vtable = {.destroy = cpu_destroy,
                                              .copy_to_host = cpu_copy,
                                              .copy_from_host = cpu_copy,
                                              .sync = cpu_sync,
                                              .trim = cpu_trim,
                                              .explain_memory = cpu_explain};

rn_status_t rn_cpu_device_create(rn_allocator_t allocator, rn_str_t name_prefix, int index,
                                 const rn_env_t* env, rn_device_t** out) {
  *out = NULL;
  cpu_device_t* cpu = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &cpu));
  cpu->allocator = allocator;
  cpu->base = (rn_device_t){.vtable = &cpu_vtable,
                            .idle_mutex = RN_MUTEX_INIT,
                            .type = "CPU",
                            .index = index,
                            .is_host = true,
                            .memory_limit = REPORTED_MEMORY,
                            .incarnation = env->random(env->self) | 1};
  rn_status_t status = rn_device_name(allocator, name_prefix, "CPU", index, &cpu->base.name);
  if (rn_ok(status)) status = rn_resources_create(allocator, &cpu->base.resources);
  if (rn_ok(status)) status = rn_cache_alloc_create(allocator, MAX_CACHED_BYTES, &cpu->cache);
  if (!rn_ok(status)) {
    cpu_destroy(&cpu->base);
    return status;
  }
  cpu->limit = memory_limit();
  rn_cache_alloc_set_limit(cpu->cache, cpu->limit);
  cpu->base.allocator = cpu->base.kernel_memory = rn_cache_allocator(cpu->cache);
  *out = &cpu->base;
  return RN_OK;
}
