// oneDNN, loaded when a kernel first needs it.
//
// The library is large and most programs use little of it, so it is opened with dlopen on first
// use. Its OpenMP threads stay unused: each call runs on the calling thread, our pool splits the
// work, and the caller's OpenMP settings are restored afterwards.
#ifndef RUNNEL_KERNELS_CPU_DNNL_H_
#define RUNNEL_KERNELS_CPU_DNNL_H_

#include <oneapi/dnnl/dnnl.h>

#include "base/status.h"

// X(function): the functions we call. Their prototypes come from oneDNN's header.
#define RN_DNNL_FUNCTIONS(X)                        \
  X(engine_create)                                  \
  X(engine_destroy)                                 \
  X(stream_create)                                  \
  X(stream_destroy)                                 \
  X(stream_wait)                                    \
  X(memory_desc_init_by_tag)                        \
  X(memory_desc_equal)                              \
  X(memory_desc_get_size)                           \
  X(memory_create)                                  \
  X(memory_destroy)                                 \
  X(memory_set_data_handle)                         \
  X(primitive_attr_create)                          \
  X(primitive_attr_destroy)                         \
  X(primitive_attr_set_scratchpad_mode)             \
  X(primitive_attr_set_post_ops)                    \
  X(post_ops_create)                                \
  X(post_ops_destroy)                               \
  X(post_ops_append_binary)                         \
  X(dilated_convolution_forward_desc_init)          \
  X(dilated_convolution_backward_data_desc_init)    \
  X(dilated_convolution_backward_weights_desc_init) \
  X(reorder_primitive_desc_create)                  \
  X(primitive_desc_create)                          \
  X(primitive_desc_destroy)                         \
  X(primitive_desc_query)                           \
  X(primitive_desc_query_md)                        \
  X(primitive_create)                               \
  X(primitive_destroy)                              \
  X(primitive_execute)

typedef struct rn_dnnl_t {
#define RN_DNNL_FIELD(name) __typeof__(&dnnl_##name) name;
  RN_DNNL_FUNCTIONS(RN_DNNL_FIELD)
#undef RN_DNNL_FIELD
  int (*omp_get_max_threads)(void);
  void (*omp_set_num_threads)(int);
} rn_dnnl_t;

// Returns the function table. UNIMPLEMENTED, naming the missing file, if the library cannot be
// loaded. Callable from any thread; the result never changes.
RN_MUST_USE rn_status_t rn_dnnl(const rn_dnnl_t** out);

// Bracket every call: set one OpenMP thread, then restore the program's setting.
static inline int rn_dnnl_enter(const rn_dnnl_t* dnnl) {
  int threads = dnnl->omp_get_max_threads();
  if (threads != 1) dnnl->omp_set_num_threads(1);
  return threads;
}
static inline void rn_dnnl_leave(const rn_dnnl_t* dnnl, int threads) {
  if (threads != 1) dnnl->omp_set_num_threads(threads);
}

#endif  // RUNNEL_KERNELS_CPU_DNNL_H_
