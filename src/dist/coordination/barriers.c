// Barriers of the coordination service: see service.h.
#include <stdio.h>

#include "dist/coordination/internal.h"
#include "proto/coordination_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Barriers that are remembered, so that a task that comes late learns how one ended.
#define MAX_BARRIERS 4096
#define MAX_NAME 4096  // bytes
#define FOR_EVER INT64_MAX
#define NO_TASK RN_NO_TASK

static void put_devices(const rn_coordination_t* self, rn_strbuf_t* out) {
  size_t mark = rn_pb_begin(out, rn_pb_WaitForAllTasksResponse_device_info_field);
  for (size_t i = 0; i < self->options.task_count; ++i)
    rn_strbuf_append(out, rn_strbuf_view(&self->tasks[i].devices));
  rn_pb_end(out, mark);
}

static void barrier_free(rn_coordination_t* self, rn_barrier_t* barrier) {
  rn_free(self->options.allocator, (char*)barrier->key.data, barrier->key.size + 1);
  if (barrier->expected)
    RN_FREE_ARRAY(self->options.allocator, barrier->expected, self->options.task_count);
  rn_status_free(barrier->status);
  RN_FREE(self->options.allocator, barrier);
}

void rn_barriers_drop_oldest(rn_coordination_t* self) {
  rn_barrier_t* barrier = self->first;
  self->first = barrier->next;
  if (!self->first) self->last = NULL;
  self->barrier_count--;
  barrier_free(self, barrier);
}

rn_barrier_t* rn_barrier_find(rn_coordination_t* self, rn_str_t key) {
  rn_barrier_t* barrier = self->first;
  while (barrier && !rn_str_eq(barrier->key, key)) barrier = barrier->next;
  return barrier;
}

