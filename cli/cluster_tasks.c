// The processes of a local cluster: see cluster_tasks.h.
#include "cli/cluster_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

#define READY_NS INT64_C(30000000000)
#define FIRST_WAIT_NS INT64_C(100000000)     // delay before a restart; doubled each time
#define LONGEST_WAIT_NS INT64_C(5000000000)  // up to this
#define STEADY_NS INT64_C(60000000000)       // a task that ran this long does not count as failed

// cluster.json: for `runnel cluster status` and `stop`, and for people.
static rn_status_t write_down(const rn_up_t* up) {
  rn_strbuf_t text;
  rn_str_t path;
  rn_arena_t arena;
  rn_arena_init(&arena, up->cli->allocator);
  rn_strbuf_init(&text, up->cli->allocator);
  rn_strbuf_printf(&text, "{\"cluster\": %s,\n \"pids\": {", up->json.data);
  for (size_t i = 0; i < up->task_count; ++i)
    rn_strbuf_printf(&text, "%s\"%.*s:%d\": %ld", i ? ", " : "", RN_STR_ARGS(up->tasks[i].def->job),
                     up->tasks[i].def->index, (long)up->tasks[i].pid);
  rn_strbuf_printf(&text, "}}\n");
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_printf(&arena, &path, "%s/cluster.json", up->dir.data);
  if (rn_ok(status)) status = rn_fs_write(up->cli->env, path.data, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  rn_arena_clear(&arena);
  return status;
}

bool rn_up_use_certificate(const rn_up_t* up, const char* name) {
  static const char* const variables[] = {"RUNNEL_TLS_CERT", "RUNNEL_TLS_KEY", "RUNNEL_TLS_CA"};
  static const char* const suffixes[] = {".pem", "-key.pem", ""};
  for (int i = 0; i < 3; ++i) {
    char* path = NULL;
    if (asprintf(&path, "%s/certs/%s%s", up->dir.data, i < 2 ? name : "ca.pem", suffixes[i]) < 0)
      return false;
    setenv(variables[i], path, 1);
    free(path);
  }
  return true;
}

// Runs in the child process: executes the task.
static void become_task(const rn_up_t* up, const rn_up_task_t* task) {
  char index[32], threads[32], lease[32], drain[32], gpus[32], job[256];
  snprintf(index, sizeof index, "%d", task->def->index);
  snprintf(threads, sizeof threads, "%lld", (long long)up->threads);
  snprintf(lease, sizeof lease, "%lld", (long long)up->lease);
  snprintf(drain, sizeof drain, "%lld", (long long)up->drain);
  snprintf(job, sizeof job, "%.*s", RN_STR_ARGS(task->def->job));
  // Parameter servers hold variables for all workers, and leave the GPUs to them.
  bool is_ps = strcmp(job, "ps") == 0, says_gpus = is_ps || up->gpus >= 0;
  snprintf(gpus, sizeof gpus, "%lld", is_ps ? 0 : (long long)up->gpus);
  // Ctrl-C goes to the command only. The tasks are killed if this process dies.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int keep = task->failures ? O_APPEND : O_TRUNC;
  int log = open(task->log, O_WRONLY | O_CREAT | O_CLOEXEC | keep, 0644);
  int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || none < 0) _exit(127);
  dup2(none, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  char name[300];
  snprintf(name, sizeof name, "%s-%s", job, index);
  if (up->is_secure && !rn_up_use_certificate(up, name)) _exit(127);
  execl("/proc/self/exe", "runnel", "server", "--cluster", up->brief.data, "--job", job, "--task",
        index, "--threads", threads, "--lease", lease, "--drain", drain,
        says_gpus ? "--gpus" : (char*)NULL, gpus, (char*)NULL);
  _exit(127);
}

static int64_t now_of(const rn_up_t* up) { return up->cli->env->now_ns(up->cli->env->self); }

// Returns when the child has executed the task's program: until then the child also holds the ports
// of later tasks.
static rn_status_t spawn(rn_up_t* up, rn_up_task_t* task) {
  int started[2];  // closed by exec
  fflush(stdout);
  if (task->listener) task->listener->vtable->close(task->listener);
  task->listener = NULL;
  if (pipe2(started, O_CLOEXEC) != 0) return rn_resource_exhausted("no pipe: %s", strerror(errno));
  pid_t pid = fork();
  if (pid == 0) {
    pthread_sigmask(SIG_UNBLOCK, &up->signals, NULL);
    become_task(up, task);
  }
  rn_status_t status = pid < 0 ? rn_resource_exhausted("no process: %s", strerror(errno)) : RN_OK;
  close(started[1]);
  while (pid > 0 && read(started[0], &(char){0}, 1) < 0 && errno == EINTR) continue;
  close(started[0]);
  task->pid = pid > 0 ? pid : 0;
  task->started_ns = now_of(up);
  return status;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); }

