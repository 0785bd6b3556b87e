// Matmuls with many shapes, all transposes, one to eight threads, and packed B.
//
// Small integers make every sum exact in any order, so results are compared for equality. With
// arbitrary numbers, the different code paths are compared bit by bit.
#include "kernels/cpu/gemm.h"

#include <criterion/criterion.h>

#include "../support/status.h"
#include "framework/gemm_way.h"

static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static void* room(int64_t count, rn_dtype_t dtype) {
  void* bytes = malloc((size_t)(count ? count : 1) * rn_dtype_size(dtype));
  cr_assert(bytes);
  return bytes;
}

static void fill(void* data, rn_dtype_t dtype, int64_t count, bool is_whole) {
  for (int64_t i = 0; i < count; ++i) {
    double value = is_whole ? (double)next(17) - 8 : (double)next(1 << 20) / (1 << 19) - 1;
    if (dtype == RN_FLOAT)
      ((float*)data)[i] = (float)value;
    else
      ((double*)data)[i] = value;
  }
}

static double at(const void* data, rn_dtype_t dtype, int64_t i) {
  return dtype == RN_FLOAT ? (double)((const float*)data)[i] : ((const double*)data)[i];
}

typedef struct product_t {
  rn_gemm_t gemm;
  int64_t c_count;
} product_t;

static product_t product_of(rn_dtype_t dtype, int64_t m, int64_t n, int64_t k, int transposes,
                            bool is_whole) {
  void *a = room(m * k, dtype), *b = room(k * n, dtype);
  fill(a, dtype, m * k, is_whole);
  fill(b, dtype, k * n, is_whole);
  return (product_t){.gemm = {.dtype = dtype,
                              .transpose_a = transposes & 1,
                              .transpose_b = transposes >> 1,
                              .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .b = b,
                              .c = room(m * n, dtype)},
                     .c_count = m * n};
}

static void free_product(product_t* product) {
  free((void*)product->gemm.a);
  free((void*)product->gemm.b);
  free(product->gemm.c);
}

static void run(rn_pool_t* pool, const product_t* product) {
  memset(product->gemm.c, 0xff, (size_t)product->c_count * rn_dtype_size(product->gemm.dtype));
  rn_status_t status = rn_gemm(pool, &product->gemm);
  OK(status);
}

static void check_exact(const product_t* product) {
  const rn_gemm_t* g = &product->gemm;
  double* row = room(g->n, RN_DOUBLE);
  for (int64_t i = 0; i < g->m; ++i) {
    memset(row, 0, (size_t)g->n * sizeof *row);
    for (int64_t p = 0; p < g->k; ++p) {
      double left = at(g->a, g->dtype, g->transpose_a ? p * g->m + i : i * g->k + p);
      for (int64_t j = 0; j < g->n; ++j)
        row[j] += left * at(g->b, g->dtype, g->transpose_b ? j * g->k + p : p * g->n + j);
    }
    for (int64_t j = 0; j < g->n; ++j)
      cr_assert_eq(at(g->c, g->dtype, i * g->n + j), row[j],
                   "%s %lldx%lldx%lld%s%s: C[%lld,%lld] is %g, not %g", rn_dtype_name(g->dtype),
                   (long long)g->m, (long long)g->n, (long long)g->k, g->transpose_a ? " A'" : "",
                   g->transpose_b ? " B'" : "", (long long)i, (long long)j,
                   at(g->c, g->dtype, i * g->n + j), row[j]);
  }
  free(row);
}

static void check_shape(rn_pool_t* pool, rn_dtype_t dtype, int64_t m, int64_t n, int64_t k) {
  for (int transposes = 0; transposes < 4; ++transposes) {
    product_t product = product_of(dtype, m, n, k, transposes, true);
    run(pool, &product);
    check_exact(&product);
    free_product(&product);
  }
}

static const int sides[] = {127, 128, 129, 257, 500, 1000};
enum { kSides = sizeof sides / sizeof *sides };

static int64_t any_side(void) {
  uint32_t pick = next(70 + kSides);
  return pick < 70 ? (int64_t)pick + 1 : sides[pick - 70];
}

