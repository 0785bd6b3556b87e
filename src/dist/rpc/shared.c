// See shared.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create, seals
#endif
#include "dist/rpc/shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

void* rn_shared_create(size_t size, int* out_fd) {
  void* block = MAP_FAILED;
  int fd = memfd_create("runnel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
    block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  bool ok = block != MAP_FAILED;
  if (ok && fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
    munmap(block, size);
    ok = false;
  }
  if (!ok && fd >= 0) close(fd);
  *out_fd = ok ? fd : -1;
  return ok ? block : NULL;
}

const void* rn_shared_open(int fd, size_t size) {
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0 || info.st_size != (off_t)size) return NULL;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return NULL;
  const void* block = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  return block == MAP_FAILED ? NULL : block;
}

void rn_shared_close(const void* block, size_t size) {
  if (block) munmap((void*)block, size);
}

// Room for one descriptor.
typedef union shared_control_t {
  struct cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
} shared_control_t;

long rn_shared_send(int socket, const void* packet, size_t size, int fd) {
  shared_control_t control;
  struct iovec part = {(void*)packet, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

long rn_shared_receive(int socket, void* packet, size_t size, int* out_fd) {
  shared_control_t control;
  struct iovec part = {packet, size};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  *out_fd = -1;
  ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  const struct cmsghdr* head = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return n;
  // The room for one is aligned, so that another one fits that a peer may send.
  for (size_t at = 0; CMSG_LEN(at + sizeof *out_fd) <= head->cmsg_len; at += sizeof *out_fd) {
    int fd;
    memcpy(&fd, CMSG_DATA(head) + at, sizeof fd);
    if (at)
      close(fd);
    else
      *out_fd = fd;
  }
  return n;
}
