// Convolutions compiled by oneDNN, one per shape, cached by a kernel. Private to conv_plan.c and
// conv_float.c.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_

#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/nn/conv.h"

// Maximum number of layouts of one filter that a call may use and the cache keeps; pieces of
// different sizes may need different ones.
#define RN_CONV_MOST_LAYOUTS 4

// A convolution compiled for one shape.
typedef struct rn_conv_plan_t {
  rn_conv_t conv;  // batch: images per piece
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;  // NULL if oneDNN has no implementation but the reference
  const char* name;            // of oneDNN's implementation; NULL if there is none
  bool is_own;                 // the filter has the layout that oneDNN prefers
  dnnl_primitive_t reorder;    // from the original filter layout; NULL if it is the same
  dnnl_memory_desc_t x, w, y, scratch, plain_w;
  dnnl_memory_desc_t operands[RN_CONV_MOST_STEPS];
  size_t w_bytes, scratch_bytes;
  // The rest is guarded by the cache's mutex.
  struct conv_plan_slot_t* slots;  // free list
  int32_t users;                   // active calls
  uint64_t last_used;              // by the engine's call counter
  struct rn_conv_plan_t* next;
} rn_conv_plan_t;

// A step in rn_conv_t.then: the code, and how its operand broadcasts to y.
enum { RN_CONV_ONE = 1, RN_CONV_CHANNEL = 2, RN_CONV_FULL = 3 };
static inline int rn_conv_step_code(const rn_conv_t* conv, int i) {
  return (int)(conv->then >> (8 * i)) & 0x0f;
}
static inline int rn_conv_step_form(const rn_conv_t* conv, int i) {
  return (int)(conv->then >> (8 * i + 4)) & 3;
}

// The plan for |conv|, created if needed; it stays valid until rn_conv_plan_put. The filter has
// |w_layout|, or the layout that oneDNN prefers for this shape if that is NULL. The plan's
// primitive is NULL if oneDNN cannot run it, or only with its reference loops, which are a thousand
// times slower than ours.
RN_MUST_USE rn_status_t rn_conv_plan_get(rn_conv_cache_t* cache, const rn_dnnl_t* dnnl,
                                         const rn_conv_t* conv, const dnnl_memory_desc_t* w_layout,
                                         rn_conv_plan_t** out);
void rn_conv_plan_put(rn_conv_cache_t* cache, rn_conv_plan_t* plan);  // NULL is fine

// Runs the plan on the calling thread. |operands| are those of the steps, NULL where there is none.
RN_MUST_USE rn_status_t rn_conv_plan_run(rn_conv_cache_t* cache, rn_conv_plan_t* plan,
                                         rn_conv_data_t data, void* const* operands, void* scratch);
// Converts a filter between its original layout and the plan's.
RN_MUST_USE rn_status_t rn_conv_reorder(rn_conv_cache_t* cache, rn_conv_plan_t* plan, void* from,
                                        void* to);
// The filter in the layout of |plan|: cached from an earlier call if filter and layout are the
// same, otherwise converted now and cached. The caller clears |*out|.
RN_MUST_USE rn_status_t rn_conv_kept_blocks(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                            rn_conv_plan_t* plan, const rn_tensor_t* filter,
                                            rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_PLAN_H_