Test(gemm, small_shapes) {
  for (int m = 1; m <= 14; ++m)
    for (int n = 1; n <= 70; n += 1 + n / 8)
      for (int k = 1; k <= 20; k += 1 + k / 3) {
        check_shape(NULL, RN_FLOAT, m, n, k);
        check_shape(NULL, RN_DOUBLE, m, n, k);
      }
}

// Every side once in every place, the others drawn.
Test(gemm, all_sides) {
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_default(), 2, &pool));
  for (int side = 1; side <= 70 + kSides; ++side) {
    int64_t length = side <= 70 ? side : sides[side - 71];
    for (int turn = 0; turn < 3; ++turn) {
      int64_t other = any_side(), third = length * other > 100000 ? 1 + next(70) : any_side();
      rn_dtype_t dtype = next(4) ? RN_FLOAT : RN_DOUBLE;
      check_shape(pool, dtype, turn == 0 ? length : third, turn == 1 ? length : other,
                  turn == 2   ? length
                  : turn == 0 ? third
                              : other);
    }
  }
  rn_pool_destroy(pool);
}

// Shapes that are cut both ways, and whose last pieces are thin.
static const int large[][3] = {
    {1000, 500, 129}, {500, 1000, 300},  {193, 257, 513},  {4, 3000, 700}, {3000, 65, 257},
    {32, 1024, 512},  {196, 1025, 1000}, {5, 2049, 600},   {2000, 3, 500}, {2000, 600, 100},
    {11937, 65, 100}, {128, 768, 768},   {128, 1300, 512}, {70, 2050, 300}};

Test(gemm, large_shapes) {
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_default(), 2, &pool));
  for (size_t i = 0; i < sizeof large / sizeof *large; ++i)
    check_shape(pool, i % 2 ? RN_DOUBLE : RN_FLOAT, large[i][0], large[i][1], large[i][2]);
  rn_pool_destroy(pool);
}

// The answer of |product| once more, on |pool|, with B packed ahead if |packs|.
static void check_same(rn_pool_t* pool, const product_t* product, const void* answer, bool packs) {
  product_t again = *product;
  rn_gemm_t* g = &again.gemm;
  void* panels = NULL;
  g->c = room(again.c_count, g->dtype);
  if (packs) {
    rn_gemm_t packing = *g;
    int64_t count = rn_gemm_panels_count(g->dtype, g->n, g->k);
    panels = packing.c = room(count, g->dtype);
    memset(panels, 0xff, (size_t)count * rn_dtype_size(g->dtype));
    rn_gemm_pack(pool, &packing);
    g->panels = panels;
  }
  run(pool, &again);
  cr_assert(memcmp(g->c, answer, (size_t)again.c_count * rn_dtype_size(g->dtype)) == 0,
            "%lldx%lldx%lld%s%s on %d threads%s", (long long)g->m, (long long)g->n, (long long)g->k,
            g->transpose_a ? " A'" : "", g->transpose_b ? " B'" : "", rn_pool_threads(pool),
            packs ? ", packed" : "");
  free(panels);
  free(g->c);
}

static bool is_dots(const rn_gemm_t* g, int64_t m) {
  return rn_gemm_way_of_matmul(m, g->n, g->k, g->transpose_a, g->transpose_b) == RN_GEMM_DOTS;
}

// Some rows computed alone are those rows of the whole, unless either are dot products: no bit
// depends on where a tile begins, nor on the way that gemm_way.h chooses.
static void check_rows(const product_t* product, const void* answer) {
  const rn_gemm_t* g = &product->gemm;
  int64_t rows = g->transpose_b ? RN_GEMM_DOT_ROWS + 1 : 1;
  if (g->transpose_a || is_dots(g, g->m) || is_dots(g, rows)) return;
  size_t row_bytes = (size_t)g->n * rn_dtype_size(g->dtype);
  for (int64_t i = 0; i + rows <= g->m; i += 1 + g->m / 9) {
    product_t some = *product;
    some.gemm.m = rows;
    some.gemm.a = (const char*)g->a + (size_t)(i * g->k) * rn_dtype_size(g->dtype);
    some.gemm.c = room(rows * g->n, g->dtype);
    some.c_count = rows * g->n;
    run(NULL, &some);
    cr_assert(memcmp(some.gemm.c, (const char*)answer + (size_t)i * row_bytes,
                     (size_t)rows * row_bytes) == 0);
    free(some.gemm.c);
  }
}

