// A container for tests: y = 2 x for floats [-1,-1]; the first number of a batch may be an order.
// usage: fake_container [MODE]   modes are ways to start badly
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "fake_container.h"
#include "runnel/container.h"

static const int64_t any[] = {-1, -1}, one[] = {-1};
static const rn_guest_port_t x_port = {"x", RN_GUEST_FLOAT, 2, any};
static const rn_guest_port_t y_port = {"y", RN_GUEST_FLOAT, 2, any};
static const rn_guest_port_t s_port = {"s", RN_GUEST_STRING, 1, one};
static const rn_guest_signature_t signatures[] = {
    {"serving_default", &x_port, 1, &y_port, 1, RN_GUEST_BATCHED | RN_GUEST_PURE, NULL},
    {"text", &s_port, 1, &s_port, 1, RN_GUEST_BATCHED, NULL},
};

static int same_strings(rn_guest_call_t* call) {
  const rn_guest_tensor_t* s = &call->inputs[0];
  void* out = rn_guest_output(call, 0, s->rank, s->dims, s->size);
  if (!out) return RN_GUEST_NO_MEMORY;
  memcpy(out, s->data, s->size);
  return 0;
}

static void obey(int order) {
  if (order == FAKE_CRASH) abort();
  if (order == FAKE_EXIT) {
    fputs("so long\n", stderr);
    exit(7);
  }
  if (order == FAKE_HANG) pause();
  if (order == FAKE_STOP) raise(SIGSTOP);
  if (order == FAKE_SLOW) usleep(300000);
  if (order == FAKE_TALK)
    for (int i = 0; i < 1000; ++i) fprintf(stderr, "line %d\n", i);
}

static int run(void* self, rn_guest_call_t* call) {
  (void)self;
  if (call->signature == 1) return same_strings(call);
  const rn_guest_tensor_t* x = &call->inputs[0];
  const float* from = x->data;
  int order = x->size ? (int)from[0] : 0;
  obey(order);
  if (order == FAKE_FAIL) return rn_guest_fail(call, RN_GUEST_INVALID_ARGUMENT, "no such row");
  if (order == FAKE_MISSING) return 0;
  int64_t dims[] = {x->dims[0], x->dims[1]};
  if (order == FAKE_SHAPE) dims[0]++;
  size_t count = (size_t)(dims[0] * dims[1]);
  float* y = rn_guest_output(call, 0, 2, dims, count * sizeof *y);
  if (!y) return RN_GUEST_NO_MEMORY;
  for (size_t i = 0; i < count; ++i) y[i] = i < x->size / 4 ? 2 * from[i] : 0;
  if (order == FAKE_NAN) y[0] = NAN;
  if (order == FAKE_TYPE) call->outputs[0].size -= 4;
  return 0;
}

// A HELLO with the byte at |position| changed, then silence.
static int say_garbage(size_t position) {
  rn_guest_state_t state = {.fd = 3};
  const rn_guest_options_t options = {signatures, 2, run, NULL, 0};
  state.options = &options;
  rn_guest_begin(&state.out, 1, 0);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  state.fd = pair[0];
  pthread_mutex_init(&state.mutex, NULL);
  rn_guest_hello(&state);
  state.out.data[position % state.out.size] ^= (char)0x55;
  if (write(3, state.out.data, state.out.size) < 0) return 1;
  pause();
  return 0;
}

// A HELLO and the begin of a reply of a gigabyte that was not asked for.
static int flood(void) {
  static const char zeros[1 << 16];
  const rn_guest_options_t options = {signatures, 2, run, NULL, 0};
  rn_guest_state_t state = {.fd = 3, .options = &options};
  pthread_mutex_init(&state.mutex, NULL);
  rn_guest_hello(&state);
  const uint32_t header[] = {1 << 30, 5, 99, 0};
  if (write(3, header, sizeof header) < 0) return 1;
  while (write(3, zeros, sizeof zeros) > 0) {
  }
  return 1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* once = getenv("FAKE_ONCE");  // a file: if it exists, the start fails
  if (strcmp(mode, "exit") == 0 || (once && access(once, F_OK) == 0)) {
    fputs("first line\nModuleNotFoundError: no brain\n", stderr);
    return 3;
  }
  if (strcmp(mode, "flood") == 0) return flood();
  if (strcmp(mode, "mute") == 0) pause();
  if (strcmp(mode, "noise") == 0) {
    for (int i = 0; i < 1000 && write(3, "GET / HTTP/1.1\r\n\r\n", 18) > 0; ++i) {
    }
    pause();
  }
  if (strcmp(mode, "garbage") == 0) return say_garbage((size_t)atoi(argv[2]));
  if (strcmp(mode, "stubborn") == 0) {
    signal(SIGTERM, SIG_IGN);
    const rn_guest_options_t stubborn = {signatures, 2, run, NULL, 0};
    rn_guest_serve(&stubborn);
    for (;;) pause();
  }
  const rn_guest_options_t options = {signatures, 2, run, NULL, 100000};
  return rn_guest_serve(&options);
}
