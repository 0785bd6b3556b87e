// Loading the platform of a plug-in: see platform.h. Messages are stock's.
#include "capi/plugin/platform.h"

#include "device/cuda/card.h"
#include "kernels/default_rows.h"

#define CHECK_SIZE(type, object, size) \
  RN_RETURN_IF_ERROR(rn_plugin_check_size((object)->struct_size, #type, #size))
#define CHECK_MEMBER(type, object, member) \
  RN_RETURN_IF_ERROR(check_member((const void*)(uintptr_t)(object)->member, #member, #type))

rn_status_t rn_plugin_check_size(size_t found, const char* type, const char* size) {
  if (found) return RN_OK;
  return rn_failed_precondition(
      "Expected initialized `%s` structure with `struct_size` field set to %s. Found `struct_size` "
      "= 0.",
      type, size);
}

static rn_status_t check_member(const void* member, const char* name, const char* type) {
  return member ? RN_OK : rn_failed_precondition("'%s' field in %s must be set.", name, type);
}

static rn_status_t check_type(const char* type) {
  size_t size = strspn(type, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  if (size && !type[size] && *type != '_') return RN_OK;
  return rn_failed_precondition("Device name/type '%s' must match [A-Z][A-Z_]*.", type);
}

static rn_status_t check_params(const SE_PlatformRegistrationParams* params) {
  CHECK_SIZE(SE_PlatformRegistrationParams, params, SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE);
  CHECK_MEMBER(SE_PlatformRegistrationParams, params, destroy_platform);
  CHECK_MEMBER(SE_PlatformRegistrationParams, params, destroy_platform_fns);
  return RN_OK;
}

static rn_status_t check_platform(const SP_Platform* platform) {
  CHECK_SIZE(SP_Platform, platform, SP_PLATFORM_STRUCT_SIZE);
  CHECK_MEMBER(SP_Platform, platform, name);
  CHECK_MEMBER(SP_Platform, platform, type);
  RN_RETURN_IF_ERROR(check_type(platform->name));
  return check_type(platform->type);
}

// A function that a plug-in must have.
typedef struct platform_member_t {
  const char* name;
  size_t offset;
} platform_member_t;

static rn_status_t check_members(const void* object, const char* type,
                                 const platform_member_t* members, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const void* member;
    memcpy(&member, (const char*)object + members[i].offset, sizeof member);
    RN_RETURN_IF_ERROR(check_member(member, members[i].name, type));
  }
  return RN_OK;
}
#define CHECK_MEMBERS(type, object, members) \
  check_members(object, #type, members, sizeof members / sizeof *members)

#define M(member) \
  { #member, offsetof(SP_PlatformFns, member) }
static const platform_member_t platform_members[] = {
    M(create_device),           M(destroy_device),    M(create_stream_executor),
    M(destroy_stream_executor), M(create_timer_fns),  M(destroy_timer_fns),
    M(create_device_fns),       M(destroy_device_fns)};
#undef M

#define M(member) \
  { #member, offsetof(SP_StreamExecutor, member) }
static const platform_member_t memory_members[] = {M(allocate), M(deallocate),
                                                   M(get_allocator_stats), M(host_memory_allocate),
                                                   M(host_memory_deallocate)};
static const platform_member_t unified_members[] = {M(unified_memory_allocate),
                                                    M(unified_memory_deallocate)};
static const platform_member_t other_members[] = {M(device_memory_usage),
                                                  M(create_stream),
                                                  M(destroy_stream),
                                                  M(create_stream_dependency),
                                                  M(get_stream_status),
                                                  M(create_event),
                                                  M(destroy_event),
                                                  M(get_event_status),
                                                  M(record_event),
                                                  M(wait_for_event),
                                                  M(create_timer),
                                                  M(destroy_timer),
                                                  M(start_timer),
                                                  M(stop_timer),
                                                  M(memcpy_dtoh),
                                                  M(memcpy_htod),
                                                  M(sync_memcpy_dtoh),
                                                  M(sync_memcpy_htod),
                                                  M(block_host_for_event),
                                                  M(synchronize_all_activity),
                                                  M(host_callback),
                                                  M(mem_zero),
                                                  M(memset),
                                                  M(memset32)};
#undef M

static rn_status_t check_fns(const SP_PlatformFns* fns) {
  CHECK_SIZE(SP_PlatformFns, fns, SP_PLATFORM_FNS_STRUCT_SIZE);
  return CHECK_MEMBERS(SP_PlatformFns, fns, platform_members);
}

static rn_status_t check_executor(const SP_StreamExecutor* executor, bool has_unified) {
  CHECK_SIZE(SP_StreamExecutor, executor, SP_STREAM_EXECUTOR_STRUCT_SIZE);
  RN_RETURN_IF_ERROR(CHECK_MEMBERS(SP_StreamExecutor, executor, memory_members));
  if (has_unified) RN_RETURN_IF_ERROR(CHECK_MEMBERS(SP_StreamExecutor, executor, unified_members));
  return CHECK_MEMBERS(SP_StreamExecutor, executor, other_members);
}

static rn_status_t fill_tables(rn_plugin_platform_t* own) {
  const SP_Platform* platform = &own->platform;
  own->device_fns.struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  SE_CreateDeviceFnsParams device = {.struct_size = SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE,
                                     .device_fns = &own->device_fns};
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(own->fns.create_device_fns, platform, &device));
  CHECK_SIZE(SP_DeviceFns, &own->device_fns, SP_DEVICE_FNS_STRUCT_SIZE);
  own->executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  SE_CreateStreamExecutorParams executor = {
      .struct_size = SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE,
      .stream_executor = &own->executor};
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(own->fns.create_stream_executor, platform, &executor));
  RN_RETURN_IF_ERROR(check_executor(&own->executor, platform->supports_unified_memory));
  own->timer_fns.struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(own->fns.create_timer_fns, platform, &own->timer_fns));
  CHECK_SIZE(SP_TimerFns, &own->timer_fns, SP_TIMER_FNS_STRUCT_SIZE);
  return RN_OK;
}

static rn_status_t describe(rn_plugin_platform_t* own, rn_plugin_init_t init) {
  own->platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  own->fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  SE_PlatformRegistrationParams params = {
      .struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
      .major_version = SE_MAJOR,
      .minor_version = SE_MINOR,
      .patch_version = SE_PATCH,
      .platform = &own->platform,
      .platform_fns = &own->fns};
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(init, &params));
  RN_RETURN_IF_ERROR(check_params(&params));
  RN_RETURN_IF_ERROR(check_platform(&own->platform));
  RN_RETURN_IF_ERROR(check_fns(&own->fns));
  if (strlen(own->platform.type) >= sizeof own->type ||
      strlen(own->platform.name) >= sizeof own->name)
    return rn_failed_precondition("Device name/type '%s' is too long", own->platform.type);
  strcpy(own->type, own->platform.type);
  strcpy(own->name, own->platform.name);
  return fill_tables(own);
}

static rn_status_t create_devices(const rn_device_factory_t* factory, const rn_part_init_t* init,
                                  int room, rn_device_t** out, int* out_count);

rn_status_t rn_plugin_platform_load(rn_plugin_init_t init) {
  rn_plugin_platform_t* own = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), &own));
  rn_mutex_init(&own->mutex);
  own->factory.create_devices = create_devices;
  own->factory.type = own->type;
  rn_status_t status = describe(own, init);
  if (rn_ok(status)) status = rn_default_rows_register();
  if (rn_ok(status)) status = rn_device_factory_register(&own->factory);
  if (rn_ok(status)) return RN_OK;
  rn_mutex_destroy(&own->mutex);
  RN_FREE(rn_allocator_system(), own);
  return status;
}

