// The registry of applications. See apps.h.
#include "serve/select/apps.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/fs.h"
#include "serve/select/apps_internal.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

#define WINDOW_COUNT ((size_t)1 << 16)
#define WINDOW_BYTES ((size_t)32 << 20)
#define MAX_FILE ((size_t)16 << 20)
#define APP_PREFIX "/app/"
#define MODEL_PREFIX "/model/"

typedef rn_pb_runnel_ApplicationModel_t definition_model_t;

static rn_str_t behind(rn_str_t key, rn_str_t prefix) {
  return rn_str_n(key.data + prefix.size, key.size - prefix.size);
}

// Puts |app| in the place of one of the same name, and takes it. The old one is released.
static rn_status_t replace(rn_apps_t* apps, rn_app_t* app) {
  rn_mutex_lock(&apps->mutex);
  rn_app_t* old = rn_map_remove(&apps->apps, app->definition->name);  // its key goes with it
  rn_status_t status = rn_map_put(&apps->apps, app->definition->name, app);
  rn_mutex_unlock(&apps->mutex);
  rn_app_release(old);
  if (!rn_ok(status)) rn_app_release(app);
  return status;
}

typedef struct apps_load_t {
  rn_apps_t* apps;
  rn_status_t status;
} apps_load_t;

static void load_app(void* arg, rn_str_t key, rn_str_t value) {
  apps_load_t* load = arg;
  if (!rn_ok(load->status)) return;
  rn_arena_t arena;
  rn_arena_init(&arena, load->apps->options.allocator);
  rn_app_definition_t* definition = NULL;
  rn_app_t* app = NULL;
  load->status = RN_PB_DECODE(runnel_Application, value, NULL, &arena, &definition);
  if (rn_ok(load->status))
    load->status = rn_app_create(definition, NULL, load->apps->options.allocator, &app);
  if (rn_ok(load->status)) load->status = replace(load->apps, app);
  load->status = rn_status_annotate(load->status, " (saved as %.*s)", RN_STR_ARGS(key));
  rn_arena_clear(&arena);
}

static rn_status_t note_version(rn_apps_t* apps, rn_str_t model, int64_t version) {
  rn_mutex_lock(&apps->mutex);
  rn_status_t status = RN_OK;
  size_t i = 0;
  while (i < apps->versions.count && !rn_str_eq(apps->versions.items[i].model, model)) ++i;
  if (i == apps->versions.count) {
    rn_str_t name;
    status = rn_vec_reserve(&apps->versions, apps->options.allocator, i + 1);
    if (rn_ok(status)) status = rn_arena_str(&apps->names, model, &name);
    if (rn_ok(status)) apps->versions.items[apps->versions.count++].model = name;
  }
  if (rn_ok(status)) apps->versions.items[i].version = version;
  rn_mutex_unlock(&apps->mutex);
  return status;
}

static void load_version(void* arg, rn_str_t key, rn_str_t value) {
  apps_load_t* load = arg;
  int64_t version;
  if (!rn_ok(load->status) || !rn_str_to_i64(value, &version)) return;
  load->status = note_version(load->apps, behind(key, RN_STR(MODEL_PREFIX)), version);
}

// Another front end has defined, changed or removed an application, or chosen a version.
static rn_status_t follow(rn_apps_t* apps, rn_str_t key, rn_str_t value) {
  rn_str_t app_prefix = RN_STR(APP_PREFIX), model_prefix = RN_STR(MODEL_PREFIX);
  int64_t version = 0;
  if (rn_str_starts_with(key, model_prefix)) {
    rn_str_to_i64(value, &version);  // "": the latest again
    return note_version(apps, behind(key, model_prefix), version);
  }
  if (!rn_str_starts_with(key, app_prefix)) return RN_OK;
  rn_app_definition_t* definition = NULL;
  rn_app_t *app = NULL, *previous = rn_apps_find(apps, behind(key, app_prefix));
  rn_arena_t arena;
  rn_arena_init(&arena, apps->options.allocator);
  rn_status_t status = RN_OK;
  if (value.size) {
    status = RN_PB_DECODE(runnel_Application, value, NULL, &arena, &definition);
    if (rn_ok(status)) status = rn_app_create(definition, previous, apps->options.allocator, &app);
    if (rn_ok(status)) status = replace(apps, app);
  } else {
    rn_mutex_lock(&apps->mutex);
    app = rn_map_remove(&apps->apps, behind(key, app_prefix));
    rn_mutex_unlock(&apps->mutex);
    rn_app_release(app);
  }
  rn_arena_clear(&arena);
  rn_app_release(previous);
  return status;
}

