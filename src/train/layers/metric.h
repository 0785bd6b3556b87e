// What metrics are made of.
#ifndef RUNNEL_TRAIN_LAYERS_METRIC_H_
#define RUNNEL_TRAIN_LAYERS_METRIC_H_

#include "train/layers/layer.h"

// A sum over batches: a local variable, initially zero.
const rn_var_t* rn_metric_sum(rn_scope_t* s, const char* name, const int64_t* dims, int rank);
// Adds |value| to |sum| and returns the value of |sum| afterwards.
rn_edge_t rn_metric_grow(rn_scope_t* s, const rn_var_t* sum, rn_edge_t value);
// Opens the scope of a metric of |a| and |b|; NULL after an error. Close it with rn_metric_end.
rn_scope_t* rn_metric_begin(rn_scope_t* scope, const rn_metric_options_t* options,
                            const char* fallback, rn_edge_t a, rn_edge_t b);
rn_metric_t rn_metric_end(rn_scope_t* s, rn_metric_t metric);
// Converts weights to floats with the shape of |like|.
rn_edge_t rn_metric_weights(rn_scope_t* s, rn_edge_t weights, rn_edge_t like);
// The weighted mean of |values| over all batches.
rn_metric_t rn_metric_mean_in(rn_scope_t* s, rn_edge_t values, rn_edge_t weights);

#define RN_METRIC_OF_TWO(name)                                                \
  RN_API rn_metric_t rn_metric_##name##_(rn_scope_t* scope, rn_edge_t labels, \
                                         rn_edge_t predictions, rn_metric_options_t options)

#endif  // RUNNEL_TRAIN_LAYERS_METRIC_H_
