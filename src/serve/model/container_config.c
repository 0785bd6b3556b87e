// Configurations of containers: see container_config.h.
#include "serve/model/container_config.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "net/token.h"
#include "proto/container.pb.h"
#include "wire/text.h"

#define MAX_FILE ((size_t)1 << 20)
#define MAX_REPLICAS 256
#define MS_NS INT64_C(1000000)
#define MAX_MS INT64_C(86400000)  // a day

typedef rn_pb_serving_ContainerConfig_t container_file_t;

extern char** environ;

void rn_container_config_clear(rn_container_config_t* config) { rn_arena_clear(&config->arena); }

static rn_status_t path_of(const char* folder, rn_arena_t* arena, rn_str_t* out) {
  return rn_arena_printf(arena, out, "%s/" RN_CONTAINER_FILE, folder);
}

bool rn_container_is_in(const rn_env_t* env, const char* folder) {
  rn_arena_t arena;
  rn_str_t path;
  rn_arena_init(&arena, env->allocator);
  rn_status_t status = path_of(folder, &arena, &path);
  bool is_there = rn_ok(status) && rn_fs_exists(env, path.data);
  rn_status_free(status);
  rn_arena_clear(&arena);
  return is_there;
}

// |*out| = |ms|, or |otherwise| if it is 0, in nanoseconds.
static rn_status_t take_time(const char* field, int64_t ms, int64_t otherwise, int64_t* out) {
  if (ms < 0 || ms > MAX_MS)
    return rn_invalid_argument("%s must be 0 to %lld", field, (long long)MAX_MS);
  *out = (ms ? ms : otherwise) * MS_NS;
  return RN_OK;
}

static rn_status_t take_times(const container_file_t* file, rn_container_config_t* out) {
  const struct {
    const char* field;
    int64_t ms, otherwise;
    int64_t* out;
  } times[] = {
      {"start_timeout_ms", file->start_timeout_ms, 60000, &out->start_ns},
      {"run_timeout_ms", file->run_timeout_ms, 60000, &out->run_ns},
      {"stop_timeout_ms", file->stop_timeout_ms, 5000, &out->stop_ns},
      {"heartbeat_ms", file->heartbeat_ms, 1000, &out->beat_ns},
      {"heartbeat_timeout_ms", file->heartbeat_timeout_ms, 5000, &out->beat_timeout_ns},
      {"restart_min_ms", file->restart_min_ms, 20, &out->restart_min_ns},
      {"restart_max_ms", file->restart_max_ms, 10000, &out->restart_max_ns},
  };
  for (size_t i = 0; i < sizeof times / sizeof *times; ++i)
    RN_RETURN_IF_ERROR(take_time(times[i].field, times[i].ms, times[i].otherwise, times[i].out));
  if (out->beat_timeout_ns < 2 * out->beat_ns)
    return rn_invalid_argument("heartbeat_timeout_ms must be at least twice heartbeat_ms");
  if (out->restart_max_ns < out->restart_min_ns)
    return rn_invalid_argument("restart_max_ms is less than restart_min_ms");
  return RN_OK;
}

static rn_status_t take_text(rn_arena_t* arena, rn_str_t text, const char** out) {
  *out = NULL;
  if (!text.size) return RN_OK;
  if (memchr(text.data, '\0', text.size)) return rn_invalid_argument("a text has a NUL");
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, text, &copy));
  *out = copy.data;
  return RN_OK;
}

static rn_status_t take_command(const container_file_t* file, rn_container_config_t* out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, (size_t)file->command.count + 1, &out->argv));
  for (uint32_t i = 0; i < file->command.count; ++i) {
    RN_RETURN_IF_ERROR(take_text(&out->arena, file->command.items[i], &out->argv[i]));
    if (!out->argv[i]) out->argv[i] = "";
  }
  return out->argv[0][0] ? RN_OK : rn_invalid_argument("command has no program");
}

static rn_status_t take_program(const char* program, rn_container_config_t* out) {
  const char* words[] = {program, "container", "."};  // it runs in the folder
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, 4, &out->argv));
  for (size_t i = 0; i < 3; ++i)
    RN_RETURN_IF_ERROR(take_text(&out->arena, rn_str(words[i]), &out->argv[i]));
  out->isolates = true;
  return RN_OK;
}

// Which of the ways to a model the file chooses.
static rn_status_t take_way(const container_file_t* file, const char* program,
                            rn_container_config_t* out) {
  int ways = (file->command.count > 0) + (file->connect.size > 0) + file->isolate;
  if (ways != 1) return rn_invalid_argument("give one of command, connect and isolate");
  if (file->command.count) return take_command(file, out);
  if (file->connect.size) return take_text(&out->arena, file->connect, &out->address);
  if (!program) return rn_invalid_argument("isolate is not available here");
  return take_program(program, out);
}

// Whether |entry| of the environment sets a variable that the file sets, too.
static bool is_replaced(const container_file_t* file, const char* entry) {
  rn_str_t rest = rn_str(entry), name = rn_str_split(&rest, '=');
  for (uint32_t i = 0; i < file->environment.count; ++i)
    if (rn_str_eq(file->environment.items[i].key, name)) return true;
  return false;
}

static rn_status_t add_variable(rn_container_config_t* out, rn_str_t name, rn_str_t value) {
  bool is_good = name.size && !memchr(name.data, '=', name.size) &&
                 !memchr(name.data, '\0', name.size) &&
                 !(value.size && memchr(value.data, '\0', value.size));
  if (!is_good) return rn_invalid_argument("environment has a bad name or value");
  rn_str_t entry;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&out->arena, &entry, "%.*s=%.*s", RN_STR_ARGS(name), RN_STR_ARGS(value)));
  out->envp[out->env_count++] = entry.data;
  return RN_OK;
}

