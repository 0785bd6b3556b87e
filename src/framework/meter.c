// Meters: see meter.h.
#include "framework/meter.h"

#include <float.h>
#include <stdatomic.h>

#include "base/sync.h"
#include "wire/writer.h"

// Fields of HistogramProto: min, max, number, sum and sum of squares, then these.
enum { HISTOGRAM_MIN = 1, HISTOGRAM_LIMITS = 6, HISTOGRAM_BUCKETS = 7 };

struct rn_meter_buckets_t {
  int count;  // of limits, the last of which is the largest double
  double limits[];
};

// A histogram. |counts| has one entry per limit.
typedef struct samples_t {
  double min, max, number, sum, squares;
  double counts[];
} samples_t;

struct rn_meter_cell_t {
  rn_meter_cell_t* next;
  const rn_meter_t* meter;
  char* labels[RN_METER_MAX_LABELS];  // Owned
  _Atomic int64_t number;             // counters, gauges of integers and bools
  rn_mutex_t mutex;                   // guards what follows
  rn_strbuf_t text;
  samples_t* samples;  // Owned; samplers only
};

struct rn_meter_t {
  int label_count;
  rn_meter_buckets_t* buckets;  // Owned; samplers only
  rn_mutex_t mutex;             // guards |cells|
  rn_meter_cell_t* cells;       // cells are freed with the meter
};

static size_t buckets_size(int count) {
  return sizeof(rn_meter_buckets_t) + (size_t)count * sizeof(double);
}
static size_t samples_size(const rn_meter_t* meter) {
  return sizeof(samples_t) + (size_t)meter->buckets->count * sizeof(double);
}

static void free_text(char* text) {
  if (text) rn_free(rn_allocator_default(), text, strlen(text) + 1);
}

static void cell_destroy(rn_meter_cell_t* cell) {
  if (!cell) return;
  for (int i = 0; i < RN_METER_MAX_LABELS; ++i) free_text(cell->labels[i]);
  if (cell->samples) rn_free(rn_allocator_default(), cell->samples, samples_size(cell->meter));
  rn_strbuf_clear(&cell->text);
  rn_mutex_destroy(&cell->mutex);
  RN_FREE(rn_allocator_default(), cell);
}

void rn_meter_destroy(rn_meter_t* meter) {
  if (!meter) return;
  for (rn_meter_cell_t *cell = meter->cells, *next = NULL; cell; cell = next) {
    next = cell->next;
    cell_destroy(cell);
  }
  if (meter->buckets)
    rn_free(rn_allocator_default(), meter->buckets, buckets_size(meter->buckets->count));
  rn_mutex_destroy(&meter->mutex);
  RN_FREE(rn_allocator_default(), meter);
}

rn_status_t rn_meter_create(int label_count, const rn_meter_buckets_t* buckets, rn_meter_t** out) {
  rn_meter_t* meter = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &meter));
  meter->label_count = label_count;
  rn_mutex_init(&meter->mutex);
  if (buckets) {
    size_t size = buckets_size(buckets->count);
    rn_status_t status = rn_alloc(rn_allocator_default(), size, (void**)&meter->buckets);
    if (!rn_ok(status)) {
      rn_meter_destroy(meter);
      return status;
    }
    memcpy(meter->buckets, buckets, size);
  }
  *out = meter;
  return RN_OK;
}

static rn_status_t make_cell(const rn_meter_t* meter, const char* const* labels,
                             rn_meter_cell_t** out) {
  rn_meter_cell_t* cell = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &cell));
  cell->meter = meter;
  rn_mutex_init(&cell->mutex);
  rn_strbuf_init(&cell->text, rn_allocator_default());
  rn_status_t status = RN_OK;
  for (int i = 0; i < meter->label_count && rn_ok(status); ++i)
    status = rn_str_dup(rn_allocator_default(), rn_str(labels[i]), &cell->labels[i]);
  if (rn_ok(status) && meter->buckets)
    status = rn_alloc_zeroed(rn_allocator_default(), samples_size(meter), (void**)&cell->samples);
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

static bool has_labels(const rn_meter_cell_t* cell, const char* const* labels) {
  for (int i = 0; i < cell->meter->label_count; ++i)
    if (strcmp(cell->labels[i], labels[i]) != 0) return false;
  return true;
}

