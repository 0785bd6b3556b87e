// Results of the driver: numbers, names and texts as CUDA has them.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_ERRORS_H_
#define RUNNEL_TESTS_GPU_EMULATOR_ERRORS_H_

#include "device/cuda/driver_api.h"

// X(name without CUDA_ERROR_, number, text)
#define EMU_ERRORS(X)                                                                           \
  X(INVALID_VALUE, 1, "invalid argument")                                                       \
  X(OUT_OF_MEMORY, 2, "out of memory")                                                          \
  X(NOT_INITIALIZED, 3, "initialization error")                                                 \
  X(NO_DEVICE, 100, "no CUDA-capable device is detected")                                       \
  X(INVALID_DEVICE, 101, "invalid device ordinal")                                              \
  X(INVALID_IMAGE, 200, "device kernel image is invalid")                                       \
  X(INVALID_CONTEXT, 201, "invalid device context")                                             \
  X(NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")         \
  X(ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")                              \
  X(INVALID_HANDLE, 400, "invalid resource handle")                                             \
  X(NOT_FOUND, 500, "named symbol not found")                                                   \
  X(NOT_READY, 600, "device not ready")                                                         \
  X(ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                           \
  X(LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                    \
  X(LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                             \
  X(CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                          \
  X(MISALIGNED_ADDRESS, 716, "misaligned address")                                              \
  X(LAUNCH_FAILED, 719, "unspecified launch failure")                                           \
  X(STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")        \
  X(STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture") \
  X(STREAM_CAPTURE_UNMATCHED, 903, "invalid argument to cuStreamEndCapture")                    \
  X(STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                         \
  X(STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")   \
  X(CAPTURED_EVENT, 907,                                                                        \
    "operation not permitted on an event last recorded in a capturing stream")                  \
  X(STREAM_CAPTURE_WRONG_THREAD, 908,                                                           \
    "attempt to terminate a thread-local capture sequence from another thread")                 \
  X(UNKNOWN, 999, "unknown error")

#define EMU_ERROR_ENUM(name, number, text) EMU_##name = number,
enum { EMU_ERRORS(EMU_ERROR_ENUM) };
#undef EMU_ERROR_ENUM

#endif  // RUNNEL_TESTS_GPU_EMULATOR_ERRORS_H_
