// The edges of a GraphDef: resolves inputs to nodes and mappings, and finds an order in which every
// node comes after its inputs. Nodes may appear in any order; the only legal cycles go from a
// NextIteration to a Merge. Nothing here recurses, because chains may be as long as the message.
#include "graph/import_state.h"

// The most nodes of a cycle that the message names.
#define MAX_NAMED 8

rn_tensor_id_t rn_tensor_id_parse(rn_str_t input) {
  if (input.size && input.data[0] == '^') {
    return (rn_tensor_id_t){rn_str_n(input.data + 1, input.size - 1), -1};
  }
  size_t digits = 0;
  int64_t port = 0;
  while (digits < input.size && input.data[input.size - 1 - digits] >= '0' &&
         input.data[input.size - 1 - digits] <= '9') {
    digits++;
  }
  size_t colon = input.size - digits;  // the position after it
  if (digits == 0 || colon < 2 || input.data[colon - 1] != ':') return (rn_tensor_id_t){input, 0};
  for (size_t i = colon; i < input.size; i++) {
    port = port * 10 + (input.data[i] - '0');
    if (port > INT32_MAX) port = INT32_MAX;  // more than any node's outputs
  }
  return (rn_tensor_id_t){rn_str_n(input.data, colon - 1), (int32_t)port};
}

int32_t rn_import_find_mapping(const rn_import_t* import, rn_tensor_id_t id) {
  for (int32_t i = import->options->map_count; i-- > 0;) {
    const rn_tensor_id_t* from = &import->options->map_from[i];
    if (from->index == id.index && rn_str_eq(from->name, id.name)) return i;
  }
  return -1;
}

static rn_status_t check_mappings(const rn_import_t* import) {
  const rn_import_options_t* options = import->options;
  for (int32_t i = 0; i < options->map_count; i++) {
    rn_tensor_id_t from = options->map_from[i];
    rn_edge_t to = options->map_to[i];
    if (!to.node || to.node->graph != import->graph) {
      return rn_invalid_argument("The input mapping of '%.*s' names no node of the graph",
                                 RN_STR_ARGS(from.name));
    }
    if ((from.index < 0) == (to.index < 0)) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, import->graph->allocator);
    if (from.index < 0) {
      rn_strbuf_printf(&text, "input_map entry ^%.*s->%.*s:%d", RN_STR_ARGS(from.name),
                       RN_STR_ARGS(to.node->name), to.index);
    } else {
      rn_strbuf_printf(&text, "input_map entry %.*s:%d->^%.*s", RN_STR_ARGS(from.name), from.index,
                       RN_STR_ARGS(to.node->name));
    }
    rn_strbuf_append(&text, RN_STR(" between control edge and non-control edge"));
    return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
  }
  return RN_OK;
}

static rn_status_t resolve(rn_import_t* import, const rn_import_def_t* def, rn_str_t input,
                           rn_import_ref_t* out) {
  rn_tensor_id_t id = rn_tensor_id_parse(input);
  out->port = id.index;
  if (import->options->map_count) {
    int32_t mapping = rn_import_find_mapping(import, id);
    if (mapping >= 0) {
      import->is_map_used[mapping] = true;
      out->source = ~mapping;
      return RN_OK;
    }
  }
  out->source = rn_import_find(import, id.name);
  if (out->source >= 0) return RN_OK;
  return rn_invalid_argument("Node '%.*s': Unknown input node '%.*s'", RN_STR_ARGS(def->name),
                             RN_STR_ARGS(input));
}

rn_status_t rn_import_resolve_inputs(rn_import_t* import) {
  RN_RETURN_IF_ERROR(check_mappings(import));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&import->scratch, (size_t)import->options->map_count, &import->is_map_used));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&import->scratch, import->first_ref[import->node_count], &import->refs));
  for (int32_t i = 0; i < import->node_count; i++) {
    const rn_import_def_t* def = rn_import_def(import, i);
    bool saw_control = false;
    for (uint32_t j = import->first_ref[i]; j < import->first_ref[i + 1]; j++) {
      rn_import_ref_t* ref = &import->refs[j];
      RN_RETURN_IF_ERROR(resolve(import, def, import->inputs[j], ref));
      if (ref->port < 0) {
        saw_control = true;
      } else if (saw_control) {
        return rn_invalid_argument(
            "Node '%.*s': Control dependencies must come after regular dependencies",
            RN_STR_ARGS(def->name));
      }
    }
  }
  return RN_OK;
}

rn_edge_t rn_import_edge(const rn_import_t* import, rn_import_ref_t ref) {
  if (ref.source < 0) return import->options->map_to[~ref.source];
  return (rn_edge_t){import->nodes[ref.source], ref.port};
}

static uint8_t role_of(const rn_import_t* import, int32_t number) {
  const rn_op_def_t* op = rn_op_find(rn_import_def(import, number)->op);
  return op ? op->role : RN_ROLE_PLAIN;
}

