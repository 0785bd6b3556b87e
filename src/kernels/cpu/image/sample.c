// SampleDistortedBoundingBox: a random crop that still covers enough of the objects.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"

typedef struct sample_t {
  rn_random_stream_t stream;  // unused if the seed is an input
  float covered;              // required covered part of an object, if an attribute
  float ratio[2], area[2];
  int64_t attempts;
  bool uses_image;  // use the whole image if there are no objects
  bool has_stream, has_covered;
} sample_t;

static rn_status_t read_range(const rn_kernel_init_t* init, const char* name, const char* text,
                              float out[2]) {
  const rn_attr_value_t* range = rn_init_attr(init, name);
  if (range->count != 2)
    return rn_invalid_argument("%s range field must specify 2 dimensions", text);
  out[0] = range->list_f[0];
  out[1] = range->list_f[1];
  if (out[0] > 0 && out[1] > 0) return RN_OK;
  return rn_invalid_argument("%s range must be non-negative: [%g, %g]", text, (double)out[0],
                             (double)out[1]);
}

// More than 1 is no error: no crop covers that much, and the whole image is taken.
static rn_status_t check_covered(float covered) {
  if (covered >= 0) return RN_OK;
  return rn_invalid_argument("Min object covered must be non-negative: %g", (double)covered);
}

static rn_status_t sample_init(const rn_kernel_init_t* init, void* state) {
  sample_t* s = state;
  s->has_stream = rn_op_attr_index(init->op, RN_STR("seed")) >= 0;
  s->has_covered = rn_op_attr_index(init->op, RN_STR("min_object_covered")) >= 0;
  if (s->has_stream) {
    rn_mutex_init(&s->stream.mutex);
    s->stream.philox =
        rn_philox_seeded(init->env, rn_init_int(init, "seed"), rn_init_int(init, "seed2"));
  }
  if (s->has_covered) {
    s->covered = rn_init_float(init, "min_object_covered");
    RN_RETURN_IF_ERROR(check_covered(s->covered));
  }
  s->uses_image = rn_init_bool(init, "use_image_if_no_bounding_boxes");
  RN_RETURN_IF_ERROR(read_range(init, "aspect_ratio_range", "Aspect ratio", s->ratio));
  RN_RETURN_IF_ERROR(read_range(init, "area_range", "Area", s->area));
  if (s->area[0] > 1 || s->area[1] > 1)
    return rn_invalid_argument("Area range must be less then or equal to 1.0: [%g, %g]",
                               (double)s->area[0], (double)s->area[1]);
  s->attempts = rn_init_int(init, "max_attempts");
  if (s->attempts > 0) return RN_OK;
  return rn_invalid_argument("Max attempts must be non-negative: %" PRId64, s->attempts);
}

static void sample_destroy(void* state) {
  sample_t* s = state;
  if (s->has_stream) rn_mutex_destroy(&s->stream.mutex);
}

typedef struct rect_t {
  int32_t x0, y0, x1, y1;
} rect_t;

static float area_of(rect_t r) {
  return r.x1 > r.x0 && r.y1 > r.y0 ? (float)((int64_t)(r.x1 - r.x0) * (r.y1 - r.y0)) : 0;
}

static rect_t common(rect_t a, rect_t b) {
  return (rect_t){a.x0 > b.x0 ? a.x0 : b.x0, a.y0 > b.y0 ? a.y0 : b.y0, a.x1 < b.x1 ? a.x1 : b.x1,
                  a.y1 < b.y1 ? a.y1 : b.y1};
}

// A uniform number below |n|; rejects words that would favour low numbers.
static int32_t draw(rn_philox_single_t* random, int32_t n) {
  uint32_t below = (uint32_t)n;
  if ((below & (below - 1)) == 0) return (int32_t)(rn_philox_word(random) & (below - 1));
  uint32_t rest = UINT32_MAX % below + 1, word;
  do {
    word = rn_philox_word(random);
  } while (word < rest);
  return (int32_t)(word % below);
}

