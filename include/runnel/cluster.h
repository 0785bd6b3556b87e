// Training on a cluster: where variables go, replicas that work together, and a supervisor that
// makes sessions, keeps checkpoints and recovers by itself (doc/replication.md).
//
// Between-graph replication: every worker builds the same graph under its own device and has a
// session of its own; variables, accumulators and queues on parameter servers are the same ones,
// because they have the same names. Stock TensorFlow's workers may be among them.
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

// A cluster as people write it down: jobs and the addresses of their tasks.
typedef struct rn_cluster_t rn_cluster_t;

// From the short form "ps=host:port|host:port,worker=host:port", from JSON
// ({"ps": ["host:port", …], …}), or, if |text| is NULL, from the environment variable TF_CONFIG.
// NULL after an error.
RN_API rn_cluster_t* rn_cluster_parse(const char* text, TF_Status* status);
RN_API void rn_cluster_destroy(rn_cluster_t* cluster);  // NULL is fine
// How many tasks |job| has; 0: there is no such job.
RN_API int rn_cluster_count(const rn_cluster_t* cluster, const char* job);
// "host:port" of a task; NULL: there is none. Lives as long as the cluster.
RN_API const char* rn_cluster_address(const rn_cluster_t* cluster, const char* job, int task);
// Which task this process is, where TF_CONFIG says so; else NULL and -1.
RN_API const char* rn_cluster_own_job(const rn_cluster_t* cluster);
RN_API int rn_cluster_own_task(const rn_cluster_t* cluster);
// A server that is this task: started with TF_ServerStart, freed with TF_DeleteServer.
RN_API TF_Server* rn_cluster_server(const rn_cluster_t* cluster, const char* job, int task,
                                    TF_Status* status);

// Where variables go.
typedef enum rn_spread_t {
  RN_SPREAD_IN_TURN,  // one task after the other, as tf.compat.v1.train.replica_device_setter does
  RN_SPREAD_BY_LOAD,  // to the task with the fewest bytes so far
} rn_spread_t;
typedef struct rn_spread_options_t {
  int tasks;                  // parameter servers; 0: nothing is spread
  const char* device;         // of all of them; NULL: "/job:ps"
  const char* worker_device;  // of all other nodes; NULL: "/job:worker"
  rn_spread_t spread;
  // A choice of one's own: the task of the variable |name|; negative: |spread| chooses.
  int (*choose)(void* arg, const char* name, int dtype, const int64_t* dims, int rank);
  void* arg;
  char unused_;  // last: C++ wants initialisers in order
} rn_spread_options_t;
// From now on, nodes built in |scope| and in scopes made from it ask for the worker's device, and
// the variables made there for a parameter server; slots go where their variable is. Variables of
// RN_LOCAL_VARIABLES stay with the worker, and a scope whose device is set otherwise afterwards has
// its variables there. Parts of partitioned variables are spread like variables.
RN_API void rn_spread_variables_(rn_scope_t* scope, rn_spread_options_t options);
#define rn_spread_variables(...) \
  rn_spread_variables_(RN_OPTIONS_(rn_spread_options_t, __VA_ARGS__, .unused_ = 0))

// Synchronous replicas.
//
// Every replica adds its gradients to accumulators beside the variables. The chief takes their mean
// when |replicas| have come, applies it, and puts as many tokens as there are replicas into a
// queue; a replica begins its next step when it has got one. Gradients of an earlier step are
// dropped, so replicas beyond |replicas| are backups: the first ones count. Accumulators and queue
// have the names that TensorFlow's SyncReplicasOptimizer gives them.
typedef struct rn_sync_replicas_t {
  rn_node_t* train;            // what a replica runs for a step
  rn_node_t* sync;             // what the chief runs again and again, in a thread of its own
  rn_node_t* chief_init;       // once the variables are there, before the first step: the chief
  rn_node_t* local_init;       // the same: all others
  rn_node_t* farewell;         // a token for everybody
  rn_node_t* init_tokens;      // the chief, after that
  rn_edge_t token;             // that a step of |train| ends with: the step that now begins
  const rn_var_t* step;        // what tokens count: the global step, or the group's
  const rn_var_t* local_step;  // of this replica
} rn_sync_replicas_t;
typedef struct rn_sync_options_t {
  int replicas;                      // gradients that make one update
  int total;                         // replicas that there are; 0: as many
  const rn_var_t* global_step;       // NULL: the graph's
  const rn_var_t* const* variables;  // rn_sync_minimize: NULL: all that are trainable
  int variable_count;
  rn_clip_t clip;  // rn_sync_minimize: of each replica's own gradients
  // Replicas in groups: synchronous within, asynchronous between. Each group has a chief, and
  // counts its updates in "GROUP/sync_step"; the global step counts them all. NULL: one group,
  // named as in TensorFlow.
  const char* group;
  const char* name;  // of the nodes; NULL: "sync_replicas"
  char unused_;      // last: C++ wants initialisers in order
} rn_sync_options_t;
// False, and the scope's error, if that cannot be done.
RN_API bool rn_sync_apply_gradients_(rn_scope_t* scope, rn_optimizer_t optimizer,
                                     const rn_gradient_t* gradients,
                                     const rn_var_t* const* variables, int count,
                                     rn_sync_replicas_t* out, rn_sync_options_t options);
