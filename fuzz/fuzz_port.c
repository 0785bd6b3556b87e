// Fuzzes the port of a task with HTTP/2 frames, HTTP/1, or neither. The first byte selects whether
// to send HTTP/2's preface and settings first, and the size of the pieces. The task must then still
// answer a normal request.
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/server.h"
#include "fuzz/util.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rn_server_t* server;
static rn_env_t env;
static int port;

// Runs before the process ends, so that remaining allocations are leaks.
static void stop(void) { rn_server_destroy(server); }

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
  port = atoi(strrchr(rn_server_target(server), ':') + 1);
  atexit(stop);
}

static int connect_to_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  while (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
    fuzz_check(errno == EADDRNOTAVAIL);  // too many connections per minute: wait for ports
    usleep(100000);
  }
  return fd;
}

// Writes in pieces, as far as the other end takes it.
static void put(int fd, rn_str_t bytes, size_t piece) {
  while (bytes.size) {
    ssize_t n = send(fd, bytes.data, bytes.size < piece ? bytes.size : piece, MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes = rn_str_n(bytes.data + n, bytes.size - (size_t)n);
  }
}

static void check_health(void) {
  int fd = connect_to_port();
  put(fd, RN_STR("GET /healthz HTTP/1.1\r\n\r\n"), 100);
  char answer[13] = {0};
  fuzz_check(recv(fd, answer, 12, MSG_WAITALL) == 12 && strcmp(answer, "HTTP/1.1 200") == 0);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pthread_once(&once, start);
  fuzz_bytes_t bytes = {data, size};
  uint8_t how = fuzz_byte(&bytes);
  int fd = connect_to_port();
  if (how & 1) put(fd, RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"), 1000);
  put(fd, rn_str_n((const char*)bytes.at, bytes.left), how & 2 ? 7 : 65536);
  shutdown(fd, SHUT_WR);
  char answer[4096];
  while (recv(fd, answer, sizeof answer, 0) > 0) continue;
  close(fd);
  check_health();
  return 0;
}
