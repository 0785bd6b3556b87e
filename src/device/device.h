// Devices: the common abstraction of the paper. Issue a kernel, allocate memory for its inputs and
// outputs, move buffers to and from the host.
//
// Code above this layer must not assume that the host can read a device's memory, or that a kernel
// has run when its compute returns: on an asynchronous device, compute *issues* the work. A device
// runs its work in the order of issue; copies and rn_device_sync come after earlier work.
//
// doc/invariants.md: invariant 36.
#ifndef RUNNEL_DEVICE_DEVICE_H_
#define RUNNEL_DEVICE_DEVICE_H_

#include "base/env.h"
#include "device/trace.h"
#include "framework/resource.h"
#include "tensor/tensor.h"

typedef struct rn_device_t rn_device_t;
typedef struct rn_recording_t rn_recording_t;  // the device's own

// Ends an asynchronous operation; takes the status.
typedef void (*rn_device_done_t)(void* arg, rn_status_t status);

// A box of elements that is copied within the memory of a device, outermost dimension first. No two
// elements may have the same destination.
typedef struct rn_move_dim_t {
  int64_t size;
  int64_t from, to;  // strides in elements; any sign; from = 0 repeats an element
} rn_move_dim_t;
typedef struct rn_box_t {
  const void* from;  // the first element
  void* to;
  int32_t rank;
  const rn_move_dim_t* dims;
} rn_box_t;

// Bytes in use now, and the most that there were at a time.
typedef struct rn_device_memory_t {
  int64_t now, peak;
} rn_device_memory_t;

typedef struct rn_device_vtable_t {
  void (*destroy)(rn_device_t* device);
  // Copies |source|'s bytes into |target|, which has the same size. Both must stay alive until
  // |done|, or until the next sync or wait if |done| is NULL: that one then reports errors.
  void (*copy_to_host)(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                       rn_device_done_t done, void* arg);
  void (*copy_from_host)(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                         rn_device_done_t done, void* arg);
  // The same for a feed and a fetch of a step, with |done| NULL, where the order does not matter:
  // no unfinished work uses the target of a feed, and none that is issued later in the step writes
  // the source of a fetch. So they may overlap with the work of other steps. NULL: use the above.
  void (*feed)(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target);
  void (*fetch)(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target);
  // Issues a copy within the device's memory. Shares both tensors as long as it needs them.
  rn_status_t (*copy)(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target);
  // Issues copies of |count| boxes with elements of |size| bytes, in any order; NULL if kernels of
  // this device copy by themselves.
  rn_status_t (*move)(rn_device_t* device, const rn_box_t* boxes, int count, size_t size);
  // Issues writes of |count| elements of |size| bytes that equal |value|, which is in host memory
  // (and is read at once) or in the device's. NULL as above.
  rn_status_t (*fill)(rn_device_t* device, const void* value, bool is_host_value, size_t size,
                      void* to, int64_t count);
  // Issues the addition of |count| numbers of |dtype| at |values| to those at |sums|. NULL as
  // above.
  rn_status_t (*add)(rn_device_t* device, rn_dtype_t dtype, const void* values, void* sums,
                     int64_t count);
  // Calls |done| when all work issued so far has ended, with the first error.
  void (*sync)(rn_device_t* device, rn_device_done_t done, void* arg);
  // Like sync, but returns when the work has ended. NULL: rn_device_wait uses |sync|.
  rn_status_t (*wait)(rn_device_t* device);
  // Recording, if the device can (else all five are NULL): work that the calling thread issues
  // between begin and end is recorded instead of run, with its arguments and addresses as they are.
  // Only the host's side of feeds and fetches may move between replays: the recording keeps the
  // pointers to these tensors, whose sizes stay the same, and reads their |data| in each replay.
  // What is copied to the device by copy_from_host is copied as it was.
  // End is called after every begin that succeeded; |*out| is NULL if nothing was issued. Replay
  // issues the work of a recording; await returns when it has ended and the fetches have arrived.
  // One replay is awaited before the next. A thread records on one device at a time.
  rn_status_t (*record_begin)(rn_device_t* device);
  rn_status_t (*record_end)(rn_device_t* device, rn_recording_t** out);
  rn_status_t (*replay)(rn_device_t* device, rn_recording_t* recording);
  rn_status_t (*await)(rn_device_t* device, rn_recording_t* recording);
  void (*recording_destroy)(rn_device_t* device, rn_recording_t* recording);
  // Frees cached memory. NULL if the device caches none.
  void (*trim)(rn_device_t* device);
  // How much of its memory is in use. NULL if the device does not count.
  void (*memory_use)(rn_device_t* device, rn_device_memory_t* out);
  // Appends who holds how much of the memory, if the device had none left for somebody since the
  // last call. NULL if it does not know.
  void (*explain_memory)(rn_device_t* device, rn_strbuf_t* out);
  // Tracing without waiting for each node, if the device can (else all three are NULL). What the
  // calling thread issues after trace_node is done for |node|, or for none if that is -1. Traces of
  // several steps may overlap. End is called when the device has finished: it visits what was done,
  // in order of time, and frees the trace.
  rn_status_t (*trace_begin)(rn_device_t* device, const rn_env_t* env, rn_device_trace_t** out);
  void (*trace_node)(rn_device_trace_t* trace, int64_t node);
  void (*trace_end)(rn_device_trace_t* trace, rn_trace_visit_t visit, void* self);
} rn_device_vtable_t;

