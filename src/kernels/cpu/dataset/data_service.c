// DataServiceDataset: reads the elements of a dataset that workers of the tf.data service process.
#include <stdatomic.h>
#include <stdio.h>

#include "base/container.h"
#include "framework/data_service.h"
#include "kernels/cpu/dataset/compress.h"
#include "wire/scan.h"

typedef struct service_dataset_t {
  rn_dataset_t base;
  rn_data_client_options_t options;  // strings are those of the inputs, or in |id|
  char id[24];                       // of a dataset whose id is a number
  _Atomic int64_t iterations;        // begun so far
} service_dataset_t;

typedef struct service_iterator_t {
  rn_data_iterator_t base;
  rn_data_client_t* client;  // NULL once it is closed
  rn_data_fetch_t fetch;
  rn_job_t job;  // goes on with what |fetch| brought
  rn_cancel_entry_t entry;
  bool is_linked;
  _Atomic bool is_closed;
} service_iterator_t;

static rn_status_t target_of(rn_str_t name, int* out) {
  static const char* const names[] = {"AUTO", "ANY", "LOCAL"};
  for (int i = 0; i < 3; ++i) {
    *out = i + 1;
    if (rn_str_is(name, names[i])) return RN_OK;
  }
  return rn_invalid_argument("Unrecognized target workers: %.*s", RN_STR_ARGS(name));
}

static rn_status_t read_id(service_dataset_t* own) {
  const rn_tensor_t* id = rn_data_input(&own->base, "dataset_id", NULL);
  if (id->dtype == RN_STRING)
    return rn_data_text(&own->base, "dataset_id", &own->options.dataset_id);
  int64_t number = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(&own->base, "dataset_id", &number));
  snprintf(own->id, sizeof own->id, "%lld", (long long)number);
  own->options.dataset_id = rn_str(own->id);
  return RN_OK;
}

static rn_status_t remote_open(rn_dataset_t* dataset) {
  service_dataset_t* own = (service_dataset_t*)dataset;
  rn_data_client_options_t* options = &own->options;
  *options = (rn_data_client_options_t){.allocator = dataset->node->allocator,
                                        .env = dataset->host->env,
                                        .consumer_index = -1,
                                        .num_consumers = -1};
  rn_str_t protocol;
  RN_RETURN_IF_ERROR(read_id(own));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "processing_mode", &options->processing_mode));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "address", &options->address));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "protocol", &protocol));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "job_name", &options->job_name));
  RN_RETURN_IF_ERROR(
      rn_data_scalar(dataset, "max_outstanding_requests", &options->max_outstanding));
  if (!options->address.size) return rn_invalid_argument("address must be non-empty.");
  if (!rn_str_is(protocol, "grpc"))
    return rn_unimplemented("Runnel reads from the tf.data service by grpc, not by '%.*s'",
                            RN_STR_ARGS(protocol));
  if (rn_data_has_input(dataset, "num_consumers")) {
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "consumer_index", &options->consumer_index));
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_consumers", &options->num_consumers));
  }
  options->refresh_ms = rn_data_attr(dataset, "task_refresh_interval_hint_ms")->i;
  options->trainer_id = rn_field_bytes(rn_data_attr(dataset, "cross_trainer_cache_options")->s, 1);
  return target_of(rn_data_attr(dataset, "target_workers")->s, &options->target_workers);
}

static void client_closed(void* arg) {
  rn_data_host_t* host = arg;
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static void close_client(service_iterator_t* own) {
  if (own->client && !atomic_exchange(&own->is_closed, true)) rn_data_client_close(own->client);
}

static void run_cancelled(rn_cancel_entry_t* entry) {
  close_client(RN_CONTAINER_OF(entry, service_iterator_t, entry));
}

static void go_on(rn_job_t* job) {
  rn_data_resume(&RN_CONTAINER_OF(job, service_iterator_t, job)->base);
}

static void fetched(rn_data_fetch_t* fetch) {
  service_iterator_t* own = RN_CONTAINER_OF(fetch, service_iterator_t, fetch);
  rn_pool_submit(own->base.dataset->host->pool, &own->job);
}

static rn_status_t remote_start(rn_data_iterator_t* iterator) {
  service_iterator_t* own = (service_iterator_t*)iterator;
  service_dataset_t* dataset = (service_dataset_t*)iterator->dataset;
  rn_data_host_t* host = iterator->dataset->host;
  own->fetch.done = fetched;
  own->job.run = go_on;
  own->entry.fn = run_cancelled;
  // The client's threads count as running work until they have ended.
  if (!rn_data_host_enter(host)) return rn_cancelled("The device is closed");
  rn_object_retain(&host->object);
  rn_data_client_options_t options = dataset->options;
  options.repetition = atomic_fetch_add(&dataset->iterations, 1);
  options.closed = client_closed;
  options.self = host;
  rn_status_t status = rn_data_client_create(&options, &own->client);
  if (!rn_ok(status)) {
    client_closed(host);
    return status;
  }
  own->is_linked = rn_cancel_add(&iterator->run->cancel, &own->entry);
  if (!own->is_linked) close_client(own);
  return RN_OK;
}

static void remote_stop(rn_data_iterator_t* iterator) {
  service_iterator_t* own = (service_iterator_t*)iterator;
  if (own->is_linked) rn_cancel_remove(&iterator->run->cancel, &own->entry);
  close_client(own);
}

// Moves what has arrived to the requester.
static rn_status_t take(service_iterator_t* own) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_data_fetch_t* fetch = &own->fetch;
  rn_tensor_t* out = own->base.asked->out;
  if (!fetch->tensors)
    return rn_data_uncompress(fetch->compressed, dataset->node->allocator, dataset->node->memory,
                              dataset->types, dataset->component_count, out);
  if (fetch->count != dataset->component_count)
    return rn_failed_precondition("The service gives elements of %d components, not of %d",
                                  fetch->count, dataset->component_count);
  for (int32_t i = 0; i < fetch->count; ++i)
    if (fetch->tensors[i].dtype != dataset->types[i])
      return rn_failed_precondition("Expected a tensor of type %s but got a tensor of type %s",
                                    rn_dtype_name(dataset->types[i]),
                                    rn_dtype_name(fetch->tensors[i].dtype));
  rn_data_row_move(fetch->tensors, out, fetch->count);
  return RN_OK;
}

static bool remote_next(rn_data_iterator_t* iterator) {
  service_iterator_t* own = (service_iterator_t*)iterator;
  if (own->is_closed) return rn_data_finish(iterator, rn_cancelled("The iterator was closed"));
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_client_next(own->client, &own->fetch)) return false;
  }
  rn_status_t status = own->fetch.status;
  own->fetch.status = RN_OK;
  if (rn_ok(status) && own->fetch.is_end) return rn_data_end(iterator);
  if (rn_ok(status)) {
    status = take(own);
    rn_data_fetch_clear(&own->fetch);
  }
  return rn_data_finish(iterator, status);
}

const rn_data_kind_t rn_data_kind_remote = {.dataset_size = sizeof(service_dataset_t),
                                            .iterator_size = sizeof(service_iterator_t),
                                            .open = remote_open,
                                            .start = remote_start,
                                            .stop = remote_stop,
                                            .next = remote_next};
