// See bf16.h.
//
// C is divided into pieces. A piece multiplies its rows of A with one group of strips of B after
// the other. If there are several rows of pieces, B is packed once for all; otherwise a piece packs
// each group when it comes to it.
#include "kernels/cpu/bf16.h"

#ifdef __clang__
#include <cpuid.h>
#endif

#include "base/alloc.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tiles.h"

#define STRIP RN_BF16_STRIP
#define WIDE RN_BF16_WIDE
#define GROUP 64          // columns that are packed at a time
#define MOST_COLUMNS 512  // of a piece
#define PIECE_FLOPS 2e7   // about 40 us
#define PIECES_PER_THREAD 4
#define PACK_ELEMENTS (1 << 18)  // at a time

#ifdef __x86_64__
static bool has_tile_products(void) {
#ifdef __clang__
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
#else
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16");
#endif
}

rn_bf16_way_t rn_bf16_way(void) {
  rn_bf16_way_t way = {.table = RN_ISA_PICK(&rn_bf16_)};
  if (!way.table->multiply_pairs || !__builtin_cpu_supports("avx512bf16")) return way;
  way.uses_tiles = has_tile_products() && rn_tiles_are_granted();
  way.multiply = way.uses_tiles ? way.table->multiply_tiles : way.table->multiply_pairs;
  return way;
}
#else
rn_bf16_way_t rn_bf16_way(void) { return (rn_bf16_way_t){.table = RN_ISA_PICK(&rn_bf16_)}; }
#endif

typedef struct bf16_job_t {
  const rn_bf16_product_t* product;
  const rn_bf16_way_t* way;
  int64_t rows, columns, across;  // of a piece; pieces side by side
  int64_t depth;                  // k, filled up
  uint16_t* panels;               // NULL: pieces pack for themselves
  rn_status_t status;             // see rn_keep_first_error
} bf16_job_t;

// What a thread works in.
typedef struct bf16_scratch_t {
  uint16_t *a, *b;
  float* sums;  // of two strips after the other, if the depth has several parts
  void* more;
} bf16_scratch_t;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t part_depth(const bf16_job_t* job) { return least(job->depth, RN_BF16_DEPTH); }
static bool keeps_sums(const bf16_job_t* job) { return job->depth > RN_BF16_DEPTH; }

// One or two strips from column |first| on, for all rows of the piece. If this is the last part of
// the depth, the sums are finished while they are in the cache.
static void multiply(const bf16_job_t* job, rn_bf16_part_t part, int64_t row, int64_t rows,
                     int64_t first, bool is_last) {
  const rn_bf16_product_t* p = job->product;
  const int64_t columns = least(part.strips * STRIP, p->n - first);
  for (int64_t i = 0; i < rows; i += RN_BF16_SUM_ROWS) {
    rn_bf16_part_t some = part;
    const int64_t count = least(RN_BF16_SUM_ROWS, rows - i);
    some.rows = round_up(count, 16);
    some.a += i * part.a_step;
    if (keeps_sums(job)) some.c += i * WIDE;
    job->way->multiply(&some);
    if (is_last) p->finish(job->way, p->arg, some.c, row + i, count, first, columns);
  }
}

// The columns [first, last) of some rows: a part of the depth.
static void run_depth(const bf16_job_t* job, const bf16_scratch_t* scratch, int64_t row,
                      int64_t rows, int64_t first, int64_t last, int64_t at) {
  const rn_bf16_product_t* p = job->product;
  const int64_t depth = least(RN_BF16_DEPTH, job->depth - at), given = least(depth, p->k - at);
  rn_bf16_part_t part = {.depth = depth, .c_step = WIDE, .adds = at > 0};
  part.a_step = part_depth(job) + RN_BF16_BLOCK;  // rows are not a multiple of a page apart
  part.a = p->rows(job->way, p->arg, row, rows, at, given, scratch->a, &part.a_step, scratch->more);
  part.b_step = STRIP * (job->panels ? job->depth : depth);
  for (int64_t group = first; group < last; group += GROUP) {
    const int64_t end = least(group + GROUP, last);
    const uint16_t* b = scratch->b;
    if (job->panels)
      b = job->panels + group * job->depth + at * STRIP;
    else
      p->columns(job->way, p->arg, group, end, at, given, scratch->b, part.b_step);
    for (int64_t column = group; column < end; column += WIDE) {
      part.strips = end - column > STRIP ? 2 : 1;
      part.b = b + (column - group) / STRIP * part.b_step;
      part.c = scratch->sums;
      if (keeps_sums(job)) part.c += (column - first) * round_up(job->rows, 16);
      multiply(job, part, row, rows, column, at + depth == job->depth);
    }
  }
}

