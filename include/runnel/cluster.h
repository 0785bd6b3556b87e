// Training on a cluster: where variables go, replicas that work together, and a supervisor that
// makes sessions, keeps checkpoints and recovers from failures (doc/replication.md).
//
// Between-graph replication: every worker builds the same graph under its own device and has its
// own session. Variables, accumulators and queues on parameter servers have the same names in all
// graphs, so the workers share them. Some workers may be stock TensorFlow's.
//
//   rn_cluster_t* cluster = rn_cluster_parse("ps=a:1|b:1,worker=c:1|d:1", status);
//   rn_spread_variables(s, .tasks = 2, .worker_device = "/job:worker/task:1");
//   … the model …
//   rn_sync_replicas_t sync;
//   rn_sync_minimize(s, rn_adam(.learning_rate = 0.01f), loss, &sync, .replicas = 2);
//   rn_supervisor_t* v = rn_supervisor(s, .target = target, .task = 1, .sync = &sync,
//                                      .directory = "run", .saver = rn_saver(s));
//   while (rn_supervisor_step(v) < 1000 && rn_supervise(v, status, RN_TARGET(sync.train))) …
//   rn_supervisor_destroy(v);
#ifndef RUNNEL_CLUSTER_H_
#define RUNNEL_CLUSTER_H_

#include "runnel/run.h"
#include "runnel/saver.h"
#include "runnel/summary.h"
#include "runnel/train.h"

