// The rendezvous within one process: matches values and receivers by key.
#include "framework/rendezvous.h"

#include "base/map.h"
#include "base/sync.h"

// A value that has not been received yet.
typedef struct rendezvous_item_t {
  struct rendezvous_item_t* next;
  rn_tensor_t value;
  rn_device_t* device;
  bool is_dead;
} rendezvous_item_t;

// The queue of one key: either values or receivers wait. An empty queue is removed.
typedef struct meeting_t {
  rendezvous_item_t* first_item;
  rendezvous_item_t* last_item;
  rn_recv_t* first_recv;
  rn_recv_t* last_recv;
  struct meeting_t* next_swept;
  size_t key_size;
  char key[];
} meeting_t;

struct rn_rendezvous_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  rn_map_t meetings;
  rn_status_t failure;  // Owned; once set, every call fails with it
  rn_remote_t remote;   // |has| is NULL if all values come from this process
};

#define DERIVED "type.googleapis.com/tensorflow.DerivedStatus"

rn_status_t rn_status_derive(rn_status_t status) {
  rn_status_set_payload(status, DERIVED, "");
  return status;
}

static void look(const char* key, const char* value, void* arg) {
  (void)value;
  if (strcmp(key, DERIVED) == 0) *(bool*)arg = true;
}

bool rn_status_is_derived(rn_status_t status) {
  bool is_derived = false;
  rn_status_each_payload(status, look, &is_derived);
  return is_derived;
}

rn_status_t rn_rendezvous_create(rn_allocator_t allocator, rn_rendezvous_t** out) {
  *out = NULL;
  rn_rendezvous_t* rendezvous = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &rendezvous));
  rendezvous->refs = 1;
  rendezvous->allocator = allocator;
  rn_mutex_init(&rendezvous->mutex);
  rn_map_init(&rendezvous->meetings, allocator);
  *out = rendezvous;
  return RN_OK;
}

void rn_rendezvous_set_remote(rn_rendezvous_t* rendezvous, rn_remote_t remote) {
  rendezvous->remote = remote;
}

void rn_rendezvous_retain(rn_rendezvous_t* rendezvous) { rendezvous->refs++; }

static void free_item(rn_rendezvous_t* rendezvous, rendezvous_item_t* item) {
  rn_tensor_clear(&item->value);
  RN_FREE(rendezvous->allocator, item);
}

static void free_meeting(rn_rendezvous_t* rendezvous, meeting_t* meeting) {
  while (meeting->first_item) {
    rendezvous_item_t* item = meeting->first_item;
    meeting->first_item = item->next;
    free_item(rendezvous, item);
  }
  rn_free(rendezvous->allocator, meeting, sizeof *meeting + meeting->key_size);
}

void rn_rendezvous_release(rn_rendezvous_t* rendezvous) {
  if (!rendezvous || --rendezvous->refs > 0) return;
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&rendezvous->meetings, &position)))
    free_meeting(rendezvous, entry->value);
  rn_map_clear(&rendezvous->meetings);
  rn_status_free(rendezvous->failure);
  if (rendezvous->remote.destroy) rendezvous->remote.destroy(rendezvous->remote.self);
  rn_mutex_destroy(&rendezvous->mutex);
  RN_FREE(rendezvous->allocator, rendezvous);
}

static rn_status_t meet_locked(rn_rendezvous_t* rendezvous, rn_str_t key, meeting_t** out) {
  *out = rn_map_get(&rendezvous->meetings, key);
  if (*out) return RN_OK;
  meeting_t* meeting = NULL;
  RN_RETURN_IF_ERROR(
      rn_alloc_zeroed(rendezvous->allocator, sizeof *meeting + key.size, (void**)&meeting));
  meeting->key_size = key.size;
  memcpy(meeting->key, key.data, key.size);
  rn_status_t status = rn_map_put(&rendezvous->meetings, rn_str_n(meeting->key, key.size), meeting);
  if (!rn_ok(status)) {
    free_meeting(rendezvous, meeting);
    return status;
  }
  *out = meeting;
  return RN_OK;
}

static void drop_if_empty_locked(rn_rendezvous_t* rendezvous, meeting_t* meeting) {
  if (meeting->first_item || meeting->first_recv) return;
  rn_map_remove(&rendezvous->meetings, rn_str_n(meeting->key, meeting->key_size));
  free_meeting(rendezvous, meeting);
}

static rn_status_t put_item_locked(rn_rendezvous_t* rendezvous, meeting_t* meeting,
                                   rn_tensor_t* value, bool is_dead, rn_device_t* device) {
  rendezvous_item_t* item = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rendezvous->allocator, &item));
  item->value = *value;
  *value = (rn_tensor_t){0};
  item->is_dead = is_dead;
  item->device = device;
  if (meeting->last_item && meeting->first_item)
    meeting->last_item->next = item;
  else
    meeting->first_item = item;
  meeting->last_item = item;
  return RN_OK;
}

rn_status_t rn_rendezvous_send(rn_rendezvous_t* rendezvous, rn_str_t key, rn_tensor_t* value,
                               bool is_dead, rn_device_t* device) {
  rn_recv_t* recv = NULL;
  meeting_t* meeting = NULL;
  rn_mutex_lock(&rendezvous->mutex);
  rn_status_t status = rn_status_copy(rendezvous->failure);
  if (rn_ok(status)) status = meet_locked(rendezvous, key, &meeting);
  if (rn_ok(status) && meeting->first_recv) {
    recv = meeting->first_recv;
    meeting->first_recv = recv->next;
    drop_if_empty_locked(rendezvous, meeting);
  } else if (rn_ok(status)) {
    status = put_item_locked(rendezvous, meeting, value, is_dead, device);
    if (!rn_ok(status)) drop_if_empty_locked(rendezvous, meeting);
  }
  rn_mutex_unlock(&rendezvous->mutex);
  if (recv) {
    recv->fn(recv, RN_OK, value, is_dead, device);
    *value = (rn_tensor_t){0};
  }
  if (!rn_ok(status)) rn_tensor_clear(value);
  return status;
}

