// Iterator resources, which handles refer to.
//
// A resource has a walk once an iterator was made over a dataset, and a new one whenever that
// happens again; requests on the old one still complete there. If several kernels use one walk they
// queue up.
#ifndef RUNNEL_KERNELS_CPU_DATASET_WALK_H_
#define RUNNEL_KERNELS_CPU_DATASET_WALK_H_

#include "kernels/cpu/dataset/data.h"

#define RN_DATA_ITERATOR_TYPE "tensorflow::data::IteratorResource"
#define RN_DATA_MULTI_TYPE "tensorflow::data::MultiDeviceIterator"

typedef struct rn_data_walk_t rn_data_walk_t;

typedef struct rn_data_root_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_arena_t arena;         // holds the expected types and shapes
  int32_t component_count;  // 0 if anything is accepted
  const rn_dtype_t* types;
  const rn_shape_t* shapes;
  rn_mutex_t mutex;      // guards |walk|
  rn_data_walk_t* walk;  // Retained; NULL until made
} rn_data_root_t;

// Copies |types| and |shapes|; count 0 accepts any elements.
RN_MUST_USE rn_status_t rn_data_root_create(rn_allocator_t allocator, int32_t count,
                                            const rn_dtype_t* types, const rn_shape_t* shapes,
                                            rn_data_root_t** out);
// Starts a walk over |dataset|. INVALID_ARGUMENT, with stock's message, if its elements do not
// match.
RN_MUST_USE rn_status_t rn_data_root_make(rn_data_root_t* root, rn_dataset_t* dataset,
                                          int32_t depth);
// The dataset of the current walk, which the caller releases; NULL if there is none.
rn_dataset_t* rn_data_root_dataset(rn_data_root_t* root);
// Restarts over the dataset of the current walk, from a saved state.
RN_MUST_USE rn_status_t rn_data_root_restore(rn_data_root_t* root, rn_str_t state, int32_t depth);
// INVALID_ARGUMENT "Number of components does not match ..." unless |types| and |shapes| match.
RN_MUST_USE rn_status_t rn_data_check_types(int32_t expected_count, const rn_dtype_t* expected,
                                            int32_t count, const rn_dtype_t* types);
RN_MUST_USE rn_status_t rn_data_check_shapes(int32_t expected_count, const rn_shape_t* expected,
                                             int32_t count, const rn_shape_t* shapes);

typedef enum rn_data_verb_t {
  RN_DATA_NEXT,      // outputs the components
  RN_DATA_OPTIONAL,  // output 0 is an optional
  RN_DATA_SAVE,      // output 0 is the state
} rn_data_verb_t;
// Serves |ctx| when its turn comes, and ends it now or later. The state of kernels that request
// elements is an rn_data_expected_t.
void rn_data_root_serve(rn_data_root_t* root, rn_kernel_ctx_t* ctx, rn_data_verb_t verb);

// Outputs |handle|, whose reference it takes, and an empty deleter if the op has one.
RN_MUST_USE rn_status_t rn_data_give_handle(rn_kernel_ctx_t* ctx, rn_handle_t* handle);
// An optional of |count| components, which are moved; an empty one if count < 0.
RN_MUST_USE rn_status_t rn_data_optional_create(rn_allocator_t memory, rn_tensor_t* values,
                                                int32_t count, rn_tensor_t* out);
// Wraps a copy of an iterator's state in a vector of one variant, and reads it back.
RN_MUST_USE rn_status_t rn_data_state_create(rn_allocator_t memory, rn_str_t bytes,
                                             rn_tensor_t* out);
RN_MUST_USE rn_status_t rn_data_state_of(const rn_tensor_t* tensor, rn_str_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_WALK_H_
