// Random numbers: uniform, normal, truncated normal, integers, shuffles, draws from logits.
//
// A kernel has one Philox stream. Each call reserves a part that depends only on the number of its
// outputs, and each group of outputs starts at its own position in that part. So for the same seeds
// and calls the numbers are TensorFlow's, whichever thread computes which piece.
#include <float.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/philox.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

#define BLOCKS_PER_OUTPUT RN_RANDOM_BLOCKS
#define GRAIN_GROUPS 8192  // groups of outputs per piece of work
#define CHUNK_BLOCKS 256   // blocks of words generated at a time

// A fill: group g of |group| outputs comes from block g of |philox|.
typedef struct random_fill_t {
  rn_philox_t philox;
  void* out;
  int64_t count;
  int group;
  uint64_t low, range;  // for integers
  // Converts the words of |groups| groups to outputs.
  void (*convert)(const struct random_fill_t* fill, const uint32_t* words, int64_t group,
                  int64_t groups);
} random_fill_t;

static void fill_piece(void* arg, int64_t begin, int64_t end) {
  const random_fill_t* fill = arg;
  const rn_philox_table_t* table = RN_ISA_PICK(&rn_philox_table_);
  uint32_t words[4 * CHUNK_BLOCKS];
  while (begin < end) {
    int64_t groups = end - begin < CHUNK_BLOCKS ? end - begin : CHUNK_BLOCKS;
    rn_philox_t at = fill->philox;
    rn_philox_skip(&at, (uint64_t)begin);
    table->words(&at, words, groups);
    fill->convert(fill, words, begin, groups);
    begin += groups;
  }
}

static void float_piece(void* arg, int64_t begin, int64_t end) {
  const random_fill_t* fill = arg;
  rn_philox_t at = fill->philox;
  rn_philox_skip(&at, (uint64_t)begin);
  RN_ISA_PICK(&rn_philox_table_)->floats(&at, (float*)fill->out + 4 * begin, end - begin);
}

// Number of outputs from group |group| on in |groups| groups, up to the end of the tensor.
static inline int64_t outputs_of(const random_fill_t* fill, int64_t group, int64_t groups) {
  int64_t first = group * fill->group, count = groups * fill->group;
  return fill->count - first < count ? fill->count - first : count;
}

static void to_float(const random_fill_t* fill, const uint32_t* words, int64_t group,
                     int64_t groups) {
  float* out = (float*)fill->out + 4 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_word_to_float(words[i]);
}

static void to_double(const random_fill_t* fill, const uint32_t* words, int64_t group,
                      int64_t groups) {
  double* out = (double*)fill->out + 2 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_words_to_double(words[2 * i], words[2 * i + 1]);
}

// Ten random bits after a leading one, minus one: a half in [0, 1). All of these are exact.
static void to_half(const random_fill_t* fill, const uint32_t* words, int64_t group,
                    int64_t groups) {
  uint16_t* out = (uint16_t*)fill->out + 4 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_float_to_half((float)(words[i] & 0x3ff) * 0x1p-10f);
}

static void to_bfloat16(const random_fill_t* fill, const uint32_t* words, int64_t group,
                        int64_t groups) {
  uint16_t* out = (uint16_t*)fill->out + 4 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) out[i] = rn_float_to_bfloat16((float)(words[i] & 0x7f) * 0x1p-7f);
}

static void to_int32(const random_fill_t* fill, const uint32_t* words, int64_t group,
                     int64_t groups) {
  uint32_t* out = (uint32_t*)fill->out + 4 * group;
  int64_t n = outputs_of(fill, group, groups);
  uint32_t low = (uint32_t)fill->low, range = (uint32_t)fill->range;
  for (int64_t i = 0; i < n; ++i) out[i] = low + words[i] % range;
}

static void to_int64(const random_fill_t* fill, const uint32_t* words, int64_t group,
                     int64_t groups) {
  uint64_t* out = (uint64_t*)fill->out + 2 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
    out[i] = fill->low + bits % fill->range;
  }
}

static void bits_to_int32(const random_fill_t* fill, const uint32_t* words, int64_t group,
                          int64_t groups) {
  memcpy((uint32_t*)fill->out + 4 * group, words,
         (size_t)outputs_of(fill, group, groups) * sizeof *words);
}

