// What the function of a dataset does, read from its definition: see rewrite.h.
#include "base/map.h"
#include "framework/pipeline_proto.h"
#include "kernels/cpu/dataset/rewrite.h"
#include "wire/decode.h"

#define MAX_DEPTH 64    // of nested calls; deeper functions count as stateful
#define MAX_CHAIN 1024  // of Identity nodes

// A search for state. Each function is looked at once: n functions that call the next one twice
// have 2^n ways to the last.
typedef struct state_search_t {
  rn_functions_t* functions;
  rn_map_t met;      // by name: |&open| while the search is in it, |&pure| if it has no state
  rn_arena_t arena;  // of the names
  char open, pure;
} state_search_t;

static rn_status_t stateful(state_search_t* search, rn_str_t name, int depth, bool* out);

// Descends into the functions that the attributes of |node| name.
static rn_status_t in_attrs(state_search_t* search, const rn_pb_NodeDef_t* node, int depth,
                            bool* out) {
  for (size_t i = 0; !*out && i < node->attr.count; ++i) {
    const rn_pb_AttrValue_t* value = node->attr.items[i].value;
    if (!value) continue;
    if (value->value_case == rn_pb_AttrValue_func_field)
      RN_RETURN_IF_ERROR(stateful(search, value->func->name, depth, out));
    if (value->value_case != rn_pb_AttrValue_list_field) continue;
    for (size_t f = 0; !*out && f < value->list->func.count; ++f)
      RN_RETURN_IF_ERROR(stateful(search, value->list->func.items[f].name, depth, out));
  }
  return RN_OK;
}

static rn_status_t node_is_stateful(state_search_t* search, const rn_pb_NodeDef_t* node, int depth,
                                    bool* out) {
  const rn_op_def_t* op = rn_op_find(node->op);
  if (!op) return stateful(search, node->op, depth, out);
  if (rn_op_names_function(op) && !(op->flags & RN_OP_CALLS_FUNCTIONS))
    return in_attrs(search, node, depth, out);
  // Ops that make datasets have no state of their own.
  *out =
      op->flags & RN_OP_STATEFUL && strcmp(op->name, "Assert") != 0 && !rn_data_kind_of(op->name);
  return RN_OK;
}

// Whether the function |name| has state. One that calls itself counts as such.
static rn_status_t stateful(state_search_t* search, rn_str_t name, int depth, bool* out) {
  rn_pb_FunctionDef_t* def = NULL;
  rn_str_t bytes;
  const void* met = rn_map_get(&search->met, name);
  *out = met == &search->open || (!met && depth == MAX_DEPTH);
  if (met || *out) return RN_OK;
  RN_RETURN_IF_ERROR(rn_functions_find(search->functions, name, &bytes));
  RN_RETURN_IF_ERROR(rn_arena_str(&search->arena, name, &name));
  RN_RETURN_IF_ERROR(rn_map_put(&search->met, name, &search->open));
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_status_t status = RN_PB_DECODE(FunctionDef, bytes, NULL, &arena, &def);
  for (size_t i = 0; rn_ok(status) && !*out && i < def->node_def.count; ++i)
    status = node_is_stateful(search, &def->node_def.items[i], depth + 1, out);
  rn_arena_clear(&arena);
  return rn_ok(status) && !*out ? rn_map_put(&search->met, name, &search->pure) : status;
}

static rn_status_t has_state(rn_functions_t* functions, rn_str_t name, bool* out) {
  state_search_t search = {.functions = functions};
  rn_map_init(&search.met, rn_allocator_default());
  rn_arena_init(&search.arena, rn_allocator_default());
  rn_status_t status = stateful(&search, name, 0, out);
  rn_map_clear(&search.met);
  rn_arena_clear(&search.arena);
  return status;
}

static const rn_pb_NodeDef_t* node_named(const rn_pb_FunctionDef_t* def, rn_str_t name) {
  for (size_t i = 0; i < def->node_def.count; ++i)
    if (rn_str_eq(def->node_def.items[i].name, name)) return &def->node_def.items[i];
  return NULL;
}

// Follows |value|, a result, back through Identity nodes.
static rn_str_t source_of(const rn_pb_FunctionDef_t* def, rn_str_t value) {
  for (int i = 0; i < MAX_CHAIN; ++i) {
    const char* colon = memchr(value.data, ':', value.size);
    if (!colon) break;
    const rn_pb_NodeDef_t* node =
        node_named(def, rn_str_n(value.data, (size_t)(colon - value.data)));
    if (!node || !rn_str_is(node->op, "Identity") || node->input.count < 1) break;
    value = node->input.items[0];
  }
  return value;
}

static bool is_identity(const rn_pb_FunctionDef_t* def) {
  const rn_pb_OpDef_t* face = def->signature;
  if (!face || face->input_arg.count != face->output_arg.count) return false;
  for (size_t i = 0; i < face->output_arg.count; ++i) {
    bool is_same = false;
    for (size_t r = 0; r < def->ret.count; ++r)
      if (rn_str_eq(def->ret.items[r].key, face->output_arg.items[i].name))
        is_same = rn_str_eq(source_of(def, def->ret.items[r].value), face->input_arg.items[i].name);
    if (!is_same) return false;
  }
  return true;
}

rn_status_t rn_data_body_of(const rn_dataset_t* dataset, const char* attr, rn_data_body_t* out) {
  const rn_attr_value_t* value = rn_data_attr(dataset, attr);
  rn_pb_FunctionDef_t* def = NULL;
  rn_str_t bytes;
  *out = (rn_data_body_t){.is_stateful = true};
  if (!value || value->kind != RN_ATTR_FUNC || !value->func || !dataset->functions) return RN_OK;
  RN_RETURN_IF_ERROR(has_state(dataset->functions, value->func->name, &out->is_stateful));
  RN_RETURN_IF_ERROR(rn_functions_find(dataset->functions, value->func->name, &bytes));
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_status_t status = RN_PB_DECODE(FunctionDef, bytes, NULL, &arena, &def);
  if (rn_ok(status)) out->is_identity = is_identity(def);
  rn_arena_clear(&arena);
  return status;
}
