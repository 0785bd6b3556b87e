// Calls about datasets as such, each with a connection of its own: see framework/data_service.h.
#include "data_service/ask.h"
#include "framework/data_service.h"
#include "proto/data_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define DISPATCHER "/tensorflow.data.DispatcherService/"
#define CALL_NS (60 * (int64_t)1000000000)
#define TRIES_NS (60 * (int64_t)1000000000)
#define RETRY_NS 20000000

static rn_status_t ask_once(const rn_env_t* env, rn_allocator_t allocator, rn_str_t address,
                            const char* path, rn_str_t request, rn_strbuf_t* out) {
  rn_loop_t* loop = NULL;
  rn_channel_t* channel = NULL;
  char* copy = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(allocator, address, &copy));
  rn_status_t status = rn_loop_create(env, allocator, &loop);
  rn_channel_options_t options = {.loop = loop, .allocator = allocator, .address = copy};
  if (rn_ok(status)) status = rn_channel_create(&options, &channel);
  int64_t until_ns = rn_ok(status) ? rn_loop_now(loop) + TRIES_NS : 0;
  if (rn_ok(status))
    status = rn_ds_ask(channel, loop, allocator, path, request, CALL_NS, NULL, out);
  while (rn_ds_is_preempted(status) && rn_loop_now(loop) < until_ns) {
    rn_status_free(status);
    out->size = 0;
    rn_ds_pause(rn_loop_now(loop) + RETRY_NS);
    status = rn_ds_ask(channel, loop, allocator, path, request, CALL_NS, NULL, out);
  }
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
  rn_free(allocator, copy, address.size + 1);
  return status;
}

rn_status_t rn_data_service_register(const rn_env_t* env, rn_allocator_t allocator,
                                     rn_str_t address, rn_str_t graph, rn_str_t metadata,
                                     rn_str_t wanted_id, rn_strbuf_t* out_id) {
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, allocator);
  rn_strbuf_init(&response, allocator);
  size_t dataset = rn_pb_begin(&request, rn_pb_data_GetOrRegisterDatasetRequest_dataset_field);
  rn_pb_put_str(&request, rn_pb_data_DatasetDef_graph_field, graph);
  rn_pb_end(&request, dataset);
  rn_pb_put_str(&request, rn_pb_data_GetOrRegisterDatasetRequest_metadata_field, metadata);
  if (wanted_id.size)
    rn_pb_put_str(&request, rn_pb_data_GetOrRegisterDatasetRequest_dataset_id_field, wanted_id);
  rn_status_t status = rn_strbuf_status(&request);
  if (rn_ok(status))
    status = ask_once(env, allocator, address, DISPATCHER "GetOrRegisterDataset",
                      rn_strbuf_view(&request), &response);
  if (rn_ok(status))
    rn_strbuf_append(out_id,
                     rn_field_bytes(rn_strbuf_view(&response),
                                    rn_pb_data_GetOrRegisterDatasetResponse_dataset_id_field));
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return rn_ok(status) ? rn_strbuf_status(out_id) : status;
}

rn_status_t rn_data_service_metadata(const rn_env_t* env, rn_allocator_t allocator,
                                     rn_str_t address, rn_str_t dataset_id, rn_strbuf_t* out) {
  rn_strbuf_t request, response;
  rn_strbuf_init(&request, allocator);
  rn_strbuf_init(&response, allocator);
  rn_pb_put_str(&request, rn_pb_data_GetDataServiceMetadataRequest_dataset_id_field, dataset_id);
  rn_status_t status = rn_strbuf_status(&request);
  if (rn_ok(status))
    status = ask_once(env, allocator, address, DISPATCHER "GetDataServiceMetadata",
                      rn_strbuf_view(&request), &response);
  if (rn_ok(status))
    rn_strbuf_append(out, rn_field_bytes(rn_strbuf_view(&response),
                                         rn_pb_data_GetDataServiceMetadataResponse_metadata_field));
  rn_strbuf_clear(&request);
  rn_strbuf_clear(&response);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}
