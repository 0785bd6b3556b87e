// Decides which versions are loaded and unloaded, and shows them to requests: see
// models_internal.h.
#include "serve/model/models_internal.h"

// The most ended versions per model that stay listed.
#define MOST_ENDED 64
// The pause before the next try after memory for a table ran out.
#define NO_MEMORY_NS 100000000

static bool has_label(const rn_managed_model_t* model, int64_t number) {
  const rn_pb_serving_ModelConfig_t* config = model->config->config;
  for (uint32_t i = 0; i < config->version_labels.count; ++i)
    if (config->version_labels.items[i].value == number) return true;
  return false;
}

bool rn_managed_is_wanted(const rn_models_t* models, const rn_managed_version_t* version) {
  const rn_managed_model_t* model = version->model;
  if (models->is_closing || !model->is_configured || model->is_off) return false;
  return version->is_aspired ||
         (version->state == RN_MODEL_AVAILABLE && has_label(model, version->number));
}

// The table.

static bool is_shown(const rn_managed_version_t* version) {
  return (version->state == RN_MODEL_AVAILABLE && !version->is_leaving) || version->is_loaded;
}

static rn_status_t show_model(const rn_managed_model_t* model, rn_model_table_t* table) {
  int count = 0;
  for (const rn_managed_version_t* v = model->versions; v; v = v->next) count += is_shown(v);
  const rn_pb_serving_ModelConfig_t* config = model->config->config;
  rn_table_model_t* shown = NULL;
  RN_RETURN_IF_ERROR(rn_model_table_add(table, rn_managed_name(model), count,
                                        (int)config->version_labels.count, &shown));
  for (const rn_managed_version_t* v = model->versions; v; v = v->next)
    if (is_shown(v)) shown->versions[shown->version_count++] = v->version;
  // Of labels that are given twice, the last counts.
  for (uint32_t i = config->version_labels.count; i-- > 0;) {
    rn_table_label_t* label = &shown->labels[shown->label_count++];
    RN_RETURN_IF_ERROR(
        rn_arena_str(&table->arena, config->version_labels.items[i].key, &label->label));
    label->version = config->version_labels.items[i].value;
  }
  return RN_OK;
}

rn_status_t rn_models_publish_locked(rn_models_t* models) {
  rn_model_table_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_model_table_create(models->allocator, &table));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < models->models.count; ++i)
    if (models->models.items[i]->is_configured) status = show_model(models->models.items[i], table);
  if (rn_ok(status))
    rn_model_view_replace(&models->view, table);
  else
    rn_model_table_destroy(table);
  return status;
}

// Loading.

void rn_managed_retry_locked(rn_managed_version_t* version) {
  if (version->job != RN_JOB_NONE || version->version) return;
  version->tries = 0;
  version->retry_ns = 0;
  version->is_failed = false;
}

void rn_managed_fail_locked(rn_models_t* models, rn_managed_version_t* version,
                            rn_status_t status) {
  rn_status_free(version->health);
  version->health = status;
  version->is_failed = ++version->tries > models->options.max_load_retries;
  version->state = version->is_failed ? RN_MODEL_END : RN_MODEL_LOADING;
  version->retry_ns = models->env->now_ns(models->env->self) + models->options.retry_ns;
  rn_log(models->env, RN_LOG_ERROR,
         "Servable {name: %s version: %ld} cannot be loaded (try %d of %d): %s: %s",
         version->model->name, (long)version->number, version->tries,
         models->options.max_load_retries + 1, rn_code_name(rn_status_code(status)),
         rn_status_message(status));
}

// Begins to load |version|, or says when it can. With |waits|, an unload must end before.
static void advance(rn_models_t* models, rn_managed_version_t* version, bool waits, int64_t now,
                    int64_t* inout_wake_ns) {
  bool is_idle = version->job == RN_JOB_NONE && !version->version;
  bool is_wanted = rn_managed_is_wanted(models, version);
  if (!is_idle) return;
  if (!is_wanted) {
    version->state = RN_MODEL_END;
    rn_managed_retry_locked(version);
    return;
  }
  if (version->is_failed) return;
  if (version->state == RN_MODEL_END) version->state = RN_MODEL_START;
  if (waits) return;
  if (version->retry_ns > now) {
    if (version->retry_ns < *inout_wake_ns) *inout_wake_ns = version->retry_ns;
    return;
  }
  version->state = RN_MODEL_LOADING;
  rn_job_queue_push(&models->loads, version, RN_JOB_LOAD);
}

// Unloading.

