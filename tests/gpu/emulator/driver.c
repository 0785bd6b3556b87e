// The emulated driver: devices, contexts and errors. See driver.h for how it fits together.
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

emu_state_t emu = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static _Thread_local emu_device_t* current;

// A call of driver_api.h that no file defines stops the link here.
#define CALL_POINTER(result, name, parameters) (void (*)(void)) name,
__attribute__((used)) static void (*const all_calls[])(void) = {RN_CUDA_DRIVER_CALLS(CALL_POINTER)};

CUresult emu_current(emu_device_t** out_device) {
  *out_device = current;
  if (!current) return EMU_INVALID_CONTEXT;
  emu_lock();
  CUresult lost = current->retained ? current->lost : EMU_CONTEXT_IS_DESTROYED;
  emu_unlock();
  return lost;
}

void emu_lose_locked(emu_device_t* device, CUresult result) {
  if (!device->lost) device->lost = result;
  pthread_cond_broadcast(&emu.changed);
}

void rn_emulated_lose(int device, int result) {
  emu_lock();
  if (device >= 0 && device < emu.device_count) emu_lose_locked(&emu.devices[device], result);
  emu_unlock();
}

void rn_emulated_pause(int is_paused) {
  emu_lock();
  emu.is_paused = is_paused;
  pthread_cond_broadcast(&emu.changed);
  emu_unlock();
}

static long long variable(const char* name, long long otherwise) {
  const char* text = getenv(name);
  return text && *text ? atoll(text) : otherwise;
}

CUresult cuInit(unsigned flags) {
  EMU_CALL(cuInit);
  EMU_RETURN_IF(flags != 0, EMU_INVALID_VALUE);
  emu_lock();
  if (!emu.is_initialized) {
    long long count = variable("RN_EMULATED_GPUS", 1);
    emu.device_count = (int)(count < 0 ? 0 : count > EMU_MAX_DEVICES ? EMU_MAX_DEVICES : count);
    emu.memory = (size_t)variable("RN_EMULATED_MEMORY", 1ll << 30);
    emu.is_open = variable("RN_EMULATED_OPEN", 0) != 0;
    emu.fill = (int)variable("RN_EMULATED_FILL", -1);
    emu.shuffle = (uint64_t)variable("RN_EMULATED_SHUFFLE", 0);
    emu.is_idle = variable("RN_EMULATED_IDLE", 0) != 0;
    emu_read_faults(getenv("RN_EMULATED_FAIL"));
    for (int i = 0; i < emu.device_count; ++i) emu.devices[i].ordinal = i;
    emu.is_initialized = true;
  }
  int count = emu.device_count;
  emu_unlock();
  return count ? CUDA_SUCCESS : EMU_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version) {
  EMU_CALL(cuDriverGetVersion);
  *version = (int)variable("RN_EMULATED_VERSION", 13000);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  EMU_CALL(cuGetErrorName);
  *name = NULL;
#define ERROR_NAME(error_name, number, text) \
  if (error == (number)) *name = "CUDA_ERROR_" #error_name;
  EMU_ERRORS(ERROR_NAME)
#undef ERROR_NAME
  if (error == CUDA_SUCCESS) *name = "CUDA_SUCCESS";
  return *name ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  EMU_CALL(cuGetErrorString);
  *text = NULL;
#define ERROR_TEXT(error_name, number, its_text) \
  if (error == (number)) *text = its_text;
  EMU_ERRORS(ERROR_TEXT)
#undef ERROR_TEXT
  if (error == CUDA_SUCCESS) *text = "no error";
  return *text ? CUDA_SUCCESS : EMU_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  EMU_CALL(cuDeviceGetCount);
  *count = emu.device_count;
  return CUDA_SUCCESS;
}