static void bits_to_int64(const random_fill_t* fill, const uint32_t* words, int64_t group,
                          int64_t groups) {
  uint64_t* out = (uint64_t*)fill->out + 2 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; ++i) out[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

// Two normal numbers from two uniform ones (Box and Muller, 1958).
void rn_random_normal_floats(uint32_t x0, uint32_t x1, float out[2]) {
  float u1 = rn_word_to_float(x0);
  if (u1 < 1.0e-7f) u1 = 1.0e-7f;
  float angle = (float)(2.0 * M_PI * (double)rn_word_to_float(x1));
  float radius = sqrtf(-2.0f * logf(u1));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}

void rn_random_normal_pair(const uint32_t x[4], double out[2]) {
  double u1 = rn_words_to_double(x[0], x[1]);
  if (u1 < 1.0e-7) u1 = 1.0e-7;
  double angle = 2 * M_PI * rn_words_to_double(x[2], x[3]);
  double radius = sqrt(-2.0 * log(u1));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

static inline void store_float(rn_dtype_t dtype, void* out, int64_t i, float value) {
  if (dtype == RN_FLOAT)
    ((float*)out)[i] = value;
  else if (dtype == RN_HALF)
    ((uint16_t*)out)[i] = rn_float_to_half(value);
  else
    ((uint16_t*)out)[i] = rn_float_to_bfloat16(value);
}

#define NORMAL(name, dtype)                                                                     \
  static void normal_to_##name(const random_fill_t* fill, const uint32_t* words, int64_t group, \
                               int64_t groups) {                                                \
    int64_t n = outputs_of(fill, group, groups);                                                \
    for (int64_t i = 0; i < n; i += 2) {                                                        \
      float pair[2];                                                                            \
      rn_random_normal_floats(words[i], words[i + 1], pair);                                    \
      store_float(dtype, fill->out, 4 * group + i, pair[0]);                                    \
      if (i + 1 < n) store_float(dtype, fill->out, 4 * group + i + 1, pair[1]);                 \
    }                                                                                           \
  }
NORMAL(float, RN_FLOAT)
NORMAL(half, RN_HALF)
NORMAL(bfloat16, RN_BFLOAT16)

static void normal_to_double(const random_fill_t* fill, const uint32_t* words, int64_t group,
                             int64_t groups) {
  double* out = (double*)fill->out + 2 * group;
  int64_t n = outputs_of(fill, group, groups);
  for (int64_t i = 0; i < n; i += 2) {
    double pair[2];
    rn_random_normal_pair(words + 2 * i, pair);
    out[i] = pair[0];
    if (i + 1 < n) out[i + 1] = pair[1];
  }
}

// Makes output 0 with the shape that input 0 has.
static rn_status_t random_output(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 0), dims, &shape));
  return rn_output(ctx, 0, shape, out);
}

// Runs |fill|, whose kind and numbers are set; |philox| is its part of the stream.
static void run_fill(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out, random_fill_t* fill) {
  if (out->count == 0) return;
  fill->philox = philox;
  fill->out = out->data;
  fill->count = out->count;
  fill->group = rn_dtype_size(out->dtype) == 8 ? 2 : 4;
  int64_t groups = out->count / fill->group;
  if (fill->convert == to_float) {
    // Whole groups in bulk; the rest, if any, the ordinary way.
    rn_pool_for(pool, groups, 4 * GRAIN_GROUPS, float_piece, fill);
    if (groups * fill->group < out->count) fill_piece(fill, groups, groups + 1);
    return;
  }
  groups += groups * fill->group < out->count;
  rn_pool_for(pool, groups, GRAIN_GROUPS, fill_piece, fill);
}

// Reserves |out|'s part of the kernel's stream.
static rn_philox_t reserve(rn_kernel_ctx_t* ctx, const rn_tensor_t* out) {
  return rn_random_stream_reserve(ctx->state, (uint64_t)out->count * BLOCKS_PER_OUTPUT);
}

void rn_random_uniform(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out) {
  random_fill_t fill = {.convert = out->dtype == RN_FLOAT    ? to_float
                                   : out->dtype == RN_DOUBLE ? to_double
                                   : out->dtype == RN_HALF   ? to_half
                                                             : to_bfloat16};
  run_fill(pool, philox, out, &fill);
}

void rn_random_normal(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out) {
  random_fill_t fill = {.convert = out->dtype == RN_FLOAT    ? normal_to_float
                                   : out->dtype == RN_DOUBLE ? normal_to_double
                                   : out->dtype == RN_HALF   ? normal_to_half
                                                             : normal_to_bfloat16};
  run_fill(pool, philox, out, &fill);
}

