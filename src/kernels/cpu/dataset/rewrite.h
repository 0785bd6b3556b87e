// Rewrites of pipelines, as options of the dataset request them.
//
// Options come from the OptionsDatasets of a pipeline; outer ones win. A rewrite changes how
// elements are computed, never which they are. Nothing is rewritten unless an option asks for it.
#ifndef RUNNEL_KERNELS_CPU_DATASET_REWRITE_H_
#define RUNNEL_KERNELS_CPU_DATASET_REWRITE_H_

#include "kernels/cpu/dataset/data.h"

// |dataset| as its options want it; itself if they want nothing. The caller owns a reference.
RN_MUST_USE rn_status_t rn_data_rewrite(rn_dataset_t* dataset, rn_dataset_t** out);
// The options of |dataset| and of all that it reads, as a serialized tensorflow.data.Options.
RN_MUST_USE rn_status_t rn_data_options_of(rn_dataset_t* dataset, rn_strbuf_t* out);

// A pass gets a dataset whose inputs have been rewritten, and returns what replaces it, or NULL.
typedef rn_status_t (*rn_data_pass_t)(rn_dataset_t* dataset, rn_dataset_t** out);

// Passes of fuse.c, which join two functions into one. Functions with captured inputs are left
// alone.
RN_MUST_USE rn_status_t rn_data_fuse_maps(rn_dataset_t* dataset, rn_dataset_t** out);
RN_MUST_USE rn_status_t rn_data_fuse_filters(rn_dataset_t* dataset, rn_dataset_t** out);
RN_MUST_USE rn_status_t rn_data_fuse_map_and_filter(rn_dataset_t* dataset, rn_dataset_t** out);

// What the function in attribute |attr| of |dataset| does, seen from its definition.
typedef struct rn_data_body_t {
  bool is_stateful;  // has nodes with side effects or state, other than assertions
  bool is_identity;  // returns its arguments
} rn_data_body_t;
RN_MUST_USE rn_status_t rn_data_body_of(const rn_dataset_t* dataset, const char* attr,
                                        rn_data_body_t* out);

// Whether |dataset| is of one of the ops, which NULL ends.
bool rn_data_is_a(const rn_dataset_t* dataset, const char* const* ops);

#endif  // RUNNEL_KERNELS_CPU_DATASET_REWRITE_H_
