// A task's server: see server.h.
#include "dist/server.h"

#include <stdio.h>

#include "base/machine.h"
#include "dist/rpc/codec.h"
#include "dist/server_internal.h"
#include "net/token.h"

#define MAX_SESSIONS 1000
#define STALL_NS INT64_C(60000000000)
#define HALF_NS INT64_C(60000000000)
#define IDLE_NS INT64_C(600000000000)
#define MAX_DOORS 1024

const char* rn_server_target(const rn_server_t* server) { return server->target; }

static bool is_in_cluster(void* self, rn_str_t address) {
  const rn_server_t* server = self;
  return rn_str_eq(server->own_address, address) || rn_server_peers_has(server->peers, address);
}

static bool is_loopback(rn_str_t host) {
  return rn_str_is(host, "localhost") || rn_str_is(host, "[::1]") ||
         rn_str_starts_with(host, RN_STR("127."));
}

// The part of "host:port" before the port.
static rn_str_t host_of(rn_str_t address) {
  size_t size = address.size;
  while (size && address.data[size - 1] != ':') --size;
  return rn_str_n(address.data, size ? size - 1 : 0);
}

// The addresses that clients may make this task connect to.
static bool may_reach(void* self, rn_str_t address) {
  const rn_server_t* server = self;
  bool is_local = server->options.reaches_local && is_loopback(host_of(server->own_address)) &&
                  is_loopback(host_of(address));
  return server->options.reaches_all || (server->only && rn_fs_only_has_network(server->only)) ||
         is_local || is_in_cluster(self, address);
}

static void handle(void* self, rn_rpc_in_t* call) {
  rn_server_t* server = self;
  rn_mutex_lock(&server->mutex);
  bool is_stopped = server->is_stopped;
  rn_mutex_unlock(&server->mutex);
  rn_status_t status = rn_call_gate_admit(&server->gate, call);
  if (rn_ok(status) && is_stopped) status = rn_unavailable("The server is closing");
  if (rn_ok(status) && rn_coordination_has(rn_rpc_path(call))) {
    rn_coordination_handle(server->coordination, call);
    return;
  }
  if (rn_ok(status) && rn_eager_service_has(rn_rpc_path(call))) {
    rn_eager_service_handle(server->eager, call);
    return;
  }
  if (rn_ok(status)) {
    rn_service_handle(&server->service, call);
    return;
  }
  rn_message_t none;
  rn_message_init(&none, server->allocator);
  rn_rpc_reply(call, status, &none);
}

static void on_replied(void* self, rn_rpc_in_t* call, rn_code_t code) {
  rn_call_gate_replied(&((rn_server_t*)self)->gate, call, code);
}

void rn_server_drain(rn_server_t* server) { rn_call_gate_drain(&server->gate); }

bool rn_server_is_busy(rn_server_t* server) {
  // Each context of an eager client has a step of its own lifetime, which does not count.
  return rn_call_gate_busy(&server->gate) || rn_local_worker_has_mail(server->worker) ||
         rn_local_worker_stats(server->worker).steps > rn_eager_service_contexts(server->eager);
}

static rn_status_t task_name(rn_server_t* server, rn_str_t job, int32_t index, rn_str_t* out) {
  return rn_arena_printf(&server->arena, out, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(job),
                         index);
}

static rn_status_t take_cluster(rn_server_t* server, rn_str_t* out_address) {
  const rn_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&server->arena, options->task_count, &server->names));
  bool is_found = false;
  for (size_t i = 0; i < options->task_count; ++i) {
    const rn_server_task_t* task = &options->tasks[i];
    rn_str_t name, address;
    RN_RETURN_IF_ERROR(task_name(server, task->job, task->index, &name));
    RN_RETURN_IF_ERROR(rn_arena_str(&server->arena, task->address, &address));
    if (rn_str_eq(task->job, options->job) && task->index == options->index) {
      if (is_found)
        return rn_invalid_argument("Task %.*s is in the cluster twice", RN_STR_ARGS(name));
      is_found = true;
      server->names[0] = name;
      *out_address = address;
      continue;
    }
    RN_RETURN_IF_ERROR(rn_server_peers_add(server->peers, name, address));
    size_t count = rn_server_peers_count(server->peers);
    if (count < options->task_count) server->names[count] = name;
  }
  if (is_found) return RN_OK;
  return rn_invalid_argument("Task %d was not defined in job \"%.*s\"", options->index,
                             RN_STR_ARGS(options->job));
}

