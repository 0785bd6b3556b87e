// See roles.h.
#include "serve/front/roles.h"

// In the order of rn_role_t, which begins with RN_ROLE_NONE.
static const rn_token_roles_t roles_of_file = {.names = {"predict", "read", "admin"},
                                               .is_required = true};

rn_status_t rn_roles_read(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                          rn_tokens_t** out) {
  *out = NULL;
  return path ? rn_tokens_read(env, path, &roles_of_file, allocator, out) : RN_OK;
}

rn_role_t rn_roles_of(rn_tokens_t* tokens, rn_str_t authorization, bool is_local) {
  if (!tokens) return is_local ? RN_ROLE_ADMIN : RN_ROLE_READ;
  uint32_t granted = rn_tokens_grant(tokens, authorization);
  rn_role_t role = RN_ROLE_NONE;
  for (; granted; granted >>= 1) role++;
  return role;
}

rn_status_t rn_front_denied(rn_role_t role) {
  if (role == RN_ROLE_NONE)
    return rn_status_make(RN_CODE_UNAUTHENTICATED,
                          "A token is needed: authorization: Bearer TOKEN");
  return rn_status_make(RN_CODE_PERMISSION_DENIED, "The caller's role does not allow this");
}
