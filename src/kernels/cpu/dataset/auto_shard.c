// AutoShardDataset: divides a pipeline among workers, by files where it reads some, otherwise by
// elements.
#define _GNU_SOURCE
#include <string.h>

#include "base/vec.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/derived.h"
#include "kernels/cpu/dataset/remake.h"
#include "tensor/tstring.h"

enum { POLICY_OFF = -1, POLICY_AUTO, POLICY_FILE, POLICY_DATA, POLICY_HINT };

#define MAX_DEPTH 256  // nesting of datasets

// What became of each dataset: several may read one.
typedef struct auto_shard_t {
  int64_t workers, index;
  RN_VEC(const rn_dataset_t*) from;  // Borrowed
  RN_VEC(rn_dataset_t*) to;          // Owned
} auto_shard_t;

static const char* const readers[] = {
    "TFRecordDataset",          "TFRecordDatasetV2",          "TextLineDataset",
    "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", NULL};
// Datasets that make others of elements, which may be file names.
static const char* const makers[] = {"FlatMapDataset",
                                     "InterleaveDataset",
                                     "ParallelInterleaveDataset",
                                     "ParallelInterleaveDatasetV2",
                                     "ParallelInterleaveDatasetV3",
                                     "ParallelInterleaveDatasetV4",
                                     "LegacyParallelInterleaveDatasetV2",
                                     "ExperimentalParallelInterleaveDataset",
                                     NULL};
static const char* const sources[] = {
    "GeneratorDataset", "RangeDataset",       "SparseTensorSliceDataset",
    "TensorDataset",    "TensorSliceDataset", "ListDataset",
    "RandomDataset",    "RandomDatasetV2",    NULL};

static bool is_one_of(const char* name, const char* const* names) {
  for (; *names; ++names)
    if (strcmp(*names, name) == 0) return true;
  return false;
}

// Whether the function of |dataset| has a reader in its body.
static rn_status_t reads_files(rn_dataset_t* dataset, bool* out) {
  const rn_attr_value_t* value = rn_data_attr(dataset, "f");
  *out = false;
  if (!value || value->kind != RN_ATTR_FUNC || !value->func || !dataset->functions) return RN_OK;
  rn_instance_t* instance = NULL;
  RN_RETURN_IF_ERROR(rn_function_prepare(dataset->functions, value->func, RN_STR(""), &instance));
  for (const char* const* name = readers; *name; ++name)
    *out |= memmem(instance->def.data, instance->def.size, *name, strlen(*name)) != NULL;
  rn_function_forget(dataset->functions, instance);
  return RN_OK;
}

// Every |workers|-th name.
static rn_status_t divide_names(const auto_shard_t* own, const rn_tensor_t* names,
                                rn_allocator_t memory, rn_tensor_t* out) {
  int64_t count = 0;
  for (int64_t i = own->index; i < names->count; i += own->workers) ++count;
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, RN_STRING, (rn_shape_t){1, &count}, out));
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t name =
        rn_tstring_view(&RN_DATA(names, const rn_tstring_t)[own->index + i * own->workers]);
    if (!rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], name.data, name.size))
      return rn_out_of_memory();
  }
  return RN_OK;
}

static rn_status_t by_files(auto_shard_t* own, rn_dataset_t* dataset, int depth,
                            rn_dataset_t** out);

// The input dataset |tensor|, divided: as a shard, or by the files that it reads.
static rn_status_t divide_input(auto_shard_t* own, const rn_tensor_t* tensor, bool is_shard,
                                int depth, rn_tensor_t* out) {
  rn_dataset_t *input = NULL, *made = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(tensor, &input));
  RN_RETURN_IF_ERROR(is_shard ? rn_data_shard_over(input, own->workers, own->index, &made)
                              : by_files(own, input, depth + 1, &made));
  rn_status_t status = rn_dataset_tensor(made, out);
  rn_dataset_release(made);
  return status;
}

