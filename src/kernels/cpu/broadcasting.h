// Broadcasting: NumPy's rules, and the walk over operands of different shapes.
//
// What is computed element by element says only what to do with a run of elements; the shapes, the
// output, the threads and the order of the walk are here. A run is a piece of each operand that is
// an array (step 1) or one number for all (step 0).
#ifndef RUNNEL_KERNELS_CPU_BROADCASTING_H_
#define RUNNEL_KERNELS_CPU_BROADCASTING_H_

#include "framework/kernel.h"

#define RN_BROADCAST_OPERANDS 3

// How operands go together. Neighbouring dimensions in which all operands behave alike are merged,
// dimensions of 1 are left out: |rank| is small however many dimensions there were.
typedef struct rn_broadcast_t {
  int32_t operands;
  int32_t rank;         // >= 1 unless the result is one element or empty
  int32_t shape_rank;   // the result's own
  int64_t count;        // elements of the result; INT64_MAX when that is too small a number for it
  uint32_t contiguous;  // bit k: operand k has the elements of the result, one for one
  int64_t dims[RN_MAX_RANK];                            // merged, outermost first
  int64_t strides[RN_BROADCAST_OPERANDS][RN_MAX_RANK];  // in elements; 0: repeated
  int64_t shape_dims[RN_MAX_RANK];                      // of the result
} rn_broadcast_t;

// Fits |count| operands together. False if their shapes do not broadcast.
bool rn_broadcast_make(const rn_tensor_t* const* operands, int count, rn_broadcast_t* out);

static inline rn_shape_t rn_broadcast_shape(const rn_broadcast_t* broadcast) {
  return (rn_shape_t){broadcast->shape_rank, broadcast->shape_dims};
}

// Does |n| elements: in[k] with steps[k] into |out|, which may be one of the arrays. Called from
// several threads at once.
typedef void (*rn_run_fn_t)(void* arg, const void* const* in, const int* steps, void* out,
                            int64_t n);

// What a walk reads and writes. Sizes are of elements, in bytes.
typedef struct rn_broadcast_walk_t {
  const void* in[RN_BROADCAST_OPERANDS];
  size_t in_size[RN_BROADCAST_OPERANDS];
  void* out;
  size_t out_size;
  rn_run_fn_t fn;
  void* arg;
} rn_broadcast_walk_t;

// Walks over the result in pieces of |grain| elements. The pieces and runs depend on shapes only.
// Elements that are not plain bytes are never copied on the way.
void rn_broadcast_run(rn_pool_t* pool, int64_t grain, const rn_broadcast_t* broadcast,
                      const rn_broadcast_walk_t* run);

// The whole of a kernel that computes output 0 from its first |operands| inputs: makes the output
// (in the memory of an input in the set |in_place| where possible), and runs |fn|. INVALID_ARGUMENT
// if the shapes do not fit together.
RN_MUST_USE rn_status_t rn_broadcast_compute(rn_kernel_ctx_t* ctx, int operands, uint64_t in_place,
                                             int64_t grain, rn_run_fn_t fn, void* arg);

// The same for operands of equal shape, which the caller has checked; input 0 gives the shape.
RN_MUST_USE rn_status_t rn_elementwise_compute(rn_kernel_ctx_t* ctx, int operands,
                                               uint64_t in_place, int64_t grain, rn_run_fn_t fn,
                                               void* arg);

// Elements worth handing to another thread: of cheap operations, and of those that take ten times
// as long.
#define RN_GRAIN_CHEAP (64 * 1024)
#define RN_GRAIN_COSTLY (16 * 1024)

// "Incompatible shapes: [2,3] vs. [4]".
RN_MUST_USE rn_status_t rn_broadcast_error(const rn_tensor_t* a, const rn_tensor_t* b);
// What is said when input |i| is not shaped like input 0.
RN_MUST_USE rn_status_t rn_same_shape_error(const rn_kernel_ctx_t* ctx, int i);

#endif  // RUNNEL_KERNELS_CPU_BROADCASTING_H_
