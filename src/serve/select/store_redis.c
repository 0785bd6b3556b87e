// See store_redis.h.
//
// In Redis, the state under KEY is the string PREFIX + KEY. Keys that begin with '/', which are
// definitions, are fields of the hash PREFIX + "definitions", so that they can be listed.
#include "serve/select/store_redis.h"

#include "serve/select/redis_link.h"
#include "serve/select/redis_queue.h"
#include "serve/select/store_saver.h"

enum {
  KEYS_AT_ONCE = 256,  // of one transaction
  TRIES = 20,          // of a transaction that other front ends interrupt
  MAX_READ = 1 << 17,  // keys that are remembered for the next refresh
  MAX_RETRIES = 64,    // the longest pause after failures, in first pauses
};

// Keys of one transaction.
typedef struct rn_redis_batch_t {
  rn_redis_key_t* keys[KEYS_AT_ONCE];
  rn_strbuf_t names[KEYS_AT_ONCE];   // with the prefix
  rn_strbuf_t values[KEYS_AT_ONCE];  // that were made; "": removed
  int count;
} rn_redis_batch_t;

typedef struct rn_store_redis_t {
  rn_state_store_t base;
  rn_store_redis_options_t options;
  rn_redis_link_t link;     // of the thread, like the next one
  bool is_loaded;           // the definitions were read
  rn_redis_queue_t known;   // definitions that Redis had when they were last read; no changes
  rn_redis_batch_t* batch;  // Owned; scratch
  int64_t refreshed;        // when the last refresh ended
  int64_t retry;            // pause after a failure; 0: the last round did not fail
  bool refreshes;           // this round refreshes

  rn_store_saver_t saver;  // its lock guards the rest
  bool is_urgent;
  rn_redis_queue_t waiting;  // not taken by the thread yet
  rn_redis_queue_t read;     // keys that were read since the last refresh; no changes
  size_t waiting_bytes;      // of |waiting| and of what the thread has taken
  int64_t unsaved, dropped;
  rn_metric_series_t* drop_count;
} rn_store_redis_t;

static rn_store_redis_t* of(rn_state_store_t* base) { return (rn_store_redis_t*)base; }

static rn_status_t add_locked(rn_store_redis_t* store, rn_str_t key, rn_str_t bytes, bool is_put) {
  if (store->waiting_bytes + bytes.size > store->options.max_waiting)
    return rn_resource_exhausted("too many changes wait for Redis");
  size_t added = 0;
  RN_RETURN_IF_ERROR(rn_redis_queue_add(&store->waiting, key, bytes, is_put, &added));
  store->waiting_bytes += added;
  ++store->unsaved;
  return RN_OK;
}

static void drop_locked(rn_store_redis_t* store) {
  ++store->dropped;
  rn_series_add(store->drop_count, 1);
}

static void add(rn_state_store_t* base, rn_str_t key, rn_str_t bytes, bool is_put) {
  rn_store_redis_t* store = of(base);
  rn_mutex_lock(&store->saver.mutex);
  bool was_empty = !store->waiting.first;
  rn_status_t status = add_locked(store, key, bytes, is_put);
  if (!rn_ok(status)) drop_locked(store);
  if (was_empty) rn_cond_signal(&store->saver.wake);
  rn_mutex_unlock(&store->saver.mutex);
  rn_status_free(status);
}

static void changed(rn_state_store_t* base, rn_str_t key, rn_str_t change) {
  add(base, key, change, false);
}

static void put(rn_state_store_t* base, rn_str_t key, rn_str_t value) {
  add(base, key, value, true);
}

static void read_key(rn_state_store_t* base, rn_str_t key, bool is_found) {
  rn_store_redis_t* store = of(base);
  rn_redis_key_t* ignored;
  rn_mutex_lock(&store->saver.mutex);
  if (key.size && store->read.keys.count < MAX_READ)
    rn_status_free(rn_redis_queue_key(&store->read, key, &ignored));
  if (!is_found && !store->is_urgent) {
    store->is_urgent = true;
    rn_cond_signal(&store->saver.wake);
  }
  rn_mutex_unlock(&store->saver.mutex);
}

// The thread's work.

static void set_name(const rn_store_redis_t* store, rn_str_t key, rn_strbuf_t* out) {
  rn_strbuf_init(out, store->base.allocator);
  rn_strbuf_append(out, rn_redis_prefix(store->options.config));
  rn_strbuf_append(out, key);
}

static rn_status_t send_word(rn_redis_link_t* link, const char* word) {
  rn_redis_command_t command = {0};
  rn_redis_word(&command, rn_str(word));
  return rn_redis_do(link, &command);
}

