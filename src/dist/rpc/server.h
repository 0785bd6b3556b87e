// The server's end of gRPC: a port, its connections, and the calls that come in on them.
#ifndef RUNNEL_DIST_RPC_SERVER_H_
#define RUNNEL_DIST_RPC_SERVER_H_

#include "dist/rpc/door.h"
#include "dist/rpc/http2.h"
#include "framework/cancel.h"

typedef struct rn_rpc_server_t rn_rpc_server_t;

// A call that came in. It ends with rn_rpc_reply, once, from any thread.
typedef struct rn_rpc_in_t {
  rn_http2_stream_t stream;
  rn_rpc_server_t* server;
  rn_http2_t* http2;   // Retained
  rn_cancel_t cancel;  // set off when the client gives up, is gone, or its deadline passes
  rn_timer_t deadline;
  _Atomic int holds;  // the stream's and the handler's
  int tag;            // the handler's own
  int64_t begun_ns;   // likewise
  // Of a call that streams, set by its handler, called on the loop's thread: each message that
  // comes, what it holds taken (NULL: the client has said all); then, once, that nothing more
  // comes.
  void (*message)(struct rn_rpc_in_t* call, rn_message_t* message);
  void (*gone)(struct rn_rpc_in_t* call);
  void* owner;  // the handler's own
} rn_rpc_in_t;

static inline rn_str_t rn_rpc_path(const rn_rpc_in_t* call) {
  return rn_strbuf_view(&call->stream.path);
}
static inline rn_str_t rn_rpc_request(const rn_rpc_in_t* call) {
  return rn_message_view(&call->stream.message);
}

typedef struct rn_rpc_server_options_t {
  rn_loop_t* loop;
  rn_allocator_t allocator;
  const char* address;  // "host:port"; port 0 is any
  // Runs on the loop's thread: what takes time goes to other threads.
  void (*handle)(void* self, rn_rpc_in_t* call);
  // A call is replied to with |code|, from any thread. NULL: nobody wants to know.
  void (*replied)(void* self, rn_rpc_in_t* call, rn_code_t code);
  bool (*streams)(rn_str_t path);  // whether calls of |path| stream; NULL: none do
  void* self;
  size_t max_message;
  int64_t keepalive_ns;  // of its connections: see rn_http2_options_t. Calls that came while this
                         // process was stopped for twice that are refused
  // Of one connection, as rn_http2_options_t has them; 0: its defaults.
  uint32_t max_streams;
  size_t max_held;
  int64_t stall_ns, half_ns, idle_ns;
  size_t max_all_held;     // of all connections together; 0: any
  size_t max_connections;  // of HTTP/2; 0: any. Beyond it the one goes that was idle the longest
  size_t max_doors;        // of connections that have not said what they speak; 0: 1024
  rn_tls_t* tls;           // Borrowed; NULL: plain
  rn_str_t token;          // that calls must have to be trusted, "": none; lent, ends in a 0
  // Pages of HTTP/1, on the loop's thread. NULL: none.
  void (*page)(void* self, const rn_http1_request_t* request, rn_str_t peer,
               rn_http1_answer_t* out);
  int64_t door_timeout_ns;  // for a connection to say what it wants; 0: 5 s
} rn_rpc_server_options_t;

// How the connections are, together.
typedef struct rn_rpc_server_stats_t {
  size_t connections, doors, calls;  // doors: connections that have not said what they want
  size_t queued, held;
  uint64_t bytes_in, bytes_out;  // of all connections there were
  int64_t refused;
} rn_rpc_server_stats_t;

RN_MUST_USE rn_status_t rn_rpc_server_create(const rn_rpc_server_options_t* options,
                                             rn_rpc_server_t** out);
int rn_rpc_server_port(const rn_rpc_server_t* server);
// On the loop's thread.
rn_rpc_server_stats_t rn_rpc_server_stats(rn_rpc_server_t* server);
// Closes the port and every connection, waits until every call was replied to. Not on the loop's
// thread. NULL is fine.
void rn_rpc_server_destroy(rn_rpc_server_t* server);

// One message of the answer to a call that streams; takes what it holds. From any thread, before
// the reply, whose own message is then left out.
void rn_rpc_send(rn_rpc_in_t* call, rn_message_t* message);
// Takes |status| and what |message| holds.
void rn_rpc_reply(rn_rpc_in_t* call, rn_status_t status, rn_message_t* message);

#endif  // RUNNEL_DIST_RPC_SERVER_H_
