// CropAndResize and its gradients.
#include <math.h>

#include "kernels/cpu/image/as_float.h"
#include "kernels/cpu/image/crop.h"
#include "kernels/cpu/image/loops.h"
#include "kernels/kernel_rows.h"

// What all three kernels share.
typedef struct crop_job_t {
  const float *image, *boxes;
  const int32_t* which;
  float *crops, *out;
  const float* grads;
  int64_t height, width, depth;  // of the image
  int64_t crop_height, crop_width;
  rn_crop_attrs_t crop;
} crop_job_t;

// The position of a crop's point along one axis of the image.
typedef struct crop_place_t {
  bool is_inside;
  int64_t low, high, near;
  float part;
} crop_place_t;

static crop_place_t place_at(float from, float to, int64_t size, int64_t count, int64_t i) {
  float last = (float)(size - 1);
  float scale = count > 1 ? (to - from) * last / (float)(count - 1) : 0;
  float at = count > 1 ? from * last + (float)i * scale : 0.5f * (from + to) * last;
  crop_place_t p = {.is_inside = at >= 0 && at <= last};
  if (!p.is_inside) return p;
  p.low = (int64_t)floorf(at);
  p.high = (int64_t)ceilf(at);
  p.near = (int64_t)roundf(at);
  p.part = at - (float)p.low;
  return p;
}

static const float* pixel(const crop_job_t* job, int64_t b, int64_t y, int64_t x) {
  return job->image + ((b * job->height + y) * job->width + x) * job->depth;
}

// |n| points of row |row| of the crops, side by side; |xs| are their columns.
static void crop_points(const crop_job_t* job, int64_t row, const crop_place_t* xs, int64_t n,
                        float* out) {
  const rn_resize_loops_t* loops = rn_resize_loops();
  int64_t box = row / job->crop_height, b = job->which[box];
  const float* c = job->boxes + 4 * box;
  crop_place_t y = place_at(c[0], c[2], job->height, job->crop_height, row % job->crop_height);
  for (int64_t i = 0; i < n; ++i, out += job->depth) {
    const crop_place_t* x = &xs[i];
    if (!y.is_inside || !x->is_inside) {
      for (int64_t d = 0; d < job->depth; ++d) out[d] = job->crop.outside;
    } else if (job->crop.is_nearest) {
      memcpy(out, pixel(job, b, y.near, x->near), (size_t)job->depth * sizeof *out);
    } else {
      const float *tl = pixel(job, b, y.low, x->low), *tr = pixel(job, b, y.low, x->high);
      const float *bl = pixel(job, b, y.high, x->low), *br = pixel(job, b, y.high, x->high);
      loops->blend_corners((const float*[]){tl, tr, bl, br}, x->part, y.part, job->depth, out);
    }
  }
}

// Computes rows of crops. The places of the columns are the same in all rows of a box.
static void crop_piece(void* arg, int64_t begin, int64_t end) {
  enum { COLUMNS = 64 };
  const crop_job_t* job = arg;
  crop_place_t xs[COLUMNS];
  for (int64_t row = begin, last; row < end; row = last) {
    int64_t box = row / job->crop_height;
    const float* c = job->boxes + 4 * box;
    last = (box + 1) * job->crop_height < end ? (box + 1) * job->crop_height : end;
    for (int64_t i = 0; i < job->crop_width; i += COLUMNS) {
      int64_t n = job->crop_width - i < COLUMNS ? job->crop_width - i : COLUMNS;
      for (int64_t k = 0; k < n; ++k)
        xs[k] = place_at(c[1], c[3], job->width, job->crop_width, i + k);
      for (int64_t r = row; r < last; ++r)
        crop_points(job, r, xs, n, job->crops + (r * job->crop_width + i) * job->depth);
    }
  }
}

// The job without images, crops and gradients; boxes and their images are inputs |first| and the
// one after.
static crop_job_t job_of(const rn_kernel_ctx_t* ctx, const rn_crop_t* crop, int first) {
  return (crop_job_t){.boxes = rn_in(ctx, first)->data,
                      .which = rn_in(ctx, first + 1)->data,
                      .height = crop->height,
                      .width = crop->width,
                      .depth = crop->depth,
                      .crop_height = crop->crop_height,
                      .crop_width = crop->crop_width,
                      .crop = *(const rn_crop_attrs_t*)ctx->state};
}

static rn_status_t crop_compute(rn_kernel_ctx_t* ctx) {
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_begin(ctx, &crop));
  if (crop.out->count == 0) return RN_OK;
  crop_job_t job = job_of(ctx, &crop, 1);
  job.crops = crop.out->data;
  rn_tensor_t temp = {0};
  rn_status_t status = rn_image_floats(ctx, rn_in(ctx, 0), &temp, &job.image);
  if (rn_ok(status))
    rn_pool_for(rn_ctx_pool(ctx), crop.boxes * crop.crop_height,
                1 + 8192 / (crop.crop_width * crop.depth), crop_piece, &job);
  rn_tensor_clear(&temp);
  return status;
}

