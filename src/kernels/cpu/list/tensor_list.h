// Tensor lists: values in variant tensors, which ops take and return.
//
// A list is immutable to its users: an op that changes one returns a new list. If nothing else
// refers to the list, that is the same object changed in place, so that pushing in a loop takes
// constant time; otherwise it is a copy that shares the elements' buffers.
#ifndef RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_
#define RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_

#include "device/device.h"
#include "kernels/cpu/array.h"

typedef struct rn_tensor_list_t rn_tensor_list_t;
struct rn_tensor_list_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_dtype_t dtype;
  int64_t limit;             // maximum number of elements; < 0 if unlimited
  rn_shape_t element_shape;  // dims are owned
  rn_tensor_t* items;        // Owned; unset if never written
  int64_t count, capacity;
  int64_t set_begin, set_end;  // all set items are in [set_begin, set_end)
  rn_device_t* device;         // in whose memory items of plain bytes are; NULL for the host's
  // The same list in another memory, made when a kernel there asks for it. Owned.
  _Atomic(rn_tensor_list_t*) elsewhere;
};

// A list of |count| unset elements, for values in host memory. Copies |element_shape|.
RN_MUST_USE rn_status_t rn_tensor_list_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                              rn_shape_t element_shape, int64_t limit,
                                              int64_t count, rn_tensor_list_t** out);
// The same for values of the kernel.
RN_MUST_USE rn_status_t rn_tensor_list_make(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                                            rn_shape_t element_shape, int64_t limit, int64_t count,
                                            rn_tensor_list_t** out);
void rn_tensor_list_release(rn_tensor_list_t* list);  // NULL is fine
// Another list of the same elements.
RN_MUST_USE rn_status_t rn_tensor_list_copy(const rn_tensor_list_t* list, rn_tensor_list_t** out);
// Keeps the first |count| elements; those beyond the old end are unset.
RN_MUST_USE rn_status_t rn_tensor_list_resize(rn_tensor_list_t* list, int64_t count);
// Sets element |i|, which exists, to |value|, which is moved and has a buffer.
void rn_tensor_list_set(rn_tensor_list_t* list, int64_t i, rn_tensor_t* value);

static inline bool rn_tensor_list_has(const rn_tensor_list_t* list, int64_t i) {
  return rn_tensor_is_set(&list->items[i]);
}

// Element |i| of the variant tensor |handles| as a list, borrowed; NULL if it is not one.
rn_tensor_list_t* rn_tensor_list_at(const rn_tensor_t* handles, int64_t i);
// The list with its items in the memory of |device|, or of the host if that is NULL: |list| itself
// or a copy that lives as long. Borrowed.
RN_MUST_USE rn_status_t rn_tensor_list_on(rn_tensor_list_t* list, rn_device_t* device,
                                          rn_tensor_list_t** out);
// The same with what its items hold, in lists of lists, for rn_variant_kind_t: |*out| is a new
// reference, or NULL if everything is in host memory.
RN_MUST_USE rn_status_t rn_tensor_list_to_host(rn_object_t* list, int depth, rn_object_t** out);
// The same where the kernel has its values.
RN_MUST_USE rn_status_t rn_tensor_list_here(const rn_kernel_ctx_t* ctx, rn_tensor_list_t* list,
                                            rn_tensor_list_t** out);
// To be called before |list|, which nothing else refers to, is changed.
void rn_tensor_list_forget_copies(rn_tensor_list_t* list);
// The list in the scalar input |i|, borrowed: as it came, and where the kernel has its values.
RN_MUST_USE rn_status_t rn_tensor_list_in(const rn_kernel_ctx_t* ctx, int i,
                                          rn_tensor_list_t** out);
RN_MUST_USE rn_status_t rn_tensor_list_items_in(const rn_kernel_ctx_t* ctx, int i,
                                                rn_tensor_list_t** out);
// |*list| came from one of these two for input |i|. Makes output |o| a list equal to it that may be
// changed: the same one if nothing else refers to it, otherwise a copy. |*list| is then borrowed
// from the output.
RN_MUST_USE rn_status_t rn_tensor_list_to_change(rn_kernel_ctx_t* ctx, int i, int o,
                                                 rn_tensor_list_t** list);
// Sets output |o| to |list|, taking its reference even on failure.
RN_MUST_USE rn_status_t rn_tensor_list_output(rn_kernel_ctx_t* ctx, int o, rn_tensor_list_t* list);

// A partially known shape that can be refined. |shape.dims| is |dims|.
typedef struct rn_partial_shape_t {
  rn_shape_t shape;
  int64_t dims[RN_MAX_RANK];
} rn_partial_shape_t;

void rn_partial_shape_set(rn_partial_shape_t* partial, rn_shape_t shape);
// Merges |shape| into |partial|; INVALID_ARGUMENT if they contradict each other.
RN_MUST_USE rn_status_t rn_partial_shape_merge(rn_partial_shape_t* partial, rn_shape_t shape);
// Reads a vector of sizes, -1 where unknown, or the scalar -1 for an unknown rank.
RN_MUST_USE rn_status_t rn_partial_shape_read(const rn_tensor_t* sizes, rn_partial_shape_t* out);
// The shape as a string; "<unknown>" if the rank is unknown.
rn_shape_text_t rn_partial_text(rn_shape_t shape);

// Merges what input |i|, a shape, and the list say about the element shape.
RN_MUST_USE rn_status_t rn_tensor_list_shape_in(const rn_kernel_ctx_t* ctx, int i,
                                                const rn_tensor_list_t* list,
                                                rn_partial_shape_t* out);
// Checks that the elements have the type of output |o|.
RN_MUST_USE rn_status_t rn_tensor_list_check_read(const rn_kernel_ctx_t* ctx,
                                                  const rn_tensor_list_t* list, int o);
// Merges |element_shape| into the list's element shape.
RN_MUST_USE rn_status_t rn_tensor_list_refine(rn_tensor_list_t* list, rn_shape_t element_shape);

#endif  // RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_
