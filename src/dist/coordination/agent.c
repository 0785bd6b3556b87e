// The agent: see agent.h.
#include "dist/coordination/agent.h"

#include "base/container.h"
#include "base/map.h"
#include "dist/coordination/service.h"
#include "dist/eager/peers.h"
#include "proto/coordination_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define BEATS 4  // per silence
#define REGISTER_NS INT64_C(3600000000000)
#define LEAVE_NS INT64_C(2000000000)

struct rn_agent_t {
  rn_agent_options_t options;
  char* job;  // Owned
  uint64_t incarnation, leader_incarnation;
  rn_timer_t timer;
  rn_rpc_out_t beat;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t idle;
  rn_map_t counters;  // by barrier: how often it was called, an int64_t
  bool is_beating, is_closing;
  rn_status_t error;  // Owned
};

static int64_t now_of(const rn_agent_t* agent) {
  return agent->options.env->now_ns(agent->options.env->self);
}

static void put_task(rn_strbuf_t* out, uint32_t field, rn_str_t job, int32_t index) {
  size_t mark = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_CoordinatedTask_job_name_field, job);
  if (index) rn_pb_put_uint(out, rn_pb_CoordinatedTask_task_id_field, (uint64_t)(int64_t)index);
  rn_pb_end(out, mark);
}

static void put_self(const rn_agent_t* agent, rn_strbuf_t* out, uint32_t field) {
  put_task(out, field, rn_str(agent->job), agent->options.index);
}

// Calls the leader and waits. Clears |request|; appends the answer to |out|, which may be NULL.
static rn_status_t ask(rn_agent_t* agent, const char* path, rn_strbuf_t* request,
                       int64_t deadline_ns, rn_strbuf_t* out) {
  rn_message_t message, answer;
  rn_eager_question_t question;
  rn_message_init(&message, agent->options.allocator);
  rn_status_t status = rn_strbuf_status(request);
  if (rn_ok(status)) status = rn_message_add(&message, rn_strbuf_view(request));
  rn_strbuf_clear(request);
  RN_RETURN_IF_ERROR(status);
  rn_eager_question_start(&question, agent->options.leader, path, &message, deadline_ns, true);
  RN_RETURN_IF_ERROR(rn_eager_question_wait(&question, &answer));
  if (out) rn_strbuf_append(out, rn_message_view(&answer));
  rn_message_clear(&answer);
  return out ? rn_strbuf_status(out) : RN_OK;
}

static int64_t deadline_of(const rn_agent_t* agent, int64_t timeout_ms) {
  bool is_limited = timeout_ms > 0 && timeout_ms < INT64_MAX / 1000000 / 2;
  return is_limited ? now_of(agent) + timeout_ms * 1000000 : INT64_MAX;
}

// Heartbeats.

static void on_beat(rn_rpc_out_t* out, rn_status_t status) {
  rn_agent_t* agent = RN_CONTAINER_OF(out, rn_agent_t, beat);
  uint64_t leader = rn_field_value(rn_message_view(&out->stream.message),
                                   rn_pb_HeartbeatResponse_leader_incarnation_field);
  if (rn_ok(status) && leader != agent->leader_incarnation)
    status = rn_aborted("Leader incarnation ID mismatch: the coordination leader has restarted.");
  rn_rpc_out_clear(out);
  rn_mutex_lock(&agent->mutex);
  bool fails = !rn_ok(status) && !agent->is_closing;
  if (fails) agent->error = rn_status_copy(status);
  rn_mutex_unlock(&agent->mutex);
  if (fails) agent->options.failed(agent->options.self, status);
  rn_mutex_lock(&agent->mutex);
  if (rn_ok(status) && !agent->is_closing)
    status = rn_loop_set_timer(agent->options.loop, &agent->timer,
                               now_of(agent) + agent->options.silence_ns / BEATS);
  agent->is_beating = false;  // from here on, the agent may be destroyed
  rn_cond_broadcast(&agent->idle);
  rn_mutex_unlock(&agent->mutex);
  rn_status_free(status);
}

static void beat(rn_timer_t* timer) {
  rn_agent_t* agent = RN_CONTAINER_OF(timer, rn_agent_t, timer);
  rn_strbuf_t request;
  rn_strbuf_init(&request, agent->options.allocator);
  rn_pb_put_fixed64(&request, rn_pb_HeartbeatRequest_incarnation_field, agent->incarnation);
  put_self(agent, &request, rn_pb_HeartbeatRequest_source_task_field);
  agent->beat = (rn_rpc_out_t){.path = RN_COORDINATION_PATH "Heartbeat",
                               .deadline_ns = now_of(agent) + agent->options.silence_ns,
                               .waits_for_ready = true,
                               .done = on_beat};
  rn_message_init(&agent->beat.request, agent->options.allocator);
  rn_status_t status = rn_strbuf_status(&request);
  if (rn_ok(status)) status = rn_message_add(&agent->beat.request, rn_strbuf_view(&request));
  rn_strbuf_clear(&request);
  rn_mutex_lock(&agent->mutex);
  bool starts = rn_ok(status) && !agent->is_closing;
  if (starts) agent->is_beating = true;
  rn_mutex_unlock(&agent->mutex);
  if (starts)
    rn_rpc_start(agent->options.leader, &agent->beat);
  else
    rn_message_clear(&agent->beat.request);
  rn_status_free(status);
}

