// A gRPC client: calls to one address, over a connection that is made on demand and remade when it
// breaks.
#ifndef RUNNEL_NET_CHANNEL_H_
#define RUNNEL_NET_CHANNEL_H_

#include "net/http2.h"
#include "net/tls.h"

typedef struct rn_channel_t rn_channel_t;

// A call, embedded in the caller's own struct, zeroed, which must stay in place until |done|. The
// caller sets the first fields.
typedef struct rn_rpc_out_t {
  const char* path;
  int64_t deadline_ns;   // of the environment's clock; INT64_MAX: none
  bool waits_for_ready;  // waits until the peer can be reached instead of failing
  rn_align_fn_t align;   // of the response
  rn_message_t request;  // taken
  // Called once, without locks held, on the loop's thread. The response is |call->stream.message|;
  // |done| owns |status| and calls rn_rpc_out_clear.
  void (*done)(struct rn_rpc_out_t* call, rn_status_t status);
  // For the channel only.
  rn_http2_stream_t stream;
  rn_channel_t* channel;
  struct rn_rpc_out_t *previous, *next;
  rn_timer_t timer;
  bool is_active, is_waiting, has_waited, is_sent, is_cancelled, is_late;
} rn_rpc_out_t;

typedef struct rn_channel_options_t {
  rn_loop_t* loop;
  rn_allocator_t allocator;
  const char* address;   // copied
  int64_t keepalive_ns;  // see rn_http2_options_t
  int64_t connect_ns;    // how long one attempt may take; 0: 20 s
  rn_tls_t* tls;         // Retained; NULL: plain
  rn_tokens_t* tokens;   // whose own one is sent with every call; Retained; NULL: none
  const char*
      peer;  // with TLS: the task that the certificate must name; NULL: the host of the address
} rn_channel_options_t;

// Statistics of a channel.
typedef struct rn_channel_stats_t {
  bool is_connected;
  size_t calls;                  // running
  int64_t connects;              // connections made
  int64_t silent_ns;             // since something was received, while connected
  size_t queued;                 // bytes waiting to be written
  uint64_t bytes_in, bytes_out;  // of all connections so far
} rn_channel_stats_t;

RN_MUST_USE rn_status_t rn_channel_create(const rn_channel_options_t* options, rn_channel_t** out);
// Fails running calls and waits for them. Not on the loop's thread. NULL is fine.
void rn_channel_destroy(rn_channel_t* channel);

rn_channel_stats_t rn_channel_stats(rn_channel_t* channel);

// Memory for received messages; see loop.h.
rn_allocator_t rn_channel_landing(const rn_channel_t* channel);

// Any thread may call it.
void rn_rpc_start(rn_channel_t* channel, rn_rpc_out_t* call);
// Ends the call with CANCELLED soon, or as soon as it is started; harmless after its end, as long
// as its record exists. Any thread may call it.
void rn_rpc_cancel(rn_channel_t* channel, rn_rpc_out_t* call);
void rn_rpc_out_clear(rn_rpc_out_t* call);

// Whether calls are under way, except those that wait for ready: they may wait for ever.
bool rn_channel_is_busy(rn_channel_t* channel);
// When something was last received over the current connection; 0: never.
int64_t rn_channel_heard_ns(rn_channel_t* channel);
// Closes the connection, and ends every call that was sent, with |status|, which it takes.
void rn_channel_drop(rn_channel_t* channel, rn_status_t status);

#endif  // RUNNEL_NET_CHANNEL_H_
