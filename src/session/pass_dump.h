// RUNNEL_DUMP: the step's graph before and after passes, on standard error or as files.
#ifndef RUNNEL_SESSION_PASS_DUMP_H_
#define RUNNEL_SESSION_PASS_DUMP_H_

#include "session/planner.h"

// Writes |ir| if |debug->dump| asks for |pass|: "all", or words of which one is part of the pass's
// name. |when| is "before" or "after". A file that cannot be written is reported on standard error:
// the step goes on.
void rn_pass_dump(const rn_plan_debug_t* debug, const char* pass, const char* when, rn_ir_t* ir);

#endif  // RUNNEL_SESSION_PASS_DUMP_H_
