// TCP and Unix sockets of the operating system. All descriptors are non-blocking; calls that may
// wait do so in poll.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // accept4
#endif
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/net.h"

#define UNIX_PREFIX "unix:"

typedef struct system_socket_t {
  rn_socket_t socket;  // first
  rn_allocator_t allocator;
  int fd;
  _Atomic bool is_shut;
  char* path;      // Owned: of a Unix listener, removed with it
  ino_t inode;     // of |path|
  char name[128];  // the address as it was given, for messages
} system_socket_t;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// How long poll may wait: -1 for ever; rounded up, so that a deadline has passed when it is over.
static int timeout_ms(int64_t deadline_ns) {
  if (deadline_ns == RN_FOREVER) return -1;
  if (deadline_ns == RN_AT_ONCE) return 0;
  int64_t left = deadline_ns - now_ns();
  if (left <= 0) return 0;
  int64_t ms = left / 1000000 + (left % 1000000 != 0);
  return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static rn_status_t error_of(const system_socket_t* socket, int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case ENOTCONN: {
      rn_status_t known = rn_status_of_errno(socket->name, error);
      rn_status_t status = rn_status_make(RN_CODE_UNAVAILABLE, "%s", rn_status_message(known));
      rn_status_free(known);
      return status;
    }
    default:
      return rn_status_of_errno(socket->name, error);
  }
}

