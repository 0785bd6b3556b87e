// Limits of this process that the system sets, used for defaults.
#ifndef RUNNEL_BASE_MACHINE_H_
#define RUNNEL_BASE_MACHINE_H_

#include <stddef.h>

// Bytes of memory: the machine's, or the control group's limit if that is lower. 0: unknown.
size_t rn_machine_memory(void);

// Processors that this process may use: those of its affinity, and no more than the share of time
// that its control groups allow, rounded up. Both are at least 1.
typedef struct rn_machine_processors_t {
  int all;
  int cores;  // hyper-threads of one core count as one
} rn_machine_processors_t;
// |root| is prepended to the paths of system files; "" except in tests.
rn_machine_processors_t rn_machine_processors(const char* root);

// Gives the pages of memory that malloc keeps for later back to the system, if they are many. For
// the end of something large: a session, a context. The next user of the pages pays for zeroed
// ones.
void rn_machine_trim(void);

// For the process of a server: blocks of malloc from 1 MiB on are mappings of their own, which go
// back to the system when they are freed. Otherwise glibc keeps blocks of up to 32 MiB on its heaps
// once such a block was freed. Smaller blocks leave up to 4 MiB of pages at the end of each heap.
void rn_machine_map_large_blocks(void);

// Descriptors that the process may have open.
size_t rn_machine_descriptors(void);

#endif  // RUNNEL_BASE_MACHINE_H_