// The task that knows all groups of collectives: as given, or the first of the chief's or the
// workers' job, or of the first job by name.
static rn_str_t leader_of(const rn_server_t* server) {
  if (server->options.collective_leader.size) return server->options.collective_leader;
  static const char* const first[] = {"/job:chief/replica:0/task:0",
                                      "/job:worker/replica:0/task:0"};
  rn_str_t least = server->names[0];
  for (size_t f = 0; f < sizeof first / sizeof *first; ++f)
    for (size_t i = 0; i < server->options.task_count; ++i)
      if (rn_str_is(server->names[i], first[f])) return server->names[i];
  for (size_t i = 1; i < server->options.task_count; ++i)
    if (strcmp(server->names[i].data, least.data) < 0) least = server->names[i];
  return least;
}

// Where to listen for |own|, "host:port".
static rn_status_t listen_address(rn_server_t* server, rn_str_t own, rn_str_t* out) {
  if (server->options.address.size)
    return rn_arena_str(&server->arena, server->options.address, out);
  const char* colon = own.size ? strrchr(own.data, ':') : NULL;
  if (!colon)
    return rn_invalid_argument("Could not interpret \"%.*s\" as a host-port pair.",
                               RN_STR_ARGS(own));
  rn_str_t host = rn_str_n(own.data, (size_t)(colon - own.data));
  bool is_v6 = host.size && host.data[0] == '[', is_here = is_loopback(host);
  const char* place = is_v6 ? (is_here ? "[::1]" : "[::]") : is_here ? "127.0.0.1" : "0.0.0.0";
  return rn_arena_printf(&server->arena, out, "%s:%s", place, colon + 1);
}

// Defaults for the limits of clients. Connections leave a quarter of the descriptors to files and
// our own calls.
static void set_limits(const rn_server_options_t* options, rn_rpc_server_options_t* out) {
  size_t memory = rn_machine_memory(), descriptors = rn_machine_descriptors();
  out->max_held = options->max_client_memory ? options->max_client_memory : memory / 2;
  out->max_all_held = memory / 4 * 3 > out->max_held ? memory / 4 * 3 : out->max_held;
  out->max_connections =
      options->max_connections > 0 ? (size_t)options->max_connections : descriptors / 2;
  out->max_doors = descriptors / 4 < MAX_DOORS ? descriptors / 4 + 1 : MAX_DOORS;
  out->stall_ns = options->stall_ns ? options->stall_ns : STALL_NS;
  out->half_ns = options->half_ns ? options->half_ns : HALF_NS;
  out->idle_ns = options->idle_ns < 0 ? 0 : options->idle_ns ? options->idle_ns : IDLE_NS;
}

// Without UCX, the server works as it does without a wire.
static rn_status_t open_wire(rn_server_t* server) {
  const rn_server_options_t* own = &server->options;
  bool is_local = false;
  for (size_t i = 0; i < own->task_count; ++i)
    if (rn_str_eq(own->tasks[i].job, own->job) && own->tasks[i].index == own->index)
      is_local = is_loopback(host_of(own->tasks[i].address));
  rn_wire_options_t options = {.env = &server->env,
                               .allocator = server->allocator,
                               .landing = rn_loop_landing(server->loop),
                               .max_value = rn_machine_memory(),
                               .is_local = is_local,
                               .lease_ns = own->lease_ns};
  rn_status_t status = rn_wire_create(&options, &server->service.wire);
  rn_code_t code = rn_status_code(status);
  if (code != RN_CODE_UNAVAILABLE && code != RN_CODE_UNIMPLEMENTED) return status;
  rn_log(&server->env, RN_LOG_WARNING, "%s; tensors come over the ordinary connections",
         rn_status_message(status));
  rn_status_free(status);
  return RN_OK;
}

