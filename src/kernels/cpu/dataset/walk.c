// Iterator resources and their line of waiting kernels. See walk.h.
#include "kernels/cpu/dataset/walk.h"

#include "base/container.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/wait_line.h"
#include "kernels/cpu/dataset/expected.h"
#include "kernels/cpu/dataset/rewrite.h"
#include "kernels/cpu/state/handle.h"

// A kernel that waits for its turn.
typedef struct walk_waiter_t {
  rn_wait_call_t call;  // first
  rn_data_verb_t verb;
  rn_data_walk_t* walk;  // Retained
} walk_waiter_t;

struct rn_data_walk_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_data_request_t request;  // of |ctx|
  rn_kernel_ctx_t* ctx;       // the kernel being served
  rn_data_verb_t verb;
  rn_dataset_t* dataset;         // Retained
  rn_data_run_t* run;            // Retained
  rn_data_iterator_t* iterator;  // Owned
  rn_tensor_t* row;              // Owned; for optionals
  rn_mutex_t mutex;              // guards what follows
  bool is_busy;
  rn_wait_line_t line;
};

static void walk_destroy(rn_object_t* object) {
  rn_data_walk_t* walk = (rn_data_walk_t*)object;
  if (walk->run) rn_cancel(&walk->run->cancel);
  rn_data_iterator_drop(walk->iterator);
  if (walk->run) rn_object_release(&walk->run->object);
  if (walk->row) rn_data_row_clear(walk->row, walk->dataset->component_count);
  RN_FREE_ARRAY(walk->allocator, walk->row, walk->dataset->component_count);
  rn_dataset_release(walk->dataset);
  rn_mutex_destroy(&walk->mutex);
  RN_FREE(walk->allocator, walk);
}

static void walk_release(rn_data_walk_t* walk) {
  if (walk) rn_object_release(&walk->object);
}

static void request_done(rn_data_request_t* request);

static rn_status_t walk_create(rn_dataset_t* dataset, int32_t depth, rn_data_walk_t** out) {
  *out = NULL;
  rn_data_walk_t* walk = NULL;
  rn_allocator_t allocator = dataset->node->allocator;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &walk));
  walk->object = (rn_object_t){.refs = 1, .destroy = walk_destroy};
  walk->allocator = allocator;
  walk->request.done = request_done;
  walk->dataset = dataset;
  rn_object_retain(&dataset->object);
  rn_mutex_init(&walk->mutex);
  rn_status_t status = rn_data_run_create(dataset->host, NULL, depth, &walk->run);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)dataset->component_count, &walk->row);
  if (rn_ok(status)) status = rn_data_iterator_create(dataset, walk->run, NULL, &walk->iterator);
  if (!rn_ok(status)) {
    walk_release(walk);
    return status;
  }
  *out = walk;
  return RN_OK;
}

// Resources.
static void root_destroy(rn_object_t* object) {
  rn_data_root_t* root = (rn_data_root_t*)object;
  walk_release(root->walk);
  rn_arena_clear(&root->arena);
  rn_mutex_destroy(&root->mutex);
  RN_FREE(root->allocator, root);
}

static rn_status_t root_fill(rn_data_root_t* root, int32_t count, const rn_dtype_t* types,
                             const rn_shape_t* shapes) {
  rn_dtype_t* own_types = NULL;
  rn_shape_t* own_shapes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&root->arena, (size_t)count, &own_types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&root->arena, (size_t)count, &own_shapes));
  for (int32_t i = 0; i < count; ++i) {
    own_types[i] = types[i];
    RN_RETURN_IF_ERROR(
        rn_shape_copy(&root->arena, shapes ? shapes[i] : RN_SHAPE_UNKNOWN, &own_shapes[i]));
  }
  root->component_count = count;
  root->types = own_types;
  root->shapes = own_shapes;
  return RN_OK;
}

