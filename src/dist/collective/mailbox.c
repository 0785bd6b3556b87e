// Tensors for members of other tasks: see mailbox.h.
#include "dist/collective/mailbox.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sync.h"

// How long those who come late are told that an instance has failed.
#define FAILED_NS INT64_C(60000000000)
#define MAX_FAILURES 1024
// After so many more were shown, those that their readers have taken are removed.
#define SWEEP_AFTER 32

// A key: either tensors or takers wait under it.
typedef struct mailbox_slot_t mailbox_slot_t;

typedef struct mailbox_item_t {
  struct mailbox_item_t* next;
  rn_tensor_t value;
  bool is_none;
  rn_worker_t* reader;  // to which it is shown; NULL: none. Then the rest is set, too
  uint64_t number;      // as rn_showing_t knows it
  mailbox_slot_t* slot;
  struct mailbox_item_t *shown_next, *shown_previous;
} mailbox_item_t;

struct mailbox_slot_t {
  mailbox_item_t *first, *last;
  rn_mail_wait_t *waits, **waits_end;
  size_t key_size;
  char key[];
};

typedef struct mailbox_failure_t {
  struct mailbox_failure_t* next;  // newer first
  rn_status_t status;              // Owned
  int64_t until_ns;
  size_t prefix_size;
  char prefix[];
} mailbox_failure_t;

struct rn_mailbox_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_map_t slots;
  mailbox_item_t* shown;
  int shown_count, sweep_at;
  mailbox_failure_t* failures;
  rn_status_t closed;  // Owned
};

rn_status_t rn_mailbox_create(const rn_env_t* env, rn_allocator_t allocator, rn_mailbox_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->env = env;
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  rn_map_init(&(*out)->slots, allocator);
  return RN_OK;
}

// Shown values.

rn_shown_key_t rn_mailbox_key(int64_t step, rn_str_t key) {
  return (rn_shown_key_t){{rn_murmur_hash64(key, (uint64_t)step),
                           rn_murmur_hash64(key, (uint64_t)step ^ UINT64_C(0x9e3779b97f4a7c15))}};
}

static void show_locked(rn_mailbox_t* mailbox, mailbox_slot_t* slot, mailbox_item_t* item,
                        rn_worker_t* reader, rn_shown_key_t key) {
  const rn_showing_t* showing = reader ? reader->vtable->showing : NULL;
  if (!showing || item->is_none || !rn_dtype_is_plain(item->value.dtype) ||
      rn_tensor_bytes(&item->value) > RN_SHOWN_MAX)
    return;
  item->number = showing->show(reader, key, item->value.data, rn_tensor_bytes(&item->value));
  if (!item->number) return;
  item->reader = reader;
  item->slot = slot;
  item->shown_next = mailbox->shown;
  if (mailbox->shown) mailbox->shown->shown_previous = item;
  mailbox->shown = item;
  mailbox->shown_count++;
}

// Forgets that |item| is shown.
static void unlink_shown(rn_mailbox_t* mailbox, mailbox_item_t* item) {
  if (!item->reader) return;
  if (item->shown_previous)
    item->shown_previous->shown_next = item->shown_next;
  else
    mailbox->shown = item->shown_next;
  if (item->shown_next) item->shown_next->shown_previous = item->shown_previous;
  mailbox->shown_count--;
  item->reader = NULL;
}

static void hide_locked(rn_mailbox_t* mailbox, mailbox_item_t* item) {
  if (item->reader) item->reader->vtable->showing->hide(item->reader, item->number);
  unlink_shown(mailbox, item);
}

static void item_free(rn_mailbox_t* mailbox, mailbox_item_t* item) {
  rn_tensor_clear(&item->value);
  RN_FREE(mailbox->allocator, item);
}

static void slot_free(rn_mailbox_t* mailbox, mailbox_slot_t* slot) {
  while (slot->first) {
    mailbox_item_t* item = slot->first;
    slot->first = item->next;
    hide_locked(mailbox, item);
    item_free(mailbox, item);
  }
  rn_free(mailbox->allocator, slot, sizeof *slot + slot->key_size + 1);
}

