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

// What people say about a cluster that a launcher has started.
typedef struct rn_cli_launch_t {
  const char* jobs;   // "ps=2,worker": which ranks are what; NULL: all are workers
  const char* hosts;  // a file; NULL: none
  int port_base;      // 0: 8888
} rn_cli_launch_t;
// From the environment of srun, and from that of Open MPI's mpirun; both say which task this is.
RN_MUST_USE rn_status_t rn_cli_cluster_of_slurm(rn_cli_cluster_t* cluster,
                                                const rn_cli_launch_t* launch);
RN_MUST_USE rn_status_t rn_cli_cluster_of_mpi(rn_cli_cluster_t* cluster, const rn_env_t* env,
                                              const rn_cli_launch_t* launch);

// For commands that ask a cluster: from --cluster, or from the folder --dir of `runnel cluster up`,
// or, where neither is given, from RUNNEL_CLUSTER or TF_CONFIG.
RN_MUST_USE rn_status_t rn_cli_cluster_find(rn_cli_t* cli, rn_cli_cluster_t* cluster);

// What `runnel cert` makes, for |cluster| and a client, in |dir|; says nothing.
RN_MUST_USE rn_status_t rn_cli_cert_make(rn_cli_t* cli, const rn_cli_cluster_t* cluster,
                                         const char* dir);

// The options that say which cluster and which certificates and token, for the tables of commands
// that ask one. |verbs_| is NULL or the verbs that take them.
#define RN_CLI_CLUSTER_OPTIONS(verbs_)                                                             \
  RN_OPTION(TEXT, "--cluster", "CLUSTER",                                                          \
            "as 'runnel server' takes it (default: RUNNEL_CLUSTER, then TF_CONFIG)",               \
            .verbs = verbs_),                                                                      \
      RN_OPTION(FILE, "--tls-cert", "FILE", "the certificate to use (default: RUNNEL_TLS_CERT)",   \
                .verbs = verbs_),                                                                  \
      RN_OPTION(FILE, "--tls-key", "FILE", "its key (default: RUNNEL_TLS_KEY)", .verbs = verbs_),  \
      RN_OPTION(FILE, "--tls-ca", "FILE",                                                          \
                "the certificate authority of the tasks (default: RUNNEL_TLS_CA)",                 \
                .verbs = verbs_),                                                                  \
      RN_OPTION(FILE, "--token", "FILE",                                                           \
                "the file that holds the tasks' token (default: the one that RUNNEL_TOKEN names)", \
                .verbs = verbs_)

// Adds a task; refuses one that is there already and an address that is none.
RN_MUST_USE rn_status_t rn_cli_cluster_add(rn_cli_cluster_t* cluster, rn_str_t job, int32_t index,
                                           rn_str_t address);

#endif  // RUNNEL_CLI_CLUSTER_H_