// Something that keeps memory of a device for later and can do without.
typedef struct rn_idle_memory_t {
  struct rn_idle_memory_t* next;  // the device's
  // Gives all of it back if |is_urgent|, else what may never be needed again.
  void (*drop)(struct rn_idle_memory_t* idle, bool is_urgent);
} rn_idle_memory_t;

struct rn_device_t {
  const rn_device_vtable_t* vtable;
  rn_str_t name;     // "/job:localhost/replica:0/task:0/device:CPU:0"; Owned, NUL-terminated
  const char* type;  // "CPU", "GPU", "NULL": the type that kernels are registered for
  int32_t index;
  bool is_host;       // memory is host memory and kernels have run when compute returns
  bool is_preferred;  // nodes without a device go here rather than to the CPU
  int64_t memory_limit;
  uint64_t incarnation;
  const char* description;       // of the hardware, in stock's form; NULL: none. Owned
  rn_allocator_t allocator;      // the device's memory
  rn_allocator_t kernel_memory;  // the same for kernels; a recording keeps what they get meanwhile
  // Host memory that large copies are fastest with; |fn| is NULL if all host memory is alike. It
  // may have none left while malloc has.
  rn_allocator_t transfer_memory;
  rn_resources_t* resources;   // Owned
  rn_allocator_t host_memory;  // for host arguments of its kernels; fn NULL: the CPU's
  bool has_handles;  // addresses are handles, to which nothing can be added: no memory is planned
  rn_mutex_t idle_mutex;   // guards |idle|
  rn_idle_memory_t* idle;  // Borrowed: see rn_device_add_idle
};

static inline void rn_device_destroy(rn_device_t* device) {
  if (device) device->vtable->destroy(device);
}

// The memory of host arguments of kernels on |device|; |cpu| is the CPU of its task.
static inline rn_allocator_t rn_device_host_memory(const rn_device_t* device,
                                                   const rn_device_t* cpu) {
  return device->host_memory.fn ? device->host_memory : cpu->allocator;
}

// Returns when all work issued so far has ended, with the first error. Must not be called by a
// device's own thread.
RN_MUST_USE rn_status_t rn_device_wait(rn_device_t* device);
// Copies |source| into |target|, both in the memory of |device| and of one size: at once on the
// host, else in the order of issued work.
RN_MUST_USE rn_status_t rn_device_copy(rn_device_t* device, const rn_tensor_t* source,
                                       rn_tensor_t* target);
// Like rn_tensor_copy, in the memory of |device|.
RN_MUST_USE rn_status_t rn_device_duplicate(rn_device_t* device, const rn_tensor_t* source,
                                            rn_tensor_t* out);

// Makes a tensor in host memory for a copy from |device|: in its transfer memory if it is large and
// that has room, else in memory of |host|.
RN_MUST_USE rn_status_t rn_device_host_tensor(const rn_device_t* device, rn_allocator_t host,
                                              rn_dtype_t dtype, rn_shape_t shape, rn_tensor_t* out);

// |idle| is asked to drop its memory when somebody takes much or there is none left, from any
// thread, until it is removed; a drop under way ends before that.
void rn_device_add_idle(rn_device_t* device, rn_idle_memory_t* idle);
void rn_device_remove_idle(rn_device_t* device, rn_idle_memory_t* idle);
// Asks all of them. The caller holds no lock that a drop needs.
void rn_device_drop_idle(rn_device_t* device, bool is_urgent);

// Takes the error of work on |device|. If that has run out of memory meanwhile, adds who holds it.
RN_MUST_USE rn_status_t rn_device_explain(rn_device_t* device, rn_status_t status);

// The parts of a device name; absent ones are NULL/empty or -1: "/job:worker/task:1", "/gpu:0",
// "GPU:0", "/device:CPU:*" …
typedef struct rn_device_spec_t {
  rn_str_t job, type;
  int32_t replica, task, index;
} rn_device_spec_t;

// False if |name| is not a device name.
bool rn_device_spec_parse(rn_str_t name, rn_device_spec_t* out);
// Whether the parts that |spec| has match the full name |device|.
bool rn_device_spec_matches(const rn_device_spec_t* spec, const rn_device_spec_t* device);

// "|prefix|/device:|type|:|index|", owned by the caller, NUL-terminated.
RN_MUST_USE rn_status_t rn_device_name(rn_allocator_t allocator, rn_str_t prefix, const char* type,
                                       int index, rn_str_t* out);

// The CPU: cached host memory; kernels run in the calling thread.
RN_MUST_USE rn_status_t rn_cpu_device_create(rn_allocator_t allocator, rn_str_t name_prefix,
                                             int index, const rn_env_t* env, rn_device_t** out);
// A fake accelerator with memory of its own and a queue; see device/null/.
RN_MUST_USE rn_status_t rn_null_device_create(rn_allocator_t allocator, rn_str_t name_prefix,
                                              int index, const rn_env_t* env, rn_device_t** out);

#endif  // RUNNEL_DEVICE_DEVICE_H_
