// Keys and values: see values.h.
#include "dist/coordination/values.h"

#define MAX_BYTES ((size_t)1 << 30)
#define ENTRY_BYTES 128  // that an entry takes, besides its texts

typedef struct values_entry_t {
  size_t key_size, size;
  char text[];  // the key, then the value
} values_entry_t;

void rn_values_init(rn_values_t* values, rn_allocator_t allocator) {
  *values = (rn_values_t){.allocator = allocator};
  rn_map_init(&values->map, allocator);
}

static void entry_free(rn_values_t* values, values_entry_t* entry) {
  values->bytes -= entry->key_size + entry->size + ENTRY_BYTES;
  rn_free(values->allocator, entry, sizeof *entry + entry->key_size + entry->size + 1);
}

void rn_values_clear(rn_values_t* values) {
  size_t at = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&values->map, &at));)
    entry_free(values, entry->value);
  rn_map_clear(&values->map);
}

rn_status_t rn_values_key(rn_str_t key, rn_strbuf_t* out) {
  while (key.size) {
    rn_str_t part = rn_str_split(&key, '/');
    if (!part.size) continue;
    if (out->size) rn_strbuf_append(out, RN_STR("/"));
    rn_strbuf_append(out, part);
  }
  return rn_strbuf_status(out);
}

rn_status_t rn_values_put(rn_values_t* values, rn_str_t key, rn_str_t value, bool may_replace) {
  values_entry_t *old = rn_map_get(&values->map, key), *entry = NULL;
  size_t size = 0;
  if (old && !may_replace)
    return rn_already_exists("Config key %.*s already exists.", RN_STR_ARGS(key));
  if (!rn_add_ok(key.size, value.size, &size) || size > MAX_BYTES - ENTRY_BYTES ||
      values->bytes > MAX_BYTES - ENTRY_BYTES - size)
    return rn_resource_exhausted("The keys and values of the cluster take too much memory");
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(values->allocator, sizeof *entry + size + 1, (void**)&entry));
  entry->key_size = key.size;
  entry->size = value.size;
  if (key.size) memcpy(entry->text, key.data, key.size);
  if (value.size) memcpy(entry->text + key.size, value.data, value.size);
  values->bytes += size + ENTRY_BYTES;
  if (old) {
    rn_map_remove(&values->map, key);
    entry_free(values, old);
  }
  rn_status_t status = rn_map_put(&values->map, rn_str_n(entry->text, entry->key_size), entry);
  if (!rn_ok(status)) entry_free(values, entry);
  return status;
}

bool rn_values_get(const rn_values_t* values, rn_str_t key, rn_str_t* out) {
  const values_entry_t* entry = rn_map_get(&values->map, key);
  *out = entry ? rn_str_n(entry->text + entry->key_size, entry->size) : RN_STR("");
  return entry;
}

static bool is_below(rn_str_t key, rn_str_t directory) {
  if (!directory.size) return true;
  return key.size > directory.size && rn_str_starts_with(key, directory) &&
         key.data[directory.size] == '/';
}

void rn_values_remove(rn_values_t* values, rn_str_t key, bool is_directory) {
  values_entry_t* entry = rn_map_remove(&values->map, key);
  if (entry) entry_free(values, entry);
  size_t at = 0;
  for (const rn_map_entry_t* item; is_directory && (item = rn_map_next(&values->map, &at));) {
    entry = item->value;
    if (!is_below(item->key, key)) continue;
    rn_map_remove(&values->map, item->key);
    entry_free(values, entry);
    at = 0;  // the entries may have moved
  }
}

void rn_values_list(const rn_values_t* values, rn_str_t directory,
                    void (*visit)(void* self, rn_str_t key, rn_str_t value), void* self) {
  size_t at = 0;
  for (const rn_map_entry_t* item; (item = rn_map_next(&values->map, &at));) {
    const values_entry_t* entry = item->value;
    if (is_below(item->key, directory))
      visit(self, item->key, rn_str_n(entry->text + entry->key_size, entry->size));
  }
}
