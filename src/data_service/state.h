// What the dispatcher of the tf.data service knows: datasets, workers, jobs, iterations of jobs,
// their tasks on workers, and the clients that read them.
//
// It changes only by rn_ds_apply, so that the journal (journal.h) can make it again. Nothing is
// ever removed, only marked: the ids of all things are numbers that rise. Not thread-safe.
#ifndef RUNNEL_DATA_SERVICE_STATE_H_
#define RUNNEL_DATA_SERVICE_STATE_H_

#include "base/arena.h"
#include "base/vec.h"
#include "proto/data_service.pb.h"

// The last number of a repetition, so that there is a next one. No client reads so often.
#define RN_DS_MAX_REPETITION (INT64_MAX - 1)

#define RN_DS_MAX_SOURCES 10000  // of splits, per dataset

typedef struct rn_ds_dataset_t {
  rn_str_t id;
  rn_pb_data_DataServiceMetadata_t metadata;
  int compression_disabled;  // -1: not decided yet
} rn_ds_dataset_t;

typedef struct rn_ds_worker_t {
  rn_str_t address;
  rn_pb_data_RegisterWorkerUpdate_t* info;
} rn_ds_worker_t;

typedef struct rn_ds_job_t {
  int64_t id;
  rn_str_t name, dataset_id;
  rn_pb_data_ProcessingModeDef_ShardingPolicy_t policy;
  int64_t num_consumers;  // 0: clients take whatever comes
  rn_pb_data_TargetWorkers_t target_workers;
  bool has_cache;
} rn_ds_job_t;

// A task that joins a coordinated job as soon as all consumers have agreed on the round.
typedef struct rn_ds_pending_t {
  struct rn_ds_task_t* task;
  int64_t target_round;
  int failures;
  RN_VEC(int64_t) ready;  // clients that have agreed
} rn_ds_pending_t;

typedef struct rn_ds_iteration_t {
  int64_t id;
  rn_ds_job_t* job;
  int64_t repetition;
  int64_t num_clients, released_us;  // |released_us| -1: no client has left
  bool is_finished, is_collected;
  // One entry per source of splits: the repetition that is read, and the splits given out of it.
  int64_t split_count;
  int64_t *repetitions, *indices;
  RN_VEC(rn_ds_pending_t) pending;
  RN_VEC(struct rn_ds_task_t*) tasks;  // without pending and removed ones
  int64_t round;  // the latest that a consumer has told of; the dispatcher's, in no journal
} rn_ds_iteration_t;

typedef struct rn_ds_task_t {
  int64_t id;
  rn_ds_iteration_t* iteration;
  rn_ds_worker_t* worker;
  int64_t starting_round;
  bool is_finished, is_removed;
} rn_ds_task_t;

typedef struct rn_ds_client_t {
  int64_t id;
  rn_ds_iteration_t* iteration;
  bool is_released;
  int64_t heard_ns;  // the dispatcher's, in no journal
} rn_ds_client_t;

typedef struct rn_ds_state_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds all that follows
  RN_VEC(rn_ds_dataset_t*) datasets;
  RN_VEC(rn_ds_worker_t*) workers;
  RN_VEC(rn_ds_job_t*) jobs;
  RN_VEC(rn_ds_iteration_t*) iterations;
  RN_VEC(rn_ds_task_t*) tasks;
  RN_VEC(rn_ds_client_t*) clients;
  int64_t next_dataset, next_job, next_iteration, next_task, next_client;
} rn_ds_state_t;

void rn_ds_state_init(rn_ds_state_t* state, rn_allocator_t allocator);
void rn_ds_state_clear(rn_ds_state_t* state);

// Makes the change. INTERNAL if it names something that does not exist, which a damaged journal
// may.
RN_MUST_USE rn_status_t rn_ds_apply(rn_ds_state_t* state, const rn_pb_data_Update_t* update);

// NULL if there is none.
rn_ds_dataset_t* rn_ds_find_dataset(const rn_ds_state_t* state, rn_str_t id);
rn_ds_worker_t* rn_ds_find_worker(const rn_ds_state_t* state, rn_str_t address);
rn_ds_job_t* rn_ds_find_job(const rn_ds_state_t* state, int64_t id);
rn_ds_job_t* rn_ds_find_job_named(const rn_ds_state_t* state, rn_str_t name);
rn_ds_iteration_t* rn_ds_find_iteration(const rn_ds_state_t* state, int64_t id);
// The latest one.
rn_ds_iteration_t* rn_ds_find_repetition(const rn_ds_state_t* state, const rn_ds_job_t* job,
                                         int64_t repetition);
rn_ds_task_t* rn_ds_find_task(const rn_ds_state_t* state, int64_t id);
rn_ds_client_t* rn_ds_find_client(const rn_ds_state_t* state, int64_t id);

#endif  // RUNNEL_DATA_SERVICE_STATE_H_
