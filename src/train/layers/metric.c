// Metrics that add up over batches.
#include "train/layers/metric.h"

#include "train/store.h"

#define KEPT_APART 1e-7

const rn_var_t* rn_metric_sum(rn_scope_t* s, const char* name, const int64_t* dims, int rank) {
  const rn_var_t* v =
      rn_new_variable(s, name, rn_initial_value(s, rn_init_zeros(), dims, rank, RN_FLOAT),
                      .not_trainable = true, .collection = RN_LOCAL_VARIABLES);
  rn_collect_variable(s, RN_METRIC_VARIABLES, v);
  return v;
}

rn_edge_t rn_metric_grow(rn_scope_t* s, const rn_var_t* sum, rn_edge_t value) {
  return rn_var_read_after(s, sum, rn_var_add(s, sum, value));
}

rn_scope_t* rn_metric_begin(rn_scope_t* scope, const rn_metric_options_t* options,
                            const char* fallback, rn_edge_t a, rn_edge_t b) {
  const char* name = options->name ? options->name : fallback;
  if (!rn_is_edge(scope, a, name, "the first input") ||
      !rn_is_edge(scope, b, name, "the second input"))
    return NULL;
  return rn_scope_child(scope, name);
}

rn_metric_t rn_metric_end(rn_scope_t* s, rn_metric_t metric) {
  rn_scope_destroy(s);
  return metric;
}

rn_edge_t rn_metric_weights(rn_scope_t* s, rn_edge_t weights, rn_edge_t like) {
  rn_edge_t ones = rn_OnesLike(s, rn_as(s, like, RN_FLOAT));
  return weights.node ? rn_Mul(s, ones, rn_as(s, weights, RN_FLOAT)) : ones;
}

rn_metric_t rn_metric_mean_in(rn_scope_t* s, rn_edge_t values, rn_edge_t weights) {
  if (!rn_scope_ok(s)) return (rn_metric_t){0};
  const rn_var_t* total = rn_metric_sum(s, "total", NULL, 0);
  const rn_var_t* count = rn_metric_sum(s, "count", NULL, 0);
  if (!total || !count) return (rn_metric_t){0};
  rn_edge_t x = rn_as(s, values, RN_FLOAT), w = rn_metric_weights(s, weights, values);
  rn_edge_t new_total = rn_metric_grow(s, total, rn_sum_all(s, rn_Mul(s, x, w)));
  rn_edge_t new_count = rn_metric_grow(s, count, rn_sum_all(s, w));
  return (rn_metric_t){rn_safe_div(s, total->value, count->value),
                       rn_safe_div(s, new_total, new_count)};
}

RN_API rn_metric_t rn_metric_mean_(rn_scope_t* scope, rn_edge_t values,
                                   rn_metric_options_t options) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean", values, values);
  return rn_metric_end(s, rn_metric_mean_in(s, values, options.weights));
}

#define METRIC(name) RN_METRIC_OF_TWO(name)

METRIC(accuracy) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "accuracy", labels, predictions);
  if (!s) return (rn_metric_t){0};
  rn_edge_t hits = rn_Equal(s, rn_as(s, predictions, rn_edge_dtype(labels)), labels);
  return rn_metric_end(s, rn_metric_mean_in(s, hits, options.weights));
}

static rn_edge_t squared_error(rn_scope_t* s, rn_edge_t labels, rn_edge_t predictions) {
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  return rn_SquaredDifference(s, rn_as(s, labels, rn_edge_dtype(predictions)), predictions);
}

METRIC(mean_squared_error) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_squared_error", labels, predictions);
  return rn_metric_end(
      s, rn_metric_mean_in(s, squared_error(s, labels, predictions), options.weights));
}

METRIC(root_mean_squared_error) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "root_mean_squared_error", labels, predictions);
  rn_metric_t m = rn_metric_mean_in(s, squared_error(s, labels, predictions), options.weights);
  m.value = rn_Sqrt(s, m.value);
  m.update = rn_Sqrt(s, m.update);
  return rn_metric_end(s, m);
}

