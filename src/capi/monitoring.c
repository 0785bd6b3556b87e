// Metrics that clients count with: counters, gauges and samplers, each with a cell for every
// combination of labels. Nothing is exported: whoever holds a cell reads it.
#include <float.h>
#include <stdatomic.h>

#include "base/sync.h"
#include "capi/internal.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "wire/writer.h"

#define MAX_LABELS 4

// Fields of HistogramProto: the least, the largest, the number, the sum, the squares' sum, then
enum { HISTOGRAM_MIN = 1, HISTOGRAM_LIMITS = 6, HISTOGRAM_BUCKETS = 7 };

struct TFE_MonitoringBuckets {
  int count;  // of limits, the last of which is the largest double
  double limits[];
};

// A histogram. |counts| has one place for each limit.
typedef struct samples_t {
  double min, max, number, sum, squares;
  double counts[];
} samples_t;

typedef struct cell_t {
  struct cell_t* next;
  const struct metric_t* metric;
  char* labels[MAX_LABELS];  // Owned
  _Atomic int64_t number;    // counters, gauges of integers and bools
  rn_mutex_t mutex;          // guards what follows
  rn_strbuf_t text;
  samples_t* samples;  // Owned; samplers only
} cell_t;

typedef struct metric_t {
  int label_count;
  TFE_MonitoringBuckets* buckets;  // Owned; samplers only
  rn_mutex_t mutex;                // guards |cells|
  cell_t* cells;                   // never taken out before the metric goes
} metric_t;

static size_t buckets_size(int count) {
  return sizeof(TFE_MonitoringBuckets) + (size_t)count * sizeof(double);
}
static size_t samples_size(const metric_t* metric) {
  return sizeof(samples_t) + (size_t)metric->buckets->count * sizeof(double);
}

static void free_text(char* text) {
  if (text) rn_free(rn_capi_allocator(), text, strlen(text) + 1);
}

static void cell_destroy(cell_t* cell) {
  if (!cell) return;
  for (int i = 0; i < MAX_LABELS; ++i) free_text(cell->labels[i]);
  if (cell->samples) rn_free(rn_capi_allocator(), cell->samples, samples_size(cell->metric));
  rn_strbuf_clear(&cell->text);
  rn_mutex_destroy(&cell->mutex);
  RN_FREE(rn_capi_allocator(), cell);
}

static void metric_destroy(metric_t* metric) {
  if (!metric) return;
  for (cell_t *cell = metric->cells, *next = NULL; cell; cell = next) {
    next = cell->next;
    cell_destroy(cell);
  }
  if (metric->buckets)
    rn_free(rn_capi_allocator(), metric->buckets, buckets_size(metric->buckets->count));
  rn_mutex_destroy(&metric->mutex);
  RN_FREE(rn_capi_allocator(), metric);
}

static rn_status_t make_metric(const char* name, const TFE_MonitoringBuckets* buckets,
                               bool is_sampler, int label_count, metric_t** out) {
  if (!name) return rn_capi_null("TFE_MonitoringNew*", "name");
  if (is_sampler && !buckets) return rn_capi_null("TFE_MonitoringNewSampler*", "buckets");
  metric_t* metric = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &metric));
  metric->label_count = label_count;
  rn_mutex_init(&metric->mutex);
  if (is_sampler) {
    size_t size = buckets_size(buckets->count);
    rn_status_t status = rn_alloc(rn_capi_allocator(), size, (void**)&metric->buckets);
    if (!rn_ok(status)) {
      metric_destroy(metric);
      return status;
    }
    memcpy(metric->buckets, buckets, size);
  }
  *out = metric;
  return RN_OK;
}

static metric_t* metric_create(const char* name, const TFE_MonitoringBuckets* buckets,
                               bool is_sampler, int label_count, TF_Status* status) {
  metric_t* metric = NULL;
  rn_capi_set(status, make_metric(name, buckets, is_sampler, label_count, &metric));
  return metric;
}