Test(gemm, same_bits) {
  rn_pool_t* pools[2] = {0};
  OK(rn_pool_create(rn_allocator_default(), 2, &pools[0]));
  OK(rn_pool_create_on(rn_allocator_default(), 8, 8, &pools[1]));  // also where there are fewer
  size_t fixed = sizeof large / sizeof *large;
  for (size_t i = 0; i < fixed + 60; ++i)
    for (int transposes = 0; transposes < 4; ++transposes) {
      int64_t m = i < fixed ? large[i][0] : any_side(), n = i < fixed ? large[i][1] : any_side();
      int64_t k = i < fixed ? large[i][2] : any_side();
      product_t product = product_of(i % 3 ? RN_FLOAT : RN_DOUBLE, m, n, k, transposes, false);
      run(NULL, &product);
      check_rows(&product, product.gemm.c);
      for (int p = 0; p < 2; ++p) {
        check_same(pools[p], &product, product.gemm.c, false);
        check_same(pools[p], &product, product.gemm.c, true);
      }
      free_product(&product);
    }
  for (int p = 0; p < 2; ++p) rn_pool_destroy(pools[p]);
}

// The columns [from, from + k) of A.
static void* columns_of(const rn_gemm_t* g, int64_t from, int64_t k) {
  size_t item = rn_dtype_size(g->dtype);
  char* out = room(g->m * k, g->dtype);
  for (int64_t i = 0; i < g->m; ++i)
    memcpy(out + (size_t)(i * k) * item, (const char*)g->a + (size_t)(i * g->k + from) * item,
           (size_t)k * item);
  return out;
}

static void add_row(const rn_gemm_t* g, const void* bias) {
  for (int64_t i = 0; i < g->m * g->n; ++i) {
    if (g->dtype == RN_FLOAT)
      ((float*)g->c)[i] += ((const float*)bias)[i % g->n];
    else
      ((double*)g->c)[i] += ((const double*)bias)[i % g->n];
  }
}

// A product in two parts of the depth, the second added to the first by panels, and then a bias.
static void check_continued(rn_pool_t* pool, rn_dtype_t dtype, int64_t m, int64_t n) {
  enum { kDepth = 41, kFirst = 17 };
  product_t product = product_of(dtype, m, n, kDepth, 0, false);
  run(NULL, &product);
  const rn_gemm_t* whole = &product.gemm;
  add_row(whole, whole->b);  // its first row serves as the bias
  rn_gemm_t part = *whole;
  void *first = columns_of(whole, 0, kFirst), *rest = columns_of(whole, kFirst, kDepth - kFirst);
  part.c = room(m * n, dtype);
  part.a = first;
  part.k = kFirst;
  OK(rn_gemm(pool, &part));
  rn_gemm_t packing = part;
  part.a = rest;
  part.b = packing.b = (const char*)whole->b + (size_t)(kFirst * n) * rn_dtype_size(dtype);
  part.k = packing.k = kDepth - kFirst;
  void* panels = packing.c = room(rn_gemm_panels_count(dtype, n, part.k), dtype);
  rn_gemm_pack(pool, &packing);
  part.panels = panels;
  part.adds = true;
  part.bias = whole->b;
  part.backwards = m % 2;
  OK(rn_gemm(pool, &part));
  cr_assert(memcmp(part.c, whole->c, (size_t)(m * n) * rn_dtype_size(dtype)) == 0, "%lldx%lld",
            (long long)m, (long long)n);
  free(panels);
  free(part.c);
  free(first);
  free(rest);
  free_product(&product);
}

Test(gemm, continued_products) {
  static const int64_t rows[] = {1, 2, 7, 50}, columns[] = {2, 31, 64, 65, 200, 1030, 20000};
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_default(), 4, &pool));
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 7; ++c) {
      check_continued(pool, RN_FLOAT, rows[r], columns[c]);
      check_continued(NULL, RN_DOUBLE, rows[r], columns[c]);
    }
  rn_pool_destroy(pool);
}
