// The ops that make lookup tables. A named table is made, or found, with the kernel; an anonymous
// one is made anew by every call, and lives as long as its handles.
#include <stdio.h>

#include "device/device.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/lookup/table.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"

// What the attributes say.
typedef struct lookup_spec_t {
  rn_dtype_t key, value;
  bool is_fixed, is_dense;
  int32_t rank;  // of a value: 0 or 1
  int64_t width;
  int64_t buckets;  // of a dense table
  double load;
} lookup_spec_t;

static rn_status_t read_shape(const rn_kernel_init_t* init, int least_rank, const char* complaint,
                              lookup_spec_t* spec) {
  rn_shape_t shape = rn_init_attr(init, "value_shape")->shape;
  if (shape.rank < least_rank || shape.rank > 1)
    return rn_invalid_argument("%s, got shape %s", complaint, rn_shape_text(shape).text);
  spec->rank = shape.rank;
  if (shape.rank) spec->width = shape.dims[0];
  return RN_OK;
}

static rn_status_t read_dense(const rn_kernel_init_t* init, lookup_spec_t* spec) {
  int64_t buckets = rn_init_int(init, "initial_num_buckets");
  float load = rn_init_float(init, "max_load_factor");
  if (buckets < 4 || (buckets & (buckets - 1)) != 0)
    return rn_invalid_argument("Number of buckets must be at least 4 and a power of 2, got: %lld",
                               (long long)buckets);
  if (!(load > 0 && load < 1))
    return rn_invalid_argument("max_load_factor must be between 0 and 1, got: %g", (double)load);
  spec->is_dense = true;
  spec->buckets = buckets;
  spec->load = (double)load;
  return read_shape(init, 0, "Empty value must be a scalar or a vector", spec);
}

static rn_status_t read_spec(const rn_kernel_init_t* init, lookup_spec_t* spec) {
  rn_str_t op = rn_str(init->op->name);
  *spec = (lookup_spec_t){.key = rn_init_type(init, "key_dtype"),
                          .value = rn_init_type(init, "value_dtype")};
  bool has_shape = rn_op_attr_index(init->op, RN_STR("value_shape")) >= 0;
  if (rn_op_attr_index(init->op, RN_STR("initial_num_buckets")) >= 0) return read_dense(init, spec);
  if (has_shape) return read_shape(init, 1, "Default value must be a vector", spec);
  spec->is_fixed =
      rn_str_starts_with(op, RN_STR("HashTable")) || rn_str_is(op, "AnonymousHashTable");
  return RN_OK;
}

static rn_status_t make_table(rn_allocator_t allocator, const lookup_spec_t* spec, rn_str_t name,
                              rn_lookup_table_t** out) {
  if (spec->is_dense)
    return rn_lookup_dense_create(allocator, name, spec->key, spec->value, spec->buckets,
                                  spec->load, out);
  return rn_lookup_table_create(allocator, name, spec->key, spec->value, spec->is_fixed, out);
}

static rn_status_t set_shape(const lookup_spec_t* spec, rn_lookup_table_t* table) {
  return rn_lookup_table_set_shape(table, (rn_shape_t){spec->rank, &spec->width});
}

// Named tables.

typedef struct named_table_t {
  rn_allocator_t allocator;
  lookup_spec_t spec;
} named_table_t;

static rn_status_t make_named(void* arg, rn_str_t name, rn_resource_t** out) {
  const named_table_t* named = arg;
  rn_lookup_table_t* table = NULL;
  RN_RETURN_IF_ERROR(make_table(named->allocator, &named->spec, name, &table));
  *out = rn_lookup_table_resource(table);
  return RN_OK;
}

static rn_status_t named_init(const rn_kernel_init_t* init, void* state) {
  rn_handle_state_t* holder = state;
  named_table_t named = {.allocator = init->allocator};
  const lookup_spec_t* spec = &named.spec;
  RN_RETURN_IF_ERROR(read_spec(init, &named.spec));
  RN_RETURN_IF_ERROR(rn_handle_state_init(holder, init, RN_LOOKUP_TABLE_TYPE, make_named, &named));
  rn_lookup_table_t* table = (rn_lookup_table_t*)holder->resource;
  if (rn_lookup_table_key(table) != spec->key || rn_lookup_table_value(table) != spec->value ||
      rn_lookup_table_is_fixed(table) != spec->is_fixed)
    return rn_invalid_argument(
        "Conflicting key/value dtypes %s->%s with %s->%s for table %.*s",
        rn_dtype_name(rn_lookup_table_key(table)), rn_dtype_name(rn_lookup_table_value(table)),
        rn_dtype_name(spec->key), rn_dtype_name(spec->value), RN_STR_ARGS(init->node));
  bool has_shape = rn_op_attr_index(init->op, RN_STR("value_shape")) >= 0;
  return has_shape ? set_shape(spec, table) : RN_OK;
}

// Sets the reserved keys of a dense table, inputs 0 and 1.
static rn_status_t begin_dense(const rn_kernel_ctx_t* ctx, rn_lookup_table_t* table) {
  const rn_tensor_t *empty = rn_in(ctx, 0), *deleted = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(empty, deleted))
    return rn_invalid_argument("Empty and deleted keys must have same shape, got shapes: %s and %s",
                               rn_text_of(empty).text, rn_text_of(deleted).text);
  if (empty->rank > 1)
    return rn_invalid_argument("Empty key must be a scalar or a vector, got shape %s",
                               rn_text_of(empty).text);
  return rn_lookup_dense_begin(table, empty, deleted);
}

