// Passes that join the functions of two datasets: see rewrite.h.
//
// A joined function calls both. Its definition is written as text and added to the functions of the
// inner dataset, in a table of its own.
#include "framework/pipeline_proto.h"
#include "kernels/cpu/dataset/remake.h"
#include "kernels/cpu/dataset/rewrite.h"
#include "wire/text.h"

typedef struct fuse_part_t {
  rn_dataset_t* dataset;
  const char* attr;
  rn_str_t name;               // of the function
  const rn_instance_t* types;  // what it takes and returns
} fuse_part_t;

static bool is_plain_name(rn_str_t name) {
  return !memchr(name.data, '"', name.size) && !memchr(name.data, '\\', name.size);
}

// Reads the function of |dataset|. False if it captures inputs or has attributes.
static bool part_open(fuse_part_t* part, rn_dataset_t* dataset, const char* attr) {
  int32_t captured = 0;
  const rn_attr_value_t* value = rn_data_attr(dataset, attr);
  (void)rn_data_input(dataset, "other_arguments", &captured);
  if (captured || !value || value->kind != RN_ATTR_FUNC || !value->func || !dataset->functions)
    return false;
  if (value->func->attr_count || !is_plain_name(value->func->name)) return false;
  *part = (fuse_part_t){.dataset = dataset, .attr = attr, .name = value->func->name};
  return true;
}

// Whether |inner|'s table has the function of |outer| too.
static rn_status_t share_table(const fuse_part_t* inner, const fuse_part_t* outer, bool* out) {
  rn_str_t mine, theirs;
  RN_RETURN_IF_ERROR(rn_functions_find(inner->dataset->functions, outer->name, &mine));
  RN_RETURN_IF_ERROR(rn_functions_find(outer->dataset->functions, outer->name, &theirs));
  *out = mine.size && rn_str_eq(mine, theirs);
  return RN_OK;
}

// Pieces of a FunctionDef's text.
static void put_args(rn_strbuf_t* text, const char* field, const char* stem, int32_t count,
                     const rn_dtype_t* types) {
  for (int32_t i = 0; i < count; ++i)
    rn_strbuf_printf(text, " %s { name: \"%s%d\" type: %d }", field, stem, i, (int)types[i]);
}

static void put_types(rn_strbuf_t* text, const char* key, int32_t count, const rn_dtype_t* types) {
  rn_strbuf_printf(text, " attr { key: \"%s\" value { list {", key);
  for (int32_t i = 0; i < count; ++i) rn_strbuf_printf(text, " type: %d", (int)types[i]);
  rn_strbuf_printf(text, " } } }");
}

static void put_function(rn_strbuf_t* text, const char* key, rn_str_t name) {
  rn_strbuf_printf(text, " attr { key: \"%s\" value { func { name: \"%.*s\" } } }", key,
                   RN_STR_ARGS(name));
}

// A call of |name| on |count| values called |stem|0, |stem|1 ...
static void put_call(rn_strbuf_t* text, const char* node, rn_str_t name, const char* stem,
                     int32_t count, const rn_dtype_t* types, int32_t results,
                     const rn_dtype_t* result_types) {
  rn_strbuf_printf(text, " node_def { name: \"%s\" op: \"StatefulPartitionedCall\"", node);
  for (int32_t i = 0; i < count; ++i) rn_strbuf_printf(text, " input: \"%s%d\"", stem, i);
  put_types(text, "Tin", count, types);
  put_types(text, "Tout", results, result_types);
  put_function(text, "f", name);
  rn_strbuf_printf(text, " }");
}

static void begin(rn_strbuf_t* text, rn_str_t name, int32_t count, const rn_dtype_t* types) {
  rn_strbuf_printf(text, "function { signature { name: \"%.*s\" is_stateful: true",
                   RN_STR_ARGS(name));
  put_args(text, "input_arg", "x", count, types);
}

static void put_rets(rn_strbuf_t* text, const char* stem, int32_t first, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    rn_strbuf_printf(text, " ret { key: \"y%d\" value: \"%s:%d\" }", first + i, stem, i);
}

// Adds the functions of |text| to those of |part|.
static rn_status_t add_text(const fuse_part_t* part, rn_strbuf_t* text, rn_functions_t** out) {
  rn_pb_FunctionDefLibrary_t* library = NULL;
  RN_RETURN_IF_ERROR(rn_strbuf_status(text));
  rn_arena_t arena;
  rn_arena_init(&arena, text->allocator);
  rn_status_t status = rn_pb_parse(&rn_pb_FunctionDefLibrary_desc, rn_strbuf_view(text), NULL,
                                   &arena, (void**)&library);
  if (rn_ok(status)) status = rn_functions_derive(part->dataset->functions, true, library, out);
  rn_arena_clear(&arena);
  return status;
}

