// Opening SavedModels: from files to views of the graphs in them. See saved_model.h.
#include "proto/saved_model.pb.h"
#include "saved_model/saved_model.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/scan.h"
#include "wire/text.h"

// A message has 2 GiB - 1 bytes at most.
#define MAX_FILE_BYTES ((size_t)INT32_MAX)
// Most sets of tags in one file; a model usually has one or two.
#define MAX_GRAPHS 4096

static rn_status_t bad_bytes(const rn_saved_model_t* model, const char* where) {
  return rn_data_loss("Can't parse %.*s/saved_model.pb as binary proto: %s",
                      RN_STR_ARGS(model->folder), where);
}

// The error for a field that is malformed or truncated.
static rn_status_t bad_field(const rn_saved_model_t* model, const rn_pb_scan_t* scan) {
  size_t size = model->bytes.size;
  size_t at = (size_t)(scan->next - model->bytes.data);
  return rn_data_loss(
      "Can't parse %.*s/saved_model.pb as binary proto: the field before byte %zu of %zu is "
      "malformed, or the file ends too early",
      RN_STR_ARGS(model->folder), at, size);
}

// Protobuf merges a message field that occurs twice; concatenating the bytes does the same.
static rn_status_t add_part(rn_saved_model_t* model, rn_str_t part, rn_str_t* inout) {
  if (!inout->size) {
    *inout = part;
    return RN_OK;
  }
  char* both = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&model->arena, inout->size + part.size, (void**)&both));
  memcpy(both, inout->data, inout->size);
  if (part.size) memcpy(both + inout->size, part.data, part.size);
  *inout = rn_str_n(both, inout->size + part.size);
  return RN_OK;
}

// Splits graph and objects from |meta| and decodes the rest.
static rn_status_t read_graph(rn_saved_model_t* model, rn_meta_graph_t* meta) {
  char* rest = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc(&model->arena, meta->bytes.size + 1, (void**)&rest));
  size_t size = 0;
  rn_pb_scan_t scan = rn_pb_scan(meta->bytes);
  rn_pb_field_t field;
  for (const char* start = scan.next; rn_pb_scan_next(&scan, &field); start = scan.next) {
    bool is_message = field.wire == RN_PB_WIRE_LENGTH;
    if (is_message && field.number == rn_pb_MetaGraphDef_graph_def_field) {
      RN_RETURN_IF_ERROR(add_part(model, field.bytes, &meta->graph_def));
    } else if (is_message && field.number == rn_pb_MetaGraphDef_object_graph_def_field) {
      RN_RETURN_IF_ERROR(add_part(model, field.bytes, &meta->object_graph));
    } else {
      memcpy(rest + size, start, (size_t)(scan.next - start));
      size += (size_t)(scan.next - start);
    }
  }
  if (scan.is_bad) return bad_field(model, &scan);
  rn_pb_MetaGraphDef_t* def = NULL;
  rn_status_t status = RN_PB_DECODE(MetaGraphDef, rn_str_n(rest, size), NULL, &model->arena, &def);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_t better = bad_bytes(model, rn_status_message(status));
    rn_status_free(status);
    return better;
  }
  meta->def = def;
  return status;
}

static rn_status_t read_graphs(rn_saved_model_t* model) {
  rn_str_t bytes = rn_strbuf_view(&model->bytes);
  rn_pb_field_t field;
  int32_t count = 0;
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number == rn_pb_SavedModel_meta_graphs_field && field.wire == RN_PB_WIRE_LENGTH)
      ++count;
    if (field.number == rn_pb_SavedModel_saved_model_schema_version_field &&
        field.wire == RN_PB_WIRE_VARINT)
      model->schema_version = (int64_t)field.value;
    if (count > MAX_GRAPHS) return bad_bytes(model, "it has too many graphs");
  }
  if (scan.is_bad) return bad_field(model, &scan);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&model->arena, (size_t)count, &model->graphs));
  for (scan = rn_pb_scan(bytes); rn_pb_scan_next(&scan, &field);) {
    if (field.number != rn_pb_SavedModel_meta_graphs_field || field.wire != RN_PB_WIRE_LENGTH)
      continue;
    rn_meta_graph_t* meta = &model->graphs[model->graph_count++];
    meta->bytes = field.bytes;
    RN_RETURN_IF_ERROR(read_graph(model, meta));
  }
  return RN_OK;
}

// Converts text to the binary form first.
static rn_status_t parse_text(rn_saved_model_t* model, rn_str_t text) {
  rn_arena_t scratch;
  rn_arena_init(&scratch, model->allocator);
  void* message = NULL;
  rn_status_t status = rn_pb_parse(&rn_pb_SavedModel_desc, text, NULL, &scratch, &message);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_t better = rn_data_loss("Can't parse %.*s/saved_model.pbtxt as text proto: %s",
                                      RN_STR_ARGS(model->folder), rn_status_message(status));
    rn_status_free(status);
    status = better;
  }
  if (rn_ok(status)) status = rn_pb_encode(&rn_pb_SavedModel_desc, message, NULL, &model->bytes);
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t create(const rn_env_t* env, rn_str_t folder, rn_allocator_t allocator,
                          rn_saved_model_t** out) {
  *out = NULL;
  rn_saved_model_t* model = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &model));
  model->allocator = allocator;
  model->env = env;
  rn_arena_init(&model->arena, allocator);
  rn_strbuf_init(&model->bytes, allocator);
  while (folder.size > 1 && folder.data[folder.size - 1] == '/') --folder.size;
  rn_status_t status = rn_arena_str(&model->arena, folder, &model->folder);
  if (!rn_ok(status)) {
    rn_saved_model_destroy(model);
    return status;
  }
  *out = model;
  return RN_OK;
}

