// Device factories: types of devices that plug-ins bring at run time. The registry is one per
// process, like that of their kernels.
#ifndef RUNNEL_DEVICE_FACTORY_H_
#define RUNNEL_DEVICE_FACTORY_H_

#include "device/part.h"

#define RN_MAX_FACTORIES 16
#define RN_MAX_DEVICE_TYPE 32  // bytes of a type's name, with its NUL

// ConfigProto.device_count of types that are not built in.
typedef struct rn_device_counts_t {
  struct {
    char type[RN_MAX_DEVICE_TYPE];
    int32_t count;
  } rows[RN_MAX_FACTORIES];
  int used;
} rn_device_counts_t;

typedef struct rn_device_factory_t {
  const char* type;  // of its devices: "TOY"
  // As in rn_device_part_t; |init->options->max_count| is that of this type.
  rn_status_t (*create_devices)(const struct rn_device_factory_t* factory,
                                const rn_part_init_t* init, int room, rn_device_t** out,
                                int* out_count);
} rn_device_factory_t;

// Adds a factory, which must never be freed. Its devices take the place of built-in ones of the
// same type. ALREADY_EXISTS if another plug-in has the type, FAILED_PRECONDITION if a built-in
// device must keep it.
RN_MUST_USE rn_status_t rn_device_factory_register(const rn_device_factory_t* factory);
// The |i|-th factory, NULL after the last. Any thread may call.
const rn_device_factory_t* rn_device_factory_at(int i);
// The factory of |type|; NULL if there is none.
const rn_device_factory_t* rn_device_factory_find(const char* type);

#endif  // RUNNEL_DEVICE_FACTORY_H_
