// Steps of a worker: see steps.h. A value of another task is fetched when a kernel here waits for
// it.
#include "dist/worker/steps.h"

#include "base/map.h"

typedef struct remote_t remote_t;

typedef struct worker_step_t {
  int64_t id;                   // the key of the map
  remote_t* remote;             // owned by |rendezvous|
  rn_rendezvous_t* rendezvous;  // Retained
  bool has_ended;               // its part here
  const void* owner;            // NULL: no call has started it
} worker_step_t;

struct rn_steps_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  char* task;  // Owned
  rn_peers_t peers;
  rn_recv_log_t log;
  rn_mutex_t mutex;  // guards the map
  rn_map_t steps;    // id -> worker_step_t*
};

// The values that a step fetches from other tasks.
struct remote_t {
  rn_steps_t* steps;
  rn_peers_t peers;
  int64_t id;
  rn_rendezvous_t* rendezvous;  // Borrowed: it owns this
  rn_cancel_t cancel;           // of all running calls
};

typedef struct steps_receipt_t {
  rn_recv_tensor_t call;  // first
  remote_t* remote;
  rn_recv_t* recv;
  int64_t start_us;  // when the call was made, if the log is on; else 0
} steps_receipt_t;

// The part of a device's name that names its task.
static rn_str_t task_of_device(rn_str_t device) {
  const rn_str_t mark = RN_STR("/device:");
  for (size_t i = 0; i + mark.size <= device.size; ++i)
    if (memcmp(device.data + i, mark.data, mark.size) == 0) return rn_str_n(device.data, i);
  return device;
}

static rn_str_t task_of_key(rn_str_t key) { return task_of_device(rn_str_split(&key, ';')); }

static bool remote_has(void* self, rn_str_t key) {
  const remote_t* remote = self;
  rn_str_t own = remote->peers.own.size ? remote->peers.own : rn_str(remote->steps->task);
  return !rn_str_eq(task_of_key(key), own);
}

// An error of the call itself: the task does not answer, or is another process by now.
static bool is_news(rn_status_t status) {
  static const char restarted[] = "RecvTensor expects a different device incarnation";
  return rn_status_code(status) == RN_CODE_UNAVAILABLE ||
         (rn_status_code(status) == RN_CODE_ABORTED &&
          strncmp(rn_status_message(status), restarted, sizeof restarted - 1) == 0);
}

// Other errors are consequences of an error that the task reports to the master itself.
static rn_status_t of_peer(rn_status_t status, rn_str_t task) {
  if (rn_ok(status)) return RN_OK;
  if (!is_news(status)) return rn_status_derive(status);
  rn_status_t named = rn_status_make(rn_status_code(status), "From %.*s:\n%s", RN_STR_ARGS(task),
                                     rn_status_message(status));
  rn_status_free(status);
  return named;
}

static void note(const steps_receipt_t* receipt) {
  rn_steps_t* steps = receipt->remote->steps;
  const rn_tensor_t* value = &receipt->call.value;
  int64_t bytes = rn_tensor_is_set(value) ? (int64_t)rn_tensor_bytes(value) : 0;
  rn_recv_log_add(&steps->log, receipt->remote->id, receipt->call.key, bytes, receipt->start_us,
                  steps->env->wall_us(steps->env->self));
}

static void on_value(rn_call_t* call, rn_status_t status) {
  steps_receipt_t* receipt = (steps_receipt_t*)call;
  if (receipt->start_us && rn_ok(status)) note(receipt);
  rn_str_t task = task_of_key(receipt->call.key);
  rn_rendezvous_t* rendezvous = receipt->remote->rendezvous;
  rn_tensor_t value = receipt->call.value;
  rn_recv_t* recv = receipt->recv;
  bool is_dead = receipt->call.is_dead;
  RN_FREE(receipt->remote->steps->allocator, receipt);
  status = of_peer(status, task);
  recv->fn(recv, status, &value, is_dead, NULL);
  rn_rendezvous_release(rendezvous);
}

static rn_status_t ask(remote_t* remote, rn_str_t key, rn_recv_t* recv) {
  rn_str_t task = task_of_key(key);
  rn_worker_t* peer = remote->peers.find(remote->peers.self, task);
  if (!peer && remote->peers.missing) return remote->peers.missing(remote->peers.self, task);
  if (!peer) return rn_not_found("No task %.*s in the cluster", RN_STR_ARGS(task));
  steps_receipt_t* receipt = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(remote->steps->allocator, &receipt));
  const rn_env_t* env = remote->steps->env;
  receipt->remote = remote;
  receipt->recv = recv;
  if (rn_recv_log_is_on(&remote->steps->log)) receipt->start_us = env->wall_us(env->self);
  receipt->call = (rn_recv_tensor_t){
      .call = {.done = on_value, .deadline_ns = INT64_MAX, .cancel = &remote->cancel},
      .step = remote->id,
      .key = key,
      .request = (int64_t)(env->random(env->self) >> 1 | 1)};
  rn_rendezvous_retain(remote->rendezvous);
  peer->vtable->recv_tensor(peer, &receipt->call);
  return RN_OK;
}

