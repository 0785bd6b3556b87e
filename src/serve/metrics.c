// See metrics.h.
//
// The series of a metric are in a hash table whose chains only grow: readers follow them without a
// lock.
#include "serve/metrics.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/sync.h"

#define LABELS 3
#define CHAINS 64
#define MAX_SERIES 10000  // per metric: labels may come from clients

typedef enum metric_kind_t {
  COUNTER,
  GAUGE,
  HISTOGRAM,
  QUEUES,
  EXAMPLES,
  SIZES,
  SECONDS,
  KINDS
} metric_kind_t;

// Bucket k of a histogram ends at first * factor^k; what lies above the last counts in +Inf alone.
// Those of metrics that TensorFlow Serving has are its own.
static const struct {
  double first, factor;
  int count;  // 0: no histogram
} buckets_of[KINDS] = {
    [HISTOGRAM] = {10, 1.8, 33}, [QUEUES] = {100, 1.2, 52}, [EXAMPLES] = {1, 2, 15},
    [SIZES] = {1, 2, 33},        [SECONDS] = {10, 1.8, 33},
};
static bool has_buckets(metric_kind_t kind) { return buckets_of[kind].count > 0; }

// Times are counted in microseconds; Prometheus wants seconds, and TensorFlow Serving's names do
// not.
static double printed_unit(metric_kind_t kind) { return kind == SECONDS ? 1e-6 : 1; }

typedef struct metric_row_t {
  metric_kind_t kind;
  const char *name, *help;
  const char* labels[LABELS];
} metric_row_t;

static const metric_row_t rows[] = {
#define ROW(id, kind, name, help, ...) {kind, name, help, {__VA_ARGS__}},
    RN_METRICS(ROW)
#undef ROW
};

struct rn_metric_series_t {
  metric_kind_t kind;
  rn_str_t labels[LABELS];
  _Atomic(rn_metric_series_t*) next;
  _Atomic uint64_t
      value;  // the bits of a double: a counter's sum, a gauge's value, a histogram's sum
  _Atomic uint64_t counts[];  // of a histogram: one per bucket, then the rest
};

struct rn_metrics_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // of series and labels, under |mutex|
  rn_mutex_t mutex;  // of adding series
  _Atomic(rn_metric_series_t*) chains[RN_METRIC_COUNT_][CHAINS];
  int counts[RN_METRIC_COUNT_];     // of series, under |mutex|
  rn_metric_series_t* lost[KINDS];  // one per kind, used when memory runs out
};

static size_t series_size(metric_kind_t kind) {
  return sizeof(rn_metric_series_t) +
         (has_buckets(kind) ? (size_t)(buckets_of[kind].count + 1) * sizeof(uint64_t) : 0);
}

static rn_status_t make_series(rn_metrics_t* metrics, metric_kind_t kind, const rn_str_t* labels,
                               rn_metric_series_t** out) {
  RN_RETURN_IF_ERROR(rn_arena_alloc(&metrics->arena, series_size(kind), (void**)out));
  (*out)->kind = kind;
  for (int i = 0; labels && i < LABELS; ++i)
    RN_RETURN_IF_ERROR(rn_arena_str(&metrics->arena, labels[i], &(*out)->labels[i]));
  return RN_OK;
}

rn_status_t rn_metrics_create(rn_allocator_t allocator, rn_metrics_t** out) {
  *out = NULL;
  rn_metrics_t* metrics = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &metrics));
  metrics->allocator = allocator;
  rn_arena_init(&metrics->arena, allocator);
  rn_mutex_init(&metrics->mutex);
  rn_status_t status = RN_OK;
  for (int kind = COUNTER; kind < KINDS && rn_ok(status); ++kind)
    status = make_series(metrics, (metric_kind_t)kind, NULL, &metrics->lost[kind]);
  if (!rn_ok(status)) {
    rn_metrics_destroy(metrics);
    return status;
  }
  *out = metrics;
  return RN_OK;
}

void rn_metrics_destroy(rn_metrics_t* metrics) {
  if (!metrics) return;
  rn_mutex_destroy(&metrics->mutex);
  rn_arena_clear(&metrics->arena);
  RN_FREE(metrics->allocator, metrics);
}

