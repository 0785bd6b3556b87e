// Parses clusters: see cluster.h.
#include "cli/cluster.h"

#include <jansson.h>
#include <stdlib.h>

#include "proto/cluster.pb.h"
#include "wire/text.h"

#define MAX_FILE (16u << 20)  // bytes

void rn_cli_cluster_init(rn_cli_cluster_t* cluster, rn_allocator_t allocator) {
  *cluster = (rn_cli_cluster_t){.index = -1};
  rn_arena_init(&cluster->arena, allocator);
}

void rn_cli_cluster_clear(rn_cli_cluster_t* cluster) {
  rn_vec_free(&cluster->tasks, cluster->arena.allocator);
  rn_arena_clear(&cluster->arena);
}

static bool is_address(rn_str_t address) {
  size_t colon = address.size;
  while (colon > 0 && address.data[colon - 1] != ':') colon--;
  int64_t port;
  return colon > 1 && rn_str_to_i64(rn_str_n(address.data + colon, address.size - colon), &port) &&
         port >= 0 && port <= 65535;
}

static bool is_any_port(rn_str_t address) { return rn_str_ends_with(address, RN_STR(":0")); }

rn_status_t rn_cli_cluster_add(rn_cli_cluster_t* cluster, rn_str_t job, int32_t index,
                               rn_str_t address) {
  rn_server_task_t task = {.index = index};
  if (!job.size) return rn_invalid_argument("a job of the cluster has no name");
  if (!is_address(address))
    return rn_invalid_argument("task %d of job %.*s needs an address host:port, not '%.*s'", index,
                               RN_STR_ARGS(job), RN_STR_ARGS(address));
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (cluster->tasks.items[i].index == index && rn_str_eq(cluster->tasks.items[i].job, job))
      return rn_invalid_argument("task %d of job %.*s is given twice", index, RN_STR_ARGS(job));
    else if (rn_str_eq(cluster->tasks.items[i].address, address) && !is_any_port(address))
      return rn_invalid_argument("task %d of job %.*s and task %d of job %.*s are both at %.*s",
                                 index, RN_STR_ARGS(job), cluster->tasks.items[i].index,
                                 RN_STR_ARGS(cluster->tasks.items[i].job), RN_STR_ARGS(address));
  RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, job, &task.job));
  RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, address, &task.address));
  return rn_vec_push(&cluster->tasks, cluster->arena.allocator, task);
}

// {"ps": ["host:port", …]}, or {"ps": {"0": "host:port", …}} if some tasks are left out.
static rn_status_t take_json(rn_cli_cluster_t* cluster, json_t* jobs) {
  const char *job, *key;
  json_t *tasks, *address;
  size_t index;
  if (!json_is_object(jobs))
    return rn_invalid_argument("a cluster in JSON must be an object of jobs");
  json_object_foreach(jobs, job, tasks) {
    bool ok = json_is_array(tasks) || json_is_object(tasks);
    json_array_foreach(tasks, index, address) {
      ok = ok && json_is_string(address);
      if (ok)
        RN_RETURN_IF_ERROR(rn_cli_cluster_add(cluster, rn_str(job), (int32_t)index,
                                              rn_str(json_string_value(address))));
    }
    json_object_foreach(tasks, key, address) {
      int64_t number;
      ok = ok && json_is_string(address) && rn_str_to_i64(rn_str(key), &number) && number >= 0 &&
           number <= INT32_MAX;
      if (ok)
        RN_RETURN_IF_ERROR(rn_cli_cluster_add(cluster, rn_str(job), (int32_t)number,
                                              rn_str(json_string_value(address))));
    }
    if (!ok)
      return rn_invalid_argument("job %s of the cluster is not a list of addresses host:port", job);
  }
  return RN_OK;
}

static rn_status_t load_json(rn_str_t text, json_t** out) {
  json_error_t error;
  *out = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &error);
  if (*out) return RN_OK;
  return rn_invalid_argument("invalid JSON: line %d, column %d: %s", error.line, error.column,
                             error.text);
}

static rn_status_t parse_json(rn_cli_cluster_t* cluster, rn_str_t text) {
  json_t* root = NULL;
  RN_RETURN_IF_ERROR(load_json(text, &root));
  json_t* inner = json_object_get(root, "cluster");
  rn_status_t status = take_json(cluster, json_is_object(inner) ? inner : root);
  json_decref(root);
  return status;
}

// ps=a:1|b:2,worker=c:3
static rn_status_t parse_short(rn_cli_cluster_t* cluster, rn_str_t text) {
  while (text.size) {
    rn_str_t tasks = rn_str_trim(rn_str_split(&text, ',')), job = rn_str_split(&tasks, '=');
    if (job.size && !tasks.size)
      return rn_invalid_argument(
          "'%.*s' is neither a file nor a job with its tasks (job=host:port|host:port,...)",
          RN_STR_ARGS(job));
    for (int32_t i = 0; tasks.size; ++i)
      RN_RETURN_IF_ERROR(
          rn_cli_cluster_add(cluster, rn_str_trim(job), i, rn_str_trim(rn_str_split(&tasks, '|'))));
  }
  return RN_OK;
}

