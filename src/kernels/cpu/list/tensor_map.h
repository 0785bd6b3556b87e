// Tensor maps: values in variant tensors that map tensors to tensors.
//
// Like a list (tensor_list.h), a map is immutable to its users, and is changed in place when
// nothing else refers to it. Two keys are the same if their types, shapes and bytes are.
#ifndef RUNNEL_KERNELS_CPU_LIST_TENSOR_MAP_H_
#define RUNNEL_KERNELS_CPU_LIST_TENSOR_MAP_H_

#include "base/map.h"
#include "tensor/object.h"
#include "tensor/tensor.h"

typedef struct rn_tensor_map_entry_t {
  rn_tensor_t key, value;
  char* code;  // the key as a string; Owned
  size_t code_size;
} rn_tensor_map_entry_t;

typedef struct rn_tensor_map_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_map_t entries;  // by code; the values are rn_tensor_map_entry_t, Owned
} rn_tensor_map_t;

RN_MUST_USE rn_status_t rn_tensor_map_create(rn_allocator_t allocator, rn_tensor_map_t** out);
void rn_tensor_map_release(rn_tensor_map_t* map);  // NULL is fine
// Another map of the same keys and values.
RN_MUST_USE rn_status_t rn_tensor_map_copy(const rn_tensor_map_t* map, rn_tensor_map_t** out);
// |object| as a map; NULL if it is not one.
rn_tensor_map_t* rn_tensor_map_from(rn_object_t* object);

// |*out| is the entry of |key|, or NULL. INVALID_ARGUMENT if tensors of its type cannot be keys.
RN_MUST_USE rn_status_t rn_tensor_map_find(const rn_tensor_map_t* map, const rn_tensor_t* key,
                                           rn_tensor_map_entry_t** out);
// Gives |key|, which is shared, the value |*value|, which is moved, also on failure. Both have
// buffers.
RN_MUST_USE rn_status_t rn_tensor_map_put(rn_tensor_map_t* map, const rn_tensor_t* key,
                                          rn_tensor_t* value);
void rn_tensor_map_remove(rn_tensor_map_t* map, rn_tensor_map_entry_t* entry);
// The next entry, in no particular order; NULL after the last. |*inout_position| starts at 0.
rn_tensor_map_entry_t* rn_tensor_map_next(const rn_tensor_map_t* map, size_t* inout_position);

#endif  // RUNNEL_KERNELS_CPU_LIST_TENSOR_MAP_H_
