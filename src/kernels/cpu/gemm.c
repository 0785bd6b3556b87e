// Matrix multiplication: float and double in tiles, 16-bit floats through float (bfloat16 by
// gemm_bf16.h where the processor can), all other types by plain loops. See gemm.h.
#include "kernels/cpu/gemm.h"

#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/gemm_complex.h"
#include "kernels/cpu/gemm_grid.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/vector.h"

// Bytes that one core packs per nanosecond, and the work per piece in nanoseconds.
#define PACKED_BYTES_PER_NS 10.0
#define PACKING_NS 10e3

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct gemm_job_t {
  rn_gemm_part_t part;
  rn_gemm_fn_t fn;
  size_t item;
  rn_gemm_grid_t grid;
  bool backwards;
  rn_status_t status;  // see rn_keep_first_error
} gemm_job_t;

// Up to this many products, dividing takes longer than it could gain.
#define ONE_PIECE 8192

static void run_block(const gemm_job_t* job, int64_t i, void* scratch) {
  const rn_gemm_grid_t* grid = &job->grid;
  rn_gemm_part_t part = job->part;
  int64_t block = i, begin = 0, end = grid->rows;
  if (i >= grid->whole) {
    int64_t piece = i - grid->whole;
    block = grid->whole + piece / grid->parts;
    begin = piece % grid->parts * grid->part_rows;
    end = least(end, begin + grid->part_rows);
  }
  int64_t top = block / grid->across * grid->rows, row = top + begin;
  int64_t column = block % grid->across * grid->columns;
  part.m = least(part.m, top + end) - row;
  part.n = least(part.n - column, grid->columns);
  if (part.m <= 0) return;  // the last row of blocks may be shorter than the others
  part.a = (const char*)part.a + (size_t)(row * part.a_row) * job->item;
  part.b = (const char*)part.b + (size_t)(column * part.b_column) * job->item;
  // A strip has k rows of its width, so the panels of a column start at column * k.
  if (part.panels) part.panels = (const char*)part.panels + (size_t)(column * part.k) * job->item;
  if (part.bias) part.bias = (const char*)part.bias + (size_t)column * job->item;
  part.c = (char*)part.c +
           (size_t)(part.turns ? column * part.c_row + row : row * part.c_row + column) * job->item;
  part.scratch = scratch;
  job->fn(&part);
}

static void run_blocks(void* arg, int64_t begin, int64_t end) {
  gemm_job_t* job = arg;
  rn_scratch_t scratch = {0};
  if (job->part.way == RN_GEMM_BLOCKS && !rn_scratch_take(&scratch, RN_GEMM_SCRATCH, &job->status))
    return;
  for (int64_t i = begin; i < end; ++i) run_block(job, i, scratch.at);
  rn_scratch_free(&scratch);
}

static rn_gemm_part_t whole_of(const rn_gemm_t* g) {
  return (rn_gemm_part_t){.a = g->a,
                          .a_row = g->transpose_a ? 1 : g->k,
                          .a_column = g->transpose_a ? g->m : 1,
                          .b = g->b,
                          .b_row = g->transpose_b ? 1 : g->n,
                          .b_column = g->transpose_b ? g->k : 1,
                          .panels = g->panels,
                          .c = g->c,
                          .c_row = g->n,
                          .bias = g->bias,
                          .m = g->m,
                          .n = g->n,
                          .k = g->k,
                          .adds = g->adds};
}

// The transposed product: C' = B' A'.
static rn_gemm_part_t turn(const rn_gemm_part_t* p) {
  return (rn_gemm_part_t){.a = p->b,
                          .a_row = p->b_column,
                          .a_column = p->b_row,
                          .b = p->a,
                          .b_row = p->a_column,
                          .b_column = p->a_row,
                          .c = p->c,
                          .c_row = p->c_row,
                          .m = p->n,
                          .n = p->m,
                          .k = p->k};
}

static rn_status_t run_job(rn_pool_t* pool, gemm_job_t* job) {
  const rn_gemm_part_t* part = &job->part;
  uint64_t kind = ((uint64_t)part->m * 0x10001 + (uint64_t)part->n) * 0x10001 + (uint64_t)part->k;
  rn_pool_run(pool, &(rn_pool_work_t){.count = job->grid.pieces,
                                      .grain = 1,
                                      .body = run_blocks,
                                      .arg = job,
                                      .kind = kind,
                                      .is_backwards = job->backwards});
  return job->status;
}

