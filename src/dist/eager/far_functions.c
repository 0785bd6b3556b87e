// Functions of a client on other tasks: a task hears of those that it does not know before one is
// called.
#include "dist/eager/client_internal.h"
#include "dist/eager/span.h"
#include "proto/eager_service.pb.h"
#include "wire/writer.h"

static bool knows_locked(const rn_far_t* task, const rn_function_t* function) {
  for (size_t i = 0; i < task->functions.count; ++i)
    if (task->functions.items[i] == function) return true;
  return false;
}

// A function of the same name was removed here, so remove it there too.
static void put_removal(rn_far_t* task, rn_str_t name, rn_strbuf_t* out) {
  for (size_t i = 0; i < task->functions.count; ++i) {
    rn_function_t* known = task->functions.items[i];
    if (!rn_str_eq(known->name, name)) continue;
    size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
    size_t removal = rn_pb_begin(out, rn_pb_eager_QueueItem_remove_function_field);
    rn_pb_put_str(out, rn_pb_eager_RemoveFunctionOp_function_name_field, name);
    rn_pb_end(out, removal);
    rn_pb_end(out, item);
    task->functions.items[i] = task->functions.items[--task->functions.count];
    rn_function_release(known);
    return;
  }
}

static rn_status_t put_function_locked(rn_eager_client_t* client, rn_far_t* task,
                                       rn_function_t* function, rn_strbuf_t* out) {
  // Functions that eager execution makes for itself stay here.
  bool is_internal = rn_str_starts_with(function->name, RN_STR("__wrapped__")) ||
                     rn_str_starts_with(function->name, RN_STR(RN_SPAN_PREFIX));
  if (is_internal || knows_locked(task, function)) return RN_OK;
  put_removal(task, function->name, out);
  RN_RETURN_IF_ERROR(rn_vec_push(&task->functions, client->allocator, function));
  rn_function_retain(function);
  size_t item = rn_pb_begin(out, rn_pb_eager_EnqueueRequest_queue_field);
  size_t entry = rn_pb_begin(out, rn_pb_eager_QueueItem_register_function_field);
  rn_pb_put_str(out, rn_pb_eager_RegisterFunctionOp_function_def_field, function->bytes);
  rn_pb_end(out, entry);
  rn_pb_end(out, item);
  return RN_OK;
}

rn_status_t rn_far_tell_functions(rn_eager_client_t* client, rn_far_t* task, uint64_t context) {
  rn_graph_t* library = rn_eager_library(client->eager);
  rn_strbuf_t items;
  RN_VEC(rn_function_t*) found = {0};
  rn_status_t status = RN_OK;
  rn_strbuf_init(&items, client->allocator);
  // Backwards: other threads may remove functions meanwhile, and those behind them move forward.
  for (size_t i = rn_graph_function_count(library); rn_ok(status) && i-- > 0;) {
    rn_function_t* function = rn_graph_function_at(library, i);
    if (function) status = rn_vec_push(&found, client->allocator, function);
    if (function && !rn_ok(status)) rn_function_release(function);
  }
  for (size_t i = found.count; i-- > 0;) {
    rn_mutex_lock(&task->mutex);
    if (rn_ok(status)) status = put_function_locked(client, task, found.items[i], &items);
    rn_mutex_unlock(&task->mutex);
    rn_function_release(found.items[i]);
  }
  rn_vec_free(&found, client->allocator);
  if (rn_ok(status)) status = rn_strbuf_status(&items);
  if (rn_ok(status) && items.size)
    status = rn_far_tell(client, task, context, rn_strbuf_view(&items));
  if (!rn_ok(status)) rn_far_forget_functions(task);  // it may not have heard of them
  rn_strbuf_clear(&items);
  return status;
}
