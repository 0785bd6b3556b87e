// Automatic placement of a session: see placement.h.
#include "session/placement.h"

#include "base/fs.h"
#include "proto/allocation_description.pb.h"
#include "proto/attr_value.pb.h"
#include "proto/config.pb.h"
#include "proto/rewriter_config.pb.h"
#include "proto/step_stats.pb.h"
#include "proto/tensor_description.pb.h"
#include "wire/decode.h"

typedef rn_pb_RewriterConfig_CustomGraphOptimizer_t placement_request_t;

// A larger file is no trace of one step.
#define MOST_FILE_BYTES ((size_t)1 << 30)

// As much faster must a placement be than the client's to be taken.
#define DEFAULT_MARGIN 0.03

static int64_t output_bytes(const rn_pb_NodeExecStats_t* node) {
  for (uint32_t o = 0; o < node->output.count; ++o) {
    const rn_pb_NodeOutput_t* output = &node->output.items[o];
    if (output->slot != 0 || !output->tensor_description) continue;
    const rn_pb_AllocationDescription_t* memory =
        output->tensor_description->allocation_description;
    return memory && memory->requested_bytes > 0 ? memory->requested_bytes : 0;
  }
  return 0;
}

static rn_status_t add_entry(rn_auto_place_t* automatic, rn_str_t device,
                             const rn_pb_NodeExecStats_t* node, int32_t step) {
  rn_trace_entry_t entry = {.device = device, .bytes = output_bytes(node), .step = step};
  // Stock writes both; older versions microseconds only.
  entry.ns = node->op_end_rel_nanos - node->op_start_rel_nanos;
  if (entry.ns <= 0) {
    int64_t us = 0;
    if (!rn_mul_i64_ok(node->op_end_rel_micros - node->op_start_rel_micros, 1000, &us)) us = 0;
    entry.ns = us > 0 ? us : 0;
  }
  RN_RETURN_IF_ERROR(rn_arena_str(&automatic->arena, node->node_name, &entry.node));
  return rn_vec_push(&automatic->traces, automatic->allocator, entry);
}

static rn_status_t add_steps(rn_auto_place_t* automatic, const rn_pb_StepStats_t* stats) {
  int32_t step = 0;
  if (automatic->traces.count) step = automatic->traces.items[automatic->traces.count - 1].step + 1;
  for (uint32_t d = 0; d < stats->dev_stats.count; ++d) {
    const rn_pb_DeviceStepStats_t* device = &stats->dev_stats.items[d];
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_str(&automatic->arena, device->device, &name));
    for (uint32_t n = 0; n < device->node_stats.count; ++n)
      RN_RETURN_IF_ERROR(add_entry(automatic, name, &device->node_stats.items[n], step));
  }
  return RN_OK;
}

rn_status_t rn_placement_add_trace(rn_auto_place_t* automatic, rn_str_t run_metadata) {
  rn_arena_t arena;
  rn_arena_init(&arena, automatic->allocator);
  rn_pb_RunMetadata_t* metadata = NULL;
  rn_status_t status = RN_PB_DECODE(RunMetadata, run_metadata, NULL, &arena, &metadata);
  if (rn_ok(status) && (!metadata->step_stats || !metadata->step_stats->dev_stats.count))
    status = rn_invalid_argument(
        "a RunMetadata without step_stats tells no costs; run the step "
        "with trace_level FULL_TRACE");
  if (rn_ok(status)) status = add_steps(automatic, metadata->step_stats);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_placement_add_file(rn_auto_place_t* automatic, const rn_env_t* env,
                                  const char* path) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, automatic->allocator);
  rn_status_t status = rn_fs_read(env, path, MOST_FILE_BYTES, &bytes);
  if (rn_ok(status)) {
    rn_str_t view = rn_strbuf_view(&bytes);
    status = rn_costs_is_file(view) ? rn_costs_read(automatic->costs, view)
                                    : rn_placement_add_trace(automatic, view);
    status = rn_status_annotate(status, " ('%s')", path);
  }
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t add_files(rn_auto_place_t* automatic, const rn_env_t* env, rn_str_t paths) {
  while (paths.size) {
    rn_str_t path = rn_str_trim(rn_str_split(&paths, ',')), copy;
    if (!path.size) continue;
    RN_RETURN_IF_ERROR(rn_fs_check_name(path));
    RN_RETURN_IF_ERROR(rn_arena_str(&automatic->arena, path, &copy));
    RN_RETURN_IF_ERROR(rn_placement_add_file(automatic, env, copy.data));
  }
  return RN_OK;
}

