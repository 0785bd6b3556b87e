// MatMul, BatchMatMul, and the ops that step/pack_matmul_weights.c creates.
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

typedef struct math_matmul_t {
  bool transpose_a, transpose_b, is_adjoint, wants_same_batch;
  bool backwards;  // see rn_gemm_t
} math_matmul_t;

static rn_status_t matmul_init(const rn_kernel_init_t* init, void* state) {
  math_matmul_t* matmul = state;
  matmul->transpose_a = rn_init_bool(init, "transpose_a");
  matmul->transpose_b = rn_init_bool(init, "transpose_b");
  return RN_OK;
}

static rn_status_t packed_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->backwards = rn_init_bool(init, "backwards");
  return matmul_init(init, state);
}

static rn_status_t continued_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->backwards = rn_init_bool(init, "backwards");
  return RN_OK;
}

static rn_status_t batch_init(const rn_kernel_init_t* init, void* state) {
  math_matmul_t* matmul = state;
  matmul->transpose_a = rn_init_bool(init, "adj_x");
  matmul->transpose_b = rn_init_bool(init, "adj_y");
  matmul->is_adjoint = true;
  return RN_OK;
}

static rn_status_t same_batch_init(const rn_kernel_init_t* init, void* state) {
  ((math_matmul_t*)state)->wants_same_batch = true;
  return batch_init(init, state);
}

// "before[2,3]between[4,5]".
static rn_status_t shape_error(const char* before, const rn_tensor_t* a, const char* between,
                               const rn_tensor_t* b) {
  return rn_invalid_argument("%s%s%s%s", before, rn_text_of(a).text, between, rn_text_of(b).text);
}

// The sizes of the last two dimensions, after transposition.
static rn_status_t matrix_sizes(const math_matmul_t* matmul, const rn_tensor_t* a,
                                const rn_tensor_t* b, rn_gemm_t* gemm) {
  int64_t a_rows = rn_tensor_dim(a, a->rank - 2), a_columns = rn_tensor_dim(a, a->rank - 1);
  int64_t b_rows = rn_tensor_dim(b, b->rank - 2), b_columns = rn_tensor_dim(b, b->rank - 1);
  gemm->m = matmul->transpose_a ? a_columns : a_rows;
  gemm->k = matmul->transpose_a ? a_rows : a_columns;
  gemm->n = matmul->transpose_b ? b_rows : b_columns;
  int64_t b_k = matmul->transpose_b ? b_columns : b_rows;
  if (gemm->k != b_k) return shape_error("Matrix size-incompatible: In[0]: ", a, ", In[1]: ", b);
  gemm->dtype = a->dtype;
  gemm->transpose_a = matmul->transpose_a;
  gemm->transpose_b = matmul->transpose_b;
  gemm->conjugate_a = matmul->is_adjoint && matmul->transpose_a && rn_dtype_is_complex(a->dtype);
  gemm->conjugate_b = matmul->is_adjoint && matmul->transpose_b && rn_dtype_is_complex(b->dtype);
  return RN_OK;
}

static rn_status_t set_panels(rn_kernel_ctx_t* ctx, const rn_tensor_t* panels, rn_gemm_t* gemm) {
  if (panels->count != rn_gemm_panels_count(gemm->dtype, gemm->n, gemm->k))
    return rn_internal("The packed panels have the wrong size");
  gemm->panels = panels->data;
  gemm->backwards = ((const math_matmul_t*)ctx->state)->backwards;
  return RN_OK;
}

// |panels| is NULL, or packed B.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_tensor_t* panels) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (a->rank != 2 || b->rank != 2) {
    if (a->rank != b->rank)
      return shape_error("In[0] and In[1] has different ndims: ", a, " vs. ", b);
    return rn_invalid_argument("In[0] and In[1] ndims must be == 2: %d", a->rank);
  }
  rn_gemm_t gemm = {0};
  RN_RETURN_IF_ERROR(matrix_sizes(ctx->state, a, b, &gemm));
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  if (panels) RN_RETURN_IF_ERROR(set_panels(ctx, panels, &gemm));
  return rn_gemm(rn_ctx_pool(ctx), &gemm);
}

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) { return multiply(ctx, NULL); }
static rn_status_t packed_compute(rn_kernel_ctx_t* ctx) { return multiply(ctx, rn_in(ctx, 2)); }

// Accumulates onto a product in place; step/hoist_rnn_inputs.c ensures that nothing else reads it.
static rn_status_t continued_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *c = rn_in(ctx, 0), *a = rn_in(ctx, 1), *b = rn_in(ctx, 2);
  if (c->rank != 2 || a->rank != 2 || b->rank != 2)
    return rn_internal("The operands of a matmul are not matrices");
  rn_gemm_t gemm = {.a = a->data, .b = b->data, .adds = true};
  RN_RETURN_IF_ERROR(matrix_sizes(ctx->state, a, b, &gemm));
  if (gemm.m < 2 || gemm.n < 2 || rn_tensor_dim(c, 0) != gemm.m || rn_tensor_dim(c, 1) != gemm.n)
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
  ((math_matmul_t*)state)->transpose_b = rn_init_bool(init, "transpose_b");
  return RN_OK;
}

