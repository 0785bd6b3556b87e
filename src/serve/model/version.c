// See version.h.
#include "serve/model/version.h"

#include <stdatomic.h>

#include "serve/model/validate.h"

// Replicas whose answers are expected within this of each other, or an eighth, take turns: each
// must run now and then, for its cost to be known.
#define TIE_NS 20000
// The estimate of an idle replica counts half after this many times its length without a request.
// Otherwise a single slow batch could keep requests away for good.
#define FADE_FACTOR 8

typedef struct version_replica_t {
  rn_backend_t* backend;     // Owned
  rn_batcher_t* batcher;     // Owned
  _Atomic int64_t asked_ns;  // when it was chosen last
} version_replica_t;

struct rn_version_t {
  rn_allocator_t allocator;
  _Atomic int64_t refs;
  char* model;  // Owned
  size_t model_size;
  int64_t number;
  bool joins;
  rn_predict_cache_t* cache;
  rn_metric_series_t *hits, *misses, *waits;  // of the cache; NULL: not counted
  const rn_env_t* env;
  void (*idle)(void* self, rn_version_t* version);
  void* self;
  _Atomic int64_t answered_ns;  // when the last request ended; 0: there was none
  _Atomic unsigned turn;  // where the search for a replica begins, so that equal ones take turns
  int replica_count;
  version_replica_t replicas[];
};

static size_t version_size(int replica_count) {
  return sizeof(rn_version_t) + (size_t)replica_count * sizeof(version_replica_t);
}

void rn_version_destroy(rn_version_t* version) {
  if (!version) return;
  if (version->cache) rn_predict_cache_drop(version->cache, version);
  for (int i = 0; i < version->replica_count; ++i) {
    rn_batcher_destroy(version->replicas[i].batcher);
    version->replicas[i].backend->vtable->destroy(version->replicas[i].backend);
  }
  if (version->model) rn_free(version->allocator, version->model, version->model_size + 1);
  rn_free(version->allocator, version, version_size(version->replica_count));
}

static rn_status_t make_batchers(rn_version_t* version, const rn_version_options_t* options) {
  rn_batcher_options_t batching = options->batching;
  batching.metrics = options->metrics;
  batching.model = options->model;
  for (int i = 0; i < version->replica_count; ++i)
    RN_RETURN_IF_ERROR(
        rn_batcher_create(&batching, version->replicas[i].backend, &version->replicas[i].batcher));
  return RN_OK;
}

static void set_cache(rn_version_t* version, const rn_version_options_t* options) {
  const rn_str_t none = RN_STR("");
  version->cache = options->cache;
  if (!options->cache || !options->metrics) return;
  version->hits = rn_metrics_series(options->metrics, RN_METRIC_CACHE_COUNT, options->model,
                                    RN_STR("hit"), none);
  version->misses = rn_metrics_series(options->metrics, RN_METRIC_CACHE_COUNT, options->model,
                                      RN_STR("miss"), none);
  version->waits = rn_metrics_series(options->metrics, RN_METRIC_CACHE_COUNT, options->model,
                                     RN_STR("wait"), none);
}

rn_status_t rn_version_create(const rn_version_options_t* options, rn_version_t** out) {
  *out = NULL;
  rn_version_t* version = NULL;
  rn_status_t status =
      rn_alloc_zeroed(options->allocator, version_size(options->replica_count), (void**)&version);
  if (!rn_ok(status)) {
    for (int i = 0; i < options->replica_count; ++i)
      options->replicas[i]->vtable->destroy(options->replicas[i]);
    return status;
  }
  version->allocator = options->allocator;
  atomic_init(&version->refs, 1);
  version->number = options->number;
  version->joins = options->batching.is_on && options->batching.size.policy == RN_BATCH_FIXED;
  version->env = options->env;
  version->idle = options->idle;
  version->self = options->self;
  version->replica_count = options->replica_count;
  for (int i = 0; i < options->replica_count; ++i)
    version->replicas[i].backend = options->replicas[i];
  status = rn_str_dup(options->allocator, options->model, &version->model);
  version->model_size = options->model.size;
  if (rn_ok(status)) status = make_batchers(version, options);
  if (!rn_ok(status)) {
    rn_version_destroy(version);
    return status;
  }
  set_cache(version, options);
  *out = version;
  return RN_OK;
}

void rn_version_retain(rn_version_t* version) {
  atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
}

void rn_version_release(rn_version_t* version) {
  if (version && atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) == 1)
    version->idle(version->self, version);
}