void rn_random_integers(rn_pool_t* pool, rn_philox_t philox, uint64_t low, uint64_t range,
                        rn_tensor_t* out) {
  bool is_wide = rn_dtype_size(out->dtype) == 8;
  random_fill_t fill = {.low = low, .range = range};
  if (range)
    fill.convert = is_wide ? to_int64 : to_int32;
  else
    fill.convert = is_wide ? bits_to_int64 : bits_to_int32;
  run_fill(pool, philox, out, &fill);
}

static rn_status_t random_uniform(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(random_output(ctx, &out));
  if (out->count) rn_random_uniform(rn_ctx_pool(ctx), reserve(ctx, out), out);
  return RN_OK;
}

static rn_status_t random_normal(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(random_output(ctx, &out));
  if (out->count) rn_random_normal(rn_ctx_pool(ctx), reserve(ctx, out), out);
  return RN_OK;
}

rn_status_t rn_random_check_bounds(const rn_tensor_t* low, const rn_tensor_t* high) {
  if (low->rank != 0)
    return rn_invalid_argument("minval must be 0-D, got shape %s", rn_text_of(low).text);
  if (high->rank != 0)
    return rn_invalid_argument("maxval must be 0-D, got shape %s", rn_text_of(high).text);
  return RN_OK;
}

rn_status_t rn_random_range(const rn_tensor_t* low, const rn_tensor_t* high, uint64_t* out_low,
                            uint64_t* out_range) {
  RN_RETURN_IF_ERROR(rn_random_check_bounds(low, high));
  int64_t from = rn_int_at(low, 0), to = rn_int_at(high, 0);
  if (from >= to)
    return rn_invalid_argument("Need minval < maxval, got %lld >= %lld", (long long)from,
                               (long long)to);
  *out_low = (uint64_t)from;
  *out_range = (uint64_t)to - (uint64_t)from;
  return RN_OK;
}

static rn_status_t random_integers(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *low = rn_in(ctx, 1), *high = rn_in(ctx, 2);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_random_check_bounds(low, high));
  RN_RETURN_IF_ERROR(random_output(ctx, &out));
  if (out->count == 0) return RN_OK;  // then the range may be empty
  uint64_t from, range;
  RN_RETURN_IF_ERROR(rn_random_range(low, high, &from, &range));
  rn_random_integers(rn_ctx_pool(ctx), reserve(ctx, out), from, range, out);
  return RN_OK;
}

// Truncated: numbers beyond two standard deviations are redrawn, so every group has enough words of
// its own.
typedef struct truncated_t {
  rn_philox_t philox;
  rn_dtype_t dtype;
  void* out;
  int64_t count;
} truncated_t;

static void truncated_group(const truncated_t* job, int64_t group) {
  int size = job->dtype == RN_DOUBLE ? 2 : 4;
  rn_philox_t at = job->philox;
  rn_philox_skip(&at, (uint64_t)group * (uint64_t)(size * BLOCKS_PER_OUTPUT / 4));
  rn_philox_single_t words = rn_philox_single(at);
  int64_t first = group * size;
  int made = 0;
  while (made < size && first + made < job->count) {
    uint32_t x[4] = {rn_philox_word(&words), rn_philox_word(&words)};
    double pair[2];
    if (job->dtype == RN_DOUBLE) {
      x[2] = rn_philox_word(&words);
      x[3] = rn_philox_word(&words);
      rn_random_normal_pair(x, pair);
    } else {
      float floats[2];
      rn_random_normal_floats(x[0], x[1], floats);
      pair[0] = floats[0];
      pair[1] = floats[1];
    }
    for (int k = 0; k < 2 && made < size && first + made < job->count; ++k) {
      if (!(fabs(pair[k]) < 2.0)) continue;
      if (job->dtype == RN_DOUBLE)
        ((double*)job->out)[first + made] = pair[k];
      else
        store_float(job->dtype, job->out, first + made, (float)pair[k]);
      ++made;
    }
  }
}

static void truncated_piece(void* arg, int64_t begin, int64_t end) {
  for (int64_t group = begin; group < end; ++group) truncated_group(arg, group);
}

void rn_random_truncated(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out) {
  if (out->count == 0) return;
  truncated_t job = {.philox = philox, .dtype = out->dtype, .out = out->data, .count = out->count};
  int64_t size = out->dtype == RN_DOUBLE ? 2 : 4;
  rn_pool_for(pool, (out->count - 1) / size + 1, GRAIN_GROUPS / 16, truncated_piece, &job);
}

