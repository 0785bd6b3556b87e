// Members that are cancelled, or late. See collectives.h.
#include "base/container.h"
#include "collective/internal.h"

// What is left to do when the lock is released.
typedef struct collectives_giving_t {
  rn_local_ending_t ending;
  rn_cancel_t* stop;
  rn_local_meeting_t* meeting;  // Retained, like the next
  rn_local_member_t* member;
} collectives_giving_t;

// Ends |member| and its meeting with |status|, which this takes.
static void mark_given_up(rn_local_member_t* member, rn_status_t status,
                          collectives_giving_t* giving) {
  rn_local_meeting_t* meeting = member->meeting;
  switch (member->state) {
    case RN_MEMBER_JOINING:
      member->status = status;
      member->refs++;
      giving->member = member;
      giving->stop = &member->stop;
      return;
    case RN_MEMBER_WAITING:
      // If it is not there, it is about to be told of its group.
      if (rn_local_member_take_back(
              rn_groups_find(&member->owner->groups, member->request->group_key), &member->wait))
        rn_ending_add(&giving->ending, member, status);
      else
        member->status = status;
      return;
    case RN_MEMBER_MEETING:
      if (!meeting->is_running) {
        rn_local_meeting_fail(meeting, status, &giving->ending);
      } else {
        meeting->reason = status;
        meeting->refs++;
        giving->meeting = meeting;
        giving->stop = &meeting->face.cancel;
      }
      return;
    case RN_MEMBER_ENDED:
      rn_status_free(status);
      return;
  }
}

bool rn_local_member_is_over(const rn_local_member_t* member) {
  return !rn_ok(member->status) || member->state == RN_MEMBER_ENDED ||
         (member->state == RN_MEMBER_MEETING && !rn_ok(member->meeting->reason));
}

// Ends |member| and its meeting with |status|, which this takes. Releases the lock meanwhile.
void rn_local_member_give_up(rn_local_collectives_t* collectives, rn_local_member_t* member,
                             rn_status_t status) {
  collectives_giving_t giving = {0};
  if (rn_local_member_is_over(member)) {
    rn_status_free(status);
    return;
  }
  mark_given_up(member, status, &giving);
  rn_mutex_unlock(&collectives->mutex);
  if (giving.stop) rn_cancel(giving.stop);
  rn_ending_run(&giving.ending);
  rn_mutex_lock(&collectives->mutex);
  if (giving.meeting) rn_local_meeting_release(giving.meeting);
  if (giving.member) rn_local_member_release(giving.member);
}

void rn_local_member_on_cancel(rn_cancel_entry_t* entry) {
  rn_local_member_t* member = RN_CONTAINER_OF(entry, rn_local_member_t, cancel);
  rn_local_collectives_t* collectives = member->owner;
  rn_mutex_lock(&collectives->mutex);
  rn_local_member_give_up(collectives, member, rn_cancelled("op cancelled"));
  rn_mutex_unlock(&collectives->mutex);
}

// Deadlines.

// A member whose deadline has passed, or NULL; |*out_next_ns| is the next deadline.
static rn_local_member_t* find_late(const rn_local_collectives_t* collectives, int64_t now_ns,
                                    int64_t* out_next_ns) {
  *out_next_ns = INT64_MAX;
  for (rn_local_member_t* member = collectives->members; member; member = member->next) {
    int64_t deadline_ns = member->request->deadline_ns;
    if (!deadline_ns || rn_local_member_is_over(member)) continue;
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
    rn_local_member_t* late = find_late(collectives, env->now_ns(env->self), &next_ns);
    if (late)
      rn_local_member_give_up(
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

rn_status_t rn_local_collectives_watch(rn_local_collectives_t* collectives) {
  if (!collectives->has_thread) {
    if (pthread_create(&collectives->thread, NULL, keep_deadlines, collectives))
      return rn_resource_exhausted("No thread for the deadline of a collective");
    collectives->has_thread = true;
  }
  rn_cond_signal(&collectives->changed);
  return RN_OK;
}
