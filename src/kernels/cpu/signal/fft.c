// Fourier transforms along axes: see fft.h.
#include "kernels/cpu/signal/fft.h"

#include "kernels/cpu/scratch.h"

// Numbers per piece of work.
#define PIECE 32768
// The longest rows that run side by side although each alone vectorizes.
#define LANES_LENGTH 128
// Columns that run side by side: as many as the L1 cache holds, but whole cache lines.
#define COLUMN_LANES 16
#define COLUMN_NUMBERS 2048

// The arrays of one piece, and a row for the lanes that no row of the output uses.
typedef struct fft_scratch_t {
  rn_fft_arrays_t arrays;
  void* spare;
  rn_scratch_t memory;
} fft_scratch_t;

static rn_status_t scratch_init(fft_scratch_t* scratch, rn_allocator_t allocator,
                                const rn_fft_t* fft, int64_t lanes, size_t spare) {
  size_t plane, size;
  if (!rn_mul_ok((size_t)(fft->plan.inner + 1) * rn_fft_item(fft->width), (size_t)lanes, &plane) ||
      !rn_mul_ok(4, plane, &size) || !rn_add_ok(size, spare, &size))
    return rn_resource_exhausted("FFT too large");
  RN_RETURN_IF_ERROR(rn_scratch_init(&scratch->memory, allocator, size));
  char* at = scratch->memory.at;
  scratch->arrays = (rn_fft_arrays_t){at, at + plane, at + 2 * plane, at + 3 * plane};
  scratch->spare = at + 4 * plane;
  return RN_OK;
}

// Going backward is going forward with the real and imaginary parts exchanged.
static void run(const rn_fft_t* fft, bool is_backward, int64_t lanes, rn_fft_arrays_t* arrays) {
  if (!is_backward) {
    fft->fns->run(&fft->plan, lanes, arrays);
    return;
  }
  rn_fft_arrays_t back = {arrays->im, arrays->re, arrays->im2, arrays->re2};
  fft->fns->run(&fft->plan, lanes, &back);
  *arrays = (rn_fft_arrays_t){back.im, back.re, back.im2, back.re2};
}

// ---- rows

typedef struct fft_rows_job_t {
  const rn_fft_rows_t* rows;
  const rn_fft_t* fft;
  rn_allocator_t allocator;
  int64_t count, lanes, out_row;
  size_t in_item, out_item;  // bytes per number
  bool is_half;              // a real transform of even length, by a complex one of half of it
  rn_status_t error;
} fft_rows_job_t;

// The row of the input that belongs to row |r| of the output; NULL for zeros.
static const char* source(const fft_rows_job_t* job, int64_t r) {
  const rn_fft_rows_t* rows = job->rows;
  int64_t row = 0, stride = 1;
  for (int d = rows->rank - 1; d >= 0; --d) {
    int64_t i = r % rows->out_dims[d];
    r /= rows->out_dims[d];
    if (i >= rows->in_dims[d]) return NULL;
    row += i * stride;
    stride *= rows->in_dims[d];
  }
  return (const char*)rows->in + (size_t)(row * rows->in_row) * job->in_item;
}

static char* element(void* plane, size_t item, int64_t i) {
  return (char*)plane + (size_t)i * item;
}

// Reads rows in planar form: |used| numbers each, of |lanes| rows. Real rows whose transform is a
// complex one of half the length count as complex.
static void read_rows(const fft_rows_job_t* job, const void* const* in, int64_t used, int64_t n,
                      void* re, void* im) {
  const rn_fft_fns_t* fns = job->fft->fns;
  size_t item = rn_fft_item(job->rows->width);
  int64_t lanes = job->lanes;
  bool is_real = job->rows->kind == RN_FFT_FROM_REAL && !job->is_half;
  bool is_paired = job->rows->kind == RN_FFT_FROM_REAL && job->is_half;
  int64_t have = is_paired ? used / 2 : used;
  if (lanes > 1)
    fns->turn_in(in, re, is_real ? NULL : im, have);
  else if (is_real)
    memcpy(re, in[0], (size_t)have * item);
  else
    fns->split(in[0], re, im, have);
  memset(element(re, item, have * lanes), 0, (size_t)((n - have) * lanes) * item);
  int64_t from = is_real ? 0 : have;
  memset(element(im, item, from * lanes), 0, (size_t)((n - from) * lanes) * item);
  for (int64_t l = 0; is_paired && used % 2 && l < lanes; ++l)
    memcpy(element(re, item, have * lanes + l), (const char*)in[l] + (size_t)(used - 1) * item,
           item);
}

