// Opening the file of a plug-in: see call.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dladdr
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "capi/plugin/call.h"

#define MESSAGES "libtensorflow_protos.so.2"

// A plug-in finds our functions in the process. If a program opened this library for itself alone,
// as Python does, they are made visible first.
static void become_visible(void) {
  Dl_info info;
  if (dladdr((void*)(uintptr_t)&TF_NewStatus, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

// Makes the messages of C++ and what they need visible: from the folder of this library, or from
// where the loader finds them. False if they are not installed.
static bool show_messages(void) {
  Dl_info info;
  char path[4096] = MESSAGES;
  if (dladdr((void*)(uintptr_t)&TF_NewStatus, &info) && info.dli_fname) {
    const char* slash = strrchr(info.dli_fname, '/');
    int folder = slash ? (int)(slash - info.dli_fname + 1) : 0;
    if (folder < (int)(sizeof path - sizeof MESSAGES))
      snprintf(path, sizeof path, "%.*s%s", folder, info.dli_fname, MESSAGES);
  }
  return dlopen(path, RTLD_NOW | RTLD_GLOBAL) || dlopen(MESSAGES, RTLD_NOW | RTLD_GLOBAL);
}

rn_status_t rn_plugin_open(const char* filename, void** out) {
  become_visible();
  *out = dlopen(filename, RTLD_NOW | RTLD_LOCAL);
  if (*out) return RN_OK;
  // An op in C++ that was linked as TensorFlow's guide says, with libtensorflow_framework alone,
  // does not name the libraries of the messages and of absl::Status.
  const char* missing = dlerror();
  if (missing && strstr(missing, "undefined symbol") && show_messages())
    *out = dlopen(filename, RTLD_NOW | RTLD_LOCAL);
  else if (missing)
    return rn_not_found("%s", missing);
  if (*out) return RN_OK;
  const char* error = dlerror();
  return rn_not_found("%s", error ? error : "The library cannot be opened");
}