// MGET of the batch's keys. |*out| has as many elements as the batch.
static rn_status_t get_all(rn_store_redis_t* store, const rn_redis_batch_t* batch, const char* verb,
                           redisReply** out) {
  rn_redis_command_t command = {0};
  rn_redis_word(&command, rn_str(verb));
  for (int i = 0; i < batch->count; ++i) {
    RN_RETURN_IF_ERROR(rn_strbuf_status(&batch->names[i]));
    rn_redis_word(&command, rn_strbuf_view(&batch->names[i]));
  }
  RN_RETURN_IF_ERROR(rn_redis_call(&store->link, &command, out));
  if (strcmp(verb, "MGET") != 0 || (*out)->elements == (size_t)batch->count) return RN_OK;
  rn_redis_free(&store->link, *out);
  *out = NULL;
  return rn_unavailable("Redis: MGET gave another number of values");
}

static rn_status_t make_values(rn_store_redis_t* store, rn_redis_batch_t* batch,
                               const redisReply* had) {
  _Alignas(16) char made[RN_STATE_MAX_CHANGED];
  for (int i = 0; i < batch->count; ++i) {
    rn_strbuf_t* value = &batch->values[i];
    value->size = 0;
    rn_strbuf_append(value, rn_redis_text(had->element[i]));
    for (const rn_redis_change_t* change = batch->keys[i]->first; change; change = change->next) {
      rn_str_t bytes = rn_str_n(change->bytes, change->size);
      if (!change->is_put) {
        size_t size = rn_state_store_apply(&store->base, rn_redis_key_name(batch->keys[i]),
                                           rn_strbuf_view(value), bytes, made);
        if (!size) continue;
        bytes = rn_str_n(made, size);
      }
      value->size = 0;
      rn_strbuf_append(value, bytes);
    }
    RN_RETURN_IF_ERROR(rn_strbuf_status(value));
  }
  return RN_OK;
}

// Writes the values, unless one of the keys changed since WATCH: then |*out_is_done| is false.
static rn_status_t write_values(rn_store_redis_t* store, const rn_redis_batch_t* batch,
                                bool* out_is_done) {
  rn_redis_link_t* link = &store->link;
  rn_redis_command_t sets = {0}, removals = {0};
  rn_redis_word(&sets, RN_STR("MSET"));
  rn_redis_word(&removals, RN_STR("DEL"));
  for (int i = 0; i < batch->count; ++i) {
    rn_str_t value = rn_strbuf_view(&batch->values[i]);
    rn_redis_word(value.size ? &sets : &removals, rn_strbuf_view(&batch->names[i]));
    if (value.size) rn_redis_word(&sets, value);
  }
  RN_RETURN_IF_ERROR(send_word(link, "MULTI"));
  if (sets.count > 1) RN_RETURN_IF_ERROR(rn_redis_do(link, &sets));
  if (removals.count > 1) RN_RETURN_IF_ERROR(rn_redis_do(link, &removals));
  rn_redis_command_t exec = {0};
  redisReply* reply = NULL;
  rn_redis_word(&exec, RN_STR("EXEC"));
  RN_RETURN_IF_ERROR(rn_redis_call(link, &exec, &reply));
  *out_is_done = reply->type == REDIS_REPLY_ARRAY;
  rn_redis_free(link, reply);
  return RN_OK;
}

static rn_status_t commit_batch(rn_store_redis_t* store, rn_redis_batch_t* batch) {
  for (int i = 0; i < TRIES; ++i) {
    redisReply* reply = NULL;
    bool is_done = false;
    RN_RETURN_IF_ERROR(get_all(store, batch, "WATCH", &reply));
    rn_redis_free(&store->link, reply);
    RN_RETURN_IF_ERROR(get_all(store, batch, "MGET", &reply));
    rn_status_t status = make_values(store, batch, reply);
    rn_redis_free(&store->link, reply);
    if (rn_ok(status)) status = write_values(store, batch, &is_done);
    if (!rn_ok(status) || is_done) return status;
  }
  return rn_aborted("Redis: other front ends were faster %d times", TRIES);
}

// A definition is put, never changed. One that was removed stays as an empty field: a field that is
// missing means that Redis has lost its memory.
static rn_status_t commit_definition(rn_store_redis_t* store, const rn_redis_key_t* key) {
  rn_strbuf_t name;
  set_name(store, RN_STR("definitions"), &name);
  rn_str_t value = rn_str_n(key->last->bytes, key->last->size);
  rn_redis_command_t command = {0};
  rn_redis_word(&command, RN_STR("HSET"));
  rn_redis_word(&command, rn_strbuf_view(&name));
  rn_redis_word(&command, rn_redis_key_name(key));
  rn_redis_word(&command, value);
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_redis_do(&store->link, &command);
  rn_strbuf_clear(&name);
  return status;
}

