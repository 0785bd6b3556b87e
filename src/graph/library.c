// The functions of a graph: see library.h.
#include "graph/library.h"

rn_status_t rn_library_create(rn_allocator_t allocator, rn_library_t** out) {
  *out = NULL;
  rn_library_t* library = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &library));
  library->allocator = allocator;
  rn_mutex_init(&library->mutex);
  rn_arena_init(&library->arena, allocator);
  rn_map_init(&library->numbers, allocator);
  rn_map_init(&library->bodies_by_key, allocator);
  *out = library;
  return RN_OK;
}

void rn_library_destroy(rn_library_t* library) {
  if (!library) return;
  rn_allocator_t allocator = library->allocator;
  // Destroy bodies before the functions whose ops their nodes use.
  for (size_t i = 0; i < library->bodies.count; i++) {
    library->bodies.items[i].destroy(library->bodies.items[i].body);
  }
  for (size_t i = 0; i < library->entries.count; i++) {
    rn_function_release(library->entries.items[i].function);
  }
  for (size_t i = 0; i < library->removed.count; i++) {
    rn_function_release(library->removed.items[i]);
  }
  rn_vec_free(&library->bodies, allocator);
  rn_vec_free(&library->entries, allocator);
  rn_vec_free(&library->removed, allocator);
  rn_map_clear(&library->numbers);
  rn_map_clear(&library->bodies_by_key);
  rn_arena_clear(&library->arena);
  rn_mutex_destroy(&library->mutex);
  RN_FREE(allocator, library);
}

static rn_library_entry_t* find_locked(rn_library_t* library, rn_str_t name) {
  uintptr_t number = (uintptr_t)rn_map_get(&library->numbers, name);
  return number ? &library->entries.items[number - 1] : NULL;
}

rn_function_t* rn_library_find(rn_library_t* library, rn_str_t name) {
  rn_mutex_lock(&library->mutex);
  rn_library_entry_t* entry = find_locked(library, name);
  rn_function_t* function = entry ? entry->function : NULL;
  rn_mutex_unlock(&library->mutex);
  return function;
}

static rn_status_t add_locked(rn_library_t* library, rn_function_t* function, bool* out_is_new) {
  const rn_library_entry_t* known = find_locked(library, function->name);
  if (known) {
    if (rn_str_eq(known->function->bytes, function->bytes)) return RN_OK;
    return rn_invalid_argument(
        "Cannot add function '%.*s' because a different function with the same name already "
        "exists.",
        RN_STR_ARGS(function->name));
  }
  size_t count = library->entries.count;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&library->entries, library->allocator, count + 1));
  RN_RETURN_IF_ERROR(rn_map_put(&library->numbers, function->name, (void*)(uintptr_t)(count + 1)));
  rn_function_retain(function);
  library->entries.items[library->entries.count++] = (rn_library_entry_t){.function = function};
  *out_is_new = true;
  return RN_OK;
}

rn_status_t rn_library_add(rn_library_t* library, rn_function_t* function, bool* out_is_new) {
  *out_is_new = false;
  if (rn_op_find(function->name)) {
    return rn_invalid_argument(
        "Cannot add function '%.*s' because an op with the same name already exists.",
        RN_STR_ARGS(function->name));
  }
  rn_mutex_lock(&library->mutex);
  rn_status_t status = add_locked(library, function, out_is_new);
  rn_mutex_unlock(&library->mutex);
  return status;
}

static rn_status_t set_gradient_locked(rn_library_t* library, rn_str_t function, rn_str_t gradient,
                                       bool* out_is_new) {
  rn_library_entry_t* entry = find_locked(library, function);
  if (!entry) return RN_OK;  // the function is not in this library: nothing to record
  if (entry->gradient.size) {
    if (rn_str_eq(entry->gradient, gradient)) return RN_OK;
    return rn_invalid_argument(
        "Cannot assign gradient function '%.*s' to '%.*s' because it already has gradient "
        "function '%.*s'",
        RN_STR_ARGS(gradient), RN_STR_ARGS(function), RN_STR_ARGS(entry->gradient));
  }
  *out_is_new = true;
  return rn_arena_str(&library->arena, gradient, &entry->gradient);
}

rn_status_t rn_library_set_gradient(rn_library_t* library, rn_str_t function, rn_str_t gradient,
                                    bool* out_is_new) {
  *out_is_new = false;
  rn_mutex_lock(&library->mutex);
  rn_status_t status = set_gradient_locked(library, function, gradient, out_is_new);
  rn_mutex_unlock(&library->mutex);
  return status;
}

void rn_library_undo_gradient(rn_library_t* library, rn_str_t name) {
  rn_mutex_lock(&library->mutex);
  rn_library_entry_t* entry = find_locked(library, name);
  if (entry) entry->gradient = (rn_str_t){0};
  rn_mutex_unlock(&library->mutex);
}

// Removes the bodies of |function| from the index; they stay alive.
static void hide_bodies_locked(rn_library_t* library, const rn_function_t* function) {
  for (size_t i = 0; i < library->bodies.count; i++) {
    const rn_library_body_t* kept = &library->bodies.items[i];
    if (kept->function == function) rn_map_remove(&library->bodies_by_key, kept->key);
  }
}