static void remote_recv(void* self, rn_str_t key, rn_recv_t* recv) {
  rn_status_t status = ask(self, key, recv);
  rn_tensor_t none = {0};
  if (!rn_ok(status)) recv->fn(recv, status, &none, false, NULL);
}

static void remote_give_up(void* self) { rn_cancel(&((remote_t*)self)->cancel); }

static void remote_destroy(void* self) {
  remote_t* remote = self;
  rn_cancel_destroy(&remote->cancel);
  RN_FREE(remote->steps->allocator, remote);
}

static rn_status_t make_step(rn_steps_t* steps, int64_t id, worker_step_t** out) {
  *out = NULL;
  worker_step_t* step = NULL;
  remote_t* remote = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(steps->allocator, &step));
  step->id = id;
  rn_status_t status = rn_rendezvous_create(steps->allocator, &step->rendezvous);
  if (rn_ok(status)) status = RN_NEW(steps->allocator, &remote);
  if (rn_ok(status)) {
    *remote =
        (remote_t){.steps = steps, .peers = steps->peers, .id = id, .rendezvous = step->rendezvous};
    step->remote = remote;
    rn_cancel_init(&remote->cancel);
    rn_rendezvous_set_remote(step->rendezvous, (rn_remote_t){.self = remote,
                                                             .has = remote_has,
                                                             .recv = remote_recv,
                                                             .give_up = remote_give_up,
                                                             .destroy = remote_destroy});
    status = rn_map_put(&steps->steps, rn_str_n((char*)&step->id, sizeof step->id), step);
  }
  if (rn_ok(status)) {
    *out = step;
    return RN_OK;
  }
  rn_rendezvous_release(step->rendezvous);
  RN_FREE(steps->allocator, step);
  return status;
}

static rn_status_t get_locked(rn_steps_t* steps, int64_t id, worker_step_t** out_step,
                              rn_rendezvous_t** out) {
  *out_step = rn_map_get(&steps->steps, rn_str_n((char*)&id, sizeof id));
  if (!*out_step) RN_RETURN_IF_ERROR(make_step(steps, id, out_step));
  *out = (*out_step)->rendezvous;
  rn_rendezvous_retain(*out);
  return RN_OK;
}

rn_status_t rn_steps_get(rn_steps_t* steps, int64_t id, rn_rendezvous_t** out) {
  worker_step_t* step = NULL;
  *out = NULL;
  rn_mutex_lock(&steps->mutex);
  rn_status_t status = get_locked(steps, id, &step, out);
  rn_mutex_unlock(&steps->mutex);
  return status;
}

rn_status_t rn_steps_adopt(rn_steps_t* steps, int64_t id, const void* owner, rn_peers_t peers,
                           rn_rendezvous_t** out) {
  worker_step_t* step = NULL;
  *out = NULL;
  rn_mutex_lock(&steps->mutex);
  rn_status_t status = get_locked(steps, id, &step, out);
  bool may = rn_ok(status) && (!step->owner || step->owner == owner);
  if (may) {
    step->owner = owner;
    step->remote->peers = peers;
  }
  rn_mutex_unlock(&steps->mutex);
  if (may || !rn_ok(status)) return status;
  rn_rendezvous_release(*out);
  *out = NULL;
  return rn_invalid_argument("Step %lld belongs to another owner", (long long)id);
}

void rn_steps_drop_of(rn_steps_t* steps, int64_t id, const void* owner, rn_status_t status) {
  rn_mutex_lock(&steps->mutex);
  const worker_step_t* step = rn_map_get(&steps->steps, rn_str_n((char*)&id, sizeof id));
  bool may = step && (!step->owner || step->owner == owner);
  rn_mutex_unlock(&steps->mutex);
  if (may)
    rn_steps_drop(steps, id, status);
  else
    rn_status_free(status);
}

void rn_steps_drop(rn_steps_t* steps, int64_t id, rn_status_t status) {
  rn_mutex_lock(&steps->mutex);
  rn_str_t key = rn_str_n((char*)&id, sizeof id);
  worker_step_t* step = rn_map_get(&steps->steps, key);
  if (step) rn_map_remove(&steps->steps, key);
  rn_mutex_unlock(&steps->mutex);
  if (!step) {
    rn_status_free(status);
    return;
  }
  rn_rendezvous_fail(step->rendezvous, status);
  rn_rendezvous_release(step->rendezvous);
  RN_FREE(steps->allocator, step);
}