static bool is_device(CUdevice device) { return device >= 0 && device < emu.device_count; }

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  EMU_CALL(cuDeviceGet);
  EMU_RETURN_IF(!is_device(ordinal), EMU_INVALID_DEVICE);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  EMU_CALL(cuDeviceGetName);
  EMU_RETURN_IF(!is_device(device), EMU_INVALID_DEVICE);
  EMU_RETURN_IF(size < 1, EMU_INVALID_VALUE);
  snprintf(name, (size_t)size, "Emulated GPU");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  EMU_CALL(cuDeviceGetUuid);
  EMU_RETURN_IF(!is_device(device), EMU_INVALID_DEVICE);
  memcpy(uuid->bytes, "emulated gpu   ", sizeof uuid->bytes);
  const char* machine = getenv("RN_EMULATED_MACHINE");
  if (machine) uuid->bytes[14] = *machine;
  uuid->bytes[15] = (char)('0' + device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  EMU_CALL(cuDeviceGetPCIBusId);
  EMU_RETURN_IF(!is_device(device), EMU_INVALID_DEVICE);
  EMU_RETURN_IF(size < 13, EMU_INVALID_VALUE);
  snprintf(text, (size_t)size, "0000:%02X:00.0", (unsigned char)(device + 1));
  return CUDA_SUCCESS;
}

// Attributes by number, as a small card of compute capability 9.0 would have them.
static const struct {
  int attribute, value;
} attributes[] = {
    {1, EMU_MAX_THREADS},  // threads per block
    {2, EMU_MAX_THREADS},  // block x, y, z
    {3, EMU_MAX_THREADS},
    {4, 64},
    {5, 2147483647},  // grid x, y, z
    {6, 65535},
    {7, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, EMU_SHARED},
    {9, 65536},  // constant memory
    {10, RN_EMULATED_WARP},
    {12, 65536},  // registers per block
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
    {18, 0},        // integrated
    {19, 1},        // maps host memory
    {31, 1},        // concurrent kernels
    {32, 0},        // ECC
    {36, 1000000},  // memory clock, kHz
    {37, 1024},     // bus width, bits
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {40, 2},  // copy engines
    {41, 1},  // unified addresses
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {81, 233472},  // shared memory and registers per multiprocessor
    {82, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, EMU_MOST_SHARED},
};

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  EMU_CALL(cuDeviceGetAttribute);
  EMU_RETURN_IF(!is_device(device), EMU_INVALID_DEVICE);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; ++i) {
    if (attributes[i].attribute != attribute) continue;
    const char* shared = getenv("RN_EMULATED_SHARED");
    bool is_shared = attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    *value = is_shared && shared ? atoi(shared) : attributes[i].value;
    return CUDA_SUCCESS;
  }
  return EMU_INVALID_VALUE;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  EMU_CALL(cuDeviceTotalMem_v2);
  EMU_RETURN_IF(!is_device(device), EMU_INVALID_DEVICE);
  *bytes = emu.memory;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  EMU_CALL(cuDevicePrimaryCtxRetain);
  EMU_RETURN_IF(!is_device(ordinal), EMU_INVALID_DEVICE);
  emu_device_t* device = &emu.devices[ordinal];
  emu_lock();
  CUresult result = device->lost;
  if (!result && device->retained == 0) result = emu_start_worker(device);
  if (!result) {
    ++device->retained;
    *context = device;
  }
  emu_unlock();
  return result;
}

// The last release resets the device: its memory is gone, and a lost device comes back.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  EMU_CALL(cuDevicePrimaryCtxRelease_v2);
  EMU_RETURN_IF(!is_device(ordinal), EMU_INVALID_DEVICE);
  emu_device_t* device = &emu.devices[ordinal];
  emu_lock();
  bool is_last = device->retained == 1;
  CUresult result = device->retained ? CUDA_SUCCESS : EMU_INVALID_CONTEXT;
  if (device->retained) --device->retained;
  emu_unlock();
  if (is_last) {
    emu_stop_worker(device);
    emu_lock();
    emu_free_all_locked(device);
    device->lost = CUDA_SUCCESS;
    emu_unlock();
  }
  return result;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  EMU_CALL(cuCtxGetCurrent);
  *context = current;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  EMU_CALL(cuCtxSetCurrent);
  emu_lock();
  CUresult result = !context || context->retained ? CUDA_SUCCESS : EMU_INVALID_CONTEXT;
  emu_unlock();
  if (!result) current = context;
  return result;
}
