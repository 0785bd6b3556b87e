// An instance with stock's tasks: see stock.h.
#include "dist/collective/stock.h"

#include <stdio.h>

#include "base/container.h"
#include "device/device.h"

// From this many bytes on, values are handled on the pool rather than the network's thread.
#define LARGE ((int64_t)32 << 10)

static void stock_end(rn_stock_t* stock) {
  rn_allocator_t allocator = stock->options->allocator;
  rn_meeting_t* meeting = stock->meeting;
  size_t members = (size_t)meeting->count;
  rn_status_t status = stock->status;
  for (size_t i = 0; i < stock->pull_count; ++i) rn_tensor_clear(&stock->pulls[i].value);
  if (stock->pulls) RN_FREE_ARRAY(allocator, stock->pulls, stock->pull_count);
  for (size_t i = 0; stock->inputs && i < members; ++i) rn_tensor_clear(&stock->inputs[i]);
  if (stock->inputs) RN_FREE_ARRAY(allocator, stock->inputs, members);
  if (stock->asks) RN_FREE_ARRAY(allocator, stock->asks, members);
  if (stock->rings)
    RN_FREE_ARRAY(allocator, stock->rings, (size_t)stock->subdivs * (size_t)meeting->group->size);
  rn_strbuf_clear(&stock->shape);
  rn_mutex_destroy(&stock->mutex);
  RN_FREE(allocator, stock);
  rn_meeting_end(meeting, status);
}

void rn_stock_hold(rn_stock_t* stock) {
  rn_mutex_lock(&stock->mutex);
  stock->pending++;
  rn_mutex_unlock(&stock->mutex);
}

void rn_stock_release(rn_stock_t* stock) {
  rn_mutex_lock(&stock->mutex);
  bool is_last = --stock->pending == 0;
  rn_mutex_unlock(&stock->mutex);
  if (is_last) stock_end(stock);
}

void rn_stock_check(rn_stock_t* stock, rn_status_t status) {
  if (rn_ok(status)) return;
  rn_mutex_lock(&stock->mutex);
  bool is_first = rn_ok(stock->status);
  if (is_first) stock->status = rn_status_copy(status);
  rn_mutex_unlock(&stock->mutex);
  if (is_first) {
    rn_code_t code = rn_status_code(status);
    char prefix[sizeof stock->key + sizeof RN_STOCK_PREFIX];
    bool has_mark = stock->like->kind != RN_COLLECTIVE_ALL_TO_ALL;
    snprintf(prefix, sizeof prefix, RN_STOCK_PREFIX "%s%s", stock->key, has_mark ? ":" : "");
    rn_mailbox_fail(stock->options->mailbox, stock->like->step, rn_str(prefix),
                    rn_status_make(code == RN_CODE_CANCELLED ? RN_CODE_ABORTED : code,
                                   "%.*s gave up a collective: %s",
                                   RN_STR_ARGS(stock->options->task), rn_status_message(status)));
    rn_cancel(&stock->meeting->cancel);
  }
  rn_status_free(status);
}

static bool has_failed(rn_stock_t* stock) {
  rn_mutex_lock(&stock->mutex);
  bool has = !rn_ok(stock->status);
  rn_mutex_unlock(&stock->mutex);
  return has;
}

rn_status_t rn_stock_make_pulls(rn_stock_t* stock, size_t count) {
  RN_RETURN_IF_ERROR(rn_alloc_array(stock->options->allocator, count, sizeof *stock->pulls,
                                    (void**)&stock->pulls));
  stock->pull_count = count;
  for (size_t i = 0; i < count; ++i) stock->pulls[i].stock = stock;
  return RN_OK;
}

rn_status_t rn_stock_send(rn_stock_t* stock, const char* key, const rn_tensor_t* tensor,
                          int64_t first, int64_t n) {
  char name[sizeof((rn_stock_pull_t*)0)->key + sizeof RN_STOCK_PREFIX];
  rn_tensor_t view = {0};
  snprintf(name, sizeof name, RN_STOCK_PREFIX "%s", key);
  RN_RETURN_IF_ERROR(
      rn_tensor_reshape(tensor, tensor->dtype, (rn_shape_t){1, &tensor->count}, &view));
  view.data = (char*)view.data + (size_t)first * rn_dtype_size(tensor->dtype);
  view.count = view.inline_dims[0] = n;
  return rn_mailbox_post(stock->options->mailbox, NULL, stock->like->step, rn_str(name), &view,
                         false);
}

