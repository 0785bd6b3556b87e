// The coordination service: see service.h.
#include "dist/coordination/service.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/container.h"
#include "dist/coordination/values.h"
#include "proto/coordination_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Silence is looked for so often.
#define CHECKS 4  // per silence
// Barriers that are remembered, so that a task that comes late learns how one ended.
#define MAX_BARRIERS 65536
#define FOR_EVER INT64_MAX
#define NO_TASK (-1)
#define ALL_TASKS "WaitForAllTasks"  // the barrier that all tasks meet at first

typedef struct coordination_task_t {
  enum { DISCONNECTED = 2, CONNECTED = 3, FAILED = 4 } state;  // as in the protocol
  uint64_t incarnation;
  int64_t heard_ns;
  rn_status_t error;    // Owned
  rn_strbuf_t devices;  // the fields of its DeviceInfo
} coordination_task_t;

typedef struct coordination_barrier_t {
  struct coordination_barrier_t* next;  // older ones first
  rn_str_t key;                         // Owned: name and number
  int64_t deadline_ns;
  bool is_over;
  rn_status_t status;  // Owned
  size_t missing;
  bool lists_devices;  // its answer has the devices of all tasks
  bool* expected;      // by task: it has not come yet
} coordination_barrier_t;

// A call that waits: for a key, at a barrier, or for an error.
typedef struct coordination_wait_t {
  struct coordination_wait_t* next;
  rn_coordination_t* coordination;
  rn_rpc_in_t* in;
  rn_cancel_entry_t gone;
  bool is_linked, is_listed;
  rn_status_t status;  // Owned: how it ends
  rn_message_t answer;
  coordination_barrier_t* barrier;  // NULL: none
  bool awaits_error;
  int task;
  size_t key_size;
  char key[];
} coordination_wait_t;

struct rn_coordination_t {
  rn_coordination_options_t options;
  uint64_t incarnation;
  rn_timer_t timer;
  rn_mutex_t mutex;  // guards what follows
  coordination_task_t* tasks;
  rn_values_t values;
  coordination_barrier_t *first, *last;
  size_t barrier_count;
  coordination_wait_t* waits;
  rn_status_t error;  // Owned: of the first task that failed
  bool is_stopped, is_timed;
};

static int64_t now_of(const rn_coordination_t* self) {
  return self->options.env->now_ns(self->options.env->self);
}

// Calls that wait.

// Takes |wait| off the list, to be ended with |status|, which this takes.
static void pick(coordination_wait_t** at, rn_status_t status, coordination_wait_t** ready) {
  coordination_wait_t* wait = *at;
  *at = wait->next;
  wait->is_listed = false;
  wait->status = status;
  wait->next = *ready;
  *ready = wait;
}

static void end_waits(coordination_wait_t* ready) {
  while (ready) {
    coordination_wait_t* wait = ready;
    rn_allocator_t allocator = wait->coordination->options.allocator;
    ready = wait->next;
    if (wait->is_linked) rn_cancel_remove(&wait->in->cancel, &wait->gone);
    rn_rpc_reply(wait->in, wait->status, &wait->answer);
    rn_free(allocator, wait, sizeof *wait + wait->key_size + 1);
  }
}

static void on_gone(rn_cancel_entry_t* entry) {
  coordination_wait_t *wait = RN_CONTAINER_OF(entry, coordination_wait_t, gone), *ready = NULL;
  rn_coordination_t* self = wait->coordination;
  bool is_late = wait->in->stream.deadline_ns <= now_of(self);
  rn_mutex_lock(&self->mutex);
  if (wait->is_listed) {
    coordination_wait_t** at = &self->waits;
    while (*at != wait) at = &(*at)->next;
    pick(at,
         is_late ? rn_deadline_exceeded("The key or the other tasks did not come in time")
                 : rn_cancelled("The call was cancelled"),
         &ready);
  }
  rn_mutex_unlock(&self->mutex);
  end_waits(ready);
}

