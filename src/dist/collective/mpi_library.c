// See mpi_library.h.
#include "dist/collective/mpi_library.h"

#include <dlfcn.h>

#define LIBRARY "libmpi.so.40"

rn_status_t rn_mpi_library_open(rn_mpi_library_t* out) {
  // Its plug-ins look for its symbols among those of the process. It stays open: it cannot be
  // loaded twice.
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return rn_unimplemented(
        "Collectives by MPI need Open MPI 4, which could not be loaded: %s is missing (Debian: "
        "openmpi-bin)",
        LIBRARY);
  static const char* const names[] = {
#define NAME(name, ...) #name,
      RN_MPI_FUNCTIONS(NAME) RN_MPI_HANDLES(NAME)
#undef NAME
  };
  void** table = (void**)out;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (!(table[i] = dlsym(library, names[i])))
      return rn_unimplemented("%s has no %s", LIBRARY, names[i]);
  return RN_OK;
}
