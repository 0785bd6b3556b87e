// Rewrites of pipelines, and the passes that need no new functions: see rewrite.h.
#include "kernels/cpu/dataset/rewrite.h"

#include "framework/pipeline_proto.h"
#include "kernels/cpu/dataset/listing.h"
#include "kernels/cpu/dataset/remake.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define MAX_DEPTH 256  // nesting of datasets

static const char* const maps[] = {"MapDataset", NULL};
static const char* const all_maps[] = {"MapDataset", "ParallelMapDatasetV2", NULL};
static const char* const filters[] = {"FilterDataset", NULL};
static const char* const batches[] = {"BatchDatasetV2", NULL};
static const char* const carriers[] = {"OptionsDataset", NULL};

bool rn_data_is_a(const rn_dataset_t* dataset, const char* const* ops) {
  for (; *ops; ++ops)
    if (strcmp(dataset->node->op->name, *ops) == 0) return dataset->node->attrs && dataset->inputs;
  return false;
}

static rn_dataset_t* input_of(const rn_dataset_t* dataset) {
  const rn_tensor_t* input = rn_data_input(dataset, "input_dataset", NULL);
  return input ? rn_data_in(input) : NULL;
}

static bool captures(const rn_dataset_t* dataset) {
  int32_t count = 0;
  return rn_data_input(dataset, "other_arguments", &count) && count > 0;
}

// Passes.
static void keep(rn_dataset_t* dataset, rn_dataset_t** out) {
  rn_object_retain(&dataset->object);
  *out = dataset;
}

static bool counts_nothing(const rn_dataset_t* dataset) {
  static const struct {
    const char *op, *input;
    int64_t value;
  } rows[] = {{"SkipDataset", "count", 0},
              {"TakeDataset", "count", -1},
              {"RepeatDataset", "count", 1},
              {"ShardDataset", "num_shards", 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    int64_t value = 0;
    if (strcmp(dataset->node->op->name, rows[i].op) != 0 || !dataset->inputs) continue;
    rn_status_t status = rn_data_scalar(dataset, rows[i].input, &value);
    bool is_read = rn_ok(status);
    rn_status_free(status);
    return is_read && (value == rows[i].value || (rows[i].value < 0 && value < 0));
  }
  return false;
}

static rn_status_t drop_noops(rn_dataset_t* dataset, rn_dataset_t** out) {
  rn_dataset_t* input = input_of(dataset);
  rn_data_body_t body = {0};
  if (!input) return RN_OK;
  if (rn_data_is_a(dataset, all_maps) && !captures(dataset))
    RN_RETURN_IF_ERROR(rn_data_body_of(dataset, "f", &body));
  if (counts_nothing(dataset) || (body.is_identity && !body.is_stateful)) keep(input, out);
  return RN_OK;
}

static rn_status_t number(const rn_dataset_t* like, int64_t value, rn_tensor_t* out) {
  return rn_data_make_scalar(like->node->memory, RN_INT64, value, out);
}

// |dataset| as an |op| with the further input -1, the degree of parallelism that the runtime
// chooses.
static rn_status_t in_parallel(rn_dataset_t* dataset, const char* op, rn_dataset_t** out) {
  rn_data_node_t* node = dataset->node;
  rn_tensor_t degree = {0};
  const rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(number(dataset, RN_DATA_AUTOTUNE, &degree));
  rn_status_t status = RN_NEW_ARRAY(node->allocator, (size_t)node->input_count + 1, &inputs);
  for (int32_t i = 0; rn_ok(status) && i < node->input_count; ++i) inputs[i] = &dataset->inputs[i];
  rn_data_change_t change = {.like = dataset, .op = op};
  if (rn_ok(status)) {
    inputs[node->input_count] = &degree;
    status = rn_data_remake(&change, inputs, node->input_count + 1, out);
  }
  RN_FREE_ARRAY(node->allocator, inputs, node->input_count + 1);
  rn_tensor_clear(&degree);
  return status;
}

static rn_status_t parallel_function(rn_dataset_t* dataset, const char* attr, const char* op,
                                     rn_dataset_t** out) {
  rn_data_body_t body;
  RN_RETURN_IF_ERROR(rn_data_body_of(dataset, attr, &body));
  return body.is_stateful ? RN_OK : in_parallel(dataset, op, out);
}

static rn_status_t parallel_maps(rn_dataset_t* dataset, rn_dataset_t** out) {
  if (!rn_data_is_a(dataset, maps) || rn_data_flag(dataset, "force_synchronous")) return RN_OK;
  return parallel_function(dataset, "f", "ParallelMapDatasetV2", out);
}

static rn_status_t parallel_filters(rn_dataset_t* dataset, rn_dataset_t** out) {
  if (!rn_data_is_a(dataset, filters)) return RN_OK;
  return parallel_function(dataset, "predicate", "ParallelFilterDataset", out);
}

// A batch of a map: one dataset that does both.
static rn_status_t fuse_map_and_batch(rn_dataset_t* dataset, rn_dataset_t** out) {
  rn_dataset_t* map = input_of(dataset);
  if (!rn_data_is_a(dataset, batches) || !map || !rn_data_is_a(map, all_maps)) return RN_OK;
  bool is_parallel = !rn_data_is_a(map, maps);
  if (is_parallel && !captures(map) && map->node->input_count != 2) return RN_OK;
  int32_t kept = map->node->input_count - is_parallel;
  rn_allocator_t allocator = map->node->allocator;
  rn_tensor_t degree = {0};
  const rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(number(map, 1, &degree));
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)kept + 3, &inputs);
  for (int32_t i = 0; rn_ok(status) && i < kept; ++i) inputs[i] = &map->inputs[i];
  if (rn_ok(status)) {
    inputs[kept] = rn_data_input(dataset, "batch_size", NULL);
    inputs[kept + 1] = is_parallel ? &map->inputs[kept] : &degree;
    inputs[kept + 2] = rn_data_input(dataset, "drop_remainder", NULL);
  }
  const rn_attr_t attrs[] = {{RN_STR("output_types"), *rn_data_attr(dataset, "output_types")},
                             {RN_STR("output_shapes"), *rn_data_attr(dataset, "output_shapes")}};
  rn_data_change_t change = {map, "MapAndBatchDataset", 2, attrs, NULL};
  if (rn_ok(status)) status = rn_data_remake(&change, inputs, kept + 3, out);
  RN_FREE_ARRAY(allocator, inputs, kept + 3);
  rn_tensor_clear(&degree);
  return status;
}

