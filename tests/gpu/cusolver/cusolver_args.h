// Arguments of cusolver.cu.
#ifndef RUNNEL_TESTS_GPU_CUSOLVER_CUSOLVER_ARGS_H_
#define RUNNEL_TESTS_GPU_CUSOLVER_CUSOLVER_ARGS_H_

enum {
  EMULATED_POTRF,
  EMULATED_GETRF,
  EMULATED_GEQRF,
  EMULATED_ORGQR,
  EMULATED_SYEVD,
  EMULATED_GESVD
};

typedef struct emulated_solver_args {
  i32 op, type;  // cudaDataType
  i64 m, n, k;
  void* a;  // by columns, m elements apart
  void* b;  // tau, values
  i64* pivots;
  void *u, *v;
  i64 u_columns;
  i32 wants_vectors;
  i32* info;
} emulated_solver_args;

#endif  // RUNNEL_TESTS_GPU_CUSOLVER_CUSOLVER_ARGS_H_
