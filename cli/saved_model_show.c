// runnel saved_model show: describes a SavedModel. Builds JSON first and prints the text from that.
#include "base/map.h"
#include "cli/color.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/model.h"
#include "proto/attr_value.pb.h"
#include "proto/graph.pb.h"
#include "wire/decode.h"

static json_t* shape_of(const rn_pb_TensorShapeProto_t* shape) {
  if (!shape || shape->unknown_rank) return json_null();
  json_t* dims = json_array();
  for (uint32_t i = 0; i < shape->dim.count; ++i) {
    int64_t size = shape->dim.items[i].size;
    json_array_append_new(dims, size < 0 ? json_null() : json_integer(size));
  }
  return dims;
}

static json_t* port_of(const rn_pb_TensorInfo_t* info) {
  json_t* port = json_pack("{s:s, s:o}", "dtype", rn_dtype_name((rn_dtype_t)info->dtype), "shape",
                           shape_of(info->tensor_shape));
  bool is_sparse = info->encoding_case == rn_pb_TensorInfo_coo_sparse_field;
  if (info->encoding_case == rn_pb_TensorInfo_name_field)
    json_object_set_new(port, "tensor", rn_cli_json_str(info->name));
  else
    json_object_set_new(port, "encoding", json_string(is_sparse ? "sparse" : "composite"));
  return port;
}

static rn_status_t ports_of(rn_cli_model_t* model, const rn_pb_SignatureDef_t* signature,
                            bool is_output, json_t* out) {
  rn_port_t* ports = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_signature_ports(NULL, signature, is_output, &model->arena, &ports, &count));
  for (int32_t i = 0; i < count; ++i)
    json_object_set_new(out, ports[i].name.data, port_of(ports[i].info));
  return RN_OK;
}

// The signatures, or the one called |only|.
static rn_status_t signatures_of(rn_cli_model_t* model, const rn_meta_graph_t* meta,
                                 const char* only, json_t* out) {
  const rn_pb_MetaGraphDef_t* def = meta->def;
  const rn_pb_SignatureDef_t* found;
  if (only)
    RN_RETURN_IF_ERROR(rn_cli_at(rn_meta_graph_signature(meta, rn_str(only), &found), model->path));
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    const rn_pb_SignatureDef_t* signature = def->signature_def.items[i].value;
    rn_str_t key = def->signature_def.items[i].key, name;
    if (only ? !rn_str_is(key, only) : !rn_cli_is_signature(key)) continue;
    json_t *inputs = json_object(), *outputs = json_object();
    RN_RETURN_IF_ERROR(rn_arena_str(&model->arena, key, &name));
    json_object_set_new(
        out, name.data,
        json_pack("{s:o, s:o, s:o}", "method", rn_cli_json_str(signature->method_name), "inputs",
                  inputs, "outputs", outputs));
    RN_RETURN_IF_ERROR(ports_of(model, signature, false, inputs));
    RN_RETURN_IF_ERROR(ports_of(model, signature, true, outputs));
  }
  return RN_OK;
}

// What a GraphDef tells without being imported.
typedef struct census_t {
  int64_t nodes, function_nodes, variables;
  json_t* lacks;     // ops that this library does not have
  rn_map_t unknown;  // the same as a set
  rn_map_t names;    // of functions
  rn_map_t variable_names;
} census_t;

