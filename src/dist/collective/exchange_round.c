// Rounds of an exchange: see exchange_round.h.
#include "dist/collective/exchange_round.h"

#include <sched.h>
#include <stdio.h>

// How long a thread looks for values that other tasks of this machine show, before it calls for
// them, which takes some 200 us. On a busy machine it looks a number of times at least, since other
// programs run in between. Where that was in vain, it looks half as long the next time, but tries
// again in every so many rounds.
#define LOOK_NS INT64_C(100000)
#define LOOK_TIMES 64
#define LOOK_MAX_NS INT64_C(20000000)
#define RETRIES 16

// The beginning of the keys of what |task| gives in this instance. If it has restarted since the
// group was formed, it refuses them.
typedef struct exchange_prefix_t {
  char text[120];
} exchange_prefix_t;
static exchange_prefix_t prefix_of(const rn_exchange_t* exchange, int32_t task) {
  exchange_prefix_t prefix;
  snprintf(prefix.text, sizeof prefix.text, RN_COLLECTIVE_PREFIX "%016llx;%s",
           (unsigned long long)exchange->tasks[task].incarnation, exchange->instance);
  return prefix;
}

static void end_exchange(rn_exchange_t* exchange) {
  rn_allocator_t allocator = exchange->options->allocator;
  rn_meeting_t* meeting = exchange->meeting;
  rn_status_t status = exchange->status;
  for (int32_t i = 0; i < exchange->pull_count; ++i)
    rn_tensor_clear(&exchange->pulls[i].call.value);
  RN_FREE_ARRAY(allocator, exchange->pulls, (size_t)exchange->pull_capacity);
  if (exchange->task_of) RN_FREE_ARRAY(allocator, exchange->task_of, (size_t)meeting->group->size);
  if (exchange->tasks)
    RN_FREE_ARRAY(allocator, exchange->tasks, (size_t)meeting->group->task_count);
  rn_tensor_clear(&exchange->local);
  rn_tensor_clear(&exchange->result);
  rn_mutex_destroy(&exchange->mutex);
  RN_FREE(allocator, exchange);
  rn_meeting_end(meeting, status);
}

// Notes an error, tells it to the other tasks and gives up what is still to come. Takes |status|.
static void fail(rn_exchange_t* exchange, rn_status_t status) {
  rn_mutex_lock(&exchange->mutex);
  bool is_first = rn_ok(exchange->status);
  if (is_first) exchange->status = rn_status_copy(status);
  rn_mutex_unlock(&exchange->mutex);
  if (is_first && exchange->task_count) {
    rn_code_t code = rn_status_code(status);
    rn_mailbox_fail(
        exchange->options->mailbox, exchange->like->step,
        rn_str(prefix_of(exchange, exchange->own).text),
        rn_status_make(code == RN_CODE_CANCELLED ? RN_CODE_ABORTED : code,
                       "%.*s gave up a collective: %s", RN_STR_ARGS(exchange->options->task),
                       rn_status_message(status)));
    rn_cancel(&exchange->meeting->cancel);
  }
  rn_status_free(status);
}

static void go_on(rn_job_t* job) {
  rn_exchange_t* exchange = (rn_exchange_t*)job;
  if (rn_ok(exchange->status))
    exchange->next(exchange);
  else
    end_exchange(exchange);
}

// Counts one pull off. The last one goes on, on the pool if there is much to compute.
static void count_off(rn_exchange_t* exchange) {
  rn_mutex_lock(&exchange->mutex);
  bool is_last = --exchange->pending == 0;
  rn_mutex_unlock(&exchange->mutex);
  if (!is_last) return;
  rn_pool_t* pool = exchange->options->env->pool;
  exchange->job.run = go_on;
  if (pool && rn_tensor_bytes(&exchange->local) >= RN_EXCHANGE_LARGE)
    rn_pool_submit(pool, &exchange->job);
  else
    go_on(&exchange->job);
}

