// See server_peers.h.
#include "dist/server_peers.h"

#include "base/vec.h"
#include "dist/repeat.h"
#include "dist/rpc/remote.h"

#define MAX_GIVEN 4096  // servers that clients name, over the life of this one

typedef struct server_peer_t {
  rn_str_t task;     // "/job:ps/replica:0/task:0"; of a server that a client named: its address
  rn_str_t address;  // "host:port"
  rn_str_t title;    // the name that its certificate must have
  rn_channel_t* channel;
  rn_remote_peer_t* remote;
  rn_repeat_t* repeat;  // in front of it
  bool is_ready;
} server_peer_t;

struct rn_server_peers_t {
  rn_server_peers_options_t options;
  rn_str_t task;     // this one
  rn_mutex_t mutex;  // guards what follows, and the creation of channels
  rn_arena_t arena;
  RN_VEC(server_peer_t*) items;  // the tasks of the own cluster come first
  size_t own_count;
};

rn_status_t rn_server_peers_create(const rn_server_peers_options_t* options,
                                   rn_server_peers_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, out));
  (*out)->options = *options;
  rn_mutex_init(&(*out)->mutex);
  rn_arena_init(&(*out)->arena, options->allocator);
  return RN_OK;
}

void rn_server_peers_set_task(rn_server_peers_t* peers, rn_str_t task) { peers->task = task; }

void rn_server_peers_stop(rn_server_peers_t* peers) {
  for (size_t i = 0; peers && i < peers->items.count; ++i)
    rn_remote_peer_stop(peers->items.items[i]->remote);
  for (size_t i = 0; peers && i < peers->items.count; ++i) {
    rn_channel_destroy(peers->items.items[i]->channel);
    peers->items.items[i]->channel = NULL;
  }
}

void rn_server_peers_destroy(rn_server_peers_t* peers) {
  if (!peers) return;
  for (size_t i = 0; i < peers->items.count; ++i) {
    rn_repeat_destroy(peers->items.items[i]->repeat);
    rn_remote_peer_destroy(peers->items.items[i]->remote);
  }
  rn_vec_free(&peers->items, peers->options.allocator);
  rn_arena_clear(&peers->arena);
  rn_mutex_destroy(&peers->mutex);
  RN_FREE(peers->options.allocator, peers);
}

static rn_status_t add_locked(rn_server_peers_t* peers, rn_str_t task, rn_str_t address,
                              rn_str_t title) {
  server_peer_t* peer = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&peers->arena, &peer));
  *peer = (server_peer_t){.task = task, .address = address, .title = title};
  return rn_vec_push(&peers->items, peers->options.allocator, peer);
}

static server_peer_t* find_locked(const rn_server_peers_t* peers, rn_str_t task) {
  for (size_t i = 0; i < peers->own_count; ++i)
    if (rn_str_eq(peers->items.items[i]->task, task)) return peers->items.items[i];
  return NULL;
}

rn_status_t rn_server_peers_add(rn_server_peers_t* peers, rn_str_t task, rn_str_t address) {
  if (find_locked(peers, task))
    return rn_invalid_argument("Task %.*s is in the cluster twice", RN_STR_ARGS(task));
  RN_RETURN_IF_ERROR(add_locked(peers, task, address, task));
  peers->own_count++;
  return RN_OK;
}

size_t rn_server_peers_count(const rn_server_peers_t* peers) { return peers->own_count; }

bool rn_server_peers_has(const rn_server_peers_t* peers, rn_str_t address) {
  for (size_t i = 0; i < peers->own_count; ++i)
    if (rn_str_eq(peers->items.items[i]->address, address)) return true;
  return false;
}

void rn_server_peers_view(rn_server_peers_t* peers, const rn_lease_info_t* leases,
                          size_t lease_count, rn_peer_view_t* out, size_t count) {
  rn_mutex_lock(&peers->mutex);
  for (size_t i = 0; i < count && i < peers->own_count; ++i) {
    const server_peer_t* peer = peers->items.items[i];
    out[i] =
        (rn_peer_view_t){.task = peer->task, .address = peer->address, .is_used = peer->is_ready};
    if (peer->is_ready) out[i].channel = rn_channel_stats(peer->channel);
    for (size_t l = 0; l < lease_count; ++l)
      if (rn_str_eq(leases[l].task, peer->task)) out[i].lease = leases[l];
  }
  rn_mutex_unlock(&peers->mutex);
}

