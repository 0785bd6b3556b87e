// A task as those see it who run it: pages of HTTP/1, what happens at its end, limits of a client,
// certificates.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memmem
#endif
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"
#include "base/net.h"
#include "client.h"
#include "dist/calls.h"
#include "dist/rpc/channel.h"
#include "dist/rpc/http1.h"
#include "dist/rpc/remote.h"
#include "dist/server.h"
#include "dist/token.h"
#include "runnel/input.h"
#include "runnel/ops.h"

#define OPS_TEST(name) Test(operations, name, .timeout = 60)
#define SECOND INT64_C(1000000000)

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static const rn_env_t* env(void) { return rn_env_system(); }
static int64_t now(void) { return env()->now_ns(env()->self); }

// Requests.

static rn_http1_state_t parse(const char* text, rn_http1_request_t* out) {
  return rn_http1_parse(rn_str(text), out);
}

OPS_TEST(requests_are_read) {
  rn_http1_request_t request;
  cr_assert_eq(parse("GET /statusz?a=b&format=json HTTP/1.1\r\nHost: x\r\nX-Runnel:  stop \r\n\r\n",
                     &request),
               RN_HTTP1_WHOLE);
  cr_assert(rn_str_is(request.method, "GET"));
  cr_assert(rn_str_is(request.path, "/statusz"));
  cr_assert(rn_str_is(request.token, "stop"));
  cr_assert(rn_http1_query_has(request.query, "format", "json"));
  cr_assert(!rn_http1_query_has(request.query, "format", "js"));
  cr_assert(!rn_http1_query_has(request.query, "json", ""));
  cr_assert_eq(parse("GET / HTTP/1.0\r\n\r\n", &request), RN_HTTP1_WHOLE);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", &request), RN_HTTP1_WHOLE);
}

OPS_TEST(every_beginning_of_a_request_waits_for_more) {
  const char text[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  rn_http1_request_t request;
  for (size_t size = 0; size + 1 < sizeof text; ++size)
    cr_assert_eq(rn_http1_parse(rn_str_n(text, size), &request), RN_HTTP1_MORE, "%zu", size);
  cr_assert_eq(rn_http1_parse(rn_str_n(text, sizeof text - 1), &request), RN_HTTP1_WHOLE);
}

OPS_TEST(what_is_no_request_is_refused) {
  static const char* const bad[] = {
      "\x16\x03\x01",
      "get / HTTP/1.1\r\n",
      "GET  HTTP/1.1\r\n",
      "GET / HTTP/2.0\r\n",
      "GET / HTTP/1.1\n",
      "GET /a b HTTP/1.1\r\n",
      "GET x HTTP/1.1\r\n",
      "GET / HTTP/1.1\r\nA\r\n",
      "GET / HTTP/1.1\r\n: b\r\n",
      "GET / HTTP/1.1\r\nA b: c\r\n",
      "GET / HTTP/1.1\r\nA: \x01\r\n",
      "GET /\x7f HTTP/1.1\r\n",
      "GETGETGETGETGETGETGET",
      "\r\n",
      "GET\r\n",
      "GET / HTTP/1.1\r\nContent-Length: -1\r\n",
  };
  rn_http1_request_t request;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
    cr_assert_eq(parse(bad[i], &request), RN_HTTP1_BAD, "%s", bad[i]);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", &request), RN_HTTP1_HAS_BODY);
  cr_assert_eq(parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &request),
               RN_HTTP1_HAS_BODY);
  static char large[RN_HTTP1_MAX + 2] = "GET /";
  memset(large + 5, 'a', sizeof large - 6);
  cr_assert_eq(parse(large, &request), RN_HTTP1_TOO_LARGE);
}

// A task of its own, and a client.

typedef struct task_t {
  char address[64];
  rn_server_task_t def;
  rn_server_options_t options;
  rn_server_t* server;
} task_t;

static void task_open_with(task_t* task, const rn_env_t* own) {
  rn_socket_t* socket = NULL;
  rn_strbuf_t address;
  rn_strbuf_init(&address, memory());
  OK(env()->net->listen(env()->net_self, "127.0.0.1:0", memory(), &socket));
  OK(socket->vtable->address(socket, &address));
  snprintf(task->address, sizeof task->address, "%s", address.data);
  rn_strbuf_clear(&address);
  socket->vtable->close(socket);
  task->def = (rn_server_task_t){.job = RN_STR("worker"), .address = rn_str(task->address)};
  task->options.env = own;
  task->options.allocator = memory();
  task->options.tasks = &task->def;
  task->options.task_count = 1;
  task->options.job = RN_STR("worker");
  OK(rn_server_create(&task->options, &task->server));
}

static void task_open(task_t* task) { task_open_with(task, env()); }