static void noticed(void* self, rn_str_t key, rn_str_t value) {
  rn_apps_t* apps = self;
  rn_mutex_lock(&apps->changing);
  rn_status_t status = follow(apps, key, value);
  rn_mutex_unlock(&apps->changing);
  if (!rn_ok(status))
    rn_log(apps->options.env, RN_LOG_WARNING, "%.*s of another front end: %s", RN_STR_ARGS(key),
           rn_status_message(status));
  rn_status_free(status);
}

static rn_status_t set_up(rn_apps_t* apps) {
  const rn_apps_options_t* options = &apps->options;
  RN_RETURN_IF_ERROR(rn_served_create(options->env, options->allocator,
                                      options->window_count ? options->window_count : WINDOW_COUNT,
                                      options->window_bytes ? options->window_bytes : WINDOW_BYTES,
                                      &apps->served));
  rn_state_store_attach(options->store, rn_apps_apply, noticed, apps);
  apps_load_t load = {apps, RN_OK};
  rn_state_store_each(options->store, RN_STR(APP_PREFIX), load_app, &load);
  rn_state_store_each(options->store, RN_STR(MODEL_PREFIX), load_version, &load);
  return load.status;
}

rn_status_t rn_apps_create(const rn_apps_options_t* options, rn_apps_t** out) {
  *out = NULL;
  rn_apps_t* apps = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &apps));
  apps->options = *options;
  atomic_init(&apps->draw, options->env->random(options->env->self));
  rn_mutex_init(&apps->changing);
  rn_mutex_init(&apps->mutex);
  rn_cond_init(&apps->idle);
  rn_map_init(&apps->apps, options->allocator);
  rn_arena_init(&apps->names, options->allocator);
  rn_status_t status = set_up(apps);
  if (!rn_ok(status)) {
    rn_apps_destroy(apps);
    return status;
  }
  *out = apps;
  return RN_OK;
}

void rn_apps_destroy(rn_apps_t* apps) {
  if (!apps) return;
  rn_mutex_lock(&apps->mutex);
  while (apps->running) rn_cond_wait(&apps->idle, &apps->mutex);
  rn_mutex_unlock(&apps->mutex);
  if (apps->options.queries) rn_redis_queries_stop(apps->options.queries);
  rn_status_free(rn_state_store_flush(apps->options.store));  // what it cannot save is logged
  rn_state_store_attach(apps->options.store, NULL, NULL, NULL);
  size_t position = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&apps->apps, &position));)
    rn_app_release(entry->value);
  rn_map_clear(&apps->apps);
  rn_vec_free(&apps->versions, apps->options.allocator);
  rn_arena_clear(&apps->names);
  rn_served_destroy(apps->served);
  rn_cond_destroy(&apps->idle);
  rn_mutex_destroy(&apps->mutex);
  rn_mutex_destroy(&apps->changing);
  RN_FREE(apps->options.allocator, apps);
}

rn_state_store_t* rn_apps_store(rn_apps_t* apps) { return apps->options.store; }

rn_app_t* rn_apps_find(rn_apps_t* apps, rn_str_t name) {
  rn_mutex_lock(&apps->mutex);
  rn_app_t* app = rn_map_get(&apps->apps, name);
  if (app) rn_app_retain(app);
  rn_mutex_unlock(&apps->mutex);
  return app;
}

static int by_name(const void* a, const void* b) {
  return rn_str_compare((*(rn_app_t* const*)a)->definition->name,
                        (*(rn_app_t* const*)b)->definition->name);
}

rn_status_t rn_apps_each(rn_apps_t* apps, void (*fn)(void* arg, rn_app_t* app), void* arg) {
  RN_VEC(rn_app_t*) list = {0};
  rn_allocator_t allocator = apps->options.allocator;
  rn_mutex_lock(&apps->mutex);
  rn_status_t status = rn_vec_reserve(&list, allocator, apps->apps.count);
  size_t position = 0;
  for (const rn_map_entry_t* entry;
       rn_ok(status) && (entry = rn_map_next(&apps->apps, &position));) {
    list.items[list.count] = entry->value;
    rn_app_retain(list.items[list.count++]);
  }
  rn_mutex_unlock(&apps->mutex);
  if (list.count) qsort(list.items, list.count, sizeof *list.items, by_name);
  for (size_t i = 0; i < list.count; ++i) {
    fn(arg, list.items[i]);
    rn_app_release(list.items[i]);
  }
  rn_vec_free(&list, allocator);
  return status;
}

