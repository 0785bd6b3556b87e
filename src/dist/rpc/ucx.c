// See ucx.h.
#include "dist/rpc/ucx.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define UCP_LIBRARY "libucp.so.0"
#define UCS_LIBRARY "libucs.so.0"

// UCX writes its messages to standard output, which is not ours to write to. Returns 0: no other
// handler shall see them.
static int print(const char* file, unsigned line, const char* function, int level,
                 const void* component, const char* format, va_list arguments) {
  (void)file, (void)line, (void)function, (void)level, (void)component;
  char text[512];
  vsnprintf(text, sizeof text, format, arguments);
  // We say ourselves that a peer cannot be reached, after the last attempt.
  if (strncmp(text, "no ", 3) == 0 && strstr(text, " transport to ")) return 0;
  fprintf(stderr, "runnel: UCX: %s\n", text);
  return 0;
}

// Loading the library makes it catch the signals of crashes, and keeps the process from ending of
// them as it should.
static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
enum { SIGNAL_COUNT = sizeof signals / sizeof *signals };

static void save_signals(struct sigaction* out) {
  for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(signals[i], NULL, &out[i]);
}
static void restore_signals(const struct sigaction* saved) {
  for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(signals[i], &saved[i], NULL);
}

static void redirect_messages(void* ucs) {
  union {
    void* symbol;
    void (*push)(int (*fn)(const char*, unsigned, const char*, int, const void*, const char*,
                           va_list));
  } at;
  if ((at.symbol = dlsym(ucs, "ucs_log_push_handler"))) at.push(print);
}

rn_status_t rn_ucx_open(rn_ucx_t* out) {
  struct sigaction saved[SIGNAL_COUNT];
  bool is_first = !dlopen(UCS_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  save_signals(saved);
  // They stay open: memory hooks and threads of theirs cannot be taken out of the process.
  void* ucs = dlopen(UCS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* ucp = ucs ? dlopen(UCP_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  restore_signals(saved);
  if (!ucp)
    return rn_unimplemented("UCX could not be loaded: %s is missing (Debian: libucx0)",
                            ucs ? UCP_LIBRARY : UCS_LIBRARY);
  static const struct {
    const char* name;
    bool is_ucp;
  } names[] = {
#define IS_ucp true
#define IS_ucs false
#define NAME(library, result, name, arguments) {#name, IS_##library},
      RN_UCX_FUNCTIONS(NAME)
#undef NAME
  };
  void** table = (void**)out;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (!(table[i] = dlsym(names[i].is_ucp ? ucp : ucs, names[i].name)))
      return rn_unimplemented("This version of UCX is too old: it has no %s", names[i].name);
  if (is_first) redirect_messages(ucs);
  return RN_OK;
}
