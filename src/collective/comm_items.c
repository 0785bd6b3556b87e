// Instances that run by a library of the cards: see comms.h.
#include "base/container.h"
#include "collective/comms.h"
#include "device/device.h"

// What a member says when it comes: form, number of elements, whether it broadcasts, and the
// attempt at which it is connected (negative: it was).
enum { ARRIVE_FORM, ARRIVE_COUNT, ARRIVE_SOURCE, ARRIVE_ATTEMPT, ARRIVE_WIDTH };

void rn_comm_item_end(rn_comm_item_t* item, rn_status_t status) {
  rn_local_comm_t* comm = item->comm;
  rn_meeting_t* meeting = &item->meeting->face;
  rn_allocator_t allocator = comm->owner->allocator;
  if (item->is_linked) rn_cancel_remove(&meeting->cancel, &item->gone);
  rn_side_destroy(item->arrive);
  rn_side_destroy(item->order);
  rn_side_destroy(item->watch);
  RN_FREE(allocator, item);
  rn_meeting_end(meeting, status);
  rn_comm_leave(comm);
}

// Lets |item| go through host memory after all.
static void fall_back(rn_comm_item_t* item) {
  rn_local_meeting_t* meeting = item->meeting;
  rn_local_comm_t* comm = item->comm;
  if (item->is_linked) rn_cancel_remove(&meeting->face.cancel, &item->gone);
  rn_side_destroy(item->arrive);
  RN_FREE(comm->owner->allocator, item);
  rn_local_meeting_stage(meeting);
  rn_comm_leave(comm);
}

// The queue, in the order of numbers.

static void enqueue_locked(rn_local_comm_t* comm, rn_comm_item_t* item, int64_t number) {
  rn_comm_item_t** at = &comm->queue;
  item->phase = RN_COMM_QUEUED;
  item->number = number;
  while (*at && (*at)->number < number) at = &(*at)->next;
  item->next = *at;
  *at = item;
  rn_cond_broadcast(&comm->changed);
}

// The communicator that |item| was numbered for works no more.
static void break_locked(rn_comm_item_t* item) {
  rn_local_comm_t* comm = item->comm;
  if (comm->state != RN_COMM_READY || comm->attempt != item->attempt) return;
  comm->state = RN_COMM_BROKEN;
  atomic_store(&comm->is_over, true);
  rn_cond_broadcast(&comm->changed);
}

static bool unlink_locked(rn_comm_item_t** list, rn_comm_item_t* item) {
  for (rn_comm_item_t** at = list; *at; at = &(*at)->next) {
    if (*at != item) continue;
    *at = item->next;
    return true;
  }
  return false;
}

void rn_comm_item_on_gone(rn_cancel_entry_t* entry) {
  rn_comm_item_t* item = RN_CONTAINER_OF(entry, rn_comm_item_t, gone);
  rn_local_comm_t* comm = item->comm;
  rn_mutex_lock(&comm->mutex);
  item->is_gone = true;
  // Others may have started what is queued: the thread tells them.
  bool ends = item->phase == RN_COMM_WAITING && unlink_locked(&comm->waiting, item);
  if (item->phase == RN_COMM_RUNNING) atomic_store(&comm->is_over, true);
  if (item->phase == RN_COMM_QUEUED) rn_cond_broadcast(&comm->changed);
  rn_mutex_unlock(&comm->mutex);
  if (ends) rn_comm_item_end(item, rn_cancelled("op cancelled"));
}

// What all members must agree on.
static int64_t form_of(const rn_collective_t* member) {
  return (int64_t)member->kind << 32 | (int64_t)member->dtype << 16 |
         (int64_t)member->merge_op << 1 | (member->divide != NULL);
}

static void fill_arrival(rn_comm_item_t* item, int64_t attempt) {
  const rn_meeting_t* meeting = &item->meeting->face;
  for (int32_t i = 0; i < meeting->count; ++i) {
    const rn_collective_t* member = meeting->members[i];
    int64_t* row = item->arrive->rows + (size_t)i * ARRIVE_WIDTH;
    int64_t count = 0;
    (void)rn_shape_count(member->shape, &count);
    row[ARRIVE_FORM] = form_of(member);
    row[ARRIVE_COUNT] = count;
    row[ARRIVE_SOURCE] = member->is_source;
    row[ARRIVE_ATTEMPT] = attempt;
  }
}

