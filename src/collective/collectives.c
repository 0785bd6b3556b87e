// Members join their groups and meet: see collectives.h.
//
// Lock order: |mutex| alone. Members end with no lock held.
#include "collective/collectives.h"

#include <pthread.h>
#include <stdio.h>

#include "base/container.h"
#include "collective/compute.h"
#include "device/device.h"

// Failed meetings that are kept for members that have not come yet.
#define MAX_FAILED 256

typedef struct collectives_meeting_t {
  rn_meeting_t face;  // first
  int32_t refs;       // the table's or the running one's, and of those who cancel it
  int32_t arrived;
  bool is_running;
  rn_status_t failure;  // Owned: how it ended, if members that will come must be told
  rn_status_t reason;   // Owned: why it was cancelled while it ran
  struct collectives_meeting_t *next, *previous;  // of the failed, or of the running
  struct collectives_member_t** records;          // by member
  size_t block_size;
  char key[112];
} collectives_meeting_t;

// Where a member is.
typedef enum collectives_state_t { JOINING, WAITING, MEETING, ENDED } collectives_state_t;

typedef struct collectives_member_t {
  rn_group_wait_t wait;  // first
  int32_t refs;          // until it ends, and of those who give it up
  rn_group_ask_t ask;
  rn_cancel_entry_t cancel;  // in the step's
  bool is_linked;
  rn_cancel_t stop;  // of the call that asks for the group
  rn_local_collectives_t* owner;
  rn_collective_t* request;
  collectives_state_t state;
  collectives_meeting_t* meeting;
  rn_status_t status;                            // Owned: how it ends
  struct collectives_member_t *next, *previous;  // of all; |next| also of those that end
} collectives_member_t;

struct rn_local_collectives_t {
  rn_collectives_t face;  // first
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_collective_cluster_t cluster;
  rn_collectives_t* _Atomic forward;  // where members go instead; NULL: here
  rn_mutex_t mutex;                   // guards what follows
  rn_groups_t groups;
  rn_map_t meetings;  // by key: those that wait for members, and failed ones
  collectives_meeting_t *failed_first, *failed_last;
  int failed_count;
  collectives_member_t* members;
  rn_status_t aborted;  // Owned
  rn_cond_t changed;    // for the thread that keeps deadlines
  pthread_t thread;
  bool has_thread, is_stopped;
};

// Members that are to end, linked by |next|, with their |status| set.
typedef struct collectives_ending_t {
  collectives_member_t* first;
} collectives_ending_t;

static void add_ending(collectives_ending_t* ending, collectives_member_t* member,
                       rn_status_t status) {
  rn_local_collectives_t* owner = member->owner;
  if (member->previous)
    member->previous->next = member->next;
  else
    owner->members = member->next;
  if (member->next) member->next->previous = member->previous;
  member->state = ENDED;
  member->status = status;
  member->next = ending->first;
  ending->first = member;
}

static void member_release_locked(collectives_member_t* member) {
  if (--member->refs) return;
  rn_cancel_destroy(&member->stop);
  RN_FREE(member->owner->allocator, member);
}

static void end_members(collectives_ending_t* ending) {
  while (ending->first) {
    collectives_member_t* member = ending->first;
    rn_local_collectives_t* collectives = member->owner;
    rn_collective_t* request = member->request;
    rn_status_t status = member->status;
    ending->first = member->next;
    if (member->is_linked) rn_cancel_remove(request->cancel, &member->cancel);
    rn_mutex_lock(&collectives->mutex);
    member_release_locked(member);
    rn_mutex_unlock(&collectives->mutex);
    if (!rn_ok(status)) rn_tensor_clear(&request->output);
    request->done(request, status);
  }
}

// Meetings.

static void meeting_release_locked(collectives_meeting_t* meeting) {
  if (--meeting->refs) return;
  rn_local_collectives_t* owner = meeting->face.owner;
  rn_group_release(&owner->groups, meeting->face.group);
  rn_status_free(meeting->failure);
  rn_status_free(meeting->reason);
  rn_cancel_destroy(&meeting->face.cancel);
  rn_free(owner->allocator, meeting, meeting->block_size);
}

static bool is_here(const rn_local_collectives_t* collectives, const rn_group_member_t* member) {
  return !collectives->cluster.self || rn_str_eq(member->task, collectives->cluster.task);
}

