// Names of imported nodes: checks that they are valid and unique, and renames those that the graph
// already uses.
#include <inttypes.h>

#include "graph/import_state.h"

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
}

bool rn_node_name_is_valid(rn_str_t name) {
  bool starts_part = true;
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    if (is_word(c)) {
      starts_part = false;
    } else if (starts_part) {
      return false;
    } else if (c == '>') {
      starts_part = true;
    } else if (c != '_' && c != '/' && c != '-') {
      return false;
    }
  }
  return !starts_part;
}

static size_t first_slot(const rn_import_names_t* names, uint64_t hash) {
  return (size_t)(hash ^ hash >> 32) & names->mask;
}

static int32_t find_hashed(const rn_import_t* import, rn_str_t name, uint64_t hash,
                           size_t* out_slot) {
  const rn_import_names_t* names = &import->names;
  size_t slot = first_slot(names, hash);
  for (; names->slots[slot]; slot = (slot + 1) & names->mask) {
    int32_t number = (int32_t)(names->slots[slot] - 1);
    if (names->hashes[number] == hash && rn_str_eq(rn_import_def(import, number)->name, name)) {
      *out_slot = slot;
      return number;
    }
  }
  *out_slot = slot;
  return -1;
}

int32_t rn_import_find(const rn_import_t* import, rn_str_t name) {
  size_t slot;
  return find_hashed(import, name, rn_str_hash(name), &slot);
}

static rn_status_t index_names(rn_import_t* import) {
  size_t capacity = 16;
  while (capacity < (size_t)import->node_count * 2) capacity *= 2;
  import->names.mask = capacity - 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, capacity, &import->names.slots));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&import->scratch, (size_t)import->node_count, &import->names.hashes));
  for (int32_t i = 0; i < import->node_count; i++) {
    const rn_import_def_t* def = rn_import_def(import, i);
    if (!import->options->allows_any_names && !rn_node_name_is_valid(def->name)) {
      return rn_invalid_argument("Node '%.*s': Node name contains invalid characters",
                                 RN_STR_ARGS(def->name));
    }
    size_t slot;
    uint64_t hash = rn_str_hash(def->name);
    if (find_hashed(import, def->name, hash, &slot) >= 0) {
      return rn_invalid_argument("Node '%.*s' is not unique", RN_STR_ARGS(def->name));
    }
    if (!def->op.size) {
      return rn_invalid_argument("Node '%.*s' does not specify an operation",
                                 RN_STR_ARGS(def->name));
    }
    import->names.hashes[i] = hash;
    import->names.slots[slot] = (uint32_t)i + 1;
  }
  return RN_OK;
}

// Whether the graph has a node of this name, or one whose name has it as a prefix.
static bool is_taken(const rn_import_t* import, rn_str_t name) {
  return rn_map_get(&import->graph->by_name, name) || rn_map_get(&import->graph->prefixes, name);
}

static rn_status_t settle_prefix(rn_import_t* import) {
  rn_str_t prefix = import->options->prefix;
  if (!prefix.size) return RN_OK;
  bool has_slash = prefix.data[prefix.size - 1] == '/';
  if (has_slash) prefix.size--;
  if (!rn_node_name_is_valid(prefix)) {
    return rn_invalid_argument("Imported node name prefix '%.*s/' would lead to invalid node names",
                               RN_STR_ARGS(prefix));
  }
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&import->scratch, &import->prefix, "%.*s/", RN_STR_ARGS(prefix)));
  for (uint64_t i = 1; import->options->uniquify_prefix; i++) {
    rn_str_t scope = rn_str_n(import->prefix.data, import->prefix.size - 1);
    if (!is_taken(import, scope)) break;
    RN_RETURN_IF_ERROR(rn_arena_printf(&import->scratch, &import->prefix, "%.*s_%" PRIu64 "/",
                                       RN_STR_ARGS(prefix), i));
  }
  return RN_OK;
}

// The first of "name_1", "name_2" … that neither graph nor GraphDef have.
static rn_status_t find_free_name(rn_import_t* import, rn_str_t name, rn_str_t* out) {
  for (uint64_t i = 1;; i++) {
    RN_RETURN_IF_ERROR(rn_arena_printf(&import->scratch, out, "%.*s%.*s_%" PRIu64,
                                       RN_STR_ARGS(import->prefix), RN_STR_ARGS(name), i));
    rn_str_t own = rn_str_n(out->data + import->prefix.size, out->size - import->prefix.size);
    if (!is_taken(import, *out) && rn_import_find(import, own) < 0) return RN_OK;
  }
}

static rn_status_t settle_name(rn_import_t* import, int32_t number) {
  rn_str_t own = rn_import_def(import, number)->name;
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_import_final_name(import, number, &name));
  // With an import prefix, a node's name may also be a prefix of existing names, as in TensorFlow.
  const rn_import_options_t* options = import->options;
  bool taken = options->uniquify_names || !(import->prefix.size || options->extends)
                   ? is_taken(import, name)
                   : rn_map_get(&import->graph->by_name, name) != NULL;
  if (!taken) return RN_OK;
  if (!import->options->uniquify_names) {
    return rn_invalid_argument("Node name '%.*s' already exists in the Graph", RN_STR_ARGS(name));
  }
  if (!import->final_names) {
    RN_RETURN_IF_ERROR(
        RN_ARENA_ARRAY(&import->scratch, (size_t)import->node_count, &import->final_names));
  }
  return find_free_name(import, own, &import->final_names[number]);
}

rn_status_t rn_import_settle_names(rn_import_t* import) {
  RN_RETURN_IF_ERROR(index_names(import));
  RN_RETURN_IF_ERROR(rn_graph_index_prefixes_locked(import->graph));
  RN_RETURN_IF_ERROR(settle_prefix(import));
  if (import->graph->nodes.count == 0) return RN_OK;
  for (int32_t i = 0; i < import->node_count; i++) RN_RETURN_IF_ERROR(settle_name(import, i));
  return RN_OK;
}

rn_status_t rn_import_final_name(rn_import_t* import, int32_t number, rn_str_t* out) {
  if (import->final_names && import->final_names[number].size) {
    *out = import->final_names[number];
    return RN_OK;
  }
  rn_str_t own = rn_import_def(import, number)->name;
  *out = own;
  if (!import->prefix.size) return RN_OK;
  import->name_buffer.size = 0;
  rn_strbuf_append(&import->name_buffer, import->prefix);
  rn_strbuf_append(&import->name_buffer, own);
  *out = rn_strbuf_view(&import->name_buffer);
  return rn_strbuf_status(&import->name_buffer);
}
