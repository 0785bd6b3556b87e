// Another process of this user, whose memory the kernel lets us read.
//
// doc/invariants.md: invariant 52. The process is the one at the other end of a Unix socket, never
// one that a message names.
#ifndef RUNNEL_DIST_RPC_PROCESS_H_
#define RUNNEL_DIST_RPC_PROCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rn_process_t {
  int pid;  // as the kernel reports it; 0: none
  int fd;   // Owned: a pidfd, which survives reuse of the number; -1: none
} rn_process_t;

// The process at the other end of |socket|. False, with errno set, if it is of another user, or of
// an invisible process-id namespace, or this process.
bool rn_process_open(int socket, rn_process_t* out);
void rn_process_close(rn_process_t* process);  // takes one that was not opened, if |fd| is -1
bool rn_process_is_alive(const rn_process_t* process);
// Reads |size| bytes at |address| of its memory; false, with errno set, if not all of them could be
// read. If the process is alive afterwards, it was the one that was read.
bool rn_process_read(const rn_process_t* process, uint64_t address, void* to, size_t size);

#endif  // RUNNEL_DIST_RPC_PROCESS_H_
