// See cache.h.
//
// The cache is cut into shards by hash, each with a lock, a table of chains, and a ring for CLOCK.
// An entry whose answer is still being computed is in the table, so that equal requests find it,
// but not in the ring: it cannot be evicted.
#include "serve/model/cache.h"

#include "base/container.h"
#include "base/sync.h"
#include "serve/model/cache_key.h"
#include "serve/model/version.h"
#include "tensor/tstring.h"

#define MAX_SHARDS 64
#define SHARD_BYTES (1 << 20)  // of the budget, at least, unless there is only one
#define FIRST_BUCKETS 64
#define MAX_EQUAL_HASHES 8  // entries; more are a sign of inputs that were made to collide
#define BLOCK_BYTES 32      // what an allocation takes beyond its size, estimated

typedef struct cache_waiter_t cache_waiter_t;
typedef struct rn_predict_cache_flight_t cache_entry_t;

struct cache_waiter_t {
  rn_predict_t* predict;
  cache_entry_t* entry;
  cache_waiter_t *next, *previous;  // of the shard
};

// An entry, and the flight of the request that computes it.
struct rn_predict_cache_flight_t {
  cache_entry_t* chain;            // of the bucket
  cache_entry_t *next, *previous;  // of the ring; NULL: in flight
  uint64_t hash;
  const rn_version_t* version;
  bool was_used;  // since the hand came by
  size_t bytes;   // all in all
  size_t key_size;
  int output_count;
  rn_tensor_t* outputs;  // Owned; NULL: in flight
  char key[];
};

typedef struct cache_shard_t {
  rn_predict_cache_t* cache;
  rn_mutex_t mutex;
  cache_entry_t** buckets;  // Owned
  size_t bucket_count;      // a power of two
  cache_entry_t* hand;
  cache_waiter_t* waiters;
  rn_timer_t timer;  // for the first deadline of these
  int64_t timer_ns;  // INT64_MAX: not set
  rn_predict_cache_stats_t stats;
  char apart[RN_ALIGN];  // of the next shard's lock
} cache_shard_t;

struct rn_predict_cache_t {
  rn_predict_cache_options_t options;
  uint64_t seed, mask;  // of hashes
  size_t shard_bytes;
  unsigned shard_count;  // a power of two
  cache_shard_t shards[];
};

static size_t cache_size(unsigned shards) {
  return sizeof(rn_predict_cache_t) + shards * sizeof(cache_shard_t);
}

static void on_timer(rn_timer_t* timer);

static void entry_free(rn_predict_cache_t* cache, cache_entry_t* entry) {
  rn_allocator_t allocator = cache->options.allocator;
  for (int i = 0; entry->outputs && i < entry->output_count; ++i)
    rn_tensor_clear(&entry->outputs[i]);
  if (entry->outputs) RN_FREE_ARRAY(allocator, entry->outputs, (size_t)entry->output_count);
  rn_free(allocator, entry, sizeof *entry + entry->key_size);
}

// Frees entries that were taken out, linked by |chain|. Without locks, as it may take long.
static void free_all(rn_predict_cache_t* cache, cache_entry_t* entries) {
  while (entries) {
    cache_entry_t* entry = entries;
    entries = entry->chain;
    entry_free(cache, entry);
  }
}

