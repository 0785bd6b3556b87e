// ExtractGlimpse: windows of one size, one per image, each at its own position.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/philox.h"
#include "kernels/cpu/isa/reduce.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"

typedef enum noise_t { UNIFORM, GAUSSIAN, ZERO } noise_t;

typedef struct glimpse_t {
  bool is_first;  // V1: positions are always those of the window's centre
  bool is_centered, is_normalized;
  noise_t noise;
  rn_random_stream_t stream;
  bool has_stream;
} glimpse_t;

static rn_status_t glimpse_init(const rn_kernel_init_t* init, void* state) {
  glimpse_t* g = state;
  g->is_first = strcmp(init->op->name, "ExtractGlimpse") == 0;
  g->is_centered = rn_init_bool(init, "centered");
  g->is_normalized = rn_init_bool(init, "normalized");
  rn_str_t noise = rn_init_string(init, "noise");
  bool is_uniform = rn_init_bool(init, "uniform_noise");
  if (is_uniform && !rn_str_is(noise, "uniform"))
    return rn_invalid_argument("The uniform_noise should not be True when noise is not uniform");
  if (rn_str_is(noise, "uniform"))
    g->noise = UNIFORM;
  else if (rn_str_is(noise, "gaussian"))
    g->noise = GAUSSIAN;
  else if (rn_str_is(noise, "zero"))
    g->noise = ZERO;
  else
    return rn_invalid_argument("The noise could only be uniform, gaussian, or zero, got%.*s",
                               RN_STR_ARGS(noise));
  rn_mutex_init(&g->stream.mutex);
  g->stream.philox = rn_philox_seeded(init->env, 0, 0);
  g->has_stream = true;
  return RN_OK;
}

static void glimpse_destroy(void* state) {
  glimpse_t* g = state;
  if (g->has_stream) rn_mutex_destroy(&g->stream.mutex);
}

// The start of a window of |size| along an axis of |length|.
static int64_t start_of(const glimpse_t* g, float at, int64_t length, int64_t size) {
  float x = g->is_normalized ? at * (float)length : at;
  if (g->is_first || (g->is_centered && g->is_normalized)) {
    if (g->is_centered) x = x / 2 + (float)length / 2;
    x -= (float)size / 2;
  } else if (g->is_centered) {
    x += (float)length / 2;
  }
  return x > -1e9f && x < 1e9f ? (int64_t)x : INT32_MIN;
}

// Numbers between the least and the greatest of each channel.
static void fill_uniform(rn_philox_t random, const float* image, int64_t pixels, int64_t depth,
                         float* out, int64_t count) {
  const rn_reduce_table_t* reduce = RN_ISA_PICK_NARROW(&rn_reduce_table_);
  const rn_philox_table_t* philox = RN_ISA_PICK(&rn_philox_table_);
  enum { BLOCK = 256, CHANNELS = 64 };
  float numbers[BLOCK], least[CHANNELS], most[CHANNELS];
  for (int64_t first = 0; first < depth; first += CHANNELS) {
    const int64_t n = depth - first < CHANNELS ? depth - first : CHANNELS;
    reduce->fn[RN_REDUCE_MIN][RN_FLOAT](image + first, 1, pixels, depth, n, least);
    reduce->fn[RN_REDUCE_MAX][RN_FLOAT](image + first, 1, pixels, depth, n, most);
    int64_t used = BLOCK;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t d = 0; d < n; ++d) {
        if (used == BLOCK) {
          philox->floats(&random, numbers, BLOCK / 4);
          rn_philox_skip(&random, BLOCK / 4);
          used = 0;
        }
        out[i * depth + first + d] = least[d] + numbers[used++] * (most[d] - least[d]);
      }
  }
}

// Numbers with the mean and the deviation of each channel.
static void fill_gaussian(rn_philox_t random, const float* image, int64_t pixels, int64_t depth,
                          float* out, int64_t count) {
  rn_philox_single_t words = rn_philox_single(random);
  for (int64_t d = 0; d < depth; ++d) {
    double sum = 0, squares = 0;
    for (int64_t p = 0; p < pixels; ++p) {
      double x = (double)image[p * depth + d];
      sum += x;
      squares += x * x;
    }
    double mean = sum / (double)pixels, variance = squares / (double)pixels - mean * mean;
    double deviation = variance > 0 ? sqrt(variance) : 0;
    for (int64_t i = 0; i < count; ++i) {
      float pair[2];
      uint32_t first = rn_philox_word(&words), second = rn_philox_word(&words);
      rn_random_normal_floats(first, second, pair);
      out[i * depth + d] = (float)(mean + deviation * (double)pair[0]);
    }
  }
}

