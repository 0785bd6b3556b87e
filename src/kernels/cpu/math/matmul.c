// MatMul, BatchMatMul, and the ops that step/pack_matmul_weights.c creates.
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/matmul_shapes.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

typedef struct math_matmul_t {
  rn_matmul_attrs_t attrs;  // first
  bool backwards;           // see rn_gemm_t
} math_matmul_t;

static rn_status_t packed_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->backwards = rn_init_bool(init, "backwards");
  return rn_matmul_init(init, state);
}

static rn_status_t continued_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->backwards = rn_init_bool(init, "backwards");
  return RN_OK;
}

static rn_status_t set_panels(rn_kernel_ctx_t* ctx, const rn_tensor_t* panels, rn_gemm_t* gemm) {
  if (panels->count != rn_gemm_panels_count(gemm->dtype, gemm->n, gemm->k))
    return rn_internal("The packed panels have the wrong size");
  gemm->panels = panels->data;
  // Every second iteration of a loop reads the panels backwards, too.
  gemm->backwards = ((const math_matmul_t*)ctx->state)->backwards ^ (ctx->iteration & 1);
  return RN_OK;
}

// |panels| is NULL, or packed B.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_tensor_t* panels) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  RN_RETURN_IF_ERROR(rn_matmul_check(ctx->state, a, b, &gemm));
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  gemm.backwards = ctx->iteration & 1;  // a loop may multiply by the same B in every iteration
  if (panels) RN_RETURN_IF_ERROR(set_panels(ctx, panels, &gemm));
  return rn_gemm(rn_ctx_pool(ctx), &gemm);
}

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) { return multiply(ctx, NULL); }
static rn_status_t packed_compute(rn_kernel_ctx_t* ctx) { return multiply(ctx, rn_in(ctx, 2)); }

// Accumulates onto a product in place; step/hoist_rnn_inputs.c and step/hoist_loop_inputs.c ensure
// that nothing else reads it.
static rn_status_t continued_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *c = rn_in(ctx, 0), *a = rn_in(ctx, 1), *b = rn_in(ctx, 2);
  if (c->rank != 2 || a->rank != 2 || b->rank != 2)
    return rn_internal("The operands of a matmul are not matrices");
  rn_gemm_t gemm = {.a = a->data, .b = b->data, .adds = true};
  RN_RETURN_IF_ERROR(rn_matmul_sizes(ctx->state, a, b, &gemm));
  if (gemm.m < 1 || gemm.n < 2 || rn_tensor_dim(c, 0) != gemm.m || rn_tensor_dim(c, 1) != gemm.n)
    return rn_internal("The product to accumulate onto has the wrong shape");
  RN_RETURN_IF_ERROR(set_panels(ctx, rn_in(ctx, 3), &gemm));
  if (ctx->kernel->input_count > 4) {
    const rn_tensor_t* bias = rn_in(ctx, 4);
    if (bias->rank != 1 || bias->count != gemm.n)
      return rn_internal("The bias has the wrong shape");
    gemm.bias = bias->data;
  }
  RN_RETURN_IF_ERROR(rn_forward(ctx, 0, 0));
  gemm.c = ctx->out[0].data;
  return rn_gemm(rn_ctx_pool(ctx), &gemm);
}

static rn_status_t pack_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->attrs.transpose_b = rn_init_bool(init, "transpose_b");
  return RN_OK;
}

static rn_status_t pack_compute(rn_kernel_ctx_t* ctx) {
  const rn_matmul_attrs_t* attrs = ctx->state;
  const rn_tensor_t* b = rn_in(ctx, 0);
  if (b->rank != 2) return rn_internal("Only a matrix can be packed into panels");
  int64_t n = rn_tensor_dim(b, attrs->transpose_b ? 0 : 1);
  int64_t k = rn_tensor_dim(b, attrs->transpose_b ? 1 : 0);
  int64_t count = rn_gemm_panels_count(b->dtype, n, k);
  rn_tensor_t* panels = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &panels));
  rn_gemm_t gemm = {.dtype = b->dtype,
                    .transpose_b = attrs->transpose_b,
                    .n = n,
                    .k = k,
                    .b = b->data,
                    .c = panels->data};
  rn_gemm_pack(rn_ctx_pool(ctx), &gemm);
  return RN_OK;
}

// Operations of a piece of a batch, about 10 us.
#define PIECE_FLOPS 1e6

typedef struct batch_job_t {
  rn_gemm_t gemm;
  rn_matmul_batch_t batch;
  size_t a_bytes, b_bytes, c_bytes;  // of one matrix
  rn_pool_t* pool;
  rn_status_t status;  // see rn_keep_first_error
} batch_job_t;

static void batch_piece(void* arg, int64_t begin, int64_t end) {
  batch_job_t* job = arg;
  const rn_matmul_batch_t* batch = &job->batch;
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i, a_at = 0, b_at = 0;
    for (int d = batch->rank - 1; d >= 0; --d) {
      const int64_t above = d > 0 ? rest / batch->dims[d] : 0, at = rest - above * batch->dims[d];
      a_at += at * batch->a_steps[d];
      b_at += at * batch->b_steps[d];
      rest = above;
    }
    rn_gemm_t gemm = job->gemm;
    gemm.a = (const char*)gemm.a + (size_t)a_at * job->a_bytes;
    gemm.b = (const char*)gemm.b + (size_t)b_at * job->b_bytes;
    gemm.c = (char*)gemm.c + (size_t)i * job->c_bytes;
    rn_status_t status = rn_gemm(job->pool, &gemm);
    rn_keep_first_error(&job->status, status);
  }
}

