// The part of env.h for time, threads and shared libraries.

#define _GNU_SOURCE  // pthread_setname_np

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tensorflow/c/env.h"

// --- Time

uint64_t TF_NowNanos(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t TF_NowMicros(void) { return TF_NowNanos() / 1000u; }

uint64_t TF_NowSeconds(void) { return TF_NowNanos() / 1000000000u; }

// --- Threads

struct TF_Thread {
  rn_allocator_t allocator;
  pthread_t thread;
  void (*work)(void*);  // Borrowed, as |param|, until the thread is joined.
  void* param;
};

void TF_DefaultThreadOptions(TF_ThreadOptions* options) {
  if (options == NULL) return;
  options->stack_size = 0;
  options->guard_size = 0;
  options->numa_node = -1;
}

static void* thread_main(void* self) {
  TF_Thread* thread = self;
  thread->work(thread->param);
  return NULL;
}

// A stack size that the system refuses is ignored: a hint must not prevent the thread. Stacks are
// whole pages, at least the system's minimum.
static void apply_options(const TF_ThreadOptions* options, pthread_attr_t* attributes) {
  if (options == NULL) return;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t smallest = (size_t)PTHREAD_STACK_MIN;
  if (options->stack_size != 0 && options->stack_size < SIZE_MAX - page) {
    const size_t wanted = options->stack_size < smallest ? smallest : options->stack_size;
    (void)pthread_attr_setstacksize(attributes, (wanted + page - 1) / page * page);
  }
  if (options->guard_size != 0) (void)pthread_attr_setguardsize(attributes, options->guard_size);
}

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                          void (*work_func)(void*), void* param) {
  const rn_allocator_t allocator = rn_allocator_default();
  TF_Thread* thread = NULL;
  if (work_func == NULL) return NULL;
  rn_status_t status = RN_NEW(allocator, &thread);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  *thread = (TF_Thread){.allocator = allocator, .work = work_func, .param = param};
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    apply_options(options, &attributes);
    error = pthread_create(&thread->thread, &attributes, thread_main, thread);
    (void)pthread_attr_destroy(&attributes);
  }
  if (error != 0) {
    RN_FREE(allocator, thread);
    return NULL;
  }
  if (thread_name != NULL) {
    char name[16];  // the longest that Linux stores, NUL included
    snprintf(name, sizeof name, "%s", thread_name);
    (void)pthread_setname_np(thread->thread, name);
  }
  return thread;
}

void TF_JoinThread(TF_Thread* thread) {
  if (thread == NULL) return;
  (void)pthread_join(thread->thread, NULL);
  RN_FREE(thread->allocator, thread);
}

// --- Shared libraries

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  // dlopen(NULL) would open the program itself.
  void* handle = library_filename == NULL ? NULL : dlopen(library_filename, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char* reason = library_filename == NULL ? "no file name given" : dlerror();
    TF_SetStatus(status, TF_NOT_FOUND, reason);
  } else {
    TF_SetStatus(status, TF_OK, "");
  }
  return handle;
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  void* symbol = handle == NULL || symbol_name == NULL ? NULL : dlsym(handle, symbol_name);
  if (symbol == NULL) {
    const char* reason = handle == NULL || symbol_name == NULL ? NULL : dlerror();
    TF_SetStatus(status, TF_NOT_FOUND, reason != NULL ? reason : "no such symbol");
  } else {
    TF_SetStatus(status, TF_OK, "");
  }
  return symbol;
}
