// Matrix products: float through oneDNN, 16-bit floats through float, everything else by plain
// loops. See gemm.h.
#include "kernels/cpu/gemm.h"

#include <complex.h>

#include "base/alloc.h"
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/vector.h"

// A piece of work for one thread: some 20 us and more.
#define PIECE_FLOPS (4.0 * 1000 * 1000)

// Rows (or columns) in a piece, from the sizes alone; a multiple of 16 so that vector kernels have
// no odd ends inside.
static int64_t piece_size(int64_t length, int64_t other, int64_t k) {
  double each = 2.0 * (double)other * (double)k;
  double wanted = PIECE_FLOPS / (each > 0 ? each : 1);
  int64_t size = wanted >= (double)length ? length : ((int64_t)wanted + 15) / 16 * 16;
  int64_t least = (length + 15) / 16;  // sixteen pieces are enough for anybody
  if (size < least) size = (least + 15) / 16 * 16;
  return size < 1 ? 1 : size;
}

typedef struct float_job_t {
  const rn_gemm_t* gemm;
  const rn_dnnl_t* dnnl;
  bool by_rows;
} float_job_t;

static void float_piece(void* arg, int64_t begin, int64_t end) {
  const float_job_t* job = arg;
  const rn_gemm_t* g = job->gemm;
  const float* a = g->a;
  const float* b = g->b;
  float* c = g->c;
  int64_t lda = g->transpose_a ? g->m : g->k, ldb = g->transpose_b ? g->k : g->n;
  int64_t m = g->m, n = g->n;
  if (job->by_rows) {
    m = end - begin;
    a += g->transpose_a ? begin : begin * g->k;
    c += begin * g->n;
  } else {
    n = end - begin;
    b += g->transpose_b ? begin * g->k : begin;
    c += begin;
  }
  int threads = rn_dnnl_enter(job->dnnl);
  job->dnnl->sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', m, n, g->k, 1, a, lda, b,
                   ldb, 0, c, g->n);
  rn_dnnl_leave(job->dnnl, threads);
}

static rn_status_t gemm_float(rn_pool_t* pool, const rn_gemm_t* gemm) {
  float_job_t job = {.gemm = gemm};
  RN_RETURN_IF_ERROR(rn_dnnl(&job.dnnl));
  job.by_rows = gemm->m >= gemm->n;
  int64_t length = job.by_rows ? gemm->m : gemm->n, other = job.by_rows ? gemm->n : gemm->m;
  rn_pool_for(pool, length, piece_size(length, other, gemm->k), float_piece, &job);
  return RN_OK;
}

#define TRANSPOSE(T)                                                                      \
  static void transpose_##T(const void* in_, void* out_, int64_t rows, int64_t columns) { \
    const T* in = in_;                                                                    \
    T* out = out_;                                                                        \
    for (int64_t i = 0; i < rows; ++i)                                                    \
      for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = in[i * columns + j];      \
  }
typedef struct pair_t {
  uint64_t low, high;
} pair_t;
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)
TRANSPOSE(pair_t)

static void transpose(const void* in, void* out, int64_t rows, int64_t columns, size_t item) {
  switch (item) {
    case 1:
      transpose_uint8_t(in, out, rows, columns);
      break;
    case 2:
      transpose_uint16_t(in, out, rows, columns);
      break;
    case 4:
      transpose_uint32_t(in, out, rows, columns);
      break;
    case 8:
      transpose_uint64_t(in, out, rows, columns);
      break;
    default:
      transpose_pair_t(in, out, rows, columns);
      break;
  }
}

static void conjugate(void* data, rn_dtype_t dtype, int64_t count) {
  if (dtype == RN_COMPLEX64) {
    for (int64_t i = 0; i < count; ++i)
      ((float complex*)data)[i] = conjf(((float complex*)data)[i]);
  } else if (dtype == RN_COMPLEX128) {
    for (int64_t i = 0; i < count; ++i)
      ((double complex*)data)[i] = conj(((double complex*)data)[i]);
  }
}

typedef struct plain_job_t {
  rn_gemm_rows_fn_t rows;
  const void *a, *b;
  void* c;
  int64_t n, k;
} plain_job_t;

