// Metrics of clients: framework/meter.h under the names of the C API.
#include "framework/meter.h"

#include "capi/internal.h"
#include "tensorflow/c/eager/c_api_experimental.h"

static rn_meter_cell_t* cell_of(void* cell) { return cell; }

static rn_meter_t* create(const char* name, const TFE_MonitoringBuckets* buckets, bool is_sampler,
                          int label_count, TF_Status* status) {
  rn_meter_t* meter = NULL;
  rn_status_t outcome;
  if (!name)
    outcome = rn_capi_null("TFE_MonitoringNew*", "name");
  else if (is_sampler && !buckets)
    outcome = rn_capi_null("TFE_MonitoringNewSampler*", "buckets");
  else
    outcome = rn_meter_create(label_count, (const rn_meter_buckets_t*)buckets, &meter);
  rn_capi_set(status, outcome);
  return meter;
}

void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell* cell, int64_t value) {
  rn_meter_add(cell_of(cell), value);
}
int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell* cell) {
  return rn_meter_get(cell_of(cell));
}
void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell* cell, int64_t value) {
  rn_meter_set(cell_of(cell), value);
}
int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell* cell) {
  return rn_meter_get(cell_of(cell));
}
void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell* cell, bool value) {
  rn_meter_set(cell_of(cell), value);
}
bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell* cell) {
  return rn_meter_get(cell_of(cell)) != 0;
}

// Moves |text| into |buf|, or sets |buf| to empty.
static void give(rn_strbuf_t* text, TF_Buffer* buf) {
  // Does not read the old content of |buf|: clients pass uninitialized memory.
  if (buf) *buf = (TF_Buffer){0};
  rn_status_free(rn_capi_buffer_take(text, buf));
}

void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell* cell, const char* value) {
  if (cell && value) rn_meter_set_text(cell_of(cell), rn_str(value));
}

void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell* cell, TF_Buffer* buf) {
  if (!cell) return;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_meter_get_text(cell_of(cell), &text);
  give(&text, buf);
}

void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell* cell, double value) {
  if (rn_meter_is_sampler(cell_of(cell))) rn_meter_sample(cell_of(cell), value);
}

void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell* cell, TF_Buffer* buf) {
  if (!rn_meter_is_sampler(cell_of(cell))) return;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_meter_write_samples(cell_of(cell), &text);
  give(&text, buf);
}

TFE_MonitoringBuckets* TFE_MonitoringNewExponentialBuckets(double scale, double growth_factor,
                                                           int bucket_count) {
  return (TFE_MonitoringBuckets*)rn_meter_buckets(scale, growth_factor, bucket_count);
}

void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets* buckets) {
  rn_meter_buckets_free((rn_meter_buckets_t*)buckets);
}

// --- One set of functions per kind and number of labels

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

#define CELLS(Kind, n)                                                              \
  void TFE_MonitoringDelete##Kind##n(TFE_Monitoring##Kind##n* metric) {             \
    rn_meter_destroy((rn_meter_t*)metric);                                          \
  }                                                                                 \
  TFE_Monitoring##Kind##Cell* TFE_MonitoringGetCell##Kind##n(                       \
      TFE_Monitoring##Kind##n* metric LABELS##n) {                                  \
    const char* const labels[] = {VALUES##n};                                       \
    return (TFE_Monitoring##Kind##Cell*)rn_meter_cell((rn_meter_t*)metric, labels); \
  }
#define METRIC(Kind, n)                                                                    \
  TFE_Monitoring##Kind##n* TFE_MonitoringNew##Kind##n(const char* name, TF_Status* status, \
                                                      const char* description LABELS##n) { \
    (void)description;                                                                     \
    UNUSED##n return (TFE_Monitoring##Kind##n*)create(name, NULL, false, n, status);       \
  }                                                                                        \
  CELLS(Kind, n)
#define SAMPLER(n)                                                                      \
  TFE_MonitoringSampler##n* TFE_MonitoringNewSampler##n(                                \
      const char* name, TFE_MonitoringBuckets* buckets, TF_Status* status,              \
      const char* description LABELS##n) {                                              \
    (void)description;                                                                  \
    UNUSED##n return (TFE_MonitoringSampler##n*)create(name, buckets, true, n, status); \
  }                                                                                     \
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