static rn_status_t parse_proto(rn_cli_cluster_t* cluster, rn_str_t text) {
  rn_pb_ClusterDef_t* def = NULL;
  RN_RETURN_IF_ERROR(
      rn_pb_parse(&rn_pb_ClusterDef_desc, text, NULL, &cluster->arena, (void**)&def));
  for (uint32_t j = 0; j < def->job.count; ++j)
    for (uint32_t t = 0; t < def->job.items[j].tasks.count; ++t)
      RN_RETURN_IF_ERROR(rn_cli_cluster_add(cluster, def->job.items[j].name,
                                            def->job.items[j].tasks.items[t].key,
                                            def->job.items[j].tasks.items[t].value));
  return RN_OK;
}

static rn_status_t parse_text(rn_cli_cluster_t* cluster, rn_str_t text) {
  text = rn_str_trim(text);
  if (text.size && text.data[0] == '{') return parse_json(cluster, text);
  if (rn_str_starts_with(text, RN_STR("job"))) {
    rn_str_t rest = rn_str_trim(rn_str_n(text.data + 3, text.size - 3));
    if (rest.size && (rest.data[0] == '{' || rest.data[0] == ':'))
      return parse_proto(cluster, text);
  }
  return parse_short(cluster, text);
}

static bool is_file(const rn_env_t* env, const char* text) {
  rn_file_stat_t info;
  rn_status_t status = env->fs->stat(env->fs_self, text, &info);
  bool found = rn_ok(status) && !info.is_directory;
  rn_status_free(status);
  return found;
}

rn_status_t rn_cli_cluster_parse(rn_cli_cluster_t* cluster, const rn_env_t* env, const char* text) {
  rn_status_t status;
  if (is_file(env, text)) {
    rn_strbuf_t content;
    rn_strbuf_init(&content, cluster->arena.allocator);
    status = rn_fs_read(env, text, MAX_FILE, &content);
    if (rn_ok(status)) status = parse_text(cluster, rn_strbuf_view(&content));
    status = rn_cli_at(status, text);
    rn_strbuf_clear(&content);
  } else {
    status = parse_text(cluster, rn_str(text));
  }
  if (rn_ok(status) && !cluster->tasks.count)
    status = rn_invalid_argument("the cluster '%s' has no tasks", text);
  return status;
}

rn_status_t rn_cli_cluster_parse_config(rn_cli_cluster_t* cluster, rn_str_t text) {
  json_t* root = NULL;
  RN_RETURN_IF_ERROR(load_json(text, &root));
  json_t* jobs = json_object_get(root, "cluster");
  rn_status_t status =
      jobs ? take_json(cluster, jobs) : rn_invalid_argument("it does not describe a cluster");
  json_t *task = json_object_get(root, "task"), *type = json_object_get(task, "type"),
         *index = json_object_get(task, "index");
  if (rn_ok(status) && json_is_string(type))
    status = rn_arena_str(&cluster->arena, rn_str(json_string_value(type)), &cluster->job);
  int64_t number = json_integer_value(index);
  bool is_number =
      !index || json_is_integer(index) ||
      (json_is_string(index) && rn_str_to_i64(rn_str(json_string_value(index)), &number));
  if (rn_ok(status) && (!is_number || number < 0 || number > INT32_MAX))
    status = rn_invalid_argument("the index of the task must be a number of at least 0");
  if (index) cluster->index = (int32_t)number;
  json_decref(root);
  return status;
}

rn_status_t rn_cli_cluster_find(rn_cli_t* cli, rn_cli_cluster_t* cluster) {
  const char *text = rn_cli_text(cli, "--cluster"), *dir = rn_cli_text(cli, "--dir");
  if (text && dir) return rn_cli_usage(cli, "--cluster and --dir exclude each other");
  if (dir) {
    rn_str_t path;
    RN_RETURN_IF_ERROR(rn_arena_printf(&cluster->arena, &path, "%s/cluster.json", dir));
    if (!is_file(cli->env, path.data))
      return rn_not_found("'%s': there is no such file: is this the folder of a cluster?",
                          path.data);
    return rn_cli_cluster_parse(cluster, cli->env, path.data);
  }
  if (!text) text = getenv("RUNNEL_CLUSTER");
  if (text && *text) return rn_cli_cluster_parse(cluster, cli->env, text);
  const char* config = getenv("TF_CONFIG");
  if (!config)
    return rn_cli_usage(cli,
                        "no cluster is given: use --cluster or --dir, RUNNEL_CLUSTER or TF_CONFIG");
  return rn_cli_prefix(rn_cli_cluster_parse_config(cluster, rn_str(config)), "TF_CONFIG: ");
}
