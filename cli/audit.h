// The audit log of a task: who opened, closed or cleared what, and who was refused.
//
// One JSON object per line, appended to a file that only its owner may read:
//
//   {"time": "2026-11-18T06:30:00.123Z", "task": "/job:ps/replica:0/task:0", "action": "Reset",
//    "name": "operator/alice", "address": "10.0.0.7:41234", "role": "operator", "outcome": "OK"}
#ifndef RUNNEL_CLI_AUDIT_H_
#define RUNNEL_CLI_AUDIT_H_

#include "dist/gate.h"

typedef struct rn_cli_audit_t rn_cli_audit_t;

// Opens |path|, or creates it. |task| is copied.
RN_MUST_USE rn_status_t rn_cli_audit_open(const rn_env_t* env, const char* path, rn_str_t task,
                                          rn_allocator_t allocator, rn_cli_audit_t** out);
// Opens the file again, after it was renamed. On failure the old one stays in use.
RN_MUST_USE rn_status_t rn_cli_audit_reopen(rn_cli_audit_t* audit);
void rn_cli_audit_close(rn_cli_audit_t* audit);  // NULL is fine

// Appends a line; |self| is an rn_cli_audit_t. A line that cannot be written is logged. Of refused
// calls, at most 100 per second get a line, so that callers cannot fill the disk; "left_out" of the
// next line says how many did not.
void rn_cli_audit_write(void* self, const rn_audit_event_t* event);

#endif  // RUNNEL_CLI_AUDIT_H_
