// See factory.h.
#include "device/factory.h"

#include <stdatomic.h>

#include "base/sync.h"

// Readers take no lock: an entry is written before |count| grows, and stays.
static struct {
  rn_mutex_t mutex;
  const rn_device_factory_t* items[RN_MAX_FACTORIES];
  _Atomic int count;
} factories = {.mutex = RN_MUTEX_INIT};

const rn_device_factory_t* rn_device_factory_at(int i) {
  return i < atomic_load_explicit(&factories.count, memory_order_acquire) ? factories.items[i]
                                                                          : NULL;
}

const rn_device_factory_t* rn_device_factory_find(const char* type) {
  const rn_device_factory_t* factory = NULL;
  for (int i = 0; (factory = rn_device_factory_at(i)) && strcmp(factory->type, type) != 0; ++i) {
  }
  return factory;
}

static rn_status_t check_locked(const rn_device_factory_t* factory) {
  static const char* const kept[] = {"CPU", "NULL", "DEFAULT"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i)
    if (strcmp(factory->type, kept[i]) == 0)
      return rn_failed_precondition("The device type %s is built in", factory->type);
  if (rn_device_factory_find(factory->type))
    return rn_already_exists("Duplicate registration of device factory for type %s", factory->type);
  if (strcmp(factory->type, "GPU") == 0 && rn_cuda_part_is_open())
    return rn_failed_precondition(
        "A plug-in for the device type GPU must be loaded before GPUs are used");
  if (factories.count == RN_MAX_FACTORIES)
    return rn_resource_exhausted("There are %d types of devices already", RN_MAX_FACTORIES);
  return RN_OK;
}

rn_status_t rn_device_factory_register(const rn_device_factory_t* factory) {
  rn_mutex_lock(&factories.mutex);
  rn_status_t status = check_locked(factory);
  if (rn_ok(status)) {
    int count = atomic_load_explicit(&factories.count, memory_order_relaxed);
    factories.items[count] = factory;
    atomic_store_explicit(&factories.count, count + 1, memory_order_release);
  }
  rn_mutex_unlock(&factories.mutex);
  return status;
}
