// The results of a collective whose members are all in one process.
#ifndef RUNNEL_COLLECTIVE_COMPUTE_H_
#define RUNNEL_COLLECTIVE_COMPUTE_H_

#include "framework/collective.h"

// Sets the outputs of |members|, which are in the order of their ranks and agree with each other.
// |pool| may be NULL. On failure some outputs may be set.
RN_MUST_USE rn_status_t rn_collective_compute(rn_collective_t* const* members, int32_t count);

// sum[i] = inputs[0][i] op inputs[1][i] op … for |n| elements, in this order; divided if |like|
// says so, by |group_size|. |sum| may be inputs[0].
void rn_collective_merge(const rn_collective_t* like, const void* const* inputs, int32_t count,
                         void* sum, int64_t n);
// INVALID_ARGUMENT or INTERNAL if |b| is not the same operation as |a|.
RN_MUST_USE rn_status_t rn_collective_agree(const rn_collective_t* a, const rn_collective_t* b);

#endif  // RUNNEL_COLLECTIVE_COMPUTE_H_
