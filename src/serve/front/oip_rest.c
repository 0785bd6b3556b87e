// The paths of the Open Inference Protocol's REST form. See oip_rest.h.
#include "serve/front/oip_rest.h"

#include "base/container.h"
#include "serve/front/json.h"
#include "serve/front/json_proto.h"
#include "serve/front/oip_info.h"
#include "serve/front/oip_settings.h"
#include "serve/front/shared_memory.h"

// The deepest path is /v2/models/<name>/versions/<version>/infer.
#define MAX_PARTS 6

// A request with the parts of its path behind /v2, unescaped.
typedef struct oip_rest_t {
  rn_front_t* front;
  rn_http_in_t* request;
  rn_arena_t arena;
  rn_str_t parts[MAX_PARTS];
  int count;
  rn_str_t name, version;  // of the path: a model's or a region's
  rn_strbuf_t out;
} oip_rest_t;

#define PRINT(rest, type, message) \
  rn_json_put_message(&(rest)->out, &rn_pb_inference_##type##_desc, (message), RN_JSON_COMPACT)

// Reads the members of a body that is an object or empty. |member| reads or skips one value.
static rn_status_t read_body(oip_rest_t* rest, void* arg,
                             rn_status_t (*member)(void* arg, rn_str_t key,
                                                   rn_json_reader_t* json)) {
  rn_str_t body = rn_str_trim(rest->request->body);
  if (!body.size) return RN_OK;
  rn_json_reader_t json = rn_json_reader(body, &rest->arena);
  rn_status_t status = rn_json_open_object(&json);
  for (rn_str_t key; rn_ok(status) && rn_json_next_member(&json, &key, &status);)
    status = member(arg, key, &json);
  return status;
}

// Health and metadata.

static rn_status_t live(oip_rest_t* rest) {
  rn_strbuf_append(&rest->out, RN_STR("{\"live\":true}"));
  return RN_OK;
}

static rn_status_t ready(oip_rest_t* rest) {
  rn_strbuf_append(&rest->out, RN_STR("{\"ready\":true}"));
  return rn_oip_is_ready(rest->front) ? RN_OK : rn_invalid_argument("The server is not ready");
}

static rn_status_t server_metadata(oip_rest_t* rest) {
  rn_pb_inference_ServerMetadataResponse_t response;
  RN_RETURN_IF_ERROR(rn_oip_server_metadata(&rest->arena, &response));
  return PRINT(rest, ServerMetadataResponse, &response);
}

static rn_status_t model_ready(oip_rest_t* rest) {
  if (!rn_oip_model_is_ready(rest->front, rest->name, rest->version))
    return rn_invalid_argument("Model version not ready");
  rn_strbuf_append(&rest->out, RN_STR("{\"name\":"));
  rn_json_put_string(&rest->out, rest->name);
  rn_strbuf_append(&rest->out, RN_STR(",\"ready\":true}"));
  return RN_OK;
}

static rn_status_t model_metadata(oip_rest_t* rest) {
  rn_pb_inference_ModelMetadataResponse_t response;
  RN_RETURN_IF_ERROR(
      rn_oip_model_metadata(rest->front, rest->name, rest->version, &rest->arena, &response));
  return PRINT(rest, ModelMetadataResponse, &response);
}

static rn_status_t model_config(oip_rest_t* rest) {
  rn_pb_inference_ModelConfig_t config;
  RN_RETURN_IF_ERROR(
      rn_oip_model_config(rest->front, rest->name, rest->version, &rest->arena, &config));
  return PRINT(rest, ModelConfig, &config);
}

static rn_status_t model_statistics(oip_rest_t* rest) {
  rn_pb_inference_ModelStatisticsResponse_t response;
  RN_RETURN_IF_ERROR(
      rn_oip_statistics(rest->front, rest->name, rest->version, &rest->arena, &response));
  return PRINT(rest, ModelStatisticsResponse, &response);
}

// The repository.

static rn_status_t read_ready(void* arg, rn_str_t key, rn_json_reader_t* json) {
  return rn_str_is(key, "ready") ? rn_json_bool(json, arg) : rn_json_skip(json);
}

static rn_status_t repository_index(oip_rest_t* rest) {
  bool only_ready = false;
  rn_pb_inference_RepositoryIndexResponse_t response;
  RN_RETURN_IF_ERROR(read_body(rest, &only_ready, read_ready));
  RN_RETURN_IF_ERROR(rn_oip_index(rest->front, only_ready, &rest->arena, &response));
  rn_strbuf_append(&rest->out, RN_STR("["));
  for (uint32_t i = 0; i < response.models.count; ++i) {
    if (i) rn_strbuf_append(&rest->out, RN_STR(","));
    RN_RETURN_IF_ERROR(PRINT(rest, RepositoryIndexResponse_ModelIndex, &response.models.items[i]));
  }
  rn_strbuf_append(&rest->out, RN_STR("]"));
  return RN_OK;
}

// A load or an unload on its way.
typedef struct oip_change_t {
  rn_job_t job;
  rn_front_t* front;
  rn_http_in_t* request;
  rn_arena_t arena;
  rn_str_t name;
  bool loads;
  rn_oip_load_t load;
} oip_change_t;

static void run_change(rn_job_t* job) {
  oip_change_t* change = RN_CONTAINER_OF(job, oip_change_t, job);
  rn_front_t* front = change->front;
  rn_http_in_t* request = change->request;
  rn_status_t status = change->loads ? rn_oip_load(front, change->name, &change->load)
                                     : rn_oip_unload(front, change->name);
  rn_arena_clear(&change->arena);
  RN_FREE(front->allocator, change);
  rn_strbuf_t empty;
  rn_strbuf_init(&empty, front->allocator);
  if (rn_ok(status))
    rn_front_reply(front, request, 200, NULL, &empty, 0);
  else
    rn_front_reply_error(front, request, status, 0);
}

static rn_status_t read_parameters(void* arg, rn_str_t key, rn_json_reader_t* json) {
  rn_oip_load_t* load = arg;
  if (!rn_str_is(key, "parameters")) return rn_json_skip(json);
  rn_str_t name;
  rn_status_t status = rn_json_open_object(json);
  while (rn_ok(status) && rn_json_next_member(json, &name, &status)) {
    load->has_config |= rn_str_is(name, "config");
    if (rn_str_is(name, "config")) {
      status = rn_json_string(json, &load->config);
      continue;
    }
    load->other = name;
    status = rn_json_skip(json);
  }
  return status;
}

static rn_status_t start_change(oip_rest_t* rest, bool loads) {
  rn_front_t* front = rest->front;
  rn_oip_load_t load = {0};
  RN_RETURN_IF_ERROR(read_body(rest, &load, read_parameters));
  oip_change_t* change = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(front->allocator, &change));
  *change = (oip_change_t){.front = front, .request = rest->request, .loads = loads, .load = load};
  change->job.run = run_change;
  rn_arena_init(&change->arena, front->allocator);
  rn_status_t status = rn_arena_str(&change->arena, rest->name, &change->name);
  if (rn_ok(status)) status = rn_arena_str(&change->arena, load.config, &change->load.config);
  if (rn_ok(status)) status = rn_arena_str(&change->arena, load.other, &change->load.other);
  if (rn_ok(status)) {
    rn_pool_submit(front->loads, &change->job);
  } else {
    rn_arena_clear(&change->arena);
    RN_FREE(front->allocator, change);
  }
  return status;
}
static rn_status_t load(oip_rest_t* rest) { return start_change(rest, true); }
static rn_status_t unload(oip_rest_t* rest) { return start_change(rest, false); }

