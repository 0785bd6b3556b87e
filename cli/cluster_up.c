// runnel cluster up: a cluster of processes on this machine.
#include "cli/cluster_up.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/net.h"
#include "cli/progress.h"

#define READY_NS INT64_C(30000000000)
#define MAX_TASKS 1000
#define FIRST_WAIT_NS INT64_C(100000000)     // before a task is started again; doubled each time
#define LONGEST_WAIT_NS INT64_C(5000000000)  // up to this
#define STEADY_NS INT64_C(60000000000)       // a task that ran so long has not failed

typedef struct task_t {
  const rn_server_task_t* def;
  rn_socket_t* listener;  // holds the port until the task takes it
  char* log;              // in the arena
  pid_t pid;              // 0: it does not run
  int64_t started_ns;
  int64_t again_ns;  // when to start it again; 0: not
  int failures;      // times that it ended by itself soon after its start
} task_t;

typedef struct up_t {
  rn_cli_t* cli;
  rn_cli_cluster_t cluster;
  task_t* tasks;
  size_t task_count;
  rn_str_t dir, json, brief;  // |brief|: ps=a:1,worker=b:2
  bool owns_dir, is_secure, restarts;
  rn_tls_t* tls;  // Owned: a client's, where the tasks have certificates
  int64_t ps, workers, threads, lease, drain;
  char** command;  // NULL: none
  sigset_t signals;
} up_t;

static rn_status_t read_arguments(up_t* up) {
  rn_cli_t* cli = up->cli;
  const char* dir = rn_cli_text(cli, "--dir");
  up->ps = rn_cli_number(cli, "--ps", 1);
  up->workers = rn_cli_number(cli, "--workers", 1);
  up->threads = rn_cli_number(cli, "--threads", 0);
  up->lease = rn_cli_number(cli, "--lease", 10);
  up->drain = rn_cli_number(cli, "--drain", 10);
  up->is_secure = rn_cli_has(cli, "--tls");
  up->restarts = rn_cli_has(cli, "--restart");
  if (dir) up->dir = rn_str(dir);
  if (cli->rest > 0)
    return rn_cli_usage(cli, "put -- before the command '%s'", rn_cli_word(cli, 0));
  RN_RETURN_IF_ERROR(rn_vec_push(&cli->words, cli->allocator, (const char*)NULL));
  if (cli->words.count > 1) up->command = (char**)cli->words.items;
  if (up->ps + up->workers > MAX_TASKS)
    return rn_cli_usage(cli, "%d tasks are the most for one machine", MAX_TASKS);
  return RN_OK;
}

static rn_status_t make_dir(up_t* up) {
  rn_arena_t* arena = &up->cluster.arena;
  if (up->dir.size) return rn_fs_make_directories(up->cli->env, up->dir.data);
  const char* root = getenv("TMPDIR");
  rn_str_t pattern;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &pattern, "%s/runnel-cluster-XXXXXX", root && *root ? root : "/tmp"));
  if (!mkdtemp((char*)pattern.data))
    return rn_unavailable("no folder %s can be made: %s", pattern.data, strerror(errno));
  up->dir = pattern;
  up->owns_dir = true;
  return RN_OK;
}

// Ports that are free, held until the tasks take them.
static rn_status_t find_ports(up_t* up) {
  const rn_env_t* env = up->cli->env;
  rn_arena_t* arena = &up->cluster.arena;
  up->task_count = (size_t)(up->ps + up->workers);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, up->task_count, &up->tasks));
  for (size_t i = 0; i < up->task_count; ++i) {
    task_t* task = &up->tasks[i];
    bool is_ps = (int64_t)i < up->ps;
    rn_strbuf_t address;
    rn_strbuf_init(&address, up->cli->allocator);
    rn_status_t status =
        env->net->listen(env->net_self, "127.0.0.1:0", up->cli->allocator, &task->listener);
    if (rn_ok(status)) status = task->listener->vtable->address(task->listener, &address);
    if (rn_ok(status))
      status = rn_cli_cluster_add(&up->cluster, is_ps ? RN_STR("ps") : RN_STR("worker"),
                                  (int32_t)(is_ps ? (int64_t)i : (int64_t)i - up->ps),
                                  rn_strbuf_view(&address));
    rn_strbuf_clear(&address);
    RN_RETURN_IF_ERROR(status);
  }
  for (size_t i = 0; i < up->task_count; ++i) {
    rn_str_t log;
    up->tasks[i].def = &up->cluster.tasks.items[i];
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &log, "%s/%.*s-%d.log", up->dir.data,
                                       RN_STR_ARGS(up->tasks[i].def->job),
                                       up->tasks[i].def->index));
    up->tasks[i].log = (char*)log.data;
  }
  return RN_OK;
}

