// The ops that graph/pass_products.c makes: sums of matrix products, and descent by them.
//
// Operands are packed into the order in which tiles read them, then every tile of C is made at
// once, in registers, over all products: C is written once, or, in descent, not at all.
#include "kernels/cpu/isa/products.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/variable.h"
#include "kernels/kernel_rows.h"

// Work for one thread, in nanoseconds, and what a processor does in one: operations and bytes.
#define PIECE_NS 40e3
#define FLOPS_PER_NS 100.0
#define BYTES_PER_NS 10.0
// Packed columns of B up to which they are swept once for each strip of rows, so that C is passed
// over in order; above it, rows of A are swept for each strip of columns.
#define SMALL_B (128 << 10)
// Rows and columns of the largest tile, for those that stick out of C.
#define MAX_TILE_BYTES (6 * 128)

typedef struct products_t {
  int32_t count;    // of products
  int first;        // input: the first A; the Bs follow the As
  bool transposes;  // A is stored k x m
} products_t;

static rn_status_t init_from(const rn_kernel_init_t* init, products_t* products, int first) {
  products->count = (int32_t)rn_init_int(init, "N");
  products->first = first;
  products->transposes = rn_init_bool(init, "transpose_a");
  return RN_OK;
}
static rn_status_t sum_init(const rn_kernel_init_t* init, void* state) {
  return init_from(init, state, 0);
}
static rn_status_t descent_init(const rn_kernel_init_t* init, void* state) {
  return init_from(init, state, 2);
}

typedef struct job_t {
  const rn_kernel_ctx_t* ctx;
  const products_t* products;
  rn_products_table_t table;
  rn_products_fn_t fn;
  size_t item;
  int64_t m, n, k;  // k: of all products together
  int columns;      // of a tile
  int64_t row_tiles, column_tiles;
  bool by_rows;  // strips are of rows
  char *a, *b;   // packed
  int32_t* ks;
  char* c;
  const void* descent;
} job_t;

static const rn_tensor_t* left(const job_t* job, int32_t t) {
  return rn_in(job->ctx, job->products->first + t);
}
static const rn_tensor_t* right(const job_t* job, int32_t t) {
  return rn_in(job->ctx, job->products->first + job->products->count + t);
}

// |rows| x |columns| of the matrix at |from| to |to|, whose rows have |width| elements; the rest is
// zero.
static void pack_rows(const char* from, int64_t step, int64_t rows, int64_t columns, int width,
                      size_t item, char* to) {
  size_t used = (size_t)columns * item, whole = (size_t)width * item;
  for (int64_t p = 0; p < rows; ++p, to += whole, from += (size_t)step * item) {
    memcpy(to, from, used);
    if (used < whole) memset(to + used, 0, whole - used);
  }
}

static void pack_across(const char* from, int64_t step, int64_t rows, int64_t columns, int width,
                        size_t item, char* to) {
  for (int64_t p = 0; p < rows; ++p, from += item)
    for (int i = 0; i < width; ++i, to += item) {
      if (i < columns)
        memcpy(to, from + (size_t)(i * step) * item, item);
      else
        memset(to, 0, item);
    }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void pack_a(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  int rows = job->table.tile.rows;
  for (int64_t tile = begin; tile < end; ++tile) {
    char* to = job->a + (size_t)(tile * job->k * rows) * job->item;
    int64_t at = tile * rows, used = least(job->m - at, rows);
    for (int32_t t = 0; t < job->products->count; ++t) {
      const char* data = left(job, t)->data;
      int64_t k = job->ks[t];
      if (job->products->transposes)
        pack_rows(data + (size_t)at * job->item, job->m, k, used, rows, job->item, to);
      else
        pack_across(data + (size_t)(at * k) * job->item, k, k, used, rows, job->item, to);
      to += (size_t)(k * rows) * job->item;
    }
  }
}

static void pack_b(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t tile = begin; tile < end; ++tile) {
    char* to = job->b + (size_t)(tile * job->k * job->columns) * job->item;
    int64_t at = tile * job->columns, used = least(job->n - at, job->columns);
    for (int32_t t = 0; t < job->products->count; ++t) {
      const char* data = right(job, t)->data;
      pack_rows(data + (size_t)at * job->item, job->n, job->ks[t], used, job->columns, job->item,
                to);
      to += (size_t)(job->ks[t] * job->columns) * job->item;
    }
  }
}

