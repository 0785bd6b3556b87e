// Sessions: options, creation and destruction, devices.
#include "capi/session.h"

#include <stdlib.h>

#include "dist/client.h"
#include "runnel/saved_model.h"
#include "runnel/session.h"

// What TF_NewSession sets in every ConfigProto, as bytes to append to it: experimental {
// disable_optimize_for_static_graph: true }. A client may add to its graph at any time.
#define ALWAYS_SET RN_STR("\x82\x01\x03\xc0\x01\x01")

TF_SessionOptions* TF_NewSessionOptions(void) {
  TF_SessionOptions* options = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &options);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  rn_session_options_init(&options->parsed);
  rn_strbuf_init(&options->config, rn_capi_allocator());
  return options;
}

static void forget_target(TF_SessionOptions* options) {
  if (options->target) {
    rn_free(rn_capi_allocator(), options->target, strlen(options->target) + 1);
    options->target = NULL;
  }
}

void TF_DeleteSessionOptions(TF_SessionOptions* options) {
  if (!options) return;
  forget_target(options);
  if (options->allow) rn_free(rn_capi_allocator(), options->allow, strlen(options->allow) + 1);
  rn_strbuf_clear(&options->config);
  RN_FREE(rn_capi_allocator(), options);
}

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  if (!options) return;
  forget_target(options);
  rn_status_t status =
      target ? rn_str_dup(rn_capi_allocator(), rn_str(target), &options->target) : RN_OK;
  if (!rn_ok(status)) rn_status_free(status);
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                  TF_Status* status) {
  if (!options || (!proto && proto_len)) {
    rn_capi_set(status, RN_CAPI_NULL(options ? "proto" : "options"));
    return;
  }
  rn_session_options_t parsed;
  rn_session_options_init(&parsed);
  rn_status_t outcome = rn_session_options_parse(rn_str_n(proto, proto_len), &parsed);
  if (rn_status_code(outcome) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(outcome);
    outcome = rn_invalid_argument("Unparseable ConfigProto");
  }
  rn_strbuf_t config;
  rn_strbuf_init(&config, rn_capi_allocator());
  if (rn_ok(outcome)) {
    rn_strbuf_append_n(&config, proto, proto_len);
    outcome = rn_strbuf_status(&config);
  }
  if (rn_ok(outcome)) {
    options->parsed = parsed;
    rn_strbuf_clear(&options->config);
    options->config = config;
  }
  rn_capi_set(status, outcome);
}

RN_API void rn_session_options_allow(TF_SessionOptions* options, const char* allow,
                                     TF_Status* status) {
  if (!options || !allow) {
    rn_capi_set(status, RN_CAPI_NULL(options ? "allow" : "options"));
    return;
  }
  char* copy = NULL;
  if (!rn_capi_ok(status, rn_str_dup(rn_capi_allocator(), rn_str(allow), &copy))) return;
  if (options->allow) rn_free(rn_capi_allocator(), options->allow, strlen(options->allow) + 1);
  options->allow = copy;
}

// The rewrite options auto_mixed_precision and auto_mixed_precision_onednn_bfloat16, to append to a
// ConfigProto.
#define REWRITE(half, bfloat16) RN_STR("\x52\x08\x52\x06\xb8\x01" half "\xf8\x01" bfloat16)
#define REWRITE_HALF REWRITE("\x01", "\x02")
#define REWRITE_BFLOAT16 REWRITE("\x02", "\x01")
#define REWRITE_NONE REWRITE("\x02", "\x02")

RN_API void rn_session_options_mixed_precision(TF_SessionOptions* options, const char* precision,
                                               TF_Status* status) {
  if (!options || !precision) {
    rn_capi_set(status, RN_CAPI_NULL(options ? "precision" : "options"));
    return;
  }
  rn_precision_t parsed;
  if (!rn_capi_ok(status, rn_precision_parse(rn_str(precision), &parsed))) return;
  rn_strbuf_t config;
  rn_strbuf_init(&config, rn_capi_allocator());
  rn_strbuf_append(&config, rn_strbuf_view(&options->config));
  rn_strbuf_append(&config, parsed.gpu == RN_HALF       ? REWRITE_HALF
                            : parsed.gpu == RN_BFLOAT16 ? REWRITE_BFLOAT16
                                                        : REWRITE_NONE);
  if (rn_capi_ok(status, rn_strbuf_status(&config)))
    TF_SetConfig(options, config.data, config.size, status);
  rn_strbuf_clear(&config);
}