// Beginning and end.

static rn_status_t enter(rn_agent_t* agent) {
  const rn_agent_options_t* options = &agent->options;
  int64_t deadline =
      now_of(agent) + (options->register_ns > 0 ? options->register_ns : REGISTER_NS);
  rn_strbuf_t request, answer;
  rn_strbuf_init(&request, options->allocator);
  rn_strbuf_init(&answer, options->allocator);
  rn_pb_put_fixed64(&request, rn_pb_RegisterTaskRequest_incarnation_field, agent->incarnation);
  put_self(agent, &request, rn_pb_RegisterTaskRequest_source_task_field);
  rn_status_t status = ask(agent, RN_COORDINATION_PATH "RegisterTask", &request, deadline, &answer);
  agent->leader_incarnation =
      rn_field_value(rn_strbuf_view(&answer), rn_pb_RegisterTaskResponse_leader_incarnation_field);
  rn_strbuf_clear(&answer);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_loop_set_timer(options->loop, &agent->timer, now_of(agent)));
  rn_strbuf_init(&request, options->allocator);
  put_self(agent, &request, rn_pb_WaitForAllTasksRequest_source_task_field);
  rn_pb_put_str(&request, rn_pb_WaitForAllTasksRequest_device_info_field, options->devices);
  return ask(agent, RN_COORDINATION_PATH "WaitForAllTasks", &request, deadline, NULL);
}

rn_status_t rn_agent_create(const rn_agent_options_t* options, rn_agent_t** out) {
  *out = NULL;
  rn_agent_t* agent = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &agent));
  agent->options = *options;
  agent->incarnation = options->env->random(options->env->self) | 1;
  agent->timer.fn = beat;
  rn_mutex_init(&agent->mutex);
  rn_cond_init(&agent->idle);
  rn_map_init(&agent->counters, options->allocator);
  rn_status_t status = rn_str_dup(options->allocator, options->job, &agent->job);
  if (rn_ok(status)) status = enter(agent);
  agent->options.devices = RN_STR("");
  if (!rn_ok(status)) {
    rn_agent_destroy(agent);
    return status;
  }
  *out = agent;
  return RN_OK;
}

static void leave(rn_agent_t* agent) {
  rn_strbuf_t request;
  rn_strbuf_init(&request, agent->options.allocator);
  put_self(agent, &request, rn_pb_ShutdownTaskRequest_source_task_field);
  // Without an answer, the leader notices the silence.
  rn_status_free(
      ask(agent, RN_COORDINATION_PATH "ShutdownTask", &request, now_of(agent) + LEAVE_NS, NULL));
}

typedef struct agent_counter_t {
  int64_t count;
  size_t size;
  char name[];
} agent_counter_t;

void rn_agent_destroy(rn_agent_t* agent) {
  if (!agent) return;
  rn_mutex_lock(&agent->mutex);
  agent->is_closing = true;
  bool is_beating = agent->is_beating;
  rn_mutex_unlock(&agent->mutex);
  rn_loop_clear_timer(agent->options.loop, &agent->timer);
  if (is_beating) rn_rpc_cancel(agent->options.leader, &agent->beat);
  rn_mutex_lock(&agent->mutex);
  while (agent->is_beating) rn_cond_wait(&agent->idle, &agent->mutex);
  rn_mutex_unlock(&agent->mutex);
  if (agent->leader_incarnation && rn_ok(agent->error)) leave(agent);
  size_t at = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&agent->counters, &at));) {
    agent_counter_t* counter = entry->value;
    rn_free(agent->options.allocator, counter, sizeof *counter + counter->size + 1);
  }
  rn_map_clear(&agent->counters);
  if (agent->job) rn_free(agent->options.allocator, agent->job, strlen(agent->job) + 1);
  rn_status_free(agent->error);
  rn_cond_destroy(&agent->idle);
  rn_mutex_destroy(&agent->mutex);
  RN_FREE(agent->options.allocator, agent);
}

// Questions.

rn_status_t rn_agent_insert(rn_agent_t* agent, rn_str_t key, rn_str_t value) {
  rn_strbuf_t request;
  rn_strbuf_init(&request, agent->options.allocator);
  size_t mark = rn_pb_begin(&request, rn_pb_InsertKeyValueRequest_kv_field);
  rn_pb_put_str(&request, rn_pb_KeyValueEntry_key_field, key);
  rn_pb_put_str(&request, rn_pb_KeyValueEntry_value_field, value);
  rn_pb_end(&request, mark);
  return ask(agent, RN_COORDINATION_PATH "InsertKeyValue", &request, INT64_MAX, NULL);
}