static rn_status_t set_up(rn_server_t* server) {
  rn_server_options_t* options = &server->options;
  rn_str_t own = {0}, address;
  RN_RETURN_IF_ERROR(
      rn_arena_str(&server->arena, options->collective_leader, &options->collective_leader));
  RN_RETURN_IF_ERROR(rn_pool_create(server->allocator, options->threads, &server->pool));
  if (rn_pool_threads(server->pool) <
      3) {  // a pool counts the thread that waits, and the loop never waits
    rn_pool_destroy(server->pool);
    server->pool = NULL;
    RN_RETURN_IF_ERROR(rn_pool_create(server->allocator, 3, &server->pool));
  }
  server->env.pool = server->pool;
  RN_RETURN_IF_ERROR(rn_loop_create(&server->env, server->allocator, &server->loop));
  server->started_ns = rn_loop_now(server->loop);
  rn_leases_options_t leases = {.env = &server->env,
                                .allocator = server->allocator,
                                .timers = rn_loop_timers(server->loop),
                                .lease_ns = options->lease_ns,
                                .is_logged = true};
  RN_RETURN_IF_ERROR(rn_leases_create(&leases, &server->leases));
  if (!options->lends_nothing) {  // without its socket the server works, but lends nothing
    rn_status_t status = rn_loans_create(&server->env, server->allocator, &server->service.loans);
    if (rn_status_code(status) != RN_CODE_UNAVAILABLE) RN_RETURN_IF_ERROR(status);
    rn_status_free(status);
  }
  if (options->uses_ucx) RN_RETURN_IF_ERROR(open_wire(server));
  rn_server_peers_options_t to_others = {.env = &server->env,
                                         .allocator = server->allocator,
                                         .loop = server->loop,
                                         .leases = server->leases,
                                         .lease_ns = options->lease_ns,
                                         .tls = options->tls,
                                         .tokens = options->tokens,
                                         .borrows = !options->lends_nothing,
                                         .loans = server->service.loans,
                                         .wire = server->service.wire,
                                         .may_reach = may_reach,
                                         .self = server};
  RN_RETURN_IF_ERROR(rn_server_peers_create(&to_others, &server->peers));
  RN_RETURN_IF_ERROR(take_cluster(server, &own));
  rn_server_peers_set_task(server->peers, server->names[0]);
  server->own_address = own;
  RN_RETURN_IF_ERROR(listen_address(server, own, &address));
  rn_peers_t peers = rn_server_peers_table(server->peers);
  rn_address_book_t reach = rn_server_peers_reach(server->peers);
  server->inner = server->env;
  if (options->is_limited) {
    RN_RETURN_IF_ERROR(rn_fs_only_create(&server->env, RN_STR(""), options->allow,
                                         server->allocator, &server->only));
    rn_fs_only_apply(server->only, &server->inner);
  }
  if (options->uses_mpi)
    RN_RETURN_IF_ERROR(rn_mpi_create(server->names[0], server->allocator, &server->mpi));
  rn_local_worker_options_t worker = {.env = &server->inner,
                                      .allocator = server->allocator,
                                      .task = server->names[0].data,
                                      .cpu_devices = options->cpu_devices,
                                      .null_devices = options->null_devices,
                                      .gpu = options->gpu,
                                      .peers = peers,
                                      .reach = reach,
                                      .collective_leader = leader_of(server),
                                      .collective_nccl = options->collective_nccl,
                                      .exchanger = rn_mpi_exchanger(server->mpi)};
  RN_RETURN_IF_ERROR(rn_local_worker_create(&worker, &server->worker));
  RN_RETURN_IF_ERROR(
      rn_health_create(&server->env, server->worker, server->allocator, &server->health));
  int64_t lease = options->lease_ns;
  rn_worker_fence_options_t fence = {.allocator = server->allocator,
                                     .env = &server->env,
                                     .worker = rn_local_worker_face(server->worker),
                                     .timers = rn_loop_timers(server->loop),
                                     .lease_ns = lease};
  RN_RETURN_IF_ERROR(rn_worker_fence_create(&fence, &server->fence));
  rn_local_master_options_t master = {.env = &server->inner,
                                      .allocator = server->allocator,
                                      .worker = server->worker,
                                      .tasks = server->names,
                                      .task_count = (int)options->task_count,
                                      .peers = peers,
                                      .reach = reach,
                                      .timers = rn_loop_timers(server->loop),
                                      .grace_ns = lease,
                                      .session_gc_ns = options->session_gc_ns};
  RN_RETURN_IF_ERROR(rn_local_master_create(&master, &server->master));
  rn_worker_gc_options_t gc = {.env = &server->env,
                               .allocator = server->allocator,
                               .worker = server->worker,
                               .peers = peers,
                               .timers = rn_loop_timers(server->loop)};
  RN_RETURN_IF_ERROR(rn_worker_gc_create(&gc, &server->gc));
  server->service = (rn_service_t){.loans = server->service.loans,
                                   .wire = server->service.wire,
                                   .worker = rn_worker_fence_face(server->fence),
                                   .master = rn_local_master_face(server->master),
                                   .env = &server->env,
                                   .allocator = server->allocator};
  server->gate = (rn_call_gate_t){
      .env = &server->env,
      .task = server->names[0],
      .names = server->names,
      .name_count = options->task_count,
      .checks_names = options->tls != NULL,
      .has_operators = options->has_operators,
      .checks_tokens = options->tokens != NULL,
      .audit = options->audit,
      .audit_self = options->audit_self,
      .max_sessions = options->max_sessions ? options->max_sessions : MAX_SESSIONS};
  rn_coordination_options_t coordination = {.env = &server->env,
                                            .allocator = server->allocator,
                                            .timers = rn_loop_timers(server->loop),
                                            .tasks = server->names,
                                            .task_count = options->task_count,
                                            .silence_ns = lease};
  RN_RETURN_IF_ERROR(rn_coordination_create(&coordination, &server->coordination));
  rn_eager_service_options_t eager = {.env = &server->inner,
                                      .allocator = server->allocator,
                                      .loop = server->loop,
                                      .worker = server->worker,
                                      .task = server->names[0],
                                      .cpu_devices = options->cpu_devices,
                                      .gpu = options->gpu,
                                      .tls = options->tls,
                                      .lease_ns = lease,
                                      .borrows = !options->lends_nothing,
                                      .wire = server->service.wire,
                                      .may_reach = may_reach,
                                      .knows = is_in_cluster,
                                      .may_self = server,
                                      .tokens = server->options.tokens};
  RN_RETURN_IF_ERROR(rn_eager_service_create(&eager, &server->eager));
  rn_rpc_server_options_t rpc = {.loop = server->loop,
                                 .align = rn_align_content,
                                 .allocator = server->allocator,
                                 .keepalive_ns = lease / 2,
                                 .address = address.data,
                                 .starts_later = true,
                                 .handle = handle,
                                 .replied = on_replied,
                                 .streams = rn_eager_service_streams,
                                 .self = server,
                                 .max_message = options->max_message,
                                 .max_streams = (uint32_t)options->max_streams,
                                 .tls = options->tls,
                                 .tokens = options->tokens,
                                 .page = rn_server_page};
  set_limits(options, &rpc);
  RN_RETURN_IF_ERROR(rn_rpc_server_create(&rpc, &server->rpc));
  rn_str_t host = own;
  const char* colon = own.size ? strrchr(own.data, ':') : NULL;
  if (colon) host.size = (size_t)(colon - own.data);
  snprintf(server->target, sizeof server->target, "grpc%s://%.*s:%d", options->tls ? "s" : "",
           RN_STR_ARGS(host), rn_rpc_server_port(server->rpc));
  return RN_OK;
}

