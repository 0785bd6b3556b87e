// A connection of `runnel load` over gRPC, with many calls at a time: see load_gen.h. It speaks to
// nghttp2 directly, so that the generator takes little of the machine that it shares with the
// server.
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/load_gen.h"

typedef struct grpc_call_t {
  int64_t arrived_ns, sent_ns;
  rn_str_t body;
  size_t sent;  // of the prefix and the body
  uint8_t prefix[5];
  int code;                  // grpc-status; -1: none received
  struct grpc_call_t* next;  // of the free ones
} grpc_call_t;

typedef struct grpc_link_t {
  rn_load_link_t link;
  nghttp2_session* session;
  grpc_call_t* calls;  // Owned: one per stream that may be open
  grpc_call_t* idle;
  rn_strbuf_t output;  // frames that the socket did not take
  size_t output_sent;
  char timeout[32];
} grpc_link_t;

static bool flush(grpc_link_t* grpc) {
  for (;;) {
    while (grpc->output_sent < grpc->output.size) {
      ssize_t size = send(grpc->link.fd, grpc->output.data + grpc->output_sent,
                          grpc->output.size - grpc->output_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) {
        grpc->link.wants_write = errno == EAGAIN;
        return errno == EAGAIN;
      }
      grpc->output_sent += (size_t)size;
    }
    grpc->output.size = grpc->output_sent = 0;
    const uint8_t* data = NULL;
    for (ssize_t size; grpc->output.size < 65536 &&
                       (size = nghttp2_session_mem_send(grpc->session, &data)) != 0;) {
      if (size < 0) return false;
      rn_strbuf_append_n(&grpc->output, data, (size_t)size);
    }
    if (!grpc->output.size) break;
  }
  grpc->link.wants_write = false;
  return true;
}

static ssize_t read_body(nghttp2_session* session, int32_t id, uint8_t* out, size_t room,
                         uint32_t* flags, nghttp2_data_source* source, void* user) {
  (void)session, (void)id, (void)user;
  grpc_call_t* call = source->ptr;
  size_t size = 0;
  while (size < room && call->sent < sizeof call->prefix) out[size++] = call->prefix[call->sent++];
  size_t at = call->sent - sizeof call->prefix;
  if (call->sent >= sizeof call->prefix && at < call->body.size && size < room) {
    size_t part = call->body.size - at < room - size ? call->body.size - at : room - size;
    memcpy(out + size, call->body.data + at, part);
    call->sent += part;
    size += part;
  }
  if (call->sent == sizeof call->prefix + call->body.size) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)size;
}

static nghttp2_nv header(const char* name, const char* value) {
  return (nghttp2_nv){(uint8_t*)name, (uint8_t*)value, strlen(name), strlen(value),
                      NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

static void send_request(rn_load_link_t* link, size_t payload, int64_t arrived_ns) {
  grpc_link_t* grpc = (grpc_link_t*)link;
  const rn_load_options_t* options = link->load->options;
  grpc_call_t* call = grpc->idle;
  grpc->idle = call->next;
  *call = (grpc_call_t){.arrived_ns = arrived_ns,
                        .sent_ns = rn_load_now(),
                        .body = options->payloads[payload],
                        .code = -1};
  for (int i = 0; i < 4; ++i) call->prefix[1 + i] = (uint8_t)(call->body.size >> (24 - 8 * i));
  char bearer[1100] = "";
  nghttp2_nv headers[9] = {header(":method", "POST"),
                           header(":scheme", "http"),
                           header(":path", options->path),
                           header(":authority", options->address),
                           header("content-type", "application/grpc"),
                           header("te", "trailers")};
  size_t count = 6;
  if (options->token) {
    snprintf(bearer, sizeof bearer, "Bearer %s", options->token);
    headers[count++] = header("authorization", bearer);
  }
  if (grpc->timeout[0]) headers[count++] = header("grpc-timeout", grpc->timeout);
  nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_body};
  if (nghttp2_submit_request(grpc->session, NULL, headers, count, &body, call) < 0 || !flush(grpc))
    shutdown(link->fd, SHUT_RDWR);  // the next read fails
}

static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                     size_t name_size, const uint8_t* value, size_t value_size, uint8_t flags,
                     void* user) {
  (void)flags, (void)user;
  grpc_call_t* call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (!call || !rn_str_eq(rn_str_n((const char*)name, name_size), RN_STR("grpc-status"))) return 0;
  char text[8];
  snprintf(text, sizeof text, "%.*s", (int)(value_size < 7 ? value_size : 7), (const char*)value);
  call->code = atoi(text);
  return 0;
}