static rn_status_t add_wait(rn_coordination_t* self, rn_rpc_in_t* in, rn_str_t key,
                            coordination_wait_t** out) {
  coordination_wait_t* wait = NULL;
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

static int find_task(const rn_coordination_t* self, rn_str_t message) {
  rn_str_t job = rn_field_bytes(message, rn_pb_CoordinatedTask_job_name_field);
  int32_t index = (int32_t)rn_field_value(message, rn_pb_CoordinatedTask_task_id_field);
  char name[256];
  snprintf(name, sizeof name, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(job), index);
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (rn_str_is(self->options.tasks[i], name)) return (int)i;
  return NO_TASK;
}

static rn_status_t get_task(const rn_coordination_t* self, rn_str_t request, uint32_t field,
                            int* out) {
  rn_str_t message = rn_field_bytes(request, field);
  *out = find_task(self, message);
  if (*out >= 0) return RN_OK;
  rn_str_t job = rn_field_bytes(message, rn_pb_CoordinatedTask_job_name_field);
  return rn_invalid_argument(
      "Unexpected task /job:%.*s/replica:0/task:%d: it is not in the cluster", RN_STR_ARGS(job),
      (int32_t)rn_field_value(message, rn_pb_CoordinatedTask_task_id_field));
}

static void put_devices(const rn_coordination_t* self, rn_strbuf_t* out) {
  size_t mark = rn_pb_begin(out, rn_pb_WaitForAllTasksResponse_device_info_field);
  for (size_t i = 0; i < self->options.task_count; ++i)
    rn_strbuf_append(out, rn_strbuf_view(&self->tasks[i].devices));
  rn_pb_end(out, mark);
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

// Barriers.

static void barrier_free(rn_coordination_t* self, coordination_barrier_t* barrier) {
  rn_free(self->options.allocator, (char*)barrier->key.data, barrier->key.size + 1);
  if (barrier->expected)
    RN_FREE_ARRAY(self->options.allocator, barrier->expected, self->options.task_count);
  rn_status_free(barrier->status);
  RN_FREE(self->options.allocator, barrier);
}

static void drop_oldest_barrier(rn_coordination_t* self) {
  coordination_barrier_t* barrier = self->first;
  self->first = barrier->next;
  if (!self->first) self->last = NULL;
  self->barrier_count--;
  barrier_free(self, barrier);
}

static coordination_barrier_t* find_barrier(rn_coordination_t* self, rn_str_t key) {
  coordination_barrier_t* barrier = self->first;
  while (barrier && !rn_str_eq(barrier->key, key)) barrier = barrier->next;
  return barrier;
}

static rn_status_t add_barrier(rn_coordination_t* self, rn_str_t key,
                               coordination_barrier_t** out) {
  coordination_barrier_t* barrier = NULL;
  char* name = NULL;
  if (self->barrier_count >= MAX_BARRIERS && !self->first->is_over)
    return rn_resource_exhausted("There are too many barriers");
  if (self->barrier_count >= MAX_BARRIERS) drop_oldest_barrier(self);
  RN_RETURN_IF_ERROR(rn_str_dup(self->options.allocator, key, &name));
  rn_status_t status = RN_NEW(self->options.allocator, &barrier);
  if (!rn_ok(status)) {
    rn_free(self->options.allocator, name, key.size + 1);
    return status;
  }
  barrier->key = rn_str_n(name, key.size);
  barrier->deadline_ns = FOR_EVER;
  status = rn_alloc_array(self->options.allocator, self->options.task_count,
                          sizeof *barrier->expected, (void**)&barrier->expected);
  if (!rn_ok(status)) {
    barrier_free(self, barrier);
    return status;
  }
  if (self->last)
    self->last->next = barrier;
  else
    self->first = barrier;
  self->last = barrier;
  self->barrier_count++;
  *out = barrier;
  return RN_OK;
}

// The answer of a barrier, which all its calls get.
static void put_answer(rn_coordination_t* self, coordination_wait_t* wait) {
  const coordination_barrier_t* barrier = wait->barrier;
  rn_strbuf_t bytes;
  if (!barrier->lists_devices || !rn_ok(wait->status)) return;
  rn_strbuf_init(&bytes, self->options.allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_WaitForAllTasksResponse_leader_incarnation_field,
                    self->incarnation);
  put_devices(self, &bytes);
  wait->status = rn_strbuf_status(&bytes);
  if (rn_ok(wait->status)) wait->status = rn_message_add(&wait->answer, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
}

// Takes |status|.
static void end_barrier(rn_coordination_t* self, coordination_barrier_t* barrier,
                        rn_status_t status, coordination_wait_t** ready) {
  barrier->is_over = true;
  barrier->status = status;
  for (coordination_wait_t** at = &self->waits; *at;) {
    coordination_wait_t* wait = *at;
    if (wait->barrier != barrier) {
      at = &wait->next;
      continue;
    }
    pick(at, rn_status_copy(status), ready);
    put_answer(self, wait);
  }
}

// |task| comes to |barrier|.
static rn_status_t come(rn_coordination_t* self, coordination_barrier_t* barrier, int task,
                        rn_rpc_in_t* in, coordination_wait_t** ready) {
  coordination_wait_t* wait = NULL;
  if (barrier->is_over && !rn_ok(barrier->status)) return rn_status_copy(barrier->status);
  RN_RETURN_IF_ERROR(add_wait(self, in, RN_STR(""), &wait));
  wait->barrier = barrier;
  wait->task = task;
  if (barrier->expected[task]) {
    barrier->expected[task] = false;
    barrier->missing--;
  }
  if (barrier->is_over || !barrier->missing) end_barrier(self, barrier, RN_OK, ready);
  return RN_OK;
}

// Errors.

// |task| has failed: all learn of it. Takes |status|.
static void fail_task(rn_coordination_t* self, int task, rn_status_t status,
                      coordination_wait_t** ready) {
  coordination_task_t* failed = &self->tasks[task];
  if (failed->state == FAILED) {
    rn_status_free(status);
    return;
  }
  failed->state = FAILED;
  failed->error = status;
  if (rn_ok(self->error)) self->error = rn_status_copy(status);
  for (coordination_barrier_t* barrier = self->first; barrier; barrier = barrier->next)
    if (!barrier->is_over && barrier->expected[task])
      end_barrier(self, barrier,
                  rn_status_make(RN_CODE_INTERNAL, "Barrier failed because a task is in error: %s",
                                 rn_status_message(status)),
                  ready);
  for (coordination_wait_t** at = &self->waits; *at;) {
    if ((*at)->awaits_error)
      pick(at, rn_status_copy(self->error), ready);
    else
      at = &(*at)->next;
  }
}

static void check_silence(rn_timer_t* timer) {
  rn_coordination_t* self = RN_CONTAINER_OF(timer, rn_coordination_t, timer);
  coordination_wait_t* ready = NULL;
  int64_t now = now_of(self), silence = self->options.silence_ns;
  rn_mutex_lock(&self->mutex);
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (self->tasks[i].state == CONNECTED && now - self->tasks[i].heard_ns > silence)
      fail_task(self, (int)i,
                rn_unavailable("Task %.*s heartbeat timeout. This indicates that the remote task "
                               "has failed, got preempted, or crashed unexpectedly.",
                               RN_STR_ARGS(self->options.tasks[i])),
                &ready);
  for (coordination_barrier_t* barrier = self->first; barrier; barrier = barrier->next)
    if (!barrier->is_over && barrier->deadline_ns <= now)
      end_barrier(self, barrier,
                  rn_deadline_exceeded("Barrier timed out. Id: %.*s. %zu tasks are missing.",
                                       RN_STR_ARGS(barrier->key), barrier->missing),
                  &ready);
  bool goes_on = !self->is_stopped;
  rn_mutex_unlock(&self->mutex);
  end_waits(ready);
  if (goes_on)
    rn_status_free(
        self->options.timers.set(self->options.timers.self, timer, now + silence / CHECKS));
}

// The calls. Each writes its answer, or lets the call wait.

typedef struct coordination_call_t {
  rn_coordination_t* self;
  rn_rpc_in_t* in;
  rn_str_t request;
  rn_strbuf_t answer;
  coordination_wait_t* ready;
  bool waits;
} coordination_call_t;

static rn_status_t register_task(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  uint64_t incarnation = rn_field_value(call->request, rn_pb_RegisterTaskRequest_incarnation_field);
  RN_RETURN_IF_ERROR(
      get_task(self, call->request, rn_pb_RegisterTaskRequest_source_task_field, &at));
  coordination_task_t* task = &self->tasks[at];
  rn_str_t name = self->options.tasks[at];
  if (task->state == FAILED)
    return rn_aborted("Task %.*s has failed before: %s", RN_STR_ARGS(name),
                      rn_status_message(task->error));
  if (task->state == CONNECTED && task->incarnation != incarnation) {
    rn_status_t error = rn_aborted(
        "%.*s unexpectedly tried to connect with a different incarnation. It has likely restarted.",
        RN_STR_ARGS(name));
    fail_task(self, at, rn_status_copy(error), &call->ready);
    return error;
  }
  task->state = CONNECTED;
  task->incarnation = incarnation;
  task->heard_ns = now_of(self);
  if (!self->is_timed) {
    self->is_timed = true;
    RN_RETURN_IF_ERROR(
        self->options.timers.set(self->options.timers.self, &self->timer,
                                 task->heard_ns + self->options.silence_ns / CHECKS));
  }
  rn_pb_put_fixed64(&call->answer, rn_pb_RegisterTaskResponse_leader_incarnation_field,
                    self->incarnation);
  return RN_OK;
}

static rn_status_t heartbeat(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(get_task(self, call->request, rn_pb_HeartbeatRequest_source_task_field, &at));
  coordination_task_t* task = &self->tasks[at];
  uint64_t incarnation = rn_field_value(call->request, rn_pb_HeartbeatRequest_incarnation_field);
  if (task->state == DISCONNECTED)
    return rn_invalid_argument("Task %.*s must be registered before it sends heartbeats",
                               RN_STR_ARGS(self->options.tasks[at]));
  if (task->incarnation != incarnation)
    return rn_aborted("Incarnation ID mismatch: %.*s has restarted",
                      RN_STR_ARGS(self->options.tasks[at]));
  if (!rn_ok(self->error)) return rn_status_copy(self->error);
  task->heard_ns = now_of(self);
  rn_pb_put_fixed64(&call->answer, rn_pb_HeartbeatResponse_leader_incarnation_field,
                    self->incarnation);
  return RN_OK;
}

static rn_status_t wait_for_all(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(
      get_task(self, call->request, rn_pb_WaitForAllTasksRequest_source_task_field, &at));
  rn_strbuf_t* devices = &self->tasks[at].devices;
  devices->size = 0;
  rn_strbuf_append(devices,
                   rn_field_bytes(call->request, rn_pb_WaitForAllTasksRequest_device_info_field));
  RN_RETURN_IF_ERROR(rn_strbuf_status(devices));
  coordination_barrier_t* barrier = find_barrier(self, RN_STR(ALL_TASKS));
  if (!barrier) {
    RN_RETURN_IF_ERROR(add_barrier(self, RN_STR(ALL_TASKS), &barrier));
    barrier->lists_devices = true;
    barrier->missing = self->options.task_count;
    for (size_t i = 0; i < self->options.task_count; ++i) barrier->expected[i] = true;
  }
  call->waits = true;
  return come(self, barrier, at, call->in, &call->ready);
}

static rn_status_t shutdown_task(coordination_call_t* call) {
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(
      get_task(call->self, call->request, rn_pb_ShutdownTaskRequest_source_task_field, &at));
  if (call->self->tasks[at].state == CONNECTED) call->self->tasks[at].state = DISCONNECTED;
  return RN_OK;
}

static rn_status_t reset_task(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(get_task(self, call->request, rn_pb_ResetTaskRequest_source_task_field, &at));
  rn_status_free(self->tasks[at].error);
  self->tasks[at].error = RN_OK;
  self->tasks[at].state = DISCONNECTED;
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (self->tasks[i].state == FAILED) return RN_OK;
  rn_status_free(self->error);
  self->error = RN_OK;
  return RN_OK;
}

static rn_status_t report_error(coordination_call_t* call) {
  int at = NO_TASK;
  RN_RETURN_IF_ERROR(get_task(call->self, call->request,
                              rn_pb_ReportErrorToServiceRequest_error_origin_field, &at));
  uint64_t code = rn_field_value(call->request, rn_pb_ReportErrorToServiceRequest_error_code_field);
  rn_str_t text =
      rn_field_bytes(call->request, rn_pb_ReportErrorToServiceRequest_error_message_field);
  if (call->self->tasks[at].state != CONNECTED)
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

static rn_status_t get_task_state(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_pb_scan_t scan = rn_pb_scan(call->request);
  rn_strbuf_t* out = &call->answer;
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_GetTaskStateRequest_source_task_field ||
        field.wire != RN_PB_WIRE_LENGTH)
      continue;
    int at = find_task(self, field.bytes);
    if (at < 0) return rn_invalid_argument("GetTaskState: a task is not in the cluster");
    const coordination_task_t* task = &self->tasks[at];
    size_t mark = rn_pb_begin(out, rn_pb_GetTaskStateResponse_task_state_field);
    put_task(out, rn_pb_CoordinatedTaskStateInfo_task_field, self->options.tasks[at]);
    rn_pb_put_uint(out, rn_pb_CoordinatedTaskStateInfo_state_field, (uint64_t)task->state);
    if (task->incarnation)
      rn_pb_put_fixed64(out, rn_pb_CoordinatedTaskStateInfo_incarnation_field, task->incarnation);
    if (task->state == FAILED) {
      rn_pb_put_uint(out, rn_pb_CoordinatedTaskStateInfo_error_code_field,
                     (uint64_t)rn_status_code(task->error));
      rn_pb_put_str(out, rn_pb_CoordinatedTaskStateInfo_error_message_field,
                    rn_str(rn_status_message(task->error)));
    }
    rn_pb_end(out, mark);
  }
  return RN_OK;
}

static rn_status_t poll_for_error(coordination_call_t* call) {
  int at = NO_TASK;
  coordination_wait_t* wait = NULL;
  RN_RETURN_IF_ERROR(
      get_task(call->self, call->request, rn_pb_PollForErrorRequest_source_task_field, &at));
  if (!rn_ok(call->self->error)) return rn_status_copy(call->self->error);
  RN_RETURN_IF_ERROR(add_wait(call->self, call->in, RN_STR(""), &wait));
  wait->awaits_error = call->waits = true;
  wait->task = at;
  return RN_OK;
}

// Keys and values.

static void put_entry(rn_strbuf_t* out, uint32_t field, rn_str_t key, rn_str_t value) {
  size_t mark = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_KeyValueEntry_key_field, key);
  rn_pb_put_str(out, rn_pb_KeyValueEntry_value_field, value);
  rn_pb_end(out, mark);
}

// Tells |key| to those who wait for it.
static rn_status_t tell_value(rn_coordination_t* self, rn_str_t key, rn_str_t value,
                              coordination_wait_t** ready) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, self->options.allocator);
  put_entry(&bytes, rn_pb_GetKeyValueResponse_kv_field, key, value);
  rn_status_t status = rn_strbuf_status(&bytes);
  for (coordination_wait_t** at = &self->waits; rn_ok(status) && *at;) {
    coordination_wait_t* wait = *at;
    bool is_for_it = !wait->barrier && !wait->awaits_error &&
                     rn_str_eq(rn_str_n(wait->key, wait->key_size), key);
    if (is_for_it)
      pick(at, rn_message_add(&wait->answer, rn_strbuf_view(&bytes)), ready);
    else
      at = &wait->next;
  }
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t insert_value(coordination_call_t* call, rn_str_t key) {
  rn_str_t entry = rn_field_bytes(call->request, rn_pb_InsertKeyValueRequest_kv_field);
  rn_str_t value = rn_field_bytes(entry, rn_pb_KeyValueEntry_value_field);
  bool may = rn_field_value(call->request, rn_pb_InsertKeyValueRequest_allow_overwrite_field);
  RN_RETURN_IF_ERROR(rn_values_put(&call->self->values, key, value, may));
  return tell_value(call->self, key, value, &call->ready);
}