// A repeated shuffle: one dataset that does both.
static rn_status_t fuse_shuffle_and_repeat(rn_dataset_t* dataset, rn_dataset_t** out) {
  static const char* const repeats[] = {"RepeatDataset", NULL};
  static const char* const shuffles[] = {"ShuffleDataset", "ShuffleDatasetV3", NULL};
  rn_dataset_t* shuffle = input_of(dataset);
  if (!rn_data_is_a(dataset, repeats) || !shuffle || !rn_data_is_a(shuffle, shuffles) ||
      !rn_data_flag(shuffle, "reshuffle_each_iteration"))
    return RN_OK;
  const rn_tensor_t* inputs[6];
  for (int i = 0; i < 4; ++i) inputs[i] = &shuffle->inputs[i];
  inputs[4] = rn_data_input(dataset, "count", NULL);
  bool has_generator = shuffle->node->input_count == 5;
  if (has_generator) inputs[5] = &shuffle->inputs[4];
  rn_data_change_t change = {
      .like = shuffle,
      .op = has_generator ? "ShuffleAndRepeatDatasetV2" : "ShuffleAndRepeatDataset"};
  return rn_data_remake(&change, inputs, 5 + has_generator, out);
}

// Options.
typedef struct rewrite_wish_t {
  rn_data_pass_t pass;
  size_t case_at, value_at;  // in an rn_pb_data_OptimizationOptions_t
} rewrite_wish_t;

