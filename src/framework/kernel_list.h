// The registered kernels as a message.
#ifndef RUNNEL_FRAMEWORK_KERNEL_LIST_H_
#define RUNNEL_FRAMEWORK_KERNEL_LIST_H_

#include "base/str.h"

// Appends a serialised KernelList of the kernels of |op|; NULL: of all ops.
RN_MUST_USE rn_status_t rn_kernel_list_write(rn_strbuf_t* buf, const char* op);

#endif  // RUNNEL_FRAMEWORK_KERNEL_LIST_H_
