// Convolutions compiled by oneDNN for one shape each, kept by a kernel. Private to conv_plan.c and
// conv_float.c.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_

#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/nn/conv.h"

// Layouts of one filter that a call may use, and that are kept: pieces of different sizes may each
// have their own.
#define RN_CONV_MOST_LAYOUTS 4

// A convolution compiled for one shape.
typedef struct rn_conv_plan_t {
  rn_conv_t conv;  // batch: the images of a piece
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;  // NULL: oneDNN does not do it, or only by its reference loops
  const char* name;            // of oneDNN's implementation; NULL if there is none
  bool is_own;                 // the filter's layout is the one that oneDNN likes best
  dnnl_primitive_t reorder;    // between the filter's own layout and the blocks; NULL: the same
  dnnl_memory_desc_t x, w, y, scratch, plain_w;
  dnnl_memory_desc_t operands[RN_CONV_MOST_STEPS];
  size_t w_bytes, scratch_bytes;
  // The rest is guarded by the cache's mutex.
  struct slot_t* slots;  // free ones
  int32_t users;         // calls under way
  uint64_t last_used;    // by the engine's count of calls
  struct rn_conv_plan_t* next;
} rn_conv_plan_t;

// A step in rn_conv_t.then: the code, and how its operand lies over y.
enum { RN_CONV_ONE = 1, RN_CONV_CHANNEL = 2, RN_CONV_FULL = 3 };
static inline int rn_conv_step_code(const rn_conv_t* conv, int i) {
  return (int)(conv->then >> (8 * i)) & 0x0f;
}
static inline int rn_conv_step_form(const rn_conv_t* conv, int i) {
  return (int)(conv->then >> (8 * i + 4)) & 3;
}

// The plan for |conv|, made if there is none yet; it stays until rn_conv_plan_put. The filter is in
// |w_layout|, or in the layout that oneDNN likes best for this shape if that is NULL. The plan's
// primitive is NULL if oneDNN cannot do it, or only by its reference loops: those are there to be
// compared with, and a thousand times slower than ours.
RN_MUST_USE rn_status_t rn_conv_plan_get(rn_conv_cache_t* cache, const rn_dnnl_t* dnnl,
                                         const rn_conv_t* conv, const dnnl_memory_desc_t* w_layout,
                                         rn_conv_plan_t** out);
void rn_conv_plan_put(rn_conv_cache_t* cache, rn_conv_plan_t* plan);  // NULL is fine

// Runs the plan in this thread. |operands| are those of the steps, NULL where there is none.
RN_MUST_USE rn_status_t rn_conv_plan_run(rn_conv_cache_t* cache, rn_conv_plan_t* plan,
                                         rn_conv_data_t data, void* const* operands, void* scratch);
// Copies a filter between its own layout and the plan's.
RN_MUST_USE rn_status_t rn_conv_reorder(rn_conv_cache_t* cache, rn_conv_plan_t* plan, void* from,
                                        void* to);
// The filter in the blocks of |plan|: those kept from an earlier call if it is the same filter in
// the same layout, else made now and kept. The caller clears |*out|.
RN_MUST_USE rn_status_t rn_conv_kept_blocks(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                            rn_conv_plan_t* plan, const rn_tensor_t* filter,
                                            rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_
