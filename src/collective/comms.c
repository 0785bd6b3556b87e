// Communicators of groups: see comms.h.
#include "collective/comms.h"

#include "base/container.h"
#include "base/log.h"
#include "device/device.h"

// What a member says when its group is resolved: its card, the version of its library (0: none),
// and, if it has rank 0, what all connect by.
enum { SAID_CARD, SAID_VERSION = 2, SAID_ID, SAID_WIDTH = SAID_ID + RN_COMM_ID_SIZE / 8 };

static void hold(rn_local_comm_t* comm) {
  rn_mutex_lock(&comm->mutex);
  comm->busy++;
  rn_mutex_unlock(&comm->mutex);
}

void rn_comm_leave(rn_local_comm_t* comm) {
  rn_mutex_lock(&comm->mutex);
  comm->busy--;
  rn_cond_broadcast(&comm->changed);
  rn_mutex_unlock(&comm->mutex);
}

// Sets the state and takes the items that waited for it, as a list by |next|.
static rn_comm_item_t* take_waiting(rn_local_comm_t* comm, rn_comm_state_t state) {
  rn_mutex_lock(&comm->mutex);
  rn_comm_item_t* first = comm->waiting;
  comm->waiting = NULL;
  comm->state = state;
  for (rn_comm_item_t* each = first; each; each = each->next) each->phase = RN_COMM_AGREEING;
  rn_mutex_unlock(&comm->mutex);
  return first;
}

// The group is resolved: those that wait for it go on.
static void go_on(rn_local_comm_t* comm, rn_comm_state_t state) {
  rn_comm_item_t* item = take_waiting(comm, state);
  while (item) {
    rn_comm_item_t* next = item->next;
    item->next = NULL;
    rn_comm_item_begin(item);
    item = next;
  }
}

// Those that wait end with |status|, which this takes. The next instance resolves again.
static void give_up(rn_local_comm_t* comm, rn_status_t status) {
  rn_comm_item_t* item = take_waiting(comm, RN_COMM_BROKEN);
  while (item) {
    rn_comm_item_t* next = item->next;
    rn_comm_item_end(item, rn_status_copy(status));
    item = next;
  }
  rn_status_free(status);
}

// Takes |why|, which is not to be an error of the instances.
static void use_host(rn_local_comm_t* comm, rn_status_t why) {
  rn_log(comm->owner->env, RN_LOG_WARNING,
         "Collectives of group %d go through host memory, without %s: %s", comm->group->key,
         comm->library->name, rn_status_message(why));
  rn_status_free(why);
  go_on(comm, RN_COMM_ON_HOST);
}

// Resolving.

// Whether the members can connect, by what all of them have said.
static rn_status_t decide(rn_local_comm_t* comm, const int64_t* table) {
  const rn_group_t* group = comm->group;
  for (int32_t r = 0; r < group->size; ++r) {
    const int64_t* row = table + (size_t)r * SAID_WIDTH;
    rn_str_t device = group->members[r].device;
    if (!row[SAID_VERSION]) return rn_not_found("%.*s does not have it", RN_STR_ARGS(device));
    if (row[SAID_VERSION] != table[SAID_VERSION])
      return rn_failed_precondition("%.*s has another version of it than %.*s", RN_STR_ARGS(device),
                                    RN_STR_ARGS(group->members[0].device));
    for (int32_t other = 0; other < r; ++other)
      if (memcmp(row, table + (size_t)other * SAID_WIDTH, 2 * sizeof *row) == 0)
        return rn_failed_precondition("%.*s and %.*s are on one card", RN_STR_ARGS(device),
                                      RN_STR_ARGS(group->members[other].device));
  }
  return RN_OK;
}

static void on_resolved(rn_side_t* side, rn_status_t status) {
  rn_local_comm_t* comm = side->arg;
  if (!rn_ok(status)) {
    give_up(comm, status);
    rn_comm_leave(comm);
    return;
  }
  const int64_t* table = rn_side_table(side);
  status = comm->missing;
  comm->missing = RN_OK;
  if (rn_ok(status)) status = decide(comm, table);
  rn_mutex_lock(&comm->mutex);
  if (rn_ok(status)) {
    memcpy(comm->id, table + SAID_ID, sizeof comm->id);
    comm->wants_connect = true;
    rn_cond_broadcast(&comm->changed);
  }
  rn_mutex_unlock(&comm->mutex);
  if (!rn_ok(status)) use_host(comm, status);
  rn_comm_leave(comm);
}