// The last line of a task's log, which says why it ended.
static void last_line(const char* path, char* out, size_t room) {
  FILE* file = fopen(path, "re");
  out[0] = '\0';
  for (char line[512]; file && fgets(line, sizeof line, file);) snprintf(out, room, "%s", line);
  out[strcspn(out, "\n")] = '\0';
  if (file) fclose(file);
}

static rn_status_t wait_ready(rn_up_t* up, rn_up_task_t* task) {
  int64_t deadline = now_of(up) + READY_NS;
  for (;; nap()) {
    rn_strbuf_t body;
    rn_strbuf_init(&body, up->cli->allocator);
    int code = 0;
    rn_cli_http_t request = {.env = up->cli->env,
                             .allocator = up->cli->allocator,
                             .tls = up->tls,
                             .address = task->def->address.data,
                             .method = "GET",
                             .path = "/readyz",
                             .timeout_ns = READY_NS};
    rn_status_t status = rn_cli_http(&request, &code, &body);
    rn_strbuf_clear(&body);
    bool is_ready = rn_ok(status) && code == 200;
    rn_status_free(status);
    if (is_ready) return RN_OK;
    char line[512];
    if (waitpid(task->pid, NULL, WNOHANG) == task->pid) {
      task->pid = 0;
      last_line(task->log, line, sizeof line);
      return rn_unavailable("task %d of job %.*s has not started: %s", task->def->index,
                            RN_STR_ARGS(task->def->job), line);
    }
    if (now_of(up) > deadline)
      return rn_deadline_exceeded("task %d of job %.*s is not ready after %d s", task->def->index,
                                  RN_STR_ARGS(task->def->job), (int)(READY_NS / 1000000000));
  }
}

rn_status_t rn_up_start(rn_up_t* up) {
  for (size_t i = 0; i < up->task_count; ++i) RN_RETURN_IF_ERROR(spawn(up, &up->tasks[i]));
  rn_cli_progress_t progress = rn_cli_progress(up->cli, "tasks", (int64_t)up->task_count);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < up->task_count; ++i) {
    status = wait_ready(up, &up->tasks[i]);
    rn_cli_progress_set(&progress, (int64_t)i + 1);
  }
  rn_cli_progress_end(&progress);
  RN_RETURN_IF_ERROR(status);
  return write_down(up);
}

// Stops the tasks of one kind: signals them, waits, and kills those that do not end.
void rn_up_stop(rn_up_t* up, bool is_ps) {
  bool is_left = true;
  for (size_t i = 0; i < up->task_count; ++i)
    if (up->tasks[i].pid && ((int64_t)i < up->ps) == is_ps) kill(up->tasks[i].pid, SIGTERM);
  for (int64_t deadline = now_of(up) + (up->drain + 4) * 1000000000; is_left; nap()) {
    is_left = false;
    for (size_t i = 0; i < up->task_count; ++i) {
      rn_up_task_t* task = &up->tasks[i];
      if (!task->pid || ((int64_t)i < up->ps) != is_ps) continue;
      if (now_of(up) > deadline) kill(task->pid, SIGKILL);
      if (waitpid(task->pid, NULL, WNOHANG) != 0)
        task->pid = 0;
      else
        is_left = true;
    }
  }
}

