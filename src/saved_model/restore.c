// Imports the graph of a SavedModel and restores its variables. See saved_model.h.
#include "graph/import.h"
#include "saved_model/saved_model.h"
#include "tensor/tstring.h"
#include "wire/decode.h"

// The keys under which the format names the initialization op, newest first.
#define INIT_SIGNATURE "__saved_model_init_op"
static const char* const init_collections[] = {"saved_model_main_op", "legacy_init_op"};

rn_status_t rn_meta_graph_import(const rn_meta_graph_t* meta, rn_graph_t* graph) {
  rn_import_options_t options = {.validate_colocation = true};
  rn_import_results_t results = {0};
  rn_status_t status = rn_graph_import(graph, meta->graph_def, &options, &results);
  rn_import_results_clear(&results);
  return status;
}

rn_status_t rn_saved_model_blame(const rn_saved_model_t* model, rn_status_t status) {
  if (rn_ok(status)) return status;
  return rn_status_annotate(status, "\n\twhile loading %s/saved_model.pb", model->folder.data);
}

static rn_status_t edge_of(rn_graph_t* graph, rn_str_t name, rn_edge_t* out) {
  RN_RETURN_IF_ERROR(rn_edge_by_name(graph, name, out));
  if (out->index < out->node->output_count) return RN_OK;
  return rn_not_found("The graph has no tensor '%.*s': the node has %d outputs", RN_STR_ARGS(name),
                      out->node->output_count);
}

// Values fed to the restore and initialization steps: the file names of the assets and of the
// checkpoint.
typedef struct feeds_t {
  rn_allocator_t allocator;
  RN_VEC(rn_edge_t) edges;
  RN_VEC(rn_tensor_t) values;
} feeds_t;

static rn_status_t feed_text(feeds_t* feeds, rn_graph_t* graph, rn_str_t name, rn_str_t text) {
  rn_edge_t edge;
  RN_RETURN_IF_ERROR(edge_of(graph, name, &edge));
  RN_RETURN_IF_ERROR(rn_vec_push(&feeds->edges, feeds->allocator, edge));
  RN_RETURN_IF_ERROR(rn_vec_push(&feeds->values, feeds->allocator, (rn_tensor_t){0}));
  rn_tensor_t* value = &feeds->values.items[feeds->values.count - 1];
  RN_RETURN_IF_ERROR(rn_tensor_create(feeds->allocator, RN_STRING, RN_SHAPE_SCALAR, value));
  return rn_tstring_assign(RN_DATA(value, rn_tstring_t), text.data, text.size) ? RN_OK
                                                                               : rn_out_of_memory();
}

static void feeds_clear(feeds_t* feeds) {
  for (size_t i = 0; i < feeds->values.count; ++i) rn_tensor_clear(&feeds->values.items[i]);
  rn_vec_free(&feeds->values, feeds->allocator);
  rn_vec_free(&feeds->edges, feeds->allocator);
}

static rn_status_t run(rn_session_t* session, const feeds_t* feeds, rn_node_t* target,
                       const rn_step_options_t* options) {
  rn_signature_t signature = {.feeds = feeds->edges.items,
                              .feed_count = (int32_t)feeds->edges.count,
                              .targets = &target,
                              .target_count = 1};
  const rn_tensor_t** values = NULL;
  size_t count = feeds->values.count;
  RN_RETURN_IF_ERROR(rn_alloc_array(feeds->allocator, count + 1, sizeof *values, (void**)&values));
  for (size_t i = 0; i < count; ++i) values[i] = &feeds->values.items[i];
  rn_status_t status = rn_session_run(session, &signature, values, NULL, options);
  RN_FREE_ARRAY(feeds->allocator, values, count + 1);
  return status;
}

// Whether an untrusted file name stays inside the folder that it is relative to.
static bool is_inside(rn_str_t name) {
  if (name.size && name.data[0] == '/') return false;
  while (name.size)
    if (rn_str_is(rn_str_split(&name, '/'), "..")) return false;
  return true;
}

rn_status_t rn_meta_graph_assets(const rn_meta_graph_t* meta, rn_arena_t* arena,
                                 const rn_pb_AssetFileDef_t** out, uint32_t* out_count) {
  const rn_pb_MetaGraphDef_t* def = meta->def;
  *out = def->asset_file_def.items;
  *out_count = def->asset_file_def.count;
  for (uint32_t c = 0; !*out_count && c < def->collection_def.count; ++c) {
    const rn_pb_CollectionDef_t* list = def->collection_def.items[c].value;
    if (!rn_str_is(def->collection_def.items[c].key, "saved_model_assets") || !list ||
        list->kind_case != rn_pb_CollectionDef_any_list_field || !list->any_list)
      continue;
    uint32_t count = list->any_list->value.count;
    rn_pb_AssetFileDef_t* assets = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &assets));
    for (uint32_t i = 0; i < count; ++i) {
      rn_pb_AssetFileDef_t* asset = NULL;
      RN_RETURN_IF_ERROR(
          RN_PB_DECODE(AssetFileDef, list->any_list->value.items[i].value, NULL, arena, &asset));
      assets[i] = *asset;
    }
    *out = assets;
    *out_count = count;
  }
  return RN_OK;
}

