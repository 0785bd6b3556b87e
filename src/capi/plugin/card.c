// A plug-in's device: its memory and its stream. See platform.h.
#include "capi/plugin/platform.h"

SP_DeviceMemoryBase rn_plugin_memory(void* address, size_t size) {
  return (SP_DeviceMemoryBase){
      .struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE, .opaque = address, .size = size};
}

// Waits by an event, for plug-ins without block_host_until_done.
static rn_status_t wait_for_event(rn_plugin_card_t* card) {
  const SP_StreamExecutor* se = &card->platform->executor;
  SP_Event event = NULL;
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(se->create_event, &card->device, &event));
  rn_status_t status = RN_PLUGIN_CALL(se->record_event, &card->device, card->stream, event);
  if (rn_ok(status)) status = RN_PLUGIN_CALL(se->block_host_for_event, &card->device, event);
  se->destroy_event(&card->device, event);
  return status;
}

rn_status_t rn_plugin_card_wait(rn_plugin_card_t* card) {
  const SP_StreamExecutor* se = &card->platform->executor;
  rn_status_t status = se->block_host_until_done
                           ? RN_PLUGIN_CALL(se->block_host_until_done, &card->device, card->stream)
                           : wait_for_event(card);
  if (!rn_ok(status)) return status;
  return RN_PLUGIN_CALL(se->get_stream_status, &card->device, card->stream);
}

// --- Memory

static void* device_alloc(rn_plugin_card_t* card, size_t size) {
  SP_DeviceMemoryBase memory = rn_plugin_memory(NULL, 0);
  card->platform->executor.allocate(&card->device, size, 0, &memory);
  return memory.opaque;
}

static void device_free(rn_plugin_card_t* card, void* address, size_t size) {
  SP_DeviceMemoryBase memory = rn_plugin_memory(address, size);
  card->platform->executor.deallocate(&card->device, &memory);
}

static uint64_t take_block(void* self, size_t size) { return (uintptr_t)device_alloc(self, size); }

static void give_block(void* self, uint64_t address, size_t size) {
  rn_status_free(rn_plugin_card_wait(self));
  device_free(self, (void*)(uintptr_t)address, size);
}

static uint64_t take_host_block(void* self, size_t size) {
  rn_plugin_card_t* card = self;
  return (uintptr_t)card->platform->executor.host_memory_allocate(&card->device, size);
}

static void give_host_block(void* self, uint64_t address, size_t size) {
  rn_plugin_card_t* card = self;
  (void)size;
  card->platform->executor.host_memory_deallocate(&card->device, (void*)(uintptr_t)address);
}

// For plug-ins that allocate each value themselves. A value is freed when the host drops it, as in
// stock: the plug-in keeps it for work that was issued before.
static void* plain_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  if (!ptr) return new_size ? device_alloc(self, new_size) : NULL;
  if (new_size) return new_size <= old_size ? ptr : NULL;
  device_free(self, ptr, old_size);
  return NULL;
}

rn_allocator_t rn_plugin_card_allocator(rn_plugin_card_t* card) {
  if (card->memory) return rn_cuda_memory_allocator(card->memory);
  return (rn_allocator_t){.fn = plain_realloc, .self = card, .is_far = true};
}

// As stock limits it: something is left to the system.
static rn_status_t find_limit(rn_plugin_card_t* card, double fraction) {
  int64_t available = 0, total = 0;
  if (!card->platform->executor.device_memory_usage(&card->device, &available, &total))
    return rn_status_make(RN_CODE_UNKNOWN,
                          "Failed to query available memory for PluggableDevice %d", card->ordinal);
  if (fraction > 1) return rn_internal("Unified memory is not supported yet.");
  if (fraction > 0) {
    card->memory_limit = (int64_t)((double)total * fraction);
    return RN_OK;
  }
  int64_t reserve = INT64_C(255) << 20, share = (int64_t)((float)available * 0.06f);
  if (available >= INT64_C(1) << 31)
    reserve = share > INT64_C(300) << 20 ? share : INT64_C(300) << 20;
  card->memory_limit = reserve < available ? available - reserve : available;
  return RN_OK;
}

static rn_status_t make_memory(rn_plugin_card_t* card, double fraction) {
  const rn_allocator_t records = rn_allocator_system();
  RN_RETURN_IF_ERROR(find_limit(card, fraction));
  rn_cuda_memory_options_t host = {.source = {card, take_host_block, give_host_block},
                                   .block_size = (size_t)2 << 20};
  RN_RETURN_IF_ERROR(rn_cuda_memory_create(&host, records, &card->host));
  if (!card->platform->platform.use_bfc_allocator) return RN_OK;
  rn_cuda_memory_options_t options = {.source = {card, take_block, give_block},
                                      .limit = (size_t)card->memory_limit};
  return rn_cuda_memory_create(&options, records, &card->memory);
}

// --- Opening

static rn_status_t open_device(rn_plugin_card_t* card) {
  const rn_plugin_platform_t* own = card->platform;
  card->device.struct_size = SP_DEVICE_STRUCT_SIZE;
  card->device.ordinal = card->ordinal;
  SE_CreateDeviceParams params = {.struct_size = SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE,
                                  .ordinal = card->ordinal,
                                  .device = &card->device};
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(own->fns.create_device, &own->platform, &params));
  return rn_plugin_check_size(card->device.struct_size, "SP_Device", "SP_DEVICE_STRUCT_SIZE");
}

rn_status_t rn_plugin_card_open(const rn_plugin_platform_t* platform, int ordinal,
                                double memory_fraction, rn_plugin_card_t** out) {
  rn_plugin_card_t* card = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &card));
  *card = (rn_plugin_card_t){.platform = platform, .ordinal = ordinal};
  rn_status_t status = open_device(card);
  bool is_open = rn_ok(status);
  if (rn_ok(status))
    status = RN_PLUGIN_CALL(platform->executor.create_stream, &card->device, &card->stream);
  bool has_stream = is_open && rn_ok(status);
  if (rn_ok(status)) status = make_memory(card, memory_fraction);
  if (!rn_ok(status)) {
    rn_cuda_memory_destroy(card->host);
    if (has_stream) platform->executor.destroy_stream(&card->device, card->stream);
    if (is_open) platform->fns.destroy_device(&platform->platform, &card->device);
    RN_FREE(rn_allocator_system(), card);
    return status;
  }
  *out = card;
  return RN_OK;
}
