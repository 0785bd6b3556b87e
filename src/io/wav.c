// See wav.h.
#include "io/wav.h"

#include <inttypes.h>
#include <math.h>

// What is left to read.
typedef struct wav_reader_t {
  const uint8_t* at;
  size_t left;
} wav_reader_t;

static rn_status_t take(wav_reader_t* reader, size_t size, const uint8_t** out) {
  if (reader->left < size) return rn_invalid_argument("Data too short when trying to read string");
  *out = reader->at;
  reader->at += size;
  reader->left -= size;
  return RN_OK;
}

// A number of |size| bytes, the lowest first.
static rn_status_t take_number(wav_reader_t* reader, size_t size, uint32_t* out) {
  const uint8_t* bytes = NULL;
  RN_RETURN_IF_ERROR(take(reader, size, &bytes));
  *out = 0;
  for (size_t i = 0; i < size; ++i) *out |= (uint32_t)bytes[i] << (8 * i);
  return RN_OK;
}

static rn_status_t expect(wav_reader_t* reader, const char* text) {
  const uint8_t* found = NULL;
  RN_RETURN_IF_ERROR(take(reader, 4, &found));
  if (!memcmp(found, text, 4)) return RN_OK;
  return rn_invalid_argument("Header mismatch: Expected %s but found %.4s", text,
                             (const char*)found);
}

// Chunks that may come before the format.
static bool is_skipped(const uint8_t* name) {
  static const char names[][5] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (!memcmp(name, names[i], 4)) return true;
  return false;
}

static rn_status_t find_format(wav_reader_t* reader) {
  const uint8_t* name = NULL;
  uint32_t size = 0;
  RN_RETURN_IF_ERROR(expect(reader, "RIFF"));
  RN_RETURN_IF_ERROR(take_number(reader, 4, &size));
  RN_RETURN_IF_ERROR(expect(reader, "WAVE"));
  RN_RETURN_IF_ERROR(take(reader, 4, &name));
  while (memcmp(name, "fmt ", 4) != 0) {
    if (!is_skipped(name)) return rn_invalid_argument("Unexpected field %.4s", (const char*)name);
    RN_RETURN_IF_ERROR(take_number(reader, 4, &size));
    RN_RETURN_IF_ERROR(take(reader, size, &name));
    RN_RETURN_IF_ERROR(take(reader, 4, &name));
  }
  return RN_OK;
}

static rn_status_t check_rates(const rn_wav_t* wav, uint32_t per_second, uint32_t per_frame,
                               uint32_t bits) {
  if (bits != 16)
    return rn_invalid_argument("Can only read 16-bit WAV files, but received %" PRIu32, bits);
  uint32_t frame = (uint32_t)RN_WAV_SAMPLE_SIZE * wav->channels;
  if (per_frame != frame)
    return rn_invalid_argument("Bad bytes per sample in WAV header: Expected %" PRIu32
                               " but got %" PRIu32,
                               frame, per_frame);
  uint32_t second = frame * wav->rate;
  if (per_second != second)
    return rn_invalid_argument("Bad bytes per second in WAV header: Expected %" PRIu32
                               " but got %" PRIu32 " (sample_rate=%" PRIu32
                               ", bytes_per_sample=%" PRIu32 ")",
                               second, per_second, wav->rate, per_frame);
  return RN_OK;
}

