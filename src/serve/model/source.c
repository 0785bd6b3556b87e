// See source.h.
#include "serve/model/source.h"

#include "base/hash.h"

// Beyond these a folder is no model's; what is deeper or later is not looked at.
#define MAX_DEPTH 16
#define MAX_FILES 100000

typedef rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_t policy_t;
#define POLICY(name) rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_##name

// Names of digits only, so that "1.tmp" and "-1" are no versions.
static bool parse_number(rn_str_t name, int64_t* out) {
  for (size_t i = 0; i < name.size; ++i)
    if (name.data[i] < '0' || name.data[i] > '9') return false;
  return name.size && rn_str_to_i64(name, out);
}

static bool is_wanted(const policy_t* policy, int64_t number) {
  if (!policy || policy->policy_choice_case != POLICY(specific_field)) return true;
  for (uint32_t i = 0; i < policy->specific->versions.count; ++i)
    if (policy->specific->versions.items[i] == number) return true;
  return false;
}

// How many of the highest versions are wanted.
static int64_t most_of(const policy_t* policy) {
  if (!policy || !policy->policy_choice_case) return 1;
  if (policy->policy_choice_case != POLICY(latest_field)) return INT64_MAX;
  return policy->latest->num_versions ? policy->latest->num_versions : 1;
}

static int by_number(const void* a, const void* b) {
  int64_t x = ((const rn_source_version_t*)a)->number, y = ((const rn_source_version_t*)b)->number;
  return x < y ? 1 : x > y ? -1 : 0;
}

static rn_status_t add_child(const rn_env_t* env, rn_str_t base, rn_str_t name, int64_t number,
                             rn_arena_t* arena, rn_source_version_t* versions, int* inout_count) {
  rn_str_t folder;
  rn_file_stat_t stat;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &folder, "%.*s/%.*s", RN_STR_ARGS(base), RN_STR_ARGS(name)));
  rn_status_t status = env->fs->stat(env->fs_self, folder.data, &stat);
  bool is_folder = rn_ok(status) && stat.is_directory;
  rn_status_free(status);  // it may be gone again
  if (!is_folder) return RN_OK;
  for (int i = 0; i < *inout_count; ++i) {
    if (versions[i].number != number) continue;
    versions[i].folder = folder;
    return RN_OK;
  }
  versions[(*inout_count)++] = (rn_source_version_t){number, folder};
  return RN_OK;
}

static rn_status_t add_children(const rn_env_t* env, const rn_pb_serving_ModelConfig_t* model,
                                const rn_names_t* names, rn_arena_t* arena,
                                rn_source_version_t** out, int* out_count) {
  rn_source_version_t* versions = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, names->list.count, &versions));
  int count = 0;
  for (size_t i = 0; i < names->list.count; ++i) {
    int64_t number;
    rn_str_t name = names->list.items[i];
    if (parse_number(name, &number) && is_wanted(model->model_version_policy, number))
      RN_RETURN_IF_ERROR(add_child(env, model->base_path, name, number, arena, versions, &count));
  }
  if (count) qsort(versions, (size_t)count, sizeof *versions, by_number);
  int64_t most = most_of(model->model_version_policy);
  *out = versions;
  *out_count = count < most ? count : (int)most;
  return RN_OK;
}

rn_status_t rn_source_list(const rn_env_t* env, const rn_pb_serving_ModelConfig_t* model,
                           rn_arena_t* arena, rn_source_version_t** out, int* out_count) {
  *out = NULL;
  *out_count = 0;
  rn_str_t base;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, model->base_path, &base));
  rn_names_t names;
  rn_names_init(&names, arena->allocator);
  rn_status_t status = env->fs->list(env->fs_self, base.data, &names);
  if (!rn_ok(status)) {
    rn_status_t why = rn_invalid_argument(
        "Could not find base path %s for servable %.*s with error %s: %s", base.data,
        RN_STR_ARGS(model->name), rn_code_name(rn_status_code(status)), rn_status_message(status));
    rn_status_free(status);
    status = why;
  } else {
    rn_names_sort(&names);
    status = add_children(env, model, &names, arena, out, out_count);
  }
  rn_names_clear(&names);
  return status;
}

// Fingerprints.

typedef struct source_hash_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  uint64_t hash;
  int files;
} source_hash_t;

static void mix(source_hash_t* state, rn_str_t bytes) {
  state->hash = rn_murmur_hash64(bytes, state->hash);
}

static void hash_folder(source_hash_t* state, const char* folder, int depth);

static void hash_file(source_hash_t* state, const char* folder, rn_str_t name, int depth) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, state->allocator);
  rn_strbuf_printf(&path, "%s/%.*s", folder, RN_STR_ARGS(name));
  rn_file_stat_t stat = {0};
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = state->env->fs->stat(state->env->fs_self, path.data, &stat);
  int64_t facts[4] = {(int64_t)rn_status_code(status), stat.is_directory,
                      stat.is_directory ? 0 : stat.size, stat.is_directory ? 0 : stat.modified_ns};
  mix(state, name);
  mix(state, rn_str_n((const char*)facts, sizeof facts));
  if (rn_ok(status) && stat.is_directory) hash_folder(state, path.data, depth + 1);
  rn_status_free(status);
  rn_strbuf_clear(&path);
}

static void hash_folder(source_hash_t* state, const char* folder, int depth) {
  if (depth > MAX_DEPTH) return;
  rn_names_t names;
  rn_names_init(&names, state->allocator);
  rn_status_t status = state->env->fs->list(state->env->fs_self, folder, &names);
  rn_names_sort(&names);
  for (size_t i = 0; rn_ok(status) && i < names.list.count && state->files < MAX_FILES; ++i) {
    ++state->files;
    hash_file(state, folder, names.list.items[i], depth);
  }
  rn_status_free(status);
  rn_names_clear(&names);
}

uint64_t rn_source_fingerprint(const rn_env_t* env, const char* folder, rn_allocator_t allocator) {
  source_hash_t state = {.env = env, .allocator = allocator, .hash = RN_HASH64_SEED};
  hash_folder(&state, folder, 0);
  return state.hash;
}
