// Shared by the files of an HTTP server.
#ifndef RUNNEL_NET_HTTP_INTERNAL_H_
#define RUNNEL_NET_HTTP_INTERNAL_H_

#include "net/door.h"
#include "net/http_body.h"
#include "net/http_server.h"
#include "net/lanes.h"

typedef struct rn_http_connection_t rn_http_connection_t;

// The connections of one loop. Of the loop's thread, but for what says otherwise.
typedef struct rn_http_lane_t {
  rn_lane_t base;
  rn_http_server_t* server;
  rn_http_connection_t *first, *last;  // the last is the one that was used the longest ago
  size_t count;
  rn_doors_t doors;  // with TLS: connections during their handshake
  rn_timer_t sweep;
} rn_http_lane_t;

struct rn_http_server_t {
  rn_http_server_options_t options;
  rn_http_budget_t budget;
  rn_lanes_t group;  // without a listener if connections are adopted
  rn_http_lane_t* lanes;
  size_t lane_count;
  _Atomic size_t requests;
  _Atomic uint64_t bytes_in, bytes_out;
  _Atomic int64_t refused;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  size_t connections;  // that exist, also those that are over but have a request
};

// A request: one block with its headers and the bytes of its head.
typedef struct rn_http_request_t {
  rn_http_in_t in;
  rn_http_connection_t* connection;  // Retained
  _Atomic int holds;                 // references of the connection and the handler
  rn_http_body_t body;
  size_t block_size;
  bool is_head, is_old, keeps_open;  // |is_old|: HTTP/1.0
  rn_http_header_t headers[];
} rn_http_request_t;

struct rn_http_connection_t {
  _Atomic int refs;  // of the lane, the requests and the job
  rn_http_lane_t* lane;
  char peer[256];
  bool is_local;
  rn_loop_job_t job;  // continues on the loop's thread
  // Of the loop's thread.
  rn_http_connection_t *previous, *next;
  bool is_listed;
  enum { RN_HTTP_HEAD, RN_HTTP_BODY, RN_HTTP_UNPACKS, RN_HTTP_WAITS, RN_HTTP_ENDS } state;
  rn_strbuf_t input;            // received and not used yet
  size_t searched, considered;  // bytes of |input| without the end of a head; when last parsed
  rn_http_request_t* incoming;  // Owned: its body is being received
  int64_t since_ns;             // when it was last used, or its request last made progress
  size_t progress;              // bytes of the body since then
  bool is_half;                 // a head has begun
  bool is_ended;                // the client sends no more
  bool lingers;                 // after the last response, what the client sends is dropped
  bool is_finished;             // that response was sent, and our end of the stream is closed
  rn_mutex_t mutex;             // guards what follows
  rn_watch_t watch;             // |wants_write| and |is_deaf|
  rn_socket_t* socket;          // Owned; NULL once the connection is over
  rn_http_request_t* request;   // that is being handled
  bool is_reading;              // the loop's thread uses input, and flushes afterwards
  bool has_input, is_posted;
  bool closes, has_failed;  // after the response; the socket
  bool is_blocked;          // the client does not read; counts as a request
  int64_t moved_ns;         // when the client last took something
  rn_strbuf_t text;         // to be written: heads and short bodies, then |body|
  size_t text_first;
  rn_message_t body;
  size_t piece, offset;  // the next of |body|
  int64_t date_s;        // the time of |date|
  char date[64];
};

// http_request.c. |bytes| are what |head| was parsed from; they are copied. The caller has the only
// reference.
RN_MUST_USE rn_status_t rn_http_request_create(rn_http_connection_t* connection,
                                               const rn_http1_request_t* head, const char* bytes,
                                               rn_http_request_t** out);
void rn_http_request_release(rn_http_request_t* request);  // drops a reference

// http_reply.c. Under the connection's lock: writes as much as the socket takes.
void rn_http_flush(rn_http_connection_t* connection);
bool rn_http_has_output(const rn_http_connection_t* connection);
// Whether the next request may be handled: none is, and the responses are not too long.
bool rn_http_is_free(const rn_http_connection_t* connection);
// Adds a response that refuses a request, after which the connection closes.
void rn_http_refuse(rn_http_connection_t* connection, int code, const char* why);
// http_connection.c.
void rn_http_connection_retain(rn_http_connection_t* connection);
void rn_http_connection_release(rn_http_connection_t* connection);

// On the loop's thread. Takes |socket|.
void rn_http_connection_open(rn_http_lane_t* lane, rn_socket_t* socket, rn_str_t first,
                             rn_str_t peer);
void rn_http_connection_close(rn_http_connection_t* connection);
// Closes the connection of |lane| that was used the longest ago and has no complete request; false
// if there is none.
bool rn_http_evict(rn_http_lane_t* lane);
// Ends connections that are idle, or whose client makes no progress.
void rn_http_sweep(rn_http_lane_t* lane);
// Closes idle connections; the others after their request.
void rn_http_drain_lane(rn_http_lane_t* lane);

#endif  // RUNNEL_NET_HTTP_INTERNAL_H_