static bool draw_crop(const sample_t* s, rn_philox_single_t* random, float ratio, int32_t width,
                      int32_t height, rect_t* out) {
  float least = s->area[0] * (float)width * (float)height;
  float most = s->area[1] * (float)width * (float)height;
  int64_t h = lrintf(sqrtf(least / ratio)), highest = lrintf(sqrtf(most / ratio));
  if (lrintf((float)highest * ratio) > width) {
    // The greatest height whose width, rounded, still fits.
    highest = (int64_t)((float)((double)width + 0.5 - 0.0000001) / ratio);
    if (lrintf((float)highest * ratio) > width) --highest;
  }
  if (highest > height) highest = height;
  if (h > highest) h = highest;
  if (h < highest) h += draw(random, (int32_t)(highest - h + 1));
  int64_t w = lrintf((float)h * ratio);
  // Rounding may be off by one pixel either way.
  if ((float)(w * h) < least) {
    ++h;
    w = lrintf((float)h * ratio);
  }
  if ((float)(w * h) > most) {
    --h;
    w = lrintf((float)h * ratio);
  }
  float area = (float)(w * h);
  if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0) return false;
  out->y0 = h < height ? draw(random, height - (int32_t)h) : 0;
  out->x0 = w < width ? draw(random, width - (int32_t)w) : 0;
  out->y1 = out->y0 + (int32_t)h;
  out->x1 = out->x0 + (int32_t)w;
  return true;
}

static bool shows_enough(rect_t crop, float covered, const rect_t* objects, int64_t count) {
  if (area_of(crop) < 1) return false;
  for (int64_t i = 0; i < count; ++i) {
    float area = area_of(objects[i]);
    if (area >= 1 && area_of(common(crop, objects[i])) / area >= covered) return true;
  }
  return false;
}

static rn_status_t read_size(const rn_tensor_t* size, int32_t* out_height, int32_t* out_width) {
  if (size->rank != 1)
    return rn_invalid_argument("image_size must be 1-dimensional, got shape %s",
                               rn_text_of(size).text);
  if (size->count != 3)
    return rn_invalid_argument("image_size must contain 3 elements%s", rn_text_of(size).text);
  int64_t height = rn_int_at(size, 0), width = rn_int_at(size, 1);
  if (height < 0 || height >= INT32_MAX)
    return rn_invalid_argument("image height cannot be >= int32 max");
  if (width < 0 || width >= INT32_MAX)
    return rn_invalid_argument("image width cannot be >= int32 max");
  *out_height = (int32_t)height;
  *out_width = (int32_t)width;
  return RN_OK;
}

// The objects in pixels; the whole image if there are none.
static rn_status_t read_objects(rn_kernel_ctx_t* ctx, const rn_tensor_t* boxes, int32_t height,
                                int32_t width, rect_t* out) {
  const float* b = boxes->data;
  for (int64_t i = 0; i < boxes->count; ++i)
    if (!(b[i] >= 0 && b[i] <= 1))
      return rn_invalid_argument("All bounding box coordinates must be in [0.0, 1.0]: %g",
                                 (double)b[i]);
  if (boxes->count == 0 && !((const sample_t*)ctx->state)->uses_image)
    return rn_invalid_argument(
        "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if "
        "you wish to not provide any bounding boxes.");
  out[0] = (rect_t){0, 0, width, height};
  for (int64_t i = 0; i < boxes->count / 4; ++i, b += 4)
    out[i] = (rect_t){(int32_t)(b[1] * (float)width), (int32_t)(b[0] * (float)height),
                      (int32_t)(b[3] * (float)width), (int32_t)(b[2] * (float)height)};
  return RN_OK;
}

static void put_int(rn_tensor_t* out, int64_t i, int64_t value) {
  if (out->dtype == RN_UINT8 || out->dtype == RN_INT8)
    RN_DATA(out, uint8_t)[i] = (uint8_t)value;
  else if (out->dtype == RN_INT16)
    RN_DATA(out, int16_t)[i] = (int16_t)value;
  else
    rn_int_set(out, i, value);
}

