// What the files of a connection share: the connection itself, and who calls whom. Everything here
// runs under the connection's lock unless it says otherwise.
#ifndef RUNNEL_DIST_RPC_HTTP2_INTERNAL_H_
#define RUNNEL_DIST_RPC_HTTP2_INTERNAL_H_

#include <nghttp2/nghttp2.h>

#include "dist/rpc/http2.h"

#define RN_HTTP2_MAX_FRAME (4 << 20)  // what TensorFlow's own peers ask for
#define RN_HTTP2_MAX_MESSAGE ((size_t)INT32_MAX)

// Bytes that wait to be written.
typedef struct rn_http2_segment_t {
  rn_str_t bytes;       // of |buffer|; if that is NULL, |size| bytes of |small|
  rn_buffer_t* buffer;  // Retained
} rn_http2_segment_t;

struct rn_http2_t {
  _Atomic int refs;
  rn_http2_options_t options;
  rn_watch_t watch;
  rn_timer_t timer, stall, sweep;
  rn_loop_job_t job;    // tells the loop's thread that there is something to say
  rn_socket_t* socket;  // Owned
  char* input;          // Owned; READ_SIZE bytes
  char peer[256];
  rn_caller_t* caller;  // of a server's
  _Atomic int tally;
  _Atomic size_t held;  // bytes of messages that came
  rn_mutex_t mutex;     // guards all that follows
  nghttp2_session* session;
  rn_http2_stream_t* streams;  // those that are open
  size_t stream_count;
  rn_http2_stream_t* events;  // streams that somebody has to be told about
  rn_status_t failure;        // Owned: why the connection is over
  bool is_over, is_lost, is_posted, is_drained;
  bool is_reading;             // the loop's thread takes in what came, and flushes afterwards
  rn_http2_stream_t* landing;  // whose DATA frame has begun and not ended
  size_t landing_left;         // bytes of it that have not come
  int64_t heard_ns;            // when something came last
  int64_t used_ns;             // when a call began or ended last
  int64_t left_ns;             // when the peer was told to take its calls elsewhere; 0: it was not
  int64_t moved_ns;            // when the peer took something last, of use where |has_stall|
  bool has_stall;              // the timer for that is set
  size_t answered;             // streams with a response that has not gone out whole
  uint64_t bytes_in, bytes_out;
  bool is_asked;  // a ping is under way
  RN_VEC(rn_http2_segment_t) queue;
  size_t queue_first, queue_bytes;
  rn_strbuf_t small;
  size_t small_first;  // of |small|, what is written already
};

static inline int64_t rn_http2_now(const rn_http2_t* http2) {
  return rn_loop_now(http2->options.loop);
}

static inline rn_http2_stream_t* rn_http2_stream_of(rn_http2_t* http2, int32_t id) {
  return nghttp2_session_get_stream_user_data(http2->session, id);
}

// http2.c: the connection cannot go on. Takes |status|.
void rn_http2_fail(rn_http2_t* http2, rn_status_t status);
// Flushes, and lets the loop's thread hear of what came of it. The loop's thread itself flushes
// when it has nothing else to do: what it says in one go is written in one go.
void rn_http2_push(rn_http2_t* http2);

// http2_streams.c
void rn_http2_init_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
void rn_http2_open_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
void rn_http2_close_stream(rn_http2_t* http2, rn_http2_stream_t* stream);
// The stream's owner has to be told something.
void rn_http2_add_event(rn_http2_t* http2, rn_http2_stream_t* stream);
// Gives the stream up, for a reason of ours. Takes |status|.
void rn_http2_refuse(rn_http2_stream_t* stream, rn_status_t status);
// Counts |by| bytes more, or fewer, as kept for the stream's messages. Any thread, no lock needed.
void rn_http2_hold(rn_http2_stream_t* stream, int64_t by);
// Ends the requests that have begun and brought nothing for too long.
void rn_http2_end_half_sent(rn_http2_t* http2);
// Whether what came so far ends with a message, or has none.
bool rn_http2_is_whole(const rn_http2_stream_t* stream);
// Tells owners what there is to tell: on the loop's thread, without the lock.
void rn_http2_tell(rn_http2_t* http2);

// http2_in.c: nghttp2 calls back with what comes.
void rn_http2_hear(nghttp2_session_callbacks* callbacks);
// Where the next bytes of the socket belong, if that is known: |*out_size| of them at most. The
// stream stays while this is the loop's thread, which alone ends streams.
char* rn_http2_landing_place(const rn_http2_t* http2, size_t* out_size);

// http2_out.c: nghttp2 calls back for what is to go.
void rn_http2_speak(nghttp2_session_callbacks* callbacks, bool is_server);
// The message that the stream sends next. Takes what |message| holds.
void rn_http2_set_message(rn_http2_stream_t* stream, rn_message_t* message);
// The stream's number, or nghttp2's error.
int32_t rn_http2_submit_request(rn_http2_t* http2, rn_http2_stream_t* stream, const char* path,
                                const char* authority, int64_t deadline_ns);
// With a message, its status follows when all is sent; without, at once.
void rn_http2_submit_response(rn_http2_t* http2, rn_http2_stream_t* stream, bool has_message);
// Makes frames and writes them, as far as the socket goes.
void rn_http2_flush(rn_http2_t* http2);
// Whether something was said that the peer has not made room for.
bool rn_http2_waits_for_peer(const rn_http2_t* http2);

#endif  // RUNNEL_DIST_RPC_HTTP2_INTERNAL_H_