// Crops may overlap, so their gradients are added in the order of the boxes: in |wide| for doubles,
// in |narrow| for all other types.
static void scatter(const crop_job_t* job, int64_t boxes, double* wide, float* narrow) {
  const float* g = job->grads;
  for (int64_t i = 0; i < boxes * job->crop_height * job->crop_width; ++i, g += job->depth) {
    int64_t box = i / (job->crop_height * job->crop_width), b = job->which[box];
    const float* c = job->boxes + 4 * box;
    crop_place_t y =
        place_at(c[0], c[2], job->height, job->crop_height, i / job->crop_width % job->crop_height);
    crop_place_t x = place_at(c[1], c[3], job->width, job->crop_width, i % job->crop_width);
    if (!y.is_inside || !x.is_inside) continue;
    struct {
      int64_t y, x;
      float down, across;
    } to[4] = {{y.low, x.low, 1 - y.part, 1 - x.part},
               {y.low, x.high, 1 - y.part, x.part},
               {y.high, x.low, y.part, 1 - x.part},
               {y.high, x.high, y.part, x.part}};
    if (job->crop.is_nearest) {
      to[0].y = y.near;
      to[0].x = x.near;
      to[0].down = to[0].across = 1;
    }
    for (int k = 0; k < (job->crop.is_nearest ? 1 : 4); ++k) {
      int64_t at = ((b * job->height + to[k].y) * job->width + to[k].x) * job->depth;
      for (int64_t d = 0; d < job->depth; ++d) {
        float part = to[k].across * (to[k].down * g[d]);
        if (wide)
          wide[at + d] += (double)part;
        else
          narrow[at + d] += part;
      }
    }
  }
}

static rn_status_t image_grad_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* grads = rn_in(ctx, 0);
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_image_gradient_begin(ctx, &crop));
  rn_tensor_t *out = crop.out, sums = {0};
  bool is_half = out->dtype == RN_HALF;
  if (is_half) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(out), &sums));
  rn_tensor_t* to = is_half ? &sums : out;
  if (to->count) memset(to->data, 0, rn_tensor_bytes(to));
  crop_job_t job = job_of(ctx, &crop, 1);
  job.grads = grads->data;
  bool is_double = out->dtype == RN_DOUBLE;
  if (grads->count)
    scatter(&job, crop.boxes, is_double ? to->data : NULL, is_double ? NULL : to->data);
  if (is_half) rn_image_store(sums.data, out);
  rn_tensor_clear(&sums);
  return RN_OK;
}

// The gradient of one box: how the crop changes as its edges move.
static void box_grad(const crop_job_t* job, int64_t box, float* out) {
  const float *c = job->boxes + 4 * box, *g = job->grads;
  int64_t b = job->which[box], height = job->crop_height, width = job->crop_width;
  float last_y = (float)(job->height - 1), last_x = (float)(job->width - 1);
  double sums[4] = {0};
  g += box * height * width * job->depth;
  for (int64_t i = 0; i < height * width; ++i, g += job->depth) {
    crop_place_t y = place_at(c[0], c[2], job->height, height, i / width);
    crop_place_t x = place_at(c[1], c[3], job->width, width, i % width);
    if (!y.is_inside || !x.is_inside) continue;
    const float *tl = pixel(job, b, y.low, x.low), *tr = pixel(job, b, y.low, x.high);
    const float *bl = pixel(job, b, y.high, x.low), *br = pixel(job, b, y.high, x.high);
    float along_y = height > 1 ? (float)(i / width) * last_y / (float)(height - 1) : 0.5f * last_y;
    float along_x = width > 1 ? (float)(i % width) * last_x / (float)(width - 1) : 0.5f * last_x;
    for (int64_t d = 0; d < job->depth; ++d) {
      float dy = ((1 - x.part) * (bl[d] - tl[d]) + x.part * (br[d] - tr[d])) * g[d];
      float dx = ((1 - y.part) * (tr[d] - tl[d]) + y.part * (br[d] - bl[d])) * g[d];
      sums[0] += (double)(dy * (height > 1 ? last_y - along_y : along_y));
      sums[2] += (double)(dy * along_y);
      sums[1] += (double)(dx * (width > 1 ? last_x - along_x : along_x));
      sums[3] += (double)(dx * along_x);
    }
  }
  for (int k = 0; k < 4; ++k) out[k] = (float)sums[k];
}

static void box_grad_piece(void* arg, int64_t begin, int64_t end) {
  const crop_job_t* job = arg;
  for (int64_t box = begin; box < end; ++box) box_grad(job, box, job->out + 4 * box);
}

static rn_status_t box_grad_compute(rn_kernel_ctx_t* ctx) {
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_box_gradient_begin(ctx, &crop));
  crop_job_t job = job_of(ctx, &crop, 2);
  job.grads = rn_in(ctx, 0)->data;
  job.out = crop.out->data;
  rn_tensor_t temp = {0};
  rn_status_t status = rn_image_floats(ctx, rn_in(ctx, 1), &temp, &job.image);
  if (rn_ok(status)) rn_pool_for(rn_ctx_pool(ctx), crop.boxes, 1, box_grad_piece, &job);
  rn_tensor_clear(&temp);
  return status;
}

#define IMAGE_TYPES \
  (RN_T(UINT8) | RN_T(UINT16) | RN_TYPES_INTS | RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))
#define ROW(name, types_, function)                                                      \
  {                                                                                      \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_crop_attrs_t), .init = rn_crop_init, .compute = function     \
  }

static const rn_kernel_def_t rows[] = {
    ROW("CropAndResize", IMAGE_TYPES, crop_compute),
    ROW("CropAndResizeGradImage", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE), image_grad_compute),
    ROW("CropAndResizeGradBoxes", IMAGE_TYPES, box_grad_compute),
};
RN_KERNEL_FAMILY(cpu_image_crop, rows);