// What the members of this process say. Without the library they say so.
static void introduce(rn_local_comm_t* comm, const rn_meeting_t* like) {
  for (int32_t i = 0; i < like->count; ++i) {
    rn_device_t* device = like->members[i]->device;
    int64_t* row = comm->resolve->rows + (size_t)i * SAID_WIDTH;
    rn_comm_identity_t identity;
    rn_status_t status = comm->library->identify(device, &identity);
    if (rn_ok(status) && like->ranks[i] == 0)
      status = comm->library->make_id(device, (char*)(row + SAID_ID));
    if (rn_ok(status)) {
      memcpy(row + SAID_CARD, identity.card, sizeof identity.card);
      row[SAID_VERSION] = identity.version;
    }
    comm->missing = rn_status_join(comm->missing, status);
  }
}

static rn_status_t prepare(rn_local_comm_t* comm, const rn_meeting_t* like) {
  rn_allocator_t allocator = comm->owner->allocator;
  rn_device_t** devices = NULL;
  rn_side_destroy(comm->resolve);
  rn_side_destroy(comm->watch);
  comm->resolve = comm->watch = NULL;
  RN_RETURN_IF_ERROR(rn_side_create(like, 0, SAID_WIDTH, &comm->resolve));
  if (comm->spans) RN_RETURN_IF_ERROR(rn_side_create(like, RN_SIDE_WATCH, 1, &comm->watch));
  introduce(comm, like);
  if (rn_ok(comm->missing)) {
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)like->count, &devices));
    for (int32_t i = 0; i < like->count; ++i) devices[i] = like->members[i]->device;
    const rn_comm_members_t members = {devices, like->ranks, like->count, like->group->size};
    comm->library->destroy(comm->fresh);
    comm->fresh = NULL;
    comm->missing = comm->library->create(&members, &comm->fresh);
    RN_FREE_ARRAY(allocator, devices, (size_t)like->count);
  }
  rn_side_t* const sides[] = {comm->resolve, comm->watch};
  for (int s = 0; s < 2; ++s)
    for (int32_t i = 0; sides[s] && i < like->count; ++i) {
      sides[s]->requests[i].step = sides[s]->requests[i].instance_key = 0;
      sides[s]->requests[i].frame = RN_SIDE_OF_GROUP;
      sides[s]->requests[i].iteration = comm->attempt;
    }
  return RN_OK;
}

void rn_comm_resolve_locked(rn_local_comm_t* comm, const rn_meeting_t* like, int64_t attempt) {
  if (comm->attempt >= attempt || comm->state == RN_COMM_RESOLVING) return;
  comm->attempt = attempt;
  comm->state = RN_COMM_RESOLVING;
  comm->busy++;
  // The lock is released: nothing else touches the sides while the state is this one.
  rn_mutex_unlock(&comm->mutex);
  rn_status_t status = prepare(comm, like);
  if (rn_ok(status)) {
    comm->resolve->done = on_resolved;
    comm->resolve->arg = comm;
    rn_side_gather(comm->resolve, &comm->cancel);
  } else {
    give_up(comm, status);
    rn_comm_leave(comm);
  }
  rn_mutex_lock(&comm->mutex);
}

// Connecting, on the thread.

static void end_connecting(rn_local_comm_t* comm, rn_status_t status) {
  if (rn_ok(status))
    go_on(comm, RN_COMM_READY);
  else if (rn_is_cancelled(&comm->cancel))
    give_up(comm, status);
  else
    use_host(comm, status);
  rn_comm_leave(comm);
}

static void on_all_connected(rn_side_t* side, rn_status_t status) {
  end_connecting(side->arg, status);
}

static void on_other_lost(rn_cancel_entry_t* entry) {
  atomic_store(&RN_CONTAINER_OF(entry, rn_local_comm_t, lost)->is_over, true);
}

// With the lock, which it releases meanwhile.
static void connect_locked(rn_local_comm_t* comm) {
  rn_comm_t* old = comm->made;
  comm->made = comm->fresh;
  comm->fresh = NULL;
  comm->wants_connect = false;
  comm->next_number = comm->next_run = 0;
  comm->busy++;
  atomic_store(&comm->is_over, false);
  rn_mutex_unlock(&comm->mutex);
  comm->library->destroy(old);
  rn_status_t status = RN_OK;
  rn_cancel_t* watched = comm->spans ? &comm->watch->face.cancel : &comm->cancel;
  if (comm->spans) {
    comm->watch->done = on_all_connected;
    comm->watch->arg = comm;
    rn_side_watch(comm->watch, &comm->cancel);
  }
  comm->lost.fn = on_other_lost;
  bool is_linked = rn_cancel_add(watched, &comm->lost);
  if (!is_linked) status = rn_cancelled("op cancelled");
  if (rn_ok(status)) status = comm->library->connect(comm->made, comm->id, &comm->is_over);
  if (is_linked) rn_cancel_remove(watched, &comm->lost);
  if (comm->spans)
    rn_side_tell(comm->watch, status);
  else
    end_connecting(comm, status);
  rn_mutex_lock(&comm->mutex);
}

