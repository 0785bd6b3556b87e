// Starts the tasks of a cluster: see launch.h.
#include "launch.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

enum { MOST = 64, WORDS = 64 };

// Each port stays bound here without listening until this process ends, so that no other program
// gets it. Servers may listen there nevertheless, because they set SO_REUSEADDR too.
void find_ports(int* ports, int count) {
  for (int i = 0; i < count; ++i) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(fd, (struct sockaddr*)&address, size) ||
        getsockname(fd, (struct sockaddr*)&address, &size))
      example_fail("the cluster", "no free port");
    ports[i] = ntohs(address.sin_port);
  }
}

static void write_cluster(char* out, size_t size, int servers, int workers) {
  int ports[2 * MOST];
  find_ports(ports, servers + workers);
  size_t at = 0;
  for (int i = 0; i < servers + workers; ++i) {
    const char* before = i == 0 ? "ps=" : i == servers ? ",worker=" : "|";
    at += (size_t)snprintf(out + at, size - at, "%s127.0.0.1:%d", before, ports[i]);
  }
}

// Starts this program with |argv| followed by |more|, which ends with NULL.
static pid_t start(char** argv, const char* const* more) {
  const char* words[2 * WORDS];
  int count = 0;
  for (; argv[count] && count < WORDS; ++count) words[count] = argv[count];
  for (int i = 0; i < WORDS && (words[count + i] = more[i]); ++i) continue;
  fflush(stdout);
  pid_t parent = getpid(), pid = fork();
  if (pid < 0) example_fail("the cluster", "no process for a task");
  if (pid > 0) return pid;
  // A task is killed when the process that started it dies.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execv("/proc/self/exe", (char**)(uintptr_t)words);
  _exit(127);
}

static pid_t start_task(char** argv, const char* cluster, const char* job, int task) {
  char number[16];
  snprintf(number, sizeof number, "%d", task);
  return start(argv,
               (const char* const[]){"--cluster", cluster, "--job", job, "--task", number, NULL});
}

// The exit code of the first process that failed; 0 if all succeeded.
static int wait_for(const pid_t* pids, int count) {
  int worst = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    waitpid(pids[i], &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (!worst) worst = code;
  }
  return worst;
}

int launch(char** argv, int servers, int workers) {
  char cluster[4096];
  pid_t pids[2 * MOST];
  if (servers < 1 || workers < 1 || servers > MOST || workers > MOST)
    example_fail("the cluster", "needs 1 to 64 parameter servers and workers");
  write_cluster(cluster, sizeof cluster, servers, workers);
  for (int i = 0; i < servers; ++i) pids[i] = start_task(argv, cluster, "ps", i);
  for (int i = 0; i < workers; ++i) pids[servers + i] = start_task(argv, cluster, "worker", i);
  int worst = wait_for(pids + servers, workers);
  for (int i = 0; i < servers; ++i) kill(pids[i], SIGTERM);
  for (int i = 0; i < servers; ++i) waitpid(pids[i], NULL, 0);
  return worst;
}

int launch_clients(char** argv, int workers) {
  pid_t pids[MOST];
  if (workers < 1 || workers > MOST) example_fail("the cluster", "needs 1 to 64 workers");
  for (int i = 0; i < workers; ++i) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    pids[i] =
        start(argv, (const char* const[]){"--client", "--job", "worker", "--task", number, NULL});
  }
  return wait_for(pids, workers);
}
