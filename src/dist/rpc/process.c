// See process.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // process_vm_readv
#endif
#include "dist/rpc/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dist/rpc/loan.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

// Kernels before 6.5 give no pidfd for a socket; there, another process could get the number
// between the two calls only if this one ended during the connection, and then nothing that it says
// can be read.
static int descriptor_of(int socket, int pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return fd;
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool rn_process_open(int socket, rn_process_t* out) {
  *out = (rn_process_t){.pid = rn_reach_peer(socket), .fd = -1};
  if (!out->pid) errno = EPERM;
  if (out->pid) out->fd = descriptor_of(socket, out->pid);
  return out->fd >= 0;
}

void rn_process_close(rn_process_t* process) {
  if (process->fd >= 0) close(process->fd);
  *process = (rn_process_t){.fd = -1};
}

bool rn_process_is_alive(const rn_process_t* process) {
  struct pollfd item = {.fd = process->fd, .events = POLLIN};
  return poll(&item, 1, 0) == 0;
}

bool rn_process_read(const rn_process_t* process, uint64_t address, void* to, size_t size) {
  size_t at = 0;
  while (at < size) {
    struct iovec here = {(char*)to + at, size - at};
    struct iovec there = {(void*)(uintptr_t)(address + at), size - at};
    ssize_t n = process_vm_readv(process->pid, &here, 1, &there, 1, 0);
    if (n > 0) {
      at += (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      if (n == 0) errno = EFAULT;
      return false;
    }
  }
  return true;
}
