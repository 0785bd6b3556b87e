// One instance over several tasks: see exchange.h.
#include "dist/collective/exchange.h"

#include <stdio.h>

#include "collective/compute.h"
#include "dist/collective/exchange_round.h"

// Parts of a tensor begin at multiples of this many elements, so that they are aligned.
#define PART_ALIGN 1024

// Gives the result to all members of this task.
static rn_status_t give_result(rn_exchange_t* exchange) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_share(&exchange->result, &exchange->meeting->members[i]->output));
  return RN_OK;
}

static rn_status_t make_result(rn_exchange_t* exchange) {
  return rn_tensor_create(exchange->like->memory, exchange->like->dtype, exchange->like->shape,
                          &exchange->result);
}

// Reduction.

// Merges |n| elements from |first| on of this task's own values with those that were pulled for
// |to|, in the order of tasks.
static rn_status_t merge_tasks(rn_exchange_t* exchange, int64_t first, int64_t n, int32_t to,
                               void* out) {
  const void** inputs = NULL;
  rn_allocator_t allocator = exchange->options->allocator;
  size_t count = (size_t)exchange->task_count,
         at = (size_t)first * rn_dtype_size(exchange->like->dtype);
  RN_RETURN_IF_ERROR(rn_alloc_array(allocator, count, sizeof *inputs, (void**)&inputs));
  for (int32_t t = 0; t < exchange->task_count; ++t)
    inputs[t] = t == exchange->own ? (const char*)exchange->local.data + at
                                   : rn_exchange_pulled(exchange, t, to)->data;
  rn_collective_merge(exchange->like, inputs, exchange->task_count, out, n);
  RN_FREE_ARRAY(allocator, inputs, count);
  return RN_OK;
}

static int64_t part_first(const rn_exchange_t* exchange, int32_t task) {
  int64_t first = task * exchange->part;
  return first < exchange->local.count ? first : exchange->local.count;
}
static int64_t part_size(const rn_exchange_t* exchange, int32_t task) {
  return part_first(exchange, task + 1) - part_first(exchange, task);
}

static void on_whole(rn_exchange_t* exchange) {
  rn_status_t status = rn_exchange_check(exchange, exchange->local.count);
  if (rn_ok(status)) status = make_result(exchange);
  if (rn_ok(status))
    status = merge_tasks(exchange, 0, exchange->local.count, exchange->own, exchange->result.data);
  if (rn_ok(status)) status = give_result(exchange);
  rn_exchange_finish(exchange, status);
}

static void on_parts_reduced(rn_exchange_t* exchange) {
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
  rn_exchange_finish(exchange, status);
}

static void on_parts(rn_exchange_t* exchange) {
  int32_t own = exchange->own;
  int64_t first = part_first(exchange, own), n = part_size(exchange, own);
  rn_status_t status = rn_exchange_check(exchange, n);
  if (rn_ok(status)) status = make_result(exchange);
  size_t at = (size_t)first * rn_dtype_size(exchange->like->dtype);
  if (rn_ok(status) && n)
    status = merge_tasks(exchange, first, n, own, (char*)exchange->result.data + at);
  for (int32_t t = 0; rn_ok(status) && n && t < exchange->task_count; ++t)
    if (t != own) status = rn_exchange_post(exchange, t, 2, own, t, &exchange->result, first, n);
  if (rn_ok(status)) status = rn_exchange_open(exchange, exchange->task_count);
  for (int32_t t = 0; rn_ok(status) && t < exchange->task_count; ++t)
    if (t != own && part_size(exchange, t))
      rn_exchange_pull(exchange, 2, t, t, own, part_size(exchange, t));
  rn_exchange_run(exchange, on_parts_reduced, status);
}

static rn_status_t start_reduce(rn_exchange_t* exchange) {
  int64_t n = exchange->local.count;
  int32_t own = exchange->own;
  bool is_small = rn_tensor_bytes(&exchange->local) < RN_EXCHANGE_LARGE;
  int64_t part = (n + exchange->task_count - 1) / exchange->task_count;
  exchange->part = (part + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
  exchange->next = is_small ? on_whole : on_parts;
  for (int32_t t = 0; t < exchange->task_count; ++t) {
    if (t == own) continue;
    if (is_small)
      RN_RETURN_IF_ERROR(rn_exchange_post(exchange, t, 0, own, t, &exchange->local, 0, n));
    else if (part_size(exchange, t))
      RN_RETURN_IF_ERROR(rn_exchange_post(exchange, t, 1, own, t, &exchange->local,
                                          part_first(exchange, t), part_size(exchange, t)));
    if (is_small || part_size(exchange, own))
      rn_exchange_pull(exchange, !is_small, t, t, own, is_small ? n : part_size(exchange, own));
  }
  return RN_OK;
}

// Rows that are moved, or reduced for each member.

// Member |rank|; NULL if it is on another task.
static rn_collective_t* member_of(const rn_exchange_t* exchange, int32_t rank) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i)
    if (exchange->meeting->ranks[i] == rank) return exchange->meeting->members[i];
  return NULL;
}

