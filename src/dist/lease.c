// Leases: see lease.h. One timer checks all of them, sixteen times per lease.
#include "dist/lease.h"

#include "base/container.h"
#include "proto/config.pb.h"
#include "wire/decode.h"

#define LOOKS 16
#define OVER "runnel/lease"  // a payload

typedef struct lease_t {
  struct lease_t* next;
  rn_leases_t* leases;
  char* task;  // Owned
  rn_link_t link;
  rn_get_status_t question;
  bool is_asked;     // a GetStatus is under way
  int64_t since_ns;  // since when every check has found calls under way; 0: the last one found none
  uint64_t incarnation;
  int64_t losses;
  bool is_lost;
} lease_t;

struct rn_leases_t {
  rn_leases_options_t options;
  rn_timer_t timer;
  rn_mutex_t mutex;  // guards what follows
  lease_t* first;
  bool is_stopped;
};

rn_status_t rn_lease_of_config(rn_str_t config, int64_t* out_ns) {
  rn_arena_t arena;
  rn_pb_ConfigProto_t* decoded = NULL;
  rn_arena_init(&arena, rn_allocator_default());
  *out_ns = 0;
  rn_status_t status = RN_PB_DECODE(ConfigProto, config, NULL, &arena, &decoded);
  int64_t ms = 0;
  if (rn_ok(status) && decoded->experimental && decoded->experimental->coordination_config)
    ms = decoded->experimental->coordination_config->heartbeat_timeout_in_ms;
  if (rn_ok(status) && (ms < 0 || !rn_mul_i64_ok(ms, 1000000, out_ns)))
    status = rn_invalid_argument("Invalid heartbeat timeout: %lld ms", (long long)ms);
  rn_arena_clear(&arena);
  return status;
}

int64_t rn_lease_default(void) {
  double seconds = 0;
  const char* text = getenv("RUNNEL_LEASE");
  bool is_set = text && rn_str_to_f64(rn_str(text), &seconds) && seconds > 0 && seconds < 1e6;
  return is_set ? (int64_t)(seconds * 1e9) : RN_LEASE_NS;
}

static void see_payload(const char* key, const char* value, void* arg) {
  (void)value;
  if (strcmp(key, OVER) == 0) *(bool*)arg = true;
}

bool rn_lease_is_over(rn_status_t status) {
  bool is_over = false;
  rn_status_each_payload(status, see_payload, &is_over);
  return is_over;
}

static rn_status_t is_silent(const lease_t* lease, int64_t quiet_ns) {
  rn_status_t status = rn_unavailable("%s has been silent for %.1f s: its lease has expired",
                                      lease->task, (double)quiet_ns * 1e-9);
  rn_status_set_payload(status, OVER, "");
  return status;
}

static int64_t look_ns(const rn_leases_t* leases) {
  int64_t ns = leases->options.lease_ns / LOOKS;
  return ns > 0 ? ns : 1;
}

typedef enum action_t { NOTHING, ASK, DROP } action_t;

static void set_lost(rn_leases_t* leases, lease_t* lease, bool is_lost) {
  if (lease->is_lost != is_lost && leases->options.is_logged)
    rn_log(leases->options.env, is_lost ? RN_LOG_WARNING : RN_LOG_INFO,
           is_lost ? "%s is silent: its lease has expired, and calls to it fail" : "%s is back",
           lease->task);
  lease->is_lost = is_lost;
}

static void on_answer(rn_call_t* call, rn_status_t status) {
  lease_t* lease = call->owner;
  rn_mutex_lock(&lease->leases->mutex);
  lease->is_asked = false;
  if (rn_ok(status)) {
    set_lost(lease->leases, lease, false);
    if (lease->question.device_count) lease->incarnation = lease->question.devices[0].incarnation;
  }
  rn_arena_clear(&lease->question.arena);
  rn_mutex_unlock(&lease->leases->mutex);
  rn_status_free(status);
}

static action_t look_locked(rn_leases_t* leases, lease_t* lease, int64_t now, int64_t* out_quiet) {
  if (!lease->link.is_busy(lease->link.self)) {
    lease->since_ns = 0;
    return NOTHING;
  }
  if (!lease->since_ns) lease->since_ns = now;
  int64_t heard = lease->link.heard_ns(lease->link.self);
  if (heard > lease->since_ns) set_lost(leases, lease, false);
  int64_t quiet = now - (heard > lease->since_ns ? heard : lease->since_ns);
  *out_quiet = quiet;
  // A call may be one interval old when it is first seen, the next check is one interval away, and
  // one is for telling the callers.
  if (quiet >= leases->options.lease_ns - 3 * look_ns(leases)) {
    lease->since_ns = 0;
    set_lost(leases, lease, true);
    lease->losses++;
    return DROP;
  }
  if (lease->is_asked || quiet < leases->options.lease_ns / 4) return NOTHING;
  lease->is_asked = true;
  return ASK;
}

