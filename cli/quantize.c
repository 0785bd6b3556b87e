// runnel quantize: a model with 8-bit weights and activations, of a float one and example data.
#include "cli/quantize.h"

#include <stdio.h>

#include "saved_model/writer.h"

// The folder that is written: --output, or the model's name with "-8bit" after it.
static rn_status_t output_folder(rn_cli_quant_t* q, rn_str_t* out) {
  const char* given = rn_cli_text(q->cli, "--output");
  rn_str_t path = rn_str(given ? given : q->path);
  if (given) return rn_arena_str(&q->arena, path, out);
  while (path.size > 1 && path.data[path.size - 1] == '/') --path.size;
  static const char* const ends[] = {".pb", ".pbtxt", ".txt", ".prototxt"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i)
    if (rn_str_ends_with(path, rn_str(ends[i]))) path.size -= strlen(ends[i]);
  return rn_arena_printf(&q->arena, out, "%.*s-8bit", RN_STR_ARGS(path));
}

static rn_status_t ports_of(rn_cli_quant_t* q, const rn_cli_quant_port_t* ports,
                            const rn_edge_t* edges, int32_t count, const char*** out_names,
                            TF_Output** out_edges) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)count, out_names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&q->arena, (size_t)count, out_edges));
  for (int32_t i = 0; i < count; ++i) {
    (*out_names)[i] = ports[i].name.data;
    (*out_edges)[i] = (TF_Output){(TF_Operation*)edges[i].node, edges[i].index};
  }
  return RN_OK;
}

static rn_status_t write_model(rn_cli_quant_t* q, const char* folder) {
  const char **input_names = NULL, **output_names = NULL;
  TF_Output *inputs = NULL, *outputs = NULL;
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_str(&q->arena, q->signature, &name));
  RN_RETURN_IF_ERROR(
      ports_of(q, q->inputs, q->small.inputs, q->input_count, &input_names, &inputs));
  RN_RETURN_IF_ERROR(
      ports_of(q, q->outputs, q->small.outputs, q->output_count, &output_names, &outputs));
  const rn_signature_def_t signature = {.name = name.data,
                                        .input_count = q->input_count,
                                        .input_names = input_names,
                                        .inputs = inputs,
                                        .output_count = q->output_count,
                                        .output_names = output_names,
                                        .outputs = outputs};
  const rn_saved_model_def_t def = {
      .signatures = &signature,
      .signature_count = 1,
      .init = q->fill.size ? (TF_Operation*)rn_graph_find(q->small.graph, q->fill) : NULL,
      .overwrites = rn_cli_has(q->cli, "--overwrite")};
  return rn_cli_prefix(rn_cli_at(rn_saved_model_save(q->small.session, NULL, folder, &def,
                                                     q->cli->env, q->cli->allocator),
                                 folder),
                       "cannot write the model: ");
}

static rn_status_t quantize(rn_cli_quant_t* q) {
  rn_str_t folder;
  rn_pb_GraphDef_t* def = NULL;
  RN_RETURN_IF_ERROR(output_folder(q, &folder));
  bool is_there = rn_fs_exists(q->cli->env, folder.data);
  if (is_there && !rn_cli_has(q->cli, "--overwrite"))
    return rn_already_exists("'%s' exists already; --overwrite replaces it", folder.data);
  RN_RETURN_IF_ERROR(rn_cli_quant_open(q));
  RN_RETURN_IF_ERROR(rn_cli_quant_read(q));
  RN_RETURN_IF_ERROR(rn_cli_quant_find_layers(q));
  RN_RETURN_IF_ERROR(rn_cli_quant_calibrate(q));
  RN_RETURN_IF_ERROR(rn_cli_quant_rewrite(q, &def));
  RN_RETURN_IF_ERROR(rn_cli_quant_net_open(q, def, &q->small));
  RN_RETURN_IF_ERROR(rn_cli_quant_report(q));
  RN_RETURN_IF_ERROR(write_model(q, folder.data));
  fprintf(stderr, "runnel: wrote '%s'\n", folder.data);
  return RN_OK;
}

