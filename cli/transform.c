// runnel transform: a graph cut to size.
#include <stdio.h>

#include "base/vec.h"
#include "cli/load.h"
#include "saved_model/freeze.h"
#include "saved_model/saved_model.h"
#include "wire/encode.h"

const char rn_cli_transform_help[] =
    "usage: runnel transform IN OUT --output NAME ... [--input NAME ...] [--inline]\n"
    "                  [--fold-constants] [--fold-batch-norms] [--text]\n"
    "       runnel transform IN OUT [--text]\n"
    "\n"
    "Reads a GraphDef (.pb or .pbtxt) and writes what is wanted of it. Without --output all of it "
    "is\n"
    "written as it is: text becomes bytes, bytes become text.\n"
    "\n"
    "  --output NAME        keep what is needed for this value (a node, with ':1' behind it for "
    "its\n"
    "                       second output), and strip the rest\n"
    "  --input NAME         make this value a placeholder, and strip what it was computed from\n"
    "  --inline             put the bodies of functions in place of their calls; loops and\n"
    "                       conditionals become Switch, Merge and Enter\n"
    "  --fold-constants     compute what follows from constants\n"
    "  --fold-batch-norms   multiply batch normalisations into the convolutions and matrix "
    "products\n"
    "                       before them, where all of it is constant; changes the last bits\n"
    "  --text               write text; also if OUT ends in .pbtxt. '-' is the standard output\n"
    "\n"
    "Variables stay variables: 'runnel saved_model freeze' makes constants of them.\n"
    "\n"
    "examples:\n"
    "  runnel transform model.pb model.pbtxt\n"
    "  runnel transform train.pb serve.pb --input images --output scores\n"
    "  runnel transform model.pb fast.pb --output scores --inline --fold-batch-norms\n";

enum { INPUT, OUTPUT, INLINE, FOLD_CONSTANTS, FOLD_BATCH_NORMS, TEXT };

typedef struct job_t {
  rn_cli_t* cli;
  const char *in, *out;
  bool inlines, folds, folds_batch_norms, is_text;
  RN_VEC(const char*) input_texts;
  RN_VEC(const char*) output_texts;
  RN_VEC(rn_edge_t) inputs;
  RN_VEC(rn_edge_t) outputs;
  RN_VEC(rn_str_t) names;  // of the placeholders
  rn_cli_file_t file;
  rn_graph_t* graph;      // Owned
  rn_session_t* session;  // Owned
} job_t;

static rn_status_t read_arguments(job_t* job) {
  static const rn_cli_option_t options[] = {{"--input", true},
                                            {"--output", true},
                                            {"--inline", false},
                                            {"--fold-constants", false},
                                            {"--fold-batch-norms", false},
                                            {"--text", false},
                                            {NULL, false}};
  rn_cli_t* cli = job->cli;
  for (int option = 0; option != RN_CLI_END;) {
    const char* value;
    RN_RETURN_IF_ERROR(rn_cli_next(cli, options, &option, &value));
    if (option == RN_CLI_WORD && job->out) return rn_cli_usage(cli, "a graph and a file, no more");
    if (option == RN_CLI_WORD) *(job->in ? &job->out : &job->in) = value;
    if (option == INPUT) RN_RETURN_IF_ERROR(rn_vec_push(&job->input_texts, cli->allocator, value));
    if (option == OUTPUT)
      RN_RETURN_IF_ERROR(rn_vec_push(&job->output_texts, cli->allocator, value));
    job->inlines |= option == INLINE;
    job->folds |= option == FOLD_CONSTANTS || option == FOLD_BATCH_NORMS;
    job->folds_batch_norms |= option == FOLD_BATCH_NORMS;
    job->is_text |= option == TEXT;
  }
  if (!job->out) return rn_cli_usage(cli, "name a graph and a file to write");
  if (!job->output_texts.count && (job->inlines || job->folds || job->input_texts.count))
    return rn_cli_usage(cli, "say with --output what is wanted of the graph");
  return RN_OK;
}

static rn_status_t find_edge(job_t* job, const char* option, const char* name, rn_edge_t* out) {
  rn_status_t status = rn_edge_by_name(job->graph, rn_str(name), out);
  if (rn_ok(status) && out->index >= out->node->output_count)
    status = rn_not_found("the node has %d outputs", out->node->output_count);
  return rn_cli_prefix(status, "%s: %s %s: ", job->in, option, name);
}

