// The pages that a task shows over HTTP, on the loop's thread; status_page.c writes them.
#include <string.h>

#include "dist/server_internal.h"
#include "framework/resource_view.h"
#include "net/token.h"

#define MAX_QUEUES 64  // that a page shows
#define HEALTH_AGAIN_NS 2000000

static rn_task_state_t state_of(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  rn_task_state_t state =
      server->gate.drained_ns || server->is_stopped ? RN_TASK_DRAINING : RN_TASK_READY;
  rn_mutex_unlock(&server->mutex);
  return state;
}

// The first few queues of the devices that sessions share.
typedef struct queues_t {
  rn_server_t* server;
  rn_arena_t* arena;
  rn_queue_view_t items[MAX_QUEUES];
  size_t count;
  rn_status_t status;
} queues_t;

static void see_resource(void* arg, rn_str_t container, rn_str_t name, rn_resource_t* resource) {
  queues_t* queues = arg;
  if (strcmp(resource->type, "Queue") != 0 || queues->count == MAX_QUEUES || !rn_ok(queues->status))
    return;
  rn_queue_view_t* view = &queues->items[queues->count++];
  view->size = queues->server->options.queue_size(resource);
  queues->status = rn_arena_str(queues->arena, container, &view->container);
  if (rn_ok(queues->status)) queues->status = rn_arena_str(queues->arena, name, &view->name);
}

static rn_status_t view_queues(rn_server_t* server, rn_arena_t* arena, queues_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, out));
  **out = (queues_t){.server = server, .arena = arena};
  int cpus = server->options.cpu_devices < 1 ? 1 : server->options.cpu_devices;
  for (int i = 0; server->options.queue_size && i < cpus; ++i)
    rn_resources_each(rn_local_worker_device(server->worker, i)->resources, see_resource, *out);
  return (*out)->status;
}

static size_t sessions_of(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  size_t count = server->master ? rn_local_master_sessions(server->master) : 0;
  rn_mutex_unlock(&server->mutex);
  return count;
}

typedef void page_fn_t(const rn_task_view_t* view, rn_strbuf_t* out);

static rn_status_t show(rn_server_t* server, page_fn_t* page, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_peer_view_t* peers = NULL;
  rn_lease_info_t* leases = NULL;
  rn_arena_init(&arena, server->allocator);
  size_t peer_count = rn_server_peers_count(server->peers);
  size_t lease_count = rn_leases_list(server->leases, NULL, 0);
  rn_status_t status = RN_ARENA_ARRAY(&arena, peer_count, &peers);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, lease_count, &leases);
  queues_t* queues = NULL;
  if (rn_ok(status)) status = view_queues(server, &arena, &queues);
  if (rn_ok(status)) {
    size_t all = rn_leases_list(server->leases, leases, lease_count);
    rn_server_peers_view(server->peers, leases, all < lease_count ? all : lease_count, peers,
                         peer_count);
    const rn_server_options_t* options = &server->options;
    int64_t now = rn_loop_now(server->loop);
    rn_task_view_t view = {.task = server->names[0],
                           .target = server->target,
                           .state = state_of(server),
                           .is_secure = options->tls != NULL,
                           .incarnation = rn_local_worker_device(server->worker, 0)->incarnation,
                           .now_ns = now,
                           .uptime_ns = now - server->started_ns,
                           .lease_ns = options->lease_ns,
                           .sessions = sessions_of(server),
                           .contexts = rn_eager_service_contexts(server->eager),
                           .worker = rn_local_worker_stats(server->worker),
                           .port = rn_rpc_server_stats(server->rpc),
                           .gate = &server->gate,
                           .peers = peers,
                           .peer_count = peer_count,
                           .queues = queues->items,
                           .queue_count = queues->count};
    page(&view, out);
    status = rn_strbuf_status(out);
  }
  rn_arena_clear(&arena);
  return status;
}

static void audit_stop(rn_server_t* server, rn_socket_t* from, uint32_t rights, int code) {
  if (!server->options.audit) return;
  rn_strbuf_t address;
  rn_strbuf_init(&address, server->allocator);
  rn_status_free(from->vtable->peer_address(from, &address));
  server->options.audit(server->options.audit_self,
                        &(rn_audit_event_t){.action = "stop",
                                            .name = rn_tls_peer(from),
                                            .address = rn_strbuf_view(&address),
                                            .rights = rights,
                                            .outcome = code == 202   ? RN_CODE_OK
                                                       : code == 401 ? RN_CODE_UNAUTHENTICATED
                                                                     : RN_CODE_PERMISSION_DENIED});
  rn_strbuf_clear(&address);
}

