// Places of values in one block of memory: values that live at the same time do not overlap.
#ifndef RUNNEL_EXEC_PACK_MEMORY_H_
#define RUNNEL_EXEC_PACK_MEMORY_H_

#include "base/alloc.h"

// A value and its place.
typedef struct rn_packed_t {
  size_t size;          // bytes, a multiple of RN_ALIGN, not 0
  int32_t first, last;  // instructions: that makes it, and after which its bytes are free
  size_t offset;        // set by the functions below
} rn_packed_t;

// Places |values|, which are in the order of |first|, one after the other as the step runs: each
// gets the smallest free piece that holds it. |*out_end| is where the last one ends.
RN_MUST_USE rn_status_t rn_pack_in_order(rn_packed_t* values, int32_t count,
                                         rn_allocator_t allocator, size_t* out_end);
// The same, or by size, the largest first, each in the smallest gap between those that it meets:
// whichever takes less memory. Slower, in the square of |count| at worst; many values are placed in
// order.
RN_MUST_USE rn_status_t rn_pack_tightly(rn_packed_t* values, int32_t count,
                                        rn_allocator_t allocator, size_t* out_end);

#endif  // RUNNEL_EXEC_PACK_MEMORY_H_
