// Matrix multiplication: float and double in tiles, 16-bit floats through float (bfloat16 by
// gemm_bf16.h where the processor can), all other types by plain loops. See gemm.h.
#include "kernels/cpu/gemm.h"

#include <math.h>

#include "base/alloc.h"
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/gemm_complex.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/vector.h"

// Work per thread in nanoseconds: well above the cost of a hand-off.
#define PIECE_NS 40e3
#define MOST_PIECES 32
// Rough throughput of one core per nanosecond: operations, and bytes of memory traffic.
#define FLOPS_PER_NS 100.0
#define BYTES_PER_NS 10.0
// The rows of a piece are a multiple of this, a whole number of tiles at every ISA level.
#define ROW_UNIT 12
// Minimum rows per piece. When B is packed, every piece packs its own columns: each thread gets a
// few large pieces, and smaller ones at the end in case a thread is delayed.
#define LEAST_ROWS 48
#define LEAST_ROWS_PACKING 192
#define ENOUGH_PIECES 4
#define LAST_PARTS 4
// From this number of threads on, C is divided in two dimensions and B is packed once for all: with
// few threads, pieces that are as wide as C and pack for themselves need no barrier.
#define MANY_THREADS 5
#define PIECES_PER_THREAD 4
// More than the usual cache of one core; and the size of a page.
#define LARGE_BYTES (4 << 20)
#define PAGE_BYTES 4096

// C divided into blocks. Each block is one piece of work, except that the last may be several.
typedef struct grid_t {
  int64_t rows, columns;     // of a block
  int64_t across, whole;     // blocks side by side, and blocks that are one piece each
  int64_t parts, part_rows;  // pieces per remaining block, and rows per piece
  int64_t pieces;
} grid_t;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Divides |length| into at most |wanted| parts of at least |shortest|; all but the last are a
// multiple of |unit|.
static int64_t part_length(int64_t length, int64_t wanted, int64_t shortest, int64_t unit) {
  int64_t parts = least(wanted, length / shortest);
  if (parts < 2) return length;
  return ceil_div(ceil_div(length, parts), unit) * unit;
}

static double pieces_of(const rn_gemm_part_t* part, size_t item) {
  double m = (double)part->m, n = (double)part->n, k = (double)part->k;
  double flops = 2 * m * n * k / FLOPS_PER_NS;
  double bytes = (m * k + k * n + m * n) * (double)item / BYTES_PER_NS;
  return (flops > bytes ? flops : bytes) / PIECE_NS;
}

// Blocks as square as possible, which read least of A and B; one row of them after the other, so
// that the pieces of a thread share rows of A.
static grid_t square_grid(const rn_gemm_part_t* part, double wanted, int64_t strip, int threads) {
  if (wanted > PIECES_PER_THREAD * threads) wanted = PIECES_PER_THREAD * threads;
  double area = (double)part->m * (double)part->n / wanted;
  int64_t columns = ((int64_t)sqrt(area) / strip + 1) * strip;
  columns = least(columns, part->n);
  int64_t rows = ceil_div((int64_t)(area / (double)columns) + 1, ROW_UNIT) * ROW_UNIT;
  if (rows < LEAST_ROWS) rows = LEAST_ROWS;
  grid_t grid = {.rows = least(rows, part->m), .columns = columns};
  grid.across = ceil_div(part->n, columns);
  grid.pieces = grid.whole = grid.across * ceil_div(part->m, grid.rows);
  return grid;
}

