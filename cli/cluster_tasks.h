// The processes of `runnel cluster up`: its tasks and the command that uses them.
#ifndef RUNNEL_CLI_CLUSTER_TASKS_H_
#define RUNNEL_CLI_CLUSTER_TASKS_H_

#include <signal.h>
#include <sys/types.h>

#include "base/net.h"
#include "cli/cluster.h"
#include "cli/http.h"

typedef struct rn_up_task_t {
  const rn_server_task_t* def;
  rn_socket_t* listener;  // holds the port until the task takes it
  char* log;              // in the arena
  pid_t pid;              // 0 if it is not running
  int64_t started_ns;
  int64_t again_ns;  // when to restart it; 0 for never
  int failures;      // number of times it ended by itself soon after its start
} rn_up_task_t;

typedef struct rn_up_t {
  rn_cli_t* cli;
  rn_cli_cluster_t cluster;
  rn_up_task_t* tasks;
  size_t task_count;
  rn_str_t dir, json, brief;  // |brief|: ps=a:1,worker=b:2
  bool owns_dir, is_secure, restarts;
  rn_tls_t* tls;  // Owned: the client's certificate, if the tasks use TLS
  int64_t ps, workers, threads, lease, drain;
  int64_t gpus;    // per worker; -1: all
  char** command;  // NULL: no command to run
  sigset_t signals;
} rn_up_t;

// Starts every task, waits until all of them are ready, and writes cluster.json.
RN_MUST_USE rn_status_t rn_up_start(rn_up_t* up);
// Runs the command until it ends or, without one, waits for a signal; with --restart, restarts
// tasks meanwhile. Returns the exit status.
int rn_up_attend(rn_up_t* up);
// Tells the tasks of one kind to end, waits for them, and kills those that do not.
void rn_up_stop(rn_up_t* up, bool is_ps);
// Puts the certificate of |name| into the environment; false if memory runs out.
bool rn_up_use_certificate(const rn_up_t* up, const char* name);

#endif  // RUNNEL_CLI_CLUSTER_TASKS_H_