// Takes what Redis has now into the image, unless a change of the key waits: it would be undone.
static void follow(rn_store_redis_t* store, rn_str_t key, rn_str_t value) {
  rn_mutex_lock(&store->saver.mutex);
  bool waits = rn_map_get(&store->waiting.keys, key) != NULL;
  rn_mutex_unlock(&store->saver.mutex);
  if (!waits && value.size) rn_status_free(rn_state_map_put(store->base.map, key, value, false));
}

static void batch_add(const rn_store_redis_t* store, rn_redis_batch_t* batch, rn_redis_key_t* key) {
  set_name(store, rn_redis_key_name(key), &batch->names[batch->count]);
  rn_strbuf_init(&batch->values[batch->count], store->base.allocator);
  batch->keys[batch->count++] = key;
}

static void batch_clear(rn_redis_batch_t* batch) {
  for (int i = 0; i < batch->count; ++i) {
    rn_strbuf_clear(&batch->names[i]);
    rn_strbuf_clear(&batch->values[i]);
  }
  batch->count = 0;
}

static rn_status_t commit_keys(rn_store_redis_t* store, rn_redis_batch_t* batch) {
  if (!batch->count) return RN_OK;
  RN_RETURN_IF_ERROR(commit_batch(store, batch));
  for (int i = 0; i < batch->count; ++i)
    follow(store, rn_redis_key_name(batch->keys[i]), rn_strbuf_view(&batch->values[i]));
  return RN_OK;
}

// Forgets the changes of |key|, which were saved or are given up.
static void settle(rn_store_redis_t* store, rn_redis_key_t* key) {
  rn_mutex_lock(&store->saver.mutex);
  for (const rn_redis_change_t* change = key->first; change; change = change->next) {
    store->waiting_bytes -= rn_redis_change_size(change);
    --store->unsaved;
  }
  rn_mutex_unlock(&store->saver.mutex);
  rn_redis_key_free(store->base.allocator, key);
}

// Puts the changes of |key| back in front of those that came meanwhile.
static void put_back(rn_store_redis_t* store, rn_redis_key_t* key) {
  rn_redis_key_t* entry = NULL;
  rn_mutex_lock(&store->saver.mutex);
  rn_status_t status = rn_redis_queue_key(&store->waiting, rn_redis_key_name(key), &entry);
  if (rn_ok(status)) {
    rn_redis_key_prepend(entry, key);
  } else {
    drop_locked(store);
  }
  rn_mutex_unlock(&store->saver.mutex);
  rn_status_free(status);
  settle(store, key);  // what is left of it
}

static rn_redis_key_t* pop(rn_store_redis_t* store, rn_redis_queue_t* queue) {
  rn_mutex_lock(&store->saver.mutex);
  rn_redis_key_t* key = rn_redis_queue_pop(queue);
  rn_mutex_unlock(&store->saver.mutex);
  return key;
}

// Saves the changes that wait now; |*batch| is scratch.
static rn_status_t commit(rn_store_redis_t* store, rn_redis_batch_t* batch) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&store->saver.mutex);
  size_t left = store->waiting.keys.count;
  rn_mutex_unlock(&store->saver.mutex);
  while (rn_ok(status) && left > 0) {
    rn_redis_key_t* definition = NULL;
    for (rn_redis_key_t* key; left > 0 && batch->count < KEYS_AT_ONCE && !definition;) {
      if (!(key = pop(store, &store->waiting))) break;
      --left;
      if (key->bytes[0] == '/')
        definition = key;
      else
        batch_add(store, batch, key);
    }
    status = commit_keys(store, batch);
    for (int i = 0; i < batch->count; ++i)
      (rn_ok(status) ? settle : put_back)(store, batch->keys[i]);
    batch_clear(batch);
    if (definition && rn_ok(status)) status = commit_definition(store, definition);
    if (definition) (rn_ok(status) ? settle : put_back)(store, definition);
  }
  return status;
}

