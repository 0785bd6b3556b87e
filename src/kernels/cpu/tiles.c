// See tiles.h.
#include "kernels/cpu/tiles.h"

#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_PERMISSION 0x1023  // arch_prctl's ARCH_REQ_XCOMP_PERM
#define TILE_DATA 18               // the state component of tiles

bool rn_tiles_are_granted(void) {
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
bool rn_tiles_are_granted(void) { return false; }
#endif
