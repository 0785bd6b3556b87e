// Programs of a session: each signature is cut and registered with the tasks on first use.
#ifndef RUNNEL_DIST_MASTER_PROGRAM_H_
#define RUNNEL_DIST_MASTER_PROGRAM_H_

#include "dist/master/step.h"

// Runs |step| when its program is ready, which may be now. After an error the caller ends it.
RN_MUST_USE rn_status_t rn_master_program_dispatch(rn_master_step_t* step);

#endif  // RUNNEL_DIST_MASTER_PROGRAM_H_
