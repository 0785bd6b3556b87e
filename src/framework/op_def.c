// The registry of op definitions: built-in ones and those that plug-ins add.
//
// A hash table with open addressing, made on the first lookup. Readers take no lock: slots and the
// table pointer are published complete (release) and never removed. When the table grows, the old
// one stays allocated, because a reader may still use it; sizes double, so all old tables together
// are smaller than the current one.
#include "framework/op_def.h"

#include <stdatomic.h>

#include "base/sync.h"
#include "framework/op_face.h"
#include "framework/op_proto.h"

// |hash| and |size| (of the name) are written before |def| is published, and never again.
typedef struct rn_op_slot_t {
  _Atomic(const rn_op_def_t*) def;
  uint32_t hash;
  uint32_t size;
} rn_op_slot_t;

typedef struct rn_op_table_t rn_op_table_t;
struct rn_op_table_t {
  rn_op_table_t* previous;
  size_t count;
  size_t mask;
  rn_op_slot_t slots[];
};

static struct {
  rn_mutex_t mutex;  // taken by writers
  _Atomic(rn_op_table_t*) table;
  const rn_op_def_t** added;  // sorted by name
  int added_count;
} registry = {.mutex = RN_MUTEX_INIT};

static uint64_t load8(const char* data) {
  uint64_t bits;
  memcpy(&bits, data, sizeof bits);
  return bits;
}

static uint64_t load4(const char* data) {
  uint32_t bits;
  memcpy(&bits, data, sizeof bits);
  return bits;
}

// Names are short, so hashing a few overlapping machine words suffices.
static uint32_t hash_name(const char* data, size_t size) {
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = load8(data) ^ load8(data + (size - 8) / 2) * UINT64_C(0x9E3779B97F4A7C15);
    b = load8(data + size - 8);
  } else if (size >= 4) {
    a = load4(data) << 32 | load4(data + size - 4);
  } else {
    for (size_t i = 0; i < size; i++) a = a << 8 | (unsigned char)data[i];
  }
  uint64_t hash = (a ^ size) * UINT64_C(0xBF58476D1CE4E5B9);
  hash = (hash ^ b ^ hash >> 32) * UINT64_C(0x94D049BB133111EB);
  return (uint32_t)(hash >> 32);
}

// |name| is untrusted and may hold any bytes, including NUL.
static bool is_called(const char* own, rn_str_t name) {
  return strlen(own) == name.size && !memcmp(own, name.data, name.size);
}

static const rn_op_def_t* table_find(const rn_op_table_t* table, rn_str_t name) {
  uint32_t hash = hash_name(name.data, name.size);
  for (size_t i = hash;; i++) {
    const rn_op_slot_t* slot = &table->slots[i & table->mask];
    const rn_op_def_t* def = atomic_load_explicit(&slot->def, memory_order_acquire);
    if (!def) return NULL;
    if (slot->hash == hash && slot->size == name.size && !memcmp(def->name, name.data, name.size)) {
      return def;
    }
  }
}

static void table_insert(rn_op_table_t* table, const rn_op_def_t* def) {
  size_t size = strlen(def->name);
  uint32_t hash = hash_name(def->name, size);
  size_t i = hash;
  while (atomic_load_explicit(&table->slots[i & table->mask].def, memory_order_relaxed)) i++;
  rn_op_slot_t* slot = &table->slots[i & table->mask];
  slot->hash = hash;
  slot->size = (uint32_t)size;
  atomic_store_explicit(&slot->def, def, memory_order_release);
  table->count++;
}

// The table, grown if needed to stay at most half full with one more definition; NULL if memory is
// short.
static rn_op_table_t* table_ready_locked(void) {
  rn_op_table_t* old = atomic_load_explicit(&registry.table, memory_order_relaxed);
  if (old && (old->count + 1) * 2 <= old->mask + 1) return old;
  size_t needed = ((size_t)rn_builtin_op_count + (size_t)registry.added_count + 1) * 2;
  size_t size = old ? old->mask + 1 : 1;
  while (size < needed) size *= 2;
  rn_op_table_t* table = calloc(1, sizeof *table + size * sizeof *table->slots);
  if (!table) return NULL;
  table->previous = old;
  table->mask = size - 1;
  for (int i = 0; i < rn_builtin_op_count; i++) table_insert(table, rn_builtin_ops[i]);
  for (int i = 0; i < registry.added_count; i++) table_insert(table, registry.added[i]);
  atomic_store_explicit(&registry.table, table, memory_order_release);
  return table;
}