// Instances tell the types of a function.
static rn_status_t know_types(fuse_part_t* part) {
  const rn_func_attr_t call = {.name = part->name};
  rn_instance_t* instance = NULL;
  RN_RETURN_IF_ERROR(rn_function_prepare(part->dataset->functions, &call, RN_STR(""), &instance));
  part->types = instance;
  return RN_OK;
}

static void forget_types(const fuse_part_t* part) {
  union {
    const rn_instance_t* known;
    rn_instance_t* own;
  } types = {part->types};
  if (part->types) rn_function_forget(part->dataset->functions, types.own);
}

// What a pass makes of the two parts and the name of the new function.
typedef rn_status_t (*fuse_join_t)(const fuse_part_t* inner, const fuse_part_t* outer,
                                   rn_str_t name, rn_strbuf_t* text, rn_dataset_t** out);

static rn_status_t join(rn_dataset_t* inner, const char* inner_attr, rn_dataset_t* outer,
                        const char* outer_attr, const char* verb, fuse_join_t join_parts,
                        rn_dataset_t** out) {
  fuse_part_t first, second;
  bool shares = false;
  if (!part_open(&first, inner, inner_attr) || !part_open(&second, outer, outer_attr)) return RN_OK;
  RN_RETURN_IF_ERROR(share_table(&first, &second, &shares));
  if (!shares) return RN_OK;
  rn_strbuf_t name, text;
  rn_strbuf_init(&name, inner->node->allocator);
  rn_strbuf_init(&text, inner->node->allocator);
  rn_strbuf_printf(&name, "%.*s_%s_%.*s", RN_STR_ARGS(first.name), verb, RN_STR_ARGS(second.name));
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = know_types(&first);
  if (rn_ok(status)) status = know_types(&second);
  if (rn_ok(status)) status = join_parts(&first, &second, rn_strbuf_view(&name), &text, out);
  forget_types(&first);
  forget_types(&second);
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&text);
  return status;
}

// |like| as an |op| with the function |name| of |functions| over |input|, and whatever |attrs| say.
// A parallel map keeps its degree of parallelism.
static rn_status_t with_function(rn_dataset_t* like, const char* op, const char* attr,
                                 rn_str_t name, rn_functions_t* functions, const rn_tensor_t* input,
                                 const rn_attr_t* more, int32_t more_count, rn_dataset_t** out) {
  const rn_func_attr_t call = {.name = name};
  rn_attr_t attrs[5] = {{rn_str(attr), {.kind = RN_ATTR_FUNC, .func = &call}}};
  for (int32_t i = 0; i < more_count; ++i) attrs[1 + i] = more[i];
  rn_data_change_t change = {like, op, 1 + more_count, attrs, functions};
  const rn_tensor_t* inputs[2] = {input, rn_data_input(like, "num_parallel_calls", NULL)};
  bool is_parallel = inputs[1] && strncmp(op, "Parallel", 8) == 0;
  return rn_data_remake(&change, inputs, is_parallel ? 2 : 1, out);
}

static rn_dataset_t* input_of(const rn_dataset_t* dataset) {
  const rn_tensor_t* input = rn_data_input(dataset, "input_dataset", NULL);
  return input ? rn_data_in(input) : NULL;
}

// Maps.
static rn_status_t join_maps(const fuse_part_t* inner, const fuse_part_t* outer, rn_str_t name,
                             rn_strbuf_t* text, rn_dataset_t** out) {
  const rn_instance_t *f = inner->types, *g = outer->types;
  begin(text, name, f->arg_count, f->arg_types);
  put_args(text, "output_arg", "y", g->result_count, g->result_types);
  rn_strbuf_printf(text, " }");
  put_call(text, "first", inner->name, "x", f->arg_count, f->arg_types, f->result_count,
           f->result_types);
  put_call(text, "second", outer->name, "first:output:", g->arg_count, g->arg_types,
           g->result_count, g->result_types);
  put_rets(text, "second:output", 0, g->result_count);
  rn_strbuf_printf(text, " }");
  rn_functions_t* functions = NULL;
  RN_RETURN_IF_ERROR(add_text(inner, text, &functions));
  rn_attr_t keeps = {RN_STR("preserve_cardinality"), {.kind = RN_ATTR_BOOL}};
  keeps.value.b = rn_data_flag(inner->dataset, "preserve_cardinality") &&
                  rn_data_flag(outer->dataset, "preserve_cardinality");
  rn_status_t status =
      with_function(outer->dataset, outer->dataset->node->op->name, "f", name, functions,
                    rn_data_input(inner->dataset, "input_dataset", NULL), &keeps, 1, out);
  rn_functions_release(functions);
  return status;
}