static rn_status_t get_value(coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  coordination_wait_t* wait = NULL;
  if (rn_values_get(&call->self->values, key, &value)) {
    put_entry(&call->answer, rn_pb_GetKeyValueResponse_kv_field, key, value);
    return RN_OK;
  }
  call->waits = true;
  return add_wait(call->self, call->in, key, &wait);
}

static rn_status_t try_get_value(coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  if (!rn_values_get(&call->self->values, key, &value))
    return rn_not_found("Config key %.*s not found.", RN_STR_ARGS(key));
  put_entry(&call->answer, rn_pb_TryGetKeyValueResponse_kv_field, key, value);
  return RN_OK;
}

static rn_status_t increment_value(coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  char text[32] = "0";
  int64_t by =
      (int64_t)rn_field_value(call->request, rn_pb_IncrementKeyValueRequest_increment_field);
  if (rn_values_get(&call->self->values, key, &value)) {
    if (value.size >= sizeof text)
      return rn_invalid_argument("The value of %.*s is no number", RN_STR_ARGS(key));
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
  }
  char* end = NULL;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end)
    return rn_invalid_argument("The value of %.*s is no number", RN_STR_ARGS(key));
  snprintf(text, sizeof text, "%lld", (long long)((uint64_t)number + (uint64_t)by));
  RN_RETURN_IF_ERROR(rn_values_put(&call->self->values, key, rn_str(text), true));
  put_entry(&call->answer, rn_pb_IncrementKeyValueResponse_kv_field, key, rn_str(text));
  return tell_value(call->self, key, rn_str(text), &call->ready);
}

