// Loans, the lender's side: see loan.h.
//
// No thread waits on the socket. A receiver connects and sends the line's name first there, then
// over the network: so when the name arrives over the network, the connection is waiting to be
// accepted.
//
// doc/invariants.md: invariant 52.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // accept4, struct ucred, process_vm_readv
#endif
#include "dist/rpc/loan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/sync.h"
#include "base/vec.h"
#include "dist/rpc/board.h"
#include "dist/rpc/shared.h"

#define KEPT_NS INT64_C(60000000000)
#define MAX_LINES 256    // receivers
#define MAX_ACCEPTED 64  // accepted at a time
// A shown value's number for callers: that of its line above, that of its board below.
#define BOARD_BITS 40

typedef struct loan_kept_t {
  struct loan_kept_t* next;
  uint64_t id;
  rn_buffer_t* buffer;  // Retained
  int64_t since_ns;
} loan_kept_t;

typedef struct loan_line_t {
  int fd;  // Owned
  rn_hello_t hello;
  uint64_t number;    // of the line, never used twice
  rn_board_t* board;  // Owned; NULL: none
} loan_line_t;

struct rn_loans_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_reach_t reach;
  rn_loan_name_t secret;
  int listener;      // Owned; -1: none
  rn_mutex_t mutex;  // guards what follows
  RN_VEC(loan_line_t) lines;
  uint64_t line_count;  // ever
  loan_kept_t* first;
};

void rn_reach_machine(char* out, size_t room) {
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : read(file, out, room - 1);
  if (file >= 0) close(file);
  out[size > 0 ? size : 0] = '\0';
}

// An abstract name: not a file, and freed with its socket. Any process may connect to it, or have
// taken it; the kernel reports which one.
unsigned rn_reach_address(rn_loan_name_t name, struct sockaddr_un* out) {
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  int size = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "runnel-loans-%016llx%016llx",
                      (unsigned long long)name.bits[0], (unsigned long long)name.bits[1]);
  return (unsigned)(__builtin_offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

int rn_reach_peer(int fd) {
  struct ucred peer = {0};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer) return 0;
  return peer.uid == geteuid() && peer.pid > 0 && peer.pid != getpid() ? peer.pid : 0;
}

static rn_loan_name_t new_name(const rn_env_t* env) {
  return (rn_loan_name_t){{env->random(env->self) | 1, env->random(env->self) | 1}};
}

uint64_t rn_reach_task(rn_str_t task) { return task.size ? rn_str_hash(task) | 1 : 0; }

static rn_status_t listen_for_lines(rn_loans_t* loans) {
  struct sockaddr_un address;
  socklen_t size = rn_reach_address(loans->reach.name, &address);
  loans->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (loans->listener < 0 || bind(loans->listener, (struct sockaddr*)&address, size) != 0 ||
      listen(loans->listener, MAX_ACCEPTED) != 0)
    return rn_unavailable("Cannot open the socket for loans: %s", strerror(errno));
  return RN_OK;
}

rn_status_t rn_loans_create(const rn_env_t* env, rn_allocator_t allocator, rn_loans_t** out) {
  rn_loans_t* loans = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &loans));
  loans->env = env;
  loans->allocator = allocator;
  loans->listener = -1;
  loans->reach.name = new_name(env);
  loans->secret = new_name(env);
  rn_reach_machine(loans->reach.machine, sizeof loans->reach.machine);
  rn_mutex_init(&loans->mutex);
  rn_status_t status = listen_for_lines(loans);
  if (!rn_ok(status)) {
    rn_loans_destroy(loans);
    return status;
  }
  *out = loans;
  return RN_OK;
}

const rn_reach_t* rn_loans_reach(const rn_loans_t* loans) { return &loans->reach; }

static void let_go(rn_loans_t* loans, loan_kept_t* kept) {
  while (kept) {
    loan_kept_t* next = kept->next;
    rn_buffer_release(kept->buffer);
    RN_FREE(loans->allocator, kept);
    kept = next;
  }
}

static void line_clear(loan_line_t* line) {
  close(line->fd);
  rn_board_destroy(line->board);
}