// Removes the entry and renumbers those after it in the map.
static rn_function_t* take_locked(rn_library_t* library, rn_str_t name) {
  uintptr_t number = (uintptr_t)rn_map_remove(&library->numbers, name);
  if (!number) return NULL;
  rn_function_t* function = library->entries.items[number - 1].function;
  hide_bodies_locked(library, function);
  library->entries.count--;
  for (size_t i = number - 1; i < library->entries.count; i++) {
    library->entries.items[i] = library->entries.items[i + 1];
    rn_str_t moved = library->entries.items[i].function->name;
    rn_status_free(rn_map_put(&library->numbers, moved, (void*)(uintptr_t)(i + 1)));
  }
  return function;
}

void rn_library_undo_add(rn_library_t* library, rn_str_t name) {
  rn_mutex_lock(&library->mutex);
  rn_function_t* function = take_locked(library, name);
  rn_mutex_unlock(&library->mutex);
  rn_function_release(function);
}

void* rn_library_get_body(rn_library_t* library, rn_str_t key) {
  rn_mutex_lock(&library->mutex);
  void* body = rn_map_get(&library->bodies_by_key, key);
  rn_mutex_unlock(&library->mutex);
  return body;
}

rn_status_t rn_library_keep_body(rn_library_t* library, const rn_library_body_t* body,
                                 void** out_kept) {
  rn_mutex_lock(&library->mutex);
  void* known = rn_map_get(&library->bodies_by_key, body->key);
  rn_library_body_t entry = *body;
  rn_status_t status = RN_OK;
  if (!known) {
    status = rn_vec_reserve(&library->bodies, library->allocator, library->bodies.count + 1);
    if (rn_ok(status)) status = rn_arena_str(&library->arena, body->key, &entry.key);
    if (rn_ok(status)) status = rn_map_put(&library->bodies_by_key, entry.key, body->body);
    if (rn_ok(status)) library->bodies.items[library->bodies.count++] = entry;
  }
  rn_mutex_unlock(&library->mutex);
  if (!rn_ok(status) || known) body->destroy(body->body);
  *out_kept = known ? known : body->body;
  return status;
}

rn_status_t rn_graph_add_function(rn_graph_t* graph, rn_function_t* function,
                                  rn_function_t* gradient) {
  rn_library_t* library = graph->library;
  bool is_new, is_new_gradient = false, has_new_gradient;
  RN_RETURN_IF_ERROR(rn_library_add(library, function, &is_new));
  rn_mutex_lock(&graph->mutex);
  if (graph->min_consumer < RN_FUNCTIONS_VERSION) graph->min_consumer = RN_FUNCTIONS_VERSION;
  rn_mutex_unlock(&graph->mutex);
  if (!gradient) return RN_OK;
  rn_status_t status = rn_library_add(library, gradient, &is_new_gradient);
  if (rn_ok(status)) {
    status = rn_library_set_gradient(library, function->name, gradient->name, &has_new_gradient);
  }
  if (rn_ok(status)) return RN_OK;
  if (is_new_gradient) rn_library_undo_add(library, gradient->name);
  if (is_new) rn_library_undo_add(library, function->name);
  return status;
}

rn_function_t* rn_graph_get_function(rn_graph_t* graph, rn_str_t name) {
  rn_library_t* library = graph->library;
  rn_mutex_lock(&library->mutex);
  rn_library_entry_t* entry = find_locked(library, name);
  rn_function_t* function = entry ? entry->function : NULL;
  if (function) rn_function_retain(function);
  rn_mutex_unlock(&library->mutex);
  return function;
}

rn_str_t rn_graph_function_gradient(rn_graph_t* graph, rn_str_t name) {
  rn_library_t* library = graph->library;
  rn_mutex_lock(&library->mutex);
  const rn_library_entry_t* entry = find_locked(library, name);
  rn_str_t gradient = entry ? entry->gradient : (rn_str_t){0};
  rn_mutex_unlock(&library->mutex);
  return gradient;
}

rn_status_t rn_graph_remove_function(rn_graph_t* graph, rn_str_t name) {
  rn_library_t* library = graph->library;
  rn_mutex_lock(&library->mutex);
  rn_status_t status =
      rn_vec_reserve(&library->removed, library->allocator, library->removed.count + 1);
  rn_function_t* function = rn_ok(status) ? take_locked(library, name) : NULL;
  if (function) library->removed.items[library->removed.count++] = function;
  rn_mutex_unlock(&library->mutex);
  if (!rn_ok(status) || function) return status;
  return rn_invalid_argument("Tried to remove non-existent function '%.*s'.", RN_STR_ARGS(name));
}

size_t rn_graph_function_count(rn_graph_t* graph) {
  rn_mutex_lock(&graph->library->mutex);
  size_t count = graph->library->entries.count;
  rn_mutex_unlock(&graph->library->mutex);
  return count;
}

rn_function_t* rn_graph_function_at(rn_graph_t* graph, size_t i) {
  rn_library_t* library = graph->library;
  rn_function_t* function = NULL;
  rn_mutex_lock(&library->mutex);
  if (i < library->entries.count) {
    function = library->entries.items[i].function;
    rn_function_retain(function);
  }
  rn_mutex_unlock(&library->mutex);
  return function;
}
