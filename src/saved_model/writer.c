// Writing SavedModels: see writer.h.
#include "saved_model/writer.h"

#include "base/fs.h"
#include "framework/resource.h"
#include "graph/import.h"
#include "io/bundle.h"
#include "proto/saved_model.pb.h"
#include "proto/variable.pb.h"
#include "saved_model/objects.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "train/store.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define TENSORFLOW_VERSION "2.21.0"  // the release whose formats these are
#define PREDICT_METHOD "tensorflow/serving/predict"

typedef struct saved_model_writer_t {
  rn_session_t* session;
  const rn_model_origin_t* origin;  // NULL if there is none that has objects
  const rn_saved_model_def_t* def;
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_str_t folder;
  rn_graph_t* copy;  // Owned: copy of the session's graph, with nodes that save and restore
  rn_model_variables_t variables;
  rn_saver_nodes_t saver;
  rn_pb_MetaGraphDef_t meta;
  rn_strbuf_t objects;  // the SavedObjectGraph; empty if there is none
  bool is_again;        // writes the model of |origin| with new values
} saved_model_writer_t;

static rn_str_t text_attr(const rn_node_t* node, const char* name) {
  const rn_attr_value_t* value = rn_node_attr(node, rn_str(name));
  return value && value->kind == RN_ATTR_STRING ? value->s : RN_STR("");
}

static bool is_op(const rn_node_t* node, const char* op) { return strcmp(node->op->name, op) == 0; }

// The value of the variable, on any device.
static rn_status_t find_value(saved_model_writer_t* w, rn_model_variable_t* variable) {
  rn_str_t container = text_attr(variable->node, "container");
  rn_status_t status = RN_OK;
  for (int d = 0; rn_ok(status) && d < rn_session_device_count(w->session); ++d) {
    const rn_device_t* device = rn_session_device(w->session, d);
    rn_resource_t* resource = NULL;
    if (!device->is_host || rn_tensor_is_set(&variable->value)) continue;
    rn_status_t found = rn_resources_get(device->resources, container, variable->resource,
                                         RN_VARIABLE_TYPE, NULL, NULL, &resource);
    if (rn_status_code(found) == RN_CODE_RESOURCE_EXHAUSTED) return found;
    if (!rn_ok(found)) {
      rn_status_free(found);
      continue;
    }
    rn_variable_t* cell = (rn_variable_t*)resource;
    rn_mutex_lock(&cell->mutex);
    // A copy, because reference variables are changed in place.
    if (rn_tensor_is_set(&cell->value))
      status = rn_tensor_copy(&cell->value, w->allocator, &variable->value);
    rn_mutex_unlock(&cell->mutex);
    rn_object_release(&resource->object);
  }
  return status;
}

// Whether a variable of the session's graph is trainable: as its creator said or, if it was built
// from plain nodes, if its type is floating-point.
static bool is_trainable(const saved_model_writer_t* w, const rn_model_variable_t* variable) {
  const rn_store_t* store = rn_session_graph(w->session)->attachment;
  if (!store) return rn_dtype_is_floating(variable->value.dtype);
  for (size_t c = 0; c < store->collections.count; ++c) {
    const rn_collection_t* collection = &store->collections.items[c];
    if (!rn_str_is(collection->name, RN_TRAINABLE_VARIABLES)) continue;
    for (size_t i = 0; i < collection->items.count; ++i) {
      const rn_node_t* node = collection->items.items[i].edge.node;
      if (node && rn_str_eq(node->name, variable->node->name)) return true;
    }
  }
  return false;
}

static rn_status_t add_variable(saved_model_writer_t* w, rn_node_t* node, bool is_needed) {
  rn_model_variable_t variable = {.node = node, .resource = text_attr(node, "shared_name")};
  if (!variable.resource.size) variable.resource = node->name;
  variable.name = variable.resource;
  for (size_t i = 0; i < w->variables.count; ++i)
    if (rn_str_eq(w->variables.items[i].resource, variable.resource)) return RN_OK;
  RN_RETURN_IF_ERROR(find_value(w, &variable));
  if (!rn_tensor_is_set(&variable.value))
    return is_needed ? rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                              RN_STR_ARGS(variable.resource))
                     : RN_OK;
  variable.is_trainable = is_trainable(w, &variable);
  rn_status_t status = rn_vec_push(&w->variables, w->allocator, variable);
  if (!rn_ok(status)) rn_tensor_clear(&variable.value);
  return status;
}