// Reads again what was read lately.
static rn_status_t refresh(rn_store_redis_t* store, rn_redis_batch_t* batch) {
  rn_status_t status = RN_OK;
  for (bool is_empty = false; rn_ok(status) && !is_empty;) {
    while (batch->count < KEYS_AT_ONCE && !is_empty) {
      rn_redis_key_t* key = pop(store, &store->read);
      if (key)
        batch_add(store, batch, key);
      else
        is_empty = true;
    }
    redisReply* reply = NULL;
    if (batch->count) status = get_all(store, batch, "MGET", &reply);
    for (int i = 0; i < batch->count; ++i) {
      if (reply) follow(store, rn_redis_key_name(batch->keys[i]), rn_redis_text(reply->element[i]));
      rn_redis_key_free(store->base.allocator, batch->keys[i]);
    }
    rn_redis_free(&store->link, reply);
    batch_clear(batch);
  }
  return status;
}

// Takes a definition that Redis has ("": it was removed), unless it is known or a change of it
// waits.
static void take_definition(rn_store_redis_t* store, rn_str_t key, rn_str_t value) {
  char had[RN_STATE_MAX_VALUE];
  size_t size = rn_state_map_get(store->base.map, key, had, sizeof had);
  rn_mutex_lock(&store->saver.mutex);
  bool waits = rn_map_get(&store->waiting.keys, key) != NULL;
  rn_mutex_unlock(&store->saver.mutex);
  if (waits || rn_str_eq(rn_str_n(had, size), value)) return;
  rn_status_t status = rn_state_map_put(store->base.map, key, value, false);
  if (rn_ok(status)) rn_state_store_notice(&store->base, key, value);
  rn_status_free(status);
}

static rn_status_t get_definitions(rn_store_redis_t* store, redisReply** out) {
  rn_strbuf_t name;
  set_name(store, RN_STR("definitions"), &name);
  rn_redis_command_t command = {0};
  rn_redis_word(&command, RN_STR("HGETALL"));
  rn_redis_word(&command, rn_strbuf_view(&name));
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_redis_call(&store->link, &command, out);
  rn_strbuf_clear(&name);
  return status;
}

// Puts a definition that Redis has lost.
static void put_again(rn_store_redis_t* store, rn_str_t key) {
  char value[RN_STATE_MAX_VALUE];
  size_t size = rn_state_map_get(store->base.map, key, value, sizeof value);
  if (size) put(&store->base, key, rn_str_n(value, size));
}

// Follows the definitions: those that are new, differ or were removed.
static rn_status_t load_definitions(rn_store_redis_t* store) {
  redisReply* reply = NULL;
  rn_redis_queue_t now;
  rn_redis_queue_init(&now, store->base.allocator);
  rn_status_t status = get_definitions(store, &reply);
  for (size_t i = 0; rn_ok(status) && i + 1 < reply->elements; i += 2) {
    rn_str_t key = rn_redis_text(reply->element[i]);
    rn_redis_key_t* ignored;
    if (!key.size || key.data[0] != '/') continue;
    take_definition(store, key, rn_redis_text(reply->element[i + 1]));
    status = rn_redis_queue_key(&now, key, &ignored);
  }
  rn_redis_free(&store->link, reply);
  if (rn_ok(status)) {
    for (rn_redis_key_t* key; (key = rn_redis_queue_pop(&store->known));) {
      if (!rn_map_get(&now.keys, rn_redis_key_name(key))) put_again(store, rn_redis_key_name(key));
      rn_redis_key_free(store->base.allocator, key);
    }
    rn_redis_queue_t old = store->known;
    store->known = now;
    now = old;
  }
  rn_redis_queue_clear(&now);
  return status;
}

static rn_status_t try_work(rn_store_redis_t* store, rn_redis_batch_t* batch, bool refreshes) {
  RN_RETURN_IF_ERROR(rn_redis_connect(&store->link, store->options.config));
  RN_RETURN_IF_ERROR(commit(store, batch));
  if (refreshes || !store->is_loaded) RN_RETURN_IF_ERROR(load_definitions(store));
  store->is_loaded = true;
  return refreshes ? refresh(store, batch) : RN_OK;
}

static int64_t real_now(void) { return rn_env_system()->now_ns(NULL); }

static rn_status_t save(void* self) {
  rn_store_redis_t* store = self;
  rn_status_t status = try_work(store, store->batch, store->refreshes);
  // An error may leave a transaction open.
  if (!rn_ok(status)) rn_redis_close(&store->link);
  if (store->refreshes) store->refreshed = real_now();
  bool is_broken = !rn_ok(status) && rn_status_code(status) != RN_CODE_ABORTED;
  int64_t first = store->options.retry_ns, next = store->retry ? store->retry * 2 : first;
  store->retry = !is_broken ? 0 : next > MAX_RETRIES * first ? MAX_RETRIES * first : next;
  return status;
}

