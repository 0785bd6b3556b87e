// A session: a graph, devices with their state, and the plans of the steps that were run. It is
// local (rn_session_create) or remote (dist/client.h); impl.h is the interface between the two.
//
// A local session plans a step the first time that its feeds, fetches and targets are run together,
// and keeps the plan. Any number of threads may run steps at once, and the graph may grow
// meanwhile. Closing cancels the steps that run and waits for them.
#ifndef RUNNEL_SESSION_SESSION_H_
#define RUNNEL_SESSION_SESSION_H_

#include "device/factory.h"
#include "exec/step_stats.h"
#include "graph/graph.h"
#include "step/precision.h"

typedef struct rn_session_t rn_session_t;
typedef struct rn_partial_run_t rn_partial_run_t;

typedef struct rn_step_options_t {
  int64_t timeout_ms;      // 0: the session's
  rn_step_stats_t* stats;  // filled when not NULL
  rn_cancel_t* cancel;     // borrowed: stops the step when cancelled; NULL: none
  int trace_level;         // RunOptions.trace_level, for a remote session
  // Receives a RunMetadata, unless NULL: all of it from a remote session; from a local one the
  // partition graphs if |wants_graphs|, and the costs where they are measured, with statistics of
  // their own unless |stats| are given.
  rn_strbuf_t* metadata;
  bool wants_graphs;
  bool is_quiet;  // run in the calling thread alone, for work that must not disturb other steps
} rn_step_options_t;

// The part of a ConfigProto that a session uses; rn_session_options_parse reads one.
typedef struct rn_session_options_t {
  int intra_threads;  // within a kernel; 0: one per CPU
  int inter_threads;  // that run kernels in parallel; 0: one per CPU
  // Run on the environment's pool instead of one of the session's own, so that many sessions have
  // no more threads than one. Of the two numbers above only 1 has a meaning then. Plans are made in
  // the calling thread alone: the steps of other sessions may have the others.
  bool shares_pool;
  bool allow_soft_placement;
  bool log_device_placement;
  bool optimize;  // false: opt_level L0 or disable_meta_optimizer: the graph runs as it was built
  rn_precision_t precision;   // mixed precision: the rewrite options auto_mixed_precision…
  bool no_plugin_optimizers;  // use_plugin_optimizers is OFF
  int cpu_devices;            // device_count["CPU"]; default 1
  int null_devices;           // device_count["NULL"]; default 0
  rn_gpu_options_t gpu;       // device_count["GPU"] and gpu_options
  rn_device_counts_t counts;  // device_count of other types
  rn_str_t task;  // prefix of the devices' names; "": /job:localhost/replica:0/task:0; borrowed
  int64_t timeout_ms;  // operation_timeout_in_ms; 0: none
  int64_t cost_every;  // build_cost_model: measure the costs of every n-th step of a signature; 0:
                       // never
  int64_t cost_after;  // build_cost_model_after: but not of the first n
  rn_calls_options_t calls;             // how functions are run
  const struct rn_pass_watch_t* watch;  // told of the passes of every plan (session/passes.h)
  bool is_limited;                      // only files and network that |allow| lists
  rn_str_t folder;                      // that may always be read: a model's own; copied
  rn_str_t allow;                       // see rn_fs_only_create; copied
  rn_str_t config;                      // the ConfigProto itself, for kernels that read it; copied
  bool collective_nccl;                 // its collectives go by the cards' library if they can
  rn_collectives_t* collectives;        // of all its steps; outlives it. NULL: the session's own
} rn_session_options_t;

void rn_session_options_init(rn_session_options_t* options);
// Whether the costs of a step are measured that is number |before| + 1 of its signature.
bool rn_session_measures(const rn_session_options_t* options, int64_t before);
// Reads the bytes of a ConfigProto; INVALID_ARGUMENT if they cannot be parsed.
RN_MUST_USE rn_status_t rn_session_options_parse(rn_str_t config,
                                                 rn_session_options_t* inout_options);

// A local session. Keeps |graph|; |env| must outlive the session.
RN_MUST_USE rn_status_t rn_session_create(rn_graph_t* graph, const rn_session_options_t* options,
                                          const rn_env_t* env, rn_allocator_t allocator,
                                          rn_session_t** out_session);
// Cancels running steps, waits for them; later runs fail with "Session has been closed.". Closing
// twice is fine.
RN_MUST_USE rn_status_t rn_session_close(rn_session_t* session);
// Closes and frees. NULL is fine.
void rn_session_destroy(rn_session_t* session);

rn_graph_t* rn_session_graph(rn_session_t* session);

// Runs one step. |feeds| are borrowed; on success the caller owns |fetches|, on failure they are
// unset. |options| may be NULL.
RN_MUST_USE rn_status_t rn_session_run(rn_session_t* session, const rn_signature_t* signature,
                                       const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                                       const rn_step_options_t* options);

// Plans a step without running it, and keeps the plan. |feeds| give the shapes; their values are
// not read. If it is NULL, the plan is for the shapes that the graph declares: from then on all
// shapes that have no plan of their own share it, so that none is planned while a client waits.
// UNIMPLEMENTED for a session that does not plan its steps itself.
RN_MUST_USE rn_status_t rn_session_plan(rn_session_t* session, const rn_signature_t* signature,
                                        const rn_tensor_t* const* feeds);

// Partial runs: setup names all feeds, fetches and targets; each run takes some of them; every node
// runs once. Calls on one handle are serialized.
RN_MUST_USE rn_status_t rn_session_partial_setup(rn_session_t* session,
                                                 const rn_signature_t* signature,
                                                 rn_partial_run_t** out);
// |part| is a subset of what was set up. |feeds| and |fetches| as in rn_session_run.
RN_MUST_USE rn_status_t rn_session_partial_run(rn_session_t* session, rn_partial_run_t* partial,
                                               const rn_signature_t* part,
                                               const rn_tensor_t* const* feeds,
                                               rn_tensor_t* fetches);
void rn_partial_run_destroy(rn_partial_run_t* partial);

// Runs the functions of the graph's library outside of steps; see framework/function.h. Borrowed;
// no call may be under way when the session is closed. NULL for a remote session.
rn_functions_t* rn_session_functions(rn_session_t* session);

// Initializes a step for kernels that are called outside of plans: the session's environment,
// threads and config, and the cancellation that closing the session triggers.
void rn_session_step_init(rn_session_t* session, rn_step_t* out);

// All devices, borrowed; a remote session asks its master for them.
RN_MUST_USE rn_status_t rn_session_devices(rn_session_t* session, rn_device_t*** out,
                                           int* out_count);
// The devices of a local session; a remote one has none of these.
int rn_session_device_count(const rn_session_t* session);
const rn_device_t* rn_session_device(const rn_session_t* session, int i);

#endif  // RUNNEL_SESSION_SESSION_H_
