// Views and text buffers.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // strtod_l
#endif
#include "base/str.h"

#include <locale.h>
#include <stdio.h>

bool rn_str_starts_with(rn_str_t str, rn_str_t prefix) {
  return str.size >= prefix.size && rn_str_eq(rn_str_n(str.data, prefix.size), prefix);
}

bool rn_str_ends_with(rn_str_t str, rn_str_t suffix) {
  if (str.size < suffix.size) return false;
  if (suffix.size == 0) return true;
  return memcmp(str.data + (str.size - suffix.size), suffix.data, suffix.size) == 0;
}

int rn_str_compare(rn_str_t a, rn_str_t b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common ? memcmp(a.data, b.data, common) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

rn_str_t rn_str_split(rn_str_t* inout_rest, char separator) {
  rn_str_t all = *inout_rest;
  const char* found = all.size ? memchr(all.data, separator, all.size) : NULL;
  if (!found) {
    *inout_rest = rn_str_n(all.data ? all.data + all.size : NULL, 0);
    return all;
  }
  size_t size = (size_t)(found - all.data);
  *inout_rest = rn_str_n(found + 1, all.size - size - 1);
  return rn_str_n(all.data, size);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

rn_str_t rn_str_trim(rn_str_t str) {
  while (str.size && is_space(str.data[0])) str = rn_str_n(str.data + 1, str.size - 1);
  while (str.size && is_space(str.data[str.size - 1])) str.size--;
  return str;
}

bool rn_str_to_i64(rn_str_t str, int64_t* out) {
  size_t i = 0;
  bool negative = false;
  if (str.size && (str.data[0] == '-' || str.data[0] == '+')) negative = str.data[i++] == '-';
  if (i == str.size) return false;
  int64_t value =
      0;  // negative for negative numbers, because INT64_MIN has no positive counterpart
  for (; i < str.size; i++) {
    if (!is_digit(str.data[i])) return false;
    int64_t digit = str.data[i] - '0';
    if (!rn_mul_i64_ok(value, 10, &value)) return false;
    if (!rn_add_i64_ok(value, negative ? -digit : digit, &value)) return false;
  }
  *out = value;
  return true;
}

// [sign] digits with at most one point among them [e [sign] digits]
static bool is_decimal(rn_str_t str) {
  size_t i = 0, digits = 0;
  bool point = false;
  if (i < str.size && (str.data[i] == '-' || str.data[i] == '+')) i++;
  for (; i < str.size && (is_digit(str.data[i]) || (str.data[i] == '.' && !point)); i++) {
    if (str.data[i] == '.') {
      point = true;
    } else {
      digits++;
    }
  }
  if (!digits) return false;
  if (i == str.size) return true;
  if (str.data[i] != 'e' && str.data[i] != 'E') return false;
  i++;
  if (i < str.size && (str.data[i] == '-' || str.data[i] == '+')) i++;
  size_t exponent = i;
  while (i < str.size && is_digit(str.data[i])) i++;
  return i == str.size && i > exponent;
}

bool rn_str_to_f64(rn_str_t str, double* out) {
  if (!is_decimal(str)) return false;
  // strtod needs a NUL, and a point that the host program's locale does not decide. glibc gives
  // the C locale without allocating.
  char buffer[128];
  char* text = buffer;
  if (str.size >= sizeof buffer && !rn_ok(rn_str_dup(rn_allocator_default(), str, &text))) {
    return false;
  }
  if (text == buffer) {
    memcpy(buffer, str.data, str.size);
    buffer[str.size] = '\0';
  }
  locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  bool ok = locale != (locale_t)0;
  if (ok) {
    double value = strtod_l(text, NULL, locale);
    ok = !__builtin_isinf(value);
    if (ok) *out = value;
    freelocale(locale);
  }
  if (text != buffer) rn_free(rn_allocator_default(), text, str.size + 1);
  return ok;
}

static inline uint64_t load64(const char* data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

static inline uint64_t load32(const char* data) {
  uint32_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

// The two halves of a 128-bit product, folded: every input bit reaches every output bit.
static inline uint64_t fold(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t rn_str_hash(rn_str_t str) {
  // Odd constants with about half their bits set: the digits of the golden ratio and of e.
  const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xb7e151628aed2a6bu;
  const char* p = str.data;
  size_t size = str.size;
  uint64_t hash = k0 ^ size;
  while (size > 16) {
    hash = fold(load64(p) ^ hash, load64(p + 8) ^ k1);
    p += 16;
    size -= 16;
  }
  // The last 1 to 16 bytes as two words that may overlap.
  uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = load64(p);
    b = load64(p + size - 8);
  } else if (size >= 4) {
    a = load32(p);
    b = load32(p + size - 4);
  } else if (size) {
    a = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[size / 2] << 8 | (uint8_t)p[size - 1];
  }
  return fold(fold(a ^ hash, b ^ k1), hash ^ k0);
}

void rn_strbuf_init(rn_strbuf_t* buf, rn_allocator_t allocator) {
  *buf = (rn_strbuf_t){.allocator = allocator};
}

void rn_strbuf_clear(rn_strbuf_t* buf) {
  if (buf->data) rn_free(buf->allocator, buf->data, buf->capacity);
  *buf = (rn_strbuf_t){.allocator = buf->allocator};
}

bool rn_strbuf_reserve(rn_strbuf_t* buf, size_t extra) {
  if (buf->failed) return false;
  size_t needed;
  if (!rn_add_ok(buf->size, extra, &needed) || !rn_add_ok(needed, 1, &needed)) {
    buf->failed = true;
    return false;
  }
  if (needed <= buf->capacity) return true;
  size_t capacity = buf->capacity < 32 ? 64 : buf->capacity;
  while (capacity < needed) {
    if (!rn_mul_ok(capacity, 2, &capacity)) capacity = needed;
  }
  char* data = buf->allocator.fn(buf->allocator.self, buf->data, buf->capacity, capacity);
  if (!data) {
    buf->failed = true;
    return false;
  }
  buf->data = data;
  buf->capacity = capacity;
  return true;
}

void rn_strbuf_append_n(rn_strbuf_t* buf, const void* data, size_t size) {
  if (!rn_strbuf_reserve(buf, size)) return;
  if (size) memcpy(buf->data + buf->size, data, size);
  buf->size += size;
  buf->data[buf->size] = '\0';
}

void rn_strbuf_append(rn_strbuf_t* buf, rn_str_t str) {
  rn_strbuf_append_n(buf, str.data, str.size);
}

void rn_strbuf_printf(rn_strbuf_t* buf, const char* format, ...) {
  if (!rn_strbuf_reserve(buf, 0)) return;
  va_list args;
  va_start(args, format);
  size_t room = buf->capacity - buf->size;
  int length = vsnprintf(buf->data + buf->size, room, format, args);
  va_end(args);
  if (length >= 0 && (size_t)length >= room) {
    if (!rn_strbuf_reserve(buf, (size_t)length)) {
      buf->data[buf->size] = '\0';
      return;
    }
    va_start(args, format);
    vsnprintf(buf->data + buf->size, (size_t)length + 1, format, args);
    va_end(args);
  }
  if (length < 0) {
    buf->failed = true;
    length = 0;
  }
  buf->size += (size_t)length;
  buf->data[buf->size] = '\0';
}

rn_status_t rn_strbuf_status(const rn_strbuf_t* buf) {
  return buf->failed ? rn_out_of_memory() : RN_OK;
}

rn_status_t rn_status_from_buf(rn_code_t code, rn_strbuf_t* buf) {
  rn_str_t text = rn_strbuf_view(buf);
  rn_status_t status =
      buf->failed ? rn_out_of_memory() : rn_status_make_n(code, text.data, text.size);
  rn_strbuf_clear(buf);
  return status;
}

rn_status_t rn_str_dup(rn_allocator_t allocator, rn_str_t str, char** out) {
  *out = NULL;
  size_t size;
  if (!rn_add_ok(str.size, 1, &size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc(allocator, size, (void**)out));
  if (str.size) memcpy(*out, str.data, str.size);
  (*out)[str.size] = '\0';
  return RN_OK;
}
