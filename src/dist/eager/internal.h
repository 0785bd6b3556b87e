// Shared by the files of eager contexts.
#ifndef RUNNEL_DIST_EAGER_INTERNAL_H_
#define RUNNEL_DIST_EAGER_INTERNAL_H_

#include "base/map.h"
#include "dist/eager/context.h"
#include "framework/function.h"

// A value on a device of the cluster, which this process or another task holds.
typedef struct rn_eager_piece_t {
  rn_eager_handle_t* handle;  // Retained; NULL: another task holds it
  rn_str_t remote;            // then its encoded RemoteTensorHandle
  rn_str_t device;            // the device that it belongs to; "": one of this task
} rn_eager_piece_t;

// Values on several devices under one handle: each user takes the one on its own device. Counted.
typedef struct rn_eager_packed_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  rn_arena_t arena;  // all below
  size_t count;
  rn_eager_piece_t* pieces;
} rn_eager_packed_t;
// Reads a SendPackedHandleOp. The caller owns a reference.
RN_MUST_USE rn_status_t rn_eager_packed_read(rn_eager_context_t* context, rn_str_t bytes,
                                             rn_buffer_t* buffer, rn_eager_packed_t** out);
void rn_eager_packed_release(rn_eager_packed_t* packed);  // NULL is fine
// The value that an op of this task takes, borrowed; INVALID_ARGUMENT if there is none.
RN_MUST_USE rn_status_t rn_eager_packed_own(const rn_eager_context_t* context,
                                            const rn_eager_packed_t* packed,
                                            rn_eager_handle_t** out);

// A value and its number.
typedef struct rn_eager_value_t {
  int64_t key[2];             // the op, the output
  rn_eager_handle_t* handle;  // Retained; NULL: packed
  rn_eager_packed_t* packed;  // Retained
} rn_eager_value_t;

// A function that was prepared for a device.
typedef struct rn_eager_ready_t {
  rn_str_t key;  // "name;device"; Owned
  rn_str_t name;
  rn_instance_t* instance;  // Owned
} rn_eager_ready_t;

struct rn_eager_context_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_threads_t* threads;
  rn_job_t job;  // frees it
  void (*freed)(void* self);
  void* freed_self;
  uint64_t id;
  int64_t keep_alive_ns;
  _Atomic int64_t used_ns;
  char* task;               // Owned
  bool is_home;             // of a client in this process, which owns |eager|
  rn_eager_t* eager;        // Owned
  rn_eager_peers_t* peers;  // Owned
  rn_steps_t* steps;
  rn_rendezvous_t* rendezvous;  // Retained: of values that are copied between tasks
  rn_eager_cancel_t stop;       // cancelled when the context is closed
  rn_mutex_t mutex;             // guards what follows
  uint64_t view;
  rn_arena_t arena;             // devices
  RN_VEC(rn_device_t*) others;  // stand-ins for devices of other tasks
  rn_map_t spans;               // rn_span_t*
  int64_t next_span;
  rn_map_t values;  // rn_eager_value_t*
  rn_map_t ready;   // rn_eager_ready_t*
  bool is_closed;
};

// An op of a message, from which it borrows strings.
typedef struct rn_eager_call_t {
  int64_t id, step;
  rn_str_t name, device;
  bool is_function, is_part;
  size_t input_count, attr_count;
  rn_eager_handle_t** inputs;  // Retained; NULL: it is packed, or on another task
  rn_eager_packed_t** packed;  // Retained
  rn_str_t* remote;            // of another task: its encoded RemoteTensorHandle
  rn_attr_t* attrs;
  rn_arena_t arena;  // the arrays
} rn_eager_call_t;

// Reads an Operation; |buffer| holds |bytes| (NULL: they must be copied). Must be cleared in any
// case.
RN_MUST_USE rn_status_t rn_eager_call_read(rn_eager_context_t* context, rn_str_t bytes,
                                           rn_buffer_t* buffer, rn_eager_call_t* out);
void rn_eager_call_clear(rn_eager_call_t* call);
// Runs it and appends its QueueResponse, without the header, to |out|.
RN_MUST_USE rn_status_t rn_eager_call_run(rn_eager_context_t* context, rn_eager_call_t* call,
                                          rn_strbuf_t* out);

// Decodes a TensorProto to a value on |device|. INVALID_ARGUMENT, with stock's message, if it is
// malformed.
RN_MUST_USE rn_status_t rn_eager_read_tensor(rn_eager_context_t* context, rn_str_t bytes,
                                             rn_buffer_t* buffer, rn_device_t* device,
                                             rn_eager_handle_t** out);
// The task of |device|: "/job:worker/replica:0/task:0" of "…/device:CPU:0".
rn_str_t rn_eager_task_of(rn_str_t device);
// Adds the flat inputs to |op|, each to its argument.
RN_MUST_USE rn_status_t rn_eager_call_add_inputs(const rn_eager_call_t* call, rn_eager_op_t* op);
// Stores |handles| under the call's number and appends their descriptions to the response.
RN_MUST_USE rn_status_t rn_eager_put_results(rn_eager_context_t* context,
                                             const rn_eager_call_t* call,
                                             rn_eager_handle_t** handles, int32_t count,
                                             rn_strbuf_t* out);

// The value with a number, retained: a handle, or packed ones if |out_packed| is not NULL.
// INVALID_ARGUMENT with stock's message.
RN_MUST_USE rn_status_t rn_eager_value_get(rn_eager_context_t* context, int64_t op, int64_t output,
                                           rn_eager_handle_t** out, rn_eager_packed_t** out_packed);
// Stores |handle| under a number, replacing an earlier one.
RN_MUST_USE rn_status_t rn_eager_value_put(rn_eager_context_t* context, int64_t op, int64_t output,
                                           rn_eager_handle_t* handle);
RN_MUST_USE rn_status_t rn_eager_value_put_packed(rn_eager_context_t* context, int64_t op,
                                                  rn_eager_packed_t* packed);
RN_MUST_USE rn_status_t rn_eager_value_drop(rn_eager_context_t* context, int64_t op,
                                            int64_t output);
// A TensorShapeProto of |handle|'s value as field |number|.
RN_MUST_USE rn_status_t rn_eager_put_shape(rn_strbuf_t* out, uint32_t number,
                                           rn_eager_handle_t* handle);
// Whether the client's cluster has no other task.
bool rn_eager_context_is_alone(rn_eager_context_t* context);
// The device |name| of this task; INVALID_ARGUMENT for others. "": the first.
RN_MUST_USE rn_status_t rn_eager_own_device(rn_eager_context_t* context, rn_str_t name,
                                            rn_device_t** out);
// Forgets the prepared instances of function |name|.
void rn_eager_ready_drop(rn_eager_context_t* context, rn_str_t name);

#endif  // RUNNEL_DIST_EAGER_INTERNAL_H_
