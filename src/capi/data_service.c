// Servers of the tf.data service: see runnel/data_service.h.
#include "runnel/data_service.h"

#include "capi/internal.h"
#include "data_service/server.h"
#include "framework/data_service.h"
#include "tensorflow/c/tf_buffer.h"

struct rn_data_server_t {
  rn_ds_server_t* server;  // Owned
};

RN_API rn_data_server_t* rn_data_server_open(rn_data_role_t role, const void* config, size_t size,
                                             const char* host, TF_Status* status) {
  rn_data_server_t* out = NULL;
  rn_status_t outcome = !config && size ? RN_CAPI_NULL("config") : RN_OK;
  if (rn_ok(outcome)) outcome = RN_NEW(rn_capi_allocator(), &out);
  if (rn_ok(outcome))
    outcome = rn_ds_server_create(role == RN_DATA_DISPATCHER, rn_str_n(config, size),
                                  host ? host : "127.0.0.1", rn_capi_env(), rn_capi_allocator(),
                                  &out->server);
  if (!rn_ok(outcome)) {
    rn_data_server_free(out);
    out = NULL;
  }
  rn_capi_set(status, outcome);
  return out;
}

RN_API void rn_data_server_begin(rn_data_server_t* server, TF_Status* status) {
  rn_capi_set(status, server ? rn_ds_server_start(server->server) : RN_CAPI_NULL("server"));
}

RN_API void rn_data_server_end(rn_data_server_t* server) {
  if (server) rn_ds_server_stop(server->server);
}

RN_API void rn_data_server_wait(rn_data_server_t* server) {
  if (server) rn_ds_server_join(server->server);
}

RN_API int rn_data_server_port(const rn_data_server_t* server) {
  return server ? rn_ds_server_port(server->server) : 0;
}

RN_API int64_t rn_data_server_active(rn_data_server_t* server) {
  return server ? rn_ds_server_active(server->server) : 0;
}

RN_API void rn_data_server_free(rn_data_server_t* server) {
  if (!server) return;
  rn_ds_server_destroy(server->server);
  RN_FREE(rn_capi_allocator(), server);
}

RN_API TF_Buffer* rn_data_service_get_metadata(const char* address, const char* dataset_id,
                                               TF_Status* status) {
  TF_Buffer* out = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_capi_allocator());
  rn_status_t outcome = !address || !dataset_id
                            ? RN_CAPI_NULL(address ? "dataset_id" : "address")
                            : rn_data_service_metadata(rn_capi_env(), rn_capi_allocator(),
                                                       rn_str(address), rn_str(dataset_id), &bytes);
  if (rn_ok(outcome)) out = TF_NewBufferFromString(bytes.size ? bytes.data : "", bytes.size);
  rn_strbuf_clear(&bytes);
  rn_capi_set(status, outcome);
  return out;
}
