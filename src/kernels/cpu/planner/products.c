// The ops created by step/sum_matmuls.c: sums of matmuls, a matmul added to a tensor, and gradient
// descent by matmuls.
//
// Operands are packed into the order in which tiles read them; then each block of C is computed
// over all products at once. So C is written once, or, in descent, the gradient is never stored.
#include "kernels/cpu/planner/products.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/products.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

// Work per thread in nanoseconds, and operations and bytes per nanosecond of one core.
#define PIECE_NS 10e3
#define FLOPS_PER_NS 100.0
#define BYTES_PER_NS 10.0
// A C of up to this size usually is in one core's cache, where access is faster; sharing it with
// another core would move it.
#define CACHED_BYTES (1 << 20)
#define CACHED_BYTES_PER_NS 50.0
// Up to this many bytes of packed B, sweep the columns once per block of rows, so that C is
// accessed in order. Above it, sweep the rows of A per strip of columns, unless C is so large that
// a strip of it spans more pages than the TLB holds.
#define SMALL_B (1 << 20)
#define LARGE_C (8 << 20)
// From this total depth of all products on, operands are packed first and C is split both ways, so
// that a piece keeps its rows of A and its part of B in the L2 cache.
#define DEEP 256
#define GROUP 4  // blocks per piece
#define BAND 2   // strips per piece
// From this many groups on, a piece is one group with all strips, and packs its own rows of A.
#define MANY_GROUPS 16
// Tiles per block of a single product: smaller pieces, because there is nothing to keep in the
// cache.
#define SINGLE_TILES 4

typedef struct planner_products_t {
  int32_t count;    // number of products
  int first;        // input index of the first A; the Bs follow the As
  bool transposes;  // A is stored k x m
  int sides;        // matrices side by side that form an A; > 1 only if stored that way
} planner_products_t;

static rn_status_t init_from(const rn_kernel_init_t* init, planner_products_t* products,
                             int first) {
  products->count = (int32_t)rn_init_int(init, "N");
  products->first = first;
  products->transposes = rn_init_bool(init, "transpose_a");
  int64_t lefts = rn_init_int(init, "M");
  products->sides = (int)(lefts / products->count);
  if (lefts % products->count != 0 || (products->sides > 1 && !products->transposes))
    return rn_internal("A sum of %d matmuls has %lld operands", products->count, (long long)lefts);
  return RN_OK;
}
static rn_status_t sum_init(const rn_kernel_init_t* init, void* state) {
  return init_from(init, state, 0);
}
static rn_status_t add_init(const rn_kernel_init_t* init, void* state) {
  *(planner_products_t*)state = (planner_products_t){1, 1, rn_init_bool(init, "transpose_a"), 1};
  return RN_OK;
}
static rn_status_t descent_init(const rn_kernel_init_t* init, void* state) {
  return init_from(init, state, 2);
}

typedef struct products_job_t {
  const planner_products_t* products;
  rn_tensor_t* const* lefts;  // A of each product, or its sides
  rn_tensor_t* const* rights;
  rn_products_table_t table;
  rn_products_fn_t fn;
  size_t item;
  int64_t m, n, k;  // k: total over all products
  int rows;         // of a tile
  int columns;      // of a strip
  int tiles;        // of a block
  int64_t blocks, strips;
  bool by_rows;  // the outer loop is over blocks of rows, the inner over strips
  char *a, *b;   // packed
  int32_t* ks;
  char* c;
  const void* descent;
  bool adds;  // accumulates onto C
} products_job_t;

// The operands are inputs, the As before the Bs.
static products_job_t job_of(const rn_kernel_ctx_t* ctx) {
  const planner_products_t* products = ctx->state;
  rn_tensor_t* const* first = ctx->in + products->first;
  rn_tensor_t* const* rights = first + products->count * products->sides;
  return (products_job_t){.products = products, .lefts = first, .rights = rights};
}
static const rn_tensor_t* side(const products_job_t* job, int32_t t, int s) {
  return job->lefts[t * job->products->sides + s];
}
static const rn_tensor_t* left(const products_job_t* job, int32_t t) { return side(job, t, 0); }
static const rn_tensor_t* right(const products_job_t* job, int32_t t) { return job->rights[t]; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Copies |count| rows of |used| bytes, |step| bytes apart, to |to|, where they are |to_step| apart
// and padded with zeros to |width|.
static void pack_rows(const char* from, size_t step, int64_t count, size_t used, size_t width,
                      char* to, size_t to_step) {
#define ROWS(bytes)                                                                             \
  if (used == (bytes) && width == (bytes)) {                                                    \
    for (int64_t p = 0; p < count; ++p, from += step, to += to_step) memcpy(to, from, (bytes)); \
    return;                                                                                     \
  }
  // Common row widths of tiles and strips, copied in registers.
  ROWS(16)
  ROWS(24)
  ROWS(32)
  ROWS(48)
  ROWS(96)
  ROWS(256)
#undef ROWS
  for (int64_t p = 0; p < count; ++p, from += step, to += to_step) {
    memcpy(to, from, used);
    memset(to + used, 0, width - used);
  }
}

// Transposes |used| rows of |k| elements.
#define ACROSS(T)                                                                         \
  static void across_##T(const void* from, int64_t k, int64_t used, int rows, void* to) { \
    for (int64_t p = 0; p < k; ++p)                                                       \
      for (int i = 0; i < rows; ++i)                                                      \
        ((T*)to)[p * rows + i] = i < used ? ((const T*)from)[i * k + p] : 0;              \
  }
