// Loans: see loan.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // process_vm_readv
#endif
#include "dist/rpc/loan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/sync.h"

#define KEPT_NS INT64_C(60000000000)
// Bytes that one thread reads in one go.
#define GRAIN (4 << 20)

typedef struct kept_t {
  struct kept_t* next;
  uint64_t id;
  rn_buffer_t* buffer;  // Retained
  int64_t since_ns;
} kept_t;

struct rn_loans_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_reach_t reach;
  rn_mutex_t mutex;  // guards what follows
  kept_t* first;
};

void rn_reach_machine(char* out, size_t room) {
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : read(file, out, room - 1);
  if (file >= 0) close(file);
  out[size > 0 ? size : 0] = '\0';
}

rn_status_t rn_loans_create(const rn_env_t* env, rn_allocator_t allocator, rn_loans_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_loans_t* loans = *out;
  loans->env = env;
  loans->allocator = allocator;
  rn_reach_machine(loans->reach.machine, sizeof loans->reach.machine);
  loans->reach.pid = (uint64_t)getpid();
  loans->reach.address = (uint64_t)(uintptr_t)loans->reach.secret;
  for (int i = 0; i < 2; ++i) loans->reach.secret[i] = env->random(env->self) | 1;
  rn_mutex_init(&loans->mutex);
  return RN_OK;
}

const rn_reach_t* rn_loans_reach(const rn_loans_t* loans) { return &loans->reach; }

static void let_go(rn_loans_t* loans, kept_t* kept) {
  while (kept) {
    kept_t* next = kept->next;
    rn_buffer_release(kept->buffer);
    RN_FREE(loans->allocator, kept);
    kept = next;
  }
}

void rn_loans_destroy(rn_loans_t* loans) {
  if (!loans) return;
  let_go(loans, loans->first);
  rn_mutex_destroy(&loans->mutex);
  RN_FREE(loans->allocator, loans);
}

// Takes loan |id| and those that are too old off the list; whether |id| was among them.
static bool take_off_locked(rn_loans_t* loans, uint64_t id, int64_t now_ns, kept_t** out_taken) {
  bool is_found = false;
  *out_taken = NULL;
  for (kept_t** at = &loans->first; *at;) {
    kept_t* kept = *at;
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

rn_status_t rn_loans_add(rn_loans_t* loans, const rn_tensor_t* tensor, rn_loan_t* out) {
  kept_t* kept = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(loans->allocator, &kept));
  kept->id = loans->env->random(loans->env->self) | 1;
  kept->buffer = tensor->buffer;
  kept->since_ns = loans->env->now_ns(loans->env->self);
  rn_buffer_retain(kept->buffer);
  *out = (rn_loan_t){.id = kept->id, .address = (uint64_t)(uintptr_t)tensor->data};
  rn_mutex_lock(&loans->mutex);
  kept_t* old = NULL;
  take_off_locked(loans, 0, kept->since_ns, &old);
  kept->next = loans->first;
  loans->first = kept;
  rn_mutex_unlock(&loans->mutex);
  let_go(loans, old);
  return RN_OK;
}

bool rn_loans_end(rn_loans_t* loans, uint64_t id) {
  kept_t* taken = NULL;
  rn_mutex_lock(&loans->mutex);
  bool was_there = take_off_locked(loans, id, loans->env->now_ns(loans->env->self), &taken);
  rn_mutex_unlock(&loans->mutex);
  let_go(loans, taken);
  return was_there;
}

// The receiver's side.

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

rn_status_t rn_reach_read(uint64_t pid, uint64_t address, void* to, size_t size, rn_pool_t* pool) {
  reading_t reading = {
      .pid = (pid_t)pid, .from = (char*)(uintptr_t)address, .to = to, .size = size};
  rn_pool_for(pool, (int64_t)((size + GRAIN - 1) / GRAIN), 1, read_piece, &reading);
  if (!reading.error) return RN_OK;
  return rn_unavailable("The memory of process %llu cannot be read: %s", (unsigned long long)pid,
                        strerror(reading.error));
}

bool rn_reach_works(const rn_reach_t* peer) {
  char machine[sizeof peer->machine];
  uint64_t secret[2] = {0};
  rn_reach_machine(machine, sizeof machine);
  if (!machine[0] || strcmp(machine, peer->machine) != 0) return false;
  rn_status_t status = rn_reach_read(peer->pid, peer->address, secret, sizeof secret, NULL);
  bool ok = rn_ok(status) && memcmp(secret, peer->secret, sizeof secret) == 0;
  rn_status_free(status);
  return ok;
}
