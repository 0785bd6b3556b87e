// Statistics of input pipelines: histograms by tag.
#ifndef RUNNEL_KERNELS_CPU_DATASET_STATS_H_
#define RUNNEL_KERNELS_CPU_DATASET_STATS_H_

#include "kernels/cpu/dataset/data.h"

#define RN_DATA_STATS_TYPE "tensorflow::data::StatsAggregatorResource"

// An aggregator, which several pipelines may use.
typedef struct rn_data_stats_t rn_data_stats_t;

RN_MUST_USE rn_status_t rn_data_stats_create(rn_allocator_t allocator, rn_data_stats_t** out);
rn_resource_t* rn_data_stats_resource(rn_data_stats_t* stats);

// What a part of a pipeline records to, in rn_data_run_t: an aggregator and a prefix of tags.
RN_MUST_USE rn_status_t rn_data_stats_scope(rn_data_stats_t* stats, rn_str_t prefix,
                                            rn_object_t** out);
// Counts |value| in the histogram "prefix::tag" of |scope|. Any thread.
RN_MUST_USE rn_status_t rn_data_stats_add(rn_object_t* scope, rn_str_t tag, double value);
// Appends all histograms, sorted by tag, as a Summary message.
RN_MUST_USE rn_status_t rn_data_stats_summary(rn_data_stats_t* stats, rn_strbuf_t* out);

#endif  // RUNNEL_KERNELS_CPU_DATASET_STATS_H_