ACROSS(uint32_t)
ACROSS(uint64_t)

static char* tile_at(const products_job_t* job, int64_t tile) {
  return job->a + (size_t)(tile * job->k * job->rows) * job->item;
}

// Packs a tile of rows that are contiguous in memory.
static void pack_tile(const products_job_t* job, int64_t tile) {
  char* to = tile_at(job, tile);
  int64_t at = tile * job->rows, used = least(job->m - at, job->rows);
  for (int32_t t = 0; t < job->products->count; ++t) {
    int64_t k = job->ks[t];
    const char* from = (const char*)left(job, t)->data + (size_t)(at * k) * job->item;
    (job->item == 4 ? across_uint32_t : across_uint64_t)(from, k, used, job->rows, to);
    to += (size_t)(k * job->rows) * job->item;
  }
}

// Packs elements [begin, end) of a row of a transposed A into tiles |next| bytes apart; |to| is the
// row's place in tile |tile|.
static void pack_row(const products_job_t* job, const char* from, int64_t begin, int64_t end,
                     int64_t tile, char* to, size_t next) {
  const size_t width = (size_t)job->rows * job->item;
  for (int64_t done; begin < end; begin += done, from += (size_t)done * job->item) {
    int64_t at = begin % job->rows, whole = at ? 0 : (end - begin) / job->rows;
    char* place = to + (size_t)(begin / job->rows - tile) * next + (size_t)at * job->item;
    done = whole ? whole * job->rows : least(job->rows - at, end - begin);
    if (whole)
      pack_rows(from, width, whole, width, width, place, next);
    else
      memcpy(place, from, (size_t)done * job->item);
  }
}

// Packs tiles [tile, end) of a transposed A. Its rows are far apart in memory, so each row is
// written to all tiles before the next.
static void pack_tiles_across(const products_job_t* job, int64_t tile, int64_t end) {
  const size_t width = (size_t)job->rows * job->item, next = (size_t)job->k * width;
  const int64_t first = tile * job->rows, last = least(end * job->rows, job->m);
  const size_t rest = (size_t)(end * job->rows - last) * job->item;  // padding of the last tile
  char* to = tile_at(job, tile);
  for (int32_t t = 0; t < job->products->count; ++t, to += (size_t)job->ks[t - 1] * width) {
    int64_t before = 0;
    for (int s = 0; s < job->products->sides; ++s) {
      const rn_tensor_t* a = side(job, t, s);
      const int64_t columns = rn_tensor_dim(a, 1);
      const int64_t begin = first > before ? first : before, stop = least(last, before + columns);
      for (int64_t p = 0; begin < stop && p < job->ks[t]; ++p)
        pack_row(job, (const char*)a->data + (size_t)(p * columns + begin - before) * job->item,
                 begin, stop, tile, to + (size_t)p * width, next);
      before += columns;
    }
    for (int32_t p = 0; rest && p < job->ks[t]; ++p)
      memset(to + (size_t)(end - 1 - tile) * next + (size_t)(p + 1) * width - rest, 0, rest);
  }
}

static void pack_strip(const products_job_t* job, int64_t strip) {
  char* to = job->b + (size_t)(strip * job->k * job->columns) * job->item;
  int64_t at = strip * job->columns, used = least(job->n - at, job->columns);
  for (int32_t t = 0; t < job->products->count; ++t) {
    const char* data = right(job, t)->data;
    pack_rows(data + (size_t)at * job->item, (size_t)job->n * job->item, job->ks[t],
              (size_t)used * job->item, (size_t)job->columns * job->item, to,
              (size_t)job->columns * job->item);
    to += (size_t)(job->ks[t] * job->columns) * job->item;
  }
}

