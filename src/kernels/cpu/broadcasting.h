// Broadcasting: NumPy's rules, and the loop over operands of different shapes.
//
// An elementwise kernel supplies only a function for one run of elements; this file handles shapes,
// output allocation, threads and iteration order. In a run, each operand is either an array (step
// 1) or one number for all elements (step 0).
#ifndef RUNNEL_KERNELS_CPU_BROADCASTING_H_
#define RUNNEL_KERNELS_CPU_BROADCASTING_H_

#include "framework/kernel.h"

#define RN_BROADCAST_OPERANDS 3

// How the operands of one op broadcast. Adjacent dimensions in which all operands behave alike are
// merged and dimensions of 1 are dropped, so |rank| is small even for tensors of high rank.
typedef struct rn_broadcast_t {
  int32_t operands;
  int32_t rank;               // >= 1 unless the result is one element or empty
  int32_t shape_rank;         // of the result's shape, before merging
  int64_t count;              // elements of the result; INT64_MAX if the product overflows
  uint32_t contiguous;        // bit k: operand k has exactly the elements of the result
  int64_t dims[RN_MAX_RANK];  // merged, outermost first
  int64_t strides[RN_BROADCAST_OPERANDS][RN_MAX_RANK];  // in elements; 0 where the operand repeats
  int64_t shape_dims[RN_MAX_RANK];                      // of the result
} rn_broadcast_t;

// Broadcasts |count| operands against each other. False if their shapes are incompatible.
bool rn_broadcast_make(const rn_tensor_t* const* operands, int count, rn_broadcast_t* out);

static inline rn_shape_t rn_broadcast_shape(const rn_broadcast_t* broadcast) {
  return (rn_shape_t){broadcast->shape_rank, broadcast->shape_dims};
}

// Computes |n| elements from in[k], with steps[k], into |out|, which may alias an operand. Called
// from several threads at once.
typedef void (*rn_run_fn_t)(void* arg, const void* const* in, const int* steps, void* out,
                            int64_t n);

// The buffers of a broadcast loop. Sizes are element sizes in bytes.
typedef struct rn_broadcast_walk_t {
  const void* in[RN_BROADCAST_OPERANDS];
  size_t in_size[RN_BROADCAST_OPERANDS];
  void* out;
  size_t out_size;
  rn_run_fn_t fn;
  void* arg;
} rn_broadcast_walk_t;

// Runs over the result in pieces of |grain| elements. Pieces and runs depend only on shapes.
// Elements that are not plain bytes are never copied into temporaries.
void rn_broadcast_run(rn_pool_t* pool, int64_t grain, const rn_broadcast_t* broadcast,
                      const rn_broadcast_walk_t* run);

// Implements a whole kernel that computes output 0 from its first |operands| inputs: allocates the
// output (in place of an input in the set |in_place| where possible) and runs |fn|.
// INVALID_ARGUMENT if the shapes are incompatible.
RN_MUST_USE rn_status_t rn_broadcast_compute(rn_kernel_ctx_t* ctx, int operands, uint64_t in_place,
                                             int64_t grain, rn_run_fn_t fn, void* arg);

// The same for operands of equal shape, which the caller has checked; input 0 gives the shape.
RN_MUST_USE rn_status_t rn_elementwise_compute(rn_kernel_ctx_t* ctx, int operands,
                                               uint64_t in_place, int64_t grain, rn_run_fn_t fn,
                                               void* arg);

// Smallest number of elements worth handing to another thread, for cheap operations and for those
// that take ten times as long.
#define RN_GRAIN_CHEAP (64 * 1024)
#define RN_GRAIN_COSTLY (16 * 1024)

// INVALID_ARGUMENT "Incompatible shapes: [2,3] vs. [4]".
RN_MUST_USE rn_status_t rn_broadcast_error(const rn_tensor_t* a, const rn_tensor_t* b);
// The error for an input |i| whose shape differs from that of input 0.
RN_MUST_USE rn_status_t rn_same_shape_error(const rn_kernel_ctx_t* ctx, int i);

#endif  // RUNNEL_KERNELS_CPU_BROADCASTING_H_