// The answer to |request|, which is sent as it is; "" if none comes.
static void talk(const task_t* task, rn_str_t request, rn_strbuf_t* out) {
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

static void expect_answer(const task_t* task, const char* request, const char* head,
                          const char* text) {
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  talk(task, rn_str(request), &answer);
  cr_assert(rn_str_starts_with(rn_strbuf_view(&answer), rn_str(head)), "%s: %s", request,
            answer.data ? answer.data : "nothing");
  cr_assert(!text || strstr(answer.data, text), "%s: %s", request, answer.data);
  rn_strbuf_clear(&answer);
}

static void expect_page(const task_t* task, const char* path, const char* head, const char* text) {
  char request[256];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
  expect_answer(task, request, head, text);
}

// Asks until the page shows |text|: for what happens in the server a moment later.
static void wait_for_page(const task_t* task, const char* path, const char* text) {
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

OPS_TEST(pages) {
  task_t task = {0};
  task_open(&task);
  expect_page(&task, "/readyz", "HTTP/1.1 503 ", "not ready");
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  expect_page(&task, "/statusz", "HTTP/1.1 503 ", NULL);
  OK(rn_server_start(task.server));
  expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "\r\n\r\nok\n");
  expect_page(&task, "/statusz", "HTTP/1.1 200 ", "/job:worker/replica:0/task:0");
  expect_page(&task, "/", "HTTP/1.1 200 ", "text/html");
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"state\":\"ready\"");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "\nrunnel_ready 1\n");
  expect_page(&task, "/nothing", "HTTP/1.1 404 ", "/healthz");
  expect_answer(&task, "POST /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", NULL);
  expect_answer(&task, "POST /stop HTTP/1.1\r\nX-Runnel: stop\r\n\r\n", "HTTP/1.1 403 ", NULL);
  expect_answer(&task, "HEAD /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "Content-Length: 3");
  rn_server_drain(task.server);
  expect_page(&task, "/healthz", "HTTP/1.1 503 ", "draining");
  expect_page(&task, "/readyz", "HTTP/1.1 503 ", NULL);
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"state\":\"draining\"");
  rn_server_destroy(task.server);
}

OPS_TEST(garbage_is_refused_and_the_task_lives_on) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  expect_answer(&task, "\x16\x03\x01\x02", "HTTP/1.1 400 ", "TLS");
  expect_answer(&task, "hello there\r\n\r\n", "HTTP/1.1 400 ", "neither");
  expect_answer(&task, "GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 413 ", NULL);
  // The preface, and then no frames.
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  static const char frames[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame at all, is it?";
  talk(&task, rn_str(frames), &answer);
  rn_strbuf_clear(&answer);
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "runnel_refused_connections_total 3\n");
  rn_server_destroy(task.server);
}

// Memory of which one allocation fails, and that is all given back in the end.
typedef struct failing_t {
  _Atomic int64_t count, live;
  int64_t nth;
} failing_t;

static void* failing_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  failing_t* failing = self;
  if (new_size > old_size && ++failing->count == failing->nth) return NULL;
  rn_allocator_t system = memory();
  void* made = system.fn(system.self, ptr, old_size, new_size);
  if (made || !new_size) failing->live += (int64_t)new_size - (int64_t)old_size;
  return made;
}

OPS_TEST(every_allocation_of_a_task_may_fail) {
  int64_t fired = 0;
  for (int64_t nth = 1;; ++nth) {
    failing_t failing = {.nth = nth};
    task_t task = {.address = "localhost:0"};
    task.def = (rn_server_task_t){.job = RN_STR("worker"), .address = rn_str(task.address)};
    task.options = (rn_server_options_t){.env = env(),
                                         .allocator = {failing_realloc, &failing},
                                         .tasks = &task.def,
                                         .task_count = 1,
                                         .job = RN_STR("worker"),
                                         .threads = 1};
    rn_status_t status = rn_server_create(&task.options, &task.server);
    if (rn_ok(status)) {
      OK(rn_server_start(task.server));
      snprintf(task.address, sizeof task.address, "127.0.0.1:%d",
               atoi(strrchr(rn_server_target(task.server), ':') + 1));
      for (int i = 0; i < 2; ++i) {
        rn_strbuf_t answer;
        rn_strbuf_init(&answer, memory());
        talk(&task, i ? RN_STR("GET /metrics HTTP/1.1\r\n\r\n") : RN_STR("GET / HTTP/1.1\r\n\r\n"),
             &answer);
        cr_assert(!answer.size || rn_str_starts_with(rn_strbuf_view(&answer), RN_STR("HTTP/1.1 ")));
        rn_strbuf_clear(&answer);
      }
    }
    rn_status_free(status);
    rn_server_destroy(task.server);
    cr_assert_eq(failing.live, 0, "%lld bytes are left after allocation %lld failed",
                 (long long)failing.live, (long long)nth);
    if (failing.count < nth) break;
    fired++;
  }
  cr_assert(fired > 20, "%lld", (long long)fired);
}