static void on_pulled(rn_call_t* call, rn_status_t status) {
  rn_exchange_pull_t* pull = (rn_exchange_pull_t*)call;
  rn_exchange_t* exchange = pull->exchange;
  if (rn_status_code(status) == RN_CODE_FAILED_PRECONDITION) {
    exchange->options->forget(exchange->options->self, exchange->meeting);
    rn_status_t changed = rn_aborted("%s", rn_status_message(status));
    rn_status_free(status);
    status = changed;
  }
  if (!rn_ok(status)) {
    const rn_collective_t* like = exchange->like;
    fail(exchange,
         rn_status_annotate(status, "\nInstance %d of group %d, from %.*s", like->instance_key,
                            like->group_key, RN_STR_ARGS(pull->task->name)));
  }
  count_off(exchange);
}

// The key of what |task| gives: |from| and |to| are tasks or ranks, as the operation needs.
static void put_key(const rn_exchange_t* exchange, int32_t task, int round, int32_t from,
                    int32_t to, char* out, size_t room) {
  snprintf(out, room, RN_COLLECTIVE_PREFIX "%016llx;%s%d:%d:%d",
           (unsigned long long)exchange->tasks[task].incarnation, exchange->instance, round, from,
           to);
}

// |n| elements of |tensor| from |first| on, as a vector.
static rn_status_t view_of(const rn_tensor_t* tensor, int64_t first, int64_t n, rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(
      rn_tensor_reshape(tensor, tensor->dtype, (rn_shape_t){1, &tensor->count}, out));
  out->data = (char*)out->data + (size_t)first * rn_dtype_size(tensor->dtype);
  out->count = out->inline_dims[0] = n;
  return RN_OK;
}

rn_status_t rn_exchange_post(rn_exchange_t* exchange, int32_t task, int round, int32_t from,
                             int32_t to, const rn_tensor_t* tensor, int64_t first, int64_t n) {
  char key[sizeof((rn_exchange_pull_t*)0)->key];
  rn_tensor_t view = {0};
  put_key(exchange, exchange->own, round, from, to, key, sizeof key);
  if (tensor) RN_RETURN_IF_ERROR(view_of(tensor, first, n, &view));
  return rn_mailbox_post(exchange->options->mailbox, exchange->tasks[task].worker,
                         exchange->like->step, rn_str(key), &view, !tensor);
}

rn_status_t rn_exchange_open(rn_exchange_t* exchange, int64_t count) {
  rn_allocator_t allocator = exchange->options->allocator;
  for (int32_t i = 0; i < exchange->pull_count; ++i)
    rn_tensor_clear(&exchange->pulls[i].call.value);
  RN_FREE_ARRAY(allocator, exchange->pulls, (size_t)exchange->pull_capacity);
  exchange->pulls = NULL;
  exchange->pull_count = exchange->pull_capacity = 0;
  if (count > INT32_MAX) return rn_resource_exhausted("A collective of too many members");
  RN_RETURN_IF_ERROR(
      rn_alloc_array(allocator, (size_t)count, sizeof *exchange->pulls, (void**)&exchange->pulls));
  exchange->pull_capacity = (int32_t)count;
  return RN_OK;
}

void rn_exchange_pull(rn_exchange_t* exchange, int round, int32_t task, int32_t from, int32_t to,
                      int64_t n) {
  rn_exchange_pull_t* pull = &exchange->pulls[exchange->pull_count++];
  pull->exchange = exchange;
  pull->task = &exchange->tasks[task];
  pull->from = from;
  pull->to = to;
  pull->n = n;
  put_key(exchange, task, round, from, to, pull->key, sizeof pull->key);
  pull->call = (rn_recv_tensor_t){
      .call = {.done = on_pulled, .deadline_ns = INT64_MAX, .cancel = &exchange->meeting->cancel},
      .step = exchange->like->step,
      .key = rn_str(pull->key)};
}

// Whether all values of a round may be shown to this task.
static bool may_look(const rn_exchange_t* exchange) {
  rn_dtype_t dtype = exchange->like->dtype;
  bool ok = rn_dtype_is_plain(dtype) && exchange->pull_count;
  for (int32_t i = 0; ok && i < exchange->pull_count; ++i) {
    const rn_exchange_pull_t* pull = &exchange->pulls[i];
    const rn_showing_t* showing = pull->task->worker->vtable->showing;
    ok = showing && pull->n >= 0 && (size_t)pull->n <= RN_SHOWN_MAX / rn_dtype_size(dtype) &&
         showing->is_near(pull->task->worker);
  }
  return ok;
}