// Few rows by a transposed B: packing B would cost as much as the multiplication. Computes C' = B'
// A' instead: B's rows serve as the rows of A, and A is packed in place of B.
static rn_status_t run_turned(rn_pool_t* pool, gemm_job_t* job, rn_gemm_pack_fn_t pack,
                              int64_t strip) {
  job->part = turn(&job->part);
  job->part.way = RN_GEMM_BLOCKS;
  job->part.turns = true;
  size_t size = (size_t)(strip * job->part.k) * job->item;
  rn_scratch_t panels;
  RN_RETURN_IF_ERROR(rn_scratch_init(&panels, rn_allocator_default(), size));
  job->part.panels = panels.at;
  pack(&job->part, panels.at);
  job->grid = rn_gemm_divide(&job->part, job->item, strip, rn_pool_loop_threads(pool));
  rn_status_t status = run_job(pool, job);
  rn_scratch_free(&panels);
  return status;
}

// Packs B once for all pieces, where several would pack the same columns.
static rn_status_t run_shared(rn_pool_t* pool, gemm_job_t* job, const rn_gemm_t* g) {
  size_t size = (size_t)rn_gemm_panels_count(g->dtype, g->n, g->k) * job->item + RN_ALIGN;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_pool_borrow(pool, size, &block));
  rn_gemm_t packing = *g;
  packing.c = rn_scratch_align(block);
  rn_gemm_pack(pool, &packing);
  job->part.panels = packing.c;
  rn_status_t status = run_job(pool, job);
  rn_pool_give_back(pool, block, size);
  return status;
}

static rn_status_t run_pieces(rn_pool_t* pool, const rn_gemm_t* g) {
  const rn_gemm_table_t* table = RN_ISA_PICK(&rn_gemm_);
  gemm_job_t job = {.fn = table->fn[g->dtype],
                    .item = rn_dtype_size(g->dtype),
                    .part = whole_of(g),
                    .backwards = g->backwards};
  int64_t strip = table->strip_bytes / (int64_t)job.item;
  bool is_real = g->dtype == RN_FLOAT || g->dtype == RN_DOUBLE;
  if (g->n == 1 && g->m > 1 && is_real) {  // a column is a row of the transposed product
    job.part = turn(&job.part);
    job.part.c_row = job.part.n;
  }
  // Chosen for the whole matmul, so that all its pieces are computed alike.
  job.part.way = is_real ? rn_gemm_way(job.part.m, job.part.n, job.part.k, job.part.a_column,
                                       job.part.b_column, job.part.panels != NULL)
                         : RN_GEMM_IN_PLACE;
  if (job.part.way == RN_GEMM_BLOCKS && !job.part.panels && g->transpose_b && !g->transpose_a &&
      g->m <= strip && g->n >= 4 * g->m)
    return run_turned(pool, &job, g->dtype == RN_FLOAT ? table->pack_f32 : table->pack_f64, strip);
  if (job.part.way != RN_GEMM_BLOCKS &&
      (double)g->m * (double)g->n * (double)g->k <= (double)ONE_PIECE) {
    job.fn(&job.part);
    return RN_OK;
  }
  job.grid = rn_gemm_divide(&job.part, job.item, strip, rn_pool_loop_threads(pool));
  return job.grid.shares_panels ? run_shared(pool, &job, g) : run_job(pool, &job);
}

#define TRANSPOSE(T)                                                                      \
  static void transpose_##T(const void* in_, void* out_, int64_t rows, int64_t columns) { \
    const T* in = in_;                                                                    \
    T* out = out_;                                                                        \
    for (int64_t i = 0; i < rows; ++i)                                                    \
      for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = in[i * columns + j];      \
  }
typedef struct gemm_pair_t {
  uint64_t low, high;
} gemm_pair_t;
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)
TRANSPOSE(gemm_pair_t)

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
      transpose_gemm_pair_t(in, out, rows, columns);
      break;
  }
}

// Copies a matrix to the layout that the loops need; |*out| is |in| itself if it has that already.
static rn_status_t straighten(const void* in, bool is_transposed, int64_t rows, int64_t columns,
                              rn_dtype_t dtype, const void** out, size_t* out_size) {
  *out = in;
  *out_size = 0;
  if (!is_transposed) return RN_OK;
  size_t item = rn_dtype_size(dtype), bytes = (size_t)(rows * columns) * item;
  void* copy = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), bytes, &copy));
  transpose(in, copy, columns, rows, item);
  *out = copy;
  *out_size = bytes;
  return RN_OK;
}

