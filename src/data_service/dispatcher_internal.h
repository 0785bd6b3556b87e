// What the files of the dispatcher share.
#ifndef RUNNEL_DATA_SERVICE_DISPATCHER_INTERNAL_H_
#define RUNNEL_DATA_SERVICE_DISPATCHER_INTERNAL_H_

#include "base/container.h"
#include "base/pool.h"
#include "base/sync.h"
#include "data_service/dispatcher.h"
#include "data_service/journal.h"
#include "data_service/splits.h"
#include "net/channel.h"

// The bytes of a DatasetDef.
typedef struct rn_ds_stored_t {
  rn_str_t id;  // Owned
  char* bytes;  // Owned; NULL: in a file
  size_t size;
} rn_ds_stored_t;

// Consumers that want to remove a task, and wait until all do.
typedef struct rn_ds_removal_t {
  int64_t task_id, round, deadline_ns;
  RN_VEC(rn_rpc_in_t*) calls;
  RN_VEC(int64_t) consumers;
} rn_ds_removal_t;

typedef struct rn_ds_link_t {
  char* address;  // Owned
  rn_channel_t* channel;
} rn_ds_link_t;

// The splits of an iteration, or those who wait for them.
typedef struct rn_ds_sources_t rn_ds_sources_t;

struct rn_ds_dispatcher_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_pool_t* pool;    // calls run on it
  rn_pool_t* graphs;  // ops of datasets run from it
  rn_arena_t arena;
  rn_pb_data_experimental_DispatcherConfig_t config;  // in |arena|
  rn_timer_t tick;
  rn_job_t tick_job;
  _Atomic bool is_closing;
  rn_mutex_t mutex;  // guards what follows
  rn_ds_state_t state;
  rn_ds_journal_t* journal;  // NULL: none
  int64_t checked_ns;        // when old iterations were looked for
  RN_VEC(rn_ds_stored_t) stored;
  RN_VEC(rn_ds_removal_t) removals;
  RN_VEC(rn_ds_link_t) links;
  RN_VEC(rn_ds_sources_t*) sources;  // Owned
  RN_VEC(rn_str_t) addresses;  // of the config, with the ports that workers turned out to have
};

// All under the lock.

// Writes the change to the journal and makes it.
RN_MUST_USE rn_status_t rn_ds_change(rn_ds_dispatcher_t* self, const rn_pb_data_Update_t* update);
RN_MUST_USE rn_status_t rn_ds_put_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_str_t def);
// Appends the DatasetDef's bytes.
RN_MUST_USE rn_status_t rn_ds_get_dataset(rn_ds_dispatcher_t* self, rn_str_t id, rn_strbuf_t* out);
// Writes a TaskDef as field |number|.
RN_MUST_USE rn_status_t rn_ds_write_task(rn_ds_dispatcher_t* self, const rn_ds_task_t* task,
                                         uint32_t number, rn_strbuf_t* out);
// Tells the worker of |task|; it learns of it by its heartbeat if that fails.
void rn_ds_send_task(rn_ds_dispatcher_t* self, const rn_ds_task_t* task);
RN_MUST_USE rn_status_t rn_ds_create_task(rn_ds_dispatcher_t* self, rn_ds_iteration_t* iteration,
                                          rn_ds_worker_t* worker, bool is_pending,
                                          rn_ds_task_t** out);
// The splits of a repetition of |job|. Unless they are there, sets |*out_is_deferred|: they are
// made now, and then |call| is handled again, from its beginning; or it gets the error.
RN_MUST_USE rn_status_t rn_ds_splits_of(rn_ds_dispatcher_t* self, const rn_ds_job_t* job,
                                        int64_t repetition, rn_rpc_in_t* call,
                                        bool* out_is_deferred, rn_ds_splits_t** out);
