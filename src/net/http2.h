// An HTTP/2 connection that carries gRPC calls, at either end. nghttp2 implements the protocol. Any
// thread sends; the loop's thread receives.
//
// A stream is one call: a request, a response, then a status. Owners embed it in their own structs
// and are called back through a vtable, on the loop's thread with no locks held. In a streaming
// call, any number of messages go both ways before the status.
#ifndef RUNNEL_NET_HTTP2_H_
#define RUNNEL_NET_HTTP2_H_

#include "net/caller.h"
#include "net/loop.h"
#include "net/message.h"
#include "net/token.h"

typedef struct rn_http2_t rn_http2_t;
typedef struct rn_http2_stream_t rn_http2_stream_t;

// The offset in a message of the bytes that must be aligned, from its first bytes (up to
// RN_HTTP2_HEAD); 0 if none must be.
#define RN_HTTP2_HEAD 240
typedef size_t (*rn_align_fn_t)(rn_str_t head, size_t size);

struct rn_http2_stream_t {
  rn_http2_t* http2;  // Borrowed while the stream is open
  int32_t id;
  int out_status;  // of a response, in its trailers; -1: this is a request
  // Received. |path| and |deadline_ns| for a request; |status| for a response.
  rn_strbuf_t path;
  int64_t deadline_ns;  // of the environment's clock; INT64_MAX: none
  rn_strbuf_t headers;  // of a request, if the connection keeps them: name NUL value NUL ...
  int http_status;
  int grpc_status;       // -1: none received
  rn_strbuf_t details;   // grpc-message, still escaped
  rn_message_t message;  // received
  rn_align_fn_t align;
  // For the connection only.
  rn_http2_stream_t *previous, *next;  // open streams
  rn_http2_stream_t* next_event;
  uint32_t roles;  // of a request: what its token grants; all if none is required
  uint32_t reset_code;
  bool is_listed, is_complete, is_closed, has_event, is_answered;
  bool is_whole;                   // of a request: all of it was received
  bool may_pack, is_packed;        // of a request: its messages may be compressed; this one is
  bool is_streaming, is_told;      // messages are delivered one by one, from |inbox|
  bool has_response, is_finished;  // of our own stream: the response has begun; its status is known
  uint8_t prefix[5];               // of the message: compressed or not, size
  uint8_t out_prefix[5];           // likewise, of the one that is sent
  int64_t heard_ns;                // when something of it was last received
  RN_VEC(rn_message_t) inbox, outbox;
  size_t out_first;     // of |outbox|: those before it are sent
  rn_status_t failure;  // Owned: why it failed
  char head[RN_HTTP2_HEAD];
  size_t prefix_size, head_size, received, expected;
  size_t held;  // bytes of |message| that count against the limits
  rn_message_t out;
  size_t out_prefix_left, out_piece, out_offset;
  // Of a response, its further trailers: name NUL value NUL ... Its owner adds them before.
  rn_strbuf_t out_trailers;
};

// The most trailers of an owner; further ones are dropped.
#define RN_HTTP2_MAX_TRAILERS 8

