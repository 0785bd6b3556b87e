// Step statistics: see step_stats.h.
#include "exec/step_stats.h"

void rn_step_stats_init(rn_step_stats_t* stats, rn_allocator_t allocator, const rn_env_t* env) {
  *stats = (rn_step_stats_t){.allocator = allocator,
                             .wall_start_us = env->wall_us(env->self),
                             .start_ns = env->now_ns(env->self)};
  rn_mutex_init(&stats->mutex);
  rn_arena_init(&stats->arena, allocator);
}

void rn_step_stats_clear(rn_step_stats_t* stats) {
  rn_vec_free(&stats->nodes, stats->allocator);
  rn_vec_free(&stats->outputs, stats->allocator);
  rn_arena_clear(&stats->arena);
  rn_mutex_destroy(&stats->mutex);
}

static rn_status_t add_output_locked(rn_step_stats_t* stats, int32_t slot,
                                     const rn_tensor_t* tensor) {
  rn_output_stats_t output = {.slot = slot,
                              .dtype = tensor->dtype,
                              .bytes = (int64_t)rn_tensor_bytes(tensor),
                              .data = tensor->data};
  RN_RETURN_IF_ERROR(rn_shape_copy(&stats->arena, rn_tensor_shape(tensor), &output.shape));
  return rn_vec_push(&stats->outputs, stats->allocator, output);
}

void rn_step_stats_add(rn_step_stats_t* stats, rn_node_stats_t node, const rn_tensor_t* outputs,
                       int32_t output_count) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&stats->mutex);
  node.first_output = stats->outputs.count;
  for (int32_t i = 0; rn_ok(status) && i < output_count; ++i)
    if (rn_tensor_is_set(&outputs[i]) && !outputs[i].is_ref)
      status = add_output_locked(stats, i, &outputs[i]);
  node.output_count = stats->outputs.count - node.first_output;
  for (size_t i = 0; i < node.output_count && !node.is_given; ++i)
    node.output_bytes += stats->outputs.items[node.first_output + i].bytes;
  if (rn_ok(status)) status = rn_vec_push(&stats->nodes, stats->allocator, node);
  rn_mutex_unlock(&stats->mutex);
  rn_status_free(status);
}
