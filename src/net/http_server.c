// The HTTP server: its port, its loops, and its end. See http_server.h.
#include "net/http_server.h"

#include "base/container.h"
#include "net/http_internal.h"

#define MAX_HEAD ((size_t)32 << 10)
#define MAX_BODY ((size_t)INT32_MAX)
#define IDLE_NS (75 * INT64_C(1000000000))
#define HALF_NS (30 * INT64_C(1000000000))
// Time limits are checked this often, or an eighth of the shorter one.
#define TICK_NS INT64_C(1000000000)

static int64_t tick_ns(const rn_http_server_t* server) {
  int64_t idle = server->options.idle_ns, half = server->options.half_ns;
  int64_t tick = (idle < half ? idle : half) / 8;
  return tick < TICK_NS ? tick : TICK_NS;
}

static void on_sweep(rn_timer_t* timer) {
  rn_http_lane_t* lane = RN_CONTAINER_OF(timer, rn_http_lane_t, sweep);
  rn_http_sweep(lane);
  if (!lane->count) return;
  rn_status_free(rn_loop_set_timer(lane->base.loop, timer,
                                   rn_loop_now(lane->base.loop) + tick_ns(lane->server)));
}

// Accepting.

static void on_accepted(void* self, size_t i, rn_socket_t* socket, bool is_last) {
  (void)is_last;
  rn_http_server_t* server = self;
  if (server->group.is_closing)
    socket->vtable->close(socket);
  else if (server->options.tls)
    rn_doors_open(&server->lanes[i].doors, socket, false);
  else
    rn_http_connection_open(&server->lanes[i], socket, RN_STR(""), RN_STR(""));
}

bool rn_http_server_evict(rn_http_server_t* server) { return rn_http_evict(server->lanes); }

static rn_listener_room_t on_no_room(void* self) {
  rn_http_server_t* server = self;
  bool is_made = rn_doors_evict(&server->lanes->doors) || rn_http_server_evict(server);
  return is_made ? RN_LISTENER_ROOM_NOW : RN_LISTENER_ROOM_NONE;
}

static void on_http1(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer) {
  rn_http_connection_open(self, socket, first, peer);
}

void rn_http_server_adopt(rn_http_server_t* server, rn_socket_t* socket, rn_str_t first,
                          rn_str_t peer) {
  size_t i = 0;
  while (i + 1 < server->lane_count && !rn_loop_is_here(server->lanes[i].base.loop)) ++i;
  rn_http_connection_open(&server->lanes[i], socket, first, peer);
}

// The work of a lane.

static rn_http_lane_t* lane_of(rn_lane_t* base) {
  return RN_CONTAINER_OF(base, rn_http_lane_t, base);
}

static void drain_lane(rn_lane_t* base) { rn_http_drain_lane(lane_of(base)); }

static void close_lane(rn_lane_t* base) {
  rn_http_lane_t* lane = lane_of(base);
  rn_doors_close(&lane->doors);
  while (lane->first) rn_http_connection_close(lane->first);
  rn_loop_clear_timer(base->loop, &lane->sweep);
}

void rn_http_server_drain(rn_http_server_t* server) { rn_lanes_drain(&server->group); }

// Creation and destruction.

static void set_up_lane(rn_http_server_t* server, rn_http_lane_t* lane, rn_loop_t* loop) {
  const rn_http_server_options_t* options = &server->options;
  rn_lanes_add(&server->group, &lane->base, loop);
  lane->server = server;
  lane->sweep.fn = on_sweep;
  lane->doors = (rn_doors_t){.loop = loop,
                             .allocator = options->allocator,
                             .tls = options->tls,
                             .http1 = on_http1,
                             .http1_self = lane};
}

static rn_status_t set_up(rn_http_server_t* server) {
  const rn_http_server_options_t* options = &server->options;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(options->allocator, server->lane_count * sizeof *server->lanes,
                                     (void**)&server->lanes));
  for (size_t i = 0; i < server->lane_count; ++i)
    set_up_lane(server, &server->lanes[i], options->loop_count ? options->loops[i] : options->loop);
  if (options->address) {
    rn_listener_options_t listener = {
        .loops = options->loop_count ? options->loops : &options->loop,
        .loop_count = server->lane_count,
        .allocator = options->allocator,
        .address = options->address,
        .accepted = on_accepted,
        .make_room = on_no_room,
        .self = server};
    RN_RETURN_IF_ERROR(rn_listener_create(&listener, &server->group.listener));
  }
  return rn_lanes_start(&server->group);
}

rn_status_t rn_http_server_create(const rn_http_server_options_t* options, rn_http_server_t** out) {
  *out = NULL;
  rn_http_server_t* server = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &server));
  server->options = *options;
  if (!options->max_head) server->options.max_head = MAX_HEAD;
  if (!options->max_body) server->options.max_body = MAX_BODY;
  if (!options->idle_ns) server->options.idle_ns = IDLE_NS;
  if (!options->half_ns) server->options.half_ns = HALF_NS;
  server->budget.max = options->max_all;
  server->lane_count = options->loop_count ? options->loop_count : 1;
  server->group.drain = drain_lane;
  server->group.close = close_lane;
  rn_lanes_init(&server->group);
  rn_mutex_init(&server->mutex);
  rn_cond_init(&server->changed);
  rn_status_t status = set_up(server);
  if (!rn_ok(status)) {
    rn_http_server_destroy(server);
    return status;
  }
  *out = server;
  return RN_OK;
}

int rn_http_server_port(const rn_http_server_t* server) {
  return server->group.listener ? rn_listener_port(server->group.listener) : 0;
}

void rn_http_server_destroy(rn_http_server_t* server) {
  if (!server) return;
  rn_allocator_t allocator = server->options.allocator;
  rn_lanes_close(&server->group);
  rn_mutex_lock(&server->mutex);
  while (server->connections) rn_cond_wait(&server->changed, &server->mutex);
  rn_mutex_unlock(&server->mutex);
  rn_free(allocator, server->lanes, server->lane_count * sizeof *server->lanes);
  rn_lanes_deinit(&server->group);
  rn_cond_destroy(&server->changed);
  rn_mutex_destroy(&server->mutex);
  RN_FREE(allocator, server);
}

rn_http_server_stats_t rn_http_server_stats(rn_http_server_t* server) {
  rn_http_server_stats_t stats = {.requests = server->requests,
                                  .bytes_in = server->bytes_in,
                                  .bytes_out = server->bytes_out,
                                  .refused = server->refused};
  for (size_t i = 0; i < server->lane_count; ++i) stats.refused += server->lanes[i].doors.refused;
  rn_mutex_lock(&server->mutex);
  stats.connections = server->connections;
  rn_mutex_unlock(&server->mutex);
  return stats;
}
