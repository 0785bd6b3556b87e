// The coordination service: calls, tasks and their errors. See service.h.
#include "dist/coordination/service.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/container.h"
#include "dist/coordination/internal.h"
#include "proto/coordination_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Silence is looked for so often.
#define CHECKS 4  // per silence
#define NO_TASK RN_NO_TASK
#define ALL_TASKS "WaitForAllTasks"  // the barrier that all tasks meet at first

// Calls that wait.

// Takes |wait| off the list, to be ended with |status|, which this takes.
void rn_coordination_pick(rn_coordination_wait_t** at, rn_status_t status,
                          rn_coordination_wait_t** ready) {
  rn_coordination_wait_t* wait = *at;
  *at = wait->next;
  wait->is_listed = false;
  wait->status = status;
  wait->next = *ready;
  *ready = wait;
}

void rn_coordination_end_waits(rn_coordination_wait_t* ready) {
  while (ready) {
    rn_coordination_wait_t* wait = ready;
    rn_allocator_t allocator = wait->coordination->options.allocator;
    ready = wait->next;
    if (wait->is_linked) rn_cancel_remove(&wait->in->cancel, &wait->gone);
    rn_rpc_reply(wait->in, wait->status, &wait->answer);
    rn_free(allocator, wait, sizeof *wait + wait->key_size + 1);
  }
}

static void on_gone(rn_cancel_entry_t* entry) {
  rn_coordination_wait_t *wait = RN_CONTAINER_OF(entry, rn_coordination_wait_t, gone),
                         *ready = NULL;
  rn_coordination_t* self = wait->coordination;
  bool is_late = wait->in->stream.deadline_ns <= rn_coordination_now(self);
  rn_mutex_lock(&self->mutex);
  if (wait->is_listed) {
    rn_coordination_wait_t** at = &self->waits;
    while (*at != wait) at = &(*at)->next;
    rn_coordination_pick(
        at,
        is_late ? rn_deadline_exceeded("The key or the other tasks did not come in time")
                : rn_cancelled("The call was cancelled"),
        &ready);
  }
  rn_mutex_unlock(&self->mutex);
  rn_coordination_end_waits(ready);
}

rn_status_t rn_coordination_wait(rn_coordination_t* self, rn_rpc_in_t* in, rn_str_t key,
                                 rn_coordination_wait_t** out) {
  rn_coordination_wait_t* wait = NULL;
  RN_RETURN_IF_ERROR(
      rn_alloc_zeroed(self->options.allocator, sizeof *wait + key.size + 1, (void**)&wait));
  wait->coordination = self;
  wait->in = in;
  wait->gone.fn = on_gone;
  wait->task = NO_TASK;
  wait->key_size = key.size;
  if (key.size) memcpy(wait->key, key.data, key.size);
  rn_message_init(&wait->answer, self->options.allocator);
  wait->is_linked = rn_cancel_add(&in->cancel, &wait->gone);
  if (!wait->is_linked) {
    rn_free(self->options.allocator, wait, sizeof *wait + key.size + 1);
    return rn_cancelled("The call was cancelled");
  }
  wait->is_listed = true;
  wait->next = self->waits;
  self->waits = wait;
  *out = wait;
  return RN_OK;
}

// Tasks.

int rn_coordination_find_task(const rn_coordination_t* self, rn_str_t message) {
  rn_str_t job = rn_field_bytes(message, rn_pb_CoordinatedTask_job_name_field);
  int32_t index = (int32_t)rn_field_value(message, rn_pb_CoordinatedTask_task_id_field);
  char name[256];
  snprintf(name, sizeof name, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(job), index);
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (rn_str_is(self->options.tasks[i], name)) return (int)i;
  return NO_TASK;
}

