// The verifier of plans: what must hold of a compiled plan.
//
// doc/invariants.md: invariant 22.
#ifndef RUNNEL_EXEC_VERIFY_PLAN_H_
#define RUNNEL_EXEC_VERIFY_PLAN_H_

#include "exec/plan.h"

// INTERNAL, naming the instruction, if two values that live at the same time share bytes, or a
// value lies outside of the plan's block. Lifetimes are worked out anew from the instructions.
RN_MUST_USE rn_status_t rn_plan_verify(const rn_plan_t* plan);

#endif  // RUNNEL_EXEC_VERIFY_PLAN_H_
