// Decodes text in a named charset, one character at a time.
//
// UTF-8, UTF-16, UTF-32, ASCII and Latin-1 are decoded here; all other names go to the C library's
// iconv. Invalid input counts as one bad character per: maximal prefix of a character in UTF-8,
// code unit in UTF-16 and UTF-32, truncated rest of a text, byte elsewhere.
#ifndef RUNNEL_KERNELS_CPU_STRING_CHARSET_H_
#define RUNNEL_KERNELS_CPU_STRING_CHARSET_H_

#include "base/str.h"

typedef enum rn_charset_t {
  RN_CHARSET_NONE,
  RN_CHARSET_ASCII,
  RN_CHARSET_LATIN1,
  RN_CHARSET_UTF8,
  RN_CHARSET_UTF16,  // by its byte order mark, or big-endian
  RN_CHARSET_UTF16_BE,
  RN_CHARSET_UTF16_LE,
  RN_CHARSET_UTF32,
  RN_CHARSET_UTF32_BE,
  RN_CHARSET_UTF32_LE,
  RN_CHARSET_OTHER,  // iconv's
} rn_charset_t;

// The charset of this name, ignoring case and punctuation; NONE if it is unknown.
rn_charset_t rn_charset_find(const char* name);

typedef struct rn_charset_reader_t {
  rn_charset_t charset;
  bool is_windows;   // a Windows code page: undefined bytes are control characters
  void* conversion;  // Owned; iconv's, for OTHER
} rn_charset_reader_t;

// A reader of |charset|, the result of rn_charset_find for |name|. Use it from one thread at a
// time.
RN_MUST_USE rn_status_t rn_charset_open(rn_charset_t charset, const char* name,
                                        rn_charset_reader_t* out);
void rn_charset_close(rn_charset_reader_t* reader);
// Call it before each text.
void rn_charset_begin(rn_charset_reader_t* reader);

typedef struct rn_charset_char_t {
  uint32_t code;
  bool is_bad;
} rn_charset_char_t;

// The character at |at| of |text|, which is before the end; advances |*inout_at|.
rn_charset_char_t rn_charset_next(rn_charset_reader_t* reader, rn_str_t text, size_t* inout_at);

#endif  // RUNNEL_KERNELS_CPU_STRING_CHARSET_H_