// Marks, by number, the nodes of the copy that a signature or the initialization depends on.
static rn_status_t mark_needed(saved_model_writer_t* w, bool** out) {
  rn_node_t** stack = NULL;
  size_t count = w->copy->nodes.count, depth = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count + 1, out));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count + 1, &stack));
#define REACH(reached)                 \
  do {                                 \
    rn_node_t* node_ = (reached);      \
    if (node_ && !(*out)[node_->id]) { \
      (*out)[node_->id] = true;        \
      stack[depth++] = node_;          \
    }                                  \
  } while (0)
  for (int i = 0; i < w->def->signature_count; ++i)
    for (int o = 0; o < w->def->signatures[i].output_count; ++o) {
      const rn_node_t* node = (const rn_node_t*)w->def->signatures[i].outputs[o].oper;
      if (node) REACH(rn_graph_find(w->copy, node->name));
    }
  if (w->def->init) REACH(rn_graph_find(w->copy, ((const rn_node_t*)w->def->init)->name));
  while (depth > 0) {
    const rn_node_t* node = stack[--depth];
    for (int32_t i = 0; i < node->input_count; ++i) REACH(node->inputs[i].node);
    for (size_t i = 0; i < node->controls.count; ++i) REACH(node->controls.items[i]);
  }
#undef REACH
  return RN_OK;
}

static rn_status_t copy_graph(saved_model_writer_t* w) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, w->allocator);
  rn_import_options_t options = {0};
  rn_import_results_t results = {.allocator = w->allocator};
  rn_status_t status = rn_graph_export(rn_session_graph(w->session), &bytes);
  if (rn_ok(status)) status = rn_graph_create(w->allocator, &w->copy);
  if (rn_ok(status)) status = rn_graph_import(w->copy, rn_strbuf_view(&bytes), &options, &results);
  rn_import_results_clear(&results);
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t find_variables(saved_model_writer_t* w) {
  size_t count = w->copy->nodes.count;
  bool* is_needed = NULL;
  RN_RETURN_IF_ERROR(mark_needed(w, &is_needed));
  for (size_t n = 0; n < count; ++n) {
    rn_node_t* node = w->copy->nodes.items[n];
    if (is_op(node, "VarHandleOp") || is_op(node, "VariableV2") || is_op(node, "Variable"))
      RN_RETURN_IF_ERROR(add_variable(w, node, is_needed[node->id]));
  }
  return RN_OK;
}

// Adds the tree of objects to the checkpoint as one more value.
static rn_status_t add_tree(saved_model_writer_t* w, rn_str_t tree) {
  rn_model_variable_t entry = {.name = RN_STR(RN_OBJECT_GRAPH_KEY)};
  RN_RETURN_IF_ERROR(rn_tensor_create(w->allocator, RN_STRING, RN_SHAPE_SCALAR, &entry.value));
  rn_status_t status = RN_OK;
  if (!rn_tstring_assign(RN_DATA(&entry.value, rn_tstring_t), tree.data, tree.size))
    status = rn_out_of_memory();
  if (rn_ok(status)) status = rn_vec_push(&w->variables, w->allocator, entry);
  if (!rn_ok(status)) rn_tensor_clear(&entry.value);
  return status;
}

static rn_status_t add_objects(saved_model_writer_t* w) {
  rn_objects_t objects = {.allocator = w->allocator,
                          .arena = &w->arena,
                          .graph = w->copy,
                          .meta = &w->meta,
                          .def = w->def,
                          .variables = w->variables.items,
                          .variable_count = w->variables.count};
  rn_strbuf_t tree;
  rn_strbuf_init(&tree, w->allocator);
  bool fits = false;
  rn_status_t status = rn_objects_build(&objects, &fits);
  if (rn_ok(status) && fits) status = rn_objects_encode(&objects, &w->objects);
  if (rn_ok(status) && fits) status = rn_objects_encode_tree(&objects, &tree);
  if (rn_ok(status) && fits) status = add_tree(w, rn_strbuf_view(&tree));
  rn_strbuf_clear(&tree);
  rn_objects_clear(&objects);
  return status;
}

