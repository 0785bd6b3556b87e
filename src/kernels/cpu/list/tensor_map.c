// See tensor_map.h. The message of a map contains its keys and values by turns.
#include "kernels/cpu/list/tensor_map.h"

#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "tensor/variant.h"

static void entry_free(rn_allocator_t allocator, rn_tensor_map_entry_t* entry) {
  rn_tensor_clear(&entry->key);
  rn_tensor_clear(&entry->value);
  if (entry->code) rn_free(allocator, entry->code, entry->code_size + 1);
  RN_FREE(allocator, entry);
}

static void map_destroy(rn_object_t* object) {
  rn_tensor_map_t* map = (rn_tensor_map_t*)object;
  size_t at = 0;
  for (rn_tensor_map_entry_t* e; (e = rn_tensor_map_next(map, &at));) entry_free(map->allocator, e);
  rn_map_clear(&map->entries);
  RN_FREE(map->allocator, map);
}

rn_status_t rn_tensor_map_create(rn_allocator_t allocator, rn_tensor_map_t** out) {
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->object = (rn_object_t){.refs = 1, .destroy = map_destroy};
  (*out)->allocator = allocator;
  rn_map_init(&(*out)->entries, allocator);
  return RN_OK;
}

void rn_tensor_map_release(rn_tensor_map_t* map) {
  if (map) rn_object_release(&map->object);
}

rn_tensor_map_t* rn_tensor_map_from(rn_object_t* object) {
  return object && object->destroy == map_destroy ? (rn_tensor_map_t*)object : NULL;
}

rn_tensor_map_entry_t* rn_tensor_map_next(const rn_tensor_map_t* map, size_t* inout_position) {
  const rn_map_entry_t* entry = rn_map_next(&map->entries, inout_position);
  return entry ? entry->value : NULL;
}

// Type, shape and bytes of |key|.
static rn_status_t encode(const rn_tensor_t* key, rn_strbuf_t* buf) {
  if (!rn_dtype_is_plain(key->dtype) && key->dtype != RN_STRING)
    return rn_invalid_argument("Tensors of type %s cannot be keys of a map",
                               rn_dtype_name(key->dtype));
  rn_strbuf_append_n(buf, &key->dtype, sizeof key->dtype);
  rn_strbuf_append_n(buf, &key->rank, sizeof key->rank);
  rn_strbuf_append_n(buf, rn_tensor_dims(key), key->rank * sizeof(int64_t));
  if (key->dtype != RN_STRING) rn_strbuf_append_n(buf, key->data, rn_tensor_bytes(key));
  for (int64_t i = 0; key->dtype == RN_STRING && i < key->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(key, const rn_tstring_t)[i]);
    rn_strbuf_append_n(buf, &text.size, sizeof text.size);
    rn_strbuf_append(buf, text);
  }
  return rn_strbuf_status(buf);
}

rn_status_t rn_tensor_map_find(const rn_tensor_map_t* map, const rn_tensor_t* key,
                               rn_tensor_map_entry_t** out) {
  rn_strbuf_t code;
  rn_strbuf_init(&code, map->allocator);
  rn_status_t status = encode(key, &code);
  *out = rn_ok(status) ? rn_map_get(&map->entries, rn_strbuf_view(&code)) : NULL;
  rn_strbuf_clear(&code);
  return status;
}

// Adds an entry without a value.
static rn_status_t add_entry(rn_tensor_map_t* map, const rn_tensor_t* key, rn_str_t code,
                             rn_tensor_map_entry_t** out) {
  rn_tensor_map_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(map->allocator, &entry));
  entry->code_size = code.size;
  rn_status_t status = rn_str_dup(map->allocator, code, &entry->code);
  if (rn_ok(status)) status = rn_tensor_share(key, &entry->key);
  if (rn_ok(status)) status = rn_map_put(&map->entries, rn_str_n(entry->code, code.size), entry);
  if (rn_ok(status))
    *out = entry;
  else
    entry_free(map->allocator, entry);
  return status;
}

rn_status_t rn_tensor_map_put(rn_tensor_map_t* map, const rn_tensor_t* key, rn_tensor_t* value) {
  rn_tensor_map_entry_t* entry = NULL;
  rn_strbuf_t code;
  rn_strbuf_init(&code, map->allocator);
  rn_status_t status = encode(key, &code);
  if (rn_ok(status)) entry = rn_map_get(&map->entries, rn_strbuf_view(&code));
  if (rn_ok(status) && !entry) status = add_entry(map, key, rn_strbuf_view(&code), &entry);
  rn_strbuf_clear(&code);
  if (rn_ok(status)) {
    rn_tensor_clear(&entry->value);
    entry->value = *value;
    *value = (rn_tensor_t){0};
  }
  rn_tensor_clear(value);
  return status;
}