void rn_loans_destroy(rn_loans_t* loans) {
  if (!loans) return;
  let_go(loans, loans->first);
  for (size_t i = 0; i < loans->lines.count; ++i) line_clear(&loans->lines.items[i]);
  rn_vec_free(&loans->lines, loans->allocator);
  if (loans->listener >= 0) close(loans->listener);
  rn_mutex_destroy(&loans->mutex);
  RN_FREE(loans->allocator, loans);
}

// Lines.

static loan_line_t* find_locked(rn_loans_t* loans, rn_loan_name_t name) {
  for (size_t i = 0; i < loans->lines.count; ++i)
    if (rn_loan_name_eq(loans->lines.items[i].hello.name, name)) return &loans->lines.items[i];
  return NULL;
}

static void drop_locked(rn_loans_t* loans, loan_line_t* line) {
  line_clear(line);
  *line = loans->lines.items[--loans->lines.count];
}

// Receivers send just the name: anything readable after it is the end of their line.
static void drop_ended_locked(rn_loans_t* loans) {
  char byte;
  for (size_t i = loans->lines.count; i > 0; --i)
    if (recv(loans->lines.items[i - 1].fd, &byte, 1, MSG_DONTWAIT) >= 0)
      drop_locked(loans, &loans->lines.items[i - 1]);
}

static bool say(const loan_line_t* line, const rn_loan_t* loan, int board) {
  return rn_shared_send(line->fd, loan, sizeof *loan, board) == (long)sizeof *loan;
}

static void close_if_open(int fd) {
  if (fd >= 0) close(fd);
}

// Takes |fd|: keeps it as a line if it is from a process of this user and has a name, else closes
// it.
static void take_line_locked(rn_loans_t* loans, int fd) {
  loan_line_t line = {.fd = fd, .number = ++loans->line_count};
  const rn_loan_t where = {.address = (uint64_t)(uintptr_t)&loans->secret,
                           .size = sizeof loans->secret,
                           .secret = loans->secret};
  int notes = -1, board = -1;
  bool ok =
      rn_reach_peer(fd) != 0 &&
      rn_shared_receive(fd, &line.hello, sizeof line.hello, &notes) == (long)sizeof line.hello &&
      !find_locked(loans, line.hello.name);
  if (ok && loans->lines.count == MAX_LINES) drop_ended_locked(loans);
  ok = ok && loans->lines.count < MAX_LINES;
  if (ok && line.hello.task) line.board = rn_board_create(loans->allocator, notes, &board);
  ok = ok && say(&line, &where, board);
  if (ok) {
    rn_status_t status = rn_vec_push(&loans->lines, loans->allocator, line);
    ok = rn_ok(status);
    rn_status_free(status);
  }
  close_if_open(notes);
  close_if_open(board);
  if (!ok) line_clear(&line);
}

void rn_loans_greet(rn_loans_t* loans, rn_loan_name_t name) {
  rn_mutex_lock(&loans->mutex);
  for (int i = 0; i < MAX_ACCEPTED && !find_locked(loans, name); ++i) {
    int fd = accept4(loans->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) break;
    take_line_locked(loans, fd);
  }
  rn_mutex_unlock(&loans->mutex);
}

// The loans.

// Removes loan |id| and those that are too old from the list; true if |id| was among them.
static bool take_off_locked(rn_loans_t* loans, uint64_t id, int64_t now_ns,
                            loan_kept_t** out_taken) {
  bool is_found = false;
  *out_taken = NULL;
  for (loan_kept_t** at = &loans->first; *at;) {
    loan_kept_t* kept = *at;
    if (kept->id != id && now_ns - kept->since_ns <= KEPT_NS) {
      at = &kept->next;
      continue;
    }
    is_found |= kept->id == id;
    *at = kept->next;
    kept->next = *out_taken;
    *out_taken = kept;
  }
  return is_found;
}