// The header proves that the request is deliberate: pages of other sites cannot set it.
static void end_page(rn_server_t* server, const rn_http1_request_t* request, uint32_t rights,
                     rn_http1_answer_t* out) {
  bool is_meant =
      server->options.asked_to_end && rn_str_is(rn_http1_header(request, "x-runnel"), "stop");
  bool may = is_meant && rights & RN_MAY_OPERATE;
  out->code = !rn_str_is(request->method, "POST") ? 405 : may ? 202 : 403;
  rn_strbuf_printf(&out->body, "%s\n",
                   out->code == 405 ? "POST it"
                   : may            ? "ending"
                   : is_meant
                       ? "the role of an operator is needed, which the token or certificate does "
                         "not give"
                       : "the header X-Runnel: stop is missing, or this task does not accept it");
  if (out->code == 202) server->options.asked_to_end();
}

// A healthy task must be able to run steps.
static void health_page(rn_server_t* server, rn_task_state_t state, rn_http1_answer_t* out) {
  rn_health_state_t health =
      state == RN_TASK_DRAINING ? RN_HEALTH_GOOD : rn_health_ask(server->health);
  if (health == RN_HEALTH_WAITS) out->again_ns = HEALTH_AGAIN_NS;
  bool is_good = health == RN_HEALTH_GOOD && state != RN_TASK_DRAINING;
  out->code = is_good ? 200 : 503;
  rn_strbuf_printf(&out->body, "%s\n",
                   is_good                     ? "ok"
                   : state == RN_TASK_DRAINING ? "draining"
                                               : "stuck: a trivial step does not end");
}

void rn_server_page(void* self, const rn_http1_request_t* request, rn_socket_t* from,
                    rn_http1_answer_t* out) {
  rn_server_t* server = self;
  rn_tokens_t* tokens = server->options.tokens;
  uint32_t roles = tokens ? rn_tokens_grant(tokens, rn_http1_header(request, "authorization")) : 0;
  uint32_t rights = rn_call_gate_rights(&server->gate, roles, rn_tls_peer(from));
  bool is_stop = rn_str_is(request->path, "/stop");
  rn_status_t status = RN_OK;
  rn_task_state_t state = state_of(server);
  out->code = 200;
  // Health checks need no token; all other pages do, if there is one.
  bool is_open = rn_str_is(request->path, "/healthz") || rn_str_is(request->path, "/readyz");
  if (!is_open && !rights) {
    out->code = 401;
    rn_strbuf_printf(&out->body, "needs the header Authorization: Bearer with the task's token\n");
  } else if (is_stop) {
    end_page(server, request, rights, out);
  } else if (!rn_str_is(request->method, "GET") && !rn_str_is(request->method, "HEAD")) {
    out->code = 405;
  } else if (rn_str_is(request->path, "/healthz")) {
    health_page(server, state, out);
  } else if (rn_str_is(request->path, "/readyz")) {
    out->code = state == RN_TASK_READY ? 200 : 503;
    rn_strbuf_printf(&out->body, "%s\n", state == RN_TASK_READY ? "ready" : "not ready");
  } else if (rn_str_is(request->path, "/metrics")) {
    out->type = "text/plain; version=0.0.4; charset=utf-8";
    status = show(server, rn_status_page_metrics, &out->body);
  } else if (rn_str_is(request->path, "/statusz") || rn_str_is(request->path, "/")) {
    bool is_json = rn_http1_query_has(request->query, "format", "json");
    out->type = is_json ? "application/json" : "text/html; charset=utf-8";
    status = show(server, is_json ? rn_status_page_json : rn_status_page_html, &out->body);
  } else {
    out->code = 404;
    rn_strbuf_printf(&out->body, "The pages are /healthz, /readyz, /statusz and /metrics\n");
  }
  if (is_stop) audit_stop(server, from, rights, out->code);
  if (!rn_ok(status)) out->code = 500;
  rn_status_free(status);
}