static rn_status_t make_meeting(rn_local_collectives_t* collectives, rn_group_t* group,
                                const char* key, collectives_meeting_t** out) {
  size_t count = 0;
  for (int32_t i = 0; i < group->size; ++i) count += is_here(collectives, &group->members[i]);
  size_t size = sizeof **out + count * (2 * sizeof(void*) + sizeof(int32_t));
  collectives_meeting_t* meeting = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(collectives->allocator, size, (void**)&meeting));
  meeting->block_size = size;
  meeting->face.owner = collectives;
  meeting->face.group = group;
  meeting->face.count = (int32_t)count;
  meeting->refs = 1;
  meeting->face.members = (rn_collective_t**)(meeting + 1);
  meeting->records = (collectives_member_t**)(meeting->face.members + count);
  int32_t* ranks = (int32_t*)(meeting->records + count);
  meeting->face.ranks = ranks;
  for (int32_t i = 0, at = 0; i < group->size; ++i)
    if (is_here(collectives, &group->members[i])) ranks[at++] = i;
  rn_cancel_init(&meeting->face.cancel);
  group->refs++;
  snprintf(meeting->key, sizeof meeting->key, "%s", key);
  rn_status_t status = rn_map_put(&collectives->meetings, rn_str(meeting->key), meeting);
  if (rn_ok(status))
    *out = meeting;
  else
    meeting_release_locked(meeting);
  return status;
}

static void drop_failed(collectives_meeting_t* meeting) {
  rn_local_collectives_t* collectives = meeting->face.owner;
  rn_map_remove(&collectives->meetings, rn_str(meeting->key));
  if (meeting->previous)
    meeting->previous->next = meeting->next;
  else
    collectives->failed_first = meeting->next;
  if (meeting->next)
    meeting->next->previous = meeting->previous;
  else
    collectives->failed_last = meeting->previous;
  collectives->failed_count--;
  meeting_release_locked(meeting);
}

// Ends the members that have come; those that have not will be told when they come. Takes |status|.
static void fail_meeting(collectives_meeting_t* meeting, rn_status_t status,
                         collectives_ending_t* ending) {
  rn_local_collectives_t* collectives = meeting->face.owner;
  for (int32_t i = 0; i < meeting->face.count; ++i)
    if (meeting->records[i]) add_ending(ending, meeting->records[i], rn_status_copy(status));
  meeting->failure = status;
  meeting->previous = collectives->failed_last;
  if (meeting->previous)
    meeting->previous->next = meeting;
  else
    collectives->failed_first = meeting;
  collectives->failed_last = meeting;
  collectives->failed_count++;
  if (meeting->arrived == meeting->face.count)
    drop_failed(meeting);
  else if (collectives->failed_count > MAX_FAILED)
    drop_failed(collectives->failed_first);
}

// Runs a meeting that all members have come to.
static void run_meeting(collectives_meeting_t* meeting) {
  rn_local_collectives_t* collectives = meeting->face.owner;
  rn_meeting_t* face = &meeting->face;
  if (face->count < face->group->size)
    collectives->cluster.exchange(collectives->cluster.self, face);
  else
    rn_meeting_end(face, rn_collective_compute(face->members, face->count));
}

void rn_meeting_forget_group(rn_meeting_t* meeting) {
  rn_mutex_lock(&meeting->owner->mutex);
  rn_groups_forget(&meeting->owner->groups, meeting->group);
  rn_mutex_unlock(&meeting->owner->mutex);
}

void rn_meeting_end(rn_meeting_t* face, rn_status_t status) {
  collectives_meeting_t* meeting = (collectives_meeting_t*)face;
  rn_local_collectives_t* collectives = face->owner;
  collectives_ending_t ending = {0};
  rn_mutex_lock(&collectives->mutex);
  if (!rn_ok(status) && !rn_ok(meeting->reason)) {
    rn_status_free(status);
    status = rn_status_copy(meeting->reason);
  }
  for (int32_t i = 0; i < face->count; ++i)
    add_ending(&ending, meeting->records[i], rn_status_copy(status));
  meeting_release_locked(meeting);
  rn_mutex_unlock(&collectives->mutex);
  rn_status_free(status);
  end_members(&ending);
}