METRIC(mean_absolute_error) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "mean_absolute_error", labels, predictions);
  if (!s) return (rn_metric_t){0};
  rn_edge_t error = rn_Sub(s, rn_as(s, labels, rn_edge_dtype(predictions)), predictions);
  return rn_metric_end(s, rn_metric_mean_in(s, rn_Abs(s, error), options.weights));
}

// Counts the elements whose label and prediction, as booleans, have the wanted values.
static rn_metric_t count_in(rn_scope_t* s, const char* name, rn_edge_t labels,
                            rn_edge_t predictions, bool label, bool prediction, rn_edge_t weights) {
  if (!rn_scope_ok(s)) return (rn_metric_t){0};
  rn_edge_t y = rn_as(s, labels, RN_BOOL), p = rn_as(s, predictions, RN_BOOL);
  rn_edge_t both =
      rn_LogicalAnd(s, label ? y : rn_LogicalNot(s, y), prediction ? p : rn_LogicalNot(s, p));
  rn_edge_t counted = rn_Mul(s, rn_Cast(s, both, RN_FLOAT), rn_metric_weights(s, weights, labels));
  const rn_var_t* sum = rn_metric_sum(s, name, NULL, 0);
  if (!sum) return (rn_metric_t){0};
  return (rn_metric_t){sum->value, rn_metric_grow(s, sum, rn_sum_all(s, counted))};
}

#define COUNT(name, label, prediction)                                                     \
  METRIC(name) {                                                                           \
    rn_scope_t* s = rn_metric_begin(scope, &options, #name, labels, predictions);          \
    return rn_metric_end(                                                                  \
        s, count_in(s, "count", labels, predictions, label, prediction, options.weights)); \
  }
COUNT(true_positives, true, true)
COUNT(false_positives, false, true)
COUNT(true_negatives, false, false)
COUNT(false_negatives, true, false)

// hits / (hits + misses); 0 if both are 0.
static rn_metric_t share(rn_scope_t* s, rn_metric_t hits, rn_metric_t misses) {
  return (rn_metric_t){rn_safe_div(s, hits.value, rn_AddV2(s, hits.value, misses.value)),
                       rn_safe_div(s, hits.update, rn_AddV2(s, hits.update, misses.update))};
}

METRIC(precision) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "precision", labels, predictions);
  rn_edge_t w = options.weights;
  rn_metric_t hits = count_in(s, "true_positives/count", labels, predictions, true, true, w);
  rn_metric_t misses = count_in(s, "false_positives/count", labels, predictions, false, true, w);
  return rn_metric_end(s, share(s, hits, misses));
}

METRIC(recall) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "recall", labels, predictions);
  rn_edge_t w = options.weights;
  rn_metric_t hits = count_in(s, "true_positives/count", labels, predictions, true, true, w);
  rn_metric_t misses = count_in(s, "false_negatives/count", labels, predictions, true, false, w);
  return rn_metric_end(s, share(s, hits, misses));
}

// The four counts at every threshold, as vectors.
typedef struct confusion_t {
  rn_metric_t tp, fn, tn, fp;
} confusion_t;

static rn_metric_t count_rows(rn_scope_t* s, const char* name, rn_edge_t a, rn_edge_t b,
                              rn_edge_t weights, int64_t thresholds) {
  rn_edge_t both = rn_Mul(s, rn_Cast(s, rn_LogicalAnd(s, a, b), RN_FLOAT), weights);
  const rn_var_t* sum = rn_metric_sum(s, name, &thresholds, 1);
  if (!sum) return (rn_metric_t){0};
  return (rn_metric_t){sum->value, rn_metric_grow(s, sum, rn_Sum(s, both, rn_axis(s, 1)))};
}

