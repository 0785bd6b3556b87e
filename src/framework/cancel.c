// Cancellation: see cancel.h.
#include "framework/cancel.h"

void rn_cancel_init(rn_cancel_t* cancel) {
  *cancel = (rn_cancel_t){0};
  rn_mutex_init(&cancel->mutex);
  rn_cond_init(&cancel->idle);
}

void rn_cancel_destroy(rn_cancel_t* cancel) {
  rn_cond_destroy(&cancel->idle);
  rn_mutex_destroy(&cancel->mutex);
}

void rn_cancel_reset(rn_cancel_t* cancel) { cancel->is_cancelled = false; }

static void unlink_locked(rn_cancel_t* cancel, rn_cancel_entry_t* entry) {
  if (entry->previous)
    entry->previous->next = entry->next;
  else
    cancel->entries = entry->next;
  if (entry->next) entry->next->previous = entry->previous;
  entry->is_linked = false;
}

void rn_cancel(rn_cancel_t* cancel) {
  rn_mutex_lock(&cancel->mutex);
  if (cancel->is_cancelled) {
    rn_mutex_unlock(&cancel->mutex);
    return;
  }
  cancel->is_cancelled = true;
  while (cancel->entries) {
    rn_cancel_entry_t* entry = cancel->entries;
    unlink_locked(cancel, entry);
    cancel->running = entry;
    cancel->thread = pthread_self();
    rn_mutex_unlock(&cancel->mutex);
    entry->fn(entry);  // may free the entry
    rn_mutex_lock(&cancel->mutex);
    cancel->running = NULL;
    rn_cond_broadcast(&cancel->idle);
  }
  rn_mutex_unlock(&cancel->mutex);
}

bool rn_cancel_add(rn_cancel_t* cancel, rn_cancel_entry_t* entry) {
  rn_mutex_lock(&cancel->mutex);
  bool added = !cancel->is_cancelled;
  if (added) {
    entry->previous = NULL;
    entry->next = cancel->entries;
    if (entry->next) entry->next->previous = entry;
    cancel->entries = entry;
    entry->is_linked = true;
  }
  rn_mutex_unlock(&cancel->mutex);
  return added;
}

bool rn_cancel_remove(rn_cancel_t* cancel, rn_cancel_entry_t* entry) {
  rn_mutex_lock(&cancel->mutex);
  bool removed = entry->is_linked;
  if (removed) unlink_locked(cancel, entry);
  while (cancel->running == entry && !pthread_equal(cancel->thread, pthread_self()))
    rn_cond_wait(&cancel->idle, &cancel->mutex);
  rn_mutex_unlock(&cancel->mutex);
  return removed;
}