static void ask(lease_t* lease) {
  rn_leases_t* leases = lease->leases;
  lease->question =
      (rn_get_status_t){.call = {.done = on_answer, .owner = lease, .deadline_ns = INT64_MAX}};
  rn_arena_init(&lease->question.arena, leases->options.allocator);
  lease->link.worker->vtable->get_status(lease->link.worker, &lease->question);
}

static void on_look(rn_timer_t* timer) {
  rn_leases_t* leases = RN_CONTAINER_OF(timer, rn_leases_t, timer);
  const rn_env_t* env = leases->options.env;
  int64_t now = env->now_ns(env->self), quiet = 0;
  rn_mutex_lock(&leases->mutex);
  lease_t* lease = leases->is_stopped ? NULL : leases->first;
  while (lease) {
    action_t action = look_locked(leases, lease, now, &quiet);
    rn_mutex_unlock(&leases->mutex);
    if (action == ASK) ask(lease);
    if (action == DROP) lease->link.drop(lease->link.self, is_silent(lease, quiet));
    rn_mutex_lock(&leases->mutex);
    lease = lease->next;  // entries are only added, at the front
  }
  if (!leases->is_stopped)
    rn_status_free(
        leases->options.timers.set(leases->options.timers.self, timer, now + look_ns(leases)));
  rn_mutex_unlock(&leases->mutex);
}

rn_status_t rn_leases_create(const rn_leases_options_t* options, rn_leases_t** out) {
  *out = NULL;
  rn_leases_t* leases = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &leases));
  leases->options = *options;
  if (leases->options.lease_ns <= 0) leases->options.lease_ns = rn_lease_default();
  leases->timer.fn = on_look;
  rn_mutex_init(&leases->mutex);
  *out = leases;
  return RN_OK;
}

static void lease_free(rn_leases_t* leases, lease_t* lease) {
  if (lease->task) rn_free(leases->options.allocator, lease->task, strlen(lease->task) + 1);
  RN_FREE(leases->options.allocator, lease);
}

rn_status_t rn_leases_add(rn_leases_t* leases, rn_str_t task, rn_link_t link) {
  lease_t* lease = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(leases->options.allocator, &lease));
  lease->leases = leases;
  lease->link = link;
  const rn_env_t* env = leases->options.env;
  rn_status_t status = rn_str_dup(leases->options.allocator, task, &lease->task);
  rn_mutex_lock(&leases->mutex);
  // The first lease sets the timer; setting it again later cannot fail.
  if (rn_ok(status) && !leases->first && !leases->is_stopped)
    status = leases->options.timers.set(leases->options.timers.self, &leases->timer,
                                        env->now_ns(env->self) + look_ns(leases));
  if (rn_ok(status)) {
    lease->next = leases->first;
    leases->first = lease;
  }
  rn_mutex_unlock(&leases->mutex);
  if (!rn_ok(status)) lease_free(leases, lease);
  return status;
}

void rn_leases_stop(rn_leases_t* leases) {
  if (!leases) return;
  rn_mutex_lock(&leases->mutex);
  leases->is_stopped = true;
  rn_mutex_unlock(&leases->mutex);
  leases->options.timers.clear(leases->options.timers.self, &leases->timer);
}

void rn_leases_destroy(rn_leases_t* leases) {
  if (!leases) return;
  rn_leases_stop(leases);
  while (leases->first) {
    lease_t* lease = leases->first;
    leases->first = lease->next;
    lease_free(leases, lease);
  }
  rn_mutex_destroy(&leases->mutex);
  RN_FREE(leases->options.allocator, leases);
}

size_t rn_leases_list(rn_leases_t* leases, rn_lease_info_t* out, size_t room) {
  size_t count = 0;
  rn_mutex_lock(&leases->mutex);
  for (const lease_t* lease = leases->first; lease; lease = lease->next, ++count) {
    if (count >= room) continue;
    out[count] = (rn_lease_info_t){.task = rn_str(lease->task),
                                   .incarnation = lease->incarnation,
                                   .losses = lease->losses,
                                   .is_lost = lease->is_lost};
    if (leases->is_stopped) continue;
    out[count].heard_ns = lease->link.heard_ns(lease->link.self);
    out[count].is_busy = lease->link.is_busy(lease->link.self);
  }
  rn_mutex_unlock(&leases->mutex);
  return count;
}