// The value has come.
static void handle(rn_job_t* job) {
  rn_stock_pull_t* pull = RN_CONTAINER_OF(job, rn_stock_pull_t, job);
  rn_stock_t* stock = pull->stock;
  if (!has_failed(stock)) pull->next(pull);
  rn_stock_release(stock);
}

static void pulled(rn_stock_pull_t* pull, rn_status_t status, bool is_here) {
  rn_stock_t* stock = pull->stock;
  rn_pool_t* pool = stock->options->env->pool;
  if (!rn_ok(status)) {
    rn_stock_check(stock, status);
    rn_stock_release(stock);
    return;
  }
  pull->job.run = handle;
  // A member of this task left it, and is not done yet.
  if (pool && (is_here || pull->call.size >= LARGE))
    rn_pool_submit(pool, &pull->job);
  else
    handle(&pull->job);
}

static void on_left(rn_mail_wait_t* wait, rn_status_t status, rn_tensor_t* value, bool is_none) {
  rn_stock_pull_t* pull = RN_CONTAINER_OF(wait, rn_stock_pull_t, wait);
  pull->value = *value;
  *value = (rn_tensor_t){0};
  if (rn_ok(status) && (is_none || pull->value.count != pull->count))
    status = rn_internal("Another part of a collective than expected");
  pulled(pull, status, true);
}

static void on_fetched(rn_call_t* call, rn_status_t status) {
  rn_stock_pull_t* pull = (rn_stock_pull_t*)call;
  const rn_collective_t* like = pull->stock->like;
  if (rn_ok(status))
    status = rn_tensor_reshape(&pull->call.value, like->dtype, (rn_shape_t){1, &pull->count},
                               &pull->value);
  rn_tensor_clear(&pull->call.value);
  if (rn_status_code(status) == RN_CODE_FAILED_PRECONDITION) {
    pull->stock->options->forget(pull->stock->options->self, pull->stock->meeting);
    rn_status_t changed = rn_aborted("%s", rn_status_message(status));
    rn_status_free(status);
    status = changed;
  }
  if (!rn_ok(status))
    status = rn_status_annotate(status, "\nInstance %d of group %d, from %.*s", like->instance_key,
                                like->group_key, RN_STR_ARGS(pull->call.source));
  pulled(pull, status, false);
}

void rn_stock_pull(rn_stock_pull_t* pull, int32_t from) {
  rn_stock_t* stock = pull->stock;
  const rn_exchange_options_t* options = stock->options;
  const rn_group_member_t* source = &stock->meeting->group->members[from];
  const rn_env_t* env = options->env;
  rn_stock_hold(stock);
  rn_tensor_clear(&pull->value);
  pull->call = (rn_recv_buf_t){
      .call = {.done = on_fetched, .deadline_ns = INT64_MAX, .cancel = &stock->meeting->cancel},
      .step = stock->like->step,
      .key = rn_str(pull->key),
      .source = source->device,
      .target = stock->meeting->members[pull->member]->device->name,
      .incarnation = source->incarnation,
      .size = pull->count * (int64_t)rn_dtype_size(stock->like->dtype),
      .request = (int64_t)(env->random(env->self) >> 2 | 1)};
  if (rn_str_eq(source->task, options->task)) {
    char name[sizeof pull->key + sizeof RN_STOCK_PREFIX];
    snprintf(name, sizeof name, RN_STOCK_PREFIX "%s", pull->key);
    pull->wait.fn = on_left;
    rn_mailbox_take(options->mailbox, stock->like->step, rn_str(name), &pull->wait);
    return;
  }
  rn_worker_t* worker = options->peers.find(options->peers.self, source->task);
  if (worker)
    worker->vtable->recv_buf(worker, &pull->call);
  else
    pulled(pull,
           rn_invalid_argument("%.*s is not a task of the cluster of %.*s",
                               RN_STR_ARGS(source->task), RN_STR_ARGS(options->task)),
           false);
}

// All-to-all: row i of a member goes to member i. Nothing separates the numbers in stock's keys.

