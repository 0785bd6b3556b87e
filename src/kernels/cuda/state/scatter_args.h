// Arguments of the kernels of scatter.cu.
#ifndef RUNNEL_KERNELS_CUDA_STATE_SCATTER_ARGS_H_
#define RUNNEL_KERNELS_CUDA_STATE_SCATTER_ARGS_H_

#include "kernels/cuda/state/rows_args.h"

// How updates are combined with rows. Assigning is a kernel of its own.
enum {
  RN_SCATTER_ADD,
  RN_SCATTER_SUB,
  RN_SCATTER_MUL,
  RN_SCATTER_DIV,
  RN_SCATTER_MIN,
  RN_SCATTER_MAX,
};

struct rn_scatter_args {
  void* into;
  const void* updates;
  i32 op;
  i32 is_scalar;  // one update serves all elements
  struct rn_rows_args rows;
};

#endif  // RUNNEL_KERNELS_CUDA_STATE_SCATTER_ARGS_H_