rn_str_t rn_version_model(const rn_version_t* version) {
  return rn_str_n(version->model, version->model_size);
}
int64_t rn_version_number(const rn_version_t* version) { return version->number; }
int64_t rn_version_answered_ns(const rn_version_t* version) {
  return atomic_load_explicit(&version->answered_ns, memory_order_relaxed);
}
const rn_backend_t* rn_version_backend(const rn_version_t* version) {
  return version->replicas[0].backend;
}
bool rn_version_is_down(rn_version_t* version) {
  for (int i = 0; i < version->replica_count; ++i) {
    rn_backend_t* backend = version->replicas[i].backend;
    if (backend->vtable->is_down && backend->vtable->is_down(backend)) return true;
  }
  return false;
}
const rn_device_t* rn_version_device(const rn_version_t* version, int replica) {
  return version->replicas[replica].backend->device;
}
int rn_version_replica_count(const rn_version_t* version) { return version->replica_count; }
const rn_batcher_t* rn_version_batcher(const rn_version_t* version, int replica) {
  return version->replicas[replica].batcher;
}

// How long |replica| would take for a request that came now.
static int64_t expect(version_replica_t* replica, int64_t now) {
  rn_batcher_stats_t stats = rn_batcher_stats(replica->batcher);
  if (stats.queued || stats.running || stats.expected_ns <= 0) return stats.expected_ns;
  int64_t idle = now - atomic_load_explicit(&replica->asked_ns, memory_order_relaxed);
  int64_t halvings = idle / FADE_FACTOR / stats.expected_ns;
  return halvings <= 0 ? stats.expected_ns : stats.expected_ns >> (halvings < 62 ? halvings : 62);
}

// The replica that will answer first. One that is down is taken only if all are.
static version_replica_t* choose(rn_version_t* version) {
  if (version->replica_count == 1) return &version->replicas[0];
  version_replica_t* best = NULL;
  int64_t best_ns = INT64_MAX;
  int64_t now = version->env->now_ns(version->env->self);
  unsigned turn = atomic_fetch_add_explicit(&version->turn, 1, memory_order_relaxed);
  for (int i = 0; i < version->replica_count; ++i) {
    version_replica_t* replica =
        &version->replicas[(turn + (unsigned)i) % (unsigned)version->replica_count];
    rn_backend_t* backend = replica->backend;
    if (backend->vtable->is_down && backend->vtable->is_down(backend)) continue;
    int64_t expected = expect(replica, now);
    if (!best || expected + expected / 8 + TIE_NS < best_ns) {
      best = replica;
      best_ns = expected;
    }
  }
  if (!best) best = &version->replicas[turn % (unsigned)version->replica_count];
  atomic_store_explicit(&best->asked_ns, now, memory_order_relaxed);
  return best;
}

void rn_predict_finish(rn_predict_t* predict, rn_status_t status) {
  rn_version_t* version = predict->version;
  void* flight = predict->flight;
  predict->version = NULL;
  predict->flight = NULL;
  predict->times.queued_ns = predict->come_ns;
  if (version) {  // NULL: the request went to a batcher of its own
    predict->times.end_ns = version->env->now_ns(version->env->self);
    atomic_store_explicit(&version->answered_ns, predict->times.end_ns, memory_order_relaxed);
  }
  if (flight) rn_predict_cache_put(version->cache, flight, predict, status);
  for (int i = 0; i < predict->input_count; ++i) rn_tensor_clear(&predict->inputs[i].value);
  if (!rn_ok(status)) rn_predict_clear(predict);
  predict->done(predict, status);
  rn_version_release(version);
}

// True if the cache has answered or will; false if the request must run.
static bool ask_cache(rn_version_t* version, rn_predict_t* predict) {
  rn_predict_cache_flight_t* flight = NULL;
  switch (rn_predict_cache_get(version->cache, predict, &flight)) {
    case RN_PREDICT_CACHE_HIT:
      rn_series_add(version->hits, 1);
      predict->marks |= RN_MARK_CACHED;
      rn_predict_finish(predict, RN_OK);
      return true;
    case RN_PREDICT_CACHE_WAITS:  // the caller still holds the version
      rn_series_add(version->waits, 1);
      return true;
    case RN_PREDICT_CACHE_RUN:
      rn_series_add(version->misses, 1);
      break;
  }
  predict->flight = flight;
  return false;
}

void rn_version_run(rn_version_t* version, rn_predict_t* predict) {
  rn_batcher_add(choose(version)->batcher, predict);
}

void rn_version_predict(rn_version_t* version, rn_predict_t* predict) {
  rn_version_retain(version);
  predict->version = version;
  predict->allocator = version->allocator;
  predict->outputs = NULL;
  predict->output_count = 0;
  predict->marks = 0;
  predict->retry_ns = 0;
  predict->flight = NULL;
  predict->times = (rn_predict_times_t){.begun_ns = predict->times.begun_ns,
                                        .start_ns = version->env->now_ns(version->env->self)};
  const rn_backend_t* backend = version->replicas[0].backend;
  rn_status_t status = rn_predict_validate(predict, backend, version->joins);
  if (!rn_ok(status)) {
    rn_predict_finish(predict, status);
    return;
  }
  if (version->cache && !predict->skips_cache &&
      backend->signatures[predict->signature_index].is_pure && ask_cache(version, predict))
    return;
  rn_version_run(version, predict);
}
