// A device plug-in: "TOY", two devices in a memory that the host cannot touch (toy_stream.h).
//
// TOY_TYPE is another type for it. TOY_FAULT makes it a bad plug-in: see fault() below.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "toy_stream.h"

static bool fault(const char* name) {
  const char* wanted = getenv("TOY_FAULT");
  return wanted && strcmp(wanted, name) == 0;
}

static toy_stream_t* stream_of(SP_Stream stream) { return (toy_stream_t*)stream; }
static toy_event_t* event_of(SP_Event event) { return (toy_event_t*)event; }

// --- Memory

static void allocate(const SP_Device* device, uint64_t size, int64_t space,
                     SP_DeviceMemoryBase* out) {
  (void)device, (void)space;
  out->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  out->opaque = fault("oom") ? NULL : (void*)toy_memory_alloc(size);
  out->size = out->opaque ? size : 0;
}
static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  (void)device;
  toy_memory_free((uintptr_t)memory->opaque);
  memory->opaque = NULL;
  memory->size = 0;
}
static void* host_allocate(const SP_Device* device, uint64_t size) {
  (void)device;
  return aligned_alloc(64, (size + 63) / 64 * 64);
}
static void host_deallocate(const SP_Device* device, void* memory) {
  (void)device;
  free(memory);
}
static TF_Bool allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  (void)device;
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->bytes_in_use = (int64_t)toy_memory_in_use();
  stats->has_bytes_limit = 1;
  stats->bytes_limit = (int64_t)toy_memory_size();
  return 1;
}
static TF_Bool memory_usage(const SP_Device* device, int64_t* free_bytes, int64_t* total) {
  (void)device;
  *free_bytes = *total = (int64_t)toy_memory_size();
  return !fault("memory_usage");
}

// --- Streams, events and timers

static void create_stream(const SP_Device* device, SP_Stream* out, TF_Status* status) {
  (void)device;
  if (fault("create_stream")) {
    TF_SetStatus(status, TF_INTERNAL, "no streams today");
    return;
  }
  *out = (SP_Stream)toy_stream_create();
}
static void destroy_stream(const SP_Device* device, SP_Stream stream) {
  (void)device;
  toy_stream_destroy(stream_of(stream));
}
static void stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                              TF_Status* status) {
  (void)device, (void)status;
  toy_event_t* event = toy_event_create();
  toy_event_record(event, stream_of(other));
  toy_event_wait_on(event, stream_of(dependent));
  toy_event_destroy(event);
}
static void stream_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device, (void)stream, (void)status;
}
static void create_event(const SP_Device* device, SP_Event* out, TF_Status* status) {
  (void)device, (void)status;
  *out = (SP_Event)toy_event_create();
}
static void destroy_event(const SP_Device* device, SP_Event event) {
  (void)device;
  toy_event_destroy(event_of(event));
}
static SE_EventStatus event_status(const SP_Device* device, SP_Event event) {
  (void)device;
  return toy_event_is_done(event_of(event)) ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}
static void record_event(const SP_Device* device, SP_Stream stream, SP_Event event,
                         TF_Status* status) {
  (void)device, (void)status;
  toy_event_record(event_of(event), stream_of(stream));
}
static void wait_for_event(const SP_Device* const device, SP_Stream stream, SP_Event event,
                           TF_Status* const status) {
  (void)device, (void)status;
  toy_event_wait_on(event_of(event), stream_of(stream));
}
static void create_timer(const SP_Device* device, SP_Timer* out, TF_Status* status) {
  (void)device, (void)status;
  *out = (SP_Timer)malloc(1);
}
static void destroy_timer(const SP_Device* device, SP_Timer timer) {
  (void)device;
  free(timer);
}
static void start_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer,
                        TF_Status* status) {
  (void)device, (void)stream, (void)timer, (void)status;
}
static uint64_t nanoseconds(SP_Timer timer) {
  (void)timer;
  return 1;
}

// --- Copies