#ifdef __cplusplus
extern "C" {
#endif

// A cluster: jobs and the addresses of their tasks.
typedef struct rn_cluster_t rn_cluster_t;

// Parses the short form "ps=host:port|host:port,worker=host:port" or JSON ({"ps": ["host:port", …],
// …}); if |text| is NULL, the environment variable TF_CONFIG. NULL after an error.
RN_API rn_cluster_t* rn_cluster_parse(const char* text, TF_Status* status);
RN_API void rn_cluster_destroy(rn_cluster_t* cluster);  // NULL is fine
// The number of tasks of |job|; 0 if there is no such job.
RN_API int rn_cluster_count(const rn_cluster_t* cluster, const char* job);
// "host:port" of a task; NULL if there is no such task. Lives as long as the cluster.
RN_API const char* rn_cluster_address(const rn_cluster_t* cluster, const char* job, int task);
// The job and task of this process if TF_CONFIG says so; otherwise NULL and -1.
RN_API const char* rn_cluster_own_job(const rn_cluster_t* cluster);
RN_API int rn_cluster_own_task(const rn_cluster_t* cluster);
// A server for this task. Start it with TF_ServerStart, free it with TF_DeleteServer.
RN_API TF_Server* rn_cluster_server(const rn_cluster_t* cluster, const char* job, int task,
                                    TF_Status* status);

// Where variables go.
typedef enum rn_spread_t {
  RN_SPREAD_IN_TURN,  // round-robin, as tf.compat.v1.train.replica_device_setter does
  RN_SPREAD_BY_LOAD,  // to the task with the fewest bytes so far
} rn_spread_t;
typedef struct rn_spread_options_t {
  int tasks;                  // parameter servers; 0: spread nothing
  const char* device;         // of all of them; NULL: "/job:ps"
  const char* worker_device;  // of all other nodes; NULL: "/job:worker"
  rn_spread_t spread;
  // Your own choice: returns the task of the variable |name|, or a negative number to use |spread|.
  int (*choose)(void* arg, const char* name, int dtype, const int64_t* dims, int rank);
  void* arg;
  char unused_;  // last, for initializers in C++
} rn_spread_options_t;
// From now on, nodes built in |scope| and its children request the worker's device, and variables
// made there request a parameter server. Slot variables go where their variable is. Variables of
// RN_LOCAL_VARIABLES stay with the worker. If a scope's device is set otherwise afterwards, its
// variables go there. Parts of partitioned variables are spread like variables.
RN_API void rn_spread_variables_(rn_scope_t* scope, rn_spread_options_t options);
#define rn_spread_variables(...) \
  rn_spread_variables_(RN_OPTIONS_(rn_spread_options_t, __VA_ARGS__, .unused_ = 0))

// Synchronous replicas.
//
// Every replica adds its gradients to accumulators beside the variables. When |replicas| gradients
// have arrived, the chief takes their mean, applies it, and puts one token per replica into a
// queue; a replica begins its next step when it has a token. Gradients of an earlier step are
// dropped, so replicas beyond |replicas| are backups. Accumulators and queue have the names of
// TensorFlow's SyncReplicasOptimizer.
typedef struct rn_sync_replicas_t {
  rn_node_t* train;            // a replica runs this for a step
  rn_node_t* sync;             // the chief runs this repeatedly, in a thread of its own
  rn_node_t* chief_init;       // the chief runs this once, before the first step
  rn_node_t* local_init;       // all others run this once, before the first step
  rn_node_t* farewell;         // puts one token per replica into the queue
  rn_node_t* init_tokens;      // the chief runs this after |chief_init|
  rn_edge_t token;             // result of |train|: the step that begins now
  const rn_var_t* step;        // counted by tokens: the global step or the group's
  const rn_var_t* local_step;  // of this replica
} rn_sync_replicas_t;
typedef struct rn_sync_options_t {
  int replicas;                      // gradients per update
  int total;                         // number of replicas; 0: |replicas|
  const rn_var_t* global_step;       // NULL: the graph's
  const rn_var_t* const* variables;  // rn_sync_minimize: NULL for all trainable ones
  int variable_count;
  rn_clip_t clip;  // rn_sync_minimize: of each replica's own gradients
  // Replicas in groups: synchronous within a group, asynchronous between groups. Each group has a
  // chief and counts its updates in "GROUP/sync_step"; the global step counts all updates. NULL:
  // one group, named as in TensorFlow.
  const char* group;
  const char* name;  // of the nodes; NULL: "sync_replicas"
  char unused_;      // last, for initializers in C++
} rn_sync_options_t;
// Adds the nodes that apply |gradients| synchronously. False after an error, which the scope keeps.
RN_API bool rn_sync_apply_gradients_(rn_scope_t* scope, rn_optimizer_t optimizer,
                                     const rn_gradient_t* gradients,
                                     const rn_var_t* const* variables, int count,
                                     rn_sync_replicas_t* out, rn_sync_options_t options);
#define rn_sync_apply_gradients(scope, optimizer, gradients, variables, count, ...) \
  rn_sync_apply_gradients_((scope), (optimizer), (gradients), (variables), (count), \
                           RN_OPTIONS_(rn_sync_options_t, __VA_ARGS__, .unused_ = 0))
// The same with the gradients of |loss|.
RN_API bool rn_sync_minimize_(rn_scope_t* scope, rn_optimizer_t optimizer, rn_edge_t loss,
                              rn_sync_replicas_t* out, rn_sync_options_t options);
#define rn_sync_minimize(scope, optimizer, loss, ...) \
  rn_sync_minimize_((scope), (optimizer), (loss),     \
                    RN_OPTIONS_(rn_sync_options_t, __VA_ARGS__, .unused_ = 0))

// The supervisor of one worker makes its session, makes sure that variables have values, and
// recovers after failures.
//
// Task 0 is the chief: it initializes the variables, or restores the newest checkpoint, and saves
// from time to time. The others wait until all variables have values. If a step ends with
// UNAVAILABLE or ABORTED, or because state is gone, the supervisor makes a new session in the same
// way and runs the step again. State that was lost with a parameter server is restored from the
// checkpoint; if nothing was lost, nothing is restored. If no step succeeds for |patience_seconds|,
// that is an error, which says what is missing.
//
// Only one thread at a time may call these functions, except should_stop and request_stop.
typedef struct rn_supervisor_t rn_supervisor_t;

// Callbacks; either may be NULL.
typedef struct rn_hook_t {
  // A session is ready: the first one, or one after a failure.
  void (*session)(void* arg, rn_supervisor_t* supervisor, TF_Session* session);
  // A step has run; |global_step| is the value that it saw.
  void (*step)(void* arg, rn_supervisor_t* supervisor, int64_t global_step);
  void* arg;
} rn_hook_t;

typedef struct rn_supervisor_options_t {
  const char* target;   // "grpc://host:port"; NULL: a session in this process
  int task;             // of this worker; 0 is the chief
  const char* job;      // NULL: "worker"
  const char* ps_job;   // NULL: "ps"
  bool sees_all_tasks;  // sessions include all tasks, not only parameter servers and this
  const void* config;   // a ConfigProto, may be NULL
  size_t config_size;
  const rn_sync_replicas_t* sync;  // NULL: asynchronous replicas
  bool is_group_chief;             // this worker is the chief of a group without task 0
  rn_saver_t* saver;               // borrowed; NULL: save and restore nothing
  const char* directory;           // of checkpoints; NULL: none
  double save_seconds;             // 0: 600; negative: not by time
  int64_t save_steps;              // 0: not by steps
  double patience_seconds;         // 0: 300
  rn_summary_writer_t* log;        // borrowed: the chief logs "global_step/sec"; NULL: no log
  int64_t log_steps;               // steps between two log entries; 0: 100
  // The chief calls it after it has initialized the variables.
  bool (*init)(void* arg, TF_Session* session, TF_Status* status);
  void* init_arg;
  const rn_hook_t* hooks;  // borrowed
  int hook_count;
  char unused_;  // last, for initializers in C++
} rn_supervisor_options_t;

// Adds the nodes that it needs; all variables must exist. Does not contact the cluster yet. NULL
// after an error, which the scope keeps.
RN_API rn_supervisor_t* rn_supervisor_(rn_scope_t* scope, rn_supervisor_options_t options);
#define rn_supervisor(...) \
  rn_supervisor_(RN_OPTIONS_(rn_supervisor_options_t, __VA_ARGS__, .unused_ = 0))
// Ends threads and the session. NULL is fine.
RN_API void rn_supervisor_destroy(rn_supervisor_t* supervisor);

// Makes the session if there is none. False on failure or timeout.
RN_API bool rn_supervisor_start(rn_supervisor_t* supervisor, TF_Status* status);
// Runs one step like TF_SessionRun; makes the session if there is none. OUT_OF_RANGE is the regular
// end of input and of a chief's queue.
RN_API bool rn_supervisor_run(rn_supervisor_t* supervisor, const TF_Output* inputs,
                              TF_Tensor* const* input_values, int input_count,
                              const TF_Output* outputs, TF_Tensor** output_values, int output_count,
                              const TF_Operation* const* targets, int target_count,
                              TF_Status* status);
// The same with the arguments of rn_run (runnel/run.h): rn_supervise(supervisor, status,
// RN_FEED(…), RN_TARGET(train)).
#define rn_supervise(supervisor, status, ...) \
  RN_RUN_CALL_(rn_supervisor_run_args, supervisor, status, __VA_ARGS__)
RN_API bool rn_supervisor_run_args(rn_supervisor_t* supervisor, const rn_run_arg_t* args,
                                   size_t count, TF_Status* status);
// Call it after the last step: the chief saves once more, and synchronous replicas that wait for
// this one continue. False on failure.
RN_API bool rn_supervisor_finish(rn_supervisor_t* supervisor, TF_Status* status);

// The current session; NULL if there is none. Lives until the next call.
RN_API TF_Session* rn_supervisor_session(rn_supervisor_t* supervisor);
// The last global step that was seen; without a global step, the number of steps run here. 0 before
// the first.
RN_API int64_t rn_supervisor_step(const rn_supervisor_t* supervisor);
// The number of sessions that were made after failures.
RN_API int rn_supervisor_recoveries(const rn_supervisor_t* supervisor);
// A stop flag for the program; requesting a stop also ends waiting inside the supervisor.
RN_API bool rn_supervisor_should_stop(const rn_supervisor_t* supervisor);
RN_API void rn_supervisor_request_stop(rn_supervisor_t* supervisor);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_CLUSTER_H_
