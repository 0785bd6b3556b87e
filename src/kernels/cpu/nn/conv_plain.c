// Convolutions by GEMM (im2col), for the types and shapes that oneDNN does not support.
//
// The image patch of every output position becomes a row of a matrix, [positions, patch]. Then
//   y = rows w,   the patches' gradient = y w',   w's gradient = rows' y.
// This works on bands of output rows, so that the matrix stays in the cache; a 1x1 filter needs no
// copy, because the image is the matrix. Bands run in parallel. In gradients, which accumulate over
// the bands of an image, images run in parallel instead, or the GEMMs do if there are few images.
// Sums are always in the order of the bands, then of the images.
#include "kernels/cpu/first_error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/nn/conv.h"
#include "kernels/cpu/vector.h"

// Bytes of a band's matrix: about the L2 cache of a core.
#define BAND_BYTES (512 << 10)
// Batches of fewer images do not keep the threads busy.
#define FEW_IMAGES 8

typedef struct conv_plain_job_t {
  const rn_conv_t* conv;
  rn_dtype_t dtype;
  rn_conv_data_t data;
  size_t item;
  int64_t depth;       // channels per group of x
  int64_t out_depth;   // channels per group of y
  int64_t patch;       // elements
  int64_t height;      // output rows per band
  int64_t bands;       // per image
  bool is_matrix;      // the image is the matrix: no copy needed
  rn_pool_t* pool;     // for the GEMMs; NULL to use the calling thread only
  void* parts;         // gradients of w, one per image
  rn_status_t status;  // see rn_keep_first_error
} conv_plain_job_t;

// Called per element position of each patch: |image| is the row of |depth| channels there, NULL
// outside the image, and |at| its place in the matrix.
typedef void (*visit_fn_t)(const conv_plain_job_t* job, char* image, char* at);

static void copy_out(const conv_plain_job_t* job, char* image, char* at) {
  size_t bytes = (size_t)job->depth * job->item;
  if (image)
    memcpy(at, image, bytes);
  else
    memset(at, 0, bytes);
}

static void add_back(const conv_plain_job_t* job, char* image, char* at) {
  if (image) rn_vector_run(RN_VECTOR_ADD, job->dtype, image, 1, at, 1, image, job->depth);
}

// A band: output rows [begin, end) of an image, and its buffers.
typedef struct conv_plain_band_t {
  int64_t begin, end;
  int64_t positions;
  char *x, *y, *w;  // of the image, of the band, of the image
  char *matrix, *w_part, *y_part;
} conv_plain_band_t;

static void walk(const conv_plain_job_t* job, const conv_plain_band_t* band, int64_t group,
                 visit_fn_t visit) {
  const rn_window_axis_t *rows = &job->conv->rows, *columns = &job->conv->columns;
  size_t step = (size_t)job->depth * job->item;
  size_t pixel = (size_t)job->conv->in_depth * job->item;
  char *x = band->x + (size_t)group * step, *matrix = band->matrix;
  for (int64_t r = band->begin; r < band->end; ++r)
    for (int64_t c = 0; c < columns->out; ++c)
      for (int64_t i = 0; i < rows->filter; ++i) {
        int64_t row = r * rows->stride - rows->before + i * rows->dilation;
        for (int64_t j = 0; j < columns->filter; ++j, matrix += step) {
          int64_t column = c * columns->stride - columns->before + j * columns->dilation;
          bool inside = row >= 0 && row < rows->in && column >= 0 && column < columns->in;
          visit(job, inside ? x + (size_t)(row * columns->in + column) * pixel : NULL, matrix);
        }
      }
}

// Copies the columns of one group out of rows of |width| elements, or back into them.
static void take_columns(const conv_plain_job_t* job, const char* from, char* to, int64_t rows,
                         int64_t width, int64_t first, bool back) {
  size_t part = (size_t)job->out_depth * job->item, whole = (size_t)width * job->item;
  size_t offset = (size_t)first * job->item;
  for (int64_t i = 0; i < rows; ++i) {
    if (back)
      memcpy(to + (size_t)i * whole + offset, from + (size_t)i * part, part);
    else
      memcpy(to + (size_t)i * part, from + (size_t)i * whole + offset, part);
  }
}

