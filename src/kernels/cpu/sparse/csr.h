// CSR matrices: one sparse matrix, or a batch of them, as the element of a scalar variant tensor.
//
// A matrix is immutable and shared. Entry k of row r of matrix b is at
// batch[b] + rows[b * (height + 1) + r] + k of |columns| and |values|. Entries of a row come in any
// order; if a column occurs twice, what reads the matrix as a dense one takes the last, and
// products take the sum.
#ifndef RUNNEL_KERNELS_CPU_SPARSE_CSR_H_
#define RUNNEL_KERNELS_CPU_SPARSE_CSR_H_

#include "framework/kernel.h"
#include "tensor/object.h"

typedef enum rn_csr_part_t {
  RN_CSR_SHAPE,    // int64: two sizes, or three with the batch
  RN_CSR_BATCH,    // int32: where the entries of each matrix begin, and the end
  RN_CSR_ROWS,     // int32: where the entries of each row begin in its matrix, and the end
  RN_CSR_COLUMNS,  // int32, one per entry
  RN_CSR_VALUES,
  RN_CSR_PARTS
} rn_csr_part_t;

typedef struct rn_csr_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_device_t* device;  // in whose memory the last three parts are; NULL: the host's
  _Atomic(struct rn_csr_t*) elsewhere;  // Owned; the same matrix in other memory, once used there
  rn_tensor_t starts;                   // the part |batch| in the device's memory, if it has one
  rn_dtype_t dtype;
  int rank;                        // 2, or 3 with the batch
  int64_t count, height, width;    // of matrices, rows and columns
  rn_tensor_t part[RN_CSR_PARTS];  // own their bytes
} rn_csr_t;

// One matrix of a batch; borrowed.
typedef struct rn_csr_matrix_t {
  int64_t height, width, entries;
  const int32_t *rows, *columns;
  const void* values;
} rn_csr_matrix_t;
rn_csr_matrix_t rn_csr_matrix(const rn_csr_t* csr, int64_t b);
void rn_csr_sort_columns(int32_t* columns, int64_t count);  // ascending
static inline int64_t rn_csr_entries(const rn_csr_t* csr) { return csr->part[RN_CSR_VALUES].count; }

// Makes a matrix of five tensors, which must own their bytes and are moved even on failure.
// INVALID_ARGUMENT unless they describe one.
RN_MUST_USE rn_status_t rn_csr_create(rn_allocator_t allocator, rn_tensor_t part[RN_CSR_PARTS],
                                      rn_csr_t** out);
// The same in the memory of |device|: rows, columns and values are there, and are not checked.
// |starts| is moved, too.
RN_MUST_USE rn_status_t rn_csr_create_on(rn_allocator_t allocator, rn_device_t* device,
                                         rn_tensor_t part[RN_CSR_PARTS], rn_tensor_t* starts,
                                         rn_csr_t** out);
// The matrix in the memory of |device|, or of the host if that is NULL: |csr| itself, or a copy
// that stays with it. Borrowed.
RN_MUST_USE rn_status_t rn_csr_on(rn_csr_t* csr, rn_device_t* device, rn_csr_t** out);
// The matrix in |object|; NULL if that is NULL or holds something else.
rn_csr_t* rn_csr_from(rn_object_t* object);

// |in|, or its transposes, conjugated if asked for; the caller releases them.
RN_MUST_USE rn_status_t rn_csr_oriented(rn_kernel_ctx_t* ctx, rn_csr_t* in, bool transposes,
                                        bool conjugates, rn_csr_t** out);

// INVALID_ARGUMENT if the types or shapes of two differ.
RN_MUST_USE rn_status_t rn_csr_check_same(const rn_csr_t* a, const rn_csr_t* b);
// The sum of two, in the host's memory; INVALID_ARGUMENT if their types or shapes differ.
RN_MUST_USE rn_status_t rn_csr_add(rn_kernel_ctx_t* ctx, rn_csr_t* a, rn_csr_t* b, rn_csr_t** out);
// Matrices without entries.
RN_MUST_USE rn_status_t rn_csr_zeros(rn_kernel_ctx_t* ctx, const rn_csr_t* like, rn_csr_t** out);

// The matrix in input |i|, in the host's memory, or in that of |device|. Borrowed;
// INVALID_ARGUMENT, with stock's messages.
RN_MUST_USE rn_status_t rn_csr_in(rn_kernel_ctx_t* ctx, int i, rn_csr_t** out);
RN_MUST_USE rn_status_t rn_csr_in_on(rn_kernel_ctx_t* ctx, int i, rn_device_t* device,
                                     rn_csr_t** out);
// Makes output |i| a variant that takes over the reference to |csr|.
RN_MUST_USE rn_status_t rn_csr_output(rn_kernel_ctx_t* ctx, int i, rn_csr_t* csr);

// Tensors for a new matrix: the parts, cleared by rn_csr_finish or rn_csr_parts_clear.
typedef struct rn_csr_parts_t {
  rn_tensor_t part[RN_CSR_PARTS];
} rn_csr_parts_t;
// Allocates shape, batch and rows of |count| matrices, with row pointers of 0, and columns and
// values for |entries| entries, unless that is negative. INVALID_ARGUMENT if there are too many for
// int32.
RN_MUST_USE rn_status_t rn_csr_parts_init(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int rank,
                                          const int64_t* shape, int64_t entries,
                                          rn_csr_parts_t* out);
RN_MUST_USE rn_status_t rn_csr_parts_set_entries(rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                                                 int64_t entries, rn_csr_parts_t* parts);
void rn_csr_parts_clear(rn_csr_parts_t* parts);
// Makes output 0 of the parts if |status| is OK; clears them in any case.
RN_MUST_USE rn_status_t rn_csr_finish(rn_kernel_ctx_t* ctx, rn_csr_parts_t* parts,
                                      rn_status_t status);

#endif  // RUNNEL_KERNELS_CPU_SPARSE_CSR_H_
