// Tokens: a shared secret that a task and its callers read from a file.
//
// Clients send it with every call, as "authorization: Bearer TOKEN". It authorizes the caller
// without identifying it; on untrusted networks it needs TLS.
#ifndef RUNNEL_NET_TOKEN_H_
#define RUNNEL_NET_TOKEN_H_

#include "base/env.h"

// Length of a token in bytes.
#define RN_TOKEN_MIN 16
#define RN_TOKEN_MAX 1024

// Reads the token from the file |path| or, if that is NULL, from the file that the variable
// RUNNEL_TOKEN names; surrounding blanks are dropped. "" if neither names one. Initializes |out|.
// INVALID_ARGUMENT unless the file has 16 to 1024 visible characters.
RN_MUST_USE rn_status_t rn_token_read(const rn_env_t* env, const char* path,
                                      rn_allocator_t allocator, rn_strbuf_t* out);

// Whether |authorization|, the value of the header, has |token|. Takes the same time wherever they
// differ.
bool rn_token_matches(rn_str_t token, rn_str_t authorization);

#endif  // RUNNEL_NET_TOKEN_H_
