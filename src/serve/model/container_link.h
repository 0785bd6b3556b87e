// The connection to a container: frames in, frames and descriptors out.
//
// Reading happens on the loop's thread. Writing happens on any thread, under the owner's lock.
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_LINK_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_LINK_H_

#include "base/vec.h"
#include "net/loop.h"
#include "serve/model/container_wire.h"

typedef struct rn_container_link_t rn_container_link_t;

typedef struct rn_container_link_events_t {
  // A frame. An error ends the link, through |broken|.
  rn_status_t (*frame)(void* self, const rn_container_frame_t* frame);
  // Whether a frame whose payload has not arrived yet will be taken: otherwise no memory is spent
  // on it, and the link ends.
  bool (*expects)(void* self, const rn_container_frame_t* frame);
  // The stream has ended or failed: once. Owns |status|. Closes the link.
  void (*broken)(void* self, rn_status_t status);
  rn_mutex_t* mutex;  // Borrowed: the owner's lock
  void* self;
} rn_container_link_events_t;

// A descriptor that travels with the byte at |at| of the output.
typedef struct rn_container_passed_t {
  size_t at;
  int fd;
} rn_container_passed_t;

struct rn_container_link_t {
  rn_allocator_t allocator;
  rn_loop_t* loop;
  rn_container_link_events_t events;
  rn_watch_t watch;  // |socket| NULL: closed
  rn_strbuf_t in;    // of the loop's thread
  // Under the owner's lock.
  rn_strbuf_t out;
  size_t sent;  // bytes of |out|
  RN_VEC(rn_container_passed_t) passed;
  bool is_broken;  // a write has failed; the loop will notice
};

// On the loop's thread. Takes |socket|, also on failure; |*link| must be zeroed or closed.
RN_MUST_USE rn_status_t rn_container_link_open(rn_container_link_t* link, rn_loop_t* loop,
                                               rn_socket_t* socket,
                                               const rn_container_link_events_t* events,
                                               rn_allocator_t allocator);
// On the loop's thread, under the lock. Fine for a closed link.
void rn_container_link_close(rn_container_link_t* link);
static inline bool rn_container_link_is_open(const rn_container_link_t* link) {
  return link->watch.socket && !link->is_broken;
}
// Whether descriptors can be passed.
bool rn_container_link_can_pass(const rn_container_link_t* link);

// Under the lock. Sends what was appended to |link->out|, as far as that is possible now; the loop
// sends the rest.
void rn_container_link_flush(rn_container_link_t* link);
// Lets |fd| travel with the next byte that is appended to |link->out|. Takes |fd|, also on failure.
RN_MUST_USE rn_status_t rn_container_link_pass(rn_container_link_t* link, int fd);
// On the loop's thread. Handles what has arrived.
void rn_container_link_read(rn_container_link_t* link);

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_LINK_H_
