// ApiDef maps: see api_def.h.
#define _GNU_SOURCE  // memmem
#include "framework/api_def.h"

#include "base/map.h"
#include "base/sync.h"
#include "proto/api_def.pb.h"
#include "proto/op_def.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

typedef struct api_def_entry_t {
  rn_pb_ApiDef_t def;
  bool was_renamed;  // its descriptions already use the names that users see
} api_def_entry_t;

struct rn_api_def_map_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards all below
  rn_arena_t arena;  // everything the entries point to
  rn_map_t by_name;  // op name -> api_def_entry_t
  bool was_read;     // a map that was read cannot be written, as in TensorFlow
};

static rn_pb_ApiDef_Arg_t base_arg(const rn_pb_OpDef_ArgDef_t* from) {
  return (rn_pb_ApiDef_Arg_t){
      .name = from->name, .rename_to = from->name, .description = from->description};
}

// The ApiDef of an op without overrides.
static rn_status_t make_base(rn_api_def_map_t* map, const rn_pb_OpDef_t* op, rn_pb_ApiDef_t* out) {
  rn_arena_t* arena = &map->arena;
  uint32_t inputs = op->input_arg.count, outputs = op->output_arg.count, attrs = op->attr.count;
  out->graph_op_name = op->name;
  out->visibility = rn_pb_ApiDef_VISIBLE;
  out->summary = op->summary;
  out->description = op->description;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->endpoint.items));
  out->endpoint.items[0].name = op->name;
  out->endpoint.count = 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->in_arg.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &out->arg_order.items));
  for (uint32_t i = 0; i < inputs; ++i) {
    out->in_arg.items[i] = base_arg(&op->input_arg.items[i]);
    out->arg_order.items[i] = op->input_arg.items[i].name;
  }
  out->in_arg.count = out->arg_order.count = inputs;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs, &out->out_arg.items));
  for (uint32_t i = 0; i < outputs; ++i) {
    out->out_arg.items[i] = base_arg(&op->output_arg.items[i]);
  }
  out->out_arg.count = outputs;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, attrs, &out->attr.items));
  for (uint32_t i = 0; i < attrs; ++i) {
    const rn_pb_OpDef_AttrDef_t* attr = &op->attr.items[i];
    out->attr.items[i] = (rn_pb_ApiDef_Attr_t){.name = attr->name,
                                               .rename_to = attr->name,
                                               .default_value = attr->default_value,
                                               .description = attr->description};
  }
  out->attr.count = attrs;
  return RN_OK;
}

static rn_status_t fill(rn_api_def_map_t* map, rn_str_t bytes) {
  rn_pb_OpList_t* list = NULL;
  rn_pb_limits_t limits = {.copy_bytes = true};
  rn_status_t status = RN_PB_DECODE(OpList, bytes, &limits, &map->arena, &list);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Unparseable OpList");
  }
  RN_RETURN_IF_ERROR(status);
  for (uint32_t i = 0; i < list->op.count; ++i) {
    api_def_entry_t* entry = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&map->arena, &entry));
    RN_RETURN_IF_ERROR(make_base(map, &list->op.items[i], &entry->def));
    RN_RETURN_IF_ERROR(rn_map_put(&map->by_name, entry->def.graph_op_name, entry));
  }
  return RN_OK;
}

void rn_api_def_map_destroy(rn_api_def_map_t* map) {
  if (!map) return;
  rn_map_clear(&map->by_name);
  rn_arena_clear(&map->arena);
  rn_mutex_destroy(&map->mutex);
  RN_FREE(map->allocator, map);
}

rn_status_t rn_api_def_map_create(rn_str_t op_list, rn_allocator_t allocator,
                                  rn_api_def_map_t** out) {
  *out = NULL;
  rn_api_def_map_t* map = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &map));
  map->allocator = allocator;
  rn_mutex_init(&map->mutex);
  rn_arena_init(&map->arena, allocator);
  rn_map_init(&map->by_name, allocator);
  rn_status_t status = fill(map, op_list);
  if (rn_ok(status))
    *out = map;
  else
    rn_api_def_map_destroy(map);
  return status;
}

static void override(rn_str_t* base, rn_str_t text) {
  if (text.size) *base = text;
}

static rn_status_t merge_arg(const rn_pb_ApiDef_t* op, rn_pb_ApiDef_Arg_t* base, uint32_t count,
                             const rn_pb_ApiDef_Arg_t* arg) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!rn_str_eq(base[i].name, arg->name)) continue;
    override(&base[i].rename_to, arg->rename_to);
    override(&base[i].description, arg->description);
    return RN_OK;
  }
  return rn_failed_precondition("Argument %.*s not defined in base api for %.*s",
                                RN_STR_ARGS(arg->name), RN_STR_ARGS(op->graph_op_name));
}

