// How the tasks of a cluster are, asked over HTTP: for `runnel cluster status` and `runnel top`.
#ifndef RUNNEL_CLI_CLUSTER_VIEW_H_
#define RUNNEL_CLI_CLUSTER_VIEW_H_

#include <jansson.h>

#include "cli/cluster.h"
#include "cli/http.h"

// A task as it was at |at_ns|. |status| is its /statusz as JSON; NULL: it did not answer, and |why|
// says why.
typedef struct rn_cli_sample_t {
  const rn_server_task_t* task;  // Borrowed
  int64_t at_ns;
  json_t* status;  // Owned
  char why[200];
} rn_cli_sample_t;

typedef struct rn_cli_view_t {
  rn_cli_t* cli;
  const rn_cli_cluster_t* cluster;
  rn_tls_t* tls;                  // Borrowed; NULL: plain
  rn_cli_sample_t *before, *now;  // Owned: one for each task; |before| may have nothing yet
} rn_cli_view_t;

RN_MUST_USE rn_status_t rn_cli_view_open(rn_cli_view_t* view, rn_cli_t* cli,
                                         const rn_cli_cluster_t* cluster, rn_tls_t* tls);
void rn_cli_view_close(rn_cli_view_t* view);

// Asks every task, all at a time; what was |now| is then |before|.
void rn_cli_view_ask(rn_cli_view_t* view);
// Tables, with what changes by the second between |before| and |now|.
void rn_cli_view_print_tasks(const rn_cli_view_t* view, FILE* out);
void rn_cli_view_print_pairs(const rn_cli_view_t* view, FILE* out);
void rn_cli_view_print_queues(const rn_cli_view_t* view, FILE* out);
// {"tasks": [...]}: each task with what its tables say of it and its whole /statusz; NULL without
// memory.
json_t* rn_cli_view_json(const rn_cli_view_t* view);
size_t rn_cli_view_down(const rn_cli_view_t* view);  // tasks that did not answer

#endif  // RUNNEL_CLI_CLUSTER_VIEW_H_
