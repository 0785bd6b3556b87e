// runnel cluster up: a cluster of processes on this machine.
#include "cli/cluster_up.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cli/cluster_tasks.h"

#define MAX_TASKS 1000

static rn_status_t read_arguments(rn_up_t* up) {
  rn_cli_t* cli = up->cli;
  const char* dir = rn_cli_text(cli, "--dir");
  up->ps = rn_cli_number(cli, "--ps", 1);
  up->workers = rn_cli_number(cli, "--workers", 1);
  up->threads = rn_cli_number(cli, "--threads", 0);
  up->gpus = rn_cli_number(cli, "--gpus", -1);
  up->lease = rn_cli_number(cli, "--lease", 10);
  up->drain = rn_cli_number(cli, "--drain", 10);
  up->is_secure = rn_cli_has(cli, "--tls");
  up->restarts = rn_cli_has(cli, "--restart");
  if (dir) up->dir = rn_str(dir);
  if (cli->rest > 0)
    return rn_cli_usage(cli, "put -- before the command '%s'", cli->words.items[0]);
  RN_RETURN_IF_ERROR(rn_vec_push(&cli->words, cli->allocator, (const char*)NULL));
  if (cli->words.count > 1) up->command = (char**)cli->words.items;
  if (up->ps + up->workers > MAX_TASKS)
    return rn_cli_usage(cli, "at most %d tasks run on one machine", MAX_TASKS);
  return RN_OK;
}

static rn_status_t make_dir(rn_up_t* up) {
  rn_arena_t* arena = &up->cluster.arena;
  if (up->dir.size) return rn_fs_make_directories(up->cli->env, up->dir.data);
  const char* root = getenv("TMPDIR");
  rn_str_t pattern;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &pattern, "%s/runnel-cluster-XXXXXX", root && *root ? root : "/tmp"));
  if (!mkdtemp((char*)pattern.data))
    return rn_unavailable("cannot create the folder %s: %s", pattern.data, strerror(errno));
  up->dir = pattern;
  up->owns_dir = true;
  return RN_OK;
}

// Reserves free ports until the tasks take them.
static rn_status_t find_ports(rn_up_t* up) {
  const rn_env_t* env = up->cli->env;
  rn_arena_t* arena = &up->cluster.arena;
  up->task_count = (size_t)(up->ps + up->workers);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, up->task_count, &up->tasks));
  for (size_t i = 0; i < up->task_count; ++i) {
    rn_up_task_t* task = &up->tasks[i];
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

// Writes the cluster in both text forms.
static rn_status_t describe(rn_up_t* up) {
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

// Certificates for the tasks and the command, and the client's for this process.
static rn_status_t make_certificates(rn_up_t* up) {
  rn_str_t certs;
  RN_RETURN_IF_ERROR(rn_arena_printf(&up->cluster.arena, &certs, "%s/certs", up->dir.data));
  RN_RETURN_IF_ERROR(rn_cli_cert_make(up->cli, &up->cluster, certs.data));
  if (!rn_up_use_certificate(up, "client")) return rn_out_of_memory();
  return rn_cli_tls_of_env(up->cli, &up->tls);
}

static void say_hello(const rn_up_t* up) {
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

static void clean_up(rn_up_t* up, bool is_fine) {
  rn_up_stop(up, false);
  rn_up_stop(up, true);
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
  rn_up_t up = {.cli = cli};
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
  if (rn_ok(status)) status = rn_up_start(&up);
  int code = 0;
  if (rn_ok(status) && !up.command) say_hello(&up);
  if (rn_ok(status)) code = rn_up_attend(&up);
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
