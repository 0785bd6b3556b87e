// Pages for people and probes: / and /statusz, /v1/models, /healthz, /readyz, metrics.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runnel/version.h"
#include "serve/front/front.h"
#include "serve/select/apps.h"

extern const char rn_page_text[], rn_page_text_end[];  // page.html

static json_t* json_text(rn_str_t text) {
  json_t* string = json_stringn(text.data ? text.data : "", text.size);
  return string ? string : json_string("(not UTF-8)");
}

static void set_number(json_t* object, const char* name, double value) {
  json_object_set_new(object, name, isfinite(value) ? json_real(value) : json_null());
}

static void set_count(json_t* object, const char* name, int64_t value) {
  json_object_set_new(object, name, json_integer(value));
}

static json_t* replica_json(const rn_version_t* version, int i) {
  rn_batcher_stats_t stats = rn_batcher_stats(rn_version_batcher(version, i));
  json_t* replica = json_object();
  json_object_set_new(replica, "kind", json_string(rn_version_backend(version)->vtable->kind));
  set_count(replica, "queued", stats.queued);
  set_count(replica, "running", stats.running);
  set_count(replica, "batches", stats.batches);
  set_count(replica, "rows", stats.rows);
  set_count(replica, "padded", stats.padded);
  set_count(replica, "refused", stats.refused);
  set_count(replica, "expired", stats.expired);
  set_count(replica, "cancelled", stats.cancelled);
  set_count(replica, "limit", stats.limit);
  set_number(replica, "wait_us", (double)stats.wait_ns / 1e3);
  return replica;
}

static json_t* version_json(const rn_version_info_t* info) {
  json_t* version = json_object();
  set_count(version, "version", info->number);
  json_object_set_new(version, "state", json_string(rn_model_state_name(info->state)));
  json_object_set_new(version, "message", json_text(rn_str(info->message)));
  if (!info->version) return version;
  json_t* replicas = json_array();
  for (int i = 0; i < rn_version_replica_count(info->version); ++i)
    json_array_append_new(replicas, replica_json(info->version, i));
  json_object_set_new(version, "replicas", replicas);
  return version;
}

// The sum of the series of a model: its label is the first one.
typedef struct page_sum_t {
  rn_str_t model;
  double bounds[RN_SERIES_BUCKETS];
  uint64_t counts[RN_SERIES_BUCKETS];
} page_sum_t;

static void add_series(void* arg, const rn_str_t labels[3], rn_metric_series_t* series) {
  page_sum_t* sum = arg;
  if (!rn_str_eq(labels[0], sum->model)) return;
  uint64_t counts[RN_SERIES_BUCKETS];
  rn_series_buckets(series, sum->bounds, counts);
  for (int i = 0; i < RN_SERIES_BUCKETS; ++i) sum->counts[i] += counts[i];
}

static json_t* histogram_json(const rn_front_t* front, rn_metric_id_t id, rn_str_t model) {
  page_sum_t sum = {.model = model};
  rn_metrics_each(front->metrics, id, add_series, &sum);
  json_t *histogram = json_object(), *bounds = json_array(), *counts = json_array();
  uint64_t all = 0;
  for (int i = 0; i < RN_SERIES_BUCKETS && (!i || isfinite(sum.bounds[i - 1])); ++i) {
    all += sum.counts[i];
    json_array_append_new(bounds, isfinite(sum.bounds[i]) ? json_real(sum.bounds[i]) : json_null());
    json_array_append_new(counts, json_integer((json_int_t)sum.counts[i]));
  }
  set_count(histogram, "count", (int64_t)all);
  set_number(histogram, "p50", rn_buckets_quantile(sum.bounds, sum.counts, 0.5));
  set_number(histogram, "p99", rn_buckets_quantile(sum.bounds, sum.counts, 0.99));
  json_object_set_new(histogram, "bounds", bounds);
  json_object_set_new(histogram, "counts", counts);
  return histogram;
}

static json_t* model_json(const rn_front_t* front, const rn_model_info_t* info) {
  json_t *model = json_object(), *versions = json_array(), *labels = json_object();
  json_object_set_new(model, "name", json_text(info->name));
  json_object_set_new(model, "base_path", json_text(info->base_path));
  json_object_set_new(model, "platform", json_text(info->platform));
  for (int i = 0; i < info->version_count; ++i)
    json_array_append_new(versions, version_json(&info->versions[i]));
  for (int i = 0; i < info->label_count; ++i)
    json_object_set_new(labels, info->labels[i].label.data, json_integer(info->labels[i].version));
  json_object_set_new(model, "versions", versions);
  json_object_set_new(model, "labels", labels);
  json_object_set_new(model, "latency",
                      histogram_json(front, RN_METRIC_REQUEST_LATENCY, info->name));
  json_object_set_new(model, "batch",
                      histogram_json(front, RN_METRIC_INPUT_BATCH_SIZE, info->name));
  return model;
}

