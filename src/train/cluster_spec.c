// Parses clusters: "ps=a:1|b:1,worker=c:1", or the JSON of TF_CONFIG.
#include "train/cluster_spec.h"

#define MAX_DEPTH 16  // of JSON values that are skipped
#define MAX_TASKS 65536

static rn_status_t add_task(rn_cluster_t* cluster, rn_str_t job, int64_t index, rn_str_t address) {
  rn_cluster_task_t task = {.index = (int32_t)index};
  int64_t port = -1;
  size_t colon = address.size;
  while (colon > 0 && address.data[colon - 1] != ':') colon--;
  bool has_port = colon > 1 &&
                  rn_str_to_i64(rn_str_n(address.data + colon, address.size - colon), &port) &&
                  port >= 0 && port <= 65535;
  if (!job.size) return rn_invalid_argument("A job of the cluster has no name");
  if (!has_port)
    return rn_invalid_argument("Task %lld of job %.*s needs an address host:port, not '%.*s'",
                               (long long)index, RN_STR_ARGS(job), RN_STR_ARGS(address));
  if (index < 0 || index >= MAX_TASKS || cluster->tasks.count >= MAX_TASKS)
    return rn_invalid_argument("Job %.*s cannot have a task %lld", RN_STR_ARGS(job),
                               (long long)index);
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (cluster->tasks.items[i].index == index && rn_str_eq(cluster->tasks.items[i].job, job))
      return rn_invalid_argument("Task %lld of job %.*s is given twice", (long long)index,
                                 RN_STR_ARGS(job));
  RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, job, &task.job));
  RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, address, &task.address));
  return rn_vec_push(&cluster->tasks, cluster->allocator, task);
}

static rn_status_t read_short(rn_cluster_t* cluster, rn_str_t text) {
  while (text.size) {
    rn_str_t tasks = rn_str_trim(rn_str_split(&text, ',')), job = rn_str_split(&tasks, '=');
    if (!tasks.size)
      return rn_invalid_argument("'%.*s' is not a job with tasks, such as ps=host:port|host:port",
                                 RN_STR_ARGS(job));
    for (int64_t i = 0; tasks.size; ++i)
      RN_RETURN_IF_ERROR(
          add_task(cluster, rn_str_trim(job), i, rn_str_trim(rn_str_split(&tasks, '|'))));
  }
  return RN_OK;
}

// A JSON reader without a tree.
typedef struct cluster_spec_json_t {
  rn_cluster_t* cluster;
  rn_str_t text;
  size_t at;
} cluster_spec_json_t;

static rn_status_t wrong(const cluster_spec_json_t* json, const char* what) {
  return rn_invalid_argument("The cluster's JSON, at byte %zu: %s", json->at, what);
}

// The next byte that is not white space; 0 at the end.
static char peek(cluster_spec_json_t* json) {
  while (json->at < json->text.size && strchr(" \t\r\n", json->text.data[json->at]) &&
         json->text.data[json->at])
    json->at++;
  return json->at < json->text.size ? json->text.data[json->at] : 0;
}

static bool take(cluster_spec_json_t* json, char byte) {
  if (peek(json) != byte) return false;
  json->at++;
  return true;
}

// Names and addresses need no escapes; callers refuse one with a backslash.
static rn_status_t read_string(cluster_spec_json_t* json, rn_str_t* out) {
  if (!take(json, '"')) return wrong(json, "a string was expected");
  size_t start = json->at;
  while (json->at < json->text.size && json->text.data[json->at] != '"') {
    if (json->text.data[json->at] == '\\') json->at++;
    json->at++;
  }
  if (json->at >= json->text.size) return wrong(json, "a string does not end");
  *out = rn_str_n(json->text.data + start, json->at - start);
  json->at++;
  return RN_OK;
}

// Calls |each| for every member, with its name ("" in arrays) and its index; |at| is then at its
// value.
typedef rn_status_t (*member_fn_t)(cluster_spec_json_t* json, rn_str_t name, int64_t index,
                                   void* arg);
static rn_status_t read_members(cluster_spec_json_t* json, member_fn_t each, void* arg) {
  bool is_object = peek(json) == '{';
  if (!is_object && peek(json) != '[') return wrong(json, "an object or a list was expected");
  char end = is_object ? '}' : ']';
  json->at++;
  if (take(json, end)) return RN_OK;
  for (int64_t i = 0;; ++i) {
    rn_str_t name = {0};
    if (is_object) RN_RETURN_IF_ERROR(read_string(json, &name));
    if (is_object && !take(json, ':')) return wrong(json, "':' was expected");
    RN_RETURN_IF_ERROR(each(json, name, i, arg));
    if (take(json, end)) return RN_OK;
    if (!take(json, ',')) return wrong(json, "',' or the end of the list was expected");
  }
}