static rn_status_t feed_listed(const rn_saved_model_t* model, const rn_pb_AssetFileDef_t* assets,
                               uint32_t count, rn_graph_t* graph, feeds_t* feeds) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, model->allocator);
  rn_status_t status = RN_OK;
  for (uint32_t i = 0; rn_ok(status) && i < count; ++i) {
    const rn_pb_AssetFileDef_t* asset = &assets[i];
    const rn_pb_TensorInfo_t* info = asset->tensor_info;
    path.size = 0;
    rn_strbuf_printf(&path, "%s/assets/", model->folder.data);
    rn_strbuf_append(&path, asset->filename);
    status = rn_strbuf_status(&path);
    if (rn_ok(status) && (!info || info->encoding_case != rn_pb_TensorInfo_name_field))
      status = rn_invalid_argument("%s: asset '%.*s' belongs to no tensor", model->folder.data,
                                   RN_STR_ARGS(asset->filename));
    if (rn_ok(status) && !is_inside(asset->filename))
      status = rn_invalid_argument("%s: asset '%.*s' is not in the folder of the model",
                                   model->folder.data, RN_STR_ARGS(asset->filename));
    if (rn_ok(status)) status = feed_text(feeds, graph, info->name, rn_strbuf_view(&path));
  }
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t feed_assets(const rn_saved_model_t* model, const rn_meta_graph_t* meta,
                               rn_graph_t* graph, feeds_t* feeds) {
  rn_arena_t arena;
  rn_arena_init(&arena, model->allocator);
  const rn_pb_AssetFileDef_t* assets = NULL;
  uint32_t count = 0;
  rn_status_t status = rn_meta_graph_assets(meta, &arena, &assets, &count);
  if (rn_ok(status)) status = feed_listed(model, assets, count, graph, feeds);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t restore_variables(const rn_saved_model_t* model, const rn_pb_SaverDef_t* saver,
                                     rn_session_t* session, feeds_t* feeds,
                                     const rn_step_options_t* options) {
  if (!saver || !saver->restore_op_name.size) return RN_OK;
  rn_strbuf_t path;
  rn_strbuf_init(&path, model->allocator);
  rn_strbuf_printf(&path, "%s/variables/variables", model->folder.data);
  size_t prefix = path.size;
  rn_strbuf_append(&path, RN_STR(".index"));
  rn_status_t status = rn_strbuf_status(&path);
  bool has_checkpoint = false;
  if (rn_ok(status)) status = rn_fs_find(model->env, path.data, &has_checkpoint);
  rn_graph_t* graph = rn_session_graph(session);
  rn_edge_t restore = RN_NO_EDGE;
  if (has_checkpoint) status = rn_edge_by_name(graph, saver->restore_op_name, &restore);
  size_t assets = feeds->edges.count;
  if (has_checkpoint && rn_ok(status))
    status = feed_text(feeds, graph, saver->filename_tensor_name, rn_str_n(path.data, prefix));
  if (has_checkpoint && rn_ok(status)) status = run(session, feeds, restore.node, options);
  while (feeds->values.count > assets) rn_tensor_clear(&feeds->values.items[--feeds->values.count]);
  feeds->edges.count = assets;
  rn_strbuf_clear(&path);
  return status;
}

// The name of the initialization op; "" if there is none.
static rn_status_t find_init(const rn_saved_model_t* model, const rn_pb_MetaGraphDef_t* def,
                             rn_str_t* out) {
  *out = RN_STR("");
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    if (!rn_str_is(def->signature_def.items[i].key, INIT_SIGNATURE)) continue;
    const rn_pb_SignatureDef_t* signature = def->signature_def.items[i].value;
    for (uint32_t j = 0; signature && j < signature->outputs.count; ++j) {
      const rn_pb_TensorInfo_t* info = signature->outputs.items[j].value;
      if (info && rn_str_is(signature->outputs.items[j].key, INIT_SIGNATURE) &&
          info->encoding_case == rn_pb_TensorInfo_name_field)
        *out = info->name;
    }
    if (out->size) return RN_OK;
    return rn_failed_precondition("Expected exactly one output in the signature %s of %s",
                                  INIT_SIGNATURE, model->folder.data);
  }
  for (size_t c = 0; c < sizeof init_collections / sizeof *init_collections; ++c) {
    for (uint32_t i = 0; i < def->collection_def.count; ++i) {
      const rn_pb_CollectionDef_t* list = def->collection_def.items[i].value;
      if (!rn_str_is(def->collection_def.items[i].key, init_collections[c]) || !list ||
          list->kind_case != rn_pb_CollectionDef_node_list_field || !list->node_list)
        continue;
      if (list->node_list->value.count != 1)
        return rn_failed_precondition("Expected exactly one main op in : %s", model->folder.data);
      *out = list->node_list->value.items[0];
      return RN_OK;
    }
  }
  return RN_OK;
}

static rn_status_t initialise(const rn_saved_model_t* model, const rn_meta_graph_t* meta,
                              rn_session_t* session, const feeds_t* feeds,
                              const rn_step_options_t* options) {
  rn_str_t name;
  RN_RETURN_IF_ERROR(find_init(model, meta->def, &name));
  if (!name.size) return RN_OK;
  rn_edge_t edge;
  RN_RETURN_IF_ERROR(rn_edge_by_name(rn_session_graph(session), name, &edge));
  return run(session, feeds, edge.node, options);
}

rn_status_t rn_meta_graph_restore(const rn_saved_model_t* model, const rn_meta_graph_t* meta,
                                  rn_session_t* session, const rn_step_options_t* options) {
  feeds_t feeds = {.allocator = model->allocator};
  rn_status_t status = feed_assets(model, meta, rn_session_graph(session), &feeds);
  if (rn_ok(status))
    status = restore_variables(model, meta->def->saver_def, session, &feeds, options);
  if (rn_ok(status)) status = initialise(model, meta, session, &feeds, options);
  feeds_clear(&feeds);
  return status;
}
