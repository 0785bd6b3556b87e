// See oip_load.h.
#include "serve/front/oip_load.h"

#include "base/vec.h"
#include "serve/front/json.h"
#include "serve/front/oip_info.h"

typedef struct oip_config_t {
  rn_front_t* front;
  rn_str_t model;
  rn_arena_t* arena;
  rn_version_policy_t* policy;
} oip_config_t;

static rn_status_t read_latest(oip_config_t* config, rn_json_reader_t* json) {
  rn_str_t key;
  int64_t count = 1;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    if (!rn_str_is(key, "num_versions") && !rn_str_is(key, "numVersions"))
      return rn_invalid_argument("a policy 'latest' has no '%.*s'", RN_STR_ARGS(key));
    status = rn_json_int(json, &count);
  }
  if (rn_ok(status) && (count < 1 || count > UINT32_MAX))
    status =
        rn_invalid_argument("'num_versions' must be a positive number, not %lld", (long long)count);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(config->arena, &config->policy->latest));
  config->policy->latest->num_versions = (uint32_t)count;
  config->policy->policy_choice_case =
      rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_latest_field;
  return RN_OK;
}

static rn_status_t read_versions(oip_config_t* config, rn_json_reader_t* json) {
  RN_VEC(int64_t) versions = {0};
  rn_allocator_t allocator = config->arena->allocator;
  int64_t version = 0, *kept = NULL;
  rn_status_t status = rn_json_open_array(json);
  while (rn_ok(status) && rn_json_next_element(json, &status)) {
    status = rn_json_int(json, &version);
    if (rn_ok(status)) status = rn_vec_push(&versions, allocator, version);
  }
  if (rn_ok(status)) status = RN_ARENA_ARRAY(config->arena, versions.count, &kept);
  if (rn_ok(status)) {
    memcpy(kept, versions.items, versions.count * sizeof *kept);
    config->policy->specific->versions.items = kept;
    config->policy->specific->versions.count = (uint32_t)versions.count;
  }
  rn_vec_free(&versions, allocator);
  return status;
}

static rn_status_t read_specific(oip_config_t* config, rn_json_reader_t* json) {
  rn_str_t key;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(config->arena, &config->policy->specific));
  config->policy->policy_choice_case =
      rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_specific_field;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    if (!rn_str_is(key, "versions"))
      return rn_invalid_argument("a policy 'specific' has no '%.*s'", RN_STR_ARGS(key));
    status = read_versions(config, json);
  }
  if (rn_ok(status) && !config->policy->specific->versions.count)
    status = rn_invalid_argument("a policy 'specific' needs 'versions'");
  return status;
}

static rn_status_t read_policy(oip_config_t* config, rn_json_reader_t* json) {
  rn_str_t key;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(config->arena, &config->policy));
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &key, &status)) {
    if (config->policy->policy_choice_case)
      return rn_invalid_argument("'version_policy' has more than one policy");
    if (rn_str_is(key, "latest")) {
      status = read_latest(config, json);
    } else if (rn_str_is(key, "specific")) {
      status = read_specific(config, json);
    } else if (rn_str_is(key, "all")) {
      status = RN_ARENA_NEW(config->arena, &config->policy->all);
      config->policy->policy_choice_case =
          rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_all_field;
      if (rn_ok(status)) status = rn_json_skip(json);
    } else {
      return rn_invalid_argument("'version_policy' has no '%.*s'", RN_STR_ARGS(key));
    }
  }
  return status;
}

// A client may change what the server says of a model that it has loaded, and send that back.
static rn_status_t check_size(const oip_config_t* config, rn_json_reader_t* json) {
  int64_t size = 0;
  rn_pb_inference_ModelConfig_t own;
  RN_RETURN_IF_ERROR(rn_json_int(json, &size));
  rn_status_t status =
      rn_oip_model_config(config->front, config->model, RN_STR(""), config->arena, &own);
  bool is_known = rn_ok(status);
  rn_status_free(status);
  if (!is_known || own.max_batch_size == size) return RN_OK;
  return rn_invalid_argument("'max_batch_size' is %d, which the configuration cannot change",
                             own.max_batch_size);
}

static rn_status_t check_text(rn_str_t key, rn_json_reader_t* json, rn_str_t wanted,
                              rn_str_t also) {
  rn_str_t text;
  RN_RETURN_IF_ERROR(rn_json_string(json, &text));
  if (!text.size || rn_str_eq(text, wanted) || rn_str_eq(text, also)) return RN_OK;
  return rn_invalid_argument("'%.*s' is '%.*s', not '%.*s'", RN_STR_ARGS(key), RN_STR_ARGS(wanted),
                             RN_STR_ARGS(text));
}

static rn_status_t read_member(oip_config_t* config, rn_str_t key, rn_json_reader_t* json) {
  if (rn_str_is(key, "version_policy") || rn_str_is(key, "versionPolicy"))
    return read_policy(config, json);
  if (rn_str_is(key, "name")) return check_text(key, json, config->model, config->model);
  if (rn_str_is(key, "platform"))
    return check_text(key, json, RN_STR("tensorflow_savedmodel"), RN_STR("tensorflow"));
  if (rn_str_is(key, "backend"))
    return check_text(key, json, RN_STR("tensorflow"), RN_STR("container"));
  if (rn_str_is(key, "max_batch_size") || rn_str_is(key, "maxBatchSize"))
    return check_size(config, json);
  if (rn_str_is(key, "input") || rn_str_is(key, "output")) return rn_json_skip(json);
  return rn_invalid_argument("the configuration of a load cannot set '%.*s'", RN_STR_ARGS(key));
}

rn_status_t rn_oip_load_policy(rn_front_t* front, rn_str_t name, rn_str_t text, rn_arena_t* arena,
                               rn_version_policy_t** out) {
  oip_config_t config = {.front = front, .model = name, .arena = arena};
  rn_json_reader_t json = rn_json_reader(text, arena);
  rn_str_t key;
  rn_status_t status = rn_json_open_object(&json);
  while (rn_ok(status) && rn_json_next_member(&json, &key, &status))
    status = read_member(&config, key, &json);
  *out = config.policy && config.policy->policy_choice_case ? config.policy : NULL;
  return status;
}