// A frame of HTTP/2, appended.
static void put_frame(rn_strbuf_t* out, int type, int flags, uint32_t stream, rn_str_t payload) {
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

OPS_TEST(a_peer_that_does_not_read_is_given_up) {
  task_t task = {.options.stall_ns = SECOND / 2};
  task_open(&task);
  OK(rn_server_start(task.server));
  // POST, http, and the path as a literal; then an empty message. Windows never open again.
  static const char path[] = "/tensorflow.WorkerService/GetStatus";
  rn_strbuf_t bytes, headers;
  rn_strbuf_init(&bytes, memory());
  rn_strbuf_init(&headers, memory());
  rn_strbuf_append(&headers, RN_STR("\x83\x86\x01\x01x\x04"));
  rn_strbuf_append_n(&headers, &(uint8_t){sizeof path - 1}, 1);
  rn_strbuf_append(&headers, rn_str(path));
  rn_strbuf_append(&bytes, RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  put_frame(&bytes, 4, 0, 0, (rn_str_t){0});
  for (uint32_t i = 0; i < 2000; ++i) {
    put_frame(&bytes, 1, 4, 2 * i + 1, rn_strbuf_view(&headers));
    put_frame(&bytes, 0, 1, 2 * i + 1, RN_STR("\0\0\0\0\0"));
  }
  rn_socket_t* socket = NULL;
  OK(env()->net->connect(env()->net_self, task.address, now() + 5 * SECOND, memory(), &socket));
  OK(rn_net_write_all(socket, rn_strbuf_view(&bytes), now() + 10 * SECOND));
  int64_t start = now();
  for (bool is_given_up = false; !is_given_up; usleep(20000)) {
    rn_strbuf_t answer;
    rn_strbuf_init(&answer, memory());
    talk(&task, RN_STR("GET /statusz?format=json HTTP/1.1\r\n\r\n"), &answer);
    is_given_up = strstr(answer.data, "\"connections\":0,") &&
                  strstr(answer.data, "\"calls\":0,") && strstr(answer.data, "\"ended\":2000,");
    cr_assert(now() - start < 60 * SECOND, "%s", answer.data);
    rn_strbuf_clear(&answer);
  }
  cr_assert(now() - start > SECOND / 4);
  socket->vtable->close(socket);
  rn_strbuf_clear(&bytes);
  rn_strbuf_clear(&headers);
  rn_server_destroy(task.server);
}

// A connection of HTTP/2 on which |bytes| are sent; what comes is read until the peer closes, or
// for |seconds|. True: it was closed.
static bool is_closed_within(rn_socket_t* socket, int64_t ns, rn_strbuf_t* out) {
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

static rn_socket_t* connect_http2(const task_t* task, rn_str_t more) {
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

OPS_TEST(a_call_that_is_half_sent_is_ended) {
  task_t task = {.options.half_ns = SECOND};
  task_open(&task);
  OK(rn_server_start(task.server));
  static const char path[] = "/tensorflow.WorkerService/GetStatus";
  rn_strbuf_t calls, headers, answer;
  rn_strbuf_init(&calls, memory());
  rn_strbuf_init(&headers, memory());
  rn_strbuf_init(&answer, memory());
  rn_strbuf_append(&headers, RN_STR("\x83\x86\x01\x01x\x04"));
  rn_strbuf_append_n(&headers, &(uint8_t){sizeof path - 1}, 1);
  rn_strbuf_append(&headers, rn_str(path));
  put_frame(&calls, 1, 4, 1, rn_strbuf_view(&headers));  // headers alone; half a message; all
  put_frame(&calls, 1, 4, 3, rn_strbuf_view(&headers));
  put_frame(&calls, 0, 0, 3, RN_STR("\0\0\0\1\0half"));
  rn_socket_t* socket = connect_http2(&task, rn_strbuf_view(&calls));
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"calls\":2,");
  cr_assert(!is_closed_within(socket, 3 * SECOND, &answer), "the connection stays");
  static const char resets[2][14] = {"\0\0\4\3\0\0\0\0\1\0\0\0\x08",
                                     "\0\0\4\3\0\0\0\0\3\0\0\0\x08"};
  for (int i = 0; i < 2; ++i)
    cr_assert(memmem(answer.data, answer.size, resets[i], 13), "call %d was not ended", 2 * i + 1);
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"calls\":0,");
  socket->vtable->close(socket);
  rn_strbuf_clear(&calls);
  rn_strbuf_clear(&headers);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

OPS_TEST(calls_without_a_message_count_too) {
  enum { CALLS = 3000 };
  task_t task = {.options.max_client_memory = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_strbuf_t calls, answer;
  rn_strbuf_init(&calls, memory());
  rn_strbuf_init(&answer, memory());
  for (uint32_t i = 0; i < CALLS; ++i)
    put_frame(&calls, 1, 4, 2 * i + 1, RN_STR("\x83\x86\x84\x01\x01x"));
  rn_socket_t* socket = connect_http2(&task, rn_strbuf_view(&calls));
  cr_assert(!is_closed_within(socket, SECOND, &answer));
  wait_for_page(&task, "/statusz?format=json", "\"calls\":512,");
  socket->vtable->close(socket);
  wait_for_page(&task, "/statusz?format=json", "\"held\":0,");
  rn_strbuf_clear(&calls);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

// Sessions.

static rn_session_t* connect_to(const task_t* task, rn_graph_t* graph) {
  rn_session_t* session = NULL;
  OK(session_open(rn_server_target(task->server), 0, 0, graph, &session));
  return session;
}

static rn_status_t run(rn_session_t* session, rn_edge_t fetch, rn_node_t* target) {
  return step_run(session, RN_NO_EDGE, 0, fetch, target, NULL);
}

// A step that waits until somebody puts something into a queue.
typedef struct waiting_t {
  rn_session_t* session;
  rn_edge_t taken;
  rn_status_t status;
} waiting_t;

static void* wait_for_queue(void* arg) {
  waiting_t* waiting = arg;
  waiting->status = run(waiting->session, waiting->taken, NULL);
  return NULL;
}

static void wait_until_busy(const task_t* task) {
  while (!rn_server_is_busy(task->server)) usleep(1000);
}

OPS_TEST(a_draining_task_ends_its_steps_and_takes_no_new_ones) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  const int types[] = {RN_FLOAT};
  rn_edge_t queue = rn_FIFOQueueV2_(s, types, 1, (rn_FIFOQueueV2_options_t){0});
  rn_edge_t one = rn_const_float(s, 1);
  rn_node_t* put = rn_QueueEnqueueV2_(s, queue, &one, 1, (rn_QueueEnqueueV2_options_t){0});
  rn_edges_t values = rn_QueueDequeueV2_(s, queue, types, 1, (rn_QueueDequeueV2_options_t){0});
  rn_edge_t taken = rn_edge_at(values, 0);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_t *session = connect_to(&task, graph), *other = connect_to(&task, graph);
  OK(run(session, one, NULL));
  waiting_t waiting = {.session = session, .taken = taken};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_queue, &waiting);
  wait_until_busy(&task);
  OK(run(session, (rn_edge_t){0}, put));  // the waiting step ends
  pthread_join(thread, NULL);
  OK(waiting.status);
  pthread_create(&thread, NULL, wait_for_queue, &waiting);
  wait_until_busy(&task);
  rn_server_drain(task.server);
  FAILS_CODE(run(session, one, NULL), RN_CODE_UNAVAILABLE, "shutting down");
  FAILS_CODE(run(other, one, NULL), RN_CODE_UNAVAILABLE, "shutting down");
  cr_assert(rn_server_is_busy(task.server));
  rn_server_destroy(task.server);  // cuts it short
  pthread_join(thread, NULL);
  cr_assert(!rn_ok(waiting.status));
  rn_status_free(waiting.status);
  rn_session_destroy(session);
  rn_session_destroy(other);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

// A step that reads a file which does not end, and so keeps a thread.
typedef struct reading_t {
  const task_t* task;
  const char* path;
  pthread_t thread;
  rn_status_t status;
} reading_t;

static void* read_on(void* arg) {
  reading_t* reading = arg;
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t content = rn_ReadFile(s, rn_Squeeze(s, rn_const_strings(s, &reading->path, 1)));
  rn_session_t* session = connect_to(reading->task, graph);
  reading->status = run(session, content, NULL);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return NULL;
}

OPS_TEST(a_task_whose_threads_are_stuck_says_so) {
  enum { STEPS = 6 };
  task_t task = {.options.threads = 3};
  task_open(&task);
  OK(rn_server_start(task.server));
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-stuck-%d", getpid());
  cr_assert_eq(mkfifo(path, 0600), 0);
  reading_t readings[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    readings[i] = (reading_t){.task = &task, .path = path};
    pthread_create(&readings[i].thread, NULL, read_on, &readings[i]);
  }
  while (rn_server_is_busy(task.server) == false) usleep(1000);
  usleep(1500000);  // the last check is too old to be repeated
  int64_t begun = now();
  expect_page(&task, "/healthz", "HTTP/1.1 503 ", "stuck");
  cr_assert(now() - begun > SECOND && now() - begun < 30 * SECOND, "it waits two seconds");
  int64_t best = INT64_MAX;  // a busy machine may delay one answer, not all of them
  for (int i = 0; i < 10 && best >= SECOND; ++i) {
    begun = now();
    expect_page(&task, "/healthz", "HTTP/1.1 503 ", "stuck");
    expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
    if (now() - begun < best) best = now() - begun;
  }
  cr_assert(best < SECOND, "and then not again");
  while (rn_server_is_busy(task.server)) {  // whoever has opened it sees its end
    int writer = open(path, O_WRONLY | O_NONBLOCK);
    usleep(50000);
    if (writer >= 0) close(writer);
    usleep(50000);
  }
  for (int i = 0; i < STEPS; ++i) {
    pthread_join(readings[i].thread, NULL);
    rn_status_free(readings[i].status);
  }
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  unlink(path);
  rn_server_destroy(task.server);
}

static rn_status_t ask_status(rn_worker_t* worker) {
  rn_waiter_t waiter;
  rn_get_status_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
  call.call.waits_for_ready = false;
  rn_arena_init(&call.arena, memory());
  worker->vtable->get_status(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_arena_clear(&call.arena);
  return status;
}

OPS_TEST(idle_connections_end_and_clients_notice_nothing) {
  task_t task = {.options.idle_ns = SECOND};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  rn_socket_t* silent = connect_http2(&task, RN_STR(""));
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t one = rn_const_float(s, 1);
  rn_session_t* session = connect_to(&task, graph);
  OK(run(session, one, NULL));
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  rn_remote_peer_t* peer = NULL;
  OK(rn_loop_create(env(), memory(), &loop));
  rn_channel_options_t way = {.loop = loop, .allocator = memory(), .address = task.address};
  OK(rn_channel_create(&way, &channel));
  OK(rn_remote_peer_create(channel, env(), false, memory(), &peer));
  OK(ask_status(rn_remote_worker(peer)));
  cr_assert_eq(rn_channel_stats(channel).connects, 1);
  cr_assert(is_closed_within(silent, 10 * SECOND, &answer));
  while (rn_channel_stats(channel).is_connected) usleep(10000);
  // The session's client is still there; the other connects again.
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"connections\":1,");
  OK(ask_status(rn_remote_worker(peer)));
  cr_assert_eq(rn_channel_stats(channel).connects, 2);
  int64_t begun = now();  // calls that come as the connection ends are answered
  while (now() - begun < 6 * SECOND) {
    OK(ask_status(rn_remote_worker(peer)));
    usleep(700000 + (useconds_t)(now() % 700000));
  }
  OK(run(session, one, NULL));
  silent->vtable->close(silent);
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

OPS_TEST(a_client_has_so_many_sessions) {
  task_t task = {.options.max_sessions = 2};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_loop_t* loop = NULL;
  OK(rn_loop_create(env(), memory(), &loop));
  rn_channel_t* channel = NULL;
  rn_channel_options_t way = {.loop = loop, .allocator = memory(), .address = task.address};
  OK(rn_channel_create(&way, &channel));
  rn_remote_peer_t* peer = NULL;
  OK(rn_remote_peer_create(channel, env(), true, memory(), &peer));
  rn_master_t* master = rn_remote_master(peer);
  char opened[3][32] = {{0}};
  for (int i = 0; i < 3; ++i) {
    rn_waiter_t waiter;
    rn_create_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL)};
    master->vtable->create_session(master, &call);
    rn_status_t status = rn_waiter_wait(&waiter);
    if (i < 2)
      OK(status);
    else
      FAILS_CODE(status, RN_CODE_RESOURCE_EXHAUSTED, "2 sessions");
    memcpy(opened[i], call.session, sizeof opened[i]);
  }
  for (int i = 0; i < 2; ++i) {  // one is closed, another opened
    rn_waiter_t waiter;
    rn_close_session_t close = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
                                .session = rn_str(opened[i])};
    master->vtable->close_session(master, &close);
    OK(rn_waiter_wait(&waiter));
    rn_create_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL)};
    master->vtable->create_session(master, &call);
    OK(rn_waiter_wait(&waiter));
  }
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"sessions\":2,");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "runnel_refused_calls_total 1\n");
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  rn_server_destroy(task.server);
}