static void list_value(void* self, rn_str_t key, rn_str_t value) {
  put_entry(self, rn_pb_GetKeyValueDirResponse_kv_field, key, value);
}

static rn_status_t list_values(coordination_call_t* call, rn_str_t key) {
  rn_pb_put_str(&call->answer, rn_pb_GetKeyValueDirResponse_directory_key_field, key);
  rn_values_list(&call->self->values, key, list_value, &call->answer);
  return RN_OK;
}

static rn_status_t delete_value(coordination_call_t* call, rn_str_t key) {
  rn_values_remove(&call->self->values, key,
                   rn_field_value(call->request, rn_pb_DeleteKeyValueRequest_is_directory_field));
  return RN_OK;
}

// The call |run| for the key in |given|.
static rn_status_t with_key(coordination_call_t* call, rn_str_t given,
                            rn_status_t (*run)(coordination_call_t* call, rn_str_t key)) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, call->self->options.allocator);
  rn_status_t status = rn_values_key(given, &key);
  if (rn_ok(status)) status = run(call, rn_strbuf_view(&key));
  rn_strbuf_clear(&key);
  return status;
}

#define KEY_OF(call, Message) rn_field_bytes((call)->request, rn_pb_##Message##_key_field)
static rn_status_t insert_key_value(coordination_call_t* call) {
  rn_str_t entry = rn_field_bytes(call->request, rn_pb_InsertKeyValueRequest_kv_field);
  return with_key(call, rn_field_bytes(entry, rn_pb_KeyValueEntry_key_field), insert_value);
}
static rn_status_t get_key_value(coordination_call_t* call) {
  return with_key(call, KEY_OF(call, GetKeyValueRequest), get_value);
}
static rn_status_t try_get_key_value(coordination_call_t* call) {
  return with_key(call, KEY_OF(call, TryGetKeyValueRequest), try_get_value);
}
static rn_status_t increment_key_value(coordination_call_t* call) {
  return with_key(call, KEY_OF(call, IncrementKeyValueRequest), increment_value);
}
static rn_status_t get_key_value_dir(coordination_call_t* call) {
  return with_key(call,
                  rn_field_bytes(call->request, rn_pb_GetKeyValueDirRequest_directory_key_field),
                  list_values);
}
static rn_status_t delete_key_value(coordination_call_t* call) {
  return with_key(call, KEY_OF(call, DeleteKeyValueRequest), delete_value);
}