// The name of the placeholder for |edge|: that of its node, unless an output needs that.
static rn_status_t name_input(job_t* job, rn_edge_t edge) {
  rn_str_t name = edge.node->name;
  bool is_taken = false;
  for (size_t i = 0; i < job->outputs.count; ++i) {
    const rn_edge_t* output = &job->outputs.items[i];
    is_taken |= output->node == edge.node && (output->index || edge.index);
  }
  if (is_taken) {
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&job->file.arena, &name, "%.*s_input_%d", RN_STR_ARGS(name), edge.index));
    fprintf(stderr, "runnel: --input %.*s:%d is the placeholder '%.*s' of '%s'\n",
            RN_STR_ARGS(edge.node->name), edge.index, RN_STR_ARGS(name), job->out);
  }
  return rn_vec_push(&job->names, job->cli->allocator, name);
}

static rn_status_t resolve(job_t* job) {
  rn_allocator_t allocator = job->cli->allocator;
  rn_edge_t edge;
  for (size_t i = 0; i < job->output_texts.count; ++i) {
    RN_RETURN_IF_ERROR(find_edge(job, "--output", job->output_texts.items[i], &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->outputs, allocator, edge));
  }
  for (size_t i = 0; i < job->input_texts.count; ++i) {
    RN_RETURN_IF_ERROR(find_edge(job, "--input", job->input_texts.items[i], &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->inputs, allocator, edge));
    RN_RETURN_IF_ERROR(name_input(job, edge));
  }
  return RN_OK;
}

static rn_status_t cut(job_t* job, rn_strbuf_t* out) {
  rn_cli_t* cli = job->cli;
  rn_session_options_t session;
  rn_session_options_init(&session);
  session.intra_threads = session.inter_threads = 1;
  RN_RETURN_IF_ERROR(rn_cli_import(&job->file, &job->graph));
  RN_RETURN_IF_ERROR(resolve(job));
  RN_RETURN_IF_ERROR(
      rn_session_create(job->graph, &session, cli->env, cli->allocator, &job->session));
  rn_freeze_options_t options = {.inputs = job->inputs.items,
                                 .input_names = job->names.items,
                                 .input_count = (int32_t)job->inputs.count,
                                 .outputs = job->outputs.items,
                                 .output_count = (int32_t)job->outputs.count,
                                 .keeps_variables = true,
                                 .keeps_calls = !job->inlines,
                                 .keeps_constants = !job->folds,
                                 .folds_batch_norms = job->folds_batch_norms};
  rn_str_t fill;  // none: tables stay as they are
  return rn_cli_prefix(rn_freeze(job->session, &options, out, &fill), "%s: ", job->in);
}

static rn_status_t transform(job_t* job) {
  RN_RETURN_IF_ERROR(read_arguments(job));
  RN_RETURN_IF_ERROR(rn_cli_load(job->cli, job->in, &job->file));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, job->cli->allocator);
  rn_status_t status = job->output_texts.count
                           ? cut(job, &bytes)
                           : RN_PB_ENCODE(GraphDef, job->file.def, NULL, &bytes);
  if (rn_ok(status))
    status = rn_cli_write_graph(job->cli, job->out, rn_strbuf_view(&bytes), job->is_text);
  rn_strbuf_clear(&bytes);
  return status;
}

rn_status_t rn_cli_transform(rn_cli_t* cli) {
  rn_allocator_t allocator = cli->allocator;
  job_t job = {.cli = cli};
  rn_arena_init(&job.file.arena, allocator);
  rn_strbuf_init(&job.file.bytes, allocator);
  rn_status_t status = transform(&job);
  rn_session_destroy(job.session);
  rn_graph_release(job.graph);
  rn_cli_file_clear(&job.file);
  rn_vec_free(&job.input_texts, allocator);
  rn_vec_free(&job.output_texts, allocator);
  rn_vec_free(&job.inputs, allocator);
  rn_vec_free(&job.outputs, allocator);
  rn_vec_free(&job.names, allocator);
  return status;
}