rn_status_t rn_coordination_get_task(const rn_coordination_t* self, rn_str_t request,
                                     uint32_t field, int* out) {
  rn_str_t message = rn_field_bytes(request, field);
  *out = rn_coordination_find_task(self, message);
  if (*out >= 0) return RN_OK;
  rn_str_t job = rn_field_bytes(message, rn_pb_CoordinatedTask_job_name_field);
  return rn_invalid_argument(
      "Unexpected task /job:%.*s/replica:0/task:%d: it is not in the cluster", RN_STR_ARGS(job),
      (int32_t)rn_field_value(message, rn_pb_CoordinatedTask_task_id_field));
}

static void put_task(rn_strbuf_t* out, uint32_t field, rn_str_t name) {
  rn_str_split(&name, ':');
  rn_str_t job = rn_str_split(&name, '/');
  rn_str_split(&name, ':');
  rn_str_split(&name, ':');
  size_t mark = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_CoordinatedTask_job_name_field, job);
  int index = atoi(name.data);
  if (index) rn_pb_put_uint(out, rn_pb_CoordinatedTask_task_id_field, (uint64_t)index);
  rn_pb_end(out, mark);
}

// Errors.

// |task| has failed: all learn of it. Takes |status|.
static void fail_task(rn_coordination_t* self, int task, rn_status_t status,
                      rn_coordination_wait_t** ready) {
  rn_coordination_task_t* failed = &self->tasks[task];
  if (failed->state == RN_TASK_FAILED) {
    rn_status_free(status);
    return;
  }
  failed->state = RN_TASK_FAILED;
  failed->error = status;
  if (rn_ok(self->error)) self->error = rn_status_copy(status);
  for (rn_barrier_t* barrier = self->first; barrier; barrier = barrier->next)
    if (!barrier->is_over && barrier->expected[task])
      rn_barrier_end(
          self, barrier,
          rn_status_make(RN_CODE_INTERNAL, "Barrier failed because a task is in error: %s",
                         rn_status_message(status)),
          ready);
  for (rn_coordination_wait_t** at = &self->waits; *at;) {
    if ((*at)->awaits_error)
      rn_coordination_pick(at, rn_status_copy(self->error), ready);
    else
      at = &(*at)->next;
  }
}

static void check_silence(rn_timer_t* timer) {
  rn_coordination_t* self = RN_CONTAINER_OF(timer, rn_coordination_t, timer);
  rn_coordination_wait_t* ready = NULL;
  int64_t now = rn_coordination_now(self), silence = self->options.silence_ns;
  rn_mutex_lock(&self->mutex);
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (self->tasks[i].state == RN_TASK_CONNECTED && now - self->tasks[i].heard_ns > silence)
      fail_task(self, (int)i,
                rn_unavailable("Task %.*s heartbeat timeout. This indicates that the remote task "
                               "has failed, got preempted, or crashed unexpectedly.",
                               RN_STR_ARGS(self->options.tasks[i])),
                &ready);
  for (rn_barrier_t* barrier = self->first; barrier; barrier = barrier->next)
    if (!barrier->is_over && barrier->deadline_ns <= now)
      rn_barrier_end(self, barrier,
                     rn_deadline_exceeded("Barrier timed out. Id: %.*s. %zu tasks are missing.",
                                          RN_STR_ARGS(barrier->key), barrier->missing),
                     &ready);
  if (!self->is_stopped)
    rn_status_free(
        self->options.timers.set(self->options.timers.self, timer, now + silence / CHECKS));
  rn_mutex_unlock(&self->mutex);
  rn_coordination_end_waits(ready);
}

// The calls of tasks.

static rn_status_t register_task(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  uint64_t incarnation = rn_field_value(call->request, rn_pb_RegisterTaskRequest_incarnation_field);
  RN_RETURN_IF_ERROR(rn_coordination_get_task(self, call->request,
                                              rn_pb_RegisterTaskRequest_source_task_field, &at));
  rn_coordination_task_t* task = &self->tasks[at];
  rn_str_t name = self->options.tasks[at];
  if (task->state == RN_TASK_FAILED)
    return rn_aborted("Task %.*s has failed before: %s", RN_STR_ARGS(name),
                      rn_status_message(task->error));
  if (task->state == RN_TASK_CONNECTED && task->incarnation != incarnation) {
    rn_status_t error = rn_aborted(
        "%.*s unexpectedly tried to connect with a different incarnation. It has likely restarted.",
        RN_STR_ARGS(name));
    fail_task(self, at, rn_status_copy(error), &call->ready);
    return error;
  }
  task->state = RN_TASK_CONNECTED;
  task->incarnation = incarnation;
  task->heard_ns = rn_coordination_now(self);
  rn_pb_put_fixed64(&call->answer, rn_pb_RegisterTaskResponse_leader_incarnation_field,
                    self->incarnation);
  return RN_OK;
}

