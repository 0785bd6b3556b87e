// SavedModels for the sub-commands: see model.h.
#include "cli/model.h"

bool rn_cli_is_folder(const rn_cli_t* cli, const char* path) {
  rn_file_stat_t found;
  rn_status_t status = cli->env->fs->stat(cli->env->fs_self, path, &found);
  bool is_folder = rn_ok(status) && found.is_directory;
  rn_status_free(status);
  return is_folder;
}

bool rn_cli_is_signature(rn_str_t name) {
  return !rn_str_starts_with(name, RN_STR("__saved_model_"));
}

static void append_tags(rn_strbuf_t* buf, const rn_meta_graph_t* meta) {
  const rn_pb_MetaGraphDef_MetaInfoDef_t* info = meta->def->meta_info_def;
  for (uint32_t i = 0; info && i < info->tags.count; ++i)
    rn_strbuf_printf(buf, "%s%.*s", i ? "," : "", RN_STR_ARGS(info->tags.items[i]));
}

static rn_status_t no_such_tags(const rn_cli_t* cli, const rn_cli_model_t* model,
                                const char* tags) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, cli->allocator);
  for (int32_t i = 0; i < model->file->graph_count; ++i) {
    if (i) rn_strbuf_append(&buf, RN_STR(" | "));
    append_tags(&buf, &model->file->graphs[i]);
  }
  rn_status_t status = rn_not_found("'%s': no graph has the tags '%s'; --tags may be: %.*s",
                                    model->path, tags, RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t find_graph(const rn_cli_t* cli, rn_cli_model_t* model, const char* tags) {
  if (!tags && model->file->graph_count == 1) {
    model->meta = &model->file->graphs[0];
    return RN_OK;
  }
  rn_str_t rest = rn_str(tags ? tags : "serve"), *list = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, rest.size + 1, &list));
  while (rest.size) list[count++] = rn_str_trim(rn_str_split(&rest, ','));
  rn_status_t status = rn_saved_model_find(model->file, list, (int32_t)count, &model->meta);
  if (rn_ok(status)) return status;
  rn_status_free(status);
  return no_such_tags(cli, model, tags ? tags : "serve");
}

rn_status_t rn_cli_model_open(const rn_cli_t* cli, const char* path, const char* tags,
                              rn_cli_model_t* out) {
  *out = (rn_cli_model_t){.path = path};
  rn_arena_init(&out->arena, cli->allocator);
  rn_str_t folder = rn_str(path);
  if (rn_str_ends_with(folder, RN_STR(".pb")) && !rn_cli_is_folder(cli, path))
    return rn_invalid_argument("'%s' is a file: give the folder of the SavedModel", path);
  RN_RETURN_IF_ERROR(
      rn_cli_at(rn_saved_model_open(cli->env, folder, cli->allocator, &out->file), path));
  return find_graph(cli, out, tags);
}

rn_status_t rn_cli_model_load(const rn_cli_t* cli, rn_cli_model_t* model,
                              const rn_session_options_t* options, const char* allow) {
  rn_session_options_t limited = *options;
  limited.is_limited = true;
  limited.folder = rn_str(model->path);
  limited.allow = rn_str(allow);
  RN_RETURN_IF_ERROR(rn_graph_create(cli->allocator, &model->graph));
  rn_status_t status = rn_meta_graph_import(model->meta, model->graph);
  if (rn_ok(status))
    status = rn_session_create(model->graph, &limited, cli->env, cli->allocator, &model->session);
  if (rn_ok(status)) status = rn_meta_graph_restore(model->file, model->meta, model->session, NULL);
  return rn_cli_at(status, model->path);
}

// The default name; "" if there are several.
static rn_str_t usual_signature(const rn_pb_MetaGraphDef_t* def) {
  rn_str_t only = {0};
  int count = 0;
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    rn_str_t key = def->signature_def.items[i].key;
    if (rn_str_is(key, "serving_default")) return key;
    if (!rn_cli_is_signature(key)) continue;
    only = key;
    ++count;
  }
  return count == 1 ? only : RN_STR("serving_default");
}

rn_status_t rn_cli_model_use(const rn_cli_t* cli, rn_cli_model_t* model, const char* name) {
  (void)cli;
  const rn_pb_SignatureDef_t* def = NULL;
  model->signature = name ? rn_str(name) : usual_signature(model->meta->def);
  rn_status_t status = rn_meta_graph_signature(model->meta, model->signature, &def);
  if (rn_ok(status))
    status = rn_signature_ports(model->graph, def, false, &model->arena, &model->inputs,
                                &model->input_count);
  if (rn_ok(status))
    status = rn_signature_ports(model->graph, def, true, &model->arena, &model->outputs,
                                &model->output_count);
  return rn_cli_at(status, model->path);
}

void rn_cli_model_clear(rn_cli_model_t* model) {
  rn_session_destroy(model->session);
  rn_graph_release(model->graph);
  rn_saved_model_destroy(model->file);
  rn_arena_clear(&model->arena);
}
