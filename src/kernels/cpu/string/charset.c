// Charset names and decoders. See charset.h.
#include "kernels/cpu/string/charset.h"

#include <errno.h>
#include <iconv.h>
#include <wchar.h>

// The letters and digits of |name| in lower case, without leading zeros of numbers.
static bool plain_name(const char* name, char* out, size_t room) {
  size_t n = 0;
  bool in_number = false;
  for (const char* c = name; *c; ++c) {
    char letter = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    bool is_digit = letter >= '0' && letter <= '9';
    if (!is_digit && !(letter >= 'a' && letter <= 'z')) {
      in_number = false;
      continue;
    }
    if (letter == '0' && !in_number && c[1] >= '0' && c[1] <= '9') continue;
    in_number = is_digit;
    if (n + 1 == room) return false;
    out[n++] = letter;
  }
  out[n] = 0;
  return n > 0;
}

static const struct {
  const char* name;
  rn_charset_t charset;
} known[] = {
    {"utf8", RN_CHARSET_UTF8},          {"cp1208", RN_CHARSET_UTF8},
    {"unicode11utf8", RN_CHARSET_UTF8}, {"unicode20utf8", RN_CHARSET_UTF8},
    {"utf16", RN_CHARSET_UTF16},        {"unicode", RN_CHARSET_UTF16},
    {"iso10646ucs2", RN_CHARSET_UTF16}, {"ucs2", RN_CHARSET_UTF16},
    {"csunicode", RN_CHARSET_UTF16},    {"utf16be", RN_CHARSET_UTF16_BE},
    {"xutf16be", RN_CHARSET_UTF16_BE},  {"utf16le", RN_CHARSET_UTF16_LE},
    {"xutf16le", RN_CHARSET_UTF16_LE},  {"utf32", RN_CHARSET_UTF32},
    {"iso10646ucs4", RN_CHARSET_UTF32}, {"ucs4", RN_CHARSET_UTF32},
    {"utf32be", RN_CHARSET_UTF32_BE},   {"utf32le", RN_CHARSET_UTF32_LE},
    {"usascii", RN_CHARSET_ASCII},      {"ascii", RN_CHARSET_ASCII},
    {"ansix341968", RN_CHARSET_ASCII},  {"us", RN_CHARSET_ASCII},
    {"646", RN_CHARSET_ASCII},          {"iso646us", RN_CHARSET_ASCII},
    {"ascii7", RN_CHARSET_ASCII},       {"cp367", RN_CHARSET_ASCII},
    {"ibm367", RN_CHARSET_ASCII},       {"iso88591", RN_CHARSET_LATIN1},
    {"latin1", RN_CHARSET_LATIN1},      {"l1", RN_CHARSET_LATIN1},
    {"ibm819", RN_CHARSET_LATIN1},      {"cp819", RN_CHARSET_LATIN1},
    {"819", RN_CHARSET_LATIN1},         {"isoir100", RN_CHARSET_LATIN1},
    {"csisolatin1", RN_CHARSET_LATIN1}, {"iso885911987", RN_CHARSET_LATIN1},
};

// The C library knows EUC-KR but not EUC_KR, its alias elsewhere. Elsewhere Shift_JIS has a
// backslash where the C library's has a yen sign.
static iconv_t open_by_name(const char* name) {
  char dashed[64], plain[64];
  if (plain_name(name, plain, sizeof plain) &&
      (!strcmp(plain, "shiftjis") || !strcmp(plain, "sjis")))
    name = "CP932";
  iconv_t conversion = iconv_open("WCHAR_T", name);
  size_t size = strlen(name);
  if (conversion != (iconv_t)-1 || errno == ENOMEM || size >= sizeof dashed) return conversion;
  for (size_t i = 0; i <= size; ++i) dashed[i] = name[i] == '_' ? '-' : name[i];
  return iconv_open("WCHAR_T", dashed);
}