rn_status_t rn_predict_cache_create(const rn_predict_cache_options_t* options,
                                    rn_predict_cache_t** out) {
  *out = NULL;
  unsigned shards = 1;
  while (shards < MAX_SHARDS && options->max_bytes / (2 * shards) >= SHARD_BYTES) shards *= 2;
  rn_predict_cache_t* cache = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(options->allocator, cache_size(shards), (void**)&cache));
  cache->options = *options;
  cache->seed = options->env->random(options->env->self);
  cache->mask = UINT64_MAX;
  cache->shard_count = shards;
  cache->shard_bytes = options->max_bytes / shards;
  rn_status_t status = RN_OK;
  for (unsigned i = 0; i < shards; ++i) {
    cache_shard_t* shard = &cache->shards[i];
    shard->cache = cache;
    rn_mutex_init(&shard->mutex);
    shard->timer = (rn_timer_t){.fn = on_timer};
    shard->timer_ns = INT64_MAX;
    if (rn_ok(status)) status = RN_NEW_ARRAY(options->allocator, FIRST_BUCKETS, &shard->buckets);
    shard->bucket_count = shard->buckets ? FIRST_BUCKETS : 0;
  }
  if (!rn_ok(status)) {
    rn_predict_cache_destroy(cache);
    return status;
  }
  *out = cache;
  return RN_OK;
}

void rn_predict_cache_destroy(rn_predict_cache_t* cache) {
  if (!cache) return;
  const rn_timers_t* timers = &cache->options.timers;
  rn_predict_cache_drop(cache, NULL);
  for (unsigned i = 0; i < cache->shard_count; ++i) {
    cache_shard_t* shard = &cache->shards[i];
    if (timers->clear) timers->clear(timers->self, &shard->timer);
    if (shard->buckets)
      RN_FREE_ARRAY(cache->options.allocator, shard->buckets, shard->bucket_count);
    rn_mutex_destroy(&shard->mutex);
  }
  rn_free(cache->options.allocator, cache, cache_size(cache->shard_count));
}

void rn_predict_cache_set_mask_for_testing(rn_predict_cache_t* cache, uint64_t mask) {
  cache->mask = mask;
}

// The low bits of a hash choose the bucket, the high ones the shard.
static cache_shard_t* shard_of(rn_predict_cache_t* cache, uint64_t hash) {
  return &cache->shards[(hash >> 48) & (cache->shard_count - 1)];
}
static cache_entry_t** bucket_of(cache_shard_t* shard, uint64_t hash) {
  return &shard->buckets[hash & (shard->bucket_count - 1)];
}

static void ring_add(cache_shard_t* shard, cache_entry_t* entry) {
  if (!shard->hand) {
    shard->hand = entry->next = entry->previous = entry;
    return;
  }
  entry->next = shard->hand;  // the hand comes by last
  entry->previous = shard->hand->previous;
  entry->previous->next = entry->next->previous = entry;
}

static void ring_remove(cache_shard_t* shard, cache_entry_t* entry) {
  if (shard->hand == entry) shard->hand = entry->next == entry ? NULL : entry->next;
  entry->previous->next = entry->next;
  entry->next->previous = entry->previous;
}

// Takes an entry out of the shard; it is no longer in the ring.
static void take_out(cache_shard_t* shard, cache_entry_t* entry) {
  cache_entry_t** link = bucket_of(shard, entry->hash);
  while (*link != entry) link = &(*link)->chain;
  *link = entry->chain;
  shard->stats.bytes -= (int64_t)entry->bytes;
  --shard->stats.entries;
}

// Evicts entries until the shard keeps to its budget. Returns them, linked by |chain|.
static cache_entry_t* evict_locked(cache_shard_t* shard) {
  cache_entry_t* victims = NULL;
  while (shard->hand && shard->stats.bytes > (int64_t)shard->cache->shard_bytes) {
    cache_entry_t* entry = shard->hand;
    if (entry->was_used) {
      entry->was_used = false;
      shard->hand = entry->next;
      continue;
    }
    ring_remove(shard, entry);
    take_out(shard, entry);
    entry->chain = victims;
    victims = entry;
    ++shard->stats.evictions;
  }
  return victims;
}

