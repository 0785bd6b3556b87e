// A server for tests and measurements with other programs: HTTP/1 on one port, gRPC and HTTP/1 on
// another.
//
//   echo_server [--loops N] [--threads N] [--cert FILE --key FILE [--ca FILE]]
//
// prints both ports, and serves until its standard input ends. Every request is answered with its
// body, or "hello"; gRPC calls get the trailer "runnel-marks" and, on /fail, an error. With
// threads, replies come from those.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/rpc_server.h"

enum { MAX_LOOPS = 16 };

// A queue of requests of either kind, for the threads.
typedef struct echo_work_t {
  rn_http_in_t* http;
  rn_rpc_in_t* rpc;
} echo_work_t;

typedef struct echo_t {
  rn_loop_t* loops[MAX_LOOPS];
  int loop_count, thread_count;
  rn_buffer_t* hello;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  RN_VEC(echo_work_t) work;
  bool is_over;
} echo_t;

static void must(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  exit(1);
}

static void reply_http(const echo_t* echo, rn_http_in_t* request) {
  rn_http_out_t out = {.code = 200, .type = "text/plain"};
  rn_message_init(&out.body, rn_allocator_system());
  if (request->body.size)
    must(rn_message_lend(&out.body, request->body_buffer, request->body));
  else
    must(rn_message_lend(&out.body, echo->hello, rn_str_n(echo->hello->data, 6)));
  rn_http_reply(request, &out);
}

static void reply_rpc(rn_rpc_in_t* call) {
  rn_message_t out;
  rn_message_init(&out, rn_allocator_system());
  rn_str_t who = rn_rpc_header(call, "authorization");
  if (who.size) rn_rpc_add_trailer(call, "runnel-who", who);
  rn_rpc_add_trailer(call, "runnel-marks", call->is_local ? RN_STR("local") : RN_STR("remote"));
  if (rn_str_ends_with(rn_rpc_path(call), RN_STR("/fail"))) {
    rn_rpc_reply(call, rn_not_found("as you wish"), &out);
    return;
  }
  const rn_message_t* request = &call->stream.message;
  if (request->pieces.count)
    must(rn_message_lend(&out, request->pieces.items[0].buffer, rn_rpc_request(call)));
  rn_rpc_reply(call, RN_OK, &out);
}

static void* thread_main(void* arg) {
  echo_t* echo = arg;
  rn_mutex_lock(&echo->mutex);
  for (;;) {
    while (!echo->work.count && !echo->is_over) rn_cond_wait(&echo->changed, &echo->mutex);
    if (!echo->work.count) break;
    echo_work_t work = echo->work.items[--echo->work.count];
    rn_mutex_unlock(&echo->mutex);
    if (work.http)
      reply_http(echo, work.http);
    else
      reply_rpc(work.rpc);
    rn_mutex_lock(&echo->mutex);
  }
  rn_mutex_unlock(&echo->mutex);
  return NULL;
}

static void queue(echo_t* echo, echo_work_t work) {
  rn_mutex_lock(&echo->mutex);
  must(rn_vec_push(&echo->work, rn_allocator_system(), work));
  rn_cond_signal(&echo->changed);
  rn_mutex_unlock(&echo->mutex);
}

static void on_http(void* self, rn_http_in_t* request) {
  echo_t* echo = self;
  if (echo->thread_count)
    queue(echo, (echo_work_t){.http = request});
  else
    reply_http(echo, request);
}

static void on_rpc(void* self, rn_rpc_in_t* call) {
  echo_t* echo = self;
  if (echo->thread_count)
    queue(echo, (echo_work_t){.rpc = call});
  else
    reply_rpc(call);
}

int main(int argc, char** argv) {
  rn_allocator_t memory = rn_allocator_system();
  echo_t echo = {.loop_count = 1};
  rn_tls_options_t keys = {.allocator = memory, .is_public = true};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--loops")) echo.loop_count = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--threads")) echo.thread_count = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--cert")) keys.cert = argv[i + 1];
    if (!strcmp(argv[i], "--key")) keys.key = argv[i + 1];
    if (!strcmp(argv[i], "--ca")) keys.ca = argv[i + 1];
  }
  keys.verifies_clients = keys.ca != NULL;
  rn_tls_t* tls = NULL;
  if (keys.cert) must(rn_tls_create(&keys, &tls));
  if (echo.loop_count < 1 || echo.loop_count > MAX_LOOPS) return 2;
  for (int i = 0; i < echo.loop_count; ++i)
    must(rn_loop_create(rn_env_system(), memory, &echo.loops[i]));
  must(rn_buffer_create(memory, RN_UINT8, 6, &echo.hello));
  memcpy(echo.hello->data, "hello\n", 6);
  rn_mutex_init(&echo.mutex);
  rn_cond_init(&echo.changed);
  pthread_t threads[64];
  for (int i = 0; i < echo.thread_count && i < 64; ++i)
    pthread_create(&threads[i], NULL, thread_main, &echo);
  rn_http_server_options_t http = {.loop = echo.loops[0],
                                   .loops = echo.loops,
                                   .loop_count = (size_t)echo.loop_count,
                                   .allocator = memory,
                                   .address = "127.0.0.1:0",
                                   .handle = on_http,
                                   .self = &echo,
                                   .tls = tls};
  rn_http_server_t* http_server = NULL;
  must(rn_http_server_create(&http, &http_server));
  rn_rpc_server_options_t rpc = {.loop = echo.loops[0],
                                 .loops = echo.loops,
                                 .loop_count = (size_t)echo.loop_count,
                                 .allocator = memory,
                                 .address = "127.0.0.1:0",
                                 .handle = on_rpc,
                                 .self = &echo,
                                 .keeps_headers = true,
                                 .http = http_server,
                                 .tls = tls};
  rn_rpc_server_t* rpc_server = NULL;
  must(rn_rpc_server_create(&rpc, &rpc_server));
  printf("%d %d\n", rn_http_server_port(http_server), rn_rpc_server_port(rpc_server));
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) continue;
  rn_rpc_server_drain(rpc_server);
  rn_http_server_drain(http_server);
  rn_rpc_server_destroy(rpc_server);
  rn_http_server_destroy(http_server);
  rn_mutex_lock(&echo.mutex);
  echo.is_over = true;
  rn_cond_broadcast(&echo.changed);
  rn_mutex_unlock(&echo.mutex);
  for (int i = 0; i < echo.thread_count && i < 64; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < echo.loop_count; ++i) rn_loop_destroy(echo.loops[i]);
  rn_vec_free(&echo.work, memory);
  rn_buffer_release(echo.hello);
  rn_tls_release(tls);
  return 0;
}