// Packs blocks [block, last) of A.
static void pack_blocks(const products_job_t* job, int64_t block, int64_t last) {
  int64_t tiles = (job->m + job->rows - 1) / job->rows, tile = block * job->tiles;
  int64_t end = least(tiles, last * job->tiles);
  if (job->products->transposes) {
    pack_tiles_across(job, tile, end);
    return;
  }
  for (; tile < end; ++tile) pack_tile(job, tile);
}

static void run_block(const products_job_t* job, int64_t block, int64_t strip) {
  int64_t tile = block * job->tiles, row = tile * job->rows, column = strip * job->columns;
  rn_products_block_t part = {.a = job->a + (size_t)(tile * job->k * job->rows) * job->item,
                              .a_tile = job->k * job->rows,
                              .b = job->b + (size_t)(strip * job->k * job->columns) * job->item,
                              .c = job->c + (size_t)(row * job->n + column) * job->item,
                              .c_row = job->n,
                              .rows = least(job->m - row, job->tiles * job->rows),
                              .columns = least(job->n - column, job->columns),
                              .ks = job->ks,
                              .count = job->products->count,
                              .descent = job->descent,
                              .adds = job->adds};
  job->fn(&part);
}

// The operand of the inner loop is packed beforehand, that of the outer loop when it is used.
static void pack_inner(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    if (job->by_rows)
      pack_strip(job, i);
    else
      pack_blocks(job, i, i + 1);
  }
}

static void run_outer(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  for (int64_t outer = begin; outer < end; ++outer) {
    if (job->by_rows) {
      pack_blocks(job, outer, outer + 1);
      for (int64_t j = 0; j < job->strips; ++j) run_block(job, outer, j);
    } else {
      pack_strip(job, outer);
      for (int64_t i = 0; i < job->blocks; ++i) run_block(job, i, outer);
    }
  }
}

static int64_t groups_of(const products_job_t* job) { return (job->blocks + GROUP - 1) / GROUP; }

// Deep products: packs both operands beforehand, or only B.
static void pack_both(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    if (i < groups_of(job))
      pack_blocks(job, i * GROUP, least(i * GROUP + GROUP, job->blocks));
    else
      pack_strip(job, i - groups_of(job));
  }
}

static void pack_strips(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  for (int64_t j = begin; j < end; ++j) pack_strip(job, j);
}

static void run_groups(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  for (int64_t group = begin; group < end; ++group) {
    int64_t first = group * GROUP, last = least(first + GROUP, job->blocks);
    pack_blocks(job, first, last);
    for (int64_t j = 0; j < job->strips; ++j)
      for (int64_t i = first; i < last; ++i) run_block(job, i, j);
  }
}

static void run_deep(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  int64_t bands = (job->strips + BAND - 1) / BAND;
  for (int64_t piece = begin; piece < end; ++piece) {
    int64_t block = piece / bands * GROUP, strip = piece % bands * BAND;
    for (int64_t j = strip; j < least(strip + BAND, job->strips); ++j)
      for (int64_t i = block; i < least(block + GROUP, job->blocks); ++i) run_block(job, i, j);
  }
}

// Takes the sizes from the operands; sets |c_shape|.
static rn_status_t measure(products_job_t* job, int64_t c_shape[2]) {
  for (int32_t t = 0; t < job->products->count; ++t) {
    const rn_tensor_t *a = left(job, t), *b = right(job, t);
    if (a->rank != 2 || b->rank != 2)
      return rn_internal("The operands of a sum of matmuls are not matrices");
    int64_t m = rn_tensor_dim(a, job->products->transposes ? 1 : 0);
    int64_t k = rn_tensor_dim(a, job->products->transposes ? 0 : 1);
    int64_t n = rn_tensor_dim(b, 1);
    for (int s = 1; s < job->products->sides; ++s) {
      const rn_tensor_t* other = side(job, t, s);
      if (other->rank != 2 || rn_tensor_dim(other, 0) != k)
        return rn_internal("Matrices side by side have incompatible shapes");
      m += rn_tensor_dim(other, 1);
    }
    if (t == 0) {
      job->m = m;
      job->n = n;
    }
    if (m != job->m || n != job->n || k != rn_tensor_dim(b, 0) || k < 1 || k > INT32_MAX)
      return rn_internal("The matmuls of a sum have different shapes");
    job->k += k;
  }
  c_shape[0] = job->m;
  c_shape[1] = job->n;
  return RN_OK;
}

static int64_t grain_of(double each_ns) { return (int64_t)(PIECE_NS / (each_ns + 1)) + 1; }

