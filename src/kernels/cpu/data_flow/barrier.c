// Barriers: tuples whose components arrive separately under a key and leave together once complete,
// in the order in which their keys first arrived.
#include "base/arena.h"
#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define BARRIER_TYPE "Barrier"

typedef struct barrier_entry_t {
  char* key;  // Owned
  size_t key_size;
  int64_t index;        // of the call that brought the key
  rn_tensor_t* values;  // Owned
  int32_t present;
} barrier_entry_t;

typedef RN_VEC(barrier_entry_t) barrier_entries_t;

typedef struct barrier_t {
  rn_resource_t resource;
  rn_parking_t parking;
  rn_arena_t arena;  // holds what follows up to |shapes|
  rn_str_t name;
  int32_t components;
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  int64_t next_index;
  bool is_closed, cancels;
  barrier_entries_t ready;       // in order of index
  barrier_entries_t incomplete;  // in order of arrival
  rn_map_t by_key;               // of the incomplete entries: key -> index + 1
} barrier_t;

static void clear_entry(barrier_t* barrier, barrier_entry_t* entry) {
  rn_allocator_t allocator = barrier->parking.allocator;
  for (int32_t i = 0; entry->values && i < barrier->components; ++i)
    rn_tensor_clear(&entry->values[i]);
  RN_FREE_ARRAY(allocator, entry->values, (size_t)barrier->components);
  if (entry->key) rn_free(allocator, entry->key, entry->key_size + 1);
  *entry = (barrier_entry_t){0};
}

static void barrier_destroy(rn_object_t* object) {
  barrier_t* barrier = (barrier_t*)object;
  rn_allocator_t allocator = barrier->parking.allocator;
  for (size_t i = 0; i < barrier->ready.count; ++i) clear_entry(barrier, &barrier->ready.items[i]);
  for (size_t i = 0; i < barrier->incomplete.count; ++i)
    clear_entry(barrier, &barrier->incomplete.items[i]);
  rn_vec_free(&barrier->ready, allocator);
  rn_vec_free(&barrier->incomplete, allocator);
  rn_map_clear(&barrier->by_key);
  rn_arena_clear(&barrier->arena);
  rn_parking_destroy(&barrier->parking);
  RN_FREE(allocator, barrier);
}

// As in stock, a component without a known shape is a scalar.
static rn_shape_t shape_of(rn_shape_t given) {
  return rn_shape_has_rank(given) ? given : RN_SHAPE_SCALAR;
}

static rn_status_t copy_spec(barrier_t* barrier, const rn_kernel_init_t* init, rn_str_t name) {
  const rn_attr_value_t* types = rn_init_attr(init, "component_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "shapes");
  RN_RETURN_IF_ERROR(rn_arena_str(&barrier->arena, name, &barrier->name));
  rn_dtype_t* own_types = NULL;
  rn_shape_t* own_shapes = NULL;
  barrier->components = types->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&barrier->arena, (size_t)types->count, &own_types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&barrier->arena, (size_t)types->count, &own_shapes));
  for (int32_t i = 0; i < types->count; ++i) {
    own_types[i] = types->list_type[i];
    RN_RETURN_IF_ERROR(
        rn_shape_copy(&barrier->arena, shape_of(shapes->list_shape[i]), &own_shapes[i]));
  }
  barrier->types = own_types;
  barrier->shapes = own_shapes;
  return RN_OK;
}

static rn_status_t barrier_create(void* arg, rn_str_t name, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  barrier_t* barrier = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &barrier));
  barrier->resource = (rn_resource_t){{.refs = 1, .destroy = barrier_destroy}, BARRIER_TYPE};
  rn_parking_init(&barrier->parking, init->allocator);
  rn_arena_init(&barrier->arena, init->allocator);
  rn_map_init(&barrier->by_key, init->allocator);
  barrier->next_index = INT64_MIN;
  rn_status_t status = copy_spec(barrier, init, name);
  if (!rn_ok(status)) {
    rn_object_release(&barrier->resource.object);
    return status;
  }
  *out = &barrier->resource;
  return RN_OK;
}

