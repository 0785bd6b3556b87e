// Replaces the list of models: see models_internal.h.
#include "serve/model/config.h"
#include "serve/model/models_internal.h"
#include "wire/decode.h"
#include "wire/encode.h"

// One accepted configuration on its way: what each model gets, and had.
typedef struct reload_item_t {
  rn_managed_config_t* config;  // Owned; the old one after the exchange
  rn_managed_model_t* model;    // NULL: to be made
  bool was_configured;
} reload_item_t;
typedef struct reload_t {
  rn_models_t* models;
  reload_item_t* items;
  size_t count;
} reload_t;

rn_status_t rn_managed_config_copy(rn_models_t* models, const rn_pb_serving_ModelConfig_t* config,
                                   rn_managed_config_t** out) {
  rn_managed_config_t* copy = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(models->allocator, &copy));
  copy->refs = 1;
  rn_arena_init(&copy->arena, models->allocator);
  *out = copy;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, models->allocator);
  rn_pb_limits_t limits = {.copy_bytes = true};
  rn_pb_serving_ModelConfig_t* made = NULL;
  rn_status_t status = RN_PB_ENCODE(serving_ModelConfig, config, NULL, &bytes);
  if (rn_ok(status))
    status =
        RN_PB_DECODE(serving_ModelConfig, rn_strbuf_view(&bytes), &limits, &copy->arena, &made);
  rn_strbuf_clear(&bytes);
  copy->config = made;
  if (rn_ok(status))
    copy->platform = made->model_platform.size ? made->model_platform : RN_STR("tensorflow");
  return status;
}

static rn_status_t make_model(rn_models_t* models, rn_str_t name) {
  rn_managed_model_t* model = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(models->allocator, &model));
  rn_status_t status = rn_str_dup(models->allocator, name, &model->name);
  model->name_size = name.size;
  if (rn_ok(status)) status = rn_vec_push(&models->models, models->allocator, model);
  if (!rn_ok(status)) rn_managed_model_free(models, model);
  return status;
}

static bool is_available(const rn_managed_model_t* model, int64_t number) {
  for (const rn_managed_version_t* v = model ? model->versions : NULL; v; v = v->next)
    if (v->number == number) return v->state == RN_MODEL_AVAILABLE && !v->is_leaving;
  return false;
}

static bool is_label_elsewhere(const rn_managed_model_t* model, rn_str_t label, int64_t number) {
  if (!model || !model->is_configured) return false;
  const rn_pb_serving_ModelConfig_t* config = model->config->config;
  for (uint32_t i = config->version_labels.count; i-- > 0;)
    if (rn_str_eq(config->version_labels.items[i].key, label))
      return config->version_labels.items[i].value != number;
  return false;
}

// A label that is in use moves to loaded versions only, so that no request fails.
static rn_status_t check_labels(const reload_t* reload, const reload_item_t* item) {
  const rn_pb_serving_ModelConfig_t* config = item->config->config;
  for (uint32_t i = 0; i < config->version_labels.count; ++i) {
    int64_t number = config->version_labels.items[i].value;
    bool may_wait = reload->models->options.labels_unavailable &&
                    !is_label_elsewhere(item->model, config->version_labels.items[i].key, number);
    if (!may_wait && !is_available(item->model, number))
      return rn_failed_precondition(
          "Request to assign label to version %ld of model %.*s, which is not currently available "
          "for inference",
          (long)number, RN_STR_ARGS(config->name));
  }
  return RN_OK;
}

static rn_status_t check_item(const reload_t* reload, const reload_item_t* item) {
  const rn_managed_model_t* model = item->model;
  if (model && model->is_configured && !rn_str_eq(model->config->platform, item->config->platform))
    return rn_invalid_argument(
        "Illegal to change a model's platform. For model %s platform was %.*s and new platform "
        "requested is %.*s",
        model->name, RN_STR_ARGS(model->config->platform), RN_STR_ARGS(item->config->platform));
  return check_labels(reload, item);
}

// Gives every model its new part, or gives it back.
static void exchange(reload_t* reload) {
  for (size_t i = 0; i < reload->count; ++i) {
    reload_item_t* item = &reload->items[i];
    rn_managed_config_t* config = item->model->config;
    bool was_configured = item->model->is_configured;
    item->model->config = item->config;
    item->model->is_configured = item->was_configured;
    item->config = config;
    item->was_configured = was_configured;
  }
}

static rn_status_t put_in_force_locked(reload_t* reload) {
  rn_models_t* models = reload->models;
  for (size_t i = 0; i < reload->count; ++i) {
    reload_item_t* item = &reload->items[i];
    item->was_configured = true;
    item->model = rn_models_model_locked(models, item->config->config->name);
    RN_RETURN_IF_ERROR(check_item(reload, item));
  }
  for (size_t i = 0; i < reload->count; ++i) {
    reload_item_t* item = &reload->items[i];
    if (item->model) continue;
    RN_RETURN_IF_ERROR(make_model(models, item->config->config->name));
    item->model = models->models.items[models->models.count - 1];
  }
  // Models that are not listed are hidden after the listed ones are shown; both in one table.
  bool* was_configured = NULL;
  size_t count = models->models.count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(models->allocator, count + 1, &was_configured));
  for (size_t i = 0; i < count; ++i) {
    was_configured[i] = models->models.items[i]->is_configured;
    models->models.items[i]->is_configured = false;
  }
  exchange(reload);
  rn_status_t status = rn_models_publish_locked(models);
  if (!rn_ok(status)) {
    exchange(reload);
    for (size_t i = 0; i < count; ++i) models->models.items[i]->is_configured = was_configured[i];
  }
  RN_FREE_ARRAY(models->allocator, was_configured, count + 1);
  return status;
}

static rn_status_t reload_list(reload_t* reload, const rn_pb_serving_ModelConfigList_t* list) {
  rn_models_t* models = reload->models;
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(models->allocator, (size_t)list->config.count + 1, &reload->items));
  for (; reload->count < list->config.count; ++reload->count)
    RN_RETURN_IF_ERROR(rn_managed_config_copy(models, &list->config.items[reload->count],
                                              &reload->items[reload->count].config));
  rn_mutex_lock(&models->mutex);
  rn_status_t status = put_in_force_locked(reload);
  for (size_t i = 0; rn_ok(status) && i < reload->count; ++i) {
    rn_managed_model_t* model = reload->items[i].model;
    model->is_off = model->is_looked = false;
    for (rn_managed_version_t* v = model->versions; v; v = v->next) rn_managed_retry_locked(v);
  }
  if (rn_ok(status)) {
    models->is_configured = true;
    if (models->options.poll_ns >= 0) ++models->looks_asked;
    rn_models_wake_locked(models);
  }
  rn_mutex_unlock(&models->mutex);
  return status;
}

rn_status_t rn_models_configure(rn_models_t* models,
                                const rn_pb_serving_ModelServerConfig_t* config) {
  RN_RETURN_IF_ERROR(rn_config_check(config));
  if (config->config_case == 0) return RN_OK;
  reload_t reload = {.models = models};
  rn_status_t status = reload_list(&reload, config->model_config_list);
  rn_mutex_lock(&models->mutex);
  for (size_t i = 0; reload.items && i <= config->model_config_list->config.count; ++i)
    rn_managed_config_release_locked(reload.items[i].config);
  rn_mutex_unlock(&models->mutex);
  if (reload.items)
    RN_FREE_ARRAY(models->allocator, reload.items,
                  (size_t)config->model_config_list->config.count + 1);
  return status;
}