// Whether another process could read the tensor's first and last byte, by reading them as one
// would.
static bool is_readable(const rn_tensor_t* tensor) {
  char bytes[2];
  char* data = tensor->data;
  struct iovec to = {bytes, sizeof bytes};
  struct iovec from[] = {{data, 1}, {data + rn_tensor_bytes(tensor) - 1, 1}};
  return process_vm_readv(getpid(), &to, 1, from, 2, 0) == (ssize_t)sizeof bytes;
}

rn_status_t rn_loans_add(rn_loans_t* loans, rn_loan_name_t name, const rn_tensor_t* tensor,
                         uint64_t* out_id) {
  loan_kept_t* kept = NULL;
  if (!is_readable(tensor)) return rn_unavailable("Other processes cannot read the tensor");
  RN_RETURN_IF_ERROR(RN_NEW(loans->allocator, &kept));
  kept->id = loans->env->random(loans->env->self) | 1;
  kept->since_ns = loans->env->now_ns(loans->env->self);
  const rn_loan_t loan = {.id = kept->id,
                          .address = (uint64_t)(uintptr_t)tensor->data,
                          .size = rn_tensor_bytes(tensor)};
  *out_id = kept->id;
  loan_kept_t* old = NULL;
  rn_mutex_lock(&loans->mutex);
  take_off_locked(loans, 0, kept->since_ns, &old);
  loan_line_t* line = find_locked(loans, name);
  bool is_lent = line && say(line, &loan, -1);
  if (is_lent) {
    kept->buffer = tensor->buffer;
    rn_buffer_retain(kept->buffer);
    kept->next = loans->first;
    loans->first = kept;
  } else if (line && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    drop_locked(loans, line);
  }
  rn_mutex_unlock(&loans->mutex);
  let_go(loans, old);
  if (is_lent) return RN_OK;
  RN_FREE(loans->allocator, kept);
  return rn_unavailable("No connection accepts the loan");
}

bool rn_loans_end(rn_loans_t* loans, uint64_t id) {
  loan_kept_t* taken = NULL;
  rn_mutex_lock(&loans->mutex);
  bool was_there = take_off_locked(loans, id, loans->env->now_ns(loans->env->self), &taken);
  rn_mutex_unlock(&loans->mutex);
  let_go(loans, taken);
  return was_there;
}

// Boards.

// The newest line of |task|: an older one may be of a receiver that has given it up.
static loan_line_t* line_of_task_locked(rn_loans_t* loans, uint64_t task) {
  loan_line_t* found = NULL;
  for (size_t i = 0; i < loans->lines.count; ++i) {
    loan_line_t* line = &loans->lines.items[i];
    if (line->board && line->hello.task == task && (!found || line->number > found->number))
      found = line;
  }
  return found;
}

static loan_line_t* line_of_number_locked(rn_loans_t* loans, uint64_t number) {
  for (size_t i = 0; i < loans->lines.count; ++i)
    if (loans->lines.items[i].number == number >> BOARD_BITS) return &loans->lines.items[i];
  return NULL;
}

static uint64_t in_board(uint64_t number) { return number & ((UINT64_C(1) << BOARD_BITS) - 1); }

uint64_t rn_loans_show(rn_loans_t* loans, uint64_t task, rn_shown_key_t key, const void* data,
                       size_t size) {
  uint64_t number = 0;
  rn_mutex_lock(&loans->mutex);
  loan_line_t* line = line_of_task_locked(loans, task);
  if (line) number = rn_board_show(line->board, key, data, size);
  if (number) number |= line->number << BOARD_BITS;
  rn_mutex_unlock(&loans->mutex);
  return number;
}

void rn_loans_hide(rn_loans_t* loans, uint64_t number) {
  rn_mutex_lock(&loans->mutex);
  loan_line_t* line = line_of_number_locked(loans, number);
  if (line) rn_board_hide(line->board, in_board(number));
  rn_mutex_unlock(&loans->mutex);
}

bool rn_loans_is_taken(rn_loans_t* loans, uint64_t number) {
  rn_mutex_lock(&loans->mutex);
  loan_line_t* line = line_of_number_locked(loans, number);
  bool is_taken = line && rn_board_is_taken(line->board, in_board(number));
  rn_mutex_unlock(&loans->mutex);
  return is_taken;
}
