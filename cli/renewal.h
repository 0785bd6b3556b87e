// Renewing certificates and tokens of a running server when their files change.
#ifndef RUNNEL_CLI_RENEWAL_H_
#define RUNNEL_CLI_RENEWAL_H_

#include "base/env.h"

// How often servers look at their files.
#define RN_CLI_RENEWAL_SECONDS 10

// A number that changes when one of |paths|, up to the first NULL of |count|, is written again.
uint64_t rn_cli_stamp(const rn_env_t* env, const char* const* paths, int count);

// Logs that |what| was renewed, or why it stays as it is. Takes |status|.
void rn_cli_log_renewal(const rn_env_t* env, const char* what, rn_status_t status);

#endif  // RUNNEL_CLI_RENEWAL_H_