rn_status_t rn_server_create(const rn_server_options_t* options, rn_server_t** out) {
  *out = NULL;
  rn_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->allocator = options->allocator;
  server->env = *options->env;
  server->options = *options;
  if (server->options.lease_ns <= 0) server->options.lease_ns = rn_lease_default();
  rn_tls_retain(options->tls);
  rn_tokens_retain(options->tokens);
  rn_arena_init(&server->arena, options->allocator);
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  rn_status_t status = set_up(server);
  if (!rn_ok(status)) {
    rn_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

rn_local_worker_t* rn_server_worker(rn_server_t* server) { return server->worker; }
rn_eager_service_t* rn_server_eager(rn_server_t* server) { return server->eager; }
rn_str_t rn_server_address(const rn_server_t* server) { return server->own_address; }

rn_status_t rn_server_start(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  rn_status_t status =
      server->is_stopped ? rn_failed_precondition("The server was stopped") : RN_OK;
  bool is_first = rn_ok(status) && !server->is_started;
  if (is_first) server->is_started = server->is_starting = true;
  rn_mutex_unlock(&server->mutex);
  if (!is_first) return status;
  status = rn_rpc_server_start(server->rpc);
  rn_mutex_lock(&server->mutex);
  server->is_starting = false;
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
  return status;
}

rn_status_t rn_server_stop(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  bool is_first = !server->is_stopped;
  rn_local_master_t* master = server->master;
  server->is_stopped = true;
  server->master = NULL;
  while (server->is_starting || (!is_first && !server->is_down))
    rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  if (!is_first) return RN_OK;
  // Steps end with their connections, and calls that wait for their values end with the steps.
  // Calls that arrived meanwhile still find the master.
  if (master) rn_local_master_stop(master);
  rn_worker_fence_stop(server->fence);
  rn_eager_service_stop(server->eager);
  rn_coordination_stop(server->coordination);
  rn_wire_stop(server->service.wire);  // calls wait for what is on it
  rn_rpc_server_destroy(server->rpc);
  server->rpc = NULL;
  rn_local_master_destroy(master);
  rn_mutex_lock(&server->mutex);
  server->is_down = true;
  rn_cond_broadcast(&server->changed);
  rn_mutex_unlock(&server->mutex);
  return RN_OK;
}

rn_status_t rn_server_join(rn_server_t* server) {
  rn_mutex_lock(&server->mutex);
  while (!server->is_down) rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  return RN_OK;
}

void rn_server_destroy(rn_server_t* server) {
  if (!server) return;
  rn_status_free(rn_server_stop(server));
  rn_eager_service_destroy(server->eager);
  rn_coordination_destroy(server->coordination);
  rn_leases_stop(server->leases);
  rn_worker_gc_stop(server->gc);
  rn_health_stop(server->health);
  rn_local_worker_stop(server->worker);  // its steps call peers
  rn_server_peers_stop(server->peers);
  rn_leases_destroy(server->leases);
  rn_worker_gc_destroy(server->gc);
  rn_local_worker_destroy(server->worker);
  rn_mpi_destroy(server->mpi);
  rn_worker_fence_destroy(server->fence);
  rn_server_peers_destroy(server->peers);
  rn_loans_destroy(server->service.loans);
  rn_wire_destroy(server->service.wire);
  rn_loop_destroy(server->loop);
  rn_pool_destroy(server->pool);
  rn_health_destroy(server->health);
  rn_tls_release(server->options.tls);
  rn_tokens_release(server->options.tokens);
  rn_fs_only_destroy(server->only);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  rn_arena_clear(&server->arena);
  RN_FREE(server->allocator, server);
}
