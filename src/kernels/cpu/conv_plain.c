// Convolutions by matrix products, for the types that oneDNN does not take.
//
// Every output position's patch of the image becomes a row of a matrix, [positions, patch]. Then
//   y = rows w,   the patches' gradient = y w',   w's gradient = rows' y.
// An image at a time, images beside each other. Gradients of w are added up in the images' order.
#include "kernels/cpu/conv.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vector.h"

typedef struct job_t {
  const rn_conv_t* conv;
  rn_dtype_t dtype;
  rn_conv_data_t data;
  size_t item;
  int64_t depth;      // channels of a group of x
  int64_t out_depth;  // channels of a group of y
  int64_t positions;
  int64_t patch;  // elements
  void* parts;    // gradients of w, one for each image
  bool failed;    // the first to set it owns |status|
  rn_status_t status;
} job_t;

// Calls for each element position of each patch: the row of |depth| channels of the image at
// |image|, NULL where it is outside, beside its place |at| in the matrix.
typedef void (*visit_fn_t)(const job_t* job, char* image, char* at);

static void copy_out(const job_t* job, char* image, char* at) {
  size_t bytes = (size_t)job->depth * job->item;
  if (image)
    memcpy(at, image, bytes);
  else
    memset(at, 0, bytes);
}

static void add_back(const job_t* job, char* image, char* at) {
  if (image) rn_vector_run(RN_VECTOR_ADD, job->dtype, image, 1, at, 1, image, job->depth);
}