static rn_status_t make_cell(const metric_t* metric, const char* const* labels, cell_t** out) {
  cell_t* cell = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &cell));
  cell->metric = metric;
  rn_mutex_init(&cell->mutex);
  rn_strbuf_init(&cell->text, rn_capi_allocator());
  rn_status_t status = RN_OK;
  for (int i = 0; i < metric->label_count && rn_ok(status); ++i)
    status = rn_str_dup(rn_capi_allocator(), rn_str(labels[i]), &cell->labels[i]);
  if (rn_ok(status) && metric->buckets)
    status = rn_alloc_zeroed(rn_capi_allocator(), samples_size(metric), (void**)&cell->samples);
  if (!rn_ok(status)) {
    cell_destroy(cell);
    return status;
  }
  if (cell->samples) {
    cell->samples->min = DBL_MAX;
    cell->samples->max = -DBL_MAX;
  }
  *out = cell;
  return RN_OK;
}

static bool has_labels(const cell_t* cell, const char* const* labels) {
  for (int i = 0; i < cell->metric->label_count; ++i)
    if (strcmp(cell->labels[i], labels[i]) != 0) return false;
  return true;
}

// The cell of these labels, made when it is first asked for; NULL without memory.
static cell_t* cell_of(metric_t* metric, const char* const* labels) {
  if (!metric) return NULL;
  for (int i = 0; i < metric->label_count; ++i)
    if (!labels[i]) return NULL;
  rn_mutex_lock(&metric->mutex);
  cell_t* cell = metric->cells;
  while (cell && !has_labels(cell, labels)) cell = cell->next;
  if (!cell) {
    rn_status_free(make_cell(metric, labels, &cell));
    if (cell) {
      cell->next = metric->cells;
      metric->cells = cell;
    }
  }
  rn_mutex_unlock(&metric->mutex);
  return cell;
}

// --- Values

static void add(void* cell, int64_t value) {
  if (cell) atomic_fetch_add_explicit(&((cell_t*)cell)->number, value, memory_order_relaxed);
}
static void set(void* cell, int64_t value) {
  if (cell) atomic_store_explicit(&((cell_t*)cell)->number, value, memory_order_relaxed);
}
static int64_t get(void* cell) {
  return cell ? atomic_load_explicit(&((cell_t*)cell)->number, memory_order_relaxed) : 0;
}

void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell* cell, int64_t value) {
  add(cell, value);
}
int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell* cell) { return get(cell); }
void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell* cell, int64_t value) {
  set(cell, value);
}
int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell* cell) { return get(cell); }
void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell* cell, bool value) {
  set(cell, value);
}
bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell* cell) { return get(cell) != 0; }

// Puts |text| into an empty buffer, or leaves that empty.
static void give(rn_strbuf_t* text, TF_Buffer* buf) {
  // What |buf| held is not looked at: clients pass memory that nobody has set.
  if (buf) *buf = (TF_Buffer){0};
  rn_status_free(rn_capi_buffer_take(text, buf));
}

void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell* cell, const char* value) {
  cell_t* own = (cell_t*)cell;
  if (!own || !value) return;
  rn_mutex_lock(&own->mutex);
  rn_strbuf_clear(&own->text);
  rn_strbuf_append(&own->text, rn_str(value));
  if (own->text.failed) rn_strbuf_clear(&own->text);
  rn_mutex_unlock(&own->mutex);
}

void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell* cell, TF_Buffer* buf) {
  cell_t* own = (cell_t*)cell;
  if (!own) return;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_mutex_lock(&own->mutex);
  rn_strbuf_append(&text, rn_strbuf_view(&own->text));
  rn_mutex_unlock(&own->mutex);
  give(&text, buf);
}

void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell* cell, double value) {
  cell_t* own = (cell_t*)cell;
  if (!own || !own->samples) return;
  const TFE_MonitoringBuckets* buckets = own->metric->buckets;
  samples_t* samples = own->samples;
  int bucket = 0;
  while (bucket < buckets->count - 1 && !(value < buckets->limits[bucket])) ++bucket;
  rn_mutex_lock(&own->mutex);
  samples->counts[bucket] += 1;
  if (value < samples->min) samples->min = value;
  if (value > samples->max) samples->max = value;
  samples->number += 1;
  samples->sum += value;
  samples->squares += value * value;
  rn_mutex_unlock(&own->mutex);
}

// A HistogramProto with all buckets, also those that nothing fell into.
static void put_samples(rn_strbuf_t* buf, const samples_t* samples,
                        const TFE_MonitoringBuckets* buckets) {
  const double numbers[] = {samples->min, samples->max, samples->number, samples->sum,
                            samples->squares};
  for (uint32_t i = 0; i < 5; ++i)
    if (numbers[i] != 0) rn_pb_put_double(buf, HISTOGRAM_MIN + i, numbers[i]);
  size_t size = (size_t)buckets->count * sizeof(double);
  rn_pb_put_str(buf, HISTOGRAM_LIMITS, rn_str_n((const char*)buckets->limits, size));
  rn_pb_put_str(buf, HISTOGRAM_BUCKETS, rn_str_n((const char*)samples->counts, size));
}

