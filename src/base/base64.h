// Base64 (RFC 4648). Callers decide where white space and padding are allowed.
#ifndef RUNNEL_BASE_BASE64_H_
#define RUNNEL_BASE_BASE64_H_

#include "base/str.h"

enum {
  RN_BASE64_STANDARD = 1,  // '+' and '/'
  RN_BASE64_URL = 2,       // '-' and '_'
  RN_BASE64_SPACES = 4,    // decoding skips white space
};

// The exact number of characters for |size| bytes.
static inline size_t rn_base64_encoded_size(size_t size, bool pads) {
  size_t rest = size % 3;
  return size / 3 * 4 + (!rest ? 0 : pads ? 4 : rest + 1);
}
// Writes rn_base64_encoded_size characters to |out|. |flags| has one alphabet.
void rn_base64_encode(rn_str_t bytes, int flags, bool pads, char* out);

// The number of bytes that |size| characters encode, without padding; an upper bound with spaces.
static inline size_t rn_base64_decoded_size(size_t size) {
  return size / 4 * 3 + (size % 4 ? size % 4 - 1 : 0);
}
// Decodes |text|, which has no padding, to |out|, of rn_base64_decoded_size bytes, and sets
// |*out_size|. |flags| has one alphabet or both. False if a character is outside the alphabets or
// the last one stands alone.
bool rn_base64_decode(rn_str_t text, int flags, char* out, size_t* out_size);

#endif  // RUNNEL_BASE_BASE64_H_
