// Ops that look at what a dataset is made of: ComputeBatchSize, DatasetFingerprint, the device and
// the model of an iterator.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/walk.h"
#include "kernels/cpu/state/handle.h"
#include "tensor/tstring.h"
#include "wire/writer.h"

#define MAX_DEPTH 256  // nesting of datasets

static bool is_one_of(const char* name, const char* const* names) {
  for (; *names; ++names)
    if (strcmp(*names, name) == 0) return true;
  return false;
}

// The size that batch datasets have as an input.
static const char* const batches[] = {"BatchDataset",
                                      "BatchDatasetV2",
                                      "ParallelBatchDataset",
                                      "PaddedBatchDataset",
                                      "PaddedBatchDatasetV2",
                                      "MapAndBatchDataset",
                                      "ExperimentalMapAndBatchDataset",
                                      NULL};
// Datasets with several inputs, whose batch sizes must agree.
static const char* const joins[] = {"ZipDataset", "ConcatenateDataset", NULL};
// Datasets whose elements have the batch size of their input.
static const char* const passes[] = {"AssertCardinalityDataset",
                                     "AssertNextDataset",
                                     "BytesProducedStatsDataset",
                                     "CacheDataset",
                                     "CacheDatasetV2",
                                     "FilterDataset",
                                     "FinalizeDataset",
                                     "IgnoreErrorsDataset",
                                     "LatencyStatsDataset",

                                     "MaxIntraOpParallelismDataset",
                                     "ModelDataset",
                                     "NonSerializableDataset",
                                     "OptimizeDataset",
                                     "OptimizeDatasetV2",
                                     "OptionsDataset",
                                     "ParallelFilterDataset",

                                     "PrefetchDataset",
                                     "PrivateThreadPoolDataset",

                                     "RepeatDataset",

                                     "SetStatsAggregatorDataset",
                                     "ShardDataset",
                                     "ShuffleAndRepeatDataset",
                                     "ShuffleAndRepeatDatasetV2",
                                     "ShuffleDataset",
                                     "ShuffleDatasetV2",
                                     "ShuffleDatasetV3",
                                     "SkipDataset",
                                     "SleepDataset",
                                     "TakeDataset",
                                     "TakeWhileDataset",
                                     "ThreadPoolDataset",
                                     "UniqueDataset",
                                     NULL};

static int64_t batch_size(const rn_dataset_t* dataset, int depth) {
  const char* name = dataset->node->op->name;
  if (depth == MAX_DEPTH) return -1;
  if (is_one_of(name, batches)) {
    const rn_tensor_t* size = rn_data_input(dataset, "batch_size", NULL);
    return size && size->count == 1 ? rn_int_at(size, 0) : -1;
  }
  bool is_join = is_one_of(name, joins);
  if (!is_join && !is_one_of(name, passes)) return -1;
  int64_t found = -1;
  for (int32_t i = 0; i < dataset->node->input_count; ++i) {
    rn_dataset_t* input = NULL;
    if (dataset->inputs[i].dtype != RN_VARIANT) continue;
    rn_status_t status = rn_dataset_of(&dataset->inputs[i], &input);
    rn_status_free(status);
    if (!input) continue;
    int64_t size = batch_size(input, depth + 1);
    if (!is_join) return size;
    if (size < 0 || (found >= 0 && size != found)) return -1;
    found = size;
  }
  return found;
}

static rn_status_t batch_size_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int64_t) = batch_size(dataset, 0);
  return RN_OK;
}

static rn_status_t fingerprint_compute(rn_kernel_ctx_t* ctx) {
  rn_dataset_t* dataset = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(rn_in(ctx, 0), &dataset));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  return rn_data_digest(dataset, RN_DATA(out, uint64_t));
}

static rn_status_t give_text(rn_kernel_ctx_t* ctx, rn_str_t text) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size) ? RN_OK
                                                                             : rn_out_of_memory();
}

static rn_status_t device_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* tensor = rn_in(ctx, 0);
  const rn_handle_t* handle = tensor->count == 1 ? *RN_DATA(tensor, rn_handle_t*) : NULL;
  if (!handle) return rn_invalid_argument("The input must be a handle");
  return give_text(ctx, handle->device);
}

// The model: a ModelProto of the datasets, without the figures of an autotuner. Its fields: nodes 1
// {key 1, value 2 {id 1, name 2, inputs 14}}, output 2, id_counter 3.
static void put_model(const rn_dataset_t* dataset, int depth, int64_t* inout_id, rn_strbuf_t* out) {
  int64_t id = ++*inout_id;
  rn_strbuf_t inputs;
  rn_strbuf_init(&inputs, out->allocator);
  for (int32_t i = 0; depth < MAX_DEPTH && dataset->inputs && i < dataset->node->input_count; ++i) {
    rn_dataset_t* input = NULL;
    if (dataset->inputs[i].dtype != RN_VARIANT) continue;
    rn_status_t status = rn_dataset_of(&dataset->inputs[i], &input);
    rn_status_free(status);
    if (!input) continue;
    rn_pb_put_varint(&inputs, (uint64_t)(*inout_id + 1));
    put_model(input, depth + 1, inout_id, out);
  }
  size_t entry = rn_pb_begin(out, 1);
  rn_pb_put_uint(out, 1, (uint64_t)id);
  size_t node = rn_pb_begin(out, 2);
  rn_pb_put_uint(out, 1, (uint64_t)id);
  rn_pb_put_str(out, 2, rn_str(dataset->node->op->name));
  if (inputs.size) rn_pb_put_str(out, 14, rn_strbuf_view(&inputs));
  rn_pb_end(out, node);
  rn_pb_end(out, entry);
  rn_strbuf_clear(&inputs);
}

static rn_status_t model_of(rn_data_root_t* root, rn_strbuf_t* out) {
  rn_dataset_t* dataset = rn_data_root_dataset(root);
  if (!dataset)
    return rn_failed_precondition(
        "GetModelProto() failed because the iterator has not been initialized. Ensure that you "
        "have "
        "run the initializer operation for this iterator before getting the next element.");
  int64_t last = 0;
  put_model(dataset, 0, &last, out);
  rn_pb_put_uint(out, 2, 1);
  rn_pb_put_uint(out, 3, (uint64_t)last + 1);
  rn_dataset_release(dataset);
  return rn_strbuf_status(out);
}

static rn_status_t model_compute(rn_kernel_ctx_t* ctx) {
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, 0), ctx->kernel->resources, RN_DATA_ITERATOR_TYPE, &resource));
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_status_t status = model_of((rn_data_root_t*)resource, &text);
  if (rn_ok(status)) status = give_text(ctx, rn_strbuf_view(&text));
  rn_strbuf_clear(&text);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "ComputeBatchSize", .device = "CPU", .compute = batch_size_compute},
    {.op = "DatasetFingerprint", .device = "CPU", .compute = fingerprint_compute},
    {.op = "IteratorGetDevice", .device = "CPU", .compute = device_compute},
    {.op = "IteratorGetModelProto", .device = "CPU", .compute = model_compute},
};
RN_KERNEL_FAMILY(cpu_data_inspect, rows);