void rn_tensor_map_remove(rn_tensor_map_t* map, rn_tensor_map_entry_t* entry) {
  rn_map_remove(&map->entries, rn_str_n(entry->code, entry->code_size));
  entry_free(map->allocator, entry);
}

static rn_status_t copy_entries(const rn_tensor_map_t* from, rn_tensor_map_t* to) {
  size_t at = 0;
  RN_RETURN_IF_ERROR(rn_map_reserve(&to->entries, from->entries.count));
  for (rn_tensor_map_entry_t* entry; (entry = rn_tensor_map_next(from, &at));) {
    rn_tensor_t value = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&entry->value, &value));
    RN_RETURN_IF_ERROR(rn_tensor_map_put(to, &entry->key, &value));
  }
  return RN_OK;
}

rn_status_t rn_tensor_map_copy(const rn_tensor_map_t* map, rn_tensor_map_t** out) {
  RN_RETURN_IF_ERROR(rn_tensor_map_create(map->allocator, out));
  rn_status_t status = copy_entries(map, *out);
  if (rn_ok(status)) return RN_OK;
  rn_tensor_map_release(*out);
  *out = NULL;
  return status;
}

static bool holds(const rn_object_t* object) {
  return rn_tensor_map_from((rn_object_t*)(uintptr_t)object) != NULL;
}

static rn_status_t map_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                rn_pb_VariantTensorDataProto_t* out) {
  const rn_tensor_map_t* map = (const rn_tensor_map_t*)object;
  size_t at = 0;
  uint32_t count = (uint32_t)map->entries.count * 2, used = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->tensors.items));
  out->tensors.count = out->tensors.capacity = count;
  for (rn_tensor_map_entry_t* entry; (entry = rn_tensor_map_next(map, &at));) {
    const rn_tensor_t* pair[2] = {&entry->key, &entry->value};
    for (int i = 0; i < 2; ++i)
      RN_RETURN_IF_ERROR(
          rn_tensor_to_proto(pair[i], RN_TENSOR_TYPED, arena, &out->tensors.items[used++]));
  }
  return RN_OK;
}

static rn_status_t read_entry(const rn_pb_TensorProto_t* pair, size_t* inout_bytes,
                              rn_tensor_map_t* map) {
  rn_tensor_t key = {0}, value = {0};
  RN_RETURN_IF_ERROR(rn_tensor_from_proto(&pair[0], *inout_bytes, map->allocator, &key));
  *inout_bytes -= rn_tensor_bytes(&key);
  rn_status_t status = rn_tensor_from_proto(&pair[1], *inout_bytes, map->allocator, &value);
  if (rn_ok(status)) {
    *inout_bytes -= rn_tensor_bytes(&value);
    status = rn_tensor_map_put(map, &key, &value);
  }
  rn_tensor_clear(&key);
  return status;
}

static rn_status_t map_from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                  rn_allocator_t allocator, rn_object_t** out) {
  rn_tensor_map_t* map = NULL;
  *out = NULL;
  if (proto->tensors.count % 2 != 0)
    return rn_invalid_argument("A TensorProto contains a tensor map with a key that has no value");
  RN_RETURN_IF_ERROR(rn_tensor_map_create(allocator, &map));
  rn_status_t status = RN_OK;
  for (uint32_t i = 0; rn_ok(status) && i < proto->tensors.count; i += 2)
    status = read_entry(&proto->tensors.items[i], &max_bytes, map);
  if (rn_ok(status))
    *out = &map->object;
  else
    rn_tensor_map_release(map);
  return status;
}

static rn_status_t values_to_host(rn_tensor_map_t* map, int depth) {
  size_t at = 0;
  for (rn_tensor_map_entry_t* entry; (entry = rn_tensor_map_next(map, &at));)
    if (entry->value.dtype == RN_VARIANT)
      RN_RETURN_IF_ERROR(rn_variants_to_host(&entry->value, depth + 1));
  return RN_OK;
}

// The values are in host memory, but variants among them may hold what is not.
static rn_status_t map_to_host(rn_object_t* object, int depth, rn_object_t** out) {
  rn_tensor_map_t* copy = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_map_copy((rn_tensor_map_t*)object, &copy));
  rn_status_t status = values_to_host(copy, depth);
  if (rn_ok(status))
    *out = &copy->object;
  else
    rn_tensor_map_release(copy);
  return status;
}

extern const rn_variant_kind_t rn_variant_tensor_map;
const rn_variant_kind_t rn_variant_tensor_map = {"tensorflow::TensorMap", holds, map_to_proto,
                                                 map_from_proto, map_to_host};