rn_status_t rn_data_root_create(rn_allocator_t allocator, int32_t count, const rn_dtype_t* types,
                                const rn_shape_t* shapes, rn_data_root_t** out) {
  *out = NULL;
  rn_data_root_t* root = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &root));
  root->resource = (rn_resource_t){{.refs = 1, .destroy = root_destroy}, RN_DATA_ITERATOR_TYPE};
  root->allocator = allocator;
  rn_arena_init(&root->arena, allocator);
  rn_mutex_init(&root->mutex);
  rn_status_t status = root_fill(root, count, types, shapes);
  if (!rn_ok(status)) {
    rn_object_release(&root->resource.object);
    return status;
  }
  *out = root;
  return RN_OK;
}

rn_status_t rn_data_check_types(int32_t expected_count, const rn_dtype_t* expected, int32_t count,
                                const rn_dtype_t* types) {
  if (expected_count != count)
    return rn_invalid_argument("Number of components does not match: expected %d types but got %d.",
                               expected_count, count);
  for (int32_t i = 0; i < count; ++i)
    if (expected[i] != types[i])
      return rn_invalid_argument("Data type mismatch at component %d: expected %s but got %s.", i,
                                 rn_dtype_name(expected[i]), rn_dtype_name(types[i]));
  return RN_OK;
}

rn_status_t rn_data_check_shapes(int32_t expected_count, const rn_shape_t* expected, int32_t count,
                                 const rn_shape_t* shapes) {
  if (expected_count != count)
    return rn_invalid_argument(
        "Number of components does not match: expected %d shapes but got %d.", expected_count,
        count);
  for (int32_t i = 0; i < count; ++i) {
    if (rn_shape_compatible(expected[i], shapes[i])) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_strbuf_printf(&text, "Incompatible shapes at component %d: expected ", i);
    rn_shape_print(&text, expected[i]);
    rn_strbuf_printf(&text, " but got ");
    rn_shape_print(&text, shapes[i]);
    rn_status_t status = rn_invalid_argument("%.*s.", RN_STR_ARGS(rn_strbuf_view(&text)));
    rn_strbuf_clear(&text);
    return status;
  }
  return RN_OK;
}

static void set_walk(rn_data_root_t* root, rn_data_walk_t* walk) {
  rn_mutex_lock(&root->mutex);
  rn_data_walk_t* old = root->walk;
  root->walk = walk;
  rn_mutex_unlock(&root->mutex);
  walk_release(old);
}

static rn_data_walk_t* get_walk(rn_data_root_t* root) {
  rn_mutex_lock(&root->mutex);
  rn_data_walk_t* walk = root->walk;
  if (walk) rn_object_retain(&walk->object);
  rn_mutex_unlock(&root->mutex);
  return walk;
}

rn_status_t rn_data_root_make(rn_data_root_t* root, rn_dataset_t* dataset, int32_t depth) {
  if (root->component_count) {
    RN_RETURN_IF_ERROR(rn_data_check_types(root->component_count, root->types,
                                           dataset->component_count, dataset->types));
    RN_RETURN_IF_ERROR(rn_data_check_shapes(root->component_count, root->shapes,
                                            dataset->component_count, dataset->shapes));
  }
  rn_data_walk_t* walk = NULL;
  rn_dataset_t* rewritten = NULL;
  RN_RETURN_IF_ERROR(rn_data_rewrite(dataset, &rewritten));
  rn_status_t status = walk_create(rewritten, depth, &walk);
  rn_dataset_release(rewritten);
  RN_RETURN_IF_ERROR(status);
  set_walk(root, walk);
  return RN_OK;
}

rn_dataset_t* rn_data_root_dataset(rn_data_root_t* root) {
  rn_mutex_lock(&root->mutex);
  rn_dataset_t* dataset = root->walk ? root->walk->dataset : NULL;
  if (dataset) rn_object_retain(&dataset->object);
  rn_mutex_unlock(&root->mutex);
  return dataset;
}