#define WISH(pass, field)                                                      \
  {                                                                            \
    pass, offsetof(rn_pb_data_OptimizationOptions_t, optional_##field##_case), \
        offsetof(rn_pb_data_OptimizationOptions_t, field)                      \
  }
// In the order in which passes run: what runs in parallel is known before functions are joined.
static const rewrite_wish_t wishes[] = {
    WISH(drop_noops, noop_elimination),
    WISH(fuse_map_and_batch, map_and_batch_fusion),
    WISH(fuse_shuffle_and_repeat, shuffle_and_repeat_fusion),
    WISH(parallel_maps, map_parallelization),
    WISH(rn_data_fuse_filters, filter_fusion),
    WISH(parallel_filters, filter_parallelization),
    WISH(rn_data_fuse_map_and_filter, map_and_filter_fusion),
    WISH(rn_data_fuse_maps, map_fusion),
};
enum { WISHES = sizeof wishes / sizeof *wishes };

// Messages are merged by writing them one after the other; those of |dataset| come last and win.
static rn_status_t put_options(rn_dataset_t* dataset, rn_strbuf_t* out) {
  rn_data_list_t all;
  rn_status_t status = rn_data_list(dataset, &all);
  for (size_t i = all.count; rn_ok(status) && i-- > 0;)
    if (rn_data_is_a(all.items[i], carriers))
      rn_strbuf_append(out, rn_data_attr(all.items[i], "serialized_options")->s);
  rn_vec_free(&all, dataset->node->allocator);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

rn_status_t rn_data_options_of(rn_dataset_t* dataset, rn_strbuf_t* out) {
  rn_pb_data_Options_t* options = NULL;
  rn_strbuf_t all;
  rn_arena_t arena;
  rn_strbuf_init(&all, out->allocator);
  rn_arena_init(&arena, out->allocator);
  rn_status_t status = put_options(dataset, &all);
  if (rn_ok(status))
    status = RN_PB_DECODE(data_Options, rn_strbuf_view(&all), NULL, &arena, &options);
  if (rn_ok(status)) status = RN_PB_ENCODE(data_Options, options, NULL, out);
  rn_arena_clear(&arena);
  rn_strbuf_clear(&all);
  return status;
}

static void read_wishes(const rn_pb_data_OptimizationOptions_t* options, bool wanted[WISHES]) {
  for (int i = 0; i < WISHES; ++i) {
    const char* bytes = (const char*)options;
    if (*(const int32_t*)(const void*)(bytes + wishes[i].case_at))
      wanted[i] = *(const bool*)(const void*)(bytes + wishes[i].value_at);
  }
}

static rn_status_t find_wishes(rn_dataset_t* dataset, rn_arena_t* arena, bool wanted[WISHES],
                               bool* inout_autotunes) {
  rn_pb_data_Options_t* options = NULL;
  rn_strbuf_t all;
  rn_strbuf_init(&all, dataset->node->allocator);
  rn_status_t status = put_options(dataset, &all);
  if (rn_ok(status))
    status = RN_PB_DECODE(data_Options, rn_strbuf_view(&all), NULL, arena, &options);
  if (rn_ok(status) && options->optimization_options)
    read_wishes(options->optimization_options, wanted);
  if (rn_ok(status) && options->autotune_options &&
      options->autotune_options->optional_enabled_case)
    *inout_autotunes = options->autotune_options->enabled;
  rn_strbuf_clear(&all);
  return status;
}

// A pass over a pipeline: what became of each dataset.
typedef struct rewrite_t {
  rn_data_pass_t pass;
  rn_data_list_t from;  // Borrowed
  rn_data_list_t to;    // Retained
} rewrite_t;

static rn_status_t remember(rewrite_t* rewrite, rn_dataset_t* dataset, rn_dataset_t* made) {
  rn_allocator_t allocator = dataset->node->allocator;
  RN_RETURN_IF_ERROR(rn_vec_push(&rewrite->from, allocator, dataset));
  RN_RETURN_IF_ERROR(rn_vec_push(&rewrite->to, allocator, made));
  rn_object_retain(&made->object);
  return RN_OK;
}

// Applies the pass to |dataset| and all that it reads, those first.
static rn_status_t apply(rewrite_t* rewrite, rn_dataset_t* dataset, int depth, rn_dataset_t** out) {
  for (size_t i = 0; i < rewrite->to.count; ++i)
    if (rewrite->from.items[i] == dataset) {
      keep(rewrite->to.items[i], out);
      return RN_OK;
    }
  int32_t count = dataset->inputs && dataset->node->attrs ? dataset->node->input_count : 0;
  rn_allocator_t allocator = dataset->node->allocator;
  rn_tensor_t* changed = NULL;
  bool is_changed = false;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)count, &changed));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count && depth < MAX_DEPTH; ++i) {
    rn_dataset_t *input = rn_data_in(&dataset->inputs[i]), *made = NULL;
    if (!input) continue;
    status = apply(rewrite, input, depth + 1, &made);
    if (rn_ok(status) && made != input) {
      status = rn_dataset_tensor(made, &changed[i]);
      is_changed = true;
    }
    rn_dataset_release(made);
  }
  rn_dataset_t *self = NULL, *made = NULL;
  if (rn_ok(status) && is_changed) status = rn_data_with_inputs(dataset, changed, &self);
  if (rn_ok(status) && !is_changed) keep(dataset, &self);
  if (rn_ok(status)) status = rewrite->pass(self, &made);
  rn_data_row_clear(changed, count);
  RN_FREE_ARRAY(allocator, changed, count);
  if (rn_ok(status) && made) {
    rn_dataset_release(self);
    self = made;
  }
  if (rn_ok(status)) status = remember(rewrite, dataset, self);
  if (rn_ok(status))
    *out = self;
  else
    rn_dataset_release(self);
  return status;
}

static rn_status_t run_pass(rn_data_pass_t pass, rn_dataset_t* dataset, rn_dataset_t** out) {
  rn_allocator_t allocator = dataset->node->allocator;
  rewrite_t rewrite = {.pass = pass};
  rn_status_t status = apply(&rewrite, dataset, 0, out);
  for (size_t i = 0; i < rewrite.to.count; ++i) rn_dataset_release(rewrite.to.items[i]);
  rn_vec_free(&rewrite.from, allocator);
  rn_vec_free(&rewrite.to, allocator);
  return status;
}

rn_status_t rn_data_rewrite(rn_dataset_t* dataset, rn_dataset_t** out) {
  bool wanted[WISHES] = {false}, autotunes = true;
  rn_arena_t arena;
  rn_arena_init(&arena, dataset->node->allocator);
  rn_status_t status = find_wishes(dataset, &arena, wanted, &autotunes);
  rn_arena_clear(&arena);
  *out = NULL;
  RN_RETURN_IF_ERROR(status);
  keep(dataset, out);
  for (int i = 0; i < WISHES; ++i) {
    rn_dataset_t* made = NULL;
    bool needs_autotune = wishes[i].pass == parallel_maps || wishes[i].pass == parallel_filters;
    if (!wanted[i] || (needs_autotune && !autotunes)) continue;
    status = run_pass(wishes[i].pass, *out, &made);
    rn_dataset_release(*out);
    *out = made;
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}