static rn_status_t infer(oip_rest_t* rest) {
  rn_oip_rest_infer(rest->front, rest->request, rest->name, rest->version);
  return RN_OK;
}

// Shared memory.

static rn_status_t read_region(void* arg, rn_str_t key, rn_json_reader_t* json) {
  rn_pb_inference_SystemSharedMemoryRegisterRequest_t* region = arg;
  if (rn_str_is(key, "key")) return rn_json_string(json, &region->key);
  int64_t number = 0;
  bool is_offset = rn_str_is(key, "offset");
  if (!is_offset && !rn_str_is(key, "byte_size")) return rn_json_skip(json);
  RN_RETURN_IF_ERROR(rn_json_int(json, &number));
  if (number < 0) return rn_invalid_argument("'%.*s' must not be negative", RN_STR_ARGS(key));
  *(is_offset ? &region->offset : &region->byte_size) = (uint64_t)number;
  return RN_OK;
}

static rn_status_t region_register(oip_rest_t* rest) {
  rn_pb_inference_SystemSharedMemoryRegisterRequest_t region = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  RN_RETURN_IF_ERROR(read_body(rest, &region, read_region));
  return rn_shared_memory_add(rest->front->shared_memory, rest->name, region.key, region.offset,
                              region.byte_size);
}

static rn_status_t region_unregister(oip_rest_t* rest) {
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  rn_shared_memory_remove(rest->front->shared_memory, RN_REGION_SYSTEM, rest->name);
  return RN_OK;
}

static rn_status_t region_status(oip_rest_t* rest) {
  rn_pb_inference_SystemSharedMemoryStatusResponse_t response = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  RN_RETURN_IF_ERROR(rn_oip_regions(rest->front, rest->name, &rest->arena, &response));
  rn_strbuf_append(&rest->out, RN_STR("["));
  for (uint32_t i = 0; i < response.regions.count; ++i) {
    if (i) rn_strbuf_append(&rest->out, RN_STR(","));
    RN_RETURN_IF_ERROR(PRINT(rest, SystemSharedMemoryStatusResponse_RegionStatus,
                             response.regions.items[i].value));
  }
  rn_strbuf_append(&rest->out, RN_STR("]"));
  return RN_OK;
}