rn_status_t rn_data_root_restore(rn_data_root_t* root, rn_str_t state, int32_t depth) {
  rn_data_walk_t *old = get_walk(root), *walk = NULL;
  if (!old)
    return rn_failed_precondition(
        "An iterator must be created over its dataset before its state can be restored.");
  if (!rn_data_host_enter(old->dataset->host)) {
    walk_release(old);
    return rn_cancelled("The session is closed");
  }
  rn_data_host_t* host = old->dataset->host;
  rn_status_t status = walk_create(old->dataset, depth, &walk);
  rn_data_reader_t reader = {
      .bytes = state, .memory = old->dataset->node->memory, .dataset = old->dataset};
  if (rn_ok(status)) status = rn_data_take_iterator(&reader, walk->iterator);
  if (rn_ok(status) && reader.bytes.size) status = rn_data_bad_state();
  rn_data_host_leave(host);
  if (rn_ok(status))
    set_walk(root, walk);
  else
    walk_release(walk);
  walk_release(old);
  return status;
}

// Turns.
static rn_status_t save_walk(rn_data_walk_t* walk) {
  rn_data_writer_t writer = {0};
  rn_strbuf_init(&writer.bytes, walk->allocator);
  rn_status_t status = rn_data_put_iterator(&writer, walk->iterator);
  status = rn_status_join(status, writer.status);
  if (rn_ok(status)) status = rn_strbuf_status(&writer.bytes);
  rn_tensor_t out = {0};
  if (rn_ok(status))
    status =
        rn_data_state_create(walk->ctx->kernel->host_memory, rn_strbuf_view(&writer.bytes), &out);
  rn_strbuf_clear(&writer.bytes);
  if (rn_ok(status)) rn_set_output(walk->ctx, 0, &out);
  return status;
}

static rn_status_t give_optional(rn_data_walk_t* walk) {
  rn_tensor_t out = {0};
  int32_t count = walk->dataset->component_count;
  if (!walk->request.is_end)
    RN_RETURN_IF_ERROR(rn_data_expected_check_optional(walk->ctx->state, walk->row, count));
  RN_RETURN_IF_ERROR(rn_data_optional_create(walk->ctx->kernel->host_memory, walk->row,
                                             walk->request.is_end ? -1 : count, &out));
  rn_set_output(walk->ctx, 0, &out);
  return RN_OK;
}

// Moves the result of the request to the kernel's outputs.
static rn_status_t give(rn_data_walk_t* walk) {
  if (walk->verb == RN_DATA_SAVE) return walk->request.status;
  RN_RETURN_IF_ERROR(walk->request.status);
  int32_t count = walk->dataset->component_count;
  if (walk->verb == RN_DATA_OPTIONAL) {
    rn_status_t status = give_optional(walk);
    if (!rn_ok(status) && !walk->request.is_end) rn_data_row_clear(walk->row, count);
    return status;
  }
  if (walk->request.is_end) return rn_out_of_range("End of sequence");
  rn_status_t status = rn_data_expected_check(walk->ctx->state, walk->ctx->out, count);
  if (!rn_ok(status)) rn_data_row_clear(walk->ctx->out, count);
  return status;
}

// Starts serving |walk->ctx|; true if it is complete.
static bool begin_turn(rn_data_walk_t* walk) {
  rn_kernel_ctx_t* ctx = walk->ctx;
  walk->request.step = ctx->step;
  walk->request.is_end = false;
  walk->request.status = RN_OK;
  if (walk->verb == RN_DATA_SAVE) {
    walk->request.status = save_walk(walk);
    return true;
  }
  if (walk->verb == RN_DATA_NEXT && ctx->kernel->output_count != walk->dataset->component_count) {
    walk->request.status =
        rn_data_check_types(ctx->kernel->output_count, NULL, walk->dataset->component_count, NULL);
    return true;
  }
  walk->request.out = walk->verb == RN_DATA_NEXT ? ctx->out : walk->row;
  return rn_data_next(walk->iterator, &walk->request);
}