static rn_status_t run(rn_cli_t* cli) {
  rn_cli_quant_t q = {.cli = cli, .path = rn_cli_word(cli, "MODEL")};
  rn_arena_init(&q.arena, cli->allocator);
  rn_arena_init(&q.file.arena, cli->allocator);
  rn_arena_init(&q.model.arena, cli->allocator);
  rn_strbuf_init(&q.file.bytes, cli->allocator);
  rn_strbuf_init(&q.frozen_bytes, cli->allocator);
  rn_status_t status = quantize(&q);
  rn_cli_quant_data_clear(&q);
  rn_cli_quant_net_clear(&q.small);
  rn_cli_quant_net_clear(&q.plain);
  rn_vec_free(&q.layers, cli->allocator);
  rn_vec_free(&q.sources, cli->allocator);
  rn_cli_model_clear(&q.model);
  rn_cli_file_clear(&q.file);
  rn_strbuf_clear(&q.frozen_bytes);
  rn_arena_clear(&q.arena);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(
        TEXT, "--data", "FILE",
        "example inputs: a TFRecord file (.gz: compressed) of tf.Examples whose features have "
        "the names of the model's inputs, or KEY=FILE.npy for every input",
        .repeats = true),
    RN_OPTION(FOLDER, "--output", "DIR", "write the model here (default: MODEL-8bit)"),
    RN_OPTION(FLAG, "--overwrite", NULL, "replace an existing model"),
    RN_OPTION(CHOICE, "--method", "NAME",
              "how the range of activations is chosen: minmax, percentile (default) or entropy",
              .choices = "minmax percentile entropy"),
    RN_OPTION(TEXT, "--percentile", "P",
              "keep P percent of the values on each side of zero (default: 99.99)"),
    RN_OPTION(TEXT, "--float", "NAME", "leave this layer, or the layers of this scope, in float",
              .repeats = true),
    RN_OPTION(FLAG, "--compare", NULL, "also print the times of both models, side by side"),
    RN_OPTION(TEXT, "--labels", "KEY",
              "the feature of the data with the right class; --compare then prints how often each "
              "model finds it"),
    RN_OPTION(NUMBER, "--examples", "N", "use at most N examples (default: 256)", .least = 1),
    RN_OPTION(NUMBER, "--batch", "N", "run N examples at a time (default: 8)", .least = 1,
              .most = 65536),
    RN_OPTION(NUMBER, "--threads", "N", "use N threads (default: one per processor)", .least = 1,
              .most = 1024),
    RN_OPTION(TEXT, "--output-node", "NAME",
              "a result of a GraphDef (default: the values that no node reads)", .repeats = true),
    RN_OPTION(TEXT, "--signature", "NAME",
              "of a SavedModel (default: serving_default, or the only one)"),
    RN_OPTION(TEXT, "--tags", "T,...", "of a SavedModel with several graphs (default: serve)"),
    RN_CLI_JSON_OPTION(NULL),
    {0},
};

const rn_cli_command_t rn_cli_quantize_command = {
    .name = "quantize",
    .summary = "make an 8-bit model for inference",
    .about =
        "Reads a SavedModel (a folder) or a GraphDef, freezes it, folds batch normalizations into "
        "the weights, runs it on example data to find the ranges of activations, and writes a "
        "SavedModel whose convolutions and matmuls have 8-bit weights and inputs. Runnel "
        "computes these with 8-bit instructions; stock TensorFlow runs the model too.\n\nPrints "
        "per layer the ratio of signal to quantization noise (SQNR) and "
        "the largest error, both against the float model, and which layers stay in float and why.",
    .words = "MODEL",
    .word_kind = RN_CLI_FILE,
    .run = run,
    .options = options,
    .examples =
        "runnel quantize build/train/model --data examples.tfrecord --output small\n"
        "runnel quantize build/train/model --data images=examples/models/digits.npy --compare",
};
