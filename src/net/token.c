// Tokens: see token.h.
#include "net/token.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/sync.h"
#include "base/vec.h"

#define MAX_FILE ((size_t)64 << 10)

typedef struct token_line_t {
  uint32_t roles;
  rn_str_t token;  // of the file's text
} token_line_t;

typedef RN_VEC(token_line_t) token_lines_t;

struct rn_tokens_t {
  _Atomic int refs;
  const rn_env_t* env;
  rn_allocator_t allocator;
  char* path;  // Owned
  const rn_token_roles_t* roles;
  rn_mutex_t mutex;  // guards what follows
  rn_strbuf_t text;
  token_lines_t lines;
};

static bool is_token(rn_str_t token) {
  bool is_fine = token.size >= RN_TOKEN_MIN && token.size <= RN_TOKEN_MAX;
  for (size_t i = 0; i < token.size && is_fine; ++i)
    is_fine = token.data[i] > 0x20 && token.data[i] < 0x7f;
  return is_fine;
}

// The bit of a role; 0 if there is no such role.
static uint32_t role_named(const rn_token_roles_t* roles, rn_str_t name) {
  if (!roles) return UINT32_MAX;
  for (int i = 0; i < 8 && roles->names[i]; ++i)
    if (rn_str_is(name, roles->names[i])) return UINT32_C(1) << i;
  return 0;
}

static rn_status_t bad_role(const rn_tokens_t* tokens, int number) {
  const char* const* names = tokens->roles->names;
  rn_strbuf_t list;
  rn_strbuf_init(&list, tokens->allocator);
  for (int i = 0; i < 8 && names[i]; ++i) rn_strbuf_printf(&list, "%s%s", i ? ", " : "", names[i]);
  rn_status_t status =
      rn_invalid_argument("%s:%d: a line begins with one of %.*s, then the token", tokens->path,
                          number, RN_STR_ARGS(rn_strbuf_view(&list)));
  rn_strbuf_clear(&list);
  return status;
}

// Cuts the first word off |*line|; "" at the end and where a comment begins.
static rn_str_t take_word(rn_str_t* line) {
  rn_str_t rest = rn_str_trim(*line);
  size_t size = 0;
  if (rest.size && rest.data[0] == '#') rest.size = 0;
  while (size < rest.size && rest.data[size] != ' ' && rest.data[size] != '\t') ++size;
  *line = rn_str_n(rest.data + size, rest.size - size);
  return rn_str_n(rest.data, size);
}

static rn_status_t read_line(const rn_tokens_t* tokens, int number, rn_str_t line,
                             token_lines_t* out) {
  rn_str_t first = take_word(&line), second = take_word(&line);
  if (!first.size) return RN_OK;
  bool has_role = second.size > 0;
  token_line_t found = {.roles = has_role ? role_named(tokens->roles, first) : UINT32_MAX,
                        .token = has_role ? second : first};
  if (!found.roles || (!has_role && tokens->roles && tokens->roles->is_required))
    return bad_role(tokens, number);
  if (!is_token(found.token) || take_word(&line).size)
    return rn_invalid_argument("%s:%d is no token; expected %d to %d visible characters",
                               tokens->path, number, RN_TOKEN_MIN, RN_TOKEN_MAX);
  return rn_vec_push(out, tokens->allocator, found);
}

static rn_status_t read_lines(const rn_tokens_t* tokens, rn_str_t text, token_lines_t* out) {
  for (int number = 1; text.size; ++number)
    RN_RETURN_IF_ERROR(read_line(tokens, number, rn_str_split(&text, '\n'), out));
  return out->count ? RN_OK : rn_invalid_argument("%s has no token", tokens->path);
}