static rn_status_t heartbeat(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(
      rn_coordination_get_task(self, call->request, rn_pb_HeartbeatRequest_source_task_field, &at));
  rn_coordination_task_t* task = &self->tasks[at];
  uint64_t incarnation = rn_field_value(call->request, rn_pb_HeartbeatRequest_incarnation_field);
  if (task->state == RN_TASK_DISCONNECTED)
    return rn_invalid_argument("Task %.*s must be registered before it sends heartbeats",
                               RN_STR_ARGS(self->options.tasks[at]));
  if (task->incarnation != incarnation)
    return rn_aborted("Incarnation ID mismatch: %.*s has restarted",
                      RN_STR_ARGS(self->options.tasks[at]));
  if (!rn_ok(self->error)) return rn_status_copy(self->error);
  task->heard_ns = rn_coordination_now(self);
  rn_pb_put_fixed64(&call->answer, rn_pb_HeartbeatResponse_leader_incarnation_field,
                    self->incarnation);
  return RN_OK;
}

static rn_status_t wait_for_all(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(rn_coordination_get_task(self, call->request,
                                              rn_pb_WaitForAllTasksRequest_source_task_field, &at));
  rn_strbuf_t* devices = &self->tasks[at].devices;
  devices->size = 0;
  rn_strbuf_append(devices,
                   rn_field_bytes(call->request, rn_pb_WaitForAllTasksRequest_device_info_field));
  RN_RETURN_IF_ERROR(rn_strbuf_status(devices));
  rn_barrier_t* barrier = rn_barrier_find(self, RN_STR(ALL_TASKS));
  if (!barrier) {
    RN_RETURN_IF_ERROR(rn_barrier_add(self, RN_STR(ALL_TASKS), &barrier));
    barrier->lists_devices = true;
    barrier->missing = self->options.task_count;
    for (size_t i = 0; i < self->options.task_count; ++i) barrier->expected[i] = true;
  }
  call->waits = true;
  return rn_barrier_come(self, barrier, at, call->in, &call->ready);
}

static rn_status_t shutdown_task(rn_coordination_call_t* call) {
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(rn_coordination_get_task(call->self, call->request,
                                              rn_pb_ShutdownTaskRequest_source_task_field, &at));
  if (call->self->tasks[at].state == RN_TASK_CONNECTED)
    call->self->tasks[at].state = RN_TASK_DISCONNECTED;
  return RN_OK;
}

static rn_status_t reset_task(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(
      rn_coordination_get_task(self, call->request, rn_pb_ResetTaskRequest_source_task_field, &at));
  rn_status_free(self->tasks[at].error);
  self->tasks[at].error = RN_OK;
  self->tasks[at].state = RN_TASK_DISCONNECTED;
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (self->tasks[i].state == RN_TASK_FAILED) return RN_OK;
  rn_status_free(self->error);
  self->error = RN_OK;
  return RN_OK;
}

