// See spans.h.
#include "kernels/cpu/spans.h"

#include "kernels/cpu/isa.h"

const rn_spans_t* rn_spans(void) { return RN_ISA_PICK_NARROW(&rn_spans_); }