// One group of a band; |w| and |y| are dense and hold only the group.
static rn_status_t run_group(const conv_plain_job_t* job, const conv_plain_band_t* band, char* w,
                             char* y, int64_t group) {
  size_t pixel = (size_t)job->conv->in_depth * job->item;
  char* matrix = job->is_matrix ? band->x + (size_t)(band->begin * job->conv->columns.in) * pixel
                                : band->matrix;
  rn_gemm_t gemm = {.dtype = job->dtype};
  if (job->conv->kind == RN_CONV_INPUT) {
    gemm.m = band->positions, gemm.k = job->out_depth, gemm.n = job->patch;
    gemm.a = y, gemm.b = w, gemm.c = matrix;
    gemm.transpose_b = true;
    RN_RETURN_IF_ERROR(rn_gemm(job->pool, &gemm));
    if (!job->is_matrix) walk(job, band, group, add_back);
    return RN_OK;
  }
  if (!job->is_matrix) walk(job, band, group, copy_out);
  gemm.a = matrix;
  if (job->conv->kind == RN_CONV_FORWARD) {
    gemm.m = band->positions, gemm.k = job->patch, gemm.n = job->out_depth;
    gemm.b = w, gemm.c = y;
  } else {
    gemm.m = job->patch, gemm.k = band->positions, gemm.n = job->out_depth;
    gemm.b = y, gemm.c = w;
    gemm.transpose_a = true;
  }
  return rn_gemm(job->pool, &gemm);
}

static rn_status_t run_groups(const conv_plain_job_t* job, const conv_plain_band_t* band) {
  const rn_conv_t* conv = job->conv;
  if (conv->groups == 1) return run_group(job, band, band->w, band->y, 0);
  for (int64_t group = 0; group < conv->groups; ++group) {
    int64_t first = group * job->out_depth;
    if (conv->kind != RN_CONV_FILTER)
      take_columns(job, band->w, band->w_part, job->patch, conv->out_depth, first, false);
    if (conv->kind != RN_CONV_FORWARD)
      take_columns(job, band->y, band->y_part, band->positions, conv->out_depth, first, false);
    RN_RETURN_IF_ERROR(run_group(job, band, band->w_part, band->y_part, group));
    if (conv->kind == RN_CONV_FILTER)
      take_columns(job, band->w_part, band->w, job->patch, conv->out_depth, first, true);
    if (conv->kind == RN_CONV_FORWARD)
      take_columns(job, band->y_part, band->y, band->positions, conv->out_depth, first, true);
  }
  return RN_OK;
}

// Band |number|, counted over all images. |sum| has space for a filter: a band after the first adds
// its gradient to the image's through it.
static rn_status_t run_band(const conv_plain_job_t* job, int64_t number, conv_plain_band_t band,
                            char* sum) {
  const rn_conv_t* conv = job->conv;
  int64_t image = number / job->bands, w_size = rn_conv_w_size(conv);
  band.begin = number % job->bands * job->height;
  band.end = band.begin + job->height < conv->rows.out ? band.begin + job->height : conv->rows.out;
  band.positions = (band.end - band.begin) * conv->columns.out;
  band.x = (char*)job->data.x + (size_t)(image * rn_conv_x_size(conv)) * job->item;
  int64_t y_at = image * rn_conv_y_size(conv) + band.begin * conv->columns.out * conv->out_depth;
  band.y = (char*)job->data.y + (size_t)y_at * job->item;
  band.w = job->data.w;
  if (conv->kind != RN_CONV_FILTER) {
    if (conv->kind == RN_CONV_INPUT && band.begin == 0 && !job->is_matrix)
      memset(band.x, 0, (size_t)rn_conv_x_size(conv) * job->item);
    return run_groups(job, &band);
  }
  char* part = (char*)job->parts + (size_t)(image * w_size) * job->item;
  band.w = band.begin == 0 ? part : sum;
  RN_RETURN_IF_ERROR(run_groups(job, &band));
  if (band.begin != 0) rn_vector_run(RN_VECTOR_ADD, job->dtype, part, 1, sum, 1, part, w_size);
  return RN_OK;
}

