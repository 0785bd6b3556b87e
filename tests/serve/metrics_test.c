// Metrics: counters, gauges, histograms and their text form.
#include "serve/metrics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

static rn_metrics_t* make(void) {
  rn_metrics_t* metrics = NULL;
  cr_assert(rn_ok(rn_metrics_create(rn_allocator_default(), &metrics)));
  return metrics;
}

static rn_str_t print(rn_metrics_t* metrics, rn_strbuf_t* out) {
  rn_strbuf_init(out, rn_allocator_default());
  rn_metrics_print(metrics, out);
  return rn_strbuf_view(out);
}

Test(metrics, prints_what_was_counted) {
  rn_metrics_t* metrics = make();
  rn_str_t none = RN_STR(""), model = RN_STR("a\"b\\c\nd");
  rn_metric_series_t* count =
      rn_metrics_series(metrics, RN_METRIC_REQUEST_COUNT, model, RN_STR("OK"), none);
  rn_series_add(count, 2);
  rn_series_add(count, 1);
  cr_assert_eq(count,
               rn_metrics_series(metrics, RN_METRIC_REQUEST_COUNT, model, RN_STR("OK"), none));
  rn_metric_series_t* limit =
      rn_metrics_series(metrics, RN_METRIC_BATCH_LIMIT, RN_STR("m"), none, none);
  rn_series_add(limit, 7);
  rn_series_add(limit, 5);
  rn_strbuf_t text;
  cr_assert_str_eq(print(metrics, &text).data,
                   "# HELP :tensorflow:serving:request_count Requests by model and status\n"
                   "# TYPE :tensorflow:serving:request_count counter\n"
                   ":tensorflow:serving:request_count{model_name=\"a\\\"b\\\\c\\nd\","
                   "status=\"OK\"} 3\n"
                   "# HELP runnel_batch_limit Rows that the next batch may have\n"
                   "# TYPE runnel_batch_limit gauge\n"
                   "runnel_batch_limit{model_name=\"m\"} 5\n");
  rn_strbuf_clear(&text);
  rn_metrics_destroy(metrics);
}

Test(metrics, histograms_have_the_bounds_of_tensorflow_serving) {
  rn_metrics_t* metrics = make();
  rn_metric_series_t* series =
      rn_metrics_series(metrics, RN_METRIC_WARMUP_LATENCY, RN_STR("m"), RN_STR("OK"), RN_STR(""));
  const double values[] = {0, 10, 10.5, 18, 19, 1e30};
  for (int i = 0; i < 6; ++i) rn_series_add(series, values[i]);
  double bounds[RN_SERIES_BUCKETS];
  uint64_t counts[RN_SERIES_BUCKETS];
  rn_series_buckets(series, bounds, counts);
  cr_assert_eq(counts[0], 2);
  cr_assert_eq(counts[1], 2);
  cr_assert_eq(counts[2], 1);
  cr_assert_eq(counts[33], 1);
  cr_assert_eq(rn_series_value(series), 6);
  cr_assert_float_eq(rn_series_quantile(series, 0.5), 14, 0.01);
  rn_strbuf_t text;
  const char* printed = print(metrics, &text).data;
  cr_assert(strstr(printed, "warmup_latency_bucket{model_name=\"m\",status=\"OK\",le=\"18\"} 4\n"));
  cr_assert(
      strstr(printed, "warmup_latency_bucket{model_name=\"m\",status=\"OK\",le=\"+Inf\"} 6\n"));
  cr_assert(strstr(printed, "warmup_latency_count{model_name=\"m\",status=\"OK\"} 6\n"));
  rn_strbuf_clear(&text);
  rn_metrics_destroy(metrics);
}

