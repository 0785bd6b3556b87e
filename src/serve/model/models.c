// The interface of the manager of models: see models.h and models_internal.h.
#include "serve/model/models.h"

#include "serve/model/models_internal.h"

const char* rn_model_state_name(rn_model_state_t state) {
  switch (state) {
    case RN_MODEL_START:
      return "START";
    case RN_MODEL_LOADING:
      return "LOADING";
    case RN_MODEL_AVAILABLE:
      return "AVAILABLE";
    case RN_MODEL_UNLOADING:
      return "UNLOADING";
    case RN_MODEL_END:
      return "END";
    default:
      return "UNKNOWN";
  }
}

// Life.

static rn_status_t start_threads(rn_models_t* models) {
  int wanted = models->options.load_threads > 1 ? models->options.load_threads : 1;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(models->allocator, (size_t)wanted, &models->loaders));
  models->options.load_threads = wanted;
  models->has_manager = pthread_create(&models->manager, NULL, rn_models_manage, models) == 0;
  models->has_destroyer =
      pthread_create(&models->destroyer, NULL, rn_models_destroy_jobs, models) == 0;
  while (models->loader_count < wanted && pthread_create(&models->loaders[models->loader_count],
                                                         NULL, rn_models_load_jobs, models) == 0)
    ++models->loader_count;
  if (models->has_manager && models->has_destroyer && models->loader_count) return RN_OK;
  return rn_resource_exhausted("No threads for loading models");
}

rn_status_t rn_models_create(const rn_models_options_t* options, rn_models_t** out) {
  *out = NULL;
  rn_models_t* models = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &models));
  models->options = *options;
  models->allocator = options->allocator;
  models->env = options->env;
  models->next_look_ns = INT64_MAX;
  rn_mutex_init(&models->mutex);
  rn_cond_init(&models->changed);
  rn_cond_init(&models->wanted);
  rn_cond_init(&models->loads.filled);
  rn_cond_init(&models->destroys.filled);
  rn_status_t status = start_threads(models);
  if (!rn_ok(status)) {
    rn_models_destroy(models);
    return status;
  }
  *out = models;
  return RN_OK;
}

void rn_models_wake_locked(rn_models_t* models) {
  models->needs_turn = true;
  rn_cond_signal(&models->wanted);
}

static bool is_empty_locked(const rn_models_t* models) {
  for (size_t i = 0; i < models->models.count; ++i)
    for (const rn_managed_version_t* v = models->models.items[i]->versions; v; v = v->next)
      if (v->version || v->job != RN_JOB_NONE) return false;
  return true;
}

static void end_threads(rn_models_t* models) {
  rn_mutex_lock(&models->mutex);
  models->is_closing = true;
  rn_models_wake_locked(models);
  while (!is_empty_locked(models)) rn_cond_wait(&models->changed, &models->mutex);
  models->is_ending = true;
  rn_cond_broadcast(&models->wanted);
  rn_cond_broadcast(&models->loads.filled);
  rn_cond_broadcast(&models->destroys.filled);
  rn_mutex_unlock(&models->mutex);
  if (models->has_manager) pthread_join(models->manager, NULL);
  if (models->has_destroyer) pthread_join(models->destroyer, NULL);
  for (int i = 0; i < models->loader_count; ++i) pthread_join(models->loaders[i], NULL);
}

void rn_managed_model_free(rn_models_t* models, rn_managed_model_t* model) {
  for (rn_managed_version_t* v = model->versions; v;) {
    rn_managed_version_t* next = v->next;
    rn_status_free(v->health);
    rn_free(models->allocator, v->folder, strlen(v->folder) + 1);
    RN_FREE(models->allocator, v);
    v = next;
  }
  rn_managed_config_release_locked(model->config);
  rn_status_free(model->trouble);
  if (model->name) rn_free(models->allocator, model->name, model->name_size + 1);
  RN_FREE(models->allocator, model);
}

void rn_models_destroy(rn_models_t* models) {
  if (!models) return;
  end_threads(models);
  rn_model_view_replace(&models->view, NULL);
  for (size_t i = 0; i < models->models.count; ++i)
    rn_managed_model_free(models, models->models.items[i]);
  rn_vec_free(&models->models, models->allocator);
  RN_FREE_ARRAY(models->allocator, models->loaders, models->options.load_threads);
  rn_cond_destroy(&models->destroys.filled);
  rn_cond_destroy(&models->loads.filled);
  rn_cond_destroy(&models->wanted);
  rn_cond_destroy(&models->changed);
  rn_mutex_destroy(&models->mutex);
  RN_FREE(models->allocator, models);
}

rn_managed_model_t* rn_models_model_locked(rn_models_t* models, rn_str_t name) {
  for (size_t i = 0; i < models->models.count; ++i)
    if (rn_str_eq(rn_managed_name(models->models.items[i]), name)) return models->models.items[i];
  return NULL;
}

// Waiting.

// What is still to come of a model.
typedef struct outlook_t {
  bool is_busy;       // something is being loaded, or is about to be
  bool waits;         // for another try
  bool is_available;  // some version
  const rn_managed_version_t* failed;
} outlook_t;

