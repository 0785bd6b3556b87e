// What this process has of the machine: limits that others set, for defaults of our own.
#ifndef RUNNEL_BASE_MACHINE_H_
#define RUNNEL_BASE_MACHINE_H_

#include <stddef.h>

// Bytes of memory: those of the machine, or fewer where a control group says so. 0: unknown.
size_t rn_machine_memory(void);
// Descriptors that the process may have open.
size_t rn_machine_descriptors(void);

#endif  // RUNNEL_BASE_MACHINE_H_
