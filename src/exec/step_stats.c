// Step statistics: see step_stats.h.
#include "exec/step_stats.h"

void rn_step_stats_init(rn_step_stats_t* stats, rn_allocator_t allocator, const rn_env_t* env) {
  *stats = (rn_step_stats_t){.allocator = allocator,
                             .wall_start_us = env->wall_us(env->self),
                             .start_ns = env->now_ns(env->self)};
  rn_mutex_init(&stats->mutex);
}

void rn_step_stats_clear(rn_step_stats_t* stats) {
  rn_vec_free(&stats->nodes, stats->allocator);
  rn_mutex_destroy(&stats->mutex);
}

void rn_step_stats_add(rn_step_stats_t* stats, const rn_node_stats_t* node) {
  rn_mutex_lock(&stats->mutex);
  rn_status_free(rn_vec_push(&stats->nodes, stats->allocator, *node));
  rn_mutex_unlock(&stats->mutex);
}