// The cluster in both forms that others want.
static rn_status_t describe(up_t* up) {
  rn_strbuf_t json, brief;
  rn_strbuf_init(&json, up->cli->allocator);
  rn_strbuf_init(&brief, up->cli->allocator);
  rn_strbuf_printf(&json, "{");
  for (size_t i = 0; i < up->task_count; ++i) {
    const rn_server_task_t* def = up->tasks[i].def;
    bool is_first = def->index == 0;
    rn_strbuf_printf(&json, "%s", is_first && i ? "], " : i ? ", " : "");
    if (is_first) rn_strbuf_printf(&json, "\"%.*s\": [", RN_STR_ARGS(def->job));
    rn_strbuf_printf(&json, "\"%s\"", def->address.data);
    if (is_first)
      rn_strbuf_printf(&brief, "%s%.*s=%s", i ? "," : "", RN_STR_ARGS(def->job), def->address.data);
    else
      rn_strbuf_printf(&brief, "|%s", def->address.data);
  }
  rn_strbuf_printf(&json, "]}");
  rn_status_t status = rn_strbuf_status(&json);
  if (rn_ok(status)) status = rn_strbuf_status(&brief);
  if (rn_ok(status)) status = rn_arena_str(&up->cluster.arena, rn_strbuf_view(&json), &up->json);
  if (rn_ok(status)) status = rn_arena_str(&up->cluster.arena, rn_strbuf_view(&brief), &up->brief);
  rn_strbuf_clear(&json);
  rn_strbuf_clear(&brief);
  return status;
}

