// Stage, Unstage and related ops: tuples stored and removed in order.
#include "kernels/cpu/data_flow/staging.h"

#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

rn_status_t rn_staging_user_init(const rn_kernel_init_t* init, const char* type,
                                 rn_shared_create_fn_t create, rn_staging_user_t* user) {
  user->components = rn_init_attr(init, "dtypes")->count;
  return rn_shared_get(init, type, create, &user->resource);
}

void rn_staging_user_destroy(void* state) {
  rn_staging_user_t* user = state;
  if (user->resource) rn_object_release(&user->resource->object);
}

rn_status_t rn_staging_measure(const rn_kernel_ctx_t* ctx, int first, int count,
                               const rn_staging_limits_t* limits, int64_t* out_bytes) {
  int64_t bytes = 0;
  for (int i = first; i < first + count; ++i)
    if (!rn_add_i64_ok(bytes, (int64_t)rn_tensor_bytes(rn_in(ctx, i)), &bytes))
      return rn_out_of_memory();
  *out_bytes = bytes;
  if (limits->memory == 0 || bytes <= limits->memory) return RN_OK;
  return rn_resource_exhausted(
      "Attempted to insert tensors with combined size of '%lld' bytes into Staging Area with a "
      "memory limit of '%lld'.",
      (long long)bytes, (long long)limits->memory);
}

#define STAGING_TYPE "Staging"

typedef struct tuple_t {
  rn_tensor_t* values;  // Owned
  int32_t count;
  int64_t bytes;
} tuple_t;

typedef struct area_t {
  rn_resource_t resource;
  rn_parking_t parking;
  rn_staging_limits_t limits;
  int64_t bytes;
  RN_VEC(tuple_t) tuples;  // from |head| on
  size_t head;
} area_t;

static void clear_tuple(rn_allocator_t allocator, tuple_t* tuple) {
  for (int32_t i = 0; i < tuple->count; ++i) rn_tensor_clear(&tuple->values[i]);
  RN_FREE_ARRAY(allocator, tuple->values, (size_t)tuple->count);
  *tuple = (tuple_t){0};
}

static void clear_area(area_t* area) {
  for (size_t i = area->head; i < area->tuples.count; ++i)
    clear_tuple(area->parking.allocator, &area->tuples.items[i]);
  area->tuples.count = area->head = 0;
  area->bytes = 0;
}

static void area_destroy(rn_object_t* object) {
  area_t* area = (area_t*)object;
  rn_allocator_t allocator = area->parking.allocator;
  clear_area(area);
  rn_vec_free(&area->tuples, allocator);
  rn_parking_destroy(&area->parking);
  RN_FREE(allocator, area);
}

static rn_status_t area_create(void* arg, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  area_t* area = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &area));
  area->resource = (rn_resource_t){{.refs = 1, .destroy = area_destroy}, STAGING_TYPE};
  rn_parking_init(&area->parking, init->allocator);
  area->limits =
      (rn_staging_limits_t){rn_init_int(init, "capacity"), rn_init_int(init, "memory_limit")};
  *out = &area->resource;
  return RN_OK;
}

static rn_status_t user_init(const rn_kernel_init_t* init, void* state) {
  return rn_staging_user_init(init, STAGING_TYPE, area_create, state);
}

static int64_t size_of(const area_t* area) { return (int64_t)(area->tuples.count - area->head); }

// Frees the space at the front once it is half of the total.
static void drop_front(area_t* area) {
  if (++area->head * 2 < area->tuples.count) return;
  size_t left = area->tuples.count - area->head;
  memmove(area->tuples.items, area->tuples.items + area->head, left * sizeof *area->tuples.items);
  area->tuples.count = left;
  area->head = 0;
}

static rn_status_t keep_inputs(rn_kernel_ctx_t* ctx, tuple_t* out) {
  rn_allocator_t allocator =
      ((area_t*)((rn_staging_user_t*)ctx->state)->resource)->parking.allocator;
  int32_t count = ctx->kernel->input_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count, &out->values));
  out->count = count;
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    status = rn_ctx_keep(ctx, rn_in(ctx, i), &out->values[i]);
  if (!rn_ok(status)) clear_tuple(allocator, out);
  return status;
}