static rn_status_t report_error(rn_coordination_call_t* call) {
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(rn_coordination_get_task(
      call->self, call->request, rn_pb_ReportErrorToServiceRequest_error_origin_field, &at));
  uint64_t code = rn_field_value(call->request, rn_pb_ReportErrorToServiceRequest_error_code_field);
  rn_str_t text =
      rn_field_bytes(call->request, rn_pb_ReportErrorToServiceRequest_error_message_field);
  if (call->self->tasks[at].state != RN_TASK_CONNECTED)
    return rn_failed_precondition("%.*s is not connected",
                                  RN_STR_ARGS(call->self->options.tasks[at]));
  fail_task(
      call->self, at,
      rn_status_make(code && code <= RN_CODE_UNAUTHENTICATED ? (rn_code_t)code : RN_CODE_UNKNOWN,
                     "%.*s reported an error: %.*s", RN_STR_ARGS(call->self->options.tasks[at]),
                     RN_STR_ARGS(text)),
      &call->ready);
  return RN_OK;
}

static rn_status_t get_task_state(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_pb_scan_t scan = rn_pb_scan(call->request);
  rn_strbuf_t* out = &call->answer;
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_GetTaskStateRequest_source_task_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    int at = rn_coordination_find_task(self, field.bytes);
    if (at < 0) return rn_invalid_argument("GetTaskState: a task is not in the cluster");
    const rn_coordination_task_t* task = &self->tasks[at];
    size_t mark = rn_pb_begin(out, rn_pb_GetTaskStateResponse_task_state_field);
    put_task(out, rn_pb_CoordinatedTaskStateInfo_task_field, self->options.tasks[at]);
    rn_pb_put_uint(out, rn_pb_CoordinatedTaskStateInfo_state_field, (uint64_t)task->state);
    if (task->incarnation)
      rn_pb_put_fixed64(out, rn_pb_CoordinatedTaskStateInfo_incarnation_field, task->incarnation);
    if (task->state == RN_TASK_FAILED) {
      rn_pb_put_uint(out, rn_pb_CoordinatedTaskStateInfo_error_code_field,
                     (uint64_t)rn_status_code(task->error));
      rn_pb_put_str(out, rn_pb_CoordinatedTaskStateInfo_error_message_field,
                    rn_str(rn_status_message(task->error)));
    }
    rn_pb_end(out, mark);
  }
  return RN_OK;
}

static rn_status_t poll_for_error(rn_coordination_call_t* call) {
  int at = NO_TASK;
  rn_coordination_wait_t* wait = NULL;
  RN_RETURN_IF_ERROR(rn_coordination_get_task(call->self, call->request,
                                              rn_pb_PollForErrorRequest_source_task_field, &at));
  if (!rn_ok(call->self->error)) return rn_status_copy(call->self->error);
  RN_RETURN_IF_ERROR(rn_coordination_wait(call->self, call->in, RN_STR(""), &wait));
  wait->awaits_error = call->waits = true;
  wait->task = at;
  return RN_OK;
}

static const struct {
  const char* path;
  rn_status_t (*run)(rn_coordination_call_t* call);
} methods[] = {
    {RN_COORDINATION_PATH "Heartbeat", heartbeat},
    {RN_COORDINATION_PATH "GetKeyValue", rn_coordination_get},
    {RN_COORDINATION_PATH "TryGetKeyValue", rn_coordination_try_get},
    {RN_COORDINATION_PATH "InsertKeyValue", rn_coordination_insert},
    {RN_COORDINATION_PATH "IncrementKeyValue", rn_coordination_increment},
    {RN_COORDINATION_PATH "GetKeyValueDir", rn_coordination_list},
    {RN_COORDINATION_PATH "DeleteKeyValue", rn_coordination_delete},
    {RN_COORDINATION_PATH "Barrier", rn_coordination_barrier},
    {RN_COORDINATION_PATH "CancelBarrier", rn_coordination_cancel_barrier},
    {RN_COORDINATION_PATH "RegisterTask", register_task},
    {RN_COORDINATION_PATH "WaitForAllTasks", wait_for_all},
    {RN_COORDINATION_PATH "ShutdownTask", shutdown_task},
    {RN_COORDINATION_PATH "ResetTask", reset_task},
    {RN_COORDINATION_PATH "ReportErrorToService", report_error},
    {RN_COORDINATION_PATH "GetTaskState", get_task_state},
    {RN_COORDINATION_PATH "PollForError", poll_for_error},
};

