// Processes of containers: see container_process.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // vfork, execvpe, pipe2
#endif
#include "serve/model/container_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/container.h"
#include "base/fs.h"

#define MAX_LINE 1024         // longer lines are cut
#define LINES_PER_SECOND 100  // in the log; more are counted
#define SECOND_NS INT64_C(1000000000)
#define OUT_OF_MEMORY_SCORE "500"  // the kernel takes containers before the server

struct rn_container_process_t {
  rn_allocator_t allocator;
  rn_container_process_options_t options;
  pid_t pid;
  rn_watch_t life, output;  // the pidfd, which becomes readable at the end; stdout and stderr
  char line[MAX_LINE], last[MAX_LINE];
  size_t line_size;
  int64_t second_ns;  // when the current second of the limit began
  int lines, left_out;
  char end[64];
};

static const rn_env_t* env_of(const rn_container_process_t* process) {
  return rn_loop_env(process->options.loop);
}

// What the child needs, made before it exists: it shares our memory until it executes the program,
// and may only make system calls.
typedef struct container_launch_t {
  const rn_container_process_options_t* options;
  int connection, output, none;
  pid_t parent;
  volatile int error;  // set by the child if it cannot execute the program
} container_launch_t;

static void become_container(container_launch_t* launch) {
  const rn_container_process_options_t* options = launch->options;
  setpgid(0, 0);  // Ctrl-C is for the server
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch->parent) _exit(127);
  for (int i = 1; i < NSIG; ++i) signal(i, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (options->memory_bytes) {
    rlim_t bytes = (rlim_t)options->memory_bytes;
    setrlimit(RLIMIT_DATA, &(struct rlimit){.rlim_cur = bytes, .rlim_max = bytes});
  }
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0 && write(score, OUT_OF_MEMORY_SCORE, sizeof OUT_OF_MEMORY_SCORE - 1) > 0)
    close(score);
  // The descriptors are above RN_CONTAINER_FD, so none is overwritten before it is used.
  bool is_set = dup2(launch->none, STDIN_FILENO) >= 0 && dup2(launch->output, STDOUT_FILENO) >= 0 &&
                dup2(launch->output, STDERR_FILENO) >= 0 &&
                dup2(launch->connection, RN_CONTAINER_FD) >= 0 && chdir(options->folder) == 0;
  if (is_set) {
    syscall(SYS_close_range, RN_CONTAINER_FD + 1, ~0U, 0);
    execvpe(options->argv[0], (char* const*)options->argv, (char* const*)options->envp);
  }
  launch->error = errno;
  // Sanitizers turn vfork into fork: then this line alone tells.
  static const char why[] = ": cannot be executed\n";
  const char* program = options->argv[0];
  const struct iovec line[] = {{(char*)program, strlen(program)}, {(char*)why, sizeof why - 1}};
  _exit(writev(STDERR_FILENO, line, 2) > 0 ? 127 : 126);
}

// vfork: a server with large models would spend long copying page tables for fork.
static pid_t __attribute__((noinline)) launch_process(container_launch_t* launch) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pid_t pid = vfork();
  if (pid == 0) become_container(launch);
  if (pid < 0) launch->error = errno;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return pid;
}

static void log_line(rn_container_process_t* process) {
  const rn_env_t* env = env_of(process);
  size_t size = process->line_size;
  process->line_size = 0;
  if (!size) return;
  snprintf(process->last, sizeof process->last, "%.*s", (int)size, process->line);
  int64_t now = env->now_ns(env->self);
  if (now - process->second_ns >= SECOND_NS) {
    if (process->left_out)
      rn_log(env, RN_LOG_WARNING, "%s: %d lines were left out", process->options.name,
             process->left_out);
    process->second_ns = now;
    process->lines = process->left_out = 0;
  }
  if (process->lines++ < LINES_PER_SECOND)
    rn_log(env, RN_LOG_INFO, "%s: %s", process->options.name, process->last);
  else
    process->left_out++;
}

static void take_output(rn_container_process_t* process, const char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] == '\n')
      log_line(process);
    else if (process->line_size < MAX_LINE - 1)
      process->line[process->line_size++] = bytes[i];
  }
}

static void close_watch(rn_loop_t* loop, rn_watch_t* watch) {
  if (!watch->socket) return;
  rn_loop_unwatch(loop, watch);
  watch->socket->vtable->close(watch->socket);
  watch->socket = NULL;
}

// Reads at most |limit| bytes of output. False at the end.
static bool read_output_bytes(rn_container_process_t* process, size_t limit) {
  char bytes[4096];
  while (limit && process->output.socket) {
    ssize_t got = read(rn_net_descriptor(process->output.socket), bytes,
                       sizeof bytes < limit ? sizeof bytes : limit);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    take_output(process, bytes, (size_t)got);
    limit -= (size_t)got;
  }
  return true;
}

