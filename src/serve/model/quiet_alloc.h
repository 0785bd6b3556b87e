// The memory of a model that is loaded and unloaded while others have requests.
//
// Over any allocator. Large blocks that come while the model loads have small pages, because the
// system lets no other thread run while it makes a large one; rn_quiet_alloc_settle asks for large
// ones again, which the system then makes in the background, a few per second. Very large blocks
// are given back in pieces. base/pages.h says what others would wait for. Thread-safe.
#ifndef RUNNEL_SERVE_MODEL_QUIET_ALLOC_H_
#define RUNNEL_SERVE_MODEL_QUIET_ALLOC_H_

#include "base/alloc.h"

typedef struct rn_quiet_alloc_t rn_quiet_alloc_t;

// |is_loading|: until rn_quiet_alloc_settle.
RN_MUST_USE rn_status_t rn_quiet_alloc_create(rn_allocator_t base, bool is_loading,
                                              rn_quiet_alloc_t** out);
// Blocks may outlive the owner: the allocator is freed with the last of them. NULL is fine.
void rn_quiet_alloc_release(rn_quiet_alloc_t* quiet);
rn_allocator_t rn_quiet_allocator(rn_quiet_alloc_t* quiet);
// The model is loaded.
void rn_quiet_alloc_settle(rn_quiet_alloc_t* quiet);

#endif  // RUNNEL_SERVE_MODEL_QUIET_ALLOC_H_
