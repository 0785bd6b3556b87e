// Readers: the line of calls and how they are served. See reader.h.
#include "kernels/cpu/io/reader.h"

#include <stdatomic.h>

#include "tensor/tstring.h"
#include "wire/scan.h"
#include "wire/writer.h"

// One call. |item| is a separate context for dequeuing an item, so that the call's outputs stay
// free for the records.
typedef struct reader_call_t {
  rn_wait_call_t base;  // first
  rn_reader_t* reader;  // Retained
  rn_queue_t* queue;    // Retained
  int64_t wanted;
  bool is_single;
  rn_tensor_t keys, values;  // records so far; capacity doubles as needed
  int64_t count;
  rn_kernel_ctx_t item;
  rn_tensor_t item_value;
  rn_status_t item_status;
  // The end of the dequeue and the return of the call that started it: the second to arrive
  // continues.
  _Atomic int item_meeting;
} reader_call_t;

static reader_call_t* call_of_item(rn_kernel_ctx_t* item) {
  return (reader_call_t*)((char*)item - offsetof(reader_call_t, item));
}

static void leave_item_locked(rn_reader_t* reader) {
  rn_input_close(reader->input);
  rn_record_reader_close(reader->records);
  reader->input = NULL;
  reader->records = NULL;
  reader->number = 0;
  reader->is_used = false;
}

static void reader_destroy(rn_object_t* object) {
  rn_reader_t* reader = (rn_reader_t*)object;
  leave_item_locked(reader);
  rn_strbuf_clear(&reader->work);
  rn_strbuf_clear(&reader->node);
  rn_mutex_destroy(&reader->mutex);
  RN_FREE(reader->allocator, reader);
}

rn_status_t rn_reader_create(rn_allocator_t allocator, const rn_env_t* env,
                             const rn_reader_kind_t* kind, const rn_reader_options_t* options,
                             rn_str_t node, rn_reader_t** out) {
  *out = NULL;
  rn_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &reader));
  reader->resource = (rn_resource_t){{.refs = 1, .destroy = reader_destroy}, RN_READER_TYPE};
  reader->allocator = allocator;
  reader->env = *env;
  reader->env.allocator = allocator;
  reader->kind = kind;
  reader->options = *options;
  rn_mutex_init(&reader->mutex);
  rn_strbuf_init(&reader->work, allocator);
  rn_strbuf_init(&reader->node, allocator);
  rn_strbuf_append(&reader->node, node);
  rn_status_t status = rn_strbuf_status(&reader->node);
  if (rn_ok(status))
    *out = reader;
  else
    rn_object_release(&reader->resource.object);
  return status;
}

// The records of a call.

static rn_status_t grow(const reader_call_t* call, rn_tensor_t* list) {
  int64_t size = list->count ? 2 * list->count : 1;
  rn_tensor_t larger = {0};
  if (size > call->wanted) size = call->wanted;
  RN_RETURN_IF_ERROR(rn_tensor_create(call->base.ctx->kernel->host_memory, RN_STRING,
                                      (rn_shape_t){1, &size}, &larger));
  // Move strings by their bytes; those of the old list become empty.
  if (list->count) {
    memcpy(larger.data, list->data, rn_tensor_bytes(list));
    for (int64_t i = 0; i < list->count; ++i) rn_tstring_init(&RN_DATA(list, rn_tstring_t)[i]);
  }
  rn_tensor_clear(list);
  *list = larger;
  return RN_OK;
}

static rn_status_t add_record(reader_call_t* call, rn_str_t key, rn_str_t value) {
  if (call->count == call->keys.count) RN_RETURN_IF_ERROR(grow(call, &call->keys));
  if (call->count == call->values.count) RN_RETURN_IF_ERROR(grow(call, &call->values));
  rn_tstring_t* keys = RN_DATA(&call->keys, rn_tstring_t);
  rn_tstring_t* values = RN_DATA(&call->values, rn_tstring_t);
  if (!rn_tstring_assign(&keys[call->count], key.data, key.size) ||
      !rn_tstring_assign(&values[call->count], value.data, value.size))
    return rn_out_of_memory();
  ++call->count;
  return RN_OK;
}

// Reads from the item until the call has enough records or the item is finished.
static rn_status_t read_item_locked(rn_reader_t* reader, reader_call_t* call, bool* out_finished) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, reader->allocator);
  rn_status_t status = RN_OK;
  *out_finished = false;
  while (rn_ok(status) && call->count < call->wanted && !*out_finished) {
    rn_str_t value;
    key.size = 0;
    status = reader->kind->next(reader, &key, &value, out_finished);
    if (!rn_ok(status) || *out_finished) break;
    status = rn_strbuf_status(&key);
    if (rn_ok(status)) status = add_record(call, rn_strbuf_view(&key), value);
    if (rn_ok(status)) ++reader->produced;
    // An item of one record is finished with it.
    *out_finished = reader->is_used;
  }
  rn_strbuf_clear(&key);
  return status;
}

