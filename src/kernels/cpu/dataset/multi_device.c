// Iterators that distribute the elements of a dataset over several devices in turn: element i goes
// to shard i modulo their number.
//
// A call for a shard whose element has not arrived waits; one of the waiting calls drives the
// dataset. Elements of other shards are buffered up to a limit; beyond it, all wait for the slowest
// shard.
#include <stdio.h>

#include "base/container.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/wait_line.h"
#include "kernels/cpu/dataset/walk.h"
#include "kernels/cpu/dataset/window.h"
#include "kernels/cpu/state/handle.h"

// A kernel that waits for an element of its shard.
typedef struct asker_t {
  rn_wait_call_t call;  // first
  struct multi_device_deal_t* deal;
  int32_t shard;
} asker_t;

typedef struct multi_device_shard_t {
  rn_data_rows_t rows;  // elements not yet requested
  rn_wait_line_t line;
} multi_device_shard_t;

// One walk over a dataset.
typedef struct multi_device_deal_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_dataset_t* dataset;  // Retained
  rn_data_run_t* run;     // Retained
  rn_data_iterator_t* iterator;
  rn_data_request_t request;
  rn_tensor_t* row;  // Owned
  int32_t shard_count;
  int64_t most;  // maximum elements buffered per shard
  multi_device_shard_t* shards;
  rn_mutex_t mutex;  // guards what follows, and the shards
  bool is_asking;    // a request to the dataset is active
  bool is_over;
  int32_t turn;     // the shard of the next element
  int64_t waiting;  // askers in line
} multi_device_deal_t;

typedef struct multi_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_data_root_t* like;  // expected element signature
  int32_t shard_count;
  rn_mutex_t mutex;           // guards what follows
  multi_device_deal_t* deal;  // Retained; NULL if not started
  int64_t incarnation;
} multi_t;

static void deal_destroy(rn_object_t* object) {
  multi_device_deal_t* deal = (multi_device_deal_t*)object;
  if (deal->run) rn_cancel(&deal->run->cancel);
  rn_data_iterator_drop(deal->iterator);
  if (deal->run) rn_object_release(&deal->run->object);
  rn_data_row_clear(deal->row, deal->dataset->component_count);
  RN_FREE_ARRAY(deal->allocator, deal->row, deal->dataset->component_count);
  for (int32_t i = 0; deal->shards && i < deal->shard_count; ++i)
    rn_data_rows_clear(&deal->shards[i].rows);
  RN_FREE_ARRAY(deal->allocator, deal->shards, deal->shard_count);
  rn_dataset_release(deal->dataset);
  rn_mutex_destroy(&deal->mutex);
  RN_FREE(deal->allocator, deal);
}

static void answered(rn_data_request_t* request);

static rn_status_t deal_create(rn_dataset_t* dataset, int32_t shard_count, int64_t most,
                               int32_t depth, multi_device_deal_t** out) {
  *out = NULL;
  multi_device_deal_t* deal = NULL;
  rn_allocator_t allocator = dataset->node->allocator;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &deal));
  deal->object = (rn_object_t){.refs = 1, .destroy = deal_destroy};
  deal->allocator = allocator;
  deal->dataset = dataset;
  rn_object_retain(&dataset->object);
  deal->most = most;
  deal->shard_count = shard_count;
  deal->request.done = answered;
  rn_mutex_init(&deal->mutex);
  rn_status_t status = rn_data_run_create(dataset->host, NULL, depth, &deal->run);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)dataset->component_count, &deal->row);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)shard_count, &deal->shards);
  for (int32_t i = 0; rn_ok(status) && i < shard_count; ++i)
    deal->shards[i].rows =
        (rn_data_rows_t){.allocator = allocator, .component_count = dataset->component_count};
  if (rn_ok(status)) status = rn_data_iterator_create(dataset, deal->run, NULL, &deal->iterator);
  if (!rn_ok(status)) {
    rn_object_release(&deal->object);
    return status;
  }
  *out = deal;
  return RN_OK;
}