static rn_status_t read_handle(void* arg, rn_str_t key, rn_json_reader_t* json) {
  rn_pb_inference_CudaSharedMemoryRegisterRequest_t* region = arg;
  if (rn_str_is(key, "raw_handle")) return rn_json_bytes(json, &region->raw_handle);
  if (rn_str_is(key, "device_id")) return rn_json_int(json, &region->device_id);
  if (!rn_str_is(key, "byte_size")) return rn_json_skip(json);
  int64_t size = 0;
  RN_RETURN_IF_ERROR(rn_json_int(json, &size));
  if (size < 0) return rn_invalid_argument("'byte_size' must not be negative");
  region->byte_size = (uint64_t)size;
  return RN_OK;
}

static rn_status_t cuda_register(oip_rest_t* rest) {
  rn_pb_inference_CudaSharedMemoryRegisterRequest_t region = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  RN_RETURN_IF_ERROR(read_body(rest, &region, read_handle));
  return rn_shared_memory_add_cuda(rest->front->shared_memory, rest->name, region.raw_handle,
                                   region.device_id, region.byte_size);
}

static rn_status_t cuda_unregister(oip_rest_t* rest) {
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  rn_shared_memory_remove(rest->front->shared_memory, RN_REGION_CUDA, rest->name);
  return RN_OK;
}

static rn_status_t cuda_status(oip_rest_t* rest) {
  rn_pb_inference_CudaSharedMemoryStatusResponse_t response = {0};
  RN_RETURN_IF_ERROR(rn_oip_shared_memory(rest->front, rest->request->is_local));
  RN_RETURN_IF_ERROR(rn_oip_cuda_regions(rest->front, rest->name, &rest->arena, &response));
  rn_strbuf_append(&rest->out, RN_STR("["));
  for (uint32_t i = 0; i < response.regions.count; ++i) {
    if (i) rn_strbuf_append(&rest->out, RN_STR(","));
    RN_RETURN_IF_ERROR(
        PRINT(rest, CudaSharedMemoryStatusResponse_RegionStatus, response.regions.items[i].value));
  }
  rn_strbuf_append(&rest->out, RN_STR("]"));
  return RN_OK;
}

// Settings.

// GET changes nothing, whatever its body.
static rn_str_t settings_of(const oip_rest_t* rest) {
  return rn_str_is(rest->request->method, "POST") ? rest->request->body : RN_STR("");
}

static rn_status_t log_settings(oip_rest_t* rest) {
  return rn_oip_log_rest(rest->front, settings_of(rest), &rest->arena, &rest->out);
}

static rn_status_t trace_settings(oip_rest_t* rest) {
  return rn_oip_trace_rest(rest->front, rest->name, settings_of(rest), &rest->arena, &rest->out);
}

// The table. In a path, * is a name and # a version.

typedef struct oip_route_t {
  const char* method;
  const char* path;
  rn_role_t role;
  rn_status_t (*run)(oip_rest_t* rest);
  bool replies_later;  // unless |run| fails
} oip_route_t;

