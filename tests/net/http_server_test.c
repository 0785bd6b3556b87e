// An HTTP server over loopback: requests in all forms and pieces, malformed ones, pipelining,
// replies from other threads, limits of size and time, draining.
#include "net/http_server.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "../support/status.h"

#define HTTP_TEST(name) Test(http_server, name, .timeout = 120)
#define SECOND INT64_C(1000000000)
#define HOST "Host: x\r\n"

static rn_allocator_t memory(void) { return rn_allocator_system(); }

enum { MAX_HELD = 16 };

typedef struct web_t {
  rn_loop_t* loops[2];
  rn_http_server_t* server;
  rn_http_server_options_t options;
  int port;
  _Atomic(rn_http_in_t*) held[MAX_HELD];  // requests of /hold
  _Atomic int held_count, handled, cancelled;
  rn_cancel_entry_t entry;
} web_t;

static void reply_with(rn_http_in_t* request, int code, rn_str_t text) {
  rn_http_out_t out = {.code = code, .type = "text/plain"};
  rn_message_init(&out.body, memory());
  OK(rn_message_add(&out.body, text));
  rn_http_reply(request, &out);
}

static void* reply_main(void* arg) {
  reply_with(arg, 200, RN_STR("from a thread"));
  return NULL;
}

static void on_cancelled(rn_cancel_entry_t* entry) {
  web_t* web = (web_t*)((char*)entry - __builtin_offsetof(web_t, entry));
  web->cancelled++;
}

static void handle(void* self, rn_http_in_t* request) {
  web_t* web = self;
  web->handled++;
  if (rn_str_is(request->path, "/echo")) {
    rn_http_out_t out = {.code = 200, .type = "text/plain"};
    rn_message_init(&out.body, memory());
    if (request->body.size) OK(rn_message_lend(&out.body, request->body_buffer, request->body));
    rn_http_reply(request, &out);
  } else if (rn_str_is(request->path, "/thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, reply_main, request);
    pthread_detach(thread);
  } else if (rn_str_is(request->path, "/hold")) {
    web->entry.fn = on_cancelled;
    if (!rn_cancel_add(&request->cancel, &web->entry)) web->cancelled++;
    web->held[web->held_count] = request;
    web->held_count++;
  } else if (rn_str_is(request->path, "/describe")) {
    char text[256];
    snprintf(text, sizeof text, "%.*s|%.*s|%.*s|%.*s|%d", RN_STR_ARGS(request->method),
             RN_STR_ARGS(request->query), RN_STR_ARGS(rn_http_header(request, "x-a")),
             RN_STR_ARGS(request->body), request->is_local);
    rn_http_header_t headers[] = {{RN_STR("X-Good"), RN_STR("1")},
                                  {RN_STR("X-Bad"), RN_STR("a\r\nX-Injected: 1")}};
    rn_http_out_t out = {.code = 200, .headers = headers, .header_count = 2};
    rn_message_init(&out.body, memory());
    OK(rn_message_add(&out.body, rn_str(text)));
    rn_http_reply(request, &out);
  } else {
    reply_with(request, 404, request->path);
  }
}

static void web_open(web_t* web) {
  OK(rn_loop_create(rn_env_system(), memory(), &web->loops[0]));
  OK(rn_loop_create(rn_env_system(), memory(), &web->loops[1]));
  web->options.loop = web->loops[0];
  web->options.allocator = memory();
  web->options.address = "127.0.0.1:0";
  web->options.handle = handle;
  web->options.self = web;
  OK(rn_http_server_create(&web->options, &web->server));
  web->port = rn_http_server_port(web->server);
  cr_assert_gt(web->port, 0);
}

static void web_close(web_t* web) {
  rn_http_server_destroy(web->server);
  rn_loop_destroy(web->loops[0]);
  rn_loop_destroy(web->loops[1]);
}

static int dial(const web_t* web) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)web->port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct timeval limit = {.tv_sec = 60};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  cr_assert_eq(connect(fd, (struct sockaddr*)&address, sizeof address), 0);
  return fd;
}

