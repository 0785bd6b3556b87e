// Collectives: operations that all members of a group take part in, each with its own tensor.
//
// A *group* is a number of devices, perhaps of several tasks, that agree on a key. An *instance* is
// one operation of a group. Each member calls rn_collectives_run with the keys of both; when the
// operation has ended, |done| is called for each of them. A member that waits holds no thread.
//
// rn_collectives_t is the interface that kernels see, through their step. collective/ implements it
// for the devices of one process and, with what dist/collective adds, for a cluster. Back ends of
// other libraries (MPI, and NCCL by device/comm.h) have the kind, the merge operation and the hint
// of a request, and need not use |merge|.
#ifndef RUNNEL_FRAMEWORK_COLLECTIVE_H_
#define RUNNEL_FRAMEWORK_COLLECTIVE_H_

#include "base/env.h"
#include "framework/cancel.h"
#include "tensor/tensor.h"

typedef struct rn_device_t rn_device_t;
typedef struct rn_collective_t rn_collective_t;

// The numbers are those of the protocol between tasks.
typedef enum rn_collective_kind_t {
  RN_COLLECTIVE_REDUCE = 0,
  RN_COLLECTIVE_BROADCAST = 1,
  RN_COLLECTIVE_GATHER = 2,
  RN_COLLECTIVE_ALL_TO_ALL = 4,
  RN_COLLECTIVE_REDUCE_SCATTER = 5,
  RN_COLLECTIVE_JOIN = 6,  // only finds the group
} rn_collective_kind_t;

typedef enum rn_merge_op_t { RN_MERGE_ADD, RN_MERGE_MUL, RN_MERGE_MAX, RN_MERGE_MIN } rn_merge_op_t;

// One member's part. The caller owns it and keeps it, and what it points to, until |done|.
struct rn_collective_t {
  // The group. Its members must agree on key, size and type of device.
  int32_t group_key, group_size;
  int32_t rank;         // the rank that this member has; -1: by the order of device names
  rn_device_t* device;  // the member
  // The operation. The members must agree on it, too.
  rn_collective_kind_t kind;
  int32_t instance_key;
  rn_merge_op_t merge_op;  // of reductions
  // out[i] = a[i] op b[i] for |n| elements in host memory; |out| may be |a|.
  void (*merge)(rn_dtype_t dtype, const void* a, const void* b, void* out, int64_t n);
  // Divides |n| elements by the size of the group; NULL if they are not to be divided.
  void (*divide)(rn_dtype_t dtype, int32_t by, void* values, int64_t n);
  bool is_source;        // of a broadcast: this member has the value
  int32_t max_subdivs;   // of stock's ring: a limit; -1: one part per member, 0: stock's default
  int32_t subdiv_count;  // of stock's ring: |subdivs| says how it is divided; 0: by |max_subdivs|
  const int32_t* subdivs;
  // The step, and the iteration of a loop. Instances of different steps do not meet.
  int64_t step, iteration;
  uint64_t frame;
  int64_t deadline_ns;  // of the environment's clock; 0: none
  rn_str_t hint;        // "auto", "ring", "nccl"
  rn_str_t node;        // for messages; NUL-terminated
  // The data, in the memory of |device|. Shapes must be the same for all members.
  rn_dtype_t dtype;
  rn_shape_t shape;          // of the output; full
  const rn_tensor_t* input;  // NULL if a broadcast is received
  rn_allocator_t memory;     // for the output
  rn_pool_t* pool;           // helps computing; may be NULL
  rn_cancel_t* cancel;       // ends the instance for all its members; may be NULL
  rn_tensor_t output;        // result: owned by the caller; shared with other members
  // Called once, on any thread, with no locks held. Owns |status|.
  void (*done)(rn_collective_t* collective, rn_status_t status);
};

typedef struct rn_collectives_t rn_collectives_t;
typedef struct rn_collectives_vtable_t {
  void (*run)(rn_collectives_t* self, rn_collective_t* collective);
  // Ends all instances with |status|, and all later ones until the object is replaced. Takes it.
  void (*abort)(rn_collectives_t* self, rn_status_t status);
} rn_collectives_vtable_t;

// The first member of every implementation. Must outlive the steps that use it.
struct rn_collectives_t {
  const rn_collectives_vtable_t* vtable;
};

// UNAVAILABLE names the task of a member that is lost. DEADLINE_EXCEEDED: not all members came in
// time. INTERNAL and INVALID_ARGUMENT: they do not agree.
static inline void rn_collectives_run(rn_collectives_t* collectives, rn_collective_t* collective) {
  collectives->vtable->run(collectives, collective);
}
static inline void rn_collectives_abort(rn_collectives_t* collectives, rn_status_t status) {
  collectives->vtable->abort(collectives, status);
}

#endif  // RUNNEL_FRAMEWORK_COLLECTIVE_H_