OPS_TEST(masters_of_other_clusters_have_no_sessions_here) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_loop_t* loop = NULL;
  OK(rn_loop_create(env(), memory(), &loop));
  rn_channel_t* channel = NULL;
  rn_channel_options_t way = {.loop = loop, .allocator = memory(), .address = task.address};
  OK(rn_channel_create(&way, &channel));
  rn_remote_peer_t* peer = NULL;
  OK(rn_remote_peer_create(channel, env(), true, memory(), &peer));
  rn_worker_t* worker = rn_remote_worker(peer);
  static const struct {
    const char *job, *master, *text;
    int task;
    rn_code_t code;
  } cases[] = {
      {"worker", "/job:worker/replica:0/task:0", "", 0, RN_CODE_OK},
      {"worker", "/job:worker/replica:0/task:0", "clusters differ", 1, RN_CODE_INVALID_ARGUMENT},
      {"ps", "/job:worker/replica:0/task:0", "clusters differ", 0, RN_CODE_INVALID_ARGUMENT},
      {"worker", "/job:worker/replica:0/task:7", "not a task of the cluster", 0,
       RN_CODE_PERMISSION_DENIED},
      {"worker", "nobody", "not a task of the cluster", 0, RN_CODE_PERMISSION_DENIED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_waiter_t waiter;
    rn_create_worker_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
                                       .session = RN_STR("s"),
                                       .job = rn_str(cases[i].job),
                                       .task = cases[i].task,
                                       .master = rn_str(cases[i].master)};
    worker->vtable->create_worker_session(worker, &call);
    FAILS_CODE(rn_waiter_wait(&waiter), cases[i].code, cases[i].text);
  }
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  rn_server_destroy(task.server);
}