static grid_t grid_of(const rn_gemm_part_t* part, size_t item, int64_t strip, int threads) {
  double k = (double)part->k, n = (double)part->n, pieces = pieces_of(part, item);
  if (pieces < 2 && !part->turns)
    return (grid_t){.rows = part->m, .columns = part->n, .across = 1, .whole = 1, .pieces = 1};
  if (part->panels && !part->turns && threads >= MANY_THREADS)
    return square_grid(part, pieces, strip, threads);
  // An even number, for two threads.
  int64_t wanted = pieces < 2 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : ((int64_t)pieces + 1) & -2;
  grid_t grid = {.rows = part->m, .columns = part->n};
  bool packs = part->way == RN_GEMM_BLOCKS && !part->panels;
  // Split columns first where B is packed, rows first where that writes C in order.
  if (!packs) grid.rows = part_length(part->m, wanted, LEAST_ROWS, ROW_UNIT);
  // With many rows, read A once for several strips, unless that leaves too few pieces.
  int64_t strips = packs ? 4 : 1, enough = ENOUGH_PIECES * threads;
  while (strips > 1 && part->n / (strips * strip) * (part->m / LEAST_ROWS_PACKING) < enough)
    strips /= 2;
  int64_t across = wanted / ceil_div(part->m, grid.rows);
  // Read the rows of a B that does not fit the cache along whole pages.
  bool in_memory = !packs && !part->panels && k * n * (double)item > LARGE_BYTES;
  int64_t pages = part->n * (int64_t)item / PAGE_BYTES;
  if (in_memory) across = least(across, pages < 2 ? 2 : pages);
  grid.columns = part_length(part->n, across, strips * strip, strip);
  grid.across = ceil_div(part->n, grid.columns);
  if (packs)
    grid.rows = part_length(part->m, least(ceil_div(enough, grid.across), wanted / grid.across),
                            LEAST_ROWS_PACKING, ROW_UNIT);
  if (part->turns) {  // one strip, limited by the scratch buffer
    int64_t most = RN_GEMM_TURNED / part->n / ROW_UNIT * ROW_UNIT;
    grid.rows = least(grid.rows, most);
  }
  grid.pieces = grid.whole = grid.across * ceil_div(part->m, grid.rows);
  // Split the last block of each thread, so that a thread that finishes early takes more parts.
  if (packs && threads > 1 && grid.pieces >= enough) {
    int64_t last = least(threads, grid.across);
    grid.part_rows = part_length(grid.rows, LAST_PARTS, LEAST_ROWS_PACKING, ROW_UNIT);
    grid.parts = ceil_div(grid.rows, grid.part_rows);
    grid.whole -= last;
    grid.pieces = grid.whole + last * grid.parts;
  }
  return grid;
}

typedef struct gemm_job_t {
  rn_gemm_part_t part;
  rn_gemm_fn_t fn;
  size_t item;
  grid_t grid;
  bool backwards;
  rn_status_t status;  // see rn_keep_first_error
} gemm_job_t;

static void run_block(const gemm_job_t* job, int64_t i, void* scratch) {
  const grid_t* grid = &job->grid;
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
  void *block = NULL, *scratch = NULL;
  size_t size = job->part.way == RN_GEMM_BLOCKS ? RN_GEMM_SCRATCH + RN_ALIGN : 0;
  if (size) {
    rn_status_t status = rn_alloc(rn_allocator_default(), size, &block);
    if (!rn_ok(status)) {
      rn_keep_first_error(&job->status, status);
      return;
    }
    scratch = (void*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
  }
  for (int64_t i = begin; i < end; ++i) run_block(job, i, scratch);
  if (size) rn_free(rn_allocator_default(), block, size);
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

static rn_status_t run_job(rn_pool_t* pool, gemm_job_t* job, int64_t strip) {
  const rn_gemm_part_t* part = &job->part;
  job->grid = grid_of(part, job->item, strip, rn_pool_loop_threads(pool));
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
  size_t size = (size_t)(strip * job->part.k) * job->item + RN_ALIGN;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), size, &block));
  job->part.panels = (void*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
  pack(&job->part, (void*)job->part.panels);
  rn_status_t status = run_job(pool, job, strip);
  rn_free(rn_allocator_default(), block, size);
  return status;
}

// Packs B once for all pieces, where several would pack the same columns.
static rn_status_t run_shared(rn_pool_t* pool, gemm_job_t* job, const rn_gemm_t* g, int64_t strip) {
  size_t size = (size_t)rn_gemm_panels_count(g->dtype, g->n, g->k) * job->item + RN_ALIGN;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), size, &block));
  rn_gemm_t packing = *g;
  packing.c = (void*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
  rn_gemm_pack(pool, &packing);
  job->part.panels = packing.c;
  rn_status_t status = run_job(pool, job, strip);
  rn_free(rn_allocator_default(), block, size);
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
  job.part.way = rn_gemm_way(job.part.m, job.part.n, job.part.k, job.part.a_column,
                             job.part.b_column, job.part.panels != NULL);
  if (is_real && job.part.way == RN_GEMM_BLOCKS && !job.part.panels && g->transpose_b &&
      !g->transpose_a && g->m <= strip && g->n >= 4 * g->m)
    return run_turned(pool, &job, g->dtype == RN_FLOAT ? table->pack_f32 : table->pack_f64, strip);
  if (is_real && job.part.way == RN_GEMM_BLOCKS && !job.part.panels && g->m > 1 && g->n > 1 &&
      g->m >= 2 * LEAST_ROWS && rn_pool_loop_threads(pool) >= MANY_THREADS &&
      pieces_of(&job.part, job.item) >= 2 * MANY_THREADS)
    return run_shared(pool, &job, g, strip);
  return run_job(pool, &job, strip);
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
  double strip_ns = (double)(strip * gemm->k) * (double)rn_dtype_size(gemm->dtype) / BYTES_PER_NS;
  rn_pool_for(pool, ceil_div(gemm->n, strip), (int64_t)(PIECE_NS / (strip_ns + 1)) + 1, pack_strips,
              (void*)gemm);
}
