// Lines to lenders: see line.h.
#include "dist/rpc/line.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/vec.h"
#include "dist/rpc/board.h"
#include "dist/rpc/process.h"
#include "dist/rpc/shared.h"

// Bytes that a thread reads at a time.
#define GRAIN (4 << 20)
// The most loans whose calls have not ended yet, or were cancelled.
#define MAX_SAID 4096

struct rn_line_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  int fd;  // Owned
  rn_process_t lender;
  rn_loan_name_t name;
  rn_line_state_t state;
  rn_board_view_t* board;  // Owned; NULL: none
  RN_VEC(rn_loan_t) said;  // announced and not taken yet, oldest first
};

void rn_line_retain(rn_line_t* line) { line->refs++; }

void rn_line_release(rn_line_t* line) {
  if (!line || --line->refs) return;
  if (line->fd >= 0) close(line->fd);
  rn_process_close(&line->lender);
  rn_board_view_destroy(line->board);
  rn_vec_free(&line->said, line->allocator);
  RN_FREE(line->allocator, line);
}

rn_loan_name_t rn_line_name(const rn_line_t* line) { return line->name; }
rn_line_state_t rn_line_state(const rn_line_t* line) { return line->state; }

static rn_status_t connect_to(rn_line_t* line, rn_loan_name_t lender, uint64_t task) {
  struct sockaddr_un address;
  socklen_t size = rn_reach_address(lender, &address);
  line->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (line->fd < 0 || connect(line->fd, (struct sockaddr*)&address, size) != 0)
    return rn_unavailable("Cannot connect to the lender: %s", strerror(errno));
  if (!rn_process_open(line->fd, &line->lender))
    return rn_unavailable(
        "The lender belongs to another user, is this process, or cannot be opened: %s",
        strerror(errno));
  int notes = -1;
  if (task) line->board = rn_board_view_create(line->allocator, &notes);
  const rn_hello_t hello = {line->name, line->board ? task : 0};
  long put = rn_shared_send(line->fd, &hello, sizeof hello, notes);
  if (notes >= 0) close(notes);
  if (put != (long)sizeof hello) return rn_unavailable("The lender does not read");
  return RN_OK;
}

rn_status_t rn_line_open(const rn_reach_t* reach, uint64_t task, const rn_env_t* env,
                         rn_allocator_t allocator, rn_line_t** out) {
  char machine[sizeof reach->machine];
  rn_line_t* line = NULL;
  *out = NULL;
  rn_reach_machine(machine, sizeof machine);
  if (!machine[0] || strcmp(machine, reach->machine) != 0)
    return rn_unavailable("The lender is on another machine");
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &line));
  line->refs = 1;
  line->allocator = allocator;
  line->fd = line->lender.fd = -1;
  for (int i = 0; i < 2; ++i) line->name.bits[i] = env->random(env->self) | 1;
  rn_status_t status = connect_to(line, reach->name, task);
  if (!rn_ok(status)) {
    rn_line_release(line);
    return status;
  }
  *out = line;
  return RN_OK;
}

typedef struct reading_t {
  const rn_process_t* lender;
  uint64_t from;
  char* to;
  size_t size;
  _Atomic int error;
} reading_t;

static void read_piece(void* arg, int64_t begin, int64_t end) {
  reading_t* reading = arg;
  size_t at = (size_t)begin * GRAIN, stop = (size_t)end * GRAIN;
  if (stop > reading->size) stop = reading->size;
  if (!reading->error &&
      !rn_process_read(reading->lender, reading->from + at, reading->to + at, stop - at))
    reading->error = errno;
}

// If the lender is still alive afterwards, it had its number all the while, so no other process was
// read.
rn_status_t rn_line_read(const rn_line_t* line, const rn_loan_t* loan, void* to, size_t size,
                         rn_pool_t* pool) {
  if (loan->size != size)
    return rn_unavailable("A tensor of %zu bytes was announced, but %llu were lent", size,
                          (unsigned long long)loan->size);
  reading_t reading = {.lender = &line->lender, .from = loan->address, .to = to, .size = size};
  rn_pool_for(pool, (int64_t)((size + GRAIN - 1) / GRAIN), 1, read_piece, &reading);
  if (!reading.error && !rn_process_is_alive(&line->lender)) reading.error = ESRCH;
  if (!reading.error) return RN_OK;
  return rn_unavailable("The memory of process %d cannot be read: %s", line->lender.pid,
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

// |board| came with the packet; -1: none did.
static rn_line_state_t take_packet(rn_line_t* line, const rn_loan_t* loan, int board) {
  if (line->state == RN_LINE_WAITS) {
    if (line->board && !rn_board_view_open(line->board, board)) {
      rn_board_view_destroy(line->board);
      line->board = NULL;
    }
    return loan->id == 0 && is_readable(line, loan) ? RN_LINE_WORKS : RN_LINE_FAILS;
  }
  if (!loan->id || line->said.count == MAX_SAID) return RN_LINE_FAILS;
  rn_status_t status = rn_vec_push(&line->said, line->allocator, *loan);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok ? RN_LINE_WORKS : RN_LINE_FAILS;
}

rn_line_state_t rn_line_hear(rn_line_t* line) {
  while (line->state != RN_LINE_FAILS) {
    rn_loan_t loan;
    int board;
    long size = rn_shared_receive(line->fd, &loan, sizeof loan, &board);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    line->state = size == (long)sizeof loan ? take_packet(line, &loan, board) : RN_LINE_FAILS;
    if (board >= 0) close(board);
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

bool rn_line_has_board(const rn_line_t* line) {
  return line->state == RN_LINE_WORKS && line->board;
}

bool rn_line_look(rn_line_t* line, rn_shown_key_t key, void* to, size_t size) {
  return rn_line_has_board(line) && rn_board_view_take(line->board, key, to, size);
}