static rn_status_t pack_compute(rn_kernel_ctx_t* ctx) {
  const math_matmul_t* matmul = ctx->state;
  const rn_tensor_t* b = rn_in(ctx, 0);
  if (b->rank != 2) return rn_internal("Only a matrix can be packed into panels");
  int64_t n = rn_tensor_dim(b, matmul->transpose_b ? 0 : 1);
  int64_t k = rn_tensor_dim(b, matmul->transpose_b ? 1 : 0);
  int64_t count = rn_gemm_panels_count(b->dtype, n, k);
  rn_tensor_t* panels = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &panels));
  rn_gemm_t gemm = {.dtype = b->dtype,
                    .transpose_b = matmul->transpose_b,
                    .n = n,
                    .k = k,
                    .b = b->data,
                    .c = panels->data};
  rn_gemm_pack(rn_ctx_pool(ctx), &gemm);
  return RN_OK;
}

// Batch dimensions broadcast against each other: the operands of each output matrix.
typedef struct batch_job_t {
  rn_gemm_t gemm;
  int rank;  // of the batch
  const int64_t* dims;
  int64_t a_steps[RN_MAX_RANK],
      b_steps[RN_MAX_RANK];          // stride in matrices along each batch dimension
  size_t a_bytes, b_bytes, c_bytes;  // of one matrix
  rn_pool_t* pool;
  rn_status_t status;  // see rn_keep_first_error
} batch_job_t;

static void batch_piece(void* arg, int64_t begin, int64_t end) {
  batch_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t rest = i, a_at = 0, b_at = 0;
    for (int d = job->rank - 1; d >= 0; --d) {
      a_at += rest % job->dims[d] * job->a_steps[d];
      b_at += rest % job->dims[d] * job->b_steps[d];
      rest /= job->dims[d];
    }
    rn_gemm_t gemm = job->gemm;
    gemm.a = (const char*)gemm.a + (size_t)a_at * job->a_bytes;
    gemm.b = (const char*)gemm.b + (size_t)b_at * job->b_bytes;
    gemm.c = (char*)gemm.c + (size_t)i * job->c_bytes;
    rn_status_t status = rn_gemm(job->pool, &gemm);
    rn_keep_first_error(&job->status, status);
  }
}

static int64_t batch_dim(const rn_tensor_t* tensor, int rank, int d) {
  int at = d - (rank - (tensor->rank - 2));
  return at < 0 ? 1 : rn_tensor_dim(tensor, at);
}

static rn_status_t batch_shape(const rn_tensor_t* a, const rn_tensor_t* b, batch_job_t* job,
                               int64_t* dims) {
  int rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
  int64_t a_step = 1, b_step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    int64_t x = batch_dim(a, rank, d), y = batch_dim(b, rank, d);
    if (x != y && x != 1 && y != 1)
      return shape_error("In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
    dims[d] = x == 1 ? y : x;
    job->a_steps[d] = x == 1 ? 0 : a_step;
    job->b_steps[d] = y == 1 ? 0 : b_step;
    a_step *= x;
    b_step *= y;
  }
  job->rank = rank;
  job->dims = dims;
  return RN_OK;
}

// BatchMatMul V1 requires the same batch dimensions on both sides.
static rn_status_t check_same_batch(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank)
    return shape_error("In[0] and In[1] has different ndims: ", a, " vs. ", b);
  if (a->rank < 2) return rn_invalid_argument("In[0] and In[1] ndims must be >= 2: %d", a->rank);
  for (int d = 0; d < a->rank - 2; ++d) {
    if (rn_tensor_dim(a, d) == rn_tensor_dim(b, d)) continue;
    char text[80];
    snprintf(text, sizeof text, "In[0].dim(%d) and In[1].dim(%d) must be the same: ", d, d);
    return shape_error(text, a, " vs ", b);
  }
  return RN_OK;
}

static rn_status_t batch_multiply(rn_kernel_ctx_t* ctx, const rn_tensor_t* a,
                                  const rn_tensor_t* b) {
  if (a->rank < 2) return rn_invalid_argument("In[0] ndims must be >= 2: %d", a->rank);
  if (b->rank < 2) return rn_invalid_argument("In[1] ndims must be >= 2: %d", b->rank);
  batch_job_t job = {.pool = rn_ctx_pool(ctx)};
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(batch_shape(a, b, &job, dims));
  RN_RETURN_IF_ERROR(matrix_sizes(ctx->state, a, b, &job.gemm));
  dims[job.rank] = job.gemm.m;
  dims[job.rank + 1] = job.gemm.n;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){job.rank + 2, dims}, &out));
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
  int64_t grain = flops > 4e6 ? 1 : (int64_t)(4e6 / (flops + 1e3)) + 1;
  rn_pool_for(job.pool, matrices, grain, batch_piece, &job);
  return job.status;
}

static rn_status_t batch_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (((const math_matmul_t*)ctx->state)->wants_same_batch)
    RN_RETURN_IF_ERROR(check_same_batch(a, b));
  return batch_multiply(ctx, a, b);
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
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(math_matmul_t), .init = batch_init,  \
    .compute = mixed_compute                                                                \
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
    ROW("MatMul", matmul_init, matmul_compute),
    PACKING("_PackMatrix", 0, pack_init, pack_compute),
    PACKING("_PackedMatMul", 0, packed_init, packed_compute),
    PACKING("_ContinuedMatMul", RN_KERNEL_FORWARDS, continued_init, continued_compute),
    ROW("BatchMatMul", same_batch_init, batch_compute),
    ROW("BatchMatMulV2", batch_init, batch_compute),
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
