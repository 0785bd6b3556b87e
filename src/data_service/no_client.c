// In place of client.c, in a library for one graph: there is no network.
#include "framework/data_service.h"

static rn_status_t absent(void) {
  return rn_unimplemented("This library has no client of the tf.data service");
}

rn_status_t rn_data_client_create(const rn_data_client_options_t* options, rn_data_client_t** out) {
  (void)options;
  *out = NULL;
  return absent();
}
bool rn_data_client_next(rn_data_client_t* client, rn_data_fetch_t* fetch) {
  (void)client;
  fetch->status = absent();
  return true;
}
void rn_data_client_close(rn_data_client_t* client) { (void)client; }
void rn_data_fetch_clear(rn_data_fetch_t* fetch) { (void)fetch; }
rn_status_t rn_data_service_register(const rn_env_t* env, rn_allocator_t allocator,
                                     rn_str_t address, rn_str_t graph, rn_str_t metadata,
                                     rn_str_t wanted_id, rn_strbuf_t* out_id) {
  (void)env, (void)allocator, (void)address, (void)graph, (void)metadata, (void)wanted_id;
  (void)out_id;
  return absent();
}
rn_status_t rn_data_service_metadata(const rn_env_t* env, rn_allocator_t allocator,
                                     rn_str_t address, rn_str_t dataset_id, rn_strbuf_t* out) {
  (void)env, (void)allocator, (void)address, (void)dataset_id, (void)out;
  return absent();
}
rn_status_t rn_data_splits_open(const rn_env_t* env, rn_allocator_t allocator, rn_str_t address,
                                int64_t iteration_id, int64_t source, void (*closed)(void* self),
                                void* self, rn_data_splits_t** out) {
  (void)env, (void)allocator, (void)address, (void)iteration_id, (void)source, (void)closed;
  (void)self;
  *out = NULL;
  return absent();
}
void rn_data_splits_next(rn_data_splits_t* splits, rn_data_split_t* split) {
  (void)splits;
  split->status = absent();
  split->done(split);
}
void rn_data_splits_close(rn_data_splits_t* splits) { (void)splits; }