static rn_status_t check_same(const barrier_t* barrier, const rn_kernel_init_t* init) {
  const rn_attr_value_t* types = rn_init_attr(init, "component_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "shapes");
  bool is_same = types->count == barrier->components;
  for (int32_t i = 0; is_same && i < types->count; ++i)
    is_same = types->list_type[i] == barrier->types[i];
  for (int32_t i = 0; is_same && i < types->count; ++i)
    if (!rn_shape_eq(shape_of(shapes->list_shape[i]), barrier->shapes[i]))
      return rn_invalid_argument(
          "Shared barrier '%.*s' has component shapes %s but requested component shapes were %s",
          RN_STR_ARGS(barrier->name), rn_shape_text(barrier->shapes[i]).text,
          rn_shape_text(shape_of(shapes->list_shape[i])).text);
  if (is_same) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, init->allocator);
  rn_strbuf_printf(&text, "Shared barrier '%.*s' has component types ", RN_STR_ARGS(barrier->name));
  rn_print_types(&text, barrier->types, barrier->components);
  rn_strbuf_append(&text, RN_STR(" but requested component types were "));
  rn_print_types(&text, types->list_type, types->count);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t barrier_init(const rn_kernel_init_t* init, void* state) {
  rn_handle_state_t* holder = state;
  const rn_attr_value_t *types = rn_init_attr(init, "component_types"),
                        *shapes = rn_init_attr(init, "shapes");
  if (rn_init_int(init, "capacity") != -1)
    return rn_invalid_argument(
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to "
        "enforce a limited capacity.");
  if (shapes->count != types->count)
    return rn_invalid_argument("All of the component shapes must be specified");
  for (int32_t i = 0; i < shapes->count; ++i)
    if (rn_shape_has_rank(shapes->list_shape[i]) && !rn_shape_is_full(shapes->list_shape[i]))
      return rn_invalid_argument("Shape %s is not fully defined",
                                 rn_shape_text(shapes->list_shape[i]).text);
  RN_RETURN_IF_ERROR(
      rn_handle_state_init(holder, init, BARRIER_TYPE, barrier_create, (void*)(uintptr_t)init));
  return check_same((const barrier_t*)holder->resource, init);
}

// Operations.

typedef struct barrier_verb_t {
  int64_t component;
  bool allows_fewer, waits_for_incomplete, cancels;
} barrier_verb_t;

static rn_status_t insert_init(const rn_kernel_init_t* init, void* state) {
  ((barrier_verb_t*)state)->component = rn_init_int(init, "component_index");
  return RN_OK;
}
static rn_status_t take_init(const rn_kernel_init_t* init, void* state) {
  barrier_verb_t* verb = state;
  verb->allows_fewer = rn_init_bool(init, "allow_small_batch");
  verb->waits_for_incomplete = rn_init_bool(init, "wait_for_incomplete");
  if (rn_init_int(init, "timeout_ms") == -1) return RN_OK;
  return rn_invalid_argument("Timeout not supported yet.");
}
static rn_status_t close_init(const rn_kernel_init_t* init, void* state) {
  ((barrier_verb_t*)state)->cancels = rn_init_bool(init, "cancel_pending_enqueues");
  return RN_OK;
}

static rn_status_t check_insert(const barrier_t* barrier, const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *keys = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  int64_t c = ((const barrier_verb_t*)ctx->state)->component;
  if (c < 0 || c >= barrier->components)
    return rn_invalid_argument("The component ID is out of range %lld > num_components (= %d)",
                               (long long)c, barrier->components);
  if (values->dtype != barrier->types[c])
    return rn_invalid_argument(
        "Signature mismatch, have: string_ref, string, %s-> expected: string_ref, string, %s->",
        rn_dtype_name(values->dtype), rn_dtype_name(barrier->types[c]));
  if (values->count == 0 && keys->count > 0)  // an empty list of keys is fine
    return rn_invalid_argument("Tensors with no elements are not supported %.*s: received shape %s",
                               RN_STR_ARGS(barrier->name), rn_text_of(values).text);
  rn_shape_t wanted = barrier->shapes[c], found = rn_tensor_shape(values);
  if (found.rank == 0 || keys->count != found.dims[0])
    return rn_invalid_argument("There are %lld keys for values of shape %s", (long long)keys->count,
                               rn_text_of(values).text);
  rn_shape_t element = {found.rank - 1, found.dims + 1};
  if (!rn_shape_eq(element, wanted))
    return rn_invalid_argument("Shape mismatch in tuple component %lld. Expected %s, got %s",
                               (long long)c + 2, rn_shape_text(wanted).text,
                               rn_shape_text(element).text);
  return RN_OK;
}

// Checks all keys of a call before inserting any.
static rn_status_t check_keys(const barrier_t* barrier, const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* keys = rn_in(ctx, 1);
  int64_t c = ((const barrier_verb_t*)ctx->state)->component, fresh = 0;
  rn_str_t first = {0};
  for (int64_t i = 0; i < keys->count; ++i) {
    rn_str_t key = rn_tstring_view(&RN_DATA(keys, rn_tstring_t)[i]);
    size_t at = (size_t)(uintptr_t)rn_map_get(&barrier->by_key, key);
    if (at == 0 && fresh++ == 0) first = key;
    if (at > 0 && rn_tensor_is_set(&barrier->incomplete.items[at - 1].values[c]))
      return rn_invalid_argument("Key %.*s already has a value for component %lld in barrier %.*s",
                                 RN_STR_ARGS(key), (long long)c, RN_STR_ARGS(barrier->name));
  }
  if (!barrier->is_closed) return RN_OK;
  if (barrier->cancels || barrier->incomplete.count == 0)
    return rn_cancelled(
        "Barrier %.*s is closed.  Pending enqueues cancelled: %d.  Number of new insertions: %lld. "
        " Number of incomplete keys: %zu.",
        RN_STR_ARGS(barrier->name), barrier->cancels, (long long)fresh, barrier->incomplete.count);
  if (fresh == 0) return RN_OK;
  return rn_cancelled(
      "Barrier %.*s is closed, but attempted to insert a brand new key: %.*s.  Pending enqueues "
      "cancelled: 0.  Insertion index: 0.  Number of incomplete keys: %zu.",
      RN_STR_ARGS(barrier->name), RN_STR_ARGS(first), barrier->incomplete.count);
}

// The entry of |key|, created if needed.
static rn_status_t entry_for(barrier_t* barrier, rn_str_t key, barrier_entry_t** out,
                             bool* out_fresh) {
  rn_allocator_t allocator = barrier->parking.allocator;
  size_t at = (size_t)(uintptr_t)rn_map_get(&barrier->by_key, key);
  *out_fresh = at == 0;
  if (at == 0) {
    barrier_entry_t fresh = {.index = barrier->next_index, .key_size = key.size};
    rn_status_t status = rn_str_dup(allocator, key, &fresh.key);
    if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)barrier->components, &fresh.values);
    if (rn_ok(status)) status = rn_vec_push(&barrier->incomplete, allocator, fresh);
    at = barrier->incomplete.count;
    if (rn_ok(status)) {
      status = rn_map_put(&barrier->by_key, rn_str_n(fresh.key, fresh.key_size), (void*)at);
      if (!rn_ok(status)) barrier->incomplete.count--;
    }
    if (!rn_ok(status)) {
      clear_entry(barrier, &fresh);
      return status;
    }
  }
  *out = &barrier->incomplete.items[at - 1];
  return RN_OK;
}

