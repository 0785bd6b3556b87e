// Loop sums: a loop adds matmuls to a sum (step/sum_loop_matmuls.c). The operands of several
// iterations are kept, and their products are added together, in order, in one pass over the sum.
//
// The sum travels around the loop as a variant. It has one reader at a time, so it is changed in
// place.
#include "kernels/cpu/planner/products.h"
#include "kernels/kernel_rows.h"
#include "tensor/object.h"

// Maximum number of products, and bytes of operands, that are kept.
#define MOST_TERMS 32
#define MOST_BYTES (4 << 20)

typedef struct loop_sum_t {
  rn_object_t object;  // first
  rn_allocator_t allocator;
  rn_tensor_t sum;
  bool is_own;  // nothing else refers to the buffer of |sum|
  bool transposes;
  int32_t count;
  size_t bytes;
  rn_tensor_t lefts[MOST_TERMS], rights[MOST_TERMS];
} loop_sum_t;

static void drop_terms(loop_sum_t* sum) {
  for (int32_t t = 0; t < sum->count; ++t) {
    rn_tensor_clear(&sum->lefts[t]);
    rn_tensor_clear(&sum->rights[t]);
  }
  sum->count = 0;
  sum->bytes = 0;
}

static void sum_destroy(rn_object_t* object) {
  loop_sum_t* sum = (loop_sum_t*)object;
  drop_terms(sum);
  rn_tensor_clear(&sum->sum);
  RN_FREE(sum->allocator, sum);
}

static rn_status_t sum_of(const rn_kernel_ctx_t* ctx, loop_sum_t** out) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_object_t* object = in->count == 1 ? *RN_DATA(in, rn_object_t*) : NULL;
  *out = object && object->destroy == sum_destroy ? (loop_sum_t*)object : NULL;
  return *out ? RN_OK : rn_internal("The variant is not a sum of matmuls");
}

static rn_status_t begin_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  loop_sum_t* sum = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(ctx->kernel->allocator, &sum));
  sum->object = (rn_object_t){.refs = 1, .destroy = sum_destroy};
  sum->allocator = ctx->kernel->allocator;
  *RN_DATA(out, rn_object_t*) = &sum->object;
  return rn_tensor_keep(rn_in(ctx, 0), ctx->kernel->device_memory, &sum->sum);
}

static rn_status_t add_terms(rn_kernel_ctx_t* ctx, loop_sum_t* sum) {
  if (sum->count == 0) return RN_OK;
  if (!sum->is_own) {
    rn_tensor_t copy = {0};
    RN_RETURN_IF_ERROR(rn_temp(ctx, sum->sum.dtype, rn_tensor_shape(&sum->sum), &copy));
    memcpy(copy.data, sum->sum.data, rn_tensor_bytes(&sum->sum));
    rn_tensor_clear(&sum->sum);
    sum->sum = copy;
    sum->is_own = true;
  }
  rn_tensor_t *lefts[MOST_TERMS], *rights[MOST_TERMS];
  for (int32_t t = 0; t < sum->count; ++t) {
    lefts[t] = &sum->lefts[t];
    rights[t] = &sum->rights[t];
  }
  rn_status_t status = rn_products_add(ctx, lefts, rights, sum->count, sum->transposes, &sum->sum);
  drop_terms(sum);
  return status;
}

static rn_status_t later_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "transpose_a");
  return RN_OK;
}

static rn_status_t later_compute(rn_kernel_ctx_t* ctx) {
  loop_sum_t* sum = NULL;
  RN_RETURN_IF_ERROR(sum_of(ctx, &sum));
  sum->transposes = *(const bool*)ctx->state;
  const rn_tensor_t *a = rn_in(ctx, 1), *b = rn_in(ctx, 2);
  rn_allocator_t allocator = ctx->kernel->device_memory;
  RN_RETURN_IF_ERROR(rn_tensor_keep(a, allocator, &sum->lefts[sum->count]));
  rn_status_t status = rn_tensor_keep(b, allocator, &sum->rights[sum->count]);
  if (!rn_ok(status)) {
    rn_tensor_clear(&sum->lefts[sum->count]);
    return status;
  }
  sum->count++;
  sum->bytes += rn_tensor_bytes(a) + rn_tensor_bytes(b);
  if (sum->count == MOST_TERMS || sum->bytes >= MOST_BYTES) RN_RETURN_IF_ERROR(add_terms(ctx, sum));
  return rn_forward(ctx, 0, 0);
}

static rn_status_t end_compute(rn_kernel_ctx_t* ctx) {
  loop_sum_t* sum = NULL;
  RN_RETURN_IF_ERROR(sum_of(ctx, &sum));
  RN_RETURN_IF_ERROR(add_terms(ctx, sum));
  ctx->out[0] = sum->sum;  // moved: this is the last use
  sum->sum = (rn_tensor_t){0};
  return RN_OK;
}

#define TYPES .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}}
static const rn_kernel_def_t rows[] = {
    {.op = "_BeginSum",
     .device = "CPU",
     TYPES,
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS,
     .compute = begin_compute},
    {.op = "_AddLater",
     .device = "CPU",
     TYPES,
     .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_FORWARDS | RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(bool),
     .init = later_init,
     .compute = later_compute},
    {.op = "_EndSum",
     .device = "CPU",
     TYPES,
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = end_compute},
};
RN_KERNEL_FAMILY(cpu_loop_sums, rows);
