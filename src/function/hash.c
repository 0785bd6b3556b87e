// The hash that append_hash adds to a function's name. It depends on what the function computes,
// not on the order of maps, nodes or control edges; it ignores private attributes ("_…") of nodes
// and control outputs. The algorithm is TensorFlow's, so equal functions get equal names.
#include "base/hash.h"
#include "function/function.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"

#define SEED UINT64_C(0xdecafcaffe)

// A tensor attribute is hashed by its expanded bytes, unless they would exceed this.
#define MOST_TENSOR_BYTES (UINT64_C(1) << 30)

static uint64_t combine(uint64_t value, uint64_t hash) {
  return value ^ (hash + UINT64_C(0x9e3779b97f4a7800) + (value << 10) + (value >> 4));
}

static rn_status_t hash_message(const rn_pb_message_desc_t* desc, const void* message,
                                rn_arena_t* arena, uint64_t seed, uint64_t* out) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, arena->allocator);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  rn_status_t status = rn_pb_encode(desc, message, &sorted, &bytes);
  if (rn_ok(status)) *out = rn_murmur_hash64(rn_strbuf_view(&bytes), seed);
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t hash_tensor(const rn_pb_TensorProto_t* proto, rn_arena_t* arena, uint64_t* out) {
  rn_tensor_t tensor = {0};
  rn_pb_TensorProto_t content = {0};
  rn_status_t status = rn_tensor_from_proto(proto, MOST_TENSOR_BYTES, arena->allocator, &tensor);
  bool is_built = rn_ok(status);
  if (is_built) status = rn_tensor_to_proto(&tensor, RN_TENSOR_CONTENT, arena, &content);
  if (!rn_ok(status) && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
    rn_status_free(status);
    status = RN_OK;
    content = *proto;
  }
  if (rn_ok(status)) status = hash_message(&rn_pb_TensorProto_desc, &content, arena, SEED, out);
  if (is_built) rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t hash_attrs(const rn_pb_list_t* list, const rn_pb_message_desc_t* entry_desc,
                              bool skip_private, rn_arena_t* arena, uint64_t* hash);

static rn_status_t hash_value(const rn_pb_AttrValue_t* value, rn_arena_t* arena, uint64_t* out) {
  static const rn_pb_AttrValue_t none = {0};
  if (!value) value = &none;
  if (value->value_case == rn_pb_AttrValue_tensor_field)
    return hash_tensor(value->tensor, arena, out);
  if (value->value_case != rn_pb_AttrValue_func_field)
    return hash_message(&rn_pb_AttrValue_desc, value, arena, SEED, out);
  *out = rn_murmur_hash64(value->func->name, SEED);
  return hash_attrs((const rn_pb_list_t*)&value->func->attr, &rn_pb_NameAttrList_AttrEntry_desc,
                    false, arena, out);
}

// The entries of the three attribute maps have the same layout.
static rn_status_t hash_attrs(const rn_pb_list_t* list, const rn_pb_message_desc_t* entry_desc,
                              bool skip_private, rn_arena_t* arena, uint64_t* hash) {
  const void** entries = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(rn_pb_map_sorted(entry_desc, list, arena, &entries, &count));
  for (size_t i = 0; i < count; ++i) {
    const rn_pb_NameAttrList_AttrEntry_t* entry = entries[i];
    if (skip_private && entry->key.size && entry->key.data[0] == '_') continue;
    uint64_t value;
    RN_RETURN_IF_ERROR(hash_value(entry->value, arena, &value));
    *hash = combine(value, rn_murmur_hash64(entry->key, *hash));
  }
  return RN_OK;
}

static rn_status_t hash_attr_def(const rn_pb_OpDef_AttrDef_t* def, rn_arena_t* arena,
                                 uint64_t* out) {
  uint64_t hash = rn_murmur_hash64(def->type, rn_murmur_hash64(def->name, SEED)), value;
  RN_RETURN_IF_ERROR(hash_value(def->default_value, arena, &value));
  hash = rn_murmur_hash64(def->description, combine(value, hash));
  hash = combine(def->has_minimum, hash);
  hash = combine((uint64_t)def->minimum, hash);
  RN_RETURN_IF_ERROR(hash_value(def->allowed_values, arena, &value));
  *out = combine(value, hash);
  return RN_OK;
}

static int by_text(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

static int by_attr_name(const void* a, const void* b) {
  return rn_str_compare((*(const rn_pb_OpDef_AttrDef_t* const*)a)->name,
                        (*(const rn_pb_OpDef_AttrDef_t* const*)b)->name);
}

static int by_node_name(const void* a, const void* b) {
  return rn_str_compare((*(const rn_pb_NodeDef_t* const*)a)->name,
                        (*(const rn_pb_NodeDef_t* const*)b)->name);
}

static rn_status_t hash_signature(const rn_pb_OpDef_t* def, rn_arena_t* arena, uint64_t* out) {
  const rn_pb_OpDef_AttrDef_t** attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, def->attr.count, &attrs));
  for (size_t i = 0; i < def->attr.count; ++i) attrs[i] = &def->attr.items[i];
  if (def->attr.count) qsort(attrs, def->attr.count, sizeof *attrs, by_attr_name);
  uint64_t hash = SEED;
  for (size_t i = 0; i < def->attr.count; ++i) {
    uint64_t value;
    RN_RETURN_IF_ERROR(hash_attr_def(attrs[i], arena, &value));
    hash = combine(value, rn_murmur_hash64(attrs[i]->name, hash));
  }
  rn_pb_OpDef_t rest = *def;
  rest.attr.count = 0;
  return hash_message(&rn_pb_OpDef_desc, &rest, arena, hash, out);
}

