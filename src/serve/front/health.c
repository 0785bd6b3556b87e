// grpc.health.v1.Health: whether the server is ready, for load balancers and probes.
//
// The server ("") and its services are healthy when every model was loaded once and the server is
// not draining. A model's name is a service, too: healthy while the model has an available version.
#include "serve/front/health.h"

#include "base/sync.h"
#include "proto/health.pb.h"
#include "proto/services.pb.h"
#include "serve/front/rpc.h"
#include "wire/scan.h"
#include "wire/writer.h"

// When a watch looks again unasked. Its timer is always set, so that moving it needs no memory.
#define IDLE_NS INT64_C(3600000000000)

enum {
  SERVING = rn_pb_grpc_health_v1_HealthCheckResponse_SERVING,
  NOT_SERVING = rn_pb_grpc_health_v1_HealthCheckResponse_NOT_SERVING,
  SERVICE_UNKNOWN = rn_pb_grpc_health_v1_HealthCheckResponse_SERVICE_UNKNOWN,
};

static bool is_service(rn_str_t name) {
  if (!name.size) return true;
  for (size_t i = 0; i < rn_pb_service_count; ++i)
    if (rn_str_is(name, rn_pb_services[i])) return true;
  return false;
}

static bool is_model(const rn_front_t* front, rn_str_t name) {
  rn_arena_t arena;
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_arena_init(&arena, front->allocator);
  rn_status_t status = rn_models_info(front->models, name, &arena, &infos, &count);
  bool is_there = rn_ok(status) && count;
  rn_status_free(status);
  rn_models_info_clear(infos, count);
  rn_arena_clear(&arena);
  return is_there;
}

static int health_of(const rn_front_t* front, rn_str_t name) {
  if (is_service(name)) return front->is_ready && !front->is_draining ? SERVING : NOT_SERVING;
  rn_version_t* version = NULL;
  rn_status_t status = rn_models_find(
      front->models, &(rn_model_spec_t){.name = name, .version = -1, .label = RN_STR("")},
      &version);
  rn_version_release(version);
  bool is_available = rn_ok(status);
  rn_status_free(status);
  if (is_available) return front->is_draining ? NOT_SERVING : SERVING;
  return is_model(front, name) ? NOT_SERVING : SERVICE_UNKNOWN;
}

static rn_str_t service_of(rn_str_t request) {
  return rn_field_bytes(request, rn_pb_grpc_health_v1_HealthCheckRequest_service_field);
}

static void put_health(rn_strbuf_t* out, int health) {
  rn_pb_put_uint(out, rn_pb_grpc_health_v1_HealthCheckResponse_status_field, (uint64_t)health);
}

static void check(rn_front_t* front, rn_rpc_in_t* call) {
  int health = health_of(front, service_of(rn_rpc_request(call)));
  if (health == SERVICE_UNKNOWN) {
    rn_rpc_fail(front, call, rn_not_found("unknown service"));
    return;
  }
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  put_health(&body, health);
  rn_rpc_finish(front, call, RN_OK, &body);
}

static void put_entry(const rn_front_t* front, rn_strbuf_t* out, rn_str_t name) {
  size_t entry = rn_pb_begin(out, rn_pb_grpc_health_v1_HealthListResponse_statuses_field);
  rn_pb_put_str(out, rn_pb_grpc_health_v1_HealthListResponse_StatusesEntry_key_field, name);
  size_t value =
      rn_pb_begin(out, rn_pb_grpc_health_v1_HealthListResponse_StatusesEntry_value_field);
  put_health(out, health_of(front, name));
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
}

static void list(rn_front_t* front, rn_rpc_in_t* call) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  put_entry(front, &body, RN_STR(""));
  for (size_t i = 0; i < rn_pb_service_count; ++i)
    put_entry(front, &body, rn_str(rn_pb_services[i]));
  rn_rpc_finish(front, call, RN_OK, &body);
}