static rn_status_t add_saver(saved_model_writer_t* w) {
  if (!w->variables.count) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_saver_nodes_add(w->copy, w->variables.items, w->variables.count, &w->arena, &w->saver));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &w->meta.saver_def));
  *w->meta.saver_def = (rn_pb_SaverDef_t){.filename_tensor_name = w->saver.filename,
                                          .save_tensor_name = w->saver.save,
                                          .restore_op_name = w->saver.restore,
                                          .max_to_keep = 5,
                                          .keep_checkpoint_every_n_hours = 10000,
                                          .version = rn_pb_SaverDef_V2};
  return RN_OK;
}

static rn_status_t encode_variable(saved_model_writer_t* w, size_t i, rn_str_t* out) {
  const rn_model_variable_t* variable = &w->variables.items[i];
  rn_pb_VariableDef_t def = {
      .initializer_name = w->saver.assigns[i],
      .snapshot_name = w->saver.reads[i],
      .is_resource = rn_dtype_base(variable->node->outputs[0].dtype) == RN_RESOURCE,
      .trainable = variable->is_trainable};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&w->arena, &def.variable_name, "%.*s:0", RN_STR_ARGS(variable->node->name)));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, w->allocator);
  rn_status_t status = RN_PB_ENCODE(VariableDef, &def, NULL, &bytes);
  if (rn_ok(status)) status = rn_arena_str(&w->arena, rn_strbuf_view(&bytes), out);
  rn_strbuf_clear(&bytes);
  return status;
}

// Adds the collection |name| of variables, which loaders that build no objects read.
static rn_status_t add_variables(saved_model_writer_t* w, const char* name, bool all) {
  rn_pb_CollectionDef_t* list = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &list));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &list->bytes_list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, w->variables.count, &list->bytes_list->value.items));
  list->kind_case = rn_pb_CollectionDef_bytes_list_field;
  uint32_t count = 0;
  for (size_t i = 0; i < w->variables.count; ++i)
    if (w->variables.items[i].node && (all || w->variables.items[i].is_trainable))
      RN_RETURN_IF_ERROR(encode_variable(w, i, &list->bytes_list->value.items[count++]));
  list->bytes_list->value.count = count;
  if (count)
    w->meta.collection_def.items[w->meta.collection_def.count++] =
        (rn_pb_MetaGraphDef_CollectionDefEntry_t){rn_str(name), list};
  return RN_OK;
}

// Writes the TensorInfo of a tensor.
static rn_status_t describe(saved_model_writer_t* w, TF_Output output, const char* name,
                            rn_pb_TensorInfo_t** out) {
  const rn_node_t* node = (const rn_node_t*)output.oper;
  if (!name || !*name || !node || output.index < 0 || output.index >= node->output_count)
    return rn_invalid_argument("A signature names a tensor that is none: '%s'", name ? name : "");
  rn_str_t tensor;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &tensor, "%s:%d", node->name.data, output.index));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, out));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &(*out)->tensor_shape));
  (*out)->encoding_case = rn_pb_TensorInfo_name_field;
  (*out)->name = tensor;
  rn_graph_t* graph = node->graph;
  rn_mutex_lock(&graph->mutex);
  (*out)->dtype = rn_dtype_base(node->outputs[output.index].dtype);
  rn_status_t status =
      rn_shape_to_proto(node->outputs[output.index].shape, &w->arena, (*out)->tensor_shape);
  rn_mutex_unlock(&graph->mutex);
  return status;
}

// Entries of inputs and of outputs both begin with their keys.
static int compare_entries(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

static rn_status_t add_signature(saved_model_writer_t* w, const rn_signature_def_t* def,
                                 rn_pb_MetaGraphDef_SignatureDefEntry_t* out) {
  if (!def->name || !*def->name || def->input_count < 0 || def->output_count < 0)
    return rn_invalid_argument("A signature has no name, or bad lists");
  rn_pb_SignatureDef_t* signature = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &signature));
  *out = (rn_pb_MetaGraphDef_SignatureDefEntry_t){rn_str(def->name), signature};
  signature->method_name = rn_str(def->method ? def->method : PREDICT_METHOD);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, (size_t)def->input_count, &signature->inputs.items));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&w->arena, (size_t)def->output_count, &signature->outputs.items));
  for (int i = 0; i < def->input_count; ++i) {
    signature->inputs.items[i].key = rn_str(def->input_names[i]);
    RN_RETURN_IF_ERROR(
        describe(w, def->inputs[i], def->input_names[i], &signature->inputs.items[i].value));
  }
  for (int i = 0; i < def->output_count; ++i) {
    signature->outputs.items[i].key = rn_str(def->output_names[i]);
    RN_RETURN_IF_ERROR(
        describe(w, def->outputs[i], def->output_names[i], &signature->outputs.items[i].value));
  }
  signature->inputs.count = (uint32_t)def->input_count;
  signature->outputs.count = (uint32_t)def->output_count;
  qsort(signature->inputs.items, signature->inputs.count, sizeof *signature->inputs.items,
        compare_entries);
  qsort(signature->outputs.items, signature->outputs.count, sizeof *signature->outputs.items,
        compare_entries);
  return RN_OK;
}