static void run_all(rn_pool_t* pool, products_job_t* job, size_t a_bytes, size_t b_bytes) {
  double all = (double)job->m * (double)job->n;
  double c_bytes = all * (double)job->item;
  double flops_ns = 2 * all * (double)job->k / FLOPS_PER_NS;
  double c_ns = 2 * c_bytes / (c_bytes <= CACHED_BYTES ? CACHED_BYTES_PER_NS : BYTES_PER_NS);
  double work_ns = flops_ns > c_ns ? flops_ns : c_ns;
  if (job->k >= DEEP && groups_of(job) >= MANY_GROUPS) {
    double strip_ns = (double)b_bytes / BYTES_PER_NS / (double)job->strips;
    rn_pool_for(pool, job->strips, grain_of(strip_ns), pack_strips, job);
    rn_pool_for(pool, groups_of(job), grain_of(work_ns / (double)groups_of(job)), run_groups, job);
    return;
  }
  if (job->k >= DEEP) {
    int64_t packs = groups_of(job) + job->strips;
    double pack_ns = (double)(a_bytes + b_bytes) / BYTES_PER_NS / (double)packs;
    rn_pool_for(pool, packs, grain_of(pack_ns), pack_both, job);
    int64_t pieces = groups_of(job) * ((job->strips + BAND - 1) / BAND);
    rn_pool_for(pool, pieces, grain_of(work_ns / (double)pieces), run_deep, job);
    return;
  }
  int64_t inner = job->by_rows ? job->strips : job->blocks;
  int64_t outer = job->by_rows ? job->blocks : job->strips;
  double inner_ns = (double)(job->by_rows ? b_bytes : a_bytes) / (double)inner / BYTES_PER_NS;
  rn_pool_for(pool, inner, grain_of(inner_ns), pack_inner, job);
  rn_pool_for(pool, outer, grain_of(work_ns / (double)outer), run_outer, job);
}

// Rows [begin, end) of a descent by one product of depth 1.
static void run_rows(void* arg, int64_t begin, int64_t end) {
  const products_job_t* job = arg;
  rn_outer_fn_t outer = job->item == sizeof(float) ? job->table.outer_f32 : job->table.outer_f64;
  int64_t before = 0;
  for (int s = 0; s < job->products->sides; ++s) {
    const rn_tensor_t* a = side(job, 0, s);
    int64_t first = begin > before ? begin : before, last = least(end, before + a->count);
    if (first < last)
      outer((const char*)a->data + (size_t)(first - before) * job->item, right(job, 0)->data,
            job->c + (size_t)(first * job->n) * job->item, last - first, job->n, job->descent);
    before += a->count;
  }
}

// A training step of batch 1: nothing is worth packing.
static void run_outer_product(rn_pool_t* pool, products_job_t* job) {
  double row_bytes = (double)job->n * (double)job->item;
  bool is_cached = (double)job->m * row_bytes <= CACHED_BYTES;
  double row_ns = 2 * row_bytes / (is_cached ? CACHED_BYTES_PER_NS : BYTES_PER_NS);
  rn_pool_for(pool, job->m, grain_of(row_ns), run_rows, job);
}

// Packs and multiplies all blocks; sizes and C are set.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, products_job_t* job, rn_dtype_t dtype) {
  if (job->m == 0 || job->n == 0) return RN_OK;
  job->item = rn_dtype_size(dtype);
  job->table = RN_ISA_PICK(rn_products_);
  if (job->products->count == 1 && job->k == 1 && job->descent) {
    run_outer_product(rn_ctx_pool(ctx), job);
    return RN_OK;
  }
  job->fn = dtype == RN_FLOAT ? job->table.f32 : job->table.f64;
  job->rows = job->table.tile_rows;
  job->columns = job->table.strip_bytes / (int)job->item;
  int64_t tiles = (job->m + job->rows - 1) / job->rows;
  bool is_shallow = job->products->count == 1 && job->k < DEEP;
  job->tiles = is_shallow ? SINGLE_TILES : RN_PRODUCTS_TILES;
  job->blocks = (tiles + job->tiles - 1) / job->tiles;
  job->strips = (job->n + job->columns - 1) / job->columns;
  int64_t a_count = tiles * job->rows * job->k, b_count = job->strips * job->columns * job->k;
  job->by_rows =
      b_count * (int64_t)job->item <= SMALL_B || job->m * job->n * (int64_t)job->item >= LARGE_C;
  size_t ks_bytes = (size_t)job->products->count * sizeof *job->ks;
  size_t b_bytes = (size_t)b_count * job->item, a_bytes = (size_t)a_count * job->item;
  int64_t bytes = (int64_t)(b_bytes + a_bytes + ks_bytes);
  rn_tensor_t scratch = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &scratch));
  job->b = scratch.data;
  job->a = job->b + b_bytes;
  job->ks = (int32_t*)(job->a + a_bytes);
  for (int32_t t = 0; t < job->products->count; ++t)
    job->ks[t] = (int32_t)rn_tensor_dim(right(job, t), 0);
  run_all(rn_ctx_pool(ctx), job, a_bytes, b_bytes);
  rn_tensor_clear(&scratch);
  return RN_OK;
}