// Continues where the last attempt failed.
static rn_status_t connect_locked(rn_server_peers_t* peers, server_peer_t* peer) {
  const rn_server_peers_options_t* options = &peers->options;
  bool is_own = rn_server_peers_has(peers, peer->address);
  rn_channel_options_t channel = {.loop = options->loop,
                                  .allocator = options->allocator,
                                  .address = peer->address.data,
                                  .connect_ns = options->lease_ns,
                                  .tls = options->tls,
                                  .tokens = is_own ? options->tokens : NULL,
                                  .peer = peer->title.data};
  if (!peer->channel) RN_RETURN_IF_ERROR(rn_channel_create(&channel, &peer->channel));
  const rn_remote_near_t near = {.borrows = options->borrows,
                                 .loans = options->loans,
                                 .wire = is_own ? options->wire : NULL,
                                 .task = peers->task,
                                 .to_task = peer->task};
  if (!peer->remote)
    RN_RETURN_IF_ERROR(rn_remote_peer_create(peer->channel, options->env, &near, options->allocator,
                                             &peer->remote));
  if (!peer->repeat)
    RN_RETURN_IF_ERROR(rn_repeat_create(rn_remote_worker(peer->remote), options->env,
                                        options->allocator, &peer->repeat));
  RN_RETURN_IF_ERROR(rn_leases_add(options->leases, peer->task, rn_remote_link(peer->remote)));
  peer->is_ready = true;
  return RN_OK;
}

static rn_worker_t* worker_locked(rn_server_peers_t* peers, server_peer_t* peer) {
  rn_status_t status = !peer            ? rn_not_found("No such peer")
                       : peer->is_ready ? RN_OK
                                        : connect_locked(peers, peer);
  rn_worker_t* found = rn_ok(status) ? rn_repeat_worker(peer->repeat) : NULL;
  rn_status_free(status);
  return found;
}

static rn_worker_t* find_task(void* self, rn_str_t task) {
  rn_server_peers_t* peers = self;
  rn_mutex_lock(&peers->mutex);
  rn_worker_t* found = worker_locked(peers, find_locked(peers, task));
  rn_mutex_unlock(&peers->mutex);
  return found;
}

rn_peers_t rn_server_peers_table(rn_server_peers_t* peers) {
  return (rn_peers_t){.self = peers, .find = find_task};
}

static server_peer_t* at_address_locked(const rn_server_peers_t* peers, rn_str_t address) {
  for (size_t i = 0; i < peers->items.count; ++i)
    if (rn_str_eq(peers->items.items[i]->address, address)) return peers->items.items[i];
  return NULL;
}

// A peer for a server that a client names for the first time.
static rn_status_t make_given_locked(rn_server_peers_t* peers, rn_str_t address, rn_str_t task) {
  rn_str_t own_address, title;
  if (peers->items.count - peers->own_count >= MAX_GIVEN)
    return rn_resource_exhausted("Clients have named more than %d servers", MAX_GIVEN);
  RN_RETURN_IF_ERROR(rn_arena_str(&peers->arena, address, &own_address));
  RN_RETURN_IF_ERROR(rn_arena_str(&peers->arena, task, &title));
  return add_locked(peers, own_address, own_address, title);
}

static bool may_reach(const rn_server_peers_t* peers, rn_str_t address) {
  return peers->options.may_reach(peers->options.self, address);
}

static rn_worker_t* find_address(void* self, rn_str_t address, rn_str_t task) {
  rn_server_peers_t* peers = self;
  if (!may_reach(peers, address)) return NULL;
  rn_mutex_lock(&peers->mutex);
  rn_status_t status =
      at_address_locked(peers, address) ? RN_OK : make_given_locked(peers, address, task);
  rn_worker_t* found = worker_locked(peers, at_address_locked(peers, address));
  rn_mutex_unlock(&peers->mutex);
  rn_status_free(status);
  return found;
}

static rn_status_t missing_address(void* self, rn_str_t address, rn_str_t task) {
  const rn_server_peers_t* peers = self;
  if (may_reach(peers, address))
    return rn_unavailable("%.*s at %.*s cannot be reached", RN_STR_ARGS(task),
                          RN_STR_ARGS(address));
  return rn_status_make(
      RN_CODE_PERMISSION_DENIED,
      "the client says that %.*s is at %.*s, which is not an address of this task's cluster; the "
      "task connects to it only if it was started with --allow network, or all",
      RN_STR_ARGS(task), RN_STR_ARGS(address));
}

rn_address_book_t rn_server_peers_reach(rn_server_peers_t* peers) {
  return (rn_address_book_t){.self = peers, .find = find_address, .missing = missing_address};
}