static void run_tile(const job_t* job, int64_t row_tile, int64_t column_tile) {
  int rows = job->table.tile.rows, columns = job->columns;
  int64_t row = row_tile * rows, column = column_tile * columns;
  rn_products_part_t part = {.a = job->a + (size_t)(row_tile * job->k * rows) * job->item,
                             .b = job->b + (size_t)(column_tile * job->k * columns) * job->item,
                             .c = job->c + (size_t)(row * job->n + column) * job->item,
                             .c_row = job->n,
                             .ks = job->ks,
                             .count = job->products->count,
                             .descent = job->descent};
  int64_t used_rows = least(job->m - row, rows), used_columns = least(job->n - column, columns);
  if (used_rows == rows && used_columns == columns) {
    job->fn(&part);
    return;
  }
  _Alignas(64) char edge[MAX_TILE_BYTES] = {0};
  char* c = part.c;
  size_t whole = (size_t)columns * job->item, used = (size_t)used_columns * job->item;
  size_t step = (size_t)job->n * job->item;
  if (job->descent)
    for (int64_t i = 0; i < used_rows; ++i)
      memcpy(edge + (size_t)i * whole, c + (size_t)i * step, used);
  part.c = edge;
  part.c_row = columns;
  job->fn(&part);
  for (int64_t i = 0; i < used_rows; ++i)
    memcpy(c + (size_t)i * step, edge + (size_t)i * whole, used);
}

static void run_strips(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t outer = begin; outer < end; ++outer) {
    if (job->by_rows)
      for (int64_t j = 0; j < job->column_tiles; ++j) run_tile(job, outer, j);
    else
      for (int64_t i = 0; i < job->row_tiles; ++i) run_tile(job, i, outer);
  }
}

// Takes the sizes from the operands; |c_shape| becomes C's.
static rn_status_t measure(job_t* job, int64_t c_shape[2]) {
  for (int32_t t = 0; t < job->products->count; ++t) {
    const rn_tensor_t *a = left(job, t), *b = right(job, t);
    if (a->rank != 2 || b->rank != 2) return rn_internal("A sum of products of no matrices");
    int64_t m = rn_tensor_dim(a, job->products->transposes ? 1 : 0);
    int64_t k = rn_tensor_dim(a, job->products->transposes ? 0 : 1);
    int64_t n = rn_tensor_dim(b, 1);
    if (t == 0) {
      job->m = m;
      job->n = n;
    }
    if (m != job->m || n != job->n || k != rn_tensor_dim(b, 0) || k < 1 || k > INT32_MAX)
      return rn_internal("A sum of products of different shapes");
    job->k += k;
  }
  c_shape[0] = job->m;
  c_shape[1] = job->n;
  return RN_OK;
}

// With sizes and C set: packs, and runs over all tiles.
static rn_status_t multiply(rn_kernel_ctx_t* ctx, job_t* job, rn_dtype_t dtype) {
  if (job->m == 0 || job->n == 0) return RN_OK;
  job->item = rn_dtype_size(dtype);
  job->table = RN_ISA_PICK(rn_products_);
  job->fn = dtype == RN_FLOAT ? job->table.f32 : job->table.f64;
  job->columns = job->table.tile.column_bytes / (int)job->item;
  int rows = job->table.tile.rows;
  job->row_tiles = (job->m + rows - 1) / rows;
  job->column_tiles = (job->n + job->columns - 1) / job->columns;
  int64_t a_count = job->row_tiles * rows * job->k;
  int64_t b_count = job->column_tiles * job->columns * job->k;
  job->by_rows = b_count * (int64_t)job->item <= SMALL_B;
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
  rn_pool_t* pool = rn_ctx_pool(ctx);
  int64_t grain = (int64_t)(PIECE_NS * BYTES_PER_NS) / (job->k * job->columns * 4) + 1;
  rn_pool_for(pool, job->row_tiles, grain, pack_a, job);
  rn_pool_for(pool, job->column_tiles, grain, pack_b, job);
  double all = (double)job->m * (double)job->n;
  double flops = 2 * all * (double)job->k / FLOPS_PER_NS, bytes_c = 8 * all / BYTES_PER_NS;
  int64_t strips = job->by_rows ? job->row_tiles : job->column_tiles;
  double strip_ns = (flops > bytes_c ? flops : bytes_c) / (double)strips;
  rn_pool_for(pool, strips, (int64_t)(PIECE_NS / strip_ns) + 1, run_strips, job);
  rn_tensor_clear(&scratch);
  return RN_OK;
}

static rn_status_t sum_compute(rn_kernel_ctx_t* ctx) {
  job_t job = {.ctx = ctx, .products = ctx->state};
  int64_t dims[2];
  RN_RETURN_IF_ERROR(measure(&job, dims));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  job.c = out->data;
  return multiply(ctx, &job, out->dtype);
}

static rn_status_t descend_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable, job_t* job) {
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
  job_t job = {.ctx = ctx, .products = ctx->state};
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = descend_locked(ctx, variable, &job);
  rn_mutex_unlock(&variable->mutex);
  return status;
}

#define ROW(name, init_, compute_)                                                 \
  {                                                                                \
    .op = name, .device = "CPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},     \
    .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(products_t), .init = init_, \
    .compute = compute_                                                            \
  }
static const rn_kernel_def_t rows[] = {
    ROW("_SumOfProducts", sum_init, sum_compute),
    ROW("_DescentByProducts", descent_init, descent_compute),
};
RN_KERNEL_FAMILY(cpu_products, rows);