static rn_status_t merge_attr(rn_pb_ApiDef_t* op, const rn_pb_ApiDef_Attr_t* attr) {
  for (uint32_t i = 0; i < op->attr.count; ++i) {
    rn_pb_ApiDef_Attr_t* base = &op->attr.items[i];
    if (!rn_str_eq(base->name, attr->name)) continue;
    override(&base->rename_to, attr->rename_to);
    override(&base->description, attr->description);
    if (attr->default_value) base->default_value = attr->default_value;
    return RN_OK;
  }
  return rn_failed_precondition("Attribute %.*s not defined in base api for %.*s",
                                RN_STR_ARGS(attr->name), RN_STR_ARGS(op->graph_op_name));
}

static void print_order(rn_strbuf_t* buf, const rn_pb_ApiDef_t* op) {
  for (uint32_t i = 0; i < op->arg_order.count; ++i) {
    rn_strbuf_printf(buf, "%s%.*s", i ? ", " : "", RN_STR_ARGS(op->arg_order.items[i]));
  }
}

static bool has_name(const rn_pb_ApiDef_t* op, rn_str_t name) {
  for (uint32_t i = 0; i < op->arg_order.count; ++i) {
    if (rn_str_eq(op->arg_order.items[i], name)) return true;
  }
  return false;
}

static rn_status_t bad_order(const rn_pb_ApiDef_t* base, const rn_pb_ApiDef_t* update) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "Invalid arg_order: ");
  print_order(&text, update);
  rn_strbuf_printf(&text,
                   " for %.*s. All elements in arg_order override must match base "
                   "arg_order: ",
                   RN_STR_ARGS(base->graph_op_name));
  print_order(&text, base);
  return rn_status_from_buf(RN_CODE_FAILED_PRECONDITION, &text);
}

static rn_status_t merge_order(rn_pb_ApiDef_t* base, const rn_pb_ApiDef_t* update) {
  if (update->arg_order.count == 0) return RN_OK;
  if (update->arg_order.count != base->arg_order.count) {
    return rn_failed_precondition("Invalid number of arguments %u for %.*s. Expected: %u",
                                  update->arg_order.count, RN_STR_ARGS(base->graph_op_name),
                                  base->arg_order.count);
  }
  for (uint32_t i = 0; i < update->arg_order.count; ++i) {
    if (!has_name(base, update->arg_order.items[i])) return bad_order(base, update);
  }
  base->arg_order = update->arg_order;
  return RN_OK;
}

// |update| is in the map's arena.
static rn_status_t merge(rn_api_def_map_t* map, rn_pb_ApiDef_t* base,
                         const rn_pb_ApiDef_t* update) {
  if (update->visibility) base->visibility = update->visibility;
  if (update->endpoint.count) base->endpoint = update->endpoint;
  for (uint32_t i = 0; i < update->in_arg.count; ++i) {
    RN_RETURN_IF_ERROR(
        merge_arg(base, base->in_arg.items, base->in_arg.count, &update->in_arg.items[i]));
  }
  for (uint32_t i = 0; i < update->out_arg.count; ++i) {
    RN_RETURN_IF_ERROR(
        merge_arg(base, base->out_arg.items, base->out_arg.count, &update->out_arg.items[i]));
  }
  for (uint32_t i = 0; i < update->attr.count; ++i) {
    RN_RETURN_IF_ERROR(merge_attr(base, &update->attr.items[i]));
  }
  RN_RETURN_IF_ERROR(merge_order(base, update));
  override(&base->summary, update->summary);
  override(&base->description, update->description);
  if (update->description_prefix.size) {
    RN_RETURN_IF_ERROR(rn_arena_printf(&map->arena, &base->description, "%.*s\n%.*s",
                                       RN_STR_ARGS(update->description_prefix),
                                       RN_STR_ARGS(base->description)));
  }
  if (update->description_suffix.size) {
    RN_RETURN_IF_ERROR(rn_arena_printf(&map->arena, &base->description, "%.*s\n%.*s",
                                       RN_STR_ARGS(base->description),
                                       RN_STR_ARGS(update->description_suffix)));
  }
  return RN_OK;
}

