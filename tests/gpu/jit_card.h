// Runs programs of the loop compiler on the first card: an emulated one in the ordinary tests.
#ifndef RUNNEL_TESTS_GPU_JIT_CARD_H_
#define RUNNEL_TESTS_GPU_JIT_CARD_H_

#include "kernels/cuda/jit/compile.h"

#define CARD_PROCESSORS 4  // few, so that small tests have grids that wrap around

typedef struct card_t {
  rn_cuda_driver_t driver;
  rn_nvrtc_t nvrtc;
  CUcontext context;
  int architecture;
} card_t;

// One program with its data. The caller owns all memory.
typedef struct card_case_t {
  rn_jit_program_t program;
  rn_jit_sizes_t sizes;
  rn_jit_operand_t inputs[RN_JIT_MAX_INPUTS];  // addresses are set here
  const void* in[RN_JIT_MAX_INPUTS];
  size_t in_bytes[RN_JIT_MAX_INPUTS];
  void* out[RN_JIT_MAX_OUTPUTS];
  size_t out_bytes[RN_JIT_MAX_OUTPUTS];
  size_t shift;        // bytes that all addresses are moved by, to make them less aligned
  bool is_wide;        // 64-bit indices although the sizes do not need them
  int processors;      // CARD_PROCESSORS if 0
  rn_jit_grid_t grid;  // what was chosen
} card_case_t;

// Stops the test with a message if something fails.
void card_open(card_t* card);
void card_close(card_t* card);
// Compiles all programs as one source, runs them, and fills |out|.
void card_run(card_t* card, card_case_t* cases, int count);

// Stops the test if |status| is an error.
void card_must(rn_status_t status);

#endif  // RUNNEL_TESTS_GPU_JIT_CARD_H_
