// What callers may do, by the token that they send.
//
// A token file has one line per token, "predict TOKEN", "read TOKEN" or "admin TOKEN"; '#' begins a
// comment. Callers send "authorization: Bearer TOKEN". Without a file, every caller may predict and
// read, and callers on this machine may administrate. With one, a caller without a known token may
// do nothing but ask for health.
#ifndef RUNNEL_SERVE_FRONT_ROLES_H_
#define RUNNEL_SERVE_FRONT_ROLES_H_

#include "net/token.h"
#include "serve/front/front.h"

// |path| may be NULL; then so is |*out|. Errors name the file and the line.
RN_MUST_USE rn_status_t rn_roles_read(const rn_env_t* env, const char* path,
                                      rn_allocator_t allocator, rn_tokens_t** out);

// The role of a caller that sent |authorization|, the value of the header.
rn_role_t rn_roles_of(rn_tokens_t* tokens, rn_str_t authorization, bool is_local);

#endif  // RUNNEL_SERVE_FRONT_ROLES_H_