rn_charset_t rn_charset_find(const char* name) {
  // Names that in the C library mean this process's settings, not a charset.
  static const char* const refused[] = {"char", "wchart", "internal"};
  char plain[64];
  if (!plain_name(name, plain, sizeof plain)) return RN_CHARSET_NONE;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (!strcmp(plain, known[i].name)) return known[i].charset;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
    if (!strcmp(plain, refused[i])) return RN_CHARSET_NONE;
  // A slash requests transliteration from iconv, which we do not offer.
  if (strchr(name, '/') || strchr(name, ',')) return RN_CHARSET_NONE;
  iconv_t conversion = open_by_name(name);
  if (conversion == (iconv_t)-1) return errno == ENOMEM ? RN_CHARSET_OTHER : RN_CHARSET_NONE;
  iconv_close(conversion);
  return RN_CHARSET_OTHER;
}

rn_status_t rn_charset_open(rn_charset_t charset, const char* name, rn_charset_reader_t* out) {
  char plain[64] = "";
  *out = (rn_charset_reader_t){.charset = charset};
  if (charset != RN_CHARSET_OTHER) return RN_OK;
  iconv_t conversion = open_by_name(name);
  if (conversion == (iconv_t)-1)
    return errno == ENOMEM
               ? rn_out_of_memory()
               : rn_invalid_argument("Could not create converter for input encoding: %s", name);
  out->conversion = conversion;
  if (plain_name(name, plain, sizeof plain))
    out->is_windows = !strncmp(plain, "windows125", 10) || !strncmp(plain, "cp125", 5);
  return RN_OK;
}

void rn_charset_close(rn_charset_reader_t* reader) {
  if (reader->conversion) iconv_close(reader->conversion);
  *reader = (rn_charset_reader_t){0};
}

void rn_charset_begin(rn_charset_reader_t* reader) {
  if (reader->conversion) iconv(reader->conversion, NULL, NULL, NULL, NULL);
}

static rn_charset_char_t good(uint32_t code) { return (rn_charset_char_t){code, false}; }
static const rn_charset_char_t bad = {0xFFFD, true};

static rn_charset_char_t next_utf8(const uint8_t* b, size_t size, size_t* out_taken) {
  uint32_t first = b[0];
  *out_taken = 1;
  if (first < 0x80) return good(first);
  if (first < 0xC2 || first > 0xF4) return bad;
  size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and codes beyond the last
  // plane.
  uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  uint32_t code = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i >= size || b[i] < low || b[i] > high) return bad;
    code = code << 6 | (b[i] & 0x3Fu);
    *out_taken = i + 1;
    low = 0x80;
    high = 0xBF;
  }
  return good(code);
}

static uint32_t unit16(const uint8_t* b, bool is_little) {
  return is_little ? (uint32_t)b[1] << 8 | b[0] : (uint32_t)b[0] << 8 | b[1];
}
static uint32_t unit32(const uint8_t* b, bool is_little) {
  return is_little ? unit16(b + 2, true) << 16 | unit16(b, true)
                   : unit16(b, false) << 16 | unit16(b + 2, false);
}