// Continues |call| as far as possible; sets |*out_needs_item| if it needs the next item first.
static rn_status_t read_on(rn_reader_t* reader, reader_call_t* call, bool* out_needs_item) {
  bool is_finished = false;
  rn_status_t status = RN_OK;
  *out_needs_item = false;
  rn_mutex_lock(&reader->mutex);
  if (call->wanted > 0 && reader->started > reader->finished) {
    status = read_item_locked(reader, call, &is_finished);
    if (rn_ok(status) && is_finished) {
      reader->finished = reader->started;
      leave_item_locked(reader);
    }
  }
  *out_needs_item = rn_ok(status) && call->count == 0 && call->wanted > 0;
  rn_mutex_unlock(&reader->mutex);
  return status;
}

// Starts on the item that was dequeued.
static rn_status_t start_item(rn_reader_t* reader, reader_call_t* call) {
  const rn_tensor_t* value = &call->item_value;
  if (value->dtype != RN_STRING)
    return rn_invalid_argument("Expected queue with single string component");
  if (value->count != 1)
    return rn_invalid_argument("Expected to dequeue a one-element string tensor");
  rn_str_t text = rn_tstring_view(RN_DATA(value, const rn_tstring_t));
  rn_mutex_lock(&reader->mutex);
  leave_item_locked(reader);
  reader->work.size = 0;
  rn_strbuf_append(&reader->work, text);
  rn_status_t status = rn_strbuf_status(&reader->work);
  if (rn_ok(status)) status = reader->kind->open(reader);
  if (rn_ok(status))
    reader->started++;
  else
    leave_item_locked(reader);
  rn_mutex_unlock(&reader->mutex);
  return status;
}

// Ending a call.

static rn_status_t give(reader_call_t* call) {
  rn_shape_t shape = call->is_single ? RN_SHAPE_SCALAR : (rn_shape_t){1, &call->count};
  rn_tensor_t* lists[] = {&call->keys, &call->values};
  for (int i = 0; i < 2; ++i) {
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(call->base.ctx, i, shape, &out));
    rn_tstring_t *to = RN_DATA(out, rn_tstring_t), *from = RN_DATA(lists[i], rn_tstring_t);
    for (int64_t k = 0; k < call->count; ++k) {
      rn_tstring_clear(&to[k]);
      to[k] = from[k];
      rn_tstring_init(&from[k]);
    }
  }
  return RN_OK;
}

static void call_end(reader_call_t* call, rn_status_t status) {
  rn_reader_t* reader = call->reader;
  rn_kernel_ctx_t* ctx = call->base.ctx;
  if (rn_ok(status)) status = give(call);
  rn_tensor_clear(&call->keys);
  rn_tensor_clear(&call->values);
  rn_tensor_clear(&call->item_value);
  rn_object_release(&call->queue->resource.object);
  RN_FREE(reader->allocator, call);
  rn_object_release(&reader->resource.object);
  rn_done(ctx, status);
}

static rn_status_t cancelled(void) { return rn_cancelled("Reader operation was cancelled"); }

// The line.

// Takes the next call from the line; from then on only its dequeue can cancel it. NULL if the line
// is empty; then no thread is serving any more.
static reader_call_t* next_call(rn_reader_t* reader) {
  rn_mutex_lock(&reader->mutex);
  rn_wait_call_t* call = rn_wait_pop_locked(&reader->line);
  reader->is_serving = call != NULL;
  rn_mutex_unlock(&reader->mutex);
  if (call) rn_wait_left(call);
  return (reader_call_t*)call;
}

static void serve(rn_reader_t* reader, reader_call_t* call);

static void on_item(rn_kernel_ctx_t* item, rn_status_t status) {
  reader_call_t* call = call_of_item(item);
  call->item_status = status;
  if (atomic_fetch_add(&call->item_meeting, 1) == 1) serve(call->reader, call);
}

// Requests the next item; true if it is available at once.
static bool dequeue_item(reader_call_t* call) {
  call->item = *call->base.ctx;
  call->item.out = &call->item_value;
  call->item.planned = 0;
  call->item.done = on_item;
  atomic_store(&call->item_meeting, 0);
  if (call->queue->spec.component_count == 1)
    rn_queue_dequeue(call->queue, &call->item);
  else
    on_item(&call->item, rn_invalid_argument("Expected single component queue"));
  return atomic_fetch_add(&call->item_meeting, 1) == 1;
}

// Serves |call|, whose item has arrived unless the call is new, and then the calls behind it.
static void serve(rn_reader_t* reader, reader_call_t* call) {
  rn_object_retain(&reader->resource.object);
  while (call) {
    rn_status_t status = call->item_status;
    bool needs_item = false;
    call->item_status = RN_OK;
    if (rn_ok(status) && rn_tensor_is_set(&call->item_value)) status = start_item(reader, call);
    rn_tensor_clear(&call->item_value);
    if (rn_ok(status)) status = read_on(reader, call, &needs_item);
    if (rn_ok(status) && needs_item) {
      if (dequeue_item(call)) continue;
      rn_object_release(&reader->resource.object);
      return;
    }
    call_end(call, status);
    call = next_call(reader);
  }
  rn_object_release(&reader->resource.object);
}

