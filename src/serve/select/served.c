// See served.h.
#include "serve/select/served.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "base/sync.h"
#include "tensor/tstring.h"

typedef struct rn_served_entry_t {
  int64_t id;
  uint64_t hash;
  rn_selection_t selection;
  uint64_t arrived;
  bool is_fed;
  uint16_t app_size, user_size;
  uint32_t bytes;  // of everything that the entry owns
  rn_answer_t
      answers[];  // one per arm that ran, by ascending arm; then the app's name and the user
} rn_served_entry_t;

struct rn_served_t {
  rn_allocator_t allocator;
  uint64_t secret[2];
  int64_t first_id;
  _Atomic int64_t next_id;
  size_t slot_count, max_bytes;  // |slot_count| is a power of two
  rn_mutex_t mutex;              // guards what follows
  rn_served_entry_t** slots;     // Owned, by id
  int64_t* recent;               // Owned, by hash: the last id
  int64_t oldest;                // no entry has a lower id
  size_t count, bytes;
};

rn_status_t rn_served_create(const rn_env_t* env, rn_allocator_t allocator, size_t max_count,
                             size_t max_bytes, rn_served_t** out) {
  *out = NULL;
  rn_served_t* served = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &served));
  served->allocator = allocator;
  served->max_bytes = max_bytes;
  for (served->slot_count = 1; served->slot_count < max_count;) served->slot_count *= 2;
  for (int i = 0; i < 2; ++i) served->secret[i] = env->random(env->self);
  // 2^20 places to start at, and room for 2^32 ids after each.
  served->oldest = (int64_t)(env->random(env->self) >> 44) << 32 | 1;
  served->first_id = served->oldest;
  atomic_init(&served->next_id, served->oldest);
  rn_mutex_init(&served->mutex);
  rn_status_t status = RN_NEW_ARRAY(allocator, served->slot_count, &served->slots);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, served->slot_count, &served->recent);
  if (!rn_ok(status)) {
    rn_served_destroy(served);
    return status;
  }
  *out = served;
  return RN_OK;
}

static size_t entry_size(const rn_served_entry_t* entry) {
  return sizeof *entry +
         (size_t)__builtin_popcountll(entry->selection.run) * sizeof entry->answers[0] +
         entry->app_size + entry->user_size;
}

static char* entry_names(rn_served_entry_t* entry) {
  return (char*)(entry->answers + __builtin_popcountll(entry->selection.run));
}

// The place of |arm|'s answer; |arm| is one that ran.
static rn_answer_t* answer_of(rn_served_entry_t* entry, int arm) {
  uint64_t below = entry->selection.run & ((UINT64_C(1) << arm) - 1);
  return &entry->answers[__builtin_popcountll(below)];
}

static rn_served_entry_t** slot_of(rn_served_t* served, int64_t id) {
  return &served->slots[(uint64_t)id & (served->slot_count - 1)];
}

static void free_entry(rn_served_t* served, rn_served_entry_t* entry) {
  for (int i = 0; i < __builtin_popcountll(entry->selection.run); ++i)
    rn_answer_clear(&entry->answers[i], served->allocator);
  rn_free(served->allocator, entry, entry_size(entry));
}

static void drop_locked(rn_served_t* served, rn_served_entry_t** slot) {
  if (!*slot) return;
  served->bytes -= (*slot)->bytes;
  --served->count;
  free_entry(served, *slot);
  *slot = NULL;
}

void rn_served_destroy(rn_served_t* served) {
  if (!served) return;
  for (size_t i = 0; served->slots && i < served->slot_count; ++i)
    drop_locked(served, &served->slots[i]);
  RN_FREE_ARRAY(served->allocator, served->slots, served->slot_count);
  RN_FREE_ARRAY(served->allocator, served->recent, served->slot_count);
  rn_mutex_destroy(&served->mutex);
  RN_FREE(served->allocator, served);
}

int64_t rn_served_next_id(rn_served_t* served) { return atomic_fetch_add(&served->next_id, 1); }

bool rn_served_is_own(rn_served_t* served, int64_t id) {
  return id >= served->first_id && id < atomic_load(&served->next_id);
}

int64_t rn_served_leaving(const rn_served_t* served, int64_t id) {
  int64_t leaving = id - (int64_t)served->slot_count;
  return leaving >= served->first_id ? leaving : 0;
}

uint64_t rn_served_hash(const rn_served_t* served, rn_str_t app, rn_str_t user,
                        const rn_tensor_t* input) {
  rn_str_t bytes = input->dtype == RN_STRING && input->count == 1
                       ? rn_tstring_view(RN_DATA(input, rn_tstring_t))
                       : rn_str_n(input->data, rn_tensor_bytes(input));
  uint64_t parts[3] = {rn_sip_hash64(app, served->secret), rn_sip_hash64(user, served->secret),
                       rn_sip_hash64(bytes, served->secret)};
  return rn_sip_hash64(rn_str_n((const char*)parts, sizeof parts), served->secret);
}

