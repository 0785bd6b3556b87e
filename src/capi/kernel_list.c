// The registered kernels as KernelDefs.
#include "framework/kernel_list.h"
#include "capi/internal.h"

static TF_Buffer* list_kernels(const char* op, TF_Status* status) {
  rn_strbuf_t buf;
  TF_Buffer* list = NULL;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = rn_kernel_list_write(&buf, op);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_make(&buf, &list);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
  return list;
}

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) { return list_kernels(NULL, status); }

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  if (!name) {
    rn_capi_set(status, RN_CAPI_NULL("name"));
    return NULL;
  }
  return list_kernels(name, status);
}