// |member| comes to the meeting of its instance; |*out_full| is it if the last one has come.
static void meet_locked(collectives_member_t* member, rn_group_t* group,
                        collectives_ending_t* ending, collectives_meeting_t** out_full) {
  rn_local_collectives_t* collectives = member->owner;
  rn_collective_t* request = member->request;
  int32_t rank = rn_group_rank(group, request->device->name);
  char key[sizeof((collectives_meeting_t*)0)->key];
  snprintf(key, sizeof key, "%lld:%d:%d:%llu:%lld", (long long)request->step, request->group_key,
           request->instance_key, (unsigned long long)request->frame,
           (long long)request->iteration);
  collectives_meeting_t* meeting = rn_map_get(&collectives->meetings, rn_str(key));
  int32_t at = 0;
  while (meeting && at < meeting->face.count && meeting->face.ranks[at] != rank) at++;
  bool is_another = meeting && (at == meeting->face.count || meeting->face.members[at]);
  if (meeting && !rn_ok(meeting->failure) && (is_another || meeting->face.group != group)) {
    drop_failed(meeting);  // its members try again
    meeting = NULL;
  }
  rn_status_t status = RN_OK;
  if (!meeting) status = make_meeting(collectives, group, key, &meeting);
  if (!rn_ok(status)) {
    add_ending(ending, member, status);
    return;
  }
  for (at = 0; at < meeting->face.count && meeting->face.ranks[at] != rank; ++at) continue;
  if (at == meeting->face.count || meeting->face.members[at]) {
    add_ending(ending, member,
               rn_internal("Device %s already takes part in instance %d of group %d",
                           request->device->name.data, request->instance_key, request->group_key));
    return;
  }
  meeting->face.members[at] = request;
  meeting->arrived++;
  if (!rn_ok(meeting->failure)) {
    add_ending(ending, member, rn_status_copy(meeting->failure));
    if (meeting->arrived == meeting->face.count) drop_failed(meeting);
    return;
  }
  meeting->records[at] = member;
  member->meeting = meeting;
  member->state = MEETING;
  for (int32_t i = 0; rn_ok(status) && i < meeting->face.count; ++i)
    if (meeting->records[i] && i != at)
      status = rn_collective_agree(meeting->face.members[i], request);
  if (!rn_ok(status)) {
    fail_meeting(meeting, status, ending);
  } else if (meeting->arrived == meeting->face.count) {
    meeting->is_running = true;
    rn_map_remove(&collectives->meetings, rn_str(meeting->key));
    *out_full = meeting;
  }
}

// The group of |member| is complete, or failed with |status|, which this takes.
static void found_group(collectives_member_t* member, rn_group_t* group, rn_status_t status) {
  rn_local_collectives_t* collectives = member->owner;
  collectives_ending_t ending = {0};
  collectives_meeting_t* full = NULL;
  rn_mutex_lock(&collectives->mutex);
  if (!rn_ok(member->status)) {  // it was given up meanwhile
    rn_status_free(status);
    status = member->status;
  }
  if (!rn_ok(status) || member->request->kind == RN_COLLECTIVE_JOIN)
    add_ending(&ending, member, status);
  else
    meet_locked(member, group, &ending, &full);
  rn_mutex_unlock(&collectives->mutex);
  end_members(&ending);
  if (full) run_meeting(full);
}

static void on_group(rn_group_wait_t* wait, rn_group_t* group, rn_status_t status) {
  found_group((collectives_member_t*)wait, group, status);
}

// Joining.

// Takes those who wait for |group| off it, if it is complete or has failed, and retains it.
static rn_group_wait_t* take_waiting(rn_group_t* group) {
  if (!group->is_complete && rn_ok(group->status)) return NULL;
  rn_group_wait_t* waiting = group->waiting;
  group->waiting = NULL;
  group->refs++;
  return waiting;
}

// Takes |status|.
static void tell_waiting(rn_local_collectives_t* collectives, rn_group_wait_t* waiting,
                         rn_group_t* group, rn_status_t status) {
  while (waiting) {
    rn_group_wait_t* next = waiting->next;
    waiting->fn(waiting, group, rn_status_copy(status));
    waiting = next;
  }
  rn_status_free(status);
  rn_mutex_lock(&collectives->mutex);
  rn_group_release(&collectives->groups, group);
  rn_mutex_unlock(&collectives->mutex);
}

