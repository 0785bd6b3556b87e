// Clusters of eager execution: adds the devices of other tasks to a context.
#include "capi/eager/eager.h"
#include "capi/session.h"
#include "dist/eager/client.h"

// A client's description of a cluster: its tasks, and how long the context may wait for them.
static rn_eager_join_t join_of(const void* proto, size_t length, int keep_alive_secs,
                               int64_t timeout_ms) {
  return (rn_eager_join_t){.env = rn_capi_env(),
                           .allocator = rn_capi_allocator(),
                           .server_def = rn_str_n(proto, length),
                           .keep_alive_s = keep_alive_secs,
                           .timeout_ms = timeout_ms,
                           .make_server = rn_capi_make_server};
}

static rn_status_t join(TFE_Context* ctx, const rn_eager_join_t* options) {
  if (!ctx) return rn_capi_null("TFE_ContextSetServerDef", "ctx");
  if (!options->server_def.data && options->server_def.size)
    return rn_capi_null("TFE_ContextSetServerDef", "proto");
  return rn_eager_client_join(rn_capi_eager(ctx), options);
}

void TFE_ContextSetServerDefWithTimeoutAndRetries(TFE_Context* ctx, int keep_alive_secs,
                                                  const void* proto, size_t proto_len,
                                                  int64_t init_timeout_in_ms, int retries,
                                                  TF_Status* status, bool clear_existing_contexts) {
  rn_eager_join_t options = join_of(proto, proto_len, keep_alive_secs, init_timeout_in_ms);
  options.clears = clear_existing_contexts;
  rn_status_t outcome = join(ctx, &options);
  for (int i = 0; i < retries && rn_status_code(outcome) == RN_CODE_UNAVAILABLE; ++i) {
    rn_status_free(outcome);
    outcome = join(ctx, &options);
  }
  rn_capi_set(status, outcome);
}

void TFE_ContextSetServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                        size_t proto_len, int64_t init_timeout_in_ms,
                                        TF_Status* status, bool clear_existing_contexts) {
  TFE_ContextSetServerDefWithTimeoutAndRetries(ctx, keep_alive_secs, proto, proto_len,
                                               init_timeout_in_ms, 0, status,
                                               clear_existing_contexts);
}

void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                             size_t proto_len, TF_Status* status) {
  TFE_ContextSetServerDefWithTimeout(ctx, keep_alive_secs, proto, proto_len, 0, status, false);
}

void TFE_ContextUpdateServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                           size_t proto_len, int64_t init_timeout_in_ms,
                                           TF_Status* status) {
  rn_eager_join_t options = join_of(proto, proto_len, keep_alive_secs, init_timeout_in_ms);
  options.is_update = true;
  rn_capi_set(status, join(ctx, &options));
}

void TFE_ContextUpdateServerDef(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                size_t proto_len, TF_Status* status) {
  TFE_ContextUpdateServerDefWithTimeout(ctx, keep_alive_secs, proto, proto_len, 0, status);
}

void TFE_InitializeLocalOnlyContext(TFE_Context* ctx, int keep_alive_secs, const void* proto,
                                    size_t proto_len, TF_Status* status) {
  rn_eager_join_t options = join_of(proto, proto_len, keep_alive_secs, 0);
  options.is_alone = true;
  options.make_server = NULL;
  rn_capi_set(status, join(ctx, &options));
}

bool TFE_ContextCheckAlive(TFE_Context* ctx, const char* worker_name, TF_Status* status) {
  bool is_alive = false;
  rn_status_t outcome =
      !ctx           ? RN_CAPI_NULL("ctx")
      : !worker_name ? RN_CAPI_NULL("worker_name")
                     : rn_eager_client_check(rn_capi_eager(ctx), rn_str(worker_name), 0, &is_alive);
  rn_capi_set(status, outcome);
  return is_alive;
}

rn_status_t rn_capi_list_remote(rn_eager_t* eager, TF_DeviceList* list) {
  rn_arena_t arena;
  rn_device_info_t* devices = NULL;
  size_t count = 0;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_status_t status = rn_eager_client_devices(eager, &arena, &devices, &count);
  if (rn_ok(status)) status = rn_capi_devices_add(list, devices, count);
  rn_arena_clear(&arena);
  return status;
}
