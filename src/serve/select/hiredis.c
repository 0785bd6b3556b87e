// Loading hiredis: see hiredis.h.
#include "serve/select/hiredis.h"

#include <dlfcn.h>
#include <pthread.h>

// The layout of replies differs between versions: only the one that we were compiled with will do.
#define TEXT(x) #x
#define LIBRARY_OF(version) "libhiredis.so." TEXT(version)
#define LIBRARY LIBRARY_OF(HIREDIS_SONAME)

// Filled once and then only read; a property of the process, like the library it points into.
static struct {
  pthread_once_t once;
  rn_hiredis_t table;
  const char* missing;  // NULL: everything was found
} loaded = {.once = PTHREAD_ONCE_INIT};

static const char* const names[] = {
#define NAME(name) #name,
    RN_HIREDIS(NAME)
#undef NAME
};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.missing = LIBRARY;
    return;
  }
  void** table = (void**)&loaded.table;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    table[i] = dlsym(library, names[i]);
    if (!table[i] && !loaded.missing) loaded.missing = names[i];
  }
}

rn_status_t rn_hiredis(const rn_hiredis_t** out) {
  pthread_once(&loaded.once, load);
  *out = &loaded.table;
  if (!loaded.missing) return RN_OK;
  return rn_unimplemented(
      "Redis needs hiredis, which could not be loaded: %s is missing (Debian: libhiredis0.14)",
      loaded.missing);
}