static const oip_route_t routes[] = {
    {"POST", "models/*/infer", RN_ROLE_PREDICT, infer, true},
    {"POST", "models/*/versions/#/infer", RN_ROLE_PREDICT, infer, true},
    {"GET", "", RN_ROLE_READ, server_metadata, false},
    {"GET", "health/live", RN_ROLE_NONE, live, false},
    {"GET", "health/ready", RN_ROLE_NONE, ready, false},
    {"GET", "models/stats", RN_ROLE_READ, model_statistics, false},
    {"GET", "models/*", RN_ROLE_READ, model_metadata, false},
    {"GET", "models/*/versions/#", RN_ROLE_READ, model_metadata, false},
    {"GET", "models/*/ready", RN_ROLE_NONE, model_ready, false},
    {"GET", "models/*/versions/#/ready", RN_ROLE_NONE, model_ready, false},
    {"GET", "models/*/config", RN_ROLE_READ, model_config, false},
    {"GET", "models/*/versions/#/config", RN_ROLE_READ, model_config, false},
    {"GET", "models/*/stats", RN_ROLE_READ, model_statistics, false},
    {"GET", "models/*/versions/#/stats", RN_ROLE_READ, model_statistics, false},
    {"GET", "logging", RN_ROLE_READ, log_settings, false},
    {"POST", "logging", RN_ROLE_ADMIN, log_settings, false},
    {"GET", "trace/setting", RN_ROLE_READ, trace_settings, false},
    {"POST", "trace/setting", RN_ROLE_ADMIN, trace_settings, false},
    {"GET", "models/*/trace/setting", RN_ROLE_READ, trace_settings, false},
    {"POST", "models/*/trace/setting", RN_ROLE_ADMIN, trace_settings, false},
    {"POST", "repository/index", RN_ROLE_READ, repository_index, false},
    {"POST", "repository/models/*/load", RN_ROLE_ADMIN, load, true},
    {"POST", "repository/models/*/unload", RN_ROLE_ADMIN, unload, true},
    {"GET", "systemsharedmemory/status", RN_ROLE_ADMIN, region_status, false},
    {"GET", "systemsharedmemory/region/*/status", RN_ROLE_ADMIN, region_status, false},
    {"POST", "systemsharedmemory/region/*/register", RN_ROLE_ADMIN, region_register, false},
    {"POST", "systemsharedmemory/unregister", RN_ROLE_ADMIN, region_unregister, false},
    {"POST", "systemsharedmemory/region/*/unregister", RN_ROLE_ADMIN, region_unregister, false},
    {"GET", "cudasharedmemory/status", RN_ROLE_ADMIN, cuda_status, false},
    {"GET", "cudasharedmemory/region/*/status", RN_ROLE_ADMIN, cuda_status, false},
    {"POST", "cudasharedmemory/region/*/register", RN_ROLE_ADMIN, cuda_register, false},
    {"POST", "cudasharedmemory/unregister", RN_ROLE_ADMIN, cuda_unregister, false},
    {"POST", "cudasharedmemory/region/*/unregister", RN_ROLE_ADMIN, cuda_unregister, false},
};

static bool fits(oip_rest_t* rest, const char* path) {
  rn_str_t left = rn_str(path);
  rest->name = rest->version = RN_STR("");
  int i = 0;
  while (left.size) {
    rn_str_t part = rn_str_split(&left, '/');
    if (i == rest->count) return false;
    if (rn_str_is(part, "*"))
      rest->name = rest->parts[i];
    else if (rn_str_is(part, "#"))
      rest->version = rest->parts[i];
    else if (!rn_str_eq(part, rest->parts[i]))
      return false;
    if (!rest->parts[i++].size) return false;
  }
  return i == rest->count;
}

// Splits the path behind /v2; false if it has more parts than any path of the protocol.
static bool split(oip_rest_t* rest, rn_str_t path, rn_status_t* out_status) {
  while (path.size) {
    rn_str_t part = rn_str_split(&path, '/');
    if (!part.size && !path.size) break;  // a slash at the end
    if (rest->count == MAX_PARTS) return false;
    *out_status = rn_front_unescape(part, &rest->arena, &rest->parts[rest->count++]);
    if (!rn_ok(*out_status)) return true;
  }
  return true;
}

static void reply_code(oip_rest_t* rest, int code, const char* error) {
  rn_strbuf_printf(&rest->out, "{\"error\":\"%s\"}", error);
  rn_front_reply(rest->front, rest->request, code, NULL, &rest->out, 0);
}

static void run(oip_rest_t* rest, rn_role_t role) {
  const oip_route_t* found = NULL;
  bool has_path = false;
  for (size_t i = 0; !found && i < sizeof routes / sizeof *routes; ++i) {
    if (!fits(rest, routes[i].path)) continue;
    has_path = true;
    if (rn_str_is(rest->request->method, routes[i].method)) found = &routes[i];
  }
  if (!found) {
    reply_code(rest, has_path ? 405 : 404, has_path ? "Method Not Allowed" : "Not Found");
    return;
  }
  rn_status_t status = role < found->role ? rn_front_denied(role) : found->run(rest);
  if (rn_ok(status) && found->replies_later) return;
  if (rn_ok(status)) status = rn_strbuf_status(&rest->out);
  if (rn_ok(status))
    rn_front_reply(rest->front, rest->request, 200, NULL, &rest->out, 0);
  else
    rn_front_reply_error(rest->front, rest->request, status, 0);
}

bool rn_oip_rest_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role) {
  rn_str_t path = request->path;
  bool is_ours = rn_str_is(path, "/v2") || rn_str_starts_with(path, RN_STR("/v2/"));
  if (!is_ours) return false;
  oip_rest_t rest = {.front = front, .request = request};
  rn_arena_init(&rest.arena, front->allocator);
  rn_strbuf_init(&rest.out, front->allocator);
  path = path.size > 4 ? rn_str_n(path.data + 4, path.size - 4) : RN_STR("");
  rn_status_t status = RN_OK;
  if (!split(&rest, path, &status))
    reply_code(&rest, 404, "Not Found");
  else if (rn_ok(status))
    run(&rest, role);
  else
    rn_front_reply_error(front, request, status, 0);
  rn_strbuf_clear(&rest.out);
  rn_arena_clear(&rest.arena);
  return true;
}