// Availability-preserving: as long as no wanted version is there, one that is not wanted stays, the
// highest. Resource-preserving: all of them go first. True if something is being unloaded.
static bool choose_leaving(const rn_models_t* models, rn_managed_model_t* model) {
  bool has_wanted = false, has_available = false, is_unloading = false, keeps_one;
  for (rn_managed_version_t* v = model->versions; v; v = v->next) {
    bool is_wanted = rn_managed_is_wanted(models, v);
    has_wanted |= is_wanted;
    has_available |= is_wanted && (v->state == RN_MODEL_AVAILABLE || v->is_loaded);
  }
  keeps_one = has_wanted && !has_available && !models->options.unloads_first;
  for (rn_managed_version_t* v = model->versions; v; v = v->next) {
    bool is_wanted = rn_managed_is_wanted(models, v);
    if (v->is_loaded && !is_wanted) {  // no longer: requests never see it
      v->is_loaded = false;
      v->is_leaving = true;
      v->state = RN_MODEL_UNLOADING;
    } else if (v->state == RN_MODEL_AVAILABLE && !is_wanted) {
      v->is_leaving = !keeps_one;
      keeps_one = false;
    }
    is_unloading |= v->is_leaving || v->state == RN_MODEL_UNLOADING;
  }
  return is_unloading;
}

// Without a new table, those that would leave stay.
static void keep_leaving(rn_models_t* models) {
  for (size_t i = 0; i < models->models.count; ++i)
    for (rn_managed_version_t* v = models->models.items[i]->versions; v; v = v->next)
      if (v->state == RN_MODEL_AVAILABLE) v->is_leaving = false;
}

// After the table was shown: versions that were loaded are available, those that leave are
// unloading.
static void settle(rn_models_t* models) {
  for (size_t i = 0; i < models->models.count; ++i) {
    for (rn_managed_version_t* v = models->models.items[i]->versions; v; v = v->next) {
      if (v->is_leaving) v->state = RN_MODEL_UNLOADING;
      if (!v->is_loaded) continue;
      v->is_loaded = false;
      v->state = RN_MODEL_AVAILABLE;
      v->tries = 0;
      rn_status_free(v->health);
      v->health = RN_OK;
      rn_log(models->env, RN_LOG_INFO,
             "Successfully loaded servable version {name: %s version: %ld}", v->model->name,
             (long)v->number);
    }
  }
}

// A version that left and whose reference was not given back yet; NULL: none.
static rn_version_t* next_left(rn_models_t* models) {
  for (size_t i = 0; i < models->models.count; ++i) {
    for (rn_managed_version_t* v = models->models.items[i]->versions; v; v = v->next) {
      if (!v->is_leaving || v->state != RN_MODEL_UNLOADING) continue;
      v->is_leaving = false;
      return v->version;
    }
  }
  return NULL;
}

static void version_free(rn_models_t* models, rn_managed_version_t* version) {
  rn_status_free(version->health);
  rn_free(models->allocator, version->folder, strlen(version->folder) + 1);
  RN_FREE(models->allocator, version);
}

// Forgets the lowest of the versions that ended.
static void forget_ended(rn_models_t* models, rn_managed_model_t* model) {
  int count = 0;
  for (rn_managed_version_t** at = &model->versions; *at;) {
    rn_managed_version_t* v = *at;
    bool is_over = v->state == RN_MODEL_END && v->job == RN_JOB_NONE && !v->version &&
                   !rn_managed_is_wanted(models, v);
    if (is_over && ++count > MOST_ENDED) {
      *at = v->next;
      version_free(models, v);
    } else {
      at = &v->next;
    }
  }
}

// One round of decisions. |*out_wake_ns| is when the next one is due, whatever happens.
static void turn_locked(rn_models_t* models, int64_t* out_wake_ns) {
  int64_t now = models->env->now_ns(models->env->self);
  *out_wake_ns = INT64_MAX;
  models->needs_turn = false;
  bool changes = false;
  for (size_t i = 0; i < models->models.count; ++i) {
    rn_managed_model_t* model = models->models.items[i];
    bool is_unloading = choose_leaving(models, model);
    for (rn_managed_version_t* v = model->versions; v; v = v->next) {
      advance(models, v, models->options.unloads_first && is_unloading, now, out_wake_ns);
      changes |= v->is_loaded || v->is_leaving;
    }
    forget_ended(models, model);
  }
  if (!changes) return;
  rn_status_t status = rn_models_publish_locked(models);
  if (!rn_ok(status)) {
    rn_status_free(status);
    keep_leaving(models);
    *out_wake_ns = now + NO_MEMORY_NS;
    return;
  }
  settle(models);
  for (rn_version_t* version; (version = next_left(models));) {
    rn_mutex_unlock(&models->mutex);
    rn_version_release(version);
    rn_mutex_lock(&models->mutex);
  }
  models->needs_turn = true;  // what left may have made room
}

// Looking at the base paths.

