// Sparse tensors stored in a map under numbers, which travel through queues in their place.
#include "kernels/cpu/array.h"
#include "kernels/cpu/sparse/parts.h"
#include "kernels/cpu/state/shared.h"
#include "kernels/kernel_rows.h"

#define MAP_TYPE "SparseTensorsMap"

typedef struct map_entry_t {
  int64_t number;  // its bytes are the key
  rn_sparse_parts_t parts;
} map_entry_t;

typedef struct sparse_map_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_map_t entries;  // to map_entry_t, each owned
  int64_t next;
} sparse_map_t;

static rn_str_t key_of(const int64_t* number) {
  return rn_str_n((const char*)number, sizeof *number);
}

static void entry_destroy(rn_allocator_t allocator, map_entry_t* entry) {
  if (!entry) return;
  rn_sparse_parts_clear(&entry->parts);
  RN_FREE(allocator, entry);
}

static void map_destroy(rn_object_t* object) {
  sparse_map_t* map = (sparse_map_t*)object;
  const rn_map_entry_t* entry;
  for (size_t at = 0; (entry = rn_map_next(&map->entries, &at));)
    entry_destroy(map->allocator, entry->value);
  rn_map_clear(&map->entries);
  rn_mutex_destroy(&map->mutex);
  RN_FREE(map->allocator, map);
}

static rn_status_t map_create(void* arg, rn_resource_t** out) {
  rn_allocator_t allocator = ((const rn_kernel_init_t*)arg)->allocator;
  sparse_map_t* map = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &map));
  map->resource = (rn_resource_t){{.refs = 1, .destroy = map_destroy}, MAP_TYPE};
  map->allocator = allocator;
  rn_mutex_init(&map->mutex);
  rn_map_init(&map->entries, allocator);
  *out = &map->resource;
  return RN_OK;
}

typedef struct map_user_t {
  rn_allocator_t allocator;
  sparse_map_t* map;  // Retained
  char* name;         // Owned
  size_t name_size;
} map_user_t;

static rn_status_t user_init(const rn_kernel_init_t* init, void* state) {
  map_user_t* user = state;
  rn_resource_t* map = NULL;
  rn_str_t name = rn_shared_name(init);
  user->allocator = init->allocator;
  RN_RETURN_IF_ERROR(rn_shared_get(init, MAP_TYPE, map_create, &map));
  user->map = (sparse_map_t*)map;
  user->name_size = name.size + 1;
  return rn_str_dup(init->allocator, name, &user->name);
}

static void user_destroy(void* state) {
  map_user_t* user = state;
  if (user->name) rn_free(user->allocator, user->name, user->name_size);
  if (user->map) rn_object_release(&user->map->resource.object);
}

// Takes |parts|; on failure the caller keeps them.
static rn_status_t add(sparse_map_t* map, rn_sparse_parts_t* parts, int64_t* out_number) {
  map_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(map->allocator, &entry));
  rn_mutex_lock(&map->mutex);
  entry->number = map->next;
  rn_status_t status = rn_map_put(&map->entries, key_of(&entry->number), entry);
  if (rn_ok(status)) {
    entry->parts = *parts;
    *parts = (rn_sparse_parts_t){0};
    *out_number = map->next++;
  }
  rn_mutex_unlock(&map->mutex);
  if (!rn_ok(status)) entry_destroy(map->allocator, entry);
  return status;
}

static map_entry_t* take(sparse_map_t* map, int64_t number) {
  rn_mutex_lock(&map->mutex);
  map_entry_t* entry = rn_map_remove(&map->entries, key_of(&number));
  rn_mutex_unlock(&map->mutex);
  return entry;
}

static rn_status_t add_one(rn_kernel_ctx_t* ctx) {
  rn_sparse_parts_t parts;
  rn_tensor_t* out = NULL;
  rn_sparse_t in;
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_sparse_check_ranks(rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)));
  RN_RETURN_IF_ERROR(rn_read_dims(rn_in(ctx, 2), dims, &shape));
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_sparse_parts_whole(ctx, &parts));
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status))
    status = add(((const map_user_t*)ctx->state)->map, &parts, RN_DATA(out, int64_t));
  rn_sparse_parts_clear(&parts);
  return status;
}

