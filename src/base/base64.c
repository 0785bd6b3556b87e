// See base64.h.
#include "base/base64.h"

void rn_base64_encode(rn_str_t bytes, int flags, bool pads, char* out) {
  const char* digits = flags & RN_BASE64_URL
                           ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                           : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t* from = (const uint8_t*)bytes.data;
  size_t left = bytes.size;
  for (; left >= 3; left -= 3, from += 3) {
    uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
    *out++ = digits[bits >> 18];
    *out++ = digits[bits >> 12 & 63];
    *out++ = digits[bits >> 6 & 63];
    *out++ = digits[bits & 63];
  }
  if (!left) return;
  uint32_t bits = (uint32_t)from[0] << 16 | (left > 1 ? (uint32_t)from[1] << 8 : 0);
  *out++ = digits[bits >> 18];
  *out++ = digits[bits >> 12 & 63];
  if (left > 1) *out++ = digits[bits >> 6 & 63];
  for (size_t i = left; pads && i < 3; ++i) *out++ = '=';
}

static inline int value_of(char c, int flags) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (flags & RN_BASE64_STANDARD && (c == '+' || c == '/')) return c == '+' ? 62 : 63;
  if (flags & RN_BASE64_URL && (c == '-' || c == '_')) return c == '-' ? 62 : 63;
  return -1;
}

bool rn_base64_decode(rn_str_t text, int flags, char* out, size_t* out_size) {
  const char* begin = out;
  uint32_t bits = 0;
  size_t digits = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    int value = value_of(c, flags);
    if (value < 0) {
      if (flags & RN_BASE64_SPACES && (c == ' ' || (c >= '\t' && c <= '\r'))) continue;
      return false;
    }
    bits = bits << 6 | (uint32_t)value;
    if (++digits % 4) continue;
    *out++ = (char)(bits >> 16);
    *out++ = (char)(bits >> 8);
    *out++ = (char)bits;
  }
  size_t left = digits % 4;
  if (left >= 2) *out++ = (char)(bits >> (left == 2 ? 4 : 10));
  if (left == 3) *out++ = (char)(bits >> 2);
  *out_size = (size_t)(out - begin);
  return left != 1;
}
