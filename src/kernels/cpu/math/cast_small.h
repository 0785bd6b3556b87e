// Casts of the types of 8 bits and fewer that no other op supports: float8 and int4.
#ifndef RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_
#define RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_

#include "tensor/dtype.h"

// Whether one of the two is such a type and stock has the cast too: float8 to any number and from
// any float, int4 and uint4 from and to integers.
bool rn_cast_small_has(rn_dtype_t source, rn_dtype_t target);
// Casts |n| elements. |in| and |out| must not overlap, unless they are the same and so are the
// sizes.
void rn_cast_small(rn_dtype_t source, rn_dtype_t target, const void* in, void* out, int64_t n);

#endif  // RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_
