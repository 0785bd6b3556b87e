// Metrics for clients: counters, gauges and samplers, each with one cell per combination of labels.
// Nothing is exported; clients read the cells.
//
// Any thread may use a meter and its cells, which live as long as the meter.
#ifndef RUNNEL_FRAMEWORK_METER_H_
#define RUNNEL_FRAMEWORK_METER_H_

#include "base/alloc.h"
#include "base/str.h"

enum { RN_METER_MAX_LABELS = 4 };

typedef struct rn_meter_t rn_meter_t;
typedef struct rn_meter_cell_t rn_meter_cell_t;
typedef struct rn_meter_buckets_t rn_meter_buckets_t;

// |count| bucket limits |scale|, |scale| * |growth|, …, and one bucket for everything above. NULL
// if the limits do not grow, or if memory is short.
rn_meter_buckets_t* rn_meter_buckets(double scale, double growth, int count);
void rn_meter_buckets_free(rn_meter_buckets_t* buckets);  // NULL is fine

// |buckets| are copied; with them the meter is a sampler.
RN_MUST_USE rn_status_t rn_meter_create(int label_count, const rn_meter_buckets_t* buckets,
                                        rn_meter_t** out);
void rn_meter_destroy(rn_meter_t* meter);  // NULL is fine
// The cell of these labels, made on first use. NULL for a NULL meter or label, or if memory is
// short.
rn_meter_cell_t* rn_meter_cell(rn_meter_t* meter, const char* const* labels);

// Counters and gauges; a NULL cell is fine, and is 0.
void rn_meter_add(rn_meter_cell_t* cell, int64_t value);
void rn_meter_set(rn_meter_cell_t* cell, int64_t value);
int64_t rn_meter_get(rn_meter_cell_t* cell);

// String gauges. The string is empty if memory was short.
void rn_meter_set_text(rn_meter_cell_t* cell, rn_str_t text);
void rn_meter_get_text(rn_meter_cell_t* cell, rn_strbuf_t* out);

// Samplers, of cells for which rn_meter_is_sampler is true.
bool rn_meter_is_sampler(const rn_meter_cell_t* cell);
void rn_meter_sample(rn_meter_cell_t* cell, double value);
// Appends a serialised HistogramProto with all buckets, also those that nothing fell into.
void rn_meter_write_samples(rn_meter_cell_t* cell, rn_strbuf_t* buf);

#endif  // RUNNEL_FRAMEWORK_METER_H_