static rn_status_t run_bands(const conv_plain_job_t* job, int64_t begin, int64_t end) {
  const rn_conv_t* conv = job->conv;
  int64_t positions = job->height * conv->columns.out, sizes[4] = {0}, total = 0;
  if (!job->is_matrix && !rn_mul_i64_ok(positions, job->patch, &sizes[0]))
    return rn_out_of_memory();
  if (conv->groups > 1) {
    sizes[1] = job->patch * job->out_depth;
    sizes[2] = positions * job->out_depth;
  }
  if (conv->kind == RN_CONV_FILTER && job->bands > 1) sizes[3] = rn_conv_w_size(conv);
  for (int i = 0; i < 4; ++i)
    if (!rn_add_i64_ok(total, sizes[i], &total)) return rn_out_of_memory();
  size_t bytes = 0;
  if (!rn_mul_ok((size_t)total + 1, job->item, &bytes)) return rn_out_of_memory();
  char* memory = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), bytes, (void**)&memory));
  conv_plain_band_t band = {.matrix = memory};
  band.w_part = band.matrix + (size_t)sizes[0] * job->item;
  band.y_part = band.w_part + (size_t)sizes[1] * job->item;
  char* sum = band.y_part + (size_t)sizes[2] * job->item;
  rn_status_t status = RN_OK;
  for (int64_t i = begin; i < end && rn_ok(status); ++i) status = run_band(job, i, band, sum);
  rn_free(rn_allocator_default(), memory, bytes);
  return status;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  conv_plain_job_t* job = arg;
  rn_keep_first_error(&job->status, run_bands(job, begin, end));
}

static void run_images(void* arg, int64_t begin, int64_t end) {
  conv_plain_job_t* job = arg;
  rn_keep_first_error(&job->status, run_bands(job, begin * job->bands, end * job->bands));
}

// Runs the bands of all images; they and their partition depend on sizes alone.
static void run_all(rn_kernel_ctx_t* ctx, conv_plain_job_t* job) {
  const rn_conv_t* conv = job->conv;
  rn_pool_t* pool = rn_ctx_pool(ctx);
  double each = rn_conv_flops(conv) * 4;
  int64_t grain = each > 4e6 ? 1 : (int64_t)(4e6 / (each + 1)) + 1;
  if (conv->kind == RN_CONV_FORWARD) {
    rn_pool_for(pool, conv->batch * job->bands, job->bands > 1 ? 1 : grain, run_piece, job);
  } else if (conv->batch < FEW_IMAGES) {
    job->pool = pool;
    run_images(job, 0, conv->batch);
  } else {
    rn_pool_for(pool, conv->batch, grain, run_images, job);
  }
}

static bool is_whole_axis(const rn_window_axis_t* axis) {
  return axis->filter == 1 && axis->stride == 1 && axis->before == 0 && axis->out == axis->in;
}

rn_status_t rn_conv_plain(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                          rn_conv_data_t data) {
  conv_plain_job_t job = {.conv = conv,
                          .dtype = dtype,
                          .data = data,
                          .item = rn_dtype_size(dtype),
                          .depth = conv->in_depth / conv->groups,
                          .out_depth = conv->out_depth / conv->groups};
  job.patch = conv->rows.filter * conv->columns.filter * job.depth;
  job.is_matrix = conv->groups == 1 && is_whole_axis(&conv->rows) && is_whole_axis(&conv->columns);
  int64_t row_bytes = conv->columns.out * job.patch * (int64_t)job.item;
  job.height = row_bytes > 0 && row_bytes < BAND_BYTES ? BAND_BYTES / row_bytes : 1;
  if (job.height > conv->rows.out) job.height = conv->rows.out;
  job.bands = (conv->rows.out + job.height - 1) / job.height;
  int64_t w_size = rn_conv_w_size(conv);
  rn_tensor_t parts = {0};
  if (conv->kind == RN_CONV_FILTER) {
    int64_t dims[2] = {conv->batch, w_size};
    RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){2, dims}, &parts));
    job.parts = parts.data;
  }
  run_all(ctx, &job);
  if (conv->kind == RN_CONV_FILTER && rn_ok(job.status)) {
    memset(data.w, 0, (size_t)w_size * job.item);
    for (int64_t i = 0; i < conv->batch; ++i)
      rn_vector_run(RN_VECTOR_ADD, dtype, data.w, 1,
                    (char*)job.parts + (size_t)(i * w_size) * job.item, 1, data.w, w_size);
  }
  rn_tensor_clear(&parts);
  return job.status;
}
