// Tokens: shared secrets that a server and its callers read from files.
//
// A file has one token, or one line "ROLE TOKEN" per token; a word that begins with '#' begins a
// comment. Several tokens may have the same role, so that a new one can be handed out before the
// old one is removed. A token without a role grants everything.
//
// Callers send "authorization: Bearer TOKEN" with every call. It authorizes the caller without
// identifying it; on untrusted networks it needs TLS.
#ifndef RUNNEL_NET_TOKEN_H_
#define RUNNEL_NET_TOKEN_H_

#include "base/env.h"

// Length of a token in bytes.
#define RN_TOKEN_MIN 16
#define RN_TOKEN_MAX 1024

// The tokens of one file. Functions may be called from any thread.
typedef struct rn_tokens_t rn_tokens_t;

typedef struct rn_token_roles_t {
  const char* names[8];  // of the roles, up to the first NULL
  bool is_required;      // every token has a role
  int own;               // the number of the role whose token this process sends
} rn_token_roles_t;

// Reads the file |path| or, if that is NULL, the file that the variable RUNNEL_TOKEN names;
// |*out| is NULL if neither names one. Without |roles| any word is a role. INVALID_ARGUMENT, with
// the file and the line, if a line is no token, and for a file without tokens.
RN_MUST_USE rn_status_t rn_tokens_read(const rn_env_t* env, const char* path,
                                       const rn_token_roles_t* roles, rn_allocator_t allocator,
                                       rn_tokens_t** out);
// Reads the file again; |*out_is_new| if its tokens have changed. On failure the old ones stay.
RN_MUST_USE rn_status_t rn_tokens_refresh(rn_tokens_t* tokens, bool* out_is_new);
void rn_tokens_retain(rn_tokens_t* tokens);   // NULL is fine
void rn_tokens_release(rn_tokens_t* tokens);  // NULL is fine

// The roles that |authorization|, the value of the header, grants: bit i for role number i. 0 if
// the token is not in the file. The time it takes does not tell how near a wrong token is.
uint32_t rn_tokens_grant(rn_tokens_t* tokens, rn_str_t authorization);
// The token that this process sends: the first of its own role, or else of the file. "" for NULL.
void rn_tokens_own(rn_tokens_t* tokens, char out[RN_TOKEN_MAX + 1]);

// The same for a file that is read once, by the rules of rn_tokens_read without roles.
RN_MUST_USE rn_status_t rn_token_read(const rn_env_t* env, const char* path,
                                      rn_allocator_t allocator, char out[RN_TOKEN_MAX + 1]);

#endif  // RUNNEL_NET_TOKEN_H_
