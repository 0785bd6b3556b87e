// A session: a graph, devices with their state, and the plans of the steps that were asked for.
//
// Plans are made the first time a combination of feeds, fetches and targets is run and kept. Any
// number of threads may run steps at once; the graph may grow meanwhile. Closing cancels what runs
// and waits for it.
#ifndef RUNNEL_SESSION_SESSION_H_
#define RUNNEL_SESSION_SESSION_H_

#include "device/device.h"
#include "exec/step_stats.h"
#include "graph/graph.h"
#include "step/ir.h"

typedef struct rn_session_t rn_session_t;
typedef struct rn_partial_run_t rn_partial_run_t;

typedef struct rn_step_options_t {
  int64_t timeout_ms;      // 0: the session's
  rn_step_stats_t* stats;  // filled when not NULL
  rn_cancel_t* cancel;     // the caller's, to stop the step with; NULL: none
  int trace_level;         // of a session that is elsewhere, as RunOptions has it
  // A RunMetadata goes here: all of it from a session that is elsewhere, of one that is here the
  // parts if |wants_graphs|. NULL: nobody asks.
  rn_strbuf_t* metadata;
  bool wants_graphs;
} rn_step_options_t;

// A session that is elsewhere: who runs its steps. |run| is NULL: it is here.
typedef struct rn_session_remote_t {
  void* self;
  rn_status_t (*run)(void* self, const rn_signature_t* signature, const rn_tensor_t* const* feeds,
                     rn_tensor_t* fetches, const rn_step_options_t* options);
  // The devices that it has, stand-ins with names, lent until |close|.
  rn_status_t (*devices)(void* self, rn_device_t*** out, int* out_count);
  rn_status_t (*close)(void* self);
  void (*destroy)(void* self);
} rn_session_remote_t;

// What of a ConfigProto matters here; rn_session_options_parse reads one.
typedef struct rn_session_options_t {
  int intra_threads;     // inside a kernel; 0: one for each processor
  int inter_threads;     // kernels beside each other; 0: one for each processor
  bool use_global_pool;  // use_per_session_threads = false is stock's default: sessions of equal
                         // thread counts may share a pool
  bool allow_soft_placement;
  bool log_device_placement;
  bool optimize;    // false: opt_level L0 or disable_meta_optimizer: the graph runs as it was built
  int cpu_devices;  // device_count["CPU"]; default 1
  int null_devices;          // device_count["NULL"]; default 0
  rn_str_t task;             // whose devices they are; "": /job:localhost/replica:0/task:0; lent
  int64_t timeout_ms;        // operation_timeout_in_ms; 0: none
  rn_calls_options_t calls;  // how functions are run
  const struct rn_pass_watch_t* watch;  // told of the passes of every plan (session/passes.h); lent
  bool is_limited;                      // files and network as |allow| says only
  rn_str_t folder;                      // that may be read in any case: a model's own; copied
  rn_str_t allow;                       // see rn_fs_only_create; copied
  rn_str_t target;                      // "" : this process
  rn_session_remote_t remote;  // what the target stands for; taken, also when creating fails
  rn_str_t config;  // the ConfigProto itself, for kernels that ask; the session copies it
} rn_session_options_t;

void rn_session_options_init(rn_session_options_t* options);
// From the bytes of a ConfigProto; INVALID_ARGUMENT if they are none.
RN_MUST_USE rn_status_t rn_session_options_parse(rn_str_t config,
                                                 rn_session_options_t* inout_options);

// Keeps |graph|. |env| must outlive the session.
RN_MUST_USE rn_status_t rn_session_create(rn_graph_t* graph, const rn_session_options_t* options,
                                          const rn_env_t* env, rn_allocator_t allocator,
                                          rn_session_t** out_session);
// Cancels running steps, waits for them; later runs fail with "Session has been closed.". Closing
// twice is fine.
RN_MUST_USE rn_status_t rn_session_close(rn_session_t* session);
// Closes and frees. NULL is fine.
void rn_session_destroy(rn_session_t* session);

rn_graph_t* rn_session_graph(rn_session_t* session);

// Runs one step. |feeds| are lent; |fetches| are set and owned by the caller on success, unset on
// failure. |options| may be NULL.
RN_MUST_USE rn_status_t rn_session_run(rn_session_t* session, const rn_signature_t* signature,
                                       const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                                       const rn_step_options_t* options);

// Plans a step for the shapes that the graph declares, without running it. Not for a session that
// is elsewhere.
RN_MUST_USE rn_status_t rn_session_plan(rn_session_t* session, const rn_signature_t* signature);

// A step in pieces: setup names everything, each run feeds some and fetches some; every node runs
// once. Calls on one handle take turns.
RN_MUST_USE rn_status_t rn_session_partial_setup(rn_session_t* session,
                                                 const rn_signature_t* signature,
                                                 rn_partial_run_t** out);
// |part| is some of what was set up. |feeds| are lent, |fetches| owned by the caller on success,
// unset on failure.
RN_MUST_USE rn_status_t rn_session_partial_run(rn_session_t* session, rn_partial_run_t* partial,
                                               const rn_signature_t* part,
                                               const rn_tensor_t* const* feeds,
                                               rn_tensor_t* fetches);
void rn_partial_run_destroy(rn_partial_run_t* partial);

// What the functions of the graph's library are run through outside of steps; see
// framework/function.h. Borrowed; no call may be under way when the session is closed.
rn_functions_t* rn_session_functions(rn_session_t* session);

// What a step starts as whose kernels are called outside of plans: the session's environment,
// threads and config, and the cancellation that closing it sets off.
void rn_session_step_init(rn_session_t* session, rn_step_t* out);

// All of them, lent; of a session that is elsewhere it is asked for them.
RN_MUST_USE rn_status_t rn_session_devices(rn_session_t* session, rn_device_t*** out,
                                           int* out_count);
int rn_session_device_count(const rn_session_t* session);
const rn_device_t* rn_session_device(const rn_session_t* session, int i);

#endif  // RUNNEL_SESSION_SESSION_H_
