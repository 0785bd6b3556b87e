// Lists of tensors: values of variant tensors, which ops take and give.
//
// A list looks immutable from outside: an op that changes one gives a new list. It is the same
// object, changed in place, where nobody else holds it, so that a loop pushes in constant time;
// otherwise it is a copy that shares the elements' bytes.
#ifndef RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_
#define RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_

#include "kernels/cpu/array.h"

typedef struct rn_tensor_list_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_dtype_t dtype;
  int64_t limit;             // most elements; < 0: any number
  rn_shape_t element_shape;  // dims are owned
  rn_tensor_t* items;        // Owned; one that is not set was never written
  int64_t count, capacity;
  int64_t set_begin, set_end;  // all items that are set lie in [set_begin, set_end)
} rn_tensor_list_t;

// A list of |count| elements that are not set. |element_shape| is copied.
RN_MUST_USE rn_status_t rn_tensor_list_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                              rn_shape_t element_shape, int64_t limit,
                                              int64_t count, rn_tensor_list_t** out);
void rn_tensor_list_release(rn_tensor_list_t* list);  // NULL is fine
// Another list of the same elements.
RN_MUST_USE rn_status_t rn_tensor_list_copy(const rn_tensor_list_t* list, rn_tensor_list_t** out);
// The first |count| elements; those beyond the old end are not set.
RN_MUST_USE rn_status_t rn_tensor_list_resize(rn_tensor_list_t* list, int64_t count);
// Element |i|, which exists, becomes |value|, which is moved and has a buffer.
void rn_tensor_list_set(rn_tensor_list_t* list, int64_t i, rn_tensor_t* value);

static inline bool rn_tensor_list_has(const rn_tensor_list_t* list, int64_t i) {
  return rn_tensor_is_set(&list->items[i]);
}

// Element |i| of the variant tensor |handles| as a list, borrowed; NULL if it is something else.
rn_tensor_list_t* rn_tensor_list_at(const rn_tensor_t* handles, int64_t i);
// The list that the scalar input |i| is; borrowed.
RN_MUST_USE rn_status_t rn_tensor_list_in(const rn_kernel_ctx_t* ctx, int i,
                                          rn_tensor_list_t** out);
// Output |o| is what input |i| was, and may be changed: the same list if nobody else has it, else a
// copy. |*out| is borrowed from the output.
RN_MUST_USE rn_status_t rn_tensor_list_to_change(rn_kernel_ctx_t* ctx, int i, int o,
                                                 rn_tensor_list_t** out);
// Output |o| is |list|, whose reference it takes, also when it fails.
RN_MUST_USE rn_status_t rn_tensor_list_output(rn_kernel_ctx_t* ctx, int o, rn_tensor_list_t* list);

// A shape that grows more definite. |shape.dims| are |dims|.
typedef struct rn_partial_shape_t {
  rn_shape_t shape;
  int64_t dims[RN_MAX_RANK];
} rn_partial_shape_t;

void rn_partial_shape_set(rn_partial_shape_t* partial, rn_shape_t shape);
// What both say; INVALID_ARGUMENT if they contradict each other.
RN_MUST_USE rn_status_t rn_partial_shape_merge(rn_partial_shape_t* partial, rn_shape_t shape);
// From a vector of sizes, -1 where not known, or the scalar -1 for a shape not known at all.
RN_MUST_USE rn_status_t rn_partial_shape_read(const rn_tensor_t* sizes, rn_partial_shape_t* out);
// As text; "<unknown>" if not even the rank is known.
rn_shape_text_t rn_partial_text(rn_shape_t shape);

// What input |i|, a shape, and the list say of an element's shape.
RN_MUST_USE rn_status_t rn_tensor_list_shape_in(const rn_kernel_ctx_t* ctx, int i,
                                                const rn_tensor_list_t* list,
                                                rn_partial_shape_t* out);
// Whether the elements have the type of output |o|.
RN_MUST_USE rn_status_t rn_tensor_list_check_read(const rn_kernel_ctx_t* ctx,
                                                  const rn_tensor_list_t* list, int o);
// The elements' shape as both say it.
RN_MUST_USE rn_status_t rn_tensor_list_refine(rn_tensor_list_t* list, rn_shape_t element_shape);

#endif  // RUNNEL_KERNELS_CPU_LIST_TENSOR_LIST_H_