static int on_close(nghttp2_session* session, int32_t id, uint32_t error, void* user) {
  (void)error;
  grpc_link_t* grpc = user;
  grpc_call_t* call = nghttp2_session_get_stream_user_data(session, id);
  if (!call) return 0;
  rn_load_answered(&grpc->link, call->arrived_ns, call->sent_ns,
                   call->code < 0 ? (int)RN_CODE_UNKNOWN : call->code);
  call->next = grpc->idle;
  grpc->idle = call;
  return 0;
}

static bool ready(rn_load_link_t* link, bool can_read, bool can_write) {
  grpc_link_t* grpc = (grpc_link_t*)link;
  (void)can_write;
  uint8_t input[65536];
  while (can_read) {
    ssize_t size = recv(link->fd, input, sizeof input, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0 || nghttp2_session_mem_recv(grpc->session, input, (size_t)size) < 0) return false;
    if ((size_t)size < sizeof input) break;
  }
  return flush(grpc);
}

static void destroy(rn_load_link_t* link) {
  grpc_link_t* grpc = (grpc_link_t*)link;
  const rn_load_options_t* options = link->load->options;
  if (grpc->session) nghttp2_session_del(grpc->session);
  if (link->fd >= 0) close(link->fd);
  if (grpc->calls) RN_FREE_ARRAY(options->allocator, grpc->calls, options->streams);
  rn_strbuf_clear(&grpc->output);
  RN_FREE(options->allocator, grpc);
}

static rn_status_t set_up(grpc_link_t* grpc) {
  const rn_load_options_t* options = grpc->link.load->options;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(options->allocator, (size_t)options->streams, &grpc->calls));
  for (int i = 0; i < options->streams; ++i) {
    grpc->calls[i].next = grpc->idle;
    grpc->idle = &grpc->calls[i];
  }
  if (options->deadline_ns)
    snprintf(grpc->timeout, sizeof grpc->timeout, "%lldu",
             (long long)((options->deadline_ns + 999) / 1000));
  nghttp2_session_callbacks* callbacks = NULL;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) return rn_resource_exhausted("No memory");
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  int error = nghttp2_session_client_new(&grpc->session, callbacks, grpc);
  nghttp2_session_callbacks_del(callbacks);
  // Large windows: responses are not held back.
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 24},
                                             {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  if (error || nghttp2_submit_settings(grpc->session, NGHTTP2_FLAG_NONE, settings, 2) ||
      nghttp2_session_set_local_window_size(grpc->session, NGHTTP2_FLAG_NONE, 0, 1 << 28))
    return rn_resource_exhausted("No memory");
  RN_RETURN_IF_ERROR(rn_load_connect(options->address, &grpc->link.fd));
  return flush(grpc) ? RN_OK : rn_unavailable("%s closed the connection", options->address);
}

static const rn_load_link_vtable_t table = {send_request, ready, destroy};

rn_status_t rn_load_grpc_create(rn_load_t* load, rn_load_link_t** out) {
  *out = NULL;
  grpc_link_t* grpc = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(load->options->allocator, &grpc));
  grpc->link =
      (rn_load_link_t){.vtable = &table, .load = load, .fd = -1, .room = load->options->streams};
  rn_strbuf_init(&grpc->output, load->options->allocator);
  rn_status_t status = set_up(grpc);
  if (!rn_ok(status)) {
    destroy(&grpc->link);
    return status;
  }
  *out = &grpc->link;
  return RN_OK;
}
