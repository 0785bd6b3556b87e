// The life of a container: start, beats, failures, restart, stop. See container.h.
//
//   DOWN -> STARTING -> UP -> DOWN ...   on the loop's thread; any state -> STOPPING -> GONE
#include "serve/model/container.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/fs.h"
#include "base/log.h"
#include "serve/model/container_internal.h"

#define MS_NS INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)
#define STEADY_NS (10 * SECOND_NS)  // one that was up this long failed for the first time

static bool container_is_down(rn_backend_t* backend) {
  return ((rn_container_t*)backend)->state != RN_CONTAINER_UP;
}

static const rn_backend_vtable_t container_vtable = {
    .kind = "container",
    .run = rn_container_run,
    .destroy = rn_container_destroy,
    .is_down = container_is_down,
};

int64_t rn_container_now(const rn_container_t* container) { return rn_loop_now(container->loop); }

static void set_timer(rn_container_t* container, int64_t at_ns) {
  rn_status_t status = rn_loop_set_timer(container->loop, &container->timer, at_ns);
  if (!rn_ok(status))  // only without memory for the loop's list
    rn_log(container->containers->env, RN_LOG_ERROR, "%s: %s", container->name,
           rn_status_message(status));
  rn_status_free(status);
}

// Sets the state, and why it is not up: "it ...".
static void set_state(rn_container_t* container, rn_container_state_t state, const char* why) {
  rn_mutex_lock(&container->mutex);
  if (container->state != RN_CONTAINER_STOPPING || state == RN_CONTAINER_GONE)
    container->state = state;
  if (why) snprintf(container->error, sizeof container->error, "%s", why);
  if (state == RN_CONTAINER_DOWN || state == RN_CONTAINER_UP) container->attempts++;
  rn_cond_broadcast(&container->changed);
  rn_mutex_unlock(&container->mutex);
}

static bool is_stopping(const rn_container_t* container) {
  return container->state == RN_CONTAINER_STOPPING;
}

static void close_link(rn_container_t* container) {
  rn_mutex_lock(&container->mutex);
  rn_container_link_close(&container->link);
  container->has_regions = false;
  rn_mutex_unlock(&container->mutex);
}

// Nothing is left of the container: lets rn_container_destroy go on, which frees it.
static void vanish(rn_container_t* container) {
  close_link(container);
  rn_loop_clear_timer(container->loop, &container->timer);
  set_state(container, RN_CONTAINER_GONE, NULL);
}

static void schedule_start(rn_container_t* container) {
  const rn_env_t* env = container->containers->env;
  int64_t wait =
      rn_container_back_off(container->config, container->failures, env->random(env->self));
  set_timer(container, rn_container_now(container) + wait);
}

// The container is lost, for the reason |why|: "it ...". What is left of its process is killed;
// when it has ended, |process_ended| goes on.
static void lose(rn_container_t* container, const char* why, bool has_reason) {
  bool has_process = container->process != NULL, was_stopping = is_stopping(container);
  bool was_steady = container->up_ns && rn_container_now(container) - container->up_ns > STEADY_NS;
  container->failures = was_steady ? 1 : container->failures + 1;
  container->up_ns = 0;
  container->is_greeted = false;
  container->has_reason = has_reason;
  close_link(container);
  if (!was_stopping) {
    rn_log(container->containers->env, RN_LOG_WARNING, "%s %s", container->name, why);
    rn_loop_clear_timer(container->loop, &container->timer);
    set_state(container, has_process ? RN_CONTAINER_STARTING : RN_CONTAINER_DOWN, why);
  }
  rn_container_fail_runs(container, why);
  if (was_stopping && !has_process)
    vanish(container);
  else if (!was_stopping && has_process)
    rn_container_process_signal(container->process, SIGKILL);
  else if (!was_stopping)
    schedule_start(container);
}

// |what| goes before the message of |status|.
static void lose_by(rn_container_t* container, const char* what, rn_status_t status) {
  char message[sizeof container->error], why[sizeof message];
  snprintf(message, sizeof message, "%s%s", what, rn_status_message(status));
  rn_log_escape(message, why, sizeof why);
  // A stream that just ended says less than the end of the process will.
  bool has_reason = rn_status_code(status) != RN_CODE_UNAVAILABLE || !container->process;
  rn_status_free(status);
  lose(container, why, has_reason);
}