static rn_status_t read_speeds(rn_auto_place_t* automatic, rn_str_t text) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&automatic->arena, RN_FLEET_MOST_DEVICES, &automatic->speeds));
  while (text.size) {
    rn_str_t number = rn_str_trim(rn_str_split(&text, ','));
    double speed;
    if (!rn_str_to_f64(number, &speed) || !(speed > 0) || speed > 1e6 ||
        automatic->speed_count == RN_FLEET_MOST_DEVICES)
      return rn_invalid_argument("%s: speeds must be positive numbers, one per device, not '%.*s'",
                                 RN_PLACEMENT_OPTIMIZER, RN_STR_ARGS(number));
    automatic->speeds[automatic->speed_count++] = speed;
  }
  return RN_OK;
}

static rn_status_t read_parameter(rn_auto_place_t* automatic, const rn_env_t* env, rn_str_t key,
                                  const rn_pb_AttrValue_t* value) {
  int32_t kind = value ? value->value_case : 0;
  if (rn_str_is(key, "costs") && kind == rn_pb_AttrValue_s_field)
    return add_files(automatic, env, value->s);
  if (rn_str_is(key, "step") && kind == rn_pb_AttrValue_s_field)
    return rn_arena_str(&automatic->arena, value->s, &automatic->step);
  if (rn_str_is(key, "speeds") && kind == rn_pb_AttrValue_s_field && !automatic->speeds)
    return read_speeds(automatic, value->s);
  if (rn_str_is(key, "threads") && kind == rn_pb_AttrValue_i_field && value->i > 0 &&
      value->i <= 1024) {
    automatic->lanes = (int32_t)value->i;
    return RN_OK;
  }
  if (rn_str_is(key, "apart") && kind == rn_pb_AttrValue_b_field) {
    automatic->is_apart = value->b;
    return RN_OK;
  }
  if (rn_str_is(key, "margin") && kind == rn_pb_AttrValue_f_field && value->f >= 0 &&
      value->f < 1) {
    automatic->margin = (double)value->f;
    return RN_OK;
  }
  return rn_invalid_argument(
      "%s has no parameter '%.*s' with such a value; it has the strings costs, step and speeds, "
      "the "
      "number threads, the fraction margin and the flag apart",
      RN_PLACEMENT_OPTIMIZER, RN_STR_ARGS(key));
}

static rn_status_t fill(rn_auto_place_t* automatic, const rn_env_t* env,
                        const placement_request_t* asked) {
  automatic->margin = DEFAULT_MARGIN;
  for (uint32_t i = 0; i < asked->parameter_map.count; ++i)
    RN_RETURN_IF_ERROR(read_parameter(automatic, env, asked->parameter_map.items[i].key,
                                      asked->parameter_map.items[i].value));
  return RN_OK;
}

static const placement_request_t* find_asked(const rn_pb_ConfigProto_t* config) {
  if (!config->graph_options || !config->graph_options->rewrite_options) return NULL;
  const rn_pb_RewriterConfig_t* rewrite = config->graph_options->rewrite_options;
  for (uint32_t i = 0; i < rewrite->custom_optimizers.count; ++i)
    if (rn_str_is(rewrite->custom_optimizers.items[i].name, RN_PLACEMENT_OPTIMIZER))
      return &rewrite->custom_optimizers.items[i];
  return NULL;
}

rn_status_t rn_placement_create(rn_str_t config, const rn_env_t* env, rn_allocator_t allocator,
                                rn_auto_place_t** out) {
  *out = NULL;
  if (!config.size) return RN_OK;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_pb_ConfigProto_t* decoded = NULL;
  const placement_request_t* asked = NULL;
  rn_status_t status = RN_PB_DECODE(ConfigProto, config, NULL, &arena, &decoded);
  if (rn_ok(status)) asked = find_asked(decoded);
  if (asked) status = rn_auto_place_create(allocator, out);
  if (rn_ok(status) && asked) status = fill(*out, env, asked);
  if (!rn_ok(status)) {
    rn_auto_place_destroy(*out);
    *out = NULL;
  }
  rn_arena_clear(&arena);
  return status;
}
