// Shape functions of Fourier transforms and audio.
#include "ops/shapes.h"

static rn_status_t unchanged(rn_shape_ctx_t* ctx, int rank) {
  return rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), rank, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_fft_1(rn_shape_ctx_t* ctx) { return unchanged(ctx, 1); }
rn_status_t rn_shape_fn_fft_2(rn_shape_ctx_t* ctx) { return unchanged(ctx, 2); }
rn_status_t rn_shape_fn_fft_3(rn_shape_ctx_t* ctx) { return unchanged(ctx, 3); }

// The last |rank| dims of |in| are those in input 1; the very last of them halved, if |halves|.
static rn_status_t resized(rn_shape_ctx_t* ctx, rn_shape_t in, int rank, bool halves) {
  const rn_tensor_t* lengths = rn_shape_input_value(ctx, 1);
  for (int i = 0; i < rank && rn_shape_has_rank(in); ++i) {
    int64_t dim = lengths && i < lengths->count ? rn_tensor_int(lengths, i) : RN_UNKNOWN;
    if (lengths && halves && i == rank - 1 && dim) dim = dim / 2 + 1;
    RN_TRY(rn_shape_replace_dim(ctx, in, i - rank, dim < 0 ? RN_UNKNOWN : dim, &in));
  }
  *rn_shape_out(ctx, 0) = in;
  return RN_OK;
}

static rn_status_t real(rn_shape_ctx_t* ctx, int rank, bool halves) {
  rn_shape_t in, lengths;
  int64_t size;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), rank, &in));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &lengths));
  RN_TRY(rn_dim_with_value(rn_shape_dim(lengths, 0), rank, &size));
  return resized(ctx, in, rank, halves);
}

rn_status_t rn_shape_fn_rfft_1(rn_shape_ctx_t* ctx) { return real(ctx, 1, true); }
rn_status_t rn_shape_fn_rfft_2(rn_shape_ctx_t* ctx) { return real(ctx, 2, true); }
rn_status_t rn_shape_fn_rfft_3(rn_shape_ctx_t* ctx) { return real(ctx, 3, true); }
rn_status_t rn_shape_fn_irfft_1(rn_shape_ctx_t* ctx) { return real(ctx, 1, false); }
rn_status_t rn_shape_fn_irfft_2(rn_shape_ctx_t* ctx) { return real(ctx, 2, false); }
rn_status_t rn_shape_fn_irfft_3(rn_shape_ctx_t* ctx) { return real(ctx, 3, false); }

// Stock says that the shape stays, which is wrong for other lengths.
static rn_status_t any_rank(rn_shape_ctx_t* ctx, bool halves) {
  rn_shape_t in, lengths = rn_shape_in(ctx, 1);
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  if (!rn_shape_has_rank(in)) return RN_OK;
  int64_t rank = rn_shape_dim(lengths, lengths.rank == 1 ? 0 : -1);
  if (lengths.rank != 1 || rank < 0 || rank > in.rank)
    return rn_shape_of_rank(ctx, in.rank, rn_shape_out(ctx, 0));
  return resized(ctx, in, (int)rank, halves);
}

rn_status_t rn_shape_fn_fft_nd(rn_shape_ctx_t* ctx) { return any_rank(ctx, false); }
rn_status_t rn_shape_fn_rfft_nd(rn_shape_ctx_t* ctx) { return any_rank(ctx, true); }

// A size in an attribute, unknown if it is -1.
static rn_status_t wanted_size(rn_shape_ctx_t* ctx, const char* attr, const char* what,
                               int64_t* out) {
  *out = rn_ops_int(ctx, attr);
  if (*out >= -1) return RN_OK;
  return rn_invalid_argument("%s must be non-negative, got %" PRId64, what, *out);
}

rn_status_t rn_shape_fn_decode_wav(rn_shape_ctx_t* ctx) {
  int64_t channels, samples;
  RN_TRY(rn_ops_check_scalars(ctx, 0, 0));
  RN_TRY(wanted_size(ctx, "desired_channels", "channels", &channels));
  RN_TRY(wanted_size(ctx, "desired_samples", "samples", &samples));
  RN_TRY(rn_shape_matrix(ctx, samples, channels, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_encode_wav(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 2));
  RN_TRY(rn_ops_check_scalars(ctx, 1, 1));
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  return RN_OK;
}

// [samples, channels] to [channels, windows, frequencies]. Stock takes the input for
// [channels, samples].
rn_status_t rn_shape_fn_audio_spectrogram(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, &in));
  int64_t window = rn_ops_int(ctx, "window_size"), stride = rn_ops_int(ctx, "stride");
  if (window <= 1) return rn_invalid_argument("window size must be > 1, got %" PRId64, window);
  if (stride <= 0)
    return rn_invalid_argument("stride must be strictly positive, got %" PRId64, stride);
  int64_t samples = rn_shape_dim(in, 0), windows = samples, frequencies = 1;
  if (samples != RN_UNKNOWN) windows = samples < window ? 0 : 1 + (samples - window) / stride;
  while (frequencies < INT32_MAX && frequencies < window) frequencies *= 2;
  return rn_shape_make(ctx, 3, (int64_t[]){rn_shape_dim(in, 1), windows, 1 + frequencies / 2},
                       rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_mfcc(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t count = rn_ops_int(ctx, "dct_coefficient_count");
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 3, &in));
  RN_TRY(rn_ops_check_scalars(ctx, 1, 1));
  return rn_shape_replace_dim(ctx, in, 2, count < 0 ? RN_UNKNOWN : count, rn_shape_out(ctx, 0));
}
