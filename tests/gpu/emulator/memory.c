// Device and pinned memory of the emulated driver.
//
// Device memory is mapped page by page between guard pages, and ends where the guard begins. Unless
// RN_EMULATED_OPEN is set, it is accessible only while a worker runs work, so that host code that
// touches it crashes.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"
#include "sanitizer.h"

#define ALIGNMENT 512  // of device memory, as CUDA's
#define HUGE_PAGE ((size_t)2 << 20)

typedef struct pinned_t {
  struct pinned_t* next;
  char* address;
  size_t size;
} pinned_t;
static pinned_t* pinned;

static size_t round_up(size_t size, size_t to) { return (size + to - 1) / to * to; }

static void protect(const emu_allocation_t* allocation, int access) {
  mprotect(allocation->pages, allocation->pages_size, access);
}

static void protect_all_locked(int access) {
  if (emu.is_open) return;
  for (int i = 0; i < emu.device_count; ++i)
    for (emu_allocation_t* a = emu.devices[i].allocations; a; a = a->next) protect(a, access);
}

void emu_open_locked(emu_device_t* device) {
  if (device->is_open) return;
  device->is_open = true;
  if (emu.opened++ == 0) protect_all_locked(PROT_READ | PROT_WRITE);
}

void emu_close_locked(emu_device_t* device) {
  if (!device->is_open) return;
  device->is_open = false;
  if (--emu.opened == 0) protect_all_locked(PROT_NONE);
}

static bool is_within(const char* address, size_t size, const char* begin, size_t length) {
  uintptr_t from = (uintptr_t)address, start = (uintptr_t)begin;
  return from >= start && from - start <= length && size <= length - (from - start);
}

bool emu_is_device_locked(const void* address, size_t size) {
  for (int i = 0; i < emu.device_count; ++i)
    for (const emu_allocation_t* a = emu.devices[i].allocations; a; a = a->next)
      if (is_within(address, size, a->address, a->size)) return true;
  return false;
}

static bool is_pinned_locked(const void* address, size_t size) {
  for (const pinned_t* p = pinned; p; p = p->next)
    if (is_within(address, size, p->address, p->size)) return true;
  return false;
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  EMU_CALL(cuMemGetInfo_v2);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  emu_lock();
  *free_bytes = emu.memory - device->used;
  *total = emu.memory;
  emu_unlock();
  return CUDA_SUCCESS;
}

