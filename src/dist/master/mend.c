// Gives sessions back to restarted tasks: see mend.h.
#include "dist/master/mend.h"

#include "base/container.h"

typedef struct mending_t mending_t;

// A task that is being probed.
typedef struct patient_t {
  rn_get_status_t status;
  rn_create_worker_session_t create;
  mending_t* mending;
  int task;
  bool has_answered, is_new, has_session;
} patient_t;

struct mending_t {
  rn_master_fan_t fan;  // first
  rn_master_session_t* session;
  rn_job_t job;
  int count;
  patient_t patients[];
};

static size_t size_of(int count) { return sizeof(mending_t) + (size_t)count * sizeof(patient_t); }
static bool has_part(const rn_master_plan_t* plan, int task) {
  for (size_t p = 0; p < plan->parts.count; ++p)
    if (plan->parts.items[p].task == task) return true;
  return false;
}

void rn_master_suspect(rn_master_session_t* session, const rn_master_plan_t* plan, int task,
                       rn_status_t status) {
  rn_code_t code = rn_status_code(status);
  if (code != RN_CODE_UNAVAILABLE && code != RN_CODE_ABORTED) return;
  bool has_lost = strstr(rn_status_message(status), "Session handle is not found") != NULL;
  rn_mutex_lock(&session->mutex);
  if (task > 0) {
    session->tasks[task].is_suspect = true;
    session->tasks[task].has_lost |= has_lost;
  }
  // It may report an error of another task.
  for (int t = 1; t < session->task_count; ++t)
    if (has_part(plan, t)) session->tasks[t].is_suspect = true;
  rn_mutex_unlock(&session->mutex);
}

bool rn_master_is_suspect_locked(const rn_master_session_t* session, const rn_master_plan_t* plan) {
  for (int t = 1; t < session->task_count; ++t)
    if (session->tasks[t].is_suspect && (!plan || has_part(plan, t))) return true;
  return false;
}

rn_status_t rn_master_silence_locked(const rn_master_session_t* session,
                                     const rn_master_plan_t* plan) {
  for (int t = 1; t < session->task_count; ++t) {
    const rn_master_task_t* task = &session->tasks[t];
    if (!task->is_suspect || rn_ok(task->silence) || !has_part(plan, t)) continue;
    return rn_status_make(rn_status_code(task->silence), "From %.*s:\n%s", RN_STR_ARGS(task->name),
                          rn_status_message(task->silence));
  }
  return RN_OK;
}

// Mending has ended: all waiters continue.
static void finish(rn_master_session_t* session) {
  rn_mutex_lock(&session->mutex);
  rn_mend_waiter_t* waiter = session->mend_waiters;
  session->mend_waiters = NULL;
  session->is_mending = false;
  rn_mutex_unlock(&session->mutex);
  while (waiter) {
    rn_mend_waiter_t* next = waiter->next;
    waiter->go_on(waiter);
    waiter = next;
  }
  rn_master_session_release(session);
}

static void mending_free(mending_t* mending) {
  for (int i = 0; i < mending->count; ++i) rn_arena_clear(&mending->patients[i].status.arena);
  rn_free(rn_master_session_allocator(mending->session), mending, size_of(mending->count));
}

typedef struct forget_t {
  rn_deregister_graph_t call;  // first
  rn_allocator_t allocator;
  char session[32], handle[32];
} forget_t;

static void on_forgotten(rn_call_t* call, rn_status_t status) {
  rn_status_free(status);
  forget_t* forget = (forget_t*)call;
  RN_FREE(forget->allocator, forget);
}

void rn_master_forget(rn_master_session_t* session, int task, const char* handle) {
  forget_t* forgotten = NULL;
  rn_status_t status = RN_NEW(rn_master_session_allocator(session), &forgotten);
  rn_status_free(status);
  if (!forgotten) return;
  forgotten->allocator = rn_master_session_allocator(session);
  memcpy(forgotten->session, session->handle, sizeof forgotten->session);
  memcpy(forgotten->handle, handle, sizeof forgotten->handle);
  forgotten->call =
      (rn_deregister_graph_t){.call = {.done = on_forgotten, .deadline_ns = INT64_MAX},
                              .session = rn_str(forgotten->session),
                              .handle = rn_str(forgotten->handle)};
  rn_worker_t* worker = session->tasks[task].worker;
  worker->vtable->deregister_graph(worker, &forgotten->call);
}

static void take_incarnations(rn_master_session_t* session, const patient_t* patient) {
  for (int d = 0; d < session->device_count; ++d)
    for (size_t i = 0; i < patient->status.device_count; ++i)
      if (session->device_tasks[d] == patient->task &&
          rn_str_eq(session->devices[d]->name, patient->status.devices[i].name))
        session->devices[d]->incarnation = patient->status.devices[i].incarnation;
}

static bool is_new_there(const mending_t* mending, int task) {
  for (int i = 0; i < mending->count; ++i)
    if (mending->patients[i].task == task) return mending->patients[i].is_new;
  return false;
}

// Hides the programs that a restarted task took part in. They are freed with the session, because
// steps of them may be running.
static rn_master_program_t* outdate_locked(rn_master_session_t* session, const mending_t* mending) {
  rn_master_program_t* outdated = NULL;
  for (rn_master_program_t* program = session->programs; program; program = program->next) {
    bool is_old = false;
    for (int i = 0; i < mending->count; ++i)
      is_old |=
          mending->patients[i].has_session && has_part(&program->plan, mending->patients[i].task);
    if (!is_old || program->is_outdated) continue;
    program->is_outdated = true;
    if (program->state != RN_PROGRAM_READY) continue;
    program->next_outdated = outdated;
    outdated = program;
  }
  return outdated;
}

