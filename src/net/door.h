// The door of a port: a connection whose protocol is not known yet. HTTP/2 is handed on; HTTP/1 is
// handed on, too, or answered with a page; anything else is refused.
//
// Everything runs on the loop's thread. The owner of a list of doors closes those that are open
// when it ends.
#ifndef RUNNEL_NET_DOOR_H_
#define RUNNEL_NET_DOOR_H_

#include "base/log.h"
#include "net/http1.h"
#include "net/loop.h"
#include "net/tls.h"

typedef struct rn_door_t rn_door_t;

typedef struct rn_doors_t {
  rn_loop_t* loop;
  rn_allocator_t allocator;
  rn_tls_t* tls;  // Borrowed; NULL: plain
  size_t max;     // the most doors at a time; 0: 1024
  // Called for HTTP/2: takes |socket|, of which |first| has been read; |peer| is the name on its
  // certificate. NULL: it is like anything else.
  void (*http2)(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer);
  // The same for everything else. NULL: |page| answers it.
  void (*http1)(void* self, rn_socket_t* socket, rn_str_t first, rn_str_t peer);
  // Called for an HTTP/1 request: fills in the response. NULL: there are no pages.
  void (*page)(void* self, const rn_http1_request_t* request, rn_socket_t* from,
               rn_http1_answer_t* out);
  void *self, *http1_self, *page_self;
  // For door.c only.
  rn_door_t* first;
  _Atomic size_t count;  // any thread may read it, and |refused|
  rn_door_t* last;
  _Atomic int64_t refused;  // connections that sent neither protocol, or nothing in time
  rn_log_limit_t log;
} rn_doors_t;

// Takes |socket|, a connection that was just accepted. |pages_only|: HTTP/2 is refused. If there
// are too many doors, closes the oldest one whose peer has sent nothing.
void rn_doors_open(rn_doors_t* doors, rn_socket_t* socket, bool pages_only);
// Closes the oldest connection without a complete request; false if there is none.
bool rn_doors_evict(rn_doors_t* doors);
// Counts a refused connection and logs it, at most once per ten seconds.
void rn_doors_refused(rn_doors_t* doors, const char* why);
void rn_doors_close(rn_doors_t* doors);  // all of them

#endif  // RUNNEL_NET_DOOR_H_