#define rn_sync_apply_gradients(scope, optimizer, gradients, variables, count, ...) \
  rn_sync_apply_gradients_((scope), (optimizer), (gradients), (variables), (count), \
                           RN_OPTIONS_(rn_sync_options_t, __VA_ARGS__, .unused_ = 0))
// With the gradients of |loss|.
RN_API bool rn_sync_minimize_(rn_scope_t* scope, rn_optimizer_t optimizer, rn_edge_t loss,
                              rn_sync_replicas_t* out, rn_sync_options_t options);
#define rn_sync_minimize(scope, optimizer, loss, ...) \
  rn_sync_minimize_((scope), (optimizer), (loss),     \
                    RN_OPTIONS_(rn_sync_options_t, __VA_ARGS__, .unused_ = 0))

// The supervisor of one worker: makes its session, sees that variables have values, and goes on
// after failures.
//
// Task 0 is the chief: it gives variables their first values, or those of the newest checkpoint,
// and saves from time to time. The others wait until all variables have values. When a step ends
// with UNAVAILABLE or ABORTED, or because state is gone, there is a new session, again with all of
// that, and the step is run again; what was lost with a parameter server comes back from the
// checkpoint, and where nothing was lost nothing is restored. A time without any good step that is
// longer than |patience_seconds| is an error, which says what is missing.
//
// Functions are called by one thread at a time, but for should_stop and request_stop.
typedef struct rn_supervisor_t rn_supervisor_t;

// What a client wants to be told; either may be NULL.
typedef struct rn_hook_t {
  // A session is there and ready: the first, or one after a failure.
  void (*session)(void* arg, rn_supervisor_t* supervisor, TF_Session* session);
  // A step has been run; |global_step| is as it was seen there.
  void (*step)(void* arg, rn_supervisor_t* supervisor, int64_t global_step);
  void* arg;
} rn_hook_t;

typedef struct rn_supervisor_options_t {
  const char* target;   // "grpc://host:port"; NULL: a session in this process
  int task;             // of this worker; 0: the chief
  const char* job;      // NULL: "worker"
  const char* ps_job;   // NULL: "ps"
  bool sees_all_tasks;  // sessions need all tasks of the cluster, and not just the parameter
                        // servers and this one
  const void* config;   // a ConfigProto, besides
  size_t config_size;
  const rn_sync_replicas_t* sync;  // NULL: replicas do not wait for each other
  bool is_group_chief;             // of groups other than that of task 0: this one is its chief
  rn_saver_t* saver;               // borrowed; NULL: nothing is saved, nor restored
  const char* directory;           // of checkpoints; NULL: none
  double save_seconds;             // 0: 600; negative: never by the clock
  int64_t save_steps;              // 0: never by the count
  double patience_seconds;         // 0: 300
  rn_summary_writer_t* log;        // borrowed: the chief writes "global_step/sec"; NULL: nothing
  int64_t log_steps;               // how often; 0: every 100 steps
  // Called by the chief after the variables have got their first values.
  bool (*init)(void* arg, TF_Session* session, TF_Status* status);
  void* init_arg;
  const rn_hook_t* hooks;  // borrowed
  int hook_count;
  char unused_;  // last: C++ wants initialisers in order
} rn_supervisor_options_t;

// Adds the nodes it needs; all variables must have been made. Says nothing to the cluster yet. NULL
// after an error, which is the scope's.
RN_API rn_supervisor_t* rn_supervisor_(rn_scope_t* scope, rn_supervisor_options_t options);
#define rn_supervisor(...) \
  rn_supervisor_(RN_OPTIONS_(rn_supervisor_options_t, __VA_ARGS__, .unused_ = 0))
// Ends threads and the session. NULL is fine.
RN_API void rn_supervisor_destroy(rn_supervisor_t* supervisor);

// Makes the session if there is none. False if that failed, or took too long.
RN_API bool rn_supervisor_start(rn_supervisor_t* supervisor, TF_Status* status);
// One step, as TF_SessionRun; makes the session if there is none. OUT_OF_RANGE is the ordinary end
// of input and of a chief's queue.
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
// The last step is done: the chief saves once more, and synchronous replicas that may wait for this
// one go on. False if that failed.
RN_API bool rn_supervisor_finish(rn_supervisor_t* supervisor, TF_Status* status);

// The session of now; NULL: there is none. Lives until the next call.
RN_API TF_Session* rn_supervisor_session(rn_supervisor_t* supervisor);
// The global step as it was last seen; without one, the steps run here. 0 before the first.
RN_API int64_t rn_supervisor_step(const rn_supervisor_t* supervisor);
// How many sessions were made after failures.
RN_API int rn_supervisor_recoveries(const rn_supervisor_t* supervisor);
// For the client's own use and for waiting: a stop also ends waiting inside the supervisor.
RN_API bool rn_supervisor_should_stop(const rn_supervisor_t* supervisor);
RN_API void rn_supervisor_request_stop(rn_supervisor_t* supervisor);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_CLUSTER_H_
