// Hashes functions and attributes by content: see function.h.
#include "base/hash.h"
#include "framework/attr_proto.h"
#include "framework/function.h"
#include "framework/op_def.h"
#include "proto/function.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define MAX_DEPTH 64  // of nested calls; deeper functions are hashed by name

typedef struct digest_t {
  rn_functions_t* functions;
  rn_strbuf_t bytes;
  int depth;
} digest_t;

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint64_t of_text(rn_str_t text) { return rn_farm_fingerprint64(text); }

static rn_status_t of_function(digest_t* digest, const rn_func_attr_t* function, uint64_t* out);

// Hashes an AttrValue; |digest| finds the functions that it names.
static rn_status_t of_value(digest_t* digest, const rn_pb_AttrValue_t* value, uint64_t* out) {
  digest->bytes.size = 0;
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(AttrValue, value, NULL, &digest->bytes));
  *out = of_text(rn_strbuf_view(&digest->bytes));
  return RN_OK;
}

static rn_status_t of_functions(digest_t* digest, const rn_attr_value_t* value, uint64_t* out) {
  *out = 0;
  for (int32_t i = 0; i < (value->is_list ? value->count : 1); ++i) {
    uint64_t one = 0;
    RN_RETURN_IF_ERROR(
        of_function(digest, value->is_list ? value->list_func[i] : value->func, &one));
    *out = mix(*out, one);
  }
  return RN_OK;
}

static bool has_functions(const rn_attr_value_t* value) {
  return value->kind == RN_ATTR_FUNC && (value->is_list ? value->count > 0 : value->func != NULL);
}

static rn_status_t of_attr(digest_t* digest, const rn_attr_value_t* value, uint64_t* out) {
  if (has_functions(value)) return of_functions(digest, value, out);
  rn_arena_t arena;
  rn_arena_init(&arena, digest->bytes.allocator);
  rn_pb_AttrValue_t proto = {0};
  rn_status_t status = rn_attr_value_to_proto(value, &arena, &proto);
  if (rn_ok(status)) status = of_value(digest, &proto, out);
  rn_arena_clear(&arena);
  return status;
}

// Hashes an attribute of a node in a function body; descends only into attributes that name
// functions.
static rn_status_t of_node_attr(digest_t* digest, const rn_pb_AttrValue_t* value, rn_arena_t* arena,
                                uint64_t* out) {
  bool has_list = value->value_case == rn_pb_AttrValue_list_field && value->list->func.count > 0;
  if (value->value_case != rn_pb_AttrValue_func_field && !has_list)
    return of_value(digest, value, out);
  rn_attr_value_t own;
  RN_RETURN_IF_ERROR(rn_attr_value_from_proto(value, SIZE_MAX, arena, &own));
  rn_status_t status = of_attr(digest, &own, out);
  rn_attr_value_clear(&own);
  return status;
}

// A node's op may be the name of a function.
static rn_status_t of_op(digest_t* digest, const rn_pb_NodeDef_t* node, rn_arena_t* arena,
                         uint64_t* out) {
  *out = of_text(node->op);
  if (rn_op_find(node->op)) return RN_OK;
  rn_attr_t* attrs = NULL;
  rn_func_attr_t call = {.name = node->op};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, node->attr.count, &attrs));
  call.attrs = attrs;
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < node->attr.count; ++i) {
    const rn_pb_NodeDef_AttrEntry_t* attr = &node->attr.items[i];
    if ((attr->key.size && attr->key.data[0] == '_') || !attr->value) continue;
    attrs[call.attr_count].name = attr->key;
    status = rn_attr_value_from_proto(attr->value, SIZE_MAX, arena, &attrs[call.attr_count].value);
    if (rn_ok(status)) call.attr_count++;
  }
  if (rn_ok(status)) status = of_function(digest, &call, out);
  for (int32_t i = 0; i < call.attr_count; ++i) rn_attr_value_clear(&attrs[i].value);
  return status;
}

// The order of attributes does not matter, so their hashes are added.
static rn_status_t of_node(digest_t* digest, const rn_pb_NodeDef_t* node, rn_arena_t* arena,
                           uint64_t* out) {
  uint64_t sum = 0, hash = 0;
  RN_RETURN_IF_ERROR(of_op(digest, node, arena, &hash));
  hash = mix(hash, of_text(node->name));
  for (size_t i = 0; i < node->input.count; ++i) hash = mix(hash, of_text(node->input.items[i]));
  for (size_t i = 0; i < node->attr.count; ++i) {
    uint64_t value = 0;
    const rn_pb_NodeDef_AttrEntry_t* attr = &node->attr.items[i];
    if ((attr->key.size && attr->key.data[0] == '_') || !attr->value) continue;
    if (rn_str_is(attr->key, "metadata")) continue;
    RN_RETURN_IF_ERROR(of_node_attr(digest, attr->value, arena, &value));
    sum += mix(of_text(attr->key), value);
  }
  *out = mix(hash, sum);
  return RN_OK;
}

static rn_status_t of_def(digest_t* digest, rn_str_t bytes, rn_arena_t* arena, uint64_t* out) {
  rn_pb_FunctionDef_t* def = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(FunctionDef, bytes, NULL, arena, &def));
  uint64_t hash = 0, nodes = 0;
  for (size_t i = 0; i < def->node_def.count; ++i) {
    uint64_t node = 0;
    RN_RETURN_IF_ERROR(of_node(digest, &def->node_def.items[i], arena, &node));
    nodes += node;
  }
  for (size_t i = 0; def->signature && i < def->signature->output_arg.count; ++i)
    hash = mix(hash, of_text(def->signature->output_arg.items[i].name));
  for (size_t i = 0; i < def->ret.count; ++i)
    nodes += mix(of_text(def->ret.items[i].key), of_text(def->ret.items[i].value));
  *out = mix(hash, nodes);
  return RN_OK;
}

static rn_status_t of_function(digest_t* digest, const rn_func_attr_t* function, uint64_t* out) {
  *out = of_text(function->name);
  if (!digest->functions || digest->depth >= MAX_DEPTH) return RN_OK;
  rn_instance_t* instance = NULL;
  RN_RETURN_IF_ERROR(rn_function_prepare(digest->functions, function, RN_STR(""), &instance));
  rn_arena_t arena;
  rn_arena_init(&arena, digest->bytes.allocator);
  digest->depth++;
  rn_status_t status = of_def(digest, instance->def, &arena, out);
  for (int32_t i = 0; rn_ok(status) && i < function->attr_count; ++i) {
    uint64_t value = 0;
    status = of_attr(digest, &function->attrs[i].value, &value);
    *out += mix(of_text(function->attrs[i].name), value);
  }
  digest->depth--;
  rn_arena_clear(&arena);
  rn_function_forget(digest->functions, instance);
  return status;
}

rn_status_t rn_attr_digest(rn_functions_t* functions, const rn_attr_value_t* value,
                           rn_allocator_t allocator, uint64_t* out) {
  digest_t digest = {.functions = functions};
  rn_strbuf_init(&digest.bytes, allocator);
  rn_status_t status = of_attr(&digest, value, out);
  rn_strbuf_clear(&digest.bytes);
  return status;
}
