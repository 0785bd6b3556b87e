// One call of a collective op: a member's part in an instance.
#ifndef RUNNEL_KERNELS_CPU_COLLECTIVE_MEMBER_H_
#define RUNNEL_KERNELS_CPU_COLLECTIVE_MEMBER_H_

#include "framework/collective.h"
#include "framework/kernel.h"

// What the attributes of an op say.
typedef struct rn_collective_attrs_t {
  rn_collective_t like;  // kind, merge_op, merge, divide, hint, dtype, subdivs, max_subdivs
  float timeout_seconds;
  rn_allocator_t allocator;
  char* hint;  // Owned
  size_t hint_size;
  int32_t* subdivs;  // Owned
  size_t subdiv_count;
  rn_shape_t shape;  // that the attribute declares
  int64_t dims[RN_MAX_RANK];
} rn_collective_attrs_t;

// Reads the attributes that the op has.
RN_MUST_USE rn_status_t rn_collective_attrs_init(const rn_kernel_init_t* init,
                                                 rn_collective_kind_t kind,
                                                 rn_collective_attrs_t* attrs);
void rn_collective_attrs_destroy(void* state);  // |state| begins with an rn_collective_attrs_t

// A call. Starts as a copy of |attrs->like|.
typedef struct rn_collective_call_t {
  rn_collective_t part;  // first
  rn_kernel_ctx_t* ctx;
  int64_t dims[RN_MAX_RANK];  // of the output
  void (*on_done)(struct rn_collective_call_t* call, rn_status_t status);
  void* data;  // of the op
} rn_collective_call_t;

// Makes a call of group, instance and input (NULL if there is none), with keys still to be set; the
// output has the shape of the input.
RN_MUST_USE rn_status_t rn_collective_call_create(rn_kernel_ctx_t* ctx,
                                                  const rn_collective_attrs_t* attrs,
                                                  const rn_tensor_t* input,
                                                  rn_collective_call_t** out);
// Gives the output its shape and starts the call, if |status| is fine; else ends the op.
void rn_collective_call_start(rn_collective_call_t* call, rn_status_t status);

// The int32 scalar in input |i|. INTERNAL, in stock's words, if it is none.
RN_MUST_USE rn_status_t rn_collective_key(const rn_kernel_ctx_t* ctx, int i, const char* name,
                                          int32_t* out);

#endif  // RUNNEL_KERNELS_CPU_COLLECTIVE_MEMBER_H_
