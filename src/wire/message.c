#include "wire/message.h"

#include "proto/messages.pb.h"

// Entries of maps up to this size are compared pairwise, which is faster than sorting and needs no
// memory.
#define RN_PB_SMALL_MAP 16

const rn_pb_field_desc_t* rn_pb_find_field(const rn_pb_message_desc_t* desc, uint32_t number) {
  if (number < desc->index_size) {
    uint8_t slot = desc->index[number];
    return slot ? &desc->fields[slot - 1] : NULL;
  }
  size_t low = 0, high = desc->field_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (desc->fields[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool found = low < desc->field_count && desc->fields[low].number == number;
  return found ? &desc->fields[low] : NULL;
}

const rn_pb_field_desc_t* rn_pb_find_field_by_name(const rn_pb_message_desc_t* desc,
                                                   rn_str_t name) {
  for (size_t i = 0; i < desc->field_count; ++i) {
    if (rn_str_is(name, desc->fields[i].name)) return &desc->fields[i];
  }
  return NULL;
}

const rn_pb_message_desc_t* rn_pb_find_by_url(rn_str_t url) {
  while (url.size && memchr(url.data, '/', url.size)) rn_str_split(&url, '/');
  for (size_t i = 0; i < rn_pb_message_count; ++i)
    if (rn_str_is(url, rn_pb_messages[i]->name)) return rn_pb_messages[i];
  return NULL;
}

const char* rn_pb_enum_name(const rn_pb_enum_desc_t* desc, int32_t number) {
  for (size_t i = 0; i < desc->count; ++i) {
    if (desc->values[i].number == number) return desc->values[i].name;
  }
  return NULL;
}

bool rn_pb_enum_number(const rn_pb_enum_desc_t* desc, rn_str_t name, int32_t* out_number) {
  for (size_t i = 0; i < desc->count; ++i) {
    if (rn_str_is(name, desc->values[i].name)) {
      *out_number = desc->values[i].number;
      return true;
    }
  }
  return false;
}

bool rn_pb_is_set(const rn_pb_field_desc_t* field, const void* message) {
  const char* base = message;
  if (field->flags & RN_PB_ONEOF) {
    return *(const int32_t*)(base + field->presence) == (int32_t)field->number;
  }
  if (field->flags & RN_PB_OPTIONAL) return *(const bool*)(base + field->presence);
  const char* slot = base + field->offset;
  if (field->flags & RN_PB_REPEATED) return ((const rn_pb_list_t*)slot)->count != 0;
  if (field->type == RN_PB_MESSAGE) return *(const rn_pb_message_t*)slot != NULL;
  if (field->wire == RN_PB_WIRE_LENGTH) return ((const rn_str_t*)slot)->size != 0;
  static const char zeros[8] = {0};
  return memcmp(slot, zeros, field->size) != 0;
}

static int compare_keys(const rn_pb_field_desc_t* key, const void* a, const void* b) {
  switch (key->type) {
    case RN_PB_STRING:
    case RN_PB_BYTES:
      return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
#define RN_PB_COMPARE(ctype) \
  return (*(const ctype*)a > *(const ctype*)b) - (*(const ctype*)a < *(const ctype*)b)
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      RN_PB_COMPARE(int64_t);
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      RN_PB_COMPARE(uint64_t);
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      RN_PB_COMPARE(uint32_t);
    case RN_PB_BOOL:
      RN_PB_COMPARE(bool);
    default:
      RN_PB_COMPARE(int32_t);
#undef RN_PB_COMPARE
  }
}

// A stable merge sort of |entries|, with |spare| of the same length as scratch.
static void sort_entries(const rn_pb_field_desc_t* key, const void** entries, size_t count,
                         const void** spare) {
  if (count < 2) return;
  size_t half = count / 2;
  sort_entries(key, entries, half, spare);
  sort_entries(key, entries + half, count - half, spare);
  memcpy(spare, entries, half * sizeof *spare);
  size_t left = 0, right = half, out = 0;
  while (left < half) {
    bool from_right = right < count && compare_keys(key, (const char*)entries[right] + key->offset,
                                                    (const char*)spare[left] + key->offset) < 0;
    entries[out++] = from_right ? entries[right++] : spare[left++];
  }
}

rn_status_t rn_pb_map_sorted(const rn_pb_message_desc_t* entry, const rn_pb_list_t* list,
                             rn_arena_t* arena, const void*** out_entries, size_t* out_count) {
  const rn_pb_field_desc_t* key = &entry->fields[0];
  const void **entries = NULL, **spare = NULL;
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, list->count, &entries));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, list->count / 2 + 1, &spare));
  for (size_t i = 0; i < list->count; ++i) {
    entries[i] = (const char*)list->items + i * entry->size;
  }
  sort_entries(key, entries, list->count, spare);
  size_t count = 0;
  for (size_t i = 0; i < list->count; ++i) {
    bool again =
        i + 1 < list->count && compare_keys(key, (const char*)entries[i] + key->offset,
                                            (const char*)entries[i + 1] + key->offset) == 0;
    if (!again) entries[count++] = entries[i];
  }
  *out_entries = entries;
  *out_count = count;
  return RN_OK;
}

static void keep_entries(const rn_pb_message_desc_t* entry, rn_pb_list_t* list, const bool* drop) {
  char* items = list->items;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; ++i) {
    if (drop[i]) continue;
    if (kept != i) memcpy(items + kept * entry->size, items + i * entry->size, entry->size);
    ++kept;
  }
  list->count = kept;
}

rn_status_t rn_pb_map_unique(const rn_pb_message_desc_t* entry, rn_pb_list_t* list,
                             rn_arena_t* scratch) {
  const rn_pb_field_desc_t* key = &entry->fields[0];
  char* items = list->items;
  if (list->count > RN_PB_SMALL_MAP) {
    const void** entries = NULL;
    size_t count = 0;
    RN_RETURN_IF_ERROR(rn_pb_map_sorted(entry, list, scratch, &entries, &count));
    if (count == list->count) return RN_OK;
    bool* drop = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(scratch, list->count, &drop));
    memset(drop, true, list->count);
    for (size_t i = 0; i < count; ++i) {
      drop[(size_t)((const char*)entries[i] - items) / entry->size] = false;
    }
    keep_entries(entry, list, drop);
    return RN_OK;
  }
  bool drop[RN_PB_SMALL_MAP] = {false}, any = false;
  for (uint32_t i = 0; i < list->count; ++i) {
    for (uint32_t j = i + 1; j < list->count && !drop[i]; ++j) {
      drop[i] = compare_keys(key, items + i * entry->size + key->offset,
                             items + j * entry->size + key->offset) == 0;
      any |= drop[i];
    }
  }
  if (any) keep_entries(entry, list, drop);
  return RN_OK;
}