rn_status_t rn_agent_get(rn_agent_t* agent, rn_str_t key, int64_t timeout_ms, rn_strbuf_t* out) {
  rn_strbuf_t request, answer;
  rn_strbuf_init(&request, agent->options.allocator);
  rn_strbuf_init(&answer, agent->options.allocator);
  rn_pb_put_str(&request, rn_pb_GetKeyValueRequest_key_field, key);
  rn_status_t status = ask(agent, RN_COORDINATION_PATH "GetKeyValue", &request,
                           deadline_of(agent, timeout_ms), &answer);
  rn_str_t entry = rn_field_bytes(rn_strbuf_view(&answer), rn_pb_GetKeyValueResponse_kv_field);
  if (rn_ok(status)) rn_strbuf_append(out, rn_field_bytes(entry, rn_pb_KeyValueEntry_value_field));
  rn_strbuf_clear(&answer);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

rn_status_t rn_agent_remove(rn_agent_t* agent, rn_str_t key) {
  rn_strbuf_t request;
  rn_strbuf_init(&request, agent->options.allocator);
  rn_pb_put_str(&request, rn_pb_DeleteKeyValueRequest_key_field, key);
  rn_pb_put_uint(&request, rn_pb_DeleteKeyValueRequest_is_directory_field, 1);
  return ask(agent, RN_COORDINATION_PATH "DeleteKeyValue", &request, INT64_MAX, NULL);
}

// How often |name| was used before.
static rn_status_t count_barrier(rn_agent_t* agent, rn_str_t name, int64_t* out) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&agent->mutex);
  agent_counter_t* counter = rn_map_get(&agent->counters, name);
  if (!counter) {
    status = rn_alloc_zeroed(agent->options.allocator, sizeof *counter + name.size + 1,
                             (void**)&counter);
    if (rn_ok(status)) {
      counter->size = name.size;
      if (name.size) memcpy(counter->name, name.data, name.size);
      status = rn_map_put(&agent->counters, rn_str_n(counter->name, name.size), counter);
      if (!rn_ok(status))
        rn_free(agent->options.allocator, counter, sizeof *counter + name.size + 1);
    }
  }
  *out = rn_ok(status) ? counter->count++ : 0;
  rn_mutex_unlock(&agent->mutex);
  return status;
}

rn_status_t rn_agent_barrier(rn_agent_t* agent, rn_str_t name, int64_t timeout_ms) {
  int64_t count = 0;
  rn_strbuf_t request;
  RN_RETURN_IF_ERROR(count_barrier(agent, name, &count));
  rn_strbuf_init(&request, agent->options.allocator);
  rn_pb_put_str(&request, rn_pb_BarrierRequest_barrier_id_field, name);
  if (timeout_ms > 0)
    rn_pb_put_uint(&request, rn_pb_BarrierRequest_barrier_timeout_in_ms_field,
                   (uint64_t)timeout_ms);
  put_self(agent, &request, rn_pb_BarrierRequest_source_task_field);
  if (count) rn_pb_put_uint(&request, rn_pb_BarrierRequest_counter_field, (uint64_t)count);
  return ask(agent, RN_COORDINATION_PATH "Barrier", &request, INT64_MAX, NULL);
}

rn_status_t rn_agent_report(rn_agent_t* agent, int code, rn_str_t message) {
  rn_strbuf_t request;
  rn_strbuf_init(&request, agent->options.allocator);
  if (code > 0)
    rn_pb_put_uint(&request, rn_pb_ReportErrorToServiceRequest_error_code_field, (uint64_t)code);
  rn_pb_put_str(&request, rn_pb_ReportErrorToServiceRequest_error_message_field, message);
  put_self(agent, &request, rn_pb_ReportErrorToServiceRequest_error_origin_field);
  return ask(agent, RN_COORDINATION_PATH "ReportErrorToService", &request, INT64_MAX, NULL);
}

rn_status_t rn_agent_state(rn_agent_t* agent, rn_str_t job, int32_t index, int* out) {
  rn_strbuf_t request, answer;
  rn_strbuf_init(&request, agent->options.allocator);
  rn_strbuf_init(&answer, agent->options.allocator);
  put_task(&request, rn_pb_GetTaskStateRequest_source_task_field, job, index);
  rn_status_t status =
      ask(agent, RN_COORDINATION_PATH "GetTaskState", &request, INT64_MAX, &answer);
  rn_str_t state =
      rn_field_bytes(rn_strbuf_view(&answer), rn_pb_GetTaskStateResponse_task_state_field);
  *out = (int)rn_field_value(state, rn_pb_CoordinatedTaskStateInfo_state_field);
  rn_strbuf_clear(&answer);
  return status;
}
