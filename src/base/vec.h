// Growable arrays of any type: RN_VEC(int) items = {0}; then rn_vec_push(&items, allocator, 7).
//
// The macros evaluate |vec| more than once. Growth doubles; elements move, so pointers into a
// vector last until the next push.
#ifndef RUNNEL_BASE_VEC_H_
#define RUNNEL_BASE_VEC_H_

#include "base/alloc.h"

#define RN_VEC(type) \
  struct {           \
    type* items;     \
    size_t count;    \
    size_t capacity; \
  }

RN_MUST_USE rn_status_t rn_vec_grow_(rn_allocator_t allocator, void** items, size_t* capacity,
                                     size_t needed, size_t item_size);

// Makes room for |needed| elements in all.
#define rn_vec_reserve(vec, allocator, needed)                                                \
  ((size_t)(needed) <= (vec)->capacity                                                        \
       ? RN_OK                                                                                \
       : rn_vec_grow_((allocator), (void**)&(vec)->items, &(vec)->capacity, (size_t)(needed), \
                      sizeof *(vec)->items))

// Appends |value|; a status.
#define rn_vec_push(vec, allocator, ...)                                               \
  __extension__({                                                                      \
    rn_status_t rn_vec_status_ = rn_vec_reserve((vec), (allocator), (vec)->count + 1); \
    if (rn_ok(rn_vec_status_)) (vec)->items[(vec)->count++] = __VA_ARGS__;             \
    rn_vec_status_;                                                                    \
  })

#define rn_vec_free(vec, allocator)                                             \
  do {                                                                          \
    rn_free((allocator), (vec)->items, (vec)->capacity * sizeof *(vec)->items); \
    (vec)->items = NULL;                                                        \
    (vec)->count = (vec)->capacity = 0;                                         \
  } while (0)

#endif  // RUNNEL_BASE_VEC_H_
