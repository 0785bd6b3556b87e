// The engine of `runnel load`: requests at intended times, over connections that are kept open.
//
// Open loop: requests arrive as a Poisson process, whether or not earlier ones were answered, and a
// latency counts from the intended arrival. So a stalled server shows up in every request that
// should have been sent meanwhile (no coordinated omission). Closed loop: every connection sends
// its next request when the last one was answered.
#ifndef RUNNEL_CLI_LOAD_GEN_H_
#define RUNNEL_CLI_LOAD_GEN_H_

#include "base/vec.h"
#include "cli/latencies.h"
#include "net/message.h"

typedef struct rn_load_t rn_load_t;
typedef struct rn_load_link_t rn_load_link_t;

// A connection. Implementations put this first in a struct of their own.
typedef struct rn_load_link_vtable_t {
  // Sends request |payload|; |arrived_ns| is its intended time. The link has room.
  void (*send)(rn_load_link_t* link, size_t payload, int64_t arrived_ns);
  // The socket is ready; calls rn_load_answered for complete responses. False if the connection has
  // broken.
  bool (*ready)(rn_load_link_t* link, bool can_read, bool can_write);
  void (*destroy)(rn_load_link_t* link);
} rn_load_link_vtable_t;

struct rn_load_link_t {
  const rn_load_link_vtable_t* vtable;
  rn_load_t* load;
  int fd;
  int running, room;  // requests under way, and the most of them
  bool wants_write;
};

typedef struct rn_load_options_t {
  rn_allocator_t allocator;
  const char* address;  // "host:port" or "unix:path"
  bool is_grpc;
  const char* path;          // "/v1/models/m:predict" or "/service/Method"
  const char* token;         // NULL: none
  const char* type;          // Content-Type of HTTP/1 requests
  const char* headers;       // further header lines of HTTP/1 requests, each with "\r\n"; ""
  const rn_str_t* payloads;  // bodies, sent in turn
  size_t payload_count;
  double rate;      // requests per second; 0: closed loop
  bool is_uniform;  // equal distances instead of a Poisson process
  uint64_t seed;
  int connections;
  int streams;          // of gRPC, per connection
  int64_t duration_ns;  // of the measurement
  int64_t warmup_ns;    // before it, not counted
  int64_t deadline_ns;  // per request; a later answer counts as late. 0: none
  void (*progress)(void* self, const rn_load_t* load);  // about once per second; NULL: none
  void* self;
} rn_load_options_t;

// What was measured.
typedef struct rn_load_result_t {
  rn_latencies_t latency;  // of answered requests, from the intended time
  rn_latencies_t service;  // likewise, from the moment of sending
  uint64_t sent, answered, late;
  uint64_t ok;          // HTTP 200, or gRPC OK
  uint64_t codes[600];  // by HTTP status, or gRPC code
  uint64_t broken;      // connections that ended, with their requests
  uint64_t unsent;      // requests whose time had come, but for which no connection was free
  double seconds;
} rn_load_result_t;

struct rn_load_t {
  const rn_load_options_t* options;
  rn_load_result_t* result;
  int64_t begun_ns, measured_ns, end_ns;
  int epoll;
  RN_VEC(rn_load_link_t*) links;
  RN_VEC(int64_t) waiting;  // intended times without a free link: a queue from |waiting_first| on
  size_t waiting_first, next_payload, next_link;
  int64_t next_ns;  // when the next request arrives
  uint64_t random;
};

// Runs the whole measurement on the calling thread. UNAVAILABLE if no connection can be made.
RN_MUST_USE rn_status_t rn_load_run(const rn_load_options_t* options, rn_load_result_t* out);

// For links: a response with |code| to the request that arrived at |arrived_ns| and was sent at
// |sent_ns|.
void rn_load_answered(rn_load_link_t* link, int64_t arrived_ns, int64_t sent_ns, int code);
int64_t rn_load_now(void);
// Connects, without blocking afterwards.
RN_MUST_USE rn_status_t rn_load_connect(const char* address, int* out_fd);
RN_MUST_USE rn_status_t rn_load_http_create(rn_load_t* load, rn_load_link_t** out);
RN_MUST_USE rn_status_t rn_load_grpc_create(rn_load_t* load, rn_load_link_t** out);

#endif  // RUNNEL_CLI_LOAD_GEN_H_