static rn_charset_char_t next_utf16(const uint8_t* b, size_t size, bool is_little,
                                    size_t* out_taken) {
  *out_taken = size < 2 ? size : 2;
  if (size < 2) return bad;
  uint32_t code = unit16(b, is_little);
  if (code < 0xD800 || code > 0xDFFF) return good(code);
  if (code > 0xDBFF) return bad;
  if (size < 4) {
    *out_taken = size;
    return bad;
  }
  uint32_t low = unit16(b + 2, is_little);
  if (low < 0xDC00 || low > 0xDFFF) return bad;
  *out_taken = 4;
  return good(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
}

static rn_charset_char_t next_utf32(const uint8_t* b, size_t size, bool is_little,
                                    size_t* out_taken) {
  *out_taken = size < 4 ? size : 4;
  if (size < 4) return bad;
  uint32_t code = unit32(b, is_little);
  return code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? bad : good(code);
}

// Feeds small pieces, because iconv converts all its input before it notices that the output has
// space for one.
static rn_charset_char_t next_other(rn_charset_reader_t* reader, rn_str_t text, size_t at,
                                    size_t* out_taken) {
  size_t left = text.size - at, given = left < 16 ? left : 16;
  for (;; given = left) {
    wchar_t code = 0;
    char *from = (char*)text.data + at, *to = (char*)&code;
    size_t from_left = given, to_left = sizeof code;
    size_t result = iconv(reader->conversion, &from, &from_left, &to, &to_left);
    int problem = result == (size_t)-1 ? errno : 0;
    *out_taken = given - from_left;
    if (to_left == 0) return good((uint32_t)code);
    if ((problem == EINVAL || problem == 0) && given < left) continue;
    uint8_t byte = (uint8_t)text.data[at + *out_taken < text.size ? at + *out_taken : at];
    if (problem != EILSEQ) {  // truncated, or a shift sequence without a character
      *out_taken = left;
      return bad;
    }
    *out_taken += 1;
    return reader->is_windows && byte >= 0x80 && byte <= 0x9F ? good(byte) : bad;
  }
}

// Determines the byte order by the mark in front; big-endian without one.
static bool is_little_by_mark(rn_str_t text, size_t unit, size_t* out_mark) {
  const uint8_t* b = (const uint8_t*)text.data;
  uint32_t value[2] = {0, 0};
  *out_mark = 0;
  if (text.size < unit) return false;
  for (int little = 0; little < 2; ++little)
    value[little] = unit == 2 ? unit16(b, little) : unit32(b, little);
  if (value[0] == 0xFEFF || value[1] == 0xFEFF) *out_mark = unit;
  return value[1] == 0xFEFF;
}

rn_charset_char_t rn_charset_next(rn_charset_reader_t* reader, rn_str_t text, size_t* inout_at) {
  rn_charset_t charset = reader->charset;
  size_t at = *inout_at, taken = 1;
  const uint8_t* b = (const uint8_t*)text.data + at;
  if (charset == RN_CHARSET_UTF16 || charset == RN_CHARSET_UTF32) {
    bool is_wide = charset == RN_CHARSET_UTF32;
    size_t mark = 0;
    bool is_little = is_little_by_mark(text, is_wide ? 4 : 2, &mark);
    charset = is_wide ? (is_little ? RN_CHARSET_UTF32_LE : RN_CHARSET_UTF32_BE)
                      : (is_little ? RN_CHARSET_UTF16_LE : RN_CHARSET_UTF16_BE);
    if (at == 0 && mark) {
      *inout_at = at = mark;
      // As in stock, a text that consists of its mark alone contains U+FFFF.
      if (at == text.size) return good(0xFFFF);
      b = (const uint8_t*)text.data + at;
    }
  }
  size_t left = text.size - at;
  rn_charset_char_t result = bad;
  switch (charset) {
    case RN_CHARSET_ASCII:
      if (b[0] < 0x80) result = good(b[0]);
      break;
    case RN_CHARSET_LATIN1:
      result = good(b[0]);
      break;
    case RN_CHARSET_UTF8:
      result = next_utf8(b, left, &taken);
      break;
    case RN_CHARSET_UTF16_BE:
    case RN_CHARSET_UTF16_LE:
      result = next_utf16(b, left, charset == RN_CHARSET_UTF16_LE, &taken);
      break;
    case RN_CHARSET_UTF32_BE:
    case RN_CHARSET_UTF32_LE:
      result = next_utf32(b, left, charset == RN_CHARSET_UTF32_LE, &taken);
      break;
    default:
      result = next_other(reader, text, at, &taken);
  }
  *inout_at = at + (taken ? taken : 1);
  return result;
}
