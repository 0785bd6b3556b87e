// Tokens: see token.h.
#include "net/token.h"

#include <stdlib.h>

#include "base/fs.h"

static rn_status_t check(const char* path, rn_str_t token) {
  bool is_fine = token.size >= RN_TOKEN_MIN && token.size <= RN_TOKEN_MAX;
  for (size_t i = 0; i < token.size && is_fine; ++i)
    is_fine = token.data[i] > 0x20 && token.data[i] < 0x7f;
  if (is_fine) return RN_OK;
  return rn_invalid_argument("%s contains no token; expected %d to %d visible characters", path,
                             RN_TOKEN_MIN, RN_TOKEN_MAX);
}

rn_status_t rn_token_read(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                          rn_strbuf_t* out) {
  rn_strbuf_init(out, allocator);
  if (!path) path = getenv("RUNNEL_TOKEN");
  if (!path || !path[0]) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, allocator);
  rn_status_t status = rn_fs_read(env, path, 2 * RN_TOKEN_MAX, &text);
  rn_str_t token = rn_str_trim(rn_strbuf_view(&text));
  if (rn_ok(status)) status = check(path, token);
  if (rn_ok(status)) rn_strbuf_append(out, token);
  if (rn_ok(status)) status = rn_strbuf_status(out);
  rn_strbuf_clear(&text);
  if (!rn_ok(status)) rn_strbuf_clear(out);
  return status;
}

bool rn_token_matches(rn_str_t token, rn_str_t authorization) {
  static const char scheme[] = "bearer ";
  enum { kScheme = sizeof scheme - 1 };
  if (authorization.size != token.size + kScheme) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < kScheme; ++i) {
    char c = authorization.data[i];
    differs |= (unsigned char)((c >= 'A' && c <= 'Z' ? c + 32 : c) ^ scheme[i]);
  }
  for (size_t i = 0; i < token.size; ++i)
    differs |= (unsigned char)(token.data[i] ^ authorization.data[kScheme + i]);
  return differs == 0;
}
