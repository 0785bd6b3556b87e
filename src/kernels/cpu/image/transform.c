// ImageProjectiveTransform: each output pixel is looked up in the input through a projection.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/as_float.h"
#include "kernels/cpu/image/transform.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Stock accepts any string for either attribute, with undefined results.
rn_status_t rn_image_transform_init(const rn_kernel_init_t* init, void* state) {
  static const char* const borders[] = {[RN_BORDER_CONSTANT] = "CONSTANT",
                                        [RN_BORDER_REFLECT] = "REFLECT",
                                        [RN_BORDER_WRAP] = "WRAP",
                                        [RN_BORDER_NEAREST] = "NEAREST"};
  rn_image_transform_t* t = state;
  rn_str_t mode = rn_init_string(init, "interpolation"), fill = rn_init_string(init, "fill_mode");
  t->is_bilinear = rn_str_is(mode, "BILINEAR");
  if (!t->is_bilinear && !rn_str_is(mode, "NEAREST"))
    return rn_invalid_argument("interpolation must be NEAREST or BILINEAR, got %.*s",
                               RN_STR_ARGS(mode));
  for (int i = RN_BORDER_CONSTANT; i <= RN_BORDER_NEAREST; ++i) {
    t->border = (rn_border_t)i;
    if (rn_str_is(fill, borders[i])) return RN_OK;
  }
  return rn_invalid_argument("fill_mode must be CONSTANT, REFLECT, WRAP or NEAREST, got %.*s",
                             RN_STR_ARGS(fill));
}

typedef struct image_transform_job_t {
  const rn_tensor_t* images;
  const float *floats, *matrices;
  rn_tensor_t* out;
  int64_t matrix_step;  // 8, or 0 if all images share one
  int64_t height, width, depth, out_height, out_width;
  float fill;
  rn_image_transform_t transform;
} image_transform_job_t;

static void put(rn_tensor_t* out, int64_t i, float value) {
  switch (out->dtype) {
    case RN_UINT8:
      RN_DATA(out, uint8_t)[i] = value > 0 && value < 256 ? (uint8_t)value : 0;
      break;
    case RN_INT32:
      RN_DATA(out, int32_t)
      [i] = value > -2147483648.0f && value < 2147483648.0f ? (int32_t)value : 0;
      break;
    case RN_INT64:
      RN_DATA(out, int64_t)[i] = value > -9.2e18f && value < 9.2e18f ? (int64_t)value : 0;
      break;
    case RN_HALF:
      RN_DATA(out, uint16_t)[i] = rn_float_to_half(value);
      break;
    case RN_BFLOAT16:
      RN_DATA(out, uint16_t)[i] = rn_float_to_bfloat16(value);
      break;
    case RN_DOUBLE:
      RN_DATA(out, double)[i] = (double)value;
      break;
    default:
      RN_DATA(out, float)[i] = value;
  }
}

static bool is_inside(const image_transform_job_t* job, float y, float x) {
  return y >= 0 && y < (float)job->height && x >= 0 && x < (float)job->width;
}

// The pixel at a position, or NULL outside of the image.
static const float* pixel_at(const image_transform_job_t* job, int64_t b, float y, float x) {
  if (!is_inside(job, y, x)) return NULL;
  return job->floats + ((b * job->height + (int64_t)y) * job->width + (int64_t)x) * job->depth;
}

// All channels between four pixels; those outside have the fill value.
static void mix(const image_transform_job_t* job, int64_t b, float y, float x, int64_t to) {
  const float y0 = floorf(y), x0 = floorf(x), y1 = y0 + 1, x1 = x0 + 1;
  const float *tl = pixel_at(job, b, y0, x0), *tr = pixel_at(job, b, y0, x1);
  const float *bl = pixel_at(job, b, y1, x0), *br = pixel_at(job, b, y1, x1);
  for (int64_t d = 0; d < job->depth; ++d) {
    const float top = (x1 - x) * (tl ? tl[d] : job->fill) + (x - x0) * (tr ? tr[d] : job->fill);
    const float bottom = (x1 - x) * (bl ? bl[d] : job->fill) + (x - x0) * (br ? br[d] : job->fill);
    put(job->out, to + d, (y1 - y) * top + (y - y0) * bottom);
  }
}