static json_t* cache_json(const rn_front_t* front) {
  if (!front->cache) return json_null();
  rn_predict_cache_stats_t stats = rn_predict_cache_stats(front->cache);
  json_t* cache = json_object();
  set_count(cache, "hits", stats.hits);
  set_count(cache, "misses", stats.misses);
  set_count(cache, "waits", stats.waits);
  set_count(cache, "evictions", stats.evictions);
  set_count(cache, "entries", stats.entries);
  set_count(cache, "bytes", stats.bytes);
  return cache;
}

// The registry, and the list of applications so far.
typedef struct page_apps_t {
  rn_apps_t* apps;
  json_t* list;
} page_apps_t;

static void add_app(void* arg, rn_app_t* app) {
  page_apps_t* page = arg;
  const rn_pb_runnel_Application_t* definition = rn_app_definition(app);
  rn_app_state_t state;
  rn_app_state(page->apps, app, RN_STR(""), &state);
  json_t *object = json_object(), *models = json_array();
  json_object_set_new(object, "name", json_text(definition->name));
  const rn_pb_runnel_ApplicationPolicy_t* policy = definition->policy;
  json_object_set_new(object, "policy",
                      json_text(policy && policy->name.size ? policy->name : RN_STR("static")));
  set_count(object, "latency_slo_micros", definition->latency_slo_micros);
  for (uint32_t i = 0; i < definition->model.count; ++i) {
    if (definition->model.items[i].is_unlinked) continue;
    json_t* model = json_object();
    json_object_set_new(model, "name", json_text(definition->model.items[i].name));
    set_number(model, "weight", (int)i < state.arms ? state.shares[i] : NAN);
    json_array_append_new(models, model);
  }
  json_object_set_new(object, "models", models);
  json_array_append_new(page->list, object);
}

static json_t* apps_json(rn_apps_t* apps) {
  page_apps_t page = {.apps = apps, .list = json_array()};
  if (apps) rn_status_free(rn_apps_each(apps, add_app, &page));
  return page.list;
}

static json_t* status_json(const rn_front_t* front, const rn_model_info_t* infos, int count) {
  json_t *status = json_object(), *models = json_array();
  int64_t up = front->env->now_ns(front->env->self) - front->begun_ns;
  json_object_set_new(status, "version", json_string(RN_VERSION_STRING));
  set_number(status, "uptime_seconds", (double)up / 1e9);
  json_object_set_new(status, "ready", json_boolean(front->is_ready));
  json_object_set_new(status, "draining", json_boolean(front->is_draining));
  for (int i = 0; i < count; ++i) json_array_append_new(models, model_json(front, &infos[i]));
  json_object_set_new(status, "models", models);
  json_object_set_new(status, "cache", cache_json(front));
  json_object_set_new(status, "applications", apps_json(front->apps));
  return status;
}

// {"models": ["a", "b"]}
static json_t* names_json(const rn_model_info_t* infos, int count) {
  json_t *list = json_object(), *names = json_array();
  for (int i = 0; i < count; ++i) json_array_append_new(names, json_text(infos[i].name));
  json_object_set_new(list, "models", names);
  return list;
}

static void reply_json(const rn_front_t* front, rn_http_in_t* request, json_t* root) {
  char* text = root ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  if (text) rn_strbuf_append(&body, rn_str(text));
  free(text);
  if (text && !body.failed)
    rn_front_reply(front, request, 200, NULL, &body, 0);
  else
    rn_front_reply_error(front, request, rn_resource_exhausted("No memory for the page"), 0);
}

static void reply_models(const rn_front_t* front, rn_http_in_t* request, bool has_names_only) {
  rn_arena_t arena;
  rn_arena_init(&arena, front->allocator);
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_status_t status = rn_models_info(front->models, RN_STR(""), &arena, &infos, &count);
  if (rn_ok(status))
    reply_json(front, request,
               has_names_only ? names_json(infos, count) : status_json(front, infos, count));
  else
    rn_front_reply_error(front, request, status, 0);
  rn_models_info_clear(infos, count);
  rn_arena_clear(&arena);
}

static void reply_text(const rn_front_t* front, rn_http_in_t* request, int code, const char* type,
                       rn_str_t text) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_strbuf_append(&body, text);
  rn_front_reply(front, request, code, type, &body, 0);
}

