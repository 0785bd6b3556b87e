// Graphs from files: see load.h.
#include "cli/load.h"

#include <stdio.h>

#include "cli/model.h"
#include "graph/import.h"
#include "saved_model/saved_model.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

// A message has 2 GiB - 1 bytes at most; text is a few times longer than bytes.
#define MAX_FILE_BYTES ((size_t)INT32_MAX)

static bool has_text_name(rn_str_t path) {
  return rn_str_ends_with(path, RN_STR(".pbtxt")) || rn_str_ends_with(path, RN_STR(".txt")) ||
         rn_str_ends_with(path, RN_STR(".prototxt"));
}

// Text has no control characters except white space.
static bool looks_like_text(rn_str_t bytes) {
  for (size_t i = 0; i < bytes.size; ++i) {
    unsigned char c = (unsigned char)bytes.data[i];
    if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r')) return false;
  }
  return bytes.size > 0;
}

// A SavedModel begins with its schema version (field 1, a number) and a MetaGraphDef (field 2);
// field 1 of a GraphDef is a node.
static bool is_saved_model(rn_str_t bytes) {
  return rn_str_starts_with(bytes, RN_STR("\x08\x01\x12")) ||
         rn_str_starts_with(bytes, RN_STR("saved_model_schema_version"));
}

static rn_status_t decode(rn_cli_file_t* file) {
  rn_str_t bytes = rn_strbuf_view(&file->bytes);
  rn_pb_limits_t limits = {0};
  if (has_text_name(rn_str(file->path)) || looks_like_text(bytes)) {
    file->is_text = true;
    return rn_cli_prefix(
        rn_pb_parse(&rn_pb_GraphDef_desc, bytes, &limits, &file->arena, (void**)&file->def),
        "'%s': not a GraphDef in text form: ", file->path);
  }
  return rn_cli_prefix(RN_PB_DECODE(GraphDef, bytes, &limits, &file->arena, &file->def),
                       "'%s': not a GraphDef (give a .pb or .pbtxt): ", file->path);
}

// The graph of a SavedModel: the one for serving, or else the first.
static rn_status_t read_model(const rn_cli_t* cli, const char* path, rn_cli_file_t* out) {
  rn_saved_model_t* model = NULL;
  RN_RETURN_IF_ERROR(rn_saved_model_open(cli->env, rn_str(path), cli->allocator, &model));
  const rn_str_t serve = RN_STR("serve");
  const rn_meta_graph_t* graph = NULL;
  rn_status_t status = rn_saved_model_find(model, &serve, 1, &graph);
  if (!rn_ok(status) && model->graph_count) {
    rn_status_free(status);
    status = RN_OK;
    graph = &model->graphs[0];
  }
  if (rn_ok(status)) {
    rn_strbuf_append(&out->bytes, graph->graph_def);
    status = rn_strbuf_status(&out->bytes);
  }
  rn_saved_model_destroy(model);
  return rn_ok(status) ? rn_cli_prefix(RN_PB_DECODE(GraphDef, rn_strbuf_view(&out->bytes), NULL,
                                                    &out->arena, &out->def),
                                       "'%s': the model has no GraphDef: ", path)
                       : status;
}

rn_status_t rn_cli_load(const rn_cli_t* cli, const char* path, rn_cli_file_t* out) {
  *out = (rn_cli_file_t){.path = path, .allocator = cli->allocator};
  rn_arena_init(&out->arena, cli->allocator);
  rn_strbuf_init(&out->bytes, cli->allocator);
  bool is_input = strcmp(path, "-") == 0;
  if (!is_input && rn_cli_is_folder(cli, path)) return rn_cli_at(read_model(cli, path, out), path);
  const char* name = is_input ? "/dev/stdin" : path;
  RN_RETURN_IF_ERROR(
      rn_cli_prefix(rn_cli_at(rn_fs_read(cli->env, name, MAX_FILE_BYTES, &out->bytes), name),
                    "cannot read the graph: "));
  if (is_saved_model(rn_strbuf_view(&out->bytes)))
    return rn_invalid_argument("'%s' is the file of a SavedModel, not a GraphDef: give its folder",
                               path);
  RN_RETURN_IF_ERROR(decode(out));
  // Foreign bytes often decode as a message of nothing but unknown fields.
  const rn_pb_GraphDef_t* def = out->def;
  if (def->node.count == 0 && !def->versions && !def->library)
    return rn_invalid_argument("'%s': not a GraphDef: it has neither nodes nor a version", path);
  return RN_OK;
}

void rn_cli_file_clear(rn_cli_file_t* file) {
  rn_arena_clear(&file->arena);
  rn_strbuf_clear(&file->bytes);
  file->def = NULL;
}

rn_status_t rn_cli_import(const rn_cli_file_t* file, rn_graph_t** out_graph) {
  *out_graph = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, file->allocator);
  rn_graph_t* graph = NULL;
  rn_import_options_t options = {.validate_colocation = true};
  rn_import_results_t results = {.allocator = file->allocator};
  rn_status_t status = RN_PB_ENCODE(GraphDef, file->def, NULL, &bytes);
  if (rn_ok(status)) status = rn_graph_create(file->allocator, &graph);
  if (rn_ok(status)) status = rn_graph_import(graph, rn_strbuf_view(&bytes), &options, &results);
  rn_import_results_clear(&results);
  rn_strbuf_clear(&bytes);
  if (!rn_ok(status)) {
    rn_graph_release(graph);
    return rn_cli_at(status, file->path);
  }
  *out_graph = graph;
  return RN_OK;
}

static rn_status_t to_text(const rn_cli_t* cli, rn_str_t bytes, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, cli->allocator);
  rn_pb_GraphDef_t* def = NULL;
  rn_status_t status = RN_PB_DECODE(GraphDef, bytes, NULL, &arena, &def);
  if (rn_ok(status)) status = rn_pb_print(&rn_pb_GraphDef_desc, def, out);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_cli_write_graph(const rn_cli_t* cli, const char* path, rn_str_t bytes,
                               bool is_text) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, cli->allocator);
  rn_status_t status = RN_OK;
  if (is_text || has_text_name(rn_str(path))) {
    status = to_text(cli, bytes, &text);
    bytes = rn_strbuf_view(&text);
  }
  if (rn_ok(status) && strcmp(path, "-") == 0)
    fwrite(bytes.data, 1, bytes.size, stdout);
  else if (rn_ok(status))
    status = rn_cli_prefix(rn_cli_at(rn_fs_write(cli->env, path, bytes), path), "cannot write ");
  rn_strbuf_clear(&text);
  return status;
}

const rn_pb_AttrValue_t* rn_cli_attr(const rn_pb_NodeDef_t* node, const char* name) {
  for (uint32_t i = node->attr.count; i > 0; --i)
    if (rn_str_is(node->attr.items[i - 1].key, name)) return node->attr.items[i - 1].value;
  return NULL;
}