// What all members say: whether they agree, and who broadcasts.
static rn_status_t read_arrivals(rn_comm_item_t* item, bool* out_is_ready, int64_t* out_attempt) {
  const rn_collective_t* like = item->meeting->face.members[0];
  const int64_t* table = rn_side_table(item->arrive);
  int32_t sources = 0;
  *out_is_ready = true;
  *out_attempt = 0;
  for (int32_t r = 0; r < item->comm->group->size; ++r) {
    const int64_t* row = table + (size_t)r * ARRIVE_WIDTH;
    if (row[ARRIVE_FORM] != table[ARRIVE_FORM] || row[ARRIVE_COUNT] != table[ARRIVE_COUNT])
      return rn_invalid_argument(
          "Shape mismatch in a collective: the members of instance %d have values of another type "
          "or number",
          like->instance_key);
    if (row[ARRIVE_SOURCE]) item->source = r;
    sources += row[ARRIVE_SOURCE] != 0;
    int64_t attempt = row[ARRIVE_ATTEMPT] < 0 ? -row[ARRIVE_ATTEMPT] : row[ARRIVE_ATTEMPT];
    if (row[ARRIVE_ATTEMPT] != table[ARRIVE_ATTEMPT] || row[ARRIVE_ATTEMPT] < 0)
      *out_is_ready = false;
    if (attempt > *out_attempt) *out_attempt = attempt;
  }
  if (like->kind == RN_COLLECTIVE_BROADCAST && sources != 1)
    return rn_internal("Broadcast instance %d has %d sources", like->instance_key, (int)sources);
  return RN_OK;
}

// Runs |item| for the sake of the other tasks, which may have started it: it fails.
static void fail_numbered(rn_comm_item_t* item, rn_status_t status) {
  rn_local_comm_t* comm = item->comm;
  rn_mutex_lock(&comm->mutex);
  item->is_gone = true;
  break_locked(item);
  enqueue_locked(comm, item, INT64_MAX);
  rn_mutex_unlock(&comm->mutex);
  rn_status_free(status);
}

static void on_ordered(rn_side_t* side, rn_status_t status) {
  rn_comm_item_t* item = side->arg;
  rn_local_comm_t* comm = item->comm;
  if (!rn_ok(status)) {
    fail_numbered(item, status);
    return;
  }
  rn_mutex_lock(&comm->mutex);
  enqueue_locked(comm, item, rn_side_table(side)[0]);
  rn_mutex_unlock(&comm->mutex);
}

static void on_arrived(rn_side_t* side, rn_status_t status) {
  rn_comm_item_t* item = side->arg;
  rn_local_comm_t* comm = item->comm;
  rn_meeting_t* meeting = &item->meeting->face;
  bool is_ready = false;
  int64_t attempt = 0;
  if (rn_ok(status)) status = read_arrivals(item, &is_ready, &attempt);
  if (rn_ok(status) && is_ready) status = rn_side_create(meeting, RN_SIDE_ORDER, 1, &item->order);
  if (!rn_ok(status)) {
    rn_comm_item_end(item, status);
    return;
  }
  rn_mutex_lock(&comm->mutex);
  item->attempt = attempt;
  if (!is_ready)
    rn_comm_resolve_locked(comm, meeting, attempt + 1);
  else if (comm->has_rank_0)
    item->order->rows[0] = comm->next_number++;
  rn_mutex_unlock(&comm->mutex);
  if (!is_ready) {
    fall_back(item);
    return;
  }
  item->order->done = on_ordered;
  item->order->arg = item;
  rn_side_gather(item->order, &meeting->cancel);
}