// Loads |count| rows from |first| on. Lanes without a row repeat the last one.
static void load(const fft_rows_job_t* job, int64_t first, int64_t count, rn_fft_arrays_t* arrays) {
  const rn_fft_rows_t* rows = job->rows;
  const rn_fft_t* fft = job->fft;
  const void* in[RN_FFT_LANES];
  int64_t used = rows->in_used, n = fft->plan.n;
  for (int64_t l = 0; l < job->lanes; ++l) in[l] = l < count ? source(job, first + l) : in[l - 1];
  if (!in[0]) used = 0;  // there is one lane then
  if (rows->kind == RN_FFT_TO_REAL && job->is_half) {
    read_rows(job, in, used, n + 1, arrays->re2, arrays->im2);
    fft->fns->to_half(arrays->re2, arrays->im2, fft->half_roots, arrays->re, arrays->im, n,
                      job->lanes);
    return;
  }
  read_rows(job, in, used, n, arrays->re, arrays->im);
  if (rows->kind == RN_FFT_TO_REAL) fft->fns->mirror(arrays->re, arrays->im, n, job->lanes);
}

static void store(const fft_rows_job_t* job, int64_t first, int64_t count, rn_fft_arrays_t a,
                  void* spare) {
  const rn_fft_rows_t* rows = job->rows;
  const rn_fft_fns_t* fns = job->fft->fns;
  const void *re = a.re, *im = a.im;
  void* out[RN_FFT_LANES];
  int64_t n = job->out_row;
  for (int64_t l = 0; l < job->lanes; ++l)
    out[l] = l < count ? element(rows->out, job->out_item, (first + l) * job->out_row) : spare;
  if (rows->kind == RN_FFT_FROM_REAL && job->is_half) {
    fns->from_half(re, im, job->fft->half_roots, a.re2, a.im2, rows->n / 2, job->lanes);
    re = a.re2, im = a.im2;
  } else if (rows->kind == RN_FFT_TO_REAL) {
    n = job->fft->plan.n;
    if (!job->is_half) im = NULL;
  }
  if (job->lanes > 1)
    fns->turn_out(re, im, out, n, rows->scale);
  else if (im)
    fns->join(re, im, out[0], n, rows->scale);
  else
    fns->scale(re, out[0], n, rows->scale);
}

static void rows_piece(void* arg, int64_t begin, int64_t end) {
  fft_rows_job_t* job = arg;
  fft_scratch_t scratch = {0};
  rn_status_t status = scratch_init(&scratch, job->allocator, job->fft, job->lanes,
                                    (size_t)job->out_row * job->out_item);
  if (!rn_ok(status)) {
    rn_keep_first_error(&job->error, status);
    return;
  }
  for (int64_t r = begin; r < end; r += job->lanes) {
    int64_t count = end - r < job->lanes ? end - r : job->lanes;
    load(job, r, count, &scratch.arrays);
    run(job->fft, job->rows->is_backward, job->lanes, &scratch.arrays);
    store(job, r, count, scratch.arrays, scratch.spare);
  }
  rn_scratch_free(&scratch.memory);
}

// Side by side where a row alone does not vectorize well and the cache holds the lanes.
static int64_t lanes_for(const rn_fft_rows_t* rows, const rn_fft_t* fft, int64_t count) {
  for (int d = 0; d < rows->rank; ++d)
    if (rows->out_dims[d] > rows->in_dims[d]) return 1;  // some rows are zeros
  if (fft->plan.inner % 8 && count > 1) return RN_FFT_LANES;
  return count >= RN_FFT_LANES && fft->plan.inner <= LANES_LENGTH ? RN_FFT_LANES : 1;
}