static bool is_blocked(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Returns when |fd| is ready for |events|, or has failed, which the next call reports.
static rn_status_t wait_for(system_socket_t* socket, short events, int64_t deadline_ns) {
  for (;;) {
    struct pollfd item = {.fd = socket->fd, .events = events};
    int timeout = timeout_ms(deadline_ns);
    int ready = poll(&item, 1, timeout);
    if (socket->is_shut) return rn_cancelled("%s; the socket was shut down", socket->name);
    if (ready > 0) return RN_OK;
    if (ready < 0 && errno != EINTR) return error_of(socket, errno);
    if (ready == 0 && timeout_ms(deadline_ns) == 0)
      return rn_deadline_exceeded("%s; Timer expired", socket->name);
  }
}

static void system_close(rn_socket_t* base) {
  system_socket_t* socket = (system_socket_t*)base;
  if (socket->fd >= 0) close(socket->fd);
  if (socket->path) {
    // Another process may have taken the path over.
    struct stat found;
    if (lstat(socket->path, &found) == 0 && found.st_ino == socket->inode) unlink(socket->path);
    rn_free(socket->allocator, socket->path, strlen(socket->path) + 1);
  }
  RN_FREE(socket->allocator, socket);
}

static rn_status_t system_read(rn_socket_t* base, void* out, size_t size, int64_t deadline_ns,
                               size_t* out_size) {
  system_socket_t* socket = (system_socket_t*)base;
  *out_size = 0;
  while (size) {
    ssize_t got = recv(socket->fd, out, size, 0);
    if (got >= 0) {
      *out_size = (size_t)got;
      break;
    }
    if (!is_blocked(errno)) return error_of(socket, errno);
    RN_RETURN_IF_ERROR(wait_for(socket, POLLIN, deadline_ns));
  }
  return RN_OK;
}

static rn_status_t system_write(rn_socket_t* base, const void* data, size_t size,
                                int64_t deadline_ns, size_t* out_size) {
  system_socket_t* socket = (system_socket_t*)base;
  *out_size = 0;
  while (size) {
    ssize_t put = send(socket->fd, data, size, MSG_NOSIGNAL);
    if (put >= 0) {
      *out_size = (size_t)put;
      break;
    }
    if (!is_blocked(errno)) return error_of(socket, errno);
    RN_RETURN_IF_ERROR(wait_for(socket, POLLOUT, deadline_ns));
  }
  return RN_OK;
}

#define MAX_PIECES 64

static rn_status_t system_write_pieces(rn_socket_t* base, const rn_str_t* pieces, size_t count,
                                       int64_t deadline_ns, size_t* out_size) {
  system_socket_t* socket = (system_socket_t*)base;
  struct iovec vectors[MAX_PIECES];
  *out_size = 0;
  if (count > MAX_PIECES) count = MAX_PIECES;
  for (size_t i = 0; i < count; ++i)
    vectors[i] = (struct iovec){.iov_base = (char*)pieces[i].data, .iov_len = pieces[i].size};
  struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
  for (;;) {
    ssize_t put = sendmsg(socket->fd, &message, MSG_NOSIGNAL);
    if (put >= 0) {
      *out_size = (size_t)put;
      return RN_OK;
    }
    if (!is_blocked(errno)) return error_of(socket, errno);
    RN_RETURN_IF_ERROR(wait_for(socket, POLLOUT, deadline_ns));
  }
}

static void system_finish(rn_socket_t* base) { shutdown(((system_socket_t*)base)->fd, SHUT_WR); }

static void system_shutdown(rn_socket_t* base) {
  system_socket_t* socket = (system_socket_t*)base;
  socket->is_shut = true;
  shutdown(socket->fd, SHUT_RDWR);
}

static rn_status_t print_address(system_socket_t* socket, bool is_peer, rn_strbuf_t* out) {
  struct sockaddr_storage address = {0};
  socklen_t size = sizeof address;
  int result = is_peer ? getpeername(socket->fd, (struct sockaddr*)&address, &size)
                       : getsockname(socket->fd, (struct sockaddr*)&address, &size);
  if (result != 0) return error_of(socket, errno);
  if (address.ss_family == AF_UNIX) {
    rn_strbuf_printf(out, UNIX_PREFIX "%s", ((struct sockaddr_un*)&address)->sun_path);
    return rn_strbuf_status(out);
  }
  char host[NI_MAXHOST], port[NI_MAXSERV];
  int error = getnameinfo((struct sockaddr*)&address, size, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
  if (error) return rn_internal("%s; %s", socket->name, gai_strerror(error));
  rn_strbuf_printf(out, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
  return rn_strbuf_status(out);
}

static rn_status_t system_address(rn_socket_t* base, rn_strbuf_t* out) {
  return print_address((system_socket_t*)base, false, out);
}

static rn_status_t system_peer_address(rn_socket_t* base, rn_strbuf_t* out) {
  return print_address((system_socket_t*)base, true, out);
}

static bool system_is_local(rn_socket_t* base) {
  struct sockaddr_storage address = {0};
  socklen_t size = sizeof address;
  if (getpeername(((system_socket_t*)base)->fd, (struct sockaddr*)&address, &size) != 0)
    return false;
  if (address.ss_family == AF_UNIX) return true;
  if (address.ss_family == AF_INET)
    return ntohl(((struct sockaddr_in*)&address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  const struct in6_addr* six = &((struct sockaddr_in6*)&address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(six) ||
         (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

static rn_status_t system_accept(rn_socket_t* base, int64_t deadline_ns, rn_socket_t** out_stream);

static const rn_socket_vtable_t system_socket = {
    .accept = system_accept,
    .read = system_read,
    .write = system_write,
    .write_pieces = system_write_pieces,
    .finish = system_finish,
    .shutdown = system_shutdown,
    .address = system_address,
    .peer_address = system_peer_address,
    .is_local = system_is_local,
    .close = system_close,
};

// Takes |fd|, also when it fails.
static rn_status_t wrap(int fd, const char* name, rn_allocator_t allocator, system_socket_t** out) {
  *out = NULL;
  system_socket_t* made = NULL;
  rn_status_t status = fd < 0 ? rn_status_of_errno(name, errno) : RN_NEW(allocator, &made);
  if (!rn_ok(status)) {
    if (fd >= 0) close(fd);
    return status;
  }
  made->socket.vtable = &system_socket;
  made->allocator = allocator;
  made->fd = fd;
  snprintf(made->name, sizeof made->name, "%s", name);
  // Requests are small and a caller waits for each, so they must not be delayed.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  *out = made;
  return RN_OK;
}

static rn_status_t system_accept(rn_socket_t* base, int64_t deadline_ns, rn_socket_t** out_stream) {
  system_socket_t* listener = (system_socket_t*)base;
  *out_stream = NULL;
  for (;;) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      system_socket_t* stream;
      RN_RETURN_IF_ERROR(wrap(fd, listener->name, listener->allocator, &stream));
      *out_stream = &stream->socket;
      return RN_OK;
    }
    if (listener->is_shut) return rn_cancelled("%s; the socket was shut down", listener->name);
    // A client that has given up meanwhile is no error.
    if (!is_blocked(errno) && errno != ECONNABORTED) return error_of(listener, errno);
    RN_RETURN_IF_ERROR(wait_for(listener, POLLIN, deadline_ns));
  }
}

// What an address stands for: the places to try, one after the other.
typedef struct net_system_places_t {
  struct addrinfo* found;  // of getaddrinfo; NULL for a Unix socket
  struct addrinfo local;
  struct sockaddr_un path;
} net_system_places_t;

static rn_status_t resolve(const char* address, bool is_listener, net_system_places_t* out) {
  *out = (net_system_places_t){0};
  if (strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
    const char* path = address + strlen(UNIX_PREFIX);
    if (strlen(path) >= sizeof out->path.sun_path) return rn_status_of_errno(address, ENAMETOOLONG);
    out->path.sun_family = AF_UNIX;
    snprintf(out->path.sun_path, sizeof out->path.sun_path, "%s", path);
    out->local = (struct addrinfo){.ai_family = AF_UNIX,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_addr = (struct sockaddr*)&out->path,
                                   .ai_addrlen = sizeof out->path};
    return RN_OK;
  }
  const char* colon = strrchr(address, ':');
  if (!colon || !colon[1])
    return rn_invalid_argument("'%s' is not an address; expected host:port", address);
  const char *start = address, *end = colon;
  if (*start == '[' && end[-1] == ']') ++start, --end;
  char host[NI_MAXHOST];
  if ((size_t)(end - start) >= sizeof host) return rn_status_of_errno(address, ENAMETOOLONG);
  snprintf(host, sizeof host, "%.*s", (int)(end - start), start);
  struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = is_listener ? AI_PASSIVE : 0};
  int error = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &out->found);
  if (error == EAI_SYSTEM) return rn_status_of_errno(address, errno);
  return error ? rn_unavailable("%s; %s", address, gai_strerror(error)) : RN_OK;
}

static void forget(net_system_places_t* places) {
  if (places->found) freeaddrinfo(places->found);
}

static rn_status_t open_at(const struct addrinfo* place, const char* name, rn_allocator_t allocator,
                           system_socket_t** out) {
  int fd = socket(place->ai_family, place->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                  place->ai_protocol);
  return wrap(fd, name, allocator, out);
}

// Removes a socket that a process left at |path|; a file of another kind stays.
static void remove_old(const char* path) {
  struct stat found;
  if (lstat(path, &found) == 0 && S_ISSOCK(found.st_mode)) unlink(path);
}

// Closing removes the path.
static rn_status_t keep_path(const char* path, system_socket_t* socket) {
  struct stat made;
  if (lstat(path, &made) != 0) return error_of(socket, errno);
  socket->inode = made.st_ino;
  return rn_str_dup(socket->allocator, rn_str(path), &socket->path);
}

static rn_status_t listen_at(const struct addrinfo* place, system_socket_t* socket) {
  const char* path =
      place->ai_family == AF_UNIX ? ((const struct sockaddr_un*)place->ai_addr)->sun_path : NULL;
  if (path) remove_old(path);
  setsockopt(socket->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(socket->fd, place->ai_addr, place->ai_addrlen) != 0) return error_of(socket, errno);
  if (path) RN_RETURN_IF_ERROR(keep_path(path, socket));
  return listen(socket->fd, SOMAXCONN) == 0 ? RN_OK : error_of(socket, errno);
}

static rn_status_t connect_at(const struct addrinfo* place, system_socket_t* socket,
                              int64_t deadline_ns) {
  if (connect(socket->fd, place->ai_addr, place->ai_addrlen) == 0) return RN_OK;
  if (errno != EINPROGRESS && errno != EINTR) return error_of(socket, errno);
  RN_RETURN_IF_ERROR(wait_for(socket, POLLOUT, deadline_ns));
  int error = 0;
  getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
  return error ? error_of(socket, error) : RN_OK;
}

// The first place that works; else the error of the last.
static rn_status_t open_any(const char* address, bool is_listener, int64_t deadline_ns,
                            rn_allocator_t allocator, rn_socket_t** out) {
  *out = NULL;
  net_system_places_t places;
  RN_RETURN_IF_ERROR(resolve(address, is_listener, &places));
  rn_status_t status = RN_OK;
  const struct addrinfo* place = places.found ? places.found : &places.local;
  for (; place && !*out; place = place->ai_next) {
    system_socket_t* socket;
    rn_status_free(status);
    status = open_at(place, address, allocator, &socket);
    if (!rn_ok(status)) continue;
    status = is_listener ? listen_at(place, socket) : connect_at(place, socket, deadline_ns);
    if (rn_ok(status))
      *out = &socket->socket;
    else
      system_close(&socket->socket);
  }
  forget(&places);
  return status;
}

static rn_status_t system_listen(void* self, const char* address, rn_allocator_t allocator,
                                 rn_socket_t** out_listener) {
  (void)self;
  return open_any(address, true, RN_FOREVER, allocator, out_listener);
}

static rn_status_t system_connect(void* self, const char* address, int64_t deadline_ns,
                                  rn_allocator_t allocator, rn_socket_t** out_stream) {
  (void)self;
  return open_any(address, false, deadline_ns, allocator, out_stream);
}

static rn_status_t system_pair(void* self, rn_allocator_t allocator, rn_socket_t** out_a,
                               rn_socket_t** out_b) {
  (void)self;
  *out_a = *out_b = NULL;
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
    return rn_status_of_errno("socketpair", errno);
  system_socket_t *a = NULL, *b = NULL;
  rn_status_t status = wrap(fds[0], "socketpair", allocator, &a);
  status = rn_status_join(status, wrap(fds[1], "socketpair", allocator, &b));
  if (!rn_ok(status)) {
    if (a) system_close(&a->socket);
    if (b) system_close(&b->socket);
    return status;
  }
  *out_a = &a->socket;
  *out_b = &b->socket;
  return RN_OK;
}

// Pollers.

#define MAX_EVENTS 256

typedef struct system_poller_t {
  rn_poller_t poller;  // first
  rn_allocator_t allocator;
  int fd;
} system_poller_t;

static int control(rn_poller_t* base, int how, rn_socket_t* socket, bool reads, bool writes,
                   void* tag) {
  struct epoll_event event = {.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u),
                              .data.ptr = tag};
  return epoll_ctl(((system_poller_t*)base)->fd, how, ((system_socket_t*)socket)->fd, &event);
}

static rn_status_t system_poller_add(rn_poller_t* base, rn_socket_t* socket, bool reads,
                                     bool writes, void* tag) {
  bool is_added = control(base, EPOLL_CTL_ADD, socket, reads, writes, tag) == 0;
  return is_added ? RN_OK : error_of((system_socket_t*)socket, errno);
}

// Cannot fail for a socket that was added.
static void system_poller_change(rn_poller_t* base, rn_socket_t* socket, bool reads, bool writes,
                                 void* tag) {
  control(base, EPOLL_CTL_MOD, socket, reads, writes, tag);
}

static void system_poller_remove(rn_poller_t* base, rn_socket_t* socket) {
  control(base, EPOLL_CTL_DEL, socket, false, false, NULL);
}

static rn_status_t system_poller_wait(rn_poller_t* base, rn_polled_t* out, size_t room,
                                      int64_t deadline_ns, size_t* out_count) {
  const system_poller_t* poller = (const system_poller_t*)base;
  struct epoll_event events[MAX_EVENTS];
  const int most = room < MAX_EVENTS ? (int)room : MAX_EVENTS;
  *out_count = 0;
  int ready;
  do {
    ready = epoll_wait(poller->fd, events, most, timeout_ms(deadline_ns));
  } while ((ready < 0 && errno == EINTR) || (ready == 0 && timeout_ms(deadline_ns) != 0));
  if (ready < 0) return rn_status_of_errno("epoll_wait", errno);
  const uint32_t failed = EPOLLERR | EPOLLHUP;
  for (int i = 0; i < ready; ++i)
    out[i] = (rn_polled_t){.tag = events[i].data.ptr,
                           .can_read = events[i].events & (EPOLLIN | failed),
                           .can_write = events[i].events & (EPOLLOUT | failed)};
  *out_count = (size_t)ready;
  return RN_OK;
}

static void system_poller_close(rn_poller_t* base) {
  system_poller_t* poller = (system_poller_t*)base;
  close(poller->fd);
  RN_FREE(poller->allocator, poller);
}

static const rn_poller_vtable_t system_poller_vtable = {
    .add = system_poller_add,
    .change = system_poller_change,
    .remove = system_poller_remove,
    .wait = system_poller_wait,
    .close = system_poller_close,
};

static rn_status_t system_poller(void* self, rn_allocator_t allocator, rn_poller_t** out) {
  (void)self;
  *out = NULL;
  system_poller_t* poller = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &poller));
  poller->poller.vtable = &system_poller_vtable;
  poller->allocator = allocator;
  poller->fd = epoll_create1(EPOLL_CLOEXEC);
  if (poller->fd < 0) {
    rn_status_t status = rn_status_of_errno("epoll_create1", errno);
    RN_FREE(allocator, poller);
    return status;
  }
  *out = &poller->poller;
  return RN_OK;
}

const rn_net_t rn_net_system = {
    .listen = system_listen,
    .connect = system_connect,
    .pair = system_pair,
    .poller = system_poller,
};

int rn_net_descriptor(const rn_socket_t* socket) {
  return socket->vtable == &system_socket ? ((const system_socket_t*)socket)->fd : -1;
}

rn_status_t rn_net_adopt(int fd, const char* name, rn_allocator_t allocator, rn_socket_t** out) {
  *out = NULL;
  int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  system_socket_t* socket;
  RN_RETURN_IF_ERROR(wrap(fd, name, allocator, &socket));
  *out = &socket->socket;
  return RN_OK;
}

rn_status_t rn_net_read_all(rn_socket_t* socket, void* out, size_t size, int64_t deadline_ns) {
  for (size_t got; size; out = (char*)out + got, size -= got) {
    RN_RETURN_IF_ERROR(socket->vtable->read(socket, out, size, deadline_ns, &got));
    if (got == 0) return rn_unavailable("The stream ended %zu bytes early", size);
  }
  return RN_OK;
}

rn_status_t rn_net_write_all(rn_socket_t* socket, rn_str_t data, int64_t deadline_ns) {
  for (size_t put; data.size; data = rn_str_n(data.data + put, data.size - put))
    RN_RETURN_IF_ERROR(socket->vtable->write(socket, data.data, data.size, deadline_ns, &put));
  return RN_OK;
}