static rn_status_t skip_value(cluster_spec_json_t* json, rn_str_t name, int64_t index, void* arg) {
  (void)name, (void)index;
  int depth = arg ? *(const int*)arg : 0;
  if (depth > MAX_DEPTH) return wrong(json, "it is nested too deeply");
  char first = peek(json);
  rn_str_t unused;
  if (first == '"') return read_string(json, &unused);
  if (first == '{' || first == '[') {
    int deeper = depth + 1;
    return read_members(json, skip_value, &deeper);
  }
  size_t start = json->at;
  while (json->at < json->text.size && !strchr(",]} \t\r\n", json->text.data[json->at])) json->at++;
  return json->at > start ? RN_OK : wrong(json, "a value was expected");
}

static rn_status_t read_task(cluster_spec_json_t* json, rn_str_t name, int64_t index, void* arg) {
  const rn_str_t* job = arg;
  rn_str_t address;
  RN_RETURN_IF_ERROR(read_string(json, &address));
  if (name.data && !rn_str_to_i64(name, &index)) return wrong(json, "a task's number was expected");
  return add_task(json->cluster, *job, index, address);
}

static rn_status_t read_job(cluster_spec_json_t* json, rn_str_t name, int64_t index, void* arg) {
  (void)index, (void)arg;
  return read_members(json, read_task, &name);
}

static rn_status_t read_own(cluster_spec_json_t* json, rn_str_t name, int64_t index, void* arg) {
  (void)arg;
  rn_str_t text;
  if (rn_str_is(name, "type")) {
    RN_RETURN_IF_ERROR(read_string(json, &text));
    RN_RETURN_IF_ERROR(rn_arena_str(&json->cluster->arena, text, &text));
    json->cluster->job = text.data;
    return RN_OK;
  }
  peek(json);
  size_t start = json->at;
  RN_RETURN_IF_ERROR(skip_value(json, name, index, NULL));
  if (!rn_str_is(name, "index")) return RN_OK;
  int64_t task;
  text = rn_str_n(json->text.data + start, json->at - start);
  if (text.size > 1 && text.data[0] == '"') text = rn_str_n(text.data + 1, text.size - 2);
  if (!rn_str_to_i64(text, &task) || task < 0 || task >= MAX_TASKS)
    return wrong(json, "the task's index is not a number");
  json->cluster->task = (int)task;
  return RN_OK;
}

static rn_status_t read_config(cluster_spec_json_t* json, rn_str_t name, int64_t index, void* arg) {
  if (rn_str_is(name, "cluster")) return read_members(json, read_job, NULL);
  if (rn_str_is(name, "task")) return read_members(json, read_own, NULL);
  return skip_value(json, name, index, arg);
}

static rn_status_t read_json(rn_cluster_t* cluster, rn_str_t text, bool is_config) {
  cluster_spec_json_t json = {cluster, text, 0};
  RN_RETURN_IF_ERROR(read_members(&json, is_config ? read_config : read_job, NULL));
  return peek(&json) ? wrong(&json, "unexpected text after the end") : RN_OK;
}

rn_status_t rn_cluster_create(rn_allocator_t allocator, rn_str_t text, bool is_config,
                              rn_cluster_t** out) {
  *out = NULL;
  rn_cluster_t* cluster = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &cluster));
  cluster->allocator = allocator;
  cluster->task = -1;
  rn_arena_init(&cluster->arena, allocator);
  text = rn_str_trim(text);
  bool is_json = is_config || (text.size && text.data[0] == '{');
  rn_status_t status = is_json ? read_json(cluster, text, is_config) : read_short(cluster, text);
  if (rn_ok(status) && !cluster->tasks.count)
    status = rn_invalid_argument("The cluster '%.*s' has no tasks", RN_STR_ARGS(text));
  if (!rn_ok(status)) {
    rn_cluster_destroy(cluster);
    return status;
  }
  *out = cluster;
  return RN_OK;
}

RN_API void rn_cluster_destroy(rn_cluster_t* cluster) {
  if (!cluster) return;
  rn_vec_free(&cluster->tasks, cluster->allocator);
  rn_arena_clear(&cluster->arena);
  RN_FREE(cluster->allocator, cluster);
}

RN_API int rn_cluster_count(const rn_cluster_t* cluster, const char* job) {
  int count = 0;
  for (size_t i = 0; cluster && job && i < cluster->tasks.count; ++i)
    count += rn_str_is(cluster->tasks.items[i].job, job);
  return count;
}

RN_API const char* rn_cluster_address(const rn_cluster_t* cluster, const char* job, int task) {
  for (size_t i = 0; cluster && job && i < cluster->tasks.count; ++i)
    if (cluster->tasks.items[i].index == task && rn_str_is(cluster->tasks.items[i].job, job))
      return cluster->tasks.items[i].address.data;
  return NULL;
}

RN_API const char* rn_cluster_own_job(const rn_cluster_t* cluster) {
  return cluster ? cluster->job : NULL;
}
RN_API int rn_cluster_own_task(const rn_cluster_t* cluster) { return cluster ? cluster->task : -1; }
