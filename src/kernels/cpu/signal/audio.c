// AudioSpectrogram and Mfcc: windows of samples to frequencies, and frequencies to mel bands.
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/signal/fft.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"

static const double pi = 3.14159265358979323846;

typedef struct spectrogram_state_t {
  rn_fft_cache_t cache;
  int64_t window, stride, length;  // length: of the transform, the next power of two
  bool is_squared;
} spectrogram_state_t;

// The windows of one channel, multiplied by a periodic Hann window and followed by zeros.
static void cut_windows(const spectrogram_state_t* state, const rn_tensor_t* in, int64_t channel,
                        int64_t count, const double* hann, double* out) {
  const int64_t channels = rn_tensor_dim(in, 1);
  for (int64_t w = 0; w < count; ++w, out += state->length) {
    const float* from = RN_DATA(in, const float) + w * state->stride * channels + channel;
    for (int64_t i = 0; i < state->window; ++i) out[i] = (double)from[i * channels] * hann[i];
    memset(out + state->window, 0, (size_t)(state->length - state->window) * sizeof *out);
  }
}

static rn_status_t spectrogram(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  spectrogram_state_t* state = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  if (in->rank != 2)
    return rn_invalid_argument("input must be 2-dimensional%s", rn_text_of(in).text);
  const int64_t samples = rn_tensor_dim(in, 0), width = state->length / 2 + 1;
  const int64_t count = samples < state->window ? 0 : 1 + (samples - state->window) / state->stride;
  const int64_t dims[3] = {rn_tensor_dim(in, 1), count, width};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){3, dims}, &out));
  if (out->count == 0) return RN_OK;
  double *hann = NULL, *windows = NULL, *waves = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)state->window, &hann));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)(count * state->length), &windows));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)(2 * count * width), &waves));
  for (int64_t i = 0; i < state->window; ++i)
    hann[i] = 0.5 - 0.5 * cos(2 * pi * (double)i / (double)state->window);
  const rn_fft_env_t env = {&state->cache, ctx->kernel->allocator, rn_ctx_pool(ctx)};
  float* to = out->data;
  for (int64_t c = 0; c < dims[0]; ++c) {
    cut_windows(state, in, c, count, hann, windows);
    const rn_fft_rows_t rows = {.kind = RN_FFT_FROM_REAL,
                                .width = RN_FFT_DOUBLE,
                                .n = state->length,
                                .scale = 1,
                                .in = windows,
                                .in_row = state->length,
                                .in_used = state->length,
                                .out = waves,
                                .rank = 1,
                                .in_dims = &count,
                                .out_dims = &count};
    RN_RETURN_IF_ERROR(rn_fft_rows(&env, &rows));
    for (int64_t i = 0; i < count * width; ++i) {
      float square = (float)(waves[2 * i] * waves[2 * i] + waves[2 * i + 1] * waves[2 * i + 1]);
      *to++ = state->is_squared ? square : sqrtf(square);
    }
  }
  return RN_OK;
}

static rn_status_t spectrogram_compute(rn_kernel_ctx_t* ctx) {
  return rn_with_arena(ctx, spectrogram);
}

static rn_status_t spectrogram_init(const rn_kernel_init_t* init, void* arg) {
  spectrogram_state_t* state = arg;
  state->window = rn_init_int(init, "window_size");
  state->stride = rn_init_int(init, "stride");
  state->is_squared = rn_init_bool(init, "magnitude_squared");
  rn_fft_cache_init(&state->cache);
  if (state->window < 2 || state->window > INT32_MAX / 2)
    return rn_invalid_argument("window_size must be > 1, got %" PRId64, state->window);
  if (state->stride < 1)
    return rn_invalid_argument("stride must be > 0, got %" PRId64, state->stride);
  state->length = 1;
  while (state->length < state->window) state->length *= 2;
  return RN_OK;
}

static void spectrogram_destroy(void* state) {
  rn_fft_cache_clear(&((spectrogram_state_t*)state)->cache);
}

// Mel-frequency cepstral coefficients: the frequencies are added up in triangular bands that are
// evenly spaced on the mel scale; the logarithms of the sums are transformed by cosines.
typedef struct mfcc_state_t {
  double highest, lowest;  // frequencies
  int64_t bands, coefficients;
} mfcc_state_t;

typedef struct mfcc_t {
  const mfcc_state_t* state;
  int64_t first, last;  // frequencies of the spectrum that count
  int32_t* band;        // by frequency: the band on whose falling side it is, -1 for none
  double* weight;       // by frequency: its part of that band; the rest is the next band's
  double* cosines;      // coefficients x bands
  double* sums;         // by band
} mfcc_t;

static double mel(double frequency) { return 1127.0 * log1p(frequency / 700.0); }

