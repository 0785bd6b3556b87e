// Einsum on the CPU.
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/linalg/einsum.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// A 16-byte element.
typedef struct einsum_pair_t {
  uint64_t words[2];
} einsum_pair_t;

#define COPY(T) \
  for (int64_t i = 0; i < n; ++i) ((T*)to)[i * to_step] = ((const T*)from)[i * from_step]

static void copy_run(size_t item, const char* from, int64_t from_step, char* to, int64_t to_step,
                     int64_t n) {
  if (from_step == 1 && to_step == 1)
    memcpy(to, from, (size_t)n * item);
  else if (item == 2)
    COPY(uint16_t);
  else if (item == 4)
    COPY(uint32_t);
  else if (item == 8)
    COPY(uint64_t);
  else
    COPY(einsum_pair_t);
}

static rn_status_t copy_elements(rn_kernel_ctx_t* ctx, const rn_einsum_copy_t* copy) {
  (void)ctx;
  const size_t item = rn_dtype_size(copy->dtype);
  const char* from = copy->from;
  char* to = copy->to;
  const int last = copy->rank - 1;
  if (copy->rank == 0) {
    memcpy(to, from, item);
    return RN_OK;
  }
  int64_t at[RN_MAX_RANK] = {0};
  for (;;) {
    copy_run(item, from, copy->from_strides[last], to, copy->to_strides[last], copy->sizes[last]);
    int k = last - 1;
    for (; k >= 0; --k) {
      from += (size_t)copy->from_strides[k] * item;
      to += (size_t)copy->to_strides[k] * item;
      if (++at[k] < copy->sizes[k]) break;
      at[k] = 0;
      from -= (size_t)(copy->from_strides[k] * copy->sizes[k]) * item;
      to -= (size_t)(copy->to_strides[k] * copy->sizes[k]) * item;
    }
    if (k < 0) return RN_OK;
  }
}

static rn_status_t add_up(rn_kernel_ctx_t* ctx, rn_tensor_t* temp, int64_t parts, int64_t size) {
  (void)ctx;
  // A complex number is added as two real ones.
  const size_t bytes = (size_t)size * rn_dtype_size(temp->dtype);
  rn_dtype_t dtype = temp->dtype;
  if (rn_dtype_is_complex(dtype)) {
    dtype = dtype == RN_COMPLEX64 ? RN_FLOAT : RN_DOUBLE;
    size *= 2;
  }
  for (int64_t i = 1; i < parts; ++i)
    rn_vector_run(RN_VECTOR_ADD, dtype, temp->data, 1, (char*)temp->data + (size_t)i * bytes, 1,
                  temp->data, size);
  return RN_OK;
}

static rn_status_t zero(rn_kernel_ctx_t* ctx, rn_tensor_t* out) {
  (void)ctx;
  memset(out->data, 0, rn_tensor_bytes(out));
  return RN_OK;
}

typedef struct einsum_job_t {
  rn_gemm_t gemm;
  size_t a_bytes, b_bytes, c_bytes;
  rn_pool_t* pool;
  rn_status_t status;  // see rn_keep_first_error
} einsum_job_t;

static void multiply_piece(void* arg, int64_t begin, int64_t end) {
  einsum_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    rn_gemm_t gemm = job->gemm;
    gemm.a = (const char*)gemm.a + (size_t)i * job->a_bytes;
    gemm.b = (const char*)gemm.b + (size_t)i * job->b_bytes;
    gemm.c = (char*)gemm.c + (size_t)i * job->c_bytes;
    rn_status_t status = rn_gemm(job->pool, &gemm);
    rn_keep_first_error(&job->status, status);
  }
}

static rn_status_t multiply(rn_kernel_ctx_t* ctx, const rn_gemm_t* gemm, int64_t batch) {
  const size_t item = rn_dtype_size(gemm->dtype);
  einsum_job_t job = {.gemm = *gemm,
                      .a_bytes = (size_t)(gemm->m * gemm->k) * item,
                      .b_bytes = (size_t)(gemm->k * gemm->n) * item,
                      .c_bytes = (size_t)(gemm->m * gemm->n) * item};
  rn_pool_t* pool = rn_ctx_pool(ctx);
  double each = (double)gemm->m * (double)gemm->n * (double)gemm->k + 1;
  if (batch == 1 || each > 1e7) {
    job.pool = pool;
    multiply_piece(&job, 0, batch);
  } else {
    rn_pool_for(pool, batch, each > 1e6 ? 1 : (int64_t)(1e6 / each) + 1, multiply_piece, &job);
  }
  return job.status;
}

static rn_status_t einsum_compute(rn_kernel_ctx_t* ctx) {
  static const rn_einsum_device_t cpu = {zero, copy_elements, add_up, multiply};
  return rn_einsum_run(ctx, &cpu);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Einsum",
     .device = "CPU",
     .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX | RN_TYPES_INDEX}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(rn_einsum_t),
     .init = rn_einsum_init,
     .compute = einsum_compute},
};
RN_KERNEL_FAMILY(cpu_einsum, rows);
