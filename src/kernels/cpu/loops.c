// Selects the loops for the ISA level. See loops.h.
#include "kernels/cpu/loops.h"

#include "kernels/cpu/isa.h"

extern const rn_loops_t rn_loops_base;
extern const rn_casts_t rn_casts_base;
#ifdef __x86_64__
extern const rn_loops_t rn_loops_avx2, rn_loops_avx512;
extern const rn_casts_t rn_casts_avx2, rn_casts_avx512;
#endif

const rn_loops_t* rn_loops(void) { return RN_ISA_PICK_NARROW(&rn_loops_); }
const rn_casts_t* rn_casts(void) { return RN_ISA_PICK_NARROW(&rn_casts_); }