rn_status_t rn_products_add(rn_kernel_ctx_t* ctx, rn_tensor_t* const* lefts,
                            rn_tensor_t* const* rights, int32_t count, bool transposes,
                            rn_tensor_t* c) {
  const planner_products_t products = {.count = count, .transposes = transposes, .sides = 1};
  products_job_t job = {.products = &products, .lefts = lefts, .rights = rights, .adds = true};
  int64_t dims[2];
  RN_RETURN_IF_ERROR(measure(&job, dims));
  if (!rn_shape_eq(rn_tensor_shape(c), (rn_shape_t){2, dims}))
    return rn_internal("The matmuls and the tensor they are added to have different shapes");
  job.c = c->data;
  return multiply(ctx, &job, c->dtype);
}

static rn_status_t sum_compute(rn_kernel_ctx_t* ctx) {
  products_job_t job = job_of(ctx);
  int64_t dims[2];
  RN_RETURN_IF_ERROR(measure(&job, dims));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  job.c = out->data;
  return multiply(ctx, &job, out->dtype);
}

// c + a b is c - (-1) a b. In a loop the sum replaces c in place, unless c is also an operand.
static rn_status_t add_compute(rn_kernel_ctx_t* ctx) {
  static const float minus_one_f32 = -1;
  static const double minus_one_f64 = -1;
  products_job_t job = job_of(ctx);
  int64_t dims[2];
  RN_RETURN_IF_ERROR(measure(&job, dims));
  const rn_tensor_t* start = rn_in(ctx, 0);
  if (!rn_shape_eq(rn_tensor_shape(start), (rn_shape_t){2, dims}))
    return rn_internal("The matmul and the tensor it is added to have different shapes");
  bool is_operand = start->data == left(&job, 0)->data || start->data == right(&job, 0)->data;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, is_operand ? 0 : 1, (rn_shape_t){2, dims}, &out));
  if (start->data != out->data) memcpy(out->data, start->data, rn_tensor_bytes(start));
  job.c = out->data;
  job.descent = out->dtype == RN_FLOAT ? (const void*)&minus_one_f32 : &minus_one_f64;
  return multiply(ctx, &job, out->dtype);
}

static rn_status_t descend_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable,
                                  products_job_t* job) {
  int64_t dims[2];
  RN_RETURN_IF_ERROR(measure(job, dims));
  if (!rn_tensor_is_set(&variable->value)) return rn_internal("Invalid variable reference.");
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  const rn_tensor_t *value = &variable->value, *alpha = rn_in(ctx, 1);
  if (alpha->rank != 0)
    return rn_invalid_argument("alpha is not a scalar: %s", rn_text_of(alpha).text);
  if (value->dtype != alpha->dtype)
    return rn_invalid_argument("var is %s, delta is %s", rn_dtype_name(value->dtype),
                               rn_dtype_name(alpha->dtype));
  if (!rn_shape_eq(rn_tensor_shape(value), (rn_shape_t){2, dims}))
    return rn_invalid_argument("var and delta do not have the same shape%s [%lld,%lld]",
                               rn_text_of(value).text, (long long)dims[0], (long long)dims[1]);
  job->c = value->data;
  job->descent = alpha->data;
  return multiply(ctx, job, value->dtype);
}

static rn_status_t descent_compute(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  products_job_t job = job_of(ctx);
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = descend_locked(ctx, variable, &job);
  rn_mutex_unlock(&variable->mutex);
  return status;
}

#define ROW(name, init_, compute_)                                                         \
  {                                                                                        \
    .op = name, .device = "CPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},             \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(planner_products_t), .init = init_, \
    .compute = compute_                                                                    \
  }
static const rn_kernel_def_t rows[] = {
    ROW("_SumOfProducts", sum_init, sum_compute),
    ROW("_AddProduct", add_init, add_compute),
    ROW("_DescentByProducts", descent_init, descent_compute),
};
RN_KERNEL_FAMILY(cpu_products, rows);
