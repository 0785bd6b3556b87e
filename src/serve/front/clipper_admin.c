// Clipper's management calls. See clipper.h.
//
// Replies are Clipper's: a sentence for a change, JSON for a question. A model and its versions are
// those of the server's model configuration; add_model confirms that a version is served and makes
// it the one that applications mean, as Clipper's does.
#include "serve/front/clipper.h"

typedef struct clipper_admin_t {
  rn_front_t* front;
  rn_arena_t* arena;
  rn_clipper_body_t body;
  rn_strbuf_t* out;
} clipper_admin_t;

static rn_status_t need(bool has, const char* key) {
  if (has) return RN_OK;
  return rn_invalid_argument("Error parsing JSON: JSON object does not have required key: %s", key);
}
#define NEED(admin, field) RN_RETURN_IF_ERROR(need((admin)->body.has_##field, #field))

static void put_member(rn_strbuf_t* out, const char* prefix, const char* key, rn_str_t value) {
  rn_strbuf_printf(out, "%s\"%s\":", prefix, key);
  rn_json_put_string(out, value);
}

// Applications.

static rn_status_t add_app(clipper_admin_t* admin) {
  rn_clipper_body_t* body = &admin->body;
  NEED(admin, name);
  NEED(admin, input_type);
  NEED(admin, default_output);
  NEED(admin, latency_slo_micros);
  rn_pb_runnel_ApplicationPolicy_t policy = {.name = body->policy, .model = body->policy_model};
  rn_pb_runnel_Application_t definition = {
      .name = body->name,
      .input_type = rn_clipper_input_type(body->input_type),
      .default_output = body->default_output,
      .latency_slo_micros = body->latency_slo_micros,
      .confidence_threshold = body->confidence_threshold,
      .is_strict = body->is_strict,
      .policy = &policy,
  };
  if (!definition.input_type)
    return rn_invalid_argument("%.*s is not a valid input string", RN_STR_ARGS(body->input_type));
  if (rn_str_is(body->loss, "absolute"))
    definition.loss = rn_pb_runnel_Application_ABSOLUTE;
  else if (body->loss.size && !rn_str_is(body->loss, "zero_one"))
    return rn_invalid_argument("loss must be zero_one or absolute, not '%.*s'",
                               RN_STR_ARGS(body->loss));
  RN_RETURN_IF_ERROR(rn_apps_add(admin->front->apps, &definition));
  rn_strbuf_printf(admin->out, "Successfully added application with name '%.*s'",
                   RN_STR_ARGS(body->name));
  return RN_OK;
}

static rn_status_t delete_app(clipper_admin_t* admin) {
  NEED(admin, name);
  RN_RETURN_IF_ERROR(rn_apps_remove(admin->front->apps, admin->body.name));
  rn_strbuf_printf(admin->out, "Successfully deleted application with name '%.*s'",
                   RN_STR_ARGS(admin->body.name));
  return RN_OK;
}

static void put_links(rn_strbuf_t* out, const rn_app_t* app) {
  const rn_pb_runnel_Application_t* definition = rn_app_definition(app);
  rn_strbuf_append(out, RN_STR("["));
  const char* comma = "";
  for (uint32_t i = 0; i < definition->model.count; ++i) {
    if (definition->model.items[i].is_unlinked) continue;
    rn_strbuf_append(out, rn_str(comma));
    rn_json_put_string(out, definition->model.items[i].name);
    comma = ",";
  }
  rn_strbuf_append(out, RN_STR("]"));
}

static void put_app(rn_strbuf_t* out, const rn_app_t* app) {
  const rn_pb_runnel_Application_t* definition = rn_app_definition(app);
  put_member(out, "{", "name", definition->name);
  put_member(out, ",", "input_type", rn_str(rn_clipper_input_name(definition->input_type)));
  put_member(out, ",", "default_output", definition->default_output);
  rn_strbuf_printf(out, ",\"latency_slo_micros\":%lld,\"linked_models\":",
                   (long long)definition->latency_slo_micros);
  put_links(out, app);
  rn_str_t policy = definition->policy ? definition->policy->name : RN_STR("");
  put_member(out, ",", "policy", policy.size ? policy : RN_STR("static"));
  rn_strbuf_append(out, RN_STR("}"));
}

typedef struct clipper_list_t {
  rn_strbuf_t* out;
  bool is_verbose, has_any;
} clipper_list_t;

