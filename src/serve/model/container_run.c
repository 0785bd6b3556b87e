// The batches of a container: see container_internal.h.
#include <unistd.h>

#include "base/container.h"
#include "serve/model/container_internal.h"

// Less than this travels in the frame: a copy through the socket costs less than the pages of a
// region that are touched from two processes.
#define MIN_SHARED ((size_t)16 << 10)

rn_status_t rn_container_make_lanes(rn_container_t* container) {
  int count = container->hello.lanes;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(container->allocator, (size_t)count, &container->lanes));
  container->lane_count = count;
  for (int i = 0; i < count; ++i) {
    container->lanes[i].container = container;
    rn_strbuf_init(&container->lanes[i].frame, container->allocator);
  }
  return RN_OK;
}

void rn_container_free_lanes(rn_container_t* container) {
  for (int i = 0; i < container->lane_count; ++i) {
    rn_container_region_free(&container->lanes[i].region);
    rn_strbuf_clear(&container->lanes[i].frame);
  }
  RN_FREE_ARRAY(container->allocator, container->lanes, container->lane_count);
}

// Ends the run of |lane|, which was taken out of its state SENT.
static void finish(rn_container_lane_t* lane, rn_status_t status) {
  rn_container_t* container = lane->container;
  rn_backend_run_t* run = lane->run;
  if (lane->has_entry) rn_cancel_remove(run->cancel, &lane->entry);
  lane->has_entry = false;
  rn_loop_expect(container->loop, -1);
  rn_mutex_lock(&container->mutex);
  lane->run = NULL;
  lane->state = RN_LANE_FREE;
  container->stats.batches++;
  container->stats.shared += (int64_t)lane->shared_bytes;
  container->stats.inlined += (int64_t)(lane->input_bytes - lane->shared_bytes);
  rn_mutex_unlock(&container->mutex);
  run->done(run, status);
}

// Asks the container to give up a batch. It answers all the same.
static void cancel_lane(rn_cancel_entry_t* entry) {
  rn_container_lane_t* lane = RN_CONTAINER_OF(entry, rn_container_lane_t, entry);
  rn_container_t* container = lane->container;
  rn_mutex_lock(&container->mutex);
  if (lane->state == RN_LANE_SENT && rn_container_link_is_open(&container->link)) {
    rn_container_write_empty(&container->link.out, RN_CONTAINER_CANCEL, lane->id);
    rn_container_link_flush(&container->link);
  }
  rn_mutex_unlock(&container->mutex);
}

// Takes a lane for |run|. Under the lock; NULL if there is none.
static rn_container_lane_t* take_lane(rn_container_t* container, rn_backend_run_t* run) {
  for (int i = 0; i < container->lane_count; ++i) {
    rn_container_lane_t* lane = &container->lanes[i];
    if (lane->state != RN_LANE_FREE) continue;
    lane->state = RN_LANE_FILLING;
    lane->run = run;
    lane->id = ++container->next_id;
    return lane;
  }
  return NULL;
}

static rn_status_t why_down(const rn_container_t* container) {
  return rn_unavailable("Model '%.*s': its container is not running%s%s",
                        RN_STR_ARGS(container->config->model), container->error[0] ? "; it " : "",
                        container->error);
}

// Replaces the region by one for this batch, if it is too small and the batch is large enough to be
// worth one. Failing to make one is fine: the frame then carries the inputs.
static void choose_region(rn_container_lane_t* lane, const rn_container_batch_t* batch,
                          int* out_fd) {
  size_t outputs =
      batch->output_bytes > lane->most_output ? batch->output_bytes : lane->most_output;
  size_t needed = batch->input_bytes + outputs;
  if (needed < MIN_SHARED || needed <= lane->region.size) return;
  rn_container_region_t made;
  rn_status_t status = rn_container_region_make(needed, &made, out_fd);
  if (rn_ok(status)) {
    rn_container_region_free(&lane->region);
    lane->region = made;
  }
  rn_status_free(status);
}

