// A task in the test's process, and clients of it: over HTTP/1, over HTTP/2 byte by byte, with a
// session, and with the calls of a worker and a master.
#ifndef RUNNEL_TESTS_DIST_TASK_H_
#define RUNNEL_TESTS_DIST_TASK_H_

#include <stdio.h>
#include <unistd.h>

#include "../support/ports.h"
#include "../support/status.h"
#include "base/net.h"
#include "client.h"
#include "dist/calls.h"
#include "dist/rpc/remote.h"
#include "dist/server.h"
#include "net/channel.h"
#include "runnel/input.h"
#include "runnel/ops.h"

#define SECOND INT64_C(1000000000)

static inline rn_allocator_t memory(void) { return rn_allocator_system(); }
static inline const rn_env_t* env(void) { return rn_env_system(); }
static inline int64_t now(void) { return env()->now_ns(env()->self); }

typedef struct task_t {
  char address[64];
  rn_server_task_t def;
  rn_server_options_t options;
  rn_server_t* server;
} task_t;

// With the environment |own|.
static inline void task_open_with(task_t* task, const rn_env_t* own) {
  free_addresses(&task->address, 1);
  task->def = (rn_server_task_t){.job = RN_STR("worker"), .address = rn_str(task->address)};
  task->options.env = own;
  task->options.allocator = memory();
  task->options.tasks = &task->def;
  task->options.task_count = 1;
  task->options.job = RN_STR("worker");
  OK(rn_server_create(&task->options, &task->server));
}

static inline void task_open(task_t* task) { task_open_with(task, env()); }

// The answer to |request|, which is sent as it is; "" if none comes.
static inline void talk(const task_t* task, rn_str_t request, rn_strbuf_t* out) {
  rn_socket_t* socket = NULL;
  OK(env()->net->connect(env()->net_self, task->address, now() + 5 * SECOND, memory(), &socket));
  rn_status_free(rn_net_write_all(socket, request, now() + 5 * SECOND));
  for (size_t got = 1; got;) {
    char bytes[4096];
    rn_status_t status =
        socket->vtable->read(socket, bytes, sizeof bytes, now() + 10 * SECOND, &got);
    if (!rn_ok(status)) got = 0;
    rn_status_free(status);
    rn_strbuf_append_n(out, bytes, got);
  }
  socket->vtable->close(socket);
}

static inline void expect_answer(const task_t* task, const char* request, const char* head,
                                 const char* text) {
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  talk(task, rn_str(request), &answer);
  cr_assert(rn_str_starts_with(rn_strbuf_view(&answer), rn_str(head)), "%s: %s", request,
            answer.data ? answer.data : "nothing");
  cr_assert(!text || strstr(answer.data, text), "%s: %s", request, answer.data);
  rn_strbuf_clear(&answer);
}

static inline void expect_page(const task_t* task, const char* path, const char* head,
                               const char* text) {
  char request[256];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
  expect_answer(task, request, head, text);
}

// Asks until the page shows |text|: for what happens in the server a moment later.
static inline void wait_for_page(const task_t* task, const char* path, const char* text) {
  char request[256];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
  for (int64_t start = now();; usleep(20000)) {
    rn_strbuf_t answer;
    rn_strbuf_init(&answer, memory());
    talk(task, rn_str(request), &answer);
    bool is_shown = answer.data && strstr(answer.data, text);
    cr_assert(is_shown || now() - start < 60 * SECOND, "%s: no %s in %s", path, text,
              answer.data ? answer.data : "nothing");
    rn_strbuf_clear(&answer);
    if (is_shown) return;
  }
}

// A frame of HTTP/2, appended.
static inline void put_frame(rn_strbuf_t* out, int type, int flags, uint32_t stream,
                             rn_str_t payload) {
  const uint8_t head[9] = {(uint8_t)(payload.size >> 16),
                           (uint8_t)(payload.size >> 8),
                           (uint8_t)payload.size,
                           (uint8_t)type,
                           (uint8_t)flags,
                           (uint8_t)(stream >> 24),
                           (uint8_t)(stream >> 16),
                           (uint8_t)(stream >> 8),
                           (uint8_t)stream};
  rn_strbuf_append_n(out, head, sizeof head);
  rn_strbuf_append(out, payload);
}