// Takes the value of |pull| if it is shown.
static rn_status_t look(rn_exchange_pull_t* pull) {
  rn_tensor_t* value = &pull->call.value;
  const rn_collective_t* like = pull->exchange->like;
  rn_worker_t* worker = pull->task->worker;
  if (!rn_tensor_is_set(value)) {
    RN_RETURN_IF_ERROR(
        rn_tensor_create(like->memory, like->dtype, (rn_shape_t){1, &pull->n}, value));
    pull->shown = rn_mailbox_key(like->step, pull->call.key);
  }
  pull->is_here =
      worker->vtable->showing->take(worker, pull->shown, value->data, rn_tensor_bytes(value));
  return RN_OK;
}

// Takes what the other tasks show, and waits a little for it; what is not there then must be called
// for. Waiting pays if the tasks do the same at the same time, which shows after a few rounds.
static rn_status_t look_for_pulls(rn_exchange_t* exchange) {
  const rn_env_t* env = exchange->options->env;
  uint32_t vain = *exchange->options->vain_looks, times = LOOK_TIMES >> vain % RETRIES;
  int64_t start_ns = env->now_ns(env->self), took_ns = 0;
  int32_t missing = exchange->pull_count;
  for (uint32_t time = 0; missing; ++time) {
    for (int32_t i = 0; i < exchange->pull_count; ++i) {
      rn_exchange_pull_t* pull = &exchange->pulls[i];
      if (pull->is_here) continue;
      RN_RETURN_IF_ERROR(look(pull));
      missing -= pull->is_here;
    }
    if (!missing || took_ns >= LOOK_MAX_NS ||
        (time >= times && took_ns >= LOOK_NS >> vain % RETRIES))
      break;
    sched_yield();
    took_ns = env->now_ns(env->self) - start_ns;
  }
  *exchange->options->vain_looks = missing ? vain + 1 : 0;
  for (int32_t i = 0; i < exchange->pull_count; ++i)
    if (!exchange->pulls[i].is_here) rn_tensor_clear(&exchange->pulls[i].call.value);
  return RN_OK;
}

void rn_exchange_run(rn_exchange_t* exchange, void (*next)(rn_exchange_t* exchange),
                     rn_status_t status) {
  const rn_env_t* env = exchange->options->env;
  exchange->next = next;
  if (rn_ok(status) && may_look(exchange)) status = look_for_pulls(exchange);
  if (!rn_ok(status)) fail(exchange, status);
  int32_t count = rn_ok(exchange->status) ? exchange->pull_count : 0;
  exchange->pending = 1 + exchange->held;
  for (int32_t i = 0; i < count; ++i) exchange->pending += !exchange->pulls[i].is_here;
  for (int32_t i = 0; i < count; ++i) {
    rn_exchange_pull_t* pull = &exchange->pulls[i];
    if (pull->is_here) continue;
    pull->call.request = (int64_t)(env->random(env->self) >> 2 | 1);
    pull->task->worker->vtable->recv_tensor(pull->task->worker, &pull->call);
  }
  count_off(exchange);
}

void rn_exchange_release(rn_exchange_t* exchange, rn_status_t status) {
  if (!rn_ok(status)) fail(exchange, status);
  count_off(exchange);
}

const rn_tensor_t* rn_exchange_pulled(const rn_exchange_t* exchange, int32_t from, int32_t to) {
  for (int32_t i = 0; i < exchange->pull_count; ++i)
    if (exchange->pulls[i].from == from && exchange->pulls[i].to == to)
      return &exchange->pulls[i].call.value;
  return NULL;
}

rn_status_t rn_exchange_check(const rn_exchange_t* exchange, int64_t n) {
  for (int32_t i = 0; i < exchange->pull_count; ++i) {
    const rn_recv_tensor_t* call = &exchange->pulls[i].call;
    if (call->is_dead || call->value.dtype != exchange->like->dtype || call->value.count != n)
      return rn_invalid_argument(
          "Shape mismatch in a collective: %.*s has %lld elements of another type or number",
          RN_STR_ARGS(exchange->pulls[i].task->name), (long long)call->value.count);
  }
  return RN_OK;
}

void rn_exchange_finish(rn_exchange_t* exchange, rn_status_t status) {
  if (!rn_ok(status)) fail(exchange, status);
  end_exchange(exchange);
}
