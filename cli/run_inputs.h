// A call of `runnel run`, and how the names in it become nodes and values.
#ifndef RUNNEL_CLI_RUN_INPUTS_H_
#define RUNNEL_CLI_RUN_INPUTS_H_

#include "base/vec.h"
#include "cli/load.h"
#include "cli/model.h"
#include "session/session.h"

typedef struct rn_cli_run_fetch_t {
  const char* name;  // as written
  rn_str_t file;     // empty to print it
} rn_cli_run_fetch_t;

typedef struct rn_cli_run_t {
  rn_cli_t* cli;
  rn_arena_t arena;
  const char* path;
  rn_cli_file_t file;
  rn_cli_model_t model;  // for a SavedModel, which then owns graph and session
  bool is_model, asks_nothing;
  rn_graph_t* graph;      // Owned, unless the model's
  rn_session_t* session;  // Owned, unless the model's
  RN_VEC(rn_edge_t) feeds;
  RN_VEC(rn_tensor_t) values;
  RN_VEC(rn_cli_run_fetch_t) fetch_texts;
  RN_VEC(rn_edge_t) fetches;
  RN_VEC(rn_node_t*) targets;
  RN_VEC(rn_node_t*) inits;
  rn_tensor_t* results;  // in the arena; one per fetch
} rn_cli_run_t;

// Finds the nodes that the arguments name, and reads the values that are fed. The graph is open.
RN_MUST_USE rn_status_t rn_cli_run_resolve(rn_cli_run_t* job);

// Takes the status of a step. If the step failed because inputs of the model's signature were not
// fed, returns a status that names them as the signature does.
RN_MUST_USE rn_status_t rn_cli_run_name_inputs(const rn_cli_run_t* job, rn_status_t status);

#endif  // RUNNEL_CLI_RUN_INPUTS_H_
