// A gRPC server: a port, its connections, and their calls.
#ifndef RUNNEL_NET_RPC_SERVER_H_
#define RUNNEL_NET_RPC_SERVER_H_

#include "framework/cancel.h"
#include "net/door.h"
#include "net/http2.h"
#include "net/http_server.h"

typedef struct rn_rpc_server_t rn_rpc_server_t;

// A received call. It ends with rn_rpc_reply, once, from any thread.
typedef struct rn_rpc_in_t {
  rn_http2_stream_t stream;
  rn_rpc_server_t* server;
  rn_http2_t* http2;   // Retained
  rn_loop_t* loop;     // of its connection
  rn_cancel_t cancel;  // cancelled when the client cancels or is gone, or the deadline passes
  rn_timer_t deadline;
  _Atomic int holds;  // references of the stream and the handler
  bool is_local;      // the client is on this machine: loopback or a Unix socket
  int tag;            // for the handler
  int64_t begun_ns;   // likewise
  // For a streaming call, set by its handler and called on the loop's thread: |message| for each
  // message, whose content it takes (NULL: the client has sent all); then |gone| once.
  void (*message)(struct rn_rpc_in_t* call, rn_message_t* message);
  void (*gone)(struct rn_rpc_in_t* call);
  void* owner;  // for the handler
} rn_rpc_in_t;

static inline rn_str_t rn_rpc_path(const rn_rpc_in_t* call) {
  return rn_strbuf_view(&call->stream.path);
}
static inline rn_str_t rn_rpc_request(const rn_rpc_in_t* call) {
  return rn_message_view(&call->stream.message);
}

typedef struct rn_rpc_server_options_t {
  rn_loop_t* loop;
  // Connections are spread over these, which must outlive the server; NULL: only |loop|, which
  // otherwise must be the first.
  rn_loop_t* const* loops;
  size_t loop_count;
  rn_allocator_t allocator;
  const char* address;  // "host:port", "unix:path"; port 0 is any
  bool starts_later;    // connections wait at the port until rn_rpc_server_start
  // Runs on the loop's thread: must hand long work to other threads.
  void (*handle)(void* self, rn_rpc_in_t* call);
  // Called from any thread when a call ends with |code|; may be NULL.
  void (*replied)(void* self, rn_rpc_in_t* call, rn_code_t code);
  bool (*streams)(rn_str_t path);  // whether calls of |path| stream; NULL: none do
  void* self;
  rn_align_fn_t align;  // of requests; NULL: none
  size_t max_message;
  int64_t keepalive_ns;  // of its connections: see rn_http2_options_t. Calls that arrived while
                         // this process was stopped for twice that are refused
  // Per connection, as in rn_http2_options_t; 0: the defaults.
  uint32_t max_streams;
  size_t max_held;
  int64_t stall_ns, half_ns, idle_ns;
  size_t max_all_held;     // of all connections together; 0: any
  size_t max_connections;  // of HTTP/2; 0: any. Beyond it the longest idle one is closed
  size_t max_doors;        // connections whose protocol is not known yet; 0: 1024
  rn_tls_t* tls;           // Borrowed; NULL: plain
  rn_tokens_t* tokens;     // that calls must send; NULL: none; Borrowed
  bool keeps_headers;      // of calls, for rn_rpc_header
  // Takes connections that speak HTTP/1; it must have the same loops, and outlive this server.
  // NULL: |page| answers them.
  rn_http_server_t* http;
  // Handles HTTP/1 requests, on the loop's thread. NULL: none.
  void (*page)(void* self, const rn_http1_request_t* request, rn_socket_t* from,
               rn_http1_answer_t* out);
} rn_rpc_server_options_t;

// Statistics of all connections.
typedef struct rn_rpc_server_stats_t {
  size_t connections, doors, calls;  // |doors|: connections whose protocol is not known yet
  size_t queued, held;
  uint64_t bytes_in, bytes_out;  // of all connections so far
  int64_t refused;
} rn_rpc_server_stats_t;

RN_MUST_USE rn_status_t rn_rpc_server_create(const rn_rpc_server_options_t* options,
                                             rn_rpc_server_t** out);
// For a server that |starts_later|, once; not on a loop's thread.
RN_MUST_USE rn_status_t rn_rpc_server_start(rn_rpc_server_t* server);
int rn_rpc_server_port(const rn_rpc_server_t* server);
// Any thread may call it.
rn_rpc_server_stats_t rn_rpc_server_stats(rn_rpc_server_t* server);
// Accepts no more connections, and tells clients to make their next calls elsewhere; calls that
// they make nevertheless are handled. Any thread.
void rn_rpc_server_drain(rn_rpc_server_t* server);
// Closes the port and every connection, and waits until every call has ended. Not on the loop's
// thread. NULL is fine.
void rn_rpc_server_destroy(rn_rpc_server_t* server);

// The value of a header of the call, by its name in lower case; "" if it is missing, or the server
// does not keep headers.
rn_str_t rn_rpc_header(const rn_rpc_in_t* call, const char* name);
// Adds a trailer to the reply, before that: |name| in lower case. Best effort: at most
// RN_HTTP2_MAX_TRAILERS are sent.
void rn_rpc_add_trailer(rn_rpc_in_t* call, const char* name, rn_str_t value);
// Sends one message of a streaming response and takes its content. From any thread, before the
// reply, whose own message is then ignored.
void rn_rpc_send(rn_rpc_in_t* call, rn_message_t* message);
// Takes |status| and the content of |message|.
void rn_rpc_reply(rn_rpc_in_t* call, rn_status_t status, rn_message_t* message);

#endif  // RUNNEL_NET_RPC_SERVER_H_