// A collection names the initialization op; loaders of both TensorFlow versions read it.
static rn_status_t add_init(saved_model_writer_t* w) {
  const rn_node_t* init = (const rn_node_t*)w->def->init;
  rn_pb_CollectionDef_t* list = NULL;
  if (!init) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &list));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &list->node_list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, 1, &list->node_list->value.items));
  list->kind_case = rn_pb_CollectionDef_node_list_field;
  list->node_list->value.items[0] = init->name;
  list->node_list->value.count = 1;
  w->meta.collection_def.items[w->meta.collection_def.count++] =
      (rn_pb_MetaGraphDef_CollectionDefEntry_t){RN_STR("saved_model_main_op"), list};
  return RN_OK;
}

static rn_status_t add_signatures(saved_model_writer_t* w) {
  size_t count = (size_t)w->def->signature_count;
  if (w->def->signature_count < 0) return rn_invalid_argument("bad list of signatures");
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count, &w->meta.signature_def.items));
  w->meta.signature_def.count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(add_signature(w, &w->def->signatures[i], &w->meta.signature_def.items[i]));
  return RN_OK;
}

static rn_status_t add_collections(saved_model_writer_t* w) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, 3, &w->meta.collection_def.items));
  RN_RETURN_IF_ERROR(add_init(w));
  RN_RETURN_IF_ERROR(add_variables(w, RN_GLOBAL_VARIABLES, true));
  return add_variables(w, RN_TRAINABLE_VARIABLES, false);
}

static rn_status_t add_info(saved_model_writer_t* w) {
  rn_pb_MetaGraphDef_MetaInfoDef_t* info = NULL;
  int count = w->def->tags ? w->def->tag_count : 1;
  if (count < 0) return rn_invalid_argument("bad list of tags");
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &info));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, (size_t)count, &info->tags.items));
  for (int i = 0; i < count; ++i)
    info->tags.items[i] = rn_str(w->def->tags ? w->def->tags[i] : "serve");
  info->tags.count = (uint32_t)count;
  info->tensorflow_version = RN_STR(TENSORFLOW_VERSION);
  w->meta.meta_info_def = info;
  return RN_OK;
}

// The part after the last '/'.
static rn_str_t base_name(rn_str_t path) {
  size_t start = path.size;
  while (start > 0 && path.data[start - 1] != '/') --start;
  return rn_str_n(path.data + start, path.size - start);
}

static rn_status_t write_file(saved_model_writer_t* w, const char* name, rn_str_t bytes) {
  rn_str_t path;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &path, "%s/%s", w->folder.data, name));
  return rn_fs_replace(w->env, path.data, bytes);
}

static rn_status_t copy_file(saved_model_writer_t* w, const char* path, rn_str_t name) {
  rn_str_t target;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &target, "assets/%.*s", RN_STR_ARGS(name)));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, w->allocator);
  rn_status_t status = rn_fs_read(w->env, path, SIZE_MAX, &bytes);
  if (rn_ok(status)) status = write_file(w, target.data, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t copy_asset(saved_model_writer_t* w, const rn_asset_def_t* asset,
                              rn_pb_AssetFileDef_t* out) {
  rn_str_t name = base_name(rn_str(asset->path));
  if (!name.size) return rn_invalid_argument("An asset has no file");
  out->filename = name;
  RN_RETURN_IF_ERROR(describe(w, asset->tensor, "asset", &out->tensor_info));
  return copy_file(w, asset->path, name);
}

// The assets of the model that is written again.
static rn_status_t copy_assets(saved_model_writer_t* w) {
  for (uint32_t i = 0; i < w->meta.asset_file_def.count; ++i) {
    rn_str_t name = w->meta.asset_file_def.items[i].filename, path;
    RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &path, "%s/assets/%.*s",
                                       w->origin->file->folder.data, RN_STR_ARGS(name)));
    RN_RETURN_IF_ERROR(copy_file(w, path.data, name));
  }
  return RN_OK;
}

