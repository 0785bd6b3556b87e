// A block of memory that one process writes and another of its machine reads.
//
// The reader gets the block's descriptor over a Unix socket. It cannot write there, and the writer
// can neither shrink the block, which would kill a reader, nor let others write to it: the kernel
// seals it.
#ifndef RUNNEL_DIST_RPC_SHARED_H_
#define RUNNEL_DIST_RPC_SHARED_H_

#include <stdbool.h>
#include <stddef.h>

// A new block of |size| zero bytes, for its writer, and its descriptor, which the caller closes;
// NULL if there is none.
void* rn_shared_create(size_t size, int* out_fd);
// The block of |fd|, for a reader; NULL unless it has |size| bytes and is sealed.
const void* rn_shared_open(int fd, size_t size);
void rn_shared_close(const void* block, size_t size);  // NULL is fine

// Sends |size| bytes of |packet| with |fd|, or receives them: -1 if none came. Of several that
// came, all but the first are closed. They return what send and recv return.
long rn_shared_send(int socket, const void* packet, size_t size, int fd);
long rn_shared_receive(int socket, void* packet, size_t size, int* out_fd);

#endif  // RUNNEL_DIST_RPC_SHARED_H_