// Thresholds are evenly spaced over 0 … 1; the first and the last are slightly outside.
static rn_edge_t thresholds_of(rn_scope_t* s, int count) {
  rn_edge_t i =
      rn_Cast(s, rn_Range(s, rn_const_int32(s, 0), rn_const_int32(s, count), rn_const_int32(s, 1)),
              RN_DOUBLE);
  rn_edge_t even = rn_RealDiv(s, i, rn_const_scalar(s, RN_DOUBLE, count - 1));
  rn_edge_t first = rn_Equal(s, i, rn_const_scalar(s, RN_DOUBLE, 0));
  rn_edge_t last = rn_Equal(s, i, rn_const_scalar(s, RN_DOUBLE, count - 1));
  even = rn_SelectV2(s, first, rn_const_scalar(s, RN_DOUBLE, -KEPT_APART), even);
  even = rn_SelectV2(s, last, rn_const_scalar(s, RN_DOUBLE, 1 + KEPT_APART), even);
  return rn_reshape(s, rn_Cast(s, even, RN_FLOAT), (const int64_t[]){count, 1}, 2);
}

static confusion_t confusion_of(rn_scope_t* s, rn_edge_t labels, rn_edge_t predictions,
                                rn_edge_t weights, int count) {
  const int64_t row[2] = {1, -1};
  rn_edge_t w = rn_reshape(s, rn_metric_weights(s, weights, predictions), row, 2);
  rn_edge_t p = rn_reshape(s, rn_as(s, predictions, RN_FLOAT), row, 2);
  rn_edge_t is_above = rn_Greater(s, p, thresholds_of(s, count));
  rn_edge_t is_below = rn_LogicalNot(s, is_above);
  rn_edge_t is_true = rn_reshape(s, rn_as(s, labels, RN_BOOL), row, 2);
  rn_edge_t is_false = rn_LogicalNot(s, is_true);
  return (confusion_t){.tp = count_rows(s, "true_positives", is_true, is_above, w, count),
                       .fn = count_rows(s, "false_negatives", is_true, is_below, w, count),
                       .tn = count_rows(s, "true_negatives", is_false, is_below, w, count),
                       .fp = count_rows(s, "false_positives", is_false, is_above, w, count)};
}

// The area under points with falling x, by the trapezoidal rule.
static rn_edge_t area(rn_scope_t* s, rn_edge_t tp, rn_edge_t fn, rn_edge_t tn, rn_edge_t fp,
                      bool precision_recall) {
  rn_edge_t tiny = rn_const_float(s, 1e-6f);
  rn_edge_t positive = rn_AddV2(s, rn_AddV2(s, tp, fn), tiny);
  rn_edge_t recall = rn_RealDiv(s, rn_AddV2(s, tp, tiny), positive), x, y;
  if (precision_recall) {
    rn_edge_t found = rn_AddV2(s, rn_AddV2(s, tp, fp), tiny);
    x = recall;
    y = rn_RealDiv(s, rn_AddV2(s, tp, tiny), found);
  } else {
    x = rn_RealDiv(s, fp, rn_AddV2(s, rn_AddV2(s, fp, tn), tiny));
    y = recall;
  }
  rn_edge_t widths = rn_Sub(s, rn_rows(s, x, 0, -1), rn_rows(s, x, 1, 0));
  rn_edge_t heights =
      rn_RealDiv(s, rn_AddV2(s, rn_rows(s, y, 0, -1), rn_rows(s, y, 1, 0)), rn_const_float(s, 2));
  return rn_sum_all(s, rn_Mul(s, widths, heights));
}

METRIC(auc) {
  rn_scope_t* s = rn_metric_begin(scope, &options, "auc", labels, predictions);
  if (!s) return (rn_metric_t){0};
  int count = options.thresholds ? options.thresholds : 200;
  rn_metric_t result = {0};
  if (count < 2) {
    rn_refuse(s, "Metric 'auc': bad number of thresholds: %d", count);
  } else {
    confusion_t c = confusion_of(s, labels, predictions, options.weights, count);
    bool pr = options.precision_recall;
    result.value = area(s, c.tp.value, c.fn.value, c.tn.value, c.fp.value, pr);
    result.update = area(s, c.tp.update, c.fn.update, c.tn.update, c.fp.update, pr);
  }
  return rn_metric_end(s, result);
}