static emu_allocation_t* map_memory(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  emu_allocation_t* allocation = calloc(1, sizeof *allocation);
  if (!allocation) return NULL;
  // The protection of huge pages changes a hundred times faster.
  size_t alignment = size < HUGE_PAGE ? page : HUGE_PAGE;
  allocation->pages_size = round_up(round_up(size, ALIGNMENT), page);
  allocation->mapped_size = allocation->pages_size + alignment + 2 * page;
  allocation->mapped = mmap(NULL, allocation->mapped_size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (allocation->mapped == MAP_FAILED) {
    free(allocation);
    return NULL;
  }
  size_t first = round_up((uintptr_t)allocation->mapped + page, alignment);
  allocation->pages = allocation->mapped + (first - (uintptr_t)allocation->mapped);
  if (alignment == HUGE_PAGE) madvise(allocation->pages, allocation->pages_size, MADV_HUGEPAGE);
  allocation->address = allocation->pages + allocation->pages_size - round_up(size, ALIGNMENT);
  allocation->size = size;
  // AddressSanitizer also sees what misses the guard pages.
  emu_poison(allocation->mapped, allocation->mapped_size);
  emu_unpoison(allocation->address, size);
  return allocation;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  EMU_CALL(cuMemAlloc_v2);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  EMU_RETURN_IF(size == 0, EMU_INVALID_VALUE);
  emu_lock();
  CUresult result = EMU_OUT_OF_MEMORY;
  emu_allocation_t* allocation = size <= emu.memory - device->used ? map_memory(size) : NULL;
  if (allocation) {
    allocation->next = device->allocations;
    device->allocations = allocation;
    device->used += size;
    ++emu.allocations;
    *address = (CUdeviceptr)(uintptr_t)allocation->address;
    bool is_closed = !emu.is_open && emu.opened == 0;
    if (!is_closed || emu.fill >= 0) protect(allocation, PROT_READ | PROT_WRITE);
    if (emu.fill >= 0) memset(allocation->address, emu.fill, size);
    if (is_closed && emu.fill >= 0) protect(allocation, PROT_NONE);
    result = CUDA_SUCCESS;
  }
  emu_unlock();
  return result;
}

static void free_locked(emu_device_t* device, emu_allocation_t* allocation) {
  device->used -= allocation->size;
  --emu.allocations;
  emu_unpoison(allocation->mapped, allocation->mapped_size);
  munmap(allocation->mapped, allocation->mapped_size);
  free(allocation);
}

// Waits for all work of the device, as CUDA does.
CUresult cuMemFree_v2(CUdeviceptr address) {
  EMU_CALL(cuMemFree_v2);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  if (!address) return CUDA_SUCCESS;
  emu_lock();
  CUresult result = EMU_INVALID_VALUE;
  for (int i = 0; i < emu.device_count && result; ++i) {
    emu_device_t* owner = &emu.devices[i];
    emu_wait_idle_locked(owner);
    emu_allocation_t** link = &owner->allocations;
    while (*link && (uintptr_t)(*link)->address != address) link = &(*link)->next;
    emu_allocation_t* allocation = *link;
    if (!allocation) continue;
    *link = allocation->next;
    free_locked(owner, allocation);
    result = CUDA_SUCCESS;
  }
  emu_unlock();
  return result;
}

void emu_free_all_locked(emu_device_t* device) {
  while (device->allocations) {
    emu_allocation_t* allocation = device->allocations;
    device->allocations = allocation->next;
    free_locked(device, allocation);
  }
}

CUresult cuMemHostAlloc(void** address, size_t size, unsigned flags) {
  (void)flags;
  EMU_CALL(cuMemHostAlloc);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  EMU_RETURN_IF(size == 0, EMU_INVALID_VALUE);
  pinned_t* entry = calloc(1, sizeof *entry);
  void* memory = NULL;
  // From malloc, so that AddressSanitizer watches it.
  if (!entry || posix_memalign(&memory, 4096, size) != 0) {
    free(entry);
    return EMU_OUT_OF_MEMORY;
  }
  *address = memory;
  emu_lock();
  *entry = (pinned_t){pinned, memory, size};
  pinned = entry;
  emu.pinned += size;
  emu_unlock();
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* address) {
  EMU_CALL(cuMemFreeHost);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  emu_lock();
  for (int i = 0; i < emu.device_count; ++i) emu_wait_idle_locked(&emu.devices[i]);
  pinned_t** link = &pinned;
  while (*link && (*link)->address != address) link = &(*link)->next;
  pinned_t* entry = *link;
  if (entry) {
    *link = entry->next;
    emu.pinned -= entry->size;
  }
  emu_unlock();
  if (!entry) return EMU_INVALID_VALUE;
  free(entry->address);
  free(entry);
  return CUDA_SUCCESS;
}

static emu_allocation_t* find_locked(CUdeviceptr address) {
  for (int i = 0; i < emu.device_count; ++i)
    for (emu_allocation_t* a = emu.devices[i].allocations; a; a = a->next)
      if (is_within((const char*)(uintptr_t)address, 1, a->address, a->size)) return a;
  return NULL;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  EMU_CALL(cuMemGetAddressRange_v2);
  emu_lock();
  const emu_allocation_t* found = find_locked(address);
  if (found) {
    *base = (CUdeviceptr)(uintptr_t)found->address;
    *size = found->size;
  }
  emu_unlock();
  return found ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

// Handles work within the process, which CUDA's do not: its memory is nobody else's.
typedef struct emu_handle_t {
  char mark[16];
  CUdeviceptr address;
} emu_handle_t;
#define HANDLE_MARK "emulated memory"

// For tests that have memory to share; Runnel does not call it.
CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address);
EMU_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  emu_handle_t handle = {HANDLE_MARK, address};
  emu_lock();
  bool exists = find_locked(address) != NULL;
  emu_unlock();
  memset(out, 0, sizeof *out);
  memcpy(out, &handle, sizeof handle);
  return exists ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  EMU_CALL(cuIpcOpenMemHandle_v2);
  emu_device_t* device;
  emu_handle_t own;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF_ERROR(emu_may_be_unsafe());
  memcpy(&own, &handle, sizeof own);
  bool is_ours = memcmp(own.mark, HANDLE_MARK, sizeof own.mark) == 0;
  EMU_RETURN_IF(!is_ours || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, EMU_INVALID_VALUE);
  emu_lock();
  bool exists = find_locked(own.address) != NULL;
  emu_unlock();
  *address = own.address;
  return exists ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  EMU_CALL(cuIpcCloseMemHandle);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  emu_lock();
  bool exists = find_locked(address) != NULL;
  emu_unlock();
  return exists ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  EMU_CALL(cuPointerGetAttribute);
  EMU_RETURN_IF(attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE, EMU_INVALID_VALUE);
  emu_lock();
  const void* start = (const void*)(uintptr_t)address;
  bool is_host = is_pinned_locked(start, 1), is_device = emu_is_device_locked(start, 1);
  emu_unlock();
  *(unsigned*)value = is_host ? CU_MEMORYTYPE_HOST : 2;
  return is_host || is_device ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

// Copies. |out_is_pageable|: the host's side is not pinned.
static CUresult copy(void* to, const void* from, size_t size, CUstream stream, bool is_to_device,
                     bool is_from_device, bool* out_is_pageable) {
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  *out_is_pageable = false;
  emu_lock();
  bool is_valid = emu_is_device_locked(to, size) == is_to_device &&
                  emu_is_device_locked(from, size) == is_from_device;
  if (!is_to_device) *out_is_pageable = !is_pinned_locked(to, size);
  if (!is_from_device) *out_is_pageable = !is_pinned_locked(from, size);
  bool is_captured = stream->capture != NULL;
  if (*out_is_pageable && is_valid) emu_enter_locked(EMU_CALL_pageable);
  emu_unlock();
  EMU_RETURN_IF(!is_valid, EMU_INVALID_VALUE);
  if (!size) return CUDA_SUCCESS;
  emu_item_t* item = emu_item_create(EMU_COPY);
  EMU_RETURN_IF(!item, EMU_OUT_OF_MEMORY);
  item->copy.to = to;
  item->copy.from = from;
  item->copy.size = size;
  item->copy.is_to_device = is_to_device;
  item->copy.is_from_device = is_from_device;
  // The caller may reuse pageable memory at once; pinned memory it must leave alone.
  if (!is_from_device && *out_is_pageable && !is_captured) {
    item->copy.from = item->copy.staged = malloc(size);
    if (!item->copy.staged) {
      free(item);
      return EMU_OUT_OF_MEMORY;
    }
    memcpy(item->copy.staged, from, size);
  }
  *out_is_pageable &= !is_captured;
  return emu_issue(stream, item);
}

static void* pointer(CUdeviceptr address) { return (void*)(uintptr_t)address; }

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  EMU_CALL(cuMemcpyHtoDAsync_v2);
  bool is_pageable;
  return copy(pointer(to), from, size, stream, true, false, &is_pageable);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  EMU_CALL(cuMemcpyDtoHAsync_v2);
  bool is_pageable;
  EMU_RETURN_IF_ERROR(copy(to, pointer(from), size, stream, false, true, &is_pageable));
  return is_pageable ? emu_synchronize(stream) : CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  EMU_CALL(cuMemcpyDtoDAsync_v2);
  bool is_pageable;
  return copy(pointer(to), pointer(from), size, stream, true, true, &is_pageable);
}

static CUresult fill(CUdeviceptr to, unsigned value, size_t width, size_t count, CUstream stream) {
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  EMU_RETURN_IF(count > SIZE_MAX / width || to % width, EMU_INVALID_VALUE);
  emu_lock();
  bool is_valid = emu_is_device_locked(pointer(to), count * width);
  emu_unlock();
  EMU_RETURN_IF(!is_valid, EMU_INVALID_VALUE);
  emu_item_t* item = emu_item_create(EMU_FILL);
  EMU_RETURN_IF(!item, EMU_OUT_OF_MEMORY);
  item->fill.to = pointer(to);
  item->fill.value = value;
  item->fill.width = width;
  item->fill.count = count;
  return emu_issue(stream, item);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  EMU_CALL(cuMemsetD8Async);
  return fill(to, value, 1, n, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  EMU_CALL(cuMemsetD32Async);
  return fill(to, value, 4, n, stream);
}