// The first round is at once. After a failure, changes wait for the end of the pause.
static void wait_locked(void* self) {
  rn_store_redis_t* store = self;
  rn_store_saver_t* saver = &store->saver;
  int64_t retry = store->retry, refresh_ns = store->options.refresh_ns;
  int64_t until = real_now() + (retry ? retry : refresh_ns);
  bool gathers = false, is_first = !(saver->saves + saver->failures);
  while (!is_first && !rn_store_saver_is_due_locked(saver) && (retry || !store->is_urgent)) {
    if (!retry && !gathers && store->waiting.first) {
      gathers = true;
      until = real_now() + store->options.commit_ns;
    }
    if (!rn_cond_wait_until(&saver->wake, &saver->mutex, until)) break;
  }
  store->refreshes = store->is_urgent || real_now() - store->refreshed >= refresh_ns;
  store->is_urgent = false;
}

// The vtable.

static rn_status_t flush(rn_state_store_t* base) { return rn_store_saver_flush(&of(base)->saver); }

static void add_stats(rn_state_store_t* base, rn_state_store_stats_t* inout) {
  rn_store_redis_t* store = of(base);
  rn_mutex_lock(&store->saver.mutex);
  inout->unsaved = store->unsaved;
  inout->saves = store->saver.saves;
  inout->failures = store->saver.failures;
  inout->dropped = store->dropped;
  rn_mutex_unlock(&store->saver.mutex);
}

static void destroy(rn_state_store_t* base) {
  rn_store_redis_t* store = of(base);
  rn_store_saver_stop(&store->saver);
  rn_redis_link_deinit(&store->link);
  if (store->batch) RN_FREE(base->allocator, store->batch);
  rn_redis_queue_clear(&store->known);
  rn_redis_queue_clear(&store->waiting);
  rn_redis_queue_clear(&store->read);
  rn_store_saver_deinit(&store->saver);
  rn_state_store_deinit(base);
  RN_FREE(base->allocator, store);
}

static const rn_state_store_vtable_t redis_vtable = {.kind = "redis",
                                                     .changed = changed,
                                                     .put = put,
                                                     .read = read_key,
                                                     .flush = flush,
                                                     .add_stats = add_stats,
                                                     .destroy = destroy};

static rn_status_t set_up(rn_store_redis_t* store) {
  const rn_store_redis_options_t* options = &store->options;
  RN_RETURN_IF_ERROR(rn_state_store_init(&store->base, options->env, options->max_bytes));
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &store->batch));
  store->refreshed = real_now();
  RN_RETURN_IF_ERROR(rn_store_saver_start(&store->saver));
  rn_status_t status = rn_store_saver_wait_for_first(&store->saver);
  if (rn_status_code(status) != RN_CODE_UNAVAILABLE) return status;
  rn_status_free(status);  // it was logged
  return RN_OK;
}

rn_status_t rn_store_redis_open(const rn_store_redis_options_t* options, rn_state_store_t** out) {
  *out = NULL;
  rn_store_redis_t* store = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &store));
  store->base.vtable = &redis_vtable;
  store->base.allocator = options->allocator;
  store->options = *options;
  if (!options->commit_ns) store->options.commit_ns = INT64_C(20) * 1000000;
  if (!options->refresh_ns) store->options.refresh_ns = INT64_C(1000) * 1000000;
  if (!options->retry_ns) store->options.retry_ns = INT64_C(100) * 1000000;
  if (!options->max_waiting) store->options.max_waiting = (size_t)64 << 20;
  if (options->metrics)
    store->drop_count = rn_metrics_series(options->metrics, RN_METRIC_STORE_DROPPED,
                                          RN_STR("redis"), RN_STR(""), RN_STR(""));
  store->link = (rn_redis_link_t){.env = options->env, .allocator = options->allocator};
  rn_redis_link_init(&store->link);
  rn_redis_queue_init(&store->known, options->allocator);
  rn_redis_queue_init(&store->waiting, options->allocator);
  rn_redis_queue_init(&store->read, options->allocator);
  store->saver =
      (rn_store_saver_t){.env = options->env,
                         .what = "What applications learn cannot be shared",
                         .failure_count = rn_store_failure_count(options->metrics, "redis"),
                         .wait = wait_locked,
                         .save = save,
                         .self = store};
  rn_store_saver_init(&store->saver);
  rn_status_t status = set_up(store);
  if (!rn_ok(status)) {
    rn_state_store_destroy(&store->base);
    return status;
  }
  *out = &store->base;
  return RN_OK;
}
