// Regions of POSIX shared memory, and of memory on GPUs, that clients on this machine registered,
// to send inputs and receive outputs without a socket. The names of both are in one list.
//
// A region of POSIX shared memory is read and written through its descriptor, never through a
// mapping: a client that shrinks the object behind it causes an error here instead of a SIGBUS. Any
// thread may call these.
#ifndef RUNNEL_SERVE_FRONT_SHARED_MEMORY_H_
#define RUNNEL_SERVE_FRONT_SHARED_MEMORY_H_

#include "base/arena.h"
#include "serve/front/front.h"

// Each region keeps a descriptor open.
#define RN_SHARED_MEMORY_MAX_REGIONS 1024

RN_MUST_USE rn_status_t rn_shared_memory_create(rn_allocator_t allocator, rn_shared_memory_t** out);
void rn_shared_memory_destroy(rn_shared_memory_t* memory);  // NULL is fine

// Registers |size| bytes from |offset| of the object |key| ("/name") as |name|. ALREADY_EXISTS for
// a name that is taken, INVALID_ARGUMENT for an object that cannot be opened or is too small.
RN_MUST_USE rn_status_t rn_shared_memory_add(rn_shared_memory_t* memory, rn_str_t name,
                                             rn_str_t key, uint64_t offset, uint64_t size);
// Registers |size| bytes of the memory on GPU |card| (the driver's number) that |handle| stands
// for, the bytes of a cudaIpcMemHandle_t of another process. UNIMPLEMENTED where there are no GPUs.
RN_MUST_USE rn_status_t rn_shared_memory_add_cuda(rn_shared_memory_t* memory, rn_str_t name,
                                                  rn_str_t handle, int64_t card, uint64_t size);

typedef enum rn_region_kind_t { RN_REGION_SYSTEM, RN_REGION_CUDA } rn_region_kind_t;
// Unregisters |name|, or all regions of |kind| if it is ""; requests that use one already keep it.
// A name that was not registered, or is of the other kind, is fine.
void rn_shared_memory_remove(rn_shared_memory_t* memory, rn_region_kind_t kind, rn_str_t name);

typedef struct rn_region_info_t {
  rn_str_t name, key;  // no key on a GPU
  uint64_t offset, size;
  int64_t card;
} rn_region_info_t;
// All regions of |kind|, or |name| alone unless it is "" (NOT_FOUND if there is no such region), in
// |arena|.
RN_MUST_USE rn_status_t rn_shared_memory_list(rn_shared_memory_t* memory, rn_region_kind_t kind,
                                              rn_str_t name, rn_arena_t* arena,
                                              rn_region_info_t** out, size_t* out_count);

// Copies |size| bytes at |offset| of the region into a new buffer, which the caller releases.
// NOT_FOUND if there is no such region, INVALID_ARGUMENT beyond its end or beyond that of the
// object, which may have shrunk.
RN_MUST_USE rn_status_t rn_shared_memory_read(rn_shared_memory_t* memory, rn_str_t name,
                                              uint64_t offset, uint64_t size, rn_buffer_t** out);
// Copies |bytes| into the region, at |offset|. Fails like a read.
RN_MUST_USE rn_status_t rn_shared_memory_write(rn_shared_memory_t* memory, rn_str_t name,
                                               uint64_t offset, rn_str_t bytes);

#endif  // RUNNEL_SERVE_FRONT_SHARED_MEMORY_H_
