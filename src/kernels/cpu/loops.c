// Selects the loops for the ISA level. See loops.h.
#include "kernels/cpu/loops.h"

#include "kernels/cpu/isa.h"

RN_ISA_DECLARE(rn_loops_t, rn_loops_);
RN_ISA_DECLARE(rn_casts_t, rn_casts_);

const rn_loops_t* rn_loops(void) { return RN_ISA_PICK_NARROW(&rn_loops_); }
const rn_casts_t* rn_casts(void) { return RN_ISA_PICK_NARROW(&rn_casts_); }