rn_status_t rn_fft_rows(const rn_fft_env_t* env, const rn_fft_rows_t* rows) {
  bool is_half = rows->kind != RN_FFT_COMPLEX && rows->n % 2 == 0;
  int64_t n = is_half ? rows->n / 2 : rows->n, count = 1;
  size_t item = rn_fft_item(rows->width);
  rn_fft_t* fft = NULL;
  RN_RETURN_IF_ERROR(rn_fft_cache_get(env->cache, env->allocator, n, rows->width, is_half, &fft));
  for (int d = 0; d < rows->rank; ++d) count *= rows->out_dims[d];
  fft_rows_job_t job = {
      .rows = rows,
      .fft = fft,
      .allocator = env->allocator,
      .count = count,
      .lanes = lanes_for(rows, fft, count),
      .out_row = rows->kind == RN_FFT_FROM_REAL ? rows->n / 2 + 1 : rows->n,
      .in_item = rows->kind == RN_FFT_FROM_REAL ? item : 2 * item,
      .out_item = rows->kind == RN_FFT_TO_REAL ? item : 2 * item,
      .is_half = is_half,
  };
  int64_t grain = (PIECE / (fft->plan.inner * job.lanes) + 1) * job.lanes;
  rn_pool_for(env->pool, count, grain, rows_piece, &job);
  rn_fft_release(fft);
  return job.error;
}

// ---- columns

typedef struct fft_columns_job_t {
  const rn_fft_columns_t* columns;
  const rn_fft_t* fft;
  rn_allocator_t allocator;
  int64_t lanes, blocks;  // blocks of |lanes| columns per outer index
  rn_status_t error;
} fft_columns_job_t;

static void columns_piece(void* arg, int64_t begin, int64_t end) {
  fft_columns_job_t* job = arg;
  const rn_fft_columns_t* c = job->columns;
  const rn_fft_fns_t* fns = job->fft->fns;
  size_t item = rn_fft_item(c->width);
  fft_scratch_t scratch = {0};
  rn_status_t status = scratch_init(&scratch, job->allocator, job->fft, job->lanes, 0);
  if (!rn_ok(status)) {
    rn_keep_first_error(&job->error, status);
    return;
  }
  for (int64_t b = begin; b < end; ++b) {
    int64_t first = b % job->blocks * job->lanes;
    int64_t lanes = c->inner - first < job->lanes ? c->inner - first : job->lanes;
    char* at = (char*)c->data + (size_t)(b / job->blocks * c->n * c->inner + first) * 2 * item;
    rn_fft_arrays_t arrays = scratch.arrays;
    size_t row = (size_t)c->inner * 2 * item, plane = (size_t)lanes * item;
    for (int64_t j = 0; j < c->n; ++j)
      fns->split(at + (size_t)j * row, (char*)arrays.re + (size_t)j * plane,
                 (char*)arrays.im + (size_t)j * plane, lanes);
    run(job->fft, c->is_backward, lanes, &arrays);
    for (int64_t j = 0; j < c->n; ++j)
      fns->join((char*)arrays.re + (size_t)j * plane, (char*)arrays.im + (size_t)j * plane,
                at + (size_t)j * row, lanes, c->scale);
  }
  rn_scratch_free(&scratch.memory);
}

rn_status_t rn_fft_columns(const rn_fft_env_t* env, const rn_fft_columns_t* columns) {
  rn_fft_t* fft = NULL;
  RN_RETURN_IF_ERROR(
      rn_fft_cache_get(env->cache, env->allocator, columns->n, columns->width, false, &fft));
  int64_t lanes = COLUMN_NUMBERS / fft->plan.inner / COLUMN_LANES * COLUMN_LANES;
  if (lanes < COLUMN_LANES) lanes = COLUMN_LANES;
  if (lanes > columns->inner) lanes = columns->inner;
  fft_columns_job_t job = {.columns = columns,
                           .fft = fft,
                           .allocator = env->allocator,
                           .lanes = lanes,
                           .blocks = (columns->inner + lanes - 1) / lanes};
  int64_t grain = PIECE / (fft->plan.inner * lanes) + 1;
  rn_pool_for(env->pool, columns->outer * job.blocks, grain, columns_piece, &job);
  rn_fft_release(fft);
  return job.error;
}
