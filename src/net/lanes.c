// See lanes.h.
#include "net/lanes.h"

#include "base/container.h"

void rn_lanes_init(rn_lanes_t* lanes) {
  rn_mutex_init(&lanes->mutex);
  rn_cond_init(&lanes->changed);
}

void rn_lanes_deinit(rn_lanes_t* lanes) {
  rn_cond_destroy(&lanes->changed);
  rn_mutex_destroy(&lanes->mutex);
}

static void on_job(rn_loop_job_t* job) {
  rn_lane_t* lane = RN_CONTAINER_OF(job, rn_lane_t, job);
  rn_lanes_t* lanes = lane->lanes;
  rn_mutex_lock(&lanes->mutex);
  lane->is_posted = false;
  rn_mutex_unlock(&lanes->mutex);
  bool ends = lanes->is_closing || lanes->is_draining, listens = lane == lanes->first;
  rn_status_t status = RN_OK;
  if (listens && lanes->listener && ends) rn_listener_stop(lanes->listener);
  if (listens && lanes->listener && !ends) status = rn_listener_start(lanes->listener);
  if (lanes->is_closing)
    lanes->close(lane);
  else if (lanes->is_draining)
    lanes->drain(lane);
  rn_mutex_lock(&lanes->mutex);
  lanes->failure = rn_status_join(lanes->failure, status);
  lanes->jobs--;
  rn_cond_broadcast(&lanes->changed);
  rn_mutex_unlock(&lanes->mutex);
}

void rn_lanes_add(rn_lanes_t* lanes, rn_lane_t* lane, rn_loop_t* loop) {
  *lane = (rn_lane_t){.lanes = lanes, .loop = loop, .job.run = on_job};
  if (lanes->last)
    lanes->last->next = lane;
  else
    lanes->first = lane;
  lanes->last = lane;
}

static void post(rn_lanes_t* lanes) {
  rn_mutex_lock(&lanes->mutex);
  for (rn_lane_t* lane = lanes->first; lane; lane = lane->next) {
    if (lane->is_posted) continue;
    lane->is_posted = true;
    lanes->jobs++;
    rn_loop_post(lane->loop, &lane->job);
  }
  rn_mutex_unlock(&lanes->mutex);
}

static void wait_for_jobs(rn_lanes_t* lanes) {
  rn_mutex_lock(&lanes->mutex);
  while (lanes->jobs) rn_cond_wait(&lanes->changed, &lanes->mutex);
  rn_mutex_unlock(&lanes->mutex);
}

rn_status_t rn_lanes_start(rn_lanes_t* lanes) {
  post(lanes);
  wait_for_jobs(lanes);
  rn_status_t failure = lanes->failure;
  lanes->failure = RN_OK;
  return failure;
}

void rn_lanes_drain(rn_lanes_t* lanes) {
  lanes->is_draining = true;
  post(lanes);
}

void rn_lanes_close(rn_lanes_t* lanes) {
  lanes->is_closing = true;
  wait_for_jobs(lanes);  // a job that is posted may have missed the flag
  post(lanes);
  wait_for_jobs(lanes);
  rn_listener_destroy(lanes->listener);
  lanes->listener = NULL;
}
