// The status of a cluster's tasks, queried over HTTP, for `runnel cluster status` and `runnel top`.
#ifndef RUNNEL_CLI_CLUSTER_VIEW_H_
#define RUNNEL_CLI_CLUSTER_VIEW_H_

#include <jansson.h>

#include "cli/cluster.h"
#include "cli/http.h"

// A task as it was at |at_ns|. |status| is its /statusz as JSON; if it did not answer, that is NULL
// and |why| is the reason.
typedef struct rn_cli_sample_t {
  const rn_server_task_t* task;  // Borrowed
  int64_t at_ns;
  json_t* status;  // Owned
  char why[200];
} rn_cli_sample_t;

typedef struct rn_cli_view_t {
  rn_cli_t* cli;
  const rn_cli_cluster_t* cluster;
  rn_tls_t* tls;                  // Borrowed; NULL for plain connections
  rn_cli_sample_t *before, *now;  // Owned: one per task; |before| may be empty
} rn_cli_view_t;

RN_MUST_USE rn_status_t rn_cli_view_open(rn_cli_view_t* view, rn_cli_t* cli,
                                         const rn_cli_cluster_t* cluster, rn_tls_t* tls);
void rn_cli_view_close(rn_cli_view_t* view);

// Queries all tasks at the same time; the old |now| becomes |before|.
void rn_cli_view_ask(rn_cli_view_t* view);
// Prints tables, with rates per second between |before| and |now|.
void rn_cli_view_print_tasks(const rn_cli_view_t* view, FILE* out);
void rn_cli_view_print_pairs(const rn_cli_view_t* view, FILE* out);
void rn_cli_view_print_queues(const rn_cli_view_t* view, FILE* out);
// {"tasks": [...]}: per task, the contents of the tables and its complete /statusz; NULL if memory
// runs out.
json_t* rn_cli_view_json(const rn_cli_view_t* view);
size_t rn_cli_view_down(const rn_cli_view_t* view);  // tasks that did not answer

#endif  // RUNNEL_CLI_CLUSTER_VIEW_H_
