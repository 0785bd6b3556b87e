// Statistics as messages: see step_stats_proto.h.
#include "session/step_stats_proto.h"

#include "proto/step_stats.pb.h"
#include "wire/writer.h"

#define NS_PER_US 1000

static void put(rn_strbuf_t* buf, uint32_t number, int64_t value) {
  if (value) rn_pb_put_uint(buf, number, (uint64_t)value);
}

static void write_node(rn_strbuf_t* buf, const rn_step_stats_t* stats,
                       const rn_node_stats_t* node) {
  int64_t start_ns = stats->wall_start_us * NS_PER_US + (node->start_ns - stats->start_ns);
  int64_t length_ns = node->end_ns - node->start_ns;
  int64_t length_us = length_ns / NS_PER_US;
  if (length_us == 0) length_us = 1;  // timelines do not show what took no time
  size_t mark = rn_pb_begin(buf, rn_pb_DeviceStepStats_node_stats_field);
  rn_pb_put_str(buf, rn_pb_NodeExecStats_node_name_field, node->node);
  put(buf, rn_pb_NodeExecStats_all_start_micros_field, start_ns / NS_PER_US);
  put(buf, rn_pb_NodeExecStats_op_end_rel_micros_field, length_us);
  put(buf, rn_pb_NodeExecStats_all_end_rel_micros_field, length_us);
  if (node->output_bytes) {
    size_t memory = rn_pb_begin(buf, rn_pb_NodeExecStats_memory_field);
    rn_pb_put_str(buf, rn_pb_AllocatorMemoryUsed_allocator_name_field, RN_STR("cpu"));
    put(buf, rn_pb_AllocatorMemoryUsed_total_bytes_field, node->output_bytes);
    put(buf, rn_pb_AllocatorMemoryUsed_peak_bytes_field, node->output_bytes);
    rn_pb_end(buf, memory);
  }
  size_t label = rn_pb_begin(buf, rn_pb_NodeExecStats_timeline_label_field);
  rn_strbuf_append(buf, node->node);
  rn_strbuf_printf(buf, " = %s()", node->op ? node->op : "");
  rn_pb_end(buf, label);
  put(buf, rn_pb_NodeExecStats_scheduled_micros_field, start_ns / NS_PER_US);
  put(buf, rn_pb_NodeExecStats_thread_id_field, node->thread);
  put(buf, rn_pb_NodeExecStats_all_start_nanos_field, start_ns);
  put(buf, rn_pb_NodeExecStats_op_end_rel_nanos_field, length_ns);
  put(buf, rn_pb_NodeExecStats_all_end_rel_nanos_field, length_ns);
  put(buf, rn_pb_NodeExecStats_scheduled_nanos_field, start_ns);
  rn_pb_end(buf, mark);
}

// Whether an entry before |index| is of the same device.
static bool is_written(const rn_step_stats_t* stats, size_t index) {
  for (size_t i = 0; i < index; ++i) {
    if (rn_str_eq(stats->nodes.items[i].device, stats->nodes.items[index].device)) return true;
  }
  return false;
}

void rn_step_stats_write(const rn_step_stats_t* stats, rn_strbuf_t* buf) {
  for (size_t i = 0; i < stats->nodes.count; ++i) {
    rn_str_t device = stats->nodes.items[i].device;
    // Devices are few, so nearly always the entry before this one tells.
    if (i > 0 && rn_str_eq(device, stats->nodes.items[i - 1].device)) continue;
    if (is_written(stats, i)) continue;
    size_t mark = rn_pb_begin(buf, rn_pb_StepStats_dev_stats_field);
    rn_pb_put_str(buf, rn_pb_DeviceStepStats_device_field, device);
    for (size_t j = i; j < stats->nodes.count; ++j)
      if (rn_str_eq(stats->nodes.items[j].device, device))
        write_node(buf, stats, &stats->nodes.items[j]);
    rn_pb_end(buf, mark);
  }
}