// Sends in pieces, as far as the other end takes it.
static void put_n(int fd, rn_str_t bytes, size_t piece) {
  while (bytes.size) {
    ssize_t n = send(fd, bytes.data, bytes.size < piece ? bytes.size : piece, MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes = rn_str_n(bytes.data + n, bytes.size - (size_t)n);
  }
}
static void put(int fd, const char* text) { put_n(fd, rn_str(text), SIZE_MAX); }

// Everything up to the end of the stream.
static void get_all(int fd, rn_strbuf_t* out) {
  char bytes[4096];
  ssize_t n;
  rn_strbuf_init(out, memory());
  while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) rn_strbuf_append_n(out, bytes, (size_t)n);
  rn_strbuf_append(out, RN_STR(""));
}

// One response; its body is returned, and its head is in |head|.
static size_t get_one(int fd, char* head, size_t room, rn_strbuf_t* body) {
  size_t size = 0;
  while (size + 1 < room && (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0)) {
    ssize_t n = recv(fd, head + size, 1, 0);
    cr_assert_eq(n, 1, "no response: '%.*s'", (int)size, head);
    size++;
  }
  head[size] = '\0';
  const char* length = strstr(head, "Content-Length: ");
  size_t expected = length ? strtoul(length + 16, NULL, 10) : 0;
  rn_strbuf_init(body, memory());
  cr_assert(rn_strbuf_reserve(body, expected));
  while (body->size < expected) {
    ssize_t n = recv(fd, body->data + body->size, expected - body->size, 0);
    cr_assert_gt(n, 0);
    body->size += (size_t)n;
  }
  body->data[body->size] = '\0';
  return expected;
}

static void expect_one(int fd, const char* line, const char* text) {
  char head[4096];
  rn_strbuf_t body;
  get_one(fd, head, sizeof head, &body);
  cr_assert_eq(strncmp(head, line, strlen(line)), 0, "expected '%s', got '%s'", line, head);
  if (text) cr_assert_str_eq(body.data, text);
  rn_strbuf_clear(&body);
}