static void failure_free(rn_mailbox_t* mailbox, mailbox_failure_t* failure) {
  rn_status_free(failure->status);
  rn_free(mailbox->allocator, failure, sizeof *failure + failure->prefix_size + 1);
}

void rn_mailbox_destroy(rn_mailbox_t* mailbox) {
  if (!mailbox) return;
  size_t at = 0;
  while (mailbox->shown) unlink_shown(mailbox, mailbox->shown);  // its reader may be gone
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&mailbox->slots, &at));)
    slot_free(mailbox, entry->value);
  rn_map_clear(&mailbox->slots);
  while (mailbox->failures) {
    mailbox_failure_t* failure = mailbox->failures;
    mailbox->failures = failure->next;
    failure_free(mailbox, failure);
  }
  rn_status_free(mailbox->closed);
  rn_mutex_destroy(&mailbox->mutex);
  RN_FREE(mailbox->allocator, mailbox);
}

static void put_key(rn_mailbox_t* mailbox, int64_t step, rn_str_t key, rn_strbuf_t* out) {
  char number[24];
  int size = snprintf(number, sizeof number, "%lld;", (long long)step);
  rn_strbuf_init(out, mailbox->allocator);
  rn_strbuf_append(out, rn_str_n(number, (size_t)size));
  rn_strbuf_append(out, key);
}

// The slot of |key|, made if it is new.
static rn_status_t get_slot(rn_mailbox_t* mailbox, const rn_strbuf_t* key, mailbox_slot_t** out) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(key));
  *out = rn_map_get(&mailbox->slots, rn_strbuf_view(key));
  if (*out) return RN_OK;
  mailbox_slot_t* slot = NULL;
  RN_RETURN_IF_ERROR(
      rn_alloc_zeroed(mailbox->allocator, sizeof *slot + key->size + 1, (void**)&slot));
  slot->key_size = key->size;
  slot->waits_end = &slot->waits;
  memcpy(slot->key, key->data, key->size);
  rn_status_t status = rn_map_put(&mailbox->slots, rn_str_n(slot->key, slot->key_size), slot);
  if (rn_ok(status))
    *out = slot;
  else
    slot_free(mailbox, slot);
  return status;
}

static void drop_if_empty(rn_mailbox_t* mailbox, mailbox_slot_t* slot) {
  if (slot->first || slot->waits) return;
  rn_map_remove(&mailbox->slots, rn_str_n(slot->key, slot->key_size));
  slot_free(mailbox, slot);
}

static bool is_taken(const mailbox_item_t* item) {
  return item->reader && item->reader->vtable->showing->is_taken(item->reader, item->number);
}

// Removes the shown values that their readers have taken.
static void sweep_locked(rn_mailbox_t* mailbox) {
  for (mailbox_item_t *item = mailbox->shown, *next; item; item = next) {
    mailbox_slot_t* slot = item->slot;
    next = item->shown_next;
    if (!is_taken(item)) continue;
    mailbox_item_t** at = &slot->first;
    mailbox_item_t* before = NULL;
    while (*at != item) before = *at, at = &(*at)->next;
    *at = item->next;
    if (slot->last == item) slot->last = before;
    unlink_shown(mailbox, item);
    item_free(mailbox, item);
    drop_if_empty(mailbox, slot);
  }
  mailbox->sweep_at = mailbox->shown_count + SWEEP_AFTER;
}

static rn_mail_wait_t* pop_wait(mailbox_slot_t* slot) {
  rn_mail_wait_t* wait = slot->waits;
  if (!wait) return NULL;
  slot->waits = wait->next;
  if (!slot->waits) slot->waits_end = &slot->waits;
  return wait;
}

// The instance of |key| runs again: its earlier failure does not count any more.
static void forgive(rn_mailbox_t* mailbox, rn_str_t key) {
  for (mailbox_failure_t** at = &mailbox->failures; *at;) {
    mailbox_failure_t* failure = *at;
    bool is_over = rn_str_starts_with(key, rn_str_n(failure->prefix, failure->prefix_size));
    if (is_over) {
      *at = failure->next;
      failure_free(mailbox, failure);
    } else {
      at = &failure->next;
    }
  }
}

