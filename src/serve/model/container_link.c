// Connections to containers: see container_link.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "serve/model/container_link.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/fs.h"

#define READ_SIZE ((size_t)64 << 10)
#define MOST_READS 16                 // before other sockets get their turn
#define KEPT_BYTES ((size_t)1 << 20)  // of an empty buffer

static void empty(rn_strbuf_t* buf) {
  buf->size = 0;
  if (buf->capacity > KEPT_BYTES) rn_strbuf_clear(buf);
}

bool rn_container_link_can_pass(const rn_container_link_t* link) {
  int fd = link->watch.socket ? rn_net_descriptor(link->watch.socket) : -1, domain = 0;
  socklen_t size = sizeof domain;
  return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// Frames at the start of |in|. False if the link was closed or broken.
static bool handle_frames(rn_container_link_t* link) {
  size_t at = 0;
  for (;;) {
    rn_container_frame_t frame;
    size_t size;
    rn_str_t rest = rn_str_n(link->in.data + at, link->in.size - at);
    rn_status_t status = rn_container_frame_read(rest, &frame, &size);
    bool is_whole = rest.size >= size;
    if (rn_ok(status) && !is_whole) {
      bool has_begun = rest.size >= RN_CONTAINER_HEADER;
      if (!has_begun || link->events.expects(link->events.self, &frame)) break;
      status = rn_invalid_argument("sent an answer to a batch that does not run");
    }
    if (rn_ok(status)) status = link->events.frame(link->events.self, &frame);
    if (!rn_ok(status)) {
      link->events.broken(link->events.self, status);
      return false;
    }
    if (!link->watch.socket) return false;
    at += size;
  }
  if (at == link->in.size) {
    empty(&link->in);
  } else if (at) {
    memmove(link->in.data, link->in.data + at, link->in.size - at);
    link->in.size -= at;
  }
  return true;
}

// Memory for the rest of the frame that has begun, or for the next; never for much more than has
// arrived, whatever its header says.
static bool make_room(rn_container_link_t* link) {
  rn_container_frame_t frame;
  size_t size = 0, room = READ_SIZE;
  rn_status_t status = rn_container_frame_read(rn_strbuf_view(&link->in), &frame, &size);
  rn_status_free(status);  // handle_frames has reported it
  if (size > link->in.size + room) room = size - link->in.size;
  if (room > link->in.size + READ_SIZE) room = link->in.size + READ_SIZE;
  return rn_strbuf_reserve(&link->in, room);
}

void rn_container_link_read(rn_container_link_t* link) {
  for (int i = 0; i < MOST_READS && link->watch.socket; ++i) {
    if (!make_room(link)) {
      link->events.broken(link->events.self, rn_out_of_memory());
      return;
    }
    rn_socket_t* socket = link->watch.socket;
    size_t room = link->in.capacity - link->in.size - 1, got;
    rn_status_t status =
        socket->vtable->read(socket, link->in.data + link->in.size, room, RN_AT_ONCE, &got);
    if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
      rn_status_free(status);
      return;
    }
    if (!rn_ok(status) || !got) {
      rn_status_t why = rn_ok(status)
                            ? rn_unavailable("closed the connection")
                            : rn_unavailable("lost the connection: %s", rn_status_message(status));
      rn_status_free(status);
      link->events.broken(link->events.self, why);
      return;
    }
    link->in.size += got;
    if (!handle_frames(link)) return;
    if (got < room) return;  // nothing more to read
  }
}

static void link_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  rn_container_link_t* link = RN_CONTAINER_OF(watch, rn_container_link_t, watch);
  if (can_write) {
    rn_mutex_lock(link->events.mutex);
    rn_container_link_flush(link);
    rn_mutex_unlock(link->events.mutex);
  }
  if (can_read) rn_container_link_read(link);
}

rn_status_t rn_container_link_open(rn_container_link_t* link, rn_loop_t* loop, rn_socket_t* socket,
                                   const rn_container_link_events_t* events,
                                   rn_allocator_t allocator) {
  *link = (rn_container_link_t){.allocator = allocator,
                                .loop = loop,
                                .events = *events,
                                .watch = {.socket = socket, .ready = link_ready}};
  rn_strbuf_init(&link->in, allocator);
  rn_strbuf_init(&link->out, allocator);
  rn_status_t status = rn_loop_watch(loop, &link->watch);
  if (!rn_ok(status)) rn_container_link_close(link);
  return status;
}

void rn_container_link_close(rn_container_link_t* link) {
  if (!link->watch.socket) return;
  rn_loop_unwatch(link->loop, &link->watch);
  link->watch.socket->vtable->close(link->watch.socket);
  link->watch.socket = NULL;
  for (size_t i = 0; i < link->passed.count; ++i) close(link->passed.items[i].fd);
  rn_vec_free(&link->passed, link->allocator);
  rn_strbuf_clear(&link->in);
  rn_strbuf_clear(&link->out);
}

rn_status_t rn_container_link_pass(rn_container_link_t* link, int fd) {
  rn_status_t status = rn_vec_push(&link->passed, link->allocator,
                                   (rn_container_passed_t){.at = link->out.size, .fd = fd});
  if (!rn_ok(status)) close(fd);
  return status;
}

// Sends |size| bytes at |data| with |fd|; -1 and errno on failure.
static ssize_t send_with(int socket, const char* data, size_t size, int fd) {
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec piece = {.iov_base = (char*)data, .iov_len = size};
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Sends some bytes: up to the next descriptor, or the descriptor with what follows it.
static rn_status_t send_some(rn_container_link_t* link, size_t* out_sent) {
  rn_socket_t* socket = link->watch.socket;
  const char* data = link->out.data + link->sent;
  size_t size = link->out.size - link->sent;
  *out_sent = 0;
  if (!link->passed.count || link->passed.items[0].at > link->sent) {
    if (link->passed.count) size = link->passed.items[0].at - link->sent;
    return socket->vtable->write(socket, data, size, RN_AT_ONCE, out_sent);
  }
  if (link->passed.count > 1) size = link->passed.items[1].at - link->sent;
  ssize_t put = send_with(rn_net_descriptor(socket), data, size, link->passed.items[0].fd);
  if (put < 0)
    return errno == EAGAIN || errno == EINTR ? rn_deadline_exceeded("later")
                                             : rn_status_of_errno("sendmsg", errno);
  *out_sent = (size_t)put;
  close(link->passed.items[0].fd);
  link->passed.count--;
  memmove(link->passed.items, link->passed.items + 1,
          link->passed.count * sizeof *link->passed.items);
  return RN_OK;
}

void rn_container_link_flush(rn_container_link_t* link) {
  if (!rn_container_link_is_open(link)) return;
  rn_status_t status = link->out.failed ? rn_out_of_memory() : RN_OK;
  while (rn_ok(status) && link->sent < link->out.size) {
    size_t put;
    status = send_some(link, &put);
    link->sent += put;
  }
  if (rn_ok(status)) {
    empty(&link->out);
    link->sent = 0;
  }
  bool waits = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
  link->is_broken = !rn_ok(status) && !waits;
  rn_status_free(status);
  // A broken stream is shut down, so that the loop's next read finds its end.
  if (link->is_broken) link->watch.socket->vtable->shutdown(link->watch.socket);
  rn_loop_want(link->loop, &link->watch, true, waits);
}
