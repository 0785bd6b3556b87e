// How a matrix product is divided into pieces of work, one thread each. Private to gemm.c.
#ifndef RUNNEL_KERNELS_CPU_GEMM_GRID_H_
#define RUNNEL_KERNELS_CPU_GEMM_GRID_H_

#include "kernels/cpu/isa/gemm.h"

// C divided into blocks. Each block is one piece of work, except that the last may be several.
typedef struct rn_gemm_grid_t {
  int64_t rows, columns;     // of a block
  int64_t across, whole;     // blocks side by side, and blocks that are one piece each
  int64_t parts, part_rows;  // pieces per remaining block, and rows per piece
  int64_t pieces;
  bool shares_panels;  // B should be packed once, before all pieces
} rn_gemm_grid_t;

// Divides |part|, elements of |item| bytes. A piece begins at a multiple of |strip| columns if B is
// packed already, or is to be shared. Bits do not depend on this.
rn_gemm_grid_t rn_gemm_divide(const rn_gemm_part_t* part, size_t item, int64_t strip, int threads);

#endif  // RUNNEL_KERNELS_CPU_GEMM_GRID_H_
