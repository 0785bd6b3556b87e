// An eager context as a client of other tasks: their devices are its devices, ops run on them, and
// values are copied to them and back.
//
// Behind each device of another task stands an rn_eager_custom_device_t. A call waits for its
// answer; a task that is silent for a lease, while it is asked, is dead, and what needs it fails
// with UNAVAILABLE. Values that are let go are told to their task with the next call. Functions may
// be called from any thread.
#ifndef RUNNEL_DIST_EAGER_CLIENT_H_
#define RUNNEL_DIST_EAGER_CLIENT_H_

#include "dist/iface.h"
#include "eager/eager.h"

typedef struct rn_eager_client_t rn_eager_client_t;

typedef struct rn_eager_join_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_str_t server_def;  // the cluster, and which task of it this process is
  int64_t keep_alive_s;
  int64_t timeout_ms;  // for all tasks to be there; 0: a minute
  bool clears;         // contexts that others have on the tasks are closed
  bool is_update;      // tasks that were there keep their contexts
  bool is_alone;       // this process gets its name from the cluster, and leaves the other tasks be
} rn_eager_join_t;

// Opens contexts on all other tasks of the cluster. |eager| keeps the client. A failure leaves the
// context without other tasks, or, of an update, with those it had.
RN_MUST_USE rn_status_t rn_eager_client_join(rn_eager_t* eager, const rn_eager_join_t* join);
// Devices of other tasks, in |arena|.
RN_MUST_USE rn_status_t rn_eager_client_devices(rn_eager_t* eager, rn_arena_t* arena,
                                                rn_device_info_t** out, size_t* out_count);
// Whether task |name|, "/job:worker/replica:0/task:0", answers. INVALID_ARGUMENT if there is none.
RN_MUST_USE rn_status_t rn_eager_client_check(rn_eager_t* eager, rn_str_t name, bool* out);

#endif  // RUNNEL_DIST_EAGER_CLIENT_H_