static rn_status_t make_entry(rn_served_t* served, const rn_served_query_t* query,
                              rn_served_entry_t** out) {
  rn_served_entry_t head = {.id = query->id,
                            .hash = query->hash,
                            .selection = query->selection,
                            .arrived = query->arrived & query->selection.run,
                            .app_size = (uint16_t)query->app.size,
                            .user_size = (uint16_t)query->user.size};
  size_t size = entry_size(&head);
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(served->allocator, size, (void**)out));
  rn_served_entry_t* entry = *out;
  memcpy(entry, &head, sizeof head);
  char* names = entry_names(entry);
  memcpy(names, query->app.data, query->app.size);
  if (query->user.size) memcpy(names + query->app.size, query->user.data, query->user.size);
  for (uint64_t left = entry->arrived; left; left &= left - 1) {
    int arm = __builtin_ctzll(left);
    rn_status_t status =
        rn_answer_copy(&query->answers[arm], served->allocator, answer_of(entry, arm));
    if (!rn_ok(status)) {
      free_entry(served, entry);
      return status;
    }
    size += query->answers[arm].size;
  }
  entry->bytes = (uint32_t)size;
  return RN_OK;
}

void rn_served_put(rn_served_t* served, const rn_served_query_t* query) {
  if (query->user.size >= RN_SERVED_USER || query->app.size > UINT16_MAX) return;
  rn_served_entry_t* entry = NULL;
  rn_status_t status = make_entry(served, query, &entry);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return;
  }
  rn_mutex_lock(&served->mutex);
  rn_served_entry_t** slot = slot_of(served, query->id);
  if (*slot && (*slot)->id > query->id) {  // it was answered so late that it has left the window
    rn_mutex_unlock(&served->mutex);
    free_entry(served, entry);
    return;
  }
  drop_locked(served, slot);
  *slot = entry;
  ++served->count;
  served->bytes += entry->bytes;
  served->recent[query->hash & (served->slot_count - 1)] = query->id;
  if (served->oldest + (int64_t)served->slot_count <= query->id)
    served->oldest = query->id - (int64_t)served->slot_count + 1;
  for (; served->bytes > served->max_bytes && served->oldest < query->id; ++served->oldest) {
    rn_served_entry_t** old = slot_of(served, served->oldest);
    if (*old && (*old)->id == served->oldest) drop_locked(served, old);
  }
  rn_mutex_unlock(&served->mutex);
}

static rn_served_entry_t* find_locked(rn_served_t* served, int64_t id) {
  rn_served_entry_t* entry = *slot_of(served, id);
  return entry && entry->id == id ? entry : NULL;
}

void rn_served_add(rn_served_t* served, int64_t id, int arm, const rn_answer_t* answer) {
  rn_mutex_lock(&served->mutex);
  rn_served_entry_t* entry = find_locked(served, id);
  uint64_t bit = UINT64_C(1) << arm;
  if (entry && !entry->is_fed && (entry->selection.run & bit) && !(entry->arrived & bit)) {
    rn_status_t status = rn_answer_copy(answer, served->allocator, answer_of(entry, arm));
    if (rn_ok(status)) {
      entry->arrived |= bit;
      entry->bytes += (uint32_t)answer->size;
      served->bytes += answer->size;
    }
    rn_status_free(status);
  }
  rn_mutex_unlock(&served->mutex);
}

rn_served_outcome_t rn_served_take(rn_served_t* served, rn_str_t app, int64_t id, char* user,
                                   rn_served_query_t* out) {
  rn_served_outcome_t outcome = RN_SERVED_UNKNOWN;
  *out = (rn_served_query_t){.id = id};
  rn_mutex_lock(&served->mutex);
  rn_served_entry_t* entry = find_locked(served, id);
  if (entry && rn_str_eq(rn_str_n(entry_names(entry), entry->app_size), app)) {
    outcome = entry->is_fed ? RN_SERVED_DUPLICATE : RN_SERVED_TAKEN;
    if (!entry->is_fed) {
      entry->is_fed = true;
      out->selection = entry->selection;
      out->arrived = entry->arrived;
      memcpy(user, entry_names(entry) + entry->app_size, entry->user_size);
      out->user = rn_str_n(user, entry->user_size);
      // The entry stays, so that a second feedback is known as one; its answers move out.
      for (uint64_t left = entry->arrived; left; left &= left - 1) {
        rn_answer_t* answer = answer_of(entry, __builtin_ctzll(left));
        served->bytes -= answer->size;
        entry->bytes -= (uint32_t)answer->size;
        out->answers[__builtin_ctzll(left)] = *answer;
        *answer = (rn_answer_t){0};
      }
      entry->arrived = 0;
    }
  }
  rn_mutex_unlock(&served->mutex);
  return outcome;
}

int64_t rn_served_find(rn_served_t* served, uint64_t hash) {
  rn_mutex_lock(&served->mutex);
  int64_t id = served->recent[hash & (served->slot_count - 1)];
  rn_served_entry_t* entry = id ? find_locked(served, id) : NULL;
  if (!entry || entry->hash != hash) id = 0;
  rn_mutex_unlock(&served->mutex);
  return id;
}

rn_served_stats_t rn_served_stats(rn_served_t* served) {
  rn_mutex_lock(&served->mutex);
  rn_served_stats_t stats = {served->count, served->bytes};
  rn_mutex_unlock(&served->mutex);
  return stats;
}
