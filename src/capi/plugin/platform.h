// The devices of a plug-in: its platform, the tables of functions that it filled in, and the cards
// that it has. Private to capi/.
#ifndef RUNNEL_CAPI_PLUGIN_PLATFORM_H_
#define RUNNEL_CAPI_PLUGIN_PLATFORM_H_

#include "base/sync.h"
#include "capi/plugin/call.h"
#include "device/cuda/memory.h"
#include "device/factory.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

typedef struct rn_plugin_platform_t rn_plugin_platform_t;

// One device of the plug-in. It is opened once per process and stays open: all sessions share its
// memory and its stream. One stream is enough, and gives all work one order (device/device.h).
typedef struct rn_plugin_card_t {
  struct rn_plugin_card_t* next;
  const rn_plugin_platform_t* platform;
  int ordinal;
  SP_Device device;
  SP_Stream stream;
  rn_cuda_memory_t* memory;  // cut from large blocks; NULL if the plug-in allocates each value
  rn_cuda_memory_t* host;    // host memory that the plug-in allocates
  int64_t memory_limit;
} rn_plugin_card_t;

struct rn_plugin_platform_t {
  rn_device_factory_t factory;  // first
  SP_Platform platform;
  SP_PlatformFns fns;
  SP_DeviceFns device_fns;
  SP_StreamExecutor executor;
  SP_TimerFns timer_fns;
  char type[RN_MAX_DEVICE_TYPE], name[64];
  rn_mutex_t mutex;         // guards the list of cards
  rn_plugin_card_t* cards;  // Owned
};

// Lets |init|, a plug-in's SE_InitPlugin, describe its platform, checks it as stock does, and
// registers its device type. The platform is never freed.
typedef void (*rn_plugin_init_t)(SE_PlatformRegistrationParams* params, TF_Status* status);
RN_MUST_USE rn_status_t rn_plugin_platform_load(rn_plugin_init_t init);

// FAILED_PRECONDITION if a plug-in left the size |found| of the struct |type| at 0.
RN_MUST_USE rn_status_t rn_plugin_check_size(size_t found, const char* type, const char* size);
// Opens device |ordinal|. Its memory is limited to |memory_fraction| of it, or as stock does if
// that is 0. The card stays open.
RN_MUST_USE rn_status_t rn_plugin_card_open(const rn_plugin_platform_t* platform, int ordinal,
                                            double memory_fraction, rn_plugin_card_t** out);
// Returns when the work of |card| that was issued so far has ended.
RN_MUST_USE rn_status_t rn_plugin_card_wait(rn_plugin_card_t* card);
// Memory of |card| for values.
rn_allocator_t rn_plugin_card_allocator(rn_plugin_card_t* card);
SP_DeviceMemoryBase rn_plugin_memory(void* address, size_t size);

// A device of a session on |card|.
RN_MUST_USE rn_status_t rn_plugin_device_create(rn_plugin_card_t* card, const rn_part_init_t* init,
                                                int index, rn_device_t** out);
// The card of a plug-in's device; NULL for other devices.
rn_plugin_card_t* rn_plugin_card_of(const rn_device_t* device);

#endif  // RUNNEL_CAPI_PLUGIN_PLATFORM_H_
