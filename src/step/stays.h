// Values that stay the same from step to step, so that kernels may keep what they compute of them.
#ifndef RUNNEL_STEP_STAYS_H_
#define RUNNEL_STEP_STAYS_H_

#include "step/ir.h"

// Whether the step may change a variable.
bool rn_ir_changes_variables(const rn_ir_t* ir);
// Whether |edge| is a constant, or, unless |has_writers|, a variable, which then changes only when
// another step assigns it, or such a value cast once for all steps.
bool rn_ir_stays(const rn_ir_t* ir, rn_ir_edge_t edge, bool has_writers);

#endif  // RUNNEL_STEP_STAYS_H_