typedef struct adder_t {
  rn_kernel_ctx_t* ctx;
  rn_tensor_t* out;
  int64_t added;
} adder_t;

static rn_status_t begin_rows(void* arg, int64_t rows) {
  adder_t* adder = arg;
  return rn_output(adder->ctx, 0, (rn_shape_t){1, &rows}, &adder->out);
}

static rn_status_t add_row(void* arg, int64_t row, rn_sparse_parts_t* parts) {
  adder_t* adder = arg;
  sparse_map_t* map = ((const map_user_t*)adder->ctx->state)->map;
  RN_RETURN_IF_ERROR(add(map, parts, &RN_DATA(adder->out, int64_t)[row]));
  adder->added = row + 1;
  return RN_OK;
}

static rn_status_t check_counts(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  if (indices->rank != 2 || values->rank != 1 || shape->rank != 1) return RN_OK;  // reported later
  if (values->count != rn_tensor_dim(indices, 0))
    return rn_invalid_argument(
        "Number of values must match first dimension of indices. Got %lld values, indices shape: "
        "%s",
        (long long)values->count, rn_text_of(indices).text);
  if (shape->count != rn_tensor_dim(indices, 1))
    return rn_invalid_argument(
        "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices "
        "shape: %s",
        (long long)shape->count, rn_text_of(indices).text);
  return RN_OK;
}

// On failure removes what was added: no one would learn the numbers.
static rn_status_t add_many(rn_kernel_ctx_t* ctx) {
  sparse_map_t* map = ((const map_user_t*)ctx->state)->map;
  RN_RETURN_IF_ERROR(check_counts(ctx));
  adder_t adder = {ctx, NULL, 0};
  rn_status_t status =
      rn_sparse_parts_each(ctx, &(rn_sparse_visitor_t){&adder, begin_rows, add_row});
  for (int64_t i = 0; !rn_ok(status) && i < adder.added; ++i)
    entry_destroy(map->allocator, take(map, RN_DATA(adder.out, int64_t)[i]));
  return status;
}

static rn_status_t take_many(rn_kernel_ctx_t* ctx) {
  const map_user_t* user = ctx->state;
  const rn_tensor_t* numbers = rn_in(ctx, 0);
  rn_sparse_parts_t* all = NULL;
  if (numbers->rank != 1)
    return rn_invalid_argument("sparse_handles should be a vector but received shape %s",
                               rn_text_of(numbers).text);
  if (numbers->count == 0)
    return rn_invalid_argument(
        "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  rn_allocator_t allocator = ctx->kernel->allocator;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)numbers->count, &all));
  rn_status_t status = RN_OK;
  for (int64_t n = 0; n < numbers->count && rn_ok(status); ++n) {
    map_entry_t* entry = take(user->map, rn_int_at(numbers, n));
    if (entry) {
      all[n] = entry->parts;
      entry->parts = (rn_sparse_parts_t){0};
      entry_destroy(user->map->allocator, entry);
    } else {
      status = rn_invalid_argument("Unable to find SparseTensor: %lld in map: %s",
                                   (long long)rn_int_at(numbers, n), user->name);
    }
  }
  if (rn_ok(status)) status = rn_sparse_parts_join(ctx, all, numbers->count, 1, &numbers->count);
  for (int64_t n = 0; n < numbers->count; ++n) rn_sparse_parts_clear(&all[n]);
  RN_FREE_ARRAY(allocator, all, (size_t)numbers->count);
  return status;
}

#define ROW(name, flags_, function)                                                 \
  {                                                                                 \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(map_user_t), \
    .init = user_init, .destroy = user_destroy, .compute = function                 \
  }

static const rn_kernel_def_t rows[] = {
    ROW("AddSparseToTensorsMap", RN_KERNEL_KEEPS_INPUTS, add_one),
    ROW("AddManySparseToTensorsMap", 0, add_many),
    ROW("TakeManySparseFromTensorsMap", 0, take_many),
};
RN_KERNEL_FAMILY(cpu_sparse_map, rows);