// Saves a definition, or "" for one that is removed, under its name.
static rn_status_t save(rn_apps_t* apps, rn_str_t name, rn_str_t value) {
  char key[RN_STATE_MAX_KEY];
  int size = snprintf(key, sizeof key, APP_PREFIX "%.*s", RN_STR_ARGS(name));
  return rn_state_store_put(apps->options.store, rn_str_n(key, (size_t)size), value);
}

// Makes |definition| an application that follows |previous| (NULL: none), saves and shows it.
// |changing| is held.
static rn_status_t define(rn_apps_t* apps, const rn_app_definition_t* definition,
                          const rn_app_t* previous) {
  rn_app_t* app = NULL;
  rn_strbuf_t bytes;
  RN_RETURN_IF_ERROR(rn_app_create(definition, previous, apps->options.allocator, &app));
  rn_strbuf_init(&bytes, apps->options.allocator);
  rn_status_t status = RN_PB_ENCODE(runnel_Application, app->definition, NULL, &bytes);
  if (rn_ok(status)) status = save(apps, app->definition->name, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  if (!rn_ok(status)) {
    rn_app_release(app);
    return status;
  }
  return replace(apps, app);
}

static definition_model_t* find_model(rn_app_definition_t* definition, rn_str_t name) {
  for (uint32_t i = 0; i < definition->model.count; ++i)
    if (rn_str_eq(definition->model.items[i].name, name)) return &definition->model.items[i];
  return NULL;
}

// |*inout| gets the models of |previous| first, unlinked unless it has them itself: the numbers of
// arms stay what states know them by.
static rn_status_t keep_arms(const rn_app_definition_t* previous, rn_arena_t* arena,
                             rn_app_definition_t* inout) {
  rn_app_definition_t merged = *inout;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, previous->model.count + (size_t)inout->model.count,
                                    &merged.model.items));
  merged.model.count = 0;
  for (uint32_t i = 0; i < previous->model.count; ++i) {
    definition_model_t* model = &merged.model.items[merged.model.count++];
    definition_model_t* kept = find_model(inout, previous->model.items[i].name);
    *model = kept ? *kept : previous->model.items[i];
    model->is_unlinked = !kept || kept->is_unlinked;
  }
  for (uint32_t i = 0; i < inout->model.count; ++i)
    if (!find_model(&merged, inout->model.items[i].name))
      merged.model.items[merged.model.count++] = inout->model.items[i];
  *inout = merged;
  return RN_OK;
}

rn_status_t rn_apps_add(rn_apps_t* apps, const rn_app_definition_t* definition) {
  rn_mutex_lock(&apps->changing);
  rn_app_t* previous = rn_apps_find(apps, definition->name);
  rn_status_t status = previous ? rn_already_exists("app with name '%.*s' already exists",
                                                    RN_STR_ARGS(definition->name))
                                : define(apps, definition, NULL);
  rn_app_release(previous);
  rn_mutex_unlock(&apps->changing);
  return status;
}

static rn_status_t no_app(rn_str_t name) {
  return rn_not_found("No app with name '%.*s' exists.", RN_STR_ARGS(name));
}

rn_status_t rn_apps_remove(rn_apps_t* apps, rn_str_t name) {
  rn_mutex_lock(&apps->changing);
  rn_app_t* app = rn_apps_find(apps, name);
  rn_status_t status = app ? save(apps, name, RN_STR("")) : no_app(name);
  if (rn_ok(status)) {
    rn_mutex_lock(&apps->mutex);
    rn_app_t* removed = rn_map_remove(&apps->apps, name);
    rn_mutex_unlock(&apps->mutex);
    rn_app_release(removed);
  }
  rn_app_release(app);
  rn_mutex_unlock(&apps->changing);
  return status;
}

static rn_status_t edit_links(const rn_app_definition_t* old, const rn_str_t* models, int count,
                              bool links, rn_arena_t* arena, rn_app_definition_t* out) {
  *out = *old;
  size_t room = old->model.count + (size_t)count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &out->model.items));
  for (uint32_t i = 0; i < old->model.count; ++i) out->model.items[i] = old->model.items[i];
  for (int i = 0; i < count; ++i) {
    definition_model_t* model = find_model(out, models[i]);
    if (!model && !links)
      return rn_not_found("Model '%.*s' is not linked to app '%.*s'.", RN_STR_ARGS(models[i]),
                          RN_STR_ARGS(old->name));
    if (!model) {
      model = &out->model.items[out->model.count++];
      *model = (definition_model_t){.name = models[i]};
    }
    model->is_unlinked = !links;
  }
  return RN_OK;
}

