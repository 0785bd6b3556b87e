// Fuzzes the port of a task with HTTP/2 frames, HTTP/1, or neither. The first byte selects whether
// to send HTTP/2's preface and settings first, and the size of the pieces. The task must then still
// answer a normal request.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/net.h"
#include "dist/server.h"
#include "fuzz/util.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rn_server_t* server;
static rn_env_t env;
static const char* address;

// Runs before the process ends, so that remaining allocations are leaks.
static void stop(void) { rn_server_destroy(server); }

// Interrupts system calls a thousand times per second, as libFuzzer's own timer does once in a
// while.
static void interrupt(int number) { (void)number; }
static void start_interrupting(void) {
  const struct sigaction action = {.sa_handler = interrupt};  // no SA_RESTART
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
  const struct timespec often = {.tv_nsec = 1000000};
  timer_t timer;
  fuzz_check(sigaction(SIGUSR2, &action, NULL) == 0);
  fuzz_check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  fuzz_check(timer_settime(timer, 0, &(struct itimerspec){often, often}, NULL) == 0);
}

static void start(void) {
  env = *rn_env_system();
  env.fs = &fuzz_no_files;
  const rn_server_task_t task = {.job = RN_STR("worker"), .address = RN_STR("localhost:0")};
  rn_server_options_t options = {.env = &env,
                                 .allocator = rn_allocator_system(),
                                 .tasks = &task,
                                 .task_count = 1,
                                 .job = task.job,
                                 .max_message = 1 << 20,
                                 .max_client_memory = 16 << 20,
                                 .max_streams = 1000};
  fuzz_must(rn_server_create(&options, &server));
  fuzz_must(rn_server_start(server));
  address = rn_server_target(server) + strlen("grpc://");
  atexit(stop);
  start_interrupting();
}

static rn_socket_t* connect_to_task(void) {
  rn_socket_t* socket;
  rn_status_t status;
  while (!rn_ok(status = env.net->connect(env.net_self, address, RN_FOREVER, rn_allocator_system(),
                                          &socket))) {
    rn_status_free(status);  // too many connections per minute: wait for ports
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
  return socket;
}

// Writes in pieces, as far as the other end takes it.
static void put(rn_socket_t* socket, rn_str_t bytes, size_t piece) {
  rn_status_t status = RN_OK;
  while (bytes.size && rn_ok(status)) {
    rn_str_t next = rn_str_n(bytes.data, bytes.size < piece ? bytes.size : piece);
    status = rn_net_write_all(socket, next, RN_FOREVER);
    bytes = rn_str_n(bytes.data + next.size, bytes.size - next.size);
  }
  rn_status_free(status);
}

static void check_health(void) {
  rn_socket_t* socket = connect_to_task();
  char answer[12];
  put(socket, RN_STR("GET /healthz HTTP/1.1\r\n\r\n"), 100);
  fuzz_must(rn_net_read_all(socket, answer, sizeof answer, RN_FOREVER));
  fuzz_check(rn_str_eq(rn_str_n(answer, sizeof answer), RN_STR("HTTP/1.1 200")));
  socket->vtable->close(socket);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pthread_once(&once, start);
  fuzz_bytes_t bytes = {data, size};
  uint8_t how = fuzz_byte(&bytes);
  rn_socket_t* socket = connect_to_task();
  if (how & 1) put(socket, RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"), 1000);
  put(socket, rn_str_n((const char*)bytes.at, bytes.left), how & 2 ? 7 : 65536);
  socket->vtable->finish(socket);
  char answer[4096];
  rn_status_t status = RN_OK;
  for (size_t got = 1; got && rn_ok(status);)
    status = socket->vtable->read(socket, answer, sizeof answer, RN_FOREVER, &got);
  rn_status_free(status);  // the task may reset a connection that breaks the protocol
  socket->vtable->close(socket);
  check_health();
  return 0;
}