rn_status_t rn_capi_session_create(rn_graph_t* graph, const TF_SessionOptions* options,
                                   TF_Session** out) {
  return rn_capi_session_create_for(graph, options, NULL, out);
}

// A session whose master is the task at |target|.
static rn_status_t connect_to(rn_graph_t* graph, rn_str_t target,
                              const rn_session_options_t* options, rn_session_t** out) {
  rn_client_options_t client_options = {.env = rn_capi_env(),
                                        .allocator = rn_capi_allocator(),
                                        .target = target,
                                        .config = options->config,
                                        .timeout_ms = options->timeout_ms};
  rn_client_t* client = NULL;
  RN_RETURN_IF_ERROR(rn_client_create(&client_options, graph, &client));
  *out = rn_client_session(client);
  return RN_OK;
}

rn_status_t rn_capi_session_create_for(rn_graph_t* graph, const TF_SessionOptions* options,
                                       const char* folder, TF_Session** out) {
  *out = NULL;
  rn_session_options_t parsed;
  rn_session_options_init(&parsed);
  if (options) parsed = options->parsed;
  rn_str_t target = rn_str(options ? options->target : NULL);
  parsed.is_limited = folder || (options && options->allow);
  parsed.folder = rn_str(folder);
  parsed.allow = rn_str(options && options->allow ? options->allow : getenv("RUNNEL_ALLOW"));
  bool is_remote = rn_client_is_target(target);
  if (target.size && !is_remote) {
    return rn_not_found(
        "No session factory registered for the given session options: {target: \"%s\" config: } "
        "Registered factories are {DIRECT_SESSION, GRPC_SESSION}.",
        options->target);
  }
  TF_Session* session = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &session));
  rn_mutex_init(&session->mutex);
  rn_strbuf_t config;
  rn_strbuf_init(&config, rn_capi_allocator());
  if (options) rn_strbuf_append(&config, rn_strbuf_view(&options->config));
  rn_strbuf_append(&config, ALWAYS_SET);
  rn_status_t status = rn_strbuf_status(&config);
  parsed.config = rn_strbuf_view(&config);
  if (rn_ok(status))
    status = is_remote ? connect_to(graph, target, &parsed, &session->session)
                       : rn_session_create(graph, &parsed, rn_capi_env(), rn_capi_allocator(),
                                           &session->session);
  rn_strbuf_clear(&config);
  if (!rn_ok(status)) {
    rn_capi_session_destroy(session);
    return status;
  }
  *out = session;
  return RN_OK;
}

void rn_capi_session_destroy(TF_Session* session) {
  if (!session) return;
  while (session->partials) {
    rn_capi_partial_t* partial = session->partials;
    session->partials = partial->next;
    rn_capi_partial_free(partial);
  }
  rn_session_destroy(session->session);
  rn_saved_model_destroy(session->origin_file);
  rn_mutex_destroy(&session->mutex);
  RN_FREE(rn_capi_allocator(), session);
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  TF_Session* session = NULL;
  rn_status_t outcome =
      graph ? rn_capi_session_create(rn_capi_graph(graph), opts, &session) : RN_CAPI_NULL("graph");
  rn_capi_set(status, outcome);
  return session;
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  rn_capi_set(status, session ? rn_session_close(session->session) : RN_CAPI_NULL("session"));
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  rn_capi_session_destroy(session);
  rn_capi_set(status, RN_OK);
}