static rn_status_t write_assets(saved_model_writer_t* w) {
  rn_str_t path;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &path, "%s/assets", w->folder.data));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(w->env, path.data));
  if (w->is_again) return copy_assets(w);
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&w->arena, (size_t)w->def->asset_count, &w->meta.asset_file_def.items));
  for (int i = 0; i < w->def->asset_count; ++i)
    RN_RETURN_IF_ERROR(copy_asset(w, &w->def->assets[i], &w->meta.asset_file_def.items[i]));
  w->meta.asset_file_def.count = (uint32_t)w->def->asset_count;
  return RN_OK;
}

static rn_status_t write_variables(saved_model_writer_t* w) {
  if (!w->variables.count) return RN_OK;
  rn_str_t prefix;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &prefix, "%s/variables/variables", w->folder.data));
  rn_bundle_writer_t* bundle = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_writer_create(w->env, prefix.data, NULL, &bundle));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < w->variables.count; ++i)
    status = rn_bundle_writer_add(bundle, w->variables.items[i].name, &w->variables.items[i].value);
  if (rn_ok(status)) status = rn_bundle_writer_finish(bundle, NULL);
  rn_bundle_writer_destroy(bundle);
  return status;
}

// Writes fields in order, so that the graph, the largest part, is serialized once, directly into
// the bytes of the file.
static rn_status_t write_model(saved_model_writer_t* w) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, w->allocator);
  rn_pb_put_uint(&bytes, rn_pb_SavedModel_saved_model_schema_version_field, 1);
  size_t meta = rn_pb_begin(&bytes, rn_pb_SavedModel_meta_graphs_field);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  rn_status_t status = RN_PB_ENCODE(MetaGraphDef, &w->meta, &sorted, &bytes);
  size_t graph = rn_pb_begin(&bytes, rn_pb_MetaGraphDef_graph_def_field);
  if (rn_ok(status)) status = rn_graph_export(w->copy, &bytes);
  rn_pb_end(&bytes, graph);
  if (w->objects.size)
    rn_pb_put_str(&bytes, rn_pb_MetaGraphDef_object_graph_def_field, rn_strbuf_view(&w->objects));
  rn_pb_end(&bytes, meta);
  if (rn_ok(status)) status = rn_strbuf_status(&bytes);
  if (rn_ok(status) && bytes.size > INT32_MAX)
    status = rn_invalid_argument("%s: the graph is too large for a message: %zu bytes",
                                 w->folder.data, bytes.size);
  if (rn_ok(status)) status = write_file(w, "saved_model.pb", rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t check_folder(saved_model_writer_t* w) {
  static const char* const names[] = {"saved_model.pb", "saved_model.pbtxt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    rn_str_t path;
    RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &path, "%s/%s", w->folder.data, names[i]));
    bool is_there = false;
    RN_RETURN_IF_ERROR(rn_fs_find(w->env, path.data, &is_there));
    if (!is_there) continue;
    if (!w->def->overwrites) return rn_already_exists("%s; there is a model already", path.data);
    // Removes the old graph first: it must never be paired with the new variables.
    RN_RETURN_IF_ERROR(w->env->fs->remove(w->env->fs_self, path.data));
  }
  rn_status_t status = rn_fs_make_directories(w->env, w->folder.data);
  return rn_ok(status) ? status : rn_status_annotate(status, "; the folder %s", w->folder.data);
}

// Whether |ours| has the same inputs or outputs as the signature of the loaded model.
static bool same_ports(const rn_pb_SignatureDef_InputsEntry_t* ours, uint32_t count,
                       const rn_pb_SignatureDef_InputsEntry_t* theirs, uint32_t their_count) {
  bool is_same = count == their_count;
  for (uint32_t i = 0; is_same && i < count; ++i) {
    uint32_t k = 0;
    while (k < count && !rn_str_eq(ours[i].key, theirs[k].key)) ++k;
    is_same = k < count && theirs[k].value && rn_str_eq(ours[i].value->name, theirs[k].value->name);
  }
  return is_same;
}