// Hands the lane's frame, and a new region's descriptor |fd|, to the link.
static rn_status_t send_lane(rn_container_lane_t* lane, int fd, uint64_t epoch) {
  rn_container_t* container = lane->container;
  rn_container_link_t* link = &container->link;
  bool is_up = container->epoch == epoch && container->state == RN_CONTAINER_UP &&
               rn_container_link_is_open(link);
  if (!is_up) {
    if (fd >= 0) close(fd);
    return why_down(container);
  }
  if (fd >= 0) {
    RN_RETURN_IF_ERROR(rn_container_link_pass(link, fd));
    rn_container_write_region(&link->out, (uint32_t)(lane - container->lanes), lane->region.size);
  }
  if (link->out.size) {
    rn_strbuf_append(&link->out, rn_strbuf_view(&lane->frame));
  } else {  // saves a copy
    rn_strbuf_t empty = link->out;
    link->out = lane->frame;
    lane->frame = empty;
  }
  lane->state = RN_LANE_SENT;
  lane->limit_ns = rn_container_now(container) + container->config->run_ns;
  rn_loop_expect(container->loop, 1);
  rn_container_link_flush(link);
  return RN_OK;
}

// Fills the lane's region and frame; the descriptor of a new region is |*out_fd|.
static rn_status_t fill_lane(rn_container_lane_t* lane, bool has_regions, int* out_fd) {
  rn_container_t* container = lane->container;
  const rn_backend_run_t* run = lane->run;
  const rn_serve_signature_t* signature = &container->hello.signatures[run->signature];
  int64_t now = rn_container_now(container), left = run->deadline_ns - now;
  rn_container_batch_t batch = {.signature = signature,
                                .signature_index = (uint32_t)run->signature,
                                .lane = (uint32_t)(lane - container->lanes),
                                .id = lane->id,
                                .inputs = run->inputs,
                                .wanted = run->wanted,
                                .deadline_us = run->deadline_ns == INT64_MAX ? -1
                                               : left > 0                    ? left / 1000
                                                                             : 0};
  RN_RETURN_IF_ERROR(rn_container_batch_measure(&batch));
  lane->rows = batch.rows;
  if (container->hello.max_rows && lane->rows > container->hello.max_rows)
    return rn_invalid_argument("Model '%.*s' takes batches of at most %lld rows, not %lld",
                               RN_STR_ARGS(container->config->model),
                               (long long)container->hello.max_rows, (long long)lane->rows);
  if (has_regions) choose_region(lane, &batch, out_fd);
  bool is_small = batch.input_bytes < MIN_SHARED && batch.output_bytes < MIN_SHARED &&
                  lane->most_output < MIN_SHARED;
  const rn_container_region_t none = {0};
  lane->frame.size = 0;
  RN_RETURN_IF_ERROR(
      rn_container_batch_write(&batch, is_small ? &none : &lane->region, &lane->frame));
  bool is_shared = !is_small && lane->region.data && batch.input_bytes <= lane->region.size;
  lane->input_bytes = batch.input_bytes;
  lane->shared_bytes = is_shared ? batch.input_bytes : 0;
  return RN_OK;
}

// The lane was not sent: gives it back.
static void abandon_lane(rn_container_lane_t* lane) {
  rn_container_t* container = lane->container;
  rn_backend_run_t* run = lane->run;
  if (lane->has_entry) rn_cancel_remove(run->cancel, &lane->entry);
  lane->has_entry = false;
  rn_container_region_free(&lane->region);
  rn_mutex_lock(&container->mutex);
  lane->run = NULL;
  lane->state = RN_LANE_FREE;
  rn_mutex_unlock(&container->mutex);
}