// The next item to run: that of the next number, or one that cannot run any more.
static rn_comm_item_t* take_locked(rn_local_comm_t* comm) {
  for (rn_comm_item_t** at = &comm->queue; *at; at = &(*at)->next) {
    rn_comm_item_t* item = *at;
    bool is_over = comm->state != RN_COMM_READY || item->attempt != comm->attempt || item->is_gone;
    bool is_next = item->attempt == comm->attempt && item->number == comm->next_run;
    if (!is_over && !is_next) continue;
    *at = item->next;
    item->next = NULL;
    comm->next_run += is_next;
    return item;
  }
  return NULL;
}

static void* serve(void* arg) {
  rn_local_comm_t* comm = arg;
  rn_mutex_lock(&comm->mutex);
  for (;;) {
    rn_comm_item_t* item = take_locked(comm);
    if (item) {
      rn_mutex_unlock(&comm->mutex);
      rn_comm_item_run(item);
      rn_mutex_lock(&comm->mutex);
    } else if (comm->wants_connect) {
      connect_locked(comm);
    } else if (comm->state == RN_COMM_BROKEN && comm->made) {
      rn_comm_t* broken = comm->made;  // others hang until it is aborted
      comm->made = NULL;
      rn_mutex_unlock(&comm->mutex);
      comm->library->destroy(broken);
      rn_mutex_lock(&comm->mutex);
    } else if (comm->is_stopped) {
      break;
    } else {
      rn_cond_wait(&comm->changed, &comm->mutex);
    }
  }
  rn_mutex_unlock(&comm->mutex);
  return NULL;
}

// The table of communicators, guarded by the mutex of the collectives.

static void comm_destroy(rn_local_comm_t* comm) {
  rn_local_collectives_t* owner = comm->owner;
  rn_cancel(&comm->cancel);
  rn_mutex_lock(&comm->mutex);
  atomic_store(&comm->is_over, true);
  while (comm->busy) rn_cond_wait(&comm->changed, &comm->mutex);
  comm->is_stopped = true;
  rn_cond_broadcast(&comm->changed);
  rn_mutex_unlock(&comm->mutex);
  if (comm->has_thread) pthread_join(comm->thread, NULL);
  comm->library->destroy(comm->made);
  comm->library->destroy(comm->fresh);
  rn_side_destroy(comm->resolve);
  rn_side_destroy(comm->watch);
  rn_status_free(comm->missing);
  rn_mutex_lock(&owner->mutex);
  rn_group_release(&owner->groups, comm->group);
  rn_mutex_unlock(&owner->mutex);
  rn_cancel_destroy(&comm->cancel);
  rn_cond_destroy(&comm->changed);
  rn_mutex_destroy(&comm->mutex);
  RN_FREE(owner->allocator, comm);
}

static rn_status_t comm_create_locked(const rn_meeting_t* meeting, const rn_comm_library_t* library,
                                      rn_local_comm_t** out) {
  rn_local_collectives_t* owner = meeting->owner;
  rn_local_comm_t* comm = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(owner->allocator, &comm));
  comm->owner = owner;
  comm->group = meeting->group;
  comm->group->refs++;
  comm->library = library;
  comm->spans = meeting->count < meeting->group->size;
  comm->has_rank_0 = meeting->ranks[0] == 0;
  comm->state = RN_COMM_BROKEN;
  rn_cancel_init(&comm->cancel);
  rn_mutex_init(&comm->mutex);
  rn_cond_init(&comm->changed);
  comm->has_thread = pthread_create(&comm->thread, NULL, serve, comm) == 0;
  if (!comm->has_thread) {
    comm->group->refs--;
    rn_cancel_destroy(&comm->cancel);
    rn_cond_destroy(&comm->changed);
    rn_mutex_destroy(&comm->mutex);
    RN_FREE(owner->allocator, comm);
    return rn_resource_exhausted("No thread for collectives by %s", library->name);
  }
  comm->next = owner->comms;
  owner->comms = comm;
  *out = comm;
  return RN_OK;
}

