// Functions that TensorFlow has dropped and that old clients still look up when they load.

#include "tensorflow/c/c_api_legacy.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

// A length as a varint takes at most this many bytes: 64 bits, 7 per byte.
#define RN_MAX_VARINT 10

static size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) size++;
  return size;
}

size_t TF_StringEncodedSize(size_t len) {
  const size_t head = varint_size(len);
  return len > SIZE_MAX - head ? SIZE_MAX : head + len;
}

size_t TF_StringEncode(const char* src, size_t src_len, char* dst, size_t dst_len,
                       TF_Status* status) {
  const size_t size = TF_StringEncodedSize(src_len);
  if (dst == NULL || (src == NULL && src_len > 0)) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "TF_StringEncode: src and dst must not be NULL");
    return 0;
  }
  if (size > dst_len || size == SIZE_MAX) {
    char message[128];
    snprintf(message, sizeof message, "dst_len (%zu) too small to encode a %zu-byte string",
             dst_len, src_len);
    TF_SetStatus(status, TF_INVALID_ARGUMENT, message);
    return 0;
  }
  uint64_t rest = src_len;
  for (; rest >= 0x80; rest >>= 7) *dst++ = (char)(unsigned char)(rest | 0x80);
  *dst++ = (char)rest;
  if (src_len > 0) memcpy(dst, src, src_len);
  TF_SetStatus(status, TF_OK, "");
  return size;
}

size_t TF_StringDecode(const char* src, size_t src_len, const char** dst, size_t* dst_len,
                       TF_Status* status) {
  uint64_t length = 0;
  size_t head = 0;
  bool complete = false;
  while (src != NULL && !complete && head < src_len && head < RN_MAX_VARINT) {
    const uint64_t byte = (unsigned char)src[head];
    if (head == RN_MAX_VARINT - 1 && byte > 1) break;  // more than 64 bits
    length |= (byte & 0x7f) << (7 * head);
    complete = byte < 0x80;
    head++;
  }
  if (dst == NULL || dst_len == NULL || !complete || length > src_len - head) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "invalid string encoding or truncated src buffer");
    return 0;
  }
  *dst = src + head;
  *dst_len = (size_t)length;
  TF_SetStatus(status, TF_OK, "");
  return head + (size_t)length;
}
