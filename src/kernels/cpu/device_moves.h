// Copies, fills and zeroes for kernels that only rearrange elements. Such a kernel's compute serves
// the CPU and every device whose vtable has |move| and |fill|: it works out what goes where from
// shapes and host arguments, and these functions do it, or issue it, where the elements are.
#ifndef RUNNEL_KERNELS_CPU_DEVICE_MOVES_H_
#define RUNNEL_KERNELS_CPU_DEVICE_MOVES_H_

#include "framework/kernel.h"
#include "kernels/cpu/move.h"

// Whether the kernel's elements of |dtype| are in host memory, where the caller may touch them.
bool rn_ctx_is_host(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype);

// The memory that the kernel's values of |dtype| are in.
rn_allocator_t rn_ctx_memory(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype);

// rn_move_run, rn_move_zero and a copy of all elements. |src|, |dst| and tensors are the kernel's.
RN_MUST_USE rn_status_t rn_ctx_move(rn_kernel_ctx_t* ctx, const rn_move_t* move, rn_dtype_t dtype,
                                    const void* src, void* dst);
RN_MUST_USE rn_status_t rn_ctx_zero(rn_kernel_ctx_t* ctx, rn_tensor_t* tensor);
RN_MUST_USE rn_status_t rn_ctx_copy(rn_kernel_ctx_t* ctx, const rn_tensor_t* from, rn_tensor_t* to);
// Fills |tensor| with the first element of input |i|, which may be a host argument.
RN_MUST_USE rn_status_t rn_ctx_fill(rn_kernel_ctx_t* ctx, int i, rn_tensor_t* tensor);

// Fills |tensor| with the element at |value|, in host memory.
RN_MUST_USE rn_status_t rn_ctx_fill_value(rn_kernel_ctx_t* ctx, const void* value,
                                          rn_tensor_t* tensor);

// Adds |value|, of a type with numbers, to |sum|, of the same shape.
RN_MUST_USE rn_status_t rn_ctx_add(rn_kernel_ctx_t* ctx, const rn_tensor_t* value,
                                   rn_tensor_t* sum);
// |sum| = |a| + |b| in host memory, whatever the kernel's device is. |sum| may be |a|.
void rn_host_add(const rn_tensor_t* a, const rn_tensor_t* b, rn_tensor_t* sum);
// A copy of |tensor| in a buffer of its own; and rn_tensor_keep, for a kernel that stores an input.
RN_MUST_USE rn_status_t rn_ctx_duplicate(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor,
                                         rn_tensor_t* out);
RN_MUST_USE rn_status_t rn_ctx_keep(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor,
                                    rn_tensor_t* out);

// Several boxes, in any order: a device copies many of them with one launch. Boxes of more
// dimensions than RN_MOVES_RANK are issued one by one.
#define RN_MOVES_RANK 4
#define RN_MOVES_COUNT 24

typedef struct rn_moves_t {
  rn_kernel_ctx_t* ctx;
  rn_dtype_t dtype;
  int count;
  rn_box_t boxes[RN_MOVES_COUNT];
  rn_move_dim_t dims[RN_MOVES_COUNT][RN_MOVES_RANK];
} rn_moves_t;

void rn_moves_begin(rn_moves_t* moves, rn_kernel_ctx_t* ctx, rn_dtype_t dtype);
RN_MUST_USE rn_status_t rn_moves_add(rn_moves_t* moves, const rn_move_t* move, const void* src,
                                     void* dst);
// Copies |count| consecutive elements.
RN_MUST_USE rn_status_t rn_moves_add_row(rn_moves_t* moves, const void* src, void* dst,
                                         int64_t count);
RN_MUST_USE rn_status_t rn_moves_end(rn_moves_t* moves);

#endif  // RUNNEL_KERNELS_CPU_DEVICE_MOVES_H_
