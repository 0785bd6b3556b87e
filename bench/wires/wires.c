// The wire alone (src/dist/rpc/wire.h) between two processes, as ucx_perftest measures UCX:
// wires SIZE TURNS prints megabytes per second of values of SIZE bytes, one after the other, or,
// below 1 KiB, the microseconds that one takes, in a ping-pong. UCX_TLS chooses the transports.
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cache_alloc.h"
#include "dist/rpc/wire.h"

#define SMALL 1024

typedef struct wires_side_t wires_side_t;

typedef struct wires_round_t {
  rn_wire_take_t take;  // first
  rn_wire_put_t put;
  wires_side_t* side;
  int index;
} wires_round_t;

struct wires_side_t {
  rn_wire_t* wire;
  rn_loan_name_t line, to;  // to us, and from us
  wires_round_t* rounds;
  uint64_t* numbers;  // of the other side's takes
  int turns, socket;
  bool is_first;
  rn_tensor_t value;
  _Atomic int done;
};

static void need(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  _exit(rn_status_code(status) == RN_CODE_UNIMPLEMENTED ? 77 : 1);
}

static int64_t now(void) { return rn_env_system()->now_ns(NULL); }

static void say(const wires_side_t* side, const void* data, size_t size) {
  if (write(side->socket, data, size) != (ssize_t)size) _exit(1);
}

static void hear(const wires_side_t* side, void* data, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t got = read(side->socket, (char*)data + at, size - at);
    if (got <= 0) _exit(1);
    at += (size_t)got;
  }
}

static void on_put(rn_wire_put_t* put, bool is_sent) {
  (void)put;
  if (!is_sent) _exit(1);
}

static void put(wires_round_t* round) {
  wires_side_t* side = round->side;
  round->put = (rn_wire_put_t){.line = side->to,
                               .number = side->numbers[round->index],
                               .value = &side->value,
                               .done = on_put};
  if (!rn_wire_put(side->wire, &round->put)) _exit(1);
}

// A value has come: answers, in a ping-pong.
static void on_taken(rn_wire_take_t* take, rn_status_t status) {
  wires_round_t* round = (wires_round_t*)take;
  wires_side_t* side = round->side;
  need(status);
  rn_tensor_clear(&take->value);
  bool is_small = rn_tensor_bytes(&side->value) < SMALL;
  if (is_small && !side->is_first) put(round);
  if (is_small && side->is_first && round->index + 1 < side->turns) put(round + 1);
  side->done++;
}

static void expect(wires_round_t* round) {
  rn_status_t status = RN_OK;
  round->take = (rn_wire_take_t){.line = round->side->line, .done = on_taken};
  need(rn_wire_expect(round->side->wire, &round->take));
  round->take.value = (rn_tensor_t){0};
  rn_wire_settle(round->side->wire, &round->take, true, &status);
  need(status);
}

// Each side dials the other, tells it the line, and waits until it is dialed.
static void meet(wires_side_t* side, size_t size) {
  // As a server does: memory is used again.
  rn_cache_alloc_t* landing = NULL;
  need(rn_cache_alloc_create(rn_allocator_system(), size * 4, &landing));
  const rn_wire_options_t options = {.env = rn_env_system(),
                                     .allocator = rn_allocator_system(),
                                     .landing = rn_cache_allocator(landing),
                                     .is_local = true,
                                     .lease_ns = INT64_C(600000000000)};
  static char address[RN_WIRE_MAX_ADDRESS + 100];
  need(rn_wire_create(&options, &side->wire));
  rn_str_t own = rn_wire_address(side->wire);
  say(side, &own.size, sizeof own.size);
  say(side, own.data, own.size);
  size_t other = 0;
  hear(side, &other, sizeof other);
  hear(side, address, other);
  need(rn_wire_dial(side->wire, rn_str_n(address, other), &side->line));
  say(side, &side->line, sizeof side->line);
  hear(side, &side->to, sizeof side->to);
  while (!rn_wire_has(side->wire, side->to)) usleep(1000);
  need(rn_tensor_create(rn_allocator_system(), RN_INT8, (rn_shape_t){1, (int64_t[]){(int64_t)size}},
                        &side->value));
  memset(side->value.data, 1, size);
  side->rounds = calloc((size_t)side->turns, sizeof *side->rounds);
  side->numbers = calloc((size_t)side->turns, sizeof *side->numbers);
  for (int i = 0; i < side->turns; ++i) side->rounds[i] = (wires_round_t){.side = side, .index = i};
}

static void wait_for(const wires_side_t* side, int count) {
  while (side->done < count) usleep(50);
}

static void play(wires_side_t* side) {
  for (int i = 0; i < side->turns; ++i) {
    expect(&side->rounds[i]);
    say(side, &side->rounds[i].take.number, sizeof(uint64_t));
    hear(side, &side->numbers[i], sizeof(uint64_t));
  }
  int64_t start = now();
  if (side->is_first) put(&side->rounds[0]);
  wait_for(side, side->turns);
  if (side->is_first) printf("%.3f\n", (double)(now() - start) / side->turns / 2000);
}

// The first one puts; the other one says when a value is there. The first two are not counted.
static void pour(wires_side_t* side, size_t size) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < side->turns; ++i) {
    if (!side->is_first) {
      expect(&side->rounds[i]);
      say(side, &side->rounds[i].take.number, sizeof(uint64_t));
      wait_for(side, i + 1);
      say(side, &(char){1}, 1);
      continue;
    }
    char is_there;
    hear(side, &side->numbers[i], sizeof(uint64_t));
    int64_t start = now();
    put(&side->rounds[i]);
    hear(side, &is_there, 1);
    if (i >= 2 && now() - start < best) best = now() - start;
  }
  if (side->is_first) printf("%.1f\n", (double)size * 1e3 / (double)best);
}

int main(int argc, char** argv) {
  if (argc != 3) return fputs("usage: wires SIZE TURNS\n", stderr), 2;
  size_t size = (size_t)atoll(argv[1]);
  wires_side_t side = {.turns = atoi(argv[2])};
  int ends[2];
  if (side.turns < 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  pid_t child = fork();
  side.is_first = child != 0;
  side.socket = ends[side.is_first];
  meet(&side, size);
  if (size < SMALL)
    play(&side);
  else
    pour(&side, size);
  fflush(stdout);
  char last = 1;
  say(&side, &last, 1);
  hear(&side, &last, 1);
  rn_wire_destroy(side.wire);
  int status = 0;
  if (child) waitpid(child, &status, 0);
  if (!child) _exit(0);
  return status != 0;
}