static rn_status_t change_links(rn_apps_t* apps, rn_str_t name, const rn_str_t* models, int count,
                                bool links) {
  rn_arena_t arena;
  rn_arena_init(&arena, apps->options.allocator);
  rn_mutex_lock(&apps->changing);
  rn_app_t* app = rn_apps_find(apps, name);
  rn_app_definition_t definition;
  rn_status_t status =
      app ? edit_links(app->definition, models, count, links, &arena, &definition) : no_app(name);
  if (rn_ok(status)) status = define(apps, &definition, app);
  rn_app_release(app);
  rn_mutex_unlock(&apps->changing);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_apps_link(rn_apps_t* apps, rn_str_t name, const rn_str_t* models, int count) {
  return change_links(apps, name, models, count, true);
}

rn_status_t rn_apps_unlink(rn_apps_t* apps, rn_str_t name, const rn_str_t* models, int count) {
  return change_links(apps, name, models, count, false);
}

rn_status_t rn_apps_set_version(rn_apps_t* apps, rn_str_t model, int64_t version) {
  char key[RN_STATE_MAX_KEY], value[32];
  if (!model.size || model.size > sizeof key / 2 || version < 0)
    return rn_invalid_argument("Model '%.*s' cannot have version %lld", RN_STR_ARGS(model),
                               (long long)version);
  int key_size = snprintf(key, sizeof key, MODEL_PREFIX "%.*s", RN_STR_ARGS(model));
  int size = snprintf(value, sizeof value, "%lld", (long long)version);
  RN_RETURN_IF_ERROR(note_version(apps, model, version));
  return rn_state_store_put(apps->options.store, rn_str_n(key, (size_t)key_size),
                            rn_str_n(value, (size_t)size));
}

int64_t rn_apps_version(rn_apps_t* apps, rn_str_t model) {
  int64_t version = 0;
  rn_mutex_lock(&apps->mutex);
  for (size_t i = 0; i < apps->versions.count && !version; ++i)
    if (rn_str_eq(apps->versions.items[i].model, model)) version = apps->versions.items[i].version;
  rn_mutex_unlock(&apps->mutex);
  return version;
}

static rn_status_t put_definition(rn_apps_t* apps, const rn_app_definition_t* definition,
                                  rn_arena_t* arena) {
  rn_app_definition_t merged = *definition;
  rn_mutex_lock(&apps->changing);
  rn_app_t* previous = rn_apps_find(apps, definition->name);
  rn_status_t status = previous ? keep_arms(previous->definition, arena, &merged) : RN_OK;
  if (rn_ok(status)) status = define(apps, &merged, previous);
  rn_app_release(previous);
  rn_mutex_unlock(&apps->changing);
  return status;
}

// Reads and checks a file. |*out| is in |arena|.
static rn_status_t read_list(const rn_env_t* env, const char* path, rn_arena_t* arena,
                             rn_pb_runnel_ApplicationList_t** out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  rn_status_t status = rn_fs_read(env, path, MAX_FILE, &text);
  if (rn_ok(status))
    status = rn_pb_parse(&rn_pb_runnel_ApplicationList_desc, rn_strbuf_view(&text), NULL, arena,
                         (void**)out);
  rn_strbuf_clear(&text);
  for (uint32_t i = 0; rn_ok(status) && i < (*out)->application.count; ++i) {
    const rn_app_definition_t* definition = &(*out)->application.items[i];
    for (uint32_t j = 0; rn_ok(status) && j < i; ++j)
      if (rn_str_eq(definition->name, (*out)->application.items[j].name))
        status = rn_invalid_argument("Application '%.*s' is defined twice",
                                     RN_STR_ARGS(definition->name));
    if (rn_ok(status)) status = rn_app_check(definition, arena->allocator);
  }
  return rn_status_annotate(status, "; %s", path);
}

rn_status_t rn_apps_check_file(const rn_env_t* env, const char* path, rn_allocator_t allocator) {
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_pb_runnel_ApplicationList_t* list = NULL;
  rn_status_t status = read_list(env, path, &arena, &list);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_apps_read_file(rn_apps_t* apps, const char* path) {
  rn_arena_t arena;
  rn_arena_init(&arena, apps->options.allocator);
  rn_pb_runnel_ApplicationList_t* list = NULL;
  // Nothing changes unless every definition is good.
  rn_status_t status = read_list(apps->options.env, path, &arena, &list);
  for (uint32_t i = 0; rn_ok(status) && i < list->application.count; ++i)
    status = put_definition(apps, &list->application.items[i], &arena);
  rn_arena_clear(&arena);
  return status;
}