// What a task logs, for a test that looks at it.
typedef struct logged_t {
  rn_mutex_t mutex;
  char text[4096];
} logged_t;
static logged_t logged;

static void keep_line(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level;
  rn_mutex_lock(&logged.mutex);
  size_t size = strlen(logged.text);
  snprintf(logged.text + size, sizeof logged.text - size, "%s\n", message);
  rn_mutex_unlock(&logged.mutex);
}

OPS_TEST(a_name_from_outside_does_not_forge_a_line_of_the_log) {
  rn_env_t own = *env();
  own.log = keep_line;
  rn_mutex_init(&logged.mutex);
  task_t task = {0};
  task_open_with(&task, &own);
  OK(rn_server_start(task.server));
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  rn_remote_peer_t* peer = NULL;
  OK(rn_loop_create(env(), memory(), &loop));
  rn_channel_options_t way = {.loop = loop, .allocator = memory(), .address = task.address};
  OK(rn_channel_create(&way, &channel));
  OK(rn_remote_peer_create(channel, env(), false, memory(), &peer));
  rn_waiter_t waiter;
  rn_create_worker_session_t call = {
      .call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
      .session = RN_STR("s"),
      .job = RN_STR("worker"),
      .master = RN_STR("nobody\n2026-01-01 00:00:00.000 I all is well\x1b[2J")};
  rn_remote_worker(peer)->vtable->create_worker_session(rn_remote_worker(peer), &call);
  FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_PERMISSION_DENIED, "nobody");
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  rn_server_destroy(task.server);
  cr_assert(strstr(logged.text, "nobody\\n2026-01-01 00:00:00.000 I all is well\\x1b[2J"), "%s",
            logged.text);
  cr_assert_null(strchr(logged.text, '\x1b'));
  cr_assert_eq(strchr(logged.text, '\n'), strrchr(logged.text, '\n'), "%s", logged.text);
  rn_mutex_destroy(&logged.mutex);
}

