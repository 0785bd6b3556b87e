// WAV files of 16-bit samples.
#ifndef RUNNEL_IO_WAV_H_
#define RUNNEL_IO_WAV_H_

#include "base/status.h"
#include "base/str.h"

enum { RN_WAV_HEADER_SIZE = 44, RN_WAV_SAMPLE_SIZE = 2 };

typedef struct rn_wav_t {
  uint16_t channels;
  uint32_t rate;  // samples per second
  uint32_t frames;
  const uint8_t* data;  // Borrowed: frames * channels samples, the low byte first
} rn_wav_t;

// INVALID_ARGUMENT, with TensorFlow's messages.
RN_MUST_USE rn_status_t rn_wav_read(rn_str_t bytes, rn_wav_t* wav);
static inline float rn_wav_sample(const rn_wav_t* wav, int64_t i) {
  const uint8_t* at = wav->data + RN_WAV_SAMPLE_SIZE * i;
  return (float)(int16_t)(at[0] | at[1] << 8) / 32768.0f;
}

// Appends a file of the samples, of which those outside of [-1, 1] are clamped. The caller checks
// that the size of the file is below 2^32, the number of channels below 2^15.
void rn_wav_write(rn_strbuf_t* buf, const float* samples, uint32_t rate, int64_t channels,
                  int64_t frames);

#endif  // RUNNEL_IO_WAV_H_
