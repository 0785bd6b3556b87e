// See roles.h.
#include "serve/front/roles.h"

#include "base/fs.h"
#include "base/vec.h"
#include "net/token.h"

#define MAX_FILE ((size_t)1 << 20)

typedef struct role_token_t {
  rn_role_t role;
  rn_str_t token;  // of the file's text
} role_token_t;

struct rn_roles_t {
  rn_allocator_t allocator;
  bool has_file;
  rn_strbuf_t text;
  RN_VEC(role_token_t) tokens;
};

static rn_role_t role_named(rn_str_t name) {
  if (rn_str_is(name, "predict")) return RN_ROLE_PREDICT;
  if (rn_str_is(name, "read")) return RN_ROLE_READ;
  return rn_str_is(name, "admin") ? RN_ROLE_ADMIN : RN_ROLE_NONE;
}

static rn_status_t read_line(rn_roles_t* roles, const char* path, int number, rn_str_t line) {
  line = rn_str_trim(line);
  if (!line.size || line.data[0] == '#') return RN_OK;
  rn_str_t rest = line, name = rn_str_split(&rest, ' ');
  role_token_t token = {.role = role_named(name), .token = rn_str_trim(rest)};
  if (token.role == RN_ROLE_NONE)
    return rn_invalid_argument("%s:%d: a line begins with predict, read or admin", path, number);
  if (token.token.size < RN_TOKEN_MIN || token.token.size > RN_TOKEN_MAX)
    return rn_invalid_argument("%s:%d: a token has %d to %d characters", path, number, RN_TOKEN_MIN,
                               RN_TOKEN_MAX);
  return rn_vec_push(&roles->tokens, roles->allocator, token);
}

static rn_status_t read_tokens(rn_roles_t* roles, const rn_env_t* env, const char* path) {
  RN_RETURN_IF_ERROR(rn_fs_read(env, path, MAX_FILE, &roles->text));
  rn_str_t rest = rn_strbuf_view(&roles->text);
  for (int number = 1; rest.size; ++number)
    RN_RETURN_IF_ERROR(read_line(roles, path, number, rn_str_split(&rest, '\n')));
  return RN_OK;
}

rn_status_t rn_roles_create(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                            rn_roles_t** out) {
  *out = NULL;
  rn_roles_t* roles = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &roles));
  roles->allocator = allocator;
  roles->has_file = path != NULL;
  rn_strbuf_init(&roles->text, allocator);
  rn_status_t status = path ? read_tokens(roles, env, path) : RN_OK;
  if (!rn_ok(status)) {
    rn_roles_destroy(roles);
    return status;
  }
  *out = roles;
  return RN_OK;
}

void rn_roles_destroy(rn_roles_t* roles) {
  if (!roles) return;
  rn_strbuf_clear(&roles->text);
  rn_vec_free(&roles->tokens, roles->allocator);
  RN_FREE(roles->allocator, roles);
}

// Compares with every token, so that the time does not tell which one is near.
rn_role_t rn_roles_of(const rn_roles_t* roles, rn_str_t authorization, bool is_local) {
  if (!roles->has_file) return is_local ? RN_ROLE_ADMIN : RN_ROLE_READ;
  rn_role_t role = RN_ROLE_NONE;
  for (size_t i = 0; i < roles->tokens.count; ++i) {
    const role_token_t* token = &roles->tokens.items[i];
    if (rn_token_matches(token->token, authorization) && token->role > role) role = token->role;
  }
  return role;
}

rn_status_t rn_front_denied(rn_role_t role) {
  if (role == RN_ROLE_NONE)
    return rn_status_make(RN_CODE_UNAUTHENTICATED,
                          "A token is needed: authorization: Bearer TOKEN");
  return rn_status_make(RN_CODE_PERMISSION_DENIED, "The caller's role does not allow this");
}
