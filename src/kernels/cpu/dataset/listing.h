// What a pipeline consists of. A dataset that several others read is met once, not once per way to
// it: there are 2^n ways to the source of n zips of a dataset with itself.
#ifndef RUNNEL_KERNELS_CPU_DATASET_LISTING_H_
#define RUNNEL_KERNELS_CPU_DATASET_LISTING_H_

#include "base/vec.h"
#include "kernels/cpu/dataset/data.h"

typedef RN_VEC(rn_dataset_t*) rn_data_list_t;  // Borrowed datasets

// |dataset| and all that it reads, each before its inputs, of which the last comes first. So if the
// walk without this rule met a dataset several times, it counts where that met it last, seen from
// the end of the list. The caller frees the list, also on failure.
RN_MUST_USE rn_status_t rn_data_list(rn_dataset_t* dataset, rn_data_list_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_LISTING_H_