static void on_cancel(rn_wait_call_t* call) {
  rn_mutex_unlock(call->mutex);
  call_end((reader_call_t*)call, cancelled());
}

void rn_reader_read(rn_reader_t* reader, rn_kernel_ctx_t* ctx, rn_queue_t* queue, int64_t count,
                    bool is_single) {
  reader_call_t* call = NULL;
  rn_status_t status = RN_NEW(reader->allocator, &call);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  *call = (reader_call_t){
      .base = {.on_cancel = on_cancel, .ctx = ctx, .mutex = &reader->mutex, .line = &reader->line},
      .reader = reader,
      .queue = queue,
      .wanted = count,
      .is_single = is_single};
  rn_object_retain(&reader->resource.object);
  rn_object_retain(&queue->resource.object);
  if (!rn_wait_join(&call->base)) {
    call_end(call, cancelled());
    return;
  }
  bool serves = !reader->is_serving;
  reader->is_serving = true;
  rn_mutex_unlock(&reader->mutex);
  if (serves) serve(reader, next_call(reader));
}

// Queries and state.

int64_t rn_reader_produced(rn_reader_t* reader) {
  rn_mutex_lock(&reader->mutex);
  int64_t produced = reader->produced;
  rn_mutex_unlock(&reader->mutex);
  return produced;
}

int64_t rn_reader_finished(rn_reader_t* reader) {
  rn_mutex_lock(&reader->mutex);
  int64_t finished = reader->finished;
  rn_mutex_unlock(&reader->mutex);
  return finished;
}

static void reset_locked(rn_reader_t* reader) {
  leave_item_locked(reader);
  reader->started = reader->finished = reader->produced = 0;
  reader->work.size = 0;
}

void rn_reader_reset(rn_reader_t* reader) {
  rn_mutex_lock(&reader->mutex);
  reset_locked(reader);
  rn_mutex_unlock(&reader->mutex);
}

// The fields of tensorflow.ReaderBaseState.
enum { STARTED = 1, FINISHED = 2, PRODUCED = 3, CURRENT = 4 };

rn_status_t rn_reader_save(rn_reader_t* reader, rn_strbuf_t* out) {
  if (!reader->kind->has_state) return rn_unimplemented("Reader SerializeState");
  rn_mutex_lock(&reader->mutex);
  if (reader->started) rn_pb_put_uint(out, STARTED, (uint64_t)reader->started);
  if (reader->finished) rn_pb_put_uint(out, FINISHED, (uint64_t)reader->finished);
  if (reader->produced) rn_pb_put_uint(out, PRODUCED, (uint64_t)reader->produced);
  if (reader->work.size) rn_pb_put_str(out, CURRENT, rn_strbuf_view(&reader->work));
  rn_mutex_unlock(&reader->mutex);
  return rn_strbuf_status(out);
}

static rn_status_t restore_locked(rn_reader_t* reader, rn_str_t state) {
  rn_pb_scan_t scan = rn_pb_scan(state);
  rn_pb_field_t field;
  int64_t numbers[CURRENT] = {0};
  rn_str_t work = {0};
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number < CURRENT && field.wire == RN_PB_WIRE_VARINT)
      numbers[field.number] = (int64_t)field.value;
    if (field.number == CURRENT && field.wire == RN_PB_WIRE_LENGTH) work = field.bytes;
  }
  if (scan.is_bad)
    return rn_invalid_argument("Could not parse state for %s '%.*s': %.*s", reader->kind->name,
                               RN_STR_ARGS(rn_strbuf_view(&reader->node)), RN_STR_ARGS(state));
  if (numbers[STARTED] < 0 || numbers[FINISHED] < 0 || numbers[PRODUCED] < 0)
    return rn_invalid_argument("Unexpected negative value when restoring in %s '%.*s'",
                               reader->kind->name, RN_STR_ARGS(rn_strbuf_view(&reader->node)));
  if (numbers[STARTED] > numbers[FINISHED])
    return rn_invalid_argument("Inconsistent work started vs. finished when restoring in %s '%.*s'",
                               reader->kind->name, RN_STR_ARGS(rn_strbuf_view(&reader->node)));
  rn_strbuf_append(&reader->work, work);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&reader->work));
  reader->started = numbers[STARTED];
  reader->finished = numbers[FINISHED];
  reader->produced = numbers[PRODUCED];
  return RN_OK;
}

rn_status_t rn_reader_restore(rn_reader_t* reader, rn_str_t state) {
  rn_mutex_lock(&reader->mutex);
  reset_locked(reader);
  rn_status_t status = reader->kind->has_state ? restore_locked(reader, state)
                                               : rn_unimplemented("Reader RestoreState");
  rn_mutex_unlock(&reader->mutex);
  return status;
}
