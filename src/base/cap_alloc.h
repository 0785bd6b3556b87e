// An allocator that counts what it gives out, and gives out no more than a limit.
//
// For parts of a process that must not take the memory of the others. Beyond the limit, and only
// there, there is no memory: callers see the same as when the system has none. Thread-safe.
#ifndef RUNNEL_BASE_CAP_ALLOC_H_
#define RUNNEL_BASE_CAP_ALLOC_H_

#include "base/alloc.h"

typedef struct rn_cap_alloc_t rn_cap_alloc_t;

// |limit| in bytes; SIZE_MAX: none.
RN_MUST_USE rn_status_t rn_cap_alloc_create(rn_allocator_t base, size_t limit,
                                            rn_cap_alloc_t** out);
// Blocks may outlive the owner: the allocator is freed with the last of them. NULL is fine.
void rn_cap_alloc_release(rn_cap_alloc_t* cap);
rn_allocator_t rn_cap_allocator(rn_cap_alloc_t* cap);
// The bytes of the blocks that are in use.
size_t rn_cap_alloc_bytes(const rn_cap_alloc_t* cap);

#endif  // RUNNEL_BASE_CAP_ALLOC_H_