static rn_status_t truncated_normal(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(random_output(ctx, &out));
  if (out->count) rn_random_truncated(rn_ctx_pool(ctx), reserve(ctx, out), out);
  return RN_OK;
}

// Which of the remaining rows each position takes, some at a time.
enum { SHUFFLE_WORDS = 256 };
typedef struct draws_t {
  rn_philox_t philox;
  uint32_t words[SHUFFLE_WORDS];
  int used;
} draws_t;

static inline int64_t shuffle_next(draws_t* shuffle, int64_t left) {
  if (shuffle->used == SHUFFLE_WORDS) {
    RN_ISA_PICK(&rn_philox_table_)->words(&shuffle->philox, shuffle->words, SHUFFLE_WORDS / 4);
    rn_philox_skip(&shuffle->philox, SHUFFLE_WORDS / 4);
    shuffle->used = 0;
  }
  const uint32_t word = shuffle->words[shuffle->used++];
  return left > UINT32_MAX ? word : word % (uint32_t)left;
}

#define SHUFFLE(T)                                                     \
  static void shuffle_##T(draws_t* shuffle, T* items, int64_t count) { \
    for (int64_t i = 0; i + 1 < count; ++i) {                          \
      const int64_t j = i + shuffle_next(shuffle, count - i);          \
      const T other = items[j];                                        \
      items[j] = items[i];                                             \
      items[i] = other;                                                \
    }                                                                  \
  }
SHUFFLE(uint32_t)
SHUFFLE(int64_t)

// Shuffles along the first dimension: each position takes one of the remaining rows.
rn_status_t rn_random_shuffle(rn_kernel_ctx_t* ctx, const rn_philox_t* philox) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int64_t rows = input->rank ? rn_tensor_dim(input, 0) : 1;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (input->count <= 1 || rows <= 1)
    return rn_move_row(input->dtype, input->data, out->data, input->count);
  draws_t shuffle = {
      .philox = philox ? *philox : rn_random_stream_reserve(ctx->state, ((uint64_t)rows + 2) / 4),
      .used = SHUFFLE_WORDS};
  if (rn_dtype_is_plain(input->dtype) && rn_tensor_bytes(input) == (size_t)rows * 4) {
    memcpy(out->data, input->data, rn_tensor_bytes(input));
    shuffle_uint32_t(&shuffle, out->data, rows);
    return RN_OK;
  }
  rn_tensor_t order = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &rows}, &order));
  int64_t* from = RN_DATA(&order, int64_t);
  for (int64_t i = 0; i < rows; ++i) from[i] = i;
  shuffle_int64_t(&shuffle, from, rows);
  int64_t width = input->count / rows;
  size_t bytes = (size_t)width * rn_dtype_size(input->dtype);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < rows; ++i) {
    const char* source = RN_DATA(input, const char) + (size_t)from[i] * bytes;
    char* target = RN_DATA(out, char) + (size_t)i * bytes;
    if (rn_dtype_is_plain(input->dtype))
      rn_move_bytes(target, source, bytes);
    else
      status = rn_move_row(input->dtype, source, target, width);
  }
  rn_tensor_clear(&order);
  return status;
}

static rn_status_t random_shuffle(rn_kernel_ctx_t* ctx) { return rn_random_shuffle(ctx, NULL); }

// Draws classes, each row from its own logits.
typedef struct draw_t {
  rn_philox_t philox;
  const rn_tensor_t* logits;
  rn_tensor_t* out;
  double* sums;  // one row per piece
  int64_t classes, draws;
} draw_t;