// Adds |device| to its group and lets |wait| wait for it; |member| is NULL for another task's.
static void admit(rn_local_collectives_t* collectives, int32_t key, int32_t size,
                  const rn_group_member_t* device, rn_str_t node, rn_group_wait_t* wait,
                  collectives_member_t* member) {
  rn_group_t* group = NULL;
  rn_mutex_lock(&collectives->mutex);
  rn_status_t status = rn_groups_add(&collectives->groups, key, size, device, node, &group);
  bool waits = group && (rn_ok(status) || !rn_ok(group->status)) &&  // there is memory for it
               (!member || rn_ok(member->status));  // and it was not given up meanwhile
  rn_group_wait_t* waiting = NULL;
  if (waits) {
    if (member) member->state = WAITING;
    wait->next = group->waiting;
    group->waiting = wait;
    waiting = take_waiting(group);
  }
  rn_mutex_unlock(&collectives->mutex);
  if (!waits)
    wait->fn(wait, NULL, status);
  else if (waiting)
    tell_waiting(collectives, waiting, group, status);
  else
    rn_status_free(status);
}

void rn_local_collectives_admit(rn_local_collectives_t* collectives, int32_t key, int32_t size,
                                const rn_group_member_t* member, rn_group_wait_t* wait) {
  admit(collectives, key, size, member, member->device, wait, NULL);
}

static bool take_back(rn_group_t* group, rn_group_wait_t* wait) {
  for (rn_group_wait_t** at = group ? &group->waiting : NULL; at && *at; at = &(*at)->next) {
    if (*at != wait) continue;
    *at = wait->next;
    return true;
  }
  return false;
}

bool rn_local_collectives_dismiss(rn_local_collectives_t* collectives, int32_t key,
                                  rn_group_wait_t* wait) {
  rn_mutex_lock(&collectives->mutex);
  bool is_back = take_back(rn_groups_find(&collectives->groups, key), wait);
  rn_mutex_unlock(&collectives->mutex);
  return is_back;
}

int32_t rn_local_collectives_rank(rn_local_collectives_t* collectives, int32_t key, int32_t size,
                                  rn_str_t device) {
  rn_mutex_lock(&collectives->mutex);
  const rn_group_t* group = rn_groups_find(&collectives->groups, key);
  bool is_it = group && group->is_complete && group->size == size;
  int32_t rank = is_it ? rn_group_rank(group, device) : -1;
  rn_mutex_unlock(&collectives->mutex);
  return rank;
}

static rn_group_member_t member_of(const rn_collective_t* request) {
  return (rn_group_member_t){.device = request->device->name,
                             .type = rn_str(request->device->type),
                             .incarnation = request->device->incarnation,
                             .rank = request->rank,
                             .is_ours = true};
}

static void join(collectives_member_t* member) {
  rn_local_collectives_t* collectives = member->owner;
  rn_collective_t* request = member->request;
  const rn_collective_cluster_t* cluster = &collectives->cluster;
  rn_mutex_lock(&collectives->mutex);
  rn_group_t* group = rn_groups_find(&collectives->groups, request->group_key);
  bool is_known = group && group->is_complete;
  rn_mutex_unlock(&collectives->mutex);
  if (!is_known && cluster->self && !cluster->leads(cluster->self)) {
    member->ask = (rn_group_ask_t){.collective = request, .cancel = &member->stop};
    cluster->join(cluster->self, &member->ask);
    return;
  }
  rn_group_member_t self = member_of(request);
  admit(collectives, request->group_key, request->group_size, &self, request->node, &member->wait,
        member);
}

void rn_collectives_joined(rn_group_ask_t* ask, const rn_group_member_t* members, int32_t count,
                           rn_status_t status) {
  collectives_member_t* member = RN_CONTAINER_OF(ask, collectives_member_t, ask);
  rn_local_collectives_t* collectives = member->owner;
  const rn_collective_t* request = member->request;
  rn_group_t* group = NULL;
  rn_mutex_lock(&collectives->mutex);
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    status = rn_groups_add(&collectives->groups, request->group_key, request->group_size,
                           &members[i], request->node, &group);
  if (rn_ok(status) && (!group || !group->is_complete || count != group->size ||
                        rn_group_rank(group, request->device->name) < 0))
    status = rn_internal("The leader of group %d gave it other members", request->group_key);
  if (group) group->refs++;
  rn_mutex_unlock(&collectives->mutex);
  found_group(member, group, status);
  if (!group) return;
  rn_mutex_lock(&collectives->mutex);
  rn_group_release(&collectives->groups, group);
  rn_mutex_unlock(&collectives->mutex);
}

// Giving up.