static void run_piece(const bf16_job_t* job, int64_t i, const bf16_scratch_t* scratch) {
  const int64_t row = i / job->across * job->rows, first = i % job->across * job->columns;
  const int64_t rows = least(job->rows, job->product->m - row);
  const int64_t last = least(first + job->columns, job->product->n);
  for (int64_t at = 0; at < job->depth; at += RN_BF16_DEPTH)
    run_depth(job, scratch, row, rows, first, last, at);
}

static void run_pieces(void* arg, int64_t begin, int64_t end) {
  bf16_job_t* job = arg;
  const int64_t depth = part_depth(job), rows = round_up(job->rows, 16);
  const int64_t a = rows * (depth + RN_BF16_BLOCK), b = job->panels ? 0 : GROUP * depth;
  const int64_t sums =
      WIDE * (keeps_sums(job) ? rows * ceil_div(job->columns, WIDE) : RN_BF16_SUM_ROWS);
  const size_t more = (job->product->scratch_bytes + RN_ALIGN - 1) / RN_ALIGN * RN_ALIGN;
  rn_scratch_t memory;
  if (!rn_scratch_take(&memory, (size_t)(2 * (a + b) + 4 * sums) + more, &job->status)) return;
  bf16_scratch_t scratch;
  scratch.more = memory.at;
  scratch.b = (uint16_t*)(memory.at + more);
  scratch.a = scratch.b + b;
  scratch.sums = (float*)(scratch.a + a);
  if (job->way->uses_tiles) job->way->table->tiles_begin();
  for (int64_t i = begin; i < end; ++i) run_piece(job, i, &scratch);
  if (job->way->uses_tiles) job->way->table->tiles_end();
  rn_scratch_free(&memory);
}

static void pack_groups(void* arg, int64_t begin, int64_t end) {
  const bf16_job_t* job = arg;
  const rn_bf16_product_t* p = job->product;
  for (int64_t i = begin; i < end; ++i)
    p->columns(job->way, p->arg, i * GROUP, least((i + 1) * GROUP, p->n), 0, p->k,
               job->panels + i * GROUP * job->depth, STRIP * job->depth);
}

bool rn_bf16_panels_count(int64_t n, int64_t k, int64_t* out) {
  return rn_mul_i64_ok(round_up(n, GROUP), round_up(k, RN_BF16_BLOCK), out);
}

void rn_bf16_pack(rn_pool_t* pool, const rn_bf16_way_t* way, const rn_bf16_product_t* product,
                  uint16_t* panels) {
  bf16_job_t job = {.product = product,
                    .way = way,
                    .depth = round_up(product->k, RN_BF16_BLOCK),
                    .panels = panels};
  rn_pool_for(pool, ceil_div(product->n, GROUP), ceil_div(PACK_ELEMENTS, GROUP * job.depth),
              pack_groups, &job);
}

// Sets the sizes of pieces and returns how many there are from top to bottom.
static int64_t divide(bf16_job_t* job, double flops, int threads) {
  const int64_t m = job->product->m, n = job->product->n;
  int64_t wanted = threads > 1 ? PIECES_PER_THREAD * threads : 1;
  if (flops / PIECE_FLOPS < (double)wanted) wanted = (int64_t)(flops / PIECE_FLOPS) + 1;
  int64_t down = ceil_div(m, RN_BF16_MOST_ROWS), groups = ceil_div(n, GROUP);
  job->across = ceil_div(n, MOST_COLUMNS);
  if (down * job->across < wanted) job->across = least(groups, ceil_div(wanted, down));
  if (down * job->across < wanted) down = least(ceil_div(m, 32), ceil_div(wanted, job->across));
  job->columns = ceil_div(groups, job->across) * GROUP;
  job->across = ceil_div(n, job->columns);
  job->rows = round_up(ceil_div(m, down), 32);
  return ceil_div(m, job->rows);
}

rn_status_t rn_bf16_product(rn_pool_t* pool, const rn_bf16_way_t* way,
                            const rn_bf16_product_t* product) {
  bf16_job_t job = {.product = product,
                    .way = way,
                    .depth = round_up(product->k, RN_BF16_BLOCK),
                    .panels = (uint16_t*)product->panels};
  const double flops = 2.0 * (double)product->m * (double)product->n * (double)product->k;
  const int64_t down = divide(&job, flops, rn_pool_loop_threads(pool));
  rn_scratch_t memory = {0};
  if (down > 1 && !job.panels) {
    int64_t count = 0;
    if (!rn_bf16_panels_count(product->n, product->k, &count)) return rn_out_of_memory();
    RN_RETURN_IF_ERROR(
        rn_scratch_init(&memory, rn_allocator_default(), (size_t)count * sizeof *job.panels));
    job.panels = (uint16_t*)memory.at;
    rn_bf16_pack(pool, way, product, job.panels);
  }
  const double each = flops / (double)(down * job.across);
  rn_pool_for(pool, down * job.across, (int64_t)(PIECE_FLOPS / (each + 1)) + 1, run_pieces, &job);
  rn_scratch_free(&memory);
  return job.status;
}