// Divides the inputs of |dataset|: names of files, or datasets.
static rn_status_t divide_inputs(auto_shard_t* own, rn_dataset_t* dataset, int depth,
                                 rn_tensor_t* divided, int* out_count) {
  bool is_reader = is_one_of(dataset->node->op->name, readers), is_maker = false;
  if (is_one_of(dataset->node->op->name, makers))
    RN_RETURN_IF_ERROR(reads_files(dataset, &is_maker));
  const rn_tensor_t* names = rn_data_input(dataset, "filenames", NULL);
  for (int32_t i = 0; i < dataset->node->input_count; ++i) {
    const rn_tensor_t* input = &dataset->inputs[i];
    rn_status_t status = RN_OK;
    if (is_reader && input == names)
      status = divide_names(own, input, dataset->node->memory, &divided[i]);
    else if (!is_reader && input->dtype == RN_VARIANT)
      status = divide_input(own, input, is_maker, depth, &divided[i]);
    else
      continue;
    RN_RETURN_IF_ERROR(status);
    ++*out_count;
  }
  return RN_OK;
}

static rn_status_t divide(auto_shard_t* own, rn_dataset_t* dataset, int depth, rn_dataset_t** out) {
  const char* name = dataset->node->op->name;
  if (is_one_of(name, sources) || depth == MAX_DEPTH)
    return rn_not_found("Found an unshardable source dataset: %s", name);
  int32_t count = dataset->inputs ? dataset->node->input_count : 0;
  rn_tensor_t* divided = NULL;
  int found = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count, &divided));
  rn_status_t status = count ? divide_inputs(own, dataset, depth, divided, &found) : RN_OK;
  if (rn_ok(status) && !found)
    status = rn_not_found(
        "Did not find a shardable source, walked to a node which is not a dataset: %s", name);
  if (rn_ok(status)) status = rn_data_with_inputs(dataset, divided, out);
  rn_data_row_clear(divided, count);
  RN_FREE_ARRAY(dataset->node->allocator, divided, count);
  return status;
}

static rn_status_t by_files(auto_shard_t* own, rn_dataset_t* dataset, int depth,
                            rn_dataset_t** out) {
  rn_allocator_t allocator = dataset->node->allocator;
  *out = NULL;
  for (size_t i = 0; i < own->to.count && !*out; ++i)
    if (own->from.items[i] == dataset) *out = own->to.items[i];
  if (!*out) {
    rn_status_t status = divide(own, dataset, depth, out);
    if (rn_ok(status)) status = rn_vec_push(&own->from, allocator, dataset);
    if (rn_ok(status)) status = rn_vec_push(&own->to, allocator, *out);
    if (!rn_ok(status)) {
      rn_dataset_release(*out);
      *out = NULL;
      return status;
    }
  }
  rn_object_retain(&(*out)->object);
  return RN_OK;
}

static void forget(auto_shard_t* own, rn_allocator_t allocator) {
  for (size_t i = 0; i < own->to.count; ++i) rn_dataset_release(own->to.items[i]);
  rn_vec_free(&own->from, allocator);
  rn_vec_free(&own->to, allocator);
}

rn_status_t rn_data_auto_shard(rn_dataset_t* dataset, rn_dataset_t** out) {
  auto_shard_t own = {0};
  rn_dataset_t* input = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_workers", &own.workers));
  if (own.workers <= 0) return rn_invalid_argument("num_workers must be greater than zero.");
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "index", &own.index));
  if (own.index < 0 || own.index >= own.workers)
    return rn_invalid_argument("index must be between 0 and %lld", (long long)(own.workers - 1));
  int64_t policy = rn_data_attr(dataset, "auto_shard_policy")->i;
  if (policy == POLICY_OFF || policy == POLICY_HINT || own.workers == 1) {
    *out = input;
    rn_object_retain(&input->object);
    return RN_OK;
  }
  if (policy != POLICY_DATA) {
    rn_status_t status = by_files(&own, input, 0, out);
    forget(&own, input->node->allocator);
    if (rn_ok(status) || policy == POLICY_FILE || rn_status_code(status) != RN_CODE_NOT_FOUND)
      return status;
    rn_status_free(status);
  }
  return rn_data_shard_over(input, own.workers, own.index, out);
}
