// Arguments of cusparse.cu.
#ifndef RUNNEL_TESTS_GPU_CUSPARSE_CUSPARSE_ARGS_H_
#define RUNNEL_TESTS_GPU_CUSPARSE_CUSPARSE_ARGS_H_

typedef struct emulated_csr {
  i64 rows, columns, entries;
  i32 *pointers, *indices;
  void* values;
} emulated_csr;

typedef struct emulated_sparse_args {
  i32 type;  // cudaDataType
  emulated_csr a, b;
  const void* dense;  // NULL: |b| is the right operand
  void* out;          // of a dense product, with |n| columns
  i64 n;
  i32 *pointers, *indices;  // of a sparse product; |indices| is NULL to count its entries only
  void* values;
} emulated_sparse_args;

#endif  // RUNNEL_TESTS_GPU_CUSPARSE_CUSPARSE_ARGS_H_