static rn_status_t aspire(rn_models_t* models, rn_managed_model_t* model,
                          const rn_source_version_t* found) {
  rn_managed_version_t** at = &model->versions;
  while (*at && (*at)->number > found->number) at = &(*at)->next;
  rn_managed_version_t* version = *at;
  if (!version || version->number != found->number) {
    RN_RETURN_IF_ERROR(RN_NEW(models->allocator, &version));
    rn_status_t status = rn_str_dup(models->allocator, found->folder, &version->folder);
    if (!rn_ok(status)) {
      RN_FREE(models->allocator, version);
      return status;
    }
    version->number = found->number;
    version->model = model;
    version->state = RN_MODEL_START;
    version->next = *at;
    *at = version;
  }
  version->is_aspired = true;
  bool is_idle = version->job == RN_JOB_NONE && !version->version;
  if (!is_idle) return RN_OK;
  if (strcmp(version->folder, found->folder.data) != 0) {
    char* folder = NULL;
    RN_RETURN_IF_ERROR(rn_str_dup(models->allocator, found->folder, &folder));
    rn_free(models->allocator, version->folder, strlen(version->folder) + 1);
    version->folder = folder;
  }
  return RN_OK;
}

// Those that failed are tried again when their folders change. Looks without the lock; only this
// thread adds, moves and removes versions.
static void look_for_changes(rn_models_t* models, rn_managed_model_t* model) {
  for (rn_managed_version_t* v = model->versions; v; v = v->next) {
    bool has_failed = v->job == RN_JOB_NONE && !v->version && !rn_ok(v->health);
    if (!has_failed || !v->is_aspired) continue;
    rn_mutex_unlock(&models->mutex);
    uint64_t now = rn_source_fingerprint(models->env, v->folder, models->allocator);
    rn_mutex_lock(&models->mutex);
    if (now != v->fingerprint) rn_managed_retry_locked(v);
  }
}

static void apply(rn_models_t* models, rn_managed_model_t* model,
                  const rn_source_version_t* versions, int count) {
  if (!count && models->options.keeps_emptied) return;
  for (rn_managed_version_t* v = model->versions; v; v = v->next) v->is_aspired = false;
  for (int i = 0; i < count; ++i) rn_status_free(aspire(models, model, &versions[i]));
  look_for_changes(models, model);
}

// Remembers why there are no versions, and logs it once per configuration.
static void note_trouble(rn_models_t* models, rn_managed_model_t* model, rn_status_t trouble) {
  rn_status_free(model->trouble);
  model->trouble = trouble;
  if (!rn_ok(trouble) && !model->is_looked)
    rn_log(models->env, RN_LOG_WARNING, "%s", rn_status_message(trouble));
  model->is_looked = true;
}

// Looks at one base path, without the lock: a file system may take its time.
static void look_at(rn_models_t* models, size_t index) {
  rn_managed_model_t* model = models->models.items[index];
  rn_managed_config_t* config = model->config;
  if (!model->is_configured || model->is_off) return;
  config->refs++;
  rn_mutex_unlock(&models->mutex);
  rn_arena_t arena;
  rn_source_version_t* versions = NULL;
  int count = 0;
  rn_arena_init(&arena, models->allocator);
  rn_status_t status = rn_source_list(models->env, config->config, &arena, &versions, &count);
  rn_mutex_lock(&models->mutex);
  bool is_current = model->config == config && model->is_configured;
  if (is_current && rn_ok(status)) apply(models, model, versions, count);
  if (rn_ok(status) && !count)
    status = rn_not_found(
        "No versions of servable %s found under base path %.*s. Did you forget to name your leaf "
        "directory as a number (eg. '/1/')?",
        model->name, RN_STR_ARGS(config->config->base_path));
  if (is_current)
    note_trouble(models, model, status);
  else
    rn_status_free(status);
  rn_arena_clear(&arena);
  rn_managed_config_release_locked(config);
}

static void look_locked(rn_models_t* models) {
  int64_t asked = models->looks_asked;
  int64_t poll_ns = models->options.poll_ns;
  for (size_t i = 0; i < models->models.count && !models->is_closing; ++i) look_at(models, i);
  models->looks_done = asked;
  models->next_look_ns = poll_ns > 0 ? models->env->now_ns(models->env->self) + poll_ns : INT64_MAX;
}

void* rn_models_manage(void* arg) {
  rn_models_t* models = arg;
  rn_mutex_lock(&models->mutex);
  while (!models->is_ending) {
    int64_t now = models->env->now_ns(models->env->self), wake_ns;
    bool is_due = models->looks_done < models->looks_asked || now >= models->next_look_ns;
    if (is_due && !models->is_closing) look_locked(models);
    turn_locked(models, &wake_ns);
    rn_cond_broadcast(&models->changed);
    if (models->options.changed) models->options.changed(models->options.changed_self);
    if (models->next_look_ns < wake_ns) wake_ns = models->next_look_ns;
    while (!models->needs_turn && !models->is_ending && models->looks_done == models->looks_asked &&
           rn_cond_wait_until(&models->wanted, &models->mutex, wake_ns)) {
    }
  }
  rn_mutex_unlock(&models->mutex);
  return NULL;
}
