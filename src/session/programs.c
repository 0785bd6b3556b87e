// Programs by the shapes that are fed: see programs.h.
#include "session/programs.h"

// The number of sets of shapes per signature that get a program of their own.
#define MAX_VARIANTS 8

// A program for one set of fed shapes: with those known, memory can be planned and loops fused.
typedef struct rn_variant_t {
  struct rn_variant_t* next;
  rn_shape_t* shapes;     // by feed, full
  rn_program_t* program;  // Owned
} variant_t;

rn_status_t rn_programs_init(rn_programs_t* programs, const rn_planner_t* planner,
                             rn_graph_t* graph, const rn_signature_t* signature,
                             rn_arena_t* arena) {
  *programs =
      (rn_programs_t){.planner = planner, .graph = graph, .signature = signature, .arena = arena};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)signature->feed_count, &programs->declared));
  rn_status_t status = RN_OK;
  rn_mutex_lock(&graph->mutex);
  for (int32_t i = 0; rn_ok(status) && i < signature->feed_count; ++i) {
    rn_edge_t feed = signature->feeds[i];
    status = rn_shape_copy(arena, feed.node->outputs[feed.index].shape, &programs->declared[i]);
    programs->is_open |= !rn_shape_is_full(programs->declared[i]);
  }
  rn_mutex_unlock(&graph->mutex);
  return status;
}

void rn_programs_clear(rn_programs_t* programs) {
  for (variant_t* variant = programs->variants; variant; variant = variant->next)
    rn_program_destroy(variant->program);
  rn_program_destroy(programs->general);
  rn_program_destroy(programs->any);
  programs->variants = NULL;
  programs->general = programs->any = NULL;
}

static bool are_as_declared(const rn_programs_t* programs, const rn_tensor_t* const* feeds) {
  for (int32_t i = 0; i < programs->signature->feed_count; ++i)
    if (!rn_shape_compatible(programs->declared[i], rn_tensor_shape(feeds[i]))) return false;
  return true;
}

static rn_program_t* find_variant(const rn_programs_t* programs, const rn_tensor_t* const* feeds) {
  for (variant_t* variant = programs->variants; variant; variant = variant->next) {
    bool fits = true;
    for (int32_t i = 0; fits && i < programs->signature->feed_count; ++i)
      fits = rn_shape_eq(variant->shapes[i], rn_tensor_shape(feeds[i]));
    if (fits) return variant->program;
  }
  return NULL;
}

rn_program_t* rn_programs_find(const rn_programs_t* programs, const rn_tensor_t* const* feeds) {
  bool is_declared = are_as_declared(programs, feeds);
  if (is_declared && !programs->is_open) return programs->general;
  rn_program_t* variant = find_variant(programs, feeds);
  if (variant) return variant;
  return is_declared ? programs->general : programs->any;  // made when variants ran out
}

static rn_status_t fill_variant(rn_programs_t* programs, const rn_tensor_t* const* feeds,
                                variant_t** out) {
  variant_t* variant = NULL;
  size_t count = (size_t)programs->signature->feed_count;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(programs->arena, &variant));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(programs->arena, count, &variant->shapes));
  for (size_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(
        rn_shape_copy(programs->arena, rn_tensor_shape(feeds[i]), &variant->shapes[i]));
  *out = variant;
  return rn_program_create(programs->planner, programs->graph, programs->signature, variant->shapes,
                           &variant->program);
}

static rn_status_t make_variant(rn_programs_t* programs, const rn_tensor_t* const* feeds,
                                rn_program_t** out) {
  variant_t* variant = NULL;
  rn_arena_mark_t mark = rn_arena_mark(programs->arena);
  rn_status_t status = fill_variant(programs, feeds, &variant);
  if (!rn_ok(status)) {
    rn_arena_rewind(programs->arena, mark);  // a client may feed shapes that fail again and again
    return status;
  }
  variant->next = programs->variants;
  programs->variants = variant;
  programs->variant_count++;
  *out = variant->program;
  return RN_OK;
}

// A program for more than one set of shapes.
static rn_status_t make_general(rn_programs_t* programs, bool is_declared, rn_program_t** out) {
  RN_RETURN_IF_ERROR(rn_program_create(programs->planner, programs->graph, programs->signature,
                                       is_declared ? programs->declared : NULL, out));
  if (is_declared)
    programs->general = *out;
  else
    programs->any = *out;
  return RN_OK;
}

rn_status_t rn_programs_make(rn_programs_t* programs, const rn_tensor_t* const* feeds,
                             rn_program_t** out) {
  *out = rn_programs_find(programs, feeds);  // another thread may have been faster
  if (*out) return RN_OK;
  bool is_declared = are_as_declared(programs, feeds);
  bool is_special = programs->is_open || !is_declared;
  if (is_special && programs->variant_count < MAX_VARIANTS)
    return make_variant(programs, feeds, out);
  return make_general(programs, is_declared, out);
}

rn_status_t rn_programs_plan(rn_programs_t* programs) {
  rn_program_t* program = NULL;
  return programs->general ? RN_OK : make_general(programs, true, &program);
}