// Doubles the table once it has an entry per bucket. Without memory, chains grow longer.
static void grow_locked(cache_shard_t* shard) {
  if ((size_t)shard->stats.entries < shard->bucket_count) return;
  rn_allocator_t allocator = shard->cache->options.allocator;
  cache_entry_t** old = shard->buckets;
  size_t old_count = shard->bucket_count;
  cache_entry_t** buckets = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, 2 * old_count, &buckets);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return;
  }
  shard->buckets = buckets;
  shard->bucket_count = 2 * old_count;
  for (size_t i = 0; i < old_count; ++i) {
    for (cache_entry_t *entry = old[i], *next; entry; entry = next) {
      next = entry->chain;
      entry->chain = *bucket_of(shard, entry->hash);
      *bucket_of(shard, entry->hash) = entry;
    }
  }
  RN_FREE_ARRAY(allocator, old, old_count);
}

// The entry of |predict|. Also counts the entries with the same hash.
static cache_entry_t* find_locked(cache_shard_t* shard, const rn_predict_t* predict, uint64_t hash,
                                  size_t key_size, int* out_equal) {
  *out_equal = 0;
  for (cache_entry_t* entry = *bucket_of(shard, hash); entry; entry = entry->chain) {
    if (entry->hash != hash) continue;
    ++*out_equal;
    if (entry->key_size == key_size && rn_cache_key_equals(predict, entry->key)) return entry;
  }
  return NULL;
}

// Shares |from| with |predict|, which wants the same outputs.
static rn_status_t share_outputs(const rn_tensor_t* from, size_t step, rn_predict_t* predict) {
  rn_status_t status = RN_OK;
  for (int i = 0; i < predict->output_count && rn_ok(status); ++i)
    status = rn_tensor_share((const rn_tensor_t*)((const char*)from + (size_t)i * step),
                             &predict->outputs[i].value);
  return status;
}

static void clear_outputs(rn_predict_t* predict) {
  for (int i = 0; i < predict->output_count; ++i) rn_tensor_clear(&predict->outputs[i].value);
}

static void unlink_waiter(cache_shard_t* shard, cache_waiter_t* waiter) {
  if (waiter->previous)
    waiter->previous->next = waiter->next;
  else
    shard->waiters = waiter->next;
  if (waiter->next) waiter->next->previous = waiter->previous;
  waiter->predict->group = NULL;
}

// Answers a request that waited and is no longer linked.
static void answer(rn_predict_cache_t* cache, cache_waiter_t* waiter, rn_status_t status) {
  rn_predict_t* predict = waiter->predict;
  RN_FREE(cache->options.allocator, waiter);
  if (predict->entry.fn) rn_cancel_remove(predict->cancel, &predict->entry);
  predict->times.queue_ns = cache->options.env->now_ns(cache->options.env->self) - predict->come_ns;
  rn_predict_finish(predict, status);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_predict_t* predict = RN_CONTAINER_OF(entry, rn_predict_t, entry);
  cache_shard_t* shard = predict->holder;
  rn_mutex_lock(&shard->mutex);
  cache_waiter_t* waiter = predict->group;
  if (waiter) unlink_waiter(shard, waiter);
  rn_mutex_unlock(&shard->mutex);
  if (waiter) answer(shard->cache, waiter, rn_cancelled("The request was cancelled"));
}

static void set_timer_locked(cache_shard_t* shard, int64_t at_ns) {
  const rn_timers_t* timers = &shard->cache->options.timers;
  if (!timers->set || at_ns >= shard->timer_ns) return;
  rn_status_t status = timers->set(timers->self, &shard->timer, at_ns);
  if (rn_ok(status)) shard->timer_ns = at_ns;
  rn_status_free(status);
}

