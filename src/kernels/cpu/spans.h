// Loops over spans of elements (isa/spans.h) for this CPU's ISA level.
#ifndef RUNNEL_KERNELS_CPU_SPANS_H_
#define RUNNEL_KERNELS_CPU_SPANS_H_

#include "kernels/cpu/isa/spans.h"

const rn_spans_t* rn_spans(void);

#endif  // RUNNEL_KERNELS_CPU_SPANS_H_
