// Tokens: a secret that a task and all who may call it have in a file.
//
// Clients send it with every call, as "authorization: Bearer TOKEN". It says that the caller may
// call, not who it is; where others can listen it wants TLS below it.
#ifndef RUNNEL_DIST_TOKEN_H_
#define RUNNEL_DIST_TOKEN_H_

#include "base/env.h"

// Bytes of a token.
#define RN_TOKEN_MIN 16
#define RN_TOKEN_MAX 1024

// The token in the file |path|, or if that is NULL in the one that the variable RUNNEL_TOKEN names;
// what is blank around it does not count. "" if neither names one. |out| is set up by this.
// INVALID_ARGUMENT if the file's content is none: 16 to 1024 visible characters.
RN_MUST_USE rn_status_t rn_token_read(const rn_env_t* env, const char* path,
                                      rn_allocator_t allocator, rn_strbuf_t* out);

// Whether |authorization|, the value of the header, has |token|. The time it takes does not tell
// where they differ.
bool rn_token_matches(rn_str_t token, rn_str_t authorization);

#endif  // RUNNEL_DIST_TOKEN_H_