// What is left to do when the lock is released.
typedef struct collectives_giving_t {
  collectives_ending_t ending;
  rn_cancel_t* stop;
  collectives_meeting_t* meeting;  // Retained, like the next
  collectives_member_t* member;
} collectives_giving_t;

// Ends |member| and its meeting with |status|, which this takes.
static void mark_given_up(collectives_member_t* member, rn_status_t status,
                          collectives_giving_t* giving) {
  collectives_meeting_t* meeting = member->meeting;
  switch (member->state) {
    case JOINING:
      member->status = status;
      member->refs++;
      giving->member = member;
      giving->stop = &member->stop;
      return;
    case WAITING:
      // If it is not there, it is about to be told of its group.
      if (take_back(rn_groups_find(&member->owner->groups, member->request->group_key),
                    &member->wait))
        add_ending(&giving->ending, member, status);
      else
        member->status = status;
      return;
    case MEETING:
      if (!meeting->is_running) {
        fail_meeting(meeting, status, &giving->ending);
      } else {
        meeting->reason = status;
        meeting->refs++;
        giving->meeting = meeting;
        giving->stop = &meeting->face.cancel;
      }
      return;
    case ENDED:
      rn_status_free(status);
      return;
  }
}

static bool is_given_up(const collectives_member_t* member) {
  return !rn_ok(member->status) || member->state == ENDED ||
         (member->state == MEETING && !rn_ok(member->meeting->reason));
}

// Ends |member| and its meeting with |status|, which this takes. Releases the lock meanwhile.
static void give_up_locked(rn_local_collectives_t* collectives, collectives_member_t* member,
                           rn_status_t status) {
  collectives_giving_t giving = {0};
  if (is_given_up(member)) {
    rn_status_free(status);
    return;
  }
  mark_given_up(member, status, &giving);
  rn_mutex_unlock(&collectives->mutex);
  if (giving.stop) rn_cancel(giving.stop);
  end_members(&giving.ending);
  rn_mutex_lock(&collectives->mutex);
  if (giving.meeting) meeting_release_locked(giving.meeting);
  if (giving.member) member_release_locked(giving.member);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  collectives_member_t* member = RN_CONTAINER_OF(entry, collectives_member_t, cancel);
  rn_local_collectives_t* collectives = member->owner;
  rn_mutex_lock(&collectives->mutex);
  give_up_locked(collectives, member, rn_cancelled("op cancelled"));
  rn_mutex_unlock(&collectives->mutex);
}

// Deadlines.

// A member whose deadline has passed, or NULL; |*out_next_ns| is the next deadline.
static collectives_member_t* find_late(const rn_local_collectives_t* collectives, int64_t now_ns,
                                       int64_t* out_next_ns) {
  *out_next_ns = INT64_MAX;
  for (collectives_member_t* member = collectives->members; member; member = member->next) {
    int64_t deadline_ns = member->request->deadline_ns;
    if (!deadline_ns || is_given_up(member)) continue;
    if (deadline_ns <= now_ns) return member;
    if (deadline_ns < *out_next_ns) *out_next_ns = deadline_ns;
  }
  return NULL;
}

static void* keep_deadlines(void* arg) {
  rn_local_collectives_t* collectives = arg;
  const rn_env_t* env = collectives->env;
  rn_mutex_lock(&collectives->mutex);
  while (!collectives->is_stopped) {
    int64_t next_ns;
    collectives_member_t* late = find_late(collectives, env->now_ns(env->self), &next_ns);
    if (late)
      give_up_locked(
          collectives, late,
          rn_deadline_exceeded(
              "Collective has timed out waiting for other workers. Instance %d of group %d",
              late->request->instance_key, late->request->group_key));
    else if (next_ns == INT64_MAX)
      rn_cond_wait(&collectives->changed, &collectives->mutex);
    else
      rn_cond_wait_until(&collectives->changed, &collectives->mutex, next_ns);
  }
  rn_mutex_unlock(&collectives->mutex);
  return NULL;
}

static rn_status_t watch_locked(rn_local_collectives_t* collectives) {
  if (!collectives->has_thread) {
    if (pthread_create(&collectives->thread, NULL, keep_deadlines, collectives))
      return rn_resource_exhausted("No thread for the deadline of a collective");
    collectives->has_thread = true;
  }
  rn_cond_signal(&collectives->changed);
  return RN_OK;
}

// The interface.