void rn_container_run(rn_backend_t* backend, rn_backend_run_t* run) {
  rn_container_t* container = (rn_container_t*)backend;
  rn_mutex_lock(&container->mutex);
  bool is_up = container->state == RN_CONTAINER_UP;
  rn_container_lane_t* lane = is_up ? take_lane(container, run) : NULL;
  rn_status_t status = is_up ? RN_OK : why_down(container);
  uint64_t epoch = container->epoch;
  bool has_regions = container->has_regions;
  rn_mutex_unlock(&container->mutex);
  if (!lane) {
    if (is_up)
      status = rn_resource_exhausted("Model '%.*s': its container runs as many batches as it can",
                                     RN_STR_ARGS(container->config->model));
    run->done(run, status);
    return;
  }
  int fd = -1;
  if (run->cancel) {
    lane->entry = (rn_cancel_entry_t){.fn = cancel_lane};
    lane->has_entry = rn_cancel_add(run->cancel, &lane->entry);
    if (!lane->has_entry) status = rn_cancelled("The prediction was cancelled");
  }
  if (rn_ok(status)) status = fill_lane(lane, has_regions, &fd);
  if (rn_ok(status)) {
    rn_mutex_lock(&container->mutex);
    status = send_lane(lane, fd, epoch);
    rn_mutex_unlock(&container->mutex);
  } else if (fd >= 0) {
    close(fd);
  }
  if (rn_ok(status)) return;  // the answer may have come already
  abandon_lane(lane);
  run->done(run, status);
}

// The lane of the batch |id|; NULL if it does not run. Under the lock.
static rn_container_lane_t* find_lane(rn_container_t* container, uint64_t id) {
  for (int i = 0; i < container->lane_count; ++i)
    if (container->lanes[i].state == RN_LANE_SENT && container->lanes[i].id == id)
      return &container->lanes[i];
  return NULL;
}

bool rn_container_has_run(rn_container_t* container, uint64_t id) {
  rn_mutex_lock(&container->mutex);
  bool has = find_lane(container, id) != NULL;
  rn_mutex_unlock(&container->mutex);
  return has;
}

// The lane of the batch |id|, for the loop's thread to read; NULL if it does not run.
static rn_container_lane_t* read_lane(rn_container_t* container, uint64_t id) {
  rn_mutex_lock(&container->mutex);
  rn_container_lane_t* found = find_lane(container, id);
  if (found) found->state = RN_LANE_READING;
  rn_mutex_unlock(&container->mutex);
  return found;
}

static rn_status_t name_model(const rn_container_t* container, rn_status_t status) {
  rn_status_t named =
      rn_status_make(rn_status_code(status), "Model '%.*s': %s",
                     RN_STR_ARGS(container->config->model), rn_status_message(status));
  rn_status_free(status);
  return named;
}

rn_status_t rn_container_answer(rn_container_t* container, const rn_container_frame_t* frame) {
  rn_container_lane_t* lane = read_lane(container, frame->id);
  if (!lane) return rn_invalid_argument("answered a batch that does not run");
  rn_backend_run_t* run = lane->run;
  rn_status_t status;
  if (frame->kind == RN_CONTAINER_ERROR) {
    status = rn_container_error_read(frame->payload);
  } else {
    size_t inlined;
    status = rn_container_reply_read(frame->payload, &container->hello.signatures[run->signature],
                                     run->wanted, lane->rows, &lane->region, container->allocator,
                                     run->outputs, &inlined);
    if (inlined > lane->most_output) lane->most_output = inlined;
  }
  finish(lane, rn_ok(status) ? RN_OK : name_model(container, status));
  return RN_OK;
}

void rn_container_fail_runs(rn_container_t* container, const char* why) {
  int64_t now = rn_container_now(container);
  for (int i = 0; i < container->lane_count; ++i) {
    rn_container_lane_t* lane = &container->lanes[i];
    rn_mutex_lock(&container->mutex);
    bool was_sent = lane->state == RN_LANE_SENT;
    if (was_sent) lane->state = RN_LANE_READING;
    if (lane->state != RN_LANE_FILLING) rn_container_region_free(&lane->region);
    rn_mutex_unlock(&container->mutex);
    if (!was_sent) continue;
    // A batch that took too long would do so again: the caller should not repeat it.
    bool is_overdue = lane->limit_ns <= now;
    finish(lane, rn_status_make(is_overdue ? RN_CODE_DEADLINE_EXCEEDED : RN_CODE_UNAVAILABLE,
                                "Model '%.*s': its container failed: it %s",
                                RN_STR_ARGS(container->config->model), why));
  }
}
