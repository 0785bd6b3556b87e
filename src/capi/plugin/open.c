// Opening the file of a plug-in: see call.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dladdr
#endif
#include <dlfcn.h>

#include "capi/plugin/call.h"

// A plug-in finds our functions in the process. If a program opened this library for itself alone,
// as Python does, they are made visible first.
static void become_visible(void) {
  Dl_info info;
  if (dladdr((void*)(uintptr_t)&TF_NewStatus, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

rn_status_t rn_plugin_open(const char* filename, void** out) {
  become_visible();
  *out = dlopen(filename, RTLD_NOW | RTLD_LOCAL);
  if (*out) return RN_OK;
  const char* error = dlerror();
  return rn_not_found("%s", error ? error : "The library cannot be opened");
}