// Whether all requested signatures are signatures of the loaded model.
static bool same_signatures(const saved_model_writer_t* w) {
  const rn_pb_MetaGraphDef_t* origin = w->origin->meta->def;
  for (uint32_t i = 0; i < w->meta.signature_def.count; ++i) {
    const rn_pb_MetaGraphDef_SignatureDefEntry_t* ours = &w->meta.signature_def.items[i];
    const rn_pb_SignatureDef_t* theirs = NULL;
    for (uint32_t k = 0; k < origin->signature_def.count; ++k)
      if (rn_str_eq(ours->key, origin->signature_def.items[k].key))
        theirs = origin->signature_def.items[k].value;
    // Entries of inputs and of outputs have the same layout under two type names.
    if (!theirs ||
        !same_ports(ours->value->inputs.items, ours->value->inputs.count, theirs->inputs.items,
                    theirs->inputs.count) ||
        !same_ports((const rn_pb_SignatureDef_InputsEntry_t*)ours->value->outputs.items,
                    ours->value->outputs.count,
                    (const rn_pb_SignatureDef_InputsEntry_t*)theirs->outputs.items,
                    theirs->outputs.count))
      return false;
  }
  return true;
}

static void clear_variables(saved_model_writer_t* w) {
  for (size_t i = 0; i < w->variables.count; ++i) rn_tensor_clear(&w->variables.items[i].value);
  w->variables.count = 0;
}

// Writes the loaded model unchanged if that is what the client asked for.
static rn_status_t take_origin(saved_model_writer_t* w) {
  const rn_saved_model_def_t* def = w->def;
  if (!w->origin || def->asset_count || def->init || !same_signatures(w)) return RN_OK;
  bool fits = false;
  RN_RETURN_IF_ERROR(
      rn_resave_variables(w->copy, w->origin, &w->arena, w->allocator, &w->variables, &fits));
  if (!fits) {
    clear_variables(w);
    return RN_OK;
  }
  for (size_t i = 0; i < w->variables.count; ++i) {
    rn_model_variable_t* variable = &w->variables.items[i];
    if (variable->node) RN_RETURN_IF_ERROR(find_value(w, variable));
    if (!rn_tensor_is_set(&variable->value))
      return rn_failed_precondition("Attempting to use uninitialized value %.*s",
                                    RN_STR_ARGS(variable->resource));
  }
  rn_pb_MetaGraphDef_MetaInfoDef_t* info = w->meta.meta_info_def;
  w->meta = *w->origin->meta->def;
  if (w->meta.meta_info_def) {
    RN_PB_LIST(rn_str_t) tags;
    memcpy(&tags, &info->tags, sizeof tags);
    *info = *w->meta.meta_info_def;
    if (def->tags) memcpy(&info->tags, &tags, sizeof tags);
  }
  w->meta.meta_info_def = info;
  rn_strbuf_append(&w->objects, w->origin->meta->object_graph);
  w->is_again = true;
  return rn_strbuf_status(&w->objects);
}

static rn_status_t add_model(saved_model_writer_t* w) {
  RN_RETURN_IF_ERROR(find_variables(w));
  RN_RETURN_IF_ERROR(add_objects(w));
  RN_RETURN_IF_ERROR(add_saver(w));
  return add_collections(w);
}

static rn_status_t save(saved_model_writer_t* w) {
  if (w->def->asset_count < 0) return rn_invalid_argument("bad list of assets");
  RN_RETURN_IF_ERROR(add_info(w));
  RN_RETURN_IF_ERROR(copy_graph(w));
  RN_RETURN_IF_ERROR(add_signatures(w));
  RN_RETURN_IF_ERROR(take_origin(w));
  if (!w->is_again) RN_RETURN_IF_ERROR(add_model(w));
  RN_RETURN_IF_ERROR(check_folder(w));
  RN_RETURN_IF_ERROR(write_variables(w));
  RN_RETURN_IF_ERROR(write_assets(w));
  return write_model(w);
}

rn_status_t rn_saved_model_save(rn_session_t* session, const rn_model_origin_t* origin,
                                const char* folder, const rn_saved_model_def_t* def,
                                const rn_env_t* env, rn_allocator_t allocator) {
  saved_model_writer_t w = {.session = session, .def = def, .env = env, .allocator = allocator};
  if (origin && origin->meta && origin->meta->object_graph.size) w.origin = origin;
  rn_arena_init(&w.arena, allocator);
  rn_strbuf_init(&w.objects, allocator);
  rn_status_t status = rn_arena_str(&w.arena, rn_str(folder), &w.folder);
  if (rn_ok(status)) status = save(&w);
  clear_variables(&w);
  rn_vec_free(&w.variables, allocator);
  rn_graph_release(w.copy);
  rn_strbuf_clear(&w.objects);
  rn_arena_clear(&w.arena);
  return status;
}
