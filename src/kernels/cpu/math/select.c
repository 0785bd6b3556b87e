// Select and SelectV2.
#include "kernels/cpu/math/select.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/loops.h"
#include "kernels/kernel_rows.h"
#include "tensor/object.h"
#include "tensor/tstring.h"

typedef struct select_t {
  rn_run_fn_t fn;  // NULL for strings, resources and variants
} select_t;

static rn_status_t select_init(const rn_kernel_init_t* init, void* state) {
  rn_dtype_t dtype = rn_dtype_base(init->input_types[1]);
  if (rn_dtype_is_plain(dtype))
    ((select_t*)state)->fn = rn_loops()->select[__builtin_ctzll(rn_dtype_size(dtype))];
  return RN_OK;
}

// Assigns element |from| to |to|. False if memory runs out.
static bool copy_element(rn_dtype_t dtype, const void* from, void* to) {
  if (from == to) return true;
  if (dtype == RN_STRING) {
    rn_str_t view = rn_tstring_view(from);
    return rn_tstring_assign(to, view.data, view.size);
  }
  rn_object_t* before = *(rn_object_t**)to;
  *(rn_object_t**)to = rn_object_retain(*(rn_object_t* const*)from);
  rn_object_release(before);
  return true;
}

typedef struct objects_t {
  rn_dtype_t dtype;
  size_t size;
  bool is_short_of_memory;
} objects_t;

static void select_objects(void* arg, const void* const* in, const int* steps, void* out,
                           int64_t n) {
  objects_t* objects = arg;
  const bool* condition = in[0];
  for (int64_t i = 0; i < n; ++i) {
    int which = condition[steps[0] ? i : 0] ? 1 : 2;
    const char* from = (const char*)in[which] + (steps[which] ? (size_t)i : 0) * objects->size;
    if (!copy_element(objects->dtype, from, (char*)out + (size_t)i * objects->size))
      objects->is_short_of_memory = true;
  }
}

static rn_status_t compute_broadcast(rn_kernel_ctx_t* ctx) {
  select_t* select = ctx->state;
  if (select->fn) return rn_broadcast_compute(ctx, 3, 7, RN_GRAIN_CHEAP, select->fn, NULL);
  rn_dtype_t dtype = rn_in(ctx, 1)->dtype;
  objects_t objects = {dtype, rn_dtype_size(dtype), false};
  // In one piece: reference counting is not worth a thread, and the flag is not atomic.
  RN_RETURN_IF_ERROR(rn_broadcast_compute(ctx, 3, 0, INT64_MAX, select_objects, &objects));
  return objects.is_short_of_memory ? rn_out_of_memory() : RN_OK;
}

// The condition has one element, or one per row.
typedef struct select_rows_t {
  const rn_kernel_ctx_t* ctx;
  const bool* condition;
  char* out;
  size_t row;  // bytes per row
} select_rows_t;

static void copy_rows(void* arg, int64_t begin, int64_t end) {
  const select_rows_t* rows = arg;
  for (int64_t i = begin; i < end; ++i) {
    const rn_tensor_t* from = rn_in(rows->ctx, rows->condition[i] ? 1 : 2);
    const char* source = (const char*)from->data + (size_t)i * rows->row;
    char* target = rows->out + (size_t)i * rows->row;
    if (source != target) memcpy(target, source, rows->row);
  }
}

static rn_status_t compute_rows(rn_kernel_ctx_t* ctx, int64_t count) {
  const rn_tensor_t* yes = rn_in(ctx, 1);
  int64_t row = count ? yes->count / count : 0;
  rn_tensor_t* output;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, 6, rn_tensor_shape(yes), &output));
  if (rn_dtype_is_plain(yes->dtype)) {
    select_rows_t rows = {ctx, rn_in(ctx, 0)->data, output->data,
                          (size_t)row * rn_dtype_size(yes->dtype)};
    int64_t grain = row ? RN_GRAIN_CHEAP / row + 1 : 1;
    if (row) rn_pool_for(rn_ctx_pool(ctx), count, grain, copy_rows, &rows);
    return RN_OK;
  }
  size_t size = rn_dtype_size(yes->dtype);
  for (int64_t i = 0; i < yes->count; ++i) {
    const rn_tensor_t* from = rn_in(ctx, RN_DATA(rn_in(ctx, 0), bool)[i / row] ? 1 : 2);
    size_t at = (size_t)i * size;
    if (!copy_element(yes->dtype, (char*)from->data + at, (char*)output->data + at))
      return rn_out_of_memory();
  }
  return RN_OK;
}

static rn_status_t select_compute(rn_kernel_ctx_t* ctx) {
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_select_check(ctx, &rows));
  return rows < 0 ? compute_broadcast(ctx) : compute_rows(ctx, rows);
}

static rn_status_t select_v2_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *condition = rn_in(ctx, 0), *yes = rn_in(ctx, 1), *no = rn_in(ctx, 2);
  rn_broadcast_t broadcast;
  if (!rn_tensor_same_shape(yes, no) || !rn_tensor_same_shape(condition, yes))
    RN_RETURN_IF_ERROR(rn_select_broadcast(ctx, &broadcast));
  return compute_broadcast(ctx);
}

#define TYPES (RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT))

static const rn_kernel_def_t rows[] = {
    {.op = "Select",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(select_t),
     .init = select_init,
     .compute = select_compute},
    {.op = "SelectV2",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(select_t),
     .init = select_init,
     .compute = select_v2_compute},
};
RN_KERNEL_FAMILY(cpu_select, rows);