static outlook_t look_out(const rn_models_t* models, const rn_managed_model_t* model) {
  outlook_t outlook = {0};
  for (const rn_managed_version_t* v = model->versions; v; v = v->next) {
    outlook.is_available |= v->state == RN_MODEL_AVAILABLE;
    if (!rn_managed_is_wanted(models, v) || v->state == RN_MODEL_AVAILABLE) continue;
    bool is_idle = v->job == RN_JOB_NONE && !v->version;
    bool is_waiting = is_idle && v->state == RN_MODEL_LOADING && v->tries;
    outlook.waits |= is_waiting && !v->is_failed;
    outlook.is_busy |= !v->is_failed && !is_waiting;
    if (!rn_ok(v->health) && !outlook.failed) outlook.failed = v;
  }
  return outlook;
}

// True when nothing is left to wait for.
static bool is_settled_locked(rn_models_t* models) {
  if (!models->is_configured) return false;
  for (size_t i = 0; i < models->models.count; ++i) {
    const rn_managed_model_t* model = models->models.items[i];
    if (!model->is_configured || model->is_off) continue;
    outlook_t outlook = look_out(models, model);
    if (!model->is_looked || outlook.is_busy || outlook.waits) return false;
    if (!outlook.is_available && !outlook.failed) return false;
  }
  return true;
}

// An error of |code| that lists the models without an available version, and why; OK if there are
// none.
static rn_status_t failures_locked(rn_models_t* models, rn_code_t code) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, models->allocator);
  int count = 0;
  for (size_t i = 0; i < models->models.count; ++i) {
    const rn_managed_model_t* model = models->models.items[i];
    outlook_t outlook = look_out(models, model);
    if (!model->is_configured || model->is_off || outlook.is_available) continue;
    rn_status_t why = outlook.failed ? outlook.failed->health : model->trouble;
    ++count;
    rn_strbuf_printf(&text, "{{name: %s", model->name);
    if (outlook.failed) rn_strbuf_printf(&text, " version: %ld", (long)outlook.failed->number);
    rn_strbuf_printf(&text, "}");
    if (!rn_ok(why))
      rn_strbuf_printf(&text, " due to error: %s: %s", rn_code_name(rn_status_code(why)),
                       rn_status_message(why));
    rn_strbuf_printf(&text, "}, ");
  }
  rn_status_t status = RN_OK;
  if (count)
    status = rn_status_make(code, "%d model(s) did not become available: {%s}", count,
                            text.data ? text.data : "");
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_models_wait(rn_models_t* models, int64_t deadline_ns) {
  bool is_in_time = true;
  rn_mutex_lock(&models->mutex);
  while (is_in_time && !is_settled_locked(models))
    is_in_time = rn_cond_wait_until(&models->changed, &models->mutex, deadline_ns);
  bool is_settled = is_settled_locked(models);
  rn_status_t status =
      failures_locked(models, is_settled ? RN_CODE_UNKNOWN : RN_CODE_DEADLINE_EXCEEDED);
  if (rn_ok(status) && !is_settled)
    status = rn_deadline_exceeded("Not every version was loaded in time");
  rn_mutex_unlock(&models->mutex);
  return status;
}

// Asks for a look at the base paths; its number.
static int64_t ask_locked(rn_models_t* models) {
  int64_t look = ++models->looks_asked;
  rn_models_wake_locked(models);
  return look;
}

static bool is_busy_locked(const rn_models_t* models) {
  for (size_t i = 0; i < models->models.count; ++i)
    if (look_out(models, models->models.items[i]).is_busy) return true;
  return false;
}

rn_status_t rn_models_poll(rn_models_t* models) {
  rn_mutex_lock(&models->mutex);
  int64_t look = ask_locked(models);
  while (models->looks_done < look || models->needs_turn || is_busy_locked(models))
    rn_cond_wait(&models->changed, &models->mutex);
  rn_mutex_unlock(&models->mutex);
  return RN_OK;
}

static rn_status_t no_model(rn_str_t name) {
  return rn_not_found("Servable not found for request: Latest(%.*s)", RN_STR_ARGS(name));
}

// Puts the configuration of the list in force again, or a variant of it with |policy|.
static rn_status_t set_policy_locked(rn_models_t* models, rn_managed_model_t* model,
                                     const rn_version_policy_t* policy) {
  rn_managed_config_t* listed = model->config->listed ? model->config->listed : model->config;
  rn_managed_config_t* next = listed;
  if (policy) {
    rn_pb_serving_ModelConfig_t changed = *listed->config;
    changed.model_version_policy = (rn_version_policy_t*)(uintptr_t)policy;
    rn_status_t status = rn_managed_config_copy(models, &changed, &next);
    if (!rn_ok(status)) {
      rn_managed_config_release_locked(next);
      return status;
    }
    next->listed = listed;
  }
  if (next == model->config) return RN_OK;
  listed->refs++;  // of the variant, or of the model
  rn_managed_config_release_locked(model->config);
  model->config = next;
  return RN_OK;
}

