// Large copies between the host and a card, on streams of their own.
//
// A card has one engine per direction that copies while kernels run. It reads and writes only
// page-locked memory. What lies elsewhere in host memory goes through a few page-locked buffers per
// direction: threads of the pool fill one while the engine empties another.
//
// Each copy waits for what was issued to the card before, and what is issued later waits for it,
// unless its caller says that the order does not matter. Any thread may call.
#ifndef RUNNEL_DEVICE_CUDA_COPIES_H_
#define RUNNEL_DEVICE_CUDA_COPIES_H_

#include "device/cuda/card.h"

// Smaller copies are issued among the kernels: starting another stream would take longer.
#define RN_CUDA_LARGE_COPY ((size_t)64 << 10)

typedef struct rn_cuda_copies_t rn_cuda_copies_t;

RN_MUST_USE rn_status_t rn_cuda_copies_create(rn_cuda_card_t* card, rn_cuda_copies_t** out);
// Waits for the copies. NULL is fine.
void rn_cuda_copies_destroy(rn_cuda_copies_t* copies);
// Frees the buffers.
void rn_cuda_copies_trim(rn_cuda_copies_t* copies);

// Issues a copy of |size| bytes to the card. Page-locked bytes must stay until it has ended; others
// have been read when this returns. |is_free|: no unfinished work uses the target, so this need not
// wait for what was issued before, except for the sake of memory that was allocated since the last
// copy. |pool| may be NULL.
RN_MUST_USE rn_status_t rn_cuda_copy_in(rn_cuda_copies_t* copies, rn_pool_t* pool, CUdeviceptr to,
                                        const void* from, size_t size, bool is_free);
// The same from the card to the host. Bytes that are not page-locked have arrived when this
// returns. |is_free|: no work writes the source before the next rn_cuda_copies_wait, and |held|, if
// it has a buffer, is shared until then.
RN_MUST_USE rn_status_t rn_cuda_copy_out(rn_cuda_copies_t* copies, rn_pool_t* pool, void* to,
                                         CUdeviceptr from, size_t size, const rn_tensor_t* held,
                                         bool is_free);

// Says that memory of the card was handed out that unfinished work may still use.
void rn_cuda_copies_note_memory(rn_cuda_copies_t* copies);

// Waits for all free copies to the host that were issued so far.
RN_MUST_USE rn_status_t rn_cuda_copies_wait(rn_cuda_copies_t* copies);
// Makes later work of the card wait for them instead. What they hold is released by a later wait.
RN_MUST_USE rn_status_t rn_cuda_copies_join(rn_cuda_copies_t* copies);

#endif  // RUNNEL_DEVICE_CUDA_COPIES_H_