static rn_status_t put_locked(rn_api_def_map_t* map, rn_str_t text) {
  if (map->was_read) {
    return rn_failed_precondition(
        "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
  }
  rn_pb_ApiDefs_t* defs = NULL;
  rn_strbuf_t plain;
  rn_strbuf_init(&plain, rn_allocator_default());
  rn_status_t status = rn_pb_text_from_multiline(text, &plain);
  if (rn_ok(status)) {
    status =
        rn_pb_parse(&rn_pb_ApiDefs_desc, rn_strbuf_view(&plain), NULL, &map->arena, (void**)&defs);
  }
  rn_strbuf_clear(&plain);
  RN_RETURN_IF_ERROR(status);
  for (uint32_t i = 0; i < defs->op.count; ++i) {
    const rn_pb_ApiDef_t* update = &defs->op.items[i];
    api_def_entry_t* base = rn_map_get(&map->by_name, update->graph_op_name);
    if (base) RN_RETURN_IF_ERROR(merge(map, &base->def, update));  // skips unknown ops
  }
  return RN_OK;
}

rn_status_t rn_api_def_map_put(rn_api_def_map_t* map, rn_str_t text) {
  rn_mutex_lock(&map->mutex);
  rn_status_t status = put_locked(map, text);
  rn_mutex_unlock(&map->mutex);
  return status;
}

// Replaces every `from` in |inout_text| by `to`; both include their quotes.
static rn_status_t rename_in(rn_arena_t* arena, rn_str_t from, rn_str_t to, rn_str_t* inout_text) {
  rn_str_t rest = *inout_text;
  const char* found = !rest.size ? NULL : memmem(rest.data, rest.size, from.data, from.size);
  if (!found) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  for (; found; found = memmem(rest.data, rest.size, from.data, from.size)) {
    size_t before = (size_t)(found - rest.data);
    rn_strbuf_append_n(&text, rest.data, before);
    rn_strbuf_append(&text, to);
    rest = rn_str_n(found + from.size, rest.size - before - from.size);
  }
  rn_strbuf_append(&text, rest);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&text), inout_text);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t rename_in_all(rn_arena_t* arena, rn_pb_ApiDef_t* def, rn_str_t from,
                                 rn_str_t to) {
  if (rn_str_eq(from, to)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &from, "`%.*s`", RN_STR_ARGS(from)));
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &to, "`%.*s`", RN_STR_ARGS(to)));
  for (uint32_t i = 0; i < def->in_arg.count; ++i) {
    RN_RETURN_IF_ERROR(rename_in(arena, from, to, &def->in_arg.items[i].description));
  }
  for (uint32_t i = 0; i < def->out_arg.count; ++i) {
    RN_RETURN_IF_ERROR(rename_in(arena, from, to, &def->out_arg.items[i].description));
  }
  for (uint32_t i = 0; i < def->attr.count; ++i) {
    RN_RETURN_IF_ERROR(rename_in(arena, from, to, &def->attr.items[i].description));
  }
  RN_RETURN_IF_ERROR(rename_in(arena, from, to, &def->summary));
  return rename_in(arena, from, to, &def->description);
}

// Descriptions use the names of the definition; replaces them by those that users see.
static rn_status_t rename_entry(rn_arena_t* arena, api_def_entry_t* entry) {
  rn_pb_ApiDef_t* def = &entry->def;
  if (entry->was_renamed) return RN_OK;
  RN_RETURN_IF_ERROR(rename_in_all(arena, def, def->graph_op_name, def->endpoint.items[0].name));
  for (uint32_t i = 0; i < def->in_arg.count; ++i) {
    const rn_pb_ApiDef_Arg_t* arg = &def->in_arg.items[i];
    RN_RETURN_IF_ERROR(rename_in_all(arena, def, arg->name, arg->rename_to));
  }
  for (uint32_t i = 0; i < def->out_arg.count; ++i) {
    const rn_pb_ApiDef_Arg_t* arg = &def->out_arg.items[i];
    RN_RETURN_IF_ERROR(rename_in_all(arena, def, arg->name, arg->rename_to));
  }
  for (uint32_t i = 0; i < def->attr.count; ++i) {
    const rn_pb_ApiDef_Attr_t* attr = &def->attr.items[i];
    RN_RETURN_IF_ERROR(rename_in_all(arena, def, attr->name, attr->rename_to));
  }
  entry->was_renamed = true;
  return RN_OK;
}

rn_status_t rn_api_def_map_get(rn_api_def_map_t* map, rn_str_t op, rn_strbuf_t* out,
                               bool* out_has_op) {
  static const rn_pb_encode_options_t options = {.sort_maps = true};
  rn_mutex_lock(&map->mutex);
  map->was_read = true;
  api_def_entry_t* entry = rn_map_get(&map->by_name, op);
  rn_status_t status = entry ? rename_entry(&map->arena, entry) : RN_OK;
  if (entry && rn_ok(status)) status = RN_PB_ENCODE(ApiDef, &entry->def, &options, out);
  rn_mutex_unlock(&map->mutex);
  *out_has_op = entry != NULL;
  return status;
}