rn_status_t rn_models_load(rn_models_t* models, rn_str_t name, const rn_version_policy_t* policy,
                           int64_t deadline_ns) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&models->mutex);
  rn_managed_model_t* model = rn_models_model_locked(models, name);
  if (!model || !model->is_configured) {
    rn_mutex_unlock(&models->mutex);
    return no_model(name);
  }
  status = set_policy_locked(models, model, policy);
  if (!rn_ok(status)) {
    rn_mutex_unlock(&models->mutex);
    return status;
  }
  model->is_off = false;
  for (rn_managed_version_t* v = model->versions; v; v = v->next) rn_managed_retry_locked(v);
  int64_t look = ask_locked(models);
  bool is_in_time = true;
  while (is_in_time &&
         (models->looks_done < look || models->needs_turn || look_out(models, model).is_busy))
    is_in_time = rn_cond_wait_until(&models->changed, &models->mutex, deadline_ns);
  outlook_t outlook = look_out(models, model);
  if (!is_in_time)
    status = rn_deadline_exceeded("Model %.*s was not loaded in time", RN_STR_ARGS(name));
  else if (!outlook.is_available && outlook.failed)
    status = rn_status_copy(outlook.failed->health);
  else if (!outlook.is_available && !rn_ok(model->trouble))
    status = rn_status_copy(model->trouble);
  else if (!outlook.is_available)
    status = rn_not_found("Could not find any versions of model %.*s", RN_STR_ARGS(name));
  rn_mutex_unlock(&models->mutex);
  return status;
}

rn_status_t rn_models_unload(rn_models_t* models, rn_str_t name) {
  rn_mutex_lock(&models->mutex);
  rn_managed_model_t* model = rn_models_model_locked(models, name);
  bool is_known = model && model->is_configured;
  if (is_known) {
    model->is_off = true;
    rn_models_wake_locked(models);
  }
  while (is_known && look_out(models, model).is_available)
    rn_cond_wait(&models->changed, &models->mutex);
  rn_mutex_unlock(&models->mutex);
  return is_known ? RN_OK : no_model(name);
}

// Requests.

rn_status_t rn_models_find(rn_models_t* models, const rn_model_spec_t* spec, rn_version_t** out) {
  return rn_model_view_find(&models->view, spec, out);
}

static rn_status_t describe_versions(const rn_managed_model_t* model, rn_arena_t* arena,
                                     rn_model_info_t* out) {
  size_t count = 0;
  for (const rn_managed_version_t* v = model->versions; v; v = v->next) ++count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->versions));
  for (rn_managed_version_t* v = model->versions; v; v = v->next) {
    rn_version_info_t* info = &out->versions[out->version_count];
    rn_str_t message;
    RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_str(rn_status_message(v->health)), &message));
    *info = (rn_version_info_t){.number = v->number,
                                .state = v->state,
                                .code = rn_status_code(v->health),
                                .message = message.data};
    if (v->state == RN_MODEL_AVAILABLE) rn_version_retain(info->version = v->version);
    ++out->version_count;
  }
  return RN_OK;
}

static rn_status_t describe_model(const rn_managed_model_t* model, rn_arena_t* arena,
                                  rn_model_info_t* out) {
  const rn_pb_serving_ModelConfig_t* config = model->config->config;
  uint32_t labels = model->is_configured ? config->version_labels.count : 0;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, config->name, &out->name));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, config->base_path, &out->base_path));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, model->config->platform, &out->platform));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)labels, &out->labels));
  for (uint32_t i = 0; i < labels; ++i) {
    RN_RETURN_IF_ERROR(
        rn_arena_str(arena, config->version_labels.items[i].key, &out->labels[i].label));
    out->labels[i].version = config->version_labels.items[i].value;
    ++out->label_count;
  }
  return describe_versions(model, arena, out);
}

rn_status_t rn_models_info(rn_models_t* models, rn_str_t name, rn_arena_t* arena,
                           rn_model_info_t** out, int* out_count) {
  *out = NULL;
  *out_count = 0;
  rn_mutex_lock(&models->mutex);
  rn_status_t status = RN_ARENA_ARRAY(arena, models->models.count, out);
  for (size_t i = 0; rn_ok(status) && i < models->models.count; ++i) {
    const rn_managed_model_t* model = models->models.items[i];
    bool is_meant = !name.size || rn_str_eq(rn_managed_name(model), name);
    if (is_meant && model->config) status = describe_model(model, arena, &(*out)[(*out_count)++]);
  }
  rn_mutex_unlock(&models->mutex);
  if (rn_ok(status) && name.size && !*out_count)
    status = rn_not_found("Could not find any versions of model %.*s", RN_STR_ARGS(name));
  if (!rn_ok(status)) rn_models_info_clear(*out, *out_count);
  return status;
}

void rn_models_info_clear(rn_model_info_t* infos, int count) {
  for (int i = 0; i < count; ++i) {
    for (int v = 0; v < infos[i].version_count; ++v) {
      rn_version_release(infos[i].versions[v].version);
      infos[i].versions[v].version = NULL;
    }
  }
}
