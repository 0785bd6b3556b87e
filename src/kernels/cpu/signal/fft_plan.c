// Plans of Fourier transforms: see fft_plan.h.
#include "kernels/cpu/signal/fft_plan.h"

#include <math.h>

#include "kernels/cpu/isa.h"

// The tables of a plan while they are laid out: first counted, then filled.
typedef struct tables_t {
  rn_fft_width_t width;
  char* data;  // NULL while counting
  int64_t used;
} tables_t;

static void* take(tables_t* tables, int64_t count) {
  void* at = tables->data ? tables->data + (size_t)tables->used * rn_fft_item(tables->width) : NULL;
  tables->used += count;
  return at;
}

static void put(const tables_t* tables, void* table, int64_t i, double value) {
  if (tables->width == RN_FFT_DOUBLE)
    ((double*)table)[i] = value;
  else
    ((float*)table)[i] = (float)value;
}

// exp(-2 pi i k / n) for 0 <= k < n. The angle is taken from the first octant, where the functions
// are most exact.
static void root(int64_t k, int64_t n, double* re, double* im) {
  int64_t t = 8 * k;  // the angle is pi t / (4 n)
  double sign_re = 1, sign_im = -1;
  if (t > 4 * n) t = 8 * n - t, sign_im = 1;
  if (t > 2 * n) t = 4 * n - t, sign_re = -1;
  bool swaps = t > n;
  if (swaps) t = 2 * n - t;
  double angle = 3.14159265358979323846 * ((double)t / (double)(4 * n));
  double c = cos(angle), s = sin(angle);
  *re = sign_re * (swaps ? s : c);
  *im = sign_im * (swaps ? c : s);
}

static void put_root(const tables_t* tables, void* table, int64_t i, int64_t imaginary, int64_t k,
                     int64_t n) {
  double re, im;
  root(k, n, &re, &im);
  put(tables, table, i, re);
  put(tables, table, imaginary + i, im);
}

static int64_t largest_prime(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    while (n % p == 0) n /= p, largest = p;
  return n > 1 ? n : largest;
}

// The least 2^a 3^b 5^c >= n with a >= 3.
static int64_t good_length(int64_t n) {
  int64_t best = 8;
  while (best < n) best *= 2;
  for (int64_t five = 1; 8 * five <= best; five *= 5)
    for (int64_t three = five; 8 * three <= best; three *= 3) {
      int64_t m = 8 * three;
      while (m < n) m *= 2;
      if (m < best) best = m;
    }
  return best;
}

// The radices of the passes. Eights first: the first pass of a single transform vectorizes only
// where the radix is a power of two, and after it there are eight neighbours.
static int32_t factor(int64_t n, int64_t* radices) {
  int32_t count = 0;
  int twos = 0;
  while (n % 2 == 0) n /= 2, ++twos;
  int first = twos >= 3 ? 3 : twos;
  if (first) radices[count++] = 1 << first;
  twos -= first;
  for (int64_t p = 3; n > 1; p += 2)
    while (n % p == 0) radices[count++] = p, n /= p;
  while (twos) {
    int bits = twos == 1 ? 1 : twos == 2 || twos == 4 ? 2 : 3;
    radices[count++] = 1 << bits;
    twos -= bits;
  }
  return count;
}

static void lay_passes(rn_fft_plan_t* plan, tables_t* tables) {
  int64_t radices[RN_FFT_MAX_PASSES], n = plan->inner;
  plan->pass_count = factor(n, radices);
  for (int32_t i = 0; i < plan->pass_count; ++i) {
    int64_t r = radices[i], m = n / r;
    void* twiddles = take(tables, 2 * (r - 1) * m);
    bool is_odd = r > 8;  // the others have code of their own
    void* roots = is_odd ? take(tables, 2 * r) : NULL;
    if (tables->data) {
      for (int64_t k = 1; k < r; ++k)
        for (int64_t p = 0; p < m; ++p)
          put_root(tables, twiddles, (k - 1) * m + p, (r - 1) * m, k * p, n);
      for (int64_t j = 0; is_odd && j < r; ++j) {
        double re, im;
        root(j, r, &re, &im);
        put(tables, roots, j, re);
        put(tables, roots, r + j, -im);
      }
    }
    plan->passes[i] = (rn_fft_pass_t){r, m, twiddles, roots};
    n = m;
  }
}