static rn_metric_series_t* find(_Atomic(rn_metric_series_t*)* chain, const rn_str_t* labels) {
  for (rn_metric_series_t* series = *chain; series; series = series->next) {
    int i = 0;
    while (i < LABELS && rn_str_eq(series->labels[i], labels[i])) ++i;
    if (i == LABELS) return series;
  }
  return NULL;
}

static rn_metric_series_t* add_series(rn_metrics_t* metrics, rn_metric_id_t id,
                                      _Atomic(rn_metric_series_t*)* chain, const rn_str_t* labels) {
  rn_mutex_lock(&metrics->mutex);
  rn_metric_series_t* series = find(chain, labels);
  if (!series && metrics->counts[id] < MAX_SERIES) {
    rn_status_t status = make_series(metrics, rows[id].kind, labels, &series);
    if (rn_ok(status)) {
      series->next = *chain;
      *chain = series;
      metrics->counts[id]++;
    } else {
      series = NULL;
    }
    rn_status_free(status);
  }
  rn_mutex_unlock(&metrics->mutex);
  return series ? series : metrics->lost[rows[id].kind];
}

rn_metric_series_t* rn_metrics_series(rn_metrics_t* metrics, rn_metric_id_t id, rn_str_t a,
                                      rn_str_t b, rn_str_t c) {
  const rn_str_t labels[LABELS] = {a, b, c};
  uint64_t hash = rn_str_hash(a) ^ (rn_str_hash(b) * 31) ^ (rn_str_hash(c) * 961);
  _Atomic(rn_metric_series_t*)* chain = &metrics->chains[id][hash % CHAINS];
  rn_metric_series_t* series = find(chain, labels);
  return series ? series : add_series(metrics, id, chain, labels);
}

static double number_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void add_to(_Atomic uint64_t* sum, double value) {
  uint64_t before = *sum;
  while (!atomic_compare_exchange_weak(sum, &before, bits_of(number_of(before) + value))) continue;
}

static int bucket_of(metric_kind_t kind, double value) {
  int bucket = 0;
  double factor = buckets_of[kind].factor;
  for (double bound = buckets_of[kind].first; bucket < buckets_of[kind].count && value > bound;
       ++bucket)
    bound *= factor;
  return bucket;
}

void rn_series_add(rn_metric_series_t* series, double value) {
  if (!series) return;
  switch (series->kind) {
    case COUNTER:
      add_to(&series->value, value);
      break;
    case GAUGE:
      series->value = bits_of(value);
      break;
    default:
      add_to(&series->value, value);
      atomic_fetch_add(&series->counts[bucket_of(series->kind, value)], 1);
      break;
  }
}

static uint64_t total(const rn_metric_series_t* series) {
  uint64_t count = 0;
  for (int i = 0; i <= buckets_of[series->kind].count; ++i) count += series->counts[i];
  return count;
}

double rn_series_value(const rn_metric_series_t* series) {
  return has_buckets(series->kind) ? (double)total(series) : number_of(series->value);
}

double rn_series_sum(const rn_metric_series_t* series) { return number_of(series->value); }

void rn_series_buckets(const rn_metric_series_t* series, double bounds[RN_SERIES_BUCKETS],
                       uint64_t counts[RN_SERIES_BUCKETS]) {
  double bound = buckets_of[series->kind].first;
  int count = buckets_of[series->kind].count;
  for (int i = 0; i < RN_SERIES_BUCKETS; ++i, bound *= buckets_of[series->kind].factor) {
    bounds[i] = i < count ? bound : INFINITY;
    counts[i] = i <= count ? series->counts[i] : 0;
  }
}

// Within a bucket, values count as evenly spread.
double rn_buckets_quantile(const double bounds[RN_SERIES_BUCKETS],
                           const uint64_t counts[RN_SERIES_BUCKETS], double q) {
  uint64_t all = 0;
  for (int i = 0; i < RN_SERIES_BUCKETS; ++i) all += counts[i];
  double rank = q * (double)all, seen = 0, low = 0;
  for (int i = 0; all && isfinite(bounds[i]); low = bounds[i++]) {
    double here = (double)counts[i];
    if (here > 0 && seen + here >= rank) return low + (bounds[i] - low) * (rank - seen) / here;
    seen += here;
  }
  return low;
}