static void wait_locked(meeting_t* meeting, rn_recv_t* recv) {
  recv->next = NULL;
  if (meeting->first_recv)
    meeting->last_recv->next = recv;
  else
    meeting->first_recv = recv;
  meeting->last_recv = recv;
}

static bool has_meeting(rn_rendezvous_t* rendezvous, rn_str_t key) {
  rn_mutex_lock(&rendezvous->mutex);
  bool has = rn_map_get(&rendezvous->meetings, key);
  rn_mutex_unlock(&rendezvous->mutex);
  return has;
}

void rn_rendezvous_recv(rn_rendezvous_t* rendezvous, rn_str_t key, rn_recv_t* recv) {
  const rn_remote_t* remote = &rendezvous->remote;
  recv->key = key;
  if (remote->has && remote->has(remote->self, key) && !has_meeting(rendezvous, key))
    remote->recv(remote->self, key, recv);
  else
    rn_rendezvous_recv_here(rendezvous, key, recv);
}

void rn_rendezvous_recv_here(rn_rendezvous_t* rendezvous, rn_str_t key, rn_recv_t* recv) {
  rendezvous_item_t* item = NULL;
  meeting_t* meeting = NULL;
  recv->key = key;
  rn_mutex_lock(&rendezvous->mutex);
  rn_status_t status = rn_status_copy(rendezvous->failure);
  if (rn_ok(status)) status = meet_locked(rendezvous, key, &meeting);
  if (rn_ok(status) && meeting->first_item) {
    item = meeting->first_item;
    meeting->first_item = item->next;
    drop_if_empty_locked(rendezvous, meeting);
  } else if (rn_ok(status)) {
    wait_locked(meeting, recv);
  }
  rn_mutex_unlock(&rendezvous->mutex);
  if (item) {
    rn_tensor_t value = item->value;
    bool is_dead = item->is_dead;
    rn_device_t* device = item->device;
    item->value = (rn_tensor_t){0};
    free_item(rendezvous, item);
    recv->fn(recv, RN_OK, &value, is_dead, device);
  } else if (!rn_ok(status)) {
    rn_tensor_t none = {0};
    recv->fn(recv, status, &none, false, NULL);
  }
}

bool rn_rendezvous_take_back(rn_rendezvous_t* rendezvous, rn_recv_t* recv) {
  bool is_found = false;
  rn_mutex_lock(&rendezvous->mutex);
  meeting_t* meeting = recv->key.size ? rn_map_get(&rendezvous->meetings, recv->key) : NULL;
  rn_recv_t *at = meeting ? meeting->first_recv : NULL, *before = NULL;
  while (at && at != recv) before = at, at = at->next;
  if (at) {
    is_found = true;
    if (before)
      before->next = recv->next;
    else
      meeting->first_recv = recv->next;
    if (meeting->last_recv == recv) meeting->last_recv = before;
    drop_if_empty_locked(rendezvous, meeting);
  }
  rn_mutex_unlock(&rendezvous->mutex);
  return is_found;
}

void rn_rendezvous_sweep(rn_rendezvous_t* rendezvous,
                         bool (*takes)(void* self, rn_str_t key, rn_tensor_t* value), void* self) {
  meeting_t* swept = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&rendezvous->mutex);
  while (!rendezvous->failure && (entry = rn_map_next(&rendezvous->meetings, &position))) {
    meeting_t* meeting = entry->value;
    rendezvous_item_t* item = meeting->first_item;
    if (!item || item->next || item->is_dead || item->device) continue;
    if (!takes(self, rn_str_n(meeting->key, meeting->key_size), &item->value)) continue;
    meeting->first_item = NULL;
    free_item(rendezvous, item);
    meeting->next_swept = swept;
    swept = meeting;
  }
  while (swept) {
    meeting_t* meeting = swept;
    swept = meeting->next_swept;
    drop_if_empty_locked(rendezvous, meeting);
  }
  rn_mutex_unlock(&rendezvous->mutex);
}

bool rn_rendezvous_is_empty(rn_rendezvous_t* rendezvous) {
  rn_mutex_lock(&rendezvous->mutex);
  bool is_empty = rendezvous->meetings.count == 0;
  rn_mutex_unlock(&rendezvous->mutex);
  return is_empty;
}

void rn_rendezvous_fail(rn_rendezvous_t* rendezvous, rn_status_t status) {
  rn_recv_t* waiting = NULL;
  rn_mutex_lock(&rendezvous->mutex);
  if (rendezvous->failure) {
    rn_status_free(status);
  } else {
    rendezvous->failure = rn_status_derive(status);
    size_t position = 0;
    const rn_map_entry_t* entry;
    while ((entry = rn_map_next(&rendezvous->meetings, &position))) {
      meeting_t* meeting = entry->value;
      while (meeting->first_recv) {
        rn_recv_t* recv = meeting->first_recv;
        meeting->first_recv = recv->next;
        recv->next = waiting;
        waiting = recv;
      }
    }
  }
  rn_mutex_unlock(&rendezvous->mutex);
  if (rendezvous->remote.give_up) rendezvous->remote.give_up(rendezvous->remote.self);
  while (waiting) {
    rn_recv_t* recv = waiting;
    waiting = recv->next;
    rn_tensor_t none = {0};
    recv->fn(recv, rn_status_copy(rendezvous->failure), &none, false, NULL);
  }
}
