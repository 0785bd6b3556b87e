// See model_table.h.
#include "serve/model/model_table.h"

#include <sched.h>

rn_status_t rn_model_table_create(rn_allocator_t allocator, rn_model_table_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_arena_init(&(*out)->arena, allocator);
  rn_map_init(&(*out)->models, allocator);
  return RN_OK;
}

void rn_model_table_destroy(rn_model_table_t* table) {
  if (!table) return;
  rn_allocator_t allocator = table->arena.allocator;
  rn_map_clear(&table->models);
  rn_arena_clear(&table->arena);
  RN_FREE(allocator, table);
}

rn_status_t rn_model_table_add(rn_model_table_t* table, rn_str_t name, int versions, int labels,
                               rn_table_model_t** out) {
  rn_table_model_t* model = NULL;
  rn_arena_t* arena = &table->arena;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &model));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &model->name));
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(arena, (size_t)versions, sizeof *model->versions,
                                          (void**)&model->versions));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)labels, &model->labels));
  *out = model;
  return rn_map_put(&table->models, model->name, model);
}

void rn_model_view_replace(rn_model_view_t* view, rn_model_table_t* table) {
  rn_model_table_t* old = atomic_exchange(&view->table, table);
  uint64_t turn = atomic_fetch_add(&view->turn, 1);
  while (atomic_load(&view->readers[turn & 1])) sched_yield();
  rn_model_table_destroy(old);
}

// Begins to read; the table is valid until the counter is given back.
static const rn_model_table_t* enter(rn_model_view_t* view, _Atomic int64_t** out_counter) {
  for (;;) {
    uint64_t turn = atomic_load(&view->turn);
    *out_counter = &view->readers[turn & 1];
    atomic_fetch_add(*out_counter, 1);
    if (atomic_load(&view->turn) == turn) return atomic_load(&view->table);
    atomic_fetch_sub(*out_counter, 1);
  }
}

static bool label_number(const rn_table_model_t* model, rn_str_t label, int64_t* out) {
  for (int i = 0; model && i < model->label_count; ++i) {
    if (!rn_str_eq(model->labels[i].label, label)) continue;
    *out = model->labels[i].version;
    return true;
  }
  return false;
}

static rn_version_t* numbered(const rn_table_model_t* model, int64_t number) {
  for (int i = 0; model && i < model->version_count; ++i)
    if (rn_version_number(model->versions[i]) == number) return model->versions[i];
  return NULL;
}

rn_status_t rn_model_view_find(rn_model_view_t* view, const rn_model_spec_t* spec,
                               rn_version_t** out) {
  *out = NULL;
  if (!spec->name.size) return rn_invalid_argument("ModelSpec has no name specified.");
  _Atomic int64_t* counter;
  const rn_model_table_t* table = enter(view, &counter);
  const rn_table_model_t* model = table ? rn_map_get(&table->models, spec->name) : NULL;
  int64_t number = spec->version;
  bool by_label = number < 0 && spec->label.size;
  bool is_known = !by_label || label_number(model, spec->label, &number);
  bool is_latest = number < 0 && !by_label;
  if (is_known && !is_latest)
    *out = numbered(model, number);
  else if (is_known && model && model->version_count)
    *out = model->versions[0];
  if (*out) rn_version_retain(*out);
  atomic_fetch_sub(counter, 1);
  if (*out) return RN_OK;
  if (!is_known)
    return rn_invalid_argument("Unrecognized servable version label: %.*s",
                               RN_STR_ARGS(spec->label));
  if (is_latest)
    return rn_not_found("Servable not found for request: Latest(%.*s)", RN_STR_ARGS(spec->name));
  return rn_not_found("Servable not found for request: Specific(%.*s, %ld)",
                      RN_STR_ARGS(spec->name), (long)number);
}