rn_status_t rn_tokens_refresh(rn_tokens_t* tokens, bool* out_is_new) {
  rn_strbuf_t text;
  token_lines_t lines = {0};
  *out_is_new = false;
  rn_strbuf_init(&text, tokens->allocator);
  rn_status_t status = rn_fs_read(tokens->env, tokens->path, MAX_FILE, &text);
  if (rn_ok(status)) status = read_lines(tokens, rn_strbuf_view(&text), &lines);
  if (rn_ok(status)) {
    rn_mutex_lock(&tokens->mutex);
    *out_is_new = !rn_str_eq(rn_strbuf_view(&text), rn_strbuf_view(&tokens->text));
    rn_strbuf_t old_text = tokens->text;
    token_lines_t old_lines = tokens->lines;
    tokens->text = text;
    tokens->lines = lines;
    text = old_text;
    lines = old_lines;
    rn_mutex_unlock(&tokens->mutex);
  }
  rn_strbuf_clear(&text);
  rn_vec_free(&lines, tokens->allocator);
  return status;
}

rn_status_t rn_tokens_read(const rn_env_t* env, const char* path, const rn_token_roles_t* roles,
                           rn_allocator_t allocator, rn_tokens_t** out) {
  *out = NULL;
  if (!path) path = getenv("RUNNEL_TOKEN");
  if (!path || !path[0]) return RN_OK;
  rn_tokens_t* tokens = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &tokens));
  tokens->refs = 1;
  tokens->env = env;
  tokens->allocator = allocator;
  tokens->roles = roles;
  rn_mutex_init(&tokens->mutex);
  rn_strbuf_init(&tokens->text, allocator);
  bool is_new;
  rn_status_t status = rn_str_dup(allocator, rn_str(path), &tokens->path);
  if (rn_ok(status)) status = rn_tokens_refresh(tokens, &is_new);
  if (!rn_ok(status)) {
    rn_tokens_release(tokens);
    return status;
  }
  *out = tokens;
  return RN_OK;
}

void rn_tokens_retain(rn_tokens_t* tokens) {
  if (tokens) tokens->refs++;
}

void rn_tokens_release(rn_tokens_t* tokens) {
  if (!tokens || --tokens->refs) return;
  if (tokens->path) rn_free(tokens->allocator, tokens->path, strlen(tokens->path) + 1);
  rn_strbuf_clear(&tokens->text);
  rn_vec_free(&tokens->lines, tokens->allocator);
  rn_mutex_destroy(&tokens->mutex);
  RN_FREE(tokens->allocator, tokens);
}

static bool matches(rn_str_t token, rn_str_t authorization) {
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

// Compares with every token, so that the time does not tell which one is near.
uint32_t rn_tokens_grant(rn_tokens_t* tokens, rn_str_t authorization) {
  uint32_t roles = 0;
  rn_mutex_lock(&tokens->mutex);
  for (size_t i = 0; i < tokens->lines.count; ++i) {
    const token_line_t* line = &tokens->lines.items[i];
    if (matches(line->token, authorization)) roles |= line->roles;
  }
  rn_mutex_unlock(&tokens->mutex);
  return roles;
}

void rn_tokens_own(rn_tokens_t* tokens, char out[RN_TOKEN_MAX + 1]) {
  out[0] = '\0';
  if (!tokens) return;
  uint32_t own = tokens->roles ? UINT32_C(1) << tokens->roles->own : UINT32_MAX;
  rn_mutex_lock(&tokens->mutex);
  const token_line_t* found = &tokens->lines.items[0];
  for (size_t i = tokens->lines.count; i-- > 0;)
    if (tokens->lines.items[i].roles & own) found = &tokens->lines.items[i];
  memcpy(out, found->token.data, found->token.size);
  out[found->token.size] = '\0';
  rn_mutex_unlock(&tokens->mutex);
}

rn_status_t rn_token_read(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                          char out[RN_TOKEN_MAX + 1]) {
  rn_tokens_t* tokens = NULL;
  rn_status_t status = rn_tokens_read(env, path, NULL, allocator, &tokens);
  rn_tokens_own(tokens, out);
  rn_tokens_release(tokens);
  return status;
}