// Barriers that tasks name.

static rn_status_t expect_tasks(rn_coordination_t* self, rn_str_t request,
                                coordination_barrier_t* barrier) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  bool has_list = false;
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_BarrierRequest_tasks_field || field.wire != RN_PB_WIRE_LENGTH)
      continue;
    int at = find_task(self, field.bytes);
    if (at < 0) return rn_invalid_argument("Barrier: a task is not in the cluster");
    has_list = true;
    barrier->missing += !barrier->expected[at];
    barrier->expected[at] = true;
  }
  for (size_t i = 0; !has_list && i < self->options.task_count; ++i) barrier->expected[i] = true;
  if (!has_list) barrier->missing = self->options.task_count;
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (barrier->expected[i] && self->tasks[i].state == FAILED)
      return rn_internal("Barrier failed because a task is in error: %s",
                         rn_status_message(self->tasks[i].error));
  return RN_OK;
}

static rn_status_t put_barrier_key(rn_str_t name, int64_t number, rn_strbuf_t* out) {
  rn_strbuf_append(out, name);
  rn_strbuf_printf(out, "::%lld", (long long)number);
  return rn_strbuf_status(out);
}

static rn_status_t wait_at_barrier(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_str_t request = call->request;
  int at = NO_TASK;
  rn_strbuf_t key;
  coordination_barrier_t* barrier = NULL;
  RN_RETURN_IF_ERROR(get_task(self, request, rn_pb_BarrierRequest_source_task_field, &at));
  int64_t number = (int64_t)rn_field_value(request, rn_pb_BarrierRequest_counter_field);
  int64_t ms = (int64_t)rn_field_value(request, rn_pb_BarrierRequest_barrier_timeout_in_ms_field);
  rn_strbuf_init(&key, self->options.allocator);
  rn_status_t status =
      put_barrier_key(rn_field_bytes(request, rn_pb_BarrierRequest_barrier_id_field), number, &key);
  if (rn_ok(status)) barrier = find_barrier(self, rn_strbuf_view(&key));
  if (rn_ok(status) && !barrier) {
    status = add_barrier(self, rn_strbuf_view(&key), &barrier);
    if (rn_ok(status)) {
      if (ms > 0 && ms < INT64_MAX / 1000000 / 2)
        barrier->deadline_ns = now_of(self) + ms * 1000000;
      status = expect_tasks(self, request, barrier);
      if (!rn_ok(status)) end_barrier(self, barrier, rn_status_copy(status), &call->ready);
    }
  }
  rn_strbuf_clear(&key);
  RN_RETURN_IF_ERROR(status);
  call->waits = true;
  return come(self, barrier, at, call->in, &call->ready);
}

