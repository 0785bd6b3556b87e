// Loops over pixels (isa/image.h, isa/resize.h) for this CPU's ISA level.
#ifndef RUNNEL_KERNELS_CPU_IMAGE_LOOPS_H_
#define RUNNEL_KERNELS_CPU_IMAGE_LOOPS_H_

#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/image.h"
#include "kernels/cpu/isa/resize.h"

static inline const rn_image_loops_t* rn_image_loops(void) {
  return RN_ISA_PICK_NARROW(&rn_image_loops_);
}
static inline const rn_resize_loops_t* rn_resize_loops(void) {
  return RN_ISA_PICK(&rn_resize_loops_);
}

#endif  // RUNNEL_KERNELS_CPU_IMAGE_LOOPS_H_