static void output_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  (void)can_read, (void)can_write;
  rn_container_process_t* process = RN_CONTAINER_OF(watch, rn_container_process_t, output);
  if (!read_output_bytes(process, (size_t)64 << 10)) close_watch(process->options.loop, watch);
}

static void describe_end(rn_container_process_t* process, const siginfo_t* info) {
  if (info->si_code == CLD_EXITED)
    snprintf(process->end, sizeof process->end, "exited with status %d", info->si_status);
  else
    snprintf(process->end, sizeof process->end, "was killed by signal %d", info->si_status);
}

static void life_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  (void)can_read, (void)can_write;
  rn_container_process_t* process = RN_CONTAINER_OF(watch, rn_container_process_t, life);
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    snprintf(process->end, sizeof process->end, "ended");
  } else {
    if (!info.si_pid) return;
    // Until it is reaped, its number belongs to it: this reaches its own children alone.
    kill(-process->pid, SIGKILL);
    waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG);
    describe_end(process, &info);
  }
  read_output_bytes(process, (size_t)1 << 20);
  log_line(process);
  close_watch(process->options.loop, &process->output);
  close_watch(process->options.loop, &process->life);
  process->options.ended(process->options.self, process);
}

void rn_container_process_free(rn_container_process_t* process) {
  if (process) RN_FREE(process->allocator, process);
}

void rn_container_process_signal(rn_container_process_t* process, int signal) {
  if (!process->life.socket) return;
  syscall(SYS_pidfd_send_signal, rn_net_descriptor(process->life.socket), signal, NULL, 0);
}

int rn_container_process_pid(const rn_container_process_t* process) { return (int)process->pid; }
const char* rn_container_process_end(const rn_container_process_t* process) { return process->end; }
const char* rn_container_process_last_line(const rn_container_process_t* process) {
  return process->last;
}

static void discard_fd(int fd) {
  if (fd >= 0) close(fd);
}

// Watches |fd|, which it takes.
static rn_status_t watch_fd(rn_loop_t* loop, int fd, const char* name, rn_allocator_t allocator,
                            void (*ready)(rn_watch_t*, bool, bool), rn_watch_t* out) {
  out->ready = ready;
  RN_RETURN_IF_ERROR(rn_net_adopt(fd, name, allocator, &out->socket));
  rn_status_t status = rn_loop_watch(loop, out);
  if (!rn_ok(status)) close_watch(loop, out);
  return status;
}

// A copy of |fd| above those that the child has; takes |fd|.
static int raise_fd(int fd) {
  int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, RN_CONTAINER_FD + 1);
  int error = errno;
  discard_fd(fd);
  errno = error;
  return high;
}

// Starts |process|; |output| is the write end of its output.
static rn_status_t launch_with(rn_container_process_t* process, int connection, int output) {
  const char* program = process->options.argv[0];
  container_launch_t launch = {.options = &process->options,
                               .connection = connection,
                               .output = output,
                               .none = raise_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)),
                               .parent = getpid()};
  if (connection < 0 || output < 0 || launch.none < 0) {
    rn_status_t status = rn_status_of_errno(program, errno);
    discard_fd(launch.none);
    return status;
  }
  process->pid = launch_process(&launch);
  discard_fd(launch.none);
  if (process->pid > 0 && !launch.error) return RN_OK;
  if (process->pid > 0) waitpid(process->pid, NULL, 0);  // it has exited
  process->pid = 0;
  return rn_status_of_errno(program, launch.error);
}

static rn_status_t start_process(rn_container_process_t* process, int fd) {
  rn_loop_t* loop = process->options.loop;
  int pipes[2] = {-1, -1};
  rn_status_t status = pipe2(pipes, O_CLOEXEC) == 0 ? RN_OK : rn_status_of_errno("pipe", errno);
  if (rn_ok(status))
    status = watch_fd(loop, pipes[0], "output of a container", process->allocator, output_ready,
                      &process->output);
  int output = rn_ok(status) ? raise_fd(pipes[1]) : pipes[1];
  int connection = raise_fd(fd);
  if (rn_ok(status)) status = launch_with(process, connection, output);
  discard_fd(connection);
  discard_fd(output);
  if (!rn_ok(status)) return status;
  int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
  status = pidfd < 0 ? rn_status_of_errno("pidfd_open", errno)
                     : watch_fd(loop, pidfd, "process of a container", process->allocator,
                                life_ready, &process->life);
  if (!rn_ok(status)) {
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
  }
  return status;
}

rn_status_t rn_container_process_start(const rn_container_process_options_t* options, int fd,
                                       rn_allocator_t allocator, rn_container_process_t** out) {
  *out = NULL;
  rn_container_process_t* process = NULL;
  rn_status_t status = RN_NEW(allocator, &process);
  if (!rn_ok(status)) {
    discard_fd(fd);
    return status;
  }
  process->allocator = allocator;
  process->options = *options;
  status = start_process(process, fd);
  if (!rn_ok(status)) {
    close_watch(options->loop, &process->output);
    rn_container_process_free(process);
    return status;
  }
  *out = process;
  return RN_OK;
}