static rn_status_t read_format(wav_reader_t* reader, rn_wav_t* wav) {
  uint32_t size, format, channels, per_second, per_frame, bits, more;
  RN_RETURN_IF_ERROR(take_number(reader, 4, &size));
  if (size != 16 && size != 18)
    return rn_invalid_argument("Bad format chunk size for WAV: Expected 16 or 18, but got%" PRIu32,
                               size);
  RN_RETURN_IF_ERROR(take_number(reader, 2, &format));
  if (format != 1)
    return rn_invalid_argument("Bad audio format for WAV: Expected 1 (PCM), but got%" PRIu32,
                               format);
  RN_RETURN_IF_ERROR(take_number(reader, 2, &channels));
  if (channels < 1)
    return rn_invalid_argument(
        "Bad number of channels for WAV: Expected at least 1, but got %" PRIu32, channels);
  wav->channels = (uint16_t)channels;
  RN_RETURN_IF_ERROR(take_number(reader, 4, &wav->rate));
  RN_RETURN_IF_ERROR(take_number(reader, 4, &per_second));
  RN_RETURN_IF_ERROR(take_number(reader, 2, &per_frame));
  RN_RETURN_IF_ERROR(take_number(reader, 2, &bits));
  RN_RETURN_IF_ERROR(check_rates(wav, per_second, per_frame, bits));
  return size == 18 && reader->left >= 2 ? take_number(reader, 2, &more) : RN_OK;
}

static rn_status_t read_chunk(wav_reader_t* reader, rn_wav_t* wav) {
  const uint8_t* name = NULL;
  uint32_t size, frame = (uint32_t)RN_WAV_SAMPLE_SIZE * wav->channels;
  RN_RETURN_IF_ERROR(take(reader, 4, &name));
  RN_RETURN_IF_ERROR(take_number(reader, 4, &size));
  if (size > INT32_MAX)
    return rn_invalid_argument("WAV data chunk '%.4s' is too large: %" PRIu32
                               " bytes, but the limit is %d",
                               (const char*)name, size, INT32_MAX);
  if (memcmp(name, "data", 4) != 0) {
    // The last one may claim to be longer than the file.
    size_t skipped = size < reader->left ? size : reader->left;
    reader->at += skipped;
    reader->left -= skipped;
    return RN_OK;
  }
  if (wav->data) return rn_invalid_argument("More than one data chunk found in WAV");
  wav->frames = size / frame;
  return take(reader, (size_t)wav->frames * frame, &wav->data);
}

rn_status_t rn_wav_read(rn_str_t bytes, rn_wav_t* wav) {
  wav_reader_t reader = {(const uint8_t*)bytes.data, bytes.size};
  *wav = (rn_wav_t){0};
  RN_RETURN_IF_ERROR(find_format(&reader));
  RN_RETURN_IF_ERROR(read_format(&reader, wav));
  while (reader.left > 0) RN_RETURN_IF_ERROR(read_chunk(&reader, wav));
  return wav->data ? RN_OK : rn_invalid_argument("No data chunk found in WAV");
}

static void put_little(rn_strbuf_t* buf, uint32_t value, int bytes) {
  char text[4];
  for (int i = 0; i < bytes; ++i) text[i] = (char)(value >> (8 * i));
  rn_strbuf_append_n(buf, text, (size_t)bytes);
}

void rn_wav_write(rn_strbuf_t* buf, const float* samples, uint32_t rate, int64_t channels,
                  int64_t frames) {
  uint32_t size = (uint32_t)(channels * frames * RN_WAV_SAMPLE_SIZE);
  rn_strbuf_append(buf, RN_STR("RIFF"));
  put_little(buf, RN_WAV_HEADER_SIZE - 8 + size, 4);
  rn_strbuf_append(buf, RN_STR("WAVEfmt "));
  put_little(buf, 16, 4);  // bytes of the format
  put_little(buf, 1, 2);   // PCM
  put_little(buf, (uint32_t)channels, 2);
  put_little(buf, rate, 4);
  put_little(buf, rate * (uint32_t)channels * RN_WAV_SAMPLE_SIZE, 4);
  put_little(buf, (uint32_t)channels * RN_WAV_SAMPLE_SIZE, 2);
  put_little(buf, 8 * RN_WAV_SAMPLE_SIZE, 2);
  rn_strbuf_append(buf, RN_STR("data"));
  put_little(buf, size, 4);
  for (int64_t i = 0; i < channels * frames; ++i) {
    float level = roundf(samples[i] * 32768);
    int value = level >= 32767 ? 32767 : level > -32768 ? (int)level : level < 0 ? -32768 : 0;
    put_little(buf, (uint32_t)value & 0xffff, RN_WAV_SAMPLE_SIZE);
  }
}