static void look(const image_transform_job_t* job, int64_t b, float y, float x, int64_t to) {
  if (job->transform.is_bilinear) {
    mix(job, b, y, x, to);
    return;
  }
  float ny = roundf(y), nx = roundf(x);
  bool copies = is_inside(job, ny, nx);
  size_t size = rn_dtype_size(job->out->dtype), pixel = (size_t)job->depth * size;
  if (copies) {
    int64_t from = ((b * job->height + (int64_t)ny) * job->width + (int64_t)nx) * job->depth;
    memcpy((char*)job->out->data + (size_t)to * size,
           (const char*)job->images->data + (size_t)from * size, pixel);
    return;
  }
  for (int64_t d = 0; d < job->depth; ++d) put(job->out, to + d, job->fill);
}

static void transform_piece(void* arg, int64_t begin, int64_t end) {
  const image_transform_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    int64_t b = i / (job->out_height * job->out_width);
    float y = (float)(i / job->out_width % job->out_height), x = (float)(i % job->out_width);
    const float* m = job->matrices + b * job->matrix_step;
    float by = m[6] * x + m[7] * y + 1;
    if (by == 0) {
      for (int64_t d = 0; d < job->depth; ++d) put(job->out, i * job->depth + d, job->fill);
      continue;
    }
    float in_x = (m[0] * x + m[1] * y + m[2]) / by, in_y = (m[3] * x + m[4] * y + m[5]) / by;
    look(job, b, rn_position_inside(job->transform.border, in_y, job->height),
         rn_position_inside(job->transform.border, in_x, job->width), i * job->depth);
  }
}

static rn_status_t check(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *images = rn_in(ctx, 0), *matrices = rn_in(ctx, 1), *size = rn_in(ctx, 2);
  if (images->rank != 4) return rn_invalid_argument("Input images must have rank 4");
  if (matrices->rank != 2 || rn_tensor_dim(matrices, 1) != 8 ||
      (rn_tensor_dim(matrices, 0) != 1 && rn_tensor_dim(matrices, 0) != rn_tensor_dim(images, 0)))
    return rn_invalid_argument("Input transform should be num_images x 8 or 1 x 8");
  if (size->rank != 1)
    return rn_invalid_argument("output shape must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("output shape must have two elements%s", rn_text_of(size).text);
  for (int i = 0; i < 2; ++i)
    if (RN_DATA(size, const int32_t)[i] <= 0)
      return rn_invalid_argument("output dimensions must be positive");
  if (ctx->kernel->input_count > 3 && rn_in(ctx, 3)->rank != 0)
    return rn_invalid_argument("fill_value must be a scalar%s", rn_text_of(rn_in(ctx, 3)).text);
  return RN_OK;
}

rn_status_t rn_image_transform_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  RN_RETURN_IF_ERROR(check(ctx));
  const int32_t* size = rn_in(ctx, 2)->data;
  const int64_t* dims = rn_tensor_dims(rn_in(ctx, 0));
  int64_t shape[4] = {dims[0], size[0], size[1], dims[3]};
  return rn_output(ctx, 0, (rn_shape_t){4, shape}, out);
}

static rn_status_t transform_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *images = rn_in(ctx, 0), *matrices = rn_in(ctx, 1);
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_image_transform_begin(ctx, &out));
  if (out->count == 0) return RN_OK;
  const int64_t *dims = rn_tensor_dims(images), *shape = rn_tensor_dims(out);
  image_transform_job_t job = {.images = images,
                               .matrices = matrices->data,
                               .out = out,
                               .matrix_step = rn_tensor_dim(matrices, 0) > 1 ? 8 : 0,
                               .height = dims[1],
                               .width = dims[2],
                               .depth = dims[3],
                               .out_height = shape[1],
                               .out_width = shape[2],
                               .transform = *(const rn_image_transform_t*)ctx->state};
  if (ctx->kernel->input_count > 3) job.fill = *RN_DATA(rn_in(ctx, 3), const float);
  rn_status_t status = RN_OK;
  if (job.transform.is_bilinear) status = rn_image_floats(ctx, images, &temp, &job.floats);
  if (rn_ok(status))
    rn_pool_for(rn_ctx_pool(ctx), out->count / dims[3], 1 + 4096 / dims[3], transform_piece, &job);
  rn_tensor_clear(&temp);
  return status;
}

#define TYPES (RN_TYPES_FLOATS | RN_T(UINT8) | RN_T(INT32) | RN_T(INT64))
#define ROW(name)                                                                           \
  {                                                                                         \
    .op = name, .device = "CPU", .types = {{"dtype", TYPES}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_image_transform_t), .init = rn_image_transform_init,            \
    .compute = transform_compute                                                            \
  }

static const rn_kernel_def_t rows[] = {
    ROW("ImageProjectiveTransformV2"),
    ROW("ImageProjectiveTransformV3"),
};
RN_KERNEL_FAMILY(cpu_image_transform, rows);