// A Watch call: the call's owner until it is gone.
typedef struct health_watch_t {
  rn_timer_t timer;                     // first
  struct health_watch_t *next, **back;  // of those that have said what they watch
  const rn_front_t* front;
  rn_rpc_in_t* call;
  rn_strbuf_t name;
  int told;  // what the client was told last; 0: nothing
  bool has_request;
} health_watch_t;

struct rn_health_watchers_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards the list
  health_watch_t* first;
};

rn_status_t rn_health_watchers_create(rn_allocator_t allocator, rn_health_watchers_t** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  return RN_OK;
}

void rn_health_watchers_destroy(rn_health_watchers_t* health) {
  if (!health) return;
  rn_mutex_destroy(&health->mutex);
  RN_FREE(health->allocator, health);
}

static void wake(health_watch_t* watch, int64_t after_ns) {
  const rn_front_t* front = watch->front;
  // If memory for a timer runs out, the client gets no further changes.
  rn_status_free(front->timers.set(front->timers.self, &watch->timer,
                                   front->env->now_ns(front->env->self) + after_ns));
}

void rn_health_watchers_wake(void* self) {
  rn_health_watchers_t* health = self;
  rn_mutex_lock(&health->mutex);
  for (health_watch_t* watch = health->first; watch; watch = watch->next) wake(watch, 0);
  rn_mutex_unlock(&health->mutex);
}

// Reports a change. Runs on the timers' thread.
static void look(rn_timer_t* timer) {
  health_watch_t* watch = (health_watch_t*)timer;
  const rn_front_t* front = watch->front;
  wake(watch, IDLE_NS);  // first: a change from now on moves it
  int health = health_of(front, rn_strbuf_view(&watch->name));
  if (health == watch->told) return;
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  put_health(&body, health);
  rn_rpc_stream(watch->call, &body);
  watch->told = health;
}

static void on_request(rn_rpc_in_t* call, rn_message_t* message) {
  health_watch_t* watch = call->owner;
  if (message && !watch->has_request) {
    rn_health_watchers_t* health = watch->front->health;
    watch->has_request = true;
    rn_strbuf_append(&watch->name, service_of(rn_message_view(message)));
    rn_mutex_lock(&health->mutex);
    watch->next = health->first;
    watch->back = &health->first;
    if (watch->next) watch->next->back = &watch->next;
    health->first = watch;
    wake(watch, 0);
    rn_mutex_unlock(&health->mutex);
  }
  if (message) rn_message_clear(message);
}

static void on_gone(rn_rpc_in_t* call) {
  health_watch_t* watch = call->owner;
  const rn_front_t* front = watch->front;
  rn_mutex_lock(&front->health->mutex);
  if (watch->back) *watch->back = watch->next;
  if (watch->next) watch->next->back = watch->back;
  rn_mutex_unlock(&front->health->mutex);
  front->timers.clear(front->timers.self, &watch->timer);
  rn_strbuf_clear(&watch->name);
  RN_FREE(front->allocator, watch);
  rn_rpc_fail(front, call, rn_cancelled("The client is gone"));
}

static void watch(rn_front_t* front, rn_rpc_in_t* call) {
  health_watch_t* self = NULL;
  rn_status_t status = front->health ? RN_NEW(front->allocator, &self)
                                     : rn_unimplemented("Nothing can be watched here");
  if (!rn_ok(status)) {
    rn_rpc_fail(front, call, status);
    return;
  }
  *self = (health_watch_t){.timer.fn = look, .front = front, .call = call};
  rn_strbuf_init(&self->name, front->allocator);
  call->owner = self;
  call->message = on_request;
  call->gone = on_gone;
}

// Probes have no tokens.
static const rn_rpc_method_t methods[] = {
    {"Check", RN_ROLE_NONE, check},
    {"Watch", RN_ROLE_NONE, watch},
    {"List", RN_ROLE_NONE, list},
};

bool rn_health_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role) {
  return rn_rpc_dispatch(front, call, role, "/grpc.health.v1.Health/", methods,
                         sizeof methods / sizeof *methods);
}
