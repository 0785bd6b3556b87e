// The ops that step/keep_weights.c creates: Casts and matmuls of weights that stay the same from
// step to step.
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/keeper.h"
#include "kernels/cpu/matmul_shapes.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define PIECE_ELEMENTS 65536

typedef struct kept_weights_t {
  rn_matmul_attrs_t attrs;  // first
  rn_keeper_t kept;
  bool has_kept;
} kept_weights_t;

static rn_status_t cast_init(const rn_kernel_init_t* init, void* state) {
  (void)init;
  rn_keeper_init(&((kept_weights_t*)state)->kept);
  ((kept_weights_t*)state)->has_kept = true;
  return RN_OK;
}

static rn_status_t matmul_init(const rn_kernel_init_t* init, void* state) {
  RN_RETURN_IF_ERROR(cast_init(init, state));
  return rn_matmul_init(init, state);
}

static void kept_destroy(void* state) {
  kept_weights_t* weights = state;
  if (weights->has_kept) rn_keeper_clear(&weights->kept);
}

typedef struct narrow_job_t {
  const float* from;
  uint16_t* to;
} narrow_job_t;

static void narrow_piece(void* arg, int64_t begin, int64_t end) {
  const narrow_job_t* job = arg;
  rn_vector_table()->narrow_bfloat16(job->from + begin, job->to + begin, end - begin);
}

static void narrow(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, void* to) {
  narrow_job_t job = {RN_DATA(x, const float), to};
  rn_pool_for(rn_ctx_pool(ctx), x->count, PIECE_ELEMENTS, narrow_piece, &job);
}

static rn_status_t make_cast(rn_kernel_ctx_t* ctx, void* arg, void* to) {
  narrow(ctx, arg, to);
  return RN_OK;
}

static rn_status_t kept_cast(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, rn_tensor_t* out) {
  kept_weights_t* state = ctx->state;
  return rn_keeper_get(ctx, &state->kept, x, 0, RN_BFLOAT16, rn_tensor_shape(x), make_cast,
                       (void*)x, out);
}

static rn_status_t cast_compute(rn_kernel_ctx_t* ctx) {
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(kept_cast(ctx, rn_in(ctx, 0), &value));
  rn_set_output(ctx, 0, &value);
  return RN_OK;
}

typedef struct pack_job_t {
  const rn_bf16_way_t* way;
  const rn_tensor_t* b;
  rn_gemm_t* gemm;
} pack_job_t;

// Packs B, which is cast first if it is float.
static rn_status_t make_panels(rn_kernel_ctx_t* ctx, void* arg, void* to) {
  const pack_job_t* job = arg;
  rn_tensor_t cast = {0};
  job->gemm->b = job->b->data;
  if (job->b->dtype == RN_FLOAT) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BFLOAT16, rn_tensor_shape(job->b), &cast));
    narrow(ctx, job->b, cast.data);
    job->gemm->b = cast.data;
  }
  rn_gemm_bf16_pack(rn_ctx_pool(ctx), job->way, job->gemm, to);
  rn_tensor_clear(&cast);
  return RN_OK;
}

static rn_status_t run_packed(rn_kernel_ctx_t* ctx, const rn_bf16_way_t* way, const rn_tensor_t* b,
                              rn_gemm_t* gemm) {
  kept_weights_t* state = ctx->state;
  int64_t count = 0;
  if (!rn_bf16_panels_count(gemm->n, gemm->k, &count)) return rn_out_of_memory();
  rn_tensor_t panels = {0};
  pack_job_t job = {way, b, gemm};
  RN_RETURN_IF_ERROR(rn_keeper_get(ctx, &state->kept, b, 0, RN_BFLOAT16, (rn_shape_t){1, &count},
                                   make_panels, &job, &panels));
  gemm->panels = panels.data;
  rn_status_t status = rn_gemm_bf16(rn_ctx_pool(ctx), way, gemm);
  rn_tensor_clear(&panels);
  return status;
}

// Without instructions for bfloat16, only the Cast is kept.
static rn_status_t run_plain(rn_kernel_ctx_t* ctx, const rn_tensor_t* b, rn_gemm_t* gemm) {
  rn_tensor_t cast = {0};
  gemm->b = b->data;
  if (b->dtype == RN_FLOAT) {
    RN_RETURN_IF_ERROR(kept_cast(ctx, b, &cast));
    gemm->b = cast.data;
  }
  rn_status_t status = rn_gemm(rn_ctx_pool(ctx), gemm);
  rn_tensor_clear(&cast);
  return status;
}

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  RN_RETURN_IF_ERROR(rn_matmul_check(ctx->state, a, b, &gemm));
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  gemm.dtype = RN_BFLOAT16;
  gemm.a = a->data;
  gemm.c = out->data;
  const rn_bf16_way_t way = rn_bf16_way();
  const bool is_empty = !gemm.m || !gemm.n || !gemm.k;
  return way.multiply && !is_empty ? run_packed(ctx, &way, b, &gemm) : run_plain(ctx, b, &gemm);
}

#define ROW(name, flags_, init_, compute_)                                        \
  {                                                                               \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE | (flags_),         \
    .state_size = sizeof(kept_weights_t), .init = init_, .destroy = kept_destroy, \
    .compute = compute_                                                           \
  }

static const rn_kernel_def_t rows[] = {
    ROW("_KeptCast", RN_KERNEL_OWN_OUTPUTS, cast_init, cast_compute),
    ROW("_KeptMatMul", 0, matmul_init, matmul_compute),
};
RN_KERNEL_FAMILY(cpu_kept_weights, rows);