rn_status_t rn_barrier_add(rn_coordination_t* self, rn_str_t key, rn_barrier_t** out) {
  rn_barrier_t* barrier = NULL;
  char* name = NULL;
  if (self->barrier_count >= MAX_BARRIERS && !self->first->is_over)
    return rn_resource_exhausted("There are too many barriers");
  if (self->barrier_count >= MAX_BARRIERS) rn_barriers_drop_oldest(self);
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
static void put_answer(rn_coordination_t* self, rn_coordination_wait_t* wait) {
  const rn_barrier_t* barrier = wait->barrier;
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
void rn_barrier_end(rn_coordination_t* self, rn_barrier_t* barrier, rn_status_t status,
                    rn_coordination_wait_t** ready) {
  barrier->is_over = true;
  barrier->status = status;
  for (rn_coordination_wait_t** at = &self->waits; *at;) {
    rn_coordination_wait_t* wait = *at;
    if (wait->barrier != barrier) {
      at = &wait->next;
      continue;
    }
    rn_coordination_pick(at, rn_status_copy(status), ready);
    put_answer(self, wait);
  }
}

// |task| comes to |barrier|.
rn_status_t rn_barrier_come(rn_coordination_t* self, rn_barrier_t* barrier, int task,
                            rn_rpc_in_t* in, rn_coordination_wait_t** ready) {
  rn_coordination_wait_t* wait = NULL;
  if (barrier->is_over && !rn_ok(barrier->status)) return rn_status_copy(barrier->status);
  RN_RETURN_IF_ERROR(rn_coordination_wait(self, in, RN_STR(""), &wait));
  wait->barrier = barrier;
  wait->task = task;
  if (barrier->expected[task]) {
    barrier->expected[task] = false;
    barrier->missing--;
  }
  if (barrier->is_over || !barrier->missing) rn_barrier_end(self, barrier, RN_OK, ready);
  return RN_OK;
}

// Barriers that tasks name.

static rn_status_t expect_tasks(rn_coordination_t* self, rn_str_t request, rn_barrier_t* barrier) {
  rn_pb_scan_t scan = rn_pb_scan(request);
  bool has_list = false;
  for (rn_pb_field_t field; rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_BarrierRequest_tasks_field || field.wire != RN_PB_WIRE_LENGTH)
      continue;
    int at = rn_coordination_find_task(self, field.bytes);
    if (at < 0) return rn_invalid_argument("Barrier: a task is not in the cluster");
    has_list = true;
    barrier->missing += !barrier->expected[at];
    barrier->expected[at] = true;
  }
  for (size_t i = 0; !has_list && i < self->options.task_count; ++i) barrier->expected[i] = true;
  if (!has_list) barrier->missing = self->options.task_count;
  for (size_t i = 0; i < self->options.task_count; ++i)
    if (barrier->expected[i] && self->tasks[i].state == RN_TASK_FAILED)
      return rn_internal("Barrier failed because a task is in error: %s",
                         rn_status_message(self->tasks[i].error));
  return RN_OK;
}

static rn_status_t put_barrier_key(rn_str_t name, int64_t number, rn_strbuf_t* out) {
  if (name.size > MAX_NAME)
    return rn_invalid_argument("The name of a barrier has more than %d bytes", MAX_NAME);
  rn_strbuf_append(out, name);
  rn_strbuf_printf(out, "::%lld", (long long)number);
  return rn_strbuf_status(out);
}

rn_status_t rn_coordination_barrier(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_str_t request = call->request;
  int at = NO_TASK;
  rn_strbuf_t key;
  rn_barrier_t* barrier = NULL;
  RN_RETURN_IF_ERROR(
      rn_coordination_get_task(self, request, rn_pb_BarrierRequest_source_task_field, &at));
  int64_t number = (int64_t)rn_field_value(request, rn_pb_BarrierRequest_counter_field);
  int64_t ms = (int64_t)rn_field_value(request, rn_pb_BarrierRequest_barrier_timeout_in_ms_field);
  rn_strbuf_init(&key, self->options.allocator);
  rn_status_t status =
      put_barrier_key(rn_field_bytes(request, rn_pb_BarrierRequest_barrier_id_field), number, &key);
  if (rn_ok(status)) barrier = rn_barrier_find(self, rn_strbuf_view(&key));
  if (rn_ok(status) && !barrier) {
    status = rn_barrier_add(self, rn_strbuf_view(&key), &barrier);
    if (rn_ok(status)) {
      if (ms > 0 && ms < INT64_MAX / 1000000 / 2)
        barrier->deadline_ns = rn_coordination_now(self) + ms * 1000000;
      status = expect_tasks(self, request, barrier);
      if (!rn_ok(status)) rn_barrier_end(self, barrier, rn_status_copy(status), &call->ready);
    }
  }
  rn_strbuf_clear(&key);
  RN_RETURN_IF_ERROR(status);
  call->waits = true;
  return rn_barrier_come(self, barrier, at, call->in, &call->ready);
}

rn_status_t rn_coordination_cancel_barrier(rn_coordination_call_t* call) {
  rn_coordination_t* self = call->self;
  rn_strbuf_t key;
  rn_strbuf_init(&key, self->options.allocator);
  rn_status_t status = put_barrier_key(
      rn_field_bytes(call->request, rn_pb_CancelBarrierRequest_barrier_id_field),
      (int64_t)rn_field_value(call->request, rn_pb_CancelBarrierRequest_counter_field), &key);
  rn_barrier_t* barrier = rn_ok(status) ? rn_barrier_find(self, rn_strbuf_view(&key)) : NULL;
  if (rn_ok(status) && (!barrier || barrier->is_over))
    status = rn_failed_precondition("No task waits at the barrier %.*s",
                                    RN_STR_ARGS(rn_strbuf_view(&key)));
  if (rn_ok(status))
    rn_barrier_end(self, barrier,
                   rn_cancelled("Barrier %.*s is cancelled", RN_STR_ARGS(barrier->key)),
                   &call->ready);
  rn_strbuf_clear(&key);
  return status;
}