static void process_ended(void* self, rn_container_process_t* process) {
  rn_container_t* container = self;
  // A last reply may still be in the socket.
  rn_container_link_read(&container->link);
  char why[sizeof container->error], line[256];
  rn_log_escape(rn_container_process_last_line(process), line, sizeof line);
  snprintf(why, sizeof why, "%s%s%s", rn_container_process_end(process), line[0] ? ": " : "", line);
  bool was_lost = !container->link.watch.socket;
  container->process = NULL;
  rn_container_process_free(process);
  rn_mutex_lock(&container->mutex);
  container->stats.pid = 0;
  rn_mutex_unlock(&container->mutex);
  if (!was_lost) {
    lose(container, why, true);
  } else if (is_stopping(container)) {
    vanish(container);
  } else {
    rn_log(container->containers->env, RN_LOG_WARNING, "%s %s", container->name, why);
    set_state(container, RN_CONTAINER_DOWN, container->has_reason ? NULL : why);
    schedule_start(container);
  }
}

static void link_broken(void* self, rn_status_t status) { lose_by(self, "", status); }

// The first HELLO decides what the model has; those after a restart must say the same.
static rn_status_t take_hello(rn_container_t* container, rn_str_t payload) {
  if (container->lanes) {
    rn_arena_t arena;
    rn_container_hello_t hello;
    rn_arena_init(&arena, container->allocator);
    rn_status_t status = rn_container_hello_read(payload, &arena, &hello);
    if (rn_ok(status) && !rn_container_hello_same(&hello, &container->hello))
      status = rn_failed_precondition("has other signatures than before");
    container->hello.takes_regions = hello.takes_regions;
    rn_arena_clear(&arena);
    return status;
  }
  RN_RETURN_IF_ERROR(rn_container_hello_read(payload, &container->arena, &container->hello));
  if (container->hello.model.size && !rn_str_eq(container->hello.model, container->config->model))
    return rn_failed_precondition("serves the model '%.*s'", RN_STR_ARGS(container->hello.model));
  return rn_container_make_lanes(container);
}

// HELLO: answers WELCOME. The container agrees to it with a BEAT.
static rn_status_t greet(rn_container_t* container, rn_str_t payload) {
  const rn_container_config_t* config = container->config;
  if (container->is_greeted) return rn_invalid_argument("said HELLO twice");
  RN_RETURN_IF_ERROR(take_hello(container, payload));
  container->is_greeted = true;
  rn_mutex_lock(&container->mutex);
  container->has_regions = container->hello.takes_regions && !config->copies &&
                           rn_container_link_can_pass(&container->link);
  rn_container_write_welcome(&container->link.out, config->model, config->number, config->token,
                             config->beat_ns / MS_NS, config->beat_timeout_ns / MS_NS,
                             container->has_regions);
  rn_container_link_flush(&container->link);
  rn_mutex_unlock(&container->mutex);
  return RN_OK;
}

static void come_up(rn_container_t* container) {
  container->up_ns = rn_container_now(container);
  container->beat_ns = container->up_ns + container->config->beat_ns;
  rn_mutex_lock(&container->mutex);
  container->epoch++;
  rn_mutex_unlock(&container->mutex);
  set_state(container, RN_CONTAINER_UP, "");
  set_timer(container, container->up_ns);
}

static rn_status_t take_frame(void* self, const rn_container_frame_t* frame) {
  rn_container_t* container = self;
  container->heard_ns = rn_container_now(container);
  if (frame->kind == RN_CONTAINER_HELLO) return greet(container, frame->payload);
  if (frame->kind == RN_CONTAINER_ERROR && !frame->id)
    return rn_container_error_read(frame->payload);
  if (!container->is_greeted) return rn_invalid_argument("did not say HELLO first");
  if (frame->kind != RN_CONTAINER_BEAT) return rn_container_answer(container, frame);
  if (!container->up_ns && !is_stopping(container)) come_up(container);
  return RN_OK;
}

static bool expects_frame(void* self, const rn_container_frame_t* frame) {
  return frame->kind != RN_CONTAINER_REPLY || rn_container_has_run(self, frame->id);
}

// Takes |socket|.
static rn_status_t open_link(rn_container_t* container, rn_socket_t* socket) {
  const rn_container_link_events_t events = {.frame = take_frame,
                                             .expects = expects_frame,
                                             .broken = link_broken,
                                             .mutex = &container->mutex,
                                             .self = container};
  rn_mutex_lock(&container->mutex);
  rn_status_t status = rn_container_link_open(&container->link, container->loop, socket, &events,
                                              container->allocator);
  container->heard_ns = rn_container_now(container);
  rn_mutex_unlock(&container->mutex);
  return status;
}

