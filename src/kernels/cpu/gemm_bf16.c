// See gemm_bf16.h.
#include "kernels/cpu/gemm_bf16.h"

// Up to this many columns, copying A would take as long as multiplying it.
#define FEW_COLUMNS 64

static const uint16_t* rows_of(const rn_bf16_way_t* way, void* arg, int64_t row, int64_t rows,
                               int64_t at, int64_t depth, uint16_t* to, int64_t* step,
                               void* scratch) {
  (void)scratch;
  const rn_gemm_t* g = arg;
  const uint16_t* a = g->a;
  if (!g->transpose_a && g->k % RN_BF16_BLOCK == 0 && rows % 16 == 0 && g->n <= FEW_COLUMNS) {
    *step = g->k;
    return a + row * g->k + at;
  }
  rn_bf16_pack_t pack = {.from = g->transpose_a ? a + at * g->m + row : a + row * g->k + at,
                         .step = g->transpose_a ? g->m : g->k,
                         .is_along = !g->transpose_a,
                         .lines = rows,
                         .depth = depth,
                         .to = to,
                         .to_step = *step};
  way->table->pack_rows(&pack);
  return to;
}

static void columns_of(const rn_bf16_way_t* way, void* arg, int64_t first, int64_t last, int64_t at,
                       int64_t depth, uint16_t* to, int64_t step) {
  const rn_gemm_t* g = arg;
  const uint16_t* b = g->b;
  rn_bf16_pack_t pack = {.from = g->transpose_b ? b + first * g->k + at : b + at * g->n + first,
                         .step = g->transpose_b ? g->k : g->n,
                         .is_along = g->transpose_b,
                         .lines = last - first,
                         .depth = depth,
                         .to = to,
                         .to_step = step};
  way->table->pack_columns(&pack);
}

static void finish(const rn_bf16_way_t* way, void* arg, float* sums, int64_t row, int64_t rows,
                   int64_t first, int64_t columns) {
  const rn_gemm_t* g = arg;
  way->table->narrow(sums, RN_BF16_WIDE, rows, columns, (uint16_t*)g->c + row * g->n + first, g->n);
}

static rn_bf16_product_t product_of(rn_gemm_t* g) {
  return (rn_bf16_product_t){.m = g->m,
                             .n = g->n,
                             .k = g->k,
                             .arg = g,
                             .rows = rows_of,
                             .columns = columns_of,
                             .panels = g->panels,
                             .finish = finish};
}

rn_status_t rn_gemm_bf16(rn_pool_t* pool, const rn_bf16_way_t* way, const rn_gemm_t* g) {
  rn_gemm_t gemm = *g;
  rn_bf16_product_t product = product_of(&gemm);
  return rn_bf16_product(pool, way, &product);
}

void rn_gemm_bf16_pack(rn_pool_t* pool, const rn_bf16_way_t* way, const rn_gemm_t* g,
                       uint16_t* panels) {
  rn_gemm_t gemm = *g;
  rn_bf16_product_t product = product_of(&gemm);
  rn_bf16_pack(pool, way, &product, panels);
}