static rn_status_t batch_multiply(rn_kernel_ctx_t* ctx, const rn_tensor_t* a,
                                  const rn_tensor_t* b) {
  batch_job_t job = {.pool = rn_ctx_pool(ctx)};
  RN_RETURN_IF_ERROR(rn_batch_matmul_check(ctx->state, a, b, &job.gemm, &job.batch));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){job.batch.rank + 2, job.batch.dims}, &out));
  if (out->count == 0) return RN_OK;
  size_t item = rn_dtype_size(a->dtype);
  job.gemm.a = a->data;
  job.gemm.b = b->data;
  job.gemm.c = out->data;
  job.a_bytes = (size_t)(job.gemm.m * job.gemm.k) * item;
  job.b_bytes = (size_t)(job.gemm.k * job.gemm.n) * item;
  job.c_bytes = (size_t)(job.gemm.m * job.gemm.n) * item;
  int64_t matrices = out->count / (job.gemm.m * job.gemm.n);
  double flops = 2.0 * (double)job.gemm.m * (double)job.gemm.n * (double)job.gemm.k;
  int64_t grain = flops > PIECE_FLOPS ? 1 : (int64_t)(PIECE_FLOPS / (flops + 1e3)) + 1;
  rn_pool_for(job.pool, matrices, grain, batch_piece, &job);
  return job.status;
}

static rn_status_t batch_compute(rn_kernel_ctx_t* ctx) {
  return batch_multiply(ctx, rn_in(ctx, 0), rn_in(ctx, 1));
}

// BatchMatMulV3: the two inputs and the output may have different types. Unless all are the same,
// the operands are converted to the accumulation type (float for bfloat16).

typedef struct mixed_t {
  const rn_tensor_t* in;
  rn_tensor_t copy;
} mixed_t;

static rn_status_t convert(rn_kernel_ctx_t* ctx, mixed_t* mixed, rn_dtype_t to) {
  const rn_tensor_t* in = mixed->in;
  if (in->dtype == to) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, to, rn_tensor_shape(in), &mixed->copy));
  for (int64_t i = 0; i < in->count; ++i) {
    int32_t value =
        in->dtype == RN_INT8 ? RN_DATA(in, const int8_t)[i] : RN_DATA(in, const uint8_t)[i];
    if (to == RN_INT32)
      RN_DATA(&mixed->copy, int32_t)[i] = value;
    else
      RN_DATA(&mixed->copy, uint16_t)[i] = rn_float_to_bfloat16((float)value);
  }
  mixed->in = &mixed->copy;
  return RN_OK;
}

static rn_status_t mixed_compute(rn_kernel_ctx_t* ctx) {
  rn_dtype_t out = rn_dtype_base(ctx->kernel->output_types[0]);
  mixed_t a = {.in = rn_in(ctx, 0)}, b = {.in = rn_in(ctx, 1)};
  rn_status_t status = convert(ctx, &a, out);
  if (rn_ok(status)) status = convert(ctx, &b, out);
  if (rn_ok(status)) status = batch_multiply(ctx, a.in, b.in);
  rn_tensor_clear(&a.copy);
  rn_tensor_clear(&b.copy);
  return status;
}

#define MATMUL_TYPES (RN_TYPES_FLOATS | RN_TYPES_COMPLEX | RN_T(INT16) | RN_T(INT32) | RN_T(INT64))
#define ROW(name, init_, compute_)                                                             \
  {                                                                                            \
    .op = name, .device = "CPU", .types = {{"T", MATMUL_TYPES}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(math_matmul_t), .init = init_, .compute = compute_                    \
  }
#define MIXED(a, b, out)                                                                    \
  {                                                                                         \
    .op = "BatchMatMulV3", .device = "CPU", .types = {{"Ta", a}, {"Tb", b}, {"Tout", out}}, \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(math_matmul_t),                      \
    .init = rn_batch_matmul_init, .compute = mixed_compute                                  \
  }
#define SAME(type) MIXED(RN_T(type), RN_T(type), RN_T(type))
#define BYTES (RN_T(INT8) | RN_T(UINT8))
#define PACKING(name, flags_, init_, compute_)                                                   \
  {                                                                                              \
    .op = name, .device = "CPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},                   \
    .flags = RN_KERNEL_EXPENSIVE | (flags_), .state_size = sizeof(math_matmul_t), .init = init_, \
    .compute = compute_                                                                          \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MatMul", rn_matmul_init, matmul_compute),
    PACKING("_PackMatrix", 0, pack_init, pack_compute),
    PACKING("_PackedMatMul", 0, packed_init, packed_compute),
    PACKING("_ContinuedMatMul", RN_KERNEL_FORWARDS, continued_init, continued_compute),
    ROW("BatchMatMul", rn_batch_matmul_v1_init, batch_compute),
    ROW("BatchMatMulV2", rn_batch_matmul_init, batch_compute),
    SAME(BFLOAT16),
    SAME(FLOAT),
    SAME(DOUBLE),
    SAME(INT16),
    SAME(INT32),
    SAME(INT64),
    SAME(COMPLEX64),
    SAME(COMPLEX128),
    MIXED(BYTES, BYTES, RN_T(INT32)),
    MIXED(BYTES, RN_T(BFLOAT16), RN_T(BFLOAT16)),
    MIXED(RN_T(BFLOAT16), BYTES, RN_T(BFLOAT16)),
};
RN_KERNEL_FAMILY(cpu_matmul, rows);
