// The nodes of a saver, with TensorFlow's names, so that a SaverDef fits.
#include <stdio.h>

#include "tensor/tstring.h"
#include "train/saver.h"
#include "train/words.h"

// A constant of strings; a scalar if |count| is negative.
static rn_edge_t texts(rn_scope_t* scope, const char* const* values, int count, const char* name) {
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  int64_t dim = count;
  rn_shape_t shape = count < 0 ? RN_SHAPE_SCALAR : (rn_shape_t){1, &dim};
  rn_tensor_t tensor;
  rn_status_t status =
      rn_tensor_create(rn_scope_graph(scope)->allocator, RN_STRING, shape, &tensor);
  for (int64_t i = 0; rn_ok(status) && i < tensor.count; ++i)
    if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], values[i], strlen(values[i]))) {
      rn_tensor_clear(&tensor);
      status = rn_out_of_memory();
    }
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return RN_NO_EDGE;
  }
  if (name) rn_scope_name_next(scope, name);
  rn_op_begin(scope, "Const");
  rn_op_attr_type(scope, "dtype", RN_STRING);
  rn_scope_add_attr(scope, "value", &(rn_attr_value_t){.kind = RN_ATTR_TENSOR, .tensor = &tensor});
  return (rn_edge_t){rn_op_finish(scope), 0};
}

static rn_edge_t text(rn_scope_t* scope, const char* value, const char* name) {
  return texts(scope, &value, -1, name);
}

// The variables of one task, as indices into the saver's list.
typedef struct saver_graph_group_t {
  rn_str_t task;
  int* members;
  int count;
} saver_graph_group_t;

// "/job:ps/replica:0/task:1" of a longer device name; "" if it names no task.
static rn_str_t task_of(rn_str_t device) {
  for (size_t i = 0; i + 6 <= device.size; ++i) {
    if (memcmp(device.data + i, "/task:", 6) != 0) continue;
    size_t end = i + 6;
    while (end < device.size && device.data[end] >= '0' && device.data[end] <= '9') ++end;
    return rn_str_n(device.data, end);
  }
  return RN_STR("");
}

static rn_status_t make_groups(rn_saver_t* saver, saver_graph_group_t** out, int* out_count) {
  saver_graph_group_t* groups = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, (size_t)saver->count + 1, &groups));
  int count = 0;
  for (int i = 0; i < saver->count; ++i) {
    const rn_node_t* node = saver->variables[i].variable->handle.node;
    rn_str_t task = saver->options.is_sharded ? task_of(node->device) : RN_STR("");
    int at = 0;
    while (at < count && !rn_str_eq(groups[at].task, task)) ++at;
    if (at == count) {
      groups[count++].task = task;
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, (size_t)saver->count, &groups[at].members));
    }
    groups[at].members[groups[at].count++] = i;
  }
  *out = groups;
  *out_count = count;
  return RN_OK;
}

// The inputs of the save and restore ops of one group.
typedef struct saver_graph_columns_t {
  const char **names, **slices;
  rn_edge_t* values;
  int* dtypes;
} saver_graph_columns_t;

static rn_status_t make_columns(rn_saver_t* saver, const saver_graph_group_t* group,
                                saver_graph_columns_t* out) {
  size_t count = (size_t)group->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, count, &out->names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, count, &out->slices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, count, &out->values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&saver->arena, count, &out->dtypes));
  for (int i = 0; i < group->count; ++i) {
    const rn_saved_t* saved = &saver->variables[group->members[i]];
    out->names[i] = saved->name;
    out->slices[i] = saved->slice;
    out->values[i] = saved->value;
    out->dtypes[i] = saved->variable->dtype;
  }
  return RN_OK;
}

static rn_node_t* build_save(const rn_saver_t* saver, rn_scope_t* scope, rn_edge_t path,
                             const saver_graph_columns_t* columns, int count) {
  bool is_first = saver->options.is_first_format;
  rn_edge_t names = texts(scope, columns->names, count, is_first ? NULL : "SaveV2/tensor_names");
  rn_edge_t slices =
      texts(scope, columns->slices, count, is_first ? NULL : "SaveV2/shape_and_slices");
  if (is_first) return rn_SaveSlices(scope, path, names, slices, columns->values, count);
  return rn_SaveV2(scope, path, names, slices, columns->values, count);
}

static void build_restore(rn_saver_t* saver, rn_scope_t* scope, const saver_graph_group_t* group,
                          const saver_graph_columns_t* columns) {
  rn_edge_t names = texts(scope, columns->names, group->count, "RestoreV2/tensor_names");
  rn_edge_t slices = texts(scope, columns->slices, group->count, "RestoreV2/shape_and_slices");
  rn_edges_t restored =
      rn_RestoreV2(scope, saver->filename, names, slices, columns->dtypes, group->count);
  for (int i = 0; i < group->count && rn_scope_ok(scope); ++i) {
    rn_saved_t* saved = &saver->variables[group->members[i]];
    saved->restored = rn_edge_at(restored, i);
    saved->assign = rn_var_assign(scope, saved->variable, saved->restored);
  }
}