HTTP_TEST(requests_and_replies) {
  web_t web = {0};
  web_open(&web);
  int fd = dial(&web);
  put(fd, "GET /describe?x=1&y=2 HTTP/1.1\r\n" HOST "X-A:  v \r\n\r\n");
  char head[4096];
  rn_strbuf_t body;
  get_one(fd, head, sizeof head, &body);
  cr_assert(strstr(head, "HTTP/1.1 200 OK\r\n") == head);
  cr_assert(strstr(head, "Content-Type: application/json\r\n"));
  cr_assert(strstr(head, "X-Good: 1\r\n") && !strstr(head, "Injected") && strstr(head, " GMT\r\n"));
  cr_assert(!strstr(head, "Connection:"));
  cr_assert_str_eq(body.data, "GET|x=1&y=2|v||1");
  rn_strbuf_clear(&body);
  // The same connection again, with a body.
  put(fd, "POST /describe HTTP/1.1\r\n" HOST "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody");
  expect_one(fd, "HTTP/1.1 200 ", "POST|||body|1");
  put(fd, "\r\nPOST /describe HTTP/1.1\r\n" HOST
          "Transfer-Encoding: Chunked\r\n\r\n"
          "2\r\nbo\r\n002;name=\"v\"\r\ndy\r\n0\r\nTrailer: 1\r\n\r\n");
  expect_one(fd, "HTTP/1.1 200 ", "POST|||body|1");
  put(fd, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
  expect_one(fd, "HTTP/1.1 404 ", "*");
  put(fd, "GET http://host:80/describe?q HTTP/1.1\r\n" HOST "\r\n");
  expect_one(fd, "HTTP/1.1 200 ", "GET|q|||1");
  put(fd, "HEAD /describe HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
  get_all(fd, &body);
  cr_assert(strstr(body.data, "Content-Length: 9\r\n") &&
            strstr(body.data, "Connection: close\r\n"));
  cr_assert(rn_str_ends_with(rn_strbuf_view(&body), RN_STR("\r\n\r\n")));
  rn_strbuf_clear(&body);
  close(fd);
  fd = dial(&web);
  put(fd, "GET /describe HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  get_one(fd, head, sizeof head, &body);
  cr_assert(strstr(head, "Connection: keep-alive\r\n"));
  rn_strbuf_clear(&body);
  put(fd, "GET /describe HTTP/1.0\r\n\r\n");
  get_all(fd, &body);
  cr_assert(strstr(body.data, "Connection: close\r\n"));
  rn_strbuf_clear(&body);
  close(fd);
  rn_http_server_stats_t stats = rn_http_server_stats(web.server);
  cr_assert_eq(stats.requests, 0);
  cr_assert_eq(stats.refused, 0);
  cr_assert_gt(stats.bytes_in, 0);
  cr_assert_gt(stats.bytes_out, 0);
  web_close(&web);
}

HTTP_TEST(malformed_requests_are_refused) {
  static const struct {
    const char *text, *line;
  } rows[] = {
      {"hello\r\n\r\n", "400"},
      {"\x16\x03\x01\x02", "400"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
      {"GET / HTTP/1.1\n" HOST "\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST "A: b\nC: d\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400"},
      {"GET / HTTP/3.0\r\n" HOST "\r\n", "400"},
      {"GET /a b HTTP/1.1\r\n" HOST "\r\n", "400"},
      {"GET * HTTP/1.1\r\n" HOST "\r\n", "400"},
      {"GET http:///x HTTP/1.1\r\n" HOST "\r\n", "400"},
      {"get / HTTP/1.1\r\n" HOST "\r\n", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\na", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\na", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\na", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {"POST / HTTP/1.1\r\n" HOST
       "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\n" HOST
       "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
      {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", "501"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Encoding: br\r\nContent-Length: 1\r\n\r\na", "415"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", "400"},
      {"POST / HTTP/1.1\r\n" HOST "Expect: a-miracle\r\nContent-Length: 1\r\n\r\na", "417"},
      {"POST / HTTP/1.1\r\n" HOST "Content-Length: 70000\r\n\r\n", "413"},
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
      {CHUNKED "\r\n", "400"},
      {CHUNKED "g\r\n", "400"},
      {CHUNKED "-1\r\n", "400"},
      {CHUNKED "1 \r\na\r\n0\r\n\r\n", "400"},
      {CHUNKED "1\na\r\n0\r\n\r\n", "400"},
      {CHUNKED "1\r\nab\r\n0\r\n\r\n", "400"},
      {CHUNKED "1\r\na\n0\r\n\r\n", "400"},
      {CHUNKED "1\r\na\r\n0\r\n\n", "400"},
      {CHUNKED "1;\x01\r\na\r\n0\r\n\r\n", "400"},
      {CHUNKED "10000\r\n", "413"},
      {CHUNKED "ffffffffffffffffffff\r\n", "413"},
  };
  web_t web = {.options = {.max_body = 60000}};
  web_open(&web);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    int fd = dial(&web);
    rn_strbuf_t answer;
    put(fd, rows[i].text);
    get_all(fd, &answer);
    cr_assert(answer.size > 12 && strncmp(answer.data, "HTTP/1.1 ", 9) == 0 &&
                  strncmp(answer.data + 9, rows[i].line, 3) == 0,
              "'%s' -> '%s'", rows[i].text, answer.data);
    cr_assert(strstr(answer.data, "Connection: close\r\n"));
    cr_assert(strstr(answer.data, "{\"error\": \""));
    cr_assert_null(strstr(answer.data + 9, "HTTP/1.1"), "'%s' -> '%s'", rows[i].text, answer.data);
    rn_strbuf_clear(&answer);
    close(fd);
  }
  cr_assert_eq(web.handled, 0);
  cr_assert_eq(rn_http_server_stats(web.server).refused, sizeof rows / sizeof *rows);
  web_close(&web);
}

HTTP_TEST(heads_have_limits) {
  web_t web = {.options = {.max_head = 1000}};
  web_open(&web);
  rn_strbuf_t text, answer;
  for (int row = 0; row < 3; ++row) {
    rn_strbuf_init(&text, memory());
    rn_strbuf_printf(&text, "GET /%s HTTP/1.1\r\n" HOST, row == 0 ? "" : "echo");
    if (row == 0)
      for (int i = 0; i < 2000; ++i) rn_strbuf_append(&text, RN_STR("a"));
    if (row == 1)
      for (int i = 0; i < 120; ++i) rn_strbuf_append(&text, RN_STR("a:\r\n"));
    if (row == 2)
      for (int i = 0; i < 90; ++i) rn_strbuf_append(&text, RN_STR("a:\r\n"));
    rn_strbuf_append(&text, RN_STR("Connection: close\r\n\r\n"));
    int fd = dial(&web);
    put_n(fd, rn_strbuf_view(&text), 7);
    get_all(fd, &answer);
    const char* line = row == 2 ? "HTTP/1.1 200 " : "HTTP/1.1 431 ";
    cr_assert_eq(strncmp(answer.data, line, strlen(line)), 0, "%d: %s", row, answer.data);
    close(fd);
    rn_strbuf_clear(&answer);
    rn_strbuf_clear(&text);
  }
  web_close(&web);
}

// Requests in one stream, whose responses must come in this order; in pieces of every size.
HTTP_TEST(pipelining_in_any_pieces) {
  static const char text[] = "POST /echo HTTP/1.1\r\n" HOST
                             "Content-Length: 3\r\n\r\none"
                             "GET /thread HTTP/1.1\r\n" HOST
                             "\r\n"
                             "POST /echo HTTP/1.1\r\n" HOST
                             "Transfer-Encoding: chunked\r\n\r\n1\r\nt\r\n2\r\nwo\r\n0\r\n\r\n"
                             "GET /thread HTTP/1.1\r\n" HOST
                             "\r\n"
                             "GET /missing HTTP/1.1\r\n" HOST "\r\n";
  web_t web = {0};
  web_open(&web);
  for (size_t piece = 1; piece <= sizeof text; piece += piece < 32 ? 1 : 29) {
    int fd = dial(&web);
    put_n(fd, rn_str(text), piece);
    expect_one(fd, "HTTP/1.1 200 ", "one");
    expect_one(fd, "HTTP/1.1 200 ", "from a thread");
    expect_one(fd, "HTTP/1.1 200 ", "two");
    expect_one(fd, "HTTP/1.1 200 ", "from a thread");
    expect_one(fd, "HTTP/1.1 404 ", "/missing");
    close(fd);
  }
  // Many at once, and the client stops sending before it reads.
  enum { COUNT = 2000 };
  rn_strbuf_t many;
  rn_strbuf_init(&many, memory());
  for (int i = 0; i < COUNT; ++i)
    rn_strbuf_printf(&many, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n%04d", i);
  int fd = dial(&web);
  put_n(fd, rn_strbuf_view(&many), SIZE_MAX);
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < COUNT; ++i) {
    char expected[8];
    snprintf(expected, sizeof expected, "%04d", i);
    expect_one(fd, "HTTP/1.1 200 ", expected);
  }
  char byte;
  cr_assert_eq(recv(fd, &byte, 1, 0), 0);
  close(fd);
  rn_strbuf_clear(&many);
  web_close(&web);
}

// A body of |size| bytes, by its length or in chunks of all sizes.
static void print_body(rn_strbuf_t* out, size_t size, bool is_chunked) {
  rn_strbuf_printf(out, "POST /echo HTTP/1.1\r\n" HOST);
  if (!is_chunked) rn_strbuf_printf(out, "Content-Length: %zu\r\n\r\n", size);
  if (is_chunked) rn_strbuf_printf(out, "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t at = 0, chunk = 1; at < size; at += chunk, chunk = chunk * 3 + 1) {
    if (chunk > size - at || !is_chunked) chunk = size - at;
    if (is_chunked) rn_strbuf_printf(out, "%zx\r\n", chunk);
    for (size_t i = at; i < at + chunk; ++i)
      rn_strbuf_append_n(out, &(char){(char)(i * 7 + i / 251)}, 1);
    if (is_chunked) rn_strbuf_printf(out, "\r\n");
  }
  if (is_chunked) rn_strbuf_printf(out, "0\r\n\r\n");
}

typedef struct sender_t {
  int fd;
  rn_str_t bytes;
} sender_t;
static void* send_main(void* arg) {
  sender_t* sender = arg;
  put_n(sender->fd, sender->bytes, 100000);
  return NULL;
}

HTTP_TEST(bodies_of_all_sizes) {
  static const size_t sizes[] = {1, 4095, 4097, 70000, 300000, 9000000};
  web_t web = {0};
  web_open(&web);
  int fd = dial(&web);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (int is_chunked = 0; is_chunked < 2; ++is_chunked) {
      rn_strbuf_t text, body;
      rn_strbuf_init(&text, memory());
      print_body(&text, sizes[i], is_chunked);
      sender_t sender = {fd, rn_strbuf_view(&text)};
      pthread_t thread;
      pthread_create(&thread, NULL, send_main, &sender);
      char head[4096];
      cr_assert_eq(get_one(fd, head, sizeof head, &body), sizes[i]);
      pthread_join(thread, NULL);
      for (size_t j = 0; j < sizes[i]; ++j)
        cr_assert_eq(body.data[j], (char)(j * 7 + j / 251), "%zu of %zu", j, sizes[i]);
      rn_strbuf_clear(&body);
      rn_strbuf_clear(&text);
    }
  close(fd);
  web_close(&web);
}

HTTP_TEST(bodies_wait_for_continue) {
  web_t web = {.options = {.max_body = 100}};
  web_open(&web);
  int fd = dial(&web);
  put(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  expect_one(fd, "HTTP/1.1 100 Continue\r\n\r\n", "");
  put(fd, "ab");
  expect_one(fd, "HTTP/1.1 200 ", "ab");
  put(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 200\r\n\r\n");
  expect_one(fd, "HTTP/1.1 413 ", NULL);
  close(fd);
  web_close(&web);
}

static void put_packed(int fd, const void* data, size_t size, bool is_gzip) {
  z_stream z = {0};
  size_t room = size + 1000;
  char* out = malloc(room);
  cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, is_gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = (Bytef*)data;
  z.avail_in = (uInt)size;
  z.next_out = (Bytef*)out;
  z.avail_out = (uInt)room;
  cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
  char head[200];
  snprintf(head, sizeof head,
           "POST /echo HTTP/1.1\r\n" HOST "Content-Encoding: %s\r\nContent-Length: %lu\r\n\r\n",
           is_gzip ? "gzip" : "deflate", z.total_out);
  put(fd, head);
  put_n(fd, rn_str_n(out, z.total_out), SIZE_MAX);
  deflateEnd(&z);
  free(out);
}

HTTP_TEST(compressed_bodies) {
  enum { SIZE = 10 << 20, MAX = 10 << 20 };
  web_t web = {.options = {.max_body = MAX}};
  web_open(&web);
  int fd = dial(&web);
  for (int is_gzip = 0; is_gzip < 2; ++is_gzip) {
    put_packed(fd, "hello", 5, is_gzip);
    expect_one(fd, "HTTP/1.1 200 ", "hello");
  }
  char* zeros = calloc(1, SIZE + 1);
  put_packed(fd, zeros, SIZE, true);  // just the limit, in several turns
  char head[4096];
  rn_strbuf_t body;
  cr_assert_eq(get_one(fd, head, sizeof head, &body), SIZE);
  rn_strbuf_clear(&body);
  put_packed(fd, zeros, SIZE + 1, true);
  expect_one(fd, "HTTP/1.1 413 ", NULL);
  close(fd);
  free(zeros);
  web_close(&web);
}

// A mebibyte that would become a gibibyte: the ratio is limited, too.
HTTP_TEST(bombs) {
  enum { PIECE = 1 << 20 };
  web_t web = {0};
  web_open(&web);
  z_stream z = {0};
  char *zeros = calloc(1, PIECE), *out = malloc(PIECE);
  cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_out = (Bytef*)out;
  z.avail_out = PIECE;
  for (int i = 0; i < 100; ++i) {
    z.next_in = (Bytef*)zeros;
    z.avail_in = PIECE;
    deflate(&z, i == 99 ? Z_FINISH : Z_NO_FLUSH);
  }
  int fd = dial(&web);
  char text[200];
  snprintf(text, sizeof text,
           "POST /echo HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
           z.total_out);
  put(fd, text);
  put_n(fd, rn_str_n(out, z.total_out), SIZE_MAX);
  expect_one(fd, "HTTP/1.1 413 ", NULL);
  close(fd);
  deflateEnd(&z);
  free(zeros);
  free(out);
  web_close(&web);
}

static void wait_for(_Atomic int* count, int value) {
  for (int i = 0; i < 60000 && *count < value; ++i) usleep(1000);
  cr_assert_geq(*count, value);
}

HTTP_TEST(clients_that_go_cancel_their_request) {
  web_t web = {0};
  web_open(&web);
  for (int i = 0; i < 3; ++i) {
    int fd = dial(&web);
    put(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&web.held_count, i + 1);
    cr_assert_eq(web.cancelled, i);
    if (i == 1) {  // a reset
      struct linger linger = {.l_onoff = 1};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    if (i == 2)
      shutdown(fd, SHUT_WR);  // it still reads
    else
      close(fd);
    wait_for(&web.cancelled, i + 1);
    rn_cancel_remove(&web.held[i]->cancel, &web.entry);
    reply_with(web.held[i], 200, RN_STR("late"));
    if (i == 2) {
      expect_one(fd, "HTTP/1.1 200 ", "late");
      close(fd);
    }
  }
  web_close(&web);
}

HTTP_TEST(abrupt_ends) {
  static const char text[] =
      "POST /thread HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789";
  web_t web = {0};
  web_open(&web);
  for (size_t size = 0; size < sizeof text; ++size) {
    int fd = dial(&web);
    put_n(fd, rn_str_n(text, size), SIZE_MAX);
    if (size % 2) {
      struct linger linger = {.l_onoff = 1};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(fd);
  }
  int fd = dial(&web);
  put(fd, text);
  expect_one(fd, "HTTP/1.1 200 ", "from a thread");
  close(fd);
  web_close(&web);
}

// Replies from many threads over connections of two loops.
enum { CLIENTS = 8, ROUNDS = 200 };
static void* client_main(void* arg) {
  int fd = dial(arg);
  for (int i = 0; i < ROUNDS; ++i) {
    put(fd, i % 2 ? "GET /thread HTTP/1.1\r\n" HOST "\r\n"
                  : "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    expect_one(fd, "HTTP/1.1 200 ", i % 2 ? "from a thread" : "x");
  }
  close(fd);
  return NULL;
}
HTTP_TEST(replies_from_threads_on_two_loops) {
  web_t web = {.options = {.loops = web.loops, .loop_count = 2}};
  web_open(&web);
  pthread_t threads[CLIENTS];
  for (int i = 0; i < CLIENTS; ++i) pthread_create(&threads[i], NULL, client_main, &web);
  for (int i = 0; i < CLIENTS; ++i) pthread_join(threads[i], NULL);
  cr_assert_eq(web.handled, CLIENTS * ROUNDS);
  web_close(&web);
}

HTTP_TEST(destroying_waits_for_replies) {
  web_t web = {0};
  web_open(&web);
  int fd = dial(&web);
  put(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
  wait_for(&web.held_count, 1);
  pthread_t thread;
  rn_http_in_t* request = web.held[0];
  rn_cancel_remove(&request->cancel, &web.entry);
  pthread_create(&thread, NULL, reply_main, request);
  rn_http_server_destroy(web.server);
  pthread_join(thread, NULL);
  rn_loop_destroy(web.loops[0]);
  rn_loop_destroy(web.loops[1]);
  close(fd);
}

HTTP_TEST(draining) {
  web_t web = {.options = {.loops = web.loops, .loop_count = 2}};
  web_open(&web);
  int idle = dial(&web), busy = dial(&web), half = dial(&web);
  put(idle, "GET /missing HTTP/1.1\r\n" HOST "\r\n");
  expect_one(idle, "HTTP/1.1 404 ", NULL);
  put(half, "GET /missing HTTP/1.1\r\n");
  put(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
  wait_for(&web.held_count, 1);
  for (int i = 0; i < 60000 && rn_http_server_stats(web.server).bytes_in < 88; ++i) usleep(1000);
  rn_http_server_drain(web.server);
  rn_http_server_drain(web.server);
  char byte;
  cr_assert_eq(recv(idle, &byte, 1, 0), 0);
  rn_cancel_remove(&web.held[0]->cancel, &web.entry);
  reply_with(web.held[0], 200, RN_STR("done"));
  rn_strbuf_t answer;
  get_all(busy, &answer);
  cr_assert(strstr(answer.data, "Connection: close\r\n") && strstr(answer.data, "done"));
  rn_strbuf_clear(&answer);
  put(half, HOST "\r\n");
  get_all(half, &answer);
  cr_assert(strstr(answer.data, "HTTP/1.1 404 ") && strstr(answer.data, "Connection: close\r\n"));
  rn_strbuf_clear(&answer);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)web.port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_neq(connect(late, (struct sockaddr*)&address, sizeof address), 0);
  close(late);
  close(idle);
  close(busy);
  close(half);
  web_close(&web);
}

HTTP_TEST(slow_clients_are_ended) {
  web_t web = {.options = {.half_ns = SECOND / 5, .idle_ns = SECOND / 2}};
  web_open(&web);
  int idle = dial(&web), head = dial(&web), body = dial(&web), drips = dial(&web);
  put(head, "GET / HTTP/1.1\r\nHo");
  put(body, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
  put(drips, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
  // A byte now and then is no progress.
  for (int i = 0; i < 3000; ++i) {
    if (send(drips, "x", 1, MSG_NOSIGNAL) <= 0) break;
    char byte;
    if (recv(drips, &byte, 1, MSG_DONTWAIT) >= 0) break;
    usleep(10000);
  }
  rn_strbuf_t answer;
  get_all(head, &answer);
  cr_assert(strstr(answer.data, "HTTP/1.1 408 "), "%s", answer.data);
  rn_strbuf_clear(&answer);
  get_all(body, &answer);
  cr_assert(strstr(answer.data, "HTTP/1.1 408 "), "%s", answer.data);
  rn_strbuf_clear(&answer);
  get_all(idle, &answer);
  cr_assert_eq(answer.size, 0);
  rn_strbuf_clear(&answer);
  for (int i = 0; i < 60000 && rn_http_server_stats(web.server).connections; ++i) usleep(1000);
  cr_assert_eq(rn_http_server_stats(web.server).connections, 0);
  close(idle);
  close(head);
  close(body);
  close(drips);
  web_close(&web);
}

HTTP_TEST(floods_do_not_lock_others_out) {
  enum { LIMIT = 20, FLOOD = 100 };
  web_t web = {.options = {.max_connections = LIMIT}};
  web_open(&web);
  int fds[FLOOD], busy = dial(&web);
  put(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
  wait_for(&web.held_count, 1);
  for (int i = 0; i < FLOOD; ++i) {
    fds[i] = dial(&web);
    put(fds[i], i % 2 ? "GET / HT" : "");
    if (i % 10) continue;
    int fd = dial(&web);
    put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    expect_one(fd, "HTTP/1.1 200 ", "x");
    close(fd);
  }
  cr_assert_leq(rn_http_server_stats(web.server).connections, LIMIT);
  rn_cancel_remove(&web.held[0]->cancel, &web.entry);
  reply_with(web.held[0], 200, RN_STR("still here"));
  expect_one(busy, "HTTP/1.1 200 ", "still here");
  close(busy);
  for (int i = 0; i < FLOOD; ++i) close(fds[i]);
  web_close(&web);
}

// Another process opens more connections than there are descriptors for, and is served.
static int flood(const web_t* web) {
  enum { FLOOD = 200 };
  for (int i = 0; i < FLOOD; ++i) dial(web);
  for (int i = 0; i < 10; ++i) {
    int fd = dial(web);
    put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    expect_one(fd, "HTTP/1.1 200 ", "x");
    close(fd);
  }
  return 0;
}
HTTP_TEST(it_lives_on_without_descriptors) {
  web_t web = {0};
  web_open(&web);
  struct rlimit limit = {0};
  getrlimit(RLIMIT_NOFILE, &limit);
  pid_t child = fork();
  if (child == 0) _exit(flood(&web));
  limit.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &limit);
  int status = -1;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
  web_close(&web);
}

HTTP_TEST(memory_of_all_requests_is_limited) {
  enum { SIZE = 100000 };
  web_t web = {.options = {.max_all = 150000}};
  web_open(&web);
  rn_strbuf_t text;
  rn_strbuf_init(&text, memory());
  print_body(&text, SIZE, false);
  int first = dial(&web), second = dial(&web);
  put_n(first, rn_str_n(text.data, text.size - 1), SIZE_MAX);
  for (int i = 0; i < 60000 && rn_http_server_stats(web.server).bytes_in < text.size - 1; ++i)
    usleep(1000);
  put_n(second, rn_strbuf_view(&text), SIZE_MAX);
  expect_one(second, "HTTP/1.1 503 ", NULL);
  put_n(first, rn_str_n(text.data + text.size - 1, 1), SIZE_MAX);
  char head[4096];
  rn_strbuf_t body;
  cr_assert_eq(get_one(first, head, sizeof head, &body), SIZE);
  rn_strbuf_clear(&body);
  rn_strbuf_clear(&text);
  close(first);
  close(second);
  web_close(&web);
}

// A client that asks for much and reads nothing: others are served, and it is ended.
HTTP_TEST(clients_that_do_not_read) {
  web_t web = {.options = {.half_ns = SECOND / 2}};
  web_open(&web);
  rn_strbuf_t text;
  rn_strbuf_init(&text, memory());
  for (int i = 0; i < 100; ++i) print_body(&text, 1000000, false);
  int fd = dial(&web), other = dial(&web);
  sender_t sender = {fd, rn_strbuf_view(&text)};
  pthread_t thread;
  pthread_create(&thread, NULL, send_main, &sender);
  while (!web.handled || !rn_http_server_stats(web.server).requests) usleep(1000);
  for (int i = 0; i < 20; ++i) {
    put(other, "GET /missing HTTP/1.1\r\n" HOST "\r\n");
    expect_one(other, "HTTP/1.1 404 ", NULL);
  }
  pthread_join(thread, NULL);  // it was ended, as it read nothing
  cr_assert_lt(web.handled, 100);
  for (int i = 0; i < 60000 && rn_http_server_stats(web.server).requests; ++i) usleep(1000);
  cr_assert_eq(rn_http_server_stats(web.server).requests, 0);
  rn_strbuf_clear(&text);
  close(fd);
  close(other);
  web_close(&web);
}

// Each allocation of a server and of a request may fail.
HTTP_TEST(every_allocation_may_fail) {
  for (int64_t nth = 1; nth < 200; ++nth) {
    rn_counting_allocator_t counting = {.base = memory(), .fail_at = nth};
    web_t web = {0};
    OK(rn_loop_create(rn_env_system(), memory(), &web.loops[0]));
    rn_http_server_options_t options = {.loop = web.loops[0],
                                        .allocator = rn_allocator_counting(&counting),
                                        .address = "127.0.0.1:0",
                                        .handle = handle,
                                        .self = &web};
    rn_status_t status = rn_http_server_create(&options, &web.server);
    if (rn_ok(status)) {
      web.port = rn_http_server_port(web.server);
      int fd = dial(&web);
      put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
      put(fd, "POST /echo HTTP/1.1\r\n" HOST "Connection: close\r\nContent-Length: 1\r\n\r\nx");
      rn_strbuf_t answer;
      get_all(fd, &answer);
      rn_strbuf_clear(&answer);
      close(fd);
      rn_http_server_destroy(web.server);
    }
    rn_status_free(status);
    rn_loop_destroy(web.loops[0]);
    cr_assert_eq(counting.live_blocks, 0, "%lld", (long long)nth);
    if (counting.allocations < nth) return;
  }
  cr_assert(false, "too many allocations");
}
