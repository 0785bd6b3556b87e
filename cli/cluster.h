// What a cluster is, as people write it down.
#ifndef RUNNEL_CLI_CLUSTER_H_
#define RUNNEL_CLI_CLUSTER_H_

#include "base/arena.h"
#include "cli/cli.h"
#include "dist/server.h"

// A cluster, and which task of it this is, where that was said too.
typedef struct rn_cli_cluster_t {
  rn_arena_t arena;  // Owned; holds all of it
  RN_VEC(rn_server_task_t) tasks;
  rn_str_t job;  // "": not said
  int32_t index;
} rn_cli_cluster_t;
void rn_cli_cluster_init(rn_cli_cluster_t* cluster, rn_allocator_t allocator);
void rn_cli_cluster_clear(rn_cli_cluster_t* cluster);

// From JSON ({"ps": ["host:port", …], "worker": […]}), from the short form ps=a|b,worker=c, from a
// ClusterDef in text form, or from a file with one of them.
RN_MUST_USE rn_status_t rn_cli_cluster_parse(rn_cli_cluster_t* cluster, const rn_env_t* env,
                                             const char* text);
// From the text of TF_CONFIG: a cluster and the task.
RN_MUST_USE rn_status_t rn_cli_cluster_parse_config(rn_cli_cluster_t* cluster, rn_str_t text);

#endif  // RUNNEL_CLI_CLUSTER_H_