static rn_status_t named_dense(rn_kernel_ctx_t* ctx) {
  if (ctx->kernel->input_count < 2)  // the first version of the op, which stock cannot run either
    return rn_invalid_argument("Unknown input name: deleted_key");
  RN_RETURN_IF_ERROR(
      begin_dense(ctx, (rn_lookup_table_t*)((const rn_handle_state_t*)ctx->state)->resource));
  return rn_handle_state_compute(ctx);
}

// Anonymous tables. The kernel's state is what the attributes say.

static rn_status_t anonymous_init(const rn_kernel_init_t* init, void* state) {
  return read_spec(init, state);
}

static rn_status_t give(rn_kernel_ctx_t* ctx, const char* name, rn_lookup_table_t* table) {
  rn_handle_t* handle = NULL;
  rn_tensor_t out = {0};
  RN_RETURN_IF_ERROR(rn_handle_create(ctx->kernel->allocator, ctx->kernel->device->name,
                                      RN_STR("localhost"), rn_str(name), RN_INVALID,
                                      RN_SHAPE_UNKNOWN, rn_lookup_table_resource(table), &handle));
  RN_RETURN_IF_ERROR(rn_handle_tensor(ctx->kernel->host_memory, handle, &out));
  rn_set_output(ctx, 0, &out);
  return RN_OK;
}

static rn_status_t make_anonymous(rn_kernel_ctx_t* ctx) {
  const lookup_spec_t* spec = ctx->state;
  rn_lookup_table_t* table = NULL;
  char name[64];
  snprintf(name, sizeof name, "%s_%lld", ctx->kernel->op->name,
           (long long)rn_resources_new_number(ctx->kernel->resources));
  RN_RETURN_IF_ERROR(make_table(ctx->kernel->allocator, spec, rn_str(name), &table));
  rn_status_t status = spec->is_dense || spec->rank ? set_shape(spec, table) : RN_OK;
  if (rn_ok(status) && spec->is_dense) status = begin_dense(ctx, table);
  if (rn_ok(status)) status = give(ctx, name, table);
  rn_object_release(&rn_lookup_table_resource(table)->object);
  return status;
}

#define NUMBERS (RN_T(FLOAT) | RN_T(DOUBLE) | RN_T(INT32) | RN_T(INT64) | RN_T(BOOL))
#define NAMED(name, keys, values, function)                                                      \
  {                                                                                              \
    .op = name, .device = "CPU", .types = {{"key_dtype", keys}, {"value_dtype", values}},        \
    .flags = RN_KERNEL_OWN_OUTPUTS, .state_size = sizeof(rn_handle_state_t), .init = named_init, \
    .destroy = rn_handle_state_destroy, .compute = function                                      \
  }
#define ANONYMOUS(name, keys, values)                                                            \
  {                                                                                              \
    .op = name, .device = "CPU", .types = {{"key_dtype", keys}, {"value_dtype", values}},        \
    .flags = RN_KERNEL_OWN_OUTPUTS, .state_size = sizeof(lookup_spec_t), .init = anonymous_init, \
    .compute = make_anonymous                                                                    \
  }
// The types of a kind of table, whose first version is |one|, second |two|.
#define TABLES(one, two, anonymous, keys, values)    \
  NAMED(one, keys, values, rn_handle_state_compute), \
      NAMED(two, keys, values, rn_handle_state_compute), ANONYMOUS(anonymous, keys, values)
// As in stock, which has no table from int32 to int64.
#define FIXED(keys, values) TABLES("HashTable", "HashTableV2", "AnonymousHashTable", keys, values)
#define SCALARS(keys, values) \
  TABLES("MutableHashTable", "MutableHashTableV2", "AnonymousMutableHashTable", keys, values)
#define TENSORS(keys, values)                                        \
  TABLES("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", \
         "AnonymousMutableHashTableOfTensors", keys, values)
#define DENSE(keys, values)                                        \
  NAMED("MutableDenseHashTable", keys, values, named_dense),       \
      NAMED("MutableDenseHashTableV2", keys, values, named_dense), \
      ANONYMOUS("AnonymousMutableDenseHashTable", keys, values)

static const rn_kernel_def_t rows[] = {
    FIXED(RN_T(INT32), RN_T(FLOAT) | RN_T(DOUBLE) | RN_T(INT32) | RN_T(STRING)),
    FIXED(RN_T(INT64), RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_INDEX | RN_T(STRING)),
    FIXED(RN_T(STRING), NUMBERS | RN_T(STRING)),
    SCALARS(RN_TYPES_INDEX, NUMBERS | RN_T(STRING)),
    SCALARS(RN_T(STRING), NUMBERS),
    SCALARS(RN_T(INT64), RN_T(VARIANT)),
    TENSORS(RN_T(INT64), NUMBERS | RN_T(STRING)),
    TENSORS(RN_T(INT32) | RN_T(STRING), NUMBERS),
    DENSE(RN_TYPES_INDEX | RN_T(STRING), NUMBERS),
    DENSE(RN_T(INT64), RN_T(VARIANT)),
    DENSE(RN_T(STRING), RN_T(RESOURCE)),
};
RN_KERNEL_FAMILY(cpu_lookup_make, rows);