static rn_status_t start_process(rn_container_t* container) {
  const rn_container_config_t* config = container->config;
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return rn_status_of_errno("socketpair", errno);
  rn_socket_t* socket;
  rn_status_t status = rn_net_adopt(fds[0], container->name, container->allocator, &socket);
  if (!rn_ok(status)) {
    close(fds[1]);
    return status;
  }
  const rn_container_process_options_t options = {.loop = container->loop,
                                                  .name = container->name,
                                                  .argv = config->argv,
                                                  .envp = config->envp,
                                                  .folder = config->folder,
                                                  .memory_bytes = config->memory_bytes,
                                                  .ended = process_ended,
                                                  .self = container};
  status = rn_container_process_start(&options, fds[1], container->allocator, &container->process);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  rn_mutex_lock(&container->mutex);
  container->stats.pid = rn_container_process_pid(container->process);
  rn_mutex_unlock(&container->mutex);
  return open_link(container, socket);
}

static void dialled(rn_container_t* container, rn_status_t status, rn_socket_t* socket) {
  if (is_stopping(container)) {
    rn_status_free(status);
    if (socket) socket->vtable->close(socket);
    vanish(container);
    return;
  }
  if (rn_ok(status)) status = open_link(container, socket);
  if (!rn_ok(status)) lose_by(container, "cannot be reached: ", status);
}

static void start_now(rn_container_t* container) {
  container->deadline_ns = rn_container_now(container) + container->config->start_ns;
  rn_mutex_lock(&container->mutex);
  container->stats.starts++;
  rn_mutex_unlock(&container->mutex);
  set_state(container, RN_CONTAINER_STARTING, NULL);
  set_timer(container, container->deadline_ns);
  rn_status_t status =
      container->config->address ? rn_container_dial(container, dialled) : start_process(container);
  if (!rn_ok(status)) lose_by(container, "cannot be started: ", status);
}

// The limit of the batch that will pass its limit first.
static int64_t first_limit(rn_container_t* container) {
  int64_t first = INT64_MAX;
  rn_mutex_lock(&container->mutex);
  for (int i = 0; i < container->lane_count; ++i)
    if (container->lanes[i].state == RN_LANE_SENT && container->lanes[i].limit_ns < first)
      first = container->lanes[i].limit_ns;
  rn_mutex_unlock(&container->mutex);
  return first;
}

static void beat(rn_container_t* container) {
  rn_mutex_lock(&container->mutex);
  // A container that reads nothing needs no more beats.
  if (rn_container_link_is_open(&container->link) && !container->link.out.size) {
    rn_container_write_empty(&container->link.out, RN_CONTAINER_BEAT, 0);
    rn_container_link_flush(&container->link);
  }
  rn_mutex_unlock(&container->mutex);
}

// What is wrong with a container that is up, as |out|; false if nothing is.
static bool is_hung(rn_container_t* container, char* out, size_t room) {
  const rn_container_config_t* config = container->config;
  int64_t now = rn_container_now(container), silent = now - container->heard_ns;
  if (silent > config->beat_timeout_ns)
    snprintf(out, room, "was silent for %lld ms and was stopped", (long long)(silent / MS_NS));
  else if (first_limit(container) <= now)
    snprintf(out, room, "took longer than %lld ms for a batch and was stopped",
             (long long)(config->run_ns / MS_NS));
  else
    return false;
  return true;
}

// While it is up: a beat if one is due, and a look at the limits.
static void watch_over(rn_container_t* container) {
  const rn_container_config_t* config = container->config;
  char why[128];
  int64_t late = rn_container_now(container) - container->timer.at_ns;
  if (is_hung(container, why, sizeof why)) {
    // If this thread was busy, the container's beats and replies wait in the socket.
    rn_container_link_read(&container->link);
    if (container->state != RN_CONTAINER_UP) return;
    if (late > config->beat_ns) container->heard_ns = rn_container_now(container);
    if (is_hung(container, why, sizeof why)) {
      lose(container, why, true);
      return;
    }
  }
  int64_t now = rn_container_now(container), limit = first_limit(container);
  if (now >= container->beat_ns) {
    beat(container);
    container->beat_ns = now + config->beat_ns;
  }
  int64_t next = container->beat_ns;
  if (limit < next) next = limit;
  if (now + config->run_ns < next) next = now + config->run_ns;  // of a batch that comes now
  set_timer(container, next);
}

static void go_on_stopping(rn_container_t* container) {
  if (!container->process) {
    if (!container->dial) vanish(container);
    return;
  }
  rn_container_process_signal(container->process, container->is_warned ? SIGKILL : SIGTERM);
  if (!container->is_warned) set_timer(container, container->deadline_ns);
  container->is_warned = true;
}

