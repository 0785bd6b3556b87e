// Casts from and to the types of eight bits and less that no other op computes with: float8 and
// int4.
#ifndef RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_
#define RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_

#include "tensor/dtype.h"

// Whether one of the two is such a type, and the cast is one that stock has, too: of float8 to any
// number and from any float, of int4 and uint4 from and to integers.
bool rn_cast_small_has(rn_dtype_t source, rn_dtype_t target);
// Casts |n| elements. |in| and |out| do not overlap, unless they are the same and so are the sizes.
void rn_cast_small(rn_dtype_t source, rn_dtype_t target, const void* in, void* out, int64_t n);

#endif  // RUNNEL_KERNELS_CPU_MATH_CAST_SMALL_H_
