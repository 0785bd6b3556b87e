// Logs of long-running sub-commands, on stderr: for rn_env_t.log. |self| is an rn_log_settings_t
// (base/log.h), or NULL.
#ifndef RUNNEL_CLI_LOG_H_
#define RUNNEL_CLI_LOG_H_

#include "base/env.h"

// "2026-11-17 10:00:00.123 W message"; with |is_iso| "2026-11-17T10:00:00.123Z W message".
void rn_cli_log_text(void* self, rn_log_level_t level, const char* message);
// {"time": "2026-11-17T10:00:00.123Z", "level": "warning", "message": "..."}
void rn_cli_log_json(void* self, rn_log_level_t level, const char* message);

#endif  // RUNNEL_CLI_LOG_H_
