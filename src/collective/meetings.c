// Meetings of the members of this process, and how they end. See collectives.h.
#include <stdio.h>

#include "collective/comms.h"
#include "collective/compute.h"
#include "collective/internal.h"
#include "device/device.h"

// Failed meetings that are kept for members that have not come yet.
#define MAX_FAILED 256

void rn_ending_add(rn_local_ending_t* ending, rn_local_member_t* member, rn_status_t status) {
  rn_local_collectives_t* owner = member->owner;
  if (member->previous)
    member->previous->next = member->next;
  else
    owner->members = member->next;
  if (member->next) member->next->previous = member->previous;
  member->state = RN_MEMBER_ENDED;
  member->status = status;
  member->next = ending->first;
  ending->first = member;
}

void rn_local_member_release(rn_local_member_t* member) {
  if (--member->refs) return;
  rn_cancel_destroy(&member->stop);
  RN_FREE(member->owner->allocator, member);
}

void rn_ending_run(rn_local_ending_t* ending) {
  while (ending->first) {
    rn_local_member_t* member = ending->first;
    rn_local_collectives_t* collectives = member->owner;
    rn_collective_t* request = member->request;
    rn_status_t status = member->status;
    ending->first = member->next;
    if (member->is_linked) rn_cancel_remove(request->cancel, &member->cancel);
    rn_mutex_lock(&collectives->mutex);
    rn_local_member_release(member);
    rn_mutex_unlock(&collectives->mutex);
    if (!rn_ok(status)) rn_tensor_clear(&request->output);
    request->done(request, status);
  }
}

// Meetings.

void rn_local_meeting_release(rn_local_meeting_t* meeting) {
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
                                const char* key, rn_local_meeting_t** out) {
  size_t count = 0;
  for (int32_t i = 0; i < group->size; ++i) count += is_here(collectives, &group->members[i]);
  size_t size = sizeof **out + count * (2 * sizeof(void*) + sizeof(int32_t));
  rn_local_meeting_t* meeting = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(collectives->allocator, size, (void**)&meeting));
  meeting->block_size = size;
  meeting->face.owner = collectives;
  meeting->face.group = group;
  meeting->face.count = (int32_t)count;
  meeting->refs = 1;
  meeting->face.members = (rn_collective_t**)(meeting + 1);
  meeting->records = (rn_local_member_t**)(meeting->face.members + count);
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
    rn_local_meeting_release(meeting);
  return status;
}

void rn_local_meeting_drop(rn_local_meeting_t* meeting) {
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
  rn_local_meeting_release(meeting);
}

// Ends the members that have come; those that have not will be told when they come. Takes |status|.
void rn_local_meeting_fail(rn_local_meeting_t* meeting, rn_status_t status,
                           rn_local_ending_t* ending) {
  rn_local_collectives_t* collectives = meeting->face.owner;
  for (int32_t i = 0; i < meeting->face.count; ++i)
    if (meeting->records[i]) rn_ending_add(ending, meeting->records[i], rn_status_copy(status));
  meeting->failure = status;
  meeting->previous = collectives->failed_last;
  if (meeting->previous)
    meeting->previous->next = meeting;
  else
    collectives->failed_first = meeting;
  collectives->failed_last = meeting;
  collectives->failed_count++;
  if (meeting->arrived == meeting->face.count)
    rn_local_meeting_drop(meeting);
  else if (collectives->failed_count > MAX_FAILED)
    rn_local_meeting_drop(collectives->failed_first);
}

// Runs a meeting that all members have come to.
void rn_local_meeting_run(rn_local_meeting_t* meeting) {
  if (meeting->face.members[0]->device->is_host)
    rn_meeting_run_on_host(&meeting->face);
  else if (!rn_comms_take(meeting))
    rn_local_meeting_stage(meeting);
}