static rn_status_t run_large(const task_t* task, int64_t size) {
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

OPS_TEST(messages_have_a_largest_size) {
  task_t task = {.options.max_message = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  OK(run_large(&task, 1000));
  rn_status_t status = run_large(&task, 1 << 20);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  OK(run_large(&task, 1000));
  rn_server_destroy(task.server);
}

OPS_TEST(a_client_has_so_much_memory) {
  task_t task = {.options.max_client_memory = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  for (int i = 0; i < 5; ++i) OK(run_large(&task, 150000));  // it is given back each time
  rn_status_t status = run_large(&task, 1 << 20);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  OK(run_large(&task, 1000));
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"held\":0,");
  rn_server_destroy(task.server);
}

OPS_TEST(graphs_see_the_files_that_the_task_was_started_with) {
  static const struct {
    bool is_limited;
    const char* allow;
    bool is_readable;
  } cases[] = {{false, "", true}, {true, "", false}, {true, "read:/proc/self", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    task_t task = {.options = {.is_limited = cases[i].is_limited, .allow = rn_str(cases[i].allow)}};
    task_open(&task);
    OK(rn_server_start(task.server));
    rn_graph_t* graph = NULL;
    OK(rn_graph_create(memory(), &graph));
    rn_scope_t* s = rn_scope_create(graph);
    const char* path = "/proc/self/comm";
    rn_edge_t content = rn_ReadFile(s, rn_Squeeze(s, rn_const_strings(s, &path, 1)));
    cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
    rn_session_t* session = connect_to(&task, graph);
    rn_status_t status = run(session, content, NULL);
    cr_assert_eq(rn_ok(status), cases[i].is_readable, "%zu: %s", i, rn_status_message(status));
    cr_assert(rn_ok(status) || rn_status_code(status) == RN_CODE_PERMISSION_DENIED, "%s",
              rn_status_message(status));
    rn_status_free(status);
    rn_session_destroy(session);
    rn_scope_destroy(s);
    rn_graph_release(graph);
    rn_server_destroy(task.server);
  }
}

// Tokens.

static const char kToken[] = "a-token-of-32-visible-characters";

static void write_token(const char* path, const char* text) {
  OK(rn_fs_write(env(), path, rn_str(text)));
}

OPS_TEST(tokens_are_compared_and_read) {
  static const struct {
    const char* header;
    bool matches;
  } cases[] = {{"Bearer a-token-of-32-visible-characters", true},
               {"bearer a-token-of-32-visible-characters", true},
               {"Basic  a-token-of-32-visible-characters", false},
               {"Bearer a-token-of-32-visible-characterz", false},
               {"Bearer a-token-of-32-visible-character", false},
               {"Bearer a-token-of-32-visible-characters ", false},
               {"a-token-of-32-visible-characters", false},
               {"Bearer ", false},
               {"", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    cr_assert_eq(rn_token_matches(rn_str(kToken), rn_str(cases[i].header)), cases[i].matches, "%s",
                 cases[i].header);
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-token-%d", getpid());
  rn_strbuf_t token;
  unsetenv("RUNNEL_TOKEN");
  OK(rn_token_read(env(), NULL, memory(), &token));
  cr_assert_eq(token.size, 0);
  write_token(path, " a-token-of-32-visible-characters\n");
  OK(rn_token_read(env(), path, memory(), &token));
  cr_assert_str_eq(token.data, kToken);
  rn_strbuf_clear(&token);
  static const char* const bad[] = {"", "\n", "too-short", "a token with blanks in it",
                                    "a-token-with-a-\x01-in-it"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    write_token(path, bad[i]);
    FAILS_CODE(rn_token_read(env(), path, memory(), &token), RN_CODE_INVALID_ARGUMENT, "no token");
  }
  unlink(path);
  FAILS_CODE(rn_token_read(env(), path, memory(), &token), RN_CODE_NOT_FOUND, path);
}

// What a client with RUNNEL_TOKEN as it is gets: a step, and the call that clears others'
// variables.
static void expect_access(const task_t* task, rn_code_t code) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t one = rn_const_float(s, 1);
  rn_session_t* session = connect_to(task, graph);
  rn_status_t status = run(session, one, NULL);
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  cr_assert(rn_ok(status) || strstr(rn_status_message(status), "RUNNEL_TOKEN"));
  rn_status_free(status);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  rn_client_options_t options = {
      .env = env(), .allocator = memory(), .target = rn_str(rn_server_target(task->server))};
  rn_client_t* client = NULL;
  OK(rn_graph_create(memory(), &graph));
  OK(rn_client_create(&options, graph, &client));
  status = rn_client_reset(client, NULL, 0);
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_client_destroy(client);
  rn_graph_release(graph);
}

OPS_TEST(a_task_with_a_token_takes_calls_of_those_who_have_it) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-token-%d", getpid());
  task_t task = {.options.token = rn_str(kToken)};
  task_open(&task);
  OK(rn_server_start(task.server));
  unsetenv("RUNNEL_TOKEN");
  expect_access(&task, RN_CODE_UNAUTHENTICATED);
  setenv("RUNNEL_TOKEN", path, 1);
  write_token(path, "another-token-of-some-length");
  expect_access(&task, RN_CODE_UNAUTHENTICATED);
  write_token(path, kToken);
  expect_access(&task, RN_CODE_OK);
  OK(run_large(&task, 1 << 20));
  unsetenv("RUNNEL_TOKEN");
  rn_status_t status = run_large(&task, 1 << 20);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  // Pages: health is for all.
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
  static const char* const closed[] = {"/statusz", "/metrics", "/", "/nothing"};
  for (size_t i = 0; i < sizeof closed / sizeof *closed; ++i)
    expect_page(&task, closed[i], "HTTP/1.1 401 ", "WWW-Authenticate: Bearer");
  expect_answer(&task, "POST /stop HTTP/1.1\r\nX-Runnel: stop\r\n\r\n", "HTTP/1.1 401 ", NULL);
  expect_answer(&task,
                "GET /metrics HTTP/1.1\r\nAuthorization: Bearer a-token-of-32-visible-characters"
                "\r\n\r\n",
                "HTTP/1.1 200 ", "runnel_ready 1");
  unlink(path);
  rn_server_destroy(task.server);
}

// Certificates.

typedef struct pair_t {  // a worker, and a parameter server that has variables
  char dir[64], addresses[2][64];
  const char* token;  // NULL: none
  rn_server_task_t tasks[2];
  rn_server_t* servers[2];
} pair_t;

static rn_tls_t* tls_of(const pair_t* pair, const char* name) {
  char cert[128], key[128], ca[128];
  snprintf(cert, sizeof cert, "%s/%s.pem", pair->dir, name);
  snprintf(key, sizeof key, "%s/%s-key.pem", pair->dir, name);
  snprintf(ca, sizeof ca, "%s/ca.pem", pair->dir);
  rn_tls_options_t options = {.allocator = memory(), .cert = cert, .key = key, .ca = ca};
  rn_tls_t* tls = NULL;
  OK(rn_tls_create(&options, &tls));
  return tls;
}

static void make_certificates(const pair_t* pair, const char* dir, const char* more) {
  char command[1024];
  snprintf(command, sizeof command, "%s cert --dir %s --cluster 'worker=%s,ps=%s' %s >/dev/null",
           RUNNEL, dir, pair->addresses[0], pair->addresses[1], more);
  cr_assert_eq(system(command), 0);
}

// |names| are the certificates that the tasks show.
static void pair_open(pair_t* pair, const char* const names[2]) {
  rn_socket_t* sockets[2];
  for (int i = 0; i < 2; ++i) {
    rn_strbuf_t address;
    rn_strbuf_init(&address, memory());
    OK(env()->net->listen(env()->net_self, "127.0.0.1:0", memory(), &sockets[i]));
    OK(sockets[i]->vtable->address(sockets[i], &address));
    snprintf(pair->addresses[i], 64, "%s", address.data);
    rn_strbuf_clear(&address);
    pair->tasks[i] = (rn_server_task_t){.job = i ? RN_STR("ps") : RN_STR("worker"),
                                        .address = rn_str(pair->addresses[i])};
  }
  snprintf(pair->dir, sizeof pair->dir, "/tmp/runnel-tls-XXXXXX");
  cr_assert(mkdtemp(pair->dir));
  make_certificates(pair, pair->dir, "");
  make_certificates(pair, pair->dir, "--client intruder");
  for (int i = 0; i < 2; ++i) {
    sockets[i]->vtable->close(sockets[i]);
    rn_tls_t* tls = tls_of(pair, names[i]);
    rn_server_options_t options = {.env = env(),
                                   .allocator = memory(),
                                   .tasks = pair->tasks,
                                   .task_count = 2,
                                   .job = pair->tasks[i].job,
                                   .lease_ns = 2 * SECOND,
                                   .token = rn_str(pair->token),
                                   .tls = tls};
    OK(rn_server_create(&options, &pair->servers[i]));
    OK(rn_server_start(pair->servers[i]));
    rn_tls_release(tls);
  }
}

static void pair_close(pair_t* pair) {
  for (int i = 0; i < 2; ++i) rn_server_destroy(pair->servers[i]);
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", pair->dir);
  cr_assert_eq(system(command), 0);
}

static void use_certificate(const pair_t* pair, const char* dir, const char* name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.pem", dir, name);
  setenv("RUNNEL_TLS_CERT", path, 1);
  snprintf(path, sizeof path, "%s/%s-key.pem", dir, name);
  setenv("RUNNEL_TLS_KEY", path, 1);
  snprintf(path, sizeof path, "%s/ca.pem", pair->dir);
  setenv("RUNNEL_TLS_CA", path, 1);
}

// A large value from the parameter server by way of the worker.
static rn_status_t run_pair(const pair_t* pair) {
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  int64_t one = 1;
  int32_t size = 3000000;
  rn_scope_set_device(s, "/job:ps/task:0");
  rn_edge_t dims = rn_const(s, RN_INT32, &one, 1, &size);
  rn_edge_t large = rn_Fill(s, dims, rn_const_float(s, 3));
  rn_scope_set_device(s, "/job:worker/task:0");
  rn_edge_t y = rn_Square(s, large);
  task_t master = {.server = pair->servers[0]};
  rn_session_t* session = connect_to(&master, graph);
  rn_tensor_t value = {0};
  rn_signature_t signature = {.fetches = &y, .fetch_count = 1};
  rn_step_options_t options = {.timeout_ms = 30000};
  rn_status_t status = rn_session_run(session, &signature, NULL, &value, &options);
  for (int i = 0; rn_ok(status) && i < size; ++i) cr_assert_eq(RN_DATA(&value, float)[i], 9);
  rn_tensor_clear(&value);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return status;
}

OPS_TEST(tasks_and_clients_with_certificates) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  cr_assert(rn_str_starts_with(rn_str(rn_server_target(pair.servers[0])), RN_STR("grpcs://")));
  use_certificate(&pair, pair.dir, "client");
  for (int i = 0; i < 3; ++i) OK(run_pair(&pair));
  pair_close(&pair);
}

OPS_TEST(tasks_and_clients_with_certificates_and_a_token) {
  pair_t pair = {.token = kToken};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  use_certificate(&pair, pair.dir, "client");
  unsetenv("RUNNEL_TOKEN");
  FAILS_CODE(run_pair(&pair), RN_CODE_UNAUTHENTICATED, "RUNNEL_TOKEN");
  char path[80];
  snprintf(path, sizeof path, "%s/token", pair.dir);
  write_token(path, kToken);
  setenv("RUNNEL_TOKEN", path, 1);
  OK(run_pair(&pair));
  unsetenv("RUNNEL_TOKEN");
  pair_close(&pair);
}

OPS_TEST(a_client_without_a_certificate_of_ours_is_refused) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  char other[80];
  snprintf(other, sizeof other, "%s/other", pair.dir);
  make_certificates(&pair, other, "");
  use_certificate(&pair, other, "client");
  rn_status_t status = run_pair(&pair);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE, "%s", rn_status_message(status));
  rn_status_free(status);
  use_certificate(&pair, pair.dir, "client");
  OK(run_pair(&pair));
  pair_close(&pair);
}