static void list_app(void* arg, rn_app_t* app) {
  clipper_list_t* list = arg;
  rn_strbuf_append(list->out, list->has_any ? RN_STR(",") : RN_STR("["));
  list->has_any = true;
  if (list->is_verbose)
    put_app(list->out, app);
  else
    rn_json_put_string(list->out, rn_app_definition(app)->name);
}

static rn_status_t get_all_applications(clipper_admin_t* admin) {
  clipper_list_t list = {admin->out, admin->body.is_verbose, false};
  RN_RETURN_IF_ERROR(rn_apps_each(admin->front->apps, list_app, &list));
  rn_strbuf_append(admin->out, list.has_any ? RN_STR("]") : RN_STR("[]"));
  return RN_OK;
}

static rn_status_t get_application(clipper_admin_t* admin) {
  NEED(admin, name);
  rn_app_t* app = rn_apps_find(admin->front->apps, admin->body.name);
  if (app)
    put_app(admin->out, app);
  else
    rn_strbuf_append(admin->out, RN_STR("{}"));
  rn_app_release(app);
  return RN_OK;
}

// Links.

static rn_status_t find_info(clipper_admin_t* admin, rn_str_t name, rn_model_info_t** out,
                             int* out_count) {
  return rn_models_info(admin->front->models, name, admin->arena, out, out_count);
}

static rn_status_t check_model(clipper_admin_t* admin, rn_str_t name) {
  rn_model_info_t* info = NULL;
  int count = 0;
  rn_status_t status = name.size ? find_info(admin, name, &info, &count) : rn_not_found("none");
  if (rn_ok(status)) {
    rn_models_info_clear(info, count);
    return RN_OK;
  }
  rn_status_free(status);
  return rn_invalid_argument("No model with name '%.*s' exists.", RN_STR_ARGS(name));
}

static rn_status_t add_model_links(clipper_admin_t* admin) {
  rn_clipper_body_t* body = &admin->body;
  NEED(admin, app_name);
  NEED(admin, model_names);
  if (!body->model_count)
    return rn_invalid_argument(
        "Please provide the name of the model that you want to link to the application '%.*s'",
        RN_STR_ARGS(body->app_name));
  for (int i = 0; i < body->model_count; ++i)
    RN_RETURN_IF_ERROR(check_model(admin, body->model_names[i]));
  RN_RETURN_IF_ERROR(
      rn_apps_link(admin->front->apps, body->app_name, body->model_names, body->model_count));
  for (int i = 0; i < body->model_count; ++i)
    rn_strbuf_printf(admin->out,
                     "%sSuccessfully linked model with name '%.*s' to application '%.*s'",
                     i ? "\n" : "", RN_STR_ARGS(body->model_names[i]), RN_STR_ARGS(body->app_name));
  return RN_OK;
}

static rn_status_t delete_model_links(clipper_admin_t* admin) {
  rn_clipper_body_t* body = &admin->body;
  NEED(admin, app_name);
  NEED(admin, model_names);
  RN_RETURN_IF_ERROR(
      rn_apps_unlink(admin->front->apps, body->app_name, body->model_names, body->model_count));
  rn_strbuf_append(admin->out, RN_STR("Success!"));
  return RN_OK;
}

static rn_status_t get_linked_models(clipper_admin_t* admin) {
  NEED(admin, app_name);
  rn_app_t* app = rn_apps_find(admin->front->apps, admin->body.app_name);
  if (!app)
    return rn_not_found("No app with name '%.*s' exists.", RN_STR_ARGS(admin->body.app_name));
  put_links(admin->out, app);
  rn_app_release(app);
  return RN_OK;
}

// Models. A container in Clipper's words is a replica of a version.

static const rn_version_info_t* available(const rn_model_info_t* info, rn_str_t version) {
  int64_t number;
  if (!rn_str_to_i64(version, &number)) return NULL;
  for (int i = 0; i < info->version_count; ++i)
    if (info->versions[i].number == number && info->versions[i].state == RN_MODEL_AVAILABLE)
      return &info->versions[i];
  return NULL;
}

static rn_status_t no_version(const clipper_admin_t* admin) {
  return rn_not_found("model with name '%.*s' and version '%.*s' does not exist",
                      RN_STR_ARGS(admin->body.model_name), RN_STR_ARGS(admin->body.model_version));
}

// Whether the version that the body names is served.
static rn_status_t check_version(clipper_admin_t* admin) {
  NEED(admin, model_name);
  NEED(admin, model_version);
  RN_RETURN_IF_ERROR(check_model(admin, admin->body.model_name));
  rn_model_info_t* info = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(find_info(admin, admin->body.model_name, &info, &count));
  bool is_there = count == 1 && available(info, admin->body.model_version);
  rn_models_info_clear(info, count);
  return is_there ? RN_OK : no_version(admin);
}