Test(metrics, sizes_have_powers_of_two_as_bounds) {
  rn_metrics_t* metrics = make();
  rn_metric_series_t* series =
      rn_metrics_series(metrics, RN_METRIC_INPUT_BATCH_SIZE, RN_STR("m"), RN_STR(""), RN_STR(""));
  const double values[] = {0, 1, 2, 3, 4, 1e30};
  for (int i = 0; i < 6; ++i) rn_series_add(series, values[i]);
  rn_series_add(NULL, 1);
  double bounds[RN_SERIES_BUCKETS];
  uint64_t counts[RN_SERIES_BUCKETS];
  rn_series_buckets(series, bounds, counts);
  const uint64_t expected[] = {2, 1, 2, 0};
  for (int i = 0; i < 4; ++i) {
    cr_assert_eq(bounds[i], 1 << i);
    cr_assert_eq(counts[i], expected[i]);
  }
  cr_assert_eq(counts[33], 1);
  cr_assert_float_eq(rn_series_quantile(series, 0.5), 2, 0.01);
  rn_strbuf_t text;
  const char* printed = print(metrics, &text).data;
  cr_assert(strstr(printed, "input_batch_size histogram\n"));
  cr_assert(strstr(printed, "input_batch_size_bucket{model_name=\"m\",le=\"4\"} 5\n"));
  rn_strbuf_clear(&text);
  rn_metrics_destroy(metrics);
}

// The bounds that dashboards for TensorFlow Serving know.
Test(metrics, bounds_are_those_of_tensorflow_serving) {
  static const struct {
    rn_metric_id_t id;
    int count;
    double first, last;
  } cases[] = {{RN_METRIC_REQUEST_LATENCY, 33, 10, 1474755971.3},
               {RN_METRIC_RUNTIME_LATENCY, 33, 10, 1474755971.3},
               {RN_METRIC_QUEUING_LATENCY, 52, 100, 1092052.578},
               {RN_METRIC_EXAMPLE_COUNTS, 15, 1, 16384}};
  rn_metrics_t* metrics = make();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_metric_series_t* series =
        rn_metrics_series(metrics, cases[i].id, RN_STR("m"), RN_STR(""), RN_STR(""));
    double bounds[RN_SERIES_BUCKETS];
    uint64_t counts[RN_SERIES_BUCKETS];
    rn_series_add(series, 1e30);
    rn_series_buckets(series, bounds, counts);
    int count = cases[i].count;
    cr_assert_eq(bounds[0], cases[i].first);
    cr_assert_float_eq(bounds[count - 1] / cases[i].last, 1, 1e-6, "%zu: %.8g", i,
                       bounds[count - 1]);
    cr_assert_eq(bounds[count], INFINITY);
    cr_assert_eq(counts[count], 1);
  }
  rn_metrics_destroy(metrics);
}

// Clients choose names of models: they must not fill the memory.
Test(metrics, labels_are_bounded) {
  rn_metrics_t* metrics = make();
  rn_metric_series_t* last = NULL;
  for (int i = 0; i < 20000; ++i) {
    char name[32];
    snprintf(name, sizeof name, "model%d", i);
    last = rn_metrics_series(metrics, RN_METRIC_EXAMPLE_COUNT_TOTAL, rn_str(name), RN_STR(""),
                             RN_STR(""));
    rn_series_add(last, 1);
  }
  cr_assert_eq(rn_series_value(last), 10000);  // those without a series of their own
  rn_metrics_destroy(metrics);
}

static void* add_many(void* arg) {
  rn_metrics_t* metrics = arg;
  for (int i = 0; i < 20000; ++i) {
    char name[16];
    snprintf(name, sizeof name, "m%d", i % 50);
    rn_series_add(rn_metrics_series(metrics, RN_METRIC_REQUEST_LATENCY, rn_str(name),
                                    RN_STR("Predict"), RN_STR("REST")),
                  i);
  }
  return NULL;
}

static void sum(void* arg, const rn_str_t labels[3], rn_metric_series_t* series) {
  (void)labels;
  *(double*)arg += rn_series_value(series);
}

Test(metrics, threads_add_at_once) {
  rn_metrics_t* metrics = make();
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, add_many, metrics);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  double all = 0;
  rn_metrics_each(metrics, RN_METRIC_REQUEST_LATENCY, sum, &all);
  cr_assert_eq(all, 80000);
  rn_metrics_destroy(metrics);
}