// The chirp and the transform of its conjugate, which is the filter. |scratch| holds 4 * inner
// numbers.
static void lay_chirp(rn_fft_t* fft, tables_t* tables, void* scratch) {
  rn_fft_plan_t* plan = &fft->plan;
  int64_t n = plan->n, m = plan->inner;
  void *chirp = take(tables, 2 * n), *filter = take(tables, 2 * m);
  plan->chirp = chirp, plan->filter = filter;
  if (!tables->data) return;
  size_t item = rn_fft_item(fft->width), bytes = (size_t)m * item;
  char* at = scratch;
  memset(scratch, 0, 4 * bytes);
  rn_fft_arrays_t arrays = {at, at + bytes, at + 2 * bytes, at + 3 * bytes};
  int64_t square = 0;  // j^2 mod 2 n
  for (int64_t j = 0; j < n; ++j) {
    double re, im;
    root(square, 2 * n, &re, &im);
    put(tables, chirp, j, re);
    put(tables, chirp, n + j, im);
    // The convolution's scale of 1 / m is part of the filter.
    re /= (double)m, im /= (double)m;
    put(tables, arrays.re, j, re);
    put(tables, arrays.im, j, -im);
    if (j) {
      put(tables, arrays.re, m - j, re);
      put(tables, arrays.im, m - j, -im);
    }
    square = (square + 2 * j + 1) % (2 * n);
  }
  rn_fft_plan_t passes = *plan;
  passes.chirp = NULL;
  fft->fns->run(&passes, 1, &arrays);
  memcpy(filter, arrays.re, bytes);
  memcpy((char*)filter + bytes, arrays.im, bytes);
}

static void lay(rn_fft_t* fft, tables_t* tables, bool has_half_roots, void* scratch) {
  rn_fft_plan_t* plan = &fft->plan;
  lay_passes(plan, tables);
  if (plan->inner != plan->n) lay_chirp(fft, tables, scratch);
  if (!has_half_roots) return;
  int64_t h = plan->n;
  void* roots = take(tables, 2 * (h + 1));
  fft->half_roots = roots;
  for (int64_t k = 0; tables->data && k <= h; ++k) put_root(tables, roots, k, h + 1, k, 2 * h);
}

static rn_status_t create(rn_allocator_t allocator, int64_t n, rn_fft_width_t width,
                          bool has_half_roots, rn_fft_t** out) {
  if (n >= INT64_C(1) << 40) return rn_resource_exhausted("FFT of more than 2^40 elements");
  rn_fft_t* fft = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &fft));
  fft->allocator = allocator;
  fft->width = width;
  fft->fns = &RN_ISA_PICK_NARROW(rn_fft_)[width];
  fft->references = 1;
  fft->plan.n = n;
  fft->plan.inner = largest_prime(n) > RN_FFT_MAX_PRIME ? good_length(2 * n - 1) : n;
  tables_t tables = {.width = width};
  lay(fft, &tables, has_half_roots, NULL);
  fft->tables_size = (size_t)tables.used * rn_fft_item(width);
  void* scratch = NULL;
  size_t scratch_size = 4 * (size_t)fft->plan.inner * rn_fft_item(width);
  rn_status_t status = rn_alloc(allocator, fft->tables_size, &fft->tables);
  if (rn_ok(status) && fft->plan.inner != n) status = rn_alloc(allocator, scratch_size, &scratch);
  if (!rn_ok(status)) {
    rn_fft_release(fft);
    return status;
  }
  tables = (tables_t){.width = width, .data = fft->tables};
  lay(fft, &tables, has_half_roots, scratch);
  rn_free(allocator, scratch, scratch_size);
  *out = fft;
  return RN_OK;
}

void rn_fft_release(rn_fft_t* fft) {
  if (!fft || --fft->references) return;
  rn_free(fft->allocator, fft->tables, fft->tables_size);
  RN_FREE(fft->allocator, fft);
}

void rn_fft_cache_init(rn_fft_cache_t* cache) { rn_mutex_init(&cache->mutex); }

void rn_fft_cache_clear(rn_fft_cache_t* cache) {
  for (int i = 0; i < RN_FFT_CACHE_SIZE; ++i) rn_fft_release(cache->items[i]);
  rn_mutex_destroy(&cache->mutex);
}

rn_status_t rn_fft_cache_get(rn_fft_cache_t* cache, rn_allocator_t allocator, int64_t n,
                             rn_fft_width_t width, bool has_half_roots, rn_fft_t** out) {
  rn_mutex_lock(&cache->mutex);
  for (int i = 0; i < RN_FFT_CACHE_SIZE && cache->items[i]; ++i) {
    rn_fft_t* fft = cache->items[i];
    if (fft->plan.n != n || fft->width != width || (has_half_roots && !fft->half_roots)) continue;
    ++fft->references;
    *out = fft;
    rn_mutex_unlock(&cache->mutex);
    return RN_OK;
  }
  rn_mutex_unlock(&cache->mutex);
  rn_fft_t* fft = NULL;
  RN_RETURN_IF_ERROR(create(allocator, n, width, has_half_roots, &fft));
  ++fft->references;
  rn_mutex_lock(&cache->mutex);
  rn_fft_t* last = cache->items[RN_FFT_CACHE_SIZE - 1];
  memmove(cache->items + 1, cache->items, (RN_FFT_CACHE_SIZE - 1) * sizeof *cache->items);
  cache->items[0] = fft;
  rn_mutex_unlock(&cache->mutex);
  rn_fft_release(last);
  *out = fft;
  return RN_OK;
}