static rn_status_t use_version(clipper_admin_t* admin) {
  int64_t number = 0;
  RN_RETURN_IF_ERROR(check_version(admin));
  if (!rn_str_to_i64(admin->body.model_version, &number)) return no_version(admin);
  return rn_apps_set_version(admin->front->apps, admin->body.model_name, number);
}

static rn_status_t add_model(clipper_admin_t* admin) {
  RN_RETURN_IF_ERROR(use_version(admin));
  rn_strbuf_printf(admin->out, "Successfully added model with name '%.*s' and input type '%.*s'",
                   RN_STR_ARGS(admin->body.model_name), RN_STR_ARGS(admin->body.input_type));
  return RN_OK;
}

static rn_status_t set_model_version(clipper_admin_t* admin) {
  RN_RETURN_IF_ERROR(use_version(admin));
  rn_strbuf_printf(admin->out, "Successfully set model with name '%.*s' to version '%.*s'",
                   RN_STR_ARGS(admin->body.model_name), RN_STR_ARGS(admin->body.model_version));
  return RN_OK;
}

static rn_status_t delete_versioned_model(clipper_admin_t* admin) {
  RN_RETURN_IF_ERROR(check_version(admin));
  return rn_failed_precondition(
      "Version '%.*s' of model '%.*s' is served because its folder is there and the model "
      "configuration wants it: change one of them",
      RN_STR_ARGS(admin->body.model_version), RN_STR_ARGS(admin->body.model_name));
}

static void put_model(clipper_admin_t* admin, const rn_model_info_t* info,
                      const rn_version_info_t* version) {
  rn_strbuf_t* out = admin->out;
  int64_t current = rn_apps_version(admin->front->apps, info->name);
  if (!current && info->version_count) current = info->versions[0].number;
  put_member(out, "{", "model_name", info->name);
  rn_strbuf_printf(out, ",\"model_version\":\"%lld\",\"labels\":[", (long long)version->number);
  const char* comma = "";
  for (int i = 0; i < info->label_count; ++i) {
    if (info->labels[i].version != version->number) continue;
    rn_strbuf_append(out, rn_str(comma));
    rn_json_put_string(out, info->labels[i].label);
    comma = ",";
  }
  put_member(out, "],", "container_name", info->platform);
  put_member(out, ",", "model_data_path", info->base_path);
  rn_strbuf_printf(out, ",\"is_current_version\":%s}",
                   version->number == current ? "true" : "false");
}

// "name:version", and with |replica| >= 0 ":replica".
static void put_id(clipper_admin_t* admin, const rn_model_info_t* info, int64_t version,
                   int replica) {
  rn_strbuf_t id;
  rn_strbuf_init(&id, admin->front->allocator);
  rn_strbuf_printf(&id, "%.*s:%lld", RN_STR_ARGS(info->name), (long long)version);
  if (replica >= 0) rn_strbuf_printf(&id, ":%d", replica);
  rn_json_put_string(admin->out, rn_strbuf_view(&id));
  rn_strbuf_clear(&id);
}

static void put_container(clipper_admin_t* admin, const rn_model_info_t* info,
                          const rn_version_info_t* version, int replica) {
  rn_strbuf_append(admin->out, RN_STR("{\"model_id\":"));
  put_id(admin, info, version->number, -1);
  put_member(admin->out, ",", "model_name", info->name);
  rn_strbuf_printf(admin->out,
                   ",\"model_version\":\"%lld\",\"model_replica_id\":%d,\"batch_size\":-1}",
                   (long long)version->number, replica);
}

// One row of a list: a version, or with |replica| >= 0 a replica.
static void put_item(clipper_admin_t* admin, const rn_model_info_t* info,
                     const rn_version_info_t* version, int replica) {
  if (!admin->body.is_verbose)
    put_id(admin, info, version->number, replica);
  else if (replica < 0)
    put_model(admin, info, version);
  else
    put_container(admin, info, version, replica);
}

// Lists every served version, or every replica of one.
static rn_status_t put_all(clipper_admin_t* admin, bool replicas) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(find_info(admin, RN_STR(""), &infos, &count));
  const char* comma = "[";
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < infos[i].version_count; ++j) {
      const rn_version_info_t* version = &infos[i].versions[j];
      if (version->state != RN_MODEL_AVAILABLE || !version->version) continue;
      int rows = replicas ? rn_version_replica_count(version->version) : 1;
      for (int k = 0; k < rows; ++k, comma = ",") {
        rn_strbuf_append(admin->out, rn_str(comma));
        put_item(admin, &infos[i], version, replicas ? k : -1);
      }
    }
  }
  rn_models_info_clear(infos, count);
  rn_strbuf_append(admin->out, *comma == '[' ? RN_STR("[]") : RN_STR("]"));
  return RN_OK;
}

