// Streams of bytes between processes, behind a vtable of the environment.
//
// Every call that waits has a deadline of the environment's clock: RN_FOREVER, or RN_AT_ONCE, which
// does what can be done without waiting. One thread may read a stream while another writes it and a
// third calls shutdown; nothing may overlap with close. A peer that is gone is UNAVAILABLE.
#ifndef RUNNEL_BASE_NET_H_
#define RUNNEL_BASE_NET_H_

#include "base/env.h"

#define RN_FOREVER INT64_MAX
#define RN_AT_ONCE INT64_MIN

// A listener or a stream. Implementations put this first in a struct of their own.
typedef struct rn_socket_t {
  const struct rn_socket_vtable_t* vtable;
} rn_socket_t;

typedef struct rn_socket_vtable_t {
  // For a listener. DEADLINE_EXCEEDED if no client connected.
  rn_status_t (*accept)(rn_socket_t* socket, int64_t deadline_ns, rn_socket_t** out_stream);
  // Waits until the stream is ready, then transfers 1 to |size| bytes; a read returns 0 at the end
  // of the stream. DEADLINE_EXCEEDED if it did not become ready.
  rn_status_t (*read)(rn_socket_t* socket, void* out, size_t size, int64_t deadline_ns,
                      size_t* out_size);
  rn_status_t (*write)(rn_socket_t* socket, const void* data, size_t size, int64_t deadline_ns,
                       size_t* out_size);
  // The same for |count| (> 0) pieces, one after the other.
  rn_status_t (*write_pieces)(rn_socket_t* socket, const rn_str_t* pieces, size_t count,
                              int64_t deadline_ns, size_t* out_size);
  // Ends this direction: the peer reads to the end of the stream. Nothing may be written
  // afterwards.
  void (*finish)(rn_socket_t* socket);
  // Ends both directions and wakes the threads that wait on them; they see the end of the stream or
  // CANCELLED.
  void (*shutdown)(rn_socket_t* socket);
  // Adds "host:port" of this end, or of the other end of a stream.
  rn_status_t (*address)(rn_socket_t* socket, rn_strbuf_t* out);
  rn_status_t (*peer_address)(rn_socket_t* socket, rn_strbuf_t* out);
  // Whether the other end of a stream is on this machine: a loopback address or a Unix socket.
  bool (*is_local)(rn_socket_t* socket);
  void (*close)(rn_socket_t* socket);  // and frees
  // For a stream layered over another; NULL otherwise. |below| is the lower stream, which pollers
  // take; |has_more| is whether a read would return bytes that have already left it.
  rn_socket_t* (*below)(rn_socket_t* socket);
  bool (*has_more)(rn_socket_t* socket);
} rn_socket_vtable_t;

// A set of sockets to wait for, at a cost that does not grow with those that are not ready. Any
// thread may change it, also while another waits; a socket is removed before it is closed.
typedef struct rn_poller_t {
  const struct rn_poller_vtable_t* vtable;
} rn_poller_t;

// A socket of a poller that is ready; of a listener, reading means accepting.
typedef struct rn_polled_t {
  void* tag;                 // as it was added
  bool can_read, can_write;  // both if the stream has failed, whatever was asked
} rn_polled_t;

typedef struct rn_poller_vtable_t {
  rn_status_t (*add)(rn_poller_t* poller, rn_socket_t* socket, bool reads, bool writes, void* tag);
  void (*change)(rn_poller_t* poller, rn_socket_t* socket, bool reads, bool writes, void* tag);
  void (*remove)(rn_poller_t* poller, rn_socket_t* socket);
  // Waits until some sockets are ready or the deadline has passed, which is no error. A socket that
  // stays ready is reported every time.
  rn_status_t (*wait)(rn_poller_t* poller, rn_polled_t* out, size_t room, int64_t deadline_ns,
                      size_t* out_count);
  void (*close)(rn_poller_t* poller);  // and frees
} rn_poller_vtable_t;

struct rn_net_t {
  // |address| is "host:port", "[v6]:port" or "unix:path". Port 0 is any that is free. A
  // listener replaces a Unix socket that is at its path: one that a killed process left there, or
  // that of a process which is about to be replaced.
  rn_status_t (*listen)(void* self, const char* address, rn_allocator_t allocator,
                        rn_socket_t** out_listener);
  rn_status_t (*connect)(void* self, const char* address, int64_t deadline_ns,
                         rn_allocator_t allocator, rn_socket_t** out_stream);
  // Two ends of one stream: to wake a thread that polls, or to talk to a child.
  rn_status_t (*pair)(void* self, rn_allocator_t allocator, rn_socket_t** out_a,
                      rn_socket_t** out_b);
  rn_status_t (*poller)(void* self, rn_allocator_t allocator, rn_poller_t** out);
};

extern const rn_net_t rn_net_system;  // TCP and Unix sockets of the operating system

// For what a stream alone cannot do with sockets of rn_net_system: passing descriptors, polling a
// pipe or a process. The descriptor stays the socket's.
int rn_net_descriptor(const rn_socket_t* socket);  // -1 for a socket of another network
// Makes a socket of |fd|, any descriptor that can be polled; reading and writing it need one of a
// stream. Makes it non-blocking. Takes |fd|, also on failure. |name| is for messages.
RN_MUST_USE rn_status_t rn_net_adopt(int fd, const char* name, rn_allocator_t allocator,
                                     rn_socket_t** out);

// All of |size| bytes. A stream that ends before is UNAVAILABLE.
RN_MUST_USE rn_status_t rn_net_read_all(rn_socket_t* socket, void* out, size_t size,
                                        int64_t deadline_ns);
RN_MUST_USE rn_status_t rn_net_write_all(rn_socket_t* socket, rn_str_t data, int64_t deadline_ns);

#endif  // RUNNEL_BASE_NET_H_
