// See gemm_grid.h.
#include "kernels/cpu/gemm_grid.h"

// From this number of threads on, the time of several grids is estimated, and the best one taken.
#define MANY_THREADS 5
// Work per thread in nanoseconds: well above the cost of a hand-off. With many threads, one of them
// is nearly always looking for work, and then a hand-off is cheap.
#define PIECE_NS 40e3
#define PIECE_NS_OF_MANY 15e3
#define MOST_PIECES 32
#define PIECES_PER_THREAD 4
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
// More than the usual cache of one core; and the size of a page.
#define LARGE_BYTES (4 << 20)
#define PAGE_BYTES 4096

// The grids that are tried.
#define MOST_DOWN 16
#define MOST_STRIPS 16
// A piece that packs reads B from memory and writes to its cache; other panels come from a cache
// that all cores share.
#define PACKED_BYTES_PER_NS 5.0
#define PANEL_BYTES_PER_NS 20.0
// Rows of A come from there, too, while all threads read: for each block of columns that is
// multiplied at a time, or once if the second-level cache keeps them.
#define ROWS_BYTES_PER_NS 10.0
#define KEPT_BYTES (1 << 20)
// Operations of float tiles per nanosecond: what a core reaches while all cores compute. Tiles that
// are narrower than a strip load more per operation.
#define TILE_FLOPS_PER_NS 150.0
#define NARROW_FLOPS_PER_NS 130.0
#define BARRIER_NS 6e3
#define HANDOFF_NS 500
// How much of a piece the last thread is behind the others.
#define LATE 0.5
// Columns of a block that is narrower than a strip are a multiple of this.
#define NARROW_BYTES 64

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Divides |length| into at most |wanted| parts of at least |shortest|; all but the last are a
// multiple of |unit|.
static int64_t part_length(int64_t length, int64_t wanted, int64_t shortest, int64_t unit) {
  int64_t parts = least(wanted, length / shortest);
  if (parts < 2) return length;
  return ceil_div(ceil_div(length, parts), unit) * unit;
}

static double pieces_of(const rn_gemm_part_t* part, size_t item, int threads) {
  double m = (double)part->m, n = (double)part->n, k = (double)part->k;
  double flops = 2 * m * n * k / FLOPS_PER_NS;
  double bytes = (m * k + k * n + m * n) * (double)item / BYTES_PER_NS;
  return (flops > bytes ? flops : bytes) / (threads < MANY_THREADS ? PIECE_NS : PIECE_NS_OF_MANY);
}

// The estimate of a grid, for many threads.
typedef struct gemm_grid_search_t {
  const rn_gemm_part_t* part;
  double item;
  int threads;
  int64_t strip;
  bool packs;  // each piece packs its own columns of B
  rn_gemm_grid_t grid;
  double time_ns;  // of |grid|
} gemm_grid_search_t;

static void try_grid(gemm_grid_search_t* search, int64_t rows, int64_t columns) {
  const rn_gemm_part_t* part = search->part;
  double k = (double)part->k, strip = (double)columns * k * search->item;
  double flops_per_ns = columns < search->strip ? NARROW_FLOPS_PER_NS : TILE_FLOPS_PER_NS;
  double ns = 2 * (double)(rows * columns) * k * (search->item / 4) / flops_per_ns + HANDOFF_NS;
  ns += strip / (search->packs ? PACKED_BYTES_PER_NS : PANEL_BYTES_PER_NS);
  int64_t blocks = ceil_div(columns * (int64_t)search->item, RN_GEMM_BLOCK_BYTES);
  double a_bytes = (double)rows * k * search->item, once_ns = 0;
  if (part->a_column != 1)  // its rows are packed for each block of columns
    ns += (double)blocks * a_bytes / PACKED_BYTES_PER_NS;
  else if (a_bytes > KEPT_BYTES)
    ns += (double)blocks * a_bytes / ROWS_BYTES_PER_NS;
  else if (rows < part->m)
    ns += a_bytes / ROWS_BYTES_PER_NS;
  else  // all pieces have the same rows
    once_ns = a_bytes / ROWS_BYTES_PER_NS;
  int64_t across = ceil_div(part->n, columns), pieces = across * ceil_div(part->m, rows);
  double time_ns = once_ns + ((double)ceil_div(pieces, search->threads) + LATE) * ns;
  if (search->time_ns && time_ns >= search->time_ns) return;
  search->time_ns = time_ns;
  search->grid = (rn_gemm_grid_t){
      .rows = rows, .columns = columns, .across = across, .whole = pieces, .pieces = pieces};
}

