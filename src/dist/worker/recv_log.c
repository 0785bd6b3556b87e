// The log of received values: see recv_log.h.
#include "dist/worker/recv_log.h"

#include <stdio.h>

#include "proto/allocation_description.pb.h"
#include "proto/step_stats.pb.h"
#include "proto/tensor_description.pb.h"
#include "proto/worker.pb.h"
#include "wire/writer.h"

#define MAX_ROWS 16384

void rn_recv_log_init(rn_recv_log_t* log, rn_allocator_t allocator) {
  *log = (rn_recv_log_t){.allocator = allocator};
  rn_mutex_init(&log->mutex);
}

void rn_recv_log_clear(rn_recv_log_t* log) {
  rn_mutex_lock(&log->mutex);
  for (size_t i = 0; i < log->rows.count; ++i) rn_strbuf_clear(&log->rows.items[i].key);
  rn_vec_free(&log->rows, log->allocator);
  rn_mutex_unlock(&log->mutex);
}

void rn_recv_log_destroy(rn_recv_log_t* log) {
  rn_recv_log_clear(log);
  rn_mutex_destroy(&log->mutex);
}

void rn_recv_log_switch(rn_recv_log_t* log, bool is_on) {
  if (is_on)
    log->switched_on++;
  else if (--log->switched_on < 0)
    log->switched_on++;  // switched off more often than on
}

// Drops the older half of the rows, which no one has fetched.
static void drop_oldest(rn_recv_log_t* log) {
  for (size_t i = 0; i < MAX_ROWS / 2; ++i) rn_strbuf_clear(&log->rows.items[i].key);
  log->rows.count -= MAX_ROWS / 2;
  memmove(log->rows.items, log->rows.items + MAX_ROWS / 2,
          log->rows.count * sizeof *log->rows.items);
}

void rn_recv_log_add(rn_recv_log_t* log, int64_t step, rn_str_t key, int64_t bytes,
                     int64_t start_us, int64_t end_us) {
  rn_recv_row_t row = {.step = step, .bytes = bytes, .start_us = start_us, .end_us = end_us};
  rn_strbuf_init(&row.key, log->allocator);
  rn_strbuf_append(&row.key, key);
  rn_status_t status = rn_strbuf_status(&row.key);
  rn_mutex_lock(&log->mutex);
  if (log->rows.count >= MAX_ROWS) drop_oldest(log);
  if (rn_ok(status)) status = rn_vec_push(&log->rows, log->allocator, row);
  rn_mutex_unlock(&log->mutex);
  if (!rn_ok(status)) rn_strbuf_clear(&row.key);
  rn_status_free(status);
}

static rn_str_t receiver_of(const rn_recv_row_t* row) {
  rn_str_t key = rn_strbuf_view(&row->key);
  rn_str_split(&key, ';');
  rn_str_split(&key, ';');
  return rn_str_split(&key, ';');
}

static void write_row(const rn_recv_row_t* row, rn_strbuf_t* out) {
  rn_str_t key = rn_strbuf_view(&row->key);
  rn_str_t from = rn_str_split(&key, ';');
  rn_str_split(&key, ';');
  rn_str_t to = rn_str_split(&key, ';'), edge = rn_str_split(&key, ';');
  int64_t took = row->end_us > row->start_us ? row->end_us - row->start_us : 0;
  size_t node = rn_pb_begin(out, rn_pb_DeviceStepStats_node_stats_field);
  rn_pb_put_str(out, rn_pb_NodeExecStats_node_name_field, RN_STR("RecvTensor"));
  rn_pb_put_uint(out, rn_pb_NodeExecStats_all_start_micros_field, (uint64_t)row->start_us);
  rn_pb_put_uint(out, rn_pb_NodeExecStats_op_end_rel_micros_field, (uint64_t)took);
  rn_pb_put_uint(out, rn_pb_NodeExecStats_all_end_rel_micros_field, (uint64_t)took);
  size_t output = rn_pb_begin(out, rn_pb_NodeExecStats_output_field);
  size_t tensor = rn_pb_begin(out, rn_pb_NodeOutput_tensor_description_field);
  size_t allocation = rn_pb_begin(out, rn_pb_TensorDescription_allocation_description_field);
  rn_pb_put_uint(out, rn_pb_AllocationDescription_requested_bytes_field, (uint64_t)row->bytes);
  rn_pb_end(out, allocation);
  rn_pb_end(out, tensor);
  rn_pb_end(out, output);
  char rate[64] = "";
  float rate_of = took ? 8.0f * (float)row->bytes / (float)took : 0;
  if (took) snprintf(rate, sizeof rate, "[%fMb/s] ", (double)rate_of);
  size_t label = rn_pb_begin(out, rn_pb_NodeExecStats_timeline_label_field);
  rn_strbuf_printf(out, "[%lldB] %s%.*s from %.*s to %.*s", (long long)row->bytes, rate,
                   RN_STR_ARGS(edge), RN_STR_ARGS(from), RN_STR_ARGS(to));
  rn_pb_end(out, label);
  rn_pb_end(out, node);
}

// Writes the rows of |first|'s device, starting there.
static void write_device(rn_recv_log_t* log, size_t first, rn_strbuf_t* out) {
  rn_str_t name = receiver_of(&log->rows.items[first]);
  size_t device = rn_pb_begin(out, rn_pb_StepStats_dev_stats_field);
  rn_pb_put_str(out, rn_pb_DeviceStepStats_device_field, name);
  for (size_t i = first; i < log->rows.count; ++i) {
    rn_recv_row_t* row = &log->rows.items[i];
    if (row->step != log->rows.items[first].step || !rn_str_eq(receiver_of(row), name)) continue;
    write_row(row, out);
    row->is_taken = true;
  }
  rn_pb_end(out, device);
}

static void drop_taken(rn_recv_log_t* log) {
  size_t kept = 0;
  for (size_t i = 0; i < log->rows.count; ++i) {
    if (log->rows.items[i].is_taken)
      rn_strbuf_clear(&log->rows.items[i].key);
    else
      log->rows.items[kept++] = log->rows.items[i];
  }
  log->rows.count = kept;
}

void rn_recv_log_take(rn_recv_log_t* log, int64_t step, rn_strbuf_t* out) {
  bool is_any = false;
  size_t labeled = 0, stats = 0;
  rn_mutex_lock(&log->mutex);
  for (size_t i = 0; i < log->rows.count; ++i) {
    if (log->rows.items[i].step != step || log->rows.items[i].is_taken) continue;
    if (!is_any) {
      labeled = rn_pb_begin(out, rn_pb_LoggingResponse_step_field);
      rn_pb_put_uint(out, rn_pb_LabeledStepStats_step_id_field, (uint64_t)step);
      stats = rn_pb_begin(out, rn_pb_LabeledStepStats_step_stats_field);
    }
    is_any = true;
    write_device(log, i, out);
  }
  if (is_any) {
    rn_pb_end(out, stats);
    rn_pb_end(out, labeled);
    drop_taken(log);
  }
  rn_mutex_unlock(&log->mutex);
}
