// runnel saved_model: what is in a SavedModel, runs of it, and graphs made of it.
#include <stdio.h>

#include "cli/load.h"
#include "cli/model.h"
#include "proto/attr_value.pb.h"
#include "proto/graph.pb.h"
#include "wire/decode.h"

// "float [?,784]"
static void append_info(rn_strbuf_t* buf, const rn_pb_TensorInfo_t* info) {
  rn_strbuf_printf(buf, "%s ", rn_dtype_name((rn_dtype_t)info->dtype));
  const rn_pb_TensorShapeProto_t* shape = info->tensor_shape;
  if (!shape || shape->unknown_rank) {
    rn_strbuf_append(buf, RN_STR("?"));
    return;
  }
  rn_strbuf_append(buf, RN_STR("["));
  for (uint32_t i = 0; i < shape->dim.count; ++i) {
    if (i) rn_strbuf_append(buf, RN_STR(","));
    if (shape->dim.items[i].size < 0)
      rn_strbuf_append(buf, RN_STR("?"));
    else
      rn_strbuf_printf(buf, "%lld", (long long)shape->dim.items[i].size);
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

static void append_ports(rn_strbuf_t* buf, const char* what, const rn_port_t* ports,
                         int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const rn_pb_TensorInfo_t* info = ports[i].info;
    rn_strbuf_printf(buf, "    %s %s: ", what, ports[i].name.data);
    append_info(buf, info);
    if (info->encoding_case == rn_pb_TensorInfo_name_field)
      rn_strbuf_printf(buf, "  (%.*s)\n", RN_STR_ARGS(info->name));
    else
      rn_strbuf_printf(
          buf, "  (%s)\n",
          info->encoding_case == rn_pb_TensorInfo_coo_sparse_field ? "sparse" : "composite");
  }
}

static rn_status_t append_signatures(rn_strbuf_t* buf, rn_cli_model_t* model,
                                     const rn_meta_graph_t* meta) {
  const rn_pb_MetaGraphDef_t* def = meta->def;
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    const rn_pb_SignatureDef_t* signature = def->signature_def.items[i].value;
    if (!rn_cli_is_signature(def->signature_def.items[i].key)) continue;
    rn_strbuf_printf(buf, "  signature %.*s", RN_STR_ARGS(def->signature_def.items[i].key));
    if (signature->method_name.size)
      rn_strbuf_printf(buf, "  (%.*s)", RN_STR_ARGS(signature->method_name));
    rn_strbuf_append(buf, RN_STR("\n"));
    for (int side = 0; side < 2; ++side) {
      rn_port_t* ports = NULL;
      int32_t count = 0;
      RN_RETURN_IF_ERROR(
          rn_signature_ports(NULL, signature, side == 1, &model->arena, &ports, &count));
      append_ports(buf, side ? "out" : "in ", ports, count);
    }
  }
  return RN_OK;
}

// What can be told from a GraphDef without importing it.
typedef struct census_t {
  int64_t nodes, functions, function_nodes, variables;
  rn_map_t unknown;  // ops
  rn_map_t names;    // of functions
  rn_map_t variable_names;
} census_t;

static rn_status_t count_node(census_t* census, const rn_pb_NodeDef_t* node, bool in_function) {
  ++*(in_function ? &census->function_nodes : &census->nodes);
  if (!rn_str_is(node->op, "VarHandleOp") && !rn_str_is(node->op, "VariableV2") &&
      !rn_str_is(node->op, "Variable"))
    return RN_OK;
  const rn_pb_AttrValue_t* shared = rn_cli_attr(node, "shared_name");
  bool is_shared = shared && shared->value_case == rn_pb_AttrValue_s_field && shared->s.size;
  rn_str_t name = is_shared ? shared->s : node->name;
  if (rn_map_get(&census->variable_names, name)) return RN_OK;
  ++census->variables;
  return rn_map_put(&census->variable_names, name, census);
}

