// One instance over several tasks: see exchange.h.
#include "dist/collective/exchange.h"

#include <sched.h>
#include <stdio.h>

#include "base/container.h"
#include "collective/compute.h"
#include "dist/iface.h"

// From this many bytes on, a reduction takes two rounds: it moves 2 (n - 1) / n of the tensor per
// task instead of n - 1 tensors.
#define TWO_ROUNDS ((size_t)64 << 10)
// Parts of a tensor begin at multiples of this many elements, so that they are aligned.
#define PART_ALIGN 1024
// How long a thread looks for values that other tasks of this machine show, before it calls for
// them, which takes some 200 us. On a busy machine it looks a number of times at least, since other
// programs run in between. Where that was in vain, it looks half as long the next time, but tries
// again in every so many rounds.
#define LOOK_NS INT64_C(100000)
#define LOOK_TIMES 64
#define LOOK_MAX_NS INT64_C(20000000)
#define RETRIES 16

typedef struct exchange_task_t {
  rn_str_t name;
  rn_worker_t* worker;  // NULL: this task
  uint64_t incarnation;
} exchange_task_t;

typedef struct exchange_t exchange_t;

// A value that is fetched from another task.
typedef struct exchange_pull_t {
  rn_recv_tensor_t call;  // first
  exchange_t* exchange;
  const exchange_task_t* task;
  int32_t from, to;  // as in the key
  int64_t n;         // elements that will come; -1: not known
  bool is_here;
  rn_shown_key_t shown;
  char key[144];
} exchange_pull_t;

struct exchange_t {
  rn_job_t job;  // first
  const rn_exchange_options_t* options;
  rn_meeting_t* meeting;
  rn_collective_t* like;  // the first member of this task
  exchange_task_t* tasks;
  int32_t task_count, own;
  int32_t* task_of;   // by rank
  char instance[80];  // in the keys of all tasks
  exchange_pull_t* pulls;
  int32_t pull_count, pull_capacity;
  void (*next)(exchange_t* exchange);  // when all pulls have ended
  rn_tensor_t local;                   // what this task gives: one row
  rn_tensor_t result;
  int64_t part;      // elements of a part
  rn_mutex_t mutex;  // guards what follows
  int32_t pending;
  rn_status_t status;
};

// The beginning of the keys of what |task| gives in this instance. If it has restarted since the
// group was formed, it refuses them.
typedef struct exchange_prefix_t {
  char text[112];
} exchange_prefix_t;
static exchange_prefix_t prefix_of(const exchange_t* exchange, int32_t task) {
  exchange_prefix_t prefix;
  snprintf(prefix.text, sizeof prefix.text, RN_COLLECTIVE_PREFIX "%016llx;%s",
           (unsigned long long)exchange->tasks[task].incarnation, exchange->instance);
  return prefix;
}

