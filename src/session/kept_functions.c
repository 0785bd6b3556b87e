// Tables of functions that outlive their owner's interest in them: see functions.h.
#include "session/functions.h"

void rn_kept_functions_init(rn_kept_functions_t* kept, rn_allocator_t allocator) {
  *kept = (rn_kept_functions_t){.allocator = allocator};
  rn_mutex_init(&kept->mutex);
}

// A table that only this list references; NULL if there is none. New references come from existing
// ones, so none can appear.
static rn_functions_t* take_unused(rn_kept_functions_t* kept) {
  rn_functions_t* found = NULL;
  rn_mutex_lock(&kept->mutex);
  for (size_t i = 0; !found && i < kept->tables.count; ++i) {
    if (rn_functions_is_shared(kept->tables.items[i])) continue;
    found = kept->tables.items[i];
    kept->tables.items[i] = kept->tables.items[--kept->tables.count];
  }
  rn_mutex_unlock(&kept->mutex);
  return found;
}

void rn_kept_functions_add(rn_kept_functions_t* kept, rn_functions_t* functions) {
  rn_functions_t* unused;
  if (functions) {
    rn_mutex_lock(&kept->mutex);
    rn_status_t status = rn_vec_push(&kept->tables, kept->allocator, functions);
    rn_mutex_unlock(&kept->mutex);
    if (!rn_ok(status)) rn_functions_release(functions);
    rn_status_free(status);
  }
  while ((unused = take_unused(kept))) rn_functions_release(unused);
}

void rn_kept_functions_clear(rn_kept_functions_t* kept) {
  for (size_t i = 0; i < kept->tables.count; ++i) rn_functions_close(kept->tables.items[i]);
  rn_vec_free(&kept->tables, kept->allocator);
  rn_mutex_destroy(&kept->mutex);
}
