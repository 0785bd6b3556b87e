// Tasks of a client's cluster: see peers.h.
#include "dist/eager/peers.h"

#include "dist/rpc/remote.h"

typedef struct eager_peer_t {
  rn_str_t task, address;  // NUL-terminated
  rn_channel_t* channel;   // made on first use
  rn_remote_peer_t* remote;
} eager_peer_t;

struct rn_eager_peers_t {
  rn_eager_peers_options_t options;
  rn_mutex_t mutex;  // guards what follows
  rn_arena_t arena;
  RN_VEC(eager_peer_t*) items;  // the last entry of a task counts
};

rn_status_t rn_eager_peers_create(const rn_eager_peers_options_t* options, rn_eager_peers_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, out));
  (*out)->options = *options;
  rn_mutex_init(&(*out)->mutex);
  rn_arena_init(&(*out)->arena, options->allocator);
  return RN_OK;
}

void rn_eager_peers_destroy(rn_eager_peers_t* peers) {
  if (!peers) return;
  for (size_t i = 0; i < peers->items.count; ++i)
    rn_remote_peer_stop(peers->items.items[i]->remote);
  for (size_t i = 0; i < peers->items.count; ++i)
    rn_channel_destroy(peers->items.items[i]->channel);
  for (size_t i = 0; i < peers->items.count; ++i)
    rn_remote_peer_destroy(peers->items.items[i]->remote);
  rn_vec_free(&peers->items, peers->options.allocator);
  rn_arena_clear(&peers->arena);
  rn_mutex_destroy(&peers->mutex);
  RN_FREE(peers->options.allocator, peers);
}

static eager_peer_t* find_locked(rn_eager_peers_t* peers, rn_str_t task) {
  for (size_t i = peers->items.count; i > 0; --i)
    if (rn_str_eq(peers->items.items[i - 1]->task, task)) return peers->items.items[i - 1];
  return NULL;
}

static rn_status_t add_locked(rn_eager_peers_t* peers, rn_str_t job, int32_t index,
                              rn_str_t address) {
  rn_str_t task;
  eager_peer_t* peer = NULL;
  RN_RETURN_IF_ERROR(rn_arena_printf(&peers->arena, &task, "/job:%.*s/replica:0/task:%d",
                                     RN_STR_ARGS(job), index));
  const eager_peer_t* known = find_locked(peers, task);
  if (known && rn_str_eq(known->address, address)) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&peers->arena, &peer));
  peer->task = task;
  RN_RETURN_IF_ERROR(rn_arena_str(&peers->arena, address, &peer->address));
  return rn_vec_push(&peers->items, peers->options.allocator, peer);
}

rn_status_t rn_eager_peers_add(rn_eager_peers_t* peers, const rn_pb_ClusterDef_t* cluster) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&peers->mutex);
  for (uint32_t j = 0; cluster && j < cluster->job.count; ++j) {
    const rn_pb_JobDef_t* job = &cluster->job.items[j];
    for (uint32_t t = 0; t < job->tasks.count && rn_ok(status); ++t)
      status = add_locked(peers, job->name, job->tasks.items[t].key, job->tasks.items[t].value);
  }
  rn_mutex_unlock(&peers->mutex);
  return status;
}

static bool may_reach(const rn_eager_peers_options_t* options, const eager_peer_t* peer) {
  return !options->may_reach || options->may_reach(options->may_self, peer->address);
}

// Continues where the last attempt failed.
static rn_status_t connect_locked(rn_eager_peers_t* peers, eager_peer_t* peer) {
  const rn_eager_peers_options_t* options = &peers->options;
  if (!may_reach(options, peer)) return rn_status_make(RN_CODE_PERMISSION_DENIED, "%s", "");
  bool is_known = !options->knows || options->knows(options->may_self, peer->address);
  rn_channel_options_t channel = {.loop = options->loop,
                                  .allocator = options->allocator,
                                  .address = peer->address.data,
                                  .keepalive_ns = options->lease_ns / 2,
                                  .connect_ns = options->lease_ns,
                                  .tls = options->tls,
                                  .tokens = is_known ? options->tokens : NULL,
                                  .peer = peer->task.data};
  if (!peer->channel) RN_RETURN_IF_ERROR(rn_channel_create(&channel, &peer->channel));
  if (peer->remote) return RN_OK;
  // Without a name of its own, this task is shown no values.
  const rn_remote_near_t near = {.borrows = options->borrows,
                                 .wire = options->knows && is_known ? options->wire : NULL,
                                 .to_task = peer->task};
  return rn_remote_peer_create(peer->channel, options->env, &near, options->allocator,
                               &peer->remote);
}