static void append_lacking(rn_strbuf_t* buf, const rn_pb_NodeDef_t* node, census_t* census,
                           int* count) {
  if (rn_op_find(node->op) || rn_map_get(&census->names, node->op) ||
      rn_map_get(&census->unknown, node->op))
    return;
  rn_status_free(rn_map_put(&census->unknown, node->op, census));  // else it is listed twice
  rn_strbuf_printf(buf, "%s%.*s", (*count)++ ? ", " : "  lacks ", RN_STR_ARGS(node->op));
}

static rn_status_t append_census(rn_strbuf_t* buf, const rn_pb_GraphDef_t* graph, census_t* census,
                                 bool lists_functions) {
  const rn_pb_FunctionDefLibrary_t* library = graph->library;
  uint32_t functions = library ? library->function.count : 0;
  for (uint32_t n = 0; n < graph->node.count; ++n)
    RN_RETURN_IF_ERROR(count_node(census, &graph->node.items[n], false));
  for (uint32_t f = 0; f < functions; ++f) {
    const rn_pb_FunctionDef_t* function = &library->function.items[f];
    if (function->signature)
      RN_RETURN_IF_ERROR(rn_map_put(&census->names, function->signature->name, census));
    for (uint32_t n = 0; n < function->node_def.count; ++n)
      RN_RETURN_IF_ERROR(count_node(census, &function->node_def.items[n], true));
  }
  rn_cli_digits_t a, b, c;
  rn_strbuf_printf(buf, "  graph: %s nodes, %u functions with %s nodes, %s variables\n",
                   rn_cli_digits(census->nodes, &a), functions,
                   rn_cli_digits(census->function_nodes, &b), rn_cli_digits(census->variables, &c));
  for (uint32_t f = 0; lists_functions && f < functions; ++f) {
    const rn_pb_FunctionDef_t* function = &library->function.items[f];
    if (!function->signature) continue;
    rn_strbuf_printf(buf, "    %.*s: %u arguments, %u results, %u nodes\n",
                     RN_STR_ARGS(function->signature->name), function->signature->input_arg.count,
                     function->signature->output_arg.count, function->node_def.count);
  }
  int lacking = 0;
  for (uint32_t n = 0; n < graph->node.count; ++n)
    append_lacking(buf, &graph->node.items[n], census, &lacking);
  for (uint32_t f = 0; f < functions; ++f)
    for (uint32_t n = 0; n < library->function.items[f].node_def.count; ++n)
      append_lacking(buf, &library->function.items[f].node_def.items[n], census, &lacking);
  if (lacking) rn_strbuf_append(buf, RN_STR("\n"));
  return RN_OK;
}

static rn_status_t append_graph(const rn_cli_t* cli, rn_strbuf_t* buf, rn_cli_model_t* model,
                                const rn_meta_graph_t* meta, bool lists_functions) {
  census_t census = {0};
  rn_map_init(&census.unknown, cli->allocator);
  rn_map_init(&census.names, cli->allocator);
  rn_map_init(&census.variable_names, cli->allocator);
  rn_pb_GraphDef_t* graph = NULL;
  rn_status_t status = RN_PB_DECODE(GraphDef, meta->graph_def, NULL, &model->arena, &graph);
  if (rn_ok(status)) status = append_census(buf, graph, &census, lists_functions);
  rn_map_clear(&census.unknown);
  rn_map_clear(&census.names);
  rn_map_clear(&census.variable_names);
  return rn_cli_prefix(status, "'%s': the graph cannot be read: ", model->path);
}

