// See oip_settings.h.
#include "serve/front/oip_settings.h"

#include <inttypes.h>

#include "serve/front/json.h"
#include "serve/front/oip_info.h"
#include "serve/front/request_trace.h"

#define MAX_SETTINGS 64  // of one request; there are far fewer names

// Logging.

typedef rn_pb_inference_LogSettingsRequest_SettingValue_t log_value_t;
typedef rn_pb_inference_LogSettingsResponse_SettingValue_t log_reply_t;
enum {
  LOG_BOOL = rn_pb_inference_LogSettingsRequest_SettingValue_bool_param_field,
  LOG_NUMBER = rn_pb_inference_LogSettingsRequest_SettingValue_uint32_param_field,
  LOG_TEXT = rn_pb_inference_LogSettingsRequest_SettingValue_string_param_field,
};

static const char* const level_names[] = {"log_info", "log_warning", "log_error"};

static rn_status_t expect_kind(rn_str_t name, const log_value_t* value, int32_t kind) {
  static const char* const kinds[] = {[LOG_BOOL] = "a boolean",
                                      [LOG_NUMBER] = "a number that is not negative",
                                      [LOG_TEXT] = "a string"};
  if (value->parameter_choice_case == kind) return RN_OK;
  return rn_invalid_argument("log setting '%.*s' must be %s", RN_STR_ARGS(name), kinds[kind]);
}

// Checks one setting, and changes |settings|, which is a copy until all are good.
static rn_status_t change_log(rn_str_t name, const log_value_t* value,
                              rn_log_settings_t* settings) {
  if (rn_str_is(name, "log_file"))
    return rn_unimplemented("log file location can not be updated through network protocol");
  for (int i = 0; i <= RN_LOG_ERROR; ++i) {
    if (!rn_str_is(name, level_names[i])) continue;
    RN_RETURN_IF_ERROR(expect_kind(name, value, LOG_BOOL));
    settings->is_off[i] = !value->bool_param;
    return RN_OK;
  }
  if (rn_str_is(name, "log_verbose_level")) {
    RN_RETURN_IF_ERROR(expect_kind(name, value, LOG_NUMBER));
    settings->verbose = value->uint32_param;
    return RN_OK;
  }
  if (!rn_str_is(name, "log_format"))
    return rn_invalid_argument("unknown log setting '%.*s'", RN_STR_ARGS(name));
  RN_RETURN_IF_ERROR(expect_kind(name, value, LOG_TEXT));
  settings->is_iso = rn_str_is(value->string_param, "ISO8601");
  if (settings->is_iso || rn_str_is(value->string_param, "default")) return RN_OK;
  return rn_invalid_argument("invalid argument for log_format, got: %.*s",
                             RN_STR_ARGS(value->string_param));
}

static void copy_log(const rn_log_settings_t* from, rn_log_settings_t* to) {
  for (int i = 0; i <= RN_LOG_ERROR; ++i) to->is_off[i] = from->is_off[i];
  to->verbose = from->verbose;
  to->is_iso = from->is_iso;
}

static rn_status_t describe_log(const rn_log_settings_t* settings, rn_arena_t* arena,
                                rn_pb_inference_LogSettingsResponse_t* out) {
  *out = (rn_pb_inference_LogSettingsResponse_t){0};
  log_reply_t* values = NULL;
  const uint32_t count = 6;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &values));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->settings, count));
  values[0] = (log_reply_t){.parameter_choice_case = LOG_TEXT, .string_param = RN_STR("")};
  out->settings.items[0].key = RN_STR("log_file");
  for (int i = 0; i <= RN_LOG_ERROR; ++i) {
    values[1 + i] =
        (log_reply_t){.parameter_choice_case = LOG_BOOL, .bool_param = !settings->is_off[i]};
    out->settings.items[1 + i].key = rn_str(level_names[i]);
  }
  values[4] = (log_reply_t){.parameter_choice_case = LOG_NUMBER, .uint32_param = settings->verbose};
  out->settings.items[4].key = RN_STR("log_verbose_level");
  values[5] = (log_reply_t){.parameter_choice_case = LOG_TEXT,
                            .string_param = rn_str(settings->is_iso ? "ISO8601" : "default")};
  out->settings.items[5].key = RN_STR("log_format");
  for (uint32_t i = 0; i < count; ++i) out->settings.items[i].value = &values[i];
  return RN_OK;
}

rn_status_t rn_oip_log_settings(rn_front_t* front,
                                const rn_pb_inference_LogSettingsRequest_t* request,
                                rn_arena_t* arena, rn_pb_inference_LogSettingsResponse_t* out) {
  if (!front->log_settings) return rn_unavailable("the server does not support dynamic logging");
  rn_log_settings_t settings = {0};
  copy_log(front->log_settings, &settings);
  for (uint32_t i = 0; i < request->settings.count; ++i) {
    const log_value_t* value = request->settings.items[i].value;
    if (!value || !value->parameter_choice_case) continue;  // stays as it is
    RN_RETURN_IF_ERROR(change_log(request->settings.items[i].key, value, &settings));
  }
  RN_RETURN_IF_ERROR(describe_log(&settings, arena, out));
  copy_log(&settings, front->log_settings);
  return RN_OK;
}