// Ends a call. Each call holds the deal and its host until then.
static void end_call(multi_device_deal_t* deal, rn_kernel_ctx_t* ctx, rn_status_t status) {
  rn_data_host_t* host = deal->dataset->host;
  rn_object_retain(&host->object);
  rn_object_release(&deal->object);
  rn_done(ctx, status);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static asker_t* pop_locked(multi_device_deal_t* deal, int32_t shard) {
  asker_t* asker = (asker_t*)rn_wait_pop_locked(&deal->shards[shard].line);
  if (asker) deal->waiting--;
  return asker;
}

// Moves |row| to the outputs; it may be the outputs themselves.
static rn_status_t give(rn_kernel_ctx_t* ctx, rn_tensor_t* row, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (row[i].dtype != ctx->kernel->output_types[i]) {
      rn_status_t status = rn_invalid_argument(
          "Data type mismatch at component %d: expected %s but got %s.", i,
          rn_dtype_name(ctx->kernel->output_types[i]), rn_dtype_name(row[i].dtype));
      rn_data_row_clear(row, count);
      return status;
    }
  }
  if (row != ctx->out) rn_data_row_move(row, ctx->out, count);
  return RN_OK;
}

static void serve(multi_device_deal_t* deal, asker_t* asker, rn_status_t status, rn_tensor_t* row) {
  rn_kernel_ctx_t* ctx = asker->call.ctx;
  rn_wait_left(&asker->call);
  RN_FREE(deal->allocator, asker);
  if (rn_ok(status) && row) status = give(ctx, row, deal->dataset->component_count);
  end_call(deal, ctx, status);
}

// Hands the dataset's reply to its shard: to the call waiting there, or into its buffer.
static void deal_out(multi_device_deal_t* deal) {
  rn_status_t status = deal->request.status;
  bool is_end = deal->request.is_end;
  rn_mutex_lock(&deal->mutex);
  deal->is_over |= is_end;
  int32_t shard = deal->turn;
  asker_t* asker = NULL;
  if (!is_end) {
    asker = pop_locked(deal, shard);
    deal->turn = (shard + 1) % deal->shard_count;
    // An error that no call waits for is dropped, like its element.
    if (!asker && rn_ok(status)) status = rn_data_rows_push(&deal->shards[shard].rows, deal->row);
  }
  rn_mutex_unlock(&deal->mutex);
  if (asker)
    serve(deal, asker, status, deal->row);
  else
    rn_status_free(status);
  rn_data_row_clear(deal->row, deal->dataset->component_count);
}

static asker_t* next_at_end(multi_device_deal_t* deal) {
  asker_t* asker = NULL;
  rn_mutex_lock(&deal->mutex);
  for (int32_t i = 0; !asker && i < deal->shard_count; ++i) asker = pop_locked(deal, i);
  rn_mutex_unlock(&deal->mutex);
  return asker;
}

// Requests elements while a call waits and there is space; the caller holds the deal.
static void pump(multi_device_deal_t* deal) {
  for (;;) {
    rn_mutex_lock(&deal->mutex);
    bool is_over = deal->is_over;
    bool is_full = (int64_t)deal->shards[deal->turn].rows.list.count >= deal->most;
    bool asks =
        !is_over && !is_full && deal->waiting > 0 && rn_data_host_enter(deal->dataset->host);
    deal->is_asking = asks;
    rn_mutex_unlock(&deal->mutex);
    if (is_over) {
      asker_t* asker;
      while ((asker = next_at_end(deal)))
        serve(deal, asker, rn_out_of_range("End of sequence"), NULL);
    }
    if (!asks) return;
    rn_data_host_t* host = deal->dataset->host;
    deal->request.out = deal->row;
    deal->request.step = &deal->run->step;
    rn_object_retain(&deal->object);  // for the request
    if (!rn_data_next(deal->iterator, &deal->request)) return;
    deal_out(deal);
    rn_data_host_leave(host);
    rn_object_release(&deal->object);  // the caller holds another reference
  }
}

