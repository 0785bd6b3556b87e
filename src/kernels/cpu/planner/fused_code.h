// Machine code for fused chains (fused.h): a run of cheap steps becomes one loop that keeps its
// values in registers, where the runner would pass over a block once per step. Other steps (exp,
// tanh, ...) stay calls of their functions, so a program is divided into parts of either kind.
//
// The loops compute the formulas of the vector functions (isa/vector.c) with the same instructions
// and give the same bits; only which of two NaNs an operation passes on may differ. What is left of
// a block after whole registers is for the functions.
//
// There is code for x86-64 with AVX2 or AVX-512, where the system allows executable pages.
#ifndef RUNNEL_KERNELS_CPU_PLANNER_FUSED_CODE_H_
#define RUNNEL_KERNELS_CPU_PLANNER_FUSED_CODE_H_

#include "kernels/cpu/planner/fused.h"

// The current block of an operand, and the distance to its next block.
typedef struct rn_fused_place_t {
  char* at;
  size_t advance;  // bytes; 0 for temporaries and scalars
  int step;
} rn_fused_place_t;

// Runs its steps over |bytes| of every operand, a positive multiple of rn_fused_code_t.width.
// Temporaries are RN_FUSED_BLOCK_BYTES apart.
typedef void (*rn_fused_loop_t)(const rn_fused_place_t* places, int64_t bytes);

typedef struct rn_fused_part_t {
  int32_t first, end;  // steps
  bool is_loop;        // else the steps' functions are called
  size_t at;           // where in the code
  rn_fused_loop_t loop;
} rn_fused_part_t;

typedef struct rn_fused_code_t {
  uint64_t scalars;  // the inputs that are one number for all elements; others are arrays
  size_t width;      // bytes per register
  void* pages;       // Owned
  size_t size;       // of the code
  int32_t part_count, room;
  rn_fused_part_t* parts;  // Owned
  rn_allocator_t allocator;
} rn_fused_code_t;

// Bytes per register of the vector functions that this machine uses: 32 or 64; 0 if there is no
// code for them.
size_t rn_fused_code_width(void);

// Makes code for a checked |program|. |*out| is NULL if nothing would gain by it, if |width| is 0,
// or if the system refuses executable pages.
RN_MUST_USE rn_status_t rn_fused_code_create(rn_allocator_t allocator, const rn_fused_t* program,
                                             uint64_t scalars, size_t width, rn_fused_code_t** out);
void rn_fused_code_destroy(rn_fused_code_t* code);  // takes NULL

#endif  // RUNNEL_KERNELS_CPU_PLANNER_FUSED_CODE_H_