bool rn_coordination_has(rn_str_t path) {
  return rn_str_starts_with(path, RN_STR(RN_COORDINATION_PATH));
}

static bool start_timer(rn_coordination_t* self) {
  int64_t at_ns = rn_coordination_now(self) + self->options.silence_ns / CHECKS;
  rn_status_t status = self->options.timers.set(self->options.timers.self, &self->timer, at_ns);
  bool is_set = rn_ok(status);
  rn_status_free(status);
  return is_set;
}

void rn_coordination_handle(rn_coordination_t* self, rn_rpc_in_t* in) {
  rn_coordination_call_t call = {.self = self, .in = in, .request = rn_rpc_request(in)};
  rn_str_t path = rn_rpc_path(in);
  size_t m = 0, count = sizeof methods / sizeof *methods;
  while (m < count && !rn_str_is(path, methods[m].path)) m++;
  rn_strbuf_init(&call.answer, self->options.allocator);
  rn_mutex_lock(&self->mutex);
  if (!self->is_timed && !self->is_stopped)  // the first call; without memory, the next one
    self->is_timed = start_timer(self);
  rn_status_t status = self->is_stopped ? rn_unavailable("The task is closing")
                       : m == count     ? rn_unimplemented("%.*s", RN_STR_ARGS(path))
                                        : methods[m].run(&call);
  rn_mutex_unlock(&self->mutex);
  rn_coordination_end_waits(call.ready);
  rn_message_t answer;
  rn_message_init(&answer, self->options.allocator);
  if (rn_ok(status) && !call.waits) status = rn_strbuf_status(&call.answer);
  if (rn_ok(status) && !call.waits) status = rn_message_add(&answer, rn_strbuf_view(&call.answer));
  rn_strbuf_clear(&call.answer);
  if (!rn_ok(status) || !call.waits) rn_rpc_reply(in, status, &answer);
}

rn_status_t rn_coordination_create(const rn_coordination_options_t* options,
                                   rn_coordination_t** out) {
  *out = NULL;
  rn_coordination_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &self));
  self->options = *options;
  self->incarnation = options->env->random(options->env->self) | 1;
  self->timer.fn = check_silence;
  rn_mutex_init(&self->mutex);
  rn_values_init(&self->values, options->allocator);
  rn_status_t status = rn_alloc_array(options->allocator, options->task_count, sizeof *self->tasks,
                                      (void**)&self->tasks);
  if (!rn_ok(status)) {
    rn_coordination_destroy(self);
    return status;
  }
  for (size_t i = 0; i < options->task_count; ++i) {
    self->tasks[i].state = RN_TASK_DISCONNECTED;
    rn_strbuf_init(&self->tasks[i].devices, options->allocator);
  }
  *out = self;
  return RN_OK;
}

void rn_coordination_stop(rn_coordination_t* self) {
  if (!self) return;
  rn_coordination_wait_t* ready = NULL;
  rn_mutex_lock(&self->mutex);
  self->is_stopped = true;
  while (self->waits)
    rn_coordination_pick(&self->waits, rn_unavailable("The task is closing"), &ready);
  rn_mutex_unlock(&self->mutex);
  rn_coordination_end_waits(ready);
  if (self->options.timers.clear)
    self->options.timers.clear(self->options.timers.self, &self->timer);
}

void rn_coordination_destroy(rn_coordination_t* self) {
  if (!self) return;
  rn_coordination_stop(self);
  while (self->first) rn_barriers_drop_oldest(self);
  for (size_t i = 0; self->tasks && i < self->options.task_count; ++i) {
    rn_status_free(self->tasks[i].error);
    rn_strbuf_clear(&self->tasks[i].devices);
  }
  if (self->tasks) RN_FREE_ARRAY(self->options.allocator, self->tasks, self->options.task_count);
  rn_values_clear(&self->values);
  rn_status_free(self->error);
  rn_mutex_destroy(&self->mutex);
  RN_FREE(self->options.allocator, self);
}
