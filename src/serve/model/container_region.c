// Shared memory for batches: see container_region.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create
#endif
#include "serve/model/container_region.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

#define STEP ((size_t)64 << 10)

static rn_status_t fill_region(int fd, size_t size, rn_container_region_t* out) {
  int error = posix_fallocate(fd, 0, (off_t)size);
  if (error) return rn_resource_exhausted("Cannot reserve %zu bytes of shared memory", size);
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return rn_status_of_errno("sealing shared memory", errno);
  void* data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED)
    return rn_resource_exhausted("Cannot map %zu bytes of shared memory", size);
  *out = (rn_container_region_t){.data = data, .size = size};
  return RN_OK;
}

rn_status_t rn_container_region_make(size_t size, rn_container_region_t* out, int* out_fd) {
  *out = (rn_container_region_t){0};
  *out_fd = -1;
  // Batches differ in size: an eighth more saves most of the next ones a new region.
  if (!rn_add_ok(size, size / 8 + STEP, &size)) return rn_out_of_memory();
  size -= size % STEP;
  int fd = memfd_create("runnel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return rn_resource_exhausted("Cannot make shared memory (errno %d)", errno);
  rn_status_t status = fill_region(fd, size, out);
  if (rn_ok(status))
    *out_fd = fd;
  else
    close(fd);
  return status;
}

void rn_container_region_free(rn_container_region_t* region) {
  if (region->data) munmap(region->data, region->size);
  *region = (rn_container_region_t){0};
}
