// Views, copies and stacks of the rows of matrices.
#include "kernels/kernel_rows.h"

// Bytes that a thread copies per nanosecond, and the least work worth a hand-off.
#define BYTES_PER_NS 10.0
#define PIECE_NS 40e3

// A view of some rows of a matrix.
typedef struct rows_of_t {
  int64_t first, count;
} rows_of_t;

static rn_status_t rows_of_init(const rn_kernel_init_t* init, void* state) {
  *(rows_of_t*)state = (rows_of_t){rn_init_int(init, "first"), rn_init_int(init, "count")};
  return RN_OK;
}

static rn_status_t rows_of_compute(rn_kernel_ctx_t* ctx) {
  const rows_of_t* part = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  if (in->rank != 2 || part->first < 0 || part->count < 0 ||
      part->first > rn_tensor_dim(in, 0) - part->count)
    return rn_internal("The rows are out of the matrix's range");
  RN_RETURN_IF_ERROR(rn_forward(ctx, 0, 0));
  rn_tensor_t* out = &ctx->out[0];
  int64_t columns = rn_tensor_dim(out, 1);
  out->data = (char*)out->data + (size_t)(part->first * columns) * rn_dtype_size(out->dtype);
  out->inline_dims[0] = part->count;
  out->count = part->count * columns;
  return RN_OK;
}

static rn_status_t as_rows_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  if (in->rank < 1) return rn_internal("A scalar has no rows");
  int64_t dims[2] = {1, rn_tensor_dim(in, in->rank - 1)};
  for (int32_t d = 0; d + 1 < in->rank; ++d) dims[0] *= rn_tensor_dim(in, d);
  return rn_forward_reshaped(ctx, 0, 0, (rn_shape_t){2, dims});
}

static rn_status_t rows_at_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "count");
  return RN_OK;
}

static rn_status_t rows_at_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *in = rn_in(ctx, 0), *index = rn_in(ctx, 1);
  const int64_t count = *(const int64_t*)ctx->state;
  if (in->rank != 2 || index->count != 1) return rn_internal("Not a matrix and a number");
  int64_t number = *RN_DATA(index, const int32_t), columns = rn_tensor_dim(in, 1);
  if (number < 0 || count < 1 || number >= rn_tensor_dim(in, 0) / count)
    return rn_internal("The rows are out of the matrix's range");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (const int64_t[]){count, columns}}, &out));
  size_t bytes = rn_tensor_bytes(out);
  memcpy(out->data, (const char*)in->data + (size_t)number * bytes, bytes);
  return RN_OK;
}

typedef struct rows_stack_t {
  rn_tensor_t* const* in;
  int64_t rows;  // per matrix
  size_t row;    // bytes
  char* out;
} rows_stack_t;

static void copy_matrices(void* arg, int64_t begin, int64_t end) {
  const rows_stack_t* stack = arg;
  size_t each = (size_t)stack->rows * stack->row;
  for (int64_t i = begin; i < end; ++i)
    memcpy(stack->out + (size_t)i * each, stack->in[i]->data, each);
}

// All matrices have the same shape.
static rn_status_t stack_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* first = rn_in(ctx, 0);
  const int count = ctx->kernel->input_count;
  if (first->rank != 2) return rn_internal("The input is not a matrix");
  int64_t dims[2] = {0, rn_tensor_dim(first, 1)};
  for (int i = 0; i < count; ++i) {
    if (!rn_tensor_same_shape(first, rn_in(ctx, i)))
      return rn_internal("Matrices of different shapes");
    dims[0] += rn_tensor_dim(first, 0);
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  // If the output has the first input's memory, all inputs were computed in place.
  if (out->count == 0 || out->data == first->data) return RN_OK;
  rows_stack_t stack = {ctx->in, rn_tensor_dim(first, 0),
                        (size_t)dims[1] * rn_dtype_size(out->dtype), out->data};
  double each_ns = (double)rn_tensor_bytes(first) / BYTES_PER_NS;
  rn_pool_for(rn_ctx_pool(ctx), count, (int64_t)(PIECE_NS / (each_ns + 1)) + 1, copy_matrices,
              &stack);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "_StackRows",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = stack_compute},
    {.op = "_RowsOf",
     .device = "CPU",
     .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .flags = RN_KERNEL_FORWARDS,
     .state_size = sizeof(rows_of_t),
     .init = rows_of_init,
     .compute = rows_of_compute},
    {.op = "_AsRows",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .flags = RN_KERNEL_FORWARDS,
     .compute = as_rows_compute},
    {.op = "_RowsAt",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .state_size = sizeof(int64_t),
     .init = rows_at_init,
     .compute = rows_at_compute},
};
RN_KERNEL_FAMILY(cpu_planner_rows, rows);
