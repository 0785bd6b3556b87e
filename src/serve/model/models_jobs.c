// Loads and destroys versions, on threads of their own: see models_internal.h.
#include "serve/model/config.h"
#include "serve/model/models_internal.h"
#include "serve/model/quiet.h"

void rn_job_queue_push(rn_job_queue_t* queue, rn_managed_version_t* version, rn_managed_job_t job) {
  version->job = job;
  version->next_job = NULL;
  if (queue->last)
    queue->last->next_job = version;
  else
    queue->first = version;
  queue->last = version;
  rn_cond_signal(&queue->filled);
}

// The next job; NULL when the threads are to end.
static rn_managed_version_t* pop(rn_models_t* models, rn_job_queue_t* queue) {
  while (!queue->first && !models->is_ending) rn_cond_wait(&queue->filled, &models->mutex);
  rn_managed_version_t* version = queue->first;
  if (!version) return NULL;
  queue->first = version->next_job;
  if (!queue->first) queue->last = NULL;
  return version;
}

static void job_done_locked(rn_models_t* models, rn_managed_version_t* version) {
  version->job = RN_JOB_NONE;
  models->needs_turn = true;
  rn_cond_signal(&models->wanted);
}

void rn_managed_config_release_locked(rn_managed_config_t* config) {
  if (!config || --config->refs) return;
  rn_allocator_t allocator = config->arena.allocator;
  rn_managed_config_release_locked(config->listed);
  rn_arena_clear(&config->arena);
  RN_FREE(allocator, config);
}

// The last reference to a version is gone.
static void on_idle(void* self, rn_version_t* idle) {
  rn_models_t* models = self;
  rn_mutex_lock(&models->mutex);
  for (size_t i = 0; i < models->models.count; ++i)
    for (rn_managed_version_t* v = models->models.items[i]->versions; v; v = v->next)
      if (v->version == idle) rn_job_queue_push(&models->destroys, v, RN_JOB_DESTROY);
  rn_mutex_unlock(&models->mutex);
}

static rn_status_t make_version(rn_models_t* models, const rn_managed_version_t* managed,
                                const rn_pb_serving_ModelConfig_t* config, rn_version_t** out) {
  const rn_models_options_t* options = &models->options;
  rn_version_options_t version = {.model = config->name,
                                  .number = managed->number,
                                  .batching = options->batching,
                                  .cache = options->cache,
                                  .metrics = options->metrics,
                                  .env = models->env,
                                  .allocator = models->allocator,
                                  .idle = on_idle,
                                  .self = models};
  rn_arena_t arena;
  rn_arena_init(&arena, models->allocator);
  bool is_found = false;
  rn_status_t status = RN_OK;
  if (options->batching.is_on)
    status = rn_config_read_own_batching(models->env, managed->folder, &arena, &version.batching,
                                         &is_found);
  rn_backend_t** replicas = NULL;
  if (rn_ok(status))
    status = options->load(options->self, config, managed->number, managed->folder, &replicas,
                           &version.replica_count);
  if (rn_ok(status)) {
    version.replicas = replicas;
    status = rn_version_create(&version, out);
    RN_FREE_ARRAY(models->allocator, replicas, version.replica_count);
  }
  rn_arena_clear(&arena);
  return status;
}

// |*out|, once it is set, belongs to the caller on failure, too.
static rn_status_t load(rn_models_t* models, rn_managed_version_t* managed,
                        const rn_pb_serving_ModelConfig_t* config, rn_version_t** out) {
  uint64_t before = rn_source_fingerprint(models->env, managed->folder, models->allocator);
  managed->fingerprint = before;
  RN_RETURN_IF_ERROR(make_version(models, managed, config, out));
  uint64_t after = rn_source_fingerprint(models->env, managed->folder, models->allocator);
  if (after == before) return RN_OK;
  return rn_unavailable("%s changed while it was being loaded", managed->folder);
}

static void run_load_locked(rn_models_t* models, rn_managed_version_t* managed) {
  if (!rn_managed_is_wanted(models, managed)) {  // it no longer is
    job_done_locked(models, managed);
    return;
  }
  rn_managed_config_t* config = managed->model->config;
  rn_version_t* version = NULL;
  config->refs++;
  rn_mutex_unlock(&models->mutex);
  rn_log(models->env, RN_LOG_INFO, "Loading servable version {name: %.*s version: %ld}",
         RN_STR_ARGS(config->config->name), (long)managed->number);
  rn_status_t status = load(models, managed, config->config, &version);
  rn_mutex_lock(&models->mutex);
  rn_managed_config_release_locked(config);
  managed->version = version;
  managed->is_loaded = rn_ok(status);
  if (!rn_ok(status) && version)
    managed->outcome = status;
  else if (!rn_ok(status))
    rn_managed_fail_locked(models, managed, status);
  job_done_locked(models, managed);
  if (rn_ok(status) || !version) return;
  rn_mutex_unlock(&models->mutex);
  rn_version_release(version);  // goes on in on_idle
  rn_mutex_lock(&models->mutex);
}

void* rn_models_load_jobs(void* arg) {
  rn_models_t* models = arg;
  rn_mutex_lock(&models->mutex);
  for (rn_managed_version_t* v; (v = pop(models, &models->loads));) run_load_locked(models, v);
  rn_mutex_unlock(&models->mutex);
  return NULL;
}

static void run_destroy_locked(rn_models_t* models, rn_managed_version_t* managed) {
  rn_version_t* version = managed->version;
  rn_mutex_unlock(&models->mutex);
  rn_version_destroy(version);
  rn_mutex_lock(&models->mutex);
  managed->version = NULL;
  rn_status_t outcome = managed->outcome;
  managed->outcome = RN_OK;
  if (rn_ok(outcome)) {
    managed->state = RN_MODEL_END;
    rn_log(models->env, RN_LOG_INFO, "Done unloading servable version {name: %s version: %ld}",
           managed->model->name, (long)managed->number);
  } else {
    rn_managed_fail_locked(models, managed, outcome);
  }
  job_done_locked(models, managed);
}

void* rn_models_destroy_jobs(void* arg) {
  rn_models_t* models = arg;
  rn_quiet_thread();
  rn_mutex_lock(&models->mutex);
  for (rn_managed_version_t* v; (v = pop(models, &models->destroys));)
    run_destroy_locked(models, v);
  rn_mutex_unlock(&models->mutex);
  return NULL;
}