static rn_status_t fill(rn_saved_model_t* model, rn_str_t bytes, bool is_text) {
  if (is_text) {
    RN_RETURN_IF_ERROR(parse_text(model, bytes));
  } else {
    rn_strbuf_append(&model->bytes, bytes);
    RN_RETURN_IF_ERROR(rn_strbuf_status(&model->bytes));
  }
  return read_graphs(model);
}

rn_status_t rn_saved_model_parse(const rn_env_t* env, rn_str_t folder, rn_str_t bytes, bool is_text,
                                 rn_allocator_t allocator, rn_saved_model_t** out) {
  RN_RETURN_IF_ERROR(create(env, folder, allocator, out));
  rn_status_t status = fill(*out, bytes, is_text);
  if (rn_ok(status)) return RN_OK;
  rn_saved_model_destroy(*out);
  *out = NULL;
  return status;
}

static rn_status_t find_file(rn_saved_model_t* model, const char* name, rn_str_t* out_path,
                             bool* out_exists) {
  RN_RETURN_IF_ERROR(rn_arena_printf(&model->arena, out_path, "%s/%s", model->folder.data, name));
  return rn_fs_find(model->env, out_path->data, out_exists);
}

static rn_status_t read_files(rn_saved_model_t* model) {
  rn_str_t path;
  const char* folder = model->folder.data;
  bool is_there = false;
  RN_RETURN_IF_ERROR(find_file(model, "saved_model.pb", &path, &is_there));
  if (is_there) {
    RN_RETURN_IF_ERROR(rn_fs_read(model->env, path.data, MAX_FILE_BYTES, &model->bytes));
    return read_graphs(model);
  }
  RN_RETURN_IF_ERROR(find_file(model, "saved_model.pbtxt", &path, &is_there));
  if (is_there) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, model->allocator);
    rn_status_t status = rn_fs_read(model->env, path.data, MAX_FILE_BYTES, &text);
    if (rn_ok(status)) status = fill(model, rn_strbuf_view(&text), true);
    rn_strbuf_clear(&text);
    return status;
  }
  RN_RETURN_IF_ERROR(find_file(model, "saved_model.cpb", &path, &is_there));
  if (is_there)
    return rn_unimplemented(
        "%s: models that are split into chunks (saved_model.cpb) cannot be read yet; export "
        "without "
        "experimental_image_format",
        path.data);
  return rn_not_found(
      "Could not find SavedModel .pb or .pbtxt at supplied export directory path: %s. Check that "
      "the directory exists and that you have the right permissions for accessing it.",
      folder);
}

rn_status_t rn_saved_model_open(const rn_env_t* env, rn_str_t folder, rn_allocator_t allocator,
                                rn_saved_model_t** out) {
  RN_RETURN_IF_ERROR(create(env, folder, allocator, out));
  rn_status_t status = read_files(*out);
  if (rn_ok(status)) return RN_OK;
  rn_saved_model_destroy(*out);
  *out = NULL;
  return status;
}

void rn_saved_model_destroy(rn_saved_model_t* model) {
  if (!model) return;
  rn_strbuf_clear(&model->bytes);
  rn_arena_clear(&model->arena);
  RN_FREE(model->allocator, model);
}

static bool has_tag(const rn_str_t* tags, int64_t count, rn_str_t tag) {
  for (int64_t i = 0; i < count; ++i)
    if (rn_str_eq(tags[i], tag)) return true;
  return false;
}

// Sets are equal if each contains the other; duplicate tags count once.
static bool same_tags(const rn_pb_MetaGraphDef_t* def, const rn_str_t* tags, int32_t count) {
  const rn_pb_MetaGraphDef_MetaInfoDef_t* info = def->meta_info_def;
  uint32_t found = info ? info->tags.count : 0;
  for (uint32_t i = 0; i < found; ++i)
    if (!has_tag(tags, count, info->tags.items[i])) return false;
  for (int32_t i = 0; i < count; ++i)
    if (!found || !has_tag(info->tags.items, found, tags[i])) return false;
  return true;
}

rn_status_t rn_saved_model_find(const rn_saved_model_t* model, const rn_str_t* tags,
                                int32_t tag_count, const rn_meta_graph_t** out) {
  *out = NULL;
  for (int32_t i = 0; i < model->graph_count; ++i) {
    if (!same_tags(model->graphs[i].def, tags, tag_count)) continue;
    *out = &model->graphs[i];
    return RN_OK;
  }
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, model->allocator);
  rn_strbuf_printf(&buf, "Could not find meta graph def matching supplied tags: { ");
  for (int32_t i = 0; i < tag_count; ++i) rn_strbuf_printf(&buf, "%.*s ", RN_STR_ARGS(tags[i]));
  if (!tag_count) rn_strbuf_printf(&buf, " ");
  rn_strbuf_printf(&buf,
                   "}. To inspect available tag-sets in the SavedModel, please use the SavedModel "
                   "CLI: `saved_model_cli`");
  return rn_status_from_buf(RN_CODE_NOT_FOUND, &buf);
}