static rn_status_t show_graph(const rn_cli_t* cli, rn_strbuf_t* buf, rn_cli_model_t* model,
                              const rn_meta_graph_t* meta, bool lists_functions) {
  const rn_pb_MetaGraphDef_MetaInfoDef_t* info = meta->def->meta_info_def;
  rn_strbuf_append(buf, RN_STR("tags: "));
  for (uint32_t i = 0; info && i < info->tags.count; ++i)
    rn_strbuf_printf(buf, "%s%.*s", i ? ", " : "", RN_STR_ARGS(info->tags.items[i]));
  if (info && info->tensorflow_version.size)
    rn_strbuf_printf(buf, "  (TensorFlow %.*s%s)", RN_STR_ARGS(info->tensorflow_version),
                     meta->object_graph.size ? ", with objects" : "");
  rn_strbuf_append(buf, RN_STR("\n"));
  RN_RETURN_IF_ERROR(append_signatures(buf, model, meta));
  const rn_pb_AssetFileDef_t* assets = NULL;
  uint32_t asset_count = 0;
  RN_RETURN_IF_ERROR(rn_meta_graph_assets(meta, &model->arena, &assets, &asset_count));
  for (uint32_t i = 0; i < asset_count; ++i)
    rn_strbuf_printf(buf, "  asset %.*s\n", RN_STR_ARGS(assets[i].filename));
  return append_graph(cli, buf, model, meta, lists_functions);
}

static rn_status_t saved_model_show(rn_cli_t* cli) {
  const char *path = rn_cli_word(cli, 0), *tags = rn_cli_text(cli, "--tags");
  bool lists_functions = rn_cli_has(cli, "--functions");
  rn_cli_model_t model;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, cli->allocator);
  rn_status_t status = rn_cli_model_open(cli, path, tags, &model);
  // Without tags all graphs are shown, so none needs to be the usual one.
  if (!tags && model.file && rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = RN_OK;
  }
  for (int32_t i = 0; rn_ok(status) && i < model.file->graph_count; ++i)
    if (!tags || &model.file->graphs[i] == model.meta)
      status = show_graph(cli, &buf, &model, &model.file->graphs[i], lists_functions);
  if (rn_ok(status)) status = rn_strbuf_status(&buf);
  if (rn_ok(status)) fwrite(rn_strbuf_view(&buf).data, 1, buf.size, stdout);
  rn_strbuf_clear(&buf);
  rn_cli_model_clear(&model);
  return status;
}

static const rn_cli_verb_t verbs[] = {
    RN_VERB("show", "DIR", saved_model_show, FOLDER,
            "graphs with their tags, signatures with their inputs and outputs, assets, ops, and "
            "what this "
            "library lacks to run them"),
    RN_VERB("run", "DIR", rn_cli_run, FOLDER,
            "a step of the model, its inputs and outputs named as in the signature; without "
            "--fetch and "
            "--save all outputs are printed. Takes what 'runnel run' takes",
            .like = &rn_cli_run_command),
    RN_VERB(
        "freeze", "DIR FILE", rn_cli_saved_model_freeze, FOLDER,
        "writes a GraphDef in which variables are constants and functions are put in place: inputs "
        "and outputs are nodes with the names of the signature"),
    {0},
};

static const rn_cli_option_t options[] = {
    RN_OPTION(TEXT, "--tags", "T,...",
              "the graph with these tags (without it: serve, or the only one)"),
    RN_OPTION(TEXT, "--signature", "NAME", "without it: serving_default, or the only one",
              .verbs = "run freeze"),
    RN_OPTION(FLAG, "--functions", NULL, "list the functions too", .verbs = "show"),
    RN_OPTION(TEXT, "--allow", "WHAT",
              "what the model may do beyond reading its own folder, which is nothing: read:FOLDER, "
              "write:FOLDER, network, all, with ';' between",
              .verbs = "run"),
    RN_OPTION(FLAG, "--fold-batch-norms", NULL,
              "multiply batch normalisations into the convolutions before them", .verbs = "freeze"),
    RN_OPTION(FLAG, "--text", NULL, "write text (pbtxt); also if FILE ends in .pbtxt",
              .verbs = "freeze"),
    {0},
};

const rn_cli_command_t rn_cli_saved_model_command = {
    .name = "saved_model",
    .summary = "show, run or freeze a SavedModel",
    .about = "SavedModels, as TensorFlow and Keras export them.",
    .verbs = verbs,
    .options = options,
    .examples =
        "runnel saved_model show build/train/model                # after make train\n"
        "runnel saved_model run build/train/model --feed images=@examples/models/digits.npy\n"
        "runnel saved_model freeze build/train/model digits.pb --fold-batch-norms",
};