double rn_series_quantile(const rn_metric_series_t* series, double q) {
  double bounds[RN_SERIES_BUCKETS];
  uint64_t counts[RN_SERIES_BUCKETS];
  if (!has_buckets(series->kind)) return 0;
  rn_series_buckets(series, bounds, counts);
  return rn_buckets_quantile(bounds, counts, q);
}

static void print_label(rn_strbuf_t* out, const char* name, rn_str_t value) {
  rn_strbuf_printf(out, "%s=\"", name);
  for (size_t i = 0; i < value.size; ++i) {
    char c = value.data[i];
    if (c == '\n')
      rn_strbuf_append(out, RN_STR("\\n"));
    else
      rn_strbuf_printf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
  }
  rn_strbuf_append(out, RN_STR("\""));
}

// "{model_name="a",le="10"}"; |le| may be NULL.
static void print_labels(rn_strbuf_t* out, const metric_row_t* row,
                         const rn_metric_series_t* series, const char* le) {
  const char* before = "{";
  for (int i = 0; i < LABELS && row->labels[i]; ++i, before = ",") {
    rn_strbuf_append(out, rn_str(before));
    print_label(out, row->labels[i], series->labels[i]);
  }
  if (le) rn_strbuf_printf(out, "%sle=\"%s\"", before, le);
  if (le || before[0] == ',') rn_strbuf_append(out, RN_STR("}"));
}

static void print_histogram(rn_strbuf_t* out, const metric_row_t* row,
                            const rn_metric_series_t* series) {
  double bounds[RN_SERIES_BUCKETS];
  uint64_t counts[RN_SERIES_BUCKETS], count = 0;
  rn_series_buckets(series, bounds, counts);
  for (int i = 0; i <= buckets_of[row->kind].count; ++i) {
    char le[32] = "+Inf";
    if (isfinite(bounds[i])) snprintf(le, sizeof le, "%.6g", bounds[i] * printed_unit(row->kind));
    count += counts[i];
    rn_strbuf_printf(out, "%s_bucket", row->name);
    print_labels(out, row, series, le);
    rn_strbuf_printf(out, " %llu\n", (unsigned long long)count);
  }
  rn_strbuf_printf(out, "%s_sum", row->name);
  print_labels(out, row, series, NULL);
  rn_strbuf_printf(out, " %.17g\n%s_count", number_of(series->value) * printed_unit(row->kind),
                   row->name);
  print_labels(out, row, series, NULL);
  rn_strbuf_printf(out, " %llu\n", (unsigned long long)count);
}

void rn_metrics_each(rn_metrics_t* metrics, rn_metric_id_t id,
                     void (*fn)(void* arg, const rn_str_t labels[3], rn_metric_series_t* series),
                     void* arg) {
  for (int i = 0; i < CHAINS; ++i)
    for (rn_metric_series_t* series = metrics->chains[id][i]; series; series = series->next)
      fn(arg, series->labels, series);
}

static void print_metric(rn_metrics_t* metrics, int id, rn_strbuf_t* out) {
  const metric_row_t* row = &rows[id];
  bool has_head = false;
  for (int i = 0; i < CHAINS; ++i) {
    for (rn_metric_series_t* series = metrics->chains[id][i]; series; series = series->next) {
      if (!has_head)
        rn_strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                         has_buckets(row->kind) ? "histogram"
                         : row->kind == COUNTER ? "counter"
                                                : "gauge");
      has_head = true;
      if (has_buckets(row->kind)) {
        print_histogram(out, row, series);
        continue;
      }
      rn_strbuf_append(out, rn_str(row->name));
      print_labels(out, row, series, NULL);
      rn_strbuf_printf(out, " %.17g\n", rn_series_value(series));
    }
  }
}

void rn_metrics_print(rn_metrics_t* metrics, rn_strbuf_t* out) {
  for (int id = 0; id < RN_METRIC_COUNT_; ++id) print_metric(metrics, id, out);
}
