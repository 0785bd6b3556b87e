// Shared by the files of a connection. Everything here runs under the connection's lock unless
// documented otherwise.
#ifndef RUNNEL_NET_HTTP2_INTERNAL_H_
#define RUNNEL_NET_HTTP2_INTERNAL_H_

#include <nghttp2/nghttp2.h>

#include "net/http2.h"

#define RN_HTTP2_MAX_FRAME (4 << 20)  // as TensorFlow's own peers
#define RN_HTTP2_MAX_MESSAGE ((size_t)INT32_MAX)

// Bytes waiting to be written.
typedef struct rn_http2_segment_t {
  rn_str_t bytes;       // of |buffer|; if that is NULL, |size| bytes of |small|
  rn_buffer_t* buffer;  // Retained
} rn_http2_segment_t;

struct rn_http2_t {
  _Atomic int refs;
  rn_http2_options_t options;
  rn_watch_t watch;
  rn_timer_t timer, stall, sweep;
  rn_loop_job_t job;    // tells the loop's thread that there are events
  rn_socket_t* socket;  // Owned
  char peer[256];
  char peer_address[64];  // for a server; "" if it is not known
  bool is_local;
  rn_caller_t* caller;  // of a server's
  _Atomic int tally;
  _Atomic size_t held;  // bytes of received messages
  rn_mutex_t mutex;     // guards what follows
  nghttp2_session* session;
  rn_http2_stream_t* streams;  // those that are open
  size_t stream_count;
  rn_http2_stream_t* events;  // streams whose owner must be called
  rn_status_t failure;        // Owned: why the connection is over
  bool is_over, is_lost, is_posted, is_drained;
  bool is_reading;             // the loop's thread is receiving, and flushes afterwards
  rn_http2_stream_t* landing;  // the stream whose DATA frame is incomplete
  size_t landing_left;         // bytes of it that are missing
  int64_t heard_ns;            // when something was last received
  int64_t used_ns;             // when a call last began or ended
  int64_t left_ns;             // when the peer was told that the connection closes; 0: it was not
  int64_t moved_ns;            // when the peer last read something; valid if |has_stall|
  bool has_stall;              // the timer for stalls is set
  size_t answered;             // streams whose response is not completely sent
  uint64_t bytes_in, bytes_out;
  bool is_asked;  // a ping is outstanding
  RN_VEC(rn_http2_segment_t) queue;
  size_t queue_first, queue_bytes;
  rn_strbuf_t small;
  size_t small_first;  // bytes of |small| that are already written
};

static inline int64_t rn_http2_now(const rn_http2_t* http2) {
  return rn_loop_now(http2->options.loop);
}

static inline rn_http2_stream_t* rn_http2_stream_of(rn_http2_t* http2, int32_t id) {
  return nghttp2_session_get_stream_user_data(http2->session, id);
}

// http2.c: fails the connection. Takes |status|.
void rn_http2_fail(rn_http2_t* http2, rn_status_t status);
// Flushes, and notifies the loop's thread of events. The loop's thread itself flushes when it has
// nothing else to do, so that it writes in large pieces.
void rn_http2_push(rn_http2_t* http2);

// http2_streams.c
void rn_http2_init_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
void rn_http2_open_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
void rn_http2_close_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
// Queues a call to the stream's owner.
void rn_http2_add_event(rn_http2_t* http2, rn_http2_stream_t* stream);
// Resets the stream with |status|, which it takes.
void rn_http2_refuse(rn_http2_stream_t* stream, rn_status_t status);
// Adds |by| bytes, which may be negative, to those of the stream's messages. Any thread, no lock
// needed.
void rn_http2_hold(rn_http2_stream_t* stream, int64_t by);
// Ends incomplete requests that made no progress for too long.
void rn_http2_end_half_sent(rn_http2_t* http2);
// Whether the received bytes end with a complete message, or have none.
bool rn_http2_is_whole(const rn_http2_stream_t* stream);
// Calls the owners of streams with events: on the loop's thread, without the lock.
void rn_http2_tell(rn_http2_t* http2);

// http2_in.c: nghttp2's callbacks for received frames.
void rn_http2_hear(nghttp2_session_callbacks* callbacks);
// Where the next bytes of the socket belong, if known: at most |*out_size| of them. The stream
// stays alive on the loop's thread, which alone ends streams.
char* rn_http2_landing_place(const rn_http2_t* http2, size_t* out_size);

// http2_out.c: nghttp2's callbacks for frames to send.
void rn_http2_speak(nghttp2_session_callbacks* callbacks, bool is_server);
// Sets the message that the stream sends next. Takes the content of |message|.
void rn_http2_set_message(rn_http2_stream_t* stream, rn_message_t* message);
// The stream's number, or nghttp2's error.
int32_t rn_http2_submit_request(rn_http2_t* http2, rn_http2_stream_t* stream, const char* path,
                                const char* authority, int64_t deadline_ns);
// With a message, the status follows when it is sent; without, at once.
void rn_http2_submit_response(rn_http2_t* http2, rn_http2_stream_t* stream, bool has_message);
// Makes frames and writes as much as the socket takes.
void rn_http2_flush(rn_http2_t* http2);
// Whether data waits for the peer's flow-control window.
bool rn_http2_waits_for_peer(const rn_http2_t* http2);

#endif  // RUNNEL_NET_HTTP2_INTERNAL_H_
