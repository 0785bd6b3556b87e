// Members join their groups. See collectives.h.
#include "base/container.h"
#include "collective/internal.h"
#include "device/device.h"

// The group of |member| is complete, or failed with |status|, which this takes.
void rn_local_member_found(rn_local_member_t* member, rn_group_t* group, rn_status_t status) {
  rn_local_collectives_t* collectives = member->owner;
  rn_local_ending_t ending = {0};
  rn_local_meeting_t* full = NULL;
  rn_mutex_lock(&collectives->mutex);
  if (!rn_ok(member->status)) {  // it was given up meanwhile
    rn_status_free(status);
    status = member->status;
  }
  if (!rn_ok(status) || member->request->kind == RN_COLLECTIVE_JOIN)
    rn_ending_add(&ending, member, status);
  else
    rn_local_member_meet(member, group, &ending, &full);
  rn_mutex_unlock(&collectives->mutex);
  rn_ending_run(&ending);
  if (full) rn_local_meeting_run(full);
}

void rn_local_member_on_group(rn_group_wait_t* wait, rn_group_t* group, rn_status_t status) {
  rn_local_member_found((rn_local_member_t*)wait, group, status);
}

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
                  rn_local_member_t* member) {
  rn_group_t* group = NULL;
  rn_mutex_lock(&collectives->mutex);
  rn_status_t status = rn_groups_add(&collectives->groups, key, size, device, node, &group);
  bool waits = group && (rn_ok(status) || !rn_ok(group->status)) &&  // there is memory for it
               (!member || rn_ok(member->status));  // and it was not given up meanwhile
  rn_group_wait_t* waiting = NULL;
  if (waits) {
    if (member) member->state = RN_MEMBER_WAITING;
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

bool rn_local_member_take_back(rn_group_t* group, rn_group_wait_t* wait) {
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
  bool is_back = rn_local_member_take_back(rn_groups_find(&collectives->groups, key), wait);
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

void rn_local_member_join(rn_local_member_t* member) {
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
  rn_local_member_t* member = RN_CONTAINER_OF(ask, rn_local_member_t, ask);
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
  rn_local_member_found(member, group, status);
  if (!group) return;
  rn_mutex_lock(&collectives->mutex);
  rn_group_release(&collectives->groups, group);
  rn_mutex_unlock(&collectives->mutex);
}
