// The key-value store of a context, and the log of the names of ops that ran.
#include "eager/internal.h"

static rn_eager_pair_t* find_locked(rn_eager_t* eager, rn_str_t key) {
  for (size_t i = 0; i < eager->pairs.count; ++i)
    if (rn_str_eq(rn_strbuf_view(&eager->pairs.items[i].key), key)) return &eager->pairs.items[i];
  return NULL;
}

static void clear_pair(rn_eager_pair_t* pair) {
  rn_strbuf_clear(&pair->key);
  rn_strbuf_clear(&pair->value);
}

static rn_status_t insert_locked(rn_eager_t* eager, rn_str_t key, rn_str_t value) {
  if (find_locked(eager, key))
    return rn_already_exists("Config key %.*s already exists.", RN_STR_ARGS(key));
  RN_RETURN_IF_ERROR(rn_vec_reserve(&eager->pairs, eager->allocator, eager->pairs.count + 1));
  rn_eager_pair_t pair;
  rn_strbuf_init(&pair.key, eager->allocator);
  rn_strbuf_init(&pair.value, eager->allocator);
  rn_strbuf_append(&pair.key, key);
  rn_strbuf_append(&pair.value, value);
  rn_status_t status = rn_strbuf_status(&pair.key);
  if (rn_ok(status)) status = rn_strbuf_status(&pair.value);
  if (!rn_ok(status)) {
    clear_pair(&pair);
    return status;
  }
  eager->pairs.items[eager->pairs.count++] = pair;
  rn_cond_broadcast(&eager->pair_added);
  return RN_OK;
}

rn_status_t rn_eager_set_value(rn_eager_t* eager, rn_str_t key, rn_str_t value) {
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = insert_locked(eager, key, value);
  rn_mutex_unlock(&eager->mutex);
  return status;
}

rn_status_t rn_eager_get_value(rn_eager_t* eager, rn_str_t key, int64_t wait_ms, rn_strbuf_t* out) {
  const rn_env_t* env = eager->step.env;
  int64_t start = env->now_ns(env->self), wait_ns = 0;
  if (__builtin_mul_overflow(wait_ms > 0 ? wait_ms : 0, 1000000, &wait_ns) ||
      __builtin_add_overflow(start, wait_ns, &wait_ns))
    wait_ns = INT64_MAX;
  rn_mutex_lock(&eager->mutex);
  const rn_eager_pair_t* pair = find_locked(eager, key);
  while (!pair && wait_ms > 0 && rn_cond_wait_until(&eager->pair_added, &eager->mutex, wait_ns))
    pair = find_locked(eager, key);
  if (!pair) pair = find_locked(eager, key);
  if (pair) rn_strbuf_append(out, rn_strbuf_view(&pair->value));
  rn_mutex_unlock(&eager->mutex);
  if (pair) return rn_strbuf_status(out);
  if (wait_ms > 0)
    return rn_deadline_exceeded("GetKeyValue() timed out with key: %.*s and duration: %lldms",
                                RN_STR_ARGS(key), (long long)wait_ms);
  return rn_not_found("Config key %.*s not found.", RN_STR_ARGS(key));
}

void rn_eager_remove_value(rn_eager_t* eager, rn_str_t key) {
  rn_mutex_lock(&eager->mutex);
  size_t kept = 0;
  for (size_t i = 0; i < eager->pairs.count; ++i) {
    rn_eager_pair_t* pair = &eager->pairs.items[i];
    rn_str_t own = rn_strbuf_view(&pair->key);
    bool is_below =
        own.size > key.size && own.data[key.size] == '/' && !memcmp(own.data, key.data, key.size);
    if (is_below || rn_str_eq(own, key))
      clear_pair(pair);
    else
      eager->pairs.items[kept++] = *pair;
  }
  eager->pairs.count = kept;
  rn_mutex_unlock(&eager->mutex);
}

// --- The log of ops

// Later names are dropped: a program that forgot to switch the log off must not fill memory.
#define MAX_NAMES (1 << 20)

void rn_eager_set_logging(rn_eager_t* eager, bool enable) { eager->is_logging = enable; }

void rn_eager_log(rn_eager_t* eager, const char* op, const rn_device_t* device) {
  rn_log(eager->step.env, RN_LOG_INFO, "Executing op %s in device %.*s", op,
         RN_STR_ARGS(device->name));
  rn_mutex_lock(&eager->mutex);
  if (eager->executed.size < MAX_NAMES) rn_strbuf_printf(&eager->executed, "%s, ", op);
  rn_mutex_unlock(&eager->mutex);
}

rn_status_t rn_eager_executed(rn_eager_t* eager, rn_strbuf_t* out) {
  rn_mutex_lock(&eager->mutex);
  rn_strbuf_append(out, rn_strbuf_view(&eager->executed));
  rn_mutex_unlock(&eager->mutex);
  return rn_strbuf_status(out);
}

void rn_eager_store_clear(rn_eager_t* eager) {
  for (size_t i = 0; i < eager->pairs.count; ++i) clear_pair(&eager->pairs.items[i]);
  rn_vec_free(&eager->pairs, eager->allocator);
  rn_strbuf_clear(&eager->executed);
  rn_cond_destroy(&eager->pair_added);
}