// Answers the waiting requests whose deadlines have passed.
static void on_timer(rn_timer_t* timer) {
  cache_shard_t* shard = RN_CONTAINER_OF(timer, cache_shard_t, timer);
  rn_predict_cache_t* cache = shard->cache;
  int64_t now = cache->options.env->now_ns(cache->options.env->self), first = INT64_MAX;
  cache_waiter_t* late = NULL;
  rn_mutex_lock(&shard->mutex);
  shard->timer_ns = INT64_MAX;
  for (cache_waiter_t *waiter = shard->waiters, *next; waiter; waiter = next) {
    next = waiter->next;
    int64_t deadline = waiter->predict->deadline_ns;
    if (deadline <= now) {
      unlink_waiter(shard, waiter);
      waiter->next = late;
      late = waiter;
    } else if (deadline < first) {
      first = deadline;
    }
  }
  if (first < INT64_MAX) set_timer_locked(shard, first);
  rn_mutex_unlock(&shard->mutex);
  while (late) {
    cache_waiter_t* waiter = late;
    late = waiter->next;
    answer(cache, waiter, rn_deadline_exceeded("The deadline passed while an equal request ran"));
  }
}

// Lets |predict| wait for |entry|. False if it cannot: then it runs.
static bool wait_locked(cache_shard_t* shard, cache_entry_t* entry, rn_predict_t* predict) {
  cache_waiter_t* waiter = NULL;
  rn_status_t status = RN_NEW(shard->cache->options.allocator, &waiter);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return false;
  }
  predict->holder = shard;
  predict->entry = (rn_cancel_entry_t){.fn = predict->cancel ? on_cancel : NULL};
  if (predict->cancel && !rn_cancel_add(predict->cancel, &predict->entry)) {
    RN_FREE(shard->cache->options.allocator, waiter);
    return false;  // running it finds that it was cancelled
  }
  *waiter = (cache_waiter_t){.predict = predict, .entry = entry, .next = shard->waiters};
  if (waiter->next) waiter->next->previous = waiter;
  shard->waiters = waiter;
  predict->group = waiter;
  predict->come_ns = shard->cache->options.env->now_ns(shard->cache->options.env->self);
  if (predict->deadline_ns < INT64_MAX) set_timer_locked(shard, predict->deadline_ns);
  ++shard->stats.waits;
  return true;
}

static cache_entry_t* entry_create(rn_predict_cache_t* cache, const rn_predict_t* predict,
                                   uint64_t hash, size_t key_size) {
  cache_entry_t* entry = NULL;
  rn_status_t status = rn_alloc(cache->options.allocator, sizeof *entry + key_size, (void**)&entry);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  *entry = (cache_entry_t){.hash = hash, .version = predict->version, .key_size = key_size};
  entry->bytes = sizeof *entry + key_size + BLOCK_BYTES;
  entry->bytes += 2 * sizeof(void*);  // of the table, which has up to two buckets per entry
  rn_cache_key_write(predict, entry->key);
  return entry;
}

rn_predict_cache_answer_t rn_predict_cache_get(rn_predict_cache_t* cache, rn_predict_t* predict,
                                               rn_predict_cache_flight_t** out_flight) {
  *out_flight = NULL;
  size_t key_size;
  uint64_t hash = rn_cache_key_hash(predict, cache->seed, &key_size) & cache->mask;
  cache_shard_t* shard = shard_of(cache, hash);
  rn_predict_cache_answer_t answer = RN_PREDICT_CACHE_RUN;
  cache_entry_t* victims = NULL;
  int equal;
  rn_mutex_lock(&shard->mutex);
  cache_entry_t* entry = find_locked(shard, predict, hash, key_size, &equal);
  if (entry && entry->outputs) {
    entry->was_used = true;
    rn_status_t status = share_outputs(entry->outputs, sizeof *entry->outputs, predict);
    if (rn_ok(status)) {
      answer = RN_PREDICT_CACHE_HIT;
      ++shard->stats.hits;
    } else {
      rn_status_free(status);
      clear_outputs(predict);
    }
  } else if (entry && wait_locked(shard, entry, predict)) {
    answer = RN_PREDICT_CACHE_WAITS;
  } else if (!entry) {
    ++shard->stats.misses;
    if (equal < MAX_EQUAL_HASHES && key_size < cache->shard_bytes / 2)
      entry = entry_create(cache, predict, hash, key_size);
    if (entry) {
      grow_locked(shard);
      entry->chain = *bucket_of(shard, hash);
      *bucket_of(shard, hash) = entry;
      ++shard->stats.entries;
      shard->stats.bytes += (int64_t)entry->bytes;
      victims = evict_locked(shard);
      *out_flight = entry;
    }
  }
  rn_mutex_unlock(&shard->mutex);
  free_all(cache, victims);
  return answer;
}