static rn_status_t hash_node(const rn_pb_NodeDef_t* node, rn_arena_t* arena, uint64_t* out) {
  uint64_t hash = rn_murmur_hash64(node->name, SEED);
  hash = rn_murmur_hash64(node->device, rn_murmur_hash64(node->op, hash));
  size_t data = 0;
  for (; data < node->input.count && !rn_str_starts_with(node->input.items[data], RN_STR("^"));)
    hash = rn_murmur_hash64(node->input.items[data++], hash);
  rn_str_t* controls = NULL;
  size_t count = node->input.count - data;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &controls));
  if (count) {
    memcpy(controls, node->input.items + data, count * sizeof *controls);
    qsort(controls, count, sizeof *controls, by_text);
  }
  for (size_t i = 0; i < count; ++i) {
    if (i && rn_str_eq(controls[i], controls[i - 1])) continue;
    hash = rn_murmur_hash64(controls[i], hash);
  }
  *out = hash;
  return hash_attrs((const rn_pb_list_t*)&node->attr, &rn_pb_NodeDef_AttrEntry_desc, true, arena,
                    out);
}

static rn_status_t hash_nodes(const rn_pb_FunctionDef_t* def, rn_arena_t* arena, uint64_t* out) {
  size_t count = def->node_def.count;
  const rn_pb_NodeDef_t** nodes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &nodes));
  for (size_t i = 0; i < count; ++i) nodes[i] = &def->node_def.items[i];
  if (count) qsort(nodes, count, sizeof *nodes, by_node_name);
  uint64_t hash = SEED;
  for (size_t i = 0; i < count; ++i) {
    uint64_t value;
    RN_RETURN_IF_ERROR(hash_node(nodes[i], arena, &value));
    hash = combine(value, rn_murmur_hash64(nodes[i]->name, hash));
  }
  *out = hash;
  return RN_OK;
}

static rn_status_t hash_results(const rn_pb_FunctionDef_t* def, rn_arena_t* arena, uint64_t* hash) {
  const void** entries = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(rn_pb_map_sorted(&rn_pb_FunctionDef_RetEntry_desc,
                                      (const rn_pb_list_t*)&def->ret, arena, &entries, &count));
  for (size_t i = 0; i < count; ++i) {
    const rn_pb_FunctionDef_RetEntry_t* entry = entries[i];
    *hash = rn_murmur_hash64(entry->value, rn_murmur_hash64(entry->key, *hash));
  }
  return RN_OK;
}

rn_status_t rn_function_hash(const rn_pb_FunctionDef_t* def, rn_arena_t* arena, uint64_t* out) {
  uint64_t nodes;
  RN_RETURN_IF_ERROR(hash_signature(def->signature, arena, out));
  RN_RETURN_IF_ERROR(hash_attrs((const rn_pb_list_t*)&def->attr, &rn_pb_FunctionDef_AttrEntry_desc,
                                false, arena, out));
  RN_RETURN_IF_ERROR(hash_nodes(def, arena, &nodes));
  *out = combine(nodes, *out);
  return hash_results(def, arena, out);
}
