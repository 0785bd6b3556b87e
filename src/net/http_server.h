// An HTTP/1.1 server on ports of its own or behind a door: connections that stay open, requests
// with bodies, answers from any thread.
//
// Requests of one connection are answered in order. A connection that sends garbage, or a request
// beyond the limits, gets an answer that says so, and is closed. Nothing here blocks.
#ifndef RUNNEL_NET_HTTP_SERVER_H_
#define RUNNEL_NET_HTTP_SERVER_H_

#include "framework/cancel.h"
#include "net/http1.h"
#include "net/loop.h"
#include "net/message.h"
#include "net/tls.h"

typedef struct rn_http_server_t rn_http_server_t;

// A received request. It ends with rn_http_reply, once, from any thread.
typedef struct rn_http_in_t {
  rn_str_t method, path, query;     // not decoded: "GET", "/v1/models/a%20b", "x=1"
  const rn_http_header_t* headers;  // names in lower case
  int header_count;
  rn_str_t body;             // decoded if it came in chunks or compressed with gzip
  rn_buffer_t* body_buffer;  // Borrowed: holds |body|, so that tensors can share it
  int64_t begun_ns;          // when its last byte was received
  rn_cancel_t cancel;        // cancelled when the client is gone
  rn_str_t peer;             // the name on the client's certificate, "": none
  bool is_local;             // the client is on this machine: loopback or a UNIX socket
  void* owner;               // for the handler
} rn_http_in_t;

// The value of a header, by its name in lower case; "" if it is missing.
rn_str_t rn_http_header(const rn_http_in_t* request, const char* name);

typedef struct rn_http_out_t {
  int code;                         // 200
  const char* type;                 // Content-Type; NULL: application/json, if there is a body
  const rn_http_header_t* headers;  // further ones; borrowed for the call
  int header_count;
  rn_message_t body;  // taken; its allocator must be set
  bool closes;        // the connection ends after it
} rn_http_out_t;

typedef struct rn_http_server_options_t {
  rn_loop_t* loop;
  // Connections are spread over these, which must outlive the server; NULL: only |loop|, which
  // otherwise must be the first.
  rn_loop_t* const* loops;
  size_t loop_count;
  rn_allocator_t allocator;
  const char*
      address;  // "host:port", "unix:path"; NULL: connections come through rn_http_server_adopt
  // Runs on the loop's thread when a request is complete: must hand long work to other threads.
  void (*handle)(void* self, rn_http_in_t* request);
  void* self;
  // The offset in the body of bytes that should be aligned, such as those of tensors; NULL: 0.
  size_t (*align)(const rn_http1_request_t* request);
  rn_tls_t* tls;    // Borrowed; NULL: plain
  size_t max_head;  // bytes of request line and headers; 0: 32 KiB
  size_t max_body;  // 0: 2 GiB - 1
  size_t max_all;   // bytes of all requests in memory; 0: any
  size_t
      max_connections;  // 0: any that descriptors allow. Beyond it the longest idle one is closed
  int64_t idle_ns;      // how long a connection may be idle; 0: 75 s
  int64_t half_ns;      // how long an incomplete request may make no progress; 0: 30 s
} rn_http_server_options_t;

RN_MUST_USE rn_status_t rn_http_server_create(const rn_http_server_options_t* options,
                                              rn_http_server_t** out);
int rn_http_server_port(const rn_http_server_t* server);
// Takes a connection that another port accepted, of which |first| has been read. On the thread of
// one of its loops.
void rn_http_server_adopt(rn_http_server_t* server, rn_socket_t* socket, rn_str_t first,
                          rn_str_t peer);
// Closes the connection of the first loop, on whose thread it must be called, that has been without
// a whole request for the longest; false if there is none. For ports without free descriptors.
bool rn_http_server_evict(rn_http_server_t* server);
// Accepts no more connections, and closes each after its current request. Any thread.
void rn_http_server_drain(rn_http_server_t* server);
// Closes every connection, and waits until every request has been replied to. Not on the loop's
// thread. NULL is fine.
void rn_http_server_destroy(rn_http_server_t* server);

// Answers |request|, which must not be used afterwards.
void rn_http_reply(rn_http_in_t* request, rn_http_out_t* out);

typedef struct rn_http_server_stats_t {
  size_t connections, requests;  // open ones; requests without a complete answer
  uint64_t bytes_in, bytes_out;
  int64_t refused;
} rn_http_server_stats_t;
rn_http_server_stats_t rn_http_server_stats(rn_http_server_t* server);

#endif  // RUNNEL_NET_HTTP_SERVER_H_