// Reads what comes into |out|, until the peer closes (true) or |ns| have passed.
static inline bool is_closed_within(rn_socket_t* socket, int64_t ns, rn_strbuf_t* out) {
  int64_t until = now() + ns;
  for (;;) {
    char bytes[4096];
    size_t got = 0;
    rn_status_t status = socket->vtable->read(socket, bytes, sizeof bytes, until, &got);
    bool is_late = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
    bool is_over = !rn_ok(status) || !got;
    rn_status_free(status);
    if (is_late) return false;
    if (is_over) return true;
    rn_strbuf_append_n(out, bytes, got);
  }
}

// A connection of HTTP/2 on which the preface, the settings and |more| were sent.
static inline rn_socket_t* connect_http2(const task_t* task, rn_str_t more) {
  rn_socket_t* socket = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, memory());
  rn_strbuf_append(&bytes, RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  put_frame(&bytes, 4, 0, 0, (rn_str_t){0});
  rn_strbuf_append(&bytes, more);
  OK(env()->net->connect(env()->net_self, task->address, now() + 5 * SECOND, memory(), &socket));
  OK(rn_net_write_all(socket, rn_strbuf_view(&bytes), now() + 5 * SECOND));
  rn_strbuf_clear(&bytes);
  return socket;
}

static inline rn_session_t* connect_to(const task_t* task, rn_graph_t* graph) {
  rn_session_t* session = NULL;
  OK(session_open(rn_server_target(task->server), 0, 0, graph, &session));
  return session;
}

static inline rn_status_t run(rn_session_t* session, rn_edge_t fetch, rn_node_t* target) {
  return step_run(session, RN_NO_EDGE, 0, fetch, target, NULL);
}

// Feeds, and fetches, |size| numbers.
static inline rn_status_t run_large(const task_t* task, int64_t size) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT), y = rn_Square(s, x);
  rn_session_t* session = connect_to(task, graph);
  rn_tensor_t fed = {0}, value = {0};
  const rn_tensor_t* feeds[] = {&fed};
  OK(rn_tensor_create(memory(), RN_FLOAT, ((rn_shape_t){.dims = &size, .rank = 1}), &fed));
  rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  rn_status_t status = rn_session_run(session, &signature, feeds, &value, NULL);
  rn_tensor_clear(&value);
  rn_tensor_clear(&fed);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return status;
}

// The calls of a worker and a master at an address, over a connection of their own.
typedef struct caller_t {
  rn_loop_t* loop;
  rn_channel_t* channel;
  rn_remote_peer_t* peer;
} caller_t;

// |tls| and |tokens| are NULL for a connection without.
static inline void caller_open_with(caller_t* caller, const char* address, rn_tls_t* tls,
                                    rn_tokens_t* tokens) {
  OK(rn_loop_create(env(), memory(), &caller->loop));
  rn_channel_options_t options = {.loop = caller->loop,
                                  .allocator = memory(),
                                  .address = address,
                                  .tls = tls,
                                  .tokens = tokens};
  OK(rn_channel_create(&options, &caller->channel));
  OK(rn_remote_peer_create(caller->channel, env(), &(rn_remote_near_t){.borrows = true}, memory(),
                           &caller->peer));
}

static inline void caller_open(caller_t* caller, const char* address, rn_tls_t* tls) {
  caller_open_with(caller, address, tls, NULL);
}

static inline void caller_close(caller_t* caller) {
  rn_channel_destroy(caller->channel);
  rn_remote_peer_destroy(caller->peer);
  rn_loop_destroy(caller->loop);
}

#endif  // RUNNEL_TESTS_DIST_TASK_H_