static int64_t degree_of(const rn_dataset_t* map) {
  int64_t degree = 0;
  rn_status_t status = rn_data_scalar(map, "num_parallel_calls", &degree);
  bool is_read = rn_ok(status);
  rn_status_free(status);
  return is_read ? degree : 0;
}

rn_status_t rn_data_fuse_maps(rn_dataset_t* dataset, rn_dataset_t** out) {
  static const char* const maps[] = {"MapDataset", NULL};
  static const char* const parallel[] = {"ParallelMapDatasetV2", NULL};
  rn_dataset_t* inner = input_of(dataset);
  if (!inner) return RN_OK;
  bool are_parallel = rn_data_is_a(dataset, parallel) && rn_data_is_a(inner, parallel) &&
                      degree_of(dataset) == RN_DATA_AUTOTUNE &&
                      degree_of(inner) == RN_DATA_AUTOTUNE &&
                      rn_attr_value_eq(rn_data_attr(dataset, "deterministic"),
                                       rn_data_attr(inner, "deterministic"));
  bool are_plain = rn_data_is_a(dataset, maps) && rn_data_is_a(inner, maps);
  if (!are_parallel && !are_plain) return RN_OK;
  return join(inner, "f", dataset, "f", "then", join_maps, out);
}

// Filters: the second predicate runs only if the first is true.
static rn_status_t join_filters(const fuse_part_t* inner, const fuse_part_t* outer, rn_str_t name,
                                rn_strbuf_t* text, rn_dataset_t** out) {
  const rn_instance_t* p = inner->types;
  static const rn_dtype_t truth[] = {RN_BOOL};
  begin(text, name, p->arg_count, p->arg_types);
  put_args(text, "output_arg", "y", 1, truth);
  rn_strbuf_printf(text, " }");
  put_call(text, "first", inner->name, "x", p->arg_count, p->arg_types, 1, truth);
  rn_strbuf_printf(text, " node_def { name: \"second\" op: \"If\" input: \"first:output:0\"");
  for (int32_t i = 0; i < p->arg_count; ++i) rn_strbuf_printf(text, " input: \"x%d\"", i);
  rn_strbuf_printf(text, " attr { key: \"Tcond\" value { type: %d } }", (int)RN_BOOL);
  put_types(text, "Tin", p->arg_count, p->arg_types);
  put_types(text, "Tout", 1, truth);
  put_function(text, "then_branch", outer->name);
  rn_strbuf_printf(text,
                   " attr { key: \"else_branch\" value { func { name: \"%.*s_never\" } } } }"
                   " ret { key: \"y0\" value: \"second:output:0\" } }\n",
                   RN_STR_ARGS(name));
  rn_strbuf_printf(text, "function { signature { name: \"%.*s_never\"", RN_STR_ARGS(name));
  put_args(text, "input_arg", "x", p->arg_count, p->arg_types);
  put_args(text, "output_arg", "y", 1, truth);
  rn_strbuf_printf(text,
                   " } node_def { name: \"never\" op: \"Const\""
                   " attr { key: \"dtype\" value { type: %d } }"
                   " attr { key: \"value\" value { tensor { dtype: %d tensor_shape { }"
                   " bool_val: false } } } }"
                   " ret { key: \"y0\" value: \"never:output:0\" } }",
                   (int)RN_BOOL, (int)RN_BOOL);
  rn_functions_t* functions = NULL;
  RN_RETURN_IF_ERROR(add_text(inner, text, &functions));
  rn_status_t status =
      with_function(outer->dataset, "FilterDataset", "predicate", name, functions,
                    rn_data_input(inner->dataset, "input_dataset", NULL), NULL, 0, out);
  rn_functions_release(functions);
  return status;
}

static const char* const filters[] = {"FilterDataset", NULL};

rn_status_t rn_data_fuse_filters(rn_dataset_t* dataset, rn_dataset_t** out) {
  rn_dataset_t* inner = input_of(dataset);
  if (!inner || !rn_data_is_a(dataset, filters) || !rn_data_is_a(inner, filters)) return RN_OK;
  return join(inner, "predicate", dataset, "predicate", "and", join_filters, out);
}

// A filter of a map: the map computes the predicate too, the filter looks at it, another map drops
// it.
static void put_judging(rn_strbuf_t* text, const fuse_part_t* map, const fuse_part_t* filter,
                        rn_str_t name, const rn_dtype_t* types) {
  const rn_instance_t* f = map->types;
  int32_t count = f->result_count;
  begin(text, name, f->arg_count, f->arg_types);
  put_args(text, "output_arg", "y", count + 1, types);
  rn_strbuf_printf(text, " }");
  put_call(text, "first", map->name, "x", f->arg_count, f->arg_types, count, types);
  put_call(text, "second", filter->name, "first:output:", count, types, 1, &types[count]);
  put_rets(text, "first:output", 0, count);
  put_rets(text, "second:output", count, 1);
  rn_strbuf_printf(text, " }\n");
}