void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell* cell, TF_Buffer* buf) {
  cell_t* own = (cell_t*)cell;
  if (!own || !own->samples) return;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_mutex_lock(&own->mutex);
  put_samples(&text, own->samples, own->metric->buckets);
  rn_mutex_unlock(&own->mutex);
  give(&text, buf);
}

TFE_MonitoringBuckets* TFE_MonitoringNewExponentialBuckets(double scale, double growth_factor,
                                                           int bucket_count) {
  if (!(scale > 0) || !(growth_factor > 1) || bucket_count < 1 || bucket_count > 1 << 20)
    return NULL;
  TFE_MonitoringBuckets* buckets = NULL;
  rn_status_t status =
      rn_alloc(rn_capi_allocator(), buckets_size(bucket_count + 1), (void**)&buckets);
  rn_status_free(status);
  if (!buckets) return NULL;
  buckets->count = bucket_count + 1;
  double limit = scale;
  for (int i = 0; i < bucket_count; ++i, limit *= growth_factor) buckets->limits[i] = limit;
  buckets->limits[bucket_count] = DBL_MAX;
  return buckets;
}

void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets* buckets) {
  if (buckets) rn_free(rn_capi_allocator(), buckets, buckets_size(buckets->count));
}

// --- The functions of each kind and number of labels

#define LABELS0
#define LABELS1 , const char* label1
#define LABELS2 LABELS1, const char* label2
#define LABELS3 LABELS2, const char* label3
#define LABELS4 LABELS3, const char* label4
#define VALUES0 NULL
#define VALUES1 label1
#define VALUES2 VALUES1, label2
#define VALUES3 VALUES2, label3
#define VALUES4 VALUES3, label4
#define UNUSED0
#define UNUSED1 (void)label1;
#define UNUSED2 UNUSED1(void) label2;
#define UNUSED3 UNUSED2(void) label3;
#define UNUSED4 UNUSED3(void) label4;

#define CELLS(Kind, n)                                                      \
  void TFE_MonitoringDelete##Kind##n(TFE_Monitoring##Kind##n* metric) {     \
    metric_destroy((metric_t*)metric);                                      \
  }                                                                         \
  TFE_Monitoring##Kind##Cell* TFE_MonitoringGetCell##Kind##n(               \
      TFE_Monitoring##Kind##n* metric LABELS##n) {                          \
    const char* const labels[] = {VALUES##n};                               \
    return (TFE_Monitoring##Kind##Cell*)cell_of((metric_t*)metric, labels); \
  }
#define METRIC(Kind, n)                                                                     \
  TFE_Monitoring##Kind##n* TFE_MonitoringNew##Kind##n(const char* name, TF_Status* status,  \
                                                      const char* description LABELS##n) {  \
    (void)description;                                                                      \
    UNUSED##n return (TFE_Monitoring##Kind##n*)metric_create(name, NULL, false, n, status); \
  }                                                                                         \
  CELLS(Kind, n)
#define SAMPLER(n)                                                                             \
  TFE_MonitoringSampler##n* TFE_MonitoringNewSampler##n(                                       \
      const char* name, TFE_MonitoringBuckets* buckets, TF_Status* status,                     \
      const char* description LABELS##n) {                                                     \
    (void)description;                                                                         \
    UNUSED##n return (TFE_MonitoringSampler##n*)metric_create(name, buckets, true, n, status); \
  }                                                                                            \
  CELLS(Sampler, n)

METRIC(Counter, 0)
METRIC(Counter, 1)
METRIC(Counter, 2)
METRIC(IntGauge, 0)
METRIC(IntGauge, 1)
METRIC(IntGauge, 2)
METRIC(StringGauge, 0)
METRIC(StringGauge, 1)
METRIC(StringGauge, 2)
METRIC(StringGauge, 3)
METRIC(StringGauge, 4)
METRIC(BoolGauge, 0)
METRIC(BoolGauge, 1)
METRIC(BoolGauge, 2)
SAMPLER(0)
SAMPLER(1)
SAMPLER(2)