// Sessions pick up new operations when they run, so there is nothing to do here.
void TF_ExtendSession(TF_Session* session, TF_Status* status) {
  rn_capi_set(status, session ? RN_OK : RN_CAPI_NULL("session"));
}

// The devices of a session, copied: the list may outlive the session.
typedef struct session_device_t {
  const char* name;
  const char* type;
  int64_t memory;
  uint64_t incarnation;
  const char* description;  // NULL: none
} session_device_t;

struct TF_DeviceList {
  int count;
  rn_arena_t arena;
  session_device_t* devices;
};

static rn_status_t fill_devices(TF_DeviceList* list, TF_Session* session) {
  int count = 0;
  rn_device_t** devices = NULL;
  RN_RETURN_IF_ERROR(rn_session_devices(session->session, &devices, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&list->arena, (size_t)count, &list->devices));
  for (int i = 0; i < count; ++i) {
    const rn_device_t* device = devices[i];
    rn_str_t name, type;
    RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, device->name, &name));
    RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, rn_str(device->type), &type));
    rn_str_t description = {0};
    if (device->description)
      RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, rn_str(device->description), &description));
    list->devices[i] = (session_device_t){name.data, type.data, device->memory_limit,
                                          device->incarnation, description.data};
  }
  list->count = count;
  return RN_OK;
}

rn_status_t rn_capi_devices_add(TF_DeviceList* list, const rn_device_info_t* infos, size_t count) {
  session_device_t* devices = NULL;
  size_t own = (size_t)list->count;
  if (!count) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&list->arena, own + count, &devices));
  memcpy(devices, list->devices, own * sizeof *devices);
  for (size_t i = 0; i < count; ++i) {
    rn_str_t name, type;
    RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, infos[i].name, &name));
    RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, infos[i].type, &type));
    rn_str_t description = {0};
    if (infos[i].description.size)
      RN_RETURN_IF_ERROR(rn_arena_str(&list->arena, infos[i].description, &description));
    devices[own + i] = (session_device_t){name.data, type.data, infos[i].memory_limit,
                                          infos[i].incarnation, description.data};
  }
  list->devices = devices;
  list->count += (int)count;
  return RN_OK;
}

rn_status_t rn_capi_session_devices(TF_Session* session, TF_DeviceList** out) {
  TF_DeviceList* list = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &list));
  rn_arena_init(&list->arena, rn_capi_allocator());
  rn_status_t status = fill_devices(list, session);
  if (!rn_ok(status)) {
    TF_DeleteDeviceList(list);
    return status;
  }
  *out = list;
  return RN_OK;
}

TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status) {
  TF_DeviceList* list = NULL;
  rn_capi_set(status, session ? rn_capi_session_devices(session, &list) : RN_CAPI_NULL("session"));
  return list;
}

void TF_DeleteDeviceList(TF_DeviceList* list) {
  if (!list) return;
  rn_arena_clear(&list->arena);
  RN_FREE(rn_capi_allocator(), list);
}

int TF_DeviceListCount(const TF_DeviceList* list) { return list ? list->count : 0; }

// The device, or NULL with the error in |status|.
static const session_device_t* device_at(const TF_DeviceList* list, int index, TF_Status* status) {
  if (!list) {
    rn_capi_set(status, rn_invalid_argument("list is null!"));
    return NULL;
  }
  if (index < 0 || index >= list->count) {
    rn_capi_set(status, rn_invalid_argument("index out of bounds"));
    return NULL;
  }
  rn_capi_set(status, RN_OK);
  return &list->devices[index];
}

const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  const session_device_t* device = device_at(list, index, status);
  return device ? device->name : NULL;
}

const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  const session_device_t* device = device_at(list, index, status);
  return device ? device->type : NULL;
}

int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  const session_device_t* device = device_at(list, index, status);
  return device ? device->memory : -1;
}

uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  const session_device_t* device = device_at(list, index, status);
  return device ? device->incarnation : 0;
}

RN_API const char* rn_device_list_description(const TF_DeviceList* list, int index) {
  return list && index >= 0 && index < list->count ? list->devices[index].description : NULL;
}