static pid_t start_command(rn_up_t* up) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid != 0) return pid;
  char target[300], *config = NULL;
  snprintf(target, sizeof target, "grpc%s://%s", up->is_secure ? "s" : "",
           up->tasks[up->ps].def->address.data);
  if (asprintf(&config, "{\"cluster\": %s}", up->json.data) < 0) _exit(127);
  setenv("TF_CONFIG", config, 1);
  setenv("RUNNEL_CLUSTER", up->brief.data, 1);
  setenv("RUNNEL_TARGET", target, 1);
  pthread_sigmask(SIG_UNBLOCK, &up->signals, NULL);
  execvp(up->command[0], up->command);
  fprintf(stderr, "runnel: cannot run %s: %s\n", up->command[0], strerror(errno));
  _exit(127);
}

// With --restart: schedules a restart, with a delay that grows with the number of failures.
static void plan_restart(rn_up_t* up, rn_up_task_t* task) {
  int64_t now = now_of(up), wait = FIRST_WAIT_NS;
  if (now - task->started_ns > STEADY_NS) task->failures = 0;
  for (int i = 0; i < task->failures && wait < LONGEST_WAIT_NS; ++i) wait *= 2;
  task->failures++;
  task->again_ns = now + (wait < LONGEST_WAIT_NS ? wait : LONGEST_WAIT_NS);
}

// Reports tasks that ended by themselves; the others go on, as they would on other machines.
static void note_ended(rn_up_t* up, pid_t pid, int state) {
  for (size_t i = 0; i < up->task_count; ++i) {
    rn_up_task_t* task = &up->tasks[i];
    if (task->pid != pid) continue;
    task->pid = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) continue;  // it was asked to end
    if (up->restarts) plan_restart(up, task);
    fprintf(stderr, "runnel: task %d of job %.*s has ended (%s %d)%s; see %s\n", task->def->index,
            RN_STR_ARGS(task->def->job), WIFSIGNALED(state) ? "signal" : "exit status",
            WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state),
            up->restarts ? " and is started again" : "", task->log);
  }
}

// Restarts the tasks that are due. Returns the nanoseconds until the next restart, or -1.
static int64_t restart_tasks(rn_up_t* up) {
  int64_t next = -1;
  for (size_t i = 0; i < up->task_count; ++i) {
    rn_up_task_t* task = &up->tasks[i];
    if (!task->again_ns) continue;
    int64_t left = task->again_ns - now_of(up);
    if (left > 0) {
      if (next < 0 || left < next) next = left;
      continue;
    }
    task->again_ns = 0;
    rn_status_t status = spawn(up, task);
    if (rn_ok(status)) status = write_down(up);
    if (!rn_ok(status))
      fprintf(stderr, "runnel: task %d of job %.*s was not started again: %s\n", task->def->index,
              RN_STR_ARGS(task->def->job), rn_status_message(status));
    rn_status_free(status);
  }
  return next;
}

static bool is_any_left(const rn_up_t* up) {
  for (size_t i = 0; i < up->task_count; ++i)
    if (up->tasks[i].pid || up->tasks[i].again_ns) return true;
  return false;
}

// Waits for a signal; 0 if a restart is due before one comes.
static int next_signal(const rn_up_t* up, int64_t wait_ns) {
  int signal = 0;
  if (wait_ns < 0) {
    while (sigwait(&up->signals, &signal) != 0) continue;
    return signal;
  }
  struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
  signal = sigtimedwait(&up->signals, NULL, &wait);
  return signal > 0 ? signal : 0;
}

// Waits until the command ends or, without one, for a signal. Returns the exit status.
int rn_up_attend(rn_up_t* up) {
  pid_t command = up->command ? start_command(up) : 0;
  if (command < 0) return 1;
  for (;;) {
    int state, signal = next_signal(up, restart_tasks(up));
    if (signal == SIGTERM && command) kill(command, SIGTERM);
    if (signal && signal != SIGCHLD && !command) return 0;
    for (pid_t pid; (pid = waitpid(-1, &state, WNOHANG)) > 0;) {
      if (pid != command)
        note_ended(up, pid, state);
      else
        return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    }
    if (!command && !is_any_left(up)) return 0;
  }
}
