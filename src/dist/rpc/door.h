// The door of a port: a connection that has not said yet what it speaks. HTTP/2 is handed on,
// HTTP/1 is answered with a page, anything else is shown out.
//
// Everything is on the loop's thread. Doors are the list of their owner, who closes those that are
// open when it ends.
#ifndef RUNNEL_DIST_RPC_DOOR_H_
#define RUNNEL_DIST_RPC_DOOR_H_

#include "base/log.h"
#include "dist/rpc/http1.h"
#include "dist/rpc/loop.h"
#include "dist/rpc/tls.h"

typedef struct rn_door_t rn_door_t;

typedef struct rn_doors_t {
  rn_loop_t* loop;
  rn_allocator_t allocator;
  rn_tls_t* tls;       // Borrowed; NULL: plain
  int64_t timeout_ns;  // for the whole of a request, and of reading its answer; 0: 5 s
  size_t max;          // doors at a time; 0: 1024
  // A connection that speaks HTTP/2: takes |socket|; |first| was read of it already, |peer| is the
  // name on its certificate.
  void (*http2)(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer);
  // A request of HTTP/1: fills the answer in. NULL: there are no pages.
  void (*page)(void* self, const rn_http1_request_t* request, rn_str_t peer,
               rn_http1_answer_t* out);
  void *self, *page_self;
  // The doors' own.
  rn_door_t* first;
  size_t count;
  rn_door_t* last;
  int64_t refused;  // connections that spoke neither, or nothing in time
  rn_log_limit_t log;
} rn_doors_t;

// Takes |socket|, a connection that was just accepted. |pages_only|: it may not speak HTTP/2. Where
// there are too many, the oldest that has said nothing goes.
void rn_doors_open(rn_doors_t* doors, rn_socket_t* socket, bool pages_only);
// Shows the oldest connection out that has not said what it wants; false if there is none.
bool rn_doors_evict(rn_doors_t* doors);
// Counts a connection that was not taken, and tells the log, of many at once together.
void rn_doors_refused(rn_doors_t* doors, const char* why);
void rn_doors_close(rn_doors_t* doors);  // all of them

#endif  // RUNNEL_DIST_RPC_DOOR_H_
