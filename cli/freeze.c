// runnel saved_model freeze: a GraphDef of one signature, with constants for variables.
#include <stdio.h>

#include "cli/load.h"
#include "cli/model.h"
#include "saved_model/freeze.h"

// Converts the ports to lists of edges and names.
static rn_status_t split(rn_arena_t* arena, const rn_port_t* ports, int32_t count,
                         const rn_edge_t** out_edges, const rn_str_t** out_names) {
  rn_edge_t* edges = NULL;
  rn_str_t* names = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &names));
  for (int32_t i = 0; i < count; ++i) {
    edges[i] = ports[i].edge;
    names[i] = ports[i].name;
  }
  *out_edges = edges;
  *out_names = names;
  return RN_OK;
}

// A signature may use the same name for an input and an output; their nodes need different names.
static rn_status_t part_names(rn_cli_model_t* model, const char* file) {
  for (int32_t o = 0; o < model->output_count; ++o) {
    rn_port_t* output = &model->outputs[o];
    rn_str_t name = output->name;
    for (int32_t i = 0; i < model->input_count; ++i)
      if (rn_str_eq(model->inputs[i].name, name))
        RN_RETURN_IF_ERROR(
            rn_arena_printf(&model->arena, &output->name, "%.*s_output", RN_STR_ARGS(name)));
    if (!rn_str_eq(name, output->name))
      fprintf(stderr, "runnel: the output '%.*s' is called '%.*s' in '%s': an input has its name\n",
              RN_STR_ARGS(name), RN_STR_ARGS(output->name), file);
  }
  return RN_OK;
}

static rn_status_t freeze(rn_cli_t* cli, rn_cli_model_t* model, rn_strbuf_t* out,
                          rn_str_t* out_fill) {
  rn_session_options_t session;
  rn_session_options_init(&session);
  session.allow_soft_placement = true;
  RN_RETURN_IF_ERROR(rn_cli_model_load(cli, model, &session, NULL));
  RN_RETURN_IF_ERROR(rn_cli_model_use(cli, model, rn_cli_text(cli, "--signature")));
  RN_RETURN_IF_ERROR(part_names(model, rn_cli_word(cli, "FILE")));
  rn_freeze_options_t options = {.input_count = model->input_count,
                                 .output_count = model->output_count,
                                 .folds_batch_norms = rn_cli_has(cli, "--fold-batch-norms")};
  RN_RETURN_IF_ERROR(split(&model->arena, model->inputs, model->input_count, &options.inputs,
                           &options.input_names));
  RN_RETURN_IF_ERROR(split(&model->arena, model->outputs, model->output_count, &options.outputs,
                           &options.output_names));
  return rn_cli_at(rn_freeze(model->session, &options, out, out_fill), model->path);
}

rn_status_t rn_cli_saved_model_freeze(rn_cli_t* cli) {
  const char* file = rn_cli_word(cli, "FILE");
  rn_cli_model_t model;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, cli->allocator);
  rn_status_t status =
      rn_cli_model_open(cli, rn_cli_word(cli, "DIR"), rn_cli_text(cli, "--tags"), &model);
  rn_str_t fill = RN_STR("");
  if (rn_ok(status)) status = freeze(cli, &model, &bytes, &fill);
  if (rn_ok(status))
    status = rn_cli_write_graph(cli, file, rn_strbuf_view(&bytes), rn_cli_has(cli, "--text"));
  if (rn_ok(status) && fill.size)
    fprintf(stderr,
            "runnel: %s has tables: its node '%.*s' fills them; run it once, first (run --init "
            "%.*s)\n",
            file, RN_STR_ARGS(fill), RN_STR_ARGS(fill));
  rn_strbuf_clear(&bytes);
  rn_cli_model_clear(&model);
  return status;
}