static bool try_stage(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  area_t* area = (area_t*)owner;
  const rn_staging_limits_t* limits = &area->limits;
  tuple_t tuple = {0};
  *out_status = rn_staging_measure(ctx, 0, ctx->kernel->input_count, limits, &tuple.bytes);
  if (!rn_ok(*out_status)) return true;
  if (limits->capacity > 0 && size_of(area) >= limits->capacity) return false;
  if (limits->memory > 0 && area->bytes + tuple.bytes > limits->memory) return false;
  *out_status = keep_inputs(ctx, &tuple);
  if (!rn_ok(*out_status)) return true;
  *out_status = rn_vec_push(&area->tuples, area->parking.allocator, tuple);
  if (!rn_ok(*out_status))
    clear_tuple(area->parking.allocator, &tuple);
  else
    area->bytes += tuple.bytes;
  return true;
}

static bool try_unstage(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  area_t* area = (area_t*)owner;
  if (size_of(area) == 0) return false;
  tuple_t tuple = area->tuples.items[area->head];
  area->bytes -= tuple.bytes;
  drop_front(area);
  if (tuple.count != ctx->kernel->output_count)
    *out_status = rn_invalid_argument("Mismatch stage/unstage: %d vs. %d", tuple.count,
                                      ctx->kernel->output_count);
  for (int32_t i = 0; rn_ok(*out_status) && i < tuple.count; ++i) {
    if (tuple.values[i].dtype == rn_dtype_base(ctx->kernel->output_types[i]))
      rn_set_output(ctx, i, &tuple.values[i]);
    else
      *out_status = rn_internal(
          "Output %d of type %s does not match declared output type %s for node {{node %.*s}}", i,
          rn_dtype_name(tuple.values[i].dtype), rn_dtype_name(ctx->kernel->output_types[i]),
          RN_STR_ARGS(ctx->kernel->node));
  }
  clear_tuple(area->parking.allocator, &tuple);
  return true;
}

static bool try_peek(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  area_t* area = (area_t*)owner;
  const rn_tensor_t* index = rn_in(ctx, 0);
  if (index->rank != 0 || rn_int_at(index, 0) < 0) {
    *out_status = rn_invalid_argument(index->rank != 0 ? "index must be scalar"
                                                       : "index must not be negative");
    return true;
  }
  int64_t at = rn_int_at(index, 0);
  if (size_of(area) <= at) return false;
  const tuple_t* tuple = &area->tuples.items[area->head + (size_t)at];
  if (tuple->count != ctx->kernel->output_count) {
    *out_status = rn_invalid_argument("Mismatch stage/unstage: %d vs. %d", tuple->count,
                                      ctx->kernel->output_count);
    return true;
  }
  for (int32_t i = 0; rn_ok(*out_status) && i < tuple->count; ++i) {
    rn_tensor_t copy = {0};
    if (tuple->values[i].dtype != rn_dtype_base(ctx->kernel->output_types[i])) {
      *out_status = rn_internal("Output %d differs in type from the staged tensor", i);
      break;
    }
    *out_status = rn_tensor_share(&tuple->values[i], &copy);
    if (rn_ok(*out_status)) rn_set_output(ctx, i, &copy);
  }
  return true;
}

static bool try_clear(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  (void)ctx;
  (void)out_status;
  clear_area((area_t*)owner);
  return true;
}

static void call(rn_kernel_ctx_t* ctx, rn_parking_try_t attempt) {
  rn_resource_t* resource = ((rn_staging_user_t*)ctx->state)->resource;
  rn_parking_call(&((area_t*)resource)->parking, resource, ctx, attempt,
                  "The staging area was waited for until the step was cancelled");
}
static void stage(rn_kernel_ctx_t* ctx) { call(ctx, try_stage); }
static void unstage(rn_kernel_ctx_t* ctx) { call(ctx, try_unstage); }
static void peek(rn_kernel_ctx_t* ctx) { call(ctx, try_peek); }
static void clear(rn_kernel_ctx_t* ctx) { call(ctx, try_clear); }

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  area_t* area = (area_t*)((rn_staging_user_t*)ctx->state)->resource;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_mutex_lock(&area->parking.mutex);
  *RN_DATA(out, int32_t) = (int32_t)size_of(area);
  rn_mutex_unlock(&area->parking.mutex);
  return RN_OK;
}

#define ROW(name, flags_, ...)                                                             \
  {                                                                                        \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(rn_staging_user_t), \
    .init = user_init, .destroy = rn_staging_user_destroy, __VA_ARGS__                     \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Stage", RN_KERNEL_KEEPS_INPUTS, .compute_async = stage),
    ROW("Unstage", RN_KERNEL_OWN_OUTPUTS, .compute_async = unstage),
    ROW("StagePeek", RN_KERNEL_OWN_OUTPUTS, .compute_async = peek),
    ROW("StageSize", 0, .compute = size),
    ROW("StageClear", 0, .compute_async = clear),
};
RN_KERNEL_FAMILY(cpu_staging, rows);
