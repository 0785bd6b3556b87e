// Limits of this process that the system sets, used for defaults.
#ifndef RUNNEL_BASE_MACHINE_H_
#define RUNNEL_BASE_MACHINE_H_

#include <stddef.h>

// Bytes of memory: the machine's, or the control group's limit if that is lower. 0: unknown.
size_t rn_machine_memory(void);
// Descriptors that the process may have open.
size_t rn_machine_descriptors(void);

#endif  // RUNNEL_BASE_MACHINE_H_