static rn_status_t take_environment(const container_file_t* file, rn_container_config_t* out) {
  size_t count = 0;
  while (environ && environ[count]) count++;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&out->arena, count + file->environment.count + 4, &out->envp));
  for (size_t i = 0; i < count; ++i)
    if (!is_replaced(file, environ[i]) && strncmp(environ[i], "RUNNEL_CONTAINER", 16) != 0) {
      const char* entry;
      RN_RETURN_IF_ERROR(take_text(&out->arena, rn_str(environ[i]), &entry));
      if (entry) out->envp[out->env_count++] = entry;
    }
  for (uint32_t i = 0; i < file->environment.count; ++i)
    RN_RETURN_IF_ERROR(
        add_variable(out, file->environment.items[i].key, file->environment.items[i].value));
  RN_RETURN_IF_ERROR(add_variable(out, RN_STR("RUNNEL_CONTAINER"), RN_STR("fd:3")));
  RN_RETURN_IF_ERROR(add_variable(out, RN_STR("RUNNEL_CONTAINER_MODEL"), out->model));
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)out->number);
  return add_variable(out, RN_STR("RUNNEL_CONTAINER_VERSION"), rn_str(number));
}

// A path of the file, relative to the version's folder.
static rn_status_t take_path(rn_container_config_t* out, rn_str_t path, const char** to) {
  RN_RETURN_IF_ERROR(take_text(&out->arena, path, to));
  if (!*to || **to == '/') return RN_OK;
  rn_str_t whole;
  RN_RETURN_IF_ERROR(rn_arena_printf(&out->arena, &whole, "%s/%s", out->folder, *to));
  *to = whole.data;
  return RN_OK;
}

static rn_status_t take_secrets(const rn_env_t* env, const container_file_t* file,
                                rn_container_config_t* out) {
  if ((file->tls || file->token_file.size) && !out->address)
    return rn_invalid_argument("tls and token_file go with connect");
  if (file->tls) {
    RN_RETURN_IF_ERROR(take_path(out, file->tls->cert, &out->cert));
    RN_RETURN_IF_ERROR(take_path(out, file->tls->key, &out->key));
    RN_RETURN_IF_ERROR(take_path(out, file->tls->ca, &out->ca));
    if (!out->cert || !out->key || !out->ca)
      return rn_invalid_argument("tls needs cert, key and ca");
  }
  if (!file->token_file.size) return RN_OK;
  const char* path;
  RN_RETURN_IF_ERROR(take_path(out, file->token_file, &path));
  char token[RN_TOKEN_MAX + 1];
  RN_RETURN_IF_ERROR(rn_token_read(env, path, env->allocator, token));
  return rn_arena_str(&out->arena, rn_str(token), &out->token);
}

static rn_status_t take_file(const rn_env_t* env, const container_file_t* file, const char* program,
                             rn_container_config_t* out) {
  RN_RETURN_IF_ERROR(take_times(file, out));
  RN_RETURN_IF_ERROR(take_way(file, program, out));
  if (out->argv) RN_RETURN_IF_ERROR(take_environment(file, out));
  RN_RETURN_IF_ERROR(take_secrets(env, file, out));
  if (file->replicas < 0 || file->replicas > MAX_REPLICAS)
    return rn_invalid_argument("replicas must be 1 to %d", MAX_REPLICAS);
  if (file->memory_limit_mb < 0 || file->memory_limit_mb > INT64_MAX >> 20)
    return rn_invalid_argument("memory_limit_mb is out of range");
  out->replicas = file->replicas ? file->replicas : 1;
  out->memory_bytes = file->memory_limit_mb << 20;
  out->copies = file->copies;
  return RN_OK;
}

// The file's message, or the one that stands for `isolate: true`.
static rn_status_t parse_file(const rn_env_t* env, const char* path, const char* program,
                              rn_arena_t* arena, container_file_t** out) {
  bool is_there;
  RN_RETURN_IF_ERROR(rn_fs_find(env, path, &is_there));
  if (!is_there && program) {
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, out));
    (*out)->isolate = true;
    return RN_OK;
  }
  rn_strbuf_t text;
  rn_strbuf_init(&text, env->allocator);
  rn_status_t status = rn_fs_read(env, path, MAX_FILE, &text);
  if (rn_ok(status))
    status = rn_pb_parse(&rn_pb_serving_ContainerConfig_desc, rn_strbuf_view(&text), NULL, arena,
                         (void**)out);
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_container_config_read(const rn_env_t* env, rn_str_t model, int64_t number,
                                     const char* folder, const char* program,
                                     rn_allocator_t allocator, rn_container_config_t* out) {
  *out = (rn_container_config_t){.number = number};
  rn_arena_init(&out->arena, allocator);
  container_file_t* file = NULL;
  rn_str_t path, copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, rn_str(folder), &copy));
  out->folder = copy.data;
  RN_RETURN_IF_ERROR(rn_arena_str(&out->arena, model, &out->model));
  RN_RETURN_IF_ERROR(path_of(folder, &out->arena, &path));
  rn_status_t status = parse_file(env, path.data, program, &out->arena, &file);
  if (rn_ok(status)) status = take_file(env, file, program, out);
  return rn_status_annotate(status, " (%s)", path.data);
}

int64_t rn_container_back_off(const rn_container_config_t* config, int failures, uint64_t random) {
  int64_t wait = config->restart_min_ns;
  for (int i = 1; i < failures && wait < config->restart_max_ns; ++i) wait *= 2;
  if (wait > config->restart_max_ns) wait = config->restart_max_ns;
  return wait - (int64_t)(random % (uint64_t)(wait / 2 + 1));
}
