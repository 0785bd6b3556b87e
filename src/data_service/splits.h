// Splits: what dynamic sharding hands out. A dataset has one source of splits per dataset op at the
// beginning of its pipeline; a split is the number of an element of that source, or the element
// itself of a range.
#ifndef RUNNEL_DATA_SERVICE_SPLITS_H_
#define RUNNEL_DATA_SERVICE_SPLITS_H_

#include "base/env.h"
#include "framework/cancel.h"

typedef struct rn_ds_splits_t rn_ds_splits_t;

// Finds the sources of the dataset that |graph|, a GraphDef, makes; runs ops of it, for which
// |cancel| is. UNIMPLEMENTED if one of them cannot be split.
RN_MUST_USE rn_status_t rn_ds_splits_create(const rn_env_t* env, rn_allocator_t allocator,
                                            rn_str_t graph, rn_cancel_t* cancel,
                                            rn_ds_splits_t** out);
void rn_ds_splits_destroy(rn_ds_splits_t* splits);  // NULL is fine
int64_t rn_ds_splits_count(const rn_ds_splits_t* splits);
// The split |index| of |source|; false after the last one.
bool rn_ds_splits_get(const rn_ds_splits_t* splits, int64_t source, int64_t index, int64_t* out);

#endif  // RUNNEL_DATA_SERVICE_SPLITS_H_