typedef struct rn_http2_events_t {
  // A request begins: returns a zeroed stream for it; NULL refuses it. Servers only. Called under
  // the connection's lock, so it must not call the connection.
  rn_http2_stream_t* (*open)(void* owner);
  // A request was received; of a streaming call, its headers. Servers only.
  void (*request)(rn_http2_stream_t* stream);
  // Whether a call of |path| streams, and the handler of each of its messages, which takes them;
  // NULL: the client will send no more. Servers only; |streams| is called under the connection's
  // lock, and may be NULL.
  bool (*streams)(void* owner, rn_str_t path);
  void (*message)(rn_http2_stream_t* stream, rn_message_t* message);
  // The stream has ended; the function owns |status|, which says why (for a client, the call's
  // result). The connection does not use the stream afterwards.
  void (*closed)(rn_http2_stream_t* stream, rn_status_t status);
  // The connection has ended, after the last of its streams. The owner releases it.
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
  int64_t keepalive_ns;  // pings a peer that is silent for this long while calls are open; after
                         // twice that it is dead. 0: never
  int64_t stall_ns;      // how long a peer may leave pending data unread; 0: for ever
  uint32_t max_streams;  // that the peer may have open; 0: 65536
  size_t max_held;       // the most bytes of the peer's messages in memory; 0: any
  // The same for all connections of a server: their sum, which must outlive the calls, and its
  // limit. NULL: no limit.
  _Atomic size_t* all_held;
  size_t max_all_held;
  int64_t half_ns;  // how long an incomplete request may make no progress; 0: for ever
  // How long an idle connection stays open; 0: for ever. The peer is told before, so that it can
  // make its next calls elsewhere. While the owner's tally is not 0, the peer is just pinged.
  int64_t idle_ns;
  // For a server, the tokens that requests must have; for a client, those whose own one it sends.
  // NULL: none. Borrowed.
  rn_tokens_t* tokens;
  bool keeps_headers;  // of requests, for the owner
  rn_str_t first;      // bytes that were already read from the socket; borrowed for the call
  rn_str_t peer;       // the name on the peer's certificate, "": none; copied
} rn_http2_options_t;

// Statistics of a connection.
typedef struct rn_http2_stats_t {
  bool is_over;         // it was closed, or has failed; |lost| follows
  size_t streams;       // open ones
  size_t queued, held;  // bytes waiting to be written; of received messages in use
  uint64_t bytes_in, bytes_out;
  int64_t heard_ns;  // when something was last received, of the environment's clock
  int64_t used_ns;   // when it last had a call, likewise
} rn_http2_stats_t;

// Takes |socket|, also when it fails. On the loop's thread.
RN_MUST_USE rn_status_t rn_http2_create(const rn_http2_options_t* options, rn_socket_t* socket,
                                        rn_http2_t** out);
void rn_http2_retain(rn_http2_t* http2);
void rn_http2_release(rn_http2_t* http2);  // NULL is fine
// The caller at the other end of a server's connection; NULL for a client.
rn_caller_t* rn_http2_caller(const rn_http2_t* http2);

// Any thread may call it.
rn_http2_stats_t rn_http2_stats(rn_http2_t* http2);
rn_str_t rn_http2_peer(const rn_http2_t* http2);
rn_str_t rn_http2_peer_address(const rn_http2_t* http2);  // of a server's client: "host:port"
bool rn_http2_is_local(const rn_http2_t* http2);          // whether the peer is on this machine
// A number that the owner keeps with the connection.
_Atomic int* rn_http2_tally(rn_http2_t* http2);

// Closes the connection from any thread; |lost| follows on the loop's. Takes |status|.
void rn_http2_close(rn_http2_t* http2, rn_status_t status);

// Tells the peer of a server's connection to make its next calls elsewhere. Any thread.
void rn_http2_drain(rn_http2_t* http2);

// Starts a call on |stream| (zeroed but for |align|), from any thread. |message| is taken on
// success. Fails if the connection has ended: then the stream is not used.
RN_MUST_USE rn_status_t rn_http2_request(rn_http2_t* http2, rn_http2_stream_t* stream,
                                         const char* path, const char* authority,
                                         int64_t deadline_ns, rn_message_t* message);
// Responds to a request, from any thread: |message| with OK, or an error (taken). Clears |message|.
void rn_http2_respond(rn_http2_stream_t* stream, rn_status_t status, rn_message_t* message);
// Sends one message of a streaming response, from any thread. Takes the content of |message|.
// rn_http2_respond ends the call; its message is then ignored.
void rn_http2_send(rn_http2_stream_t* stream, rn_message_t* message);
// Cancels a call, from any thread while it is open; the other end is told.
void rn_http2_reset(rn_http2_stream_t* stream);
// Frees what a closed stream holds.
void rn_http2_stream_clear(rn_http2_stream_t* stream);

#endif  // RUNNEL_NET_HTTP2_H_
