// A client of one streaming gRPC call, which uses nghttp2 directly, on its own socket.
#ifndef RUNNEL_TESTS_SUPPORT_STREAM_CLIENT_H_
#define RUNNEL_TESTS_SUPPORT_STREAM_CLIENT_H_

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

// One call, and what came of it.
typedef struct stream_client_t {
  int socket;
  nghttp2_session* session;
  int32_t stream;
  rn_strbuf_t out, in;  // bytes to send; bytes that came
  bool is_ended;        // nothing more will be sent
  bool is_closed;
  int status;  // grpc-status; -1: none came
} stream_client_t;

static inline ssize_t stream_on_send(nghttp2_session* session, const uint8_t* data, size_t size,
                                     int flags, void* arg) {
  (void)session, (void)flags;
  ssize_t n = write(((stream_client_t*)arg)->socket, data, size);
  return n > 0 ? n : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static inline int stream_on_data(nghttp2_session* session, uint8_t flags, int32_t id,
                                 const uint8_t* data, size_t size, void* arg) {
  (void)session, (void)flags, (void)id;
  rn_strbuf_append_n(&((stream_client_t*)arg)->in, (const char*)data, size);
  return 0;
}

static inline int stream_on_header(nghttp2_session* session, const nghttp2_frame* frame,
                                   const uint8_t* name, size_t name_size, const uint8_t* value,
                                   size_t value_size, uint8_t flags, void* arg) {
  (void)session, (void)frame, (void)value_size, (void)flags;
  if (rn_str_is(rn_str_n((const char*)name, name_size), "grpc-status"))
    ((stream_client_t*)arg)->status = atoi((const char*)value);
  return 0;
}

static inline int stream_on_close(nghttp2_session* session, int32_t id, uint32_t code, void* arg) {
  (void)session, (void)id, (void)code;
  ((stream_client_t*)arg)->is_closed = true;
  return 0;
}

static inline ssize_t stream_on_read(nghttp2_session* session, int32_t id, uint8_t* buffer,
                                     size_t size, uint32_t* flags, nghttp2_data_source* source,
                                     void* arg) {
  (void)session, (void)id, (void)source;
  stream_client_t* client = arg;
  size_t n = client->out.size < size ? client->out.size : size;
  memcpy(buffer, client->out.data, n);
  memmove(client->out.data, client->out.data + n, client->out.size - n);
  client->out.size -= n;
  if (n == 0 && !client->is_ended) return NGHTTP2_ERR_DEFERRED;
  if (client->out.size == 0 && client->is_ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)n;
}

static inline nghttp2_nv stream_header(const char* name, const char* value) {
  return (nghttp2_nv){(uint8_t*)name, (uint8_t*)value, strlen(name), strlen(value),
                      NGHTTP2_NV_FLAG_NONE};
}

static inline void stream_open(stream_client_t* client, int port, const char* path) {
  *client = (stream_client_t){.status = -1};
  rn_strbuf_init(&client->out, rn_allocator_system());
  rn_strbuf_init(&client->in, rn_allocator_system());
  rn_strbuf_printf(&client->out, " ");  // it has memory
  client->out.size = 0;
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  client->socket = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(client->socket, (struct sockaddr*)&at, sizeof at), 0);
  nghttp2_session_callbacks* callbacks = NULL;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_send_callback(callbacks, stream_on_send);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, stream_on_data);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, stream_on_header);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_on_close);
  nghttp2_session_client_new(&client->session, callbacks, client);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0);
  const nghttp2_nv headers[] = {stream_header(":method", "POST"),
                                stream_header(":scheme", "http"),
                                stream_header(":path", path),
                                stream_header(":authority", "here"),
                                stream_header("content-type", "application/grpc"),
                                stream_header("te", "trailers")};
  nghttp2_data_provider provider = {.read_callback = stream_on_read};
  client->stream = nghttp2_submit_request(client->session, NULL, headers,
                                          sizeof headers / sizeof *headers, &provider, NULL);
}

static inline void stream_close(stream_client_t* client) {
  nghttp2_session_del(client->session);
  close(client->socket);
  rn_strbuf_clear(&client->out);
  rn_strbuf_clear(&client->in);
}

static inline void stream_put(stream_client_t* client, const rn_strbuf_t* message) {
  size_t n = message->size;
  const char prefix[5] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
  rn_strbuf_append_n(&client->out, prefix, sizeof prefix);
  rn_strbuf_append_n(&client->out, message->data, n);
}

// Writes what waits; then reads until |bytes| have come, or the call is over.
static inline void stream_pump(stream_client_t* client, size_t bytes) {
  char buffer[65536];
  nghttp2_session_resume_data(client->session, client->stream);
  cr_assert_eq(nghttp2_session_send(client->session), 0);
  while (client->in.size < bytes && !client->is_closed) {
    ssize_t n = read(client->socket, buffer, sizeof buffer);
    cr_assert_gt(n, 0, "the server has gone");
    cr_assert_eq(nghttp2_session_mem_recv(client->session, (uint8_t*)buffer, (size_t)n), n);
    cr_assert_eq(nghttp2_session_send(client->session), 0);
  }
}

#endif  // RUNNEL_TESTS_SUPPORT_STREAM_CLIENT_H_