// The address of a card, from stock's description of its device; all of that if it has none.
static rn_str_t card_of(const rn_device_t* device) {
  static const char mark[] = "pci bus id: ";
  rn_str_t all = rn_str(device->description ? device->description : device->name.data);
  const char* at = strstr(all.data, mark);
  rn_str_t rest = at ? rn_str(at + strlen(mark)) : all;
  return at ? rn_str_split(&rest, ',') : all;
}

static void add_gpu(rn_metrics_t* metrics, const rn_device_t* device) {
  rn_device_memory_t use;
  if (!device || !device->vtable->memory_use) return;
  device->vtable->memory_use((rn_device_t*)(uintptr_t)device, &use);
  rn_series_add(
      rn_metrics_series(metrics, RN_METRIC_GPU_MEMORY, card_of(device), RN_STR(""), RN_STR("")),
      (double)use.now);
}

static void add_gauges(const rn_front_t* front, const rn_model_info_t* info) {
  int64_t queued = 0, limit = 0, wait_ns = 0, down = 0;
  for (int i = 0; i < info->version_count; ++i) {
    rn_version_t* version = info->versions[i].version;
    for (int j = 0; version && j < rn_version_replica_count(version); ++j) {
      rn_batcher_stats_t stats = rn_batcher_stats(rn_version_batcher(version, j));
      queued += stats.queued;
      if (stats.limit > limit) limit = stats.limit;
      if (stats.wait_ns > wait_ns) wait_ns = stats.wait_ns;
      add_gpu(front->metrics, rn_version_device(version, j));
    }
    if (version && rn_version_is_down(version)) ++down;
  }
  const rn_str_t none = RN_STR("");
  rn_metrics_t* metrics = front->metrics;
  rn_series_add(rn_metrics_series(metrics, RN_METRIC_QUEUE_LENGTH, info->name, none, none),
                (double)queued);
  rn_series_add(rn_metrics_series(metrics, RN_METRIC_BATCH_LIMIT, info->name, none, none),
                (double)limit);
  rn_series_add(rn_metrics_series(metrics, RN_METRIC_BATCH_WAIT, info->name, none, none),
                (double)wait_ns / 1e9);
  rn_series_add(rn_metrics_series(metrics, RN_METRIC_MODEL_UP, info->name, none, none), !down);
}

static void reply_metrics(const rn_front_t* front, rn_http_in_t* request) {
  rn_arena_t arena;
  rn_arena_init(&arena, front->allocator);
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_status_free(rn_models_info(front->models, RN_STR(""), &arena, &infos, &count));
  for (int i = 0; i < count; ++i) add_gauges(front, &infos[i]);
  rn_models_info_clear(infos, count);
  rn_arena_clear(&arena);
  rn_strbuf_t body;
  rn_strbuf_init(&body, front->allocator);
  rn_metrics_print(front->metrics, &body);
  rn_front_reply(front, request, 200, "text/plain; version=0.0.4", &body, 0);
}

bool rn_page_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role) {
  if (!rn_str_is(request->method, "GET") && !rn_str_is(request->method, "HEAD")) return false;
  // Probes need no token.
  if (rn_str_is(request->path, "/healthz")) {
    reply_text(front, request, 200, "text/plain", RN_STR("ok\n"));
    return true;
  }
  if (rn_str_is(request->path, "/readyz")) {
    bool is_ready = front->is_ready && !front->is_draining;
    reply_text(front, request, is_ready ? 200 : 503, "text/plain",
               is_ready             ? RN_STR("ok\n")
               : front->is_draining ? RN_STR("draining\n")
                                    : RN_STR("models are not loaded yet\n"));
    return true;
  }
  bool is_metrics = front->metrics_path.size && rn_str_eq(request->path, front->metrics_path);
  bool is_page = rn_str_is(request->path, "/"), is_status = rn_str_is(request->path, "/statusz"),
       is_list = rn_str_is(request->path, "/v1/models");
  if (!is_metrics && !is_page && !is_status && !is_list) return false;
  if (is_page)  // it holds no data itself
    reply_text(front, request, 200, "text/html; charset=utf-8",
               rn_str_n(rn_page_text, (size_t)(rn_page_text_end - rn_page_text)));
  else if (role < RN_ROLE_READ)
    rn_front_reply_error(front, request, rn_front_denied(role), 0);
  else if (is_metrics)
    reply_metrics(front, request);
  else
    reply_models(front, request, is_list);
  return true;
}
