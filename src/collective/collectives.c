// The collectives of a process: see collectives.h.
#include "collective/collectives.h"

#include "collective/comms.h"
#include "collective/internal.h"

static void run(rn_collectives_t* face, rn_collective_t* request) {
  rn_local_collectives_t* collectives = (rn_local_collectives_t*)face;
  rn_local_member_t* member = NULL;
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
  member->wait.fn = rn_local_member_on_group;
  member->cancel.fn = rn_local_member_on_cancel;
  member->owner = collectives;
  member->request = request;
  rn_cancel_init(&member->stop);
  rn_mutex_lock(&collectives->mutex);
  status = rn_status_copy(collectives->aborted);
  if (rn_ok(status) && request->deadline_ns) status = rn_local_collectives_watch(collectives);
  member->next = collectives->members;
  if (member->next) member->next->previous = member;
  collectives->members = member;
  rn_local_ending_t ending = {0};
  if (!rn_ok(status)) rn_ending_add(&ending, member, status);
  rn_mutex_unlock(&collectives->mutex);
  if (ending.first) {
    rn_ending_run(&ending);
    return;
  }
  // Not before all is set up: from now on |member| may be given up at any time, but as long as it
  // joins, it is there.
  if (request->cancel) member->is_linked = rn_cancel_add(request->cancel, &member->cancel);
  if (request->cancel && !member->is_linked)
    rn_local_member_found(member, NULL,
                          rn_cancelled("op cancelled %.*s", RN_STR_ARGS(request->node)));
  else
    rn_local_member_join(member);
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
  rn_local_member_t* member = collectives->members;
  while (member) {
    bool is_over = rn_local_member_is_over(member);
    if (!is_over) rn_local_member_give_up(collectives, member, rn_status_copy(status));
    member = is_over ? member->next : collectives->members;  // the list may have changed
  }
  rn_mutex_unlock(&collectives->mutex);
  rn_comms_cancel(collectives);
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
  rn_comms_destroy(collectives);
  rn_mutex_lock(&collectives->mutex);
  rn_status_free(collectives->aborted);
  collectives->aborted = RN_OK;
  while (collectives->failed_first) rn_local_meeting_drop(collectives->failed_first);
  rn_groups_reset(&collectives->groups);
  rn_mutex_unlock(&collectives->mutex);
}

void rn_local_collectives_destroy(rn_local_collectives_t* collectives) {
  if (!collectives) return;
  rn_comms_destroy(collectives);
  rn_mutex_lock(&collectives->mutex);
  collectives->is_stopped = true;
  rn_cond_signal(&collectives->changed);
  while (collectives->failed_first) rn_local_meeting_drop(collectives->failed_first);
  rn_mutex_unlock(&collectives->mutex);
  if (collectives->has_thread) pthread_join(collectives->thread, NULL);
  rn_map_clear(&collectives->meetings);
  rn_groups_clear(&collectives->groups);
  rn_status_free(collectives->aborted);
  rn_cond_destroy(&collectives->changed);
  rn_mutex_destroy(&collectives->mutex);
  RN_FREE(collectives->allocator, collectives);
}

void rn_local_collectives_prefer_library(rn_local_collectives_t* collectives) {
  collectives->prefers_library = true;
}

rn_collectives_t* rn_local_collectives_face(rn_local_collectives_t* collectives) {
  return &collectives->face;
}