static void walk(const job_t* job, char* x, int64_t group, char* matrix, visit_fn_t visit) {
  const rn_window_axis_t *rows = &job->conv->rows, *columns = &job->conv->columns;
  size_t step = (size_t)job->depth * job->item;
  size_t pixel = (size_t)job->conv->in_depth * job->item;
  x += (size_t)group * step;
  for (int64_t r = 0; r < rows->out; ++r)
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
static void take_columns(const job_t* job, const char* from, char* to, int64_t rows, int64_t width,
                         int64_t first, bool back) {
  size_t part = (size_t)job->out_depth * job->item, whole = (size_t)width * job->item;
  size_t offset = (size_t)first * job->item;
  for (int64_t i = 0; i < rows; ++i) {
    if (back)
      memcpy(to + (size_t)i * whole + offset, from + (size_t)i * part, part);
    else
      memcpy(to + (size_t)i * part, from + (size_t)i * whole + offset, part);
  }
}

// One group of one image; |w|, |y| are the group's own, dense.
static rn_status_t run_group(const job_t* job, char* x, char* w, char* y, int64_t group,
                             char* matrix) {
  rn_gemm_t gemm = {.dtype = job->dtype};
  switch (job->conv->kind) {
    case RN_CONV_FORWARD:
      walk(job, x, group, matrix, copy_out);
      gemm.m = job->positions, gemm.k = job->patch, gemm.n = job->out_depth;
      gemm.a = matrix, gemm.b = w, gemm.c = y;
      return rn_gemm(NULL, &gemm);
    case RN_CONV_INPUT:
      gemm.m = job->positions, gemm.k = job->out_depth, gemm.n = job->patch;
      gemm.a = y, gemm.b = w, gemm.c = matrix;
      gemm.transpose_b = true;
      RN_RETURN_IF_ERROR(rn_gemm(NULL, &gemm));
      walk(job, x, group, matrix, add_back);
      return RN_OK;
    case RN_CONV_FILTER:
      break;
  }
  walk(job, x, group, matrix, copy_out);
  gemm.m = job->patch, gemm.k = job->positions, gemm.n = job->out_depth;
  gemm.a = matrix, gemm.b = y, gemm.c = w;
  gemm.transpose_a = true;
  return rn_gemm(NULL, &gemm);
}

static rn_status_t run_image(const job_t* job, int64_t image, char* matrix, char* w_part,
                             char* y_part) {
  const rn_conv_t* conv = job->conv;
  char* x = (char*)job->data.x + (size_t)(image * rn_conv_x_size(conv)) * job->item;
  char* y = (char*)job->data.y + (size_t)(image * rn_conv_y_size(conv)) * job->item;
  char* w = job->data.w;
  if (conv->kind == RN_CONV_FILTER)
    w = (char*)job->parts + (size_t)(image * rn_conv_w_size(conv)) * job->item;
  if (conv->kind == RN_CONV_INPUT) memset(x, 0, (size_t)rn_conv_x_size(conv) * job->item);
  if (conv->groups == 1) return run_group(job, x, w, y, 0, matrix);
  for (int64_t group = 0; group < conv->groups; ++group) {
    int64_t first = group * job->out_depth;
    if (conv->kind != RN_CONV_FILTER)
      take_columns(job, w, w_part, job->patch, conv->out_depth, first, false);
    if (conv->kind != RN_CONV_FORWARD)
      take_columns(job, y, y_part, job->positions, conv->out_depth, first, false);
    RN_RETURN_IF_ERROR(run_group(job, x, w_part, y_part, group, matrix));
    if (conv->kind == RN_CONV_FILTER)
      take_columns(job, w_part, w, job->patch, conv->out_depth, first, true);
    if (conv->kind == RN_CONV_FORWARD)
      take_columns(job, y_part, y, job->positions, conv->out_depth, first, true);
  }
  return RN_OK;
}

static rn_status_t run_images(const job_t* job, int64_t begin, int64_t end) {
  size_t matrix = 0, w = 0, y = 0, total = 0;
  bool grouped = job->conv->groups > 1;
  if (!rn_mul_ok((size_t)job->positions * (size_t)job->patch, job->item, &matrix))
    return rn_out_of_memory();
  if (grouped) {
    w = (size_t)(job->patch * job->out_depth) * job->item;
    y = (size_t)(job->positions * job->out_depth) * job->item;
  }
  if (!rn_add_ok(matrix, w + y, &total)) return rn_out_of_memory();
  char* memory = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), total, (void**)&memory));
  rn_status_t status = RN_OK;
  for (int64_t i = begin; i < end && rn_ok(status); ++i)
    status = run_image(job, i, memory, memory + matrix, memory + matrix + w);
  rn_free(rn_allocator_default(), memory, total);
  return status;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  rn_status_t status = run_images(job, begin, end);
  if (!rn_ok(status) && !__atomic_exchange_n(&job->failed, true, __ATOMIC_RELAXED))
    job->status = status;
  else
    rn_status_free(status);
}

rn_status_t rn_conv_plain(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                          rn_conv_data_t data) {
  job_t job = {.conv = conv,
               .dtype = dtype,
               .data = data,
               .item = rn_dtype_size(dtype),
               .depth = conv->in_depth / conv->groups,
               .out_depth = conv->out_depth / conv->groups,
               .positions = conv->rows.out * conv->columns.out};
  job.patch = conv->rows.filter * conv->columns.filter * job.depth;
  int64_t w_size = rn_conv_w_size(conv);
  rn_tensor_t parts = {0};
  if (conv->kind == RN_CONV_FILTER) {
    int64_t dims[2] = {conv->batch, w_size};
    RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){2, dims}, &parts));
    job.parts = parts.data;
  }
  double each = rn_conv_flops(conv) * 4;
  int64_t grain = each > 4e6 ? 1 : (int64_t)(4e6 / (each + 1)) + 1;
  rn_pool_for(rn_ctx_pool(ctx), conv->batch, grain, run_piece, &job);
  if (conv->kind == RN_CONV_FILTER && rn_ok(job.status)) {
    memset(data.w, 0, (size_t)w_size * job.item);
    for (int64_t i = 0; i < conv->batch; ++i)
      rn_vector_run(RN_VECTOR_ADD, dtype, data.w, 1,
                    (char*)job.parts + (size_t)(i * w_size) * job.item, 1, data.w, w_size);
  }
  rn_tensor_clear(&parts);
  return job.status;
}