// Tracing.

typedef rn_pb_inference_TraceSettingResponse_SettingValue_t trace_reply_t;

static rn_status_t set_trace_reply(rn_arena_t* arena, const char* name, rn_str_t text,
                                   rn_pb_inference_TraceSettingResponse_t* out) {
  trace_reply_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &value));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &value->value, 1));
  value->value.items[0] = text;
  out->settings.items[out->settings.count].key = rn_str(name);
  out->settings.items[out->settings.count++].value = value;
  return RN_OK;
}

static rn_status_t set_trace_number(rn_arena_t* arena, const char* name, int64_t number,
                                    rn_pb_inference_TraceSettingResponse_t* out) {
  rn_str_t text;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &text, "%" PRId64, number));
  return set_trace_reply(arena, name, text, out);
}

static rn_status_t describe_trace(rn_request_trace_t* trace, rn_str_t model, rn_arena_t* arena,
                                  rn_pb_inference_TraceSettingResponse_t* out) {
  rn_trace_values_t values;
  rn_request_trace_values(trace, model, &values);
  *out = (rn_pb_inference_TraceSettingResponse_t){0};
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &out->settings, 6));
  out->settings.count = 0;
  RN_RETURN_IF_ERROR(
      set_trace_reply(arena, "trace_level", rn_str(values.has_times ? "TIMESTAMPS" : "OFF"), out));
  RN_RETURN_IF_ERROR(set_trace_number(arena, "trace_rate", values.rate, out));
  RN_RETURN_IF_ERROR(set_trace_number(arena, "trace_count", values.count, out));
  RN_RETURN_IF_ERROR(set_trace_number(arena, "log_frequency", values.frequency, out));
  RN_RETURN_IF_ERROR(set_trace_reply(arena, "trace_file", rn_request_trace_file(trace), out));
  return set_trace_reply(arena, "trace_mode", RN_STR("triton"), out);
}

rn_status_t rn_oip_trace_settings(rn_front_t* front,
                                  const rn_pb_inference_TraceSettingRequest_t* request,
                                  rn_arena_t* arena, rn_pb_inference_TraceSettingResponse_t* out) {
  rn_str_t model = request->model_name;
  if (!front->trace) return rn_unavailable("the server does not support tracing");
  if (model.size && !rn_oip_model_is_ready(front, model, RN_STR("")))
    return rn_invalid_argument("Request for unknown model : %.*s", RN_STR_ARGS(model));
  rn_trace_change_t change = {0};
  for (uint32_t i = 0; i < request->settings.count; ++i) {
    const rn_pb_inference_TraceSettingRequest_SettingValue_t* value =
        request->settings.items[i].value;
    RN_RETURN_IF_ERROR(rn_trace_change_add(&change, request->settings.items[i].key,
                                           value ? value->value.items : NULL,
                                           value ? value->value.count : 0));
  }
  if (request->settings.count)
    RN_RETURN_IF_ERROR(rn_request_trace_change(front->trace, model, &change));
  return describe_trace(front->trace, model, arena, out);
}

// REST.

// Reads the members of |body|, an object or nothing. |member| reads one value.
static rn_status_t read_settings(rn_str_t body, rn_arena_t* arena, void* arg,
                                 rn_status_t (*member)(void* arg, rn_str_t name,
                                                       rn_json_reader_t* json)) {
  if (!rn_str_trim(body).size) return RN_OK;
  rn_json_reader_t json = rn_json_reader(body, arena);
  rn_status_t status = rn_json_open_object(&json);
  int count = 0;
  for (rn_str_t name; rn_ok(status) && rn_json_next_member(&json, &name, &status);)
    status = ++count > MAX_SETTINGS ? rn_invalid_argument("More than %d settings", MAX_SETTINGS)
                                    : member(arg, name, &json);
  return status;
}

typedef struct log_body_t {
  rn_arena_t* arena;
  rn_pb_inference_LogSettingsRequest_t request;
} log_body_t;

