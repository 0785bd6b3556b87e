// A connection of `runnel load` over HTTP/1.1, with one request at a time: see load_gen.h.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/load_gen.h"
#include "net/http_body.h"

#define MAX_CHUNKS ((size_t)1 << 30)  // bytes of a response whose length is not known before

typedef struct http_link_t {
  rn_load_link_t link;
  rn_strbuf_t head;   // of the request being sent
  rn_str_t body;      // likewise
  size_t sent;        // bytes of both
  char input[65536];  // the response's head, and as much of its body as is read at once
  size_t input_size;
  bool has_head;
  int code;
  int64_t body_left;  // bytes of the response's body that are missing
  bool is_chunked;
  rn_http_body_t chunks;  // the body instead, if it comes in chunks
  rn_http_budget_t budget;
  int64_t arrived_ns, sent_ns;
} http_link_t;

static bool flush(http_link_t* http) {
  size_t whole = http->head.size + http->body.size;
  while (http->sent < whole) {
    size_t in_head = http->sent < http->head.size ? http->head.size - http->sent : 0;
    size_t in_body = http->sent > http->head.size ? http->sent - http->head.size : 0;
    struct iovec pieces[2] = {
        {http->head.data + http->sent, in_head},
        {(char*)http->body.data + in_body, http->body.size - in_body},
    };
    struct msghdr message = {.msg_iov = in_head ? pieces : pieces + 1,
                             .msg_iovlen = in_head ? 2 : 1};
    ssize_t size = sendmsg(http->link.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) return false;
    if (size < 0) break;
    http->sent += (size_t)size;
  }
  http->link.wants_write = http->sent < whole;
  return true;
}

static void send_request(rn_load_link_t* link, size_t payload, int64_t arrived_ns) {
  http_link_t* http = (http_link_t*)link;
  const rn_load_options_t* options = link->load->options;
  http->body = options->payloads[payload];
  http->head.size = 0;
  rn_strbuf_printf(&http->head, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%s",
                   options->path, options->address, options->type, options->headers);
  if (options->token) rn_strbuf_printf(&http->head, "Authorization: Bearer %s\r\n", options->token);
  rn_strbuf_printf(&http->head, "Content-Length: %zu\r\n\r\n", http->body.size);
  http->sent = http->input_size = 0;
  http->has_head = false;
  http->arrived_ns = arrived_ns;
  http->sent_ns = rn_load_now();
  if (!flush(http)) shutdown(link->fd, SHUT_RDWR);  // the next read fails
}

static bool begin_chunks(http_link_t* http) {
  rn_allocator_t allocator = http->link.load->options->allocator;
  const rn_http1_request_t head = {.is_chunked = true};
  rn_http_body_clear(&http->chunks);
  http->chunks = (rn_http_body_t){
      .allocator = allocator, .landing = allocator, .budget = &http->budget, .max = MAX_CHUNKS};
  return rn_http_body_begin(&http->chunks, &head, 0) == 0;
}

// Reads code and length from a complete head; false if it has no usable ones.
static bool read_head(http_link_t* http, size_t size) {
  http->code = 0;
  http->body_left = -1;
  http->is_chunked = false;
  if (sscanf(http->input, "HTTP/1.%*d %d", &http->code) != 1) return false;
  for (const char* line = http->input; (line = strchr(line, '\n')) && line < http->input + size;) {
    ++line;
    if (strncasecmp(line, "content-length:", 15) == 0)
      http->body_left = strtoll(line + 15, NULL, 10);
    else if (strncasecmp(line, "transfer-encoding:", 18) == 0)
      http->is_chunked = strncasecmp(line + 18 + strspn(line + 18, " \t"), "chunked", 7) == 0;
  }
  return http->is_chunked ? begin_chunks(http) : http->body_left >= 0;
}

// Takes bytes of the body; false if they are not one, or more than it.
static bool take_body(http_link_t* http, const char* data, size_t size) {
  http->input_size = 0;
  if (!http->is_chunked) {
    http->body_left -= (int64_t)size;
    return http->body_left >= 0;
  }
  rn_str_t bytes = rn_str_n(data, size);
  if (rn_http_body_take(&http->chunks, &bytes) != 0) return false;
  http->body_left = http->chunks.is_whole ? 0 : 1;
  return !bytes.size;
}

// Takes |size| new bytes at the end of the input; false if the response cannot be read.
static bool take(http_link_t* http, size_t size) {
  if (http->has_head) return take_body(http, http->input, size);
  http->input_size += size;
  http->input[http->input_size] = '\0';
  const char* end = strstr(http->input, "\r\n\r\n");
  if (!end) return http->input_size < sizeof http->input - 1;
  size_t head = (size_t)(end - http->input) + 4, all = http->input_size;
  if (!read_head(http, head)) return false;
  http->has_head = true;
  return take_body(http, http->input + head, all - head);
}

static bool ready(rn_load_link_t* link, bool can_read, bool can_write) {
  http_link_t* http = (http_link_t*)link;
  if (can_write && !flush(http)) return false;
  if (!can_read) return true;
  for (;;) {
    ssize_t size = recv(link->fd, http->input + http->input_size,
                        sizeof http->input - 1 - http->input_size, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0 || !link->running || !take(http, (size_t)size)) return false;
    if (!http->has_head || http->body_left) continue;
    rn_load_answered(link, http->arrived_ns, http->sent_ns, http->code);
    return true;
  }
}

static void destroy(rn_load_link_t* link) {
  http_link_t* http = (http_link_t*)link;
  rn_allocator_t allocator = link->load->options->allocator;
  if (link->fd >= 0) close(link->fd);
  rn_strbuf_clear(&http->head);
  rn_http_body_clear(&http->chunks);
  RN_FREE(allocator, http);
}

static const rn_load_link_vtable_t table = {send_request, ready, destroy};

rn_status_t rn_load_http_create(rn_load_t* load, rn_load_link_t** out) {
  *out = NULL;
  http_link_t* http = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(load->options->allocator, &http));
  http->link = (rn_load_link_t){.vtable = &table, .load = load, .fd = -1, .room = 1};
  rn_strbuf_init(&http->head, load->options->allocator);
  http->chunks.allocator = load->options->allocator;
  http->chunks.budget = &http->budget;
  rn_status_t status = rn_load_connect(load->options->address, &http->link.fd);
  if (!rn_ok(status)) {
    destroy(&http->link);
    return status;
  }
  *out = &http->link;
  return RN_OK;
}
