// A listener: a port whose connections are accepted on a loop's thread, and spread over several.
//
// It accepts several per turn, and survives a shortage of descriptors: its owner is asked to close
// a connection, a reserve serves one more, and then it rests for a moment.
#ifndef RUNNEL_NET_LISTENER_H_
#define RUNNEL_NET_LISTENER_H_

#include "net/loop.h"

typedef struct rn_listener_t rn_listener_t;

// How quickly an owner has made room for another descriptor.
typedef enum rn_listener_room_t {
  RN_LISTENER_ROOM_NONE,
  RN_LISTENER_ROOM_SOON,
  RN_LISTENER_ROOM_NOW
} rn_listener_room_t;

typedef struct rn_listener_options_t {
  rn_loop_t* const* loops;  // Borrowed; the first one accepts
  size_t loop_count;
  rn_allocator_t allocator;
  const char* address;  // "host:port", "unix:path"; port 0 is any
  // Called on the thread of |loops[i]|. Takes |socket|; |is_last|: it took the reserve, as no other
  // descriptor was left.
  void (*accepted)(void* self, size_t i, rn_socket_t* socket, bool is_last);
  rn_listener_room_t (*make_room)(void* self);
  void* self;
} rn_listener_options_t;

// Opens the port. rn_listener_start makes it accept; rn_listener_stop ends that for good. Both are
// called on the first loop's thread.
RN_MUST_USE rn_status_t rn_listener_create(const rn_listener_options_t* options,
                                           rn_listener_t** out);
RN_MUST_USE rn_status_t rn_listener_start(rn_listener_t* listener);
void rn_listener_stop(rn_listener_t* listener);
// Waits for connections on their way to other loops. After rn_listener_stop, and not on a loop's
// thread. NULL is fine.
void rn_listener_destroy(rn_listener_t* listener);

int rn_listener_port(const rn_listener_t* listener);  // 0 for a Unix socket

#endif  // RUNNEL_NET_LISTENER_H_
