// Matrix products: large ones of floats through oneDNN, small and thin ones of floats and those of
// doubles by tiles of our own, 16-bit floats through float, everything else by plain loops. See
// gemm.h.
#include "kernels/cpu/gemm.h"

#include <complex.h>

#include "base/alloc.h"
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/vector.h"

// Work for one thread, in nanoseconds: well above what handing it over costs.
#define PIECE_NS 40e3
#define MOST_PIECES 16
// Sides of C that are halved: the first two times, and after that.
#define LEAST_SIDE 128
#define LONG_SIDE 1024
// What a processor does in a nanosecond, roughly: operations, and bytes of memory passed.
#define FLOPS_PER_NS 100.0
#define BYTES_PER_NS 10.0
// Where oneDNN's blocking is worth more than its call costs, in operations; sooner if B must be
// transposed on the way.
#define LARGE_FLOPS (2.0 * 128 * 128 * 128)
#define LARGE_TRANSPOSED_FLOPS (2.0 * 48 * 48 * 48)

// C in blocks, one a piece of work, from the sizes alone.
typedef struct grid_t {
  int64_t rows, columns;   // of a block; multiples of 16, so that tiles have no odd ends inside
  int64_t across, pieces;  // blocks beside each other, and in all
} grid_t;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t halve(int64_t length) { return ceil_div(ceil_div(length, 2), 16) * 16; }

// Every piece copies its part of A and of B first, so pieces are kept square and large: four at
// most, then more where a side is long.
static grid_t grid_of(const rn_gemm_part_t* part, size_t item) {
  double m = (double)part->m, n = (double)part->n, k = (double)part->k;
  double flops = 2 * m * n * k / FLOPS_PER_NS;
  double bytes = (m * k + k * n + m * n) * (double)item / BYTES_PER_NS;
  double wanted = (flops > bytes ? flops : bytes) / PIECE_NS;
  grid_t grid = {part->m, part->n, 1, 1};
  while (2 * grid.pieces <= MOST_PIECES && 2 * (double)grid.pieces <= wanted) {
    int64_t* longer = grid.rows >= grid.columns ? &grid.rows : &grid.columns;
    if (*longer < (grid.pieces < 4 ? LEAST_SIDE : LONG_SIDE)) break;
    *longer = halve(*longer);
    grid.across = ceil_div(part->n, grid.columns);
    grid.pieces = grid.across * ceil_div(part->m, grid.rows);
  }
  return grid;
}

typedef struct job_t {
  const rn_gemm_t* gemm;
  rn_gemm_part_t part;
  const rn_dnnl_t* dnnl;  // NULL: our own tiles
  rn_gemm_fn_t fn;
  size_t item;
  grid_t grid;
} job_t;

static void run_dnnl(const job_t* job, const rn_gemm_part_t* part) {
  const rn_gemm_t* g = job->gemm;
  int64_t lda = g->transpose_a ? g->m : g->k, ldb = g->transpose_b ? g->k : g->n;
  int threads = rn_dnnl_enter(job->dnnl);
  job->dnnl->sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', part->m, part->n,
                   part->k, 1, part->a, lda, part->b, ldb, 0, part->c, part->c_row);
  rn_dnnl_leave(job->dnnl, threads);
}

static void run_blocks(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const grid_t* grid = &job->grid;
  for (int64_t i = begin; i < end; ++i) {
    rn_gemm_part_t part = job->part;
    int64_t row = i / grid->across * grid->rows, column = i % grid->across * grid->columns;
    part.m = part.m - row < grid->rows ? part.m - row : grid->rows;
    part.n = part.n - column < grid->columns ? part.n - column : grid->columns;
    part.a = (const char*)part.a + (size_t)(row * part.a_row) * job->item;
    part.b = (const char*)part.b + (size_t)(column * part.b_column) * job->item;
    part.c = (char*)part.c + (size_t)(row * part.c_row + column) * job->item;
    if (job->dnnl)
      run_dnnl(job, &part);
    else
      job->fn(&part);
  }
}

static bool wants_dnnl(const rn_gemm_t* g) {
  if (g->dtype != RN_FLOAT || g->m == 1 || g->n == 1 || g->k <= 4) return false;
  double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
  return flops > (g->transpose_b ? LARGE_TRANSPOSED_FLOPS : LARGE_FLOPS);
}

static void run_pieces(rn_pool_t* pool, const rn_gemm_t* g) {
  job_t job = {.gemm = g,
               .fn = RN_ISA_PICK(rn_gemm_)[g->dtype],
               .item = rn_dtype_size(g->dtype),
               .part = {.a = g->a,
                        .a_row = g->transpose_a ? 1 : g->k,
                        .a_column = g->transpose_a ? g->m : 1,
                        .b = g->b,
                        .b_row = g->transpose_b ? 1 : g->n,
                        .b_column = g->transpose_b ? g->k : 1,
                        .c = g->c,
                        .c_row = g->n,
                        .m = g->m,
                        .n = g->n,
                        .k = g->k}};
  if (wants_dnnl(g)) {
    rn_status_t status = rn_dnnl(&job.dnnl);
    if (!rn_ok(status)) job.dnnl = NULL;  // our own tiles do it too
    rn_status_free(status);
  }
  // A column is a row of the transposed product: C' = B' A'.
  if (g->n == 1 && g->m > 1 && (g->dtype == RN_FLOAT || g->dtype == RN_DOUBLE)) {
    rn_gemm_part_t p = job.part;
    job.part = (rn_gemm_part_t){.a = p.b,
                                .a_row = p.b_column,
                                .a_column = p.b_row,
                                .b = p.a,
                                .b_row = p.a_column,
                                .b_column = p.a_row,
                                .c = p.c,
                                .c_row = p.m,
                                .m = 1,
                                .n = p.m,
                                .k = p.k};
  }
  job.grid = grid_of(&job.part, job.item);
  rn_pool_for(pool, job.grid.pieces, 1, run_blocks, &job);
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
  if (!RN_ISA_PICK(rn_gemm_)[gemm->dtype])
    return rn_unimplemented("No matrix product for %s", rn_dtype_name(gemm->dtype));
  rn_gemm_t plain = *gemm;
  plain.transpose_a = plain.transpose_b = false;
  size_t a_size = 0, b_size = 0;
  rn_status_t status = straighten(gemm->a, gemm->transpose_a, gemm->conjugate_a, gemm->m, gemm->k,
                                  gemm->dtype, &plain.a, &a_size);
  if (rn_ok(status))
    status = straighten(gemm->b, gemm->transpose_b, gemm->conjugate_b, gemm->k, gemm->n,
                        gemm->dtype, &plain.b, &b_size);
  if (rn_ok(status)) run_pieces(pool, &plain);
  if (a_size) rn_free(rn_allocator_default(), (void*)plain.a, a_size);
  if (b_size) rn_free(rn_allocator_default(), (void*)plain.b, b_size);
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
  if (gemm->dtype == RN_FLOAT || gemm->dtype == RN_DOUBLE) {
    run_pieces(pool, gemm);
    return RN_OK;
  }
  if (gemm->dtype == RN_HALF || gemm->dtype == RN_BFLOAT16) return gemm_narrow(pool, gemm);
  return gemm_plain(pool, gemm);
}
