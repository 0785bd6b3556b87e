// A task at work in a worker: a thread that makes elements, and the calls of GetElement that wait
// for them. Elements go to whichever call comes first; or in rounds, one to each consumer; or, with
// the cross-trainer cache, all of them to every trainer.
#ifndef RUNNEL_DATA_SERVICE_RUNNER_H_
#define RUNNEL_DATA_SERVICE_RUNNER_H_

#include "data_service/pipeline.h"
#include "net/loop.h"
#include "net/rpc_server.h"

typedef struct rn_ds_runner_t rn_ds_runner_t;

typedef struct rn_ds_runner_options_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_loop_t* loop;      // for timers
  rn_str_t task;        // a TaskDef; copied
  rn_str_t dispatcher;  // address; copied
  size_t cache_bytes;   // of the cross-trainer cache
  // Reads the DatasetDef if the task has none; on the runner's thread.
  rn_status_t (*read)(void* self, const rn_pb_data_TaskDef_t* task, rn_strbuf_t* out);
  // Called once, on any thread, when a client has been told that there are no more elements.
  void (*ended)(void* self, int64_t task_id);
  void* self;
} rn_ds_runner_options_t;

// Starts the thread, which loads the dataset first.
RN_MUST_USE rn_status_t rn_ds_runner_create(const rn_ds_runner_options_t* options,
                                            rn_ds_runner_t** out);
// Replies to |call|, now or later. Any thread.
void rn_ds_runner_get(rn_ds_runner_t* runner, rn_rpc_in_t* call,
                      const rn_pb_data_GetElementRequest_t* request);
// Ends the thread and all calls, with CANCELLED, and releases the creator's reference. Waits. Not
// on the loop's thread. NULL is fine.
void rn_ds_runner_stop(rn_ds_runner_t* runner);
// For a thread that calls rn_ds_runner_get while another one may stop the runner.
void rn_ds_runner_retain(rn_ds_runner_t* runner);
void rn_ds_runner_release(rn_ds_runner_t* runner);

#endif  // RUNNEL_DATA_SERVICE_RUNNER_H_