static eager_peer_t* get(rn_eager_peers_t* peers, rn_str_t task) {
  rn_mutex_lock(&peers->mutex);
  eager_peer_t* peer = find_locked(peers, task);
  rn_status_t status = peer ? connect_locked(peers, peer) : RN_OK;
  rn_mutex_unlock(&peers->mutex);
  if (!rn_ok(status)) peer = NULL;
  rn_status_free(status);
  return peer;
}

rn_channel_t* rn_eager_peers_channel(rn_eager_peers_t* peers, rn_str_t task) {
  const eager_peer_t* peer = get(peers, task);
  return peer ? peer->channel : NULL;
}

rn_worker_t* rn_eager_peers_worker(rn_eager_peers_t* peers, rn_str_t task) {
  const eager_peer_t* peer = get(peers, task);
  return peer ? rn_remote_worker(peer->remote) : NULL;
}

rn_status_t rn_eager_peers_missing(rn_eager_peers_t* peers, rn_str_t task) {
  rn_mutex_lock(&peers->mutex);
  const eager_peer_t* peer = find_locked(peers, task);
  rn_status_t status =
      !peer ? rn_not_found("No task %.*s in the cluster", RN_STR_ARGS(task))
      : may_reach(&peers->options, peer)
          ? rn_unavailable("%.*s cannot be reached", RN_STR_ARGS(task))
          : rn_status_make(RN_CODE_PERMISSION_DENIED,
                           "the client says that %.*s is at %.*s, which is not an address of this "
                           "task's cluster; the task connects to it only if it was started with "
                           "--allow network, or all",
                           RN_STR_ARGS(task), RN_STR_ARGS(peer->address));
  rn_mutex_unlock(&peers->mutex);
  return status;
}

static rn_worker_t* find(void* self, rn_str_t task) { return rn_eager_peers_worker(self, task); }
static rn_status_t missing(void* self, rn_str_t task) { return rn_eager_peers_missing(self, task); }

rn_peers_t rn_eager_peers_table(rn_eager_peers_t* peers) {
  return (rn_peers_t){.self = peers, .find = find, .missing = missing};
}

static void on_answer(rn_rpc_out_t* out, rn_status_t status) {
  rn_eager_question_t* question = (rn_eager_question_t*)out;
  rn_message_t response = out->stream.message;
  rn_message_init(&out->stream.message, response.allocator);
  rn_rpc_out_clear(out);
  rn_mutex_lock(&question->mutex);
  question->status = status;
  question->response = response;
  question->is_here = true;
  rn_cond_signal(&question->came);
  rn_mutex_unlock(&question->mutex);
}

void rn_eager_question_start(rn_eager_question_t* question, rn_channel_t* channel, const char* path,
                             rn_message_t* request, int64_t deadline_ns, bool waits_for_ready) {
  *question = (rn_eager_question_t){.out = {.path = path,
                                            .deadline_ns = deadline_ns,
                                            .waits_for_ready = waits_for_ready,
                                            .request = *request,
                                            .done = on_answer}};
  *request = (rn_message_t){.allocator = request->allocator};
  rn_mutex_init(&question->mutex);
  rn_cond_init(&question->came);
  rn_rpc_start(channel, &question->out);
}

rn_status_t rn_eager_question_wait(rn_eager_question_t* question, rn_message_t* out) {
  rn_mutex_lock(&question->mutex);
  while (!question->is_here) rn_cond_wait(&question->came, &question->mutex);
  rn_mutex_unlock(&question->mutex);
  rn_cond_destroy(&question->came);
  rn_mutex_destroy(&question->mutex);
  if (rn_ok(question->status))
    *out = question->response;
  else
    rn_message_clear(&question->response);
  return question->status;
}