static void tick(rn_timer_t* timer) {
  rn_container_t* container = RN_CONTAINER_OF(timer, rn_container_t, timer);
  rn_container_state_t state = container->state;
  switch (state) {
    case RN_CONTAINER_DOWN:
      start_now(container);
      break;
    case RN_CONTAINER_STARTING:
      if (container->dial) {  // it has a deadline of its own
        set_timer(container, rn_container_now(container) + container->config->start_ns);
      } else {
        char why[128];
        snprintf(why, sizeof why, "did not say HELLO within %lld ms",
                 (long long)(container->config->start_ns / MS_NS));
        lose(container, why, true);
      }
      break;
    case RN_CONTAINER_UP:
      watch_over(container);
      break;
    case RN_CONTAINER_STOPPING:
      go_on_stopping(container);
      break;
    case RN_CONTAINER_GONE:
      break;
  }
}

static void run_start(rn_loop_job_t* job) {
  start_now(RN_CONTAINER_OF(job, rn_container_t, start_job));
}

// DRAIN at once, SIGTERM after half of the time, SIGKILL at its end.
static void run_stop(rn_loop_job_t* job) {
  rn_container_t* container = RN_CONTAINER_OF(job, rn_container_t, stop_job);
  bool was_up = container->up_ns != 0;
  int64_t now = rn_container_now(container);
  container->deadline_ns = now + container->config->stop_ns;
  rn_mutex_lock(&container->mutex);
  container->state = RN_CONTAINER_STOPPING;
  if (was_up && rn_container_link_is_open(&container->link)) {
    rn_container_write_empty(&container->link.out, RN_CONTAINER_DRAIN, 0);
    rn_container_link_flush(&container->link);
  }
  rn_mutex_unlock(&container->mutex);
  if (was_up && container->process)
    set_timer(container, now + container->config->stop_ns / 2);
  else
    go_on_stopping(container);
}

rn_status_t rn_container_create(rn_containers_t* containers, rn_container_shared_t* shared,
                                int replica, rn_container_t** out) {
  *out = NULL;
  rn_container_t* container = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(containers->allocator, &container));
  container->backend = (rn_backend_t){.vtable = &container_vtable, .lanes = 1};
  container->allocator = containers->allocator;
  container->containers = containers;
  container->loop = containers->loop;
  container->shared = shared;
  shared->refs++;
  container->config = &shared->config;
  snprintf(container->name, sizeof container->name, "container '%.*s' %lld #%d",
           RN_STR_ARGS(shared->config.model), (long long)shared->config.number, replica);
  container->timer.fn = tick;
  container->start_job.run = run_start;
  container->stop_job.run = run_stop;
  rn_arena_init(&container->arena, container->allocator);
  rn_strbuf_init(&container->meta, container->allocator);
  rn_mutex_init(&container->mutex);
  rn_cond_init(&container->changed);
  *out = container;
  return RN_OK;
}

void rn_container_start(rn_container_t* container) {
  rn_loop_post(container->loop, &container->start_job);
}

rn_status_t rn_container_wait(rn_container_t* container) {
  const rn_container_config_t* config = container->config;
  // The loop keeps the limit of a process that we started; this is only longer.
  int64_t more = config->address ? 0 : config->start_ns;
  int64_t deadline = rn_container_now(container) + config->start_ns + more + SECOND_NS;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&container->mutex);
  // One that is started elsewhere may come later; one that we started has had its chance.
  while (container->state != RN_CONTAINER_UP && !(container->attempts && !config->address) &&
         rn_cond_wait_until(&container->changed, &container->mutex, deadline)) {
  }
  if (container->state != RN_CONTAINER_UP)
    status = rn_unavailable("Model '%.*s': its container %s", RN_STR_ARGS(config->model),
                            container->error[0] ? container->error : "does not answer");
  rn_mutex_unlock(&container->mutex);
  return status;
}

void rn_container_destroy(rn_backend_t* backend) {
  rn_container_t* container = (rn_container_t*)backend;
  rn_loop_post(container->loop, &container->stop_job);
  rn_mutex_lock(&container->mutex);
  while (container->state != RN_CONTAINER_GONE)
    rn_cond_wait(&container->changed, &container->mutex);
  rn_mutex_unlock(&container->mutex);
  rn_container_free_lanes(container);
  rn_strbuf_clear(&container->meta);
  rn_arena_clear(&container->arena);
  rn_container_shared_release(container->shared);
  rn_cond_destroy(&container->changed);
  rn_mutex_destroy(&container->mutex);
  RN_FREE(container->allocator, container);
}

rn_container_stats_t rn_container_stats(rn_backend_t* backend) {
  rn_container_t* container = (rn_container_t*)backend;
  rn_mutex_lock(&container->mutex);
  rn_container_stats_t stats = container->stats;
  rn_mutex_unlock(&container->mutex);
  return stats;
}
