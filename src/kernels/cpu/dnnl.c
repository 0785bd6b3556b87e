// Loading oneDNN: see dnnl.h.
#include "kernels/cpu/dnnl.h"

#include <dlfcn.h>
#include <pthread.h>

#define LIBRARY "libdnnl.so.2"

// Filled once and then read-only. It belongs to the process, like the library it points into.
static struct {
  pthread_once_t once;
  rn_dnnl_t table;
  const char* missing;  // NULL if everything was found
} loaded = {.once = PTHREAD_ONCE_INIT};

static int one_thread(void) { return 1; }
static void ignore_threads(int threads) { (void)threads; }

static void* find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (!symbol && !loaded.missing) loaded.missing = name;
  return symbol;
}

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    loaded.missing = LIBRARY;
    return;
  }
#define RN_DNNL_LOAD(name) *(void**)&loaded.table.name = find(library, "dnnl_" #name);
  RN_DNNL_FUNCTIONS(RN_DNNL_LOAD)
#undef RN_DNNL_LOAD
  // Without OpenMP there are no threads to hold back.
  *(void**)&loaded.table.omp_get_max_threads = dlsym(library, "omp_get_max_threads");
  *(void**)&loaded.table.omp_set_num_threads = dlsym(library, "omp_set_num_threads");
  if (!loaded.table.omp_get_max_threads || !loaded.table.omp_set_num_threads) {
    loaded.table.omp_get_max_threads = one_thread;
    loaded.table.omp_set_num_threads = ignore_threads;
  }
}

rn_status_t rn_dnnl(const rn_dnnl_t** out) {
  pthread_once(&loaded.once, load);
  *out = &loaded.table;
  if (!loaded.missing) return RN_OK;
  return rn_unimplemented(
      "oneDNN is needed and could not be loaded: %s is missing (Debian: libdnnl2)", loaded.missing);
}
