// Fuzzes a connection of the HTTP server. The first byte is the size of the pieces in which the
// rest arrives: the responses must be the same as if it came at once.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "fuzz/util.h"
#include "net/http_server.h"

#define MAX_BYTES ((size_t)64 << 10)  // fits into the buffers of a socket, whatever is read

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rn_loop_t* loop;
static rn_http_server_t* server;

static void handle(void* self, rn_http_in_t* request) {
  (void)self;
  rn_http_out_t out = {.code = 200};
  rn_message_init(&out.body, rn_allocator_system());
  char text[128];
  snprintf(text, sizeof text, "%.*s %zu %d %zu %llx", RN_STR_ARGS(request->method),
           request->path.size + request->query.size, request->header_count, request->body.size,
           (unsigned long long)rn_str_hash(request->body));
  fuzz_must(rn_message_add(&out.body, rn_str(text)));
  rn_http_header(request, "x-a");
  rn_http_reply(request, &out);
}

// Runs before the process ends, so that remaining allocations are leaks.
static void stop(void) {
  rn_http_server_destroy(server);
  rn_loop_destroy(loop);
}

static void start(void) {
  fuzz_must(rn_loop_create(rn_env_system(), rn_allocator_system(), &loop));
  rn_http_server_options_t options = {.loop = loop,
                                      .allocator = rn_allocator_system(),
                                      .handle = handle,
                                      .max_head = 4096,
                                      .max_body = 1 << 20};
  fuzz_must(rn_http_server_create(&options, &server));
  atexit(stop);
}

typedef struct arrival_t {
  rn_loop_job_t job;
  rn_socket_t* socket;
} arrival_t;

static void adopt(rn_loop_job_t* job) {
  rn_http_server_adopt(server, ((arrival_t*)job)->socket, RN_STR(""), RN_STR(""));
}

// Appends |line| unless it is the date.
static void add_line(rn_str_t line, rn_strbuf_t* out) {
  if (rn_str_starts_with(line, RN_STR("Date: "))) return;
  rn_strbuf_append(out, line);
  rn_strbuf_append(out, RN_STR("\n"));
}

static void talk(rn_str_t bytes, size_t piece, rn_strbuf_t* out) {
  const rn_env_t* env = rn_env_system();
  rn_socket_t* end;
  arrival_t arrival = {.job.run = adopt};
  fuzz_must(env->net->pair(env->net_self, rn_allocator_system(), &end, &arrival.socket));
  rn_loop_post(loop, &arrival.job);
  while (bytes.size) {
    rn_str_t part = rn_str_n(bytes.data, bytes.size < piece ? bytes.size : piece);
    rn_status_t status = rn_net_write_all(end, part, RN_FOREVER);
    bool is_taken = rn_ok(status);
    rn_status_free(status);
    if (!is_taken) break;
    bytes = rn_str_n(bytes.data + part.size, bytes.size - part.size);
  }
  end->vtable->finish(end);
  rn_strbuf_t all;
  rn_strbuf_init(&all, rn_allocator_system());
  char answer[4096];
  for (size_t got = 1; got;) {
    rn_status_t status = end->vtable->read(end, answer, sizeof answer, RN_FOREVER, &got);
    rn_status_free(status);
    rn_strbuf_append_n(&all, answer, got);
  }
  end->vtable->close(end);
  for (rn_str_t rest = rn_strbuf_view(&all); rest.size;) add_line(rn_str_split(&rest, '\n'), out);
  rn_strbuf_clear(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pthread_once(&once, start);
  fuzz_bytes_t bytes = {data, size};
  size_t piece = 1 + fuzz_byte(&bytes);
  if (bytes.left > MAX_BYTES) return 0;
  rn_str_t text = rn_str_n((const char*)bytes.at, bytes.left);
  rn_strbuf_t whole, parts;
  rn_strbuf_init(&whole, rn_allocator_system());
  rn_strbuf_init(&parts, rn_allocator_system());
  talk(text, SIZE_MAX, &whole);
  talk(text, piece, &parts);
  // Whether a client is told to continue depends on when its body arrives.
  if (!memmem(text.data, text.size, "-continue", 9))
    fuzz_check(rn_str_eq(rn_strbuf_view(&whole), rn_strbuf_view(&parts)));
  rn_strbuf_clear(&whole);
  rn_strbuf_clear(&parts);
  return 0;
}