static void set_task(rn_scope_t* scope, rn_arena_t* arena, rn_str_t task) {
  rn_str_t device = {0};
  rn_status_t status = RN_OK;
  if (task.size) status = rn_arena_printf(arena, &device, "%.*s/device:CPU:0", RN_STR_ARGS(task));
  if (rn_ok(status))
    rn_scope_set_device(scope, device.data);
  else
    rn_scope_fail(scope, status);
}

// Each task writes its shard, then one op merges them. Returns the edge that carries the path when
// that is done.
static rn_edge_t build_sharded(rn_saver_t* saver, rn_scope_t* scope,
                               const saver_graph_group_t* groups, int count) {
  char temporary[64];
  const rn_env_t* env = rn_env_system();
  snprintf(temporary, sizeof temporary, "_temp_%016llx/part",
           (unsigned long long)env->random(env->self));
  rn_edge_t parts[2] = {saver->filename, text(scope, temporary, NULL)};
  rn_edge_t base = rn_StringJoin(scope, parts, 2);
  rn_edge_t total = rn_const_int32(scope, count);
  rn_edge_t* shards = NULL;
  rn_node_t** saves = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&saver->arena, (size_t)count, &shards);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&saver->arena, (size_t)count, &saves);
  for (int i = 0; rn_ok(status) && i < count; ++i) {
    saver_graph_columns_t columns;
    status = make_columns(saver, &groups[i], &columns);
    if (!rn_ok(status)) break;
    set_task(scope, &saver->arena, groups[i].task);
    shards[i] = rn_ShardedFilename(scope, base, rn_const_int32(scope, i), total);
    saves[i] = build_save(saver, scope, shards[i], &columns, groups[i].count);
    build_restore(saver, scope, &groups[i], &columns);
  }
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return RN_NO_EDGE;
  }
  rn_scope_set_device(scope, NULL);
  for (int i = 0; i < count; ++i) rn_scope_add_control(scope, saves[i]);
  rn_edge_t all = rn_Pack(scope, shards, count, .name = "MergeV2Checkpoints/checkpoint_prefixes");
  rn_node_t* merge = rn_MergeV2Checkpoints(scope, all, saver->filename);
  rn_scope_clear_controls(scope);
  return rn_after(scope, saver->filename, merge);
}

static rn_edge_t build_plain(rn_saver_t* saver, rn_scope_t* scope,
                             const saver_graph_group_t* group) {
  saver_graph_columns_t columns;
  rn_status_t status = make_columns(saver, group, &columns);
  if (!rn_ok(status)) {
    rn_scope_fail(scope, status);
    return RN_NO_EDGE;
  }
  rn_node_t* save = build_save(saver, scope, saver->filename, &columns, group->count);
  rn_scope_name_next(scope, "control_dependency");
  rn_edge_t saved = rn_after(scope, saver->filename, save);
  build_restore(saver, scope, group, &columns);
  return saved;
}

static rn_status_t make_names(rn_saver_t* saver) {
  rn_str_t name;
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&saver->arena, &name, "%s:0", saver->filename.node->name.data));
  saver->names.filename = name.data;
  RN_RETURN_IF_ERROR(rn_arena_printf(&saver->arena, &name, "%s:0", saver->saved.node->name.data));
  saver->names.save = name.data;
  saver->names.restore = saver->restore->name.data;
  return RN_OK;
}

rn_status_t rn_saver_build(rn_saver_t* saver, rn_scope_t* scope) {
  saver_graph_group_t* groups = NULL;
  int count = 0;
  RN_RETURN_IF_ERROR(make_groups(saver, &groups, &count));
  rn_edge_t path = text(scope, "model", "filename/input");
  path = rn_PlaceholderWithDefault(scope, path, NULL, 0, .name = "filename");
  saver->filename = rn_PlaceholderWithDefault(scope, path, NULL, 0, .name = "Const");
  saver->saved = saver->options.is_sharded && !saver->options.is_first_format
                     ? build_sharded(saver, scope, groups, count)
                     : build_plain(saver, scope, &groups[0]);
  for (int i = 0; i < saver->count; ++i)
    if (saver->variables[i].assign) rn_scope_add_control(scope, saver->variables[i].assign);
  saver->restore = rn_NoOp(scope, .name = "restore_all");
  rn_scope_clear_controls(scope);
  return rn_scope_ok(scope) ? make_names(saver) : RN_OK;
}
