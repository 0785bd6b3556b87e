// The information that a kernel is made with. See kernel_init.h.
#include "exec/kernel_init.h"

rn_status_t rn_exec_kernel_init(rn_ir_t* ir, const rn_ir_node_t* node, rn_device_t* device,
                                rn_device_t* host, const rn_env_t* env, rn_allocator_t allocator,
                                rn_kernel_init_t* out) {
  size_t count = (size_t)node->input_count;
  rn_dtype_t* types = NULL;
  rn_shape_t* shapes = NULL;
  rn_kernel_source_t* sources = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count, &sources));
  for (size_t i = 0; i < count; ++i) {
    const rn_ir_node_t* source = &ir->nodes.items[node->inputs[i].node];
    types[i] = source->types[node->inputs[i].output];
    shapes[i] = source->shapes[node->inputs[i].output];
    sources[i] = (rn_kernel_source_t){rn_ir_source_name(ir, source), node->inputs[i].output};
  }
  *out = (rn_kernel_init_t){.op = node->op,
                            .node = node->name,
                            .attrs = node->attrs,
                            .extra_count = node->extra_count,
                            .extras = node->extras,
                            .input_count = node->input_count,
                            .input_types = types,
                            .output_count = node->output_count,
                            .output_types = node->types,
                            .input_shapes = shapes,
                            .output_shapes = node->shapes,
                            .sources = sources,
                            .producer = ir->producer,
                            .device = device,
                            .resources = device->resources,
                            .device_name = device->name,
                            .allocator = allocator,
                            .device_memory = device->kernel_memory,
                            .host_memory = rn_device_host_memory(device, host),
                            .is_host = device->is_host,
                            .env = env};
  return RN_OK;
}
