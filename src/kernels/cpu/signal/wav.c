// DecodeWav and EncodeWav; io/wav.h implements the format.
#include <inttypes.h>

#include "io/wav.h"
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct wav_state_t {
  int64_t channels, samples;  // wanted, or -1
} wav_state_t;

static void copy_samples(const rn_wav_t* wav, float* out, int64_t samples, int64_t channels) {
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t c = 0; c < channels; ++c) {
      int64_t from = c < wav->channels ? c : wav->channels - 1;
      out[i * channels + c] = rn_wav_sample(wav, i * wav->channels + from);
    }
}

static rn_status_t decode_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* contents = rn_in(ctx, 0);
  const wav_state_t* state = ctx->state;
  rn_tensor_t *out = NULL, *rate = NULL;
  rn_wav_t wav;
  if (contents->rank != 0)
    return rn_invalid_argument("contents must be scalar, got shape %s", rn_text_of(contents).text);
  rn_str_t bytes = rn_tstring_view(RN_DATA(contents, const rn_tstring_t));
  if (bytes.size > INT32_MAX)
    return rn_invalid_argument("WAV contents are too large for int: %zu", bytes.size);
  RN_RETURN_IF_ERROR(rn_wav_read(bytes, &wav));
  int64_t dims[2] = {state->samples == -1 ? (int64_t)wav.frames : state->samples,
                     state->channels == -1 ? (int64_t)wav.channels : state->channels};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &rate));
  int64_t known = dims[0] < wav.frames ? dims[0] : wav.frames;
  copy_samples(&wav, out->data, known, dims[1]);
  if (dims[0] > known && dims[1])
    memset(RN_DATA(out, float) + known * dims[1], 0,
           (size_t)((dims[0] - known) * dims[1]) * sizeof(float));
  RN_DATA(rate, int32_t)[0] = (int32_t)wav.rate;
  return RN_OK;
}

static rn_status_t decode_init(const rn_kernel_init_t* init, void* state) {
  *(wav_state_t*)state =
      (wav_state_t){rn_init_int(init, "desired_channels"), rn_init_int(init, "desired_samples")};
  return RN_OK;
}

static rn_status_t check_encode(const rn_tensor_t* audio, const rn_tensor_t* rate) {
  if (audio->rank != 2)
    return rn_invalid_argument("audio must be 2-dimensional%s", rn_text_of(audio).text);
  if (rate->rank != 0)
    return rn_invalid_argument("Input sample_rate should be a scalar tensor, got %s instead.",
                               rn_text_of(rate).text);
  if (audio->count >= INT32_MAX)
    return rn_invalid_argument("Cannot encode audio with >= max int32 elements");
  int64_t hertz = RN_DATA(rate, const int32_t)[0], channels = rn_tensor_dim(audio, 1);
  if (hertz <= 0)
    return rn_invalid_argument("sample_rate must be in (0, 2^32), got: %" PRIu64, (uint64_t)hertz);
  if (channels == 0 || channels > UINT16_MAX)
    return rn_invalid_argument("num_channels must be in (0, 2^16), got: %" PRId64, channels);
  if ((uint64_t)audio->count * RN_WAV_SAMPLE_SIZE + RN_WAV_HEADER_SIZE > UINT32_MAX)
    return rn_invalid_argument("Provided channels and frames cannot be encoded as a WAV.");
  return RN_OK;
}

static rn_status_t encode_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *audio = rn_in(ctx, 0), *rate = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(check_encode(audio, rate));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_wav_write(&buf, audio->data, (uint32_t)RN_DATA(rate, const int32_t)[0],
               rn_tensor_dim(audio, 1), rn_tensor_dim(audio, 0));
  rn_status_t status = rn_strbuf_status(&buf);
  rn_str_t bytes = rn_strbuf_view(&buf);
  if (rn_ok(status) && !rn_tstring_assign(RN_DATA(out, rn_tstring_t), bytes.data, bytes.size))
    status = rn_out_of_memory();
  rn_strbuf_clear(&buf);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "DecodeWav",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(wav_state_t),
     .init = decode_init,
     .compute = decode_compute},
    {.op = "EncodeWav", .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = encode_compute},
};
RN_KERNEL_FAMILY(cpu_wav, rows);