// cluster.json: for `runnel cluster status` and `stop`, and for people.
static rn_status_t write_down(const up_t* up) {
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

// Puts the certificate of |name| into the environment.
static bool use_certificate(const up_t* up, const char* name) {
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

// Certificates for the tasks and the command, and the client's for this process.
static rn_status_t make_certificates(up_t* up) {
  rn_str_t certs;
  RN_RETURN_IF_ERROR(rn_arena_printf(&up->cluster.arena, &certs, "%s/certs", up->dir.data));
  RN_RETURN_IF_ERROR(rn_cli_cert_make(up->cli, &up->cluster, certs.data));
  if (!use_certificate(up, "client")) return rn_out_of_memory();
  return rn_cli_tls_of_env(up->cli, &up->tls);
}

// In the child: becomes the task.
static void become_task(const up_t* up, const task_t* task) {
  char index[32], threads[32], lease[32], drain[32], job[256];
  snprintf(index, sizeof index, "%d", task->def->index);
  snprintf(threads, sizeof threads, "%lld", (long long)up->threads);
  snprintf(lease, sizeof lease, "%lld", (long long)up->lease);
  snprintf(drain, sizeof drain, "%lld", (long long)up->drain);
  snprintf(job, sizeof job, "%.*s", RN_STR_ARGS(task->def->job));
  // Ctrl-C is for the command; the death of this command is the end of its tasks.
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
  if (up->is_secure && !use_certificate(up, name)) _exit(127);
  execl("/proc/self/exe", "runnel", "server", "--cluster", up->brief.data, "--job", job, "--task",
        index, "--threads", threads, "--lease", lease, "--drain", drain, (char*)NULL);
  _exit(127);
}

static int64_t now_of(const up_t* up) { return up->cli->env->now_ns(up->cli->env->self); }

// Returns when the child runs the task's program: until then it, too, holds the ports of the tasks
// that come after it.
static rn_status_t spawn(up_t* up, task_t* task) {
  int started[2];  // closed by the program's start
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

static rn_status_t wait_ready(up_t* up, task_t* task) {
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

static rn_status_t start_tasks(up_t* up) {
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

// Tasks of one kind: told to end, waited for, killed if need be.
static void stop_kind(up_t* up, bool is_ps) {
  bool is_left = true;
  for (size_t i = 0; i < up->task_count; ++i)
    if (up->tasks[i].pid && ((int64_t)i < up->ps) == is_ps) kill(up->tasks[i].pid, SIGTERM);
  for (int64_t deadline = now_of(up) + (up->drain + 4) * 1000000000; is_left; nap()) {
    is_left = false;
    for (size_t i = 0; i < up->task_count; ++i) {
      task_t* task = &up->tasks[i];
      if (!task->pid || ((int64_t)i < up->ps) != is_ps) continue;
      if (now_of(up) > deadline) kill(task->pid, SIGKILL);
      if (waitpid(task->pid, NULL, WNOHANG) != 0)
        task->pid = 0;
      else
        is_left = true;
    }
  }
}

static pid_t start_command(up_t* up) {
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

// With --restart: starts the task again in a moment, which is longer the more often it has failed.
static void plan_restart(up_t* up, task_t* task) {
  int64_t now = now_of(up), wait = FIRST_WAIT_NS;
  if (now - task->started_ns > STEADY_NS) task->failures = 0;
  for (int i = 0; i < task->failures && wait < LONGEST_WAIT_NS; ++i) wait *= 2;
  task->failures++;
  task->again_ns = now + (wait < LONGEST_WAIT_NS ? wait : LONGEST_WAIT_NS);
}

// A task that ended by itself is named; the others go on, as they would on other machines.
static void note_ended(up_t* up, pid_t pid, int state) {
  for (size_t i = 0; i < up->task_count; ++i) {
    task_t* task = &up->tasks[i];
    if (task->pid != pid) continue;
    task->pid = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) continue;  // somebody has asked it to
    if (up->restarts) plan_restart(up, task);
    fprintf(stderr, "runnel: task %d of job %.*s has ended (%s %d)%s; see %s\n", task->def->index,
            RN_STR_ARGS(task->def->job), WIFSIGNALED(state) ? "signal" : "exit status",
            WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state),
            up->restarts ? " and is started again" : "", task->log);
  }
}

// Starts the tasks again whose time has come. The nanoseconds until the next; -1: there is none.
static int64_t restart_tasks(up_t* up) {
  int64_t next = -1;
  for (size_t i = 0; i < up->task_count; ++i) {
    task_t* task = &up->tasks[i];
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

static bool is_any_left(const up_t* up) {
  for (size_t i = 0; i < up->task_count; ++i)
    if (up->tasks[i].pid || up->tasks[i].again_ns) return true;
  return false;
}

// The next signal; 0 if a task is to be started before one comes.
static int next_signal(const up_t* up, int64_t wait_ns) {
  int signal = 0;
  if (wait_ns < 0) {
    while (sigwait(&up->signals, &signal) != 0) continue;
    return signal;
  }
  struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
  signal = sigtimedwait(&up->signals, NULL, &wait);
  return signal > 0 ? signal : 0;
}

// Until the command ends, or without one until a signal. The exit status.
static int attend(up_t* up) {
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

static void say_hello(const up_t* up) {
  printf("The cluster is up, its logs are in %s:\n", up->dir.data);
  for (size_t i = 0; i < up->task_count; ++i)
    printf("  %.*s:%-4d grpc%s://%s\n", RN_STR_ARGS(up->tasks[i].def->job), up->tasks[i].def->index,
           up->is_secure ? "s" : "", up->tasks[i].def->address.data);
  printf("In another terminal:\n  export RUNNEL_CLUSTER='%s'\n", up->brief.data);
  if (up->is_secure)
    printf(
        "  export RUNNEL_TLS_CERT=%s/certs/client.pem RUNNEL_TLS_KEY=%s/certs/client-key.pem "
        "RUNNEL_TLS_CA=%s/certs/ca.pem\n",
        up->dir.data, up->dir.data, up->dir.data);
  printf("  runnel top\nCtrl-C ends it.\n");
  fflush(stdout);
}

static void clean_up(up_t* up, bool is_fine) {
  stop_kind(up, false);
  stop_kind(up, true);
  for (size_t i = 0; i < up->task_count; ++i)
    if (up->tasks[i].listener) up->tasks[i].listener->vtable->close(up->tasks[i].listener);
  if (up->owns_dir && is_fine) {
    int64_t files, directories;
    rn_status_free(rn_fs_remove_tree(up->cli->env, up->dir.data, &files, &directories));
  } else if (up->owns_dir) {
    fprintf(stderr, "runnel: the logs of the tasks are in %s\n", up->dir.data);
  }
}

rn_status_t rn_cli_cluster_up(rn_cli_t* cli) {
  up_t up = {.cli = cli};
  sigemptyset(&up.signals);
  sigaddset(&up.signals, SIGTERM);
  sigaddset(&up.signals, SIGINT);
  sigaddset(&up.signals, SIGCHLD);
  rn_cli_cluster_init(&up.cluster, cli->allocator);
  rn_status_t status = read_arguments(&up);
  if (rn_ok(status)) status = make_dir(&up);
  if (rn_ok(status)) status = find_ports(&up);
  if (rn_ok(status)) status = describe(&up);
  if (rn_ok(status) && up.is_secure) status = make_certificates(&up);
  pthread_sigmask(SIG_BLOCK, &up.signals, NULL);
  if (rn_ok(status)) status = start_tasks(&up);
  int code = 0;
  if (rn_ok(status) && !up.command) say_hello(&up);
  if (rn_ok(status)) code = attend(&up);
  bool is_fine = rn_ok(status) && code == 0;
  clean_up(&up, is_fine);
  rn_tls_release(up.tls);
  rn_cli_cluster_clear(&up.cluster);
  if (rn_ok(status) && code) {
    fflush(stdout);
    exit(code);
  }
  return status;
}