// The outputs as the cache keeps them. A slice of a larger buffer is copied, so that it does not
// keep the answers of a whole batch in memory.
static rn_status_t keep_outputs(rn_allocator_t allocator, const rn_predict_t* predict,
                                rn_tensor_t* to, size_t* inout_bytes) {
  for (int i = 0; i < predict->output_count; ++i) {
    const rn_tensor_t* from = &predict->outputs[i].value;
    size_t bytes = rn_tensor_bytes(from);
    bool is_slice = from->buffer && from->buffer->size > 2 * bytes + 256;
    RN_RETURN_IF_ERROR(is_slice ? rn_tensor_copy(from, allocator, &to[i])
                                : rn_tensor_keep(from, allocator, &to[i]));
    *inout_bytes += sizeof *to + BLOCK_BYTES + 2 * RN_ALIGN;
    *inout_bytes += to[i].buffer ? to[i].buffer->size : 0;
    for (int64_t k = 0; from->dtype == RN_STRING && k < from->count; ++k)
      *inout_bytes += rn_tstring_view(&RN_DATA(from, rn_tstring_t)[k]).size + BLOCK_BYTES;
  }
  return RN_OK;
}

// Sets the outputs of |entry|, which no other thread touches before they are there. False if it
// should not be kept.
static bool fill_entry(rn_predict_cache_t* cache, cache_entry_t* entry, const rn_predict_t* predict,
                       rn_tensor_t** out, size_t* out_bytes) {
  rn_allocator_t allocator = cache->options.allocator;
  *out_bytes = 0;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)predict->output_count, out);
  if (rn_ok(status)) status = keep_outputs(allocator, predict, *out, out_bytes);
  bool fits = rn_ok(status) && entry->bytes + *out_bytes <= cache->shard_bytes / 2;
  rn_status_free(status);
  if (fits || !*out) return fits;
  for (int i = 0; i < predict->output_count; ++i) rn_tensor_clear(&(*out)[i]);
  RN_FREE_ARRAY(allocator, *out, (size_t)predict->output_count);
  return false;
}

// Unlinks those that wait for |entry|, and returns them in the order they came in.
static cache_waiter_t* take_waiters_locked(cache_shard_t* shard, const cache_entry_t* entry) {
  cache_waiter_t* taken = NULL;
  for (cache_waiter_t *waiter = shard->waiters, *next; waiter; waiter = next) {
    next = waiter->next;
    if (waiter->entry != entry) continue;
    unlink_waiter(shard, waiter);
    waiter->next = taken;
    taken = waiter;
  }
  return taken;
}

// Makes the first waiter that still can run run instead. True if there was one.
static bool pass_on(rn_predict_cache_t* cache, cache_shard_t* shard, cache_entry_t* entry) {
  int64_t now = cache->options.env->now_ns(cache->options.env->self);
  rn_mutex_lock(&shard->mutex);
  cache_waiter_t* heir = NULL;
  for (cache_waiter_t* waiter = shard->waiters; waiter; waiter = waiter->next) {
    const rn_predict_t* predict = waiter->predict;
    bool is_cancelled = predict->cancel && rn_is_cancelled(predict->cancel);
    if (waiter->entry == entry && predict->deadline_ns > now && !is_cancelled) heir = waiter;
  }
  if (heir) unlink_waiter(shard, heir);
  rn_mutex_unlock(&shard->mutex);
  if (!heir) return false;
  rn_predict_t* predict = heir->predict;
  RN_FREE(cache->options.allocator, heir);
  if (predict->entry.fn) rn_cancel_remove(predict->cancel, &predict->entry);
  predict->flight = entry;
  rn_version_run(predict->version, predict);
  return true;
}

