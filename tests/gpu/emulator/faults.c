// Counters and faults of the emulated driver: see emulator.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MAX_FAULTS 32

typedef struct fault_t {
  emu_call_t call;
  int left;  // calls until it fails; 0 if there is no fault
  CUresult result;
} fault_t;

typedef struct kernel_count_t {
  struct kernel_count_t* next;
  uint64_t count;
  char name[];
} kernel_count_t;

#define CALL_NAME(result, name, parameters) #name,
static const char* const call_names[EMU_CALL_COUNT] = {RN_CUDA_DRIVER_CALLS(CALL_NAME) "kernel",
                                                       "copy", "pageable"};
static uint64_t counts[EMU_CALL_COUNT];
static fault_t faults[MAX_FAULTS];
static kernel_count_t* kernels;  // never freed: tests read them at the very end

static int call_of(const char* name) {
  for (int i = 0; i < EMU_CALL_COUNT; ++i)
    if (strcmp(name, call_names[i]) == 0) return i;
  return -1;
}

CUresult emu_enter_locked(emu_call_t call) {
  CUresult result = CUDA_SUCCESS;
  ++counts[call];
  for (int i = 0; i < MAX_FAULTS; ++i)
    if (faults[i].left && faults[i].call == call && --faults[i].left == 0)
      result = faults[i].result;
  return result;
}

CUresult emu_enter(emu_call_t call) {
  emu_lock();
  CUresult result = emu_enter_locked(call);
  if (result >= EMU_ILLEGAL_ADDRESS && result <= EMU_LAUNCH_FAILED &&
      result != EMU_LAUNCH_OUT_OF_RESOURCES) {
    CUcontext current = NULL;
    emu_unlock();
    emu_current(&current);
    emu_lock();
    if (current) emu_lose_locked(current, result);
  }
  bool is_ready = emu.is_initialized || call == EMU_CALL_cuInit ||
                  call == EMU_CALL_cuGetErrorName || call == EMU_CALL_cuGetErrorString ||
                  call == EMU_CALL_cuDriverGetVersion;
  emu_unlock();
  if (result == CUDA_SUCCESS && !is_ready) result = EMU_NOT_INITIALIZED;
  return result;
}

// Adds a line to the file that RN_EMULATED_KERNELS names; all processes add to it.
static void list_kernel(const char* name) {
  const char* path = getenv("RN_EMULATED_KERNELS");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s\n", name);
  fclose(file);
}

void emu_count_kernel_locked(const char* name) {
  kernel_count_t* kernel = kernels;
  while (kernel && strcmp(kernel->name, name) != 0) kernel = kernel->next;
  if (!kernel) {
    size_t size = strlen(name) + 1;
    kernel = calloc(1, sizeof *kernel + size);
    if (!kernel) return;
    memcpy(kernel->name, name, size);
    kernel->next = kernels;
    kernels = kernel;
    list_kernel(name);
  }
  ++kernel->count;
}

static int add_fault_locked(const char* name, int nth, int result) {
  int call = call_of(name);
  for (int i = 0; call >= 0 && nth > 0 && i < MAX_FAULTS; ++i) {
    if (faults[i].left) continue;
    faults[i] = (fault_t){(emu_call_t)call, nth, result};
    return 1;
  }
  return 0;
}

int rn_emulated_fail(const char* call, int nth, int result) {
  emu_lock();
  int is_added = add_fault_locked(call, nth, result);
  emu_unlock();
  return is_added;
}

void rn_emulated_heal(void) {
  emu_lock();
  memset(faults, 0, sizeof faults);
  emu_unlock();
}

uint64_t rn_emulated_count(const char* call) {
  static const char prefix[] = "kernel:";
  uint64_t count = 0;
  emu_lock();
  int index = call_of(call);
  if (index >= 0) count = counts[index];
  if (strncmp(call, prefix, sizeof prefix - 1) == 0)
    for (const kernel_count_t* kernel = kernels; kernel; kernel = kernel->next)
      if (strcmp(kernel->name, call + sizeof prefix - 1) == 0) count = kernel->count;
  emu_unlock();
  return count;
}

void emu_read_faults(const char* list) {
  while (list && *list) {
    char name[64];
    int nth, result;
    if (sscanf(list, "%63[^:]:%d:%d", name, &nth, &result) != 3 ||
        !add_fault_locked(name, nth, result))
      fprintf(stderr, "emulated GPU: RN_EMULATED_FAIL: no call in '%s'\n", list);
    list += strcspn(list, ",");
    list += *list == ',';
  }
}

uint64_t rn_emulated_in_use(const char* what) {
  emu_lock();
  uint64_t device = 0, contexts = 0;
  for (int i = 0; i < emu.device_count; ++i) {
    device += emu.devices[i].used;
    contexts += emu.devices[i].retained > 0;
  }
  const struct {
    const char* name;
    uint64_t value;
  } values[] = {
      {"device", device},
      {"pinned", emu.pinned},
      {"allocations", (uint64_t)emu.allocations},
      {"streams", (uint64_t)emu.streams},
      {"events", (uint64_t)emu.events},
      {"modules", (uint64_t)emu.modules},
      {"graphs", (uint64_t)emu.graphs},
      {"contexts", contexts},
  };
  emu_unlock();
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i)
    if (strcmp(what, values[i].name) == 0) return values[i].value;
  return 0;
}