OPS_TEST(a_task_with_the_certificate_of_another_is_refused) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "intruder"});
  use_certificate(&pair, pair.dir, "client");
  rn_status_t status = run_pair(&pair);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  pair_close(&pair);
}

OPS_TEST(a_client_without_tls_is_told_of_it) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  rn_remote_peer_t* peer = NULL;
  OK(rn_loop_create(env(), memory(), &loop));
  rn_channel_options_t way = {.allocator = memory(), .address = pair.addresses[1], .loop = loop};
  OK(rn_channel_create(&way, &channel));
  OK(rn_remote_peer_create(channel, env(), true, memory(), &peer));
  rn_worker_t* worker = rn_remote_worker(peer);
  rn_waiter_t waiter;
  rn_cleanup_all_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
  worker->vtable->cleanup_all(worker, &call);
  FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_UNAVAILABLE,
             "if it speaks TLS, the target is grpcs://");
  rn_channel_destroy(channel);
  rn_remote_peer_destroy(peer);
  rn_loop_destroy(loop);
  pair_close(&pair);
}

OPS_TEST(only_tasks_call_workers) {
  pair_t pair = {0};
  pair_open(&pair, (const char* const[]){"worker-0", "ps-0"});
  static const char* const names[] = {"intruder", "worker-0"};
  for (int i = 0; i < 2; ++i) {
    rn_loop_t* loop = NULL;
    rn_channel_t* channel = NULL;
    rn_remote_peer_t* peer = NULL;
    rn_tls_t* tls = tls_of(&pair, names[i]);
    rn_channel_options_t way = {.allocator = memory(), .address = pair.addresses[1], .tls = tls};
    OK(rn_loop_create(env(), memory(), &loop));
    way.loop = loop;
    OK(rn_channel_create(&way, &channel));
    OK(rn_remote_peer_create(channel, env(), true, memory(), &peer));
    rn_worker_t* worker = rn_remote_worker(peer);
    rn_waiter_t waiter;
    rn_cleanup_all_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
    worker->vtable->cleanup_all(worker, &call);
    if (i == 0)
      FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_PERMISSION_DENIED, "\"intruder\"");
    else
      OK(rn_waiter_wait(&waiter));
    rn_channel_destroy(channel);
    rn_remote_peer_destroy(peer);
    rn_loop_destroy(loop);
    rn_tls_release(tls);
  }
  pair_close(&pair);
}