static void drop_if_over(rn_steps_t* steps, int64_t id, bool has_ended) {
  rn_str_t key = rn_str_n((char*)&id, sizeof id);
  rn_mutex_lock(&steps->mutex);
  worker_step_t* step = rn_map_get(&steps->steps, key);
  if (step && has_ended) step->has_ended = true;
  bool is_over = step && step->has_ended && rn_rendezvous_is_empty(step->rendezvous);
  if (is_over) rn_map_remove(&steps->steps, key);
  rn_mutex_unlock(&steps->mutex);
  if (!is_over) return;
  rn_rendezvous_release(step->rendezvous);
  RN_FREE(steps->allocator, step);
}

void rn_steps_end(rn_steps_t* steps, int64_t id) { drop_if_over(steps, id, true); }
void rn_steps_taken(rn_steps_t* steps, int64_t id) { drop_if_over(steps, id, false); }

void rn_steps_own(rn_steps_t* steps, int64_t id, const void* owner) {
  rn_mutex_lock(&steps->mutex);
  worker_step_t* step = rn_map_get(&steps->steps, rn_str_n((char*)&id, sizeof id));
  if (step) step->owner = owner;
  rn_mutex_unlock(&steps->mutex);
}

void rn_steps_drop_owned(rn_steps_t* steps, const void* owner, rn_status_t status) {
  for (bool is_found = true; is_found;) {
    int64_t id = 0;
    size_t position = 0;
    const rn_map_entry_t* entry;
    is_found = false;
    rn_mutex_lock(&steps->mutex);
    while (!is_found && (entry = rn_map_next(&steps->steps, &position))) {
      id = ((worker_step_t*)entry->value)->id;
      is_found = ((worker_step_t*)entry->value)->owner == owner;
    }
    rn_mutex_unlock(&steps->mutex);
    if (is_found) rn_steps_drop(steps, id, rn_status_copy(status));
  }
  rn_status_free(status);
}

void rn_steps_drop_unowned(rn_steps_t* steps, int64_t id, rn_status_t status) {
  rn_mutex_lock(&steps->mutex);
  const worker_step_t* step = rn_map_get(&steps->steps, rn_str_n((char*)&id, sizeof id));
  bool is_unowned = step && !step->owner;
  rn_mutex_unlock(&steps->mutex);
  if (is_unowned)
    rn_steps_drop(steps, id, status);
  else
    rn_status_free(status);
}

rn_recv_log_t* rn_steps_log(rn_steps_t* steps) { return &steps->log; }

size_t rn_steps_count(rn_steps_t* steps) {
  rn_mutex_lock(&steps->mutex);
  size_t count = steps->steps.count;
  rn_mutex_unlock(&steps->mutex);
  return count;
}

rn_status_t rn_steps_create(const rn_env_t* env, rn_allocator_t allocator, rn_str_t task,
                            rn_peers_t peers, rn_steps_t** out) {
  *out = NULL;
  rn_steps_t* steps = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &steps));
  *steps = (rn_steps_t){.allocator = allocator, .env = env, .peers = peers};
  rn_mutex_init(&steps->mutex);
  rn_recv_log_init(&steps->log, allocator);
  rn_map_init(&steps->steps, allocator);
  rn_status_t status = rn_str_dup(allocator, task, &steps->task);
  if (!rn_ok(status)) {
    rn_steps_destroy(steps);
    return status;
  }
  *out = steps;
  return RN_OK;
}

void rn_steps_clear(rn_steps_t* steps) {
  for (;;) {
    size_t position = 0;
    rn_mutex_lock(&steps->mutex);
    const rn_map_entry_t* entry = rn_map_next(&steps->steps, &position);
    int64_t id = entry ? ((worker_step_t*)entry->value)->id : 0;
    rn_mutex_unlock(&steps->mutex);
    if (!entry) return;
    rn_steps_drop(steps, id, rn_cancelled("The worker is closing"));
  }
}

void rn_steps_destroy(rn_steps_t* steps) {
  if (!steps) return;
  rn_steps_clear(steps);
  rn_map_clear(&steps->steps);
  rn_recv_log_destroy(&steps->log);
  if (steps->task) rn_free(steps->allocator, steps->task, strlen(steps->task) + 1);
  rn_mutex_destroy(&steps->mutex);
  RN_FREE(steps->allocator, steps);
}
