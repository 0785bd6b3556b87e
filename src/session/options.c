// Reads the fields of a ConfigProto that a local session uses.
#include <stdlib.h>
#include <strings.h>

#include "proto/config.pb.h"
#include "proto/rewriter_config.pb.h"
#include "session/session.h"
#include "wire/decode.h"

// The devices that |experimental| makes of the visible cards. A card without limits stays whole.
static rn_status_t read_virtual(const rn_pb_GPUOptions_Experimental_t* experimental,
                                rn_gpu_options_t* gpu) {
  gpu->virtual_count = 0;
  gpu->split_count = (int)experimental->virtual_devices.count;
  for (uint32_t c = 0; c < experimental->virtual_devices.count; ++c) {
    const rn_pb_GPUOptions_Experimental_VirtualDevices_t* card =
        &experimental->virtual_devices.items[c];
    uint32_t parts = card->memory_limit_mb.count;
    for (uint32_t i = 0; i < (parts ? parts : 1); ++i) {
      float limit = parts ? card->memory_limit_mb.items[i] : 0;
      if (gpu->virtual_count == RN_MAX_GPUS)
        return rn_invalid_argument("virtual_devices lists more than %d devices", RN_MAX_GPUS);
      if (!(limit >= 0 && limit < 1e9f))
        return rn_invalid_argument("virtual_devices has a memory_limit_mb of %g", (double)limit);
      gpu->virtuals[gpu->virtual_count++] =
          (struct rn_virtual_gpu_t){(int32_t)c, (int64_t)((double)limit * 1048576)};
    }
  }
  return RN_OK;
}

static rn_status_t read_gpu_options(const rn_pb_GPUOptions_t* options, rn_gpu_options_t* gpu) {
  gpu->memory_fraction = options->per_process_gpu_memory_fraction;
  rn_str_t visible = options->visible_device_list;
  if (visible.size >= sizeof gpu->visible_devices)
    return rn_invalid_argument("visible_device_list has %zu bytes, more than %zu", visible.size,
                               sizeof gpu->visible_devices - 1);
  memcpy(gpu->visible_devices, visible.data ? visible.data : "", visible.size);
  gpu->visible_devices[visible.size] = 0;
  return options->experimental ? read_virtual(options->experimental, gpu) : RN_OK;
}

// Of two entries of one type the later one counts. Types with longer names do not exist.
static void read_count(rn_str_t type, int32_t count, rn_device_counts_t* counts) {
  int i = 0;
  while (i < counts->used && !rn_str_is(type, counts->rows[i].type)) ++i;
  if (i == RN_MAX_FACTORIES || type.size >= RN_MAX_DEVICE_TYPE) return;
  if (i == counts->used) counts->used++;
  memcpy(counts->rows[i].type, type.data ? type.data : "", type.size);
  counts->rows[i].type[type.size] = 0;
  counts->rows[i].count = count < 0 ? 0 : count;
}

static rn_status_t read_devices(const rn_pb_ConfigProto_t* config, rn_session_options_t* options) {
  for (uint32_t i = 0; i < config->device_count.count; ++i) {
    rn_str_t type = config->device_count.items[i].key;
    int32_t count = config->device_count.items[i].value;
    bool is_cpu = rn_str_is(type, "CPU"), is_null = rn_str_is(type, "NULL");
    if ((is_cpu || is_null) && (count < 0 || count > 32))
      return rn_invalid_argument("device_count of %.*s must be between 0 and 32, got %d",
                                 RN_STR_ARGS(type), count);
    if (is_cpu && count > 0) options->cpu_devices = count;
    if (is_null) options->null_devices = count;
    bool is_gpu = rn_str_is(type, "GPU");
    if (is_gpu) options->gpu.max_count = count < 0 ? 0 : count;
    if (!is_cpu && !is_null && !is_gpu) read_count(type, count, &options->counts);
  }
  return config->gpu_options ? read_gpu_options(config->gpu_options, &options->gpu) : RN_OK;
}

static bool is_on(rn_pb_RewriterConfig_Toggle_t toggle) {
  return toggle == rn_pb_RewriterConfig_ON || toggle == rn_pb_RewriterConfig_AGGRESSIVE;
}

