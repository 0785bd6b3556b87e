// Where the states of applications are kept: in memory, and behind it in a folder (store_log.h) or
// in a Redis server that several front ends share (store_redis.h).
//
// Reading and changing touch the image in memory alone and never block. A change is applied to it
// at once and saved soon after; if it cannot be saved, the store says so in the log and in its
// statistics, and tries again, while the image goes on. Any thread may call it.
#ifndef RUNNEL_SERVE_SELECT_STORE_H_
#define RUNNEL_SERVE_SELECT_STORE_H_

#include "base/sync.h"
#include "serve/metrics.h"
#include "serve/select/state_map.h"

typedef struct rn_state_store_t rn_state_store_t;

// Applies |change| to |value| ("" if there is none yet): writes the new value to |out|, of
// RN_STATE_MAX_CHANGED bytes, and returns its size; 0: nothing changes. It must depend on nothing
// but its arguments and what |self| holds, because a shared store applies a change again if
// another front end wrote first. It must not call the store.
typedef size_t (*rn_state_apply_fn_t)(void* self, rn_str_t key, rn_str_t value, rn_str_t change,
                                      void* out);

// Says that another front end has put |value| under |key|, or removed it (""). It must not call
// the store.
typedef void (*rn_state_noticed_fn_t)(void* self, rn_str_t key, rn_str_t value);

typedef struct rn_state_store_stats_t {
  size_t entries, bytes;  // in memory
  int64_t unsaved;        // changes that are not saved yet, or values that differ
  int64_t saves;          // rounds of writing that succeeded
  int64_t failures;       // rounds that failed
  int64_t dropped;        // changes that were not saved, for want of room while saving failed
} rn_state_store_stats_t;

typedef struct rn_state_store_vtable_t {
  const char* kind;  // "memory", "log", "redis"
  // After a change, a put or a get of the image; NULL: what the image marks as dirty says enough.
  void (*changed)(rn_state_store_t* store, rn_str_t key, rn_str_t change);
  void (*put)(rn_state_store_t* store, rn_str_t key, rn_str_t value);
  void (*read)(rn_state_store_t* store, rn_str_t key, bool is_found);
  rn_status_t (*flush)(rn_state_store_t* store);
  void (*add_stats)(rn_state_store_t* store, rn_state_store_stats_t* inout);
  void (*destroy)(rn_state_store_t* store);
} rn_state_store_vtable_t;

// Implementations put this first in a struct of their own.
struct rn_state_store_t {
  const rn_state_store_vtable_t* vtable;
  rn_state_map_t* map;  // Owned
  rn_allocator_t allocator;
  bool marks_dirty;  // the implementation calls rn_state_map_take
  rn_mutex_t mutex;  // guards the rest, also while a function runs
  rn_state_apply_fn_t apply;
  rn_state_noticed_fn_t noticed;
  void* self;
};

// A store that saves nothing.
RN_MUST_USE rn_status_t rn_state_store_create_memory(const rn_env_t* env, rn_allocator_t allocator,
                                                     size_t max_bytes, rn_state_store_t** out);
// Saves what it can, and closes. NULL is fine.
void rn_state_store_destroy(rn_state_store_t* store);

// Sets the functions that apply changes, before the first change. With NULL, changes no longer have
// an effect, and no function runs after this returns. |noticed| may be NULL; shared stores call it,
// for keys that begin with '/' only.
void rn_state_store_attach(rn_state_store_t* store, rn_state_apply_fn_t apply,
                           rn_state_noticed_fn_t noticed, void* self);

// See rn_state_map_get.
size_t rn_state_store_get(rn_state_store_t* store, rn_str_t key, void* out, size_t room);
// Applies |change| to the value under |key|. See rn_state_map_put for its failures.
RN_MUST_USE rn_status_t rn_state_store_change(rn_state_store_t* store, rn_str_t key,
                                              rn_str_t change);
// Replaces the value; "" removes it.
RN_MUST_USE rn_status_t rn_state_store_put(rn_state_store_t* store, rn_str_t key, rn_str_t value);
// Calls |fn| for every key that begins with |prefix|. |fn| must not call the store.
void rn_state_store_each(rn_state_store_t* store, rn_str_t prefix, rn_state_each_fn_t fn,
                         void* arg);
// Waits until everything so far is saved; the error that prevents it.
RN_MUST_USE rn_status_t rn_state_store_flush(rn_state_store_t* store);
rn_state_store_stats_t rn_state_store_stats(rn_state_store_t* store);

// For implementations: what every store has, in a zeroed struct with |vtable| and |allocator|.
RN_MUST_USE rn_status_t rn_state_store_init(rn_state_store_t* store, const rn_env_t* env,
                                            size_t max_bytes);
void rn_state_store_deinit(rn_state_store_t* store);
// For implementations: applies |change| to |value| as rn_state_store_change does.
size_t rn_state_store_apply(rn_state_store_t* store, rn_str_t key, rn_str_t value, rn_str_t change,
                            void* out);

// For implementations: reports what another front end did.
void rn_state_store_notice(rn_state_store_t* store, rn_str_t key, rn_str_t value);

#endif  // RUNNEL_SERVE_SELECT_STORE_H_