static void place_bands(mfcc_t* m, int64_t width, double step) {
  const double low = mel(m->state->lowest), high = mel(m->state->highest);
  const double space = (high - low) / (double)(m->state->bands + 1);
  int64_t next = 0;
  for (int64_t i = m->first; i <= m->last && i < width; ++i) {
    double here = mel((double)i * step);
    while (next < m->state->bands && low + space * (double)(next + 1) < here) ++next;
    m->band[i] = (int32_t)next - 1;
    m->weight[i] = (low + space * (double)(next + 1) - here) / space;
  }
}

static rn_status_t mfcc_begin(mfcc_t* m, int64_t width, int64_t rate, rn_arena_t* arena) {
  const mfcc_state_t* s = m->state;
  if (s->bands < 1 || rate <= 0 || width < 2 || s->lowest < 0 || !(s->highest > s->lowest) ||
      s->coefficients < 1 || s->coefficients > s->bands || s->bands >= INT32_MAX)
    return rn_invalid_argument("Mfcc initialization failed for channel count %" PRId64
                               ", sample rate %" PRId64 " and filterbank_channel_count %" PRId64,
                               width, rate, s->bands);
  const double step = 0.5 * (double)rate / (double)(width - 1);
  const double first = 1.5 + s->lowest / step, last = s->highest / step;
  m->first = first < (double)width ? (int64_t)first : width;
  m->last = last < (double)width ? (int64_t)last : width;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)width, &m->band));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)width, &m->weight));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)s->bands, &m->sums));
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(
      arena, (size_t)s->coefficients, (size_t)s->bands * sizeof *m->cosines, (void**)&m->cosines));
  place_bands(m, width, step);
  const double scale = sqrt(2.0 / (double)s->bands), angle = pi / (double)s->bands;
  for (int64_t i = 0; i < s->coefficients; ++i)
    for (int64_t j = 0; j < s->bands; ++j)
      m->cosines[i * s->bands + j] = scale * cos((double)i * angle * ((double)j + 0.5));
  return RN_OK;
}

static void mfcc_row(const mfcc_t* m, const float* spectrum, float* out) {
  const int64_t bands = m->state->bands;
  memset(m->sums, 0, (size_t)bands * sizeof *m->sums);
  for (int64_t i = m->first; i <= m->last; ++i) {
    double size = sqrt((double)spectrum[i]), part = size * m->weight[i];
    int64_t band = m->band[i];
    if (band >= 0) m->sums[band] += part;
    if (band + 1 < bands) m->sums[band + 1] += size - part;
  }
  for (int64_t j = 0; j < bands; ++j) m->sums[j] = log(m->sums[j] < 1e-12 ? 1e-12 : m->sums[j]);
  for (int64_t i = 0; i < m->state->coefficients; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < bands; ++j) sum += m->cosines[i * bands + j] * m->sums[j];
    out[i] = (float)sum;
  }
}

static rn_status_t mfcc(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_tensor_t *in = rn_in(ctx, 0), *rate = rn_in(ctx, 1);
  mfcc_t m = {.state = ctx->state};
  rn_tensor_t* out = NULL;
  if (in->rank != 3)
    return rn_invalid_argument("spectrogram must be 3-dimensional%s", rn_text_of(in).text);
  if (rate->rank != 0)
    return rn_invalid_argument("Input sample_rate should be a scalar tensor, got %s instead.",
                               rn_text_of(rate).text);
  const int64_t width = rn_tensor_dim(in, 2), rows = rn_tensor_dim(in, 0) * rn_tensor_dim(in, 1);
  RN_RETURN_IF_ERROR(mfcc_begin(&m, width, RN_DATA(rate, const int32_t)[0], arena));
  const int64_t dims[3] = {rn_tensor_dim(in, 0), rn_tensor_dim(in, 1), m.state->coefficients};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){3, dims}, &out));
  // A spectrum that ends below the highest frequency gives nothing, as in stock.
  if (m.last >= width) {
    if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  for (int64_t i = 0; i < rows; ++i)
    mfcc_row(&m, RN_DATA(in, const float) + i * width, RN_DATA(out, float) + i * dims[2]);
  return RN_OK;
}

static rn_status_t mfcc_compute(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, mfcc); }

static rn_status_t mfcc_init(const rn_kernel_init_t* init, void* state) {
  *(mfcc_state_t*)state =
      (mfcc_state_t){.highest = (double)rn_init_float(init, "upper_frequency_limit"),
                     .lowest = (double)rn_init_float(init, "lower_frequency_limit"),
                     .bands = rn_init_int(init, "filterbank_channel_count"),
                     .coefficients = rn_init_int(init, "dct_coefficient_count")};
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "AudioSpectrogram",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(spectrogram_state_t),
     .init = spectrogram_init,
     .destroy = spectrogram_destroy,
     .compute = spectrogram_compute},
    {.op = "Mfcc",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(mfcc_state_t),
     .init = mfcc_init,
     .compute = mfcc_compute},
};
RN_KERNEL_FAMILY(cpu_audio, rows);
