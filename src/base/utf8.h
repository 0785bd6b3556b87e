// UTF-8: characters to bytes and back.
#ifndef RUNNEL_BASE_UTF8_H_
#define RUNNEL_BASE_UTF8_H_

#include "base/str.h"

#define RN_UTF8_BAD UINT32_MAX

// Decodes the character at the start of |text|, which is not empty; returns its size in bytes. A
// byte that starts no character counts as one and gives RN_UTF8_BAD.
static inline size_t rn_utf8_decode(rn_str_t text, uint32_t* out) {
  const uint8_t* b = (const uint8_t*)text.data;
  size_t size = b[0] < 0x80 ? 1 : b[0] < 0xC2 ? 0 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
  *out = RN_UTF8_BAD;
  if (size == 0 || size > text.size || b[0] > 0xF4) return 1;
  uint32_t code = size == 1 ? b[0] : b[0] & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((b[i] & 0xC0) != 0x80) return 1;
    code = code << 6 | (b[i] & 0x3Fu);
  }
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 1;
  *out = code;
  return size;
}

static inline bool rn_utf8_is_valid(rn_str_t text) {
  uint32_t code = 0;
  for (size_t i = 0; i < text.size && code != RN_UTF8_BAD;)
    i += rn_utf8_decode((rn_str_t){text.data + i, text.size - i}, &code);
  return code != RN_UTF8_BAD;
}

// Encodes |code| to |out|; returns the number of bytes.
static inline size_t rn_utf8_encode(uint32_t code, char out[4]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = size; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
  out[0] = (char)(code | (uint32_t)(0xF00 >> size));
  return size;
}

#endif  // RUNNEL_BASE_UTF8_H_