static rn_status_t get_all_models(clipper_admin_t* admin) { return put_all(admin, false); }
static rn_status_t get_all_containers(clipper_admin_t* admin) { return put_all(admin, true); }

// One version, or one replica; "{}" if it is not served.
static rn_status_t put_one(clipper_admin_t* admin, bool replica) {
  rn_clipper_body_t* body = &admin->body;
  NEED(admin, model_name);
  NEED(admin, model_version);
  rn_model_info_t* info = NULL;
  int count = 0;
  rn_status_t status = find_info(admin, body->model_name, &info, &count);
  const rn_version_info_t* version = rn_ok(status) && count == 1 && body->model_name.size
                                         ? available(info, body->model_version)
                                         : NULL;
  rn_status_free(status);
  if (!version || !version->version)
    rn_strbuf_append(admin->out, RN_STR("{}"));
  else if (!replica)
    put_model(admin, info, version);
  else if (body->replica_id >= 0 && body->replica_id < rn_version_replica_count(version->version))
    put_container(admin, info, version, (int)body->replica_id);
  else
    rn_strbuf_append(admin->out, RN_STR("{}"));
  if (info) rn_models_info_clear(info, count);
  return RN_OK;
}

static rn_status_t get_model(clipper_admin_t* admin) { return put_one(admin, false); }
static rn_status_t get_container(clipper_admin_t* admin) { return put_one(admin, true); }

// What the policy has learned: the weight of each model, for the user or for all.
static rn_status_t get_state(clipper_admin_t* admin) {
  NEED(admin, app_name);
  rn_app_t* app = rn_apps_find(admin->front->apps, admin->body.app_name);
  if (!app)
    return rn_not_found("No app with name '%.*s' exists.", RN_STR_ARGS(admin->body.app_name));
  const rn_pb_runnel_Application_t* definition = rn_app_definition(app);
  rn_app_state_t state;
  rn_app_state(admin->front->apps, app, admin->body.uid, &state);
  rn_str_t policy = definition->policy ? definition->policy->name : RN_STR("");
  put_member(admin->out, "{", "policy", policy.size ? policy : RN_STR("static"));
  put_member(admin->out, ",", "uid", admin->body.uid);
  rn_strbuf_printf(admin->out, ",\"is_own\":%s,\"weights\":{", state.is_own ? "true" : "false");
  const char* comma = "";
  for (int i = 0; i < state.arms; ++i) {
    if (definition->model.items[i].is_unlinked) continue;
    rn_strbuf_append(admin->out, rn_str(comma));
    rn_json_put_string(admin->out, definition->model.items[i].name);
    rn_strbuf_append(admin->out, RN_STR(":"));
    rn_json_put_double(admin->out, state.shares[i]);
    comma = ",";
  }
  rn_strbuf_append(admin->out, RN_STR("}}"));
  rn_app_release(app);
  return RN_OK;
}

static const struct {
  const char* name;
  rn_status_t (*run)(clipper_admin_t* admin);
} calls[] = {
    {"add_app", add_app},
    {"delete_app", delete_app},
    {"add_model_links", add_model_links},
    {"delete_model_links", delete_model_links},
    {"get_linked_models", get_linked_models},
    {"add_model", add_model},
    {"set_model_version", set_model_version},
    {"delete_versioned_model", delete_versioned_model},
    {"get_all_applications", get_all_applications},
    {"get_application", get_application},
    {"get_all_models", get_all_models},
    {"get_model", get_model},
    {"get_all_containers", get_all_containers},
    {"get_container", get_container},
    {"get_state", get_state},
};

rn_status_t rn_clipper_admin(rn_front_t* front, rn_str_t name, rn_str_t body, rn_arena_t* arena,
                             rn_strbuf_t* out) {
  clipper_admin_t admin = {.front = front, .arena = arena, .out = out};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (!rn_str_is(name, calls[i].name)) continue;
    rn_status_t status = rn_clipper_read(body, arena, front->allocator, &admin.body);
    if (rn_ok(status)) status = calls[i].run(&admin);
    rn_answer_clear(&admin.body.label, front->allocator);
    return rn_ok(status) ? rn_strbuf_status(out) : status;
  }
  return rn_not_found("%s", "");
}