static rn_status_t gemm_plain(rn_pool_t* pool, const rn_gemm_t* gemm) {
  const bool is_complex = gemm->dtype == RN_COMPLEX64 || gemm->dtype == RN_COMPLEX128;
  if (!is_complex && !RN_ISA_PICK(&rn_gemm_)->fn[gemm->dtype])
    return rn_unimplemented("Matmul does not support %s", rn_dtype_name(gemm->dtype));
  rn_gemm_t plain = *gemm;
  plain.transpose_a = plain.transpose_b = false;
  size_t a_size = 0, b_size = 0;
  rn_status_t status =
      straighten(gemm->a, gemm->transpose_a, gemm->m, gemm->k, gemm->dtype, &plain.a, &a_size);
  if (rn_ok(status))
    status =
        straighten(gemm->b, gemm->transpose_b, gemm->k, gemm->n, gemm->dtype, &plain.b, &b_size);
  if (rn_ok(status)) status = is_complex ? rn_gemm_complex(pool, &plain) : run_pieces(pool, &plain);
  if (a_size) rn_free(rn_allocator_default(), (void*)plain.a, a_size);
  if (b_size) rn_free(rn_allocator_default(), (void*)plain.b, b_size);
  return status;
}

// 16-bit floats: multiplies and accumulates in float and rounds once at the end, as stock does.
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
  if (gemm->k == 0 && gemm->adds) return RN_OK;
  if (gemm->k == 0) {
    memset(gemm->c, 0, (size_t)(gemm->m * gemm->n) * rn_dtype_size(gemm->dtype));
    return RN_OK;
  }
  if (gemm->dtype == RN_FLOAT || gemm->dtype == RN_DOUBLE) {
    return run_pieces(pool, gemm);
  }
  if (gemm->dtype == RN_BFLOAT16) {
    const rn_bf16_way_t way = rn_bf16_way();
    if (way.multiply) return rn_gemm_bf16(pool, &way, gemm);
  }
  if (gemm->dtype == RN_HALF || gemm->dtype == RN_BFLOAT16) return gemm_narrow(pool, gemm);
  return gemm_plain(pool, gemm);
}

static int64_t strip_of(rn_dtype_t dtype) {
  return RN_ISA_PICK(&rn_gemm_)->strip_bytes / (int64_t)rn_dtype_size(dtype);
}

int64_t rn_gemm_panels_count(rn_dtype_t dtype, int64_t n, int64_t k) {
  int64_t strip = strip_of(dtype);
  return ceil_div(n, strip) * strip * k;
}

static void pack_strips(void* arg, int64_t begin, int64_t end) {
  const rn_gemm_t* g = arg;
  const rn_gemm_table_t* table = RN_ISA_PICK(&rn_gemm_);
  rn_gemm_part_t part = whole_of(g);
  size_t item = rn_dtype_size(g->dtype);
  int64_t strip = strip_of(g->dtype), column = begin * strip;
  part.b = (const char*)part.b + (size_t)(column * part.b_column) * item;
  part.n = least(end * strip, part.n) - column;
  (g->dtype == RN_FLOAT ? table->pack_f32 : table->pack_f64)(
      &part, (char*)g->c + (size_t)(column * part.k) * item);
}

void rn_gemm_pack(rn_pool_t* pool, const rn_gemm_t* gemm) {
  int64_t strip = strip_of(gemm->dtype);
  size_t bytes = (size_t)(strip * gemm->k) * rn_dtype_size(gemm->dtype);
  // Zero-fills the columns that the last strip lacks.
  if (gemm->n % strip) memset((char*)gemm->c + (size_t)(gemm->n / strip) * bytes, 0, bytes);
  double strip_ns =
      (double)(strip * gemm->k) * (double)rn_dtype_size(gemm->dtype) / PACKED_BYTES_PER_NS;
  rn_pool_run(pool, &(rn_pool_work_t){.count = ceil_div(gemm->n, strip),
                                      .grain = (int64_t)(PACKING_NS / (strip_ns + 1)) + 1,
                                      .body = pack_strips,
                                      .arg = (void*)gemm,
                                      .kind = (uint64_t)gemm->k});
}