// Moves an entry from incomplete to ready, after those with its index.
static rn_status_t make_ready(barrier_t* barrier, size_t at) {
  barrier_entry_t entry = barrier->incomplete.items[at];
  RN_RETURN_IF_ERROR(rn_vec_push(&barrier->ready, barrier->parking.allocator, entry));
  size_t place = barrier->ready.count - 1;
  while (place > 0 && barrier->ready.items[place - 1].index > entry.index) {
    barrier->ready.items[place] = barrier->ready.items[place - 1];
    --place;
  }
  barrier->ready.items[place] = entry;
  rn_map_remove(&barrier->by_key, rn_str_n(entry.key, entry.key_size));
  size_t last = --barrier->incomplete.count;
  if (at == last) return RN_OK;
  // The last entry takes its place. Its key is in the map already, so nothing is allocated.
  barrier->incomplete.items[at] = barrier->incomplete.items[last];
  barrier_entry_t* moved = &barrier->incomplete.items[at];
  return rn_map_put(&barrier->by_key, rn_str_n(moved->key, moved->key_size), (void*)(at + 1));
}

static rn_status_t slice_of(const rn_kernel_ctx_t* ctx, const rn_tensor_t* batch, int64_t index,
                            rn_shape_t shape, rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->device_memory, batch->dtype, shape, out));
  size_t bytes = rn_dtype_size(batch->dtype) * (size_t)out->count;
  rn_status_t status = rn_move_row(batch->dtype, (const char*)batch->data + bytes * (size_t)index,
                                   out->data, out->count);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

// Allocates everything that an insertion needs before inserting: one slice of the values per key,
// entries for new keys, space in the ready list.
static rn_status_t prepare_insert(barrier_t* barrier, rn_kernel_ctx_t* ctx, rn_tensor_t* slices,
                                  bool* out_any_fresh) {
  const rn_tensor_t *keys = rn_in(ctx, 1), *values = rn_in(ctx, 2);
  int64_t c = ((const barrier_verb_t*)ctx->state)->component;
  rn_allocator_t allocator = barrier->parking.allocator;
  for (int64_t i = 0; i < keys->count; ++i)
    RN_RETURN_IF_ERROR(slice_of(ctx, values, i, barrier->shapes[c], &slices[i]));
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&barrier->ready, allocator, barrier->ready.count + (size_t)keys->count));
  for (int64_t i = 0; i < keys->count; ++i) {
    barrier_entry_t* entry = NULL;
    bool is_fresh = false;
    rn_str_t key = rn_tstring_view(&RN_DATA(keys, rn_tstring_t)[i]);
    RN_RETURN_IF_ERROR(entry_for(barrier, key, &entry, &is_fresh));
    *out_any_fresh |= is_fresh;
  }
  return RN_OK;
}