// Fills the part outside the image: with numbers distributed like the image's, or zeros.
static void fill_noise(glimpse_t* g, const float* image, int64_t pixels, int64_t depth, float* out,
                       int64_t count) {
  memset(out, 0, (size_t)(count * depth) * sizeof *out);
  if (g->noise == ZERO || pixels == 0) return;
  rn_philox_t random = rn_random_stream_reserve(&g->stream, (uint64_t)(count * depth) / 2 + 1);
  if (g->noise == UNIFORM)
    fill_uniform(random, image, pixels, depth, out, count);
  else
    fill_gaussian(random, image, pixels, depth, out, count);
}

static rn_status_t check(const rn_tensor_t* input, const rn_tensor_t* size,
                         const rn_tensor_t* offsets) {
  if (input->rank != 4)
    return rn_invalid_argument("input must be 4-dimensional (batch_size, height, width, depth)%s",
                               rn_text_of(input).text);
  if (size->rank != 1 || size->count != 2)
    return rn_invalid_argument("input must be a vector of size 2 (height, width)%s",
                               rn_text_of(size).text);
  for (int i = 0; i < 2; ++i)
    if (RN_DATA(size, const int32_t)[i] < 0)
      return rn_invalid_argument("Expected a non-negative size, got %d",
                                 RN_DATA(size, const int32_t)[i]);
  if (offsets->rank != 2)
    return rn_invalid_argument("input must be a matrix%s", rn_text_of(offsets).text);
  if (rn_tensor_dim(offsets, 0) != rn_tensor_dim(input, 0))
    return rn_invalid_argument("first dimension should be batch%s", rn_text_of(offsets).text);
  if (rn_tensor_dim(offsets, 1) != 2)
    return rn_invalid_argument("second dimension should be of size 2 (y,x)%s",
                               rn_text_of(offsets).text);
  return RN_OK;
}

static rn_status_t glimpse_compute(rn_kernel_ctx_t* ctx) {
  glimpse_t* g = ctx->state;
  const rn_tensor_t *input = rn_in(ctx, 0), *size = rn_in(ctx, 1), *offsets = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(check(input, size, offsets));
  const int64_t* dims = rn_tensor_dims(input);
  int64_t height = RN_DATA(size, const int32_t)[0], width = RN_DATA(size, const int32_t)[1];
  int64_t shape[4] = {dims[0], height, width, dims[3]}, depth = dims[3];
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, shape}, &out));
  if (out->count == 0) return RN_OK;
  for (int64_t b = 0; b < dims[0]; ++b) {
    const float* image = RN_DATA(input, const float) + b * dims[1] * dims[2] * depth;
    const float* at = RN_DATA(offsets, const float) + 2 * b;
    float* to = RN_DATA(out, float) + b * height * width * depth;
    int64_t y0 = start_of(g, at[0], dims[1], height), x0 = start_of(g, at[1], dims[2], width);
    if (y0 < 0 || x0 < 0 || y0 + height > dims[1] || x0 + width > dims[2])
      fill_noise(g, image, dims[1] * dims[2], depth, to, height * width);
    int64_t left = x0 < 0 ? 0 : x0, right = x0 + width < dims[2] ? x0 + width : dims[2];
    for (int64_t y = y0 < 0 ? 0 : y0; y < y0 + height && y < dims[1] && left < right; ++y)
      memcpy(to + ((y - y0) * width + left - x0) * depth, image + (y * dims[2] + left) * depth,
             (size_t)((right - left) * depth) * sizeof *to);
  }
  return RN_OK;
}

#define ROW(name)                                                                       \
  {                                                                                     \
    .op = name, .device = "CPU", .state_size = sizeof(glimpse_t), .init = glimpse_init, \
    .destroy = glimpse_destroy, .compute = glimpse_compute                              \
  }

static const rn_kernel_def_t rows[] = {ROW("ExtractGlimpse"), ROW("ExtractGlimpseV2")};
RN_KERNEL_FAMILY(cpu_image_glimpse, rows);
