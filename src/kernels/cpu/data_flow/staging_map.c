// MapStage and related ops: tuples stored under keys, possibly in pieces, and removed by key.
//
// Entries are sorted by key, so one implementation serves the ordered and the unordered ops.
#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/staging.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

#define MAP_TYPE "StagingMap"
#define ORDERED_MAP_TYPE "OrderedStagingMap"

typedef struct staging_map_entry_t {
  int64_t key;
  rn_tensor_t* values;  // Owned; unset if missing so far or taken
  int32_t components, present;
} staging_map_entry_t;

typedef RN_VEC(staging_map_entry_t) staging_map_entries_t;

typedef struct map_t {
  rn_resource_t resource;
  rn_parking_t parking;
  rn_staging_limits_t limits;
  int64_t bytes;
  staging_map_entries_t complete, incomplete;  // both sorted by key
} map_t;

static void clear_entry(rn_allocator_t allocator, staging_map_entry_t* entry) {
  for (int32_t i = 0; i < entry->components; ++i) rn_tensor_clear(&entry->values[i]);
  RN_FREE_ARRAY(allocator, entry->values, (size_t)entry->components);
  *entry = (staging_map_entry_t){0};
}

static void clear_entries(map_t* map, staging_map_entries_t* entries) {
  for (size_t i = 0; i < entries->count; ++i)
    clear_entry(map->parking.allocator, &entries->items[i]);
  entries->count = 0;
}

static void map_destroy(rn_object_t* object) {
  map_t* map = (map_t*)object;
  rn_allocator_t allocator = map->parking.allocator;
  clear_entries(map, &map->complete);
  clear_entries(map, &map->incomplete);
  rn_vec_free(&map->complete, allocator);
  rn_vec_free(&map->incomplete, allocator);
  rn_parking_destroy(&map->parking);
  RN_FREE(allocator, map);
}

static rn_status_t create(void* arg, rn_resource_t** out, const char* type) {
  const rn_kernel_init_t* init = arg;
  map_t* map = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &map));
  map->resource = (rn_resource_t){{.refs = 1, .destroy = map_destroy}, type};
  rn_parking_init(&map->parking, init->allocator);
  map->limits =
      (rn_staging_limits_t){rn_init_int(init, "capacity"), rn_init_int(init, "memory_limit")};
  *out = &map->resource;
  return RN_OK;
}
static rn_status_t create_map(void* arg, rn_resource_t** out) { return create(arg, out, MAP_TYPE); }
static rn_status_t create_ordered(void* arg, rn_resource_t** out) {
  return create(arg, out, ORDERED_MAP_TYPE);
}

static rn_status_t user_init(const rn_kernel_init_t* init, void* state) {
  bool is_ordered = rn_str_starts_with(rn_str(init->op->name), RN_STR("Ordered"));
  return rn_staging_user_init(init, is_ordered ? ORDERED_MAP_TYPE : MAP_TYPE,
                              is_ordered ? create_ordered : create_map, state);
}

