// SavedModels for the sub-commands: found by folder and tags, loaded with their variables.
#ifndef RUNNEL_CLI_MODEL_H_
#define RUNNEL_CLI_MODEL_H_

#include "cli/cli.h"
#include "saved_model/saved_model.h"

typedef struct rn_cli_model_t {
  const char* path;  // Borrowed
  rn_arena_t arena;
  rn_saved_model_t* file;  // Owned
  const rn_meta_graph_t* meta;
  rn_graph_t* graph;      // Owned; NULL until loaded
  rn_session_t* session;  // Owned
  rn_str_t signature;     // the one that is used
  rn_port_t *inputs, *outputs;
  int32_t input_count, output_count;
} rn_cli_model_t;

// Whether |path| is a folder.
bool rn_cli_is_folder(const rn_cli_t* cli, const char* path);

// Opens the model in |path| and finds its graph: that of |tags| ("a,b"), or if that is NULL the one
// for serving, or the only one. Errors list the available tags. Clear |*out| either way.
RN_MUST_USE rn_status_t rn_cli_model_open(const rn_cli_t* cli, const char* path, const char* tags,
                                          rn_cli_model_t* out);
// Imports the graph and restores its variables. Uses |options| except for its limits: the session
// may read the model's folder and do what |allow| says (NULL: nothing more).
RN_MUST_USE rn_status_t rn_cli_model_load(const rn_cli_t* cli, rn_cli_model_t* model,
                                          const rn_session_options_t* options, const char* allow);
// Finds the ports of signature |name|, NULL for "serving_default" or the only one.
RN_MUST_USE rn_status_t rn_cli_model_use(const rn_cli_t* cli, rn_cli_model_t* model,
                                         const char* name);
void rn_cli_model_clear(rn_cli_model_t* model);

// Whether |name| is the name of a signature that a client may run.
bool rn_cli_is_signature(rn_str_t name);

// The verbs of `runnel saved_model` that have files of their own.
RN_MUST_USE rn_status_t rn_cli_saved_model_show(rn_cli_t* cli);
RN_MUST_USE rn_status_t rn_cli_run(rn_cli_t* cli);
RN_MUST_USE rn_status_t rn_cli_saved_model_freeze(rn_cli_t* cli);

#endif  // RUNNEL_CLI_MODEL_H_