static void copy_to_host(const toy_args_t* args) {
  memcpy((void*)args->at[0], toy_view(args->at[1]), args->at[2]);
}
static void copy_to_device(const toy_args_t* args) {
  memcpy(toy_view(args->at[0]), (const void*)args->at[1], args->at[2]);
}
static void copy_within(const toy_args_t* args) {
  memmove(toy_view(args->at[0]), toy_view(args->at[1]), args->at[2]);
}
static void dtoh(const SP_Device* device, SP_Stream stream, void* to,
                 const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  (void)device;
  if (fault("copy")) {
    TF_SetStatus(status, TF_INTERNAL, "the bus is down");
    return;
  }
  toy_args_t args = {{(uintptr_t)to, (uintptr_t)from->opaque, size}};
  toy_stream_issue(stream_of(stream), copy_to_host, &args);
}
static void htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
                 const void* from, uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  toy_args_t args = {{(uintptr_t)to->opaque, (uintptr_t)from, size}};
  toy_stream_issue(stream_of(stream), copy_to_device, &args);
}
static void dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
                 const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  toy_args_t args = {{(uintptr_t)to->opaque, (uintptr_t)from->opaque, size}};
  toy_stream_issue(stream_of(stream), copy_within, &args);
}
static void sync_dtoh(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from,
                      uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  memcpy(to, toy_view((uintptr_t)from->opaque), size);
}
static void sync_htod(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from,
                      uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  memcpy(toy_view((uintptr_t)to->opaque), from, size);
}
static void sync_dtod(const SP_Device* device, SP_DeviceMemoryBase* to,
                      const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  memmove(toy_view((uintptr_t)to->opaque), toy_view((uintptr_t)from->opaque), size);
}

// --- Filling

static void fill_bytes(const toy_args_t* args) {
  memset(toy_view(args->at[0]), (int)args->at[1], args->at[2]);
}
static void mem_zero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* at,
                     uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  toy_args_t args = {{(uintptr_t)at->opaque, 0, size}};
  toy_stream_issue(stream_of(stream), fill_bytes, &args);
}
static void mem_set(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* at,
                    uint8_t pattern, uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  toy_args_t args = {{(uintptr_t)at->opaque, pattern, size}};
  toy_stream_issue(stream_of(stream), fill_bytes, &args);
}
static void fill_words(const toy_args_t* args) {
  uint32_t* words = toy_view(args->at[0]);
  for (uintptr_t i = 0; i < args->at[2] / 4; ++i) words[i] = (uint32_t)args->at[1];
}
static void mem_set32(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* at,
                      uint32_t pattern, uint64_t size, TF_Status* status) {
  (void)device, (void)status;
  toy_args_t args = {{(uintptr_t)at->opaque, pattern, size}};
  toy_stream_issue(stream_of(stream), fill_words, &args);
}

// --- Waiting

static void block_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device, (void)status;
  toy_event_wait(event_of(event));
}
static void block_until_done(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device, (void)status;
  toy_stream_wait(stream_of(stream));
}
static void synchronize_all(const SP_Device* device, TF_Status* status) {
  (void)device, (void)status;
}

static void call_back(const toy_args_t* args) {
  TF_Status* status = TF_NewStatus();
  ((SE_StatusCallbackFn)args->at[0])((void*)args->at[1], status);
  TF_DeleteStatus(status);
}
static TF_Bool host_callback(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn fn,
                             void* arg) {
  (void)device;
  toy_args_t args = {{(uintptr_t)fn, (uintptr_t)arg}};
  toy_stream_issue(stream_of(stream), call_back, &args);
  return 1;
}

// --- The platform

static void device_count(const SP_Platform* platform, int* out, TF_Status* status) {
  (void)platform, (void)status;
  *out = 2;
}
static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params,
                          TF_Status* status) {
  (void)platform;
  if (fault("create_device")) {
    TF_SetStatus(status, TF_UNAVAILABLE, "the device is not plugged in");
    return;
  }
  params->device->struct_size = fault("device_size") ? 0 : SP_DEVICE_STRUCT_SIZE;
  params->device->hardware_name = "Toy 3000";
  params->device->device_vendor = "Toys";
  params->device->pci_bus_id = "0000:0b:00.0";
}
static void destroy_device(const SP_Platform* platform, SP_Device* device) {
  (void)platform, (void)device;
}
static int32_t numa_node(const SP_Device* device) {
  (void)device;
  return 0;
}
static void create_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
                              TF_Status* status) {
  (void)platform, (void)status;
  params->device_fns->struct_size = fault("device_fns_size") ? 0 : SP_DEVICE_FNS_STRUCT_SIZE;
  params->device_fns->get_numa_node = numa_node;
}
static void destroy_device_fns(const SP_Platform* platform, SP_DeviceFns* fns) {
  (void)platform, (void)fns;
}
static void destroy_executor(const SP_Platform* platform, SP_StreamExecutor* executor) {
  (void)platform, (void)executor;
}
static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* fns, TF_Status* status) {
  (void)platform, (void)status;
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = fault("timer") ? NULL : nanoseconds;
}
static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* fns) {
  (void)platform, (void)fns;
}
static void destroy_platform(SP_Platform* platform) { (void)platform; }
static void destroy_platform_fns(SP_PlatformFns* fns) { (void)fns; }

