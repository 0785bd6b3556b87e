// Collectives among devices by a library of their own: NCCL for GPUs.
//
// A device part may have such a library. Members connect once per group; then values go from card
// to card. All members must make the same calls in the same order.
#ifndef RUNNEL_DEVICE_COMM_H_
#define RUNNEL_DEVICE_COMM_H_

#include <stdatomic.h>

#include "device/device.h"
#include "framework/collective.h"

#define RN_COMM_ID_SIZE 128

typedef struct rn_comm_t rn_comm_t;  // what the members of one process have of a group

// What the members must know of each other before they connect.
typedef struct rn_comm_identity_t {
  uint8_t card[16];  // of all machines' cards: two members of a group cannot share one
  int64_t version;   // of the library: all members need the same
} rn_comm_identity_t;

// The members of this process.
typedef struct rn_comm_members_t {
  rn_device_t* const* devices;
  const int32_t* ranks;
  int32_t count;
  int32_t size;  // of the group
} rn_comm_members_t;

typedef struct rn_comm_library_t {
  const char* name;
  // Whether it has the operation, and adds numbers of its type.
  bool (*takes)(const rn_collective_t* collective);
  // NOT_FOUND, naming what is missing.
  rn_status_t (*identify)(rn_device_t* device, rn_comm_identity_t* out);
  // What the members of a new group connect by: one of them makes it, and tells the others.
  rn_status_t (*make_id)(rn_device_t* device, char* out);
  // Prepares |members|, which it does not keep.
  rn_status_t (*create)(const rn_comm_members_t* members, rn_comm_t** out);
  // Connects to the other members. Returns when all have done so, or with CANCELLED soon after
  // |is_stopped| is set.
  rn_status_t (*connect)(rn_comm_t* comm, const char* id, const atomic_bool* is_stopped);
  // Runs one instance: |members| as in create, with their outputs made; |source| is the rank that
  // broadcasts. Issues the work on the streams of the devices and returns when it has ended, or
  // with CANCELLED soon after |is_stopped| is set. After an error, |comm| is only to be destroyed.
  rn_status_t (*run)(rn_comm_t* comm, rn_collective_t* const* members, int32_t source,
                     const atomic_bool* is_stopped);
  // Aborts what has not ended. NULL is fine.
  void (*destroy)(rn_comm_t* comm);
} rn_comm_library_t;

// That of the part which |device| comes from; NULL if there is none.
const rn_comm_library_t* rn_device_comm_library(const rn_device_t* device);

#endif  // RUNNEL_DEVICE_COMM_H_
