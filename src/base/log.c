// Helpers for logs: see log.h.
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_NS INT64_C(10000000000)

// Bytes of the character at |text| that may be shown as they are; 0: it may not.
static size_t visible_size(const unsigned char* text) {
  unsigned char first = text[0];
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  size_t size = first >= 0xc2 && first < 0xe0   ? 2
                : first >= 0xe0 && first < 0xf0 ? 3
                : first >= 0xf0 && first < 0xf5 ? 4
                                                : 0;
  for (size_t i = 1; i < size; ++i)
    if ((text[i] & 0xc0) != 0x80) return 0;
  if (first == 0xc2 && text[1] < 0xa0) return 0;  // controls of Unicode
  // Line and paragraph separators, and marks that change the text direction.
  if (first == 0xe2 && text[1] == 0x80 && text[2] >= 0xa8 && text[2] <= 0xae) return 0;
  if (first == 0xe2 && text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9) return 0;
  return size;
}

void rn_log_escape(const char* text, char* out, size_t room) {
  size_t at = 0;
  while (*text) {
    size_t size = visible_size((const unsigned char*)text);
    char escaped[8];
    if (!size) {
      unsigned char c = (unsigned char)*text;
      const char* name = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
      if (name)
        snprintf(escaped, sizeof escaped, "%s", name);
      else
        snprintf(escaped, sizeof escaped, "\\x%02x", c);
    }
    size_t needed = size ? size : strlen(escaped);
    if (at + needed + sizeof "..." > room) {
      memcpy(out + at, "...", sizeof "...");
      return;
    }
    memcpy(out + at, size ? text : escaped, needed);
    at += needed;
    text += size ? size : 1;
  }
  out[at] = '\0';
}

bool rn_log_limit_says(rn_log_limit_t* limit, const rn_env_t* env, int64_t* out_left_out) {
  int64_t now = env->now_ns(env->self), said = limit->said_ns;
  *out_left_out = 0;
  if (said && now - said < PAUSE_NS) {
    limit->left_out++;
    return false;
  }
  limit->said_ns = now | 1;
  *out_left_out = limit->left_out;
  limit->left_out -= *out_left_out;
  return true;
}