static void create_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  (void)platform;
  if (fault("executor")) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no executor left");
    return;
  }
  SP_StreamExecutor* se = params->stream_executor;
  se->struct_size = fault("executor_size") ? 0 : SP_STREAMEXECUTOR_STRUCT_SIZE;
  se->allocate = fault("allocate") ? NULL : allocate;
  se->deallocate = deallocate;
  se->host_memory_allocate = host_allocate;
  se->host_memory_deallocate = host_deallocate;
  se->get_allocator_stats = allocator_stats;
  se->device_memory_usage = memory_usage;
  se->create_stream = create_stream;
  se->destroy_stream = destroy_stream;
  se->create_stream_dependency = stream_dependency;
  se->get_stream_status = stream_status;
  se->create_event = create_event;
  se->destroy_event = destroy_event;
  se->get_event_status = event_status;
  se->record_event = record_event;
  se->wait_for_event = wait_for_event;
  se->create_timer = create_timer;
  se->destroy_timer = destroy_timer;
  se->start_timer = start_timer;
  se->stop_timer = start_timer;
  se->memcpy_dtoh = dtoh;
  se->memcpy_htod = htod;
  se->memcpy_dtod = dtod;
  se->sync_memcpy_dtoh = sync_dtoh;
  se->sync_memcpy_htod = sync_htod;
  se->sync_memcpy_dtod = sync_dtod;
  se->block_host_for_event = block_for_event;
  se->block_host_until_done = fault("no_block_until_done") ? NULL : block_until_done;
  se->synchronize_all_activity = synchronize_all;
  se->mem_zero = fault("mem_zero") ? NULL : mem_zero;
  se->memset = fault("memset") ? NULL : mem_set;
  se->memset32 = fault("memset32") ? NULL : mem_set32;
  se->host_callback = fault("host_callback") ? NULL : host_callback;
}

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (fault("init")) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, "the toy is broken");
    return;
  }
  params->struct_size = fault("params_size")    ? 0
                        : fault("params_small") ? 8
                                                : SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->major_version = fault("major") ? SE_MAJOR + 1 : SE_MAJOR;
  params->minor_version = SE_MINOR;
  params->patch_version = SE_PATCH;
  params->destroy_platform = fault("destroy_platform") ? NULL : destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
  params->platform->struct_size = fault("platform_size") ? 0 : SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = fault("name") ? NULL : fault("bad_name") ? "my-toy" : "MY_TOY";
  params->platform->type = fault("type")        ? NULL
                           : fault("bad_type")  ? "Toy/1"
                           : getenv("TOY_TYPE") ? getenv("TOY_TYPE")
                                                : "TOY";
  params->platform->supports_unified_memory = fault("unified");
  params->platform->use_bfc_allocator = getenv("TOY_NO_BFC") == NULL;
  params->platform->force_memory_growth = 1;
  params->platform_fns->struct_size = fault("fns_size") ? 0 : SP_PLATFORM_FNS_STRUCT_SIZE;
  params->platform_fns->get_device_count = device_count;
  params->platform_fns->create_device = fault("no_create_device") ? NULL : create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_device_fns = create_device_fns;
  params->platform_fns->destroy_device_fns = destroy_device_fns;
  params->platform_fns->create_stream_executor = create_executor;
  params->platform_fns->destroy_stream_executor = destroy_executor;
  params->platform_fns->create_timer_fns = create_timer_fns;
  params->platform_fns->destroy_timer_fns = destroy_timer_fns;
}
