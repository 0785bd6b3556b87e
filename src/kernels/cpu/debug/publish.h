// Tensors that the debugger's ops publish: files in the folders that the attribute debug_urls
// names.
#ifndef RUNNEL_KERNELS_CPU_DEBUG_PUBLISH_H_
#define RUNNEL_KERNELS_CPU_DEBUG_PUBLISH_H_

#include "base/arena.h"
#include "framework/kernel.h"

// What the attributes of such an op say; everything is in the arena.
typedef struct rn_publish_t {
  rn_arena_t arena;
  rn_str_t device, node;  // of the tensor
  int64_t slot;           // which output of |node| it is
  int32_t url_count;
  const rn_str_t* urls;
  // Of DebugIdentityV3: the node that the tensor is an input or output of; empty if not given.
  rn_str_t io_node;
  bool is_input;
  int64_t io_index;
  bool is_gated;  // the op gives nothing until a debugger asks for it by gRPC, which none does
} rn_publish_t;

RN_MUST_USE rn_status_t rn_publish_init(const rn_kernel_init_t* init, rn_publish_t* out);
void rn_publish_destroy(rn_publish_t* publish);

// Writes |tensor| to every folder, as stock's event in a file of its own. INTERNAL for a URL that
// does not begin with "file://", in stock's words; UNIMPLEMENTED for "grpc://".
RN_MUST_USE rn_status_t rn_publish(const rn_publish_t* publish, const rn_kernel_ctx_t* ctx,
                                   const rn_tensor_t* tensor);

#endif  // RUNNEL_KERNELS_CPU_DEBUG_PUBLISH_H_