static rn_status_t make_outputs(const rn_exchange_t* exchange) {
  for (int32_t i = 0; i < exchange->meeting->count; ++i) {
    rn_collective_t* member = exchange->meeting->members[i];
    RN_RETURN_IF_ERROR(
        rn_tensor_create(member->memory, member->dtype, member->shape, &member->output));
  }
  return RN_OK;
}

// Each member of another task gets its rows of the sum of this task, and the other way round.
static rn_status_t start_scatter(rn_exchange_t* exchange) {
  int64_t n = exchange->local.count / exchange->meeting->group->size;
  for (int32_t r = 0; r < exchange->meeting->group->size; ++r) {
    int32_t task = exchange->task_of[r];
    if (task != exchange->own)
      RN_RETURN_IF_ERROR(
          rn_exchange_post(exchange, task, 0, exchange->own, r, &exchange->local, r * n, n));
    for (int32_t t = 0; task == exchange->own && t < exchange->task_count; ++t)
      if (t != exchange->own) rn_exchange_pull(exchange, 0, t, t, r, n);
  }
  return RN_OK;
}

static void on_scattered(rn_exchange_t* exchange) {
  int64_t n = exchange->local.count / exchange->meeting->group->size;
  rn_status_t status = rn_exchange_check(exchange, n);
  if (rn_ok(status)) status = make_outputs(exchange);
  for (int32_t i = 0; rn_ok(status) && i < exchange->meeting->count; ++i) {
    int32_t rank = exchange->meeting->ranks[i];
    status = merge_tasks(exchange, rank * n, n, rank, exchange->meeting->members[i]->output.data);
  }
  rn_exchange_finish(exchange, status);
}

// Every member gets what each member gives; |slices|: only its own slice of it.
static rn_status_t start_rows(rn_exchange_t* exchange, bool slices) {
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
        status = rn_exchange_post(exchange, task, 0, rank, to, &kept, slices ? to * n : 0, n);
    }
    rn_tensor_clear(&kept);
    RN_RETURN_IF_ERROR(status);
  }
  for (int32_t from = 0; from < size; ++from) {
    int32_t task = exchange->task_of[from];
    if (task == exchange->own) continue;
    int64_t n = exchange->like->input->count;
    if (!slices) rn_exchange_pull(exchange, 0, task, from, exchange->own, n);
    for (int32_t i = 0; slices && i < exchange->meeting->count; ++i)
      rn_exchange_pull(exchange, 0, task, from, exchange->meeting->ranks[i], n / size);
  }
  return RN_OK;
}

static void on_gathered(rn_exchange_t* exchange) {
  int64_t n = exchange->like->input->count;
  size_t size = rn_tensor_bytes(exchange->like->input);
  rn_status_t status = rn_exchange_check(exchange, n);
  if (rn_ok(status)) status = make_result(exchange);
  for (int32_t r = 0; rn_ok(status) && size && r < exchange->meeting->group->size; ++r) {
    const rn_collective_t* member = member_of(exchange, r);
    const void* from =
        member ? member->input->data : rn_exchange_pulled(exchange, r, exchange->own)->data;
    memcpy((char*)exchange->result.data + (size_t)r * size, from, size);
  }
  if (rn_ok(status)) status = give_result(exchange);
  rn_exchange_finish(exchange, status);
}

static void on_exchanged(rn_exchange_t* exchange) {
  int32_t members = exchange->meeting->group->size;
  size_t size = rn_tensor_bytes(exchange->like->input) / (size_t)members;
  rn_status_t status = rn_exchange_check(exchange, exchange->like->input->count / members);
  if (rn_ok(status)) status = make_outputs(exchange);
  for (int32_t i = 0; rn_ok(status) && size && i < exchange->meeting->count; ++i) {
    int32_t to = exchange->meeting->ranks[i];
    char* out = exchange->meeting->members[i]->output.data;
    for (int32_t from = 0; from < members; ++from) {
      const rn_collective_t* member = member_of(exchange, from);
      const void* data = member ? (const char*)member->input->data + (size_t)to * size
                                : rn_exchange_pulled(exchange, from, to)->data;
      memcpy(out + (size_t)from * size, data, size);
    }
  }
  rn_exchange_finish(exchange, status);
}

// Broadcasts. Only its own task knows the source, so every task tells every other: the value, or
// that it has none.
static rn_status_t start_broadcast(rn_exchange_t* exchange) {
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
    RN_RETURN_IF_ERROR(
        rn_exchange_post(exchange, t, 0, exchange->own, t, value, 0, value ? value->count : 0));
    rn_exchange_pull(exchange, 0, t, t, exchange->own, -1);
  }
  return RN_OK;
}

static void on_broadcast(rn_exchange_t* exchange) {
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
  rn_exchange_finish(exchange, status);
}

