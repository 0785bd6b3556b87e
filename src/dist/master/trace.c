// The receive logs of a traced step: see trace.h.
#include "dist/master/trace.h"

#include "dist/master/mend.h"
#include "proto/worker.pb.h"
#include "wire/scan.h"

// How long to wait for the logs after the step.
#define PATIENCE_NS INT64_C(2000000000)

typedef struct noted_t {
  rn_logging_t call;  // first
  rn_master_trace_t* trace;
  rn_worker_t* worker;
  int task;
  rn_str_t name;
  bool is_on;  // its log is on
} noted_t;

struct rn_master_trace_t {
  rn_master_fan_t fan;  // first
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_master_session_t* session;  // Borrowed, like the plan, until the trace has begun
  const rn_master_plan_t* plan;
  rn_master_trace_fn_t next;
  void* owner;
  int64_t step;
  size_t count;
  noted_t tasks[];
};

static void trace_destroy(rn_master_trace_t* trace) {
  for (size_t i = 0; i < trace->count; ++i) rn_strbuf_clear(&trace->tasks[i].call.notes);
  rn_free(trace->allocator, trace, sizeof *trace + trace->count * sizeof *trace->tasks);
}

static void on_all(rn_master_fan_t* fan, rn_status_t status) {
  rn_master_trace_t* trace = (rn_master_trace_t*)fan;
  trace->next(trace->owner, status);
}

static void on_answer(rn_call_t* call, rn_status_t status) {
  noted_t* noted = (noted_t*)call;
  const rn_master_trace_t* trace = noted->trace;
  noted->is_on = noted->call.switches_on && rn_ok(status);
  if (rn_status_code(status) == RN_CODE_UNIMPLEMENTED) {  // a task without this log
    rn_status_free(status);
    status = RN_OK;
  }
  if (!rn_ok(status) && noted->call.switches_on)
    rn_master_suspect(trace->session, trace->plan, noted->task, status);
  rn_master_fan_end(&noted->trace->fan, status, noted->name);
}

static void ask(rn_master_trace_t* trace, bool is_begin, int64_t deadline_ns, rn_cancel_t* cancel,
                rn_master_trace_fn_t next) {
  trace->next = next;
  rn_master_fan_open(&trace->fan, (int)trace->count + 1, on_all);
  for (size_t i = 0; i < trace->count; ++i) {
    noted_t* noted = &trace->tasks[i];
    noted->call.call = (rn_call_t){.done = on_answer, .deadline_ns = deadline_ns, .cancel = cancel};
    noted->call.switches_on = is_begin;
    noted->call.switches_off = !is_begin;
    noted->call.steps = &trace->step;
    noted->call.step_count = !is_begin;
    if (is_begin || noted->is_on)
      noted->worker->vtable->logging(noted->worker, &noted->call);
    else
      rn_master_fan_end(&trace->fan, RN_OK, noted->name);
  }
  rn_master_fan_end(&trace->fan, RN_OK, RN_STR(""));
}

rn_status_t rn_master_trace_begin(rn_master_session_t* session, const rn_master_plan_t* plan,
                                  int64_t deadline_ns, rn_cancel_t* cancel,
                                  rn_master_trace_fn_t next, void* owner, rn_master_trace_t** out) {
  const rn_local_master_options_t* options = rn_local_master_options(session->master);
  size_t count = plan->parts.count;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(
      options->allocator, sizeof(rn_master_trace_t) + count * sizeof(noted_t), (void**)out));
  rn_master_trace_t* trace = *out;
  trace->allocator = options->allocator;
  trace->env = options->env;
  trace->session = session;
  trace->plan = plan;
  trace->owner = owner;
  trace->count = count;
  for (size_t i = 0; i < count; ++i) {
    int task = plan->parts.items[i].task;
    trace->tasks[i] = (noted_t){.trace = trace,
                                .worker = session->tasks[task].worker,
                                .task = task,
                                .name = session->tasks[task].name};
    rn_strbuf_init(&trace->tasks[i].call.notes, trace->allocator);
  }
  ask(trace, true, deadline_ns, cancel, next);
  return RN_OK;
}

void rn_master_trace_end(rn_master_trace_t* trace, int64_t step, rn_master_trace_fn_t next) {
  trace->step = step;
  ask(trace, false, trace->env->now_ns(trace->env->self) + PATIENCE_NS, NULL, next);
}

static void on_dropped(void* owner, rn_status_t status) {
  rn_status_free(status);
  trace_destroy(owner);
}

void rn_master_trace_drop(rn_master_trace_t* trace) {
  if (!trace) return;
  trace->owner = trace;
  for (size_t i = 0; i < trace->count; ++i) trace->tasks[i].name = RN_STR("");  // the session's
  ask(trace, false, trace->env->now_ns(trace->env->self) + PATIENCE_NS, NULL, on_dropped);
}

// Appends every occurrence of field |number| of a message.
static void copy_field(rn_str_t message, uint32_t number, rn_strbuf_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(message);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == number) rn_strbuf_append(out, field.bytes);
}

void rn_master_trace_write(const rn_master_trace_t* trace, rn_strbuf_t* out) {
  for (size_t i = 0; i < trace->count; ++i) {
    rn_pb_scan_t scan = rn_pb_scan(rn_strbuf_view(&trace->tasks[i].call.notes));
    rn_pb_field_t field;
    while (rn_pb_scan_next(&scan, &field))
      if (field.number == rn_pb_LoggingResponse_step_field)
        copy_field(field.bytes, rn_pb_LabeledStepStats_step_stats_field, out);
  }
}