static rn_status_t insert_all(barrier_t* barrier, rn_kernel_ctx_t* ctx, rn_tensor_t* slices) {
  const rn_tensor_t* keys = rn_in(ctx, 1);
  int64_t c = ((const barrier_verb_t*)ctx->state)->component;
  for (int64_t i = 0; i < keys->count; ++i) {
    barrier_entry_t* entry = NULL;
    bool is_fresh = false;
    rn_str_t key = rn_tstring_view(&RN_DATA(keys, rn_tstring_t)[i]);
    RN_RETURN_IF_ERROR(entry_for(barrier, key, &entry, &is_fresh));
    if (rn_tensor_is_set(&entry->values[c]))
      return rn_invalid_argument("Key %.*s already has a value for component %lld in barrier %.*s",
                                 RN_STR_ARGS(key), (long long)c, RN_STR_ARGS(barrier->name));
    entry->values[c] = slices[i];
    slices[i] = (rn_tensor_t){0};
    if (++entry->present == barrier->components)
      RN_RETURN_IF_ERROR(make_ready(barrier, (size_t)(entry - barrier->incomplete.items)));
  }
  return RN_OK;
}

// Removes the entries after the first |count|, which are new and empty.
static void forget_entries(barrier_t* barrier, size_t count) {
  while (barrier->incomplete.count > count) {
    barrier_entry_t* entry = &barrier->incomplete.items[--barrier->incomplete.count];
    rn_map_remove(&barrier->by_key, rn_str_n(entry->key, entry->key_size));
    clear_entry(barrier, entry);
  }
}

static bool try_insert(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  barrier_t* barrier = (barrier_t*)owner;
  rn_allocator_t allocator = barrier->parking.allocator;
  int64_t count = rn_in(ctx, 1)->count;
  size_t before = barrier->incomplete.count;
  rn_tensor_t* slices = NULL;
  bool any_fresh = false;
  rn_status_t status = check_insert(barrier, ctx);
  if (rn_ok(status)) status = check_keys(barrier, ctx);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)count, &slices);
  if (rn_ok(status)) {
    status = prepare_insert(barrier, ctx, slices, &any_fresh);
    if (!rn_ok(status)) forget_entries(barrier, before);
  }
  if (rn_ok(status)) {
    status = insert_all(barrier, ctx, slices);
    if (any_fresh) barrier->next_index++;
  }
  for (int64_t i = 0; slices && i < count; ++i) rn_tensor_clear(&slices[i]);
  RN_FREE_ARRAY(allocator, slices, (size_t)count);
  *out_status = status;
  return true;
}

static rn_status_t give(barrier_t* barrier, rn_kernel_ctx_t* ctx, int64_t count) {
  rn_tensor_t *indices = NULL, *keys = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &indices));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &count}, &keys));
  for (int64_t i = 0; i < count; ++i) {
    const barrier_entry_t* entry = &barrier->ready.items[i];
    RN_DATA(indices, int64_t)[i] = entry->index;
    if (!rn_tstring_assign(&RN_DATA(keys, rn_tstring_t)[i], entry->key, entry->key_size))
      return rn_out_of_memory();
  }
  for (int32_t c = 0; c < barrier->components; ++c) {
    int64_t dims[RN_MAX_RANK + 1] = {count};
    rn_shape_t shape = barrier->shapes[c];
    if (shape.rank) memcpy(dims + 1, shape.dims, (size_t)shape.rank * sizeof *dims);
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, 2 + c, (rn_shape_t){shape.rank + 1, dims}, &out));
    int64_t row = count ? out->count / count : 0;
    for (int64_t i = 0; i < count; ++i)
      RN_RETURN_IF_ERROR(
          rn_move_row(out->dtype, barrier->ready.items[i].values[c].data,
                      (char*)out->data + (size_t)(i * row) * rn_dtype_size(out->dtype), row));
  }
  for (int64_t i = 0; i < count; ++i) clear_entry(barrier, &barrier->ready.items[i]);
  barrier->ready.count -= (size_t)count;
  memmove(barrier->ready.items, barrier->ready.items + count,
          barrier->ready.count * sizeof *barrier->ready.items);
  return RN_OK;
}

