// A task's end of the coordination service: registers with the leader, sends heartbeats and asks.
//
// Calls block until the leader answers. Any thread, except the loop's.
#ifndef RUNNEL_DIST_COORDINATION_AGENT_H_
#define RUNNEL_DIST_COORDINATION_AGENT_H_

#include "base/env.h"
#include "base/str.h"
#include "net/channel.h"

typedef struct rn_agent_t rn_agent_t;

typedef struct rn_agent_options_t {
  const rn_env_t* env;  // outlives the agent, like the next two
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_channel_t* leader;
  rn_str_t job;  // of this task; copied
  int32_t index;
  rn_str_t devices;     // the DeviceInfo of this task; borrowed for the call
  int64_t silence_ns;   // that the leader bears; heartbeats are more frequent
  int64_t register_ns;  // how long the other tasks may take to come; 0: an hour
  // Called once, on the loop's thread, when a task has failed; borrows |status|. Must not block.
  void (*failed)(void* self, rn_status_t status);
  void* self;
} rn_agent_options_t;

// Registers, and waits until all tasks of the cluster have.
RN_MUST_USE rn_status_t rn_agent_create(const rn_agent_options_t* options, rn_agent_t** out);
// Leaves the cluster. NULL is fine.
void rn_agent_destroy(rn_agent_t* agent);

RN_MUST_USE rn_status_t rn_agent_insert(rn_agent_t* agent, rn_str_t key, rn_str_t value);
// Waits for the key for |timeout_ms|; 0: for ever.
RN_MUST_USE rn_status_t rn_agent_get(rn_agent_t* agent, rn_str_t key, int64_t timeout_ms,
                                     rn_strbuf_t* out);
RN_MUST_USE rn_status_t rn_agent_remove(rn_agent_t* agent, rn_str_t key);
// Waits until all tasks have called it with this name, as often as this one.
RN_MUST_USE rn_status_t rn_agent_barrier(rn_agent_t* agent, rn_str_t name, int64_t timeout_ms);
// Tells all tasks that this one has failed.
RN_MUST_USE rn_status_t rn_agent_report(rn_agent_t* agent, int code, rn_str_t message);
// The state of a task: CoordinatedTaskState.
RN_MUST_USE rn_status_t rn_agent_state(rn_agent_t* agent, rn_str_t job, int32_t index, int* out);

#endif  // RUNNEL_DIST_COORDINATION_AGENT_H_