// A function of |count| + 1 values that returns |results| of them, from |first| on.
static void put_choice(rn_strbuf_t* text, rn_str_t name, const char* suffix, int32_t count,
                       const rn_dtype_t* types, int32_t first, int32_t results) {
  rn_strbuf_printf(text, "function { signature { name: \"%.*s_%s\"", RN_STR_ARGS(name), suffix);
  put_args(text, "input_arg", "x", count + 1, types);
  put_args(text, "output_arg", "y", results, &types[first]);
  rn_strbuf_printf(text, " }");
  for (int32_t i = 0; i < results; ++i)
    rn_strbuf_printf(text, " ret { key: \"y%d\" value: \"x%d\" }", i, first + i);
  rn_strbuf_printf(text, " }\n");
}

static rn_status_t over(rn_dataset_t* input, rn_dataset_t* like, const char* op, const char* attr,
                        rn_str_t name, const char* suffix, rn_functions_t* functions,
                        const rn_attr_t* attrs, rn_dataset_t** out) {
  rn_tensor_t tensor = {0};
  rn_strbuf_t full;
  rn_strbuf_init(&full, like->node->allocator);
  rn_strbuf_printf(&full, "%.*s_%s", RN_STR_ARGS(name), suffix);
  rn_status_t status = rn_strbuf_status(&full);
  if (rn_ok(status)) status = rn_dataset_tensor(input, &tensor);
  if (rn_ok(status))
    status =
        with_function(like, op, attr, rn_strbuf_view(&full), functions, &tensor, attrs, 2, out);
  rn_tensor_clear(&tensor);
  rn_strbuf_clear(&full);
  return status;
}

static rn_status_t three_datasets(const fuse_part_t* map, const fuse_part_t* filter, rn_str_t name,
                                  rn_functions_t* functions, const rn_attr_t* judged,
                                  rn_dataset_t** out) {
  rn_dataset_t *wide = NULL, *chosen = NULL;
  const rn_attr_t narrow[] = {
      {RN_STR("output_types"), *rn_data_attr(filter->dataset, "output_types")},
      {RN_STR("output_shapes"), *rn_data_attr(filter->dataset, "output_shapes")}};
  rn_status_t status =
      with_function(map->dataset, map->dataset->node->op->name, "f", name, functions,
                    rn_data_input(map->dataset, "input_dataset", NULL), judged, 2, &wide);
  if (rn_ok(status))
    status = over(wide, filter->dataset, "FilterDataset", "predicate", name, "last", functions,
                  judged, &chosen);
  if (rn_ok(status))
    status = over(chosen, map->dataset, "MapDataset", "f", name, "rest", functions, narrow, out);
  rn_dataset_release(wide);
  rn_dataset_release(chosen);
  return status;
}

static rn_status_t join_map_and_filter(const fuse_part_t* map, const fuse_part_t* filter,
                                       rn_str_t name, rn_strbuf_t* text, rn_dataset_t** out) {
  int32_t count = map->types->result_count;
  rn_arena_t arena;
  rn_arena_init(&arena, text->allocator);
  rn_dtype_t* types = NULL;
  rn_shape_t* shapes = NULL;
  rn_functions_t* functions = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&arena, (size_t)count + 1, &types);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)count + 1, &shapes);
  for (int32_t i = 0; rn_ok(status) && i <= count; ++i) {
    types[i] = i < count ? map->types->result_types[i] : RN_BOOL;
    shapes[i] = i < count ? map->dataset->shapes[i] : RN_SHAPE_SCALAR;
  }
  if (rn_ok(status)) {
    put_judging(text, map, filter, name, types);
    put_choice(text, name, "last", count, types, count, 1);
    put_choice(text, name, "rest", count, types, 0, count);
    status = add_text(map, text, &functions);
  }
  if (rn_ok(status)) {
    const rn_attr_t judged[] = {
        {RN_STR("output_types"),
         {.kind = RN_ATTR_TYPE, .is_list = true, .count = count + 1, .list_type = types}},
        {RN_STR("output_shapes"),
         {.kind = RN_ATTR_SHAPE, .is_list = true, .count = count + 1, .list_shape = shapes}}};
    status = three_datasets(map, filter, name, functions, judged, out);
  }
  rn_functions_release(functions);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_data_fuse_map_and_filter(rn_dataset_t* dataset, rn_dataset_t** out) {
  static const char* const maps[] = {"MapDataset", "ParallelMapDatasetV2", NULL};
  rn_dataset_t* inner = input_of(dataset);
  if (!inner || !rn_data_is_a(dataset, filters) || !rn_data_is_a(inner, maps)) return RN_OK;
  return join(inner, "f", dataset, "predicate", "judged_by", join_map_and_filter, out);
}