static rn_status_t check_take(const barrier_t* barrier, const rn_kernel_ctx_t* ctx) {
  const rn_kernel_t* kernel = ctx->kernel;
  bool fits = kernel->output_count == barrier->components + 2;
  for (int32_t c = 0; fits && c < barrier->components; ++c)
    fits = kernel->output_types[c + 2] == barrier->types[c];
  if (rn_in(ctx, 1)->rank != 0) return rn_invalid_argument("num_elements must be a scalar.");
  if (fits) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, kernel->allocator);
  rn_strbuf_append(&text, RN_STR("Signature mismatch, have: string_ref, int32->"));
  rn_print_types(&text, kernel->output_types, kernel->output_count);
  rn_strbuf_append(&text, RN_STR(" expected: string_ref, int32->int64, string, "));
  rn_print_types(&text, barrier->types, barrier->components);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static bool try_take(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  barrier_t* barrier = (barrier_t*)owner;
  const barrier_verb_t* verb = ctx->state;
  *out_status = check_take(barrier, ctx);
  if (!rn_ok(*out_status)) return true;
  int64_t wanted = *RN_DATA(rn_in(ctx, 1), const int32_t), ready = (int64_t)barrier->ready.count;
  if (barrier->is_closed) {
    int64_t to_come = barrier->cancels ? 0 : (int64_t)barrier->incomplete.count;
    int64_t total = ready + to_come;
    if (verb->allows_fewer) {
      int64_t most = verb->waits_for_incomplete ? total : ready;
      if (wanted > most) wanted = most;
    }
    if (wanted > total || (wanted <= 0 && total == 0)) {
      *out_status = rn_out_of_range(
          "Barrier '%.*s' is closed and has insufficient elements (requested %lld, total size "
          "%lld)",
          RN_STR_ARGS(barrier->name), (long long)wanted, (long long)total);
      return true;
    }
  }
  if (wanted < 0) {
    *out_status = rn_invalid_argument("num_elements must not be negative");
    return true;
  }
  if (wanted > ready) return false;
  *out_status = give(barrier, ctx, wanted);
  return true;
}

static bool try_close(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  barrier_t* barrier = (barrier_t*)owner;
  bool cancels = ((const barrier_verb_t*)ctx->state)->cancels;
  // Closing again is allowed if this time it also cancels pending enqueues.
  if (barrier->is_closed && (barrier->cancels || !cancels))
    *out_status = rn_cancelled("Barrier '%.*s' is already closed.", RN_STR_ARGS(barrier->name));
  barrier->is_closed = true;
  barrier->cancels |= cancels;
  return true;
}

static void call(rn_kernel_ctx_t* ctx, rn_parking_try_t attempt) {
  rn_resource_t* resource = NULL;
  rn_status_t status = rn_handle_input(ctx, 0, BARRIER_TYPE, &resource);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  rn_parking_call(&((barrier_t*)resource)->parking, resource, ctx, attempt,
                  "Dequeue operation was cancelled");
  rn_object_release(&resource->object);
}
static void insert(rn_kernel_ctx_t* ctx) { call(ctx, try_insert); }
static void take(rn_kernel_ctx_t* ctx) { call(ctx, try_take); }
static void close_barrier(rn_kernel_ctx_t* ctx) { call(ctx, try_close); }

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, BARRIER_TYPE, &resource));
  barrier_t* barrier = (barrier_t*)resource;
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  bool is_ready = strcmp(ctx->kernel->op->name, "BarrierReadySize") == 0;
  rn_mutex_lock(&barrier->parking.mutex);
  if (rn_ok(status))
    *RN_DATA(out, int32_t) = (int32_t)(is_ready ? barrier->ready.count : barrier->incomplete.count);
  rn_mutex_unlock(&barrier->parking.mutex);
  rn_object_release(&resource->object);
  return status;
}

#define USE(name, init_, function)                                                 \
  {                                                                                \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,                   \
    .state_size = sizeof(barrier_verb_t), .init = init_, .compute_async = function \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "Barrier",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(rn_handle_state_t),
     .init = barrier_init,
     .destroy = rn_handle_state_destroy,
     .compute = rn_handle_state_compute},
    USE("BarrierInsertMany", insert_init, insert),
    USE("BarrierTakeMany", take_init, take),
    USE("BarrierClose", close_init, close_barrier),
    {.op = "BarrierReadySize", .device = "CPU", .compute = size},
    {.op = "BarrierIncompleteSize", .device = "CPU", .compute = size},
};
RN_KERNEL_FAMILY(cpu_barrier, rows);