static rn_status_t count_node(census_t* census, const rn_pb_NodeDef_t* node, int64_t* count) {
  ++*count;
  if (!rn_op_find(node->op) && !rn_map_get(&census->names, node->op) &&
      !rn_map_get(&census->unknown, node->op)) {
    json_array_append_new(census->lacks, rn_cli_json_str(node->op));
    RN_RETURN_IF_ERROR(rn_map_put(&census->unknown, node->op, census));
  }
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

static rn_status_t take_census(const rn_pb_GraphDef_t* graph, census_t* census, json_t* functions) {
  const rn_pb_FunctionDefLibrary_t* library = graph->library;
  uint32_t count = library ? library->function.count : 0;
  for (uint32_t f = 0; f < count; ++f) {
    const rn_pb_FunctionDef_t* function = &library->function.items[f];
    if (!function->signature) continue;
    RN_RETURN_IF_ERROR(rn_map_put(&census->names, function->signature->name, census));
    json_array_append_new(
        functions,
        json_pack("{s:o, s:i, s:i, s:i}", "name", rn_cli_json_str(function->signature->name),
                  "arguments", (int)function->signature->input_arg.count, "results",
                  (int)function->signature->output_arg.count, "nodes",
                  (int)function->node_def.count));
  }
  for (uint32_t n = 0; n < graph->node.count; ++n)
    RN_RETURN_IF_ERROR(count_node(census, &graph->node.items[n], &census->nodes));
  for (uint32_t f = 0; f < count; ++f)
    for (uint32_t n = 0; n < library->function.items[f].node_def.count; ++n)
      RN_RETURN_IF_ERROR(count_node(census, &library->function.items[f].node_def.items[n],
                                    &census->function_nodes));
  return RN_OK;
}

static rn_status_t add_census(const rn_cli_t* cli, rn_cli_model_t* model,
                              const rn_meta_graph_t* meta, json_t* out) {
  census_t census = {.lacks = json_array()};
  json_t* functions = json_array();
  rn_map_init(&census.unknown, cli->allocator);
  rn_map_init(&census.names, cli->allocator);
  rn_map_init(&census.variable_names, cli->allocator);
  rn_pb_GraphDef_t* graph = NULL;
  rn_status_t status = RN_PB_DECODE(GraphDef, meta->graph_def, NULL, &model->arena, &graph);
  if (rn_ok(status)) status = take_census(graph, &census, functions);
  rn_map_clear(&census.unknown);
  rn_map_clear(&census.names);
  rn_map_clear(&census.variable_names);
  json_object_set_new(out, "nodes", json_integer(census.nodes));
  json_object_set_new(out, "variables", json_integer(census.variables));
  json_object_set_new(out, "function_nodes", json_integer(census.function_nodes));
  json_object_set_new(out, "functions", functions);
  json_object_set_new(out, "lacks", census.lacks);
  return rn_cli_prefix(status, "'%s': the graph cannot be read: ", model->path);
}

static rn_status_t describe(const rn_cli_t* cli, rn_cli_model_t* model, const rn_meta_graph_t* meta,
                            json_t* out) {
  const rn_pb_MetaGraphDef_MetaInfoDef_t* info = meta->def->meta_info_def;
  json_t *tags = json_array(), *signatures = json_object(), *assets = json_array();
  for (uint32_t i = 0; info && i < info->tags.count; ++i)
    json_array_append_new(tags, rn_cli_json_str(info->tags.items[i]));
  json_object_set_new(out, "tags", tags);
  json_object_set_new(out, "tensorflow_version",
                      rn_cli_json_str(info ? info->tensorflow_version : RN_STR("")));
  json_object_set_new(out, "has_objects", json_boolean(meta->object_graph.size));
  json_object_set_new(out, "signatures", signatures);
  json_object_set_new(out, "assets", assets);
  RN_RETURN_IF_ERROR(signatures_of(model, meta, rn_cli_text(cli, "--signature"), signatures));
  const rn_pb_AssetFileDef_t* files = NULL;
  uint32_t count = 0;
  RN_RETURN_IF_ERROR(rn_meta_graph_assets(meta, &model->arena, &files, &count));
  for (uint32_t i = 0; i < count; ++i)
    json_array_append_new(assets, rn_cli_json_str(files[i].filename));
  return add_census(cli, model, meta, out);
}

static const char* text(const json_t* object, const char* key) {
  const char* value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}
static int64_t number(const json_t* object, const char* key) {
  return json_integer_value(json_object_get(object, key));
}

// "    in  images: float [?,784]  (Placeholder:0)"
static void print_ports(const char* what, json_t* ports) {
  const char* name;
  json_t *port, *dim;
  size_t i;
  json_object_foreach(ports, name, port) {
    const json_t* shape = json_object_get(port, "shape");
    printf("    %s %s: %s ", what, name, text(port, "dtype"));
    if (json_is_null(shape)) printf("?");
    json_array_foreach(shape, i, dim) {
      printf("%s", i ? "," : "[");
      if (json_is_null(dim))
        printf("?");
      else
        printf("%lld", (long long)json_integer_value(dim));
    }
    bool has_tensor = json_object_get(port, "tensor") != NULL;
    printf("%s  (%s)\n",
           json_is_null(shape)      ? ""
           : json_array_size(shape) ? "]"
                                    : "[]",
           text(port, has_tensor ? "tensor" : "encoding"));
  }
}

static void print_list(const char* title, const json_t* list, const char* comma) {
  size_t i;
  json_t* item;
  json_array_foreach(list, i, item) printf("%s%s", i ? comma : title, json_string_value(item));
}

static void print_graph(const rn_cli_t* cli, const json_t* graph) {
  const char *name, *version = text(graph, "tensorflow_version");
  json_t *signature, *function;
  size_t i;
  rn_cli_digits_t a, b, c;
  printf("%s%s%s ", RN_COLORED(cli, BOLD, "tags:"));
  print_list("", json_object_get(graph, "tags"), ", ");
  if (*version)
    printf("  (TensorFlow %s%s)", version,
           json_is_true(json_object_get(graph, "has_objects")) ? ", with objects" : "");
  putchar('\n');
  json_object_foreach(json_object_get(graph, "signatures"), name, signature) {
    const char* method = text(signature, "method");
    printf("  %s%s%s %s", RN_COLORED(cli, BOLD, "signature"), name);
    printf(*method ? "  (%s)\n" : "%s\n", method);
    print_ports("in ", json_object_get(signature, "inputs"));
    print_ports("out", json_object_get(signature, "outputs"));
  }
  const json_t* assets = json_object_get(graph, "assets");
  print_list("  asset ", assets, "\n  asset ");
  if (json_array_size(assets)) putchar('\n');
  const json_t* functions = json_object_get(graph, "functions");
  printf("  graph: %s nodes, %zu functions with %s nodes, %s variables\n",
         rn_cli_digits(number(graph, "nodes"), &a), json_array_size(functions),
         rn_cli_digits(number(graph, "function_nodes"), &b),
         rn_cli_digits(number(graph, "variables"), &c));
  json_array_foreach(functions, i, function) {
    if (!rn_cli_has(cli, "--functions")) break;
    printf("    %s: %lld arguments, %lld results, %lld nodes\n", text(function, "name"),
           (long long)number(function, "arguments"), (long long)number(function, "results"),
           (long long)number(function, "nodes"));
  }
  const json_t* lacks = json_object_get(graph, "lacks");
  if (!json_array_size(lacks)) return;
  printf("  %s%s%s ", RN_COLORED(cli, RED, "lacks"));
  print_list("", lacks, ", ");
  putchar('\n');
}

static rn_status_t show(rn_cli_t* cli, rn_cli_model_t* model, bool is_all) {
  json_t *graphs = json_array(), *graph;
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < model->file->graph_count; ++i) {
    const rn_meta_graph_t* meta = &model->file->graphs[i];
    if (!is_all && meta != model->meta) continue;
    graph = json_object();
    json_array_append_new(graphs, graph);
    status = describe(cli, model, meta, graph);
  }
  size_t i;
  if (rn_ok(status) && rn_cli_has(cli, "--json"))
    return rn_cli_json_print(json_pack("{s:o}", "graphs", graphs));
  json_array_foreach(graphs, i, graph) {
    if (rn_ok(status)) print_graph(cli, graph);
  }
  json_decref(graphs);
  return status;
}

rn_status_t rn_cli_saved_model_show(rn_cli_t* cli) {
  const char *path = rn_cli_word(cli, "DIR"), *tags = rn_cli_text(cli, "--tags");
  rn_cli_model_t model;
  rn_status_t status = rn_cli_model_open(cli, path, tags, &model);
  // Without tags, shows all graphs, so no default graph is needed.
  if (!tags && model.file && rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = RN_OK;
  }
  if (rn_ok(status)) status = show(cli, &model, !tags);
  rn_cli_model_clear(&model);
  return status;
}