static void answered(rn_data_request_t* request) {
  multi_device_deal_t* deal = RN_CONTAINER_OF(request, multi_device_deal_t, request);
  rn_data_host_t* host = deal->dataset->host;
  rn_object_retain(&host->object);
  deal_out(deal);
  pump(deal);
  rn_object_release(&deal->object);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static void end_cancelled(asker_t* asker) {
  multi_device_deal_t* deal = asker->deal;
  rn_kernel_ctx_t* ctx = asker->call.ctx;
  RN_FREE(deal->allocator, asker);
  end_call(deal, ctx, rn_cancelled("Operation was cancelled"));
}

static void on_cancel(rn_wait_call_t* call) {
  asker_t* asker = (asker_t*)call;
  asker->deal->waiting--;
  rn_mutex_unlock(call->mutex);
  end_cancelled(asker);
}

// Serves |asker|, the only one in its line, from the buffer if that has elements.
static bool take_buffered_locked(multi_device_deal_t* deal, asker_t* asker) {
  rn_data_rows_t* rows = &deal->shards[asker->shard].rows;
  if (!rows->list.count) return false;
  pop_locked(deal, asker->shard);
  rn_data_row_move(rows->list.items[0], asker->call.ctx->out, rows->component_count);
  rn_data_rows_drop(rows, 1);
  return true;
}

static void ask(multi_device_deal_t* deal, rn_kernel_ctx_t* ctx, int32_t shard) {
  asker_t* asker = NULL;
  rn_status_t status = RN_NEW(deal->allocator, &asker);
  if (!rn_ok(status)) {
    end_call(deal, ctx, status);
    return;
  }
  *asker = (asker_t){.call = {.on_cancel = on_cancel,
                              .ctx = ctx,
                              .mutex = &deal->mutex,
                              .line = &deal->shards[shard].line},
                     .deal = deal,
                     .shard = shard};
  rn_object_retain(&deal->object);  // the asker may be served and freed before pump runs
  if (rn_wait_join(&asker->call)) {
    deal->waiting++;
    bool is_served = take_buffered_locked(deal, asker), pumps = !deal->is_asking;
    deal->is_asking = true;
    rn_mutex_unlock(&deal->mutex);
    if (is_served) serve(deal, asker, RN_OK, ctx->out);
    if (pumps) pump(deal);
  } else {
    end_cancelled(asker);
  }
  rn_object_release(&deal->object);
}

// Resources.
static void multi_destroy(rn_object_t* object) {
  multi_t* multi = (multi_t*)object;
  if (multi->deal) rn_object_release(&multi->deal->object);
  if (multi->like) rn_object_release(&multi->like->resource.object);
  rn_mutex_destroy(&multi->mutex);
  RN_FREE(multi->allocator, multi);
}

static rn_status_t multi_create(rn_allocator_t allocator, int32_t shard_count, rn_data_root_t* like,
                                rn_resource_t** out) {
  *out = NULL;
  multi_t* multi = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &multi));
  multi->resource = (rn_resource_t){{.refs = 1, .destroy = multi_destroy}, RN_DATA_MULTI_TYPE};
  multi->allocator = allocator;
  multi->shard_count = shard_count;
  multi->like = like;
  rn_object_retain(&like->resource.object);
  rn_mutex_init(&multi->mutex);
  *out = &multi->resource;
  return RN_OK;
}

static rn_status_t read_elements(const rn_kernel_init_t* init, rn_data_root_t** out) {
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  return rn_data_root_create(init->allocator, types->count, types->list_type,
                             shapes->count == types->count ? shapes->list_shape : NULL, out);
}

static rn_status_t make_named(void* arg, rn_str_t name, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  (void)name;
  rn_data_root_t* like = NULL;
  RN_RETURN_IF_ERROR(read_elements(init, &like));
  rn_status_t status =
      multi_create(init->allocator, rn_init_attr(init, "devices")->count, like, out);
  rn_object_release(&like->resource.object);
  return status;
}

static rn_status_t named_init(const rn_kernel_init_t* init, void* state) {
  return rn_handle_state_init(state, init, RN_DATA_MULTI_TYPE, make_named, (void*)(uintptr_t)init);
}

typedef struct multi_device_nameless_t {
  rn_data_root_t* like;
  int32_t shard_count;
  char* device;
  size_t size;
  rn_allocator_t allocator;
} multi_device_nameless_t;

static rn_status_t nameless_init(const rn_kernel_init_t* init, void* state) {
  multi_device_nameless_t* own = state;
  own->allocator = init->allocator;
  own->size = init->device_name.size;
  own->shard_count = rn_init_attr(init, "devices")->count;
  RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, init->device_name, &own->device));
  return read_elements(init, &own->like);
}

static void nameless_destroy(void* state) {
  multi_device_nameless_t* own = state;
  if (own->like) rn_object_release(&own->like->resource.object);
  if (own->device) rn_free(own->allocator, own->device, own->size + 1);
}

// Lives as long as its handles.
static rn_status_t nameless_compute(rn_kernel_ctx_t* ctx) {
  const multi_device_nameless_t* own = ctx->state;
  rn_resource_t* multi = NULL;
  RN_RETURN_IF_ERROR(multi_create(own->allocator, own->shard_count, own->like, &multi));
  char name[64];
  snprintf(name, sizeof name, "AnonymousMultiDeviceIterator_%p", (void*)multi);
  rn_handle_t* handle = NULL;
  rn_status_t status = rn_handle_create(own->allocator, rn_str_n(own->device, own->size),
                                        RN_STR("AnonymousMultiDeviceIterator"), rn_str(name),
                                        RN_INVALID, RN_SHAPE_UNKNOWN, multi, &handle);
  rn_object_release(&multi->object);
  RN_RETURN_IF_ERROR(status);
  return rn_data_give_handle(ctx, handle);
}

