// An eager context that a client opened on this task: its values by number, its functions, and the
// ops that it runs here.
//
// Reference-counted; users retain it. Functions may block; any thread may call them.
#ifndef RUNNEL_DIST_EAGER_CONTEXT_H_
#define RUNNEL_DIST_EAGER_CONTEXT_H_

#include "dist/eager/peers.h"
#include "dist/eager/threads.h"
#include "dist/worker/worker.h"
#include "eager/eager.h"

typedef struct rn_eager_context_t rn_eager_context_t;

typedef struct rn_eager_context_options_t {
  const rn_env_t* env;  // restricted for graphs
  rn_allocator_t allocator;
  rn_eager_peers_options_t peers;
  rn_local_worker_t* worker;  // of this task; serves the context's values
  rn_threads_t* threads;      // where it is freed; NULL: on the thread that releases it
  // Borrowed: the context is that of a client in this process, by which other tasks use its devices
  // and values. NULL: a client elsewhere, for which it makes one.
  rn_eager_t* eager;
  rn_str_t task;  // "/job:worker/replica:0/task:0"
  int cpu_devices;
  const rn_gpu_options_t* gpu;  // borrowed for the call
  uint64_t id, view;
  rn_str_t server_def;  // the client's view of this task; borrowed for the call, like |devices|
  const rn_device_info_t* devices;  // of the cluster
  size_t device_count;
  int64_t keep_alive_ns;
  // Called when it is freed.
  void (*freed)(void* self);
  void* freed_self;
} rn_eager_context_options_t;

// The caller owns a reference. INVALID_ARGUMENT if the server_def is another task's.
RN_MUST_USE rn_status_t rn_eager_context_create(const rn_eager_context_options_t* options,
                                                rn_eager_context_t** out);
void rn_eager_context_retain(rn_eager_context_t* context);
void rn_eager_context_release(rn_eager_context_t* context);  // NULL is fine
// Cancels what runs in it, and fails waiters.
void rn_eager_context_close(rn_eager_context_t* context);
bool rn_eager_context_is_idle(const rn_eager_context_t* context);  // there is one reference only
uint64_t rn_eager_context_id(const rn_eager_context_t* context);
// The number of the client's view of the cluster.
uint64_t rn_eager_context_view(const rn_eager_context_t* context);
RN_MUST_USE rn_status_t rn_eager_context_update(rn_eager_context_t* context, uint64_t view,
                                                rn_str_t server_def,
                                                const rn_device_info_t* devices,
                                                size_t device_count);
// Records a use of the context; it expires a fixed time after the last one.
void rn_eager_context_touch(rn_eager_context_t* context);
int64_t rn_eager_context_expires_ns(const rn_eager_context_t* context);

// Runs the items of an EnqueueRequest, in order, until one fails. |message|, borrowed, holds the
// request; appends the EnqueueResponse to |out|.
RN_MUST_USE rn_status_t rn_eager_context_enqueue(rn_eager_context_t* context,
                                                 const rn_message_t* message, rn_strbuf_t* out);

// Runs a part of a function: a RunComponentFunctionRequest, borrowed until |done|, which is called
// once, on any thread, with the bytes of the response.
typedef struct rn_eager_part_t {
  const rn_message_t* message;
  void (*done)(struct rn_eager_part_t* part, rn_status_t status, rn_str_t response);
} rn_eager_part_t;
void rn_eager_context_run_part(rn_eager_context_t* context, rn_eager_part_t* part);

#endif  // RUNNEL_DIST_EAGER_CONTEXT_H_