static void search_grid(gemm_grid_search_t* search) {
  const int64_t m = search->part->m, n = search->part->n, strip = search->strip;
  int64_t narrow = NARROW_BYTES / (int64_t)search->item;
  for (int64_t down = 1; down <= MOST_DOWN; ++down) {
    int64_t rows = least(ceil_div(ceil_div(m, down), ROW_UNIT) * ROW_UNIT, m);
    if (down > 1 && rows < LEAST_ROWS) break;
    for (int64_t c = strip - strip % narrow; search->packs && 2 * c >= strip; c -= narrow)
      if (c < strip) try_grid(search, rows, least(c, n));
    for (int64_t strips = 1; strips <= MOST_STRIPS; ++strips)
      try_grid(search, rows, least(strips * strip, n));
  }
}

// Whether B is packed by each piece for itself or once for all is part of the choice.
static rn_gemm_grid_t best_grid(const rn_gemm_part_t* part, size_t item, int64_t strip,
                                int threads) {
  gemm_grid_search_t own = {.part = part,
                            .item = (double)item,
                            .threads = threads,
                            .strip = strip,
                            .packs = !part->panels};
  gemm_grid_search_t shared = own;
  search_grid(&own);
  if (!own.packs) return own.grid;
  shared.packs = false;
  search_grid(&shared);
  double packing = 2 * (double)(part->n * part->k) * (double)item / PACKED_BYTES_PER_NS;
  if (shared.time_ns + BARRIER_NS + packing / threads >= own.time_ns) return own.grid;
  shared.grid.shares_panels = true;
  return shared.grid;
}

rn_gemm_grid_t rn_gemm_divide(const rn_gemm_part_t* part, size_t item, int64_t strip, int threads) {
  double k = (double)part->k, n = (double)part->n, pieces = pieces_of(part, item, threads);
  if (pieces < 2 && !part->turns)
    return (rn_gemm_grid_t){
        .rows = part->m, .columns = part->n, .across = 1, .whole = 1, .pieces = 1};
  if (part->way == RN_GEMM_BLOCKS && !part->turns && threads >= MANY_THREADS && part->n > 1)
    return best_grid(part, item, strip, threads);
  int64_t most =
      threads > MOST_PIECES / PIECES_PER_THREAD ? PIECES_PER_THREAD * threads : MOST_PIECES;
  // An even number, for two threads.
  int64_t wanted = pieces < 2 ? 1 : pieces > (double)most ? most : ((int64_t)pieces + 1) & -2;
  rn_gemm_grid_t grid = {.rows = part->m, .columns = part->n};
  bool packs = part->way == RN_GEMM_BLOCKS && !part->panels;
  // Split columns first where B is packed, rows first where that writes C in order.
  if (!packs) grid.rows = part_length(part->m, wanted, LEAST_ROWS, ROW_UNIT);
  // With many rows, read A once for several strips, unless that leaves too few pieces.
  int64_t strips = packs ? 4 : 1, enough = ENOUGH_PIECES * threads;
  while (strips > 1 && part->n / (strips * strip) * (part->m / LEAST_ROWS_PACKING) < enough)
    strips /= 2;
  int64_t across = wanted / ceil_div(part->m, grid.rows);
  // Read the rows of a B that does not fit the cache along whole pages, as long as that leaves a
  // piece per thread.
  bool in_memory = !packs && !part->panels && k * n * (double)item > LARGE_BYTES;
  int64_t pages = part->n * (int64_t)item / PAGE_BYTES;
  if (in_memory) across = least(across, pages < threads ? threads : pages);
  grid.columns = part_length(part->n, across, strips * strip, strip);
  grid.across = ceil_div(part->n, grid.columns);
  if (packs)
    grid.rows = part_length(part->m, least(ceil_div(enough, grid.across), wanted / grid.across),
                            LEAST_ROWS_PACKING, ROW_UNIT);
  if (part->turns) {  // one strip, limited by the scratch buffer
    int64_t rows = RN_GEMM_TURNED / part->n / ROW_UNIT * ROW_UNIT;
    grid.rows = least(grid.rows, rows);
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
