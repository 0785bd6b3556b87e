// How tests steer and watch the emulated driver. Its libcuda.so.1 exports these functions; tests
// find them with dlsym in the library that they run against.
//
// A call is named as the driver exports it ("cuMemAlloc_v2"). Two names stand for work on the
// device: "kernel", a kernel that runs, and "copy", a copy or fill that runs. They happen later
// than the call that issued them, on the worker's thread.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATOR_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATOR_H_

#include <stdint.h>

// X(result, name, parameters)
#define RN_EMULATED_CALLS(X)                                                             \
  /* The |nth| call from now on (1 is the next) returns |result| and does nothing.    */ \
  /* Results 700 to 719 except 701 are sticky, as on a GPU: the device is lost, and   */ \
  /* all later calls return that result. 0 if there is no such call.                  */ \
  X(int, rn_emulated_fail, (const char* call, int nth, int result))                      \
  /* Loses a device at once.                                                          */ \
  X(void, rn_emulated_lose, (int device, int result))                                    \
  /* Forgets the faults that are to come. Lost devices stay lost.                     */ \
  X(void, rn_emulated_heal, (void))                                                      \
  /* How often a call was made since the library was loaded. Also "kernel", "copy",   */ \
  /* "pageable" (copies from or to host memory that is not pinned, which wait or      */ \
  /* stage) and "kernel:NAME" for one kernel.                                         */ \
  X(uint64_t, rn_emulated_count, (const char* call))                                     \
  /* What is in use: "device" and "pinned" in bytes; "allocations", "streams",        */ \
  /* "events", "modules", "graphs", "contexts" in pieces.                             */ \
  X(uint64_t, rn_emulated_in_use, (const char* what))                                    \
  /* While paused, devices begin no work: what is issued stays in the queues.         */ \
  X(void, rn_emulated_pause, (int is_paused))

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATOR_H_