// In TensorFlow, bfloat16 is for CPUs. Here it is for GPUs too, unless they are to use half.
static void read_precision(const rn_pb_RewriterConfig_t* rewrite, rn_precision_t* precision) {
  bool is_half = rewrite->auto_mixed_precision == rn_pb_RewriterConfig_DEFAULT
                     ? precision->gpu == RN_HALF
                     : is_on(rewrite->auto_mixed_precision);
  bool is_bfloat16 = is_on(rewrite->auto_mixed_precision_onednn_bfloat16) ||
                     is_on(rewrite->auto_mixed_precision_mkl);
  bool is_half_cpu = !is_bfloat16 && is_on(rewrite->auto_mixed_precision_cpu);
  const char* emulates = getenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_EMULATE_FP16");
  bool computes = emulates && (strcmp(emulates, "0") == 0 || strcasecmp(emulates, "false") == 0);
  *precision = (rn_precision_t){
      .gpu = is_half       ? RN_HALF
             : is_bfloat16 ? RN_BFLOAT16
                           : 0,
      .cpu = is_bfloat16   ? RN_BFLOAT16
             : is_half_cpu ? RN_HALF
                           : 0,
      .emulates_cpu = is_half_cpu && !computes,
  };
  if (rewrite->disable_meta_optimizer) *precision = (rn_precision_t){0};
}

static void read_graph_options(const rn_pb_GraphOptions_t* graph, rn_session_options_t* options) {
  if (graph->optimizer_options && graph->optimizer_options->opt_level == rn_pb_OptimizerOptions_L0)
    options->optimize = false;
  if (graph->rewrite_options && graph->rewrite_options->disable_meta_optimizer)
    options->optimize = false;
  if (graph->rewrite_options) read_precision(graph->rewrite_options, &options->precision);
  if (graph->rewrite_options &&
      graph->rewrite_options->use_plugin_optimizers == rn_pb_RewriterConfig_OFF)
    options->no_plugin_optimizers = true;
  options->cost_every = graph->build_cost_model;
  options->cost_after = graph->build_cost_model_after > 0 ? graph->build_cost_model_after : 0;
}

// Single-threaded executors of TensorFlow know no Switch and no Merge.
static void read_executor(rn_str_t type, rn_session_options_t* options) {
  if (rn_str_is(type, "SINGLE_THREADED_EXECUTOR")) options->calls.lowering = RN_LOWER_NEVER;
}

static rn_status_t read_config(const rn_pb_ConfigProto_t* config, rn_session_options_t* options) {
  options->intra_threads = config->intra_op_parallelism_threads;
  options->inter_threads = config->inter_op_parallelism_threads;
  options->allow_soft_placement = config->allow_soft_placement;
  options->log_device_placement = config->log_device_placement;
  options->timeout_ms = config->operation_timeout_in_ms;
  // Of a session_inter_op_thread_pool only the size matters.
  if (config->session_inter_op_thread_pool.count > 0 &&
      config->session_inter_op_thread_pool.items[0].num_threads > 0)
    options->inter_threads = config->session_inter_op_thread_pool.items[0].num_threads;
  if (config->experimental) read_executor(config->experimental->executor_type, options);
  if (config->experimental) options->collective_nccl = config->experimental->collective_nccl;
  if (config->graph_options) read_graph_options(config->graph_options, options);
  return read_devices(config, options);
}

bool rn_session_measures(const rn_session_options_t* options, int64_t before) {
  int64_t count = before - options->cost_after;
  return options->cost_every > 0 && count >= 0 && (count + 1) % options->cost_every == 0;
}

void rn_session_options_init(rn_session_options_t* options) {
  *options = (rn_session_options_t){.optimize = true, .cpu_devices = 1, .gpu = {.max_count = -1}};
  const char* mixed = getenv("TF_ENABLE_AUTO_MIXED_PRECISION");
  if (mixed && strcmp(mixed, "1") == 0) options->precision.gpu = RN_HALF;
}

rn_status_t rn_session_options_parse(rn_str_t bytes, rn_session_options_t* inout_options) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_pb_ConfigProto_t* config = NULL;
  rn_status_t status = RN_PB_DECODE(ConfigProto, bytes, NULL, &arena, &config);
  if (rn_ok(status)) {
    status = read_config(config, inout_options);
  } else if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    status = rn_invalid_argument("Unparseable ConfigProto");
  }
  rn_arena_clear(&arena);
  return status;
}
