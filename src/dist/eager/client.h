// Makes an eager context a client of other tasks: it runs ops on their devices and copies values to
// and from them.
//
// Each device of another task is an rn_eager_custom_device_t. Calls block until the response; a
// task that is silent for a lease during a call is lost, and what needs it fails with UNAVAILABLE.
// The next call to a task tells it which values were released. Any thread may call these functions.
#ifndef RUNNEL_DIST_EAGER_CLIENT_H_
#define RUNNEL_DIST_EAGER_CLIENT_H_

#include "dist/iface.h"
#include "eager/eager.h"

typedef struct rn_eager_client_t rn_eager_client_t;
typedef struct rn_server_t rn_server_t;  // see dist/server.h

typedef struct rn_eager_join_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_str_t server_def;  // the cluster, and this process's task in it
  int64_t keep_alive_s;
  int64_t timeout_ms;  // until all tasks must be up; 0: a minute
  bool clears;         // closes the contexts of other clients on the tasks
  bool is_update;      // existing tasks keep their contexts
  // Makes a server for the task of a ServerDef, with the devices of |eager|: other tasks then fetch
  // values of this process and run parts of functions in it. NULL: it is a mere client.
  rn_status_t (*make_server)(rn_eager_t* eager, rn_str_t server_def, rn_server_t** out);
  bool is_alone;  // this process just takes its name from the cluster, without contacting other
                  // tasks
} rn_eager_join_t;

// Opens contexts on all other tasks of the cluster. |eager| owns the client. After a failure the
// context has no other tasks or, for an update, those it had.
RN_MUST_USE rn_status_t rn_eager_client_join(rn_eager_t* eager, const rn_eager_join_t* join);
// Makes this process the task of the cluster that the ServerDef names: |server|, which the context
// owns from now on, runs the collectives of its ops. It replaces an earlier server. If the
// ServerDef asks for coordination, waits for all tasks; from then on the failure of one ends
// collectives. Takes |server| also on failure. No op may run meanwhile.
RN_MUST_USE rn_status_t rn_eager_client_serve(rn_eager_t* eager, const rn_eager_join_t* join,
                                              rn_server_t* server);
rn_server_t* rn_eager_client_server(rn_eager_t* eager);  // Borrowed; NULL: none
// The context's end of the coordination service, valid as long as the context; NULL: none.
struct rn_agent_t* rn_eager_client_agent(rn_eager_t* eager);
// Devices of other tasks, in |arena|.
RN_MUST_USE rn_status_t rn_eager_client_devices(rn_eager_t* eager, rn_arena_t* arena,
                                                rn_device_info_t** out, size_t* out_count);
// Whether task |name|, "/job:worker/replica:0/task:0", answers within |timeout_ms|, or within some
// seconds if that is 0. INVALID_ARGUMENT if there is none.
RN_MUST_USE rn_status_t rn_eager_client_check(rn_eager_t* eager, rn_str_t name, int64_t timeout_ms,
                                              bool* out);

#endif  // RUNNEL_DIST_EAGER_CLIENT_H_