rn_status_t rn_mailbox_post(rn_mailbox_t* mailbox, rn_worker_t* reader, int64_t step, rn_str_t key,
                            rn_tensor_t* value, bool is_none) {
  rn_strbuf_t name;
  mailbox_slot_t* slot = NULL;
  mailbox_item_t* item = NULL;
  rn_mail_wait_t* wait = NULL;
  put_key(mailbox, step, key, &name);
  rn_mutex_lock(&mailbox->mutex);
  forgive(mailbox, rn_strbuf_view(&name));
  if (mailbox->shown_count >= mailbox->sweep_at) sweep_locked(mailbox);
  rn_status_t status = get_slot(mailbox, &name, &slot);
  if (rn_ok(status) && !(wait = pop_wait(slot))) {
    status = RN_NEW(mailbox->allocator, &item);
    if (rn_ok(status)) {
      item->value = *value;
      item->is_none = is_none;
      *value = (rn_tensor_t){0};
      if (slot->last)
        slot->last->next = item;
      else
        slot->first = item;
      slot->last = item;
      show_locked(mailbox, slot, item, reader, rn_mailbox_key(step, key));
    }
  }
  if (slot) drop_if_empty(mailbox, slot);
  rn_mutex_unlock(&mailbox->mutex);
  rn_strbuf_clear(&name);
  if (wait) wait->fn(wait, RN_OK, value, is_none);
  rn_tensor_clear(value);
  return status;
}

// Why |key| will never come; also forgets old failures.
static rn_status_t failure_of(rn_mailbox_t* mailbox, rn_str_t key) {
  int64_t now_ns = mailbox->env->now_ns(mailbox->env->self);
  int count = 0;
  for (mailbox_failure_t** at = &mailbox->failures; *at;) {
    mailbox_failure_t* failure = *at;
    if (failure->until_ns < now_ns || ++count > MAX_FAILURES) {
      *at = failure->next;
      failure_free(mailbox, failure);
      continue;
    }
    if (rn_str_starts_with(key, rn_str_n(failure->prefix, failure->prefix_size)))
      return rn_status_copy(failure->status);
    at = &failure->next;
  }
  return rn_status_copy(mailbox->closed);
}

// Whether there is a value that was not taken where it was shown; those that were are removed.
static bool has_item(rn_mailbox_t* mailbox, mailbox_slot_t* slot) {
  while (slot->first && is_taken(slot->first)) {
    mailbox_item_t* item = slot->first;
    slot->first = item->next;
    unlink_shown(mailbox, item);
    item_free(mailbox, item);
  }
  if (!slot->first) slot->last = NULL;
  return slot->first;
}

static void take_item(rn_mailbox_t* mailbox, mailbox_slot_t* slot, rn_tensor_t* out,
                      bool* out_is_none) {
  mailbox_item_t* item = slot->first;
  slot->first = item->next;
  if (!slot->first) slot->last = NULL;
  hide_locked(mailbox, item);
  *out = item->value;
  *out_is_none = item->is_none;
  RN_FREE(mailbox->allocator, item);
}

void rn_mailbox_take(rn_mailbox_t* mailbox, int64_t step, rn_str_t key, rn_mail_wait_t* wait) {
  rn_strbuf_t name;
  mailbox_slot_t* slot = NULL;
  rn_tensor_t value = {0};
  bool is_none = false, is_there = false;
  put_key(mailbox, step, key, &name);
  rn_mutex_lock(&mailbox->mutex);
  rn_status_t status = get_slot(mailbox, &name, &slot);
  is_there = rn_ok(status) && has_item(mailbox, slot);
  if (is_there)
    take_item(mailbox, slot, &value, &is_none);
  else if (rn_ok(status))
    status = failure_of(mailbox, rn_strbuf_view(&name));
  if (rn_ok(status) && !is_there) {
    wait->next = NULL;
    *slot->waits_end = wait;
    slot->waits_end = &wait->next;
  } else if (slot) {
    drop_if_empty(mailbox, slot);
  }
  rn_mutex_unlock(&mailbox->mutex);
  rn_strbuf_clear(&name);
  if (is_there || !rn_ok(status)) wait->fn(wait, status, &value, is_none);
  if (is_there) rn_tensor_clear(&value);
}

