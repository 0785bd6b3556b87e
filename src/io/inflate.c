// Decompression in memory. See inflate.h.
#include "io/inflate.h"

#include <stdlib.h>
#include <zlib.h>

#define FREE_BYTES ((uint64_t)64 << 20)  // whatever the ratio
#define MOST_BYTES ((uint64_t)1 << 30)
#define MOST_RATIO 256

size_t rn_unpacked_limit(uint64_t packed) {
  const char* text = getenv("RUNNEL_MAX_UNPACKED");
  char* end = NULL;
  unsigned long long given = text ? strtoull(text, &end, 10) : 0;
  if (text && end != text && *end == '\0') return given < SIZE_MAX ? (size_t)given : SIZE_MAX;
  uint64_t limit = packed < MOST_BYTES / MOST_RATIO ? packed * MOST_RATIO : MOST_BYTES;
  return (size_t)(limit > FREE_BYTES ? limit : FREE_BYTES);
}

rn_status_t rn_unpacked_too_much(size_t limit) {
  return rn_resource_exhausted(
      "compressed data expands to more than %zu bytes; RUNNEL_MAX_UNPACKED=<bytes> allows more",
      limit);
}

// One piece of at most 64 KiB; |*out_result| is zlib's.
static rn_status_t inflate_piece(z_stream* z, rn_str_t* inout_data, size_t limit, rn_strbuf_t* out,
                                 int* out_result) {
  Bytef piece[16384];
  size_t part = inout_data->size > INT32_MAX ? INT32_MAX : inout_data->size;
  z->next_in = (Bytef*)inout_data->data;
  z->avail_in = (uInt)part;
  z->next_out = piece;
  z->avail_out = sizeof piece;
  *out_result = inflate(z, Z_NO_FLUSH);
  size_t taken = part - z->avail_in, given = sizeof piece - z->avail_out;
  *inout_data = rn_str_n(inout_data->data + taken, inout_data->size - taken);
  if (given > limit - out->size) return rn_unpacked_too_much(limit);
  rn_strbuf_append_n(out, piece, given);
  RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  if (*out_result == Z_MEM_ERROR) return rn_out_of_memory();
  if (*out_result == Z_BUF_ERROR || (*out_result == Z_OK && !taken && !given))
    return rn_data_loss("compressed stream ends early, after %zu bytes", out->size);
  if (*out_result != Z_OK && *out_result != Z_STREAM_END)
    return rn_data_loss("inflate() failed with error %d: %s", *out_result, z->msg ? z->msg : "");
  return RN_OK;
}

static rn_status_t inflate_all(z_stream* z, rn_str_t data, bool has_members, size_t limit,
                               rn_strbuf_t* out) {
  for (int result = Z_OK; result != Z_STREAM_END || (has_members && data.size);) {
    if (result == Z_STREAM_END && inflateReset(z) != Z_OK) return rn_out_of_memory();
    RN_RETURN_IF_ERROR(inflate_piece(z, &data, limit, out, &result));
  }
  return RN_OK;
}

rn_status_t rn_inflate(rn_str_t data, rn_compression_t compression, size_t limit,
                       rn_strbuf_t* out) {
  z_stream z = {0};
  bool is_gzip = compression == RN_COMPRESSION_GZIP;
  if (compression == RN_COMPRESSION_NONE) {
    if (data.size > limit)
      return rn_resource_exhausted("%zu bytes are more than %zu", data.size, limit);
    rn_strbuf_append(out, data);
    return rn_strbuf_status(out);
  }
  if (data.size == 0) return RN_OK;
  if (inflateInit2(&z, is_gzip ? 15 + 16 : 15) != Z_OK) return rn_out_of_memory();
  rn_status_t status = inflate_all(&z, data, is_gzip, limit, out);
  inflateEnd(&z);
  return status;
}