static void plain_piece(void* arg, int64_t begin, int64_t end) {
  const plain_job_t* job = arg;
  job->rows(job->a, job->b, job->c, begin, end, job->n, job->k);
}

// A copy of a matrix in the form that the loops want; |*out| is |in| itself if it has it already.
static rn_status_t straighten(const void* in, bool is_transposed, bool conjugated, int64_t rows,
                              int64_t columns, rn_dtype_t dtype, const void** out,
                              size_t* out_size) {
  *out = in;
  *out_size = 0;
  if (!is_transposed && !conjugated) return RN_OK;
  size_t item = rn_dtype_size(dtype), bytes = (size_t)(rows * columns) * item;
  void* copy = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), bytes, &copy));
  if (is_transposed)
    transpose(in, copy, columns, rows, item);
  else
    memcpy(copy, in, bytes);
  if (conjugated) conjugate(copy, dtype, rows * columns);
  *out = copy;
  *out_size = bytes;
  return RN_OK;
}

static rn_status_t gemm_plain(rn_pool_t* pool, const rn_gemm_t* gemm) {
  plain_job_t job = {
      .rows = RN_ISA_PICK(rn_gemm_rows_)[gemm->dtype], .c = gemm->c, .n = gemm->n, .k = gemm->k};
  if (!job.rows) return rn_unimplemented("No matrix product for %s", rn_dtype_name(gemm->dtype));
  size_t a_size = 0, b_size = 0;
  rn_status_t status = straighten(gemm->a, gemm->transpose_a, gemm->conjugate_a, gemm->m, gemm->k,
                                  gemm->dtype, &job.a, &a_size);
  if (rn_ok(status))
    status = straighten(gemm->b, gemm->transpose_b, gemm->conjugate_b, gemm->k, gemm->n,
                        gemm->dtype, &job.b, &b_size);
  if (rn_ok(status))
    rn_pool_for(pool, gemm->m, piece_size(gemm->m, gemm->n, gemm->k), plain_piece, &job);
  if (a_size) rn_free(rn_allocator_default(), (void*)job.a, a_size);
  if (b_size) rn_free(rn_allocator_default(), (void*)job.b, b_size);
  return status;
}

// 16-bit floats: products and sums in float, rounded once at the end, as stock does.
static rn_status_t gemm_narrow(rn_pool_t* pool, const rn_gemm_t* gemm) {
  const rn_vector_table_t* table = rn_vector_table();
  bool is_half = gemm->dtype == RN_HALF;
  size_t a_count = (size_t)(gemm->m * gemm->k), b_count = (size_t)(gemm->k * gemm->n),
         c_count = (size_t)(gemm->m * gemm->n);
  float* wide = NULL;
  size_t total = a_count + b_count + c_count;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), total * sizeof *wide, (void**)&wide));
  rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  widen(gemm->a, wide, (int64_t)a_count);
  widen(gemm->b, wide + a_count, (int64_t)b_count);
  rn_gemm_t inner = *gemm;
  inner.dtype = RN_FLOAT;
  inner.a = wide;
  inner.b = wide + a_count;
  inner.c = wide + a_count + b_count;
  rn_status_t status = rn_gemm(pool, &inner);
  if (rn_ok(status))
    (is_half ? table->narrow_half : table->narrow_bfloat16)(inner.c, gemm->c, (int64_t)c_count);
  rn_free(rn_allocator_default(), wide, total * sizeof *wide);
  return status;
}

rn_status_t rn_gemm(rn_pool_t* pool, const rn_gemm_t* gemm) {
  if (gemm->m == 0 || gemm->n == 0) return RN_OK;
  if (gemm->k == 0) {
    memset(gemm->c, 0, (size_t)(gemm->m * gemm->n) * rn_dtype_size(gemm->dtype));
    return RN_OK;
  }
  if (gemm->dtype == RN_FLOAT) return gemm_float(pool, gemm);
  if (gemm->dtype == RN_HALF || gemm->dtype == RN_BFLOAT16) return gemm_narrow(pool, gemm);
  return gemm_plain(pool, gemm);
}