// Whether node |number| waits for input |ref| to be built.
static bool waits_for(const rn_import_t* import, int32_t number, rn_import_ref_t ref) {
  if (ref.source < 0) return false;
  if (ref.port < 0) return true;
  return role_of(import, ref.source) != RN_ROLE_NEXT_ITERATION ||
         role_of(import, number) != RN_ROLE_MERGE;
}

static bool is_in_order(const rn_import_t* import) {
  for (int32_t i = 0; i < import->node_count; i++) {
    for (uint32_t j = import->first_ref[i]; j < import->first_ref[i + 1]; j++) {
      rn_import_ref_t ref = import->refs[j];
      if (ref.source >= i && waits_for(import, i, ref)) return false;
    }
  }
  return true;
}

// The numbers of nodes that are ready, smallest first: a binary heap.
typedef struct heap_t {
  int32_t* items;
  int32_t count;
} heap_t;

static void heap_push(heap_t* heap, int32_t item) {
  int32_t i = heap->count++;
  for (; i > 0 && heap->items[(i - 1) / 2] > item; i = (i - 1) / 2) {
    heap->items[i] = heap->items[(i - 1) / 2];
  }
  heap->items[i] = item;
}

static int32_t heap_pop(heap_t* heap) {
  int32_t top = heap->items[0], last = heap->items[--heap->count], i = 0;
  for (;;) {
    int64_t child = 2 * (int64_t)i + 1;
    if (child >= heap->count) break;
    if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child]) child++;
    if (heap->items[child] >= last) break;
    heap->items[i] = heap->items[child];
    i = (int32_t)child;
  }
  heap->items[i] = last;
  return top;
}

// By node: the nodes that wait for it, in one array with a start index per node.
typedef struct readers_t {
  uint32_t* first;
  int32_t* items;
  int32_t* pending;  // inputs that each node still waits for
} readers_t;

static rn_status_t find_readers(rn_import_t* import, readers_t* out) {
  size_t count = (size_t)import->node_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, count + 2, &out->first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, count, &out->pending));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, import->first_ref[count], &out->items));
  // Two passes: counts, shifted by two so that the second pass leaves each start in its place.
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < import->node_count; i++) {
      for (uint32_t j = import->first_ref[i]; j < import->first_ref[i + 1]; j++) {
        rn_import_ref_t ref = import->refs[j];
        if (!waits_for(import, i, ref)) continue;
        if (pass == 0) {
          out->first[ref.source + 2]++;
          out->pending[i]++;
        } else {
          out->items[out->first[ref.source + 1]++] = i;
        }
      }
    }
    for (size_t i = 2; pass == 0 && i < count + 2; i++) out->first[i] += out->first[i - 1];
  }
  return RN_OK;
}

// Follows inputs that never became ready backwards until a node repeats, and names the nodes of
// that cycle.
static rn_status_t describe_cycle(rn_import_t* import, const int32_t* pending, int32_t left) {
  bool* is_seen = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, (size_t)import->node_count, &is_seen));
  int32_t at = 0, meeting = -1, named = 0;
  while (pending[at] == 0) at++;
  rn_strbuf_t text;
  rn_strbuf_init(&text, import->graph->allocator);
  rn_strbuf_printf(&text, "%d nodes in a cycle", (int)left);
  while (named < MAX_NAMED && !(meeting >= 0 && named > 0 && at == meeting)) {
    if (meeting < 0 && is_seen[at]) meeting = at;
    is_seen[at] = true;
    if (meeting >= 0) {
      rn_strbuf_printf(&text, "%s'%.*s'", named++ ? " <- " : ": ",
                       RN_STR_ARGS(rn_import_def(import, at)->name));
    }
    for (uint32_t j = import->first_ref[at]; j < import->first_ref[at + 1]; j++) {
      rn_import_ref_t ref = import->refs[j];
      if (!waits_for(import, at, ref) || pending[ref.source] == 0) continue;
      at = ref.source;
      break;
    }
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_import_find_order(rn_import_t* import) {
  if (is_in_order(import)) return RN_OK;
  readers_t readers;
  heap_t ready = {0};
  size_t count = (size_t)import->node_count;
  RN_RETURN_IF_ERROR(find_readers(import, &readers));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, count, &import->order));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, count, &ready.items));
  for (int32_t i = 0; i < import->node_count; i++) {
    if (readers.pending[i] == 0) heap_push(&ready, i);
  }
  int32_t done = 0;
  while (ready.count) {
    int32_t number = heap_pop(&ready);
    import->order[done++] = number;
    for (uint32_t j = readers.first[number]; j < readers.first[number + 1]; j++) {
      if (--readers.pending[readers.items[j]] == 0) heap_push(&ready, readers.items[j]);
    }
  }
  if (done < import->node_count) {
    return describe_cycle(import, readers.pending, import->node_count - done);
  }
  return RN_OK;
}