// Setting up.

static rn_status_t find_tasks(rn_exchange_t* exchange) {
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
static rn_status_t reduce_here(rn_exchange_t* exchange) {
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

static rn_status_t start(rn_exchange_t* exchange) {
  int64_t size = exchange->meeting->group->size, count = exchange->meeting->count;
  RN_RETURN_IF_ERROR(find_tasks(exchange));
  RN_RETURN_IF_ERROR(rn_meeting_take_failure(exchange->meeting));
  switch (exchange->like->kind) {
    case RN_COLLECTIVE_REDUCE:
      RN_RETURN_IF_ERROR(reduce_here(exchange));
      RN_RETURN_IF_ERROR(rn_exchange_open(exchange, exchange->task_count));
      return start_reduce(exchange);
    case RN_COLLECTIVE_REDUCE_SCATTER:
      exchange->next = on_scattered;
      RN_RETURN_IF_ERROR(reduce_here(exchange));
      RN_RETURN_IF_ERROR(rn_exchange_open(exchange, exchange->task_count * count));
      return start_scatter(exchange);
    case RN_COLLECTIVE_GATHER:
      exchange->next = on_gathered;
      RN_RETURN_IF_ERROR(rn_exchange_open(exchange, size));
      return start_rows(exchange, false);
    case RN_COLLECTIVE_ALL_TO_ALL:
      exchange->next = on_exchanged;
      RN_RETURN_IF_ERROR(rn_exchange_open(exchange, size * count));
      return start_rows(exchange, true);
    case RN_COLLECTIVE_BROADCAST:
      exchange->next = on_broadcast;
      RN_RETURN_IF_ERROR(rn_exchange_open(exchange, exchange->task_count));
      return start_broadcast(exchange);
    case RN_COLLECTIVE_JOIN:
      break;
  }
  return rn_internal("Unknown collective %d", (int)exchange->like->kind);
}

static rn_status_t make(const rn_exchange_options_t* options, rn_meeting_t* meeting,
                        rn_exchange_t** out) {
  rn_exchange_t* exchange = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &exchange));
  exchange->options = options;
  exchange->meeting = meeting;
  exchange->like = meeting->members[0];
  char piece[16] = "";
  if (meeting->piece) snprintf(piece, sizeof piece, ".%d", meeting->piece);
  snprintf(exchange->instance, sizeof exchange->instance, "%d:%d:%llu:%lld%s;",
           exchange->like->group_key, exchange->like->instance_key,
           (unsigned long long)exchange->like->frame, (long long)exchange->like->iteration, piece);
  rn_mutex_init(&exchange->mutex);
  *out = exchange;
  return RN_OK;
}

void rn_exchange_start(const rn_exchange_options_t* options, rn_meeting_t* meeting) {
  rn_exchange_t* exchange = NULL;
  rn_status_t status = make(options, meeting, &exchange);
  if (!exchange) {
    rn_status_free(rn_meeting_take_failure(meeting));
    rn_meeting_end(meeting, status);
    return;
  }
  status = start(exchange);
  rn_exchange_run(exchange, exchange->next, status);
}

// Watching: every task fetches from each other what that one leaves when it has ended.

static void on_all_told(rn_exchange_t* exchange) { rn_exchange_finish(exchange, RN_OK); }

static rn_status_t start_watch(rn_exchange_t* exchange) {
  RN_RETURN_IF_ERROR(find_tasks(exchange));
  RN_RETURN_IF_ERROR(rn_meeting_take_failure(exchange->meeting));
  RN_RETURN_IF_ERROR(rn_exchange_open(exchange, exchange->task_count));
  for (int32_t t = 0; t < exchange->task_count; ++t)
    if (t != exchange->own) rn_exchange_pull(exchange, 0, t, t, exchange->own, -1);
  return RN_OK;
}

void rn_exchange_watch(const rn_exchange_options_t* options, rn_meeting_t* meeting) {
  rn_exchange_t* exchange = NULL;
  rn_status_t status = make(options, meeting, &exchange);
  meeting->data = exchange;
  if (!exchange) {  // the end of the meeting says so
    rn_status_free(rn_meeting_take_failure(meeting));
    meeting->failure = status;
    return;
  }
  exchange->held = 1;
  status = start_watch(exchange);
  rn_exchange_run(exchange, on_all_told, status);
}

void rn_exchange_tell(rn_meeting_t* meeting, rn_status_t status) {
  rn_exchange_t* exchange = meeting->data;
  if (!exchange) {
    rn_status_free(status);
    rn_meeting_end(meeting, rn_meeting_take_failure(meeting));
    return;
  }
  for (int32_t t = 0; rn_ok(status) && t < exchange->task_count; ++t)
    if (t != exchange->own) status = rn_exchange_post(exchange, t, 0, exchange->own, t, NULL, 0, 0);
  rn_exchange_release(exchange, status);
}