static rn_status_t multi_of(const rn_kernel_ctx_t* ctx, int i, multi_t** out) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, i), ctx->kernel->resources, RN_DATA_MULTI_TYPE, &resource));
  *out = (multi_t*)resource;
  return RN_OK;
}

static rn_status_t begin_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  multi_t* multi = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(multi_of(ctx, 1, &multi));
  if (rn_in(ctx, 2)->rank != 0) return rn_invalid_argument("max_buffer_size must be a scalar");
  int64_t most = rn_int_at(rn_in(ctx, 2), 0);
  RN_RETURN_IF_ERROR(rn_data_check_types(multi->like->component_count, multi->like->types,
                                         dataset->component_count, dataset->types));
  RN_RETURN_IF_ERROR(rn_data_check_shapes(multi->like->component_count, multi->like->shapes,
                                          dataset->component_count, dataset->shapes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  multi_device_deal_t* deal = NULL;
  RN_RETURN_IF_ERROR(
      deal_create(dataset, multi->shard_count, most < 1 ? 1 : most, ctx->step->call_depth, &deal));
  rn_mutex_lock(&multi->mutex);
  multi_device_deal_t* old = multi->deal;
  multi->deal = deal;
  *RN_DATA(out, int64_t) = ++multi->incarnation;
  rn_mutex_unlock(&multi->mutex);
  if (old) rn_object_release(&old->object);
  return RN_OK;
}

static rn_status_t find_deal(rn_kernel_ctx_t* ctx, multi_device_deal_t** out, int32_t* out_shard) {
  multi_t* multi = NULL;
  RN_RETURN_IF_ERROR(multi_of(ctx, 0, &multi));
  const rn_tensor_t *shard = rn_in(ctx, 1), *incarnation = rn_in(ctx, 2);
  if (shard->rank != 0) return rn_invalid_argument("shard_num must be a scalar");
  if (incarnation->rank != 0) return rn_invalid_argument("incarnation_id must be a scalar");
  int64_t number = rn_int_at(shard, 0), given = rn_int_at(incarnation, 0);
  if (number < 0 || number >= multi->shard_count)
    return rn_invalid_argument("shard_num %lld is not in [0, %d)", (long long)number,
                               multi->shard_count);
  rn_status_t status = RN_OK;
  rn_mutex_lock(&multi->mutex);
  if (given != multi->incarnation)
    status = rn_invalid_argument("Invalid incarnation id. Provided: %lld; Expected: %lld",
                                 (long long)given, (long long)multi->incarnation);
  else if (!multi->deal)
    status = rn_failed_precondition("MultiDeviceIterator is not initialised");
  if (rn_ok(status)) {
    *out = multi->deal;
    rn_object_retain(&multi->deal->object);
  }
  rn_mutex_unlock(&multi->mutex);
  *out_shard = (int32_t)number;
  return status;
}

static void next_compute(rn_kernel_ctx_t* ctx) {
  multi_device_deal_t* deal = NULL;
  int32_t shard = 0;
  rn_status_t status = find_deal(ctx, &deal, &shard);
  if (rn_ok(status) && ctx->kernel->output_count != deal->dataset->component_count)
    status =
        rn_data_check_types(ctx->kernel->output_count, NULL, deal->dataset->component_count, NULL);
  if (rn_ok(status) && !rn_data_host_enter(deal->dataset->host))
    status = rn_cancelled("The session of this iterator is closed");
  if (rn_ok(status)) {
    ask(deal, ctx, shard);
    return;
  }
  if (deal) rn_object_release(&deal->object);
  rn_done(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "MultiDeviceIterator",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_handle_state_t),
     .init = named_init,
     .destroy = rn_handle_state_destroy,
     .compute = rn_handle_state_compute},
    {.op = "AnonymousMultiDeviceIterator",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(multi_device_nameless_t),
     .init = nameless_init,
     .destroy = nameless_destroy,
     .compute = nameless_compute},
    {.op = "AnonymousMultiDeviceIteratorV3",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(multi_device_nameless_t),
     .init = nameless_init,
     .destroy = nameless_destroy,
     .compute = nameless_compute},
    {.op = "MultiDeviceIteratorInit",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS,
     .compute = begin_compute},
    {.op = "MultiDeviceIteratorGetNextFromShard",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_EXPENSIVE,
     .compute_async = next_compute},
};
RN_KERNEL_FAMILY(cpu_data_multi_device, rows);