// The position of |key|, or where to insert it.
static size_t place_of(const staging_map_entries_t* entries, int64_t key, bool* out_found) {
  size_t low = 0, high = entries->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (entries->items[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  *out_found = low < entries->count && entries->items[low].key == key;
  return low;
}

static void take_out(staging_map_entries_t* entries, size_t at) {
  entries->count--;
  memmove(entries->items + at, entries->items + at + 1,
          (entries->count - at) * sizeof *entries->items);
}

static rn_status_t put_in(map_t* map, staging_map_entries_t* entries, size_t at,
                          staging_map_entry_t entry) {
  RN_RETURN_IF_ERROR(rn_vec_push(entries, map->parking.allocator, entry));
  memmove(entries->items + at + 1, entries->items + at,
          (entries->count - 1 - at) * sizeof *entries->items);
  entries->items[at] = entry;
  return RN_OK;
}

static rn_status_t out_of_bounds(int64_t index, int64_t key, int64_t components) {
  return rn_invalid_argument("Index '%llu' for key '%lld' was out of bounds '%lld'.",
                             (unsigned long long)index, (long long)key, (long long)components);
}

static rn_status_t check_indices(const rn_tensor_t* indices) {
  for (int64_t i = 1; i < indices->count; ++i)
    if (rn_int_at(indices, i) <= rn_int_at(indices, i - 1))
      return rn_invalid_argument("Indices are not strictly ordered");
  return RN_OK;
}

static rn_status_t read_key(const rn_tensor_t* key, const char* got, int64_t* out) {
  if (key->count != 1)
    return rn_invalid_argument("key must be an int64 scalar%s: %s", got, rn_text_of(key).text);
  *out = rn_int_at(key, 0);
  return RN_OK;
}

// Stores input |first| + i as component indices[i] of |entry|; changes nothing on failure.
static rn_status_t keep_values(rn_kernel_ctx_t* ctx, const rn_tensor_t* indices,
                               staging_map_entry_t* entry) {
  rn_status_t status = RN_OK;
  int64_t kept = 0;
  for (; kept < indices->count; ++kept) {
    rn_tensor_t* to = &entry->values[rn_int_at(indices, kept)];
    status = rn_ctx_keep(ctx, rn_in(ctx, (int)(2 + kept)), to);
    if (!rn_ok(status)) break;
  }
  if (rn_ok(status)) {
    entry->present += (int32_t)kept;
    return status;
  }
  while (kept > 0) rn_tensor_clear(&entry->values[rn_int_at(indices, --kept)]);
  return status;
}

static rn_status_t stage_locked(map_t* map, rn_kernel_ctx_t* ctx, int64_t key) {
  const rn_tensor_t* indices = rn_in(ctx, 1);
  int64_t components = ((rn_staging_user_t*)ctx->state)->components;
  rn_allocator_t allocator = map->parking.allocator;
  bool is_begun, is_there;
  size_t at = place_of(&map->incomplete, key, &is_begun);
  staging_map_entry_t fresh = {.key = key, .components = (int32_t)components};
  staging_map_entry_t* entry = is_begun ? &map->incomplete.items[at] : &fresh;
  if (is_begun) components = entry->components;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0 || index >= components) return out_of_bounds(index, key, components);
    if (is_begun && rn_tensor_is_set(&entry->values[index]))
      return rn_invalid_argument(
          "The tensor for index '%lld' for key '%lld' was already initialized '%lld'.",
          (long long)index, (long long)key, (long long)components);
  }
  size_t place = place_of(&map->complete, key, &is_there);
  if (!is_begun && is_there && indices->count == components) return RN_OK;  // keep the first one
  if (!is_begun) RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)components, &fresh.values));
  rn_status_t status = keep_values(ctx, indices, entry);
  if (rn_ok(status) && entry->present == entry->components) {
    if (!is_there) status = put_in(map, &map->complete, place, *entry);
    if (is_there) clear_entry(allocator, entry);
    if (rn_ok(status) && is_begun) take_out(&map->incomplete, at);
    if (!rn_ok(status) && is_begun) {  // undo
      for (int64_t i = 0; i < indices->count; ++i)
        rn_tensor_clear(&entry->values[rn_int_at(indices, i)]);
      entry->present -= (int32_t)indices->count;
    }
  } else if (rn_ok(status) && !is_begun) {
    status = put_in(map, &map->incomplete, at, fresh);
  }
  if (!rn_ok(status) && !is_begun) clear_entry(allocator, &fresh);
  return status;
}

static bool try_stage(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  map_t* map = (map_t*)owner;
  const rn_tensor_t* indices = rn_in(ctx, 1);
  int64_t key = 0, bytes = 0;
  int values = ctx->kernel->input_count - 2;
  *out_status = read_key(rn_in(ctx, 0), ", got tensor with shape", &key);
  if (rn_ok(*out_status)) *out_status = check_indices(indices);
  if (rn_ok(*out_status) && indices->count > values)
    *out_status = rn_invalid_argument("There are %lld indices and %d values",
                                      (long long)indices->count, values);
  int count = (int)indices->count;
  if (rn_ok(*out_status)) *out_status = rn_staging_measure(ctx, 2, count, &map->limits, &bytes);
  if (!rn_ok(*out_status)) return true;
  if (map->limits.capacity > 0 && (int64_t)map->complete.count >= map->limits.capacity)
    return false;
  if (map->limits.memory > 0 && map->bytes + bytes > map->limits.memory) return false;
  *out_status = stage_locked(map, ctx, key);
  if (rn_ok(*out_status)) map->bytes += bytes;
  return true;
}

// Outputs the values selected by input |input|, from output |first| on; they stay stored if
// |is_shared|.
static rn_status_t give_locked(map_t* map, rn_kernel_ctx_t* ctx, staging_map_entry_t* entry,
                               int input, int first, bool is_shared) {
  const rn_tensor_t* indices = rn_in(ctx, input);
  const rn_kernel_t* kernel = ctx->kernel;
  RN_RETURN_IF_ERROR(check_indices(indices));
  if (indices->count != kernel->output_count - first)
    return rn_invalid_argument("There are %lld indices and %d outputs", (long long)indices->count,
                               kernel->output_count - first);
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = rn_int_at(indices, i);
    if (index < 0 || index >= entry->components)
      return out_of_bounds(index, entry->key, entry->components);
    const rn_tensor_t* value = &entry->values[index];
    if (!rn_tensor_is_set(value))
      return rn_invalid_argument("Tensor at index '%lld' for key '%lld' has already been removed.",
                                 (long long)index, (long long)entry->key);
    int output = first + (int)i;
    if (value->dtype != rn_dtype_base(kernel->output_types[output]))
      return rn_internal(
          "Output %d of type %s does not match declared output type %s for node {{node %.*s}}",
          output, rn_dtype_name(value->dtype), rn_dtype_name(kernel->output_types[output]),
          RN_STR_ARGS(kernel->node));
  }
  for (int64_t i = 0; i < indices->count; ++i) {
    rn_tensor_t* value = &entry->values[rn_int_at(indices, i)];
    rn_tensor_t copy = {0};
    if (is_shared) {
      RN_RETURN_IF_ERROR(rn_tensor_share(value, &copy));
      rn_set_output(ctx, first + (int)i, &copy);
      continue;
    }
    map->bytes -= (int64_t)rn_tensor_bytes(value);
    entry->present--;
    rn_set_output(ctx, first + (int)i, value);
  }
  return RN_OK;
}