bool rn_mailbox_take_back(rn_mailbox_t* mailbox, int64_t step, rn_str_t key, rn_mail_wait_t* wait) {
  rn_strbuf_t name;
  bool is_back = false;
  put_key(mailbox, step, key, &name);
  rn_mutex_lock(&mailbox->mutex);
  mailbox_slot_t* slot = rn_map_get(&mailbox->slots, rn_strbuf_view(&name));
  for (rn_mail_wait_t** at = slot ? &slot->waits : NULL; at && *at; at = &(*at)->next) {
    if (*at != wait) continue;
    *at = wait->next;
    if (!*at) slot->waits_end = at;
    is_back = true;
    break;
  }
  if (slot) drop_if_empty(mailbox, slot);
  rn_mutex_unlock(&mailbox->mutex);
  rn_strbuf_clear(&name);
  return is_back;
}

// Removes the slots whose keys begin with |prefix|; returns those who waited there.
static rn_mail_wait_t* remove_slots(rn_mailbox_t* mailbox, rn_str_t prefix) {
  rn_mail_wait_t* waits = NULL;
  size_t at = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&mailbox->slots, &at))) {
    mailbox_slot_t* slot = entry->value;
    if (!rn_str_starts_with(entry->key, prefix)) continue;
    for (rn_mail_wait_t* wait; (wait = pop_wait(slot));) {
      wait->next = waits;
      waits = wait;
    }
    rn_map_remove(&mailbox->slots, entry->key);
    slot_free(mailbox, slot);
    at = 0;  // the entries may have moved
  }
  return waits;
}

static void fail_waits(rn_mail_wait_t* waits, rn_status_t status) {
  while (waits) {
    rn_mail_wait_t* next = waits->next;
    rn_tensor_t none = {0};
    waits->fn(waits, rn_status_copy(status), &none, false);
    waits = next;
  }
}

void rn_mailbox_fail(rn_mailbox_t* mailbox, int64_t step, rn_str_t prefix, rn_status_t status) {
  rn_strbuf_t name;
  put_key(mailbox, step, prefix, &name);
  mailbox_failure_t* failure = NULL;
  rn_status_free(
      rn_alloc_zeroed(mailbox->allocator, sizeof *failure + name.size + 1, (void**)&failure));
  rn_mutex_lock(&mailbox->mutex);
  rn_mail_wait_t* waits = remove_slots(mailbox, rn_strbuf_view(&name));
  if (failure) {
    failure->status = rn_status_copy(status);
    failure->until_ns = mailbox->env->now_ns(mailbox->env->self) + FAILED_NS;
    failure->prefix_size = name.size;
    if (name.size) memcpy(failure->prefix, name.data, name.size);
    failure->next = mailbox->failures;
    mailbox->failures = failure;
  }
  rn_mutex_unlock(&mailbox->mutex);
  rn_strbuf_clear(&name);
  fail_waits(waits, status);
  rn_status_free(status);
}

void rn_mailbox_close(rn_mailbox_t* mailbox, rn_status_t status) {
  rn_mutex_lock(&mailbox->mutex);
  rn_status_free(mailbox->closed);
  mailbox->closed = rn_status_copy(status);
  rn_mail_wait_t* waits = remove_slots(mailbox, RN_STR(""));
  rn_mutex_unlock(&mailbox->mutex);
  fail_waits(waits, status);
  rn_status_free(status);
}

bool rn_mailbox_has_mail(rn_mailbox_t* mailbox) {
  bool has_mail = false;
  size_t at = 0;
  rn_mutex_lock(&mailbox->mutex);
  sweep_locked(mailbox);
  for (const rn_map_entry_t* entry; !has_mail && (entry = rn_map_next(&mailbox->slots, &at));)
    has_mail = ((const mailbox_slot_t*)entry->value)->first != NULL;
  rn_mutex_unlock(&mailbox->mutex);
  return has_mail;
}
