// Growth of vectors, the same for every type.
#include "base/vec.h"

rn_status_t rn_vec_grow_(rn_allocator_t allocator, void** items, size_t* capacity, size_t needed,
                         size_t item_size) {
  if (needed <= *capacity) return RN_OK;
  size_t grown = *capacity < 4 ? 8 : *capacity;
  if (*capacity >= 4 && !rn_mul_ok(grown, 2, &grown)) grown = needed;
  if (grown < needed) grown = needed;
  size_t bytes;
  if (!rn_mul_ok(grown, item_size, &bytes)) return rn_out_of_memory();
  // The old size is a product that was checked when the vector grew to it.
  void* moved = allocator.fn(allocator.self, *items, *capacity * item_size, bytes);
  if (!moved) return rn_out_of_memory();
  *items = moved;
  *capacity = grown;
  return RN_OK;
}
