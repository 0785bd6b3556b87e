// runnel transform: reduces a graph to what its outputs need.
#include <stdio.h>

#include "base/vec.h"
#include "cli/load.h"
#include "saved_model/freeze.h"
#include "saved_model/saved_model.h"
#include "wire/encode.h"

typedef struct cli_transform_job_t {
  rn_cli_t* cli;
  const char *in, *out;
  RN_VEC(rn_edge_t) inputs;
  RN_VEC(rn_edge_t) outputs;
  RN_VEC(rn_str_t) names;  // of the placeholders
  rn_cli_file_t file;
  rn_graph_t* graph;      // Owned
  rn_session_t* session;  // Owned
} cli_transform_job_t;

static rn_status_t check_arguments(const rn_cli_t* cli) {
  static const char* const cutting[] = {"--inline", "--fold-constants", "--fold-batch-norms",
                                        "--input"};
  for (size_t i = 0; i < sizeof cutting / sizeof *cutting; ++i)
    if (!rn_cli_has(cli, "--output") && rn_cli_has(cli, cutting[i]))
      return rn_cli_usage(cli, "name the values to keep with --output");
  return RN_OK;
}

static rn_status_t find_edge(cli_transform_job_t* job, const char* option, const char* name,
                             rn_edge_t* out) {
  rn_status_t status = rn_edge_by_name(job->graph, rn_str(name), out);
  if (rn_ok(status) && out->index >= out->node->output_count)
    status = rn_not_found("the node has %d outputs", out->node->output_count);
  return rn_cli_prefix(status, "'%s': %s %s: ", job->in, option, name);
}

// The name of the placeholder for |edge|: that of its node, unless an output has that name.
static rn_status_t name_input(cli_transform_job_t* job, rn_edge_t edge) {
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

static rn_status_t resolve(cli_transform_job_t* job) {
  rn_allocator_t allocator = job->cli->allocator;
  rn_edge_t edge;
  size_t at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--output", &at));) {
    RN_RETURN_IF_ERROR(find_edge(job, "--output", name, &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->outputs, allocator, edge));
  }
  at = 0;
  for (const char* name; (name = rn_cli_each(job->cli, "--input", &at));) {
    RN_RETURN_IF_ERROR(find_edge(job, "--input", name, &edge));
    RN_RETURN_IF_ERROR(rn_vec_push(&job->inputs, allocator, edge));
    RN_RETURN_IF_ERROR(name_input(job, edge));
  }
  return RN_OK;
}

static rn_status_t cut(cli_transform_job_t* job, rn_strbuf_t* out) {
  rn_cli_t* cli = job->cli;
  rn_session_options_t session;
  rn_session_options_init(&session);
  session.intra_threads = session.inter_threads = 1;
  RN_RETURN_IF_ERROR(rn_cli_import(&job->file, &job->graph));
  RN_RETURN_IF_ERROR(resolve(job));
  RN_RETURN_IF_ERROR(
      rn_session_create(job->graph, &session, cli->env, cli->allocator, &job->session));
  bool folds_batch_norms = rn_cli_has(cli, "--fold-batch-norms");
  rn_freeze_options_t options = {
      .inputs = job->inputs.items,
      .input_names = job->names.items,
      .input_count = (int32_t)job->inputs.count,
      .outputs = job->outputs.items,
      .output_count = (int32_t)job->outputs.count,
      .keeps_variables = true,
      .keeps_calls = !rn_cli_has(cli, "--inline"),
      .keeps_constants = !folds_batch_norms && !rn_cli_has(cli, "--fold-constants"),
      .folds_batch_norms = folds_batch_norms};
  rn_str_t fill;  // empty if tables are unchanged
  return rn_cli_at(rn_freeze(job->session, &options, out, &fill), job->in);
}

static rn_status_t transform(cli_transform_job_t* job) {
  RN_RETURN_IF_ERROR(check_arguments(job->cli));
  RN_RETURN_IF_ERROR(rn_cli_load(job->cli, job->in, &job->file));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, job->cli->allocator);
  rn_status_t status = rn_cli_has(job->cli, "--output")
                           ? cut(job, &bytes)
                           : RN_PB_ENCODE(GraphDef, job->file.def, NULL, &bytes);
  if (rn_ok(status))
    status = rn_cli_write_graph(job->cli, job->out, rn_strbuf_view(&bytes),
                                rn_cli_has(job->cli, "--text"));
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t run(rn_cli_t* cli) {
  rn_allocator_t allocator = cli->allocator;
  cli_transform_job_t job = {
      .cli = cli, .in = rn_cli_word(cli, "IN"), .out = rn_cli_word(cli, "OUT")};
  rn_arena_init(&job.file.arena, allocator);
  rn_strbuf_init(&job.file.bytes, allocator);
  rn_status_t status = transform(&job);
  rn_session_destroy(job.session);
  rn_graph_release(job.graph);
  rn_cli_file_clear(&job.file);
  rn_vec_free(&job.inputs, allocator);
  rn_vec_free(&job.outputs, allocator);
  rn_vec_free(&job.names, allocator);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(TEXT, "--output", "NAME",
              "keep what this value needs under its name, and strip the rest; a node followed by "
              "':1' is its second output",
              .repeats = true),
    RN_OPTION(TEXT, "--input", "NAME", "make this value a placeholder, and strip what computes it",
              .repeats = true),
    RN_OPTION(FLAG, "--inline", NULL,
              "inline functions; functional loops and conditionals become Switch, Merge and Enter"),
    RN_OPTION(FLAG, "--fold-constants", NULL, "compute constant expressions"),
    RN_OPTION(FLAG, "--fold-batch-norms", NULL,
              "multiply batch normalizations into the convolutions and matmuls before them if "
              "everything is constant; changes the last bits"),
    RN_OPTION(FLAG, "--text", NULL, "write text; also if OUT ends in .pbtxt"),
    {0},
};

const rn_cli_command_t rn_cli_transform_command = {
    .name = "transform",
    .summary = "extract, simplify and convert a graph",
    .about =
        "Reads a GraphDef (.pb or .pbtxt) and writes the requested part of it. Without --output it "
        "writes the whole graph unchanged: text becomes binary, binary becomes text. OUT can be "
        "'-', the standard output.\n\nVariables stay variables: 'runnel saved_model freeze' turns "
        "them into constants.",
    .words = "IN OUT",
    .word_kind = RN_CLI_FILE,
    .run = run,
    .options = options,
    .examples =
        "runnel transform examples/models/line.pbtxt line.pb\n"
        "runnel transform line.pb half.pb --input product --output y\n"
        "runnel saved_model freeze build/train/model digits.pb    # after make train\n"
        "runnel transform digits.pb fast.pb --output scores --inline --fold-batch-norms",
};