static void answer_all(rn_predict_cache_t* cache, cache_waiter_t* waiters,
                       const rn_predict_t* predict, rn_status_t status) {
  while (waiters) {
    cache_waiter_t* waiter = waiters;
    waiters = waiter->next;
    rn_status_t own = rn_status_copy(status);
    if (rn_ok(own)) {
      own = share_outputs(&predict->outputs[0].value, sizeof *predict->outputs, waiter->predict);
      waiter->predict->marks |= RN_MARK_CACHED;
    }
    waiter->predict->retry_ns = predict->retry_ns;
    waiter->predict->times = (rn_predict_times_t){.begun_ns = waiter->predict->times.begun_ns,
                                                  .batch_size = predict->times.batch_size};
    answer(cache, waiter, own);
  }
}

void rn_predict_cache_put(rn_predict_cache_t* cache, rn_predict_cache_flight_t* flight,
                          const rn_predict_t* predict, rn_status_t status) {
  cache_entry_t* entry = flight;
  cache_shard_t* shard = shard_of(cache, entry->hash);
  rn_code_t code = rn_status_code(status);
  if ((code == RN_CODE_CANCELLED || code == RN_CODE_DEADLINE_EXCEEDED) &&
      pass_on(cache, shard, entry))
    return;
  rn_tensor_t* outputs = NULL;
  size_t bytes = 0;
  bool is_kept = rn_ok(status) && fill_entry(cache, entry, predict, &outputs, &bytes);
  rn_mutex_lock(&shard->mutex);
  cache_waiter_t* waiters = take_waiters_locked(shard, entry);
  cache_entry_t* victims = NULL;
  if (is_kept) {
    entry->output_count = predict->output_count;
    entry->outputs = outputs;
    entry->bytes += bytes;
    shard->stats.bytes += (int64_t)bytes;
    ring_add(shard, entry);
    victims = evict_locked(shard);
  } else {
    take_out(shard, entry);
    entry->chain = NULL;
    victims = entry;
  }
  rn_mutex_unlock(&shard->mutex);
  free_all(cache, victims);
  answer_all(cache, waiters, predict, status);
}

void rn_predict_cache_drop(rn_predict_cache_t* cache, const rn_version_t* version) {
  for (unsigned i = 0; i < cache->shard_count; ++i) {
    cache_shard_t* shard = &cache->shards[i];
    cache_entry_t* dropped = NULL;
    rn_mutex_lock(&shard->mutex);
    for (size_t k = 0; k < shard->bucket_count; ++k) {
      for (cache_entry_t *entry = shard->buckets[k], *next; entry; entry = next) {
        next = entry->chain;
        if (version && entry->version != version) continue;
        if (entry->next) ring_remove(shard, entry);
        take_out(shard, entry);
        entry->chain = dropped;
        dropped = entry;
      }
    }
    rn_mutex_unlock(&shard->mutex);
    free_all(cache, dropped);
  }
}

rn_predict_cache_stats_t rn_predict_cache_stats(rn_predict_cache_t* cache) {
  rn_predict_cache_stats_t sum = {0};
  for (unsigned i = 0; i < cache->shard_count; ++i) {
    cache_shard_t* shard = &cache->shards[i];
    rn_mutex_lock(&shard->mutex);
    sum.hits += shard->stats.hits;
    sum.misses += shard->stats.misses;
    sum.waits += shard->stats.waits;
    sum.evictions += shard->stats.evictions;
    sum.entries += shard->stats.entries;
    sum.bytes += shard->stats.bytes;
    rn_mutex_unlock(&shard->mutex);
  }
  return sum;
}
