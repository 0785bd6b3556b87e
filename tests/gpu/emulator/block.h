// Runs the threads of a kernel on the CPU.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_BLOCK_H_
#define RUNNEL_TESTS_GPU_EMULATOR_BLOCK_H_

#include <stdbool.h>
#include <stddef.h>

#include "errors.h"
#include "image.h"

#define EMU_MAX_THREADS 1024  // per block

typedef struct emu_launch_t {
  const char* name;  // of the kernel, for messages
  void (*kernel)(const void* args);
  rn_emulated_image_t* image;
  const void* args;
  rn_emulated_dim3 grid, block;
  size_t shared;  // bytes of dynamic shared memory per block
} emu_launch_t;

// The stacks and tables of one worker; used by one thread.
typedef struct emu_runner_t emu_runner_t;
emu_runner_t* emu_runner_create(bool is_reversed);  // threads start in reverse order
void emu_runner_destroy(emu_runner_t* runner);

// Runs one block after the other, and in a block one thread after the other, up to its end or to
// the next place where it waits for others. CUDA_ERROR_LAUNCH_FAILED if threads wait for others
// that never come, or if one calls __trap; a line on stderr says which.
CUresult emu_runner_run(emu_runner_t* runner, const emu_launch_t* launch);

#endif  // RUNNEL_TESTS_GPU_EMULATOR_BLOCK_H_