static bool try_take(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status,
                     bool is_shared) {
  map_t* map = (map_t*)owner;
  int64_t key = 0;
  bool is_there;
  *out_status = read_key(rn_in(ctx, 0), "", &key);
  if (!rn_ok(*out_status)) return true;
  size_t at = place_of(&map->complete, key, &is_there);
  if (!is_there) return false;
  staging_map_entry_t* entry = &map->complete.items[at];
  *out_status = give_locked(map, ctx, entry, 1, 0, is_shared);
  if (entry->present > 0) return true;
  clear_entry(map->parking.allocator, entry);
  take_out(&map->complete, at);
  return true;
}
static bool try_peek(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  return try_take(owner, ctx, out_status, true);
}
static bool try_unstage(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  return try_take(owner, ctx, out_status, false);
}

static bool try_any(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  map_t* map = (map_t*)owner;
  if (map->complete.count == 0) return false;
  staging_map_entry_t* entry = &map->complete.items[0];
  rn_tensor_t* key = NULL;
  *out_status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &key);
  if (!rn_ok(*out_status)) return true;
  *RN_DATA(key, int64_t) = entry->key;
  *out_status = give_locked(map, ctx, entry, 0, 1, false);
  if (entry->present > 0) return true;
  clear_entry(map->parking.allocator, entry);
  take_out(&map->complete, 0);
  return true;
}

static bool try_clear(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  (void)ctx;
  (void)out_status;
  map_t* map = (map_t*)owner;
  clear_entries(map, &map->complete);
  clear_entries(map, &map->incomplete);
  map->bytes = 0;
  return true;
}

static void call(rn_kernel_ctx_t* ctx, rn_parking_try_t attempt) {
  rn_resource_t* resource = ((rn_staging_user_t*)ctx->state)->resource;
  rn_parking_call(&((map_t*)resource)->parking, resource, ctx, attempt,
                  "The staging area was waited for until the step was cancelled");
}
static void stage(rn_kernel_ctx_t* ctx) { call(ctx, try_stage); }
static void unstage(rn_kernel_ctx_t* ctx) { call(ctx, try_unstage); }
static void unstage_any(rn_kernel_ctx_t* ctx) { call(ctx, try_any); }
static void peek(rn_kernel_ctx_t* ctx) { call(ctx, try_peek); }
static void clear(rn_kernel_ctx_t* ctx) { call(ctx, try_clear); }

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  map_t* map = (map_t*)((rn_staging_user_t*)ctx->state)->resource;
  bool is_incomplete = strstr(ctx->kernel->op->name, "Incomplete") != NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_mutex_lock(&map->parking.mutex);
  *RN_DATA(out, int32_t) = (int32_t)(is_incomplete ? map->incomplete.count : map->complete.count);
  rn_mutex_unlock(&map->parking.mutex);
  return RN_OK;
}

#define ROW(name, flags_, ...)                                                             \
  {                                                                                        \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(rn_staging_user_t), \
    .init = user_init, .destroy = rn_staging_user_destroy, __VA_ARGS__                     \
  }
#define BOTH(name, flags_, ...) \
  ROW(name, flags_, __VA_ARGS__), ROW("Ordered" name, flags_, __VA_ARGS__)

static const rn_kernel_def_t rows[] = {
    BOTH("MapStage", RN_KERNEL_KEEPS_INPUTS, .compute_async = stage),
    BOTH("MapUnstage", RN_KERNEL_OWN_OUTPUTS, .compute_async = unstage),
    BOTH("MapUnstageNoKey", RN_KERNEL_OWN_OUTPUTS, .compute_async = unstage_any),
    BOTH("MapPeek", RN_KERNEL_OWN_OUTPUTS, .compute_async = peek),
    BOTH("MapSize", 0, .compute = size),
    BOTH("MapIncompleteSize", 0, .compute = size),
    BOTH("MapClear", 0, .compute_async = clear),
};
RN_KERNEL_FAMILY(cpu_staging_map, rows);
