// Clusters from the command line, files and launchers.
#ifndef RUNNEL_CLI_CLUSTER_H_
#define RUNNEL_CLI_CLUSTER_H_

#include "base/arena.h"
#include "cli/cli.h"
#include "dist/server.h"

// A cluster and, if known, which of its tasks this process is.
typedef struct rn_cli_cluster_t {
  rn_arena_t arena;  // Owned; holds all strings and arrays
  RN_VEC(rn_server_task_t) tasks;
  rn_str_t job;  // "" if unknown
  int32_t index;
} rn_cli_cluster_t;
void rn_cli_cluster_init(rn_cli_cluster_t* cluster, rn_allocator_t allocator);
void rn_cli_cluster_clear(rn_cli_cluster_t* cluster);

// Parses JSON ({"ps": ["host:port", …], "worker": […]}), the short form ps=a|b,worker=c, a
// ClusterDef in text form, or a file with one of them.
RN_MUST_USE rn_status_t rn_cli_cluster_parse(rn_cli_cluster_t* cluster, const rn_env_t* env,
                                             const char* text);
// Parses the text of TF_CONFIG: a cluster and the task.
RN_MUST_USE rn_status_t rn_cli_cluster_parse_config(rn_cli_cluster_t* cluster, rn_str_t text);

// Options for a cluster that a launcher has started.
typedef struct rn_cli_launch_t {
  const char* jobs;   // "ps=2,worker": ranks per job; NULL if all are workers
  const char* hosts;  // a file, or NULL
  int port_base;      // 0 means 8888
} rn_cli_launch_t;
// Reads the environment of srun, or of Open MPI's mpirun; both tell which task this is.
RN_MUST_USE rn_status_t rn_cli_cluster_of_slurm(rn_cli_cluster_t* cluster,
                                                const rn_cli_launch_t* launch);
RN_MUST_USE rn_status_t rn_cli_cluster_of_mpi(rn_cli_cluster_t* cluster, const rn_env_t* env,
                                              const rn_cli_launch_t* launch);

// For commands that query a cluster: reads --cluster, or the folder --dir of `runnel cluster up`,
// or, if neither is given, RUNNEL_CLUSTER or TF_CONFIG.
RN_MUST_USE rn_status_t rn_cli_cluster_find(rn_cli_t* cli, rn_cli_cluster_t* cluster);

// Makes the certificates of `runnel cert`, for |cluster| and a client, in |dir|, without output.
RN_MUST_USE rn_status_t rn_cli_cert_make(rn_cli_t* cli, const rn_cli_cluster_t* cluster,
                                         const char* dir);

// The options for cluster, certificates and token, for the tables of commands that query a cluster.
// |verbs_| is NULL or the verbs that take them.
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

// Adds a task; refuses a duplicate task and an invalid address.
RN_MUST_USE rn_status_t rn_cli_cluster_add(rn_cli_cluster_t* cluster, rn_str_t job, int32_t index,
                                           rn_str_t address);

#endif  // RUNNEL_CLI_CLUSTER_H_