rn_meter_cell_t* rn_meter_cell(rn_meter_t* meter, const char* const* labels) {
  if (!meter) return NULL;
  for (int i = 0; i < meter->label_count; ++i)
    if (!labels[i]) return NULL;
  rn_mutex_lock(&meter->mutex);
  rn_meter_cell_t* cell = meter->cells;
  while (cell && !has_labels(cell, labels)) cell = cell->next;
  if (!cell) {
    rn_status_free(make_cell(meter, labels, &cell));
    if (cell) {
      cell->next = meter->cells;
      meter->cells = cell;
    }
  }
  rn_mutex_unlock(&meter->mutex);
  return cell;
}

rn_meter_buckets_t* rn_meter_buckets(double scale, double growth, int count) {
  if (!(scale > 0) || !(growth > 1) || count < 1 || count > 1 << 20) return NULL;
  rn_meter_buckets_t* buckets = NULL;
  rn_status_free(rn_alloc(rn_allocator_default(), buckets_size(count + 1), (void**)&buckets));
  if (!buckets) return NULL;
  buckets->count = count + 1;
  double limit = scale;
  for (int i = 0; i < count; ++i, limit *= growth) buckets->limits[i] = limit;
  buckets->limits[count] = DBL_MAX;
  return buckets;
}

void rn_meter_buckets_free(rn_meter_buckets_t* buckets) {
  if (buckets) rn_free(rn_allocator_default(), buckets, buckets_size(buckets->count));
}

void rn_meter_add(rn_meter_cell_t* cell, int64_t value) {
  if (cell) atomic_fetch_add_explicit(&cell->number, value, memory_order_relaxed);
}

void rn_meter_set(rn_meter_cell_t* cell, int64_t value) {
  if (cell) atomic_store_explicit(&cell->number, value, memory_order_relaxed);
}

int64_t rn_meter_get(rn_meter_cell_t* cell) {
  return cell ? atomic_load_explicit(&cell->number, memory_order_relaxed) : 0;
}

void rn_meter_set_text(rn_meter_cell_t* cell, rn_str_t text) {
  rn_mutex_lock(&cell->mutex);
  rn_strbuf_clear(&cell->text);
  rn_strbuf_append(&cell->text, text);
  if (cell->text.failed) rn_strbuf_clear(&cell->text);
  rn_mutex_unlock(&cell->mutex);
}

void rn_meter_get_text(rn_meter_cell_t* cell, rn_strbuf_t* out) {
  rn_mutex_lock(&cell->mutex);
  rn_strbuf_append(out, rn_strbuf_view(&cell->text));
  rn_mutex_unlock(&cell->mutex);
}

bool rn_meter_is_sampler(const rn_meter_cell_t* cell) { return cell && cell->samples; }

void rn_meter_sample(rn_meter_cell_t* cell, double value) {
  const rn_meter_buckets_t* buckets = cell->meter->buckets;
  samples_t* samples = cell->samples;
  int bucket = 0;
  while (bucket < buckets->count - 1 && !(value < buckets->limits[bucket])) ++bucket;
  rn_mutex_lock(&cell->mutex);
  samples->counts[bucket] += 1;
  if (value < samples->min) samples->min = value;
  if (value > samples->max) samples->max = value;
  samples->number += 1;
  samples->sum += value;
  samples->squares += value * value;
  rn_mutex_unlock(&cell->mutex);
}

void rn_meter_write_samples(rn_meter_cell_t* cell, rn_strbuf_t* buf) {
  const rn_meter_buckets_t* buckets = cell->meter->buckets;
  const samples_t* samples = cell->samples;
  rn_mutex_lock(&cell->mutex);
  const double numbers[] = {samples->min, samples->max, samples->number, samples->sum,
                            samples->squares};
  for (uint32_t i = 0; i < 5; ++i)
    if (numbers[i] != 0) rn_pb_put_double(buf, HISTOGRAM_MIN + i, numbers[i]);
  size_t size = (size_t)buckets->count * sizeof(double);
  rn_pb_put_str(buf, HISTOGRAM_LIMITS, rn_str_n((const char*)buckets->limits, size));
  rn_pb_put_str(buf, HISTOGRAM_BUCKETS, rn_str_n((const char*)samples->counts, size));
  rn_mutex_unlock(&cell->mutex);
}