static const rn_op_table_t* table_get(void) {
  rn_op_table_t* table = atomic_load_explicit(&registry.table, memory_order_acquire);
  if (__builtin_expect(table != NULL, 1)) return table;
  rn_mutex_lock(&registry.mutex);
  table = table_ready_locked();
  rn_mutex_unlock(&registry.mutex);
  return table;
}

static const rn_op_def_t* search(const rn_op_def_t* const* defs, int count, rn_str_t name) {
  int low = 0, high = count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    int order = rn_str_compare(rn_str(defs[middle]->name), name);
    if (order == 0) return defs[middle];
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

const rn_op_def_t* rn_op_find(rn_str_t name) {
  if (!name.size) return NULL;
  const rn_op_table_t* table = table_get();
  if (__builtin_expect(table != NULL, 1)) return table_find(table, name);
  return search(rn_builtin_ops, rn_builtin_op_count, name);
}

static rn_status_t same_definition(const rn_op_def_t* a, const rn_op_def_t* b, bool* out_same) {
  rn_strbuf_t bytes[2];
  const rn_op_def_t* defs[2] = {a, b};
  rn_status_t status = RN_OK;
  for (int i = 0; i < 2; i++) {
    rn_strbuf_init(&bytes[i], rn_allocator_default());
    rn_op_write_proto(&bytes[i], defs[i]);
    status = rn_status_join(status, rn_strbuf_status(&bytes[i]));
  }
  *out_same = rn_str_eq(rn_strbuf_view(&bytes[0]), rn_strbuf_view(&bytes[1]));
  rn_strbuf_clear(&bytes[0]);
  rn_strbuf_clear(&bytes[1]);
  return status;
}

static rn_status_t register_locked(const rn_op_def_t* def) {
  rn_op_table_t* table = atomic_load_explicit(&registry.table, memory_order_relaxed);
  if (!table) table = table_ready_locked();
  if (!table) return rn_out_of_memory();
  const rn_op_def_t* other = table_find(table, rn_str(def->name));
  if (other == def) return RN_OK;
  if (other) {
    bool same = false;
    RN_RETURN_IF_ERROR(same_definition(def, other, &same));
    return same ? RN_OK : rn_already_exists("Op with name %s", def->name);
  }
  table = table_ready_locked();
  if (!table) return rn_out_of_memory();
  size_t size = ((size_t)registry.added_count + 1) * sizeof *registry.added;
  const rn_op_def_t** added = realloc(registry.added, size);
  if (!added) return rn_out_of_memory();
  registry.added = added;
  int at = registry.added_count++;
  for (; at > 0 && strcmp(added[at - 1]->name, def->name) > 0; at--) added[at] = added[at - 1];
  added[at] = def;
  table_insert(table, def);
  return RN_OK;
}

rn_status_t rn_op_register(const rn_op_def_t* def) {
  if (!def || !def->name || !*def->name || !def->shape) {
    return rn_invalid_argument("An op needs a name and a shape function");
  }
  rn_mutex_lock(&registry.mutex);
  rn_status_t status = register_locked(def);
  rn_mutex_unlock(&registry.mutex);
  return status;
}

rn_status_t rn_op_each(rn_status_t (*visit)(const rn_op_def_t* def, void* arg), void* arg) {
  // A copy, so that the visitor runs without the lock.
  rn_mutex_lock(&registry.mutex);
  int count = registry.added_count;
  const rn_op_def_t** added = malloc(((size_t)count + 1) * sizeof *added);
  if (added && count) memcpy(added, registry.added, (size_t)count * sizeof *added);
  rn_mutex_unlock(&registry.mutex);
  if (!added) return rn_out_of_memory();
  rn_status_t status = RN_OK;
  for (int i = 0, j = 0; rn_ok(status) && (i < rn_builtin_op_count || j < count);) {
    bool builtin = j == count ||
                   (i < rn_builtin_op_count && strcmp(rn_builtin_ops[i]->name, added[j]->name) < 0);
    status = visit(builtin ? rn_builtin_ops[i++] : added[j++], arg);
  }
  free(added);
  return status;
}

int rn_op_attr_index(const rn_op_def_t* def, rn_str_t name) {
  for (int i = 0; i < def->attr_count; i++) {
    if (name.size && is_called(def->attrs[i].name, name)) return i;
  }
  return -1;
}

const char* rn_op_base_name(const char* op) {
  for (const rn_op_face_t* face = rn_op_faces; face->name; ++face)
    if (*op == *face->name && strcmp(op, face->name) == 0) return face->base;
  return op;
}
