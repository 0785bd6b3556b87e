// How a program is run for given sizes: which kind of loop, how many threads, which arguments.
//
// rn_jit_grid chooses. What it chooses is in two parts: the variant, which the source depends on
// and which is part of the key, and numbers that travel in the arguments. Sizes that need the same
// variant share one kernel.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SCHEDULE_H_
#define RUNNEL_KERNELS_CUDA_JIT_SCHEDULE_H_

#include "kernels/cuda/jit/program.h"

// The sizes of a launch.
typedef struct rn_jit_sizes_t {
  int64_t count;                  // elements of the full space
  int64_t outer, reduced, inner;  // their product is |count|; for programs that reduce
  int64_t dims[RN_JIT_MAX_RANK];  // of the space; for STRIDED inputs
} rn_jit_sizes_t;

// One input of a launch.
typedef struct rn_jit_operand_t {
  uint64_t address;                  // on the device, a multiple of the element size
  int64_t period;                    // of ROW and COLUMN, at least 1
  int64_t strides[RN_JIT_MAX_RANK];  // of STRIDED, in elements; 0 broadcasts, negative ones work
  uint64_t number[2];                // of HOST: the element's bytes
} rn_jit_operand_t;

typedef enum rn_jit_schedule_t {
  RN_JIT_POINTWISE,
  RN_JIT_ROWS_BY_LANES,   // inner is 1: neighbouring lanes of a warp share a row
  RN_JIT_ROWS_BY_BLOCKS,  // inner is 1: a block per row, or per piece of one
  RN_JIT_COLUMNS,         // a block per tile of columns and piece of the reduced axis
} rn_jit_schedule_t;

// What the source depends on besides the program. Hashed byte by byte.
typedef struct rn_jit_variant_t {
  uint8_t schedule;  // rn_jit_schedule_t
  uint8_t vector;    // neighbouring elements per access: 1, 2, 4 or 8
  uint8_t whole;     // such elements have one row and column: periods and last dim are multiples
  uint8_t wide;      // 64-bit indices
  uint8_t lanes;     // per row, of ROWS_BY_LANES: a power of 2 up to 32
  uint8_t kept;      // accesses per row and thread, kept in registers; 0: every pass reads again
  uint8_t split;     // two kernels: "rn_jit" leaves sums in the workspace, "rn_jit_finish" the rest
  uint8_t unused;    // 0; no padding is hashed
  // Bits of STRIDED inputs whose neighbouring elements along the last dimension are one access, or
  // one element. Only if |whole|.
  uint64_t unit, flat;
} rn_jit_variant_t;
_Static_assert(sizeof(rn_jit_variant_t) == 24, "no padding is hashed");

typedef struct rn_jit_launch_t {
  unsigned grid, block_x, block_y, shared;
} rn_jit_launch_t;

typedef struct rn_jit_grid_t {
  rn_jit_variant_t variant;
  int kernel_count;  // 1; 2 if split; 0 if there is nothing to do
  rn_jit_launch_t launches[2];
  int64_t workspace;      // bytes of device memory that the kernels share, 256-byte aligned
  int64_t chunk, chunks;  // of a split reduction: reduced elements per piece, pieces
} rn_jit_grid_t;

// Chooses for |sizes| on a card with |multiprocessors|. |inputs| are as many as the program's;
// |outputs| are the outputs' addresses. An output may be a LINEAR input with elements of the same
// size if its value needs the last pass (programs without reductions: always).
// UNIMPLEMENTED for a program that must be cut into several: with more than one pass, or outputs of
// the full space after the reduction, if inner is not 1. INVALID_ARGUMENT for sizes that contradict
// each other.
RN_MUST_USE rn_status_t rn_jit_grid(const rn_jit_program_t* program, const rn_jit_sizes_t* sizes,
                                    const rn_jit_operand_t* inputs, const uint64_t* outputs,
                                    int multiprocessors, rn_jit_grid_t* out);

// Bytes of arguments that a launch takes at most: what CUDA before 12.1 passes to a kernel.
#define RN_JIT_MAX_ARGS 4096

// The argument struct of a program and variant. Its fields, in this order, without those of length
// 0: void* data[] (inputs, outputs, workspace); u64 host[] (two per HOST input); i64 size[]; then,
// i32 or, if wide, i64: stride[] (rank per STRIDED input); rn_div32 or i64: by[] (if there are
// STRIDED inputs the last rank - 1 dimensions, then one per ROW or COLUMN input).
typedef struct rn_jit_layout_t {
  int data, host, size, stride, by;  // lengths
  int first_period;                  // in |by|
  size_t bytes;
} rn_jit_layout_t;
void rn_jit_layout(const rn_jit_program_t* program, const rn_jit_variant_t* variant,
                   rn_jit_layout_t* out);

// What size[] holds.
enum {
  RN_JIT_SIZE_COUNT,
  RN_JIT_SIZE_OUTER,
  RN_JIT_SIZE_REDUCED,
  RN_JIT_SIZE_INNER,
  RN_JIT_SIZE_CHUNK,
  RN_JIT_SIZE_CHUNKS,
  RN_JIT_SIZE_PLACES,  // where in the workspace each reduction's sums begin, in bytes
};

// Writes the arguments of both kernels to |out| (RN_JIT_MAX_ARGS bytes, 8-byte aligned) and returns
// their size. |grid| was chosen for the same sizes and operands.
size_t rn_jit_args_fill(const rn_jit_program_t* program, const rn_jit_grid_t* grid,
                        const rn_jit_sizes_t* sizes, const rn_jit_operand_t* inputs,
                        const uint64_t* outputs, uint64_t workspace, void* out);

// Shared memory for one reduction of ROWS_BY_BLOCKS: a sum of up to 32 bytes per warp.
#define RN_JIT_SLOT 1024

// Bytes that a reduction's sum takes in shared memory and in the workspace.
size_t rn_jit_sum_size(rn_jit_reduction_t kind, rn_dtype_t dtype);

#endif  // RUNNEL_KERNELS_CUDA_JIT_SCHEDULE_H_
