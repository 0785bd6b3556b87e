// The CPU's kernels that serve the devices of plug-ins, too: see default_rows.def.
#ifndef RUNNEL_KERNELS_DEFAULT_ROWS_H_
#define RUNNEL_KERNELS_DEFAULT_ROWS_H_

#include "base/status.h"

// Registers them for the device type DEFAULT, once per process.
RN_MUST_USE rn_status_t rn_default_rows_register(void);

#endif  // RUNNEL_KERNELS_DEFAULT_ROWS_H_