static void draw_row(const draw_t* job, int64_t row, double* sums) {
  int64_t first = row * job->classes;
  double largest = -DBL_MAX, total = 0;
  if (job->logits->dtype == RN_FLOAT)
    for (int64_t c = 0; c < job->classes; ++c)
      sums[c] = RN_DATA(job->logits, const float)[first + c];
  else
    for (int64_t c = 0; c < job->classes; ++c) sums[c] = rn_number_at(job->logits, first + c);
  for (int64_t c = 0; c < job->classes; ++c)
    largest = isfinite(sums[c]) && sums[c] > largest ? sums[c] : largest;
  for (int64_t c = 0; c < job->classes; ++c)
    sums[c] = isfinite(sums[c]) ? sums[c] - largest : -INFINITY;
  rn_vector_run(RN_VECTOR_EXP, RN_DOUBLE, sums, 1, NULL, 0, sums, job->classes);
  for (int64_t c = 0; c < job->classes; ++c) sums[c] = total += sums[c];
  // Rows are consecutive in the stream, with two words per draw.
  rn_philox_single_t words = rn_philox_single(job->philox);
  rn_philox_single_skip(&words, (uint64_t)row * (uint64_t)job->draws * 2);
  for (int64_t d = 0; d < job->draws; ++d) {
    uint32_t high = rn_philox_word(&words), low = rn_philox_word(&words);
    double wanted = rn_words_to_double(high, low) * total;
    int64_t begin = 0;
    for (int64_t left = job->classes; left > 0;) {  // without branches
      const int64_t half = left / 2;
      const bool is_above = !(wanted < sums[begin + half]);
      begin += is_above * (half + 1);
      left = half - (is_above & (left % 2 == 0));
    }
    rn_int_set(job->out, row * job->draws + d, begin);
  }
}

static void draw_piece(void* arg, int64_t begin, int64_t end) {
  const draw_t* job = arg;
  for (int64_t row = begin; row < end; ++row) draw_row(job, row, job->sums + row * job->classes);
}

rn_status_t rn_random_multinomial_output(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t* logits = rn_in(ctx, 0);
  const rn_tensor_t* samples = rn_in(ctx, 1);
  if (logits->rank != 2)
    return rn_invalid_argument("logits should be a matrix, got shape %s", rn_text_of(logits).text);
  if (samples->rank != 0)
    return rn_invalid_argument("num_samples should be a scalar, got shape %s",
                               rn_text_of(samples).text);
  int64_t draws = rn_int_at(samples, 0);
  if (draws < 0)
    return rn_invalid_argument("num_samples should be non-negative, got %lld", (long long)draws);
  int64_t rows = rn_tensor_dim(logits, 0), classes = rn_tensor_dim(logits, 1);
  if (classes <= 0)
    return rn_invalid_argument("num_classes should be positive, got %lld", (long long)classes);
  int64_t dims[2] = {rows, draws};
  return rn_output(ctx, 0, (rn_shape_t){2, dims}, out);
}

rn_status_t rn_random_multinomial(rn_kernel_ctx_t* ctx, const rn_philox_t* philox) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_random_multinomial_output(ctx, &out));
  if (out->count == 0) return RN_OK;
  const rn_tensor_t* logits = rn_in(ctx, 0);
  int64_t rows = rn_tensor_dim(logits, 0), classes = rn_tensor_dim(logits, 1);
  int64_t draws = rn_tensor_dim(out, 1);
  // A draw takes a double, that is two words.
  uint64_t outputs = ((uint64_t)draws + 3) / 4 * 8 * (uint64_t)rows;
  rn_tensor_t sums = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, rn_tensor_shape(logits), &sums));
  draw_t job = {
      philox ? *philox : rn_random_stream_reserve(ctx->state, outputs * BLOCKS_PER_OUTPUT),
      logits,
      out,
      RN_DATA(&sums, double),
      classes,
      draws};
  int64_t grain = 20000 / (classes + 4 * draws) + 1;
  rn_pool_for(rn_ctx_pool(ctx), rows, grain, draw_piece, &job);
  rn_tensor_clear(&sums);
  return RN_OK;
}

static rn_status_t multinomial(rn_kernel_ctx_t* ctx) { return rn_random_multinomial(ctx, NULL); }

#define RANDOM(name, attr, set, function)                                                          \
  {                                                                                                \
    .op = name, .device = "CPU", .types = {{attr, set}}, .state_size = sizeof(rn_random_stream_t), \
    .init = rn_random_stream_init, .destroy = rn_random_stream_destroy, .compute = function        \
  }

static const rn_kernel_def_t rows[] = {
    RANDOM("RandomUniform", "dtype", RN_TYPES_FLOATS, random_uniform),
    RANDOM("RandomStandardNormal", "dtype", RN_TYPES_FLOATS, random_normal),
    RANDOM("TruncatedNormal", "dtype", RN_TYPES_FLOATS, truncated_normal),
    RANDOM("RandomUniformInt", "Tout", RN_TYPES_INDEX, random_integers),
    RANDOM("RandomShuffle", "T", RN_TYPES_ALL, random_shuffle),
    RANDOM("Multinomial", "T", RN_TYPES_FLOATS, multinomial),
};
RN_KERNEL_FAMILY(cpu_random, rows);