// A setting that is null stays as it is.
static rn_status_t read_log_member(void* arg, rn_str_t name, rn_json_reader_t* json) {
  log_body_t* body = arg;
  rn_json_kind_t kind = rn_json_kind(json);
  if (kind == RN_JSON_NULL) return rn_json_skip(json);
  log_value_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(body->arena, &value));
  body->request.settings.items[body->request.settings.count].key = name;
  body->request.settings.items[body->request.settings.count++].value = value;
  int64_t number = 0;
  switch (kind) {
    case RN_JSON_TRUE:
    case RN_JSON_FALSE:
      value->parameter_choice_case = LOG_BOOL;
      return rn_json_bool(json, &value->bool_param);
    case RN_JSON_STRING:
      value->parameter_choice_case = LOG_TEXT;
      return rn_json_string(json, &value->string_param);
    case RN_JSON_NUMBER:
      RN_RETURN_IF_ERROR(rn_json_int(json, &number));
      if (number < 0 || number > UINT32_MAX)
        return rn_invalid_argument("log setting '%.*s' is out of range", RN_STR_ARGS(name));
      value->parameter_choice_case = LOG_NUMBER;
      value->uint32_param = (uint32_t)number;
      return RN_OK;
    default:
      return rn_invalid_argument("log setting '%.*s' is no simple value", RN_STR_ARGS(name));
  }
}

rn_status_t rn_oip_log_rest(rn_front_t* front, rn_str_t body, rn_arena_t* arena, rn_strbuf_t* out) {
  log_body_t in = {.arena = arena};
  rn_pb_inference_LogSettingsResponse_t response;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &in.request.settings, MAX_SETTINGS));
  in.request.settings.count = 0;
  RN_RETURN_IF_ERROR(read_settings(body, arena, &in, read_log_member));
  RN_RETURN_IF_ERROR(rn_oip_log_settings(front, &in.request, arena, &response));
  for (uint32_t i = 0; i < response.settings.count; ++i) {
    const log_reply_t* value = response.settings.items[i].value;
    rn_strbuf_append(out, i ? RN_STR(",") : RN_STR("{"));
    rn_json_put_string(out, response.settings.items[i].key);
    rn_strbuf_append(out, RN_STR(":"));
    if (value->parameter_choice_case == LOG_TEXT)
      rn_json_put_string(out, value->string_param);
    else if (value->parameter_choice_case == LOG_BOOL)
      rn_strbuf_append(out, value->bool_param ? RN_STR("true") : RN_STR("false"));
    else
      rn_json_put_int(out, value->uint32_param);
  }
  rn_strbuf_append(out, RN_STR("}"));
  return rn_strbuf_status(out);
}

typedef struct trace_body_t {
  rn_arena_t* arena;
  rn_pb_inference_TraceSettingRequest_t request;
} trace_body_t;

// A string, a list of strings, or null to clear the setting. Clients write numbers both ways.
static rn_status_t read_trace_member(void* arg, rn_str_t name, rn_json_reader_t* json) {
  trace_body_t* body = arg;
  rn_pb_inference_TraceSettingRequest_SettingValue_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(body->arena, &value));
  RN_RETURN_IF_ERROR(RN_OIP_LIST(body->arena, &value->value, MAX_SETTINGS));
  value->value.count = 0;
  body->request.settings.items[body->request.settings.count].key = name;
  body->request.settings.items[body->request.settings.count++].value = value;
  rn_status_t status = RN_OK;
  switch (rn_json_kind(json)) {
    case RN_JSON_NULL:
      return rn_json_skip(json);
    case RN_JSON_NUMBER:
      return rn_json_span(json, &value->value.items[value->value.count++]);
    case RN_JSON_ARRAY:
      status = rn_json_open_array(json);
      while (rn_ok(status) && rn_json_next_element(json, &status))
        status = value->value.count == MAX_SETTINGS
                     ? rn_invalid_argument("'%.*s' has too many values", RN_STR_ARGS(name))
                     : rn_json_string(json, &value->value.items[value->value.count++]);
      return status;
    default:
      return rn_json_string(json, &value->value.items[value->value.count++]);
  }
}

rn_status_t rn_oip_trace_rest(rn_front_t* front, rn_str_t model, rn_str_t body, rn_arena_t* arena,
                              rn_strbuf_t* out) {
  trace_body_t in = {.arena = arena, .request = {.model_name = model}};
  rn_pb_inference_TraceSettingResponse_t response;
  RN_RETURN_IF_ERROR(RN_OIP_LIST(arena, &in.request.settings, MAX_SETTINGS));
  in.request.settings.count = 0;
  RN_RETURN_IF_ERROR(read_settings(body, arena, &in, read_trace_member));
  RN_RETURN_IF_ERROR(rn_oip_trace_settings(front, &in.request, arena, &response));
  for (uint32_t i = 0; i < response.settings.count; ++i) {
    rn_str_t name = response.settings.items[i].key;
    bool is_list = rn_str_is(name, "trace_level");
    rn_strbuf_append(out, i ? RN_STR(",") : RN_STR("{"));
    rn_json_put_string(out, name);
    rn_strbuf_append(out, is_list ? RN_STR(":[") : RN_STR(":"));
    rn_json_put_string(out, response.settings.items[i].value->value.items[0]);
    if (is_list) rn_strbuf_append(out, RN_STR("]"));
  }
  rn_strbuf_append(out, RN_STR("}"));
  return rn_strbuf_status(out);
}
