// One HTTP/2 connection that carries gRPC calls, at either end. nghttp2 knows the protocol; what it
// says goes out from the thread that said it, what comes in is read on the loop's thread.
//
// A stream is one call: a request, a response, then a status. Owners embed it in their own records
// and are told about it through a table. The tables' functions run on the loop's thread with no
// locks held. Of a call that streams, any number of messages go both ways before the status.
#ifndef RUNNEL_DIST_RPC_HTTP2_H_
#define RUNNEL_DIST_RPC_HTTP2_H_

#include "dist/caller.h"
#include "dist/rpc/loop.h"
#include "dist/rpc/message.h"

typedef struct rn_http2_t rn_http2_t;
typedef struct rn_http2_stream_t rn_http2_stream_t;

// Where in a message the bytes begin that must be aligned, by its first bytes (up to
// RN_HTTP2_HEAD); 0 where it does not matter.
#define RN_HTTP2_HEAD 256
typedef size_t (*rn_align_fn_t)(rn_str_t head, size_t size);

struct rn_http2_stream_t {
  rn_http2_t* http2;  // Borrowed while the stream is open
  int32_t id;
  // What came. |path| and |deadline_ns| of a request; |status| of a response.
  rn_strbuf_t path;
  int64_t deadline_ns;  // of the environment's clock; INT64_MAX: none
  int http_status;
  int grpc_status;       // -1: none came
  rn_strbuf_t details;   // grpc-message, as it came
  rn_message_t message;  // of the other end
  rn_align_fn_t align;
  // The connection's own.
  rn_http2_stream_t *previous, *next;  // open streams
  rn_http2_stream_t* next_event;
  bool is_listed, is_complete, is_closed, has_event, is_answered;
  bool is_trusted;                 // of a request: it has the server's token, or none is wanted
  bool is_whole;                   // of a request: all of it has come
  int64_t heard_ns;                // when something of it came last
  bool is_streaming, is_told;      // messages are told of one by one, in |inbox| till then
  bool has_response, is_finished;  // of a stream of ours: it has begun; its status is known
  RN_VEC(rn_message_t) inbox, outbox;
  size_t out_first;  // of |outbox|: what comes before is sent
  uint32_t reset_code;
  rn_status_t failure;  // Owned: why it cannot go on
  char head[RN_HTTP2_HEAD];
  uint8_t prefix[5];  // compressed or not, size
  size_t prefix_size, head_size, received, expected;
  size_t held;  // of |message|, as the connection counts it
  rn_message_t out;
  uint8_t out_prefix[5];
  size_t out_prefix_left, out_piece, out_offset;
  int out_status;  // of a response, in its trailers; -1: this is a request
  rn_strbuf_t out_details;
};

typedef struct rn_http2_events_t {
  // A request begins: a stream to keep it in, zeroed; NULL: no more can be taken. Servers only.
  // Called under the connection's lock: it must not call the connection.
  rn_http2_stream_t* (*open)(void* owner);
  // A request has come whole; of a call that streams, its headers. Servers only.
  void (*request)(rn_http2_stream_t* stream);
  // Whether a request for |path| streams, and what is done with each of its messages (taken by the
  // callee); NULL: the client will send no more. Servers only; |streams| is called under the
  // connection's lock. NULL: none does.
  bool (*streams)(void* owner, rn_str_t path);
  void (*message)(rn_http2_stream_t* stream, rn_message_t* message);
  // The stream is over; |status| says why (owned by the callee): of a client, the call's result.
  // Nothing of the connection touches the stream afterwards.
  void (*closed)(rn_http2_stream_t* stream, rn_status_t status);
  // The connection is over, after the last of its streams. The owner releases it.
  void (*lost)(void* owner, rn_http2_t* http2, rn_status_t status);
} rn_http2_events_t;

typedef struct rn_http2_options_t {
  rn_loop_t* loop;
  rn_allocator_t allocator;
  const rn_http2_events_t* events;
  void* owner;
  bool is_server;
  rn_align_fn_t align;   // of requests; NULL: none
  size_t max_message;    // bytes; 0: 2 GiB less one
  int64_t keepalive_ns;  // silence, while calls are open, after which the peer is asked whether it
                         // lives; after twice that it is dead. 0: never
  int64_t stall_ns;      // how long a peer may take nothing of what waits for it; 0: for ever
  uint32_t max_streams;  // that the peer may have open; 0: 65536
  size_t max_held;       // bytes of the peer's messages that are kept at a time; 0: any
  // The same of all connections of a server together: their sum, which outlives what was called,
  // and the most it may be. NULL: any.
  _Atomic size_t* all_held;
  size_t max_all_held;
  int64_t half_ns;  // how long a request that has begun may bring nothing; 0: for ever
  // How long a connection without calls stays; 0: for ever. The peer is told, and has a moment to
  // take its next calls elsewhere. Where the owner's tally is not 0 the peer is only asked whether
  // it lives.
  int64_t idle_ns;
  // Of a server, what requests must have to be trusted; of a client, what they have. "": none.
  // Lent, and ends in a 0.
  rn_str_t token;
  rn_str_t first;  // what was read from the socket already; lent for the call
  rn_str_t peer;   // the name on the peer's certificate, "": none; copied
} rn_http2_options_t;

// How a connection is.
typedef struct rn_http2_stats_t {
  size_t streams;       // open ones
  size_t queued, held;  // bytes: that wait to be written; of messages that came and are in use
  uint64_t bytes_in, bytes_out;
  int64_t heard_ns;  // when something came last, of the environment's clock
  int64_t used_ns;   // when it last had a call, likewise
} rn_http2_stats_t;

// Takes |socket|, also when it fails. On the loop's thread.
RN_MUST_USE rn_status_t rn_http2_create(const rn_http2_options_t* options, rn_socket_t* socket,
                                        rn_http2_t** out);
void rn_http2_retain(rn_http2_t* http2);
void rn_http2_release(rn_http2_t* http2);  // NULL is fine
// Who is at the other end of a server's connection; NULL at the client's.
rn_caller_t* rn_http2_caller(const rn_http2_t* http2);

// From any thread.
rn_http2_stats_t rn_http2_stats(rn_http2_t* http2);
rn_str_t rn_http2_peer(const rn_http2_t* http2);
// A number that the owner keeps with the connection.
_Atomic int* rn_http2_tally(rn_http2_t* http2);

// Ends the connection from any thread; |lost| follows on the loop's. Takes |status|.
void rn_http2_close(rn_http2_t* http2, rn_status_t status);

// Starts a call on |stream| (zeroed but for |align|), from any thread. |message| is taken on
// success. Fails if the connection is over: then nothing more is said about the stream.
RN_MUST_USE rn_status_t rn_http2_request(rn_http2_t* http2, rn_http2_stream_t* stream,
                                         const char* path, const char* authority,
                                         int64_t deadline_ns, rn_message_t* message);
// Answers a request, from any thread: |message| with OK, or an error (taken). Clears |message|.
void rn_http2_respond(rn_http2_stream_t* stream, rn_status_t status, rn_message_t* message);
// Sends one message of the response to a call that streams, from any thread. Takes what |message|
// holds. rn_http2_respond ends the call, its message being left out.
void rn_http2_send(rn_http2_stream_t* stream, rn_message_t* message);
// Gives a call up, from any thread while it is open: the other end is told.
void rn_http2_reset(rn_http2_stream_t* stream);
// Frees what a closed stream holds.
void rn_http2_stream_clear(rn_http2_stream_t* stream);

#endif  // RUNNEL_DIST_RPC_HTTP2_H_
