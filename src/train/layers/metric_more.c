// Metrics of directions, of shares and of classes.
#include "train/layers/metric.h"

RN_API rn_metric_t rn_metric_percentage_below_(rn_scope_t* scope, rn_edge_t values, float threshold,
                                               rn_metric_options_t options) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "percentage_below_threshold", values, values);
  if (!s) return (rn_metric_t){0};
  rn_edge_t is_below = rn_Less(s, rn_as(s, values, RN_FLOAT), rn_const_float(s, threshold));
  return rn_metric_end(s, rn_metric_mean_in(s, is_below, options.weights));
}

// |labels - predictions| / normalizer; 0 where the normalizer is 0.
RN_METRIC_OF_TWO(mean_relative_error) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_relative_error", labels, predictions);
  if (!s || !rn_is_edge(s, options.normalizer, "mean_relative_error", "the normalizer"))
    return rn_metric_end(s, (rn_metric_t){0});
  rn_edge_t error = rn_Abs(s, rn_Sub(s, rn_as(s, labels, rn_edge_dtype(predictions)), predictions));
  rn_edge_t relative = rn_DivNoNan(s, error, rn_as(s, options.normalizer, rn_edge_dtype(error)));
  return rn_metric_end(s, rn_metric_mean_in(s, relative, options.weights));
}

// 1 - the sum of products along an axis; both inputs are unit vectors.
RN_METRIC_OF_TWO(mean_cosine_distance) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_cosine_distance", labels, predictions);
  if (!s) return (rn_metric_t){0};
  rn_edge_t product = rn_Mul(s, rn_as(s, labels, rn_edge_dtype(predictions)), predictions);
  rn_edge_t sums = rn_Sum(s, product, rn_const_int32(s, options.axis), .keep_dims = true);
  rn_metric_t mean = rn_metric_mean_in(s, sums, options.weights);
  if (!rn_scope_ok(s)) return rn_metric_end(s, (rn_metric_t){0});
  rn_edge_t one = rn_const_float(s, 1);
  return rn_metric_end(s, (rn_metric_t){rn_Sub(s, one, mean.value), rn_Sub(s, one, mean.update)});
}

// Classes. A vector of class numbers.
static rn_edge_t numbers_of(rn_scope_t* s, rn_edge_t edge) {
  return rn_reshape(s, rn_as(s, edge, RN_INT64), (const int64_t[]){-1}, 1);
}

static bool has_classes(rn_scope_t* s, const rn_metric_options_t* options, const char* name) {
  if (options->classes > 0) return true;
  rn_refuse(s, "Metric '%s': bad number of classes: %d", name, options->classes);
  return false;
}

// The sums of |weights| by class.
static rn_edge_t by_class(rn_scope_t* s, rn_edge_t labels, rn_edge_t weights, int classes) {
  return rn_UnsortedSegmentSum(s, weights, labels, rn_const_int32(s, classes));
}

RN_METRIC_OF_TWO(mean_per_class_accuracy) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_accuracy", labels, predictions);
  if (!s || !has_classes(s, &options, "mean_per_class_accuracy"))
    return rn_metric_end(s, (rn_metric_t){0});
  int64_t classes = options.classes;
  const rn_var_t* total = rn_metric_sum(s, "total", &classes, 1);
  const rn_var_t* count = rn_metric_sum(s, "count", &classes, 1);
  if (!total || !count) return rn_metric_end(s, (rn_metric_t){0});
  rn_edge_t y = numbers_of(s, labels), p = numbers_of(s, predictions);
  rn_edge_t w =
      rn_reshape(s, rn_metric_weights(s, options.weights, labels), (const int64_t[]){-1}, 1);
  rn_edge_t hits = rn_Mul(s, w, rn_Cast(s, rn_Equal(s, y, p), RN_FLOAT));
  rn_edge_t new_total = rn_metric_grow(s, total, by_class(s, y, w, options.classes));
  rn_edge_t new_count = rn_metric_grow(s, count, by_class(s, y, hits, options.classes));
  rn_edge_t value = rn_DivNoNan(s, count->value, total->value);
  rn_edge_t update = rn_DivNoNan(s, new_count, new_total), axis = rn_const_int32(s, 0);
  return rn_metric_end(s, (rn_metric_t){rn_Mean(s, value, axis), rn_Mean(s, update, axis)});
}

// The mean intersection over union of all classes that occur.
static rn_edge_t iou_of(rn_scope_t* s, rn_edge_t matrix) {
  rn_edge_t rows = rn_Sum(s, matrix, rn_const_int32(s, 0));
  rn_edge_t columns = rn_Sum(s, matrix, rn_const_int32(s, 1));
  rn_edge_t both = rn_DiagPart(s, matrix);
  rn_edge_t either = rn_Sub(s, rn_AddV2(s, rows, columns), both);
  rn_edge_t is_there = rn_Cast(s, rn_NotEqual(s, either, rn_const_float(s, 0)), RN_FLOAT);
  rn_edge_t shares = rn_DivNoNan(s, both, either);
  return rn_DivNoNan(s, rn_sum_all(s, shares), rn_sum_all(s, is_there));
}

RN_METRIC_OF_TWO(mean_iou) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_iou", labels, predictions);
  if (!s || !has_classes(s, &options, "mean_iou")) return rn_metric_end(s, (rn_metric_t){0});
  int64_t dims[2] = {options.classes, options.classes};
  const rn_var_t* total = rn_metric_sum(s, "total_confusion_matrix", dims, 2);
  if (!total) return rn_metric_end(s, (rn_metric_t){0});
  rn_edge_t pair[2] = {numbers_of(s, labels), numbers_of(s, predictions)};
  rn_edge_t w =
      rn_reshape(s, rn_metric_weights(s, options.weights, labels), (const int64_t[]){-1}, 1);
  rn_edge_t cells = rn_Pack(s, pair, 2, .axis = 1);
  int64_t two = 2;
  rn_edge_t matrix = rn_ScatterNd(s, cells, w, rn_const(s, RN_INT64, &two, 1, dims));
  rn_edge_t update = rn_metric_grow(s, total, matrix);
  return rn_metric_end(s, (rn_metric_t){iou_of(s, total->value), iou_of(s, update)});
}
