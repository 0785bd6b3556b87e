// Iterators as resources: what handles stand for.
//
// A resource has a walk once an iterator was made over a dataset, and gets another one when that
// happens again; what is under way on the old one still ends there. Several kernels may ask one
// walk: they stand in line.
#ifndef RUNNEL_KERNELS_CPU_DATASET_WALK_H_
#define RUNNEL_KERNELS_CPU_DATASET_WALK_H_

#include "kernels/cpu/dataset/data.h"

#define RN_DATA_ITERATOR_TYPE "tensorflow::data::IteratorResource"
#define RN_DATA_MULTI_TYPE "tensorflow::data::MultiDeviceIterator"

typedef struct rn_data_walk_t rn_data_walk_t;

typedef struct rn_data_root_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_arena_t arena;         // what elements are to be
  int32_t component_count;  // 0: anything
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  rn_mutex_t mutex;      // guards |walk|
  rn_data_walk_t* walk;  // Retained; NULL: not made yet
} rn_data_root_t;

// |types| and |shapes| are copied; count 0: any elements will do.
RN_MUST_USE rn_status_t rn_data_root_create(rn_allocator_t allocator, int32_t count,
                                            const rn_dtype_t* types, const rn_shape_t* shapes,
                                            rn_data_root_t** out);
// Begins a walk over |dataset|. INVALID_ARGUMENT, with stock's words, if its elements are others.
RN_MUST_USE rn_status_t rn_data_root_make(rn_data_root_t* root, rn_dataset_t* dataset,
                                          int32_t depth);
// The same over the dataset of the walk that there is, from a saved state on.
RN_MUST_USE rn_status_t rn_data_root_restore(rn_data_root_t* root, rn_str_t state, int32_t depth);
// Whether |types| and |shapes| are those of |root|: "Number of components does not match ...".
RN_MUST_USE rn_status_t rn_data_check_types(int32_t expected_count, const rn_dtype_t* expected,
                                            int32_t count, const rn_dtype_t* types);
RN_MUST_USE rn_status_t rn_data_check_shapes(int32_t expected_count, const rn_shape_t* expected,
                                             int32_t count, const rn_shape_t* shapes);

typedef enum rn_data_verb_t {
  RN_DATA_NEXT,      // outputs are the components
  RN_DATA_OPTIONAL,  // output 0 is an optional of them
  RN_DATA_SAVE,      // output 0 is the state
} rn_data_verb_t;
// Ends |ctx|, now or later, when its turn has come. The state of kernels that ask for elements is
// an rn_data_expected_t.
void rn_data_root_serve(rn_data_root_t* root, rn_kernel_ctx_t* ctx, rn_data_verb_t verb);

// An optional of |count| components, which are moved; count < 0: of nothing.
RN_MUST_USE rn_status_t rn_data_optional_create(rn_allocator_t memory, rn_tensor_t* values,
                                                int32_t count, rn_tensor_t* out);
// A state of an iterator, copied, as a vector of one variant; and what is in one.
RN_MUST_USE rn_status_t rn_data_state_create(rn_allocator_t memory, rn_str_t bytes,
                                             rn_tensor_t* out);
RN_MUST_USE rn_status_t rn_data_state_of(const rn_tensor_t* tensor, rn_str_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_WALK_H_