// Ends a call. Each call holds a reference to the walk, and the host, until then.
static void end_call(rn_data_walk_t* walk, rn_kernel_ctx_t* ctx, rn_status_t status) {
  rn_data_host_t* host = walk->dataset->host;
  rn_object_retain(&host->object);
  walk_release(walk);
  rn_done(ctx, status);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

static void drop_waiter(rn_data_walk_t* walk, walk_waiter_t* waiter) {
  rn_wait_left(&waiter->call);
  RN_FREE(walk->allocator, waiter);
}

// Takes the next waiter in line, whose turn it is now. NULL if none waits: the walk is idle.
static walk_waiter_t* next_locked(rn_data_walk_t* walk) {
  walk_waiter_t* waiter = (walk_waiter_t*)rn_wait_pop_locked(&walk->line);
  walk->is_busy = waiter != NULL;
  if (waiter) {
    walk->ctx = waiter->call.ctx;
    walk->verb = waiter->verb;
  }
  return waiter;
}

// True if the next turn is to begin.
static bool end_turn(rn_data_walk_t* walk) {
  rn_kernel_ctx_t* ctx = walk->ctx;
  rn_status_t status = give(walk);
  rn_mutex_lock(&walk->mutex);
  walk_waiter_t* waiter = next_locked(walk);
  rn_mutex_unlock(&walk->mutex);
  if (waiter) drop_waiter(walk, waiter);
  end_call(walk, ctx, status);
  return waiter != NULL;
}

static void take_turns(rn_data_walk_t* walk) {
  while (begin_turn(walk))
    if (!end_turn(walk)) return;
}

static void request_done(rn_data_request_t* request) {
  rn_data_walk_t* walk = RN_CONTAINER_OF(request, rn_data_walk_t, request);
  if (end_turn(walk)) take_turns(walk);
}

static void end_cancelled(walk_waiter_t* waiter) {
  rn_data_walk_t* walk = waiter->walk;
  rn_kernel_ctx_t* ctx = waiter->call.ctx;
  RN_FREE(walk->allocator, waiter);
  end_call(walk, ctx, rn_cancelled("Operation was cancelled"));
}

static void on_cancel(rn_wait_call_t* call) {
  rn_mutex_unlock(call->mutex);
  end_cancelled((walk_waiter_t*)call);
}

static void wait_for_turn(rn_data_walk_t* walk, rn_kernel_ctx_t* ctx, rn_data_verb_t verb) {
  walk_waiter_t* waiter = NULL;
  rn_status_t status = RN_NEW(walk->allocator, &waiter);
  if (!rn_ok(status)) {
    end_call(walk, ctx, status);
    return;
  }
  *waiter = (walk_waiter_t){
      .call = {.on_cancel = on_cancel, .ctx = ctx, .mutex = &walk->mutex, .line = &walk->line},
      .verb = verb,
      .walk = walk};
  if (!rn_wait_join(&waiter->call)) {
    end_cancelled(waiter);
    return;
  }
  waiter = walk->is_busy ? NULL : next_locked(walk);
  rn_mutex_unlock(&walk->mutex);
  if (!waiter) return;
  drop_waiter(walk, waiter);
  take_turns(walk);
}

rn_status_t rn_data_give_handle(rn_kernel_ctx_t* ctx, rn_handle_t* handle) {
  rn_tensor_t out = {0}, deleter = {0};
  RN_RETURN_IF_ERROR(rn_handle_tensor(ctx->kernel->host_memory, handle, &out));
  rn_set_output(ctx, 0, &out);
  if (ctx->kernel->output_count < 2) return RN_OK;
  RN_RETURN_IF_ERROR(rn_data_optional_create(ctx->kernel->host_memory, NULL, -1, &deleter));
  rn_set_output(ctx, 1, &deleter);
  return RN_OK;
}

void rn_data_root_serve(rn_data_root_t* root, rn_kernel_ctx_t* ctx, rn_data_verb_t verb) {
  rn_data_walk_t* walk = get_walk(root);
  if (!walk) {
    rn_done(ctx, rn_failed_precondition(
                     "GetNext() failed because the iterator has not been initialized. Ensure that "
                     "you have run the initializer operation for this iterator before getting the "
                     "next element."));
    return;
  }
  if (!rn_data_host_enter(walk->dataset->host)) {
    walk_release(walk);
    rn_done(ctx, rn_cancelled("The session of this iterator is closed"));
    return;
  }
  rn_mutex_lock(&walk->mutex);
  bool is_first = !walk->is_busy;
  if (is_first) {
    walk->is_busy = true;
    walk->ctx = ctx;
    walk->verb = verb;
  }
  rn_mutex_unlock(&walk->mutex);
  if (is_first)
    take_turns(walk);
  else
    wait_for_turn(walk, ctx, verb);
}