void rn_meeting_run_on_host(rn_meeting_t* face) {
  const rn_collective_cluster_t* cluster = &face->owner->cluster;
  if (face->count < face->group->size) {
    cluster->exchange(cluster->self, face);
    return;
  }
  rn_status_t status = rn_meeting_take_failure(face);
  if (rn_ok(status)) status = rn_collective_compute(face->members, face->count);
  rn_meeting_end(face, status);
}

void rn_meeting_forget_group(rn_meeting_t* meeting) {
  rn_mutex_lock(&meeting->owner->mutex);
  rn_groups_forget(&meeting->owner->groups, meeting->group);
  rn_mutex_unlock(&meeting->owner->mutex);
}

void rn_meeting_end(rn_meeting_t* face, rn_status_t status) {
  if (face->on_end) {
    face->on_end(face, status);
    return;
  }
  rn_local_meeting_t* meeting = (rn_local_meeting_t*)face;
  rn_local_collectives_t* collectives = face->owner;
  rn_local_ending_t ending = {0};
  rn_mutex_lock(&collectives->mutex);
  if (!rn_ok(status) && !rn_ok(meeting->reason)) {
    rn_status_free(status);
    status = rn_status_copy(meeting->reason);
  }
  for (int32_t i = 0; i < face->count; ++i)
    rn_ending_add(&ending, meeting->records[i], rn_status_copy(status));
  rn_local_meeting_release(meeting);
  rn_mutex_unlock(&collectives->mutex);
  rn_status_free(status);
  rn_ending_run(&ending);
}

// |member| comes to the meeting of its instance; |*out_full| is it if the last one has come.
void rn_local_member_meet(rn_local_member_t* member, rn_group_t* group, rn_local_ending_t* ending,
                          rn_local_meeting_t** out_full) {
  rn_local_collectives_t* collectives = member->owner;
  rn_collective_t* request = member->request;
  int32_t rank = rn_group_rank(group, request->device->name);
  char key[sizeof((rn_local_meeting_t*)0)->key];
  snprintf(key, sizeof key, "%lld:%d:%d:%llu:%lld", (long long)request->step, request->group_key,
           request->instance_key, (unsigned long long)request->frame,
           (long long)request->iteration);
  rn_local_meeting_t* meeting = rn_map_get(&collectives->meetings, rn_str(key));
  int32_t at = 0;
  while (meeting && at < meeting->face.count && meeting->face.ranks[at] != rank) at++;
  bool is_another = meeting && (at == meeting->face.count || meeting->face.members[at]);
  if (meeting && !rn_ok(meeting->failure) && (is_another || meeting->face.group != group)) {
    rn_local_meeting_drop(meeting);  // its members try again
    meeting = NULL;
  }
  rn_status_t status = RN_OK;
  if (!meeting) status = make_meeting(collectives, group, key, &meeting);
  if (!rn_ok(status)) {
    rn_ending_add(ending, member, status);
    return;
  }
  for (at = 0; at < meeting->face.count && meeting->face.ranks[at] != rank; ++at) continue;
  if (at == meeting->face.count || meeting->face.members[at]) {
    rn_ending_add(
        ending, member,
        rn_internal("Device %s already takes part in instance %d of group %d",
                    request->device->name.data, request->instance_key, request->group_key));
    return;
  }
  meeting->face.members[at] = request;
  meeting->arrived++;
  if (!rn_ok(meeting->failure)) {
    rn_ending_add(ending, member, rn_status_copy(meeting->failure));
    if (meeting->arrived == meeting->face.count) rn_local_meeting_drop(meeting);
    return;
  }
  meeting->records[at] = member;
  member->meeting = meeting;
  member->state = RN_MEMBER_MEETING;
  for (int32_t i = 0; rn_ok(status) && i < meeting->face.count; ++i)
    if (meeting->records[i] && i != at)
      status = rn_collective_agree(meeting->face.members[i], request);
  if (!rn_ok(status)) {
    rn_local_meeting_fail(meeting, status, ending);
  } else if (meeting->arrived == meeting->face.count) {
    meeting->is_running = true;
    rn_map_remove(&collectives->meetings, rn_str(meeting->key));
    *out_full = meeting;
  }
}