static void settle(rn_job_t* job) {
  mending_t* mending = RN_CONTAINER_OF(job, mending_t, job);
  rn_master_session_t* session = mending->session;
  rn_mutex_lock(&session->planning);
  rn_mutex_lock(&session->mutex);
  for (int i = 0; i < mending->count; ++i) {
    const patient_t* patient = &mending->patients[i];
    rn_master_task_t* task = &session->tasks[patient->task];
    if (!patient->has_answered || (patient->is_new && !patient->has_session)) continue;
    task->is_suspect = task->has_lost = false;
    if (patient->is_new) task->has_session = true;
    if (patient->is_new) take_incarnations(session, patient);
  }
  rn_master_program_t* outdated = outdate_locked(session, mending);
  rn_mutex_unlock(&session->mutex);
  rn_mutex_unlock(&session->planning);
  for (; outdated; outdated = outdated->next_outdated)
    for (size_t p = 0; p < outdated->plan.parts.count; ++p)
      if (!is_new_there(mending, outdated->plan.parts.items[p].task))
        rn_master_forget(session, outdated->plan.parts.items[p].task, outdated->calls[p].handle);
  mending_free(mending);
  finish(session);
}

static void on_all_created(rn_master_fan_t* fan, rn_status_t status) {
  mending_t* mending = (mending_t*)fan;
  rn_status_free(status);
  rn_pool_submit(rn_local_master_options(mending->session->master)->env->pool, &mending->job);
}

static void on_created(rn_call_t* call, rn_status_t status) {
  patient_t* patient = call->owner;
  // It exists already: the response to an earlier attempt was lost.
  patient->has_session = rn_ok(status) || rn_status_code(status) == RN_CODE_ALREADY_EXISTS;
  rn_master_fan_end(&patient->mending->fan, status, RN_STR(""));
}

static bool is_new_process(const rn_master_session_t* session, const patient_t* patient) {
  for (int d = 0; d < session->device_count; ++d)
    if (session->device_tasks[d] == patient->task && patient->status.device_count)
      return session->devices[d]->incarnation != patient->status.devices[0].incarnation;
  return false;
}

// All probes have ended: restarted tasks get the session again.
static void on_all_asked(rn_master_fan_t* fan, rn_status_t status) {
  mending_t* mending = (mending_t*)fan;
  rn_master_session_t* session = mending->session;
  rn_status_free(status);
  rn_master_fan_open(&mending->fan, mending->count + 1, on_all_created);
  for (int i = 0; i < mending->count; ++i) {
    patient_t* patient = &mending->patients[i];
    rn_master_task_t* task = &session->tasks[patient->task];
    rn_mutex_lock(&session->mutex);
    patient->is_new = patient->has_answered && (task->has_lost || is_new_process(session, patient));
    rn_mutex_unlock(&session->mutex);
    if (!patient->is_new) {
      rn_master_fan_end(&mending->fan, RN_OK, RN_STR(""));
      continue;
    }
    patient->create = rn_master_session_create_call(session, patient->task);
    patient->create.call = (rn_call_t){.done = on_created,
                                       .owner = patient,
                                       .deadline_ns = INT64_MAX,
                                       .cancel = &session->closing};
    task->worker->vtable->create_worker_session(task->worker, &patient->create);
  }
  rn_master_fan_end(&mending->fan, RN_OK, RN_STR(""));
}

static void on_asked(rn_call_t* call, rn_status_t status) {
  patient_t* patient = call->owner;
  patient->has_answered = rn_ok(status);
  rn_master_session_t* session = patient->mending->session;
  rn_master_task_t* task = &session->tasks[patient->task];
  rn_mutex_lock(&session->mutex);
  rn_status_free(task->silence);
  task->silence = rn_status_copy(status);
  rn_mutex_unlock(&session->mutex);
  rn_master_fan_end(&patient->mending->fan, status, RN_STR(""));
}

static mending_t* begin_locked(rn_master_session_t* session) {
  int count = 0;
  for (int t = 1; t < session->task_count; ++t) count += session->tasks[t].is_suspect;
  mending_t* mending = NULL;
  rn_status_t status =
      rn_alloc_zeroed(rn_master_session_allocator(session), size_of(count), (void**)&mending);
  rn_status_free(status);  // without memory, the steps continue unmended
  if (!mending) return NULL;
  mending->session = session;
  mending->job.run = settle;
  for (int t = 1; t < session->task_count; ++t) {
    if (!session->tasks[t].is_suspect) continue;
    patient_t* patient = &mending->patients[mending->count++];
    patient->mending = mending;
    patient->task = t;
    patient->status.call = (rn_call_t){
        .done = on_asked, .owner = patient, .deadline_ns = INT64_MAX, .cancel = &session->closing};
    rn_arena_init(&patient->status.arena, rn_master_session_allocator(session));
  }
  return mending;
}

void rn_master_mend(rn_master_session_t* session, rn_mend_waiter_t* waiter) {
  mending_t* mending = NULL;
  rn_mutex_lock(&session->mutex);
  waiter->next = session->mend_waiters;
  session->mend_waiters = waiter;
  bool is_first = !session->is_mending;
  session->is_mending = true;
  if (is_first) mending = begin_locked(session);
  rn_mutex_unlock(&session->mutex);
  if (!is_first) return;
  session->refs++;
  if (!mending) {
    finish(session);
    return;
  }
  int count = mending->count;  // the last response may free it
  rn_master_fan_open(&mending->fan, count + 1, on_all_asked);
  for (int i = 0; i < count; ++i) {
    rn_worker_t* worker = session->tasks[mending->patients[i].task].worker;
    worker->vtable->get_status(worker, &mending->patients[i].status);
  }
  rn_master_fan_end(&mending->fan, RN_OK, RN_STR(""));
}