static bool is_idle(rn_local_comm_t* comm) {
  rn_mutex_lock(&comm->mutex);
  bool is_idle = comm->busy == 0;
  rn_mutex_unlock(&comm->mutex);
  return is_idle;
}

// The communicator of the group of |meeting|. One of a former group with the same key that nothing
// uses is |*out_old|, for the caller to destroy.
static rn_status_t find_comm(const rn_meeting_t* meeting, const rn_comm_library_t* library,
                             rn_local_comm_t** out, rn_local_comm_t** out_old) {
  rn_local_collectives_t* owner = meeting->owner;
  rn_status_t status = RN_OK;
  *out = *out_old = NULL;
  rn_mutex_lock(&owner->mutex);
  for (rn_local_comm_t** at = &owner->comms; *at;) {
    rn_local_comm_t* comm = *at;
    if (comm->group == meeting->group) *out = comm;
    if (!*out_old && comm->group != meeting->group && comm->group->key == meeting->group->key &&
        is_idle(comm)) {
      *out_old = comm;
      *at = comm->next;
    } else {
      at = &comm->next;
    }
  }
  if (!*out) status = comm_create_locked(meeting, library, out);
  if (rn_ok(status)) hold(*out);  // for the item that the caller makes
  rn_mutex_unlock(&owner->mutex);
  return status;
}

// The library for |meeting|; NULL if it goes through host memory.
static const rn_comm_library_t* library_for(const rn_meeting_t* meeting) {
  const rn_collective_t* like = meeting->members[0];
  if (!meeting->owner->prefers_library && !rn_str_is(like->hint, "nccl")) return NULL;
  if (!meeting->group->is_ours) return NULL;
  const rn_comm_library_t* library = rn_device_comm_library(like->device);
  return library && library->takes(like) ? library : NULL;
}

static void start(rn_local_comm_t* comm, rn_comm_item_t* item) {
  rn_meeting_t* meeting = &item->meeting->face;
  item->comm = comm;
  item->gone.fn = rn_comm_item_on_gone;
  item->phase = RN_COMM_AGREEING;
  item->is_linked = rn_cancel_add(&meeting->cancel, &item->gone);
  if (!item->is_linked) {
    rn_comm_item_end(item, rn_cancelled("op cancelled"));
    return;
  }
  rn_mutex_lock(&comm->mutex);
  bool is_gone = item->is_gone;
  bool resolves = comm->state == RN_COMM_BROKEN && (!comm->spans || !comm->attempt);
  bool waits = !is_gone && (resolves || comm->state == RN_COMM_RESOLVING);
  if (waits) {
    item->phase = RN_COMM_WAITING;
    item->next = comm->waiting;
    comm->waiting = item;
  }
  if (waits && resolves) rn_comm_resolve_locked(comm, meeting, comm->attempt + 1);
  rn_mutex_unlock(&comm->mutex);
  if (is_gone)
    rn_comm_item_end(item, rn_cancelled("op cancelled"));
  else if (!waits)
    rn_comm_item_begin(item);
}

bool rn_comms_take(rn_local_meeting_t* meeting) {
  const rn_comm_library_t* library = library_for(&meeting->face);
  rn_local_comm_t *comm = NULL, *old = NULL;
  rn_comm_item_t* item = NULL;
  if (!library) return false;
  rn_status_t status = find_comm(&meeting->face, library, &comm, &old);
  if (old) comm_destroy(old);
  if (rn_ok(status)) status = RN_NEW(comm->owner->allocator, &item);
  if (rn_ok(status)) {
    item->meeting = meeting;
    start(comm, item);
    return true;
  }
  if (comm) rn_comm_leave(comm);
  meeting->face.failure = status;
  rn_meeting_run_on_host(&meeting->face);
  return true;
}

void rn_comms_cancel(rn_local_collectives_t* collectives) {
  for (;;) {
    rn_mutex_lock(&collectives->mutex);
    rn_local_comm_t* comm = collectives->comms;
    while (comm && rn_is_cancelled(&comm->cancel)) comm = comm->next;
    if (comm) hold(comm);
    rn_mutex_unlock(&collectives->mutex);
    if (!comm) return;
    rn_cancel(&comm->cancel);
    rn_comm_leave(comm);
  }
}

void rn_comms_destroy(rn_local_collectives_t* collectives) {
  for (;;) {
    rn_mutex_lock(&collectives->mutex);
    rn_local_comm_t* comm = collectives->comms;
    if (comm) collectives->comms = comm->next;
    rn_mutex_unlock(&collectives->mutex);
    if (!comm) return;
    comm_destroy(comm);
  }
}