static void exchange_end(exchange_t* exchange) {
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
static void fail(exchange_t* exchange, rn_status_t status) {
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
  exchange_t* exchange = (exchange_t*)job;
  if (rn_ok(exchange->status))
    exchange->next(exchange);
  else
    exchange_end(exchange);
}

// Counts one pull off. The last one goes on, on the pool if there is much to compute.
static void count_off(exchange_t* exchange) {
  rn_mutex_lock(&exchange->mutex);
  bool is_last = --exchange->pending == 0;
  rn_mutex_unlock(&exchange->mutex);
  if (!is_last) return;
  rn_pool_t* pool = exchange->options->env->pool;
  exchange->job.run = go_on;
  if (pool && rn_tensor_bytes(&exchange->local) >= TWO_ROUNDS)
    rn_pool_submit(pool, &exchange->job);
  else
    go_on(&exchange->job);
}

static void on_pulled(rn_call_t* call, rn_status_t status) {
  exchange_pull_t* pull = (exchange_pull_t*)call;
  exchange_t* exchange = pull->exchange;
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
static void put_key(const exchange_t* exchange, int32_t task, int round, int32_t from, int32_t to,
                    char* out, size_t room) {
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

// Leaves |n| elements of |tensor| from |first| on for |task|.
static rn_status_t post(exchange_t* exchange, int32_t task, int round, int32_t from, int32_t to,
                        const rn_tensor_t* tensor, int64_t first, int64_t n) {
  char key[sizeof((exchange_pull_t*)0)->key];
  rn_tensor_t view = {0};
  put_key(exchange, exchange->own, round, from, to, key, sizeof key);
  if (tensor) RN_RETURN_IF_ERROR(view_of(tensor, first, n, &view));
  return rn_mailbox_post(exchange->options->mailbox, exchange->tasks[task].worker,
                         exchange->like->step, rn_str(key), &view, !tensor);
}

// Starts a round of at most |count| pulls.
static rn_status_t open_round(exchange_t* exchange, int64_t count) {
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

// Something of |n| elements will come from |task|; -1: nobody knows how many.
static void add_pull(exchange_t* exchange, int round, int32_t task, int32_t from, int32_t to,
                     int64_t n) {
  exchange_pull_t* pull = &exchange->pulls[exchange->pull_count++];
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
static bool may_look(const exchange_t* exchange) {
  rn_dtype_t dtype = exchange->like->dtype;
  bool ok = rn_dtype_is_plain(dtype) && exchange->pull_count;
  for (int32_t i = 0; ok && i < exchange->pull_count; ++i) {
    const exchange_pull_t* pull = &exchange->pulls[i];
    const rn_showing_t* showing = pull->task->worker->vtable->showing;
    ok = showing && pull->n >= 0 && (size_t)pull->n <= RN_SHOWN_MAX / rn_dtype_size(dtype) &&
         showing->is_near(pull->task->worker);
  }
  return ok;
}

// Takes the value of |pull| if it is shown.
static rn_status_t look(exchange_pull_t* pull) {
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
static rn_status_t look_for_pulls(exchange_t* exchange) {
  const rn_env_t* env = exchange->options->env;
  uint32_t vain = *exchange->options->vain_looks, times = LOOK_TIMES >> vain % RETRIES;
  int64_t start_ns = env->now_ns(env->self), took_ns = 0;
  int32_t missing = exchange->pull_count;
  for (uint32_t time = 0; missing; ++time) {
    for (int32_t i = 0; i < exchange->pull_count; ++i) {
      exchange_pull_t* pull = &exchange->pulls[i];
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

// Makes the calls of a round; |next| follows when all have ended.
static void run_round(exchange_t* exchange, void (*next)(exchange_t* exchange),
                      rn_status_t status) {
  const rn_env_t* env = exchange->options->env;
  exchange->next = next;
  if (rn_ok(status) && may_look(exchange)) status = look_for_pulls(exchange);
  if (!rn_ok(status)) fail(exchange, status);
  int32_t count = rn_ok(exchange->status) ? exchange->pull_count : 0;
  exchange->pending = 1;
  for (int32_t i = 0; i < count; ++i) exchange->pending += !exchange->pulls[i].is_here;
  for (int32_t i = 0; i < count; ++i) {
    exchange_pull_t* pull = &exchange->pulls[i];
    if (pull->is_here) continue;
    pull->call.request = (int64_t)(env->random(env->self) >> 2 | 1);
    pull->task->worker->vtable->recv_tensor(pull->task->worker, &pull->call);
  }
  count_off(exchange);
}

// The value that came from |from| for |to|; NULL if none was to come.
static const rn_tensor_t* pulled(const exchange_t* exchange, int32_t from, int32_t to) {
  for (int32_t i = 0; i < exchange->pull_count; ++i)
    if (exchange->pulls[i].from == from && exchange->pulls[i].to == to)
      return &exchange->pulls[i].call.value;
  return NULL;
}

// Checks that a peer sent what it should have.
static rn_status_t check_pulls(const exchange_t* exchange, int64_t n) {
  for (int32_t i = 0; i < exchange->pull_count; ++i) {
    const rn_recv_tensor_t* call = &exchange->pulls[i].call;
    if (call->is_dead || call->value.dtype != exchange->like->dtype || call->value.count != n)
      return rn_invalid_argument(
          "Shape mismatch in a collective: %.*s has %lld elements of another type or number",
          RN_STR_ARGS(exchange->pulls[i].task->name), (long long)call->value.count);
  }
  return RN_OK;
}

static void finish(exchange_t* exchange, rn_status_t status) {
  if (!rn_ok(status)) fail(exchange, status);
  exchange_end(exchange);
}

// Gives the result to all members of this task.
static rn_status_t give_result(exchange_t* exchange) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_share(&exchange->result, &exchange->meeting->members[i]->output));
  return RN_OK;
}

static rn_status_t make_result(exchange_t* exchange) {
  return rn_tensor_create(exchange->like->memory, exchange->like->dtype, exchange->like->shape,
                          &exchange->result);
}

// Reduction.

// Merges |n| elements from |first| on of this task's own values with those that were pulled for
// |to|, in the order of tasks.
static rn_status_t merge_tasks(exchange_t* exchange, int64_t first, int64_t n, int32_t to,
                               void* out) {
  const void** inputs = NULL;
  rn_allocator_t allocator = exchange->options->allocator;
  size_t count = (size_t)exchange->task_count,
         at = (size_t)first * rn_dtype_size(exchange->like->dtype);
  RN_RETURN_IF_ERROR(rn_alloc_array(allocator, count, sizeof *inputs, (void**)&inputs));
  for (int32_t t = 0; t < exchange->task_count; ++t)
    inputs[t] =
        t == exchange->own ? (const char*)exchange->local.data + at : pulled(exchange, t, to)->data;
  rn_collective_merge(exchange->like, inputs, exchange->task_count, out, n);
  RN_FREE_ARRAY(allocator, inputs, count);
  return RN_OK;
}

static int64_t part_first(const exchange_t* exchange, int32_t task) {
  int64_t first = task * exchange->part;
  return first < exchange->local.count ? first : exchange->local.count;
}
static int64_t part_size(const exchange_t* exchange, int32_t task) {
  return part_first(exchange, task + 1) - part_first(exchange, task);
}

static void on_whole(exchange_t* exchange) {
  rn_status_t status = check_pulls(exchange, exchange->local.count);
  if (rn_ok(status)) status = make_result(exchange);
  if (rn_ok(status))
    status = merge_tasks(exchange, 0, exchange->local.count, exchange->own, exchange->result.data);
  if (rn_ok(status)) status = give_result(exchange);
  finish(exchange, status);
}

static void on_parts_reduced(exchange_t* exchange) {
  size_t size = rn_dtype_size(exchange->like->dtype);
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < exchange->pull_count; ++i) {
    const rn_recv_tensor_t* call = &exchange->pulls[i].call;
    int32_t from = exchange->pulls[i].from;
    if (call->value.dtype != exchange->like->dtype ||
        call->value.count != part_size(exchange, from)) {
      status = rn_internal("%.*s sent another part of a reduction",
                           RN_STR_ARGS(exchange->pulls[i].task->name));
    } else {
      memcpy((char*)exchange->result.data + (size_t)part_first(exchange, from) * size,
             call->value.data, rn_tensor_bytes(&call->value));
    }
  }
  if (rn_ok(status)) status = give_result(exchange);
  finish(exchange, status);
}

static void on_parts(exchange_t* exchange) {
  int32_t own = exchange->own;
  int64_t first = part_first(exchange, own), n = part_size(exchange, own);
  rn_status_t status = check_pulls(exchange, n);
  if (rn_ok(status)) status = make_result(exchange);
  size_t at = (size_t)first * rn_dtype_size(exchange->like->dtype);
  if (rn_ok(status) && n)
    status = merge_tasks(exchange, first, n, own, (char*)exchange->result.data + at);
  for (int32_t t = 0; rn_ok(status) && n && t < exchange->task_count; ++t)
    if (t != own) status = post(exchange, t, 2, own, t, &exchange->result, first, n);
  if (rn_ok(status)) status = open_round(exchange, exchange->task_count);
  for (int32_t t = 0; rn_ok(status) && t < exchange->task_count; ++t)
    if (t != own && part_size(exchange, t))
      add_pull(exchange, 2, t, t, own, part_size(exchange, t));
  run_round(exchange, on_parts_reduced, status);
}

static rn_status_t start_reduce(exchange_t* exchange) {
  int64_t n = exchange->local.count;
  int32_t own = exchange->own;
  bool is_small = rn_tensor_bytes(&exchange->local) < TWO_ROUNDS;
  int64_t part = (n + exchange->task_count - 1) / exchange->task_count;
  exchange->part = (part + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
  exchange->next = is_small ? on_whole : on_parts;
  for (int32_t t = 0; t < exchange->task_count; ++t) {
    if (t == own) continue;
    if (is_small)
      RN_RETURN_IF_ERROR(post(exchange, t, 0, own, t, &exchange->local, 0, n));
    else if (part_size(exchange, t))
      RN_RETURN_IF_ERROR(post(exchange, t, 1, own, t, &exchange->local, part_first(exchange, t),
                              part_size(exchange, t)));
    if (is_small || part_size(exchange, own))
      add_pull(exchange, !is_small, t, t, own, is_small ? n : part_size(exchange, own));
  }
  return RN_OK;
}

// Rows that are moved, or reduced for each member.

// Member |rank|; NULL if it is on another task.
static rn_collective_t* member_of(const exchange_t* exchange, int32_t rank) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i)
    if (exchange->meeting->ranks[i] == rank) return exchange->meeting->members[i];
  return NULL;
}

static rn_status_t make_outputs(const exchange_t* exchange) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i) {
    rn_collective_t* member = exchange->meeting->members[i];
    RN_RETURN_IF_ERROR(
        rn_tensor_create(member->memory, member->dtype, member->shape, &member->output));
  }
  return RN_OK;
}

// Each member of another task gets its rows of the sum of this task, and the other way round.
static rn_status_t start_scatter(exchange_t* exchange) {
  int64_t n = exchange->local.count / exchange->meeting->group->size;
  for (int32_t r = 0; r < exchange->meeting->group->size; ++r) {
    int32_t task = exchange->task_of[r];
    if (task != exchange->own)
      RN_RETURN_IF_ERROR(post(exchange, task, 0, exchange->own, r, &exchange->local, r * n, n));
    for (int32_t t = 0; task == exchange->own && t < exchange->task_count; ++t)
      if (t != exchange->own) add_pull(exchange, 0, t, t, r, n);
  }
  return RN_OK;
}

static void on_scattered(exchange_t* exchange) {
  int64_t n = exchange->local.count / exchange->meeting->group->size;
  rn_status_t status = check_pulls(exchange, n);
  if (rn_ok(status)) status = make_outputs(exchange);
  for (int32_t i = 0; rn_ok(status) && i < exchange->meeting->count; ++i) {
    int32_t rank = exchange->meeting->ranks[i];
    status = merge_tasks(exchange, rank * n, n, rank, exchange->meeting->members[i]->output.data);
  }
  finish(exchange, status);
}

// Every member gets what each member gives; |slices|: only its own slice of it.
static rn_status_t start_rows(exchange_t* exchange, bool slices) {
  int32_t size = exchange->meeting->group->size;
  for (int32_t i = 0; i < exchange->meeting->count; ++i) {
    const rn_tensor_t* input = exchange->meeting->members[i]->input;
    rn_tensor_t kept = {0};
    int32_t rank = exchange->meeting->ranks[i];
    int64_t n = slices ? input->count / size : input->count;
    rn_status_t status = rn_tensor_keep(input, exchange->like->memory, &kept);
    int32_t targets = slices ? size : exchange->task_count;
    for (int32_t to = 0; rn_ok(status) && to < targets; ++to) {
      int32_t task = slices ? exchange->task_of[to] : to;
      if (task != exchange->own)
        status = post(exchange, task, 0, rank, to, &kept, slices ? to * n : 0, n);
    }
    rn_tensor_clear(&kept);
    RN_RETURN_IF_ERROR(status);
  }
  for (int32_t from = 0; from < size; ++from) {
    int32_t task = exchange->task_of[from];
    if (task == exchange->own) continue;
    int64_t n = exchange->like->input->count;
    if (!slices) add_pull(exchange, 0, task, from, exchange->own, n);
    for (int32_t i = 0; slices && i < exchange->meeting->count; ++i)
      add_pull(exchange, 0, task, from, exchange->meeting->ranks[i], n / size);
  }
  return RN_OK;
}

static void on_gathered(exchange_t* exchange) {
  int64_t n = exchange->like->input->count;
  size_t size = rn_tensor_bytes(exchange->like->input);
  rn_status_t status = check_pulls(exchange, n);
  if (rn_ok(status)) status = make_result(exchange);
  for (int32_t r = 0; rn_ok(status) && size && r < exchange->meeting->group->size; ++r) {
    const rn_collective_t* member = member_of(exchange, r);
    const void* from = member ? member->input->data : pulled(exchange, r, exchange->own)->data;
    memcpy((char*)exchange->result.data + (size_t)r * size, from, size);
  }
  if (rn_ok(status)) status = give_result(exchange);
  finish(exchange, status);
}

static void on_exchanged(exchange_t* exchange) {
  int32_t members = exchange->meeting->group->size;
  size_t size = rn_tensor_bytes(exchange->like->input) / (size_t)members;
  rn_status_t status = check_pulls(exchange, exchange->like->input->count / members);
  if (rn_ok(status)) status = make_outputs(exchange);
  for (int32_t i = 0; rn_ok(status) && size && i < exchange->meeting->count; ++i) {
    int32_t to = exchange->meeting->ranks[i];
    char* out = exchange->meeting->members[i]->output.data;
    for (int32_t from = 0; from < members; ++from) {
      const rn_collective_t* member = member_of(exchange, from);
      const void* data = member ? (const char*)member->input->data + (size_t)to * size
                                : pulled(exchange, from, to)->data;
      memcpy(out + (size_t)from * size, data, size);
    }
  }
  finish(exchange, status);
}

// Broadcasts. Only its own task knows the source, so every task tells every other: the value, or
// that it has none.
static rn_status_t start_broadcast(exchange_t* exchange) {
  const rn_collective_t* source = NULL;
  for (int32_t i = 0; i < exchange->meeting->count; ++i) {
    const rn_collective_t* member = exchange->meeting->members[i];
    if (!member->is_source) continue;
    if (source)
      return rn_internal("Broadcast instance %d has more than one source", source->instance_key);
    source = member;
  }
  if (source) RN_RETURN_IF_ERROR(rn_tensor_keep(source->input, source->memory, &exchange->result));
  for (int32_t t = 0; t < exchange->task_count; ++t) {
    if (t == exchange->own) continue;
    const rn_tensor_t* value = source ? &exchange->result : NULL;
    RN_RETURN_IF_ERROR(post(exchange, t, 0, exchange->own, t, value, 0, value ? value->count : 0));
    add_pull(exchange, 0, t, t, exchange->own, -1);
  }
  return RN_OK;
}

static void on_broadcast(exchange_t* exchange) {
  int sources = rn_tensor_is_set(&exchange->result);
  const rn_collective_t* like = exchange->like;
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < exchange->pull_count; ++i) {
    rn_recv_tensor_t* call = &exchange->pulls[i].call;
    if (call->is_dead) continue;
    if (++sources == 1)
      status = rn_tensor_reshape(&call->value, like->dtype, like->shape, &exchange->result);
  }
  if (rn_ok(status) && sources != 1)
    status = rn_internal("Broadcast instance %d has %d sources", like->instance_key, sources);
  if (rn_ok(status)) status = give_result(exchange);
  finish(exchange, status);
}

// Setting up.

static rn_status_t find_tasks(exchange_t* exchange) {
  const rn_exchange_options_t* options = exchange->options;
  const rn_group_t* group = exchange->meeting->group;
  RN_RETURN_IF_ERROR(rn_alloc_array(options->allocator, (size_t)group->task_count,
                                    sizeof *exchange->tasks, (void**)&exchange->tasks));
  RN_RETURN_IF_ERROR(rn_alloc_array(options->allocator, (size_t)group->size,
                                    sizeof *exchange->task_of, (void**)&exchange->task_of));
  for (int32_t r = 0; r < group->size; ++r) {
    rn_str_t name = group->members[r].task;
    int32_t t = 0;
    while (t < exchange->task_count && !rn_str_eq(exchange->tasks[t].name, name)) t++;
    exchange->task_of[r] = t;
    if (t < exchange->task_count) continue;
    exchange->tasks[t].name = name;
    exchange->tasks[t].incarnation = group->members[r].incarnation;
    exchange->task_count++;
    if (rn_str_eq(name, options->task)) {
      exchange->own = t;
    } else {
      exchange->tasks[t].worker = options->peers.find(options->peers.self, name);
      if (!exchange->tasks[t].worker)
        return rn_invalid_argument("%.*s is not a task of the cluster of %.*s", RN_STR_ARGS(name),
                                   RN_STR_ARGS(options->task));
    }
  }
  return RN_OK;
}

// What this task gives to a reduction: the sum of its members, not divided yet.
static rn_status_t reduce_here(exchange_t* exchange) {
  rn_meeting_t* meeting = exchange->meeting;
  const rn_collective_t* like = exchange->like;
  if (meeting->count == 1) return rn_tensor_keep(like->input, like->memory, &exchange->local);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(like->memory, like->dtype, rn_tensor_shape(like->input), &exchange->local));
  const void** inputs = NULL;
  rn_allocator_t allocator = exchange->options->allocator;
  RN_RETURN_IF_ERROR(
      rn_alloc_array(allocator, (size_t)meeting->count, sizeof *inputs, (void**)&inputs));
  for (int32_t i = 0; i < meeting->count; ++i) inputs[i] = meeting->members[i]->input->data;
  rn_collective_t whole = *like;
  whole.divide = NULL;
  rn_collective_merge(&whole, inputs, meeting->count, exchange->local.data, exchange->local.count);
  RN_FREE_ARRAY(allocator, inputs, (size_t)meeting->count);
  return RN_OK;
}

static rn_status_t start(exchange_t* exchange) {
  int64_t size = exchange->meeting->group->size, count = exchange->meeting->count;
  RN_RETURN_IF_ERROR(find_tasks(exchange));
  switch (exchange->like->kind) {
    case RN_COLLECTIVE_REDUCE:
      RN_RETURN_IF_ERROR(reduce_here(exchange));
      RN_RETURN_IF_ERROR(open_round(exchange, exchange->task_count));
      return start_reduce(exchange);
    case RN_COLLECTIVE_REDUCE_SCATTER:
      exchange->next = on_scattered;
      RN_RETURN_IF_ERROR(reduce_here(exchange));
      RN_RETURN_IF_ERROR(open_round(exchange, exchange->task_count * count));
      return start_scatter(exchange);
    case RN_COLLECTIVE_GATHER:
      exchange->next = on_gathered;
      RN_RETURN_IF_ERROR(open_round(exchange, size));
      return start_rows(exchange, false);
    case RN_COLLECTIVE_ALL_TO_ALL:
      exchange->next = on_exchanged;
      RN_RETURN_IF_ERROR(open_round(exchange, size * count));
      return start_rows(exchange, true);
    case RN_COLLECTIVE_BROADCAST:
      exchange->next = on_broadcast;
      RN_RETURN_IF_ERROR(open_round(exchange, exchange->task_count));
      return start_broadcast(exchange);
    case RN_COLLECTIVE_JOIN:
      break;
  }
  return rn_internal("Unknown collective %d", (int)exchange->like->kind);
}

void rn_exchange_start(const rn_exchange_options_t* options, rn_meeting_t* meeting) {
  exchange_t* exchange = NULL;
  rn_status_t status = RN_NEW(options->allocator, &exchange);
  if (!rn_ok(status)) {
    rn_meeting_end(meeting, status);
    return;
  }
  exchange->options = options;
  exchange->meeting = meeting;
  exchange->like = meeting->members[0];
  snprintf(exchange->instance, sizeof exchange->instance, "%d:%d:%llu:%lld;",
           exchange->like->group_key, exchange->like->instance_key,
           (unsigned long long)exchange->like->frame, (long long)exchange->like->iteration);
  rn_mutex_init(&exchange->mutex);
  status = start(exchange);
  run_round(exchange, exchange->next, status);
}