static void on_row(rn_stock_pull_t* pull) {
  rn_tensor_t* output = &pull->stock->meeting->members[pull->member]->output;
  size_t bytes = rn_tensor_bytes(&pull->value);
  if (bytes) memcpy((char*)output->data + (size_t)pull->part * bytes, pull->value.data, bytes);
}

static rn_status_t start_rows(rn_stock_t* stock) {
  const rn_meeting_t* meeting = stock->meeting;
  int32_t size = meeting->group->size;
  RN_RETURN_IF_ERROR(rn_stock_make_pulls(stock, (size_t)meeting->count * (size_t)size));
  for (int32_t m = 0; m < meeting->count; ++m) {
    int64_t row = stock->inputs[m].count / size;
    for (int32_t r = 0; r < size; ++r) {
      rn_stock_pull_t* pull = &stock->pulls[m * size + r];
      snprintf(pull->key, sizeof pull->key, "%s%d%d", stock->key, meeting->ranks[m], r);
      RN_RETURN_IF_ERROR(rn_stock_send(stock, pull->key, &stock->inputs[m], r * row, row));
      snprintf(pull->key, sizeof pull->key, "%s%d%d", stock->key, r, meeting->ranks[m]);
      pull->member = m;
      pull->part = r;
      pull->count = row;
      pull->next = on_row;
      rn_stock_pull(pull, r);
    }
  }
  return RN_OK;
}

// Setting up.

// Makes the outputs, and keeps the inputs, which others may fetch after the operation has ended.
static rn_status_t prepare(rn_stock_t* stock) {
  rn_meeting_t* meeting = stock->meeting;
  RN_RETURN_IF_ERROR(rn_alloc_array(stock->options->allocator, (size_t)meeting->count,
                                    sizeof *stock->inputs, (void**)&stock->inputs));
  for (int32_t m = 0; m < meeting->count; ++m) {
    rn_collective_t* member = meeting->members[m];
    if (member->input)
      RN_RETURN_IF_ERROR(rn_tensor_keep(member->input, member->memory, &stock->inputs[m]));
    if (member->kind != RN_COLLECTIVE_BROADCAST)
      RN_RETURN_IF_ERROR(
          rn_tensor_create(member->memory, member->dtype, member->shape, &member->output));
  }
  return RN_OK;
}

static rn_status_t start(rn_stock_t* stock) {
  RN_RETURN_IF_ERROR(rn_meeting_take_failure(stock->meeting));
  if (!rn_dtype_is_plain(stock->like->dtype))
    return rn_unimplemented("Collectives of %s with members on stock's tasks",
                            rn_dtype_name(stock->like->dtype));
  if (!rn_shape_count(stock->like->shape, &stock->total))
    return rn_internal("The shape of instance %d is not known", stock->like->instance_key);
  RN_RETURN_IF_ERROR(prepare(stock));
  switch (stock->like->kind) {
    case RN_COLLECTIVE_REDUCE:
    case RN_COLLECTIVE_GATHER:
      return rn_stock_ring_start(stock);
    case RN_COLLECTIVE_BROADCAST:
      return rn_stock_tree_start(stock);
    case RN_COLLECTIVE_ALL_TO_ALL:
      return start_rows(stock);
    default:
      return rn_unimplemented("Collective %d with members on stock's tasks",
                              (int)stock->like->kind);
  }
}

void rn_stock_start(const rn_exchange_options_t* options, rn_meeting_t* meeting) {
  rn_stock_t* stock = NULL;
  rn_status_t status = RN_NEW(options->allocator, &stock);
  if (!rn_ok(status)) {
    rn_status_free(rn_meeting_take_failure(meeting));
    rn_meeting_end(meeting, status);
    return;
  }
  const rn_collective_t* like = meeting->members[0];
  stock->options = options;
  stock->meeting = meeting;
  stock->like = like;
  stock->pending = 1;
  rn_mutex_init(&stock->mutex);
  rn_strbuf_init(&stock->shape, options->allocator);
  snprintf(stock->key, sizeof stock->key, "%d:%d:%llu:%lld", like->group_key, like->instance_key,
           (unsigned long long)like->frame, (long long)like->iteration);
  rn_stock_check(stock, start(stock));
  rn_stock_release(stock);
}