static rn_status_t cancel_barrier(coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_strbuf_t key;
  rn_strbuf_init(&key, self->options.allocator);
  rn_status_t status = put_barrier_key(
      rn_field_bytes(call->request, rn_pb_CancelBarrierRequest_barrier_id_field),
      (int64_t)rn_field_value(call->request, rn_pb_CancelBarrierRequest_counter_field), &key);
  coordination_barrier_t* barrier = rn_ok(status) ? find_barrier(self, rn_strbuf_view(&key)) : NULL;
  if (rn_ok(status) && (!barrier || barrier->is_over))
    status = rn_failed_precondition("No task waits at the barrier %.*s",
                                    RN_STR_ARGS(rn_strbuf_view(&key)));
  if (rn_ok(status))
    end_barrier(self, barrier, rn_cancelled("Barrier %.*s is cancelled", RN_STR_ARGS(barrier->key)),
                &call->ready);
  rn_strbuf_clear(&key);
  return status;
}

static const struct {
  const char* path;
  rn_status_t (*run)(coordination_call_t* call);
} methods[] = {
    {RN_COORDINATION_PATH "Heartbeat", heartbeat},
    {RN_COORDINATION_PATH "GetKeyValue", get_key_value},
    {RN_COORDINATION_PATH "TryGetKeyValue", try_get_key_value},
    {RN_COORDINATION_PATH "InsertKeyValue", insert_key_value},
    {RN_COORDINATION_PATH "IncrementKeyValue", increment_key_value},
    {RN_COORDINATION_PATH "GetKeyValueDir", get_key_value_dir},
    {RN_COORDINATION_PATH "DeleteKeyValue", delete_key_value},
    {RN_COORDINATION_PATH "Barrier", wait_at_barrier},
    {RN_COORDINATION_PATH "CancelBarrier", cancel_barrier},
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

void rn_coordination_handle(rn_coordination_t* self, rn_rpc_in_t* in) {
  coordination_call_t call = {.self = self, .in = in, .request = rn_rpc_request(in)};
  rn_str_t path = rn_rpc_path(in);
  size_t m = 0, count = sizeof methods / sizeof *methods;
  while (m < count && !rn_str_is(path, methods[m].path)) m++;
  rn_strbuf_init(&call.answer, self->options.allocator);
  rn_mutex_lock(&self->mutex);
  rn_status_t status = self->is_stopped ? rn_unavailable("The task is closing")
                       : m == count     ? rn_unimplemented("%.*s", RN_STR_ARGS(path))
                                        : methods[m].run(&call);
  rn_mutex_unlock(&self->mutex);
  end_waits(call.ready);
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
    self->tasks[i].state = DISCONNECTED;
    rn_strbuf_init(&self->tasks[i].devices, options->allocator);
  }
  *out = self;
  return RN_OK;
}

void rn_coordination_stop(rn_coordination_t* self) {
  if (!self) return;
  coordination_wait_t* ready = NULL;
  rn_mutex_lock(&self->mutex);
  self->is_stopped = true;
  while (self->waits) pick(&self->waits, rn_unavailable("The task is closing"), &ready);
  rn_mutex_unlock(&self->mutex);
  end_waits(ready);
  if (self->options.timers.clear)
    self->options.timers.clear(self->options.timers.self, &self->timer);
}

void rn_coordination_destroy(rn_coordination_t* self) {
  if (!self) return;
  rn_coordination_stop(self);
  while (self->first) drop_oldest_barrier(self);
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
