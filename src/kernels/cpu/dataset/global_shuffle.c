// GlobalShuffleDataset: all elements in random order, each had by its index.
#include <stdio.h>

#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/listing.h"
#include "kernels/cpu/dataset/seeds.h"
#include "kernels/cpu/random/index_shuffle.h"

#define ROUNDS 8

typedef struct global_shuffle_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_seeds_t* seeds;  // Retained
} global_shuffle_t;

typedef struct global_iterator_t {
  rn_data_iterator_t base;
  int64_t seeds[3];
  int64_t next;
} global_iterator_t;

static bool is_a(const rn_dataset_t* dataset, const char* op) {
  return strncmp(dataset->node->op->name, op, strlen(op)) == 0 && dataset->inputs;
}

static rn_status_t not_compatible(const char* why, const rn_dataset_t* dataset) {
  return rn_failed_precondition(
      "`global_shuffle` requires all upstream transformations be compatible with random access. "
      "Got: FAILED_PRECONDITION: %s%s",
      dataset ? dataset->node->op->name : "", why);
}

// FAILED_PRECONDITION if |dataset| alone does not allow a shuffle as a whole.
static rn_status_t check_one(const rn_dataset_t* dataset) {
  int64_t count = 0, drops = 0;
  char why[128];
  if (!dataset->kind->get) return not_compatible(" does not support random access.", dataset);
  if (is_a(dataset, "RepeatDataset")) {
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "count", &count));
    snprintf(why, sizeof why, "`repeat(%lld)` does not support random access of tf.data datasets.",
             (long long)count);
    if (count <= 0) return not_compatible(why, NULL);
  }
  if (is_a(dataset, "SkipDataset")) {
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "count", &count));
    snprintf(why, sizeof why,
             "Global shuffling does not support empty dataset or skipping the entire dataset. Got "
             "skip(%lld).",
             (long long)count);
    if (count < 0) return not_compatible(why, NULL);
  }
  if (!is_a(dataset, "BatchDataset") && !is_a(dataset, "ParallelBatchDataset")) return RN_OK;
  if (rn_data_has_input(dataset, "drop_remainder"))
    RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "drop_remainder", &drops));
  return drops ? RN_OK
               : not_compatible(" does not support global shuffling with `drop_remainder=False`.",
                                dataset);
}

static rn_status_t check_access(rn_dataset_t* dataset) {
  rn_data_list_t all;
  rn_status_t status = rn_data_list(dataset, &all);
  for (size_t i = all.count; rn_ok(status) && i-- > 0;) status = check_one(all.items[i]);
  rn_vec_free(&all, dataset->node->allocator);
  return status;
}

static rn_status_t global_open(rn_dataset_t* dataset) {
  global_shuffle_t* own = (global_shuffle_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  RN_RETURN_IF_ERROR(check_access(own->input));
  int64_t count = rn_dataset_cardinality(own->input);
  if (count <= 0)
    return rn_invalid_argument(
        "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got "
        "cardinality %lld for dataset %sOp::Dataset",
        (long long)count, own->input->node->op->name);
  return rn_data_seeds_open(dataset, &own->seeds);
}

static void global_close(rn_dataset_t* dataset) {
  global_shuffle_t* own = (global_shuffle_t*)dataset;
  if (own->seeds) rn_object_release(&own->seeds->resource.object);
}

static int64_t global_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const global_shuffle_t*)dataset)->input);
}

static rn_status_t global_start(rn_data_iterator_t* iterator) {
  global_iterator_t* own = (global_iterator_t*)iterator;
  rn_data_seeds_t* seeds = ((const global_shuffle_t*)iterator->dataset)->seeds;
  int64_t unused;
  rn_data_seeds_draw(seeds, &own->seeds[0], &own->seeds[1]);
  rn_data_seeds_draw(seeds, &own->seeds[2], &unused);
  return RN_OK;
}

static bool global_next(rn_data_iterator_t* iterator) {
  global_iterator_t* own = (global_iterator_t*)iterator;
  const global_shuffle_t* dataset = (const global_shuffle_t*)iterator->dataset;
  int64_t count = rn_dataset_cardinality(dataset->input);
  if (own->next >= count) return rn_data_end(iterator);
  const uint32_t seed[3] = {(uint32_t)own->seeds[0], (uint32_t)own->seeds[1],
                            (uint32_t)own->seeds[2]};
  uint64_t index = rn_index_shuffle((uint64_t)own->next, seed, (uint64_t)count - 1, ROUNDS);
  rn_status_t status =
      rn_dataset_get(dataset->input, (int64_t)index, iterator->asked->step, iterator->asked->out);
  own->next++;
  return rn_data_finish(iterator, status);
}

static rn_status_t global_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  const global_iterator_t* own = (const global_iterator_t*)iterator;
  for (int i = 0; i < 3; ++i) rn_data_put_int(writer, own->seeds[i]);
  rn_data_put_int(writer, own->next);
  rn_data_seeds_put(((const global_shuffle_t*)iterator->dataset)->seeds, writer);
  return RN_OK;
}

static rn_status_t global_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  global_iterator_t* own = (global_iterator_t*)iterator;
  for (int i = 0; i < 3; ++i) RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->seeds[i]));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  RN_RETURN_IF_ERROR(
      rn_data_seeds_take(((const global_shuffle_t*)iterator->dataset)->seeds, reader));
  return own->next < 0 ? rn_data_bad_state() : RN_OK;
}

const rn_data_kind_t rn_data_kind_global_shuffle = {.dataset_size = sizeof(global_shuffle_t),
                                                    .iterator_size = sizeof(global_iterator_t),
                                                    .open = global_open,
                                                    .close = global_close,
                                                    .cardinality = global_cardinality,
                                                    .start = global_start,
                                                    .next = global_next,
                                                    .save = global_save,
                                                    .restore = global_restore};
