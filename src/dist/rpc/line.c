// Lines to lenders: see line.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // process_vm_readv
#endif
#include "dist/rpc/line.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/vec.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

// Bytes that a thread reads at a time.
#define GRAIN (4 << 20)
// The most loans whose calls have not ended yet, or were cancelled.
#define MAX_SAID 4096

struct rn_line_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  int fd, process;  // Owned; |process| is a pidfd of the lender, which survives reuse of its number
  pid_t pid;        // the lender, as the kernel reports it
  rn_loan_name_t name;
  rn_line_state_t state;
  RN_VEC(rn_loan_t) said;  // announced and not taken yet, oldest first
};

void rn_line_retain(rn_line_t* line) { line->refs++; }

void rn_line_release(rn_line_t* line) {
  if (!line || --line->refs) return;
  if (line->fd >= 0) close(line->fd);
  if (line->process >= 0) close(line->process);
  rn_vec_free(&line->said, line->allocator);
  RN_FREE(line->allocator, line);
}

rn_loan_name_t rn_line_name(const rn_line_t* line) { return line->name; }
rn_line_state_t rn_line_state(const rn_line_t* line) { return line->state; }

// A pidfd of the process at the other end. Kernels before 6.5 give none for a socket; there,
// another process could get the number between the two calls only if the lender ended during the
// connection, and then the line does not work.
static int process_of(int fd, pid_t pid) {
  int process = -1;
  socklen_t size = sizeof process;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &size) == 0) return process;
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool is_alive(const rn_line_t* line) {
  struct pollfd item = {.fd = line->process, .events = POLLIN};
  return poll(&item, 1, 0) == 0;
}

static rn_status_t connect_to(rn_line_t* line, rn_loan_name_t lender) {
  struct sockaddr_un address;
  socklen_t size = rn_reach_address(lender, &address);
  line->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (line->fd < 0 || connect(line->fd, (struct sockaddr*)&address, size) != 0)
    return rn_unavailable("Cannot connect to the lender: %s", strerror(errno));
  line->pid = rn_reach_peer(line->fd);
  if (!line->pid) return rn_unavailable("The lender belongs to another user, or is this process");
  line->process = process_of(line->fd, line->pid);
  if (line->process < 0)
    return rn_unavailable("Cannot open the lender's process: %s", strerror(errno));
  ssize_t put = send(line->fd, &line->name, sizeof line->name, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put != (ssize_t)sizeof line->name) return rn_unavailable("The lender does not read");
  return RN_OK;
}

rn_status_t rn_line_open(const rn_reach_t* reach, const rn_env_t* env, rn_allocator_t allocator,
                         rn_line_t** out) {
  char machine[sizeof reach->machine];
  rn_line_t* line = NULL;
  *out = NULL;
  rn_reach_machine(machine, sizeof machine);
  if (!machine[0] || strcmp(machine, reach->machine) != 0)
    return rn_unavailable("The lender is on another machine");
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &line));
  line->refs = 1;
  line->allocator = allocator;
  line->fd = line->process = -1;
  for (int i = 0; i < 2; ++i) line->name.bits[i] = env->random(env->self) | 1;
  rn_status_t status = connect_to(line, reach->name);
  if (!rn_ok(status)) {
    rn_line_release(line);
    return status;
  }
  *out = line;
  return RN_OK;
}

typedef struct reading_t {
  pid_t pid;
  char *from, *to;
  size_t size;
  _Atomic int error;
} reading_t;

static void read_piece(void* arg, int64_t begin, int64_t end) {
  reading_t* reading = arg;
  size_t at = (size_t)begin * GRAIN, stop = (size_t)end * GRAIN;
  if (stop > reading->size) stop = reading->size;
  while (at < stop && !reading->error) {
    struct iovec to = {reading->to + at, stop - at}, from = {reading->from + at, stop - at};
    ssize_t n = process_vm_readv(reading->pid, &to, 1, &from, 1, 0);
    if (n > 0)
      at += (size_t)n;
    else if (n == 0 || errno != EINTR)
      reading->error = n == 0 ? EFAULT : errno;
  }
}

// If the lender is still alive afterwards, it had its number all the while, so no other process was
// read.
rn_status_t rn_line_read(const rn_line_t* line, const rn_loan_t* loan, void* to, size_t size,
                         rn_pool_t* pool) {
  if (loan->size != size)
    return rn_unavailable("A tensor of %zu bytes was announced, but %llu were lent", size,
                          (unsigned long long)loan->size);
  reading_t reading = {
      .pid = line->pid, .from = (char*)(uintptr_t)loan->address, .to = to, .size = size};
  rn_pool_for(pool, (int64_t)((size + GRAIN - 1) / GRAIN), 1, read_piece, &reading);
  if (!reading.error && !is_alive(line)) reading.error = ESRCH;
  if (!reading.error) return RN_OK;
  return rn_unavailable("The memory of process %d cannot be read: %s", (int)line->pid,
                        strerror(reading.error));
}

// The first packet: checks that the lender's memory has the announced secret.
static bool is_readable(const rn_line_t* line, const rn_loan_t* where) {
  rn_loan_name_t secret = {{0}};
  rn_status_t status = rn_line_read(line, where, &secret, sizeof secret, NULL);
  bool ok = rn_ok(status) && memcmp(&secret, &where->secret, sizeof secret) == 0;
  rn_status_free(status);
  return ok;
}

static rn_line_state_t take_packet(rn_line_t* line, const rn_loan_t* loan) {
  if (line->state == RN_LINE_WAITS)
    return loan->id == 0 && is_readable(line, loan) ? RN_LINE_WORKS : RN_LINE_FAILS;
  if (!loan->id || line->said.count == MAX_SAID) return RN_LINE_FAILS;
  rn_status_t status = rn_vec_push(&line->said, line->allocator, *loan);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok ? RN_LINE_WORKS : RN_LINE_FAILS;
}

rn_line_state_t rn_line_hear(rn_line_t* line) {
  while (line->state != RN_LINE_FAILS) {
    rn_loan_t loan;
    ssize_t size = recv(line->fd, &loan, sizeof loan, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    line->state = size == (ssize_t)sizeof loan ? take_packet(line, &loan) : RN_LINE_FAILS;
  }
  return line->state;
}

bool rn_line_take(rn_line_t* line, uint64_t id, rn_loan_t* out) {
  rn_line_hear(line);
  for (size_t i = 0; i < line->said.count; ++i) {
    if (line->said.items[i].id != id) continue;
    *out = line->said.items[i];
    memmove(&line->said.items[i], &line->said.items[i + 1],
            (--line->said.count - i) * sizeof *line->said.items);
    return true;
  }
  return false;
}