static void run(rn_collectives_t* face, rn_collective_t* request) {
  rn_local_collectives_t* collectives = (rn_local_collectives_t*)face;
  collectives_member_t* member = NULL;
  rn_collectives_t* forward = collectives->forward;
  if (forward) {
    rn_collectives_run(forward, request);
    return;
  }
  rn_status_t status = RN_NEW(collectives->allocator, &member);
  if (!rn_ok(status)) {
    request->done(request, status);
    return;
  }
  member->refs = 1;
  member->wait.fn = on_group;
  member->cancel.fn = on_cancel;
  member->owner = collectives;
  member->request = request;
  rn_cancel_init(&member->stop);
  rn_mutex_lock(&collectives->mutex);
  status = rn_status_copy(collectives->aborted);
  if (rn_ok(status) && request->deadline_ns) status = watch_locked(collectives);
  member->next = collectives->members;
  if (member->next) member->next->previous = member;
  collectives->members = member;
  collectives_ending_t ending = {0};
  if (!rn_ok(status)) add_ending(&ending, member, status);
  rn_mutex_unlock(&collectives->mutex);
  if (ending.first) {
    end_members(&ending);
    return;
  }
  // Not before all is set up: from now on |member| may be given up at any time, but as long as it
  // joins, it is there.
  if (request->cancel) member->is_linked = rn_cancel_add(request->cancel, &member->cancel);
  if (request->cancel && !member->is_linked)
    found_group(member, NULL, rn_cancelled("op cancelled %.*s", RN_STR_ARGS(request->node)));
  else
    join(member);
}

static void abort_all(rn_collectives_t* face, rn_status_t status) {
  rn_local_collectives_t* collectives = (rn_local_collectives_t*)face;
  rn_collectives_t* forward = collectives->forward;
  if (forward) {
    rn_collectives_abort(forward, status);
    return;
  }
  rn_mutex_lock(&collectives->mutex);
  if (rn_ok(collectives->aborted)) collectives->aborted = rn_status_copy(status);
  collectives_member_t* member = collectives->members;
  while (member) {
    bool is_over = is_given_up(member);
    if (!is_over) give_up_locked(collectives, member, rn_status_copy(status));
    member = is_over ? member->next : collectives->members;  // the list may have changed
  }
  rn_mutex_unlock(&collectives->mutex);
  rn_status_free(status);
}

static const rn_collectives_vtable_t vtable = {.run = run, .abort = abort_all};

void rn_collectives_forward(rn_collectives_t* face, rn_collectives_t* to) {
  ((rn_local_collectives_t*)face)->forward = to;
}

rn_status_t rn_local_collectives_create(const rn_env_t* env, rn_allocator_t allocator,
                                        const rn_collective_cluster_t* cluster,
                                        rn_local_collectives_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_local_collectives_t* collectives = *out;
  collectives->face.vtable = &vtable;
  collectives->env = env;
  collectives->allocator = allocator;
  if (cluster) collectives->cluster = *cluster;
  rn_mutex_init(&collectives->mutex);
  rn_cond_init(&collectives->changed);
  rn_groups_init(&collectives->groups, allocator);
  rn_map_init(&collectives->meetings, allocator);
  return RN_OK;
}

void rn_local_collectives_reset(rn_local_collectives_t* collectives) {
  rn_mutex_lock(&collectives->mutex);
  rn_status_free(collectives->aborted);
  collectives->aborted = RN_OK;
  while (collectives->failed_first) drop_failed(collectives->failed_first);
  rn_groups_reset(&collectives->groups);
  rn_mutex_unlock(&collectives->mutex);
}

void rn_local_collectives_destroy(rn_local_collectives_t* collectives) {
  if (!collectives) return;
  rn_mutex_lock(&collectives->mutex);
  collectives->is_stopped = true;
  rn_cond_signal(&collectives->changed);
  while (collectives->failed_first) drop_failed(collectives->failed_first);
  rn_mutex_unlock(&collectives->mutex);
  if (collectives->has_thread) pthread_join(collectives->thread, NULL);
  rn_map_clear(&collectives->meetings);
  rn_groups_clear(&collectives->groups);
  rn_status_free(collectives->aborted);
  rn_cond_destroy(&collectives->changed);
  rn_mutex_destroy(&collectives->mutex);
  RN_FREE(collectives->allocator, collectives);
}

rn_collectives_t* rn_local_collectives_face(rn_local_collectives_t* collectives) {
  return &collectives->face;
}
