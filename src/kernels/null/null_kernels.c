// Kernels of the null device: enough to run small graphs on it, and an example of kernels that only
// submit work.
#include "device/null/null_device.h"
#include "kernels/kernel_rows.h"

static rn_status_t launch(rn_kernel_ctx_t* ctx, rn_null_body_t body, const void* arg,
                          size_t arg_size) {
  const rn_kernel_t* kernel = ctx->kernel;
  const rn_tensor_t* inputs[RN_NULL_MAX_ARGS];
  int count = 0;
  for (int i = 0; i < kernel->input_count && count < RN_NULL_MAX_ARGS; ++i)
    if (!kernel->input_is_host[i]) inputs[count++] = rn_in(ctx, i);
  return rn_null_launch(kernel->device, body, inputs, count, ctx->out, kernel->output_count, arg,
                        arg_size);
}

// Elementwise, for equal shapes or a scalar on either side.
typedef float (*scalar_fn_t)(float x, float y);
static float add(float x, float y) { return x + y; }
static float sub(float x, float y) { return x - y; }
static float mul(float x, float y) { return x * y; }
static float maximum(float x, float y) { return x > y ? x : y; }
static float negate(float x, float y) { return y = -x; }
static float relu(float x, float y) { return x > (y = 0) ? x : y; }

static rn_status_t elementwise_body(const rn_tensor_t* inputs, rn_tensor_t* outputs,
                                    const void* arg) {
  scalar_fn_t fn = *(const scalar_fn_t*)arg;
  const rn_tensor_t *a = &inputs[0], *b = inputs[1].data ? &inputs[1] : &inputs[0];
  for (int64_t i = 0; i < outputs[0].count; ++i) RN_DATA(&outputs[0], float)
  [i] = fn(RN_DATA(a, float)[a->count == 1 ? 0 : i], RN_DATA(b, float)[b->count == 1 ? 0 : i]);
  return RN_OK;
}

static rn_status_t elementwise(rn_kernel_ctx_t* ctx, scalar_fn_t fn) {
  const rn_tensor_t* shaped = rn_in(ctx, 0);
  if (ctx->kernel->input_count == 2) {
    const rn_tensor_t* other = rn_in(ctx, 1);
    if (shaped->count == 1 && other->rank >= shaped->rank) shaped = other;
    if ((rn_in(ctx, 0)->count != 1 && !rn_tensor_same_shape(rn_in(ctx, 0), shaped)) ||
        (other->count != 1 && !rn_tensor_same_shape(other, shaped)))
      return rn_unimplemented("The null device broadcasts only scalars");
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(shaped), &out));
  return launch(ctx, elementwise_body, &fn, sizeof fn);
}

static rn_status_t compute_add(rn_kernel_ctx_t* ctx) { return elementwise(ctx, add); }
static rn_status_t compute_sub(rn_kernel_ctx_t* ctx) { return elementwise(ctx, sub); }
static rn_status_t compute_mul(rn_kernel_ctx_t* ctx) { return elementwise(ctx, mul); }
static rn_status_t compute_maximum(rn_kernel_ctx_t* ctx) { return elementwise(ctx, maximum); }
static rn_status_t compute_neg(rn_kernel_ctx_t* ctx) { return elementwise(ctx, negate); }
static rn_status_t compute_relu(rn_kernel_ctx_t* ctx) { return elementwise(ctx, relu); }

static rn_status_t matmul_body(const rn_tensor_t* inputs, rn_tensor_t* outputs, const void* arg) {
  (void)arg;
  int64_t m = rn_tensor_dim(&inputs[0], 0), k = rn_tensor_dim(&inputs[0], 1),
          n = rn_tensor_dim(&inputs[1], 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += RN_DATA(&inputs[0], float)[i * k + p] * RN_DATA(&inputs[1], float)[p * n + j];
      RN_DATA(&outputs[0], float)[i * n + j] = sum;
    }
  return RN_OK;
}

static rn_status_t compute_matmul(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (a->rank != 2 || b->rank != 2 || rn_tensor_dim(a, 1) != rn_tensor_dim(b, 0))
    return rn_invalid_argument("The null device multiplies only matrices of matching inner sizes");
  int64_t dims[2] = {rn_tensor_dim(a, 0), rn_tensor_dim(b, 1)};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  return launch(ctx, matmul_body, NULL, 0);
}

// Shapes live on the host.
static rn_status_t compute_shape(rn_kernel_ctx_t* ctx) {
  int64_t rank = rn_in(ctx, 0)->rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &rank}, &out));
  for (int d = 0; d < rank; ++d)
    RN_DATA(out, int32_t)[d] = (int32_t)rn_tensor_dim(rn_in(ctx, 0), d);
  return RN_OK;
}

static rn_status_t compute_reshape(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* shape = rn_in(ctx, 1);
  int64_t dims[RN_MAX_RANK];
  if (shape->count > RN_MAX_RANK)
    return rn_invalid_argument("A shape of %lld dimensions", (long long)shape->count);
  int64_t known = 1, inferred = -1;
  for (int64_t d = 0; d < shape->count; ++d) {
    dims[d] = RN_DATA(shape, int32_t)[d];
    if (dims[d] < 0)
      inferred = d;
    else
      known *= dims[d];
  }
  if (inferred >= 0 && known > 0) dims[inferred] = rn_in(ctx, 0)->count / known;
  return rn_forward_reshaped(ctx, 0, 0, (rn_shape_t){(int32_t)shape->count, dims});
}

static rn_status_t compute_identity(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

#define FLOAT_ROW(name, fn) \
  { .op = name, .device = "NULL", .types = {{"T", RN_T(FLOAT)}}, .compute = fn }

static const rn_kernel_def_t rows[] = {
    FLOAT_ROW("Add", compute_add),
    FLOAT_ROW("AddV2", compute_add),
    FLOAT_ROW("Sub", compute_sub),
    FLOAT_ROW("Mul", compute_mul),
    FLOAT_ROW("Maximum", compute_maximum),
    FLOAT_ROW("Neg", compute_neg),
    FLOAT_ROW("Relu", compute_relu),
    FLOAT_ROW("MatMul", compute_matmul),
    {.op = "Identity", .device = "NULL", .flags = RN_KERNEL_FORWARDS, .compute = compute_identity},
    {.op = "Shape",
     .device = "NULL",
     .types = {{"out_type", RN_T(INT32)}},
     .host_args = RN_HOST_ARGS("output"),
     .compute = compute_shape},
    {.op = "Reshape",
     .device = "NULL",
     .types = {{"Tshape", RN_T(INT32)}},
     .host_args = RN_HOST_ARGS("shape"),
     .flags = RN_KERNEL_FORWARDS,
     .compute = compute_reshape},
};
RN_KERNEL_FAMILY(null, rows);