static rn_status_t give(rn_kernel_ctx_t* ctx, rect_t crop, int32_t height, int32_t width) {
  int64_t three = 3, shape[3] = {1, 1, 4};
  rn_tensor_t *begin = NULL, *size = NULL, *box = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &three}, &begin));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &three}, &size));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){3, shape}, &box));
  const int64_t begins[3] = {crop.y0, crop.x0, 0};
  const int64_t sizes[3] = {crop.y1 - crop.y0, crop.x1 - crop.x0, -1};
  for (int i = 0; i < 3; ++i) {
    put_int(begin, i, begins[i]);
    put_int(size, i, sizes[i]);
  }
  float* b = box->data;
  b[0] = (float)crop.y0 / (float)height;
  b[1] = (float)crop.x0 / (float)width;
  b[2] = (float)crop.y1 / (float)height;
  b[3] = (float)crop.x1 / (float)width;
  return RN_OK;
}

static rn_status_t find_crop(rn_kernel_ctx_t* ctx, float covered, const rect_t* objects,
                             int64_t count, int32_t height, int32_t width, rect_t* out) {
  sample_t* s = ctx->state;
  rn_philox_t philox;
  if (s->has_stream)
    philox = rn_random_stream_reserve(&s->stream, (uint64_t)s->attempts);
  else
    RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 3), &philox));
  rn_philox_single_t random = rn_philox_single(philox);
  for (int64_t i = 0; i < s->attempts; ++i) {
    float ratio =
        rn_word_to_float(rn_philox_word(&random)) * (s->ratio[1] - s->ratio[0]) + s->ratio[0];
    if (width > 0 && height > 0 && draw_crop(s, &random, ratio, width, height, out) &&
        shows_enough(*out, covered, objects, count))
      return RN_OK;
  }
  *out = (rect_t){0, 0, width, height};
  return RN_OK;
}

static rn_status_t sample_compute(rn_kernel_ctx_t* ctx) {
  const sample_t* s = ctx->state;
  const rn_tensor_t *size = rn_in(ctx, 0), *boxes = rn_in(ctx, 1);
  int32_t height = 0, width = 0;
  RN_RETURN_IF_ERROR(read_size(size, &height, &width));
  if (boxes->rank != 3)
    return rn_invalid_argument("input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                               rn_text_of(boxes).text);
  if (rn_tensor_dim(boxes, 2) != 4)
    return rn_invalid_argument("bounding boxes must have shape [4] or [*, 4], got %s",
                               rn_text_of(boxes).text);
  float covered = s->covered;
  if (!s->has_covered) {
    if (rn_in(ctx, 2)->rank != 0)
      return rn_invalid_argument("min_object_covered must be 0-D, got shape %s",
                                 rn_text_of(rn_in(ctx, 2)).text);
    covered = *RN_DATA(rn_in(ctx, 2), const float);
    RN_RETURN_IF_ERROR(check_covered(covered));
  }
  int64_t count = boxes->count ? boxes->count / 4 : 1;
  rect_t *objects = NULL, crop;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)count, &objects));
  rn_status_t status = read_objects(ctx, boxes, height, width, objects);
  if (rn_ok(status)) status = find_crop(ctx, covered, objects, count, height, width, &crop);
  RN_FREE_ARRAY(ctx->kernel->allocator, objects, count);
  return rn_ok(status) ? give(ctx, crop, height, width) : status;
}

#define ROW(name)                                                                     \
  {                                                                                   \
    .op = name, .device = "CPU", .state_size = sizeof(sample_t), .init = sample_init, \
    .destroy = sample_destroy, .compute = sample_compute                              \
  }

static const rn_kernel_def_t rows[] = {
    ROW("SampleDistortedBoundingBox"),
    ROW("SampleDistortedBoundingBoxV2"),
    ROW("StatelessSampleDistortedBoundingBox"),
};
RN_KERNEL_FAMILY(cpu_image_sample, rows);