// The members of this process are all: no table is needed.
static void begin_here(rn_comm_item_t* item) {
  rn_local_comm_t* comm = item->comm;
  const rn_meeting_t* meeting = &item->meeting->face;
  int32_t sources = 0;
  for (int32_t i = 0; i < meeting->count; ++i) {
    if (!meeting->members[i]->is_source) continue;
    item->source = meeting->ranks[i];
    sources++;
  }
  if (meeting->members[0]->kind == RN_COLLECTIVE_BROADCAST && sources != 1) {
    rn_comm_item_end(item, rn_internal("Broadcast instance %d has %d sources",
                                       meeting->members[0]->instance_key, (int)sources));
    return;
  }
  rn_mutex_lock(&comm->mutex);
  bool is_gone = item->is_gone;
  item->attempt = comm->attempt;
  if (!is_gone) enqueue_locked(comm, item, comm->next_number++);
  rn_mutex_unlock(&comm->mutex);
  if (is_gone) rn_comm_item_end(item, rn_cancelled("op cancelled"));
}

void rn_comm_item_begin(rn_comm_item_t* item) {
  rn_local_comm_t* comm = item->comm;
  rn_meeting_t* meeting = &item->meeting->face;
  rn_mutex_lock(&comm->mutex);
  rn_comm_state_t state = comm->state;
  int64_t attempt = state == RN_COMM_READY ? comm->attempt : -comm->attempt;
  rn_mutex_unlock(&comm->mutex);
  if (state == RN_COMM_ON_HOST) {
    fall_back(item);
    return;
  }
  if (!comm->spans) {
    begin_here(item);
    return;
  }
  rn_status_t status = rn_side_create(meeting, RN_SIDE_ARRIVE, ARRIVE_WIDTH, &item->arrive);
  if (rn_ok(status)) status = rn_side_create(meeting, RN_SIDE_WATCH, 1, &item->watch);
  if (!rn_ok(status)) {
    rn_comm_item_end(item, status);
    return;
  }
  fill_arrival(item, attempt);
  item->arrive->done = on_arrived;
  item->arrive->arg = item;
  rn_side_gather(item->arrive, &meeting->cancel);
}

// The thread.

static void on_watched(rn_side_t* side, rn_status_t status) {
  rn_comm_item_t* item = side->arg;
  rn_local_comm_t* comm = item->comm;
  if (!rn_ok(status)) {  // another task has broken it
    rn_mutex_lock(&comm->mutex);
    break_locked(item);
    rn_mutex_unlock(&comm->mutex);
  }
  rn_comm_item_end(item, status);
}

static void on_other_lost(rn_cancel_entry_t* entry) {
  rn_comm_item_t* item = RN_CONTAINER_OF(entry, rn_comm_item_t, lost);
  atomic_store(&item->comm->is_over, true);
}

static rn_status_t run(rn_comm_item_t* item) {
  rn_local_comm_t* comm = item->comm;
  rn_meeting_t* meeting = &item->meeting->face;
  for (int32_t i = 0; i < meeting->count; ++i) {
    rn_collective_t* member = meeting->members[i];
    RN_RETURN_IF_ERROR(
        rn_tensor_create(member->memory, member->dtype, member->shape, &member->output));
  }
  return comm->library->run(comm->made, meeting->members, item->source, &comm->is_over);
}

void rn_comm_item_run(rn_comm_item_t* item) {
  rn_local_comm_t* comm = item->comm;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&comm->mutex);
  item->phase = RN_COMM_RUNNING;
  if (item->is_gone)
    status = rn_cancelled("op cancelled");
  else if (comm->state != RN_COMM_READY || comm->attempt != item->attempt)
    status = rn_aborted("The connection of group %d by %s was aborted", comm->group->key,
                        comm->library->name);
  else
    atomic_store(&comm->is_over, false);
  rn_mutex_unlock(&comm->mutex);
  bool is_linked = false;
  if (comm->spans) {
    item->watch->done = on_watched;
    item->watch->arg = item;
    item->lost.fn = on_other_lost;
    rn_side_watch(item->watch, &item->meeting->face.cancel);
    is_linked = rn_cancel_add(&item->watch->face.cancel, &item->lost);
    if (rn_ok(status) && !is_linked) status = rn_cancelled("op cancelled");
  }
  bool runs = rn_ok(status);
  if (runs) status = run(item);
  if (is_linked) rn_cancel_remove(&item->watch->face.cancel, &item->lost);
  rn_mutex_lock(&comm->mutex);
  if (!rn_ok(status) && (comm->spans || runs)) break_locked(item);
  rn_mutex_unlock(&comm->mutex);
  if (comm->spans)
    rn_side_tell(item->watch, status);
  else
    rn_comm_item_end(item, status);
}