// --- Devices of a session

static rn_status_t find_card(rn_plugin_platform_t* own, int ordinal, double memory_fraction,
                             rn_plugin_card_t** out) {
  rn_mutex_lock(&own->mutex);
  rn_plugin_card_t* card = own->cards;
  while (card && card->ordinal != ordinal) card = card->next;
  rn_status_t status = RN_OK;
  if (!card) {
    status = rn_plugin_card_open(own, ordinal, memory_fraction, &card);
    if (rn_ok(status)) {
      card->next = own->cards;
      own->cards = card;
    }
  }
  rn_mutex_unlock(&own->mutex);
  *out = card;
  return status;
}

static rn_status_t create_devices(const rn_device_factory_t* factory, const rn_part_init_t* init,
                                  int room, rn_device_t** out, int* out_count) {
  rn_plugin_platform_t* own = (rn_plugin_platform_t*)(uintptr_t)factory;
  int cards = 0, count = 0;
  *out_count = 0;
  if (init->options->max_count == 0 || !own->fns.get_device_count) return RN_OK;
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(own->fns.get_device_count, &own->platform, &cards));
  if (cards <= 0) return RN_OK;
  rn_gpu_options_t options = *init->options;
  options.split_count = 0;  // as in stock, these devices are not split
  rn_cuda_choice_t choices[RN_MAX_GPUS];
  RN_RETURN_IF_ERROR(rn_cuda_choose(&options, cards, choices, &count));
  for (int i = 0; i < count && i < room; ++i) {
    rn_plugin_card_t* card = NULL;
    RN_RETURN_IF_ERROR(find_card(own, choices[i].ordinal, options.memory_fraction, &card));
    RN_RETURN_IF_ERROR(rn_plugin_device_create(card, init, i, &out[i]));
    ++*out_count;
  }
  return RN_OK;
}