void rn_ds_drop_splits(rn_ds_dispatcher_t* self, const rn_ds_iteration_t* iteration);
// Cancels the making of splits that no client waits for any more, or of all.
void rn_ds_stop_splits(rn_ds_dispatcher_t* self, bool is_all);
void rn_ds_free_splits(rn_ds_dispatcher_t* self);  // when nothing runs any more
// FAILED_PRECONDITION if the config lists workers and |address| is none of them.
RN_MUST_USE rn_status_t rn_ds_admit_worker(rn_ds_dispatcher_t* self, rn_str_t address);
// Its place in the config's list.
RN_MUST_USE rn_status_t rn_ds_worker_index(const rn_ds_dispatcher_t* self, rn_str_t address,
                                           int64_t* out);

// One method. Fills |out| with the response, or sets |*out_is_deferred| and replies later.
typedef rn_status_t (*rn_ds_method_fn_t)(rn_ds_dispatcher_t* self, rn_rpc_in_t* call,
                                         rn_arena_t* arena, rn_strbuf_t* out,
                                         bool* out_is_deferred);
typedef struct rn_ds_method_t {
  const char* name;
  rn_ds_method_fn_t run;
} rn_ds_method_t;
extern const rn_ds_method_t rn_ds_methods[];  // the last has no name

// All of them: the name on the wire, and that of the function.
#define RN_DS_METHODS(X)                           \
  X(WorkerHeartbeat, worker_heartbeat)             \
  X(WorkerUpdate, worker_update)                   \
  X(GetDatasetDef, get_dataset_def)                \
  X(GetSplit, get_split)                           \
  X(GetVersion, get_version)                       \
  X(GetOrRegisterDataset, get_or_register_dataset) \
  X(GetOrCreateJob, get_or_create_job)             \
  X(GetOrCreateIteration, get_or_create_iteration) \
  X(MaybeRemoveTask, maybe_remove_task)            \
  X(ReleaseIterationClient, release_client)        \
  X(ClientHeartbeat, client_heartbeat)             \
  X(GetWorkers, get_workers)                       \
  X(GetDataServiceMetadata, get_metadata)          \
  X(GetDataServiceConfig, get_config)              \
  X(DisableCompressionAtRuntime, disable_compression)
#define RN_DS_METHOD(name)                                                                      \
  rn_status_t rn_ds_call_##name(rn_ds_dispatcher_t* self, rn_rpc_in_t* call, rn_arena_t* arena, \
                                rn_strbuf_t* out, bool* out_is_deferred)
#define RN_DS_UNUSED() ((void)self, (void)call, (void)arena, (void)out, (void)out_is_deferred)
#define RN_DS_DECLARE(name, function) RN_DS_METHOD(function);
RN_DS_METHODS(RN_DS_DECLARE)
#undef RN_DS_DECLARE

// RESOURCE_EXHAUSTED if |count| entries of a kind are as many as a dispatcher may have.
RN_MUST_USE rn_status_t rn_ds_check_room(size_t count);
// NOT_FOUND if there is no dataset |id|.
RN_MUST_USE rn_status_t rn_ds_need_dataset(rn_ds_dispatcher_t* self, rn_str_t id,
                                           rn_ds_dataset_t** out);
void rn_ds_reply(rn_allocator_t allocator, rn_rpc_in_t* call, rn_status_t status,
                 const rn_strbuf_t* body);
// Ends removals that waited too long, or all.
void rn_ds_end_removals(rn_ds_dispatcher_t* self, int64_t now_ns);
#define RN_DS_ENCODE(type, message, out) \
  rn_pb_encode(&rn_pb_data_##type##_desc, 1 ? (message) : (rn_pb_data_##type##_t*)NULL, NULL, (out))
#define RN_DS_DECODE(type, call, arena, out) \
  RN_PB_DECODE(data_##type, rn_rpc_request(call), NULL, arena, out)

#endif  // RUNNEL_DATA_SERVICE_DISPATCHER_INTERNAL_H_
