// Encodes step statistics: see step_stats_proto.h.
#include "session/step_stats_proto.h"

#include <stdio.h>

#include "device/device.h"
#include "proto/step_stats.pb.h"
#include "proto/tensor_shape.pb.h"
#include "wire/writer.h"

#define NS_PER_US 1000

static void put(rn_strbuf_t* buf, uint32_t number, int64_t value) {
  if (value) rn_pb_put_uint(buf, number, (uint64_t)value);
}

void rn_step_stats_write_shape(rn_strbuf_t* buf, rn_shape_t shape) {
  for (int d = 0; d < shape.rank; ++d) {
    size_t dim = rn_pb_begin(buf, rn_pb_TensorShapeProto_dim_field);
    put(buf, rn_pb_TensorShapeProto_Dim_size_field, shape.dims[d]);
    rn_pb_end(buf, dim);
  }
}

// The name of a device's allocator in stock: "cpu" for the host, "GPU_0_bfc" for a card.
typedef struct allocator_name_t {
  char text[32];
} allocator_name_t;

static allocator_name_t allocator_of(rn_str_t device) {
  allocator_name_t name = {"cpu"};
  rn_device_spec_t spec;
  if (rn_device_spec_parse(device, &spec) && rn_str_is(spec.type, "GPU"))
    snprintf(name.text, sizeof name.text, "GPU_%d_bfc", spec.index);
  return name;
}

static void write_output(rn_strbuf_t* buf, const rn_output_stats_t* output,
                         const allocator_name_t* allocator) {
  size_t mark = rn_pb_begin(buf, rn_pb_NodeExecStats_output_field);
  put(buf, rn_pb_NodeOutput_slot_field, output->slot);
  size_t tensor = rn_pb_begin(buf, rn_pb_NodeOutput_tensor_description_field);
  put(buf, rn_pb_TensorDescription_dtype_field, output->dtype);
  size_t shape = rn_pb_begin(buf, rn_pb_TensorDescription_shape_field);
  rn_step_stats_write_shape(buf, output->shape);
  rn_pb_end(buf, shape);
  size_t allocation = rn_pb_begin(buf, rn_pb_TensorDescription_allocation_description_field);
  put(buf, rn_pb_AllocationDescription_requested_bytes_field, output->bytes);
  put(buf, rn_pb_AllocationDescription_allocated_bytes_field, output->bytes);
  rn_pb_put_str(buf, rn_pb_AllocationDescription_allocator_name_field, rn_str(allocator->text));
  put(buf, rn_pb_AllocationDescription_ptr_field, (int64_t)(uintptr_t)output->data);
  rn_pb_end(buf, allocation);
  rn_pb_end(buf, tensor);
  rn_pb_end(buf, mark);
}

// The node's outputs, as if they had been allocated when the node began.
static void write_memory(rn_strbuf_t* buf, int64_t bytes, int64_t start_us,
                         const allocator_name_t* allocator) {
  size_t memory = rn_pb_begin(buf, rn_pb_NodeExecStats_memory_field);
  rn_pb_put_str(buf, rn_pb_AllocatorMemoryUsed_allocator_name_field, rn_str(allocator->text));
  put(buf, rn_pb_AllocatorMemoryUsed_total_bytes_field, bytes);
  put(buf, rn_pb_AllocatorMemoryUsed_peak_bytes_field, bytes);
  put(buf, rn_pb_AllocatorMemoryUsed_live_bytes_field, bytes);
  size_t record = rn_pb_begin(buf, rn_pb_AllocatorMemoryUsed_allocation_records_field);
  put(buf, rn_pb_AllocationRecord_alloc_micros_field, start_us);
  put(buf, rn_pb_AllocationRecord_alloc_bytes_field, bytes);
  rn_pb_end(buf, record);
  rn_pb_end(buf, memory);
}

// A label for nodes with large outputs: total and peak bytes come first.
static void write_label(rn_strbuf_t* buf, const rn_node_stats_t* node,
                        const allocator_name_t* allocator) {
  size_t label = rn_pb_begin(buf, rn_pb_NodeExecStats_timeline_label_field);
  double megabytes = (double)node->output_bytes / (1 << 20);
  if (megabytes >= 0.1)
    rn_strbuf_printf(buf, "[%s %.1fMB %.1fMB] ", allocator->text, megabytes, megabytes);
  if (node->label.size)
    rn_strbuf_append(buf, node->label);
  else
    rn_strbuf_printf(buf, "%.*s = %s()", RN_STR_ARGS(node->node), node->op ? node->op : "");
  rn_pb_end(buf, label);
}

static void write_node(rn_strbuf_t* buf, const rn_step_stats_t* stats,
                       const rn_node_stats_t* node) {
  int64_t start_ns = stats->wall_start_us * NS_PER_US + (node->start_ns - stats->start_ns);
  int64_t length_ns = node->end_ns - node->start_ns;
  int64_t length_us = length_ns / NS_PER_US;
  if (length_us == 0) length_us = 1;  // timelines do not show zero-length events
  size_t mark = rn_pb_begin(buf, rn_pb_DeviceStepStats_node_stats_field);
  rn_pb_put_str(buf, rn_pb_NodeExecStats_node_name_field, node->node);
  put(buf, rn_pb_NodeExecStats_all_start_micros_field, start_ns / NS_PER_US);
  put(buf, rn_pb_NodeExecStats_op_end_rel_micros_field, length_us);
  put(buf, rn_pb_NodeExecStats_all_end_rel_micros_field, length_us);
  allocator_name_t allocator = allocator_of(node->device);
  if (node->output_bytes) write_memory(buf, node->output_bytes, start_ns / NS_PER_US, &allocator);
  for (size_t i = 0; i < node->output_count; ++i)
    write_output(buf, &stats->outputs.items[node->first_output + i], &allocator);
  write_label(buf, node, &allocator);
  put(buf, rn_pb_NodeExecStats_scheduled_micros_field, start_ns / NS_PER_US);
  put(buf, rn_pb_NodeExecStats_thread_id_field, node->thread);
  rn_pb_end(buf, rn_pb_begin(buf, rn_pb_NodeExecStats_memory_stats_field));
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
    // There are few devices, so the previous entry usually decides.
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
